"""The site of `make site`: it builds without a warning, its links lead somewhere, and its pages ask no other host."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from tests.browser import chromium

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Attributes whose address a browser loads by itself; of `link` it is `href` too.
LOADS = {"src", "srcset", "data", "poster"}

pytestmark = [pytest.mark.site, pytest.mark.xdist_group("site")]


class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in LOADS or (tag == "link" and name == "href"):
                self.loads.append(value or "")
            elif name == "href":
                self.links.append(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = shutil.which("sphinx-build") or shutil.which(str(ROOT / "build/site-venv/bin/sphinx-build"))
    assert program is not None
    built = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-c", DOCS / "site", "-d", built / ".doctrees"]
    done = subprocess.run([program, *options, DOCS, built], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return built


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def broken(pages: dict[Path, Page]) -> list[str]:
    """Links within the site, and files that its pages load, that are not there."""
    found = []
    for path, page in pages.items():
        for link in (*page.links, *page.loads):
            address, anchor = urldefrag(link)
            if urlsplit(address).scheme:
                continue
            target = (path.parent / unquote(urlsplit(address).path)).resolve() if address else path
            other = pages.get(target)
            if not target.exists() or (anchor and other is not None and unquote(anchor) not in other.anchors):
                found.append(f"{path.name}: {link}")
    return found


def elsewhere(text: str) -> list[str]:
    """Addresses of other hosts that a style sheet loads."""
    return re.findall(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", text)


def test_every_page_is_on_the_site(pages: dict[Path, Page], site: Path) -> None:
    there = {path.relative_to(site.resolve()).with_suffix("").as_posix() for path in pages}
    assert {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")} <= there


def test_every_internal_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    assert broken(pages) == []


def test_no_page_loads_anything_from_another_host(pages: dict[Path, Page], site: Path) -> None:
    loads = [(path, one) for path, page in pages.items() for one in page.loads]
    asked = [f"{path.name}: {one}" for path, one in loads if "//" in one.split(",", 1)[0]]
    sheets = [*site.rglob("*.css"), *site.rglob("*.html")]
    asked += [f"{path.name}: {one}" for path in sheets for one in elsewhere(path.read_text(encoding="utf-8"))]
    assert asked == []


def test_mistakes_would_be_seen(tmp_path: Path) -> None:
    page = Page('<a href="none.html">x</a><a href="#no">y</a><img src="//cdn.example/x.png"><p id="yes"></p>')
    assert broken({tmp_path / "a.html": page}) == ["a.html: none.html", "a.html: #no", "a.html: //cdn.example/x.png"]
    assert elsewhere("@import '//fonts.example/a.css'; b { background: url(https://x.example/b.png) }") == [
        "//fonts.example/a.css",
        "https://x.example/b.png",
    ]


def test_the_sidebar_opens_the_section_of_the_page_alone(site: Path) -> None:
    text = (site / "reference/python.html").read_text(encoding="utf-8")
    sections = re.findall(r'<details class="section"( open)?><summary class="caption">(.*?)</summary>', text)
    assert [name for _, name in sections] == ["Begin here", "How to", "Reference", "API", "Decisions"]
    assert [name for opened, name in sections if opened] == ["API"]


@pytest.mark.browser
def test_it_can_be_read_wide_narrow_and_in_the_dark_and_searched(site: Path, tmp_path: Path) -> None:
    with chromium(tmp_path) as browser:
        for name in ("index", "glossary", "how-to/enforce", "reference/commands", "figures"):
            for width, dark in ((1280, False), (400, False), (400, True)):
                browser.open((site / f"{name}.html").as_uri(), width, dark=dark)
                browser.until("document.readyState === 'complete'")
                assert browser.run("document.documentElement.scrollWidth <= innerWidth"), (name, width)
                assert browser.faint() == [], (name, width, dark)
        assert browser.console == []
        # From a disk results come without excerpts: a browser lets no script read a file beside the page.
        browser.open((site / "search.html").as_uri() + "?q=guard")
        browser.until("document.querySelectorAll('#search-results li a').length > 2")
        assert [one for one in browser.requests if not one.startswith(("file:", "data:"))] == []
