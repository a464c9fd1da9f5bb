"""Maps and reduces at once, told by a job: what is made of its history, and of several runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.base.errors import InputError
from harness.jobs.engines.attempts import Attempt
from studies.dynamicmr_real import TOLD, _file, figures, record, study


def attempt(kind: str, number: int, started_ms: int, ended_ms: int, outcome: str = "finished") -> Attempt:
    return Attempt("j", kind, f"t{number}", f"{kind}{number}", f"c{number}", "n:1", started_ms, ended_ms, 0, 0, outcome)


def test_figures_of_one_run() -> None:
    """Two maps at once, then a third; a reduce that began 3 s before the last map ended, one after it."""
    attempts = [
        attempt("map", 1, 1_000, 5_000),
        attempt("map", 2, 1_000, 4_000),
        attempt("map", 3, 5_000, 8_000),
        attempt("map", 4, 1_000, 9_000, "killed"),
        attempt("reduce", 1, 5_000, 10_000),
        attempt("reduce", 2, 9_000, 11_000),
    ]
    assert figures(attempts, 12.34) == {
        "seconds": 12.3,
        "maps": 3,
        "reduces": 2,
        "most_maps_at_once": 2,
        "most_reduces_at_once": 2,
        "reduces_before_the_last_map_s": 3.0,
    }


def test_a_record_is_means_over_runs(tmp_path: Path) -> None:
    for at, name in enumerate(TOLD):
        for turn in (0, 1):
            found = {"seconds": 10.0 + at + turn, "most_maps_at_once": 3 + turn, "most_reduces_at_once": 2}
            found |= {"reduces_before_the_last_map_s": 4.0 * turn}
            (tmp_path / f"{_file(name)}.{turn}.json").write_text(json.dumps(found))
    settings = record(tmp_path)["settings"]
    assert list(settings) == list(TOLD)
    assert settings["slow-start 1"] == {
        "runs": 2,
        "most_maps_at_once": 4,
        "most_reduces_at_once": 2,
        "seconds": 11.5,
        "reduces_before_the_last_map_s": 2.0,
    }
    printed = CliRunner().invoke(study, ["record", str(tmp_path)])
    assert json.loads(printed.output)["values"]["settings"] == settings
    # Everything is there: nothing is run again, and no cluster comes up.
    assert CliRunner().invoke(study, ["run", str(tmp_path)]).exit_code == 0
    assert not (tmp_path / "state").exists()


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no run of 'slow-start 0\.05'"):
        record(tmp_path)
