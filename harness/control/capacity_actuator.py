"""The capacities that a controller owns in a Capacity Scheduler's configuration, and everybody else's properties.

It does what `harness.control.file_actuator.FileActuator` does for an allocation file: the administrator's values are
the *baseline*, what the controller put there is *managed*, and a value that is neither is somebody else's edit. Values
are the properties' texts, so that they go back as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.base.errors import InputError
from harness.control.actuator import BaseActuator, Drift, Prepared
from harness.control.file_actuator import FileActuator
from harness.control.gate import refused, unlike
from harness.control.values import Values
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Attributes
from harness.model.queues import ROOT, AllocationFile, cluster_parts
from harness.model.resources import Resource
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import Capacity, CapacityQueue, filled, is_by_hand, queue_tree, read_capacity
from harness.yarn.capacity.source import Configuration, ConfigurationSource, FileSource
from harness.yarn.capacity.steering import CAPACITY, MAXIMUM, PRIORITY, WRITTEN, Steering
from harness.yarn.capacity.traps import Trap, find_traps
from harness.yarn.errors import Refused
from harness.yarn.files import ConfigStore, always
from harness.yarn.findings import Finding
from harness.yarn.queue_answers import SchedulerStatus
from harness.yarn.rmclient import RmClient
from harness.yarn.validation import check_properties


@dataclass(frozen=True, slots=True)
class PreparedCapacities(Prepared):
    """Properties that are ready to be written. ``in_force``: the settings that the RM will then show, by queue."""

    changes: Mapping[str, str | None] = field(default_factory=dict)


def _checked_values(values: Mapping[str, Any]) -> Values:
    read_capacity(values[CAPACITY], "the administrator's")
    return dict(values)


def _checked_managed(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {str(name): list(found) for name, found in values.items()}


@dataclass(slots=True)
class CapacityActuator(BaseActuator):
    """One configuration, its baseline and what is ours in it; attributes are properties."""

    place: ConfigurationSource
    PARTS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {"baseline": _checked_values, "ours": _checked_managed}
    ATTRIBUTES: ClassVar[tuple[str, ...]] = WRITTEN
    SHARE: ClassVar[str] = CAPACITY
    #: Its RM's release and the traps found there; None: to be asked for.
    _trapped: tuple[tuple[int, int], tuple[Trap, ...]] | None = field(default=None, init=False)
    _now: Configuration | None = field(default=None, init=False)
    _tree: dict[str, CapacityQueue] = field(default_factory=dict, init=False)
    _cluster: Resource = field(default=Resource(), init=False)
    #: The administrator's own properties that were checked last, and the mistakes in them.
    _verdict: tuple[dict[str, str], list[Finding]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if any(not values.keys() <= set(WRITTEN) for values in self.baseline.values()):
            raise InputError(
                "the ledger belongs to a Fair Scheduler's allocation file",
                hint="give another ledger for the Capacity Scheduler",
            )

    def read(self, *, words_lost: bool = False) -> list[Drift]:
        """Looks at the configuration: new queues join the baseline, others' edits are found.

        ``words_lost``: another controller wrote it, and what that said last is lost: a value may be its own.
        Raises InputError or Unreachable when it cannot be read or makes no sense; nothing is remembered then.
        """
        now = self.place.read()
        # The mark alone would not do: a ResourceManager with the memory store counts from 1 again once it restarts.
        if self._now is not None and now.mark is not None and now == self._now:
            return []
        tree = queue_tree(now.values, source=self.place.name)
        self._now, self._tree, self._trapped = now, tree, None
        for gone in sorted(self.baseline.keys() - tree.keys()):
            self._depart(gone)
        found: list[Drift] = []
        stands = _present_values(tree, now)
        for path, present in stands.items():
            if path not in self.baseline and self._returned(path, present[CAPACITY]) is not None:
                # The capacity is of the time when it went.
                found.append(Drift(path, CAPACITY, str(present[CAPACITY])))
            found += self._reclaim(path, present)
            known = self.baseline.setdefault(path, {CAPACITY: present[CAPACITY]})
            unknown = words_lost and not self.managed.get(path, {}).get(CAPACITY)
            if unknown and present[CAPACITY] not in (None, known[CAPACITY]):
                # What differs from the entitlement is found foreign below.
                self.managed.setdefault(path, {})[CAPACITY] = [known[CAPACITY]]
        return found + self._merge(stands, words_lost=words_lost)

    def _by_hand(self, share: Any) -> bool:
        return share is None or is_by_hand(share)

    def _limit_by_hand(self, attribute: str, value: Any) -> bool:
        return attribute != MAXIMUM or is_by_hand(value)

    def _unite(self, stands: Mapping[str, Values]) -> list[Drift]:
        found: list[Drift] = []
        wrong = {one.queue for one in self._check_own()}
        if not wrong:
            return found
        wrong -= {one.queue for one in refused(check_properties(self._configuration().values, source="").errors)}
        concerned = {self._tree[path].parent for path in wrong if path in self._tree} | wrong
        for parent in [queue for queue in self._tree.values() if queue.path in concerned]:
            for child in parent.children:
                share, managed = stands[child][CAPACITY], self.managed.get(child, {})
                if CAPACITY in managed and share != self.baseline[child][CAPACITY]:
                    self.baseline[child][CAPACITY] = share
                    del managed[CAPACITY]
                    found.append(Drift(child, CAPACITY, str(share), taken=True))
        return found

    def _own_values(self) -> dict[str, str]:
        """All properties as the administrator has them."""
        return self._with(
            {
                f"{PREFIX}{path}.{key}": value
                for path, due in self._restored(_present_values(self._tree, self._configuration())).items()
                for key, value in due.items()
            }
        )

    def _with(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        """All properties with these changed."""
        values = {**self._configuration().values, **changes}
        return {name: value for name, value in values.items() if value is not None}

    def _check_own(self) -> list[Finding]:
        """What a ResourceManager would refuse of the administrator's own properties."""
        own = self._own_values()
        if self._verdict is None or self._verdict[0] != own:
            self._verdict = own, refused(check_properties(own, source=self.place.name).errors)
        return self._verdict[1]

    def _own_refusals(self) -> tuple[str, ...]:
        return _lines(self._check_own())

    def problems_of(self, prepared: Prepared) -> tuple[str, ...]:
        """Say why a ResourceManager would refuse what is prepared, beside what it refuses in any case."""
        assert isinstance(prepared, PreparedCapacities)
        errors = check_properties(self._with(prepared.changes), source="").errors
        return _lines(unlike(errors, check_properties(self._own_values(), source="").errors) if errors else [])

    def _configuration(self) -> Configuration:
        if self._now is None:
            raise InputError("the configuration was not read", where=self.place.name)
        return self._now

    def _steering(self) -> Steering:
        return Steering(self._tree, self._configuration().values, self.baseline, self._cluster, self.place.name)

    def configured_weights(self) -> dict[str, float]:
        """The administrator's shares: of each queue its part of the cluster, in percent.

        Weights, percentages and MiB of different parents have no common unit; parts of the cluster have.
        """
        steering = self._steering()
        own = {path: steering.capacity(path).entitlement for path in self._tree if path != ROOT}
        parts = cluster_parts({path: queue.children for path, queue in self._tree.items()}, own, 100.0)
        return {path: min(max(parts[path], WEIGHT_MIN), WEIGHT_MAX) for path in self.baseline if path in parts}

    def min_shares(self) -> dict[str, Resource]:
        """None: what the Capacity Scheduler guarantees is the share itself."""
        return {}

    def max_shares(self, capacity: Resource) -> dict[str, Resource]:
        """The administrator's maximum shares of queues of which the controller has written one."""
        self._cluster = capacity
        steering = self._steering()
        return {
            path: Resource(*(int(amount * steering.most(path)) for amount in (capacity.memory_mb, capacity.vcores)))
            for path, values in self.baseline.items()
            if MAXIMUM in values
        }

    def name_queues(self, leaves: Mapping[str, bool], now_s: float) -> None:
        """Queues that the RM made by itself keep their template's capacity: nothing is to be named."""

    def prepare(self, attributes: Attributes) -> PreparedCapacities:
        """The properties with these attributes, as of the last `read`. InputError where they cannot be expressed."""
        self.generation += 1
        wanted = self._steering().wanted(attributes)
        changes = self._changes(wanted.values)
        before, after = self.place.shown(self._configuration(), changes)
        problems = tuple(wanted.problems)
        return PreparedCapacities(before, after, AllocationFile(), wanted.in_force, (), problems, changes)

    def original(self) -> PreparedCapacities:
        """The properties with the administrator's own values wherever the controller had written others."""
        filled = self._filled() if self.refusals() else {}
        for path, share in filled.items():
            self.baseline[path][CAPACITY] = share
            self._refusals = None
        changes = self._changes({})
        before, after = self.place.shown(self._configuration(), changes)
        steering = self._steering()
        in_force = {path: steering.capacity(path).entitlement for path in self.baseline if path in self._tree}
        problems = _filled_in_words(filled)
        return PreparedCapacities(before, after, AllocationFile(), in_force, problems=problems, changes=changes)

    def _filled(self) -> dict[str, str]:
        """Capacities for those queues that have ours, where the administrator's own no longer go together.

        He has taken queues away, or given others more, without changing the capacities of their siblings. What he wrote
        stays, and the siblings share what is left in the ratio of their own capacities. Nothing is returned where that
        does not make a document with fewer mistakes.
        """
        steering, found = self._steering(), {}
        for parent in self._tree.values():
            managed = [child for child in parent.children if self.managed.get(child, {}).get(CAPACITY)]
            old = {child: steering.capacity(child) for child in parent.children}
            if managed and any(one.queue == parent.path for one in self._check_own()):
                above = Capacity("percent", 100.0) if parent.path == ROOT else steering.capacity(parent.path)
                found.update(filled(old, managed, above))
        changes = {f"{PREFIX}{path}.{CAPACITY}": text for path, text in found.items()}
        after = {**self._own_values(), **changes}
        fewer = len(refused(check_properties(after, source="").errors)) < len(self._check_own())
        return found if fewer else {}

    def write(self, prepared: Prepared, still: Callable[[], None] = always) -> None:
        """Sets prepared properties, unless somebody else was faster (FileChanged). ``still``: as for
        `ConfigStore.write`. Raises InputError."""
        assert isinstance(prepared, PreparedCapacities)
        if prepared.changed:
            try:
                self._now = self.place.write(prepared.changes, self._configuration(), still)
            except InputError:
                # Whatever is there now is looked at anew.
                self._now = None
                raise
        self._settle()

    def write_groups(self, prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
        """Write what is prepared group by group, where it was refused as a whole; which were refused, and why."""
        assert isinstance(prepared, PreparedCapacities)
        groups: dict[str, dict[str, str | None]] = {}
        for name, value in prepared.changes.items():
            queue = name.removeprefix(PREFIX).rpartition(".")[0]
            groups.setdefault(queue.rpartition(".")[0], {})[name] = value
        refused: dict[str, str] = {}
        for parent, changes in groups.items():
            try:
                self._now = self.place.write(changes, self.place.read(), still)
            except Refused as error:
                refused[parent] = error.line()
        return refused

    def _changes(self, wanted: Mapping[str, Values]) -> dict[str, str | None]:
        """What brings the properties from what we wrote before to what is wanted."""
        stands = _present_values(self._tree, self._configuration())
        return {
            f"{PREFIX}{path}.{key}": value
            for path, due in self._due(wanted, stands)
            for key, value in due.items()
            if value != stands[path][key]
        }

    def recognise_by(self, recognise: Callable[[], None]) -> None:
        """Call this before a store is read or changed; it raises where that is another cluster's."""
        self.place.recognise = recognise

    @property
    def beside(self) -> ConfigStore | None:
        """The place beside which a lease is kept; None: a store has none."""
        return self.place.place if isinstance(self.place, FileSource) else None

    def present(self) -> dict[str, float]:
        """The capacities that stand there, whoever wrote them, as of the last `read`."""
        now = Steering(self._tree, self._configuration().values, {}, self._cluster, self.place.name)
        return {path: now.capacity(path).entitlement for path in self._tree if path != ROOT}

    def traps(self, client: RmClient, hadoop: tuple[int, int]) -> tuple[Trap, ...]:
        """Dangers of steering this cluster; asked of the RM when its configuration or its release has changed."""
        if self._trapped is None or self._trapped[0] != hadoop:
            try:
                site = client.rest.properties()
            except Refused:
                site = {}
            self._trapped = hadoop, find_traps(self._without_lifts(), site, self._tree, hadoop)
        return self._trapped[1]

    def _without_lifts(self) -> dict[str, str]:
        """The properties, with the administrator's priorities: the controller's own are no danger."""
        values = dict(self._configuration().values)
        for path, managed in self.managed.items():
            name = f"{PREFIX}{path}.{PRIORITY}"
            if PRIORITY in managed and name in values:
                del values[name]
                if (before := self.baseline[path].get(PRIORITY)) is not None:
                    values[name] = before
        return values

    def touch(self) -> None:
        """Nothing: the Capacity Scheduler looks at its configuration when it is told to."""

    def load(self, client: RmClient) -> None:
        """Makes the RM go by what was written."""
        self.place.load(client)

    def confirm(self, client: RmClient, wanted: Mapping[str, float], *, timeout_s: float, every_s: float) -> None:
        """Waits until the RM has these capacities. Raises NotEffective."""
        client.confirm_settings(wanted, timeout_s=timeout_s, every_s=every_s)

    def in_force(self, client: RmClient) -> dict[str, float]:
        """The capacities that the RM has, as numbers."""
        queues = client.rest.scheduler().queues
        return {path: queue.setting for path, queue in queues.items() if queue.setting is not None}

    def differences(self, status: SchedulerStatus) -> dict[str, str]:
        """Say, by queue, which of our maximum capacities and priorities the ResourceManager shows otherwise."""
        found: dict[str, str] = {}
        values = self._configuration().values
        for path, managed in self.managed.items():
            shown = status.queues.get(path)
            if shown is None or path not in self._tree:
                continue
            most, priority = (values.get(f"{PREFIX}{path}.{key}") for key in (MAXIMUM, PRIORITY))
            if MAXIMUM in managed and shown.maximum_capacity is not None and not (most or "").strip().startswith("["):
                wanted = read_capacity(most, path).value if most is not None else 100.0
                if not math.isclose(shown.maximum_capacity, wanted, rel_tol=1e-5, abs_tol=1e-5):
                    found[path] = f"its maximum capacity is {shown.maximum_capacity:g}, not {wanted:g}"
            if PRIORITY in managed and str(shown.priority) != (priority or "0").strip():
                found[path] = f"its priority is {shown.priority}, not {priority or 0}"
        return found

    def _stands(self) -> dict[str, Values]:
        now = self.place.read()
        return _present_values(queue_tree(now.values, source=self.place.name), now)

    def _look_anew(self) -> None:
        self._now = None


def _present_values(tree: Collection[str], now: Configuration) -> dict[str, Values]:
    """What a configuration says of its queues but the root."""
    return {
        path: {key: now.values.get(f"{PREFIX}{path}.{key}") for key in WRITTEN} for path in sorted({*tree} - {ROOT})
    }


def _filled_in_words(filled: Mapping[str, str]) -> tuple[str, ...]:
    if not filled:
        return ()
    shown = ", ".join(f"{path} {text}" for path, text in list(filled.items())[:5])
    more = f" and {len(filled) - 5} more" if len(filled) > 5 else ""
    return (f"the capacities of the queues that are left do not go together, they were filled up to {shown}{more}",)


def _lines(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Findings in words; properties of a configuration have no line."""
    return tuple(dict.fromkeys((f"{one.queue}: " if one.queue else "") + f"{one.what}; {one.hint}" for one in findings))


def open_actuator(
    place: ConfigStore | ConfigurationSource, document: Callable[[str], Any]
) -> FileActuator | CapacityActuator:
    """The actuator of what is kept at a place, going on from what a ledger has kept (``document``: by name)."""
    if isinstance(place, ConfigurationSource):
        return CapacityActuator.restored(place, document)
    return FileActuator.restored(place, document)
