"""Answers of a real ResourceManager 3.4.2, recorded, as the client understands them; and hostile ones."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.resources import Resource
from harness.yarn import answers, queue_answers
from harness.yarn.errors import BadAnswer

RECORDED = Path(__file__).parent / "recorded"
PARSERS: dict[str, Callable[[Any, str], Any]] = {
    "info": answers.cluster_info,
    "metrics": answers.cluster_metrics,
    "scheduler": queue_answers.scheduler,
    "nodes": answers.nodes,
    "apps": answers.apps,
    "app": answers.app,
    "state": answers.app_state,
}


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())


def test_the_queue_tree_of_a_real_rm() -> None:
    found = queue_answers.scheduler(recorded("scheduler"), "x")
    assert found.capacity == Resource(8192, 8)
    assert list(found.queues) == ["root", "root.a", "root.b", "root.b.c"]
    a, c = found.queues["root.a"], found.queues["root.b.c"]
    assert (a.parent, a.leaf, a.policy) == ("root", True, "fair")
    assert (found.queues["root.b"].leaf, c.parent) == (False, "root.b")
    # Weights 3 and 1.
    assert (a.steady_share, c.steady_share) == (Resource(6144, 0), Resource(2048, 0))
    assert a.minimum == Resource(512, 1)
    assert c.maximum == Resource(4096, 4)
    assert (c.used, c.active_apps, c.containers_allocated) == (Resource(256, 1), 1, 1)


def test_the_nodes_of_a_real_rm() -> None:
    nodes = answers.nodes(recorded("nodes"), "x")
    assert [node.state for node in nodes] == ["RUNNING", "RUNNING"]
    assert {node.total for node in nodes} == {Resource(4096, 4)}
    assert sum(node.containers for node in nodes) == 1


def test_the_applications_of_a_real_rm() -> None:
    failed, running = answers.apps(recorded("apps"), "x")
    assert (failed.state, failed.final, failed.queue, failed.tags) == ("FAILED", True, "root.a", {"x", "y"})
    # The RM says -1 of what has ended; its accumulated resources stay.
    assert (failed.allocated, failed.running_containers) == (Resource(0, 0), 0)
    assert failed.memory_seconds > 0
    assert (running.state, running.final, running.finished_ms) == ("ACCEPTED", False, 0)
    assert running.allocated == Resource(256, 1)
    assert answers.app(recorded("app"), "x").id == running.id


def test_an_ended_application_is_read_once_for_as_long_as_it_is_shown_unchanged() -> None:
    def shown(memory: Any = 900, state: str = "FINISHED") -> Any:
        more = {"memorySeconds": memory, "state": state, "queue": "root.a", "startedTime": 1, "finishedTime": 9}
        return {"apps": {"app": [{"id": "application_1_0001", "vcoreSeconds": 1, **more}]}}

    ended: answers.Ended = {}
    (first,) = answers.apps(shown(), "rm", ended)
    assert list(ended) == [first.id]
    assert answers.apps(shown(), "rm", ended)[0] is first
    assert answers.apps(shown(901), "rm", ended)[0].memory_seconds == 901
    assert answers.apps(shown(state="RUNNING"), "rm", ended)[0].state == "RUNNING"
    assert ended == {}, "who is no longer shown as ended is not remembered"
    answers.apps(shown(), "rm", ended)
    with pytest.raises(BadAnswer):
        answers.apps(shown("much"), "rm", ended)


def test_metrics_and_info_of_a_real_rm() -> None:
    metrics = answers.cluster_metrics(recorded("metrics"), "x")
    assert (metrics.total, metrics.allocated) == (Resource(8192, 8), Resource(256, 1))
    assert (metrics.active_nodes, metrics.apps_failed) == (2, 1)
    info = answers.cluster_info(recorded("info"), "x")
    assert (info.version, info.active) == ("3.4.2", True)


@pytest.mark.parametrize(
    ("version", "hadoop"),
    [
        ("3.4.2", (3, 4)),
        ("3.3.6", (3, 3)),
        ("3.1.1.7.1.9.0-387", (3, 1)),
        ("3.10.0-SNAPSHOT", (3, 10)),
        ("own", (3, 4)),
    ],
)
def test_the_release_is_the_versions_first_two_numbers(version: str, hadoop: tuple[int, int]) -> None:
    document = recorded("info")
    document["clusterInfo"]["resourceManagerVersion"] = version
    assert answers.cluster_info(document, "x").hadoop == hadoop


@pytest.mark.parametrize("nothing", [{}, None, {"app": []}, {"app": None}])
def test_no_applications_are_written_in_several_ways(nothing: Any) -> None:
    assert answers.apps({"apps": nothing}, "x") == []


@pytest.mark.parametrize("document", [{}, {"RemoteException": {"exception": "StandbyException"}}, {"app": []}])
def test_an_answer_without_its_key_is_no_answer(document: Any) -> None:
    with pytest.raises(BadAnswer, match="has no apps"):
        answers.apps(document, "x")
    with pytest.raises(BadAnswer, match="has no nodes"):
        answers.nodes(document, "x")


@pytest.mark.parametrize("queue", ["", "..", "root.", "root..a", " ", "root. a"])
def test_an_application_of_a_queue_that_cannot_be_is_passed_over(queue: str) -> None:
    document = recorded("apps")
    document["apps"]["app"][0]["queue"] = queue
    found = answers.apps(document, "x")
    assert len(found) == len(document["apps"]["app"]) - 1
    assert "is not a queue" in next(iter(found.skipped.values()))
    tree = recorded("scheduler")
    tree["scheduler"]["schedulerInfo"]["rootQueue"]["childQueues"]["queue"][0]["queueName"] = f"root.{queue}"
    with pytest.raises(BadAnswer):
        queue_answers.scheduler(tree, "x")


def test_one_item_may_come_without_a_list() -> None:
    (app,) = answers.apps({"apps": {"app": recorded("app")["app"]}}, "x")
    assert app.id == recorded("app")["app"]["id"]


def test_nan_in_what_nobody_reads_is_no_matter_and_in_what_is_read_it_is() -> None:
    document = recorded("app")
    document["app"]["queueUsagePercentage"] = float("nan")
    answers.app(document, "x")
    document["app"]["memorySeconds"] = float("nan")
    with pytest.raises(BadAnswer, match="memorySeconds is nan"):
        answers.app(document, "x")


@pytest.mark.parametrize("value", [2**63, -(2**70), True, 1.5, "5", None, [], {}, float("inf")])
def test_accumulated_resources_are_whole_numbers(value: Any) -> None:
    document = recorded("app")
    document["app"]["memorySeconds"] = value
    with pytest.raises(BadAnswer, match="memorySeconds"):
        answers.app(document, "x")


def test_negative_figures_of_an_rm_whose_clock_was_set_back_count_as_0() -> None:
    document = recorded("apps")
    first, second = document["apps"]["app"]
    for name in ("memorySeconds", "vcoreSeconds", "preemptedMemorySeconds", "allocatedMB", "finishedTime"):
        first[name] = -3_600_000
    found = answers.apps(document, "x")
    assert found.skipped == {}
    told = next(app for app in found if app.id == first["id"])
    assert (told.memory_seconds, told.vcore_seconds, told.finished_ms) == (0, 0, 0)
    assert (told.preempted_memory_seconds, told.allocated.memory_mb) == (0, 0)
    assert next(app for app in found if app.id == second["id"]).memory_seconds == second["memorySeconds"]


@pytest.mark.parametrize("name", ["progress", "name", "user", "applicationTags", "runningContainers", "reservedMB"])
@pytest.mark.parametrize("value", [float("nan"), None, [], {}, 2**70, 10**400, "\ud800", True])
def test_what_no_decision_stands_on_may_be_anything(name: str, value: Any) -> None:
    document = recorded("app")
    document["app"][name] = value
    assert answers.app(document, "x").queue == document["app"]["queue"]


@pytest.mark.parametrize(
    ("name", "value"), [("memorySeconds", "many"), ("queue", 7), ("state", None), ("id", "job_1"), (None, None)]
)
def test_one_application_that_makes_no_sense_is_passed_over_and_all_of_them_are_no_answer(
    name: str | None, value: Any
) -> None:
    document = recorded("apps")
    rows = document["apps"]["app"]
    good, key = rows[1]["id"], rows[0]["id"] if name != "id" and name else "answer.apps.app[0]"

    def spoil(index: int) -> None:
        if name is None:
            rows[index] = value
        else:
            rows[index][name] = value

    spoil(0)
    found = answers.apps(document, "x")
    assert [app.id for app in found] == [good]
    assert list(found.skipped) == [key]
    assert "\n" not in found.skipped[key]
    spoil(1)
    with pytest.raises(BadAnswer):
        answers.apps(document, "x")


def test_another_scheduler_is_said() -> None:
    with pytest.raises(BadAnswer, match="'fifoScheduler', neither the Fair nor the Capacity Scheduler"):
        queue_answers.scheduler({"scheduler": {"schedulerInfo": {"type": "fifoScheduler"}}}, "x")


def capacity_queue(path: str, own: dict[str, Any], usage: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """A queue as a Capacity Scheduler shows it, what nobody reads left out; another partition beside the default."""
    resources = {} if usage is None else {"resources": {"resourceUsagesByPartition": [{"partitionName": "", **usage}]}}
    capacities = [{"partitionName": "gpu"}, {"partitionName": "", **own}]
    return {"queuePath": path, "capacities": {"queueCapacitiesByPartition": capacities}, **resources, **more}


def mb(memory: int, vcores: int) -> dict[str, int]:
    return {"memory": memory, "vCores": vcores}


def capacity_scheduler() -> dict[str, Any]:
    nothing = {name: mb(0, 0) for name in ("used", "reserved", "pending", "amUsed", "amLimit")}
    busy = {**nothing, "used": mb(1536, 3), "reserved": mb(512, 1), "pending": mb(1024, 2), "amUsed": mb(256, 1)}
    leaf = {
        "type": "capacitySchedulerLeafQueueInfo",
        "orderingPolicyInfo": "fifo",
        "maxApplications": 2500,
        "numPendingApplications": 1,
        "numActiveApplications": 2,
        "allocatedContainers": 2,
        "pendingContainers": 4,
        "preemptionDisabled": True,
    }
    all_ = {"effectiveMinResource": mb(4096, 4), "effectiveMaxResource": mb(4096, 4)}
    part = {"effectiveMinResource": mb(1024, 1), "effectiveMaxResource": mb(4096, 4)}
    a = capacity_queue("root.a", part, busy, weight=1.5, capacity=0.0, **leaf)
    x = capacity_queue("root.g.x", part, nothing, weight=-1.0, capacity=30.04, **leaf)
    g = capacity_queue("root.g", part, nothing, weight=3.0, capacity=0.0, queues={"queue": [x]})
    root = capacity_queue("root", all_, None, weight=-1.0, capacity=100.0, type="capacityScheduler")
    return {"scheduler": {"schedulerInfo": {**root, "queues": {"queue": [g, a]}}}}


def test_a_capacity_schedulers_queues() -> None:
    found = queue_answers.scheduler(capacity_scheduler(), "x")
    assert (found.type, found.capacity) == ("capacityScheduler", Resource(4096, 4))
    assert list(found.queues) == ["root", "root.a", "root.g", "root.g.x"]
    a = found.queues["root.a"]
    assert (a.leaf, a.parent, a.setting, a.policy) == (True, "root", 1.5, "fifo")
    assert (a.used, a.demand) == (Resource(1024, 2), Resource(2048, 4)), "a reservation holds nothing"
    assert (a.fair_share, a.maximum, a.minimum) == (Resource(1024, 1), Resource(4096, 4), Resource())
    assert (a.max_apps, a.pending_apps, a.active_apps, a.containers_pending) == (2500, 1, 2, 4)
    assert (found.queues["root.g"].setting, found.queues["root.g.x"].setting) == (3.0, 30.04)


def test_a_capacity_schedulers_limits_as_settings() -> None:
    document = capacity_scheduler()
    root = document["scheduler"]["schedulerInfo"]
    root["orderingPolicyInfo"] = "utilization"
    a = root["queues"]["queue"][1]
    a.update(maxCapacity=62.5, userLimit=50.0, userLimitFactor=-1.0, configuredMaxAMResourceLimit=0.3, queuePriority=2)
    a["maxParallelApps"] = 7
    found = queue_answers.capacity_limits(document, "x")
    own = {name: value for name, value in found.items() if name.startswith("root.a.")}
    assert own == {
        "root.a.ordering-policy": "fifo",
        "root.a.priority": "2",
        "root.a.maximum-capacity": "62.5",
        "root.a.minimum-user-limit-percent": "50",
        "root.a.user-limit-factor": "-1",
        "root.a.maximum-am-resource-percent": "0.3",
        "root.a.maximum-applications": "2500",
        "root.a.disable_preemption": "true",
        "root.a.max-parallel-apps": "7",
    }
    assert found["root.ordering-policy"] == "utilization"
    assert "root.g.maximum-applications" not in found, "a parent has none"


def test_the_order_of_a_capacity_schedulers_queues_is_read() -> None:
    """Siblings of equal use and capacity are tried in this order; by name, another one would get the container."""
    document = capacity_scheduler()
    found = queue_answers.capacity_limits(document, "x")
    assert found["root.queues"] == "g,a"
    assert "root.g.queues" not in found, "one child has no order"
    document["scheduler"]["schedulerInfo"]["queues"]["queue"].reverse()
    assert queue_answers.capacity_limits(document, "x")["root.queues"] == "a,g"


def test_before_hadoop_3_4_queues_have_names_only() -> None:
    document = capacity_scheduler()
    waiting = [document["scheduler"]["schedulerInfo"]]
    while waiting:
        fields = waiting.pop()
        waiting += fields.get("queues", {}).get("queue", [])
        fields["queueName"] = fields.pop("queuePath", "root").rpartition(".")[2]
    assert list(queue_answers.scheduler(document, "x").queues) == ["root", "root.a", "root.g", "root.g.x"]
    assert "root.g.x.maximum-applications" in queue_answers.capacity_limits(document, "x")


def test_a_short_name_is_the_one_leaf_that_has_it() -> None:
    queues = dict(queue_answers.scheduler(capacity_scheduler(), "x").queues)
    queues |= {path: replace(queues["root.a"], path=path) for path in ("root.g.twice", "root.h.twice")}
    (_, app) = answers.apps(recorded("apps"), "x")
    said = {"x": "root.g.x", "a": "root.a", "root.g.x": "root.g.x", "twice": "twice", "g": "g", "gone": "gone"}
    apps = answers.AppList([replace(app, queue=name) for name in said], {"id": "why"})
    found = queue_answers.in_full(apps, queues)
    assert [app.queue for app in found] == list(said.values())
    assert found.skipped == apps.skipped


@pytest.mark.parametrize("configured", [0, 512])
def test_hadoop_3_2_does_not_say_which_queues_have_absolute_resources(configured: int) -> None:
    document = capacity_scheduler()
    x = document["scheduler"]["schedulerInfo"]["queues"]["queue"][0]["queues"]["queue"][0]
    x["capacities"]["queueCapacitiesByPartition"][1]["configuredMinResource"] = mb(configured, 2)
    assert queue_answers.scheduler(document, "x").queues["root.g.x"].setting == (configured or 30.04)
    limits = queue_answers.capacity_limits(document, "x")
    assert ("root.g.x.maximum-capacity" in limits) == (not configured)


def test_a_capacity_scheduler_without_its_capacities() -> None:
    document = capacity_scheduler()
    document["scheduler"]["schedulerInfo"]["capacities"] = {}
    with pytest.raises(BadAnswer, match="no capacity in the default partition"):
        queue_answers.scheduler(document, "x")


def test_a_queue_tree_that_cannot_be() -> None:
    document = recorded("scheduler")
    root = document["scheduler"]["schedulerInfo"]["rootQueue"]
    children = root["childQueues"]["queue"]
    children.append(children[0])
    with pytest.raises(BadAnswer, match="below 'root'"):
        queue_answers.scheduler(document, "x")
    children.pop()
    children[0]["queueName"] = "elsewhere"
    with pytest.raises(BadAnswer, match="'elsewhere' below 'root'"):
        queue_answers.scheduler(document, "x")


def test_a_queue_tree_without_a_bottom() -> None:
    document = recorded("scheduler")
    queue = document["scheduler"]["schedulerInfo"]["rootQueue"]
    for _ in range(200):
        child = {**queue, "queueName": queue["queueName"] + ".x"}
        queue["childQueues"] = {"queue": [child]}
        queue = child
    queue.pop("childQueues")
    with pytest.raises(BadAnswer, match="deep"):
        queue_answers.scheduler(document, "x")


def test_the_same_application_twice() -> None:
    document = recorded("apps")
    document["apps"]["app"].append(document["apps"]["app"][0])
    with pytest.raises(BadAnswer, match="twice"):
        answers.apps(document, "x")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        found += places(item, (*path, key))
    return found


NONSENSE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**80), max_value=2**80),
    st.just(10**400),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.none(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)


@given(data=st.data(), name=st.sampled_from(sorted(PARSERS)), value=NONSENSE, remove=st.booleans())
@settings(max_examples=300, deadline=None)
def test_nonsense_anywhere_is_read_or_refused_and_nothing_else(
    data: st.DataObject, name: str, value: Any, remove: bool
) -> None:
    document = recorded(name)
    *way, last = data.draw(st.sampled_from(places(document)))
    inner = document
    for step in way:
        inner = inner[step]
    if remove:
        del inner[last]
    else:
        inner[last] = value
    with contextlib.suppress(BadAnswer):
        assert PARSERS[name](document, "x") is not None


@pytest.mark.parametrize("name", sorted(PARSERS))
@pytest.mark.parametrize("document", [None, [], 1, "x", True])
def test_no_object_at_all(name: str, document: Any) -> None:
    with pytest.raises(BadAnswer):
        PARSERS[name](document, "x")


def test_half_a_character_becomes_one_that_can_be_printed() -> None:
    document = recorded("nodes")
    document["nodes"]["node"][0]["healthReport"] = "x\ud800y\U0001f600"
    reports = [node.health_report for node in answers.nodes(document, "x")]
    assert "x\ufffdy\U0001f600" in reports
    "".join(reports).encode()
    shown = {"properties": [{"key": "a\udfff", "value": "\ud800"}]}
    assert answers.properties(shown, "u") == {"a\ufffd": "\ufffd"}


def test_the_rms_own_properties() -> None:
    shown = {"properties": [{"key": "a", "value": "1", "isFinal": False}, {"key": 3}, {"key": "b", "value": None}]}
    assert answers.properties(shown, "u") == {"a": "1"}
    for nonsense in ([], {}, {"properties": {}}, None):
        with pytest.raises(BadAnswer, match="no properties"):
            answers.properties(nonsense, "u")
