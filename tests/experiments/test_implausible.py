"""Figures of applications that cannot be: whoever reads an RM names them, and goes on without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.control.view import from_rm
from harness.model.resources import Resource
from harness.traces.following import Follower, Following, Recording
from harness.traces.recorded import put_trace, read_trace, trace_text
from harness.traces.recording import MOST_TASKS, NoSuchJob, NothingRan, Seen, job_of, record_rm
from harness.yarn.answers import AppList, AppStatus, NodeStatus
from harness.yarn.plausible import clock_was_set, implausible
from tests.control.driven import rm_with_load
from tests.control.rm_model import CAPACITY

#: What the RM's clock shows, seconds since 1970.
NOW_S = 1_700_000_000.0
START = "application_1699990000000"


def app(number: int = 1, *, final: bool = True, **more: Any) -> AppStatus:
    """An application of the last hour that held 2 vcores and 2 GiB for 10 minutes."""
    start_ms = round((NOW_S - 3600) * 1000) + number * 1000
    known = AppStatus(
        id=f"{START}_{number:04d}",
        user="u",
        name="n",
        queue="root.a",
        state="FINISHED" if final else "RUNNING",
        final_status="",
        type="",
        tags=frozenset(),
        progress_percent=0.0,
        started_ms=start_ms,
        launched_ms=start_ms + 1000,
        finished_ms=start_ms + 601_000 if final else 0,
        allocated=Resource(0, 0) if final else Resource(2048, 2),
        reserved=Resource(0, 0),
        running_containers=0 if final else 2,
        memory_seconds=600 * 2048,
        vcore_seconds=600 * 2,
        preempted_memory_seconds=0,
        diagnostics="",
        elapsed_ms=601_000,
    )
    return replace(known, **more)


IMPLAUSIBLE: dict[str, tuple[AppStatus, str]] = {
    "memory": (app(memory_seconds=2**62), "more than the cluster could give"),
    "vcores": (app(vcore_seconds=4_294_967_295), "more than the cluster could give"),
    "set back": (app(finished_ms=app().started_ms - 7_200_000, vcore_seconds=3_000_000), "before it began"),
    "set back, running": (app(final=False, elapsed_ms=None), "negative or not shown"),
    "set ahead": (app(finished_ms=round((NOW_S + 86_400) * 1000)), "in the future"),
    "launched before": (app(launched_ms=app().started_ms - 60_000), "before it was started"),
}


def showing(*apps: AppStatus, skipped: dict[str, str] | None = None) -> Any:
    """A client of an RM that shows these applications, on one node of the whole cluster's size."""
    model, shown = rm_with_load(), AppList(apps, skipped)
    rest = model.rest
    info = rest.info
    rest.info = lambda: replace(info(), clock_s=NOW_S)
    rest.properties = dict
    rest.nodes = lambda *_, **__: [NodeStatus("n:1", "n", "", "RUNNING", "", "3.4.2", 1, Resource(0, 0), CAPACITY)]
    return SimpleNamespace(rest=rest, apps=lambda: shown, weights=model.weights, weights_or_why=model.weights_or_why)


@pytest.mark.parametrize("kind", IMPLAUSIBLE)
def test_a_recording_leaves_it_out_and_names_it(tmp_path: Path, kind: str) -> None:
    wrong, why = IMPLAUSIBLE[kind]
    said: list[str] = []
    rm = showing(wrong, app(2))
    recorded = record_rm(rm, progress=said.append)
    assert [job.job for job in recorded.jobs] == [app(2).id]
    (line,) = said
    assert wrong.id in line
    assert why in line
    path = tmp_path / "trace.jsonl"
    path.write_text(trace_text(recorded.header, recorded.jobs, recorded.notes))
    (note,) = read_trace(path).notes
    assert note.note == line
    assert path.stat().st_size < 10_000


def test_one_of_which_the_answer_made_no_sense_is_named_too() -> None:
    said: list[str] = []
    rm = showing(app(2), skipped={app().id: "memorySeconds is huge, not a whole number"})
    record_rm(rm, progress=said.append)
    assert f"{app().id}: memorySeconds is huge" in said[0]


def test_a_recording_counts_the_applications_in_which_nothing_ran() -> None:
    """Refused ones among them, which `plan` counts in its own predictions."""
    idle: dict[str, Any] = {"launched_ms": 0, "memory_seconds": 0, "vcore_seconds": 0}
    rm = showing(
        app(2),
        app(3, **idle, final_status="FAILED"),
        app(4, **idle, final_status="FAILED"),
        app(5, **idle, final_status="KILLED"),
        app(6, **idle, final=False, elapsed_ms=None),
    )
    said: list[str] = []
    recorded = record_rm(rm, progress=said.append)
    words = "applications left out because nothing ran in them: 4 (2 failed or refused, 1 killed, 1 waiting)"
    assert said == [words]
    assert [note.note for note in recorded.notes] == [words]


def test_nothing_but_nonsense_is_an_error_that_names_it() -> None:
    rm = showing(IMPLAUSIBLE["vcores"][0])
    with pytest.raises(NothingRan, match="figures that can be") as error:
        record_rm(rm)
    assert app().id in error.value.what


@pytest.mark.parametrize("kind", IMPLAUSIBLE)
def test_a_recording_that_goes_on_notes_it_once(tmp_path: Path, kind: str) -> None:
    wrong, why = IMPLAUSIBLE[kind]
    path, said = tmp_path / "trace.jsonl", []
    rm = showing(wrong, app(2))
    with Recording(path) as recording:
        going = Following(rm, recording, says=said.append)
        for at in range(3):
            going.look(NOW_S + at)
    trace = read_trace(path)
    assert [job.job for job in trace.jobs] == [app(2).id]
    if wrong.final:
        (line,) = said
        assert (wrong.id in line, why in line) == (True, True)
        assert [note.note for note in trace.notes] == [line]


def test_a_figure_that_is_wrong_for_a_moment_does_not_spoil_what_was_seen() -> None:
    follower = Follower()
    good = app(final=False)
    follower.look([good])
    bad = replace(good, vcore_seconds=4_294_967_295)
    follower.look([bad], {bad.id: "too much"})
    assert follower.running[good.id].vcore_seconds == good.vcore_seconds
    (ended,) = follower.look([app()]).ended
    assert ended.vcore_seconds == app().vcore_seconds


@pytest.mark.parametrize("kind", IMPLAUSIBLE)
def test_explain_and_top_do_not_count_it_and_say_so(kind: str) -> None:
    wrong, why = IMPLAUSIBLE[kind]
    rm = showing()
    view = from_rm(NOW_S, "rm", rm.rest.scheduler(), {}, [wrong, app(2)], clock_s=NOW_S)
    assert view.queues["root.a"].accumulated == app(2).memory_seconds
    ((alarm, text),) = view.alarms
    assert (alarm, why in text) == ("app", True)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, vcore_seconds=MOST_TASKS * 601 * 10),
        lambda one: replace(one, memory_seconds=2**62, vcore_seconds=601),
    ],
)
def test_whatever_passes_the_judgement_a_job_is_never_millions_of_tasks_nor_a_traceback(
    change: Callable[[AppStatus], AppStatus],
) -> None:
    with pytest.raises(NoSuchJob):
        job_of(Seen.of(change(app()), None), None, 0)


def test_what_runs_as_it_should_is_taken_as_it_is(tmp_path: Path) -> None:
    for one in (app(), app(final=False), app(final=False, elapsed_ms=None, memory_seconds=0, vcore_seconds=0)):
        assert implausible(one, CAPACITY, NOW_S) == ""
    # A cluster that was several times larger, and one that shows no node now.
    assert implausible(app(vcore_seconds=600 * 500, memory_seconds=600 * 5 * 102_400), CAPACITY, NOW_S) == ""
    assert implausible(app(memory_seconds=2**62), Resource(0, 0), NOW_S) == ""
    rm = showing(app(), app(2))
    recorded = record_rm(rm)
    trace = put_trace(tmp_path / "t.jsonl", recorded.header, recorded.jobs)
    assert len(trace.jobs) == 2
    assert recorded.notes == []


def test_a_clock_that_was_set_back_between_two_applications_is_seen_by_their_numbers() -> None:
    late = replace(app(2), started_ms=app().started_ms - 86_400_000)
    assert f"{late.id} was started 86,400 s before" in clock_was_set([app(), late])
    # A client may keep a number for a while.
    assert clock_was_set([app(), replace(app(2), started_ms=app().started_ms - 600_000)]) == ""
