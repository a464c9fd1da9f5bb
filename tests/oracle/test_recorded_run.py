"""A simulated run, asked again of Hadoop's class: not only the scheduler but the use that virtual time makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.experiments.resolve import jobs_of, load_experiment, variants_of
from harness.experiments.simulated import setup_of, simulate_variant
from harness.sim.fair.decide import FairDecider
from tests.oracle.decisions import decisions, differences


def recorded(
    policy: str, until_s: float, experiment: str = "ltyarn", *, end_heartbeat_ms: int = -1
) -> tuple[Any, dict[str, Any]]:
    loaded = load_experiment(experiment)
    variant = variants_of(loaded, policies=[policy])[0]
    jobs, _ = jobs_of(loaded, variant.seed)
    setup = setup_of(loaded, variant, jobs)
    delays = replace(setup.delays, end_heartbeat_ms=end_heartbeat_ms)
    result = simulate_variant(
        replace(setup, time_limit_s=until_s, delays=delays, record_script=True, record_tasks=True)
    )
    assert result.script is not None
    return result, result.script


@pytest.mark.parametrize("policy", ["fair", "ltrf@outside"])
def test_the_script_of_a_run_gives_its_assignments(policy: str) -> None:
    result, script = recorded(policy, 240.0)
    ours = FairDecider(script).run()
    assert ours["errors"] == ours["skipped"] == ours["rejected"] == []
    assert len(ours["assignments"]) == result.assignments > 500
    # Tasks that have ended, by the moment and the node of their grant.
    tasks = result.tasks
    names = [node["name"] for node in script["nodes"]]
    granted = {(int(t), names[n]) for t, n in zip(tasks["granted_ms"], tasks["node"], strict=True)}
    assert len(granted) > 200
    assert granted <= {(a["t"], a["node"]) for a in ours["assignments"]}
    # Weights from outside are reloads of the script.
    assert any("reload" in event for event in script["events"]) == (policy != "fair")


@pytest.mark.java
@pytest.mark.parametrize("policy", ["fair", "ltrf@outside"])
def test_hadoops_class_decides_a_simulated_run_alike(policy: str, tmp_path: Path) -> None:
    """LTYARN's experiment, first minutes: nodes, heartbeats (those passed over too), asks, ends, reloads; under one
    policy nodes send heartbeats at ends too."""
    result, script = recorded(policy, 240.0, end_heartbeat_ms=10 if policy == "fair" else -1)
    ((explicit, theirs),) = decisions([script], tmp_path)
    assert len(theirs["assignments"]) == result.assignments
    assert not theirs["skipped"]
    assert differences(theirs, FairDecider(explicit).run()) == []


def test_an_order_that_is_not_hadoops_is_no_script() -> None:
    with pytest.raises(InputError, match="is not a decision script"):
        recorded("ltrf", 10.0)
