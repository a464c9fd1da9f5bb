"""The virtual clock, compiled: processes the next event repeatedly, until Python is needed.

At one instant things happen in this order: kills that fall due, events of the heap (nodes join and leave, jobs arrive,
AMs act, nodes report an end outside their period), the scheduler's update (with its preemption pass), the nodes'
regular heartbeats, control ticks, samples.

Node heartbeats are not in the heap: nodes are in a ring ordered by phase. A heartbeat of a node with nothing to report,
on which the scheduler could not place anything, is skipped. Once every node had a heartbeat since the last change, all
heartbeats until the next event are skipped together, and so are updates of the scheduler that would change nothing.
Tests show that skipping makes no difference, except that under decay-slurm and decay-kai values may be rounded
differently where single heartbeats are skipped.
"""

from __future__ import annotations

from harness.sim import nodes, ops
from harness.sim.allocation import look
from harness.sim.apps import act, arrive, check_reduces, finish, restart_lost, speculate
from harness.sim.arrays import call_at, fetch, fetch_line
from harness.sim.calls import (
    C_DRAIN,
    C_EXIT,
    C_HEARTBEAT,
    C_JOIN,
    C_LEAVE,
    C_RESIZE,
    C_UPDATE,
    most_calls,
    note,
)
from harness.sim.containers import container_exit
from harness.sim.ends import ended_by
from harness.sim.events import (
    E_ACT,
    E_ALLOCATE,
    E_ARRIVE,
    E_BEAT,
    E_DRAIN,
    E_EXECUTOR,
    E_INNER,
    E_JOIN,
    E_LEAVE,
    E_LIFETIME,
    E_REDUCE_CHECK,
    E_RESIZE,
    E_SPECULATE,
    kind_of,
    pop,
    push,
    slot_of,
    use_of,
)
from harness.sim.granted import drain
from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import advance, roll_rounds, settle_all, total_of
from harness.sim.longterm_state import RULE_HORIZON
from harness.sim.quantum import cross
from harness.sim.spark import executor_up, inner_ended
from harness.sim.state import NEED_ROOM as STATE_NEED_ROOM
from harness.sim.state import SchedulerState
from harness.sim.tasks import inner_used
from harness.sim.weighing import weigh_node
from harness.sim.world import (
    BLOCK,
    CALLS_FULL,
    DONE,
    ENDED_FULL,
    J_FREE,
    KEYS,
    LIMIT,
    NEED_JOBS,
    NEED_ROOM,
    NEVER,
    PARTS,
    PAUSE,
    SAMPLES_FULL,
    TASKS_FULL,
    TICK,
    World,
)

#: Columns of W.samp_i (MiB, vcores, number of containers) and W.samp_f (integrals in the measure times ms, ms, weight).
I_MB, I_VC, I_DEMAND_MB, I_DEMAND_VC, I_FAIR_MB, I_RUNNING = range(6)
F_ACC, F_COUNTED, F_DUE, F_DUE_FLAT, F_QUANTUM, F_WEIGHT = range(6)


#: Time after which graceful decommissioning ends: the default of
#: ``yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs``, ms.
DECOMMISSION_MS = 3_600_000
#: Number of nodes from which on their state does not fit in the nearest caches.
_MANY_NODES = 256


@kernel
def most_events(W: World) -> int:
    """Return an upper bound of the number of events that one iteration of the loop may push.

    A heartbeat may end and assign a container in every slot (at most 2 and 3 events each). The end of a job schedules
    all jobs that follow it, and a driver may start a task in every slot of its executors.
    """
    return 5 * len(W.runs) + len(W.jobs) + W.g[0].burst + 64


@kernel
def short_of_room(W: World) -> bool:
    """Return whether one more event might fill an array."""
    g = W.g[0]
    live = g.live_runs + inner_used(W) + 1024
    return (
        g.heap_n + most_events(W) > len(W.heap_t)
        or g.redo_left < live
        or g.inner_left < g.burst + 64
        or g.live_runs + 64 > len(W.scratch)
    )


@kernel
def rebuild_ring(W: World, now: int) -> None:
    """Sort the registered nodes into the ring by phase and slot; the next heartbeat is the first at or after `now`."""
    g = W.g[0]
    n = 0
    for node in range(len(W.nodes)):
        if W.nodes[node].up == 1:
            W.ring[n] = node
            n += 1
    g.ring_n = n
    # Insertion sort, because the slots are usually almost sorted by phase.
    for i in range(1, n):
        node = W.ring[i]
        phase = W.nodes[node].phase_ms
        k = i - 1
        while k >= 0 and W.nodes[W.ring[k]].phase_ms > phase:
            W.ring[k + 1] = W.ring[k]
            k -= 1
        W.ring[k + 1] = node
    for i in range(n):
        W.ring_ms[i] = W.nodes[W.ring[i]].phase_ms
    g.ring_base_ms = now // g.node_hb_ms * g.node_hb_ms
    at = 0
    while at < n and g.ring_base_ms + W.ring_ms[at] < now:
        at += 1
    if at == n:
        at = 0
        g.ring_base_ms += g.node_hb_ms
    g.ring_at = at


@kernel
def _exits(S: SchedulerState, W: World, node: int, now: int) -> None:
    """Let the containers on a node whose processes have ended by now exit, in the order of their ends."""
    for i in range(ended_by(W, node, now)):
        c = W.scratch[i]
        if container_exit(S, c) == 0:
            note(W, now, C_EXIT, S.a[S.c[c].app].id, S.c[c].n, 0, 0, 0)


@kernel
def take_sample(S: SchedulerState, W: World, now: int) -> None:
    """Write one row of samples: the values of every queue at `now`, with integrals up to `now`."""
    g = W.g[0]
    at = g.sample_n
    g.sample_n = at + 1
    W.samp_t[at, 0] = now
    W.samp_t[at, 1] = S.g[0].cluster_mb
    W.samp_t[at, 2] = S.g[0].cluster_vcores
    n = S.xg[0].n
    roll_rounds(S, now)
    ints, reals = W.samp_i[at], W.samp_f[at]
    for i in range(n):
        for k in range(6):
            ints[i, k] = 0
        for k in range(F_QUANTUM):
            reals[i, k] = 0.0
        ints[i, I_FAIR_MB] = S.q[i].fair_mb
        reals[i, F_WEIGHT] = S.q[i].weight
        reals[i, F_QUANTUM] = S.x[i].q_ms
    for k in range(S.g[0].n_leaves):
        leaf = S.leaves[k]
        advance(S, leaf, now)
        q, x = S.q[leaf], S.x[leaf]
        counted = total_of(S, leaf, now)
        i = leaf
        while i >= 0:
            ints[i, I_MB] += q.usage_mb
            ints[i, I_VC] += q.usage_vcores
            ints[i, I_DEMAND_MB] += q.usage_mb + q.pending_mb
            ints[i, I_DEMAND_VC] += q.usage_vcores + q.pending_vcores
            ints[i, I_RUNNING] += x.running
            reals[i, F_ACC] += x.acc
            reals[i, F_COUNTED] += counted
            reals[i, F_DUE] += x.due
            reals[i, F_DUE_FLAT] += x.due_flat
            i = S.q[i].parent


@kernel
def _assume(S: SchedulerState, W: World, now: int) -> None:
    """Update the assumed execution times of running tasks to `now`, if the ledger has quanta."""
    g = W.g[0]
    if S.xg[0].quantum == 1:
        roll_rounds(S, now)
        if S.xg[0].round_start_ms > g.round_ms:
            g.round_ms = S.xg[0].round_start_ms
            for j in range(len(W.jobs)):
                W.jobs[j].cross_ms = min(W.jobs[j].cross_ms, now)
            g.cross_ms = now
        if g.cross_ms <= now:
            cross(S, W, now)


@kernel
def _keyed(S: SchedulerState, W: World) -> bool:
    """Recompute the keys of a user's policy in compiled code; return False if Python must compute them."""
    g = W.g[0]
    if g.keys_at == 0 or call_at(g.keys_at, S, W, g.keys_of) != 1:
        return False
    g.keys_fresh = 1
    return True


@kernel
def beat(S: SchedulerState, W: World, node: int, now: int) -> bool:
    """Process a node's heartbeat; return False if an array was too small and the call must be repeated."""
    g = W.g[0]
    g.beat_again = 1
    if W.nodes[node].next_end_ms <= now:
        _exits(S, W, node, now)
    _assume(S, W, now)
    if nodes.heartbeat(S, node, now) == STATE_NEED_ROOM:
        g.need_room = 1
        return False
    note(W, now, C_HEARTBEAT, node, 0, 0, 0, 0)
    g.beat_again = 0
    g.keys_fresh = 0
    g.heartbeats += 1
    if S.g[0].n_log > 0:
        drain(S, W, now)
    if S.n[node].draining == 1:
        settle_all(S, now)
    return True


@kernel
def happens(S: SchedulerState, W: World, value: int, now: int) -> None:
    """Process an event of the heap (`value`: the packed event) at time `now` (ms)."""
    kind, use, slot = kind_of(value), use_of(value), slot_of(value)
    g = W.g[0]
    if kind == E_INNER:
        inner_ended(S, W, slot, now)
        return
    if kind == E_EXECUTOR:
        executor_up(W, slot, use, now)
        return
    if kind == E_JOIN:
        if nodes.add_node(S, slot, now) == STATE_NEED_ROOM:
            g.need_room = 1
            return
        note(W, now, C_JOIN, slot, 0, 0, 0, 0)
        W.nodes[slot].up = 1
        settle_all(S, now)
        if S.xg[0].weighted == 1:
            weigh_node(S, W, slot, 1.0, now)
        drain(S, W, now)
        g.ring_stale = 1
        return
    if kind == E_RESIZE:
        if nodes.resize_node(S, slot, W.sizes[use, 0], W.sizes[use, 1], now) == STATE_NEED_ROOM:
            g.need_room = 1
            return
        note(W, now, C_RESIZE, slot, W.sizes[use, 0], W.sizes[use, 1], 0, 0)
        settle_all(S, now)
        drain(S, W, now)
        return
    if kind == E_DRAIN:
        nodes.drain_node(S, slot)
        note(W, now, C_DRAIN, slot, 0, 0, 0, 0)
        W.nodes[slot].until_ms = now + DECOMMISSION_MS
        return
    if kind == E_LEAVE:
        if S.n[slot].draining == 1 and S.n[slot].n_c > 0 and now < W.nodes[slot].until_ms:
            push(W, min(now + g.node_hb_ms, W.nodes[slot].until_ms), E_LEAVE, use, slot)
            return
        if nodes.remove_node(S, slot, now) == STATE_NEED_ROOM:
            g.need_room = 1
            return
        note(W, now, C_LEAVE, slot, 0, 0, 0, 0)
        W.nodes[slot].up = 0
        drain(S, W, now)
        W.nodes[slot].next_end_ms = NEVER
        settle_all(S, now)
        if S.xg[0].weighted == 1:
            weigh_node(S, W, slot, -1.0, now)
        g.ring_stale = 1
        return
    if kind == E_BEAT:
        if W.nodes[slot].up == 1 and (g.beat_again == 1 or W.nodes[slot].next_end_ms <= now):
            beat(S, W, slot, now)
        return
    if W.jobs[slot].gen != use or W.jobs[slot].state == J_FREE:
        return
    if kind == E_ALLOCATE:
        look(W, slot, now)
    elif kind == E_ACT:
        act(S, W, slot, now)
    elif kind == E_ARRIVE:
        arrive(S, W, slot, now)
    elif kind == E_REDUCE_CHECK:
        check_reduces(S, W, slot, now)
    elif kind == E_SPECULATE:
        speculate(W, slot, now)
    elif kind == E_LIFETIME:
        finish(S, W, slot, now)


@kernel
def _ahead(W: World, by: int) -> int:
    """Return the node whose heartbeat comes `by` positions after the current one in the ring."""
    at = W.g[0].ring_at + by
    return W.ring[at if at < W.g[0].ring_n else at - W.g[0].ring_n]


@kernel
def _soon(S: SchedulerState, W: World) -> None:
    """Prefetch the records of the next heartbeats, because those of thousands of nodes exceed the caches."""
    g = W.g[0]
    if g.ring_n < _MANY_NODES:
        return
    later = _ahead(W, 12)
    fetch_line(S.n, later)
    fetch_line(W.nodes, later)
    first = W.nodes[_ahead(W, 9)].head
    if first >= 0:
        for at in range(first, first + BLOCK, 4):
            fetch_line(W.ends, at)
    for stage in range(2):
        node = W.nodes[_ahead(W, 6 - 3 * stage)]
        if node.next_end_ms > g.now:
            continue
        for at in range(node.head + 1, node.head + node.filled + 1):
            if W.ends[at].ms > g.now:
                continue
            c = W.ends[at].c
            if stage == 0:
                fetch(S.c, c)
                fetch(W.runs, c)
            else:
                x, run = S.c[c], W.runs[c]
                fetch_line(S.c, max(x.n_prev, 0))
                fetch_line(S.c, max(x.n_next, 0))
                fetch_line(S.c, max(x.a_prev, 0))
                fetch_line(S.c, max(x.a_next, 0))
                fetch_line(W.runs, max(run.st_prev, 0))
                fetch_line(W.runs, max(run.st_next, 0))


@kernel
def _find_quiet_end(W: World) -> None:
    """Set the time at which the next process on any node ends, until which heartbeats without effect may be skipped."""
    g = W.g[0]
    g.quiet, g.quiet_end_ms = g.ring_n + 1, NEVER
    for i in range(g.ring_n):
        g.quiet_end_ms = min(g.quiet_end_ms, W.nodes[W.ring[i]].next_end_ms)


@kernel
def _leap(W: World, to_ms: int) -> None:
    """Skip all heartbeats before `to_ms`, which is later than the next heartbeat."""
    g = W.g[0]
    turns = (to_ms - g.ring_base_ms - W.ring_ms[g.ring_at]) // g.node_hb_ms
    g.ring_base_ms += turns * g.node_hb_ms
    g.leapt += turns * g.ring_n
    # Less than one round of the ring is left. Nodes are ordered by phase.
    low, high = g.ring_at, g.ring_n
    if g.ring_base_ms + W.ring_ms[high - 1] < to_ms:
        g.leapt += high - low
        g.ring_base_ms += g.node_hb_ms
        low, high = 0, low
    first = low
    while low < high:
        middle = (low + high) // 2
        if g.ring_base_ms + W.ring_ms[middle] < to_ms:
            low = middle + 1
        else:
            high = middle
    g.leapt += low - first
    g.ring_at = low


@kernel
def _leap_updates(S: SchedulerState, W: World, to_ms: int) -> None:
    """Skip the scheduler's updates, which change nothing, up to `to_ms` or an earlier end of this state.

    Such ends are the next end of a process, the next job of the input, the next check by Python, and the time limit.
    """
    g = W.g[0]
    to_ms = min(min(to_ms, g.quiet_end_ms), min(min(g.feed_ms, g.pause_ms), g.limit_ms + 1))
    if g.next_update_ms < to_ms and S.xg[0].rule != RULE_HORIZON:
        count = (to_ms - g.next_update_ms + g.update_ms - 1) // g.update_ms
        g.updates += count
        g.next_update_ms += count * g.update_ms


@kernel
def run(S: SchedulerState, W: World) -> int:
    """Process events until Python is needed; return the reason (DONE ... CALLS_FULL of `harness.sim.world`).

    Python calls this function again after handling the reason.
    """
    g = W.g[0]
    # Python may have changed anything.
    g.quiet = 0
    while True:
        if g.need_room == 1 or len(W.runs) < len(S.c) or short_of_room(W):
            return NEED_ROOM
        if g.ended_n + 64 > len(W.ended):
            return ENDED_FULL
        if g.record_tasks == 1 and g.task_n + g.live_runs + inner_used(W) + 64 > len(W.tasklog):
            return TASKS_FULL
        if g.record_calls == 1 and g.calls_n + most_calls(W) > len(W.calls):
            return CALLS_FULL
        if g.am_lost == 1:
            restart_lost(S, W, g.now)
            continue
        if g.live_jobs == 0 and g.feed_ms == NEVER:
            return DONE
        events = g.started + g.ended
        if events + g.heartbeats + g.skipped >= g.pause_after:
            return PAUSE
        if g.now >= g.pause_ms:
            if events == g.still_events:
                return PAUSE
            g.still_events = events
            g.pause_ms = g.now + g.still_ms
        t_heap = W.heap_t[0] if g.heap_n > 0 else NEVER
        t_kill = ops.next_kill_ms(S) if S.g[0].kill_n > 0 else NEVER
        settled = ops.is_settled(S)
        if settled and g.quiet > g.ring_n:
            _leap_updates(S, W, min(min(t_heap, t_kill), min(g.next_sample_ms, g.next_tick_ms)))
        t_fixed = min(min(g.next_update_ms, g.next_sample_ms), g.next_tick_ms)
        t = min(min(t_heap, t_kill), t_fixed)
        if g.ring_stale == 1 and t_heap > g.now:
            g.ring_stale = 0
            g.quiet = 0
            rebuild_ring(W, g.now)
        if g.ring_n > 0:
            # Process all heartbeats that come before the next event of another kind.
            until = min(min(t, g.feed_ms - 1), g.limit_ms)
            if until == t and (t == g.next_update_ms or min(t_heap, t_kill) == t):
                until -= 1  # kills, events and updates at the same time come before heartbeats
            beat_ms = g.ring_base_ms + W.ring_ms[g.ring_at]
            moved = False
            while beat_ms <= until:
                if g.quiet == g.ring_n:
                    _find_quiet_end(W)
                if g.quiet > g.ring_n and g.quiet_end_ms > beat_ms:
                    _leap(W, min(g.quiet_end_ms, until + 1))
                    beat_ms = g.ring_base_ms + W.ring_ms[g.ring_at]
                    continue
                node = W.ring[g.ring_at]
                if g.skip == 1 and W.nodes[node].next_end_ms > beat_ms and g.beat_again == 0 and ops.can_skip(S, node):
                    g.skipped += 1
                    if g.record_calls == 0 and g.quiet < g.ring_n:
                        g.quiet += 1
                    note(W, beat_ms, C_HEARTBEAT, node, 0, 0, 0, 0)
                else:
                    g.now = beat_ms
                    if g.user_keys == 1 and g.keys_fresh == 0 and not _keyed(S, W):
                        return KEYS
                    g.quiet = 0
                    if not beat(S, W, node, beat_ms):
                        return NEED_ROOM
                    moved = True
                _soon(S, W)
                g.ring_at += 1
                if g.ring_at == g.ring_n:
                    g.ring_at = 0
                    g.ring_base_ms += g.node_hb_ms
                beat_ms = g.ring_base_ms + W.ring_ms[g.ring_at]
                if moved:
                    break
            if moved:
                continue
        if t >= g.feed_ms:
            return NEED_JOBS
        if t > g.limit_ms:
            g.now = g.limit_ms
            return LIMIT
        g.now = t
        if t_kill == t:
            g.quiet = 0
            if ops.run_kills(S, t) == STATE_NEED_ROOM:
                g.need_room = 1
            drain(S, W, t)
        elif t_heap == t:
            g.quiet = 0
            if g.user_keys == 1 and g.keys_fresh == 0 and kind_of(W.heap_v[0]) == E_BEAT and not _keyed(S, W):
                return KEYS
            value = pop(W)
            happens(S, W, value, t)
            if g.need_room == 1:
                push(W, t, kind_of(value), use_of(value), slot_of(value))
        elif g.next_update_ms == t:
            if not settled:
                g.quiet = 0
            ops.update(S, t)
            if g.update_noted_ms != t:  # the update is repeated if preemption returns NEED_ROOM
                g.update_noted_ms = t
                note(W, t, C_UPDATE, 0, 0, 0, 0, 0)
            if S.g[0].preemption == 1:
                if ops.preempt_pass(S, t) == STATE_NEED_ROOM:
                    g.need_room = 1
                    continue
                drain(S, W, t)
            g.updates += 1
            g.next_update_ms += g.update_ms
            if S.xg[0].rule == RULE_HORIZON:
                return PARTS
        elif g.next_tick_ms == t:
            _assume(S, W, t)
            return TICK
        else:
            if g.sample_n >= len(W.samp_t):
                return SAMPLES_FULL
            _assume(S, W, t)
            take_sample(S, W, t)
            g.next_sample_ms += g.sample_ms
