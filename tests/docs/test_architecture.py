"""The page of drawings shows the packages in the order that the import rules hold, and names what is there."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

from harness.control import events

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS, TICK, MODELS, STATES = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)


def test_the_rooms_stand_as_the_import_rules_order_them() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one["type"] == "layers")
    levels = [{room.strip() for room in level.split(":")} - {"__main__"} for level in layers]
    height = {room: number for number, level in enumerate(levels) for room in level}
    assert set(re.findall(r'^    (\w+)\["\1: ', ROOMS, re.MULTILINE)) == set(height)
    arrows = [line.split(" --> ") for line in map(str.strip, ROOMS.splitlines()) if "-->" in line]
    pairs = [pair for chain in arrows for pair in pairwise(chain)]
    assert all(height[above] < height[below] for above, below in pairs)
    assert {room for pair in pairs for room in pair} == set(height)


def test_a_tick_has_the_cores_events_and_actions_and_no_others() -> None:
    words = set(re.findall(r"D->>C: (\w+)", TICK))
    for line in re.findall(r"C-->>D: (.*)", TICK):
        words |= set(line.split(", "))
    assert all(isinstance(getattr(events, word), type) for word in words), words
    shown = words | set(re.findall(r"`(\w+)`", PAGE))
    defined = {n for n, one in vars(events).items() if isinstance(one, type) and one.__module__ == events.__name__}
    assert defined <= shown


def test_files_and_methods_of_the_drawings_are_there() -> None:
    from harness.policies.base import Policy

    for path in re.findall(r"`((?:harness|tests|docs)/[\w/.-]+)`", PAGE):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"\b((?:sim|experiments|policies|systems)/\w+(?:\.py)?)", MODELS):
        assert (ROOT / "harness" / path).exists(), path
    for method in re.findall(r"Policy\.(\w+)", MODELS):
        assert hasattr(Policy, method), method


def test_the_states_are_reached_and_left() -> None:
    moves = re.findall(r"(\w+|\[\*\]) --> (\w+)", STATES)
    names = {name for move in moves for name in move} - {"[*]"}
    assert names == {target for _, target in moves}
    assert names == {source for source, _ in moves} - {"[*]"}
