"""The notebooks of docs/: their cells run, and show what stands there."""

from __future__ import annotations

import json

import pytest

from studies.notebooks import FOLDER, Shown, code_cells, run_cells, store, stored

#: The least number of cells with code, and of pictures.
NOTEBOOKS = {
    "compare-policies": (5, 2),
    "reproduce-a-figure": (3, 1),
    "own-policy-against-ltrf": (4, 1),
    "a-trace-of-your-own": (4, 1),
}


def test_every_notebook_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NOTEBOOKS)


@pytest.mark.xdist_group("regressions")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_shows_what_its_cells_give(name: str) -> None:
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = code_cells(notebook)
    least_cells, pictures = NOTEBOOKS[name]
    assert len(cells) >= least_cells
    given = run_cells(["".join(cell["source"]) for cell in cells])
    for cell, shown in zip(cells, given, strict=True):
        assert shown.same_as(stored(cell)), ("".join(cell["source"]), shown.printed, shown.text)
    assert sum(bool(shown.svg) for shown in given) >= pictures


def test_what_a_cell_shows_is_kept_and_a_change_of_it_is_seen() -> None:
    (shown,) = run_cells(["print('a')\nclass Mine:\n    def __repr__(self):\n        return 'mine'\nMine()"])
    assert shown == Shown("a\n", "mine")
    cell = {"cell_type": "code", "outputs": []}
    store(cell, shown, 1)
    assert stored(cell) == shown
    for other in (Shown("b\n", "mine"), Shown("a\n", "other"), Shown("a\n", "mine", "<b>"), Shown("a\n", None)):
        assert not other.same_as(shown)


def test_another_number_on_a_drawing_is_a_change() -> None:
    """Axes kept thin spaces, which some fonts do not have, long after they were drawn with commas."""
    drawn = '<g id="text_2">\n<!-- {} -->\n<g style="fill: #000"/></g>'
    old, new = (Shown(svg=drawn.format(number)) for number in ("1\u202f000", "1,000"))
    assert not old.same_as(new)
    assert new.same_as(Shown(svg=drawn.format("1,000").replace("text_2", "text_3")))
    for path in FOLDER.glob("*.ipynb"):
        assert not {"\u2009", "\u202f"} & set(path.read_text(encoding="utf-8")), path.name
