"""TPC-H's data as Hive reads it, a folder a table; a query's columns, and its answer as Spark's leave theirs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.jobs.spark.answers import views_of
from harness.jobs.spark.catalogue import SparkProgram
from harness.jobs.spark.plan import Input
from harness.jobs.spark.site import read_input


def read_tables(program: SparkProgram, folder: Path) -> Input:
    """TPC-H's data in a folder, as Spark reads it. Raises InputError for data that cannot be used."""
    if ";" in str(folder):
        raise InputError("Hive's paths have no ;", where=str(folder), mend="choose another folder")
    return read_input(program, folder)


def link_tables(tables: Path, data: Input) -> dict[str, tuple[str, str]]:
    """A folder a table, with a link to its file: Hive reads folders. Table -> folder, columns."""
    found = {}
    for table, columns in data.schemas.items():
        (tables / table).mkdir(parents=True)
        (tables / table / f"{table}.parquet").symlink_to(Path(data.path) / f"{table}.parquet")
        found[table] = f"file://{tables / table}", columns
    return found


def columns_of(sql: str, data: Input) -> list[str]:
    """A query's columns as DuckDB names them: of an answer without rows the shell tells none."""
    with views_of(data) as connection:
        return [str(row[0]) for row in connection.execute(f"describe {sql}").fetchall()]


def answer_of(one: SparkProgram, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """An answer in the form that Spark's queries leave."""
    return json.dumps({"query": one.queries[0], "columns": list(columns), "rows": rows}) + "\n"
