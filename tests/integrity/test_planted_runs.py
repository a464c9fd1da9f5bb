"""Faults planted into runs, campaigns and checks: the product itself notices each of them and does not exit 0."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.control.reports import TickReport
from harness.control.wall import Controller
from harness.experiments.campaign.clusters import Place
from harness.experiments.campaign.executors import run_cell
from harness.experiments.campaign.spec import of_one
from harness.experiments.kind import Outcome
from harness.experiments.real import run as real_run
from harness.experiments.resolve import LoadedExperiment, Variant, load_experiment, variants_of
from harness.results.runs import read_run
from harness.results.store import RunDirectory
from tests.control.driven import rm_with_load
from tests.control.rm_model import RmModel
from tests.experiments.campaigning import EXPERIMENT
from tests.results.conftest import call


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedExperiment:
    import yaml

    document = {**EXPERIMENT, "policies": ["fair", "ltrf@outside"], "limits": {"duration_s": 2.0}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(document))
    return load_experiment(str(tmp_path / "tiny.yaml"))


def run_on(
    rm: RmModel, loaded: LoadedExperiment, monkeypatch: pytest.MonkeyPatch, out: Path
) -> tuple[Outcome | Any, dict[str, Any]]:
    """Run the experiment's policy from outside with the real controller on a ResourceManager in memory, no jobs."""
    rm.now_s = time.time()

    @contextlib.contextmanager
    def client(_: object) -> Iterator[RmModel]:
        yield rm

    monkeypatch.setattr(real_run, "client_of", client)
    (variant,) = variants_of(loaded, policies=["ltrf@outside"], settings={"period": "0.1"})

    class Run(real_run.RealRun):
        def __init__(self, directory: RunDirectory, variant: Variant) -> None:
            self.experiment, self.variant, self.directory = loaded, variant, directory
            self.cluster = SimpleNamespace(  # type: ignore[assignment]
                place=rm.place, shared=SimpleNamespace(troubles=list), backend="local", document={}
            )
            self.client = SimpleNamespace(rest=None, close=lambda: None)  # type: ignore[assignment]
            self.jobs, self.decisions, self.weights, self.done = [], [], {}, []
            self.holding = self.load = self.controller = self.ended_s = None
            self.stop, self._closing = threading.Event(), contextlib.ExitStack()

        def _begin(self) -> None:
            self.began, self.zero_ms = time.monotonic(), time.time_ns() // 1_000_000
            self._start_controller()

        def _loop(self, end_s: float, on_step: object) -> bool:
            while self.now_s() < end_s and not self._controller_died():
                time.sleep(0.02)
            return False

        def _kill(self) -> None:
            self.stop.set()

        def _write(self, *, finished: bool) -> Any:
            summary = {"makespan_s": self.now_s(), "queues": {}}
            self.directory.write_summary(summary)
            return SimpleNamespace(failed_jobs=0, end_s=self.now_s()), summary

    monkeypatch.setattr(real_run, "settle", lambda *_: None)
    for name in ("latencies", "run_jobs"):
        monkeypatch.setattr(real_run, name, lambda *_, **__: [])
    monkeypatch.setattr(real_run, "run_header", lambda *_, **__: SimpleNamespace(delays=_NO_DELAYS))
    monkeypatch.setattr(real_run, "node_heartbeat_ms", lambda *_: 0)
    monkeypatch.setattr(real_run, "trace_text", lambda *_: "")

    def runner(_: object, variant: Variant, directory: RunDirectory, __: object) -> Outcome:
        directory.info["cluster"] = {"id": 1}
        with Run(directory, variant) as run:
            run.nodes, run.given = [], None
            return run.run(None)

    (cell,) = of_one(loaded, [variant], Place("local", "local")).cells
    told = run_cell(loaded, cell, out, runner=runner)
    return told, read_json(cell.directory(out) / "run.json")


_NO_DELAYS = SimpleNamespace(am_response_heartbeats=0, am_heartbeat_ms=0)


def test_a_policy_that_acts_is_valid(loaded: LoadedExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, info = run_on(rm_with_load(), loaded, monkeypatch, tmp_path / "out")
    assert (told.exit_code, told.why) == (0, None)
    assert info["control"]["decisions"] >= 1
    assert info["control"]["ticks"] > 3


def test_a_controller_that_dies_ends_the_run(
    loaded: LoadedExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = []
    whole: Callable[[Controller], TickReport] = Controller.tick

    def tick(self: Controller) -> TickReport:
        ticks.append(1)
        if len(ticks) == 3:
            raise RuntimeError("killed at its third tick")
        return whole(self)

    monkeypatch.setattr(Controller, "tick", tick)
    began = time.monotonic()
    told, info = run_on(rm_with_load(), loaded, monkeypatch, tmp_path / "out")
    assert (told.exit_code, info["exit"]) == (4, 4)
    assert info["why"] == "the controller died: RuntimeError: killed at its third tick"
    # It ends at once, not after its two seconds.
    assert time.monotonic() - began < 1.8
    assert read_run(next((tmp_path / "out").iterdir())).invalid() is not None


def test_a_run_in_which_every_write_fails_is_not_valid(
    loaded: LoadedExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = rm_with_load()
    rm.place.fail = InputError("cannot be written: No space left on device", where="memory")
    told, info = run_on(rm, loaded, monkeypatch, tmp_path / "out")
    assert told.exit_code == 4
    assert info["why"].startswith("the policy never acted: no write took effect in ")
    assert "No space left on device" in info["why"]
    assert info["control"]["blocked"]["actuation"] > 3


def test_a_scheduler_that_ignores_every_write_is_noticed(
    loaded: LoadedExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = rm_with_load()
    for _ in range(10):
        rm.start("x")
    monkeypatch.setattr(rm, "_load", lambda: None)
    told, info = run_on(rm, loaded, monkeypatch, tmp_path / "out")
    assert told.exit_code == 4, info["control"]
    assert "the policy never acted" in info["why"]


POLICY = """
from harness.model.plan import Plan
from harness.policies.base import Policy


class Broken(Policy):
    def plan(self, snapshot, counted):
        return Plan(weights={queue: -1.0 for queue in snapshot.queues})
"""


def test_a_users_policy_whose_every_plan_is_refused_is_not_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One whose plan for the empty cluster is refused too does not even begin (tests/cli/test_user_mistakes.py)."""
    import yaml

    (tmp_path / "broken.py").write_text(POLICY.replace("-1.0", "-1.0 if counted.by_leaf else 1.0"))
    document = {**EXPERIMENT, "policies": [{"policy": f"{tmp_path}/broken.py:Broken", "mode": "outside"}]}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(document))
    code, _, err = call(capsys, "run", tmp_path / "tiny.yaml", "--out", tmp_path / "out", "--jobs", "1", "--no-report")
    assert code == 4, err
    assert "the policy never acted" in err
    assert "weight -1.0 of root" in err


def test_a_helper_that_a_policy_imports_was_edited_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    policy = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport planted_helper as helper\n"
    policy += POLICY.replace("-1.0", "helper.weight(queue)")
    (tmp_path / "mine.py").write_text(policy)
    (tmp_path / "planted_helper.py").write_text("def weight(queue):\n    return 2.0\n")
    document = {**EXPERIMENT, "policies": [{"policy": f"{tmp_path}/mine.py:Broken", "mode": "outside"}]}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(document))
    campaign = tmp_path / "c.yaml"
    campaign.write_text(yaml.safe_dump({"campaign": "c", "experiments": ["tiny.yaml"], "seeds": [1, 2]}))
    arguments = ("campaign", "status", campaign, "--out", tmp_path / "out", "--json")
    assert call(capsys, "campaign", "run", campaign, "--out", tmp_path / "out", "--jobs", "1")[0] == 0
    assert json.loads(call(capsys, *arguments)[1])["counts"]["done"] == 2
    (tmp_path / "planted_helper.py").write_text("# A comment.\ndef weight(queue):\n    return 2.0\n")
    assert json.loads(call(capsys, *arguments)[1])["counts"]["done"] == 2
    (tmp_path / "planted_helper.py").write_text("def weight(queue):\n    return 3.0\n")
    assert json.loads(call(capsys, *arguments)[1])["counts"] == {"done": 0, "failed": 0, "running": 0, "waiting": 2}


def test_code_that_resolves_an_experiment_was_edited_since(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of an older version do not count, whichever module changed."""
    import shutil

    import harness
    from harness.experiments.campaign import code, spec

    copy = tmp_path / "harness"
    shutil.copytree(Path(harness.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = code.package_hash(copy)
    for module in ("experiments/resolve.py", "yarn/fair/parse.py", "base/stats.py"):
        source = copy / module
        source.write_text(source.read_text() + "\n\nPLANTED = 1\n")
        code.package_hash.cache_clear()
        assert code.package_hash(copy) != before, module
        source.write_text(source.read_text().removesuffix("\n\nPLANTED = 1\n"))
    assert spec.package_hash is code.package_hash
