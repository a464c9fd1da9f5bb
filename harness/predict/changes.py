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

from harness.base.errors import CallError
from harness.predict.verdict import NOTICEABLE, Band

Word = Literal["sooner", "later", "same", "unsure", "less", "more", "refused", "never"]
Judged = Literal["fine", "failed", "not judged"]

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
    """

    queue: str
    where: Literal["both", "before", "after", "neither"]
    applications: int
    times: Mapping[str, Change]
    counts: Mapping[str, Change]
    moved: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)

    def lost(self) -> float:
        """How many more applications are refused, or never start or end, than before; mean over the phases."""
        return math.fsum(
            math.fsum(change.difference()) / len(change.before) for change in self.counts.values() if change.known
        )

    def word(self, floor: float) -> Word:
        """The queue's word: of its applications' completion, or of their wait, where none of them is lost."""
        words = {name: change.count_word() for name, change in self.counts.items() if change.known}
        if words.get("refused") == "more":
            return "refused"
        if "more" in words.values():
            return "never"
        if "unsure" in words.values():
            return "unsure"
        known = [self.times[name].word(floor) for name in ("completion", "wait") if self.times[name].known]
        if known:
            return next((word for word in known if word != "same"), "same")
        return self.time_word("below_due", floor) if self.times["below_due"].known else "same"

    def time_word(self, name: str, floor: float) -> Word:
        """The word of one of its times."""
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
_EXAMPLES = "write wait(QUEUE) > +10%, completion(*) > 600s, refused(QUEUE) > 0"


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

    def judge(self, queue: QueueChange) -> Case:
        """What becomes of one queue. The mean over the phases decides; how many phases are beyond is told."""
        change = {**queue.times, **queue.counts}[self.figure]
        if not (change.known or (self.kind == "after" and change.after)):
            return Case(self, queue.queue, "not judged", None, 0, 0)
        if self.kind == "percent":
            part = change.relative()
            values = [100.0 * one for one in change.parts()]
            band = Band(100.0 * part.mean, 100.0 * part.low, 100.0 * part.high)
        else:
            values = list(change.after) if self.kind == "after" else change.difference()
            band = Band.of(values)
        compare = _COMPARED[self.compare]
        beyond = sum(compare(value, self.value) for value in values)
        failed = compare(band.mean, self.value)
        return Case(self, queue.queue, "failed" if failed else "fine", band, beyond, len(values))


@dataclass(frozen=True, slots=True)
class Case:
    """A rule held against one queue. ``band``: of what the rule compares; None: the queue has no such figure."""

    rule: Rule
    queue: str
    verdict: Judged
    band: Band | None
    beyond: int
    phases: int

    def name(self) -> str:
        """The rule, with the queue's own name."""
        return self.rule.text.replace("*", self.queue.removeprefix("root."), 1)

    def words(self) -> str:
        """What was found."""
        if self.band is None:
            return f"{self.name()}: {self.queue} has no such figure"
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
        }


def _finite(band: Band) -> bool:
    return all(map(math.isfinite, (band.low, band.mean, band.high)))


def _number(value: float, sign: str) -> str:
    if not math.isfinite(value):
        return "from 0"
    return f"{value:{sign}.1f}"


def judged(rules: Sequence[Rule], queues: Sequence[QueueChange]) -> list[Case]:
    """Every rule on its queues. Raises CallError for a queue that neither file has."""
    by_name = {one.queue: one for one in queues}
    cases = []
    for rule in rules:
        if rule.queue == "*":
            cases += [rule.judge(one) for one in queues]
            continue
        full = rule.queue if rule.queue.startswith("root.") else f"root.{rule.queue}"
        named = [full] if full in by_name else [one for one in by_name if one.endswith(f".{rule.queue}")]
        if len(named) != 1:
            shown = ", ".join(one.removeprefix("root.") for one in list(by_name)[:20])
            what = f"no leaf queue {rule.queue[:60]!r}" if not named else f"queue {rule.queue[:60]!r} is not unique"
            raise CallError(what, where=f"--fail-if {rule.text[:80]}", hint=f"one of {shown}")
        cases.append(rule.judge(by_name[named[0]]))
    return cases
