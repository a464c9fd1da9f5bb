"""Policies that hold arriving jobs back and submit them in another order: what an experiment's driver asks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from harness.model.jobs import JobSpec
from harness.model.resources import Resource
from harness.policies.base import Policy


class LiveSubmissions(Protocol):
    """A queue in front of a real cluster: it hears of arrivals and ends, and says what to submit now."""

    #: When each job arrived, in seconds since the start of the run.
    arrived: dict[str, float]
    #: One record for each round of decisions; the driver writes them and clears the list.
    decisions: list[dict[str, Any]]

    @property
    def next_s(self) -> float | None:
        """When the next round is due, in seconds since the start of the run; None: no round is planned."""
        ...

    def arrive(self, job: JobSpec, now_s: float, came_s: float | None = None) -> None:
        """Take a job that a user submits. ``came_s``: when it came, where that is noticed only now."""
        ...

    def finish(self, job_id: str, now_s: float) -> None:
        """Note that a job has ended on the cluster."""
        ...

    def ready(self, now_s: float, under_way: Callable[[str], bool]) -> Iterator[str]:
        """Yield the jobs to submit now. ``under_way``: whether a job's master has registered, or has ended."""
        ...


class SubmissionQueue(Protocol):
    """A queue in front of a cluster, simulated or real."""

    def plan(
        self, jobs: Iterable[JobSpec], nodes: Sequence[Resource], slots: tuple[int, int] | None = None
    ) -> tuple[list[JobSpec], dict[str, float]]:
        """Return the jobs with the submission times that the queue gives them, and when each arrived.

        ``nodes``: the size of each node. ``slots``: map and reduce slots of the cluster, where it has such.

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
    """The queue in which a policy holds arriving jobs back. None: jobs are submitted as they come."""
    return policy.submission_queue() if isinstance(policy, SubmissionPolicy) else None
