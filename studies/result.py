"""A committed result: which command made it, with which version, and its values."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import harness
from harness.base.errors import YarnfairError
from harness.base.files import plain, write_json
from harness.results.store import machine

P = ParamSpec("P")


def write(out: Path | None, command: str, values: Mapping[str, Any], version: str = "", **more: Any) -> None:
    """Writes a result into a file, or without one to standard output. ``more``: what else it says, as of a cluster."""
    document = {"command": command, "version": version or harness.__version__, "values": values, **more}
    if out is None:
        json.dump(plain(document), sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        write_json(out, document)


def write_times(out: Path, command: str, values: Mapping[str, Any]) -> None:
    """`write` of times that were measured: with how busy this machine was, and its cores."""
    loads = [round(load, 1) for load in os.getloadavg()]
    write(out, command, {**values, "load_average_at_the_end": loads, "cores": machine()["cores"]})


def main_of(study: str, about: str | None, measure: Callable[[], Mapping[str, Any]]) -> Callable[..., int]:
    """The main of a study that is asked nothing but where its record goes. ``about``: its module's docstring."""

    @in_one_line(study)
    def main(arguments: Sequence[str] | None = None) -> int:
        parser = argparse.ArgumentParser(prog=f"studies.{study}", description=(about or "").partition("\n")[0])
        parser.add_argument("-o", type=Path, metavar="FILE", help="Where the record goes; without it: printed.")
        given = parser.parse_args(arguments)
        write(given.o, f"python -m studies.{study}", measure(), machine=machine())
        return 0

    return main


def in_one_line(study: str) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Of a study's main: what goes wrong is one line on standard error, and its exit code."""

    def of(main: Callable[P, int]) -> Callable[P, int]:
        @wraps(main)
        def told(*given: P.args, **named: P.kwargs) -> int:
            try:
                return main(*given, **named)
            except YarnfairError as error:
                print(f"{study}: {error.line()}", file=sys.stderr)
                return error.exit_code

        return told

    return of
