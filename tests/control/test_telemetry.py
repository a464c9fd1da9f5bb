"""What the controller tells the world: figures for Prometheus."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from harness.control.events import Record
from harness.control.reports import Alarm, TickReport
from harness.control.telemetry import Log, LogFormat, Metrics, TickLog
from harness.model.plan import Attributes
from harness.model.resources import ZERO
from harness.model.snapshot import QueueView, Snapshot
from harness.policies import make_policy


def test_the_last_look_is_told_in_the_time_of_day_and_only_when_it_succeeded() -> None:
    now = [5000.0]
    metrics = Metrics(lambda: now[0])
    # The controller's own clock is far behind: the machine's time was set, or it slept.
    snapshot = Snapshot(100.0, ZERO, {"root": QueueView("root", None, False)})
    metrics(TickReport(time_s=100.0, took_s=0.1, snapshot=snapshot))
    shown = "yarnfair_last_look_timestamp_seconds"
    assert metrics.registry.get_sample_value(shown) == 5000.0
    now[0] = 6000.0
    metrics(TickReport(time_s=101.0, took_s=0.1))
    assert metrics.registry.get_sample_value(shown) == 5000.0


def decision(counted: dict[str, float], **weights: float) -> TickReport:
    queues = {"root": QueueView("root", None, False)}
    queues |= {f"root.{name}": QueueView(f"root.{name}", "root", True) for name in weights}
    after = {f"root.{name}": weight for name, weight in weights.items()}
    used = {f"root.{name}": amount for name, amount in counted.items()}
    record = Record(100.0, Attributes(after), tuple(after), used, {})
    return TickReport(time_s=100.0, took_s=0.1, snapshot=Snapshot(100.0, ZERO, queues), record=record, wrote=True)


def test_weights_that_were_decided_and_not_written_are_no_change() -> None:
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("ltrf"))
    told(decision({}, a=1.0, b=1.0))
    told(replace(decision({"a": 9.0, "b": 0.0}, a=1.0, b=3.0), wrote=False))
    assert "25 %" not in stream.getvalue()
    # What is written in the end is told as a change of what was written before.
    told(decision({"a": 9.0, "b": 0.0}, a=1.0, b=3.0))
    assert "a 50 -> 25 %" in stream.getvalue()


def test_queues_whose_values_were_kept_are_no_change() -> None:
    """A new queue without a share yet keeps its siblings' capacities; the log said that theirs were in force."""
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("ltrf"))
    told(replace(decision({}, a=1.0, b=1.0, c=1.0, d=1.0), written=dict.fromkeys(("root.c", "root.d"), 25.0)))
    told(replace(decision({}, a=1.0, b=5.0, c=1.0, d=1.0), written={"root.c": 20.0, "root.d": 20.0}))
    first, second = stream.getvalue().splitlines()
    assert not any(f" {name} " in line for name in "ab" for line in (first, second)), (first, second)
    assert "c 25 -> 12 %, d 25 -> 12 %" in second
    # Its change counts from what stood there before.
    told(replace(decision({}, a=2.0, b=5.0, c=2.0, d=1.0), written=dict.fromkeys(("root.a", "root.b", "root.c"), 20.0)))
    assert "b 25 -> 50 %" in stream.getvalue().splitlines()[-1]


def test_two_alarms_of_one_kind_that_last_are_two_lines_and_not_two_in_every_period() -> None:
    stream, now = io.StringIO(), [0.0]
    told = TickLog(Log(stream), make_policy("ltrf"), lambda: now[0])

    def ticks(*texts: str) -> list[str]:
        """What two ticks with these alarms add to the log."""
        length = len(stream.getvalue())
        for _ in range(2):
            now[0] += 5.0
            told(TickReport(time_s=now[0], took_s=0.1, alarms=tuple(Alarm("ad-hoc", text) for text in texts)))
        return [line.partition(" ")[2] for line in stream.getvalue()[length:].splitlines()]

    assert ticks("ann is not named", "bob is not named") == [
        "warning ad-hoc: ann is not named",
        "warning ad-hoc: bob is not named",
    ]
    assert ticks("bob is not named") == []
    assert ticks("bob is not named", "ann is not named") == ["warning ad-hoc: ann is not named"]
    assert ticks() == ["info ad-hoc: mended"]


def test_an_alarm_whose_figures_alone_change_is_one_line_and_not_one_in_every_period() -> None:
    """A shadow whose guard is passed for as long as a queue waits (soak, seed 40195)."""
    stream, now = io.StringIO(), [0.0]
    told = TickLog(Log(stream), make_policy("ltrf"), lambda: now[0])
    for queue in ("root.q2", "root.q3"):
        for waited in range(98, 120, 2):
            now[0] += 2.0
            text = f"{queue} has waited {waited} s for a container, more than 16 s, and holds {waited // 7} %"
            told(TickReport(time_s=now[0], took_s=0.1, alarms=(Alarm("guard", text),)))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "root.q2 has waited 98 s" in lines[0]
    assert "root.q3 has waited 98 s" in lines[1]
    for at_s in (300.0, 310.0):
        now[0] = 40.0 + at_s
        told(TickReport(time_s=now[0], took_s=0.1, alarms=(Alarm("guard", text),)))
    assert len(stream.getvalue().splitlines()) == 3, "what lasts is said again after a while"


def test_applications_that_make_no_sense_are_said_when_it_begins_and_when_it_ends() -> None:
    """Which they are, and by how much, differs from look to look (`sim serve --speed 30`: in every period)."""
    stream, now = io.StringIO(), [0.0]
    told = TickLog(Log(stream), make_policy("ltrf"), lambda: now[0])
    for tick in range(100):
        now[0] += 5.0
        told(TickReport(time_s=now[0], took_s=0.1, alarms=(Alarm("app", f"application_{tick}: {tick} MB s too many"),)))
    told(TickReport(time_s=now[0], took_s=0.1))
    lines = [line.partition(" ")[2] for line in stream.getvalue().splitlines()]
    assert lines == [
        "warning app: application_0: 0 MB s too many",
        "warning app: application_60: 60 MB s too many",
        "info app: mended",
    ]


def test_the_log_says_shares_and_causes() -> None:
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("ltrf"))
    told(decision({}, spark=500.0, hive=500.0))
    assert "weights: spark 50 %, hive 50 %" in stream.getvalue()
    hours = 3600.0 * 1024
    told(decision({"spark": 10 * hours, "hive": 27.4 * hours}, spark=482.75, hive=0.0010004))
    line = stream.getvalue().splitlines()[-1]
    assert "spark 50 -> 100 %: owed 8.7 GiB·h, hive 50 -> 0 %: has had too much by 8.7 GiB·h" in line
    told = TickLog(Log(stream), make_policy("fair"))
    told(decision({"spark": 10 * hours, "hive": 27.4 * hours}, spark=1.0, hive=3.0))
    assert stream.getvalue().splitlines()[-1].endswith("spark 25 %, hive 75 %")


def test_the_first_line_says_from_which_shares_those_in_the_file() -> None:
    """A process that has just begun knows nothing of its own; a queue that stays as it is shows its share."""
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("fair"))
    stood = {"root.a": 3.0, "root.b": 1.0, "root.c": 4.0}
    told(replace(decision({}, a=1.0, b=3.0, c=4.0), before=stood))
    assert stream.getvalue().splitlines()[-1].endswith("weights: a 38 -> 12 %, b 12 -> 38 %, c 50 %")
    told(replace(decision({}, a=2.0, b=2.0, c=4.0), before={}))
    assert stream.getvalue().splitlines()[-1].endswith("weights: a 12 -> 25 %, b 38 -> 25 %")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_is_broken_at_a_terminals_width_and_whole_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hours = 3600.0 * 1024
    for stream, lines in ((Terminal(), 3), (io.StringIO(), 1)):
        told = TickLog(Log(stream), make_policy("ltrf"))
        told(decision({"spark": 10 * hours, "hive": 2 * hours, "etl": 9 * hours}, spark=4.0, hive=482.75, etl=25.0))
        shown = stream.getvalue().splitlines()
        assert len(shown) == lines
        assert (max(map(len, shown)) <= 80) == (lines > 1)
        assert all(line.startswith("    ") for line in shown[1:])
    stream = Terminal()
    Log(stream, "json")("info", "begin", "long " * 40)
    assert len(stream.getvalue().splitlines()) == 1


def test_a_queue_whose_share_reads_as_before_is_not_told() -> None:
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("fair"))
    told(decision({}, a=500.0, b=300.0, c=200.0))
    told(decision({}, a=501.0, b=319.0, c=180.0))
    assert stream.getvalue().splitlines()[-1].endswith("weights: b 30 -> 32 %, c 20 -> 18 %")
    told(decision({}, a=502.0, b=318.0, c=180.0))
    assert stream.getvalue().splitlines()[-1].endswith("weights: shares as before")
    told(replace(decision({}, a=503.0, b=318.0, c=179.0), shadow=True))
    assert len(stream.getvalue().splitlines()) == 3, "a shadow would write nothing that a reader could tell"


def test_small_steps_add_up_until_they_are_told() -> None:
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("fair"))
    for step in range(9):
        told(decision({}, a=500.0 + 4.0 * step, b=500.0 - 4.0 * step))
    assert "a 50 -> 51 %, b 50 -> 49 %" in stream.getvalue()


@pytest.mark.parametrize(("log_format", "said"), [("text", 2), ("json", 10)])
def test_that_shares_are_as_before_is_said_every_five_minutes_and_in_json_each_time(
    log_format: LogFormat, said: int
) -> None:
    stream, now = io.StringIO(), [0.0]
    told = TickLog(Log(stream, log_format), make_policy("fair"), lambda: now[0])
    told(decision({}, a=500.0, b=300.0, c=200.0))
    for step in range(10):
        now[0] += 40.0
        told(decision({}, a=500.0 + step % 2, b=300.0, c=200.0))
    assert stream.getvalue().count("shares as before") == said


def test_why_comes_before_what_was_done_and_a_note_has_no_end() -> None:
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("fair"))
    alarms = (Alarm("foreign", "somebody else wrote"), Alarm("note", "acl: off"))
    told(replace(decision({}, a=1.0, b=1.0), alarms=alarms))
    told(TickReport(time_s=105.0, took_s=0.1))
    lines = [line.partition(" ")[2] for line in stream.getvalue().splitlines()]
    assert lines == ["warning foreign: somebody else wrote", "warning note: acl: off", "info weights: a 50 %, b 50 %"]


def test_the_largest_of_many_changes_are_named_and_the_others_are_bounded() -> None:
    """A queue that lost its whole share was hidden in "and 7 more"."""
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("fair"))
    names = [f"q{at}" for at in range(12)]
    told(decision({}, **dict.fromkeys(names, 10.0), z=10.0))
    first = stream.getvalue()
    told(decision({}, **dict.fromkeys(names, 11.0), z=0.001))
    line = stream.getvalue()[len(first) :]
    assert "z 7.7 -> 0 %" in line
    assert all(f"{name} 7.7 -> 8.3 %" in line for name in names)
    names = [f"q{at}" for at in range(49)]
    told(decision({}, **dict.fromkeys(names, 10.0), z=10.0))
    first = stream.getvalue()
    told(decision({}, **dict.fromkeys(names, 11.0), z=500.0))
    line = stream.getvalue()[len(first) :]
    assert "z 2.0 -> 48 %" in line
    assert "and 10 more by 0.9 % at most" in line


def test_the_json_log_has_all_reasons_and_what_is_written() -> None:
    """`reasons` was empty where the accounts are the reason, and children summed to their parent's entitlement."""
    stream = io.StringIO()
    told = TickLog(Log(stream, "json"), make_policy("ltrf"))
    told(decision({"a": 30 * 2**20, "b": 10 * 2**20}, a=1.0, b=1.0))
    report = decision({"a": 30 * 2**20, "b": 10 * 2**20}, a=1.0, b=3.0)
    told(replace(report, written={"root.a": 25.0, "root.b": 75.0}, values_name="capacities"))
    line = json.loads(stream.getvalue().splitlines()[-1])
    assert line["event"] == "weights", "whoever reads it selects by this name"
    assert line["reasons"] == {"root.a": "has had too much by 2.8 GiB·h", "root.b": "owed 2.8 GiB·h"}
    assert line["written"] == {"root.a": 25.0, "root.b": 75.0}
    assert line["parts"] == {"root.a": [0.5, 0.25], "root.b": [0.5, 0.75]}


def test_a_scheduler_of_capacities_has_no_line_about_weights() -> None:
    stream = io.StringIO()
    TickLog(Log(stream), make_policy("ltrf"))(replace(decision({}, a=1.0, b=1.0), values_name="capacities"))
    assert " info capacities: a 50 %, b 50 %" in stream.getvalue()


def test_what_is_no_longer_a_controllers_affair_is_not_mended() -> None:
    stream = io.StringIO()
    told = TickLog(Log(stream), make_policy("ltrf"))
    told(TickReport(time_s=1.0, took_s=0.1, alarms=(Alarm("actuation", "no answer"),)))
    told(TickReport(time_s=6.0, took_s=0.1, dropped=frozenset({"actuation"})))
    assert (
        stream.getvalue()
        .splitlines()[-1]
        .endswith("info actuation: no longer its affair: this controller does not write now")
    )
