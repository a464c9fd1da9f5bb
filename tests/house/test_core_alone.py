"""The core works without the systems of the papers: its own tests pass in a copy from which they have been deleted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Tests of the core that need no compiled engine.
SELECTION = (
    "tests/ledger",
    "tests/policies/test_policies.py",
    "tests/policies/test_registry.py",
    "tests/policies/test_decay.py",
    "tests/control/test_core.py",
    "tests/results/test_metrics.py",
    "tests/cli/test_output.py",
)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree without ``harness/systems`` and without the tests of the systems."""
    place = tmp_path_factory.mktemp("core")
    for folder in ("harness", "tests"):
        left_out = shutil.ignore_patterns("__pycache__", "systems")
        shutil.copytree(ROOT / folder, place / folder, ignore=left_out)
    for name in ("experiments", "workloads", "templates", "yarn-policy", "docs", "pyproject.toml"):
        (place / name).symlink_to(ROOT / name)
    return place


def python(core: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=core,
        env={**os.environ, "PYTHONPATH": str(core)},
        capture_output=True,
        text=True,
        timeout=400,
    )


def test_the_cores_own_tests_pass_without_the_systems(core: Path) -> None:
    done = python(
        core, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not long and not parts", *SELECTION
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    where = python(core, "-c", "import harness.policies; print(harness.policies.__file__)").stdout
    assert where.startswith(str(core)), "the copy is what is tested"


def test_commands_offer_the_core_alone(core: Path) -> None:
    policies = json.loads(python(core, "-m", "harness", "list", "policies", "--json").stdout)
    names = {row["name"] if isinstance(row, dict) else row for row in policies}
    assert {"fair", "drf", "static", "ltrf", "hltrf", "decay-slurm"} <= names
    assert not {name for name in names if name.startswith(("fawkes", "qknober", "mrorder", "dynamicmr", "progress"))}
    assert "order " not in python(core, "-m", "harness", "--help").stdout
    fawkes = python(core, "-m", "harness", "run", "fawkes-d", "--out", "runs")
    assert fawkes.returncode == 1
    assert "no kind 'mr-clusters'" in fawkes.stderr
