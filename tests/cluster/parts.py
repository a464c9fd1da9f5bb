"""Faults of a local cluster's parts (rm, nm1 ...): one is killed, and started again as it was."""

from __future__ import annotations

import signal
from dataclasses import replace

from harness.clusters.local import LocalCluster


def kill_part(cluster: LocalCluster, name: str) -> None:
    """Kills it without warning, as a crash would; its containers stay."""
    state = cluster.folder.load()
    assert state is not None
    state.processes[name].signal_group(signal.SIGKILL)


def start_part(cluster: LocalCluster, name: str) -> None:
    """Starts a part that has ended with the command, ports and folders that it had before."""
    with cluster.folder.lock():
        state = cluster.folder.load()
        assert state is not None
        assert not state.processes[name].alive
        started = cluster._launch(state, name)
        # A restarted RM has another id: which one, nobody has seen yet.
        seen = None if name == "rm" else state.rm_id
        cluster.folder.save(replace(state, processes={**state.processes, name: started}, rm_id=seen))
