"""QKnober's Figs. 8 and 9 by what the synthetic load assumes: the record behind docs/figures-qknober.md.

    python -m studies.qknober_loads -o docs/records/qknober-loads.json

A tenth of the paper's machines and users, so that a user's part is ten machines as in the paper. A seed draws one load
for all rules: figures over another rule are of pairs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from harness.systems.qknober.google import SHAPE, synthetic
from harness.systems.qknober.simulator import VectorRun, simulate
from studies.result import main_of
from studies.seeds import over_seeds

SEEDS = 10
SMALL = (SHAPE.size[0] / 4, SHAPE.size[1] / 4)
#: Assumption -> what of it differs from `NATURAL`; the values of ``shape`` likewise from `google.SHAPE`.
NATURAL: dict[str, Any] = {"users": 10, "machines": 100, "load": 1.2, "uneven": 0.5}
LOADS: dict[str, dict[str, Any]] = {
    "natural": {},
    "users alike": {"uneven": 0.0},
    "tasks a quarter as large": {"shape": {"size": SMALL}},
    "sizes by user": {"shape": {"drawn": "user"}},
    "a heavy resource by job": {"shape": {"heavy": (1.5, 4.0)}},
    "a heavy resource by user": {"shape": {"drawn": "user", "heavy": (1.5, 4.0)}},
    "load 0.8": {"load": 0.8},
}
RUNS = {
    "drf": ("drf", 0.0),
    "tetris 0.2": ("tetris", 0.2),
    "qknober 0": ("qknober", 0.0),
    "qknober 0.2": ("qknober", 0.2),
    "qknober 1": ("qknober", 1.0),
}
#: A figure -> the run whose makespan is divided by the other's, less 1.
PAIRS = {
    "knob_0_over_knob_1": ("qknober 1", "qknober 0"),
    "qknober_over_drf": ("drf", "qknober 0.2"),
    "qknober_over_tetris": ("tetris 0.2", "qknober 0.2"),
    "tetris_over_drf": ("drf", "tetris 0.2"),
}


def p95(run: VectorRun) -> float:
    """The 95th percentile of the soft fairness degree over the samples in which somebody waits."""
    m = len(run.utilisation)
    contended = run.samples[run.samples[:, m + 2] > 0]
    return float(np.percentile(contended[:, m], 95)) if len(contended) else 0.0


def measured(given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """One load under every rule."""
    shape = {name: getattr(SHAPE, name) for name in SHAPE.__slots__} | given.get("shape", {})
    own = NATURAL | {key: value for key, value in given.items() if key != "shape"}
    load = synthetic(**own, seed=seed, shape=type(SHAPE)(**shape))
    runs = {name: simulate(load, rule, knob, sample_s=600.0) for name, (rule, knob) in RUNS.items()}
    gains = {name: runs[other].makespan_s / runs[run].makespan_s - 1.0 for name, (other, run) in PAIRS.items()}
    return {
        "tasks": len(load.user),
        **{name: round(gain, 6) for name, gain in gains.items()},
        **{f"{name}_faster": int(gain > 0) for name, gain in gains.items()},
        "soft_fairness": {name: round(run.soft_fairness, 4) for name, run in runs.items()},
        "soft_fairness_p95": {name: round(p95(run), 4) for name, run in runs.items()},
        "theta": {name: round(run.estimated_soft_fairness, 4) for name, run in runs.items() if "qknober" in name},
    }


def values() -> dict[str, Any]:
    """Every assumption over the seeds. Of ``..._faster`` the mean is the part of the seeds in which it is."""
    return {
        "natural": NATURAL,
        "loads": {name: over_seeds(partial(measured, own), SEEDS) for name, own in LOADS.items()},
    }


main = main_of("qknober_loads", __doc__, values)

if __name__ == "__main__":
    sys.exit(main())
