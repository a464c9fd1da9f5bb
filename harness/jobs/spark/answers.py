"""Checks a Spark program's answer against one that is computed without Spark from the same files.

* A query: DuckDB on the same parquet files. The rows must be in DuckDB's order of the sort keys; if a query ends with a
  limit, every row must be one of all rows without the limit (either of two equal rows is correct). Numbers that the two
  engines round differently (averages, quotients) may differ by 2e-6.
* k-means: the cost is computed again with numpy; one more step of Lloyd's algorithm must not improve it, unless the
  iterations ran out; and with as many centres as the data were generated with, it must be close to their cost.
* ALS: the root mean square error is computed again with numpy and must be below that of the mean rating; and the users'
  factors must solve the normal equations of the items' factors (the last half step of Zhou et al., 2008, section 3).
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.jobs.data.generate import FolderTarget, read_manifest
from harness.jobs.data.kinds import CLUSTERS, centres_of
from harness.jobs.engines.attempts import Verdict
from harness.jobs.spark.catalogue import SparkProgram, query_sql
from harness.jobs.spark.plan import Input

if TYPE_CHECKING:
    import duckdb

_LIMIT = re.compile(r"\s+limit (\d+)\s*$", re.IGNORECASE)
_ORDER = re.compile(r"\norder by ([^\n]+)(\nlimit \d+)?\s*$", re.IGNORECASE)
#: Spark rounds a decimal quotient to six digits.
_ABSOLUTE, _RELATIVE = 2e-6, 1e-9
#: The allowed cost, relative to the cost of the generating centres.
_NEAR = 1.05
_PIECE = 200_000

Row = tuple[Any, ...]


def check(program: SparkProgram, settings: Mapping[str, str], data: Input, answer: bytes) -> Verdict:
    """Return the verdict on an answer in the form in which the program wrote it."""
    try:
        if program.queries:
            return check_queries(program.queries, settings, data, answer)
        found = json.loads(answer)
        return (check_kmeans if program.name == "kmeans" else check_als)(settings, data, found)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return Verdict(0, f"the answer cannot be read: {type(error).__name__}: {str(error)[:200]}")


# --- queries ----------------------------------------------------------------------------------------------------------


def order_of(sql: str, columns: Sequence[str]) -> list[int]:
    """Return the indices in ``columns`` of those by which a query sorts its answer."""
    found = _ORDER.search(sql)
    names = [word.split()[0] for word in found.group(1).split(", ")] if found else []
    return [columns.index(name) for name in names]


def _value(value: object) -> Any:
    if isinstance(value, (Decimal, float)):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


def _read(value: Any, like: Any) -> Any:
    """Convert a value of Spark's answer to DuckDB's type: Spark's programs write decimals as text."""
    return float(value) if isinstance(like, float) and value is not None else value


def _close(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return bool(one == other)


def compare_rows(found: Sequence[Row], expected: Sequence[Row], keys: Sequence[int], limit: int | None) -> str | None:
    """Return what is wrong with rows; None if nothing is. ``expected``: all rows in order, without the limit."""
    count = len(expected) if limit is None else min(limit, len(expected))
    if len(found) != count:
        return f"{len(found)} row(s), not {count}"
    for number, (row, like) in enumerate(zip(found, expected, strict=False), start=1):
        if len(row) != len(like):
            return f"row {number} has {len(row)} columns, not {len(like)}"
        for key in keys:
            if not _close(_read(row[key], like[key]), like[key]):
                return f"row {number}: {str(row[key])[:60]!r} where {str(like[key])[:60]!r} belongs by the order"
    columns = range(len(expected[0])) if expected else range(0)
    exact = [at for at in columns if not any(isinstance(row[at], float) for row in expected)]
    rows_of: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in expected:
        rows_of[tuple(row[at] for at in exact)].append(row)
    for number, row in enumerate(found, start=1):
        there = rows_of[tuple(row[at] for at in exact)]
        for at, like in enumerate(there):
            if all(_close(_read(value, other), other) for value, other in zip(row, like, strict=True)):
                del there[at]
                break
        else:
            return f"row {number} is none of the answer's: {str(list(row))[:160]}"
    return None


@contextlib.contextmanager
def views_of(data: Input) -> Iterator[duckdb.DuckDBPyConnection]:
    """Provide a DuckDB connection with TPC-H's tables as views."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": 2}) as connection:
        for name in data.files:
            path = str(Path(data.path) / name).replace("'", "''")
            connection.execute(f"create view \"{name.partition('.')[0]}\" as select * from read_parquet('{path}')")
        yield connection


def check_queries(queries: Sequence[int], settings: Mapping[str, str], data: Input, answer: bytes) -> Verdict:
    """Compare Spark's rows with DuckDB's, query by query; report the first wrong one."""
    answers = {str(one["query"]): one for one in map(json.loads, answer.decode().splitlines())}
    records = sum(len(one["rows"]) for one in answers.values())
    with views_of(data) as connection:
        for number in queries:
            one = answers.get(str(number))
            if one is None:
                return Verdict(records, f"Q{number}: no answer")
            sql = query_sql(number, settings, data.wanted / 1e9)
            limited = _LIMIT.search(sql)
            limit = int(limited.group(1)) if limited else None
            all_of_it = connection.execute(_LIMIT.sub("", sql)).fetchall()
            expected = [tuple(_value(value) for value in row) for row in all_of_it]
            found = [tuple(row) for row in one["rows"]]
            wrong = compare_rows(found, expected, order_of(sql, list(one["columns"])), limit)
            if wrong is not None:
                return Verdict(records, f"Q{number}: {wrong}")
    return Verdict(records)


# --- k-means ----------------------------------------------------------------------------------------------------------


def _numbers(data: Input, separator: str | None) -> NDArray[np.float64]:
    parts = [np.loadtxt(Path(data.path) / name, delimiter=separator, ndmin=2) for name in data.files]
    return np.concatenate(parts)


def cost_of(points: NDArray[np.float64], centres: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return (sum of squared distances to the nearest centre, the centres after one more step of Lloyd's algorithm).

    Points are (n, d), centres (k, d). A centre without points does not move.
    """
    cost, sums, counts = 0.0, np.zeros_like(centres), np.zeros(len(centres))
    for start in range(0, len(points), _PIECE):
        piece = points[start : start + _PIECE]
        squared = (piece**2).sum(axis=1)[:, None] - 2.0 * piece @ centres.T + (centres**2).sum(axis=1)
        nearest = squared.argmin(axis=1)
        cost += float(((piece - centres[nearest]) ** 2).sum())
        np.add.at(sums, nearest, piece)
        counts += np.bincount(nearest, minlength=len(centres))
    moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    return cost, moved


def check_kmeans(settings: Mapping[str, str], data: Input, found: Mapping[str, Any]) -> Verdict:
    """Check the centres and their cost. See this module's docstring."""
    points = _numbers(data, None)
    centres = np.asarray(found["centres"], dtype=np.float64)
    records = len(centres)
    if centres.ndim != 2 or centres.shape[1] != points.shape[1] or records > int(settings["k"]):
        return Verdict(records, f"centres of shape {centres.shape} for points of shape {points.shape}")
    if int(found["points"]) != len(points):
        return Verdict(records, f"{found['points']} points were read, not {len(points)}")
    cost, moved = cost_of(points, centres)
    if not math.isclose(cost, float(found["cost"]), rel_tol=1e-6):
        return Verdict(records, f"the cost is told as {float(found['cost']):.6g} and is {cost:.6g}")
    better, _ = cost_of(points, moved)
    if int(found["iterations"]) < int(settings["iterations"]) and better < cost * (1 - 1e-3):
        return Verdict(records, f"it stopped at a cost of {cost:.6g}, one more step comes to {better:.6g}")
    manifest = read_manifest(FolderTarget(Path(data.path)))
    if manifest is not None and int(settings["k"]) == CLUSTERS and len(points) >= 100 * CLUSTERS:
        made, _ = cost_of(points, centres_of(manifest.seed))
        if cost > _NEAR * made:
            return Verdict(records, f"the cost is {cost:.6g}, that of the centres that made the data {made:.6g}")
    return Verdict(records)


# --- ALS --------------------------------------------------------------------------------------------------------------


def check_als(settings: Mapping[str, str], data: Input, found: Mapping[str, Any]) -> Verdict:
    """Check the factors and their error. See this module's docstring."""
    ratings = _numbers(data, ",")
    users, items = ({int(key): value for key, value in found[name].items()} for name in ("users", "items"))
    records = len(users) + len(items)
    if users.keys() != set(ratings[:, 0].astype(int)) or items.keys() != set(ratings[:, 1].astype(int)):
        return Verdict(records, "users or items are missing, or too many")
    if int(found["ratings"]) != len(ratings):
        return Verdict(records, f"{found['ratings']} ratings were read, not {len(ratings)}")
    rank = int(settings["rank"])
    of_user, of_item = (np.zeros((max(one) + 1, rank)) for one in (users, items))
    for factors, given in ((of_user, users), (of_item, items)):
        factors[list(given)] = np.asarray(list(given.values()), dtype=np.float64)
    user, item, score = ratings[:, 0].astype(int), ratings[:, 1].astype(int), ratings[:, 2]
    rmse = math.sqrt(float(np.mean(((of_user[user] * of_item[item]).sum(axis=1) - score) ** 2)))
    if not math.isclose(rmse, float(found["rmse"]), rel_tol=1e-4):
        return Verdict(records, f"the error is told as {float(found['rmse']):.6g} and is {rmse:.6g}")
    if rmse >= float(np.std(score)):
        return Verdict(records, f"the error of {rmse:.6g} is not below that of the mean rating, {np.std(score):.6g}")
    order = np.argsort(user, kind="stable")
    edges = np.flatnonzero(np.diff(user[order])) + 1
    worst = 0.0
    for group in np.split(order, edges):
        seen = of_item[item[group]]
        weight = float(settings["regularisation"]) * len(group)
        solved = np.linalg.lstsq(seen.T @ seen + weight * np.eye(rank), seen.T @ score[group], rcond=None)[0]
        scale = max(float(np.abs(solved).max()), 1e-3)
        worst = max(worst, float(np.abs(solved - of_user[user[group[0]]]).max()) / scale)
    # Spark stores factors in single precision.
    if worst > 1e-2:
        return Verdict(records, f"a user's factors are {worst:.3g} off what the items' factors give")
    return Verdict(records)
