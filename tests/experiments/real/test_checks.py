"""What is refused before a real cluster comes up, and which runs have one of their own."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.clusters import processes
from harness.experiments.campaign.clusters import OpenCluster, Place
from harness.experiments.kind import Target
from harness.experiments.real import runner as real
from harness.experiments.real.checks import check_experiment, check_inside, check_policies
from harness.experiments.real.runner import KeptCluster, real_runner
from harness.experiments.real.schedulers import capacity_text, check_traps
from harness.experiments.real.start import control_settings
from harness.experiments.resolve import LoadedExperiment, Variant, allocation_file, load_experiment, variants_of
from harness.policies.fair import Fair
from harness.policies.registry import OBJECTS
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.http import HttpOptions
from tests.yarn.fake_gssapi import FakeGssapi

EXPERIMENT = """
experiment: x
cluster: {nodes: [{count: 2, memory_mb: 8192, vcores: 16}]}
queues: {a: {}, b: {}}
workloads:
  a: {inline: {kind: sequence, submission: {every_s: 5}, am: {memory_mb: 1024}, task: {demand: {memory_mb: 1024},
      duration: {constant_s: 9}}, jobs: [{name: j, maps: 12}]}}
policies:
  - fair
  - {policy: ltrf, in_rm: true}
  - {policy: hltrf, in_rm: true, vary: {t_wait: [5, 10]}}
"""
GIVEN = Target(rm="http://rm:8088", allocations="/x", shared="/y")


def load(folder: Path, old: str = "", new: str = "") -> LoadedExperiment:
    assert old in EXPERIMENT
    (folder / "x.yaml").write_text(EXPERIMENT.replace(old, new) if old else EXPERIMENT)
    return load_experiment(str(folder / "x.yaml"))


@pytest.fixture
def nothing_comes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a cluster was brought up")

    monkeypatch.setattr(real, "open_cluster", opened)


@pytest.mark.parametrize("target", [Target(), GIVEN])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("slots: {map: 2, reduce: 1}\n", "no map and reduce slots"),
        ("faults: {speculation: true}\n", "speculative copies"),
        ('hadoop: "2.2"\nmax_am_share: -1\n', "no cluster of Hadoop 2.2"),
    ],
)
@pytest.mark.usefixtures("nothing_comes_up")
def test_what_no_real_cluster_runs(tmp_path: Path, target: Target, more: str, says: str) -> None:
    loaded = load(tmp_path, "policies:", f"{more}policies:")
    with pytest.raises(InputError, match=says) as found, real_runner(loaded, [], "local", target, print):
        pass
    assert "x.yaml:" in found.value.line()
    assert "--backend sim" in found.value.line()


@pytest.mark.usefixtures("nothing_comes_up")
def test_a_trace_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.experiments.real.checks.jobs_of", lambda *_: (iter([]), None))
    with (
        pytest.raises(InputError, match="without an end"),
        real_runner(load(tmp_path), [], "local", Target(), print),
    ):
        pass


@pytest.mark.usefixtures("nothing_comes_up")
def test_mrv1s_slots_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", "dynamicmr-slots", "--backend", "local", "--out", str(tmp_path / "out")])
    assert caught.value.code == 1
    assert "slots" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_more_daemons_than_the_machine_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(tmp_path, "count: 2", "count: 200")
    monkeypatch.setattr(processes, "free_mb", lambda: 24_000)
    with pytest.raises(InputError, match="the daemons of 200 nodes take 60850 MB, this machine has 24000 MB left"):
        check_experiment(loaded, "local", Target())
    check_experiment(loaded, "ssh", Target(inventory="x"))
    check_experiment(loaded, "local", GIVEN)
    monkeypatch.setattr(processes, "free_mb", lambda: 61_000)
    check_experiment(loaded, "local", Target())  # replayed containers sleep


def inside(loaded: LoadedExperiment, *policies: str, **settings: str) -> list[Variant]:
    return variants_of(loaded, policies=policies, settings=settings)


def test_programs_are_not_run_where_there_is_kerberos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replayed tasks are: what they need is in the tokens that the RM gives each application."""
    monkeypatch.setitem(sys.modules, "gssapi", FakeGssapi())
    secure = replace(GIVEN, http=HttpOptions(auth="spnego"))
    check_experiment(load(tmp_path), "local", secure)
    with pytest.raises(InputError, match="delegation tokens") as caught:
        check_experiment(load_experiment("ltyarn-real-small"), "local", secure)
    assert "kind is programs" in caught.value.line()
    check_experiment(load_experiment("ltyarn-real-small"), "local", replace(GIVEN, http=HttpOptions(ca_file=None)))


def test_policies_inside_the_rm_are_those_that_run(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    check_inside(inside(loaded, "fair"), "ssh", Target(inventory="x"))
    with pytest.raises(CallError, match="ltrf@rm is inside the RM"):
        check_inside(inside(loaded, "fair", "ltrf"), "ssh", Target(inventory="x"))
    check_inside(inside(loaded, "ltrf", "hltrf"), "local", Target())  # each has its RM
    with pytest.raises(CallError, match="different settings") as found:
        check_inside(inside(loaded, "hltrf"), "local", GIVEN)
    assert "one at a time" in found.value.line()
    check_inside(inside(loaded, "ltrf"), "local", GIVEN)
    with pytest.raises(CallError, match="no setting"):
        check_inside([Variant("x", "ltrf", "inside", {"nonsense": 1}, 1, 15.0, in_rm=True)], "local", Target())


@pytest.mark.parametrize("target", [Target(), GIVEN])
@pytest.mark.usefixtures("nothing_comes_up")
def test_execution_times_are_not_assumed_from_outside(tmp_path: Path, target: Target) -> None:
    """A controller on a real RM is not told of containers: it would count as if the settings were not there."""
    loaded = load(tmp_path, "  - fair\n", "  - {policy: ltrf, mode: outside, settings: {quantum_s: 60}}\n")
    outside = variants_of(loaded)[:1]
    assert outside[0].mode == "outside"
    with (
        pytest.raises(CallError, match=r"--set quantum_s: .*execution times"),
        real_runner(loaded, outside, "local", target, print),
    ):
        pass
    check_policies([replace(outside[0], settings={}), replace(outside[0], policy="fair", settings={})], "local", target)


def kept(target: Target) -> tuple[KeptCluster, list[str], list[str]]:
    said: list[str] = []
    clusters: list[str] = []

    @contextlib.contextmanager
    def opens(variant: Variant | None, scheduler: str) -> Iterator[Any]:
        clusters.append(f"up {variant.name if variant else None}")
        yield len(clusters)
        clusters.append("down")

    return KeptCluster(opens, target, said.append), clusters, said


def test_each_policy_inside_has_an_rm_without_accounts_and_with_its_settings(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    fair, ltrf, five, ten = variants_of(loaded)
    cluster, events, _ = kept(Target())
    with cluster:
        cluster.open(ltrf)
        for variant in (fair, ltrf, fair, ltrf, fair, five, ten):
            cluster.cluster_for(variant)
    up, down = f"up {ltrf.name}", "down"
    assert events == [up, down, up, down, f"up {five.name}", down, f"up {ten.name}", down]


def test_each_scheduler_has_an_rm_of_its_own(tmp_path: Path) -> None:
    fair = variants_of(load(tmp_path))[0]
    capacity = replace(fair, policy="capacity", name="capacity,scheduler=capacity", scheduler="capacity")
    schedulers: list[str] = []

    @contextlib.contextmanager
    def opens(_: Variant | None, scheduler: str) -> Iterator[Any]:
        schedulers.append(scheduler)
        yield object()

    said: list[str] = []
    with KeptCluster(opens, Target(), said.append) as cluster:
        for variant in (capacity, replace(capacity, seed=2), fair):
            cluster.cluster_for(variant)
    assert schedulers == ["capacity", "fair"]
    assert "a ResourceManager of its own" in said[0]


def test_the_queues_of_a_given_capacity_scheduler_are_not_set(tmp_path: Path) -> None:
    fair = variants_of(load(tmp_path))[0]
    capacity = replace(fair, policy="capacity", scheduler="capacity")
    check_policies([fair, capacity], "local", Target())
    with pytest.raises(CallError, match="leave out --rm"):
        check_policies([fair, capacity], "local", GIVEN)


def test_the_capacity_schedulers_file_has_what_the_simulator_has() -> None:
    loaded = load_experiment("outside-capacity-priority")
    made = parse_configuration(capacity_text(loaded, allocation_file(loaded.spec)).encode(), source="made")
    values = {name.removeprefix("yarn.scheduler.capacity."): value for name, value in made.values.items()}
    assert values["root.Group1.Facebook.max-parallel-apps"] == "14"
    assert values["root.ordering-policy"] == "priority-utilization"
    assert values["root.Group2.Spark.capacity"] == "1w"
    assert not [name for name in values if "mapping-rule" in name]


def test_a_run_from_outside_that_no_controller_would_write_in_is_refused() -> None:
    loaded = load_experiment("outside-capacity-priority")
    made = capacity_text(loaded, allocation_file(loaded.spec)).encode()
    properties = {"yarn.admin.acl": "*"}
    rest = SimpleNamespace(properties=lambda: properties, info=lambda: SimpleNamespace(hadoop=(3, 4)))
    client: Any = SimpleNamespace(rest=rest)
    # Beside the preemption a controller keeps shares near what is in use.
    properties["yarn.resourcemanager.scheduler.monitor.enable"] = "true"
    check_traps(made, client, "ltrf@outside")
    name = "yarn.scheduler.capacity.schedule-asynchronously.enable"
    asynchronous = f"<property><name>{name}</name><value>true</value></property></configuration>".encode()
    with pytest.raises(InputError, match="a controller writes nothing there: asynchronous") as found:
        check_traps(made.replace(b"</configuration>", asynchronous), client, "ltrf@outside")
    assert f"set {name} to false" in found.value.line()


def test_the_controller_of_a_run_is_bounded_beside_preemption_as_enforce_is() -> None:
    """On the Fair Scheduler nothing bounds it: an experiment with preemption is about it."""
    loaded = load_experiment("outside-capacity")
    fair, capacity = (
        next(v for v in variants_of(loaded) if v.mode == "outside" and v.scheduler == scheduler)
        for scheduler in ("fair", "capacity")
    )
    accepting = loaded.spec.model_copy(
        update={"actuation": loaded.spec.actuation.model_copy(update={"accept_preemption": True})}
    )
    assert control_settings(loaded, capacity).accept == frozenset()
    assert control_settings(replace(loaded, spec=accepting), capacity).accept == {"preemption"}
    assert control_settings(loaded, fair).accept == {"preemption"}


def test_the_settings_of_the_call_are_the_jars(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    fair, ltrf = inside(loaded, "fair", "ltrf", discount="0.5")
    cluster, events, _ = kept(Target())
    with cluster:
        cluster.open(None)
        cluster.cluster_for(fair)
        cluster.cluster_for(ltrf)
    assert events == ["up None", "down", f"up {ltrf.name}", "down"]


def test_a_given_rm_keeps_its_accounts_which_is_said(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    fair, ltrf, five, _ = variants_of(loaded)
    cluster, events, said = kept(GIVEN)
    with cluster:
        cluster.open(None)
        for variant in (fair, ltrf):
            cluster.cluster_for(variant)
        assert said == []
        cluster.cluster_for(ltrf)
        assert "accounts" in said[0]
        with pytest.raises(CallError, match="different settings"):
            cluster.cluster_for(five)
    assert events == ["up None", "down"]


def test_a_cell_of_a_campaign_brings_up_its_own_policys_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked: list[object] = []

    @contextlib.contextmanager
    def opened(*_: object, inside: Variant | None, scheduler: str, node_limit_mb: int | None) -> Iterator[Any]:
        asked.append(inside)
        yield SimpleNamespace()

    monkeypatch.setattr(real, "open_cluster", opened)
    monkeypatch.setattr(real, "warm_up", lambda *_: None)
    loaded = load(tmp_path)
    _, _, five, ten = variants_of(loaded)
    cluster = OpenCluster()
    try:
        first = cluster.runner(loaded, [ten], Place("local", "local"), print)
        assert cluster.runner(loaded, [five], Place("local", "local"), print) is first
    finally:
        cluster.close()
    assert asked == [ten]


def test_a_cluster_that_stays_as_it_is_runs_any_policy_that_stands_for_its_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy declares it (`Policy.stock_of`): no list of names has to be changed for a new one."""
    own = type("OwnFair", (Fair,), {"name": "own-fair", "stock_of": "fair"})
    monkeypatch.setitem(OBJECTS, "own-fair", own)
    monkeypatch.setitem(OBJECTS, "own", type("Own", (Fair,), {"name": "own"}))
    fair, stays = variants_of(load(tmp_path))[0], Target(rm="http://rm:8088")
    check_policies([fair, replace(fair, policy="own-fair")], "local", stays)
    with pytest.raises(CallError, match="stay as they are") as found:
        check_policies([replace(fair, policy="own")], "local", stays)
    assert "use --policy fair" in found.value.line()
