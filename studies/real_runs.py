"""Real runs of a study: one local cluster, one run after the other, each with the machine's load average beside it.

A study that is called again goes on with the runs that are missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from harness.base.errors import InputError
from harness.base.files import read_json, write_json, write_text
from harness.clusters.local import LocalCluster
from harness.clusters.state import StateFolder
from harness.experiments.real.cluster import cluster_spec
from harness.experiments.resolve import load_experiment
from studies.pair import none_left

_FILE = '<?xml version="1.0"?><allocations><queue name="root"><queue name="other"/></queue></allocations>\n'
_EVERY_S = 5.0


class _Aliasless(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_experiment_file(path: Path, document: Mapping[str, Any]) -> None:
    write_text(path, yaml.dump(document, Dumper=_Aliasless, sort_keys=False))


def ended(folder: Path) -> Path | None:
    """The run directory in a folder of one run, if it ended well."""
    for path in sorted(folder.glob("*/run.json")):
        if read_json(path).get("exit") == 0:
            return path.parent
    return None


@contextmanager
def machine_beside(path: Path) -> Iterator[None]:
    """The machine's load average of one minute meanwhile: mean and most."""
    done, seen = threading.Event(), [os.getloadavg()[0]]

    def watch() -> None:
        while not done.wait(_EVERY_S):
            seen.append(os.getloadavg()[0])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        write_json(
            path, {"mean": round(sum(seen) / len(seen), 2), "most": round(max(seen), 2), "cores": os.cpu_count()}
        )


def call(*arguments: str) -> str:
    """What a command of yarnfair prints. InputError where it fails."""
    ran = subprocess.run([sys.executable, "-m", "harness", *arguments], capture_output=True, text=True)
    if ran.returncode:
        raise InputError(
            f"exit {ran.returncode}: {ran.stderr.strip()[-300:]}", where=" ".join(arguments[:2]), hint="look at its run"
        )
    return ran.stdout


def one_run(folder: Path, file: Path, policy: Sequence[str], given: Sequence[str]) -> Path:
    """One real run, unless it is there."""
    found = ended(folder)
    if found is not None:
        return found
    print(f"{folder.name}: {' '.join(policy)}", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with machine_beside(folder / "machine.json"):
        call("run", str(file), "--backend", "local", *policy, "--no-report", "--out", str(folder), *given)
    found = ended(folder)
    assert found is not None
    return found


@contextmanager
def local_cluster(folder: Path, file: Path) -> Iterator[list[str]]:
    """A local cluster for an experiment file, with its state below ``folder``: the options of `run` that lead to it."""
    cluster = LocalCluster(StateFolder(folder / "state"))
    allocations = folder / "allocations.xml"
    write_text(allocations, _FILE)
    try:
        status = cluster.up(cluster_spec(load_experiment(str(file)), allocations), timeout_s=300)
        address = status.address
        yield [
            *("--rm", address.rest, "--admin", str(address.admin), "--client", str(address.client)),
            *("--allocations", str(Path(status.scheduler_folder) / "fair-scheduler.xml")),
            *("--shared", str(folder / "shared")),
        ]
    finally:
        left = cluster.down()
    none_left(left, folder)
