"""Finding one's way: help where nothing is asked, lists, nearest names, completion, names for files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import Field

from harness.base.documents import Strict, parse_yaml, validated
from harness.base.errors import InputError, first_sentence
from harness.cli import COMMANDS, GROUPS, main
from harness.model.brought import WHAT, brought, named, names
from harness.model.data import data_path
from harness.policies.registry import about, policy_names


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.mark.parametrize("group", [(), ("campaign",), ("cluster",), ("sim",), ("data",), ("job",), ("list",)])
def test_a_bare_call_prints_help_as_help(group: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*group) == 0
    bare = capsys.readouterr()
    assert call(*group, "--help") == 0
    assert bare.out == capsys.readouterr().out
    assert bare.err == ""
    assert len(bare.out.splitlines()) > 8
    assert "..." not in bare.out.replace("[ARGS]...", ""), "no command's line is cut off"


def test_every_verb_stands_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert sum(len(group) for group in GROUPS.values()) == len(COMMANDS)
    call("--help")
    lines = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(f"    {verb} ") for line in lines) for verb in COMMANDS)
    assert all(f"  {title}" in lines for title in GROUPS)


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (("runn",), "'run'"),
        (("campaign", "statsu"), "'status'"),
        (("run", "ltyern"), "'ltyarn'"),
        (("run", "ltyarn", "--policy", "lrtf"), "'ltrf'"),
        (("run", "ltyarn", "--set", "horizn_s=3"), "'horizon_s'"),
        (("allocate", "ltyarn-tabel-1", "--policy", "ltrf"), "'ltyarn-table-1'"),
        (("order", "testbed4", "--map-slots", "1", "--reduce-slots", "1", "--algorithm", "given"), "'testbed-4'"),
        (("list", "experimnts"), "'experiments'"),
    ],
)
def test_a_mistyped_name_gets_the_nearest_in_one_short_line(
    arguments: tuple[str, ...], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*arguments) in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert near in line
    assert len(line) < 220


def test_a_mistyped_choice_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list", "polices") == 2
    assert "'polices' is not one of experiments, policies, " in (said := capsys.readouterr().err)
    assert "; did you mean 'policies'?" in said
    assert call("order", "testbed-4", "--map-slots", "1", "--reduce-slots", "1", "--algorithm", "optimall") == 2
    assert "--algorithm: 'optimall' is not one of given, " in (said := capsys.readouterr().err)
    assert "; did you mean 'optimal'?" in said
    assert call("list", "zzz") == 2
    assert "did you mean" not in capsys.readouterr().err


class _Inner(Strict):
    weight: float = 1.0


class _Outer(Strict):
    queues: dict[str, _Inner | None] = Field(default={})
    seed: int = 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("sed: 2\n", "did you mean 'seed'?"),
        ("queues: {a: {wieght: 2}}\n", "did you mean 'weight'?"),
        ("queues: {a: {seed: 2}}\n", "remove it or correct its spelling"),
        ("xyzzy: 2\n", "remove it or correct its spelling"),
    ],
)
def test_a_mistyped_key_gets_the_nearest_of_its_place(text: str, hint: str) -> None:
    with pytest.raises(InputError, match="unknown key") as caught:
        validated(_Outer, parse_yaml(text, "file.yaml"))
    assert caught.value.hint == hint


@pytest.mark.parametrize("what", [*WHAT, "policies"])
def test_everything_in_a_list_has_a_line(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list", what) == 0
    lines = capsys.readouterr().out.splitlines()
    assert call("list", what, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [line.split()[0] for line in lines] == [row["name"] for row in rows]
    assert all(len(line.split(maxsplit=1)[1]) <= 140 for line in lines), "a line each"
    assert all(6 <= len(row["about"]) <= 260 for row in rows), rows


def test_lists_hold_what_the_commands_take() -> None:
    assert {"ltyarn", "outside", "fawkes-d"} <= set(names("experiments"))
    assert named("experiments", "fawkes-d").parent.name == "fawkes", "in a folder of its paper, called by its bare name"
    files = list(data_path("experiments").rglob("*.yaml"))
    assert len(names("experiments")) == len(files) > 50, "no name twice"
    assert {"facebook", "contended/spark", "facebook/fb2009-day"} <= set(names("workloads"))
    assert all(one.path == named(what, one.name) for what in WHAT for one in brought(what))
    assert all(about(name) for name in policy_names())


def test_a_file_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ltyarn").mkdir()
    assert named("experiments", "ltyarn").name == "ltyarn.yaml"
    (tmp_path / "outside").write_text("experiment: mine\n")
    assert named("experiments", "outside") == Path("outside")


def test_names_for_files_on_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("allocate", "ltyarn-table-1", "--policy", "ltrf", "--json") == 0
    assert json.loads(capsys.readouterr().out)["totals"] == {"A": 200, "B": 200}
    slots = ("--map-slots", "10", "--reduce-slots", "10", "--algorithm", "given", "--json")
    assert call("order", "example-fig-3-3", *slots) == 0
    assert json.loads(capsys.readouterr().out)["order"] == ["J1", "J2", "J3", "J4"]
    assert call("shares", "outside-hierarchy", "--memory-mb", "1000", "--vcores", "9", "--json") == 0
    assert json.loads(capsys.readouterr().out)["root.Group2.Spark"]["steady"]["memory_mb"] == 250


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("yarnfair run lty", "ltyarn-hierarchy"),
        ("yarnfair run ltyarn --policy fair,lt", "fair,ltrf"),
        ("yarnfair run ltyarn --policy ltrf", "ltrf@outside"),
        ("yarnfair allocate thesis", "thesis-table-5-1"),
        ("yarnfair allocate x --policy qk", "qknober"),
        ("yarnfair ca", "campaign"),
    ],
)
def test_completion_offers_names(words: str, offered: str) -> None:
    environment = dict(
        os.environ, COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1), _YARNFAIR_COMPLETE="bash_complete"
    )
    done = subprocess.run(
        [sys.executable, "-m", "harness"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert offered in [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_a_sentence_ends_before_a_capital_only() -> None:
    assert first_sentence("It is Fig. 4 (eq. 5)\n of it. The next.") == "It is Fig. 4 (eq. 5) of it."
    assert first_sentence("one") == "one"
