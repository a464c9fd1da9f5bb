"""What the runs show about the papers' findings: sentences and verdicts computed from their results. Draws nothing.

A finding states what the paper saw (and where), the rule by which it is judged here, and the values used. It is left
out without the runs that it needs; nothing is assumed.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from harness.base.stats import half_width_95
from harness.report.data import Run, short
from harness.results.metrics import LOSS_THRESHOLD

Verdict = Literal["holds", "holds in part", "does not hold"]

#: LTYARN section 7.4: "no more sharing loss problem after 650 seconds for LTYARN".
PAPER_START_UP_S = 650.0
#: "Constantly until all the workloads complete": the loss lasts through at least this fraction of the run.
WHOLE_RUN = 0.9
#: Tolerance of "at least as fast as static partitioning" (runs differ by some tenths of a per cent).
AS_FAST = 0.99
#: A static partition gives a degree of 1 in the fluid model. Whole containers may leave up to one container of the
#: share unused (on the papers' cluster 1 of 29.5), and heartbeats a little more.
STATIC_TOLERANCE = 0.05
#: Two loss integrals that differ by less than this fraction count as equal: the resolution at which a loss counts at
#: all (`LOSS_THRESHOLD` of `last_loss_s`), as a fraction of the integral.
SAME = abs(LOSS_THRESHOLD)
#: Mean duration of TPC-H's tasks in the paper (Fig. 11a), for runs without recorded task durations.
PAPER_TASK_S = 23.6


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the paper's statement, the verdict of these runs, and the values behind it."""

    title: str
    source: str
    claim: str
    rule: str
    verdict: Verdict
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number by which a case is judged, or that explains it.

    Parameters
    ----------
    name, value
        Its name and value.
    unit, digits, scale, signed
        Its format: unit, decimal digits, factor, and whether a sign is shown.
    against, of
        The same number of the compared run, and that run's variant.
    together
        For values of single queues: the heading under which they share one line.
    """

    name: str
    value: float
    unit: str = ""
    digits: int = 0
    scale: float = 1.0
    against: float | None = None
    of: str = ""
    signed: bool = False
    together: str = ""

    def mean(self, values: Sequence[float], *, signed: bool = False) -> str:
        """Return the mean of values in this format, with half of its 95 % interval and the unit."""
        mean, half = fmean(values), half_width_95(values)
        text = self._written(mean, "+" if signed or self.signed else "")
        text += f" \u00b1 {self._written(half, '')}" if half > 0 else ""
        return f"{text}\u00a0{self.unit}" if self.unit else text

    def _written(self, value: float, sign: str) -> str:
        return f"{value * self.scale:{sign},.{self.digits}f}".replace("-", "\u2212")


@dataclass(frozen=True, slots=True)
class OfVariant:
    """One case of a claim, and its variant, whose seeds are counted together."""

    #: Whether the claim holds in it. None: not judged.
    holds: bool | None
    #: The values used, as a line of the evidence. "": no line.
    text: str
    #: The variant's name. "": the case is not of a single variant.
    variant: str = ""
    #: The numbers in the text, for means and intervals over several seeds.
    figures: tuple[Figure, ...] = ()


#: A case, or without a variant only whether it holds, and the values used.
Case = OfVariant | tuple[bool | None, str]
Cases = Callable[[Sequence[Run]], Iterator[Case]]
Rule = Callable[[Sequence[Run]], Finding | None]


def _of(runs: Sequence[Run], *policies: str) -> list[Run]:
    return [run for run in runs if run.policy in policies and run.summary]


def _beside(runs: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    """Return pairs of memoryless and LTRF runs of the same experiment, backend and seed."""
    return ((fair, ltrf) for fair in _of(runs, "fair") for ltrf in _of(runs, "ltrf") if ltrf.beside(fair))


def _seconds(value: float) -> str:
    return f"{value:,.0f} s"


def _signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "\u2212")


def _per_cent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %".replace("-", "\u2212")


def _gains(ratios: Mapping[str, float], together: str) -> tuple[Figure, ...]:
    """Return speed-ups as numbers: how much faster each queue is."""
    return tuple(
        Figure(queue, ratio - 1, "%", 1, 100.0, signed=True, together=together) for queue, ratio in ratios.items()
    )


def _mean_loss(run: Run) -> tuple[Figure, ...]:
    """Return the mean sharing loss, the time of the last one (0 if there was none), and the makespan."""
    return (
        Figure("mean loss", run.number("sharing_loss"), "", 3),
        Figure("last loss at", run.number("last_loss_s"), "s"),
        Figure("makespan", run.number("makespan_s"), "s"),
    )


def _faster(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{queue} {_per_cent(ratio)}" for queue, ratio in ratios.items())


def _last_loss(run: Run) -> str:
    last = run.figure("last_loss_s")
    return "never loses" if not last else f"last loss at {_seconds(last)}"


def starved_s(run: Run) -> float:
    """Return the length from which a time with demand and no running task counts as starvation, in seconds.

    It follows from the paper's Algorithm 2, not from observations: a leaf that has waited for T_wait is next when a
    container ends, which takes at most about a task's length. A job needs two containers in sequence before a task of
    it runs: its AM's and the task's. So the length is 2 (T_wait + T_task), with T_wait = 0 if a policy has none or
    never lifts (inf), and T_task the mean task duration of the leaf with the longest tasks.
    """
    t_wait = _t_wait(run) or 0.0
    known = [mean for leaf in run.leaves if (mean := run.task_s.get(short(leaf))) is not None]
    return 2 * ((t_wait if math.isfinite(t_wait) else 0.0) + max(known, default=PAPER_TASK_S))


def verdict(holds: Sequence[bool]) -> Verdict:
    """Return the verdict on a claim that holds in all, some or none of the judged cases."""
    if all(holds):
        return "holds"
    return "holds in part" if any(holds) else "does not hold"


def evidence_of(cases: Sequence[OfVariant]) -> tuple[str, ...]:
    """Return the figures of the cases as lines, variant by variant.

    A variant with several seeds has one line. It begins with the number of runs in which the claim holds, and has the
    mean of each value with half of its 95 % interval over the seeds. If a value is compared with another run's, mean
    and interval are of the differences by seed. If that interval contains 0, and that of the relative changes as well,
    the seeds do not show which is larger; if it alone does, because seeds differ in size, the change is given too.
    """
    by_variant: dict[str, list[OfVariant]] = {}
    for case in cases:
        by_variant.setdefault(case.variant, []).append(case)
    said: list[str] = []
    single: list[str] = []
    for variant, own in by_variant.items():
        judged = [case.holds for case in own if case.holds is not None]
        if variant and len(judged) > 1:
            named: dict[str, dict[str, list[Figure]]] = {}
            for figure in (figure for case in own for figure in case.figures):
                named.setdefault(figure.together, {}).setdefault(figure.name, []).append(figure)
            parts = [f"{variant}: holds in {sum(judged)} of {len(judged)} runs"]
            for together, found in named.items():
                each = [_over_seeds(figures) for figures in found.values()]
                parts += [f"{together}: {', '.join(each)}"] if together else each
            said.append("; ".join(parts))
        else:
            single += [case.text for case in own if case.text]
    return (*said, *single)


def _over_seeds(figures: Sequence[Figure]) -> str:
    """Return one value of several runs of a variant."""
    first = figures[0]
    text = f"{first.name} {first.mean([one.value for one in figures])}"
    against = [one.against for one in figures if one.against is not None]
    if len(against) < len(figures):
        return text
    text += f" against {first.mean(against)} of {first.of}"
    each = [one.value - other for one, other in zip(figures, against, strict=True)]
    half = half_width_95(each)
    if not half:
        return text
    text += f", a difference of {first.mean(each, signed=True)}"
    if abs(fmean(each)) > half:
        return text
    if min(against) > 0:
        parts = [one.value / other - 1 for one, other in zip(figures, against, strict=True)]
        if abs(fmean(parts)) > half_width_95(parts):
            return f"{text}, a change of {Figure('', 0.0, '%', scale=100.0).mean(parts, signed=True)}"
    return f"{text}, not told from chance"


def finding(title: str, source: str, claim: str, rule: str) -> Callable[[Cases], Rule]:
    """Decorate a function that judges cases: it returns its finding, or None if no case can be judged."""

    def rule_of(cases: Cases) -> Rule:
        @functools.wraps(cases)
        def found(runs: Sequence[Run]) -> Finding | None:
            told = [case if isinstance(case, OfVariant) else OfVariant(*case) for case in cases(runs)]
            holds = [case.holds for case in told if case.holds is not None]
            return Finding(title, source, claim, rule, verdict(holds), evidence_of(told)) if holds else None

        return found

    return rule_of


@finding(
    "A static partition neither gains nor loses",
    "LTYARN section 4.2",
    "In a non-shared partition benefit and loss are zero at any time.",
    f"every queue's fairness degree at the end is within {STATIC_TOLERANCE} of 1 (a share is filled with whole "
    "containers, at heartbeats)",
)
def static_is_neutral(runs: Sequence[Run]) -> Iterator[Case]:
    """A static partition gives exactly its shares: rho = 1 for every queue."""
    for run in _of(runs, "static"):
        degrees = run.of_queues("fairness_degree")
        if not degrees:
            continue
        listed = ", ".join(f"{queue} {degree:.3f}" for queue, degree in degrees.items())
        mean = f"mean benefit {_signed(run.number('sharing_benefit'))}, mean loss {_signed(run.number('sharing_loss'))}"
        yield OfVariant(
            all(abs(degree - 1) <= STATIC_TOLERANCE for degree in degrees.values()),
            f"{run.label}: fairness degrees at the end {listed}; {mean} (sums over the queues)",
            run.variant_without_seed(),
            (
                *(
                    Figure(queue, degree, "", 3, together="fairness degrees at the end")
                    for queue, degree in degrees.items()
                ),
                Figure("mean loss", run.number("sharing_loss"), "", 3),
            ),
        )


@finding(
    "Memoryless fairness keeps losing",
    "LTYARN section 7.4, Fig. 7a",
    "The sharing loss is there constantly until all the workloads complete, about \u22120.5 on average.",
    f"the last loss (Omega below \u22120.01) comes after {WHOLE_RUN * 100:.0f} % of the makespan (its size is not "
    "judged)",
)
def memoryless_keeps_losing(runs: Sequence[Run]) -> Iterator[Case]:
    """Fig. 7a: the memoryless fair scheduler loses until all workloads complete, about -0.5 on average."""
    for run in _of(runs, "fair"):
        last, makespan = run.number("last_loss_s"), run.number("makespan_s")
        worst = run.worst_queue()
        text = (
            f"{run.label}: mean loss {_signed(run.number('sharing_loss'))}, {_last_loss(run)} of {_seconds(makespan)}"
        )
        if worst is not None:
            text += f"; the lowest fairness degree at the end is {worst[1]:.3f} ({worst[0]})"
        lowest = (Figure("the lowest fairness degree at the end", worst[1], "", 3),) if worst is not None else ()
        yield OfVariant(last >= WHOLE_RUN * makespan, text, run.variant_without_seed(), (*_mean_loss(run), *lowest))
        contended = run.contention()
        if contended is not None:
            yield OfVariant(
                None,
                f"{run.label}: all queues together ask for more than the cluster has during {contended[0] * 100:.0f} % "
                f"of the time, two or more of them for more than their own shares during {contended[1] * 100:.0f} %",
                run.variant_without_seed(),
                (
                    Figure("time in which the queues ask for more than the cluster has", contended[0], "%", 0, 100.0),
                    Figure("time in which two or more ask for more than their shares", contended[1], "%", 0, 100.0),
                ),
            )


@finding(
    "Long-term fairness stops losing after a start-up phase",
    "LTYARN section 7.4, Fig. 7c",
    "There is no more sharing loss after 650 seconds; what comes before is unavoidable waiting at the start.",
    f"the last loss (Omega below \u22120.01) comes before {WHOLE_RUN * 100:.0f} % of the makespan",
)
def long_term_stops_losing(runs: Sequence[Run]) -> Iterator[Case]:
    """Fig. 7c: under LTRF there is no sharing loss after the start-up phase (650 s)."""
    for run in _of(runs, "ltrf"):
        last, makespan = run.number("last_loss_s"), run.number("makespan_s")
        ended = last < WHOLE_RUN * makespan
        by_then = "within" if last <= PAPER_START_UP_S else "later than"
        tail = f"({by_then} the paper's 650 s)" if ended else "(it lasts through the run)"
        mean = _signed(run.number("sharing_loss"))
        text = f"{run.label}: mean loss {mean}, {_last_loss(run)} of {_seconds(makespan)} {tail}"
        yield OfVariant(ended, text, run.variant_without_seed(), _mean_loss(run))


@finding(
    "Long-term fairness loses less than memoryless fairness",
    "LTYARN section 7.4",
    "LTYARN has a much better result than HFS.",
    f"the integral of |Omega| over time is smaller by over {SAME * 100:.0f} %, run against run of the same experiment, "
    "backend and seed",
)
def long_term_loses_less(runs: Sequence[Run]) -> Iterator[Case]:
    """The main claim of the paper: LTRF has less sharing loss than the memoryless scheduler."""
    for reference, run in _beside(runs):
        of_fair, own = (one.number("sharing_loss_integral") for one in (reference, run))
        ratio = f" ({own / of_fair:.2f} of it)" if of_fair > 0 else ""
        text = f"{run.label}: sharing loss {own:.1f} s against {of_fair:.1f} s of {reference.label}{ratio}"
        of = reference.variant_without_seed()
        figures = (Figure("sharing loss", own, "s", 1, against=of_fair, of=of),)
        yield OfVariant(own < of_fair * (1 - SAME), text, run.variant_without_seed(), figures)


@finding(
    "Sharing is at least as fast as a static partition",
    "LTYARN section 7.5, Fig. 8",
    "Facebook and Purdue gain 14 to 19 % under the memoryless scheduler and 10 to 23 % under LTRF; Spark and TPC-H "
    "are at least as fast as with static partitioning.",
    f"every queue's speed-up (mean completion under static / under the policy) is at least {AS_FAST}",
)
def sharing_is_faster(runs: Sequence[Run]) -> Iterator[Case]:
    """Fig. 8: queues are at least as fast as in their static partition."""
    for run in _of(runs, "fair", "ltrf"):
        speedups = run.speedups()
        if not speedups:
            continue
        slower = [queue for queue, value in speedups.items() if value < AS_FAST]
        tail = f"; slower than static: {', '.join(slower)}" if slower else ""
        variant = run.variant_without_seed()
        yield OfVariant(
            not slower, f"{run.label}: {_faster(speedups)}{tail}", variant, _gains(speedups, "faster than static")
        )
        whole = run.speedups("workload_speedup_over_static")
        if whole:
            text = f"{run.label}, whole workloads (not judged): {_faster(whole)}"
            yield OfVariant(None, text, variant, _gains(whole, "whole workloads (not judged)"))


@finding(
    "Neither policy is faster for every queue",
    "LTYARN section 7.5",
    "There is no conclusive result which one is better: HFS is for Facebook (7 %) and Spark (2 %), LTYARN for "
    "Purdue (8 %) and TPC-H (10 %).",
    "among the queues' mean completions some are shorter under one policy, some under the other",
)
def neither_is_always_faster(runs: Sequence[Run]) -> Iterator[Case]:
    """Section 7.5: some queues are faster under the memoryless scheduler, some under LTRF."""
    for fair, ltrf in _beside(runs):
        ours, theirs = ltrf.speedups(), fair.speedups()
        if ours and theirs:
            ratios = {queue: ours[queue] / theirs[queue] for queue in ours if theirs.get(queue)}
            mixed = any(r > 1 for r in ratios.values()) and any(r < 1 for r in ratios.values())
            text = f"{ltrf.label} against {fair.label}: {_faster(ratios)}"
            yield OfVariant(
                mixed, text, ltrf.variant_without_seed(), _gains(ratios, f"faster than {fair.variant_without_seed()}")
            )


@finding(
    "Weights written from outside lose no more than the policy inside the scheduler",
    "this project's claim, not the papers'",
    "A controller that only rewrites Fair Scheduler weights keeps up with the policy decided at every allocation.",
    "the integral of |Omega| from outside is at most that of the same policy inside (up to 1 %), seed for seed",
)
def outside_costs(runs: Sequence[Run]) -> Iterator[Case]:
    """The cost (or gain) of acting from outside: loss integrals of the same policy, by seed."""
    for outside in runs:
        inside = outside.inside_of(runs)
        reference = inside.number("sharing_loss_integral") if inside is not None else 0.0
        if inside is None or reference <= 0:
            continue
        own = outside.number("sharing_loss_integral")
        yield OfVariant(
            own <= reference * (1 + SAME),
            f"{outside.label}: sharing loss {own:.1f} s, {own / reference:.2f} of {inside.label}'s "
            f"({reference:.1f} s); {_last_loss(outside)} against {_last_loss(inside)}",
            outside.variant_without_seed(),
            (Figure("sharing loss", own, "s", 1, against=reference, of=inside.variant_without_seed()),),
        )


def naive_hierarchy_starves(runs: Sequence[Run]) -> Finding | None:
    """Figs. 10a, b: under the naive hierarchical policy a leaf gets nothing for minutes; under H-LTRF it does not."""
    naive = _of(runs, "naive-hltrf")
    if not naive:
        return None
    worst: list[tuple[str, float, float]] = []
    cases: list[OfVariant] = []
    for run in naive:
        spans = run.starvation
        queue = max(spans, key=lambda name: spans[name][0], default=None)
        if queue is None:
            continue
        length, start, end = spans[queue]
        worst.append((queue, length, starved_s(run)))
        when = f"(from {_seconds(start)} to {_seconds(end)})"
        text = f"{run.label}: {queue} asks and runs no task for {_seconds(length)} {when}"
        cases.append(_longest(run, length, text, holds=length >= starved_s(run)))
    if not worst:
        return None
    starved = {queue for queue, length, least in worst if length >= least}
    mended = []
    for run in _of(runs, "hltrf"):
        spans = {queue: span for queue, span in run.starvation.items() if queue in starved or not starved}
        if spans:
            queue = max(spans, key=lambda name: spans[name][0])
            least = starved_s(run)
            mended.append(spans[queue][0] < least)
            text = (
                f"{run.label}: at longest {queue} asks and runs no task for {_seconds(spans[queue][0])} "
                f"(starved from {_seconds(least)} on)"
            )
            cases.append(_longest(run, spans[queue][0], text, holds=mended[-1]))
    return Finding(
        "The naive hierarchy starves a queue, H-LTRF does not",
        "LTYARN section 7.6, Figs. 10a to 10c",
        "TPC-H gets nothing from 900 s to 1580 s under the naive approach, because its sibling has used the group's "
        "share; under H-LTRF it is not starved.",
        "starved: a queue asks and runs no task for 2 (T_wait + T_task) or more: what the rule itself may take until "
        "an application master and its first task have their containers (naive approach here: "
        f"{_seconds(worst[0][2])}; the paper's case: 680 s). H-LTRF is judged by the queues that starve under the "
        "naive approach",
        verdict(mended) if starved and mended else "holds in part" if starved else "does not hold",
        evidence_of(cases),
    )


def _longest(run: Run, length_s: float, text: str, *, holds: bool) -> OfVariant:
    """Return one run's longest time in which a queue asks and runs no task."""
    figure = Figure("the longest time in which a queue asks and runs no task", length_s, "s")
    return OfVariant(holds, text, run.variant_without_seed(), (figure,))


def shorter_waits_give_more_tasks(runs: Sequence[Run]) -> Finding | None:
    """Figs. 10c, 11b: the shorter T_wait, the more tasks the starved queue runs while it starves.

    Judged by seed, because the starving queue and its time differ between seeds.
    """
    falling: list[bool] = []
    cases: list[OfVariant] = []
    spans_said: list[str] = []
    for naive in _of(runs, "naive-hltrf"):
        waits = [
            (t_wait, run)
            for run in _of(runs, "hltrf")
            if run.mode == "inside" and run.beside(naive) and (t_wait := _t_wait(run)) is not None
        ]
        spans = naive.starvation
        queue = max(spans, key=lambda name: spans[name][0], default=None)
        if naive.mode != "inside" or queue is None or spans[queue][0] < starved_s(naive):
            continue
        _, start, end = spans[queue]
        series = sorted(waits, key=lambda pair: (pair[0], pair[1].label))
        means = [(t_wait, run, run.mean_running(queue, start, end)) for t_wait, run in series]
        known = [(t_wait, run, mean) for t_wait, run, mean in means if mean is not None]
        if len(known) < 2:
            continue
        steps = [after <= before for (*_, before), (*_, after) in itertools.pairwise(known)]
        falling.append(all(steps))
        spans_said.append(f"of {queue} between {_seconds(start)} and {_seconds(end)}")
        for at, (t_wait, run, mean) in enumerate(known):
            text = f"T_wait {t_wait:g} s ({run.label}): {mean:.1f} tasks of {queue} on average"
            task_s = run.task_s.get(queue)
            if t_wait > 0 and task_s is not None:
                text += f"; eq. (7) expects {task_s:.1f} / {t_wait:g} = {task_s / t_wait:.1f}"
            figure = Figure(f"running tasks of {queue}", mean, "", 1)
            # Compared with the next shorter and the next longer wait of the same seed.
            cases.append(OfVariant(all(steps[max(at - 1, 0) : at + 1]), text, run.variant_without_seed(), (figure,)))
    if not falling:
        return None
    more = f" with the first of {len(falling)} seeds, in each seed its own" if len(falling) > 1 else ""
    return Finding(
        "The shorter T_wait, the more a starved queue runs",
        "LTYARN section 7.6, Figs. 10c and 11",
        "TPC-H runs actively with T_wait = 0, 2 to 10 tasks with 10 s, 1 to 4 tasks with 80 s.",
        f"mean running tasks {spans_said[0]} (its starvation under the naive approach{more}) never grow with T_wait",
        verdict(falling),
        evidence_of(cases),
    )


def _t_wait(run: Run) -> float | None:
    """Return the setting T_wait as a number (including `inf`); None if it is derived from the tasks."""
    try:
        return float(run.settings["t_wait"])
    except (KeyError, TypeError, ValueError):
        return None


#: In order of display.
RULES: tuple[Rule, ...] = (
    static_is_neutral,
    memoryless_keeps_losing,
    long_term_stops_losing,
    long_term_loses_less,
    outside_costs,
    sharing_is_faster,
    neither_is_always_faster,
    naive_hierarchy_starves,
    shorter_waits_give_more_tasks,
)


def find(runs: Sequence[Run], rules: Sequence[Rule] = RULES) -> list[Finding]:
    """Return every finding that these runs support. Unfinished and invalid runs are ignored."""
    counted = [run for run in runs if run.counts]
    return [finding for rule in rules if (finding := rule(counted)) is not None]
