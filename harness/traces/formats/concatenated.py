"""Reads files of concatenated JSON objects, some of which may be damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import no_constant, reading
from harness.traces.formats.base import Collector
from harness.traces.formats.compressed import readable_bytes
from harness.traces.sls import MAX_BYTES

#: Possible start of the next object after a damaged one: a brace at the beginning of a line.
_NEXT = re.compile(r"^\{", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """One object of a file.

    ``value`` is None if it is unreadable; ``where`` is FILE:LINE; ``problem`` is the reason.
    """

    where: str
    value: dict[str, Any] | None
    problem: str = ""


def damaged_objects(path: Path, collector: Collector, broken: list[str]) -> Iterator[JsonRecord]:
    """Yield each object of a file of concatenated JSON objects, which may be compressed.

    After an unreadable object it continues at the next line that begins with a brace. A truncated compressed file is
    read up to the truncation; ``broken`` gets a sentence about the rest, which is counted. Raises InputError if the
    file is unreadable, or has no object at all.
    """
    with reading(path, "check the path, or split the file"):
        whole = readable_bytes(path, MAX_BYTES)
        text = whole.text()
    decoder = json.JSONDecoder(parse_constant=no_constant)
    position = counted = found = 0
    line = 1
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            break
        line += text.count("\n", counted, position)
        counted, where = position, f"{path}:{line}"
        found += 1
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            if found == 1 and text[position] != "{":
                raise InputError(
                    f"not JSON: {str(error)[:80]}", where=where, hint="give a file of JSON objects, one after another"
                ) from None
            following = _NEXT.search(text, position + 1)
            position = following.start() if following is not None else len(text)
            yield JsonRecord(where, None, str(error)[:80])
            continue
        if isinstance(value, dict):
            yield JsonRecord(where, value)
        else:
            yield JsonRecord(where, None, f"expected an object, found {type(value).__name__}")
    if whole.broken:
        broken.append(collector.rest_unread(path, text.count("\n") + 1, whole.broken))
    if not found:
        raise InputError("the trace is empty", where=str(path), hint="give a file with at least one object")
