"""An application master that occupies containers for given times: ``python3 am.py JOBFILE``, run by YARN.

A task is a shell that sleeps, or runs the program of its stage (on the stage's host, if it names one); its start and
end reach the master by UDP, with the shell's own clock. MapReduce and DAGs: a container a task, stages after each other
or after slow-start, MapReduce's reduces as Hadoop's master asks for them (mapreduce.py). Spark: executors are held to
the end, tasks are timers inside them. Services: containers are held until the job's lifetime ends; another job that
has a lifetime ends with it, too, neither earlier nor later. When it does what, is as the simulator's masters do
(harness/sim/apps.py): it heartbeats at a fixed period, acts on a response at once (or a heartbeat later), asks for what
may be asked for, unregisters when all has ended.

The job file (harness/jobs/replay.py writes it) is lines of words; the records are written line by line, as they happen.
Plain Python without the package; what a job consists of is in job.py, what the master needs of Hadoop in hadoop.py.
One attempt: a lost master fails its job.
"""

import heapq
import math
import os
import select
import socket
import sys
import time

import hadoop
import mapreduce
from hadoop import Connection, RpcError, Token, field, fields, first, signed
from job import Job, Run

RM_PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB"
NM_PROTOCOL = "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB"
SUCCEEDED, FAILED = 1, 2
#: SchedulerResourceTypes: the scheduler counts vcores, not only memory.
CPU = 1
#: Exit statuses that are nobody's fault: released or lost, disks, preempted, killed by the RM or the master.
NO_FAULT = (-100, -101, -102, -105, -106, -107)
#: Where all nodes are without a topology script.
RACK = "/default-rack"
#: A task that must not end before others have: longer than any run.
HELD_S = 10_000_000
#: How long to wait for a late word by UDP, after the RM has told that a task ended.
GRACE_MS = 50
#: A task that has said nothing for so long after its launch is taken to work.
LOST_WORD_MS = 30_000


def now_ms():
    return time.time_ns() // 1_000_000


class Master:
    """The master of one job."""

    def __init__(self, job):
        self.job, self.kind = job, job.words["kind"][0]
        self.stages = job.stages
        self.period_ms = job.number("heartbeat_ms", 1000)
        self.lag = job.number("lag_heartbeats")
        self.give_back_ms = job.number("reduce_preempt_ms", 5000)
        self.check_ms = math.inf  # when to look whether held tasks keep what they wait for from running
        self.max_attempts = job.number("max_attempts", 4)
        self.executors, self.slots = job.number("executors"), job.number("executor_slots", 1)
        self.executor_size = (job.number("executor_mb"), job.number("executor_vcores"))
        self.executors_wanted, self.executors_owed = 0, self.executors
        with open(os.environ["HADOOP_TOKEN_FILE_LOCATION"], "rb") as stream:
            tokens = hadoop.read_tokens(stream.read())
        token = next(one for one in tokens if one.kind == "YARN_AM_RM_TOKEN")
        host, port = job.words["rm"][0].rsplit(":", 1)
        self.rm = Connection(host, int(port), RM_PROTOCOL, token)
        self.response_id, self.nodes, self.node_tokens = 0, {}, {}
        self.runs = {}  # container id -> Run
        self.release, self.held = [], []  # held: (what the RM told, when), not yet acted on
        self.room, self.cpu = (0, 0), True  # what the RM says that the job may still have; whether it counts vcores
        self.timers, self.timer_id = [], 0  # executors' inner tasks: (end ms, number, run)
        self.ears = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.ears.bind(("", 0))
        self.ears.setblocking(False)
        self.address = socket.gethostbyname(os.environ.get("NM_HOST") or socket.gethostname())
        self.records = open(job.words["records"][0], "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self.failed = ""

    # --- records ---

    def note(self, *words):
        self.records.write(" ".join(map(str, words)) + "\n")

    def note_task(self, run, heard_ms, outcome):
        started, ended = run.started_ms or run.launched_ms, run.ended_ms or heard_ms
        self.note(
            "task", run.stage.index, run.task, run.attempt, run.identity[1], run.node[0] + ":" + str(run.node[1]),
            run.stage.asked_ms, run.granted_ms, run.heard_ms, run.launched_ms, started, ended, heard_ms, outcome,
        )  # fmt: skip

    # --- the RM ---

    def register(self):
        answer = self.rm.call("registerApplicationMaster", field(1, self.address) + field(2, 0) + field(3, ""))
        self.cpu = any(number == 7 and kind == CPU for number, kind in fields(answer))

    def allocate(self, asks=()):
        """A heartbeat with what is asked for and given back; what came is in self.held."""
        request = b"".join(field(1, ask) for ask in asks)
        request += b"".join(field(2, identity) for identity in self.release)
        total = sum(stage.tasks for stage in self.stages) or 1
        request += field(4, self.response_id) + field(5, sum(stage.done for stage in self.stages) / total)
        answer = self.rm.call("allocate", request)
        self.release = []
        heard, granted, ended, room = now_ms(), [], [], (0, 0)
        for number, value in fields(answer):
            if number == 1 and value:
                raise RpcError(
                    "ApplicationMasterNotRegisteredException", "the RM wants this master to end or begin anew"
                )
            if number == 2:
                self.response_id = value
            elif number == 3:
                granted.append(value)
            elif number == 4:
                ended.append(value)
            elif number == 5:
                limit = first(value)
                room = (signed(limit.get(1, 0)), signed(limit.get(2, 0)))
            elif number == 9:
                message = first(value)
                node = first(message[1])
                self.node_tokens[node[1].decode(), node[2]] = Token.of(message[2])
            elif number == 12:
                self.rm.token = Token.of(value)
        self.held.append((granted, ended, heard, room))

    def ask(self, priority, count, mb, vcores, where="*", relax=1):
        resource = field(1, mb) + field(2, vcores)
        return field(1, field(1, priority)) + field(2, where) + field(3, resource) + field(4, count) + field(5, relax)

    def asks_of(self, stage):
        """What a stage wants: anywhere, or on its host and nowhere else in its rack and cluster."""
        size = (stage.index + 1, stage.wanted, stage.mb, stage.vcores)
        if not stage.host:
            return [self.ask(*size)]
        return [self.ask(*size, stage.host), self.ask(*size, RACK, 0), self.ask(*size, "*", 0)]

    # --- what came ---

    def take(self):
        """Act on the responses that are due: all, or with a lag all but the last ones."""
        while len(self.held) > self.lag:
            granted, ended, heard, self.room = self.held.pop(0)
            starting = {}
            for value in granted:
                self.granted(value, heard, starting)
            for node, runs in starting.items():
                self.start(node, runs)
            for value in ended:
                self.completed(value, heard)

    def granted(self, value, heard, starting):
        container = first(value)
        identity, node = container[1], first(container[2])
        node = (node[1].decode(), node[2])
        number = first(container[5])[1]
        token = first(container[6])
        created = first(token[1]).get(9, heard)
        spark = self.kind == "spark"
        stage = None if spark else self.stages[number - 1]
        run = Run((identity, container_name(identity)), node, created, heard, stage, container[6], container[4])
        if spark:
            if self.executors_wanted == 0:
                self.release.append(identity)
                return
            self.executors_wanted -= 1
        else:
            if stage.wanted == 0 or not self.give(run):
                self.release.append(identity)
                return
            stage.wanted -= 1
            stage.scheduled = max(stage.scheduled - 1, 0)
            stage.running += 1
        self.runs[run.identity[1]] = run
        starting.setdefault(node, []).append(run)

    def give(self, run):
        """Give the container a task; False: none is left."""
        stage = run.stage
        if self.kind == "service":
            run.task = stage.next_task
            stage.next_task += 1
            return True
        if stage.redo and (stage.redo_asked or stage.next_task >= stage.tasks):
            run.task, run.attempt, run.fails, _ = stage.redo.pop(0)
            stage.redo_asked = max(stage.redo_asked - 1, 0)
            return True
        if stage.next_task < stage.tasks:
            run.task = stage.next_task
            stage.next_task += 1
            return True
        return False

    def start(self, node, runs):
        """Launch what was granted on one node, by one call."""
        request = b""
        for run in runs:
            sleep_s = HELD_S
            if self.kind not in ("spark", "service"):
                ms, run.will_fail = run.stage.work(run.task, run.attempt, run.fails)
                run.work_ms, run.held = ms, not run.stage.open and not run.will_fail
                if not run.stage.open and "mapreduce" not in self.job.words:
                    self.check_ms = min(self.check_ms, now_ms() + self.give_back_ms)
                # From when it says that it works; should that word get lost, it is waited for so long.
                run.hold_until_ms = now_ms() + ms + LOST_WORD_MS
                sleep_s = HELD_S if run.held else ms / 1000
            to = f">/dev/udp/{self.address}/{self.ears.getsockname()[1]}"
            word = f"echo $CONTAINER_ID {{}} \\$EPOCHREALTIME {to}"
            begun, ended = word.format("s"), word.format("e")
            if run.stage is not None and run.stage.program:
                command = f"{begun}; if {run.stage.program}; then {ended}; else {ended}; exit 1; fi"
            else:
                command = f"{begun}; sleep {sleep_s:.3f}; {ended}; exit {int(run.will_fail)}"
            request += field(1, field(1, field(5, command)) + field(2, run.token))
        try:
            if node not in self.nodes:
                self.nodes[node] = Connection(node[0], node[1], NM_PROTOCOL, self.node_tokens[node])
            self.nodes[node].token = self.node_tokens[node]
            answer = self.nodes[node].call("startContainers", request)
            refused = {container_name(first(value)[1]) for number, value in fields(answer) if number == 3}
        except (OSError, RpcError) as error:
            self.note("trouble", node[0], node[1], type(error).__name__, str(error).replace(" ", "_")[:200])
            refused = {run.identity[1] for run in runs}
        launched = now_ms()
        for run in runs:
            run.launched_ms = launched
            if run.identity[1] in refused:
                # The RM will tell that it is gone; the task is then run again.
                self.release.append(run.identity[0])
            elif self.kind == "spark":
                run.idle = self.slots
                self.fill()

    def completed(self, value, heard):
        status = first(value)
        name, code = container_name(status[1]), signed(status.get(4, -1000))
        run = self.runs.pop(name, None)
        if run is None:
            return
        if self.kind == "spark":
            for stage, task, attempt, fails, _ in run.inner.values():
                stage.redo.append((task, attempt + 1, fails, heard))
                stage.running -= 1
            run.inner.clear()
            run.idle = 0
            self.executors_owed += 1
            return
        stage = run.stage
        stage.running -= 1
        if self.kind == "service":
            stage.asked -= 1
            return
        if code == 0 or run.stopping:
            if not run.ended_ms:
                self.listen(GRACE_MS)
            self.note_task(run, heard, "finished")
            stage.done += 1
            return
        no_fault = code in NO_FAULT
        self.note_task(run, heard, "killed" if no_fault else "failed")
        fails = run.fails + (not no_fault)
        if not no_fault and stage.too_many(run.task, run.fails, self.max_attempts):
            self.failed = (
                f"task {run.task} of stage {stage.name} failed {fails} times, the last one with exit code {code}"
            )
            return
        stage.redo.append((run.task, run.attempt + 1, fails, heard))

    # --- stages ---

    def seal(self):
        again = True
        while again:
            again = False
            for stage in self.stages:
                if stage.open and not stage.sealed and stage.done >= stage.tasks:
                    stage.sealed = True
            for stage in self.stages:
                if not stage.open and all(self.stages[index].sealed for index in stage.after):
                    stage.open = again = True
                    stage.opened_ms = now_ms()

    def stop_held(self):
        """End tasks that waited for others, as soon as they may; when the next one may (None: none waits).

        A task's tail is worked from when the last of the others was known to have ended (the simulator: open_stage).
        """
        soonest = None
        for run in self.runs.values():
            if run.stage is None or not run.held or run.stopping or not run.stage.open:
                continue
            until = max(run.hold_until_ms, run.stage.opened_ms + int(run.stage.tail * run.work_ms))
            if until > now_ms():
                soonest = min(soonest or until, until)
                continue
            run.stopping, run.ended_ms = True, now_ms()
            try:
                self.nodes[run.node].call("stopContainers", field(1, run.identity[0]))
            except (OSError, RpcError):
                self.release.append(run.identity[0])
        return soonest

    def may_ask(self, stage):
        """How many of a stage's tasks may have been asked for; -1: none, nor former attempts again."""
        if stage.open:
            return stage.tasks
        before = [self.stages[index] for index in stage.after]
        total, known = sum(one.tasks for one in before), sum(one.done for one in before)
        waiting = [one for one in before if one.next_task < one.tasks or one.redo]
        if known < stage.slow_start * total or (known > 0 and any(one.running == 0 for one in waiting)):
            return -1
        return math.ceil(stage.tasks * (known / total)) if waiting else stage.tasks

    def asks(self):
        """What to ask for now, as totals by priority."""
        found = []
        if "mapreduce" in self.job.words:
            return self.decide()
        if self.kind == "spark":
            if self.executors_owed:
                self.executors_wanted += self.executors_owed
                self.executors_owed = 0
                found.append(self.ask(1, self.executors_wanted, *self.executor_size))
            return found
        for stage in self.stages:
            if self.kind == "service":
                allowed = stage.tasks
            elif stage.sealed or (stage.asked >= stage.tasks and len(stage.redo) <= stage.redo_asked):
                continue
            else:
                allowed = self.may_ask(stage)
            fresh = max(allowed - stage.asked, 0)
            more = fresh + len(stage.redo) - stage.redo_asked
            if allowed < 0 or more <= 0:
                continue
            stage.asked += fresh
            stage.redo_asked = len(stage.redo)
            stage.wanted += more
            stage.asked_ms = now_ms()
            found += self.asks_of(stage)
        return found

    # --- as MapReduce's master ---

    def decide(self):
        """RMContainerAllocator.heartbeat: every map is asked for at once, reduces as slow start and the job's room
        allow; reduces that hold containers are killed for starved maps. What to ask for, as totals."""
        words = self.job.words["mapreduce"]
        at_maps, at_reduces, preempt_ms, hanging_ms, map_limit, reduce_limit = (
            int(words[at]) for at in (0, 1, 4, 5, 6, 7)
        )
        now, maps = now_ms(), self.stages[at_maps]
        if maps.since_ms is None:
            maps.since_ms = now
        waiting = maps.waiting()
        asks = self.total(maps, waiting, map_limit)
        if at_reduces < 0:
            return asks
        reduces = self.stages[at_reduces]
        pending, held = reduces.waiting() - reduces.scheduled, reduces.running
        if pending + reduces.scheduled + held == 0:
            return asks
        room = (0, 0) if words[8] == "none" else self.room
        starved = waiting > 0 and maps.running == 0
        kill = mapreduce.to_preempt(
            waiting, maps.running,
            maps.waited(now, preempt_ms) if starved else 0,
            maps.waited(now, hanging_ms) if starved and hanging_ms >= 0 else 0,
            reduces.scheduled, held, maps.size(), reduces.size(), room, self.cpu, float(words[3]),
        )  # fmt: skip
        wanted = reduces.scheduled
        if kill != mapreduce.NONE:
            wanted = 0
        else:
            if pending > 0 and mapreduce.reached_slow_start(maps.tasks, maps.done, reduces.slow_start):
                reduces.started = True
            if reduces.started:
                wanted += mapreduce.schedule_reduces(
                    maps.tasks, maps.done, waiting, reduces.scheduled, maps.running, held, maps.size(), reduces.size(),
                    pending, room, self.cpu, float(words[2]),
                )  # fmt: skip
        asks += self.total(reduces, wanted, reduce_limit)
        reduces.scheduled = wanted
        self.preempt(reduces, kill)
        return asks

    def total(self, stage, count, limit):
        """Ask for so many tasks of a stage in all, as far as the job's limit of running ones allows
        (applyConcurrentTaskLimits: it does not concern jobs that have no more tasks)."""
        if 0 < limit < stage.tasks:
            count = min(count, max(0, limit - stage.running))
        if count == stage.wanted:
            return []
        stage.redo_asked = min(len(stage.redo), count)
        stage.asked = stage.next_task + count - stage.redo_asked
        stage.wanted, stage.asked_ms = count, now_ms()
        return self.asks_of(stage)

    def preempt(self, stage, count):
        """Kill reduces, those first that have not begun to work, then those that were assigned first. The RM will tell
        that they have gone; one that is chosen again until then is not replaced by another."""
        chosen = sorted((run for run in self.runs.values() if run.stage is stage), key=lambda run: run.started_ms > 0)
        for run in chosen[: max(count, 0)]:
            if not run.given_back and not run.stopping:
                run.given_back, run.held = True, False
                self.release.append(run.identity[0])

    # --- as a DAG's master ---

    def give_back(self):
        """One task that holds a container and waits for others goes, if these wait for containers and none of them
        runs: jobs whose reduces have taken everything would wait for ever. What to ask for, as totals."""
        if now_ms() < self.check_ms:
            return []
        self.check_ms = math.inf
        for stage in self.stages:
            if stage.open or stage.running == 0:
                continue
            self.check_ms = now_ms() + self.give_back_ms
            before = [self.stages[index] for index in stage.after]
            run = next((run for run in self.runs.values() if run.stage is stage and not run.given_back), None)
            if run is None or not any(one.wanted > 0 and one.running == 0 for one in before):
                continue
            found = []
            if stage.wanted > 0:
                stage.asked -= stage.wanted - stage.redo_asked
                stage.redo_asked = stage.wanted = 0
                found = self.asks_of(stage)
            # The RM will tell that it has gone; the task is then to be run again.
            run.given_back, run.held = True, False
            self.release.append(run.identity[0])
            return found
        return []

    # --- inside executors ---

    def fill(self):
        """Hand tasks to idle slots, stage by stage."""
        for run in self.runs.values():
            while run.idle > 0:
                ready = [s for s in self.stages if s.open and not s.sealed and (s.next_task < s.tasks or s.redo)]
                if not ready:
                    return
                stage = ready[0]
                if stage.redo:
                    task, attempt, fails, _ = stage.redo.pop(0)
                else:
                    task, attempt, fails = stage.next_task, 0, 0
                    stage.next_task += 1
                ms, _ = stage.work(task, attempt, fails)
                now = now_ms()
                self.timer_id += 1
                run.inner[self.timer_id] = (stage, task, attempt, fails, now)
                heapq.heappush(self.timers, (now + ms, self.timer_id, run.identity[1]))
                run.idle -= 1
                stage.running += 1

    def fire(self):
        """End the inner tasks whose time has come."""
        while self.timers and self.timers[0][0] <= now_ms():
            due, number, name = heapq.heappop(self.timers)
            run = self.runs.get(name)
            if run is None or number not in run.inner:
                continue
            stage, task, attempt, fails, start = run.inner.pop(number)
            run.idle += 1
            stage.running -= 1
            failing = stage.work(task, attempt, fails)[1]
            self.note(
                "task", stage.index, task, attempt, name, run.node[0] + ":" + str(run.node[1]), start, run.granted_ms,
                run.heard_ms, run.launched_ms, start, due, due, "failed" if failing else "finished",
            )  # fmt: skip
            if not failing:
                stage.done += 1
            elif stage.too_many(task, fails, self.max_attempts):
                self.failed = f"task {task} of stage {stage.name} failed {fails + 1} times"
            else:
                stage.redo.append((task, attempt + 1, fails + 1, due))
            self.seal()
        self.fill()

    # --- the loop ---

    def listen(self, wait_ms):
        """Hear tasks' words for at most that long."""
        end = time.monotonic() + wait_ms / 1000
        while True:
            left = end - time.monotonic()
            if not select.select([self.ears], [], [], max(left, 0))[0]:
                return
            for line in self.ears.recv(65536).decode(errors="replace").splitlines():
                name, _, rest = line.partition(" ")
                what, _, at = rest.partition(" ")
                run = self.runs.get(name)
                if run is not None and at:
                    ms = int(float(at.replace(",", ".")) * 1000)
                    if what == "s":
                        run.started_ms = ms
                        run.hold_until_ms = ms + run.work_ms
                    else:
                        run.ended_ms = ms
            if left <= 0:
                return

    def over(self, lifetime_ms):
        if self.failed:
            return True
        if self.kind == "service" or lifetime_ms is not None:
            return lifetime_ms is not None and now_ms() >= lifetime_ms
        return all(stage.sealed for stage in self.stages)

    def run(self):
        self.register()
        lifetime_ms = None
        if "lifetime_ms" in self.job.words:
            lifetime_ms = int(os.environ["APP_SUBMIT_TIME_ENV"]) + self.job.number("lifetime_ms")
        beat_ms = first_ms = now_ms()
        self.note("master", os.environ["CONTAINER_ID"], os.environ.get("APP_SUBMIT_TIME_ENV", "0"), first_ms)
        self.seal()
        while not self.over(lifetime_ms):
            if now_ms() >= beat_ms:
                # First hear what came, then ask: an ask is a total, and must not ask again for what has been granted.
                self.allocate()
                self.take()
                self.seal()
                if self.over(lifetime_ms):
                    break
                asks = self.give_back() + self.asks()
                if asks or self.release:
                    self.allocate(asks)
                    self.take()
                    self.seal()
                beat_ms += self.period_ms * max(1, -(-(now_ms() - beat_ms) // self.period_ms))
            soonest = self.stop_held()
            if self.kind == "spark":
                self.fire()
            due = [beat_ms, soonest or beat_ms, self.timers[0][0] if self.timers else beat_ms, lifetime_ms or beat_ms]
            if not self.over(lifetime_ms):
                self.listen(max(min(due) - now_ms(), 1))
        self.finish()

    def finish(self):
        self.note("end", now_ms(), "failed" if self.failed else "finished", self.failed.replace(" ", "_") or "-")
        self.unregister(FAILED if self.failed else SUCCEEDED, self.failed)

    def unregister(self, status, why):
        request = field(1, why) + field(2, "") + field(3, status)
        for _ in range(50):
            if first(self.rm.call("finishApplicationMaster", request)).get(1):
                return
            time.sleep(0.05)


def container_name(identity):
    """A ContainerIdProto as YARN writes it: container_TIMESTAMP_APP_ATTEMPT_NUMBER, with an epoch after restarts."""
    container = first(identity)
    attempt = first(container[2])
    app = first(attempt[1])
    number = container[3]
    epoch = f"e{number >> 40:02d}_" if number >> 40 else ""
    low = number & ((1 << 40) - 1)
    return f"container_{epoch}{app[2]}_{app[1]:04d}_{attempt[2]:02d}_{low:06d}"


def main():
    job = Job(sys.argv[1])
    master = Master(job)
    try:
        master.run()
    except Exception as error:
        # The words must reach the RM's diagnostics; a traceback in a container's log nobody reads.
        why = f"{type(error).__name__}: {error}"
        master.note("end", now_ms(), "failed", why.replace(" ", "_").replace("\n", "_"))
        print(why, file=sys.stderr)
        master.unregister(FAILED, why[:1000])
        return 1
    return 1 if master.failed else 0


if __name__ == "__main__":
    sys.exit(main())
