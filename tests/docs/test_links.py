"""Links of the pages at the root and in docs/ lead to files that are there, and every page can be found from the index.

So do the files and modules that pages name without a link, and the pages that code names.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FOLDERS = r"(?:harness|tests|docs|studies|experiments|workloads|yarn-policy|templates|docker)"
#: In backticks; ``*`` stands for any name, capitals for one that the reader chooses.
FILE = re.compile(rf"`({FOLDERS}/[\w./*-]*)`")
MODULE = re.compile(r"python -m ((?:harness|tests|studies)[\w.]*)")
PAGE = re.compile(r"\bdocs/[\w/-]+\.(?:md|json|svg|ipynb)\b")


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    broken = []
    for page in pages():
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            target, _, anchor = link.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            path = (page.parent / target).resolve() if target else page
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken


def test_every_page_can_be_reached_from_the_index() -> None:
    seen, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            target = link.partition("#")[0]
            if target and "://" not in target:
                waiting.append((page.parent / target).resolve())
    lost = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if page not in seen]
    assert not lost


def missing(text: str) -> list[str]:
    """Files and modules that a text names and that are not there."""
    files = [name for name in FILE.findall(text) if not re.search(r"\b[A-Z]{3,}\b", name)]
    gone = [name for name in files if not any(ROOT.glob(name.rstrip("/")))]
    return [*gone, *(name for name in MODULE.findall(text) if find_spec(name.rstrip(".")) is None)]


def test_files_and_modules_that_pages_name_are_there() -> None:
    found = {str(page.relative_to(ROOT)): missing(page.read_text(encoding="utf-8")) for page in pages()}
    assert {page: names for page, names in found.items() if names} == {}
    named = "`harness/gone.py`, `experiments/gone-*.yaml`, `harness/policies/NAME.py`, python -m studies.gone"
    assert missing(named) == ["harness/gone.py", "experiments/gone-*.yaml", "studies.gone"]


def test_pages_that_code_names_are_there() -> None:
    code = [path for folder in ("harness", "studies", "tests") for path in (ROOT / folder).rglob("*.py")]
    found = {(path.name, name) for path in code for name in PAGE.findall(path.read_text(encoding="utf-8"))}
    assert len(found) >= 50
    assert {(file, name) for file, name in found if "NAME" not in name and not (ROOT / name).exists()} == set()
