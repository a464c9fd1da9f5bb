"""Reader of scenario files: parses YAML with exact numbers, and reports each error with its line.

Numbers are kept as written, as fractions, so 0.1 is exactly one tenth. Each family's module defines the meaning of its
fields. docs/reference/scenario.md describes the format.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import Any

import yaml

from harness.base.errors import InputError
from harness.policies.base import read_decimal

MAX_TEXT_BYTES = 20_000_000
MAX_NODES = 2_000_000
MAX_DEPTH = 60
MAX_COUNT = 10**15
#: Numbers other than 0 must be between 10^-60 and 10^60, so that products of several of them are still finite floats.
MAX_EXPONENT = 60


class Reader:
    """Converts YAML nodes to `Fields`, and creates errors with file and line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.nodes = 0

    def where(self, node: yaml.Node) -> str:
        """Return the node's file and line, for messages."""
        return f"{self.source}:{node.start_mark.line + 1}"

    def fail(self, node: yaml.Node | None, what: str, hint: str | None = None) -> InputError:
        """Return the error for a node; the caller raises it."""
        return InputError(what, where=self.source if node is None else self.where(node), hint=hint)

    def count(self, node: yaml.Node) -> None:
        """Count a value. Raises InputError if anchors expand to too many values."""
        # With anchors a short text can expand to a huge document.
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.fail(node, f"more than {MAX_NODES:,} values once its anchors are expanded")

    def mapping(
        self, node: yaml.Node, what: str, known: Collection[str] | None = None, place: yaml.Node | None = None
    ) -> Fields:
        """Return the fields of a mapping; a null is an empty mapping.

        ``known`` are the allowed names (None: any). ``place`` is as in `Fields`. Raises InputError for anything else.
        """
        self.count(node)
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return Fields(self, what, place, {})
        if not isinstance(node, yaml.MappingNode):
            raise self.fail(node, f"{what} is not a mapping", "write name: value pairs")
        found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            self.count(value)
            if not isinstance(key, yaml.ScalarNode):
                raise self.fail(key, f"a name in {what} is not a text")
            if key.tag == "tag:yaml.org,2002:merge":
                raise self.fail(key, "merge keys (<<) are not read", "write the values out")
            if key.value in found:
                raise self.fail(key, f"{shown(key.value)} appears twice in {what}")
            found[key.value] = (key, value)
        fields = Fields(self, what, place, found)
        if known is not None:
            fields.only(known)
        return fields


class Fields(Mapping[str, yaml.Node]):
    """A mapping in a scenario, from names to YAML nodes. ``what`` is its name in error messages.

    ``place`` is its position for errors on the whole mapping; None for the scenario itself.
    """

    def __init__(
        self, reader: Reader, what: str, place: yaml.Node | None, found: dict[str, tuple[yaml.Node, yaml.Node]]
    ) -> None:
        self.reader, self.what, self.place, self.found = reader, what, place, found

    def __getitem__(self, name: str) -> yaml.Node:
        return self.found[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def fail(self, what: str, hint: str | None = None, *, at: str | None = None, key: str | None = None) -> InputError:
        """Return the error for the value of field `at`, for the name `key`, or for the whole mapping."""
        node = self[at] if at is not None else self.found[key][0] if key is not None else self.place
        return self.reader.fail(node, what, hint)

    def only(self, known: Collection[str], what: str | None = None) -> None:
        """Raise InputError for a field whose name is not in ``known``."""
        for name in self:
            if name not in known:
                what, has = what or self.what, f"it has {', '.join(known)}"
                raise self.fail(f"unknown field {shown(name)} of {what}", has, key=name)

    def needs(self, names: Collection[str], hint: str | None = None) -> None:
        """Raise InputError for the first of these fields that is missing."""
        for name in names:
            if name not in self:
                raise self.fail(f"{self.what} has no {name}" if self.place else f"has no {name}", hint)

    def mapping(self, name: str, what: str | None = None, known: Collection[str] | None = None) -> Fields:
        """Return a field that is a mapping. Raises InputError."""
        return self.reader.mapping(self[name], what or name, known, self.found[name][0])

    def some(self, name: str, what: str | None = None) -> Fields:
        """Return a field that is a mapping and not empty. Raises InputError."""
        found = self.mapping(name)
        if not found:
            raise self.fail(f"no {what or name}", "name at least one", at=name)
        return found

    def queue(self, name: str, known: Collection[str]) -> Fields:
        """Return the fields of the queue `name`. Raises InputError for an invalid name."""
        if not name or "." in name:
            raise self.fail(f"{shown(name)} is not a queue name", "a name is not empty and has no dot", key=name)
        return self.mapping(name, f"queue {shown(name)}", known)

    def items_of(self, name: str, what: str, hint: str) -> list[yaml.Node]:
        """Return the items of a list. Raises InputError if the field is not a list."""
        self.reader.count(self[name])
        if not isinstance(self[name], yaml.SequenceNode):
            raise self.fail(f"{what} is not a list", hint, at=name)
        return list(self[name].value)

    def weight(self, name: str) -> Fraction:
        """Return the ``weight`` of the queue or job `name`, which is above 0; 1 if it is absent."""
        if "weight" not in self:
            return Fraction(1)
        return self.above_zero("weight", f"the weight of {shown(name)}", "weights are above 0")

    def above_zero(self, name: str, what: str, hint: str = "give a number above 0") -> Fraction:
        """Return a field that is a number above 0. Raises InputError."""
        value = self.number(name, what)
        if value <= 0:
            raise self.fail(f"{what} is {shown(str(self[name].value))}", hint, at=name)
        return value

    def number(
        self,
        name: str,
        what: str | None = None,
        *,
        least: int | None = None,
        most: int = 10**MAX_EXPONENT,
        other: int = 0,
    ) -> Fraction:
        """Return a number exactly as written, or ``other`` if the field is absent.

        Raises InputError unless it is between `least` and `most`, and is 0 or has a size from 10^-60 to 10^60.
        """
        if name not in self:
            return Fraction(other)
        node, what = self[name], what or name
        self.reader.count(node)
        # Parse the unquoted text, because YAML 1.1 takes 1e-3 for a string.
        value = read_decimal(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else None
        if value is None:
            text = node.value if isinstance(node, yaml.ScalarNode) else "a list or mapping"
            raise self.fail(f"{what} is {shown(text)}, not a finite decimal number", at=name)
        if value and not Fraction(1, 10**MAX_EXPONENT) <= abs(value) <= 10**MAX_EXPONENT:
            hint = f"give a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}, or other units"
            raise self.fail(f"{what} is {shown(node.value)}", hint, at=name)
        if least is not None and not least <= value <= most:
            upper = f" to {most:,}" if most < 10**MAX_EXPONENT else " on"
            raise self.fail(f"{what} is {shown(node.value)}", f"give a number from {least}{upper}", at=name)
        return value

    def whole(self, name: str, what: str | None = None, *, least: int, most: int = MAX_COUNT, other: int = 0) -> int:
        """Return a whole number between `least` and `most`, or ``other`` if the field is absent. Raises InputError."""
        value, what = self.number(name, what, other=other), what or name
        if value.denominator != 1 or not least <= value <= most:
            which = f"from {least} to {most:,}" if most < MAX_COUNT else f"of at least {least}"
            raise self.fail(f"{what} is {shown(str(self[name].value))}", f"give a whole number {which}", at=name)
        return int(value)


def shown(text: str) -> str:
    """Return a user's text for a message: quoted, on one line, at most 60 characters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def read_top(text: str, source: str) -> Fields:
    """Parse a scenario of any family and return its fields. Raises InputError if the text is no YAML mapping."""
    reader = Reader(source)
    top = reader.mapping(_compose(text, reader), "the scenario")
    if not top:
        raise reader.fail(None, "is empty", "give capacity, queues and arrivals (docs/reference/scenario.md)")
    return top


def _compose(text: str, reader: Reader) -> yaml.Node:
    if len(text) > MAX_TEXT_BYTES:
        raise reader.fail(None, f"is longer than {MAX_TEXT_BYTES:,} characters")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Check the depth before composing: the composer recurses on the C stack, the parser does not.
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > 2 * MAX_DEPTH + 10:
                raise InputError(f"nests deeper than {2 * MAX_DEPTH + 10}", where=reader.source)
        node = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{reader.source}:{mark.line + 1}" if mark else reader.source
        raise InputError(f"is not YAML: {error.problem or error.context}", where=where) from error
    except (yaml.YAMLError, RecursionError, ValueError, UnicodeError) as error:
        raise InputError(f"is not YAML: {str(error) or type(error).__name__}", where=reader.source) from error
    if node is None:
        raise reader.fail(None, "is empty", "give capacity, queues and arrivals (docs/reference/scenario.md)")
    return node
