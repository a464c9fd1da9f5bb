"""Explain a queue's allocation or an application's wait in sentences and figures, from a `View`.

Formatting only: `harness.yarn.holds` finds what holds a queue back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from harness.base.words import counted, seconds
from harness.control.changes import SAME, amount
from harness.control.view import QueueRow, Rival, View, alarms, by_priority, head, rivals
from harness.yarn.answers import AppStatus
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.holds import (
    Hold,
    ahead,
    ask_of_queue,
    holds_of_app,
    is_cut_off,
    not_running,
    room,
    size_words,
    waits_for_master,
)
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.turns import Turn, turn

#: A controller that has not polled for this long is assumed not to be running, seconds.
_OLD_S = 60.0
#: Characters of an application's diagnostics that are shown.
_MOST_SAID = 600


def percent(part: float) -> str:
    """Format a fraction as a percentage with one decimal."""
    return f"{100 * part:.1f} %"


def moment(view: View, at_s: float) -> str:
    """Format a moment of the view's clock: the time of day, or seconds of the run."""
    if not view.wall_clock:
        return f"{at_s:.1f} s"
    return time.strftime("%H:%M:%S" if view.time_s - at_s < 43_200 else "%Y-%m-%d %H:%M:%S", time.localtime(at_s))


def explain(view: View, path: str) -> list[str]:
    """Return the explanation as lines of one or two sentences."""
    row = view.queues[path]
    lines = [_now(view, row), *full(view), *_closed(view, path), *_held(view, row)]
    if (accounts := _accounts(view, row)) is not None:
        lines.append(accounts)
    if row.parent is not None:
        lines += [*_weight(view, row), *_next(view, row)]
    lines += [*killed(view), *old(view), *step(view)]
    who = "The controller says" if view.policy else "Note"
    lines += [f"{who} ({kind}): {text}" for kind, text in view.alarms]
    return lines


def full(view: View) -> list[str]:
    """Warn if all vcores are in use while memory is free, because all other figures are about memory."""
    if view.vcores is None or "root" not in view.queues:
        return []
    held, there = view.vcores
    memory = view.queues["root"].allocated_mb / max(view.capacity_mb, 1)
    if not 0 < there <= held or memory > 0.9 or view.unit == "dominant":
        return []
    return [
        f"All {there:,} vcores are held, and {100 * memory:.0f} % of the memory: where the scheduler counts vcores, "
        "these are what the queues wait for."
    ]


def killed(view: View) -> list[str]:
    """Explain how much work preemption has killed, and how much of the administrator's budget is left."""
    if view.killed_mb_s is None:
        return []
    budget, lost = view.killed_mb_s
    text = f"Preemption has killed work of {amount(lost, 'memory')} within the last hour"
    if budget <= 0:
        return [f"{text}; there is no budget for it, so shares stay near what queues use."]
    if lost >= budget:
        return [f"{text}, the whole budget ({amount(budget, 'memory')}): shares stay near what queues use."]
    return [f"{text}, of a budget of {amount(budget, 'memory')}: shares may move below what queues use."]


def old(view: View) -> list[str]:
    """Warn that the controller's accounts are old."""
    if view.given_back or view.accounts_age_s is None or view.accounts_age_s <= _OLD_S:
        return []
    return [f"The controller last looked {seconds(view.accounts_age_s)} ago: is it running?"]


def step(view: View) -> list[str]:
    """Explain why the controller writes nothing, if that is so."""
    if view.released:
        when = "" if view.released_s is None else f" at {moment(view, view.released_s)}"
        return [
            f"A guard released{when}: {view.released}. Nothing is written, and the administrator's own weights are in "
            "force, until `yarnfair enforce --resume`."
        ]
    if view.given_back:
        return ["The controller has ended and given back what it wrote: the administrator's own values are in force."]
    if view.mode == "shadow":
        return ["The controller is a shadow: it writes nothing, and what it decides is what it would write."]
    return []


def _now(view: View, row: QueueRow) -> str:
    vcores = ""
    if view.unit == "dominant" and view.vcores is not None:
        vcores = f", {row.allocated_vcores:,} of {view.vcores[1]:,} vcores"
    text = (
        f"Entitled to {percent(row.share)} of the cluster; holds {percent(view.held_part(row))} "
        f"({row.allocated_mb:,} of {view.capacity_mb:,} MiB{vcores})"
    )
    if row.wants:
        more = row.demand_mb - row.allocated_mb
        # The Fair Scheduler limits a queue's demand to its maximum. The number of pending containers is not limited.
        facts = view.facts
        cut_off = facts is not None and not facts.is_capacity and is_cut_off(facts.status.queues[row.path])
        waiting = [f"{more:,} MiB more{' up to its maximum' if cut_off else ''}"] if more > 0 else []
        waiting += [counted(row.pending, "container")] if row.pending else []
        since = f" for {seconds(max(view.time_s - row.waits_since_s, 0.0))}" if row.waits_since_s is not None else ""
        return f"{text} and waits{since} for {', '.join(waiting)}."
    return f"{text} and wants no more." if row.allocated_mb else f"{text} and wants nothing."


def _amounts(row: QueueRow) -> list[float]:
    """Return all amounts that the lines about a queue state, which therefore share one unit."""
    return [value for value in (row.accumulated, row.deficit, row.deficit_then) if value is not None]


def _accounts(view: View, row: QueueRow) -> str | None:
    if row.newcomer:
        return "It is new and has asked for nothing yet: nothing is owed to it for the time before it asks."
    if row.accumulated is None or row.deficit is None:
        return None
    total = view.queues["root"].accumulated or 0.0 if "root" in view.queues else 0.0
    since = "" if view.began_s is None or not view.wall_clock else f" since {moment(view, view.began_s)}"
    if view.half_life_s is not None:
        since += f" (what was used {seconds(view.half_life_s)} ago counts half)"
    if total <= 0:
        return f"Nothing has been accumulated{since}."
    beside = _amounts(row)
    text = (
        f"Accumulated{since}: {amount(row.accumulated, view.unit, beside)}, {percent(row.accumulated / total)} of all; "
        f"its part is {percent(row.due)}"
    )
    if percent(row.due) != percent(row.share):
        text += " (the children share all that their parent is due, in the ratio of their guarantees)"
    if row.parent is None:
        return f"Accumulated{since}: {amount(row.accumulated, view.unit, beside)}."
    if abs(row.deficit) < 0.001 * total:
        return f"{text}: it is even."
    had = f"it has had {amount(abs(row.deficit), view.unit, beside)} too {'little' if row.deficit > 0 else 'much'}"
    if not view.policy:
        return f"{text}: {had}. No controller is known here: nothing makes up for that."
    if view.given_back:
        return f"{text}: {had}. The controller has ended: nothing makes up for that until it is started again."
    if not view.gives_back:
        return f"{text}: {had}. Policy {view.policy} keeps no debts: nothing makes up for that."
    return f"{text}: {had}, which {'is to be given back to it' if row.deficit > 0 else 'the others get back first'}."


def _weight(view: View, row: QueueRow) -> list[str]:
    beside = "the controller does not steer it: the scheduler has created it, with the capacity of its template"
    if row.weight is None:
        return [f"{beside[0].upper()}{beside[1:]}."] if row.created and view.policy and not view.given_back else []
    siblings = [other for other in view.queues.values() if other.parent == row.parent and other.weight is not None]
    total = sum(other.weight or 0.0 for other in siblings)
    name = "Capacity" if view.scheduler == CAPACITY else "Weight"
    text = f"{name} {row.weight:g}, {percent(row.weight / total) if total else '?'} of its siblings' sum"
    if not view.policy or view.given_back or not (view.gives_back or view.decisions or row.changed_s is not None):
        # No controller decides here: the policy is a stock policy.
        return [f"{text}."]
    if row.created:
        return [f"{text}; {beside}."]
    if row.changed_s is None:
        return [f"{text}; the controller has not changed it as far as its decisions go back."]
    when = moment(view, row.changed_s)
    before, after = row.part_before, row.part
    if before is None or after is None or percent(before) == percent(after):
        change, up = f"; last decided at {when}", None
    else:
        up = after > before
        change = f"; {'raised' if up else 'lowered'} from {percent(before)} to {percent(after)} at {when}"
    why = ""
    if row.reason:
        why = f": {row.reason}"
    elif view.gives_back and up is not None and row.deficit_then:
        owed = row.deficit_then > 0
        then = amount(abs(row.deficit_then), view.unit, _amounts(row))
        had = f"by then it had had {then} too {'little' if owed else 'much'}"
        why = f", because {had}" if up == owed else f", although {had}: {_against(view, row, owed=owed)}"
    return [f"{text}{change}{why}."]


def _against(view: View, row: QueueRow, *, owed: bool) -> str:
    """Explain why the last decision moved a queue's part against its debt, by where the part is now."""
    parent = view.queues.get(row.parent or "")
    due = row.share / parent.share if parent is not None and parent.share else 0.0
    beyond = (row.part or 0.0) - due
    if owed:
        if beyond > SAME and not row.wants:
            return f"its part is still above the {percent(due)} that are due to it, and it asks for no more now"
        if beyond > SAME:
            return f"its part is still above the {percent(due)} that are due to it, so it gets that back more slowly"
        return f"at the {percent(due)} that are due to it, it gets nothing back for now"
    if beyond < -SAME:
        return f"its part is still below the {percent(due)} that are due to it, so it gives that back more slowly"
    return f"at the {percent(due)} that are due to it or more, it gives nothing back for now"


def _closed(view: View, path: str) -> list[str]:
    """Explain that the queue takes no new applications, if that is so."""
    found = [] if view.facts is None else not_running(view.facts, path)
    if not found:
        return []
    states = " and ".join(f"{limits.path} is {limits.state}" for limits in found)
    settings = " and ".join(f"{PREFIX}{limits.path}.state" for limits in found)
    return [f"{states}: it takes no new applications. Those that it has go on. To open it, set {settings} to RUNNING."]


def _all_of(holds: Sequence[Hold], app: str = "") -> list[str]:
    """Explain that an application waits for several limits, of which raising only one does not help."""
    if len(holds) < 2:
        return []
    settings = ", ".join(dict.fromkeys(hold.setting for hold in holds))
    who = f"{app} waits" if app else "It waits"
    return [f"{who} for {'both' if len(holds) == 2 else 'all'} of these limits; raise together: {settings}."]


def _first_held(view: View, row: QueueRow) -> list[str]:
    """Explain that the first application that waits in a queue is held by several limits, if that is so."""
    waiting = [] if view.facts is None else view.facts.waiting(row.path)
    if view.facts is None or not waiting:
        return []
    return _all_of(holds_of_app(view.facts, waiting[0]), waiting[0].id)


def _held(view: View, row: QueueRow) -> list[str]:
    """Explain which limits block the queue, or state that none does."""
    if row.holds and not row.blocked:
        some = [f"A part of what it waits for is held. {hold.line()}" for hold in row.holds]
        return [*some, *_first_held(view, row), f"No limit holds the rest. {_room(view, row)}".rstrip()]
    if row.holds:
        turn = turn_of(view, row)
        lines = [*(hold.line() for hold in row.holds), *_first_held(view, row)]
        return [*lines, *([] if turn is None else [turn.words])]
    if not row.leaf and _blocked(view, row.path):
        held = [path for path, other in view.queues.items() if other.blocked and path.startswith(row.path + ".")]
        more = f" and {len(held) - 3} more" if len(held) > 3 else ""
        return [
            f"Limits hold every queue in it that waits: {', '.join(held[:3])}{more}. `yarnfair explain {held[0]}` says "
            "which."
        ]
    if view.facts is None or not row.leaf or not row.wants:
        return []
    return [f"No limit holds it. {_room(view, row)}".rstrip()]


def _room(view: View, row: QueueRow) -> str:
    """Explain whether the cluster has room for the queue's next container, and when its turn is expected."""
    facts = view.facts
    if facts is None:
        return ""
    words = room(facts, ask_of_queue(facts, row.path))
    if not words:
        return "The cluster has room: it is served as its nodes report."
    when = expected_s(view, row)
    if when is None:
        return words
    return (
        f"{words} Its turn is expected in about {seconds(when)}: on the average a container of the cluster has ended "
        f"each {facts.container_every_s:.1f} s since the ResourceManager's start, and that it goes on so is assumed."
    )


def turn_of(view: View, row: QueueRow) -> Turn | None:
    """Return the expected time until a queue's limits admit its next container; None if no limit blocks it."""
    return None if view.facts is None or not row.blocked else turn(view.facts, row.holds, row.path)


def expected_s(view: View, row: QueueRow) -> float | None:
    """Return the expected time until a waiting queue gets its next container, seconds; None if it is unknown.

    The estimate assumes that containers end at the average rate since the RM's start, and that each freed container
    goes to the next queue in the scheduler's order, level by level. If limits block the queue, the time is the one
    until the limits admit the next container (`turn_of`).
    """
    if row.blocked:
        held = turn_of(view, row)
        return None if held is None else held.expected_s
    if view.facts is None or not row.wants or view.facts.container_every_s is None:
        return None
    if not room(view.facts, ask_of_queue(view.facts, row.path)):
        return 0.0
    before, at = 0, row.path
    while (parent := view.queues[at].parent) is not None:
        waiting = [rival.path for rival in _waiting(view, at)]
        before += waiting.index(at) if at in waiting else 0
        at = parent
    return (before + 1) * view.facts.container_every_s


def _waiting(view: View, path: str) -> list[Rival]:
    """Return the waiting siblings that no limit blocks, and the queue itself if it waits, in the scheduler's order."""
    return [
        rival for rival in rivals(view, path) if rival.wants and (rival.path == path or not _blocked(view, rival.path))
    ]


def _blocked(view: View, path: str) -> bool:
    """Return whether limits block all waiting leaves of a subtree, so that it gets no freed container."""
    below = [row for row in view.queues.values() if row.leaf and (row.path + ".").startswith(path + ".") and row.wants]
    return bool(below) and all(row.blocked for row in below)


def _next(view: View, row: QueueRow) -> list[str]:
    """Explain which of the siblings gets the next container."""
    order = rivals(view, row.path)
    waiting = _waiting(view, row.path)
    if not waiting:
        return ["None of its siblings waits for containers now."] if len(order) > 1 else []
    places = [rival.path for rival in waiting]
    if row.path in places:
        place = places.index(row.path) + 1
        lead = "It is next" if place == 1 else f"It is number {place} of the {len(places)} that wait"
        if row.blocked or _blocked(view, row.path):
            lead = "Without that it would be next" if place == 1 else f"Without that it would be number {place}"
    else:
        lead = "It wants no more now" if row.allocated_mb else "It wants nothing now"
    if view.scheduler == CAPACITY:
        return [f"{lead}: {_by_capacity(view, row, waiting)}."]
    noun = "steady fair shares" if view.estimated else "weights"
    total = sum(_share_of(view, other) for other in view.queues.values() if other.parent == row.parent)
    held = sum(other.allocated_mb for other in view.queues.values() if other.parent == row.parent)
    shown = ", ".join(
        f"{rival.path} has {percent(view.queues[rival.path].allocated_mb / max(held, 1))} of what they hold and "
        f"{percent((_share_of(view, view.queues[rival.path])) / (total or 1.0))} of their {noun}"
        for rival in waiting[:5]
    )
    return [f"{lead}: the scheduler serves first who holds least for its weight ({shown})."]


def _share_of(view: View, row: QueueRow) -> float:
    return (row.entitlement if view.estimated else row.weight) or 0.0


def _by_capacity(view: View, row: QueueRow, waiting: Sequence[Rival]) -> str:
    """Explain how the Capacity Scheduler orders the waiting queues."""
    ranked = by_priority(view, row)
    shown = []
    for rival in waiting[:5]:
        other = view.queues[rival.path]
        uses = f"uses {percent(rival.usage_over_weight)} of {other.fair_mb:,} MiB" if other.fair_mb else "has none"
        shown.append(f"{rival.path} {uses}" + (f", priority {other.priority}" if ranked else ""))
    rule = "the scheduler serves first who uses least of its capacity"
    if ranked:
        rule = "the scheduler serves first who is below its capacity, by priority, then who uses least of it"
    return f"{rule} ({'; '.join(shown)})"


def document(view: View, path: str) -> dict[str, Any]:
    """Return the explanation as a JSON document."""
    return {
        "queue": path,
        **head(view),
        **row_document(view, view.queues[path]),
        "next": [
            {"queue": rival.path, "usage_over_weight": rival.usage_over_weight, "wants": rival.wants}
            for rival in rivals(view, path)
        ],
        "holds": [hold.document() for hold in view.queues[path].holds],
        "blocked": view.queues[path].blocked,
        "expected_s": expected_s(view, view.queues[path]),
        "expected": None if (held := turn_of(view, view.queues[path])) is None else held.words,
        "words": explain(view, path),
        "alarms": alarms(view),
    }


def explain_app(view: View, app: AppStatus) -> list[str]:
    """Return the explanation of an application's wait as lines, from a view with `View.facts`."""
    facts = view.facts
    assert facts is not None
    begun = "" if app.elapsed_ms is None else f", {seconds(app.elapsed_ms / 1000.0)} after its submission"
    lines = [f"Of {app.user or 'nobody'} in {app.queue}: {app.state}{begun}."]
    said = " ".join(app.diagnostics.split())
    told = [f"The ResourceManager says: {said[:_MOST_SAID]}{'...' if len(said) > _MOST_SAID else ''}"] if said else []
    if app.final:
        return [*lines, f"It has ended ({app.final_status}).", *told]
    row = view.queues.get(app.queue)
    if row is None:
        return [*lines, f"The scheduler shows no queue {app.queue}.", *told]
    holds = holds_of_app(facts, app)
    lines += [*(hold.line() for hold in holds), *_all_of(holds)]
    waits = waits_for_master(app)
    before = ahead(facts, app)
    if (held := turn(facts, holds, app.queue, app.user, len(before))) is not None:
        lines.append(held.words)
    if waits and before:
        ids = ", ".join(one.id for one in before[:3]) + (f" and {len(before) - 3} more" if len(before) > 3 else "")
        lines.append(f"Ahead of it in {app.queue} {'wait' if len(before) > 1 else 'waits'} {ids}.")
    if waits and not holds:
        lines.append(f"No limit holds it. {_room(view, row)}".rstrip())
    elif app.state == "ACCEPTED" and not waits:
        lines.append(
            "Its ApplicationMaster has its container and has not registered: its own log tells why, if it stays."
        )
    elif app.state == "RUNNING":
        lines.append(f"It holds {counted(app.running_containers, 'container')}, {size_words(app.allocated)}.")
        if not holds and row.wants:
            lines.append(f"Its queue waits, and no limit holds it. {_room(view, row)}".rstrip())
        elif not row.wants:
            lines.append("Its queue waits for nothing.")
    elif app.state != "ACCEPTED":
        lines.append("Its scheduler does not know it yet: the ResourceManager is recording it.")
    # An application that is not running although its AM has a container waits for the AM to register, not for the
    # scheduler.
    if row.wants and row.parent is not None and not holds and (waits or app.state == "RUNNING"):
        lines += _next(view, row)
    return [*lines, *told]


def app_document(view: View, app: AppStatus) -> dict[str, Any]:
    """Return the explanation of an application as a JSON document, which extends its queue's document."""
    facts = view.facts
    assert facts is not None
    queue = document(view, app.queue) if app.queue in view.queues else {"queue": app.queue, **head(view)}
    holds = holds_of_app(facts, app)
    held = turn(facts, holds, app.queue, app.user, len(ahead(facts, app)))
    when = {} if held is None else {"expected_s": held.expected_s, "expected": held.words}
    return {
        **queue,
        **when,
        "application": {
            "id": app.id,
            "user": app.user,
            "state": app.state,
            "final_status": app.final_status,
            "elapsed_s": None if app.elapsed_ms is None else app.elapsed_ms / 1000.0,
            "waits_for_master": waits_for_master(app),
            "diagnostics": app.diagnostics,
        },
        "holds": [hold.document() for hold in holds],
        "ahead": [one.id for one in ahead(facts, app)],
        "words": explain_app(view, app),
    }


def row_document(view: View, row: QueueRow) -> dict[str, Any]:
    """Return one queue's figures as a JSON document."""
    capacity = max(view.capacity_mb, 1)
    return {
        "leaf": row.leaf,
        "entitlement": row.entitlement,
        "entitled_share": row.share,
        "due_share": row.due,
        "allocated_mb": row.allocated_mb,
        "share": row.allocated_mb / capacity,
        "allocated_vcores": row.allocated_vcores,
        "counted_share": view.held_part(row),
        "demand_mb": row.demand_mb,
        "pending_containers": row.pending,
        "applications": row.apps,
        "fair_share_mb": row.fair_mb,
        "weight": row.weight,
        "accumulated": row.accumulated,
        "deficit": row.deficit,
        "changed_s": row.changed_s,
        "weight_before": row.weight_before,
        "reason": row.reason,
    }
