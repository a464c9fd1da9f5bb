"""`campaign plan`, `status` and the next run agree on what runs and what is done; a campaign takes linear time."""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.experiments.campaign import run as runner
from harness.experiments.campaign.clusters import Place
from harness.experiments.campaign.executors import ExecutorEvent, Processes
from harness.experiments.campaign.run import _Queue
from harness.experiments.campaign.spec import Cell, load_campaign
from tests.experiments.campaigning import EXPERIMENT, call


def counts(capsys: pytest.CaptureFixture[str], path: Path, out: Path) -> dict[str, int]:
    code, printed, _ = call(capsys, "status", path, "--out", out, "--json")
    assert code == 0
    return {name: count for name, count in json.loads(printed)["counts"].items() if count}


def test_a_plan_counts_only_what_a_run_would_run(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text(
        yaml.safe_dump({**EXPERIMENT, "experiment": "bad", "faults": {"failure": 1.0, "max_attempts": 1}})
    )
    path, out = write(experiments=["bad.yaml", "tiny.yaml"], policies=["fair"], seeds=[1]), tmp_path / "out"
    assert call(capsys, "run", path, "--out", out, "--jobs", 1)[0] == 4
    code, printed, _ = call(capsys, "plan", path, "--out", out, "--json")
    plan = json.loads(printed)
    assert (code, plan["waiting"], plan["failed"], plan["estimate_s"]) == (0, 0, 1, 0.0)
    _, text, _ = call(capsys, "plan", path, "--out", out)
    assert "2 cells, 0 to run: " in text
    assert text.splitlines()[-1] == "1 failed, which only `yarnfair campaign run --retry-failed` runs again"
    assert json.loads(call(capsys, "run", path, "--out", out, "--jobs", 1, "--json")[1])["ran"] == 0


@pytest.mark.parametrize("fault", ["folder", "summary", "run.json", "jobs failed", "unfinished"])
def test_a_cell_whose_results_are_gone_or_damaged_is_not_done(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    path, out = write(policies=["fair"]), tmp_path / "out"
    assert call(capsys, "run", path, "--out", out, "--jobs", 1)[0] == 0
    directory = load_campaign(path).cells[0].directory(out)
    info, summary = directory / "run.json", directory / "summary.json"
    if fault == "folder":
        shutil.rmtree(directory)
    elif fault == "summary":
        summary.write_text(summary.read_text()[:-20])
    elif fault == "run.json":
        info.write_text("")
    elif fault == "unfinished":
        info.write_text(json.dumps({**json.loads(info.read_text()), "exit": None}))
    else:
        document = json.loads(summary.read_text())
        document["queues"]["root.a"]["failed"] = 1
        summary.write_text(json.dumps(document))
    assert counts(capsys, path, out) == {"done": 1, "waiting": 1}
    code, printed, _ = call(capsys, "plan", path, "--out", out, "--json")
    assert (code, json.loads(printed)["waiting"]) == (0, 1)
    cell = load_campaign(path).cells[0]
    # Without the reason a reader of `status` takes lost results for a cell that has not had its turn yet.
    assert call(capsys, "status", path, "--out", out)[1].splitlines() == [
        "2 cells: 1 done, 1 waiting",
        f"  waiting: {cell.name} ({cell.id[:8]}): its results are gone or damaged: it runs again",
    ]
    code, _, err = call(capsys, "run", path, "--out", out, "--jobs", 1)
    assert code == 0
    assert "2 cells, 1 done before" in err
    assert "[2/2]" in err
    assert "[3/2]" not in err
    assert counts(capsys, path, out) == {"done": 2}


def test_a_worker_that_died_while_it_was_idle_is_replaced(write: Any, tmp_path: Path) -> None:
    loaded = load_campaign(write(seeds=[1], policies=["fair", "static"]))
    executor = Processes(1)

    def ended(cell: Cell) -> list[ExecutorEvent]:
        executor.start(cell, loaded.experiments[cell.source], tmp_path)
        deadline = time.monotonic() + 300
        told: list[ExecutorEvent] = []
        while not told and time.monotonic() < deadline:
            told = [one for one in executor.told(0.2) if one.kind != "step"]
        return told

    first, second = loaded.cells
    try:
        assert [one.kind for one in ended(first)] == ["end"]
        (worker,) = executor._workers
        worker.process.kill()
        worker.process.join(20)
        assert [(one.kind, one.exit_code) for one in ended(second)] == [("end", 0)]
        assert worker not in executor._workers
    finally:
        executor.close()


class Instant:
    """An executor whose cells end at once."""

    room, queues = 3, False

    def __init__(self) -> None:
        self.cells: list[Cell] = []

    def start(self, cell: Cell, experiment: Any, out: Path) -> None:
        self.cells.append(cell)

    def told(self, timeout_s: float) -> list[ExecutorEvent]:
        found, self.cells = self.cells, []
        return [ExecutorEvent(cell.id, "end", exit_code=0, wall_s=0.1) for cell in found]

    def kill(self, id_: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


def test_a_campaign_takes_time_in_proportion_to_its_cells(write: Any, tmp_path: Path) -> None:
    loaded = load_campaign(write(seeds=[1], policies=["fair"]))

    def took_s(count: int) -> float:
        (one,) = loaded.cells
        cells = tuple(dataclasses.replace(one, id=f"{at:064x}", below=f"cells/{at:016x}") for at in range(count))
        campaign = dataclasses.replace(loaded, cells=cells)
        began = time.process_time()
        found = runner.run_campaign(campaign, tmp_path / str(count), Instant(), clusters=Instant())
        assert (found.ran, len(found.standings)) == (count, count)
        return time.process_time() - began

    took_s(50)
    # Sixteen times as many cells; 256 times as long where each start goes through all that wait.
    assert took_s(4800) < 50 * max(took_s(300), 0.01)


def test_cells_wait_in_their_order_and_the_cluster_that_is_up_goes_first(write: Any) -> None:
    (one,) = load_campaign(write(seeds=[1], policies=["fair"])).cells
    near, far = Place("near", "local"), Place("far", "docker")
    queue = _Queue()
    for at, (place, digest) in enumerate([(near, "a"), (far, "a"), (near, "b"), (near, "a"), (far, "b")]):
        queue.append(dataclasses.replace(one, id=str(at), place=place, hash=digest))
    assert (len(queue), queue.places()) == (5, [near, far])
    assert queue.take(near, None).id == "0"
    assert queue.places() == [far, near]
    assert queue.take(near, "a").id == "3"
    assert queue.take(near, "a").id == "2"
    assert queue.places() == [far]
    again = queue.take(far, "b")
    assert again.id == "4"
    queue.append(again)
    assert [queue.take(far, None).id for _ in range(2)] == ["1", "4"]
    assert (len(queue), queue.places()) == (0, [])
