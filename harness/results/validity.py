"""What makes a run valid: one rule for every backend and experiment type.

`run` applies the rule when a run has ended and stores its verdict as ``exit`` and ``why`` in ``run.json``. `compare`,
`baseline`, `check`, `report` and `campaign` apply it again to what they read, because a run directory may have been
damaged, edited or written by another version since. The page docs/reference/valid-runs.md lists the rule for users.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.base.words import counted, percent_text

__all__ = ["FEWEST_PERIODS", "MOST_OUT_OF_ACTION", "Invalid", "control_invalidity", "invalidity"]

#: The fraction of a run during which an external policy may be unable to act.
MOST_OUT_OF_ACTION = 0.2
#: An outage of fewer control periods never makes a run invalid, because a short run has few ticks.
FEWEST_PERIODS = 3.0


@dataclass(frozen=True, slots=True)
class Invalid:
    """Why the results of a run do not count, and the exit code: 5 for a time limit, otherwise 4."""

    exit_code: int
    reason: str


def invalidity(info: Mapping[str, object], summary: Mapping[str, object], *, damage: str = "") -> Invalid | None:
    """Decide whether the figures of a run count.

    Parameters
    ----------
    info
        The content of ``run.json``.
    summary
        The content of ``summary.json``; empty if there is none.
    damage
        Which file of the run directory is damaged or missing, and how; "" if none is.

    Returns
    -------
    Invalid | None
        The first reason that applies, or None for a valid run.
    """
    code, why = info.get("exit"), str(info.get("why") or "")
    if code is None:
        return Invalid(4, "the run did not come to its end")
    if code == 5:
        return Invalid(5, why or "the run timed out")
    if code != 0:
        return Invalid(4, why or f"the run ended with exit code {code}")
    if damage:
        return Invalid(4, damage)
    if not summary:
        return Invalid(4, "summary.json is missing")
    if reason := _jobs(info, summary):
        return Invalid(4, reason)
    return control_invalidity(info.get("control"))


def control_invalidity(control: object) -> Invalid | None:
    """Decide whether a policy that acts from outside can have had its effect.

    Parameters
    ----------
    control
        What `harness.control.health.ControlHealth` has stored in ``run.json``; None where no policy acted from outside.
    """
    reason = _control(control)
    return Invalid(4, reason) if reason else None


def _jobs(info: Mapping[str, object], summary: Mapping[str, object]) -> str:
    """Return what is wrong with the jobs of a run, or ""."""
    queues = summary.get("queues", {})
    if not isinstance(queues, Mapping):
        return "summary.json is damaged: queues is not an object"
    failed = 0
    for queue, own in queues.items():
        count = own.get("failed") if isinstance(own, Mapping) else None
        if count is None:
            continue
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            name, text = str(queue)[:80], str(count)[:40]
            return f"summary.json is damaged: queue {name!r}: failed is {text!r}, not a number of jobs"
        failed += count
    if failed:
        return f"{failed} job(s) failed"
    if summary.get("finished") is False and _limits(info).get("duration_s") is None:
        return "the run ended early: jobs neither ended nor failed"
    return ""


def _limits(info: Mapping[str, object]) -> Mapping[str, Any]:
    """Return the limits of the experiment, which cut a run at its ``duration_s`` on purpose."""
    experiment = info.get("experiment")
    limits = experiment.get("limits") if isinstance(experiment, Mapping) else None
    return limits if isinstance(limits, Mapping) else {}


def _control(control: object) -> str:
    """Return why the policy from outside cannot have had its effect, or ""."""
    if control is None:
        return ""
    if not isinstance(control, Mapping):
        return "run.json is damaged: control is not an object"
    if died := control.get("died"):
        return f"the controller died: {died}"
    decisions, effective, ticks = (_number(control, key) for key in ("decisions", "effective", "ticks"))
    out_s, lasted_s, period_s = (_number(control, key) for key in ("out_of_action_s", "lasted_s", "period_s"))
    if any(math.isnan(value) for value in (decisions, effective, ticks, out_s, lasted_s, period_s)):
        return "run.json is damaged: control lacks figures"
    last = f" (the last alarm: {control['last_alarm']})" if control.get("last_alarm") else ""
    if not decisions:
        return f"the policy never acted: no write took effect in {counted(int(ticks), 'tick')} of the controller{last}"
    if not effective:
        return f"the policy never acted: none of {counted(int(decisions), 'write')} came in force{last}"
    if out_s > max(MOST_OUT_OF_ACTION * lasted_s, FEWEST_PERIODS * period_s):
        return (
            f"the policy could not act for {out_s:.0f} s of {lasted_s:.0f} s, "
            f"more than {percent_text(MOST_OUT_OF_ACTION, 0, signed=False)} of the run{last}"
        )
    return ""


def _number(control: Mapping[str, object], key: str) -> float:
    value = control.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
