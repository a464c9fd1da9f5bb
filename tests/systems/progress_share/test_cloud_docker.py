"""Pools on containers, without containers: what a file may say, sizes, billing by the started hour, giving back."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.documents import read_yaml
from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.clusters.accelerators import JoinedNode, NodeType
from harness.experiments.kind import Ended
from harness.experiments.resolve import experiment_path
from harness.experiments.selection import Selection
from harness.model.resources import Resource
from harness.systems.progress_share.cloud.columns import comparison_pools
from harness.systems.progress_share.cloud.containers import Held, demand, node_type
from harness.systems.progress_share.cloud.driver import InstanceType, Query
from harness.systems.progress_share.cloud.experiment import KIND
from harness.systems.progress_share.cloud.model import PoolsVariant
from harness.systems.progress_share.cloud.real import LoadedDockerCloud, docker_cloud

SMALL = InstanceType("small", price_hour=0.5, disk_gb=100, cores=2, cu=4, memory_gb=2.0)
TEXT = experiment_path("cloud-docker").read_text()


def load(folder: Path, text: str = TEXT) -> LoadedDockerCloud:
    (folder / "x.yaml").write_text(text)
    return docker_cloud(KIND.load(read_yaml(folder / "x.yaml")))


def test_the_experiment_that_the_project_brings_along(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert (loaded.core[0].name, loaded.core[1], len(loaded.experiment.spec.configurations)) == ("m1.large", 2, 2)
    kinds = {name: node_type(kind, loaded.docker) for name, kind in loaded.experiment.types.items()}
    assert kinds["m1.large"] == NodeType("m1.large", 1920, 2, 0.2)
    assert kinds["c1.medium"] == NodeType("c1.medium", 435, 2, 0.25)
    # All CPU limits that may be in force at once leave the machine a processor.
    assert 2 * 0.2 + sum(kinds[kind.name].cpus or 0 for kind in loaded.experiment.candidates()) < 1.6
    crypto, sort = loaded.queries
    assert demand(crypto, loaded.docker) == Resource(128, 1)
    assert demand(sort, loaded.docker) == Resource(512, 1)
    # What the driver refuses for its memory, YARN does not place either.
    assert sort.rate(loaded.experiment.types["c1.medium"]) == 0
    assert kinds["c1.medium"].memory_mb < 512


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("docker:\n", "rest:\n", "rest"),
        ("    Sort: {program: sort, size: 200000, count: 8}\n", "", "other queries"),
        ("2m1+1m2: {core: {m1.large: 2}", "2m1+1m2: {core: {m1.large: 3}", "core pools of several kinds"),
        ("memory_gb: 2.0", "memory_gb: 20", "more memory than a core of m1.large"),
        ("cpus_per_cu: 0.05", "cpus_per_cu: 0.001", "0.004 CPUs"),
        ("{m2.2xlarge: 1}", "{m9.2xlarge: 1}", "no instance type"),
        ("program: sort", "program: rm", "crypto"),
        ("hour_s: 60", "hour_s: .nan", "hour_s"),
    ],
)
def test_what_containers_cannot_be_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises((InputError, CallError), match=message) as raised:
        load(tmp_path, TEXT.replace(old, new))
    assert "\n" not in raised.value.line()


def test_a_file_without_containers_is_for_the_model_only(tmp_path: Path) -> None:
    document = read_yaml(experiment_path("cloud-production"))
    with pytest.raises(InputError, match="add docker:"):
        docker_cloud(KIND.load(document))
    with pytest.raises(CallError, match="neither policies"):
        KIND.variants(KIND.load(read_yaml(experiment_path("cloud-docker"))), Selection(policies=("fair",)))


def test_other_backends_and_given_clusters_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--backend", "local"], ["--backend", "docker", "--rm", "http://rm:8088"]):
        with pytest.raises(SystemExit) as stop:
            main(["run", "cloud-docker", *arguments])
        assert stop.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def held(joined_s: float, left_s: float | None = None) -> Held:
    return Held(JoinedNode("small-1", "small", "h", "h:1", joined_s), SMALL, left_s)


@pytest.mark.parametrize(("left_s", "hours"), [(100.5, 1), (160.0, 1), (160.1, 2), (279.0, 3), (280.0, 3), (280.5, 4)])
def test_started_hours_are_paid(left_s: float, hours: int) -> None:
    one = held(100.0, left_s)
    assert one.billed_h(60.0) == hours
    assert one.dollars(60.0) == hours * 0.5


@pytest.mark.parametrize(("idle_s", "release_s"), [(100.0, 157.0), (130.0, 157.0), (160.0, 157.0), (161.0, 217.0)])
def test_an_accelerator_stays_until_just_before_the_end_of_the_paid_hour(idle_s: float, release_s: float) -> None:
    one = held(100.0)
    assert one.release_s(idle_s, 60.0) == release_s
    one.left_s = release_s
    assert one.billed_h(60.0) == (1 if idle_s <= 160 else 2)


def test_tasks_are_whole_steps_of_memory() -> None:
    loaded = docker_cloud(KIND.load(read_yaml(experiment_path("cloud-docker"))))
    assert demand(Query("q", 1.0, 0.0), loaded.docker) == Resource(64, 1)
    assert demand(Query("q", 1.0, 0.26), loaded.docker) == Resource(128, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a b"},
        {"name": ""},
        {"name": "../x"},
        {"cpus": 0.0},
        {"cpus": float("nan")},
        {"cpus": 1e9},
        {"memory_mb": 0},
        {"vcores": -1},
        {"limit_mb": 10},
    ],
)
def test_node_types_that_cannot_be(wrong: dict[str, object]) -> None:
    good: dict[str, object] = {"name": "x", "memory_mb": 1024, "vcores": 1}
    with pytest.raises(CallError):
        NodeType(**{**good, **wrong})  # type: ignore[arg-type]


def test_grow_and_shrink_need_a_cluster_and_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = ["--state", str(tmp_path / "none")]
    for arguments, code in (
        (["grow", "--type", "x"], 1),
        (["grow", "--type", "x y"], 2),
        (["grow", "--type", "x", "--cpus", "nan"], 2),
        (["shrink", "x-1"], 1),
        (["shrink"], 2),
        (["shrink", "x-1", "--type", "x"], 2),
        (["shrink", "x-1", "--count", "1"], 2),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["cluster", *arguments, *state])
        assert stop.value.code == code, arguments
        assert "Traceback" not in capsys.readouterr().err


def test_a_time_that_rounds_to_nothing_has_no_speed(tmp_path: Path) -> None:
    loaded = KIND.load(read_yaml(experiment_path("cloud-docker")))
    summary = {"makespan_s": 0.0, "cost_dollars": 1.0, "accelerator_billed_h": 0, "hour_s": 60.0}
    ended = [Ended(PoolsVariant("2m1", "2m1", "cloud", {}, 1), tmp_path, summary, 0)]
    assert comparison_pools(loaded, ended)[1].split() == ["2m1", "0.00", "-", "-", "1.00", "-"]
