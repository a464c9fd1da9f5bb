"""QKnober's trace-driven simulation (section 7.3): policies, knobs and numbers of users on servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.jobs.google import Part, synthetic
from harness.kinds.vectors.run import load_trace
from harness.sim.vector import RULES, VectorLoad, VectorRun, simulate

KNOBS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
#: Rules that have a knob: f of tetris, rho of qknober.
WITH_KNOB = ("tetris", "qknober")


def cases(policies: Sequence[str], knobs: Iterable[float]) -> list[tuple[str, float | None]]:
    """(policy, knob) of each run; policies without a knob run once."""
    given = list(knobs)
    return [(name, knob) for name in policies for knob in (given if name in WITH_KNOB else [None])]


def run_cases(
    load: VectorLoad, todo: Sequence[tuple[str, float | None]], progress: Callable[[str], None] = lambda text: None
) -> list[dict[str, Any]]:
    """A row a case: the knob, makespan, speed-up over the first row, utilisations, soft fairness, time of decisions."""
    found: list[dict[str, Any]] = []
    for name, knob in todo:
        progress(f"{name} {'' if knob is None else knob}".strip())
        began = time.process_time()
        run = simulate(load, name, knob or 0.0)
        found.append(row(name, knob, run, found[0]["makespan_s"] if found else run.makespan_s))
        found[-1]["wall_s"] = round(time.process_time() - began, 2)
    return found


def row(name: str, knob: float | None, run: VectorRun, against_s: float) -> dict[str, Any]:
    """One run as plain data."""
    return {
        "policy": name,
        "knob": knob,
        "makespan_s": round(run.makespan_s, 3),
        "speedup": round(against_s / run.makespan_s, 4) if run.makespan_s else 1.0,
        "mean_completion_s": round(run.mean_completion_s, 1),
        "utilisation": [round(x, 4) for x in run.utilisation],
        "utilisation_while_submitted": [round(x, 4) for x in run.busy],
        "soft_fairness": round(run.soft_fairness, 4),
        "theta": round(run.estimated_soft_fairness, 4) if name == "qknober" else None,
        "decisions": run.decisions,
    }


def simulation(
    *,
    trace: Path | None,
    users: int,
    machines: int | None,
    hours: float | None,
    start_h: float,
    load: float,
    seed: int,
    policies: Sequence[str] = tuple(RULES),
    knobs: Sequence[float] = KNOBS,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """The whole document of ``yarnfair vectors``. Without a trace, ``machines`` and ``hours`` are the synthetic load's
    (None: the paper's 1,000 and 24), and ``start_h`` counts for nothing."""
    if trace is None:
        machines, hours = machines or 1000, hours or 24.0
        found = synthetic(users=users, machines=machines, hours=hours, load=load, seed=seed)
        source: dict[str, Any] = {"synthetic": True, "machines": machines, "hours": hours, "load": load, "seed": seed}
    else:
        found = load_trace(trace, users, Part(machines, start_h, hours, seed))
        source = {"synthetic": False, "machines": len(found.servers), "start_h": start_h, "hours": hours, "seed": seed}
    return {
        "load": {**source, "users": users, "tasks": len(found.user)},
        "runs": run_cases(found, cases(policies, knobs), progress),
    }
