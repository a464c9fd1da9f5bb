"""What writing capacities costs on a real ResourceManager: from decision to effect, and how long nothing is assigned.

    nice -n -13 python -m studies.capacity_times -o docs/records/capacity-times.json

For each kind of store and number of queues a cluster of local processes, whose applications end and begin without end.
A decision: the capacities are known, nothing is written. Its effect: the RM shows them. The RM's log says when it
assigned each container: the longest time between two, while nothing is written and while all capacities are, again and
again. The reload holds the scheduler's write lock.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.control.capacity_actuator import CapacityActuator
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.yarn.capacity.source import open_source
from harness.yarn.files import LocalStore
from harness.yarn.http import HttpOptions
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmClient
from studies.control_times import configuration, of
from studies.pair import none_left
from studies.result import in_one_line, write_times

QUEUES, KINDS = (10, 100, 1000), ("memory", "file")
#: Applications whose master ends at once and is tried again, for ever: each attempt is an assignment.
RESTLESS = 6
_ASSIGNED = re.compile(r"^(\S+ \S+) INFO RMContainerImpl: \S+ Container Transitioned from NEW to ALLOCATED", re.M)


@contextlib.contextmanager
def stand(kind: str, queues: int) -> Iterator[tuple[RmClient, CapacityActuator, Path]]:
    """A cluster, who writes its capacities, and the RM's log."""
    folder = Path(tempfile.mkdtemp(prefix="yarnfair-capacity-times-"))
    (folder / "given.xml").write_text(configuration(queues))
    cluster = LocalCluster(StateFolder(folder / "state"))
    properties = {
        "yarn.scheduler.configuration.store.class": kind,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
        "yarn.resourcemanager.am.max-attempts": "1000000",
    }
    given = str(folder / "given.xml")
    spec = ClusterSpec(nodes=1, rm_heap_mb=1024, scheduler="capacity", allocations=given, properties=properties)
    try:
        status = cluster.up(spec, timeout_s=300)
        file = Path(status.scheduler_folder) / "capacity-scheduler.xml" if kind == "file" else None
        with RmClient([status.address], HttpOptions(read_timeout_s=60, deadline_s=90)) as client:
            actuator = CapacityActuator(open_source(client, LocalStore(file) if file else None))
            yield client, actuator, cluster.log("rm")
    finally:
        none_left(cluster.down(), folder)
        shutil.rmtree(folder, ignore_errors=True)


def gaps_ms(log: str, since: str, until: str) -> list[float]:
    """The times between two assignments of an RM's log, in milliseconds, from one moment of it to another."""
    found = [at for at in _ASSIGNED.findall(log) if since <= at <= until]
    times = [datetime.strptime(at, "%Y-%m-%d %H:%M:%S,%f").timestamp() * 1000 for at in found]
    return [after - before for before, after in itertools.pairwise(times)]


def _now() -> str:
    return datetime.now().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


def measure(kind: str, queues: int, repeats: int) -> dict[str, Any]:
    """One kind of store with so many queues."""
    with stand(kind, queues) as (client, actuator, log):
        for number in range(RESTLESS):
            client.rest.submit(Submission("restless", f"root.q{number % queues}", "sleep 0.2", Resource(256, 1),
                                          max_attempts=1_000_000))  # fmt: skip
        turn = 0

        def decision() -> tuple[float, float]:
            nonlocal turn
            turn += 1
            weights = {f"root.q{number}": float(100 + (turn + number) % 7) for number in range(queues)}
            actuator.read()
            begun = time.perf_counter()
            prepared = actuator.prepare(Attributes(weights))
            actuator.write(prepared)
            actuator.load(client)
            written = time.perf_counter()
            actuator.confirm(client, prepared.in_force, timeout_s=60, every_s=0.005)
            return (time.perf_counter() - begun) * 1000, (written - begun) * 1000

        for _ in range(5):
            decision()  # the first calls after an RM's start take longer
        quiet_since = _now()
        time.sleep(2.0 * repeats)
        quiet_until = _now()
        took = []
        for _ in range(repeats):
            took.append(decision())
            time.sleep(1.0)
        until = _now()
        text = log.read_text(encoding="utf-8", errors="replace")
    quiet, busy = gaps_ms(text, quiet_since, quiet_until), gaps_ms(text, quiet_until, until)
    if min(len(quiet), len(busy)) < repeats:
        raise InputError(f"{len(quiet)} and {len(busy)} assignments are too few", where=f"{kind}, {queues} queues")
    return {
        "effect_ms": of([total for total, _ in took]),
        "of_which_until_the_rm_has_taken_it_ms": of([written for _, written in took]),
        "between_assignments_ms": of(quiet),
        "between_assignments_under_writes_ms": of(busy),
    }


@in_one_line("capacity_times")
def main(argv: Sequence[str] | None = None) -> int:
    """``python -m studies.capacity_times -o FILE``; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.capacity_times")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--queues", type=int, nargs="+", default=list(QUEUES))
    given = parser.parse_args(argv)
    values: dict[str, Any] = {}
    for queues in given.queues:
        for kind in KINDS:
            found = values.setdefault(kind, {})[str(queues)] = measure(kind, queues, given.repeats)
            print(kind, queues, found, file=sys.stderr, flush=True)
    write_times(given.out, f"nice -n -13 python -m studies.capacity_times -o docs/records/{given.out.name}", values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
