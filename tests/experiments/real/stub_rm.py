"""A ResourceManager that takes everything and runs nothing, for programs that end before a cluster has to work."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.clusters.shared import LocalFolder
from harness.experiments.real import run, single
from harness.experiments.real.cluster import RealCluster
from harness.experiments.real.single import ProgramRunner
from harness.model.resources import Resource
from harness.yarn.answers import NewApplication
from harness.yarn.http import HttpOptions
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmAddress


class StubRm:
    """One node; an application is what `app` says. ``killed``: the applications that were."""

    def __init__(self, free: Resource) -> None:
        self.free, self.killed, self.submitted = free, list[str](), list[str]()
        self.http = SimpleNamespace(current="http://127.0.0.1:1", request=self._conf)

    def _conf(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(document={"property": {"value": "rm:8030"}}, url="")

    def info(self) -> Any:
        return SimpleNamespace(id=1, version="3.4.2")

    def metrics(self) -> Any:
        return SimpleNamespace(total=self.free, containers_allocated=0)

    def nodes(self) -> Any:
        return [SimpleNamespace(state="RUNNING", total=self.free, used=Resource(0, 0), available=self.free)]

    def scheduler(self) -> Any:
        return SimpleNamespace(capacity=self.free, queues={})

    def properties(self, *, defaults: bool = True) -> dict[str, str]:
        return {}

    def new_application(self) -> NewApplication:
        return NewApplication("application_1_0001", self.free)

    def submit(self, submission: Submission, identity: str) -> str:
        self.submitted.append(identity)
        return identity

    def apps(self, **_: Any) -> Any:
        return [SimpleNamespace(id=one) for one in self.submitted if one not in self.killed]

    def app(self, identity: str) -> Any:
        raise NotImplementedError

    def kill_all(self, apps: Iterable[Any], **_: Any) -> int:
        return len([self.kill(app.id) for app in apps])

    def kill(self, identity: str, **_: Any) -> None:
        self.killed.append(identity)


def runner_on(rest: StubRm, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ProgramRunner:
    """Runs programs on it; what a run needs lies below the folder."""

    class Client:
        def __init__(self) -> None:
            self.rest = rest

        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def close(self) -> None:
            pass

    for module in (run, single):
        monkeypatch.setattr(module, "client_of", lambda _: Client())
    address = cast(RmAddress, SimpleNamespace(rest="http://127.0.0.1:1"))
    return ProgramRunner(
        RealCluster("local", address, None, LocalFolder(folder), "python3", http=HttpOptions(user=getpass.getuser()))
    )
