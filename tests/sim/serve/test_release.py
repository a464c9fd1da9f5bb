"""A served cluster that answers as another release of Hadoop: what `sim serve --hadoop` changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.base.errors import CallError
from harness.experiments.served import with_file
from harness.model.jobs import NodeSpec
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.rest import RestServer
from harness.sim.setup import SimSetup
from harness.yarn.capacity.properties import ASYNCHRONOUS, PREFIX
from harness.yarn.capacity.source import StoreSource
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from tests.sim.serve.recording import FIRST, RELEASES, recorded


def served(folder: Path, hadoop: str | None) -> Iterator[str]:
    """The address of a Capacity Scheduler with a store, served as this release."""
    file = folder / "capacity-scheduler.xml"
    file.write_text(recorded(FIRST, "capacity-")["file"])
    conf = {"yarn.scheduler.configuration.store.class": "memory"}
    nodes, nothing = (NodeSpec("n1", 4096, 16),), parse_allocations("<allocations/>")
    setup = SimSetup(nodes, nothing, jobs=[], conf=conf, scheduler="capacity")
    cluster = LiveCluster(with_file(setup, file), file, hadoop=hadoop)
    rest = RestServer(cluster)
    for part in (cluster, rest):
        part.start()
    yield rest.url
    for part in (rest, cluster):
        part.stop()


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("release")
    for url in served(folder, request.param):
        yield request.param, url


def read(url: str, path: str) -> Any:
    return requests.get(f"{url}{path}", headers={"Accept": "application/json"}, timeout=300).json()


def test_it_says_which_release_it_is(release: tuple[str, str]) -> None:
    version, url = release
    info = read(url, "/ws/v1/cluster/info")["clusterInfo"]
    assert (info["resourceManagerVersion"], info["hadoopVersion"]) == (version, version)
    assert {node["version"] for node in read(url, "/ws/v1/cluster/nodes")["nodes"]["node"]} == {version}
    with RestClient([url], HttpOptions()) as rest:
        assert rest.info().hadoop == ((3, 5) if version == "3.5.0" else (3, 4))


def test_the_stores_version_is_wrapped_since_3_5_and_both_are_written(release: tuple[str, str]) -> None:
    version, url = release
    shown = read(url, "/ws/v1/cluster/scheduler-conf/version")
    assert shown == ({"configversion": {"versionID": 1}} if version == "3.5.0" else {"versionID": "1"})
    with RestClient([url], HttpOptions()) as rest:
        source = StoreSource(rest.http)
        before = source.read()
        last = max(name for name in before.values if name.startswith(f"{PREFIX}root.") and name.endswith(".capacity"))
        name = f"{last.removesuffix('capacity')}user-limit-factor"
        source.write({name: "7"}, before)
        assert source.read().values[name] == "7"


def maps(document: Any, name: str) -> list[Any]:
    """All values of a key, however deep."""
    if isinstance(document, dict):
        own = [document[name]] if name in document else []
        return own + [found for value in document.values() for found in maps(value, name)]
    return [found for one in document for found in maps(one, name)] if isinstance(document, list) else []


def test_empty_maps_vanish_since_3_5(release: tuple[str, str]) -> None:
    version, url = release
    found = maps(read(url, "/ws/v1/cluster/nodes"), "attributes")
    assert (found == []) == (version == "3.5.0")
    assert all(one == {} for one in found)
    assert read(url, "/ws/v1/cluster/apps") == {"apps": {}}, "as before"


def test_it_is_synchronous_and_says_so_where_the_default_is_not(release: tuple[str, str]) -> None:
    version, url = release
    with RestClient([url], HttpOptions()) as rest:
        assert rest.properties().get(ASYNCHRONOUS) == ("false" if version == "3.5.0" else None)


def test_a_release_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CallError, match=r"no release 2\.7 of Hadoop"):
        next(served(tmp_path, "2.7"))
