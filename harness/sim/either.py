"""The scheduler's kernels for the world around it: the same names for either scheduler, told apart by the state's type.

Which one is called is settled when the caller is compiled; at run time that costs nothing. Python calls a scheduler's
own kernels: these here are for compiled code alone. Where the two differ in arguments the Fair Scheduler's hold.
"""

from __future__ import annotations

from harness.sim.capacity import nodes as cs_nodes
from harness.sim.capacity import seam as cs_seam
from harness.sim.fair import apps as fs_apps
from harness.sim.fair import nodes as fs_nodes
from harness.sim.fair import preempt as fs_preempt
from harness.sim.fair import shares as fs_shares
from harness.sim.which import of_scheduler

can_skip = of_scheduler(fs_nodes.can_skip, cs_nodes.can_skip)
add_app = of_scheduler(fs_apps.add_app, cs_seam.add_app)
update = of_scheduler(fs_shares.update, cs_seam.nothing_now)
is_settled = of_scheduler(fs_shares.is_settled, cs_seam.always)
preempt_pass = of_scheduler(fs_preempt.preempt_pass, cs_seam.nothing_now)
next_kill_ms = of_scheduler(fs_preempt.next_kill_ms, cs_seam.never)
run_kills = of_scheduler(fs_preempt.run_kills, cs_seam.nothing_now)
