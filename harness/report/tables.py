"""The page's tables: policies compared, waits, decisions, what was run. Words and numbers as text; no HTML."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.report.data import SHOWN_DECISIONS, Run, short
from harness.results.catalogue import Key, flat
from harness.results.comparison import Measure
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


def figure_text(value: float | None, digits: int = 0) -> str:
    """A number for a table cell: thousands set apart, a true minus, a dash for what is not known."""
    if value is None or not math.isfinite(value):
        return ABSENT
    text = f"{value:,.{digits}f}".replace(",", "\u202f")
    return (
        "0" + text[2:]
        if text.startswith("-0") and not float(text.replace("\u202f", ""))
        else text.replace("-", "\u2212")
    )


#: Of more queues than this a table has a row a queue, not a column.
_MOST_COLUMNS = 12


def by_queue(caption: str, queues: Sequence[str], unit: str, rows: Sequence[Sequence[str]], note: str = "") -> Table:
    """A figure of each queue under each policy, from rows of (policy, a cell a queue): queues across, many down."""
    names = [short(queue) for queue in queues]
    if len(names) <= _MOST_COLUMNS:
        return Table(caption, [Head("policy"), *(Head(name, unit) for name in names)], rows, note)
    heads = [Head("queue"), *(Head(row[0], unit) for row in rows)]
    return Table(caption, heads, [[name, *(row[at] for row in rows)] for at, name in enumerate(names, 1)], note)


def _per_queue(
    caption: str, runs: Sequence[Run], queues: Sequence[str], unit: str, cell: Callable[[Run, str], str], note: str = ""
) -> list[Table]:
    """`by_queue` of a cell of each run and queue; no table where none has a figure."""
    rows = [[run.label, *(cell(run, queue) for queue in queues)] for run in runs]
    return [by_queue(caption, queues, unit, rows, note)] if any(c != ABSENT for row in rows for c in row[1:]) else []


def banded(text: str, between: tuple[float, float] | None, digits: int = 0, scale: float = 1.0) -> str:
    """A figure with the smallest and the largest over the phases, where it has phases."""
    if between is None or text == ABSENT:
        return text
    low, high = (figure_text(value * scale, digits) for value in between)
    return f"{text} ({low} to {high})"


def _cell(run: Run, one: Measure) -> str:
    """A figure with its band; of a queue where it is named after one."""
    # Counts are the same in each phase.
    found = None if one.key in _COUNTS else span(run.phases, *one.path)
    return banded(figure_text(one.of(run.summary), one.digits), found, one.digits, one.scale)


def _of_queues(runs: Sequence[Run], measure: Measure) -> list[Table]:
    """A measure of each queue under each policy."""
    queues = list(dict.fromkeys(queue for run in runs for queue in run.summary_queues()))
    each = {queue: replace(measure, name=queue) for queue in queues}
    return _per_queue(
        measure.title, runs, queues, measure.unit, lambda run, queue: _cell(run, each[queue]), measure.note
    )


def phases_said(runs: Sequence[Run]) -> str:
    """A sentence on what figures with brackets are; '' where no run has phases."""
    said = dict.fromkeys(run.phases.said for run in runs if run.phases is not None)
    return "".join(f"{text[:1].upper()}{text[1:]}. " for text in said)


def one_each(runs: Sequence[Run]) -> list[Run]:
    """The runs, but one a variant of those that have its phases: these are the same for each of its seeds."""
    found: dict[object, Run] = {}
    for run in runs:
        if run.phases is None:
            found[run.path] = run
        else:
            name = run.variant_without_seed()
            found.setdefault(name, replace(run, label=name))
    return list(found.values())


#: What the first table has of a whole run, and what has a table by queue.
_OVERALL = (
    Measure("makespan", "s", 1, "makespan_s"),
    Measure("sharing benefit", "", 3, "sharing_benefit"),
    Measure("sharing loss", "", 3, "sharing_loss"),
    Measure("loss integral", "s", 1, "sharing_loss_integral"),
    Measure("last loss", "s", 1, "last_loss_s"),
)
_UTILISATION = Measure("utilisation", "%", 1, "utilisation.*", 100.0)
_JOBS, _FAILED = Measure("Jobs", "", 0, "queues.*.jobs"), Measure("Failed jobs", "", 0, "queues.*.failed", rare=True)
_COUNTS = (_JOBS.key, _FAILED.key)
_DEGREE = "1 is what the queue's own partition would have given."
_SLOWDOWN = "See docs/how-results-are-computed.md for what it is relative to."
_SPEED_UP = "Mean completion under static over that here."
_WORKLOAD = "From the first submission of a queue to the end of its last job."
_BY_QUEUE = (
    Measure("Fairness degree at the end", "", 3, "queues.*.fairness_degree", note=_DEGREE),
    Measure("Mean completion time of a job", "s", 1, "queues.*.mean_completion_s", note="From submission to end."),
    Measure("95th percentile of the completion time", "s", 1, "queues.*.p95_completion_s"),
    Measure("Mean slowdown", "", 2, "queues.*.mean_slowdown", note=_SLOWDOWN),
    Measure("Speed-up over the static partition", "", 3, "queues.*.speedup_over_static", note=_SPEED_UP),
    Measure("Whole workload", "s", 0, "queues.*.workload_s", note=_WORKLOAD),
)
_WAIT = Measure("Longest wait for a container", "s", 1, "queues.*.max_wait_s")


def comparison_tables(runs: Sequence[Run]) -> list[Table]:
    """Per policy: makespan, benefit, loss; per queue: fairness degree, mean completion, speed-up over static."""
    counted = one_each([run for run in runs if run.summary])
    if not counted:
        return []
    summaries = [run.summary for run in counted]
    used = [replace(one, title=f"utilisation, {one.title}") for one in _UTILISATION.each(summaries)]
    heads = [Head("policy"), *(Head(one.title, one.unit) for one in (*_OVERALL, *used))]
    rows = [[run.label, *(_cell(run, one) for one in (*_OVERALL, *used))] for run in counted]
    caption = "The whole run" if len(counted) == 1 else "Each policy over the whole run"
    note = (
        f"{phases_said(counted)}Benefit and loss are means over time, the integral is of the loss' size; the last "
        "loss is the last time with a loss beyond 0.01 (0: there was none)."
    )
    tables = [Table(caption, heads, rows, note)]
    alike = all(run.of_queues("jobs") == counted[0].of_queues("jobs") for run in counted)
    for measure in (*_BY_QUEUE, _JOBS, _FAILED):
        if measure.each(summaries):
            one_row = [replace(counted[0], label="every policy")] if measure is _JOBS and alike else counted
            tables += _of_queues(one_row, measure)
    return tables + _open_table(counted) + _further_tables(counted)


def _open_table(runs: Sequence[Run]) -> list[Table]:
    """Jobs that were open when their run was cut: what the means over jobs leave out."""
    found = {run.label: {q: open_jobs(own) for q, own in (run.summary.get("queues") or {}).items()} for run in runs}
    if not any(count for own in found.values() for count in own.values()):
        return []
    queues = list(dict.fromkeys(queue for own in found.values() for queue in own))
    rows = [[label, *(f"{own[q]:g}" if q in own else ABSENT for q in queues)] for label, own in found.items()]
    note = (
        "Jobs that had neither ended nor failed when the run was cut. Completion times and slowdowns are of those that "
        "had ended, which are other jobs under each policy; of a queue with open jobs there is no speed-up."
    )
    return [by_queue("Open jobs", queues, "", rows, note)]


#: Keys that a table or a chart of the page has already, or that say nothing about a policy.
_SHOWN = frozenset(
    (
        *(one.key.replace("*.", "") for one in (*_OVERALL, *_BY_QUEUE, _JOBS, _FAILED, _WAIT)),
        *("utilisation", "mean_between_ends_s", "events", "wall_s", "finished", "queues.ended"),
        *("queues.workload_speedup_over_static", "queues.max_wait_at_s", "queues.resource_seconds"),
    )
)


def _further_tables(runs: Sequence[Run]) -> list[Table]:
    """Whatever else the summaries hold: what a policy family measures besides (harness.results.catalogue)."""
    found = {run.label: flat(run.summary) for run in runs}
    keys = sorted({key for values in found.values() for key in values}, key=lambda key: key.order())
    new = [key for key in keys if key.key not in _SHOWN and key.key.partition(".")[0] not in _SHOWN]
    tables = []
    whole = [key for key in new if key.queue is None]
    if whole:
        heads = [Head(key.title(), key.metric.unit) for key in whole]
        rows = [[run.label, *(_further(run, found[run.label], key) for key in whole)] for run in runs]
        tables.append(Table("Further figures of the whole run", [Head("policy"), *heads], rows, f"From {_file(runs)}."))
    for name in dict.fromkeys(key.key for key in new if key.queue is not None):
        of_queues = [key for key in new if key.key == name]
        metric = of_queues[0].metric
        rows = [[run.label, *(_further(run, found[run.label], key) for key in of_queues)] for run in runs]
        better = "" if metric.better == "neither" else f", {metric.better} is better"
        caption = metric.title[:1].upper() + metric.title[1:]
        queues = [key.queue or "" for key in of_queues]
        tables.append(by_queue(caption, queues, metric.unit, rows, f"From {_file(runs)}{better}."))
    return tables


def _file(runs: Sequence[Run]) -> str:
    return FILE if any(run.phases is not None for run in runs) else "summary.json"


def _further(run: Run, values: Mapping[Key, float], key: Key) -> str:
    name = key.key.removeprefix("queues.").split(".")
    found = span(run.phases, *(name if key.queue is None else ("queues", key.queue, *name)))
    return banded(figure_text(values.get(key), key.metric.digits), found, key.metric.digits)


def decision_tables(runs: Sequence[Run]) -> list[Table]:
    """What the controller decided and why: counts by kind, and the first decisions of each run from outside."""
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
        rows = [[_when(entry), _what(entry), _why(entry, run.counted_resource)] for entry in made.first]
        heads = [Head("time (s)"), Head("decision"), Head("why")]
        tables.append(Table(f"Decisions of the controller: {run.label}", heads, rows, note, numeric=False))
    return tables


def _when(entry: Mapping[str, Any]) -> str:
    value = entry.get("time_s")
    return figure_text(float(value), 1) if isinstance(value, int | float) else ABSENT


def _compact(value: object, limit: int = 240) -> str:
    """A value in a line of words, shortened."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{short(str(key))} {_compact(item, 80)}" for key, item in value.items())
    elif isinstance(value, list):
        text = ", ".join(_compact(item, 80) for item in value)
    elif isinstance(value, float):
        text = f"{value:.4g}"
    else:
        text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def _what(entry: Mapping[str, Any]) -> str:
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


#: How the resources that a policy counts are shown: unit, and how many of the resource's seconds make one.
_COUNTED = {"vcores": ("vcore\u00b7s", 1), "dominant": ("s of the whole cluster", 1)}


def _why(entry: Mapping[str, Any], resource: str) -> str:
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
    """The longest waits: for a container while some were asked for, and with demand and no running task."""
    leaves = list(dict.fromkeys(leaf for run in runs for leaf in run.starvation))
    note = f"The longest time that a queue with pending containers went without getting one ({_file(runs)})."
    return [
        *_of_queues(one_each(runs), replace(_WAIT, note=note)),
        *_per_queue(
            "Longest time with demand and no running task",
            [run for run in runs if run.leaves],
            leaves,
            "s",
            lambda run, leaf: figure_text(run.starvation[leaf][0] if leaf in run.starvation else None, 0),
            "From the samples: more is asked for than held, and no task runs (an application master may wait).",
        ),
    ]


def run_tables(runs: Sequence[Run]) -> list[Table]:
    """What was run, one row a run, and the environment."""
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
    """Each experiment as it was resolved, as text; the same one only once."""
    seen: dict[str, str] = {}
    for run in runs:
        if run.described:
            text = json.dumps(run.described, indent=1, ensure_ascii=False, sort_keys=False)
            seen.setdefault(text, f"{run.experiment}, hash {run.hash[:12] or ABSENT}")
    return [(name, text) for text, name in seen.items()]
