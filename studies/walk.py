"""The walk of a new administrator on a real local cluster: shadow, bounded, full, a guard, release. Ten minutes.

    python -m studies.walk -o docs/how-to/switch-it-on.md
    python -m studies.walk --scheduler capacity -o docs/how-to/switch-it-on-capacity.md
    python -m studies.walk --cluster as-is -o docs/how-to/switch-it-on-as-is.md
    python -m studies.walk --cluster as-is --async -o docs/how-to/switch-it-on-as-is.md

It starts a cluster of two nodes with a load that contends (queue a alone for a while, then b and c with more than there
is room for), goes every step with the commands that the page shows, and writes the page with their real output. Only
names of this machine (the RM's address, paths) are replaced by those of the page, and lines broken as in a terminal of
80 columns. It fails where the file does not come back byte for byte. `--cluster as-is` is another cluster
(`studies.walk_as_is`).
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import YarnfairError
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.model.resources import Resource
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient, Submission
from harness.yarn.rmclient import RmClient
from studies import walk_as_is
from studies.walking import Walk

FAIR = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <!-- ours -->
  <queue name="a"><weight>2.0</weight></queue>
  <queue name="b"/>
  <queue name="c"/>
</allocations>
"""
_P = "yarn.scheduler.capacity"
_MASTERS = f"  <property><name>{_P}.maximum-am-resource-percent</name><value>1</value></property>\n"
CAPACITY = f"""<?xml version="1.0"?>
<configuration>
  <property><name>{_P}.root.queues</name><value>a,b,c</value></property>
  <!-- ours -->
  <property><name>{_P}.root.a.capacity</name><value>50</value></property>
  <property><name>{_P}.root.b.capacity</name><value>25.0</value></property>
  <property><name>{_P}.root.c.capacity</name><value>25.0</value></property>
{_MASTERS}</configuration>
"""
#: What mends the traps that the controller finds in `CAPACITY`.
HINTS = "".join(
    f"  <property><name>{_P}.{name}</name><value>{value}</value></property>\n"
    for name, value in {
        "global-queue-max-application": "10000",
        **{f"root.{queue}.user-limit-factor": "-1" for queue in "abc"},
        "maximum-am-resource-percent": "1000",
    }.items()
)
MENDED = CAPACITY.replace(_MASTERS, HINTS)
PAGE = """# {title}

This walk takes ten minutes. The cluster has two nodes; its three queues want more than there is. Queue `a` worked alone
for half a minute, then `b` and `c` came. You see what the commands printed in a terminal of 80 columns; only addresses
and paths are replaced, and the middle of long logs is left out.
{other}
Every key is in the [reference](../reference/enforce.md), every word in the [glossary](../glossary.md).
(`python -m studies.walk --scheduler {scheduler} -o {page}` makes this page.)

This is the administrator's file, with the entitlements: half of the cluster for `a`, a quarter each for `b` and `c`.
{comes_back}

```xml
{file}```

## A cluster to try it on

With a cluster of your own, go on to step 1. Else save the file above as `{scheduler}.xml`, and start two nodes on this
machine ([what it needs](clusters.md)):

```console
$ yarnfair cluster up --backend local --memory-mb 4096 --vcores 16 --http-port 8088 \\
    --scheduler {scheduler} --allocations {scheduler}.xml
```

This `load.sh` submits applications of 512 MiB that sleep for 20 s: at first one a second in queue `a`, after half a
minute also one in `b` and one in `c`, for ten minutes in all.

```bash
rest=$1/ws/v1/cluster/apps
for second in $(seq 600); do
  queues=a; [ "$second" -gt 30 ] && queues="a b c"
  for queue in $queues; do
    id=$(curl -s -X POST "$rest/new-application?user.name=me" | sed 's/.*"application-id":"\\([^"]*\\)".*/\\1/')
    curl -s -X POST -H 'Content-Type: application/json' "$rest?user.name=me" -d '{{
      "application-id": "'"$id"'", "application-name": "sleep", "queue": "'"$queue"'", "max-app-attempts": 1,
      "am-container-spec": {{"commands": {{"command": "sleep 20"}}}}, "resource": {{"memory": 512, "vCores": 1}}}}'
  done
  sleep 1
done
```

```console
$ bash load.sh http://127.0.0.1:8088 > load.log &
```

In all that follows put `http://127.0.0.1:8088` in place of `http://rm:8088`, the file that `up` has named in place of
`/etc/hadoop/conf/{scheduler}-scheduler.xml`, and `ledger.db` in place of `/var/lib/yarnfair/ledger.db`.
At the end `kill %1` ends the load, and `yarnfair cluster down --backend local` removes the cluster.

## 1. Shadow: what would it do?

Write `enforce.yaml`, and start the controller. It runs until Ctrl-C; run the other commands in a second terminal:

```yaml
{shadow_config}```

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml
{shadow_log}
```

It wrote nothing. Each line names a queue's part of the {values}, before and after, and the reason: who has had too
much gets a smaller part until the others have caught up. The controller spreads a repayment over four times the mean
length of a task. In its first minutes it does not know that length well, so parts also move while debts stay as they
are.

Meanwhile `top` showed:

```console
$ yarnfair top --config enforce.yaml --once
{shadow_top}
```
{traps}
## 2. Bounded: {values} within a ratio of the entitlements

Set `mode: bounded`. A dry run shows the first change:

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml --dry-run
{dry_run}
```

Start it. Each line now ends with the time until the {values} were in force. `shares as before` means that they
changed by less than the log shows:

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml
{bounded_log}
```

Why does `b` get what it gets?

```console
$ yarnfair explain b --config enforce.yaml
{bounded_explain}
```

## 3. Full: the policy's own {values}

Set `mode: full`. No bound holds the policy any more: with a large debt the {values} go further than before, down to
nearly nothing. Here most of the debt is paid back by now.

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml
{full_log}
```

```console
$ yarnfair top --config enforce.yaml --once
{full_top}
```

## 4. A guard

A guard gives the file back when things go wrong. To see that, add one to `enforce.yaml` that is too strict for the
load, `guards: {{longest_wait_s: {guard_s}}}`:

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml
{guard_log}
```

It stays released, even after a restart, until you tell it to go on:

```console
$ yarnfair enforce --config enforce.yaml --resume
{resume}
```

## 5. Release

Here the guard was taken out of `enforce.yaml` again, and the controller, in `mode: full`, was killed (`kill -9`). Its
{values} are still in the file. See what a release would change:

```console
$ yarnfair enforce --config enforce.yaml --release --dry-run
{release_dry_run}
```

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml --release
{release}
```

The file is the administrator's again, byte for byte: the script that made this page compares it.

{changes}
"""
TRAPS = """
The warnings are [traps](capacity-scheduler.md#traps) of the Capacity Scheduler. While one that blocks is open, the
controller writes nothing. The administrator sets what mends them and runs `yarn rmadmin -refreshQueues` (a cluster of
`cluster up` has no `yarn` command; there the controller's first write loads these lines, too):

```xml
{hints}```
"""
CHANGES_FAIR = """\
What happens when you edit queues, restore an older copy of the ledger or of the file, lose the ledger, or start with a
wrong clock: [when something around it changes](enforce.md#when-something-around-it-changes). What becomes of the file's
owner, mode, attributes and hard links: [switch it off](enforce.md#switch-it-off)."""
CHANGES_CAPACITY = """\
What happens when you edit queues, restore an older copy of the ledger or of the configuration, lose the ledger, or
start with a wrong clock: [when something around it changes](enforce.md#when-something-around-it-changes). An RM with a
store has no lease file beside it: there the lock file beside the ledger alone tells an older copy. What becomes of the
file's owner, mode, attributes and hard links: [switch it off](enforce.md#switch-it-off)."""


@dataclass(frozen=True)
class Scheduler:
    """What differs between the two pages. ``file``: the administrator's; ``mended``: after the first step."""

    file: str
    mended: str
    words: Mapping[str, str]

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.words['scheduler']}-scheduler.xml"


SCHEDULERS = {
    "fair": Scheduler(
        FAIR,
        FAIR,
        {
            "scheduler": "fair",
            "page": "docs/how-to/switch-it-on.md",
            "title": "Switch it on, step by step",
            "values": "weights",
            "other": "The same walk on the [Capacity Scheduler](switch-it-on-capacity.md).",
            "comes_back": "It comes back at the end:",
            "traps": "",
            "changes": CHANGES_FAIR,
        },
    ),
    "capacity": Scheduler(
        CAPACITY,
        MENDED,
        {
            "scheduler": "capacity",
            "page": "docs/how-to/switch-it-on-capacity.md",
            "title": "Switch it on, step by step, on the Capacity Scheduler",
            "values": "capacities",
            "other": "The same walk on the [Fair Scheduler](switch-it-on.md).",
            "comes_back": "What the administrator has made of it after the first step comes back at the end:",
            "traps": TRAPS.format(hints=HINTS),
            "changes": CHANGES_CAPACITY,
        },
    ),
}
GUARD_S = 5


class Load(threading.Thread):
    """Applications of one container that sleeps, more than there is room for, until `ended` is set."""

    def __init__(self, rest: str) -> None:
        super().__init__(daemon=True)
        self.client = RestClient([rest], HttpOptions(attempts=2, deadline_s=20.0))
        self.queues, self.ended = ["root.a"], threading.Event()

    def run(self) -> None:
        number = 0
        while not self.ended.wait(1.2):
            for queue in list(self.queues):
                number += 1
                length_s = 15 + number % 11
                try:
                    self.client.submit(Submission("sleep", queue, f"sleep {length_s}", Resource(512, 1)))
                except YarnfairError as error:
                    print(error.line(), file=sys.stderr)


def walked(folder: Path, scheduler: Scheduler) -> dict[str, object]:
    """What the page's cells say."""
    (folder / scheduler.name).write_text(scheduler.file)
    kind = scheduler.words["scheduler"]
    cluster = LocalCluster(StateFolder(folder / "state"))
    load: Load | None = None
    try:
        given = str(folder / scheduler.name)
        spec = ClusterSpec(nodes=2, memory_mb=4096, vcores=16, scheduler=kind, allocations=given)
        status = cluster.up(spec, timeout_s=300)
        file, rest = Path(status.scheduler_folder) / scheduler.name, status.address.rest
        before = file.read_bytes()
        key = "allocation_file" if kind == "fair" else "capacity_file"
        walk, load = Walk(folder, rest, file, key), Load(rest)
        load.start()
        cells: dict[str, object] = {"file": before.decode(), "guard_s": GUARD_S}
        cells["shadow_config"] = walk.configure(mode="shadow")
        threading.Timer(35, load.queues.extend, [["root.b", "root.c"]]).start()
        cells["shadow_log"], cells["shadow_top"] = walk.serve(75, meanwhile=("top", "--once"))
        if file.read_bytes() != before:
            raise RuntimeError("the shadow wrote")
        if scheduler.mended != scheduler.file:
            file.write_text(scheduler.mended)
            with RmClient([status.address]) as client:
                client.refresh_queues()
            before = file.read_bytes()
        walk.configure(mode="bounded")
        cells["dry_run"] = walk.rm("enforce", "--dry-run")
        cells["bounded_log"], cells["bounded_explain"] = walk.serve(60, meanwhile=("explain", "b"))
        walk.configure(mode="full")
        cells["full_log"], cells["full_top"] = walk.serve(40, meanwhile=("top", "--once"))
        if file.read_bytes() != before:
            raise RuntimeError("a stop did not give the file back")
        walk.configure(guards={"longest_wait_s": GUARD_S})
        cells["guard_log"], _ = walk.serve(240, until="warning guard")
        cells["resume"] = walk.call("enforce", "--resume")
        if "warning guard" not in str(cells["guard_log"]):
            raise RuntimeError("no guard released")
        walk.configure(guards=None)
        walk.serve(120, end=signal.SIGKILL, until=" -> ")
        if file.read_bytes() == before:
            raise RuntimeError("killed before it had written")
        cells["release_dry_run"] = walk.call("enforce", "--release", "--dry-run")
        cells["release"] = walk.rm("enforce", "--release")
        if file.read_bytes() != before:
            raise RuntimeError("--release did not give the file back")
        return cells
    finally:
        if load is not None:
            load.ended.set()
            load.join(timeout=30)
        cluster.down()


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.walk", description=__doc__)
    parser.add_argument("--scheduler", choices=SCHEDULERS, default="fair")
    parser.add_argument("--cluster", choices=("small", "as-is"), default="small")
    parser.add_argument("--async", dest="asynchronous", action="store_true", help="the last section of as-is alone")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="walk-") as folder:
        if given.cluster == "as-is" and given.asynchronous:
            cells = walk_as_is.walked_asynchronously(Path(folder))
            page = walk_as_is.asynchronous_part(cells, given.out.read_text())
        elif given.cluster == "as-is":
            page = walk_as_is.PAGE.format(**walk_as_is.walked(Path(folder)))
            if given.out.is_file():
                page = walk_as_is.with_former_part(page, given.out.read_text())
        else:
            scheduler = SCHEDULERS[given.scheduler]
            page = PAGE.format(**scheduler.words, **walked(Path(folder), scheduler))
    given.out.write_text(re.sub(r"[^\S\n]+$", "", page, flags=re.MULTILINE))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
