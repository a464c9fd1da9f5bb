"""Measures the cost of one decision of a policy and of one tick of the control core by the number of queues."""

from __future__ import annotations

import math
import time

from harness.control.core import ControlCore
from harness.control.events import Actuated, Observed
from harness.ledger import Usage
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import CountedLedger
from harness.policies.registry import make_policy
from harness.policies.weights import use_compiled

#: Number of polls in `measure_control` that are timed together.
_TOGETHER = 10


def measure_decisions(policies: tuple[str, ...], sizes: tuple[int, ...]) -> dict[str, list[dict[str, float]]]:
    """Return the milliseconds per plan by number of leaf queues.

    Leaves are in groups of ten, and all of them demand.
    """
    found: dict[str, list[dict[str, float]]] = {}
    for name in policies:
        rows = []
        for size in sizes:
            queues = {"root": QueueView("root", None, False)}
            counted = {}
            for i in range(size):
                group = f"root.g{i // 10:04}"
                queues.setdefault(group, QueueView(group, "root", False))
                path = f"{group}.q{i % 10}"
                held = Resource(1024 * (i % 7), i % 7)
                queues[path] = QueueView(
                    path,
                    group,
                    True,
                    weight=1.0 + i % 3,
                    allocated=held,
                    demand=held + Resource(4096, 4),
                    pending_containers=4,
                    running_apps=1,
                    backlog_since_s=90.0,
                    last_start_s=99.0 - i % 20,
                    mean_task_s=20.0,
                    oldest_pending_app_s=float(i % 13),
                )
                counted[path] = float((i * 7919) % 1000) * 1024.0
            snapshot = Snapshot(100.0, Resource(4096 * size, 4 * size), dict(sorted(queues.items())), 1.0)
            ledger = CountedLedger(counted)
            policy = make_policy(name, {})
            policy.plan(snapshot, ledger)
            repeat = max(3, 2000 // size)
            best = math.inf
            for _ in range(3):
                began = time.process_time()
                for _ in range(repeat):
                    policy.plan(snapshot, ledger)
                best = min(best, (time.process_time() - began) / repeat)
            rows.append({"queues": size, "ms": round(best * 1000, 4)})
        found[name] = rows
    return found


def _looks(size: int, count: int) -> list[Observed]:
    """Return `count` observations, one second apart, of `size` leaves in groups of 32.

    The usage of every leaf changes from one observation to the next. Three in four leaves wait for containers, and one
    in fifty leaves has started no task for 21 s.
    """
    parents = {"root": None, **{f"root.g{i:04}": "root" for i in range((size + 31) // 32)}}
    used = [(0, 0)] * size
    looks = []
    for n in range(count):
        queues = {name: QueueView(name, parent, False) for name, parent in parents.items()}
        for i in range(size):
            holds = (i * 7 + n * (1 + i % 3)) % 9
            held, waits = Resource(1024 * holds, holds), (i + n // 4) % 4 > 0
            used[i] = (used[i][0] + held.memory_mb, used[i][1] + held.vcores)
            path = f"root.g{i // 32:04}.q{i % 32:02}"
            queues[path] = QueueView(
                path,
                f"root.g{i // 32:04}",
                True,
                weight=1.0 + i % 3,
                allocated=held,
                demand=held + Resource(4096, 4) if waits else held,
                pending_containers=4 if waits else 0,
                running_apps=1,
                backlog_since_s=90.0 + n if waits else None,
                last_start_s=99.0 + n - (20 if i % 50 == 0 else i % 8),
                mean_task_s=20.0 + i % 5,
            )
        snapshot = Snapshot(100.0 + n, Resource(4096 * size, 4 * size), dict(sorted(queues.items())), 1.0)
        counters = {name: Usage(*used[i]) for i, name in enumerate(name for name in queues if queues[name].leaf)}
        looks.append(Observed(snapshot, counters))
    return looks


def measure_control(policies: tuple[str, ...], sizes: tuple[int, ...]) -> dict[str, list[dict[str, float]]]:
    """Return the milliseconds per tick of the control core (accounts, plan, comparison) by number of leaf queues."""
    use_compiled()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in policies}
    for size in sizes:
        looks = _looks(size, (2000 if size < 100 else 50) + _TOGETHER)
        for name in policies:
            core = ControlCore(make_policy(name, {}), period_s=1.0)
            best = math.inf
            for at in range(0, len(looks), _TOGETHER):
                began = time.process_time()
                for look in looks[at : at + _TOGETHER]:
                    core.handle(look)
                    core.handle(Actuated(look.snapshot.time_s))
                if at:  # the first ones compile functions and build caches
                    best = min(best, (time.process_time() - began) / _TOGETHER)
            found[name].append({"queues": size, "ms": round(best * 1000, 4)})
    return found
