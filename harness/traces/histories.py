"""The servers that know the tasks of applications that have ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.traces.accounting import Totals
from harness.traces.history import History
from harness.traces.spark_history import SparkHistory

#: Types of applications, as a ResourceManager names them.
MAPREDUCE, SPARK = "MAPREDUCE", "SPARK"
#: How what is assumed of Spark applications begins.
OF_SPARK = "Spark: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Histories:
    """The history servers that know the tasks of ended applications; None: that one is not asked.

    Attributes
    ----------
    mapreduce : History or None
        The JobHistoryServer.
    spark : SparkHistory or None
        Spark's History Server.
    """

    mapreduce: History | None = None
    spark: SparkHistory | None = None

    def close(self) -> None:
        """Gives the connections back."""
        for server in (self.mapreduce, self.spark):
            if server is not None:
                server.close()

    def know(self, kind: str) -> bool:
        """Whether one of them knows applications of a type."""
        return (kind == MAPREDUCE and self.mapreduce is not None) or (kind == SPARK and self.spark is not None)

    def left_out(self) -> dict[str, Totals]:
        """What their answers lacked of the applications that were asked for, by reason."""
        found: dict[str, Totals] = {}
        for server in (self.mapreduce, self.spark):
            for reason, totals in (server.left_out if server is not None else {}).items():
                found[reason] = found.get(reason, Totals()) + totals
        return found

    def assumed_words(self) -> list[str]:
        """What was assumed of the applications that were asked for so far."""
        if self.spark is None:
            return []
        found = [f"{OF_SPARK}{words}" for words in sorted(self.spark.assumed)]
        if self.mapreduce is not None and self.spark.heartbeats_ms:
            found.append(f"{OF_SPARK}masters send heartbeats as often as MapReduce's")
        return found

    def by_sums_words(self) -> list[str]:
        """Which applications are known by their sums only although a server was asked, with the reason."""
        reasons = Counter(self.spark.by_sums.values() if self.spark is not None else ())
        return [f"{count:,} Spark applications are known by their sums only: {why}" for why, count in reasons.items()]

    def am_heartbeat_ms(self) -> int | None:
        """The interval of masters' heartbeats that most Spark applications have; None where Hadoop's holds.

        A trace has one for all masters: where MapReduce is asked for as well, that of MapReduce.
        """
        if self.spark is None or self.mapreduce is not None or not self.spark.heartbeats_ms:
            return None
        counts = self.spark.heartbeats_ms
        return max(counts, key=lambda ms: (counts[ms], -ms))
