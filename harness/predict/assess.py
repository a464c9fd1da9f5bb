"""The steps of an assessment: replay of the present policy compared with the recording, candidates, verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.control.settings import MAX_RATIO
from harness.experiments.resolve import Variant
from harness.model.queues import SchedulerName, cluster_parts
from harness.predict.playing import BUDGET_S, Player, Workers
from harness.predict.replay import capacity_limits_of, without_master_limits, write_experiment
from harness.predict.verdict import LEAST_WAIT_S, Evidence, Played, Verdict, best_of, causes_of, judge, masters_cause
from harness.traces.accounting import Shape, left_out_sentence, may_change_the_answer
from harness.traces.recorded import Header, JobLine, Trace
from harness.yarn.capacity.properties import ASYNCHRONOUS, PREFIX
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.traps import find_traps

#: Candidate half-lives and horizons, seconds.
HALF_LIVES_S = (3600.0, 86_400.0)
HORIZONS_S = (80.0, 320.0)
#: Number of phases by which the best candidate is chosen.
_CHOOSING = 3


@dataclass(frozen=True, slots=True)
class Assessed:
    """The result: every simulated policy (the present one first), and the verdict."""

    verdict: Verdict
    evidence: Evidence
    played: Sequence[Played]
    experiment: Path


def candidates_of(
    trace: Trace,
    *,
    period_s: float,
    scheduler: SchedulerName = "fair",
    span_s: float,
) -> list[Variant]:
    """Return the variants to try, the simplest first.

    Includes `hltrf` if queues have children, and half-lives shorter than the recording.
    """
    nested = any(path.count(".") > 1 for path in trace.header.queues)
    each: list[dict[str, Any]] = [{}, *({"half_life": value} for value in HALF_LIVES_S if value < span_s)]
    each += [{"horizon_s": value} for value in HORIZONS_S]
    return [
        Variant(
            ",".join([f"{policy}@outside", *(f"{key}={value:g}" for key, value in settings.items())]),
            policy,
            "outside",
            settings,
            0,
            period_s,
            scheduler=scheduler,
        )
        for policy in (("ltrf", "hltrf") if nested else ("ltrf",))
        for settings in each
    ]


def traps_of(header: Header) -> list[str]:
    """Return the names of what `enforce` asks to be set before it writes, as far as a recording shows it.

    Of a Capacity Scheduler these are the blocking traps of its queues' limits; a recording has no others.
    """
    if header.scheduler != "capacity":
        return []
    own = {path: line.weight for path, line in header.queues.items()}
    parts = cluster_parts(own, 100.0)
    values = {f"{PREFIX}{key}": text for key, text in capacity_limits_of(header).items()}
    for parent in ("root", *own):
        below = [path for path in own if path.rpartition(".")[0] == parent]
        if below:
            values[f"{PREFIX}{parent}.queues"] = ",".join(path.rpartition(".")[2] for path in below)
        values |= {f"{PREFIX}{path}.capacity": f"{100 * parts[path] / parts[parent]:.9g}" for path in below}
    tree = queue_tree(values, source="the recording")
    site = {**header.conf, ASYNCHRONOUS: "false"}
    return [trap.name for trap in find_traps(values, site, tree) if trap.blocking and trap.preemption is None]


def assess(
    trace: Trace,
    folder: Path,
    *,
    period_s: float = 5.0,
    max_ratio: float = MAX_RATIO,
    accept_preemption: bool = False,
    scheduler: SchedulerName = "fair",
    missing: Sequence[str] = (),
    budget_s: float = BUDGET_S,
    processes: int | None = None,
    workers: Workers | None = None,
    says: Callable[[str], None] = lambda _: None,
) -> Assessed:
    """Return the verdict on a trace; the simulated experiment is written into ``folder``.

    Raises InputError for a trace that cannot be replayed.
    """
    # Killed applications end in the replay at the recorded time: they show nothing about the replay or a policy.
    ended = [job for job in trace.jobs if job.ended_by_itself]
    times = {job.job: (job.finished_s or 0.0) - job.submit_s for job in ended}
    by_queue: dict[str, list[float]] = {}
    for job in ended:
        by_queue.setdefault(job.queue, []).append(times[job.job])
    span_s = max((job.finished_s or job.submit_s for job in trace.jobs), default=0.0)
    experiment = write_experiment(trace, folder, schedulers=(scheduler,), accept_preemption=accept_preemption)
    present = Variant(scheduler, scheduler, "inside", {}, 0, period_s, scheduler=scheduler)
    options = candidates_of(trace, period_s=period_s, scheduler=scheduler, span_s=span_s)
    with Player(str(experiment), frozenset(times), max_ratio, processes, workers=workers) as runs:
        runs.first(present)
        says(f"{len(trace.jobs)} applications, one run takes {runs.run_s:.1f} s")
        phases = runs.phases_within(budget_s, 2, besides=len(options) * _CHOOSING)
        (now,) = runs.play([present], phases, says)
        waits = [max((job.started_s or job.submit_s) - job.submit_s, 0.0) for job in ended]
        left_out = left_out_sentence(trace.header.left_out)
        real_s = {queue: fmean(found) for queue, found in sorted(by_queue.items())}
        evidence = Evidence(
            real_s=real_s,
            jobs={queue: len(found) for queue, found in sorted(by_queue.items())},
            present=now,
            candidates=(),
            known=Shape.of(trace.jobs).known,
            span_s=span_s,
            real_wait_s=fmean(waits) if waits else 0.0,
            missing=missing,
            unknown=trace.header.unknown,
            asynchronous=trace.header.asynchronous is True,
            traps=traps_of(trace.header),
            completion_s=times,
            recorded=len(trace.jobs),
            causes=causes_of(real_s, _real_waits(ended), now),
            masters=_masters(experiment, present, now, frozenset(times), max_ratio),
            left_out=left_out if may_change_the_answer(trace.header.left_out, trace.jobs) else "",
        )
        first = judge(evidence)
        if first.early:
            return Assessed(first, evidence, [now], experiment)
        tried = runs.play(options, _CHOOSING, says)
        best = best_of(now, tried)
        if best is not None:
            at = next(index for index, one in enumerate(options) if one.name == best.name)
            (whole,) = runs.play([options[at]], phases, says)
            tried = [*tried[:at], whole, *tried[at + 1 :]]
            evidence = replace(evidence, candidates=(whole,))
        else:
            evidence = replace(evidence, candidates=tuple(tried))
    return Assessed(judge(evidence), evidence, [now, *tried], experiment)


def _masters(experiment: Path, present: Variant, now: Played, ended: frozenset[str], max_ratio: float) -> str:
    """Describe, by one more replay without it, whether applications wait because of the limit on ApplicationMasters."""
    waits = [wait for one in now.outcomes for wait in one.start_wait_s.values()]
    if max(waits, default=0.0) <= LEAST_WAIT_S:
        return ""
    free = experiment.with_name("without-master-limits.yaml")
    free.write_text(without_master_limits(experiment.read_text(encoding="utf-8")), encoding="utf-8")
    with Player(str(free), ended, max_ratio, 1) as runs:
        (without,) = runs.play([present], 1, lambda _: None)
    setting = "maximum-am-resource-percent" if present.scheduler == "capacity" else "maxAMShare"
    return masters_cause(now.outcomes[0], without.outcomes[0], setting)


def _real_waits(ended: Sequence[JobLine]) -> dict[str, float]:
    """Return the recorded mean time from submission to the AM's start by queue, if it is recorded."""
    by_queue: dict[str, list[float]] = {}
    for job in ended:
        if job.started_s is not None:
            by_queue.setdefault(job.queue, []).append(max(job.started_s - job.submit_s, 0.0))
    return {queue: fmean(waits) for queue, waits in by_queue.items()}
