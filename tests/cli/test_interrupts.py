"""A command that a signal interrupts ends, wherever its exception is raised and whatever a library makes of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import click
import pytest
from pydantic import create_model
from pydantic_core import CoreSchema, core_schema

from harness.cli import cli, main

#: An interrupted command must have ended by then, seconds; the work below would take longer.
MOST_S = 20.0


class Panic(BaseException):
    """Stands for what compiled code raises in place of an exception that it did not expect."""


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], int]:
    """Return a function that runs a command with the given work, and returns its exit code."""

    def run(work: Callable[[], None]) -> int:
        monkeypatch.setitem(cli.commands, "work", click.Command("work", callback=work))
        monkeypatch.setattr(type(cli), "get_command", lambda self, ctx, name: self.commands[name])
        with pytest.raises(SystemExit) as caught:
            main(["work"])
        assert isinstance(caught.value.code, int)
        return caught.value.code

    return run


def work_for(seconds: float) -> None:
    """Compute for a while, as a command does that no signal has reached."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_that_a_library_drops_ends_the_command(
    number: signal.Signals, interrupted: Callable[[Callable[[], None]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        try:
            os.kill(os.getpid(), number)
            work_for(0.01)
        except BaseException:
            pass  # as `PyErr_Clear` does
        work_for(10 * MOST_S)

    began_s = time.monotonic()
    assert interrupted(work) == 130
    assert time.monotonic() - began_s < MOST_S
    assert capsys.readouterr().err.strip() == "yarnfair: interrupted"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_interrupt_that_becomes_another_exception_is_an_interrupt(
    interrupted: Callable[[Callable[[], None]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            work_for(MOST_S)
        except KeyboardInterrupt:
            raise Panic from None

    assert interrupted(work) == 130
    assert capsys.readouterr().err.strip() == "yarnfair: interrupted"


def test_while_pydantic_builds_a_model_an_interrupt_waits(
    interrupted: Callable[[Callable[[], None]], int], capfd: pytest.CaptureFixture[str]
) -> None:
    """Its compiled part calls this class' hook, and panics of an exception that is none of its own."""

    class Slow:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
            os.kill(os.getpid(), signal.SIGINT)
            work_for(0.01)
            return core_schema.any_schema()

    def work() -> None:
        create_model("Model", field=(Slow, ...))
        work_for(10 * MOST_S)

    assert interrupted(work) == 130
    assert capfd.readouterr().err.strip() == "yarnfair: interrupted"


def test_a_clean_up_is_not_interrupted_by_the_looks_whether_the_interrupt_is_handled(
    interrupted: Callable[[Callable[[], None]], int],
) -> None:
    cleaned = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            work_for(MOST_S)
        finally:
            # Longer than the time between two looks.
            work_for(1.2)
            cleaned.append(True)

    assert interrupted(work) == 130
    assert cleaned == [True]


def test_without_a_signal_an_unknown_exception_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        raise Panic

    monkeypatch.setitem(cli.commands, "work", click.Command("work", callback=work))
    monkeypatch.setattr(type(cli), "get_command", lambda self, ctx, name: self.commands[name])
    with pytest.raises(Panic):
        main(["work"])
