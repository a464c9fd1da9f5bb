"""Decision scripts as files: reads scripts and their events, and writes answers in the oracle's format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_text
from harness.base.outputs import write_output

_EXTRAS = ("duration_ms", "after_am_ms", "auto_end", "on_am_killed")
_LIMIT = 2**62


class Event:
    """One event of a script. Methods that read a field raise InputError, with the event's number, if it is wrong."""

    def __init__(self, index: int, raw: Any) -> None:
        self.where = f"event {index}"
        if not isinstance(raw, dict):
            raise InputError("is not an object", where=self.where, hint='write {"t": ..., ...}')
        self.raw: dict[str, Any] = raw
        self.t = self.integer(raw, "t")
        for extra in _EXTRAS:
            if extra in raw or any(isinstance(r, dict) and extra in r for r in self.requests()):
                raise InputError(
                    f"{extra!r} is an automatic extra; only explicit scripts (base events) can be decided",
                    where=self.where,
                    hint="write the script in its explicit form (the oracle's --explicit does it)",
                )

    def requests(self) -> list[Any]:
        """Return the event's requests; empty if it has none."""
        requests = self.raw.get("requests")
        return requests if isinstance(requests, list) else []

    def integer(self, where: Mapping[str, Any], key: str, default: int | None = None) -> int:
        """Return an integer field. Raises InputError."""
        value = where.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not -_LIMIT <= value <= _LIMIT:
            raise InputError(
                f"{key!r} is {value!r}, not an integer in range", where=self.where, hint="write an integer"
            )
        return value

    def amount(self, where: Mapping[str, Any], key: str, default: int | None = None) -> int:
        """Return an integer field from 0 to the largest Java int. Raises InputError."""
        value = self.integer(where, key, default)
        if not 0 <= value <= 2**31 - 1:
            raise InputError(f"{key!r} is {value}", where=self.where, hint="write an integer from 0 to 2147483647")
        return value

    def text(self, where: Mapping[str, Any], key: str, default: str | None = None) -> str:
        """Return a text field. Raises InputError."""
        value = where.get(key, default)
        if not isinstance(value, str):
            raise InputError(f"{key!r} is {value!r}, not a text", where=self.where, hint="write a name in quotes")
        return value

    def inner(self, key: str) -> dict[str, Any]:
        """Return a field that is an object. Raises InputError."""
        value = self.raw.get(key)
        if not isinstance(value, dict):
            raise InputError(f"{key!r} is not an object", where=self.where, hint=f'write "{key}": {{...}}')
        return value


def option(options: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """Return an option's value; the first choice is the default. Raises InputError for a value that is no choice."""
    value = options.get(name, choices[0])
    if value not in choices:
        raise InputError(f"option {name!r} is {value!r}", hint=f"write one of: {', '.join(choices)}")
    return str(value)


def whole(options: Mapping[str, Any], name: str, default: int) -> int:
    """Return an option that is a non-negative integer. Raises InputError."""
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LIMIT:
        raise InputError(f"option {name!r} is {value!r}", hint="write an integer from 0 on")
    return value


#: Largest size of a script in bytes; recorded runs have long scripts.
MOST_SCRIPT_BYTES = 256 << 20


def read_script(path: str) -> Any:
    """Read a script from a file. Raises InputError if it is unreadable or not JSON."""
    text = read_text(path, MOST_SCRIPT_BYTES, hint="give the path of a readable file")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", where=path, hint="write one JSON object") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: afterwards it is complete, or does not exist.

    Raises InputError if the disk refuses, or if the text cannot be encoded in UTF-8.
    """
    write_output(path, _encoded(text), hint="give a writable path")


def _encoded(text: str) -> bytes:
    """Return text in UTF-8.

    Raises InputError for a lone surrogate, which JSON can write (as an escape) and UTF-8 cannot.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        what = f"a name holds {text[error.start]!r}, half a surrogate pair, which UTF-8 cannot write"
        raise InputError(what, hint="rename it") from error


def render_answer(answer: Mapping[str, Any]) -> str:
    """Return the answer in the oracle's format, one record per line.

    Raises InputError for a name that UTF-8 cannot encode.
    """
    parts = []
    for key, value in answer.items():
        if isinstance(value, list):
            lines = ",".join("\n " + json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in value)
            parts.append(f'\n"{key}": [{lines}]')
        else:
            parts.append(f'\n"{key}": {json.dumps(value, separators=(",", ":"))}')
    text = "{" + ",".join(parts) + "\n}\n"
    _encoded(text)
    return text
