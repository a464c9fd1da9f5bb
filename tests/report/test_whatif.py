"""What if: runs computed anew for what a page asks, its state in the address, and one file that works offline."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import requests

from harness.base.errors import CallError, InputError
from harness.cli.whatif import _exported, _load, _query
from harness.experiments.resolve import LoadedExperiment, load_experiment
from harness.predict import whatif
from harness.predict.replay import write_experiment
from harness.predict.verdict import Outcome
from harness.predict.whatif import Asked, WhatIf, _Run, offered, with_weights
from harness.report.whatif import page
from harness.sim.compiled import compile_engine
from harness.traces.recorded import Header, NodeLine, QueueLine, read_trace, trace_text
from tests.browser import Browser, chromium
from tests.patience import at_most
from tests.predict.loads import contended, job, recording


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("whatif"), contended())


@pytest.fixture(scope="module")
def experiment(trace: Path) -> LoadedExperiment:
    return load_experiment(str(write_experiment(read_trace(trace), trace.parent / "played")))


@pytest.fixture
def what_if(experiment: LoadedExperiment) -> Iterator[WhatIf]:
    found = WhatIf(experiment, phases=4)
    yield found
    found.close()


def asked(experiment: LoadedExperiment, **query: str) -> Asked:
    return Asked.read(query, experiment)


def test_a_page_on_a_trace_is_called_what_was_given(experiment: LoadedExperiment) -> None:
    """It was called after the experiment that replays the trace: "What if: replay-trace"."""
    for title, wanted in (("weeks.jsonl", "weeks.jsonl"), (None, experiment.name)):
        with contextlib.closing(WhatIf(experiment, phases=1, title=title)) as found:
            assert found.about()["title"] == wanted


def test_weights_are_what_queues_get_and_the_past_is_made_up_for(what_if: WhatIf, experiment: LoadedExperiment) -> None:
    plain = what_if.whole(asked(experiment, policy="fair"))
    heavy = what_if.whole(asked(experiment, policy="fair", **{"w.root.bursts": "4"}))
    ltrf = what_if.whole(asked(experiment, policy="ltrf@outside"))
    bursts = "root.bursts"
    assert heavy["mean_s"][bursts] < 0.9 * plain["mean_s"][bursts]
    assert heavy["curves"][bursts]["entitled"] == 0.8
    assert ltrf["mean_s"][bursts] < plain["mean_s"][bursts]
    assert ltrf["loss"] < 0.5 * plain["loss"]
    for found in (plain, heavy, ltrf):
        assert found["phases"] == 4
        low, high = found["band"]["mean_s"][bursts]
        assert low <= found["mean_s"][bursts] <= high
        assert low < high, "phases differ"
        for figure in ("all_s", "loss", "makespan_s", "utilisation"):
            low, high = found["band"][figure]
            assert low <= found[figure] <= high
            assert len(found["by_phase"][figure]) == 4
        assert len(found["time_s"]) == len(found["curves"][bursts]["share"]) <= 400


def test_it_answers_at_once_and_forgets_what_nobody_waits_for(what_if: WhatIf, experiment: LoadedExperiment) -> None:
    what_if.whole(asked(experiment, policy="fair"))  # compiled and read
    with at_most(10):  # somebody who drags waits for the last one only
        for horizon in range(20, 400, 20):
            what_if.run(asked(experiment, policy="ltrf@outside", horizon_s=str(horizon)), 0.0)
        last = asked(experiment, policy="ltrf@outside", horizon_s="380")
        while "part" in what_if.run(last):
            pass
    assert what_if.whole(last)["phases"] == 4


def test_a_run_that_fails_says_so_and_the_next_one_is_played(
    what_if: WhatIf, experiment: LoadedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it fails by: a page would wait for it for ever, and for all that are asked for later."""

    def fails(*_: Any) -> None:
        raise KeyError("a queue")

    monkeypatch.setattr("harness.predict.whatif.simulate_variant", fails)
    with pytest.raises(InputError, match="fair: failed: KeyError"):
        what_if.run(asked(experiment, policy="fair"), 20.0)
    monkeypatch.undo()
    assert what_if.whole(asked(experiment, policy="static"))["phases"] == 4


def test_who_waits_for_the_compiler_is_told(
    what_if: WhatIf, experiment: LoadedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.predict.whatif.is_compiled", lambda _: False)
    monkeypatch.setattr(what_if, "_want", lambda _: _Run())
    assert "compiling the simulator" in what_if.run(asked(experiment, policy="fair"), 0.0)["says"]


def test_words_are_those_of_explain_at_that_moment(what_if: WhatIf, experiment: LoadedExperiment) -> None:
    one = asked(experiment, policy="ltrf@outside")
    what_if.whole(one)
    early, late = what_if.words(one, "root.bursts", 100.0), what_if.words(one, "root.bursts", 350.0)
    assert "wants nothing" in early[0]
    assert "waits" in late[0]
    assert any("too little" in line for line in late)
    heavy = what_if.words(asked(experiment, policy="fair", **{"w.root.bursts": "3"}), "root.bursts", 350.0)
    assert heavy[0].startswith("Entitled to 75.0 % of the cluster"), "as the weights were dragged"
    with pytest.raises(CallError, match="no queue"):
        what_if.words(one, "root.nowhere", 1.0)


@pytest.mark.parametrize(
    "query",
    [
        {"policy": "nonsense"},
        {"policy": "ltrf@outside", "horizon_s": "soon"},
        {"policy": "ltrf@outside", "horizon_s": "-1"},
        {"policy": "ltrf@outside", "max_ratio": "nan"},
        {"policy": "fair", "w.root.bursts": "0"},
        {"policy": "ltrf@outside", "period_s": "1e9"},
        {"policy": "ltrf@outside", "horizon": "20"},
        {"policy": "fair", "w.root.nowhere": "2"},
    ],
)
def test_what_cannot_be_asked(query: dict[str, str], experiment: LoadedExperiment) -> None:
    with pytest.raises(CallError):
        Asked.read(query, experiment)


def test_settings_that_a_policy_does_not_know_are_left_out(experiment: LoadedExperiment) -> None:
    assert asked(experiment, policy="fair", horizon_s="20").settings == ()
    assert asked(experiment, policy="hltrf@outside", t_wait="20").settings == (("t_wait", 20.0),)


def capacity_trace(folder: Path) -> Path:
    """A trace of a Capacity Scheduler with two levels of percentages."""
    header = Header(
        nodes=[NodeLine(count=2, memory_mb=8192, vcores=8)],
        queues={"root.prod": QueueLine(weight=50), "root.lab": QueueLine(weight=50)}
        | {"root.lab.x": QueueLine(weight=75), "root.lab.y": QueueLine(weight=25)},
        max_am_share=-1.0,
        scheduler="capacity",
    )
    path = folder / "capacity.jsonl"
    path.write_text(trace_text(header, [job(queue, queue, 0.0, 40, 5.0) for queue in ("root.prod", "root.lab.x")]))
    return path


def test_a_capacity_trace_is_played_by_the_capacity_scheduler(tmp_path: Path) -> None:
    notes: list[str] = []
    loaded = _load(str(capacity_trace(tmp_path)), None, tmp_path / "played", notes)
    assert any("the shape of all is known" in note for note in notes)
    with contextlib.closing(WhatIf(loaded)) as told:
        said = told.about()["about"]
        assert all(note[1:].removesuffix(".") in said for note in notes), "the page shows them"
    assert loaded.spec.scheduler == "capacity"
    offers = offered(loaded)
    assert offers[0] == "capacity"
    assert all(name.endswith("@outside") for name in offers[1:])
    assert asked(loaded).policy == "capacity"
    assert loaded.weights["root.lab.x"] == pytest.approx(37.5)
    dragged = with_weights(loaded, {"root.lab": 150.0})
    assert [dragged.weights[path] for path in ("root.prod", "root.lab.x", "root.lab.y")] == [25.0, 56.25, 18.75]


def test_waiting_for_all_phases_takes_no_computing_and_says_how_far_it_is(
    experiment: LoadedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    means = []

    def counted(phases: list[Outcome]) -> dict[str, Any]:
        means.append(len(phases))
        return {"phases": len(phases)}

    monkeypatch.setattr(whatif, "_means", counted)
    told = []
    with contextlib.closing(WhatIf(experiment, phases=20)) as found:
        sides = [asked(experiment, policy=name) for name in ("fair", "ltrf@outside")]
        document = found.export(sides, 3, on_phases=lambda policy, known: told.append((policy, known)))
    assert [run["phases"] for run in document["runs"]] == [20, 20]
    assert means == [20, 20], "once a side, when its phases are known"
    assert all(policy in ("fair", "ltrf@outside") and 0 <= known <= 20 for policy, known in told)


def test_the_error_of_a_run_ends_the_wait_for_all_its_phases(
    experiment: LoadedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(whatif, "simulate_variant", fail)
    with contextlib.closing(WhatIf(experiment, phases=2)) as found, pytest.raises(InputError, match="planted"):
        found.whole(asked(experiment, policy="fair"))


def test_both_sides_may_have_weights_of_their_own(what_if: WhatIf) -> None:
    state = _query("#a.policy=fair&b.policy=fair&b.w.root.bursts=4&w.root.steady=2")
    found = _exported(what_if, state)
    entitled = [run["curves"]["root.bursts"]["entitled"] for run in found["runs"]]
    assert entitled == pytest.approx([1 / 3, 4 / 6])
    assert found["state"] == {
        "a": {"policy": "fair"},
        "b": {"policy": "fair", "w.root.bursts": 4.0},
        "w": {"root.steady": 2.0},
    }


@pytest.mark.parametrize(
    "state", ["horizon_s=80", "b.horizon=80", "c.policy=fair", "a.w.root.nowhere=2", "w.nowhere=2"]
)
def test_unknown_keys_of_a_state_are_refused(what_if: WhatIf, state: str) -> None:
    with pytest.raises(CallError):
        _exported(what_if, _query(state))


def test_an_exported_file_ends_no_script_early() -> None:
    made = page({"about": "</script><script>alert(1)</script>"})
    assert made.count("<script") == 2
    assert "\\u003c/script" in made
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', made)
    assert policy
    assert "connect-src &#39;none&#39;" in policy[1]


@pytest.fixture(scope="module")
def served(trace: Path) -> Iterator[str]:
    compile_engine()  # or the page waits for that first
    command = [sys.executable, "-m", "harness", "whatif", str(trace), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "it ended"
            text += line
        try:
            yield json.loads(text)["url"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=300)


def settled(browser: Browser) -> None:
    browser.until(
        "!!document.body.dataset.serial && "
        "['a', 'b'].every(side => document.body.dataset['ready' + side] === document.body.dataset.serial)",
        60,
    )


@pytest.mark.browser
def test_the_page_in_a_browser(served: str, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile") as browser:
        browser.open(served, 1280)
        settled(browser)
        first = browser.run("document.querySelector('#charts-b svg[role=img] path.c').getAttribute('d')")
        assert browser.run("document.querySelectorAll('.sides .charts svg[role=img]').length") == 4
        assert browser.run("document.querySelector('.charts .swatch').getBoundingClientRect().width") == 30
        # Sides are called by their policies, and the charts of both begin at one height.
        names = browser.run("[...document.querySelectorAll('.side > h2')].map(e => e.textContent)")
        assert names == [browser.run(f"document.getElementById('{side}-policy').value") for side in "ab"]
        tops = "[...document.querySelectorAll('.charts > h3')].map(e => e.getBoundingClientRect().top)"
        assert len(set(browser.run(tops))) == 2, "two charts a side, in rows"
        # Somebody drags a weight.
        browser.run(
            "(() => { const knob = document.getElementById('w-root.bursts'); knob.value = knob.max;"
            " knob.dispatchEvent(new Event('input')); })()"
        )
        browser.until("document.body.dataset.serial === '2'")
        settled(browser)
        assert browser.run("document.querySelector('#charts-b svg[role=img] path.c').getAttribute('d')") != first
        # ... and takes another horizon, another moment, another queue.
        browser.run(
            "(() => { const knob = document.getElementById('b-horizon_s'); knob.value = 5;"
            " knob.dispatchEvent(new Event('input')); })()"
        )
        browser.until("document.body.dataset.serial === '3'")
        settled(browser)
        browser.run(
            "(() => { const at = document.getElementById('at'); at.value = 150; at.dispatchEvent(new Event('input'));"
            " const queue = document.getElementById('queue'); queue.value = 'root.bursts';"
            " queue.dispatchEvent(new Event('change')); })()"
        )
        words = browser.until("document.querySelector('#words-b p') && document.querySelector('#words-b').textContent")
        assert "Entitled to" in words
        state = parse_qs(browser.run("location.hash.slice(1)"))
        assert state["w.root.bursts"] == ["100"]
        assert state["b.horizon_s"] == ["80"]
        assert state["queue"] == ["root.bursts"]
        browser.until("Number(document.body.dataset.phasesb) === 20", 60)
        table = browser.run("document.querySelector('#table').textContent")
        assert "20 phases" in table
        cells = browser.run("[...document.querySelectorAll('#table tbody td')].map(cell => cell.textContent)")
        assert [cell for cell in cells if " to " not in cell] == [], "each prediction has its band"
        changes = [cell for cell in cells if "%" in cell]
        digits = re.compile(r"[+\u2212]?[\d,]+\.\d % \([+\u2212]?[\d,]+\.\d to [+\u2212]?[\d,]+\.\d\)")
        # The band of a change of +0.5 % was "0 to +1".
        assert [cell for cell in changes if not digits.fullmatch(cell)] == []
        picture = browser.run("document.querySelector('#charts-b svg[role=img] path.c').getAttribute('d')")
        # A colleague opens the address.
        address = browser.run("location.href")
        browser.open("about:blank")
        for width, dark in ((400, True), (1280, True), (400, False)):
            browser.open("about:blank", width, dark=dark)
            browser.open(address, width, dark=dark)
            browser.until("document.body.dataset.serial === '1'")
            settled(browser)
            browser.until("!!document.querySelector('#words-b p')")
            assert browser.too_wide() == []
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.faint() == []
        assert browser.run("document.querySelector('#charts-b svg[role=img] path.c').getAttribute('d')") == picture
        browser.picture(tmp_path / "whatif.png")
        assert browser.console == []
        asked = {url.partition("?")[0].partition("#")[0] for url in browser.requests}
        known = {served, *(f"{served}{name}.json" for name in ("about", "run", "explain"))}
        assert {url for url in asked if not url.startswith(("data:", "about:"))} <= known


@pytest.mark.browser
def test_the_exported_file_works_without_a_server(served: str, tmp_path: Path) -> None:
    query = {"a.policy": "fair", "b.policy": "ltrf@outside", "b.horizon_s": "80", "w.root.bursts": "2"}
    found = requests.get(f"{served}export.json", params=query, headers={"X-Yarnfair": "1"}, timeout=300).json()
    file = tmp_path / found["name"]
    file.write_text(found["html"])
    with chromium(tmp_path / "profile") as browser:
        for width, dark in ((400, True), (1280, False)):
            browser.open(f"file://{file}", width, dark=dark)
            browser.until("document.body.dataset.readyb === '0' && !!document.querySelector('#words-b p')")
            assert browser.too_wide() == []
            assert browser.faint() == []
        before = browser.run("document.querySelector('#words-b').textContent")
        browser.run(
            "(() => { const at = document.getElementById('at'); at.value = 5;"
            " at.dispatchEvent(new Event('input')); })()"
        )
        browser.until(f"document.querySelector('#words-b').textContent !== {json.dumps(before)}")
        assert browser.run("document.getElementById('w-root.bursts').disabled")
        assert browser.console == []
        assert {url for url in browser.requests if not url.startswith(("file:", "data:", "about:"))} == set()
        browser.picture(tmp_path / "export.png")


@pytest.mark.browser
def test_of_many_queues_those_that_hold_the_most_are_drawn_and_the_one_chosen(tmp_path: Path) -> None:
    # The later its name, the more a queue holds.
    jobs = [job(f"job-{n:02}", f"root.q{n:02}", 0.0, n + 1, 30.0) for n in range(20)]
    many = load_experiment(str(write_experiment(read_trace(recording(tmp_path, jobs)), tmp_path / "played")))
    what_if = WhatIf(many, phases=1)
    try:
        sides = [asked(many, policy=name) for name in ("fair", "ltrf@outside")]
        file = tmp_path / "many.html"
        state = {"a": {"policy": "fair"}, "b": {"policy": "ltrf@outside"}, "w": {}}
        file.write_text(page({**what_if.export(sides), "state": state}))
    finally:
        what_if.close()
    legend = "[...document.querySelectorAll('#charts-b .legend > *')].map(one => one.textContent.trim())"
    with chromium(tmp_path / "profile") as browser:
        browser.open(f"file://{file}", 400)
        browser.until("document.body.dataset.readyb === '0'")
        shown = browser.run(legend)
        assert len(shown) == 16
        assert {"q19", "q18", "q17"} <= set(shown)
        assert "16 of 22 queues" in browser.run("document.getElementById('more').textContent")
        assert "q01" not in shown
        browser.run(
            "(() => { const queue = document.getElementById('queue'); queue.value = 'root.q01';"
            " queue.dispatchEvent(new Event('change')); })()"
        )
        browser.until(f"{legend}.includes('q01')")
        assert len(browser.run(legend)) == 16
        assert browser.too_wide() == []
        assert browser.console == []
