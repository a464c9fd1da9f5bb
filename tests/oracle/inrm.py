"""The policies inside the real FairScheduler (yarn-policy/ltyarn-scheduling-policy), driven by scripts, and ours.

Both are given the same script and the same settings; ours are the simulator's kernels in their keyed modes, with the
exact integrals of harness.sim.longterm_kernels.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.clusters.jars import find
from harness.model.data import data_path
from harness.sim.fair.decide import FairDecider
from harness.sim.longterm_kernels import measured, settle_all
from harness.sim.longterm_state import DOMINANT, MEMORY, RULE_ACCUMULATED, VCORES, LongTermGlobals, LongTermRecord
from harness.sim.state import INTEGRALS, KEYED_FLAT, KEYED_LEVELS
from tests.ledger.quantum import Quantum
from tests.oracle.decisions import HERE, SOURCE

CLASSES = {"ltrf": "Ltrf", "naive-hltrf": "NaiveHltrf", "hltrf": "Hltrf"}
_MEASURES = {"memory": MEMORY, "vcores": VCORES, "dominant": DOMINANT}


def compiled(lib: Path) -> Path:
    """The folder with the compiled policies and their driver."""
    module = data_path("yarn-policy", "ltyarn-scheduling-policy", "src", "main", "java")
    sources = [SOURCE, *sorted(module.rglob("*.java")), *sorted((HERE / "java" / "inrm").rglob("*.java"))]
    digest = hashlib.blake2b(b"".join(path.read_bytes() for path in sources) + str(lib).encode(), digest_size=6)
    target = HERE / "java" / "target" / f"inrm-{digest.hexdigest()}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as draft:
            classes = Path(draft) / "classes"
            command = ["javac", "-nowarn", "-Xlint:none", "-cp", f"{lib}/*", "-d", str(classes), *map(str, sources)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=200)
            assert done.returncode == 0, done.stderr
            with contextlib.suppress(OSError):
                classes.rename(target)
    return target


_FAIR = "<schedulingPolicy>fair</schedulingPolicy>"


def with_policy(script: dict[str, Any], policy: str, settings: dict[str, str]) -> dict[str, Any]:
    """The script with a policy in the allocation file, on every queue, and its settings beside it."""
    named = f"<schedulingPolicy>yarnfair.inrm.{CLASSES[policy]}</schedulingPolicy>"
    return {**script, "allocations": script["allocations"].replace(_FAIR, named), "inrm": settings}


def without_policy(script: dict[str, Any]) -> dict[str, Any]:
    """The script with ``fair`` on every queue again."""
    text = script["allocations"]
    for name in CLASSES.values():
        text = text.replace(f"<schedulingPolicy>yarnfair.inrm.{name}</schedulingPolicy>", _FAIR)
    return {**script, "allocations": text}


def flattened(script: dict[str, Any], seed: int) -> dict[str, Any]:
    """The script with every leaf directly below root: an order that knows no tree needs none."""
    rng = random.Random(seed)
    events, leaves = [], set()
    for event in script["events"]:
        if "app" in event:
            leaf = event["queue"].removeprefix("root.").replace(".", "-")
            leaves.add(leaf)
            event = {**event, "queue": f"root.{leaf}"}
        events.append(event)
    queues = "".join(
        f'<queue name="{leaf}"><weight>{rng.choice((1.0, 2.0, 0.5, 3.25))}</weight>{_FAIR}</queue>'
        for leaf in sorted(leaves)
    )
    text = f'<allocations><queue name="root">{_FAIR}{queues}</queue></allocations>'
    return {**script, "allocations": text, "events": events}


def hadoops(scripts: Sequence[dict[str, Any]], folder: Path) -> list[tuple[Any, Any]]:
    """(script in base events, decisions) of each, from one JVM."""
    lib = find()
    files = []
    for index, script in enumerate(scripts):
        names = [str(folder / f"{index}.{kind}.json") for kind in ("script", "explicit", "decisions")]
        Path(names[0]).write_text(json.dumps(script), encoding="utf-8")
        files += names
    log = f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties"
    java = ["java", "-Xmx1000m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", log]
    command = [*java, "-cp", f"{compiled(lib)}:{lib}/*", "yarnfair.inrm.Driven", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    loaded = [json.loads(Path(name).read_text(encoding="utf-8")) for name in files]
    return [(loaded[3 * index + 1], loaded[3 * index + 2]) for index in range(len(scripts))]


class Keyed(FairDecider):
    """The engine with a long-term order in its scheduler, on a decision script."""

    def __init__(self, script: dict[str, Any], policy: str, settings: dict[str, str]) -> None:
        super().__init__(script)
        sched = self.sched
        S = sched.S
        x, xg = np.zeros(len(S.q), LongTermRecord.dtype), np.zeros(1, LongTermGlobals.dtype)
        x["entitlement"] = 1.0
        tree = sched.manager.tree()
        leaves = sum(queue.weight for queue in tree if queue.leaf)
        for queue in tree:
            slot = sched.queue_index(queue.path)
            x["entitlement"][slot] = queue.weight
            x["flat_share"][slot] = queue.weight / leaves if queue.leaf else 0.0
            x["own_share"][slot] = x["flat_share"][slot]
        x["backlog_ms"] = x["last_start_ms"] = -1
        xg["on"], xg["n"], xg["rule"] = 1, len(sched.queue_paths), RULE_ACCUMULATED
        xg["measure"] = xg["ledger"] = _MEASURES[settings.get("resource", "memory")]
        xg["discount"] = float(settings.get("discount", "1"))
        if "round_s" in settings:
            xg["round_ms"] = xg["round_end_ms"] = round(float(settings["round_s"]) * 1000)
        xg["flat"] = int(policy == "ltrf")
        wait = float(settings.get("t_wait_s", "10"))
        xg["t_wait_ms"] = round(wait * 1000) if policy == "hltrf" and wait < 1e12 else -1
        S.g["hooks"] = INTEGRALS
        S.g["order_mode"] = KEYED_FLAT if policy == "ltrf" else KEYED_LEVELS
        xg["pseudo"] = int(settings.get("pseudo") == "true")
        sched.S = S._replace(x=x, xg=xg)
        self.quantum: Quantum | None = None
        if "quantum_s" in settings:
            parents = {queue.path: queue.parent for queue in tree}
            quantum_ms = float(settings["quantum_s"]) * 1000
            self.quantum = Quantum(quantum_ms, settings.get("adaptive_quantum") == "true", parents)
        self.tasks: dict[int, dict[int, float]] = {}  # application -> container -> what it holds
        self.leaf_of = {sched.queue_index(queue.path): queue.path for queue in tree if queue.leaf}
        self.app_leaf: dict[int, str] = {}

    #: What running tasks are assumed to use yet is due anew at each time.
    @property
    def now(self) -> int:
        return self._now

    @now.setter
    def now(self, value: int) -> None:
        self._now = value
        if getattr(self, "quantum", None) is not None:
            self._assume()

    def _after(self) -> None:
        super()._after()
        settle_all(self.sched.S, self.now)
        if self.quantum is not None:
            self._look()
            self._assume()

    def _look(self) -> None:
        """What the jar sees at a look: leaf by leaf ends, new applications, starts, applications that have gone."""
        S, quantum = self.sched.S, self.quantum
        assert quantum is not None
        alive = [i for i in range(len(S.a)) if S.a["alive"][i]]
        live: dict[int, dict[int, float]] = {int(S.a["id"][i]): {} for i in alive}
        leaf_of = {int(S.a["id"][i]): self.leaf_of[int(S.a["q"][i])] for i in alive}
        slots = {i: int(S.a["id"][i]) for i in alive}
        for c in np.flatnonzero(S.c["alive"] & S.c["live"] & (S.c["am"] == 0)):
            app = slots.get(int(S.c["app"][c]))
            if app is not None:
                live[app][int(S.c["cid"][c])] = float(
                    measured(S, int(S.xg["ledger"][0]), S.c["mb"][c], S.c["vcores"][c])
                )
        for leaf in self.leaf_of.values():
            for app in [app for app in self.tasks if self.app_leaf[app] == leaf and app in live]:
                for task in [task for task in self.tasks[app] if task not in live[app]]:
                    quantum.finish(app, task, self.now)
                    del self.tasks[app][task]
            for app in [app for app in live if leaf_of[app] == leaf]:
                if app not in self.tasks:
                    quantum.add_app(app, leaf)
                    self.tasks[app], self.app_leaf[app] = {}, leaf
                for task, amount in live[app].items():
                    if task not in self.tasks[app]:
                        quantum.start(app, task, self.now, amount)
                        self.tasks[app][task] = amount
            for app in [app for app in self.tasks if self.app_leaf[app] == leaf and app not in live]:
                quantum.remove_app(app)
                del self.tasks[app]

    def _assume(self) -> None:
        assert self.quantum is not None
        S = self.sched.S
        ahead = self.quantum.assumed(self.now, float(S.xg["round_start_ms"][0]))
        for slot, path in self.leaf_of.items():
            # Good for this moment alone: at a time b it is a - b * now.
            S.x["ahead_b"][slot] = 1e-9 if ahead.get(path, 0.0) > 0 else 0.0
            S.x["ahead_a"][slot] = ahead.get(path, 0.0) + self.now * 1e-9


def ours(script: dict[str, Any], policy: str, settings: dict[str, str]) -> dict[str, Any]:
    """Our decisions for the explicit script."""
    return Keyed(without_policy(script), policy, settings).run()
