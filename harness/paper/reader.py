"""Reads a scenario's YAML, exactly and with the line of every mistake. What the fields mean: one module a family.

Numbers are kept as the decimals that were written (fractions), so 0.1 is one tenth.
The format: docs/reference/scenario.md.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Any

import yaml

from harness.base.errors import InputError
from harness.policies.base import read_decimal

MAX_TEXT_BYTES = 20_000_000
MAX_NODES = 2_000_000
MAX_DEPTH = 60
MAX_COUNT = 10**15
#: Numbers other than 0 are between 10^-60 and 10^60: figures made of several of them are still floats.
MAX_EXPONENT = 60

#: name -> (key node, value node), of a mapping.
Fields = dict[str, tuple[yaml.Node, yaml.Node]]


class Reader:
    """Walks YAML nodes; every complaint has file and line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.nodes = 0

    def fail(self, node: yaml.Node | None, what: str, mend: str | None = None) -> InputError:
        where = self.source if node is None else f"{self.source}:{node.start_mark.line + 1}"
        return InputError(what, where=where, mend=mend)

    def count(self, node: yaml.Node) -> None:
        # Anchors let a short text stand for an endless document.
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.fail(node, f"more than {MAX_NODES:,} values once its anchors are expanded")

    def mapping(self, node: yaml.Node, what: str) -> Fields:
        """name -> (key node, value node). null is an empty mapping."""
        self.count(node)
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise self.fail(node, f"{what} is not a mapping", "write name: value pairs")
        found: Fields = {}
        for key, value in node.value:
            self.count(value)
            if not isinstance(key, yaml.ScalarNode):
                raise self.fail(key, f"a name in {what} is not a text")
            if key.tag == "tag:yaml.org,2002:merge":
                raise self.fail(key, "merge keys (<<) are not read", "write the values out")
            if key.value in found:
                raise self.fail(key, f"{shown(key.value)} appears twice in {what}")
            found[key.value] = (key, value)
        return found

    def only(self, fields: Fields, known: Collection[str], what: str) -> None:
        """Raises InputError for a field that `what` does not have."""
        for name, (key, _) in fields.items():
            if name not in known:
                raise self.fail(key, f"unknown field {shown(name)} of {what}", f"it has {', '.join(known)}")

    def weight(self, fields: Fields, name: str) -> Fraction:
        """The ``weight`` of a queue or job called `name`: above 0, 1 where none is written."""
        if "weight" not in fields:
            return Fraction(1)
        return self.above_zero(fields["weight"][1], f"the weight of {shown(name)}", "weights are above 0")

    def above_zero(self, node: yaml.Node, what: str, mend: str = "give a number above 0") -> Fraction:
        value = self.number(node, what)
        if value <= 0:
            raise self.fail(node, f"{what} is {shown(str(node.value))}", mend)
        return value

    def number(self, node: yaml.Node, what: str) -> Fraction:
        """A number exactly as written, 0 or of a size between 10^-60 and 10^60. InputError for anything else."""
        self.count(node)
        # Unquoted: YAML 1.1 takes 1e-3 for a text, people do not.
        if isinstance(node, yaml.ScalarNode) and not node.style:
            value = read_decimal(node.value)
            if value is not None:
                if value and not Fraction(1, 10**MAX_EXPONENT) <= abs(value) <= 10**MAX_EXPONENT:
                    mend = f"give a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}, or other units"
                    raise self.fail(node, f"{what} is {shown(node.value)}", mend)
                return value
        text = node.value if isinstance(node, yaml.ScalarNode) else "a list or mapping"
        raise self.fail(node, f"{what} is {shown(text)}, not a finite decimal number")

    def whole(self, node: yaml.Node, what: str, *, least: int) -> int:
        value = self.number(node, what)
        if value.denominator != 1 or not least <= value <= MAX_COUNT:
            raise self.fail(node, f"{what} is {shown(str(node.value))}", f"give a whole number of at least {least}")
        return int(value)


def shown(text: str) -> str:
    """A user's text for a message: quoted, on one line, not longer than 60 characters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def read_top(text: str, source: str) -> tuple[Reader, Fields]:
    """The fields of a scenario of any kind, and a reader for them. InputError if the text is no YAML mapping."""
    reader = Reader(source)
    top = reader.mapping(_compose(text, reader), "the scenario")
    if not top:
        raise reader.fail(None, "is empty", "give capacity, queues and arrivals (docs/reference/scenario.md)")
    return reader, top


def _compose(text: str, reader: Reader) -> yaml.Node:
    if len(text) > MAX_TEXT_BYTES:
        raise reader.fail(None, f"is longer than {MAX_TEXT_BYTES:,} characters")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # The parser keeps its own stack, the composer uses the machine's: depth is looked at before it composes.
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
