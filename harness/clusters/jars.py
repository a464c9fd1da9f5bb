"""Hadoop's jars for a cluster of local processes: resolved once by Maven, kept in the user's cache.

``HADOOP_LIB`` names a folder that has them already. The list of artefacts is docker/pom.xml, the same as the image's.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.base.errors import InputError, RunTimedOut
from harness.model.data import data_path

_NEEDED = (
    "hadoop-yarn-server-resourcemanager-",
    "hadoop-yarn-server-nodemanager-",
    "hadoop-yarn-server-timelineservice-",
    "hadoop-mapreduce-client-shuffle-",
    "hadoop-common-",
)


def cache_folder() -> Path:
    """Where the jars are kept: ``$XDG_CACHE_HOME/yarnfair``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "yarnfair"


def missing(folder: Path, needed: tuple[str, ...] = _NEEDED) -> list[str]:
    """The artefacts without which no cluster starts (or other ones) and that are not in `folder`."""
    try:
        names = os.listdir(folder)
    except OSError:
        return list(needed)
    return [prefix for prefix in needed if not any(name.startswith(prefix) for name in names)]


def _target() -> Path:
    # Another list of artefacts is another folder: nothing old is ever mixed in.
    pom = data_path("docker", "pom.xml").read_bytes()
    return cache_folder() / f"hadoop-jars-{hashlib.sha256(pom).hexdigest()[:12]}"


def cached() -> bool:
    """Whether the jars are in the cache already."""
    return not missing(_target())


def find(*, timeout_s: float = 900.0, progress: Callable[[str], None] = lambda _: None) -> Path:
    """The folder with the jars, resolving them first if need be (about a minute). InputError, RunTimedOut."""
    if given := os.environ.get("HADOOP_LIB"):
        if lacking := missing(Path(given)):
            raise InputError(
                f"HADOOP_LIB has no {', '.join(name + '*.jar' for name in lacking)}",
                where=given,
                mend="let it name a folder with Hadoop's jars, or unset it",
            )
        return Path(given).absolute()
    pom, target = data_path("docker", "pom.xml"), _target()
    if not missing(target):
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise InputError(
            "no Maven (mvn) on the PATH", mend="install maven, or set HADOOP_LIB to a folder with the jars"
        )
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if missing(target):
            progress(f"resolving Hadoop's jars by Maven into {target} (once)")
            _resolve(maven, pom, target, timeout_s)
    return target


def find_one(
    prefix: str, pom: Path, *, timeout_s: float = 600.0, progress: Callable[[str], None] = lambda _: None
) -> Path:
    """The one jar ``PREFIX*.jar`` that a POM names: of ``HADOOP_LIB`` or the cache, else by Maven. InputError."""
    given = os.environ.get("HADOOP_LIB")
    target = cache_folder() / f"{prefix}{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"

    def there() -> Path | None:
        return next((jar for at in (given, target) if at for jar in sorted(Path(at).glob(f"{prefix}*.jar"))), None)

    found = there()
    if found is not None:
        return found
    maven = shutil.which("mvn")
    if maven is None:
        raise InputError("no Maven (mvn) on the PATH", mend=f"install maven, or put {prefix}*.jar into HADOOP_LIB")
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = there()
        if found is None:
            progress(f"resolving {prefix}*.jar by Maven into {target} (once)")
            _resolve(maven, pom, target, timeout_s, (prefix,))
            found = there()
    if found is None:
        raise InputError(f"Maven gave no {prefix}*.jar", where=str(target))
    return found


def find_set(
    name: str,
    pom: Path,
    needed: tuple[str, ...],
    *,
    timeout_s: float = 1800.0,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """A folder with all jars of a POM, ``needed`` (prefixes) among them: of the cache, else by Maven. InputError."""
    target = cache_folder() / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    if not missing(target, needed):
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise InputError("no Maven (mvn) on the PATH", mend=f"install maven, or put the jars into {target}")
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if missing(target, needed):
            progress(f"resolving {name} by Maven into {target} (once)")
            _resolve(maven, pom, target, timeout_s, needed)
    return target


def _resolve(maven: str, pom: Path, target: Path, timeout_s: float, needed: tuple[str, ...] = _NEEDED) -> None:
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="resolving-") as work:
        shutil.copy(pom, Path(work) / "pom.xml")
        command = [
            maven,
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={work}/lib",
        ]
        try:
            done = subprocess.run(
                command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s
            )
        except subprocess.TimeoutExpired:
            raise RunTimedOut(f"Maven had not resolved the jars after {timeout_s:g} s") from None
        if done.returncode or missing(Path(work) / "lib", needed):
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line] or [
                "no reason given"
            ]
            raise InputError(
                f"Maven did not resolve Hadoop's jars: {lines[0][:300]}",
                mend="check the network and ~/.m2/settings.xml, or set HADOOP_LIB to a folder with the jars",
            )
        shutil.rmtree(target, ignore_errors=True)
        os.rename(Path(work) / "lib", target)
