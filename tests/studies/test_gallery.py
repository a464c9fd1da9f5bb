"""The gallery: each drawing is what its record gives, each stands on the page with a sentence, theirs are grey."""

from __future__ import annotations

import re

import pytest
from lxml import etree

from harness.report.gallery.panels import PANELS, THEIRS, Panel, bars
from harness.report.svg import COLOURS
from studies.figures import DOCS, SOURCES, pages
from studies.gallery import drawing, values_table


def test_every_drawing_is_what_the_records_give_and_nothing_else_lies_there() -> None:
    drawn = {path: text for path, text in pages() if path.suffix == ".svg"}
    assert {path.name for path in (DOCS / "gallery").iterdir()} == {path.name for path in drawn}
    stale = [path.name for path, text in drawn.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "make figures"


def test_every_figure_stands_on_the_page_once_with_its_finding() -> None:
    source = (SOURCES / "gallery.md").read_text(encoding="utf-8")
    named = re.findall(r"\{figure ([\w.-]+)\}", source)
    assert named == list(dict.fromkeys(named))
    assert set(named) == set(PANELS)
    for after in re.split(r"\{figure [\w.-]+\}\n\n", source)[1:]:
        sentence = after.partition("\n\n")[0]
        assert re.fullmatch(r"[A-Z].*\.\)?", sentence.strip(), re.S), sentence


@pytest.mark.parametrize("name", sorted(PANELS))
def test_a_drawing_is_well_formed_loads_nothing_and_describes_each_bar(name: str) -> None:
    path = DOCS / "gallery" / f"{name}.svg"
    root = etree.fromstring(path.read_bytes())
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"href|url\(|<script|@import", text)
    (described,) = root.findall("{*}desc")
    assert "@media (prefers-color-scheme:dark)" in text
    panel = PANELS[name]
    for series in [*panel.ours, *(panel.theirs or {})]:
        assert f", {series}: " in (described.text or "") or series in text
    assert (f'fill="{COLOURS[THEIRS]}"' in text) == (panel.theirs is not None), "grey is the paper's, and nothing else"


def test_the_page_has_the_papers_values_beside_ours_below_a_heading_with_the_figures_number() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for name, panel in PANELS.items():
        _, _, shown = page.partition(f"### {panel.title}\n\n![{panel.title}](gallery/{name}.svg)\n\n")
        assert shown, name
        rows = [line.split(" | ")[0] for line in shown.partition("\n\n")[0].splitlines()]
        assert all(f"| {series}" in rows for series in panel.theirs or {}), name
    panel = Panel("t", "y", "r", ("x", "y"), {"ours": "a/[x;y]"}, {"paper": (None, 3.0)}, digits=1)
    table = values_table(panel, {"a": {"x": 0.25, "y": 0.5}}).splitlines()
    assert table == ["| y | x | y |", "| --- | ---: | ---: |", "| ours | 0.2 | 0.5 |", "| paper | \u2013 | 3.0 |"]


def test_a_bar_is_the_records_value_and_a_wrong_number_of_bars_is_an_error() -> None:
    values = {"a": {"x": {"mean": 0.25}, "y": 0.5}}
    panel = Panel("t", "y", "r", ("x", "y"), {"ours": "a/[x;y]"}, {"paper": (None, 3.0)}, 100.0)
    assert bars(panel, values) == {"ours": [25.0, 50.0], "paper": [None, 3.0]}
    assert drawing("n", panel, values).count("<title>") == 3
    with pytest.raises(ValueError, match="1 bars of 'ours' for 2 groups"):
        bars(Panel("t", "y", "r", ("x", "y"), {"ours": "a/x"}), values)


def test_a_mean_over_seeds_has_its_interval_in_the_drawing_and_in_the_table() -> None:
    """The drawings of docs/ showed means over ten seeds without intervals, which `yarnfair plot` draws."""
    values = {"a": {"x": {"mean": 2.0, "ci95": 0.5}, "y": 4.0}}
    panel = Panel("t", "y", "r", ("x", "y"), {"ours": "a/[x;y]"}, {"paper": (None, 3.0)}, digits=1)
    drawn = etree.fromstring(drawing("n", panel, values).encode())
    assert len(drawn.findall(".//{*}path[@class='e']")) == 1
    assert values_table(panel, values).splitlines()[2] == "| ours | 2.0 \u00b1 0.5 | 4.0 |"
