"""Files of many queues: what it takes to check one grows with its queues, not with their square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from harness.yarn.capacity.properties import PREFIX
from harness.yarn.validation import check_document


def _file(groups: int, each: int) -> bytes:
    """A capacity-scheduler.xml of so many groups of so many leaves; groups of none are leaves."""
    names = [f"g{at}" for at in range(groups)]
    values = {"root.queues": ",".join(names)}
    for group in names:
        values[f"root.{group}.capacity"] = repr(100 / groups)
        if each:
            values[f"root.{group}.queues"] = ",".join(f"q{at}" for at in range(each))
        values |= {f"root.{group}.q{at}.capacity": repr(100 / each) for at in range(each)}
    said = (f"<property><name>{PREFIX}{key}</name><value>{text}</value></property>" for key, text in values.items())
    return f"<configuration>{''.join(said)}</configuration>".encode()


def _calls(work: Callable[[], object]) -> int:
    """How many functions the work calls, those of the interpreter included: the same on every machine."""
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("each", [0, 4])
def test_four_times_the_queues_take_four_times_as_long_to_check(each: int) -> None:
    few, many = _file(20, each), _file(80, each)
    check_document(few, source="few.xml")  # whatever is prepared once
    calls = [_calls(partial(check_document, text, source="file.xml")) for text in (few, many)]
    assert calls[1] < 4.4 * calls[0]
