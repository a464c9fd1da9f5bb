"""The effect of a change of configuration on one queue, as values with bands, and the rules of a gate.

Pure. Every quantity has one value per phase of heartbeats. The k-th phase is the same before and after the change, so
differences are computed phase by phase.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.base.errors import CallError, InputError
from harness.predict.verdict import LEAST_KNOWN, MOST_ERROR, NOTICEABLE, Band

Word = Literal["sooner", "later", "same", "unsure", "less", "more", "refused", "never", "taken", "ended"]
Judged = Literal["fine", "failed", "unsure", "not judged"]

#: A smaller difference in seconds counts as none: heartbeats alone are a second apart.
LEAST_S = 1.0
#: The simulator's clock counts milliseconds, so a smaller time counts as 0, and is no base of a relative change.
_NOTHING_S = 1e-3
#: Quantities in seconds -> names in texts.
TIMES = {"wait": "first container", "completion": "completion", "below_due": "below its due"}
#: Quantities that count applications -> names in texts.
COUNTS = {"refused": "refused", "never_started": "never started", "not_ended": "not ended"}


@dataclass(frozen=True, slots=True)
class Change:
    """One quantity of one queue before and after, phase by phase. Empty: not known on that side.

    ``recorded``: its value in the recording, of the same applications; None if the recording does not say it.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    recorded: float | None = None

    @property
    def known(self) -> bool:
        """Return whether both sides have it."""
        return bool(self.before) and bool(self.after)

    def expected(self) -> Band:
        """Return the mean after the change, and between which values a real run is to be expected.

        The phases differ by heartbeats alone. By what the replay before the change is off the recording, it may be off
        after the change, too: by as many seconds, or by as large a part if that is one to rely on (`MOST_ERROR`). The
        band is wider by that, in the direction of the error.
        """
        band = Band.of(self.after)
        if self.recorded is None or not self.before:
            return band
        mean = Band.of(self.before).mean
        off_s = self.recorded - mean
        part = off_s / mean if mean >= _NOTHING_S and abs(off_s) <= MOST_ERROR * mean else 0.0
        low, high = (min(off_s, part * band.low, 0.0), max(off_s, part * band.high, 0.0))
        return Band(band.mean, max(band.low + low, 0.0), band.high + high)

    def difference(self) -> list[float]:
        """Return after minus before, phase by phase."""
        return [mine - its for mine, its in zip(self.after, self.before, strict=True)]

    def parts(self) -> list[float]:
        """Return the differences relative to before, phase by phase.

        Differences that are all below `LEAST_S` count as none. A change from 0 is infinite.
        """
        differences = self.difference()
        if all(abs(one) < LEAST_S for one in differences):
            return [0.0] * len(differences)
        mean = math.fsum(self.before) / len(self.before)
        if mean < _NOTHING_S:
            return [math.inf if one > 0 else 0.0 for one in differences]
        # Relative to the mean, if the value of a phase is 0.
        bases = self.before if min(self.before) >= _NOTHING_S else (mean,) * len(differences)
        return [one / base for one, base in zip(differences, bases, strict=True)]

    def relative(self) -> Band:
        """Return the relative change of the mean, and its smallest and largest value over the phases."""
        parts = self.parts()
        if not any(parts) or not all(map(math.isfinite, parts)):
            return Band.of(parts)
        return Band(math.fsum(self.difference()) / math.fsum(self.before), min(parts), max(parts))

    def word(self, floor: float = NOTICEABLE, *, up: Word = "later", down: Word = "sooner") -> Word:
        """Classify the change in one word; "unsure" if the phases disagree.

        Parameters
        ----------
        floor : float
            A smaller relative change counts as none.
        up, down : str
            The words for a larger and a smaller value.
        """
        if not self.known:
            return "unsure"
        change = self.relative()
        if max(abs(change.low), abs(change.high)) < floor:
            return "same"
        if change.low > 0 and change.mean >= floor:
            return up
        if change.high < 0 and -change.mean >= floor:
            return down
        return "unsure"

    def count_word(self) -> Word:
        """Classify a number of applications: more, less, same, or unsure if the phases disagree."""
        found = self.difference()
        if not any(found):
            return "same"
        return "more" if all(one > 0 for one in found) else "less" if all(one < 0 for one in found) else "unsure"

    def document(self, word: Word) -> dict[str, Any]:
        """Return the document for ``--json``."""
        found: dict[str, Any] = {
            "before": Band.of(self.before).document() if self.before else None,
            "after": self.expected().document() if self.after else None,
        }
        if self.recorded is not None:
            found["recorded"] = self.recorded
        if self.known:
            found |= Band.of(self.difference()).document("difference", "difference_band")
            relative = self.relative()
            if _finite(relative):
                found |= relative.document("change", "change_band")
        return {**found, "word": word}


@dataclass(frozen=True, slots=True)
class QueueChange:
    """A queue before and after.

    where : which of the two files has it.
    applications : number of the trace's applications that run in it before the change; for a new queue, after the
        change.
    times, counts : figure -> change (`TIMES`, `COUNTS`).
    moved : another queue -> how many of its applications run there after the change.
    reasons : why applications are refused after the change -> how many are.
    gone : "wait", "completion" -> how many applications have this time before the change but not after, phase by phase.
    """

    queue: str
    where: Literal["both", "before", "after", "neither"]
    applications: int
    times: Mapping[str, Change]
    counts: Mapping[str, Change]
    moved: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    gone: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def lost(self) -> float:
        """Return how many more applications are refused, or never start or end, than before; mean over the phases."""
        return math.fsum(
            math.fsum(change.difference()) / len(change.before) for change in self.counts.values() if change.known
        )

    def word(self, floor: float) -> Word:
        """Classify the change of a queue in one word.

        If no application is lost or gained, it is the word of the completion time, or of the wait if completion is the
        same, or of the time below the queue's due if neither time is known.
        """
        words = {name: change.count_word() for name, change in self.counts.items() if change.known}
        if words.get("refused") == "more":
            return "refused"
        if "more" in words.values():
            return "never"
        if "unsure" in words.values() or any(map(any, self.gone.values())):
            return "unsure"
        if "less" in words.values():
            return "taken" if words.get("refused") == "less" else "ended"
        known = [self.times[name].word(floor) for name in ("completion", "wait") if self.times[name].known]
        if known:
            return next((word for word in known if word != "same"), "same")
        return self.time_word("below_due", floor) if self.times["below_due"].known else "same"

    def time_word(self, name: str, floor: float) -> Word:
        """Classify the change of one of the queue's times (a key of `TIMES`)."""
        if name == "below_due":
            return self.times[name].word(floor, up="more", down="less")
        return self.times[name].word(floor)

    def size(self, floor: float) -> tuple[float, ...]:
        """Return the sort key that puts the most changed queue first.

        Its elements are the lost applications and the changes of completion, wait and time below the queue's due.
        """
        below = self.times["below_due"]
        short = abs(math.fsum(below.difference()) / len(below.before)) if below.known else 0.0
        return (
            abs(self.lost()) / max(self.applications, 1),
            *(self._size(n, floor) for n in ("completion", "wait")),
            short,
        )

    def _size(self, name: str, floor: float) -> float:
        """Return the absolute relative change of a time if the phases agree on its direction."""
        if self.time_word(name, floor) not in ("sooner", "later"):
            return 0.0
        return abs(self.times[name].relative().mean)

    def document(self, floor: float) -> dict[str, Any]:
        """Return the document for ``--json``."""
        return {
            "queue": self.queue,
            "in": self.where,
            "applications": self.applications,
            "word": self.word(floor),
            **{f"{name}_s": change.document(self.time_word(name, floor)) for name, change in self.times.items()},
            **{name: change.document(change.count_word()) for name, change in self.counts.items()},
            "moved": dict(self.moved),
            "refused_because": dict(self.reasons),
        }


# --- a gate -----------------------------------------------------------------------------------------------------------

_RULE = re.compile(r"\s*([a-z_]+)\s*\(\s*([^()]*?)\s*\)\s*(>=|<=|>|<)\s*([+-]?)\s*(\d{1,12}(?:\.\d{1,6})?)\s*(%|s|)\s*")
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}
_EXAMPLES = "write wait(QUEUE) > +10%, completion(*) > 600s, refused(QUEUE) > 0, completion(--submit) > 600s"
#: The queue name in a rule that means the application of ``--submit``. No queue of a file has such a name.
ADDED = "--submit"


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition under which a change of configuration is refused, as ``--fail-if`` has it.

    figure, queue : the tested quantity and queue; queue ``*``: each queue.
    compare, value : ``>`` etc. and the number, with its sign if it is a change.
    kind : a change in per cent, a change in the figure's unit, or the figure itself after the change.
    """

    text: str
    figure: str
    queue: str
    compare: str
    value: float
    kind: Literal["percent", "difference", "after"]

    @classmethod
    def read(cls, text: str) -> Rule:
        """Parse a rule. Raises CallError."""

        def wrong(what: str) -> CallError:
            return CallError(f"{text[:80]!r} {what}", where="--fail-if", hint=_EXAMPLES)

        found = _RULE.fullmatch(text)
        if found is None:
            raise wrong("is no rule")
        figure, queue, compare, sign, number, unit = found.groups()
        if figure not in (*TIMES, *COUNTS):
            raise wrong(f"has no figure: there are {', '.join((*TIMES, *COUNTS))}")
        if not queue:
            raise wrong("names no queue (* stands for each)")
        if figure in COUNTS and unit:
            raise wrong("counts applications: give a number without a unit")
        if figure in TIMES and not unit:
            raise wrong("has no unit: give % or s")
        value = float(number) * (-1.0 if sign == "-" else 1.0)
        kind: Literal["percent", "difference", "after"] = (
            "percent" if unit == "%" else "difference" if sign else "after"
        )
        return cls(" ".join(text.split()), figure, queue, compare, value, kind)

    def judge(self, queue: QueueChange, unsure: str = "") -> Case:
        """Apply the rule to one queue.

        The result is failed if the rule's condition holds for the mean over the phases, unsure if it only holds in some
        phases (a limit: if it holds at an end of the band, `Change.expected`), and fine if it holds in none. A result
        that is not failed is not judged if the simulation is unreliable (``unsure``), or if the queue loses
        applications, because the remaining ones alone show too little.

        Parameters
        ----------
        queue : QueueChange
            The queue before and after.
        unsure : str
            Why the simulation is unreliable; empty if it is reliable.
        """
        change = {**queue.times, **queue.counts}[self.figure]
        if not (change.known or (self.kind == "after" and change.after)):
            return Case(self, queue.queue, "not judged", why="no application of it has this figure before and after")
        if self.kind == "percent":
            part = change.relative()
            values = [100.0 * one for one in change.parts()]
            band = Band(100.0 * part.mean, 100.0 * part.low, 100.0 * part.high)
        else:
            values = list(change.after) if self.kind == "after" else change.difference()
            band = change.expected() if self.kind == "after" else Band.of(values)
        compare = _COMPARED[self.compare]
        beyond = sum(compare(value, self.value) for value in values)
        possible = beyond or any(compare(end, self.value) for end in band.list())
        verdict: Judged = "failed" if compare(band.mean, self.value) else "unsure" if possible else "fine"
        why = ""
        if verdict != "failed":
            why = unsure or (self._without(queue) if self.figure in TIMES else "")
        return Case(self, queue.queue, "not judged" if why else verdict, band, beyond, len(values), why)

    def _gone_of(self, queue: QueueChange) -> tuple[float, ...]:
        return queue.gone.get("completion" if self.figure == "completion" else "wait", ())

    def _without(self, queue: QueueChange) -> str:
        """Explain why the value is incomplete: applications without a value after the change that had one before."""
        names = ("refused", "never_started", *(("not_ended",) if self.figure == "completion" else ()))
        changes = [queue.counts[name] for name in names]
        lost = max(map(math.fsum, zip(*(change.difference() for change in changes), strict=True)), default=0.0)
        # Applications that are served only after the change do not make up for those that are no longer served.
        lost = max(lost, *self._gone_of(queue), 0.0)
        if lost > 0:
            return f"{lost:.4g} more of its applications are refused, never start or never end"
        if self.kind == "after" and self.figure != "below_due":
            # Applications that never start exceed a limit in seconds, even if they did not start before either.
            stuck = max(map(math.fsum, zip(*(change.after for change in changes[1:]), strict=True)), default=0.0)
            if stuck > 0:
                return f"{stuck:.4g} of its applications never start or never end"
        return ""


@dataclass(frozen=True, slots=True)
class Case:
    """The result of a rule for one queue. Only the verdict "fine" passes.

    Parameters
    ----------
    rule, queue, verdict
        The rule, the queue, and the result.
    band
        The compared value over the phases; None if the queue has none.
    beyond, phases
        The number of phases in which the value exceeds the rule's limit, and the number of phases.
    why
        Why it is not judged, if it is not.
    """

    rule: Rule
    queue: str
    verdict: Judged
    band: Band | None = None
    beyond: int = 0
    phases: int = 0
    why: str = ""

    @property
    def passes(self) -> bool:
        """Return whether the case passes."""
        return self.verdict == "fine"

    def name(self) -> str:
        """Return the rule with the queue's own name."""
        return self.rule.text.replace("*", self.queue.removeprefix("root."), 1)

    def words(self) -> str:
        """Describe the result."""
        if self.why:
            return f"{self.name()}: cannot be judged, {self.why}"
        assert self.band is not None
        unit = {"percent": " %", "difference": "", "after": ""}[self.rule.kind]
        unit = " s" if not unit and self.rule.figure in TIMES else unit
        sign = "" if self.rule.kind == "after" else "+"
        low, mean, high = (_number(value, sign) for value in (self.band.low, self.band.mean, self.band.high))
        return f"{self.name()}: {mean}{unit} ({low} to {high}), beyond it in {self.beyond} of {self.phases} phases"

    def document(self) -> dict[str, Any]:
        """Return the document for ``--json``; a change from 0 has no percentage."""
        finite = self.band is not None and _finite(self.band)
        return {
            "rule": self.rule.text,
            "queue": self.queue,
            "verdict": self.verdict,
            "value": self.band.mean if self.band is not None and finite else None,
            "band": self.band.list() if self.band is not None and finite else None,
            "phases_beyond": self.beyond,
            "phases": self.phases,
            "why": self.why,
        }


def _finite(band: Band) -> bool:
    return all(map(math.isfinite, (band.low, band.mean, band.high)))


def _number(value: float, sign: str) -> str:
    if not math.isfinite(value):
        return "from 0"
    return f"{value:{sign}.1f}"


def _checked_added(rule: Rule, added: QueueChange | None, where: str) -> QueueChange:
    """Return the submitted application if this rule can be applied to it. Raises CallError."""
    if added is None:
        raise CallError("no application is submitted", where=where, hint="add --submit, or name a queue")
    if rule.figure == "below_due":
        raise CallError("an application is not below its due", where=where, hint="name its queue")
    if rule.kind != "after" and rule.figure in TIMES:
        raise CallError("there is no such application before the change", where=where, hint="give a limit in seconds")
    return added


def judged(
    rules: Sequence[Rule],
    queues: Sequence[QueueChange],
    error: float | None = None,
    added: QueueChange | None = None,
    known: float = 1.0,
    asynchronous: bool = False,
) -> list[Case]:
    """Apply every rule to its queues; ``*`` means all queues with applications.

    Parameters
    ----------
    rules : sequence of Rule
        The rules of ``--fail-if``.
    queues : sequence of QueueChange
        All queues of either file or the trace.
    error : float or None
        The error of the replay before the change; None if the recording does not show it.
    added : QueueChange or None
        The additional application; None if there is none.
    known : float
        The fraction of the recorded work that is known task by task.
    asynchronous : bool
        Whether the recorded cluster places containers asynchronously, which the simulator does not.

    Raises
    ------
    CallError
        A queue does not exist in either file, or a rule makes no sense for the submitted application.
    InputError
        A rule for each queue, but no queue has applications.
    """
    by_name = {one.queue: one for one in queues}
    unsure = ""
    if error is not None and error > MOST_ERROR:
        unsure = (
            f"the replay before the change is {100 * error:.0f} % off the recording (at most {100 * MOST_ERROR:.0f} %)"
        )
    elif asynchronous:
        unsure = "the cluster places containers asynchronously, the simulator at heartbeats"
    elif known < LEAST_KNOWN:
        unsure = f"of {100 * (1 - known):.0f} % of the work the tasks are not known"
    cases = []
    for rule in rules:
        where = f"--fail-if {rule.text[:80]}"
        if rule.queue == ADDED:
            cases.append(rule.judge(_checked_added(rule, added, where), unsure))
            continue
        if rule.queue == "*":
            own = [one for one in queues if one.applications]
            if not own:
                raise InputError("no queue has an application", where=where, hint="give a trace of this cluster")
            cases += [rule.judge(one, unsure) for one in own]
            continue
        full = rule.queue if rule.queue.startswith("root.") else f"root.{rule.queue}"
        named = [full] if full in by_name else [one for one in by_name if one.endswith(f".{rule.queue}")]
        if len(named) != 1:
            shown = ", ".join(one.removeprefix("root.") for one in list(by_name)[:20])
            what = f"no leaf queue {rule.queue[:60]!r}" if not named else f"queue {rule.queue[:60]!r} is not unique"
            raise CallError(what, where=where, hint=f"one of {shown}")
        cases.append(rule.judge(by_name[named[0]], unsure))
    return cases


def verdict_of(cases: Sequence[Case]) -> Literal["fine", "unsure", "regression"]:
    """Return the result of all cases: regression if one failed, unsure if one is not fine."""
    if any(case.verdict == "failed" for case in cases):
        return "regression"
    return "fine" if all(case.passes for case in cases) else "unsure"
