"""What a change of configuration does to one queue, in figures with bands, and the rules that a gate holds them to.

Pure. Every figure has one value a phase of heartbeats; the k-th phase is the same before and after the change, so that
differences are taken phase by phase.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.base.errors import CallError, InputError
from harness.predict.verdict import MOST_ERROR, NOTICEABLE, Band

Word = Literal["sooner", "later", "same", "unsure", "less", "more", "refused", "never", "taken", "ended"]
Judged = Literal["fine", "failed", "unsure", "not judged"]

#: A difference of fewer seconds is none: heartbeats alone are a second apart.
LEAST_S = 1.0
#: The simulator's clock counts milliseconds: what is less is nothing, and nothing is a part of it.
_NOTHING_S = 1e-3
#: The figures in seconds -> what they are called in a text.
TIMES = {"wait": "first container", "completion": "completion", "below_due": "below its due"}
#: The figures that count applications -> what they are called in a text.
COUNTS = {"refused": "refused", "never_started": "never started", "not_ended": "not ended"}


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one queue before and after, phase by phase. Empty: the figure is not known on that side."""

    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def known(self) -> bool:
        """Whether both sides have it."""
        return bool(self.before) and bool(self.after)

    def difference(self) -> list[float]:
        """After less before, phase by phase."""
        return [mine - its for mine, its in zip(self.after, self.before, strict=True)]

    def parts(self) -> list[float]:
        """The differences as parts of what was before, phase by phase.

        Differences that are all below `LEAST_S` are none. From 0 on a change is infinite.
        """
        differences = self.difference()
        if all(abs(one) < LEAST_S for one in differences):
            return [0.0] * len(differences)
        mean = math.fsum(self.before) / len(self.before)
        if mean < _NOTHING_S:
            return [math.inf if one > 0 else 0.0 for one in differences]
        # Of the mean, where a phase has nothing to be a part of.
        bases = self.before if min(self.before) >= _NOTHING_S else (mean,) * len(differences)
        return [one / base for one, base in zip(differences, bases, strict=True)]

    def relative(self) -> Band:
        """The change of the mean as a part of the mean before, and its smallest and largest over the phases."""
        parts = self.parts()
        if not any(parts) or not all(map(math.isfinite, parts)):
            return Band.of(parts)
        return Band(math.fsum(self.difference()) / math.fsum(self.before), min(parts), max(parts))

    def word(self, floor: float = NOTICEABLE, *, up: Word = "later", down: Word = "sooner") -> Word:
        """In one word; "unsure" where the phases disagree.

        Parameters
        ----------
        floor : float
            A change below this part is none.
        up, down : str
            What a larger and a smaller figure is called.
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
        """Of a number of applications: more, less, same, or unsure where the phases disagree."""
        found = self.difference()
        if not any(found):
            return "same"
        return "more" if all(one > 0 for one in found) else "less" if all(one < 0 for one in found) else "unsure"

    def document(self, word: Word) -> dict[str, Any]:
        """For ``--json``."""
        found: dict[str, Any] = {
            "before": Band.of(self.before).document() if self.before else None,
            "after": Band.of(self.after).document() if self.after else None,
        }
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
    applications : the applications of the trace that run in it before; of a queue that only comes, after.
    times, counts : figure -> change (`TIMES`, `COUNTS`).
    moved : where its applications run after the change, if it is another queue.
    reasons : why applications are refused after it.
    gone : "wait", "completion" -> how many applications have it before the change and not after, phase by phase.
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
        """How many more applications are refused, or never start or end, than before; mean over the phases."""
        return math.fsum(
            math.fsum(change.difference()) / len(change.before) for change in self.counts.values() if change.known
        )

    def word(self, floor: float) -> Word:
        """The queue's word: of its applications' completion, or of their wait, where none is lost and none is won."""
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
        """Classify the change of one of its times."""
        if name == "below_due":
            return self.times[name].word(floor, up="more", down="less")
        return self.times[name].word(floor)

    def size(self, floor: float) -> tuple[float, ...]:
        """By which queues are sorted, the most changed first: applications lost, completion, wait, time short."""
        below = self.times["below_due"]
        short = abs(math.fsum(below.difference()) / len(below.before)) if below.known else 0.0
        return (
            abs(self.lost()) / max(self.applications, 1),
            *(self._size(n, floor) for n in ("completion", "wait")),
            short,
        )

    def _size(self, name: str, floor: float) -> float:
        """The change of a time as a part, if it is sure; without its sign."""
        if self.time_word(name, floor) not in ("sooner", "later"):
            return 0.0
        return abs(self.times[name].relative().mean)

    def document(self, floor: float) -> dict[str, Any]:
        """For ``--json``."""
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
#: Stands in a rule for the application that ``--submit`` adds. No queue of a file has such a name.
ADDED = "--submit"


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition under which a change of configuration is refused, as ``--fail-if`` has it.

    figure, queue : what is looked at; queue ``*``: each of them.
    compare, value : ``>`` ... and the number, with its sign where it is a change.
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
        """A rule as it is written. Raises CallError."""

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
        """What becomes of one queue.

        It is fine where no phase is beyond, and failed where the mean is. What lies between is unsure. A queue that
        loses applications is never fine by a mean of those that are left.

        Parameters
        ----------
        queue : QueueChange
            It before and after.
        unsure : str
            Why nothing that was simulated can be relied on; empty where it can.
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
            band = Band.of(values)
        compare = _COMPARED[self.compare]
        beyond = sum(compare(value, self.value) for value in values)
        verdict: Judged = "failed" if compare(band.mean, self.value) else "unsure" if beyond else "fine"
        why = ""
        if verdict != "failed":
            why = unsure or (self._without(queue) if self.figure in TIMES else "")
        return Case(self, queue.queue, "not judged" if why else verdict, band, beyond, len(values), why)

    def _gone_of(self, queue: QueueChange) -> tuple[float, ...]:
        return queue.gone.get("completion" if self.figure == "completion" else "wait", ())

    def _without(self, queue: QueueChange) -> str:
        """Why the figure says too little: applications that have none after the change, and had one before."""
        names = ("refused", "never_started", *(("not_ended",) if self.figure == "completion" else ()))
        changes = [queue.counts[name] for name in names]
        lost = max(map(math.fsum, zip(*(change.difference() for change in changes), strict=True)), default=0.0)
        # Others that are served only after the change do not make up for those that are not any more.
        lost = max(lost, *self._gone_of(queue), 0.0)
        if lost > 0:
            return f"{lost:.4g} more of its applications are refused, never start or never end"
        if self.kind == "after" and self.figure != "below_due":
            # A limit in seconds is exceeded by applications that never start, even if they did not start before either.
            stuck = max(map(math.fsum, zip(*(change.after for change in changes[1:]), strict=True)), default=0.0)
            if stuck > 0:
                return f"{stuck:.4g} of its applications never start or never end"
        return ""


@dataclass(frozen=True, slots=True)
class Case:
    """A rule held against one queue. Only the verdict "fine" passes.

    Parameters
    ----------
    rule, queue, verdict
        The rule, the queue, and what came of it.
    band
        The figure that the rule compares, over the phases; None where the queue has no such figure.
    beyond, phases
        In how many phases the figure is beyond the rule's limit, and how many phases there are.
    why
        Why it is not judged, where it is not.
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
        """Whether the gate stays open."""
        return self.verdict == "fine"

    def name(self) -> str:
        """The rule, with the queue's own name."""
        return self.rule.text.replace("*", self.queue.removeprefix("root."), 1)

    def words(self) -> str:
        """What was found."""
        if self.why:
            return f"{self.name()}: cannot be judged, {self.why}"
        assert self.band is not None
        unit = {"percent": " %", "difference": "", "after": ""}[self.rule.kind]
        unit = " s" if not unit and self.rule.figure in TIMES else unit
        sign = "" if self.rule.kind == "after" else "+"
        low, mean, high = (_number(value, sign) for value in (self.band.low, self.band.mean, self.band.high))
        return f"{self.name()}: {mean}{unit} ({low} to {high}), beyond it in {self.beyond} of {self.phases} phases"

    def document(self) -> dict[str, Any]:
        """For ``--json``; a change from 0 on has no percentage."""
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
    """The submitted application, if this rule can be held against it. Raises CallError."""
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
) -> list[Case]:
    """Every rule on its queues; ``*`` on those that have applications.

    Parameters
    ----------
    rules : sequence of Rule
        As ``--fail-if`` has them.
    queues : sequence of QueueChange
        All that either file or the trace has.
    error : float or None
        How far the replay before the change is off the recording; None where the recording does not say.
    added : QueueChange or None
        The application that is submitted besides; None where there is none.

    Raises
    ------
    CallError
        A queue that neither file has, or a rule on the submitted application that has no meaning.
    InputError
        A rule on each queue where none has applications.
    """
    by_name = {one.queue: one for one in queues}
    unsure = ""
    if error is not None and error > MOST_ERROR:
        unsure = (
            f"the replay before the change is {100 * error:.0f} % off the recording (at most {100 * MOST_ERROR:.0f} %)"
        )
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
    """Of all cases together: a regression where one failed, unsure where one is not fine."""
    if any(case.verdict == "failed" for case in cases):
        return "regression"
    return "fine" if all(case.passes for case in cases) else "unsure"
