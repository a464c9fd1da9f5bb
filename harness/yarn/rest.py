"""A ResourceManager's REST API (``/ws/v1/cluster``), typed and limited to the endpoints that the project uses.

harness.yarn.answers validates the answers, harness.yarn.http sends the requests. REST cannot change weights;
harness.yarn.adminrpc makes the RM reload its allocation file.
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
from harness.yarn.queue_limits import SchedulerLimits, scheduler_limits

T = TypeVar("T")
_ROOT = "/ws/v1/cluster"
_SMALL = Resource(256, 1)
#: Maximum size of an answer about a single object, bytes.
_SMALL_ANSWER = 4 << 20
#: Unused fields of an application that are expensive for the RM to write.
_UNUSED = "resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file that YARN copies into a container's directory: location, size in bytes, and modification time in ms."""

    resource: str
    size: int
    timestamp_ms: int
    type: str = "FILE"
    visibility: str = "APPLICATION"


@dataclass(frozen=True, slots=True)
class Submission:
    """An application to submit.

    `command` starts the ApplicationMaster in a shell on some node. `environment` and `files` (name in the container's
    directory -> file) also belong to the ApplicationMaster.
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
        """Return the body of the REST call."""
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
    """The REST API of one ResourceManager, or of the ResourceManagers of a high-availability group.

    ``RestClient(["http://rm1:8088", "http://rm2:8088"])``. All methods raise Unreachable or NoActiveRm if no (active)
    RM answers within `options`, Refused if the RM answers with an error, BadAnswer for an invalid answer.
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
        #: Recently ended applications of the last answer, most of which are in the next answer, too.
        self._ended: answers.Ended = {}

    def __enter__(self) -> RestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def _said(self, read: Callable[[object, str], T], path: str, method: str = "GET", **how: Any) -> T:
        """Request and parse an answer with ``read`` (of harness.yarn.answers); ``how``: see `HttpClient.request`."""
        answer = self.http.request(method, path, repeatable=True, **how)
        return read(answer.document, answer.url)

    def info(self) -> ClusterInfo:
        """Read the active ResourceManager's ``/info``; a standby also answers this request and is skipped."""
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
        """Read ``/info`` of one particular RM, active or not."""
        answer = self.http.request("GET", f"{_ROOT}/info", repeatable=True, only=base, most_bytes=_SMALL_ANSWER)
        return replace(answers.cluster_info(answer.document, answer.url), clock_s=date_of(answer.headers))

    def properties(self, *, defaults: bool = True) -> dict[str, str]:
        """Read ``/conf``: the ResourceManager's own properties, with or without Hadoop's defaults.

        Without ``defaults``, addresses that the RM has set itself when binding them are left out, too. Raises Refused
        if the page is not shown.
        """
        read = partial(answers.properties, defaults=defaults)
        return self._said(read, "/conf", params={"format": "json"})

    def metrics(self) -> ClusterMetrics:
        """Read ``/metrics``."""
        return self._said(answers.cluster_metrics, f"{_ROOT}/metrics", most_bytes=_SMALL_ANSWER)

    def scheduler(self) -> SchedulerStatus:
        """Read ``/scheduler``: the queue tree of a Fair or a Capacity Scheduler."""
        return self._said(queue_answers.scheduler, f"{_ROOT}/scheduler")

    def scheduler_with_limits(self) -> tuple[SchedulerStatus, SchedulerLimits]:
        """Read ``/scheduler``: the queue tree, and the limits of its queues."""
        return self._said(
            lambda document, url: (queue_answers.scheduler(document, url), scheduler_limits(document, url)),
            f"{_ROOT}/scheduler",
        )

    def capacity_limits(self) -> dict[str, str]:
        """Read ``/scheduler`` of a Capacity Scheduler: the limits of its queues, as settings without their prefix."""
        return self._said(queue_answers.capacity_limits, f"{_ROOT}/scheduler")

    def nodes(self, states: Iterable[str] = (), *, only: str | None = None) -> list[NodeStatus]:
        """Read ``/nodes``: nodes in the given states; without states, all except lost and decommissioned nodes.

        ``only``: the address of a particular ResourceManager (None: the one that answers).
        """
        params = {"states": ",".join(states)}
        return self._said(answers.nodes, f"{_ROOT}/nodes", params=params if params["states"] else None, only=only)

    def set_node_resource(self, identity: str, amount: Resource) -> None:
        """Change the resources that a node offers.

        If the amount is less than the running containers use, these continue until they end. Requires administrator
        permission (``yarn.admin.acl``). Raises Refused if the RM does not know the node.
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
        """Read ``/apps``: the retained applications in order of submission, without their long lists of requests."""
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
        """Read ``/apps/{id}``. Raises Refused with status 404 if the RM does not know or retain the application."""
        return self._said(
            answers.app, _application_path(identity), params={"deSelects": _UNUSED}, most_bytes=_SMALL_ANSWER
        )

    def outstanding_sizes(self, queue: str) -> tuple[Resource, ...]:
        """Read the sizes of the containers that a queue's live applications have requested, each once, smallest first.

        Raises BadAnswer if the answer is long, which it is for thousands of requests that name nodes.
        """
        params = {"queue": queue, "states": "ACCEPTED,RUNNING", "deSelects": _UNUSED.removeprefix("resourceRequests,")}
        return self._said(answers.outstanding_sizes, f"{_ROOT}/apps", params=params, most_bytes=_SMALL_ANSWER)

    def app_state(self, identity: str) -> str:
        """Read ``/apps/{id}/state``."""
        return self._said(answers.app_state, _application_path(identity, "/state"))

    def new_application(self) -> NewApplication:
        """Request an ID for a submission. A repeated request only wastes an ID, so it is retried."""
        return self._said(answers.new_application, f"{_ROOT}/apps/new-application", "POST")

    def submit(self, submission: Submission, identity: str | None = None) -> str:
        """Submit an application and return its ID: a new one, or the given one from `new_application`.

        A submission whose answer was lost is not sent again; instead, the RM is queried whether it knows the ID.
        Success means only that the RM accepted the submission. The application's state shows whether the queue accepts
        it.
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
            # The RM answers 202 before the application is registered.
            self._sleep(0.2)
        return False

    def move(self, identity: str, queue: str) -> str:
        """Move an application to another leaf queue; return the queue that the RM then shows.

        Raises Refused if the RM does not move it, because there is no such queue, the queue is at a limit, the user
        lacks permission, or the application has ended.
        """
        return self._said(answers.app_queue, _application_path(identity, "/queue"), "PUT", body={"queue": queue})

    def kill_tagged(self, tag: str) -> None:
        """Kill unfinished applications with the tag. Applications that cannot be killed are skipped."""
        with contextlib.suppress(YarnfairError):
            self.kill_all(self.apps(tags=[tag]))

    def kill_all(self, apps: Iterable[AppStatus], *, timeout_s: float = 15.0) -> int:
        """Kill unfinished applications; return their number. Applications that cannot be killed are skipped."""
        killed = 0
        for app in apps:
            if not app.final:
                with contextlib.suppress(YarnfairError):
                    self.kill(app.id, timeout_s=timeout_s)
                    killed += 1
        return killed

    def kill(self, identity: str, *, timeout_s: float = 30.0) -> str:
        """Kill an application and wait for its end (Unreachable after `timeout_s`); return its final state."""
        for _ in range(max(1, int(timeout_s / 0.2))):
            path = _application_path(identity, "/state")
            state = self._said(answers.app_state, path, "PUT", body={"state": "KILLED"})
            if state in answers.FINAL_STATES:
                return state
            self._sleep(0.2)
        raise Unreachable(f"{identity} is still {state} {timeout_s:g} s after it was killed", where=self.http.current)


def shown_site(rest: RestClient) -> dict[str, str] | None:
    """Return the ResourceManager's own properties (``/conf``); None if it refuses to show them.

    With None, features may be switched on that are not visible here. Raises Unreachable.
    """
    try:
        return rest.properties()
    except (Refused, BadAnswer):
        return None
