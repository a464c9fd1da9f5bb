"""capacity-scheduler.xml as the simulator reads it: a tree of queues and the scheduler's own settings.

Refused, as Hadoop refuses them: sums, mixtures, states, policies that it does not load. Refused by name besides: what
the simulator does not cover (`UNCOVERED`).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import InputError
from harness.model.queues import JAVA_INT_MAX
from harness.yarn.fair.javanum import float32, parse_float, parse_int

PREFIX = "yarn.scheduler.capacity."

#: (pattern of a key without its prefix, values that ask for nothing, what it is)
UNCOVERED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (r"root(\..+)?\.accessible-node-labels(\..+)?", ("", "*"), "node labels"),
    (r"root(\..+)?\.default-node-label-expression", ("",), "node labels"),
    (r"root(\..+)?\.auto-create-child-queue\.enabled", ("false",), "auto-created queues"),
    (r"root(\..+)?\.auto-queue-creation-v2\.enabled", ("false",), "auto-created queues"),
    (r"root(\..+)?\.user-settings\..+", ("1", "1.0"), "weights of users"),
    (r"root(\..+)?\.maximum-allocation(-mb|-vcores)?", (), "a queue's maximum allocation"),
    (r"root(\..+)?\.default-application-priority", ("0",), "a queue's default application priority"),
    (r"root(\..+)?\.multi-node-sorting-policy(\..+)?|multi-node-placement-enabled", ("false",), "multi-node placement"),
    (r"schedule-asynchronously\.enable", ("false",), "asynchronous scheduling"),
    (r"lazy-preemption-enabled", ("false",), "lazy preemption"),
    (r"legacy-queue-mode\.enabled", ("true",), "the new queue mode"),
)
_CALCULATORS = {"DefaultResourceCalculator": False, "DominantResourceCalculator": True}
_PARALLEL = "max-parallel-apps"
_OF_USER = re.compile(rf"user\.(.+)\.{_PARALLEL}")
#: The largest weight that Hadoop takes.
MAX_WEIGHT = 10_000.0


@dataclass(slots=True)
class QueueConf:
    """A queue as configured. Capacities in parts of 1, vectors as (MB, vcores); float32 values."""

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
    state: str = "RUNNING"


@dataclass(slots=True)
class UserParallel:
    """How many applications of one user may run side by side."""

    default: int
    own: dict[str, int]

    def of(self, user: str) -> int:
        """The user's own number, else everybody's."""
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
        """All queues, parents before their children."""
        todo = [self.root]
        while todo:
            queue = todo.pop(0)
            yield queue
            todo += queue.children


def properties(document: Any) -> dict[str, str | None]:
    """Settings from an object or from ``<configuration>`` XML, without the prefix; None removes one (objects only)."""
    if isinstance(document, str):
        try:
            tree = ET.fromstring(document.strip())
        except ET.ParseError as error:
            raise InputError(f"is not XML: {error}", where="capacity", mend="write <configuration>...") from error
        found: dict[str, Any] = {
            (entry.findtext("name") or "").strip(): (entry.findtext("value") or "").strip()
            for entry in tree.iter("property")
        }
    elif isinstance(document, dict):
        found = document
    else:
        raise InputError("is neither an object nor XML", where="capacity", mend='write {"root.queues": ...}')
    out: dict[str, str | None] = {}
    for key, value in found.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        out[key.removeprefix(PREFIX)] = None if value is None else str(value).strip()
    return out


class _Reader:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings

    def wrong(self, key: str, what: str, mend: str) -> InputError:
        return InputError(what, where=f"{PREFIX}{key}", mend=mend)

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
        try:
            return parse_int(text)
        except ValueError:
            raise self.wrong(key, f"{text!r} is not an integer", "write an integer") from None

    def flag(self, key: str, default: bool) -> bool:
        return {"true": True, "false": False}.get(self.settings.get(key, "").lower(), default)

    def vector(self, key: str, text: str) -> tuple[int, int]:
        found: dict[str, int] = {}
        for part in text.strip("[] ").split(","):
            name, _, amount = part.partition("=")
            name = {"memory-mb": "memory"}.get(name.strip(), name.strip())
            if name not in ("memory", "vcores") or not re.fullmatch(r"\s*\d+\s*", amount):
                raise self.wrong(key, f"{part.strip()!r} is not covered", "write [memory=MB,vcores=N] in plain numbers")
            found[name] = int(amount)
        return found.get("memory", 0), found.get("vcores", 0)

    def queue(self, path: str, above: QueueConf | None) -> QueueConf:
        q = QueueConf(path)
        names = [name.strip() for name in self.settings.get(f"{path}.queues", "").split(",") if name.strip()]
        if above is not None:
            self._capacity(q)
            self._maximum(q, above)
        q.priority = self.whole(f"{path}.priority", 0)
        q.policy = self.settings.get(f"{path}.ordering-policy", above.policy if above and names else None)
        known = ("utilization", "priority-utilization") if names or above is None else ("fifo", "fair")
        if q.policy is not None and q.policy not in known:
            raise self.wrong(f"{path}.ordering-policy", f"{q.policy!r} is not covered", f"write {' or '.join(known)}")
        q.sized = self.flag(f"{path}.ordering-policy.fair.enable-size-based-weight", False)
        for name, key in (
            ("user_limit", "minimum-user-limit-percent"),
            ("user_limit_factor", "user-limit-factor"),
            ("am_share", "maximum-am-resource-percent"),
        ):
            setattr(q, name, self.real(f"{path}.{key}", self.real(key, getattr(q, name))))
        q.max_apps = self.whole(f"{path}.maximum-applications", -1)
        q.parallel = self.whole(f"{path}.{_PARALLEL}", self.whole(_PARALLEL, JAVA_INT_MAX))
        q.state = self.settings.get(f"{path}.state", "RUNNING").upper()
        if q.state not in ("RUNNING", "STOPPED"):
            raise self.wrong(f"{path}.state", f"{q.state!r} is no state", "write RUNNING or STOPPED")
        q.children = [self.queue(f"{path}.{name}", q) for name in names]
        self._sums(q)
        return q

    def _capacity(self, q: QueueConf) -> None:
        key = f"{q.path}.capacity"
        text = self.settings.get(key, "0")
        if text.startswith("["):
            q.mode, q.absolute = "absolute", self.vector(key, text)
            return
        weighted = text.endswith("w")
        try:
            value = parse_float(text.removesuffix("w"))
        except ValueError:
            raise self.wrong(key, f"{text!r} is no capacity", "write per cent, a weight (4w) or a vector") from None
        # As Hadoop compares: NaN is let pass (it counts for nothing), and a weight of -1 says that there is none.
        if not (weighted and value == -1) and (value < 0 or value > (MAX_WEIGHT if weighted else 100)):
            # Hadoop's words, where they tell which of the two it is.
            what = f"Illegal weight={text.removesuffix('w')} is out of range" if weighted else f"{text} is out of range"
            raise self.wrong(key, what, "write 0 to 100 per cent, or a weight of 0w to 10000w")
        if weighted:
            q.mode, q.weight = "weight", value
        else:
            q.capacity = float32(value / 100)

    def _maximum(self, q: QueueConf, above: QueueConf) -> None:
        key = f"{q.path}.maximum-capacity"
        text = self.settings.get(key, "100")
        if text.startswith("["):
            q.absolute_maximum = self.vector(key, text)
        else:
            # As Hadoop takes it: nothing is checked, below the capacity or above 100, and -1 says that there is none.
            value = self.real(key, 100.0)
            q.maximum = 1.0 if value == -1 else float32(value / 100)
        if q.absolute_maximum == (0, 0) and q.absolute != (0, 0):
            q.absolute_maximum = above.absolute_maximum
        low, high = q.absolute, q.absolute_maximum
        if high != (0, 0) and low != (0, 0) and (low[0] > high[0] or low[1] > high[1]):
            raise self.wrong(key, "is below the queue's capacity", "raise it, or lower the capacity")

    def _sums(self, q: QueueConf) -> None:
        if not q.children:
            return
        modes = {child.mode for child in q.children}
        # A queue of 0 per cent may stand beside any other.
        if len(modes) > 1 and {c.mode for c in q.children if c.mode != "percent" or c.capacity > 0} != {"percent"}:
            raise self.wrong(f"{q.path}.queues", "mixes kinds of capacities", "write one kind under one parent")
        total = 0.0
        for child in q.children:
            total = float32(total + child.capacity)
        if modes == {"percent"} and abs(total - 1) > 0.0005 and not (total == 0 and q.capacity == 0):
            raise self.wrong(f"{q.path}.queues", f"sum to {total * 100:g} per cent", "make them sum to 100")
        if q.mode == "absolute" and modes != {"absolute"}:
            raise self.wrong(f"{q.path}.queues", "are not absolute as their parent is", "write vectors throughout")
        if "absolute" in modes and q.absolute != (0, 0):
            sums = [sum(child.absolute[k] for child in q.children) for k in (0, 1)]
            if sums[0] > q.absolute[0] or sums[1] > q.absolute[1]:
                raise self.wrong(f"{q.path}.capacity", "is less than its children's", "raise it, or lower theirs")


def read_conf(settings: Mapping[str, str]) -> CapacityConf:
    """The tree and the settings; InputError where Hadoop would refuse them, or where they are not covered."""
    for key, value in settings.items():
        for pattern, harmless, what in UNCOVERED:
            if value.lower() not in harmless and re.fullmatch(pattern, key):
                raise InputError(f"{what}: not covered by the simulator", where=PREFIX + key, mend="remove it")
    reader = _Reader(settings)
    if not settings.get("root.queues"):
        raise InputError("no queues below root", where=f"{PREFIX}root.queues", mend="name at least one")
    calculator = settings.get("resource-calculator", "DefaultResourceCalculator").rpartition(".")[2]
    if calculator not in _CALCULATORS:
        raise reader.wrong("resource-calculator", f"{calculator} is not covered", f"write {' or '.join(_CALCULATORS)}")
    return CapacityConf(
        root=reader.queue("root", None),
        dominant=_CALCULATORS[calculator],
        look=reader.flag("reservations-continue-look-all-nodes", True),
        off_switch=reader.whole("per-node-heartbeat.maximum-offswitch-assignments", 1),
        multiple=reader.flag("per-node-heartbeat.multiple-assignments-enabled", True),
        containers=reader.whole("per-node-heartbeat.maximum-container-assignments", 100),
        system_apps=reader.whole("maximum-applications", 10_000),
        queue_apps=reader.whole("global-queue-max-application", -1),
        user_parallel=UserParallel(
            reader.whole(f"user.{_PARALLEL}", JAVA_INT_MAX),
            {m[1]: reader.whole(m[0], 0) for m in map(_OF_USER.fullmatch, settings) if m},
        ),
    )
