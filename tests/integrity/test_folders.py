"""A result that is there stays until another one is complete, and a folder of results takes nothing foreign."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.results.folders import MARKER, Contents, claim, contents_of, earlier_runs, files_identity, free_folder
from harness.results.runs import find_runs
from harness.results.store import RunDirectory, earlier_of, staging_of

RUN = {"hash": "a" * 64, "variant": "fair", "backend": "sim", "experiment": {"experiment": "small"}}


def write(path: Path, makespan_s: float, exit_code: int | None, identity: dict[str, Any] | None = None) -> Path:
    directory = RunDirectory(path, identity or RUN)
    directory.write_summary({"makespan_s": makespan_s})
    if exit_code is None:
        return directory.path
    return RunDirectory.close(directory.path, exit_code, None if exit_code == 0 else "why")


def figures(path: Path) -> tuple[float, int | None]:
    return (
        json.loads((path / "summary.json").read_text())["makespan_s"],
        json.loads((path / "run.json").read_text())["exit"],
    )


class TestARunInThePlaceOfAnother:
    def test_takes_it_when_it_is_complete(self, tmp_path: Path) -> None:
        path = tmp_path / "fair"
        write(path, 1.0, 0)
        unfinished = write(path, 2.0, None)
        assert unfinished == staging_of(path)
        assert figures(path) == (1.0, 0)
        assert find_runs(tmp_path) == [path]
        assert RunDirectory.close(unfinished, 0) == path
        assert figures(path) == (2.0, 0)
        assert [one.name for one in tmp_path.iterdir()] == ["fair"]

    @pytest.mark.parametrize("exit_code", [None, 1, 130])
    def test_leaves_it_when_it_is_interrupted_or_fails(self, tmp_path: Path, exit_code: int | None) -> None:
        path = tmp_path / "fair"
        write(path, 1.0, 0)
        assert write(path, 2.0, exit_code) == staging_of(path)
        assert figures(path) == (1.0, 0)
        # The next attempt begins anew and takes the place.
        assert write(path, 3.0, 0) == path
        assert figures(path) == (3.0, 0)
        assert [one.name for one in tmp_path.iterdir()] == ["fair"]

    @pytest.mark.parametrize("exit_code", [4, 5])
    def test_that_is_not_valid_keeps_the_valid_one_beside_it(self, tmp_path: Path, exit_code: int) -> None:
        path = tmp_path / "fair"
        write(path, 1.0, 0)
        assert write(path, 2.0, exit_code) == path
        assert figures(path) == (2.0, exit_code)
        assert figures(earlier_of(path)) == (1.0, 0)

    def test_where_names_cannot_be_exchanged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("harness.results.store.exchange", lambda *_: False)
        path = tmp_path / "fair"
        write(path, 1.0, 0)
        write(path, 2.0, 0)
        assert figures(path) == (2.0, 0)
        assert [one.name for one in tmp_path.iterdir()] == ["fair"]

    def test_of_an_edited_experiment_it_takes_the_place_when_complete(self, tmp_path: Path) -> None:
        path = tmp_path / "fair"
        write(path, 1.0, 0)
        assert write(path, 2.0, None, {**RUN, "hash": "b" * 64}) == staging_of(path)
        assert figures(path) == (1.0, 0)
        write(path, 2.0, 0, {**RUN, "hash": "b" * 64})
        assert figures(path) == (2.0, 0)

    @pytest.mark.parametrize(
        "other",
        [
            {"hash": "b" * 64, "experiment": {"experiment": "large"}},
            {"variant": "ltrf"},
            {"backend": "local"},
        ],
    )
    def test_that_is_of_something_else_is_refused(self, tmp_path: Path, other: dict[str, Any]) -> None:
        path = tmp_path / "fair"
        write(path, 1.0, 0)
        with pytest.raises(InputError, match=r"another run \(experiment small, variant fair, backend sim"):
            write(path, 2.0, 0, {**RUN, **other})
        assert figures(path) == (1.0, 0)

    def test_that_was_not_valid_gives_way_to_something_else(self, tmp_path: Path) -> None:
        path = tmp_path / "fair"
        write(path, 1.0, 5)
        assert write(path, 2.0, None, {**RUN, "hash": "b" * 64}) == staging_of(path)
        assert figures(path) == (1.0, 5)
        assert write(path, 2.0, 0, {**RUN, "hash": "b" * 64}) == path
        assert figures(path) == (2.0, 0)

    def test_replaces_what_never_came_to_its_end(self, tmp_path: Path) -> None:
        path = tmp_path / "fair"
        for exit_code in (None, 1, 130):
            assert write(path, 1.0, exit_code, {**RUN, "hash": str(exit_code)}) == path


class TestAFolder:
    def test_of_one_experiment_refuses_another(self, tmp_path: Path) -> None:
        folder = tmp_path / "out"
        claim(folder, Contents("run", "small", "a"))
        write(folder / "fair", 1.0, 0)
        claim(folder, Contents("run", "small", "a"))
        for other in (Contents("run", "other", "b"), Contents("campaign", "small", "a"), Contents("replay", "x", "")):
            with pytest.raises(InputError, match="holds runs of small"):
                claim(folder, other)
        assert contents_of(folder) == Contents("run", "small", "a")

    def test_without_results_may_be_claimed_by_anything(self, tmp_path: Path) -> None:
        folder = tmp_path / "out"
        claim(folder, Contents("run", "small", "a"))
        write(folder / "fair", 1.0, 130)
        write(folder / "ltrf", 1.0, 5, {**RUN, "variant": "ltrf"})
        claim(folder, Contents("run", "other", "b"))
        assert json.loads((folder / MARKER).read_text())["name"] == "other"

    def test_of_an_earlier_version_is_known_by_its_runs(self, tmp_path: Path) -> None:
        write(tmp_path / "fair", 1.0, 0)
        claim(tmp_path, Contents("run", "small", "a" * 64))
        (tmp_path / MARKER).unlink()
        with pytest.raises(InputError, match="holds runs of small"):
            claim(tmp_path, Contents("run", "other", "b"))
        (tmp_path / "campaign").mkdir()
        (tmp_path / "campaign" / "campaign.sqlite").touch()
        with pytest.raises(InputError, match="holds campaign"):
            claim(tmp_path / "campaign", Contents("run", "small", "b"))
        # Whose campaign it is was not noted.
        claim(tmp_path / "campaign", Contents("campaign", "grid", ""))

    def test_takes_an_edited_experiment_and_names_the_runs_of_before(self, tmp_path: Path) -> None:
        write(tmp_path / "fair", 1.0, 0)
        claim(tmp_path, Contents("run", "small", "a" * 64))
        claim(tmp_path, Contents("run", "small", "b" * 64))
        assert json.loads((tmp_path / MARKER).read_text())["identity"] == "b" * 64
        assert earlier_runs(tmp_path, "b" * 64, ["ltrf"]) == ["fair"]
        assert earlier_runs(tmp_path, "b" * 64, ["fair"]) == []
        with pytest.raises(InputError, match="holds runs of small"):
            claim(tmp_path, Contents("run", "small", "b" * 64 + " on local"))

    def test_whose_marker_is_damaged_is_refused(self, tmp_path: Path) -> None:
        claim(tmp_path, Contents("run", "small", "a"))
        for damaged in ("", "{}", '{"format": 2, "kind": "run"}'):
            (tmp_path / MARKER).write_text(damaged)
            with pytest.raises(InputError, match=MARKER):
                claim(tmp_path, Contents("run", "small", "a"))

    def test_whose_name_is_not_utf_8_is_refused_before_anything_is_there(self, tmp_path: Path) -> None:
        folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
        with pytest.raises(InputError, match="not UTF-8"):
            claim(folder, Contents("run", "small", "a"))
        assert list(tmp_path.iterdir()) == []

    def test_by_default_is_the_first_that_holds_nothing_else(self, tmp_path: Path) -> None:
        one, two = Contents("replay", "trace", "1"), Contents("replay", "trace", "2")
        for contents in (one, two):
            folder = free_folder(tmp_path / "replay-trace", contents)
            claim(folder, contents)
            write(folder / "fair", 1.0, 0)
        assert free_folder(tmp_path / "replay-trace", one).name == "replay-trace"
        assert free_folder(tmp_path / "replay-trace", two).name == "replay-trace-2"


def test_the_identity_of_files_is_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("text")
    (tmp_path / "folder").mkdir()
    before = files_identity([tmp_path / "one", tmp_path / "folder"], 1.0)
    assert files_identity([tmp_path / "one", tmp_path / "folder"], 1.0) == before
    assert files_identity([tmp_path / "one", tmp_path / "folder"], 2.0) != before
    (tmp_path / "folder" / "new").touch()
    assert files_identity([tmp_path / "one", tmp_path / "folder"], 1.0) != before
