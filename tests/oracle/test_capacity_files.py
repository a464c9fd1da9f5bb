"""What `validate` says of a capacity-scheduler.xml, against Hadoop's own CapacityScheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.validate import validate_properties
from tests.oracle.capacity_scripts import make_script, random_plan
from tests.oracle.decisions import decisions

pytestmark = pytest.mark.java

WEIGHTS = {"root.queues": "a,b", "root.a.capacity": "1w", "root.b.capacity": "3w"}
PERCENT = {"root.queues": "a,b", "root.a.capacity": "25", "root.b.capacity": "75"}
#: (what stands there instead, whether Hadoop refuses it). All of it is an error here.
MISTAKES: list[tuple[dict[str, str], dict[str, str], bool]] = [
    (WEIGHTS, {"root.c.capacity": "5w"}, False),
    (WEIGHTS, {"root.a.wieght": "5"}, False),
    (WEIGHTS, {"node-locallity-delay": "5"}, False),
    (WEIGHTS, {"root.a.capacity": "NaNw"}, False),
    (WEIGHTS, {"root.a.disable_preemption": "yes"}, False),
    (WEIGHTS, {"root.a.user-limit-factor": "0"}, False),
    (WEIGHTS, {"root.a.max-parallel-apps": "0"}, False),
    (WEIGHTS, {"root.a.capacity": "20000w"}, True),
    (WEIGHTS, {"root.a.capacity": "1x"}, True),
    (WEIGHTS, {"root.a.capacity": "50"}, True),
    (WEIGHTS, {"root.a.state": "HALTED"}, True),
    (WEIGHTS, {"root.a.ordering-policy": "utilization"}, True),
    (WEIGHTS, {"root.a.maximum-capacity": "200"}, False),
    (WEIGHTS, {"root.a.maximum-applications": "many"}, True),
    (WEIGHTS, {"root.capacity": "50"}, False),
    (WEIGHTS, {"root.queues": ""}, True),
    (PERCENT, {"root.a.capacity": "50"}, True),
    (PERCENT, {"root.b.maximum-capacity": "50"}, False),
]


def script(settings: dict[str, str], then: dict[str, str]) -> dict[str, Any]:
    return {"conf": {}, "capacity": settings, "nodes": [], "events": [{"t": 1, "reconfigure": {**settings, **then}}]}


def test_mistakes_are_errors_here_whether_hadoop_refuses_them_or_is_silent(tmp_path: Path) -> None:
    answers = decisions([script(base, change) for base, change, _ in MISTAKES], tmp_path, timeout_s=180)
    wrong = []
    for (base, change, refused), (_, answer) in zip(MISTAKES, answers, strict=True):
        if bool(answer["errors"]) != refused:
            wrong.append(f"{change}: Hadoop {'refuses' if answer['errors'] else 'takes'} it: {answer['errors']}")
        if validate_properties(render_properties({**base, **change})).valid:
            wrong.append(f"{change}: no error here")
    assert not wrong, "\n".join(wrong)


def test_a_root_that_makes_its_queues_by_itself_may_name_none(tmp_path: Path) -> None:
    settings = {"root.auto-queue-creation-v2.enabled": "true"}
    ((_, answer),) = decisions([script(settings, {})], tmp_path, timeout_s=180)
    assert not answer["errors"]
    assert validate_properties(render_properties(settings)).valid


def test_what_hadoop_plays_by_is_valid() -> None:
    for seed in range(1, 60):
        settings = make_script(random_plan(seed))["capacity"]
        if isinstance(settings, str):
            continue
        text = render_properties(
            {key.removeprefix("yarn.scheduler.capacity."): value for key, value in settings.items()}
        )
        assert validate_properties(text).errors == [], (seed, settings)
