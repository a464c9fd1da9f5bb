"""What the client and `yarnfair cluster` promise, against a real ResourceManager: local processes and containers.

What needs nothing but an RM runs against `yarnfair sim serve`'s as well, the same cases.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from harness.base.errors import InputError
from harness.clusters.compose import DockerCluster
from harness.clusters.doctor import examine_cluster
from harness.clusters.local import LocalCluster
from harness.model.resources import Resource
from harness.sim.shares import fair_shares
from harness.yarn.errors import Refused
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.releases import DEFAULT
from harness.yarn.rest import Submission
from harness.yarn.rmclient import NotEffective
from tests.cluster.conftest import ALLOCATIONS, ANY, AnyRm, Live
from tests.cluster.enforcing import until
from tests.cluster.parts import kill_part

pytestmark = pytest.mark.xdist_group("live-rm")
any_rm = pytest.mark.parametrize("live", ANY, indirect=True, scope="module")


def test_it_came_up_with_all_nodes_and_says_what_it_took(live: Live) -> None:
    status = live.came_up
    document = status.document()
    print(json.dumps({"backend": status.backend, "seconds_to_running": status.running_s}))
    assert status.up
    assert status.running_s is not None
    assert 0 < status.running_s < 170
    assert [node["state"] for node in document["nodes"]] == ["RUNNING", "RUNNING"]
    assert [node["advertised"] for node in document["nodes"]] == [{"memory_mb": 2048, "vcores": 4}] * 2
    parts = [document["rm"], *document["nodes"]]
    assert all(20 < part["memory_mb"] < 1500 for part in parts)
    assert len({part["runs_as"] for part in parts}) == 3


def test_a_second_up_in_the_same_folder_is_refused(live: Live) -> None:
    with pytest.raises(InputError, match="runs here already"):
        live.cluster.up(live.cluster.folder.load().spec, timeout_s=5)  # type: ignore[union-attr]


def test_properties_and_jars_reach_the_rm(live: Live) -> None:
    name = "yarn.scheduler.fair.allow-undeclared-pools"
    answer = live.client.rest.http.request("GET", "/conf", params={"name": name, "format": "json"}, repeatable=True)
    assert answer.document["property"]["value"] == "false"
    jmx = live.client.rest.http.request("GET", "/jmx", params={"qry": "java.lang:type=Runtime"}, repeatable=True)
    class_path = jmx.document["beans"][0]["ClassPath"]
    assert "extra.jar" in class_path


@any_rm
def test_the_typed_answers(live: AnyRm) -> None:
    info, metrics = live.client.rest.info(), live.client.rest.metrics()
    assert (info.version, info.active) == (DEFAULT, True)
    assert (metrics.total, metrics.active_nodes) == (Resource(4096, 8), 2)
    scheduler = live.client.rest.scheduler()
    assert set(scheduler.queues) >= {"root", "root.a", "root.b", "root.b.c"}
    assert scheduler.capacity == metrics.total
    assert {node.total for node in live.client.rest.nodes()} == {Resource(2048, 4)}


@any_rm
@pytest.mark.parametrize("weights", [(1.0, 7.0), (0.001, 1_000_000.0), (0.1, 0.3), (3.0, 1.0)])
def test_a_changed_weight_takes_effect_at_once_and_reads_back(live: AnyRm, weights: tuple[float, float]) -> None:
    text = ALLOCATIONS.format(a=weights[0], b=weights[1])
    live.write(text)
    took = live.client.refresh_queues()
    # The first look after the refresh shows them, however busy the machine is.
    live.client.confirm_weights({"root.a": weights[0], "root.b": weights[1]}, timeout_s=0)
    shares = fair_shares(QueueManager(parse_allocations(text)).tree(), Resource(4096, 8))
    wanted = {path: share.steady for path, share in shares.items() if path != "root"}

    def shown() -> bool:
        queues = live.client.rest.scheduler().queues
        return {path: queues[path].steady_share for path in wanted} == wanted

    until(shown, "the steady shares of the new weights", timeout_s=30)
    print(f"refresh {1000 * took:.1f} ms")


@any_rm
@pytest.mark.parametrize("text", ["<allocations><queue", "<nonsense/>", "", ALLOCATIONS.format(a="heavy", b="1")])
def test_a_broken_file_is_hidden_by_the_rm_and_found_by_reading_back(live: AnyRm, text: str) -> None:
    good = ALLOCATIONS.format(a="2.0", b="1.0")
    live.write(good)
    live.client.refresh_queues()
    live.client.confirm_weights({"root.a": 2.0})
    live.write(text)
    live.client.refresh_queues()
    with pytest.raises(NotEffective, match="weight 2, wanted 5"):
        live.client.confirm_weights({"root.a": 5.0}, timeout_s=0.3)
    assert live.client.effective_queues()["root.a"].weight == 2.0
    live.write(good)
    live.client.refresh_queues()


@any_rm
def test_an_application_is_submitted_moved_accounted_and_killed(live: AnyRm) -> None:
    rest = live.client.rest
    identity = rest.submit(Submission("sleeper", "root.a", "sleep 300", tags=["Tag"], environment={"X": "1"}))
    end = time.monotonic() + 40
    while (app := rest.app(identity)).running_containers == 0:
        assert time.monotonic() < end, app
        time.sleep(0.3)
    assert (app.user, app.queue, app.tags) == ("alice", "root.a", {"tag"})
    assert app.allocated == Resource(256, 1)
    assert rest.scheduler().queues["root.a"].used == Resource(256, 1)
    assert rest.move(identity, "root.b.c") == "root.b.c"
    queues = rest.scheduler().queues
    assert (queues["root.a"].used, queues["root.b"].used) == (Resource(0, 0), Resource(256, 1))
    assert [app.id for app in rest.apps(queue="root.b.c", states=["ACCEPTED", "RUNNING"])] == [identity]
    with pytest.raises(Refused):
        rest.move(identity, "root.nowhere")
    time.sleep(1.2)
    assert rest.kill(identity) == "KILLED"
    assert rest.kill(identity) == "KILLED"
    # The RM says KILLED before its scheduler, by an event of its own, has taken the containers back.
    until(lambda: rest.app(identity).allocated == Resource(0, 0), "its containers are taken back", timeout_s=30)
    ended = rest.app(identity)
    assert (ended.final, ended.queue) == (True, "root.b.c")
    assert ended.memory_seconds >= 256
    assert ended.vcore_seconds >= 1
    assert rest.app_state(identity) == "KILLED"


@any_rm
def test_what_the_rm_does_not_know_is_refused(live: AnyRm) -> None:
    with pytest.raises(Refused, match="not found") as caught:
        live.client.rest.app("application_1_0001")
    assert caught.value.status == 404
    with pytest.raises(Refused):
        live.client.rest.kill("application_1_0001")


def test_the_doctor_finds_nothing_and_then_another_rm(live: Live) -> None:
    status = live.cluster.status()
    assert status is not None
    assert [finding.what for finding in examine_cluster(status) if finding.result == "problem"] == []
    other = replace(status, recorded_id=1)
    problems = [finding for finding in examine_cluster(other) if finding.result == "problem"]
    assert [finding.check for finding in problems] == ["right-rm"]
    assert problems[0].hint


def test_a_part_that_died_shows_and_nothing_is_left_after_down(live: Live) -> None:
    # The last of the module: it takes the cluster down.
    identity = live.client.rest.submit(Submission("left", "root.a", "(sleep 301 &); sleep 302"))
    end = time.monotonic() + 40
    while live.client.rest.app(identity).running_containers == 0:
        assert time.monotonic() < end
        time.sleep(0.3)
    state = live.cluster.folder.load()
    assert state is not None
    if isinstance(live.cluster, LocalCluster):
        from harness.clusters import processes

        # The RM counts a container before its node has started it: here the shell and two sleeps.
        while len(marked := processes.marked(state.mark)) < 5:
            assert time.monotonic() < end
            time.sleep(0.2)
        for name in ("nm1", "nm2"):
            kill_part(live.cluster, name)
        time.sleep(0.5)
        status = live.cluster.status()
        assert status is not None
        assert not status.up
        assert {part.runs_as for part in status.parts} == {None}
        problems = {finding.check for finding in examine_cluster(status) if finding.result == "problem"}
        assert "parts" in problems
        orphans = [process for process in marked if process.alive and str(process.pid) != status.rm.runs_as]
        assert orphans, "a killed NodeManager leaves its containers running"
        assert live.cluster.down() == []
        assert not any(process.alive for process in marked)
        assert processes.marked(state.mark) == []
    else:
        assert isinstance(live.cluster, DockerCluster)
        from harness.clusters.compose import docker_client

        with docker_client() as client:
            label = {"label": f"com.docker.compose.project={state.mark}"}
            (nm,) = (c for c in client.containers.list(filters=label) if c.name.endswith("nm-1"))
            nm.kill()
            status = live.cluster.status()
            assert status is not None
            assert not status.up
            assert live.cluster.down() == []
            assert client.containers.list(all=True, filters=label) == []
            assert client.networks.list(filters=label) == []
            assert client.volumes.list(filters=label) == []
    assert not live.cluster.folder.folder.exists()
    assert live.cluster.down() == []
