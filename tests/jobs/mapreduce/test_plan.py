"""Workloads of programs as jobs: how many, how large, on which data, submitted when; what cannot be run is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.jobs.engines.base import ProgramJob
from harness.jobs.workloads import build_jobs, load_workload
from harness.jobs.workloads.base import Scale
from harness.jobs.workloads.bins import BinsWorkload
from harness.jobs.workloads.programs import ProgramsWorkload, programs_of
from harness.model.data import data_path
from harness.model.resources import Resource
from harness.traces.swim import read_swim

SEQUENCE = """
kind: programs
am: {memory_mb: 1024}
task: {memory_mb: 600, vcores: 2}
data:
  text: {kind: text, size: 1MB}
  rankings: {kind: rankings, size: 1MB}
  visits: {kind: uservisits, size: 2MB, seed: 4}
  points: {kind: points, size: 1MB}
submission: {think_s: 7}
start_s: 3
rounds: 2
programs:
  - {application: WordCount, input: [text], maps: 8, reduces: 3}
  - {application: join, input: [rankings, visits], maps: 5, reduces: 2}
  - {application: grep, input: [text], maps: 4, reduces: 2}
  - application: kmeans
    input: [points]
    executors: {count: 3, slots: 2, demand: {memory_mb: 1024, vcores: 2}}
"""
BINS = """
kind: programs
am: {memory_mb: 1024}
task: {memory_mb: 512}
data: {rankings: {kind: rankings, size: 1MB}, visits: {kind: uservisits, size: 1MB}}
arrivals: {trace: TRACE}
programs:
  - {type: small, application: selection, input: [rankings], maps: 1, jobs: 6}
  - {type: large, application: fbgrep, input: [visits], maps: 800, reduces: 60, jobs: 2}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "programs.yaml"
    path.write_text(text)
    return path


def jobs(folder: Path, text: str, *, seed: int = 1, **scale: float) -> list[ProgramJob]:
    return programs_of(
        load_workload(written(folder, text)), queue="root.Q", seed=seed, start_s=10.0, scale=Scale(**scale)
    )


def test_a_sequence_in_turn(tmp_path: Path) -> None:
    found = jobs(tmp_path, SEQUENCE)
    assert [job.spec.id for job in found] == [
        *("Q-0001", "Q-0002", "Q-0002.2", "Q-0003", "Q-0003.2", "Q-0004"),
        *("Q-0005", "Q-0006", "Q-0006.2", "Q-0007", "Q-0007.2", "Q-0008"),
    ]
    first, join, join_2, grep, grep_2, kmeans, again = (job.spec for job in found[:7])
    assert (first.submit_s, first.after_job) == (13.0, None)
    assert (join.after_job, join.think_s) == ("Q-0001", 7.0)
    assert (join_2.after_job, join_2.think_s) == ("Q-0002", 0.0)
    # What follows a program of two jobs follows its last one.
    assert (grep.after_job, grep.think_s) == ("Q-0002.2", 7.0)
    assert [(stage.name, stage.tasks) for stage in first.stages] == [("map", 8), ("reduce", 3)]
    assert first.stages[1].after == ("map",)
    assert first.stages[0].demand == Resource(600, 2)
    # The second job reads a file a reduce of the first; Grep's sorts into one.
    assert [stage.tasks for stage in join_2.stages] == [2, 2]
    assert [stage.tasks for stage in grep_2.stages] == [2, 1]
    assert (kmeans.kind, kmeans.executors, kmeans.executor_demand) == ("spark", 3, Resource(1024, 2))
    assert (kmeans.executor_slots, kmeans.am.memory_mb) == (2, 1024)
    assert again.after_job == "Q-0004"
    assert found[1].inputs[1].seed == 4
    assert [job.step for job in found[1:3]] == [1, 2]
    assert {job.first for job in found[1:3]} == {"Q-0002"}


def test_the_builder_gives_the_same_jobs(tmp_path: Path) -> None:
    workload = load_workload(written(tmp_path, SEQUENCE))
    built = list(build_jobs(workload, queue="root.Q", seed=1, start_s=10.0))
    assert built == [job.spec for job in jobs(tmp_path, SEQUENCE)]
    assert ("kmeans, executors", Resource(1024, 2)) in list(workload.spec.demands())


def test_bins_come_as_the_trace_says(tmp_path: Path) -> None:
    trace = data_path("workloads", "facebook", "FB-2009_samples_24_times_1hr_1.tsv")
    text = BINS.replace("TRACE", str(trace))
    found = jobs(tmp_path, text, gaps=0.5, tasks=0.01)
    arrivals = [row.submit_s for row, _ in zip(read_swim(trace), range(8), strict=False)]
    assert [job.spec.submit_s for job in found] == [10 + second / 2 for second in arrivals]
    assert sorted(job.spec.name for job in found) == ["large"] * 2 + ["small"] * 6
    large = [job for job in found if job.spec.name == "large"]
    assert [[stage.tasks for stage in job.spec.stages] for job in large] == [[8, 1], [8, 1]]
    assert [stage.tasks for stage in next(job for job in found if job.spec.name == "small").spec.stages] == [1]
    # The seed shuffles.
    orders = {tuple(job.spec.name for job in jobs(tmp_path, text, seed=seed)) for seed in range(6)}
    assert len(orders) > 1


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("application: join", "application: joins", "no application 'joins'"),
        ("input: [rankings, visits]", "input: [visits, rankings]", "reads rankings and uservisits"),
        ("input: [text], maps: 8, reduces: 3", "input: [text], maps: 8", "wordcount needs reduces"),
        ("application: kmeans", "application: kmean", "no application 'kmean'"),
        ("size: 2MB", "size: many", "not a size"),
        ("memory_mb: 1024, vcores: 2", "memory_mb: 100, vcores: 2", "executor_mb is 100"),
        ("input: [points]", "input: [pointes]", "not under data"),
        ("slots: 2", "slots: 1", "as many slots as it asks for vcores"),
        ("rounds: 2", "rounds: 2\narrivals: {mean_gap_s: 1}", "either submission or arrivals"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert before in SEQUENCE
    with pytest.raises(InputError, match=said) as found:
        jobs(tmp_path, SEQUENCE.replace(before, after))
    assert "programs.yaml" in found.value.line()


def test_durations_are_not_scaled(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be scaled"):
        jobs(tmp_path, SEQUENCE, durations=0.5)


def test_a_program_may_have_demands_of_its_own(tmp_path: Path) -> None:
    own = "map_demand: {memory_mb: 700}, reduce_demand: {memory_mb: 900, vcores: 3}"
    text = SEQUENCE.replace("maps: 5, reduces: 2}", f"maps: 5, reduces: 2, {own}}}")
    found = {job.spec.id: job.spec for job in jobs(tmp_path, text)}
    for identity in ("Q-0002", "Q-0002.2"):
        assert [stage.demand for stage in found[identity].stages] == [Resource(700, 1), Resource(900, 3)]
    assert {stage.demand for stage in found["Q-0001"].stages} == {Resource(600, 2)}
    wrong = SEQUENCE.replace("    input: [points]\n", "    input: [points]\n    map_demand: {memory_mb: 700}\n")
    with pytest.raises(InputError, match="give their demand"):
        jobs(tmp_path, wrong)


def test_a_groups_name_stands_for_its_programs_in_turn(tmp_path: Path) -> None:
    text = SEQUENCE.replace("  points: {", "  tpch: {kind: tpch, size: 1MB}\n  points: {")
    text = text.replace("rounds: 2", "rounds: 1\nanswers: keep")
    found = jobs(tmp_path, text + "  - {application: Hive, input: [tpch], maps: 3}\n")
    assert [job.application for job in found[6:]] == ["hive-q1", "hive-q9", "hive-q12", "hive-q17"]
    assert [job.spec.after_job for job in found[6:]] == ["Q-0004", "Q-0005", "Q-0006", "Q-0007"]
    assert {job.sizing.answers for job in found} == {"keep"}
    with pytest.raises(InputError, match=r"programs.yaml:\d+: .*hive-q1 reads tpch, given are text"):
        jobs(tmp_path, text + "  - {application: hive, input: [text], maps: 3}\n")


def test_qknobers_table_is_the_simulators_too() -> None:
    """The demands and sizes of Table 1 stand twice: as programs, and for the simulator."""
    ours = load_workload(data_path("workloads", "real", "qknober-facebook.yaml")).spec
    simulated = load_workload(data_path("workloads", "qknober", "facebook.yaml")).spec
    assert isinstance(ours, ProgramsWorkload)
    assert isinstance(simulated, BinsWorkload)
    table = [(r.type, r.maps, r.reduces, r.jobs, r.map_demand, r.reduce_demand) for r in simulated.bins]
    assert [(p.type, p.maps, p.reduces, p.jobs, p.map_demand, p.reduce_demand) for p in ours.programs] == table
    spark = load_workload(data_path("workloads", "real", "qknober-spark.yaml"))
    kmeans, als = programs_of(spark, queue="root.Q", seed=1)[:2]
    assert (kmeans.spec.executor_demand, als.spec.executor_demand) == (Resource(2048, 2), Resource(2048, 1))


def test_queries_by_hive_are_jobs_of_unknown_vertices(tmp_path: Path) -> None:
    text = SEQUENCE.replace("  points: {", "  tpch: {kind: tpch, size: 1MB}\n  points: {")
    text += "  - {application: Hive-Q6, input: [tpch], maps: 3, map_demand: {memory_mb: 700}}\n"
    query = next(job for job in jobs(tmp_path, text) if job.engine == "hive")
    assert (query.spec.id, query.spec.kind, query.application) == ("Q-0005", "dag", "hive-q6")
    assert [stage.demand for stage in query.spec.stages] == [Resource(700, 1)]
    assert (query.maps, query.reduces) == (3, 1)
    assert {job.engine for job in jobs(tmp_path, text)} == {"mapreduce", "spark", "hive"}
    for wrong, says in (
        ("input: [text], maps: 3", "reads tpch, given are text"),
        ("maps: 3, settings: {x: y}", "no setting"),
    ):
        with pytest.raises(InputError, match=says):
            jobs(tmp_path, text.replace("input: [tpch], maps: 3" if "input" in wrong else "maps: 3", wrong))
