"""The REST server: paths and methods of a ResourceManager, its status codes and its RemoteExceptions.

The server writes only JSON; a real RM writes XML for a client that prefers it. The parameter ``user.name`` names the
user, as on a cluster without Kerberos.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from harness.base.errors import InputError
from harness.base.port import Port
from harness.model.queues import ensure_root_prefix
from harness.model.resources import Resource
from harness.sim.serve.documents import STATES, Documents
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.simulation import Application
from harness.sim.serve.submission import job_of
from harness.sim.serve.values import FINAL_STATUS, resource, timeouts, without_empty_maps
from harness.sim.served import Answer
from harness.yarn.capacity.properties import ASYNCHRONOUS
from harness.yarn.releases import JERSEY_2_SINCE

_ROOT = "/ws/v1/cluster"
_BAD = "org.apache.hadoop.yarn.webapp.BadRequestException"
_MISSING = "org.apache.hadoop.yarn.webapp.NotFoundException"
_PLAIN = "java.lang.Exception"
_ARGUMENT = "java.lang.IllegalArgumentException"
_WEB = "javax.ws.rs.WebApplicationException"
_UNDECLARED = "java.lang.reflect.UndeclaredThrowableException"
_APPLICATION = re.compile(r"application_(\d{1,19})_(\d{1,10})")
_NODE_STATES = ("NEW", "RUNNING", "UNHEALTHY", "DECOMMISSIONED", "LOST", "REBOOTED", "DECOMMISSIONING", "SHUTDOWN")
#: The largest body of a request; a submission is a few kilobytes.
_MOST_BYTES = 4 << 20


#: The RM's message about a body that its parser cannot read, before the parser's own text.
_UNREADABLE = "javax.xml.bind.UnmarshalException\n - with linked exception:\n[javax.xml.stream.XMLStreamException: "


class Refusal(Exception):
    """An error response.

    Parameters
    ----------
    status, java_class
        The HTTP status and the Java class of the exception.
    message
        The message (None: the RM sends none).
    cause
        The class whose name precedes the message before Hadoop 3.5.
    since_jersey_2
        Whether the message only exists since Hadoop 3.5.
    """

    def __init__(
        self,
        status: int,
        java_class: str,
        message: str | None = None,
        *,
        cause: str | None = None,
        since_jersey_2: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.java_class, self.message = status, java_class, message
        self._cause, self._since_jersey_2 = cause, since_jersey_2

    def document(self, hadoop: tuple[int, int]) -> dict[str, Any]:
        """Return the document as the RM of a release writes it."""
        message = self.message
        if hadoop < JERSEY_2_SINCE:
            if self._since_jersey_2:
                message = None
            elif self._cause is not None:
                message = f"{self._cause}: {message}"
        text = {} if message is None else {"message": message}
        short = self.java_class.rpartition(".")[2]
        return {"RemoteException": {"exception": short, **text, "javaClassName": self.java_class}}


def _bad(message: str) -> Refusal:
    return Refusal(400, _BAD, message, cause=_PLAIN)


def _undeclared(message: str | None = None) -> Refusal:
    """Return the response to an exception of the scheduler, whose message it includes since Hadoop 3.5."""
    return Refusal(503, _UNDECLARED, message, since_jersey_2=True)


class Face:
    """Handles the requests of all connections; the cluster's lock makes it thread-safe."""

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        self.documents = Documents(cluster)
        #: Addresses of the RPC ports, as properties of yarn-site.xml, set by the code that opens them.
        self.addresses: dict[str, str] = {}

    def answer(
        self, method: str, path: str, query: Mapping[str, list[str]], body: bytes
    ) -> tuple[int, Any, str | None]:
        """Return the response to a request: status, body (a document, a text or None) and Location header.

        Raises Refusal or Answer for an error response.
        """
        if path == "/conf" and method == "GET":
            return 200, self._conf(query), None
        parts = [part for part in path.split("/") if part]
        if parts[:3] != ["ws", "v1", "cluster"]:
            if not parts and method == "GET":
                return 302, None, f"{self.documents.base}/cluster"
            return 404, None, None
        rest = parts[3:]
        if method == "GET":
            found = self._get(rest, query)
            return (404, None, None) if found is None else (200, self._written(found), None)
        if method == "POST" and rest == ["apps", "new-application"]:
            return 200, self._written(self._new_application()), None
        if method == "POST" and rest == ["apps"]:
            return self._submit(self._json(body), _user(query))
        if method == "PUT" and rest == ["scheduler-conf"]:
            with self.cluster.now() as sim:
                return 200, sim.served.change(self._json(body, strict=True)), None
        if method == "PUT" and len(rest) == 3 and rest[0] == "apps":
            return (*self._change(rest[1], rest[2], self._json(body), _user(query)), None)
        if self._jersey_2:
            raise Refusal(503, "javax.ws.rs.NotAllowedException", "HTTP 405 Method Not Allowed")
        raise Refusal(503, _WEB)

    @property
    def _jersey_2(self) -> bool:
        """Return whether answers are those of Hadoop 3.5 and later."""
        return self.cluster.release.hadoop >= JERSEY_2_SINCE

    def _written(self, document: Any) -> Any:
        """Return a document as the release writes it."""
        return without_empty_maps(document) if self._jersey_2 else document

    def _json(self, body: bytes, *, strict: bool = False) -> Any:
        """Return the JSON document of a request's body.

        Since Hadoop 3.5, a body that is no JSON object is refused. Earlier releases treat it as empty in requests about
        applications; in requests about the configuration (``strict``), they refuse a body that is no JSON.
        """
        try:
            found = json.loads(body) if body.strip() else {}
        except (ValueError, RecursionError) as error:
            if strict and not self._jersey_2:
                raise Refusal(400, _WEB, f"{_UNREADABLE}{error}]") from None
            found = None
        if self._jersey_2 and not isinstance(found, dict):
            raise Refusal(400, _WEB)
        return {} if found is None else found

    # --- reading ---

    def _get(self, rest: list[str], query: Mapping[str, list[str]]) -> Any:
        write = self.documents
        if rest in ([], ["info"]):
            return write.info()
        if rest == ["metrics"]:
            return write.metrics()
        if rest == ["scheduler"]:
            return write.scheduler()
        if rest == ["scheduler-conf"]:
            return self.cluster.sim.served.stored()
        if rest == ["scheduler-conf", "version"]:
            return self._version()
        if rest == ["nodes"]:
            return write.nodes(_states(query, _NODE_STATES, _no_node_state))
        if len(rest) == 2 and rest[0] == "nodes":
            node = write.node(rest[1])
            if node is None:
                raise Refusal(404, _MISSING, f"nodeId, {rest[1]}, is not found", cause=_PLAIN)
            return node
        if rest == ["appstatistics"]:
            return write.statistics(_states(query, STATES, _no_app_state), _listed(query, "applicationTypes"))
        if rest == ["apps"]:
            return self._apps(query)
        if len(rest) >= 2 and rest[0] == "apps":
            return self._of_app(self._application(rest[1]), rest[2:], query)
        return None

    def _of_app(self, app: Application, rest: list[str], query: Mapping[str, list[str]]) -> Any:
        write = self.documents
        if not rest:
            return write.app(app, requests="resourceRequests" not in _listed(query, "deSelects"))
        plain: dict[str, Callable[[], Any]] = {
            "state": lambda: {"state": write.state(app)},
            "queue": lambda: {"queue": app.queue},
            "priority": lambda: {"priority": 0},
            "timeouts": timeouts,
            "appattempts": lambda: write.attempts(app),
        }
        if len(rest) == 1 and rest[0] in plain:
            return plain[rest[0]]()
        if rest == ["timeouts", "LIFETIME"]:
            return {"timeout": timeouts()["timeouts"]["timeout"][0]}
        return None

    def _apps(self, query: Mapping[str, list[str]]) -> Any:
        states = set(_states(query, STATES, _no_app_state, also="state"))
        final = set(_listed(query, "finalStatus"))
        users, kinds = set(_listed(query, "user")), {kind.lower() for kind in _listed(query, "applicationTypes")}
        tags = {tag.lower() for tag in _listed(query, "applicationTags")}
        queues = {ensure_root_prefix(queue) for queue in _listed(query, "queue")}
        names = set(_listed(query, "name"))
        limit = _whole(query, "limit", "limit value must be a number!")
        if limit is not None and limit <= 0:
            raise _bad("limit value must be greater then 0")
        spans = []
        for at, what in (("submitted_ms", "started"), ("finished_ms", "finished")):
            low = _whole(query, f"{what}TimeBegin", f"{what}TimeBegin must be a number!")
            high = _whole(query, f"{what}TimeEnd", f"{what}TimeEnd must be a number!")
            if low is not None or high is not None:
                spans.append((at, low or 0, high if high is not None else 1 << 62))
        epoch = self.cluster.epoch

        def keep(app: Application, state: str) -> bool:
            return (
                (not states or state in states)
                and (not final or FINAL_STATUS.get(state, "UNDEFINED") in final)
                and (not users or app.user in users)
                and (not kinds or app.type.lower() in kinds)
                and (not tags or not tags.isdisjoint(app.tags))
                and (not queues or app.queue in queues)
                and (not names or app.name in names)
                and all(low <= (epoch(t) if (t := getattr(app, at)) >= 0 else 0) <= high for at, low, high in spans)
            )

        requests = "resourceRequests" not in _listed(query, "deSelects")
        return self.documents.apps(keep, limit=limit, requests=requests)

    def _conf(self, query: Mapping[str, list[str]]) -> Any:
        name = (query.get("name") or [""])[0]
        room = self.cluster.sim.served
        known = {
            "yarn.resourcemanager.scheduler.class": room.java_class,
            **({ASYNCHRONOUS: "false"} if self._says_synchronous() else {}),
            **room.properties(self.cluster.file),
            **self.addresses,
            **dict(self.cluster.setup.conf),
        }
        if name and name not in known:
            raise Answer(404, f"Property {name} not found")
        rows = [
            {"key": key, "value": known[key], "isFinal": False, "resource": "yarn-site.xml"}
            for key in ([name] if name else sorted(known))
        ]
        return {"property": rows[0]} if name else {"properties": rows}

    def _says_synchronous(self) -> bool:
        """Return whether ``/conf`` must state that scheduling is synchronous, because the release's default is not."""
        return self.cluster.release.asynchronous and self.cluster.sim.served.may_be_asynchronous

    def _version(self) -> Any:
        found = self.cluster.sim.served.version()
        if self.cluster.release.hadoop < JERSEY_2_SINCE:
            return found
        return {"configversion": {"versionID": int(found["versionID"])}}

    def _application(self, text: str) -> Application:
        if not text.startswith("application"):
            raise Refusal(
                400,
                _BAD,
                f"Invalid ApplicationId prefix: {text}. The valid ApplicationId should start with prefix application",
                cause=_ARGUMENT,
            )
        found = _APPLICATION.fullmatch(text)
        if found is None:
            raise Refusal(400, _BAD, f"Invalid ApplicationId: {text}", cause=_ARGUMENT)
        app = self.cluster.application(int(found[2])) if int(found[1]) == self.cluster.id else None
        if app is None:
            self.cluster.catch_up()
            app = self.cluster.application(int(found[2])) if int(found[1]) == self.cluster.id else None
        if app is None:
            raise Refusal(404, _MISSING, f"app with id: {text} not found", cause=_PLAIN)
        return app

    # --- changing ---

    def _new_application(self) -> Any:
        number = self.cluster.new_number()
        most = self._largest()
        return {
            "application-id": f"application_{self.cluster.id}_{number:04d}",
            "maximum-resource-capability": resource(most.memory_mb, most.vcores),
        }

    def _largest(self) -> Resource:
        g = self.cluster.sim.scheduler.S.g[0]
        return Resource(int(g["conf_max_mb"]), int(g["conf_max_vcores"]))

    def _submit(self, body: Any, user: str) -> tuple[int, Any, str | None]:
        given = body if isinstance(body, dict) else {}
        text = str(given.get("application-id", ""))
        found = _APPLICATION.fullmatch(text)
        if found is None:
            raise _bad(f"Could not parse application id {text}")
        location = f"{self.documents.base}{_ROOT}/apps/{text}"
        if int(found[1]) != self.cluster.id:
            raise _bad(f"application {text} is of another ResourceManager")
        number = int(found[2])
        g = self.cluster.sim.scheduler.S.g[0]
        try:
            smallest = Resource(int(g["min_mb"]), int(g["min_vcores"]))
            job, complete = job_of(given, identity=text, user=user, smallest=smallest)
            most = self._largest()
            if job.am.memory_mb > most.memory_mb:
                raise _bad("Requested more memory than configured max")
            if job.am.vcores > most.vcores:
                raise _bad("Requested more cores than configured max")
            with self.cluster.lock:
                # Submitting a known application again does nothing, as in Hadoop.
                if self.cluster.application(number) is None:
                    self.cluster.submit(number, job, complete)
        except InputError as error:
            raise _bad(error.line()) from None
        return 202, None, location

    def _change(self, identity: str, what: str, body: Any, user: str) -> tuple[int, Any]:
        app = self._application(identity)
        given = body if isinstance(body, dict) else {}
        if what == "state":
            if "state" not in given:
                raise Refusal(503, "java.lang.NullPointerException", "the target state is null")
            if given["state"] != "KILLED":
                raise _bad("Only 'KILLED' is allowed as a target state.")
            if app.state:
                return 200, {"state": app.state}
            self.cluster.kill(app, user)
            return 202, {"state": self.documents.state(app)}
        if what == "queue":
            target = given.get("queue")
            if not isinstance(target, str) or app.state or not self.cluster.move(app, target):
                raise _undeclared(self._no_target(target))
            return 200, {"queue": app.queue}
        if what in ("priority", "timeout"):
            raise _undeclared(self.cluster.sim.served.no_priority if what == "priority" else None)
        raise Refusal(503, _WEB)

    def _no_target(self, target: object) -> str | None:
        """Return the scheduler's message about a queue that takes no applications; None for other reasons."""
        if not self.cluster.sim.served.explains_moves or not isinstance(target, str) or self.cluster.is_leaf(target):
            return None
        return f"Target queue {target} not found or is not a leaf queue."


def _user(query: Mapping[str, list[str]]) -> str:
    # dr.who is the user that a Hadoop web server assumes if a request names none.
    return (query.get("user.name") or [""])[0][:256] or "dr.who"


def _listed(query: Mapping[str, list[str]], name: str) -> list[str]:
    return [part.strip() for text in query.get(name, []) for part in text.split(",") if part.strip()]


def _states(
    query: Mapping[str, list[str]], known: tuple[str, ...], wrong: Callable[[str], Refusal], also: str = "states"
) -> list[str]:
    found = []
    for text in _listed(query, "states") + (_listed(query, also) if also != "states" else []):
        if text.upper() not in known:
            raise wrong(text)
        found.append(text.upper())
    return found


def _no_app_state(text: str) -> Refusal:
    known = ", ".join(STATES)
    return _bad(f"Invalid application-state {text.lower()} specified. It should be one of [{known}]")


def _no_node_state(text: str) -> Refusal:
    message = f"No enum constant org.apache.hadoop.yarn.api.records.NodeState.{text.upper()}"
    return Refusal(400, _ARGUMENT, message)


def _whole(query: Mapping[str, list[str]], name: str, wrong: str) -> int | None:
    text = (query.get(name) or [""])[0]
    if not text:
        return None
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise _bad(wrong)
    return int(text)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "Jetty(simulated)"
    sys_version = ""
    timeout = 120
    # Disable Nagle's algorithm, because small segments would wait for the client's acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    face: Face

    def do_GET(self) -> None:
        self._serve("GET")

    def do_PUT(self) -> None:
        self._serve("PUT")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def log_message(self, format: str, *args: Any) -> None:
        """No-op: a controller sends a request every second."""

    def _serve(self, method: str) -> None:
        address = urlsplit(self.path)
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        if not 0 <= length <= _MOST_BYTES:
            self.close_connection = True
            self._send(413, None, None)
            return
        body = self.rfile.read(length)
        query = parse_qs(address.query, keep_blank_values=True)
        try:
            status, document, location = self.face.answer(method, address.path, query, body)
        except Refusal as refusal:
            status, document, location = refusal.status, refusal.document(self.face.cluster.release.hadoop), None
        except Answer as text:
            status, document, location = text.status, text.text, None
        self._send(status, document, location)

    def _send(self, status: int, document: Any, location: str | None) -> None:
        kind = "application/json;charset=utf-8"
        if isinstance(document, str):
            data = document.encode()
        elif document is not None:
            data = json.dumps(document, separators=(",", ":")).encode()
        elif status == 404:
            kind, data = "text/html;charset=utf-8", b"<!DOCTYPE html><html><title>Error 404</title>Not Found</html>\n"
        else:
            data = b""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-cache")
        if location is not None:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class RestServer(Port):
    """The REST server of a simulated ResourceManager. ``port`` 0 means a free port."""

    def __init__(self, cluster: LiveCluster, host: str = "127.0.0.1", port: int = 0) -> None:
        self.face = Face(cluster)
        super().__init__(host, port, type("Handler", (_Handler,), {"face": self.face}), "rest")
        self.face.documents.base = self.url
