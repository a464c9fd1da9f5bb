"""The catalogue of Spark programs and their data: TPC-H's 22 queries by Spark SQL, k-means and ALS by MLlib.

TPC-H: LTYARN section 7.2 runs Q1, Q9, Q12 and Q17 in round-robin order (there on Hive); the group ``tpch`` of `GROUPS`
has these four. The queries are in workloads/tpch/queries, with the substitution parameters of the specification's
validation run (clause 2.4) as defaults. k-means and ALS: LTYARN section 7.2, QKnober section 7.1.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

from harness.jobs.engines.base import Program
from harness.model.data import data_path

QUERIES = 22
#: Names that stand for several programs, which run one after another.
GROUPS: Mapping[str, tuple[str, ...]] = {"tpch": ("tpch-q1", "tpch-q9", "tpch-q12", "tpch-q17")}
_SETTING = re.compile(r"^-- set (\w+) = (.*)$", re.MULTILINE)
_ABOUT = re.compile(r"^-- TPC-H Q\d+, ([^.\n]*)", re.MULTILINE)
_FORMS = (
    (re.compile(r"\d{4}-\d\d-\d\d"), "a date, as 1995-03-15"),
    (re.compile(r"\d+(\.\d+)?"), "a number"),
    (re.compile(r"\d+(, ?\d+)*"), "numbers with commas"),
    (re.compile(r"'\d\d'(, ?'\d\d')*"), "codes, as '13', '31'"),
    # A parameter is written between quotes.
    (re.compile(r"[A-Za-z0-9#][A-Za-z0-9 #.-]*"), "words without quotes"),
)


@dataclass(frozen=True, slots=True)
class SparkProgram(Program):
    """One Spark program. ``file``: its file in workloads/spark; ``queries``: the numbers of its TPC-H queries."""

    file: str = "sql.py"
    queries: tuple[int, ...] = ()
    forms = _FORMS


def query_text(number: int) -> str:
    """Return a query's text from workloads/tpch/queries, with its parameters not filled in."""
    return data_path("workloads", "tpch", "queries", f"q{number}.sql").read_text(encoding="utf-8")


def parameters(number: int) -> dict[str, str]:
    """Return a query's substitution parameters of the validation run."""
    return dict(_SETTING.findall(query_text(number)))


def query_sql(number: int, settings: Mapping[str, str], scale: float) -> str:
    """Return a query with its parameters.

    ``scale``: the scale factor, which divides Q11's fraction (clause 2.4.11.3).
    """
    values = {**parameters(number), **settings}
    if "fraction" in values:
        values["fraction"] = f"{float(values['fraction']) / scale:.10f}"
    text = "\n".join(line for line in query_text(number).splitlines() if not line.startswith("--"))
    return Template(text).substitute(values).strip()


def _query(number: int) -> SparkProgram:
    about = _ABOUT.search(query_text(number))
    assert about is not None
    what = f"TPC-H: {about.group(1)}"
    return SparkProgram(f"tpch-q{number}", "tpch", what, ("tpch",), parameters(number), queries=(number,))


_KMEANS = {"k": "10", "iterations": "10", "tolerance": "0", "seed": "1"}
_ALS = {"rank": "5", "iterations": "10", "regularisation": "0.1", "seed": "1"}


@functools.cache
def programs() -> Mapping[str, SparkProgram]:
    """Return all Spark programs by name."""
    every = tuple(range(1, QUERIES + 1))
    found = (
        *map(_query, every),
        SparkProgram("tpch-all", "tpch", "TPC-H: all 22 in one application", ("tpch",), queries=every),
        SparkProgram("kmeans", "spark", "k-means: centres of points", ("points",), _KMEANS, "kmeans.py"),
        SparkProgram("als", "spark", "ALS: users' and items' factors from ratings", ("ratings",), _ALS, "als.py"),
    )
    return {one.name: one for one in found}
