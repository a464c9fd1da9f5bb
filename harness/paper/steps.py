"""Scenarios of steps: unit tasks that arrive step by step. Reads their YAML and the queue tree, and formats the answer.

harness.paper.units decides which queue gets each unit. docs/reference/scenario.md describes the format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import yaml

from harness.base.sums import plain
from harness.paper.reader import Fields, read_top, shown

MAX_DEPTH = 60
#: Width of a terminal, columns.
WIDTH = 80


@dataclass(frozen=True, slots=True)
class ScenarioQueue:
    """A queue of a scenario: its name, entitlement, and children (empty for a leaf)."""

    name: str
    weight: Fraction
    children: tuple[ScenarioQueue, ...] = ()

    def leaves(self) -> Iterator[ScenarioQueue]:
        """Yield the leaves below this queue, or the queue itself if it is a leaf."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True, slots=True)
class StepsScenario:
    """A scenario of tasks that take one unit for one step.

    ``arrivals[t]`` has the new tasks of step t + 1 by leaf name.

    ``capacity`` is the number of units per step. ``steps`` is the number of steps; None: until all tasks have been
    served.
    """

    capacity: int
    queues: tuple[ScenarioQueue, ...]
    arrivals: tuple[dict[str, int], ...]
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """The answer: each leaf's units per step (including zeros), total units, and counted resources at the end."""

    policy: str
    steps: list[dict[str, int]]
    totals: dict[str, int]
    counted: dict[str, Fraction]

    def document(self) -> dict[str, object]:
        """Return the answer for ``--json``, with whole counts as integers and others as floats."""
        counted = {leaf: plain(c) for leaf, c in self.counted.items()}
        return {"policy": self.policy, "steps": self.steps, "totals": self.totals, "counted": counted}

    def table(self) -> str:
        """Return the answer as text.

        One line per step and one column per leaf, in blocks of 80 columns, then totals and counts.
        """
        rows: list[tuple[str, dict[str, str]]] = [
            (str(number), {leaf: str(units) for leaf, units in step.items()})
            for number, step in enumerate(self.steps, start=1)
        ]
        rows.append(("total", {leaf: str(units) for leaf, units in self.totals.items()}))
        rows.append(("counted", {leaf: f"{float(c):.10g}" for leaf, c in self.counted.items()}))
        first = max(len("counted"), *(len(label) for label, _ in rows))
        lines = [f"policy {self.policy}: units per step"]
        block: list[str] = []
        used = first
        blocks: list[list[str]] = []
        widths = {leaf: max(len(leaf), *(len(cells[leaf]) for _, cells in rows)) for leaf in self.totals}
        for leaf, width in widths.items():
            if block and used + 2 + width > WIDTH:
                blocks.append(block)
                block, used = [], first
            block.append(leaf)
            used += 2 + width
        blocks.append(block)
        for block in blocks:
            lines.append("")
            lines.append("step".ljust(first) + "".join("  " + leaf.rjust(widths[leaf]) for leaf in block))
            for label, cells in rows:
                if label == "total":
                    lines.append("-" * (first + sum(2 + widths[leaf] for leaf in block)))
                lines.append(label.ljust(first) + "".join("  " + cells[leaf].rjust(widths[leaf]) for leaf in block))
        return "\n".join(lines)


def read_scenario(text: str, source: str) -> StepsScenario:
    """Read the scenario in a YAML text. ``source`` is the file's name in messages. Raises InputError."""
    return read_steps(read_top(text, source))


def read_steps(top: Fields) -> StepsScenario:
    """Read a scenario of steps from its fields. Raises InputError."""
    top.only(("capacity", "queues", "arrivals", "steps", "description"), "a scenario of steps")
    top.needs(("capacity", "queues", "arrivals"), "a scenario of steps has capacity, queues and arrivals")
    if isinstance(top["capacity"], yaml.MappingNode):
        what = "a capacity of several resources makes a scenario of vectors, which has no arrivals"
        raise top.fail(what, "give capacity as a number of units, or every queue its task", at="capacity")
    capacity = top.whole("capacity", least=1)
    queues = _queues(top.some("queues"), (top["queues"],))
    names: dict[str, None] = {}
    for queue in queues:
        for leaf in queue.leaves():
            if leaf.name in names:
                raise top.fail(f"two leaves are called {shown(leaf.name)}", "rename one", at="queues")
            names[leaf.name] = None
    arrivals = _arrivals(top, names)
    return StepsScenario(capacity, queues, arrivals, top.whole("steps", least=0) if "steps" in top else None)


def _queues(queues: Fields, above: tuple[yaml.Node, ...]) -> tuple[ScenarioQueue, ...]:
    if len(above) > MAX_DEPTH:
        raise queues.fail(f"queues nest deeper than {MAX_DEPTH}")
    found = []
    for name in queues:
        fields = queues.queue(name, ("weight", "children"))
        children: tuple[ScenarioQueue, ...] = ()
        if "children" in fields:
            below, what = fields["children"], f"children of {shown(name)}"
            if any(below is ancestor for ancestor in above):
                hint = "a queue tree has no cycles: remove the anchor"
                raise fields.fail(f"{what} contains itself", hint, at="children")
            children = _queues(fields.mapping("children", what), (*above, below))
            if not children:
                raise fields.fail(f"{shown(name)} has no children", "drop the field or fill it", key="children")
        found.append(ScenarioQueue(name, fields.weight(name), children))
    # Sort queues by the bytes of their names at each level; ties are broken in this order.
    return tuple(sorted(found, key=lambda queue: queue.name.encode()))


def _arrivals(top: Fields, leaves: dict[str, None]) -> tuple[dict[str, int], ...]:
    found = []
    for number, item in enumerate(top.items_of("arrivals", "arrivals", "write one {queue: tasks} per step"), start=1):
        step = top.reader.mapping(item, f"arrivals of step {number}")
        for name in step:
            if name not in leaves:
                offer = ", ".join(list(leaves)[:8]) + (", ..." if len(leaves) > 8 else "")
                what = f"arrivals for {shown(name)}, which is not a leaf queue"
                raise step.fail(what, f"leaves: {offer}", key=name)
        found.append({name: step.whole(name, f"arrivals of {shown(name)} in step {number}", least=0) for name in step})
    return tuple(found)
