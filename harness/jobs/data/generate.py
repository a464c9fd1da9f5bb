"""Makes data sets: part by part in a folder or HDFS, resumable, with a manifest of the existing parts.

Parts are written atomically; their checksums are in the manifest, which is written after each part. A new start with
the same kind, seed and size continues where the last one ended, and remakes lost parts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.debug import Timer, log_program
from harness.base.errors import CallError, InputError
from harness.base.extras import install_hint
from harness.base.ties import ending_with_us
from harness.jobs.data.kinds import KINDS, PART_BYTES, part_bytes
from harness.jobs.data.targets import FolderTarget, HdfsTarget, Target, open_target

_LOG = logging.getLogger(__name__)

MANIFEST = "manifest.json"
FORMAT = 1
TPCH = "tpch"
#: Approximate bytes of one TPC-H scale factor (``--size 1GB`` is scale factor 1).
TPCH_BYTES = 1_000_000_000
TPCH_TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
#: Re-exported from harness.jobs.data.targets for callers that make data.
__all__ = ["FolderTarget", "HdfsTarget", "Target", "open_target"]

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def read_size(text: str) -> int:
    """Parse a size such as "10MB", "1.5 GB", "4096". Raises CallError."""
    stripped = text.strip().upper()
    digits = stripped.rstrip("KMGTIB ")
    unit = stripped[len(digits) :].strip()
    try:
        size = float(digits) * UNITS[unit]
    except (ValueError, KeyError):
        raise CallError(f"{text[:40]!r} is not a size", where="--size", hint="write 10MB, 40GB or bytes") from None
    if not 1 <= size <= 10**14:
        raise CallError(f"{text[:40]!r} is out of range", where="--size", hint="1 byte to 100 TB")
    return int(size)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The identity of a data set and its existing parts. ``parts``: file -> {"bytes", "sha256"}."""

    kind: str
    seed: int
    size: int
    parts: Mapping[str, Mapping[str, Any]]
    complete: bool

    def document(self) -> dict[str, Any]:
        """Return the document that is stored beside the parts."""
        digest = hashlib.sha256("".join(f"{n} {p['sha256']}\n" for n, p in sorted(self.parts.items())).encode())
        return {
            "format": FORMAT,
            "kind": self.kind,
            "seed": self.seed,
            "size": self.size,
            "bytes": sum(int(part["bytes"]) for part in self.parts.values()),
            "sha256": digest.hexdigest(),
            "complete": self.complete,
            "parts": dict(self.parts),
        }


def read_manifest(target: Target) -> Manifest | None:
    """Read the manifest; None if there is none. Raises InputError for an unusable one."""
    content = target.read(MANIFEST)
    if content is None:
        return None
    try:
        found = json.loads(content)
        if found["format"] != FORMAT:
            raise ValueError("another format")
        parts = {
            str(name): {"bytes": int(part["bytes"]), "sha256": str(part["sha256"])}
            for name, part in found["parts"].items()
        }
        return Manifest(str(found["kind"]), int(found["seed"]), int(found["size"]), parts, bool(found["complete"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"no usable manifest ({type(error).__name__})",
            where=f"{target.name}/{MANIFEST}",
            hint="remove the data set",
        ) from None


def check_whole(target: Target, manifest: Manifest) -> dict[str, int]:
    """Return the data set's files with their sizes, in order. Compares names and sizes, not contents.

    Raises InputError for an incomplete data set, missing files, or additional files.
    """
    again = "generate it again to go on"
    if not manifest.complete:
        raise InputError("the data set is not complete", where=target.name, hint=again)
    there = target.sizes()
    for name, part in sorted(manifest.parts.items()):
        if name not in there:
            raise InputError(f"the data set has no {name}", where=target.name, hint=again)
        if there[name] != part["bytes"]:
            what = f"{name} has {there[name]} bytes, in the data set {part['bytes']}"
            raise InputError(what, where=target.name, hint=again)
    # Programs read every file with such a name.
    for name in there:
        if name not in manifest.parts and (name.startswith("part-") or name.endswith(".parquet")):
            raise InputError(f"{name} is not of the data set", where=target.name, hint="remove it")
    return {name: there[name] for name in sorted(manifest.parts)}


def usable(target: Target, kind: str) -> Manifest | None:
    """Return the manifest of the data set at a location; None if there is no data set.

    Raises InputError for a data set of another kind, or an incomplete one (`check_whole`).
    """
    manifest = read_manifest(target)
    if manifest is not None and manifest.kind != kind:
        raise InputError(f"a data set of {manifest.kind}", where=target.name, hint=f"give one of {kind}")
    if manifest is not None:
        check_whole(target, manifest)
    return manifest


def how_to_make(kind: str, place: str) -> str:
    """Return the hint for a location without a data set: the command that makes one."""
    return f"make it: yarnfair data generate {kind} --size 10MB --out {place}"


def is_whole(target: Target, manifest: Manifest) -> bool:
    """Return whether `check_whole` finds no problem. Raises InputError for an unreadable location."""
    target.sizes()
    try:
        return bool(check_whole(target, manifest))
    except InputError:
        return False


def _plan(kind: str, size: int) -> list[tuple[str, int]]:
    """Return the name and the approximate number of bytes of each part of a data set.

    The generator determines the sizes of TPC-H's tables; each has the total size here.
    """
    if kind == TPCH:
        return [(f"{table}.parquet", size) for table in TPCH_TABLES]
    count = max(-(-size // PART_BYTES), 1)
    sizes = [PART_BYTES] * (count - 1) + [size - PART_BYTES * (count - 1)]
    return [(f"part-{number:05d}.{KINDS[kind].suffix}", part) for number, part in enumerate(sizes)]


def _contents(kind: str, seed: int, parts: Sequence[tuple[int, int]], jobs: int) -> Generator[bytes]:
    """Yield the bytes of parts (number, approximate size), in order.

    ``jobs`` processes are each at most a part ahead.
    """
    if jobs == 1 or len(parts) < 2:
        yield from (part_bytes(kind, seed, number, size) for number, size in parts)
        return
    from concurrent.futures import Future

    from harness.base.workers import worker_pool

    with worker_pool(min(jobs, len(parts)), simulating=False) as pool:
        waiting: deque[Future[bytes]] = deque()
        for number, size in parts:
            waiting.append(pool.submit(part_bytes, kind, seed, number, size))
            if len(waiting) > jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def generate(
    kind: str,
    size: int,
    seed: int,
    target: Target,
    on_part: Callable[[int, int, int], None] = lambda *_: None,
    *,
    jobs: int = 1,
) -> Manifest:
    """Make the data set, or its missing parts, with several processes (TPC-H: tpchgen-cli has its own threads).

    ``on_part(done, all, bytes)`` is called after each part with the number of parts so far, the number of all parts,
    and the bytes that were written (0: the part existed). Raises CallError for an unknown kind or seed; InputError if
    there is another data set, or the location refuses.
    """
    if kind != TPCH and kind not in KINDS:
        raise CallError(f"no kind {kind[:40]!r}", hint=f"one of {', '.join([*KINDS, TPCH])}")
    there = read_manifest(target)
    if there is not None and (there.kind, there.seed, there.size) != (kind, seed, size):
        raise InputError(
            f"another data set is there: {there.kind}, seed {there.seed}, {there.size} bytes",
            where=target.name,
            hint="give another --out, or remove it",
        )
    if kind == TPCH and seed != 1:
        raise CallError("TPC-H's data is the same for every seed", where="--seed", hint="leave --seed out")
    parts: dict[str, Mapping[str, Any]] = dict(there.parts) if there is not None else {}
    plan = _plan(kind, size)
    target.tidy([MANIFEST, *(name for name, _ in plan)])
    missing = _missing(target, parts, [name for name, _ in plan])
    if there is not None and there.complete and not missing:
        return there
    todo = [(number, wanted) for number, (name, wanted) in enumerate(plan) if name in missing]
    if kind == TPCH:
        made: Generator[bytes | Path] = _tables(size, [TPCH_TABLES[at] for at, _ in todo])
    else:
        made = _contents(kind, seed, todo, jobs)
    with contextlib.closing(made) as contents:
        for number, (name, _) in enumerate(plan, start=1):
            if name not in missing:
                on_part(number, len(plan), 0)
                continue
            content = next(contents)
            target.write(name, content)
            parts[name] = _part(content)
            missing.remove(name)
            _write(target, Manifest(kind, seed, size, parts, not missing))
            on_part(number, len(plan), int(parts[name]["bytes"]))
    whole = Manifest(kind, seed, size, parts, True)
    if not todo:
        _write(target, whole)
    return whole


def _part(content: bytes | Path) -> dict[str, Any]:
    """Return the manifest's entry about a file."""
    if isinstance(content, bytes):
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    with content.open("rb") as file:
        return {"bytes": content.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _missing(target: Target, parts: Mapping[str, Mapping[str, object]], names: Sequence[str]) -> set[str]:
    """Return the files of a data set that are missing or differ from its manifest."""
    there = target.sizes()
    return {name for name in names if name not in parts or there.get(name) != parts[name]["bytes"]}


def _write(target: Target, manifest: Manifest) -> None:
    target.write(MANIFEST, (json.dumps(manifest.document(), indent=1) + "\n").encode())


def _tpchgen() -> str:
    import sysconfig

    program = shutil.which("tpchgen-cli")
    beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    if program is None and not beside.is_file():
        raise InputError("no tpchgen-cli on the PATH", hint=install_hint("workloads"))
    return program or str(beside)


def _tables(size: int, tables: Sequence[str]) -> Generator[Path]:
    """Yield TPC-H tables as parquet files, one after another; each is deleted when the next is requested.

    The scale factor is size / 1 GB. A table passes through a temporary folder, and is never completely in memory.
    """
    scale = f"{size / TPCH_BYTES:.6f}".rstrip("0").rstrip(".") or "0.000001"
    for table in tables:
        with tempfile.TemporaryDirectory(prefix="yarnfair-tpch-") as work:
            command = [_tpchgen(), "parquet", "-s", scale, "--output-dir", work, "--tables", table]
            timer = Timer()
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=ending_with_us()
            )
            log_program(_LOG, command, done.returncode, timer, done.stdout + done.stderr)
            files = sorted(Path(work).rglob("*.parquet"))
            if done.returncode or len(files) != 1:
                words = (done.stderr or done.stdout).strip().splitlines()
                raise InputError(
                    f"tpchgen-cli failed on {table}: {words[-1][:200] if words else done.returncode}",
                    hint="look at --size",
                )
            yield files[0]


def verify(target: Target, on_part: Callable[[str], None] = lambda _: None) -> list[str]:
    """Return what is wrong with a data set, one line each; empty if all parts exist with their checksums.

    ``on_part`` is called with each file's name before the file is read. Raises InputError if there is no data set.
    """
    manifest = read_manifest(target)
    if manifest is None:
        raise InputError("no data set there", where=target.name, hint="generate it first")
    wrong = [] if manifest.complete else ["it is not complete: generate it again to go on"]
    for name, part in manifest.parts.items():
        on_part(name)
        found = target.sha256(name)
        if found is None:
            wrong.append(f"{name} is missing")
        elif found != part["sha256"]:
            wrong.append(f"{name} has another checksum")
    return wrong
