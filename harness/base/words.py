"""Formats text for people."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TextIO

#: A space without a line break, between a number and its unit.
_UNIT = re.compile(r"(?<=\d) (?=%|ms\b|s\b|[kMGT]iB\b|vcores?\b)")


def plain_number(text: str) -> float:
    """Return the number in a text of another program. Raises ValueError for any other text.

    Python's own ``float`` also accepts ``1_000`` and the digits of every script, which are not numbers in such texts.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"could not convert string to float: {text[:40]!r}")
    return float(text)


def counted(many: int, noun: str) -> str:
    """Return a number with its noun: ``1 run``, ``3,000 runs``."""
    return f"{many:,} {noun}" if many == 1 else f"{many:,} {noun}s"


def percent_text(part: float, digits: int = 1, *, signed: bool = True) -> str:
    """Return a fraction as a percentage in the form of all outputs: ``+5.6 %``, with a space before the percent sign.

    From 1,000 % on it has no decimals: ``+4,281 %``. What rounds to 0 has no sign: ``0.0 %``.
    """
    if round(100 * part, digits) == 0:
        return f"{0:.{digits}f} %"
    if abs(part) >= 10:
        return f"{100 * part:+,.0f} %" if signed else f"{100 * part:,.0f} %"
    return f"{100 * part:+.{digits}f} %" if signed else f"{100 * part:.{digits}f} %"


def seconds(value: float) -> str:
    """Return a duration as text."""
    if value < 120:
        return f"{value:.0f} s"
    if value < 7200:
        return f"{value / 60:.0f} min"
    if value < 172_800:
        return f"{value / 3600:.1f} h"
    return f"{value / 86_400:.1f} days"


def folded(text: str, columns: int, *, hang: int = 4) -> str:
    """Break a line at a width, between words; continuation lines are indented by ``hang`` columns."""
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
    """Return a line in the form for a stream: broken at a terminal's width (`folded`), unchanged for anything else."""
    return folded(text, shutil.get_terminal_size().columns, hang=hang) if stream.isatty() else text
