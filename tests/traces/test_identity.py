"""Whatever is in a file: read = kept + left out, no exception but InputError, and damage stays local."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.traces.accounting import Account, AccountingError, Totals, container_ms, total
from harness.traces.formats import FORMATS, Reading, TraceFormat
from harness.traces.formats.jobhistory import JobHistory
from tests.traces import foreign_samples as samples
from tests.traces.event_logs import Log, LoggedJob, LoggedStage, Task, two_stages
from tests.traces.histories import DAY, Job, Run, as_binary
from tests.traces.test_rumen_and_sls import attempt, rumen_job, sls_job

#: How many mutated files of each format are read; `make test-long` reads 20,000.
FILES = int(os.environ.get("YARNFAIR_TRACE_FILES") or 300)
#: Values that a file of somebody else may have anywhere.
ODD: tuple[Any, ...] = (None, -1, 0, 1, 2**31, 2**63, 2**70, 1e300, "", "x", "-1", [], {}, True, "root", "\x00")


def test_an_account_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(AccountingError):
        Account(Totals(1, 2, 3, 4, 5), Totals(1, 2, 3, 4, 4), {})
    Account(Totals(1, 2, 3, 4, 5), Totals(1, 2, 3, 4, 4), {"why": Totals(container_ms=1)})


def history_text(draw: random.Random) -> str:
    statuses = ("SUCCEEDED", "FAILED", "KILLED", None)
    runs = [
        Run(task, draw.choice((8, 20.5, None)), draw.choice((30, 5, None, 90)), draw.choice(statuses),
            draw.choice(("MAP", "REDUCE")), number)
        for task in range(draw.randrange(4)) for number in range(draw.randrange(3))
    ]  # fmt: skip
    job = Job(
        runs,
        finish_s=draw.choice((None, 100, 3)),
        status=draw.choice(("SUCCEEDED", "KILLED", "FAILED")),
        masters_s=draw.choice(((), (2,), (2, 25))),
        uber=draw.random() < 0.1,
        never_started=range(10, 10 + draw.randrange(3)),
    )
    return "\n".join(job.lines()) + "\n"


def rumen_text(draw: random.Random) -> str:
    def some() -> list[dict[str, Any]]:
        return [
            attempt(draw.choice((-1, DAY + 5000)), draw.choice((DAY + 9000, -1)), draw.choice(("SUCCESS", "KILLED")))
            for _ in range(draw.randrange(3))
        ]

    return "\n".join(json.dumps(rumen_job(draw.randrange(3), *(some() for _ in range(3)))) for _ in range(3))


def sls_text(draw: random.Random) -> str:
    return "\n".join(json.dumps(sls_job(draw.randrange(3), **{"job.count": draw.randrange(1, 3)})) for _ in range(3))


def mutated(text: str, draw: random.Random) -> str:
    """One of a line's values replaced, a line dropped, doubled, cut, or joined with the next, or bytes changed."""
    lines = text.split("\n")
    for _ in range(draw.randrange(3)):
        at = draw.randrange(len(lines))
        match draw.randrange(6):
            case 0:
                lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
            case 1:
                lines.insert(at, lines[at])
            case 2:
                lines[at] = ""
            case 3:
                lines[at] += draw.choice(("}", "{", '"', "\x00", "\ufffd"))
            case _:
                lines[at] = _value_replaced(lines[at], draw)
    return "\n".join(lines)


def _value_replaced(line: str, draw: random.Random) -> str:
    try:
        document = json.loads(line)
    except ValueError:
        words = re.split(r"([ ,])", line)
        words[draw.randrange(len(words))] = str(draw.choice(ODD))
        return "".join(words)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            places.append((value, key))
            walk(value[key])

    walk(document)
    if places:
        holder, key = draw.choice(places)
        holder[key] = draw.choice(ODD)
    return json.dumps(document, separators=(",", ":"))


def swf_line(number: int) -> str:
    return f"{number} {10 * number} 5 100 4 -1 2048 4 200 -1 1 1 1 1 1 1 -1 -1"


def swf_text(draw: random.Random) -> str:
    return "\n".join(["; MaxProcs: 64", "; MaxNodes: 8", *(swf_line(draw.randrange(9)) for _ in range(4))])


CSV_COLUMNS = "job,queue,submit_s,tasks,task_s,memory_mb"


def csv_line(number: int) -> str:
    return f"j{number},q,{10 * number},4,30,1024"


def csv_text(draw: random.Random) -> str:
    return "\n".join([CSV_COLUMNS, *(csv_line(draw.randrange(9)) for _ in range(4))])


def binary_history(draw: random.Random) -> bytes:
    """A history in the binary form, up to two places of it changed as a disk, a transfer or a hand may."""
    data = bytearray(as_binary(history_text(draw).splitlines()))
    # Mostly the events: with a damaged schema nothing is read.
    begin = len(b"\n".join(bytes(data).split(b"\n", 2)[:2])) + 1
    for _ in range(draw.randrange(3)):
        at = draw.randrange(begin if draw.random() < 0.9 else 0, len(data))
        piece = draw.randrange(1, 60)
        match draw.randrange(6):
            case 0:
                del data[at:]
            case 1:
                del data[at : at + piece]
            case 2:
                data[at:at] = data[at : at + piece]
            case 3:
                data[at : at + piece] = draw.randbytes(piece)
            case 4:
                data[at:at] = draw.choice((b"\x00", b"\xff" * 9 + b"\x01", b"\x00\x00\x4ajob_1", b"\n"))
            case _:
                data[at] = draw.randrange(256)
        if len(data) <= begin:
            break
    return bytes(data)


def event_log_text(draw: random.Random) -> str:
    """The log of an application of some jobs, whose tasks may fail, be lost, or have no end."""
    jobs, number, now = [], 0, 10.0
    for _ in range(draw.randrange(4)):
        stages, begun = [], now
        for _ in range(draw.randrange(1, 3)):
            tasks = [
                Task(index, now, draw.choice((now + 5, now + 9, None)), draw.choice(("Success", "TaskKilled")))
                for index in range(draw.randrange(3)) for _ in range(draw.randrange(1, 3))
            ]  # fmt: skip
            stages.append(LoggedStage(number, tasks, parents=(number - 1,) if len(stages) else ()))
            number, now = number + 1, now + 10
        jobs.append(LoggedJob(begun, now, stages))
    end_s = draw.choice((None, now + 5, now + 5))
    return "\n".join(Log(jobs, end_s=end_s, attempt=draw.choice(("1", "2", None))).lines()) + "\n"


def philly_text(draw: random.Random) -> str:
    jobs = [json.dumps(samples.philly_job(draw.randrange(4))) for _ in range(3)]
    return "\n".join(["[", *(f"{job}," for job in jobs[:-1]), jobs[-1], "]"])


def rows_of(table: str) -> Callable[[random.Random], str]:
    """Some of a table's rows, after its line of names where it has one."""

    def text(draw: random.Random) -> str:
        lines = table.splitlines()
        headed = lines[0].split(",")[-1].isidentifier() and "." not in lines[0]
        names = [lines.pop(0)] if headed else []
        return "\n".join([*names, *(draw.choice(lines) for _ in range(4))])

    return text


TEXTS = {
    "job history": history_text,
    "Spark event log": event_log_text,
    "Rumen": rumen_text,
    "SLS": sls_text,
    "SWF": swf_text,
    "CSV": csv_text,
    "Philly": philly_text,
    "Google 2019": lambda draw: samples.json_lines(
        [row for row in samples.google_events()[1] if row["type"] == 0 or draw.random() < 0.9]
    ),
    "Alibaba 2018": rows_of(samples.BATCH_TASK),
    "Alibaba GPU 2020": rows_of(samples.PAI_TASK.replace(",\n", ",T4\n").replace("MISC", "T 4").replace("V100", "T 4")),
    "Alibaba GPU 2023": rows_of(samples.OPENB_PODS),
    "OpenCloud": rows_of(samples.OPENCLOUD_JOBS.replace("JOB_STATUS", "Status")),
}
#: What a job is in the formats of one job a line.
LINES = {
    "Rumen": lambda n: json.dumps(rumen_job(n, [attempt(DAY + 10_000, DAY + 20_000)])),
    "SLS": lambda n: json.dumps(sls_job(n)),
    "SWF": swf_line,
    "CSV": csv_line,
    "Philly": lambda n: json.dumps(samples.philly_job(n)) + ("," if n < 4 else ""),
    "Google 2019": lambda n: "\n".join(
        json.dumps({"time": str(1000 + at), "type": at, "collection_id": n, "instance_index": 0, "priority": 1})
        for at in (0, 3, 6)
    ),
    "Alibaba 2018": lambda n: f"M1,2,j_{n},1,Terminated,100,130,100.0,0.5",
    "Alibaba GPU 2020": lambda n: f"j{n},ps,1.0,Terminated,100.0,130.0,400.0,8.0,0.0,T4",
    "Alibaba GPU 2023": lambda n: f"pod-{n},4000,15258,1,220,,BE,Running,100,130,110",
    "OpenCloud": lambda n: f"job_{n},u,x,1000,2000,90000,4,1,SUCCESS",
}
#: What stands before the lines, and after them.
AROUND = {
    "CSV": (CSV_COLUMNS, ""),
    "Philly": ("[", "]"),
    "Alibaba GPU 2023": (samples.OPENB_PODS.splitlines()[0], ""),
    "OpenCloud": (samples.OPENCLOUD_JOBS.splitlines()[0], ""),
}
#: Formats of text; parquet has tests of its own.
OF_TEXT = tuple(one for one in FORMATS if one.name in TEXTS)


def identity_holds(reading: Reading) -> None:
    account = reading.account
    assert account.kept + total(account.left_out.values()) == account.read
    assert account.kept.jobs == len(reading.jobs)
    assert account.kept.container_ms == sum(container_ms(job.line) for job in reading.jobs)
    assert account.kept.attempts == sum(len(stage.tasks_s) for job in reading.jobs for stage in job.line.stages)


@pytest.mark.parametrize("reader", OF_TEXT, ids=lambda one: one.name.replace(" ", "-"))
def test_mutated_files_are_accounted_for_and_never_a_traceback(tmp_path: Path, reader: TraceFormat) -> None:
    path = tmp_path / ("x.jhist" if reader.name == "job history" else "x.json")
    kept = 0
    for seed in range(FILES):
        draw = random.Random(f"{reader.name} {seed}")
        path.write_text(mutated(TEXTS[reader.name](draw), draw), encoding="utf-8")
        try:
            reading = reader.read(path)
        except InputError:
            continue
        identity_holds(reading)
        kept += len(reading.jobs)
    assert kept > FILES / 2, "most files keep a job: otherwise this test holds little"


def test_mutated_binary_histories_are_accounted_for_and_never_a_traceback(tmp_path: Path) -> None:
    path, reader, kept = tmp_path / "x.jhist", JobHistory(), 0
    for seed in range(FILES):
        path.write_bytes(binary_history(random.Random(f"binary {seed}")))
        reading = reader.read(path)
        identity_holds(reading)
        kept += len(reading.jobs)
    # Of those that nobody damages a third has no job that ran.
    assert kept > FILES / 3, "many files keep a job: otherwise this test holds little"


def test_both_forms_of_a_history_read_equal(tmp_path: Path) -> None:
    path, reader = tmp_path / "x.jhist", JobHistory()
    for seed in range(100):
        text = history_text(random.Random(seed))
        path.write_text(text, encoding="utf-8")
        as_lines = reader.read(path)
        path.write_bytes(as_binary(text.splitlines()))
        assert reader.read(path) == as_lines


@pytest.mark.parametrize("reader", OF_TEXT, ids=lambda one: one.name.replace(" ", "-"))
def test_damage_in_one_record_leaves_the_jobs_of_the_others(tmp_path: Path, reader: TraceFormat) -> None:
    if reader.name == "job history":
        files = [Job([Run(0, 8, 18)], number=number).write(tmp_path) for number in range(5)]
        files[2].write_text(files[2].read_text()[:300])
        found = reader.read(tmp_path)
    elif reader.name == "Spark event log":
        logs = [two_stages(number).write(tmp_path) for number in range(5)]
        # A log that is cut is an application that still runs: this one has lost its beginning.
        logs[2].write_text(logs[2].read_text()[:300])
        found = reader.read(tmp_path)
    else:
        jobs = [LINES[reader.name](n) for n in range(5)]
        jobs[2] = jobs[2][: 60 if jobs[2].startswith("{") else 9]
        path = tmp_path / "x.json"
        before, after = AROUND.get(reader.name, ("", ""))
        path.write_text("\n".join(line for line in [before, *jobs, after] if line))
        found = reader.read(path)
    assert len(found.jobs) == 4
    identity_holds(found)
