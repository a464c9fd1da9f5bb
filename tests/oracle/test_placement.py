"""Where Hadoop's own classes place applications, and whether `harness.yarn.placement` says the same.

``YARNFAIR_ORACLE_FILES`` (300, in `make test-long` 20,000) is the number of random files of each scheduler that are
asked about, a thirtieth of them here; ``YARNFAIR_ORACLE_SEED`` the first seed.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from harness.clusters.jars import find
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.placement import CapacityPlacing, FairPlacing, Placing, Submission
from tests.oracle import capacity_files
from tests.oracle.capacity_files import Random
from tests.oracle.decisions import HERE, compiled
from tests.oracle.versions import jars

pytestmark = pytest.mark.java

FILES = int(os.environ.get("YARNFAIR_ORACLE_FILES") or 300)
SEED = int(os.environ.get("YARNFAIR_ORACLE_SEED") or 1)
APPS = 40
GROUPS = {"alice": ("admins", "a"), "bob": ("b",), "carol.x": ("x", "y", "c"), "dave": (), "a": ("a.b", "a", "admins")}
_MAIN_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.Place"
_QUEUES = ["default", "a", "b", "c", "x", "y", "root.a", "root.a.x", "a.x", "a.y", "root", "root.default", "nosuch"]
_QUEUES += ["root.a.new", "a.new", "root.a.x.new", "root.b.p.q", ".a", "a.", "a..x", " a", "root.nosuch.x", "b.alice"]
_RULES = ["specified", "user", "primaryGroup", "secondaryGroupExistingQueue", "nestedUserQueue"]


def applications(rng: Random) -> list[dict[str, str]]:
    return [
        {
            "queue": rng.choice(_QUEUES),
            "user": rng.choice(list(GROUPS)),
            "name": rng.choice(["job", "a", "x", "nosuch"]),
        }
        for _ in range(APPS)
    ]


def fair_file(rng: Random) -> bytes:
    def queue(name: str, depth: int) -> str:
        below = rng.sample(["x", "y", "alice", "a", "new"], rng.randint(0, 2)) if depth < 2 else []
        kind = ' type="parent"' if rng.chance(0.2) else ""
        return f'<queue name="{name}"{kind}>{"".join(queue(one, depth + 1) for one in below)}</queue>'

    def create() -> str:
        return rng.choice(["", "", ' create="false"', ' create="true"'])

    def rule(name: str) -> str:
        if name == "nestedUserQueue":
            inner = rng.choice(["primaryGroup", "specified", "secondaryGroupExistingQueue", "default"])
            return f'<rule name="{name}"{create()}><rule name="{inner}"{create()}/></rule>'
        if name in ("user", "primaryGroup") and rng.chance(0.2):
            inner = "default" if name == "primaryGroup" else "primaryGroup"
            return f'<rule name="{name}"{create()}><rule name="{inner}" queue="b"{create()}/></rule>'
        return f'<rule name="{name}"{create()}/>'

    queues = "".join(queue(name, 0) for name in rng.sample(["a", "b", "c", "default", "carol_dot_x"], 3))
    rules = ""
    if rng.chance(0.85):
        last = rng.choice(['<rule name="reject"/>', '<rule name="default"/>', '<rule name="default" queue="a.x"/>'])
        chosen = "".join(map(rule, rng.sample(_RULES, rng.randint(1, 3))))
        rules = f"<queuePlacementPolicy>{chosen}{last}</queuePlacementPolicy>"
    elif rng.chance(0.3):
        rules = "<queuePlacementPolicy> </queuePlacementPolicy>"
    return f"<allocations>{queues}{rules}</allocations>".encode()


def capacity_file(rng: Random) -> bytes:
    made = capacity_files.shape(rng)
    if rng.chance(0.6):
        made.pop("mapping-rule-format", None)
        made.pop("mapping-rule-json", None)
        if rng.chance(0.5):
            made["queue-mappings"] = capacity_files.mappings(rng)
        else:
            made["mapping-rule-format"], made["mapping-rule-json"] = "json", capacity_files.rules(rng)
    if rng.chance(0.5):
        made["queue-mappings-override.enable"] = "true"
    if rng.chance(0.3):
        made["root.auto-queue-creation-v2.enabled"] = "true"
    return capacity_files.document(made, rng)


def hadoop(questions: Sequence[dict[str, Any]], release: str | None = None) -> list[Any]:
    lib = find() if release is None else jars(release)
    java = ["java", "-Xmx1200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += [f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties"]
    done = subprocess.run(
        [*java, "-cp", f"{compiled(lib, 'place')}:{lib}/*", _MAIN_CLASS],
        input="\n".join(json.dumps(question) for question in questions),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions), done.stderr[-3000:]
    return answers


def ours(question: dict[str, Any], document: bytes) -> list[str | None]:
    placing: Placing
    if question["scheduler"] == "fair":
        conf = question["conf"]
        placing = FairPlacing(
            QueueManager(parse_allocations(document)),
            allow_undeclared=conf.get("yarn.scheduler.fair.allow-undeclared-pools") != "false",
            user_as_default=conf.get("yarn.scheduler.fair.user-as-default-queue") != "false",
        )
    else:
        values = parse_configuration(document, source="file").values
        placing = CapacityPlacing(Settings({name: text for name, text in values.items() if text}))
    found = []
    for app in question["apps"]:
        found.append(placing.place(Submission(app["queue"], app["user"], GROUPS[app["user"]], app["name"])).queue)
    return found


@pytest.mark.parametrize("scheduler", ["fair", "capacity"])
@pytest.mark.parametrize("release", [None, "3.4.2"])
def test_applications_are_placed_as_hadoop_places_them(scheduler: str, release: str | None) -> None:
    questions, documents = [], []
    for seed in range(SEED, SEED + max(FILES // 30, 60)):
        rng = Random(seed)
        document = fair_file(rng) if scheduler == "fair" else capacity_file(rng)
        conf = {}
        if rng.chance(0.3):
            conf["yarn.scheduler.fair.allow-undeclared-pools"] = "false"
        if rng.chance(0.3):
            conf["yarn.scheduler.fair.user-as-default-queue"] = "false"
        documents.append(document)
        questions.append(
            {
                "scheduler": scheduler,
                "document": base64.b64encode(document).decode(),
                "conf": conf,
                "groups": ";".join(f"{user}={','.join(groups)}" for user, groups in GROUPS.items()),
                "apps": applications(rng),
            }
        )
    different, compared, rejected = [], 0, 0
    for question, document, answer in zip(questions, documents, hadoop(questions, release), strict=True):
        if "error" in answer:
            continue
        for app, theirs, mine in zip(question["apps"], answer["placed"], ours(question, document), strict=True):
            compared, rejected = compared + 1, rejected + (theirs is None)
            if theirs != mine:
                different.append(f"{app}: Hadoop {theirs}, ours {mine}; {question['conf']}\n{document.decode()}")
    assert not different, f"{len(different)} of {compared} applications differ; the first:\n" + "\n".join(different[:6])
    assert compared >= 20 * len(questions) / 2
    assert compared / 20 <= rejected <= compared * 19 / 20, "applications of both kinds"
