"""The state folder of a cluster: what was started, its addresses, and the lock that separates two commands.

``cluster.json`` is written atomically before anything is started and after each step, so that the next command knows
what to remove even if ``up`` crashes. This module neither starts nor stops anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError, check_ranges
from harness.base.files import holding
from harness.clusters.processes import Process
from harness.clusters.site import write_private

_FILE = "cluster.json"
#: The file that marks a folder as one that may be emptied; it also carries the lock.
_OWN = ".yarnfair-cluster"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The description of a wanted cluster. Memory in MiB.

    `memory_mb` and `vcores` are what each node advertises (configuration only, whatever the machine has). `ports`: the
    RM's ports by name (http, client, admin); the others are chosen freely. `scheduler`: fair or capacity.
    `allocations`: the scheduler's file (allocation file, capacity-scheduler.xml) at the start. `properties` are added
    to yarn-site.xml; an empty text removes a property that yarnfair would set there, so that Hadoop's default holds.
    `jars` are added to the RM's class path. `node_limit_mb`: what a node's daemon and containers may
    use together, if the backend enforces a limit (None: the small amount that replayed load uses). `history`: a
    JobHistoryServer beside the RM (local). `hadoop`: the release (None: that of HADOOP_LIB, else the default).
    """

    nodes: int = 2
    memory_mb: int = 4096
    vcores: int = 4
    minimum_allocation_mb: int = 256
    rm_heap_mb: int = 256
    nm_heap_mb: int = 128
    scheduler: str = "fair"
    preemption: bool = False
    history: bool = False
    disk_checks: bool = False
    expiry_ms: int = 60_000
    allocations: str | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()
    node_limit_mb: int | None = None
    hadoop: str | None = None

    def __post_init__(self) -> None:
        check_ranges(
            self,
            nodes=(1, 500),
            memory_mb=(1, 2**40),
            vcores=(1, 2**20),
            minimum_allocation_mb=(1, 2**40),
            rm_heap_mb=(64, 2**20),
            nm_heap_mb=(32, 2**20),
            expiry_ms=(1_000, 86_400_000),
        )
        for name, port in self.ports.items():
            if name not in ("http", "client", "admin") or not 1 <= port <= 65535:
                raise CallError(f"{name} port {port}", hint="give http, client or admin and a port from 1 to 65535")
        if len(set(self.ports.values())) < len(self.ports):
            raise CallError("the same port twice", hint="give each its own")
        if self.memory_mb < self.minimum_allocation_mb:
            raise CallError(
                f"a node of {self.memory_mb} MB cannot hold one container of the minimum allocation, "
                f"{self.minimum_allocation_mb} MB",
                hint="raise --memory-mb or lower --minimum-allocation-mb",
            )
        for path in [*self.jars, *([self.allocations] if self.allocations else [])]:
            if not Path(path).is_file():
                raise InputError("no such file", where=path, hint="check the path")


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What is known of a cluster that was started or adopted.

    `mark`: its unique name. `ports`: its ports on this machine by name. `processes`: its processes on this machine by
    name (local: rm, nm1, nm2 ...; ssh: tunnel). `started_at`: seconds since 1970. `running_s`: seconds from ``up`` to
    all nodes RUNNING (None: not reached). `rm_id`: the RM's ``clusterInfo.id``.
    """

    backend: str
    mark: str
    spec: ClusterSpec
    ports: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[str, Process] = field(default_factory=dict)
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    started_at: float = 0.0
    running_s: float | None = None
    rm_id: int | None = None
    #: For a cluster on other hosts (ssh): the inventory, the RM's own ports, and what was installed where.
    remote: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rest(self) -> str:
        """Return the RM's REST address."""
        return f"http://127.0.0.1:{self.ports['http']}"

    @property
    def history(self) -> str | None:
        """Return the JobHistoryServer's address; None without one."""
        return f"http://127.0.0.1:{self.ports['history']}" if self.spec.history else None


def default_folder(backend: str) -> Path:
    """Return the default location of the state: ``$XDG_STATE_HOME/yarnfair/<backend>``."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "yarnfair" / backend


class StateFolder:
    """A state folder on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def path(self, *parts: str) -> Path:
        """Return the path of a file in the folder."""
        return self.folder.joinpath(*parts)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder, which is created if necessary. Raises InputError if another command uses it."""
        if self.folder.exists() and not self.folder.is_dir():
            raise CallError(f"{self.folder} is not a folder", hint="give another --state")
        ours = any(self.path(name).exists() for name in (_FILE, _OWN))
        if self.folder.is_dir() and not ours and any(self.folder.iterdir()):
            raise CallError(f"{self.folder} holds other things", hint="give an empty or new folder as --state")
        what, where = "another yarnfair command is at work on this cluster", str(self.folder)
        with holding(self.path(_OWN), busy=InputError(what, where=where, hint="wait for it to end")):
            yield

    def load(self) -> ClusterState | None:
        """Return the state; None if there is none. Raises InputError if the file cannot be used."""
        path = self.path(_FILE)
        try:
            document = json.loads(path.read_bytes())
            return _from_document(document)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise CallError(f"{self.folder} is not a folder", hint="give another --state") from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, CallError) as error:
            raise InputError(
                f"no usable cluster state ({type(error).__name__})",
                where=str(path),
                hint="end what still runs, then remove the folder",
            ) from None

    def save(self, state: ClusterState) -> None:
        """Write the state atomically."""
        document = json.dumps({"format": _FORMAT, **asdict(state)}, indent=1)
        write_private(self.path(_FILE), document.encode())

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            raise InputError("cannot be removed", where=str(self.folder), hint="look at who owns what is in it")


def not_ended(left: Sequence[object], folder: StateFolder, *, hint: str = "again, or end it by hand") -> InputError:
    """Return the error of an ``up`` that finds an earlier cluster which cannot be ended.

    The earlier cluster's state must stay: nothing else knows which processes still run.
    """
    more = f" and {len(left) - 3} more" if len(left) > 3 else ""
    return InputError(
        f"an earlier cluster could not be ended: {', '.join(map(str, left[:3]))}{more}",
        where=str(folder.folder),
        hint=f"run `yarnfair cluster down` with this --state {hint}",
    )


def _from_document(document: Any) -> ClusterState:
    from pydantic import TypeAdapter

    if document.pop("format") != _FORMAT:
        raise ValueError("another format")
    # A state records what was started; `down` must work even if these files have been removed since.
    document["spec"].update(allocations=None, jars=())
    state = TypeAdapter(ClusterState).validate_python(document)
    if not state.mark or any(process.pid <= 1 for process in state.processes.values()):
        raise ValueError("mark or pid")
    return state
