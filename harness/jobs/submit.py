"""Replayed jobs on a real ResourceManager: makes their files available to the nodes; submits, collects and kills them.

The AM is workloads/replay/am.py; harness.jobs.replay writes its job file and reads its records. When a job is
submitted, and how its times are used, is decided by the caller (harness.experiments.real.run).
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

#: The files of the AM.
PROGRAM = ("am.py", "job.py", "hadoop.py", "mapreduce.py")
#: NodeManager settings for the containers of a replayed load. They leave out what these containers do not need, which
#: halves the NodeManager's work for a container. Memory is not monitored, because these containers use hardly any.
NODE_PROPERTIES: Mapping[str, str] = {
    "yarn.nodemanager.log-container-debug-info.enabled": "false",
    "yarn.nodemanager.container-monitor.enabled": "false",
    "yarn.nodemanager.container-metrics.enable": "false",
    # No checksum files beside scripts, because the NodeManager would start a program for each to set its permissions.
    "fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}


def scheduler_address(rest: RestClient) -> str:
    """Return the ResourceManager's address for AMs, as its configuration gives it: HOST:PORT.

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
        #: The type that the ResourceManager shows of the applications.
        self.type = "REPLAY"
        #: The Python interpreter on the nodes.
        self.python = python or sys.executable
        #: Job id -> id of its latest application.
        self.apps: dict[str, str] = {}
        self._tries: dict[str, int] = {}
        #: Job id -> an application id whose submission got no answer.
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
            The ResourceManager refused the job, or did not answer. If it is unknown whether the ResourceManager
            accepted it, the next call submits the same application again: a ResourceManager ignores a known id, whereas
            with a new id the job could run twice.
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
        # -S -E: without site packages and environment variables of other people.
        command = f"exec {self.python} -S -E {self.shared.path}/am.py {self.shared.path}/{name}.job 2><LOG_DIR>/stderr"
        submission = Submission(
            name=job.id,
            queue=job.queue,
            command=command,
            resource=job.am,
            type=self.type,
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
        """Return the record that a job's AM has written so far."""
        name = f"{self._file_name(job_id, self._tries[job_id])}.records"
        content = self.shared.read(name)
        if content is None:
            return JobRecord()
        return read_records(content.decode(errors="replace"), f"{self.shared.path}/{name}")

    def _file_name(self, job_id: str, number: int) -> str:
        """Files are named after run, job and attempt, because several runs may use a folder."""
        return f"{self.tag}-{_plain(job_id)}" + (f".{number}" if number > 1 else "")

    def live(self) -> list[AppStatus]:
        """Return the applications that have not ended."""
        return self.rest.apps(states=("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"), tags=[self.tag])

    def kill_all(self) -> int:
        """Kill the applications that have not ended; return their number.

        Those that cannot be killed are left to the RM.
        """
        return self.rest.kill_all(self.live())


def _plain(job_id: str) -> str:
    """Return a job's id with only letters, digits and a few signs."""
    return "".join(c if (c.isalnum() and c.isascii()) or c in "._-" else f"%{ord(c):x}" for c in job_id)
