"""How true is what `yarnfair assess` predicts? Five loads, written down beforehand, on real containers.

    python -m studies.assessed run runs/assessed
    python -m studies.assessed measure runs/assessed -o docs/records/assessed.json

`run` brings up one local cluster of three nodes. Each load is recorded under `fair`, assessed, and run twice under the
recommended policy (without a recommendation once under ``ltrf@outside``, to see that there was nothing to gain). Every
run has the machine's load average beside it (``machine.json``). Called again, it goes on with what is missing.

`measure` holds the predictions against what happened: by queue the direction, and the mean completion time. Then every
run under control is simulated by its own trace in twenty phases of heartbeats and control: is each job, and each queue,
inside the band of the phases?
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from harness.base.errors import InputError, YarnfairError
from harness.base.files import read_json, write_json, write_text
from harness.clusters.local import LocalCluster
from harness.clusters.state import StateFolder
from harness.control.settings import MAX_RATIO
from harness.experiments.real.cluster import cluster_spec
from harness.experiments.resolve import load_experiment
from studies.assessed_loads import LOADS, experiment
from studies.assessed_measure import ended, measure
from studies.result import write

#: Runs under a recommended policy.
REPEATS = 2
_FILE = '<?xml version="1.0"?><allocations><queue name="root"><queue name="other"/></queue></allocations>\n'
_EVERY_S = 5.0


class _Aliasless(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_experiment_file(path: Path, document: Mapping[str, Any]) -> None:
    write_text(path, yaml.dump(document, Dumper=_Aliasless, sort_keys=False))


def write_loads(folder: Path) -> None:
    """The loads' experiment files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, load in LOADS.items():
        for changed in (False, True)[: 2 if load.after else 1]:
            document = experiment(name, changed=changed, max_ratio=MAX_RATIO)
            write_experiment_file(file_of(folder, name, changed), document)


def file_of(folder: Path, name: str, changed: bool) -> Path:
    return folder / f"{name}{'-after' if changed else ''}.yaml"


@contextmanager
def _machine(path: Path) -> Iterator[None]:
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


def _call(*arguments: str) -> str:
    """What a command of yarnfair prints. InputError where it fails."""
    ran = subprocess.run([sys.executable, "-m", "harness", *arguments], capture_output=True, text=True)
    if ran.returncode:
        raise InputError(
            f"exit {ran.returncode}: {ran.stderr.strip()[-300:]}", where=" ".join(arguments[:2]), mend="look at its run"
        )
    return ran.stdout


def one_run(folder: Path, file: Path, policy: Sequence[str], given: Sequence[str]) -> Path:
    """One real run, unless it is there."""
    found = ended(folder)
    if found is not None:
        return found
    print(f"{folder.name}: {' '.join(policy)}", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with _machine(folder / "machine.json"):
        _call("run", str(file), "--backend", "local", *policy, "--no-report", "--out", str(folder), *given)
    found = ended(folder)
    assert found is not None
    return found


def assessment(folder: Path, name: str, recorded: Path) -> dict[str, Any]:
    """What `assess` says of a recording, asked once."""
    path = folder / f"{name}-assess" / "assess.json"
    if not path.exists():
        _call("assess", str(recorded / "trace.jsonl"), "--json", "-o", str(path.parent))
    found: dict[str, Any] = read_json(path)
    return found


def recommended(found: dict[str, Any]) -> list[str]:
    """The options of `run` for what an assessment recommends; without a recommendation what it might have been."""
    best = found["recommended"]
    settings = best.get("settings", {})
    options = [f"--set={key}={value:g}" for key, value in settings.items()]
    return [f"--policy={best.get('policy', 'ltrf')}@outside", *options]


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
    if left:
        raise InputError(f"{len(left)} processes are left", where=str(folder), mend="stop them")


def run(folder: Path) -> None:
    """All real runs, first one of each, then the repeats."""
    write_loads(folder)
    with local_cluster(folder, file_of(folder, "quiet", False)) as given:
        for repeat in range(1, REPEATS + 1):
            for name, load in LOADS.items():
                recorded = one_run(folder / f"{name}-fair", file_of(folder, name, False), ["--policy=fair"], given)
                said = assessment(folder, name, recorded)
                if repeat > 1 and not said["recommended"]:
                    continue
                changed = bool(load.after)
                file = file_of(folder, name, changed)
                if changed:
                    one_run(folder / f"{name}-fair-after", file, ["--policy=fair"], given)
                one_run(folder / f"{name}-recommended-{repeat}", file, recommended(said), given)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. What goes wrong is one line, and no file."""
    parser = argparse.ArgumentParser(prog="python -m studies.assessed", description=__doc__)
    parser.add_argument("what", choices=("run", "measure"))
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="run directories")
    parser.add_argument("-o", "--out", type=Path, help="the record [standard output]")
    given = parser.parse_args(arguments)
    try:
        if given.what == "run":
            run(given.folder)
        else:
            write(
                given.out,
                "; ".join(f"python -m studies.assessed {what} runs/assessed" for what in ("run", "measure")),
                measure(given.folder),
            )
    except YarnfairError as error:
        print(f"assessed: {error.line()}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
