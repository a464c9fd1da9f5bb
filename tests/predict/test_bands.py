"""The band of a replay's predictions: `yarnfair replay` says how far phases of heartbeats and control move a figure."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cli import main
from harness.experiments.resolve import Variant, load_experiment, variants_of
from harness.predict.bands import bands_of
from harness.predict.playing import Player, simulate_phase
from harness.predict.replay import write_experiment
from harness.traces.recorded import read_trace
from tests.predict.loads import contended, job, recording


def replayed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["replay", *arguments, "--jobs", "1", "--no-report"])
    assert not stop.value.code
    return capsys.readouterr().out


def test_each_figure_has_its_band(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = recording(tmp_path, contended())
    call = [str(trace), "--policy", "fair,ltrf@outside", "--set", "horizon_s=80", "--out", str(tmp_path / "out")]
    found: dict[str, Any] = json.loads(replayed(capsys, *call, "--json"))
    bands = found["bands"]
    assert list(bands) == ["fair", "ltrf@outside"]
    for run in found["runs"]:
        band = bands[run["variant"]]
        for figure in ("makespan_s", "sharing_loss_integral_s", "memory_used_percent"):
            least, most = band[figure]["band"]
            assert least <= band[figure]["mean"] <= most
        assert band["phases"] == 20
        least, most = band["figures"]["queues"]["root.steady"]["fairness_degree"]["band"]
        assert least <= band["figures"]["queues"]["root.steady"]["fairness_degree"]["mean"] <= most
        for queue in ("root.steady", "root.bursts"):
            low, high = band["queues"][queue]["band"]
            assert low < band["queues"][queue]["mean_completion_s"] < high
            # The run whose directory is written is of one of these phases, but for when the controller begins.
            assert 0.97 * low <= run["summary"]["queues"][queue]["mean_completion_s"] <= 1.03 * high
    # A further phase, that of the recording, lies inside.
    jobs = read_trace(trace).jobs
    for queue in ("root.steady", "root.bursts"):
        took = [(job.finished_s or 0.0) - job.submit_s for job in jobs if job.queue == queue]
        low, high = bands["fair"]["queues"][queue]["band"]
        assert low <= sum(took) / len(took) <= high


def test_policies_have_the_order_of_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay's table once listed policies in the order of the command line, unlike its report."""
    experiment = load_experiment("demo")
    variants = variants_of(experiment, policies=("ltrf@outside", "fifo", "ltrf", "fair"))
    wanted: list[str] = []
    trace: Any = SimpleNamespace(jobs=[])

    class Played(Player):
        def first(self, variant: Variant) -> None:
            pass

        def play(self, variants: Sequence[Variant], phases: int, says: Any = None) -> list[Any]:
            wanted.extend(one.name for one in variants)
            return []

    monkeypatch.setattr("harness.predict.bands.Player", Played)
    monkeypatch.setattr("harness.predict.bands.load_experiment", lambda _: experiment)
    assert bands_of(trace, Path("demo"), variants, phases=3) == {}
    assert wanted == ["fair", "fifo", "ltrf", "ltrf@outside"]


def test_it_is_said_in_words_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = recording(tmp_path, contended()[:8])
    said = replayed(capsys, str(trace), "--phases", "3", "--out", str(tmp_path / "out"))
    assert "means of 3 phases of heartbeats and control (smallest to largest):" in said
    # Every figure of the table has its band; its means are what the sentences above it speak of.
    table = said[said.index("means of") :].splitlines()
    rows = [line for line in table if line[:26].strip() and len(line) > 40 and "(smallest" not in line]
    figures = ("makespan (s)", "sharing loss integral (s)", "memory used (%)", "last sharing loss (s)", "  steady")
    assert {figure for figure in figures for line in rows if line.startswith(figure)} == set(figures)
    for line in rows[1:]:
        assert re.search(r"[0-9.]+ \([-0-9.,]+ to [-0-9.,]+\)[+!]?$|-$", line), line
    assert max(len(line) for line in table) <= 80
    without = replayed(capsys, str(trace), "--policy", "fair", "--phases", "0", "--out", str(tmp_path / "none"))
    assert "phases" not in without


def test_the_report_shows_the_means_and_bands_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, out = recording(tmp_path, contended()), tmp_path / "out"
    call = [str(trace), "--phases", "2", "--out", str(out), "--jobs", "1", "--seed", "1-2", "--json"]
    with pytest.raises(SystemExit):
        main(["replay", *call])
    bands = json.loads(capsys.readouterr().out)["bands"]
    page = html.unescape((out / "report.html").read_text())
    text = re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", " ", page)).replace(",", "").replace("\u2212", "-")
    for name in ("fair", "ltrf@outside"):
        whole = bands[name]["figures"]
        for figure, digits in ((whole["sharing_loss_integral"], 1), (whole["makespan_s"], 1)):
            assert shown(figure, digits) in text
        # In the table of completion times and in that of winners and losers; once each, though there are two seeds.
        assert text.count(shown(whole["queues"]["root.steady"]["mean_completion_s"], 1)) == 2
    assert "Means of 2 phases of heartbeats and control (smallest to largest)" in text
    assert "are of one phase: an example without a band" in text  # commas are left out above
    # A run by itself has them, too; without phases it is as any other run's.
    alone = next(out.glob("fair*")) / "report.html"
    assert "Means of 2 phases" in alone.read_text()
    with pytest.raises(SystemExit):
        main(["replay", *call, "--phases", "0"])
    assert "phases" not in (out / "report.html").read_text()


def shown(figure: dict[str, Any], digits: int) -> str:
    low, high = figure["band"]
    assert low < high
    return f"{figure['mean']:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def test_the_bound_of_theorem_1_has_a_band(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = recording(tmp_path, contended()[:8])
    call = [str(trace), "--policy", "qknober@outside", "--set", "rho=0.5", "--phases", "2"]
    said = replayed(capsys, *call, "--out", str(tmp_path / "out"))
    assert re.search(r"by Theorem 1 +[0-9.]+ \([0-9.]+ to [0-9.]+\)", said), said


def test_the_phases_have_the_schedulers_update_at_any_moment(tmp_path: Path) -> None:
    """A job on an idle cluster waits up to 500 ms for the next update, wherever its submission falls."""
    trace = recording(tmp_path, [job("alone", "root.steady", 20.0, 1, 5.0)])
    head, *lines = trace.read_text().splitlines()
    quick = {**json.loads(head), "delays": {"node_heartbeat_ms": 50}}
    trace.write_text("\n".join([json.dumps(quick), *lines, ""]))
    assert read_trace(trace).header.delays.update_ms is None, "Hadoop's own, 500 ms"
    experiment = write_experiment(read_trace(trace), tmp_path / "played")
    waits, variant = [], Variant("fair", "fair", "inside", {}, 0, 5.0)
    for seed in range(1, 21):
        played = simulate_phase(str(experiment), variant, seed)
        waits.append(float(played.jobs["started_s"][0]) - float(played.jobs["submitted_s"][0]))
    assert min(waits) < 0.1
    assert 0.4 < max(waits) < 0.65
    assert simulate_phase(str(experiment), variant, 1).jobs["submitted_s"][0] == 20.0
