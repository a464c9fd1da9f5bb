"""Figures of the controller on a real ResourceManager: from decision to effect, and what a control period costs.

    python -m studies.control_times effect -o docs/records/control-effect.json
    python -m studies.control_times cost -o docs/records/control-cost.json
    python -m studies.control_times cost --scheduler capacity -o docs/records/control-cost-capacity.json

Each brings a cluster of local processes up and takes it down. The records say how many were measured, and the machine's
load: on one that has other work to do the times are longer.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, RunTimedOut
from harness.clusters import jars
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.clusters.status import ClusterStatus
from harness.control.file_actuator import FileActuator
from harness.control.rm_poller import open_rm_poller
from harness.control.settings import ControlSettings
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.policies import make_policy
from harness.yarn.adminrpc import weights_differ
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.source import ConfigurationSource, open_source
from harness.yarn.files import LocalStore
from harness.yarn.http import HttpOptions
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmClient
from studies.result import in_one_line, write_times

_OPENS = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "net")]
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def allocations(queues: int) -> str:
    """An allocation file with so many equal leaf queues."""
    rows = "\n".join(f'  <queue name="q{number}"><weight>1</weight></queue>' for number in range(queues))
    return f"<allocations>\n  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>\n{rows}\n</allocations>\n"


def configuration(queues: int) -> str:
    """So many queues with weights, without traps."""
    paths = [f"root.q{number}" for number in range(queues)]
    said = {
        f"{PREFIX}root.queues": ",".join(path.removeprefix("root.") for path in paths),
        f"{PREFIX}global-queue-max-application": "10000",
        f"{PREFIX}maximum-am-resource-percent": "1000",
        **{f"{PREFIX}{path}.capacity": "1w" for path in paths},
        **{f"{PREFIX}{path}.user-limit-factor": "-1" for path in paths},
    }
    rows = "".join(f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in said.items())
    return f"<configuration>\n{rows}</configuration>\n"


def of(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest of some times, and how many there are."""
    ordered = sorted(values)
    return {
        "median": round(statistics.median(ordered), 2),
        "min": round(ordered[0], 2),
        "max": round(ordered[-1], 2),
        "count": len(ordered),
    }


class Bench:
    """A cluster for measuring; the folder and the cluster go when it is closed."""

    def __init__(
        self, nodes: int = 1, queues: int = 4, rm_heap_mb: int = 256, scheduler: str = "fair", **settings: Any
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="yarnfair-figures-"))
        text = allocations(queues) if scheduler == "fair" else configuration(queues)
        given = self.folder / "allocations.xml"
        given.write_text(text)
        self.cluster = LocalCluster(StateFolder(self.folder / "state"))
        more = {"allocations": str(given), "scheduler": scheduler, **settings}
        spec = ClusterSpec(nodes=nodes, rm_heap_mb=rm_heap_mb, **more)
        try:
            self.status: ClusterStatus = self.cluster.up(spec, timeout_s=300)
            self.client = RmClient([self.status.address], HttpOptions(read_timeout_s=60, deadline_s=90))
        except BaseException:
            self.close()
            raise
        self.file = Path(self.status.scheduler_folder) / "fair-scheduler.xml"
        self.place: LocalStore | ConfigurationSource = LocalStore(self.file)
        if scheduler == "capacity":
            self.place = open_source(self.client, None)

    def close(self) -> None:
        self.cluster.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def rm_cpu_s(self) -> float:
        """CPU seconds of the RM's process so far."""
        state = self.cluster.folder.load()
        assert state is not None
        fields = Path(f"/proc/{state.processes['rm'].pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def until_in_force(self, weights: dict[str, float], timeout_s: float = 60.0) -> None:
        end = time.monotonic() + timeout_s
        while weights_differ(weights, self.client.effective_queues()):
            if time.monotonic() > end:
                raise RunTimedOut(f"not in force within {timeout_s:g} s", where="the ResourceManager")
            time.sleep(0.005)


def effect(repeats: int = 30) -> dict[str, Any]:
    """Milliseconds from a decision (the weights are known, nothing is written) until the RM shows them."""
    bench = Bench()
    try:
        actuator, turn = FileActuator(LocalStore(bench.file)), 0

        def measured(refresh: Callable[[], object]) -> tuple[float, float]:
            nonlocal turn
            turn += 1
            weights = {f"root.q{number}": float(100 + (turn + number) % 7) for number in range(4)}
            actuator.read()
            begun = time.perf_counter()
            prepared = actuator.prepare(Attributes(weights))
            actuator.write(prepared)
            written = time.perf_counter()
            refresh()
            bench.until_in_force(dict(prepared.in_force))
            return (time.perf_counter() - begun) * 1000, (written - begun) * 1000

        state = bench.cluster.folder.load()
        assert state is not None
        classpath = f"{bench.folder}/state/conf:{jars.find()}/*"
        main = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"

        def rmadmin() -> None:
            command = ["java", *_OPENS, "-XX:TieredStopAtLevel=1", "-cp", classpath, main, "-refreshQueues"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            if done.returncode:
                raise InputError(f"rmadmin: {done.stderr[-300:]}", where=main)

        for _ in range(5):
            measured(bench.client.refresh_queues)  # the first calls after an RM's start take longer
        by_rpc = [measured(bench.client.refresh_queues) for _ in range(repeats)]
        by_rmadmin = [measured(rmadmin) for _ in range(max(repeats // 3, 1))]
        by_poll, phase = [], random.Random(1)
        for _ in range(max(repeats // 3, 1)):
            time.sleep(phase.uniform(0.0, 10.0))  # a decision falls anywhere between two polls
            by_poll.append(measured(lambda: None))
    finally:
        bench.close()
    return {
        "admin_rpc_ms": of([total for total, _ in by_rpc]),
        "of_which_writing_the_file_ms": of([written for _, written in by_rpc]),
        "rmadmin_ms": of([total for total, _ in by_rmadmin]),
        "file_poll_ms": of([total for total, _ in by_poll]),
    }


def cost(sizes: Sequence[tuple[int, int]], ticks: int = 20, scheduler: str = "fair") -> dict[str, Any]:
    """What a control period costs in which everything is asked for: CPU of the controller and of the RM, its length,
    the controller's memory.

    Most applications wait: the RM has one node, on which eight containers run. How many ticks wrote the file is told.
    """
    found: dict[str, Any] = {}
    more: dict[str, Any] = (
        {} if scheduler == "fair" else {"properties": {"yarn.scheduler.configuration.store.class": "memory"}}
    )
    for queues, apps in sizes:
        bench = Bench(queues=queues, rm_heap_mb=1024, scheduler=scheduler, memory_mb=4096, vcores=16, **more)
        try:
            for number in range(apps):
                queue = f"root.q{number % queues}"
                bench.client.rest.submit(Submission("waits", queue, "sleep 100000", Resource(512, 1)))
            found[f"{queues} queues, {apps} applications"] = _cost_of(bench, ticks)
        finally:
            bench.close()
        print(queues, apps, found[f"{queues} queues, {apps} applications"], file=sys.stderr, flush=True)
    return found


def _cost_of(bench: Bench, ticks: int) -> dict[str, Any]:
    time.sleep(3)
    with LedgerStore(bench.folder / "ledger.db") as store:
        policy = make_policy("ltrf", {"horizon_s": "20"})
        settings = ControlSettings(period_s=2.0, effect_s=30.0, ask_again=0.0)
        actuator = FileActuator.restored(bench.place, store.document)
        controller = Controller(settings, bench.client, actuator, store, policy, open_observer=open_rm_poller)
        for _ in range(5):
            controller.tick()  # what is only noted is noted in the first
        # What the RM does by itself in the same time.
        rest_s, rm_before, begun = 5.0, bench.rm_cpu_s(), time.monotonic()
        time.sleep(rest_s)
        idle = (bench.rm_cpu_s() - rm_before) / (time.monotonic() - begun)
        own, rm, took, wrote, bad = [], [], [], 0, 0
        for _ in range(ticks):
            rm_before, own_before, begun = bench.rm_cpu_s(), time.process_time(), time.monotonic()
            report = controller.tick()
            length = time.monotonic() - begun
            own.append((time.process_time() - own_before) * 1000)
            time.sleep(0.5)  # the RM's own loose ends
            elapsed = time.monotonic() - begun
            rm.append((bench.rm_cpu_s() - rm_before - idle * elapsed) * 1000)
            took.append(length * 1000)
            wrote += report.wrote
            bad += bool(report.alarms)
        if bad:
            raise InputError(f"{bad} of {ticks} ticks had alarms: {report.alarms}", where="the controller")
    return {
        "controller_cpu_ms": of(own),
        "rm_cpu_ms_mean": round(max(statistics.fmean(rm), 0.0), 1),
        "tick_ms": of(took),
        "ticks_that_wrote": wrote,
        "rm_idle_cpu_part": round(idle, 3),
        "controller_memory_mb": _memory_mb(),
    }


def _memory_mb() -> float:
    """Resident memory of this process, the controller and what measures it, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


SIZES = ((10, 10), (10, 1000), (100, 100), (100, 1000), (1000, 1000), (1000, 5000))


@in_one_line("control_times")
def main(argv: list[str] | None = None) -> int:
    """``python -m studies.control_times effect|cost -o FILE``; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.control_times")
    parser.add_argument("what", choices=["effect", "cost"])
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--scheduler", choices=("fair", "capacity"), default="fair", help="of cost")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--ticks", type=int, default=20, help="of cost")
    parser.add_argument("--sizes", default=",".join(f"{q}x{a}" for q, a in SIZES), help="queues x applications")
    given = parser.parse_args(argv)
    if given.what == "effect":
        values = effect(given.repeats)
    else:
        sizes = [tuple(int(part) for part in text.split("x")) for text in given.sizes.split(",")]
        values = cost(sizes, given.ticks, given.scheduler)  # type: ignore[arg-type]
    which = " --scheduler capacity" if given.scheduler == "capacity" else ""
    write_times(given.out, f"python -m studies.control_times {given.what}{which} -o {given.out}", values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
