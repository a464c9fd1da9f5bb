"""Every reader of files and answers as a function of bytes, and what it is to raise."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import YarnfairError
from harness.clusters.inventory import read_inventory
from harness.control.config import read_config
from harness.control.lease import lease_of
from harness.experiments.campaign.spec import load_campaign
from harness.experiments.policy_file import read_policy_file
from harness.jobs.workloads import load_workload
from harness.results.acknowledge import read_acknowledgements
from harness.results.baseline import read_baseline
from harness.results.runs import read_run
from harness.traces.recorded import read_trace
from harness.traces.sls import load_jobs, load_nodes
from harness.traces.swim import read_swim
from harness.yarn import answers, jmx, queue_answers, rpc
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.validate import validate_properties
from harness.yarn.errors import BadAnswer
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.validate import validate_allocations
from harness.yarn.files import LocalStore

RECORDED = Path(__file__).parents[1] / "yarn" / "recorded"


@dataclass(frozen=True)
class Reader:
    """``read`` takes any bytes; ``raises`` is all that it may raise. ``good``: what it is there for."""

    read: Callable[[bytes], object]
    good: tuple[bytes, ...]
    raises: tuple[type[Exception], ...] = (YarnfairError,)


def _answer(parse: Callable[[Any, str], object], *names: str, good: tuple[bytes, ...] = ()) -> Reader:
    def read(data: bytes) -> object:
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return None  # the client's own reader refuses it first
        return parse(document, "http://rm:8088/ws")

    found = tuple((RECORDED / f"{name}.json").read_bytes() for name in names)
    return Reader(read, found + good, (BadAnswer,))


def _file(read: Callable[[Path], object], suffix: str, *good: bytes) -> Reader:
    """A reader of a path."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    path = folder / f"file{suffix}"

    def written(data: bytes) -> object:
        path.write_bytes(data)
        found = read(path)
        return list(found) if isinstance(found, Iterator) else found

    return Reader(written, good)


def _lease(path: Path) -> object:
    place = LocalStore(path.with_name("fair-scheduler.xml"))
    lease = lease_of(place, "me", 15.0, lambda: 0.0)
    lease.store.write(path.read_bytes())
    return lease.holder()


_ALLOCATIONS = b"""<?xml version="1.0"?>
<!-- kept by hand -->
<allocations><queue name="a"><weight>2.5</weight><minResources>512 mb, 1 vcores</minResources></queue>
<queue name="b" type="parent"><maxResources>50%</maxResources>
<queue name="c"><maxAMShare>0.5</maxAMShare></queue></queue>
<defaultQueueSchedulingPolicy>fair</defaultQueueSchedulingPolicy>
<queuePlacementPolicy><rule name="specified" create="false"/><rule name="default" queue="a"/></queuePlacementPolicy>
</allocations>"""
_CAPACITY = b"""<configuration><property><name>yarn.scheduler.capacity.root.queues</name><value>a,b</value></property>
<property><name>yarn.scheduler.capacity.root.a.capacity</name><value>30</value></property>
<property><name>yarn.scheduler.capacity.root.b.capacity</name><value>70.0</value></property></configuration>"""
_ENFORCE = b"""policy: ltrf
settings: {horizon_s: 3600}
allocation_file: /etc/hadoop/fair-scheduler.xml
rm: ["http://rm1:8088", "http://rm2:8088"]
ledger: ledger.db
period_s: 5
lease_s: 15
guards: {longest_wait_s: 600}
"""
_JMX = b"""{"beans": [{"name": "Hadoop:service=ResourceManager,name=QueueMetrics,q0=root,q1=a",
"AggregateContainersAllocated": 7, "AggregateContainersReleased": 5}]}"""
_SLS = b"""{"am.type": "mapreduce", "job.start.ms": 0, "job.end.ms": 95375, "job.queue.name": "a", "job.id": "job_1",
"job.user": "default", "job.tasks": [{"container.host": "/rack1/node1", "container.start.ms": 6664,
"container.end.ms": 23707, "container.priority": 20, "container.type": "map"}]}"""
_LEASE = (
    b'{"owner": "somebody", "host": "h", "pid": 7, "count": 3, "lease_s": 15, "said": {"ours": {}, "baseline": {}}}'
)
_SWIM = b"job0\t0\t0\t3000000\t2000000\t1000000\njob1\t12\t12\t65536\t0\t4096\n"
_CAMPAIGN = b"workload: ltyarn-small\npolicies: [fair, ltrf]\nseeds: 1-3\n"
_WORKLOAD = b"""queues: {a: 1, b: 2}
cluster: {nodes: 2, memory_mb: 8192, vcores: 8}
jobs: [{queue: a, submit_s: 0, tasks: 4, task_s: 10, memory_mb: 1024}]
"""

READERS: dict[str, Reader] = {
    "allocations": Reader(parse_allocations, (_ALLOCATIONS,)),
    "allocations-validated": Reader(lambda data: validate_allocations(data), (_ALLOCATIONS,)),
    "capacity": Reader(lambda data: parse_configuration(data, source="x"), (_CAPACITY,)),
    "capacity-validated": Reader(lambda data: validate_properties(data), (_CAPACITY,)),
    "info": _answer(answers.cluster_info, "info"),
    "metrics": _answer(answers.cluster_metrics, "metrics"),
    "nodes": _answer(answers.nodes, "nodes"),
    "apps": _answer(answers.apps, "apps"),
    "app": _answer(answers.app, "app"),
    "scheduler": _answer(queue_answers.scheduler, "scheduler"),
    "capacity-limits": _answer(queue_answers.capacity_limits, "scheduler"),
    "conf": _answer(answers.properties, good=(b'{"properties": [{"key": "yarn.x", "value": "1"}]}',)),
    "jmx": _answer(jmx.parse, good=(_JMX,)),
    "rpc": Reader(
        lambda data: list(rpc.fields(data)),
        (
            bytes.fromhex((RECORDED / "queue-info.hex").read_text()),
            rpc.field(1, rpc.field(1, "root") + rpc.field(2, 7)),
        ),
        (ValueError,),
    ),
    "enforce.yaml": _file(read_config, ".yaml", _ENFORCE),
    "lease": _file(_lease, ".lease", _LEASE),
    "inventory": _file(read_inventory, ".yaml", b"hosts:\n- {address: 10.0.0.1, user: me, key: id_rsa}\n"),
    "campaign": _file(load_campaign, ".yaml", _CAMPAIGN),
    "workload": _file(load_workload, ".yaml", _WORKLOAD),
    "policy-file": _file(read_policy_file, ".yaml", b"policy: ltrf\nsettings: {horizon_s: 60}\n"),
    "trace": _file(read_trace, ".csv", b"time_s,queue,event\n0.0,root.a,submit\n"),
    "sls-jobs": _file(load_jobs, ".json", _SLS),
    "sls-nodes": _file(load_nodes, ".json", b'{"rack": "r1", "nodes": [{"node": "n1"}, {"node": "n2"}]}'),
    "swim": _file(read_swim, ".tsv", _SWIM),
    "run": _file(read_run, ".json", b'{"run": "x", "metrics": {"mean": 1.0}}'),
    "baseline": _file(read_baseline, ".json", b'{"version": 1, "metrics": {"a": {"mean": 1.5}}}'),
    "acknowledgements": _file(read_acknowledgements, ".yaml", b"- {metric: a, reason: known, until: 2030-01-01}\n"),
}
