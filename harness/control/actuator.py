"""The base class of the actuators: a scheduler's configuration, and whose each value in it is.

`harness.control.ownership` decides whose a value is. Here the configuration is read, held against what a
ResourceManager would accept, and restored. The entitlements of each group of siblings are kept valid, so that a
ResourceManager accepts a document that contains them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from harness.base.errors import InputError
from harness.control.lease import Lease, Memory, lease_of
from harness.control.ownership import Drift, Ownership, generation_of
from harness.control.values import IsManaged, Nonsense, Values
from harness.model.plan import ResourceName
from harness.yarn.capacity.source import RestoredValues
from harness.yarn.files import ConfigStore, always


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document that is ready to be written.

    ``in_force`` maps each queue to the weight (Capacity Scheduler: the capacity setting) that the RM will show
    afterwards.
    """

    before: bytes
    after: bytes
    in_force: Mapping[str, float]
    #: Queues of the plan that the file does not name (ad hoc queues). They keep weight 1; their siblings are scaled.
    ad_hoc: tuple[str, ...] = ()
    #: Parts of the plan that cannot be carried out, described for a person.
    problems: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether writing would change anything."""
        return self.before != self.after


@dataclass(slots=True)
class BaseActuator(Ownership):
    """A scheduler's configuration with its baseline and managed values."""

    store: object
    #: Number of reads that found what is the administrator's in the document changed. An answer that is out of date, or
    #: an older copy with a controller's values, changes nothing of it.
    edits: int = field(default=0, init=False)
    #: What was the administrator's at the last such read (`_own_content`).
    _own_before: object = field(default=None, init=False)
    #: Reasons why a ResourceManager would refuse the administrator's own document; None: not checked since the last
    #: read.
    _refusals: tuple[str, ...] | None = field(default=None, init=False)

    @property
    def creating(self) -> frozenset[str]:
        """Queues below which Hadoop creates queues by itself; their values are not changed. Empty by default."""
        return frozenset()

    @classmethod
    def restored(cls, store: object, document: Callable[[str], object]) -> Self:
        """Restore the actuator from a ledger's documents (``document``: name -> content, None if absent)."""
        actuator = cls(store, **cls.parts_of(document))
        actuator.generation = generation_of(document("generation"))
        actuator.from_copy = document("from_copy") is True
        return actuator

    def reopened(self, document: Callable[[str], object]) -> Self:
        """Return an actuator of the same configuration, restored from a ledger's documents (see `restored`)."""
        return type(self).restored(self.store, document)

    def opened_on(self, place: ConfigStore, document: Callable[[str], object]) -> Self:
        """Return an actuator of another file, restored from a ledger's documents (see `restored`).

        Only for a configuration that is a file (`beside`).
        """
        return type(self).restored(place, document)

    @abstractmethod
    def original(self) -> Prepared:
        """Return the configuration with the administrator's values in place of the managed ones."""

    def restore_other(self, place: ConfigStore, document: Callable[[str], object]) -> bool:
        """Restore the administrator's values in another file that this ledger's controller wrote."""
        if not any(self.managed.values()):
            return False
        earlier = self.opened_on(place, document)
        earlier.read()
        original = earlier.original()
        if original.changed:
            place.write(original.after, before=original.before)
        return True

    def restore_written(self, still: Callable[[], None] = always) -> RestoredValues | None:
        """Return None: such a configuration is restored as a whole, or not at all."""
        return None

    def forget(self) -> None:
        """Forget which values are managed: the values that the next read finds are the administrator's entitlements.

        Removed queues keep their entries, because they may reappear with a controller's values. Existing queues are
        remembered in ``returned`` for the same reason: somebody may save a file that was opened before the restore.
        """
        self._forget_all()
        self._refusals = None
        self._look_anew()

    def adopt(self, document: Mapping[str, object], *, lives: bool = False) -> None:
        """Take over another controller's document.

        Values in the configuration that the document lists as managed are treated as managed, and the document's
        baseline as the administrator's values. A present value that differs from the document belongs to the
        administrator, unless the other controller is still running (``lives``) and will overwrite the edit.

        Raises Nonsense for an invalid document, and whatever reading raises; nothing is adopted then.
        """
        try:
            announced = self._checked(document)
        except (InputError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise Nonsense(error) from None
        if not lives:
            self._hold_against(announced, *self._stands_and_managed())
        self._take_over(announced, document)
        self._refusals = None
        self._look_anew()

    def hold_against_file(self) -> None:
        """Hold the remembered state against the configuration: a differing value is the administrator's.

        Used when the ledger is older than the file and its later state is lost. Raises what reading raises.
        """
        self._hold_remembered(*self._stands_and_managed())
        self._refusals = None
        self._look_anew()

    def _stands_and_managed(self) -> tuple[dict[str, Values], IsManaged]:
        """Return the present values and a predicate that recognises managed values, both from one read."""
        return self._stands(), lambda _, value, values: value in values

    @property
    @abstractmethod
    def beside(self) -> ConfigStore | None:
        """The store beside which the lease file is kept; None if this actuator has no lease."""

    def lease(
        self, identity: str, lease_s: float, clock: Callable[[], float], memory: Memory | None = None
    ) -> Lease | None:
        """Return the lease for the controller ``identity``.

        None if this actuator has no place for a lease or ``lease_s`` is 0. For ``memory`` see `Lease`.
        """
        found = lease_of(self.beside, identity, lease_s, clock, memory) if lease_s > 0 and self.beside else None
        self.leased = found is not None
        return found

    @abstractmethod
    def recognise_by(self, recognise: Callable[[], None]) -> None:
        """Set a check that runs before the ResourceManager's own configuration store is read or changed.

        The check raises if the store belongs to another cluster.
        """

    def dangers(self) -> tuple[str, ...]:
        """Describe content of the configuration, as of the last `read`, that may crash a ResourceManager."""
        return ()

    @abstractmethod
    def _stands(self) -> dict[str, Values]:
        """Read the present values: queue -> attribute -> value."""

    def names(self) -> frozenset[str]:
        """Read the names of the queues that are present, without changing state. Raises what reading raises."""
        return frozenset(self._stands())

    @abstractmethod
    def _look_anew(self) -> None:
        """Invalidate the result of the last read."""

    def counted_resource(self) -> ResourceName:
        """Return by which resource the scheduler compares queues, from its present configuration.

        Raises InputError or Unreachable if the configuration cannot be read; the state stays unchanged.
        """
        return "memory"

    def read(self, *, words_lost: bool = False) -> list[Drift]:
        """Read the configuration, add new queues to the baseline, and return other people's edits of managed values.

        Parameters
        ----------
        words_lost
            Whether another controller wrote the configuration and its last announcement is lost, so that a value may be
            that controller's.

        Raises
        ------
        InputError, Unreachable
            If the configuration cannot be read or is invalid; the state is unchanged then.
        """
        self.rivals.reads += 1
        return self._read(words_lost=words_lost)

    @abstractmethod
    def _read(self, *, words_lost: bool) -> list[Drift]:
        """Do what `read` describes."""

    def _merge(self, stands: Mapping[str, Values], *, words_lost: bool) -> list[Drift]:
        """Merge what is present into the known state, so that both are valid together, and return the edits.

        For the parameters see `Ownership._merge_edits`.
        """
        found = self._merge_edits(stands, words_lost=words_lost)
        found += self._unite(stands)
        self._refusals = None
        own = self._own_content()
        if own is None or own != self._own_before:
            self.edits += 1
        self._own_before = own
        return found

    def _own_content(self) -> object:
        """Return the present document with the administrator's values in place of managed ones; None: unknown."""
        return None

    @abstractmethod
    def _unite(self, stands: Mapping[str, Values]) -> list[Drift]:
        """Make the entitlements of each sibling group valid together with the administrator's present values.

        If the values to be restored would be refused but the present values are accepted, the present values become the
        administrator's.
        """

    def refusals(self) -> tuple[str, ...]:
        """Describe why a ResourceManager would refuse the administrator's own document; empty if it would accept it.

        The administrator's own document is the present document with the baseline in place of managed values.
        """
        if self._refusals is None:
            self._refusals = self._own_refusals()
        return self._refusals

    @abstractmethod
    def _own_refusals(self) -> tuple[str, ...]:
        """Compute `refusals`."""

    def write_groups(self, prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
        """Write prepared changes one sibling group at a time, after they were refused as a whole.

        Returns the refused groups' parents with the reason. Only a store that accepts individual changes supports this;
        a file is always written whole.
        """
        raise NotImplementedError

    @abstractmethod
    def problems_of(self, prepared: Prepared) -> tuple[str, ...]:
        """Describe why a ResourceManager would refuse the prepared document.

        Reasons that also apply to the administrator's own document are left out.
        """
