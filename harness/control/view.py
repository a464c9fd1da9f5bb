"""The data that `explain` and `top` show: each queue's share, entitlement, accounts, weight and changes.

A `View` is built from a controller's ledger, from a live ResourceManager, from both, or (harness.control.view_run) from
a run directory. Data that a source does not have is None.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, YarnfairError
from harness.control.changes import SAME, Entitled, debts, parts, shares, summed
from harness.ledger.store import read_decisions, read_documents
from harness.policies.registry import make_policy
from harness.yarn.answers import AppStatus
from harness.yarn.holds import Facts, Hold, blocks_all, holds_of_queue
from harness.yarn.plausible import sift
from harness.yarn.queue_answers import CAPACITY, SchedulerStatus, parts_of_parents, steady_weights

#: Number of decisions searched for a queue's last change.
MOST_DECISIONS = 500


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue. Resources are MiB; accumulated resources are in the view's unit; times are the view's clock, seconds.

    ``share``: fraction of the cluster that the queue is entitled to. ``due``: fraction of all usage that its accounts
    entitle it to. The two differ for queues that the scheduler creates with guarantees that add up to less than their
    parent's (``of_parent``: the guaranteed fraction of the parent's capacity; None for other queues). ``accumulated``:
    its counted usage; for a parent, the sum of its leaves'. ``deficit``: its ``due`` of all accumulated resources minus
    ``accumulated``.
    """

    path: str
    parent: str | None
    leaf: bool
    entitlement: float
    share: float = 0.0
    due: float = 0.0
    of_parent: float | None = None
    allocated_mb: int = 0
    demand_mb: int = 0
    pending: int | None = None
    apps: int | None = None
    waits_since_s: float | None = None
    weight: float | None = None
    accumulated: float | None = None
    deficit: float | None = None
    #: Time of the last decision that changed the queue, and the queue's weight before it.
    changed_s: float | None = None
    weight_before: float | None = None
    #: The queue's fraction of its siblings' weights by that decision, and by the decision before.
    part: float | None = None
    part_before: float | None = None
    #: The debt that the queue was owed at that decision (negative: it owed).
    deficit_then: float | None = None
    #: The policy's reason for that decision, or why the queue was held back because of preemption.
    reason: str | None = None
    #: Fair share computed by the RM; on the Capacity Scheduler the effective capacity.
    fair_mb: int | None = None
    #: Further inputs of the Capacity Scheduler: reserved space, priority, ordering policy of the children.
    reserved_mb: int = 0
    priority: int = 0
    ordering: str = ""
    allocated_vcores: int = 0
    #: Whether the queue has not been active since its account was opened, so that nothing is owed to it yet.
    newcomer: bool = False
    #: Whether the RM has created it below a queue that does so, where the controller writes nothing.
    created: bool = False
    #: The limits that block the queue or a part of what it waits for, if the RM's limits were requested.
    holds: tuple[Hold, ...] = ()
    #: Whether these limits block all that it waits for.
    blocked: bool = False

    @property
    def wants(self) -> bool:
        """Return whether the queue waits for containers, even if the scheduler caps its demand."""
        return self.demand_mb > self.allocated_mb or bool(self.pending)


@dataclass(frozen=True, slots=True)
class View:
    """All queues at one moment, parents before children. ``unit``: memory, vcores or dominant."""

    time_s: float
    source: str
    policy: str
    capacity_mb: int
    queues: Mapping[str, QueueRow]
    unit: str = "memory"
    flat: bool = False
    #: Whether the policy compensates for earlier deficits.
    gives_back: bool = False
    began_s: float | None = None
    #: Half-life of the accounts, seconds (None: they do not decay, or it is unknown).
    half_life_s: float | None = None
    #: Age of the accounts, seconds (None: they are as old as the other data).
    accounts_age_s: float | None = None
    alarms: tuple[tuple[str, str], ...] = ()
    decisions: tuple[Mapping[str, Any], ...] = ()
    #: The controller's mode: shadow, bounded or full ('': unknown).
    mode: str = ""
    #: Description of the guard that caused a release, and the time of the release ('', None: no release).
    released: str = ""
    released_s: float | None = None
    #: Whether the controller has ended and restored the configuration: its weights are no longer in force.
    given_back: bool = False
    #: Whether times are seconds since 1970 (otherwise seconds of a run).
    wall_clock: bool = True
    #: Vcores allocated and vcores in total (None: not known).
    vcores: tuple[int, int] | None = None
    #: The RM's scheduler, as its REST API names it ('': not known).
    scheduler: str = ""
    #: Whether the weights are unknown, so that steady fair shares replace the entitlements.
    estimated: bool = False
    #: Work that preemption may kill within an hour, and work that it has killed, MiB·s (None: no preemption).
    killed_mb_s: tuple[float, float] | None = None
    #: The RM's limits, if they were requested.
    facts: Facts | None = None

    def held_part(self, row: QueueRow) -> float:
        """Return the fraction of the cluster that a queue holds: of the memory, or its dominant share (`unit`)."""
        memory = row.allocated_mb / max(self.capacity_mb, 1)
        if self.unit != "dominant" or self.vcores is None or self.vcores[1] <= 0:
            return memory
        return max(memory, row.allocated_vcores / self.vcores[1])


def head(view: View) -> dict[str, Any]:
    """Return the common fields of all JSON documents about a view.

    These are the time, source, policy, unit and `mode`, the cause and time of a release, and `given_back`.
    """
    released = {"why": view.released, "time_s": view.released_s} if view.released else None
    killed = {} if view.killed_mb_s is None else dict(zip(("budget_mb_s", "lost_mb_s"), view.killed_mb_s, strict=True))
    return {
        **{name: getattr(view, name) for name in ("time_s", "source", "policy")},
        **({"preempted": killed} if killed else {}),
        "mode": view.mode or None,
        "released": released,
        "given_back": view.given_back,
        "unit": view.unit,
    }


def alarms(view: View) -> list[dict[str, str]]:
    """Return the controller's alarms as JSON values."""
    return [{"kind": kind, "text": text} for kind, text in view.alarms]


def with_sums(view: View) -> View:
    """Return the view with shares, parents' sums and deficits filled in."""
    leaves = {path: row for path, row in view.queues.items() if row.leaf and row.parent is not None}
    entitled = {path: Entitled(row.entitlement, path in leaves) for path, row in view.queues.items()}
    due = shares(entitled, flat=view.flat)
    share = dict(due)
    for path, row in view.queues.items():
        if row.of_parent is not None:
            share[path] = share.get(row.parent or "", 0.0) * row.of_parent
    known = {path: row.accumulated for path, row in leaves.items() if row.accumulated is not None}
    accumulated = summed(known)
    newcomers = [path for path, row in leaves.items() if row.newcomer]
    owed = debts(known, entitled, flat=view.flat, newcomers=newcomers) if known else {}
    rows = {
        path: replace(
            row,
            share=share.get(path, 0.0),
            due=due.get(path, 0.0),
            accumulated=accumulated.get(path, 0.0) if known else None,
            deficit=None if not known or row.newcomer else owed.get(path, 0.0),
        )
        for path, row in view.queues.items()
    }
    return replace(view, queues=rows)


def with_changes(view: View, decisions: Iterable[Mapping[str, Any]]) -> View:
    """Return the view with each queue's last change, from decisions in chronological order.

    A change of a sibling's weight counts, too, if it changes the queue's fraction of the siblings' weights.
    """
    made = [decision for decision in decisions if isinstance(decision.get("weights"), dict)]
    rows = dict(view.queues)
    open_ = set(rows)
    for at in range(len(made) - 1, -1, -1):
        decision, before = made[at], made[at - 1] if at else {}
        changed = set(decision.get("changed", ()))
        beside = {path.rpartition(".")[0] for path in changed}
        wanted = {path for path in open_ if path in changed or path.rpartition(".")[0] in beside}
        if not wanted:
            continue
        now, was = parts(decision["weights"]), parts(before.get("weights", {}))
        wanted = {p for p in wanted if p in changed or abs(now.get(p, 0.0) - was.get(p, 0.0)) >= SAME}
        entitled = {path: Entitled(row.entitlement, row.leaf) for path, row in view.queues.items()}
        newcomers = decision.get("newcomers") or ()
        owed = debts(decision.get("counted") or {}, entitled, flat=view.flat, newcomers=newcomers)
        for path in wanted:
            rows[path] = replace(
                rows[path],
                changed_s=decision["time_s"],
                weight_before=before.get("weights", {}).get(path),
                part=now.get(path),
                part_before=was.get(path),
                deficit_then=owed.get(path),
                reason=decision.get("reasons", {}).get(path) or decision.get("held", {}).get(path),
            )
            open_.discard(path)
        if not open_:
            break
    # A decision that changed only queues that the scheduler creates, which nobody steers, has changed nothing.
    shown = [decision for decision in made if decision.get("changed", True)]
    return replace(view, queues=rows, decisions=tuple(shown[-20:]))


def from_ledger(path: Path, now_s: float | None = None) -> View:
    """Return the view from a controller's last poll and accounts. ``now_s``: present time, for the accounts' age.

    Raises InputError if there is no poll yet.
    """
    documents = read_documents(path, ["look", "ledger", "policy"])
    look, ledger = documents["look"], documents["ledger"]
    try:
        given_back = bool(look.get("given_back"))
        name, settings = documents["policy"]
        accounts = {leaf: float(a[0] + a[1] + a[3]) for leaf, a in ledger["accounts"].items()}
        # Older ledgers lack the flag.
        newcomers = {leaf for leaf, a in ledger["accounts"].items() if len(a) > 7 and a[7] is True}
        rows = {
            queue: QueueRow(
                path=queue,
                parent=queue.rpartition(".")[0] or None,
                leaf=bool(q["leaf"]),
                entitlement=float(q["entitlement"]),
                allocated_mb=q["allocated"][0],
                allocated_vcores=q["allocated"][1],
                demand_mb=q["demand"][0],
                pending=q["pending"],
                apps=q["apps"],
                waits_since_s=_later(q["backlog_since_s"], q["last_start_s"]),
                weight=None if given_back else q["weight"],
                of_parent=None if (part := q.get("of_parent")) is None else float(part),
                accumulated=accounts.get(queue),
                newcomer=queue in newcomers,
                created=q.get("created") is True,
            )
            for queue, q in look["queues"].items()
        }
        view = View(
            time_s=float(look["time_s"]),
            source=str(path),
            policy=name,
            capacity_mb=look["capacity"][0],
            vcores=(sum(q["allocated"][1] for q in look["queues"].values() if q["leaf"]), look["capacity"][1]),
            queues=rows,
            unit=str(settings.get("resource", "memory")),
            began_s=look["began_s"],
            half_life_s=settings.get("half_life"),
            alarms=tuple((kind, text) for kind, text in look["alarms"]),
            mode=str(look.get("mode", "")),
            released=str(look.get("released", "")),
            released_s=look.get("released_s"),
            given_back=given_back,
            killed_mb_s=_killed(look.get("preemption")),
            scheduler=str(look.get("scheduler", "")),
            accounts_age_s=None if now_s is None else max(now_s - float(look["time_s"]), 0.0),
        )
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        raise InputError(
            "this ledger has no look at a cluster yet", where=str(path), hint="let `yarnfair enforce` run"
        ) from None
    found = with_sums(of_policy(view, name, settings))
    return found if given_back else with_changes(found, read_decisions(path, most=MOST_DECISIONS))


def _killed(stored: Mapping[str, float] | None) -> tuple[float, float] | None:
    return None if stored is None else (float(stored["budget_mb_s"]), float(stored["lost_mb_s"]))


def of_policy(view: View, name: str, settings: Mapping[str, object]) -> View:
    """Return the view with the policy's properties filled in; unchanged if the policy cannot be loaded here."""
    try:
        policy = make_policy(name, {key: value for key, value in settings.items() if value is not None})
    except YarnfairError:
        return view
    return replace(view, flat=policy.dues_are_flat(), gives_back=policy.gives_back)


def _later(backlog_s: float | None, start_s: float | None) -> float | None:
    if backlog_s is None:
        return None
    return backlog_s if start_s is None else max(backlog_s, start_s)


def from_rm(
    time_s: float,
    source: str,
    status: SchedulerStatus,
    weights: Mapping[str, float] | None,
    apps: Iterable[AppStatus],
    kept: View | None = None,
    *,
    clock_s: float | None = None,
    facts: Facts | None = None,
) -> View:
    """Return the RM's present view, with accounts and entitlements from a controller's view ``kept``, if given.

    If ``weights`` is None, the RM does not show them (a Fair Scheduler whose client RPC does not answer). Its steady
    fair shares, which are proportional to the weights within the queues' limits, replace them.

    Without ``kept``, the weights in force serve as entitlements, and the accumulated usage is the usage of the
    applications that the RM still retains. Applications with impossible figures are left out, and an alarm names them.
    The usage is in dominant shares if ``facts`` shows that the scheduler compares these. ``clock_s``: the RM's clock,
    seconds since 1970. ``facts``: the RM's limits, from which the limits that block a queue are found.
    """
    retained: dict[str, float] = {}
    sifted = sift(apps, status.capacity, clock_s)
    dominant = kept is None and facts is not None and bool(facts.limits.dominant)
    dominant = dominant and status.capacity.memory_mb > 0 and status.capacity.vcores > 0
    for app in sifted.apps:
        used = float(app.memory_seconds)
        if dominant:
            used = max(used / status.capacity.memory_mb, app.vcore_seconds / status.capacity.vcores)
        retained[app.queue] = retained.get(app.queue, 0.0) + used
    rows: dict[str, QueueRow] = {}
    # A missing capacity of a Capacity Scheduler's queue means 0; a Fair Scheduler's queue has weight 1 by default.
    unsaid = 0.0 if status.type == CAPACITY else 1.0
    steady = steady_weights(status)
    own = steady if weights is None else weights
    weights = {} if weights is None else weights
    ends, guaranteed = status.ends(), parts_of_parents(status)
    for path, queue in status.queues.items():
        known = kept.queues.get(path) if kept is not None else None
        leaf = queue.leaf or path in ends
        row = known or QueueRow(path, queue.parent, leaf, own.get(path, unsaid))
        accumulated = row.accumulated if kept is not None else retained.get(path, 0.0)
        holds = holds_of_queue(facts, path) if facts is not None and leaf else ()
        rows[path] = replace(
            row,
            leaf=leaf,
            parent=queue.parent,
            allocated_mb=max(queue.used.memory_mb, 0),
            demand_mb=max(queue.demand.memory_mb, queue.used.memory_mb, 0),
            pending=queue.containers_pending,
            apps=queue.active_apps + queue.pending_apps,
            weight=weights.get(path, row.weight),
            accumulated=accumulated,
            fair_mb=queue.fair_share.memory_mb,
            reserved_mb=queue.reserved.memory_mb,
            priority=queue.priority,
            ordering=queue.policy,
            allocated_vcores=max(queue.used.vcores, 0),
            of_parent=guaranteed.get(path),
            holds=holds,
            blocked=facts is not None and blocks_all(facts, path, holds),
        )
    held = sum(queue.used.vcores for queue in status.queues.values() if queue.leaf)
    view = replace(
        kept or View(time_s, source, "", 0, {}),
        time_s=time_s,
        source=source,
        capacity_mb=status.capacity.memory_mb,
        vcores=(held, status.capacity.vcores),
        scheduler=status.type,
        facts=facts,
        estimated=own is steady,
        queues=rows,
        accounts_age_s=None if kept is None else max(time_s - kept.time_s, 0.0),
    )
    if dominant:
        view = replace(view, unit="dominant")
    if sifted.left_out:
        view = replace(view, alarms=(*view.alarms, ("app", sifted.words())))
    return with_sums(view)


@dataclass(frozen=True, slots=True)
class Rival:
    """A queue that competes for the next container.

    The Fair Scheduler compares usage over weight (smallest first); the Capacity Scheduler compares usage, including
    reserved resources, over the effective capacity.
    """

    path: str
    usage_over_weight: float
    wants: bool


def by_priority(view: View, row: QueueRow) -> bool:
    """Return whether the Capacity Scheduler also compares priorities among a queue and its siblings."""
    return row.parent is not None and view.queues[row.parent].ordering == "priority-utilization"


def rivals(view: View, path: str) -> list[Rival]:
    """Return the queue and its siblings in the order in which the RM's own scheduler would serve them.

    The Fair Scheduler's minimum shares and the Capacity Scheduler's minimum allocation are ignored. The list is empty
    if a Capacity Scheduler's effective capacities are unknown, which a ledger does not contain.
    """
    row = view.queues[path]
    if view.scheduler == CAPACITY and row.parent is not None:
        siblings = [other for other in view.queues.values() if other.parent == row.parent]
        if not any(other.fair_mb for other in view.queues.values()):
            return []
        before = functools.partial(_served_before, by_priority=by_priority(view, row))
        return [
            Rival(other.path, _fill(other), other.wants) for other in sorted(siblings, key=functools.cmp_to_key(before))
        ]
    weights = {other.path: other.entitlement if view.estimated else other.weight for other in view.queues.values()}
    found = [
        Rival(other.path, _usage(view, other) / weight, other.wants)
        for other in view.queues.values()
        if other.parent == row.parent and other.parent is not None and (weight := weights[other.path])
    ]
    return sorted(found, key=lambda rival: (not rival.wants, rival.usage_over_weight, rival.path))


def _usage(view: View, row: QueueRow) -> float:
    """Return the usage that the Fair Scheduler divides by the weight: MiB, or the dominant share under ``drf``."""
    return view.held_part(row) if view.unit == "dominant" else float(row.allocated_mb)


def _fill(row: QueueRow) -> float:
    """Return the used fraction of a queue's effective capacity; infinite if it has no capacity."""
    return (row.allocated_mb + row.reserved_mb) / row.fair_mb if row.fair_mb else math.inf


def _served_before(left: QueueRow, right: QueueRow, *, by_priority: bool) -> int:
    """Compare two queues like PriorityUtilizationQueueOrderingPolicy: negative if left is served before right."""
    a, b = _fill(left), _fill(right)
    waits = (not left.wants) - (not right.wants)
    if waits:
        return waits
    if bool(left.fair_mb) != bool(right.fair_mb):
        return -1 if left.fair_mb else 1
    if by_priority and left.priority != right.priority:
        if (a < 1) == (b < 1):
            return right.priority - left.priority
        return -1 if a < 1 else 1
    if a != b:
        return -1 if a < b else 1
    return (right.fair_mb or 0) - (left.fair_mb or 0) or (left.path > right.path) - (left.path < right.path)
