"""From a published capacity-scheduler.xml to a queue tree and back: every property stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.base.errors import InputError
from harness.cli import main
from harness.experiments.served import file_name
from harness.yarn.capacity.convert import render_configuration
from harness.yarn.capacity.properties import PREFIX, parse_configuration
from harness.yarn.capacity.tree import capacity_tree_of, read_capacity_tree
from tests.oracle.capacity_files import random_file
from tests.yarn.capacity.refused import FINE, TREES, changed, configuration

#: Of the shape of the file that Hadoop ships, and of what its documentation shows.
SAMPLE = """<configuration>
  <property><name>yarn.scheduler.capacity.maximum-applications</name><value>10000</value>
    <description>Maximum number of applications</description></property>
  <property><name>yarn.scheduler.capacity.maximum-am-resource-percent</name><value>0.1</value></property>
  <property><name>yarn.scheduler.capacity.resource-calculator</name>
    <value>org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator</value></property>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>default, "a b",prod</value></property>
  <property><name>yarn.scheduler.capacity.root.acl_submit_applications</name><value> </value></property>
  <property><name>yarn.scheduler.capacity.root.default.capacity</name><value>33.30</value></property>
  <property><name>yarn.scheduler.capacity.root."a b".capacity</name><value>16.7</value></property>
  <property><name>yarn.scheduler.capacity.root.default.state</name><value>RUNNING</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.capacity</name><value>50</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.queues</name><value>etl,007</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.etl.capacity</name><value>4w</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.007.capacity</name><value>${etl.weight}</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.007.disable_preemption</name><value>true</value></property>
  <property><name>yarn.scheduler.capacity.root.prod.accessible-node-labels.gpu.capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.gone.capacity</name><value>10</value></property>
  <property><name>yarn.scheduler.capacity.prod.user-limit-factor</name><value>2</value></property>
  <property><name>yarn.scheduler.capacity.queue-mappings</name><value>u:alice:etl,
    g:ops:prod.007</value></property>
  <property><name>yarn.scheduler.capacity.queue-mappings-override.enable</name><value>false</value></property>
  <property><name>yarn.scheduler.capacity.workflow-priority-mappings</name><value></value></property>
  <property><name>etl.weight</name><value>1e3</value></property>
</configuration>
"""


def settled(values: dict[str, str]) -> dict[str, str]:
    """With the lists of queues as they are written, which white space and empty names do not change."""
    found = {}
    for name, text in values.items():
        if name.startswith(PREFIX) and name.endswith(".queues"):
            text = ",".join(part.strip() for part in text.split(",") if part.strip())
            if not text:
                continue
        found[name] = text
    return found


def round_trip(values: dict[str, str]) -> None:
    text = yaml.safe_dump(capacity_tree_of(values, source="sample"), sort_keys=False, allow_unicode=True)
    again = read_capacity_tree(yaml.safe_load(text), str)
    assert settled(again) == settled(values)
    assert settled(dict(parse_configuration(render_configuration(again).encode(), source="x").values)) == settled(
        values
    )


def test_a_file_goes_through_a_tree_and_back() -> None:
    values = dict(parse_configuration(SAMPLE.encode(), source="sample").values)
    tree = capacity_tree_of(values, source="sample")
    assert tree["queues"]["prod"]["children"]["007"]["disable_preemption"] is True
    assert tree["queues"]["prod"]["capacity"] == 50
    assert tree["queues"]["default"]["capacity"] == "33.30", "its digits stay"
    assert tree["settings"]["prod.user-limit-factor"] == 2, "whatever no queue's is kept too"
    round_trip(values)


@pytest.mark.parametrize(
    "values",
    [
        dict(parse_configuration(Path("docker/scheduler/capacity-scheduler.xml").read_bytes(), source="docker").values),
        *(dict(parse_configuration(configuration(tree), source="x").values) for tree in TREES.values()),
        *(
            dict(parse_configuration(configuration(changed(tree, changes)), source=name).values)
            for name, tree, changes in FINE
        ),
    ],
)
def test_the_projects_files_go_through_a_tree_and_back(values: dict[str, str]) -> None:
    round_trip(values)


def test_random_files_go_through_a_tree_and_back() -> None:
    done = 0
    for seed in range(300):
        values = dict(parse_configuration(random_file(seed), source="random").values)
        try:
            capacity_tree_of(values, source="random")
        except InputError:
            continue
        round_trip(values)
        done += 1
    assert done > 250, "few files name a queue twice, or by a name with a dot"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{scheduler: capacity, queus: {}}", "did you mean 'queues'"),
        ("{scheduler: capacity}", "no queues"),
        ("{scheduler: capacity, queues: {1: {capacity: 100}}}", "no queue's name"),
        ("{scheduler: capacity, queues: {a.b: {capacity: 100}}}", "no queue's name"),
        ("{scheduler: capacity, queues: {a: {capacity: [1]}}}", "no single value"),
        ("{scheduler: capacity, queues: {a: 100}}", "not a mapping of settings"),
    ],
)
def test_trees_that_make_no_sense_are_refused(text: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        read_capacity_tree(yaml.safe_load(text), str)
    assert words in refused.value.line()


def test_render_from_a_file_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path("docker/scheduler") / file_name("capacity")
    with pytest.raises(SystemExit) as stop:
        main(["render", "--from", str(file), "-o", str(tmp_path / "queues.yaml")])
    assert not stop.value.code
    with pytest.raises(SystemExit) as stop:
        main(["render", str(tmp_path / "queues.yaml")])
    assert not stop.value.code
    before, after = (
        parse_configuration(one, source="x").values for one in (file.read_bytes(), capsys.readouterr().out.encode())
    )
    assert settled(dict(after)) == settled(dict(before))


def test_render_says_where_the_tree_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "queues.yaml"
    tree.write_text("scheduler: capacity\nqueues:\n  a: {capacity: 40}\n  b: {capacity: 40}\n")
    with pytest.raises(SystemExit) as stop:
        main(["render", str(tree)])
    assert stop.value.code == 1
    assert "sum to 80" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["render", str(tree), "--scheduler", "fair"])
    assert stop.value.code == 2
    assert "scheduler: capacity" in capsys.readouterr().err
