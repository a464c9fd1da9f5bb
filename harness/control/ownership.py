"""Whose value is it: the administrator's and the controller's values of a scheduler's queues, without reading any file.

The administrator's values are remembered as the *baseline*. They serve as entitlements where the configuration gives
none, and an attribute returns to its baseline when the policy no longer declares it. Values written by the controller
are remembered as *managed*. A present value that is neither baseline nor managed was edited by somebody else (*drift*).
Baseline and managed values are plain documents that a ledger store keeps.

Each reading of the configuration is a three-way merge of the values applied last (*managed*), the values present, and
the values wanted, one group of siblings at a time. When an administrator changes the share of a queue, the new share
becomes its entitlement.

`harness.control.actuator` adds the configuration itself: reading, checking and writing it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.control.chosen import KnownShares, chosen_again
from harness.control.newcomers import LATELY, RENAMED, Likeness, Models, leaf, parent
from harness.control.rivals import Rivals
from harness.control.values import IsManaged, Values, depart, remember_written

#: Parts that every document has. The entry of a removed queue has them, too.
_ALWAYS = ("baseline", "ours")
#: Parts that cover queues regardless of whether they currently exist.
_KEPT = ("departed", "written", "returned")
#: Document key -> attribute, where the names differ. The key is the one that ledgers and leases already contain.
_FIELDS = {"ours": "managed"}


#: Maximum number of earlier unanswered writes of a value that are remembered.
_MOST_UNANSWERED = 10


@dataclass(frozen=True, slots=True)
class Drift:
    """Somebody else's edit of an attribute that the controller had written.

    ``taken`` is true if the edit is a share that an administrator wrote; the share then becomes the queue's
    entitlement.
    """

    queue: str
    attribute: str
    text: str
    taken: bool = False

    def line(self) -> str:
        """Describe the edit for a person."""
        text = f"{self.attribute} of {self.queue} is {self.text}"
        return f"{text} (taken as its entitlement)" if self.taken else text


#: Reasons in messages why a limit that somebody else wrote is not treated as the administrator's.
_WRITTEN = "a controller wrote"
_OF_COPY = (
    "a controller may have written after the copy of the ledger that was restored (to make it yours, write a round "
    "one, or stop this one and give the configuration back once with --release)"
)


def _shown(own: object) -> str:
    return "unset" if own is None else str(own)


def generation_of(value: object) -> int:
    """Read a generation from a document; 0 if the value is missing or invalid."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _stays(value: object, own: object) -> str:
    """Describe a present value that a controller wrote once; the administrator's own value stays the entitlement."""
    return f"{value}, which a controller wrote; {_kept_as(own)} (to change it, name it in `queues`)"


def _like_computed(value: object, own: object) -> str:
    """Describe a share that another controller may have written; the administrator's own stays in effect."""
    return (
        f"{value}, which looks like a share that a controller computed, or was written with such ones; {_kept_as(own)} "
        "(to change it, write a round share, or name it in `queues`)"
    )


def _of_rival(value: object, own: object) -> str:
    """Describe a share that was written while another controller writes the same configuration."""
    return (
        f"{value}, while another controller writes here; {_kept_as(own)} (stop one of the two; to change it, name it "
        "in `queues`, or write it again afterwards)"
    )


def _kept_as(own: object) -> str:
    """Describe that the administrator's own value is kept."""
    return "yours stays unset as before" if own is None else f"yours stays {own} as before"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What a reading of the configuration shows about who has edited it.

    Parameters
    ----------
    older
        Parents of the sibling groups whose shares come from an older copy of the document.
    taken
        Queues whose managed share an administrator has replaced.
    by_rival
        Whether a controller that no lease announces writes the shares of all queues.
    words_lost
        Whether another controller wrote the configuration and its last announcement is lost.
    reports
        Whether an administrator's change of a share that is not managed is reported.
    """

    older: Collection[str]
    taken: Collection[str]
    by_rival: bool
    words_lost: bool
    reports: bool


@dataclass(slots=True, kw_only=True)
class Ownership(ABC):
    """The baseline and managed values of a scheduler's queues, as queue -> attribute -> value (None: absent).

    ``managed`` lists for each attribute the values that the controller may have written: the last value written and the
    value about to be written.
    """

    baseline: dict[str, Values] = field(default_factory=dict)
    managed: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    #: Removed queues -> their baseline and managed values, restored if the queue reappears with the share it had.
    departed: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Values that controllers have written, oldest first. The key is the queue's path for its share; for any other
    #: attribute it is the path, a tab and the attribute's name (`_written_as`). If an older copy of the file brings
    #: such a value back, it is not taken for the administrator's.
    written: dict[str, list[Any]] = field(default_factory=dict)
    #: Queues whose configuration was restored -> the administrator's values and the controller's values at that time. A
    #: file that was opened before the restore and saved afterwards brings the controller's values back.
    returned: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Number of documents prepared for this store. Of two ledgers, or a ledger and a lease, the one with the higher
    #: generation has the later values.
    generation: int = 0
    #: Whether the ledger was restored from an older copy. It then lacks the values that were written after the copy.
    from_copy: bool = False
    #: Whether a lease announces the values that another controller writes.
    leased: bool = field(default=False, init=False)
    #: Evidence of another controller that no lease announces.
    rivals: Rivals = field(default_factory=Rivals, init=False)
    #: Values whose write was not answered and that the next reading did not show, by `_written_as`. The request may be
    #: carried out later, so such a value is not somebody else's.
    _unanswered: dict[str, list[Any]] = field(default_factory=dict, init=False)
    #: The values of the last reading (None: no reading yet in this process).
    _stood: Mapping[str, Values] | None = field(default=None, init=False)

    #: Parts that hold data per existing queue -> function that validates and copies one queue's entry of another
    #: controller's document.
    PARTS: ClassVar[Mapping[str, Callable[[Any], Any]]]
    #: All attributes that are ever written, and the attribute that a policy sets for every queue.
    ATTRIBUTES: ClassVar[tuple[str, ...]]
    SHARE: ClassVar[str]
    #: The share that Hadoop gives to a queue whose configuration names none; None where that depends on other queues.
    ABSENT: ClassVar[Any] = None

    def document(self) -> dict[str, Any]:
        """Return the ownership of all values, as a ledger stores it (`restored`) and a lease announces it (`adopt`)."""
        return {name: self._part(name) for name in self.document_names()}

    def _part(self, name: str) -> Any:
        """Return the part of this state that `document` stores under the given key."""
        return getattr(self, _FIELDS.get(name, name))

    @classmethod
    def document_names(cls) -> tuple[str, ...]:
        """Return the keys of `document`."""
        return (*cls.PARTS, *_KEPT, "generation", "from_copy")

    @classmethod
    def parts_of(cls, document: Callable[[str], object]) -> dict[str, Any]:
        """Return the parts that a ledger's documents give, by the names of this class's fields."""
        return {_FIELDS.get(name, name): document(name) or {} for name in (*cls.PARTS, *_KEPT)}

    def _checked(self, document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return validated copies of the parts of a `document`.

        Parts about removed queues are returned only if the document has them. Raises InputError, and any exception that
        malformed content causes.
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

    def _departed(self, kept: Mapping[str, object]) -> dict[str, Any]:
        return {name: read(kept[name]) for name, read in self.PARTS.items() if name in kept or name in _ALWAYS}

    def _take_over(self, announced: Mapping[str, dict[str, Any]], document: Mapping[str, object]) -> None:
        """Replace the parts by those ``announced`` in another controller's ``document``."""
        for name, kept in announced.items():
            setattr(self, _FIELDS.get(name, name), kept)
        self.generation = max(self.generation, generation_of(document.get("generation")))
        self.from_copy |= document.get("from_copy") is True
        self.managed = {path: kept for path, kept in self.managed.items() if kept}

    def _forget_all(self) -> None:
        """Forget which values are managed, and remember in ``returned`` what is forgotten."""
        for path, managed in self.managed.items():
            if managed:
                kept = {"baseline": dict(self.baseline.get(path, {})), "ours": {k: list(v) for k, v in managed.items()}}
                if texts := self._texts(path):
                    kept["texts"] = dict(texts)
                depart(self.returned, path, kept)
        for path in self.baseline.keys() - self.managed.keys():
            self._update_returned(path)
        for name in self.PARTS:
            self._part(name).clear()
        self.from_copy = False
        # With a higher generation in the lock file, a copy of the ledger from before this call is recognised as older,
        # even if nothing is prepared afterwards.
        self.generation += 1

    def _update_returned(self, path: str) -> None:
        """Replace the share in a queue's entry of ``returned`` by the entitlement that the queue has had since.

        A queue that reappears later with this share would otherwise get the entitlement of before.
        """
        kept, known = self.returned.get(path), self.baseline.get(path, {})
        if kept is None or self.SHARE not in known or known[self.SHARE] == kept["baseline"].get(self.SHARE):
            return
        kept["baseline"][self.SHARE] = known[self.SHARE]
        kept.get("texts", {}).pop(self.SHARE, None)
        if (text := self._texts(path).get(self.SHARE)) is not None:
            kept.setdefault("texts", {})[self.SHARE] = text

    @property
    def writes_more(self) -> bool:
        """Whether any attribute other than the share is managed."""
        return any(managed.keys() - {self.SHARE} for managed in self.managed.values())

    def _merge_edits(self, stands: Mapping[str, Values], *, words_lost: bool) -> list[Drift]:
        """Merge other people's edits of managed attributes into the known state, and return the edits.

        ``stands`` holds the present values. A share that an administrator wrote becomes the queue's entitlement. A
        changed limit becomes the administrator's value unless a controller is known to have written it.
        ``words_lost``: another controller wrote the configuration and its announced document is lost. Changed values of
        managed attributes are then reported but not taken over.
        """
        found = self._reclaim_limits(stands)
        older = self._older_groups(stands)
        taken, computed = (set[str](), False) if words_lost else self._taken(stands)
        # Only without a lease can there be a controller that nothing announces.
        unannounced = not (self.leased or words_lost)
        if unannounced:
            computed |= self._takes_computed(stands)
            self.rivals.note(computed=computed)
            found += self._withdraw(stands)
            taken = set() if self.rivals.seen else taken
        reading = _Reading(
            older=older,
            taken=taken,
            by_rival=unannounced and (computed or self.rivals.seen),
            words_lost=words_lost,
            # A shadow, a standby and a released controller follow the administrator's file without a word.
            reports=unannounced and any(managed.get(self.SHARE) for managed in self.managed.values()),
        )
        for path in sorted(stands):
            if not self.managed.get(path, {}).get(self.SHARE):
                edits, foreign = self._merge_own_share(path, stands[path][self.SHARE], reading)
                found += edits
                if foreign:
                    continue
            for attribute, values in list(self.managed.get(path, {}).items()):
                found += self._merge_managed(path, attribute, stands[path][attribute], values, reading)
        self._stood = stands
        return found

    def _takes_computed(self, stands: Mapping[str, Values]) -> bool:
        """Return whether a share looks computed that replaces one taken as an entitlement a moment ago.

        Such a share is not managed before the next write, so that `_taken` does not see it.
        """
        return any(
            not self._by_hand(stands[path][self.SHARE])
            for path in self.rivals.lately & stands.keys()
            if not self.managed.get(path, {}).get(self.SHARE)
            and stands[path][self.SHARE] != self.baseline[path].get(self.SHARE)
        )

    def _merge_own_share(self, path: str, share: Any, reading: _Reading) -> tuple[list[Drift], bool]:
        """Merge the present share of a queue whose share is not managed.

        Returns the edits, and whether the share is a controller's, which makes it managed. Otherwise it is the
        administrator's, and becomes the queue's entitlement.
        """
        known = self.baseline[path]
        own = known[self.SHARE]
        if parent(path) in reading.older and share in self.written.get(path, []):
            # A file that was opened while a controller enforced it, and saved after the configuration was restored.
            self.managed.setdefault(path, {})[self.SHARE] = [share]
            self._texts_back(path)
            return [Drift(path, self.SHARE, f"{share}, which a controller wrote")], True
        if share == own:
            return [], False
        if reading.by_rival:
            self.managed.setdefault(path, {})[self.SHARE] = [share]
            return [Drift(path, self.SHARE, self._not_his(share, own))], True
        if reading.reports:
            self._take(path, share)
        known[self.SHARE] = share
        return [Drift(path, self.SHARE, str(share), taken=True)] if reading.reports else [], False

    def _merge_managed(
        self, path: str, attribute: str, value: Any, values: list[Any], reading: _Reading
    ) -> list[Drift]:
        """Merge the present value of a managed attribute, of which ``values`` are the controller's own."""
        known, written_as = self.baseline[path], self._written_as(path, attribute)
        own = known.get(attribute)
        late = value is not None and value != own and value in self._unanswered.get(written_as, [])
        if late or value in values:
            # Keep the one of the managed values that is present in the file.
            others = [other for other in values if other not in (value, own)]
            remember_written(self.written, written_as, others)
            if others:
                self._unanswered[written_as] = [*self._unanswered.get(written_as, [])[-_MOST_UNANSWERED:], *others]
            values[:] = [value]
            return []
        before, share = value == own, attribute == self.SHARE
        adopted = share and path in reading.taken
        # An older copy of the document brings back a value that a controller wrote. With an older copy of the ledger,
        # such a limit may be unknown, and only its digits show that it was computed.
        written = value is not None and value in self.written.get(written_as, [])
        computed = value is not None and not share and self.from_copy and not self._limit_by_hand(attribute, value)
        text = "nothing" if value is None else str(value)
        if before:
            text = "what it was before the controller"
        elif share and not adopted and value is not None:
            text = _stays(value, own) if written else text if reading.words_lost else self._not_his(value, own)
        elif not share and (written or computed):
            text = f"{value}, which {_OF_COPY if computed else _WRITTEN}; {_kept_as(own)}"
        is_his = adopted if share else not (reading.words_lost or written or computed)
        if is_his and not before:
            if share:
                self._take(path, value)
            known[attribute] = value
        values[:] = [value]
        if adopted:
            del self.managed[path][attribute]
        return [Drift(path, attribute, text, taken=adopted and not before)]

    def _not_his(self, share: object, own: object) -> str:
        return _of_rival(share, own) if self.rivals.seen and not self.leased else _like_computed(share, own)

    def _take(self, path: str, share: object) -> None:
        """Record that a share becomes a queue's entitlement, for the case that another controller has written it."""
        text = self._texts(path).get(self.SHARE) if self.managed.get(path) else None
        self.rivals.took(path, self.baseline[path].get(self.SHARE), share, text)

    def _withdraw(self, stands: Mapping[str, Values]) -> list[Drift]:
        """Restore entitlements that were replaced by what another controller had written."""
        found = []
        for path, taken in self.rivals.withdraw():
            known = self.baseline.get(path)
            if path not in stands or known is None or known.get(self.SHARE) != taken.share:
                continue
            known[self.SHARE] = taken.before
            if taken.text is not None:
                self._texts(path)[self.SHARE] = taken.text
            self.managed.setdefault(path, {}).setdefault(self.SHARE, [stands[path][self.SHARE]])
            text = f"not taken as its entitlement any more: {taken.share} was another controller's; "
            text += _kept_as(taken.before)
            found.append(Drift(path, self.SHARE, text))
        return found

    def _older_groups(self, stands: Mapping[str, Values]) -> set[str]:
        """Return the parents of the sibling groups whose shares come from an older copy of the document.

        A group is recognised by a sibling whose share is known to have been written by a controller earlier and is not
        a round number. A round share could also be the administrator's, unless several siblings have such shares and no
        sibling has another one than a controller's or its own.
        """
        back: dict[str, list[bool]] = {}
        for path, written in self.written.items():
            if (
                path in stands
                and (share := stands[path][self.SHARE]) in written
                and share not in self.managed.get(path, {}).get(self.SHARE, [])
                and share != self.baseline.get(path, {}).get(self.SHARE)
            ):
                back.setdefault(parent(path), []).append(self._by_hand(share))
        found = {above for above, by_hand in back.items() if not all(by_hand)}
        several = {above for above, by_hand in back.items() if len(by_hand) > 1} - found
        if several:
            several -= {parent(path) for path in stands if not self._is_known_share(path, stands[path][self.SHARE])}
        return found | several

    def _is_known_share(self, path: str, share: object) -> bool:
        """Return whether a queue's share is its entitlement, or one that a controller has written for it."""
        own = self.baseline.get(path, {}).get(self.SHARE)
        managed = self.managed.get(path, {}).get(self.SHARE, [])
        return share == own or share in managed or share in self.written.get(path, [])

    def _taken(self, stands: Mapping[str, Values]) -> tuple[set[str], bool]:
        """Return the queues whose managed share was replaced by an administrator, as far as the values show.

        Also returns whether somebody else has written shares that look computed.
        A share that a controller is known to have written comes from an older copy of the document, unless its siblings
        show that a person has chosen it (`harness.control.chosen`).
        """
        groups: dict[str, dict[str, Any]] = {}
        for path, managed in self.managed.items():
            if path in stands and managed.get(self.SHARE):
                share = stands[path][self.SHARE]
                if share not in managed[self.SHARE] and share not in self.written.get(path, []):
                    groups.setdefault(parent(path), {})[path] = share
        persons = self._changed_by_hand(groups, stands)
        his = {path for above, changed in groups.items() if above in persons for path in changed}
        his |= {path for path in self._chosen(stands) if parent(path) in persons}
        return his, bool(groups.keys() - persons)

    def _chosen(self, stands: Mapping[str, Values]) -> set[str]:
        """Return the managed queues whose share a person has chosen although a controller wrote it earlier.

        With an older copy of the ledger, a share that is not known may be a controller's, so that it shows nothing.
        """
        return set() if self.from_copy else self._chosen_of(stands, self.baseline, self.managed, self.written)

    def _chosen_of(
        self,
        stands: Mapping[str, Values],
        baseline: Mapping[str, Values],
        managed: Mapping[str, Mapping[str, Sequence[Any]]],
        written: Mapping[str, Sequence[Any]],
    ) -> set[str]:
        """Do what `_chosen` describes, with the given state."""
        known = {
            path: KnownShares(
                own=self._own_shares_of(baseline[path]),
                last=managed[path][self.SHARE],
                earlier=written.get(path, ()),
            )
            for path in managed.keys() & baseline.keys()
            if managed[path].get(self.SHARE)
        }
        return chosen_again({path: present[self.SHARE] for path, present in stands.items()}, known, self._by_hand)

    def _own_shares_of(self, baseline: Mapping[str, Any]) -> list[Any]:
        """Return the shares that a queue has with its entitlement: where it has none, Hadoop's default is one, too."""
        own = baseline.get(self.SHARE)
        return [own] if own is not None or self.ABSENT is None else [own, self.ABSENT]

    def _chosen_since_return(self, stands: Mapping[str, Values]) -> set[str]:
        """Return the queues whose share a person has chosen since the configuration was restored.

        Like `_chosen`, for the first reading after that (`_reclaim`).
        """
        known = {
            path: KnownShares(
                own=self._own_shares_of(kept["baseline"]),
                last=(),
                earlier=(*kept["ours"].get(self.SHARE, []), *self.written.get(path, [])),
            )
            for path, kept in self.returned.items()
            if path not in self.baseline
        }
        return chosen_again({path: present[self.SHARE] for path, present in stands.items()}, known, self._by_hand)

    def _changed_by_hand(self, groups: Mapping[str, Mapping[str, object]], stands: Mapping[str, Values]) -> set[str]:
        """Return the parents of the sibling groups whose unknown shares a person has written.

        If any share of a group looks computed, another controller has written the whole group. ``groups``: parent ->
        queue -> unknown share.
        """
        return {above for above, changed in groups.items() if all(self._by_hand(share) for share in changed.values())}

    @abstractmethod
    def _by_hand(self, share: object) -> bool:
        """Return whether a person may have written this share; a computed share has more digits."""

    def _restored(self, stands: Mapping[str, Values]) -> dict[str, Values]:
        """Return the administrator's values of all managed attributes, by queue, without changing state."""
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
        """Yield each present queue with the target values of its wanted and managed attributes (None: remove).

        The target values are recorded in ``managed`` and ``baseline``.
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
                    # The policy no longer declares the attribute: restore its baseline.
                    value = self._back(attribute, known.get(attribute))
                else:
                    continue
                mine = managed.setdefault(attribute, [present[attribute]])
                if mine[-1] != value:
                    mine.append(value)
                due[attribute] = value
            yield path, due

    def _back(self, attribute: str, value: object) -> Any:
        """Return the value to restore for an attribute whose baseline is ``value``."""
        return value

    def _settle(self) -> None:
        """Record that the prepared values have been written."""
        for path, attributes in self.managed.items():
            for attribute, values in attributes.items():
                own = self.baseline.get(path, {}).get(attribute)
                others = [value for value in values if value != own]
                remember_written(self.written, self._written_as(path, attribute), others)
                del values[:-1]

    def _forget(self, path: str) -> dict[str, Any]:
        """Remove a queue's entries from all parts and return them."""
        return {name: self._part(name).pop(path, {}) for name in self.PARTS}

    def _reclaim(self, path: str, present: Mapping[str, object], chosen: Collection[str]) -> list[Drift]:
        """Recognise values of an unknown queue as written by a controller before it restored the configuration.

        Such values are never taken for the administrator's, except the shares of the queues in ``chosen``
        (`_chosen_since_return`). The administrator's values of that time become the baseline, and the present values
        become managed.
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
            if attribute == self.SHARE and path in chosen:
                self.baseline.setdefault(path, {})[attribute] = value
                found.append(Drift(path, attribute, f"{value}, as {_WRITTEN} once, beside new shares", taken=True))
                continue
            self.baseline.setdefault(path, {self.SHARE: present[self.SHARE]})[attribute] = own
            self.managed.setdefault(path, {})[attribute] = [value]
            found.append(Drift(path, attribute, _stays(value, own)))
        if path in self.managed:
            self._texts_back(path)
        return found

    def _reclaim_limits(self, stands: Mapping[str, Values]) -> list[Drift]:
        """Recognise limits that a controller wrote before it restored the configuration, in a later reading.

        `_reclaim` recognises them when a queue is read first. Without managed limits nobody compares them afterwards,
        and the first policy that declares them would take those of an older copy for the administrator's. Since an
        administrator may write a round limit that a controller wrote once, only limits of several queues that come back
        in the same reading count, or one that no person would write.
        """
        before = self._stood or {}
        back: dict[str, list[str]] = {}
        for path, kept in self.returned.items():
            if path not in stands or path not in self.baseline:
                continue
            for attribute, values in kept["ours"].items():
                if attribute == self.SHARE or attribute in self.managed.get(path, {}):
                    continue
                value, own = stands[path].get(attribute), kept["baseline"].get(attribute)
                if value in (None, own, before.get(path, {}).get(attribute)):
                    continue
                if value in values or value in self.written.get(self._written_as(path, attribute), []):
                    back.setdefault(attribute, []).append(path)
        found = []
        for attribute, paths in back.items():
            if len(paths) == 1 and self._limit_by_hand(attribute, stands[paths[0]][attribute]):
                continue
            for path in paths:
                kept, value = self.returned[path], stands[path][attribute]
                own = self.baseline[path][attribute] = kept["baseline"].get(attribute)
                self.managed.setdefault(path, {})[attribute] = [value]
                if attribute in kept.get("texts", {}):
                    self._texts(path)[attribute] = kept["texts"][attribute]
                text = f"{value}, which {_WRITTEN}; {_kept_as(own)}"
                found.append(Drift(path, attribute, text))
        return found

    def _newcomers(self, stands: Mapping[str, Values], gone: Sequence[str]) -> list[Drift]:
        """Give new queues that were renamed, moved or copied with a controller's share the entitlement of their model.

        Such a share equals, to the last digit, a share that a controller wrote for the model. A share that a person may
        also have written counts only if its model was removed. Every other share of a new queue beside managed siblings
        is reported, because it becomes the queue's entitlement. ``stands`` is in the order of the document, and so is
        ``gone``, the queues that have just been removed.
        """
        new = {path: share for path, present in stands.items() if (share := present[self.SHARE]) is not None}
        new = {path: share for path, share in new.items() if path not in self.baseline}
        if not new:
            return []
        left = [path for path in gone if path in self.departed]
        steered = {parent(path) for path, managed in self.managed.items() if managed.get(self.SHARE)}
        steered |= {parent(path) for path in left}
        # If a whole group was copied or renamed, its children are in the same order as before, so the new parents are
        # searched, too. At the first reading every queue is new, and none is a copy.
        groups = stands.keys() - self.baseline.keys() if self.baseline else set()
        models = self._models(left, self._replaced(stands), beside=steered | groups)
        found = models.likenesses(new, self._by_hand)
        chosen = models.choose(found)
        edits = []
        for path, share in new.items():
            like = chosen.get(path)
            own = None if like is None else models.known[like.model]["baseline"][self.SHARE]
            if like is not None and share != (self.ABSENT if own is None else own):
                others = [one.model for one in found if (one.path, one.rank) == (path, like.rank)]
                edits.append(self._continue(like, stands[path], models.known, others))
                continue
            same = models.last_written_for(share, path) if like is None else []
            copied = bool(same) and leaf(same[0]) == leaf(path) and parent(path) in models.beside
            if parent(path) in steered or copied:
                text = f"{share}, as a controller wrote for {same[0]}" if same else str(share)
                edits.append(Drift(path, self.SHARE, text, taken=True))
        return edits

    def _replaced(self, stands: Mapping[str, Values]) -> set[str]:
        """Return the managed queues with another share than a controller's, beside siblings that have a controller's.

        If no sibling has one, an administrator has written the whole group, and not edited a controller's file.
        """
        written = {path: managed[self.SHARE] for path, managed in self.managed.items() if managed.get(self.SHARE)}
        kept = {path for path in written.keys() & stands.keys() if stands[path][self.SHARE] in written[path]}
        steered = {parent(path) for path in kept if stands[path][self.SHARE] != self.baseline[path].get(self.SHARE)}
        others = written.keys() & stands.keys() - kept
        return {path for path in others if parent(path) in steered}

    def _models(self, left: Sequence[str], replaced: Collection[str], *, beside: Collection[str]) -> Models:
        """Return the known values of all queues for which a controller has written a share.

        Queues in ``left``, the ones just removed, come first. ``beside``: parents with managed or with new children.
        """
        texts = self._part("texts") if "texts" in self.PARTS else {}
        here = {
            path: {"baseline": self.baseline.get(path, {}), "ours": kept, "texts": texts.get(path, {})}
            for path, kept in self.managed.items()
        }
        all_known = {**{path: self.departed[path] for path in left}, **self.returned, **self.departed, **here}
        known = {path: kept for path, kept in all_known.items() if self.SHARE in kept.get("baseline", {})}
        later = [path for path, kept in self.departed.items() if not kept.keys() & {"named", RENAMED}][-LATELY:]
        return Models(
            known=known,
            wrote=self._wrote_for(known),
            left=left,
            replaced=replaced,
            later=later,
            managed=self.managed,
            beside=beside,
        )

    def _wrote_for(self, models: Mapping[str, Mapping[str, Any]]) -> dict[Any, dict[str, bool]]:
        """Return share -> queue -> whether that share was the last that a controller wrote for the queue."""
        wrote: dict[Any, dict[str, bool]] = {}
        for path, kept in models.items():
            for shares, last in ((self.written.get(path, []), False), (kept.get("ours", {}).get(self.SHARE, []), True)):
                for share in shares:
                    if isinstance(share, int | float | str):
                        wrote.setdefault(share, {})[path] = last
        return wrote

    def _continue(
        self, like: Likeness, present: Values, models: Mapping[str, Mapping[str, Any]], others: Sequence[str]
    ) -> Drift:
        """Give a new queue the entitlement of its model. The queues in ``others`` are equally likely models.

        The same holds for limits and other attributes that a controller wrote for the model: if the new queue still has
        them, a release restores the administrator's values of the model.
        """
        path, model = like.path, like.model
        share, known = present[self.SHARE], models[model]
        own = known["baseline"][self.SHARE]
        self.baseline[path], self.managed[path] = {self.SHARE: own}, {self.SHARE: [share]}
        continued = [self.SHARE]
        for attribute, values in known.get("ours", {}).items():
            value = present.get(attribute)
            if attribute != self.SHARE and value is not None and value in values:
                self.baseline[path][attribute] = known["baseline"].get(attribute)
                self.managed[path][attribute] = [value]
                continued.append(attribute)
        for attribute in continued:
            if text := known.get("texts", {}).get(attribute):
                self._texts(path)[attribute] = text
        if model in self.departed and model not in self.managed:
            self.departed[model][RENAMED] = True
        another = "another" if self._by_hand(share) else "a round"
        words = f"{share}, which a controller wrote for {model}; its entitlement is that one's own, "
        words += f"{_shown(own)} (to change it, write {another} share, or name it in `queues`)"
        unlike = [other for other in others if models[other]["baseline"][self.SHARE] != own]
        if unlike:
            shown = ", ".join(f"{other} ({_shown(models[other]['baseline'][self.SHARE])})" for other in unlike[:3])
            words += f". It could as well be that of {shown}: the order of the queues has decided, so check it"
        return Drift(path, self.SHARE, words)

    def _texts(self, path: str) -> dict[str, str | None]:
        """Return the administrator's original text of a queue's attributes, byte for byte, where it is known."""
        return {}

    def _texts_back(self, path: str) -> None:
        """Restore the administrator's original texts of a queue from its entry in `returned`."""
        self._texts(path).update(self.returned.get(path, {}).get("texts", {}))

    def _written_as(self, path: str, attribute: str) -> str:
        """Return the key under which `written` stores a queue's attribute; for the share it is the queue's path."""
        return path if attribute == self.SHARE else f"{path}\t{attribute}"

    def _hold_against(
        self, announced: Mapping[str, dict[str, Any]], stands: Mapping[str, Values], is_managed: IsManaged
    ) -> None:
        """Remove from an announced document what the present configuration contradicts.

        A present value belongs to the administrator if the document lists it neither as managed nor as written earlier
        (an older copy of the file would contain such a value). Queues that are absent keep their entries, because they
        may reappear unchanged.
        """
        baseline, managed = announced["baseline"], announced["ours"]
        written = announced.get("written", self.written)
        chosen = set() if self.from_copy else self._chosen_of(stands, baseline, managed, written)
        for path in managed.keys() & stands.keys():
            for attribute, values in list(managed[path].items()):
                value = stands[path].get(attribute)
                if is_managed(attribute, value, values):
                    continue
                earlier = value is not None and value in written.get(self._written_as(path, attribute), [])
                if earlier and not (attribute == self.SHARE and path in chosen):
                    values.append(value)
                    continue
                for kept in (managed, baseline, announced.get("texts", {})):
                    kept.get(path, {}).pop(attribute, None)
        for path in baseline.keys() & stands.keys():
            if self.SHARE not in managed.get(path, {}):
                baseline[path][self.SHARE] = stands[path][self.SHARE]

    def _hold_remembered(self, stands: Mapping[str, Values], is_managed: IsManaged) -> None:
        """Treat the remembered state like another controller's document: a differing value is the administrator's.

        If one of several siblings has a share that no person would write, a controller has written the whole group, and
        the remembered values are kept. The same holds for computed limits, over the whole document.
        """
        announced = {name: self._part(name) for name in (*self.PARTS, *_KEPT)}
        self.from_copy = True
        self._hold_computed(stands)
        shares = {path: stands[path][self.SHARE] for path in self.managed.keys() & stands.keys()}
        not_his = {parent(path) for path, share in shares.items() if not self._by_hand(share)}
        for path, share in shares.items():
            managed = self.managed[path]
            computed = parent(path) in not_his
            if not managed.get(self.SHARE) or share in managed[self.SHARE]:
                continue
            if computed or self._means_absent(path, share):
                managed[self.SHARE].append(share)
        for attribute in self.ATTRIBUTES:
            if attribute != self.SHARE:
                self._hold_limits(attribute, stands)
        self._hold_against(announced, stands, is_managed)
        self.managed = {path: kept for path, kept in self.managed.items() if kept}

    def _means_absent(self, path: str, share: object) -> bool:
        """Whether the administrator set no share and ``share`` is Hadoop's default, so that nothing was changed."""
        unnamed = path in self.baseline and self.baseline[path].get(self.SHARE) is None
        return unnamed and share is not None and share == self.ABSENT

    def _hold_computed(self, stands: Mapping[str, Values]) -> None:
        """Apply `hold_against_file` to shares that the remembered state does not list as managed.

        The remembered state then dates from after a release (`forget`), and another controller has written since.
        """
        groups: dict[str, dict[str, tuple[Any, Any]]] = {}
        for path, said in stands.items():
            known = self.baseline.get(path) or self.returned.get(path, {}).get("baseline", {})
            own, share = known.get(self.SHARE), said[self.SHARE]
            if self.SHARE in known and share != own and not self.managed.get(path, {}).get(self.SHARE):
                groups.setdefault(parent(path), {})[path] = own, share
        for group in groups.values():
            if all(self._by_hand(share) for _, share in group.values()):
                continue
            for path, (own, share) in group.items():
                self.baseline.setdefault(path, {})[self.SHARE] = own
                self.managed.setdefault(path, {})[self.SHARE] = [share]
                self._texts_back(path)

    def _hold_limits(self, attribute: str, stands: Mapping[str, Values]) -> None:
        """Apply `hold_against_file` to one limit.

        A controller writes a limit for all queues at once, including queues added later. If most of the limits that it
        had written have changed, a controller has written all of them again.
        """
        # Restored values of which the copy knows nothing else: the administrator's are known from the last release.
        restored = {path: kept["baseline"] for path, kept in self.returned.items() if attribute in kept["baseline"]}
        if not restored and not any(attribute in managed for managed in self.managed.values()):
            return
        later = {
            path: value
            for path, said in stands.items()
            if (value := said.get(attribute)) not in (None, self.baseline.get(path, {}).get(attribute))
            and value not in self.managed.get(path, {}).get(attribute, [])
            and (
                attribute in self.managed.get(path, {})
                or (path not in self.baseline and not self._limit_by_hand(attribute, value))
                or (
                    path in restored
                    and attribute not in self.baseline.get(path, {})
                    and value != restored[path][attribute]
                )
            )
        }
        here = [path for path in stands if attribute in self.managed.get(path, {})]
        # A person changes one of many values; if most of them changed at once, a controller has computed them.
        changed = [path for path in here if path in later]
        if not (len(changed) > 1 and 2 * len(changed) > len(here)) and all(
            self._limit_by_hand(attribute, value) for value in later.values()
        ):
            return
        for path, value in later.items():
            own = restored.get(path, {}).get(attribute)
            self.baseline.setdefault(path, {self.SHARE: stands[path][self.SHARE]}).setdefault(attribute, own)
            self.managed.setdefault(path, {}).setdefault(attribute, []).append(value)

    @abstractmethod
    def _limit_by_hand(self, attribute: str, value: object) -> bool:
        """Return whether a person may have written this value of an attribute other than the share."""

    def unknown_shares(self) -> list[str]:
        """Describe queues whose share was unknown when first read and looks computed."""
        return [
            f"{path} has {values[self.SHARE]}"
            for path, values in self.baseline.items()
            if values.get(self.SHARE) is not None
            and not self._by_hand(values[self.SHARE])
            and self.SHARE not in self.managed.get(path, {})
        ]

    def _depart(self, path: str) -> None:
        """Move the entries of a queue that no longer exists to ``departed``."""
        self._update_returned(path)
        kept = {name: known for name, known in self._forget(path).items() if known}
        if "ours" in kept:
            depart(self.departed, path, kept)

    def _returned(self, path: str, value: object) -> dict[str, Any] | None:
        """Restore the entry of a queue that reappears with a managed share, and with it the queue's entitlement.

        Returns the entry. None if there is no entry, or if the queue's share (``value``) is not a managed one.
        """
        kept = self.departed.pop(path, None)
        if kept is None:
            return None
        if value not in kept["ours"].get(self.SHARE, []):
            # The share may come from a file that was opened before the queue was removed.
            if self._by_hand(value) or value not in self.written.get(path, []):
                return None
            kept["ours"][self.SHARE] = [value]
        kept.pop(RENAMED, None)
        self.baseline[path], self.managed[path] = kept["baseline"], kept["ours"]
        return kept

    def shift(self, seconds: float) -> None:
        """Move all times by ``seconds``, after the clock that took them was found to be wrong."""
        for kept in self.departed.values():
            if "named" in kept:
                kept["named"] += seconds
