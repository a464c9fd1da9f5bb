"""Extension points: what a package of a user's adds through the entry point group ``yarnfair.systems``, end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base import extensions
from harness.base.extensions import Extension, Registry

PACKAGE = '''
"""An installed package that adds one of everything that an extension can add."""

from dataclasses import dataclass

import click

from harness.base.extensions import CommandEntry, Extension
from harness.experiments.kind import Computed, Kind, KindVariant, Loaded, hash_of
from harness.experiments.selection import EVERYTHING
from harness.model.plan import Order, Plan
from harness.paper import Family
from harness.policies.base import Policy
from harness.results.metric import Metric

EXTENSION = Extension(
    name="tally",
    policies={"last-name": "tally_package:LastName"},
    experiment_types={"tally": "tally_package:TALLY"},
    scenarios=("tally_package:FAMILY",),
    commands={"tally": CommandEntry("tally_package:tally", "Prints one number.", "A pipeline")},
    metrics=("tally_package:METRICS",),
)
METRICS = (Metric("tallied", "things that were tallied", "", "higher", 0),)


class LastName(Policy):
    """The queue whose name comes last gets everything it asks for."""

    name = "last-name"

    def plan(self, snapshot, ledger):
        return Plan(order=Order(measure="keys"))

    def key(self, queue, counted, snapshot):
        return -float(ord(queue.name[-1]))


class Answer:
    def document(self):
        return {"tally": 3}

    def table(self):
        return "3"


FAMILY = Family(lambda top: "tally" in top, lambda top: None, lambda scenario, policy: Answer())


@dataclass
class Spec:
    experiment: str


class Tally(Kind):
    name = "tally"

    def load(self, document):
        return Loaded(Spec(document.data["experiment"]), document, hash_of(document.data))

    def variants(self, experiment, asked=EVERYTHING):
        return [KindVariant("one", "last-name", "tally", {}, 0)]

    def compute(self, experiment, variant):
        return Computed({"tallied": 7})


TALLY = Tally()
Loaded.described = lambda self: {"experiment": {"experiment": self.name}}


@click.command()
def tally():
    click.echo("42")
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the import path with the package and what an installer writes of its entry points."""
    (tmp_path / "tally_package.py").write_text(PACKAGE, encoding="utf-8")
    info = tmp_path / "tally_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tally_package\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[yarnfair.systems]\ntally = tally_package:EXTENSION\n")
    return tmp_path


def yarnfair(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        cwd=site,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(Path(__file__).resolve().parents[2])])},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_an_installed_package_adds_a_command_and_a_scenario(site: Path) -> None:
    assert "Prints one number." in yarnfair(site, "--help").stdout
    assert yarnfair(site, "tally").stdout == "42\n"
    (site / "scenario.yaml").write_text("tally: 1\n")
    answer = yarnfair(site, "allocate", "scenario.yaml", "--policy", "last-name", "--json")
    assert json.loads(answer.stdout) == {"tally": 3}, answer.stderr
    (site / "steps.yaml").write_text("capacity: 1\nqueues: {A: {}, B: {}}\narrivals: [{A: 1, B: 1}]\n")
    steps = json.loads(yarnfair(site, "allocate", "steps.yaml", "--policy", "last-name", "--json").stdout)["steps"]
    assert steps == [{"A": 0, "B": 1}, {"A": 1, "B": 0}]


def test_an_installed_package_adds_an_experiment_type_and_a_metric(site: Path) -> None:
    (site / "mine.yaml").write_text("kind: tally\nexperiment: mine\n")
    done = yarnfair(site, "run", "mine.yaml", "--out", "runs", "--json")
    assert done.returncode == 0, done.stderr
    assert [run["summary"]["tallied"] for run in json.loads(done.stdout)["runs"]] == [7]
    assert "things that were tallied" in (site / "runs" / "report.html").read_text(encoding="utf-8")


def test_a_package_that_cannot_be_loaded_is_reported_and_left_out(site: Path) -> None:
    (site / "tally_package.py").write_text("raise ImportError('not today')\n")
    done = yarnfair(site, "list", "policies")
    assert done.returncode == 0
    assert "fair" in done.stdout
    assert done.stderr == (
        "yarnfair: the extension tally (tally_package:EXTENSION) is left out: ImportError: not today\n"
    )


def test_the_core_keeps_its_names(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    mine = Extension(name="mine", policies={"fair": "mine:Fair", "own": "mine:Own"})
    monkeypatch.setattr(extensions, "extensions", lambda: (mine,))
    assert dict(Registry({"fair": "core:Fair"}, "policies")) == {"fair": "core:Fair", "own": "mine:Own"}
    assert "mine repeats 'fair'" in capsys.readouterr().err


def test_every_place_that_a_built_in_system_names_is_there() -> None:
    found = extensions.extensions()
    assert {one.name for one in found} >= {"dynamicmr", "fawkes", "kueue", "mrorder", "progress-share", "qknober"}
    for one in found:
        tables = (one.policies, one.experiment_types, one.experiment_keys, one.benchmarks, one.actuators)
        places = [place for table in tables for place in table.values()]
        places += [*one.scenarios, *one.metrics, *(command.place for command in one.commands.values())]
        assert all(extensions.load(place) is not None for place in places), one.name
