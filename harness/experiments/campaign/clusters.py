"""The clusters of a campaign: which they are, what identifies them, and a cluster kept up from one cell to the next.

A campaign names its places; ``sim`` is one, ``local``, ``docker`` are brought up as they are wanted, others stand under
``clusters:`` with a backend and its options. Cells on one cluster take turns, also those of several campaigns.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from harness.base.documents import Strict
from harness.base.errors import InputError
from harness.base.files import locked, writing
from harness.clusters.backends import BACKENDS, backend_class
from harness.clusters.inventory import read_inventory
from harness.clusters.state import default_folder
from harness.experiments.campaign.code import data_hash
from harness.experiments.kind import Loaded, Runner, Target
from harness.model.data import data_path

Says = Callable[[str], None]


def backends() -> tuple[str, ...]:
    """What ``run --backend`` and campaigns take."""
    return ("sim", *BACKENDS)


class ClusterUse(Strict):
    """One entry of ``clusters:``. The options are those of ``yarnfair run``."""

    backend: str
    inventory: str | None = Field(default=None, min_length=1, max_length=4000)
    rm: str | None = Field(default=None, min_length=1, max_length=1000)
    admin: str | None = None
    client: str | None = None
    allocations: str | None = None
    shared: str | None = None
    python: str | None = None

    @field_validator("backend")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in BACKENDS:
            raise ValueError(f"give one of {', '.join(BACKENDS)}")
        return name


@dataclass(frozen=True, slots=True)
class Place:
    """Where cells run: its name in the campaign, the backend, and which cluster (``Target()``: one of our own)."""

    name: str
    kind: str = "sim"
    target: Target = field(default_factory=Target)

    @property
    def real(self) -> bool:
        """Whether cells run on a real cluster."""
        return self.kind != "sim"

    @property
    def alone(self) -> bool:
        """Whether the cluster loads this machine itself: its cells run when no other does."""
        return self.real and self.target.rm is None and backend_class(self.kind).here


SIM = Place("sim")


def place_of(name: str, use: ClusterUse | None, folder: Path) -> Place:
    """A place by its name: as ``clusters:`` has it (paths are relative to `folder`, the campaign file's), or a backend.

    Raises InputError, without a place in a file, for options that do not go together.
    """
    if name == "sim":
        return SIM
    if use is None:
        use = ClusterUse.model_validate({"backend": name})
    backend = backend_class(use.backend)
    if backend.takes_inventory and use.rm is None and use.inventory is None:
        hint = f"write clusters: {{{name}: {{backend: {use.backend}, inventory: hosts.yaml}}}}"
        raise InputError(f"no inventory for the hosts of backend {use.backend}", hint=hint)
    if use.inventory is not None and (not backend.takes_inventory or use.rm is not None):
        raise InputError("an inventory is for backend ssh, without rm", hint="leave one of them out")
    target = Target(**use.model_dump(exclude={"backend"}))
    if use.rm is None and target != Target(inventory=use.inventory):
        raise InputError("an option of a given cluster without rm", hint="give rm: URL, or leave it out")
    if use.rm is not None and not use.shared:
        raise InputError("rm without shared", hint="give a folder that this machine and all nodes see alike")

    def beside(path: str | None) -> str | None:
        return path if path is None or "://" in path else str((folder / Path(path).expanduser()).absolute())

    inventory, allocations, shared = map(beside, (use.inventory, use.allocations, use.shared))
    return Place(name, use.backend, replace(target, inventory=inventory, allocations=allocations, shared=shared))


# --- identity ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _software() -> str:
    """Which Hadoop: the list of artefacts that local, Docker and SSH clusters are made of, or the folder given."""
    digest = hashlib.sha256(data_path("docker", "pom.xml").read_bytes())
    given = os.environ.get("HADOOP_LIB")
    if given and Path(given).is_dir():
        for jar in sorted(Path(given).glob("*.jar")):
            digest.update(f"{jar.name} {jar.stat().st_size}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _brought() -> tuple[str, ...]:
    """Return hashes of what a cluster is given: programs, site files, scheduler files, and policies inside the RM."""
    return (
        data_hash(data_path("workloads"), "**/*.py", "**/*.sql"),
        data_hash(data_path("templates"), "*.xml.j2"),
        data_hash(data_path("docker"), "conf/**/*", "scheduler/**/*"),
        data_hash(data_path("yarn-policy"), "**/*.java", "**/*.xml"),
    )


def identity_of(place: Place) -> Mapping[str, Any]:
    """What a cell's identity has of its place: which cluster, of what; empty for the simulator.

    A cluster that is there already is known by its address; its version stands in ``run.json``.

    Raises InputError for an inventory that cannot be read.
    """
    if not place.real:
        return {}
    document: dict[str, Any] = {"kind": place.kind, "real_code": _brought()}
    target = place.target
    if target.rm is not None:
        return {**document, "rm": target.rm, "allocations": target.allocations}
    document["hadoop"] = _software()
    document |= backend_class(place.kind).software_fingerprint()
    if target.inventory is not None:
        # Who they are and how large, not by which key one gets in.
        hosts = [
            (
                host.name,
                host.access.host,
                host.access.port,
                host.address,
                host.roles,
                host.java,
                host.memory_mb,
                host.vcores,
            )
            for host in read_inventory(Path(target.inventory)).hosts
        ]
        document["hosts"] = hosts
    return document


# --- turns ------------------------------------------------------------------------------------------------------------


def _lock_name(place: Place) -> str:
    """Places that are one cluster have one name; clusters of our own on this machine count as one: they share it."""
    target = place.target
    if target.rm is not None:
        what = ["rm", target.rm.rstrip("/")]
    elif target.inventory is not None:
        hosts = read_inventory(Path(target.inventory)).hosts
        what = ["hosts", *sorted(f"{host.access.host}:{host.access.port or 22}" for host in hosts if host.roles)]
    else:
        return "this-machine"
    return f"{what[0]}-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]}"


@contextlib.contextmanager
def turn(place: Place, says: Says) -> Iterator[None]:
    """Waits until nobody else of this user on this machine has the cluster, and keeps it. Goes with the process.

    Raises InputError when the lock's folder cannot be written.
    """
    path = default_folder("turns") / f"{_lock_name(place)}.lock"
    with contextlib.ExitStack() as stack:
        with writing(path):
            try:
                handle = stack.enter_context(locked(path, wait=False))
            except BlockingIOError:
                who = path.read_text(errors="replace")[:32].strip() or "unknown"
                says(f"waits for the cluster: process {who} has it")
                handle = stack.enter_context(locked(path))
            handle.truncate(0)
            handle.write(f"{os.getpid()}\n")
            handle.flush()
        yield


class OpenCluster:
    """One cluster, kept up from cell to cell as long as these are of one experiment. Not for several threads."""

    def __init__(self, *, turns: bool = True) -> None:
        """``turns``: others wait as long as it is up."""
        self._turns = turns
        self._stack = contextlib.ExitStack()
        self._key: tuple[str, Place] | None = None
        self._runner: Runner | None = None

    def runner(self, experiment: Loaded, coming: Sequence[object], place: Place, says: Says) -> Runner:
        """What runs variants, of which `coming` are known, on the place's cluster, brought up if it is not there yet.

        Waits for its turn. Raises what bringing it up raises.
        """
        key = (experiment.hash, place)
        if self._runner is None or self._key != key:
            self.close()
            if self._turns:
                self._stack.enter_context(turn(place, says))
            opened = experiment.kind.on_cluster(experiment, coming, place.kind, place.target, says)
            self._runner = self._stack.enter_context(opened)
            self._key = key
        return self._runner

    def close(self) -> None:
        """Takes the cluster down, if there is one, and lets the next one have its turn."""
        stack, self._stack = self._stack, contextlib.ExitStack()
        self._runner = self._key = None
        stack.close()
