"""Compiles a policy's own keys: the programs that `harness.sim.traced` finds become one function that the loop calls.

Compilation pays only in a run that calls the policy often. The first results of the compiled function are compared with
the policy's own. A policy that cannot be traced, or whose results differ, continues to be called in Python. So does a
policy that keeps state or reads anything beyond its arguments (harness.sim.pure), because equal results so far would
not prove that later ones are equal.
"""

# numba's decorators are untyped.
# mypy: disable-error-code="no-any-return,attr-defined,untyped-decorator"

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cfunc, njit
from numpy.typing import NDArray

from harness.base.machine_code import kernel_options
from harness.policies.base import Policy
from harness.sim import ops
from harness.sim.arrays import Arrays, Column, Record, Table, at_address
from harness.sim.observe import Observer, fill
from harness.sim.pure import NotTracedError, state_of
from harness.sim.state import SchedulerState
from harness.sim.traced import COUNTED, NOW, OF_JOBS, Arg, Tree, trees
from harness.sim.world import World

#: Number of calls in Python after which a policy's keys are compiled. Compilation takes about a second, as 50,000 calls
#: do.
WORTH = 20_000
#: Number of results that are compared first.
_COMPARED = 64
#: Largest number of different compiled programs; queues whose keys differ only in constants share one.
_MOST_PROGRAMS = 16
_MOST_LINES = 2000
#: A user's program is compiled for one run and not cached.
_OPTIONS = kernel_options(error_model="numpy", cache=False)
#: Integers up to this are exact as reals.
_EXACT = 2.0**53


class ProgramGlobals(Record, lines=False):
    """What all programs need: one record."""

    mb: int  # memory of the cluster that the programs are for (MiB)
    vc: int  # vcores of that cluster
    jobs: int  # 1: some program needs data of jobs
    dry: int  # 1: keys are computed, but not stored
    bad: int  # 1: Python has to compute the keys: there was a division by zero, or an integer that is too large


class ProgramRecord(Record, lines=False):
    """The program of one queue."""

    q: int  # slot of the queue
    program: int  # number of the compiled program
    f: int  # offset of its constants in ``cf``
    i: int  # offset of its constants in ``ci``
    key: float  # the queue's key


class _Fields(NamedTuple):
    k: Column[ProgramGlobals]  # what all programs need: one record
    rows: Column[ProgramRecord]  # the queues' programs
    ints: Table[int]  # (queues, columns of `harness.sim.observe`): what a policy sees as integers
    reals: Table[float]  # (queues, columns of `harness.sim.observe`): what a policy sees as reals
    cf: Column[float]  # the programs' constants that are reals
    ci: Column[int]  # the programs' constants that are integers


class Programs(Arrays, _Fields):  # type: ignore[misc]
    """The data that the compiled function works on."""


_W, _K = at_address(World), at_address(Programs)


@njit(**_OPTIONS)
def _whole(x: int, real: float, k: ProgramGlobals) -> int:
    if not abs(real) <= _EXACT:
        k.bad = 1
    return x


@njit(**_OPTIONS)
def _divided(x: float, y: float, k: ProgramGlobals) -> float:
    if y == 0:
        k.bad = 1
    return float(x) / float(y)


#: Source text of each step: Python's arithmetic of integers (``_i``) and of reals.
_WRITTEN = {
    "add": "float({0}) + float({1})",
    "sub": "float({0}) - float({1})",
    "mul": "float({0}) * float({1})",
    "div": "divided({0}, {1}, k)",
    "add_i": "whole({0} + {1}, float({0}) + float({1}), k)",
    "sub_i": "whole({0} - {1}, float({0}) - float({1}), k)",
    "mul_i": "whole({0} * {1}, float({0}) * float({1}), k)",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
}


class _Writer:
    """Writes the program of one queue as text, with its constants separate."""

    def __init__(self, row: int, tree: Tree) -> None:
        self.row = row
        self.reals: list[float] = []
        self.wholes: list[int] = []
        self.columns: set[int] = set()
        self.lines: list[str] = []
        self._block(tree, "    ")

    def _block(self, tree: Tree, indent: str) -> None:
        for n, (do, x, y) in enumerate(tree.steps, tree.first):
            self.lines.append(f"{indent}v{n} = {_WRITTEN[do].format(self._arg(x), self._arg(y))}")
        if tree.yes is not None and tree.no is not None:
            self.lines.append(f"{indent}if v{tree.branch}:")
            self._block(tree.yes, indent + "    ")
            self.lines.append(f"{indent}else:")
            self._block(tree.no, indent + "    ")
        else:
            self.lines.append(f"{indent}return float({self._arg(tree.key)})")

    def _arg(self, arg: Arg) -> str:
        if arg[0] == "v":
            return f"v{arg[1]}"
        if arg[0] == "c":
            if isinstance(arg[1], int):
                return self._of_wholes(arg[1])
            self.reals.append(arg[1])
            return f"cf[f + {len(self.reals) - 1}]"
        _, row, column = arg
        if column == NOW:
            return "now"
        self.columns.add(column)
        at = "r" if row == self.row else self._of_wholes(row)
        return f"reals[{at}, 0]" if column == COUNTED else f"ints[{at}, {column}]"

    def _of_wholes(self, value: int) -> str:
        self.wholes.append(value)
        return f"ci[i + {len(self.wholes) - 1}]"


@lru_cache(maxsize=32)
def _compiled(programs: tuple[str, ...], scheduler: Any) -> Any:
    """Compile the function that the loop calls with the addresses of the scheduler's state, the world and `Programs`.

    The function returns 1 if it has computed the keys. On an exception numba prints it and returns 0, so that Python
    computes them.
    """
    chosen = ["def key_of(row, k, ints, reals, now, cf, ci):"]
    for n, _ in enumerate(programs):
        chosen.append(f"    if row.program == {n}:")
        chosen.append(f"        return program_{n}(row.q, k, ints, reals, now, cf, row.f, ci, row.i)")
    chosen.append("    return 1e300")
    names: dict[str, Any] = {"whole": _whole, "divided": _divided}
    for n, text in enumerate(programs):
        exec(f"def program_{n}(r, k, ints, reals, now, cf, f, ci, i):\n{text}", names)
        names[f"program_{n}"] = njit(**_OPTIONS)(names[f"program_{n}"])
    exec("\n".join(chosen), names)
    key_of: Any = njit(**_OPTIONS)(names["key_of"])

    state_at = at_address(scheduler)

    @cfunc("int64(int64, int64, int64)", **_OPTIONS)
    def make(state: int, world: int, table: int) -> int:
        s, w, t = state_at(state), _W(world), _K(table)
        k = t.k[0]
        if s.g[0].cluster_mb != k.mb or s.g[0].cluster_vcores != k.vc:
            return 0
        if s.q[0].n_cand == 0:
            return 1  # no queue wants anything
        now = w.g[0].now
        fill(s, w, t.ints, t.reals, now, k.jobs)
        k.bad = 0
        for n in range(len(t.rows)):
            key = key_of(t.rows[n], k, t.ints, t.reals, now, t.cf, t.ci)
            if key != key:
                k.bad = 1  # Python asks the policy and rejects the result
            t.rows[n].key = min(max(key, -1e300), 1e300)
        if k.bad == 1:
            return 0
        if k.dry == 0:
            for n in range(len(t.rows)):
                q = t.rows[n].q
                if s.q[q].key != t.rows[n].key:
                    s.q[q].key = t.rows[n].key
                    ops.key_changed(s, q)
        return 1

    return make


class Keyed:
    """Switches one run from keys computed in Python to compiled keys, after a phase in which both are compared."""

    def __init__(self, policy: Any, observer: Observer, flat: bool) -> None:
        self._policy, self._observer, self._flat = policy, observer, flat
        self._asked = 0
        self._static: list[Any] | None = None
        self._make: Any = None
        self._table: Programs | None = None
        self._equal = 0
        #: State of the policy when the comparison began.
        self._state: tuple[Any, ...] | None = None
        #: Why the keys are computed in Python for the rest of the run; '' if they are not.
        self.why_not = ""

    def compile(self) -> None:
        """Compile now, however often the policy was asked."""
        self._asked = max(self._asked, WORTH)

    def asked(self, S: SchedulerState, W: World, keys: NDArray[np.float64]) -> None:
        """Count a call of the policy in Python, and trace, compare or switch to compiled keys when that is due.

        ``keys``: the policy's results, indexed by queue slot.
        """
        self._asked += 1
        if self.why_not or self._asked < WORTH:
            return
        try:
            if self._static is not self._observer.static:
                self._trace(type(S))
                self._state = state_of(self._policy)
                self._equal, W.g["keys_at"] = 0, 0
            table = self._table
            assert table is not None
            table.k["dry"] = 1
            if self._make.ctypes(S.address, W.address, table.address) != 1:
                return
            if table.rows["key"].tolist() != keys[table.rows["q"]].tolist():
                raise NotTracedError("its keys are not of the snapshot and the ledger alone")
            self._equal += 1
            if self._equal >= _COMPARED:
                self._check_state()
                table.k["dry"] = 0
                W.g["keys_at"], W.g["keys_of"] = self._make.address, table.address
        except NotTracedError as reason:
            self._stop(W, reason)

    def planned(self, W: World) -> None:
        """Check the policy after it has made a new plan; if its state has changed, keys stay in Python from now on."""
        try:
            self._check_state()
        except NotTracedError as reason:
            self._stop(W, reason)

    def _check_state(self) -> None:
        if self._state is not None and state_of(self._policy) != self._state:
            raise NotTracedError("it remembers something from call to call")

    def _stop(self, W: World, reason: NotTracedError) -> None:
        self.why_not, self._state = str(reason), None
        W.g["keys_at"] = 0

    def _trace(self, scheduler: Any) -> None:
        observer = self._observer
        self._static = static = observer.static
        capacity = observer.capacity
        assert capacity is not None
        cls = type(self._policy)
        # Trace a copy, because the policy must not store the tracer's numbers in its state.
        policy = cls(self._policy.settings, self._policy.exact)
        single = cls.keys is Policy.keys
        wanted = [queue for queue in static if queue[1] is not None and (queue[2] or not self._flat)]
        found = trees(policy, single, static, capacity, [queue[0] for queue in wanted])
        written = [_Writer(queue[4], tree) for queue, tree in zip(wanted, found, strict=True)]
        texts = ["\n".join(one.lines) for one in written]
        programs = tuple(dict.fromkeys(texts))
        if len(programs) > _MOST_PROGRAMS or sum(text.count("\n") for text in programs) > _MOST_LINES:
            raise NotTracedError("the queues' keys have too little in common")
        rows = np.zeros(len(wanted), ProgramRecord.dtype)
        reals, wholes = [0.0], [0]
        for row, queue, one, text in zip(rows, wanted, written, texts, strict=True):
            row["q"], row["program"], row["f"], row["i"] = queue[4], programs.index(text), len(reals), len(wholes)
            reals += one.reals
            wholes += one.wholes
        k = np.zeros(1, ProgramGlobals.dtype)
        k["mb"], k["vc"] = capacity.memory_mb, capacity.vcores
        k["jobs"] = int(any(one.columns & OF_JOBS for one in written))
        ints, sums = observer.table()
        self._table = Programs(k, rows, ints, sums, np.array(reals), np.array(wholes, np.int64))
        self._make = _compiled(programs, scheduler)
