"""Where the files lie that the package brings along: templates, workloads, experiments, policies, Docker files.

From a checkout they are the folders beside ``harness/``; installed from the wheel they are in ``harness/_data/``.
"""

from __future__ import annotations

from pathlib import Path

import harness

_PACKAGE = Path(harness.__file__).resolve().parent


def data_path(folder: str, *parts: str) -> Path:
    """The path of a file (or folder) that the project brings: ``data_path("templates", "report.html.j2")``.

    Whether it is there is the caller's business. A wheel has ``_data``, a checkout has not.
    """
    data = _PACKAGE / "_data"
    return (data if data.is_dir() else _PACKAGE.parent).joinpath(folder, *parts)
