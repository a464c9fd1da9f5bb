"""`convert` against Hadoop's own fs2cs in its weight mode, and what it makes in Hadoop's own CapacityScheduler.

Where the two differ on purpose is written here, case by case; anything else that differs fails.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.clusters.jars import find
from harness.experiments.real.cluster import file_text
from harness.experiments.resolve import allocation_file, load_experiment
from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX, AllocationFile
from harness.model.resources import Resource
from harness.sim.capacity.conf import PREFIX
from harness.yarn.capacity.convert import Conversion, convert_allocations, render_properties
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.parse import parse_allocations
from tests.oracle.allocation_files import random_file
from tests.oracle.decisions import compiled, decisions
from tests.oracle.loading import load

pytestmark = pytest.mark.java

ROOT = Path(__file__).resolve().parents[2]
MAIN_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.converter.Fs2cs"
DOCKERS = ROOT / "docker" / "scheduler" / "fair-scheduler.xml"
#: What ours says and fs2cs does not: applications are limited by number, not by share.
OURS_ALONE = {"global-queue-max-application"}


def fs2cs(files: list[str]) -> list[dict[str, Any]]:
    """Hadoop's conversions, from one JVM."""
    lib = find()
    classes = compiled(lib, "fs2cs")
    java = ["java", "-Dlog4j.configuration=file:/dev/null", "-XX:TieredStopAtLevel=1", "-Xmx800m"]
    done = subprocess.run(
        [*java, "-cp", f"{classes}:{lib}/*", MAIN_CLASS],
        input="\n".join(json.dumps({"xml": xml}) for xml in files),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(files)
    return answers


def on_purpose(key: str, ours: str | None, theirs: str | None, file: AllocationFile) -> str | None:
    """The reason why one property differs, or None."""
    path, _, name = key.rpartition(".")
    tree = queue_tree(file)
    queue = tree.queues.get(path)
    if without_queues(file) and ("root.default" in key or key == "root.queues"):
        return "one queue at least"
    if key in OURS_ALONE:
        return "applications limited by number"
    if key == "root.capacity":
        return "root has the whole cluster, whatever its weight"
    if name == "capacity" and queue is not None and theirs is not None:
        weights = [child.weight for child in tree.children(queue.parent or "")]
        if not all(0 <= weight <= 10_000 for weight in weights):
            return "weights that Hadoop refuses"
    if name == "maximum-am-resource-percent":
        share = file.queue_max_am_share_default if queue is None else queue.max_am_share
        if abs(share + 1) < 1e-4:
            return "no limit of AMs is none"
        if share != share or share <= 0 or share > 1:
            return "AM shares of 0, below, above 1"
    if name == "maximum-capacity" and queue is not None:
        return "a maximum in per cent is kept"
    if name == "max-parallel-apps" and queue is not None and queue.max_running_apps == JAVA_INT_MAX:
        return "no limit where the others have one"
    if name in ("maximum-allocation-mb", "maximum-allocation-vcores") and ours is None:
        assert theirs is not None
        if int(theirs) in (-1, JAVA_INT_MAX, JAVA_LONG_MAX) or int(theirs) >= JAVA_INT_MAX:
            return "an unlimited container is not written"
        above = tree[queue.parent].max_container_allocation if queue and queue.parent else None
        if above is not None and int(theirs) == (above.memory_mb if name.endswith("mb") else above.vcores):
            return "half of a largest container is the parent's"
    if name == "disable_preemption":
        return "fs2cs: only where yarn-site.xml has preemption on"
    if name.startswith("acl_") and "reservations" in name:
        return "access lists of reservations are kept"
    if name.startswith("acl_") and queue is None:
        return "access lists of queues that are not made"
    if name.startswith("acl_") and path == "root" and (ours, theirs) == (None, "*"):
        return "root is open to all by default"
    if name.startswith("acl_") and path == "root" and theirs is None:
        return "root's empty access list means nobody"
    if name == "enabled" and key.endswith("auto-queue-creation-v2.enabled") and ours is None:
        return "no queue is made where no rule makes one"
    if key == "mapping-rule-json":
        mine, hadoops = (json.loads(text)["rules"] for text in (ours or "", theirs or ""))
        if [{**rule, "create": 0} for rule in mine] == [{**rule, "create": 0} for rule in hadoops]:
            return "no queue is made where no rule makes one"
    return None


#: Placement policies that Hadoop's Fair Scheduler takes, with targets that may be parents, leaves, or nothing.
PLACING = [
    f"<queuePlacementPolicy>{rules}</queuePlacementPolicy>"
    for rules in (
        '<rule name="specified" create="false"/><rule name="default" queue="root.a"/>',
        '<rule name="specified" create="false"/><rule name="default" queue="root.prod"/>',
        '<rule name="nestedUserQueue"><rule name="default" queue="a"/></rule>',
        '<rule name="nestedUserQueue" create="false"><rule name="default" queue="b"/></rule><rule name="default"/>',
        '<rule name="nestedUserQueue"><rule name="primaryGroup" create="false"/></rule><rule name="reject"/>',
        '<rule name="user" create="false"/><rule name="primaryGroup" create="false"/><rule name="default"/>',
        '<rule name="secondaryGroupExistingQueue"/><rule name="default" queue="root.no.such"/>',
    )
]


def without_queues(file: AllocationFile) -> bool:
    return len(list(queue_tree(file))) == 1


def same(key: str, ours: str, theirs: str) -> bool:
    if key == "mapping-rule-json":
        return bool(json.loads(ours) == json.loads(theirs))
    if key.endswith("queues"):
        return sorted(ours.split(",")) == sorted(theirs.split(","))
    if ".acl_" in key:
        return ours.split() == theirs.split() and ours[:1].isspace() == theirs[:1].isspace()
    mine, hadoops = ours.removesuffix("w"), theirs.removesuffix("w")
    if (ours == mine) != (theirs == hadoops):
        return False
    try:
        return math.isclose(float(mine), float(hadoops), rel_tol=1e-6, abs_tol=1e-12)
    except ValueError:
        return ours == theirs


def differences(ours: Conversion, theirs: dict[str, Any], file: AllocationFile) -> tuple[list[str], Counter[str]]:
    site = {key: value for key, value in theirs["site"].items() if key.startswith(PREFIX)}
    hadoops = {key.removeprefix(PREFIX): value for key, value in {**site, **theirs["capacity"]}.items()}
    # Of yarn-site.xml's Fair Scheduler settings, which `convert` does not read.
    hadoops.pop("per-node-heartbeat.multiple-assignments-enabled", None)
    own = {**ours.properties, **{k.removeprefix(PREFIX): v for k, v in ours.site.items() if k.startswith(PREFIX)}}
    wrong, reasons = [], Counter[str]()
    for key in sorted({*own, *hadoops}):
        mine, other = own.get(key), hadoops.get(key)
        if mine is not None and other is not None and same(key, mine, other):
            continue
        reason = on_purpose(key, mine, other, file)
        if reason is None and not ours.site.get("yarn.resourcemanager.scheduler.monitor.enable"):
            reason = "no queue is made where no rule makes one" if "queue-expiration-time" in key else None
        if reason is None:
            wrong.append(f"{key}: Hadoop {other!r}, ours {mine!r}")
        else:
            reasons[reason] += 1
    return wrong, reasons


def converted(xml: str) -> tuple[AllocationFile, Conversion] | None:
    try:
        file = parse_allocations(xml)
        return file, convert_allocations(file)
    except InputError:
        return None


def own_files() -> list[str]:
    """The project's own allocation files: Docker's, and those of the experiments, as real clusters get them."""
    found = {DOCKERS.read_text()}
    for path in sorted((ROOT / "experiments").rglob("*.yaml")):
        with contextlib.suppress(InputError):  # another kind of experiment has no queues
            found.add(file_text(allocation_file(load_experiment(str(path)).spec)))
    return sorted(found)


def test_the_projects_own_files_and_random_ones_convert_as_hadoop_converts_them() -> None:
    rng = random.Random(301)
    own = own_files()
    assert len(own) >= 15
    files = [random_file(rng, depth=2) for _ in range(150)] + own
    answers = fs2cs(files)
    reasons: Counter[str] = Counter()
    compared = 0
    wrong: list[str] = []
    for xml, theirs in zip(files, answers, strict=True):
        ours = converted(xml)
        if "error" in theirs or ours is None:
            if ours is not None:
                wrong.append(f"Hadoop refuses what ours takes:\n{xml}")
            continue
        compared += len(theirs["capacity"])
        found, why = differences(ours[1], theirs, ours[0])
        reasons += why
        if found:
            wrong.append("\n".join([*found[:8], xml]))
    assert compared > 5000
    assert not wrong, f"{len(wrong)} of {len(files)} differ; the first:\n{wrong[0]}"
    # Each difference that is meant is there.
    assert len(reasons) >= 8, reasons


def test_hadoops_capacity_scheduler_takes_what_is_made(tmp_path: Path) -> None:
    rng = random.Random(302)
    scripts = []
    cluster = Resource(100_000, 100)
    for _ in range(60):
        xml = random_file(rng, depth=2)
        try:
            made = convert_allocations(parse_allocations(xml), cluster=cluster, fixed_queues=rng.random() < 0.5)
        except InputError:
            continue
        # Larger than any in the files: what the notes ask for.
        conf = {
            "yarn.scheduler.maximum-allocation-mb": JAVA_INT_MAX,
            "yarn.scheduler.maximum-allocation-vcores": 2**31 - 1,
        }
        # Rules are read by another part of the RM, which this driver has not.
        settings = {key: value for key, value in made.properties.items() if not key.startswith("mapping-rule")}
        scripts.append({"conf": conf, "capacity": render_properties(settings), "nodes": [], "events": []})
    assert len(scripts) >= 40
    for _, answer in decisions(scripts, tmp_path, timeout_s=180):
        assert not answer["errors"]


def test_hadoop_starts_with_what_is_made_placement_rules_included() -> None:
    rng = random.Random(303)
    made = []
    for _ in range(150):
        xml = random_file(rng, broken=0.0, depth=2)
        if rng.random() < 0.7:
            xml = xml.replace("</allocations>", f"{rng.choice(PLACING)}</allocations>")
        with contextlib.suppress(InputError):
            # `convert` itself ends with an error for what Hadoop would refuse: none of these is such.
            made.append(convert_allocations(parse_allocations(xml), fixed_queues=rng.random() < 0.5))
    assert len(made) >= 80
    assert any("which the Capacity Scheduler refuses" in note.what for one in made for note in one.lost)
    documents = [render_properties(one.properties).encode() for one in made]
    limits = {f"yarn.scheduler.maximum-allocation-{name}": str(2**31 - 1) for name in ("mb", "vcores")}
    answers = load(documents, conf=limits)
    refused = [(answer, document) for answer, document in zip(answers, documents, strict=True) if answer.refused]
    assert not refused, refused[0]
