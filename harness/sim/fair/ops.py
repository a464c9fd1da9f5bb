"""The Fair Scheduler's kernels that shared kernels call."""

from __future__ import annotations

from harness.sim.containers import link_ask
from harness.sim.fair import apps, assign, containers, keys, limits, nodes, preempt, shares, turns
from harness.sim.ops import SchedulerOps
from harness.sim.waiting import no_longer_waits

OPS = SchedulerOps(
    put_ask=link_ask,
    drop_ask=containers.drop_ask,
    change_pending=containers.change_pending,
    asked=containers.asked,
    ask_resized=containers.mark_asks,
    normalize=apps.normalize,
    has_none_of=apps.has_none_of,
    used=containers.used,
    freed=containers.freed,
    attempt_scheduling=assign.attempt,
    can_skip=nodes.can_skip,
    most_rounds=nodes.most_rounds,
    overcommitted=nodes.overcommitted,
    node_joined=nodes.joined,
    node_leaves=nodes.leaves,
    cluster_changed=nodes.changed,
    drop_reservation=containers.unreserve,
    drop_reservations=containers.drop_reservations,
    add_app=apps.add_app,
    new_attempt=apps.new_attempt,
    remove_attempt=apps.leave,
    app_ended=containers.mark_dirty,
    remaining_app_slots=apps.remaining_app_slots,
    starts=apps.starts,
    stop_waiting=no_longer_waits,
    headroom=limits.headroom,
    update=shares.update,
    is_settled=shares.is_settled,
    preempt_pass=preempt.preempt_pass,
    next_kill_ms=preempt.next_kill_ms,
    run_kills=preempt.run_kills,
    counted_anew=keys.counted_anew,
    key_changed=turns.seat,
)
