"""`.ci/again`: only tests against real clusters are tried once more, and only when nothing else is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest
from pathlib import Path

@pytest.mark.live
@pytest.mark.parametrize("name", ["slow"])
def test_late(name): assert Path("machine-is-idle").exists()

@pytest.mark.live
def test_broken(): assert False

def test_sums(): assert False
"""
LATE, BROKEN, SUMS = (f"test_them.py::{name}" for name in ("test_late[slow]@group-a", "test_broken", "test_sums"))


@pytest.mark.parametrize(
    ("failed", "incomplete", "code", "said"),
    [
        ([LATE], False, 0, "PASSED AT THE SECOND TRY: test_them.py::test_late[slow]"),
        ([LATE, BROKEN], False, 1, "1 failed, 1 passed"),
        ([LATE, SUMS], False, 1, "no test against a real cluster"),
        ([LATE], True, 1, "left out"),
        ([f"test_them.py::test_{number}" for number in range(11)], False, 1, "11 tests failed"),
        ([], False, 1, "0 tests failed"),
        (["test_them.py::test_gone"], False, 1, "is gone"),
    ],
)
def test_what_is_tried_again(
    tmp_path: Path, root: Path, failed: list[str], incomplete: bool, code: int, said: str
) -> None:
    (tmp_path / "test_them.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = live: a real cluster\n")
    (tmp_path / "machine-is-idle").touch()
    for key, value in (("cache/lastfailed", dict.fromkeys(failed, True)), ("yarnfair/incomplete", incomplete)):
        path = tmp_path / ".pytest_cache/v" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    done = subprocess.run(
        [sys.executable, root / ".ci/again"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout


def test_a_run_that_did_not_end_is_not_tried_again(tmp_path: Path, root: Path) -> None:
    done = subprocess.run(
        [sys.executable, root / ".ci/again"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("ends", "incomplete"),
    [
        ("assert False", False),
        ("pytest.exit('no more')", True),
        ("raise KeyboardInterrupt", True),
        ("os._exit(9)", True),
    ],
)
def test_a_run_that_was_broken_off_counts_as_incomplete(
    tmp_path: Path, root: Path, ends: str, incomplete: bool
) -> None:
    """Also after an earlier one that was complete: its note must not stay."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(f"import os, pytest\ndef test_it(): {ends}\ndef test_more(): pass\n")
    note = tmp_path / ".pytest_cache/v/yarnfair/incomplete"
    note.parent.mkdir(parents=True)
    note.write_text("false")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:xdist"]
    environment = {**os.environ, "PYTHONPATH": str(root), "CI": "", "YARNFAIR_LIVE_FLOOR": "", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode != 0, done.stdout + done.stderr
    assert json.loads(note.read_text()) == incomplete, done.stdout + done.stderr
