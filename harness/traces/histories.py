"""The history servers from which the tasks of ended applications are read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.traces.accounting import Totals
from harness.traces.history import History
from harness.traces.spark_history import SparkHistory

#: Types of applications in a ResourceManager's answers.
MAPREDUCE, SPARK = "MAPREDUCE", "SPARK"
#: The beginning of sentences on what is assumed of Spark applications.
OF_SPARK = "Spark: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Histories:
    """The history servers from which the tasks of ended applications are read; None: that server is not used.

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
        """Close the connections."""
        for server in (self.mapreduce, self.spark):
            if server is not None:
                server.close()

    def know(self, kind: str) -> bool:
        """Return whether one of the servers has applications of a type."""
        return (kind == MAPREDUCE and self.mapreduce is not None) or (kind == SPARK and self.spark is not None)

    def left_out(self) -> dict[str, Totals]:
        """Return reason -> what the servers' answers lacked of the requested applications."""
        found: dict[str, Totals] = {}
        for server in (self.mapreduce, self.spark):
            for reason, totals in (server.left_out if server is not None else {}).items():
                found[reason] = found.get(reason, Totals()) + totals
        return found

    def assumed_words(self) -> list[str]:
        """Return sentences on what was assumed of the applications requested so far."""
        if self.spark is None:
            return []
        found = [f"{OF_SPARK}{words}" for words in sorted(self.spark.assumed)]
        if self.mapreduce is not None and self.spark.heartbeats_ms:
            found.append(f"{OF_SPARK}masters send heartbeats as often as MapReduce's")
        return found

    def by_sums_words(self) -> list[str]:
        """Return sentences on applications of which a server was asked but only sums are known."""
        reasons = Counter(self.spark.by_sums.values() if self.spark is not None else ())
        return [f"{count:,} Spark applications are known by their sums only: {why}" for why, count in reasons.items()]

    def am_heartbeat_ms(self) -> int | None:
        """Return the most frequent heartbeat interval of Spark AMs; None if Hadoop's default is used.

        A trace has one interval for all AMs. If a JobHistoryServer is used as well, it is MapReduce's.
        """
        if self.spark is None or self.mapreduce is not None or not self.spark.heartbeats_ms:
            return None
        counts = self.spark.heartbeats_ms
        return max(counts, key=lambda ms: (counts[ms], -ms))
