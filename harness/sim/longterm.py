"""Builds a run's arrays of long-term fairness: entitlements, shares, measure, order and memory of the scheduler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.ledger.decay import WINDOW_PARTS
from harness.model.plan import Order, Plan
from harness.model.queues import QueueTree
from harness.sim.longterm_state import (
    DOMINANT,
    MEMORY,
    RULE_ACCUMULATED,
    RULE_ARRIVAL,
    RULE_HORIZON,
    RULE_STOCK,
    RULE_USER,
    VCORES,
    LongTermGlobals,
    LongTermRecord,
)
from harness.sim.setup import SimSetup

_MEASURES = {"memory": MEMORY, "vcores": VCORES, "dominant": DOMINANT}
_RULES = {"stock": RULE_STOCK, "accumulated": RULE_ACCUMULATED, "arrival": RULE_ARRIVAL, "keys": RULE_USER}


def long_term_arrays(
    setup: SimSetup, tree: QueueTree, order: Sequence[int], plan: Plan | None, size: int
) -> dict[str, Any]:
    """Return the fields ``x`` (one row per queue), ``xg`` (one row) and ``win`` of the scheduler's state at the start.

    Parameters
    ----------
    order : the queues' rows, in the tree's order.
    plan : the policy's plan for the empty cluster. Its order is used in the mode ``inside``, its ledger's settings in
        both modes.
    size : rows of the scheduler's table of queues.
    """
    x, xg = np.zeros(size, LongTermRecord.dtype), np.zeros(1, LongTermGlobals.dtype)
    x["entitlement"] = 1.0
    share = shares_of(tree, setup.entitlements)
    flat = flat_shares_of(tree, setup.entitlements)
    ledger = plan.order.ledger if plan is not None else Order().ledger
    levels = ledger.shares == "levels"
    for queue, index in zip(tree, order, strict=True):
        entitlement = float(setup.entitlements.get(queue.path, 1.0))
        x["entitlement"][index] = share[queue.path] if levels else entitlement
        x["share"][index] = share[queue.path]
        x["flat_share"][index] = flat[queue.path]
        # S_i / R of eq. (2) for the ledger, as the policy computes it.
        x["own_share"][index] = x["share" if levels and queue.leaf else "flat_share"][index]
    x["backlog_ms"] = -1
    x["last_start_ms"] = -1
    rule = plan.order if plan is not None and setup.mode == "inside" else Order()
    xg["on"] = 1
    xg["n"] = len(order)
    xg["measure"] = _MEASURES[setup.resource]
    xg["ledger"] = _MEASURES[ledger.resource]
    xg["discount"] = ledger.discount
    if ledger.round_s is not None and math.isfinite(ledger.round_s):
        xg["round_ms"] = xg["round_end_ms"] = max(round(ledger.round_s * 1000), 1)
    xg["pseudo"] = int(ledger.pseudo)
    win = np.zeros((1, 1))
    if ledger.half_life_s is not None:
        xg["half_life_ms"] = ledger.half_life_s * 1000.0
    if ledger.window_s is not None:
        xg["part_ms"] = ledger.window_s * 1000.0 / WINDOW_PARTS
        win = np.zeros((size, WINDOW_PARTS + 1))
    at = dict(zip((queue.path for queue in tree), order, strict=True))
    quanta = {path: own.quantum_s for path, own in setup.queue_orders.items() if own.quantum_s is not None}
    if ledger.quantum_s is not None or quanta:
        # If the policy has no Q, tasks of other policies are charged as they run: with Q = 0.
        xg["quantum"], xg["q0_ms"] = 1, (ledger.quantum_s or 0.0) * 1000.0
        xg["adaptive"], xg["q_ended"] = int(ledger.adaptive_quantum), int(ledger.quantum_over == "all")
        x["q_ms"] = -1.0
        for path, quantum_s in quanta.items():
            x["q_ms"][at[path]] = quantum_s * 1000.0
    x["app_round_ms"] = xg["round_ms"]
    for path, own in setup.queue_orders.items():
        row = x[at[path] : at[path] + 1]
        row["stock"] = int(own.policy in ("fair", "drf") and not tree[path].leaf)
        if own.round_s is not None:
            length = max(round(own.round_s * 1000), 1)
            if tree[path].leaf:
                row["app_round_ms"] = length
            else:
                row["own_round_ms"] = row["own_end_ms"] = length
                xg["own_end_ms"] = min(length, int(xg["own_end_ms"][0]) or length)
    # A horizon relates what was counted to the cluster's future output, which its plan does not know by node.
    uneven = any(node.speed != 1.0 for node in setup.nodes) and not rule.horizon_s > 0
    xg["weighted"] = int(setup.mode == "inside" and ledger.node_weight == "speed" and uneven)
    xg["flat"], xg["waits"] = int(rule.flat), int(rule.waits)
    xg["t_wait_ms"] = wait_ms(rule)
    horizon = rule.measure == "accumulated" and rule.horizon_s > 0
    xg["rule"] = RULE_HORIZON if horizon else _RULES[rule.measure]
    return {"x": x, "xg": xg, "win": win}


def shares_of(tree: QueueTree, entitlements: Mapping[str, float]) -> dict[str, float]:
    """Return S_i / R of every queue, level by level.

    The parent's value times the weight over the sum of all siblings'.
    """
    siblings: dict[str, float] = {}  # by their parent's path, in the order of the tree
    for queue in tree:
        if queue.parent is not None:
            siblings[queue.parent] = siblings.get(queue.parent, 0.0) + float(entitlements.get(queue.path, 1.0))
    share = {"root": 1.0}
    for queue in tree:
        if queue.parent is not None:
            own = float(entitlements.get(queue.path, 1.0))
            share[queue.path] = share[queue.parent] * own / siblings[queue.parent]
    return share


def flat_shares_of(tree: QueueTree, entitlements: Mapping[str, float]) -> dict[str, float]:
    """Return S_i / R of every leaf by eq. (2), over the weights of all leaves regardless of the tree; 0 for parents."""
    whole = sum(float(entitlements.get(q.path, 1.0)) for q in tree if q.leaf)
    return {q.path: float(entitlements.get(q.path, 1.0)) / whole if q.leaf else 0.0 for q in tree}


def is_uneven(tree: QueueTree, entitlements: Mapping[str, float]) -> bool:
    """Return whether some leaf's share level by level differs from its share by weight among all leaves."""
    levels, flat = shares_of(tree, entitlements), flat_shares_of(tree, entitlements)
    return any(abs(levels[q.path] - flat[q.path]) > 1e-9 for q in tree if q.leaf)


def wait_ms(order: Order) -> int:
    """Return T_wait in milliseconds for the scheduler's arrays; -1: no leaf ever counts as starved."""
    if order.t_wait_s is None or order.t_wait_s >= 1e12:
        return -1
    return round(order.t_wait_s * 1000)
