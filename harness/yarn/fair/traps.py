"""Find settings of an allocation file that the Fair Scheduler accepts but that are probably mistakes.

Such settings cause applications to be rejected or to wait, or have no effect. Follows Hadoop 3.4.2 (FSParentQueue,
FSLeafQueue, QueuePlacementPolicy, AllocationConfiguration).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from harness.model.queues import (
    JAVA_INT_MAX,
    NEVER_MS,
    ROOT,
    AllocationFile,
    Queue,
    QueueSettings,
    QueueTree,
    ResourceLimit,
    ensure_root_prefix,
)
from harness.yarn.fair.acls import read_access_list
from harness.yarn.fair.dom import Element
from harness.yarn.fair.elements import plain_name
from harness.yarn.fair.values import Spot
from harness.yarn.findings import Verdict

#: Memory of a usual ApplicationMaster: MapReduce's default, 1.5 GB. MiB.
USUAL_MASTER_MB = 1536
_MANY = {"memory": "much memory", "vcores": "many vcores"}
#: Access lists that are inherited from the queues above.
_INHERITED_LISTS = ("aclSubmitApps", "aclAdministerApps")


class _Places(Protocol):
    """The check of a file, which receives the findings."""

    places: dict[str, Element]
    verdict: Verdict

    def at(self, element: Element, queue: str | None = None) -> Spot:
        """Return the location of a finding: an element, and the queue to which it belongs (None: to none)."""
        ...


def find_traps(check: _Places, root: Element, file: AllocationFile, tree: QueueTree) -> None:
    """Report the traps of a file that the RM loads."""
    found = _Traps(check, root, file, tree)
    for look in (
        found.zero_maxima,
        found.access_lists,
        found.placement,
        found.preemption,
        found.minima,
        found.unreachable,
        found.masters,
    ):
        look()


class _Traps:
    def __init__(self, check: _Places, root: Element, file: AllocationFile, tree: QueueTree) -> None:
        self.check, self.root, self.file, self.tree = check, root, file, tree
        #: Queues whose resources Hadoop misreads; consequences of that are not reported again.
        self.misread = {found.queue for found in check.verdict.findings if found.code in ("YF511", "YF515")}

    def spot(self, path: str, tag: str) -> Spot:
        """Return the element of a queue with a setting; the queue's own element if the setting is a default."""
        place = self.check.places.get(path)
        if place is None:
            return self.check.at(self.root, path)
        inside = [item for item in place.elements() if plain_name(item.tag) == tag]
        return self.check.at(inside[-1] if inside else place, path)

    def top(self, tag: str) -> Element | None:
        """Return the last element of this name directly inside <allocations>."""
        return next((item for item in reversed(list(self.root.elements())) if item.tag == tag), None)

    def configured(self) -> Iterator[tuple[Queue, QueueSettings]]:
        """Return the queues of the file, each with its settings there."""
        for queue in self.tree:
            said = self.file.settings.get(queue.path)
            if said is not None and queue.path in self.check.places:
                yield queue, said

    # ---- limits

    def zero_maxima(self) -> None:
        for tag, of in (
            ("maxResources", lambda said: said.max_resources),
            ("maxChildResources", lambda said: said.max_child_resources),
        ):
            self._zero_of_queues(tag, of)
        for queue, said in self.configured():
            largest = said.max_container_allocation
            if largest is not None and (
                none := "memory" if not largest.memory_mb else "" if largest.vcores else "vcores"
            ):
                self.spot(queue.path, "maxContainerAllocation").report(
                    "YF601",
                    f"<maxContainerAllocation> allows no {none}: every application is rejected",
                    f"write how {_MANY[none]} a container may have",
                )
        default = self.top("queueMaxResourcesDefault")
        if default is not None and (none := _nothing(self.file.queue_max_resources_default)):
            self.check.at(default).report(
                "YF601",
                f"queueMaxResourcesDefault allows no {none}: every application of a queue without a maximum of its own "
                "is rejected",
                f"write how {_MANY[none]} a queue may use, or remove it",
            )

    def _zero_of_queues(self, tag: str, of: Callable[[QueueSettings], ResourceLimit | None]) -> None:
        for queue, said in self.configured():
            limit = of(said)
            if limit is not None and (none := _nothing(limit)):
                self.spot(queue.path, tag).report(
                    "YF601",
                    f"<{tag}> allows no {none}: every application is rejected, or waits for ever",
                    f"write how {_MANY[none]} the queue may use",
                )

    def minima(self) -> None:
        below: dict[str, list[Queue]] = {}
        for queue in self.tree:
            if queue.parent is not None:
                below.setdefault(queue.parent, []).append(queue)
        for queue, said in self.configured():
            above = said.max_resources.absolute if said.max_resources is not None else None
            children = below.get(queue.path, [])
            if above is None or above.vcores < 0 or not children:
                continue
            if self.misread & {queue.path, *(child.path for child in children)}:
                continue
            memory = sum(child.min_share.memory_mb for child in children)
            vcores = sum(child.min_share.vcores for child in children)
            if memory > above.memory_mb or vcores > above.vcores:
                owner = next(child for child in children if child.min_share.memory_mb or child.min_share.vcores)
                self.spot(owner.path, "minResources").report(
                    "YF609",
                    f"the minima below {queue.path} sum to {memory} mb, {vcores} vcores, above its maximum "
                    f"({above.memory_mb} mb, {above.vcores} vcores)",
                    f"lower them, or raise <maxResources> of {queue.path}",
                )

    def unreachable(self) -> None:
        for queue, said in self.configured():
            above = self.file.settings.get(queue.parent) if queue.parent else None
            if above is None or self.misread & {queue.path, queue.parent}:
                continue
            if said.max_resources is not None and above.max_resources is not None:
                name = _larger(said.max_resources, above.max_resources)
                if name and not _nothing(above.max_resources):
                    self.spot(queue.path, "maxResources").report(
                        "YF610",
                        f"<maxResources> allows more {name} than that of {queue.parent} does",
                        f"lower it, or raise that of {queue.parent}",
                    )
            if (
                said.max_running_apps is not None
                and above.max_running_apps is not None
                and JAVA_INT_MAX > said.max_running_apps > above.max_running_apps
            ):
                self.spot(queue.path, "maxRunningApps").report(
                    "YF610",
                    f"<maxRunningApps> {said.max_running_apps} is above the {above.max_running_apps} of {queue.parent}",
                    f"lower it, or raise that of {queue.parent}",
                )

    def masters(self) -> None:
        for queue in self.tree.leaves():
            most = queue.max_limit.absolute
            share = queue.max_am_share
            if most is None or queue.path not in self.check.places or not 0 < share <= 1 or _nothing(queue.max_limit):
                continue
            if queue.path in self.misread:
                continue
            if most.memory_mb * share < USUAL_MASTER_MB:
                said = self.file.settings.get(queue.path)
                tag = "maxAMShare" if said is not None and said.max_am_share is not None else "maxResources"
                self.spot(queue.path, tag).report(
                    "YF612",
                    f"an AM share of {share:g} of {most.memory_mb} mb is less than a usual ApplicationMaster "
                    f"({USUAL_MASTER_MB} mb): it never starts",
                    "write <maxAMShare>-1.0</maxAMShare>, or raise <maxResources>",
                )

    # ---- access

    def access_lists(self) -> None:
        for kind in _INHERITED_LISTS:
            without: dict[str, list[str]] = {}
            for queue, said in self.configured():
                if queue.path != ROOT and kind in said.acls and not _open(said.acls[kind]):
                    opened = self._open_above(queue, kind)
                    if opened is not None:
                        without.setdefault(opened, []).append(queue.path)
            for opened, paths in without.items():
                others = f", and those of {len(paths) - 1} more queues" if len(paths) > 1 else ""
                hint = f"give {opened} an <{kind}> of those who may use every queue; one space: nobody"
                self.spot(paths[0], kind).report(
                    "YF602", f"<{kind}> has no effect{others}: {opened} is open to everybody", hint
                )

    def _open_above(self, queue: Queue, kind: str) -> str | None:
        """Return the nearest ancestor whose access list admits everybody; None if there is none."""
        path = queue.parent
        while path is not None:
            said = self.file.settings.get(path)
            text = said.acls.get(kind) if said is not None else None
            if (text is None and path == ROOT) or (text is not None and _open(text)):
                return path
            path = self.tree[path].parent
        return None

    # ---- placement

    def placement(self) -> None:
        policy = self.top("queuePlacementPolicy")
        for item in policy.elements() if policy is not None else ():
            if item.tag.lower() != "rule":
                continue
            if item.name() == "default":
                self._default_rule(item)
            for inner in item.elements():
                if inner.tag.lower() == "rule" and inner.name() == "default":
                    self._parent_rule(inner)

    def _target(self, rule: Element) -> str:
        return ensure_root_prefix(rule.attributes.get("queue") or "default")

    def _default_rule(self, rule: Element) -> None:
        path = self._target(rule)
        if path in self.tree and not self.tree[path].leaf:
            leaves = [queue.path for queue in self.tree.leaves() if queue.path.startswith(path + ".")]
            self.check.at(rule).report(
                "YF604",
                f"the default rule names {path}, which is a parent: applications that it places are rejected",
                f'write queue="{leaves[0]}"' if len(leaves) == 1 else "name a leaf",
            )
        elif path not in self.tree and rule.attributes.get("create", "true").lower() != "true":
            self.check.at(rule).report(
                "YF605",
                f"there is no queue {path}, and the default rule may not make it: it places nothing",
                f"add {path}, or remove create",
            )

    def _parent_rule(self, rule: Element) -> None:
        path = self._target(rule)
        if path in self.tree and self.tree[path].leaf:
            self.check.at(rule).report(
                "YF604",
                f"the rule puts queues below {path}, which is a leaf: it places nothing",
                f'write type="parent" for the queue {path.rpartition(".")[2]}',
            )

    # ---- preemption

    def preemption(self) -> None:
        queues = list(self.tree)
        never = all(not 0 <= queue.fair_share_preemption_timeout_ms < NEVER_MS for queue in queues)
        default = self.top("defaultFairSharePreemptionThreshold")
        what = "a threshold without a time-out: preemption for the fair share never begins"
        if default is not None and never:
            self.check.at(default).report("YF606", what, "write <defaultFairSharePreemptionTimeout> in seconds")
        else:
            for queue, said in self.configured():
                timeout = queue.fair_share_preemption_timeout_ms
                spot = self.spot(queue.path, "fairSharePreemptionThreshold")
                written = spot.element.tag == "fairSharePreemptionThreshold"
                if written and said.fair_share_preemption_threshold is not None and not 0 <= timeout < NEVER_MS:
                    spot.report("YF606", what, "write <fairSharePreemptionTimeout> in seconds")
        wanted = any(
            0 <= timeout < NEVER_MS
            for queue in queues
            for timeout in (queue.fair_share_preemption_timeout_ms, queue.min_share_preemption_timeout_ms)
        )
        leaves = [queue for queue in self.tree.leaves() if queue.path in self.check.places]
        if wanted and len(leaves) > 1 and not any(queue.preemptable for queue in leaves):
            self.spot(self._first_protected(leaves), "allowPreemptionFrom").report(
                "YF607",
                "no queue may be preempted: the time-outs of this file have no effect",
                "write <allowPreemptionFrom>true</allowPreemptionFrom> for queues that may lend",
            )

    def _first_protected(self, leaves: list[Queue]) -> str:
        """Return the queue whose setting protects the first leaf: the leaf itself, or an ancestor."""
        path: str | None = leaves[0].path
        settings: Mapping[str, QueueSettings] = self.file.settings
        while path is not None:
            if path in settings and not settings[path].preemptable:
                return path
            path = self.tree[path].parent
        return leaves[0].path


def _open(acl: str) -> bool:
    return read_access_list(acl).everybody


def _nothing(limit: ResourceLimit) -> str:
    """Return the resource whose limit is 0; "" if there is none."""
    if limit.absolute is None:
        return "memory" if limit.memory_fraction == 0 else "vcores" if limit.vcores_fraction == 0 else ""
    return "memory" if limit.absolute.memory_mb == 0 else "vcores" if limit.absolute.vcores == 0 else ""


def _larger(own: ResourceLimit, above: ResourceLimit) -> str:
    """Return the resource of which a limit allows more than its parent's limit, if both have the same notation.

    "" if there is no such resource.
    """
    if own.absolute is None or above.absolute is None:
        if own.absolute is not None or above.absolute is not None:
            return ""
        if own.memory_fraction > above.memory_fraction:
            return "memory"
        return "vcores" if own.vcores_fraction > above.vcores_fraction else ""
    if above.absolute.vcores < 0:
        return ""
    if own.absolute.memory_mb > above.absolute.memory_mb:
        return "memory"
    return "vcores" if own.absolute.vcores > above.absolute.vcores else ""
