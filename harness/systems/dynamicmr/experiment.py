"""The experiment type ``slots``, for experiments with the key ``slots:``.

It turns their variants into runs of MRv1's slot model (harness.systems.dynamicmr.simulator).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from harness.base.errors import CallError, InputError
from harness.experiments.resolve import LoadedExperiment, Variant, nodes_of
from harness.experiments.yarn import OnProgress, Simulated, Stepped, Yarn
from harness.model.jobs import Duration, JobSpec, Stage
from harness.policies.registry import make_policy
from harness.systems.dynamicmr.rules import Late, Rules, slot_rules
from harness.systems.dynamicmr.simulator.engine import run_slots
from harness.systems.dynamicmr.simulator.model import Faults, Shuffle, SlotCluster, SlotJob, SlotNode, SlotRun

if TYPE_CHECKING:
    from harness.experiments.kind import Target


#: Queue settings of YARN's Fair Scheduler that MRv1's pools do not have.
_NOT_OF_POOLS = (
    *("min_resources", "max_resources", "max_running_apps", "max_am_share"),
    *("quantum_s", "round_s", "application_weights"),
)


def slot_run(experiment: LoadedExperiment, variant: Variant, jobs: Iterable[JobSpec]) -> SlotRun:
    """Return the slot run of one variant.

    Raises CallError for a policy without rules for slots, InputError for jobs or queues that MRv1 does not have.
    """
    spec = experiment.spec
    slots = spec.slots
    assert slots is not None
    rules = check_slots(experiment, variant)
    maps = rules.map_slots or slots.map
    if maps > slots.map + slots.reduce:
        raise CallError(f"map_slots is {maps} of {slots.map + slots.reduce} slots", where="--set", hint="give fewer")
    reduces = slots.map + slots.reduce - maps
    cluster = SlotCluster(
        nodes=tuple(SlotNode(node.name, maps, reduces, node.rack, node.speed) for node in nodes_of(spec)),
        map_weight=Fraction(str(slots.map_weight)),
        reduce_weight=Fraction(str(slots.reduce_weight)),
        heartbeat_ms=round(slots.heartbeat_s * 1000),
        locality_delay_ms=round(slots.locality_delay_s * 1000),
        replicas=slots.replicas,
        rack_factor=slots.rack_factor,
        remote_factor=slots.remote_factor,
        shuffle=Shuffle(slots.shuffle.node_mb_s, slots.shuffle.cluster_mb_s),
        masters=slots.masters,
    )
    return SlotRun(
        cluster=cluster,
        jobs=tuple(slot_job(job, slots.shuffle.mb_per_map, variant.seed) for job in jobs),
        rules=_rules(experiment, rules),
        faults=Faults(
            spec.faults.failure, spec.faults.max_attempts, spec.faults.straggler, spec.faults.straggler_factor
        ),
        pools=experiment.leaves,
        seed=variant.seed,
        sample_ms=round(spec.sample_s * 1000),
        time_limit_ms=round((spec.limits.duration_s or spec.limits.time_limit_s) * 1000),
    )


def check_slots(experiment: LoadedExperiment, variant: Variant) -> Rules:
    """Return the policy's rules for slots. Raises CallError and InputError as `slot_run` does."""
    if variant.mode != "inside":
        raise CallError("slots are given out in the scheduler only", where=variant.name, hint="leave out @outside")
    rules = slot_rules(make_policy(variant.policy, variant.settings), speculation=experiment.spec.faults.speculation)
    if rules is None:
        hint = "take fair, fifo, mrorder, pi-dhsa, pd-dhsa or dynamicmr"
        raise CallError(f"policy {variant.policy} does not give out slots", where="--policy", hint=hint)
    _check(experiment)
    return rules


def _check(experiment: LoadedExperiment) -> None:
    """Raise InputError for settings of nodes, queues and faults that the model of MRv1's slots does not have."""
    spec, where = experiment.spec, experiment.document.where
    if any(path != "root" and path not in experiment.leaves for path in experiment.weights):
        raise InputError("MRv1's pools have no levels", where=where(("queues",)), hint="give queues without children")
    for at, group in enumerate(spec.cluster.nodes):
        for key, always in (("join_s", 0.0), ("leave_s", None), ("changes", None)):
            if getattr(group, key) != always:
                place = where(("cluster", "nodes", at, key))
                hint = f"leave out {key}; on containers nodes come and go"
                raise InputError("slots are there for the whole run", where=place, hint=hint)
    for name, queue in spec.queues.items():
        for key in _NOT_OF_POOLS:
            if queue is not None and getattr(queue, key) not in (None, {}):
                hint = f"leave out {key}; pools have a weight, min_slots and an order"
                raise InputError(f"pools of slots have no {key}", where=where(("queues", name, key)), hint=hint)
        if queue is not None and queue.scheduling_policy not in (None, "fair", "fifo"):
            place = where(("queues", name, "scheduling_policy"))
            raise InputError("jobs of a pool of slots go by fair or fifo", where=place, hint="take one of these")
    if "speculation_factor" in spec.faults.model_fields_set:
        place = where(("faults", "speculation_factor"))
        hint = "leave it out; slots.speculative_lag_s says when LATE looks at a task"
        raise InputError("LATE copies tasks by their rates, not by a factor", where=place, hint=hint)


def _rules(experiment: LoadedExperiment, rules: Rules) -> Rules:
    slots = experiment.spec.slots
    assert slots is not None
    queues = {f"root.{name}": queue for name, queue in experiment.spec.queues.items() if queue is not None}
    return replace(
        rules,
        weights={path: Fraction(str(experiment.weights[path])) for path in experiment.leaves},
        minimums={path: (q.min_slots.map, q.min_slots.reduce) for path, q in queues.items() if q.min_slots},
        fifo_pools=frozenset(path for path, queue in queues.items() if queue.scheduling_policy == "fifo"),
        late=Late(on=rules.late.on, lag_ms=round(slots.speculative_lag_s * 1000)),
    )


def slot_job(job: JobSpec, mb_per_map: dict[str, float], seed: int) -> SlotJob:
    """Return a MapReduce job with a drawn time for each task.

    Seed and names fix the times, so all policies get the same.

    A trace may have several stages of maps or of reduces (tasks of several sizes); they become one stage of each.
    Raises InputError for a job of another kind, and for stages that are not maps followed by reduces.
    """
    if job.kind != "mapreduce":
        raise InputError(f"a {job.kind} job on MRv1's slots", where=f"job {job.id}", hint="give MapReduce jobs")
    # The reduces of a job without maps have no predecessor; they are recognised by their name (harness.traces.sls).
    second = [stage for stage in job.stages if stage.after or stage.name.startswith("reduce")]
    first = [stage for stage in job.stages if stage not in second]
    names = {stage.name for stage in first}
    for stage in second:
        if set(stage.after) != names or stage.slow_start != second[0].slow_start:
            what = f"stage {stage.name!r} is more than MRv1's maps and the reduces after all of them"
            raise InputError(what, where=f"job {job.id}", hint="give it maps, and reduces after all maps alike")

    def times(stages: list[Stage]) -> tuple[int, ...]:
        found: list[int] = []
        for stage in stages:
            draw = random.Random(f"{seed}/{job.id}/{stage.name}")
            found += [max(1, round(_draw(stage.duration, k, draw) * 1000)) for k in range(stage.tasks)]
        return tuple(found)

    maps, reduces = times(first), times(second)
    per_map = mb_per_map.get(job.name, mb_per_map.get("default", 0.0))
    return SlotJob(
        id=job.id,
        pool=job.queue,
        maps_ms=maps,
        reduces_ms=reduces,
        submit_ms=round(job.submit_s * 1000),
        slow_start=second[0].slow_start if second else 1.0,
        shuffle_mb=per_map * len(maps) if reduces else 0.0,
        name=job.name,
        after=job.after_job,
        think_ms=round(job.think_s * 1000),
    )


def _draw(duration: Duration, task: int, draw: random.Random) -> float:
    if duration.kind == "constant":
        return duration.value_s
    if duration.kind == "lognormal":
        return draw.lognormvariate(duration.mu, duration.sigma)
    if duration.kind == "exponential":
        return draw.expovariate(1.0 / duration.value_s)
    if duration.kind == "uniform":
        return draw.uniform(duration.low_s, duration.high_s)
    if duration.kind == "listed":
        if not duration.attempts:
            return duration.values_s[task]
        first = sum(duration.attempts[:task])
        return sum(duration.values_s[first : first + duration.attempts[task]])
    return draw.choice(duration.values_s)


class Slots(Yarn):
    """The experiment type ``slots``: the queues and jobs of a YARN experiment on the slots of MRv1."""

    name = "slots"
    compiles = False

    def check(
        self, experiment: LoadedExperiment, variants: Sequence[Variant], backend: str, target: Target | None
    ) -> None:
        """Check that the variants can run on MRv1's slots. Raises InputError or CallError."""
        for variant in variants:
            check_slots(experiment, variant)
        super().check(experiment, variants, backend, target)

    def simulate(
        self,
        experiment: LoadedExperiment,
        variant: Variant,
        jobs: Iterable[JobSpec],
        on_progress: OnProgress,
        stepped: Stepped,
    ) -> Simulated:
        """Simulate a variant on MRv1's slots."""
        from harness.systems.dynamicmr.simulator.report import as_sim_result, figures, lines

        began = time.perf_counter()
        run = slot_run(experiment, variant, jobs)
        played = run_slots(run, lambda ms, done: stepped(ms / 1000.0, done))
        spec = experiment.spec
        heavy = sum(experiment.weights[path] for path in experiment.leaves)
        shares = {"root": 1.0, **{path: experiment.weights[path] / heavy for path in experiment.leaves}}
        result = as_sim_result(
            run,
            played,
            queues=["root", *experiment.leaves],
            shares=shares,
            memory_mb=sum(group.memory_mb * group.count for group in spec.cluster.nodes),
            vcores=sum(group.vcores * group.count for group in spec.cluster.nodes),
            wall_s=round(time.perf_counter() - began, 3),
        )
        return result, {"slots": figures(played)}, {"slots.jsonl": lines(played)}


KIND = Slots()
