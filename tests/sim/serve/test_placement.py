"""What clients submit to a served cluster comes where its file's own placement rules place it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.experiments.scheduler_file import read_scheduler_file
from harness.experiments.served import setup_on_file
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.simulation import Application

FAIR = """<allocations>
  <queue name="prod"/><queue name="users" type="parent"/>
  <queuePlacementPolicy>
    <rule name="specified" create="false"/>
    <rule name="primaryGroup" create="false"/>
    <rule name="nestedUserQueue" create="false"><rule name="default" queue="users"/></rule>
    <rule name="reject"/>
  </queuePlacementPolicy>
</allocations>
"""
CAPACITY = """<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>prod,dev</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.capacity</name><value>50</value></property>
  <property><name>yarn.scheduler.capacity.root.dev.capacity</name><value>50</value></property>
  <property><name>yarn.scheduler.capacity.mapping-rule-format</name><value>json</value></property>
  <property><name>yarn.scheduler.capacity.mapping-rule-json</name><value>{"rules": [
    {"type": "group", "matches": "prod", "policy": "custom", "customPlacement": "root.prod"},
    {"type": "user", "matches": "mallory", "policy": "reject"}]}</value></property>
</configuration>
"""


def submitted(tmp_path: Path, text: str, user: str, queue: str) -> Application:
    path = tmp_path / "scheduler.xml"
    path.write_text(text)
    file = read_scheduler_file(path, groups={"alice": ("prod",)}).settled(())
    cluster = LiveCluster(setup_on_file(file, 0), path, clock=lambda: 0.0)
    stage = Stage("map", 1, Resource(1024, 1), Duration("constant", value_s=5.0))
    job = JobSpec("j", queue, "mapreduce", Resource(1024, 1), (stage,), user=user, name="j")
    return cluster.submit(cluster.new_number(), job, lambda app: None)


@pytest.mark.parametrize(
    ("text", "user", "queue", "comes"),
    [
        (FAIR, "bob", "prod", "root.prod"),
        (FAIR, "alice", "default", "root.prod"),
        (CAPACITY, "alice", "default", "root.prod"),
        (CAPACITY, "bob", "dev", "root.dev"),
    ],
)
def test_rules_place_it(tmp_path: Path, text: str, user: str, queue: str, comes: str) -> None:
    app = submitted(tmp_path, text, user, queue)
    assert (app.state, app.queue) == ("", comes)


@pytest.mark.parametrize(
    ("text", "user", "words"),
    [
        (FAIR, "bob", "rejected by placement rules"),
        (CAPACITY, "mallory", "rejected by a mapping rule"),
        (CAPACITY, "bob", "unknown queue: default"),
    ],
)
def test_rules_reject_it(tmp_path: Path, text: str, user: str, words: str) -> None:
    app = submitted(tmp_path, text, user, "default")
    assert app.state == "FAILED"
    assert words in app.diagnostics
