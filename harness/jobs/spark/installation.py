"""The installation of Spark.

One pinned release, downloaded once into the user's cache and unpacked for YARN's containers.

Spark is large (the archive has 434 MB), so it is not part of the environment: ``requirements-spark.txt`` names release
and hash, and pip downloads it when a Spark program is first run. ``YARNFAIR_SPARK`` names a folder that has it already.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.base.debug import Timer, log_program
from harness.base.errors import InputError, RunTimedOut
from harness.base.files import holding, writing
from harness.clusters.jars import cache_folder
from harness.model.data import data_path

_LOG = logging.getLogger(__name__)

GIVEN = "YARNFAIR_SPARK"
REQUIREMENTS = "requirements-spark.txt"
_PIN = re.compile(r"^pyspark==([0-9][0-9.]*)", re.MULTILINE)
#: The parts of the archive that are unpacked: folder in the archive -> name in the installation.
_TAKEN = {"deps/jars": "jars", "lib": "python/lib"}
_NEEDED = ("jars/spark-yarn_", "jars/spark-sql_", "jars/spark-mllib_", "python/lib/pyspark", "python/lib/py4j-")


def _requirements() -> str:
    return data_path(REQUIREMENTS).read_text(encoding="utf-8")


def version() -> str:
    """Return the release that is used."""
    found = _PIN.search(_requirements())
    assert found is not None
    return found.group(1)


def missing(folder: Path) -> list[str]:
    """Return the parts of Spark that a folder lacks; empty if it can be used."""
    lacking = [prefix + "*" for prefix in _NEEDED if not any(folder.glob(prefix + "*"))]
    if not lacking and not any(folder.glob(f"jars/spark-yarn_*-{version()}.jar")):
        lacking = [f"jars/spark-yarn_*-{version()}.jar"]
    return lacking


def target() -> Path:
    """Return the folder of the installation. Another pinned release has another folder."""
    return cache_folder() / f"spark-{version()}-{hashlib.sha256(_requirements().encode()).hexdigest()[:12]}"


def find(*, timeout_s: float = 1800.0, progress: Callable[[str], None] = lambda _: None) -> Path:
    """Return Spark's folder (``jars``, ``python/lib``), downloading it first if necessary.

    Raises InputError, RunTimedOut.
    """
    if given := os.environ.get(GIVEN):
        if lacking := missing(Path(given)):
            raise InputError(
                f"{GIVEN} has no {', '.join(lacking)}",
                where=given,
                hint=f"let it name a folder with Spark {version()}, or unset it",
            )
        return Path(given).absolute()
    home = target()
    if home.is_dir():
        return home
    with writing(cache_folder()), holding(cache_folder() / ".spark.lock"):
        if not home.is_dir():
            progress(f"fetching Spark {version()} into {home} (once, 434 MB)")
            _fetch(home, timeout_s)
    return home


def _fetch(home: Path, timeout_s: float) -> None:
    if importlib.util.find_spec("pip") is None:
        raise InputError(f"no pip to fetch Spark {version()} with", hint=f"install pip, or set {GIVEN} to a folder")
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="fetching-spark-") as work:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--no-cache-dir", "--require-hashes", "-r", str(data_path(REQUIREMENTS)), "--dest", work]
        timer = Timer()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, cwd=work
            )
        except subprocess.TimeoutExpired:
            raise RunTimedOut(f"pip had not fetched Spark {version()} after {timeout_s:g} s") from None
        log_program(_LOG, command, done.returncode, timer, done.stderr)
        archive = next(Path(work).glob("pyspark-*.tar.gz"), None)
        if done.returncode or archive is None:
            lines = [line.strip() for line in done.stderr.splitlines() if "ERROR" in line] or ["no reason given"]
            raise InputError(
                f"pip did not fetch Spark {version()}: {lines[-1][:300]}",
                hint=f"check the network and pip's settings, or set {GIVEN} to a folder with it",
            )
        unpacked = Path(work) / "home"
        unpack(archive, unpacked)
        os.rename(unpacked, home)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the needed parts of pyspark's source archive. Raises InputError if they are missing."""
    try:
        with tarfile.open(archive) as packed:
            for member in packed:
                top, _, path = member.name.partition("/")
                source, _, name = path.rpartition("/")
                if not member.isfile() or source not in _TAKEN or not top.startswith("pyspark-"):
                    continue
                content = packed.extractfile(member)
                assert content is not None
                to = folder / _TAKEN[source] / name
                to.parent.mkdir(parents=True, exist_ok=True)
                with content, to.open("wb") as out:
                    shutil.copyfileobj(content, out, 1 << 20)
    except (tarfile.TarError, EOFError) as error:
        what = f"no archive that can be read: {error}"
        raise InputError(what, where=str(archive), hint="run it again: it is fetched anew") from None
    if lacking := missing(folder):
        hint = f"give a folder with Spark {version()} as {GIVEN}"
        raise InputError(f"the archive has no {', '.join(lacking)}", where=str(archive), hint=hint)
