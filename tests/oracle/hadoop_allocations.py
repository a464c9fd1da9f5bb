"""Hadoop's own classes asked about allocation files (java/.../AllocationDump.java), and our answers in the same shape.

Run as a program it records answers for the tests that need no Java::

    python -m tests.oracle.hadoop_allocations tests/yarn/fair/recorded.json.gz
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.clusters.jars import find
from harness.model.queues import JAVA_INT_MAX, AllocationFile, Queue
from harness.model.resources import Resource
from harness.sim.shares import FairShares, fair_shares
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import parse_allocations
from tests.oracle.allocation_files import random_file
from tests.oracle.versions import for_version, version_of
from tests.yarn.fair.odd_files import FILES

HERE = Path(__file__).resolve().parent
MAIN_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.AllocationDump"
SOURCE = HERE / "java" / "src" / (MAIN_CLASS.replace(".", "/") + ".java")
MEMORY_MB = [0, 1, 4096, 100_000, 59 * 4096, 10**7, 2**40]
VCORES = [0, 1, 4, 118, 5000, JAVA_INT_MAX]
#: What Hadoop calls the access lists in its answers.
ACL_NAMES = {
    "aclSubmitApps": "SUBMIT_APP",
    "aclAdministerApps": "ADMINISTER_QUEUE",
    "aclAdministerReservations": "ADMINISTER_RESERVATIONS",
    "aclListReservations": "LIST_RESERVATIONS",
    "aclSubmitReservations": "SUBMIT_RESERVATIONS",
}


def ask(cases: list[dict[str, Any]], lib: Path, classes: Path, *, timeout_s: float = 300) -> list[dict[str, Any]]:
    """Hadoop's answers to these cases, from one JVM. `lib` holds Hadoop's jars, `classes` takes our compiled class."""
    target = classes / (MAIN_CLASS.replace(".", "/") + ".class")
    if not target.exists() or target.stat().st_mtime < SOURCE.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        source = classes / SOURCE.name
        source.write_text(for_version(SOURCE.read_text(encoding="utf-8"), version_of(lib)), encoding="utf-8")
        compile_ = ["javac", "-nowarn", "-Xlint:none", "-cp", f"{lib}/*", "-d", str(classes), str(source)]
        subprocess.run(compile_, check=True, capture_output=True, timeout=300)
    quiet = ["-Dlog4j.configuration=file:/dev/null", "-XX:+UseSerialGC", "-Xmx800m"]
    done = subprocess.run(
        ["java", *quiet, "-cp", f"{classes}:{lib}/*", MAIN_CLASS],
        input="\n".join(map(json.dumps, cases)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert len(answers) == len(cases)
    failures = [
        (case["xml"], answer["failure"]) for case, answer in zip(cases, answers, strict=True) if "failure" in answer
    ]
    assert not failures, failures[0]
    return answers


def random_cases(seed: int, count: int, *, broken: float, depth: int = 3, nan: float = 0.0) -> list[dict[str, Any]]:
    """Random files, clusters and sets of active leaves."""
    rng = random.Random(seed)
    cases: list[dict[str, Any]] = []
    for _ in range(count):
        xml = random_file(rng, broken=broken, depth=depth, nan=nan)
        case: dict[str, Any] = {"xml": xml, "memory_mb": rng.choice(MEMORY_MB), "vcores": rng.choice(VCORES)}
        try:
            leaves = [queue.path for queue in QueueManager(parse_allocations(xml)).tree().leaves()]
        except InputError:
            leaves = []
        if rng.random() < 0.6:
            case["active"] = [leaf for leaf in leaves if rng.random() < 0.6]
        cases.append(case)
    return cases


def bits(value: float) -> int:
    """Float.floatToIntBits."""
    return 0x7FC00000 if value != value else int(struct.unpack(">i", struct.pack(">f", value))[0])


def our_answer(case: dict[str, Any]) -> dict[str, Any]:
    """What AllocationDump would say, from our own code (without its texts of errors)."""
    try:
        file = parse_allocations(case["xml"])
    except InputError:
        return {"loaded": False}
    tree = QueueManager(file).tree()
    cluster = Resource(case["memory_mb"], case["vcores"])
    answer: dict[str, Any] = {"loaded": True}
    shares: dict[str, FairShares] | None = None
    try:
        shares = fair_shares(tree, cluster, case.get("active"))
    except InputError:
        answer["hangs"] = True
    answer["queues"] = {
        queue.path: _queue(queue, file, cluster, shares[queue.path] if shares is not None else None) for queue in tree
    }
    answer["defaults"] = {
        "user_max_apps": file.user_max_apps_default,
        "queue_max_apps": file.queue_max_apps_default,
        "am_share_bits": bits(file.queue_max_am_share_default),
        "policy": file.default_scheduling_policy,
        "users": dict(file.user_max_apps),
    }
    return answer


def _pair(resource: Resource) -> list[int]:
    return [resource.memory_mb, resource.vcores]


def _queue(queue: Queue, file: AllocationFile, cluster: Resource, shares: FairShares | None) -> dict[str, Any]:
    said: dict[str, Any] = {
        "leaf": queue.leaf,
        "policy": queue.policy,
        "weight_bits": bits(queue.weight),
        "min": _pair(queue.min_share),
        "max": _pair(queue.max_share(cluster)),
        "container": _pair(queue.max_container_allocation),
        "max_apps": queue.max_running_apps,
        "am_share_bits": bits(queue.max_am_share),
        "min_timeout_ms": queue.min_share_preemption_timeout_ms,
        "fair_timeout_ms": queue.fair_share_preemption_timeout_ms,
        "threshold_bits": bits(queue.fair_share_preemption_threshold),
        "preemptable": queue.preemptable,
        "dynamic": queue.dynamic,
    }
    settings = file.settings.get(queue.path)
    said["reservable"] = settings is not None and settings.reservable
    if shares is not None:
        said["steady"], said["fair"] = _pair(shares.steady), _pair(shares.instantaneous)
    return said


def differences(case: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Where two answers differ, in words; the access lists are compared as far as the file gives them."""
    if "loaded" not in theirs:
        # It hung while it loaded the file.
        return [] if ours.get("hangs") else ["Hadoop hangs on loading, ours does not"]
    if ours["loaded"] != theirs["loaded"]:
        return [f"loaded: Hadoop {theirs['loaded']} ({theirs.get('error')}), ours {ours['loaded']}"]
    if not ours["loaded"]:
        return []
    found = []
    if bool(ours.get("hangs")) != bool(theirs.get("hangs")):
        found.append(f"hangs: Hadoop {theirs.get('hangs')}, ours {ours.get('hangs')}")
    if ours["defaults"] != theirs["defaults"]:
        found.append(f"defaults: Hadoop {theirs['defaults']}, ours {ours['defaults']}")
    if set(ours["queues"]) != set(theirs["queues"]):
        return [*found, f"queues: Hadoop {sorted(theirs['queues'])}, ours {sorted(ours['queues'])}"]
    for path, said in ours["queues"].items():
        there = theirs["queues"][path]
        for key, value in said.items():
            # A hang leaves shares half computed.
            if key in ("steady", "fair") and theirs.get("hangs"):
                continue
            if there[key] != value:
                found.append(f"{path}.{key}: Hadoop {there[key]}, ours {value}")
    return found


def explain(case: dict[str, Any], found: list[str]) -> str:
    """A case that differs, for the reader of a failed test."""
    cluster = f"{case['memory_mb']} MB, {case['vcores']} vcores, active {case.get('active')}"
    return "\n".join([*found[:10], cluster, case["xml"]])


def main(target: str) -> None:
    """Records small random cases with Hadoop's answers."""
    cases = random_cases(1, 60, broken=0.0, depth=2) + random_cases(2, 40, broken=0.02, depth=1)
    cases += random_cases(3, 4, broken=0.0, depth=1, nan=0.5)
    cases += [{"xml": xml, "memory_mb": 100_000, "vcores": 100} for xml in FILES.values()]
    with tempfile.TemporaryDirectory() as classes:
        answers = ask(cases, find(), Path(classes))
    for answer in answers:
        answer.pop("rules", None)
        answer.pop("error", None)
    text = json.dumps([{"case": case, "hadoop": answer} for case, answer in zip(cases, answers, strict=True)])
    Path(target).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
