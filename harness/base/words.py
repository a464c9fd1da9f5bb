"""Text for people."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TextIO

#: Between a number and its unit no line is broken.
_UNIT = re.compile(r"(?<=\d) (?=%|ms\b|s\b|[kMGT]iB\b|vcores?\b)")


def plain_number(text: str) -> float:
    """The number that a text of other programs writes out. ValueError for what is none.

    Python's own ``float`` also takes ``1_000`` and the digits of every script: these mean something else, or nothing.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"could not convert string to float: {text[:40]!r}")
    return float(text)


def counted(many: int, noun: str) -> str:
    """``1 run``, ``3 runs``."""
    return f"{many} {noun}" if many == 1 else f"{many} {noun}s"


def percent_text(part: float, digits: int = 1, *, signed: bool = True) -> str:
    """A part of a whole as every output writes it: ``+5.6 %``, with a blank before the sign for per cent.

    From tenfold on there are no decimals, which nobody reads there: ``+4,281 %``.
    """
    if abs(part) >= 10:
        return f"{100 * part:+,.0f} %" if signed else f"{100 * part:,.0f} %"
    return f"{100 * part:+.{digits}f} %" if signed else f"{100 * part:.{digits}f} %"


def seconds(value: float) -> str:
    """A duration."""
    if value < 120:
        return f"{value:.0f} s"
    if value < 7200:
        return f"{value / 60:.0f} min"
    if value < 172_800:
        return f"{value / 3600:.1f} h"
    return f"{value / 86_400:.1f} days"


def folded(text: str, columns: int, *, hang: int = 4) -> str:
    """A line broken at a width, between words; what follows stands ``hang`` columns in."""
    inner = text[: len(text) - len(text.lstrip())]
    lines = textwrap.fill(
        _UNIT.sub("\0", text.strip()),
        columns,
        initial_indent=inner,
        subsequent_indent=" " * min(hang, columns // 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\0", " ")


def fitted(text: str, stream: TextIO, *, hang: int = 4) -> str:
    """A line as a stream takes it: a terminal's broken at its width (`folded`), any other whole."""
    return folded(text, shutil.get_terminal_size().columns, hang=hang) if stream.isatty() else text
