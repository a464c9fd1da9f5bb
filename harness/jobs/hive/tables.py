"""TPC-H's data as Hive reads it, a folder a table; a query's columns, and its answer as Spark's leave theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.jobs.data.generate import TPCH, how_to_make, usable
from harness.jobs.data.targets import FolderTarget
from harness.jobs.hive.site import TABLES, tables_of
from harness.jobs.spark.catalogue import SparkProgram
from harness.jobs.spark.plan import Input


def read_tables(folder: Path) -> tuple[Input, dict[str, list[str]]]:
    """TPC-H's data in a folder, and the files of each table. Raises InputError for data that cannot be used."""
    if any(c in "{}[]*?\\, \t\n'\"$;:" for c in str(folder)):
        what = "Hive's paths have no blanks, quotes, commas or : ; $ * ? [ ] { }"
        raise InputError(what, where=str(folder), mend="choose another folder")
    make, manifest = how_to_make(TPCH, str(folder)), usable(FolderTarget(folder), TPCH)
    if manifest is None:
        raise InputError("no data set there", where=str(folder), mend=make)
    tables = tables_of(sorted(manifest.parts))
    if lacking := [name for name in TABLES if name not in tables]:
        raise InputError(f"no {', '.join(f'{name}.parquet' for name in lacking)}", where=str(folder), mend=make)
    size = sum(int(part["bytes"]) for part in manifest.parts.values())
    names = tuple(name for files in tables.values() for name in files)
    return Input(str(folder.absolute()), names, size, manifest.size), tables


def link_tables(tables: Path, data: Path, files: Mapping[str, list[str]]) -> dict[str, str]:
    """A folder a table, with links to its files: Hive reads folders. Table -> folder."""
    found = {}
    for table, names in files.items():
        (tables / table).mkdir(parents=True)
        for name in names:
            (tables / table / name).symlink_to((data / name).absolute())
        found[table] = f"file://{tables / table}"
    return found


def columns_of(sql: str, data: Input) -> list[str]:
    """A query's columns as DuckDB names them: of an answer without rows the shell tells none."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for table, files in tables_of(data.files).items():
            path = str(Path(data.path) / files[0]).replace("'", "''")
            connection.execute(f"create view {table} as select * from read_parquet('{path}')")
        return [str(row[0]) for row in connection.execute(f"describe {sql}").fetchall()]


def answer_of(one: SparkProgram, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """An answer in the form that Spark's queries leave."""
    return json.dumps({"query": one.queries[0], "columns": list(columns), "rows": rows}) + "\n"
