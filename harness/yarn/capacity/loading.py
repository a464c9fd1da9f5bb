"""Everything that Hadoop's Capacity Scheduler refuses in its configuration, at its start and at a refresh.

The order and the arithmetic follow ``CapacityScheduler.initScheduler``, ``CapacitySchedulerQueueManager``,
``AbstractCSQueue.setupQueueConfigs`` and what they call, in 3.4.2 and 3.5.0. Hadoop stops at the first exception; this
module collects all that are not consequences of others. tests/oracle/test_capacity_loading.py compares both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from harness.base.errors import nearest
from harness.model.queues import ROOT
from harness.yarn.capacity import mapping
from harness.yarn.capacity.amounts import (
    MEMORY,
    UNITS,
    VCORES,
    Amounts,
    compare,
    convert,
    is_absolute,
    is_vector,
    parse_absolute,
    vector_kinds,
    vector_parts,
    vector_weight,
)
from harness.yarn.capacity.monitors import MonitorCheck
from harness.yarn.capacity.queues import MOST_WEIGHT, SUM_PRECISION
from harness.yarn.capacity.settings import Settings, Unknown
from harness.yarn.fair.javanum import float32, hash_set_order, parse_float, parse_int, split, trim
from harness.yarn.fair.resources import custom_types

#: Hadoop's own calculators.
CALCULATORS = {
    "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator": False,
    "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator": True,
}
_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler."
LEAF_POLICIES = ("fifo", "fair", "fifo-with-partitions", "fifo-for-pending-apps")
PARENT_POLICIES = ("utilization", "priority-utilization")
_LEAF_POLICY_CLASSES = frozenset(
    _SCHEDULER + "policy." + name
    for name in (
        "FifoOrderingPolicy",
        "FairOrderingPolicy",
        "FifoOrderingPolicyForPendingApps",
        "FifoOrderingPolicyWithExclusivePartitions",
    )
)
_LOOKUP_POLICY = _SCHEDULER + "placement.ResourceUsageMultiNodeLookupPolicy"
_MANAGEMENT_POLICY = _SCHEDULER + "capacity.queuemanagement.GuaranteedOrZeroCapacityOverTimePolicy"
_HADOOP = "org.apache.hadoop."
_PLACEMENT_RULES = "yarn.scheduler.queue-placement-rules"
_APP_NAMES = _PLACEMENT_RULES + ".app-name"
_LABELS = "accessible-node-labels"
_PRIORITY_KEYS = ("user", "group", "max_priority", "default_priority")
_MAX_ALLOCATION = {MEMORY: ("yarn.scheduler.maximum-allocation-mb", 8192), VCORES: (None, 0)}
#: Maximum depth of the queue tree, a guard against files made to exhaust the parser.
_MOST_DEPTH = 200

When = Literal["start", "refresh"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why the RM does not start, or does not refresh.

    ``key``: the property at fault, without the scheduler's prefix. ``queue``: the queue that it concerns, if any.
    """

    code: str
    key: str
    queue: str | None
    what: str
    hint: str
    when: When = "start"


@dataclass(slots=True)
class Node:
    """A queue of the configuration, with the data that checks of its children and of other parts need."""

    path: str
    parent: Node | None
    kind: mapping.QueueKind | Literal["plan"]
    children: list[Node] = field(default_factory=list)
    accessible: frozenset[str] = frozenset()
    default_label: str | None = None
    #: Labels with settings of their own; "" is the default partition.
    labels: frozenset[str] = frozenset()
    percent: dict[str, float] = field(default_factory=dict)
    weight: dict[str, float] = field(default_factory=dict)
    minimum: dict[str, Amounts] = field(default_factory=dict)
    maximum: dict[str, Amounts] = field(default_factory=dict)
    absolute: set[str] = field(default_factory=set)
    stopped: bool = False
    max_lifetime: int = -1
    default_lifetime: int = -1
    default_lifetime_set: bool = False
    user_weights: dict[str, float] = field(default_factory=dict)
    max_allocation: dict[str, int] = field(default_factory=dict)
    ordering: str = "utilization"
    #: Set if a value could not be read; checks that depend on it are skipped.
    broken: bool = False

    @property
    def leaf(self) -> bool:
        """Whether applications run in it."""
        return self.kind == "leaf"

    @property
    def name(self) -> str:
        """The last component of its path."""
        return self.path if self.parent is None else self.path[len(self.parent.path) + 1 :]

    def tree(self) -> Iterator[Node]:
        """The queue and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.tree()


class Loader:
    """Reads a configuration like the RM at its start and then at a refresh.

    Parameters
    ----------
    settings : the properties of the file, overriding those of yarn-site.xml.
    site : the properties of yarn-site.xml; without them, limits of the cluster are not known.
    release : Hadoop's release.
    cluster : the cluster's resources at the refresh, if known.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        site: Mapping[str, str] | None = None,
        release: tuple[int, int] = (3, 4),
        cluster: Amounts | None = None,
    ) -> None:
        self.settings, self.site, self.release, self.cluster = settings, site, release, cluster
        self.site_known = site is not None
        self.refusals: list[Refusal] = []
        self._noted: set[tuple[str, str, str | None, str]] = set()
        self._numbers: dict[str, float | None] = {}
        self.legacy = settings.flag("legacy-queue-mode.enabled", True)
        self.dominant = False
        types = settings.raw("yarn.resource-types") or ""
        self.types = tuple(
            dict.fromkeys(trim(name) for name in types.split(",") if trim(name) not in ("", MEMORY, VCORES, "memory"))
        )

    def refuse(self, code: str, key: str, queue: str | None, what: str, hint: str, when: When = "start") -> None:
        """Add a refusal, unless the same one was added already."""
        if (code, key, queue, what) not in self._noted:
            self._noted.add((code, key, queue, what))
            self.refusals.append(Refusal(code, key, queue, what, hint, when))

    def load(self) -> Node | None:
        """Return the queue tree; None if there is no root. Refusals are collected in ``refusals``."""
        self._site()
        self._monitors()
        self._calculator()
        root = self._parse(ROOT, None, 0)
        if root is not None:
            self._cluster_wide(root)
            self._placement(root)
            self._refresh(root)
        return root

    # ---- values

    def number(self, key: str, default: float, kind: str = "int", queue: str | None = None) -> float | None:
        """Read a number like Hadoop's getters; None (and one refusal) if Hadoop throws on it."""
        if self.settings.raw(key) is None:
            return default
        if key not in self._numbers:
            self._numbers[key] = self._read_number(key, default, kind, queue)
        return self._numbers[key]

    def _read_number(self, key: str, default: float, kind: str, queue: str | None) -> float | None:
        try:
            if kind == "float":
                return self.settings.real(key, default)
            if kind == "double":
                return self.settings.double(key, default)
            if kind == "long":
                return self.settings.long(key, int(default))
            if kind == "exact":
                text = self.settings.get(key)
                return default if text is None else parse_int(text)
            return self.settings.integer(key, int(default))
        except Unknown:
            return default
        except ValueError as error:
            wanted = "a number" if kind in ("float", "double") else "an integer"
            self.refuse("YF101", key, queue, f"{_short(key, queue)}: {error}", f"write {wanted}")
            return None

    def text(self, key: str) -> str | None:
        """Return a property's text; None if it is not set, or refers to an unknown variable."""
        try:
            return self.settings.get(key)
        except ValueError:
            return None

    def container(self, key: str) -> dict[str, int]:
        """Return the resources that a ``maximum-allocation`` names; none where it is not set, or cannot be read."""
        try:
            return _request(self.text(key) or "", self.types)
        except ValueError:
            return {}

    def labelled(self, path: str, label: str, name: str) -> str:
        """Return the name of a queue's property in one partition."""
        return f"{path}.{_LABELS}.{label}.{name}" if label else f"{path}.{name}"

    # ---- yarn-site.xml and the scheduler as a whole

    def _site(self) -> None:
        for resource, default in (("mb", (1024, 8192)), ("vcores", (1, 4))):
            low_key, high_key = (f"yarn.scheduler.{side}-allocation-{resource}" for side in ("minimum", "maximum"))
            if not self.site_known and self.settings.raw(low_key) is None and self.settings.raw(high_key) is None:
                continue
            low, high = self.number(low_key, default[0]), self.number(high_key, default[1])
            if low is not None and high is not None and (low <= 0 or low > high):
                self.refuse(
                    "YF102",
                    low_key if self.settings.raw(low_key) is not None else high_key,
                    None,
                    f"{low_key} {low:g} must be at least 1 and at most {high_key} {high:g}",
                    "lower the minimum, or raise the maximum",
                )

    def _monitors(self) -> None:
        """The scheduling monitors: yarn-site.xml names them, they read the scheduler's numbers."""

        def number(key: str, default: float, kind: str) -> float | None:
            return self.number(key, default, kind)

        def refuse(key: str, what: str, hint: str) -> None:
            self.refuse("YF107", key, None, what, hint)

        if self.site is not None:
            MonitorCheck(Settings(self.site), self.settings, number, refuse).run()

    def _calculator(self) -> None:
        text = self.text("resource-calculator")
        name = trim(text) if text is not None else next(iter(CALCULATORS))
        self.dominant = CALCULATORS.get(name, True)
        if name not in CALCULATORS and (name.startswith(_HADOOP) or "." not in name):
            close = nearest(name, CALCULATORS)
            self.refuse(
                "YF103",
                "resource-calculator",
                None,
                f"resource-calculator {name[:120]!r} is no class of Hadoop's that calculates resources",
                f"write {close or next(iter(CALCULATORS))}",
            )
        elif not self.dominant and self.types:
            self.refuse(
                "YF104",
                "resource-calculator" if text is not None else "root.queues",
                None,
                f"the DefaultResourceCalculator cannot count {', '.join(self.types)}, which yarn.resource-types names",
                "write org.apache.hadoop.yarn.util.resource.DominantResourceCalculator as resource-calculator",
            )

    def _cluster_wide(self, root: Node) -> None:
        for key, default in (
            ("per-node-heartbeat.maximum-offswitch-assignments", 1),
            ("per-node-heartbeat.maximum-container-assignments", 100),
        ):
            self.number(key, default)
        if self.settings.flag("schedule-asynchronously.enable", self.release >= (3, 5)):
            self.number("schedule-asynchronously.scheduling-interval-ms", 5, "long")
            self.number("schedule-asynchronously.maximum-threads", 1)
            self.number("schedule-asynchronously.maximum-pending-backlogs", 100)
        names = self.text("multi-node-sorting.policy.names") or ""
        for name in dict.fromkeys(trim(name) for name in names.split(",") if trim(name)):
            self._lookup_policy(
                name, "multi-node-sorting.policy.names", None, _LOOKUP_POLICY if name == "default" else None
            )
            key = f"multi-node-sorting.policy.{name}.sorting-interval.ms"
            interval = self.number(key, 1000, "long")
            if interval is not None and interval < 0:
                self.refuse("YF105", key, None, f"{key} {interval:g} is negative", "write milliseconds")

    def _lookup_policy(self, name: str, key: str, queue: str | None, default: str | None = None) -> None:
        class_key = f"multi-node-sorting.policy.{name}.class"
        found = self.text(class_key) or default
        hint = f"set yarn.scheduler.capacity.{class_key} to {_LOOKUP_POLICY}"
        if not found:
            self.refuse("YF105", key, queue, f"multi-node sorting policy {name[:60]!r} has no class", hint)
        elif trim(found).startswith(_HADOOP) and trim(found) != _LOOKUP_POLICY:
            self.refuse("YF103", class_key, queue, f"{trim(found)[:120]} is no multi-node lookup policy", hint)

    # ---- queues

    @cached_property
    def _labels_of_queues(self) -> dict[str, set[str]]:
        """Queue -> partitions that its properties mention (``getConfiguredNodeLabelsByQueue``)."""
        found: dict[str, set[str]] = {}
        for key in self.settings.own:
            start = key.find(f"{_LABELS}.")
            if start < 0:
                continue
            begin = start + len(_LABELS) + 1
            end = key.find(".", begin)
            if end < 0 or start < 1:
                what = f"{key[:100]} names no setting of a label" if end < 0 else f"{key[:100]} names no queue"
                hint = f"write {key[:100]}.capacity" if end < 0 else f"write root.{key[:100]}"
                self.refuse("YF120", key, None, what, hint)
                continue
            found.setdefault(key[: start - 1], {""}).add(key[begin:end])
        return found

    def _parse(self, path: str, parent: Node | None, depth: int) -> Node | None:
        settings = self.settings
        names = settings.names(f"{path}.queues")
        reservable = settings.flag(f"{path}.reservable")
        creates = settings.flag(f"{path}.auto-create-child-queue.enabled")
        flexible = settings.flag(f"{path}.auto-queue-creation-v2.enabled")
        if not names and not creates and not flexible:
            if parent is None:
                self.refuse(
                    "YF110",
                    "root.queues",
                    ROOT,
                    "no queues below root",
                    "name some in yarn.scheduler.capacity.root.queues",
                )
                return None
            node = Node(path, parent, "plan" if reservable else "leaf")
        else:
            if reservable:
                self.refuse(
                    "YF111",
                    f"{path}.reservable",
                    path,
                    "a queue with children cannot be reservable",
                    "remove reservable",
                )
            node = Node(path, parent, "creating-v1" if creates else "creating" if flexible else "parent")
        self._set_up(node)
        if depth < _MOST_DEPTH:
            for name in names:
                child = self._parse(f"{path}.{name}", node, depth + 1)
                if child is not None:
                    node.children.append(child)
        if node.children:
            self._check_children(node, node.children, "start")
            self._unknown_resources(node)
        self._maximum_weights(node)
        return node

    def _set_up(self, node: Node) -> None:
        path, parent = node.path, node.parent
        if not node.leaf:
            self.number("auto-queue-creation-v2.maximum-queue-depth", 2)
            self.number(f"{path}.auto-queue-creation-v2.maximum-queue-depth", 2, queue=path)
        self._set_labels(node)
        for label in sorted(node.labels):
            self._capacities(node, label)
        self._absolute_limits(node)
        if (
            parent is not None
            and self.legacy
            and not node.broken
            and len({each in node.absolute for each in node.labels}) > 1
        ):
            label = next(each for each in sorted(node.labels) if (each in node.absolute) != ("" in node.absolute))
            node.broken = True
            self.refuse(
                "YF112",
                self._present(self.labelled(path, label, "capacity"), f"{path}.capacity"),
                path,
                f"its capacity is {'absolute' if '' in node.absolute else 'not absolute'}, "
                f"and that of label {label} is {'not' if '' in node.absolute else ''}".rstrip(),
                "give all of its labels capacities of one kind",
            )
        self._largest_container(node)
        self._state(node)
        self._user_weights(node)
        self.number(f"{path}.priority", 0, queue=path)
        self._sorting(node)
        self.number("max-parallel-apps", 2**31 - 1)
        self.number(f"{path}.max-parallel-apps", 2**31 - 1, "exact", path)
        self._lifetimes(node)
        if node.leaf:
            self._leaf(node)
        else:
            self._parent_policy(node)
            if node.kind == "creating-v1":
                self._managed(node)
            if node.kind == "plan":
                self.number(f"{path}.maximum-applications", -1, queue=path)
                self._user_limits(node)

    def _present(self, *keys: str) -> str:
        """Return the first of these properties that is set; the last one if none is."""
        return next((key for key in keys if self.settings.raw(key) is not None), keys[-1])

    # ---- labels

    def _set_labels(self, node: Node) -> None:
        path, parent = node.path, node.parent
        key = f"{path}.{_LABELS}"
        text = self.text(key)
        if parent is None:
            node.accessible = frozenset("*")
        elif text is None:
            node.accessible = parent.accessible
        else:
            names = frozenset(trim(name) for name in text.split(",") if trim(name))
            node.accessible = frozenset("*") if "*" in names else names
        expression = self.text(f"{path}.default-node-label-expression")
        if expression is not None:
            node.default_label = trim(expression)
        elif parent is not None and node.accessible >= parent.accessible:
            node.default_label = parent.default_label
        of_queues = self._labels_of_queues
        if parent is None:
            node.labels = frozenset({"", *(label for labels in of_queues.values() for label in labels)})
            if not of_queues:
                node.labels = frozenset({""})
        else:
            node.labels = frozenset(of_queues.get(path, {""}))
            if "*" not in parent.accessible and not node.accessible <= parent.accessible:
                extra = ", ".join(sorted(node.accessible - parent.accessible))
                self.refuse(
                    "YF121",
                    key,
                    path,
                    f"label {extra} is not accessible to its parent {parent.path}",
                    f"add it to {parent.path}.{_LABELS}, or remove it here",
                )
        if node.leaf:
            self._default_label(node)

    def _default_label(self, node: Node) -> None:
        for part in (node.default_label or "").split("&&"):
            label = trim(part)
            if label and label not in node.accessible and "*" not in node.accessible:
                self.refuse(
                    "YF122",
                    self._inherited_key(node, "default-node-label-expression"),
                    node.path,
                    f"its default label {label!r} is not accessible to it",
                    f"add {label} to {node.path}.{_LABELS}",
                )

    def _inherited_key(self, node: Node, name: str) -> str:
        """Return the property that a queue inherits a value from: its own, or that of an ancestor."""
        at: Node | None = node
        while at is not None:
            if self.settings.raw(f"{at.path}.{name}") is not None:
                return f"{at.path}.{name}"
            at = at.parent
        return f"{node.path}.{name}"

    # ---- capacities

    def _capacities(self, node: Node, label: str, *, template: bool = False) -> None:
        path, root = node.path, node.parent is None and not template
        key = self.labelled(path, label, "capacity")
        try:
            text = self.settings.get(key)
        except ValueError:
            node.broken = True
            text = None
        percent = self._percent(node, key, label, text, root)
        node.percent[label] = 0.0 if percent is None else float32(percent / 100)
        node.weight[label] = self._weight(node, key, label, text)
        maximum_key = self.labelled(path, label, "maximum-capacity")
        self._maximum(node, maximum_key, label, root)
        self.number("maximum-am-resource-percent", 0.1, "float")
        if label and not template:
            self.number(f"{path}.maximum-am-resource-percent", 0.1, "float", path)
        self.number(self.labelled(path, label, "maximum-am-resource-percent"), 0.1, "float", path)
        for each in (key, maximum_key):
            if not template and not node.broken:
                self._vector(node, each)
        if not template and not root and not node.broken:
            weight = vector_weight(text, memory_needed=self.release < (3, 5), types=self.types)
            node.weight[label] = node.weight[label] if weight is None else weight

    def _other_form(self, text: str | None) -> bool:
        return text is not None and (is_absolute(text) or text.endswith("w") or is_vector(text))

    def _percent(self, node: Node, key: str, label: str, text: str | None, root: bool) -> float | None:
        """Return the percentage of the parent; 0 for a weight or absolute resources, None if Hadoop throws."""
        if root:
            return 100.0
        if text is None or self._other_form(text):
            return 0.0
        try:
            # Labelled capacities are trimmed by the getter, others by Float.parseFloat; the result is the same.
            value = parse_float(text)
        except ValueError:
            self._unreadable(node, key, text)
            return None
        if value < 0 or value > 100:
            self.refuse(
                "YF114",
                key,
                node.path,
                f"capacity {trim(text)} is not within 0 and 100",
                "write per cent of the parent",
            )
            node.broken = True
            return None
        return value

    def _unreadable(self, node: Node, key: str, text: str) -> None:
        node.broken = True
        hint = "write 2w, 40, or [memory=8192,vcores=8]"
        if trim(text).endswith("w"):
            hint = f"write {trim(text)}, without white space around it"
        elif text.strip().endswith("%"):
            hint = f"write {text.strip().rstrip('% ')}, without the sign"
        elif trim(text).startswith("["):
            hint = "write [memory=8192,vcores=8]: names and amounts between commas, nothing around the brackets"
        self.refuse("YF113", key, node.path, f"capacity {text[:60]!r} cannot be read", hint)

    def _weight(self, node: Node, key: str, label: str, text: str | None) -> float:
        if text is None or not text.endswith("w"):
            return -1.0
        try:
            value = parse_float(text[: text.index("w")])
        except ValueError:
            self._unreadable(node, key, text)
            return -1.0
        if (value < -1e-6 and abs(float32(value + 1)) > 1e-6) or value > MOST_WEIGHT:
            self.refuse(
                "YF115",
                key,
                node.path,
                f"weight {text} is not within 0 and {MOST_WEIGHT:g}",
                "scale the siblings' weights",
            )
            node.broken = True
        return value

    def _maximum(self, node: Node, key: str, label: str, root: bool) -> None:
        text = self.text(key)
        if text is None or is_absolute(text) or is_vector(text):
            return
        if label and (root or text.endswith("w")):
            return
        try:
            value = parse_float(text)
        except ValueError:
            node.broken = True
            self.refuse(
                "YF116",
                key,
                node.path,
                f"maximum-capacity {text[:60]!r} cannot be read",
                "write per cent of the parent",
            )
            return
        if label and (value < 0 or value > 100):
            node.broken = True
            self.refuse(
                "YF114",
                key,
                node.path,
                f"maximum-capacity {trim(text)} is not within 0 and 100",
                "write per cent of the parent",
            )

    def _vector(self, node: Node, key: str) -> None:
        text = self.text(key)
        try:
            vector_kinds(text, root=node.parent is None, memory_needed=self.release < (3, 5), types=self.types)
        except ValueError as error:
            node.broken = True
            self.refuse(
                "YF113",
                key,
                node.path,
                f"{key.rpartition('.')[2]} {(text or '')[:60]!r}: {error}",
                "write [memory=8192,vcores=8]",
            )

    def _amounts(self, node: Node, key: str) -> dict[str, int]:
        text = self.text(key)
        try:
            return parse_absolute(text, self.types)
        except ValueError as error:
            node.broken = True
            self.refuse(
                "YF113",
                key,
                node.path,
                f"{key.rpartition('.')[2]} {(text or '')[:60]!r}: {error}",
                "write [memory=8192,vcores=8]",
            )
            return {}

    def _absolute_limits(self, node: Node) -> None:
        path, parent = node.path, node.parent
        for label in sorted(node.labels):
            key, maximum_key = (self.labelled(path, label, name) for name in ("capacity", "maximum-capacity"))
            if is_absolute(self.text(key)):
                node.absolute.add(label)
            minimum, maximum = self._amounts(node, key), self._amounts(node, maximum_key)
            told = False
            if parent is not None:
                above = parent.maximum.get(label, {})
                if self._greater(maximum, above):
                    self.refuse(
                        "YF117",
                        maximum_key,
                        path,
                        f"its maximum {_shown(maximum)} is above that of its parent {parent.path}, {_shown(above)}",
                        "lower it, or raise the parent's maximum-capacity",
                    )
                if not _any(maximum) and _any(minimum) and _any(above):
                    maximum = dict(above)
                    # The maximum of the queue above, of which it is told already that its own capacity exceeds it.
                    told = self._greater(parent.minimum.get(label, {}), above)
            if self._greater(minimum, maximum) and not told:
                self.refuse(
                    "YF117",
                    key,
                    path,
                    f"its capacity {_shown(minimum)} is above its maximum {_shown(maximum)}",
                    "lower the capacity, or raise maximum-capacity",
                )
            node.minimum[label], node.maximum[label] = minimum, maximum

    def _greater(self, left: Amounts, right: Amounts) -> bool:
        return _any(right) and compare(left, right, dominant=self.dominant, types=self.types) > 0

    # ---- what else a queue has

    def _largest_container(self, node: Node) -> None:
        path = node.path
        key = f"{path}.maximum-allocation"
        text = self.text(key)
        limits = {MEMORY: "yarn.scheduler.maximum-allocation-mb", VCORES: "yarn.scheduler.maximum-allocation-vcores"}
        cluster = {
            name: self.number(limit, default) for (name, limit), default in zip(limits.items(), (8192, 4), strict=True)
        }
        found: dict[str, tuple[str, float]] = {}
        if text:
            try:
                found = {name: (key, amount) for name, amount in _request(text, self.types).items()}
            except ValueError as error:
                self.refuse(
                    "YF118", key, path, f"maximum-allocation {text[:80]!r}: {error}", "write memory-mb=8192,vcores=4"
                )
                return
        else:
            for name, ending in ((MEMORY, "mb"), (VCORES, "vcores")):
                own = f"{key}-{ending}"
                amount = self.number(own, -1, queue=path)
                if amount is not None and amount != -1:
                    found[name] = (own, amount)
        for name, (own, amount) in found.items():
            most = cluster.get(name, float(2**63))
            if most is None:
                continue
            known = self.site_known or self.settings.raw(limits.get(name, "")) is not None
            if amount > most and known:
                self.refuse(
                    "YF119",
                    own,
                    path,
                    f"its largest container, {amount:.0f} of {name}, is above the cluster's, {most:.0f}",
                    f"lower it, or raise {limits.get(name, name)} in yarn-site.xml",
                )

    def _state(self, node: Node) -> None:
        key = f"{node.path}.state"
        text = self.text(key)
        above = node.parent is not None and node.parent.stopped
        if text is not None and text.upper() not in ("RUNNING", "STOPPED"):
            self.refuse("YF130", key, node.path, f"state {text[:40]!r} is none", "write RUNNING or STOPPED")
            node.stopped = above
            return
        node.stopped = above if text is None else text.upper() == "STOPPED"
        if text is not None and above and not node.stopped and node.parent is not None:
            self.refuse(
                "YF131",
                key,
                node.path,
                f"it is RUNNING below {node.parent.path}, which is STOPPED",
                f"write STOPPED here, or RUNNING as {node.parent.path}.state",
            )

    def _user_weights(self, node: Node) -> None:
        if node.parent is not None:
            node.user_weights = dict(node.parent.user_weights)
        for key in self._user_settings.get(node.path, ()):
            user = key[len(node.path) + len(".user-settings.") :].replace(".weight", "", 1)
            if not user:
                continue
            text = self.text(key)
            try:
                node.user_weights[user] = parse_float(text or "") if text is not None else 1.0
            except ValueError as error:
                self.refuse("YF101", key, node.path, f"weight of user {user[:40]}: {error}", "write a number")

    @cached_property
    def _user_settings(self) -> dict[str, list[str]]:
        """Queue -> its properties that set weights of users."""
        found: dict[str, list[str]] = {}
        for key in self.settings.own:
            path, dot, rest = key.partition(".user-settings.")
            name, weight, _ = rest.partition(".weight")
            if dot and weight and name and not name[-1:].isspace():
                found.setdefault(path, []).append(key)
        return found

    def _sorting(self, node: Node) -> None:
        key = self._present(f"{node.path}.multi-node-sorting.policy", "multi-node-sorting.policy")
        name = self.text(key)
        if name:
            self._lookup_policy(trim(name), key, node.path if key.startswith(ROOT) else None)

    def _lifetimes(self, node: Node) -> None:
        path, parent = node.path, node.parent
        most_key, default_key = f"{path}.maximum-application-lifetime", f"{path}.default-application-lifetime"
        most, default = self.number(most_key, -1, "long", path), self.number(default_key, -1, "long", path)
        if most is None or default is None:
            return
        node.max_lifetime = int(most)
        node.default_lifetime = int(default)
        if parent is None:
            node.default_lifetime_set = default >= 0
            return
        node.max_lifetime = int(most) if most >= 0 else parent.max_lifetime
        node.default_lifetime_set = default >= 0 or parent.default_lifetime_set
        if default < 0:
            node.default_lifetime = (
                min(parent.default_lifetime, node.max_lifetime) if node.default_lifetime_set else node.max_lifetime
            )
        if node.max_lifetime > 0 and node.default_lifetime > node.max_lifetime:
            self.refuse(
                "YF132",
                self._present(default_key, most_key),
                path,
                f"its default lifetime {node.default_lifetime} s exceeds its maximum {node.max_lifetime} s",
                "lower default-application-lifetime, or raise maximum-application-lifetime",
            )
        if node.default_lifetime <= 0:
            node.default_lifetime = node.max_lifetime

    def _user_limits(self, node: Node) -> float | None:
        path = node.path
        self.number("user-limit-factor", 1.0, "float")
        self.number(f"{path}.user-limit-factor", 1.0, "float", path)
        usual = self.number("minimum-user-limit-percent", 100.0, "float")
        return self.number(f"{path}.minimum-user-limit-percent", 100.0 if usual is None else usual, "float", path)

    def _leaf(self, node: Node) -> None:
        path = node.path
        self._leaf_policy(node)
        limit = self._user_limits(node)
        self.number(f"{path}.maximum-am-resource-percent", 0.1, "float", path)
        for key in ("maximum-applications", "global-queue-max-application"):
            self.number(key, -1)
        for key in ("node-locality-delay", "rack-locality-additional-delay"):
            self.number(key, -1)
        self.number(f"{path}.maximum-applications", -1, queue=path)
        self.number(f"{path}.default-application-priority", 0, queue=path)
        self._priority_acl(node)
        if limit is None:
            return
        limit = min(100.0, limit)
        most = float32(100.0 / limit) if limit else float("inf")
        for user, weight in node.user_weights.items():
            key = self._weight_key(node, user)
            told = any((found.code, found.key) == ("YF133", key) for found in self.refusals)
            if (weight < 0 or weight > most) and not told:
                self.refuse(
                    "YF133",
                    key,
                    path,
                    f"weight {weight:g} of user {user[:40]} is not within 0 and {most:g} (100 / "
                    f"minimum-user-limit-percent {limit:g})",
                    "lower the weight, or minimum-user-limit-percent",
                )

    def _weight_key(self, node: Node, user: str) -> str:
        at: Node | None = node
        while at is not None:
            for key in self._user_settings.get(at.path, ()):
                if key[len(at.path) + len(".user-settings.") :].replace(".weight", "", 1) == user:
                    return key
            at = at.parent
        return f"{node.path}.user-settings.{user}.weight"

    def _leaf_policy(self, node: Node) -> None:
        key = f"{node.path}.ordering-policy"
        text = self.text(key)
        if text is None or trim(text) in LEAF_POLICIES or text in _LEAF_POLICY_CLASSES:
            return
        if "." in text and not trim(text).startswith(_HADOOP) and text == trim(text):
            return
        close = trim(text) if trim(text) in _LEAF_POLICY_CLASSES else nearest(trim(text).lower(), LEAF_POLICIES)
        self.refuse(
            "YF134",
            key,
            node.path,
            f"ordering-policy {text[:100]!r} is none here: a leaf orders applications",
            f"write {close}" if close else "write fifo or fair",
        )

    def _parent_policy(self, node: Node) -> None:
        key = f"{node.path}.ordering-policy"
        text = self.text(key)
        inherited = "utilization" if node.parent is None else node.parent.ordering
        name = inherited if text is None else trim(text)
        node.ordering = name
        if text is None or name in PARENT_POLICIES or ("." in name and not name.startswith(_HADOOP)):
            return
        node.ordering = inherited
        kind = "a reservable queue" if node.kind == "plan" else "a queue with children"
        close = nearest(name.lower(), PARENT_POLICIES) or "utilization"
        self.refuse(
            "YF134",
            key,
            node.path,
            f"ordering-policy {name[:100]!r} is none here: {kind} orders queues",
            f"write {close}",
        )

    def _priority_acl(self, node: Node) -> None:
        key = f"{node.path}.acl_application_max_priority"
        text = self.text(key)
        self.number("yarn.cluster.max-application-priority", 0)
        for group in _bracketed(text or ""):
            if not trim(group):
                continue
            try:
                _check_priority_group(group)
            except ValueError as error:
                self.refuse(
                    "YF135",
                    key,
                    node.path,
                    f"acl_application_max_priority {text!r:.90}: {error}",
                    "write [user=alice group=g1 max_priority=10 default_priority=3]",
                )

    def _managed(self, node: Node) -> None:
        """Check a queue that creates leaves from its template (``ManagedParentQueue``)."""
        path = node.path
        template = Node(f"{path}.leaf-queue-template", node, "leaf")
        template.labels = frozenset(self._labels_of_queues.get(template.path, {""}))
        for label in sorted(template.labels):
            minimum = self._amounts(template, self.labelled(template.path, label, "capacity"))
            if _any(minimum) and not self._is_absolute(node) and not node.broken:
                self.refuse(
                    "YF136",
                    self.labelled(template.path, label, "capacity"),
                    path,
                    "its template has an absolute capacity, and the queue has none",
                    "write per cent in the template",
                )
            self._capacities(template, label, template=True)
        class_key = f"{path}.auto-create-child-queue.management-policy"
        policy = self.text(class_key)
        if (
            policy is not None
            and policy != _MANAGEMENT_POLICY
            and (trim(policy).startswith(_HADOOP) or "." not in policy)
        ):
            self.refuse(
                "YF103", class_key, path, f"{policy[:120]!r} is no management policy", f"write {_MANAGEMENT_POLICY}"
            )
        allowed = node.accessible | {""}
        if "*" in node.accessible:
            allowed = node.labels | {""}
        for label in sorted(template.labels - allowed):
            key = next(key for key in self.settings.own if key.startswith(f"{template.path}.{_LABELS}.{label}."))
            self.refuse(
                "YF137",
                key,
                path,
                f"its template has a setting for label {label}, which the queue has not",
                f"give {path} a capacity for {label} too",
            )

    def _is_absolute(self, node: Node) -> bool:
        """Whether the type is ``CapacityConfigType.ABSOLUTE_RESOURCE``."""
        if self.legacy:
            return bool(node.absolute)
        kinds = vector_kinds(
            self.text(f"{node.path}.capacity"),
            root=node.parent is None,
            memory_needed=self.release < (3, 5),
            types=self.types,
        )
        return kinds == {"absolute"}

    # ---- children together

    def _kind_of(self, queues: Collection[Node], labels: Collection[str], owner: Node) -> str | None:
        """The kind of capacities of these queues; None (and a reason) for a mixture of them."""
        percent = weight = absolute = False
        for queue in queues:
            for label in labels:
                percent |= queue.percent.get(label, 0.0) > 0
                weight |= queue.weight.get(label, -1.0) >= 0
                if label in queue.absolute if self.release >= (3, 5) else _any(queue.minimum.get(label, {})):
                    absolute, percent = True, False
        first = next(iter(queues), None)
        if first is not None and first.path != ROOT and percent + weight + absolute > 1:
            return None
        return "weight" if weight or first is None else "absolute" if absolute else "percent"

    def _check_children(self, node: Node, children: list[Node], when: When) -> None:
        if not self.legacy or node.broken or any(child.broken for child in children):
            return
        path, key = node.path, f"{node.path}.queues"
        labels = sorted(node.labels)
        kind, own = self._kind_of(children, labels, node), self._kind_of([node], labels, node)
        if kind is None or own is None:
            kinds: dict[str, str] = {}
            for child in children if kind is None else [node]:
                for label in labels:
                    named = self._named_kind(child, label)
                    if named:
                        kinds.setdefault(named, child.path)
            what = ", ".join(f"{name} ({queue})" for name, queue in sorted(kinds.items()))
            self.refuse(
                "YF140",
                key,
                path,
                f"its children mix kinds of capacities: {what}",
                "give them capacities of one kind",
                when,
            )
            return
        if "absolute" in (kind, own):
            if kind != own and path != ROOT:
                if self._unread_memory([node, *children], labels, when):
                    return
                self.refuse(
                    "YF141",
                    key,
                    path,
                    "absolute capacities below one that is not"
                    if kind == "absolute"
                    else "it has an absolute capacity, and its children have not"
                    if children
                    else "it has an absolute capacity, and no refresh works while it has no children",
                    "write the whole tree in one kind of capacity"
                    if children
                    else "name children, or give it a weight",
                    when,
                )
                return
            self._absolute_sum(node, children, labels, when)
        if kind == "percent":
            for label in labels:
                self._percent_sum(node, children, label, own, when)

    def _unknown_resources(self, node: Node) -> None:
        """In flexible mode a parent's vector is shared among its children, resource by resource."""
        if self.legacy or node.parent is None or node.broken:
            return
        for label in sorted(node.labels):
            key = self.labelled(node.path, label, "capacity")
            text = self.text(key)
            if text is None or not is_vector(text):
                continue
            parts = vector_parts(text, memory_needed=self.release < (3, 5), types=self.types)
            unknown = [name for name in parts if name not in (MEMORY, VCORES, *self.types)]
            if not self.site_known:
                # Without yarn-site.xml a further resource type may well be known to the RM.
                unknown = [name for name in unknown if not custom_types(f"{name}=1")]
            if unknown:
                self.refuse(
                    "YF146",
                    key,
                    node.path,
                    f"its capacity names {', '.join(unknown)}, which yarn.resource-types does not",
                    "name it there (--yarn-site), or remove it here",
                )

    def _maximum_weights(self, node: Node) -> None:
        """In flexible mode no maximum is a weight (``WeightQueueCapacityCalculator.calculateMaximumResource``)."""
        if self.legacy or node.parent is None or node.broken:
            return
        for label in sorted(node.labels & node.parent.labels):
            key = self.labelled(node.path, label, "maximum-capacity")
            text = self.text(key)
            if text is None:
                continue
            if is_vector(text):
                try:
                    parts = vector_parts(text, memory_needed=self.release < (3, 5), types=self.types)
                except ValueError:
                    continue
                weighted = "weight" in parts.values()
            else:
                weighted = bool(label) and text.endswith("w")
            if weighted:
                what = f"maximum-capacity {text[:60]!r} is a weight"
                self.refuse("YF147", key, node.path, what, "write per cent, or [memory=8192,vcores=8]")

    def _named_kind(self, queue: Node, label: str) -> str:
        if _any(queue.minimum.get(label, {})):
            return "absolute"
        if queue.weight.get(label, -1.0) >= 0:
            return "weight"
        return "percent" if queue.percent.get(label, 0.0) > 0 else ""

    def _absolute_sum(self, node: Node, children: list[Node], labels: list[str], when: When) -> None:
        for label in labels:
            total: dict[str, int] = {}
            for child in children:
                for name, amount in child.minimum.get(label, {}).items():
                    total[name] = total.get(name, 0) + amount
            has = node.minimum.get(label, {})
            cluster = self.cluster if when == "refresh" and not label else None
            less = compare(has, total, dominant=self.dominant, cluster=cluster, types=self.types) < 0
            if _any(has) and less:
                self.refuse(
                    "YF142",
                    self.labelled(node.path, label, "capacity"),
                    node.path,
                    f"its children's capacities sum to {_shown(total)}, above its own {self._written(node, label)}",
                    "raise it, or lower the children's",
                    when,
                )

    def _unread_memory(self, queues: Collection[Node], labels: Collection[str], when: When) -> bool:
        """Refuse absolute capacities without memory that Hadoop reads, the cause of what is refused; whether any is."""
        found = False
        for queue in queues:
            for label in labels:
                key = self.labelled(queue.path, label, "capacity")
                text = self.text(key)
                if label not in queue.absolute or _any(queue.minimum.get(label, {})) or text is None:
                    continue
                if re.search(r"\bmemory(?:-mb)?=0+\b", text):
                    continue
                found = True
                what = f"capacity {text!r:.70} names no memory that Hadoop reads"
                hint = "write [memory=8192,vcores=8], with units like Gi"
                self.refuse("YF113", key, queue.path, what, hint, when)
        return found

    def _written(self, node: Node, label: str) -> str:
        """An absolute capacity as it is written, with what Hadoop reads of it where that is another text."""
        text = trim(self.text(self.labelled(node.path, label, "capacity")) or "")[:80]
        read = _shown(node.minimum.get(label, {}))
        same = text.replace(" ", "").replace(f"{MEMORY}=", "memory=") == read
        return text if same else f"{text}, which is {read}"

    def _percent_sum(self, node: Node, children: list[Node], label: str, own: str, when: When) -> None:
        total = 0.0
        for child in children:
            total = float32(total + child.percent.get(label, 0.0))
        has = abs(node.percent.get(label, 0.0))
        zero_allowed = self.settings.flag(f"{node.path}.allow-zero-capacity-sum")
        where = f" for label {label}" if label else ""
        if abs(float32(1 - total)) > SUM_PRECISION:
            if abs(total) > SUM_PRECISION:
                what = f"its children's capacities{where} sum to {100 * total:g}"
                parts = abs(100 * total - 1) < 0.001
                hint = "they are per cent: write 60 for 0.6" if parts else "make them sum to 100"
                self._sum_refused(node, children, label, what, hint, when)
            elif own == "percent" and has > SUM_PRECISION and not zero_allowed:
                if self._unread_memory(children, [label], when):
                    return
                what = f"its children's capacities{where} sum to 0"
                hint = "make them sum to 100"
                if label:
                    hint = f"give them capacities{where} that sum to 100, or remove what is set for this label"
                self._sum_refused(node, children, label, what, hint, when)
        elif own == "percent" and has <= 0 and not zero_allowed:
            what = f"its capacity{where} is 0, and its children's sum to 100"
            self._sum_refused(node, children, label, what, f"give {node.path} a capacity{where}", when)

    def _sum_refused(self, node: Node, children: list[Node], label: str, what: str, hint: str, when: When) -> None:
        if label and any(found.code == "YF137" and f".{label}." in found.key for found in self.refusals):
            # A template's label that its queue has not is the cause.
            return
        key = f"{node.path}.queues"
        if label:
            settings = [self.labelled(child.path, label, "capacity") for child in [node, *children]]
            key = next((one for one in settings if self.settings.raw(one) is not None), key)
            if key == f"{node.path}.queues":
                key = next((k for k in self.settings.own if f".{_LABELS}.{label}." in k), key)
                owner = key.partition(f".{_LABELS}.")[0]
                what = f"label {label} has settings, and no capacity"
                hint = f"give {owner} and the queues above it a capacity for {label}, or remove what is set for it"
        self.refuse("YF144" if label else "YF143", key, node.path, what, hint, when)

    # ---- placement

    def names(self, root: Node) -> mapping.QueueNames:
        """The queues as mappings may name them."""
        kinds: dict[str, mapping.QueueKind] = {}
        for node in root.tree():
            kinds[node.path] = "parent" if node.kind == "plan" else node.kind
            if node.kind == "plan":
                kinds[f"{node.path}.{node.name}-default"] = "leaf"
        return mapping.QueueNames.of(kinds)

    def _placement(self, root: Node) -> None:
        settings = self.settings
        text = self.text(_PLACEMENT_RULES)
        rules = [part for part in (text or "").split(",") if part]
        for rule in dict.fromkeys(rules):
            if rules.count(rule) > 1:
                self.refuse("YF150", _PLACEMENT_RULES, None, f"placement rule {rule!r} appears twice", "name it once")
            elif rule not in ("user-group", "app-name") and ("." not in rule or rule.startswith(_HADOOP)):
                self.refuse(
                    "YF150",
                    _PLACEMENT_RULES,
                    None,
                    f"there is no placement rule {rule[:80]!r}",
                    "write user-group or app-name",
                )
        if rules and not {"user-group", "app-name"} & set(rules):
            return
        names = self.names(root)
        form = self.text("mapping-rule-format")
        form = "legacy" if form is None else form
        if form not in ("legacy", "json"):
            self.refuse(
                "YF151",
                "mapping-rule-format",
                None,
                f"mapping-rule-format {form[:40]!r} is none",
                "write legacy or json",
            )
            return

        def report(key: str) -> Callable[[mapping.Refused], None]:
            def note(refused: mapping.Refused) -> None:
                code = "YF152" if isinstance(refused, mapping.Syntax) else "YF153"
                self.refuse(code, key, None, refused.what, refused.hint)

            return note

        if form == "legacy":
            for key, by_name in (("queue-mappings", False), (_APP_NAMES, True)):
                try:
                    mappings = settings.collection(key)
                except ValueError:
                    continue
                mapping.check_legacy(mappings, names, names=by_name, report=report(key))
        elif document := self.text("mapping-rule-json"):
            mapping.check_json(document, names, report=report("mapping-rule-json"))
        self._workflows()

    def _workflows(self) -> None:
        try:
            workflows = self.settings.collection("workflow-priority-mappings")
        except ValueError:
            return
        for one in workflows:
            parts = [trim(part) for part in one.split(":") if trim(part)]
            try:
                if len(parts) != 3:
                    raise ValueError("it is not of the form workflow:queue:priority")
                parse_int(parts[2])
            except ValueError as error:
                self.refuse(
                    "YF154",
                    "workflow-priority-mappings",
                    None,
                    f"workflow mapping {one[:80]!r}: {error}",
                    "write workflow:root.queue:5",
                )

    # ---- the first computation of shares, and a refresh

    def _refresh(self, root: Node) -> None:
        for node in root.tree():
            extra = node.labels - node.parent.labels if node.parent is not None else frozenset()
            if self.legacy and not node.broken and node.absolute and extra:
                label = min(extra)
                assert node.parent is not None, "root has every label"
                self.refuse(
                    "YF145",
                    next(key for key in self.settings.own if key.startswith(f"{node.path}.{_LABELS}.{label}.")),
                    node.path,
                    f"it is absolute and has a setting for label {label}, which its parent {node.parent.path} has not",
                    f"give {node.parent.path} a capacity for {label} too",
                )
            if node.kind == "creating-v1" and node.children:
                self.refuse(
                    "YF160",
                    f"{node.path}.queues",
                    node.path,
                    "it makes queues by itself (auto-create-child-queue) and names children: the RM starts, and no "
                    "refresh ever works",
                    f"remove {node.path}.queues, or its auto-create-child-queue.enabled",
                    "refresh",
                )
                continue
            if node.kind in ("leaf", "plan", "creating-v1"):
                continue
            # A refresh looks at each child once, in the order of a HashMap of their paths, and at parents without
            # children too.
            children = {child.path: child for child in node.children}
            again = [children[path] for path in hash_set_order(list(children))]
            self._check_children(node, again, "refresh")


def _any(amounts: Amounts) -> bool:
    return any(amounts.values())


def _shown(amounts: Amounts) -> str:
    return "[" + ",".join(f"{'memory' if n == MEMORY else n}={amount}" for n, amount in amounts.items()) + "]"


def _short(key: str, queue: str | None) -> str:
    """A property's name beside its queue, which is shown besides."""
    return key.removeprefix(f"{queue}.") if queue else key


def _bracketed(text: str) -> list[str]:
    """What follows each opening bracket, up to the closing one or the end."""
    found, at = [], 0
    while (start := text.find("[", at)) >= 0:
        end = text.find("]", start + 1)
        # One character at least is inside.
        if end == start + 1:
            at = start + 1
            continue
        found.append(text[start + 1 : end if end >= 0 else len(text)])
        at = end if end >= 0 else len(text)
    return [group for group in found if group]


def _check_priority_group(group: str) -> None:
    """Raises ValueError for what ``AppPriorityACLConfigurationParser`` throws on."""
    named, most = False, False
    for pair in trim(group).split(" "):
        pieces = split(pair, "=")
        if not pair or len(pieces) < 2:
            continue
        key = trim(pieces[0]).lower()
        if key not in _PRIORITY_KEYS:
            raise ValueError(f"there is no {pieces[0]!r}")
        if key in ("max_priority", "default_priority"):
            parse_int(pieces[1])
            most |= key == "max_priority"
        else:
            named = True
    if not most:
        raise ValueError("it has no max_priority")
    if not named:
        raise ValueError("it names no user and no group")


def _request(text: str, types: Collection[str]) -> dict[str, int]:
    """Resources as ``ResourceUtils.createResourceFromString`` reads them. Raises ValueError."""
    found: dict[str, int] = {}
    for part in split(trim(text), ","):
        part = trim(part)
        name, equals, value = part.partition("=")
        number = value.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") if equals else "x"
        digits = value[: next((i for i, char in enumerate(value) if not char.isdigit()), len(value))]
        rest = value[len(digits) :]
        unit = rest[1:] if rest[:1].isspace() else rest
        if not equals or not name or not digits or "=" in value or (unit and not unit.replace("_", "a").isalnum()):
            raise ValueError(f"{part!r} is not of the form name=amount")
        del number
        if unit in ("M", "m"):
            unit = "Mi"
        elif unit in ("G", "g"):
            unit = "Gi"
        elif unit:
            raise ValueError(f"{part!r}: the units are M and G")
        amount = int(digits)
        name = {"memory": MEMORY, "gpu": "yarn.io/gpu", "fpga": "yarn.io/fpga"}.get(name, name)
        if name == MEMORY and unit in UNITS and (unit or part.startswith("memory=")):
            amount = convert(amount, unit, "Mi")
        if name not in (MEMORY, VCORES, *types):
            raise ValueError(f"there is no resource {name!r}")
        found[name] = amount
    return found


def load(
    values: Mapping[str, str],
    *,
    site: Mapping[str, str] | None = None,
    release: tuple[int, int] = (3, 4),
    cluster: Amounts | None = None,
) -> list[Refusal]:
    """All reasons for which Hadoop refuses a configuration; empty where it starts and refreshes.

    Parameters
    ----------
    values : full name of each property of the file -> its text.
    site : properties of yarn-site.xml; None where they are not known.
    release : Hadoop's.
    cluster : the cluster's resources when it refreshes, by name; None where they are not known.
    """
    loader = Loader(Settings(values, site), site=site, release=release, cluster=cluster)
    loader.load()
    return loader.refusals
