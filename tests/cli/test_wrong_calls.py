"""Wrong calls and outputs that refuse: each ends in one line and design's exit code, and leaves nothing by half."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest

from harness.cli import cli, main

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
        ("vectors", "--hours", "nan"),
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
