"""A small simulator of its own: tasks of several resources on servers of different sizes, placed by affinity.

QKnober's section 6.1 (C1 to C3) and Algorithm 1 choose a *task for a server*: which task is best depends on what is
idle on that one server. The Fair Scheduler orders queues before it looks at a node, so its engine cannot say that, and
it knows two resources. Here there are servers, users, tasks with any number of resources, and four rules:

``static``    a user may hold its own part of every resource, no more;
``drf``       the user with the lowest s_i / w_i that has a task which fits; of its tasks the oldest;
``tetris``    of the first 1 - f of all pending tasks, users by s_i / w_i, the one with the greatest affinity, as
              QKnober tells it, or the greatest affinity less epsilon times the work left of its job (Grandl 2014);
``qknober``   as long as the lowest s_i / w_i is below rho * s_i^max / w_i, that user's task with the greatest affinity;
              else the task of any user with the greatest affinity. s^max by eq. (11) every ``update_s`` (MDRS updater)
              from each user's mean demand: what runs, and pending tasks in order until the idle space is full (C2).

Affinity is the dot product of demand and the server's idle resources, as fractions of the cluster. Every user shows its
``window`` oldest pending tasks (C3: all of them). A server is filled when a task on it has ended, and a new task goes
to the server with the greatest affinity (static, drf: the first on which it fits). Where tasks of several users are new
at one instant, they are given out one at a time, the user of each by the rule. Deterministic; whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.base.errors import InputError
from harness.systems.qknober.simulator_loop import RULES, WINDOW, run_loop

__all__ = ["RULES", "UPDATE_S", "WINDOW", "VectorLoad", "VectorRun", "simulate"]

#: How often s^max is found anew, where nothing else is said; QKnober names no interval.
UPDATE_S = 60.0

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VectorLoad:
    """Servers (count x resources) and tasks in order of submission: user, submission, duration, demand (x resources).

    ``weights`` by user, above 0. Amounts are in the trace's units, times in milliseconds. ``job`` by task, from 0;
    None: the tasks that a user submits at one instant are a job. ``left_out``: tasks of the original that are not in
    it, by reason, and users of whom no task is.
    """

    servers: Floats
    weights: Floats
    user: Ints
    submit_ms: Ints
    duration_ms: Ints
    demand: Floats
    job: Ints | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def jobs(self) -> Ints:
        """The job of each task."""
        if self.job is not None:
            return self.job
        pairs = np.stack([self.user, self.submit_ms], axis=1)
        return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class VectorRun:
    """The result of a simulation.

    ``wait_ms`` by task. ``soft_fairness`` is the time mean, while somebody waits, of the largest s_i / w_i (weights
    summing to 1) above the lowest of a user who waits; ``utilisation`` the time mean by resource until the last
    submission (``busy``) and until the end (``utilisation``).
    """

    makespan_s: float
    utilisation: list[float]
    busy: list[float]
    soft_fairness: float
    estimated_soft_fairness: float
    mean_completion_s: float
    decisions: int
    #: What was asked for by ``sample_s``: seconds, and for each sample the parts of the resources in use (samples x
    #: resources), the soft fairness degree and theta as they were, how many tasks waited, and s_i by user.
    sample_s: Floats
    samples: Floats  # samples x (resources + 3): in use, soft fairness, theta, tasks waiting
    shares: Floats  # samples x users
    wait_ms: Ints


def simulate(
    load: VectorLoad,
    rule: str,
    knob: float = 0.0,
    *,
    update_s: float = UPDATE_S,
    sample_s: float = 0.0,
    window: int | None = WINDOW,
    remaining: float = 0.0,
) -> VectorRun:
    """The load under a rule; ``knob`` is rho of ``qknober`` and f of ``tetris``. InputError for tasks that fit nowhere.

    ``update_s``: the MDRS updater's interval (QKnober 6.2). ``sample_s``: how often the state is noted, in virtual
    seconds (0: never). ``window``: how many of its oldest pending tasks a user shows, None for all of them.
    ``remaining``: under ``tetris``, m of epsilon = m * mean affinity / mean work left (over the tasks that compete); a
    job's work left is the sum, over its tasks that have not ended, of demand (fractions of the cluster, all resources)
    times duration.
    """
    capacity = load.servers.sum(axis=0)
    weights = load.weights / load.weights.sum()
    figures, wait, samples, shares = run_loop(
        np.ascontiguousarray(load.servers / capacity),
        weights,
        load.user,
        load.submit_ms,
        load.duration_ms,
        np.ascontiguousarray(load.demand / capacity),
        RULES[rule],
        float(knob),
        round(update_s * 1000),
        int(sample_s * 1000),
        len(load.user) if window is None else window,
        load.jobs(),
        float(remaining),
    )
    left = int(figures[4])
    if left:
        raise InputError(
            f"{left:,} tasks never ran under {rule}", hint="every task must fit on some server when it is idle"
        )
    m = len(capacity)
    return VectorRun(
        makespan_s=float(figures[0]) / 1000,
        utilisation=[float(x) for x in figures[5 : 5 + m]],
        busy=[float(x) for x in figures[5 + m : 5 + 2 * m]],
        soft_fairness=float(figures[1]),
        estimated_soft_fairness=float(figures[2]),
        mean_completion_s=float((wait + load.duration_ms).mean() / 1000) if len(wait) else 0.0,
        decisions=int(figures[3]),
        sample_s=np.arange(len(samples), dtype=np.float64) * sample_s,
        samples=samples,
        shares=shares,
        wait_ms=wait,
    )
