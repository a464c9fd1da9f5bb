"""The one writer of generated pages: it writes those that are not what they should be, or only names them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.base.errors import RegressionFound, YarnfairError
from harness.base.files import write_text


def write_pages(
    name: str,
    about: str | None,
    pages: Callable[[], Iterable[tuple[Path, str]]],
    giver: str,
    arguments: Sequence[str] | None,
) -> int:
    """The exit code of ``python -m studies.NAME`` and ``make NAME``.

    ``pages``: each page's path and what should stand there; ``giver``: what they are made from ("the records").
    """
    parser = argparse.ArgumentParser(prog=f"python -m studies.{name}", description=about)
    parser.add_argument("--check", action="store_true", help="only say which pages are not what they should be")
    given = parser.parse_args(arguments)
    stale = []
    try:
        for path, page in pages():
            if not path.exists() or path.read_text(encoding="utf-8") != page:
                stale.append(path)
                if not given.check:
                    write_text(path, page)
        names = ", ".join(path.name for path in stale)
        if given.check and stale:
            raise RegressionFound(f"not what {giver} give: {names}", where=str(stale[0].parent), hint=f"make {name}")
    except YarnfairError as error:
        print(f"{name}: {error.line()}", file=sys.stderr)
        return error.exit_code
    print(f"written: {names}" if stale else f"every page is what {giver} give")
    return 0
