"""The real Prometheus scrapes a controller's metrics, takes the alert rules, and answers what the board asks."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import start_http_server

from harness.clusters.daemons import free_ports
from harness.control.telemetry import Metrics
from tests.control.test_monitoring import BOARD, RULES


def asked(port: int, path: str, **query: str) -> Any:
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]


@pytest.mark.promtool
def test_prometheus_itself_runs_the_rules_and_answers_the_board(tmp_path: Path) -> None:
    ports = free_ports(("controller", "prometheus"))
    server, thread = start_http_server(ports["controller"], "127.0.0.1", Metrics().registry)
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{RULES}]\n"
        "scrape_configs: [{job_name: yarnfair, static_configs: [{targets: ['127.0.0.1:%d']}]}]\n" % ports["controller"]
    )
    with (tmp_path / "log").open("w") as log:
        prometheus = subprocess.Popen(
            ["prometheus", "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
             "--storage.tsdb.path=data"], cwd=tmp_path, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        until = time.monotonic() + 300
        up: list[Any] = []
        rules: list[Any] = []
        while time.monotonic() < until and not (up and rules and all(rule["health"] == "ok" for rule in rules)):
            time.sleep(0.5)
            try:
                up = asked(ports["prometheus"], "query", query='yarnfair_released and up{job="yarnfair"} == 1')[
                    "result"
                ]
                groups = asked(ports["prometheus"], "rules")["groups"]
                rules = [rule for group in groups for rule in group["rules"]]
            except OSError:
                assert prometheus.poll() is None, (tmp_path / "log").read_text()[-1000:]
        assert up, (tmp_path / "log").read_text()[-1000:]
        assert len(rules) == RULES.read_text().count("- alert: ") == 8
        assert {rule["health"] for rule in rules} == {"ok"}
        for panel in json.loads(BOARD.read_text())["panels"]:
            for target in panel["targets"]:
                text = re.sub(r"\$(instance|queue)", ".*", target["expr"])
                assert "result" in asked(ports["prometheus"], "query", query=text), panel["title"]
        # A controller that is gone is about to be an alarm.
        server.shutdown()
        server.server_close()
        thread.join()
        found: set[str] = set()
        until = time.monotonic() + 300
        while time.monotonic() < until and "YarnfairGone" not in found:
            time.sleep(0.5)
            alerts = asked(ports["prometheus"], "alerts")["alerts"]
            found = {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "pending"}
        assert "YarnfairGone" in found
    finally:
        prometheus.terminate()
        prometheus.wait(timeout=30)
