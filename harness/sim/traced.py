"""Traces a policy's keys: the policy is called with numbers that record the operations on them.

Names, weights, settings and shares are passed as they are; values that change are `Number`s. If the policy branches on
one, it is called again for the other branch. The result is a small program (`Tree`) for each queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from harness.model.resources import Resource
from harness.model.snapshot import (
    APPS,
    BACKLOG,
    LAST_START,
    MB,
    OLDEST,
    PENDING_MB,
    PENDING_N,
    PENDING_VC,
    TASK_MS,
    TASKS,
    VC,
    WAITING,
    Snapshot,
)
from harness.policies.base import CountedLedger
from harness.sim.pure import NotTracedError, watched

#: Largest number of paths through the key of one queue, and of steps in each.
MOST_PATHS, MOST_STEPS = 64, 20_000
#: Columns for which `harness.sim.observe` needs job data.
OF_JOBS = frozenset((PENDING_N, WAITING, OLDEST))
#: Numbers of the columns that are not in the table of integers: counted resources (measure x ms), and the time (ms).
COUNTED, NOW = -1, -2


_COMPARE = ("lt", "le", "eq", "ne")


#: A step: operation and arguments. Arguments: ("v", step), ("c", a constant), ("x", queue or -1, column).
Arg = tuple[Any, ...]
Step = tuple[str, Arg, Arg]


@dataclass(frozen=True, slots=True)
class Tree:
    """Steps from number `first` on, followed by a key or by a branch on a step."""

    first: int
    steps: tuple[Step, ...]
    key: Arg
    branch: int = -1
    yes: Tree | None = None
    no: Tree | None = None


class _Run:
    """One call of the policy: the recorded steps and branches. ``given``: the directions of the first branches."""

    def __init__(self, given: Sequence[bool], most: int) -> None:
        self.given, self.most = given, most
        self.steps: list[Step] = []
        self._at: dict[Step, int] = {}
        #: For each branch: how many steps came before it, the step that it tests, and the direction taken.
        self.branches: list[tuple[int, int, bool]] = []
        self._known: dict[int, bool] = {}

    def step(self, do: str, x: Arg, y: Arg) -> int:
        wanted = (do, x, y)
        # Equal constants of different types (0, 0.0, -0.0) are distinct.
        known = self._at.get(key := (do, _exactly(x), _exactly(y)))  # type: ignore[call-overload]
        if known is not None:
            return int(known)
        if len(self.steps) >= MOST_STEPS:
            raise NotTracedError("it takes too many steps")
        self.steps.append(wanted)
        self._at[key] = len(self.steps) - 1  # type: ignore[index]
        return len(self.steps) - 1

    def decide(self, step: int) -> bool:
        if step not in self._known:
            if len(self.branches) >= self.most:
                raise NotTracedError("it branches on figures" + (" too often" if self.most else " (define `key`)"))
            n = len(self.branches)
            self._known[step] = self.given[n] if n < len(self.given) else True
            self.branches.append((len(self.steps), step, self._known[step]))
        return self._known[step]


def _exactly(arg: Arg) -> Arg:
    return (*arg, type(arg[1]), repr(arg[1])) if arg[0] == "c" else arg


def _ways(do: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Return an operator of `Number`, with the number on its left and on its right."""
    return (lambda number, other: number._with(do, other)), (lambda number, other: number._with(do, other, True))


class Number:
    """A value that changes during a run, or that was computed from such values; operations on it are recorded."""

    __slots__ = ("arg", "run", "whole")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, run: _Run, arg: Arg, whole: bool) -> None:
        self.run, self.arg, self.whole = run, arg, whole

    def _with(self, do: str, other: Any, swapped: bool = False) -> Any:
        if type(other) is Number:
            arg, whole = other.arg, other.whole
        elif isinstance(other, int | float):
            whole = isinstance(other, int)
            if whole and abs(other) > 2**53:  # no value is as large
                if do not in _COMPARE:
                    raise NotTracedError("it calculates with a whole number above 2^53")
                other, whole = float(other), False
            arg = ("c", int(other) if whole else float(other))
        else:
            return NotImplemented
        x, y = (arg, self.arg) if swapped else (self.arg, arg)
        exact = whole and self.whole
        if do in _COMPARE:
            return Fact(self.run, self.run.step(do, x, y))
        if do == "div":
            exact = False
        return Number(self.run, ("v", self.run.step(do + ("_i" if exact else ""), x, y)), exact)

    __add__, __radd__ = _ways("add")
    __sub__, __rsub__ = _ways("sub")
    __mul__, __rmul__ = _ways("mul")
    __truediv__, __rtruediv__ = _ways("div")
    __lt__, __gt__ = _ways("lt")
    __le__, __ge__ = _ways("le")
    __eq__ = _ways("eq")[0]
    __ne__ = _ways("ne")[0]

    def __neg__(self) -> Any:
        return self._with("mul", -1) if self.whole else self._with("mul", -1.0)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __bool__(self) -> bool:
        return bool(self != 0)

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        """Return the type of the value that this represents, for ``isinstance``."""
        return int if self.whole else float

    def __repr__(self) -> str:
        raise NotTracedError("it writes a figure as text")

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return repr(self)


class Fact:
    """The result of a comparison; testing it causes a branch."""

    __slots__ = ("run", "step")

    def __init__(self, run: _Run, step: int) -> None:
        self.run, self.step = run, step

    def __bool__(self) -> bool:
        return self.run.decide(self.step)


class _Queue:
    """A `QueueView` whose values are recorded; optional values are decided when they are read."""

    min_share_in_force = None

    def __init__(self, run: _Run, static: tuple[Any, ...]) -> None:
        self.name, self.parent, self.leaf, self.weight, self._row, self.min_share, self.max_share = static
        self._run = run

    def _of(self, column: int) -> Any:
        return Number(self._run, ("x", self._row, column), True)

    @property
    def allocated(self) -> Any:
        return Resource(self._of(MB), self._of(VC))

    @property
    def demand(self) -> Any:
        return Resource(self._of(MB) + self._of(PENDING_MB), self._of(VC) + self._of(PENDING_VC))

    @property
    def pending_containers(self) -> Any:
        return self._of(PENDING_N)

    @property
    def running_apps(self) -> Any:
        return self._of(APPS)

    @property
    def waiting_apps(self) -> Any:
        return self._of(WAITING)

    def _time(self, column: int) -> Any:
        time = self._of(column)
        return time / 1000.0 if time >= 0 else None

    @property
    def backlog_since_s(self) -> Any:
        return self._time(BACKLOG)

    @property
    def last_start_s(self) -> Any:
        return self._time(LAST_START)

    @property
    def oldest_pending_app_s(self) -> Any:
        return self._time(OLDEST)

    @property
    def mean_task_s(self) -> Any:
        return self._of(TASK_MS) / (1000.0 * self._of(TASKS)) if self._of(TASKS) else None

    def __getattr__(self, name: str) -> Any:
        raise NotTracedError(f"it reads {name} of a queue")


class _Queues(Mapping[str, Any]):
    """The queues by name, each created on first access."""

    def __init__(self, run: _Run, static: Mapping[str, tuple[Any, ...]]) -> None:
        self._run, self._static = run, static

    def __getitem__(self, name: str) -> _Queue:
        return _Queue(self._run, self._static[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._static)

    def __len__(self) -> int:
        return len(self._static)


class _Policy(Protocol):
    def keys(self, snapshot: Any, ledger: Any) -> Mapping[str, Any]: ...
    def key(self, queue: Any, counted: Any, snapshot: Any) -> Any: ...


class _Trace:
    """A policy, and the queues as `harness.sim.observe.Observer` has them."""

    def __init__(self, policy: _Policy, static: Sequence[tuple[Any, ...]], capacity: Resource) -> None:
        self._policy, self._capacity = policy, capacity
        #: Context around each call of the policy: a no-op at first, because the policy may fill caches.
        self.around: Callable[[object], AbstractContextManager[None]] = lambda _: nullcontext()
        self._static = {queue[0]: queue for queue in static}
        self._below: dict[str, list[int]] = {queue[0]: [] for queue in static}
        for queue in static:
            above = queue[0] if queue[2] else None
            while above is not None:
                self._below[above].append(queue[4])
                above = self._static[above][1]

    def _seen(self, run: _Run) -> Snapshot:
        time = Number(run, ("x", -1, NOW), True) / 1000.0
        return Snapshot(time, self._capacity, _Queues(run, self._static), 0.0)

    def _counted(self, run: _Run, name: str) -> Any:
        parts = [Number(run, ("x", row, COUNTED), False) / 1000.0 for row in self._below[name]]
        return parts[0] if self._static[name][2] else sum(parts, 0.0)

    def all_keys(self, wanted: Sequence[str]) -> list[Tree]:
        run = _Run((), 0)
        counted = {name: self._counted(run, name) for name, queue in self._static.items() if queue[2]}
        seen, ledger = self._seen(run), CountedLedger(counted)
        with self.around(self._policy):
            keys = self._policy.keys(seen, ledger)
        return [_needed(run.steps, _noted(run, keys.get(name, 1e300))) for name in wanted]

    def key(self, name: str, given: tuple[bool, ...] = (), paths: list[int] | None = None) -> Tree:
        """Return the paths through a queue's key that begin with the given branches."""
        paths = [0] if paths is None else paths
        paths[0] += 1
        if paths[0] > MOST_PATHS:
            raise NotTracedError("it branches on figures too often")
        run = _Run(given, MOST_PATHS)
        snapshot = self._seen(run)
        queue, counted = snapshot.queues[name], self._counted(run, name)
        with self.around(self._policy):
            answer = self._policy.key(queue, counted, snapshot)
        key = _noted(run, answer)
        steps, branches = tuple(run.steps), run.branches
        starts = [0, *[at for at, _, _ in branches]]
        made = Tree(starts[-1], steps[starts[-1] :], key)
        for n in range(len(branches) - 1, -1, -1):
            if n < len(given):
                break  # the caller has the part before
            at, step, _ = branches[n]
            before = steps[starts[n] : at]
            other = self.key(name, (*[way for _, _, way in branches[:n]], False), paths)
            made = Tree(starts[n], before, ("c", 1e300), step, made, other)
        return made


def _noted(run: _Run, key: Any) -> Arg:
    if type(key) is Number:
        return key.arg
    if isinstance(key, Fact):
        key = bool(key)
    if isinstance(key, str | bytes):
        raise NotTracedError(f"a key is a {type(key).__name__}")
    try:
        return ("c", float(key))
    except (TypeError, ValueError, OverflowError):
        raise NotTracedError(f"a key is a {type(key).__name__}") from None


def trees(
    policy: _Policy, single: bool, static: Sequence[tuple[Any, ...]], capacity: Resource, wanted: Sequence[str]
) -> list[Tree]:
    """Return the program of each wanted queue's key. Raises NotTracedError if the policy cannot be traced.

    The policy is called twice for each path through its keys. The second call must not change its state or call
    functions that are not pure, and must have the results of the first call.

    Parameters
    ----------
    policy
        The policy.
    single
        Whether to trace the policy's `key`, queue by queue, instead of `keys`.
    static, capacity
        The queues and the cluster, as in `harness.sim.observe.Observer`.
    wanted
        Names of the queues.
    """
    trace = _Trace(policy, static, capacity)

    def traced() -> list[Tree]:
        return [trace.key(name) for name in wanted] if single else trace.all_keys(wanted)

    try:
        first = traced()
        trace.around = watched
        second = traced()
        if repr(first) != repr(second):
            raise NotTracedError("it answers otherwise when it is asked again")
        return second
    except NotTracedError:
        raise
    except Exception as error:  # anything that the policy may do with values that are no numbers
        raise NotTracedError(f"{type(error).__name__}: {error}") from error


def _needed(steps: list[Step], key: Arg) -> Tree:
    """Return the program with only those steps that a key needs, renumbered."""
    place: dict[int, int] = {}
    found: list[Step] = []

    def renamed(arg: Arg) -> Arg:
        return ("v", place[arg[1]]) if arg[0] == "v" else arg

    needed = set()
    waiting = [key]
    while waiting:
        arg = waiting.pop()
        if arg[0] == "v" and arg[1] not in needed:
            needed.add(arg[1])
            waiting += steps[arg[1]][1:]
    for n in sorted(needed):
        do, x, y = steps[n]
        found.append((do, renamed(x), renamed(y)))
        place[n] = len(found) - 1
    return Tree(0, tuple(found), renamed(key))
