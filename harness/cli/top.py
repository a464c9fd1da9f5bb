"""``yarnfair top``: all queues, live in the terminal. Parsing and printing only."""

from __future__ import annotations

import contextlib
import select
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import YarnfairError
from harness.base.words import seconds
from harness.cli.live_view import Source, source_options
from harness.cli.output import Number, json_option, print_json, print_result, stay

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.control.view import QueueRow, View

_WIDTH = 80


@click.command()
@source_options
@click.option("--every", type=Number(0.2, 3600), default=2.0, show_default=True, help="Seconds between two frames.")
@click.option("--once", is_flag=True, help="Print one frame and end.")
@click.option(
    "--serve",
    is_flag=False,
    flag_value="127.0.0.1:0",
    metavar="[HOST:PORT]",
    help="A live page there instead [this machine alone, a free port].",
)
@json_option
def top(source: Source, every: float, once: bool, serve: str | None, as_json: bool) -> None:
    """Show share, use, demand, accumulated resources, deficit, weight and last change of every queue (q ends it)."""
    if serve is not None and once:
        raise click.UsageError("give either --serve or --once")
    if serve is not None:
        _serve(source, serve, every, as_json)
    elif as_json:
        _print_document(source.view())
    elif once or not sys.stdout.isatty():
        from rich.console import Console

        # The frame has 80 columns, however wide the terminal is.
        Console(width=_WIDTH, highlight=False).print(frame(source.view()))
    else:
        _live(source, every)


def _serve(source: Source, address: str, every: float, as_json: bool) -> None:
    from harness.report.live import LivePage

    with contextlib.closing(LivePage(source.view, every)) as live:
        url = live.serve(address)
        print_result(as_json, {"url": url}, [f"live page: {url} (Ctrl-C ends it)"])
        stay()


def _live(source: Source, every: float) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    shown: RenderableType = frame(source.view())
    console = Console(highlight=False)
    with _keys() as key, Live(shown, console=console, screen=True, auto_refresh=False) as live:
        live.refresh()
        while True:
            end = time.monotonic() + every
            while (left := end - time.monotonic()) > 0:
                if key(min(left, 0.5)) in ("q", "Q", "\x1b"):
                    return
            problem = ""
            try:
                shown = frame(source.view())
            except YarnfairError as error:
                problem = error.line()
            live.update(Group(shown, Text(problem, style="red")) if problem else shown, refresh=True)


@contextlib.contextmanager
def _keys() -> Iterator[Any]:
    """Provide a function that waits for a key, at most so many seconds, and returns it, or "" if none was pressed.

    Keys need no Enter. The terminal's mode is restored at the end.
    """
    if not sys.stdin.isatty():
        yield _no_key
        return
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)

    def key(timeout_s: float) -> str:
        ready, _, _ = select.select([handle], [], [], timeout_s)
        return sys.stdin.read(1) if ready else ""

    try:
        tty.setcbreak(handle)
        yield key
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _no_key(timeout_s: float) -> str:
    time.sleep(timeout_s)
    return ""


def frame(view: View) -> RenderableType:
    """Return one screen of 80 columns: a header, the queues, the last three decisions, notes, up to three alarms."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from harness.control.changes import parts
    from harness.control.explain import full, killed, moment, old, step

    table = Table(box=None, padding=(0, 1, 0, 0), width=_WIDTH, header_style="bold")
    table.add_column("queue", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in ("due %", "has %", "wants %", "accum.", "deficit", "weight %", "changed"):
        table.add_column(name, justify="right", no_wrap=True)
    part = parts({path: row.weight or 0.0 for path, row in view.queues.items()})
    for row in view.queues.values():
        if row.parent is not None:
            table.add_row(*_cells(view, row, part[row.path]), style=None if row.leaf else "bold")
    unit = {"memory": "GiB·s", "vcores": "vcore·s", "dominant": "cluster·s"}.get(view.unit, view.unit)
    policy = f" · {view.policy}" if view.policy else ""
    mode = f" · {'released' if view.released else 'ended' if view.given_back else view.mode}" if view.mode else ""
    used = view.queues["root"].allocated_mb / max(view.capacity_mb, 1) if "root" in view.queues else 0.0
    head = Text(
        f"yarnfair top · {moment(view, view.time_s)}{policy}{mode} · "
        f"{100 * used:.0f} % of {view.capacity_mb:,} MiB used"
    )
    lines: list[RenderableType] = [head, Text(view.source, style="dim"), table, Text(f"accum., deficit: {unit}", "dim")]
    for decision in view.decisions[-3:]:
        lines.append(Text(_said(view, decision), no_wrap=True, overflow="ellipsis"))
    lines += [Text(words, style="yellow") for words in full(view)]
    lines += [Text(words, style="red" if view.released else "yellow") for words in step(view)]
    lines += [Text(words) for words in killed(view)]
    lines += [Text(words, style="red") for words in old(view)]
    lines += [Text(f"{kind}: {text}", style="red", no_wrap=True, overflow="ellipsis") for kind, text in view.alarms[:3]]
    return Group(*lines)


def _cells(view: View, row: QueueRow, part: float) -> list[str]:
    """Return the cells of a queue's row. ``part``: the queue's weight as a fraction of the sum over its siblings."""
    capacity = max(view.capacity_mb, 1)
    depth = row.path.count(".") - 1
    name = "  " * depth + (row.path.removeprefix("root.") if depth == 0 else row.path.rpartition(".")[2])
    scale = 1024.0 if view.unit == "memory" else 1.0
    changed = ""
    if row.changed_s is not None:
        arrow = "" if row.part_before is None or row.part is None else "↑" if row.part > row.part_before else "↓"
        changed = f"{arrow}{seconds(max(view.time_s - row.changed_s, 0.0))}"
    return [
        name,
        f"{100 * row.share:.1f}",
        f"{100 * row.allocated_mb / capacity:.1f}",
        f"{100 * row.demand_mb / capacity:,.0f}",
        "" if row.accumulated is None else _short(row.accumulated / scale),
        "" if row.deficit is None else _short(row.deficit / scale),
        "" if row.weight is None else f"{100 * part:.1f}",
        changed,
    ]


def _short(value: float) -> str:
    """Return a number with one decimal and the suffix k, M, G or T if it is at least a thousand."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}{letter}"
    return f"{value:.1f}"


def _said(view: View, decision: Any) -> str:
    from harness.control.changes import parts, percent
    from harness.control.explain import moment

    found = parts(decision["weights"])
    shown = [
        f"{queue.removeprefix('root.')} {percent(found[queue])}" for queue in decision["changed"] if queue in found
    ]
    said = decision.get("reasons", {}) | decision.get("held", {})
    reasons = [f"{queue.removeprefix('root.')} {why}" for queue, why in said.items()]
    return f"{moment(view, decision['time_s'])} {', '.join([*reasons, *shown])}"


def _print_document(view: View) -> None:
    from harness.control.explain import row_document
    from harness.control.view import alarms, head

    print_json(
        {
            **head(view),
            "capacity_mb": view.capacity_mb,
            "queues": {path: row_document(view, row) for path, row in view.queues.items()},
            "decisions": [dict(decision) for decision in view.decisions],
            "alarms": alarms(view),
        }
    )
