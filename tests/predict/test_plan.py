"""`yarnfair plan`: a change of configuration on a recorded load, queue by queue, and the gate on it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import yarnfair
from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.experiments.resolve import Variant
from harness.predict.answer import with_placing
from harness.predict.plan import below_due
from harness.predict.plan_sides import submission, with_nodes
from harness.predict.playing import Player
from harness.predict.replay import write_experiment
from harness.traces.recorded import Header, NodeLine, QueueLine, Trace, read_trace
from tests.browser import chromium
from tests.predict.loads import contended, recording

NOW = """<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queue name="steady"/>
  <queue name="bursts"/>
</allocations>
"""
#: Both queues of the load, and nothing that its scheduler leaves out.
CAPACITY = {
    "root.queues": "steady,bursts,default",
    "root.steady.capacity": "50",
    "root.bursts.capacity": "49",
    "root.default.capacity": "1",
    "maximum-am-resource-percent": "1.0",
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("recorded"), contended())


@pytest.fixture
def now(tmp_path: Path) -> Path:
    return written(tmp_path, "now.xml", NOW)


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def capacity_file(folder: Path, name: str, **changes: str | None) -> Path:
    """The Capacity Scheduler's file with some settings changed, ``__`` for a dot and ``_`` for a hyphen."""
    settings = dict(CAPACITY)
    for key, value in changes.items():
        own = key.replace("__", ".").replace("_", "-")
        if value is None:
            settings.pop(own)
        else:
            settings[own] = value
    lines = "".join(
        f"<property><name>yarn.scheduler.capacity.{key}</name><value>{value}</value></property>\n"
        for key, value in settings.items()
    )
    return written(folder, name, f"<configuration>\n{lines}</configuration>\n")


def called(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["plan", *map(str, arguments), "--jobs", "1"])
    out, err = capsys.readouterr()
    assert (stop.value.code or 0) == code, err
    return out, err


def planned(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, Any]:
    out, _ = called(capsys, *arguments, "--json", code=code)
    found: dict[str, Any] = json.loads(out)
    return found


def queues(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["queue"]: one for one in found["queues"]}


def test_who_gets_more_is_sooner_and_the_other_later(
    trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = written(
        tmp_path, "new.xml", NOW.replace('"bursts"/', '"bursts"><weight>4</weight></queue').replace("queue>/", "queue")
    )
    found = planned(capsys, trace, "--before", now, "--after", new, "--phases", 5)
    own = queues(found)
    assert (own["root.bursts"]["word"], own["root.steady"]["word"]) == ("sooner", "later")
    assert own["root.steady"]["completion_s"]["word"] == "same", "its applications wait longer, and end when they did"
    completion = own["root.bursts"]["completion_s"]
    low, high = completion["change_band"]
    assert low <= completion["change"] <= high < 0
    assert completion["difference"] == pytest.approx(completion["after"]["mean"] - completion["before"]["mean"])
    assert found["reproduction_error"] < 0.05
    assert (found["phases"], found["applications"], found["verdict"]) == (5, 26, "fine")
    assert [one["queue"] for one in found["queues"]] == ["root.bursts", "root.steady"], "the most changed first"
    # The side before is what the trace's own queues give, phase by phase: this file says the same as they.
    experiment = write_experiment(read_trace(trace), tmp_path / "own")
    ended = frozenset(job.job for job in read_trace(trace).jobs)
    with Player(str(experiment), ended, None, 1) as player:
        (fair,) = player.play([Variant("fair", "fair", "inside", {}, 0, 5.0)], 5)
    for queue in ("root.bursts", "root.steady"):
        whole = fair.band(queue)
        assert own[queue]["completion_s"]["before"]["mean"] == pytest.approx(whole.mean)
        assert own[queue]["completion_s"]["before"]["band"] == pytest.approx(whole.list())
        waits = [one.start_wait_s[queue] for one in fair.outcomes]
        assert own[queue]["wait_s"]["before"]["band"] == pytest.approx([min(waits), max(waits)])


def test_a_load_that_is_known_by_its_sums_gives_no_sure_answer(
    trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *lines = trace.read_text().splitlines()
    jobs = [{**json.loads(line), "detail": "integrals"} for line in lines]
    sums = written(tmp_path, "sums.jsonl", "\n".join([first, *map(json.dumps, jobs)]) + "\n")
    words = (sums, "--before", now, "--phases", 1, "--nodes", "+1", "--fail-if", "completion(*) > +10%")
    found = planned(capsys, *words, code=3)
    assert any(note.startswith("unsure: of 100 % of the work the tasks are not known") for note in found["notes"])
    assert {case["verdict"] for case in found["fail_if"]} == {"not judged"}
    known = planned(capsys, trace, *words[1:])
    assert not [note for note in known["notes"] if note.startswith("unsure")]
    assert {case["verdict"] for case in known["fail_if"]} == {"fine"}


def test_nodes_that_came_and_went_are_played_and_told(
    trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        {"node": "more:1", "at_s": 20.0, "change": "joined", "memory_mb": 4096, "vcores": 4},
        {"node": "more:1", "at_s": 60.0, "change": "decommissioning"},
        {"node": "more:1", "at_s": 70.0, "change": "decommissioned"},
    ]
    grown = written(tmp_path, "grown.jsonl", trace.read_text() + "".join(json.dumps(one) + "\n" for one in nodes))
    found, _ = called(capsys, grown, "--before", now, "--nodes", "+1", "--phases", 1)
    said = "note: nodes come and go as in the recording, before and after the change: 1 joined, 1 decommissioned"
    assert said in " ".join(found.split())
    assert "nodes come and go" not in called(capsys, trace, "--before", now, "--nodes", "+1", "--phases", 1)[0]


def test_the_same_file_changes_nothing(trace: Path, now: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(capsys, trace, "--before", now, "--after", now, "--phases", 2, "--fail-if", "wait(*) > +0%")
    for one in found["queues"]:
        assert one["word"] == "same"
        for figure in ("wait_s", "completion_s", "below_due_s", "refused", "never_started"):
            assert (one[figure]["word"], one[figure]["difference_band"]) == ("same", [0.0, 0.0])
    assert [case["verdict"] for case in found["fail_if"]] == ["fine", "fine"]


@pytest.mark.parametrize("half", ["1w", "[memory=12288,vcores=12]"], ids=["weight", "absolute"])
def test_the_same_shares_in_another_mode_change_nothing(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], half: str
) -> None:
    two = {"root__queues": "steady,bursts", "root__default__capacity": None, "global_queue_max_application": "10000"}
    files = [
        capacity_file(tmp_path, f"{n}.xml", **two, root__steady__capacity=one, root__bursts__capacity=other)
        for n, (one, other) in enumerate([("50", "50"), (half, half), ("80", "20")])
    ]
    same, moved = (planned(capsys, trace, "--before", files[0], "--after", after, "--phases", 2) for after in files[1:])
    for one in same["queues"]:
        assert one["completion_s"]["difference_band"] == [0.0, 0.0]
    assert queues(moved)["root.bursts"]["word"] == "later", "shares do count here"


def test_applications_of_a_queue_that_is_gone_are_refused_and_a_gate_is_red(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = capacity_file(tmp_path, "before.xml")
    gone = {"root__queues": "steady,other,default", "root__bursts__capacity": None, "root__other__capacity": "49"}
    after = capacity_file(tmp_path, "after.xml", **gone)
    junit = tmp_path / "j.xml"
    rules = [
        "--fail-if",
        "refused(bursts) > 0",
        "--fail-if",
        "wait(other) > 1s",
        "--fail-if",
        "completion(steady) > +50%",
    ]
    found = planned(
        capsys, trace, "--before", before, "--after", after, "--phases", 2, *rules, "--junit", junit, code=3
    )
    bursts = queues(found)["root.bursts"]
    assert (bursts["word"], bursts["in"], bursts["refused"]["after"]["mean"]) == ("refused", "before", 6)
    assert bursts["refused_because"] == {"there is no queue root.bursts, and nothing makes it": 6}
    assert bursts["completion_s"]["after"] is None
    assert found["queues"][0]["queue"] == "root.bursts"
    assert queues(found)["root.other"]["in"] == "after"
    assert [case["verdict"] for case in found["fail_if"]] == ["failed", "not judged", "fine"]
    assert found["fail_if"][1]["why"] == "no application of it has this figure before and after"
    assert found["verdict"] == "regression"
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "2", "0")
    failure, not_judged = suite.iter("failure")
    assert (failure.get("type"), not_judged.get("type")) == ("failed", "not judged")
    assert "6.0 (6.0 to 6.0), beyond it in 2 of 2 phases" in (failure.text or "")
    out, err = called(
        capsys, trace, "--before", before, "--after", after, "--phases", 2, *rules[:2], "--junit", tmp_path / "k.xml",
        code=3,
    )  # fmt: skip
    assert "6 applications refused: there is no queue root.bursts" in out
    assert "refused         0 to 6 applications: more" in out
    assert "1 of 1 case(s) of --fail-if are not fine: failed: refused(bursts) > 0" in err


def test_a_full_queue_refuses_and_one_that_runs_nothing_never_starts(
    trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = capacity_file(tmp_path, "full.xml", root__steady__maximum_applications="3")
    found = planned(capsys, trace, "--before", now, "--after", full, "--phases", 2)
    steady = queues(found)["root.steady"]
    assert 1 <= steady["refused"]["after"]["mean"] < 20
    assert steady["never_started"]["after"]["mean"] == 0
    assert (steady["word"], steady["refused"]["word"]) == ("refused", "more")
    assert (found["before"]["scheduler"], found["after"]["scheduler"]) == ("fair", "capacity")
    shut = written(tmp_path, "shut.xml", NOW.replace('"bursts"/', '"bursts"><maxRunningApps>0</maxRunningApps></queue'))
    found = planned(capsys, trace, "--before", now, "--after", shut, "--phases", 2, "--fail-if", "never_started(*) > 0",
                    code=3)  # fmt: skip
    bursts = queues(found)["root.bursts"]
    assert (bursts["never_started"]["after"]["mean"], bursts["refused"]["after"]["mean"]) == (6, 0)
    assert bursts["completion_s"]["after"] is None
    assert any(note.startswith("after: ") for note in found["notes"]), "why that run could not go on"


def test_nodes_and_an_application_more(
    trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = "queue=bursts,tasks=60,task_s=10,at_s=200"
    found = planned(capsys, trace, "--before", now, "--nodes", "-1", "--submit", one, "--phases", 2)
    assert [side["nodes"][0]["count"] for side in (found["before"], found["after"])] == [3, 2]
    steady = queues(found)["root.steady"]
    assert steady["applications"] == 20, "the submitted one is no application of the recording"
    # On two nodes the masters of steady take all 16 GB: nothing moves any more, and that is told.
    assert (steady["word"], steady["not_ended"]["after"]["mean"]) == ("never", 16)
    assert steady["never_started"]["after"]["mean"] + 16 < 20
    assert any("16 masters hold 16,384 of 16,384 MiB" in note for note in found["notes"])
    submitted = found["submitted"]
    assert submitted["queue"] == "root.bursts"
    assert submitted["completion_s"]["mean"] > 10 + submitted["wait_s"]["mean"]
    wide = planned(capsys, trace, "--before", now, "--nodes", "+20", "--submit", one, "--phases", 2)
    assert wide["submitted"]["completion_s"]["mean"] < 30
    assert queues(wide)["root.bursts"]["completion_s"]["word"] == "sooner"
    out, _ = called(capsys, trace, "--before", now, "--submit", "like=burst-2,queue=nowhere", "--phases", 1)
    assert "one application more" in out
    assert "the submitted application in nowhere: first container after" in out, "a Fair Scheduler makes the queue"
    capacity = capacity_file(tmp_path, "c.xml")
    out, _ = called(capsys, trace, "--before", capacity, "--submit", "like=burst-2,queue=nowhere", "--phases", 1)
    assert "the submitted application is refused: there is no queue root.nowhere" in out


def test_an_application_that_comes_long_after_the_others_changes_nothing_for_them(
    trace: Path, now: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both sides count seconds below a due by samples of the same length."""
    late = "queue=steady,tasks=3,task_s=1,at_s=1e6"
    found = planned(capsys, trace, "--before", now, "--submit", late, "--phases", 1)
    assert [queue["word"] for queue in found["queues"]] == ["same", "same"]
    differences = {name: queue["below_due_s"]["difference"] for name, queue in queues(found).items()}
    # The application itself waits a moment in its queue: one sample of 50 s.
    assert differences == {"root.bursts": 0, "root.steady": 50}
    assert found["submitted"]["completion_s"] is not None


def test_what_no_node_holds_is_told_by_the_users_own_trace(
    trace: Path, now: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = "queue=steady,tasks=3,task_s=1,memory_mb=999999"
    _, err = called(capsys, trace, "--before", now, "--submit", wide, code=1)
    assert err.startswith(f"yarnfair: {trace}, with the nodes and the application of the call: ")
    assert "which no node can hold" in err


def test_a_queue_that_takes_what_it_refused_has_a_word_and_the_replay_is_off_by_that(
    trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = '<queuePlacementPolicy><rule name="specified" create="false"/><rule name="reject"/></queuePlacementPolicy>'
    gone = written(tmp_path, "gone.xml", NOW.replace('  <queue name="bursts"/>\n', f"  {rules}\n"))
    found = planned(capsys, trace, "--before", gone, "--after", now, "--phases", 1)
    bursts = queues(found)["root.bursts"]
    assert (bursts["word"], bursts["refused"]["before"]["mean"], bursts["refused"]["word"]) == ("taken", 6, "less")
    assert found["reproduction_error"] >= 0.5, "all of bursts ended in the recording, and none of it in the replay"
    out, _ = called(capsys, trace, "--before", gone, "--after", now, "--phases", 1)
    assert "bursts: taken (6 applications, only after)" in out


def test_both_files_are_validated_first(
    trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = written(tmp_path, "wrong.xml", NOW.replace('"steady"/', '"steady"><weight>heavy</weight></queue'))
    out, err = called(capsys, trace, "--before", now, "--after", wrong, code=1)
    assert out == ""
    assert "wrong.xml:3: queue root.steady" in err
    # An error that is in force already is told, and the change is planned.
    odd = {"root__steady__maximum_apps": "4"}
    here = capacity_file(tmp_path, "here.xml", **odd)
    there = capacity_file(tmp_path, "there.xml", **odd, root__steady__capacity="40", root__bursts__capacity="59")
    found = planned(capsys, trace, "--before", here, "--after", there, "--phases", 1)
    assert (found["validate"]["before"]["errors"], found["validate"]["new"]) == (1, [])
    # One that the change brings is not.
    clean = capacity_file(tmp_path, "clean.xml")
    _, err = called(capsys, trace, "--before", clean, "--after", there, code=1)
    assert "maximum-apps" in err
    assert "1 finding(s) of `yarnfair validate`" in err


def test_what_is_not_covered_of_both_files_is_named_at_once(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = {"root__steady__ordering_policy": "fifo-for-pending-apps"}
    here = capacity_file(tmp_path, "here.xml", **odd)
    there = capacity_file(tmp_path, "there.xml", **odd, root__bursts__default_application_lifetime="600")
    _, err = called(capsys, trace, "--before", here, "--after", there, code=1)
    assert "here.xml: the simulator does not cover 1" in err
    assert "there.xml: the simulator does not cover 2" in err
    found = planned(capsys, trace, "--before", here, "--after", there, "--drop", "--phases", 1)
    assert len(found["after"]["dropped"]) == 2
    assert len([note for note in found["notes"] if "dropped" in note]) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing changes"),
        (["--nodes", "-3"], "leave at least one node"),
        (["--nodes", "100000000059"], "at most 10,000"),
        (["--nodes", "1", "--fail-if", "wait(prod) > 5"], "has no unit"),
        (["--nodes", "1", "--fail-if", "refused(prod) > 5%"], "counts applications"),
        (["--nodes", "1", "--fail-if", "wait() > 5s"], "names no queue"),
        (["--nodes", "1", "--fail-if", "speed(prod) > 5s"], "there are wait, completion"),
        (["--nodes", "1", "--fail-if", "wait(prod)"], "is no rule"),
        (["--nodes", "1", "--fail-if", "wait(nobody) > 5s", "--phases", "1"], "no leaf queue 'nobody'"),
        (["--nodes", "1", "--junit", "-"], "no case without --fail-if"),
        (["--submit", "queue=steady,tasks=2"], "task_s is missing"),
        (["--submit", "queue=steady,tasks=2.5,task_s=1"], "tasks is '2.5'"),
        (["--submit", "queue=steady,tasks=1_0,task_s=1"], "tasks is '1_0'"),
        (["--submit", "like=nobody"], "no application 'nobody'"),
        (["--submit", "like=burst-1,tasks=2"], "tasks of its own"),
        (["--submit", "queue=steady.below,tasks=2,task_s=1"], "lie below one another"),
        (["--submit", "colour=red"], "no setting of an application"),
        (["--submit", "queue=root,tasks=2,task_s=1"], "'root' is no leaf queue"),
        (["--submit", "queue=a..b,tasks=2,task_s=1"], "'a..b' is no leaf queue"),
        (["--submit", "queue=a b,tasks=2,task_s=1"], "'a b' is no leaf queue"),
        (["--submit", "queue=steady,tasks=2,task_s=1,at_s=1e9"], "at_s is '1e9'"),
        (["--submit", f"queue=steady,tasks=2,task_s=1,user={'u' * 2000}"], "user"),
    ],
)
def test_a_wrong_call_is_told_with_how_to_mend_it(
    trace: Path, now: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    _, err = called(capsys, trace, "--before", now, *arguments, code=2)
    assert said in err
    assert len(err.splitlines()) == 1


def test_nodes_go_from_the_most_frequent_size_first() -> None:
    nodes = [NodeLine(count=2, memory_mb=1024, vcores=1), NodeLine(count=3, memory_mb=4096, vcores=4)]
    assert [(one.count, one.memory_mb) for one in with_nodes(nodes, 2)] == [(2, 1024), (5, 4096)]
    assert [(one.count, one.memory_mb) for one in with_nodes(nodes, -4)] == [(1, 1024)]
    with pytest.raises(CallError, match="5 nodes fewer of 5"):
        with_nodes(nodes, -5)


def test_a_submission_has_the_shape_of_the_application_that_it_is_like(trace: Path) -> None:
    read = read_trace(trace)
    made = submission("like=burst-3,queue=steady,at_s=7,user=eve", read)
    model = next(job for job in read.jobs if job.job == "burst-3")
    counted = [job.model_copy(update={"counted_mb_s": 5000.0}) for job in read.jobs]
    assert submission("like=burst-3", replace(read, jobs=tuple(counted))).counted_mb_s is None, "it has not run"
    assert (made.stages, made.am) == (model.stages, model.am)
    assert (made.queue, made.submit_s, made.user, made.finished_s) == ("root.steady", 7.0, "eve", None)
    assert submission("queue=q,tasks=1,task_s=1", read).submit_s == max(job.submit_s for job in read.jobs)


def test_time_below_its_due_counts_who_waits_and_has_less() -> None:
    # Ten seconds a sample, half of 1,000 MB due; vcores: half of 10.
    samples = SimpleNamespace(
        queues=("root", "root.a"),
        time_s=[0.0, 10.0, 20.0, 30.0],
        capacity_mb=[1000] * 4,
        capacity_vcores=[10] * 4,
        share_fraction=[1.0, 0.5],
        allocated_mb=np.array([[0, 100], [0, 480], [0, 100], [0, 100]]),
        demand_mb=np.array([[0, 900], [0, 900], [0, 100], [0, 900]]),
        allocated_vcores=np.array([[0, 1], [0, 1], [0, 1], [0, 9]]),
        demand_vcores=np.array([[0, 9], [0, 9], [0, 1], [0, 9]]),
    )
    result: Any = SimpleNamespace(samples=samples, finished=True, makespan_s=34.0, end_s=34.0)
    # Short from 0 to 10; at 10 it has 96 % of its due, at 20 it wants no more; at 30 a sample stands for 10 s again.
    assert below_due(result, ["root.a"], vcores=False) == {"root.a": 20.0}
    # By dominant shares it has its due of vcores at 30.
    assert below_due(result, ["root.a"], vcores=True) == {"root.a": 10.0}


@pytest.fixture
def page(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, str]:
    """The page of a change that takes a queue away, and what the command printed."""
    before = capacity_file(tmp_path, "before.xml")
    gone = {"root__queues": "steady,other,default", "root__bursts__capacity": None, "root__other__capacity": "49"}
    after = capacity_file(tmp_path, "after.xml", **gone)
    made = tmp_path / "plan.html"
    out, _ = called(
        capsys, trace, "--before", before, "--after", after, "--phases", 2, "--html", made,
        "--submit", "queue=steady,tasks=2,task_s=5", "--fail-if", "refused(bursts) > 0", code=3,
    )  # fmt: skip
    return made, out


def test_the_page_has_every_figure_of_the_text(page: tuple[Path, str]) -> None:
    made, out = page
    text = " ".join(re.sub(r"<[^>]*>", " ", made.read_text()).split())
    for said in (
        "Refuses applications: bursts.",
        "The gate is closed: 1 of 1 case is not fine.",
        "replay before the change",
    ):
        assert said in text
    assert "6 applications refused: there is no queue root.bursts, and nothing makes it" in text
    # Every figure of the text is on the page.
    (completion,) = re.findall(r"completion +(\d[\d,.]* s \(.*?\)) to (\d[\d,.]* s \(.*?\))", out)
    for figure in completion:
        assert figure in text


@pytest.mark.browser
def test_the_page_in_a_browser(page: tuple[Path, str], tmp_path: Path) -> None:
    with chromium(tmp_path / "profile") as browser:
        for width, dark in ((1280, False), (1280, True), (400, False), (400, True)):
            browser.open(f"file://{page[0]}", width, dark=dark)
            browser.until("document.readyState === 'complete' && !!document.querySelector('main')")
            assert (browser.faint(), browser.too_wide(), browser.console) == ([], [], [])
            assert browser.run("document.documentElement.scrollWidth") <= width
        assert not [one for one in browser.requests if not one.startswith(("file:", "data:", "about:"))]


def test_a_gate_can_be_on_the_submitted_application(
    trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ["--submit", "queue=bursts,tasks=60,task_s=10,at_s=200", "--phases", 2]
    met = ["--fail-if", "completion(--submit) > 100000s", "--fail-if", "refused(--submit) > 0"]
    found = planned(capsys, trace, "--before", now, *one, *met)
    assert [(case["queue"], case["verdict"]) for case in found["fail_if"]] == [("--submit", "fine")] * 2
    assert found["fail_if"][0]["value"] == pytest.approx(found["submitted"]["completion_s"]["mean"])
    closed = planned(capsys, trace, "--before", now, *one, "--fail-if", "completion(--submit) > 10s", code=3)
    assert closed["fail_if"][0]["verdict"] == "failed"
    shut = written(tmp_path, "shut.xml", NOW.replace('"bursts"/', '"bursts"><maxRunningApps>0</maxRunningApps></queue'))
    rules = ["--fail-if", "never_started(--submit) > 0", "--fail-if", "wait(--submit) > 60s"]
    never = planned(capsys, trace, "--before", now, "--after", shut, *one, *rules, code=3)
    assert [case["verdict"] for case in never["fail_if"]] == ["failed", "not judged"]
    for rule, told in (
        ("wait(--submit) > +10%", "no such application before"),
        ("below_due(--submit) > 5s", "not below its due"),
    ):
        _, err = called(capsys, trace, "--before", now, *one, "--fail-if", rule, code=2)
        assert told in err
    _, err = called(capsys, trace, "--before", now, "--nodes", "+1", "--fail-if", "wait(--submit) > 9s", code=2)
    assert "no application is submitted" in err


def test_from_python_it_is_the_same(trace: Path, now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shut = written(tmp_path, "shut.xml", NOW.replace('"bursts"/', '"bursts"><maxRunningApps>0</maxRunningApps></queue'))
    rules = ["never_started(bursts) > 0", "completion(steady) > +50%"]
    found = yarnfair.plan(trace, now, shut, fail_if=rules, phases=2, processes=1)
    call = [word for rule in rules for word in ("--fail-if", rule)]
    assert planned(capsys, trace, "--before", now, "--after", shut, "--phases", 2, *call, code=3) == found.document
    assert found.verdict == "regression"
    own = found.queues.set_index("queue")
    assert (own.loc["root.bursts", "never_started_after"], own.loc["root.bursts", "word"]) == (6, "never")
    assert own.loc["root.steady", "completion_s_low"] <= own.loc["root.steady", "completion_s_change"]
    assert list(found.rules["verdict"]) == ["failed", "fine"]
    assert "bursts: never (6 applications)" in repr(found)
    assert "root.bursts" in found._repr_html_()
    wrong = written(tmp_path, "wrong.xml", NOW.replace('"steady"/', '"steady"><weight>heavy</weight></queue'))
    with pytest.raises(InputError, match=r"wrong.xml:3: queue root.steady"):
        yarnfair.plan(trace, now, wrong)
    with pytest.raises(CallError, match="nothing changes"):
        yarnfair.plan(trace, now)


@pytest.mark.parametrize(
    ("known", "in_file", "expected"),
    [(None, "false", False), (None, "true", True), (None, None, None), (True, "false", True), (None, "maybe", None)],
)
def test_the_file_in_force_says_what_a_recording_does_not_know_of_placing(
    known: bool | None, in_file: str | None, expected: bool | None, now: Path, tmp_path: Path
) -> None:
    """A ResourceManager does not show capacity-scheduler.xml; who plans a change of it gives that file."""
    header = Header(
        nodes=[NodeLine(memory_mb=1024, vcores=1)],
        queues={"root.a": QueueLine()},
        scheduler="capacity",
        asynchronous=known,
    )
    found = Trace(tmp_path / "trace.jsonl", header, ())
    changes = {} if in_file is None else {"schedule_asynchronously__enable": in_file}
    file = capacity_file(tmp_path, "here.xml", **changes)
    assert with_placing(found, str(file)).header.asynchronous is expected
    assert with_placing(found, str(now)).header.asynchronous is known
