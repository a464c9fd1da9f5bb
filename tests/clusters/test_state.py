"""The state folder: whole or not at all, one command at a time, never somebody else's folder; site files."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import CallError, InputError, YarnfairError
from harness.clusters import site
from harness.clusters.processes import Process, boot_id
from harness.clusters.state import ClusterSpec, ClusterState, StateFolder
from harness.model.data import data_path

STATE = ClusterState(
    "local",
    "abc",
    ClusterSpec(nodes=3, properties={"a.b": "<&>"}),
    ports={"http": 1, "client": 2, "admin": 3},
    processes={"rm": Process(123, 456, boot_id())},
    commands={"rm": ("java", "-cp", "x")},
    started_at=1.5,
    running_s=2.5,
    rm_id=7,
)


def test_a_state_comes_back(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    assert folder.load() is None
    folder.save(STATE)
    assert folder.load() == STATE
    assert [item.name for item in tmp_path.iterdir()] == ["cluster.json"]


def test_a_state_comes_back_although_its_files_are_gone(tmp_path: Path) -> None:
    jar = tmp_path / "x.jar"
    jar.write_text("")
    folder = StateFolder(tmp_path / "state")
    folder.folder.mkdir()
    folder.save(replace(STATE, spec=ClusterSpec(jars=(str(jar),), allocations=str(jar))))
    jar.unlink()
    loaded = folder.load()
    assert loaded is not None
    assert loaded.mark == "abc"


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        found += places(item, (*path, key))
    return found


@given(data=st.data(), value=st.one_of(st.none(), st.integers(), st.text(max_size=3), st.lists(st.none(), max_size=1)))
@settings(max_examples=150, deadline=None)
def test_a_damaged_state_is_an_error_of_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, value: Any
) -> None:
    folder = StateFolder(tmp_path_factory.mktemp("state"))
    folder.save(STATE)
    path = folder.path("cluster.json")
    document = json.loads(path.read_text())
    *way, last = data.draw(st.sampled_from(places(document)))
    inner = document
    for step in way:
        inner = inner[step]
    inner[last] = value
    path.write_text(json.dumps(document))
    try:
        folder.load()
    except InputError as error:
        line = error.line()
    else:
        line = ""
    assert "\n" not in line


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "NaN", '{"format": 2}', "[" * 100_000])
def test_no_state_at_all(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(InputError, match="no usable cluster state"):
        StateFolder(tmp_path).load()


def test_a_folder_with_other_things_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(CallError, match="other things"), StateFolder(tmp_path).lock():
        pass
    assert [item.name for item in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(CallError, match="not a folder"), StateFolder(tmp_path / "thesis.tex").lock():
        pass


def _try_lock(folder: Path, queue: Any) -> None:
    try:
        with StateFolder(folder).lock():
            queue.put("got it")
    except YarnfairError as error:
        queue.put(error.what)


def test_two_commands_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with StateFolder(tmp_path).lock():
        other = context.Process(target=_try_lock, args=(tmp_path, queue))
        other.start()
        assert "another yarnfair command" in queue.get(timeout=300)
        other.join(timeout=60)


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 0},
        {"memory_mb": 100, "minimum_allocation_mb": 256},
        {"ports": {"http": 0}},
        {"ports": {"ftp": 21}},
        {"ports": {"http": 8088, "admin": 8088}},
        {"expiry_ms": -1},
    ],
)
def test_what_cannot_be_a_cluster(wrong: dict[str, Any]) -> None:
    with pytest.raises(CallError):
        ClusterSpec(**wrong)


def test_missing_files_are_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        ClusterSpec(jars=(str(tmp_path / "none.jar"),))


def test_site_files_hold_any_value(tmp_path: Path) -> None:
    properties = {"a.b-c": "<x> & \"y\" 'z' ä", "empty": "", "list": "a,b\nc"}
    site.write(tmp_path / "yarn-site.xml", site.render(properties))
    assert site.read(tmp_path / "yarn-site.xml") == {"a.b-c": "<x> & \"y\" 'z' ä", "empty": "", "list": "a,b\nc"}
    with pytest.raises(CallError):
        site.render({"a b": "x"})
    with pytest.raises(CallError):
        site.render({"a": "\0"})


def test_the_images_own_site_file_can_be_added_to() -> None:
    properties = site.read(data_path("docker", "conf", "yarn-site.xml"))
    assert properties["yarn.scheduler.fair.allocation.file"] == "/etc/yarnfair/scheduler/fair-scheduler.xml"
    assert "yarn.resourcemanager.hostname" in site.render(properties)
