"""``python -m tests.mutations``: changes the code as mutations.toml says, one change at a time; the tests must notice.

Each mutation names the tests that must fail. They run in a copy of the tree, which is whole again afterwards, so that
the engine is compiled once. ``--draw ROOM`` prints mutations for a room of `harness` that a seed has drawn.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.planting import ROOT, Planted, read

FILE = ROOT / "tests" / "mutations.toml"
ROOMS = ("control", "ledger", "policies", "sim", "systems", "yarn")
#: Most seconds that a mutation's tests may take: one that makes them wait for ever is noticed, too.
MOST_S = 1800.0


@dataclass(frozen=True, kw_only=True)
class Mutation(Planted):
    """``tests``: what pytest is given, and must fail."""

    tests: str


def mutations() -> list[Mutation]:
    """All of them. ValueError for one whose text is not in its file, or not once."""
    return read(Mutation, FILE, "mutation")


class Copy:
    """A copy of the tree in a folder; what is compiled in it stays for the next mutation.

    ``environment``: what the tests see besides.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self._environment = environment
        #: All that the last run of tests printed.
        self.output = ""
        self._pass: set[str] = set()
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def notices(self, mutation: Mutation) -> tuple[bool, str]:
        """Whether the tests fail with the mutation and pass without it, and what they say."""
        if mutation.tests not in self._pass:
            fail, said = self._fail(mutation.tests)
            if fail:
                return False, f"without the mutation, too: {said}"
            self._pass.add(mutation.tests)
        file = self.folder / mutation.file
        whole = file.read_bytes()
        try:
            mutation.plant(self.folder)
            # Python compiles a file anew when its size or its second of change differs: both may be as before.
            os.utime(file, (0, random.randrange(1, 10**9)))
            return self._fail(mutation.tests)
        finally:
            file.write_bytes(whole)

    def _fail(self, tests: str) -> tuple[bool, str]:
        """Whether tests fail in the copy, and the last line that says so. RuntimeError if none ran."""
        # Machine code is kept beside the copy's sources, not where these tests keep theirs.
        kept = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not long and not parts"]
        try:
            ended = subprocess.run(
                [*command, *tests.split()],
                cwd=self.folder,
                env={**kept, "PYTHONPATH": str(self.folder), "YARNFAIR_LIVE_FLOOR": "0", "CI": "", **self._environment},
                capture_output=True,
                text=True,
                timeout=MOST_S,
            )
        except subprocess.TimeoutExpired:
            return True, f"not ended after {MOST_S:g} s"
        self.output = ended.stdout
        if ended.returncode not in (0, 1):
            raise RuntimeError(f"{tests}: {(ended.stdout + ended.stderr)[-2000:]}")
        lines = ended.stdout.strip().splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return ended.returncode == 1, (failed or lines)[-1]


# --- drawing

_COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_SIGNS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*"}


def _changes(tree: ast.Module, text: str) -> Iterator[tuple[ast.AST, str]]:
    """Every expression or statement that can be changed, and what it becomes."""

    def of(node: ast.AST) -> str:
        return ast.get_source_segment(text, node) or ""

    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                yield node, f"{of(left)} {_COMPARED[type(op)]} {of(right)}"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                yield node, f"{of(left)} {_SIGNS[type(op)]} {of(right)}"
            case ast.BoolOp(op=op, values=[left, right]):
                yield node, f"{of(left)} {'and' if isinstance(op, ast.Or) else 'or'} {of(right)}"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield node, of(operand)
            case ast.Call(func=ast.Name(id="min" | "max" as name)):
                yield node, ("max" if name == "min" else "min") + of(node)[3:]
            case ast.Return(value=ast.Constant(value=bool(value))):
                yield node, f"return {not value}"
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _SIGNS:
                yield node, f"{of(target)} {_SIGNS[type(op)]}= {of(value)}"
            case ast.Expr(value=ast.Call()) | ast.Delete():
                yield node, "pass"


def draw(room: str, seed: int) -> Iterator[Planted]:
    """Mutations of a room without end; files by chance, length and how often one was drawn.

    Compiled code is left out: each change of it costs minutes of compiling. The oracle's tests switch its features off
    one by one (tests/oracle/test_decisions.py).
    """
    rng = random.Random(f"{room} {seed}")
    files = {path: path.read_text() for path in sorted((ROOT / "harness" / room).rglob("*.py"))}
    files = {path: text for path, text in files.items() if "@kernel" not in text and "njit" not in text}
    changes = {
        path: [one for one in _changes(ast.parse(text), text) if one[0].lineno == one[0].end_lineno]
        for path, text in files.items()
    }
    drawn = dict.fromkeys(files, 0)
    while True:
        path = rng.choices(list(files), [len(changes[path]) / (1 + drawn[path]) ** 2 for path in files])[0]
        text = files[path]
        node, becomes = rng.choice(changes[path])
        lines = text.splitlines(keepends=True)
        first = last = node.lineno - 1
        line = lines[first].encode()
        new = (line[: node.col_offset] + becomes.encode() + line[node.end_col_offset :]).decode()
        while text.count("".join(lines[first : last + 1])) > 1:
            first -= 1
        drawn[path] += 1
        yield Planted(
            name=f"{path.relative_to(ROOT / 'harness').with_suffix('').as_posix()}-{drawn[path]}",
            file=path.relative_to(ROOT).as_posix(),
            old="".join(lines[first : last + 1]),
            new="".join([*lines[first:last], new]),
        )


def written(one: Planted) -> str:
    """A mutation as the file has it, its tests to be named yet."""
    texts = f"old = '''\n{one.old}'''\nnew = '''\n{one.new}'''\n"
    return f'[[mutation]]\nname = "{one.name}"\nfile = "{one.file}"\ntests = ""\n{texts}'


def main(arguments: Sequence[str] | None = None) -> int:
    """0: all were caught; 1: some were not."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--draw", choices=ROOMS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    given = parser.parse_args(arguments)
    if given.draw:
        for _, one in zip(range(given.count), draw(given.draw, given.seed), strict=False):
            print(written(one))
        return 0
    chosen = [one for one in mutations() if not given.only or one.name in given.only]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Copy(Path(folder))
        for one in chosen:
            begun_s = time.monotonic()
            caught, said = copy.notices(one)
            missed += not caught
            print(
                f"{'caught' if caught else 'MISSED'} {time.monotonic() - begun_s:6.1f} s  {one.name}: {said}",
                flush=True,
            )
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
