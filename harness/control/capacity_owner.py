"""The capacities that a controller owns in a Capacity Scheduler's configuration, and everybody else's properties.

As `harness.control.owner.FileOwner` does for an allocation file: the administrator's values are the *baseline*, what
the controller put there is *ours*, and a value that is neither is somebody else's edit. Values are the properties'
texts, so that they go back as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import InputError
from harness.control.events import Attributes
from harness.control.owner import FileOwner, Foreign, Prepared, others_edits
from harness.control.values import Nonsense, come_back, depart
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import ROOT, AllocationFile
from harness.model.resources import Resource
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import CapacityQueue, queue_tree, read_capacity
from harness.yarn.capacity.source import Configuration, ConfigurationSource, FileSource
from harness.yarn.capacity.steering import CAPACITY, MAXIMUM, PRIORITY, WRITTEN, Steering
from harness.yarn.capacity.traps import Trap, find_traps
from harness.yarn.errors import Refused
from harness.yarn.files import AllocationPlace, always
from harness.yarn.rmclient import RmClient


@dataclass(frozen=True, slots=True)
class PreparedCapacities(Prepared):
    """Properties that are ready to be written. ``in_force``: the settings that the RM will then show, by queue."""

    changes: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(slots=True)
class CapacityOwner:
    """One configuration, its baseline and what is ours in it (queue -> property -> text; None: not there)."""

    source: ConfigurationSource
    baseline: dict[str, dict[str, Any]] = field(default_factory=dict)
    ours: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    #: Queues that have gone -> their baseline and what was ours, for when they come back as they went.
    departed: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Its RM's release and the traps found there; None: to be asked for.
    _trapped: tuple[tuple[int, int], tuple[Trap, ...]] | None = field(default=None, init=False)
    _now: Configuration | None = field(default=None, init=False)
    _tree: dict[str, CapacityQueue] = field(default_factory=dict, init=False)
    _cluster: Resource = field(default=Resource(), init=False)

    def __post_init__(self) -> None:
        if any(not values.keys() <= set(WRITTEN) for values in self.baseline.values()):
            raise InputError(
                "the ledger belongs to a Fair Scheduler's allocation file",
                mend="give another ledger for the Capacity Scheduler",
            )

    def read(self, *, words_lost: bool = False) -> list[Foreign]:
        """Looks at the configuration: new queues join the baseline, others' edits are found.

        ``words_lost``: another controller wrote it, and what that said last is lost: a value may be its own.
        Raises InputError or Unreachable when it cannot be read or makes no sense; nothing is remembered then.
        """
        now = self.source.read()
        # The mark alone would not do: a ResourceManager with the memory store counts from 1 again once it restarts.
        if self._now is not None and now.mark is not None and now == self._now:
            return []
        tree = queue_tree(now.values, source=self.source.name)
        self._now, self._tree, self._trapped = now, tree, None
        for gone in sorted(self.baseline.keys() - tree.keys()):
            kept = {"baseline": self.baseline.pop(gone), "ours": self.ours.pop(gone, {})}
            if kept["ours"]:
                depart(self.departed, gone, kept)
        found: list[Foreign] = []
        for path in sorted(tree.keys() - {ROOT}):
            if path not in self.baseline:
                said = self._said(path, CAPACITY)
                if (back := come_back(self.departed, path, CAPACITY, said)) is not None:
                    # The capacity is of the time when it went.
                    self.baseline[path], self.ours[path] = back["baseline"], back["ours"]
                    found.append(Foreign(path, CAPACITY, str(said)))
            known = self.baseline.setdefault(path, {CAPACITY: self._said(path, CAPACITY)})
            says = {key: self._said(path, key) for key in WRITTEN}
            unknown = words_lost and not self.ours.get(path, {}).get(CAPACITY)
            if unknown and says[CAPACITY] not in (None, known[CAPACITY]):
                # What differs from the entitlement is found foreign below.
                self.ours.setdefault(path, {})[CAPACITY] = [known[CAPACITY]]
            found += others_edits(path, says, known, self.ours.get(path, {}), CAPACITY, words_lost=words_lost)
        return found

    def _said(self, path: str, key: str) -> str | None:
        return None if self._now is None else self._now.values.get(f"{PREFIX}{path}.{key}")

    def _configuration(self) -> Configuration:
        if self._now is None:
            raise InputError("the configuration was not read", where=self.source.name)
        return self._now

    def _steering(self) -> Steering:
        return Steering(self._tree, self._configuration().values, self.baseline, self._cluster, self.source.name)

    def configured_weights(self) -> dict[str, float]:
        """The administrator's shares: of each queue its part of the cluster, in percent.

        Weights, percentages and MiB of different parents have no common unit; parts of the cluster have.
        """
        parts, steering = {ROOT: 100.0}, self._steering()
        for parent in self._tree.values():
            if parent.path not in parts or not parent.children:
                continue
            own = {child: steering.capacity(child).entitlement for child in parent.children}
            whole = sum(own.values()) or 1.0
            parts.update({child: parts[parent.path] * value / whole for child, value in own.items()})
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
        wanted = self._steering().wanted(attributes)
        changes = self._changes(wanted.values)
        before, after = self.source.shown(self._configuration(), changes)
        problems = tuple(wanted.problems)
        return PreparedCapacities(before, after, AllocationFile(), wanted.in_force, (), problems, changes)

    def original(self) -> PreparedCapacities:
        """The properties with the administrator's own values wherever the controller had written others."""
        changes = self._changes({})
        before, after = self.source.shown(self._configuration(), changes)
        steering = self._steering()
        in_force = {path: steering.capacity(path).entitlement for path in self.baseline if path in self._tree}
        return PreparedCapacities(before, after, AllocationFile(), in_force, changes=changes)

    def write(self, prepared: Prepared, still: Callable[[], None] = always) -> None:
        """Sets prepared properties, unless somebody else was faster (FileChanged). ``still``: as for
        `AllocationPlace.write`. Raises InputError."""
        assert isinstance(prepared, PreparedCapacities)
        if prepared.changed:
            try:
                self._now = self.source.write(prepared.changes, self._configuration(), still)
            except InputError:
                # Whatever is there now is looked at anew.
                self._now = None
                raise
        for attributes in self.ours.values():
            for values in attributes.values():
                del values[:-1]

    def _changes(self, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, str | None]:
        """What brings the properties from what we wrote before to what is wanted."""
        changes: dict[str, str | None] = {}
        for path in {**wanted, **self.ours}:
            if path not in self._tree:
                continue
            ours, known = self.ours.setdefault(path, {}), self.baseline[path]
            for key in WRITTEN:
                value: str | None = wanted.get(path, {}).get(key)
                if value is not None:
                    known.setdefault(key, self._said(path, key))
                elif key in ours:
                    value = known.get(key)
                else:
                    continue
                mine = ours.setdefault(key, [self._said(path, key)])
                if mine[-1] != value:
                    mine.append(value)
                if value != self._said(path, key):
                    changes[f"{PREFIX}{path}.{key}"] = value
        return changes

    @property
    def beside(self) -> AllocationPlace | None:
        """The place beside which a lease is kept; None: a store has none."""
        return self.source.place if isinstance(self.source, FileSource) else None

    def present(self) -> dict[str, float]:
        """The capacities that stand there, whoever wrote them, as of the last `read`."""
        now = Steering(self._tree, self._configuration().values, {}, self._cluster, self.source.name)
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
        for path, ours in self.ours.items():
            name = f"{PREFIX}{path}.{PRIORITY}"
            if PRIORITY in ours and name in values:
                del values[name]
                if (before := self.baseline[path].get(PRIORITY)) is not None:
                    values[name] = before
        return values

    def touch(self) -> None:
        """Nothing: the Capacity Scheduler looks at its configuration when it is told to."""

    def load(self, client: RmClient) -> None:
        """Makes the RM go by what was written."""
        self.source.load(client)

    def confirm(self, client: RmClient, wanted: Mapping[str, float], *, timeout_s: float, every_s: float) -> None:
        """Waits until the RM has these capacities. Raises NotEffective."""
        client.confirm_settings(wanted, timeout_s=timeout_s, every_s=every_s)

    def in_force(self, client: RmClient) -> dict[str, float]:
        """The capacities that the RM has, as numbers."""
        queues = client.rest.scheduler().queues
        return {path: queue.setting for path, queue in queues.items() if queue.setting is not None}

    def document(self) -> dict[str, Any]:
        """Whose the values are: what a ledger keeps (`restored`), and others are told (`adopt`)."""
        return {"baseline": self.baseline, "ours": self.ours, "departed": self.departed}

    def forget(self) -> None:
        """The configuration is the administrator's: what is read next are the entitlements.

        Queues that have gone from it are not given back: they may return with a controller's capacities.
        """
        self.baseline.clear()
        self.ours.clear()
        self._now = None

    def adopt(self, document: Mapping[str, Any], *, lives: bool = False) -> None:
        """Goes on from what another controller says of the configuration, whether or not that one still ``lives``.

        What the configuration shows otherwise is the administrator's; not while that controller lives, which writes its
        capacities again over somebody's edit. Raises Nonsense, and what reading raises; nothing is adopted then.
        """
        try:
            baseline = {str(path): dict(values) for path, values in document["baseline"].items()}
            ours = {str(p): {str(k): list(v) for k, v in values.items()} for p, values in document["ours"].items()}
            departed = {
                str(path): {"baseline": dict(kept["baseline"]), "ours": {k: list(v) for k, v in kept["ours"].items()}}
                for path, kept in document.get("departed", {}).items()
            }
            for path, values in (*baseline.items(), *((path, kept["baseline"]) for path, kept in departed.items())):
                read_capacity(values[CAPACITY], path)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Nonsense(error) from None
        if not lives:
            self._hold_against_file(baseline, ours)
        self.baseline, self.ours, self.departed, self._now = baseline, ours, departed, None

    def _hold_against_file(self, baseline: dict[str, dict[str, Any]], ours: dict[str, dict[str, list[Any]]]) -> None:
        """What stands there and was not a controller's is the administrator's. Who is away may come back as it went."""
        now = self.source.read().values
        for path in queue_tree(now, source=self.source.name).keys() & baseline.keys():
            for key, values in list(ours.get(path, {}).items()):
                if now.get(f"{PREFIX}{path}.{key}") not in values:
                    del ours[path][key]
                    baseline[path].pop(key, None)
            if CAPACITY not in ours.get(path, {}):
                baseline[path][CAPACITY] = now.get(f"{PREFIX}{path}.{CAPACITY}")


def owner_of(place: AllocationPlace | ConfigurationSource, document: Callable[[str], Any]) -> FileOwner | CapacityOwner:
    """The owner of what is kept at a place, going on from what a ledger has kept (``document``: by name)."""
    if isinstance(place, ConfigurationSource):
        baseline, ours, departed = (document(name) or {} for name in ("baseline", "ours", "departed"))
        return CapacityOwner(place, baseline, ours, departed)
    return FileOwner.restored(place, document)
