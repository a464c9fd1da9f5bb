"""``make figures``: the pages of figures in docs/, made from their sources in studies/pages and the committed records.

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

With --check nothing is written; exit code 3 when a page is not what its source and the records give.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_json
from studies import assessed_tables, dynamicmr_tables, figures_tables, ordering_tables
from studies.generated import write_pages
from studies.seeds import mean_of, shown

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "studies" / "pages"
DOCS = ROOT / "docs"
#: Name of a table -> (record, what makes it of the record's values).
TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    **ordering_tables.TABLES,
    **dynamicmr_tables.TABLES,
    **figures_tables.TABLES,
    **assessed_tables.TABLES,
}

REFERENCE = re.compile(
    r"\{(?:(?P<pick>least|greatest) )?(?:(?P<record>[\w-]+)#)?(?P<keys>[^{}]+?)(?:\*(?P<factor>-?\d+))?"
    r":(?P<form>±?,?\.\d+f)\}"
)
TABLE = re.compile(r"\{table ([\w.-]+)\}")
LINK = re.compile(r"\(records/([\w-]+)\.json\)")
SERIES = re.compile(r"\[([^\[\]]*;[^\[\]]*)\]")
NOTE = "<!-- Made by `make figures` from studies/pages/{name} and docs/records. Edit it there. -->"


def found(values: Any, keys: str) -> Any:
    """What stands under the keys (``a/b/0``) of a record's values. KeyError with what could have stood there."""
    at = values
    for part in keys.split("/"):
        key = part.replace("~1", "/")
        if isinstance(at, Mapping) and key in at:
            at = at[key]
        elif isinstance(at, list) and key.isdigit() and int(key) < len(at):
            at = at[int(key)]
        else:
            known = [str(name) for name in at] if isinstance(at, Mapping) else []
            if isinstance(at, list):
                known = [f"0 to {len(at) - 1}"]
            near = difflib.get_close_matches(key, known, 4) or known
            raise KeyError(f"no {key!r} in {keys} (there: {', '.join(near) or 'a value'})")
    return at


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


def expanded(keys: str) -> list[str]:
    """``a/[x;y]/b`` is ``a/x/b`` and ``a/y/b``; several lists go through all of their pairs."""
    match = SERIES.search(keys)
    if match is None:
        return [keys]
    return [
        rest
        for one in match.group(1).split(";")
        for rest in expanded(f"{keys[: match.start()]}{one.strip()}{keys[match.end() :]}")
    ]


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
        document: dict[str, Any] = read_json(records / f"{record}.json", mend="make the record first")["values"]
        return document

    lines = []
    for number, line in enumerate(source.splitlines(), start=1):

        def reference(match: re.Match[str], line: str = line) -> str:
            named = [match["record"]] if match["record"] else LINK.findall(line)
            if len(set(named)) != 1:
                raise KeyError(f"{match[0]}: the row links to {len(named)} records (name one: NAME#...)")
            return cell(match, values(named[0]))

        def table(match: re.Match[str]) -> str:
            record, make = TABLES[match[1]]
            return make(values(record))

        try:
            lines.append(TABLE.sub(table, REFERENCE.sub(reference, line)))
        except (KeyError, TypeError, ValueError) as error:
            what = error.args[0] if error.args else error
            raise InputError(
                str(what), where=f"studies/pages/{name}:{number}", mend="name a key of the record"
            ) from None
    return "\n".join([NOTE.format(name=name), *lines]) + "\n"


def pages() -> Iterator[tuple[Path, str]]:
    """Each page of figures, and what its source and the records give."""
    for path in sorted(SOURCES.glob("*.md")):
        yield DOCS / path.name, rendered(path.read_text(encoding="utf-8"), path.name, DOCS / "records")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    return write_pages("figures", __doc__, pages, "the records", arguments)


if __name__ == "__main__":
    sys.exit(main())
