"""Parse capacity-scheduler.xml for the simulator: a tree of queues and the scheduler's own settings.

Configurations that Hadoop refuses are refused: wrong sums, mixed capacity types, invalid states, and policies that it
cannot load. Settings that the simulator does not cover (`UNCOVERED`) are refused, too.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import InputError
from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX
from harness.yarn.fair.javanum import float32, parse_boolean, parse_float, parse_int, parse_long, wrap_int

PREFIX = "yarn.scheduler.capacity."

#: (pattern of a key without its prefix, values that switch nothing on, what the key is for)
UNCOVERED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (r"root(\..+)?\.accessible-node-labels(\..+)?", ("", "*"), "node labels"),
    (r"root(\..+)?\.default-node-label-expression", ("",), "node labels"),
    (r"root(\..+)?\.auto-create-child-queue\.enabled", ("false",), "auto-created queues"),
    (r"root(\..+)?\.auto-queue-creation-v2\.enabled", ("false",), "auto-created queues"),
    (r"root(\..+)?\.user-settings\..+", ("1", "1.0"), "weights of users"),
    (r"root(\..+)?\.maximum-allocation", (), "a queue's maximum allocation as a vector"),
    (r"root(\..+)?\.default-application-priority", ("0",), "a queue's default application priority"),
    (r"root(\..+)?\.multi-node-sorting-policy(\..+)?|multi-node-placement-enabled", ("false",), "multi-node placement"),
    (r"schedule-asynchronously\.enable", ("false",), "asynchronous scheduling"),
    (r"lazy-preemption-enabled", ("false",), "lazy preemption"),
    (r"legacy-queue-mode\.enabled", ("true",), "the new queue mode"),
    (r"root(\..+)?\.(maximum|default)-application-lifetime", ("", "0", "-1"), "lifetimes of applications"),
)
_CALCULATORS = {"DefaultResourceCalculator": False, "DominantResourceCalculator": True}
#: Ordering policies of parents and of leaves.
_POLICIES = (("utilization", "priority-utilization"), ("fifo", "fair"))
_PARALLEL = "max-parallel-apps"
_OF_USER = re.compile(rf"user\.(.+)\.{_PARALLEL}")
_MANAGED = re.compile(r"(root(?:\..+)?)\.auto-create-child-queue\.enabled")
#: The largest weight that Hadoop accepts.
MAX_WEIGHT = 10_000.0


@dataclass(slots=True)
class QueueConf:
    """A queue's configuration. Capacities are fractions from 0 to 1, vectors are (MB, vcores); values are float32."""

    path: str
    children: list[QueueConf] = field(default_factory=list)
    mode: str = "percent"  # percent, weight, absolute
    capacity: float = 0.0
    weight: float = -1.0
    absolute: tuple[int, int] = (0, 0)
    maximum: float = 1.0
    absolute_maximum: tuple[int, int] = (0, 0)
    priority: int = 0
    policy: str | None = None
    sized: bool = False
    user_limit: float = 100.0
    user_limit_factor: float = 1.0
    am_share: float = 0.1
    max_apps: int = -1
    parallel: int = JAVA_INT_MAX
    largest: tuple[int, int] = (JAVA_LONG_MAX, JAVA_INT_MAX)
    state: str = "RUNNING"


@dataclass(slots=True)
class UserParallel:
    """The limit of running applications per user."""

    default: int
    own: dict[str, int]

    def of(self, user: str) -> int:
        """Return the user's own limit, or else the limit of all users."""
        return self.own.get(user, self.default)


@dataclass(slots=True)
class CapacityConf:
    """The scheduler's settings and the tree of queues."""

    root: QueueConf
    dominant: bool
    look: bool
    off_switch: int
    multiple: bool
    containers: int
    system_apps: int
    queue_apps: int
    user_parallel: UserParallel

    def queues(self) -> Iterator[QueueConf]:
        """Return all queues, parents before their children."""
        todo = [self.root]
        while todo:
            queue = todo.pop(0)
            yield queue
            todo += queue.children


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A property that the simulator does not cover.

    ``key``: the property without the prefix; ``instead``: the value that the simulator uses, without it.
    """

    key: str
    value: str
    what: str
    instead: str | None = None


def uncovered(settings: Mapping[str, str]) -> list[Uncovered]:
    """Return all properties (without their prefix) that the simulator does not cover, in their order.

    With each of them removed, or set to ``instead``, the simulator covers the configuration. Hadoop may still reject
    the result.
    """
    found = []
    for key, value in settings.items():
        text = value.strip()
        what, instead = "", None
        if (made := _MANAGED.fullmatch(key)) and settings.get(f"{made[1]}.queues", "").strip():
            # The children of this legacy auto-creating parent exist from the beginning (`CapacityFile.with_created`).
            continue
        for pattern, harmless, name in UNCOVERED:
            if text.lower() not in harmless and re.fullmatch(pattern, key):
                what = name
                break
        if not what and key == "resource-calculator" and text and text.rpartition(".")[2] not in _CALCULATORS:
            what = "another resource calculator"
        elif not what and key.startswith("root.") and key.endswith(".ordering-policy"):
            path = key.removesuffix(".ordering-policy")
            parent = path == "root" or any(name.strip() for name in settings.get(f"{path}.queues", "").split(","))
            if text and text not in _POLICIES[0 if parent else 1]:
                what = f"ordering policy {text}"
        elif not what and re.fullmatch(r"root(\..+)?\.(maximum-)?capacity", key) and _ABSOLUTE.search(value):
            parts = value[1:-1].split(",")
            if len(own := [part for part in parts if "/" not in part.partition("=")[0]]) < len(parts):
                what, instead = "other resources than memory and vcores", f"[{','.join(own)}]"
        if what:
            found.append(Uncovered(key, value, what, instead))
    return found


def properties(document: Any) -> dict[str, str | None]:
    """Read settings from an object or ``<configuration>`` XML, without the prefix; None removes one (objects only)."""
    if isinstance(document, str):
        try:
            tree = ET.fromstring(document.strip())
        except ET.ParseError as error:
            raise InputError(f"is not XML: {error}", where="capacity", hint="write <configuration>...") from error
        found: dict[str, Any] = {
            (entry.findtext("name") or "").strip(): entry.findtext("value") or "" for entry in tree.iter("property")
        }
    elif isinstance(document, dict):
        found = document
    else:
        raise InputError("is neither an object nor XML", where="capacity", hint='write {"root.queues": ...}')
    out: dict[str, str | None] = {}
    for key, value in found.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        out[key.removeprefix(PREFIX)] = None if value is None else str(value)
    return out


#: Patterns that Hadoop reads as an absolute capacity, and as one among several resources (none of which it then uses).
_ABSOLUTE = re.compile(r"^\[[A-Za-z0-9_.,\-=\\ /]+\]$")
_VECTOR = re.compile(r"^\[([A-Za-z0-9_.,\-%\\ /]+=[A-Za-z0-9_.,\-%\\ /]+)+\]$")
#: Units of resource amounts -> MiB (UnitsConversionUtil); an amount without a unit counts as it stands.
_UNITS = {"": 1, "Mi": 1, "Gi": 2**10, "Ti": 2**20, "Pi": 2**30}
_SMALL_UNITS = ("p", "n", "u", "m", "k", "M", "G", "T", "P", "Ki")
_HEX = re.compile(r"(-?)0[xX](.*)")
#: Sums of percentages may differ from 1 by this (AbstractParentQueue.PRECISION).
_PRECISION = 0.0005


class _Reader:
    """Parses property values like Hadoop: some are trimmed and some are not, and an empty value counts as unset."""

    def __init__(
        self, settings: Mapping[str, str], cluster: tuple[int, int], largest: tuple[int, int], dominant: bool
    ) -> None:
        self.settings = {key: text for key, text in settings.items() if text != ""}
        self.cluster, self.largest, self.dominant = cluster, largest, dominant

    def wrong(self, key: str, what: str, hint: str) -> InputError:
        return InputError(what, where=f"{PREFIX}{key}", hint=hint)

    def real(self, key: str, default: float) -> float:
        text = self.settings.get(key)
        if text is None:
            return float32(default)
        try:
            return parse_float(text)
        except ValueError:
            raise self.wrong(key, f"{text!r} is not a number", "write a decimal number") from None

    def whole(self, key: str, default: int) -> int:
        text = self.settings.get(key)
        if text is None:
            return default
        found = _HEX.fullmatch(text.strip())
        if found and _is_int(found[1] + found[2]):
            return int(found[1] + found[2], 16)
        return self._integer(key, text.strip())

    def parallel(self, key: str, default: int) -> int:
        """Return a max-parallel-apps value, which Hadoop neither trims nor reads as hexadecimal."""
        return self._integer(key, self.settings.get(key, str(default)))

    def _integer(self, key: str, text: str) -> int:
        try:
            return parse_int(text)
        except ValueError:
            raise self.wrong(key, f"{text!r} is not an integer", "write an integer") from None

    def flag(self, key: str, default: bool) -> bool:
        return parse_boolean(self.settings.get(key, "").strip(), default)

    def vector(self, key: str, text: str) -> tuple[int, int]:
        """Return amounts as CapacitySchedulerConfiguration does, which skips unknown resources and requires memory."""
        found = {"memory": 0, "vcores": 0}
        for part in text[1:-1].strip().split(","):
            name, equals, amount = part.partition("=")
            name = {"memory-mb": "memory"}.get(name.strip(), name.strip())
            if "/" in name:
                raise self.wrong(key, f"another resource, {name}: not covered", "write memory and vcores")
            if not equals or name not in found:
                continue
            amount = amount.partition("=")[0]
            unit = re.search(r"[A-Za-z]+$", amount)
            factor = _UNITS.get(unit[0] if unit else "")
            if unit and (unit[0] in _SMALL_UNITS or unit[0] in ("w", "W")):
                raise self.wrong(key, f"{part.strip()!r} is not covered", "write [memory=MB,vcores=N] in plain numbers")
            if factor is None:
                continue
            try:
                found[name] = parse_long(amount.removesuffix(unit[0] if unit else "")) * factor
            except ValueError:
                raise self.wrong(key, f"{part.strip()!r} is no amount", "write [memory=MB,vcores=N]") from None
        return (found["memory"], wrap_int(found["vcores"])) if found["memory"] != 0 else (0, 0)

    def queue(self, path: str, above: QueueConf | None) -> QueueConf:
        q = QueueConf(path)
        names = [name.strip() for name in self.settings.get(f"{path}.queues", "").split(",") if name.strip()]
        self._capacity(q, above is None)
        self._maximum(q, above)
        q.priority = self.whole(f"{path}.priority", 0)
        policy = self.settings.get(f"{path}.ordering-policy", above.policy if above and names else None)
        q.policy = policy.strip() if policy is not None else None
        known = _POLICIES[0] if names or above is None else _POLICIES[1]
        if q.policy is not None and q.policy not in known:
            raise self.wrong(f"{path}.ordering-policy", f"{q.policy!r} is not covered", f"write {' or '.join(known)}")
        q.sized = self.flag(f"{path}.ordering-policy.fair.enable-size-based-weight", False)
        for name, key in (
            ("user_limit", "minimum-user-limit-percent"),
            ("user_limit_factor", "user-limit-factor"),
            ("am_share", "maximum-am-resource-percent"),
        ):
            setattr(q, name, self.real(f"{path}.{key}", self.real(key, getattr(q, name))))
        if math.isinf(q.user_limit):
            raise self.wrong(f"{path}.minimum-user-limit-percent", "without end: not covered", "write 0 to 100")
        q.max_apps = self.whole(f"{path}.maximum-applications", -1)
        q.parallel = self.parallel(f"{path}.{_PARALLEL}", self.whole(_PARALLEL, JAVA_INT_MAX))
        q.largest = self._largest(path, above)
        q.state = self.settings.get(f"{path}.state", "RUNNING").upper()
        if q.state not in ("RUNNING", "STOPPED"):
            raise self.wrong(f"{path}.state", f"{q.state!r} is no state", "write RUNNING or STOPPED")
        q.children = [self.queue(f"{path}.{name}", q) for name in names]
        if q.children:
            self._children(q, above is None)
        return q

    def _capacity(self, q: QueueConf, root: bool) -> None:
        key = f"{q.path}.capacity"
        text = self.settings.get(key, "0")
        if root:
            q.capacity = 1.0
        if _ABSOLUTE.search(text):
            q.mode = "absolute"
            if not root:
                q.absolute = self.vector(key, text)
        elif text.endswith("w"):
            q.mode, q.weight = "weight", self._weight(key, text)
        elif not root and not _VECTOR.search(text.replace(" ", "")):
            value = self._number(key, text, text)
            if value < 0 or value > 100:
                raise self._out_of_range(key, text)
            q.capacity = float32(value / 100)

    def _weight(self, key: str, text: str) -> float:
        number = text[: text.index("w")]
        value = self._number(key, text, number)
        # The comparison is Hadoop's: NaN passes it without an effect, and a weight of -1 means that there is none.
        if (value < -1e-6 and abs(float32(value + 1)) > 1e-6) or value > MAX_WEIGHT:
            # The message is Hadoop's.
            raise self._out_of_range(key, f"Illegal weight={number}")
        return value

    def _number(self, key: str, text: str, number: str) -> float:
        try:
            return parse_float(number)
        except ValueError:
            raise self.wrong(key, f"{text!r} is no capacity", "write per cent, a weight (4w) or a vector") from None

    def _out_of_range(self, key: str, what: str) -> InputError:
        return self.wrong(key, f"{what} is out of range", "write 0 to 100 per cent, or a weight of 0w to 10000w")

    def _maximum(self, q: QueueConf, above: QueueConf | None) -> None:
        key = f"{q.path}.maximum-capacity"
        text = self.settings.get(key, "100")
        if _ABSOLUTE.search(text):
            q.absolute_maximum = self.vector(key, text)
        elif not _VECTOR.search(text.replace(" ", "")):
            # As in Hadoop, there is no check against the capacity or against 100, and -1 means unset.
            value = self.real(key, 100.0)
            q.maximum = 1.0 if value == -1 else float32(value / 100)
        top = above.absolute_maximum if above is not None else (0, 0)
        if top != (0, 0):
            if self._more(q.absolute_maximum, top):
                raise self.wrong(key, "is above its parent's", "lower it, or raise the parent's")
            if q.absolute_maximum == (0, 0) and q.absolute != (0, 0):
                q.absolute_maximum = top
        if q.absolute_maximum != (0, 0) and self._more(q.absolute, q.absolute_maximum):
            raise self.wrong(key, "is below the queue's capacity", "raise it, or lower the capacity")

    def _largest(self, path: str, above: QueueConf | None) -> tuple[int, int]:
        """Return the queue's own maximum, else its parent's (QueueAllocationSettings.setupMaximumAllocation)."""
        found = list(self.largest if above is None else above.largest)
        for at, name in enumerate(("mb", "vcores")):
            key = f"{path}.maximum-allocation-{name}"
            own = self.whole(key, -1)
            if own == -1:
                continue
            if own > self.largest[at]:
                site = f"yarn.scheduler.maximum-allocation-{name}"
                raise self.wrong(key, f"{own} is above {site} ({self.largest[at]})", "lower it, or raise that")
            found[at] = own
        return found[0], found[1]

    def _more(self, left: tuple[int, int], right: tuple[int, int]) -> bool:
        """Return whether `left` has more memory, or a larger dominant (then other) share (Resources.greaterThan)."""
        if not self.dominant:
            return left[0] > right[0]
        if 0 in self.cluster:
            return left != right and left[0] >= right[0] and left[1] >= right[1]
        shares = [sorted((x[0] / self.cluster[0], x[1] / self.cluster[1]), reverse=True) for x in (left, right)]
        return shares[0] > shares[1]

    def _kind(self, path: str, queues: list[QueueConf], root: bool) -> str:
        """Return the capacity type of children, or of a single queue.

        Follows AbstractParentQueue.getCapacityConfigurationTypeForQueues.
        """
        percent = weight = absolute = False
        for queue in queues:
            percent = percent or queue.capacity > 0
            weight = weight or queue.weight >= 0
            # Since Hadoop 3.5, amounts of zero also make the type absolute (YARN-11641).
            if queue.mode == "absolute":
                absolute, percent = True, False
        if not root and percent + weight + absolute > 1:
            raise self.wrong(f"{path}.queues", "mixes kinds of capacities", "write one kind under one parent")
        return "weight" if weight else "absolute" if absolute else "percent"

    def _children(self, q: QueueConf, root: bool) -> None:
        """Check a parent and its children as AbstractParentQueue.setChildQueues does."""
        kind, own = self._kind(q.path, q.children, False), self._kind(q.path, [q], root)
        if "absolute" in (kind, own):
            if kind != own and not root:
                raise self.wrong(f"{q.path}.queues", "are not absolute as their parent is", "write vectors throughout")
            total = (sum(child.absolute[0] for child in q.children), sum(child.absolute[1] for child in q.children))
            if q.absolute != (0, 0) and self._more(total, q.absolute):
                raise self.wrong(f"{q.path}.capacity", "is less than its children's", "raise it, or lower theirs")
        if kind != "percent":
            return
        parts = 0.0
        for child in q.children:
            parts = float32(parts + child.capacity)
        if self.flag(f"{q.path}.auto-create-child-queue.enabled", False):
            # The sum of auto-created children is not checked: it may be below 100 %, or above by Hadoop's tolerance.
            return
        zero = own != "percent" or self.flag(f"{q.path}.allow-zero-capacity-sum", False)
        if abs(1 - parts) > _PRECISION:
            if abs(parts) > _PRECISION or (abs(q.capacity) > _PRECISION and not zero):
                raise self.wrong(f"{q.path}.queues", f"sum to {parts * 100:g} per cent", "make them sum to 100")
        elif q.capacity == 0 and not zero:
            raise self.wrong(f"{q.path}.capacity", "is 0, and its children's are not", "raise it, or make theirs 0")


def _is_int(digits: str) -> bool:
    return re.fullmatch(r"-?[0-9a-fA-F]+", digits) is not None and -(2**31) <= int(digits, 16) < 2**31


def read_conf(
    settings: Mapping[str, str],
    cluster: tuple[int, int] = (0, 0),
    largest: tuple[int, int] = (JAVA_LONG_MAX, JAVA_INT_MAX),
) -> CapacityConf:
    """Return the scheduler's settings and its tree of queues.

    Parameters
    ----------
    settings
        Properties of capacity-scheduler.xml, without their prefix.
    cluster
        The nodes' total memory (MB) and vcores, by which dominant shares are compared.
    largest
        The scheduler's maximum allocation (MB, vcores), which a queue's own maximum may not exceed.

    Raises
    ------
    InputError
        Hadoop would refuse the settings, or the simulator does not cover them.
    """
    if left := uncovered(settings):
        listed = "; ".join(f"{PREFIX}{one.key} ({one.what})" for one in left[1:])
        more = f"; nor are {listed}" if listed else ""
        hint = "remove it" if not listed else "remove them"
        raise InputError(f"{left[0].what}: not covered by the simulator{more}", where=PREFIX + left[0].key, hint=hint)
    if not settings.get("root.queues"):
        raise InputError("no queues below root", where=f"{PREFIX}root.queues", hint="name at least one")
    given = settings.get("resource-calculator", "").strip() or "DefaultResourceCalculator"
    calculator = given.rpartition(".")[2]
    dominant = _CALCULATORS.get(calculator, False)
    reader = _Reader(settings, cluster, largest, dominant)
    if calculator not in _CALCULATORS:
        raise reader.wrong("resource-calculator", f"{calculator} is not covered", f"write {' or '.join(_CALCULATORS)}")
    return CapacityConf(
        root=reader.queue("root", None),
        dominant=dominant,
        look=reader.flag("reservations-continue-look-all-nodes", True),
        off_switch=reader.whole("per-node-heartbeat.maximum-offswitch-assignments", 1),
        multiple=reader.flag("per-node-heartbeat.multiple-assignments-enabled", True),
        containers=reader.whole("per-node-heartbeat.maximum-container-assignments", 100),
        system_apps=reader.whole("maximum-applications", 10_000),
        queue_apps=reader.whole("global-queue-max-application", -1),
        user_parallel=UserParallel(
            reader.whole(f"user.{_PARALLEL}", JAVA_INT_MAX),
            {m[1]: reader.parallel(m[0], 0) for m in map(_OF_USER.fullmatch, reader.settings) if m},
        ),
    )
