"""The clusters of a campaign: their list, their identities, and a cluster that stays up from one cell to the next.

A campaign names the places where its cells run: ``sim`` is the simulator; ``local`` and ``docker`` are clusters that
the campaign starts on demand; others are listed under ``clusters:`` with a backend and its options. Only one cell at a
time runs on a cluster, across all campaigns.
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
    """Return the values that ``run --backend`` and campaigns accept."""
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
    """The place where cells run: its name in the campaign, the backend and the cluster.

    An empty ``Target()`` means that the campaign starts the cluster itself.
    """

    name: str
    kind: str = "sim"
    target: Target = field(default_factory=Target)

    @property
    def real(self) -> bool:
        """Return whether cells run on a real cluster."""
        return self.kind != "sim"

    @property
    def alone(self) -> bool:
        """Return whether the campaign starts the cluster on this machine, so that its cells run without other cells."""
        return self.real and self.target.rm is None and backend_class(self.kind).here


SIM = Place("sim")


def place_of(name: str, use: ClusterUse | None, folder: Path) -> Place:
    """Return a place by its name.

    Parameters
    ----------
    name
        ``sim``, a backend, or a name of ``clusters:``.
    use
        The entry of ``clusters:``; None: the name is a backend.
    folder
        The campaign's folder, to which paths in the entry are relative.

    Raises
    ------
    InputError
        Options contradict each other. The error has no position in a file.
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
    """Return a hash that identifies Hadoop: the artefacts of local, Docker and SSH clusters, and ``HADOOP_LIB``."""
    digest = hashlib.sha256(data_path("docker", "pom.xml").read_bytes())
    given = os.environ.get("HADOOP_LIB")
    if given and Path(given).is_dir():
        for jar in sorted(Path(given).glob("*.jar")):
            digest.update(f"{jar.name} {jar.stat().st_size}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _brought() -> tuple[str, ...]:
    """Return hashes of a cluster's inputs: programs, site files, scheduler files, and policies inside the RM."""
    return (
        data_hash(data_path("workloads"), "**/*.py", "**/*.sql"),
        data_hash(data_path("templates"), "*.xml.j2"),
        data_hash(data_path("docker"), "conf/**/*", "scheduler/**/*"),
        data_hash(data_path("yarn-policy"), "**/*.java", "**/*.xml"),
    )


def identity_of(place: Place) -> Mapping[str, Any]:
    """Return the part of a cell's identity that describes its cluster and its inputs; empty for the simulator.

    An external cluster is identified by its address; its version is stored in ``run.json``.

    Raises InputError for an unreadable inventory.
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
        # The hosts and their sizes count, but not the keys for access.
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


# --- locks ------------------------------------------------------------------------------------------------------------


def _lock_name(place: Place) -> str:
    """Return the name of a place's lock, which is equal for all places on one cluster.

    All clusters that yarnfair starts on this machine share one name.
    """
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
    """Lock a cluster for the duration of the context; wait while another process of this user on this machine has it.

    ``says`` receives a message if the lock is taken. Raises InputError if the lock's folder cannot be written.
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
    """One cluster that stays up for consecutive cells of one experiment. It is not thread-safe."""

    def __init__(self, *, turns: bool = True) -> None:
        """Create the object without a cluster. ``turns``: whether to lock the cluster while it is up."""
        self._turns = turns
        self._stack = contextlib.ExitStack()
        self._key: tuple[str, Place] | None = None
        self._runner: Runner | None = None

    def runner(self, experiment: Loaded, coming: Sequence[object], place: Place, says: Says) -> Runner:
        """Return the runner of an experiment's variants on the place's cluster, which is started if it is not up.

        ``coming``: the variants that are known to run there. Waits for the cluster's lock. Raises errors of a start.
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
        """Stop the cluster, if there is one, and release its lock."""
        stack, self._stack = self._stack, contextlib.ExitStack()
        self._runner = self._key = None
        stack.close()
