"""Advice on how to install an extra: the command that works for this installation."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def install_hint(extra: str, *, root: Path = _ROOT, environment: Path | None = None) -> str:
    """Return the command that installs an extra of the package.

    Parameters
    ----------
    extra : str
        Its name in ``pyproject.toml``.
    root : Path
        The folder that has the package; a checkout if ``pyproject.toml`` is in it.
    environment : Path, optional
        The virtual environment that runs; by default this process's.

    Returns
    -------
    str
        ``make setup`` in a checkout's own ``.venv``, where ``make run`` leaves the extras out; else a call of pip.
    """
    running = Path(sys.prefix) if environment is None else environment
    if not (root / "pyproject.toml").is_file():
        return f"pip install '/path/to/checkout[{extra}]'"
    if running == root / ".venv":
        return f"make -C {root} setup"
    return f"{running / 'bin' / 'python'} -m pip install '{root}[{extra}]'"
