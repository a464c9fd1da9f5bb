"""Single attributes changed in place, everything else byte for byte as it was."""

from __future__ import annotations

import pytest

from harness.base.errors import InputError
from harness.model.queues import ResourceLimit
from harness.model.resources import Resource
from harness.yarn.fair.edit import Change, edit_allocations
from harness.yarn.fair.parse import parse_allocations

FILE = b"""<?xml version="1.0"?>
<!-- the site's file -->
<allocations>
  <unknown>kept</unknown>
  <queue name="a">
    <!-- as agreed --><weight>1<!-- until May --></weight>
    <maxRunningApps>7</maxRunningApps>
  </queue>
  <pool name='b&gt;"' />
  <queue name="g">
    <queue name="x"><minResources>1 mb, 1 vcores</minResources></queue>
    <queue name="y"></queue>
  </queue>
</allocations><!-- end -->
"""


def test_only_what_is_asked_for_changes() -> None:
    edited = edit_allocations(
        FILE,
        {
            "root.a": Change(weight=0.1),
            'root.b>"': Change(weight=2.5, min_resources=Resource(5, 6)),
            "root.g": Change(max_resources=ResourceLimit(None, 0.5, 0.25)),
            "root.g.x": Change(min_resources=Resource(7, 8)),
            "root.g.y": Change(weight=9),
        },
    )
    assert edited == (
        FILE.replace(b"<weight>1<!--", b"<weight>0.1<!--")
        .replace(
            b"""<pool name='b&gt;"' />""",
            b"""<pool name='b&gt;"' ><weight>2.5</weight><minResources>5 mb, 6 vcores</minResources></pool>""",
        )
        .replace(b'<queue name="g">', b'<queue name="g">\n    <maxResources>50% memory, 25% cpu</maxResources>')
        .replace(b"1 mb, 1 vcores", b"7 mb, 8 vcores")
        .replace(b'<queue name="y">', b'<queue name="y"><weight>9</weight>')
    )


def test_nothing_is_written_when_nothing_changes() -> None:
    assert (
        edit_allocations(FILE, {"root.a": Change(weight=1.0), "root.g.x": Change(min_resources=Resource(1, 1))}) is FILE
    )


def test_the_one_that_counts_is_changed() -> None:
    twice = b'<allocations><queue name="a"><weight>1</weight><weight>2</weight></queue><queue name="a"/></allocations>'
    edited = edit_allocations(twice, {"root.a": Change(weight=3)})
    assert edited == twice.replace(b">2<", b">3<")


def test_text_outside_ascii_stays() -> None:
    for encoding in ("utf-8", "iso-8859-1"):
        head = f'<?xml version="1.0" encoding="{encoding}"?>'
        text = head + '<allocations><!-- é --><queue name="é"><weight>1</weight></queue></allocations>'
        edited = edit_allocations(text.encode(encoding), {"root.é": Change(weight=2)})
        assert edited.decode(encoding) == text.replace(">1<", ">2<")
        assert parse_allocations(edited).weight("root.é") == 2.0


def test_a_root_queue() -> None:
    text = b'<allocations><queue name="root"><queue name="a"/></queue></allocations>'
    edited = edit_allocations(text, {"root.a": Change(weight=2)})
    assert edited == text.replace(b'<queue name="a"/>', b'<queue name="a"><weight>2</weight></queue>')


@pytest.mark.parametrize(
    ("document", "changes", "part"),
    [
        (FILE, {"root.nope": Change(weight=2)}, "queue root.nope is not in the file"),
        (FILE, {"root.a": Change(weight=0)}, "is not between"),
        (FILE, {"root.a": Change(weight=float("nan"))}, "is not between"),
        (b"<allocations>", {"root.a": Change(weight=2)}, "not well-formed XML.*mend the XML there"),
        (b"experiment: demo\n", {"root.a": Change(weight=2)}, "not well-formed XML.*this one is no XML"),
        (b"", {"root.a": Change(weight=2)}, "not well-formed XML.*this one is no XML"),
    ],
)
def test_what_is_refused(document: bytes, changes: dict[str, Change], part: str) -> None:
    with pytest.raises(InputError, match=part):
        edit_allocations(document, changes)


def test_attributes_that_are_taken_away_leave_the_file_as_it_was_before_them() -> None:
    with_them = edit_allocations(
        FILE,
        {
            "root.a": Change(min_resources=Resource(7, 8), max_resources=ResourceLimit(Resource(9, 9))),
            "root.g": Change(scheduling_policy="drf"),
            "root.g.x": Change(max_resources=ResourceLimit(None, 0.5, 0.5)),
        },
    )
    assert b"<schedulingPolicy>drf</schedulingPolicy>" in with_them
    assert with_them.count(b"<maxResources>") == 2
    gone = {
        "root.a": Change(unset=frozenset({"min_resources", "max_resources"})),
        "root.g": Change(unset=frozenset({"scheduling_policy"})),
        "root.g.x": Change(unset=frozenset({"max_resources"})),
    }
    assert edit_allocations(with_them, gone) == FILE
    assert edit_allocations(FILE, gone) == FILE


def test_an_attribute_that_is_written_twice_goes_altogether() -> None:
    twice = b'<allocations><queue name="a"><weight>1</weight> <weight>2</weight></queue></allocations>'
    edited = edit_allocations(twice, {"root.a": Change(unset=frozenset({"weight"}))})
    assert edited == b'<allocations><queue name="a"></queue></allocations>'
