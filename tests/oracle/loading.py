"""Asks Hadoop whether it takes configuration files.

`load` asks the CapacityScheduler (java/.../capacity/Load.java) about capacity-scheduler.xml files, `start` a whole
ResourceManager (java/.../Starts.java) about a yarn-site.xml together with a scheduler's file.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.clusters.jars import find
from tests.oracle.decisions import HERE, compiled
from tests.oracle.versions import jars

_RM = "org.apache.hadoop.yarn.server.resourcemanager."


@dataclass(frozen=True)
class Loaded:
    """Why Hadoop does not start with a file, fails at the first node, or fails to refresh; None: it works."""

    start: str | None = None
    node: str | None = None
    refresh: str | None = None

    @property
    def refused(self) -> bool:
        return (self.start or self.node or self.refresh) is not None


def load(
    documents: Sequence[bytes],
    *,
    conf: Mapping[str, str] | None = None,
    release: str | None = None,
    timeout_s: float = 600,
) -> list[Loaded]:
    """Hadoop's answer for each document, all from one JVM.

    conf : properties of yarn-site.xml. release : another release of Hadoop than the project's own.
    """
    questions = [{"document": _encoded(document), "conf": dict(conf or {})} for document in documents]
    return _answers("load", f"{_RM}scheduler.capacity.Load", questions, release, timeout_s)


@dataclass(frozen=True)
class Start:
    """A yarn-site.xml and the file of the scheduler, which is "fair" or "capacity".

    ``types``: its custom resource types, if Hadoop takes them.
    """

    site: bytes
    document: bytes
    scheduler: str
    types: str = ""


def start(starts: Sequence[Start], *, release: str | None = None, timeout_s: float = 600) -> list[Loaded]:
    """Whether a ResourceManager starts with each of these: one JVM for those with the same resource types.

    Hadoop's classes keep amounts of resources that they have once made, with the types of that time. They keep a
    scheduler's metrics too: those of the Capacity Scheduler come first.
    """
    found: dict[int, Loaded] = {}
    for types in dict.fromkeys(each.types for each in starts):
        chosen = [index for index, each in enumerate(starts) if each.types == types]
        chosen.sort(key=lambda index: starts[index].scheduler)
        questions = [
            {
                "site": _encoded(starts[index].site),
                "document": _encoded(starts[index].document),
                "scheduler": starts[index].scheduler,
            }
            for index in chosen
        ]
        found.update(zip(chosen, _answers("starts", f"{_RM}Starts", questions, release, timeout_s), strict=True))
    return [found[index] for index in range(len(starts))]


def _encoded(document: bytes) -> str:
    return base64.b64encode(document).decode()


def _answers(
    driver: str, main_class: str, questions: Sequence[Mapping[str, object]], release: str | None, timeout_s: float
) -> list[Loaded]:
    lib = find() if release is None else jars(release)
    java = ["java", "-Xmx1200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += [f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties"]
    done = subprocess.run(
        [*java, "-cp", f"{compiled(lib, driver)}:{lib}/*", main_class],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(answers) == len(questions), done.stderr[-3000:]
    return [Loaded(**answer) for answer in answers]


def load_files(paths: Sequence[Path]) -> list[Loaded]:
    """Hadoop's answer for each file."""
    return load([path.read_bytes() for path in paths])
