"""The service's unit in docs/how-to/enforce.md has least rights, as systemd itself judges."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/enforce.md"


def unit() -> str:
    found = re.search(r"```ini\n(.*?)```", PAGE.read_text(), re.S)
    assert found is not None
    return found[1]


@pytest.mark.systemd
def test_systemd_judges_the_units_exposure_as_ok(tmp_path: Path) -> None:
    """At most 2.0 of 10; 8.5 is what this unit had."""
    file = tmp_path / "yarnfair-enforce.service"
    file.write_text(unit())
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", str(file)],
        capture_output=True,
        text=True,
    )
    assert judged.returncode == 0, judged.stdout[-400:] + judged.stderr


def test_the_unit_lets_the_controller_do_its_work() -> None:
    """Owner and group of the file are kept; its code is compiled nowhere while it runs."""
    said = dict(re.findall(r"^(\w+)=(.*)$", unit(), re.M))
    assert said["SystemCallFilter"] == "@chown", "the last one adds to the others"
    assert "AF_UNIX" in said["RestrictAddressFamilies"], "name services and the journal"
    assert "ReadWritePaths" in said
