"""What a policy sees: the queue tree with demands and allocations at one instant. No history."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.model.resources import UNBOUNDED, ZERO, Resource

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue at one instant.

    ``weight`` is the queue's *entitlement* (w_i of the papers), from the experiment or the policy configuration;
    it is not the Fair Scheduler weight that a plan writes. ``demand`` is allocated plus pending, AMs included.
    Times are seconds on the snapshot's clock.
    """

    name: str  # full path, "root.a.b"
    parent: str | None  # None for root
    leaf: bool
    weight: float = 1.0
    allocated: Resource = ZERO
    demand: Resource = ZERO
    min_share: Resource = ZERO
    max_share: Resource = UNBOUNDED
    pending_containers: int = 0
    running_apps: int = 0
    #: When its present backlog began (None: nothing pending). Waiting counts from the later of the two.
    backlog_since_s: float | None = None
    #: When it last got a container (None: never).
    last_start_s: float | None = None
    #: Mean duration of its finished tasks (None: none finished yet); T_avg of LTYARN eq. (7).
    mean_task_s: float | None = None
    #: Submission time of its oldest application that still asks for containers (None: none does).
    oldest_pending_app_s: float | None = None
    #: Applications that hold no container yet (None: not known).
    waiting_apps: int | None = None
    #: Applications and containers that ended since the snapshot before (None: not known).
    ended_apps: int | None = None
    ended_containers: int | None = None
    #: The minimum share that the scheduler goes by, where ``min_share`` is what the administrator configured (None: the
    #: same).
    min_share_in_force: Resource | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queues at one instant. ``queues`` is keyed by full path, parents before children, siblings by name.

    ``period_s`` is the time until the next snapshot of a controller outside the scheduler (0 inside it).
    """

    time_s: float
    capacity: Resource
    queues: Mapping[str, QueueView]
    period_s: float = 0.0

    def leaves(self) -> list[QueueView]:
        """Leaf queues in the order of ``queues``."""
        return [queue for queue in self.queues.values() if queue.leaf]

    def children(self, name: str) -> list[QueueView]:
        """Immediate children of a queue in the order of ``queues``."""
        return [queue for queue in self.queues.values() if queue.parent == name]


#: Columns of a simulation's figures. Times in ms, -1: None; sums over the tasks that ended; what was used since the
#: start, MiB x ms and vcores x ms. `harness.sim.observe` and `harness.policies.weights_kernel` have them compiled in: a
#: change here wants one there.
MB, VC, PENDING_MB, PENDING_VC, PENDING_N, APPS, BACKLOG, LAST_START, OLDEST, TASKS, TASK_MS = range(11)
WAITING, APPS_DONE, MB_MS, VC_MS = range(TASK_MS + 1, TASK_MS + 5)


@dataclass(frozen=True, slots=True)
class Figures:
    """All queues of a simulation at one instant, as a table: what a snapshot's views would be made of.

    ``shape`` as of `LateViews`. ``table``: a row a queue, columns as above, overwritten at the look after the next;
    ``rows``: which one is whose, by the order of ``shape``; ``leaves``: those of the leaves.
    """

    time_s: float
    capacity: Resource
    shape: tuple[Any, ...]
    table: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    leaves: npt.NDArray[np.int64]

    def counters(self) -> npt.NDArray[np.float64]:
        """(leaves, 2): MiB-seconds and vcore-seconds since the start."""
        used: npt.NDArray[np.float64] = self.table.take(self.leaves, axis=0)[:, MB_MS : VC_MS + 1] / 1000.0
        return used


class LateViews(Mapping[str, QueueView]):
    """The queues of a look whose views are made once somebody asks for one: most looks of a simulation move nothing.

    ``shape``: names, (parent, leaf, weight) of each queue, and the weights' type, as `harness.policies.tree` keys trees
    by; one object as long as the tree stands. ``rows``: what the views are made of, a row a queue in their order.
    """

    __slots__ = ("_make", "_names", "_views", "rows", "shape")

    def __init__(
        self,
        shape: tuple[Any, ...],
        names: Mapping[str, int],
        rows: list[list[int]],
        make: Callable[[], dict[str, QueueView]],
    ) -> None:
        self.shape, self.rows = shape, rows
        self._names, self._make = names, make
        self._views: dict[str, QueueView] | None = None

    def _all(self) -> dict[str, QueueView]:
        if self._views is None:
            self._views = self._make()
        return self._views

    def __getitem__(self, name: str) -> QueueView:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def keys(self) -> KeysView[str]:
        """Return the queues' names; no view is created."""
        return self._names.keys()

    def values(self) -> ValuesView[QueueView]:
        """Return all views."""
        return self._all().values()

    def items(self) -> ItemsView[str, QueueView]:
        """Return all names and views."""
        return self._all().items()
