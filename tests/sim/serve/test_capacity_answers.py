"""A served Capacity Scheduler against what real ResourceManagers with a memory store answered, step by step.

``recorded-capacity-RELEASE.json.gz`` (tests.sim.serve.recording) holds its queues, its answers to a series of changes
over REST, and its first /scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.experiments.served import with_file
from harness.model.jobs import NodeSpec
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.rest import RestServer
from harness.sim.setup import SimSetup
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.queue_answers import capacity_limits
from tests.sim.serve.recording import RELEASES, recorded

#: What ours does not show.
MISSING = {
    "autoCreateChildQueueEnabled",
    "autoQueueLeafTemplateProperties",
    "autoQueueParentTemplateProperties",
    "autoQueueTemplateProperties",
    "health",
    "leafQueueTemplate",
    "queueAcls",
    "queueCapacityVectorInfo",
}


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """The releases of which answers are recorded, one after the other."""
    version: str = request.param
    return version


@pytest.fixture(scope="module")
def theirs(release: str) -> dict[str, Any]:
    """What a real ResourceManager of the release answered."""
    return recorded(release, "capacity-")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, release: str, theirs: dict[str, Any]) -> Iterator[str]:
    """The REST address of the same queues, simulated."""
    file = tmp_path_factory.mktemp("capacity") / "capacity-scheduler.xml"
    file.write_text(theirs["file"])
    conf = {"yarn.scheduler.configuration.store.class": "memory"}
    nothing = parse_allocations("<allocations/>")
    setup = SimSetup((NodeSpec("n1", 4096, 16),), nothing, jobs=[], conf=conf, scheduler="capacity")
    served = LiveCluster(with_file(setup, file), file, hadoop=release)
    rest = RestServer(served)
    for part in (served, rest):
        part.start()
    yield f"{rest.url}/ws/v1/cluster"
    for part in (rest, served):
        part.stop()


def test_its_queues_stand_in_the_order_in_which_they_are_tried(tmp_path: Path) -> None:
    """A real one lists them so, leaves before parents; by name, a recording of ours had another order than we play."""
    file = tmp_path / "capacity-scheduler.xml"
    parts = {"g": 40, "g.y": 50, "g.x": 50, "b": 30, "a": 30}
    values = {f"{PREFIX}root.{path}.capacity": str(percent) for path, percent in parts.items()}
    values |= {f"{PREFIX}root.queues": "g,b,a", f"{PREFIX}root.g.queues": "y,x"}
    file.write_text(render_properties(values))
    setup = SimSetup((NodeSpec("n1", 4096, 16),), parse_allocations("<allocations/>"), jobs=[], scheduler="capacity")
    served = LiveCluster(with_file(setup, file), file)
    rest = RestServer(served)
    for part in (served, rest):
        part.start()
    try:
        found = capacity_limits(requests.get(f"{rest.url}/ws/v1/cluster/scheduler", timeout=300).json(), "ours")
    finally:
        for part in (rest, served):
            part.stop()
    assert (found["root.queues"], found["root.g.queues"]) == ("b,a,g", "y,x")


def put(base: str, body: str) -> requests.Response:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    return requests.put(f"{base}/scheduler-conf", data=body, headers=headers, timeout=300)


def types(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every key's path, without lists' positions, and the type of what stands there."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in MISSING:
                yield from types(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from types(item, path)
    else:
        yield path, type(value).__name__


def test_its_queues_have_the_keys_and_types_of_the_real_ones(base: str, theirs: dict[str, Any]) -> None:
    ours = set(types(requests.get(f"{base}/scheduler", timeout=300).json()))
    real = set(types(theirs["scheduler"]))
    assert ours - real == set()
    assert real - ours == set()


def test_the_stores_properties(base: str, theirs: dict[str, Any]) -> None:
    found = requests.get(f"{base}/scheduler-conf", timeout=300).json()["property"]
    key = lambda row: row["name"]  # noqa: E731
    assert sorted(found, key=key) == sorted(theirs["conf"]["property"], key=key)


def test_what_is_no_json_changes_nothing(base: str, theirs: dict[str, Any]) -> None:
    wanted = theirs["bad_json"]
    answer = put(base, wanted["body"])
    assert answer.status_code == wanted["status"]
    ours, real = answer.json()["RemoteException"], wanted["document"]["RemoteException"]
    assert ours.keys() == real.keys()
    first = lambda said: said.get("message", "").split(": ")[0]  # noqa: E731
    assert first(ours) == first(real), "the parser's own words are another's"


def test_each_change_is_taken_or_refused_as_there_and_the_version_says_so(base: str, theirs: dict[str, Any]) -> None:
    for step in theirs["steps"]:
        answer = put(base, step["body"])
        shown = requests.get(f"{base}/scheduler-conf/version", timeout=300).json()
        version = int(shown.get("configversion", shown)["versionID"])
        assert answer.status_code == step["status"], (step["name"], answer.text)
        assert answer.text.split(" : ")[0] == step["text"].split(" : ")[0], step["name"]
        assert version == int(step["version"]), step["name"]
