"""Runs one variant of an experiment on a real cluster, in wall-clock time, into its run directory.

Jobs and task durations are those of the simulator (harness.jobs.workloads). They are submitted by the same schedule, as
replayed load (workloads/replay) or as programs that compute. Stock policies are set once in the scheduler's file;
others act from outside, with the control core on the wall clock (harness.control.wall).
"""

from __future__ import annotations

import contextlib
import heapq
import math
import re
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.base.errors import InputError, RunInvalid, YarnfairError, reason, without_secrets
from harness.clusters.daemons import SCHEDULERS
from harness.control.health import ControlHealth
from harness.control.kept import decision_document
from harness.control.reports import TickReport
from harness.control.rm_poller import open_rm_poller
from harness.control.wall import Controller
from harness.experiments.kind import NEVER_ENDS, Outcome, Step
from harness.experiments.real.cluster import RealCluster
from harness.experiments.real.curves import JobRun, QueueCurves, latencies, result_of, settle, tasks_table
from harness.experiments.real.endless import Standstill, patience_s, pending_containers
from harness.experiments.real.programs import ProgramLoad, Programs
from harness.experiments.real.queues import allocations_of, find_queues, put_queues
from harness.experiments.real.schedulers import REAL_SCHEDULERS
from harness.experiments.real.start import MOST_TRIES, client_of, control_settings, options_of
from harness.experiments.real.trace import node_heartbeat_ms, run_header, run_jobs, sizes_document
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of
from harness.experiments.simulated import node_sizes, put_arrivals
from harness.experiments.submissions import submission_queue
from harness.jobs.replay import JobRecord
from harness.jobs.submit import Replayer, scheduler_address
from harness.ledger.store import LedgerStore
from harness.policies.registry import make_policy
from harness.results.metrics import ideal_alone_s
from harness.results.store import RunDirectory, WriteThrottle
from harness.results.summary import allocations_table, jobs_table, summarise
from harness.results.validity import control_invalidity
from harness.sim.setup import SimResult
from harness.traces.recorded import trace_text
from harness.traces.recording import nodes_of
from harness.yarn.answers import FINAL_STATES, AppStatus
from harness.yarn.errors import BadAnswer, Refused, Unreachable
from harness.yarn.fair.manager import queue_tree
from harness.yarn.queue_answers import SchedulerStatus
from harness.yarn.rmclient import RmClient

__all__ = ["RealRun"]

#: Poll interval of the applications, seconds.
FOLLOW_EVERY_S = 0.5
#: Largest number of times that a job is submitted again because its AM was preempted.
MOST_PREEMPTED = 20
#: How long the ResourceManager may fail to answer before the run ends, seconds.
SILENCE_S = 120.0
#: Interval of progress lines, seconds.
TELL_EVERY_S = 30.0


class RealRun:
    """One variant on one cluster."""

    #: Health of the controller over the run; None if no policy acts from outside.
    health: ControlHealth | None = None
    #: The time limit, in seconds, if the experiment sets none; None: the experiment's.
    limit_s: float | None = None
    #: Detects that the load can never end; None if the run is observed for a fixed time.
    standstill: Standstill | None = None
    #: Why the load can never end.
    never_ends = ""
    #: The queues at the last poll.
    seen: SchedulerStatus | None = None
    on_progress: Callable[[str], None] | None = None

    def __init__(
        self,
        experiment: LoadedExperiment,
        variant: Variant,
        directory: RunDirectory,
        cluster: RealCluster,
        programs: Programs,
        *,
        tag: str | None = None,
        limit_s: float | None = None,
    ) -> None:
        self.programs, self.limit_s, self.on_progress = programs, limit_s, programs.progress
        #: The run's jobs that compute; other jobs are replayed.
        self.load: ProgramLoad | None = None
        self.experiment, self.variant, self.directory, self.cluster = experiment, variant, directory, cluster
        jobs = list(jobs_of(experiment, variant.seed)[0])
        queue = submission_queue(make_policy(variant.policy, variant.settings))
        self.holding = queue.live(jobs, node_sizes(experiment)) if queue is not None else None
        self.jobs = [JobRun(spec, None if spec.after_job else spec.submit_s) for spec in jobs]
        self.by_id = {job.spec.id: job for job in self.jobs}
        self.followers: dict[str, list[JobRun]] = {}
        for job in self.jobs:
            if job.spec.after_job:
                self.followers.setdefault(job.spec.after_job, []).append(job)
        #: Jobs that have ended, but whose dependents have not been told yet.
        self.done: list[JobRun] = []
        self.client = client_of(cluster)
        self.tag = tag or f"run-{uuid.uuid4().hex[:12]}"
        self.decisions: list[dict[str, Any]] = []
        self.weights: Mapping[str, float] = {}
        self.stop = threading.Event()
        self.controller: threading.Thread | None = None
        self._closing = contextlib.ExitStack()
        self.began = time.monotonic()
        self.zero_ms = 0
        #: The properties of an external cluster, as far as it shows them (None: we started it).
        self.given: dict[str, str] | None = None
        #: Time at which the measured run ended, in seconds of the run; the rest is tear-down.
        self.ended_s: float | None = None

    def __enter__(self) -> RealRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        if self.controller is not None:
            self.controller.join(30.0)
        self._closing.close()
        self.client.close()

    # --- start ---

    def _begin(self) -> None:
        """Put the queues in force, start the measured time, and start the controller."""
        rest = self.client.rest
        info, capacity = rest.info(), rest.metrics().total
        # The actual resources, which may differ from the experiment's: an external cluster, or hosts with sizes of
        # their own.
        self.nodes = nodes_of(rest.nodes())
        if "given" in self.cluster.document:
            try:
                self.given = rest.properties()
            except (Refused, BadAnswer):
                self.given = {}
        allocations = allocations_of(self.experiment, self.variant, capacity)
        self.tree, place = queue_tree(allocations), self.cluster.place
        if place is None:
            self.weights = find_queues(self.client, self.experiment, any_queue=bool(self.programs.requests))
        else:
            self.weights = put_queues(
                self.client, self.cluster, place, self.experiment, self.variant, allocations, self.tree
            )
        options = options_of(self.experiment, scheduler_address(rest), self.variant.seed)
        self.replayer = Replayer(rest, self.cluster.shared, options, tag=self.tag, python=self.cluster.python)
        self.load = self.programs.load(rest, self.variant.seed, self.tag)
        if self.load is not None:
            self._closing.callback(self.load.close)
        self.curves = QueueCurves(self.tree, self.experiment.weights, self.experiment.spec.resource)
        self.capacity = capacity
        if self.experiment.spec.limits.duration_s is None:
            preempts = self.experiment.spec.conf.get(SCHEDULERS[self.variant.scheduler].preemption, False)
            patience = patience_s(
                programs=self.load is not None,
                controlled=self.variant.mode == "outside",
                preemption=str(preempts).lower() == "true",
            )
            self.standstill = Standstill(patience)
        self.alone_s = {job.spec.id: ideal_alone_s(job.spec, capacity) for job in self.jobs}
        self.directory.info["cluster"] = {
            **self.cluster.document,
            **sizes_document(self.nodes),
            "id": info.id,
            "version": info.version,
            "tag": self.tag,
        }
        self.directory.info["capacity_mb"], self.directory.info["capacity_vcores"] = capacity.memory_mb, capacity.vcores
        self._document()
        self.zero_ms = time.time_ns() // 1_000_000
        self.began = time.monotonic()
        self.directory.progress(time_s=0.0, jobs_done=0)
        if self.variant.mode == "outside":
            self._start_controller()

    def _document(self) -> None:
        if self.load is not None:
            version = self.directory.info["cluster"]["version"]
            self.directory.info["programs"] = self.load.document(version, self.programs.data)

    def _start_controller(self) -> None:
        assert self.cluster.place is not None
        settings = control_settings(self.experiment, self.variant)
        ledger = self.directory.path / "ledger.sqlite"
        for path in ledger.parent.glob("ledger.sqlite*"):
            path.unlink()
        client = self._closing.enter_context(client_of(self.cluster))
        store = self._closing.enter_context(LedgerStore(ledger))
        policy = make_policy(self.variant.policy, self.variant.settings)
        place = self.cluster.place
        actuator = REAL_SCHEDULERS[self.variant.scheduler].actuator(place, store.document)
        controller = Controller(
            settings, client, actuator, store, policy, open_observer=open_rm_poller, on_tick=self._ticked
        )
        self.health = ControlHealth(settings.period_s)
        self.controller = threading.Thread(target=self._control, args=(controller,), name="controller", daemon=True)
        self.controller.start()

    def _control(self, controller: Controller[RmClient]) -> None:
        """Run the controller until the run ends; `_loop` detects if it ends earlier."""
        assert self.health is not None
        try:
            controller.run(self.stop)
        except BaseException as error:
            self.health.died = f"{type(error).__name__}: {reason(error)}"
            text = "".join(traceback.format_exception(error))
            self.decisions.append({"time_s": self.now_s(), "alarm": "controller", "text": without_secrets(text)})

    def _controller_died(self) -> bool:
        """Return whether the controller has ended by itself before the run."""
        if self.controller is None or self.health is None or self.controller.is_alive() or self.stop.is_set():
            return False
        self.health.died = self.health.died or "its thread ended"
        return True

    def _ticked(self, report: TickReport) -> None:
        now = self.now_s()
        if self.health is not None:
            self.health.tick(report, now)
        for alarm in report.alarms:
            self.decisions.append({"time_s": now, "alarm": alarm.kind, "text": alarm.text})
        record = report.record
        if record is not None:
            self.weights = {**self.weights, **record.attributes.weights}
            self.decisions.append({**(decision_document(record) or {}), "time_s": now, "effect_s": report.effect_s})

    def now_s(self) -> float:
        """Return seconds since the start of the run by the wall clock, which YARN's times also have."""
        return (time.time_ns() // 1_000_000 - self.zero_ms) / 1000.0

    # --- the run ---

    def run(self, on_step: Callable[[Step], None] | None) -> Outcome:
        """Run to the end, the time limit or an interruption; then kill unfinished applications and write results."""
        self._begin()
        limits = self.experiment.spec.limits
        limit_s = limits.time_limit_s if self.limit_s is None else self.limit_s
        end_s = limits.duration_s or limit_s
        why = None
        try:
            finished = self._loop(end_s, on_step)
        except BaseException:
            self.ended_s = self.now_s()
            self._kill()
            self._write(finished=False)
            raise
        self.ended_s = self.now_s()
        died = self._controller_died()
        if not finished:
            if self.never_ends:
                why = f"{NEVER_ENDS}: {self.never_ends}"
            elif limits.duration_s is None and not died:
                why = f"not ended after {limit_s:g} s: {self._open_words()}"
            self._kill()
        self.stop.set()
        if self.controller is not None:
            self.controller.join(30.0)
        if unread := settle(self.jobs, self.client.rest):
            text = f"the usage of {len(unread)} ended application(s) is as last seen, some seconds short"
            self.decisions.append({"time_s": self.ended_s, "alarm": "rm", "text": text})
            self.programs.progress(f"{self.variant.name}: {text}")
        self._check_answers()
        self._document()
        if self.health is not None:
            self.health.end(self.ended_s)
            self.directory.info["control"] = self.health.document()
        result, summary = self._write(finished=finished)
        measured = self.directory.info["measured"] = latencies(
            self.jobs, node_ms=node_heartbeat_ms(self.experiment, self.given)
        )
        source = f"{self.cluster.backend} cluster {self.directory.info['cluster']['id']}, {self.variant.name}"
        # AMs of programs act on an answer at once.
        header = run_header(
            self.experiment,
            source,
            measured,
            1 if self.load is None else 0,
            nodes=self.nodes,
            given=self.given,
            scheduler=self.variant.scheduler,
        )
        lag_ms = (header.delays.am_response_heartbeats or 0) * (header.delays.am_heartbeat_ms or 0)
        jobs = run_jobs(self.jobs, self.variant.seed, lag_ms / 1000.0)
        if self.load is not None:
            jobs = self.load.lines(jobs, self.jobs, header.delays)
        self.directory.write_text("trace.jsonl", trace_text(header, jobs))
        self.directory.progress(time_s=result.end_s, jobs_done=sum(job.ended for job in self.jobs))
        bad = control_invalidity(self.directory.info.get("control"))
        if died and bad is not None:
            return Outcome(summary, bad.exit_code, bad.reason)
        if why is not None:
            return Outcome(summary, 4 if self.never_ends else 5, why)
        if result.failed_jobs:
            first = next(job for job in self.jobs if job.failed)
            words = first.record.why or (first.status.diagnostics if first.status else "")
            return Outcome(
                summary, 4, f"{result.failed_jobs} job(s) failed, {first.spec.id}: {' '.join(words.split())[:1000]}"
            )
        return Outcome(summary, 0, None) if bad is None else Outcome(summary, bad.exit_code, bad.reason)

    def _loop(self, end_s: float, on_step: Callable[[Step], None] | None) -> bool:
        due = [(job.due_s, number) for number, job in enumerate(self.jobs) if job.due_s is not None]
        heapq.heapify(due)
        pace, silent_since = WriteThrottle(), None
        sample_s, look_s, follow_s, told_s = self.experiment.spec.sample_s, 0.0, 0.0, 0.0
        while True:
            now = self.now_s()
            if all(job.ended for job in self.jobs):
                # All jobs have ended: the last poll only extends the curves.
                with contextlib.suppress(YarnfairError):
                    self._look()
                return True
            if now >= end_s or self._controller_died():
                return False
            if not due and self._stands_still(now):
                return False
            try:
                while due and due[0][0] <= self.now_s():
                    self._came(self.jobs[due[0][1]])
                    heapq.heappop(due)
                self._hand_on()
                if now >= look_s:
                    self._look()
                    look_s += sample_s * max(1, math.ceil((self.now_s() - look_s) / sample_s))
                if now >= follow_s:
                    self._follow()
                    while self.done:
                        job = self.done.pop(0)
                        if self.holding is not None:
                            self.holding.finish(job.spec.id, self.now_s())
                        for time_s, follower in self._released(job):
                            heapq.heappush(due, (time_s, self.jobs.index(follower)))
                    follow_s = self.now_s() + FOLLOW_EVERY_S
                    if now >= told_s + TELL_EVERY_S:
                        told_s = now
                        self._tell(now)
                    if on_step is not None:
                        on_step(Step(now, sum(job.ended for job in self.jobs), len(self.jobs)))
                silent_since = None
            except Refused:
                raise
            except YarnfairError as error:
                # The RM may be restarting: submitted applications continue or show up as failed.
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > SILENCE_S:
                    raise
                self.decisions.append({"time_s": now, "alarm": "rm", "text": error.line()})
                time.sleep(0.5)
            for text in self.cluster.shared.troubles():
                self.decisions.append({"time_s": now, "alarm": "host", "text": text})
            if pace.due():
                with pace:
                    self._write(finished=False)
            held_s = self.holding.next_s if self.holding is not None else None
            soonest = min(
                look_s, follow_s, due[0][0] if due else math.inf, end_s, math.inf if held_s is None else held_s
            )
            time.sleep(min(max(soonest - self.now_s(), 0.0), 0.5))

    def _stands_still(self, now: float) -> bool:
        """Return whether all jobs were submitted and nothing has changed for so long that the run can never end."""
        if self.standstill is None or (self.holding is not None and self.holding.next_s is not None):
            return False
        open_jobs = [job for job in self.jobs if not job.ended]
        coming = [job for job in open_jobs if job.app_id is None and job.spec.after_job is None]
        if coming:
            return False
        self.never_ends = self.standstill.look(now, [job for job in open_jobs if job.app_id is not None], self.seen)
        return bool(self.never_ends)

    def _tell(self, now: float) -> None:
        """Print a line of progress, because a real run takes minutes."""
        if self.on_progress is None:
            return
        ended = sum(job.ended for job in self.jobs)
        under_way = [job.status for job in self.jobs if not job.ended and job.status is not None]
        running = sum(status.state == "RUNNING" for status in under_way)
        pending = "" if self.seen is None else f", {pending_containers(self.seen)} containers waited for"
        self.on_progress(
            f"{self.variant.name}: {now:,.0f} s: {ended} of {len(self.jobs)} jobs ended, {running} running, "
            f"{len(under_way) - running} waiting{pending}"
        )

    def _open_words(self) -> str:
        """Describe how many jobs have not ended, and the state of the first of them."""
        open_jobs = [job for job in self.jobs if not job.ended]
        first = next((job for job in open_jobs if job.status is not None), None)
        words = f"{len(open_jobs)} of {len(self.jobs)} jobs had not"
        if first is None or first.status is None:
            return words
        holds = f"{first.status.running_containers} container(s)"
        return f"{words}, the first {first.spec.id} ({first.status.id} {first.status.state}, {holds})"

    def _came(self, job: JobRun) -> None:
        """Handle a user's submission: submit the job to the RM, or, under mrorder, put it into mrorder's queue."""
        if self.holding is None:
            self._submit(job)
        elif job.spec.id not in self.holding.arrived:
            self.holding.arrive(job.spec, self.now_s(), job.due_s)

    def _hand_on(self) -> None:
        if self.holding is not None:
            for name in self.holding.ready(self.now_s(), self._under_way):
                self._submit(self.by_id[name])
            self.decisions += self.holding.decisions
            self.holding.decisions.clear()

    def _under_way(self, name: str) -> bool:
        status = self.by_id[name].status
        return status is not None and (status.state == "RUNNING" or status.final)

    def _submit(self, job: JobRun) -> None:
        job.tries += 1
        if math.isnan(job.submitted_s):
            job.submitted_s = self.now_s()
        if self.load is not None and job.spec.id in self.load:
            try:
                job.app_id = self.load.of(job.spec.id).submit(job.spec.id)
            except (Unreachable, Refused, BadAnswer):
                # The ResourceManager is at fault, not the job.
                raise
            except YarnfairError as error:
                self._failed(job, error.line())
        else:
            job.app_id = self.replayer.submit(job.spec)

    def _failed(self, job: JobRun, why: str) -> None:
        """Handle a program that could not be submitted, or failed before it had an application."""
        job.ended = job.failed = True
        job.finished_s, job.record = self.now_s(), JobRecord(why=why)
        self.done.append(job)

    def _released(self, job: JobRun) -> list[tuple[float, JobRun]]:
        """Return the jobs that are submitted after this ended job, with their submission times."""
        found: list[tuple[float, JobRun]] = []
        for follower in self.followers.get(job.spec.id, []):
            if job.failed and self.load is not None and self.load.continues(follower.spec.id):
                # The remaining steps of a program with a failed step are skipped; jobs that follow the program are not.
                follower.ended = follower.failed = True
                follower.finished_s = job.finished_s
                found += self._released(follower)
            else:
                follower.due_s = job.finished_s + follower.spec.think_s
                found.append((follower.due_s, follower))
        return found

    def _check_answers(self) -> None:
        """Check the programs' answers after the run; a wrong answer makes its job a failed one."""
        if self.load is None:
            return
        found = self.load.check(self.jobs, self.directory.path / "answers", self.programs.progress)
        for identity, why in found.items():
            job = self.by_id[identity]
            job.failed, job.record = True, replace(job.record, why=why)

    def _look(self) -> None:
        self.seen = status = self.client.rest.scheduler()
        self.curves.look(self.now_s(), status, self.weights)

    def _follow(self) -> None:
        """Poll the unfinished applications; jobs that have ended since are added to ``done``."""
        self._taken()
        open_jobs = {job.app_id: job for job in self.jobs if job.app_id is not None and not job.ended}
        if not open_jobs:
            return
        live = {app.id: app for app in self.replayer.live()}
        for identity, job in open_jobs.items():
            status = live.get(identity) or self.client.rest.app(identity)
            job.status = status
            job.submitted_s = (status.started_ms - self.zero_ms) / 1000.0 if job.tries == 1 else job.submitted_s
            if status.launched_ms:
                job.started_s = (status.launched_ms - self.zero_ms) / 1000.0
            if self._preempted_master(status) and job.preempted < MOST_PREEMPTED:
                job.preempted += 1
                text = f"{job.spec.id}: the master of {status.id} was preempted"
                self.decisions.append({"time_s": self.now_s(), "alarm": "preempted-master", "text": text})
                self._submit(job)
            elif status.state in FINAL_STATES:
                self._ended(job, status)
                self.done.append(job)
            elif job.lost.seen(status, time.monotonic()):
                self._again(job, status)

    def _taken(self) -> None:
        """Find the applications of submitted jobs whose application is not known yet."""
        for job in self.jobs if self.load is not None else ():
            if job.tries and job.app_id is None and not job.ended:
                assert self.load is not None
                try:
                    job.app_id = self.load.of(job.spec.id).taken(job.spec.id)
                except RunInvalid as error:
                    self._failed(job, error.what)

    def _ended(self, job: JobRun, status: AppStatus) -> None:
        job.ended = True
        job.finished_s = (status.finished_ms - self.zero_ms) / 1000.0
        job.failed = status.final_status != "SUCCEEDED"
        job.record = self._record_of(job)

    def _record_of(self, job: JobRun) -> JobRecord:
        try:
            if self.load is not None and job.spec.id in self.load:
                found = self.load.record(job.spec.id, job.status)
                # Replace the specification by the stages and task times of the actual run.
                job.spec = self.load.of(job.spec.id).measured(job.spec.id, job.status)
                self.alone_s[job.spec.id] = ideal_alone_s(job.spec, self.capacity)
                return found
            return self.replayer.record(job.spec.id)
        except InputError as error:
            self.decisions.append({"time_s": self.now_s(), "alarm": "record", "text": error.line()})
            return job.record

    def _preempted_master(self, status: AppStatus) -> bool:
        # AMs have a single attempt (a second one would find half of the work done), even with preemption.
        return status.state == "FAILED" and re.search(r"exitCode: -102\b", status.diagnostics) is not None

    def _again(self, job: JobRun, status: AppStatus) -> None:
        text = f"{job.spec.id}: the RM gave {status.id} a container and did not take it for its master"
        self.decisions.append({"time_s": self.now_s(), "alarm": "lost-master", "text": text})
        self.client.rest.kill(status.id)
        if job.tries - job.preempted < MOST_TRIES:
            self._submit(job)

    def _kill(self) -> None:
        self.stop.set()
        # Applications that cannot be killed end with the cluster, or by themselves on an external one.
        with contextlib.suppress(YarnfairError):
            self.replayer.kill_all()
        if self.load is not None:
            self.load.kill()
        for job in self.jobs:
            if job.app_id is not None and not job.ended:
                with contextlib.suppress(YarnfairError):
                    job.record = self._record_of(job)

    # --- writing ---

    def _write(self, *, finished: bool) -> tuple[SimResult, dict[str, Any]]:
        """Write the present state: the result and the summary."""
        end_s = self.now_s() if self.ended_s is None else self.ended_s
        result = result_of(
            self.jobs,
            self.curves,
            zero_ms=self.zero_ms,
            end_s=end_s,
            finished=finished,
            wall_s=time.monotonic() - self.began,
            decisions=list(self.decisions),
        )
        put_arrivals(result, self.holding.arrived if self.holding is not None else {})
        table = jobs_table(result, self.alone_s)
        directory = self.directory
        directory.write_table("jobs.parquet", table)
        directory.write_table("tasks.parquet", tasks_table(self.jobs, self.zero_ms))
        if len(self.curves):
            directory.write_table("allocations.parquet", allocations_table(result))
        directory.write_lines("decisions.jsonl", result.decisions)
        summary = summarise(result, table, list(self.experiment.leaves)) if len(self.curves) else {}
        if summary:
            directory.write_summary(summary)
        ended = sum(job.ended for job in self.jobs)
        if not finished:
            directory.progress(time_s=end_s, jobs_done=ended)
        return result, summary
