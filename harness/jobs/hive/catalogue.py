"""Which Hive programs there are: TPC-H's 22 queries, the same texts as Spark's (workloads/tpch/queries)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from harness.jobs.spark import catalogue as spark

#: LTYARN section 7.2: Q1, Q9, Q12 and Q17 round robin.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "hive": ("hive-q1", "hive-q9", "hive-q12", "hive-q17"),
    "hive-all": tuple(f"hive-q{number}" for number in range(1, spark.QUERIES + 1)),
}


@dataclass(frozen=True, slots=True)
class HiveProgram:
    """One query. ``settings``: its substitution parameters and their defaults; ``query``: its number."""

    name: str
    suite: str
    what: str
    data: tuple[str, ...]
    settings: Mapping[str, str]
    query: int


@functools.cache
def programs() -> Mapping[str, HiveProgram]:
    """All of them by name."""
    found = []
    for number in range(1, spark.QUERIES + 1):
        one = spark.programs()[f"tpch-q{number}"]
        found.append(
            HiveProgram(f"hive-q{number}", "hive", f"{one.what}, by Hive on Tez", ("tpch",), dict(one.settings), number)
        )
    return {one.name: one for one in found}


def settings_of(one: HiveProgram, given: Mapping[str, str]) -> dict[str, str]:
    """A query's settings with those given. CallError for an unknown one, or a value of another kind."""
    return spark.settings_of(spark.programs()[f"tpch-q{one.query}"], given)
