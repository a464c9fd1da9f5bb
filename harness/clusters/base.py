"""What every backend is: a cluster of one state folder that is brought up, looked at and ended. No backend lives here.

A backend is a subclass in a file of its own, and its line in harness.clusters.backends.
"""

from __future__ import annotations

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
    """The outcome of one check of ``cluster doctor``."""

    check: str
    result: Literal["fine", "problem", "note"]
    what: str
    hint: str | None = None


class Cluster(ABC):
    """The cluster of one state folder. Methods hold the folder's lock and leave it as they found it when they fail."""

    #: Its name, as ``--backend`` takes it.
    backend: ClassVar[str]
    #: Whether its nodes, their files and their memory are this machine's.
    here: ClassVar[bool] = True
    #: Whether its nodes see the files of this machine under their own paths.
    sees_files: ClassVar[bool] = False
    #: Whether it is made of the hosts of an inventory.
    takes_inventory: ClassVar[bool] = False
    #: Whether jars of this machine can be put on its ResourceManager's class path, and with them a policy inside it.
    takes_jars: ClassVar[bool] = True
    #: The schedulers that its ResourceManager can have (harness.clusters.daemons).
    schedulers: ClassVar[tuple[str, ...]] = ("fair",)
    #: The engines whose programs run on it (harness.jobs.engines).
    engines: ClassVar[tuple[str, ...]] = ()
    #: Whether a JobHistoryServer can be a part of it.
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
        """Starts the cluster and waits until all nodes are RUNNING.

        What a crash left in the folder is cleaned away first; a cluster that runs there is an error. RunTimedOut when
        it takes longer than `timeout_s`; nothing stays behind then, unless `keep`: for `doctor` to examine.
        """

    def down(self) -> Sequence[object]:
        """Ends everything and removes the folder; what could not be ended (normally nothing), as a message names it."""
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
        """Cleans away what an earlier cluster left in the folder, for `up`.

        Raises InputError where one runs there, where what is left cannot be ended (``hint``: what to do then), or where
        a port that the user named is taken.
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
        """Leaves nothing of an `up` that has failed, unless ``keep``, or where it cannot be ended."""
        if not keep and not self._clean(self.folder.load() or state):
            self.folder.remove()

    def known(self) -> ClusterState:
        """What was brought up here. Raises InputError where nothing was."""
        state = self.folder.load() if self.folder.folder.exists() else None
        if state is None:
            hint = f"bring one up: `yarnfair cluster up --backend {self.backend}`"
            raise InputError("no cluster here", where=str(self.folder.folder), hint=hint)
        return state

    def _came_up(self, state: ClusterState, start: float, info: ClusterInfo) -> ClusterStatus:
        """Notes that all nodes run, since `start` (monotonic), and by which ResourceManager's word."""
        state = replace(state, running_s=round(time.monotonic() - start, 2), rm_id=info.id)
        self.folder.save(state)
        found = self._status(state)
        if found is None:
            raise InputError("what was started is gone", where=state.mark, hint="bring it up again")
        return found

    def _runs(self, state: ClusterState) -> bool:
        """Whether a cluster that came up once still does its work."""
        found = self.status()
        return found is not None and found.up

    def _check_own(self, state: ClusterState | None) -> None:
        """Raises InputError for a cluster that is not ended, because it was not brought up."""
        return

    @abstractmethod
    def _clean(self, state: ClusterState) -> Sequence[object]:
        """Ends everything of it and what it left, but for the folder; what could not be ended."""

    def status(self) -> ClusterStatus | None:
        """How it is now; None when there is no cluster in the folder."""
        state = self.folder.load()
        return None if state is None or "http" not in state.ports else self._status(state)

    @abstractmethod
    def _status(self, state: ClusterState) -> ClusterStatus | None:
        """How it is now; None when nothing of it is there."""

    def _told(
        self, state: ClusterState, rm: Part, parts: Sequence[Part], others: Sequence[Part] = (), **more: Any
    ) -> ClusterStatus:
        """Its parts, and what its ResourceManager says. ``more``: what is other than of a cluster on this machine."""
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
        """Where its scheduler's file lies."""
        state = self.folder.load()
        scheduler = "fair" if state is None else state.spec.scheduler
        return LocalStore(self.folder.path("scheduler", SCHEDULERS[scheduler].file_name))

    @abstractmethod
    def share(self, name: str, beside: Path) -> AbstractContextManager[tuple[SharedFolder, str]]:
        """A folder that all its nodes see under one path, while the context lasts; and the nodes' Python.

        ``beside``: where a folder of this machine goes, if it is one.
        """

    @classmethod
    def examine(cls, *, running: bool) -> Iterator[Finding]:
        """What this machine lacks for such a cluster. `running`: one is up."""
        yield from ()

    @classmethod
    def examine_ports(cls, given: Mapping[str, int]) -> Iterator[Finding]:
        """What else there is to say of ports, beside those `given` by name."""
        yield from ()

    @classmethod
    def disk(cls, folder: Path) -> Path:
        """Which folder of this machine its nodes fill. InputError when that cannot be known now."""
        return folder

    @classmethod
    def logs(cls, status: ClusterStatus) -> str:
        """Where the logs of its parts are, as an instruction."""
        return f"look into the logs below {status.folder}"

    def software(self) -> Mapping[str, Any]:
        """Return which software runs on this cluster, for ``run.json``; empty where the backend knows nothing of it."""
        return {}

    @classmethod
    def software_fingerprint(cls) -> Mapping[str, Any]:
        """What of this machine's software such a cluster runs on, beside Hadoop: another one makes another cluster."""
        return {}
