"""The oracle on other versions of Hadoop: their jars, and what the drivers say otherwise for them.

A driver is written for 3.4.2. Where another version has other methods, the driver's text is changed before it is
compiled; shares, which need the most of these, are not compared there. As a program it tells how the simulator's
decisions differ from a version's::

    python -m tests.oracle.versions 3.3.6 [--scheduler capacity] [--seed 30000] [--scripts 20] [--without deep,drf]
      [-o docs/records/versions.json]

``-o`` puts the result among a record's.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.base.files import read_json
from harness.clusters.jars import find_set
from studies.result import write

#: Those whose artefacts Maven resolves; the project's own is among them.
OTHERS = ("3.5.0", "3.4.3", "3.4.2", "3.4.1", "3.3.6", "3.2.4")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>yarnfair</groupId><artifactId>hadoop-scheduler</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.hadoop</groupId><artifactId>hadoop-yarn-server-resourcemanager</artifactId>
      <version>VERSION</version>
    </dependency>
  </dependencies>
</project>
"""
_RM = "hadoop-yarn-server-resourcemanager-"
_QUEUE_PATH = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueuePath"
#: (below this version, a driver's text, what stands there instead)
_OLDER: tuple[tuple[tuple[int, ...], str, str], ...] = (
    ((3, 4), "AbstractLeafQueue", "LeafQueue"),
    (
        (3, 4),
        'if (c.getWeight() != -1f) x.put("weight", c.getWeight()).put("norm_weight", c.getNormalizedWeight());',
        "",
    ),
    (
        (3, 4),
        """um.computeUserLimit(n, cluster, RMNodeLabelsManager.NO_LABEL,
            SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY, true)""",
        "w.getUserResourceLimit()",
    ),
    ((3, 3), "ch.getQueueShortName()", "ch.getQueueName()"),
    ((3, 3), "if (!f.isRunnable()) return false;", ""),
    # Queues were known by their own names alone.
    ((3, 3), "{ return path; }", '{ return path.replaceAll(".*[.]", ""); }'),
    # A container's creation was published once more when its application fetched it.
    (
        (3, 3),
        "    Con c = new Con();\n    c.app = a;",
        "    if (cons.containsKey(rm.getContainerId())) return;\n    Con c = new Con();\n    c.app = a;",
    ),
    ((3, 3), "new UpdatedContainerInfo(launched, done, new ArrayList<>())", "new UpdatedContainerInfo(launched, done)"),
)
#: (from this version on, a driver's text, what stands there instead)
_NEWER: tuple[tuple[tuple[int, ...], str, str], ...] = (
    ((3, 5), "said.isReservable(name)", f"said.isReservable(new {_QUEUE_PATH}(name))"),
    ((3, 5), "said.getReservationAcls(name)", f"said.getReservationAcls(new {_QUEUE_PATH}(name))"),
)


def version_of(lib: Path) -> tuple[int, ...]:
    """Of the ResourceManager's jar in a folder."""
    names = [found for jar in lib.glob(f"{_RM}*.jar") if (found := re.search(r"-(\d+(?:\.\d+)+)\.jar$", jar.name))]
    return tuple(map(int, names[0][1].split("."))) if names else (3, 4, 2)


def for_version(source: str, version: tuple[int, ...]) -> str:
    """A driver's text as that version takes it."""
    for below, text, other in _OLDER:
        if version < below:
            source = source.replace(text, other)
    for since, text, other in _NEWER:
        if version >= since:
            source = source.replace(text, other)
    return source


def jars(version: str) -> Path:
    """The folder with a version's jars, resolved by Maven once."""
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(_POM.replace("VERSION", version), encoding="utf-8")
        return find_set(f"hadoop-{version}", pom, (f"{_RM}{version}", "hadoop-common-"))


def plan_for(version: str, scheduler: str, seed: int, without: frozenset[str] = frozenset()) -> Any:
    """A random plan of what that version has: before 3.4 the Capacity Scheduler knows no weights."""
    from tests.oracle import capacity_scripts, scripts

    if scheduler == "fair":
        plan: Any = scripts.random_plan(seed)
    else:
        plan = capacity_scripts.random_plan(seed)
        if version < "3.4":
            plan.features = plan.features - {"weights"} | {"percent"}
    plan.features = type(plan.features)(plan.features - without)
    plan.nodes, plan.apps, plan.seconds, plan.tasks = 12, 40, 150, 40
    return plan


def _bounded(script: dict[str, Any]) -> dict[str, Any]:
    """With a large user-limit-factor for -1: before 3.4 that is not "without end" but lets no user run anything."""

    def settled(settings: Any) -> Any:
        factors = {name: "1000" for name, value in settings.items() if name.endswith("limit-factor") and value == "-1"}
        return {**settings, **factors}

    events = [
        {**event, "reconfigure": settled(event["reconfigure"])} if "reconfigure" in event else event
        for event in script["events"]
    ]
    return {**script, "capacity": settled(script["capacity"]), "events": events} if "capacity" in script else script


def _apart(script: dict[str, Any]) -> dict[str, Any]:
    """With leaf queues of different names: before 3.3 one name may stand once in the whole tree."""

    def path(text: str) -> str:
        found, above = [], ""
        for word in text.split("."):
            queue = re.fullmatch(r"[abc]\d+", word) is not None
            above += word if queue else ""
            found.append(above if queue else word)
        return ".".join(found)

    def children(name: str, text: Any) -> Any:
        above = path(name).rpartition(".queues")[0].rpartition(".")[2]
        return ",".join(f"{above if above != 'root' else ''}{child}" for child in text.split(","))

    def settings(given: Any) -> Any:
        return {path(name): children(name, text) if name.endswith(".queues") else text for name, text in given.items()}

    def renamed(event: Any) -> Any:
        own = {"queue": path} if "queue" in event else {"reconfigure": settings} if "reconfigure" in event else {}
        return {key: own[key](value) if key in own else value for key, value in event.items()}

    return {**script, "capacity": settings(script["capacity"]), "events": [renamed(e) for e in script["events"]]}


def differing(version: str, scheduler: str, plans: Sequence[Any], folder: Path) -> list[tuple[Any, int, list[str]]]:
    """(plan, assignments, first differences between that version's decisions and ours) for each plan."""
    from harness.sim.decide import decider
    from tests.oracle import capacity_scripts, scripts
    from tests.oracle.decisions import decisions, differences

    make = {"fair": scripts.make_script, "capacity": capacity_scripts.make_script}[scheduler]
    made = [make(plan) for plan in plans]
    if version < "3.4":
        made = [_bounded(script) for script in made]
    if version < "3.3" and scheduler == "capacity":
        made = [_apart(script) for script in made]
    pairs = decisions(made, folder, lib=jars(version), timeout_s=3600)
    return [
        (plan, len(theirs["assignments"]), differences(theirs, decider(script).run()))
        for plan, (script, theirs) in zip(plans, pairs, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", choices=OTHERS)
    parser.add_argument("--scheduler", choices=("fair", "capacity"), default="capacity")
    parser.add_argument("--seed", type=int, default=30_000)
    parser.add_argument("--scripts", type=int, default=20)
    parser.add_argument("--without", default="", help="features that no script has, separated by commas")
    parser.add_argument("-o", "--out", type=Path)
    chosen = parser.parse_args()
    without = frozenset(chosen.without.split(",")) - {""}
    seeds = range(chosen.seed, chosen.seed + chosen.scripts)
    plans = [plan_for(chosen.version, chosen.scheduler, seed, without) for seed in seeds]
    with tempfile.TemporaryDirectory() as folder:
        found = differing(chosen.version, chosen.scheduler, plans, Path(folder))
    for plan, assignments, lines in found:
        print(f"seed {plan.seed}: {assignments} assignments, {lines[0][:160] if lines else 'equal'}")
        if lines:
            print(f"  {','.join(sorted(plan.features))}")
    equal = sum(not lines for _, _, lines in found)
    print(f"{chosen.version} {chosen.scheduler}: {equal} of {len(found)} scripts decided alike")
    if chosen.out is not None:
        values = read_json(chosen.out)["values"] if chosen.out.exists() else {}
        what = chosen.scheduler + (f"-without-{'-'.join(sorted(without))}" if without else "")
        values.setdefault(chosen.version, {})[what] = {
            "seeds": [seeds[0], seeds[-1]],
            "scripts": len(found),
            "alike": equal,
            "assignments": sum(assignments for _, assignments, _ in found),
            "differ": [plan.seed for plan, _, lines in found if lines],
        }
        write(chosen.out, "python -m tests.oracle.versions RELEASE --scheduler SCHEDULER -o FILE", values)


if __name__ == "__main__":
    main()
