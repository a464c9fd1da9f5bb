"""`make records`: every record has a recipe or a reason, and a value that changed is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.base.errors import InputError
from studies import remake
from studies.recipes import REAL, SIMULATED, TIMES, Recipe


def test_every_record_is_made_again_or_has_a_reason() -> None:
    committed = {path.stem for path in remake.RECORDS.glob("*.json")}
    assert sorted([*SIMULATED, *REAL, *TIMES]) == sorted(committed)


@pytest.mark.parametrize("name", SIMULATED)
def test_a_simulated_record_says_the_command_of_its_recipe(name: str) -> None:
    record = json.loads((remake.RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    assert record["command"] == SIMULATED[name].command(name)


def test_a_value_that_changed_is_named() -> None:
    old = {"a": {"mean": 1.0, "hash": "x"}, "rows": [1, 2], "gone": 1, "same": 0.1 + 0.2}
    new = {"a": {"mean": 1.5, "hash": "y"}, "rows": [1, 3], "new": [4], "same": 0.3}
    assert list(remake.differences(old, new)) == [
        "values.a.mean: 1.0 -> 1.5",
        "values.gone: 1 -> missing",
        "values.new: missing -> [4]",
        "values.rows[1]: 2 -> 3",
    ]


def test_a_list_of_another_length_and_a_kind_that_changed_differ() -> None:
    assert list(remake.differences([1], [1, 2])) == ["values: [1] -> [1, 2]"]
    assert list(remake.differences({"a": True}, {"a": 1.5})) == ["values.a: true -> 1.5"]


def test_what_a_time_limit_decided_is_not_compared() -> None:
    old = {"greedy_s": 2, "best_s": 5, "bound_s": 4, "proven": False, "nodes": 7}
    new = {"greedy_s": 3, "best_s": 4, "bound_s": 4, "proven": True, "nodes": 9}
    assert list(remake.differences(old, new, ("nodes",))) == ["values.greedy_s: 2 -> 3"]
    assert "values.best_s: 5 -> 4" in list(remake.differences(old, new))


def test_a_record_that_cannot_be_made_is_told_by_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert remake.main(["--only", "outside-real"]) == 2
    assert "real cluster" in capsys.readouterr().err


def test_the_worked_examples_come_out_as_committed_and_a_changed_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--only", "worked-examples", "--out", str(tmp_path / "made")]
    assert remake.main(arguments) == 0
    made = json.loads((tmp_path / "made" / "worked-examples.json").read_text(encoding="utf-8"))
    monkeypatch.setattr(remake, "remake", lambda recipe, file: made)
    monkeypatch.setattr(remake, "RECORDS", tmp_path)
    changed = json.loads(json.dumps(made))
    changed["values"]["table-1 ltrf"]["totals"]["A"] = 201
    (tmp_path / "worked-examples.json").write_text(json.dumps(changed), encoding="utf-8")
    assert remake.main(arguments) == 3
    assert "values.table-1 ltrf.totals.A: 201 -> 200" in capsys.readouterr().out
    assert remake.main([*arguments, "--write"]) == 3
    assert remake.main(arguments) == 0


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exit 2"):
        remake.remake(Recipe(("yarnfair no-such-verb",)), tmp_path / "one.json")
