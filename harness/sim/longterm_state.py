"""Record types of long-term fairness: the values of a queue, and the ledger's settings. Contains no behaviour."""

from __future__ import annotations

from harness.sim.arrays import record

#: Which resource is measured: MiB, vcores, or the dominant share of the cluster (0..1).
MEMORY, VCORES, DOMINANT = 0, 1, 2

#: How the queues' keys are computed (XG.rule): not at all (Hadoop's order), from accumulated resources, from allocation
#: and share over a horizon, from arrival times, or by a user's policy.
RULE_STOCK, RULE_ACCUMULATED, RULE_HORIZON, RULE_ARRIVAL, RULE_USER = range(5)

#: Long-term values of a queue. Only leaves keep integrals; a parent's values are sums over its leaves, computed on
#: request. Reported values are in the measure XG.measure, counted ones in the measure XG.ledger (MiB, vcores or
#: dominant shares); integrals are in the measure times milliseconds. Times and durations (``*_ms``) are in ms.
X = record(
    "t_ms",  # time up to which the integrals are computed
    "kg:d",  # allocation since ``t_ms``, in the ledger's measure
    "counted:d",  # integral of g' of eq. (5.7) since the round began: the counted resources
    "sum:d",  # scratch: the total of the queue's leaves
    "entitlement:d",  # entitlement w_i
    "phi:d",  # pseudo accumulated resources of eq. (5.16)
    "ahead_b:d",  # assumed execution: total demand of tasks younger than their quantum
    "base:d",  # counted resources of the queue when its parent's own round began
    "g:d d:d",  # allocation, and demand (allocated and pending), since ``t_ms``, in the reported measure
    "acc:d",  # integral of g
    "due:d",  # integral of min(d, S), with S computed level by level
    "due_flat:d",  # integral of min(d, S), with S by the leaves' own weights
    "mb vc",  # allocated memory (MiB) and vcores since ``t_ms``
    "mb_ms vc_ms",  # integrals of ``mb`` and ``vc``
    "share:d",  # S_i / R, computed level by level (0 to 1)
    "flat_share:d",  # S_i / R of eq. (2), over all leaves by their own weights (0 to 1); 0 for parents
    "running",  # number of live containers, without AMs
    "starts ends",  # numbers of containers that were granted and that have ended
    "last_start_ms",  # time of the last grant of a container; -1: none yet
    "backlog_ms",  # time since which some container has been outstanding; -1: none is
    "tasks_done task_ms",  # number of finished tasks, and their total duration
    "pending:i",  # 1: some container is outstanding
    "by_apps:i",  # 1: its applications are ordered by accumulated resources
    "max_wait_ms",  # longest time with outstanding containers and without a grant
    "last_end_ms",  # time at which a container last ended
    "stock:i",  # 1: its children are ordered as in Hadoop, whatever the order of its siblings
    "max_wait_at_ms",  # time at which that longest time ended
    "first_end_ms",  # time at which a container first ended
    "apps_done",  # number of applications that have ended
    "app_round_ms",  # length of the rounds (L) by which its applications are ordered; 0: one round for ever
    "own_round_ms",  # length of the rounds (L) by which its children are compared; 0: the ledger's
    "own_end_ms",  # time at which its own round ends
    "own_share:d",  # ``share`` or ``flat_share``, as the policy chooses; S_i of the ledger's discount
    "ahead_a:d",  # assumed execution: sum of demand x (Q + start) over tasks younger than their quantum Q
    "q_ms:d",  # its quantum; below 0: no application has arrived yet
    "q_sum:d q_n:d",  # of a leaf: sum of the quanta of its applications, and their number
    "x:d",  # with a horizon: its share of its parent's resources (flat: of the cluster's), recomputed at each update
    "more_mb:d more_vc:d",  # node weighting: sum of (delta - 1) x resources over its containers (thesis eq. 5.9)
    "omega:d",  # total weight of its applications
    "win_at",  # sliding window: number of the part that is being filled
    "arrived:i",  # 1: it has had demand in this round
)

#: Settings and globals of the long-term values: one record.
XG = record(
    "on",  # 1: integrals are kept; 0: they are not (the driver of decision scripts)
    "rule",  # how keys are computed: one of RULE_STOCK ... RULE_USER
    "flat",  # 1: all leaves are compared with one another, regardless of the tree
    "measure",  # measure of the reported integrals
    "ledger",  # measure of the counted resources
    "round_ms",  # length of a round (L), ms; 0: one round for ever
    "round_end_ms round_start_ms",  # end and start of the present round, ms
    "pseudo",  # 1: an application that arrives starts at the largest value of the others (eq. 5.10)
    "t_wait_ms",  # T_wait of LTYARN Algorithm 2, ms; -1: none
    "waits",  # 1: if the chosen queue's task does not fit on a node, the node serves no other queue
    "n",  # number of queues
    "quantum",  # 1: running tasks are assumed to take at least a quantum
    "adaptive",  # 1: quanta follow the durations of ended tasks
    "q_ended",  # 1: a leaf's quantum is the mean over all its applications; 0: over those that have not ended
    "discount:d",  # eta of eq. (5.7): the factor by which use beyond the entitlement is counted
    "q0_ms:d",  # initial quantum, ms
    "half_life_ms:d",  # half-life of the counted resources, ms; 0: no decay
    "part_ms:d",  # length of one part of a sliding window, ms; 0: no window
    "r_mb:d r_vc:d",  # the cluster's memory (MiB) and vcores at the last settlement
    "own_end_ms",  # earliest end of a queue's own round, ms; 0: there are none
    "weighted",  # 1: the ledger weights a node's resources by its speed
    "more_mb:d more_vc:d",  # node weighting: sum of (delta - 1) x capacity over the registered nodes (MiB, vcores)
    lines=False,
)
