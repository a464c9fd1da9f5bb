"""What a served cluster asks of its scheduler, whichever it has: one class each (`ServedScheduler`), chosen once.

Placement, moves, configuration, and how the RM shows it. Calls are made under the cluster's lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from harness.sim.setup import SimSetup
from harness.yarn.placement import Placement

#: A part of an answer, as JSON has it.
Document = dict[str, Any]


class Running(Protocol):
    """The simulation, as far as a served scheduler needs it."""

    setup: SimSetup
    scheduler: Any
    world: Any
    allocations: Any

    @property
    def now_ms(self) -> int:
        """Virtual time."""

    def queues_changed(self) -> None:
        """Bring what stands beside the scheduler's queues in line with them."""


class Answer(Exception):
    """An answer that is a text, with the content type of JSON, as the RM sends it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class JavaError(Exception):
    """What a call of the RPC throws: Java's class, its message, and an RpcErrorCodeProto (1: the application's)."""

    def __init__(self, java_class: str, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.java_class, self.message, self.code = java_class, message, code


class ServedScheduler(ABC):
    """One scheduler in a served cluster."""

    #: Its class, as ``yarn.resourcemanager.scheduler.class`` has it.
    java_class: ClassVar[str]
    #: How its file is called in messages; whether the RM looks at the file by itself.
    file_words: ClassVar[str]
    file_key: ClassVar[str]
    polls: ClassVar[bool]
    #: Whether it allocates by itself, beside heartbeats, in releases that do so by default.
    may_be_asynchronous: ClassVar[bool] = False
    #: Whether its configuration may live in a store that clients change over REST.
    has_store: ClassVar[bool] = False
    #: What an application that may run is marked by.
    runs_field: ClassVar[str]
    #: Why a change of an application's priority is refused, in Hadoop's words; None: Hadoop gives no reason.
    no_priority: ClassVar[str | None] = None
    #: Whether a move to a queue that takes no applications is refused with a reason.
    explains_moves: ClassVar[bool] = False
    #: A queue's MiB that ``queueUsagePercentage`` is a part of.
    share_field: ClassVar[str]

    def __init__(self, sim: Running) -> None:
        self.sim = sim
        #: User -> groups, for rules that look at them.
        self.groups: Mapping[str, tuple[str, ...]] = sim.setup.groups

    # --- applications ---

    @abstractmethod
    def placed_in(self, name: str, user: str, app: str = "") -> Placement:
        """Where the RM's own placement rules place a submission (`app`: its name)."""

    @abstractmethod
    def leaf(self, name: str) -> str | None:
        """The full path of a leaf (made, where the scheduler makes queues); None: there is none."""

    @abstractmethod
    def no_leaf(self, placed: Placement, identity: str, user: str) -> str:
        """Why an application that has no leaf was refused, in Hadoop's words."""

    @abstractmethod
    def refused(self, path: str, identity: str) -> str:
        """Why the scheduler did not take an application."""

    @abstractmethod
    def move(self, job: int, leaf: str) -> bool:
        """Move the application of a job (its slot) to a leaf; False: the scheduler refuses."""

    # --- configuration ---

    @abstractmethod
    def load(self, text: str) -> None:
        """The file's text takes effect. YarnfairError: it does not, the queues stay."""

    @abstractmethod
    def tidy(self) -> None:
        """What the RM does with its queues every 10 s."""

    @abstractmethod
    def refresh(self, reload: Callable[[], bool]) -> None:
        """``refreshQueues``; `reload` reads the file. JavaError: refused."""

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
        """Carry out PUT ``/scheduler-conf`` and return the RM's words. Raises Answer for a change that is refused."""
        raise Answer(400, "Configuration change only supported by MutableConfScheduler.")

    # --- how it is shown ---

    def sums(self, **amounts: Any) -> dict[str, list[int]]:
        """Amounts of applications, by their slot: of each queue, by its slot, the sum with all queues below it."""
        S = self.sim.scheduler.S
        live, parent = S.a["alive"] == 1, S.q["parent"].tolist()
        found = {}
        for name, amount in amounts.items():
            of_leaves = np.zeros(len(S.q), np.int64)
            np.add.at(of_leaves, S.a["q"][live], amount[live])
            sums = found[name] = of_leaves.tolist()
            for queue in S.order[:0:-1].tolist():  # children before their parents, but for the root
                sums[parent[queue]] += sums[queue]
        return found

    @abstractmethod
    def info(self) -> Document:
        """``schedulerInfo`` of ``/scheduler``."""

    @abstractmethod
    def queue_info(self, path: str, children: bool, recursive: bool) -> bytes | None:
        """A QueueInfoProto; None: there is no such queue."""
