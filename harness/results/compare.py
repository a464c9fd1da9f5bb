"""Compares groups of repeated runs with a reference: medians, difference, interval, test, verdict.

Formats no tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any, Literal

from harness.base.stats import Correction, adjusted, interval_paired, interval_unpaired, rank_sum, signed_rank
from harness.base.words import counted, percent_text
from harness.results.catalogue import Key, in_order
from harness.results.metric import Metric
from harness.results.runs import Contest, Group, RunRecord

Verdict = Literal["better", "worse", "higher", "lower", "equal", "no difference shown", "too few repeats", "not tested"]
ALPHA = 0.05
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Contender:
    """Comparison of one group with the reference in one metric. Values in the metric's unit."""

    label: str
    n: int
    median: float
    #: Paired: the median of the pairs' differences; otherwise the difference of the medians.
    difference: float
    #: The difference relative to the size of the reference's median; None if that is 0.
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
        """Return whether one direction of the metric is better."""
        return self.key.metric.better != "neither"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of one comparison of groups."""

    title: str
    groups: Sequence[Group]
    rows: Sequence[Row]
    correction: Correction
    alpha: float


def number_text(value: float, digits: int) -> str:
    """Format a number with thousands separators; with more digits if it would become 0."""
    if value and abs(value) < 0.5 * 10**-digits:
        return f"{value:.2g}"
    text = f"{value:,.{digits}f}"
    return text[1:] if text.startswith("-") and not float(text.replace(",", "")) else text


def amount_text(value: float, metric: Metric, digits: int | None = None) -> str:
    """Format a value of a metric with its unit."""
    unit = f" {metric.unit}" if metric.unit else ""
    return number_text(value, metric.digits if digits is None else digits) + unit


def _values(runs: Iterable[RunRecord], key: Key) -> list[float]:
    return [run.values[key] for run in runs if key in run.values]


def _pairs(reference: Group, group: Group, key: Key) -> list[tuple[float, float]] | None:
    """Return values of the same seed and repeat; None if the groups do not pair completely."""
    ours, theirs = reference.seeds, group.seeds
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
    """Compare every metric of every group with the contest's first group.

    Metrics with a direction form one family of tests, those without another. Metrics whose values are all equal are not
    tested and do not count.
    """
    reference, *others = contest.groups
    keys = in_order(key for group in contest.groups for run in group.runs for key in run.values)
    rows = []
    for key in keys:
        own = _values(reference.runs, key)
        if not own:
            continue
        held = [found for group in others if (found := _held(reference, group, key)) is not None]
        if held:
            rows.append(Row(key, len(own), median(own), tuple(held)))
    corrected = {}
    for family in (True, False):
        tested = [own for row in rows if row.judged == family for own in row.contenders if own.p is not None]
        corrected[family] = iter(_corrected(tested, correction, alpha))
    for at, row in enumerate(rows):
        judged = [_judged(row.key.metric, own, corrected[row.judged], alpha) for own in row.contenders]
        rows[at] = replace(row, contenders=tuple(judged))
    return Comparison(contest.title, contest.groups, rows, correction, alpha)


def _corrected(tested: Sequence[Contender], correction: Correction, alpha: float) -> list[tuple[float, float]]:
    """Correct the p-values of a family of tests; return for each the corrected p and its smallest possible value.

    The latter is the corrected value of the smallest p that this number of runs can give, with the other tests
    unchanged. If even that exceeds `alpha`, there were too few runs to show any difference.
    """
    p = [own.p for own in tested if own.p is not None]
    found = adjusted(p, correction)
    known: dict[tuple[float, float], float] = {}
    out = []
    for at, (own, value) in enumerate(zip(tested, found, strict=True)):
        if value <= alpha or own.least_p > alpha:
            out.append((value, own.least_p))
            continue
        case = (p[at], own.least_p)
        if case not in known:
            known[case] = adjusted([*p[:at], own.least_p, *p[at + 1 :]], correction)[at]
        out.append((value, known[case]))
    return out


def _judged(metric: Metric, own: Contender, corrected: Iterator[tuple[float, float]], alpha: float) -> Contender:
    """Return the comparison with its next corrected p-value, and the resulting verdict."""
    if own.p is not None:
        p_adjusted, least = next(corrected)
        own = replace(own, p_adjusted=p_adjusted, least_p=least)
    own = replace(own, verdict=_verdict(metric, own, alpha))
    return replace(own, words=_words(metric, own))


def _verdict(metric: Metric, own: Contender, alpha: float) -> Verdict:
    if own.verdict == "equal":
        return "equal"
    if own.p_adjusted is None:
        return "not tested"
    if own.p_adjusted <= alpha and own.sign:
        worse = metric.is_worse(own.sign, 0)
        if worse is None:
            return "higher" if own.sign > 0 else "lower"
        return "worse" if worse else "better"
    return "too few repeats" if own.least_p > alpha else "no difference shown"


def _words(metric: Metric, own: Contender) -> str:
    by = ("+" if own.difference > 0 else "") + amount_text(own.difference, metric)
    if own.relative is not None:
        by += f" ({percent_text(own.relative)})"
    if own.verdict == "equal":
        return "equal in every run"
    if own.verdict == "not tested":
        favour = {None: "", True: ", worse", False: ", better"}[metric.is_worse(own.difference, 0)]
        favour = favour if own.difference else ""
        return f"{by}{favour} in one run each: not tested"
    if own.verdict == "too few repeats":
        return f"{by}, but in too few runs to tell it from chance"
    if own.verdict == "no difference shown":
        return f"no difference shown ({by})"
    return f"{own.verdict} by {by}"


def document(comparison: Comparison) -> dict[str, Any]:
    """Return the document of ``compare --json``."""
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
        "verdicts": {
            group.label: " ".join(verdict_sentences(comparison, group.label)) for group in comparison.groups[1:]
        },
        "confidence": CONFIDENCE,
        "metrics": [_row_document(row) for row in comparison.rows],
    }


#: Fields on which a verdict is based and which a document omits.
_OF_THE_TEST = ("sign", "least_p")


def _row_document(row: Row) -> dict[str, Any]:
    return {
        **row.key.document(),
        "key": row.key.key,
        "queue": row.key.queue,
        "title": row.key.metric.title,
        "reference": {"n": row.n, "median": row.median},
        "contenders": [
            {"paired": own.pairs is not None}
            | {one.name: getattr(own, one.name) for one in fields(own) if one.name not in _OF_THE_TEST}
            for own in row.contenders
        ],
    }


#: The number of metrics that a verdict names, and the metrics that it names first, because they matter most.
_NAMED = 3
_FIRST = ("sharing_loss_integral", "makespan_s", "queues.mean_completion_s")
#: Advised number of runs per group.
_ENOUGH = 12
#: Texts of a verdict on metrics without a proven difference: for one, for several.
_UNSHOWN: tuple[tuple[Verdict, str, str], ...] = (
    ("no difference shown", "shows no difference", "show no difference"),
    ("equal", "is equal in every run", "are equal in every run"),
    ("too few repeats", "differs in too few runs to tell", "differ in too few runs to tell"),
    ("not tested", "is not tested", "are not tested"),
)


def verdict_sentences(comparison: Comparison, label: str) -> tuple[str, str]:
    """Return two sentences on one contender.

    The first tells which metrics are certainly better or worse, the second how many are uncertain, and why.

    Only metrics with a better direction count. Metrics of _FIRST are named first, then the largest relative
    differences.
    """
    reference = comparison.groups[0].label
    of: dict[str, list[tuple[Key, Contender]]] = {}
    for row in comparison.rows:
        for own in row.contenders:
            if row.judged and own.label == label:
                of.setdefault(own.verdict, []).append((row.key, own))
    total = sum(len(found) for found in of.values())
    if not total:
        return f"{label} and {reference} have no metric in common that has a better direction.", "Nothing is compared."
    shown = [f"{verdict} in {_listed(of[verdict])}" for verdict in ("better", "worse") if verdict in of]
    if shown:
        first = f"Against {reference}, {label} is {' and '.join(shown)}."
    elif set(of) == {"equal"}:
        first = f"{label} and {reference} are equal in every metric."
    elif "not tested" in of:
        first = f"Nothing is shown: {label} and {reference} have one run each."
    else:
        first = f"Nothing is shown: {label} differs from {reference} in no metric by more than chance."
    return first, _unshown(of, total)


def method(comparison: Comparison, label: str) -> str:
    """Describe in one sentence how a contender's differences, intervals and p-values were computed."""
    own = (one for row in comparison.rows for one in row.contenders if one.label == label)
    paired = any(one.pairs is not None for one in own)
    return (
        f"{'Paired by seed: the median of the differences' if paired else 'The difference of the medians'}, its "
        "95 % interval by bootstrap (4,000 resamples), a permutation test on ranks "
        f"({'signed ranks' if paired else 'rank sums'}), p corrected for the number of metrics "
        f"({ {'bh': 'Benjamini-Hochberg', 'holm': 'Holm', 'none': 'not at all'}[comparison.correction] })."
    )


def _listed(found: Sequence[tuple[Key, Contender]]) -> str:
    """Return a text such as ``5 metrics (makespan -12.0 %; ...; 2 more)``."""
    return f"{counted(len(found), 'metric')} ({'; '.join(_named(found))})"


def _named(found: Sequence[tuple[Key, Contender]]) -> list[str]:
    """Return the names of the metrics in _FIRST, then of those with the largest relative differences, with sizes.

    The last entry tells how many more metrics there are.
    """
    ordered = sorted(found, key=lambda one: (one[0].key not in _FIRST, -abs(one[1].relative or 0.0)))
    named = [
        key.title() + (f" {percent_text(own.relative)}" if own.relative is not None else "")
        for key, own in ordered[:_NAMED]
    ]
    return [*named, f"{len(found) - _NAMED} more"] if len(found) > _NAMED else named


def named_changes(comparison: Comparison, label: str, verdict: Verdict) -> list[str]:
    """Return the metrics of one verdict that a summary of a contender names, as in `verdict_sentences`."""
    return _named(
        [
            (row.key, own)
            for row in comparison.rows
            for own in row.contenders
            if row.judged and own.label == label and own.verdict == verdict
        ]
    )


def _unshown(of: dict[str, list[tuple[Key, Contender]]], total: int) -> str:
    """Describe how many metrics show no difference, and what would show one."""
    parts = [
        f"{len(of[verdict])} {one if len(of[verdict]) == 1 else more}"
        for verdict, one, more in _UNSHOWN
        if verdict in of
    ]
    if not parts:
        return f"All {total} metrics differ by more than chance."
    few = [own for verdict in ("too few repeats", "not tested") for _, own in of.get(verdict, ()) if own.n < _ENOUGH]
    more_seeds = f": take more seeds (`--seed 1-{_ENOUGH}`)" if few else ""
    return f"Of {total} metrics {', '.join(parts)}{more_seeds}."
