"""A configuration while it is read: its properties, the refusals so far, and the record of a queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from harness.yarn.capacity import mapping
from harness.yarn.capacity.amounts import MEMORY, VCORES, Amounts, is_vector, parse_container
from harness.yarn.capacity.settings import Settings, Unknown
from harness.yarn.fair.javanum import parse_int, trim
from harness.yarn.releases import ASSUMED

#: Prefix of Hadoop's own classes. An unknown class with this prefix does not exist; another may be the administrator's.
HADOOP = "org.apache.hadoop."
LABELS = "accessible-node-labels"

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
    """A queue of the configuration, with the data that later checks need.

    Mappings by partition have the label as key; "" is the default partition.
    """

    path: str
    parent: Node | None
    kind: mapping.QueueKind | Literal["plan"]
    children: list[Node] = field(default_factory=list)
    #: Labels that the queue's applications may request; "*" for all.
    accessible: frozenset[str] = frozenset()
    default_label: str | None = None
    #: Labels with settings of their own.
    labels: frozenset[str] = frozenset()
    #: Fraction of its parent, 0 to 1; 0 if the capacity has another form.
    percent: dict[str, float] = field(default_factory=dict)
    #: -1 if the capacity is not a weight.
    weight: dict[str, float] = field(default_factory=dict)
    #: Absolute capacity and maximum; empty if they are not absolute.
    minimum: dict[str, Amounts] = field(default_factory=dict)
    maximum: dict[str, Amounts] = field(default_factory=dict)
    #: Partitions in which the capacity is absolute.
    absolute: set[str] = field(default_factory=set)
    stopped: bool = False
    #: Lifetimes of applications, in seconds; -1 without a limit.
    max_lifetime: int = -1
    default_lifetime: int = -1
    default_lifetime_set: bool = False
    user_weights: dict[str, float] = field(default_factory=dict)
    #: Policy by which a parent orders its children.
    ordering: str = "utilization"
    #: Set if a value could not be read; checks that depend on it are skipped.
    broken: bool = False

    @property
    def leaf(self) -> bool:
        """Whether applications can run in this queue."""
        return self.kind == "leaf"

    @property
    def name(self) -> str:
        """The last component of its path."""
        return self.path if self.parent is None else self.path[len(self.parent.path) + 1 :]

    def tree(self) -> Iterator[Node]:
        """Return the queue and all queues below it, parents first."""
        yield self
        for child in self.children:
            yield from child.tree()


class Reading:
    """The properties of a configuration as the RM reads them, and its refusals.

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
        release: tuple[int, int] = ASSUMED,
        cluster: Amounts | None = None,
    ) -> None:
        self.settings, self.site, self.release, self.cluster = settings, site, release, cluster
        self.site_known = site is not None
        self.refusals: list[Refusal] = []
        self._noted: set[tuple[str, str, str | None, str]] = set()
        #: Whether another release may interpret this configuration differently.
        self.release_matters = False
        self._numbers: dict[str, float | None] = {}
        self.legacy = settings.flag("legacy-queue-mode.enabled", True)
        self.dominant = False
        types = settings.raw("yarn.resource-types") or ""
        self.types = tuple(
            dict.fromkeys(trim(name) for name in types.split(",") if trim(name) not in ("", MEMORY, VCORES, "memory"))
        )

    def since(self, release: tuple[int, int]) -> bool:
        """Return whether Hadoop is at least this release; records that the caller's result depends on the release."""
        self.release_matters = True
        return self.release >= release

    def memory_needed(self, text: str | None) -> bool:
        """Return whether a vector of resources counts as empty because it names no memory (Hadoop before 3.5)."""
        vector = is_vector((text or "").replace(" ", "")) and "memory" not in (text or "")
        return vector and not self.since((3, 5))

    def refuse(self, code: str, key: str, queue: str | None, what: str, hint: str, when: When = "start") -> None:
        """Add a refusal, unless the same one was added already."""
        if (code, key, queue, what) not in self._noted:
            self._noted.add((code, key, queue, what))
            self.refusals.append(Refusal(code, key, queue, what, hint, when))

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
        """Return the resources of a ``maximum-allocation``; none if it is not set or cannot be read."""
        try:
            return parse_container(self.text(key) or "", self.types)
        except ValueError:
            return {}

    def labelled(self, path: str, label: str, name: str) -> str:
        """Return the name of a queue's property in one partition."""
        return f"{path}.{LABELS}.{label}.{name}" if label else f"{path}.{name}"

    def present(self, *keys: str) -> str:
        """Return the first of these properties that is set; the last one if none is."""
        return next((key for key in keys if self.settings.raw(key) is not None), keys[-1])

    def inherited_key(self, node: Node, name: str) -> str:
        """Return the property that a queue inherits a value from: its own, or that of an ancestor."""
        at: Node | None = node
        while at is not None:
            if self.settings.raw(f"{at.path}.{name}") is not None:
                return f"{at.path}.{name}"
            at = at.parent
        return f"{node.path}.{name}"

    @cached_property
    def labels_of_queues(self) -> dict[str, set[str]]:
        """Return queue -> partitions that its properties mention (``getConfiguredNodeLabelsByQueue``)."""
        found: dict[str, set[str]] = {}
        for key in self.settings.own:
            start = key.find(f"{LABELS}.")
            if start < 0:
                continue
            begin = start + len(LABELS) + 1
            end = key.find(".", begin)
            if end < 0 or start < 1:
                what = f"{key[:100]} names no setting of a label" if end < 0 else f"{key[:100]} names no queue"
                hint = f"write {key[:100]}.capacity" if end < 0 else f"write root.{key[:100]}"
                self.refuse("YF120", key, None, what, hint)
                continue
            found.setdefault(key[: start - 1], {""}).add(key[begin:end])
        return found

    @cached_property
    def user_settings(self) -> dict[str, list[str]]:
        """Return queue -> its properties that set weights of users."""
        found: dict[str, list[str]] = {}
        for key in self.settings.own:
            path, dot, rest = key.partition(".user-settings.")
            name, weight, _ = rest.partition(".weight")
            if dot and weight and name and not name[-1:].isspace():
                found.setdefault(path, []).append(key)
        return found


def _short(key: str, queue: str | None) -> str:
    """Return a property's name without its queue, which the message shows separately."""
    return key.removeprefix(f"{queue}.") if queue else key
