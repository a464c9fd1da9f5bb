"""Protocols through which the controller accesses a cluster: actuator, configuration store and observer.

The drivers (`harness.control.wall`, `harness.control.tenure`, `harness.control.giveback`) use only these protocols, so
a controller can work on any system that implements them. Three implementations are included:

- `harness.control.file_actuator.FileActuator` for a Fair Scheduler's allocation file;
- `harness.control.capacity_actuator.CapacityActuator` for a Capacity Scheduler's file or store;
- `harness.systems.kueue` for the weights of Kubernetes Kueue's ClusterQueues, an example of an extension.

``ClientT`` is the type of the connection to the cluster (`harness.yarn.rmclient.RmClient` for YARN). The drivers only
pass it on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from harness.control.actuator import Prepared
from harness.control.events import Observed
from harness.control.identity import ClusterFacts
from harness.control.lease import Lease, Memory
from harness.control.ownership import Drift
from harness.control.settings import ControlSettings
from harness.control.values import Values
from harness.ledger.accounts import RmAccounts
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.yarn.answers import ClusterInfo
from harness.yarn.capacity.source import RestoredValues
from harness.yarn.capacity.traps import Trap
from harness.yarn.files import ConfigStore, always
from harness.yarn.http import HttpOptions

__all__ = ["Actuator", "ConfigStore", "Document", "Entitlements", "Observer", "ObserverContext", "SteeredSystem"]

ClientT = TypeVar("ClientT")
#: `ClientT` for protocols that only receive a client.
ClientIn = TypeVar("ClientIn", contravariant=True)
#: A function from the name of a ledger document to its content (None: there is no document of that name).
Document = Callable[[str], Any]
#: The values of an actuator's settings in a configuration file.
Scalar = str | int | float | bool | None


class Entitlements(Protocol):
    """The administrator's entitlements and limits, from which an `Observer` builds a snapshot."""

    def configured_weights(self) -> dict[str, float]:
        """Return the administrator's share of each queue, in any unit in which the ratios of siblings are correct."""

    def min_shares(self) -> dict[str, Resource]:
        """Return the administrator's minimum shares of queues whose minimum share the controller has written."""

    def max_shares(self, capacity: Resource) -> dict[str, Resource]:
        """Return the administrator's maximum shares of queues whose maximum share the controller has written.

        Parameters
        ----------
        capacity
            The cluster's capacity, in MiB and vcores.
        """


class Actuator(Entitlements, Protocol[ClientIn]):
    """The actuator of one scheduler's configuration: tracks the owner of each value, writes values and verifies them.

    An actuator remembers the administrator's values (`baseline`) and the values that the controller wrote (`managed`),
    and stores both in a plain document. Methods that access the configuration raise `harness.base.errors.InputError` if
    it cannot be read or would be refused, `harness.yarn.errors.Unreachable`, or `harness.yarn.errors.Refused`.
    """

    generation: int
    """A counter that each prepared document increases. Of two ledgers, the one with the higher value is newer."""
    edits: int
    """Number of reads that found the configuration changed by somebody else."""

    @property
    def baseline(self) -> Mapping[str, Values]:
        """The administrator's values: queue -> attribute -> value."""

    @property
    def managed(self) -> Mapping[str, Mapping[str, list[Any]]]:
        """The controller's values: queue -> attribute -> values that may be in force, the latest last."""

    @property
    def departed(self) -> Mapping[str, Mapping[str, Any]]:
        """Removed queue -> its baseline and managed values."""

    @property
    def scheduler(self) -> str:
        """Name of the scheduler for readers of the ledger. '' stands for the Fair Scheduler, as in older ledgers."""

    @property
    def values_name(self) -> str:
        """Name of the written values in messages, for example "weights and limits"."""

    @property
    def creating(self) -> frozenset[str]:
        """Parent queues whose children the cluster creates automatically. The children's values are not changed."""

    @property
    def load_validates(self) -> bool:
        """Whether the cluster validates a loaded configuration as completely as at its start."""

    @property
    def loaded_otherwise(self) -> str:
        """How an unreachable cluster loads the configuration later, as a phrase for messages."""

    @property
    def beside(self) -> ConfigStore | None:
        """The store beside which a lease is kept; None if there is no lease to keep two controllers apart."""

    # --- stored and announced state ---

    def document(self) -> dict[str, Any]:
        """Return the ownership of all values as JSON, for the ledger and for other controllers (`adopt`)."""

    def reopened(self, document: Document) -> Actuator[ClientIn]:
        """Return an actuator of the same configuration that resumes from the contents of a ledger.

        Parameters
        ----------
        document
            The parts of `document`, by name.
        """

    def adopt(self, document: Mapping[str, object], *, lives: bool = False) -> None:
        """Resume from another controller's `document`.

        Parameters
        ----------
        document
            The announced document.
        lives
            Whether that controller is still running. It will overwrite edits with its own values, so a present edit is
            not taken for the administrator's.

        Raises
        ------
        Nonsense
            The document is not valid; nothing is adopted.
        """

    def forget(self) -> None:
        """Forget all managed values: the values that the next read finds are the administrator's entitlements."""

    def hold_against_file(self) -> None:
        """Treat the remembered state like another controller's document, because the ledger is an older copy."""

    def unknown_shares(self) -> list[str]:
        """Describe queues whose share was unknown when first read and looks computed."""

    def shift(self, seconds: float) -> None:
        """Move all remembered times by ``seconds``, after their clock was found to be wrong."""

    def recognise_by(self, recognise: Callable[[], None]) -> None:
        """Set a check that runs before the cluster's own store is read or changed.

        Parameters
        ----------
        recognise
            A function that raises if another cluster answers (`Observer.check_cluster`).
        """

    def lease(
        self, identity: str, lease_s: float, clock: Callable[[], float], memory: Memory | None = None
    ) -> Lease | None:
        """Return the lease of the controller ``identity``; None if `beside` is None or ``lease_s`` is 0.

        Parameters
        ----------
        identity
            The identity of the ledger.
        lease_s
            Seconds without a renewal after which another controller may take the lease.
        clock
            Returns the time in seconds and never goes back.
        memory
            Store in which the lease keeps its observations across process restarts.
        """

    # --- reading ---

    def read(self, *, words_lost: bool = False) -> list[Drift]:
        """Read the configuration, add new queues to the baseline, and return other people's edits of managed values.

        Parameters
        ----------
        words_lost
            Whether another controller wrote the configuration and its last announcement is lost, so that a value may be
            that controller's.
        """

    def names(self) -> frozenset[str]:
        """Return the queues that are present now, without changing state."""

    def present(self) -> dict[str, float]:
        """Return the shares in the configuration as of the last `read`, no matter who wrote them."""

    def refusals(self) -> tuple[str, ...]:
        """Explain why the cluster would refuse the administrator's own configuration; empty if it would accept it."""

    def dangers(self) -> tuple[str, ...]:
        """Describe content of the configuration, as of the last `read`, that may crash the cluster's scheduler."""

    def traps(self, client: ClientIn, hadoop: tuple[int, int]) -> tuple[Trap, ...]:
        """Return the known problems of controlling this cluster.

        Parameters
        ----------
        client
            The client of the cluster.
        hadoop
            The cluster's release (`Observer.hadoop`).
        """

    def forget_traps(self) -> None:
        """Forget the known traps, so that the next `traps` queries the ResourceManager again.

        Called when another ResourceManager answers or the ResourceManager was restarted.
        """

    # --- writing ---

    def name_queues(self, leaves: Mapping[str, bool], now_s: float) -> None:
        """Add busy queues to the configuration that the next `prepare` starts from, and remove idle ones.

        Parameters
        ----------
        leaves
            Leaf queue of the cluster -> whether it has running applications or demand.
        now_s
            Present time on the controller's clock, seconds.
        """

    def prepare(self, attributes: Attributes) -> Prepared:
        """Return the configuration with these attributes, based on the last `read`; `document` then includes them."""

    def original(self) -> Prepared:
        """Return the configuration with the administrator's values in place of the managed ones."""

    def restore_other(self, place: ConfigStore, document: Callable[[str], object]) -> bool:
        """Restore the administrator's values in another file that this ledger's controller wrote.

        Only called for a configuration that is a file. Raises what reading and writing raise.

        Parameters
        ----------
        place
            The other file.
        document
            Name of a document in the ledger -> its content, None if absent.

        Returns
        -------
        bool
            Whether this controller manages any value, so that there was something to restore.
        """

    def restore_written(self, still: Callable[[], None] = always) -> RestoredValues | None:
        """Put the administrator's values in place of the controller's in a configuration that `read` refuses.

        A value that is not, to the letter, one that the controller has written is left alone. Returns None if this kind
        of configuration has no such way. Raises what reading and writing raise.
        """

    def problems_of(self, prepared: Prepared) -> tuple[str, ...]:
        """Explain why the cluster would refuse the prepared configuration; reasons also in `refusals` are left out."""

    def write(self, prepared: Prepared, still: Callable[[], None] = always) -> None:
        """Write a prepared configuration; raise `harness.yarn.files.FileChanged` if it was changed since the last read.

        Parameters
        ----------
        prepared
            A result of `prepare` or `original` of this actuator.
        still
            Called just before the write. It raises if the write must not happen any more.
        """

    def write_groups(self, prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
        """Write one group of siblings at a time after the whole document was refused.

        Returns the parent of each refused group -> the reason.
        """

    def touch(self) -> None:
        """Rewrite the configuration unchanged, for a cluster that polls and may have missed the last write."""

    # --- in force ---

    def load(self, client: ClientIn) -> None:
        """Make the cluster load the written configuration."""

    def confirm(self, client: ClientIn, wanted: Mapping[str, float], *, timeout_s: float, every_s: float) -> None:
        """Wait until these shares are in force.

        Parameters
        ----------
        client
            The client of the cluster.
        wanted
            Queue -> share (`Prepared.in_force`).
        timeout_s, every_s
            Longest time to wait, and interval between two queries, seconds.

        Raises
        ------
        harness.yarn.rmclient.NotEffective
            The shares are not in force after ``timeout_s``.
        """

    def in_force(self, client: ClientIn) -> dict[str, float]:
        """Return the shares in force in the cluster."""

    @property
    def writes_more(self) -> bool:
        """Return whether attributes other than shares are managed."""

    def differences(self, client: ClientIn) -> dict[str, str]:
        """Describe, by queue, managed attributes other than the share that the cluster shows differently."""


class Observer(Protocol):
    """Observes the cluster for one controller."""

    facts: ClusterFacts
    """Properties that identify the cluster, as shown last."""
    identity: list[Any] | None
    """Identity of the server that answered last, as JSON for the ledger (None: none has answered)."""
    hadoop: tuple[int, int]
    """The cluster's Hadoop release (major, minor)."""
    news: str
    """Message of the last poll that the server was restarted or that another server answers ('': neither)."""
    clock_s: float | None
    """The cluster's clock at the last poll, seconds since 1970 (None: not shown)."""
    answer_s: float
    """Time until the last poll's request for the queues was answered or failed, seconds."""

    @property
    def latest_end_ms(self) -> int:
        """Latest end of an application that the cluster has shown, ms of the cluster's clock."""

    @property
    def earliest_s(self) -> float | None:
        """Start of the earliest application in the last poll that has used resources, seconds (None: none has)."""

    @property
    def refused(self) -> Mapping[str, int]:
        """Applications of the last poll that the cluster refused -> time, ms of the cluster's clock."""

    @property
    def skipped(self) -> Mapping[str, str]:
        """Applications of the last poll whose data were invalid -> reason."""

    def check_cluster(self) -> None:
        """Check that the cluster is still the known one, before its own store is read or changed.

        Raises
        ------
        harness.control.identity.OtherCluster
            Another cluster answers.
        """

    def queues(self) -> Collection[str]:
        """Query the names of the cluster's queues."""

    def look(self, actuator: Entitlements) -> Observed:
        """Poll the cluster and bring the accounts up to the present.

        Raises YarnfairError; the accounts are unchanged then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverContext:
    """The objects that a controller passes to its observer.

    Parameters
    ----------
    settings
        The controller's settings.
    clock
        The controller's clock, seconds since 1970.
    accounts
        The usage of applications; the observer updates it at each poll.
    identity
        `Observer.identity` as stored in the ledger (None: not stored).
    capacity
        The cluster's capacity as stored in the ledger (zero: not stored).
    facts
        `Observer.facts` as stored in the ledger.
    on_info
        Called with the cluster's information before a poll is accounted for. If it raises, the poll fails.
    on_queues
        Called with the paths of the cluster's queues before their entitlements are requested from the actuator.
    """

    settings: ControlSettings
    clock: Callable[[], float]
    accounts: RmAccounts
    identity: list[Any] | None
    capacity: Resource
    facts: ClusterFacts
    on_info: Callable[[ClusterInfo], None]
    on_queues: Callable[[Collection[str]], None] = lambda _: None


class SteeredSystem(Protocol[ClientT]):
    """Creates the client, the actuator and the observer for a configuration's ``actuator: NAME``.

    An object of this type is registered in `harness.base.extensions.Extension.actuators`.
    """

    def open_client(self, settings: Mapping[str, Scalar], options: HttpOptions) -> AbstractContextManager[ClientT]:
        """Return a connection to the cluster that closes at the end of its context.

        Parameters
        ----------
        settings
            ``actuator_settings`` of the configuration.
        options
            Options of HTTP requests (``http`` of the configuration).

        Raises
        ------
        CallError
            A setting is missing, unknown or not valid.
        """

    def open_actuator(self, settings: Mapping[str, Scalar], client: ClientT, document: Document) -> Actuator[ClientT]:
        """Return the actuator, resuming from the contents of a ledger."""

    def open_observer(self, client: ClientT, context: ObserverContext) -> Observer:
        """Return the observer of one controller."""

    def address(self, settings: Mapping[str, Scalar]) -> str:
        """Return the name of the cluster for messages."""
