"""The files that stand on the disk in the course of a history, and files with a mistake made of them.

The model's ResourceManager has a rule for whether it would start with a file. Both sorts are given to Hadoop's own
classes, which have to agree (tests/oracle/test_soak_files.py).
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.control.soak import capacities, edits, world
from tests.control.soak.violated import Violated


@dataclass(frozen=True)
class Stood:
    """A file; ``mistake``: what was done to it ('': nothing)."""

    capacity: bool
    data: bytes
    mistake: str = ""

    @property
    def starts(self) -> bool:
        """Whether the model's ResourceManager would start with it."""
        try:
            (capacities if self.capacity else edits).read(self.data)
        except edits.Unreadable:
            return False
        return True


def files_of(seeds: Iterable[int], most: int) -> list[Stood]:
    """The different files of these histories, in order, at most so many of each."""
    found: dict[Stood, None] = {}
    for seed in seeds:
        root = Path(tempfile.mkdtemp(prefix="stood-"))
        try:
            one = world.World(seed, root)
            seen: dict[Stood, None] = {}
            replaced = one.file.replaced

            def stands(one: world.World = one, seen: dict[Stood, None] = seen, replaced=replaced) -> None:  # type: ignore[no-untyped-def]
                replaced()
                data = one.file.read()
                if data and not one.broken:
                    seen[Stood(bool(one.plan.capacity), data)] = None
                if len(seen) == most:
                    raise Violated("that is enough")

            one.file.replaced = stands  # type: ignore[method-assign]
            one.run()
            found |= seen
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return list(found)


def mistaken(file: Stood, rng: random.Random) -> Stood:
    """A file with a mistake: of a share, of a policy, or of a name."""
    data = file.data
    if file.capacity:
        shares = list(re.finditer(rb"\.capacity</name>\s*<value>([^<]*)</value>", data))
        share, other = rng.choice(shares), rng.choice((b"7", b"3w", b"33.34", b"x", b"0"))
        if share[1].startswith(b"["):
            # Kinds of capacities beside absolute resources are another matter (tests/oracle/test_capacity_loading.py).
            other = rng.choice((b"x", b"[memory=9999999,vcores=1]", b"[memory=64,vcores=0]"))
        elif other == b"0":
            other = b"x"  # Hadoop takes a percentage of 0 beside weights, and the model is stricter
        return Stood(True, data[: share.start(1)] + other + data[share.end(1) :], f"the capacity {other.decode()}")
    match rng.randrange(3):
        case 0:
            name = rng.choice([q.path for q in edits.read(data).values() if q.leaf]).rpartition(".")[2].encode()
            policy = rng.choice((b"drf", b"fifo", b"fair", b"best"))
            found = re.search(rb'<queue name="' + name + rb'"[^>]*?(/?)>', data)
            assert found is not None
            end = b"</queue>" if found[1] else b""
            element = b'<queue name="' + name + b'"><schedulingPolicy>' + policy + b"</schedulingPolicy>" + end
            # Of two elements Hadoop takes the last, and the model takes neither: a leaf's own goes.
            after, own = data[found.end() :], b"<schedulingPolicy>[^<]*</schedulingPolicy>"
            leaf, close, others = (b"", b"", after) if found[1] else after.partition(b"</queue>")
            after = re.sub(own, b"", leaf) + close + others
            return Stood(False, data[: found.start()] + element + after, f"the policy {policy.decode()}")
        case 1:
            return Stood(False, data.replace(b"<weight>", b"<weight>m", 1), "a weight that is no number")
        case _:
            return Stood(False, data.replace(b'<queue name="q', b'<queue name="q.', 1), "a name with a period")
