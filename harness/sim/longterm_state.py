"""Arrays of the long-term orders and integrals: what stands beside each queue of the scheduler. No behaviour here."""

from __future__ import annotations

from harness.sim.arrays import record

#: Which resource is measured: MiB, vcores, or the dominant share of the cluster (0..1).
MEMORY, VCORES, DOMINANT = 0, 1, 2

#: How keys are made (XG.rule).
RULE_STOCK, RULE_ACCUMULATED, RULE_HORIZON, RULE_ARRIVAL, RULE_USER = range(5)

#: One for each queue. Figures of parents are sums over their leaves, made when they are asked for; only leaves keep
#: integrals. ``g``, ``d``: allocation and demand (allocated + pending) since ``t_ms`` in the reported measure, ``kg``
#: the allocation in the ledger's. Integrals are in measure x milliseconds. ``counted``: integral of g' since the round
#: began; ``sum``: scratch; ``phi``: pseudo accumulated resources; ``ahead_b``: sum of demand over young tasks;
#: ``base``: what was counted below it when its parent's own round began; ``acc``: integral of g; ``due``: integral of
#: min(d, S), S level by level; ``due_flat``: the same, S by the leaves' own weights; ``mb``: allocated since t_ms;
#: ``share``: S_i / R, level by level: for the fairness integrals; ``flat_share``: S_i / R of eq. (2) over all leaves by
#: their own weights: for the same, beside them; ``running``: live containers, AMs excluded; ``last_start_ms``: of a
#: container (-1: none yet); ``backlog_ms``: since when (-1: not); ``pending``: 1: something is asked for; ``by_apps``:
#: 1: its applications are ordered by accumulated resources; ``stock``: 1: its children are ordered as Hadoop does,
#: whatever the order above it; ``app_round_ms``: L of that; 0: one round for ever; ``own_round_ms``: L by which its
#: children are compared, if not the ledger's (0); ``own_end_ms``: when that round ends; ``own_share``: one of the two,
#: as the policy says: for the ledger's discount; ``ahead_a``: assumed execution: sum of demand x (Q + start) over young
#: tasks; ``q_ms``: quantum; below 0: the queue has had no application yet; ``q_sum``: of a leaf: sum of the quanta of
#: its applications, and their number; ``x``: with a horizon: the part of the parent's (flat: of the cluster), filled at
#: each update; ``more_mb``: its containers beyond their size: sum of (delta - 1) x size (thesis eq. 5.9); ``omega``:
#: sum of its applications' weights; ``win_at``: of a sliding window: the part that is being filled; ``arrived``: active
#: in this round.
X = record(
    "t_ms kg:d counted:d sum:d entitlement:d phi:d ahead_b:d base:d g:d d:d acc:d due:d due_flat:d mb vc mb_ms vc_ms "
    "share:d flat_share:d running starts ends last_start_ms backlog_ms tasks_done task_ms pending:i by_apps:i "
    "max_wait_ms last_end_ms stock:i max_wait_at_ms first_end_ms apps_done app_round_ms own_round_ms own_end_ms "
    "own_share:d ahead_a:d q_ms:d q_sum:d q_n:d x:d more_mb:d more_vc:d omega:d win_at arrived:i"
)

#: One record. ``on``: 0: nobody keeps integrals (the decision-script driver); ``measure``: of the reported integrals;
#: ``ledger``: of the counted resources; ``round_ms``: L; 0: one round for ever; ``t_wait_ms``: -1: none; ``waits``: a
#: node without room for the chosen queue's task gives nothing; ``n``: queues; ``quantum``: 1: running tasks are assumed
#: to take a quantum; ``q_ended``: 1: applications that have ended stay in their leaf's mean; ``half_life_ms``: of what
#: was counted; 0: it does not fade; ``part_ms``: one of the parts of a sliding window; 0: none; ``r_mb``: capacity, as
#: of the last settlement; ``own_end_ms``: when the next round of a queue's own ends; 0: there are none; ``weighted``:
#: 1: the ledger counts a node's resources by its speed; ``more_mb``: what the nodes that are there count beyond their
#: size.
XG = record(
    "on rule flat measure ledger round_ms round_end_ms round_start_ms pseudo t_wait_ms waits n quantum adaptive "
    "q_ended discount:d q0_ms:d half_life_ms:d part_ms:d r_mb:d r_vc:d own_end_ms weighted more_mb:d more_vc:d",
    lines=False,
)
