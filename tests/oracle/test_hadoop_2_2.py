"""`hadoop: "2.2"` against the Fair Scheduler's own class of Hadoop 2.2.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.decisions import load
from tests.oracle.hadoop_2_2 import decisions, differ, plan_of, recorded, script_of


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.name.removesuffix(".json.gz"))
def test_recorded_decisions_are_ours(path: Path) -> None:
    script, theirs = load(path)
    assert len(theirs["assignments"]) > 400
    assert any(record["op"] == "reserve" for record in theirs["reserved"])
    assert differ(script, theirs) == []


def test_present_releases_decide_otherwise() -> None:
    """Else the records would not show that the option does anything."""
    for path in recorded():
        script, theirs = load(path)
        script["options"]["hadoop"] = "present"
        assert differ(script, theirs)


@pytest.mark.java
def test_every_decision_is_that_of_2_2_0(tmp_path: Path) -> None:
    seeds = range(200, 212)
    pairs = decisions([script_of(plan_of(seed)) for seed in seeds], tmp_path)
    assert sum(len(theirs["assignments"]) for _, theirs in pairs) > 3000
    found = {seed: differ(script, theirs) for seed, (script, theirs) in zip(seeds, pairs, strict=True)}
    assert {seed: words for seed, words in found.items() if words} == {}
