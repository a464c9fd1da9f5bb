"""Every program that computes, MapReduce's, Spark's and Hive's, by one name, and one client for all."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from harness.base.errors import CallError, InputError
from harness.clusters.shared import ContainerFolder, LocalFolder, SharedFolder
from harness.jobs.applications import client as mapreduce
from harness.jobs.applications.catalogue import APPLICATIONS, Application
from harness.jobs.applications.catalogue import settings_of as mapreduce_settings
from harness.jobs.applications.client import Done, Request
from harness.jobs.applications.containers import ContainerClient
from harness.jobs.applications.history import Attempt
from harness.jobs.hive import catalogue as hive
from harness.jobs.hive.catalogue import HiveProgram
from harness.jobs.hive.client import HiveClient, HiveRequest
from harness.jobs.spark import catalogue as spark
from harness.jobs.spark.catalogue import SparkProgram
from harness.jobs.spark.client import SparkClient, SparkRequest
from harness.jobs.spark.site import SparkSite, site_of
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

Program = Application | SparkProgram | HiveProgram
AnyRequest = Request | SparkRequest | HiveRequest
#: What stands for several programs, one after another.
GROUPS: Mapping[str, tuple[str, ...]] = {**spark.GROUPS, **hive.GROUPS}


def every() -> Mapping[str, Program]:
    """All programs by name: MapReduce's first."""
    return {**APPLICATIONS, **spark.programs(), **hive.programs()}


def members(name: str) -> tuple[str, ...]:
    """The programs that a name stands for: a group's, else itself."""
    return GROUPS.get(name.lower(), (name,))


def find(name: str) -> Program:
    """A program by its name. CallError when there is none, or when the name stands for several."""
    found = every().get(name.lower())
    if found is not None:
        return found
    if name.lower() in GROUPS:
        names = ", ".join(members(name))
        raise CallError(f"{name} stands for several programs", mend=f"give one of {names}")
    known = [*APPLICATIONS, "tpch-q1 ... tpch-q22", "hive-q1 ... hive-q22", "kmeans", "als", *GROUPS]
    raise CallError(f"no application {name[:40]!r}", mend=f"one of {', '.join(known)}")


def settings_of(one: Program, given: Mapping[str, str]) -> dict[str, str]:
    """A program's settings with those given. Raises CallError for one that it does not have."""
    if isinstance(one, SparkProgram):
        return spark.settings_of(one, given)
    if isinstance(one, HiveProgram):
        return hive.settings_of(one, given)
    return mapreduce_settings(one, given)


def document(request: AnyRequest, done: Done) -> dict[str, Any]:
    """The result as ``--json`` prints it."""
    return mapreduce.document(cast(Request, request), done)


@dataclass(frozen=True)
class AnyCluster:
    """A cluster on which programs run. ``shared`` None: its nodes see this machine's files; else its containers'."""

    rm: str
    shared: SharedFolder | None = None


class AnyClient:
    """Runs programs of both kinds on one cluster. ``work``: a folder for what a run needs beside its output."""

    def __init__(
        self,
        rest: RestClient,
        cluster: AnyCluster,
        work: Path,
        *,
        python: str,
        progress: Callable[[str], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> None:
        self.rest, self._cluster, self._work, self._python = rest, cluster, work, python
        self._progress, self._stop = progress, stop or threading.Event()
        #: What was measured of the last run, however it ended.
        self.attempts: list[Attempt] = []
        self.zero_ms = 0

    def run(self, request: AnyRequest, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked; errors as of the clients of each kind. However it ends, nothing of it runs on."""
        self.attempts = []
        if isinstance(request, SparkRequest):
            return self._spark(request, on_step)
        if isinstance(request, HiveRequest):
            if self._cluster.shared is not None:
                raise InputError(
                    f"{request.application.name} is a Hive query, which runs on local clusters only",
                    where=self._cluster.rm,
                    mend="use --backend local",
                )
            asked = HiveClient(self.rest, progress=self._progress, stop=self._stop)
            try:
                return asked.run(request, on_step)
            finally:
                self.attempts, self.zero_ms = asked.attempts, asked.zero_ms
        if self._cluster.shared is not None:
            copied = ContainerClient(
                self.rest, _beside(self._cluster.shared, "yarnfair-jobs"), self._progress, self._stop
            )
            try:
                return copied.run(request, on_step)
            finally:
                self.attempts, self.zero_ms = copied.attempts, copied.zero_ms
        client = mapreduce.Client(self.rest, progress=self._progress, stop=self._stop)
        try:
            return client.run(request, on_step)
        finally:
            self.attempts, self.zero_ms = client.attempts, client.zero_ms

    def _spark(self, request: SparkRequest, on_step: Callable[[list[AppStatus]], None]) -> Done:
        with self._site() as site:
            client = SparkClient(self.rest, site, progress=self._progress, stop=self._stop)
            try:
                return client.run(request, on_step)
            finally:
                for submitted in client.submitted:
                    self.zero_ms = submitted.zero_ms
                    with contextlib.suppress(InputError):
                        self.attempts += client.attempts(submitted)

    @contextlib.contextmanager
    def _site(self) -> Iterator[SparkSite]:
        """The run's own folder, where the nodes see it, for as long as it lasts."""
        name = f"yarnfair-spark-{uuid.uuid4().hex[:12]}"
        shared: SharedFolder
        if self._cluster.shared is not None:
            shared = _beside(self._cluster.shared, name)
        else:
            shared = LocalFolder(self._work.absolute() / f".{name}")
        try:
            yield site_of(shared, self._python)
        finally:
            shared.remove()


def _beside(shared: SharedFolder, name: str) -> ContainerFolder:
    """Another folder of the same volume."""
    assert isinstance(shared, ContainerFolder)
    return ContainerFolder(shared.container, f"{shared.path.rpartition('/')[0]}/{name}")
