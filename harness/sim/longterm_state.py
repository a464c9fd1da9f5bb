"""Record types of long-term fairness: the values of a queue, and the ledger's settings. Contains no behaviour."""

from __future__ import annotations

from harness.sim.arrays import Int32, Record

#: Which resource is measured: MiB, vcores, or the dominant share of the cluster (0..1).
MEMORY, VCORES, DOMINANT = 0, 1, 2

#: How the queues' keys are computed (LongTermGlobals.rule): not at all (Hadoop's order), from accumulated resources,
#: from allocation and share over a horizon, from arrival times, or by a user's policy.
RULE_STOCK, RULE_ACCUMULATED, RULE_HORIZON, RULE_ARRIVAL, RULE_USER = range(5)


class LongTermRecord(Record):
    """Long-term values of a queue.

    Only leaves keep integrals; a parent's values are sums over its leaves, computed on request. Reported values are in
    the measure `LongTermGlobals.measure`, counted ones in the measure `LongTermGlobals.ledger` (MiB, vcores or dominant
    shares); integrals are in the measure times milliseconds. Times and durations (``*_ms``) are in ms.
    """

    t_ms: int  # time up to which the integrals are computed
    kg: float  # allocation since ``t_ms``, in the ledger's measure
    counted: float  # integral of g' of eq. (5.7) since the round began: the counted resources
    sum: float  # scratch: the total of the queue's leaves
    entitlement: float  # entitlement w_i
    phi: float  # pseudo accumulated resources of eq. (5.16)
    ahead_b: float  # assumed execution: total demand of tasks younger than their quantum
    base: float  # counted resources of the queue when its parent's own round began
    g: float  # allocation since ``t_ms``, in the reported measure
    d: float  # demand (allocated and pending) since ``t_ms``, in the reported measure
    acc: float  # integral of g
    due: float  # integral of min(d, S), with S computed level by level
    due_flat: float  # integral of min(d, S), with S by the leaves' own weights
    mb: int  # allocated memory since ``t_ms`` (MiB)
    vc: int  # allocated vcores since ``t_ms``
    mb_ms: int  # integral of ``mb``
    vc_ms: int  # integral of ``vc``
    share: float  # S_i / R, computed level by level (0 to 1)
    flat_share: float  # S_i / R of eq. (2), over all leaves by their own weights (0 to 1); 0 for parents
    running: int  # number of live containers, without AMs
    starts: int  # number of containers that were granted
    ends: int  # number of containers that have ended
    last_start_ms: int  # time of the last grant of a container; -1: none yet
    backlog_ms: int  # time since which some container has been outstanding; -1: none is
    tasks_done: int  # number of finished tasks
    task_ms: int  # total duration of the finished tasks
    pending: Int32  # 1: some container is outstanding
    by_apps: Int32  # 1: its applications are ordered by accumulated resources
    max_wait_ms: int  # longest time with outstanding containers and without a grant
    last_end_ms: int  # time at which a container last ended
    stock: Int32  # 1: its children are ordered as in Hadoop, whatever the order of its siblings
    max_wait_at_ms: int  # time at which that longest time ended
    first_end_ms: int  # time at which a container first ended
    apps_done: int  # number of applications that have ended
    app_round_ms: int  # length of the rounds (L) by which its applications are ordered; 0: one round for ever
    own_round_ms: int  # length of the rounds (L) by which its children are compared; 0: the ledger's
    own_end_ms: int  # time at which its own round ends
    own_share: float  # ``share`` or ``flat_share``, as the policy chooses; S_i of the ledger's discount
    ahead_a: float  # assumed execution: sum of demand x (Q + start) over tasks younger than their quantum Q
    q_ms: float  # its quantum; below 0: no application has arrived yet
    q_sum: float  # of a leaf: sum of the quanta of its applications
    q_n: float  # of a leaf: number of these applications
    x: float  # with a horizon: its share of its parent's resources (flat: of the cluster's), recomputed at each update
    more_mb: float  # node weighting: sum of (delta - 1) x memory over its containers (thesis eq. 5.9; MiB)
    more_vc: float  # node weighting: the same sum for vcores
    omega: float  # total weight of its applications
    win_at: int  # sliding window: number of the part that is being filled
    arrived: Int32  # 1: it has had demand in this round


class LongTermGlobals(Record, lines=False):
    """Settings and globals of the long-term values: one record."""

    on: int  # 1: integrals are kept; 0: they are not (the driver of decision scripts)
    rule: int  # how keys are computed: one of RULE_STOCK ... RULE_USER
    flat: int  # 1: all leaves are compared with one another, regardless of the tree
    measure: int  # measure of the reported integrals
    ledger: int  # measure of the counted resources
    round_ms: int  # length of a round (L), ms; 0: one round for ever
    round_end_ms: int  # end of the present round, ms
    round_start_ms: int  # start of the present round, ms
    pseudo: int  # 1: an application that arrives starts at the largest value of the others (eq. 5.10)
    t_wait_ms: int  # T_wait of LTYARN Algorithm 2, ms; -1: none
    waits: int  # 1: if the chosen queue's task does not fit on a node, the node serves no other queue
    n: int  # number of queues
    quantum: int  # 1: running tasks are assumed to take at least a quantum
    adaptive: int  # 1: quanta follow the durations of ended tasks
    q_ended: int  # 1: a leaf's quantum is the mean over all its applications; 0: over those that have not ended
    discount: float  # eta of eq. (5.7): the factor by which use beyond the entitlement is counted
    q0_ms: float  # initial quantum, ms
    half_life_ms: float  # half-life of the counted resources, ms; 0: no decay
    part_ms: float  # length of one part of a sliding window, ms; 0: no window
    r_mb: float  # the cluster's memory at the last settlement (MiB)
    r_vc: float  # the cluster's vcores at the last settlement
    own_end_ms: int  # earliest end of a queue's own round, ms; 0: there are none
    weighted: int  # 1: the ledger weights a node's resources by its speed
    more_mb: float  # node weighting: sum of (delta - 1) x memory over the registered nodes (MiB)
    more_vc: float  # node weighting: the same sum for vcores
