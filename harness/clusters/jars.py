"""Hadoop's jars for a cluster of local processes: resolved once by Maven, stored in the user's cache.

``HADOOP_LIB`` names a folder that has them already. The list of artefacts is docker/pom.xml, the same as the image's.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.base.debug import Timer, log_program
from harness.base.errors import InputError, RunTimedOut
from harness.base.files import holding
from harness.model.data import data_path
from harness.yarn.releases import DEFAULT, RELEASES, HadoopRelease, release_of

_LOG = logging.getLogger(__name__)

_COMMON = "hadoop-common-"
_NEEDED = (
    "hadoop-yarn-server-resourcemanager-",
    "hadoop-yarn-server-nodemanager-",
    "hadoop-yarn-server-timelineservice-",
    "hadoop-mapreduce-client-shuffle-",
    _COMMON,
)
_HADOOP = "hadoop-jars"
#: Time limit for resolving a set; the largest set has 250 MB.
_TIMEOUT_S = 1800.0


def cache_folder() -> Path:
    """Return the folder in which the jars are stored: ``$XDG_CACHE_HOME/yarnfair``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "yarnfair"


def missing(folder: Path, needed: tuple[str, ...] = _NEEDED) -> list[str]:
    """Return the artefacts that are not in `folder`, of those that every cluster needs (or of the given ones)."""
    try:
        names = os.listdir(folder)
    except OSError:
        return list(needed)
    return [prefix for prefix in needed if not any(name.startswith(prefix) for name in names)]


def _target(name: str, pom: Path) -> Path:
    # Another list of artefacts has another folder, so that jars of different lists are never mixed.
    return cache_folder() / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"


def release(hadoop: str | None = None) -> HadoopRelease | None:
    """Return the release that clusters are started with: the given one, else that of ``HADOOP_LIB``, else the default.

    None: ``HADOOP_LIB`` has a release that is not in the table. Raises CallError if the given one is not in it.
    """
    if hadoop is None and (given := os.environ.get("HADOOP_LIB")):
        names = [path.name for path in Path(given).glob(f"{_COMMON}*.jar")]
        versions = [name.removeprefix(_COMMON).removesuffix(".jar") for name in sorted(names)]
        return next((RELEASES[version] for version in versions if version in RELEASES), None)
    return release_of(hadoop)


def java_version(told: str) -> int | None:
    """Return the version of Java (8, 17) in what ``java -version`` prints; None if there is none."""
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return None if found is None else int(found[1])


def cached() -> bool:
    """Return whether the jars of the default release are in the cache already."""
    return not missing(_target(_HADOOP, data_path("docker", "pom.xml")))


def identity(hadoop: str | None = None) -> str:
    """Return a text that identifies the Hadoop jars with which clusters are started, without resolving them."""
    pom = data_path("docker", "pom.xml")
    if given := os.environ.get("HADOOP_LIB"):
        with contextlib.suppress(OSError):
            return " ".join(sorted(name for name in os.listdir(given) if name.startswith("hadoop-")))
    return _target(_name(hadoop), pom).name


def _name(hadoop: str | None) -> str:
    """Return the prefix of the folder name of a release's jars."""
    return _HADOOP if hadoop in (None, DEFAULT) else f"{_HADOOP}-{hadoop}"


def find(hadoop: str | None = None, *, progress: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder with Hadoop's jars, resolving them first if necessary (about a minute).

    Parameters
    ----------
    hadoop : str, optional
        A release of harness.yarn.releases; None: that of ``HADOOP_LIB``, else the default.
    progress : callable
        Called with a message before a slow step.

    Raises
    ------
    CallError
        If the release is not in harness.yarn.releases.
    InputError
        If ``HADOOP_LIB`` lacks jars, or Maven is missing or fails.
    RunTimedOut
        If Maven does not resolve the jars in time.
    """
    chosen = release_of(hadoop)
    if given := os.environ.get("HADOOP_LIB"):
        if lacking := missing(Path(given)):
            raise InputError(
                f"HADOOP_LIB has no {', '.join(name + '*.jar' for name in lacking)}",
                where=given,
                hint="let it name a folder with Hadoop's jars, or unset it",
            )
        if hadoop is not None and not (Path(given) / f"{_COMMON}{hadoop}.jar").is_file():
            hint = "unset it, or leave --hadoop out"
            raise InputError(f"HADOOP_LIB does not have Hadoop {hadoop}", where=given, hint=hint)
        return Path(given).absolute()
    instead = "set HADOOP_LIB to a folder with the jars"
    return find_set(
        _name(hadoop),
        data_path("docker", "pom.xml"),
        _NEEDED,
        instead=instead,
        properties=chosen.properties,
        progress=progress,
    )


def find_one(prefix: str, pom: Path, *, progress: Callable[[str], None] = lambda _: None) -> Path:
    """Return the jar ``PREFIX*.jar`` of a POM: from ``HADOOP_LIB`` or the cache, else by Maven. Raises InputError."""
    given, pattern = os.environ.get("HADOOP_LIB"), f"{prefix}*.jar"
    if given and (there := sorted(Path(given).glob(pattern))):
        return there[0]
    instead = f"put {pattern} into HADOOP_LIB"
    folder = find_set(prefix.removesuffix("-"), pom, (prefix,), instead=instead, progress=progress)
    return min(folder.glob(pattern))


def find_set(
    name: str,
    pom: Path,
    needed: tuple[str, ...],
    *,
    instead: str = "",
    properties: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """Return a folder with all jars of a POM, including those with the prefixes ``needed``.

    The jars come from the cache, or by Maven if they are not there. ``instead``: what a user may do without Maven;
    ``properties``: values that replace those of the POM. Raises InputError, RunTimedOut.
    """
    target = _target(name, pom)
    if not missing(target, needed):
        return target
    maven = shutil.which("mvn")
    if maven is None:
        hint = f"install maven, or {instead or f'put the jars into {target}'}"
        raise InputError("no Maven (mvn) on the PATH", hint=hint)
    with holding(cache_folder() / ".lock"):
        if missing(target, needed):
            progress(f"resolving {name} by Maven into {target} (once)")
            _resolve(maven, pom, target, needed, properties or {})
    return target


def _resolve(maven: str, pom: Path, target: Path, needed: tuple[str, ...], properties: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="resolving-") as work:
        shutil.copy(pom, Path(work) / "pom.xml")
        command = [maven, "-q", "-B", "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={work}/lib"]
        command += [f"-D{name}={value}" for name, value in properties.items()]
        timer = Timer()
        try:
            done = subprocess.run(
                command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            _LOG.debug("%s: not done after %s", shlex.join(command), timer)
            raise RunTimedOut(f"Maven had not resolved the jars after {_TIMEOUT_S:g} s") from None
        log_program(_LOG, command, done.returncode, timer, done.stdout + done.stderr)
        if done.returncode or missing(Path(work) / "lib", needed):
            errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
            raise InputError(
                f"Maven did not resolve Hadoop's jars: {(errors or ['no reason given'])[0][:300]}",
                hint="check the network and ~/.m2/settings.xml, or set HADOOP_LIB to a folder with the jars",
            )
        shutil.rmtree(target, ignore_errors=True)
        os.rename(Path(work) / "lib", target)
