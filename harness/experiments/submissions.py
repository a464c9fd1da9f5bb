"""Policies that delay arriving jobs and submit them in another order: the interface for an experiment's driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from harness.model.jobs import JobSpec
from harness.model.resources import Resource
from harness.policies.base import Policy


class LiveSubmissions(Protocol):
    """A queue in front of a real cluster: it receives arrivals and ends, and returns the jobs to submit now."""

    #: Arrival of each job, in seconds since the start of the run.
    arrived: dict[str, float]
    #: One record for each round of decisions; the driver writes them and clears the list.
    decisions: list[dict[str, Any]]

    @property
    def next_s(self) -> float | None:
        """Return when the next round is due, in seconds since the start of the run; None: no round is planned."""
        ...

    def arrive(self, job: JobSpec, now_s: float, came_s: float | None = None) -> None:
        """Accept a job that a user submits. ``came_s``: its arrival, if it is noticed late."""
        ...

    def finish(self, job_id: str, now_s: float) -> None:
        """Note that a job has ended on the cluster."""
        ...

    def ready(self, now_s: float, under_way: Callable[[str], bool]) -> Iterator[str]:
        """Yield the jobs to submit now. ``under_way``: whether a job's AM has registered, or has ended."""
        ...


class SubmissionQueue(Protocol):
    """A queue in front of a cluster, simulated or real."""

    def plan(
        self, jobs: Iterable[JobSpec], nodes: Sequence[Resource], slots: tuple[int, int] | None = None
    ) -> tuple[list[JobSpec], dict[str, float]]:
        """Return the jobs with the submission times that the queue gives them, and when each arrived.

        ``nodes``: the size of each node. ``slots``: map and reduce slots of the cluster, if it has them.

        Raises InputError or CallError for jobs and settings whose submissions cannot be planned beforehand.
        """
        ...

    def live(self, jobs: Sequence[JobSpec], nodes: Sequence[Resource]) -> LiveSubmissions:
        """Return the queue for a run on a real cluster."""
        ...


@runtime_checkable
class SubmissionPolicy(Protocol):
    """A policy that decides when a job is submitted."""

    def submission_queue(self) -> SubmissionQueue:
        """Return the policy's queue."""
        ...


def submission_queue(policy: Policy) -> SubmissionQueue | None:
    """Return the queue in which a policy delays arriving jobs. None: jobs are submitted as they arrive."""
    return policy.submission_queue() if isinstance(policy, SubmissionPolicy) else None
