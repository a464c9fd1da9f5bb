"""Which values a controller manages beside an administrator's: what the actuators of both schedulers have in common.

The administrator's values are remembered (the *baseline*): they are the entitlements that nobody configured, and what
an attribute goes back to that the policy no longer declares. What the controller wrote is remembered too (*managed*),
so that a value that is neither is somebody else's edit (*drift*). Both are plain documents that a ledger store keeps.

Each `read` is a three-way merge of what was applied last (*managed*), what is present, and what is wanted, for each
group of siblings at once: an administrator's new share of one of them is an entitlement from then on, and the
entitlements of a group always make a document that a ResourceManager takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from harness.base.errors import InputError
from harness.control.lease import Lease, Memory, lease_of
from harness.control.values import Nonsense, Values, depart, remember_written
from harness.model.queues import AllocationFile
from harness.yarn.capacity.source import ConfigurationSource
from harness.yarn.files import ConfigStore
from harness.yarn.queue_answers import SchedulerStatus

#: Parts that every document has, and all that is kept of a queue that has gone.
_ALWAYS = ("baseline", "ours")
#: What is kept of queues whether they are there or not.
_KEPT = ("departed", "written", "returned")
#: Keys of a document whose attribute has another name: ledgers and leases of earlier versions have these keys.
_FIELDS = {"ours": "managed"}


@dataclass(frozen=True, slots=True)
class Drift:
    """Somebody else's edit of an attribute that the controller had written.

    ``taken``: the edit is a share that an administrator wrote, so it is the queue's entitlement from now on.
    """

    queue: str
    attribute: str
    text: str
    taken: bool = False

    def line(self) -> str:
        """Describe the edit for a person."""
        text = f"{self.attribute} of {self.queue} is {self.text}"
        return f"{text} (taken as its entitlement)" if self.taken else text


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is ready to be written. ``in_force``: the weights (of the Capacity Scheduler the settings), by queue, that
    the RM will then show."""

    before: bytes
    after: bytes
    says: AllocationFile
    in_force: Mapping[str, float]
    #: Queues of the plan that the file does not name (ad hoc ones): they keep the weight 1, their siblings are scaled.
    ad_hoc: tuple[str, ...] = ()
    #: What cannot be done, in words.
    problems: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.before != self.after


def generation_of(value: Any) -> int:
    """A generation as a document holds it; 0 where it has none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


@dataclass(slots=True)
class BaseActuator(ABC):
    """One file or configuration, its baseline and what is managed in it: queue -> attribute -> value (None: not there).

    ``managed`` holds for each attribute the values that the controller may have put there: the last one, and one that
    is about to be written.
    """

    place: ConfigStore | ConfigurationSource
    baseline: dict[str, Values] = field(default_factory=dict)
    managed: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    #: Queues that have gone -> their baseline and what was managed, for when they come back as they went.
    departed: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Queue (of other attributes than the share, with a tab and the attribute) -> values that controllers are known to
    #: have written, oldest first: an older copy of the file brings them back, and they are never taken for an
    #: administrator's.
    written: dict[str, list[Any]] = field(default_factory=dict)
    #: Queues whose values have been given back -> the administrator's own and those that were a controller's then: a
    #: file that was opened before and is saved afterwards brings a controller's back.
    returned: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: How many documents have been prepared for this place: of two ledgers, or a ledger and a lease, the one that has
    #: counted further knows the later values.
    generation: int = 0
    #: How often somebody else had changed the document when it was read.
    edits: int = field(default=0, init=False)
    #: Why a ResourceManager would refuse the administrator's own document; None: not checked since it was read.
    _refusals: tuple[str, ...] | None = field(default=None, init=False)

    #: What is remembered of queues that are there -> how that of one is read of another controller's document.
    PARTS: ClassVar[Mapping[str, Callable[[Any], Any]]]
    #: All attributes that are ever written, and the one that a policy sets of every queue.
    ATTRIBUTES: ClassVar[tuple[str, ...]]
    SHARE: ClassVar[str]

    # --- what is kept, and handed on ---

    def document(self) -> dict[str, Any]:
        """Whose the values are: what a ledger keeps (`restored`), and others are told (`adopt`)."""
        return {name: self._part(name) for name in self.document_names()}

    def _part(self, name: str) -> Any:
        """The part of this state that a `document` has under that key."""
        return getattr(self, _FIELDS.get(name, name))

    @classmethod
    def document_names(cls) -> tuple[str, ...]:
        """What a `document` has."""
        return (*cls.PARTS, *_KEPT, "generation")

    @classmethod
    def restored(cls, place: Any, document: Callable[[str], Any]) -> Self:
        """Restore the actuator whose `document` a ledger has kept (``document``: by name, None what it has not)."""
        kept: dict[str, Any] = {name: document(name) or {} for name in (*cls.PARTS, *_KEPT)}
        actuator = cls(place, **{_FIELDS.get(name, name): part for name, part in kept.items()})
        actuator.generation = generation_of(document("generation"))
        return actuator

    def forget(self) -> None:
        """All is the administrator's: what stands there when it is read next are the entitlements.

        Queues that have gone are not given back: they may return with a controller's values. So may those that are
        there, in a file that somebody opened before.
        """
        for path, managed in self.managed.items():
            if managed:
                kept = {"baseline": dict(self.baseline.get(path, {})), "ours": {k: list(v) for k, v in managed.items()}}
                if texts := self._texts(path):
                    kept["texts"] = dict(texts)
                depart(self.returned, path, kept)
        for name in self.PARTS:
            self._part(name).clear()
        self._refusals = None
        self._look_anew()

    def adopt(self, document: Mapping[str, Any], *, lives: bool = False) -> None:
        """Goes on from what another controller says: its values that still stand there are not the administrator's,
        whose own are those that it names. What is shown otherwise is the administrator's; not while that controller
        ``lives``: it writes its values again over somebody's edit.

        Raises Nonsense for what is no such document, and what reading raises; nothing is adopted then.
        """
        try:
            announced = self._checked(document)
        except (InputError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise Nonsense(error) from None
        if not lives:
            self._hold_against(announced, self._stands())
        for name, kept in announced.items():
            setattr(self, _FIELDS.get(name, name), kept)
        self.generation = max(self.generation, generation_of(document.get("generation")))
        self.managed = {path: kept for path, kept in self.managed.items() if kept}
        self._refusals = None
        self._look_anew()

    def _hold_against(self, announced: Mapping[str, dict[str, Any]], stands: Mapping[str, Values]) -> None:
        """What stands there and was not a controller's is the administrator's. Who is away may come back as it went."""
        baseline, managed = announced["baseline"], announced["ours"]
        for path in managed.keys() & stands.keys():
            for attribute in [name for name, values in managed[path].items() if stands[path].get(name) not in values]:
                for kept in (managed, baseline, announced.get("texts", {})):
                    kept.get(path, {}).pop(attribute, None)
        for path in baseline.keys() & stands.keys():
            if self.SHARE not in managed.get(path, {}):
                baseline[path][self.SHARE] = stands[path][self.SHARE]

    @property
    @abstractmethod
    def beside(self) -> ConfigStore | None:
        """The place beside which a lease is kept; None: there is none."""

    def lease(
        self, identity: str, lease_s: float, clock: Callable[[], float], memory: Memory | None = None
    ) -> Lease | None:
        """The lease of a controller with that identity; None where there is none, or none is wanted (0).

        ``memory``: see `Lease`.
        """
        return lease_of(self.beside, identity, lease_s, clock, memory) if lease_s > 0 and self.beside else None

    def _checked(self, document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The parts of a `document`, copied; nothing of queues that have gone where it says nothing of them.

        Raises what a wrong one makes Python raise, and InputError.
        """
        announced = {}
        for name, read in self.PARTS.items():
            known = document[name] if name in _ALWAYS else document.get(name, {})
            announced[name] = {str(path): read(own) for path, own in known.items()}
        if (away := document.get("departed")) is not None:
            announced["departed"] = {str(path): self._departed(kept) for path, kept in away.items()}
        if (returned := document.get("returned")) is not None:
            announced["returned"] = {str(path): self._departed(kept) for path, kept in returned.items()}
        if (written := document.get("written")) is not None:
            announced["written"] = {str(path): list(shares) for path, shares in written.items()}
        return announced

    def _departed(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        return {name: read(kept[name]) for name, read in self.PARTS.items() if name in kept or name in _ALWAYS}

    @abstractmethod
    def recognise_by(self, recognise: Callable[[], None]) -> None:
        """Call this before what a ResourceManager itself keeps is read or changed; it raises where that is another
        cluster's."""

    def dangers(self) -> tuple[str, ...]:
        """What stands there, as of the last `read`, and may end a ResourceManager, in words."""
        return ()

    @abstractmethod
    def _stands(self) -> dict[str, Values]:
        """What is there now, read anew: queue -> attribute -> value."""

    def names(self) -> frozenset[str]:
        """The queues that are there now, read anew; nothing is remembered. Raises what reading raises."""
        return frozenset(self._stands())

    @abstractmethod
    def _look_anew(self) -> None:
        """What was read last counts no more."""

    # --- what is in force ---

    @property
    def writes_more(self) -> bool:
        """Whether other attributes than shares are managed."""
        return any(managed.keys() - {self.SHARE} for managed in self.managed.values())

    @abstractmethod
    def differences(self, status: SchedulerStatus) -> dict[str, str]:
        """Say, by queue, which of our attributes beside its share the ResourceManager shows otherwise."""

    # --- what others have made of it, and what we do ---

    def _merge(self, stands: Mapping[str, Values], *, words_lost: bool) -> list[Drift]:
        """Merge what others have made of our attributes into what is known; what they made of them.

        ``stands`` is what is present. A share that an administrator wrote is the queue's entitlement from now on; a
        limit is what he wants whoever wrote it.
        """
        found = []
        older = self._older_groups(stands)
        taken = set() if words_lost else self._taken(stands)
        for path in sorted(stands):
            present, known = stands[path], self.baseline[path]
            managed = self.managed.get(path, {})
            if not managed.get(self.SHARE):
                share = present[self.SHARE]
                if path.rpartition(".")[0] in older and share in self.written.get(path, []):
                    # A file that was opened while a controller enforced it, and saved after it was given back.
                    self.managed.setdefault(path, {})[self.SHARE] = [share]
                    self._texts_back(path)
                    found.append(Drift(path, self.SHARE, f"{share}, which a controller wrote"))
                    continue
                # Nobody but the administrator wrote it: a shadow, a spare or who has released follows the file.
                known[self.SHARE] = share
            for attribute, values in list(managed.items()):
                value = present[attribute]
                if value in values:
                    continue
                before = value == known.get(attribute)
                share = attribute == self.SHARE
                adopted = share and path in taken
                text = "what it was before the controller" if before else "nothing" if value is None else str(value)
                found.append(Drift(path, attribute, text, taken=adopted and not before))
                # An older copy of the document brings back a limit that a controller wrote.
                old = value is not None and value in self.written.get(self._written_as(path, attribute), [])
                if not before and (adopted or not (share or words_lost or old)):
                    known[attribute] = value
                values[:] = [value]
                if adopted:
                    del managed[attribute]
        self._refusals = None
        self.edits += 1
        return found + self._unite(stands)

    def _older_groups(self, stands: Mapping[str, Values]) -> set[str]:
        """The parents of groups of siblings that an older copy of the document has brought back.

        One of them has a share that a controller is known to have written before, and that no person writes: a round
        one may be the administrator's too.
        """
        return {
            path.rpartition(".")[0]
            for path, written in self.written.items()
            if path in stands
            and (share := stands[path][self.SHARE]) in written
            and share not in self.managed.get(path, {}).get(self.SHARE, [])
            and share != self.baseline.get(path, {}).get(self.SHARE)
            and not self._by_hand(share)
        }

    def _taken(self, stands: Mapping[str, Values]) -> set[str]:
        """The queues whose present share an administrator wrote over ours, as far as values tell.

        A share that a controller is known to have written comes from an older copy of the document. Where some sibling
        has a share that looks like a controller's and is not known, another controller has written the whole group.
        """
        groups: dict[str, dict[str, Any]] = {}
        for path, managed in self.managed.items():
            if path in stands and managed.get(self.SHARE):
                share = stands[path][self.SHARE]
                if share not in managed[self.SHARE] and share not in self.written.get(path, []):
                    groups.setdefault(path.rpartition(".")[0], {})[path] = share
        return {
            path
            for changed in groups.values()
            if all(self._by_hand(share) for share in changed.values())
            for path in changed
        }

    @abstractmethod
    def _by_hand(self, share: Any) -> bool:
        """Whether a person may have written this share: a controller's has more digits than a person's."""

    @abstractmethod
    def _unite(self, stands: Mapping[str, Values]) -> list[Drift]:
        """Make the entitlements of each group of siblings valid together with what the administrator has now.

        Where what would be restored is refused and what is present is not, what is present is the administrator's.
        """

    # --- what a ResourceManager would say ---

    def refusals(self) -> tuple[str, ...]:
        """Say why a ResourceManager would refuse the administrator's own document; nothing where it would take it.

        His own document is what is present with his values in place of ours.
        """
        if self._refusals is None:
            self._refusals = self._own_refusals()
        return self._refusals

    @abstractmethod
    def _own_refusals(self) -> tuple[str, ...]:
        """`refusals`, computed."""

    def write_groups(self, prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
        """Write what is prepared group by group, where it was refused as a whole; which were refused, and why.

        Only where a store takes changes one by one: a file is written whole.
        """
        raise NotImplementedError

    @abstractmethod
    def problems_of(self, prepared: Prepared) -> tuple[str, ...]:
        """Say why a ResourceManager would refuse what is prepared, beside what it refuses in any case."""

    def _restored(self, stands: Mapping[str, Values]) -> dict[str, Values]:
        """The administrator's values of all managed attributes, by queue; nothing is remembered."""
        return {
            path: {
                attribute: self._back(attribute, self.baseline[path].get(attribute))
                for attribute in self.ATTRIBUTES
                if attribute in managed
            }
            for path, managed in self.managed.items()
            if path in stands
        }

    def _due(self, wanted: Mapping[str, Values], stands: Mapping[str, Values]) -> Iterator[tuple[str, Values]]:
        """Each queue that is there with the attributes that are wanted or ours, as they are to be (None: not there).

        They are in ``managed`` and ``baseline`` from then on.
        """
        for path in {**wanted, **self.managed}:
            if path not in stands:
                continue
            present = stands[path]
            managed, known = (
                self.managed.setdefault(path, {}),
                self.baseline.setdefault(path, {self.SHARE: present[self.SHARE]}),
            )
            due: Values = {}
            for attribute in self.ATTRIBUTES:
                value = wanted.get(path, {}).get(attribute)
                if value is not None:
                    known.setdefault(attribute, present[attribute])
                elif attribute in managed:
                    # The policy no longer declares it: it goes back.
                    value = self._back(attribute, known.get(attribute))
                else:
                    continue
                mine = managed.setdefault(attribute, [present[attribute]])
                if mine[-1] != value:
                    mine.append(value)
                due[attribute] = value
            yield path, due

    def _back(self, attribute: str, value: Any) -> Any:
        """What an attribute goes back to that the administrator had so."""
        return value

    def _forget(self, path: str) -> dict[str, Any]:
        """Forgets a queue; what was known of it."""
        return {name: self._part(name).pop(path, {}) for name in self.PARTS}

    def _reclaim(self, path: str, present: Mapping[str, Any]) -> list[Drift]:
        """Recognise values of a queue that nobody knows yet as ones that a controller wrote before it gave all back.

        They are never taken for the administrator's without asking: his own, as they were then, are the entitlements,
        and what stands there is ours.
        """
        kept = self.returned.get(path)
        if kept is None or path in self.baseline:
            return []
        found = []
        for attribute, values in kept["ours"].items():
            value, own = present.get(attribute), kept["baseline"].get(attribute)
            known = [*values, *self.written.get(self._written_as(path, attribute), [])]
            if value is None or value == own or value not in known:
                continue
            self.baseline.setdefault(path, {self.SHARE: present[self.SHARE]})[attribute] = own
            self.managed.setdefault(path, {})[attribute] = [value]
            text = f"{value}, which a controller wrote; it stays {own} as before (to change it, name it in `queues`)"
            found.append(Drift(path, attribute, text))
        if found:
            self._texts_back(path)
        return found

    def _texts(self, path: str) -> dict[str, str | None]:
        """What the administrator wrote of a queue's attributes, byte for byte, where that is remembered."""
        return {}

    def _texts_back(self, path: str) -> None:
        """Remember what the administrator had written of a queue when all was given back."""
        self._texts(path).update(self.returned.get(path, {}).get("texts", {}))

    def _written_as(self, path: str, attribute: str) -> str:
        """Under which name `written` has an attribute of a queue: its share under the queue's."""
        return path if attribute == self.SHARE else f"{path}\t{attribute}"

    def hold_against_file(self) -> None:
        """Go on from what is remembered as from another controller's word: what is shown otherwise is the
        administrator's. For a ledger that is older than the file, and whose later words are lost.

        Where one of siblings has a share that no person writes, a controller has written them all: what is remembered
        stays. So it is with a limit that a controller sets, in the whole document. Raises what reading raises.
        """
        announced = {name: self._part(name) for name in (*self.PARTS, *_KEPT)}
        stands = self._stands()
        shares = {path: stands[path][self.SHARE] for path in self.managed.keys() & stands.keys()}
        not_his = {path.rpartition(".")[0] for path, share in shares.items() if not self._by_hand(share)}
        for path, share in shares.items():
            managed = self.managed[path]
            if managed.get(self.SHARE) and path.rpartition(".")[0] in not_his and share not in managed[self.SHARE]:
                managed[self.SHARE].append(share)
        for attribute in self.ATTRIBUTES:
            if attribute != self.SHARE:
                self._hold_limits(attribute, stands)
        self._hold_against(announced, stands)
        self.managed = {path: kept for path, kept in self.managed.items() if kept}
        self._refusals = None
        self._look_anew()

    def _hold_limits(self, attribute: str, stands: Mapping[str, Values]) -> None:
        """For `hold_against_file`: a controller writes a limit of all queues at once, of those added since too."""
        if not any(attribute in managed for managed in self.managed.values()):
            return
        later = {
            path: value
            for path, said in stands.items()
            if (value := said.get(attribute)) not in (None, self.baseline.get(path, {}).get(attribute))
            and value not in self.managed.get(path, {}).get(attribute, [])
            and (path not in self.baseline or attribute in self.managed.get(path, {}))
        }
        if all(self._limit_by_hand(attribute, value) for value in later.values()):
            return
        for path, value in later.items():
            self.baseline.setdefault(path, {self.SHARE: stands[path][self.SHARE]}).setdefault(attribute, None)
            self.managed.setdefault(path, {}).setdefault(attribute, []).append(value)

    @abstractmethod
    def _limit_by_hand(self, attribute: str, value: Any) -> bool:
        """Whether a person may have written this value of another attribute than the share."""

    def unknown_shares(self) -> list[str]:
        """Queues whose share was not known when they were read, and looks like a controller's: in words."""
        return [
            f"{path} has {values[self.SHARE]}"
            for path, values in self.baseline.items()
            if values.get(self.SHARE) is not None
            and not self._by_hand(values[self.SHARE])
            and not self.managed.get(path)
        ]

    def _depart(self, path: str) -> None:
        """A queue is there no more."""
        kept = {name: known for name, known in self._forget(path).items() if known}
        if "ours" in kept:
            depart(self.departed, path, kept)

    def _returned(self, path: str, value: Any) -> dict[str, Any] | None:
        """What was kept of a queue that comes back with a share that was ours; it has its own entitlement again."""
        kept = self.departed.pop(path, None)
        if kept is None or value not in kept["ours"].get(self.SHARE, []):
            return None
        self.baseline[path], self.managed[path] = kept["baseline"], kept["ours"]
        return kept

    def shift(self, seconds: float) -> None:
        """Move all times by so many seconds: the clock by which they were taken was wrong."""
        for kept in self.departed.values():
            if "named" in kept:
                kept["named"] += seconds

    def _settle(self) -> None:
        """What was about to be written has been."""
        for path, attributes in self.managed.items():
            for attribute, values in attributes.items():
                own = self.baseline.get(path, {}).get(attribute)
                others = [value for value in values if value != own]
                remember_written(self.written, self._written_as(path, attribute), others)
                del values[:-1]
