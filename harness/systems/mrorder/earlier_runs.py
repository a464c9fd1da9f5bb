"""Task times of earlier runs by job name, from which MROrder estimates new jobs (tang-thesis sections 3.4.2.1, 3.5).

A source is a run directory of a real backend (the containers of its tasks), a folder of such directories, or a recorded
trace (of a run, or from any cluster with a JobHistoryServer by `yarnfair record`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from harness.base.errors import InputError
from harness.model.jobs import JobSpec
from harness.report.reading import needed_table
from harness.systems.mrorder.ordering import MapReduceJob
from harness.traces.recorded import read_trace

#: Tables of a run directory, and the columns of tasks.parquet that are read. Tasks of stages other than ``map`` count
#: as reduces.
_TABLES = ("tasks.parquet", "jobs.parquet")
_COLUMNS = ("job", "stage", "outcome", "granted_s", "ended_s")


@dataclass(slots=True)
class EarlierRuns:
    """Mean time that finished maps and reduces held their containers, by job name."""

    #: Keys: False for maps, True for reduces. ``_took`` counts microseconds by job name, ``_tasks`` the number of
    #: tasks.
    _took: dict[bool, Counter[str]] = field(default_factory=lambda: {False: Counter(), True: Counter()})
    _tasks: dict[bool, Counter[str]] = field(default_factory=lambda: {False: Counter(), True: Counter()})

    def add(self, name: str, *, reduce: bool, seconds: float) -> None:
        """Add one finished task of a job with this name."""
        self._took[reduce][name] += round(max(seconds, 0.0) * 1e6)
        self._tasks[reduce][name] += 1

    def knows(self, name: str) -> bool:
        """Return whether a job with this name has run."""
        return any(name in side for side in self._tasks.values())

    @property
    def tasks(self) -> int:
        """The number of tasks in all means."""
        return sum(side.total() for side in self._tasks.values())

    def mean_s(self, name: str, *, reduce: bool) -> Fraction:
        """Return the mean time of a map or a reduce of jobs with this name, s; if there were none, of all jobs."""
        took, tasks = self._took[reduce], self._tasks[reduce]
        total, count = (took[name], tasks[name]) if name in tasks else (took.total(), tasks.total())
        # Round to microseconds, so that fractions stay short in exact arithmetic.
        return Fraction(round(Fraction(total, count)), 10**6) if count else Fraction(0)

    def estimate(self, job: JobSpec) -> MapReduceJob:
        """Return the estimate of a submitted job: its own numbers of tasks, with the mean times of earlier runs."""

        def side(reduce: bool) -> tuple[int, Fraction]:
            tasks = sum(stage.tasks for stage in job.stages if bool(stage.after) == reduce)
            return tasks, self.mean_s(job.name, reduce=reduce) if tasks else Fraction(0)

        (maps, map_s), (reduces, reduce_s) = side(False), side(True)
        return MapReduceJob(job.id, maps, map_s, reduces, reduce_s)


def earlier_runs(paths: Sequence[Path]) -> EarlierRuns:
    """Read the sources.

    Raises InputError if a source does not exist, cannot be read, or has no finished task.
    """
    found = EarlierRuns()
    for path in paths:
        before = found.tasks
        for source in _sources(path):
            (_from_trace if source.is_file() else _from_run)(source, found)
        if found.tasks == before:
            raise InputError(
                "no task that ended", where=str(path), hint="give a run of a real backend that ended, or a trace"
            )
    return found


def _sources(path: Path) -> Iterable[Path]:
    if path.is_file() or (path / _TABLES[0]).is_file():
        return [path]
    if not path.is_dir():
        raise InputError("no such run or trace", where=str(path), hint="give a run directory or a trace")
    inside = sorted(file.parent for file in path.glob(f"*/{_TABLES[0]}"))
    if not inside:
        hint = f"a run of a real backend has {_TABLES[0]} (the simulator's have none); or give a recorded trace"
        raise InputError("no run with tasks in it", where=str(path), hint=hint)
    return inside


def _from_trace(path: Path, found: EarlierRuns) -> None:
    for job in read_trace(path).jobs:
        if job.kind == "mapreduce" and job.detail == "tasks":
            for stage in job.stages:
                for seconds in stage.worked_s():
                    found.add(job.name, reduce=bool(stage.after), seconds=seconds)


def _from_run(folder: Path, found: EarlierRuns) -> None:
    tasks, jobs = (needed_table(folder / name) for name in _TABLES)
    missing = [name for name in _COLUMNS if name not in tasks] + [n for n in ("job", "type", "kind") if n not in jobs]
    if missing:
        raise InputError(f"no column {missing[0]}", where=str(folder), hint="the run is not of this version: run again")
    names = {str(row.job): str(row.type) for row in jobs.itertuples() if row.kind == "mapreduce"}
    done = tasks[(tasks["outcome"] == "finished") & tasks["job"].isin(names)]
    last_map = done[done["stage"] == "map"].groupby("job")["ended_s"].max()
    for row in done.itertuples():
        job, reduce = str(row.job), row.stage != "map"
        begun = float(row.granted_s)  # type: ignore[arg-type]
        if reduce and job in last_map:
            # Do not count the time in which a reduce waited for the last map: slow-start causes it.
            begun = max(begun, float(last_map[job]))
        found.add(names[job], reduce=reduce, seconds=float(row.ended_s) - begun)  # type: ignore[arg-type]
