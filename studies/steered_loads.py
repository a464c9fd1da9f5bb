"""Loads by which `yarnfair assess` is held against a real Capacity Scheduler (studies.steered).

They were written down before anything was run: the four of `studies.planned_loads`, as they are before their changes,
and one that differs. Cluster, tree and percentages are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from studies.planned_loads import ADHOC, DAILY, HOURLY, LEAVES, REPORTS, Jobs, Load
from studies.planned_loads import LOADS as PLANNED

#: Two queues lend for most of a minute, and return with more work than their capacity can do at once.
RETURNS = Load(
    "development borrows what production leaves, until reports and daily jobs return in bursts",
    (
        Jobs(HOURLY, every_s=30, start_s=5, maps=6, map_s=10, reduces=2, reduce_s=5),
        Jobs(DAILY, every_s=55, start_s=50, maps=36, map_s=10),
        Jobs(REPORTS, every_s=50, start_s=60, maps=24, map_s=10, reduces=4, reduce_s=6),
        Jobs(ADHOC, every_s=12, start_s=0, maps=18, map_s=12),
    ),
    None,
)

LOADS: Mapping[str, Load] = {
    "returns": RETURNS,
    "cap": PLANNED["cap"],
    "inner": PLANNED["inner"],
    "nodes": PLANNED["nodes"],
    "top": PLANNED["top"],
}
#: What `enforce` asks an administrator to set before it writes (traps user-limit-factor and maximum-applications). It
#: changes nothing here without a controller: a user may take the whole cluster before and after.
ASKED_FOR: Mapping[str, str] = {
    "global-queue-max-application": "10000",
    **{f"{leaf}.user-limit-factor": "-1" for leaf in LEAVES},
}
#: The answers of `assess` that were expected, written down with the loads.
EXPECTED: Mapping[str, str] = {
    # Lenders return and wait for what was borrowed: the case for memory.
    "returns": "yes",
    # Ad hoc work comes first and borrows most of the cluster.
    "cap": "yes",
    # Every queue but ad hoc wants more than its due all the time: little is lent.
    "inner": "no",
    # Ad hoc work wants more than all of the cluster; production comes in bursts.
    "nodes": "yes",
    # The same with Spark, whose executors start late on a busy machine.
    "top": "unsure",
}
#: What each load is here, where its description on the page of `plan` is that of a change.
WHY: Mapping[str, str] = {
    "returns": RETURNS.why,
    "cap": "ad hoc work comes first and borrows, production comes half a minute later",
    "inner": "production wants more than it has, ad hoc work less than its due",
    "nodes": "ad hoc work wants more than the cluster, while a fourth node joins and is decommissioned gracefully",
    "top": "ad hoc work wants more than the cluster, beside Spark with dynamic allocation",
}
