"""``yarnfair whatif``: a page where settings are dragged and the run is computed anew. Parsing and printing only."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError
from harness.cli.output import OutputFile, cluster_option, json_option, print_result, progress_line, say, stay
from harness.cli.scheduler_file import on_scheduler_file, scheduler_file_options

if TYPE_CHECKING:
    from harness.experiments.resolve import LoadedExperiment
    from harness.predict.whatif import WhatIf


@click.command(short_help="A page where settings are dragged and the run is computed anew.")
@click.argument("what", metavar="EXPERIMENT|TRACE")
@cluster_option
@click.option("--serve", default="127.0.0.1:0", show_default="this machine alone, a free port", metavar="HOST:PORT")
@click.option("--export", type=OutputFile(), metavar="FILE", help="Write the page as one file that works offline.")
@click.option("--state", default="", metavar="STATE", help="With --export: the part of a page's address after #.")
@scheduler_file_options
@json_option
def whatif(
    what: str, cluster: Path | None, serve: str, export: Path | None, state: str, as_json: bool, **on_file: Any
) -> None:
    """Drag weights, horizon, half-life, T_wait of an EXPERIMENT or a TRACE; two policies side by side, computed anew.

    A TRACE is one of `yarnfair record`, a run directory, SLS', Rumen's, SWF's, a table of jobs (CSV),
    or a folder of job history files.

    The page's address contains its settings. Every figure has a band over twenty phases of heartbeats and control.
    """
    from harness.base.outputs import write_output
    from harness.cli.run import say_if_it_compiles
    from harness.predict.whatif import WhatIf
    from harness.report.serving import PageServer, address_of
    from harness.report.whatif import page

    with tempfile.TemporaryDirectory(prefix="yarnfair-") as folder:
        notes: list[str] = []
        loaded = _load(what, cluster, Path(folder), notes)
        what_if = WhatIf(on_scheduler_file(loaded, on_file), title=what if Path(what).exists() else None)
        say_if_it_compiles((what_if.experiment.spec.scheduler,))
        try:
            if export is not None:
                write_output(export, page(_exported(what_if, _query(state), progress_line(as_json))))
                print_result(as_json, {"file": str(export), "notes": notes}, [f"written: {export}"])
                return
            answers = {
                "/about.json": lambda _: what_if.about(),
                "/run.json": lambda query: what_if.run(_asked(what_if, query)),
                "/explain.json": lambda query: _words(what_if, query),
                "/export.json": lambda query: {
                    "name": f"whatif-{what_if.experiment.name}.html",
                    "html": page(_exported(what_if, query)),
                },
            }
            server = PageServer(*address_of(serve), page(), answers)
            try:
                print_result(as_json, {"url": server.url, "notes": notes}, [f"what if: {server.url} (Ctrl-C ends it)"])
                stay()
            finally:
                server.close()
        finally:
            what_if.close()


def _load(what: str, cluster: Path | None, folder: Path, notes: list[str]) -> LoadedExperiment:
    """Return the experiment that ``what`` names, or one that replays the trace ``what``.

    Remarks on a trace are printed and added to ``notes``.
    """
    from harness.experiments.resolve import load_experiment
    from harness.predict.foreign import played_trace
    from harness.predict.replay import write_experiment
    from harness.traces.accounting import account_lines

    path = Path(what)
    if path.is_dir() or path.suffix == ".jsonl" or (path.is_file() and path.suffix not in (".yaml", ".yml")):
        trace = played_trace(path, cluster, folder / "trace.jsonl")
        for line in account_lines(trace.header, trace.jobs):
            notes.append(line)
            say(f"{trace.path}: {line}")
        # The replay has the scheduler of the recorded cluster.
        return load_experiment(str(write_experiment(trace, folder, schedulers=(trace.header.scheduler or "fair",))))
    if cluster is not None:
        raise CallError(
            "--cluster goes with a TRACE", where="--cluster", hint="leave it out, an experiment has its own"
        )
    return load_experiment(what)


def _asked(what_if: WhatIf, query: Mapping[str, str]) -> Any:
    from harness.predict.whatif import Asked

    return Asked.read(query, what_if.experiment)


def _words(what_if: WhatIf, query: Mapping[str, str]) -> dict[str, Any]:
    try:
        at_s = float(query.get("at", "0"))
    except ValueError:
        raise CallError(f"at is {query['at'][:40]!r}, no number", hint="give seconds") from None
    return {"words": what_if.words(_asked(what_if, query), query.get("queue", ""), at_s)}


def _query(state: str) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(state.partition("#")[2] or state, max_num_fields=200))


def _exported(
    what_if: WhatIf, query: Mapping[str, str], show: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Return the data of an exported page. The keys ``a.KEY`` and ``b.KEY`` of the query are the settings of its sides.

    ``show`` is called with a line of text after each phase.
    """
    sides: dict[str, dict[str, str]] = {"a": {}, "b": {}}
    both = {key: value for key, value in query.items() if key.startswith("w.")}
    for key, value in query.items():
        if key[:2] in ("a.", "b."):
            sides[key[0]][key[2:]] = value
        elif key not in both and key not in ("at", "queue"):
            raise CallError(
                f"unknown key {key[:60]!r} in the state",
                where="--state",
                hint="write a.KEY or b.KEY for one side, w.QUEUE for both, a.w.QUEUE or b.w.QUEUE for one",
            )
    own = {name: {key: value for key, value in side.items() if key.startswith("w.")} for name, side in sides.items()}
    for side in sides.values():
        side.update({key: value for key, value in both.items() if key not in side})
    offers = what_if.about()["policies"]
    sides["a"].setdefault("policy", offers[0])
    sides["b"].setdefault("policy", "ltrf@outside" if "ltrf@outside" in offers else offers[-1])
    found = what_if.export(
        [_asked(what_if, sides[side]) for side in ("a", "b")],
        on_phases=lambda policy, known: show(f"{policy}: phase {known} of {what_if.phases}"),
    )
    show("")
    weights = {key[2:]: float(value) for key, value in both.items()}

    def plain_side(name: str) -> dict[str, Any]:
        side = {key: value for key, value in sides[name].items() if not key.startswith("w.") or key in own[name]}
        return {key: value if key == "policy" else float(value) for key, value in side.items()}

    return {**found, "state": {"a": plain_side("a"), "b": plain_side("b"), "w": weights}}
