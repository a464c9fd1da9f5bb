"""The story that `yarnfair demo` tells, from two real runs: frames of text for a terminal, and an animated picture.

The data comes from allocations.parquet of a memoryless run and of one under control. Pure except for `read` and
`release`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Virtual seconds between two frames.
STEP_S = 12
#: A debt counts as paid when this fraction of its peak is left, because the policy pays the rest ever more slowly.
REST = 0.05
WIDTH, HEIGHT = 80, 15
_HALF, _BAR = 40, 20

#: (text, style); styles: "", "bold", "dim", "batch", "reports", "owed".
Span = tuple[str, str]
Line = list[Span]


@dataclass(frozen=True, slots=True)
class Moment:
    """One side at one time. ``held``, ``waits``: containers by queue; ``owed``: container-seconds that reports lent."""

    held: dict[str, int]
    waits: dict[str, int]
    weights: dict[str, float]
    owed: float


@dataclass(frozen=True, slots=True)
class Story:
    """Both sides over time. ``ended_s``: end of the burst, None: it had not ended; ``burst_s``: its beginning."""

    times: Sequence[int]
    containers: int
    memoryless: Sequence[Moment]
    controlled: Sequence[Moment]
    burst_s: int
    ended_s: tuple[int | None, int | None]

    def took(self, side: int) -> str:
        """Return how long the burst took on a side."""
        end = self.ended_s[side]
        return f"over {self.times[-1] - self.burst_s} s" if end is None else f"{end - self.burst_s} s"

    def paid_s(self) -> int | None:
        """Return when, under control, all but `REST` of the debt was paid back; None: not during the burst."""
        until_s = self.times[-1] if self.ended_s[1] is None else self.ended_s[1]
        burst = [(at, now.owed) for at, now in zip(self.times, self.controlled, strict=True) if at <= until_s]
        peak = max(owed for _, owed in burst)
        return next((at for at, owed in burst if at > self.burst_s and owed <= REST * peak), None)


def read(memoryless: Path, controlled: Path, container_mb: int = 2048) -> Story:
    """Read the story from two run directories of the demo's experiment."""
    import pandas as pd

    sides, ended = [], []
    times: list[int] = []
    burst_s, containers = 0, 0
    for folder in (memoryless, controlled):
        table = pd.read_parquet(folder / "allocations.parquet")
        table["queue"] = table["queue"].astype(str).str.removeprefix("root.")
        table = table[table["queue"].isin(["batch", "reports"])]
        wide = table.pivot(index="time_s", columns="queue")
        held, demand = wide["allocated_mb"] / container_mb, wide["demand_mb"] / container_mb
        counted = wide["counted_mb_s"] / container_mb
        wants = demand.index[demand["reports"] > 0]
        burst_s = int(wants[0])
        ended.append(None if wants[-1] >= demand.index[-1] else int(wants[-1]))
        containers = max(containers, round(float((held["batch"] + held["reports"]).max())))
        times = [int(time_s) for time_s in wide.index if int(time_s) == time_s and int(time_s) % STEP_S == 0]
        sides.append([
            Moment(
                {queue: round(float(held.loc[at, queue])) for queue in held},
                {queue: max(round(float(demand.loc[at, queue] - held.loc[at, queue])), 0) for queue in held},
                {queue: float(wide["weight"].loc[at, queue]) for queue in held},
                float((counted.loc[at, "batch"] - counted.loc[at, "reports"]) / 2),
            )
            for at in times
        ])  # fmt: skip
    return Story(times, containers, sides[0], sides[1], burst_s, (ended[0], ended[1]))


@dataclass(frozen=True, slots=True)
class Released:
    """An allocation file before control, during control, and after its release."""

    administrator: bytes
    steered: bytes
    released: bytes


_ALLOCATIONS = b"""<?xml version="1.0"?>
<!-- The administrator's own file. -->
<allocations>
  <queue name="batch"> <weight>1</weight> </queue>
  <queue name="reports"/>
</allocations>
"""


def release(folder: Path, now: Moment) -> Released:
    """Show what control does to an administrator's file.

    Write the weights of a moment in ``folder``, then release it.
    """
    from harness.control.file_actuator import FileActuator
    from harness.control.giveback import give_back
    from harness.ledger.store import LedgerStore
    from harness.model.plan import Attributes
    from harness.yarn.files import LocalStore

    path = folder / "fair-scheduler.xml"
    path.write_bytes(_ALLOCATIONS)
    actuator = FileActuator(LocalStore(path))
    with LedgerStore(folder / "ledger.db") as store:
        actuator.read()
        prepared = actuator.prepare(Attributes({f"root.{queue}": weight for queue, weight in now.weights.items()}))
        store.commit(documents=actuator.document())
        actuator.write(prepared)
        steered = path.read_bytes()
        give_back(actuator, store, None)
    return Released(_ALLOCATIONS, steered, path.read_bytes())


def frames(story: Story) -> list[list[Line]]:
    """Return one frame per moment, of `HEIGHT` lines and `WIDTH` columns."""
    most = max(1.0, max(now.owed for now in story.controlled))
    return [_frame(story, at, most) for at in range(len(story.times))]


def _frame(story: Story, at: int, most: float) -> list[Line]:
    left, right = story.memoryless[at], story.controlled[at]
    lines: list[Line] = [
        [
            (f"{story.containers} containers, two queues, equal weights".ljust(64), "dim"),
            (f"t = {story.times[at]:>4} s", "bold"),
        ],
        [],
        [("Fair Scheduler, memoryless".ljust(_HALF), "bold"), ("the same, steered by yarnfair", "bold")],
        [],
    ]
    for queue in ("batch", "reports"):
        lines += [[*_bar(queue, left, story.containers), *_bar(queue, right, story.containers)], []]
    owed = round(max(right.owed, 0.0) / most * _BAR)
    lent = "█" * owed + "·" * (_BAR - owed)
    lines += [
        [
            ("lent     no memory of it".ljust(_HALF), "dim"),
            ("lent     ", "dim"),
            (lent, "owed"),
        ],
        [],
        [(_weights(left).ljust(_HALF), "dim"), (_weights(right), "dim")],
        [],
        *([(text, "bold")] for text in _captions(story, at)),
        [],
    ]
    return lines[:HEIGHT]


def _bar(queue: str, now: Moment, containers: int) -> Line:
    held = round(now.held[queue] / containers * _BAR)
    number = f" {now.held[queue]:>2}" if now.held[queue] or now.waits[queue] else " idle"
    return [(f"{queue:<9}", ""), ("█" * held + "·" * (_BAR - held), queue), (number.ljust(_HALF - 9 - _BAR), "")]


def _weights(now: Moment) -> str:
    total = sum(now.weights.values()) or 1.0
    parts = {queue: 100 * weight / total for queue, weight in now.weights.items()}
    return f"weights  {parts['batch']:.0f} % : {parts['reports']:.0f} %"


def _captions(story: Story, at: int) -> tuple[str, str]:
    """Return the captions of a moment, for the left and for the right side."""
    time_s, paid_s = story.times[at], story.paid_s()
    if time_s < story.burst_s:
        return "reports is idle, and lends its half to batch.", "Right: yarnfair keeps count of what was lent."
    if paid_s is None or time_s < paid_s:
        return (
            "reports bursts. Left: it gets its half, and nothing of what it lent.",
            "Right: its weight is raised until it has got back what it lent.",
        )
    if story.ended_s[1] is None or time_s <= story.ended_s[1]:
        return (
            f"Right: {100 - 100 * REST:.0f} % of the debt is paid, and the halves are nearly even again.",
            "batch gets the rest: the cluster is full on both sides.",
        )
    lends = "Right: reports is idle again, and lends anew."
    if story.ended_s[0] is None or time_s <= story.ended_s[0]:
        return f"Right: the burst is over after {story.took(1)}. Left: it goes on.", lends
    return f"The burst took {story.took(0)} without memory, {story.took(1)} with it.", lends


def key_frames(story: Story) -> list[int]:
    """Return the frames to show without a terminal: lending, the burst, the paid debt, the end."""
    paid_s = story.paid_s() or story.times[-1]
    wanted = (story.burst_s - STEP_S, (story.burst_s + paid_s) // 2, paid_s + STEP_S, story.times[-1])
    return sorted({min(range(len(story.times)), key=lambda at: abs(story.times[at] - when)) for when in wanted})


_ANSI = {"": "", "bold": "\x1b[1m", "dim": "\x1b[2m", "batch": "\x1b[34m", "reports": "\x1b[32m", "owed": "\x1b[33m"}


def as_text(line: Line, *, colour: bool) -> str:
    """Format a line for a terminal, or plain."""
    if not colour:
        return "".join(text for text, _ in line).rstrip()
    return "".join(f"{_ANSI[style]}{text}\x1b[0m" if style else text for text, style in line)


_X, _Y, _CHAR, _ROW = 16, 30, 8.4, 19
_STYLE = """
text{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d8dee9;white-space:pre}
.bold{font-weight:bold;fill:#fff}.dim{fill:#9aa5b1}.batch{fill:#5aa9e6}.reports{fill:#7fd17f}.owed{fill:#f2c14e}
.f{visibility:hidden;animation:k %(whole)gs step-end infinite}
@keyframes k{0%%{visibility:visible}%(part).4f%%{visibility:hidden}}
@media(prefers-reduced-motion:reduce){.f{animation:none}.last{visibility:visible}}
"""


def as_svg(story: Story, frame_s: float = 0.45, hold: int = 8) -> str:
    """Return an animated picture without scripts.

    Common parts are drawn once; the last frame stays for ``hold`` frames.
    """
    drawn = frames(story)
    order = [*range(len(drawn)), *[len(drawn) - 1] * hold]
    fixed = [row for row in range(HEIGHT) if all(frame[row] == drawn[0][row] for frame in drawn)]
    whole = frame_s * len(order)
    style = _STYLE % {"whole": whole, "part": 100 / len(order)}
    width, height = _X * 2 + _CHAR * WIDTH, _Y + _ROW * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">',
        "<title>yarnfair demo: what a queue lent comes back when it bursts</title>",
        f"<style>{style}</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#1b222b"/>',
        *(_svg_line(drawn[0][row], row) for row in fixed),
    ]
    for at, index in enumerate(order):
        body = "".join(_svg_line(drawn[index][row], row) for row in range(HEIGHT) if row not in fixed)
        last = " last" if at == len(order) - 1 else ""
        parts.append(f'<g class="f{last}" style="animation-delay:{at * frame_s:.2f}s">{body}</g>')
    return "\n".join([part for part in parts if part] + ["</svg>", ""])


def _svg_line(line: Line, row: int) -> str:
    if not any(text.strip() for text, _ in line):
        return ""
    spans = []
    column = 0
    for text, style in line:
        if text.strip():
            lead = len(text) - len(text.lstrip())
            name = f' class="{style}"' if style else ""
            x = _X + _CHAR * (column + lead)
            spans.append(f'<tspan x="{x:.0f}"{name}>{html.escape(text.strip())}</tspan>')
        column += len(text)
    return f'<text y="{_Y + _ROW * row}">{"".join(spans)}</text>'
