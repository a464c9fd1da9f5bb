"""The Fair Scheduler of Hadoop 3.4.2 in virtual time, decision for decision.

Contains the scheduler's state and the compiled kernels that change it. The clock and the applications are in
``harness.sim``, the allocation file's syntax in ``harness.yarn.fair``.

A scheduler is created with ``sched = Scheduler(conf, allocations, nodes)`` (``api.py``). Its state ``sched.S`` is a
NamedTuple of arrays (``state.py``). The kernels take the state as first argument and may be called from Python or from
other compiled code. In this package:

- ``apps.add_app(S, leaf, user, managed, am_mb, am_vcores, app_id, now)`` -> application slot, or a code < 0
- ``nodes.can_skip(S, node)``
- ``shares.update(S, now)``; ``preempt.preempt_pass(S, now)``, ``preempt.next_kill_ms(S)``,
  ``preempt.run_kills(S, now)``

In ``harness.sim.nodes``, for all schedulers:

- ``add_node(S, node, now)``, ``remove_node(S, node, now)``, ``heartbeat(S, node, now)`` -> number of containers
- ``ask(S, app, priority, alloc_id, count, mb, vcores)``, ``pull(S, app)``, ``release(S, c, now)``
- ``end_app(S, app, now)``, ``restart_app(S, app, am_mb, am_vcores, now)``

In ``harness.sim.containers``: ``container_exit(S, c)``.

A kernel that needs a larger array returns ``NEED_ROOM`` before it changes anything; Python then calls ``sched.grow()``,
which replaces ``sched.S``, and repeats the call. ``S.log[:S.g[0].n_log]`` (dtype ``LOG``) contains what has happened;
the driver empties it by setting ``S.g[0].n_log = 0``.
"""

from __future__ import annotations
