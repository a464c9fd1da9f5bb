"""The base of all backends: a cluster of one state folder that is started, examined and stopped.

A backend is a subclass in its own file, with a line in harness.clusters.backends.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from harness.base.errors import InputError
from harness.clusters.daemons import LOOPBACK, SCHEDULERS, port_taken
from harness.clusters.inventory import Inventory
from harness.clusters.shared import SharedFolder
from harness.clusters.state import ClusterSpec, ClusterState, StateFolder, not_ended
from harness.clusters.status import ClusterStatus, Part, look
from harness.yarn.answers import ClusterInfo
from harness.yarn.files import ConfigStore, LocalStore
from harness.yarn.rmclient import RmAddress


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check of ``cluster doctor``.

    ``queues`` and ``settings``: all queues that it concerns and all properties to change; the text names the first.
    """

    check: str
    result: Literal["fine", "problem", "note"]
    what: str
    hint: str | None = None
    queues: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def shortened(self) -> bool:
        """Whether the text leaves out some of the queues."""
        named = set(re.split(r"[\s,;:()]+", self.what))
        return not named.issuperset(self.queues)


class Cluster(ABC):
    """The cluster of one state folder. `up` and `down` hold the folder's lock while they run."""

    #: Its name in ``--backend``.
    backend: ClassVar[str]
    #: Whether its nodes, their files and their memory are on this machine.
    here: ClassVar[bool] = True
    #: Whether its nodes see this machine's files under the same paths.
    sees_files: ClassVar[bool] = False
    #: Whether it consists of the hosts of an inventory.
    takes_inventory: ClassVar[bool] = False
    #: Whether this machine's jars can be put on its ResourceManager's class path, for policies inside it.
    takes_jars: ClassVar[bool] = True
    #: The schedulers that its ResourceManager supports (harness.clusters.daemons).
    schedulers: ClassVar[tuple[str, ...]] = ("fair",)
    #: The engines whose programs run on it (harness.jobs.engines).
    engines: ClassVar[tuple[str, ...]] = ()
    #: Whether it can include a JobHistoryServer.
    has_history: ClassVar[bool] = False

    def __init__(
        self,
        folder: StateFolder,
        inventory: Inventory | None = None,
        *,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self._given = inventory
        self._progress = progress

    @abstractmethod
    def up(self, spec: ClusterSpec, *, timeout_s: float = 180.0, keep: bool = False) -> ClusterStatus:
        """Start the cluster and wait until all nodes are RUNNING.

        Leftovers of a crash in the folder are removed first; a running cluster there is an error. Raises RunTimedOut
        after `timeout_s`; everything is then removed, unless `keep` is set for `doctor` to examine it.
        """

    def down(self) -> Sequence[object]:
        """Stop everything and remove the folder; return what could not be stopped (normally nothing), for a message."""
        if not self.folder.folder.exists():
            return []
        with self.folder.lock():
            state = self.folder.load()
            self._check_own(state)
            left = self._clean(state) if state is not None else []
            if not left:
                self.folder.remove()
            return left

    def _make_way(self, spec: ClusterSpec, hint: str = "again, or end it by hand") -> None:
        """Remove what an earlier cluster left in the folder, for `up`.

        Raises InputError if a cluster runs there, if leftovers cannot be stopped, or if a port that the user named is
        taken. ``hint``: when to run ``cluster down`` if leftovers cannot be stopped.
        """
        before = self.folder.load()
        if before is not None:
            if before.running_s is not None and self._runs(before):
                raise InputError(
                    "a cluster runs here already",
                    where=str(self.folder.folder),
                    hint="run `yarnfair cluster down` first, or give another --state",
                )
            self._progress("cleaning away what an earlier cluster left")
            if left := self._clean(before):
                raise not_ended(left, self.folder, hint=hint)
        for port in spec.ports.values():
            if port_taken(port):
                self.folder.remove()
                hint = "give another port, or none for a free one"
                raise InputError(f"port {port} is taken", where=LOOPBACK, hint=hint)

    def _undo(self, state: ClusterState, keep: bool = False) -> None:
        """Remove everything of a failed `up`, unless ``keep`` is set or it cannot be stopped."""
        if not keep and not self._clean(self.folder.load() or state):
            self.folder.remove()

    def known(self) -> ClusterState:
        """Return what was started here. Raises InputError if nothing was."""
        state = self.folder.load() if self.folder.folder.exists() else None
        if state is None:
            hint = f"bring one up: `yarnfair cluster up --backend {self.backend}`"
            raise InputError("no cluster here", where=str(self.folder.folder), hint=hint)
        return state

    def _came_up(self, state: ClusterState, start: float, info: ClusterInfo) -> ClusterStatus:
        """Record that all nodes run, the time since `start` (monotonic), and the ResourceManager's identity."""
        state = replace(state, running_s=round(time.monotonic() - start, 2), rm_id=info.id)
        self.folder.save(state)
        found = self._status(state)
        if found is None:
            raise InputError("what was started is gone", where=state.mark, hint="bring it up again")
        return found

    def _runs(self, state: ClusterState) -> bool:
        """Return whether a cluster that was up once still works."""
        found = self.status()
        return found is not None and found.up

    def _check_own(self, state: ClusterState | None) -> None:
        """Raise InputError for an external cluster, which is never stopped."""
        return

    @abstractmethod
    def _clean(self, state: ClusterState) -> Sequence[object]:
        """Stop everything and remove leftovers, except the folder; return what could not be stopped."""

    def status(self) -> ClusterStatus | None:
        """Return the present status; None if there is no cluster in the folder."""
        state = self.folder.load()
        return None if state is None or "http" not in state.ports else self._status(state)

    @abstractmethod
    def _status(self, state: ClusterState) -> ClusterStatus | None:
        """Return the present status; None if nothing of the cluster exists."""

    def _told(
        self, state: ClusterState, rm: Part, parts: Sequence[Part], others: Sequence[Part] = (), **more: Any
    ) -> ClusterStatus:
        """Return the status that consists of the backend's parts and of the ResourceManager's answers.

        ``more``: fields of ClusterStatus that differ from a cluster on this machine.
        """
        info, nodes, problem = look(state.rest)
        rpc = {name: f"{LOOPBACK}:{state.ports[name]}" for name in ("admin", "client") if name in state.ports}
        of_machine = {
            "scheduler_folder": str(self.folder.path("scheduler")),
            "scheduler_file": SCHEDULERS[state.spec.scheduler].file_name,
            "wanted": state.spec.nodes,
        }
        return ClusterStatus(
            backend=self.backend,
            folder=str(self.folder.folder),
            address=RmAddress.of(state.rest, **rpc),
            rm=rm,
            parts=parts,
            others=others,
            info=info,
            nodes=nodes,
            problem=problem,
            running_s=state.running_s,
            recorded_id=state.rm_id,
            history=state.history,
            **{**of_machine, **more},
        )

    def place(self) -> ConfigStore:
        """Return the location of its scheduler's file."""
        state = self.folder.load()
        scheduler = "fair" if state is None else state.spec.scheduler
        return LocalStore(self.folder.path("scheduler", SCHEDULERS[scheduler].file_name))

    @abstractmethod
    def share(self, name: str, beside: Path) -> AbstractContextManager[tuple[SharedFolder, str]]:
        """Provide a folder that all its nodes see under one path, for the duration of the context.

        The second result is the path of the nodes' Python. ``beside``: the parent, if the folder is on this machine.
        """

    @classmethod
    def examine(cls, *, running: bool) -> Iterator[Finding]:
        """Check what this machine lacks for such a cluster. `running`: one is up."""
        yield from ()

    @classmethod
    def examine_ports(cls, given: Mapping[str, int]) -> Iterator[Finding]:
        """Return further findings about ports, except those `given` by name."""
        yield from ()

    @classmethod
    def disk(cls, folder: Path) -> Path:
        """Return the folder of this machine that its nodes fill. Raises InputError if that is unknown now."""
        return folder

    @classmethod
    def logs(cls, status: ClusterStatus) -> str:
        """Return an instruction on how to see the logs of its parts."""
        return f"look into the logs below {status.folder}"

    def software(self) -> Mapping[str, Any]:
        """Return the software of this cluster, for ``run.json``; empty if the backend does not know it."""
        return {}

    @classmethod
    def software_fingerprint(cls) -> Mapping[str, Any]:
        """Return versions or hashes of this machine's software, besides Hadoop, that distinguish such clusters."""
        return {}
