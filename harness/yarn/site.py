"""Find settings in yarn-site.xml that prevent a ResourceManager's start, limited to those that its scheduler reads.

The order follows ``ResourceManager.serviceInit``, ``ResourceUtils``, ``AbstractYarnScheduler`` and ``FairScheduler`` in
3.4.2 and 3.5.0; tests/oracle/test_site_files.py compares the results. `harness.yarn.capacity.loading` checks the
settings of yarn-site.xml that the Capacity Scheduler reads through its own configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from harness.base.errors import nearest
from harness.yarn.capacity.amounts import MEMORY, UNITS, VCORES, convert
from harness.yarn.capacity.monitors import MonitorCheck
from harness.yarn.capacity.properties import Site
from harness.yarn.capacity.settings import Settings, Unknown
from harness.yarn.fair.javanum import parse_long, trim, wrap_int
from harness.yarn.findings import Finding

Scheduler = Literal["capacity", "fair"]

_RM = "yarn.resourcemanager."
_CLASS = f"{_RM}scheduler.class"
_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler."
_SCHEDULERS: dict[Scheduler, str] = {
    "capacity": f"{_SCHEDULER}capacity.CapacityScheduler",
    "fair": f"{_SCHEDULER}fair.FairScheduler",
}
_HADOOP = "org.apache.hadoop."
TYPES = "yarn.resource-types"
#: A resource's name: a name space, a slash, a name.
_LETTERS = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_NAME = re.compile(rf"(?:(?:{_LETTERS}\.)*{_LETTERS}/)?[a-zA-Z][\w.-]*", re.ASCII)
_MANDATORY = ("memory", MEMORY, VCORES)
#: Hadoop's own resource types, which have no unit.
_SPECIAL = ("yarn.io/gpu", "yarn.io/fpga")
_COUNTABLE = "COUNTABLE"
_INCREMENT = re.compile(r"([0-9]+) ?([a-zA-Z]*)")
_INCREMENT_MB = "yarn.scheduler.increment-allocation-mb"
_INCREMENT_VCORES = "yarn.scheduler.increment-allocation-vcores"
_ATTEMPTS, _ALL_ATTEMPTS = f"{_RM}am.max-attempts", f"{_RM}am.global.max-attempts"
_EXPIRY = "yarn.nm.liveness-monitor.expiry-interval-ms"
_HEARTBEAT = f"{_RM}nodemanagers.heartbeat-interval-ms"
_HANDLER = f"{_RM}placement-constraints.handler"
_ITERATOR = f"{_RM}placement-constraints.algorithm.iterator"
_ITERATORS = ("SERIAL", "POPULAR_TAGS")
_LABELS, _LABELS_BY = "yarn.node-labels.enabled", "yarn.node-labels.configuration-type"
_LABELS_PROVIDER = f"{_RM}node-labels.provider"
_STORE = "yarn.scheduler.configuration.store.class"
_STORES = ("file", "memory", "leveldb", "zk", "fs")
_OPPORTUNISTIC = f"{_RM}opportunistic-container-allocation.enabled"
_DISTRIBUTED = "yarn.nodemanager.distributed-scheduling.enabled"
#: Numeric settings that a ResourceManager reads with either scheduler -> (default, type).
_NUMBERS: dict[str, tuple[float, str]] = {
    "yarn.scheduler.skip.node.multiplier": (3, "int"),
    f"{_RM}work-preserving-recovery.scheduling-wait-ms": (10_000, "long"),
    "yarn.cluster.max-application-priority": (0, "int"),
    f"{_RM}max-completed-applications": (1000, "int"),
}
_NUMBERS_OF: dict[Scheduler, dict[str, tuple[float, str]]] = {
    "capacity": {f"{_RM}activities-manager.cleanup-interval-ms": (60_000, "long")},
    "fair": {
        "yarn.scheduler.reservation-threshold.increment-multiple": (2, "float"),
        "yarn.scheduler.fair.continuous-scheduling-sleep-ms": (5, "int"),
        "yarn.scheduler.fair.locality.threshold.node": (-1, "float"),
        "yarn.scheduler.fair.locality.threshold.rack": (-1, "float"),
        "yarn.scheduler.fair.locality-delay-node-ms": (-1, "long"),
        "yarn.scheduler.fair.locality-delay-rack-ms": (-1, "long"),
        "yarn.scheduler.fair.max.assign": (-1, "int"),
        "yarn.scheduler.fair.reservable-nodes": (0.05, "float"),
        "yarn.scheduler.fair.update-interval-ms": (500, "long"),
    },
}


def check_site(values: Mapping[str, str], *, scheduler: Scheduler) -> list[Finding]:
    """Check the scheduler's settings of a yarn-site.xml.

    Parameters
    ----------
    values : Mapping[str, str]
        The properties of the file. A `harness.yarn.capacity.properties.Site` also contains their lines.
    scheduler : Scheduler
        The scheduler whose file is checked together with yarn-site.xml.

    Returns
    -------
    list[Finding]
        Findings that prevent the ResourceManager's start, sorted by line.
    """
    check = _Check(Site.of(values), scheduler)
    check.run()
    return sorted(check.findings, key=lambda found: found.line)


class _Check:
    def __init__(self, site: Site, scheduler: Scheduler) -> None:
        self.site, self.settings = site, Settings(site)
        self.scheduler: Scheduler = scheduler
        self.findings: list[Finding] = []
        self.unreadable: set[str] = set()

    def run(self) -> None:
        self._class()
        types = self._types()
        self._attempts()
        for key, (default, kind) in {**_NUMBERS, **_NUMBERS_OF[self.scheduler]}.items():
            self.number(key, default, kind)
        if self.scheduler == "fair":
            self._fair_limits(types)
            MonitorCheck(self.settings, None, self.number, lambda *said: self.refuse("YF107", *said)).run()
        else:
            self._one_of(_STORE, _STORES, "file", "configuration store")
        self._services()

    def refuse(self, code: str, key: str, what: str, hint: str) -> None:
        """Report a property, at its line."""
        self.findings.append(Finding(self.site.lines.get(key, 1), None, what, hint, code, file=self.site.source))

    def number(self, key: str, default: float, kind: str) -> float | None:
        """Read a number like Hadoop's getters; record a refusal and return None if Hadoop throws."""
        read: dict[str, Callable[[str], float]] = {
            "int": lambda name: self.settings.integer(name, int(default)),
            "long": lambda name: self.settings.long(name, int(default)),
            "float": lambda name: self.settings.real(name, default),
            "double": lambda name: self.settings.double(name, default),
        }
        try:
            return read[kind](key)
        except Unknown:
            return default
        except ValueError as error:
            if key not in self.unreadable:
                self.unreadable.add(key)
                wanted = "an integer" if kind in ("int", "long") else "a number"
                self.refuse("YF101", key, f"{key}: {error}", f"write {wanted}")
            return None

    def text(self, key: str, default: str = "") -> str:
        """Return a property's text; its default if it is not set, or refers to an unknown variable."""
        try:
            return self.settings.get(key, default) or ""
        except ValueError:
            return default

    # ---- the scheduler, and resources

    def _class(self) -> None:
        own = _SCHEDULERS[self.scheduler]
        name = self.text(_CLASS, own)
        if name in _SCHEDULERS.values() or name == f"{_SCHEDULER}fifo.FifoScheduler":
            return
        if trim(name).startswith(_HADOOP) or "." not in name:
            self.refuse("YF103", _CLASS, f"{name[:120]!r} is no scheduler of Hadoop's", f"write {own}")

    def _types(self) -> dict[str, str]:
        """Return resource type -> its unit, for the types that can be read."""
        found = {MEMORY: "Mi", VCORES: ""}
        names = self.settings.strings(TYPES)
        for name in dict.fromkeys(names):
            own = f"{TYPES}.{name}"
            if not name:
                self.refuse("YF106", TYPES, f"{TYPES} has an empty name", "remove the comma")
            elif not _NAME.fullmatch(name):
                what = f"{name[:60]!r} is no name of a resource"
                self.refuse("YF106", TYPES, what, "begin with a letter; write letters, digits, . - _ and one /")
            elif name in _MANDATORY:
                self.refuse("YF106", TYPES, f"{name} is always there: it cannot be defined again", "remove it")
            elif names.count(name) > 1:
                self.refuse("YF106", TYPES, f"{name} is named twice", "name it once")
            unit, kind = self.text(f"{own}.units"), self.text(f"{own}.type", _COUNTABLE)
            if kind != _COUNTABLE:
                self.refuse("YF106", f"{own}.type", f"{own}.type {kind[:40]!r} is none", f"write {_COUNTABLE}")
            if name in _SPECIAL and unit:
                self.refuse("YF106", f"{own}.units", f"{name} is counted: it has no unit {unit[:40]!r}", "remove it")
            for side in ("minimum", "maximum"):
                self.number(f"{own}.{side}-allocation", 0, "long")
            if name not in _MANDATORY:
                found[name] = unit
        for name, ending in ((MEMORY, "mb"), (VCORES, "vcores")):
            for side in ("minimum", "maximum"):
                given = self.number(f"{TYPES}.{name}.{side}-allocation", -1, "long")
                if given == -1:
                    self.number(f"yarn.scheduler.{side}-allocation-{ending}", 0, "long")
        return found

    def _attempts(self) -> None:
        attempts = self.number(_ATTEMPTS, 2, "int")
        if attempts is not None:
            every = self.number(_ALL_ATTEMPTS, attempts, "int")
            for key, value in ((_ATTEMPTS, attempts), (_ALL_ATTEMPTS, every)):
                if value is not None and value <= 0:
                    self.refuse("YF108", key, f"{key} {value:g}: no application could start", "write 1 or more")
                    break
        expiry, beat = self.number(_EXPIRY, 600_000, "int"), self.number(_HEARTBEAT, 1000, "long")
        if expiry is not None and beat is not None and expiry < beat:
            key = _EXPIRY if _EXPIRY in self.site else _HEARTBEAT
            what = f"{_EXPIRY} {expiry:.0f} is below {_HEARTBEAT} {beat:.0f}: every node would count as lost"
            self.refuse("YF108", key, what, "raise the first, or lower the second")

    def _fair_limits(self, types: Mapping[str, str]) -> None:
        for ending, (least, most) in (("mb", (1024, 8192)), ("vcores", (1, 4))):
            low_key, high_key = (f"yarn.scheduler.{side}-allocation-{ending}" for side in ("minimum", "maximum"))
            low, high = self.number(low_key, least, "int"), self.number(high_key, most, "int")
            if low is not None and high is not None and (low < 0 or low > high):
                key = low_key if low_key in self.site else high_key
                what = f"{low_key} {low:g} must be at least 0 and at most {high_key} {high:g}"
                self.refuse("YF102", key, what, "lower the minimum, or raise the maximum")
        for name, own, kind in ((MEMORY, _INCREMENT_MB, "long"), (VCORES, _INCREMENT_VCORES, "int")):
            key = f"{TYPES}.{name}.increment-allocation"
            if key not in self.site:
                key = own
                amount = self.number(own, 1, kind)
            else:
                amount = self._increment(key, types[name])
            if amount is not None and name == VCORES:
                amount = wrap_int(int(amount))
            if amount is not None and amount <= 0:
                self.refuse("YF108", key, f"{key} {amount:g}: containers grow in steps above 0", "write 1 or more")
        for name, unit in types.items():
            if name not in _MANDATORY:
                self._increment(f"{TYPES}.{name}.increment-allocation", unit)

    def _increment(self, key: str, unit: str) -> float | None:
        if key not in self.site:
            return None
        text = self.text(key)
        try:
            parts = _INCREMENT.fullmatch(text)
            if parts is None:
                raise ValueError("it is not of the form amount unit")
            amount = parse_long(parts[1])
            if not parts[2] or parts[2] == unit:
                return amount
            if parts[2] not in UNITS or unit not in UNITS:
                raise ValueError(f"there is no unit {parts[2] if parts[2] not in UNITS else unit!r}")
            return convert(amount, parts[2], unit)
        except ValueError as error:
            self.refuse("YF108", key, f"{key} {text[:40]!r}: {error}", "write an integer, or 1024 Mi")
            return None

    # ---- further services that read these settings

    def _services(self) -> None:
        delegated = self.settings.flag(_LABELS) and self.text(_LABELS_BY) == "delegated-centralized"
        if delegated and not self.text(_LABELS_PROVIDER):
            what = f"{_LABELS_BY} delegated-centralized needs a class that knows the nodes' labels"
            self.refuse("YF108", _LABELS_BY, what, f"set {_LABELS_PROVIDER}, or write centralized")
        if self.text(_HANDLER, "disabled") == "placement-processor":
            self._one_of(_ITERATOR, _ITERATORS, _ITERATORS[0], "iterator")
        if self.settings.flag(_DISTRIBUTED) and not self.settings.flag(_OPPORTUNISTIC):
            what = f"{_DISTRIBUTED} is true, and {_OPPORTUNISTIC} is not"
            self.refuse("YF108", _DISTRIBUTED, what, f"set {_OPPORTUNISTIC} to true, or remove the first")

    def _one_of(self, key: str, names: tuple[str, ...], default: str, what: str) -> None:
        text = self.text(key, default)
        if text not in names:
            close = nearest(trim(text), names) or default
            self.refuse("YF108", key, f"{key}: there is no {what} {text[:40]!r}", f"write {close}")
