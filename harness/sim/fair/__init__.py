"""The Fair Scheduler of Hadoop 3.4.2 in virtual time, decision for decision.

Contains the scheduler's state and the compiled kernels that change it. The clock and the applications are in
``harness.sim``, the allocation file's syntax in ``harness.yarn.fair``.

Use: ``sched = Scheduler(conf, allocations, nodes)`` (``api.py``) holds ``sched.S``, a NamedTuple of arrays
(``state.py``); the kernels take it as first argument and may be called from Python or from other compiled code:

- ``nodes.add_node(S, node, now)``, ``nodes.remove_node(S, node, now)``
- ``apps.add_app(S, leaf, user, managed, am_mb, am_vcores, app_id, now)`` -> application slot, or a code < 0
- ``nodes.ask(S, app, priority, alloc_id, count, mb, vcores)``, ``nodes.end_app(S, app, now)``,
  ``nodes.restart_app(S, app, am_mb, am_vcores, now)``
- ``nodes.heartbeat(S, node, now)`` -> number of containers assigned; ``nodes.can_skip(S, node)``
- ``harness.sim.containers.container_exit(S, c)``, ``nodes.release(S, c, now)``, ``nodes.pull(S, app)``
- ``shares.update(S, now)``; ``preempt.preempt_pass(S, now)``, ``preempt.next_kill_ms(S)``,
  ``preempt.run_kills(S, now)``

Each kernel returns ``NEED_ROOM`` *before it changes anything* when an array is too small; Python then calls
``sched.grow()`` (which replaces ``sched.S``) and repeats the call. What happened is in ``S.log[:S.g[0].n_log]`` (dtype
``LOG``); the driver drains it by setting ``S.g[0].n_log = 0``.
"""

from __future__ import annotations
