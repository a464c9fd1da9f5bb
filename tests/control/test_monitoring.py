"""The alert rules and the board ask for metrics that the controller has, and fire when they should."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from harness.control.telemetry import Metrics

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "yarn-policy" / "monitoring"
RULES, BOARD = FOLDER / "prometheus-rules.yaml", FOLDER / "grafana.json"


def exported() -> set[str]:
    """The names of all series of the controller's page."""
    found = set()
    for family in Metrics().registry.collect():
        found |= {family.name, f"{family.name}_total", f"{family.name}_bucket"}
    return found


def expressions() -> list[str]:
    rules = [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    board = json.loads(BOARD.read_text())
    targets = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return rules + targets + [one["query"] for one in board["templating"]["list"]]


def test_every_metric_that_is_asked_for_is_exported() -> None:
    names = {name for text in expressions() for name in re.findall(r"yarnfair_\w+", text)}
    assert len(names) >= 10
    assert names - exported() == set()


def test_the_board_is_one_that_grafana_takes() -> None:
    board = json.loads(BOARD.read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [tuple(panel["gridPos"][key] for key in "xywh") for panel in panels]
    assert all(x + w <= 24 for x, _, w, _ in places)
    known = {one["name"] for one in board["templating"]["list"]}
    used = {name for text in expressions() for name in re.findall(r"\$(\w+)", text)}
    assert used <= known | {"labels", "value"}
    for panel in panels:
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"])


@pytest.mark.promtool
def test_the_rules_fire_when_they_should(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    shutil.copy(Path(__file__).with_name("alerts.yaml"), tmp_path)
    for command in (["check", "rules", RULES.name], ["test", "rules", "alerts.yaml"]):
        done = subprocess.run(["promtool", *command], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.promtool
def test_the_boards_expressions_are_promql(tmp_path: Path) -> None:
    """Each as a recording rule, with Grafana's variables filled in."""
    board = json.loads(BOARD.read_text())
    rules = [
        {
            "record": f"panel:{panel['id']}:{target['refId']}",
            "expr": re.sub(r"\$(instance|queue)", ".*", target["expr"]),
        }
        for panel in board["panels"]
        for target in panel["targets"]
    ]
    (tmp_path / "board.yaml").write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", "board.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
