"""Which Spark programs there are, on which data: TPC-H's 22 queries by Spark SQL, k-means and ALS by MLlib.

TPC-H: LTYARN section 7.2 runs Q1, Q9, Q12 and Q17 round robin (there on Hive); `GROUPS` has these four as ``tpch``. The
queries lie in workloads/tpch/queries, with the substitution parameters of the specification's validation run (clause
2.4) as defaults. k-means and ALS: LTYARN section 7.2, QKnober section 7.1.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template

from harness.base.errors import CallError
from harness.model.data import data_path

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
QUERIES = 22
#: What stands for several programs, one after another.
GROUPS: Mapping[str, tuple[str, ...]] = {"tpch": ("tpch-q1", "tpch-q9", "tpch-q12", "tpch-q17")}
_SETTING = re.compile(r"^-- set (\w+) = (.*)$", re.MULTILINE)
_ABOUT = re.compile(r"^-- TPC-H Q\d+, ([^.\n]*)", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_NUMBERS = re.compile(r"\d+(, ?\d+)*")
_CODES = re.compile(r"'\d\d'(, ?'\d\d')*")
#: A parameter stands between quotes.
_WORDS = re.compile(r"[A-Za-z0-9#][A-Za-z0-9 #.-]*")


@dataclass(frozen=True, slots=True)
class SparkProgram:
    """``data``: the kind of data set that it reads; ``settings``: its own and their defaults.

    ``file``: the program in workloads/spark; ``queries``: of TPC-H, their numbers.
    """

    name: str
    suite: str
    what: str
    data: tuple[str, ...]
    file: str
    settings: Mapping[str, str] = field(default_factory=dict)
    queries: tuple[int, ...] = ()


def query_text(number: int) -> str:
    """A query as it lies in workloads/tpch/queries, its parameters not filled in."""
    return data_path("workloads", "tpch", "queries", f"q{number}.sql").read_text(encoding="utf-8")


def parameters(number: int) -> dict[str, str]:
    """A query's substitution parameters, as the validation run has them."""
    return dict(_SETTING.findall(query_text(number)))


def query_sql(number: int, settings: Mapping[str, str], scale: float) -> str:
    """A query with its parameters. ``scale``: the scale factor, which divides Q11's fraction (clause 2.4.11.3)."""
    values = {**parameters(number), **settings}
    if "fraction" in values:
        values["fraction"] = f"{float(values['fraction']) / scale:.10f}"
    text = "\n".join(line for line in query_text(number).splitlines() if not line.startswith("--"))
    return Template(text).substitute(values).strip()


def _query(number: int) -> SparkProgram:
    about = _ABOUT.search(query_text(number))
    assert about is not None
    what = f"TPC-H: {about.group(1)}"
    return SparkProgram(f"tpch-q{number}", "tpch", what, ("tpch",), "sql.py", parameters(number), (number,))


@functools.cache
def programs() -> Mapping[str, SparkProgram]:
    """All of them by name."""
    found = [_query(number) for number in range(1, QUERIES + 1)]
    every = tuple(range(1, QUERIES + 1))
    found.append(SparkProgram("tpch-all", "tpch", "TPC-H: all 22 in one application", ("tpch",), "sql.py", {}, every))
    found.append(
        SparkProgram(
            "kmeans",
            "spark",
            "k-means: centres of points",
            ("points",),
            "kmeans.py",
            {"k": "10", "iterations": "10", "tolerance": "0", "seed": "1"},
        )
    )
    found.append(
        SparkProgram(
            "als",
            "spark",
            "ALS: users' and items' factors from ratings",
            ("ratings",),
            "als.py",
            {"rank": "5", "iterations": "10", "regularisation": "0.1", "seed": "1"},
        )
    )
    return {one.name: one for one in found}


def program(name: str) -> SparkProgram:
    """A program by its name. CallError when there is none."""
    found = programs().get(name.lower())
    if found is None:
        raise CallError(f"no Spark program {name[:40]!r}", mend=f"one of {', '.join([*programs(), *GROUPS])}")
    return found


def settings_of(one: SparkProgram, given: Mapping[str, str]) -> dict[str, str]:
    """A program's settings with those given. CallError for an unknown one, or a value of another kind."""
    for name, value in given.items():
        if name not in one.settings:
            names = ", ".join(one.settings) or "none"
            raise CallError(f"{one.name} has no setting {name[:40]!r}", where="--set", mend=f"it has {names}")
        default = one.settings[name]
        for form, said in (
            (_DATE, "a date, as 1995-03-15"),
            (_NUMBER, "a number"),
            (_NUMBERS, "numbers with commas"),
            (_CODES, "codes, as '13', '31'"),
            (_WORDS, "words without quotes"),
        ):
            if form.fullmatch(default):
                if not form.fullmatch(value):
                    raise CallError(f"{name} is {value[:40]!r}", where="--set", mend=f"give {said}")
                break
    return {**one.settings, **given}
