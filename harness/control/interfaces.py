"""What a controller's driver needs of a cluster: an actuator, a store of configuration and an observer, as protocols.

The drivers (`harness.control.wall`, `harness.control.tenure`, `harness.control.giveback`) call what is declared here
and nothing else, so a controller steers any system for which these protocols are implemented. Three are in the tree:

- `harness.control.file_actuator.FileActuator` for a Fair Scheduler's allocation file;
- `harness.control.capacity_actuator.CapacityActuator` for a Capacity Scheduler's file or store;
- `harness.systems.kueue` for the weights of Kubernetes Kueue's ClusterQueues: how a package adds another.

``ClientT`` is the type of the connection to the cluster (`harness.yarn.rmclient.RmClient` for YARN). The drivers pass
it on and call nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from harness.control.actuator import Drift, Prepared
from harness.control.events import Observed
from harness.control.identity import ClusterFacts
from harness.control.lease import Lease, Memory
from harness.control.settings import ControlSettings
from harness.control.values import Values
from harness.ledger.accounts import RmAccounts
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.yarn.answers import ClusterInfo
from harness.yarn.capacity.traps import Trap
from harness.yarn.files import ConfigStore, always
from harness.yarn.http import HttpOptions

__all__ = ["Actuator", "ConfigStore", "Document", "Entitlements", "Observer", "ObserverContext", "SteeredSystem"]

ClientT = TypeVar("ClientT")
#: The same where a protocol only takes a client.
ClientIn = TypeVar("ClientIn", contravariant=True)
#: A document of a ledger, by its name; None: the ledger has none of that name.
Document = Callable[[str], Any]
#: The values of an actuator's settings in a configuration file.
Scalar = str | int | float | bool | None


class Entitlements(Protocol):
    """The administrator's entitlements and limits, as an `Observer` needs them for a snapshot."""

    def configured_weights(self) -> dict[str, float]:
        """Return the administrator's share of each queue: any unit in which siblings' ratios are right."""

    def min_shares(self) -> dict[str, Resource]:
        """Return the administrator's guarantees of queues of which the controller has written one."""

    def max_shares(self, capacity: Resource) -> dict[str, Resource]:
        """Return the administrator's limits of queues of which the controller has written one.

        Parameters
        ----------
        capacity
            The cluster's, in MiB and vcores.
        """


class Actuator(Entitlements, Protocol[ClientIn]):
    """One scheduler's configuration: whose its values are, how to change them, and how to see that they are in force.

    An actuator remembers the administrator's values (`baseline`) and those that the controller wrote (`managed`), hands
    both on as a plain document, and never takes one for the other. Methods that reach the configuration raise
    `harness.base.errors.InputError` (it cannot be read, or would be refused), `harness.yarn.errors.Unreachable`, or
    `harness.yarn.errors.Refused`.
    """

    generation: int
    """How many documents have been prepared: of two ledgers, the one that has counted further knows the later values.
    """
    edits: int
    """How often somebody else had changed the configuration when it was read."""

    @property
    def baseline(self) -> Mapping[str, Values]:
        """The administrator's values: queue -> attribute -> value."""

    @property
    def managed(self) -> Mapping[str, Mapping[str, list[Any]]]:
        """What the controller wrote: queue -> attribute -> values that may be in force, the latest last."""

    @property
    def departed(self) -> Mapping[str, Mapping[str, Any]]:
        """Queues that are gone -> what was known of them."""

    @property
    def scheduler(self) -> str:
        """How readers of the ledger call the scheduler ('': the Fair Scheduler, as in ledgers of earlier versions)."""

    @property
    def values_name(self) -> str:
        """What messages call the values that it writes."""

    @property
    def creating(self) -> frozenset[str]:
        """Queues that create queues below them by themselves: what is below them keeps its values."""

    @property
    def load_validates(self) -> bool:
        """Whether the cluster checks what it loads as completely as when it starts."""

    @property
    def loaded_otherwise(self) -> str:
        """How else an unreachable cluster loads what was written, after the words "in force when it starts, or"."""

    @property
    def beside(self) -> ConfigStore | None:
        """The store beside which a lease is kept; None: there is none, and two controllers are not kept apart."""

    # --- what is kept, and handed on ---

    def document(self) -> dict[str, Any]:
        """Return whose the values are, as JSON: what a ledger keeps, and other controllers are told (`adopt`)."""

    def reopened(self, document: Document) -> Actuator[ClientIn]:
        """Return an actuator of the same configuration that goes on from what a ledger has kept.

        Parameters
        ----------
        document
            The parts of `document`, by name.
        """

    def adopt(self, document: Mapping[str, object], *, lives: bool = False) -> None:
        """Go on from another controller's `document`.

        Parameters
        ----------
        document
            What it announced.
        lives
            Whether it is still running: it writes its values again over somebody's edit, so an edit that stands there
            now is not the administrator's.

        Raises
        ------
        Nonsense
            The document is not valid; nothing is adopted.
        """

    def forget(self) -> None:
        """All is the administrator's: what stands there when it is read next are the entitlements."""

    def hold_against_file(self) -> None:
        """Go on from what is remembered as from another controller's document: the ledger is an older copy."""

    def unknown_shares(self) -> list[str]:
        """Describe queues whose share was not known when it was read first, and looks like a controller's."""

    def shift(self, seconds: float) -> None:
        """Move all times that are remembered by so many seconds: the clock by which they were taken was wrong."""

    def recognise_by(self, recognise: Callable[[], None]) -> None:
        """Call this before anything that the cluster itself keeps is read or changed.

        Parameters
        ----------
        recognise
            Raises where another cluster answers (`Observer.check_cluster`).
        """

    def lease(
        self, identity: str, lease_s: float, clock: Callable[[], float], memory: Memory | None = None
    ) -> Lease | None:
        """Return the lease of the controller ``identity``; None where there is none, or none is wanted (0).

        Parameters
        ----------
        identity
            The ledger's.
        lease_s
            Seconds without a sign of life after which another controller may take it.
        clock
            Seconds, never going back.
        memory
            Where the lease remembers what it saw, from one process to the next.
        """

    # --- reading ---

    def read(self, *, words_lost: bool = False) -> list[Drift]:
        """Read the configuration: new queues join the baseline. Return what others made of managed values.

        Parameters
        ----------
        words_lost
            Another controller wrote it, and what it announced last is lost: a value may be its own.
        """

    def names(self) -> frozenset[str]:
        """Return the queues that are there now; nothing is remembered."""

    def present(self) -> dict[str, float]:
        """Return the shares in the configuration, whoever wrote them, as of the last `read`."""

    def refusals(self) -> tuple[str, ...]:
        """Say why the cluster would refuse the administrator's own configuration; empty where it would take it."""

    def dangers(self) -> tuple[str, ...]:
        """Say what in the configuration, as of the last `read`, may end the cluster's scheduler."""

    def traps(self, client: ClientIn, hadoop: tuple[int, int]) -> tuple[Trap, ...]:
        """Return the dangers of steering this cluster.

        Parameters
        ----------
        client
            The cluster.
        hadoop
            Its release, as the observer knows it.
        """

    def forget_traps(self) -> None:
        """Forget what is known of traps, so that the next `traps` asks the ResourceManager again.

        It is called when another ResourceManager answers, or when the same one was restarted.
        """

    # --- writing ---

    def name_queues(self, leaves: Mapping[str, bool], now_s: float) -> None:
        """Add busy queues to the configuration that the next `prepare` starts from, and remove idle ones again.

        Parameters
        ----------
        leaves
            Queues of the cluster -> whether a leaf is busy.
        now_s
            The moment, seconds of the controller's clock.
        """

    def prepare(self, attributes: Attributes) -> Prepared:
        """Return the configuration with these attributes, as of the last `read`; `document` knows it from then on."""

    def original(self) -> Prepared:
        """Return the configuration with the administrator's values in place of the managed ones."""

    def problems_of(self, prepared: Prepared) -> tuple[str, ...]:
        """Say why the cluster would refuse what is prepared, beside what it refuses in any case."""

    def write(self, prepared: Prepared, still: Callable[[], None] = always) -> None:
        """Write what is prepared, unless somebody else was faster (`harness.yarn.files.FileChanged`).

        Parameters
        ----------
        prepared
            A result of `prepare` or `original` of this actuator.
        still
            Called just before the write; raises where it must not happen any more.
        """

    def write_groups(self, prepared: Prepared, still: Callable[[], None]) -> dict[str, str]:
        """Write what was refused as a whole group by group; return each refused group's parent -> the reason."""

    def touch(self) -> None:
        """Write the configuration once more as it is, for a cluster that polls and may have missed the write."""

    # --- in force ---

    def load(self, client: ClientIn) -> None:
        """Make the cluster go by what was written."""

    def confirm(self, client: ClientIn, wanted: Mapping[str, float], *, timeout_s: float, every_s: float) -> None:
        """Wait until these shares are in force.

        Parameters
        ----------
        client
            The cluster.
        wanted
            `Prepared.in_force`.
        timeout_s, every_s
            How long to wait, and how often to ask, seconds.

        Raises
        ------
        harness.yarn.rmclient.NotEffective
            They are not in force after that time.
        """

    def in_force(self, client: ClientIn) -> dict[str, float]:
        """Return the shares that the cluster goes by."""

    @property
    def writes_more(self) -> bool:
        """Whether attributes beside shares are managed."""

    def differences(self, client: ClientIn) -> dict[str, str]:
        """Say, by queue, which managed attributes beside its share the cluster shows otherwise."""


class Observer(Protocol):
    """The looks of one controller at its cluster."""

    facts: ClusterFacts
    """What identifies the cluster, as it showed it last."""
    identity: list[Any] | None
    """Which server answered last, as JSON; None: none yet. A ledger keeps it."""
    hadoop: tuple[int, int]
    """The cluster's release."""
    news: str
    """After a look: that another server answers than before, or the same after a restart, in words; else ''."""
    clock_s: float | None
    """What the cluster's clock showed at the last look, seconds since 1970; None: it does not say."""
    answer_s: float
    """How long the cluster took to show its queues at the last look, or to fail at that, seconds."""

    @property
    def latest_end_ms(self) -> int:
        """The latest end of an application that the cluster has shown, ms of its clock."""

    @property
    def earliest_s(self) -> float | None:
        """When the first application of the last look was started that has used anything; None: none has."""

    @property
    def refused(self) -> Mapping[str, int]:
        """Applications of the last look that the cluster refused -> when, ms of its clock."""

    @property
    def skipped(self) -> Mapping[str, str]:
        """Applications of which the last look's answer was not valid -> why."""

    def check_cluster(self) -> None:
        """Ask whether the cluster is still the one that is known, before anything that it keeps is read or changed.

        Raises
        ------
        harness.control.identity.OtherCluster
            Another one answers.
        """

    def queues(self) -> Collection[str]:
        """Ask which queues the cluster has."""

    def look(self, actuator: Entitlements) -> Observed:
        """Look at the cluster and bring the accounts up to now.

        Raises YarnfairError; nothing has been taken into the accounts then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverContext:
    """What a controller gives its observer.

    Parameters
    ----------
    settings
        The controller's.
    clock
        Seconds since 1970, as the controller reads them.
    accounts
        What applications used; brought up to each look by the observer.
    identity
        `Observer.identity` when the ledger was kept; None: nothing yet.
    capacity
        The cluster's when the ledger was kept; zero: not known.
    facts
        `Observer.facts` when the ledger was kept.
    on_info
        Given what the cluster says of itself, before anything is accounted for; may raise.
    """

    settings: ControlSettings
    clock: Callable[[], float]
    accounts: RmAccounts
    identity: list[Any] | None
    capacity: Resource
    facts: ClusterFacts
    on_info: Callable[[ClusterInfo], None]


class SteeredSystem(Protocol[ClientT]):
    """How a configuration's ``actuator: NAME`` becomes a client, an actuator and an observer.

    An object of this kind is registered in `harness.base.extensions.Extension.actuators`.
    """

    def open_client(self, settings: Mapping[str, Scalar], options: HttpOptions) -> AbstractContextManager[ClientT]:
        """Return a connection to the cluster that closes at the end of its context.

        Parameters
        ----------
        settings
            ``actuator_settings`` of the configuration.
        options
            How HTTP is asked (``http`` of the configuration).

        Raises
        ------
        CallError
            A setting is missing, unknown or not valid.
        """

    def open_actuator(self, settings: Mapping[str, Scalar], client: ClientT, document: Document) -> Actuator[ClientT]:
        """Return the actuator, going on from what a ledger has kept."""

    def open_observer(self, client: ClientT, context: ObserverContext) -> Observer:
        """Return the observer of one controller."""

    def address(self, settings: Mapping[str, Scalar]) -> str:
        """Return what messages call the cluster."""
