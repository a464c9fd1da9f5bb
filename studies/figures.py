"""``make figures``: pages of docs/ with figures, made from their sources in studies/pages and the committed records.

    python -m studies.figures [--check]

A source is the page in Markdown with references in place of what was measured:

- ``{variants/fair/makespan_s:,.0f}``: the number under these keys of the record that its row links to, in a format of
  Python's. A figure over seeds is its mean; ``/min``, ``/max`` name the others, and ``±.2f`` adds half of its 95 %
  interval. A slash in a key is written ``~1``.
- ``{variants/[fair;ltrf]/makespan_s:.0f}``: one for each, with commas between.
- ``{variants/fair/sharing_loss*100:.1f}``: the number times 100.
- ``{least benchmarks/*/16/speedup:.2f}``, ``{greatest ...}``: the least or the greatest of all that fit.
- ``{ltyarn#variants/fair/makespan_s:.0f}``: out of a record by its name, wherever it stands.
- ``{table fig-4.10}``: a whole table, by its name in `TABLES`.
- ``{figure qknober-6a}``: a drawing, by its name in `PANELS` (harness.report.gallery); it lies in docs/gallery.
- ``{if NAME}`` and ``{end}``, lines of their own: what stands between them is there once the record NAME is.

With --check nothing is written; exit code 3 when a page is not what its source and the records give.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.report.gallery.keys import expanded, found
from harness.report.gallery.panels import PANELS
from harness.report.gallery.spread import mean_of
from studies import (
    assessed_tables,
    bench_tables,
    cloud_range,
    dynamicmr_tables,
    figures_tables,
    half_life,
    ordering_tables,
    planned_tables,
    sensitivity,
    steered_tables,
)
from studies.gallery import drawing, values_table
from studies.generated import write_pages
from studies.real_faults import measured
from studies.seeds import shown

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "studies" / "pages"
DOCS = ROOT / "docs"
#: Name of a table -> (record, what makes it of the record's values).
TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    **ordering_tables.TABLES,
    **dynamicmr_tables.TABLES,
    **figures_tables.TABLES,
    **half_life.TABLES,
    **assessed_tables.TABLES,
    **bench_tables.TABLES,
    **planned_tables.TABLES,
    **steered_tables.TABLES,
    "cloud-range": ("cloud-range", cloud_range.table),
    **sensitivity.TABLES,
    **measured.TABLES,
}

REFERENCE = re.compile(
    r"\{(?:(?P<pick>least|greatest) )?(?:(?P<record>[\w-]+)#)?(?P<keys>[^{}]+?)(?:\*(?P<factor>-?\d+))?"
    r":(?P<form>±?,?\.\d+f)\}"
)
FIGURE = re.compile(r"\{figure ([\w.-]+)\}")
TABLE = re.compile(r"\{table ([\w.-]+)\}")
ONLY = re.compile(r"\{if ([\w-]+)\}")
LINK = re.compile(r"\(records/([\w-]+)\.json\)")
NOTE = "<!-- Made by `make figures` from studies/pages/{name} and docs/records. Edit it there. -->"


def every(values: Any, keys: str) -> Iterator[Any]:
    """The values under keys with ``*`` for any key, where the rest of the keys exists."""
    head, star, rest = keys.partition("/*/")
    if not star:
        yield found(values, keys)
        return
    for key in found(values, head):
        try:
            yield from every(found(values, f"{head}/{key.replace('/', '~1')}"), rest)
        except KeyError:
            continue


def text_of(value: Any, form: str, factor: float) -> str:
    """A figure in a cell. TypeError when it is none."""
    if isinstance(value, bool) or not (
        isinstance(value, int | float) or (isinstance(value, Mapping) and "mean" in value)
    ):
        raise TypeError(f"no number, but {str(value)[:60]}")
    if form.startswith("±"):
        return shown(value, form[1:], factor=factor)
    return f"{factor * mean_of(value):{form}}"


def cell(match: re.Match[str], values: Any) -> str:
    """What one reference comes to."""
    form, factor = match["form"], float(match["factor"] or 1)
    alternatives = expanded(match["keys"])
    if match["pick"]:
        pick = min if match["pick"] == "least" else max
        return text_of(pick((v for keys in alternatives for v in every(values, keys)), key=mean_of), form, factor)
    return ", ".join(text_of(found(values, keys), form, factor) for keys in alternatives)


def rendered(source: str, name: str, records: Path) -> str:
    """The page of a source. InputError names the line whose reference leads nowhere."""

    @cache
    def values(record: str) -> dict[str, Any]:
        document: dict[str, Any] = read_json(records / f"{record}.json", hint="make the record first")["values"]
        return document

    lines = []
    there = True
    for number, line in enumerate(source.splitlines(), start=1):
        if only := ONLY.fullmatch(line):
            there = (records / f"{only[1]}.json").exists()
            continue
        if line == "{end}":
            there = True
            continue
        if not there:
            continue

        def reference(match: re.Match[str], line: str = line) -> str:
            named = [match["record"]] if match["record"] else LINK.findall(line)
            if len(set(named)) != 1:
                raise KeyError(f"{match[0]}: the row links to {len(named)} records (name one: NAME#...)")
            return cell(match, values(named[0]))

        def table(match: re.Match[str]) -> str:
            record, make = TABLES[match[1]]
            return make(values(record))

        def figure(match: re.Match[str]) -> str:
            panel = PANELS[match[1]]
            beside = values_table(panel, values(panel.record))
            shown = f"### {panel.title}\n\n![{panel.title}](gallery/{match[1]}.svg)"
            return f"{shown}\n\n{beside}" if beside else shown

        try:
            line = FIGURE.sub(figure, line)
            lines.append(TABLE.sub(table, REFERENCE.sub(reference, line)))
        except (KeyError, TypeError, ValueError) as error:
            what = error.args[0] if error.args else error
            raise InputError(
                str(what), where=f"studies/pages/{name}:{number}", hint="name a key of the record"
            ) from None
    return "\n".join([NOTE.format(name=name), *lines]) + "\n"


def pages() -> Iterator[tuple[Path, str]]:
    """Each page of figures and each drawing of the gallery, and what its source and the records give."""
    sources = {path.relative_to(SOURCES): path.read_text(encoding="utf-8") for path in sorted(SOURCES.rglob("*.md"))}
    for path, source in sources.items():
        yield DOCS / path, rendered(source, path.as_posix(), DOCS / "records")
    for name in (name for source in sources.values() for name in FIGURE.findall(source)):
        panel = PANELS[name]
        record = read_json(DOCS / "records" / f"{panel.record}.json", hint="make the record first")
        try:
            yield DOCS / "gallery" / f"{name}.svg", drawing(name, panel, record["values"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            what = str(error.args[0] if error.args else error)
            where = f"harness/report/gallery/panels.py: {name}"
            raise InputError(what, where=where, hint="name keys of the record") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    return write_pages("figures", __doc__, pages, "the records", arguments)


if __name__ == "__main__":
    sys.exit(main())
