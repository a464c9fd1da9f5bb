"""The hierarchy of exceptions for users, and the exit code of each.

::

    YarnfairError            1   anything below, caught in one place (harness.cli)
    ├── InputError           1   a file, trace or answer that cannot be used: what, where, how to fix it
    ├── CallError            2   a wrong call: an unknown setting, policy or option value
    ├── RegressionFound      3   a run is outside its recorded bounds
    ├── RunInvalid           4   the run ended but does not count (jobs failed)
    ├── RunTimedOut          5   the run did not end in its time
    └── InternalError        1   a defect of this program: it stopped before it could compute something wrong
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import partial
from typing import Any


class YarnfairError(Exception):
    """Base of all errors that are reported as one line.

    Parameters
    ----------
    what : what is wrong, in plain words.
    where : file, line, queue, host ... or None.
    hint : how to correct it, or None.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(self.line())

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, because errors also come from other processes."""
        return partial(type(self), self.what, where=self.where, hint=self.hint), ()

    def line(self) -> str:
        """Return the line to print: ``where: what; hint``."""
        text = " ".join(_told(self.what).split())
        if self.where:
            # Only line ends are replaced: a path may contain two spaces.
            text = f"{' '.join(_told(self.where).splitlines())}: {text}"
        if self.hint:
            text = f"{text}; {' '.join(_told(self.hint).split())}"
        return printable(text)


def _told(text: str) -> str:
    """Return a part of the line. Secrets are hidden before truncation, because half a password cannot be recognised."""
    return short(without_secrets(text))


#: ``scheme://user:password@`` in one word: a password may contain slashes and colons, and the last @ ends it. If the
#: address was treated as a path, one of its slashes is missing.
_PASSWORD = re.compile(r"(?<=[a-zA-Z0-9+.-])(:/{1,2}[^/:@'\"]*):.*@")
_WORD = re.compile(r"\S+")
#: The query of an address, in which WebHDFS has tokens.
_TOKEN = re.compile(r"((?:delegation|token|password|signature)=)[^&\s'\"]+", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """Return the text with passwords and tokens in addresses replaced by ``***``, for all output and storage."""
    if ":/" not in text:
        return text
    return _TOKEN.sub(r"\1***", _WORD.sub(_without_password, text))


def _without_password(word: re.Match[str]) -> str:
    # A word is not searched after its last @: a long one with many colons would take quadratic time.
    address, at, rest = word[0].rpartition("@")
    return _PASSWORD.sub(r"\1:***@", address + at) + rest if at else rest


def reason(error: BaseException) -> str:
    """Return why a library or the system refused, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())[:300] or type(error).__name__


def short(text: str, most: int = 2000) -> str:
    """Shorten a text of a file or an answer for people: its beginning and its end."""
    return text if len(text) <= most else f"{text[: most - 500]} ... {text[-400:]}"


def printable(text: str) -> str:
    """Return the text with control characters escaped, so that a terminal does not execute them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


class InputError(YarnfairError):
    """A file, trace or answer from outside that cannot be used."""


class CallError(YarnfairError):
    """A wrong call: an unknown policy, setting or option value."""

    exit_code = 2


class RegressionFound(YarnfairError):
    """A run lies outside the bounds recorded for it."""

    exit_code = 3


class RunInvalid(YarnfairError):
    """A run ended but does not count, because jobs failed."""

    exit_code = 4


class RunTimedOut(YarnfairError):
    """A run did not end in the time it was given."""

    exit_code = 5


class InternalError(YarnfairError):
    """A defect of this program, found before it could give a wrong result. The user cannot correct it."""


def check_ranges(one: object, **ranges: tuple[float, float]) -> None:
    """Raise CallError for an attribute outside its range (smallest and largest value)."""
    for name, (least, most) in ranges.items():
        value = getattr(one, name)
        if not least <= value <= most:
            raise CallError(f"{name} is {value}", hint=f"give a number from {least} to {most}")


def first_sentence(text: str) -> str:
    """Return the first sentence of a multi-line text on one line; the point of "Fig. 4" does not end it."""
    return re.split(r"(?<=\.) (?=[\"A-Z])", " ".join(text.split()), maxsplit=1)[0]


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word most similar to a mistyped one; '' if none is similar."""
    found = difflib.get_close_matches(word[:100], list(known), 1)
    return found[0] if found else ""
