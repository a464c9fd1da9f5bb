"""Repeated measurements: what differs between seeds becomes a mean with an interval, everything else stays."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from harness.base.stats import half_width_95
from harness.report.gallery.spread import mean_of, spread
from studies.seeds import merged, over_seeds, shown

RECORDS = Path(__file__).resolve().parents[2] / "docs" / "records"


def test_the_interval_is_students() -> None:
    # Five values with deviation 1: t(4) = 2.776 over the root of five.
    values = [1 + step / 2.5**0.5 for step in (-2, -1, 0, 1, 2)]
    assert half_width_95(values) == pytest.approx(2.7764451 / 5**0.5)
    assert half_width_95([3.0]) == 0


def test_it_holds_the_mean_in_95_of_100() -> None:
    draw = random.Random(4)
    held = 0
    for _ in range(2000):
        values = [draw.gauss(7, 2) for _ in range(5)]
        held += abs(sum(values) / 5 - 7) <= half_width_95(values)
    assert 0.93 < held / 2000 < 0.97


def test_documents_are_merged_leaf_by_leaf() -> None:
    found = over_seeds(lambda seed: {"name": "x", "at": [1, 2], "rows": [{"took": seed, "of": 10}]}, 3)
    assert found["seeds"] == 3
    assert found["name"] == "x"
    assert found["at"] == [1, 2]
    assert found["rows"][0]["of"] == 10
    assert {key: found["rows"][0]["took"][key] for key in ("mean", "min", "max")} == {"mean": 2, "min": 1, "max": 3}
    assert over_seeds(lambda seed: {"took": seed}, 1) == {"seeds": 1, "took": 1}


@pytest.mark.parametrize("other", [{"b": 1}, {"a": "y"}, {"a": [1]}, {"a": True}])
def test_what_does_not_fit_is_an_error(other: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        merged([{"a": "x"} if other == {"a": "y"} else {"a": [1, 2]} if other == {"a": [1]} else {"a": 0.5}, other])


def test_cells() -> None:
    assert shown(1.0) == "1.00"
    assert shown(spread([1.0, 2.0, 3.0]), ".1f", " %", 100) == "200.0 ± 248.4 %"
    # One value has no interval.
    assert shown(spread([2.0])) == "2.00"
    assert mean_of(spread([1.0, 2.0])) == 1.5


#: Chapters 3 and 4: what is drawn from a seed is measured over five at least.
REPEATED = [
    *("dynamicmr-borrowed", "dynamicmr-early", "dynamicmr-locality", "dynamicmr-outside", "dynamicmr-sepb"),
    *("mrorder-intervals", "mrorder-online"),
]


@pytest.mark.parametrize("name", REPEATED)
def test_the_thesis_records_have_five_seeds(name: str) -> None:
    values = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))["values"]
    assert values["seeds"] >= 5
    assert "ci95" in json.dumps(values)
