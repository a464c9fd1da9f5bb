"""The network below the real HTTP client and the RPC's messages: who is asked, what comes back, and how it goes wrong.

An answer is made as bytes, and bytes are what is read. A fault of the answers holds for so many ticks of a controller.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import requests

from harness.yarn import rpc
from harness.yarn.errors import NoActiveRm, Unreachable
from tests.control.soak.clock import EPOCH_S
from tests.control.soak.rm import Rm, shown_figures

#: Answers that can be read and are wrong. A figure that is wrong for longer than a while is the truth to whoever looks.
LIES = ("stale", "fallen", "jumps", "negative", "missing", "nonsense", "no-apps", "impossible-queue")
LIE_S = 10.0
#: One that may go on for longer: the figure of an application that has ended is never believed when it falls.
LASTING = ("final-fallen",)
#: An answer has no circles: looking for them costs a fifth of the time.
_encoded = json.JSONEncoder(check_circular=False).encode
_TAKEN = b"Configuration change successfully applied."


@dataclass
class AnswerFault:
    """What is wrong with some answers: of which page, in which way, for how many more ticks."""

    kind: str
    page: str
    ticks: int
    rng: random.Random
    hit: int = 0
    #: True time of its first answer.
    since_s: float = 0.0


@dataclass
class Reply:
    """What a session gives: as much of `requests.Response` as the client looks at."""

    status_code: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str = "OK"
    broken: bool = False

    @property
    def raw(self) -> Reply:
        return self

    def read1(self, _size: int, *, decode_content: bool) -> bytes:
        if self.broken and not self.body:
            raise ConnectionResetError(104, "Connection reset by peer")
        data, self.body = self.body, b""
        return data

    def close(self) -> None:
        pass


@dataclass
class Met:
    """What one controller's tick has met so far."""

    #: Wrong answers; lists of applications, and how many of them were emptied or no lists.
    lies: int = 0
    lists: int = 0
    emptied: int = 0
    listless: int = 0
    #: Whether the queues that it was shown have applications.
    showed: bool = False
    #: Whether anybody was asked anything.
    asked: bool = False
    #: Pages that went wrong, and the RMs that showed queues and applications in the tick's look at the RM. Before that
    #: look a store may be read, whose RM is recognised by such pages, and after it, what was written is read back.
    troubled: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    looking: bool = False


class Wire:
    """The way to both RMs. ``wait`` lets time pass, in which others may be at work."""

    def __init__(
        self, rms: list[Rm], wait: Callable[[float], None], rng: random.Random, asker: Callable[[], str]
    ) -> None:
        self.rms, self.wait, self.rng, self.asker = rms, wait, rng, asker
        self.faults: list[AnswerFault] = []
        self.slow_s = 0.0
        #: Another cluster's ResourceManager, which answers instead.
        self.alien: Rm | None = None
        #: What was last served of each page, for stale answers.
        self._served: dict[str, list[bytes]] = {}
        #: Asker -> application -> its figure as an undisturbed list told it last; the same of the last list of all.
        self.shown: dict[str, dict[str, tuple[int, int]]] = {}
        self.last_list: dict[str, Mapping[str, tuple[int, int]]] = {}
        #: Asker -> applications that a wrong list has hidden before any other showed them.
        self.hidden: dict[str, set[str]] = {}
        #: Asker -> application -> the figures that it was shown before, since its ledger was last kept.
        self.unkept: dict[str, dict[str, list[tuple[int, int] | None]]] = {}
        #: Controllers whose own network is down.
        self.cut_off: set[str] = set()
        #: After so many more pages this happens.
        self._later: tuple[int, Callable[[], object]] | None = None
        self._met: dict[str, Met] = {}

    def begin_tick(self, name: str) -> None:
        """A controller's tick begins."""
        self._met[name] = Met()

    def met(self, name: str) -> Met:
        return self._met.setdefault(name, Met())

    @contextlib.contextmanager
    def looking(self, name: str) -> Iterator[None]:
        """A controller's look at the RM goes on."""
        met = self.met(name)
        met.looking = True
        try:
            yield
        finally:
            met.looking = False

    def after_pages(self, count: int, do: Callable[[], object]) -> None:
        """In the midst of a look: after so many answers."""
        self._later = (count, do)

    def _answered(self) -> None:
        if self._later is not None:
            count, do = self._later
            self._later = (count - 1, do) if count > 1 else None
            if count <= 1:
                do()

    def ticked(self) -> None:
        """A controller's tick is over."""
        for fault in self.faults:
            fault.ticks -= 1
        self.faults = [fault for fault in self.faults if fault.ticks > 0]

    def open_session(self, _options: Any) -> Session:
        return Session(self)

    def _rm(self, host: str | None) -> Rm:
        found = next(rm for rm in self.rms if rm.host == host)
        return self.alien if self.alien is not None and found.up else found

    def _reach(self, rm: Rm, timeout_s: float) -> str:
        """Time passes; how the way ends: "" at an RM that answers."""
        self.met(self.asker()).asked = True
        if self.asker() in self.cut_off:
            return "refused"
        self.wait(self.rng.uniform(0.001, 0.01) + self.slow_s * self.rng.random())
        if not rm.up:
            return "refused"
        if rm.frozen:
            self.wait(timeout_s)
            return "timeout"
        return ""

    def ask(self, method: str, url: str, params: Mapping[str, str], body: bytes | None, timeout_s: float) -> Reply:
        parts = urlsplit(url)
        rm = self._rm(parts.hostname)
        page = parts.path.rpartition("/")[2]
        ended, met = self._reach(rm, timeout_s), self.met(self.asker())
        if ended:
            met.troubled.add(page)
        if ended == "refused":
            raise requests.ConnectionError("[Errno 111] Connection refused")
        if ended:
            raise requests.ReadTimeout(f"Read timed out. (read timeout={timeout_s})")
        if not rm.active and page not in ("info", "jmx"):
            other = next((one for one in self.rms if one.active and one.up), None)
            headers = {"Location": f"{other.base}{parts.path}"} if other else {"Refresh": "3"}
            return Reply(307, b"standby", headers, "Temporary Redirect")
        if method == "PUT":
            return self._put(rm, json.loads(body or b"null"), timeout_s)
        fault = next((one for one in self.faults if one.page in (page, "any")), None)
        document, figures = self._page(rm, page, params)
        met.lists += page == "apps"
        now_s = rm.cluster.agenda.now_s
        if fault is not None and fault.hit and fault.kind in LIES and now_s - fault.since_s > LIE_S:
            self.faults.remove(fault)
            fault = None
        if fault is not None:
            fault.since_s = fault.since_s if fault.hit else now_s
            fault.hit += 1
            met.emptied += page == "apps" and fault.kind in ("no-apps", "empty-object")
            met.listless += page == "apps" and fault.kind == "empty-object"
            met.lies += 1
            met.troubled.add(page)
            reply = self._wrong(fault, rm, page, document, params, timeout_s)
            if page == "apps" and fault.kind in (*LIES, *LASTING):
                self._told_in_spite(reply.body, figures)
            return reply
        data = _encoded(document).encode()
        if met.looking and page in ("apps", "scheduler"):
            met.sources.add(rm.base)
        met.showed |= page == "scheduler" and bool(rm.cluster.apps)
        if page == "apps":
            self._told(figures)
            if not params.get("states"):
                self.last_list[self.asker()] = figures
        key = self._whose(rm) + page + params.get("states", "") + params.get("name", "")
        kept = self._served.setdefault(key, [])
        kept.append(data)
        del kept[:-3]
        self._answered()
        date = formatdate(EPOCH_S + rm.cluster.agenda.now_s, usegmt=True)
        return Reply(200, data, {"Content-Type": "application/json", "Date": date})

    def _told(self, figures: Mapping[str, tuple[int, int]]) -> None:
        """The controller that asks is shown these figures; what it was shown before is kept until its ledger is."""
        shown, unkept = self.shown.setdefault(self.asker(), {}), self.unkept.setdefault(self.asker(), {})
        for app, figure in figures.items():
            if shown.get(app) != figure:
                unkept.setdefault(app, []).append(shown.get(app))
                shown[app] = figure

    def _told_in_spite(self, body: bytes, figures: Mapping[str, tuple[int, int]]) -> None:
        """Of a list that is wrong, what it shows as it is. An application that ended long ago is in few lists: what
        the controller takes of it here it may not see again for long. Of an old list, whom no other one showed."""
        shown, told = self.shown.setdefault(self.asker(), {}), {}
        listed = _apps_in(json.loads(body))
        self.hidden.setdefault(self.asker(), set()).update(figures.keys() - shown.keys())
        for said in listed:
            name, figure = said.get("id"), (said.get("memorySeconds"), said.get("vcoreSeconds"))
            sound = isinstance(said.get("queue"), str) and said.get("state") and name in self.rms[0].cluster.by_id
            if (
                sound
                and name in figures
                and said["queue"] == self._queue_of(name)
                and (figure == figures[name] or name not in shown)
            ):
                told[name] = figure
        self._told({name: figure for name, figure in told.items() if all(isinstance(part, int) for part in figure)})

    def _whose(self, rm: Rm) -> str:
        """Old answers are of the cluster that is asked; of a pair either may have given them."""
        return "alien " if rm is self.alien else ""

    def _has_seen_end(self, said: Mapping[str, Any]) -> bool:
        """Whether an application has ended, and the controller that asks was shown its figure since."""
        figure = said["memorySeconds"], said["vcoreSeconds"]
        return said["state"] != "RUNNING" and self.shown.get(self.asker(), {}).get(said["id"]) == figure

    def _queue_of(self, app: str) -> str:
        return self.rms[0].cluster.by_id[app].queue

    def kept(self, name: str) -> None:
        """A controller has kept its accounts."""
        self.unkept.pop(name, None)

    def forgotten(self, name: str, knows: Callable[[str], tuple[int, int] | None]) -> list[str]:
        """A controller that was killed goes on from what its ledger ``knows``: of which applications that is a figure
        of before, though it had been shown a later one."""
        shown, lost = self.shown.get(name, {}), []
        for app, earlier in self.unkept.pop(name, {}).items():
            figure = knows(app)
            if figure != shown.get(app) and figure in earlier:
                lost.append(app)
                if figure is None:
                    del shown[app]
                else:
                    shown[app] = figure
        return lost

    def gone_back(
        self, name: str, knows: Callable[[str], tuple[int, int] | None], before: frozenset[str]
    ) -> dict[str, tuple[int, int]]:
        """A controller goes on from an older copy of its ledger, as if it had been shown no more than that ``knows``.

        Returns of which applications it had been shown more, with the copy's figures. The accounts of those that the
        RM had forgotten ``before`` the copy was made are whole in it.
        """
        shown, less = self.shown.setdefault(name, {}), {}
        for app in shown.keys() - before:
            figure = knows(app)
            if figure == shown[app]:
                continue
            less[app] = figure or (0, 0)
            if figure is None:
                del shown[app]
            else:
                shown[app] = figure
        self.unkept.pop(name, None)
        return less

    def _page(self, rm: Rm, page: str, params: Mapping[str, str]) -> tuple[Any, Mapping[str, tuple[int, int]]]:
        match page:
            case "info":
                return rm.info(), {}
            case "scheduler":
                return rm.scheduler(), {}
            case "jmx":
                return rm.jmx(), {}
            case "nodes":
                return rm.nodes(), {}
            case "conf" if "name" in params:
                return rm.property(params["name"]), {}
            case "apps":
                begin = params.get("finishedTimeBegin")
                states = [state for state in params.get("states", "").split(",") if state]
                found = rm.apps(states, int(begin) if begin else None)
                listed = [said for _, said in found]
                return {"apps": {"app": listed} if listed else None}, shown_figures(found)
        return rm.shows(page), {}

    def _put(self, rm: Rm, body: Any, timeout_s: float) -> Reply:
        """The call that changes the RM's store: as a refresh it is lost, or its answer is."""
        fault = next((one for one in self.faults if one.page in ("refreshQueues", "any")), None)
        met = self.met(self.asker())
        if fault is not None:
            fault.hit += 1
            met.lies += 1
            met.troubled.add("scheduler-conf")
        if fault is not None and fault.kind in ("lost", "error", "html"):
            if fault.kind != "lost":
                return Reply(503, b"<html>oops</html>", {}, "No")
            raise requests.ReadTimeout("Read timed out.")
        taken = rm.changed(body)
        if rm.late_refresh_s:
            self.wait(min(rm.late_refresh_s, timeout_s))
        if (fault is not None and fault.kind in ("lost-after", "hangs", "cut")) or rm.late_refresh_s > timeout_s:
            raise requests.ReadTimeout("Read timed out.")
        if fault is not None:
            return Reply(200, b"")
        self._answered()
        return Reply(200, _TAKEN) if taken else Reply(400, b"Failed to re-init queues")

    def _wrong(
        self, fault: AnswerFault, rm: Rm, page: str, document: Any, params: Mapping[str, str], timeout_s: float
    ) -> Reply:
        data = json.dumps(document).encode()
        match fault.kind:
            case "stale":
                kept = self._served.get(self._whose(rm) + page + params.get("states", "") + params.get("name", ""))
                return Reply(200, kept[0] if kept else data)
            case "cut":
                return Reply(200, data[: fault.rng.randrange(len(data))], broken=fault.rng.random() < 0.5)
            case "empty-object":
                return Reply(200, b"{}")
            case "empty-body":
                return Reply(200, b"")
            case "null":
                return Reply(200, b"null")
            case "html":
                return Reply(200, b"<html><body>Sign in</body></html>")
            case "error":
                return Reply(fault.rng.choice((500, 502, 503, 404, 403)), b"<html>oops</html>", {}, "No")
            case "hangs":
                self.wait(timeout_s)
                raise requests.ReadTimeout(f"Read timed out. (read timeout={timeout_s})")
            case "no-apps":
                return Reply(200, b'{"apps":null}')
            case "deep":
                return Reply(200, b'{"apps":' * 3000)
        old_ms = 20_000.0 * self.rms[0].cluster.period_s
        for said in _apps_in(document):
            if fault.kind == "final-fallen" and not self._has_seen_end(said):
                continue
            if fault.kind in ("fallen", "jumps", "negative") and said["elapsedTime"] < old_ms:
                continue  # nobody can tell that a first figure is wrong
            match fault.kind:
                case "fallen" | "final-fallen":
                    said["memorySeconds"], said["vcoreSeconds"] = said["memorySeconds"] // 2, said["vcoreSeconds"] // 2
                case "jumps":
                    said["memorySeconds"] += 10**13
                    said["vcoreSeconds"] += 10**9
                case "nonsense":
                    said[fault.rng.choice(("queue", "memorySeconds", "state"))] = fault.rng.choice(([], None, -1.5))
                case "impossible-queue":
                    said["queue"] = fault.rng.choice((" ", "root..q0", "root.q0. "))
                case "negative":
                    said["memorySeconds"] = -said["memorySeconds"] - 1
        if fault.kind == "missing" and isinstance(document.get("apps"), dict):
            document["apps"]["app"] = [said for said in document["apps"]["app"] if fault.rng.random() < 0.5]
        if fault.kind == "impossible-queue" and page == "scheduler":
            root = document["scheduler"]["schedulerInfo"]
            below, name = (
                root.get("queues") or root["rootQueue"]["childQueues"],
                "queuePath" if "queues" in root else "",
            )
            below["queue"][0][name or "queueName"] = fault.rng.choice(("root. ", "root..q0", "root.q0. "))
        return Reply(200, json.dumps(document).encode())

    def rpc_call(
        self,
        address: rpc.RpcAddress,
        _protocol: str,
        method: str,
        _request: bytes = b"",
        *,
        user: str,
        timeout_s: float = 10.0,
        login: None = None,
    ) -> bytes:
        """Stands for `harness.yarn.rpc.call`."""
        rm = self._rm(address.host)
        where = f"{address} {method}"
        if ended := self._reach(rm, timeout_s):
            raise Unreachable("no answer" if ended == "refused" else f"no answer within {timeout_s:g} s", where=where)
        if not rm.active:
            raise NoActiveRm("StandbyException: standby", where=where)
        fault = next((one for one in self.faults if one.page == method), None)
        if fault is not None:
            fault.hit += 1
            if fault.kind == "lost-after":
                rm.refresh()
            raise Unreachable("the connection was closed before the answer was complete", where=where)
        if method == "refreshQueues":
            rm.refresh()
            return b""
        return rpc.field(1, self._queue_info(rm, "root"))

    def _queue_info(self, rm: Rm, path: str) -> bytes:
        tree = rm._tree()
        inside = b"".join(rpc.field(6, self._queue_info(rm, p)) for p, q in tree.items() if q.parent == path)
        weight = bytes([14 << 3 | 5]) + struct.pack("<f", tree[path].weight)
        return rpc.field(1, path) + inside + weight


def _apps_in(document: Any) -> list[dict[str, Any]]:
    apps = document.get("apps") if isinstance(document, dict) else None
    return list(apps["app"]) if isinstance(apps, dict) else []


class Session:
    """Stands for `harness.yarn.session.Session`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.headers: dict[str, str] = {}
        self._watch = SimpleNamespace(late=False, sent=False)

    @contextlib.contextmanager
    def within(self, _limit_s: float) -> Iterator[Any]:
        self._watch = SimpleNamespace(late=False, sent=False)
        yield self._watch

    def request(
        self, method: str, url: str, *, params: Mapping[str, str], data: bytes | None, timeout: Any, **_more: Any
    ) -> Reply:
        try:
            return self._wire.ask(method, url, params, data, timeout[1])
        except requests.ReadTimeout:
            self._watch.sent = True
            raise

    def close(self) -> None:
        pass
