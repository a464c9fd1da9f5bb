"""Reading an allocation file: what Hadoop takes from it, what it refuses, and our messages about that."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import InputError
from harness.model.queues import JAVA_LONG_MAX, NEVER_MS, PlacementRule, ResourceLimit
from harness.model.resources import UNBOUNDED, Resource
from harness.yarn.fair.parse import parse_allocations, read_allocations
from harness.yarn.fair.resources import parse_resources


def test_a_file_with_everything() -> None:
    file = parse_allocations(
        """<?xml version="1.0"?>
        <allocations>
          <pool name="a">
            <weight>0.1</weight>
            <minResources>1024 mb, 2 vcores</minResources>
            <maxResources>50% memory, 25% cpu</maxResources>
            <maxRunningApps>7</maxRunningApps>
            <maxAMShare>1.5</maxAMShare>
            <schedulingPolicy>FIFO</schedulingPolicy>
            <allowPreemptionFrom>no</allowPreemptionFrom>
            <aclSubmitApps>alice,bob admins</aclSubmitApps>
            <fairSharePreemptionThreshold>7</fairSharePreemptionThreshold>
          </pool>
          <queue name="g" type="parent"/>
          <user name="alice"><maxRunningApps>3</maxRunningApps></user>
          <userMaxAppsDefault>5</userMaxAppsDefault>
          <defaultMinSharePreemptionTimeout>60</defaultMinSharePreemptionTimeout>
          <queuePlacementPolicy>
            <rule name="specified" create="false"/>
            <rule name="default" queue="root.a"/>
          </queuePlacementPolicy>
        </allocations>"""
    )
    a = file.settings["root.a"]
    assert a.weight == pytest.approx(0.1)
    assert a.weight != 0.1  # a float32
    assert a.min_resources == Resource(1024, 2)
    assert file.max_resources("root.a").resolve(Resource(4097, 9)) == Resource(2048, 2)
    assert (a.max_running_apps, a.max_am_share, a.scheduling_policy, a.preemptable) == (7, 1.0, "fifo", False)
    assert a.fair_share_preemption_threshold == 1.0
    assert a.acls == {"aclSubmitApps": "alice,bob admins"}
    assert (file.configured_leaves, file.configured_parents) == (("root.a",), ("root.g",))
    assert (file.max_user_apps("alice"), file.max_user_apps("bob")) == (3, 5)
    assert file.default_min_share_preemption_timeout_ms == 60_000
    assert file.default_fair_share_preemption_timeout_ms == NEVER_MS
    assert file.placement_rules == (
        PlacementRule("specified", create=False),
        PlacementRule("default", queue="root.a"),
    )


def test_defaults_of_a_queue_that_says_nothing() -> None:
    file = parse_allocations('<allocations><queue name="a"/></allocations>')
    assert file.weight("root.a") == 1.0
    assert file.max_resources("root.a").absolute == UNBOUNDED
    assert file.max_am_share("root.a") == 0.5
    assert file.scheduling_policy("root.a") == "fair"
    assert file.max_user_apps("anybody") == 2**31 - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1024 mb, 4 vcores", ResourceLimit(Resource(1024, 4))),
        ("4 vcores 1024 mb", ResourceLimit(Resource(1024, 4))),
        ("1024.9mb,4vcores", ResourceLimit(Resource(1024, 4))),
        ("memory-mb=1024, vcores=4", ResourceLimit(Resource(1024, 4))),
        ("memory-mb=1024", ResourceLimit(Resource(1024, -1))),
        ("vcores=4", ResourceLimit(Resource(JAVA_LONG_MAX, 4))),
        ("50%", ResourceLimit(None, 0.5, 0.5)),
        ("10% cpu, 40 % memory", ResourceLimit(None, 0.4, 0.1)),
        ("vcores=10%", ResourceLimit(None, 1.0, 0.1)),
    ],
)
def test_notations_of_resources(text: str, expected: ResourceLimit) -> None:
    assert parse_resources(text) == expected


@pytest.mark.parametrize(
    "text", ["1024", "", " ", "-1 mb, 2 vcores", "memory=5,vcores=3", "50% memory", "-1%", "1 gb, 2 vcores"]
)
def test_resources_that_hadoop_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_resources(text)


@pytest.mark.parametrize(
    ("inside", "line", "part"),
    [
        ('\n<queue name="a.b"/>', 2, "contains a dot"),
        ('\n\n<queue name="a"><weight>x</weight></queue>', 3, "queue root.a: <weight>: 'x' is not a number"),
        ('<queue name="a"><weight/></queue>', 1, "has no text"),
        ('<queue name="a"><maxResources>3</maxResources></queue>', 1, "<maxResources>"),
        ('<queue name="a">\n<maxAMShare>1</maxAMShare><queue name="b"/></queue>', 1, "a parent queue cannot have"),
        ('<queue name="root"/><queue name="a"/>', 1, "beside the root queue"),
        ("<queueMaxAppsDefault>1.5</queueMaxAppsDefault>", 1, "is not an integer"),
        ("<defaultQueueSchedulingPolicy>fifo</defaultQueueSchedulingPolicy>", 1, "cannot be fifo"),
        ('<queuePlacementPolicy><rule name="user" create="no"/></queuePlacementPolicy>', 1, "without a queue"),
    ],
)
def test_what_hadoop_refuses_is_one_line_with_its_place(inside: str, line: int, part: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_allocations(f"<allocations>{inside}</allocations>", source="fs.xml")
    message = caught.value.line()
    assert message.startswith(f"fs.xml:{line}:")
    assert part in message
    assert "; " in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\x00\xff\xfe",
        b"<allocations>",
        b"<allocations><queue name='a'>" * 400,
        b'<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><allocations>&b;</allocations>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><allocations/>',
        b"<?xml version='1.0' encoding='nonsense'?><allocations/>",
        "<allocations>\ud800</allocations>",
    ],
    ids=range(8),
)
def test_hostile_documents_give_one_line(document: bytes | str) -> None:
    with pytest.raises(InputError) as caught:
        parse_allocations(document)
    assert "\n" not in caught.value.line()


@settings(deadline=None, max_examples=150)
@given(st.binary(max_size=200))
def test_no_bytes_give_anything_but_an_input_error(document: bytes) -> None:
    with pytest.raises(InputError):
        parse_allocations(document)


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(["weight", "maxResources", "minResources", "maxRunningApps", "maxAMShare"]), st.text(max_size=30)
)
def test_no_value_gives_anything_but_an_input_error(tag: str, text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    document = f'<allocations><queue name="a"><{tag}>{escaped}</{tag}></queue></allocations>'
    with contextlib.suppress(InputError):
        assert "root.a" in parse_allocations(document).settings


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match="No such file"):
        read_allocations("no-such-file.xml")


def test_other_resource_types_are_known_from_the_configuration() -> None:
    xml = '<allocations><queue name="a"><maxResources>memory-mb=5,vcores=3,gpu=2</maxResources></queue></allocations>'
    with pytest.raises(InputError, match="no resource is called 'gpu'"):
        parse_allocations(xml)
    file = parse_allocations(xml, conf={"yarn.resource-types": "gpu"})
    assert file.max_resources("root.a").absolute == Resource(5, 3)
