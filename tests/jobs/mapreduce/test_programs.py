"""The applications' programs as Hadoop Streaming runs them, without Hadoop: map, sort, combine, reduce; then checked.

The check of `harness.jobs.mapreduce.answers` is another computation: both have to agree, and it has to object to an
answer that is wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.mapreduce.answers import CHECKS
from harness.jobs.mapreduce.catalogue import APPLICATIONS, Call, HadoopJob
from harness.jobs.mapreduce.programs import write_centres
from harness.model.data import data_path

SIZES = {"text": 40_000, "movies": 60_000, "ratings": 400_000, "rankings": 200_000, "uservisits": 300_000}
STREAMED = [
    "invertedindex",
    "histogrammovies",
    "histogramratings",
    "selfjoin",
    "sequencecount",
    "classification",
    "selection",
    "fbgrep",
    "aggregation",
    "join",
]

GIVEN = {"selection": {"rank": "120"}, "join": {"last_day": "2012-01-31"}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for kind, size in SIZES.items():
        generate(kind, size, 5, FolderTarget(folder / kind))
        # Two files, as two maps would have them: programs must not depend on seeing all.
        (whole,) = sorted((folder / kind).glob("part-*"))
        lines = whole.read_bytes().splitlines(keepends=True)
        whole.write_bytes(b"".join(lines[: len(lines) // 2]))
        whole.with_name(whole.name.replace("00000", "00001")).write_bytes(b"".join(lines[len(lines) // 2 :]))
    return folder


def command(job: HadoopJob, kind: str) -> str | None:
    found = job.properties.get(f"stream.{kind}.streamprocessor")
    return None if found is None else unquote_plus(found)


def step(command: str, program: Path, text: bytes, file: Path | None = None, work: Path | None = None) -> bytes:
    words = command.replace(program.name, str(program)).split()
    environment = {**os.environ, "mapreduce_map_input_file": f"file:{file}"}
    return subprocess.run(words, input=text, capture_output=True, check=True, env=environment, cwd=work).stdout


def in_order(lines: bytes) -> bytes:
    return b"".join(sorted(lines.splitlines(keepends=True)))


def stream(job: HadoopJob, files: Sequence[Path], work: Path) -> bytes:
    """What the job's one reduce would write; each file has a map of its own, and its combiner."""
    program = job.files[0]
    mapper, combiner, reducer = (command(job, kind) for kind in ("map", "combine", "reduce"))
    assert mapper is not None
    maps = []
    for file in files:
        lines = step(mapper, program, file.read_bytes(), file, work)
        maps.append(step(combiner, program, in_order(lines)) if combiner is not None else lines)
    merged = b"".join(maps)
    return merged if reducer is None else step(reducer, program, in_order(merged))


def answer(name: str, data: Path, work: Path) -> tuple[list[list[Path]], dict[str, str], Path]:
    application = APPLICATIONS[name]
    settings = application.settings_with(GIVEN.get(name, {}))
    inputs = [sorted((data / kind).glob("part-*")) for kind in application.data]
    if "classes" in settings:
        write_centres(inputs[0], settings["classes"], work / "centres.txt")
    call = Call("out", 1, settings, sys.executable, data_path("workloads"), work)
    files = [file for files in inputs for file in files]
    for number, job in enumerate(application.jobs(call)):
        written = work / f"part-0000{number}"
        written.write_bytes(stream(job, files, work))
        files = [written]
    return inputs, settings, files[0]


@pytest.mark.parametrize("name", STREAMED)
def test_the_answer_is_that_of_another_computation(name: str, data: Path, tmp_path: Path) -> None:
    inputs, settings, output = answer(name, data, tmp_path)
    right = CHECKS[name](inputs, settings, [output])
    assert right.wrong is None
    # Something was asked, and answered.
    assert right.records >= 3

    lines = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(b"".join(lines[1:]))
    lacking = CHECKS[name](inputs, settings, [output]).wrong
    assert lacking is not None
    assert lacking.startswith("1 line(s) are missing")

    output.write_bytes(b"".join([b"9\t9\t9\n", *lines]))
    extra = CHECKS[name](inputs, settings, [output]).wrong
    assert extra is not None
    assert "too many" in extra


def test_sorted_examples_are_checked_for_their_order(tmp_path: Path) -> None:
    source, first, second = (tmp_path / name for name in ("in", "part-r-00000", "part-r-00001"))
    source.write_bytes(b"b\na\nc\n")
    first.write_bytes(b"a\t\nc\t\n")
    second.write_bytes(b"b\t\n")
    assert CHECKS["sort"]([[source]], {}, [first, second]).wrong is None
    first.write_bytes(b"c\t\na\t\n")
    assert CHECKS["sort"]([[source]], {}, [first, second]).wrong == "part-r-00000 is not in order"

    low, high = b"a" * 100, b"b" * 100
    source.write_bytes(high + low)
    first.write_bytes(low)
    second.write_bytes(high)
    assert CHECKS["terasort"]([[source]], {}, [first, second]).wrong is None
    assert CHECKS["terasort"]([[source]], {}, [second, first]).wrong == "not in order from the first part to the last"
    second.write_bytes(b"c" * 100)
    assert CHECKS["terasort"]([[source]], {}, [first, second]).wrong == "other records than in the input"


def test_examples_that_count_are_checked(tmp_path: Path) -> None:
    source, part = tmp_path / "in", tmp_path / "part-r-00000"
    source.write_bytes(b"the cat\nthe then\n")
    part.write_bytes(b"the\t2\ncat\t1\nthen\t1\n")
    assert CHECKS["wordcount"]([[source]], {}, [part]).wrong is None
    part.write_bytes(b"the\t3\ncat\t1\nthen\t1\n")
    assert CHECKS["wordcount"]([[source]], {}, [part]).wrong is not None
    part.write_bytes(b"2\tthe\n1\tthen\n")
    assert CHECKS["grep"]([[source]], {"pattern": "the[a-z]*"}, [part]).wrong is None
    part.write_bytes(b"1\tthen\n2\tthe\n")
    assert CHECKS["grep"]([[source]], {"pattern": "the[a-z]*"}, [part]).wrong == "not in order of the counts"


def test_every_application_has_a_check() -> None:
    assert set(CHECKS) == set(APPLICATIONS)


def test_an_answer_of_grep_that_has_no_counts_is_wrong(tmp_path: Path) -> None:
    source, part = tmp_path / "in", tmp_path / "part-r-00000"
    source.write_bytes(b"the cat\n")
    part.write_bytes(b"the\t1\n")
    wrong = CHECKS["grep"]([[source]], {"pattern": "the"}, [part]).wrong
    assert wrong is not None
    assert wrong.startswith("1 line(s) are missing")
