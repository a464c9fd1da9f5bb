"""The page's tables: policies compared, waits, decisions, what was run. Words and numbers as text; no HTML."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from harness.report.data import SHOWN_DECISIONS, Run, short
from harness.report.variants import Variant, grouped, interval_text, range_text
from harness.results.catalogue import Key, in_order
from harness.results.comparison import Measure, shown
from harness.results.metric import Metric
from harness.results.phases import FILE, span
from harness.results.summary import open_jobs

ABSENT = "\u2013"


@dataclass(frozen=True, slots=True)
class Head:
    """A column's heading; `unit` (possibly empty) marks a column of numbers."""

    text: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table for the template: the first cell of a row is its heading."""

    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[str]]
    note: str = ""
    numeric: bool = True
    #: Cells (row, column) with the best value among the policies; the page prints them bold.
    best: frozenset[tuple[int, int]] = frozenset()


def figure_text(value: float | None, digits: int = 0) -> str:
    """Format a number for a table cell: thousands separators, a true minus, a dash if unknown."""
    if value is None or not math.isfinite(value):
        return ABSENT
    text = f"{value:,.{digits}f}"
    return "0" + text[2:] if text.startswith("-0") and not float(text.replace(",", "")) else text.replace("-", "\u2212")


#: With more queues than this, a table has one row per queue instead of a column.
_MOST_COLUMNS = 12


def by_queue(
    caption: str,
    queues: Sequence[str],
    unit: str,
    rows: Sequence[Sequence[str]],
    note: str = "",
    best: Iterable[tuple[int, int]] = (),
) -> Table:
    """Return a table of a value by queue and policy, from rows of (policy, one cell per queue).

    Many queues become rows.

    ``best``: cells of these rows (row, column).
    """
    names = [short(queue) for queue in queues]
    if len(names) <= _MOST_COLUMNS:
        heads = [Head("policy"), *(Head(name, unit) for name in names)]
        return Table(caption, heads, rows, note, best=frozenset(best))
    heads = [Head("queue"), *(Head(row[0], unit) for row in rows)]
    turned = [[name, *(row[at] for row in rows)] for at, name in enumerate(names, 1)]
    return Table(caption, heads, turned, note, best=frozenset((at - 1, row + 1) for row, at in best))


#: Metrics of a run's curves over time, which do not depend on which jobs have ended.
_WITHOUT_JOBS = frozenset(
    (
        *("sharing_benefit", "sharing_loss", "sharing_loss_integral", "last_loss_s", "queues.fairness_degree"),
        *("utilisation.*", "soft_fairness"),
    )
)


def best_cells(
    variants: Sequence[Variant], columns: Sequence[tuple[Metric, Callable[[Run], float | None]]]
) -> Iterator[tuple[int, int]]:
    """Return the cells (row, column) with the best mean, in a table of one row per variant and these columns.

    Only runs of the same experiment on the same backend are compared, and means over jobs only if no job was open when
    a run was cut. Means that differ by less than the metric's smallest relevant difference are equally good; if all
    are, none is marked.
    """
    loads: dict[tuple[object, object], list[int]] = {}
    # Means over jobs of a run that was cut only cover the jobs that had ended by then.
    cut = set()
    for row, one in enumerate(variants):
        loads.setdefault((one.first.hash, one.first.backend), []).append(row)
        if any(open_jobs(own) for run in one.runs for own in (run.summary.get("queues") or {}).values()):
            cut.add(row)
    for every, (at, (metric, value_of)) in itertools.product(loads.values(), enumerate(columns, 1)):
        own = [row for row in every if row not in cut or metric.key in _WITHOUT_JOBS]
        means = {row: mean for row in own if (mean := _mean(variants[row], value_of)) is not None}
        if metric.better == "neither" or len(means) < 2:
            continue
        lowest, highest = min(means.values()), max(means.values())
        best = highest if metric.better == "higher" else lowest
        near = max(metric.matters, 0.5 * 10.0**-metric.digits)
        if highest - lowest > near:
            yield from ((row, at) for row, mean in means.items() if abs(mean - best) <= near)


def _mean(variant: Variant, value_of: Callable[[Run], float | None]) -> float | None:
    """Return the mean of a value over the seeds; None if a seed has none."""
    values = [value_of(run) for run in variant.runs]
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def _per_queue(
    caption: str,
    variants: Sequence[Variant],
    queues: Sequence[str],
    unit: str,
    cell: Callable[[Variant, str], str],
    note: str = "",
    best: Iterable[tuple[int, int]] = (),
) -> list[Table]:
    """Return `by_queue` for a cell of each variant and queue; no table if there is no value."""
    rows = [[variant.name, *(cell(variant, queue) for queue in queues)] for variant in variants]
    known = any(c != ABSENT for row in rows for c in row[1:])
    return [by_queue(caption, queues, unit, rows, note, best)] if known else []


def banded(text: str, between: tuple[float, float] | None, digits: int = 0, scale: float = 1.0) -> str:
    """Return a value with its smallest and largest over the phases, if it has phases."""
    if between is None or text == ABSENT:
        return text
    low, high = (figure_text(value * scale, digits) for value in between)
    return f"{text} ({low} to {high})"


def mean_of(variant: Variant, value_of: Callable[[Run], float | None], digits: int) -> str:
    """Return the mean of a value over the seeds with its interval (`interval_text`); a dash if a seed has none."""
    values = [value_of(run) for run in variant.runs]
    known = [value for value in values if value is not None]
    return interval_text(known, lambda value: figure_text(value, digits)) if len(known) == len(values) else ABSENT


def _cell(variant: Variant, one: Measure) -> str:
    """Return a measure's value with its interval over seeds or its band over phases."""
    # Counts are equal in each phase.
    found = None if one.key in _COUNTS else span(variant.first.phases, *one.path)
    return banded(mean_of(variant, lambda run: one.of(run.summary), one.digits), found, one.digits, one.scale)


def _queues(variants: Sequence[Variant]) -> list[str]:
    """Return the queues of these runs' summaries, in the order of all tables."""
    return list(dict.fromkeys(queue for one in variants for run in one.runs for queue in run.summary_queues()))


def _of_queues(variants: Sequence[Variant], measure: Measure) -> list[Table]:
    """Return a metric of each queue under each policy."""
    queues = _queues(variants)
    each = {queue: replace(measure, name=queue) for queue in queues}
    best = best_cells(variants, [(one.metric, partial(_measured, one)) for one in each.values()])
    return _per_queue(
        measure.title, variants, queues, measure.unit, lambda one, queue: _cell(one, each[queue]), measure.note, best
    )


def _measured(measure: Measure, run: Run) -> float | None:
    # In the metric's own unit, to which its relevant difference belongs.
    value = measure.of(run.summary)
    return None if value is None else value / measure.scale


def means_said(variants: Sequence[Variant]) -> str:
    """Explain values with a plus-minus sign or with brackets; '' if each is of one run."""
    counts = [len(variant.runs) for variant in variants]
    said = []
    if max(counts, default=1) > 1:
        said.append(f"means over {range_text(counts)} seeds, \u00b1 half of the 95 % interval of the mean")
    said += dict.fromkeys(variant.first.phases.said for variant in variants if variant.first.phases is not None)
    return "".join(f"{text[:1].upper()}{text[1:]}. " for text in said)


def tabled(runs: Sequence[Run]) -> list[Variant]:
    """Return the variants of runs, each with the runs over which its values are averaged.

    These are the valid runs, or all runs if none is valid (the page then warns). For runs with phases it is a single
    run, because the phases are the same for each seed.
    """
    found = []
    for variant in grouped(runs):
        counted = [run for run in variant.runs if run.counts] or list(variant.runs)
        found.append(Variant(variant.name, counted[:1] if counted[0].phases is not None else counted))
    return found


#: Metrics of the first table, for the whole run, and metrics with a table by queue.
_OVERALL = (
    shown("makespan_s"),
    shown("sharing_benefit", title="sharing benefit"),
    shown("sharing_loss", title="mean loss", digits=3),
    shown("sharing_loss_integral", title="sharing loss", digits=1),
    shown("last_loss_s", title="last loss", digits=1),
)
_UTILISATION = shown("utilisation.*", digits=1, percent=True)
_JOBS, _FAILED = shown("queues.*.jobs", title="Jobs"), shown("queues.*.failed", title="Failed jobs", rare=True)
_COUNTS = (_JOBS.key, _FAILED.key)
_DEGREE = "1 is what the queue's own partition would have given."
_SLOWDOWN = "Completion time over what the job would take alone on the empty cluster, with tasks of expected length."
_SPEED_UP = "Mean completion under static over that here."
_WORKLOAD = "From the first submission of a queue to the end of its last job."
_BY_QUEUE = (
    shown("queues.*.fairness_degree", title="Fairness degree at the end", note=_DEGREE),
    shown("queues.*.mean_completion_s", title="Mean completion time of a job", note="From submission to end."),
    shown("queues.*.p95_completion_s", title="95th percentile of the completion time"),
    shown("queues.*.mean_slowdown", title="Mean slowdown", note=_SLOWDOWN),
    shown(
        "queues.*.speedup_over_static",
        title="Speed-up of the mean job over the static partition",
        digits=3,
        note=_SPEED_UP,
    ),
    shown("queues.*.workload_s", title="Whole workload", note=_WORKLOAD),
)
_WAIT = shown("queues.*.max_wait_s", title="Longest wait for a container")


def comparison_tables(runs: Sequence[Run]) -> list[Table]:
    """Return tables per policy: makespan, benefit, loss.

    The tables per queue have the fairness degree, mean completion and speed-up over static.
    """
    variants = tabled([run for run in runs if run.summary])
    if not variants:
        return []
    summaries = [run.summary for one in variants for run in one.runs]
    used = [replace(one, title=f"utilisation, {one.title}") for one in _UTILISATION.each(summaries)]
    heads = [Head("policy"), *(Head(one.title, one.unit) for one in (*_OVERALL, *used))]
    rows = [[one.name, *(_cell(one, measure) for measure in (*_OVERALL, *used))] for one in variants]
    caption = "The whole run" if len(summaries) == 1 else "Each policy over the whole run"
    best = frozenset(best_cells(variants, [(one.metric, partial(_measured, one)) for one in (*_OVERALL, *used)]))
    bold = "In all tables the best of a column is bold, with those so near that the difference does not matter. "
    bold = bold if best else ""
    note = (
        f"{means_said(variants)}{bold}Benefit and mean loss are means over time, the sharing loss is the integral of "
        "the loss' size; the last loss is the last time with a loss beyond 0.01 (0: there was none)."
    )
    tables = [Table(caption, heads, rows, note, best=best)]
    counts = [run.of_queues("jobs") for one in variants for run in one.runs]
    for measure in (*_BY_QUEUE, _JOBS, _FAILED):
        if measure.each(summaries):
            alike = measure is _JOBS and all(own == counts[0] for own in counts)
            shown = [Variant("every policy", variants[0].runs[:1])] if alike else variants
            tables += _of_queues(shown, measure)
    return tables + _open_table(variants) + _further_tables(variants)


def _open_table(variants: Sequence[Variant]) -> list[Table]:
    """Return the jobs that were open when their run was cut, which means over jobs leave out."""

    def left(run: Run, queue: str) -> float | None:
        own = (run.summary.get("queues") or {}).get(queue)
        return None if own is None else open_jobs(own)

    queues = _queues(variants)
    if not any(left(run, queue) for one in variants for run in one.runs for queue in queues):
        return []
    note = (
        "Jobs that had neither ended nor failed when the run was cut. Completion times and slowdowns are of those that "
        "had ended, which are other jobs under each policy; of a queue with open jobs there is no speed-up."
    )
    rows = [
        [
            one.name,
            *(mean_of(one, partial(left, queue=queue), digits=0 if len(one.runs) == 1 else 1) for queue in queues),
        ]
        for one in variants
    ]
    if len(rows) > 1 and all(row[1:] == rows[0][1:] for row in rows):
        rows = [["every policy", *rows[0][1:]]]
    return [by_queue("Open jobs", queues, "", rows, note)]


#: Keys that the page already shows in a table or chart, or that say nothing about a policy.
_SHOWN = frozenset(
    (
        *(one.key.replace("*.", "") for one in (*_OVERALL, *_BY_QUEUE, _JOBS, _FAILED, _WAIT)),
        *("utilisation", "mean_between_ends_s", "events", "wall_s", "finished", "queues.ended"),
        *("queues.workload_speedup_over_static", "queues.max_wait_at_s", "queues.resource_seconds"),
    )
)


#: What further figures of the whole run mean: a page that is mailed has to say it itself.
_WORDS: Mapping[str, str] = {
    "fairness_error": "The fairness error is how much less than their shares waiting queues hold at a moment, as a "
    "part of the cluster: 0 is even, and a policy that pays back has to be uneven for a time.",
    "soft_fairness": "The soft fairness degree is how far the largest share is above the smallest of a queue that "
    "waits.",
    "least_loss_integral": "The least possible sharing loss is what the run's service leaves if it is divided as well "
    "as could be at each moment.",
    "last_unavoidable_loss_s": "The last unavoidable loss is the last time at which even that leaves one.",
}


def _further_tables(variants: Sequence[Variant]) -> list[Table]:
    """Return tables of all other values in the summaries, such as metrics of a policy family."""
    keys = in_order(key for one in variants for run in one.runs for key in run.values)
    new = [key for key in keys if key.key not in _SHOWN and key.key.partition(".")[0] not in _SHOWN]
    tables = []
    whole = [key for key in new if key.queue is None]
    origin = _file(variants)
    if whole:
        heads = [Head(key.title(), key.metric.unit) for key in whole]
        rows = [[one.name, *(_further(one, key) for key in whole)] for one in variants]
        best = frozenset(best_cells(variants, [(key.metric, partial(_value, key)) for key in whole]))
        head = [Head("policy"), *heads]
        names = {key.key for key in whole}
        note = " ".join([f"From {origin}.", *(text for name, text in _WORDS.items() if name in names)])
        tables.append(Table("Further figures of the whole run", head, rows, note, best=best))
    for name in dict.fromkeys(key.key for key in new if key.queue is not None):
        of_queues = [key for key in new if key.key == name]
        metric = of_queues[0].metric
        rows = [[one.name, *(_further(one, key) for key in of_queues)] for one in variants]
        better = "" if metric.better == "neither" else f", {metric.better} is better"
        caption = metric.title[:1].upper() + metric.title[1:]
        queues = [key.queue or "" for key in of_queues]
        cells = best_cells(variants, [(key.metric, partial(_value, key)) for key in of_queues])
        tables.append(by_queue(caption, queues, metric.unit, rows, f"From {origin}{better}.", cells))
    return tables


def _value(key: Key, run: Run) -> float | None:
    return run.values.get(key)


def _file(variants: Sequence[Variant]) -> str:
    return FILE if any(one.first.phases is not None for one in variants) else "summary.json"


def _further(variant: Variant, key: Key) -> str:
    name = key.key.removeprefix("queues.").split(".")
    found = span(variant.first.phases, *(name if key.queue is None else ("queues", key.queue, *name)))
    digits = key.metric.digits
    return banded(mean_of(variant, lambda run: run.values.get(key), digits), found, digits)


def decision_tables(runs: Sequence[Run]) -> list[Table]:
    """Return a table for each run with decisions of a controller: the first ones with their reasons.

    The note below a table has the number of all decisions, by type.
    """
    tables = []
    for run in runs:
        made = run.decisions
        if not made.count and not made.unreadable:
            continue
        kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(made.kinds.items()))
        several = f" ({kinds})" if len(made.kinds) > 1 else ""
        note = f"{made.count} in all{several}; the first {min(made.count, SHOWN_DECISIONS)} are shown, all stand in "
        note += f"{run.path.name}/decisions.jsonl."
        if made.unreadable:
            note += f" {made.unreadable} line(s) could not be read."
        places = {queue: k for k, queue in enumerate([*run.parents, *run.leaves])}
        first = [{name: _ordered(value, places) for name, value in entry.items()} for entry in made.first]
        rows = [[_when(entry), _what(entry), _why(entry, run.counted_resource)] for entry in first]
        heads = [Head("time (s)"), Head("decision"), Head("why")]
        tables.append(Table(f"Decisions of the controller: {run.label}", heads, rows, note, numeric=False))
    return tables


def _ordered(value: object, places: Mapping[str, int]) -> Any:
    """Return a mapping by queue in the order of the page's tables; return anything else unchanged."""
    if not isinstance(value, Mapping) or not any(queue in places for queue in value):
        return value
    return dict(sorted(value.items(), key=lambda item: places.get(item[0], len(places))))


def _when(entry: Mapping[str, object]) -> str:
    value = entry.get("time_s")
    return figure_text(float(value), 1) if isinstance(value, int | float) else ABSENT


def _compact(value: object, limit: int = 240) -> str:
    """Format a value in one shortened line."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{short(str(key))} {_compact(item, 80)}" for key, item in value.items())
    elif isinstance(value, list):
        text = ", ".join(_compact(item, 80) for item in value)
    elif isinstance(value, float):
        text = f"{value:.4g}"
    else:
        text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def _what(entry: Mapping[str, object]) -> str:
    parts = [str(entry[name]) for name in ("kind", "action", "event") if isinstance(entry.get(name), str)]
    changed = entry.get("changed")
    for name, value in entry.items():
        if name in {"time_s", "kind", "action", "event", "reason", "reasons", "why", "counted", "changed"} or not value:
            continue
        shown = value
        if isinstance(value, Mapping) and isinstance(changed, list):
            shown = {queue: item for queue, item in value.items() if queue in changed}
        if shown:
            parts.append(f"{name.replace('_', ' ')}: {_compact(shown)}")
    return "; ".join(parts) or "nothing changed"


#: Display of the resources that a policy counts: unit, and the number of resource-seconds in one.
_COUNTED = {"vcores": ("vcore\u00b7s", 1), "dominant": ("s of the whole cluster", 1)}


def _why(entry: Mapping[str, object], resource: str) -> str:
    for name in ("reasons", "reason", "why"):
        if entry.get(name):
            return _compact(entry[name], 400)
    counted = entry.get("counted")
    if isinstance(counted, Mapping) and all(isinstance(value, int | float) for value in counted.values()):
        unit, size = _COUNTED.get(resource, ("GiB\u00b7s", 1024))
        listed = ", ".join(f"{short(str(queue))} {figure_text(value / size)}" for queue, value in counted.items())
        return f"accumulated so far ({unit}): {listed}"
    return ABSENT


def wait_tables(runs: Sequence[Run]) -> list[Table]:
    """Return tables of the longest times in which a queue waited.

    The first is of waits for a container while some were requested, the second of times with demand and no running
    task.
    """
    leaves = list(dict.fromkeys(leaf for run in runs for leaf in run.starvation))
    variants = tabled(runs)
    note = f"The longest time that a queue with pending containers went without getting one ({_file(variants)})."

    def starved(run: Run, leaf: str) -> float | None:
        return run.starvation[leaf][0] if leaf in run.starvation else None

    return [
        *_of_queues(variants, replace(_WAIT, note=means_said(variants) + note)),
        *_per_queue(
            "Longest time with demand and no running task",
            [Variant(one.name, [run for run in one.runs if run.leaves]) for one in variants],
            leaves,
            "s",
            lambda one, leaf: mean_of(one, partial(starved, leaf=leaf), digits=0) if one.runs else ABSENT,
            "From the samples: more is asked for than held, and no task runs (an application master may wait).",
        ),
    ]


def run_tables(runs: Sequence[Run]) -> list[Table]:
    """Return tables of the runs, one row per run, and of the environment."""
    runs_table = Table(
        "Runs",
        [Head(text) for text in ("run", "policy", "decided", "settings", "seed", "backend", "state", "directory")],
        [
            [
                run.label,
                run.policy,
                {"inside": "in the scheduler", "outside": "from outside"}.get(run.mode, run.mode),
                _compact(run.settings) or ABSENT,
                ABSENT if run.seed is None else str(run.seed),
                str(run.info.get("backend") or ABSENT),
                run.state,
                run.path.name,
            ]
            for run in runs
        ],
        numeric=False,
    )
    environment: dict[str, list[str]] = {}
    for run in runs:
        for heading in ("versions", "machine"):
            found = run.info.get(heading)
            for name, value in (found if isinstance(found, Mapping) else {heading: found} if found else {}).items():
                text = _compact(value)
                known = environment.setdefault(str(name), [])
                if text not in known:
                    known.append(text)
    tables = [runs_table]
    if environment:
        rows = [[name.replace("_", " "), "; ".join(values)] for name, values in environment.items()]
        tables.append(Table("Environment", [Head("what"), Head("value")], rows, numeric=False))
    return tables


def experiments_of(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return each resolved experiment as text, equal ones once."""
    seen: dict[str, str] = {}
    for run in runs:
        if run.described:
            text = json.dumps(run.described, indent=1, ensure_ascii=False, sort_keys=False)
            seen.setdefault(text, f"{run.experiment}, hash {run.hash[:12] or ABSENT}")
    return [(name, text) for text, name in seen.items()]
