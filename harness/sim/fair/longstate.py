"""Arrays of the long-term orders and integrals: what stands beside each queue of the scheduler. No behaviour here."""

from __future__ import annotations

import numpy as np

from harness.sim.arrays import in_lines

#: Which resource is measured: MiB, vcores, or the dominant share of the cluster (0..1).
MEMORY, VCORES, DOMINANT = 0, 1, 2

#: How keys are made (XG.rule).
RULE_STOCK, RULE_ACCUMULATED, RULE_HORIZON, RULE_ARRIVAL, RULE_USER = range(5)

#: One for each queue. Figures of parents are sums over their leaves, made when they are asked for; only leaves keep
#: integrals. ``g``, ``d``: allocation and demand (allocated + pending) since ``t_ms`` in the reported measure, ``kg``
#: the allocation in the ledger's. Integrals are in measure x milliseconds.
X = in_lines(
    np.dtype(
        [
            ("t_ms", "i8"),
            ("kg", "f8"),
            ("counted", "f8"),  # integral of g' since the round began
            ("sum", "f8"),  # scratch
            ("entitlement", "f8"),
            ("phi", "f8"),  # pseudo accumulated resources
            ("ahead_b", "f8"),  # sum of demand over young tasks
            ("base", "f8"),  # what was counted below it when its parent's own round began
            ("g", "f8"),
            ("d", "f8"),
            ("acc", "f8"),  # integral of g
            ("due", "f8"),  # integral of min(d, S), S level by level
            ("due_flat", "f8"),  # the same, S by the leaves' own weights
            ("mb", "i8"),  # allocated since t_ms
            ("vc", "i8"),
            ("mb_ms", "i8"),
            ("vc_ms", "i8"),
            ("share", "f8"),  # S_i / R, level by level: for the fairness integrals
            ("flat_share", "f8"),  # S_i / R of eq. (2) over all leaves by their own weights: for the same, beside them
            ("running", "i8"),  # live containers, AMs excluded
            ("starts", "i8"),
            ("ends", "i8"),
            ("last_start_ms", "i8"),  # of a container (-1: none yet)
            ("backlog_ms", "i8"),  # since when (-1: not)
            ("tasks_done", "i8"),
            ("task_ms", "i8"),
            ("pending", "i4"),  # 1: something is asked for
            ("by_apps", "i4"),  # 1: its applications are ordered by accumulated resources
            ("max_wait_ms", "i8"),
            ("last_end_ms", "i8"),
            ("stock", "i4"),  # 1: its children are ordered as Hadoop does, whatever the order above it
            ("max_wait_at_ms", "i8"),
            ("first_end_ms", "i8"),
            ("apps_done", "i8"),
            ("app_round_ms", "i8"),  # L of that; 0: one round for ever
            ("own_round_ms", "i8"),  # L by which its children are compared, if not the ledger's (0)
            ("own_end_ms", "i8"),  # when that round ends
            ("own_share", "f8"),  # one of the two, as the policy says: for the ledger's discount
            ("ahead_a", "f8"),  # assumed execution: sum of demand x (Q + start) over young tasks
            ("q_ms", "f8"),  # quantum; below 0: the queue has had no application yet
            ("q_sum", "f8"),  # of a leaf: sum of the quanta of its applications, and their number
            ("q_n", "f8"),
            ("x", "f8"),  # with a horizon: the part of the parent's (flat: of the cluster), filled at each update
            ("more_mb", "f8"),  # its containers beyond their size: sum of (delta - 1) x size (thesis eq. 5.9)
            ("more_vc", "f8"),
            ("omega", "f8"),  # sum of its applications' weights
            ("win_at", "i8"),  # of a sliding window: the part that is being filled
            ("arrived", "i4"),  # active in this round
        ],
        align=True,
    )
)

#: One record.
XG = np.dtype(
    [
        ("on", "i8"),  # 0: nobody keeps integrals (the decision-script driver)
        ("rule", "i8"),
        ("flat", "i8"),
        ("measure", "i8"),  # of the reported integrals
        ("ledger", "i8"),  # of the counted resources
        ("round_ms", "i8"),  # L; 0: one round for ever
        ("round_end_ms", "i8"),
        ("round_start_ms", "i8"),
        ("pseudo", "i8"),
        ("t_wait_ms", "i8"),  # -1: none
        ("waits", "i8"),  # a node without room for the chosen queue's task gives nothing
        ("n", "i8"),  # queues
        ("quantum", "i8"),  # 1: running tasks are assumed to take a quantum
        ("adaptive", "i8"),
        ("q_ended", "i8"),  # 1: applications that have ended stay in their leaf's mean
        ("discount", "f8"),
        ("q0_ms", "f8"),
        ("half_life_ms", "f8"),  # of what was counted; 0: it does not fade
        ("part_ms", "f8"),  # one of the parts of a sliding window; 0: none
        ("r_mb", "f8"),  # capacity, as of the last settlement
        ("r_vc", "f8"),
        ("own_end_ms", "i8"),  # when the next round of a queue's own ends; 0: there are none
        ("weighted", "i8"),  # 1: the ledger counts a node's resources by its speed
        ("more_mb", "f8"),  # what the nodes that are there count beyond their size
        ("more_vc", "f8"),
    ],
    align=True,
)

NO_X = np.zeros(1, X)
NO_XG = np.zeros(1, XG)

#: What a sliding window holds, by queue: a ring of its parts and the one that it is leaving (harness.ledger.decay).
NO_WINDOW = np.zeros((1, 1))
