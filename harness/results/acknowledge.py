"""Accepted changes: a file that lists each intended alarm with a reason and an expiry date."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PrivateAttr

from harness.base.documents import Strict, read_yaml, validated
from harness.base.errors import InputError
from harness.results.catalogue import Key


def _day(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("write a day as YYYY-MM-DD") from None


class Acknowledgement(Strict):
    """One accepted change. Metric, experiment and variant are patterns (``*``, ``?``)."""

    metric: Annotated[str, Field(min_length=1, max_length=300)]
    reason: Annotated[str, Field(min_length=3, max_length=2000), AfterValidator(lambda text: " ".join(text.split()))]
    expires: Annotated[str, AfterValidator(_day)]
    experiment: str = "*"
    variant: str = "*"
    #: The worst accepted value; absent: any.
    up_to: Annotated[float, Field(allow_inf_nan=False)] | None = None
    #: The file and line of the entry.
    _where: str = PrivateAttr("")

    @property
    def where(self) -> str:
        """Return its position: file and line."""
        return self._where

    def expired(self, today: str) -> bool:
        """Return whether the expiry date is past; on that date the entry is still valid."""
        return today > self.expires


class _File(Strict):
    acknowledge: list[Acknowledgement]


def fits(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern (``*``, ``?``)."""
    # Brackets are literal, because they enclose a queue's name.
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def find(
    accepted: Sequence[Acknowledgement], experiment: str, variant: str, key: Key, value: float | None, today: str
) -> Acknowledgement | None:
    """Return the first acknowledgement that matches an alarm, accepts its value and has not expired.

    If all that match have expired, return the first of these. ``today`` as YYYY-MM-DD.
    """
    able = [one for one in accepted if _accepts(one, experiment, variant, key, value)]
    return next((one for one in able if not one.expired(today)), able[0] if able else None)


def _accepts(one: Acknowledgement, experiment: str, variant: str, key: Key, value: float | None) -> bool:
    if not (fits(one.metric, key.text()) and fits(one.experiment, experiment) and fits(one.variant, variant)):
        return False
    if one.up_to is None:
        return True
    lower = key.metric.better != "higher"
    return value is not None and (value <= one.up_to if lower else value >= one.up_to)


def read_acknowledgements(path: Path) -> list[Acknowledgement]:
    """Read the file.

    Raises InputError with file and line, for example for a missing reason or date, or an unknown key.
    """
    document = read_yaml(path)
    if document.data == {"acknowledge": None}:
        raise InputError("no acknowledgements in it", where=str(path), hint="write a list below acknowledge:")
    found = validated(_File, document).acknowledge
    for at, one in enumerate(found):
        one._where = document.where(("acknowledge", at))
    return found
