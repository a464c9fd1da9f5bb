"""What a served cluster answers against what a real ResourceManager of the same release answered: keys, types, status
codes, errors.

``recorded-RELEASE.json.gz`` (tests.sim.serve.recording) holds the answers of a cluster of local processes with the same
queues and the same kinds of applications: one of MapReduce that runs, one that waits for its queue's limit, killed
ones, one whose master failed.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.sim.serve.conftest import Served
from tests.sim.serve.recording import FIRST, RELEASES, recorded, refused_bodies

# The recording has an application in a queue that the file does not declare. The cluster served here has not.
_QUEUES = recorded(FIRST)["scheduler"]["document"]["scheduler"]["schedulerInfo"]["rootQueue"]["childQueues"]
_QUEUES["queue"] = [queue for queue in _QUEUES["queue"] if queue["queueName"] != "root.nowhere"]
#: What only a real application has: the web proxy leads to its master, whose address it told the RM.
MASTERS_OWN = {"trackingUrl", "amRPCAddress"}


def answers(served: Served) -> dict[str, Any]:
    """What a real ResourceManager of the served release answered."""
    return recorded(served.cluster.release.version)


def shape(value: Any) -> Any:
    """Keys and types; a list's shape is that of its elements together."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        merged: dict[str, Any] = {}
        others = set()
        for item in value:
            found = shape(item)
            if isinstance(found, dict):
                merged = merged_with(merged, found)
            else:
                others.add(found)
        return [merged] if merged else sorted(others)
    return type(value).__name__


def merged_with(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            both[key] = merged_with(one[key], other[key])
        elif isinstance(one[key], list) and isinstance(other[key], list):
            pair = [item for item in (one[key] + other[key]) if isinstance(item, dict)]
            both[key] = [merged_with(pair[0], pair[-1])] if pair else one[key] or other[key]
    return both


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """The releases of which answers are recorded, one after the other."""
    version: str = request.param
    return version


def same(served: Served, name: str, document: Any, *, without: frozenset[str] | set[str] = frozenset()) -> None:
    """The recorded answer's shape is this document's."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cut(item) for key, item in value.items() if key not in without}
        return [cut(item) for item in value] if isinstance(value, list) else value

    assert cut(shape(document)) == cut(shape(answers(served)[name]["document"])), name


MAPREDUCE = {
    "kind": "mapreduce",
    "stages": [{"name": "map", "tasks": 12, "memory_mb": 1024, "vcores": 1, "duration_s": 30}],
}


def test_the_cluster_its_metrics_nodes_and_queues(served: Served) -> None:
    get = lambda path, **params: served.call("GET", "/ws/v1/cluster" + path, **params).json()  # noqa: E731
    served.submit("root.a", job=MAPREDUCE, **{"application-type": "MAPREDUCE"})
    served.submit("root.b.d", command="sleep 300")
    served.submit("root.b.d", command="sleep 300")
    served.later(5)
    same(served, "info", get("/info"))
    same(served, "root", get(""))
    same(served, "metrics", get("/metrics"))
    same(served, "nodes", get("/nodes"))
    same(served, "node", get("/nodes/n1:45454"))
    same(served, "nodes-lost", get("/nodes", states="lost"))
    same(served, "scheduler", get("/scheduler"))
    same(served, "new-application", served.call("POST", "/ws/v1/cluster/apps/new-application").json())


def test_the_content_type_and_the_connection(served: Served) -> None:
    answer = served.call("GET", "/ws/v1/cluster/info")
    assert answer.headers["Content-Type"] == "application/json;charset=utf-8"
    assert served.call("GET", "/").status_code == answers(served)["top"]["status"]
    assert served.call("GET", "/ws/v1/cluster/nothing").status_code == 404
    assert served.call("GET", "/ws/v1").status_code == 404


def test_applications_in_each_state(served: Served) -> None:
    get = lambda path, **params: served.call("GET", "/ws/v1/cluster" + path, **params).json()  # noqa: E731
    assert get("/apps") == answers(served)["apps-none"]["document"]
    running = served.submit("root.a", job=MAPREDUCE, **{"application-type": "MAPREDUCE"})
    first = served.submit("root.b.d", command="sleep 2000")
    waiting = served.submit("root.b.d", command="sleep 300")
    failing = served.submit("root.b.c", command="exit 3")
    killed = served.submit("root.b.c", command="sleep 300")
    refused = served.submit("root.b", command="sleep 1")
    served.later(8)
    assert get(f"/apps/{running}/state") == {"state": "RUNNING"}
    # How an application that was submitted by REST or by a Java client differs, and what real masters tell the RM.
    label = {"appNodeLabelExpression"}
    same(served, "app-running", get(f"/apps/{running}"), without=MASTERS_OWN | label)
    same(served, "app-pending", get(f"/apps/{waiting}"))
    assert "maximum limit of runnable applications" in get(f"/apps/{waiting}")["app"]["diagnostics"]
    same(served, "app-failed", get(f"/apps/{failing}"))
    same(served, "app-rejected-f", get(f"/apps/{refused}"))
    assert get(f"/apps/{refused}")["app"]["diagnostics"] == "root.b is not a leaf queue"
    assert served.call("PUT", f"/ws/v1/cluster/apps/{killed}/state", {"state": "KILLED"}).status_code == 202
    seen = {"amContainerLogs", "amHostHttpAddress"}  # the recorded one was killed before its master had started
    used = {"resourceSecondsMap"}
    same(served, "app-killed", get(f"/apps/{killed}"), without=seen | used)
    same(served, "attempts", get(f"/apps/{running}/appattempts"))
    same(served, "timeouts", get(f"/apps/{first}/timeouts"))
    same(served, "timeout", get(f"/apps/{first}/timeouts/LIFETIME"))
    assert get(f"/apps/{first}/priority") == answers(served)["priority"]["document"]
    assert get(f"/apps/{first}/queue") == {"queue": "root.b.d"}
    assert shape(get("/appstatistics")) == shape(answers(served)["appstatistics"]["document"])
    items = {item["state"]: item["count"] for item in get("/appstatistics")["appStatInfo"]["statItem"]}
    assert items == {
        "NEW": 0,
        "RUNNING": 1,
        "FINISHED": 0,
        "SUBMITTED": 0,
        "KILLED": 1,
        "FAILED": 2,
        "NEW_SAVING": 0,
        "ACCEPTED": 2,
    }
    of_no_such_type = get("/appstatistics?applicationTypes=unheard-of")["appStatInfo"]["statItem"]
    assert {(item["type"], item["count"]) for item in of_no_such_type} == {("unheard-of", 0)}
    served.later(200)
    finished = get(f"/apps/{running}")
    same(served, "app-finished", finished, without=MASTERS_OWN | label)
    assert finished["app"]["finalStatus"] == "SUCCEEDED"
    assert finished["app"]["progress"] == 100.0
    # A task's container: granted, started at the master's next heartbeat but one, reported at the node's next.
    assert 12 * 30 * 1024 < finished["app"]["memorySeconds"] < 12 * 36 * 1024 + 256 * 210


def test_filters_of_the_applications(served: Served) -> None:
    a = served.submit("root.a", job=MAPREDUCE, **{"application-type": "MAPREDUCE"})
    d = served.submit("root.b.d", command="sleep 300")
    c = served.submit("root.b.c", command="exit 1")
    served.later(8)

    def ids(**params: str) -> list[str]:
        document = served.call("GET", "/ws/v1/cluster/apps", **params).json()
        return sorted(app["id"] for app in document["apps"].get("app", []))

    assert ids() == sorted([a, c, d])
    assert ids(states="running,ACCEPTED") == sorted([a, d])
    assert ids(state="RUNNING") == [a]
    assert ids(states="NEW") == []
    assert ids(queue="b.d") == ids(queue="root.b.d") == [d]
    assert ids(applicationTypes="mapreduce") == [a]
    assert ids(applicationTags="ONE") == sorted([a, c, d])
    assert ids(applicationTags="three") == []
    assert ids(user="alice") == sorted([a, c, d])
    assert ids(user="bob") == []
    assert ids(finalStatus="FAILED") == [c]
    assert ids(limit="1") == [c]
    assert ids(nonsense="1") == sorted([a, c, d])
    assert ids(startedTimeBegin=str(served.cluster.id + 10**7)) == []
    assert ids(finishedTimeBegin="1") == [c]
    plain = served.call("GET", "/ws/v1/cluster/apps", deSelects="resourceRequests").json()
    assert not any("resourceRequests" in app for app in plain["apps"]["app"])
    same(served, "apps-deselect", plain, without=MASTERS_OWN | {"appNodeLabelExpression", "resourceRequests"})


@pytest.mark.parametrize(
    "name",
    [
        "apps-bad",
        "apps-limit-bad",
        "apps-limit-nan",
        "nodes-bad",
        "node-unknown",
        "app-404",
        "app-bad",
        "state-404",
        "move-none",
        "kill-404",
        "submit-noid",
        "submit-badjson",
        "post-info",
        "prio-put",
        "move-nowhere",
        "move-parent",
        "kill-bad",
        "kill-nonsense",
        "submit-big",
    ],
)
def test_refusals_are_the_rms_own(served: Served, name: str) -> None:
    theirs = answers(served)[name]
    mine = served.submit("root.a", command="sleep 300")
    their_ids = rf"application_{answers(served)['info']['document']['clusterInfo']['id']}_\d+"
    path = re.sub(their_ids, mine, theirs["path"])
    bodies = refused_bodies(mine.rpartition("_")[0] + "_0099")
    answer = served.call(theirs["method"], path, bodies.get(name), **theirs["params"])
    assert answer.status_code == theirs["status"], answer.text
    wanted, got = dict(theirs["document"]["RemoteException"]), dict(answer.json()["RemoteException"])
    if name == "kill-nonsense":  # the JVM's own words about its null
        wanted.pop("message")
        got.pop("message")
    assert got == wanted
    assert served.client.rest.app_state(mine) in ("ACCEPTED", "RUNNING")


def test_ports_do_not_fall_over_nonsense(served: Served) -> None:
    import socket

    ports = [served.rest.port, served.client.rms[0].admin.port]
    for port in ports:
        for data in (
            b"",
            b"\0" * 64,
            b"GET / HTTP/9.9\r\n\r\n",
            b"hrpc\x09\x00\x00\xff\xff\xff\xff",
            b"hrpc\x09\x00\x00\0\0\0\x04abcd",
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(data)
    assert served.client.rest.info().active
    served.client.refresh_queues()
