"""Determine whether a Fair Scheduler preempts containers of one queue for another, from its switch and its timeouts.

Follows FairScheduler, FSLeafQueue and FSPreemptionThread of Hadoop 3.4.2.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.queues import NEVER_MS, ROOT, AllocationFile, PlacementRule, Queue, ensure_root_prefix
from harness.model.resources import ZERO
from harness.yarn.fair.javanum import parse_boolean
from harness.yarn.fair.manager import queue_tree

#: The switch, in yarn-site.xml.
ENABLE = "yarn.scheduler.fair.preemption"
#: Nothing is preempted while less than this fraction of the cluster is in use.
UTILISATION = f"{ENABLE}.cluster-utilization-threshold"
#: Whether applications may create queues if the file has no placement rules.
UNDECLARED = "yarn.scheduler.fair.allow-undeclared-pools"
_DEFAULT = f"{ROOT}.default"


def is_on(site: Mapping[str, str]) -> bool:
    """Return whether the switch is on in the ResourceManager's own properties (``/conf``)."""
    return parse_boolean((site.get(ENABLE) or "").strip(), default=False)


def queues_that_starve(site: Mapping[str, str] | None, file: AllocationFile) -> list[str]:
    """Return the leaves for which containers of other queues are killed, in the order of the tree.

    A leaf can starve for its fair share if it has the fair share timeout and a threshold above 0, and for its minimum
    share if it has a minimum share and the minimum share timeout. Nothing is killed if no other leaf allows preemption,
    or if the utilisation threshold is 1 or more. Queues that applications create below a parent inherit the parent's
    timeouts; they are reported as ``PARENT.*``.

    Parameters
    ----------
    site
        The ResourceManager's own properties (None: it does not show them, so that preemption may be on).
    file
        The allocation file.
    """
    if site is not None and (not is_on(site) or _never_full_enough(site)):
        return []
    queues = list(queue_tree(file))
    grow = {queue.path for queue in queues if not queue.leaf and _may_create(site or {}, file)}
    # Several queues created below a parent may be preempted for each other.
    open_ = {queue.path for queue in queues if queue.preemptable and (queue.leaf or queue.path in grow)}
    found = []
    for queue in queues:
        if queue.leaf and _can_starve(queue) and open_ - {queue.path}:
            found.append(queue.path)
        # A created queue has no minimum share.
        elif queue.path in grow and _can_starve(queue, least=False) and open_:
            found.append(f"{queue.path}.*")
    return found


def _may_create(site: Mapping[str, str], file: AllocationFile) -> bool:
    """Return whether an application may create a queue that the file does not name (QueuePlacementPolicy)."""
    if file.placement_rules is None:
        # Without rules in the file, an application goes to the queue that it names, or else to its user's queue. If
        # these may not be created, it goes to root.default, which is created if the file lacks it.
        undeclared = parse_boolean((site.get(UNDECLARED) or "").strip(), default=True)
        return undeclared or not file.configured(_DEFAULT)
    return any(_creates(rule, file) for rule in file.placement_rules)


def _creates(rule: PlacementRule, file: AllocationFile) -> bool:
    if rule.name == "reject" or not rule.create:
        return rule.parent is not None and _creates(rule.parent, file)
    # The rule `default` names a single queue.
    named = ensure_root_prefix(rule.queue or _DEFAULT) if rule.name == "default" else None
    return named is None or not file.configured(named)


def _can_starve(queue: Queue, *, least: bool = True) -> bool:
    fair = 0 <= queue.fair_share_preemption_timeout_ms < NEVER_MS and queue.fair_share_preemption_threshold > 0
    minimum = 0 <= queue.min_share_preemption_timeout_ms < NEVER_MS and queue.min_share != ZERO
    return fair or (least and minimum)


def _never_full_enough(site: Mapping[str, str]) -> bool:
    try:
        # FairScheduler.shouldAttemptPreemption requires that more than this fraction is in use.
        return float(site.get(UTILISATION, "0.8")) >= 1.0
    except ValueError:
        return False
