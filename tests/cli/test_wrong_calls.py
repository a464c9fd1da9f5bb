"""Wrong calls and outputs that refuse: each ends in one line and design's exit code, and leaves nothing by half."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest

from harness.base.documents import parse_yaml
from harness.base.errors import InputError
from harness.cli import cli, main
from harness.sim.script import read_script, write_whole

SCENARIO = "capacity: 4\nqueues: {A: {weight: 1}}\narrivals: [{A: 3}]\n"
SCRIPT = '{"options": {}, "events": []}'


def code_of(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(one) for one in arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.mark.parametrize(
    "arguments",
    [
        ("top", "--rm", "http://127.0.0.1:1", "--every", "nan"),
        ("replay", "none.jsonl", "--sample", "nan"),
        ("baseline", "none", "-o", "b.json", "--margin", "nan"),
        ("cluster", "up", "--timeout", "nan"),
        ("order", "x.csv", "--map-slots", "1", "--reduce-slots", "1", "--algorithm", "optimal", "--time-limit", "nan"),
        ("decide", "--record", "ltyarn", "--until", "nan"),
        ("job", "run", "terasort", "--timeout", "nan"),
    ],
)  # fmt: skip
def test_nan_is_in_no_range(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "nan is not a finite number" in line


@pytest.mark.parametrize("verb", ["decide", "render", "campaign"])
def test_a_place_that_cannot_be_written_is_one_line(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "script.json").write_text(SCRIPT)
    (tmp_path / "queues.yaml").write_text("queues:\n  a: {weight: 2}\n")
    (tmp_path / "campaign.yaml").write_text("campaign: c\nexperiments: [ltyarn-small]\npolicies: [fair]\n")
    call = {
        "decide": ("decide", "script.json", "-o", "file/x"),
        "render": ("render", "queues.yaml", "-o", "file/x"),
        "campaign": ("campaign", "run", "campaign.yaml", "--out", "file/x", "--json"),
    }[verb]
    assert code_of(*call) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "file/x" in line
    assert "Not a directory" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["campaign.yaml", "file", "queues.yaml", "script.json"]


def test_a_full_output_is_one_line_and_a_closed_one_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    command = [sys.executable, "-m", "harness", "allocate", str(tmp_path / "s.yaml"), "--policy", "fair", "--json"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "yarnfair: the output: No space left on device; check disk and rights\n"
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("outputs", [("stdout",), ("stderr",), ("stdout", "stderr")])
def test_a_reader_that_goes_away_leaves_the_exit_code_alone(outputs: tuple[str, ...], tmp_path: Path) -> None:
    """`yarnfair check ... | head -1`: a regression is one, whoever listens; and what is done is done to the end."""
    for name, makespan_s in (("old", 100.0), ("new", 200.0)):
        (tmp_path / name).mkdir()
        info = {"experiment": "e", "variant": "v", "backend": "sim", "seed": 1, "exit": 0}
        (tmp_path / name / "run.json").write_text(json.dumps(info))
        summary = {"makespan_s": makespan_s, "others": dict.fromkeys(map(str, range(20_000)), makespan_s)}
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        reader, writer = os.pipe()
        os.close(reader)
        streams = {name: writer if name in outputs else subprocess.PIPE for name in ("stdout", "stderr")}
        try:
            return subprocess.run(
                [sys.executable, "-m", "harness", *arguments],
                **streams,  # type: ignore[call-overload]
                text=True,
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": os.getcwd()},
            )
        finally:
            os.close(writer)

    assert run("baseline", "old", "-o", "b.json").returncode == 0
    ended = run("check", "new", "--baseline", "b.json", "--junit", "j.xml")
    assert ended.returncode == 3
    if "stderr" not in outputs:
        assert ended.stderr.count("\n") == 1
        assert "beyond what is recorded" in ended.stderr
    assert (tmp_path / "j.xml").is_file()


def test_a_pipe_that_breaks_elsewhere_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setitem(cli.commands, "work", click.Command("work", callback=work))
    monkeypatch.setattr(type(cli), "get_command", lambda self, ctx, name: self.commands[name])
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    assert code_of("work") == 1
    assert capsys.readouterr().err == "yarnfair: the other end of a connection went away; run it again\n"


def test_sigterm_ends_a_command_as_ctrl_c_does_and_only_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(60)
        finally:
            # `timeout` sends a second one; what is being cleaned up goes on.
            os.kill(os.getpid(), signal.SIGTERM)
            cleaned.append(True)

    monkeypatch.setitem(cli.commands, "work", click.Command("work", callback=work))
    monkeypatch.setattr(type(cli), "get_command", lambda self, ctx, name: self.commands[name])
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert code_of("work") == 130
    assert capsys.readouterr().err.strip() == "yarnfair: interrupted"
    assert cleaned == [True]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_an_output_that_the_caller_has_closed_is_no_error(closed: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    call = f'exec "{sys.executable}" -m harness allocate s.yaml --policy fair --json {closed}'
    done = subprocess.run(
        ["sh", "-c", call], capture_output=True, env={**os.environ, "PYTHONPATH": os.getcwd()}, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert bool(done.stdout) == (closed == "2>&-")


def test_an_error_does_not_go_to_the_output_when_the_place_of_errors_is_closed(tmp_path: Path) -> None:
    call = f'exec "{sys.executable}" -m harness allocate none.yaml --policy fair 2>&-'
    done = subprocess.run(
        ["sh", "-c", call], capture_output=True, env={**os.environ, "PYTHONPATH": os.getcwd()}, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize("output", [(), ("-o", "out.json")])
def test_a_name_that_utf_8_cannot_write_is_one_line(
    output: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.sim.decide.Decider.run", lambda _: {"assignments": [{"queue": "root.\ud800"}]})
    (tmp_path / "script.json").write_text(SCRIPT)
    assert code_of("decide", "script.json", *output) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("yarnfair: script.json: ")
    assert r"\ud800" in line
    assert [path.name for path in tmp_path.iterdir()] == ["script.json"]


def test_a_file_that_cannot_be_encoded_or_is_interrupted_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="half a surrogate"):
        write_whole(tmp_path / "x", "a\udfff")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "x", "a")
    assert list(tmp_path.iterdir()) == []


def test_a_script_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_script(str(tmp_path / "none"))
    assert caught.value.what == "cannot be read: No such file or directory"
    (tmp_path / "latin").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="not UTF-8"):
        read_script(str(tmp_path / "latin"))


def test_an_empty_yaml_file_is_not_taken_for_an_experiment() -> None:
    with pytest.raises(InputError, match=r"^queues\.yaml: the file is empty; write a YAML document into it$"):
        parse_yaml("", "queues.yaml")


def test_an_error_is_one_line_whatever_it_names() -> None:
    error = InputError("is\nwrong", where="two  spaces\nand\ra line", hint="mend\nit")
    assert error.line() == "two  spaces and a line: is wrong; mend it"
