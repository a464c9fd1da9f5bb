"""The real FairScheduler's decisions (java/.../Oracle.java), and where ours differ from them.

Two lists are compared up to an order that Hadoop leaves to a concurrent hash table: containers that an application's
end kills are compared as a set. Texts of errors and refusals are ours.

Run as a program it records decisions for the tests that need no Java::

    python -m tests.oracle.decisions tests/oracle/recorded
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.clusters.jars import find
from tests.oracle.scripts import FEATURES, Plan, make_script

HERE = Path(__file__).resolve().parent
MAIN_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.Oracle"
SOURCE = HERE / "java" / "src" / (MAIN_CLASS.replace(".", "/") + ".java")

#: name -> (seed, features) of the scripts that are recorded: together all features, small.
RECORDED: dict[str, tuple[int, str]] = {
    "fair": (4000, "weights,min,max,am,amshare,maxapps,userlimit,increments,release,late,ties"),
    "drf": (4001, "weights,min,max,drf,am,amshare,keys,loss,sizeweight,increments,reload,hashes"),
    "fifo": (4002, "weights,fifo,am,maxapps,userlimit,assignmultiple,reload,adhoc,cleanup"),
    "reservations": (4003, "weights,min,am,bigasks,reservations,loss,manual,restart,late,files"),
    "preemption": (4013, "weights,min,max,fifo,am,bigasks,reservations,preemption,restart,hashes,ties"),
    "preemption_drf": (4010, "weights,min,drf,am,preemption,cleanup,increments,keys,hashes,late,sizeweight"),
    "fetched": (4014, "weights,am,preemption,manual,bigasks,reservations,release,reload,loss"),
    "neverlaunched": (4012, "weights,am,preemption,neverlaunched,bigasks,reservations,min"),
}


def _compiled(lib: Path) -> Path:
    """The folder with the compiled driver; made once for each state of its source, also by processes side by side."""
    digest = hashlib.blake2b(SOURCE.read_bytes() + str(lib).encode(), digest_size=6).hexdigest()
    target = HERE / "java" / "target" / digest
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as draft:
            classes = Path(draft) / "classes"
            compile_ = ["javac", "-nowarn", "-Xlint:none", "-cp", f"{lib}/*", "-d", str(classes), str(SOURCE)]
            subprocess.run(compile_, check=True, capture_output=True, timeout=120)
            # Where another process was faster, its folder is as good.
            with contextlib.suppress(OSError):
                classes.rename(target)
    return target


def decisions(scripts: Sequence[dict[str, Any]], folder: Path, *, timeout_s: float = 600) -> list[tuple[Any, Any]]:
    """(script in base events, Hadoop's decisions) for each script, from one JVM; `folder` takes files."""
    lib = find()
    classes = _compiled(lib)
    files: list[str] = []
    for index, script in enumerate(scripts):
        names = [str(folder / f"{index}.{kind}.json") for kind in ("script", "explicit", "decisions")]
        Path(names[0]).write_text(json.dumps(script), encoding="utf-8")
        files += names
    # Only the quick compiler: such short runs would spend most of their time in the thorough one.
    java = [
        "java",
        "-Xmx1500m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties",
    ]
    done = subprocess.run(
        [*java, "-cp", f"{classes}:{lib}/*", MAIN_CLASS, *files], capture_output=True, text=True, timeout=timeout_s
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers = []
    for index in range(len(scripts)):
        loaded = [json.loads(Path(files[3 * index + k]).read_text(encoding="utf-8")) for k in (1, 2)]
        for name in files[3 * index : 3 * index + 3]:
            Path(name).unlink()
        answers.append((loaded[0], loaded[1]))
    return answers


def _settled(completed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Completions with those of one application's end in the order of n."""
    out: list[dict[str, Any]] = []
    run: list[dict[str, Any]] = []
    for record in [*completed, {"t": -1, "app": "", "why": ""}]:
        if run and (record["why"] != "app_end" or record["app"] != run[0]["app"] or record["t"] != run[0]["t"]):
            out += sorted(run, key=lambda r: r["n"])
            run = []
        if record["why"] == "app_end":
            run.append(record)
        else:
            out.append(record)
    return out[:-1]


def _comparable(kind: str, records: list[dict[str, Any]]) -> list[Any]:
    if kind == "completed":
        return _settled(records)
    if kind == "errors":
        return [record["t"] for record in records]
    if kind == "rejected":
        return [(record["t"], record["app"]) for record in records]
    return records


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """The first difference of each kind of record, in words; skipped events are the script's, not compared."""
    found = []
    for kind in ("assignments", "reserved", "preempted", "completed", "rejected", "errors", "shares"):
        left, right = _comparable(kind, theirs[kind]), _comparable(kind, ours[kind])
        for index, (a, b) in enumerate(zip(left, right, strict=False)):
            if a != b:
                if kind == "shares":
                    a, b = _uneven(a, b), f"at {a['t']}"
                found.append(f"{kind}[{index}]: Hadoop {a}, ours {b}")
                break
        else:
            if len(left) != len(right):
                found.append(f"{kind}: Hadoop has {len(left)}, we {len(right)}")
    return found


def _uneven(a: Any, b: Any, path: str = "") -> list[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for key in a.keys() | b.keys() for line in _uneven(a.get(key), b.get(key), f"{path}/{key}")]
    return [] if a == b else [f"{path}: {a} / {b}"]


def counts(script: dict[str, Any], theirs: dict[str, Any]) -> Counter[str]:
    """What a script and Hadoop's answer to it contain, by kind."""
    kinds = Counter(f"completed: {record['why']}" for record in theirs["completed"])
    kinds["assignments"] = len(theirs["assignments"])
    kinds["assignments: AMs"] = sum("am" in record for record in theirs["assignments"])
    kinds["assignments: from a reservation"] = sum("from_reservation" in record for record in theirs["assignments"])
    for kind in ("reserved", "preempted", "rejected", "errors"):
        kinds[kind] = len(theirs[kind])
    for event in ("reload", "lost", "restart", "release", "pull", "check"):
        kinds[f"events: {event}"] = sum(event in e for e in script["events"])
    return kinds


def recorded() -> list[Path]:
    """Files with decisions of the real class that are kept with the tests."""
    return sorted((HERE / "recorded").glob("*.json.gz"))


def load(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recorded pair: (script in base events, Hadoop's decisions)."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        pair = json.load(stream)
    return pair["script"], pair["decisions"]


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    assert set().union(*(names.split(",") for _, names in RECORDED.values())) == FEATURES.keys()
    plans = [
        Plan(seed, frozenset(names.split(",")), nodes=10, apps=30, seconds=120, tasks=25)
        for seed, names in RECORDED.values()
    ]
    with tempfile.TemporaryDirectory() as folder:
        pairs = decisions([make_script(plan) for plan in plans], Path(folder))
    for name, (script, answer) in zip(RECORDED, pairs, strict=True):
        text = json.dumps({"script": script, "decisions": answer}, separators=(",", ":"))
        (target / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        print(name, dict(counts(script, answer)))


if __name__ == "__main__":
    main()
