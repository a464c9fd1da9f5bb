"""The study of what `assess` predicts on a Capacity Scheduler: its loads, how a queue is judged, a real run's loss."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.control.config import read_config
from harness.predict.replay import capacity_limits_of
from harness.traces.recorded import Header, NodeLine, QueueLine, read_trace, trace_text
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.traps import find_traps
from studies import planned_cluster, steered_tables
from studies.planned_cluster import Beside, decommission
from studies.planned_loads import ADHOC, HOURLY, LEAVES
from studies.steered import configuration
from studies.steered_loads import ASKED_FOR, EXPECTED, LOADS, WHY
from studies.steered_measure import counted, judged, sharing_loss, word
from studies.steered_simulated import Seen, held, named, ordered, present, settled_s, simulated
from tests.predict.loads import job


def test_five_loads_with_the_answers_that_were_expected() -> None:
    assert len(LOADS) == 5
    assert set(LOADS) == set(EXPECTED) == set(WHY)


def test_a_controller_may_write_once_what_enforce_asks_for_is_set() -> None:
    def blocking(settings: dict[str, str]) -> list[str]:
        text = replace(LOADS["returns"], settings=settings).file("before")
        values = parse_configuration(text.encode(), source="it").values
        return [trap.name for trap in find_traps(values, {}, queue_tree(values, source="it")) if trap.blocking]

    assert blocking({}) == ["maximum-applications", "user-limit-factor"]
    assert blocking(dict(ASKED_FOR)) == []


def test_the_recommended_configuration_runs_bounded_on_the_cluster_that_is_there(tmp_path: Path) -> None:
    status: Any = SimpleNamespace(
        allocation_file=str(tmp_path / "capacity-scheduler.xml"),
        address=SimpleNamespace(rest="http://127.0.0.1:1"),
        rpc=lambda name: f"127.0.0.1:{len(name)}",
    )
    written = tmp_path / "assess.yaml"
    found = read_config(configuration(tmp_path, written, status))
    assert (found.policy, found.mode, found.max_ratio) == ("ltrf", "bounded", 3)
    written.write_text(
        yaml.safe_dump({"policy": "hltrf", "settings": {"horizon_s": 80.0}, "mode": "shadow", "max_ratio": 2.0})
    )
    found = read_config(configuration(tmp_path, written, status))
    assert (found.policy, found.settings, found.mode, found.max_ratio) == ("hltrf", {"horizon_s": 80.0}, "bounded", 2)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.3, -0.1, "shorter"),
        (0.1, 0.3, "longer"),
        (-0.02, 0.01, "same"),
        (-0.2, 0.1, "unsure"),
        (0.0, 0.04, "unsure"),
    ],
)
def test_a_word_is_told_if_all_phases_agree(low: float, high: float, expected: str) -> None:
    assert word(low, high, 0.03) == expected


def said(low: float, high: float) -> dict[str, Any]:
    mean = (low + high) / 2
    band = [100 * (1 + low), 100 * (1 + high)]
    return {
        "change": mean,
        "change_band": [low, high],
        "mean_completion_s": 100 * (1 + mean),
        "mean_completion_band_s": band,
    }


def test_a_queue_is_judged_by_two_runs_without_and_one_with_a_controller() -> None:
    right = judged(said(-0.3, -0.1), [98.0, 102.0], 80.0, 0.03)
    assert (right["happened"], right["right"], right["in_band"]) == ("shorter", True, True)
    wrong = judged(said(-0.3, -0.1), [100.0], 120.0, 0.03)
    assert (wrong["right"], wrong["opposite"], wrong["in_band"]) == (False, True, False)
    # A change within what two equal runs differ by is none.
    noisy = judged(said(-0.3, -0.1), [90.0, 110.0], 85.0, 0.03)
    assert (noisy["happened"], noisy["right"], noisy["opposite"]) == ("same", False, False)
    nothing = judged(None, [100.0], 80.0, 0.03)
    assert (nothing["predicted"], nothing["predicted_s"]) == ("unsure", None)
    found = counted([right, wrong, noisy, nothing])
    assert (found["queues"], found["words"], found["words_right"], found["opposite"]) == (4, 3, 1, 1)
    assert (found["bands"], found["in_band"]) == (3, 2)


def test_a_real_runs_sharing_loss_is_that_of_the_papers() -> None:
    """A queue with half of its due all the time has a fairness degree of 0.5, so a loss of 0.5 s in each second."""

    def sample(at_s: float) -> dict[str, Any]:
        used, wanted = dict.fromkeys(LEAVES, 0), dict.fromkeys(LEAVES, 0)
        used[HOURLY], wanted[HOURLY] = 900, 5000  # due: 18 % of 10,000
        used[ADHOC], wanted[ADHOC] = 5000, 5000  # 20 %: it has more than that
        return {
            "at_s": at_s,
            "capacity_mb": 10_000,
            "used_mb": [used[leaf] for leaf in LEAVES],
            "demand_mb": [wanted[leaf] for leaf in LEAVES],
        }

    # Nothing is due before the first step, so that half a step of loss is missing.
    samples = [sample(float(at)) for at in range(11)]
    assert sharing_loss(samples, LOADS["returns"]) == pytest.approx(0.5 * 9.5)
    shares = [LOADS["returns"].shares("before")[leaf] for leaf in LEAVES]
    assert Seen.of_samples(samples).loss(shares, after_s=4.0) == pytest.approx(0.5 * 6.0)
    assert Seen.of_samples(samples).loss(shares, after_s=11.0) == 0.0


def test_a_load_is_settled_once_its_last_queue_has_had_applications_for_a_while() -> None:
    assert settled_s(LOADS["returns"]) == 60.0 + 20.0
    assert settled_s(LOADS["top"]) == 12.0 + 20.0


def test_a_wrong_direction_is_shown_as_wrong_and_counted() -> None:
    """Of the committed record: the run on the busy machine stays in every table."""
    values = read_json(Path(__file__).parents[2] / "docs/records/steered.json")["values"]
    rows = [row for load in values["loads"].values() for run in load["steered"].values() for row in run.values()]
    assert counted(rows) == {key: values[key] for key in counted(rows)}
    table = steered_tables.queues(values)
    assert table.count("| steered-busy |") == 4
    assert table.count("**") == 2 * values["opposite"]
    assert steered_tables.counts(values).splitlines()[-1].startswith(f"| all |  | {len(rows)} |")
    assert set(values["loads"]) | set(values["missing"]) == set(LOADS)


def test_a_slow_step_of_the_cluster_does_not_hold_up_the_load() -> None:
    """`yarn rmadmin` takes seconds on a busy machine; submissions and polls went on only after it had ended."""
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert may_end.wait(30)

    with Beside() as beside:
        assert beside.ended()
        beside.start(slow)
        assert begun.wait(30)
        assert not beside.ended()
        may_end.set()
        _wait_for(beside)


def test_what_fails_beside_the_load_ends_the_run() -> None:
    def refused() -> None:
        raise InputError("-refreshNodes ended with 255")

    with Beside() as beside:
        beside.start(refused)
        with pytest.raises(InputError, match="refreshNodes"):
            _wait_for(beside)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit('no such host')", "ended with 1: no such host"),
        ("import time; time.sleep(60)", "after 1 s"),
    ],
)
def test_a_node_that_cannot_be_drained_is_one_line(
    program: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended a run of minutes with a trace of Python's stack, without what the command had said."""
    monkeypatch.setattr("harness.clusters.jars.find", lambda **_: tmp_path)
    monkeypatch.setattr(planned_cluster, "_ADMIN_S", 1.0)
    run = subprocess.run
    ours = [sys.executable, "-c", program]
    monkeypatch.setattr("subprocess.run", lambda _, **how: run(ours, check=False, **how))
    monkeypatch.setattr(planned_cluster, "java_program", lambda: "java")
    state: Any = SimpleNamespace(spec=SimpleNamespace(hadoop="3.5.0"))
    with pytest.raises(InputError, match=said):
        decommission(state, tmp_path, tmp_path / "exclude")
    assert (tmp_path / "exclude").read_text() == f"{planned_cluster.ADDED_HOST}\n"


def _wait_for(beside: Beside) -> None:
    while not beside.ended():
        time.sleep(0.01)


def test_a_recording_without_the_order_of_its_queues_has_that_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "capacity-scheduler.xml").write_text(LOADS["nodes"].file("before"), encoding="utf-8")
    line = NodeLine(memory_mb=8192, vcores=32)
    queues = {path: QueueLine() for path in sorted(LOADS["nodes"].capacities("before"))}

    def order_with(capacity: dict[str, str]) -> str:
        header = Header(nodes=[line], queues=queues, scheduler="capacity", capacity=capacity)
        text = trace_text(header, [job("one", HOURLY, 0.0, 1, 1.0)])
        (tmp_path / "recording.jsonl").write_text(text, encoding="utf-8")
        return capacity_limits_of(ordered(tmp_path).header)["root.prod.etl.queues"]

    assert order_with({}) == "hourly,daily"
    assert order_with({"root.prod.etl.queues": "daily,hourly"}) == "daily,hourly", "what the cluster showed holds"


def test_a_candidate_of_assess_by_its_name() -> None:
    found = named("ltrf@outside,horizon_s=80")
    assert (found.policy, found.mode, found.settings, found.scheduler) == (
        "ltrf",
        "outside",
        {"horizon_s": 80.0},
        "capacity",
    )


def test_a_real_figure_is_held_against_the_smallest_and_the_largest_phase() -> None:
    found = held([{HOURLY: 10.0, ADHOC: 1.0}, {HOURLY: 20.0, ADHOC: 3.0}], {HOURLY: 20.0, ADHOC: 3.5})
    assert found[HOURLY] == {"mean": 15.0, "band": [10.0, 20.0], "real": 20.0, "in_band": True}
    assert found[ADHOC]["in_band"] is False


def test_the_simulator_says_how_long_each_queue_is_below_its_due(tmp_path: Path) -> None:
    """Ad hoc work fills a node of 4 containers for 20 s; the hourly job that then comes waits for one of them."""
    header = Header(
        nodes=[NodeLine(memory_mb=4096, vcores=32)],
        queues={path: QueueLine(weight=value) for path, value in sorted(LOADS["nodes"].capacities("before").items())},
        max_am_share=-1.0,
        scheduler="capacity",
        capacity={"maximum-am-resource-percent": "1000"},
    )
    trace = tmp_path / "trace.jsonl"
    jobs = [job("much", ADHOC, 0.0, 4, 20.0), job("late", HOURLY, 5.0, 1, 1.0)]
    trace.write_text(trace_text(header, jobs), encoding="utf-8")
    phases = simulated(read_trace(trace), [present()], phases=2)["capacity"]
    assert len(phases) == 2
    for phase in phases:
        assert 10.0 <= phase.below_s[HOURLY] <= 20.0
        assert phase.below_s[ADHOC] <= 3.0, "until it has its first containers"


def test_what_a_table_tells_of_bands_is_what_the_record_has() -> None:
    values = read_json(Path(__file__).parents[2] / "docs/records/steered.json")["values"]
    cells = [one for load in values["loads"].values() for found in load["below"].values() for one in found.values()]
    for one in cells:
        assert one["in_band"] == (one["band"][0] <= one["real"] <= one["band"][1])
    assert steered_tables.below(values).count("(outside)") == sum(not one["in_band"] for one in cells)
    for load in values["loads"].values():
        for own in load["own"].values():
            assert own["inside"] == sum(one["in_band"] for one in own["completion"].values())
            # As the page says.
            assert all(one["in_band"] or one["real"] > one["band"][1] for one in own["completion"].values())
    assert len(values["loads"]) == len(LOADS), "all five were run"
