"""``make records``: every simulated record in docs/records made again, and its values compared with the committed ones.

    python -m studies.remake [--only NAME] [--write]

What was made stands in build/records. Exit codes: 0 all agree, 1 a command failed, 3 values differ.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError, RegressionFound, YarnfairError
from harness.base.files import read_json, write_json
from studies.recipes import REAL, SIMULATED, TIMES, Recipe
from studies.result import in_one_line

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "docs" / "records"
#: Says nothing about the result: an edited comment in an experiment's file changes it.
NOT_COMPARED = frozenset({"hash", "machine"})
#: Differences shown of one record.
SHOWN = 20


def differences(
    committed: Any, made: Any, of_the_machine: Collection[str] = (), where: str = "values"
) -> Iterator[str]:
    """Where two records' values part, a line each: ``values.a.b: 1 -> 2``.

    Numbers are the same up to the last digits of a float. What a search found when its time limit stopped it
    (``proven`` is false) is the machine's, as are `of_the_machine`'s keys.
    """
    if isinstance(committed, dict) and isinstance(made, dict):
        left_out = NOT_COMPARED | set(of_the_machine)
        if of_the_machine and not (committed.get("proven", True) and made.get("proven", True)):
            left_out |= {"best_s", "bound_s", "proven"}
        for key in sorted((committed.keys() | made.keys()) - left_out):
            if key not in made:
                yield f"{where}.{key}: {_short(committed[key])} -> missing"
            elif key not in committed:
                yield f"{where}.{key}: missing -> {_short(made[key])}"
            else:
                yield from differences(committed[key], made[key], of_the_machine, f"{where}.{key}")
    elif isinstance(committed, list) and isinstance(made, list) and len(committed) == len(made):
        for at, (old, new) in enumerate(zip(committed, made, strict=True)):
            yield from differences(old, new, of_the_machine, f"{where}[{at}]")
    elif _number(committed) and _number(made):
        if not math.isclose(committed, made, rel_tol=1e-9):
            yield f"{where}: {committed} -> {made}"
    elif committed != made:
        yield f"{where}: {_short(committed)} -> {_short(made)}"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def remake(recipe: Recipe, file: Path) -> dict[str, Any]:
    """Runs a recipe's commands; the record that they make, which is also in `file`. InputError when one fails."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="yarnfair-record-") as folder:
        out = Path(folder)
        for command in recipe.commands:
            words = shlex.split(command.format(out=out / "runs", file=file))
            program = {"yarnfair": [sys.executable, "-m", "harness"], "python": [sys.executable]}[words[0]]
            with (out / "errors").open("w+") as errors, (out / "printed").open("w+") as printed:
                done = subprocess.run([*program, *words[1:]], cwd=ROOT, stdout=printed, stderr=errors, check=False)
                errors.seek(0)
                said = errors.read().strip().splitlines()
            if done.returncode:
                raise InputError(
                    f"exit {done.returncode}: {said[-1] if said else 'no word'}",
                    where=command,
                    hint="run the command by itself",
                )
        if not file.exists():
            write_json(file, json.loads((out / "printed").read_text(encoding="utf-8")))
    return read_json(file)


def chosen(patterns: Sequence[str]) -> list[str]:
    """The simulated records that a pattern names (all of them without one). CallError where one names none."""
    if not patterns:
        return list(SIMULATED)
    names: list[str] = []
    for pattern in patterns:
        found = fnmatch.filter(SIMULATED, pattern)
        if not found:
            known = pattern in (*REAL, *TIMES)
            raise CallError(
                f"{pattern}: {'a record of a real cluster or of times' if known else 'no such record'}",
                where="--only",
                hint="see studies/recipes.py for those that can be made again",
            )
        names += [name for name in found if name not in names]
    return names


def compare(name: str, made: Path, *, write: bool) -> list[str]:
    """Remakes one record into the folder `made`; how it differs from the committed one. ``write`` puts it in place."""
    recipe = SIMULATED[name]
    new = remake(recipe, made / f"{name}.json")
    committed = read_json(RECORDS / f"{name}.json")
    found = list(differences(committed["values"], new["values"], recipe.of_the_machine))
    if write and found:
        write_json(
            RECORDS / f"{name}.json",
            {**committed, "command": recipe.command(name), "version": new["version"], "values": new["values"]},
        )
    return found


@in_one_line("remake")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.remake", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a record (or 'dynamicmr-*')")
    parser.add_argument("--write", action="store_true", help="put values that differ into docs/records")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "records", help="folder for what is made")
    given = parser.parse_args(arguments)
    differing, failed = [], []
    for name in chosen(given.only):
        begun = time.monotonic()
        try:
            found = compare(name, given.out, write=given.write)
        except YarnfairError as error:
            failed.append(name)
            print(f"{name}: {error.line()}", flush=True)
            continue
        took = f"({time.monotonic() - begun:.0f} s)"
        if found:
            differing.append(name)
        print(f"{name}: {f'{len(found)} values differ' if found else 'the same'} {took}", flush=True)
        for line in found[:SHOWN]:
            print(f"  {line}")
        if len(found) > SHOWN:
            print(f"  and {len(found) - SHOWN} more", flush=True)
    if not given.only:
        print(f"Not made here, because they are a real cluster's: {', '.join(REAL)}")
        print(f"Not made here, because they are this machine's times: {', '.join(TIMES)}")
    if failed:
        raise InputError(f"not made: {', '.join(failed)}", where="docs/records")
    if differing:
        hint = "mend what changed them, or take them over with --write and say why in the commit"
        raise RegressionFound(f"other values than committed: {', '.join(differing)}", where="docs/records", hint=hint)
    return 0


if __name__ == "__main__":
    sys.exit(main())
