"""Turns numbers into a verdict: would a long-term policy help, whom, at what cost, and how certain is that. Pure.

Every simulated run is one `Outcome`. The outcomes of a policy differ only in the phases of heartbeats and control; the
k-th outcome of every policy has the same phases, so differences are computed pairwise. A band contains all phases: with
twenty phases, a further simulated one is inside with a probability of 90 % (19 of 21). A real run is inside less often
(docs/figures-assess.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal

from harness.base.words import counted
from harness.yarn.capacity.properties import ASYNCHRONOUS

Answer = Literal["yes", "no", "unsure"]
#: Attributes of a whole run (`Outcome`).
Figure = Literal["all_s", "loss", "contended", "utilisation", "wait_s", "makespan_s"]

#: No verdict is given above this reproduction error, because predictions may be off by as much.
MOST_ERROR = 0.15
#: A smaller relative change of a queue's mean completion time is not mentioned.
NOTICEABLE = 0.03
#: The sharing loss must fall at least by this fraction for a yes.
LEAST_LESS_LOSS = 0.10
#: A yes increases the mean over all applications at most by this fraction.
MOST_PRICE = 0.10
#: Queues must contend in at least this fraction of the time, otherwise there is nothing to gain.
LEAST_CONTENDED = 0.01
#: With fewer ended applications there is no verdict.
LEAST_ENDED = 10
#: The fraction of the work that must be known task by task if queues contend.
LEAST_KNOWN = 0.5
_NOTHING, _LONGER = "no, nothing to gain", "Record for longer: yarnfair record --follow FILE."


@dataclass(frozen=True, slots=True)
class Band:
    """A mean over phases, and the smallest and largest value."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Band:
        """Create it from at least one value."""
        return cls(math.fsum(values) / len(values), min(values), max(values))

    def list(self) -> list[float]:
        """Return the smallest and the largest value."""
        return [self.low, self.high]

    def document(self, name: str = "mean", band: str = "band") -> dict[str, Any]:
        """Return the mean under a name, and the smallest and largest value."""
        return {name: self.mean, band: self.list()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One simulated run. Times in seconds.

    mean_s : mean completion time by queue, of the applications that ended in reality and in this run.
    missing : queue -> applications that ended in reality, but are refused, fail or never end in this run.
    all_s : like ``mean_s``, over the applications of all queues.
    loss : integral of the sharing loss degree's absolute value (LTYARN eq. 5), seconds.
    contended : the fraction of the non-idle time in which the demand exceeds the cluster and a waiting queue is below
        its share. Idle time is excluded, because it would hide contention.
    utilisation : of memory, as a fraction.
    wait_s : the longest time that a waiting queue went without getting a container.
    makespan_s : until the last application has ended.
    start_wait_s : mean time from submission to the AM's start by queue, of the same applications.
    unfinished : why the run was cut before every application had ended; empty if it was not.
    summary : all values of the run, as in summary.json.
    """

    mean_s: Mapping[str, float]
    all_s: float
    loss: float
    contended: float = 0.0
    utilisation: float = 0.0
    wait_s: float = 0.0
    makespan_s: float = 0.0
    unfinished: str = ""
    start_wait_s: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Played:
    """A policy and its outcomes, phase by phase."""

    name: str
    policy: str
    settings: Mapping[str, Any]
    outcomes: Sequence[Outcome]

    def shows(self, queue: str) -> bool:
        """Return whether an application of the queue ended in each run."""
        return all(queue in one.mean_s for one in self.outcomes)

    def band(self, queue: str) -> Band:
        """Return the mean completion time of a queue that the runs show."""
        return Band.of([one.mean_s[queue] for one in self.outcomes])

    def over(self, figure: Figure, times: float = 1) -> Band:
        """Return an attribute of the whole run, multiplied by a factor."""
        return Band.of([times * getattr(one, figure) for one in self.outcomes])

    def change(self, present: Played, queue: str | None = None) -> Band:
        """Return the relative change of a mean completion time (negative: shorter).

        Each run is compared with the present policy's run of the same place. ``queue`` None: over all applications.
        """
        pairs = zip(self.outcomes, present.outcomes, strict=False)
        if queue is None:
            return Band.of([mine.all_s / its.all_s - 1.0 if its.all_s else 0.0 for mine, its in pairs])
        return Band.of([mine.mean_s[queue] / its.mean_s[queue] - 1.0 for mine, its in pairs])

    def less_loss(self, present: Played) -> Band:
        """Return the relative reduction of the sharing loss, pairwise."""
        pairs = zip(self.outcomes, present.outcomes, strict=False)
        return Band.of([1.0 - mine.loss / its.loss if its.loss > 0 else 0.0 for mine, its in pairs])


#: Shorter waits for ApplicationMasters are not examined, seconds.
LEAST_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything on which a verdict is based.

    real_s : mean completion time by queue as recorded, seconds; ``jobs``: how many applications ended, by queue.
    recorded : how many applications the trace has, ended or not.
    completion_s : the recorded completion time of each application that ended, seconds; needed for those that are
        missing in an outcome.
    real_wait_s : mean time from submission to the master's start, as recorded.
    known : the fraction of the work (memory-seconds) that is known task by task.
    span_s : how long the recording is.
    missing : what else would be useful, in words.
    unknown : necessary data that the trace does not have, in words.
    asynchronous : whether the recorded cluster places containers asynchronously, which the simulator does not.
    traps : names of what `enforce` asks to be set before it writes, as far as the trace shows it.
    left_out : what the trace omits of its original, if that may change the answer; else empty.
    masters : whether a limit on ApplicationMasters is what applications wait for, in a sentence (`masters_cause`);
        else empty.
    causes : where the replay differs from what happened, found by comparing both.
    """

    real_s: Mapping[str, float]
    jobs: Mapping[str, int]
    present: Played
    candidates: Sequence[Played]
    known: float = 1.0
    span_s: float = 0.0
    real_wait_s: float = 0.0
    missing: Sequence[str] = ()
    unknown: Sequence[str] = ()
    asynchronous: bool = False
    traps: Sequence[str] = ()
    left_out: str = ""
    causes: Sequence[str] = ()
    masters: str = ""
    completion_s: Mapping[str, float] = field(default_factory=dict)
    recorded: int = 0

    def replayed(self, queue: str) -> Replayed:
        """Return a queue's applications under the present policy, compared with the recording."""
        count, recorded_s = self.jobs.get(queue, 0), self.real_s[queue] * self.jobs.get(queue, 0)
        missing_s, replayed_s = [], []
        for one in self.present.outcomes:
            names = one.missing.get(queue, ())
            shown = queue in one.mean_s
            missing_s.append(math.fsum(self.completion_s[name] for name in names) if shown else recorded_s)
            replayed_s.append(one.mean_s[queue] * (count - len(names)) if shown else 0.0)
        return Replayed(recorded_s, missing_s, replayed_s)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. ``lines``: at most six and one on a limit of masters, plain; ``best``: the policy, only with yes."""

    answer: Answer
    why: str
    lines: Sequence[str]
    reproduction_error: float | None
    best: Played | None = None
    #: Whether it is independent of the candidates' results.
    early: bool = False
    changes: Mapping[str, Band] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The applications of one queue that ended in the recording, and their results in its replays.

    Parameters
    ----------
    recorded_s
        The sum of their recorded completion times, seconds.
    missing_s
        For each replay, the part of this sum that belongs to applications which are refused, fail or never end in it.
    replayed_s
        For each replay, the sum of the other applications' completion times in it.
    """

    recorded_s: float
    missing_s: Sequence[float]
    replayed_s: Sequence[float]

    def error(self) -> float:
        """Return the relative error of the replays.

        A missing application counts with its whole recorded completion time.
        """
        missing_s = fmean(self.missing_s)
        return (abs(fmean(self.replayed_s) - (self.recorded_s - missing_s)) + missing_s) / self.recorded_s


def reproduction_error(queues: Iterable[Replayed]) -> float | None:
    """Return the mean relative error of the replay over the queues (`Replayed.error`).

    None if no queue has an application that ended.
    """
    apart = [queue.error() for queue in queues if queue.recorded_s > 0]
    return fmean(apart) if apart else None


def _no_shorter(evidence: Evidence) -> bool:
    """Return whether, in every queue, applications take at least as long in the replay as in reality, within the bound.

    Such a replay errs on the safe side: it keeps the cluster busy for longer than in reality, so if queues do not
    contend in it, they did not in reality. A shorter replay, or one with missing applications, shows nothing about
    contention.
    """
    if any(one.missing for one in evidence.present.outcomes):
        return False
    return all(evidence.present.band(queue).mean >= (1 - MOST_ERROR) * real for queue, real in evidence.real_s.items())


def causes_of(
    real_s: Mapping[str, float], real_wait_s: Mapping[str, float], present: Played, most: int = 3
) -> list[str]:
    """Describe where the replay of the present policy differs from the recording, by queue, largest first.

    Parameters
    ----------
    real_s, real_wait_s : mapping of str to float
        Recorded mean completion time by queue, and the part of it before the AM started, seconds. The second lacks
        queues whose AM starts are not recorded.
    present : Played
        The replay.
    most : int
        Maximum number of named queues.

    Returns
    -------
    list of str
        First one sentence for each queue with missing applications. Then one for each queue whose error is above the
        limit of a verdict, with the part of the time that differs.
    """
    found: list[tuple[float, str]] = []
    for queue in real_s:
        count = max((len(one.missing.get(queue, ())) for one in present.outcomes), default=0)
        if count:
            name, have = queue.removeprefix("root."), "application" if count == 1 else "applications"
            what = f"{count} {have} of {name} ended in reality, and not in the replay"
            found.append((math.inf, f"{what} (a limit of applications, or a container that nothing may hold)"))
    for queue, real in real_s.items():
        if real <= 0 or not present.shows(queue):
            continue
        replayed = present.band(queue).mean
        if abs(replayed - real) <= MOST_ERROR * real:
            continue
        name = queue.removeprefix("root.")
        waits = [one.start_wait_s[queue] for one in present.outcomes if queue in one.start_wait_s]
        what = f"applications of {name} took {real:.0f} s, in the replay {replayed:.0f} s"
        if waits and queue in real_wait_s:
            wait, real_wait = math.fsum(waits) / len(waits), real_wait_s[queue]
            if abs(wait - real_wait) > 0.5 * abs(replayed - real):
                what = (
                    f"applications of {name} waited {real_wait:.0f} s for their master, in the replay {wait:.0f} s "
                    "(a limit of masters or of running applications, or load that is not in the trace)"
                )
            elif replayed < real:
                what += " (containers came later or lasted longer than the trace says, or load is not in the trace)"
            else:
                what += " (more capacity was there than the trace says, or queues were not held to these weights)"
        found.append((abs(replayed - real) / real, what))
    return [what for _, what in sorted(found, reverse=True)[:most]]


def masters_cause(present: Outcome, without: Outcome, setting: str, most: int = 3) -> str:
    """Return a sentence on the queues whose applications wait because of a limit on ApplicationMasters; "": in none.

    A queue is named if, without such limits, more than half of the wait for its ApplicationMasters disappears.

    Parameters
    ----------
    present, without : Outcome
        A replay of the present policy, and the same without limits on ApplicationMasters.
    setting : str
        What the scheduler calls the limit.
    most : int
        Maximum number of named queues.
    """
    found = []
    for queue, wait in present.start_wait_s.items():
        free = without.start_wait_s.get(queue, 0.0)
        if wait - free > max(LEAST_WAIT_S, wait / 2):
            # Without any limit masters may take all room, so that some of their applications never end.
            stuck = len(set(without.missing.get(queue, ())) - set(present.missing.get(queue, ())))
            ends = f"{free:.0f} s, but {stuck:,} of them do not end then" if stuck else f"{free:.0f} s"
            found.append((wait - free, f"{queue.removeprefix('root.')} {wait:.0f} s, without it {ends}"))
    if not found:
        return ""
    named = [words for _, words in sorted(found, reverse=True)]
    more = f"; and {len(named) - most} more queues" if len(named) > most else ""
    return (
        f"The limit on ApplicationMasters ({setting}) is what applications wait for in the replay: "
        f"{'; '.join(named[:most])}{more}."
    )


def best_of(present: Played, candidates: Sequence[Played]) -> Played | None:
    """Return the candidate with the least sharing loss among those of acceptable cost.

    Among nearly equal ones, the first.

    Candidates under which no application of some queue ends, though some end under the present policy, are excluded.
    """
    able = [one for one in candidates if _whole(one, present) and one.change(present).mean <= MOST_PRICE]
    if not able:
        return None
    losses = [one.over("loss").mean for one in able]
    most = min(losses) * 1.02 + 1e-9
    return next(one for one, loss in zip(able, losses, strict=True) if loss <= most)


def _whole(one: Played, present: Played) -> bool:
    """Return whether every queue with ended applications under the present policy also has some under this one."""
    return all(map(one.shows, present.outcomes[0].mean_s))


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict on the evidence."""
    present = evidence.present
    contended = present.over("contended")
    stuck = [queue.removeprefix("root.") for queue in evidence.real_s if not present.shows(queue)]
    error = reproduction_error(map(evidence.replayed, evidence.real_s))
    short = f"queues were short of their share in {_percent(contended.mean)} {_range(contended)} of the busy time"
    waited = f"Applications waited {evidence.real_wait_s:.1f} s on average for their first container"
    ended = sum(evidence.jobs.values())
    basis = _basis(evidence, error)

    def said(answer: Answer, why: str, *lines: str, head: str = "", tail: str = "", **more: Any) -> Verdict:
        """Build the lines. ``head``, ``tail``: text of the first line in place of the answer, and after the reason."""
        shown = [f"{head or answer}: {why}{tail}.", *lines]
        if evidence.masters and evidence.masters not in shown:
            shown.append(evidence.masters)
        return Verdict(answer, why, shown, error, **more)

    # The order is that of docs/how-to/assess.md: is the trace complete, does the replay reproduce it, is there
    # contention, and only then, does a policy help.
    if evidence.unknown:
        why = "; ".join(evidence.unknown)
        return said("unsure", why, "Missing: what the trace does not say; add it, or record the cluster.", early=True)
    if ended < LEAST_ENDED <= evidence.recorded or (evidence.recorded and not ended):
        # A longer recording of a trace without ends would have no ends either.
        why = f"{ended or 'none'} of {evidence.recorded} applications {'have' if ended > 1 else 'has'} an end"
        missing = f"Missing: when they ended (finished_s in the trace), of at least {LEAST_ENDED}."
        return said("unsure", why, missing, "Do they still run? " + _LONGER, early=True)
    if ended < LEAST_ENDED:
        have = "application has" if ended == 1 else "applications have"
        itself = "itself" if ended == 1 else "themselves"
        why = f"too short a time: only {ended} {have} ended by {itself} (at least {LEAST_ENDED} are needed)"
        return said("unsure", why, _LONGER, early=True)
    if evidence.left_out:
        return said("unsure", "too much of what ran is not in the trace", f"{evidence.left_out}.", early=True)
    if evidence.asynchronous:
        why = "the cluster places containers asynchronously, the simulator at heartbeats"
        missing = f"Missing: a recording with {ASYNCHRONOUS}=false, without which `enforce` writes nothing."
        return said("unsure", why, missing, early=True)
    if stuck:
        why = f"in the replay no application of {', '.join(stuck[:4])} ends, as some did in reality"
        missing = "Missing: what held their applications back or let them end (limits of masters or of queues)."
        return said("unsure", why, missing, early=True)
    if unfinished := next((one.unfinished for one in present.outcomes if one.unfinished), ""):
        return said("unsure", f"the replay does not end: {unfinished}", early=True)
    lacks = [*evidence.causes, *evidence.missing]
    if evidence.known < LEAST_KNOWN:
        lacks.insert(
            0,
            f"of {_percent(1 - evidence.known)} of the work the tasks are not known (--history URL for MapReduce, "
            "--spark-history URL for Spark; others' are not recorded)",
        )
    idle = contended.high < LEAST_CONTENDED
    calm = contended.mean < LEAST_CONTENDED and evidence.real_wait_s <= 5.0
    if calm and error is not None and (error <= MOST_ERROR or _no_shorter(evidence)):
        why, again = f"{short}: there is nothing to give back", "Ask again when queues wait for one another."
        return said("no", why, f"{waited}.", basis, again, head=_NOTHING, early=True)
    if error is None or error > MOST_ERROR or (evidence.known < LEAST_KNOWN and not idle):
        if error is None:
            why = "the trace does not say when applications ended"
        elif error > MOST_ERROR:
            bound = f"at most {_percent(MOST_ERROR)} for a verdict"
            # Rounded up near the bound: 15.04 % must not read "15 %, at most 15 %".
            off = f"{math.ceil(round(1000 * error, 6)) / 10:.1f} %" if error < 0.2 else _percent(error)
            why = f"the replay is {off} off what really happened ({bound})"
        else:
            why = "how the work divides into tasks is not known"
        missing = f"Missing: {'; '.join(lacks or ['what else ran on the cluster'])}."
        return said("unsure", why, missing, f"{short.capitalize()}.", early=True)
    floor = max(NOTICEABLE, error / 2)
    dear = _dear(evidence, floor)
    best = best_of(present, evidence.candidates)
    if best is None:
        why = f"every candidate makes applications take more than {_percent(MOST_PRICE)} longer on average"
        return said("no", why, *dear, basis)
    changes = _changes(best, evidence)
    gains = _gains(changes, floor)
    losses = {queue: change for queue, change in changes.items() if change.low > 0 and change.mean >= floor}
    less = best.less_loss(present)
    if idle and (less.low <= 0 or evidence.known < LEAST_KNOWN):
        why = f"{short}: there is nothing to give back"
        line = evidence.masters or f"{waited}, but not for other queues: look at the limits of masters and of queues."
        return said("no", why, line, basis, head=_NOTHING, changes=changes)
    if less.low <= 0 and less.high >= LEAST_LESS_LOSS:
        why = f"it hangs on chance whether {best.name} lessens the sharing loss {_range(less)}"
        tail = ": phases of heartbeats and control disagree"
        return said("unsure", why, f"{short.capitalize()}.", *dear, basis, _LONGER, tail=tail, changes=changes)
    if less.low <= 0 or less.mean < LEAST_LESS_LOSS or not gains:
        if less.low <= 0 or less.mean < LEAST_LESS_LOSS:
            why = f"the best candidate ({best.name}) {_lessens(less)}"
        else:
            why = f"under {best.name} no queue's applications would end {_percent(floor)} sooner or more for sure"
        head = "no" if dear else _NOTHING
        return said("no", why, f"{short.capitalize()}.", *dear, basis, head=head, changes=changes)
    return said(
        "yes",
        f"{best.name} {_lessens(less)}",
        f"Gains: {_queues(gains, 'shorter')}.",
        f"Loses: {_queues(losses, 'longer')}." if losses else f"Loses: no queue by {_percent(floor)} or more.",
        _price(best, present),
        basis,
        f"Settings: {_settings(best)}; begin in mode shadow{_before_writing(evidence.traps)}.",
        head=f"yes, but {_worst(losses)}" if losses else "",
        tail=f", of {len(best.outcomes)} phases",
        best=best,
        changes=changes,
    )


def _changes(played: Played, evidence: Evidence) -> dict[str, Band]:
    return {queue: played.change(evidence.present, queue) for queue in evidence.real_s}


def _gains(changes: Mapping[str, Band], floor: float) -> dict[str, Band]:
    """Return the queues that are noticeably faster in every phase."""
    return {queue: change for queue, change in changes.items() if change.high < 0 and -change.mean >= floor}


def _dear(evidence: Evidence, floor: float) -> list[str]:
    """Describe what candidates above the cost limit would give: a line about the cheapest one that gains."""
    present = evidence.present
    prices = [(one.change(present).mean, one) for one in evidence.candidates if _whole(one, present)]
    for price, one in sorted(prices, key=lambda found: found[0]):
        if price > MOST_PRICE and (gains := _gains(_changes(one, evidence), floor)):
            return [
                f"Too dear: {one.name} would make {_queues(gains, 'shorter')}, and applications {_percent(price)} "
                f"longer on average (at most {_percent(MOST_PRICE)} for a yes)."
            ]
    return []


def _basis(evidence: Evidence, error: float | None) -> str:
    off = "cannot be held against the recording" if error is None else f"is {_percent(error)} off the recording"
    span = f"{evidence.span_s / 3600:.1f} h" if evidence.span_s >= 5400 else f"{evidence.span_s / 60:.0f} min"
    return (
        f"How sure: the replay of the present policy {off} (mean completion by queue; {sum(evidence.jobs.values())} "
        f"applications, {span}). The brackets span {counted(len(evidence.present.outcomes), 'simulated phase')}; real "
        "runs vary more. It holds for a load like the recorded one."
    )


def _queues(changes: Mapping[str, Band], word: str) -> str:
    shown = sorted(changes.items(), key=lambda item: -abs(item[1].mean))
    words = [
        f"{queue.removeprefix('root.')} {_percent(abs(change.mean))} {word} {_range(change)}"
        for queue, change in shown[:4]
    ]
    more = f" and {len(shown) - 4} more queues" if len(shown) > 4 else ""
    return ", ".join(words) + more


def _worst(losses: Mapping[str, Band]) -> str:
    """Return the queue that loses most, for the headline."""
    queue = max(losses, key=lambda one: losses[one].mean)
    return f"{queue.removeprefix('root.')} takes {_percent(losses[queue].mean)} longer {_range(losses[queue])}"


def _range(band: Band) -> str:
    """Format both ends of the band in percent: the smaller first and without signs, or with signs if they differ."""
    low, high = 100 * band.low, 100 * band.high
    if low < 0 < high:
        return f"({low:+.0f} to {high:+.0f} %)"
    low, high = sorted((abs(low), abs(high)))
    return f"({low:.0f} to {high:.0f} %)"


def _lessens(less: Band) -> str:
    if less.mean >= 0:
        return f"lessens the sharing loss by {_percent(less.mean)} {_range(less)}"
    more = Band(-less.mean, -less.high, -less.low)
    return f"makes the sharing loss {_percent(more.mean)} larger {_range(more)}"


def _price(best: Played, present: Played) -> str:
    change = best.change(present)
    word = "longer" if change.mean > 0 else "less time"
    return (
        f"Price: applications take {_percent(abs(change.mean))} {word} {_range(change)} on average; a queue waits "
        f"{_figure(best.over('wait_s'), 's')} at longest for a container, now {_figure(present.over('wait_s'), 's')}; "
        f"{_figure(best.over('utilisation', 100), '%')} of the memory is used, now "
        f"{_figure(present.over('utilisation', 100), '%')}."
    )


def _figure(band: Band, unit: str) -> str:
    return f"{band.mean:.0f} {unit} ({band.low:.0f} to {band.high:.0f})"


def _settings(best: Played) -> str:
    given = ", ".join(f"{key}={value:g}" for key, value in best.settings.items())
    return f"policy {best.policy} from outside{', ' + given if given else ''}"


def _before_writing(traps: Sequence[str]) -> str:
    if not traps:
        return ""
    return f", which names what to set before anything is written ({', '.join(traps)})"


def _percent(part: float) -> str:
    value = 100 * part
    return f"{value:.0f} %" if abs(value) >= 9.5 else f"{value:.1f} %"
