"""A ResourceManager's REST API (``/ws/v1/cluster``), typed: the endpoints that the project uses, and no others.

How answers are checked is in harness.yarn.answers, how servers are asked in harness.yarn.http. Weights cannot be
changed here: harness.yarn.adminrpc makes the RM read its allocation file again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from harness.base.errors import CallError, YarnfairError
from harness.model.resources import Resource
from harness.yarn import answers, queue_answers
from harness.yarn.answers import AppList, AppStatus, ClusterInfo, ClusterMetrics, NewApplication, NodeStatus
from harness.yarn.errors import BadAnswer, NoActiveRm, Refused, Unreachable
from harness.yarn.http import HttpClient, HttpOptions, date_of
from harness.yarn.queue_answers import SchedulerStatus

T = TypeVar("T")
_ROOT = "/ws/v1/cluster"
_SMALL = Resource(256, 1)
#: An answer about one thing is at most so long, bytes.
_SMALL_ANSWER = 4 << 20
#: Parts of an application that nobody here reads and that cost the RM the most to write.
_UNUSED = "resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file that YARN copies into a container's folder: where it lies, its size in bytes and its time in ms."""

    resource: str
    size: int
    timestamp_ms: int
    type: str = "FILE"
    visibility: str = "APPLICATION"


@dataclass(frozen=True, slots=True)
class Submission:
    """An application as it is submitted. `command` is the ApplicationMaster's, run by a shell on some node.

    `environment` and `files` (name in the container's folder -> file) are the ApplicationMaster's too.
    """

    name: str
    queue: str
    command: str
    resource: Resource = _SMALL
    type: str = "YARN"
    tags: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, LocalFile] = field(default_factory=dict)
    max_attempts: int = 1
    unmanaged: bool = False

    def document(self, identity: str) -> dict[str, Any]:
        """The body of the REST call."""
        return {
            "application-id": identity,
            "application-name": self.name,
            "application-type": self.type,
            "application-tags": {"tag": list(self.tags)},
            "queue": self.queue,
            "am-container-spec": {
                "commands": {"command": self.command},
                "environment": {"entry": [{"key": key, "value": value} for key, value in self.environment.items()]},
                "local-resources": {
                    "entry": [
                        {
                            "key": name,
                            "value": {
                                "resource": file.resource,
                                "type": file.type,
                                "visibility": file.visibility,
                                "size": file.size,
                                "timestamp": file.timestamp_ms,
                            },
                        }
                        for name, file in self.files.items()
                    ]
                },
            },
            "unmanaged-AM": self.unmanaged,
            "max-app-attempts": self.max_attempts,
            "keep-containers-across-application-attempts": False,
            "resource": {"memory": self.resource.memory_mb, "vCores": self.resource.vcores},
        }


def _application_path(identity: str, end: str = "") -> str:
    if not answers.APPLICATION_ID.fullmatch(identity):
        raise CallError(f"{identity!r} is not an application's id", hint="it looks like application_1700000000000_0001")
    return f"{_ROOT}/apps/{identity}{end}"


class RestClient:
    """The REST API of one ResourceManager or of several that stand in for each other.

    ``RestClient(["http://rm1:8088", "http://rm2:8088"])``. All methods raise Unreachable or NoActiveRm when nothing
    (active) answers within `options`, Refused when the RM says no, BadAnswer when it answers nonsense.
    """

    def __init__(
        self,
        bases: Sequence[str],
        options: HttpOptions | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.http = HttpClient(bases, options, clock=clock, sleep=sleep)
        self._sleep = sleep
        #: Of the last answer about applications that ended of late: who looks every period is shown most of them again.
        self._ended: answers.Ended = {}

    def __enter__(self) -> RestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the connections back."""
        self.http.close()

    def _said(self, read: Callable[[Any, str], T], path: str, method: str = "GET", **how: Any) -> T:
        """An answer as ``read`` (of harness.yarn.answers) understands it; ``how``: as for `HttpClient.request`."""
        answer = self.http.request(method, path, repeatable=True, **how)
        return read(answer.document, answer.url)

    def info(self) -> ClusterInfo:
        """The active ResourceManager's ``/info`` (a standby answers it too: those are asked and passed over)."""
        last: ClusterInfo | Unreachable | None = None
        for base in [self.http.current, *(base for base in self.http.bases if base != self.http.current)]:
            try:
                last = self.info_of(base)
            except Unreachable as error:
                last = error
                continue
            if last.active:
                self.http.prefer(base)
                return last
        if isinstance(last, Unreachable):
            raise last
        state = f"{last.state}, {last.ha_state}" if last else "nothing answered"
        raise NoActiveRm(f"no active ResourceManager ({state})", where=self.http.current)

    def info_of(self, base: str) -> ClusterInfo:
        """``/info`` of one of several, active or not."""
        answer = self.http.request("GET", f"{_ROOT}/info", repeatable=True, only=base, most_bytes=_SMALL_ANSWER)
        return replace(answers.cluster_info(answer.document, answer.url), clock_s=date_of(answer.headers))

    def properties(self, *, defaults: bool = True) -> dict[str, str]:
        """``/conf``: the ResourceManager's own properties, Hadoop's defaults included or not.

        The addresses that it has bound count as set by program, not by a file. Refused where that page is not shown.
        """
        read = partial(answers.properties, defaults=defaults)
        return self._said(read, "/conf", params={"format": "json"})

    def metrics(self) -> ClusterMetrics:
        """``/metrics``."""
        return self._said(answers.cluster_metrics, f"{_ROOT}/metrics", most_bytes=_SMALL_ANSWER)

    def scheduler(self) -> SchedulerStatus:
        """``/scheduler``: the queue tree of a Fair or a Capacity Scheduler."""
        return self._said(queue_answers.scheduler, f"{_ROOT}/scheduler")

    def capacity_limits(self) -> dict[str, str]:
        """``/scheduler`` of a Capacity Scheduler: the limits of its queues, as settings without their prefix."""
        return self._said(queue_answers.capacity_limits, f"{_ROOT}/scheduler")

    def nodes(self, states: Iterable[str] = (), *, only: str | None = None) -> list[NodeStatus]:
        """``/nodes``: those in the given states (none given: all but the lost and decommissioned ones).

        ``only``: the address of the one ResourceManager that is asked (None: the one that answers).
        """
        params = {"states": ",".join(states)}
        return self._said(answers.nodes, f"{_ROOT}/nodes", params=params if params["states"] else None, only=only)

    def set_node_resource(self, identity: str, amount: Resource) -> None:
        """What a node offers from now on; with less than runs there, the rest stays until it ends by itself.

        Needs an administrator of the RM (``yarn.admin.acl``). Refused when the RM does not know the node.
        """
        body = {
            "resource": {"memory": amount.memory_mb, "vCores": amount.vcores},
            "overCommitTimeout": -1,
        }
        self.http.request("POST", f"{_ROOT}/nodes/{identity}/resource", body=body, repeatable=True)

    def apps(
        self,
        *,
        states: Iterable[str] = (),
        queue: str | None = None,
        tags: Iterable[str] = (),
        finished_from_ms: int | None = None,
        limit: int | None = None,
    ) -> AppList:
        """``/apps``: what the RM still retains, in order of submission. Without their resource requests (size)."""
        given: dict[str, object | None] = {
            "states": ",".join(states) or None,
            "queue": queue,
            "applicationTags": ",".join(tags) or None,
            "finishedTimeBegin": finished_from_ms,
            "limit": limit,
        }
        params = {name: str(value) for name, value in given.items() if value is not None}
        reader = partial(answers.read_apps, ended=self._ended if finished_from_ms is not None else None)
        params = {"deSelects": _UNUSED, **params}
        found = self.http.request("GET", f"{_ROOT}/apps", params=params, repeatable=True, reader=reader).document
        assert isinstance(found, AppList)
        return found

    def app(self, identity: str) -> AppStatus:
        """``/apps/{id}``. Refused with status 404 when the RM does not know it (any more)."""
        return self._said(
            answers.app, _application_path(identity), params={"deSelects": _UNUSED}, most_bytes=_SMALL_ANSWER
        )

    def app_state(self, identity: str) -> str:
        """``/apps/{id}/state``."""
        return self._said(answers.app_state, _application_path(identity, "/state"))

    def new_application(self) -> NewApplication:
        """A fresh id for a submission. Asking twice only wastes a number, so it is retried."""
        return self._said(answers.new_application, f"{_ROOT}/apps/new-application", "POST")

    def submit(self, submission: Submission, identity: str | None = None) -> str:
        """Submits an application and returns its id: a fresh one, or that of `new_application` that is given.

        A submission whose answer got lost is not sent again: the RM is asked whether it knows the id. Submitting says
        only that the RM took it; whether its queue accepts it shows in the application's state.
        """
        if identity is None:
            identity = self.new_application().id
        try:
            self.http.request("POST", f"{_ROOT}/apps", body=submission.document(identity), repeatable=False)
        except (Unreachable, BadAnswer) as lost:
            if not self._knows(identity):
                raise lost from None
        return identity

    def _knows(self, identity: str) -> bool:
        for _ in range(3):
            try:
                self.app(identity)
                return True
            except Refused as refused:
                if refused.status != 404:
                    raise
            # The RM answers 202 first and registers the application a moment later.
            self._sleep(0.2)
        return False

    def move(self, identity: str, queue: str) -> str:
        """Moves an application to another leaf queue; the queue in which the RM then shows it.

        Refused when the RM does not move it: no such queue, its limits, no permission, a finished application.
        """
        return self._said(answers.app_queue, _application_path(identity, "/queue"), "PUT", body={"queue": queue})

    def kill_tagged(self, tag: str) -> None:
        """Kills what carries the tag and has not ended; what cannot be killed is left to the ResourceManager."""
        with contextlib.suppress(YarnfairError):
            self.kill_all(self.apps(tags=[tag]))

    def kill_all(self, apps: Iterable[AppStatus], *, timeout_s: float = 15.0) -> int:
        """Kills those that have not ended; how many. What cannot be killed is left to the ResourceManager."""
        killed = 0
        for app in apps:
            if not app.final:
                with contextlib.suppress(YarnfairError):
                    self.kill(app.id, timeout_s=timeout_s)
                    killed += 1
        return killed

    def kill(self, identity: str, *, timeout_s: float = 30.0) -> str:
        """Kills an application and waits until it has ended (Unreachable after `timeout_s`); its final state."""
        for _ in range(max(1, int(timeout_s / 0.2))):
            path = _application_path(identity, "/state")
            state = self._said(answers.app_state, path, "PUT", body={"state": "KILLED"})
            if state in answers.FINAL_STATES:
                return state
            self._sleep(0.2)
        raise Unreachable(f"{identity} is still {state} {timeout_s:g} s after it was killed", where=self.http.current)
