"""One bounded reader for all files of users: what is no ordinary file, or has no end, is refused at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base.errors import CallError, InputError
from harness.base.files import read_whole
from harness.cli import main
from harness.control.lease import Lease, lease_store
from harness.yarn.files import LocalStore

VERBS = [
    ["validate", "FILE"],
    ["shares", "FILE", "--memory-mb", "1000", "--vcores", "1"],
    ["render", "FILE"],
    ["allocate", "FILE", "--policy", "ltrf"],
    ["decide", "FILE"],
    ["order", "FILE", "--map-slots", "1", "--reduce-slots", "1", "--algorithm", "given"],
    ["convert", "FILE", "--memory-mb", "1000", "--vcores", "1"],
    ["campaign", "plan", "FILE"],
    ["run", "FILE"],
]
#: Those that read line by line have a bound for a line, none for the whole.
LINES = [["replay", "FILE", "--policy", "ltrf"], ["assess", "FILE"]]


@pytest.mark.parametrize(
    ("verb", "what"),
    [(verb, what) for verb in VERBS for what in ("pipe", "device", "large")]
    + [(verb, what) for verb in LINES for what in ("pipe", "device")],
    ids=lambda of: of if isinstance(of, str) else of[0],
)
def test_every_reader_refuses_what_has_no_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str], what: str
) -> None:
    path = tmp_path / "file"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path = Path("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(3 << 30)
    with pytest.raises(SystemExit) as stop:
        main([str(path) if word == "FILE" else word for word in verb])
    assert stop.value.code == 1
    err = capsys.readouterr().err
    assert ("larger than" if what == "large" else "no ordinary file") in err
    assert str(path) in err


def test_what_a_shell_hands_over_is_read(tmp_path: Path) -> None:
    code = "from harness.base.files import read_whole; print(len(read_whole('/dev/stdin')))"
    done = subprocess.run([sys.executable, "-c", code], input=b"x" * 100_000, capture_output=True, check=True)
    assert done.stdout == b"100000\n"
    (tmp_path / "f").write_bytes(b"abc")
    assert read_whole(tmp_path / "f", 3) == b"abc"
    with pytest.raises(OSError, match="larger than 2"):
        read_whole(tmp_path / "f", 2)
    with pytest.raises(OSError, match="null"):
        read_whole("a\0b")


def test_links_in_a_circle_are_an_error_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    place = LocalStore(tmp_path / "a")
    lease_store(place)
    with pytest.raises(InputError, match="cannot be read"):
        place.read()


def test_a_lease_that_is_nested_without_end_is_nobodys(tmp_path: Path) -> None:
    place = LocalStore(tmp_path / "lease")
    (tmp_path / "lease").write_text("[" * 100_000)
    lease = Lease(place, "me", 30.0, lambda: 0.0)
    lease.hold()
    assert lease.holder()


def test_an_error_is_one_short_line_that_no_terminal_obeys() -> None:
    line = CallError("x" * 100_000 + "\x1b[31mred\x07", where="a\x1b]0;title\x07.yaml", hint="y" * 100_000).line()
    assert len(line) < 7000
    assert line.isprintable()
    assert "\\x1b[31mred" in line
