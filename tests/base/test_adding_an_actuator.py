"""What an actuator costs: a package outside the tree of two files, and `enforce` steers a system of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXTENSION = '''
"""Shares in a file of lines, as some system outside of YARN might read them."""

from harness.base.extensions import Extension

EXTENSION = Extension(name="lines", actuators={"lines": "lines_package.actuator:SYSTEM"})
'''
ACTUATOR = '''
from contextlib import nullcontext
from pathlib import Path

from harness.control.actuator import BaseActuator, Prepared
from harness.control.events import Observed
from harness.control.identity import ClusterFacts
from harness.control.values import entitlement
from harness.ledger.accounts import AppObservation
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.yarn.files import always


class Lines(BaseActuator):
    """`NAME SHARE` a line; values are numbers."""

    PARTS = {"baseline": dict, "ours": lambda own: {name: list(values) for name, values in own.items()}}
    ATTRIBUTES, SHARE = ("share",), "share"
    scheduler, values_name, load_validates, loaded_otherwise = "lines", "shares", True, "at once"
    beside = None

    def _read(self, *, words_lost):
        stands = self._stands()
        for path, values in stands.items():
            self.baseline.setdefault(path, dict(values))
        return self._merge(stands, words_lost=words_lost)

    def _stands(self):
        lines = self.store.read_text().splitlines()
        return {f"root.{name}": {"share": float(share)} for name, share in map(str.split, lines)}

    def prepare(self, attributes):
        self.generation += 1
        stands = self._stands()
        return self._prepared({path: {"share": w} for path, w in attributes.weights.items() if path in stands})

    def original(self):
        return self._prepared({})

    def _prepared(self, wanted):
        stands = self._stands()
        due = {path: values["share"] for path, values in self._due(wanted, stands) if values}
        after = {path: due.get(path, values["share"]) for path, values in stands.items()}
        text = "".join(f"{path.removeprefix('root.')} {share}\\n" for path, share in after.items())
        return Prepared(self.store.read_bytes(), text.encode(), due)

    def write(self, prepared, still=always):
        still()
        self.store.write_bytes(prepared.after)
        self._settle()

    def configured_weights(self):
        return {path: entitlement(values["share"]) for path, values in self.baseline.items()}

    def present(self):
        return {path: values["share"] for path, values in self._stands().items()}

    def in_force(self, client):
        return self.present()

    def confirm(self, client, wanted, *, timeout_s, every_s):
        assert wanted.items() <= self.present().items()

    def min_shares(self):
        return {}

    def max_shares(self, capacity):
        return {}

    def name_queues(self, leaves, now_s):
        pass

    def problems_of(self, prepared):
        return ()

    def traps(self, client, hadoop):
        return ()

    def forget_traps(self):
        pass

    def load(self, client):
        pass

    def differences(self, client):
        return {}

    def recognise_by(self, recognise):
        pass

    def _by_hand(self, share):
        return True

    def _limit_by_hand(self, attribute, value):
        return True

    def _own_refusals(self):
        return ()

    def _unite(self, stands):
        return []

    def _look_anew(self):
        pass


class Looks:
    """Each queue holds half of the system."""

    news, clock_s, answer_s, latest_end_ms, earliest_s, hadoop = "", None, 0.0, 0, None, (0, 0)
    refused, skipped = {}, {}

    def __init__(self, client, context):
        self.client, self.context, self.identity, self.facts = client, context, None, ClusterFacts()

    def check_cluster(self):
        pass

    def queues(self):
        return {"root", "root.a", "root.b"}

    def look(self, actuator):
        now_s, half = self.context.clock(), Resource(512, 1)
        weights = actuator.configured_weights() | dict(self.context.settings.entitlements)
        self.context.accounts.observe(now_s, [AppObservation(q, q, 0, 0, half, False) for q in ("root.a", "root.b")])
        views = {"root": QueueView("root", None, False, demand=half + half)}
        for path in ("root.a", "root.b"):
            views[path] = QueueView(path, "root", True, weights[path], allocated=half, demand=half)
        return Observed(Snapshot(now_s, half + half, views, 5.0), {"root.a": (0, 0), "root.b": (0, 0)})


class System:
    def open_client(self, settings, options):
        return nullcontext(Path(settings["file"]))

    def open_actuator(self, settings, client, document):
        return Lines.restored(client, document)

    def open_observer(self, client, context):
        return Looks(client, context)

    def address(self, settings):
        return settings["file"]


SYSTEM = System()
'''
CONFIG = """
policy: ltrf
ledger: ledger.db
actuator: lines
actuator_settings: {file: shares.txt}
queues: {a: 4}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the import path with the package of two files, and what an installer writes of its entry points."""
    package, info = tmp_path / "lines_package", tmp_path / "lines_package-1.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text(EXTENSION)
    (package / "actuator.py").write_text(ACTUATOR)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lines_package\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[yarnfair.systems]\nlines = lines_package:EXTENSION\n")
    (tmp_path / "enforce.yaml").write_text(CONFIG)
    (tmp_path / "shares.txt").write_text("a 1.0\nb 2.0\n")
    return tmp_path


def enforce(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", "enforce", "--config", "enforce.yaml", *arguments],
        cwd=site,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(Path(__file__).resolve().parents[2])])},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_package_outside_the_tree_adds_an_actuator_in_two_files(site: Path) -> None:
    done = enforce(site, "--once")
    assert done.returncode == 0, done.stderr
    shares = dict(line.split() for line in (site / "shares.txt").read_text().splitlines())
    assert float(shares["a"]) / float(shares["b"]) == pytest.approx(4 / 2, rel=0.01), "nothing is owed yet"
    (site / "shares.txt").write_text(f"a {shares['a']}\nb 3.0\n")
    done = enforce(site, "--once")
    assert done.returncode == 0, done.stderr
    assert "foreign" in done.stderr, "somebody else's edit is told"
    done = enforce(site, "--release")
    assert done.returncode == 0, done.stderr
    assert (site / "shares.txt").read_text() == "a 1.0\nb 3.0\n", "the administrator's, with his edit"
