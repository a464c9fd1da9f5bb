"""Experiment files: what they resolve to, and what is refused with which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.base.errors import CallError, InputError
from harness.experiments.resolve import (
    LoadedExperiment,
    allocation_file,
    jobs_of,
    load_experiment,
    nodes_of,
    split_policy,
    variants_of,
)
from harness.experiments.run import check_backend
from harness.experiments.simulated import setup_of
from harness.model.resources import Resource
from harness.yarn.fair.spec import BAD_NAME

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "experiment": "small",
    "cluster": {"nodes": [{"count": 2, "memory_mb": 4096, "vcores": 4}]},
    "queues": {"a": {"weight": 2}, "g": {"children": {"b": None, "c": {"weight": 0.5}}}},
    "workloads": {
        "a": {"inline": {
            "kind": "sequence",
            "am": {"memory_mb": 1024},
            "submission": {"every_s": 10},
            "task": {"demand": {"memory_mb": 1024}, "duration": {"constant_s": 5}},
            "jobs": [{"name": "j", "maps": 3}],
            "rounds": 2,
        }},
    },
    "policies": ["fair", "ltrf@outside"],
}  # fmt: skip


def write(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "e.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}, sort_keys=False))
    return path


def load(tmp_path: Path, **changes: object) -> LoadedExperiment:
    return load_experiment(str(write(tmp_path, **changes)))


def on_yarn() -> list[Path]:
    """The experiments on a YARN cluster: those of another kind say so."""
    paths = sorted((ROOT / "experiments").rglob("*.yaml"))
    return [path for path in paths if "kind" not in yaml.safe_load(path.read_text())]


@pytest.mark.parametrize("path", on_yarn(), ids=lambda path: path.stem)
def test_every_experiment_that_the_project_brings_loads(path: Path) -> None:
    experiment = load_experiment(path.stem)
    assert experiment.spec.experiment == path.stem
    assert variants_of(experiment)
    assert nodes_of(experiment.spec)


def test_the_macro_experiment_is_the_papers() -> None:
    experiment = load_experiment("ltyarn")
    nodes = nodes_of(experiment.spec)
    assert len(nodes) == 9
    assert {node.memory_mb for node in nodes} == {24576}
    assert experiment.leaves == ("root.Facebook", "root.Purdue", "root.TPC-H", "root.Spark")
    jobs, count = jobs_of(experiment, 1)
    made = list(jobs)
    assert count == len(made) == 100 + 5 + 20 + 20
    first = {job.queue: job.submit_s for job in reversed(made)}
    assert first == {"root.Facebook": 23, "root.Purdue": 20, "root.TPC-H": 20, "root.Spark": 20}
    reduces = [stage for job in made if job.kind == "mapreduce" for stage in job.stages if stage.after]
    assert {stage.slow_start for stage in reduces} == {0.05}, "Hadoop's default"
    assert [v.name for v in variants_of(experiment)] == ["static", "fair", "ltyarn", "ltrf", "ltrf@outside"]


def test_the_hierarchy_starts_the_others_at_900_s() -> None:
    jobs, _ = jobs_of(load_experiment("ltyarn-hierarchy"), 1)
    first: dict[str, float] = {}
    for job in jobs:
        first.setdefault(job.queue, job.submit_s)
    assert first == {
        "root.Group1.Facebook": 23,
        "root.Group2.Purdue": 900,
        "root.Group1.TPC-H": 900,
        "root.Group2.Spark": 900,
    }


def test_queues_become_an_allocation_file_and_entitlements(tmp_path: Path) -> None:
    experiment = load(
        tmp_path,
        queues={
            "a": {"weight": 2, "max_resources": {"memory_mb": 4096, "vcores": 4}, "scheduling_policy": "fifo"},
            "g": {"children": {"b": {"max_running_apps": 3, "max_am_share": -1.0}, "c": None}},
        },
    )
    assert experiment.weights == {"root": 1, "root.a": 2, "root.g": 1, "root.g.b": 1, "root.g.c": 1}
    file = allocation_file(experiment.spec)
    assert set(file.configured_leaves) == {"root.a", "root.g.b", "root.g.c"}
    assert "root.g" in file.configured_parents
    assert (file.weight("root.a"), file.scheduling_policy("root.a")) == (2, "fifo")
    assert file.max_resources("root.a").resolve(Resource(99999, 99)) == Resource(4096, 4)
    assert (file.max_running_apps("root.g.b"), file.max_am_share("root.g.b")) == (3, -1)


def test_the_hash_is_of_what_is_run_and_of_nothing_else(tmp_path: Path) -> None:
    one = load(tmp_path)
    assert one.hash == load(tmp_path, policies=["static"], seed=[1, 2]).hash, "policies and seeds are the variants'"
    assert one.hash == load(tmp_path, sample_s=1.0).hash, "a default that is written out changes nothing"
    assert one.hash == load(tmp_path, scheduler="fair").hash
    assert one.hash == load(tmp_path, slots=None).hash, "nor does a key that says null"
    assert list(load(tmp_path, queues={"a": {"weight": 2}, "b": None}).resolved["queues"]) == ["a", "b"]
    assert one.hash != load(tmp_path, sample_s=2.0).hash
    assert one.hash != load(tmp_path, queues={"a": {"weight": 3}}).hash
    assert one.hash != load(tmp_path, scheduler="capacity", policies=["capacity"]).hash
    assert one.resolved["workloads"]["root.a"]["workload"]["rounds"] == 2


def test_variants_are_policies_times_combinations_times_seeds(tmp_path: Path) -> None:
    experiment = load(
        tmp_path,
        policies=[
            "static",
            {"policy": "ltrf", "mode": "outside", "vary": {"period_s": [1, 60], "horizon_s": [20, 80]}},
        ],
        seed=[1, 2],
    )
    names = [variant.name for variant in variants_of(experiment)]
    assert len(names) == 2 * (1 + 4)
    assert names[:2] == ["static,seed=1", "ltrf@outside,period_s=1,horizon_s=20,seed=1"]
    last = variants_of(experiment)[-1]
    assert (last.seed, last.period_s, last.settings) == (2, 60, {"horizon_s": 80})


def test_a_called_policy_is_the_files_entry_or_its_defaults(tmp_path: Path) -> None:
    experiment = load(tmp_path, policies=["fair", {"policy": "hltrf", "settings": {"t_wait": 4}}])
    (own,) = variants_of(experiment, policies=["hltrf"])
    assert own.settings == {"t_wait": 4}
    (other,) = variants_of(experiment, policies=["hltrf@outside"])
    assert (other.mode, other.settings, other.name) == ("outside", {}, "hltrf@outside")


def test_a_policy_that_is_called_by_its_name_is_not_also_the_one_with_another_name() -> None:
    loaded = load_experiment("ltyarn")
    assert [variant.name for variant in variants_of(loaded, policies=["ltrf"])] == ["ltrf"]
    assert [variant.name for variant in variants_of(loaded, policies=["ltyarn"])] == ["ltyarn"]
    hierarchy = load_experiment("ltyarn-hierarchy")
    alone = [one.name for one in variants_of(hierarchy, policies=["naive-hltrf"])]
    assert alone, "an entry under another name is taken where none is called just so"


def test_settings_of_the_call_go_to_the_policies_that_know_them(tmp_path: Path) -> None:
    experiment = load(tmp_path)
    variants = variants_of(experiment, settings={"horizon_s": "80", "period": "5"}, seeds=[7])
    assert [(v.settings, v.period_s, v.seed) for v in variants if v.policy == "ltrf"] == [({"horizon_s": "80"}, 5, 7)]
    assert [v.settings for v in variants if v.policy == "fair"] == [{}]


@pytest.mark.parametrize(
    ("policies", "settings", "says"),
    [
        (["ltfr"], {}, "ltfr"),
        (["ltrf@above"], {}, "above"),
        (["ltrf"], {"t_wait": "3"}, "t_wait"),
        (["hltrf"], {"t_wait": "-3"}, "t_wait"),
        (["hltrf"], {"t_wait": "nan"}, "t_wait"),
        (["ltrf"], {"period": "5"}, "outside"),
        (["ltrf@outside"], {"period": "soon"}, "soon"),
        (["ltrf@outside"], {"period": "0"}, "period"),
        (["ltrf@outside"], {"fit": "wait"}, "stock scheduler"),
    ],
)
def test_a_wrong_call_is_a_call_error(tmp_path: Path, policies: list[str], settings: dict[str, str], says: str) -> None:
    with pytest.raises(CallError) as caught:
        variants_of(load(tmp_path), policies=policies, settings=settings)
    assert says in caught.value.line()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"colour": "red"}, "colour: unknown key"),
        ({"queues": {"a": {"wieght": 2}}}, "queues.a.wieght: unknown key"),
        ({"queues": {"a": {"weight": -1}}}, "queues.a.weight"),
        ({"queues": {"a": {"weight": float("nan")}}}, "queues.a.weight"),
        ({"queues": {"a.b": None}}, "a.b"),
        ({"queues": {}}, "queues"),
        ({"workloads": {"z": SMALL["workloads"]["a"]}}, "no leaf queue 'z'"),  # type: ignore[index]
        ({"workloads": {"g": SMALL["workloads"]["a"]}}, "no leaf queue 'g'"),  # type: ignore[index]
        ({"workloads": {"a": "no-such"}}, "no workload 'no-such'"),
        ({"workloads": {"a": {}}}, "either use"),
        ({"policies": ["ltfr"]}, "ltfr"),
        ({"policies": [{"policy": "hltrf", "settings": {"t_wait": "soon"}}]}, "t_wait"),
        ({"policies": [{"policy": "ltrf", "period_s": 5}]}, "no meaning inside"),
        ({"policies": ["fair", "fair@inside", {"policy": "ltrf", "name": "fair"}]}, "named fair"),
        ({"cluster": {"nodes": []}}, "cluster.nodes"),
        ({"cluster": {"nodes": [{"memory_mb": 0, "vcores": 1}]}}, "memory_mb"),
        ({"cluster": {"nodes": [{"memory_mb": 512, "vcores": 1}]}}, "no node can hold: the largest has 512 MB"),
        ({"seed": -1}, "seed"),
        ({"sample_s": 0}, "sample_s"),
        ({"limits": {"time_limit_s": float("inf")}}, "time_limit_s"),
        ({"delays": {"am_response_heartbeats": 2}}, "am_response_heartbeats"),
        ({"experiment": "../up"}, "experiment"),
    ],
)
def test_a_wrong_file_is_an_input_error_with_its_place(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as caught:
        variants_of(load(tmp_path, **changes))
    assert says in caught.value.what
    assert str(tmp_path) in (caught.value.where or "")
    assert "\n" not in caught.value.line()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "has no maxAMShare: write max_am_share: -1"),
        ({"max_am_share": -1, "queues": {"a": {"max_am_share": 0.3}}}, "has no maxAMShare"),
        ({"max_am_share": -1, "scheduler": "capacity", "policies": ["capacity"]}, "is for the Fair Scheduler"),
        ({"max_am_share": -1, "policies": [{"policy": "capacity", "scheduler": "capacity"}]}, "for the Fair Scheduler"),
        ({"hadoop": "2.3"}, "hadoop"),
    ],
)
def test_hadoop_2_2_is_refused_with_what_it_does_not_have(
    tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        load(tmp_path, **{"hadoop": "2.2", **changes})


def test_hadoop_2_2_reaches_the_simulator_with_its_headroom(tmp_path: Path) -> None:
    for changes, wanted in (({"hadoop": "2.2", "max_am_share": -1}, ("2.2", "none")), ({}, (None, "scheduler"))):
        loaded = load(tmp_path, **changes)
        made = setup_of(loaded, variants_of(loaded)[0], [])
        assert (made.hadoop, made.mapreduce.headroom) == wanted


def test_a_demand_that_no_node_can_hold_names_job_size_and_node(tmp_path: Path) -> None:
    inline = {**SMALL["workloads"]["a"]["inline"]}  # type: ignore[index]
    inline["jobs"] = [{"name": "big", "maps": 1, "map": {"demand": {"memory_mb": 4097}, "duration": {"constant_s": 1}}}]
    with pytest.raises(InputError, match=r"job 'big', map asks for 4097 MB.*the largest has 4096 MB"):
        load(tmp_path, workloads={"a": {"inline": inline}})


@pytest.mark.parametrize("name", ["a,b", "a/b", "a\\b", "a\x7f"])
def test_a_queue_is_named_as_an_allocation_file_can_have_it(tmp_path: Path, name: str) -> None:
    assert BAD_NAME.search(name)
    with pytest.raises(InputError):
        load(tmp_path, queues={name: {}}, workloads={name: SMALL["workloads"]["a"]})  # type: ignore[index]


def test_cyclic_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("experiment: e\nqueues: &q\n  a:\n    children: *q\n")
    with pytest.raises(InputError, match="contains itself") as caught:
        load_experiment(str(path))
    assert caught.value.where == f"{path}:2"


def test_an_unknown_experiment_says_where_the_names_are() -> None:
    with pytest.raises(InputError) as caught:
        load_experiment("no-such")
    assert "yarnfair list experiments" in (caught.value.hint or "")


def test_unknown_backends_are_refused() -> None:
    for known in ("sim", "local", "docker", "ssh"):
        check_backend(known)
    with pytest.raises(CallError, match="no backend 'cloud'"):
        check_backend("cloud")


def test_policy_and_mode() -> None:
    assert split_policy("ltrf") == ("ltrf", None)
    assert split_policy("ltrf@outside") == ("ltrf", "outside")
    assert split_policy("a@b.py:Mine@inside") == ("a@b.py:Mine", "inside")


def test_leaves_of_one_name_under_two_parents(tmp_path: Path) -> None:
    inline = SMALL["workloads"]["a"]  # type: ignore[index]
    experiment = load(
        tmp_path,
        queues={"g": {"children": {"x": None}}, "h": {"children": {"x": None}}},
        workloads={"g.x": inline, "root.h.x": inline},
    )
    jobs, _ = jobs_of(experiment, 1)
    ids = [job.id for job in jobs]
    assert len(set(ids)) == len(ids) == 4
    with pytest.raises(InputError, match="not unique"):
        load(tmp_path, queues={"g": {"children": {"x": None}}, "h": {"children": {"x": None}}}, workloads={"x": inline})


def test_leaves_of_one_name_with_a_trace_that_is_read_as_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("job0\t0\t0\t1\t0\t0\njob1\t5\t5\t1\t0\t0\n")
    task = {"demand": {"memory_mb": 1024}, "duration": {"constant_s": 5}}
    swim = {"inline": {"kind": "swim", "trace": "t.tsv", "am": {"memory_mb": 1024}, "map": task, "reduce": task}}
    sequence = {**SMALL["workloads"]["a"]["inline"], "submission": {"think_s": 1}}  # type: ignore[index]
    queues = {name: {"children": {"x": None}} for name in ("g", "h", "i")}
    loads = {"g.x": swim, "h.x": swim, "i.x": {"inline": sequence}}
    jobs, count = jobs_of(load(tmp_path, queues=queues, workloads=loads), 1)
    listed = list(jobs)
    assert count is None
    ids = [job.id for job in listed]
    assert len(set(ids)) == len(ids) == 6
    assert {job.after_job for job in listed} == {None, "root.i.x/x-0001"}
    assert "root.i.x/x-0001" in ids
    # Leaves of different names keep their jobs' names.
    jobs, _ = jobs_of(load(tmp_path, queues={"x": None, "y": None}, workloads={"x": swim, "y": swim}), 1)
    assert all(not job.id.startswith("root") for job in jobs)


def test_policies_that_differ_only_on_a_real_cluster_are_two(tmp_path: Path) -> None:
    rm = {"policy": "fair", "name": "x", "in_rm": True}
    with pytest.raises(InputError, match="two policies are named x"):
        variants_of(load(tmp_path, policies=[{"policy": "fair", "name": "x"}, rm]))
    assert len(variants_of(load(tmp_path, policies=[rm, rm]))) == 1


def test_a_listed_trace_takes_no_factor_on_its_tasks(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"job.queue.name": "q", "job.tasks": [{"duration.ms": 5000}]}')
    use = {"inline": {"kind": "sls", "trace": "t.json"}, "scale": {"tasks": 2}}
    with pytest.raises(InputError, match=r"scale.tasks is 2") as caught:
        load(tmp_path, workloads={"a": use})
    path = tmp_path / "e.yaml"
    line = next(at for at, text in enumerate(path.read_text().splitlines(), start=1) if "tasks: 2" in text)
    assert f"{path}:{line}" in caught.value.line()
    jobs, _ = jobs_of(load(tmp_path, workloads={"a": {**use, "scale": {"durations": 3}}}), 1)
    assert [stage.duration.values_s for job in jobs for stage in job.stages] == [(15.0,)]


def test_the_scheduler_is_the_experiments_or_a_variants_own(tmp_path: Path) -> None:
    uses = ["fair", {"policy": "capacity", "scheduler": "capacity"}, {"policy": "ltrf", "mode": "outside"}]
    found = variants_of(load(tmp_path, policies=uses))
    assert [(v.name, v.scheduler) for v in found] == [
        ("fair", "fair"),
        ("capacity,scheduler=capacity", "capacity"),
        ("ltrf@outside", "fair"),
    ]
    found = variants_of(load(tmp_path, scheduler="capacity", policies=["capacity", "ltrf@outside"]))
    assert [(v.name, v.identity()["policy"]["scheduler"]) for v in found] == [
        ("capacity", "capacity"),
        ("ltrf@outside", "capacity"),
    ]


def test_the_stock_policies_need_their_own_schedulers(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="policy fair runs on the Fair Scheduler") as caught:
        variants_of(load(tmp_path, scheduler="capacity"))
    assert "take policy capacity" in caught.value.line()
    with pytest.raises(CallError, match="policy capacity runs on the Capacity Scheduler"):
        variants_of(load(tmp_path), policies=["capacity"])
