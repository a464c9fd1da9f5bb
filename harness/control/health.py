"""Record whether a controller was able to enforce its policy during a run; stored as ``control`` in ``run.json``.

`harness.results.validity` defines which of these figures make a run invalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.control.reports import TickReport

__all__ = ["ControlHealth", "health_of_decisions"]

#: Kinds of alarms that do not prevent a policy from acting. Any other alarm counts as blocking if the tick carried out
#: no decision.
HARMLESS = frozenset({"foreign", "note", "app", "rm", "ad-hoc", "ledger", "guard", "backup", "unpaid"})
RELEASED = "released"
#: A controller counts as out of action if two ticks are further apart than both `SILENCE_S` and `SILENT_PERIODS`
#: periods.
SILENCE_S, SILENT_PERIODS = 30.0, 10.0


@dataclass(slots=True)
class ControlHealth:
    """Counts in how many ticks the controller of one run could act. All times are seconds of the run."""

    period_s: float
    ticks: int = 0
    #: Decisions that were carried out.
    decisions: int = 0
    #: Decisions that were carried out and after which no read-back showed other weights until the next decision.
    effective: int = 0
    #: Ticks by the kind of alarm that kept the policy from acting.
    blocked: dict[str, int] = field(default_factory=dict)
    out_of_action_s: float = 0.0
    last_alarm: str = ""
    #: The error that ended the controller; "" while it runs.
    died: str = ""
    lasted_s: float = 0.0
    _open: bool = False
    _ticked_s: float = 0.0

    def tick(self, report: TickReport, now_s: float) -> None:
        """Count one tick that ended at `now_s`."""
        alarms = [(alarm.kind, alarm.text) for alarm in report.alarms]
        if report.released:
            alarms.append((RELEASED, report.released))
        self.count(now_s, carried_out=report.record is not None, alarms=alarms)

    def count(
        self,
        now_s: float,
        *,
        carried_out: bool,
        alarms: Iterable[tuple[str, str]] = (),
        passed_s: float | None = None,
    ) -> None:
        """Count one tick by its alarms (kind, text) and by whether a decision was carried out.

        ``passed_s`` is the time since the previous tick (None: since the previous call).
        """
        self.ticks += 1
        passed_s = now_s - self._ticked_s if passed_s is None else passed_s
        self._ticked_s = now_s
        if carried_out:
            self.effective += self._open
            self.decisions, self._open = self.decisions + 1, True
        blocking = None
        for kind, text in alarms:
            if kind == "not-in-force":
                self._open = False
            if kind in HARMLESS or (carried_out and kind != "not-in-force"):
                continue
            self.last_alarm = f"{kind}: {text}"[:500]
            if not carried_out:
                blocking = kind
        if blocking is not None:
            self.blocked[blocking] = self.blocked.get(blocking, 0) + 1
        if blocking is not None or passed_s > self._longest_silence_s:
            self.out_of_action_s += max(passed_s, 0.0)

    @property
    def _longest_silence_s(self) -> float:
        return max(SILENCE_S, SILENT_PERIODS * self.period_s)

    def end(self, now_s: float) -> None:
        """Complete the figures when the run has ended."""
        self.lasted_s = now_s
        self.effective += self._open
        self._open = False
        if now_s - self._ticked_s > self._longest_silence_s:
            self.out_of_action_s += now_s - self._ticked_s

    def document(self) -> dict[str, Any]:
        """Return the content of ``control`` in ``run.json``."""
        return {
            "ticks": self.ticks,
            "decisions": self.decisions,
            "effective": self.effective,
            "blocked": dict(sorted(self.blocked.items())),
            "period_s": self.period_s,
            "out_of_action_s": round(min(self.out_of_action_s, self.lasted_s), 3),
            "lasted_s": round(self.lasted_s, 3),
            "died": self.died or None,
            "last_alarm": self.last_alarm or None,
        }


def health_of_decisions(
    decisions: Iterable[Mapping[str, Any]], *, period_s: float, lasted_s: float
) -> ControlHealth | None:
    """Return the health of a simulated controller; None if the run's decisions contain no entry of a controller.

    A simulated controller makes every tick, and only decisions and alarms are recorded.
    """
    health, found = ControlHealth(period_s), False
    for entry in decisions:
        alarm, carried_out = entry.get("alarm"), "weights" in entry
        if alarm is None and not carried_out:
            continue
        found = True
        alarms = [] if alarm is None else [(str(alarm), str(entry.get("text", "")))]
        # Two entries may lie far apart, because a tick that changes nothing is not recorded.
        health.count(float(entry["time_s"]), carried_out=carried_out, alarms=alarms, passed_s=period_s)
    if not found:
        return None
    health.count(lasted_s, carried_out=False, passed_s=0.0)
    health.end(lasted_s)
    health.ticks = int(lasted_s // period_s) + 1
    return health
