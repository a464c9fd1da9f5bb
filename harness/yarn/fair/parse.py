"""Allocation files read as Hadoop 3.4.2 reads them: what it takes is taken, with the same result, the rest refused.

Silent mistakes (an unknown element, a dropped percentage) pass here, as they pass there: `validate` is the one that
complains. The facts are those of AllocationFileParser, AllocationFileQueueParser, AllocationFileLoaderService and
QueuePlacementPolicy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from harness.base.errors import InputError
from harness.base.files import read_whole, reading
from harness.model.queues import (
    NEVER_MS,
    NO_APP_LIMIT,
    ROOT,
    UNLIMITED,
    AllocationFile,
    PlacementRule,
    QueuePolicy,
    QueueSettings,
    ResourceLimit,
)
from harness.yarn.fair.dom import Element, Text, parse_xml
from harness.yarn.fair.javanum import (
    float32,
    parse_double,
    parse_float,
    parse_int,
    parse_long,
    trim,
    wrap_long,
)
from harness.yarn.fair.resources import parse_resources

T = TypeVar("T")

#: What may stand directly inside ``<allocations>``; anything else is ignored with a warning in the RM's log.
TOP_ELEMENTS = frozenset(
    {
        "queueMaxResourcesDefault",
        "userMaxAppsDefault",
        "defaultFairSharePreemptionTimeout",
        "fairSharePreemptionTimeout",
        "defaultMinSharePreemptionTimeout",
        "queueMaxAppsDefault",
        "defaultFairSharePreemptionThreshold",
        "queueMaxAMShareDefault",
        "reservation-planner",
        "reservation-agent",
        "reservation-policy",
        "queuePlacementPolicy",
        "queue",
        "pool",
        "user",
        "defaultQueueSchedulingPolicy",
        "defaultQueueSchedulingMode",
    }
)
ACL_ELEMENTS = (
    "aclSubmitApps",
    "aclAdministerApps",
    "aclAdministerReservations",
    "aclListReservations",
    "aclSubmitReservations",
)
#: Resources that a queue may have -> the fields of its settings.
LIMITS = {
    "minResources": "min_resources",
    "maxResources": "max_resources",
    "maxChildResources": "max_child_resources",
    "maxContainerAllocation": "max_container_allocation",
}
_POLICY_CLASSES = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.policies."
_POLICIES: dict[str, QueuePolicy] = {
    _POLICY_CLASSES + "FairSharePolicy": "fair",
    _POLICY_CLASSES + "DominantResourceFairnessPolicy": "drf",
    _POLICY_CLASSES + "FifoPolicy": "fifo",
}
#: Whether a placement rule always ends the search: yes, no, or when it may create a queue.
PLACEMENT_RULES = {
    "user": "create",
    "primaryGroup": "create",
    "secondaryGroupExistingQueue": "no",
    "specified": "no",
    "nestedUserQueue": "create",
    "default": "create",
    "reject": "yes",
}
#: The white space that Hadoop trims from queue names (FairSchedulerUtilities.trimQueueName).
_NAME_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)


def read_allocations(path: str | Path, *, conf: Mapping[str, Any] | None = None) -> AllocationFile:
    """The allocation file at a path; InputError if it cannot be read, or if Hadoop would refuse it."""
    return parse_allocations(read_bytes(path), source=str(path), conf=conf)


def read_bytes(path: str | Path) -> bytes:
    """A file's bytes; InputError with a reason in words if it cannot be read."""
    with reading(path, "give the path of a readable file"):
        return read_whole(path)


def parse_allocations(
    xml: str | bytes, *, conf: Mapping[str, Any] | None = None, source: str = "allocation file"
) -> AllocationFile:
    """The settings that Hadoop takes from an allocation file.

    Parameters
    ----------
    xml : the document.
    conf : properties of yarn-site.xml; only ``yarn.resource-types`` matters (names of further resource types).
    source : what to call the document in messages.

    Raises InputError, with line and queue, for what Hadoop refuses (it stops the RM at its start; later the RM
    keeps the old settings).
    """
    return read_document(parse_xml(xml, source=source), conf=conf, source=source)


def read_document(root: Element, *, conf: Mapping[str, Any] | None = None, source: str) -> AllocationFile:
    """`parse_allocations` of a document that is parsed already."""
    types = tuple(part.strip() for part in str((conf or {}).get("yarn.resource-types", "")).split(",") if part.strip())
    return _Reader(source, types).read(root)


@dataclass(slots=True)
class _QueueInFile:
    """The settings of a queue while they are collected; a queue written twice adds to the same."""

    values: dict[str, Any] = field(default_factory=dict)
    acls: dict[str, str] = field(default_factory=dict)


class _Reader:
    def __init__(self, source: str, extra_types: Collection[str]) -> None:
        self.source = source
        self.extra_types = extra_types
        self.queues: dict[str, _QueueInFile] = {}
        # dicts, for their order: a name counts once.
        self.leaves: dict[str, None] = {}
        self.parents: dict[str, None] = {}

    def fail(self, element: Element, what: str, mend: str, queue: str | None = None) -> NoReturn:
        where = f"{self.source}:{element.line}" + (f": queue {queue}" if queue else "")
        raise InputError(what, where=where, mend=mend)

    def raw_text(self, element: Element, queue: str | None = None) -> str:
        """Hadoop takes the first child only, and it must be text."""
        first = element.children[0] if element.children else None
        if not isinstance(first, Text):
            self.fail(
                element,
                f"<{element.tag}> has no text (the ResourceManager fails on it)",
                f"write a value into <{element.tag}>, or remove it",
                queue,
            )
        return first.data

    def value(self, element: Element, parse: Callable[[str], T], kind: str, queue: str | None = None) -> T:
        text = trim(self.raw_text(element, queue))
        try:
            return parse(text)
        except ValueError as error:
            self.fail(element, f"<{element.tag}>: {error}", f"write {kind}", queue)

    # ---- the top level

    def read(self, root: Element) -> AllocationFile:
        if root.tag != "allocations":
            self.fail(root, f"the top element is <{root.tag}>", "an allocation file's top element is <allocations>")
        texts: dict[str, Element] = {}
        queue_elements: list[Element] = []
        placement: Element | None = None
        user_max_apps: dict[str, int] = {}
        default_policy: QueuePolicy = "fair"
        for element in root.elements():
            tag = element.tag
            if tag not in TOP_ELEMENTS:
                continue
            if tag == "queuePlacementPolicy":
                placement = element
            elif tag in ("defaultQueueSchedulingPolicy", "defaultQueueSchedulingMode"):
                if trim(self.raw_text(element)).lower() == "fifo":
                    self.fail(element, f"<{tag}> cannot be fifo", "give fifo to single leaf queues")
                default_policy = self.value(element, parse_policy, "fair or drf")
            elif tag in ("queue", "pool"):
                queue_elements.append(element)
            elif tag == "user":
                for limit in element.elements():
                    if limit.tag == "maxRunningApps":
                        user_max_apps[element.name()] = self.value(limit, parse_int, "an integer")
            else:
                self.raw_text(element)
                texts[tag] = element
        self.read_queues(queue_elements)
        rules = None if placement is None else self.placement(placement)

        def default(tag: str, parse: Callable[[str], T], kind: str, otherwise: T) -> T:
            return self.value(texts[tag], parse, kind) if tag in texts else otherwise

        # Defaults that only root would take are not even read when root says the same itself.
        root_values = self.queues.setdefault(ROOT, _QueueInFile()).values
        fair = "defaultFairSharePreemptionTimeout"
        defaults: tuple[tuple[str, str, Any], ...] = (
            ("minSharePreemptionTimeout", "defaultMinSharePreemptionTimeout", NEVER_MS),
            ("fairSharePreemptionTimeout", fair if fair in texts else "fairSharePreemptionTimeout", NEVER_MS),
            ("fairSharePreemptionThreshold", "defaultFairSharePreemptionThreshold", 0.5),
        )
        for of_root, tag, otherwise in defaults:
            name, parse, kind = PLAIN[of_root]
            if root_values.get(name) is None:
                root_values[name] = default(tag, parse, kind, otherwise)

        def text_of(tag: str) -> str | None:
            return trim(self.raw_text(texts[tag])) if tag in texts else None

        return AllocationFile(
            settings={
                name: QueueSettings(name, acls=dict(queue.acls), **queue.values) for name, queue in self.queues.items()
            },
            configured_leaves=tuple(self.leaves),
            configured_parents=tuple(self.parents),
            user_max_apps=user_max_apps,
            user_max_apps_default=default("userMaxAppsDefault", parse_int, "an integer", NO_APP_LIMIT),
            queue_max_apps_default=default("queueMaxAppsDefault", parse_int, "an integer", NO_APP_LIMIT),
            queue_max_resources_default=default("queueMaxResourcesDefault", self.resources, "a resource", UNLIMITED),
            queue_max_am_share_default=default("queueMaxAMShareDefault", _am_share, "a number up to 1", 0.5),
            default_min_share_preemption_timeout_ms=root_values["min_share_preemption_timeout_ms"],
            default_fair_share_preemption_timeout_ms=root_values["fair_share_preemption_timeout_ms"],
            default_fair_share_preemption_threshold=root_values["fair_share_preemption_threshold"],
            default_scheduling_policy=default_policy,
            placement_rules=rules,
            reservation_planner=text_of("reservation-planner"),
            reservation_agent=text_of("reservation-agent"),
            reservation_policy=text_of("reservation-policy"),
        )

    def resources(self, text: str) -> ResourceLimit:
        return parse_resources(text, extra_types=self.extra_types)

    # ---- queues

    def read_queues(self, elements: list[Element]) -> None:
        for element in elements:
            parent: str | None = ROOT
            if element.name().lower() == ROOT:
                if len(elements) > 1:
                    self.fail(element, "other queues stand beside the root queue", "put every other queue inside root")
                parent = None
            self.read_queue(parent, element)

    def read_queue(self, parent: str | None, element: Element) -> None:
        name = trim_queue_name(element.name())
        if "." in name:
            self.fail(element, f"queue name {name!r} contains a dot", "nest the queue inside its parent's element")
        if not name:
            self.fail(element, "a queue has no name", 'write <queue name="...">')
        path = f"{parent}.{name}" if parent is not None else name
        queue = self.queues.setdefault(path, _QueueInFile())
        leaf, reservable, am_share = True, False, False
        for item in element.elements():
            tag = item.tag
            # Hadoop asks whether "queue" ends with the tag, so <ueue> is a queue too.
            if tag not in QUEUE_ELEMENTS and "queue".endswith(tag):
                tag = "queue"
            if tag in ("queue", "pool"):
                self.read_queue(path, item)
                leaf = False
            elif tag == "reservation":
                reservable = True
                queue.values["reservable"] = True
                self.parents[path] = None
            elif tag in QUEUE_ELEMENTS:
                am_share |= tag == "maxAMShare"
                self.read_attribute(item, path, queue)
        if leaf and element.attributes.get("type") != "parent":
            if not reservable:
                self.leaves[path] = None
            return
        for wrong, written in (("reservation", reservable), ("maxAMShare", am_share)):
            if written:
                self.fail(
                    element,
                    f"a parent queue cannot have <{wrong}>",
                    f"remove <{wrong}>, or give it to the leaves",
                    path,
                )
        self.parents[path] = None

    def read_attribute(self, item: Element, path: str, queue: _QueueInFile) -> None:
        values = queue.values
        match item.tag:
            case "minResources":
                minimum = self.value(
                    item,
                    lambda text: parse_resources(text, missing=0, extra_types=self.extra_types),
                    "a resource",
                    path,
                )
                values["min_resources"] = minimum.absolute
                values["minimum_dropped"] = minimum.absolute is None
            case "maxResources" | "maxChildResources":
                values[LIMITS[item.tag]] = self.value(item, self.resources, "a resource", path)
            case "maxContainerAllocation":
                maximum = self.value(item, self.resources, "a resource", path)
                values["max_container_allocation"] = maximum.absolute
                values["container_maximum_dropped"] = maximum.absolute is None
            case tag if tag in PLAIN:
                name, parse, kind = PLAIN[tag]
                values[name] = self.value(item, parse, kind, path)
            case "allowPreemptionFrom":
                if trim(self.raw_text(item, path)).lower() != "true":
                    values["preemptable"] = False
            case _:
                queue.acls[item.tag] = self.raw_text(item, path)

    # ---- placement rules

    def placement(self, element: Element) -> tuple[PlacementRule, ...]:
        if not element.children:
            self.fail(element, "<queuePlacementPolicy> is empty", "write its rules, or remove it")
        rules: list[PlacementRule] = []
        ends: list[bool] = []
        for item in element.elements():
            if item.tag.lower() != "rule":
                continue
            rule = self.placement_rule(item)
            parents = [inner for inner in item.elements() if inner.tag.lower() == "rule"]
            parent: PlacementRule | None = None
            if parents:
                if parents[-1].name() in ("reject", "nestedUserQueue"):
                    self.fail(item, f"rule {parents[-1].name()!r} cannot be a parent rule", "use another rule there")
                parent = self.placement_rule(parents[-1])
                if _rule_class(parent.name) == _rule_class(rule.name):
                    self.fail(item, "a rule and its parent rule are the same", "use another parent rule")
                if rule.name in ("default", "reject", "specified"):
                    self.fail(item, f"rule {rule.name!r} takes no parent rule", "remove the inner rule")
            elif rule.name == "nestedUserQueue":
                self.fail(item, "rule 'nestedUserQueue' needs a parent rule", "write a rule inside it")
            rules.append(dataclasses.replace(rule, parent=parent))
            ends.append(_ends(rule) and (parent is None or _ends(parent)))
        if not rules:
            return ()
        if True in ends[:-1]:
            number = ends.index(True) + 1
            self.fail(element, f"the rules after rule {number} can never be reached", "remove them or move them up")
        if not ends[-1]:
            self.fail(element, "the last rule can leave an application without a queue", "end with default or reject")
        return tuple(rules)

    def placement_rule(self, element: Element) -> PlacementRule:
        name = element.name()
        if name not in PLACEMENT_RULES:
            self.fail(
                element, f"no placement rule is called {name!r}", f"use one of {', '.join(sorted(PLACEMENT_RULES))}"
            )
        create = element.attributes.get("create", "")
        return PlacementRule(name, not create or create.lower() == "true", element.attributes.get("queue"))


def _rule_class(name: str) -> str:
    return "user" if name == "nestedUserQueue" else name


def _ends(rule: PlacementRule) -> bool:
    kind = PLACEMENT_RULES[rule.name]
    return rule.create if kind == "create" else kind == "yes"


def trim_queue_name(name: str) -> str:
    """A queue name without the white space at its ends that Hadoop trims (a name of nothing else becomes empty)."""
    return name.strip(_NAME_SPACE)


def parse_policy(text: str) -> QueuePolicy:
    """A scheduling policy by its short name in any case, or by one of Hadoop's three class names; else ValueError."""
    lower = text.lower()
    if lower in ("fair", "drf", "fifo"):
        return lower  # type: ignore[return-value]
    if text in _POLICIES:
        return _POLICIES[text]
    raise ValueError(f"no scheduling policy is called {text!r}")


def _seconds(text: str) -> int:
    """Seconds to milliseconds, in Java's wrapping arithmetic."""
    return wrap_long(parse_long(text) * 1000)


def _threshold(text: str) -> float:
    value = parse_float(text)
    return value if value != value else max(min(value, 1.0), 0.0)


def _am_share(text: str) -> float:
    value = parse_float(text)
    return value if value != value else min(value, 1.0)


#: A queue's elements that say one thing -> the field of its settings, how the text is read, what it should be.
PLAIN: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "weight": ("weight", lambda text: float32(parse_double(text)), "a number"),
    "maxRunningApps": ("max_running_apps", parse_int, "an integer"),
    "maxAMShare": ("max_am_share", _am_share, "a number up to 1"),
    "minSharePreemptionTimeout": ("min_share_preemption_timeout_ms", _seconds, "whole seconds"),
    "fairSharePreemptionTimeout": ("fair_share_preemption_timeout_ms", _seconds, "whole seconds"),
    "fairSharePreemptionThreshold": ("fair_share_preemption_threshold", _threshold, "a number from 0 to 1"),
    "schedulingPolicy": ("scheduling_policy", parse_policy, "fair, drf or fifo"),
    "schedulingMode": ("scheduling_policy", parse_policy, "fair, drf or fifo"),
}
#: What may stand inside a queue; anything else is ignored without a word.
QUEUE_ELEMENTS = frozenset({*PLAIN, *LIMITS, "reservation", "allowPreemptionFrom", "queue", "pool", *ACL_ELEMENTS})

__all__ = [
    "parse_allocations",
    "parse_policy",
    "read_allocations",
    "trim_queue_name",
]
