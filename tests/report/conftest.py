"""Small run directories with figures that are known by construction, written as `yarnfair run` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

CAPACITY_MB = 59 * 4096
LEAVES = ("root.facebook", "root.purdue", "root.spark", "root.tpch")
TREE_LEAVES = ("root.group1.facebook", "root.group1.tpch", "root.group2.purdue", "root.group2.spark")


@dataclass
class FakeRun:
    """A run in which queue k holds `held[k]` of its share from `since_s[k]` on, and always asks for `asked` of it."""

    variant: str
    policy: str
    mode: str = "inside"
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1
    leaves: Sequence[str] = LEAVES
    held: Sequence[float] = (1.0, 1.0, 1.0, 1.0)
    since_s: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    asked: float = 2.0
    seconds: int = 1000
    summary: Mapping[str, Any] = field(default_factory=dict)
    exit: int | None = 0
    weights: bool = False
    backend: str = "sim"
    experiment: str = "ltyarn"  # one that the project brings: its paper's findings judge it
    digest: str = "0123456789abcdef"
    resource: str | None = None


def tables(run: FakeRun) -> tuple[pd.DataFrame, dict[str, Any]]:
    """allocations.parquet and summary.json of a made-up run; shares are equal parts of the capacity."""
    time_s = np.arange(run.seconds + 1, dtype=np.float64)
    share = CAPACITY_MB / len(run.leaves)
    rows = []
    queues: dict[str, Any] = {}
    by_parent: dict[str, list[pd.DataFrame]] = {}
    for k, leaf in enumerate(run.leaves):
        held = np.where(time_s >= run.since_s[k], run.held[k] * share, 0.0)
        accumulated = np.concatenate([[0.0], np.cumsum(held[:-1])])
        due = time_s * min(run.asked, 1.0) * share
        part = pd.DataFrame(
            {
                "time_s": time_s,
                "queue": leaf,
                "allocated_mb": held.astype(np.int64),
                "demand_mb": np.full(len(time_s), run.asked * share).astype(np.int64),
                "fair_share_mb": np.full(len(time_s), share),
                "weight": 1.0 + (np.floor(time_s / 100) if run.weights else 0.0) * (k + 1),
                "accumulated_mb_s": accumulated,
                "due_mb_s": due,
                "share_mb": share,
                "running": (held / 1024).astype(np.int64),
            }
        )
        rows.append(part)
        rho = float(accumulated[-1] / due[-1])
        queues[leaf] = {
            "jobs": 10,
            "failed": 0,
            "mean_completion_s": 100.0 / max(run.held[k], 0.1),
            "p95_completion_s": 200.0,
            "mean_slowdown": 1.5,
            "resource_seconds": float(accumulated[-1]),
            "fairness_degree": rho,
            "max_wait_s": float(run.since_s[k]),
            "speedup_over_static": run.held[k],
            "workload_s": 500.0,
            "workload_speedup_over_static": 1.25,
        }
        parent = leaf.rsplit(".", 1)[0]
        if parent != "root":
            by_parent.setdefault(parent, []).append(part)
    for parent, parts in by_parent.items():
        total = parts[0].copy()
        total["queue"] = parent
        for name in ("allocated_mb", "demand_mb", "accumulated_mb_s", "share_mb"):
            total[name] = sum(part[name].to_numpy() for part in parts)
        rows.append(total)
    for queue, columns in (("root", {"share_mb": float(CAPACITY_MB)}), ("root.default", {"share_mb": 0.0})):
        idle = rows[0].copy()
        idle["queue"] = queue
        for name in ("allocated_mb", "demand_mb", "accumulated_mb_s", "due_mb_s", "running"):
            idle[name] = 0 * idle[name]
        rows.append(idle.assign(**columns))
    summary = {
        "makespan_s": float(run.seconds),
        "sharing_benefit": 0.2,
        "sharing_loss": -0.1,
        "sharing_loss_integral": 100.0,
        "last_loss_s": None,
        "utilisation": {"memory": 0.9, "vcores": 0.45},
        "queues": queues,
        "events": 1234,
        "wall_s": 0.5,
    }
    return pd.concat(rows, ignore_index=True), {**summary, **run.summary}


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    """Writes a made-up run directory (arguments: those of FakeRun) and gives its path."""

    def write(*arguments: Any, **settings: Any) -> Path:
        run = FakeRun(*arguments, **settings)
        directory = tmp_path / "runs" / f"{run.variant.replace(' ', '_')}-{run.seed}"
        if run.backend != "sim":
            directory = directory.with_name(f"{directory.name}-{run.backend}")
        if directory.exists():
            directory = directory.with_name(f"{directory.name}-{run.experiment}-{run.digest[:4]}")
        directory.mkdir(parents=True)
        table, summary = tables(run)
        table.to_parquet(directory / "allocations.parquet")
        info = {
            "experiment": {
                "experiment": run.experiment,
                "about": "Four queues by construction",
                **({"resource": run.resource} if run.resource is not None else {}),
            },
            "hash": run.digest,
            "variant": run.variant,
            "policy": {"name": run.policy, "mode": run.mode, "settings": dict(run.settings)},
            "backend": run.backend,
            "seed": run.seed,
            "versions": {"yarnfair": "0.1.0", "python": "3.11.2"},
            "machine": {"processor": "x86_64"},
            "start": "2026-01-01T00:00:00+00:00",
            "exit": run.exit,
        }
        (directory / "run.json").write_text(json.dumps(info))
        if run.exit == 0:
            (directory / "summary.json").write_text(json.dumps(summary))
        if run.mode == "outside":
            lines = [
                {
                    "time_s": 1.0,
                    "kind": "write",
                    "weights": {"root.facebook": 2.5},
                    "reason": "facebook is owed 3 GB·s",
                },
                {"time_s": 2.0, "kind": "keep", "reason": "nothing would change"},
            ]
            (directory / "decisions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return directory

    return write


@pytest.fixture
def three_policies(write_run: Callable[..., Path]) -> list[Path]:
    """Static, fair (loses to the end), ltrf inside (loses until 300 s) and from outside."""
    return [
        write_run(
            "static", "static", summary={"sharing_loss": 0.0, "sharing_benefit": 0.0, "sharing_loss_integral": 0.0}
        ),
        write_run(
            "fair",
            "fair",
            held=(1.4, 1.2, 0.8, 0.6),
            summary={"sharing_loss": -0.6, "sharing_loss_integral": 600.0, "last_loss_s": 1000.0},
        ),
        write_run(
            "ltrf",
            "ltrf",
            held=(1.1, 1.05, 1.0, 1.02),
            summary={"sharing_loss": -0.02, "sharing_loss_integral": 20.0, "last_loss_s": 300.0},
        ),
        write_run(
            "ltrf@outside",
            "ltrf",
            mode="outside",
            held=(1.08, 1.05, 1.0, 1.02),
            settings={"horizon_s": 80},
            weights=True,
            summary={"sharing_loss": -0.018, "sharing_loss_integral": 18.0, "last_loss_s": 120.0},
        ),
    ]


@pytest.fixture
def hierarchy(write_run: Callable[..., Path]) -> list[Path]:
    """Naive: group1.tpch holds nothing until 680 s. H-LTRF: only until 10 s."""
    late = {"leaves": TREE_LEAVES, "held": (1.5, 0.5, 1.0, 1.0)}
    return [
        write_run("naive-hltrf", "naive-hltrf", since_s=(0, 680, 0, 0), **late),
        write_run("hltrf", "hltrf", settings={"t_wait": 10}, since_s=(0, 10, 0, 0), **late),
    ]
