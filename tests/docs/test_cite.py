"""docs/cite.md and CITATION.cff: the version is the package's, and both name the same papers."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

import harness

ROOT = Path(__file__).resolve().parents[2]


def test_the_software_is_cited_with_its_own_version() -> None:
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    assert re.search(r"@software\{.*?version = \{(.*?)\}", page, re.DOTALL)[1] == harness.__version__  # type: ignore[index]
    assert str(yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]) == harness.__version__


def test_the_page_and_the_file_name_the_same_papers() -> None:
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    entries = re.findall(r"@(?!software)\w+\{.*?\n\}", page, re.DOTALL)
    field = re.compile(r"(\w+) += \{(.*)\}")
    papers = [dict(field.findall(entry)) for entry in entries]
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    assert len(papers) == len(references) == 3
    for paper, reference in zip(papers, references, strict=True):
        assert re.sub("[{}]", "", paper["title"]) == reference["title"]
        names = [f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]]
        assert paper["author"].split(" and ") == names
        assert paper.get("doi") == reference.get("doi")


def test_the_readme_leads_to_releases_limits_and_citation() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "docs/reference/can-i-use-it.md" in text
    assert "docs/cite.md" in text
