"""Settings of the Capacity Scheduler that nobody means: our engine takes each as Hadoop's class does, or refuses it.

Each comes by a change while applications run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.sim.decide import decider
from tests.oracle.decisions import decisions, differences

pytestmark = pytest.mark.java

_QUEUES = {"root.queues": "a,b,c", "root.a.queues": "d,e", "maximum-am-resource-percent": "1.0"}
_LEAVES = ("a.d", "a.e", "b", "c")
_DRF = {"resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"}


def _capacities(a: str, b: str, c: str, d: str, e: str) -> dict[str, str]:
    return {
        f"root.{path}.capacity": text for path, text in zip(("a", "b", "c", "a.d", "a.e"), (a, b, c, d, e), strict=True)
    }


WEIGHT = {**_QUEUES, **_capacities("3w", "2w", "1w", "1w", "2w")}
PERCENT = {**_QUEUES, **_capacities("50", "30", "20", "40", "60")}
ABSOLUTE = {
    **_QUEUES,
    **_DRF,
    **_capacities(
        *(f"[memory={mb},vcores={cores}]" for mb, cores in ((32768, 20), (16384, 8), (8192, 4), (8192, 8), (16384, 8)))
    ),
}
_BASES = {"weight": WEIGHT, "percent": PERCENT, "absolute": ABSOLUTE}


def _each(base: str, keys: str, *texts: str | None) -> list[tuple[str, Any]]:
    """A row for each key and each text that it is given; None: the key is left out."""
    return [(base, {key: text}) for key in keys.split() for text in texts]


_MAXIMA = ("0", "-1", "-2", "1e-9", "100.5", "1e9", "NaN", "Infinity", "", "5w", "50%", "[memory=8192,vcores=4]")
#: (base, changes).
CHANGES: list[tuple[str, Any]] = [
    *_each(
        "weight",
        "root.b.capacity",
        *("0w", "-1w", "-1.0000001w", "-0.5w", "-0.0000001w", "NaNw", "Infinityw", "10000w", "10000.001w"),
        *("1e-7w", "0x1p1w", "2fw", "2 w", " 2w ", "+2w", "w", "2W", "2ww"),
        *("", "0", "-0", "30", None, "[memory=1w,vcores=1w]", "[memory=0]"),
    ),
    ("weight", _capacities("0w", "0w", "0w", "1w", "1w")),
    ("weight", _capacities("1e-7w", "1e-7w", "1e-7w", "1w", "1w")),
    ("weight", _capacities("3w", "0", "1w", "0w", "0w")),
    ("weight", _capacities("3w", "2w", "1w", "0", "0")),
    ("weight", _capacities("3w", "2w", "1w", "50", "50")),
    ("weight", _capacities("-1w", "-1w", "-1w", "1w", "1w")),
    ("weight", _capacities("10000w", "10000w", "0.0001w", "1w", "1w")),
    *_each("percent", "root.b.capacity", "30.04", "30.06", "29.96", "-0", "0x1.ep4", "30f", "NaN", "30%", ""),
    *(("percent", {"root.b.capacity": b, "root.c.capacity": c}) for b, c in (("50", "0"), ("60", "-10"), ("50", None))),
    ("percent", _capacities("0", "1w", "2w", "1w", "1w")),
    ("percent", _capacities("100", "0", "0", "0", "100")),
    ("percent", _capacities("0", "50", "50", "0", "0")),
    ("percent", _capacities("0", "50", "50", "50", "50")),
    ("percent", _capacities("0", "0", "0", "0", "0")),
    ("percent", _capacities("50", "30", "20", "0", "0")),
    ("percent", _capacities("3w", "2w", "1w", "40", "60")),
    ("percent", _capacities("50", "30", "20", "1w", "1w")),
    ("percent", {"root.a.allow-zero-capacity-sum": "true", **_capacities("50", "30", "20", "0", "0")}),
    *_each("weight", "root.b.maximum-capacity", *_MAXIMA),
    *_each("percent", "root.b.maximum-capacity", *_MAXIMA),
    *(
        ("weight", {"root.a.maximum-capacity": text, "root.a.d.maximum-capacity": below})
        for text, below in (("50", "[memory=4096,vcores=4]"), ("[memory=16384,vcores=8]", "[memory=4096,vcores=4]"))
    ),
    *_each("weight", "root.capacity root.maximum-capacity", "50", "5w", "-1", "x", "0"),
    *_each(
        "absolute",
        "root.b.capacity",
        *("[memory=16384]", "[vcores=8]", "[memory=0,vcores=8]", "[memory=16384,vcores=0]"),
        *("[memory=16Gi,vcores=8]", "[memory=16g,vcores=8]", "[memory=16384Mi,vcores=8]"),
        *("[memory = 16384, vcores = 8]", "[ memory=16384,vcores=8 ]", " [memory=16384,vcores=8] "),
        *("[memory-mb=16384,vcores=8]", "[Memory=16384,vcores=8]", "[memory=16384.5,vcores=8]"),
        *("[memory=-16384,vcores=8]", "[memory=16384,vcores=8589934592]", "[memory=16384,vcores=4294967304]"),
        *("[memory=16384,vcores=8,gpu=1]", "[memory=16384,memory=8192,vcores=8]", "[memory=16384;vcores=8]"),
        *("[memory=16384,vcores=8", "[memory=50%,vcores=50%]", "[memory=9999999,vcores=8]", "[]"),
        *("0", "2w", "30"),
    ),
    *_each(
        "absolute",
        "root.b.maximum-capacity",
        *("[memory=16384,vcores=8]", "[memory=8192,vcores=8]", "[memory=16384,vcores=4]", "[memory=0,vcores=8]"),
        *("[memory=65536]", "[memory=99999999,vcores=4294967295]", "[memory=99999999,vcores=2147483648]"),
        *("[memory=99999999,vcores=2147483647]", "50", ""),
    ),
    *(
        ("absolute", {"root.a.maximum-capacity": above, "root.a.d.maximum-capacity": below})
        for above, below in (
            ("[memory=40960,vcores=24]", "[memory=50000,vcores=8]"),
            ("[memory=40960,vcores=24]", "[memory=16384,vcores=30]"),
            ("[memory=40960,vcores=24]", ""),
        )
    ),
    ("absolute", {"root.a.d.capacity": "[memory=30000,vcores=2]"}),
    ("absolute", {"root.a.d.capacity": "[memory=3000,vcores=20]"}),
    *_each(
        "weight",
        "root.b.maximum-applications root.b.max-parallel-apps root.b.priority",
        *("0", "-1", "-5", "0x3", "0x", "-0x2", "2147483648", "+3", " 3 ", "3.0", ""),
    ),
    *_each(
        "weight",
        "root.b.user-limit-factor root.b.minimum-user-limit-percent root.b.maximum-am-resource-percent",
        *("0", "-1", "-0.5", "101", "NaN", "Infinity", "0x1p1", "1f", "", "one"),
    ),
    *_each("weight", "root.b.state", "running", "stopped", " STOPPED ", "", "DRAINING"),
    *_each("weight", "root.b.ordering-policy", "", "FAIR", " fair ", "fair,fifo", "utilization"),
    *_each("weight", "root.a.ordering-policy", "", "fair", "priority-utilization", "UTILIZATION"),
    *_each("weight", "root.queues", "a,b,c,", "a,,b,c", " a , b , c ", "a,b,c,a", "a,b"),
    *_each("weight", "maximum-applications global-queue-max-application", "0", "-1", "0x10", "", "many"),
    *_each(
        "weight",
        "per-node-heartbeat.maximum-offswitch-assignments per-node-heartbeat.maximum-container-assignments "
        "per-node-heartbeat.multiple-assignments-enabled",
        *("0", "-1", "0x2", "", "TRUE", "no"),
    ),
    *_each("weight", "reservations-continue-look-all-nodes", "FALSE", "no", ""),
    *_each("weight", "resource-calculator", "", "Dominant", _DRF["resource-calculator"] + " "),
]

#: What our engine refuses though Hadoop takes it, by the key's name.
NOT_COVERED = ({"root.b.minimum-user-limit-percent": "Infinity"},)
PARTS = 3


def _script(settings: dict[str, str], change: dict[str, str | None]) -> dict[str, Any]:
    events: list[dict[str, Any]] = [{"t": 1, "node": name} for name in ("n0", "n1")]
    for at, leaf in enumerate(_LEAVES):
        for user in ("u", "v"):
            name = f"{leaf}-{user}"
            events.append({"t": 2 + at, "app": name, "queue": f"root.{leaf}", "user": user, "auto_end": True})
            events.append(
                {
                    "t": 2 + at,
                    "ask": name,
                    "count": 14,
                    "memory_mb": 1024 * (1 + at),
                    "vcores": 1,
                    "duration_ms": 15_000,
                }
            )
    events.append({"t": 12_500, "reconfigure": change})
    events += [{"t": 1000 * n + k, "heartbeat": f"n{k}"} for n in range(1, 27) for k in (0, 1)]
    events += [{"t": t, "app": f"late{t}", "queue": "root.b", "user": "u", "auto_end": True} for t in (13_000, 14_000)]
    events += [{"t": t, "shares": True} for t in (12_600, 20_000)]
    return {
        "conf": {"yarn.scheduler.maximum-allocation-mb": "8192"},
        "options": {"shares": "all"},
        "capacity": settings,
        "nodes": [{"name": name, "memory_mb": 32768, "vcores": 24} for name in ("n0", "n1")],
        "events": sorted(events, key=lambda event: event["t"]),
    }


@pytest.mark.parametrize("part", range(PARTS))
def test_a_change_to_an_odd_setting_is_taken_or_refused_as_by_hadoop(part: int, tmp_path: Path) -> None:
    rows = CHANGES[part::PARTS]
    found = decisions([_script(_BASES[base], changes) for base, changes in rows], tmp_path)
    wrong = []
    for (base, changes), (script, theirs) in zip(rows, found, strict=True):
        ours = decider(script).run()
        if changes in NOT_COVERED:
            assert theirs["errors"] == []
            [refused] = ours["errors"]
            assert next(iter(changes)) in refused["error"]
        elif differing := differences(theirs, ours):
            wrong.append(f"{base} {changes}: {differing[0][:300]}; errors {theirs['errors']}")
    assert not wrong, "\n".join(wrong)
