"""Assumed execution times of running tasks, fixed or by the adaptive multi-level quantum (LTYARN 6.2.1, Fig. 4).

tests/ledger/quantum.py has the same rules in plain Python; tests compare both. A running task counts as if it would run
for its application's quantum (tang-thesis eq. 5.15, section 5.5.2.1): it adds demand x max(Q - elapsed, 0) to the plain
integral. Each job stores two sums over its tasks younger than Q, from which this amount follows for any time. The sums
are recomputed when a container of the job starts or ends, when its quantum changes, and when a task has run for a
quantum. AMs have no assumed execution time, because their duration is unknown until the application ends.
"""

from __future__ import annotations

from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import weighed
from harness.sim.state import SchedulerState
from harness.sim.weighing import delta_of
from harness.sim.world import J_RUNNING, NEVER, World


@kernel
def begin(S: SchedulerState, W: World, j: int) -> None:
    """Set the quantum of a new application. Queues on its path without a quantum inherit it from the nearest ancestor.

    Without such an ancestor, the quantum is the initial quantum of the settings.
    """
    leaf = W.jobs[j].queue
    if S.x[leaf].q_ms < 0.0:
        value = S.xg[0].q0_ms
        above = S.q[leaf].parent
        while above >= 0:
            if S.x[above].q_ms >= 0.0:
                value = S.x[above].q_ms
                break
            above = S.q[above].parent
        at = leaf
        while at >= 0 and S.x[at].q_ms < 0.0:
            S.x[at].q_ms = value
            at = S.q[at].parent
    job = W.jobs[j]
    job.q_ms = S.x[leaf].q_ms
    S.x[leaf].q_sum += job.q_ms
    S.x[leaf].q_n += 1.0
    job.q_sum_ms = 0.0
    job.q_n = 0.0
    job.ahead_a = 0.0
    job.ahead_b = 0.0
    job.cross_ms = NEVER


@kernel
def learn(S: SchedulerState, W: World, j: int, took_ms: int) -> None:
    """Update the quanta after a task of a job has ended; it held its container for `took_ms`.

    The application's quantum is the mean over its ended tasks, the leaf's quantum the mean over its applications, and a
    parent's quantum the mean over its children.
    """
    if S.xg[0].adaptive == 0:
        return
    job = W.jobs[j]
    S.x[job.queue].q_sum -= job.q_ms
    job.q_sum_ms += took_ms
    job.q_n += 1.0
    job.q_ms = job.q_sum_ms / job.q_n
    S.x[job.queue].q_sum += job.q_ms
    _tune_up(S, job.queue)


@kernel
def leave(S: SchedulerState, W: World, j: int) -> None:
    """Remove an ended application from its leaf's mean, unless the mean also covers ended applications."""
    if S.xg[0].adaptive == 0 or S.xg[0].q_ended == 1:
        return
    x = S.x[W.jobs[j].queue]
    x.q_sum -= W.jobs[j].q_ms
    x.q_n -= 1.0
    if x.q_n < 0.5:
        x.q_sum = 0.0
        x.q_n = 0.0
        return
    _tune_up(S, W.jobs[j].queue)


@kernel
def _tune_up(S: SchedulerState, leaf: int) -> None:
    """Recompute a leaf's quantum from its applications', and its ancestors' from their children's."""
    S.x[leaf].q_ms = S.x[leaf].q_sum / S.x[leaf].q_n
    above = S.q[leaf].parent
    while above >= 0:
        total = 0.0
        count = 0.0
        child = S.q[above].first_child
        while child >= 0:
            if S.x[child].q_ms >= 0.0:
                total += S.x[child].q_ms
                count += 1.0
            child = S.q[child].next_sibling
        S.x[above].q_ms = total / count
        above = S.q[above].parent


@kernel
def _count(S: SchedulerState, W: World, j: int, first: int, now: int) -> None:
    """Add the containers of a list that are younger than a quantum to the job's sums."""
    job, xg = W.jobs[j], S.xg[0]
    c = first
    while c >= 0:
        run = W.runs[c]
        ends = max(run.granted_ms, xg.round_start_ms) + job.q_ms
        if ends > now:
            delta = delta_of(S, W, run.node)
            demand = weighed(S, delta * run.mb, delta * run.vc)
            job.ahead_a += demand * ends
            job.ahead_b += demand
            job.cross_ms = min(job.cross_ms, int(ends) + 1)
        c = run.st_next


@kernel
def assume(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Recompute the sums of assumed execution times of a job and of its leaf."""
    job, x = W.jobs[j], S.x[W.jobs[j].queue]
    x.ahead_a -= job.ahead_a
    x.ahead_b -= job.ahead_b
    job.ahead_a = 0.0
    job.ahead_b = 0.0
    job.cross_ms = NEVER
    if job.state == J_RUNNING:
        _count(S, W, j, job.ex_head, now)
        for s in range(job.stages):
            _count(S, W, j, W.stages[j, s].run_head, now)
    x.ahead_a += job.ahead_a
    x.ahead_b += job.ahead_b
    S.a[job.app].ahead_a = job.ahead_a
    S.a[job.app].ahead_b = job.ahead_b
    if x.ahead_b < 0.5e-9:
        x.ahead_a = 0.0
        x.ahead_b = 0.0
    W.g[0].cross_ms = min(W.g[0].cross_ms, job.cross_ms)


@kernel
def cross(S: SchedulerState, W: World, now: int) -> None:
    """Recompute the sums of jobs with a task that has run for a quantum by `now`; also used after a round begins."""
    soonest = NEVER
    W.g[0].cross_ms = NEVER
    for j in range(len(W.jobs)):
        if W.jobs[j].state != J_RUNNING:
            continue
        if W.jobs[j].cross_ms <= now:
            assume(S, W, j, now)
        soonest = min(soonest, W.jobs[j].cross_ms)
    W.g[0].cross_ms = soonest
