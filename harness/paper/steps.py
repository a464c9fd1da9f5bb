"""Scenarios of steps: unit tasks that arrive step by step. Their YAML, the tree of queues, and the answer.

Who gets which unit: harness.paper.units. The format: docs/reference/scenario.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import yaml

from harness.base.sums import plain
from harness.paper.reader import Fields, read_top, shown

MAX_DEPTH = 60
#: Columns of a terminal.
WIDTH = 80


@dataclass(frozen=True, slots=True)
class ScenarioQueue:
    """A queue of a scenario: its name, entitlement, and children (none: a leaf)."""

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
    """Unit tasks of one step: ``arrivals[t]`` are the new tasks of step t + 1 by leaf name.

    ``capacity`` is units a step. ``steps`` None: until everything has been served.
    """

    capacity: int
    queues: tuple[ScenarioQueue, ...]
    arrivals: tuple[dict[str, int], ...]
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """What each leaf got: units per step (zeros too), totals, and counted accumulated resources at the end."""

    policy: str
    steps: list[dict[str, int]]
    totals: dict[str, int]
    counted: dict[str, Fraction]

    def document(self) -> dict[str, object]:
        """For ``--json``: whole counts as integers, others as floats."""
        counted = {leaf: plain(c) for leaf, c in self.counted.items()}
        return {"policy": self.policy, "steps": self.steps, "totals": self.totals, "counted": counted}

    def table(self) -> str:
        """Steps down, leaves across, in blocks that fit 80 columns; totals and counted below."""
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
    """The scenario in a YAML text. ``source`` names the file in messages. InputError for whatever is wrong with it."""
    return read_steps(read_top(text, source))


def read_steps(top: Fields) -> StepsScenario:
    """A scenario of steps from its fields."""
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
    # Ties are broken by name in byte order, at each level.
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
