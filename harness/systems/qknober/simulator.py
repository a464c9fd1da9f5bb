"""Simulator of tasks with several resources on servers of different sizes, placed by affinity.

QKnober's section 6.1 (C1 to C3) and Algorithm 1 choose a *task for a server*: which task is best depends on the idle
resources of that server. The Fair Scheduler orders queues before it considers a node, and it has two resources, so the
YARN simulator cannot express this. This simulator has servers, users, tasks with any number of resources, and four
rules:

``static``
    A user may hold at most its own part of every resource.
``drf``
    The user with the lowest s_i / w_i that has a fitting task is served with its oldest one.
``tetris``
    Users are sorted by s_i / w_i, and the first 1 - f of all pending tasks compete. The task with the greatest affinity
    is placed (as QKnober describes Tetris), or the one with the greatest affinity minus epsilon times the remaining
    work of its job (Grandl 2014).
``qknober``
    While the lowest s_i / w_i is below rho * s_i^max / w_i, that user's task with the greatest affinity is placed, and
    otherwise the task of any user with the greatest affinity. The MDRS updater computes s^max by eq. (11) every
    ``update_s`` seconds from each user's mean demand: running tasks, and pending tasks in order until the idle
    resources are used up (C2).

Affinity is the dot product of a demand and the server's idle resources, as fractions of the cluster. Every user offers
its ``window`` oldest pending tasks (C3: all of them). When a task ends, its server is filled; a new task goes to the
server with the greatest affinity (static, drf: the first on which it fits). If tasks of several users arrive at one
instant, they are placed one at a time, and the rule chooses the user of each. The simulation is deterministic, in whole
milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.base.errors import InputError
from harness.systems.qknober.simulator_loop import RULES, WINDOW, run_loop

__all__ = ["RULES", "UPDATE_S", "WINDOW", "VectorLoad", "VectorRun", "simulate"]

#: Default interval between updates of s^max, s; QKnober states none.
UPDATE_S = 60.0

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VectorLoad:
    """Servers (count x resources), and tasks in the order of submission.

    ``user``, ``submit_ms``, ``duration_ms`` and ``demand`` (tasks x resources) describe the tasks. ``weights`` are
    positive, one per user. Amounts are in the trace's units, times in milliseconds. ``job`` is the job number of each
    task, from 0; None: the tasks that a user submits at one instant are one job. ``left_out`` counts the tasks of the
    trace that are not in the load, by reason, and the users without any task in it.
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
        """Return the job number of each task."""
        if self.job is not None:
            return self.job
        pairs = np.stack([self.user, self.submit_ms], axis=1)
        return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class VectorRun:
    """The result of a simulation.

    ``wait_ms`` has one entry per task. ``soft_fairness`` is the mean over the time in which any task waits; its value
    at an instant is the largest s_i / w_i (weights sum to 1) minus the lowest of a user with waiting tasks.
    ``utilisation`` is the time mean per resource until the end, ``busy`` the one until the last submission.
    """

    makespan_s: float
    utilisation: list[float]
    busy: list[float]
    soft_fairness: float
    estimated_soft_fairness: float
    mean_completion_s: float
    decisions: int
    #: State at every ``sample_s``: the times in seconds, then for each sample the utilisation of each resource, the
    #: current soft fairness degree and theta, the number of waiting tasks, and (in ``shares``) s_i of each user.
    sample_s: Floats
    samples: Floats  # samples x (resources + 3): utilisation, soft fairness, theta, waiting tasks
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
    """Simulate a load under a rule. ``knob`` is rho of ``qknober`` and f of ``tetris``.

    ``update_s`` is the interval of the MDRS updater (QKnober 6.2) and ``sample_s`` the interval between samples (0: no
    samples), both in virtual seconds. ``window`` is the number of oldest pending tasks that a user offers (None: all).
    ``remaining`` applies to ``tetris``: epsilon is ``remaining`` times mean affinity over mean remaining work of the
    competing tasks. A job's remaining work is the sum over its unfinished tasks of duration times demand (fractions of
    the cluster, summed over resources). Raises InputError for tasks that fit on no server.
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
