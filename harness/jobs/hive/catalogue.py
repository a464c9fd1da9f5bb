"""The catalogue of Hive programs: TPC-H's 22 queries, with the same texts as for Spark (workloads/tpch/queries)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from harness.jobs.spark import catalogue as spark

#: LTYARN section 7.2 runs Q1, Q9, Q12 and Q17 in round-robin order.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "hive": ("hive-q1", "hive-q9", "hive-q12", "hive-q17"),
    "hive-all": tuple(f"hive-q{number}" for number in range(1, spark.QUERIES + 1)),
}


@functools.cache
def programs() -> Mapping[str, spark.SparkProgram]:
    """Return all Hive programs by name: Spark's queries, run by Hive."""
    found = {}
    for number in range(1, spark.QUERIES + 1):
        one = spark.programs()[f"tpch-q{number}"]
        found[f"hive-q{number}"] = replace(
            one, name=f"hive-q{number}", suite="hive", what=f"{one.what}, by Hive on Tez"
        )
    return found
