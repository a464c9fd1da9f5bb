"""Arrays of the long-term orders and integrals, one record per queue of the scheduler. Contains no behaviour."""

from __future__ import annotations

from harness.sim.arrays import record

#: Which resource is measured: MiB, vcores, or the dominant share of the cluster (0..1).
MEMORY, VCORES, DOMINANT = 0, 1, 2

#: How keys are computed (XG.rule).
RULE_STOCK, RULE_ACCUMULATED, RULE_HORIZON, RULE_ARRIVAL, RULE_USER = range(5)

#: Long-term values of a queue. Only leaves keep integrals; values of parents are sums over their leaves, computed on
#: request. XG.measure selects the measure; integrals are in the measure times milliseconds.
X = record(
    "t_ms",  # up to when the integrals are settled
    "kg:d",  # the allocation since then, in the ledger's measure
    "counted:d",  # integral of g' since the round began: what the ledger has counted
    "sum:d",  # scratch
    "entitlement:d",  # the entitlement w_i
    "phi:d",  # pseudo accumulated resources
    "ahead_b:d",  # sum of the demand of tasks younger than their quantum
    "base:d",  # what was counted below it when its parent's own round began
    "g:d d:d",  # allocation and demand (allocated and pending) since ``t_ms``, in the reported measure
    "acc:d",  # integral of g
    "due:d",  # integral of min(d, S), with S divided level by level
    "due_flat:d",  # the same, with S by the leaves' own weights
    "mb vc",  # memory and vcores that are allocated since ``t_ms``
    "mb_ms vc_ms",  # integrals of both
    "share:d",  # S_i / R, divided level by level
    "flat_share:d",  # S_i / R of eq. (2), over all leaves by their own weights
    "running",  # live containers without masters
    "starts ends",  # containers that have started and ended
    "last_start_ms",  # when a container last started; -1: none yet
    "backlog_ms",  # since when something is asked for; -1: nothing is
    "tasks_done task_ms",  # finished tasks, and the sum of their times
    "pending:i",  # 1: something is asked for
    "by_apps:i",  # 1: its applications are ordered by accumulated resources
    "max_wait_ms",  # the longest time that it asked without getting a container
    "last_end_ms",  # when a container last ended
    "stock:i",  # 1: its children are ordered as Hadoop does, whatever the order above it
    "max_wait_at_ms",  # when the longest wait ended
    "first_end_ms",  # when a container first ended
    "apps_done",  # applications that have ended
    "app_round_ms",  # L by which its applications are ordered; 0: one round for ever
    "own_round_ms",  # L by which its children are compared, where it is not the ledger's; 0: it is
    "own_end_ms",  # when that round ends
    "own_share:d",  # ``share`` or ``flat_share``, as the policy says; for the ledger's discount
    "ahead_a:d",  # assumed execution: sum of demand x (Q + start) of tasks younger than their quantum
    "q_ms:d",  # its quantum; below 0: it has had no application yet
    "q_sum:d q_n:d",  # of a leaf: sum of the quanta of its applications, and their number
    "x:d",  # with a horizon: its part of its parent's resources (flat: of the cluster's), recomputed at each update
    "more_mb:d more_vc:d",  # what its containers count beyond their size: sum of (delta - 1) x size (thesis eq. 5.9)
    "omega:d",  # sum of its applications' weights
    "win_at",  # of a sliding window: the part that is being filled
    "arrived:i",  # 1: it was active in this round
)

#: Settings and globals of the long-term values: one record.
XG = record(
    "on",  # 0: nobody keeps integrals (the driver of decision scripts)
    "rule",  # how keys are computed: one of RULE_STOCK ... RULE_USER
    "flat",  # 1: all leaves are compared with one another, regardless of the tree
    "measure",  # measure of the reported integrals
    "ledger",  # measure of the counted resources
    "round_ms",  # L, the length of a round; 0: one round for ever
    "round_end_ms round_start_ms",  # when the present round ends, and when it began
    "pseudo",  # 1: an application that arrives starts at the largest value of the others (eq. 5.10)
    "t_wait_ms",  # T_wait; -1: none
    "waits",  # 1: a node without room for the chosen queue's task gives nothing
    "n",  # queues
    "quantum",  # 1: running tasks are assumed to take a quantum
    "adaptive",  # 1: the quantum follows the tasks that have ended
    "q_ended",  # 1: applications that have ended stay in the mean of their leaf
    "discount:d",  # eta of eq. (5.7): the factor by which use beyond the entitlement is counted
    "q0_ms:d",  # the first quantum
    "half_life_ms:d",  # half-life of what was counted; 0: it does not fade
    "part_ms:d",  # length of one part of a sliding window; 0: there is none
    "r_mb:d r_vc:d",  # capacity of the cluster as of the last settlement
    "own_end_ms",  # when the next round of a queue's own ends; 0: there are none
    "weighted",  # 1: the ledger counts a node's resources by its speed
    "more_mb:d more_vc:d",  # what the nodes that are there count beyond their size
    lines=False,
)
