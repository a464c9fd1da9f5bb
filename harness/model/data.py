"""Where the files lie that the package brings along: templates, workloads, experiments, policies, Docker files.

From a checkout they are the folders beside ``harness/``; installed from the wheel they are in ``harness/_data/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import harness

if TYPE_CHECKING:
    import jinja2

_PACKAGE = Path(harness.__file__).resolve().parent


def data_path(folder: str, *parts: str) -> Path:
    """The path of a file (or folder) that the project brings: ``data_path("templates", "report.html.j2")``.

    Whether it is there is the caller's business. A wheel has ``_data``, a checkout has not.
    """
    data = _PACKAGE / "_data"
    return (data if data.is_dir() else _PACKAGE.parent).joinpath(folder, *parts)


def templates(*, keep_trailing_newline: bool = False) -> jinja2.Environment:
    """The project's templates: what is filled in is escaped; a name that is not given is an error."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_path("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=keep_trailing_newline,
    )
