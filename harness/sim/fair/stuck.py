"""Explains why a Fair Scheduler cluster is stuck: which queue waits for what, and which setting would help.

The functions run in Python once a run is stuck, and do not affect decisions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from harness.model.queues import QueueTree

#: The largest number of queues that are named.
_MOST = 3


@dataclass(frozen=True, slots=True)
class _Waits:
    """A queue's applications that wait for their AM's container, or for a task's container."""

    path: str
    masters: bool
    apps: int
    mb: int
    vcores: int
    why: str
    hint: str


def why_stuck(S: Any, tree: QueueTree, order: list[int]) -> str:
    """Describe which queues wait, and for what."""
    found: list[_Waits] = []
    for queue, index in zip(tree, order, strict=True):
        if queue.leaf and (waits := _of_leaf(S, queue.path, index)):
            found += waits
    if not found:
        return "nothing is under way, and its jobs have not ended"
    texts = []
    for one in found[:_MOST]:
        what = "their masters'" if one.masters else "tasks'"
        size = f"{one.mb:,} MiB and {one.vcores} vcores"
        texts.append(f"{one.apps} application(s) of {one.path} wait for {what} containers of {size}: {one.why}")
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    hints = list(dict.fromkeys(one.hint for one in found[:_MOST]))
    return f"{'; '.join(texts)}{more}; {' or '.join(hints)}"


def _of_leaf(S: Any, path: str, index: int) -> list[_Waits]:
    """Return what the leaf's applications wait for: one entry for AMs, one for tasks."""
    apps = S.a[(S.a["alive"] == 1) & (S.a["q"] == index)]
    waiting: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for app in apps:
        master = bool(app["managed"] == 1 and app["am_running"] == 0)
        sizes = _asks(S, int(app["req_head"]))
        if sizes and app["runnable"] == 1:
            waiting[master].append(min(sizes))
    q = S.q[index]
    result = []
    for masters, sizes in waiting.items():
        if sizes:
            mb, vcores = min(sizes)
            why, hint = _cause(S, q, mb, vcores, masters)
            result.append(_Waits(path, masters, len(sizes), mb, vcores, why, hint))
    idle = int(q["n_nonrun"])
    if idle and not result:
        why = f"{int(q['n_run'])} may run at a time and do not end"
        result.append(_Waits(path, True, idle, 0, 0, why, f"raise max_running_apps of {path}"))
    return result


def _asks(S: Any, head: int) -> list[tuple[int, int]]:
    found = []
    while head >= 0:
        ask = S.r[head]
        if int(ask["count"]) > 0:
            found.append((int(ask["mb"]), int(ask["vcores"])))
        head = int(ask["next"])
    return found


def _cause(S: Any, q: Any, mb: int, vcores: int, masters: bool) -> tuple[str, str]:
    nodes = S.n[S.n["alive"] == 1]
    if not len(nodes):
        return "no node is there", "add nodes"
    if not bool(((nodes["total_mb"] >= mb) & (nodes["total_vcores"] >= vcores)).any()):
        return f"the largest node has {int(nodes['total_mb'].max()):,} MiB", "ask for less, or take larger nodes"
    if masters and (short := _am_share(S, q, mb, vcores)):
        return short
    at = q
    while True:
        if int(at["usage_mb"]) + mb > int(at["max_mb"]) or int(at["usage_vcores"]) + vcores > int(at["max_vcores"]):
            return (
                "its queue is at its maximum share, held by masters",
                "raise its maximum share, or lower its AM share",
            )
        if int(at["parent"]) < 0:
            break
        at = S.q[int(at["parent"])]
    held = S.a["am_mb"][(S.a["alive"] == 1) & (S.a["am_running"] == 1)]
    masters_mb = int(held.sum())
    free = int(nodes["avail_mb"].max())
    return (
        f"{len(held)} masters hold {masters_mb:,} of {int(nodes['total_mb'].sum()):,} MiB, "
        f"and no node has room (at most {free:,} MiB free)",
        "lower max_am_share (maxAMShare), or max_running_apps, so that masters leave room for tasks",
    )


def _am_share(S: Any, q: Any, mb: int, vcores: int) -> tuple[str, str] | None:
    """Explain FSLeafQueue.canRunAppAM in words; return None where the AM share is not the obstacle."""
    share = float(q["max_am_share"])
    if abs(share + 1.0) < 0.0001:
        return None
    g = S.g[0]
    limits = [
        int(q["fair_mb"]) or min(int(g["avail_mb"]), int(q["max_mb"])),
        int(q["fair_vcores"]) or min(int(g["avail_vcores"]), int(q["max_vcores"])),
    ]
    wanted = [int(q["am_mb"]) + mb, int(q["am_vcores"]) + vcores]
    if all(want <= math.ceil(limit * share) for want, limit in zip(wanted, limits, strict=True)):
        return None
    needed = max(want / limit if limit else math.inf for want, limit in zip(wanted, limits, strict=True))
    enough = f"{math.ceil(needed * 100) / 100:g}" if needed <= 1 else "-1 (no limit)"
    part = f"{math.ceil(limits[0] * share):,} MiB ({share:g} of its fair share of {limits[0]:,} MiB)"
    return f"its masters may hold {part}", f"set its max_am_share (maxAMShare) to {enough}, or take fewer queues"
