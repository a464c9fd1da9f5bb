"""`tests.computing` reports the CPU time of each test, with that of its child processes and without waiting."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import subprocess, sys, time, pytest

BUSY = "import time\\nwhile time.process_time() < 1.5: pass"

@pytest.fixture(scope="module")
def made():
    subprocess.run([sys.executable, "-c", BUSY], check=True)

def test_in_a_process_of_its_fixture(made):
    pass

def test_in_its_own():
    began_s = time.process_time()
    while time.process_time() < began_s + 2.5:
        pass

def test_waits():
    time.sleep(2)
"""


def test_those_that_computed_most_are_named_with_what_they_computed(tmp_path: Path) -> None:
    (tmp_path / "computing.py").write_text(
        (ROOT / "tests" / "computing.py").read_text().replace("LEAST_S = 40, 5.0", "LEAST_S = 40, 1.0")
    )
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "computing", "-p", "no:cacheprovider", "-n", "2", "test_it.py"]
    done = subprocess.run([*command, "--rootdir", "."], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    found = re.findall(r"(?m)^ +([\d.]+) s test_it\.py::(\w+)$", done.stdout)
    assert [name for _, name in found] == ["test_in_its_own", "test_in_a_process_of_its_fixture"], done.stdout
    assert 2.5 <= float(found[0][0]) < 4.0
    assert 1.5 <= float(found[1][0]) < 2.5
    whole = re.search(r"computed (\d+) s", done.stdout)
    assert whole is not None
    assert 4 <= int(whole[1]) <= 7
