"""A served Capacity Scheduler against what a real ResourceManager 3.4.2 with a memory store answered, step by step.

``recorded-capacity.json.gz`` holds its queues, its answers to a series of changes over REST, and its first /scheduler.
"""

from __future__ import annotations

import gzip
import json
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
from harness.yarn.fair.parse import parse_allocations

RECORDED: dict[str, Any] = json.loads(
    gzip.decompress((Path(__file__).parent / "recorded-capacity.json.gz").read_bytes())
)
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


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The REST address of the same queues, simulated."""
    file = tmp_path_factory.mktemp("capacity") / "capacity-scheduler.xml"
    file.write_text(RECORDED["file"])
    conf = {"yarn.scheduler.configuration.store.class": "memory"}
    nothing = parse_allocations("<allocations/>")
    setup = SimSetup((NodeSpec("n1", 4096, 16),), nothing, jobs=[], conf=conf, scheduler="capacity")
    served = LiveCluster(with_file(setup, file), file)
    rest = RestServer(served)
    for part in (served, rest):
        part.start()
    yield f"{rest.url}/ws/v1/cluster"
    for part in (rest, served):
        part.stop()


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


def test_its_queues_have_the_keys_and_types_of_the_real_ones(base: str) -> None:
    ours = set(types(requests.get(f"{base}/scheduler", timeout=300).json()))
    theirs = set(types(RECORDED["scheduler"]))
    assert ours - theirs == set()
    assert theirs - ours == set()


def test_the_stores_properties(base: str) -> None:
    found = requests.get(f"{base}/scheduler-conf", timeout=300).json()["property"]
    key = lambda row: row["name"]  # noqa: E731
    assert sorted(found, key=key) == sorted(RECORDED["conf"]["property"], key=key)


def test_what_is_no_json_changes_nothing(base: str) -> None:
    wanted = RECORDED["bad_json"]
    answer = put(base, wanted["body"])
    assert answer.status_code == wanted["status"]
    ours, theirs = answer.json()["RemoteException"], wanted["document"]["RemoteException"]
    assert ours.keys() == theirs.keys()
    assert ours["message"].split(": ")[0] == theirs["message"].split(": ")[0], "the parser's own words are another's"


def test_each_change_is_taken_or_refused_as_there_and_the_version_says_so(base: str) -> None:
    for step in RECORDED["steps"]:
        answer = put(base, step["body"])
        version = int(requests.get(f"{base}/scheduler-conf/version", timeout=300).json()["versionID"])
        assert answer.status_code == step["status"], (step["name"], answer.text)
        assert answer.text.split(" : ")[0] == step["text"].split(" : ")[0], step["name"]
        assert version == int(step["version"]), step["name"]
