"""Events of a job history in Avro's binary form (``mapreduce.jobhistory.jhist.format`` ``binary``, Hadoop 3's default).

As ``org.apache.hadoop.mapreduce.jobhistory.EventWriter`` writes them: a line that says ``Avro-Binary``, a line with the
events' schema, then one event after another with nothing between them. No I/O.

Hadoop's own reader stops at the first damage. This one continues at the next event: an event begins with the index of
its type, the index of its record and the id of a job, a task or an AM, a byte sequence that hardly occurs elsewhere.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.base.errors import InputError

#: The first line of such a file.
BINARY = b"Avro-Binary"
#: With more damage than this, the rest of a file is left out, because each damaged place requires a search.
MOST_DAMAGED = 100
#: No schema of Hadoop's has more than 300 parts; a larger one could keep a reader busy with few bytes.
_MOST_PARTS = 10_000
_LEAST_BYTES = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}


@dataclass(frozen=True, slots=True)
class AvroEvent:
    """One event. ``at`` is the offset of its first byte in the file; ``fields`` is None if it is unreadable."""

    at: int
    record: str
    fields: Mapping[str, Any] | None


def avro_events(data: bytes) -> Iterator[AvroEvent]:
    """Yield each event of a whole file, and one without fields for each damaged place.

    Raises
    ------
    InputError
        The schema in the second line is unreadable; without it no event can be read.
    """
    # Imported only when such a file is read.
    from fastavro import schemaless_reader

    first = data.find(b"\n") + 1
    begin = data.find(b"\n", first) + 1
    if not first or not begin:
        raise InputError("ends before its second line, which has the events' schema")
    schema, head = _schema(data[first : begin - 1])
    stream = io.BytesIO(data)
    at, damaged = begin, 0
    while at < len(data):
        stream.seek(at)
        record: Any = None
        fields: Any = None
        try:
            event: Any = schemaless_reader(stream, schema, None, return_record_name=True)
            record, fields = event["event"]
        except (ArithmeticError, EOFError, LookupError, TypeError, ValueError):
            end = len(data)
        else:
            end = stream.tell()
        whole = isinstance(record, str) and isinstance(fields, dict) and end > at
        # If no event follows, these bytes may contain several events, which shows in the head of another one inside.
        if whole and end < len(data) and not head.match(data, end):
            whole = head.search(data, at + 1, end) is None
        if whole:
            yield AvroEvent(at, record, fields)
            at = end
            continue
        damaged += 1
        yield AvroEvent(at, "", None)
        following = head.search(data, at + 1) if damaged < MOST_DAMAGED else None
        at = following.start() if following is not None else len(data)


def _schema(line: bytes) -> tuple[Any, re.Pattern[bytes]]:
    """Return the schema of the events, and the bytes with which an event begins."""
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException

    try:
        document = json.loads(line)
        _measured(document, {})
        kinds, records = (field["type"] for field in document["fields"])
        symbols = kinds["symbols"]
        if [field["name"] for field in document["fields"]] != ["type", "event"] or not isinstance(records, list):
            raise ValueError("an event has a type and an event")
        return parse_schema(document), _head(len(symbols), len(records))
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, SchemaParseException) as error:
        raise InputError(
            f"its second line is not the schema of job history's events ({str(error)[:80] or type(error).__name__})"
        ) from None


def _head(symbols: int, records: int) -> re.Pattern[bytes]:
    """Return the first bytes of an event: two indices and the length of an id, as Avro integers, and the id."""
    index = [b"[" + b"".join(re.escape(bytes([2 * n])) for n in range(min(count, 64))) + b"]"
             for count in (symbols, records, 64)]  # fmt: skip
    return re.compile(b"".join(index) + rb"(?:job|task|appattempt)_[0-9]", re.DOTALL)


def _measured(schema: object, names: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """Return the minimum number of bytes of a value of this schema, and the number of its parts.

    Raises ValueError for schemas without finite values, or with values that take long to read from a tiny file: a
    record that contains itself, or lists with items of no bytes.
    """
    if isinstance(schema, str):
        if schema in _LEAST_BYTES:
            return _LEAST_BYTES[schema], 1
        if schema not in names:
            raise ValueError(f"type {schema[:40]!r} is not known yet")
        return names[schema]
    if isinstance(schema, list):
        return 1, 1 + max(parts for _, parts in [_measured(one, names) for one in schema])
    if not isinstance(schema, dict):
        raise ValueError(f"{str(schema)[:40]!r} is no type")
    kind = schema["type"]
    if kind in ("array", "map"):
        least, parts = _measured(schema["items" if kind == "array" else "values"], names)
        if least == 0 and kind == "array":
            raise ValueError("a list of nothing")
        return 1, parts
    if kind == "record":
        measured = [_measured(field["type"], names) for field in schema["fields"]]
        found = sum(least for least, _ in measured), 1 + sum(parts for _, parts in measured)
    elif kind == "enum":
        found = 1, 1
    elif isinstance(kind, str) and kind in _LEAST_BYTES:
        return _LEAST_BYTES[kind], 1
    else:
        raise ValueError(f"type {str(kind)[:40]!r} is none of job history's")
    if found[1] > _MOST_PARTS:
        raise ValueError("too many parts")
    name = schema["name"]
    names[name] = names[f"{schema.get('namespace', '')}.{name}"] = found
    return found
