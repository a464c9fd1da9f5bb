"""Assumed execution times of running tasks, fixed or by the adaptive multi-level quantum (LTYARN 6.2.1, Fig. 4).

When a task starts it is counted as if it would run for Q; once it has run longer, as long as it has run; when it ends,
as long as it ran (eq. 5.15: alpha = max(Q, t - max(t_s, start)) while it runs). So what is counted ahead of the plain
integral is, per running task, demand x max(Q - elapsed, 0). This is the reference that harness.sim.quantum, compiled,
is tested against: it is told of starts and ends and keeps the time of none but the tasks that run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.base.sums import left_fold_sum


@dataclass(slots=True)
class _Mean:
    """The quantum of an application: its initial value until a task of it has ended, then the average."""

    quantum_s: float
    total: float = 0.0
    count: int = 0


@dataclass(slots=True, eq=False)  # told apart by identity: two applications may look alike
class _App:
    leaf: str
    mean: _Mean
    #: task id -> (start, demand); only those that run.
    running: dict[object, tuple[float, float]] = field(default_factory=dict)


class Quantum:
    """Q of every application, leaf, parent and the root, and what running tasks are assumed to use yet.

    Parameters
    ----------
    quantum_s : Q_0, the root's quantum, seconds.
    adaptive : whether finished tasks tune it. Upwards (arrows 4 to 7): an application's quantum is the mean duration
        of its finished tasks; a leaf's the mean of its applications' quanta, with that of an application of which no
        task has ended as it was given; a parent's the mean of the quanta of its children that have had an application;
        so on to the root. Downwards (arrows 1 to 3): a new element begins with the quantum of the one above it.
    parents : queue path -> parent path (None for the root), every queue.
    ended : whether applications that have ended stay in their leaf's mean. The text of 6.2.1 ("its average application
        quantum") leaves none out; the caption of Fig. 4 speaks of "existing applications".
    """

    def __init__(
        self, quantum_s: float, adaptive: bool, parents: Mapping[str, str | None], *, ended: bool = True
    ) -> None:
        if not quantum_s >= 0:
            raise ValueError(f"quantum_s is {quantum_s}, not at least 0")
        self.adaptive = adaptive
        self._ended = ended
        self._parents = dict(parents)
        self._initial_s = quantum_s
        self._queues: dict[str, float] = {}
        self._apps: dict[object, _App] = {}
        self._apps_of: dict[str, list[_App]] = {}
        self._children_of: dict[str, list[str]] = {}
        #: Means of the applications that have left, by leaf: (sum of quanta, count). A leaf remembers them.
        self._left: dict[str, tuple[float, int]] = {}
        for queue, parent in parents.items():
            if parent is not None:
                self._children_of.setdefault(parent, []).append(queue)

    def add_app(self, app: object, leaf: str) -> None:
        """A new application: top-down initialisation along its path."""
        mean = _Mean(self.quantum_s(leaf))
        self._apps[app] = found = _App(leaf, mean)
        self._apps_of.setdefault(leaf, []).append(found)

    def remove_app(self, app: object) -> None:
        """The application ended: it runs nothing any more."""
        gone = self._apps.pop(app)
        self._apps_of[gone.leaf].remove(gone)
        if self._ended:
            total, count = self._left.get(gone.leaf, (0.0, 0))
            self._left[gone.leaf] = (total + gone.mean.quantum_s, count + 1)
        elif self.adaptive:
            self._tune_up(gone.leaf)

    def start(self, app: object, task: object, time_s: float, demand: float) -> None:
        """A task started; ``demand`` is its size in resource units."""
        self._apps[app].running[task] = (time_s, demand)

    def finish(self, app: object, task: object, time_s: float) -> None:
        """A task ended: bottom-up self-adjustment, at once."""
        found = self._apps[app]
        start_s, _ = found.running.pop(task)
        if not self.adaptive:
            return
        mean = found.mean
        mean.total += time_s - start_s
        mean.count += 1
        mean.quantum_s = mean.total / mean.count
        self._tune_up(found.leaf)

    def quantum_s(self, queue: str) -> float:
        """The quantum of a queue; one that has had no application takes that of the one above it."""
        found = self._queues.get(queue)
        if found is None:
            parent = self._parents[queue]
            found = self._queues[queue] = self._initial_s if parent is None else self.quantum_s(parent)
        return found

    def app_quantum_s(self, app: object) -> float:
        """The quantum of an application."""
        return self._apps[app].mean.quantum_s

    def assumed(self, time_s: float, round_start_s: float = 0.0) -> dict[str, float]:
        """Leaf -> resource-seconds that running tasks are counted ahead: sum of demand x max(Q - elapsed, 0)."""
        ahead: dict[str, float] = {}
        for app in self._apps.values():
            quantum = app.mean.quantum_s
            amount = 0.0
            for start_s, demand in app.running.values():
                amount += demand * max(quantum - (time_s - max(start_s, round_start_s)), 0.0)
            ahead[app.leaf] = ahead.get(app.leaf, 0.0) + amount
        for leaf in self._apps_of:
            ahead.setdefault(leaf, 0.0)
        return ahead

    def _tune_up(self, leaf: str) -> None:
        total, count = self._left.get(leaf, (0.0, 0))
        for app in self._apps_of.get(leaf, []):
            total, count = total + app.mean.quantum_s, count + 1
        if not count:
            return  # the last application has gone: what was learnt stays for the next one
        self._queues[leaf] = total / count
        above = self._parents[leaf]
        while above is not None:
            known = [self._queues[q] for q in self._children_of[above] if q in self._queues]
            self._queues[above] = left_fold_sum(known) / len(known)
            above = self._parents[above]
