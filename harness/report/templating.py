"""The templates of the pages, and how names may break on a narrow screen."""

from __future__ import annotations

import re

import jinja2
from markupsafe import Markup, escape

from harness.model.data import data_path

#: A name is broken after these signs; a piece without any, after so many characters.
_PIECES = re.compile(r"[^@,=/_ ]{1,14}[@,=/_ ]*|[@,=/_ ]+")


def breakable(name: object) -> Markup:
    """The name with places where a line may end: `ltrf@outside` not in the middle of a word."""
    return Markup("<wbr>").join(escape(piece) for piece in _PIECES.findall(str(name)))


def templates() -> jinja2.Environment:
    """Escapes what it is given; a name that is not given is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_path("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment
