"""Log lines (plain or JSON) and a page with Prometheus metrics about the controller."""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, start_http_server

from harness.base.errors import InputError, without_secrets
from harness.base.words import fitted
from harness.control.changes import Change, Entitled, changes, is_below, percent
from harness.control.events import Record
from harness.control.reports import TickReport
from harness.model.snapshot import Snapshot
from harness.policies.base import Policy

LogFormat = Literal["text", "json"]
#: A lasting alarm is repeated after this time, seconds.
REPEAT_S = 300.0
#: Kinds of alarms whose text names different objects each time. All alarms of such a kind count as the same alarm.
_OF_A_KIND = ("app", "unpaid")
#: Figures that vary in an alarm's text. Texts that differ only in such figures count as the same alarm.
_FIGURE = re.compile(r"\b\d[\d.,]*(?= (?:s\b|%|times\b))")
_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
#: Maximum number of queues in one log line's text. The JSON fields and the ledger contain all of them.
_MOST_NAMED = 40


class Log:
    """Write events as lines: ``2026-01-31T12:00:00.000Z warning foreign: ...``, or as one JSON object each.

    In a terminal, a line is wrapped at the terminal's width; elsewhere (journald, a file) an event is one line.
    """

    def __init__(self, stream: TextIO, log_format: LogFormat = "text") -> None:
        self._stream, self.in_json = stream, log_format == "json"

    def __call__(self, level: str, event: str, text: str, **fields: Any) -> None:
        """Write one event; secrets are masked."""
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self.in_json:
            line = json.dumps({"time": stamp, "level": level, "event": event, "text": text, **fields}, default=str)
        else:
            line = f"{stamp} {level} {event}: {' '.join(text.split())}"
        line = without_secrets(line)
        if not self.in_json:
            line = fitted(line, self._stream)
        # A closed pipe or a full disk under the log must not stop the controller.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()


class TickLog:
    """Log decisions, and alarms when they begin, continue and end."""

    def __init__(self, log: Log, policy: Policy, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self.policy, self._clock = log, policy, clock
        #: Kind of an alarm -> its text without figures (for `_OF_A_KIND`: the kind) -> time when it was logged last.
        self._alarms: dict[str, dict[str, float]] = {}
        self._weights: dict[str, float] = {}
        #: Time when "shares as before" was logged last.
        self._same_s = -math.inf

    def __call__(self, report: TickReport) -> None:
        """Log a tick's alarms, then its decision."""
        # Log the cause before the action.
        self._tell_alarms(report)
        record = report.record
        # Log only decisions that changed the file, or that a shadow would have written.
        if record is not None and (report.wrote or report.shadow):
            weights = record.attributes.weights
            moved = [queue for queue in record.changed if queue in weights]
            before = self._weights or report.before
            every = changes_of(record, report.snapshot, before, self.policy, creating=report.creating)
            moved = [queue for queue in moved if not is_below(queue, report.creating)]
            # Queues whose values were not written have not changed, even if the decision contains them.
            kept = set(weights).difference(report.written) if report.written else set()
            every = [change for change in every if change.queue not in kept]
            moved = [queue for queue in moved if queue not in kept]
            told = [change for change in every if change.moved or not self._weights]
            named = {change.queue for change in sorted(told, key=_moved, reverse=True)[:_MOST_NAMED]}
            shown = [change.line() for change in told if change.queue in named]
            others = [_moved(change) for change in told if change.queue not in named]
            more = f" and {len(others)} more by {percent(max(others))} at most" if others else ""
            nothing = "shares as before" if moved else "limits"
            effect = "" if report.effect_s is None else f", in force after {report.effect_s * 1000:.0f} ms"
            if moved and not shown:
                # The text would equal the previous one. The metrics and the JSON log still show every write.
                now, said_s = self._clock(), self._same_s
                if report.shadow or (now - said_s < REPEAT_S and not self._log.in_json):
                    return
                self._same_s = now
            else:
                # Keep the old weights until small steps add up to a visible change.
                self._weights = {
                    queue: before.get(queue, weight) if queue in kept else weight for queue, weight in weights.items()
                }
            # Programs select JSON lines by the event's name, which is the same for all schedulers.
            event = report.values_name if not self._log.in_json else "weights"
            self._log(
                "info",
                "shadow" if report.shadow else event,
                ("would write " if report.shadow else "") + f"{', '.join(shown) or nothing}{more}{effect}",
                weights={queue: weights[queue] for queue in moved},
                written={queue: report.written[queue] for queue in moved if queue in report.written},
                parts={change.queue: [change.before, change.after] for change in every if change.queue in moved},
                reasons={change.queue: change.why for change in every if change.why and change.queue in moved}
                | {
                    queue: why
                    for queue, why in record.reasons.items()
                    if queue in record.changed and queue not in weights
                },
                wrote=report.wrote,
                effect_s=report.effect_s,
                took_s=round(report.took_s, 4),
            )

    def _tell_alarms(self, report: TickReport) -> None:
        now, before = self._clock(), self._alarms
        self._alarms = {}
        for alarm in report.alarms:
            said = self._alarms.setdefault(alarm.kind, {})
            topic = alarm.kind if alarm.kind in _OF_A_KIND else _FIGURE.sub("", alarm.text)
            said_s = before.get(alarm.kind, {}).get(topic, said.get(topic))
            if said_s is None or now - said_s >= REPEAT_S:
                self._log("warning", alarm.kind, alarm.text)
                said_s = now
            said[topic] = said_s
        for kind in before:
            # Momentary events have no end to log.
            if kind not in self._alarms and kind not in ("rm", "foreign", "note"):
                ended = "no longer its affair: this controller does not write now"
                self._log("info", kind, ended if kind in report.dropped else "mended")


def _moved(change: Change) -> float:
    """Return by how much a decision changes a queue's fraction of its siblings' weights (0 before if unknown)."""
    return abs(change.after - (change.before or 0.0))


def changes_of(
    record: Record,
    snapshot: Snapshot | None,
    before: Mapping[str, float],
    policy: Policy,
    *,
    creating: frozenset[str] = frozenset(),
) -> list[Change]:
    """Return a decision as changes of shares with causes.

    ``before``: the previous weights. ``creating``: queues whose children the RM creates; nothing below them is written.
    """
    seen = () if snapshot is None else snapshot.queues.values()
    queues = {queue.name: Entitled.of(queue) for queue in seen}
    after = record.attributes.weights
    found = changes(before, after, record.counted, queues, record.reasons, policy, record.newcomers, record.held)
    return [change for change in found if not is_below(change.queue, creating)]


class Metrics:
    """The controller's Prometheus metrics, in their own registry. ``clock``: the time of day, s since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._server: Any = None
        #: (gauge, queue) -> labelled gauge. Cached because `labels` takes more time than the rest of the update.
        self._children: dict[tuple[str, str], Gauge] = {}
        self._shown: dict[tuple[str, str], float] = {}
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, buckets=_BUCKETS, registry=registry)
        self._ticks = counter("yarnfair_ticks", "Control periods, by what came of them.", ["outcome"])
        self._tick_s = histogram("yarnfair_tick_seconds", "One tick.")
        said = "From the decision until the ResourceManager showed it."
        self._effect_s = histogram("yarnfair_effect_seconds", said)
        self._writes = counter("yarnfair_writes", "Times that the allocation file was replaced.")
        self._alarms = counter("yarnfair_alarms", "Alarms, by kind.", ["kind"])
        self._released = gauge("yarnfair_released", "1 while a guard has released, else 0.")
        self._seen = gauge("yarnfair_last_look_timestamp_seconds", "The last look at the RM.")
        self._preempted = gauge(
            "yarnfair_preempted_mib_seconds", "Work that the scheduler's preemption killed within the last hour."
        )
        gauges = {
            "weight": "The weight that was written last.",
            "entitlement": "w_i of the queue.",
            "allocated_mib": "What the queue holds.",
            "demand_mib": "What it holds and waits for.",
            "counted": "Counted accumulated resources, in the policy's unit (leaves).",
            "consumed_mib_seconds": "Memory-seconds since the ledger began (leaves).",
        }
        self._gauges = {name: gauge(f"yarnfair_queue_{name}", text, ["queue"]) for name, text in gauges.items()}

    def serve(self, address: str, port: int) -> int:
        """Serve the page and return its port (0: any free one). Raises InputError."""
        try:
            self._server, _ = start_http_server(port, address, self.registry)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"no metrics: {reason}", where=f"{address}:{port}", hint="give another port") from None
        return int(self._server.server_port)

    def close(self) -> None:
        """Stop serving the page."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __call__(self, report: TickReport) -> None:
        """Update the metrics from a tick's report."""
        done = "shadow" if report.shadow else "written"
        self._ticks.labels("alarm" if report.alarms else done if report.record else "unchanged").inc()
        self._tick_s.observe(report.took_s)
        self._released.set(1 if report.released else 0)
        if report.effect_s is not None:
            self._effect_s.observe(report.effect_s)
        if report.wrote:
            self._writes.inc()
        for alarm in report.alarms:
            self._alarms.labels(alarm.kind).inc()
        if report.preempted_mb_s is not None:
            self._preempted.set(report.preempted_mb_s)
        snapshot = report.snapshot
        if snapshot is None:
            return
        # Use the time of day, because alerts compare with it. The report's time never goes back, and does not pass
        # while the machine sleeps.
        self._seen.set(self._clock())
        for key in [key for key in self._children if key[1] not in snapshot.queues]:
            del self._children[key], self._shown[key]
            # The gauge may not have shown this queue yet.
            with contextlib.suppress(KeyError):
                self._gauges[key[0]].remove(key[1])
        for name, queue in snapshot.queues.items():
            self._show("entitlement", name, queue.weight)
            self._show("allocated_mib", name, queue.allocated.memory_mb)
            self._show("demand_mib", name, queue.demand.memory_mb)
            if name in report.counted:
                self._show("counted", name, report.counted[name])
            if name in report.consumed:
                self._show("consumed_mib_seconds", name, report.consumed[name][0])
        if report.record is not None and not report.shadow:
            for name, weight in report.record.attributes.weights.items():
                self._show("weight", name, weight)

    def _show(self, gauge: str, queue: str, value: float) -> None:
        key = gauge, queue
        if self._shown.get(key) == value:
            return  # unchanged, as most figures are between two polls
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._gauges[gauge].labels(queue)
        child.set(value)
        self._shown[key] = value
