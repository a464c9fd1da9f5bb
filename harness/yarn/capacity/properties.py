"""A Hadoop configuration file (``capacity-scheduler.xml``): its properties, and edits that leave all other bytes alone.

Read as Hadoop reads it: the last of two properties of one name counts, names are trimmed (values are where they are
used: what is given back is given back with its white space). What Hadoop would
resolve by itself and an edit could not follow (``xi:include``, ``${...}`` in a capacity) is refused where it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import escape

from harness.base.errors import InputError
from harness.yarn.files import MAX_BYTES

PREFIX = "yarn.scheduler.capacity."
#: From here on a user-limit-factor, and a maximum-am-resource-percent, hold a lone user to nothing at any usual share.
ENOUGH = 1000.0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a property stands: its text, the bytes of its value's content, and those of the whole element."""

    value: str
    begin: int
    end: int
    outer_begin: int
    outer_end: int


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    """The properties of one file, name -> value, and where each stands in its bytes."""

    data: bytes
    values: Mapping[str, str]
    _places: Mapping[str, _Place]
    _end: int

    def edited(self, changes: Mapping[str, str | None]) -> bytes:
        """The file with these values; None removes a property. Only their bytes differ; new ones stand at the end."""
        cuts: list[tuple[int, int, bytes]] = []
        new: list[str] = []
        for name, value in changes.items():
            place = self._places.get(name)
            if place is None:
                if value is not None:
                    new.append(f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n")
            elif value is None:
                begin, end = place.outer_begin, place.outer_end
                # A line of its own goes whole.
                line = self.data.rfind(b"\n", 0, begin) + 1
                if not self.data[line:begin].strip() and self.data[end : end + 1] == b"\n":
                    begin, end = line, end + 1
                cuts.append((begin, end, b""))
            elif value != place.value:
                cuts.append((place.begin, place.end, escape(value).encode()))
        if new:
            line = self.data.rfind(b"\n", 0, self._end) + 1
            at = line if not self.data[line : self._end].strip() else self._end
            lead = b"" if at == line and line else b"\n"
            cuts.append((at, at, lead + "".join(new).encode()))
        data, last, parts = self.data, 0, []
        for begin, end, text in sorted(cuts):
            parts += [data[last:begin], text]
            last = end
        return b"".join([*parts, data[last:]])


def parse_configuration(data: bytes, *, source: str) -> ConfigurationFile:
    """The properties in a configuration file. InputError for what Hadoop would refuse, or an edit could not keep."""
    if len(data) > MAX_BYTES:
        raise InputError("too large for a configuration file", where=source)
    reader = _Reader(data, source)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(f"no XML ({expat.ErrorString(error.code)})", where=f"{source}:{error.lineno}") from None
    return ConfigurationFile(
        data, {name: place.value for name, place in reader.found.items()}, reader.found, reader.end
    )


class _Reader:
    """Follows expat through one file."""

    def __init__(self, data: bytes, source: str) -> None:
        self.data, self.source = data, source
        self.found: dict[str, _Place] = {}
        self.end = len(data)
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = False
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._close
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        self._path: list[str] = []
        self._texts: dict[str, list[str]] = {}
        self._outer = self._inner = 0
        self._value: tuple[int, int] | None = None

    def _fail(self, what: str, mend: str) -> InputError:
        return InputError(what, where=f"{self.source}:{self.parser.CurrentLineNumber}", mend=mend)

    def _doctype(self, *_: object) -> None:
        raise self._fail("a document type", "take it out: Hadoop refuses it as well")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if not self._path and name != "configuration":
            raise self._fail(f"the root element is <{name[:40]}>", "a Hadoop configuration begins with <configuration>")
        if name.endswith("include"):
            raise self._fail("an included file", "write its properties into this one: they could not be given back")
        self._path.append(name)
        if self._path == ["configuration", "property"]:
            if attributes:
                raise self._fail("a property as attributes", "write <property><name>...</name><value>...</value>")
            self._outer, self._texts, self._value = self.parser.CurrentByteIndex, {}, None
        elif len(self._path) == 3:
            self._texts[name] = []
            self._inner = self._behind_tag()

    def _behind_tag(self) -> int:
        """The byte behind the tag that begins here."""
        return self.data.index(b">", self.parser.CurrentByteIndex) + 1

    def _text(self, text: str) -> None:
        if len(self._path) == 3:
            self._texts[self._path[2]].append(text)

    def _close(self, name: str) -> None:
        at = self.parser.CurrentByteIndex
        if len(self._path) == 3 and name == "value":
            # <value/> has no content to write into.
            empty = self.data[self._inner - 2 : self._inner] == b"/>"
            self._value = None if empty else (self._inner, at)
        elif self._path == ["configuration", "property"]:
            key = "".join(self._texts.get("name", [])).strip()
            if key and "value" in self._texts:
                if self._value is None and key.startswith(PREFIX) and key.endswith(("capacity", "policy")):
                    raise self._fail(f"{key} has an empty value", "give it a value, or take it out")
                begin, end = self._value or (0, 0)
                value = "".join(self._texts["value"])
                self.found[key] = _Place(value, begin, end, self._outer, self._behind_tag())
        elif self._path == ["configuration"]:
            self.end = at
        self._path.pop()
