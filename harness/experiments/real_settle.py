"""What the applications of a real run used, read once more when their last containers are gone.

The ResourceManager calls an application FINISHED as soon as its master has said so (RMServerUtils shows FINISHING as
FINISHED). The master's container goes on until its node says that it has ended, and what running containers have used
is up to 3 s old in every answer (SchedulerApplicationAttempt): read then, a job of some seconds lacks a tenth.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from harness.base.errors import YarnfairError
from harness.experiments.real_curves import JobRun
from harness.yarn.rest import RestClient

#: As long as MapReduce's masters stay after their job, and a second for their nodes to say that they have gone.
WAIT_S = 6.0
LOOK_EVERY_S = 0.25


def settle(jobs: Sequence[JobRun], rest: RestClient, *, wait_s: float = WAIT_S) -> None:
    """Gives every ended job its application's figures once no container is left, or after ``wait_s`` (others may hold
    some). What the ResourceManager does not answer stays as it was."""
    ended = [job for job in jobs if job.app_id is not None and job.status is not None and job.status.final]
    if not ended:
        return
    until = time.monotonic() + wait_s
    with contextlib.suppress(YarnfairError):
        while rest.metrics().containers_allocated > 0 and time.monotonic() < until:
            time.sleep(LOOK_EVERY_S)
    for job in ended:
        assert job.app_id is not None
        with contextlib.suppress(YarnfairError):
            job.status = rest.app(job.app_id)
