"""The input of a policy: the queue tree with demands and allocations at one instant."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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
    #: Time when the present backlog began (None: nothing is pending). The queue waits since this time or since
    #: `last_start_s`, whichever is later.
    backlog_since_s: float | None = None
    #: Time when the queue last got a container (None: never).
    last_start_s: float | None = None
    #: Mean duration of the queue's finished tasks (None: none has finished); T_avg of LTYARN eq. (7).
    mean_task_s: float | None = None
    #: Submission time of the oldest application with pending requests (None: there is none).
    oldest_pending_app_s: float | None = None
    #: Number of applications without a container yet (None: unknown).
    waiting_apps: int | None = None
    #: Numbers of applications and containers that ended since the previous snapshot (None: unknown).
    ended_apps: int | None = None
    ended_containers: int | None = None
    #: The minimum share in force, if it may differ from ``min_share``, the administrator's (None: it does not).
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
        """Return the leaf queues in the order of ``queues``."""
        return [queue for queue in self.queues.values() if queue.leaf]

    def children(self, name: str) -> list[QueueView]:
        """Return the immediate children of a queue in the order of ``queues``."""
        return [queue for queue in self.queues.values() if queue.parent == name]


#: Columns of `Figures.table`. Times are in ms (-1 means None), TASKS and TASK_MS are sums over ended tasks, and MB_MS
#: and VC_MS are usage since the start (MiB x ms, vcores x ms). The compiled code in `harness.sim.observe` and
#: `harness.policies.weights_kernel` uses the same columns and must be changed together with these.
MB, VC, PENDING_MB, PENDING_VC, PENDING_N, APPS, BACKLOG, LAST_START, OLDEST, TASKS, TASK_MS = range(11)
WAITING, APPS_DONE, MB_MS, VC_MS = range(TASK_MS + 1, TASK_MS + 5)


class QueueShape(NamedTuple):
    """All of a queue tree that rarely changes between two polls.

    A poll's queues have the same object as long as their tree is unchanged, and `harness.policies.tree` caches trees by
    it.
    """

    #: Full paths, parents before their children and siblings by name.
    names: tuple[str, ...]
    #: In the order of ``names``: parent (None for root), whether it is a leaf, weight.
    queues: tuple[tuple[str | None, bool, float], ...]
    #: The type of the weights, because ``Fraction(1) == 1.0``: the fractions of examples on paper are another tree.
    weight_type: str


@dataclass(frozen=True, slots=True)
class Figures:
    """All queues of a simulation at one instant as a table, from which a snapshot's views can be created.

    ``table``: one row per queue, with the columns above; it is overwritten two polls later. ``rows``: row numbers in
    the order of ``shape``. ``leaves``: row numbers of the leaves.
    """

    time_s: float
    capacity: Resource
    shape: QueueShape
    table: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    leaves: npt.NDArray[np.int64]

    def counters(self) -> npt.NDArray[np.float64]:
        """Return (leaves, 2): MiB-seconds and vcore-seconds since the start."""
        used: npt.NDArray[np.float64] = self.table.take(self.leaves, axis=0)[:, MB_MS : VC_MS + 1] / 1000.0
        return used


class LateViews(Mapping[str, QueueView]):
    """The queues of a poll, whose views are created on demand, because most polls of a simulation need none.

    ``rows``: input of the views, one row per queue in the order of ``shape``.
    """

    __slots__ = ("_make", "_names", "_views", "rows", "shape")

    def __init__(
        self,
        shape: QueueShape,
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
