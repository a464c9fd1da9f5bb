"""A whole call of `yarnfair plan`, for the command and for Python: checks, simulates and judges a change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError
from harness.predict.changes import Case, Rule, judged, verdict_of
from harness.predict.foreign import played_trace
from harness.predict.plan import Planned, document_of, plan
from harness.predict.plan_files import check_files
from harness.predict.plan_sides import sides_of, submission
from harness.predict.playing import Workers
from harness.sim.scheduler_file import Place
from harness.traces.accounting import Shape, account_of
from harness.traces.recorded import Trace
from harness.yarn.capacity.properties import ASYNCHRONOUS, parse_configuration
from harness.yarn.fair.parse import read_bytes


class FilesRefused(InputError):
    """`yarnfair validate` has findings that prevent a plan; ``on_finding`` has received them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What changes, the result of each rule, and both for ``--json``."""

    planned: Planned
    cases: Sequence[Case]
    document: Mapping[str, Any]


def answer(
    trace: Path,
    before: str,
    after: str | None,
    *,
    nodes: int = 0,
    submit: str | None = None,
    rules: Sequence[str] = (),
    place: Place = "rules",
    drop: bool = False,
    groups: Mapping[str, tuple[str, ...]] | None = None,
    phases: int | None = None,
    cluster: Path | None = None,
    processes: int | None = None,
    workers: Workers | None = None,
    on_finding: Callable[[str], None] = lambda _: None,
) -> Answer:
    """Simulate a trace before and after a change of the scheduler's configuration.

    Parameters
    ----------
    trace, before, after
        The load, the file in force, and the new file (default: the file in force).
    nodes, submit, rules, place, drop, groups, phases, cluster, processes
        As the command's options.
    workers
        Other machines that make all simulations but the first.
    on_finding
        Called with each finding of `yarnfair validate` as a line, the fatal ones last.

    Returns
    -------
    Answer
        Every queue before and after, and every rule on its queues.

    Raises
    ------
    CallError
        Nothing changes, or a rule or an application is invalid.
    FilesRefused
        `yarnfair validate` has fatal findings.
    InputError
        A trace or file is unusable.
    """
    if after is None and not nodes and submit is None:
        raise CallError("nothing changes", where="plan", hint="give --after FILE, --nodes or --submit")
    read_rules, there = [Rule.read(text) for text in rules], after or before
    checked = check_files(before, there)
    for line in (*checked.told, *checked.stops):
        on_finding(line)
    if checked.stops:
        raise FilesRefused(
            f"{len(checked.stops)} finding(s) of `yarnfair validate` keep it from being planned",
            where=there if checked.refuses_after else before,
            hint="correct the file",
        )
    with tempfile.TemporaryDirectory(prefix="yarnfair-") as folder:
        found = with_placing(played_trace(trace, cluster, Path(folder) / "trace.jsonl"), before)
        added = None if submit is None else submission(submit, found)
        with _user_files(trace, Path(folder)):
            sides = sides_of(
                found, Path(folder), before, there, nodes=nodes, added=added, place=place, drop=drop, groups=groups
            )
            done = plan(found, sides, phases=phases, processes=processes, workers=workers)
    known = Shape.of(found.jobs).known
    cases = judged(
        read_rules, done.queues, done.reproduction_error, done.added, known, found.header.asynchronous is True
    )
    document = {
        "trace": str(trace),
        **account_of(found.header, found.jobs),
        **document_of(done),
        "validate": checked.document,
        "fail_if": [case.document() for case in cases],
        "verdict": verdict_of(cases),
    }
    return Answer(done, cases, document)


def with_placing(trace: Trace, before: str) -> Trace:
    """Return a trace that says whether containers were placed asynchronously, if only the file in force says it.

    ``before``: the scheduler's file of the recorded cluster. A file without the property tells nothing, because the
    default depends on the release, and yarn-site.xml may have it.
    """
    header = trace.header
    if header.scheduler != "capacity" or header.asynchronous is not None:
        return trace
    try:
        values = parse_configuration(read_bytes(before), source=before).values
    except InputError:
        return trace  # another scheduler's file, or one that `validate` refuses
    text = values.get(ASYNCHRONOUS, "").strip().lower()
    if text not in ("true", "false"):
        return trace
    return replace(trace, header=header.model_copy(update={"asynchronous": text == "true"}))


@contextmanager
def _user_files(trace: Path, folder: Path) -> Iterator[None]:
    """Name the user's trace in an error about a file in a temporary folder that was made from it."""
    try:
        yield
    except InputError as error:
        if error.where is None or not error.where.startswith(str(folder)):
            raise
        changed = error.where.startswith(str(folder / "after"))
        where = f"{trace}, with the nodes and the application of the call" if changed else str(trace)
        raise InputError(error.what, where=where, hint=error.hint) from None
