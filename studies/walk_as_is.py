"""The walk on a Capacity Scheduler as administrators have it: twelve queues, percentages, preemption, a label.

    python -m studies.walk --cluster as-is -o docs/how-to/switch-it-on-as-is.md
    python -m studies.walk --cluster as-is --async -o docs/how-to/switch-it-on-as-is.md

Three levels of queues, one of them with queues that the scheduler creates (legacy `auto-create-child-queue`), the
scheduler's preemption, and a node with the label `gpu`. It goes from `doctor` to the release with the commands that the
page shows, and fails where the file does not come back byte for byte, or where a queue that waits has got nothing.

With `--async`, the cluster has asynchronous scheduling, Hadoop 3.5's default, and what the commands print is the page's
last section. The other sections stay as they are.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.base.errors import YarnfairError
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.clusters.status import ClusterStatus
from harness.model.resources import Resource
from harness.yarn.capacity.properties import ASYNCHRONOUS, PREFIX
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient, Submission
from harness.yarn.rmclient import RmClient
from studies.walking import Walk

FILE_NAME = "capacity-scheduler.xml"
#: Queue -> percentage of its parent.
PERCENTAGES = {
    "root.prod": "40",
    "root.prod.etl": "60",
    "root.prod.etl.hourly": "60",
    "root.prod.etl.daily": "40",
    "root.prod.ml": "40.0",
    "root.adhoc": "20",
    "root.adhoc.sql": "70",
    "root.adhoc.notebooks": "30",
    "root.dev": "25",
    "root.dev.ci": "50",
    "root.dev.test": "50",
    "root.research": "15",
}
#: The queue whose children the scheduler creates.
CREATING = "root.research"
LEAVES = tuple(
    path for path in PERCENTAGES if path != CREATING and not any(p.startswith(f"{path}.") for p in PERCENTAGES)
)
LABEL = "gpu"
#: Users whose applications `queue-mappings` places into queues below `CREATING`.
USERS = ("alice", "bob")
#: The queue that gets applications before all others do.
FIRST = "root.adhoc.sql"
#: The commands whose answers the page shows while the controller steers.
SHOWN = (("top", "--once"), *(("explain", queue) for queue in ("adhoc.sql", "prod.etl.hourly", "research")))
#: MiB of an application; two nodes have room for twenty-four.
SIZE_MB = 512


def _properties() -> dict[str, str]:
    """Return the administrator's properties, in the order of the file."""
    found: dict[str, str] = {}
    for parent in ("root", *PERCENTAGES):
        below = [path for path in PERCENTAGES if path.rpartition(".")[0] == parent]
        if below:
            found[f"{parent}.queues"] = ",".join(path.rpartition(".")[2] for path in below)
    found.update({f"{path}.capacity": text for path, text in PERCENTAGES.items()})
    found |= {
        f"{CREATING}.auto-create-child-queue.enabled": "true",
        f"{CREATING}.leaf-queue-template.capacity": "30",
        f"{CREATING}.leaf-queue-template.user-limit-factor": "-1",
        "queue-mappings": ",".join(f"u:{user}:{CREATING}.%user" for user in USERS),
        f"root.accessible-node-labels.{LABEL}.capacity": "100",
        "root.prod.accessible-node-labels": LABEL,
        f"root.prod.accessible-node-labels.{LABEL}.capacity": "100",
        "root.prod.ml.accessible-node-labels": LABEL,
        f"root.prod.ml.accessible-node-labels.{LABEL}.capacity": "100",
        "maximum-am-resource-percent": "1",
    }
    return found


def configuration() -> str:
    """Return the administrator's file."""
    rows = "".join(
        f"  <property><name>{PREFIX}{name}</name><value>{text}</value></property>\n"
        for name, text in _properties().items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n  <!-- ours -->\n{rows}</configuration>\n'


def hints() -> str:
    """Return the properties that mend the traps of `configuration`."""
    said = {"global-queue-max-application": "10000", **{f"{path}.user-limit-factor": "-1" for path in LEAVES}}
    return "".join(
        f"  <property><name>{PREFIX}{name}</name><value>{text}</value></property>\n" for name, text in said.items()
    )


class _Load(threading.Thread):
    """Submit applications of one container that sleeps to each of the active queues, until `ended` is set."""

    def __init__(self, rest: str) -> None:
        super().__init__(daemon=True)
        options = HttpOptions(attempts=2, deadline_s=20.0)
        self.ended = threading.Event()
        self.clients = {user: RestClient([rest], HttpOptions(attempts=2, deadline_s=20.0, user=user)) for user in USERS}
        self.client = RestClient([rest], options)
        self.queues: list[str] = [FIRST]
        self.submitted: list[str] = []

    def run(self) -> None:
        number = 0
        while not self.ended.wait(1.0):
            # No more at a time than two cores can start.
            for _ in range(2):
                number += 1
                queue = self.queues[number % len(self.queues)]
                client, named = (self.clients[queue], "default") if queue in USERS else (self.client, queue)
                try:
                    length_s = 20 + number % 17
                    client.submit(Submission("sleep", named, f"sleep {length_s}", Resource(SIZE_MB, 1)))
                except YarnfairError as error:
                    self.submitted.append(error.line())


PAGE = """# Switch it on, on a Capacity Scheduler as it is

This walk has what clusters in use have: twelve queues on three levels, in percentages, a parent whose children the
scheduler creates, preemption, and nodes with a label. It takes ten minutes. Of three nodes with Hadoop {hadoop} one has
the label `gpu`. Queue `adhoc.sql` worked alone at first, then all others came. You see what the commands printed in a
terminal of 80 columns; only addresses and paths are replaced, and the middle of long logs is left out. A walk on three
queues explains each step: [Capacity Scheduler](switch-it-on-capacity.md), [Fair Scheduler](switch-it-on.md).

Every key is in the [reference](../reference/enforce.md), every word in the [glossary](../glossary.md).
(`python -m studies.walk --cluster as-is -o docs/how-to/switch-it-on-as-is.md` makes this page.)

This is the administrator's file, with the entitlements:

```xml
{file}```

## 1. Can I use it?

```console
$ yarnfair cluster doctor --rm http://rm:8088 --allocations /etc/hadoop/conf/capacity-scheduler.xml
{doctor}
```

## 2. Shadow: what would it do?

Write `enforce.yaml`, and start the controller:

```yaml
{shadow_config}```

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml
{shadow_log}
```

It wrote nothing. The warnings are [traps](capacity-scheduler.md#traps); while one that blocks is open, the controller
writes nothing. The administrator sets what mends the limits, and runs `yarn rmadmin -refreshQueues`:

```xml
{hints}```

The label stays: the controller steers the default partition alone, and the administrator accepts that.

## 3. Bounded: capacities within a ratio of the entitlements

```yaml
{bounded_config}```

A dry run shows the first change:

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml --dry-run
{dry_run}
```

Start it:

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml
{bounded_log}
```

```console
$ yarnfair top --config enforce.yaml --once
{bounded_top}
```

Why do these queues get what they get? The one that worked alone, one that is owed, and the parent whose children the
scheduler has created:

```console
$ yarnfair explain adhoc.sql --rm http://rm:8088 --config enforce.yaml
{explain_first}
$ yarnfair explain prod.etl.hourly --rm http://rm:8088 --config enforce.yaml
{explain_owed}
$ yarnfair explain research --rm http://rm:8088 --config enforce.yaml
{explain_creating}
```

## 4. Release

Here the controller was killed (`kill -9`). Its capacities are still in the file.

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml --release
{release}
```

The file is the administrator's again, byte for byte: the script compares it. Every queue that had applications had
containers.
"""


def _label(client: RestClient, node: str) -> None:
    """Create the label, and give it to a node."""
    base = "/ws/v1/cluster"
    named = {"nodeLabelInfo": [{"name": LABEL, "exclusivity": "true"}]}
    client.http.request("POST", f"{base}/add-node-labels", body=named, repeatable=True, words=True)
    mapped = {"nodeToLabels": [{"nodeId": node, "labels": [LABEL]}]}
    client.http.request("POST", f"{base}/replace-node-to-labels", body=mapped, repeatable=True, words=True)


#: What the heading of the section of `ASYNCHRONOUS_PART` is.
HEADING = "## 5. With asynchronous scheduling"
ASYNCHRONOUS_PART = (
    HEADING
    + """

Since Hadoop 3.5 the Capacity Scheduler schedules asynchronously unless told otherwise. This is the same cluster with
that default; the limits that the shadow found are mended from the beginning. (`python -m studies.walk --cluster as-is
--async -o docs/how-to/switch-it-on-as-is.md` makes this section.) `doctor` names the trap:

```console
$ yarnfair cluster doctor --rm http://rm:8088 --allocations /etc/hadoop/conf/capacity-scheduler.xml
{async_doctor}
```

While it is not accepted, the controller writes nothing:

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml
{async_refused}
```

The administrator accepts it:

```yaml
{async_config}```

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml
{async_log}
```

```console
$ yarnfair top --config enforce.yaml --once
{async_top}
```

```console
$ yarnfair explain adhoc.sql --rm http://rm:8088 --config enforce.yaml
{async_first}
$ yarnfair explain prod.etl.hourly --rm http://rm:8088 --config enforce.yaml
{async_owed}
$ yarnfair explain research --rm http://rm:8088 --config enforce.yaml
{async_creating}
```

The controller was killed here, too (`kill -9`), and its capacities are given back:

```console
$ yarnfair enforce --rm http://rm:8088 --config enforce.yaml --release
{async_release}
```

The file is the administrator's again, byte for byte, and every queue that had applications had containers.
"""
)


def with_former_part(page: str, former: str) -> str:
    """Return a new page with the section on asynchronous scheduling that stands on the former one."""
    _, heading, rest = former.partition(HEADING)
    return f"{page.rstrip()}\n\n{heading}{rest}" if heading else page


def asynchronous_part(cells: Mapping[str, object], page: str) -> str:
    """Return a page with the section on asynchronous scheduling in place of its former one."""
    before = page.partition(HEADING)[0].rstrip()
    return f"{before}\n\n{ASYNCHRONOUS_PART.format(**cells)}"


@contextmanager
def _cluster(folder: Path, file: str, **properties: str) -> Iterator[tuple[Walk, _Load, ClusterStatus]]:
    """Run the cluster with the administrator's file, and its load, which is not started yet."""
    (folder / FILE_NAME).write_text(file)
    cluster = LocalCluster(StateFolder(folder / "state"))
    load: _Load | None = None
    try:
        spec = ClusterSpec(
            nodes=3,
            memory_mb=6144,
            vcores=24,
            scheduler="capacity",
            preemption=True,
            allocations=str(folder / FILE_NAME),
            properties={
                "yarn.node-labels.enabled": "true",
                "yarn.node-labels.fs-store.root-dir": f"file://{folder}/labels",
                **properties,
            },
        )
        status = cluster.up(spec, timeout_s=300)
        address = status.address.rest
        walk, load = Walk(folder, address, Path(status.scheduler_folder) / FILE_NAME, "capacity_file"), _Load(address)
        _label(load.client, load.client.nodes()[0].id)
        yield walk, load, status
    finally:
        if load is not None:
            load.ended.set()
            if load.is_alive():
                load.join(timeout=30)
        cluster.down()


def _mended() -> str:
    """Return the administrator's file with what mends its traps."""
    return configuration().replace("</configuration>", f"{hints()}</configuration>")


def _come(load: _Load, after_s: float) -> None:
    """Let all other queues have applications, too, some seconds from now."""
    threading.Timer(after_s, load.queues.extend, [[*(path for path in LEAVES if path != FIRST), *USERS]]).start()


def _check_served(load: _Load) -> None:
    """Raise RuntimeError if a queue that had applications got nothing."""
    had = {app.queue for app in load.client.apps() if app.memory_seconds > 0}
    starved = [path for path in LEAVES if path not in had and path.rpartition(".")[2] not in had]
    if starved or load.submitted:
        raise RuntimeError(f"nothing for {starved}, refused: {load.submitted[:3]}")


def walked(folder: Path) -> dict[str, object]:
    """Carry out the walk and return the texts for the placeholders of `PAGE`, by name.

    Parameters
    ----------
    folder
        Where the cluster and the controller keep their files.

    Raises
    ------
    RuntimeError
        If the file was not restored byte for byte, or a queue got no container.
    """
    with _cluster(folder, configuration()) as (walk, load, status):
        file, before = walk.file, walk.file.read_bytes()
        hadoop = load.client.info().version
        cells: dict[str, object] = {"file": before.decode(), "hints": hints(), "hadoop": hadoop}
        load.start()
        cells["doctor"] = walk.doctor()
        cells["shadow_config"] = walk.configure(mode="shadow")
        _come(load, 40)
        cells["shadow_log"], _ = walk.serve(80)
        if file.read_bytes() != before:
            raise RuntimeError("the shadow wrote")
        file.write_text(_mended())
        with RmClient([status.address]) as rm:
            rm.refresh_queues()
        before = file.read_bytes()
        cells["bounded_config"] = walk.configure(mode="bounded", accept=["node-labels"])
        cells["dry_run"] = walk.rm("enforce", "--dry-run")
        cells["bounded_log"], cells["bounded_top"] = walk.serve(100, meanwhile=SHOWN[0])
        if file.read_bytes() != before:
            raise RuntimeError("a stop did not give the file back")
        said: list[str] = []
        walk.serve(60, end=signal.SIGKILL, then=lambda: said.extend(walk.rm(*words) for words in SHOWN[1:]))
        cells["explain_first"], cells["explain_owed"], cells["explain_creating"] = said
        cells["release"] = _released(walk, before)
        _check_served(load)
        return cells


def walked_asynchronously(folder: Path) -> dict[str, object]:
    """Carry out the walk with asynchronous scheduling and return the texts for `ASYNCHRONOUS_PART`, by name.

    Raises RuntimeError as `walked` does, and if the controller wrote before the administrator accepted the trap.
    """
    # Without our own setting, Hadoop's default holds.
    with _cluster(folder, _mended(), **{ASYNCHRONOUS: ""}) as (walk, load, _):
        before = walk.file.read_bytes()
        load.start()
        _come(load, 40)
        cells: dict[str, object] = {"async_doctor": walk.doctor()}
        walk.configure(mode="bounded", accept=["node-labels"])
        cells["async_refused"], _ = walk.serve(60)
        if walk.file.read_bytes() != before:
            raise RuntimeError("the controller wrote before the trap was accepted")
        cells["async_config"] = walk.configure(accept=["node-labels", "asynchronous"])
        said: list[str] = []
        cells["async_log"], cells["async_top"] = walk.serve(
            120,
            end=signal.SIGKILL,
            meanwhile=SHOWN[0],
            then=lambda: said.extend(walk.rm(*words) for words in SHOWN[1:]),
        )
        cells["async_first"], cells["async_owed"], cells["async_creating"] = said
        cells["async_release"] = _released(walk, before)
        _check_served(load)
        return cells


def _released(walk: Walk, before: bytes) -> str:
    """Return what the release prints after the controller was killed. Raises RuntimeError as `walked` does."""
    if walk.file.read_bytes() == before:
        raise RuntimeError("killed before it had written")
    said = walk.rm("enforce", "--release")
    if walk.file.read_bytes() != before:
        raise RuntimeError("--release did not give the file back")
    return said
