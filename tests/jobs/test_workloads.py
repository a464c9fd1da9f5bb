"""The papers' workloads as jobs: counts of the papers, determinism, scaling; and files that are refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from harness.base.errors import InputError
from harness.jobs.workloads import base, build_jobs, load_workload
from harness.jobs.workloads.base import Scale
from harness.model.jobs import JobSpec
from harness.model.resources import Resource
from harness.results.metrics import expected_s

ROOT = Path(__file__).resolve().parents[2]


def jobs_of(name: str, *, seed: int = 1, **more: object) -> list[JobSpec]:
    workload = load_workload(ROOT / "workloads" / f"{name}.yaml")
    return list(build_jobs(workload, queue="root.q", seed=seed, **more))  # type: ignore[arg-type]


def test_facebook_is_table_3() -> None:
    jobs = jobs_of("facebook/facebook")
    sizes = Counter((job.name, *(stage.tasks for stage in job.stages)) for job in jobs)
    assert sizes == {
        ("rankings selection", 1): 38,
        ("grep search", 2): 18,
        ("uservisits aggregation", 10, 2): 14,
        ("rankings selection", 50): 10,
        ("uservisits aggregation", 100, 10): 6,
        ("rankings selection", 200): 6,
        ("grep search", 400): 4,
        ("rankings-uservisits join", 400, 30): 2,
        ("grep search", 800, 60): 2,
    }
    times = [job.submit_s for job in jobs]
    assert (times[0], times[9], times[-1], times) == (23, 187, 1618, sorted(times))


def test_facebooks_average_task_takes_11_s() -> None:
    stages = [stage for job in jobs_of("facebook/facebook") for stage in job.stages]
    mean = sum(stage.tasks * expected_s(stage.duration) for stage in stages) / sum(stage.tasks for stage in stages)
    assert mean == pytest.approx(11, abs=0.1)


def test_the_seed_shuffles_the_bins_and_nothing_else() -> None:
    one, same, other = (jobs_of("facebook/facebook", seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert [job.name for job in one] != [job.name for job in other]
    assert [job.submit_s for job in one] == [job.submit_s for job in other]
    assert Counter(job.stages for job in one) == Counter(job.stages for job in other)


def test_purdue_is_five_jobs_of_640_maps_every_three_minutes() -> None:
    jobs = jobs_of("purdue/purdue")
    assert [job.submit_s for job in jobs] == [0, 180, 360, 540, 720]
    assert [job.name for job in jobs] == ["WordCount", "TeraSort", "Grep", "InvertedIndex", "HistogramMovies"]
    assert {job.stages[0].tasks for job in jobs} == {40 * 1024 // 64}
    times = [tuple(round(expected_s(stage.duration), 6) for stage in job.stages) for job in jobs]
    assert times == [(22, 11), (10, 26), (9, 11), (32, 23), (6, 13)], "tang-thesis Table 3.2"
    assert all(job.stages[1].after == ("map",) for job in jobs)


def test_tpch_is_twenty_queries_one_after_another() -> None:
    jobs = jobs_of("tpch/tpch")
    assert [job.name for job in jobs] == ["Q1", "Q9", "Q12", "Q17"] * 5
    assert [job.after_job for job in jobs] == [None, *(job.id for job in jobs[:-1])]
    assert {job.think_s for job in jobs} == {0}
    stages = [stage for job in jobs for stage in job.stages]
    mean = sum(stage.tasks * expected_s(stage.duration) for stage in stages) / sum(stage.tasks for stage in stages)
    assert mean == pytest.approx(23.6, abs=0.05)  # LTYARN Fig. 11a
    assert all(job.kind == "dag" for job in jobs)


def test_spark_is_k_means_and_als_ten_times_with_two_minutes_between() -> None:
    jobs = jobs_of("spark/spark")
    assert Counter(job.name for job in jobs) == {"k-means": 10, "ALS": 10}
    assert {job.think_s for job in jobs[1:]} == {120}
    assert {(job.executors, job.executor_demand) for job in jobs} == {
        (100, Resource(2048, 2)),
        (100, Resource(2048, 1)),
    }
    kmeans, als = jobs[0], jobs[1]
    assert (len(kmeans.stages), kmeans.executor_slots, len(als.stages), als.executor_slots) == (10, 2, 20, 1)
    # Iterations follow each other: every stage but the first comes after the one before it.
    for job in (kmeans, als):
        assert [stage.after for stage in job.stages] == [(), *((stage.name,) for stage in job.stages[:-1])]


def test_starting_later_shifts_every_submission() -> None:
    for name in ("facebook/facebook", "purdue/purdue", "spark/spark"):
        before, after = jobs_of(name), jobs_of(name, start_s=900.0)
        assert [b.submit_s + 900 for b in before] == [a.submit_s for a in after]


def test_scaling_changes_tasks_durations_and_gaps() -> None:
    scale = Scale(tasks=1 / 3, durations=3.0, gaps=2.0)
    for before, after in zip(jobs_of("purdue/purdue"), jobs_of("purdue/purdue", scale=scale), strict=True):
        assert after.submit_s == 2 * before.submit_s
        for one, three in zip(before.stages, after.stages, strict=True):
            assert three.tasks == round(one.tasks / 3)
            assert expected_s(three.duration) == pytest.approx(3 * expected_s(one.duration))
    assert {job.think_s for job in jobs_of("spark/spark", scale=scale)[1:]} == {240}
    assert min(stage.tasks for job in jobs_of("facebook/facebook", scale=scale) for stage in job.stages) == 1


def test_scaling_a_trace_of_listed_tasks_changes_durations_and_gaps(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("kind: sls\ntrace: t.json\nstart_s: 7\n")
    tasks = '"job.tasks": [{"duration.ms": 4000}, {"duration.ms": 1500, "container.type": "reduce"}]'
    lines = [f'{{"job.start.ms": {at}, "job.queue.name": "q", "job.count": 2, {tasks}}}' for at in (0, 3000)]
    (tmp_path / "t.json").write_text("\n".join(lines))
    workload = load_workload(tmp_path / "w.yaml")
    jobs = list(build_jobs(workload, queue="root.q", seed=1, start_s=100, scale=Scale(durations=3.0, gaps=0.5)))
    assert [job.submit_s for job in jobs] == [107, 107, 108.5, 108.5]
    for job in jobs:
        assert [stage.duration.values_s for stage in job.stages] == [(12.0,), (4.5,)]
    # Equal jobs share what is stored of them.
    assert jobs[0].stages is jobs[1].stages
    plain = list(build_jobs(workload, queue="root.q", seed=1))
    assert list(build_jobs(workload, queue="root.q", seed=1, scale=Scale())) == plain
    assert [job.submit_s for job in plain] == [7, 7, 10, 10]
    with pytest.raises(InputError, match=r"scale.tasks is 0.5.*leave tasks out") as caught:
        build_jobs(workload, queue="root.q", seed=1, scale=Scale(tasks=0.5))
    assert f"{tmp_path / 'w.yaml'}:2" in caught.value.line()


def test_a_workload_says_how_much_of_a_reduce_comes_after_the_last_map(tmp_path: Path) -> None:
    """The key `tail` of every workload of MapReduce jobs, and of a DAG's stages, reaches the later stages alone."""
    kinds = {
        "sequence": "submission: {every_s: 1}\ntask: {TASK}\njobs: [{name: a, maps: 2, reduces: 1}]",
        "bins": "arrivals: {mean_gap_s: 1}\nmap: {TASK}\nreduce: {TASK}\n"
        "bins: [{type: a, maps: 2, reduces: 1, jobs: 1}]",
        "swim": "trace: t.tsv\nmap: {TASK}\nreduce: {TASK}",
    }
    (tmp_path / "t.tsv").write_text("job0\t1\t0\t1000\t500\t200\n")
    task = "demand: {memory_mb: 1024}, duration: {constant_s: 1}"
    for kind, rest in kinds.items():
        path = tmp_path / f"{kind}.yaml"
        path.write_text(f"kind: {kind}\nam: {{memory_mb: 1024}}\ntail: 0.25\n{rest.replace('TASK', task)}\n")
        (job,) = build_jobs(load_workload(path), queue="root.q", seed=1)
        assert [(stage.name, stage.tail) for stage in job.stages] == [("map", 0.0), ("reduce", 0.25)], kind
    stages = "[{name: s, tasks: 1}, {name: t, tasks: 1, after: [s], slow_start: 0.5, tail: 0.75}]"
    path.write_text(HEAD + f"jobs: [{{name: a, stages: {stages}}}]\n")
    (job,) = build_jobs(load_workload(path), queue="root.q", seed=1)
    assert [stage.tail for stage in job.stages] == [0.0, 0.75]


TASK = "demand: {memory_mb: 1024}\n  duration: {constant_s: 1}\n"
HEAD = f"kind: sequence\nam: {{memory_mb: 1024}}\nsubmission: {{every_s: 1}}\ntask:\n  {TASK}"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", None, "empty"),
        ("- a\n", 1, "a workload is a mapping"),
        ("kind: dance\n", 1, "'dance'"),
        ("a: [1\nkind: sequence\n", 2, "not valid YAML"),
        ("a: &x\n  b: *x\n", 1, "contains itself"),
        ("kind: sequence\nkind: bins\n", 2, "appears twice"),
        ("? [a, b]\n: c\n", 1, "not text"),
        ("kind: !!python/object:os.system x\n", 1, "python/object"),
        (HEAD + "jobs: [{name: a, maps: 1}]\nspeed: 2\n", 8, "speed: unknown key"),
        (HEAD + "jobs: [{name: a}]\n", 7, "either maps"),
        (HEAD + "jobs: [{name: a, maps: -1}]\n", 7, "jobs.0.maps"),
        (HEAD + "jobs: [{name: a, maps: .nan}]\n", 7, "jobs.0.maps"),
        (HEAD + "jobs: [{name: a, maps: 99999999999}]\n", 7, "jobs.0.maps"),
        (HEAD + "jobs: [{name: a, maps: two}]\n", 7, "jobs.0.maps"),
        (HEAD + "jobs:\n- name: a\n  stages: [{name: s, tasks: 1, after: [t]}]\n", 8, "not an earlier stage"),
        (HEAD + "tail: 1.5\njobs: [{name: a, maps: 1}]\n", 7, "tail"),
        (HEAD + "jobs:\n- name: a\n  stages: [{name: s, tasks: 1, tail: 0.5}]\n", 8, "comes after no other"),
        (
            HEAD + "jobs:\n- name: a\n  executors: {count: 1, slots: 1, demand: {memory_mb: 1024}}\n"
            "  stages: [{name: s, tasks: 1}, {name: t, tasks: 1, after: [s], tail: 0.5}]\n",
            8,
            "Spark",
        ),
        (HEAD.replace("constant_s: 1", "constant_s: .inf") + "jobs: [{name: a, maps: 1}]\n", 6, "constant_s"),
        (HEAD.replace("constant_s: 1", "constant_s: 0") + "jobs: [{name: a, maps: 1}]\n", 6, "greater than 0"),
        (HEAD.replace("{constant_s: 1}", "{}") + "jobs: [{name: a, maps: 1}]\n", 6, "exactly one"),
        (HEAD.replace("every_s: 1", "every_s: 1, think_s: 1") + "jobs: [{name: a, maps: 1}]\n", 3, "every_s"),
        (
            HEAD.replace("memory_mb: 1024}\nsub", "memory_mb: -5}\nsub") + "jobs: [{name: a, maps: 1}]\n",
            2,
            "am.memory_mb",
        ),
    ],
)
def test_a_broken_workload_is_refused_with_its_line(tmp_path: Path, text: str, line: int | None, says: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_workload(path)
    assert says in caught.value.what
    assert caught.value.where == (f"{path}:{line}" if line else str(path))
    assert "\n" not in caught.value.line()


def test_aliases_that_blow_up_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="values"):
        load_workload(path)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text("kind: " + "[" * 50_000)
    with pytest.raises(InputError):
        load_workload(path)


def test_more_bins_than_the_trace_has_jobs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("job0\t1\t1\t1\t0\t1\n")
    path = tmp_path / "w.yaml"
    path.write_text(
        "kind: bins\nam: {memory_mb: 1024}\narrivals: {trace: t.tsv}\n"
        f"map:\n  {TASK}reduce:\n  {TASK}bins: [{{type: a, maps: 1, jobs: 2}}]\n"
    )
    with pytest.raises(InputError, match="the trace has 1 jobs, the bins have 2"):
        list(build_jobs(load_workload(path), queue="root.q", seed=1))


def test_a_trace_is_read_once_however_many_runs_ask_and_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    plain = base.read_swim
    monkeypatch.setattr(base, "read_swim", lambda path: (reads.append(path), plain(path))[1])
    trace = tmp_path / "t.tsv"
    trace.write_text("a\t1\t1\t1\t1\t1\nb\t2\t1\t1\t1\t1\n")
    for _ in range(3):
        assert [row.id for row in base.swim_rows(trace, None)] == ["a", "b"]
    assert len(reads) == 1
    # What stands behind the rows that are wanted is not read.
    trace.write_text("a\t1\t1\t1\t1\t1\nb\t2\tnonsense\n")
    assert [row.id for row in base.swim_rows(trace, 1)] == ["a"]
    monkeypatch.setattr(base, "KEPT_BYTES", 0)
    for _ in range(2):
        assert [row.id for row in base.swim_rows(trace, 1)] == ["a"]
    assert len(reads) == 4


def test_sparks_executors_may_follow_their_tasks(tmp_path: Path) -> None:
    path = tmp_path / "spark.yaml"
    text = (ROOT / "workloads" / "spark" / "spark.yaml").read_text()
    fixed = jobs_of("spark/spark")
    assert {job.dynamic for job in fixed} == {None}
    document = yaml.safe_load(text)
    for job in document["jobs"]:
        job["executors"]["dynamic"] = {"min": 2, "idle_s": 30, "tracks_shuffles": True}
    path.write_text(yaml.safe_dump(document))
    jobs = list(build_jobs(load_workload(path), queue="root.q", seed=1))
    for job, before in zip(jobs, fixed, strict=True):
        assert job.dynamic is not None
        assert (job.dynamic.least, job.dynamic.initial, job.dynamic.idle_s) == (2, 2, 30.0)
        assert job.dynamic.most == before.executors, "count bounds them"
        assert job.executors <= before.executors
        last = {stage.name for stage in job.stages} - {name for stage in job.stages for name in stage.after}
        assert {stage.name for stage in job.stages if not stage.shuffles} == last
