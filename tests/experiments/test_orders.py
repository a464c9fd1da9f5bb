"""What an experiment's queues choose for themselves reaches the scheduler, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.base.errors import InputError
from harness.experiments.orders import check_orders, has_own, queue_orders
from harness.experiments.resolve import LoadedExperiment, allocation_file, load_experiment, variants_of
from harness.experiments.simulated import setup_of
from harness.model.plan import QueueOrder
from tests.experiments.campaigning import EXPERIMENT


def load(folder: Path, queues: dict[str, Any], policy: str = "naive-hltrf") -> LoadedExperiment:
    load = next(iter(EXPERIMENT["workloads"].values()))
    leaf = next(name for name, queue in queues.items() if not (queue or {}).get("children"))
    document = {**EXPERIMENT, "queues": queues, "workloads": {leaf: load}, "policies": [policy]}
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(document))
    return load_experiment(str(path))


QUEUES = {
    "x": {"scheduling_policy": "ltrf", "quantum_s": 5, "round_s": 60, "application_weights": {"big": 2}},
    "y": {"scheduling_policy": "fifo"},
    "g": {"scheduling_policy": "fair", "children": {"a": None, "b": {"quantum_s": 0}}},
}


def test_they_reach_the_scheduler(tmp_path: Path) -> None:
    experiment = load(tmp_path, QUEUES)
    (variant,) = variants_of(experiment, seeds=[1])
    check_orders(experiment, variant)
    assert setup_of(experiment, variant, []).queue_orders == {
        "root.x": QueueOrder("ltrf", 5, 60, {"big": 2}),
        "root.y": QueueOrder("fifo"),
        "root.g": QueueOrder("fair"),
        "root.g.b": QueueOrder(quantum_s=0),
    }
    file = allocation_file(experiment.spec)
    assert [file.scheduling_policy(f"root.{q}") for q in "xy"] == ["fair", "fifo"]
    assert has_own(experiment.spec) is not None


def test_a_queue_without_a_choice_has_none(tmp_path: Path) -> None:
    experiment = load(tmp_path, {"x": {"weight": 2}})
    assert queue_orders(experiment.spec) == {}
    assert has_own(experiment.spec) is None


@pytest.mark.parametrize(
    ("policy", "queue", "says"),
    [
        ("ltrf", {"scheduling_policy": "fair", "children": {"a": None}}, "leaves against each other"),
        ("fair", {"scheduling_policy": "ltrf", "children": {"a": None}}, "cannot be divided by ltrf"),
        ("naive-hltrf@outside", {"scheduling_policy": "ltrf", "children": {"a": None}}, "cannot be divided by ltrf"),
        ("fair", {"round_s": 5, "children": {"a": None}}, "long-term sharing"),
        ("naive-hltrf", {"application_weights": {"j": 2}, "children": {"a": None}}, "a leaf's"),
        ("naive-hltrf", {"application_weights": {"j": 2}}, "scheduling_policy: ltrf"),
        ("naive-hltrf", {"round_s": 5}, "scheduling_policy: ltrf"),
        ("fair", {"quantum_s": 5}, "long-term policy"),
    ],
)
def test_what_would_not_be_obeyed_is_refused(tmp_path: Path, policy: str, queue: Any, says: str) -> None:
    experiment = load(tmp_path, {"x": None, "q": queue}, policy)
    (variant,) = variants_of(experiment, seeds=[1])
    with pytest.raises(InputError, match=says) as caught:
        check_orders(experiment, variant)
    assert "own.yaml" in (caught.value.where or "")
