"""`convert` against Hadoop's own fs2cs in its weight mode, and what it makes in Hadoop's own CapacityScheduler.

Where the two differ on purpose is written here, case by case; anything else that differs fails.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.clusters.jars import find
from harness.experiments.real.schedulers import file_text
from harness.experiments.resolve import allocation_file, load_experiment
from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX, AllocationFile
from harness.model.resources import Resource
from harness.sim.capacity.conf import PREFIX
from harness.yarn.capacity.convert import Conversion, convert_allocations, render_properties
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.acls import read_access_list
from harness.yarn.fair.manager import QueueManager, queue_tree
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.placement import CapacityPlacing, FairPlacing, Submission
from harness.yarn.validation import check_document
from tests.oracle.allocation_files import random_file
from tests.oracle.allocation_mutations import mutated
from tests.oracle.capacity_files import Random
from tests.oracle.decisions import compiled, decisions
from tests.oracle.loading import load

pytestmark = pytest.mark.java

#: Mutated files, and the first seed: as in test_capacity_loading.py.
MUTATIONS = int(os.environ.get("YARNFAIR_ORACLE_FILES") or 300)
SEED = int(os.environ.get("YARNFAIR_ORACLE_SEED") or 1)
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
        if list(map(plain_rule, mine)) == list(map(plain_rule, hadoops)):
            return "a default rule places into its queue, or rejects"
    return None


def plain_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """A mapping rule without what is written otherwise for a default rule on purpose."""
    kept = {key: value for key, value in rule.items() if key not in ("create", "fallbackResult")}
    if kept.get("customPlacement") == "root.default":
        kept = {**kept, "policy": "defaultQueue"}
        del kept["customPlacement"]
    return kept


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


#: Files of the shapes that people publish: pools and queues, placement by group, access lists, shares of masters.
REAL = [
    DOCKERS.read_text(),
    """<?xml version="1.0"?>
<allocations>
  <defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>
  <queueMaxAMShareDefault>0.3</queueMaxAMShareDefault>
  <userMaxAppsDefault>20</userMaxAppsDefault>
  <queue name="root">
    <aclSubmitApps> </aclSubmitApps>
    <queue name="prod">
      <weight>40.0</weight>
      <schedulingPolicy>drf</schedulingPolicy>
      <aclSubmitApps>alice,bob ops</aclSubmitApps>
      <minResources>20480 mb, 10 vcores</minResources>
      <queue name="etl"><weight>3</weight><maxRunningApps>40</maxRunningApps></queue>
      <queue name="reports"><maxAMShare>0.1</maxAMShare><schedulingPolicy>fifo</schedulingPolicy></queue>
    </queue>
    <queue name="dev"><weight>60</weight><maxResources>50%</maxResources></queue>
    <queue name="users" type="parent"><maxChildResources>8192 mb, 4 vcores</maxChildResources></queue>
  </queue>
  <user name="alice"><maxRunningApps>30</maxRunningApps></user>
  <queuePlacementPolicy>
    <rule name="specified" create="false"/>
    <rule name="nestedUserQueue"><rule name="default" queue="users" create="false"/></rule>
    <rule name="default" queue="dev"/>
  </queuePlacementPolicy>
</allocations>
""",
    """<allocations>
  <pool name="hadoop"><minResources>1024 mb, 1 vcores</minResources><weight>2.0</weight></pool>
  <pool name="spark">
    <maxResources>memory-mb=40%, vcores=40%</maxResources>
    <fairSharePreemptionTimeout>60</fairSharePreemptionTimeout>
    <allowPreemptionFrom>false</allowPreemptionFrom>
  </pool>
  <pool name="default"><weight>0.5</weight></pool>
  <defaultMinSharePreemptionTimeout>120</defaultMinSharePreemptionTimeout>
  <queuePlacementPolicy>
    <rule name="primaryGroup" create="false"/>
    <rule name="secondaryGroupExistingQueue"/>
    <rule name="default"/>
  </queuePlacementPolicy>
</allocations>
""",
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


#: Applications of a test: users whose groups are no queue's, and one without.
USERS = {"alice": ("staff", "ops"), "bob": ("prod", "a")}


@pytest.mark.parametrize("release", [None, "3.4.2"])
def test_mutations_of_files_convert_to_files_that_load_and_place_alike(release: str | None) -> None:
    """Whatever is in a file: what is made loads; queues, limits and placement are the same, or a note says otherwise.

    Where an application was placed, it comes to the same queue: asked for by its path, unless a rule is lost.
    """
    documents, compared = [], Counter[str]()
    for seed in range(SEED, SEED + (MUTATIONS if release is None else max(MUTATIONS // 3, 100))):
        rng = Random(seed)
        xml = mutated(rng, rng.choice(REAL) if rng.chance(0.5) else random_file(rng, depth=2))
        if rng.chance(0.3):
            xml = xml.replace("</allocations>", f"{rng.choice(PLACING)}</allocations>")
        try:
            file = parse_allocations(xml)
            made = convert_allocations(file, fixed_queues=rng.chance(0.4))
        except InputError:
            compared["refused"] += 1
            continue
        document = render_properties(made.properties).encode()
        documents.append(document)
        verdict = check_document(document, source="made")
        assert not verdict.refused, (seed, verdict.findings)
        the_same_queues(seed, file, made)
        if release is None and not any("placement rule" in note.what for note in (*made.lost, *made.changes)):
            compared.update(placed_alike(rng, seed, file, document))
    assert len(documents) >= 30
    assert release is not None or compared["placed"] >= 100
    limits = {f"yarn.scheduler.maximum-allocation-{name}": str(2**31 - 1) for name in ("mb", "vcores")}
    answers = load(documents, conf=limits, release=release, timeout_s=3600)
    refused = [(answer, document) for answer, document in zip(answers, documents, strict=True) if answer.refused]
    assert not refused, refused[0]


def the_same_queues(seed: int, file: AllocationFile, made: Conversion) -> None:
    """Each queue is there, with its weight among its siblings, its limit of applications and its access lists."""
    said, tree = made.properties, queue_tree(file)
    told = {note.queue for note in (*made.changes, *made.lost)}
    for queue in tree:
        if queue.parent is None:
            continue
        siblings = tree.children(queue.parent)
        names = said[f"{queue.parent}.queues"].split(",")
        assert sorted(names) == sorted(each.path.rpartition(".")[2] for each in siblings), (seed, queue.path)
        mine, total = (
            sum(float(said[f"{each.path}.capacity"].removesuffix("w")) for each in group)
            for group in ([queue], siblings)
        )
        if total and not told & {queue.parent, *(each.path for each in siblings)}:
            share = queue.weight / sum(each.weight for each in siblings)
            assert math.isclose(mine / total, share, rel_tol=1e-5, abs_tol=1e-9), (seed, queue.path)
        most = int(said.get(f"{queue.path}.max-parallel-apps", said.get("max-parallel-apps", JAVA_INT_MAX)))
        assert most == queue.max_running_apps, (seed, queue.path)
        settings = file.settings.get(queue.path)
        text = settings.acls.get("aclSubmitApps", " ") if settings is not None else " "
        assert read_access_list(said.get(f"{queue.path}.acl_submit_applications", " ")) == read_access_list(text)


def placed_alike(rng: Random, seed: int, file: AllocationFile, document: bytes) -> Counter[str]:
    """The first application of each client is placed as before, if it was."""
    compared = Counter[str]()
    values = parse_configuration(document, source="made").values
    leaves = [queue.path for queue in queue_tree(file).leaves() if queue.parent is not None]
    for queue in [*rng.sample(leaves, min(3, len(leaves))), "default"]:
        for user, groups in USERS.items():
            given = Submission(queue, user, groups, "job")
            before = FairPlacing(QueueManager(file)).place(given).queue
            after = CapacityPlacing(Settings({name: text for name, text in values.items() if text})).place(given).queue
            compared["placed" if before else "rejected"] += 1
            assert before is None or after == before or not_made(before, values), (seed, given, before, after)
    return compared


def not_made(queue: str, values: Mapping[str, str]) -> bool:
    """Whether it is a queue that applications made, and that `--fixed-queues` leaves out."""
    known = {f"{name.removeprefix(PREFIX).removesuffix('.capacity')}" for name in values if name.endswith(".capacity")}
    return queue not in known and f"{PREFIX}root.auto-queue-creation-v2.enabled" not in values
