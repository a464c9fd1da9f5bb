"""Errors of the communication with a ResourceManager or with the store of its allocation file.

::

    InputError
    ├── Unreachable        nothing answered in time; a later attempt may succeed
    │   └── NoActiveRm     ResourceManagers answered, but none of them is active
    ├── Refused            the other side answered with an error
    └── BadAnswer          the other side answered, but the answer is invalid

All end a command with exit code 1. A controller keeps running on `Unreachable` and `BadAnswer`.
"""

from __future__ import annotations

import re

from harness.base.errors import InputError


class Unreachable(InputError):
    """Nothing answered in time, or the connection broke before the answer was complete."""


class NoActiveRm(Unreachable):
    """ResourceManagers answered, but each of them is on standby."""


class Refused(InputError):
    """The other side answered with an error.

    `status` is the HTTP status (0: not over HTTP), `exception` the class name of the Java exception as sent by the
    other side (empty: none sent).
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        status: int = 0,
        exception: str = "",
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.status = status
        self.exception = exception


class BadAnswer(InputError):
    """An invalid answer: incomplete, not JSON, too large, or with wrong types or numbers out of range."""


#: Unpaired surrogates, which JSON may contain, but which no output, path or address can represent.
_LONE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """Make external text safe to print and send: unpaired surrogates become U+FFFD."""
    return _LONE.sub("\ufffd", text)
