"""Imports make no circles: neither of files nor of rooms, whether at the top of a file or inside a function."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def imports_of(folder: Path) -> dict[str, set[str]]:
    """Module -> the modules of the same package that it imports, anywhere in its file (for types only, too)."""
    files = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: set(_imported(name, path, files)) - {name} for name, path in files.items()}


def _imported(name: str, path: Path, files: Mapping[str, Path]) -> Iterable[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, node.module] if node.module else above)
            for alias in node.names:
                found = f"{base}.{alias.name}" if f"{base}.{alias.name}" in files else base
                if found in files:
                    yield found


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of two or more that can all reach one another (Tarjan's components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(imports.get(name, ())):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in sorted(imports):
        if name not in order:
            visit(name)
    return found


def rooms(imports: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """The same between the rooms, the folders right below the package."""
    found: dict[str, set[str]] = {}
    for name, others in imports.items():
        room = ".".join(name.split(".")[:2])
        found.setdefault(room, set()).update(".".join(other.split(".")[:2]) for other in others)
    return {room: others - {room} for room, others in found.items()}


def test_no_circle_of_files() -> None:
    assert circles(imports_of(ROOT / "harness")) == []


def test_no_circle_of_rooms() -> None:
    assert circles(rooms(imports_of(ROOT / "harness"))) == []


def test_a_circle_is_found_where_there_is_one(tmp_path: Path) -> None:
    house = tmp_path / "house"
    for name, text in {
        "__init__": "",
        "a/__init__": "",
        "a/one": "def f():\n    from ..b import two\n",
        "a/other": "import house.a.one\n",
        "b/__init__": "",
        "b/two": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.a import one\n",
        "b/three": "from house.b.two import x\n",
    }.items():
        path = house / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    imports = imports_of(house)
    assert circles(imports) == [["house.a.one", "house.b.two"]]
    assert circles(rooms(imports)) == [["house.a", "house.b"]]
