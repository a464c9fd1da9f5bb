"""Locates the package's data files: templates, workloads, experiments, policies, Docker files.

In a checkout they are in the folders beside ``harness/``; in an installed wheel they are in ``harness/_data/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import harness

if TYPE_CHECKING:
    import jinja2

_PACKAGE = Path(harness.__file__).resolve().parent


def data_path(folder: str, *parts: str) -> Path:
    """Return the path of one of the package's files or folders: ``data_path("templates", "report.html.j2")``.

    Does not check that it exists. A wheel has ``_data``, a checkout does not.
    """
    data = _PACKAGE / "_data"
    return (data if data.is_dir() else _PACKAGE.parent).joinpath(folder, *parts)


def templates(*, keep_trailing_newline: bool = False) -> jinja2.Environment:
    """Return the project's templates, which escape inserted values and raise for missing names."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_path("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=keep_trailing_newline,
    )
