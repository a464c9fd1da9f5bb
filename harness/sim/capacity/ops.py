"""The Capacity Scheduler's kernels that shared kernels call."""

from __future__ import annotations

from harness.sim.capacity import apps, assign, containers, nodes, parallel, preempt, resources, users
from harness.sim.ops import SchedulerOps

OPS = SchedulerOps(
    put_ask=containers.put_ask,
    drop_ask=containers.drop_ask,
    change_pending=containers.change_pending,
    asked=containers.asked,
    normalize=resources.normalize,
    has_none_of=resources.has_none_of,
    freed=containers.freed,
    attempt_scheduling=assign.attempt,
    can_skip=nodes.can_skip,
    most_rounds=nodes.most_rounds,
    change_room=nodes.refresh_room,
    overcommitted=nodes.overcommitted,
    node_joined=nodes.joined,
    node_leaves=nodes.leaves,
    cluster_changed=nodes.changed,
    counts_vcores=nodes.counts_vcores,
    drop_reservation=containers.drop_reservation,
    drop_reservations=containers.drop_reservations,
    may_reserve=nodes.may_reserve,
    add_app=apps.add_app_of_user,
    new_attempt=apps.again,
    remove_attempt=apps.leave,
    app_ended=apps.forget,
    end_records=apps.end_records,
    remaining_app_slots=parallel.remaining_app_slots,
    starts=parallel.starts,
    stop_waiting=parallel.let_go,
    headroom=users.headroom,
    tells_headroom=nodes.tells_headroom,
    show_headroom=users.show_headroom,
    next_kill_ms=preempt.next_round_ms,
    run_kills=preempt.run_rounds,
)
