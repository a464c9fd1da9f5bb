"""A large simulation's memory and time hour by hour: what was counted adds up, in small."""

from __future__ import annotations

from studies.largest import measure


def test_hours_add_up() -> None:
    found = measure(nodes=20, applications=8, hours=2)
    assert found["events"] == sum(hour["events"] for hour in found["hourly"]) > found["tasks"] > 2000
    assert len(found["hourly"]) == 2
    assert found["hourly"][1]["load"] > 0.9
    assert found["virtual_s"] == 7200.0
