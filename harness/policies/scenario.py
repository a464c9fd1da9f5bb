"""Scenarios on paper: reading their YAML, exactly and with the line of every mistake. No allocation here.

Numbers are kept as the decimals that were written (fractions), so 0.1 is one tenth.
The format: docs/reference/scenario.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ScenarioQueue:
    """A queue of a scenario: its name, entitlement, and children (none: a leaf)."""

    name: str
    weight: Fraction
    children: tuple[ScenarioQueue, ...] = ()

    def leaves(self) -> Iterator[ScenarioQueue]:
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True, slots=True)
class StepsScenario:
    """Unit tasks of one step: ``arrivals[t]`` are the new tasks of step t + 1 by leaf name.

    ``capacity`` is units a step. ``steps`` None: until everything has been served.
    """

    capacity: int
    queues: tuple[ScenarioQueue, ...]
    arrivals: tuple[dict[str, int], ...]
    steps: int | None = None


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

    def mapping(self, node: yaml.Node, what: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """name -> (key node, value node). null is an empty mapping."""
        self.count(node)
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return {}
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
                raise self.fail(key, f"{shown(key.value)} stands twice in {what}")
            found[key.value] = (key, value)
        return found

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


def read_top(text: str, source: str) -> tuple[Reader, dict[str, tuple[yaml.Node, yaml.Node]]]:
    """The fields of a scenario of any kind, and a reader for them. InputError if the text is no YAML mapping."""
    reader = Reader(source)
    top = reader.mapping(_compose(text, reader), "the scenario")
    if not top:
        raise reader.fail(None, "is empty", "give capacity, queues and arrivals (docs/reference/scenario.md)")
    return reader, top


def read_scenario(text: str, source: str) -> StepsScenario:
    """The scenario in a YAML text. ``source`` names the file in messages. InputError for whatever is wrong with it."""
    return read_steps(*read_top(text, source))


def read_steps(reader: Reader, top: dict[str, tuple[yaml.Node, yaml.Node]]) -> StepsScenario:
    """A scenario of steps from its fields."""
    known = ("capacity", "queues", "arrivals", "steps", "description")
    for name, (key, _) in top.items():
        if name not in known:
            raise reader.fail(key, f"unknown field {shown(name)}", f"a scenario has {', '.join(known)}")
    for name in ("capacity", "queues", "arrivals"):
        if name not in top:
            raise reader.fail(None, f"has no {name}", "a scenario of steps has capacity, queues and arrivals")
    capacity_node = top["capacity"][1]
    if isinstance(capacity_node, yaml.MappingNode):
        raise reader.fail(
            capacity_node,
            "a capacity of several resources makes a scenario of vectors, which has no arrivals",
            "give capacity as a number of units, or every queue its task",
        )
    capacity = reader.whole(capacity_node, "capacity", least=1)
    queues = _queues(reader, top["queues"][1], "queues", ())
    if not queues:
        raise reader.fail(top["queues"][1], "no queues", "name at least one")
    names: dict[str, None] = {}
    for queue in queues:
        for leaf in queue.leaves():
            if leaf.name in names:
                raise reader.fail(top["queues"][1], f"two leaves are called {shown(leaf.name)}", "rename one")
            names[leaf.name] = None
    arrivals = _arrivals(reader, top["arrivals"][1], names)
    steps = reader.whole(top["steps"][1], "steps", least=0) if "steps" in top else None
    return StepsScenario(capacity, queues, arrivals, steps)


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


def _queues(reader: Reader, node: yaml.Node, what: str, above: tuple[yaml.Node, ...]) -> tuple[ScenarioQueue, ...]:
    if any(node is ancestor for ancestor in above):
        raise reader.fail(node, f"{what} contains itself", "a queue tree has no cycles: remove the anchor")
    if len(above) >= MAX_DEPTH:
        raise reader.fail(node, f"queues nest deeper than {MAX_DEPTH}")
    found = []
    for name, (key, body) in reader.mapping(node, what).items():
        if not name or "." in name:
            raise reader.fail(key, f"{shown(name)} is no queue name", "a name is not empty and has no dot")
        fields = reader.mapping(body, f"queue {shown(name)}")
        for field, (field_key, _) in fields.items():
            if field not in ("weight", "children"):
                raise reader.fail(
                    field_key, f"unknown field {shown(field)} of queue {shown(name)}", "a queue has weight and children"
                )
        weight = Fraction(1)
        if "weight" in fields:
            weight_node = fields["weight"][1]
            weight = reader.number(weight_node, f"the weight of {shown(name)}")
            if weight <= 0:
                raise reader.fail(
                    weight_node, f"the weight of {shown(name)} is {shown(weight_node.value)}", "weights are above 0"
                )
        children: tuple[ScenarioQueue, ...] = ()
        if "children" in fields:
            children = _queues(reader, fields["children"][1], f"children of {shown(name)}", (*above, node))
            if not children:
                raise reader.fail(fields["children"][0], f"{shown(name)} has no children", "drop the field or fill it")
        found.append(ScenarioQueue(name, weight, children))
    # Ties are broken by name in byte order, at each level.
    return tuple(sorted(found, key=lambda queue: queue.name.encode()))


def _arrivals(reader: Reader, node: yaml.Node, leaves: dict[str, None]) -> tuple[dict[str, int], ...]:
    reader.count(node)
    if not isinstance(node, yaml.SequenceNode):
        raise reader.fail(node, "arrivals is not a list", "write one {queue: tasks} per step")
    found = []
    for position, item in enumerate(node.value):
        step: dict[str, int] = {}
        for name, (key, value) in reader.mapping(item, f"arrivals of step {position + 1}").items():
            if name not in leaves:
                offer = ", ".join(list(leaves)[:8]) + (", ..." if len(leaves) > 8 else "")
                raise reader.fail(key, f"arrivals for {shown(name)}, which is no leaf queue", f"leaves: {offer}")
            step[name] = reader.whole(value, f"arrivals of {shown(name)} in step {position + 1}", least=0)
        found.append(step)
    return tuple(found)
