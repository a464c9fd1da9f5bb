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

#: A name is broken after these signs; a piece without any, after so many characters.
_PIECES = re.compile(r"[^@,=/_ ]{1,14}[@,=/_ ]*|[@,=/_ ]+")


def breakable(name: object) -> Markup:
    """The name with places where a line may end: `ltrf@outside` not in the middle of a word."""
    return Markup("<wbr>").join(escape(piece) for piece in _PIECES.findall(str(name)))


def two_lines(text: object) -> Markup:
    """A cell in which ``(smallest to largest)`` may stand below its figure, and nothing else is broken."""
    figure, found, band = str(text).partition(" (")
    if not found:
        return escape(text)
    return Markup('<span class="whole">{}</span> <span class="whole">({}</span>').format(figure, band)


def with_code(text: object) -> Markup:
    """Words in which commands stand between backticks, as on a terminal."""
    words = str(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(word) if k % 2 else escape(word) for k, word in enumerate(words)
    )


def typeset(text: str, names: Iterable[str] = ()) -> str:
    """Write the numbers of a text that was made for a terminal as every page does: a thin space, a true minus.

    Terminals get ASCII (``-1,234.5``), which can be searched and copied. `templates/charts.js.j2` has the same rule.

    Parameters
    ----------
    text
        A text whose numbers this program has formatted.
    names
        What somebody else has named, such as labels of runs, and stands in the text: ``seeds 1,200,300`` is no number.
        It stays as it is, as commands between backticks do.
    """
    # The longest first, because a name may be a part of another. One that would not change may be a part of a number.
    kept = [re.escape(name) for name in sorted(set(names), key=len, reverse=True) if _typeset(name) != name]
    pieces = re.split(f"({'|'.join(['`[^`]*`', *kept])})", text)
    # `split` returns what it has split at in every second place.
    return "".join(piece if k % 2 else _typeset(piece) for k, piece in enumerate(pieces))


def _typeset(text: str) -> str:
    text = re.sub(r"(?<![\w@.,-])-(?=\d)", "\u2212", text)
    return re.sub(
        r"(?<![\w.,-])\d{1,3}(?:,\d{3})+(?![\w-])", lambda digits: digits.group().replace(",", "\u202f"), text
    )


def content_hash(text: str) -> str:
    """Return the hash by which a page's Content-Security-Policy allows a script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def page_templates() -> jinja2.Environment:
    """The project's templates, with the filters of this module, and the charts' colours."""
    environment = templates()
    environment.globals["colours"], environment.globals["dark_colours"] = COLOURS, DARK_COLOURS
    environment.filters["breakable"] = breakable
    environment.filters["two_lines"] = two_lines
    environment.filters["with_code"] = with_code
    environment.filters["typeset"] = typeset
    return environment
