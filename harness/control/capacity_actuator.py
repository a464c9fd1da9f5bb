"""The actuator of the Capacity Scheduler: manages capacities in its configuration and leaves other properties alone.

The counterpart of `harness.control.file_actuator.FileActuator`: the administrator's values are the *baseline*, values
written by the controller are *managed*, and any other value is somebody else's edit. Values are the properties' texts,
so they are restored exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from harness.base.errors import InputError
from harness.control.actuator import BaseActuator, Prepared
from harness.control.gate import refused, unlike
from harness.control.known_traps import KnownTraps
from harness.control.ownership import Drift
from harness.control.values import IsManaged, Values, checked_texts
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Attributes, ResourceName
from harness.model.queues import ROOT, cluster_parts
from harness.model.resources import Resource
from harness.yarn.capacity.properties import PREFIX, as_written
from harness.yarn.capacity.queues import (
    Capacity,
    CapacityQueue,
    filled,
    is_by_hand,
    queue_tree,
    read_capacity,
    read_maximum,
)
from harness.yarn.capacity.source import Configuration, ConfigurationSource, FileSource, RestoredValues
from harness.yarn.capacity.steering import (
    CAPACITY,
    MAXIMUM,
    PRIORITY,
    WRITTEN,
    Steering,
    counts_dominant,
    moved_resources,
)
from harness.yarn.capacity.traps import Trap, find_traps
from harness.yarn.errors import Refused
from harness.yarn.files import ConfigStore, always
from harness.yarn.findings import Finding
from harness.yarn.queue_answers import CAPACITY as CAPACITY_SCHEDULER
from harness.yarn.rmclient import RmClient
from harness.yarn.validation import check_properties


@dataclass(frozen=True, slots=True)
class PreparedCapacities(Prepared):
    """Properties that are ready to be written.

    ``in_force`` maps each queue to the settings that the RM will show afterwards.
    """

    changes: Mapping[str, str | None] = field(default_factory=dict)


def _checked_values(values: Mapping[str, Any]) -> Values:
    read_capacity(values[CAPACITY], "the administrator's")
    return dict(values)


def _checked_managed(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {str(name): list(found) for name, found in values.items()}


@dataclass(slots=True)
class CapacityActuator(BaseActuator):
    """One configuration with its baseline and managed properties."""

    store: ConfigurationSource
    #: Queue -> property -> the bytes between the tags of the administrator's value, decoded as latin-1. Only properties
    #: whose bytes do not follow from the value have an entry (CDATA sections, character references, comments).
    texts: dict[str, dict[str, str | None]] = field(default_factory=dict)
    PARTS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "baseline": _checked_values,
        "ours": _checked_managed,
        "texts": checked_texts,
    }
    ATTRIBUTES: ClassVar[tuple[str, ...]] = WRITTEN
    SHARE: ClassVar[str] = CAPACITY
    scheduler: ClassVar[str] = CAPACITY_SCHEDULER
    values_name: ClassVar[str] = "capacities"
    # CapacityScheduler.reinitialize checks what it loads as it does when it starts.
    load_validates: ClassVar[bool] = True
    loaded_otherwise: ClassVar[str] = "by `yarn rmadmin -refreshQueues`"
    _traps: KnownTraps = field(default_factory=KnownTraps, init=False)
    _now: Configuration | None = field(default=None, init=False)
    _tree: dict[str, CapacityQueue] = field(default_factory=dict, init=False)
    _cluster: Resource = field(default=Resource(), init=False)
    #: The administrator's properties that `_check_own` validated last, and the mistakes found in them.
    _verdict: tuple[dict[str, str], list[Finding]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if any(not values.keys() <= set(WRITTEN) for values in self.baseline.values()):
            raise InputError(
                "the ledger belongs to a Fair Scheduler's allocation file",
                hint="give another ledger for the Capacity Scheduler",
            )

    def _read(self, *, words_lost: bool) -> list[Drift]:
        now = self.store.read()
        # Comparing the version mark is not enough: with the memory store it restarts at 1 after an RM restart.
        if self._now is not None and now.mark is not None and now == self._now:
            return []
        tree = queue_tree(now.values, source=self.store.name)
        # In the order of the previous configuration, as far as it is known.
        known_before = dict.fromkeys((*self._tree, *self.baseline))
        self._now, self._tree = now, tree
        self._traps.forget()
        gone = [path for path in known_before if path in self.baseline and path not in tree]
        for path in gone:
            self._depart(path)
        found: list[Drift] = []
        stands = _present_values(tree, now)
        chosen = set() if words_lost else self._chosen_since_return(stands)
        for path, present in stands.items():
            if path not in self.baseline and (kept := self._returned(path, present[CAPACITY])) is not None:
                # The queue reappeared with the capacity that it had when it was removed.
                self._texts(path).update(kept.get("texts", {}))
                found.append(Drift(path, CAPACITY, str(present[CAPACITY])))
            found += self._reclaim(path, present, chosen)
        found += self._newcomers(stands, gone)
        for path, present in stands.items():
            known = self.baseline.setdefault(path, {CAPACITY: present[CAPACITY]})
            unknown = words_lost and not self.managed.get(path, {}).get(CAPACITY)
            if unknown and present[CAPACITY] not in (None, known[CAPACITY]):
                # A difference from the entitlement is reported as drift below.
                self.managed.setdefault(path, {})[CAPACITY] = [known[CAPACITY]]
        found += self._same_shares(stands)
        found += self._merge(stands, words_lost=words_lost)
        self._take_texts(stands)
        return found

    def _texts(self, path: str) -> dict[str, str | None]:
        return self.texts.setdefault(path, {})

    def _take_texts(self, stands: Mapping[str, Values]) -> None:
        """Remember how the administrator has written those of the present values that are the administrator's."""
        contents = self._configuration().contents
        for path, present in stands.items():
            for key, value in present.items():
                name, managed = f"{PREFIX}{path}.{key}", self.managed.get(path, {}).get(key, [])
                if value is None or (value in managed and value != self.baseline[path].get(key)):
                    continue
                self.texts.get(path, {}).pop(key, None)
                if name in contents:
                    self._texts(path)[key] = contents[name]
        self.texts = {path: kept for path, kept in self.texts.items() if kept}

    def _as_written(self, path: str, key: str, value: str | None, kept: Mapping[str, Any] | None = None) -> str | None:
        """Return a value to be written, in the administrator's notation (`PropertyText`) if the value is theirs.

        ``kept``: the stored entry of a queue that was removed, which holds that queue's values.
        """
        own = self.baseline.get(path, {}) if kept is None else kept["baseline"]
        texts = self.texts.get(path, {}) if kept is None else kept.get("texts", {})
        content = texts.get(key)
        return value if value is None or content is None or value != own.get(key) else as_written(value, content)

    def _same_shares(self, stands: Mapping[str, Values]) -> list[Drift]:
        """Recognise a share of the controller whose text somebody else has changed.

        Somebody may have written the same number in another notation. In a capacity of absolute resources, somebody may
        have changed the amount of a resource that the controller does not manage, such as GPUs. Such an amount becomes
        the administrator's, and the managed amounts stay managed.
        """
        moved, found = self._steering().moved(), []
        for path, managed in self.managed.items():
            ours, text = managed.get(CAPACITY, []), stands.get(path, {}).get(CAPACITY)
            if not ours or text is None or text in ours or text == self.baseline[path][CAPACITY]:
                continue
            now = read_capacity(text, path)
            if not any(_same_share(now, value, moved) for value in ours):
                continue
            managed[CAPACITY] = [text]
            own_text = self.baseline[path][CAPACITY]
            if own_text is not None and read_capacity(own_text, path) == now:
                # The text is the administrator's previous number in another notation.
                self.baseline[path][CAPACITY] = text
                continue
            own = None if own_text is None else read_capacity(own_text, path).amounts
            if own is None or now.amounts is None:
                continue
            others = {name: amount for name, amount in now.amounts.items() if name not in moved}
            if others == {name: amount for name, amount in own.items() if name not in moved}:
                continue
            amounts = {**{name: amount for name, amount in own.items() if name in moved}, **others}
            self.baseline[path][CAPACITY] = Capacity("absolute", amounts=amounts).text()
            shown = ", ".join(f"{name}={amount}" for name, amount in others.items()) or "nothing besides"
            found.append(Drift(path, CAPACITY, f"{text}: {shown} is kept"))
        return found

    def _stands_and_managed(self) -> tuple[dict[str, Values], IsManaged]:
        """Return the present values, and a predicate that recognises a managed capacity in any notation.

        Amounts of resources that the controller does not manage are ignored by the comparison.
        """
        configuration = self.store.read()
        moved = moved_resources(configuration.values)

        def is_managed(attribute: str, value: Any, values: Collection[Any]) -> bool:
            if value in values or attribute != CAPACITY or value is None:
                return value in values
            now = read_capacity(value, "the present")
            return any(_same_share(now, other, moved) for other in values)

        return self._present(configuration), is_managed

    def counted_resource(self) -> ResourceName:
        """Return ``dominant`` under every calculator except Hadoop's default one, which compares memory only."""
        return "dominant" if counts_dominant(self.store.read().values) else "memory"

    def _by_hand(self, share: Any) -> bool:
        return share is None or is_by_hand(share)

    def _changed_by_hand(self, groups: Mapping[str, Mapping[str, object]], stands: Mapping[str, Values]) -> set[str]:
        """Like `BaseActuator._changed_by_hand`, but a group with a sum that no controller writes counts as a person's.

        Without a lease, another controller with other entitlements may have written other sums. It writes all groups at
        once, so if any group looks computed, no group counts as a person's.
        """
        found = {parent for parent in groups if self._has_persons_sum(parent, stands)}
        found |= BaseActuator._changed_by_hand(self, groups, stands)
        return found if self.leased or found == groups.keys() else set()

    def _has_persons_sum(self, parent: str, stands: Mapping[str, Values]) -> bool:
        """Return whether the children's present memory sums to another amount than a controller divides.

        A controller divides the administrator's total for the children, or their parent's present memory if this is
        less, exactly to the last MiB. A single amount shows nothing, because a controller writes whole MiB as a person
        does.
        """
        steering, children = self._steering(), self._tree[parent].children
        own = [steering.capacity(child) for child in children]
        now = [read_capacity(stands[child][CAPACITY], child) for child in children]
        if any(one.amounts is None for one in (*own, *now)):
            return False
        whole, above = sum(one.entitlement for one in own), self._tree[parent].capacity
        whole = whole if above.amounts is None else min(whole, above.entitlement)
        return sum(one.entitlement for one in now) != whole

    def _limit_by_hand(self, attribute: str, value: Any) -> bool:
        return attribute != MAXIMUM or is_by_hand(value)

    def _unite(self, stands: Mapping[str, Values]) -> list[Drift]:
        found = self._cut_to_maxima()
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

    def _cut_to_maxima(self) -> list[Drift]:
        """Limit the administrator's absolute resources to maxima that have since been lowered below them.

        Whoever lowered a maximum saw only the controller's values, which are within it.
        """
        before, own = len(self._check_own()), self._own_values()
        cut: dict[str, str] = {}
        for path, managed in self.managed.items() if before else ():
            has, limit = own.get(f"{PREFIX}{path}.{CAPACITY}"), read_maximum(own.get(f"{PREFIX}{path}.{MAXIMUM}"))
            if not managed.get(CAPACITY) or has is None or limit is None or not limit.amounts:
                continue
            amounts = read_capacity(has, path).amounts or {}
            lower = {name: min(amount, limit.amounts.get(name) or amount) for name, amount in amounts.items()}
            if lower != amounts:
                cut[path] = Capacity("absolute", amounts=lower).text()
        known = {path: values.get(CAPACITY) for path, values in self.baseline.items()}
        if cut:
            self._own_shares(cut)
            # The children's capacities must fit into the lowered capacity of their parent.
            below = self._filled() if self._check_own() else {}
            self._own_shares(below)
            if len(self._check_own()) < before:
                texts = {path: f"{text}, its maximum-capacity" for path, text in cut.items()}
                texts |= {path: f"{text}, its part of the parent's" for path, text in below.items()}
                return [Drift(path, CAPACITY, text, taken=True) for path, text in texts.items()]
            self._own_shares(known)
        return []

    def _own_shares(self, shares: Mapping[str, str | None]) -> None:
        """Set the administrator's shares of some queues."""
        for path, text in shares.items():
            self.baseline[path][CAPACITY] = text

    def _own_values(self) -> dict[str, str]:
        """Return all properties with the administrator's values in place of managed ones."""
        return self._with(
            {
                f"{PREFIX}{path}.{key}": value
                for path, due in self._restored(_present_values(self._tree, self._configuration())).items()
                for key, value in due.items()
            }
        )

    def _with(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        """Return all properties with the given changes applied."""
        values = {**self._configuration().values, **changes}
        return {name: value for name, value in values.items() if value is not None}

    def _check_own(self) -> list[Finding]:
        """Find what a ResourceManager would refuse in the administrator's own properties."""
        own = self._own_values()
        if self._verdict is None or self._verdict[0] != own:
            self._verdict = own, refused(check_properties(own, source=self.store.name).errors)
        return self._verdict[1]

    def _own_content(self) -> dict[str, str]:
        return self._own_values()

    def _own_refusals(self) -> tuple[str, ...]:
        return _lines(self._check_own())

    def problems_of(self, prepared: Prepared) -> tuple[str, ...]:
        """Describe why a ResourceManager would refuse the prepared properties.

        Reasons that also apply to the administrator's own properties are left out.
        """
        assert isinstance(prepared, PreparedCapacities)
        errors = check_properties(self._with(prepared.changes), source="").errors
        return _lines(unlike(errors, check_properties(self._own_values(), source="").errors) if errors else [])

    def _configuration(self) -> Configuration:
        if self._now is None:
            raise InputError("the configuration was not read", where=self.store.name)
        return self._now

    def _steering(self) -> Steering:
        return Steering(self._tree, self._configuration().values, self.baseline, self._cluster, self.store.name)

    def configured_weights(self) -> dict[str, float]:
        """Return the administrator's shares, each as a percentage of the cluster.

        Weights, percentages and MiB below different parents have no common unit; percentages of the cluster are
        comparable.
        """
        steering = self._steering()
        own = {path: steering.capacity(path).entitlement for path in self._tree if path != ROOT}
        parts = cluster_parts(own, 100.0)
        return {path: min(max(parts[path], WEIGHT_MIN), WEIGHT_MAX) for path in self.baseline if path in parts}

    def min_shares(self) -> dict[str, Resource]:
        """Return nothing: in the Capacity Scheduler the guaranteed minimum is the capacity itself."""
        return {}

    @property
    def creating(self) -> frozenset[str]:
        """The parents whose children the RM creates itself."""
        return frozenset(path for path, queue in self._tree.items() if queue.fixed)

    def max_shares(self, capacity: Resource) -> dict[str, Resource]:
        """Return the administrator's maximum shares of queues whose maximum the controller has written."""
        self._cluster = capacity
        steering = self._steering()
        return {
            path: Resource(*(int(amount * steering.most(path)) for amount in (capacity.memory_mb, capacity.vcores)))
            for path, values in self.baseline.items()
            if MAXIMUM in values
        }

    def name_queues(self, leaves: Mapping[str, bool], now_s: float) -> None:
        """Do nothing: queues that the RM created by itself keep the capacity of their template."""

    def prepare(self, attributes: Attributes) -> PreparedCapacities:
        """Prepare properties with these attributes, based on the last `read`. InputError if that is impossible."""
        self.generation += 1
        wanted = self._steering().wanted(attributes)
        changes = self._changes(wanted.values)
        before, after = self.store.shown(self._configuration(), changes)
        problems = tuple(wanted.problems)
        return PreparedCapacities(before, after, wanted.in_force, problems=problems, changes=changes)

    def original(self) -> PreparedCapacities:
        """Prepare properties with the administrator's values in place of all managed ones."""
        filled = self._filled() if self.refusals() else {}
        for path, share in filled.items():
            self.baseline[path][CAPACITY] = share
            self._refusals = None
        changes = self._changes({})
        before, after = self.store.shown(self._configuration(), changes)
        steering = self._steering()
        in_force = {path: steering.capacity(path).entitlement for path in self.baseline if path in self._tree}
        problems = _filled_in_words(filled)
        return PreparedCapacities(before, after, in_force, problems=problems, changes=changes)

    def opened_on(self, place: ConfigStore, document: Callable[[str], object]) -> Self:
        """Like `BaseActuator.opened_on`."""
        return type(self).restored(FileSource(place), document)

    def restore_written(self, still: Callable[[], None] = always) -> RestoredValues | None:
        """Put the administrator's values back in a file of which the rest is not understood."""
        if not isinstance(self.store, FileSource):
            return None
        known = {path: (kept.get("ours", {}), kept["baseline"]) for path, kept in self.departed.items()}
        known |= {path: (managed, self.baseline[path]) for path, managed in self.managed.items()}
        away = {path: kept for path, kept in self.departed.items() if path not in self.managed}
        values = {
            f"{PREFIX}{path}.{key}": (written, self._as_written(path, key, own.get(key), away.get(path)))
            for path, (managed, own) in known.items()
            for key, written in managed.items()
        }
        return self.store.restore(values, still)

    def _filled(self) -> dict[str, str]:
        """Compute capacities for managed queues whose original capacities no longer add up to their parent's.

        This happens when the administrator removes queues or raises some capacities without adjusting the siblings. The
        values that the administrator wrote are kept, and the managed siblings share the rest in the ratio of their own
        capacities. Returns nothing if the result would not have fewer mistakes.
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
        """Write prepared properties; FileChanged if somebody else changed the configuration since the last read.

        For ``still`` see `ConfigStore.write`. Raises InputError.
        """
        assert isinstance(prepared, PreparedCapacities)
        if prepared.changed:
            try:
                self._now = self.store.write(prepared.changes, self._configuration(), still)
            except InputError:
                # The present state is unknown: read it again.
                self._now = None
                raise
        self._settle()

    def write_groups(self, prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
        """Write prepared changes one sibling group at a time; return the refused groups' parents with the reason."""
        assert isinstance(prepared, PreparedCapacities)
        groups: dict[str, dict[str, str | None]] = {}
        for name, value in prepared.changes.items():
            queue = name.removeprefix(PREFIX).rpartition(".")[0]
            groups.setdefault(queue.rpartition(".")[0], {})[name] = value
        refused: dict[str, str] = {}
        for parent, changes in groups.items():
            try:
                self._now = self.store.write(changes, self.store.read(), still)
            except Refused as error:
                refused[parent] = error.line()
        return refused

    def _changes(self, wanted: Mapping[str, Values]) -> dict[str, str | None]:
        """Return the changes that turn the present properties into the wanted ones."""
        stands = _present_values(self._tree, self._configuration())
        changes = {
            f"{PREFIX}{path}.{key}": self._as_written(path, key, value)
            for path, due in self._due(wanted, stands)
            for key, value in due.items()
            if value != stands[path][key]
        }
        return changes | self._left_behind()

    def _left_behind(self) -> dict[str, str | None]:
        """Return the administrator's values of properties that removed queues have left in the file.

        Who takes a queue off its parent's list often leaves its properties there. Without this, the queue would come
        back with a controller's share when it is listed again. A store removes a queue with its properties, and accepts
        none of a queue that it does not have.
        """
        if not isinstance(self.store, FileSource):
            return {}
        values, found = self._configuration().values, dict[str, str | None]()
        for path, kept in self.departed.items():
            if path in self._tree:
                continue
            for key, written in kept.get("ours", {}).items():
                name, own = f"{PREFIX}{path}.{key}", kept["baseline"].get(key)
                if values.get(name, own) != own and values[name] in written:
                    found[name] = self._as_written(path, key, own, kept)
        return found

    def recognise_by(self, recognise: Callable[[], None]) -> None:
        """Set a check that runs before a store is read or changed; it raises if another cluster answers."""
        self.store.recognise = recognise

    @property
    def beside(self) -> ConfigStore | None:
        """The file beside which the lease is kept; None for a store, which has no lease."""
        return self.store.store if isinstance(self.store, FileSource) else None

    def present(self) -> dict[str, float]:
        """Return the present capacities as of the last `read`, no matter who wrote them."""
        now = Steering(self._tree, self._configuration().values, {}, self._cluster, self.store.name)
        return {path: now.capacity(path).entitlement for path in self._tree if path != ROOT}

    def traps(self, client: RmClient, hadoop: tuple[int, int]) -> tuple[Trap, ...]:
        """Find the traps of controlling this cluster; the RM's answers are cached until `forget_traps`."""
        return self._traps.of(client, hadoop, lambda site: find_traps(self._without_lifts(), site, self._tree, hadoop))

    def forget_traps(self) -> None:
        """Query the RM again at the next `traps`."""
        self._traps.forget()

    def _without_lifts(self) -> dict[str, str]:
        """Return the properties with the administrator's priorities: the controller's own priorities are no trap."""
        values = dict(self._configuration().values)
        for path, managed in self.managed.items():
            name = f"{PREFIX}{path}.{PRIORITY}"
            if PRIORITY in managed and name in values:
                del values[name]
                if (before := self.baseline[path].get(PRIORITY)) is not None:
                    values[name] = before
        return values

    def touch(self) -> None:
        """No-op: the Capacity Scheduler reads its configuration only on a refresh."""

    def load(self, client: RmClient) -> None:
        """Make the RM load the written configuration."""
        self.store.load(client)

    def confirm(self, client: RmClient, wanted: Mapping[str, float], *, timeout_s: float, every_s: float) -> None:
        """Wait until the RM shows these capacities. Raises NotEffective."""
        client.confirm_settings(wanted, timeout_s=timeout_s, every_s=every_s)

    def in_force(self, client: RmClient) -> dict[str, float]:
        """Return the capacities that are in force in the RM."""
        queues = client.rest.scheduler().queues
        return {path: queue.setting for path, queue in queues.items() if queue.setting is not None}

    def differences(self, client: RmClient) -> dict[str, str]:
        """Describe, by queue, managed maximum capacities and priorities that the ResourceManager shows differently."""
        status, found = client.rest.scheduler(), dict[str, str]()
        values = self._configuration().values
        for path, managed in self.managed.items():
            shown = status.queues.get(path)
            if shown is None or path not in self._tree:
                continue
            most, priority = (values.get(f"{PREFIX}{path}.{key}") for key in (MAXIMUM, PRIORITY))
            if MAXIMUM in managed and shown.maximum_capacity is not None and not (most or "").strip().startswith("["):
                limit = read_maximum(most)
                wanted = 100.0 if limit is None else limit.value
                if not math.isclose(shown.maximum_capacity, wanted, rel_tol=1e-5, abs_tol=1e-5):
                    found[path] = f"its maximum capacity is {shown.maximum_capacity:g}, not {wanted:g}"
            if PRIORITY in managed and str(shown.priority) != (priority or "0").strip():
                found[path] = f"its priority is {shown.priority}, not {priority or 0}"
        return found

    def _stands(self) -> dict[str, Values]:
        return self._present(self.store.read())

    def _present(self, configuration: Configuration) -> dict[str, Values]:
        return _present_values(queue_tree(configuration.values, source=self.store.name), configuration)

    def _look_anew(self) -> None:
        self._now = None


def _present_values(tree: Collection[str], now: Configuration) -> dict[str, Values]:
    """Return the values of all queues except the root in a configuration."""
    return {
        path: {key: now.values.get(f"{PREFIX}{path}.{key}") for key in WRITTEN} for path in sorted({*tree} - {ROOT})
    }


def _same_share(one: Capacity, text: str | None, moved: Collection[str]) -> bool:
    """Return whether a capacity equals the one in ``text`` in the resources that the controller manages (``moved``)."""
    try:
        other = read_capacity(text, "the controller's")
    except InputError:
        return False
    if one.amounts is None or other.amounts is None:
        return one == other
    return all(one.amounts.get(name) == other.amounts.get(name) for name in moved)


def _filled_in_words(filled: Mapping[str, str]) -> tuple[str, ...]:
    if not filled:
        return ()
    shown = ", ".join(f"{path} {text}" for path, text in list(filled.items())[:5])
    more = f" and {len(filled) - 5} more" if len(filled) > 5 else ""
    return (f"the capacities of the queues that are left do not go together, they were filled up to {shown}{more}",)


def _lines(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Describe findings, one line each; properties have no line numbers."""
    return tuple(dict.fromkeys((f"{one.queue}: " if one.queue else "") + f"{one.what}; {one.hint}" for one in findings))
