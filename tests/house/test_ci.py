"""CI as a whole: what one of its chains leaves out, another one runs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path


def planned(root: Path, *arguments: str) -> str:
    """What `make` would run."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "CHECKED", "BUT"))}
    done = subprocess.run(
        ["make", "-n", *arguments], cwd=root, env=bare, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_the_newer_release_runs_all_of_the_engines_tests_on_the_checked_build(root: Path) -> None:
    steps = (root / ".ci" / "run").read_text(encoding="utf-8")
    assert '.ci/bare trixie requirements.txt "long or slow" checked >' in steps
    assert """YARNFAIR_CHECKED=1 "BUT='\\$(CHECKED)'" test-checked test-bare)""" in (root / ".ci" / "bare").read_text()
    left_out = set(re.findall(r"--ignore=(\S+)", planned(root, "BUT=$(CHECKED)", "test-bare")))
    assert len(left_out) > 5
    assert all((root / name).is_file() for name in left_out)
    checked = planned(root, "test-checked").splitlines()[-1]
    assert '-m "not long and not parts"' in checked
    assert left_out <= set(checked.split())


def test_the_other_chains_leave_out_no_file(root: Path) -> None:
    assert "--ignore" not in planned(root, "test-bare") + planned(root, "test-parts") + planned(root, "test-all")
