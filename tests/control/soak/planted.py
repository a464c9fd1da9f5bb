"""``python -m tests.control.soak.planted``: plants each known bug in a copy of the code and lets the soak look for it.

The bugs are in planted.toml (tests.planting). Ten minutes of CPU time each at most; printed is the seed that found it,
what it violated and how long that took. Bugs that violate no invariant of the soak name the test that finds them.
``--record`` keeps the results in planted.json, and shows them on the page docs/track-record.md; called again, it goes
on with the bugs that were not yet looked for in the code as it is.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.control.soak.installed import HANGS_S
from tests.control.soak.regime import EIGHTH, FIFTH, FOURTH, SECOND, SEVENTH, SIXTH, TENTH
from tests.mutations import Copy, Mutation
from tests.planting import ROOT, Planted, read

HERE = Path(__file__).resolve().parent
BUDGET_S = 600.0
#: What is copied, and what not: the compiled engine is larger than all else, and the soak simulates nothing.
PARTS, IGNORED = ("harness", "tests/control/soak"), ("*.so", "compiled-*", "__pycache__", "planted.*")
RECORD, PAGE = HERE / "planted.json", ROOT / "docs" / "track-record.md"
BEGIN, END = "<!-- planted: begin -->\n", "<!-- planted: end -->\n"


@dataclass(frozen=True, kw_only=True)
class Bug(Planted):
    """``reverses``: the commit that mended it, if this repository had it. ``second``, ``fourth`` to ``eighth``,
    ``tenth``: seeds of that regime find it (tests.control.soak.regime). ``begin``: the search begins with this seed,
    which found it in this repository. ``also``: more texts to replace, each with its ``file``, ``old`` and ``new``.
    ``tests``: what pytest is given, and fails with the bug and passes without it; no seeds are played then.
    """

    what: str
    reverses: str = ""
    second: bool = False
    fourth: bool = False
    fifth: bool = False
    sixth: bool = False
    seventh: bool = False
    eighth: bool = False
    tenth: bool = False
    begin: int | None = None
    tests: str = ""
    also: tuple[Mapping[str, str], ...] = ()

    def plant(self, root: Path) -> None:
        """Change the files below ``root``."""
        super().plant(root)
        for number, one in enumerate(self.also):
            Planted(name=f"{self.name}-{number}", **one).plant(root)


@dataclass(frozen=True)
class Search:
    bug: Bug
    found: bool
    #: CPU time, with all seeds before.
    seconds: float
    text: str
    seed: int | None = None


def bugs() -> list[Bug]:
    """All planted bugs. ValueError for one whose anchor is not in its file, or not once."""
    return read(Bug, HERE / "planted.toml", "planted")


def look_for(bug: Bug, budget_s: float = BUDGET_S) -> Search:
    """Plants a bug in a copy and runs seeds until one of them violates something, or the tests that it names."""
    if bug.tests:
        return _test(bug)
    # A container's /dev/shm may hold 64 MB in all, and the soak's disks are there.
    roomy = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 1 << 30
    with tempfile.TemporaryDirectory(prefix="planted-", dir="/dev/shm" if roomy else None) as copy:
        for part in PARTS:
            shutil.copytree(ROOT / part, Path(copy, part), ignore=shutil.ignore_patterns(*IGNORED))
        bug.plant(Path(copy))
        # Who only waits is ended by the soak itself (`installed.watched`).
        most_s = budget_s + 2 * HANGS_S
        of = {EIGHTH: bug.eighth, SEVENTH: bug.seventh, SIXTH: bug.sixth, FIFTH: bug.fifth}
        of |= {FOURTH: bug.fourth, SECOND: bug.second, TENTH: bug.tenth}
        begin = next((seed for seed, drawn in of.items() if drawn), bug.begin or 0)
        seeds = f"{begin}:{begin + SECOND}"
        command = [sys.executable, "-m", "tests.control.soak", "--seeds", seeds, "--first", "--json"]
        ended = subprocess.run(
            [*command, "--seconds", str(budget_s)],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": copy},
            capture_output=True,
            text=True,
            preexec_fn=functools.partial(resource.setrlimit, resource.RLIMIT_CPU, (int(most_s), int(most_s) + 5)),
        )
    if ended.returncode == -signal.SIGXCPU:
        return Search(bug, True, most_s, "the soak did not end: it hangs")
    if ended.returncode in (0, 1) and ended.stdout:
        said = json.loads(ended.stdout)
        if not said["violations"]:
            return Search(bug, False, said["core_seconds"], f"{said['seeds']} seeds")
        first = said["violations"][0]
        return Search(bug, True, said["core_seconds"], f"seed {first['seed']}: {first['what'][:160]}", first["seed"])
    raise RuntimeError(f"{bug.name}: {ended.stderr[-2000:]}")


def _test(bug: Bug) -> Search:
    """Runs the tests that a bug names, without it and with it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        mutation = Mutation(name=bug.name, file=bug.file, old=bug.old, new=bug.new, tests=bug.tests)
        found, text = Copy(Path(folder)).notices(mutation)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Search(bug, found, seconds, text[:200])


def code() -> str:
    """Of what the copies are made."""
    digest = hashlib.sha256()
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def recorded() -> dict[str, dict[str, Any]]:
    """The results that are kept: bug -> ``{"found", "seed", "seconds", "budget_s", "code"}``."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}  # type: ignore[no-any-return]


def keep(search: Search, budget_s: float, now: str) -> None:
    """One result more in the record, and the record on the page."""
    known = recorded()
    known[search.bug.name] = {
        "found": search.found,
        "seed": search.seed,
        "seconds": round(search.seconds, 1),
        "budget_s": budget_s,
        "code": now,
    }
    order = {bug.name: number for number, bug in enumerate(bugs())}
    kept = {name: known[name] for name in sorted(known.keys() & order.keys(), key=order.__getitem__)}
    RECORD.write_text(json.dumps(kept, indent=1) + "\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table(kept) + END + rest.partition(END)[2])


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The record as the page shows it."""
    known = bugs()
    what, begins = {bug.name: bug.what for bug in known}, {bug.name: bug.begin for bug in known}
    tested = {bug.name for bug in known if bug.tests}
    lines = ["| bug | what it does | found by seed | CPU seconds |", "|---|---|---|---|"]
    for name, one in results.items():
        seed = one["seed"] if one["seed"] is not None else "it hangs" if one["found"] else "not found"
        seed = "a test that it names" if name in tested and one["found"] else seed
        seed = f"{seed}, the first one" if begins[name] is not None and begins[name] == one["seed"] else seed
        lines.append(f"| {name} | {what[name]} | {seed} | {one['seconds']:g} |")
    found = sum(one["found"] for one in results.values())
    return f"{found} of {len(what)} were found; {len(results)} were looked for.\n\n" + "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """0: all were found; 1: some were missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.control.soak.planted", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=BUDGET_S, metavar="SECONDS")
    parser.add_argument("--record", action="store_true", help="keep the results, and show them on the page")
    given = parser.parse_args(arguments)
    chosen = [bug for bug in bugs() if not given.only or bug.name in given.only]
    now = code()
    if given.record:
        known = recorded()
        done_with = {n for n, one in known.items() if one.get("code") == now and one["budget_s"] >= given.budget}
        chosen = [bug for bug in chosen if bug.name not in done_with]
    missed = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for done in pool.map(lambda bug: look_for(bug, given.budget), chosen):
            missed += not done.found
            if given.record:
                keep(done, given.budget, now)
            print(
                f"{'found ' if done.found else 'MISSED'} {done.seconds:6.1f} s  {done.bug.name}: {done.text}",
                flush=True,
            )
    print(f"{len(chosen) - missed} of {len(chosen)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
