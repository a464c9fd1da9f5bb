"""The templates of the pages, and how names may break on a narrow screen."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable

import jinja2
from markupsafe import Markup, escape

from harness.model.data import templates
from harness.report.svg import COLOURS, DARK_COLOURS

#: Characters after which a name may be broken; a piece without any is broken after this many characters.
_PIECES = re.compile(r"[^@,=/_ ]{1,14}[@,=/_ ]*|[@,=/_ ]+")


def breakable(name: object) -> Markup:
    """Return the name with possible line breaks: `ltrf@outside` is not broken inside a word."""
    # A line may end at a blank anyway.
    pieces = "<wbr>".join(str(escape(piece)) for piece in _PIECES.findall(str(name)))
    return Markup(pieces.replace(" <wbr>", " "))


def two_lines(text: object) -> Markup:
    """Return a cell in which ``(smallest to largest)`` may wrap below its value, and nothing else."""
    figure, found, band = str(text).partition(" (")
    if not found:
        return escape(text)
    return Markup('<span class="whole">{}</span> <span class="whole">({}</span>').format(figure, band)


def with_code(text: object) -> Markup:
    """Mark commands between backticks as code."""
    words = str(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(word) if k % 2 else escape(word) for k, word in enumerate(words)
    )


def typeset(text: str, names: Iterable[str] = ()) -> str:
    """Write the negative numbers of a text that was made for a terminal with a true minus, as every page does.

    Terminals get ASCII (``-1,234.5``), which can be searched and copied. Thousands are set apart by a comma on both.
    `templates/charts.js.j2` has the same rule.

    Parameters
    ----------
    text
        A text whose numbers this program has formatted.
    names
        Names in the text that others chose, such as labels of runs: ``shifted by -3`` is not a number. They stay
        unchanged, like commands between backticks.
    """
    # The longest first, because a name may be a part of another. A name that would not change may be a part of a
    # number.
    kept = [re.escape(name) for name in sorted(set(names), key=len, reverse=True) if _typeset(name) != name]
    pieces = re.split(f"({'|'.join(['`[^`]*`', *kept])})", text)
    # `split` returns the separators at every second position.
    return "".join(piece if k % 2 else _typeset(piece) for k, piece in enumerate(pieces))


def _typeset(text: str) -> str:
    return re.sub(r"(?<![\w@.,-])-(?=\d)", "\u2212", text)


def content_hash(text: str) -> str:
    """Return the hash by which a page's Content-Security-Policy allows a script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def page_templates() -> jinja2.Environment:
    """Return the project's templates, with the filters of this module and the charts' colours."""
    environment = templates()
    environment.globals["colours"], environment.globals["dark_colours"] = COLOURS, DARK_COLOURS
    environment.filters["breakable"] = breakable
    environment.filters["two_lines"] = two_lines
    environment.filters["with_code"] = with_code
    environment.filters["typeset"] = typeset
    return environment
