"""A queue tree in the Fair Scheduler's terms as settings of the Capacity Scheduler, in weight mode."""

from __future__ import annotations

from harness.model.queues import QueueTree

#: What holds nothing back that the Fair Scheduler would let pass: a lone user gets an idle cluster (Hadoop's default
#: of 1 holds a user to the queue's capacity), AMs as many as fit, applications whatever their queue's weight.
_OPEN = {
    "minimum-user-limit-percent": "100",
    "user-limit-factor": "-1",
    "maximum-am-resource-percent": "1.0",
    "global-queue-max-application": "10000",
}


def capacity_settings(tree: QueueTree) -> dict[str, str]:
    """Settings without their prefix: a weight for each queue, maxima that are in per cent, the leaves' policies.

    Minimum shares and limits of running applications have no counterpart and are left out.
    """
    settings = dict(_OPEN)
    dominant = False
    for queue in tree:
        children = [child.path.rpartition(".")[2] for child in tree.children(queue.path)]
        if children:
            settings[f"{queue.path}.queues"] = ",".join(children)
        dominant |= queue.policy == "drf"
        if queue.parent is None:
            continue
        settings[f"{queue.path}.capacity"] = f"{queue.weight!r}w"
        limit = queue.max_limit
        if limit.absolute is None:
            part = min(limit.memory_fraction, limit.vcores_fraction, 1.0)
            settings[f"{queue.path}.maximum-capacity"] = f"{100 * part!r}"
        if queue.leaf:
            settings[f"{queue.path}.ordering-policy"] = "fifo" if queue.policy == "fifo" else "fair"
    if dominant:
        settings["resource-calculator"] = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    return settings
