"""Our engine against recorded decisions of Hadoop's class (python -m tests.oracle.decisions records them anew)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.sim.decide import Decider
from harness.sim.fair import state
from tests.oracle.decisions import differences, load, recorded

MUTATIONS = {name: value for name, value in vars(state).items() if name.startswith("MUT_")}


@cache
def pair(path: Path) -> tuple[Any, Any]:
    return load(path)


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.name.removesuffix(".json.gz"))
def test_recorded_decisions_are_ours(path: Path) -> None:
    script, theirs = pair(path)
    assert len(theirs["assignments"]) > 300
    assert differences(theirs, Decider(script).run()) == []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_feature_switched_off_is_noticed(name: str) -> None:
    def noticed(path: Path) -> bool:
        script, theirs = pair(path)
        return bool(differences(theirs, Decider(script, mutations=MUTATIONS[name]).run()))

    assert any(noticed(path) for path in recorded()), f"no recorded decision depends on {name}"


def test_the_comparison_sees_a_single_change() -> None:
    script, theirs = pair(recorded()[0])
    ours = Decider(script).run()
    ours["assignments"] = [dict(record) for record in ours["assignments"]]
    ours["assignments"][-1]["node"] = "elsewhere"
    assert len(differences(theirs, ours)) == 1
    del ours["assignments"][-1]
    assert len(differences(theirs, ours)) == 1
