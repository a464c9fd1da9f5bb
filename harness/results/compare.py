"""Groups of repeated runs against a reference: medians, difference, interval, test, verdict. Words and numbers only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal

from harness.base.stats import Correction, adjusted, interval_paired, interval_unpaired, rank_sum, signed_rank
from harness.results.catalogue import Key, Metric
from harness.results.runs import Contest, Group, RunRecord

Verdict = Literal["better", "worse", "higher", "lower", "equal", "no difference shown", "too few repeats", "not tested"]
ALPHA = 0.05
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Contender:
    """One group against the reference in one metric. Values in the metric's unit."""

    label: str
    n: int
    median: float
    #: Paired: the median of the pairs' differences; else the difference of the medians.
    difference: float
    #: The difference over the size of the reference's median; None where that is 0.
    relative: float | None
    interval: tuple[float, float] | None
    pairs: int | None
    test: str | None
    p: float | None
    p_adjusted: float | None
    verdict: Verdict
    words: str
    sign: int = 0
    least_p: float = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one queue (or of the whole run) across the groups."""

    key: Key
    n: int
    median: float
    contenders: tuple[Contender, ...]

    @property
    def judged(self) -> bool:
        return self.key.metric.better != "neither"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One contest, computed."""

    title: str
    groups: Sequence[Group]
    rows: Sequence[Row]
    correction: Correction
    alpha: float


def number_text(value: float, digits: int) -> str:
    """A number with thousands set apart; more digits when it would vanish."""
    if value and abs(value) < 0.5 * 10**-digits:
        return f"{value:.2g}"
    text = f"{value:,.{digits}f}"
    return text[1:] if text.startswith("-") and not float(text.replace(",", "")) else text


def _values(runs: Iterable[RunRecord], key: Key) -> list[float]:
    return [run.values[key] for run in runs if key in run.values]


def _pairs(reference: Group, group: Group, key: Key) -> list[tuple[float, float]] | None:
    """Values of the same seed and repeat; None when the groups do not pair (every run of both has to)."""
    ours, theirs = reference.seeds(), group.seeds()
    if ours is None or theirs is None or set(ours) != set(theirs):
        return None
    found = [
        (ours[at].values[key], theirs[at].values[key])
        for at in ours
        if key in ours[at].values and key in theirs[at].values
    ]
    return found or None


def _held(reference: Group, group: Group, key: Key) -> Contender | None:
    a, b = _values(reference.runs, key), _values(group.runs, key)
    if not a or not b:
        return None
    pairs = _pairs(reference, group, key)
    if pairs is not None:
        differences = [after - before for before, after in pairs]
        difference = median(differences)
        interval = interval_paired(differences, CONFIDENCE)
        test = signed_rank(differences)
        tested = len(pairs) > 1
        equal = not any(differences)
    else:
        difference = median(b) - median(a)
        interval = interval_unpaired(a, b, CONFIDENCE)
        test = rank_sum(a, b)
        tested = len(a) + len(b) > 2
        equal = len({*a, *b}) == 1
    reference_median = median(a)
    return Contender(
        label=group.label,
        n=len(b),
        median=median(b),
        difference=difference,
        relative=difference / abs(reference_median) if reference_median else None,
        interval=interval,
        pairs=len(pairs) if pairs is not None else None,
        test=test.name if tested and not equal else None,
        p=test.p if tested and not equal else None,
        p_adjusted=None,
        verdict="equal" if equal else "not tested",
        words="",
        sign=test.sign,
        least_p=test.least_p,
    )


def compare(contest: Contest, *, correction: Correction = "bh", alpha: float = ALPHA) -> Comparison:
    """Every metric of every group against the contest's first group.

    Metrics with a direction are one family of tests, those without another; where no two values differ there is no
    test, so that it does not count.
    """
    reference, *others = contest.groups
    keys = sorted(
        {key for group in contest.groups for run in group.runs for key in run.values}, key=lambda key: key.order()
    )
    rows = []
    for key in keys:
        own = _values(reference.runs, key)
        if not own:
            continue
        held = [found for group in others if (found := _held(reference, group, key)) is not None]
        if held:
            rows.append(Row(key, len(own), median(own), tuple(held)))
    for judged in (True, False):
        rows = _corrected(rows, judged, correction, alpha)
    return Comparison(contest.title, contest.groups, rows, correction, alpha)


def _corrected(rows: Sequence[Row], judged: bool, correction: Correction, alpha: float) -> list[Row]:
    """p-values of one family corrected, and the verdicts that follow."""
    p = [c.p for row in rows if row.judged == judged for c in row.contenders if c.p is not None]
    left = iter(adjusted(p, correction))
    out = []
    for row in rows:
        if row.judged != judged:
            out.append(row)
            continue
        done = []
        for contender in row.contenders:
            found = replace(contender, p_adjusted=next(left) if contender.p is not None else None)
            found = replace(found, verdict=_verdict(row.key.metric, found, alpha))
            done.append(replace(found, words=_words(row.key.metric, found)))
        out.append(replace(row, contenders=tuple(done)))
    return out


def _verdict(metric: Metric, own: Contender, alpha: float) -> Verdict:
    if own.verdict == "equal":
        return "equal"
    if own.p_adjusted is None:
        return "not tested"
    if own.p_adjusted <= alpha and own.sign:
        if metric.better == "neither":
            return "higher" if own.sign > 0 else "lower"
        return "better" if (own.sign > 0) == (metric.better == "higher") else "worse"
    return "too few repeats" if own.least_p > alpha else "no difference shown"


def _words(metric: Metric, own: Contender) -> str:
    unit = f" {metric.unit}" if metric.unit else ""
    sign = "+" if own.difference > 0 else ""
    by = f"{sign}{number_text(own.difference, metric.digits)}{unit}"
    if own.relative is not None:
        by += f" ({own.relative:+.1%})"
    if own.verdict == "equal":
        return "equal in every run"
    if own.verdict == "not tested":
        favour = ""
        if metric.better != "neither" and own.difference:
            favour = ", better" if (own.difference > 0) == (metric.better == "higher") else ", worse"
        return f"{by}{favour} in one run each: not tested"
    if own.verdict == "too few repeats":
        return f"{by}, but so few repeats cannot tell it from chance"
    if own.verdict == "no difference shown":
        return f"no difference shown ({by})"
    return f"{own.verdict} by {by}"


def document(comparison: Comparison) -> dict[str, Any]:
    """As ``compare --json`` prints it."""
    return {
        "title": comparison.title,
        "reference": comparison.groups[0].label,
        "groups": [
            {
                "label": group.label,
                "runs": [str(run.path) for run in group.runs],
                "seeds": [run.seed for run in group.runs],
            }
            for group in comparison.groups
        ],
        "correction": comparison.correction,
        "alpha": comparison.alpha,
        "confidence": CONFIDENCE,
        "metrics": [_row_document(row) for row in comparison.rows],
    }


def _row_document(row: Row) -> dict[str, Any]:
    metric = row.key.metric
    return {
        "metric": row.key.text(),
        "key": row.key.key,
        "queue": row.key.queue,
        "title": metric.title,
        "unit": metric.unit,
        "better": metric.better,
        "reference": {"n": row.n, "median": row.median},
        "contenders": [
            {
                "label": own.label,
                "n": own.n,
                "median": own.median,
                "difference": own.difference,
                "relative": own.relative,
                "interval": list(own.interval) if own.interval is not None else None,
                "paired": own.pairs is not None,
                "pairs": own.pairs,
                "test": own.test,
                "p": own.p,
                "p_adjusted": own.p_adjusted,
                "verdict": own.verdict,
                "words": own.words,
            }
            for own in row.contenders
        ],
    }


def tally(comparison: Comparison, label: str) -> dict[str, list[str]]:
    """The judged metrics by verdict for one contender: titles."""
    found: dict[str, list[str]] = {}
    for row in comparison.rows:
        for own in row.contenders:
            if row.judged and own.label == label:
                found.setdefault(own.verdict, []).append(row.key.title())
    return found


def summary_words(comparison: Comparison, label: str) -> str:
    """One sentence about one contender."""
    found = tally(comparison, label)
    reference = comparison.groups[0].label
    parts = []
    for verdict in ("better", "worse"):
        if verdict in found:
            listed = ", ".join(found[verdict][:4]) + (
                f" and {len(found[verdict]) - 4} more" * (len(found[verdict]) > 4)
            )
            parts.append(f"{verdict} in {len(found[verdict])} ({listed})")
    for verdict, words in (
        ("no difference shown", "no difference shown in"),
        ("equal", "equal in"),
        ("too few repeats", "too few repeats to tell in"),
        ("not tested", "not tested (one run each) in"),
    ):
        if verdict in found:
            parts.append(f"{words} {len(found[verdict])}")
    return f"{label} against {reference}: " + ("; ".join(parts) or "nothing to compare")
