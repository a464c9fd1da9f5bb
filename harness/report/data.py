"""Reads run directories for the report: identity, summary, the queues over time, jobs, decisions. Draws nothing.

The directory of an unfinished run is read as far as possible, with its state; a damaged one raises an `InputError` that
names the file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.base.errors import InputError
from harness.model.queues import upwards
from harness.report.curves import longest_true_s
from harness.report.reading import Floats, column, parquet_table, task_lengths, text_of
from harness.results.catalogue import number
from harness.results.metrics import fairness_degree
from harness.results.phases import Phases, read_phases
from harness.results.runs import (
    RunRecord,
    decision_lines,
    find_runs,
    kind_of,
    natural,
    read_run,
    variant_place,
    without_seed,
)

#: Number of lines of decisions.jsonl that are shown.
SHOWN_DECISIONS = 12
#: Size limit of the cache of tables (`KeptTables`). An evicted table is read again on demand.
KEPT_BYTES = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class Series:
    """One queue over time, by columns of allocations.parquet (MiB, MiB·s, seconds). Arrays of one length.

    The first fields are required; an optional quantity that was not recorded is None.

    ``share_mb`` is S_i of LTYARN eq. (2), ``due_mb_s`` the integral of min(d_i, S_i), ``counted_mb_s`` the accumulated
    resources as the policy's own settings count them, ``quantum_s`` the assumed execution time Q.
    """

    time_s: Floats
    allocated_mb: Floats
    demand_mb: Floats
    accumulated_mb_s: Floats
    fair_share_mb: Floats | None = None
    weight: Floats | None = None
    due_mb_s: Floats | None = None
    running: Floats | None = None
    share_mb: Floats | None = None
    counted_mb_s: Floats | None = None
    quantum_s: Floats | None = None

    @property
    def nbytes(self) -> int:
        """Return the memory of its arrays in bytes."""
        columns = (getattr(self, one.name) for one in fields(self))
        return sum(values.nbytes for values in columns if values is not None)

    def starves(self) -> NDArray[np.bool_]:
        """Return for each sample whether the queue asks for more than it holds, and runs no task (or holds nothing)."""
        idle = self.allocated_mb <= 0 if self.running is None else self.running <= 0
        return (self.demand_mb > self.allocated_mb) & idle

    def fairness_degree(self) -> Floats | None:
        """Return rho_i(t) of LTYARN eq. (3); 1 while nothing was due."""
        return None if self.due_mb_s is None else fairness_degree(self.accumulated_mb_s, self.due_mb_s)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The controller's decisions: their number, the first of them, numbers by kind, and unreadable lines."""

    count: int = 0
    first: tuple[Mapping[str, Any], ...] = ()
    kinds: Mapping[str, int] = field(default_factory=dict)
    unreadable: int = 0


@dataclass(frozen=True, kw_only=True)
class Run(RunRecord):
    """One run directory with the data for the report."""

    label: str
    state: str  # "finished", or a description of the problem
    leaves: tuple[str, ...]
    parents: tuple[str, ...]  # without root
    series: Mapping[str, Series]
    capacity_mb: float | None
    #: By leaf (short name): the longest time with pending demand and no running task, as (length, from, to) in seconds.
    #: An AM that holds its container and waits does not count as running.
    starvation: Mapping[str, tuple[float, float, float]]
    #: By leaf (short name): the mean duration of its tasks in seconds, from jobs.parquet, if known.
    task_s: Mapping[str, float]
    decisions: Decisions
    problems: tuple[str, ...] = ()
    #: The experiment's ``kind`` (harness.results.kinds), which has its own page; None: YARN.
    kind: str | None = None
    #: For a replay: its results in many phases. ``summary`` is then their mean; everything else is of one phase.
    phases: Phases | None = None

    def beside(self, other: Run) -> bool:
        """Return whether only the policy differs: same experiment, backend, seed and repeat."""
        mine, theirs = (
            (one.seed, *(one.info.get(key) for key in ("hash", "backend", "repeat"))) for one in (self, other)
        )
        return mine == theirs

    @property
    def counts(self) -> bool:
        """Return whether findings may be based on it: it ended, no job failed, and it has a summary."""
        return self.state == "finished" and bool(self.summary)

    def figure(self, name: str) -> float | None:
        """Return a number of the summary; None if it is absent or null."""
        return number(self.summary.get(name))

    @property
    def resource(self) -> str:
        """Return the resource of its integrals.

        Memory (MiB·s), vcores (vcore·s), or dominant (MiB·s of the dominant share).
        """
        return text_of(self.described, "resource", default="memory")

    @property
    def counted_resource(self) -> str:
        """Return the resource that the policy itself counts."""
        return text_of(self.settings, "resource", default="memory")

    def capacity(self) -> float | None:
        """Return the cluster's size in the unit of the integrals, without the seconds; None if unknown."""
        if self.resource != "vcores":
            return self.capacity_mb
        vcores = self.info.get("capacity_vcores")
        return float(vcores) if isinstance(vcores, int) and vcores > 0 else None

    def number(self, name: str) -> float:
        """Return a number of the summary; 0 if the summary has null (`last_loss_s` of a run without loss)."""
        return self.figure(name) or 0.0

    def queue_figure(self, queue: str, name: str) -> float | None:
        """Return a number of one queue's summary; None if it is absent or null."""
        return number(self.summary.get("queues", {}).get(queue, {}).get(name))

    def summary_queues(self) -> list[str]:
        """Return the names of the queues in the summary, in its order."""
        return list(self.summary.get("queues", {}))

    def speedups(self, name: str = "speedup_over_static") -> dict[str, float]:
        """Return time under static / under this policy, for queues with both times.

        The time is a job's mean completion, or (``workload_speedup_over_static``) that of the queue's whole workload.
        """
        return {queue: value for queue, value in self.of_queues(name).items() if value > 0}

    def of_queues(self, name: str) -> dict[str, float]:
        """Return a number of the queues' summaries, by short name, if known."""
        found = {short(queue): self.queue_figure(queue, name) for queue in self.summary_queues()}
        return {queue: value for queue, value in found.items() if value is not None}

    def contention(self) -> tuple[float, float] | None:
        """Return two fractions of the samples; None if they are not known.

        In the first, the demand of all leaves together exceeds the cluster; in the second, the demand of two leaves or
        more exceeds their own shares.
        """
        of_leaves = [self.series[leaf] for leaf in self.leaves]
        if not of_leaves or not self.capacity_mb or len({len(series.time_s) for series in of_leaves}) != 1:
            return None
        if not len(of_leaves[0].time_s):
            return None
        demand = np.sum([series.demand_mb for series in of_leaves], axis=0)
        over = np.sum([s.demand_mb > s.share_mb for s in of_leaves if s.share_mb is not None], axis=0)
        return float((demand > self.capacity_mb).mean()), float((over >= 2).mean())

    def worst_queue(self) -> tuple[str, float] | None:
        """Return the queue with the lowest fairness degree at the end."""
        degrees = self.of_queues("fairness_degree")
        worst = min(degrees, key=lambda queue: degrees[queue], default=None)
        return (worst, degrees[worst]) if worst is not None else None

    def mean_running(self, queue: str, start_s: float, end_s: float) -> float | None:
        """Return the mean number of running tasks of a leaf (short name) over the samples of a span.

        None: not recorded.
        """
        for leaf in self.leaves:
            series = self.series[leaf]
            if short(leaf) == queue and series.running is not None:
                inside = (series.time_s >= start_s) & (series.time_s <= end_s)
                return float(series.running[inside].mean()) if inside.any() else None
        return None

    def variant_without_seed(self) -> str:
        """Return the label without the part that distinguishes seeds."""
        return without_seed(self.label, self.seed)

    def inside_of(self, runs: Sequence[Run]) -> Run | None:
        """Return the counterpart of a run from outside: the same policy inside, with the same experiment and seed.

        Among several, the one with the same other settings (T_wait); settings that only matter from outside (horizon,
        affinity) are not compared.
        """
        if self.mode != "outside" or not self.counts:
            return None

        def others(run: Run) -> dict[str, str]:
            return {name: str(value) for name, value in run.settings.items() if name not in {"horizon_s", "affinity"}}

        inside = [run for run in runs if run.policy == self.policy and run.mode == "inside" and run.counts]
        able = [run for run in inside if not run.settings.get("horizon_s") and run.beside(self)]
        return next((run for run in able if others(run) == others(self)), able[0] if able else None)

    def end_s(self) -> float:
        """Return the last sample's time."""
        return max((float(s.time_s[-1]) for s in self.series.values() if len(s.time_s)), default=0.0)


def short(queue: str) -> str:
    """Return a queue's name without the leading ``root.``."""
    return queue.removeprefix("root.")


class KeptTables:
    """A cache of the queues over time of each run, which evicts the least recently used table above `KEPT_BYTES`."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Path, tuple[int, int]], tuple[dict[str, Series], int]] = OrderedDict()
        #: Bytes of the cached tables.
        self.size = 0

    def series_of(self, path: Path, written: tuple[int, int]) -> dict[str, Series]:
        """Return the queues of the table at a path.

        ``written``: modification time (ns) and size, both part of the cache key.
        """
        key = (path, written)
        if key not in self._kept:
            found = _series_of(path)
            size = sum(series.nbytes for series in found.values())
            self._kept[key] = (found, size)
            self.size += size
            while self.size > KEPT_BYTES:
                _, (_, gone) = self._kept.popitem(last=False)
                self.size -= gone
            return found
        self._kept.move_to_end(key)
        return self._kept[key][0]


_TABLES = KeptTables()


def _series_of(path: Path) -> dict[str, Series]:
    needed = [one.name for one in fields(Series) if one.default is MISSING]
    table = read_table(path, [*needed, "queue"])
    out: dict[str, Series] = {}
    if table is None:
        return out
    # Each column is converted once, not once per queue: with a thousand queues that takes most of a report's time.
    columns = {one.name: column(table, one.name, path) for one in fields(Series) if one.name in table.columns}
    for queue, rows in table.groupby("queue", sort=False, observed=True).indices.items():
        of_queue = {name: values[rows] for name, values in columns.items()}
        time_s = of_queue["time_s"]
        if not np.isfinite(time_s).all() or (np.diff(time_s) < 0).any():
            raise InputError(f"times of {queue} are not ascending numbers", where=str(path), hint="run it again")
        out[str(queue)] = Series(**of_queue)
    return out


class _Read(Mapping[str, Series]):
    """The queues of one run over time, read from its table on access and not kept in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        found = path.stat() if path.exists() else None
        # A rewritten file counts as another one.
        self._written = (found.st_mtime_ns, found.st_size) if found is not None else (0, 0)

    def _all(self) -> dict[str, Series]:
        return _TABLES.series_of(self._path, self._written)

    def __getitem__(self, queue: str) -> Series:
        return self._all()[queue]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _decisions(folder: Path) -> Decisions:
    count = unreadable = 0
    first: list[Mapping[str, Any]] = []
    kinds: dict[str, int] = {}
    for _, entry in decision_lines(folder):
        if entry is None:
            unreadable += 1
            continue
        count += 1
        kinds[kind_of(entry)] = kinds.get(kind_of(entry), 0) + 1
        if len(first) < SHOWN_DECISIONS:
            first.append(entry)
    return Decisions(count, tuple(first), kinds, unreadable)


def _state(record: RunRecord) -> str:
    """Return "finished" for a valid run, otherwise what is wrong with it (harness.results.validity)."""
    exit_code, bad = record.info.get("exit"), record.invalid()
    if exit_code is not None and not isinstance(exit_code, int):
        where = str(record.path / "run.json")
        raise InputError(f"exit is {str(exit_code)[:40]!r}, not an exit code", where=where, hint="run it again")
    if bad is None:
        return "finished"
    meaning = {None: "unfinished", 0: "not valid", 4: "not valid", 5: "timed out", 130: "interrupted"}
    return f"{meaning.get(exit_code, f'ended with an error (exit code {exit_code})')}: {bad.reason}"


def _tree(series: Mapping[str, Series], summary: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return parents without root, and the leaves to show (the summary's, or those that ask), in the summary's order.

    An unused leaf (``root.default``) gets no curve.
    """
    queues = [queue for queue in series if queue != "root"]
    named = summary.get("queues", {})
    # The table over time sorts them by name, the summary as in the experiment: charts and tables share the latter
    # order. A parent stands where its first leaf does.
    places: dict[str, int] = {}
    for place, queue in enumerate(map(str, named)):
        for path in upwards(queue):
            places.setdefault(path, place)
    queues.sort(key=lambda queue: places.get(queue, len(named)))
    has_children = {path for queue in queues for path in upwards(queue.rpartition(".")[0])}
    parents = tuple(q for q in queues if q in has_children)
    leaves = [q for q in queues if q not in has_children]
    used = [q for q in leaves if q in named or (series[q].demand_mb > 0).any()]
    return parents, tuple(used or leaves)


def _capacity(series: Mapping[str, Series]) -> float | None:
    """Return the cluster's memory in MiB: root's own share, at its largest."""
    root = series.get("root")
    if root is None or root.share_mb is None or not len(root.share_mb):
        return None
    largest = float(np.nanmax(root.share_mb))
    return largest if largest > 0 else None


def load_run(path: Path, known: dict[str, object] | None = None) -> Run:
    """Read one run directory. ``known``: experiments that were read before, so that equal ones are stored once.

    Raises
    ------
    InputError
        It is not a run directory, or a file in it is damaged.
    """
    if not path.is_dir():
        raise InputError(
            "no such run directory", where=str(path), hint="give directories that `yarnfair run` has written"
        )
    record = read_run(path)
    info, summary = dict(record.info), record.summary
    queues = summary.get("queues", {})
    parts = {"queues": queues, "utilisation": summary.get("utilisation") or {}}
    parts |= {f"queues.{str(name)[:80]}": own for name, own in (queues.items() if isinstance(queues, Mapping) else ())}
    for part, found in parts.items():
        if not isinstance(found, Mapping):
            raise InputError(f"'{part}' is not an object", where=str(path / "summary.json"), hint="run it again")
    phases = read_phases(path) if summary else None
    problems: list[str] = []
    state = _state(record)
    experiment = info.get("experiment")
    kind = experiment.get("kind") if isinstance(experiment, Mapping) else None
    if known is not None and isinstance(experiment, Mapping):
        before = known.setdefault(str(info.get("hash")), experiment)
        info["experiment"] = before if before == experiment else experiment
    # Runs of other experiment types have their own tables, which their pages read.
    series: Mapping[str, Series] = _Read(path / "allocations.parquet") if kind is None else {}
    if kind is None and not (path / "allocations.parquet").exists():
        problems.append("allocations.parquet is missing: nothing is drawn of it.")
    decisions = _decisions(path)
    if decisions.unreadable:
        problems.append(f"decisions.jsonl: {decisions.unreadable} line(s) could not be read.")
    parents, leaves = _tree(series, summary)
    return Run(
        path=path,
        label=_own_label(info, record.policy),
        info=info,
        summary=phases.mean if phases else summary,
        damage=record.damage,
        state=state,
        leaves=leaves,
        parents=parents,
        series=series,
        capacity_mb=_capacity(series),
        starvation={short(leaf): longest_true_s(series[leaf].time_s, series[leaf].starves()) for leaf in leaves},
        task_s=task_lengths(parquet_table(path / "jobs.parquet")),
        decisions=decisions,
        problems=tuple(problems),
        kind=kind if isinstance(kind, str) else None,
        phases=phases,
    )


def read_table(path: Path, needed: Sequence[str]) -> pd.DataFrame | None:
    """Read the needed columns of a run directory's table; None if it does not exist (yet).

    Raises InputError if it is damaged, or a column is missing.
    """
    table = parquet_table(path)
    lacking = [name for name in needed if table is not None and name not in table.columns]
    if lacking:
        raise InputError(f"columns {', '.join(lacking)} are missing", where=str(path), hint="run it again")
    return table


def load_runs(paths: Sequence[Path]) -> list[Run]:
    """Read run directories, each once; a folder (of runs, or of a campaign) means those in it. Labels are unique.

    Their order does not depend on the order of the paths.
    """
    directories: list[Path] = []
    for path in paths:
        directories += find_runs(path) if path.is_dir() else [path]
    unique = {directory.resolve(): directory for directory in reversed(directories)}
    known: dict[str, object] = {}
    # A fixed order, so that the same runs make the same page in any order of arguments: by experiment, then reference
    # policies first.
    runs = sorted(
        (load_run(directory, known) for directory in reversed(unique.values())),
        key=lambda run: (
            natural(run.experiment),
            run.backend != "sim",
            run.backend,
            run.hash,
            variant_place(run.policy, run.mode, run.label),
            str(run.path),
        ),
    )
    return _told_apart(runs)


def labelled_alone(runs: Sequence[Run]) -> list[Run]:
    """Return some of a page's runs with the labels that they have on a page of their own.

    Parameters
    ----------
    runs : sequence of Run
        Runs of `load_runs`, for a section about them alone.

    Returns
    -------
    list of Run
        The same runs in the same order. A label names the experiment or the backend only if these runs differ in it.
    """
    return _told_apart([replace(run, label=_own_label(run.info, run.policy)) for run in runs])


def _told_apart(runs: Sequence[Run]) -> list[Run]:
    return [replace(run, label=_unique(run, runs)) for run in runs]


def _own_label(info: Mapping[str, Any], policy: str) -> str:
    return text_of(info, "variant", "label") or policy or "unknown policy"


#: Where a variant of one name may have run.
_PLACES: tuple[Callable[[Run], object], ...] = (lambda run: run.experiment, lambda run: run.info.get("backend"))
#: Attributes in which runs of one label may differ further, with their wording (`Run.variant_without_seed`).
_TOLD_APART: tuple[tuple[str, Callable[[Run], object]], ...] = (
    ("repeat ", lambda run: run.info.get("repeat")),
    ("seed ", lambda run: run.seed),
)


def _unique(run: Run, runs: Sequence[Run]) -> str:
    # A variant is named after its experiment wherever another experiment has one of its name, with seeds or without.
    named = [other for other in runs if other.variant_without_seed() == run.variant_without_seed()]
    alike = [other for other in runs if other.label == run.label]
    places = [of for of in _PLACES if len({str(of(other)) for other in named}) > 1]
    differ = [(word, of) for word, of in _TOLD_APART if len({str(of(other)) for other in alike}) > 1]

    def said(one: Run) -> str:
        # A seed in the label comes last, so that the seeds of a variant are recognised as one variant.
        name = one.variant_without_seed()
        whose = ", ".join(str(of(one)) for of in places)
        rest = [f"{word}{of(one)}" for word, of in differ]
        return ", ".join([f"{name} ({whose})" if whose else name, *rest]) + one.label.removeprefix(name)

    if sum(said(other) == said(run) for other in alike) == 1:
        return said(run)
    return f"{run.label} ({run.path.parent.name}/{run.path.name})"
