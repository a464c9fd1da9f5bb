"""The Fair Scheduler of Hadoop 2.2.0, which the papers compare with, as an oracle for `hadoop: "2.2"`.

The driver (java/src-2.2) plays nodes, unmanaged applications, asks for any node, updates, ends and releases. A random
script of tests.oracle.scripts is cut to what that release has. As a program it records decisions for the tests that
need no Java, or compares further scripts::

    python -m tests.oracle.hadoop_2_2 --record
    python -m tests.oracle.hadoop_2_2 --seed 100 --scripts 50
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.clusters.jars import find_set
from harness.sim.decide import decider
from tests.oracle.decisions import HERE, MAIN_CLASS, compiled_from, differences, save
from tests.oracle.scripts import Plan, make_script

RECORDED = HERE / "recorded" / "hadoop-2.2"
#: Seeds of the recorded scripts; the features follow from them.
SEEDS = (4, 5, 6)
_SOURCE = HERE / "java" / "src-2.2" / (MAIN_CLASS.format("fair").replace(".", "/") + ".java")
_ALWAYS = frozenset(("weights", "bigasks", "release"))
_SOMETIMES = ("maxapps", "increments", "loss", "late", "ties", "fifo", "assignmultiple")
_DEPENDENCY = """    <dependency>
      <groupId>org.apache.hadoop</groupId><artifactId>ARTIFACT</artifactId><version>2.2.0</version>
      <exclusions><exclusion><groupId>jdk.tools</groupId><artifactId>jdk.tools</artifactId></exclusion></exclusions>
    </dependency>
"""
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>yarnfair</groupId><artifactId>hadoop-2.2</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{_DEPENDENCY.replace("ARTIFACT", "hadoop-yarn-server-resourcemanager")}
{_DEPENDENCY.replace("ARTIFACT", "hadoop-yarn-server-common")}
{_DEPENDENCY.replace("ARTIFACT", "hadoop-common")}
  </dependencies>
</project>
"""
#: What Java 17 has to open for classes of 2013.
_FLAGS = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
)


def jars() -> Path:
    """The folder with the jars of 2.2.0, resolved by Maven once."""
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(_POM, encoding="utf-8")
        return find_set("hadoop-2.2.0", pom, ("hadoop-yarn-server-resourcemanager-", "hadoop-common-"))


def plan_of(seed: int) -> Plan:
    """A random plan of what 2.2.0 has.

    Minimum and maximum shares are in different scripts: that release forgets to update the demand of some queues below
    one whose demand reaches its maximum, which decides whether they are below their minimum.
    """
    rng = random.Random(f"2.2 {seed}")
    features = _ALWAYS | {name for name in _SOMETIMES if rng.random() < 0.6} | {rng.choice(("min", "max"))}
    return Plan(seed, frozenset(features), nodes=10, apps=25, seconds=160, tasks=30)


def script_of(plan: Plan) -> dict[str, Any]:
    """A plan's script, cut to what 2.2.0 has: no element for the root, no limits in per cent, no `maxAMShare`."""
    script = make_script(plan)
    text = script["allocations"]
    begin, end = text.index('<queue name="root">'), text.rindex("</queue>")
    inner = text[begin:end].partition("</schedulingPolicy>")[2]
    inner = re.sub(r"<maxResources>[^<]*%[^<]*</maxResources>", "", inner)
    script["allocations"] = f"<allocations>{inner}<queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault></allocations>"
    # Containers that were killed leave their node at once there.
    script["options"] = {"shares": "none", "resource_types": "conf", "launch": "never", "hadoop": "2.2"}
    return script


def decisions(scripts: Sequence[dict[str, Any]], folder: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(script in base events, the decisions of 2.2.0) for each script, from one JVM; `folder` takes files."""
    lib = jars()
    classes = compiled_from({_SOURCE.name: _SOURCE.read_text(encoding="utf-8")}, lib)
    files: list[str] = []
    for index, script in enumerate(scripts):
        names = [str(folder / f"{index}.{kind}.json") for kind in ("script", "explicit", "decisions")]
        Path(names[0]).write_text(json.dumps(script), encoding="utf-8")
        files += names
    java = ["java", "-Xmx1g", "-XX:TieredStopAtLevel=1", *_FLAGS]
    java += [f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties", "-cp", f"{classes}:{lib}/*"]
    done = subprocess.run([*java, MAIN_CLASS.format("fair"), *files], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    read = [json.loads(Path(name).read_text(encoding="utf-8")) for name in files]
    return [(read[at + 1], read[at + 2]) for at in range(0, len(read), 3)]


def differ(script: dict[str, Any], theirs: dict[str, Any], *, mutations: int = 0) -> list[str]:
    """Where our decisions for a script differ, in words. Numbers of containers are not compared: 2.2.0 counts more."""
    ours = decider(script, mutations=mutations).run()
    for kind in ("assignments", "reserved"):
        for record in ours[kind]:
            del record["cid"]
    return differences(theirs, ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scripts", type=int, default=20)
    arguments = parser.parse_args()
    seeds = SEEDS if arguments.record else range(arguments.seed, arguments.seed + arguments.scripts)
    with tempfile.TemporaryDirectory() as folder:
        pairs = decisions([script_of(plan_of(seed)) for seed in seeds], Path(folder))
    RECORDED.mkdir(exist_ok=True)
    for seed, (script, theirs) in zip(seeds, pairs, strict=True):
        if arguments.record:
            save(RECORDED / f"{seed}.json.gz", script, theirs)
        found = differ(script, theirs)
        features = ",".join(sorted(plan_of(seed).features))
        print(f"seed {seed}: {len(theirs['assignments'])} assignments, {'; '.join(found) or 'equal'} ({features})")


def recorded() -> list[Path]:
    """Return the files of the recorded decisions of Hadoop 2.2.0."""
    return sorted(RECORDED.glob("*.json.gz"))


if __name__ == "__main__":
    main()
