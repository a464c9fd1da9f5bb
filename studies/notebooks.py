"""The notebooks of docs/notebooks: their cells run, and what they give stands in them.

    python -m studies.notebooks [--check] [NAME ...]

Runs each notebook's cells in order in one process, as a notebook program would, and stores what they print and show.
With --check nothing is written; exit code 3 when a notebook does not hold what its cells give. Drawings are compared
by their titles, axes, legends and words, since labels may fall elsewhere with another version of matplotlib.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.base.errors import CallError
from harness.base.files import write_text

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
#: How tables are printed: the same whatever the terminal.
_DISPLAY = ("display.width", 100, "display.max_columns", 20)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a cell prints, and its last expression as text, as HTML (of yarnfair's own objects) and drawn."""

    printed: str = ""
    text: str | None = None
    html: str = ""
    svg: str = ""

    def same_as(self, other: Shown) -> bool:
        """Whether both show the same, drawings by their outlines."""
        words = (self.printed, self.text, self.html) == (other.printed, other.text, other.html)
        return words and outline(self.svg) == outline(other.svg)


def outline(svg: str) -> tuple[list[str], list[str], list[str]]:
    """A drawing's titles, its axes and legends, and the words and numbers on it.

    Lines and letters are left out: the same run may be drawn with other numbers of them, as labels fall.
    """
    titles = [title for title in re.findall(r"<dc:title>(.*?)</dc:title>", svg) if not title.startswith("Matplotlib v")]
    # Matplotlib draws letters as outlines, and adds each text as an XML comment.
    words = sorted(set(re.findall(r"<!-- (.*?) -->", svg)))
    return titles, re.findall(r'id="((?:axes|legend)_\d+)"', svg), words


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that are run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cells(sources: Sequence[str]) -> list[Shown]:
    """Run cells in order; what each of them shows."""
    names: dict[str, Any] = {"__name__": "__notebook__"}
    found = []
    for source in sources:
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        value: Any = None
        with contextlib.redirect_stdout(printed), pd.option_context(*_DISPLAY):
            exec(compile(tree, "<cell>", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            text = None if value is None else repr(value)
        own = type(value).__module__.startswith("yarnfair")
        html = value._repr_html_() if own and hasattr(value, "_repr_html_") else ""
        svg = value._repr_svg_() if value is not None and hasattr(value, "_repr_svg_") else ""
        found.append(Shown(printed.getvalue(), text, html, svg))
    return found


def stored(cell: dict[str, Any]) -> Shown:
    """What a cell shows in the file."""
    printed, text, html, svg = "", None, "", ""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
        else:
            data = output["data"]
            text = "".join(data["text/plain"])
            html, svg = ("".join(data.get(kind, [])) for kind in ("text/html", "image/svg+xml"))
    return Shown(printed, text, html, svg)


def store(cell: dict[str, Any], shown: Shown, number: int) -> None:
    """Put what a cell shows into it, as notebook programs do."""
    outputs: list[dict[str, Any]] = []
    if shown.printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": shown.printed.splitlines(keepends=True)})
    if shown.text is not None:
        data = {"text/plain": shown.text, "text/html": shown.html, "image/svg+xml": shown.svg}
        lines = {kind: text.splitlines(keepends=True) for kind, text in data.items() if text}
        outputs.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": lines})
    cell.update({"execution_count": number, "outputs": outputs})


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.notebooks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="notebooks, without .ipynb [all]")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 3 when one would change")
    given = parser.parse_args(arguments)
    known = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}
    if unknown := set(given.names) - set(known):
        hint = f"there are: {', '.join(known)}"
        raise CallError(f"no notebook {sorted(unknown)[0]}", where="docs/notebooks", hint=hint)
    differing = 0
    for name in given.names or known:
        notebook = json.loads(known[name].read_text(encoding="utf-8"))
        cells = code_cells(notebook)
        shown = run_cells(["".join(cell["source"]) for cell in cells])
        changed = not all(new.same_as(stored(cell)) for cell, new in zip(cells, shown, strict=True))
        differing += changed
        if changed and not given.check:
            for number, (cell, new) in enumerate(zip(cells, shown, strict=True), start=1):
                store(cell, new, number)
            write_text(known[name], json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        print(f"{name}: {'the same' if not changed else 'differs' if given.check else 'written'}")
    return 3 if differing and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
