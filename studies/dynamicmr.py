"""DynamicMR studied: sections 4.3.2 to 4.3.6 of the thesis beyond what one experiment file says.

``python -m studies.dynamicmr WHAT`` measure and print one JSON
record each. The clusters, loads and variants are those of ``experiments/papers/dynamicmr/*.yaml``, with other sets of
jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of, load_experiment, variants_of
from harness.model.jobs import JobSpec, Stage
from harness.systems.dynamicmr.experiment import slot_run
from harness.systems.dynamicmr.simulator.engine import run_slots
from harness.systems.dynamicmr.simulator.model import SlotResult, SlotRun
from studies.result import write
from studies.seeds import over_seeds

BENCHMARKS = (
    "WordCount",
    "Sort",
    "Grep",
    "InvertedIndex",
    "Classification",
    "HistogramMovies",
    "HistogramRatings",
    "SequenceCount",
    "SelfJoin",
)

#: Map slots of a node's twelve, Fig. 4.10's x-axis.
CONFIGURATIONS = (1, 2, 4, 6, 8, 10, 11)
_SLOT_POLICIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hadoop", {"mode": "static"}),
    ("pi-dhsa", {}),
    ("pd-dhsa", {}),
)


def variant(experiment: LoadedExperiment, policy: str, seed: int, **settings: Any) -> Variant:
    """A variant of the experiment's own by name, or a policy with settings; with this seed."""
    for own in variants_of(experiment, seeds=(seed,)):
        if own.name == policy:
            return replace(own, settings={**own.settings, **settings})
    return Variant(policy, policy, "inside", settings, seed, 15.0)


def several(experiment: LoadedExperiment, count: int, seed: int) -> list[JobSpec]:
    """The first `count` jobs, the benchmarks again and again; all at time 0."""
    jobs = list(jobs_of(experiment, seed)[0])
    found = [jobs[at % len(jobs)] for at in range(count)]
    return [replace(job, id=f"{job.id}-{at // len(jobs) + 1}") for at, job in enumerate(found)]


def alone(experiment: LoadedExperiment, name: str, seed: int) -> list[JobSpec]:
    """One benchmark."""
    return [job for job in jobs_of(experiment, seed)[0] if job.name == name]


def play(
    experiment: LoadedExperiment,
    jobs: Sequence[JobSpec],
    policy: str,
    seed: int,
    change: Callable[[SlotRun], SlotRun] | None = None,
    /,
    **settings: Any,
) -> SlotResult:
    """One run; ``change`` is what differs from the experiment's own."""
    return run_slots((change or _as_it_is)(slot_run(experiment, variant(experiment, policy, seed, **settings), jobs)))


def _as_it_is(run: SlotRun) -> SlotRun:
    return run


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def measure_slots(seed: int) -> dict[str, Any]:
    """Fig. 4.10: speed-up over static slots of 1/11, for every configuration."""
    experiment = load_experiment("dynamicmr-slots")
    loads = {"Sort": alone(experiment, "Sort", seed)}
    loads["9 jobs"] = several(experiment, 9, seed)
    found: dict[str, Any] = {}
    for name, jobs in loads.items():
        times = {
            policy: [
                play(
                    experiment, jobs, "pi-dhsa" if policy == "hadoop" else policy, seed, map_slots=maps, **of
                ).makespan_ms
                for maps in CONFIGURATIONS
            ]
            for policy, of in _SLOT_POLICIES
        }
        worst = times["hadoop"][0]
        found[name] = {policy: [round(worst / time, 3) for time in own] for policy, own in times.items()}
        found[name]["hadoop_best_over_worst"] = round(max(times["hadoop"]) / min(times["hadoop"]), 3)
        found[name]["pi_dhsa_best_over_worst"] = round(max(times["pi-dhsa"]) / min(times["pi-dhsa"]), 3)
        click.echo(f"{name}: {found[name]}", err=True)
    return {"map_slots": list(CONFIGURATIONS), "speedup_over_1_11": found}


def measure_early(seed: int) -> dict[str, Any]:
    """What slow-start does to DHSA: the nine benchmarks, every configuration, reduces from 5 % and from 100 % on."""
    experiment = load_experiment("dynamicmr-slots")
    jobs = several(experiment, 9, seed)

    def early(run: SlotRun) -> SlotRun:
        return replace(run, jobs=tuple(replace(job, slow_start=0.05) for job in run.jobs))

    found: dict[str, Any] = {}
    for name, change in (("slow_start 1", _as_it_is), ("slow_start 0.05", early)):
        found[name] = {
            policy: [
                play(experiment, jobs, "pi-dhsa", seed, change, map_slots=maps, **of).makespan_ms / 1000
                for maps in (1, 6, 11)
            ]
            for policy, of in _SLOT_POLICIES[:2]
        }
        click.echo(f"{name}: {found[name]}", err=True)
    return {"map_slots": [1, 6, 11], "makespan_s": found}


def measure_borrowed(seed: int) -> dict[str, Any]:
    """Fig. 4.11: Sort, each percentage varied; speed-up over no lending."""
    experiment = load_experiment("dynamicmr-borrowed")
    jobs = list(jobs_of(experiment, seed)[0])
    parts = [round(0.1 * step, 1) for step in range(11)]
    found: dict[str, Any] = {}
    base = {}
    for maps, reduces in ((10, 2), (6, 6)):
        of = f"{maps}/{reduces}"
        base[of] = play(
            experiment, jobs, "pi-dhsa", seed, map_slots=maps, borrowed_map=0, borrowed_reduce=0
        ).makespan_ms
        curves: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("Pec_R varies, Pec_M 0", "borrowed_reduce", {"borrowed_map": 0}),
            ("Pec_R varies, Pec_M 100", "borrowed_reduce", {"borrowed_map": 1}),
            ("Pec_M varies, Pec_R 0", "borrowed_map", {"borrowed_reduce": 0}),
            ("Pec_M varies, Pec_R 100", "borrowed_map", {"borrowed_reduce": 1}),
        )
        for name, vary, fixed in curves:
            found.setdefault(of, {})[name] = [
                round(
                    base[of]
                    / play(experiment, jobs, "pi-dhsa", seed, map_slots=maps, **fixed, **{vary: part}).makespan_ms,
                    3,
                )
                for part in parts
            ]
        click.echo(f"{of}: {found[of]}", err=True)
    return {"percent": [round(100 * part) for part in parts], "speedup": found}


def measure_sepb(seed: int) -> dict[str, Any]:
    """Fig. 4.12: speed-up over no jobs checked, for 5, 10 and 20 jobs; with and without killing."""
    experiment = load_experiment("dynamicmr-sepb")
    found: dict[str, Any] = {}
    for count in (5, 10, 20):
        jobs = several(experiment, count, seed)
        own = {"no copies": play(experiment, jobs, "pi-dhsa", seed, mode="static", speculation="off")}
        for part in (0, 0.2, 0.4, 0.6, 0.8, 1):
            own[f"{part:g}"] = play(experiment, jobs, "pi-dhsa", seed, mode="static", sepb=part)
        for part in (0.6, 1):
            own[f"{part:g}, no kills"] = play(
                experiment, jobs, "pi-dhsa", seed, mode="static", sepb=part, kill_factor=0
            )
        base = own["0"].makespan_ms
        found[f"{count} jobs"] = {
            name: {
                "makespan_s": result.makespan_ms / 1000,
                "speedup": round(base / result.makespan_ms, 3),
                "copies": result.counts.speculative_maps + result.counts.speculative_reduces,
                "killed": result.counts.killed_slow,
            }
            for name, result in own.items()
        }
        click.echo(f"{count}: {found[f'{count} jobs']}", err=True)
    return {"percentageOfJobsCheckedForPendingTasks": found, "each_job_of_5": _each_job(experiment, seed)}


def _each_job(experiment: LoadedExperiment, seed: int) -> dict[str, Any]:
    """Fig. 4.12 (b): when each of 5 jobs ends with no job checked and with all."""
    jobs = several(experiment, 5, seed)
    return {
        f"{part:g}": {
            job.id: job.finished_ms / 1000
            for job in play(experiment, jobs, "pi-dhsa", seed, mode="static", sepb=part).jobs
        }
        for part in (0, 1)
    }


def measure_locality(seed: int) -> dict[str, Any]:
    """Figs. 4.13 and 4.14: node-local maps and makespan of jobs of 16, 32, 160 maps, without and with PreScheduling."""
    experiment = load_experiment("dynamicmr-locality")
    found: dict[str, Any] = {}
    for replicas in (1, 3):

        def kept(run: SlotRun, copies: int = replicas) -> SlotRun:
            return replace(run, cluster=replace(run.cluster, replicas=copies))

        for maps in (16, 32, 160):
            for together in (1, 3):
                sort = _sized("Sort", maps)
                jobs = [replace(sort, id=f"{queue}-1", queue=f"root.{queue}") for queue in "abc"[:together]]
                row: dict[str, Any] = {}
                for name, settings in (
                    ("no delay", {"delay_scheduling": False}),
                    ("delay", {}),
                    ("delay and PreScheduling", {"prescheduling": True}),
                ):
                    result = play(experiment, jobs, "pi-dhsa", seed, kept, mode="static", **settings)
                    row[name] = {
                        "node_local": round(result.counts.node_local / (maps * together), 4),
                        "makespan_s": result.makespan_ms / 1000,
                    }
                plain, with_it = row["delay"], row["delay and PreScheduling"]
                row["speedup"] = round(plain["makespan_s"] / with_it["makespan_s"], 3)
                row["locality_gain"] = round(with_it["node_local"] - plain["node_local"], 4)
                found[f"{replicas} replicas, {together} x {maps} maps"] = row
        click.echo(f"{replicas}: {found}", err=True)
    return {"loads": found}


def measure_benchmarks(seed: int) -> dict[str, Any]:
    """Fig. 4.14: each benchmark alone with 16, 32, 160 maps, one replica: what Slot PreScheduling gains."""
    experiment = load_experiment("dynamicmr-locality")
    found: dict[str, Any] = {}
    for name in BENCHMARKS:
        for maps in (16, 32, 160):
            jobs = [replace(_sized(name, maps), id="a-1", queue="root.a")]
            plain, with_it = (
                play(experiment, jobs, "pi-dhsa", seed, mode="static", prescheduling=on) for on in (False, True)
            )
            found.setdefault(name, {})[str(maps)] = {
                "makespan_s": plain.makespan_ms / 1000,
                "speedup": round(plain.makespan_ms / with_it.makespan_ms, 3),
                "locality_gain": round((with_it.counts.node_local - plain.counts.node_local) / maps, 4),
            }
        click.echo(f"{name}: {found[name]}", err=True)
    return {"benchmarks": found}


def _sized(name: str, maps: int) -> JobSpec:
    """The benchmark with so many maps, and one reduce for every eight."""
    experiment = load_experiment("dynamicmr-slots")
    job = next(job for job in jobs_of(experiment, 1)[0] if job.name == name)

    def sized(stage: Stage) -> Stage:
        return replace(stage, tasks=maps if stage.name == "map" else max(1, maps // 8))

    return replace(job, stages=tuple(sized(stage) for stage in job.stages))


def _ratios(
    experiment: LoadedExperiment, names: Sequence[str], loads: Sequence[str | int], seed: int
) -> dict[str, Any]:
    """Makespans of each variant on one benchmark and on several jobs, and of the first over each."""
    found: dict[str, Any] = {}
    for what in loads:
        load = what if isinstance(what, str) else f"{what} jobs"
        jobs = alone(experiment, what, seed) if isinstance(what, str) else several(experiment, what, seed)
        results = {name: play(experiment, jobs, name, seed) for name in names}
        base = results[names[0]].makespan_ms
        found[load] = {
            name: {
                "makespan_s": own.makespan_ms / 1000,
                "speedup": round(base / own.makespan_ms, 3),
                "shuffle_peak_mb_s": round(own.shuffle_peak_mb_s, 1),
                "most_reduces": own.counts.most_reduces,
            }
            for name, own in results.items()
        }
        click.echo(f"{load}: {found[load]}", err=True)
    return found


def measure_whole(seed: int) -> dict[str, Any]:
    """Figs. 4.15 and 4.16: DynamicMR over Hadoop's static slots, Fair Scheduler and FIFO."""
    experiment = load_experiment("dynamicmr-whole")
    return {
        "fair": _ratios(experiment, ("hadoop", "dynamicmr"), (*BENCHMARKS, 5, 10, 20, 30), seed),
        "fifo": _ratios(experiment, ("hadoop-fifo", "dynamicmr-fifo"), (5, 20), seed),
    }


def measure_static(seed: int) -> dict[str, Any]:
    """DynamicMR over Hadoop with other slots a node: 6/2, as section 4.3.5 prints it (four cores idle), and of 12."""
    experiment = load_experiment("dynamicmr-whole")
    found: dict[str, Any] = {}
    for count in (5, 20):
        jobs = several(experiment, count, seed)
        ours = play(experiment, jobs, "dynamicmr", seed).makespan_ms
        for maps, reduces in ((6, 2), (7, 5), (8, 4), (9, 3)):

            def slots(run: SlotRun, of: tuple[int, int] = (maps, reduces)) -> SlotRun:
                nodes = tuple(replace(node, map_slots=of[0], reduce_slots=of[1]) for node in run.cluster.nodes)
                return replace(run, cluster=replace(run.cluster, nodes=nodes))

            theirs = play(experiment, jobs, "hadoop", seed, slots).makespan_ms
            found.setdefault(f"{maps}/{reduces}", {})[f"{count} jobs"] = round(theirs / ours, 3)
    click.echo(f"{found}", err=True)
    return {"over static slots": found}


def measure_yarn(seed: int) -> dict[str, Any]:
    """Figs. 4.17 and 4.18: DynamicMR over YARN's containers, and the shuffle's throughput over time with 5 jobs."""
    experiment = load_experiment("dynamicmr-yarn")
    found: dict[str, Any] = {
        "loads": _ratios(experiment, ("yarn", "dynamicmr"), (*BENCHMARKS, 5, 10, 20, 30), seed),
    }
    jobs = several(experiment, 5, seed)
    for name in ("yarn", "dynamicmr"):
        rates = [sample.shuffle_mb_s for sample in play(experiment, jobs, name, seed).samples]
        mean = _mean(rates)
        found[f"throughput_of_5_jobs_{name}"] = {
            "step_s": 2,
            "mean_mb_s": round(mean, 1),
            "deviation_mb_s": round(_mean([(rate - mean) ** 2 for rate in rates]) ** 0.5, 1),
            "peak_mb_s": round(max(rates), 1),
            "zero_or_full": round(sum(rate in (0.0, max(rates)) for rate in rates) / len(rates), 3),
        }
    return found


def measure_late(seed: int) -> dict[str, Any]:
    """Fig. 4.17 with reduces after the last map, when both have all slots for maps first: YARN over DynamicMR."""
    experiment = load_experiment("dynamicmr-yarn")
    found: dict[str, Any] = {}

    def late(run: SlotRun) -> SlotRun:
        return replace(run, jobs=tuple(replace(job, slow_start=1.0) for job in run.jobs))

    def no_masters(run: SlotRun) -> SlotRun:
        return replace(late(run), cluster=replace(run.cluster, masters=False))

    for what in (*BENCHMARKS, 5, 10, 20, 30):
        jobs = alone(experiment, what, seed) if isinstance(what, str) else several(experiment, what, seed)
        ours = play(experiment, jobs, "dynamicmr", seed, late, sepb=0, prescheduling=False)
        whole = play(experiment, jobs, "dynamicmr", seed, late)
        yarn = play(experiment, jobs, "yarn", seed, late).makespan_ms
        found[what if isinstance(what, str) else f"{what} jobs"] = {
            "yarn_s": yarn / 1000,
            "pi-dhsa": round(yarn / ours.makespan_ms, 3),
            "dynamicmr": round(yarn / whole.makespan_ms, 3),
            "pi-dhsa, no masters": round(
                play(experiment, jobs, "yarn", seed, no_masters).makespan_ms / ours.makespan_ms, 3
            ),
        }
        click.echo(f"{what}: {list(found.values())[-1]}", err=True)
    return {"loads": found}


def measure_outside(seed: int) -> dict[str, Any]:
    """What a stock YARN can be told of the ratio of maps to reduces: slow-start, running limits of a job."""
    experiment = load_experiment("dynamicmr-yarn")
    jobs = several(experiment, 5, seed)
    found: dict[str, Any] = {"dynamicmr": play(experiment, jobs, "dynamicmr", seed).makespan_ms / 1000}
    for slow_start in (0.05, 0.5, 1.0):

        def begun(run: SlotRun, part: float = slow_start) -> SlotRun:
            return replace(run, jobs=tuple(replace(job, slow_start=part) for job in run.jobs))

        for name, limits in (
            ("no limits", {}),
            ("running.reduce.limit 12", {"reduce_limit": 12}),
            ("running.reduce.limit 4", {"reduce_limit": 4}),
        ):
            result = play(experiment, jobs, "yarn", seed, begun, **limits)
            found[f"slow-start {slow_start:g}, {name}"] = result.makespan_ms / 1000
    result = play(experiment, jobs, "yarn", seed, map_limit=18)
    found["slow-start 0.05, running.map.limit 18"] = result.makespan_ms / 1000
    return {"jobs": 5, "makespan_s": found}


@click.command()
@click.argument(
    "what",
    type=click.Choice(
        ["slots", "early", "borrowed", "sepb", "locality", "benchmarks", "whole", "static", "yarn", "late", "outside"]
    ),
)
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True, help="Runs of each figure.")
def study(what: str, seeds: int) -> None:
    """Chapter 4's DynamicMR on its workloads: one JSON record."""
    measures: dict[str, Callable[[int], dict[str, Any]]] = {
        "slots": measure_slots,
        "early": measure_early,
        "borrowed": measure_borrowed,
        "sepb": measure_sepb,
        "locality": measure_locality,
        "benchmarks": measure_benchmarks,
        "whole": measure_whole,
        "static": measure_static,
        "yarn": measure_yarn,
        "late": measure_late,
        "outside": measure_outside,
    }
    values = over_seeds(measures[what], seeds)
    command = f"python -m studies.dynamicmr {what} --seeds {seeds}"
    write(None, command, values)


if __name__ == "__main__":
    study()
