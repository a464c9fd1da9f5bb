"""Many runs as tables: `load` for pandas, `sql` for DuckDB. Read-only; docs/ describes the columns.

::

    runs         one row per run: its identity, and every number of its summary
    queues       one row per run and leaf queue: the queue's part of the summary
    jobs         jobs.parquet of every run
    allocations  allocations.parquet of every run
    decisions    decisions.jsonl of every run: time_s, kind, and the whole line as JSON

Each has the columns ``run`` (a short, unique name), ``experiment``, ``variant``, ``policy``, ``mode``, ``backend``,
``seed`` and ``repeat`` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from harness.base.errors import CallError, InputError
from harness.results.runs import RunRecord, decision_lines, kind_of, read_runs

#: First columns of every table.
IDENTITY = ("run", "experiment", "variant", "policy", "mode", "backend", "seed", "repeat")
TABLES = ("runs", "queues", "jobs", "allocations", "decisions")


def _names(runs: Sequence[RunRecord]) -> list[str]:
    """Return directory names, with as much of their parents as makes them unique."""
    for depth in range(1, 8):
        names = ["/".join(run.path.resolve().parts[-depth:]) for run in runs]
        if len(set(names)) == len(names):
            return names
    return [str(run.path.resolve()) for run in runs]


class Results:
    """Runs as pandas DataFrames; each table is read on first access."""

    def __init__(self, records: Sequence[RunRecord]) -> None:
        self.records = list(records)
        self.names = _names(self.records)

    def _identity(self, at: int) -> dict[str, Any]:
        return {"run": self.names[at], **{name: getattr(self.records[at], name) for name in IDENTITY[1:]}}

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run: settings as ``setting.NAME``, the summary's numbers by key, ``exit``, ``directory``."""
        rows = []
        for at, run in enumerate(self.records):
            settings = {f"setting.{key}": value for key, value in run.settings.items()}
            numbers = {key.key: value for key, value in run.values.items() if key.queue is None}
            rows.append(
                {
                    **self._identity(at),
                    "exit": run.info.get("exit"),
                    "start": run.start,
                    "hash": run.hash,
                    "directory": str(run.path),
                    **settings,
                    **numbers,
                }
            )
        return pd.DataFrame(rows)

    @cached_property
    def queues(self) -> pd.DataFrame:
        """One row per run and leaf queue."""
        rows = []
        for at, run in enumerate(self.records):
            queues = run.summary.get("queues")
            for queue, own in (queues if isinstance(queues, Mapping) else {}).items():
                numbers = {key.key.removeprefix("queues."): v for key, v in run.values.items() if key.queue == queue}
                if isinstance(own, Mapping):
                    rows.append({**self._identity(at), "queue": queue, **numbers})
        return pd.DataFrame(rows)

    def _stacked(self, file: str) -> pd.DataFrame:
        import pyarrow as pa
        from pyarrow import parquet

        parts, lengths = [], []
        for run in self.records:
            path = run.path / file
            if run.damage.startswith(file):
                what, _, hint = run.damage.partition(": ")
                raise InputError(what, where=str(run.path), hint=hint)
            if not path.is_file():
                lengths.append(0)
                continue
            try:
                table = parquet.read_table(path).replace_schema_metadata(None)
            except Exception as error:  # pyarrow raises OSError, ArrowInvalid and more on damaged files
                raise InputError(
                    f"not a readable parquet file ({type(error).__name__})", where=str(path), hint="run it again"
                ) from None
            if "queue" in table.column_names:
                table = table.set_column(
                    table.column_names.index("queue"), "queue", table.column("queue").cast(pa.string())
                )
            parts.append(table)
            lengths.append(len(table))
        if not parts:
            return pd.DataFrame()
        stacked: pd.DataFrame = pa.concat_tables(parts, promote_options="permissive").to_pandas()
        of_runs = pd.DataFrame([self._identity(at) for at in range(len(self.records))])
        for place, name in enumerate(one for one in IDENTITY if one not in stacked.columns):
            stacked.insert(place, name, of_runs[name].repeat(lengths).to_numpy())
        return stacked

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """Every job of every run."""
        return self._stacked("jobs.parquet")

    @cached_property
    def allocations(self) -> pd.DataFrame:
        """Every sample of every queue of every run. Large: some ten thousand rows per run."""
        return self._stacked("allocations.parquet")

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """Every decision of the controllers; an unreadable line (of a killed run) is left out."""
        rows = []
        for at, run in enumerate(self.records):
            for line, entry in decision_lines(run.path):
                if entry is not None:
                    more = {"time_s": entry.get("time_s"), "kind": kind_of(entry), "decision": line}
                    rows.append({**self._identity(at), **more})
        return pd.DataFrame(rows, columns=[*IDENTITY, "time_s", "kind", "decision"])


def load(*paths: str | Path | Iterable[str | Path]) -> Results:
    """Return runs as tables: ``load("runs/mine").runs``.

    Paths: run directories, or folders of them (also a campaign's).

    Raises InputError if a path has no run, or a run is damaged.
    """
    listed: list[Path] = []
    for path in paths:
        listed += [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    return Results(read_runs(listed))


def sql(query: str, *paths: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """Return DuckDB's answer to a query over ``runs``, ``queues``, ``jobs``, ``allocations``, ``decisions``.

    Raises CallError for a query that DuckDB refuses.
    """
    import duckdb

    found = load(*paths)
    connection = duckdb.connect(":memory:")
    try:
        # No files, no network: the query sees these tables and nothing else.
        connection.execute("SET enable_external_access = false")
        for name in TABLES:
            if name in query.lower():
                table = getattr(found, name)
                connection.register(name, table if len(table.columns) else pd.DataFrame({"run": []}))
        answer: pd.DataFrame = connection.execute(query).df()
        return answer
    except duckdb.Error as error:
        text = " ".join(str(error).split())
        raise CallError(text[:400], where="query", hint=f"tables are {', '.join(TABLES)}") from None
    finally:
        connection.close()
