"""Queues put into allocation files and taken out again."""

from __future__ import annotations

import pytest

from harness.base.errors import InputError
from harness.model.queues import AllocationFile
from harness.yarn.fair.grow import NewQueue, add_queues, remove_queues
from harness.yarn.fair.parse import parse_allocations

FILE = b"""<?xml version="1.0"?>
<allocations>
  <queue name="a"><weight>2</weight></queue>
  <queue name="users" type="parent"/>
  <!-- the end -->
</allocations>
"""
INSIDE_ROOT = b'<allocations><queue name="root"><queue name="a"/></queue></allocations>'
LEAF = NewQueue(True, {"weight": "3.5"})


def grow(file: bytes, new: dict[str, NewQueue]) -> tuple[bytes, AllocationFile]:
    edited = add_queues(file, new)
    return edited.document, edited.says


@pytest.mark.parametrize("file", [FILE, INSIDE_ROOT, b"<allocations/>", b"<allocations></allocations>"])
def test_what_is_added_reads_back_and_its_removal_leaves_the_rest(file: bytes) -> None:
    new = {"root.bob": LEAF, "root.teams": NewQueue(False), "root.teams.x": LEAF, "root.teams.y": LEAF}
    grown, says = grow(file, new)
    assert parse_allocations(grown) == says
    assert says.weight("root.teams.x") == 3.5
    assert "root.teams" in says.configured_parents
    assert {"root.bob", "root.teams.x", "root.teams.y"} <= set(says.configured_leaves)
    back, said, gone = remove_queues(grown, list(new))
    assert gone == set(new)
    assert said == parse_allocations(file)
    if file == FILE:
        assert back == FILE


def test_into_a_parent_that_is_there() -> None:
    grown, says = grow(FILE, {"root.users.bob": LEAF})
    assert (
        b'  <queue name="users" type="parent">\n    <queue name="bob"><weight>3.5</weight></queue>\n  </queue>' in grown
    )
    assert says.weight("root.users.bob") == 3.5


def test_names_that_need_care() -> None:
    name = "root.<b&\"o'b> ä"
    grown, says = grow(FILE, {name: LEAF})
    assert name in says.configured_leaves
    assert remove_queues(grown, [name])[0] == FILE


def test_a_queue_with_somebody_elses_settings_stays() -> None:
    grown, _ = grow(FILE, {"root.bob": LEAF})
    grown = grown.replace(b"<weight>3.5</weight>", b"<weight>3.5</weight><maxRunningApps>3</maxRunningApps>")
    same, _, gone = remove_queues(grown, ["root.bob"])
    assert (same, gone) == (grown, set())


def test_below_a_parent_that_is_not_there_or_a_name_with_a_dot_it_is_refused() -> None:
    with pytest.raises(InputError, match=r"root\.x is not in the file"):
        add_queues(FILE, {"root.x.y": LEAF})
    with pytest.raises(InputError):
        add_queues(FILE, {"root.a.child": LEAF, "root.a": LEAF})
