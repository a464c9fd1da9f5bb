"""The first screen: the verdict in sentences, one chart before and after, winners and losers by queue.

For several runs, it shows the two that the sentences of `yarnfair run` are about (harness.results.sentences). For one
run, it compares each queue with its due.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from statistics import fmean

from markupsafe import Markup

from harness.base.errors import YarnfairError
from harness.base.stats import half_width_95
from harness.policies.registry import policy_class
from harness.policies.static import Static
from harness.report.data import Run, labelled_alone, short
from harness.report.svg import COLOURS, WIDTH, lettering, nice_ticks, number, whole
from harness.report.tables import Head, Table, banded, figure_text
from harness.report.variants import variants_of
from harness.results.comparison import over_seeds
from harness.results.phases import Phases, span
from harness.results.sentences import SAME, Ran, before_and_after, change, completion_of, percent, sentences

#: Maximum number of drawn queues: those that changed most. The table has all.
MOST_QUEUES = 14
_MEAN = "mean_completion_s"
_NAMES, _LEFT, _RIGHT, _ROW, _TOP, _BOTTOM = 19, 132, 14, 20, 8, 40


@dataclass(frozen=True, slots=True)
class Move:
    """One queue: a value before and after. ``better``: -1 worse, 0 the same, 1 better.

    ``span``: a range of the value after; ``changes``: a range of the relative change. For runs in many phases, each
    goes from the smallest to the largest value; for several seeds, it is the 95 % interval. ``unclear``: text for a
    change of uncertain direction. ``part``: the relative change, if it is not that of the two values: with several
    seeds it is the mean of the seeds' changes, which ``changes`` is the interval of.
    """

    queue: str
    before: float
    after: float
    better: int
    span: tuple[float, float] | None = None
    changes: tuple[float, float] | None = None
    unclear: str = "not in every phase"
    part: float | None = None

    @property
    def change(self) -> float:
        """Return the relative change; 0.1: after is 10 % larger than before."""
        return self.after / self.before - 1 if self.part is None else self.part

    @property
    def is_clear(self) -> bool:
        """Return whether every phase, or the whole interval over the seeds, has the change's direction."""
        return self.changes is None or not self.changes[0] < 0 < self.changes[1]


@dataclass(frozen=True, slots=True)
class First:
    """The first screen. ``chart`` is an ``<svg>`` element; '' if no queue has values."""

    sentences: Sequence[str]
    chart: Markup
    caption: str
    tables: Sequence[Table]
    #: The experiment that it is about, if the page has several.
    title: str = ""
    #: Names of runs and queues in the sentences, in which numbers are not formatted.
    names: Sequence[str] = ()


def firsts_of(runs: Sequence[Run]) -> list[First]:
    """Return a first screen for each experiment (on each backend) of these runs, without empty ones."""
    by_origin: dict[str, list[Run]] = {}
    for run in runs:
        if run.counts:
            by_origin.setdefault(repr(_origin(run)), []).append(run)  # a damaged file may hold anything there
    names = [str(own[0].experiment) for own in by_origin.values()]
    found = []
    for at, (name, own) in enumerate(zip(names, by_origin.values(), strict=True)):
        first = first_of(labelled_alone(own))  # the title names the experiment, so that labels need not
        if first is not None:
            title = name if len(names) > 1 else ""
            if names.count(name) > 1:  # two experiments of one name, or one on two backends
                title += f" ({own[0].info.get('backend')}, {str(own[0].info.get('hash'))[:8]})"
            # Every identifier occurs once per page.
            chart = Markup(str(first.chart).replace("first-", f"first-{at}-") if at else first.chart)
            found.append(replace(first, title=title, chart=chart))
    return found


def first_of(runs: Sequence[Run]) -> First | None:
    """Return the first screen of a page about these YARN runs; None if no run is valid."""
    counted = [run for run in runs if run.counts]
    if not counted:
        return None
    origin = _origin(counted[0])
    able = [run for run in counted if _origin(run) == origin]
    ran = _ran(able)
    pair = before_and_after(ran)
    if pair is not None:
        phases = {run.variant_without_seed(): run.phases for run in able}
        return _two(able[0].experiment, ran, *pair, [phases[one.label] for one in pair])
    return _one(counted[0]) if len(counted) == 1 else None


def _origin(run: Run) -> tuple[object, ...]:
    """Return what runs must have in common to be compared in a sentence."""
    return run.info.get("hash"), run.info.get("backend")


def _ran(runs: Sequence[Run]) -> list[Ran]:
    """Return one record for each variant, with the means over its seeds."""
    return [
        Ran(
            variant.name,
            _gives_back(variant.runs[0].policy),
            variant.runs[0].mode == "outside",
            over_seeds([run.summary for run in variant.runs]),
            "horizon_s" in variant.runs[0].settings,
            ":" in variant.runs[0].policy,
            {run.seed: run.summary for run in variant.runs if run.seed is not None and run.phases is None},
            variant.runs[0].scheduler,
            variant.runs[0].policy != Static.name,
        )
        for variant in variants_of(runs)
    ]


def _gives_back(policy: str) -> bool:
    """Return whether a policy has a memory; False for one that is no longer available (a user's file)."""
    try:
        return policy_class(policy).gives_back
    except YarnfairError:
        return False


def _two(name: str, ran: Sequence[Ran], before: Ran, after: Ran, phases: Sequence[Phases | None]) -> First:
    found = [
        _with_intervals(_with_bands(move, *phases), before, after) for move in moves(before.summary, after.summary)
    ]
    found.sort(key=_size)
    was = [span(phases[0], "queues", move.queue, _MEAN) for move in found]
    # With several seeds only the change shows its interval; the table of completion times has those of both values.
    now = [move.span if phases[1] is not None else None for move in found]
    rows = [
        [
            short(move.queue),
            # The result comes first: a narrow page shows no more without scrolling.
            banded(figure_text(move.change * 100, 1), move.changes, 0, 100.0),
            _word(move),
            banded(figure_text(move.before, 1), its, 1),
            banded(figure_text(move.after, 1), its_now, 1),
        ]
        for move, its, its_now in zip(found, was, now, strict=True)
    ]
    heads = [Head("queue"), Head("change", "%"), Head("mean job ends"), Head(before.label, "s"), Head(after.label, "s")]
    note = f"Changes of up to {percent(SAME)} count as the same."
    if (said := next((one.said for one in phases if one is not None), "")) != "":
        note = f"{said[:1].upper()}{said[1:]}; changes are taken phase by phase. {note}"
    seeds = max((one.seeds for move in found if (one := change(before, after, completion_of(move.queue)))), default=1)
    if seeds > 1:
        note = (
            f"Means over {seeds} seeds. The change is the mean of the changes seed by seed, with its 95 % interval; it "
            f"is unclear if that interval includes 0. {note}"
        )
    caption = f"Mean completion time of a job by queue: from {before.label} (ring) to {after.label} (dot)"
    return First(
        sentences(name, ran)[:2],
        changes_chart(found, caption, "mean completion time (s)") if found else Markup(""),
        _caption(caption, found),
        [Table("Winners and losers", heads, rows, note)] if rows else [],
        names=[name, before.label, after.label, *(short(move.queue) for move in found)],
    )


def _with_bands(move: Move, before: Phases | None, after: Phases | None) -> Move:
    """Return the move with the ranges of its values over the phases, if there are phases."""
    if before is None or after is None:
        return move
    keys = ("queues", move.queue, _MEAN)
    changes = after.changes(before, *keys)
    return replace(move, span=after.span(*keys), changes=(min(changes), max(changes)) if changes else None)


def _with_intervals(move: Move, before: Ran, after: Ran) -> Move:
    """Return the move with 95 % intervals of its value after and of its change, if both variants have several seeds."""
    found = change(before, after, completion_of(move.queue))
    if found is None or found.seeds < 2:
        return move
    ends = _interval(after, move.queue)
    return replace(
        move,
        better=_better(found.part),
        span=ends,
        changes=(found.low, found.high),
        unclear="unclear",
        part=found.part,
    )


def _interval(ran: Ran, queue: str) -> tuple[float, float] | None:
    """Return the 95 % interval of a queue's mean completion over the seeds, in seconds; None with one seed."""
    values = [value for summary in ran.seeds.values() if (value := completion_of(queue)(summary)) is not None]
    if len(values) < 2:
        return None
    mean, half = fmean(values), half_width_95(values)
    return mean - half, mean + half


def _word(move: Move) -> str:
    word = {1: "sooner", 0: "the same", -1: "later"}[move.better]
    return word if move.is_clear or not move.better else f"{word}, {move.unclear}"


def _one(run: Run) -> First | None:
    degrees = {queue: run.queue_figure(queue, "fairness_degree") for queue in run.summary_queues()}
    found = [
        Move(
            queue,
            1.0,
            degree,
            0 if abs(degree - 1) <= SAME else 1 if degree > 1 else -1,
            span(run.phases, "queues", queue, "fairness_degree"),
        )
        for queue, degree in degrees.items()
        if degree is not None
    ]
    if not found:
        return None
    found.sort(key=lambda move: -abs(move.after - 1))
    least = min(found, key=lambda move: move.after)
    short_of = [move for move in found if move.better < 0]
    said = (
        f"{len(short_of)} of {len(found)} queues got less than their own partition would have given them; furthest "
        f"behind is {short(least.queue)}, with {percent(least.after)} of its due."
        if short_of
        else f"Each of the {len(found)} queues got what its own partition would have given it, or more."
    )
    loss, last = run.figure("sharing_loss_integral"), run.figure("last_loss_s")
    more = f"The sharing loss adds up to {loss:,.1f} s" if loss is not None else ""
    more += f"; the last one was at {last:,.0f} s." if more and last else "." if more else ""
    caption = "Fairness degree at the end by queue: 1 (ring) is the queue's own partition"
    chart = changes_chart(found, caption, "fairness degree")
    names = [short(move.queue) for move in found]
    return First([said, more] if more else [said], chart, _caption(caption, found), [], names=names)


def _caption(text: str, found: Sequence[Move]) -> str:
    left = len(found) - MOST_QUEUES
    return f"{text}. {MOST_QUEUES} of {len(found)} queues: those that gain and lose most." if left > 0 else f"{text}."


def furthest(found: Sequence[Move]) -> list[Move]:
    """Return at most MOST_QUEUES of the largest gains and losses, evenly from both, in the given order."""
    gain, lose = ([move for move in found if move.better == side] for side in (1, -1))
    half = MOST_QUEUES // 2
    picked = gain[: max(half, MOST_QUEUES - len(lose))] + lose[: max(half, MOST_QUEUES - len(gain))]
    picked = [*picked, *(move for move in found if move.better == 0)][:MOST_QUEUES]
    return [move for move in found if move in picked]


def moves(before: Mapping[str, object], after: Mapping[str, object]) -> list[Move]:
    """Return the queues whose mean completion is known in both summaries, the largest change first."""
    found = []
    old, new = before.get("queues"), after.get("queues")
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return []
    for queue, own in new.items():
        was, now = (one.get(_MEAN) for one in (old.get(queue) or {}, own))
        if isinstance(was, int | float) and isinstance(now, int | float) and was > 0 and now > 0:
            found.append(Move(str(queue), float(was), float(now), _better(now / was - 1)))
    return sorted(found, key=_size)


def _better(part: float) -> int:
    """Return -1, 0 or 1 for a relative change of a completion time: later, the same, sooner."""
    return 0 if abs(part) <= SAME else 1 if part < 0 else -1


def _size(move: Move) -> float:
    """Return a key that sorts the largest change first; a doubled value is as large a change as a halved one."""
    return -abs(math.log1p(move.change))


def changes_chart(found: Sequence[Move], title: str, label: str) -> Markup:
    """Draw one row per queue: a ring before, a dot after, a line between them, and a broad line for `Move.span`."""
    shown = furthest(found)
    values = [value for move in shown for value in (move.before, move.after, *(move.span or ()))]
    logarithmic = min(values) > 0 and max(values) / min(values) > 5
    low = math.log10(min(values) / 1.15) if logarithmic else 0.0
    high = math.log10(max(values) * 1.15) if logarithmic else max(values) * 1.05 or 1.0
    height = _TOP + _ROW * len(shown) + _BOTTOM

    def px(value: float) -> float:
        return _LEFT + ((math.log10(value) if logarithmic else value) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    bottom = height - _BOTTOM
    out = []
    powers = [f * 10.0**k for k in range(math.floor(low), math.ceil(high) + 1) for f in (1, 3)] if logarithmic else []
    ticks = [tick for tick in powers if low <= math.log10(tick) <= high] or nice_ticks(low, high, 4)
    for tick in ticks:
        out.append(f'<path class="g" d="M{px(tick):.1f} {_TOP}V{bottom}"/>')
        out.append(lettering("t", f"{px(tick):.1f}", bottom + 15, number(tick)))
    words = []
    for at, move in enumerate(shown):
        y = _TOP + _ROW * (at + 0.5)
        colour = {1: COLOURS[2], 0: COLOURS[5], -1: COLOURS[1]}[move.better if move.is_clear else 0]
        x0, x1 = px(move.before), px(move.after)
        said = f"{short(move.queue)}: {number(float(f'{move.before:.4g}'))} to {number(float(f'{move.after:.4g}'))}"
        words.append(said)
        if move.span is not None:
            ends = [px(value) for value in move.span]
            out.append(f'<path class="band" stroke="{colour}" d="M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}"/>')
        out.append(
            f'<text class="t" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end"><title>{escape(said)}</title>'
            f"{escape(_cut(short(move.queue)))}</text>"
            f'<path class="c" stroke="{colour}" d="M{x0:.1f} {y:.1f}H{x1:.1f}"/>'
            f'<circle cx="{x0:.1f}" cy="{y:.1f}" r="4" class="ring"/>'
            f'<circle cx="{x1:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"><title>{escape(said)}</title></circle>'
        )
    out.append(f'<path class="a" d="M{_LEFT} {_TOP}V{bottom}H{WIDTH - _RIGHT}"/>')
    out.append(lettering("l", f"{(_LEFT + WIDTH - _RIGHT) / 2:g}", height - 6, label))
    # Every text in it is escaped above, or where it is drawn.
    return Markup(whole("first", title, f"{'; '.join(words)}.", out, height=height))


def _cut(name: str) -> str:
    """Shorten a long name in the middle, because queues differ at the ends of their names."""
    return name if len(name) <= _NAMES else f"{name[: _NAMES // 2]}\u2026{name[-(_NAMES // 2) :]}"
