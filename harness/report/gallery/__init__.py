"""The papers' figures for print, drawn from runs of their experiment, or from a record of such runs or of a study.

Without given runs, it searches ./runs, the output of `make records`, and a checkout's own records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.base.words import counted
from harness.report.data import Run, load_runs
from harness.report.figures import Group, Legend
from harness.report.gallery.panels import PANELS, Panel, Values, bars, half_widths
from harness.report.gallery.values import values_of
from harness.report.svg import BarChart
from harness.report.variants import range_text
from harness.results.runs import find_runs, run_info

__all__ = ["ARGUMENTS", "PANELS", "STUDIES", "command_of", "gallery_figure", "gallery_of_runs"]

#: Records made by studies, not by an experiment's runs; `make records` makes them again.
STUDIES = frozenset(
    {
        "ordering-greedy",
        "ordering-variation",
        "mrorder-online",
        "dynamicmr-slots",
        "dynamicmr-borrowed",
        "dynamicmr-sepb",
        "dynamicmr-locality",
        "dynamicmr-benchmarks",
        "dynamicmr-whole",
        "dynamicmr-yarn",
    }
)
#: A record of real containers, which no command can reproduce exactly: the committed one is drawn.
REAL = frozenset({"estimator"})
#: Arguments of `yarnfair run` for a record's runs, if more than the experiment's name.
ARGUMENTS = {"ltyarn": "ltyarn --seed 1-10", "ltyarn-hierarchy": "ltyarn-hierarchy --seed 1-10"}
#: Folders that are searched for runs and records, in this order.
RUNS = Path("runs")
RECORDS = (Path("build/records"), Path("docs/records"))


@dataclass(frozen=True, slots=True)
class _Source:
    """Values to draw, and a description of their source."""

    values: Values
    said: str


def command_of(name: str) -> str:
    """Return the single command after which `yarnfair plot --figure NAME` draws a figure."""
    record = PANELS[name].record
    if record in STUDIES:
        return f"make records ONLY={record}"
    if record in REAL:
        return "git checkout docs/records"
    return f"yarnfair run {ARGUMENTS.get(record, record)} --no-report --out runs/{record}"


def gallery_figure(name: str, paths: Sequence[Path] = ()) -> Group:
    """Return a figure of the gallery from these runs or this record; without any, from those that are found.

    Parameters
    ----------
    name
        One of `PANELS`.
    paths
        Run directories or folders of them, or one record (``.json``).

    Raises
    ------
    InputError
        They are of another experiment, lack needed values, or do not exist. The message names the command that creates
        them.
    """
    panel = PANELS[name]
    if len(paths) == 1 and paths[0].suffix == ".json" and paths[0].is_file():
        return _group(name, _of_record(paths[0]), str(paths[0]))
    if not paths:
        found = _found(panel.record)
        if found is None:
            hint = f"make them: {command_of(name)}"
            raise InputError(f"neither runs nor a record of {panel.record} here", where=f"--figure {name}", hint=hint)
        paths = [found]
        if found.suffix == ".json":
            return _group(name, _of_record(found), str(found))
    runs = load_runs(paths)
    others = sorted({run.experiment for run in runs} - {panel.record})
    if others:
        raise InputError(
            f"{name} is drawn from runs of {panel.record}, not of {', '.join(others)[:80]}",
            where=str(paths[0]),
            hint=f"make them: {command_of(name)}",
        )
    return _group(name, _of_runs(runs, str(paths[0])), str(paths[0]))


def gallery_of_runs(runs: Sequence[Run]) -> Iterator[tuple[str, Group]]:
    """Return the gallery's figures for which these runs have all values."""
    if len({run.experiment for run in runs}) != 1:
        return
    names = [name for name, panel in PANELS.items() if panel.record == runs[0].experiment]
    if not names or not any(run.counts for run in runs):
        return
    source = _of_runs(runs, str(runs[0].path))
    for name in names:
        try:
            yield name, _group(name, source, "")
        except InputError:
            continue


def _of_runs(runs: Sequence[Run], where: str) -> _Source:
    counting = [run for run in runs if run.counts]
    if not counting:
        raise InputError("none of these runs has ended well", where=where, hint="run them to their end")
    seeds: dict[str, set[int | None]] = {}
    for run in counting:
        seeds.setdefault(run.variant_without_seed(), set()).add(run.seed)
    numbers = [len(own) for own in seeds.values()]
    left = len(runs) - len(counting)
    said = (
        f"{counted(len(counting), 'run')} in {where}, {range_text(numbers)} seed{'s' if max(numbers) > 1 else ''} each"
    )
    return _Source(values_of(counting), said + (f"; {left} that did not end well left out" if left else ""))


def _of_record(path: Path) -> _Source:
    document = read_json(path, hint="give a record, as docs/records has them")
    values, command = document.get("values"), document.get("command")
    if not isinstance(values, dict):
        raise InputError("no record: it has no values", where=str(path), hint="give one of docs/records")
    return _Source(
        values, f"the record {path}" + (f", made by `{command}`" if isinstance(command, str) and command else "")
    )


def _found(record: str) -> Path | None:
    """Return the newest folder of ./runs with runs of the record's experiment, or a file with the record itself."""
    newest: tuple[float, Path] | None = None
    for folder in sorted(RUNS.iterdir()) if RUNS.is_dir() else ():
        try:
            first = find_runs(folder)[0]
            experiment = run_info(first).get("experiment")
        except InputError:
            continue
        if isinstance(experiment, Mapping) and experiment.get("experiment") == record:
            changed = (first / "run.json").stat().st_mtime
            newest = max(newest or (changed, folder), (changed, folder))
    if newest is not None:
        return newest[1]
    return next((folder / f"{record}.json" for folder in RECORDS if (folder / f"{record}.json").is_file()), None)


def _group(name: str, source: _Source, where: str) -> Group:
    """Return the figure as a group of one chart. Raises InputError if values are missing."""
    panel = PANELS[name]
    try:
        drawn, halves = bars(panel, source.values), half_widths(panel, source.values)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        lacks = str(error.args[0] if error.args else error)[:160]
        hint = f"make them all: {command_of(name)}"
        raise InputError(f"{name} cannot be drawn: {lacks}", where=where, hint=hint) from None
    columns = [list(column) for column in zip(*drawn.values(), strict=True)]
    intervals = [list(column) for column in zip(*(halves[series] for series in drawn), strict=True)]
    chart = BarChart(
        panel.title,
        panel.y_label,
        panel.groups,
        list(drawn),
        columns,
        (panel.level,) if panel.level is not None else (),
        panel.digits,
        panel.styles,
        intervals if any(half > 0 for row in intervals for half in row) else (),
    )
    return Group(
        name, panel.title, _caption(panel, source, chart), Legend(list(zip(drawn, panel.styles, strict=True))), [chart]
    )


def _caption(panel: Panel, source: _Source, chart: BarChart) -> str:
    theirs = " Grey is what the paper gives, where a number can be read off." if panel.theirs else ""
    lines = " A line on a bar is the 95 % interval of its mean." if chart.half_widths else ""
    return f"From {source.said}.{theirs}{lines}"
