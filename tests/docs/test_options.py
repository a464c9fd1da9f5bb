"""docs/reference/commands.md: every command has a section there, with all its options and no others."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from harness.results.kinds import KINDS
from harness.results.runs import _ORDER
from studies.reference import COMMANDS

DOCS = Path(__file__).resolve().parents[2] / "docs"


SECTIONS = {
    part.partition("\n")[0].strip(): part
    for part in re.split(r"^## ", (DOCS / "reference" / "commands.md").read_text(encoding="utf-8"), flags=re.M)[1:]
}


def test_the_page_has_a_section_for_each_command() -> None:
    assert set(SECTIONS) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_all_options_of_a_command(name: str) -> None:
    own = {text for one in COMMANDS[name].params if isinstance(one, click.Option) for text in one.opts}
    cells = re.findall(r"^\| `(-[^`]*)` \|", SECTIONS[name], re.M)
    shown = [word.rstrip(",") for cell in cells for word in cell.split() if word.startswith("-")]
    assert sorted(shown) == sorted(own)


def test_the_short_help_of_a_group_names_its_commands() -> None:
    """`yarnfair --help` lists groups only: what they have has to be told there."""
    from harness.cli import COMMANDS as listed

    for group in ("cluster", "campaign", "data", "job", "sim"):
        verbs = [name.split()[1] for name in COMMANDS if name.startswith(f"{group} ")]
        assert [verb for verb in verbs if verb not in listed[group][1]] == [], group


def test_the_reference_of_a_comparison_is_told_in_its_order() -> None:
    page = (DOCS / "how-to" / "compare-runs.md").read_text(encoding="utf-8")
    told = re.search(r"the first of these that is\s+present:(.*?), else", page, re.S)
    assert told is not None
    assert tuple(re.findall(r"`([^`]+)`", told.group(1))) == _ORDER
    context = click.Context(COMMANDS["compare"])
    (option,) = (one for one in COMMANDS["compare"].params if one.name == "reference")
    help_text = str(option.get_help_record(context))
    assert all(name in help_text for name in _ORDER)


def test_the_page_on_experiment_files_names_every_kind() -> None:
    page = (DOCS / "reference" / "experiment-file.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"| `{kind}` |" not in page] == []


def test_the_page_on_docker_names_every_variable_of_the_compose_file() -> None:
    compose = (DOCS.parent / "docker" / "compose.yaml").read_text(encoding="utf-8")
    page = (DOCS / "how-to" / "docker-cluster.md").read_text(encoding="utf-8")
    assert [name for name in sorted(set(re.findall(r"\$\{(\w+):-", compose))) if name not in page] == []


def test_nobody_is_told_to_install_a_package_that_no_index_has() -> None:
    root = DOCS.parent
    told = [*root.glob("*.md"), *DOCS.rglob("*.md"), *(root / "harness").rglob("*.py")]
    assert [path for path in told if re.search(r"(?<!/)yarnfair\[\w", path.read_text(encoding="utf-8"))] == []
