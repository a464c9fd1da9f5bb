"""Where the files lie that the package brings along: templates, workloads, experiments, policies, Docker files.

From a checkout they are the folders beside ``harness/``; installed from the wheel they are in ``harness/_data/``.
"""

from __future__ import annotations

from pathlib import Path

import harness

_PACKAGE = Path(harness.__file__).resolve().parent


def data_path(folder: str, *parts: str) -> Path:
    """The path of a file (or folder) that the project brings: ``data_path("templates", "report.html.j2")``.

    The checkout comes first, then the package's own data. A path that is in neither is given as it would be in the
    checkout, so that the error of opening it names a place that makes sense.
    """
    checkout = _PACKAGE.parent.joinpath(folder, *parts)
    installed = _PACKAGE.joinpath("_data", folder, *parts)
    return installed if installed.exists() and not checkout.exists() else checkout
