"""The site made of docs/ by Sphinx, MyST and Furo; `make site` builds it. Whatever a page loads lies beside it.

The pages stay plain Markdown that any forge shows. So the order of the pages is that of the links on docs/index.md, and
a Markdown file outside docs/ is offered as a download.
"""

import re
from typing import Any

from sphinx.application import Sphinx

project = "yarnfair"
copyright = "the yarnfair authors"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["site", "notebooks"]
#: The anchors of headings as forges make them.
myst_heading_anchors = 4
#: Blocks in languages that Pygments does not know, such as drawings, are shown as they are.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "yarnfair"
smartquotes = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
html_static_path = ["static"]
html_css_files = ["site.css"]

_PAGE = re.compile(r"\]\(([\w/-]+)\.md\)")


def _read(_app: Sphinx, name: str, source: list[str]) -> None:
    """The index gets a table of contents for each of its sections; links that leave docs/ become downloads."""
    text = re.sub(r"\[([^\]]+)\]\(((?:\.\./)+[A-Z]+\.md)\)", r"{download}`\1 <\2>`", source[0])
    if name == root_doc:
        seen: set[str] = set()
        for section in re.split(r"^## ", text, flags=re.M):
            pages = [page for page in dict.fromkeys(_PAGE.findall(section)) if page not in seen]
            seen.update(pages)
            heading = section.partition("\n")[0].strip()
            caption = "Begin here" if heading.startswith("#") else heading
            text += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
    source[0] = text


_SECTION = re.compile(
    r'<p class="caption"[^>]*><span class="caption-text">(.*?)</span></p>\s*(<ul.*?</ul>)(?=\s*(?:<p |$))', re.S
)


def _fold(_app: Sphinx, _name: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """The sidebar shows the section of the page that is read; the others open by a click, without a script."""

    def section(match: re.Match[str]) -> str:
        here = " open" if "current" in match[2] else ""
        return f'<details class="section"{here}><summary class="caption">{match[1]}</summary>{match[2]}</details>'

    if tree := context.get("furo_navigation_tree"):
        context["furo_navigation_tree"] = _SECTION.sub(section, tree)


def setup(app: Sphinx) -> None:
    app.connect("source-read", _read)
    # After the theme has made its tree.
    app.connect("html-page-context", _fold, priority=900)
