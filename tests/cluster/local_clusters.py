"""Clusters of local processes that several test files bring up: one queue for programs, one that is given to a run."""

from __future__ import annotations

import contextlib
import getpass
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.clusters.local import LocalCluster
from harness.clusters.shared import LocalFolder
from harness.clusters.state import ClusterSpec, StateFolder
from harness.experiments.real.cluster import RealCluster, cluster_spec
from harness.experiments.real.single import ProgramRunner
from harness.experiments.resolve import load_experiment
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from harness.yarn.rmclient import RmAddress


@contextlib.contextmanager
def one_queue(folder: Path, *, memory_mb: int = 3072, vcores: int = 4, history: bool = False) -> Iterator[RestClient]:
    """A node and the queue ``a``, in which masters may take all; asked as whoever runs the tests.

    ``history``: with a JobHistoryServer, whose address is in the state below ``folder / "state"``.
    """
    cluster = LocalCluster(StateFolder(folder / "state"))
    allocations = folder / "allocations.xml"
    allocations.write_text(
        '<allocations><queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault><queue name="a"/></allocations>'
    )
    try:
        spec = ClusterSpec(nodes=1, memory_mb=memory_mb, vcores=vcores, allocations=str(allocations), history=history)
        status = cluster.up(spec, timeout_s=300)
        with RestClient([status.address.rest], HttpOptions(user=getpass.getuser())) as rest:
            yield rest
    finally:
        left = cluster.down()
    assert left == []


def runner(rest: RestClient, folder: Path, python: str = sys.executable) -> ProgramRunner:
    """Runs programs on such a cluster."""
    address, shared = RmAddress.of(rest.http.current), LocalFolder(folder)
    return ProgramRunner(
        RealCluster("local", address, None, shared, python, http=HttpOptions(user=getpass.getuser())), print
    )


@dataclass(frozen=True)
class Given:
    """A cluster that is there, as the options of a call name it."""

    options: list[str]
    address: RmAddress
    file: Path


@contextlib.contextmanager
def given_cluster(
    folder: Path, experiment: Path, text: str, *, memory_mb: int, minimum_mb: int, timeout_s: float = 600.0
) -> Iterator[Given]:
    """Somebody's cluster of two nodes, with an allocation file of theirs, that can run an experiment."""
    allocations = folder / "allocations.xml"
    allocations.write_text(text)
    wanted = cluster_spec(load_experiment(str(experiment)), allocations)
    spec = ClusterSpec(
        nodes=2, memory_mb=memory_mb, vcores=16, minimum_allocation_mb=minimum_mb, allocations=str(allocations),
        properties=wanted.properties,
    )  # fmt: skip
    cluster = LocalCluster(StateFolder(folder / "state"))
    try:
        status = cluster.up(spec, timeout_s=timeout_s)
        file, address = Path(status.scheduler_folder) / "fair-scheduler.xml", status.address
        yield Given(
            [
                # Its RPC ports, which are free ones, it tells by itself.
                *("--rm", address.rest, "--allocations", str(file), "--shared", str(folder / "shared")),
            ],
            address,
            file,
        )
    finally:
        left = cluster.down()
    assert left == []
