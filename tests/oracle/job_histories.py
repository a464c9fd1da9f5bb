"""Job history files by Hadoop's EventWriter (java/.../jobhistory/Histories.java), in its JSON and its binary form.

Run as a program it writes the samples for the tests that need no Java::

    python -m tests.oracle.job_histories tests/traces/recorded/jobhistory
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.clusters.jars import find
from tests.oracle.decisions import HERE, SOURCES, compiled
from tests.traces.histories import DAY, Job, Run

_PACKAGE = "org.apache.hadoop.mapreduce.jobhistory"
SOURCES["histories"] = [HERE / "java" / "src" / _PACKAGE.replace(".", "/") / "Histories.java"]
#: The folders of a sample's two forms.
JSON, BINARY = "json", "binary"


def _ask(given: dict[str, Any]) -> Any:
    lib = find()
    classes = compiled(lib, "histories")
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder) / "given.json", Path(folder) / "answer.json"
        request.write_text(json.dumps(given), encoding="utf-8")
        java = ["java", "-Xmx500m", "-XX:+UseSerialGC", f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties"]
        done = subprocess.run(
            [*java, "-cp", f"{classes}:{lib}/*", f"{_PACKAGE}.Histories", str(request), str(answer)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(answer.read_text(encoding="utf-8"))


def written(jobs: Sequence[Job], folder: Path) -> None:
    """Write each job's events as Hadoop does, into the folders `JSON` and `BINARY`."""
    files = []
    for at, job in enumerate(jobs):
        name = f"{at:03d}-{job.id}.jhist"
        files.append({"events": [_event(job, line) for line in job.lines()[3:]]})
        for form in (JSON, BINARY):
            (folder / form).mkdir(parents=True, exist_ok=True)
            files[-1][form] = str(folder / form / name)
    _ask({"write": files})


def counted(files: Sequence[Path]) -> list[int]:
    """How many events Hadoop's EventReader reads of each file before its end or its first damage."""
    found: list[int] = _ask({"count": [str(path) for path in files]})
    return found


def _event(job: Job, line: str) -> dict[str, Any]:
    ((name, fields),) = json.loads(line)["event"].items()
    return {"name": name.rpartition(".")[2], "fields": {"jobid": job.id, **fields}}


def random_job(draw: random.Random, number: int) -> Job:
    """A job whose attempts succeed, fail, are killed, or do not end."""
    runs = [
        Run(task, draw.choice((8, 20.5, 21)), draw.choice((30, 90.25, 95)),
            draw.choice(("SUCCEEDED", "SUCCEEDED", "FAILED", "KILLED", None)), kind, attempt)
        for kind in ("MAP", "REDUCE") for task in range(draw.randrange(5)) for attempt in range(draw.randrange(3))
    ]  # fmt: skip
    return Job(
        runs,
        finish_s=draw.choice((None, 100, 120.5)),
        status=draw.choice(("SUCCEEDED", "KILLED", "FAILED")),
        submit_ms=DAY + 1000 * number,
        number=number,
        placed_in=draw.choice((None, "root.prod")),
        masters_s=draw.choice(((2,), (2, 25))),
        uber=draw.random() < 0.1,
        never_started=range(10, 10 + draw.randrange(3)),
    )


def samples() -> list[Job]:
    """Few small jobs: one that succeeds, one that fails, one that is killed and was moved to another queue."""
    return [
        Job([Run(0, 8, 18), Run(1, 8, 28), Run(0, 20, 40, kind="REDUCE")], finish_s=42, number=1),
        Job(
            [Run(0, 8, 18), *(Run(1, 8 + 100 * n, 108 + 100 * n, "FAILED", number=n) for n in range(4))],
            finish_s=410,
            status="FAILED",
            submit_ms=DAY + 5000,
            number=2,
        ),
        Job(
            [Run(task, 8, 608, "KILLED") for task in range(3)],
            finish_s=610,
            status="KILLED",
            submit_ms=DAY + 9000,
            number=3,
            placed_in="root.prod",
            never_started=(7,),
        ),
    ]


if __name__ == "__main__":
    written(samples(), Path(sys.argv[1]))
