"""What experiments ask of a scheduler's record: nothing is offered or taken on FIFO that it cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.experiments.orders import check_orders
from harness.experiments.resolve import LoadedExperiment, load_experiment, variants_of
from harness.experiments.scheduler_file import file_of
from harness.predict.whatif import offered

EXPERIMENT = """
experiment: small
cluster: {{nodes: [{{count: 2, memory_mb: 4096, vcores: 4}}]}}
queues: {{default: {{{queue}}}}}
workloads: {{default: contended/purdue}}
scheduler: {scheduler}
policies: [fifo]
{more}
"""


def loaded(folder: Path, scheduler: str, queue: str = "", more: str = "") -> LoadedExperiment:
    path = folder / "small.yaml"
    path.write_text(EXPERIMENT.format(scheduler=scheduler, queue=queue, more=more))
    return load_experiment(str(path))


def test_a_page_offers_the_policies_that_can_act(tmp_path: Path) -> None:
    assert offered(loaded(tmp_path, "fifo")) == ["fifo"]
    on_capacity = offered(loaded(tmp_path, "capacity"))
    assert "ltrf@outside" in on_capacity
    assert "ltrf" not in on_capacity
    assert "ltrf" in offered(loaded(tmp_path, "fair"))


def test_slots_are_given_out_by_no_scheduler_that_is_named(tmp_path: Path) -> None:
    experiment = loaded(tmp_path, "fifo", more="slots: {map: 2, reduce: 1}")
    with pytest.raises(InputError, match="slots are MRv1's") as error:
        variants_of(experiment)
    assert error.value.hint == "leave out scheduler: fifo"


def test_a_queue_has_no_policy_of_its_own_where_nothing_orders_inside(tmp_path: Path) -> None:
    experiment = loaded(tmp_path, "fifo", queue="scheduling_policy: ltrf")
    (variant,) = variants_of(experiment)
    with pytest.raises(InputError, match="policies of queues are the Fair Scheduler's"):
        check_orders(experiment, variant)


def test_a_scheduler_without_a_file_says_so() -> None:
    with pytest.raises(InputError, match="the FIFO scheduler has no file of its own"):
        file_of("fifo")
