"""The real schedulers' decisions (java/.../fair/Oracle.java and its siblings), and where ours differ from them.

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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.clusters.jars import find
from harness.sim.decide import scheduler_of
from tests.oracle.capacity_scripts import FEATURES as CAPACITY_FEATURES
from tests.oracle.capacity_scripts import CapacityPlan
from tests.oracle.capacity_scripts import make_script as make_capacity_script
from tests.oracle.fifo_scripts import FEATURES as FIFO_FEATURES
from tests.oracle.fifo_scripts import make_script as make_fifo_script
from tests.oracle.scripts import FEATURES, Plan, make_script
from tests.oracle.versions import for_version, version_of

HERE = Path(__file__).resolve().parent
MAIN_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.{}.Oracle"
_LOAD = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.Load"
_STARTS = "org.apache.hadoop.yarn.server.resourcemanager.Starts"
SOURCE = HERE / "java" / "src" / (MAIN_CLASS.format("fair").replace(".", "/") + ".java")
#: What each scheduler's driver, and that of Hadoop's converter between them, is compiled from. The Capacity Scheduler
#: asks a class of YARN's own for the time: a class of the same name stands in front of it.
SOURCES = {
    "fair": [SOURCE],
    "capacity": [
        HERE / "java" / "src" / (MAIN_CLASS.format("capacity").replace(".", "/") + ".java"),
        HERE / "java" / "src" / "org" / "apache" / "hadoop" / "yarn" / "util" / "SystemClock.java",
    ],
    "fifo": [HERE / "java" / "src" / (MAIN_CLASS.format("fifo").replace(".", "/") + ".java")],
    "fs2cs": [SOURCE.parent / "converter" / "Fs2cs.java"],
    "place": [SOURCE.parent / "Place.java"],
    "load": [HERE / "java" / "src" / (_LOAD.replace(".", "/") + ".java")],
    "starts": [HERE / "java" / "src" / (_STARTS.replace(".", "/") + ".java")],
}
#: Preemption keeps queues in sets by identity hash, random in a real RM: equal hashes make them insertion-ordered.
_FLAGS = {"fair": [], "fifo": [], "capacity": ["-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2"]}

#: name -> (seed, features) of the scripts that are recorded: together all features, small.
RECORDED: dict[str, tuple[int, str]] = {
    "fair": (4000, "weights,min,max,am,amshare,maxapps,userlimit,increments,release,late,ties"),
    "drf": (4001, "weights,min,max,drf,am,amshare,keys,loss,sizeweight,increments,reload,hashes"),
    "fifo": (4002, "weights,fifo,am,maxapps,userlimit,assignmultiple,reload,adhoc,cleanup"),
    "reservations": (4003, "weights,min,am,bigasks,reservations,loss,manual,restart,late,files"),
    "preemption": (4013, "weights,min,max,fifo,am,bigasks,reservations,preemption,restart,hashes,ties"),
    "preemption_drf": (4010, "weights,min,drf,am,preemption,cleanup,increments,keys,hashes,late,sizeweight"),
    "fetched": (4014, "weights,am,preemption,manual,bigasks,reservations,release,reload,loss"),
    "zero": (4020, "weights,zero,drf,am,release,increments"),
    "neverlaunched": (4012, "weights,am,preemption,neverlaunched,bigasks,reservations,min"),
}

RECORDED_CAPACITY: dict[str, tuple[int, str]] = {
    "weights": (5000, "weights,deep,maxcap,userlimits,am,amlimit,increments,release,loss,reconfigure,ties,hashes"),
    "percent": (5001, "percent,drf,deep,maxapps,priorities,am,multi,bigasks,reservations,reconfigure,refused,restart"),
    "absolute": (5002, "absolute,drf,deep,maxcap,userlimits,am,amlimit,reservations,bigasks,loss,increments,keys"),
    "ordering": (5003, "weights,orderingfair,sizeweight,userlimits,am,amlimit,multi,reconfigure,stopped,cleanup,loss"),
    "reservations": (5004, "weights,percent,bigasks,reservations,am,release,loss,manual,increments,resize,restart"),
    "nolook": (5005, "percent,drf,bigasks,reservations,nolook,maxcap,userlimits,neverlaunched,am,priorities"),
    "limits": (5006, "weights,deep,maxcap,userlimits,am,amlimit,maxapps,bigasks,reservations,increments,multi,hashes"),
    "parallel": (
        5007,
        "weights,deep,parallel,priorities,am,amlimit,userlimits,maxapps,restart,reconfigure,loss,release",
    ),
    "largest": (5008, "weights,drf,deep,largest,am,bigasks,reservations,orderingfair,multi,release"),
    "preemption": (5012, "percent,deep,am,amlimit,bigasks,reservations,release,reconfigure,preemption,restart,hashes"),
    "preemption_drf": (5032, "absolute,drf,deep,am,preemption,loss,priorities,restart,maxcap,release"),
    "preemption_more": (5021, "weights,drf,am,userlimits,orderingfair,reservations,bigasks,preemption,preemptmore"),
}

RECORDED_FIFO: dict[str, tuple[int, str]] = {
    "lost": (6043, "am,bigasks,loss,late,release,restart,increments,cleanup"),
    "order": (6014, "am,ids,keys,minimum,manual,loss,hashes"),
    "neverlaunched": (6002, "neverlaunched,am,ids,bigasks,restart,release"),
}


def compiled(lib: Path, scheduler: str) -> Path:
    """The folder with the compiled driver of a scheduler for the version in `lib`."""
    sources = {path.name: for_version(path.read_text(encoding="utf-8"), version_of(lib)) for path in SOURCES[scheduler]}
    return compiled_from(sources, lib)


def compiled_from(sources: Mapping[str, str], lib: Path) -> Path:
    """The folder with the classes of these sources (file name -> text).

    It is made once for each state of the sources, also by processes side by side.
    """
    digest = hashlib.blake2b("".join([*sources.values(), str(lib)]).encode(), digest_size=6).hexdigest()
    target = HERE / "java" / "target" / digest
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as draft:
            classes = Path(draft) / "classes"
            files = [Path(draft) / name for name in sources]
            for file, text in zip(files, sources.values(), strict=True):
                file.write_text(text, encoding="utf-8")
            compile_ = ["javac", "-nowarn", "-Xlint:none", "-cp", f"{lib}/*", "-d", str(classes), *map(str, files)]
            subprocess.run(compile_, check=True, capture_output=True, timeout=300)
            # Where another process was faster, its folder is as good.
            with contextlib.suppress(OSError):
                classes.rename(target)
    return target


def decisions(
    scripts: Sequence[dict[str, Any]], folder: Path, *, lib: Path | None = None, timeout_s: float = 600
) -> list[tuple[Any, Any]]:
    """(script in base events, Hadoop's decisions) for each script, from one JVM; `folder` takes files.

    All scripts are for one scheduler. `lib`: Hadoop's jars, where they are not the usual ones.
    """
    lib = lib or find()
    scheduler = scheduler_of(scripts[0])
    classes = compiled(lib, scheduler)
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
        *_FLAGS[scheduler],
        f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties",
    ]
    main_class = MAIN_CLASS.format(scheduler)
    done = subprocess.run(
        [*java, "-cp", f"{classes}:{lib}/*", main_class, *files], capture_output=True, text=True, timeout=timeout_s
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
    if kind == "shares":
        return [_without_last(record) for record in records]
    return records


def _without_last(record: dict[str, Any]) -> dict[str, Any]:
    """Shares without the limit that each user was last looked up with: ours is kept once for all users of a queue."""
    queues = {path: dict(queue) for path, queue in record["queues"].items()}
    for queue in queues.values():
        if "users" in queue:
            queue["users"] = {
                name: {key: value for key, value in user.items() if not key.startswith("last_limit")}
                for name, user in queue["users"].items()
            }
    return {**record, "queues": queues}


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """The first difference of each kind of record, in words; skipped events are the script's, not compared."""
    found = []
    for kind in ("assignments", "activations", "reserved", "preempted", "completed", "rejected", "errors", "shares"):
        if kind not in theirs:
            continue
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
    for kind in ("activations", "reserved", "preempted", "rejected", "errors"):
        kinds[kind] = len(theirs.get(kind, ()))
    for event in ("reload", "reconfigure", "lost", "restart", "release", "pull", "check"):
        kinds[f"events: {event}"] = sum(event in e for e in script["events"])
    return kinds


def recorded() -> list[Path]:
    """Files with decisions of the real class that are kept with the tests."""
    return sorted((HERE / "recorded").glob("*.json.gz"))


def recorded_capacity() -> list[Path]:
    """The same of the Capacity Scheduler."""
    return sorted((HERE / "recorded" / "capacity").glob("*.json.gz"))


def recorded_fifo() -> list[Path]:
    """The same of the FIFO scheduler."""
    return sorted((HERE / "recorded" / "fifo-scheduler").glob("*.json.gz"))


def load(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recorded pair: (script in base events, Hadoop's decisions)."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        pair = json.load(stream)
    return pair["script"], pair["decisions"]


def save(path: Path, script: dict[str, Any], answer: dict[str, Any]) -> None:
    """Write what `load` reads."""
    text = json.dumps({"script": script, "decisions": answer}, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _record(target: Path, plans: dict[str, Any], make: Callable[[Any], dict[str, Any]]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pairs = decisions([make(plan) for plan in plans.values()], Path(folder))
    for name, (script, answer) in zip(plans, pairs, strict=True):
        save(target / f"{name}.json.gz", script, answer)
        print(name, dict(counts(script, answer)))


def _plans(of: type, table: dict[str, tuple[int, str]], known: Any, **more: Any) -> dict[str, Any]:
    features = {name: frozenset(names.split(",")) for name, (_, names) in table.items()}
    assert set().union(*features.values()) == set(known)
    return {
        name: of(seed, features[name], nodes=10, apps=30, seconds=120, tasks=25, **more)
        for name, (seed, _) in table.items()
    }


def main() -> None:
    target = Path(sys.argv[1])
    _record(target, _plans(Plan, RECORDED, FEATURES), make_script)
    plans = _plans(CapacityPlan, RECORDED_CAPACITY, CAPACITY_FEATURES, shares="all", shares_ms=15_000)
    _record(target / "capacity", plans, make_capacity_script)
    plans = _plans(Plan, RECORDED_FIFO, FIFO_FEATURES, shares="all")
    _record(target / "fifo-scheduler", plans, make_fifo_script)


if __name__ == "__main__":
    main()
