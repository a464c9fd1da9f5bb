"""`ServedScheduler`, the interface of a scheduler in a served cluster, with a subclass for each scheduler.

It covers placement, moves, configuration, and the RM's answers about queues. Callers hold the cluster's lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from harness.sim.setup import SimSetup
from harness.sim.world import World
from harness.yarn.placement import Placement

#: A JSON object of an answer.
Document = dict[str, Any]
#: Hadoop's first words on an application whose AM may not start yet.
NOT_ACTIVATED = "Application is added to the scheduler and is not yet activated. "


class Running(Protocol):
    """The parts of the simulation that a served scheduler needs."""

    setup: SimSetup
    scheduler: Any
    world: World
    allocations: Any

    @property
    def now_ms(self) -> int:
        """Return virtual time."""

    def queues_changed(self) -> None:
        """Update the arrays beside the scheduler's queues after a change of the queues."""


class Answer(Exception):
    """A text response with the content type of JSON, as the RM sends it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class JavaError(Exception):
    """An exception of an RPC call: Java class, message, and RpcErrorCodeProto (1: an exception of the application)."""

    def __init__(self, java_class: str, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.java_class, self.message, self.code = java_class, message, code


class ServedScheduler(ABC):
    """One scheduler in a served cluster."""

    #: Its Java class, the value of ``yarn.resourcemanager.scheduler.class``.
    java_class: ClassVar[str]
    #: Name of its file in messages; name of its file in documents; whether the RM checks the file periodically.
    file_words: ClassVar[str]
    file_key: ClassVar[str]
    polls: ClassVar[bool]
    #: Whether its scheduling is asynchronous in releases with that default.
    may_be_asynchronous: ClassVar[bool] = False
    #: Whether its configuration may be in a store that clients change over REST.
    has_store: ClassVar[bool] = False
    #: Why a change of an application's priority is refused, in Hadoop's words; None: Hadoop gives no reason.
    no_priority: ClassVar[str | None] = None
    #: Whether a move to a queue that takes no applications is refused with a reason.
    explains_moves: ClassVar[bool] = False
    #: The field of a queue's record to which ``queueUsagePercentage`` relates, MiB.
    share_field: ClassVar[str]

    def __init__(self, sim: Running) -> None:
        self.sim = sim
        #: User -> groups, for rules that use groups.
        self.groups: Mapping[str, tuple[str, ...]] = sim.setup.groups

    # --- applications ---

    @abstractmethod
    def placed_in(self, name: str, user: str, app: str = "") -> Placement:
        """Return the queue in which the RM's placement rules place a submission (`app`: its name)."""

    @abstractmethod
    def leaf(self, name: str) -> str | None:
        """Return the full path of a leaf, creating it if the scheduler creates queues; None if there is none."""

    @abstractmethod
    def no_leaf(self, placed: Placement, identity: str, user: str) -> str:
        """Return Hadoop's message for an application that has no leaf."""

    @abstractmethod
    def refused(self, path: str, identity: str) -> str:
        """Return Hadoop's message for an application that the scheduler did not accept."""

    @abstractmethod
    def why_waiting(self, app: int, user: str) -> str:
        """Return Hadoop's words on why an application (its slot) of a user has no AM yet; "": Hadoop says nothing."""

    @abstractmethod
    def move(self, job: int, leaf: str) -> bool:
        """Move the application of a job (its slot) to a leaf; return False if the scheduler refuses."""

    # --- configuration ---

    @abstractmethod
    def load(self, text: str) -> None:
        """Apply the file's text. Raises YarnfairError if it is invalid; the queues then stay."""

    @abstractmethod
    def tidy(self) -> None:
        """Do the RM's periodic work on its queues, which is due every 10 s (removal of empty ad hoc queues)."""

    @abstractmethod
    def refresh(self, reload: Callable[[], bool]) -> None:
        """Carry out ``refreshQueues``; `reload` reads the file. Raises JavaError if it is refused."""

    @abstractmethod
    def properties(self, file: Path) -> dict[str, str]:
        """Return the scheduler's properties as ``/conf`` shows them."""

    def stored(self) -> Document:
        """Answer GET ``/scheduler-conf``. Raises Answer where the scheduler has no configuration store."""
        raise Answer(
            400,
            "This API only supports to retrieve scheduler configuration from a mutable-conf scheduler, "
            f"underneath scheduler {self.java_class.rpartition('.')[2]} is not an instance of MutableConfScheduler",
        )

    def version(self) -> Document:
        """Answer GET ``/scheduler-conf/version``. Raises Answer where the scheduler has no configuration store."""
        raise Answer(400, "Configuration Version only supported by MutableConfScheduler.")

    def change(self, body: Mapping[str, Any]) -> str:
        """Carry out PUT ``/scheduler-conf`` and return the RM's text. Raises Answer for a refused change."""
        raise Answer(400, "Configuration change only supported by MutableConfScheduler.")

    # --- how it is shown ---

    def sums(self, **amounts: Any) -> dict[str, list[int]]:
        """Sum values of applications over the applications in and below each queue.

        Parameters
        ----------
        amounts
            Arrays with one value per application slot, by name.

        Returns
        -------
        dict of str to list of int
            The sums by queue slot, under the same names.
        """
        S = self.sim.scheduler.S
        live, parent = S.a["alive"] == 1, S.q["parent"].tolist()
        found = {}
        for name, amount in amounts.items():
            of_leaves = np.zeros(len(S.q), np.int64)
            np.add.at(of_leaves, S.a["q"][live], amount[live])
            sums = found[name] = of_leaves.tolist()
            for queue in S.order[:0:-1].tolist():  # children before their parents, except the root
                sums[parent[queue]] += sums[queue]
        return found

    @abstractmethod
    def info(self) -> Document:
        """Return ``schedulerInfo`` of ``/scheduler``."""

    @abstractmethod
    def queue_info(self, path: str, children: bool, recursive: bool) -> bytes | None:
        """Return a QueueInfoProto; None: there is no such queue."""
