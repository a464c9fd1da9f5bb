"""`sim serve` takes the numbers that `run` takes: it rounds them to float32 as a ResourceManager does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.experiments.real.schedulers import file_text
from harness.experiments.served import experiment_setup, with_file
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.render import render_allocations

EXPERIMENT = """
experiment: a
cluster: {nodes: [{count: 1, memory_mb: 4096, vcores: 4}]}
QUEUES
workloads:
  a: {inline: {kind: sequence, submission: {every_s: 5}, am: {memory_mb: 512}, task: {demand: {memory_mb: 512},
      duration: {constant_s: 9}}, jobs: [{name: j, maps: 2}]}}
policies: [fair]
"""


@pytest.mark.parametrize(
    "queues",
    [
        "queues: {a: {weight: 0.3}, b: {}}",
        "queues: {a: {max_am_share: 0.05}, b: {max_am_share: 0.3}}",
        "max_am_share: 0.1\nqueues: {a: {}, b: {}}",
    ],
)
def test_numbers_that_float32_does_not_hold_are_served_as_they_are_run(tmp_path: Path, queues: str) -> None:
    (tmp_path / "a.yaml").write_text(EXPERIMENT.replace("QUEUES", queues))
    setup = experiment_setup(str(tmp_path / "a.yaml"), None, None)
    served = with_file(setup, tmp_path / "fair-scheduler.xml")
    read = parse_allocations((tmp_path / "fair-scheduler.xml").read_text(), source="x")
    for path, settings in setup.allocations.settings.items():
        for name in ("weight", "max_am_share"):
            value = getattr(settings, name)
            rounded = None if value is None else float32(value)
            assert getattr(served.allocations.settings[path], name) == rounded
            assert getattr(read.settings[path], name) == rounded
    assert read.queue_max_am_share_default == float32(setup.allocations.queue_max_am_share_default)
    # The same on a real cluster.
    assert parse_allocations(file_text(setup.allocations), source="x").settings["root.a"] == read.settings["root.a"]


def test_what_no_file_can_express_is_named_with_its_queue_and_key(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(EXPERIMENT.replace("QUEUES", "queues: {a: {weight: 1}, b: {}}"))
    allocations = experiment_setup(str(tmp_path / "a.yaml"), None, None).allocations
    wrong = replace(allocations.settings["root.a"], weight=0.3)
    with pytest.raises(InputError, match=r"root\.a weight \(0\.3 comes back as 0\.30000001"):
        render_allocations(replace(allocations, settings={**allocations.settings, "root.a": wrong}))
