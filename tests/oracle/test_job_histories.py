"""Job history files as Hadoop's EventWriter writes them, in both of its forms, and as its EventReader reads them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.traces.accounting import total
from harness.traces.formats.avro_events import avro_events
from harness.traces.formats.jobhistory import JobHistory
from tests.oracle import job_histories as oracle
from tests.traces.histories import RECORDED

JOBS, CUTS = 60, 300


@pytest.mark.java
def test_both_forms_of_the_same_events_read_equal(tmp_path: Path) -> None:
    draw = random.Random(40)
    jobs = [oracle.random_job(draw, number) for number in range(1, JOBS + 1)]
    oracle.written(jobs, tmp_path)
    # A job whose master had not begun anything is left out: in both forms by the same name.
    found = {form: JobHistory().read(tmp_path / form) for form in (oracle.JSON, oracle.BINARY)}
    for form, reading in found.items():
        files = sorted((tmp_path / form).iterdir())
        assert reading.account.read.records == sum(oracle.counted(files)), form
    assert found[oracle.JSON] == found[oracle.BINARY]
    assert len(found[oracle.BINARY].jobs) > JOBS / 2
    assert found[oracle.BINARY].account.read.attempts == sum(len(job.runs) for job in jobs)


@pytest.mark.java
def test_of_a_file_that_was_cut_as_many_events_are_read_as_by_hadoop(tmp_path: Path) -> None:
    draw = random.Random(41)
    whole = (RECORDED / "binary" / "001-job_1600000000000_0002.jhist").read_bytes()
    begin = next(iter(avro_events(whole))).at
    paths = []
    for n in range(CUTS):
        paths.append(tmp_path / f"{n}.jhist")
        paths[-1].write_bytes(whole[: draw.randrange(begin, len(whole) + 1)])
    for path, hadoops in zip(paths, oracle.counted(paths), strict=True):
        events = list(avro_events(path.read_bytes()))
        assert sum(event.fields is not None for event in events) == hadoops
        account = JobHistory().read(path).account
        assert account.kept + total(account.left_out.values()) == account.read
        assert account.read.records == len(events)


@pytest.mark.java
def test_the_recorded_samples_are_what_hadoop_writes(tmp_path: Path) -> None:
    oracle.written(oracle.samples(), tmp_path)
    for form in (oracle.JSON, oracle.BINARY):
        made, kept = ({path.name: path.read_bytes() for path in (at / form).iterdir()} for at in (tmp_path, RECORDED))
        assert made == kept
