"""Spark applications from a Spark History Server, which is a server of prepared archives here."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.traces.histories import Histories
from harness.traces.recording import Seen, job_of
from harness.traces.spark_history import SparkHistory
from harness.yarn.errors import BadAnswer
from tests.traces.event_logs import DAY, PROPERTIES, two_stages
from tests.yarn.fake_server import FakeServer, http

APPLICATION = "application_1700000000000_0001"
ASKED = f"GET /api/v1/applications/{APPLICATION}/logs"


def archive(files: Mapping[str, bytes]) -> bytes:
    """An archive as the server packs it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return stream.getvalue()


def log(**more: Any) -> bytes:
    """The event log of an application of one job with two stages, as Spark writes it; it begins at DAY + 1 s."""
    made = two_stages(**{"end_s": 31.0, **more})
    return "".join(f"{line}\n" for line in made.lines()).encode()


def ended(**more: Any) -> Seen:
    """The application as a ResourceManager shows it: 100 GiB s of its containers in 40 s, the master's among them."""
    seen = Seen(
        id=APPLICATION, user="ann", name="etl", queue="root.prod.etl", type="SPARK", started_ms=DAY - 5000,
        launched_ms=DAY - 2000, finished_ms=DAY + 38_000, elapsed_ms=43_000, memory_seconds=102_400,
        vcore_seconds=100, final=True, final_status="SUCCEEDED",
    )  # fmt: skip
    return replace(seen, **more)


def test_an_application_has_its_stages_by_the_log_and_its_times_and_memory_by_the_resource_manager() -> None:
    with FakeServer(http(200, archive({APPLICATION: log()}))) as server:
        histories = Histories(spark=SparkHistory(server.url))
        line = job_of(ended(), histories, DAY - 10_000)
        asked = server.lines()
    assert asked == [ASKED]
    assert (line.kind, line.detail, line.queue, line.user) == ("spark", "tasks", "root.prod.etl", "ann")
    assert [len(stage.tasks_s) for stage in line.stages] == [4, 2]
    assert line.stages[1].after == ["0"]
    assert (line.submit_s, line.started_s, line.finished_s) == (5.0, 8.0, 48.0)
    # Three seconds after DAY its driver asked for executors, five after its master had started; the last task ended
    # at 31 s, and the application at 38.
    assert (line.am_start_s, line.am_end_s) == (5.0, 7.0)
    assert line.counted_mb_s == 102_400
    assert line.executors is not None
    assert line.executors.held_mb == pytest.approx(102_400 / 40 - line.am.memory_mb)
    assert histories.assumed_words() == []
    assert not histories.by_sums_words()


def test_rolled_logs_and_packed_ones_are_read() -> None:
    parts = log().splitlines(keepends=True)
    folder = f"eventlog_v2_{APPLICATION}"
    files = {
        f"{folder}/appstatus_{APPLICATION}": b"",
        f"{folder}/events_1_{APPLICATION}": b"".join(parts[:5]),
        f"{folder}/events_2_{APPLICATION}": b"".join(parts[5:]),
    }
    with FakeServer(http(200, archive(files))) as server:
        found = SparkHistory(server.url).spark(APPLICATION)
    assert found is not None
    assert [len(stage.tasks_s) for stage in found.line.stages] == [4, 2]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (http(404), "the Spark History Server does not know it"),
        (http(200, archive({})), "the Spark History Server does not know it"),
    ],
)
def test_what_the_server_does_not_know_is_known_by_its_sums_and_named(answer: bytes, why: str) -> None:
    with FakeServer(answer) as server:
        histories = Histories(spark=SparkHistory(server.url))
        line = job_of(ended(), histories, DAY - 10_000)
    assert (line.kind, line.detail) == ("dag", "integrals")
    assert histories.by_sums_words() == [f"1 Spark applications are known by their sums only: {why}"]


def test_a_log_without_an_end_is_taken_only_once_the_server_had_time_to_learn_of_it() -> None:
    whole = archive({f"{APPLICATION}.inprogress": log(end_s=None)})
    with FakeServer(http(200, whole)) as server:
        histories = Histories(spark=SparkHistory(server.url))
        assert job_of(ended(), histories, DAY - 10_000, settled=False).detail == "integrals"
        assert len(histories.by_sums_words()) == 1
        assert job_of(ended(), histories, DAY - 10_000).detail == "tasks"
        assert not histories.by_sums_words(), "it is told now"


def test_an_application_whose_master_was_started_twice_is_known_by_its_sums() -> None:
    """What YARN counted is of both attempts; the log of one has half of it."""
    data, second = log(), log(attempt="2")
    with FakeServer(http(200, archive({f"{APPLICATION}_1": data, f"{APPLICATION}_2": second}))) as server:
        histories = Histories(spark=SparkHistory(server.url))
        assert job_of(ended(), histories, DAY - 10_000).detail == "integrals"
    assert "more than once" in histories.by_sums_words()[0]


def test_a_driver_whose_clock_is_off_is_not_believed() -> None:
    with FakeServer(http(200, archive({APPLICATION: log()}))) as server:
        histories = Histories(spark=SparkHistory(server.url))
        there = job_of(ended(launched_ms=DAY + 3_600_000, finished_ms=DAY + 3_640_000), histories, DAY)
    assert (there.am_start_s, there.am_end_s) == (2.0, 1.0), "from its own start and to its own end, by its own clock"


@pytest.mark.parametrize(
    "body",
    [
        b"<html>a page</html>",
        archive({"../../outside": b"x"}),
        archive({"/etc/outside": b"x"}),
        archive({"a/b/c": b"x"}),
        archive({"log": b"x" * 1000})[:-40],
    ],
    ids=["page", "above", "absolute", "deep", "cut"],
)
def test_an_answer_that_is_no_archive_of_logs_ends_nothing_but_this_answer(body: bytes, tmp_path: Path) -> None:
    with FakeServer(http(200, body)) as server, pytest.raises(BadAnswer):
        SparkHistory(server.url).spark(APPLICATION)
    assert not (tmp_path.parent / "outside").exists()


def test_assumptions_stand_in_the_traces_first_line() -> None:
    properties = {**PROPERTIES, "spark.master": "k8s://x"}
    with FakeServer(http(200, archive({APPLICATION: log(properties=properties)}))) as server:
        histories = Histories(spark=SparkHistory(server.url))
        job_of(ended(), histories, DAY - 10_000)
    assert histories.assumed_words() == [
        "Spark: applications that another cluster manager ran have containers as YARN would give them"
    ]
