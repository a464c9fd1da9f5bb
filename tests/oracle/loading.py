"""Asks Hadoop's CapacityScheduler (java/.../capacity/Load.java) whether it takes capacity-scheduler.xml files."""

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

_MAIN_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.Load"


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
    lib = find() if release is None else jars(release)
    lines = [
        json.dumps({"document": base64.b64encode(document).decode(), "conf": dict(conf or {})})
        for document in documents
    ]
    java = ["java", "-Xmx1200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += [f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties"]
    done = subprocess.run(
        [*java, "-cp", f"{compiled(lib, 'load')}:{lib}/*", _MAIN_CLASS],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(answers) == len(documents), done.stderr[-3000:]
    return [Loaded(**answer) for answer in answers]


def load_files(paths: Sequence[Path]) -> list[Loaded]:
    """Hadoop's answer for each file."""
    return load([path.read_bytes() for path in paths])
