"""Data sets: the same bytes from the same seed, resumable, checked against their manifest, in the shapes they claim."""

from __future__ import annotations

import collections
import fcntl
import json
import math
import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.jobs.data import generate as making
from harness.jobs.data.generate import (
    FolderTarget,
    check_whole,
    generate,
    open_target,
    read_manifest,
    read_size,
    verify,
)
from harness.jobs.data.kinds import DIMENSIONS, KINDS, PART_BYTES, centres_of, part_bytes
from harness.jobs.mapreduce.places import open_data
from harness.jobs.spark.catalogue import programs
from harness.jobs.spark.site import read_input


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_depends_on_its_seed_and_number_alone(kind: str) -> None:
    first = part_bytes(kind, 1, 0, 60_000)
    assert part_bytes(kind, 1, 0, 60_000) == first
    assert part_bytes(kind, 2, 0, 60_000) != first
    assert part_bytes(kind, 1, 1, 60_000) != first
    assert 0.85 < len(first) / 60_000 < 1.15
    assert kind == "tera" or first.endswith(b"\n")


def lines_of(kind: str) -> list[str]:
    return part_bytes(kind, 3, 0, 200_000).decode().splitlines()


def test_words_follow_zipfs_law() -> None:
    counts = [n for _, n in collections.Counter(" ".join(lines_of("text")).split()).most_common(400)]
    # Frequency falls with rank about as rank^-1.05: on a double logarithmic scale a line of that slope.
    slope = (math.log(counts[199]) - math.log(counts[9])) / (math.log(200) - math.log(10))
    assert -1.3 < slope < -0.8


def test_points_lie_around_their_centres() -> None:
    points = np.array([line.split() for line in lines_of("points")], dtype=float)
    centres = centres_of(3)
    nearest = np.sqrt(((points[:, None, :] - centres) ** 2).sum(axis=2)).min(axis=1)
    # A normal deviation of 5 in each of the dimensions.
    assert abs(math.sqrt((nearest**2).mean() / DIMENSIONS) - 5) < 0.2


def test_ratings_come_from_a_model_of_low_rank() -> None:
    # The same user and item, drawn twice, differ by the noise alone (0.2 each); two ratings at random by far more.
    rows = np.loadtxt(part_bytes("ratings", 3, 0, 8_000_000).decode().splitlines(), delimiter=",")
    pairs = rows[:, 0] * 10_000 + rows[:, 1]
    order = np.argsort(pairs, kind="stable")
    same = np.flatnonzero(np.diff(pairs[order]) == 0)
    differences = rows[order][same, 2] - rows[order][same + 1, 2]
    assert len(same) > 5000
    assert differences.std() < 0.3 < 0.5 * rows[:, 2].std() * math.sqrt(2)


def test_tables_have_their_columns() -> None:
    for line in lines_of("rankings")[:200]:
        rank, url, duration = line.split(",")
        assert int(rank) >= 1
        assert url.startswith("url")
        assert 1 <= int(duration) < 100
    for line in lines_of("uservisits")[:200]:
        fields = line.split(",")
        assert len(fields) == 9
        assert len(fields[0].split(".")) == 4
        assert fields[1].startswith("url")
        assert 0 <= float(fields[3]) <= 1
    movie, _, ratings = lines_of("movies")[0].partition(":")
    assert movie.isdigit()
    assert all(1 <= int(pair.split("_")[1]) <= 5 for pair in ratings.split(","))
    assert all(len(line.split()) == DIMENSIONS for line in lines_of("points")[:50])
    assert all(1 <= float(line.split(",")[2]) <= 5 for line in lines_of("ratings")[:200])
    record = part_bytes("tera", 1, 0, 1000)
    assert len(record) % 100 == 0
    assert record[98:100] == b"\r\n"


def test_an_interrupted_generation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "PART_BYTES", 20_000)

    def stop(done: int, of: int, size: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate("tera", 90_000, 7, FolderTarget(tmp_path / "cut"), stop)
    cut = read_manifest(FolderTarget(tmp_path / "cut"))
    assert cut is not None
    assert not cut.complete
    assert len(cut.parts) == 2
    made_bytes: list[int] = []
    made = generate("tera", 90_000, 7, FolderTarget(tmp_path / "cut"), lambda *step: made_bytes.append(step[2]))
    assert made_bytes[:2] == [0, 0]
    assert made.complete
    whole = generate("tera", 90_000, 7, FolderTarget(tmp_path / "whole"))
    assert made.document()["sha256"] == whole.document()["sha256"]
    assert verify(FolderTarget(tmp_path / "cut")) == []
    assert {path.name for path in (tmp_path / "cut").iterdir()} == {*whole.parts, "manifest.json"}


def test_two_processes_make_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "PART_BYTES", 20_000)
    made = [generate("points", 90_000, 7, FolderTarget(tmp_path / str(jobs)), jobs=jobs) for jobs in (1, 2)]
    assert made[0].document() == made[1].document()
    assert verify(FolderTarget(tmp_path / "2")) == []
    # Interrupted, nothing of it runs on.
    with pytest.raises(KeyboardInterrupt):
        generate("points", 90_000, 8, FolderTarget(tmp_path / "cut"), interrupt, jobs=2)
    assert multiprocessing.active_children() == []


def interrupt(done: int, of: int, size: int) -> None:
    raise KeyboardInterrupt


def test_what_was_tampered_with_is_named(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "set")
    generate("rankings", 30_000, 1, target)
    (part,) = [path for path in (tmp_path / "set").iterdir() if path.name.startswith("part")]
    part.write_bytes(part.read_bytes()[:-5] + b"12,9\n")
    assert verify(target) == [f"{part.name} has another checksum"]
    part.unlink()
    assert verify(target) == [f"{part.name} is missing"]
    with pytest.raises(InputError, match="another data set is there"):
        generate("text", 30_000, 1, target)
    (tmp_path / "set" / "manifest.json").write_text("[1, 2")
    with pytest.raises(InputError, match="no usable manifest"):
        verify(target)


def test_a_part_that_is_lost_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "PART_BYTES", 20_000)
    target = FolderTarget(tmp_path)
    made = generate("tera", 90_000, 7, target)
    assert len(made.parts) == 5
    for lost in (["part-00000.bin"], ["part-00001.bin", "part-00004.bin"]):
        for name in lost:
            (tmp_path / name).unlink()
        with pytest.raises(InputError, match=f"the data set has no {lost[0]}"):
            check_whole(target, made)
        states: list[bool] = []

        def step(done: int, of: int, size: int, states: list[bool] = states) -> None:
            if size:
                found = read_manifest(target)
                assert found is not None
                states.append(found.complete)

        assert generate("tera", 90_000, 7, target, step) == made
        # Complete with the last one of those that were lost, wherever it stands.
        assert states == [False] * (len(lost) - 1) + [True]
        assert read_manifest(target) == made
        assert verify(target) == []
        assert check_whole(target, made) == {name: part["bytes"] for name, part in made.parts.items()}


def test_tpchs_tables_that_are_lost_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tpchgen-cli"
    program.write_text('#!/bin/sh\nprintf "%s" "$7" > "$5/$7.parquet"\n')
    program.chmod(0o755)
    monkeypatch.setattr(making, "_tpchgen", lambda: str(program))
    target = FolderTarget(tmp_path / "tpch")
    made = generate("tpch", 1_000_000, 1, target)
    for lost in (["region.parquet"], sorted(made.parts)):
        for name in lost:
            (tmp_path / "tpch" / name).unlink()
        assert generate("tpch", 1_000_000, 1, target) == made
        assert verify(target) == []


def test_a_data_set_is_what_its_manifest_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "PART_BYTES", 20_000)
    target = FolderTarget(tmp_path / "points")
    made = generate("points", 50_000, 7, target)
    readers: list[Callable[[], list[str]]] = [
        lambda: list(open_data(target, "points")),
        lambda: list(read_input(programs()["kmeans"], tmp_path / "points").files),
    ]
    for read in readers:
        assert read() == list(made.parts)
    part, other = tmp_path / "points" / "part-00001.txt", tmp_path / "points" / "part-00009.txt"
    content = part.read_bytes()
    changes: list[tuple[Callable[[], object], str]] = [
        (lambda: part.write_bytes(content[:-3]), f"part-00001.txt has {len(content) - 3} bytes, in the data set"),
        (lambda: part.unlink(), "the data set has no part-00001.txt"),
        (lambda: (part.write_bytes(content), other.write_bytes(content)), "part-00009.txt is not of the data set"),
    ]
    for change, said in changes:
        change()
        for read in readers:
            with pytest.raises(InputError, match=said):
                read()


def test_what_a_killed_generation_left_is_removed(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path)
    stale, written, foreign = (
        tmp_path / f".{name}" for name in ("part-00000.txt.ab_12cde", "manifest.json.12345678", "x.12345678")
    )
    for file in (stale, written, foreign):
        file.write_bytes(b"half")
    with written.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        generate("text", 5000, 1, target)
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            written.name,
            foreign.name,
            "manifest.json",
            "part-00000.txt",
        ]
    generate("text", 5000, 1, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == [foreign.name, "manifest.json", "part-00000.txt"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "source").write_bytes(b"data")
    monkeypatch.setattr(shutil, "copyfileobj", cut)
    with pytest.raises(KeyboardInterrupt):
        FolderTarget(tmp_path / "set").write("part-00000.txt", tmp_path / "source")
    assert list((tmp_path / "set").iterdir()) == []


@pytest.mark.parametrize(("text", "size"), [("10MB", 10**7), ("1.5 GB", 15 * 10**8), ("4096", 4096), ("2MiB", 2 << 20)])
def test_sizes(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "nan", "1e99", "10 apples", "inf"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(CallError):
        read_size(text)


def test_places() -> None:
    assert open_target("/data/x") == FolderTarget(Path("/data/x"))
    assert open_target("webhdfs://nn:9870/data").name == "http://nn:9870/data"
    for text in ("", "ftp://x/y", "webhdfs://nn:9870", "webhdfs://nn:port/x"):
        with pytest.raises(CallError):
            open_target(text)
    with pytest.raises(CallError, match="NameNode's web address"):
        open_target("hdfs://nn:8020/data")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["data", *arguments])
    found = capsys.readouterr()
    return int(stop.value.code or 0), found.out, found.err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "points")
    code, out, _ = call(capsys, "generate", "points", "--size", "50KB", "--out", place, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["complete"]
    assert 40_000 < document["bytes"] < 60_000
    assert call(capsys, "verify", place)[0] == 0
    (tmp_path / "points" / "part-00000.txt").write_text("x")
    code, out, _ = call(capsys, "verify", place, "--json")
    assert code == 1
    assert json.loads(out)["wrong"]
    code, _, error = call(capsys, "generate", "poems", "--size", "1MB", "--out", str(tmp_path / "x"))
    assert code == 2
    assert "one of rankings" in error
    assert call(capsys, "kinds")[1].count("\n") == len(KINDS) + 1


def test_parts_are_of_one_size() -> None:
    plan = making._plan("text", 3 * PART_BYTES + 5)
    assert [size for _, size in plan] == [PART_BYTES] * 3 + [5]


def test_tpchs_tables(data_set: Callable[[str, int], Path], tmp_path: Path) -> None:
    import pandas as pd

    shutil.copytree(data_set("tpch", 1_000_000), tmp_path / "tpch")  # scale factor 0.001
    target = FolderTarget(tmp_path / "tpch")
    made = making.read_manifest(target)
    assert made is not None
    assert made.complete
    assert len(made.parts) == 8
    assert verify(target) == []
    lines = pd.read_parquet(tmp_path / "tpch" / "lineitem.parquet")
    orders = pd.read_parquet(tmp_path / "tpch" / "orders.parquet")
    assert len(orders) == 1500
    assert set(lines["l_orderkey"]) == set(orders["o_orderkey"])
    again: list[int] = []
    generate("tpch", 1_000_000, 1, target, lambda *step: again.append(1))
    assert again == []
    # A file that is lost is made again, the others stay.
    (tmp_path / "tpch" / "region.parquet").unlink()
    (tmp_path / "tpch" / "manifest.json").write_text(
        json.dumps({**json.loads((tmp_path / "tpch" / "manifest.json").read_text()), "complete": False})
    )
    generate("tpch", 1_000_000, 1, target, lambda *step: again.append(step[2]))
    assert [size > 0 for size in again] == [name == "region" for name in making.TPCH_TABLES]
    assert verify(target) == []
    with pytest.raises(CallError, match="every seed"):
        generate("tpch", 2_000_000, 5, FolderTarget(tmp_path / "other"))
