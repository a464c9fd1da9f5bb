"""What Tez' master wrote of a query, in a run's terms: its vertices as stages, its task attempts as records. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from harness.jobs.engines.attempts import Attempt
from harness.jobs.replay import JobRecord
from harness.model.jobs import Duration, JobSpec, Stage


def _place(attempt: Attempt) -> tuple[str, int]:
    """(vertex with its DAG, number of the task) of ``task_<cluster>_<application>_<dag>_<vertex>_<number>``."""
    *_, dag, vertex, number = attempt.task.split("_")
    return f"{dag}_{vertex}", int(number)


def _vertices(attempts: Sequence[Attempt]) -> list[str]:
    """In the order in which they began."""
    first: dict[str, int] = {}
    for one in attempts:
        vertex, _ = _place(one)
        first[vertex] = min(one.started_ms, first.get(vertex, one.started_ms))
    return sorted(first, key=lambda vertex: (first[vertex], vertex))


def record_of(attempts: Sequence[Attempt], started_ms: int = 0) -> JobRecord:
    """The attempts as a run's tables have them. ``started_ms``: when the DAG was started, 0: not known.

    Tez says when an attempt was started in its container; what came before is not told apart. One that never ended was
    killed with its job, at the history's last moment.
    """
    order = {vertex: at for at, vertex in enumerate(_vertices(attempts))}
    # Of a query that was cut some tasks may not have begun: numbered are those that did, as in `stages_of`.
    places = sorted({_place(one) for one in attempts})
    numbers = {place: at - bisect_left(places, (place[0], 0)) for at, place in enumerate(places)}
    last_ms = max((max(one.started_ms, one.ended_ms) for one in attempts), default=0)
    tasks = []
    for one in attempts:
        place = _place(one)
        tasks.append(one.record(order[place[0]], numbers[place], last_ms))
    return JobRecord(first_heartbeat_ms=started_ms, ended_ms=last_ms, tasks=tuple(tasks))


def stages_of(attempts: Sequence[Attempt], spec: JobSpec) -> tuple[Stage, ...]:
    """The vertices as stages: each after those that had ended when it began, which is all that the history tells."""
    tasks: dict[str, dict[int, Attempt]] = defaultdict(dict)
    for one in attempts:
        vertex, number = _place(one)
        if one.outcome == "finished" or number not in tasks[vertex]:
            tasks[vertex][number] = one
    stages: list[Stage] = []
    ends: dict[str, int] = {}
    for vertex in _vertices(attempts):
        own = [tasks[vertex][number] for number in sorted(tasks[vertex])]
        began = min(one.started_ms for one in own)
        # What never ended was cut with its job: a moment.
        times = tuple(max(one.ended_ms - one.started_ms, 1) / 1000.0 for one in own)
        name = f"{own[0].kind} {vertex}"
        after = tuple(other for other, end in ends.items() if end <= began)
        stages.append(Stage(name, len(times), spec.stages[0].demand, Duration("listed", values_s=times), after))
        ends[name] = max(max(one.started_ms, one.ended_ms) for one in own)
    return tuple(stages)
