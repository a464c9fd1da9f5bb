"""The scheduler's kernels for the world around it: the same names for either scheduler, told apart by the state's type.

Which one is called is settled when the caller is compiled; at run time that costs nothing. Python calls a scheduler's
own kernels: these here are for compiled code alone. Where the two differ in arguments the Fair Scheduler's hold.
"""

from __future__ import annotations

from typing import Any

from harness.sim.capacity import apps as cs_apps
from harness.sim.capacity import nodes as cs_nodes
from harness.sim.capacity import seam as cs_seam
from harness.sim.capacity.state import S as CapacityState
from harness.sim.fair import apps as fs_apps
from harness.sim.fair import nodes as fs_nodes
from harness.sim.fair import preempt as fs_preempt
from harness.sim.fair import shares as fs_shares
from harness.sim.kernel import either


def _either(fair: Any, capacity: Any) -> Any:
    return either(lambda state: capacity if state == CapacityState.compiled_type() else fair)


add_node = _either(fs_nodes.add_node, cs_nodes.add_node)
remove_node = _either(fs_nodes.remove_node, cs_nodes.remove_node)
heartbeat = _either(fs_nodes.heartbeat, cs_nodes.heartbeat)
can_skip = _either(fs_nodes.can_skip, cs_nodes.can_skip)
release = _either(fs_nodes.release, cs_nodes.release)
add_app = _either(fs_apps.add_app, cs_seam.add_app)
ask = _either(fs_apps.ask, cs_apps.ask)
end_app = _either(fs_apps.end_app, cs_apps.end_app)
restart_app = _either(fs_apps.restart_app, cs_apps.restart_app)
update = _either(fs_shares.update, cs_seam.nothing_now)
preempt_pass = _either(fs_preempt.preempt_pass, cs_seam.nothing_now)
next_kill_ms = _either(fs_preempt.next_kill_ms, cs_seam.never)
run_kills = _either(fs_preempt.run_kills, cs_seam.nothing_now)
