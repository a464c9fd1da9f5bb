"""Replayed jobs on a real ResourceManager: their files put where the nodes see them, submitted, collected, killed.

The application master is workloads/replay/am.py, what it is told and what it records harness.jobs.replay's. When a job
is submitted, and what its times mean, is the caller's business (harness.experiments.real.run).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from harness.clusters.shared import SharedFolder
from harness.jobs.replay import NOTHING, JobRecord, ReplayOptions, job_file, read_records
from harness.model.data import data_path
from harness.model.jobs import JobSpec
from harness.yarn.answers import AppStatus
from harness.yarn.discover import told_property
from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.rest import RestClient, Submission

#: Files of the application master.
PROGRAM = ("am.py", "job.py", "hadoop.py", "mapreduce.py")
#: What the containers of a replayed load need of a NodeManager, and what they can do without: it then spends half as
#: much on a container. Memory is not watched, because these containers hold none to speak of.
NODE_PROPERTIES: Mapping[str, str] = {
    "yarn.nodemanager.log-container-debug-info.enabled": "false",
    "yarn.nodemanager.container-monitor.enabled": "false",
    "yarn.nodemanager.container-metrics.enable": "false",
    # Without checksum files beside every script, whose permissions the NodeManager sets by starting a program each.
    "fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}


def scheduler_address(rest: RestClient) -> str:
    """Where application masters reach the ResourceManager, as its configuration says it: HOST:PORT.

    Raises Refused, BadAnswer, Unreachable.
    """
    name = "yarn.resourcemanager.scheduler.address"
    value = told_property(rest.http, None, name)
    if value is None or ":" not in value or any(character.isspace() for character in value):
        raise BadAnswer(f"no {name} in its configuration", where=rest.http.current)
    return value


class Replayer:
    """Submits replayed jobs to one ResourceManager. ``tag`` marks its applications, to find and kill them."""

    def __init__(
        self, rest: RestClient, shared: SharedFolder, options: ReplayOptions, *, tag: str, python: str | None = None
    ) -> None:
        self.rest, self.shared, self.options, self.tag = rest, shared, options, tag
        #: The interpreter on the nodes.
        self.python = python or sys.executable
        #: Application id by job id, the latest one of each.
        self.apps: dict[str, str] = {}
        self._tries: dict[str, int] = {}
        #: By job id: an application's id under which a submission got no answer.
        self._unanswered: dict[str, str] = {}
        source = data_path("workloads", "replay")
        shared.write({name: (source / name).read_bytes() for name in PROGRAM})

    def submit(self, job: JobSpec, *, programs: Mapping[str, str] = NOTHING, hosts: Mapping[str, str] = NOTHING) -> str:
        """Submit a job, again if it was submitted before.

        Parameters
        ----------
        job : the job.
        programs, hosts : as for `job_file`.

        Returns
        -------
        str
            The application's id.

        Raises
        ------
        YarnfairError
            The ResourceManager refused it, or did not answer. Where it is not known whether the ResourceManager took
            the job, the next call submits the same application: under an id that it knows, a ResourceManager starts
            nothing. Under a new one the job could run twice.
        """
        identity = self._unanswered.get(job.id)
        if identity is None:
            self._tries[job.id] = self._tries.get(job.id, 0) + 1
            identity = self.rest.new_application().id
        number = self._tries[job.id]
        name = self._file_name(job.id, number)
        records = f"{self.shared.path}/{name}.records"
        text = job_file(job, self.options, records, programs=programs, hosts=hosts)
        self.shared.write({f"{name}.job": text.encode()})
        # -S -E: no site packages, no environment of somebody else's.
        command = f"exec {self.python} -S -E {self.shared.path}/am.py {self.shared.path}/{name}.job 2><LOG_DIR>/stderr"
        submission = Submission(
            name=job.id,
            queue=job.queue,
            command=command,
            resource=job.am,
            type="REPLAY",
            tags=[self.tag],
            max_attempts=1,
        )
        self._unanswered[job.id] = identity
        try:
            self.rest.submit(submission, identity)
        except Refused as refused:
            if 400 <= refused.status < 500:
                del self._unanswered[job.id]
            raise
        del self._unanswered[job.id]
        self.apps[job.id] = identity
        return identity

    def record(self, job_id: str) -> JobRecord:
        """What a job's master has recorded so far."""
        name = f"{self._file_name(job_id, self._tries[job_id])}.records"
        content = self.shared.read(name)
        if content is None:
            return JobRecord()
        return read_records(content.decode(errors="replace"), f"{self.shared.path}/{name}")

    def _file_name(self, job_id: str, number: int) -> str:
        """Files are named after run, job and try: a folder serves several runs."""
        return f"{self.tag}-{_plain(job_id)}" + (f".{number}" if number > 1 else "")

    def live(self) -> list[AppStatus]:
        """The applications that have not ended."""
        return self.rest.apps(states=("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"), tags=[self.tag])

    def kill_all(self) -> int:
        """Kills what has not ended; how many that were. What cannot be killed is left to the ResourceManager."""
        return self.rest.kill_all(self.live())


def _plain(job_id: str) -> str:
    """A job's id with nothing but letters, digits and a few signs."""
    return "".join(c if (c.isalnum() and c.isascii()) or c in "._-" else f"%{ord(c):x}" for c in job_id)
