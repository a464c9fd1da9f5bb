"""An experiment on the queues of a scheduler's own file: what is read, who is placed where, what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.cli import main
from harness.experiments.placed import with_scheduler_file
from harness.experiments.resolve import LoadedExperiment, jobs_of, load_experiment
from harness.experiments.scheduler_file import read_scheduler_file
from harness.experiments.served import setup_on_file
from harness.experiments.simulated import setup_of
from harness.model.jobs import JobSpec
from harness.model.resources import Resource
from harness.predict.whatif import with_weights
from harness.sim.capacity.conf import read_conf
from harness.sim.scheduler_file import SchedulerFile

EXPERIMENT = """experiment: small
cluster: {nodes: [{count: 2, memory_mb: 8192, vcores: 8}]}
queues: {a: null, b: null}
workloads:
  a: &load {inline: {kind: sequence, submission: {every_s: 5}, am: {memory_mb: 512}, jobs: [{name: j, maps: 2},
      {name: k, maps: 1}], task: {demand: {memory_mb: 512}, duration: {constant_s: 9}}}}
  b: *load
policies: [fair, ltrf]
conf: {"yarn.scheduler.minimum-allocation-mb": 256}
"""
FAIR = """<allocations>
  <queue name="prod"><weight>3</weight><queue name="etl"/><queue name="bi"><weight>2</weight></queue></queue>
  <queue name="a"><aclSubmitApps>alice</aclSubmitApps></queue>
  <queue name="users" type="parent"><maxChildResources>4096 mb, 4 vcores</maxChildResources></queue>
  <queuePlacementPolicy>
    <rule name="specified" create="false"/>
    <rule name="nestedUserQueue"><rule name="default" queue="users" create="false"/></rule>
    <rule name="reject"/>
  </queuePlacementPolicy>
</allocations>
"""


def properties(**settings: str) -> str:
    lines = "".join(
        f"<property><name>yarn.scheduler.capacity.{name.replace('__', '.').replace('_', '-')}</name>"
        f"<value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    return f"<configuration>\n{lines}</configuration>\n"


TREE = {
    "root__queues": "prod,a",
    "root__prod__capacity": "70",
    "root__prod__queues": "etl,bi",
    "root__prod__etl__capacity": "40",
    "root__prod__bi__capacity": "60",
    "root__a__capacity": "30",
}
MAPPED = {"queue_mappings": "u:%user:root.prod.bi", "queue_mappings_override__enable": "true"}


def written(folder: Path, text: str, name: str = "scheduler.xml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.fixture
def experiment(tmp_path: Path) -> LoadedExperiment:
    return load_experiment(str(written(tmp_path, EXPERIMENT, "small.yaml")))


def queues_of(experiment: LoadedExperiment) -> dict[str, str]:
    return {job.id: job.queue for job in jobs_of(experiment, 1)[0]}


def test_applications_come_where_the_rules_of_an_allocation_file_place_them(
    tmp_path: Path, experiment: LoadedExperiment
) -> None:
    made, lines = with_scheduler_file(experiment, read_scheduler_file(written(tmp_path, FAIR)))
    assert set(queues_of(made).values()) == {"root.a", "root.users.yarnfair"}, "b is in no file: its user's queue"
    created = (
        "2 of 4 applications are in queues that the file does not have and the scheduler creates: root.users.yarnfair"
    )
    assert [line for line in lines if line.endswith(created)], "a queue that was renamed in the file is told so"
    assert made.weights["root.prod"] == 3.0
    assert [line for line in lines if "root.a: <aclSubmitApps>" in line], "it refuses nobody here, and that is told"
    (variant,) = [v for v in made.kind.variants(made) if v.policy == "fair"]
    setup = setup_of(made, variant, [])
    limit = setup.allocations.max_resources("root.users.yarnfair").absolute
    assert limit == Resource(4096, 4), "its parent's limit for ad hoc queues"


def test_mapping_rules_decide_and_policies_act_from_outside(tmp_path: Path, experiment: LoadedExperiment) -> None:
    made, lines = with_scheduler_file(experiment, read_scheduler_file(written(tmp_path, properties(**TREE, **MAPPED))))
    assert set(queues_of(made).values()) == {"root.prod.bi"}
    assert [(v.policy, v.mode, v.scheduler) for v in made.kind.variants(made)] == [
        ("capacity", "inside", "capacity"),
        ("ltrf", "outside", "capacity"),
    ]
    assert any("ltrf acts from outside" in line for line in lines)
    assert made.weights["root.prod.bi"] == pytest.approx(42.0), "60 % of 70 % of the cluster"


def test_who_is_rejected_does_not_come_and_is_counted(tmp_path: Path, experiment: LoadedExperiment) -> None:
    made, lines = with_scheduler_file(experiment, read_scheduler_file(written(tmp_path, properties(**TREE))))
    assert set(queues_of(made).values()) == {"root.a"}
    assert made.scheduler_file is not None
    assert made.scheduler_file.described()["rejected"] == {"there is no queue root.b, and nothing makes it": 2}
    assert any("2 of 4 applications are rejected" in line for line in lines)


def test_a_file_whose_rules_reject_everybody_is_refused(tmp_path: Path, experiment: LoadedExperiment) -> None:
    rules = "<queuePlacementPolicy><rule name='reject'/></queuePlacementPolicy>"
    text = f"<allocations><queue name='x'/>{rules}</allocations>"
    file = written(tmp_path, text)
    with pytest.raises(InputError, match="reject all 4 applications"):
        with_scheduler_file(experiment, read_scheduler_file(file))
    made, _ = with_scheduler_file(experiment, read_scheduler_file(file, place="spread"))
    assert set(queues_of(made).values()) == {"root.x"}


def test_applications_are_spread_over_all_leaves(tmp_path: Path, experiment: LoadedExperiment) -> None:
    for text in (FAIR, properties(**TREE)):
        made, _ = with_scheduler_file(experiment, read_scheduler_file(written(tmp_path, text), place="spread"))
        assert set(queues_of(made).values()) == {"root.a", "root.prod.bi", "root.prod.etl"}


def test_groups_are_those_of_the_call(tmp_path: Path, experiment: LoadedExperiment) -> None:
    text = (
        "<allocations><queue name='dev'/><queuePlacementPolicy><rule name='primaryGroup' create='false'/>"
        "<rule name='reject'/></queuePlacementPolicy></allocations>"
    )
    file = written(tmp_path, text)
    with pytest.raises(InputError, match="no groups are known of user yarnfair"):
        with_scheduler_file(experiment, read_scheduler_file(file))
    read = read_scheduler_file(file, groups={"yarnfair": ("dev", "ops")})
    assert set(queues_of(with_scheduler_file(experiment, read)[0]).values()) == {"root.dev"}


UNCOVERED = {
    "root__a__default_application_lifetime": "600",
    "root__a__accessible_node_labels": "gpu",
    "root__prod__bi__ordering_policy": "fifo-for-pending-apps",
    "schedule_asynchronously__enable": "true",
}


def test_what_is_not_covered_is_told_all_at_once_and_can_be_dropped(tmp_path: Path) -> None:
    file = written(tmp_path, properties(**TREE, **UNCOVERED))
    with pytest.raises(InputError) as refused:
        read_scheduler_file(file)
    names = [
        "root.a.default-application-lifetime",
        "root.a.accessible-node-labels",
        "root.prod.bi.ordering-policy",
        "schedule-asynchronously.enable",
    ]
    assert all(name in refused.value.line() for name in names)
    read = read_scheduler_file(file, drop=True)
    assert [one.name.removeprefix("yarn.scheduler.capacity.") for one in read.dropped] == names
    read_conf(read.capacity)


def test_reservations_and_other_resources_of_an_allocation_file_can_be_dropped(tmp_path: Path) -> None:
    text = (
        "<allocations><queue name='r'><reservation/></queue>"
        "<queue name='a'><maxResources>memory-mb=4096,vcores=4,yarn.io/gpu=2</maxResources></queue></allocations>"
    )
    file = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        read_scheduler_file(file)
    assert "yarn.io/gpu" in refused.value.line()
    assert "queue root.r: <reservation>" in refused.value.line()
    read = read_scheduler_file(file, drop=True)
    assert sorted(read.leaves) == ["root.a", "root.r"]


def test_a_file_that_hadoop_refuses_is_refused(tmp_path: Path) -> None:
    settings = {**TREE, "root__a__capacity": "20"}
    with pytest.raises(InputError, match="a ResourceManager refuses the file"):
        read_scheduler_file(written(tmp_path, properties(**settings)))
    with pytest.raises(InputError, match="weight"):
        read_scheduler_file(written(tmp_path, "<allocations><queue name='a'><weight>x</weight></queue></allocations>"))


def job(user: str, queue: str = "default", **more: str) -> JobSpec:
    return JobSpec(id=f"{user}-{queue}", queue=queue, kind="mapreduce", am=Resource(1, 1), stages=(), user=user, **more)


def test_queues_that_applications_create_have_their_templates(tmp_path: Path) -> None:
    settings = {
        "root__queues": "users,a",
        "root__users__capacity": "3w",
        "root__a__capacity": "1w",
        "root__users__auto_queue_creation_v2__enabled": "true",
        "root__users__auto_queue_creation_v2__leaf_template__capacity": "5w",
        "root__*__auto_queue_creation_v2__template__maximum_capacity": "40",
        "queue_mappings": "u:%user:root.users.%user",
    }
    read = read_scheduler_file(written(tmp_path, properties(**settings)))
    made = read.settled([job("alice"), job("bob"), job("alice", "root.a")])
    assert made.placed is not None
    assert made.placed.queues == {"root.users.alice": 1, "root.users.bob": 1, "root.a": 1}
    assert made.capacity["root.users.alice.capacity"] == "5w"
    assert made.capacity["root.users.bob.maximum-capacity"] == "40"
    queues = {queue.path for queue in read_conf(made.capacity).queues()}
    assert queues == {"root", "root.users", "root.users.alice", "root.users.bob", "root.a"}
    assert any("queues that applications create" in line for line in made.lines())
    assert made.placed.created == ("root.users.alice", "root.users.bob")


LEGACY = {
    "root__queues": "research,a",
    "root__research__capacity": "15",
    "root__a__capacity": "85",
    "root__research__auto_create_child_queue__enabled": "true",
    "root__research__leaf_queue_template__capacity": "40",
    "root__research__leaf_queue_template__maximum_capacity": "60",
    "root__research__leaf_queue_template__user_limit_factor": "3",
}


def test_queues_of_the_legacy_way_have_their_template(tmp_path: Path) -> None:
    """``plan`` and ``whatif`` refused the file. The third is created when 80 of 100 % are given away."""
    read = read_scheduler_file(written(tmp_path, properties(**LEGACY)))
    assert read.dropped == ()
    assert read.leaves == ["root.a"]
    jobs = [job(user, f"root.research.{user}") for user in ("ann", "bob", "cy")]
    made = read.settled([*jobs, job("ann", "root.research.ann"), job("dan", "root.a")])
    assert made.placed is not None
    assert made.placed.queues == {
        "root.research.ann": 2, "root.research.bob": 1, "root.research.cy": 1, "root.a": 1
    }  # fmt: skip
    conf = {queue.path: queue for queue in read_conf(made.capacity).queues()}
    assert [conf[f"root.research.{name}"].capacity for name in ("ann", "bob", "cy")] == pytest.approx([0.4, 0.4, 0.0])
    assert [conf[f"root.research.{name}"].maximum for name in ("ann", "bob", "cy")] == pytest.approx([0.6] * 3)
    assert conf["root.research.cy"].user_limit_factor == 3.0
    # A child without capacity takes applications, and so does one beyond its template's maximum-applications.
    assert all(conf[f"root.research.{name}"].max_apps > 10**9 for name in ("ann", "bob", "cy"))
    (line,) = [line for line in made.lines() if "no guaranteed capacity" in line]
    assert "of the queues that root.research creates, cy has no guaranteed capacity" in line
    assert any("queues that applications create" in line for line in made.lines())
    # What the scheduler creates, a controller leaves alone, here as there.
    moved = made.with_weights({"root.research": 50.0, "root.a": 50.0}, Resource(8192, 8))
    assert {path: moved.capacity[f"{path}.capacity"] for path in ("root.research", "root.research.ann")} == {
        "root.research": "50", "root.research.ann": "40"
    }  # fmt: skip
    # A load that has no application below the parent.
    idle = read.settled([job("dan", "root.a")])
    assert {queue.path for queue in read_conf(idle.capacity).queues()} == {"root", "root.research", "root.a"}


@pytest.mark.parametrize(("of_parent", "has"), [("33.5", 33.5), ("33.6", 0.0)])
def test_hadoops_tolerance_is_a_part_of_the_cluster(tmp_path: Path, of_parent: str, has: float) -> None:
    """``CSQueueUtils.EPSILON`` is 0.001 of the cluster, 0.67 % of a parent of 15 %: 33.5 fits into 33, but not 33.6."""
    given = {**LEGACY, "root__research__leaf_queue_template__capacity": of_parent}
    jobs = [job(user, f"root.research.{user}") for user in ("ann", "bob", "cy")]
    made = read_scheduler_file(written(tmp_path, properties(**given))).settled(jobs)
    (cy,) = [queue for queue in read_conf(made.capacity).queues() if queue.path == "root.research.cy"]
    assert 100.0 * cy.capacity == pytest.approx(has)


def test_a_parent_of_the_legacy_way_creates_no_more_than_it_may(tmp_path: Path) -> None:
    jobs = [job(user, f"root.research.{user}") for user in ("ann", "bob", "cy")]
    for key, text, why in (
        ("max_queues", "1", "has as many queues as it may create (1)"),
        ("fail_on_exceeding_parent_capacity", "true", "creates no queue beyond its capacity"),
    ):
        more = {f"root__research__auto_create_child_queue__{key}": text}
        made = read_scheduler_file(written(tmp_path, properties(**LEGACY, **more))).settled(jobs)
        assert made.placed is not None
        assert sum(made.placed.rejected.values()) == (2 if key == "max_queues" else 1)
        assert all(why in one for one in made.placed.rejected)


def test_who_follows_a_rejected_application_does_not_come(tmp_path: Path) -> None:
    read = read_scheduler_file(written(tmp_path, properties(**TREE)))
    follower = JobSpec(
        id="next", queue="root.a", kind="mapreduce", am=Resource(1, 1), stages=(), after_job="alice-root.b"
    )
    assert [one.id for one in read.jobs([job("alice", "root.b"), follower, job("alice", "root.a")])] == ["alice-root.a"]


@pytest.mark.parametrize("text", [FAIR, properties(**TREE)])
def test_dragged_weights_reach_the_files_own_settings(tmp_path: Path, experiment: LoadedExperiment, text: str) -> None:
    made, _ = with_scheduler_file(experiment, read_scheduler_file(written(tmp_path, text), place="spread"))
    variant = made.kind.variants(made)[0]
    before, after = (
        setup_of(one, variant, [])
        for one in (made, with_weights(made, {"root.prod.bi": made.weights["root.prod.etl"]}))
    )
    if made.spec.scheduler == "fair":
        assert [s.allocations.weight("root.prod.bi") for s in (before, after)] == [2.0, 1.0]
    else:
        assert before.capacity["root.prod.bi.capacity"] == "60"
        assert float(after.capacity["root.prod.bi.capacity"]) == 50.0
        assert float(after.capacity["root.prod.etl.capacity"]) == 50.0


def test_a_run_on_a_file_names_it_and_what_was_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = written(tmp_path, EXPERIMENT, "small.yaml")
    file = written(tmp_path, properties(**TREE, **MAPPED, **UNCOVERED))
    call = ["run", str(experiment), "--scheduler-file", str(file), "--policy", "capacity", "--jobs", "1"]
    call += ["--no-report", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stop:
        main(call)
    assert stop.value.code == 1
    assert "give --drop" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main([*call, "--drop"])
    assert not stop.value.code
    assert "dropped, the simulator does not cover it" in capsys.readouterr().err
    (record,) = (tmp_path / "out").glob("*/run.json")
    document = json.loads(record.read_text())["experiment"]["scheduler_file"]
    assert document["file"] == str(file)
    assert len(document["dropped"]) == 4
    assert set(pd.read_parquet(record.parent / "jobs.parquet")["queue"]) == {"root.prod.bi"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--place", "spread"], "--place goes with --scheduler-file"),
        (["--drop"], "--drop goes with --scheduler-file"),
        (["--scheduler-file", "x.xml", "--backend", "local"], "--scheduler-file is of the simulator"),
        (["--scheduler-file", "x.xml", "--group", "alice"], "names no user's groups"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(written(tmp_path, EXPERIMENT, "small.yaml")), *options])
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_a_synthetic_load_on_a_file(tmp_path: Path) -> None:
    for text in (FAIR, properties(**TREE)):
        file: SchedulerFile = read_scheduler_file(written(tmp_path, text)).settled(())
        setup = setup_on_file(file, 6)
        assert {one.queue for one in setup.jobs} == set(file.leaves)
