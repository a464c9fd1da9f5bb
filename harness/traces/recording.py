"""Records what ran on a cluster as a trace, from its ResourceManager's REST API.

The JobHistoryServer has MapReduce's tasks, Spark's History Server has Spark's; without them, an application is divided
into tasks that use what the RM counted for it. harness.traces.recorded has the format and reads it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pydantic import ValidationError

from harness.base.errors import InputError
from harness.model.plan import WEIGHT_MAX
from harness.traces.formats.base import TimedJob
from harness.traces.histories import MAPREDUCE, SPARK, Histories
from harness.traces.mapreduce import HADOOPS_DELAYS, MASTER_HEARTBEAT_S
from harness.traces.recorded import (
    MOST_WEIGHT,
    Header,
    JobLine,
    LeftOutLine,
    NodeLine,
    NoteLine,
    QueueLine,
    StageLine,
    full_name,
    mean_held_mb,
    nodes_by_size,
    with_used,
)
from harness.traces.spec import DelaysSpec, MasterSpec
from harness.yarn.answers import AppStatus, NodeStatus
from harness.yarn.capacity.monitors import monitored, preempts
from harness.yarn.capacity.properties import ASYNCHRONOUS, PREFIX
from harness.yarn.capacity.source import StoreSource
from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.fair.javanum import parse_boolean
from harness.yarn.plausible import Sifted, clock_was_set, sift
from harness.yarn.queue_answers import CAPACITY, SchedulerStatus, comparable_settings, steady_weights, with_created
from harness.yarn.releases import asynchronous_by_default
from harness.yarn.rest import shown_site
from harness.yarn.rmclient import RmClient

#: An AM holds its container a little longer than it lives. Additional usage up to this is not a task of its own:
#: seconds, and fraction of the lifetime.
_ROUGH_S, _ROUGH_PART = 3.0, 0.02
#: An application is divided into at most this many tasks side by side.
MOST_TASKS = 200_000
#: Fractions of fair shares that differ by less are equal except for rounding.
_ALIKE = 0.02
#: Hadoop's default fraction of a fair share that AMs may use.
_AM_SHARE = 0.5
NODE_HEARTBEAT = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"
UPDATE = "yarn.scheduler.fair.update-interval-ms"
#: Properties that determine the scheduler's decisions.
_OF_SCHEDULER = (
    "yarn.scheduler.minimum-allocation-",
    "yarn.scheduler.maximum-allocation-",
    "yarn.scheduler.increment-allocation-",
    "yarn.scheduler.reservation-threshold.",
    "yarn.scheduler.fair.assignmultiple",
    "yarn.scheduler.fair.dynamic.max.assign",
    "yarn.scheduler.fair.max.assign",
    "yarn.scheduler.fair.sizebasedweight",
    "yarn.scheduler.fair.preemption",
    "yarn.scheduler.fair.waitTimeBeforeKill",
    "yarn.scheduler.fair.waitTimeBeforeNextStarvationCheck",
    "yarn.scheduler.fair.am.preemption",
    "yarn.resource-types.",
)
#: Further properties for its monitors, if they run.
_OF_MONITOR = ("yarn.resourcemanager.scheduler.monitor.", "yarn.resourcemanager.monitor.capacity.preemption.")


#: The final status of an application that was killed, or whose AM was told to kill its job.
_KILLED = "KILLED"
#: Part of a header's source if its weights are not those in force.
ESTIMATED = "weights are estimated"
#: After the end of an application the ResourceManager still adds what its last containers used: it shows running
#: containers' use as of up to 3 s ago (SchedulerApplicationAttempt), and removes them only after the end. Seconds.
COUNTED_AFTER_S = 5.0


def whole_property(properties: Mapping[str, str], name: str) -> int | None:
    """Return a property as a number that a trace can have; None if it is not such a number."""
    found = re.fullmatch(r"\s*([0-9]{1,8})\s*", properties.get(name, ""))
    return int(found[1]) if found and 1 <= int(found[1]) <= 10**7 else None


def nodes_of(nodes: Sequence[NodeStatus]) -> list[NodeLine]:
    """Return the RUNNING nodes by size, as the ResourceManager shows them. Raises InputError if there are none."""
    found = nodes_by_size((node.total.memory_mb, node.total.vcores) for node in nodes if node.state == "RUNNING")
    if not found:
        raise InputError("no node is RUNNING", hint="look at its NodeManagers (`yarnfair cluster doctor --rm URL`)")
    return found


class NothingRan(InputError):
    """Raised if the ResourceManager knows no application that has run."""


class NoSuchJob(InputError):
    """Raised if the ResourceManager's data on an application make no job of a trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recording: the first line of its trace, the jobs, and what it could not know."""

    header: Header
    jobs: list[JobLine]
    notes: list[NoteLine]


def record_rm(
    client: RmClient,
    histories: Histories | None = None,
    *,
    entitlements: Mapping[str, float] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Recorded:
    """Record what the ResourceManager retains of applications that have started.

    Applications with impossible values (harness.yarn.plausible), and those in which nothing ran, are left out;
    `progress` and a note say so.

    ``entitlements``: queue -> w_i, if the weights in force are a controller's (None: the weights in force are used).
    Raises InputError if there is nothing to record, and the errors of requests.
    """
    sifted = sifted_apps(client)
    apps: list[AppStatus] = []
    idle: list[AppStatus] = []
    for app in sifted.apps:
        (apps if has_run(app) else idle).append(app)
    if not apps:
        what = "no application has run"
        if sifted.left_out:
            what = f"no application with figures that can be has run: {sifted.words()}"
        raise NothingRan(what, where=client.rest.http.current, hint="record while something runs")
    zero_ms = min(app.started_ms for app in apps)
    detail: Counter[str] = Counter()
    jobs = []
    for number, app in enumerate(apps, start=1):
        try:
            job = job_of(app, histories, zero_ms)
        except NoSuchJob as error:
            sifted.left_out[app.id] = error.what
            continue
        detail[job.detail] += 1
        jobs.append(job)
        if number % 100 == 0:
            progress(f"{number} of {len(apps)} applications")
    words = ", ".join(f"{count} {_KNOWN[name]}" for name, count in sorted(detail.items(), reverse=True))
    used, what = [job.queue for job in jobs], f"{len(jobs)} applications: {words}"
    notes, end_s = [], max((job.submit_s for job in jobs), default=0.0)
    said = sifted.words(), idle_words(idle), uncounted_words(apps, sifted.clock_s), clock_was_set(sifted.apps)
    for words in filter(None, said):
        progress(words)
        notes.append(NoteLine(note=words, from_s=0.0, until_s=end_s))
    header = rm_header(client, entitlements, used, what, histories=histories, on_progress=progress)
    if histories is not None:
        for words in histories.by_sums_words():
            progress(words)
        left_out = [
            LeftOutLine(reason=reason, records=totals.records, tasks=totals.tasks, attempts=totals.attempts)
            for reason, totals in sorted(histories.left_out().items())
        ]
        header = header.model_copy(update={"left_out": left_out or header.left_out})
    return Recorded(header=header, jobs=jobs, notes=notes)


def sifted_apps(client: RmClient) -> Sifted:
    """Return all applications that the ResourceManager retains, without those with impossible values."""
    info, status, apps = client.rest.info(), client.rest.scheduler(), client.apps()
    sifted = sift(apps, status.capacity, info.clock_s)
    sifted.clock_s = info.clock_s
    sifted.left_out.update(apps.skipped)
    return sifted


def rm_header(
    client: RmClient,
    entitlements: Mapping[str, float] | None,
    used: Iterable[str],
    words: str = "",
    *,
    histories: Histories | None = None,
    estimate: bool = True,
    nodes: Sequence[NodeLine] | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Header:
    """Return the first line of a trace: the cluster as the ResourceManager shows it now.

    ``nodes``: the nodes that are known; None: the ResourceManager is asked.

    ``used``: queues of recorded applications, which may be gone. ``words``: additions to the text on the source.
    ``histories``: servers that have tasks; these are replayed with the delays of Hadoop's own nodes and AMs, and of
    Spark's. ``estimate``: whether steady fair shares may replace the weights if the client RPC does not answer;
    ``on_progress`` then reports this, and the source mentions it.
    """
    info, status = client.rest.info(), client.rest.scheduler()
    listed = nodes_of(client.rest.nodes()) if nodes is None else list(nodes)
    on_capacity = status.type == CAPACITY
    if entitlements is None and on_capacity:
        entitlements = comparable_settings(status)
    elif entitlements is not None:
        # The configuration gives each queue's fraction of the cluster. It does not name queues that the scheduler
        # creates: these divide their parent's fraction.
        entitlements = with_created(entitlements, status)
    else:
        entitlements, problem = client.weights_or_why(status) if estimate else (client.weights(status), "")
        if entitlements is None:
            on_progress(problem)
            entitlements, words = steady_weights(status), "; ".join(filter(None, (words, ESTIMATED)))
    properties = _properties(client)
    most = MOST_WEIGHT if on_capacity else WEIGHT_MAX
    queues = {
        path: QueueLine(weight=_sane(entitlements.get(path, 1.0), most)) for path in status.queues if path != "root"
    }
    source = f"{client.rest.http.current}, cluster {info.id}, Hadoop {info.version}"
    return Header(
        source=f"{source}; {words}" if words else source,
        nodes=listed,
        queues=with_used(queues, used),
        max_am_share=-1.0 if on_capacity else am_share_of(status),
        conf=scheduler_properties(properties),
        scheduler="capacity" if on_capacity else "fair",
        capacity={**_limits(client, properties), **_calculator(properties)} if on_capacity else None,
        asynchronous=places_asynchronously(client, properties, info.hadoop) if on_capacity else None,
        delays=DelaysSpec(
            node_heartbeat_ms=whole_property(properties, NODE_HEARTBEAT),
            end_heartbeat_ms=HADOOPS_DELAYS.end_heartbeat_ms if histories is not None else None,
            am_heartbeat_ms=histories.am_heartbeat_ms() if histories is not None else None,
            am_response_heartbeats=HADOOPS_DELAYS.am_response_heartbeats if histories is not None else None,
            update_ms=whole_property(properties, UPDATE),
        ),
        assumed=[
            *(_assumed_of_preemption(status, properties) if on_capacity else []),
            *(histories.assumed_words() if histories is not None else []),
        ],
    )


def places_asynchronously(client: RmClient, properties: Mapping[str, str], hadoop: tuple[int, int]) -> bool | None:
    """Return whether a Capacity Scheduler places containers asynchronously; None if the ResourceManager hides it.

    A store shows the scheduler's whole configuration. Otherwise only a value in ``/conf`` tells: Hadoop's default
    depends on the release, and capacity-scheduler.xml, which is not shown, may have another value.

    Parameters
    ----------
    client
        The ResourceManager.
    properties
        Its ``/conf``; empty if it does not show that page.
    hadoop
        Its release: major and minor number.
    """
    try:
        stored: Mapping[str, str] | None = StoreSource(client.rest.http).read().values
    except (Refused, BadAnswer):
        stored = None
    text = ((stored or {}).get(ASYNCHRONOUS) or properties.get(ASYNCHRONOUS) or "").strip()
    if not text and (stored is None or not properties):
        return None
    return parse_boolean(text, asynchronous_by_default(hadoop))


def _assumed_of_preemption(status: SchedulerStatus, properties: Mapping[str, str]) -> list[str]:
    """Describe which settings of preemption a replay of this Capacity Scheduler uses.

    A ResourceManager shows the settings of yarn-site.xml in ``/conf``, and of its queues whether preemption from them
    is enabled. It never shows the settings of capacity-scheduler.xml, which take precedence.
    """
    if preempts(properties):
        return [
            "preemption is as yarn-site.xml and Hadoop's defaults have it: a ResourceManager does not show what "
            "capacity-scheduler.xml says of it"
        ]
    if not properties and any(queue.leaf and queue.preemptable for queue in status.queues.values()):
        return ["nothing is preempted: preemption is on, but the ResourceManager does not show its settings (/conf)"]
    return []


def am_share_of(status: SchedulerStatus) -> float:
    """Return the fraction of a queue's fair share that AMs may use, as the Fair Scheduler's leaves show it.

    A trace has one for all queues; -1: all of it.

    Source: FSLeafQueue.canRunAppAM of Hadoop 3.4.2 sets the shown value to fair share x maxAMShare when the queue last
    checked whether an AM may start, and shows nothing if there is no limit. So active leaves are trusted if they agree.
    If they do not, or the cluster is idle, the result is Hadoop's default, or less if a leaf shows less: a fair share
    was never below the steady one, which is the fair share with all queues active.
    """
    leaves = [queue for queue in status.queues.values() if queue.leaf]
    active = [queue.am_maximum.memory_mb / queue.fair_share.memory_mb for queue in leaves if queue.fair_share.memory_mb]
    steady = sum(queue.steady_share.memory_mb for queue in leaves)
    limited = [queue for queue in leaves if 0 < queue.am_maximum.memory_mb <= steady and queue.steady_share.memory_mb]
    if not limited or (active and min(active) <= 0):
        return -1.0
    if len(active) > 1 and max(active) <= 1.0 + _ALIKE and max(active) - min(active) <= _ALIKE:
        return min(round(max(active), 2), 1.0)
    most = min(queue.am_maximum.memory_mb / queue.steady_share.memory_mb for queue in limited)
    return min(round(most, 2), _AM_SHARE)


def _properties(client: RmClient) -> dict[str, str]:
    """Return the ResourceManager's ``/conf``; empty if that page is not available."""
    return shown_site(client.rest) or {}


def scheduler_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that determine the scheduler's decisions."""
    names = _OF_SCHEDULER + (_OF_MONITOR if monitored(properties) else ())
    return {name: properties[name] for name in sorted(properties) if name.startswith(names)}


def _limits(client: RmClient, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the limits of a Capacity Scheduler's queues, without their preemption settings if no monitor runs.

    Without monitors, the RM shows preemption as disabled for every queue, whatever is configured.
    """
    found = client.rest.capacity_limits()
    if monitored(properties):
        return found
    return {key: text for key, text in found.items() if not key.endswith(".disable_preemption")}


def _calculator(properties: Mapping[str, str]) -> dict[str, str]:
    """Return how the Capacity Scheduler compares resources, if the ResourceManager shows it."""
    name = f"{PREFIX}resource-calculator"
    return {name.removeprefix(PREFIX): properties[name]} if name in properties else {}


def _sane(weight: float, most: float) -> float:
    return min(max(weight, 1e-6), most) if weight == weight else 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """An application as it was last seen. ``before``: values of its counters before a restart reset them."""

    id: str
    user: str
    name: str
    queue: str
    type: str
    started_ms: int
    launched_ms: int
    finished_ms: int
    elapsed_ms: int | None
    memory_seconds: int
    vcore_seconds: int
    final: bool
    final_status: str = ""
    before: tuple[int, int] = (0, 0)
    missed: int = 0

    @classmethod
    def of(cls, app: AppStatus | Seen, last: Seen | None) -> Seen:
        """Return the application's present state, given its last seen one."""
        before = (0, 0) if last is None else last.before
        if last is not None and app.vcore_seconds < last.vcore_seconds - last.before[1]:
            before = (last.memory_seconds, last.vcore_seconds)
        own = {one.name: getattr(app, one.name) for one in fields(cls) if one.name not in ("before", "missed")}
        return replace(
            cls(**own, before=before),
            launched_ms=app.launched_ms or (last.launched_ms if last is not None else 0),
            memory_seconds=app.memory_seconds + before[0],
            vcore_seconds=app.vcore_seconds + before[1],
        )

    @property
    def ran(self) -> bool:
        """Return whether the application was launched and has used resources."""
        return has_run(self)

    def vanished(self) -> Seen:
        """Return the application as ended when it was last seen."""
        return replace(self, final=True, finished_ms=self.started_ms + (self.elapsed_ms or 0))


App = AppStatus | Seen


def has_run(app: App) -> bool:
    """Return whether the application was launched and has used resources."""
    return bool(app.launched_ms) and app.vcore_seconds > 0


def idle_words(idle: Sequence[App]) -> str:
    """Describe in a sentence the applications that are left out because nothing ran in them; empty if there are none.

    A trace cannot have them: what they would have asked for is unknown.
    """
    if not idle:
        return ""
    counts = Counter(_outcome(app) for app in idle)
    parts = ", ".join(f"{count} {words}" for words, count in sorted(counts.items()))
    return f"applications left out because nothing ran in them: {len(idle)} ({parts})"


def ended_just_now(app: App, clock_s: float | None) -> bool:
    """Return whether the ResourceManager may still add to an application's use. ``clock_s``: its time, seconds."""
    # The clock is a header's, in whole seconds. One that is further off is not the ResourceManager's.
    return app.final and clock_s is not None and abs(clock_s - app.finished_ms / 1000.0) < COUNTED_AFTER_S


def uncounted_words(apps: Iterable[App], clock_s: float | None) -> str:
    """Describe in a sentence the applications whose use may not be counted whole yet; empty if there are none."""
    count = sum(ended_just_now(app, clock_s) for app in apps)
    if not count:
        return ""
    return (
        f"{count} application(s) ended within the last {COUNTED_AFTER_S:.0f} s: some of their use may not be counted "
        "yet (to have it all, record again)"
    )


def _outcome(app: App) -> str:
    if not app.final:
        return "waiting"
    return {"FAILED": "failed or refused", _KILLED: "killed"}.get(app.final_status, "ended")


def job_of(app: App, histories: Histories | None, zero_ms: int, *, settled: bool = True) -> JobLine:
    """Return one application as a job. Raises NoSuchJob if its values exceed what a trace can hold.

    ``settled``: whether a history server has had the time to learn of its end.
    """
    try:
        return _job_of(app, histories, zero_ms, settled)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise NoSuchJob(f"it makes no job of a trace: {where}: {first['msg']}", where=app.id) from None


def _job_of(app: App, histories: Histories | None, zero_ms: int, settled: bool) -> JobLine:
    common: dict[str, Any] = {
        "job": app.id,
        "queue": full_name(app.queue),
        "user": app.user or "unknown",
        "name": app.name[:1000],
        "submit_s": max(app.started_ms - zero_ms, 0) / 1000.0,
        "started_s": max(app.launched_ms - zero_ms, 0) / 1000.0,
        "finished_s": max(app.finished_ms - zero_ms, 0) / 1000.0 if app.finished_ms else None,
        "counted_mb_s": app.memory_seconds,
    }
    if not app.finished_ms and app.elapsed_ms is not None:
        common["counted_until_s"] = max(app.started_ms + app.elapsed_ms - zero_ms, 0) / 1000.0
    if app.final_status == _KILLED and app.finished_ms:
        common["lifetime_s"] = max(app.finished_ms - app.started_ms, 0) / 1000.0
    mapreduce = histories.mapreduce if histories is not None and app.type == MAPREDUCE else None
    spark = histories.spark if histories is not None and app.type == SPARK else None
    if mapreduce is not None:
        found = mapreduce.mapreduce(app.id)
        if found is not None:
            line = JobLine(kind="mapreduce", detail="tasks", **found, **common)
            if not any(stage.tasks_s for stage in line.stages):
                # An uber job: its tasks ran in the AM's container, which it held for its whole lifetime.
                end_ms = app.finished_ms if app.final else app.started_ms + (app.elapsed_ms or 0)
                return line.model_copy(update={"am_end_s": max((end_ms - app.launched_ms) / 1000.0, 0.0)})
            return _with_overheads(line, app, mapreduce.began_ms(app.id))
    if spark is not None and app.final:
        logged = spark.spark(app.id, settled=settled)
        if logged is not None:
            return _of_spark(logged, app, common)
    return JobLine(kind="dag", detail="integrals", **_by_integrals(app), **common)


def _of_spark(logged: TimedJob, app: App, common: Mapping[str, object]) -> JobLine:
    """Return a Spark application: its stages from the driver's log, its queue and times from the ResourceManager.

    The driver's clock is another machine's. If by that clock the driver asked for executors before its AM had started,
    or after the application had ended, its times count from its own start.
    """
    line = logged.line
    assert line.executors is not None
    assert line.am_start_s is not None
    assert line.am_end_s is not None
    changed: dict[str, Any] = {}
    lived_s = (app.finished_ms - app.launched_ms) / 1000.0
    if lived_s > 0:
        asked_ms = logged.submitted_ms + 1000.0 * line.am_start_s
        if app.launched_ms <= asked_ms <= app.finished_ms:
            changed["am_start_s"] = round((asked_ms - app.launched_ms) / 1000.0, 3)
        if line.finished_s is not None:
            last_ms = logged.submitted_ms + 1000.0 * (line.finished_s - line.am_end_s)
            if app.launched_ms <= last_ms <= app.finished_ms:
                changed["am_end_s"] = round((app.finished_ms - last_ms) / 1000.0, 3)
        held_mb = mean_held_mb(app.memory_seconds, line.am.memory_mb, lived_s)
        changed["executors"] = {**line.executors.model_dump(), "held_mb": held_mb}
    return JobLine(**{**line.model_dump(), **changed, **common, "detail": "tasks"})


def _with_overheads(line: JobLine, app: App, began_ms: int | None) -> JobLine:
    """Return a MapReduce job with the overheads of its AM and containers, in addition to the tasks' times.

    The history does not show when a container was granted, or had exited. But the ResourceManager counts memory and
    vcores over time: what it counted beyond the AM and the tasks is divided evenly among the containers. The smaller of
    the two results is used, because a scheduler may round a container's memory up. The wait for the AM's heartbeats is
    subtracted, because the simulator has it, too.
    """
    waits_s, launched_ms = MASTER_HEARTBEAT_S / 2, app.launched_ms
    if not app.final or not launched_ms or app.finished_ms < launched_ms:
        return line
    lived_s, count = (app.finished_ms - launched_ms) / 1000.0, sum(len(stage.tasks_s) for stage in line.stages)
    memory = sum(stage.memory_mb * len(stage.tasks_s) for stage in line.stages)
    worked_mb_s = sum(stage.memory_mb * sum(stage.tasks_s) for stage in line.stages)
    vcores = sum(stage.vcores * len(stage.tasks_s) for stage in line.stages)
    worked_vcore_s = sum(stage.vcores * sum(stage.tasks_s) for stage in line.stages)
    by_memory_s = (app.memory_seconds - line.am.memory_mb * lived_s - worked_mb_s) / memory
    # It counts only completed vcore-seconds of each container.
    counted = app.vcore_seconds + (count + 1) / 2
    by_vcores_s = (counted - line.am.vcores * lived_s - worked_vcore_s) / vcores
    more_s = round(max(min(by_memory_s, by_vcores_s) - waits_s, 0.0), 3)
    changed: dict[str, Any] = {}
    if more_s:
        stages = [one.model_copy(update={"starts_s": [more_s] * len(one.tasks_s)}) for one in line.stages]
        changed["stages"] = stages
    if began_ms is not None and launched_ms <= began_ms <= app.finished_ms:
        # The AM asks for its tasks at the next heartbeat. A time outside the application's lifetime comes from another
        # clock and is ignored.
        changed["am_start_s"] = round((began_ms - launched_ms) / 1000.0 + waits_s, 3)
    return line.model_copy(update=changed)


#: Sentences on what is known of an application, by its detail.
_KNOWN = {"tasks": "known task by task", "integrals": "known by the sums of what they held (memory, vcores)"}


def _by_integrals(app: App) -> dict[str, Any]:
    """Return an application divided into tasks by its integrals.

    The number of tasks side by side is what it held on average during its lifetime by the ResourceManager's clock (up
    to its end or the present); one more task has the rest.

    Its AM is assumed to be a container like the others, held all the time. An application that used no more than that
    is only an AM.
    """
    end_ms = app.finished_ms if app.final else app.started_ms + (app.elapsed_ms or 0)
    lived_s = max((end_ms - app.launched_ms) / 1000.0, 1.0)
    vcores = 1
    memory = max(round(app.memory_seconds / max(app.vcore_seconds, 1)), 1)
    if app.vcore_seconds - lived_s <= max(_ROUGH_S, _ROUGH_PART * lived_s):
        alone = StageLine(name="all", memory_mb=memory, vcores=vcores, tasks_s=[])
        return {"am": MasterSpec(memory_mb=memory, vcores=vcores), "stages": [alone], "am_end_s": round(lived_s, 3)}
    if app.vcore_seconds / lived_s > MOST_TASKS:
        raise NoSuchJob(
            f"{app.vcore_seconds:,} vcore s in {lived_s:,.0f} s are more than {MOST_TASKS:,} tasks side by side",
            where=app.id,
        )
    # Together with the AM they use what the RM counted, and none is longer than the application.
    side_by_side, rest_s = divmod(app.vcore_seconds - lived_s, lived_s)
    tasks_s = [lived_s] * int(side_by_side)
    if tasks_s and rest_s < _ROUGH_S:
        tasks_s = [lived_s + rest_s / len(tasks_s)] * len(tasks_s)
    else:
        tasks_s.append(rest_s)
    return {
        "am": MasterSpec(memory_mb=memory, vcores=vcores),
        # It is not known when it asked, so it asks from its beginning on.
        "am_start_s": 0.0,
        "am_end_s": round(max(lived_s - tasks_s[0], 0.0), 3),
        "stages": [StageLine(name="all", memory_mb=memory, vcores=vcores, tasks_s=[round(one, 3) for one in tasks_s])],
    }
