"""Makes data sets: part by part onto a folder or HDFS, resumable, with a manifest that says what is there.

A part is there whole or not at all; its checksum stands in the manifest, which is written after each part. Whoever
starts again with the same kind, seed and size goes on where the last one ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.jobs.data.kinds import KINDS, PART_BYTES, part_bytes
from harness.model.errors import CallError, InputError

MANIFEST = "manifest.json"
FORMAT = 1
TPCH = "tpch"
#: Bytes of one TPC-H scale factor, about (``--size 1GB`` is scale factor 1).
TPCH_BYTES = 1_000_000_000


class Target(ABC):
    """Where a data set goes."""

    name: str

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """A file's bytes; None when there is none."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Puts a file there whole or not at all."""

    def size(self, name: str) -> int | None:
        """A file's bytes; None when there is none."""
        found = self.read(name)
        return None if found is None else len(found)


@dataclass(frozen=True)
class FolderTarget(Target):
    """A folder of this machine, or one that is shared."""

    folder: Path

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(self.folder)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(self.folder / name)) from None

    def size(self, name: str) -> int | None:
        try:
            return (self.folder / name).stat().st_size
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> None:
        temporary = ""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=f".{name}.")
            with os.fdopen(handle, "wb") as out:
                out.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, self.folder / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise InputError(
                f"cannot be written: {error.strerror}", where=str(self.folder / name), mend="check disk and rights"
            ) from None


@dataclass(frozen=True)
class HdfsTarget(Target):
    """A folder in HDFS, by WebHDFS."""

    base: str
    folder: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.base}{self.folder}"

    def _place(self, name: str) -> Any:
        from harness.yarn.files import open_place

        parts = urlsplit(self.base)
        scheme = "swebhdfs" if parts.scheme == "https" else "webhdfs"
        return open_place(f"{scheme}://{parts.netloc}{posixpath.join(self.folder, name)}")

    def read(self, name: str) -> bytes | None:
        from harness.yarn.errors import Refused

        try:
            found: bytes = self._place(name).read()
            return found
        except Refused as error:
            if "FileNotFound" in error.exception or error.status == 404:
                return None
            raise

    def write(self, name: str, content: bytes) -> None:
        self._place(name).write(content)


def open_target(text: str) -> Target:
    """A target by its name: a folder, or ``webhdfs://host:port/folder``."""
    if "://" not in text:
        if not text or "\0" in text:
            raise CallError("no folder given", where="--out")
        return FolderTarget(Path(text))
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise CallError(f"{text[:80]!r} is no place: {error}", where="--out") from None
    if parts.scheme not in ("webhdfs", "swebhdfs") or not parts.hostname or len(parts.path) < 2:
        raise CallError(f"{text[:80]!r} is no place", where="--out", mend="a folder, or webhdfs://host:port/folder")
    return HdfsTarget(f"{'http' if parts.scheme == 'webhdfs' else 'https'}://{parts.netloc}", parts.path)


UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def read_size(text: str) -> int:
    """Bytes from "10MB", "1.5 GB", "4096". CallError for what is none."""
    stripped = text.strip().upper()
    digits = stripped.rstrip("KMGTIB ")
    unit = stripped[len(digits) :].strip()
    try:
        size = float(digits) * UNITS[unit]
    except (ValueError, KeyError):
        raise CallError(f"{text[:40]!r} is no size", where="--size", mend="write 10MB, 40GB or bytes") from None
    if not 1 <= size <= 10**14:
        raise CallError(f"{text[:40]!r} is out of range", where="--size", mend="1 byte to 100 TB")
    return int(size)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a data set is and what of it is there. ``parts``: file -> {"bytes", "sha256"}."""

    kind: str
    seed: int
    size: int
    parts: Mapping[str, Mapping[str, Any]]
    complete: bool

    def document(self) -> dict[str, Any]:
        """As it lies beside the parts."""
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
    """The manifest there; None when there is none. InputError for one that cannot be used."""
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
            mend="remove the data set",
        ) from None


def _plan(kind: str, size: int) -> list[tuple[str, int]]:
    """(file, bytes about) of every part."""
    count = max(-(-size // PART_BYTES), 1)
    sizes = [PART_BYTES] * (count - 1) + [size - PART_BYTES * (count - 1)]
    return [(f"part-{number:05d}.{KINDS[kind].suffix}", part) for number, part in enumerate(sizes)]


def generate(
    kind: str, size: int, seed: int, target: Target, on_part: Callable[[int, int, int], None] = lambda *_: None
) -> Manifest:
    """Makes the data set, or what is missing of it.

    ``on_part(done, all, bytes)`` after each part. InputError when another data set is there, or the place refuses.
    """
    if kind != TPCH and kind not in KINDS:
        raise CallError(f"no kind {kind[:40]!r}", mend=f"one of {', '.join([*KINDS, TPCH])}")
    there = read_manifest(target)
    if there is not None and (there.kind, there.seed, there.size) != (kind, seed, size):
        raise InputError(
            f"another data set is there: {there.kind}, seed {there.seed}, {there.size} bytes",
            where=target.name,
            mend="give another --out, or remove it",
        )
    if kind == TPCH:
        return _tpch(size, seed, target, there, on_part)
    parts: dict[str, Mapping[str, Any]] = dict(there.parts) if there is not None else {}
    plan = _plan(kind, size)
    for number, (name, wanted) in enumerate(plan):
        if name in parts and target.size(name) == parts[name]["bytes"]:
            on_part(number + 1, len(plan), 0)
            continue
        content = part_bytes(kind, seed, number, wanted)
        target.write(name, content)
        parts[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        _write(target, Manifest(kind, seed, size, parts, number + 1 == len(plan)))
        on_part(number + 1, len(plan), len(content))
    made = Manifest(kind, seed, size, parts, True)
    if there is None or not there.complete:
        _write(target, made)
    return made


def _write(target: Target, manifest: Manifest) -> None:
    target.write(MANIFEST, (json.dumps(manifest.document(), indent=1) + "\n").encode())


def _tpch(
    size: int, seed: int, target: Target, there: Manifest | None, on_part: Callable[[int, int, int], None]
) -> Manifest:
    """TPC-H's eight tables by tpchgen-cli as parquet files; the scale factor is size / 1 GB. Its data has no seed."""
    if there is not None and there.complete:
        return there
    if seed != 1:
        raise CallError("TPC-H's data is the same for every seed", where="--seed", mend="leave --seed out")
    program = shutil.which("tpchgen-cli")
    if program is None:
        import sysconfig

        beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        program = str(beside) if beside.is_file() else None
    if program is None:
        raise InputError("no tpchgen-cli on the PATH", mend="pip install 'yarnfair[workloads]'")
    with tempfile.TemporaryDirectory(prefix="yarnfair-tpch-") as work:
        scale = f"{size / TPCH_BYTES:.6f}".rstrip("0").rstrip(".")
        command = [program, "parquet", "-s", scale or "0.000001", "--output-dir", work]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        files = sorted(Path(work).rglob("*.parquet"))
        if done.returncode or not files:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise InputError(
                f"tpchgen-cli failed: {words[-1][:200] if words else done.returncode}", mend="look at --size"
            )
        parts: dict[str, Mapping[str, Any]] = {}
        for number, file in enumerate(files, start=1):
            content = file.read_bytes()
            target.write(file.name, content)
            parts[file.name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            on_part(number, len(files), len(content))
    made = Manifest(TPCH, seed, size, parts, True)
    _write(target, made)
    return made


def verify(target: Target) -> list[str]:
    """What is wrong with a data set, in words; empty when all parts are there with their checksums."""
    manifest = read_manifest(target)
    if manifest is None:
        raise InputError("no data set there", where=target.name, mend="generate it first")
    wrong = [] if manifest.complete else ["it is not complete: generate it again to go on"]
    for name, part in manifest.parts.items():
        content = target.read(name)
        if content is None:
            wrong.append(f"{name} is missing")
        elif hashlib.sha256(content).hexdigest() != part["sha256"]:
            wrong.append(f"{name} has another checksum")
    return wrong
