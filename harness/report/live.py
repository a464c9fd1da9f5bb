"""The live page: share and entitlement over time, debts, decisions, alarms. Built from `View`s, on its own thread."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import harness
from harness.base.errors import CallError, YarnfairError
from harness.control.changes import Entitled, debt_words, debts, percent
from harness.control.changes import parts as parts_of
from harness.control.explain import explain, killed, moment, old, row_document
from harness.control.view import View, alarms, head
from harness.report.serving import PageServer, address_of
from harness.report.templating import page_templates

#: Number of polls that are kept, and of time points that are sent.
MOST_LOOKS = 1440
#: Number of queues whose curves are kept: those that hold or owe the most come first on the page.
MOST_QUEUES = 400
#: Number of queues that a decision's line names.
MOST_NAMED = 8


def page() -> str:
    """Return the document."""
    return page_templates().get_template("live.html.j2").render(version=harness.__version__)


def decision_line(view: View, decision: Mapping[str, Any]) -> dict[str, str]:
    """Describe a decision: time, changes of shares, and the reason: the policy's own, or from its accounts."""
    found = parts_of(decision["weights"])
    changed = [queue for queue in decision.get("changed", ()) if queue in found]
    shares = [f"{queue.removeprefix('root.')} {percent(found[queue])}" for queue in changed]
    said = dict(decision.get("reasons") or _owed(view, decision, changed))
    for queue, text in (decision.get("held") or {}).items():
        said[queue] = f"{said[queue]}; {text}" if queue in said else text
    why = [f"{queue.removeprefix('root.')} {text}" for queue, text in said.items()]
    return {"when": moment(view, decision["time_s"]), "what": _some(shares, ", "), "why": _some(why, "; ")}


def _owed(view: View, decision: Mapping[str, Any], queues: Iterable[str]) -> dict[str, str]:
    """Return what these queues were owed at a decision, if the policy uses debts."""
    counted = decision.get("counted") or {}
    if not view.gives_back:
        return {}
    entitled = {path: Entitled(row.entitlement, row.leaf) for path, row in view.queues.items()}
    owed = debts(counted, entitled, flat=view.flat, newcomers=decision.get("newcomers") or ())
    whole = math.fsum(counted.values())
    said = {queue: debt_words(owed.get(queue, 0.0), whole, view.unit, owed.values()) for queue in queues}
    return {queue: text for queue, text in said.items() if text}


def _some(texts: list[str], between: str) -> str:
    """Return the first of them, and the number of others."""
    more = len(texts) - MOST_NAMED
    return between.join([*texts[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])


class LivePage:
    """Polls periodically, keeps the results, and answers the page's requests.

    Parameters
    ----------
    look : returns the present `View`; its errors (YarnfairError) are shown on the page.
    every_s : poll interval, seconds.
    """

    def __init__(self, look: Callable[[], View], every_s: float) -> None:
        self._look, self.every_s = look, every_s
        self._lock = threading.Lock()
        self._view: View | None = None
        self._problem = ""
        self._looks: deque[tuple[float, dict[str, tuple[float, float | None]]]] = deque(maxlen=MOST_LOOKS)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._server: PageServer | None = None

    def serve(self, address: str) -> str:
        """Serve the page at ``HOST:PORT`` and poll until `close`; return its URL."""
        self._server = PageServer(*address_of(address), page(), {"/view.json": self.document})
        self._thread = threading.Thread(target=self._run, name="looks", daemon=True)
        self._thread.start()
        return self._server.url

    def close(self) -> None:
        """Stop polling and serving."""
        if self._server is not None:
            self._server.close()
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    def _run(self) -> None:
        while True:
            begun = time.monotonic()
            self.look()
            if self._stop.wait(max(begun + self.every_s - time.monotonic(), 0.05)):
                return

    def look(self) -> None:
        """Poll once now."""
        try:
            view = self._look()
        except YarnfairError as error:
            with self._lock:
                self._problem = error.line()
            return
        capacity = max(view.capacity_mb, 1)
        seen = {
            path: (round(row.allocated_mb / capacity, 5), row.deficit)
            for path, row in list(view.queues.items())[:MOST_QUEUES]
            if row.parent is not None
        }
        with self._lock:
            self._view, self._problem = view, ""
            if not self._looks or view.time_s > self._looks[-1][0]:
                self._looks.append((view.time_s, seen))

    def document(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the page's data; with ``queue``, also `explain`'s text about it.

        Raises CallError for an unknown queue.
        """
        with self._lock:
            view, problem, looks = self._view, self._problem, list(self._looks)
        if view is None:
            return {"problem": problem or "looking for the first time", "ready": False}
        queue = query.get("queue")
        if queue is not None and queue not in view.queues:
            raise CallError(f"no queue {queue[:60]!r}", where=view.source, hint="choose one that is there")
        names = [path for path, row in view.queues.items() if row.parent is not None][:MOST_QUEUES]
        return {
            "ready": True,
            "problem": problem,
            "clock": moment(view, view.time_s),
            **head(view),
            "capacity_mb": view.capacity_mb,
            "wall_clock": view.wall_clock,
            "accounts_age_s": view.accounts_age_s,
            "old": old(view),
            "killed": killed(view),
            "queues": {path: row_document(view, row) for path, row in view.queues.items()},
            "decisions": [decision_line(view, decision) for decision in reversed(view.decisions[-12:])],
            "alarms": alarms(view),
            "history": {
                "time_s": [at for at, _ in looks],
                "share": {name: [seen[name][0] if name in seen else None for _, seen in looks] for name in names},
                "deficit": {name: [seen[name][1] if name in seen else None for _, seen in looks] for name in names},
            },
            "explain": None if queue is None else {"queue": queue, "words": explain(view, queue)},
        }
