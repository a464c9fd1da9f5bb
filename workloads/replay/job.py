"""What one job consists of, as its file says it (harness/jobs/replay.py writes it), and the containers that it has."""


class Stage:
    """Tasks of one kind. ``wanted``: asked for and not granted; ``open``: all that it waits for has ended."""

    def __init__(self, index, name, mb, vcores, slow_start, after, tasks, tail):
        self.index, self.name, self.mb, self.vcores = index, name, mb, vcores
        self.slow_start, self.after, self.tasks = slow_start, after, tasks
        self.tail = tail  # the fraction of a task's work that it does only when all that it waits for has ended
        self.attempts = []  # task -> [(ms, fails), ...] by attempt
        self.repeats = {}  # task -> how many of its first attempts are recorded to have failed, where some are
        self.next_task = self.wanted = self.asked = self.done = self.running = 0
        self.redo = []  # (task, attempt, failures, since when), to be run again
        self.redo_asked = 0
        self.sealed, self.open = False, not after
        self.opened_ms = 0
        self.asked_ms = 0
        # Of a job whose master decides as MapReduce's: since when its first attempts wait; reduces that are asked for,
        # and whether slow start has been reached.
        self.since_ms, self.scheduled, self.started = None, 0, False
        self.program = self.host = ""  # what a task runs instead of sleeping; the only node where it may

    def waiting(self):
        """Tasks without a container, those among them that are to be run again."""
        return self.tasks - self.next_task + len(self.redo)

    def waited(self, now_ms, ms):
        """How many of these have waited for longer than that."""
        if ms <= 0:
            return self.waiting()
        fresh = self.tasks - self.next_task if now_ms - self.since_ms > ms else 0
        return fresh + sum(now_ms - since_ms > ms for *_, since_ms in self.redo)

    def size(self):
        return self.mb, self.vcores

    def work(self, task, attempt, fails):
        """(milliseconds, whether it then fails); attempts beyond the listed ones are like the last.

        A recorded attempt that failed is made again as it was until it has failed: ``fails`` attempts have so far.
        """
        listed, repeats = self.attempts[task], self.repeats.get(task, 0)
        return listed[fails if fails < repeats else min(max(attempt, repeats), len(listed) - 1)]

    def too_many(self, task, fails, most):
        """Whether the job fails because the task's attempts, of which so many have failed, now did once more."""
        return fails >= self.repeats.get(task, 0) and fails + 1 >= most


class Run:
    """One granted container."""

    def __init__(self, identity, node, granted_ms, heard_ms, stage, token, resource):
        self.identity, self.node, self.stage = identity, node, stage
        self.granted_ms, self.heard_ms = granted_ms, heard_ms
        self.token, self.resource = token, resource
        self.task, self.attempt, self.fails = -1, 0, 0
        self.will_fail = self.held = self.stopping = self.given_back = False
        self.work_ms = self.hold_until_ms = 0
        self.launched_ms = self.started_ms = self.ended_ms = 0
        self.idle = 0
        self.inner = {}  # executors: number of the inner task -> (stage, task, attempt, fails, start)


class Job:
    """What the job file says."""

    def __init__(self, path):
        self.words, self.stages = {}, []
        with open(path, encoding="utf-8") as stream:
            for line in stream:
                key, *rest = line.split()
                if key == "stage":
                    mb, vcores, tasks = int(rest[1]), int(rest[2]), int(rest[5])
                    after = [int(word) for word in rest[4].split(",") if word != "-"]
                    slow_start, tail = float(rest[3]), float(rest[6])
                    self.stages.append(Stage(len(self.stages), rest[0], mb, vcores, slow_start, after, tasks, tail))
                elif key == "tasks":
                    stage = self.stages[int(rest[0])]
                    for word in rest[1:]:
                        # f: it fails by the run's own faults; r: it is recorded to have failed, and was repeated.
                        listed = [(int(one.rstrip("fr")), one[-1] in "fr") for one in word.split(",")]
                        if "r" in word:
                            stage.repeats[len(stage.attempts)] = word.count("r")
                        stage.attempts.append(listed)
                elif key == "program":
                    self.stages[int(rest[0])].program = " ".join(rest[1:])
                elif key == "host":
                    self.stages[int(rest[0])].host = rest[1]
                else:
                    self.words[key] = rest
        if "end" not in self.words:
            raise ValueError(f"{path} is cut off")

    def number(self, key, default=0):
        return int(self.words[key][0]) if key in self.words else default
