"""Our engine against recorded decisions of Hadoop's class (python -m tests.oracle.decisions records them anew)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.sim.capacity import state as capacity
from harness.sim.decide import decider
from harness.sim.fair import state as fair
from harness.sim.fifo import state as fifo
from tests.oracle.decisions import differences, load, recorded, recorded_capacity, recorded_fifo

RECORDED = {"fair": recorded(), "capacity": recorded_capacity(), "fifo": recorded_fifo()}
MUTATIONS = [
    pytest.param(scheduler, value, id=f"{scheduler}-{name}")
    for scheduler, state in (("fair", fair), ("capacity", capacity), ("fifo", fifo))
    for name, value in vars(state).items()
    if name.startswith("MUT_")
]


@cache
def pair(path: Path) -> tuple[Any, Any]:
    return load(path)


@pytest.mark.parametrize(
    "path",
    [path for paths in RECORDED.values() for path in paths],
    ids=lambda path: f"{path.parent.name}-{path.name.removesuffix('.json.gz')}",
)
def test_recorded_decisions_are_ours(path: Path) -> None:
    script, theirs = pair(path)
    assert len(theirs["assignments"]) > 250
    assert differences(theirs, decider(script).run()) == []


@pytest.mark.parametrize(("scheduler", "mutation"), MUTATIONS)
def test_a_feature_switched_off_is_noticed(scheduler: str, mutation: int) -> None:
    def noticed(path: Path) -> bool:
        script, theirs = pair(path)
        return bool(differences(theirs, decider(script, mutations=mutation).run()))

    assert any(noticed(path) for path in RECORDED[scheduler]), "no recorded decision depends on it"


def test_the_comparison_sees_a_single_change() -> None:
    script, theirs = pair(recorded()[0])
    ours = decider(script).run()
    ours["assignments"] = [dict(record) for record in ours["assignments"]]
    ours["assignments"][-1]["node"] = "elsewhere"
    assert len(differences(theirs, ours)) == 1
    del ours["assignments"][-1]
    assert len(differences(theirs, ours)) == 1
