"""The command that installs an extra works for the installation that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.extras import install_hint


@pytest.mark.parametrize(
    ("checkout", "own", "wanted"),
    [
        (True, True, "make -C {root} setup"),
        (True, False, "{root}/other/bin/python -m pip install '{root}[plot]'"),
        (False, False, "pip install '/path/to/checkout[plot]'"),
    ],
)
def test_the_hint_fits_the_installation(tmp_path: Path, checkout: bool, own: bool, wanted: str) -> None:
    """It named /path/to/checkout, which is nowhere, also in a checkout."""
    if checkout:
        (tmp_path / "pyproject.toml").write_text("")
    environment = tmp_path / (".venv" if own else "other")
    assert install_hint("plot", root=tmp_path, environment=environment) == wanted.format(root=tmp_path)
