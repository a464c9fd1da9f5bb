"""A long series of tests that was cut short goes on where it stopped (`make test-long`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LONGEST
from tests.taken_up import plain, state_of

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import os, pytest

@pytest.mark.parametrize("name", ["a", "b@c]"])
def test_passes(name):
    pass

@pytest.mark.xdist_group("group")
def test_fails():
    assert os.path.exists("mended")

@pytest.fixture
def breaks():
    yield
    assert os.path.exists("mended")

def test_whose_teardown_fails(breaks):
    pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_has_passed_is_left_out_until_the_sources_change(tmp_path: Path, workers: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "taken_up.py").write_bytes((ROOT / "tests" / "taken_up.py").read_bytes())
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    (tmp_path / ".gitignore").write_text(".cache\n__pycache__\n.pytest_cache\nmended\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "pytest", "-n", workers, "--dist", "loadgroup", "-p", "tests.taken_up", "tests"]

    def run() -> tuple[int, str]:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout

    code, told = run()
    assert (code, "1 failed, 3 passed, 1 error" in told) == (1, True), told
    (tmp_path / "mended").touch()
    code, told = run()
    assert code == 0, told
    assert "2 test(s) passed earlier and were left out" in told
    assert "2 passed" in told
    code, told = run()
    assert code == 0, told
    assert "4 test(s) passed earlier" in told
    before = state_of(tmp_path)
    (tmp_path / "tests" / "test_it.py").write_text(TESTS + "\n")
    assert state_of(tmp_path) != before
    code, told = run()
    assert (code, "4 passed" in told) == (0, True), told


def test_the_name_of_a_group_is_no_part_of_a_tests_name() -> None:
    assert plain("a.py::test@group") == plain("a.py::test") == "a.py::test"
    assert plain("a.py::test[x@y]@group") == plain("a.py::test[x@y]") == "a.py::test[x@y]"


def test_the_groups_that_start_first_exist() -> None:
    text = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in LONGEST if f'xdist_group("{name}")' not in text] == []
