"""The package `yarnfair`: its names, its examples, runs from Python with policies that are classes."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yarnfair
from harness.traces.recorded import Header, NodeLine, QueueLine, trace_text
from tests.predict.loads import contended, recording

ROOT = Path(__file__).resolve().parents[2]

#: What users may rely on. A name that is taken away breaks programs; a new one is added here.
MEMBERS = {
    "Assessment", "CallError", "Comparison", "Experiment", "InputError", "LedgerView", "Order", "Plan",
    "PlannedChange", "Policy", "QueueView", "Resource", "RunInvalid", "RunTimedOut", "Runs", "Simulation", "Snapshot",
    "Validation", "YarnfairError", "assess", "compare", "flag", "load", "load_runs", "number", "plan", "replay", "run",
    "simulate", "text", "validate", "word",
}  # fmt: skip

TASK = {"demand": {"memory_mb": 1024}, "duration": {"lognormal": {"mean_s": 8, "sigma": 0.5}}}
SMALL: dict[str, Any] = {
    "experiment": "small",
    "cluster": {"nodes": [{"count": 2, "memory_mb": 4096, "vcores": 8}]},
    "queues": {"a": {}, "b": {}},
    "max_am_share": -1.0,
    "workloads": {
        leaf: {
            "inline": {
                "kind": "sequence",
                "am": {"memory_mb": 512},
                "submission": {"think_s": think},
                "task": TASK,
                "jobs": [{"name": "q", "stages": [{"name": "s", "tasks": tasks}]}],
                "rounds": 3,
            }
        }
        for leaf, think, tasks in (("a", 5, 12), ("b", 15, 6))
    },
    "policies": ["fair", "ltrf"],
}

MINE = '''
import yarnfair


class LeastUsed(yarnfair.Policy):
    """The queue that has used least comes first."""

    name = "least-used"

    def plan(self, snapshot, ledger):
        return yarnfair.Plan(order=yarnfair.Order(measure="keys", flat=True))

    def key(self, queue, counted, snapshot):
        return counted / queue.weight
'''


class LeastUsed(yarnfair.Policy):
    """The same, as a class of a module of a package."""

    name = "least-used-here"

    def plan(self, snapshot: yarnfair.Snapshot, ledger: yarnfair.LedgerView) -> yarnfair.Plan:
        return yarnfair.Plan(order=yarnfair.Order(measure="keys", flat=True))

    def key(self, queue: yarnfair.QueueView, counted: float, snapshot: yarnfair.Snapshot) -> float:
        return counted / queue.weight


def test_the_members_are_those_that_were_promised() -> None:
    assert set(yarnfair.__all__) == MEMBERS
    assert yarnfair.__all__ == sorted(yarnfair.__all__)
    for name in MEMBERS:
        member = getattr(yarnfair, name)
        assert inspect.getdoc(member), name
    assert set(dir(yarnfair)) == MEMBERS | {"__version__"}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        yarnfair.nothing  # noqa: B018


def test_type_checkers_see_every_member() -> None:
    """The imports below TYPE_CHECKING, and the table by which they are loaded, name the same."""
    tree = ast.parse((ROOT / "yarnfair" / "__init__.py").read_text(encoding="utf-8"))
    (guarded,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == yarnfair._PLACE_OF


def test_the_import_is_light() -> None:
    code = "import sys, yarnfair; print([n for n in ('numpy', 'pandas', 'numba', 'harness.sim') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "name", ["__init__", "assessing", "checking", "comparing", "experiments", "replaying", "results"]
)
def test_the_examples_are_what_they_print(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module("yarnfair" if name == "__init__" else f"yarnfair.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
    assert name in ("assessing", "comparing", "replaying") or result.attempted > 0


def test_a_class_runs_beside_names_and_is_compared(tmp_path: Path) -> None:
    found = yarnfair.run(SMALL, ["fair", "ltrf", LeastUsed], seeds=[1, 2, 3], out=tmp_path / "out")
    assert found.variants == ["fair", "ltrf", "least-used-here"]
    assert len(found) == 9
    table = found.summary(["makespan_s"])
    assert table.columns.tolist() == ["variant", "metric", "unit", "n", "mean", "low", "high"]
    assert table["n"].tolist() == [3, 3, 3]
    assert (table["low"] <= table["mean"]).all()
    assert (table["mean"] <= table["high"]).all()
    assert "<table" in found._repr_html_()
    assert "policies" in found.figure_names
    assert found.figure("policies")._repr_svg_().lstrip().startswith("<?xml")
    against = found.compare(reference="ltrf")
    assert against.reference == "ltrf"
    assert set(against.table["contender"]) == {"fair", "least-used-here"}
    assert {"unit", "low_95", "high_95", "verdict"} <= set(against.table)
    assert "against ltrf" in repr(against)
    again = yarnfair.load(tmp_path / "out").runs
    assert sorted(again["directory"]) == sorted(found.runs["directory"])
    assert again["makespan_s"].sum() == pytest.approx(found.runs["makespan_s"].sum())


def test_a_class_of_ones_own_that_orders_as_ltrf_gives_its_results() -> None:
    """The accumulated resources over the weight, on leaves alone, are LTRF's order."""
    own = yarnfair.simulate(SMALL, LeastUsed, seed=1)
    theirs = yarnfair.simulate(SMALL, "ltrf", seed=1)
    assert len(own.jobs) == len(theirs.jobs) == 6
    assert own.summary["makespan_s"] > 0
    assert own.queues["queue"].tolist() == ["root.a", "root.b"]


def test_what_is_no_policy_is_one_line() -> None:
    with pytest.raises(yarnfair.CallError, match=r"dict is not derived from yarnfair\.Policy"):
        yarnfair.simulate(SMALL, dict)  # type: ignore[arg-type]
    with pytest.raises(yarnfair.CallError, match="2 runs: ltrf"):
        yarnfair.simulate({**SMALL, "seed": [1, 2], "policies": ["ltrf"]}, "ltrf")


SCRIPT = """
print("the script runs")
import yarnfair
from mine import LeastUsed

SMALL = {small!r}
found = yarnfair.run(SMALL, ["fair", LeastUsed], seeds=[1, 2], out="out", processes=2)
print(found)
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """Workers do not import the script: it printed its first line in each of them, and started runs of its own."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "script.py").write_text(SCRIPT.format(small=SMALL))
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    import os

    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first == "the script runs"
    assert last.startswith("<4 run(s) of ")


def test_a_comparison_is_of_the_runs_themselves_whatever_their_folder_holds(tmp_path: Path) -> None:
    yarnfair.run(SMALL, ["fair", "ltrf"], seeds=[3, 4], out=tmp_path / "out")
    some = yarnfair.run(SMALL, ["fair", "ltrf"], seeds=[1, 2], out=tmp_path / "out", resume=True)
    assert len(yarnfair.load(tmp_path / "out")) == 8
    table = some.compare().table
    assert set(table["n"]) == {2}
    alone = yarnfair.run(SMALL, ["fair", "ltrf"], seeds=[1, 2], out=tmp_path / "alone").compare().table
    assert table.equals(alone)
    first, second = (
        yarnfair.run(SMALL, [policy], seeds=[1, 2], out=tmp_path / "out", resume=True) for policy in ("fair", "ltrf")
    )
    between = yarnfair.compare(first, second)
    assert between.table["difference"].tolist() == table["difference"].tolist()
    assert (between.reference, set(between.table["contender"])) == ("out", {"out (2)"})


def test_runs_in_folders_of_one_name_are_two_groups(tmp_path: Path) -> None:
    before, after = (
        yarnfair.run(SMALL, [policy], seeds=[1, 2], out=tmp_path / name / "out")
        for name, policy in (("before", "fair"), ("after", "ltrf"))
    )
    found = yarnfair.compare(tmp_path / "before" / "out", after)
    assert (found.reference, set(found.table["contender"])) == ("out", {"after/out"})
    assert set(found.table["n"]) == {2}
    with pytest.raises(yarnfair.CallError, match="fewer than two groups"):
        yarnfair.compare(before, before)


def test_a_replay_takes_no_mapping_as_a_policy(tmp_path: Path) -> None:
    with pytest.raises(yarnfair.CallError, match="no name of a policy"):
        yarnfair.replay(tmp_path / "trace", [{"policy": "ltrf", "mode": "outside"}])  # type: ignore[list-item]


def test_a_mapping_may_have_what_programs_have(tmp_path: Path) -> None:
    cluster = {"nodes": [{"count": np.int64(2), "memory_mb": np.array([4096])[0], "vcores": 8}]}
    made = yarnfair.Experiment({**SMALL, "cluster": cluster, "max_am_share": np.float64(-1.0)})
    ours, plain = yarnfair.simulate(made, "fair"), yarnfair.simulate(SMALL, "fair")
    assert ours.jobs.equals(plain.jobs)
    with pytest.raises(yarnfair.InputError, match="policies"):
        yarnfair.Experiment({**SMALL, "policies": "ltrf"})
    with pytest.raises(yarnfair.InputError, match="cannot represent an object: a object"):
        yarnfair.Experiment({**SMALL, "queues": {"a": {"weight": object()}}})


@pytest.mark.parametrize("scheduler", ["fair", "capacity"])
def test_a_trace_is_replayed_on_its_own_scheduler(tmp_path: Path, scheduler: str) -> None:
    path = tmp_path / "recorded.jsonl"
    header = Header(
        scheduler=scheduler,
        nodes=[NodeLine(count=3, memory_mb=8192, vcores=8)],
        queues={"root.steady": QueueLine(weight=50), "root.bursts": QueueLine(weight=50)},
    )
    path.write_text(trace_text(header, contended()[-8:]))
    default = yarnfair.replay(path, out=tmp_path / "default")
    assert len(default) == 2
    assert [name.startswith(("fair", "ltrf@outside")) for name in default.variants] == [scheduler == "fair", True]
    one = yarnfair.replay(path, ["ltrf@outside"], out=tmp_path / "one")
    assert len(one) == 1
    assert one.runs["makespan_s"].tolist() == default.runs["makespan_s"].tolist()[1:]


def test_assess_in_a_script_without_a_guard_has_its_workers(tmp_path: Path) -> None:
    trace = recording(tmp_path / "trace", contended())
    script = tmp_path / "script.py"
    script.write_text(
        "import yarnfair\n"
        f"found = yarnfair.assess({str(trace)!r}, out={str(tmp_path / 'out')!r}, processes=2)\n"
        "print('verdict:', found.verdict)\n"
    )
    done = subprocess.run([sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("verdict:") == 1


class _Handle:
    """What IPython's display gives: it replaces what is shown."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data["text/plain"])


def test_a_notebook_counts_the_runs_below_the_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> _Handle:
        assert raw
        assert display_id
        shown.append(data["text/plain"])
        return _Handle(shown)

    shell, displaying = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    kernel = types.SimpleNamespace(kernel=object())
    vars(shell)["get_ipython"] = lambda: kernel
    vars(displaying)["display"] = display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", displaying)
    yarnfair.run(SMALL, ["fair"], seeds=[1, 2], out=tmp_path / "out")
    assert shown[0] == "[0/2]"
    assert re.fullmatch(r"\[2/2\] fair,seed=\d: \d+ s", shown[-1])
    assert len(shown) == 3
    # A terminal's IPython, and a program without it, show nothing.
    kernel.__dict__.clear()
    yarnfair.run(SMALL, ["fair"], seeds=[3], out=tmp_path / "other")
    assert len(shown) == 3


@pytest.mark.parametrize("seeds", ["1-3", ["1"], [1.5], [True], [-1], 0.5])
def test_seeds_are_numbers_and_no_text_is_taken_letter_by_letter(seeds: Any, tmp_path: Path) -> None:
    with pytest.raises(yarnfair.CallError, match="no seed") as found:
        yarnfair.run(SMALL, ["fair"], seeds=seeds, out=tmp_path / "out")
    assert "range(1, 11)" in str(found.value)
    assert not (tmp_path / "out").exists()


def test_one_policy_and_numpy_s_seeds_may_be_given_as_they_are(tmp_path: Path) -> None:
    runs = yarnfair.run(SMALL, "fair", seeds=list(np.arange(2, 4)), out=tmp_path / "out")
    assert runs.runs["seed"].tolist() == [2, 3]
    assert set(runs.runs["policy"]) == {"fair"}
