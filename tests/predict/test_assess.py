"""`yarnfair assess`, from a trace to a verdict, a configuration and a page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.control.config import read_config
from harness.control.settings import MAX_RATIO
from harness.experiments.resolve import Variant, load_experiment
from harness.predict import playing
from harness.predict.assess import assess
from harness.traces.recorded import read_trace
from tests.predict.loads import contended, job, quiet, recording


def assessed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stop:
        main(["assess", *arguments, "--jobs", "1", "--json"])
    assert not stop.value.code, "every verdict exits 0"
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_cluster_that_contends_gets_a_yes_and_a_shadow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = recording(tmp_path, contended())
    found = assessed(capsys, str(trace), "-o", str(tmp_path / "out"))
    assert found["verdict"] == "yes"
    assert found["reproduction_error"] < 0.05
    assert len(found["lines"]) <= 6
    assert {"fair", "ltrf@outside"} <= set(found["policies"])
    now, best = found["policies"]["fair"], found["policies"][found["recommended"]["name"]]
    assert best["sharing_loss_integral"] < 0.5 * now["sharing_loss_integral"]
    low, high = best["queues"]["root.bursts"]["change_band"]
    assert low <= high < 0
    assert (now["phases"], best["phases"]) == (20, 20)
    config = read_config(Path(found["recommended"]["config"]))
    assert (config.mode, config.policy, config.max_ratio) == ("shadow", "ltrf", MAX_RATIO)
    page = (tmp_path / "out" / "assess.html").read_text()
    head, _, why = found["lines"][0].partition(": ")
    assert f'<span class="verdict">{head}</span> {why[:20]}' in page
    assert all(line.split(" (")[0][:40] in page for line in found["lines"][1:])
    # For those who do not know the words; and a policy has one colour in both charts.
    assert "<dt>sharing loss</dt>" in page
    assert page.count("recommended)") == 1
    swatches = re.findall(r'fill="([^"]+)" d="M0 0H30V8H0z"/></svg><span>(.*?)</span>', page)
    colours = [(colour, name.replace("<wbr>", "").removeprefix("replayed, ")) for colour, name in swatches]
    assert set(colours[1:3]) <= set(colours[3:])
    assert len({colour for colour, _ in colours}) == len({name for _, name in colours})
    assert "http://" not in page.replace("http://www.w3.org", "")
    # Charts and tables have their queues in one order, under the same names.
    queues = re.findall('<th scope="row">(.*?)</th>', page.partition('id="queues"')[2].partition("</table>")[0])
    places = [page.index(f">{queue.replace('<wbr>', '')}</text>") for queue in queues]
    assert places == sorted(places)
    assert '<th scope="row">root.' not in page


def test_nothing_is_overwritten_and_the_configuration_is_only_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recording(tmp_path, contended())
    given = tmp_path / "given.yaml"
    given.write_text(
        "policy: fair\nallocation_file: /x/fair-scheduler.xml\nledger: /x/l.db\nqueues: {steady: 1}\nmode: full\n"
    )
    before = given.read_bytes()
    first = assessed(capsys, str(trace), "-o", str(tmp_path / "out"), "--config", str(given))
    files = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    second = assessed(capsys, str(trace), "-o", str(tmp_path / "out"))
    assert second["out"] == str(tmp_path / "out-2")
    assert {path: path.read_bytes() for path in files} == files
    assert given.read_bytes() == before
    config = read_config(Path(first["recommended"]["config"]))
    assert (config.mode, config.allocation_file, config.queues) == ("shadow", "/x/fair-scheduler.xml", {"steady": 1})


@pytest.mark.parametrize("accepted", [False, True])
def test_preemption_is_accepted_where_the_controllers_configuration_accepts_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], accepted: bool
) -> None:
    given = tmp_path / "given.yaml"
    more = "accept: [preemption]\n" if accepted else ""
    given.write_text(f"policy: ltrf\nallocation_file: /x/fair-scheduler.xml\nledger: /x/l.db\n{more}")
    trace = recording(tmp_path, quiet())
    assessed(capsys, str(trace), "-o", str(tmp_path / "out"), "--config", str(given))
    spec = load_experiment(str(tmp_path / "out" / "replay.yaml")).spec
    assert spec.actuation.accept_preemption is accepted


def test_what_is_recommended_was_played_within_its_own_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: set[float | None] = set()
    real = playing.simulate_phase

    def simulate_phase(experiment: str, variant: Variant, seed: int, **more: Any) -> Any:
        if variant.mode == "outside":
            played.add(more["max_ratio"])
        return real(experiment, variant, seed, **more)

    monkeypatch.setattr(playing, "simulate_phase", simulate_phase)
    trace = read_trace(recording(tmp_path, contended()))
    assess(trace, tmp_path / "own", processes=1, budget_s=1.0)
    assert played == {MAX_RATIO}
    played.clear()
    assess(trace, tmp_path / "given", max_ratio=1.5, processes=1, budget_s=1.0)
    assert played == {1.5}


def test_a_cluster_without_contention_has_nothing_to_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = assessed(capsys, str(recording(tmp_path, quiet())), "-o", str(tmp_path / "out"))
    assert (found["verdict"], found["recommended"]) == ("no", {})
    assert found["lines"][0].startswith("no, nothing to gain")
    assert not (tmp_path / "out" / "enforce.yaml").exists()
    page = (tmp_path / "out" / "assess.html").read_text()
    # Nothing was tried: no empty columns, no chart of one bar, and no is not an alarm.
    assert "no other" not in page
    assert '<td class="n"></td>' not in page
    assert page.count("<figure>") == 1
    assert '<section id="verdict" class="finding ">' in page


def test_a_replay_that_is_far_off_gives_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Something else ran on the cluster: everything took half as long again."""
    trace = recording(tmp_path, contended(), ends=lambda _, seconds: 1.5 * seconds)
    found = assessed(capsys, str(trace), "-o", str(tmp_path / "out"))
    assert found["verdict"] == "unsure"
    assert 'class="finding holds-in-part"' in (tmp_path / "out" / "assess.html").read_text(), "amber"
    assert found["reproduction_error"] == pytest.approx(1 / 3, abs=0.02)
    assert found["recommended"] == {}


def test_applications_that_the_replay_refuses_count_as_not_reproduced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recorded limit was raised meanwhile: before, the refused ones counted as ended at once, or not at all."""
    trace = recording(tmp_path, contended())
    head, _, jobs = trace.read_text().partition("\n")
    limited = {**json.loads(head), "scheduler": "capacity", "capacity": {"root.steady.maximum-applications": "1"}}
    trace.write_text(f"{json.dumps(limited)}\n{jobs}")
    found = assessed(capsys, str(trace), "-o", str(tmp_path / "out"))
    assert found["verdict"] == "unsure"
    assert found["reproduction_error"] > 0.25
    assert re.search(r"\d+ applications of steady ended in reality, and not in the replay", "\n".join(found["lines"]))


def test_where_no_application_has_ended_the_page_has_no_empty_chart_or_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recording(tmp_path, quiet())
    head, *jobs = map(json.loads, trace.read_text().splitlines())
    running = [{key: value for key, value in job.items() if key != "finished_s"} for job in jobs]
    trace.write_text("".join(json.dumps(one) + "\n" for one in (head, *running)))
    found = assessed(capsys, str(trace), "-o", str(tmp_path / "out"))
    assert found["verdict"] == "unsure"
    page = (tmp_path / "out" / "assess.html").read_text()
    assert "<figure>" not in page
    assert "<table>" not in page


def test_killed_applications_say_nothing_of_how_good_the_replay_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They end when they did under every policy: with them a replay at double the times looked twice as good."""
    trace = recording(tmp_path, quiet(), ends=lambda _, seconds: 2 * seconds)
    lines = trace.read_text().splitlines()
    jobs = [json.loads(line) for line in lines[1:]]
    for at, one in enumerate(jobs):
        # Almost nothing runs in it, so that the others are as without it.
        one["stages"][0]["tasks_s"] = [1]
        one |= {"job": f"killed-{at}", "lifetime_s": 50, "finished_s": one["submit_s"] + 50}
    lines += map(json.dumps, jobs)
    trace.write_text("\n".join(lines) + "\n")
    found = assessed(capsys, str(trace), "-o", str(tmp_path / "out"))
    assert found["verdict"] == "unsure"
    assert found["reproduction_error"] == pytest.approx(0.5, abs=0.05)


def test_too_few_ended_applications(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = assessed(capsys, str(recording(tmp_path, contended()[:5])), "-o", str(tmp_path / "out"))
    assert found["verdict"] == "unsure"
    assert "too short" in found["why"]


def test_a_limit_on_masters_is_named_as_the_cause_of_waiting(tmp_path: Path) -> None:
    """It was "look at the limits of masters and of queues", or nothing."""
    jobs = [job(f"small-{n}", "root.steady", 2.0 * n, 2, 20.0) for n in range(12)]
    path = recording(tmp_path, [*jobs, job("other", "root.bursts", 0.0, 4, 15.0)], max_am_share=0.1)
    found = assess(read_trace(path), tmp_path / "out", processes=1)
    (line,) = [line for line in found.verdict.lines if "ApplicationMasters" in line]
    assert line.startswith("The limit on ApplicationMasters (maxAMShare) is what applications wait for in the replay: ")
    assert "steady" in line
    free = assess(read_trace(recording(tmp_path / "free", jobs)), tmp_path / "free-out", processes=1)
    assert not free.evidence.masters
