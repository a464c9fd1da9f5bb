"""Client, actuator and observer for the fair-sharing weights of a cohort's ClusterQueues.

Fields: ``kueue.x-k8s.io/v1beta1`` ClusterQueue, ``spec.cohort``, ``spec.fairSharing.weight`` (a Kubernetes quantity, 1
if absent), ``spec.resourceGroups[].flavors[].resources[].nominalQuota``, ``status.flavorsUsage`` and
``status.pendingWorkloads``. A write replaces the whole object and carries the ``resourceVersion`` that was read, so the
API server refuses it (409) if another client changed the object in between.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar
from urllib.parse import quote

from harness.base.errors import CallError, InputError
from harness.control.actuator import BaseActuator, Prepared
from harness.control.events import Observed
from harness.control.identity import ClusterFacts
from harness.control.interfaces import Document, Entitlements, ObserverContext, Scalar
from harness.control.ownership import Drift
from harness.control.values import Values, entitlement, is_round
from harness.ledger.accounts import AppObservation
from harness.model.plan import Attributes
from harness.model.queues import ROOT
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.yarn.capacity.traps import Trap
from harness.yarn.errors import Refused
from harness.yarn.files import ConfigStore, FileChanged, always
from harness.yarn.http import HttpClient, HttpOptions
from harness.yarn.rmclient import NotEffective

_PATH = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"
_SHARE = "weight"
#: Decimal suffixes of a Kubernetes quantity and their factors.
_SUFFIXES = {"n": "1e-9", "u": "1e-6", "m": "1e-3", "": "1", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12"}
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
#: Weights are rounded to millionths.
_UNIT = Decimal("1e-6")


def read_quantity(text: str | int | float) -> float:
    """Return the value of a Kubernetes quantity.

    Raises
    ------
    InputError
        The text is not a quantity, or not finite.
    """
    words = str(text).strip()
    number = words.rstrip("numkKMGTPEi")
    suffix = words[len(number) :]
    try:
        factor = Decimal(_BINARY[suffix]) if suffix in _BINARY else Decimal(_SUFFIXES[suffix])
        found = float(Decimal(number) * factor)
    except (KeyError, InvalidOperation):
        raise InputError(f"{words!r} is no Kubernetes quantity") from None
    if not math.isfinite(found):
        raise InputError(f"{words!r} is not finite")
    return found


def quantity_text(value: float) -> str:
    """Return a number as a canonical quantity, rounded to millionths: the API server shows it unchanged."""
    count, suffixes = int((Decimal(value) / _UNIT).to_integral_value()), ["u", "m", "", "k", "M"]
    while count and count % 1000 == 0 and len(suffixes) > 1:
        count, suffixes = count // 1000, suffixes[1:]
    return f"{count}{suffixes[0]}" if count else "0"


class KueueClient:
    """A client for the ClusterQueues of one cohort."""

    def __init__(self, http: HttpClient, cohort: str) -> None:
        self.http, self.cohort = http, cohort

    def queues(self) -> dict[str, dict[str, Any]]:
        """Return the cohort's ClusterQueues by name. Raises InputError, Unreachable and Refused."""
        answer = self.http.request("GET", _PATH, repeatable=True)
        try:
            items = answer.document["items"]
            return {q["metadata"]["name"]: q for q in items if q["spec"].get("cohort", "") == self.cohort}
        except (KeyError, TypeError, AttributeError):
            raise InputError("the answer is no list of ClusterQueues", where=answer.url) from None

    def replace(self, queue: Mapping[str, Any]) -> None:
        """Write a ClusterQueue. Raises FileChanged if it has changed since it was read."""
        name = queue["metadata"]["name"]
        try:
            self.http.request("PUT", f"{_PATH}/{quote(name, safe='')}", body=queue, repeatable=False)
        except Refused as error:
            if error.status != 409:
                raise
            raise FileChanged(f"somebody else changed the ClusterQueue {name}", where=error.where) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedWeights(Prepared):
    """Weights that are ready to be written: ClusterQueue -> text of the quantity (None: no weight)."""

    changes: Mapping[str, str | None]


def _path(name: str) -> str:
    """Return the queue path of a ClusterQueue.

    Dots in its name are escaped, because they separate levels of the tree.
    """
    return f"{ROOT}.{name.replace('.', '%2E')}"


def _name(path: str) -> str:
    return path.removeprefix(f"{ROOT}.").replace("%2E", ".")


def _weight(value: Any) -> float:
    return 1.0 if value is None else read_quantity(value)


def _checked_values(values: Mapping[str, Any]) -> Values:
    _weight(values[_SHARE])
    return {_SHARE: values[_SHARE]}


def _checked_managed(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {str(name): list(found) for name, found in values.items()}


@dataclass(slots=True)
class KueueActuator(BaseActuator):
    """The actuator for the weights of a cohort's ClusterQueues. Values are texts of quantities."""

    store: KueueClient
    PARTS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {"baseline": _checked_values, "ours": _checked_managed}
    ATTRIBUTES: ClassVar[tuple[str, ...]] = (_SHARE,)
    SHARE: ClassVar[str] = _SHARE
    scheduler: ClassVar[str] = "kueue"
    values_name: ClassVar[str] = "weights"
    load_validates: ClassVar[bool] = True
    loaded_otherwise: ClassVar[str] = "at once where it runs"
    _queues: dict[str, dict[str, Any]] = field(default_factory=dict, init=False)
    _recognise: Callable[[], None] = field(default=always, init=False)

    def _read(self, *, words_lost: bool) -> list[Drift]:
        self._queues = {_path(name): queue for name, queue in self._fetched().items()}
        stands, found = self._values(), list[Drift]()
        gone = sorted(self.baseline.keys() - stands.keys())
        for path in gone:
            self._depart(path)
        chosen = set() if words_lost else self._chosen_since_return(stands)
        for path, present in stands.items():
            if path not in self.baseline and self._returned(path, present[_SHARE]) is not None:
                found.append(Drift(path, _SHARE, str(present[_SHARE])))
            found += self._reclaim(path, present, chosen)
        found += self._newcomers(stands, gone)
        for path, present in stands.items():
            self.baseline.setdefault(path, dict(present))
        return found + self._merge(stands, words_lost=words_lost)

    def _fetched(self) -> dict[str, dict[str, Any]]:
        self._recognise()
        return self.store.queues()

    def _values(self) -> dict[str, Values]:
        return {
            path: {_SHARE: (queue["spec"].get("fairSharing") or {}).get(_SHARE)}
            for path, queue in sorted(self._queues.items())
        }

    def _stands(self) -> dict[str, Values]:
        self._queues = {_path(name): queue for name, queue in self._fetched().items()}
        return self._values()

    def _look_anew(self) -> None:
        self._queues = {}

    def recognise_by(self, recognise: Callable[[], None]) -> None:
        """Set a function that is called before weights are read or written."""
        self._recognise = recognise

    def _by_hand(self, share: Any) -> bool:
        return is_round(_weight(share))

    def _limit_by_hand(self, attribute: str, value: Any) -> bool:
        return True

    def _unite(self, stands: Mapping[str, Values]) -> list[Drift]:
        return []  # any weights may be combined

    def _own_refusals(self) -> tuple[str, ...]:
        return ()

    def problems_of(self, prepared: Prepared) -> tuple[str, ...]:
        """Return no problems: prepared weights are positive, which is Kueue's only condition."""
        return ()

    def configured_weights(self) -> dict[str, float]:
        """Return the administrator's weights."""
        return {path: entitlement(_weight(values[_SHARE])) for path, values in self.baseline.items()}

    def min_shares(self) -> dict[str, Resource]:
        """Return no minimum shares: nominal quotas are not written."""
        return {}

    def max_shares(self, capacity: Resource) -> dict[str, Resource]:
        """Return no maximum shares: borrowing limits are not written."""
        return {}

    def present(self) -> dict[str, float]:
        """Return the weights as of the last `read`, including those that others wrote."""
        return {path: _weight(values[_SHARE]) for path, values in self._values().items()}

    def name_queues(self, leaves: Mapping[str, bool], now_s: float) -> None:
        """Do nothing: Kueue does not create queues by itself."""

    def prepare(self, attributes: Attributes) -> PreparedWeights:
        """Return the planned weights, ready to be written."""
        self.generation += 1
        wanted = {path: {_SHARE: quantity_text(weight)} for path, weight in attributes.weights.items()}
        more = {*attributes.min_shares, *attributes.max_shares, *attributes.scheduling_policies}
        problems = tuple(f"{path}: a ClusterQueue's quotas are not set" for path in sorted(more))
        return self._prepared({path: values for path, values in wanted.items() if path in self._queues}, problems)

    def original(self) -> PreparedWeights:
        """Return the administrator's weights, ready to replace the managed ones."""
        return self._prepared({}, ())

    def _prepared(self, wanted: Mapping[str, Values], problems: tuple[str, ...]) -> PreparedWeights:
        stands = self._values()
        due = {path: values[_SHARE] for path, values in self._due(wanted, stands) if values}
        after = {path: due.get(path, values[_SHARE]) for path, values in stands.items()}
        changes = {path: text for path, text in due.items() if text != stands[path][_SHARE]}
        in_force = {path: _weight(text) for path, text in due.items()}
        before = {path: values[_SHARE] for path, values in stands.items()}
        return PreparedWeights(_shown(before), _shown(after), in_force, (), problems, changes=changes)

    def write(self, prepared: Prepared, still: Callable[[], None] = always) -> None:
        """Write the weights that differ. Raises FileChanged if a ClusterQueue has changed since `read`."""
        assert isinstance(prepared, PreparedWeights)
        self._recognise()
        still()
        for path, text in prepared.changes.items():
            queue = deepcopy(self._queues[path])
            queue["spec"]["fairSharing"] = {**(queue["spec"].get("fairSharing") or {}), _SHARE: text}
            if text is None:
                del queue["spec"]["fairSharing"]
            self.store.replace(queue)
        self._settle()

    def write_groups(self, prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
        """Write the weights queue by queue. Return the queues whose write was refused, with the reason."""
        assert isinstance(prepared, PreparedWeights)
        refused: dict[str, str] = {}
        for path, text in prepared.changes.items():
            self.read()
            one = PreparedWeights(prepared.before, prepared.after, prepared.in_force, changes={path: text})
            try:
                self.write(one, still)
            except Refused as error:
                refused[path] = error.line()
        return refused

    @property
    def beside(self) -> ConfigStore | None:
        """The store for a lease beside the weights; None, because the sketch keeps no lease."""
        return None

    def traps(self, client: KueueClient, hadoop: tuple[int, int]) -> tuple[Trap, ...]:
        """Return no traps: none are known for Kueue."""
        return ()

    def forget_traps(self) -> None:
        """Do nothing: there are no traps to forget."""

    def touch(self) -> None:
        """Do nothing: Kueue watches its objects, so writes take effect without a signal."""

    def load(self, client: KueueClient) -> None:
        """Do nothing: Kueue watches its objects, so writes take effect without a reload."""

    def in_force(self, client: KueueClient) -> dict[str, float]:
        """Read the weights from the API server and return them."""
        self._stands()
        return self.present()

    def confirm(self, client: KueueClient, wanted: Mapping[str, float], *, timeout_s: float, every_s: float) -> None:
        """Wait until the API server shows these weights. Raises NotEffective after `timeout_s`."""
        end = time.monotonic() + timeout_s
        while True:
            has = self.in_force(client)
            wrong = {path: f"it has {has.get(path)}" for path, weight in wanted.items() if has.get(path) != weight}
            if not wrong:
                return
            if time.monotonic() >= end:
                raise NotEffective(wrong, where=client.http.current, waited_s=timeout_s)
            time.sleep(every_s)

    def differences(self, client: KueueClient) -> dict[str, str]:
        """Return no differences: nothing but weights is written."""
        return {}


def _shown(weights: Mapping[str, Any]) -> bytes:
    return "".join(f"{_name(path)}: weight {text or 'absent'}\n" for path, text in weights.items()).encode()


class KueueObserver:
    """The observer of a cohort for one controller."""

    def __init__(self, client: KueueClient, context: ObserverContext) -> None:
        self.client, self.context = client, context
        self.facts, self.identity, self.hadoop = ClusterFacts(client.cohort), context.identity, (0, 0)
        self.news, self.clock_s, self.answer_s = "", None, 0.0
        self.latest_end_ms, self.earliest_s = 0, None
        self.refused: dict[str, int] = {}
        self.skipped: dict[str, str] = {}
        #: Suffix of the application names in the accounts: the usage counters of each run start at 0, so every run is a
        #: new application.
        self._run = f"{context.clock():.3f}"
        self._held: dict[str, Resource] = {}
        self._used: dict[str, list[float]] = {}
        self._backlog_s: dict[str, float] = {}
        self._looked_s: float | None = None

    def check_cluster(self) -> None:
        """Do nothing: the address of the API server identifies the cluster."""

    def queues(self) -> Collection[str]:
        """Return the queues of the cohort, including the root."""
        return {ROOT, *map(_path, self.client.queues())}

    def look(self, actuator: Entitlements) -> Observed:
        """Poll the cohort's ClusterQueues, update the accounts, and return the observed state."""
        asked_s = self.context.clock()
        queues = self.client.queues()
        now_s = self.context.clock()
        self.answer_s = now_s - asked_s
        capacity = _sum([amount for queue in queues.values() for amount in _quotas(queue)])
        held = {_path(name): _sum(_usage(queue)) for name, queue in queues.items()}
        pending = {_path(name): int(_status(queue).get("pendingWorkloads") or 0) for name, queue in queues.items()}
        self._count(now_s, held, capacity)
        weights = actuator.configured_weights() | dict(self.context.settings.entitlements)
        # A ClusterQueue does not show how much is pending: assume the capacity of the whole cohort on top of what it
        # holds.
        demand = {path: amount + capacity if pending[path] else amount for path, amount in held.items()}
        total = _sum(demand.values())
        views = {ROOT: QueueView(ROOT, None, leaf=False, allocated=_sum(held.values()), demand=total)}
        for path in sorted(held):
            self._backlog_s = {p: s for p, s in self._backlog_s.items() if pending.get(p)}
            since_s = self._backlog_s.setdefault(path, now_s) if pending[path] else None
            views[path] = QueueView(
                path,
                ROOT,
                leaf=True,
                weight=weights.get(path, 1.0),
                allocated=held[path],
                demand=demand[path],
                pending_containers=pending[path],
                running_apps=int(_status(queues[_name(path)]).get("admittedWorkloads") or 0),
                backlog_since_s=since_s,
            )
        snapshot = Snapshot(now_s, capacity, views, self.context.settings.period_s)
        consumed = {path: used for path, used in self.context.accounts.consumed().items() if path in held}
        return Observed(snapshot, consumed, [path for path in held if views[path].demand.memory_mb > 0])

    def _count(self, now_s: float, held: Mapping[str, Resource], capacity: Resource) -> None:
        """Add the usage since the last poll to the accounts, assuming that queues held the same amounts throughout."""
        gap_s = 0.0 if self._looked_s is None else max(now_s - self._looked_s, 0.0)
        for path, before in self._held.items():
            used = self._used.setdefault(path, [0.0, 0.0])
            used[0] += before.memory_mb * gap_s
            used[1] += before.vcores * gap_s
        self._held, self._looked_s = dict(held), now_s
        looks = []
        for path, amount in held.items():
            memory_mb_s, vcore_s = self._used.get(path, (0.0, 0.0))
            looks.append(
                AppObservation(f"{path} since {self._run}", path, int(memory_mb_s), int(vcore_s), amount, final=False)
            )
        self.context.accounts.observe(now_s, looks, capacity=capacity)
        self.context.accounts.forget([look.app for look in looks], now_s)


def _status(queue: Mapping[str, Any]) -> Mapping[str, Any]:
    status = queue.get("status")
    return status if isinstance(status, Mapping) else {}


def _amount(name: str, text: Any) -> Resource:
    if name == "memory":
        return Resource(int(read_quantity(text)) >> 20, 0)
    return Resource(0, math.ceil(read_quantity(text))) if name == "cpu" else Resource()


def _usage(queue: Mapping[str, Any]) -> Iterator[Resource]:
    for flavor in _status(queue).get("flavorsUsage") or ():
        for one in flavor.get("resources") or ():
            yield _amount(one["name"], one.get("total", 0))


def _quotas(queue: Mapping[str, Any]) -> Iterator[Resource]:
    for group in queue["spec"].get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for one in flavor.get("resources") or ():
                yield _amount(one["name"], one.get("nominalQuota", 0))


def _sum(amounts: Any) -> Resource:
    return sum(amounts, Resource())


class Kueue:
    """The extension ``actuator: kueue``. Settings: ``server`` (the API server, or `kubectl proxy`) and ``cohort``."""

    def _settings(self, settings: Mapping[str, Scalar]) -> tuple[str, str]:
        if settings.keys() != {"server", "cohort"} or not all(isinstance(v, str) and v for v in settings.values()):
            raise CallError("kueue needs server and cohort, and nothing else", where="actuator_settings")
        return str(settings["server"]), str(settings["cohort"])

    @contextmanager
    def open_client(self, settings: Mapping[str, Scalar], options: HttpOptions) -> Iterator[KueueClient]:
        """Open a connection to the API server for as long as the context lasts."""
        server, cohort = self._settings(settings)
        http = HttpClient([server], options)
        try:
            yield KueueClient(http, cohort)
        finally:
            http.close()

    def open_actuator(self, settings: Mapping[str, Scalar], client: KueueClient, document: Document) -> KueueActuator:
        """Restore the actuator of the cohort from its stored document."""
        return KueueActuator.restored(client, document)

    def open_observer(self, client: KueueClient, context: ObserverContext) -> KueueObserver:
        """Return an observer of the cohort."""
        return KueueObserver(client, context)

    def address(self, settings: Mapping[str, Scalar]) -> str:
        """Return the cohort and the address of the API server, for messages."""
        server, cohort = self._settings(settings)
        return f"cohort {cohort} at {server}"


KUEUE = Kueue()
