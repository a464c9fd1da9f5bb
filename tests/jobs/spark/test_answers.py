"""The checks of Spark's answers: a right one passes, and each way of being wrong is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.data.kinds import centres_of
from harness.jobs.spark.answers import check, compare_rows, cost_of, order_of
from harness.jobs.spark.catalogue import programs, query_sql
from harness.jobs.spark.plan import Input
from harness.jobs.spark.site import read_input


@pytest.fixture(scope="module")
def tables(data_set: Callable[[str, int], Path]) -> Input:
    return read_input(programs()["tpch-q1"], data_set("tpch", 10_000_000))


def answer_of(data: Input, number: int, change: Callable[[list[list[Any]]], None] = lambda _: None) -> bytes:
    """An answer as the program writes it, its rows from DuckDB."""
    with duckdb.connect() as connection:
        for name in data.schemas:
            connection.execute(f"create view {name} as select * from '{data.path}/{name}.parquet'")
        cursor = connection.execute(query_sql(number, {}, data.wanted / 1e9))
        columns = [column[0] for column in cursor.description]
        rows = [
            [v if v is None or isinstance(v, (int, float, str)) else str(v) for v in row] for row in cursor.fetchall()
        ]
    change(rows)
    return json.dumps({"query": str(number), "columns": columns, "rows": rows, "seconds": 1.0}).encode()


def test_every_query_has_an_answer_that_passes(tables: Input) -> None:
    lines = []
    for number in range(1, 23):
        line = answer_of(tables, number)
        rows = len(json.loads(line)["rows"])
        # Also at a hundredth of the scale every query has an answer (Q17: a single NULL).
        assert rows > 0, number
        verdict = check(programs()[f"tpch-q{number}"], {}, tables, line)
        assert (verdict.wrong, verdict.records) == (None, rows), number
        lines.append(line)
    assert check(programs()["tpch-all"], {}, tables, b"\n".join(lines)).wrong is None
    assert check(programs()["tpch-all"], {}, tables, b"\n".join(lines[:-1])).wrong == "Q22: no answer"


def swap(rows: list[list[Any]]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


def money(rows: list[list[Any]]) -> None:
    rows[-1][1] = str(float(rows[-1][1]) + 0.01)


def other(rows: list[list[Any]]) -> None:
    rows[3][7] += "."


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (10, lambda rows: rows.pop(), "Q10: 19 row(s), not 20"),
        (10, swap, "belongs by the order"),
        (10, other, "row 4 is none of the answer's"),
        (1, lambda rows: rows.append(rows[0]), "5 row(s), not 4"),
        (5, money, "where"),
        (6, lambda rows: rows[0].append(1), "2 columns"),
    ],
)
def test_a_wrong_answer_is_told(tables: Input, number: int, change: Any, said: str) -> None:
    wrong = check(programs()[f"tpch-q{number}"], {}, tables, answer_of(tables, number, change)).wrong
    assert wrong is not None
    assert said in wrong


def test_an_answer_that_cannot_be_read_is_wrong(tables: Input) -> None:
    for text in (b"", b"{}", b"[1]", b"\xff", b'{"query": "6", "columns": 3, "rows": 1}'):
        assert check(programs()["tpch-q6"], {}, tables, text).wrong is not None


def test_of_equal_rows_at_a_limit_any_may_be_taken() -> None:
    expected = [("a", 3.0), ("b", 2.0), ("c", 2.0), ("d", 1.0)]
    assert compare_rows([("a", 3.0), ("c", 2.0)], expected, [1], 2) is None
    assert "none of the answer" in str(compare_rows([("a", 3.0), ("x", 2.0)], expected, [1], 2))
    assert "none of the answer" in str(compare_rows([("a", 3.0), ("b", 2.0), ("b", 2.0)], expected, [1], 3))
    assert "by the order" in str(compare_rows([("a", 3.0), ("d", 1.0)], expected, [1], 2))
    # A quotient of decimals has six digits.
    assert compare_rows([("0.333333",)], [(1 / 3,)], [], None) is None
    assert compare_rows([("0.333300",)], [(1 / 3,)], [], None) is not None
    assert compare_rows([(None,)], [(None,)], [0], None) is None
    assert order_of("select 1\norder by b desc, a\nlimit 3", ["a", "b"]) == [1, 0]


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Input:
    folder = tmp_path_factory.mktemp("points") / "points"
    generate("points", 300_000, 3, FolderTarget(folder))
    return read_input(programs()["kmeans"], folder)


def test_kmeans(points: Input) -> None:
    one = programs()["kmeans"]
    values = np.loadtxt(Path(points.path) / "part-00000.txt")
    centres = centres_of(3)
    for _ in range(3):
        _, centres = cost_of(values, centres)
    cost, _ = cost_of(values, centres)
    # By the definition, point by point.
    assert cost == pytest.approx(sum(min(((p - c) ** 2).sum() for c in centres) for p in values))
    right = {"centres": centres.tolist(), "cost": cost, "iterations": 4, "points": len(values)}

    def said(**changed: Any) -> str | None:
        return check(one, one.settings, points, json.dumps({**right, **changed}).encode()).wrong

    assert said() is None
    assert "the cost is told as" in str(said(cost=cost * 1.01))
    assert "points were read" in str(said(points=3))
    assert "centres of shape" in str(said(centres=[[1.0]]))
    merged = centres.copy()
    merged[0] = merged[1] + 1.0
    for _ in range(30):
        _, merged = cost_of(values, merged)
    local, _ = cost_of(values, merged)
    assert "that of the centres that made the data" in str(said(centres=merged.tolist(), cost=local))
    moved = centres + 3.0
    worse, _ = cost_of(values, moved)
    assert "one more step comes to" in str(said(centres=moved.tolist(), cost=worse))
    # With another number of centres there is nothing to compare with but the steps.
    few = replace(one, settings={**one.settings, "k": "11"})
    assert check(few, few.settings, points, json.dumps(right).encode()).wrong is None


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Input:
    folder = tmp_path_factory.mktemp("ratings") / "ratings"
    folder.mkdir()
    draw = np.random.default_rng(5)
    users, items = draw.normal(0, 1, (40, 3)), draw.normal(0, 1, (25, 3))
    lines = []
    for user, item in zip(draw.integers(0, 40, 900), draw.integers(0, 25, 900), strict=True):
        lines.append(f"{user},{item},{3 + users[user] @ items[item] / 2:.2f}")
    (folder / "part-00000.csv").write_text("\n".join(lines) + "\n")
    return read_input(programs()["als"], folder)


def test_als(ratings: Input) -> None:
    one = programs()["als"]
    values = np.loadtxt(Path(ratings.path) / "part-00000.csv", delimiter=",")
    user, item, score = values[:, 0].astype(int), values[:, 1].astype(int), values[:, 2]
    factors = [np.zeros((40, 5)), np.random.default_rng(1).normal(0, 1, (25, 5))]
    for _ in range(10):
        for mine, index, theirs, other_index in ((0, user, 1, item), (1, item, 0, user), (0, user, 1, item)):
            for who in np.unique(index):
                seen = factors[theirs][other_index[index == who]]
                weight = 0.1 * len(seen) * np.eye(5)
                factors[mine][who] = np.linalg.solve(seen.T @ seen + weight, seen.T @ score[index == who])
    rmse = float(np.sqrt(np.mean(((factors[0][user] * factors[1][item]).sum(axis=1) - score) ** 2)))

    def said(rmse: float = rmse, shift: float = 0.0, lost: bool = False, n: int = 900) -> str | None:
        found = {
            "users": {str(key): (factors[0][key] + shift * (key == 7)).tolist() for key in np.unique(user)},
            "items": {str(key): factors[1][key].tolist() for key in np.unique(item)[lost:]},
            "rmse": rmse,
            "ratings": n,
        }
        return check(one, one.settings, ratings, json.dumps(found).encode()).wrong

    assert said() is None
    assert "users or items are missing" in str(said(lost=True))
    assert "the error is told as" in str(said(rmse=rmse * 1.01))
    assert "ratings were read" in str(said(n=899))
    before = factors[0][7].copy()
    factors[0][7] *= 1.1
    changed = float(np.sqrt(np.mean(((factors[0][user] * factors[1][item]).sum(axis=1) - score) ** 2)))
    assert "off what the items' factors give" in str(said(rmse=changed))
    factors[0][7] = before
    factors[0] *= 0
    nothing = float(np.sqrt(np.mean(score**2)))
    assert "not below that of the mean rating" in str(said(rmse=nothing))
