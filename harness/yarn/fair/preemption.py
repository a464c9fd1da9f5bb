"""Whether a Fair Scheduler kills containers of one queue for another: the switch, and the time-outs that begin it.

Facts: FairScheduler, FSLeafQueue and FSPreemptionThread of Hadoop 3.4.2.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.queues import NEVER_MS, AllocationFile, Queue
from harness.model.resources import ZERO
from harness.yarn.fair.manager import queue_tree

#: The switch, in yarn-site.xml.
ENABLE = "yarn.scheduler.fair.preemption"
#: Nothing is preempted while a smaller part of the cluster than this is in use.
UTILISATION = f"{ENABLE}.cluster-utilization-threshold"


def is_on(site: Mapping[str, str]) -> bool:
    """Whether the switch is on in the ResourceManager's own properties (``/conf``)."""
    return (site.get(ENABLE) or "").strip().lower() == "true"


def queues_that_starve(site: Mapping[str, str], file: AllocationFile) -> list[str]:
    """Return the leaves for which containers of other queues are killed, in the order of the tree.

    A leaf starves for its fair share if it has a time-out for that and a threshold above 0, and for its minimum share
    if it has that, and a time-out. Nothing is killed where no other leaf may be preempted from, or where the cluster
    would have to be more than full.

    Parameters
    ----------
    site
        The ResourceManager's own properties; without them preemption counts as off, as it is by default.
    file
        The allocation file.
    """
    if not is_on(site) or _never_full_enough(site):
        return []
    leaves = list(queue_tree(file).leaves())
    open_ = {queue.path for queue in leaves if queue.preemptable}
    return [queue.path for queue in leaves if _can_starve(queue) and open_ - {queue.path}]


def _can_starve(queue: Queue) -> bool:
    fair = 0 <= queue.fair_share_preemption_timeout_ms < NEVER_MS and queue.fair_share_preemption_threshold > 0
    least = 0 <= queue.min_share_preemption_timeout_ms < NEVER_MS and queue.min_share != ZERO
    return fair or least


def _never_full_enough(site: Mapping[str, str]) -> bool:
    try:
        # FairScheduler.shouldAttemptPreemption: more than this part is in use.
        return float(site.get(UTILISATION, "0.8")) >= 1.0
    except ValueError:
        return False
