"""The half-life of the controller: what the decision's rule names, and which reduces a load of the study has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.control.settings import HALF_LIFE_S
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from studies.half_life import SLOW_STARTS, named_by_the_rule, slow_started, table

RECORD = Path(__file__).resolve().parents[2] / "docs" / "records" / "half-life.json"


def _behind(**hours: float) -> dict[str, dict[str, float]]:
    return {name.removeprefix("of_"): {"behind_h": value} for name, value in hours.items()}


@pytest.mark.parametrize(
    ("holiday", "named"),
    [
        (_behind(of_3600=1, of_7200=24, of_10800=25, null=1, fair=0), 7200.0),
        (_behind(of_3600=1, of_7200=23, of_10800=24, null=1, fair=0), 10800.0),
        (_behind(of_3600=25, of_7200=25, of_10800=25, null=90, fair=0), None),
    ],
)
def test_the_rule_names_the_longest_half_life_with_which_no_absence_lasts_a_day(
    holiday: dict[str, dict[str, float]], named: float | None
) -> None:
    """Neither the memoryless policy nor an endless memory is a half-life of the series."""
    night = _behind(of_3600=0, of_7200=2, of_10800=3, null=4, fair=0)
    assert named_by_the_rule({"night": night, "holiday": holiday}) == named


def test_the_record_says_what_its_own_figures_say() -> None:
    """The controller's default is in the record; by its figures the rule names less for Hadoop's slow start."""
    values = json.loads(RECORD.read_text())["values"]
    assert values["chosen_s"] == HALF_LIFE_S
    for name, load in values["loads"].items():
        assert load["slow_start"] == SLOW_STARTS[name]
        assert load["rule_s"] == named_by_the_rule(load["absences"])
    shown = table(values).splitlines()
    assert [line.split("|")[1].strip() for line in shown[2:]].count("**1 day**") == 1


def test_only_reduces_begin_at_the_slow_start_of_a_load() -> None:
    """Maps wait for nobody, whatever the slow start is."""
    size, time = Resource(1024, 1), Duration("constant", value_s=1.0)
    job = JobSpec("j", "root.a", "mapreduce", size, (Stage("map", 2, size, time), Stage("r", 1, size, time, ("map",))))
    assert [stage.slow_start for stage in slow_started(job, 0.05).stages] == [1.0, 0.05]
