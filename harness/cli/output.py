"""Printing shared by the commands: one JSON document on standard output, or text; progress goes to standard error."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import click

from harness.base.errors import CallError
from harness.base.files import plain
from harness.base.outputs import check_output, check_output_folder, is_standard_output
from harness.base.words import fitted, folded

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from harness.experiments.campaign.dask_cluster import DaskCluster


_Command = TypeVar("_Command", bound=Callable[..., Any])

#: The maximum number of seeds in one range, as in an experiment file.
MOST_SEEDS = 10_000


class _Output(io.FileIO):
    """A standard output whose reader may go away (``... | head``, a closed terminal); later output is discarded."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # EIO: the terminal was closed.
            if error.errno not in (errno.EPIPE, errno.EIO):
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes


def outlive_readers() -> None:
    """Let the command continue, and end with its own exit code, if the readers of its outputs go away.

    Streams that replace the process' own standard output or error are not changed.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__") or not isinstance(stream, io.TextIOWrapper):
            continue
        stream.flush()
        setattr(
            sys,
            name,
            io.TextIOWrapper(
                io.BufferedWriter(_Output(stream.fileno(), "wb", closefd=False)),
                encoding=stream.encoding,
                errors=stream.errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            ),
        )


def print_json(document: object) -> None:
    """Print the result of a command with ``--json``: a single document on standard output, with null for NaN."""
    click.echo(json.dumps(plain(document), indent=1, ensure_ascii=False))


#: Key in a click context: the options of the call that write to standard output.
_STANDARD_OUTPUT = "yarnfair.standard_output"
#: Key in a click context: whether ``--json`` prints its document to standard output.
_JSON = "yarnfair.json"


def _claim_standard_output(context: click.Context, option: str) -> None:
    """Record that an option writes to standard output. Raises UsageError if another option does already."""
    claimed = context.meta.setdefault(_STANDARD_OUTPUT, [])
    other = "--json" if context.meta.get(_JSON) else claimed[0] if claimed else option
    if other != option:
        raise click.UsageError(f"{other} and {option} both write to standard output; give one of them a file", context)
    claimed.append(option)


def output_is_a_file() -> bool:
    """Return whether an option of the call writes a file to standard output.

    All other text then goes to standard error.
    """
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_STANDARD_OUTPUT))


class OutputFile(click.Path):
    """Type of an option for a file that the command writes (`harness.base.outputs.write_output`); ``-``: stdout.

    Before the command begins it is checked that the file can be written.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False, readable=False, allow_dash=True)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the output path; fail early if it cannot be written."""
        path = Path(super().convert(value, param, ctx))  # type: ignore[arg-type]
        option = param.opts[-1] if param is not None else "the output"
        if ctx is not None and is_standard_output(path):
            _claim_standard_output(ctx, option)
        check_output(path, hint=f"choose another {option} FILE")
        return path


class OutputFolder(click.Path):
    """Type of an option for a folder that the command fills.

    Before the command begins it is checked that the folder can be written.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False, readable=False)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the folder's path; fail early if it cannot be written."""
        path = Path(super().convert(value, param, ctx))  # type: ignore[arg-type]
        option = param.opts[-1] if param is not None else "folder"
        check_output_folder(path, hint=f"choose another {option}")
        return path


def _reserve_for_json(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Reserve standard output for the document of ``--json``: no other option of the call may write there."""
    if value:
        context.meta[_JSON] = True
        for option in context.meta.get(_STANDARD_OUTPUT, ())[:1]:
            _claim_standard_output(context, option)
    return value


def print_result(as_json: bool, document: object, lines: Iterable[str], *, hang: int | None = None) -> None:
    """Print a command's result: its document with ``--json``, else lines of text.

    ``hang`` is the indentation of continuation lines, as in `echo_wrapped`; None: lines are not wrapped.
    """
    if as_json:
        print_json(document)
        return
    for line in lines:
        echo_text(line if hang is None else fitted(line, sys.stdout, hang=hang))


def echo_text(line: str) -> None:
    """Print a line of the result to standard output, or to standard error if a file goes to standard output."""
    click.echo(line, err=output_is_a_file())


def stay() -> NoReturn:
    """Flush the output and wait until the process is interrupted, for commands that serve something."""
    sys.stdout.flush()
    while True:
        time.sleep(3600)


def say(text: str) -> None:
    """Print a message that is not part of the result to standard error."""
    click.echo(f"yarnfair: {text}", err=True)


def progress_line(quiet: bool = False) -> Callable[[str], None]:
    """Return a function that shows progress as one line on standard error; with ``quiet`` it shows nothing.

    In a terminal each line overwrites the previous one; elsewhere the lines of single phases are left out.
    """

    def show(text: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{text[:100]}", err=True, nl=False)
        elif text and "phase" not in text:
            click.echo(text, err=True)

    return (lambda _: None) if quiet else show


def warn(remarks: Iterable[str]) -> None:
    """Print warnings to standard error, one a line."""
    for remark in remarks:
        click.echo(f"warning: {remark}", err=True)


def echo_wrapped(text: str, *, hang: int = 4, err: bool = False) -> None:
    """Print a line to standard output, or to standard error with ``err``.

    In a terminal the line is wrapped at the terminal's width and continuation lines are indented by ``hang`` columns;
    elsewhere it is not wrapped.
    """
    err = err or output_is_a_file()
    click.echo(fitted(text, sys.stderr if err else sys.stdout, hang=hang), err=err)


def named_values(pairs: Iterable[str], where: str = "--set") -> dict[str, str]:
    """Return ``NAME=VALUE`` texts of an option as a mapping.

    Raises CallError for an invalid text or a repeated name.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            shown = pair if len(pair) <= 60 else pair[:57] + "..."
            raise CallError(f"{shown!r} is not a setting", where=where, hint="write name=value")
        if name.strip() in found:
            raise CallError(f"{name.strip()!r} is given twice", where=where, hint="give it once")
        found[name.strip()] = value.strip()
    return found


def echo_sentences(sentences: Sequence[str]) -> None:
    """Print sentences in 80 columns, as wide as the tables below them, and then a blank line."""
    for sentence in sentences:
        click.echo(folded(sentence, 80, hang=2))
    if sentences:
        click.echo()


class Number(click.FloatRange):
    """A finite number in a range. click's own type accepts NaN in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; fail if it is not finite."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return found


class Span(click.ParamType):  # type: ignore[type-arg]
    """A duration in seconds: ``90``, ``90s``, ``5m``, ``2h``, ``7d``."""

    name = "time"
    _UNITS: ClassVar[dict[str, float]] = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)", str(value).strip())
        if found is None or not float(found[1]):
            return self.fail(f"{str(value)[:40]!r} is not a time: give seconds, or 90s, 5m, 2h, 7d.", param, ctx)
        return float(found[1]) * self._UNITS[found[2]]


class Seeds(click.ParamType[list[int]]):
    """A seed, or a range of seeds: ``7``, ``1-10``. The value is a list."""

    name = "seeds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """Return the list of seeds."""
        first, dash, last = str(value).partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            self.fail(
                f"{str(value)[:40]!r} is not a seed; write a whole number from 0, or a range like 1-10.", param, ctx
            )
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high - low >= MOST_SEEDS or high >= 2**63:
            self.fail(f"{value} is not a range of 1 to {MOST_SEEDS:,} seeds below 2**63.", param, ctx)
        return list(range(low, high + 1))


def all_seeds(_context: click.Context, _parameter: click.Parameter, value: tuple[list[int], ...]) -> tuple[int, ...]:
    """Return the seeds of an option that may be given several times."""
    return tuple(seed for part in value for seed in part)


def options(*those: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Return one decorator that adds several options, in this order, to a command."""

    def all_of_them(command: _Command) -> _Command:
        for option in reversed(those):
            command = option(command)
        return command

    return all_of_them


def seed_option(what: str) -> Callable[[_Command], _Command]:
    """Return the option ``--seed``, which may be repeated; the command gets all seeds as one tuple ``seeds``."""
    return click.option("--seed", "seeds", multiple=True, type=Seeds(), callback=all_seeds, metavar="N|A-B", help=what)


cluster_option = click.option(
    "--cluster",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Nodes and queues of a foreign TRACE, as YAML (docs/how-to/assess.md).",
)
jobs_option = click.option("--jobs", type=click.IntRange(1, 256), help="Runs side by side [one a core].")
executor_option = click.option(
    "--executor", metavar="dask://HOST:PORT", help="Simulate the phases on a Dask cluster [on this machine]."
)


@contextmanager
def dask_workers(executor: str | None) -> Iterator[DaskCluster | None]:
    """Connect to the Dask cluster of ``--executor`` for the duration of the context; None without the option.

    Raises the errors of `harness.experiments.campaign.dask_cluster.DaskCluster`.
    """
    if executor is None:
        yield None
        return
    from harness.experiments.campaign.dask_cluster import DaskCluster

    cluster = DaskCluster(executor)
    try:
        yield cluster
    finally:
        cluster.close()


no_report_option = click.option("--no-report", is_flag=True, help="Write no HTML report.")
scheduler_option = click.option(
    "--scheduler",
    type=click.Choice(["fair", "capacity"]),
    default="fair",
    show_default=True,
    help="The RM's scheduler.",
)
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=_reserve_for_json,
    help="Print the result as one JSON document.",
)
