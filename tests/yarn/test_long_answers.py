"""Long answers: a list of applications is read as it comes, everything else is bounded."""

from __future__ import annotations

import json
import socket
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.yarn import answers, json_stream
from harness.yarn.answers import AppList
from harness.yarn.errors import BadAnswer
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from tests.yarn.fake_server import FakeServer

APPS = json.loads((Path(__file__).parent / "recorded" / "apps.json").read_text())
APP = APPS["apps"]["app"][0]


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return iter([data[at : at + size] for at in range(0, len(data), size)])


def read(document: Any, size: int = 7) -> AppList:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return answers.read_apps(cut(data, size), "rm")


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_list_is_what_it_is_as_a_whole(size: int) -> None:
    assert read(APPS, size) == answers.apps(APPS, "rm")


@pytest.mark.parametrize(
    "document",
    [
        {"apps": None},
        {"apps": {}},
        {"apps": ""},
        {"apps": {"app": None}},
        {"apps": {"app": []}},
        {"apps": {"app": APP}},
        {"more": [1, {"a": 2}], "apps": {"other": 1.5e3, "app": [APP], "after": "x"}, "last": None},
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_every_shape_of_none_or_one_is_the_same(document: Any, size: int) -> None:
    assert read(document, size) == answers.apps(document, "rm")


def test_an_empty_text_in_place_of_the_list_is_none() -> None:
    """Jersey 2, which Hadoop 3.5 has, writes an object without members as an empty text."""
    assert list(read({"apps": ""})) == []
    with pytest.raises(BadAnswer):
        read({"apps": " "})


@pytest.mark.parametrize(
    "document", [{}, [], "x", 12, None, {"apps": "x"}, {"apps": [1]}, {"apps": {"app": [APP, APP]}}]
)
def test_what_makes_no_sense_is_the_same_error(document: Any) -> None:
    with pytest.raises(BadAnswer) as whole:
        answers.apps(document, "rm")
    with pytest.raises(BadAnswer) as streamed:
        read(document)
    assert streamed.value.line() == whole.value.line()


def test_a_member_that_makes_no_sense_is_named_by_its_place() -> None:
    wrong = {**APP, "id": "application_1_0001", "memorySeconds": "many"}
    found = read({"apps": {"app": [APP, wrong]}})
    assert found.skipped == answers.apps({"apps": {"app": [APP, wrong]}}, "rm").skipped
    assert len(found.skipped) == 1


WHOLE = json.dumps({"apps": {"app": [APP]}}).encode()


@pytest.mark.parametrize("end", [1, 5, 10, len(WHOLE) // 2, len(WHOLE) - 3, len(WHOLE) - 1])
def test_one_that_is_cut_off_is_an_error(end: int) -> None:
    with pytest.raises(BadAnswer):
        read(WHOLE[:end])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>Sign in</html>",
        WHOLE + b"x",
        WHOLE.replace(b"]", b",]"),
        b'{"apps": {"app": [{"id": tru}]}}',
        b'{"apps": {"app": [' + b'{"a":' * 5000,
        b'{"apps" {"app": []}}',
        b'{"apps": {"app": []},}',
        b'{apps: {"app": []}}',
        b'{"apps": {"app": [' + b"9" * 5000 + b"]}}",
        b'{"apps": {"app": ["\xff"]}}',
    ],
)
def test_what_is_no_json_is_an_error(data: bytes) -> None:
    with pytest.raises(BadAnswer):
        read(data)


_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(_VALUES, st.lists(_VALUES, max_size=5), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_members_and_rest_make_the_document_again(
    other: Any, listed: list[Any], size: int, indent: int | None, ascii_only: bool
) -> None:
    document = {"before": other, "apps": {"x": other, "app": listed, "y": 1}, "after": listed}
    data = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    *found, rest = json_stream.members(cut(data, size), "apps", "app", "rm")
    assert found == listed
    rest.document["apps"]["app"] = listed
    assert rest.document == document


def long_list(count: int) -> Iterator[bytes]:
    yield b'{"apps":{"app":['
    for number in range(count):
        one = {**APP, "id": f"application_1700000000000_{number:06d}", "note": "x" * 800}
        yield (b"," if number else b"") + json.dumps(one).encode()
    yield b"]}}"


def test_a_long_list_takes_little_more_than_what_is_made_of_it() -> None:
    count = 1500
    size = sum(map(len, long_list(count)))

    def peak(make: Any) -> int:
        tracemalloc.start()
        try:
            assert len(make()) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    streamed = peak(lambda: answers.read_apps(long_list(count), "rm"))
    whole = peak(lambda: answers.apps(json.loads(b"".join(long_list(count))), "rm"))
    assert streamed < 1.5 * size
    assert streamed < whole / 3


def test_a_page_about_one_thing_is_not_read_to_the_end_of_a_hundred_megabytes() -> None:
    sent = [0]

    def endless(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n{"clusterInfo": "')
        for _ in range(1600):
            connection.sendall(b"x" * 65_536)
            sent[0] += 65_536

    once = HttpOptions(attempts=1)
    with (
        FakeServer(endless) as server,
        RestClient([server.url], once) as rm,
        pytest.raises(BadAnswer, match="more than 4194304 bytes"),
    ):
        rm.info()
    assert sent[0] < 20 << 20
