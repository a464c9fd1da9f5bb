"""Made-up run directories: figures that are known, in the files that `yarnfair run` writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cli import main

Write = Callable[..., Path]


def summary_of(queues: tuple[str, ...] = ("root.a", "root.b"), **changes: Any) -> dict[str, Any]:
    """A summary; ``changes`` are keys of it, or of every queue where a queue has that key."""
    queue = {
        "jobs": 10,
        "failed": 0,
        "mean_completion_s": 100.0,
        "mean_slowdown": 2.0,
        "fairness_degree": 1.2,
        "resource_seconds": 5000.0,
        "speedup_over_static": None,
    }
    whole: dict[str, Any] = {
        "makespan_s": 1000.0,
        "sharing_benefit": 0.2,
        "sharing_loss": -0.1,
        "sharing_loss_integral": 100.0,
        "last_loss_s": 300.0,
        "utilisation": {"memory": 0.9, "vcores": 0.4},
    }
    own = {key: value for key, value in changes.items() if key in queue}
    rest = {key: value for key, value in changes.items() if key not in queue}
    whole.update(rest)
    return {**whole, "queues": {name: {**queue, **own} for name in queues}, "events": 1234, "wall_s": 0.5}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a run directory below tmp_path: ``write("old/1", seed=1, makespan_s=990.0)``."""

    def do(
        name: str,
        *,
        seed: int | None = 1,
        variant: str = "ltrf",
        experiment: str = "made-up",
        backend: str = "docker",
        exit: int | None = 0,
        start: str = "2026-01-01T00:00:00+00:00",
        digest: str = "0123456789abcdef",
        summary: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Path:
        directory = tmp_path / name
        directory.mkdir(parents=True)
        info = {
            "variant": variant,
            "policy": {"name": variant, "mode": "inside", "settings": {}},
            "seed": seed,
            "backend": backend,
            "hash": digest,
            "experiment": {"experiment": experiment},
            "versions": {"yarnfair": "0.1.0"},
            "start": start,
            "exit": exit,
        }
        (directory / "run.json").write_text(json.dumps(info))
        if exit is not None:
            found = summary if summary is not None else summary_of(**changes)
            (directory / "summary.json").write_text(json.dumps(found))
        return directory

    return do


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, printed.out, printed.err


def noisy(write: Write, name: str, seed: int, factor: float = 1.0, **more: Any) -> Path:
    """A run whose figures vary by 1 %; `factor` makes it worse."""
    rng = np.random.default_rng(seed)
    vary = [float(1 + 0.01 * rng.normal()) for _ in range(4)]
    values = {
        "makespan_s": 1000.0 * vary[0] * factor,
        "sharing_loss_integral": 100.0 * vary[1],
        "mean_completion_s": 100.0 * vary[2],
        "sharing_benefit": 0.2 * vary[3],
    }
    return write(name, seed=seed, **{**values, **more})


@pytest.fixture
def recorded(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Ten runs of a real cluster, recorded."""
    for seed in range(1, 11):
        noisy(write, f"base/{seed}", seed)
    assert call(capsys, "baseline", tmp_path / "base", "-o", tmp_path / "b.json")[0] == 0
    return tmp_path / "b.json"
