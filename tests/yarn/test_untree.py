"""From a published allocation file to a queue tree and back: the queues and their settings in effect stay the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from harness.base.documents import read_yaml
from harness.base.errors import InputError
from harness.cli import main
from harness.experiments.resolve import allocation_file, experiment_path, load_experiment
from harness.model.brought import names
from harness.model.queues import QueueSettings
from harness.model.resources import Resource
from harness.yarn.capacity.convert import convert_allocations, render_properties
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.tree import capacity_tree_of, read_capacity_tree
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.render import in_float32, render_allocations
from harness.yarn.fair.tree import read_tree
from harness.yarn.fair.untree import tree_of

#: Of the shapes that Hadoop's documentation and its test resources show.
SAMPLE = """<?xml version="1.0"?>
<allocations>
  <queue name="sample_queue">
    <minResources>10000 mb,0vcores</minResources>
    <maxResources>90000 mb,10vcores</maxResources>
    <maxRunningApps>50</maxRunningApps>
    <maxAMShare>0.1</maxAMShare>
    <weight>2.0</weight>
    <schedulingPolicy>fair</schedulingPolicy>
    <queue name="sample_sub_queue">
      <aclSubmitApps>charlie</aclSubmitApps>
      <minResources>5000 mb,0vcores</minResources>
    </queue>
    <queue name="sample_reservable_queue"><reservation></reservation></queue>
  </queue>
  <queueMaxAMShareDefault>0.5</queueMaxAMShareDefault>
  <queueMaxResourcesDefault>40000 mb,4vcores</queueMaxResourcesDefault>
  <queue name="secondary_group_queue" type="parent">
    <weight>3.0</weight>
    <maxChildResources>4096 mb,4vcores</maxChildResources>
  </queue>
  <queue name="percent"><maxResources>memory-mb=33.3%, vcores=20%</maxResources></queue>
  <queue name="lent"><allowPreemptionFrom>false</allowPreemptionFrom><weight>0.1</weight></queue>
  <user name="sample_user"><maxRunningApps>30</maxRunningApps></user>
  <userMaxAppsDefault>5</userMaxAppsDefault>
  <defaultFairSharePreemptionThreshold>0.8</defaultFairSharePreemptionThreshold>
  <defaultMinSharePreemptionTimeout>60</defaultMinSharePreemptionTimeout>
  <queuePlacementPolicy>
    <rule name="specified" />
    <rule name="primaryGroup" create="false" />
    <rule name="nestedUserQueue"><rule name="secondaryGroupExistingQueue" create="false" /></rule>
    <rule name="default" queue="lent"/>
  </queuePlacementPolicy>
</allocations>
"""
#: A parent cannot have an AM share of its own: it has no effect there, and the tree has none.
WITHOUT = SAMPLE.replace("    <maxAMShare>0.1</maxAMShare>\n", "")


def round_trip(text: str) -> None:
    file = parse_allocations(text)
    data = yaml.safe_load(yaml.safe_dump(tree_of(file, source="sample"), sort_keys=False))
    again = parse_allocations(render_allocations(read_tree(data, str)))
    assert list(queue_tree(again)) == list(queue_tree(file)) or {q.path: q for q in queue_tree(again)} == {
        q.path: q for q in queue_tree(file)
    }
    assert again.placement_rules == file.placement_rules
    assert again.user_max_apps == file.user_max_apps


@pytest.mark.parametrize("text", [WITHOUT, Path("docker/scheduler/fair-scheduler.xml").read_text()])
def test_a_file_goes_through_a_tree_and_back(text: str) -> None:
    round_trip(text)


def test_odd_files_that_the_rm_takes_as_written_go_through_a_tree_and_back() -> None:
    """Weight 0 is documented, and a space within a name is a part of it."""
    round_trip(
        "<allocations><queue name='idle'><weight>0</weight><queue name='a'/></queue>"
        "<queue name='my queue'/></allocations>"
    )
    # Hadoop's own sample for fs2cs names a queue in a rule that has none.
    round_trip(
        "<allocations><queue name='a'/><queuePlacementPolicy><rule name='primaryGroup' create='false' queue='users'/>"
        "<rule name='default'/></queuePlacementPolicy></allocations>"
    )


def test_what_a_tree_refuses_is_refused_with_its_queue() -> None:
    with pytest.raises(InputError, match="weight"):
        tree_of(parse_allocations("<allocations><queue name='a'><weight>-1</weight></queue></allocations>"), source="x")


def test_what_has_no_effect_at_the_root_is_left_out() -> None:
    file = parse_allocations(
        "<allocations><queue name='root'><weight>3</weight><queue name='a'/></queue></allocations>"
    )
    assert tree_of(file, source="x") == {"queues": {"a": {}}}


def test_render_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fair.xml").write_text(WITHOUT)
    with pytest.raises(SystemExit) as stop:
        main(["render", "--from", str(tmp_path / "fair.xml"), "-o", str(tmp_path / "queues.yaml")])
    assert not stop.value.code
    with pytest.raises(SystemExit) as stop:
        main(["render", str(tmp_path / "queues.yaml")])
    assert not stop.value.code
    before, after = (
        {q.path: q for q in queue_tree(parse_allocations(one))} for one in (WITHOUT, capsys.readouterr().out)
    )
    assert after == before


def test_the_files_of_all_experiments_go_through_a_tree_and_back() -> None:
    """As allocation files, and as the Capacity Scheduler's files that they convert to."""
    done = 0
    for name in names("experiments"):
        document = read_yaml(experiment_path(name))
        if document.data.get("kind") is not None:
            continue
        allocations = allocation_file(load_experiment(name, document).spec)
        root = QueueSettings(
            "root",
            min_share_preemption_timeout_ms=allocations.default_min_share_preemption_timeout_ms,
            fair_share_preemption_timeout_ms=allocations.default_fair_share_preemption_timeout_ms,
            fair_share_preemption_threshold=allocations.default_fair_share_preemption_threshold,
        )
        settings = {"root": root, **allocations.settings}
        round_trip(render_allocations(in_float32(replace(allocations, settings=settings))))
        text = render_properties(convert_allocations(allocations, cluster=Resource(1 << 20, 1024)).properties)
        values = parse_configuration(text.encode(), source=name).values
        tree = yaml.safe_load(yaml.safe_dump(capacity_tree_of(values, source=name), sort_keys=False))
        assert read_capacity_tree(tree, str) == dict(values)
        done += 1
    assert done >= 20
