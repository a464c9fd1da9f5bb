"""Configuration files: read as Hadoop reads them, edited without touching any other byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import InputError
from harness.yarn.capacity.properties import PREFIX, parse_configuration

FILE = b"""<?xml version="1.0"?>
<!-- the administrator's -->
<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>a,b</value></property>
  <property>
    <name> yarn.scheduler.capacity.root.a.capacity </name>
    <value>1w</value>   <!-- was 2w -->
    <description>half of it</description>
  </property>
  <property><name>yarn.scheduler.capacity.root.b.capacity</name><value>1.0w</value><final>true</final></property>
</configuration>
"""
A, B = "yarn.scheduler.capacity.root.a.capacity", "yarn.scheduler.capacity.root.b.capacity"


def test_properties_are_read() -> None:
    file = parse_configuration(FILE, source="f")
    assert file.values == {"yarn.scheduler.capacity.root.queues": "a,b", A: "1w", B: "1.0w"}


def test_the_last_of_two_of_one_name_counts_and_is_edited() -> None:
    data = FILE.replace(
        b"</configuration>", f"<property><name>{A}</name><value>7w</value></property></configuration>".encode()
    )
    file = parse_configuration(data, source="f")
    assert file.values[A] == "7w"
    assert parse_configuration(file.edited({A: "8w"}), source="f").values[A] == "8w"
    assert b"<value>1w</value>" in file.edited({A: "8w"})


def test_an_edit_changes_nothing_else_and_goes_back_to_the_byte() -> None:
    file = parse_configuration(FILE, source="f")
    edited = file.edited({A: "2.5w", B: "0.5w"})
    assert edited == FILE.replace(b"<value>1w<", b"<value>2.5w<").replace(b"<value>1.0w<", b"<value>0.5w<")
    assert parse_configuration(edited, source="f").edited({A: "1w", B: "1.0w"}) == FILE


def test_a_property_that_was_added_leaves_no_trace_when_it_is_removed() -> None:
    name = "yarn.scheduler.capacity.root.a.maximum-capacity"
    added = parse_configuration(FILE, source="f").edited({name: "40 & more"})
    assert parse_configuration(added, source="f").values[name] == "40 & more"
    assert parse_configuration(added, source="f").edited({name: None}) == FILE


names = st.sampled_from([A, B, "yarn.scheduler.capacity.root.a.maximum-capacity", "x.y"])
# No carriage returns: XML reads them as line ends.
texts = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=12)


@given(st.dictionaries(names, texts | st.none(), max_size=4))
def test_what_is_written_is_read_back(changes: dict[str, str | None]) -> None:
    before = parse_configuration(FILE, source="f")
    after = parse_configuration(before.edited(changes), source="f").values
    wanted = {**before.values, **changes}
    assert after == {name: value for name, value in wanted.items() if value is not None}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not well-formed XML"),
        (b"<configuration><property>", "not well-formed XML"),
        (b"<allocations/>", "root element"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><configuration/>', "DOCTYPE"),
        (b'<configuration><property><xi:include href="x"/></property></configuration>', "included file"),
        (b'<configuration><xi:include href="/etc/passwd"/></configuration>', "included file"),
        (b'<configuration><property name="a" value="b"/></configuration>', "as attributes"),
        (f"<configuration><property><name>{A}</name><value/></property></configuration>".encode(), "empty value"),
    ],
)
def test_what_cannot_be_given_back_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_configuration(data, source="f")


def test_a_final_value_counts_whatever_comes_behind_it() -> None:
    name = f"{PREFIX}root.a.capacity"
    first = f"<property><name>{name}</name><value>60</value><final>true</final></property>"
    data = f"<configuration>{first}<property><name>{name}</name><value>10</value></property></configuration>".encode()
    read = parse_configuration(data, source="c.xml")
    assert read.values == {name: "60"}
    assert parse_configuration(read.edited({name: "70"}), source="c.xml").values == {name: "70"}
