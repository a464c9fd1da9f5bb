"""The command line that the makers of committed records share: run directories in, one JSON file out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import YarnfairError
from harness.base.files import plain, write_json


def record_main(
    module: str,
    about: str | None,
    make: Callable[[list[Path], str], dict[str, Any]],
    arguments: Sequence[str] | None = None,
    *,
    many: bool = False,
) -> int:
    """``python -m module SOURCE --command TEXT -o FILE``; the exit code. What goes wrong is one line, and no file.

    ``make`` is told the sources (more than one if ``many``) and the command that made them.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument(
        "sources", metavar="SOURCE", type=Path, nargs="+" if many else 1, help="a folder of run directories"
    )
    parser.add_argument("--command", default="", help="what made the runs")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        write_json(given.out, plain(make(given.sources, given.command)))
    except YarnfairError as error:
        print(f"{module.rpartition('.')[2]}: {error.line()}", file=sys.stderr)
        return error.exit_code
    return 0
