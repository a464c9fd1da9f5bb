"""Compare the clocks of this machine, the ResourceManager and the ledger before accounting begins. No I/O.

Debts decay with time, so a start with a clock that is a month ahead would forget all of them. Three clocks are
compared: this machine's, the ResourceManager's (the ``Date`` header of its answers), and the ledger's, which holds the
time of the last poll by the controller's and by the ResourceManager's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.base.errors import InputError
from harness.base.words import seconds

#: A larger difference means that a clock is wrong. Kerberos has the same tolerance by default.
CLOCK_TOLERANCE_S = 300.0
#: A longer time since the last poll is reported, because a controller and an RM on one machine share a wrong clock.
LONG_ABSENCE_S = 7 * 86_400.0

#: The clock that the administrator declared to be right ('': none declared).
TrustedClock = Literal["", "host", "rm"]


class ClocksDiffer(InputError):
    """The clocks of this machine and the ResourceManager differ, and nobody has said which one is right."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks at one moment, seconds since 1970.

    ``kept_s``, ``kept_rm_s``: the controller's and the ResourceManager's clock at the ledger's last poll (None: not
    known).
    """

    host_s: float
    rm_s: float | None
    kept_s: float | None
    kept_rm_s: float | None


@dataclass(frozen=True, slots=True)
class Reading:
    """The present time, the correction of the ledger's times, and a note for the administrator ('': none)."""

    now_s: float
    shift_s: float = 0.0
    note: str = ""


def read_clocks(clocks: Clocks, trusted: TrustedClock = "") -> Reading:
    """Determine the present time, and the time that has passed since the ledger's last poll.

    If the ResourceManager's clock and this machine's disagree about how long ago the last poll was, the ledger's times
    are moved so that the shorter time has passed. A ledger whose time is in the future, because an earlier run had a
    wrong clock, is moved back to the present.

    Raises
    ------
    ClocksDiffer
        This machine's clock and the ResourceManager's differ by more than `CLOCK_TOLERANCE_S`, and ``trusted`` does not
        say which one is right.
    """
    host_s, rm_s = clocks.host_s, clocks.rm_s
    if not trusted and rm_s is not None and abs(host_s - rm_s) > CLOCK_TOLERANCE_S:
        side = "ahead of" if host_s > rm_s else "behind"
        raise ClocksDiffer(
            f"this machine's clock is {seconds(abs(host_s - rm_s))} {side} the ResourceManager's: nothing is counted "
            "and nothing is written, because debts would fade by time that has not passed",
            hint="set the clocks (NTP), or start once with --trust-clock host or --trust-clock rm",
        )
    now_s = rm_s if trusted == "rm" and rm_s is not None else host_s
    if clocks.kept_s is None:
        return Reading(now_s)
    by_host_s = now_s - clocks.kept_s
    by_rm_s = None if rm_s is None or clocks.kept_rm_s is None else rm_s - clocks.kept_rm_s
    if by_host_s < 0:
        passed_s = max(by_rm_s or 0.0, 0.0)
        shift_s = now_s - passed_s - clocks.kept_s
        if -by_host_s <= CLOCK_TOLERANCE_S:
            return Reading(now_s, shift_s)
        text = f"the ledger's clock was {seconds(-by_host_s)} ahead, from a run with a wrong clock"
        return Reading(now_s, shift_s, f"{text}: its times are moved back, {_passed(passed_s)} since its last look")
    if not trusted and by_rm_s is not None and -CLOCK_TOLERANCE_S <= by_rm_s < by_host_s - CLOCK_TOLERANCE_S:
        passed_s = max(by_rm_s, 0.0)
        text = f"by the ledger {seconds(by_host_s)} passed since its last look, by the ResourceManager's clock"
        return Reading(now_s, now_s - passed_s - clocks.kept_s, f"{text} {seconds(passed_s)}: no more than that counts")
    if by_host_s > LONG_ABSENCE_S:
        text = f"the ledger's last look was {seconds(by_host_s)} ago, and what was owed has faded accordingly"
        return Reading(now_s, note=f"{text}: if the clocks are wrong, stop this, set them and restore the ledger")
    return Reading(now_s)


def _passed(passed_s: float) -> str:
    return f"{seconds(passed_s)} have passed" if passed_s > 0 else "and no time counts as passed"
