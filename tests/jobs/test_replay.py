"""Replayed load without a cluster: job files, records, and the application master's own Hadoop RPC."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.experiments.resolve import load_experiment, variants_of
from harness.experiments.simulated import setup_of
from harness.jobs.replay import ReplayOptions, durations_ms, job_file, read_records
from harness.model.jobs import Duration, DynamicAllocation, JobSpec, Stage, TaskFaults
from harness.model.resources import Resource
from harness.sim import mapreduce as compiled

ROOT = Path(__file__).resolve().parents[2]
R = Resource(1024, 1)
TIMES = Duration("lognormal", mu=1.0, sigma=0.4)
JOB = JobSpec(
    "t-1",
    "root.a",
    "mapreduce",
    R,
    (Stage("map", 130, R, TIMES), Stage("reduce", 2, Resource(2048, 2), TIMES, ("map",), 0.5, priority=10, tail=0.25)),
)


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, ModuleType]]:
    """The application master's files, as modules."""
    found = {}
    for name in ("hadoop", "mapreduce", "job", "am"):
        spec = importlib.util.spec_from_file_location(name, ROOT / "workloads" / "replay" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[name] = module
    yield found
    for name in found:
        del sys.modules[name]


def test_the_master_reads_what_is_written_for_it(tmp_path: Path, programs: dict[str, ModuleType]) -> None:
    options = ReplayOptions("rm:8030", seed=7, am_heartbeat_ms=500, am_response_heartbeats=0)
    (tmp_path / "job").write_text(job_file(JOB, options, "/shared/t-1.records"))
    job = programs["am"].Job(tmp_path / "job")
    assert job.words["kind"] == ["mapreduce"]
    assert (job.number("heartbeat_ms"), job.number("lag_heartbeats")) == (500, 0)
    assert job.words["mapreduce"] == ["1", "0", "0.5", "0.5", "0", "300000", "0", "0", "scheduler"]
    # By priority, as the simulator numbers stages: reduces first.
    assert [(s.name, s.mb, s.vcores, s.slow_start, s.after, s.tasks, s.tail) for s in job.stages] == [
        ("reduce", 2048, 2, 0.5, [1], 2, 0.25),
        ("map", 1024, 1, 1.0, [], 130, 0.0),
    ]
    assert [[s.attempts for s in job.stages]] == [durations_ms(JOB, 7)]
    (tmp_path / "cut").write_text((tmp_path / "job").read_text()[:-5])
    with pytest.raises(ValueError, match="cut off"):
        programs["am"].Job(tmp_path / "cut")


def test_recorded_attempts_are_made_again_until_they_have_failed(
    tmp_path: Path, programs: dict[str, ModuleType]
) -> None:
    """One that was lost is made again as it was; failures that are recorded do not count for the most attempts."""
    duration = Duration("listed", values_s=(1.0, 2.0, 3.0, 4.0), attempts=(1, 3))
    retried = JobSpec("t-2", "root.a", "dag", R, (Stage("map", 2, R, duration),), lifetime_s=9.0)
    assert durations_ms(retried, 7) == [[[(1000, False)], [(2000, True), (3000, True), (4000, False)]]]
    options = ReplayOptions("rm:8030", seed=7, am_heartbeat_ms=500, am_response_heartbeats=0)
    (tmp_path / "job").write_text(job_file(retried, options, "/shared/t-2.records"))
    job = programs["am"].Job(tmp_path / "job")
    assert job.number("lifetime_ms") == 9000
    (stage,) = job.stages
    assert stage.work(0, 0, 0) == stage.work(0, 3, 0) == (1000, False)
    assert [stage.work(1, attempt, fails) for attempt, fails in ((0, 0), (1, 0), (2, 1), (3, 2), (4, 2))] == [
        (2000, True), (2000, True), (3000, True), (4000, False), (4000, False)
    ]  # fmt: skip
    assert [stage.too_many(1, fails, 2) for fails in (0, 1, 2)] == [False, False, True]
    assert stage.too_many(0, 1, 2)


def test_reduces_are_decided_as_the_simulator_decides_them(programs: dict[str, ModuleType]) -> None:
    """The plain functions against the compiled ones, which an oracle holds against Hadoop's class."""
    ours, draw = programs["mapreduce"], random.Random(5)
    changed, killed = Counter[int](), Counter[int]()
    for _ in range(4000):
        sizes = [(draw.choice((512, 1024, 2048, 3072)), draw.choice((1, 2, 4))) for _ in range(2)]
        room = (draw.randint(-9000, 60000), draw.randint(-9, 60))
        maps = draw.randint(0, 400)
        done, waiting = draw.randint(0, maps), draw.choice((0, draw.randint(1, 90)))
        held_maps = draw.choice((0, draw.randint(1, 50)))
        scheduled, held, pending = (draw.choice((0, draw.randint(1, 40))) for _ in range(3))
        cpu, part = draw.random() < 0.5, draw.choice((0.5, 0.05, 1.0, draw.random()))
        assert ours.reached_slow_start(maps, done, part) == compiled.reached_slow_start(maps, done, part)
        numbers = (maps, done, waiting, scheduled, held_maps, held)
        found = ours.schedule_reduces(*numbers, *sizes, pending, room, cpu, part)
        assert found == compiled.schedule_reduces(*numbers, *sizes[0], *sizes[1], pending, *room, cpu, part)
        changed[(found > 0) - (found < 0)] += 1
        waited = (draw.choice((0, waiting)), draw.choice((0, 0, waiting)))
        numbers = (waiting, held_maps, *waited, scheduled, held)
        found = ours.to_preempt(*numbers, *sizes, room, cpu, part)
        assert found == compiled.to_preempt(*numbers, *sizes[0], *sizes[1], *room, cpu, part)
        killed[min(found, 1)] += 1
    assert min(changed.values()) > 300
    assert min(killed[-1], killed[1]) > 100


def _master(am: Any, folder: Path, job: JobSpec, **more: Any) -> Any:
    """A master as if it were registered, of a scheduler that counts memory alone."""
    (folder / "job").write_text(job_file(job, ReplayOptions("rm:8030", 7, **more), "/s/records"))
    master = am.Master.__new__(am.Master)
    master.job = am.Job(folder / "job")
    master.kind, master.stages, master.runs, master.release = job.kind, master.job.stages, {}, []
    master.give_back_ms, master.cpu, master.room = 3000, False, (0, 0)
    return master


def _totals(am: Any, asks: list[bytes]) -> dict[int, int]:
    """What is asked for, by priority."""
    return {am.first(am.first(ask)[1])[1]: am.first(ask)[4] for ask in asks}


def test_reduces_share_a_jobs_room_with_its_maps(tmp_path: Path, programs: dict[str, ModuleType]) -> None:
    """Maps of 1 GiB (priority 2), five reduces of 2 GiB (priority 1), slow start at half of the maps."""
    am, reduce_of = programs["am"], replace(JOB.stages[1], tasks=5)
    master = _master(am, tmp_path, replace(JOB, stages=(JOB.stages[0], reduce_of)))
    maps = master.stages[1]
    assert _totals(am, master.asks()) == {2: 130}
    maps.next_task, maps.done, maps.running, maps.wanted = 74, 64, 10, 56
    master.room = (6144, 0)
    assert master.asks() == [], "64 of 130 maps are not yet half"
    # Half of 10 x 1 GiB held and 6 GiB of room is 8 GiB: four reduces.
    maps.done, maps.next_task, maps.wanted = 65, 75, 55
    assert _totals(am, master.asks()) == {1: 4}
    assert master.asks() == []
    # Without the room it is 5 GiB, 3 less than that: one is asked for no longer.
    master.room = (0, 0)
    assert _totals(am, master.asks()) == {1: 3}
    # Every map has a container: all.
    maps.next_task, maps.wanted, maps.running = 130, 0, 65
    assert _totals(am, master.asks()) == {1: 5}


def test_reduces_are_killed_for_maps_that_are_starved(tmp_path: Path, programs: dict[str, ModuleType]) -> None:
    am = programs["am"]
    master = _master(am, tmp_path, JOB)
    reduces, maps = master.stages
    for number, started_ms in ((1, 5), (2, 0)):
        run = am.Run((bytes([number]), f"c{number}"), ("n", 1), 0, 0, reduces, b"", b"")
        run.held, run.started_ms = True, started_ms
        master.runs[f"c{number}"] = run
    maps.done, maps.next_task, maps.wanted, maps.running, maps.since_ms = 70, 70, 60, 1, 0
    reduces.running, reduces.next_task, reduces.started = 2, 2, True
    assert (master.asks(), master.release) == ([], []), "a map runs"
    maps.running, master.room = 0, (1024, 0)
    maps.since_ms = am.now_ms()
    assert (master.asks(), master.release) == ([], []), "there is room for a map"
    master.room = (0, 0)
    assert (master.asks(), master.release) == ([], [b"\2"]), "the one that has not begun, for the limit of half"
    assert (master.asks(), master.release) == ([], [b"\2"]), "it is chosen again, and not replaced"


def test_an_early_reduce_works_its_tail_after_the_last_map(tmp_path: Path, programs: dict[str, ModuleType]) -> None:
    """Of 20 s a quarter comes after the last map: a reduce that has long worked is ended 5 s after it, not at once."""
    am = programs["am"]
    master = _master(am, tmp_path, JOB)
    reduce, maps = master.stages
    run = am.Run((b"\1", "c1"), ("n", 1), 0, 0, reduce, b"", b"")
    master.runs, run.held, run.work_ms, run.hold_until_ms = {"c1": run}, True, 20_000, am.now_ms() - 60_000
    assert master.stop_held() is None, "it waits for maps"
    maps.done = maps.tasks
    before = am.now_ms()
    master.seal()
    assert before + 5000 <= master.stop_held() <= am.now_ms() + 5000
    assert not run.stopping
    reduce.opened_ms -= 5000
    master.nodes = {}
    with pytest.raises(KeyError):  # of its node, which is told to stop it
        master.stop_held()
    assert run.stopping


def test_a_task_of_a_dag_goes_that_keeps_others_from_running(tmp_path: Path, programs: dict[str, ModuleType]) -> None:
    """As in the simulator: not while one of these runs, not before its time, one at a time, and what was asked for."""
    am = programs["am"]
    master = _master(am, tmp_path, replace(JOB, kind="dag"))
    reduce, maps = master.stages
    run = am.Run((b"\1", "c1"), ("n", 1), 0, 0, reduce, b"", b"")
    master.runs = {"c1": run}
    maps.done, maps.next_task, maps.wanted, maps.running = 70, 70, 60, 0
    run.held, reduce.running, reduce.asked, reduce.wanted = True, 1, 2, 1
    master.check_ms = am.now_ms() + 100_000
    assert (master.give_back(), master.release) == ([], []), "not yet"
    master.check_ms, maps.running = 0, 1
    assert (master.give_back(), master.release) == ([], []), "a map runs"
    assert am.now_ms() < master.check_ms < am.now_ms() + 3001
    master.check_ms, maps.running = 0, 0
    (ask,) = master.give_back()
    assert am.first(ask)[4] == 0, "none is asked for any more"
    assert (master.release, reduce.wanted, reduce.asked) == ([b"\1"], 0, 1)
    assert not run.held
    master.check_ms = 0
    assert (master.give_back(), master.release) == ([], [b"\1"]), "it goes once"
    assert master.may_ask(reduce) == -1
    maps.running = 1
    assert master.may_ask(reduce) == 2, "it comes back when maps run"


def test_tasks_sleep_for_as_long_as_they_work_in_the_simulator(tmp_path: Path) -> None:
    from harness.control.virtual import simulate_policy

    (tmp_path / "x.yaml").write_text("""
experiment: x
cluster: {nodes: [{count: 2, memory_mb: 8192, vcores: 8}]}
max_am_share: -1.0
queues: {a: {}}
workloads:
  a: {inline: {kind: sequence, submission: {every_s: 5}, am: {memory_mb: 1024}, slow_start: 1.0,
      task: {demand: {memory_mb: 1024}, duration: {lognormal: {mean_s: 9, sigma: 0.7}}},
      jobs: [{name: j, maps: 12, reduces: 3}]}}
policies: [fair]
seed: 11
faults: {failure: 0.2, straggler: 0.1}
""")
    loaded = load_experiment(str(tmp_path / "x.yaml"))
    from harness.experiments.resolve import jobs_of

    jobs, _ = jobs_of(loaded, 11)
    listed = list(jobs)
    setup = replace(setup_of(loaded, variants_of(loaded)[0], listed), record_tasks=True)
    tasks = simulate_policy(setup).tasks
    assert tasks is not None
    drawn = durations_ms(listed[0], 11, TaskFaults(**loaded.spec.faults.model_dump()))
    seen = 0
    for stage, task, attempt, start, end, outcome in zip(
        *(tasks[name] for name in ("stage", "task", "attempt", "start_ms", "end_ms", "outcome")), strict=True
    ):
        ms, fails = drawn[stage][task][min(attempt, 3)]
        assert end - start == ms
        assert (outcome == 1) == fails
        seen += 1
    assert seen >= 15
    assert any(fails for tasks_ in drawn for attempts in tasks_ for _, fails in attempts)


def test_what_cannot_be_replayed_is_said() -> None:
    with pytest.raises(InputError, match="speculative"):
        job_file(JOB, ReplayOptions("rm:1", 1, faults=TaskFaults(speculation=True)), "/r")
    with pytest.raises(InputError, match="white space"):
        job_file(JOB, ReplayOptions("rm:1", 1), "/a folder/r")


TASK = "task 1 0 0 container_1_0001_01_000002 h:1 10 20 30 40 50 60 70 finished"


def test_records_as_far_as_they_were_written() -> None:
    text = (
        f"master container_1_0001_01_000001 5 9\n{TASK}\ntrouble h 1 OSError timed_out\nend 99 failed it_broke\ntask 1 "
    )
    record = read_records(text, "r")
    assert (record.submitted_ms, record.first_heartbeat_ms, record.ended_ms) == (5, 9, 99)
    assert (record.outcome, record.why, record.troubles) == ("failed", "it broke", ("h 1 OSError timed_out",))
    (task,) = record.tasks
    assert (task.stage, task.task, task.asked_ms, task.started_ms, task.told_ms) == (1, 0, 10, 50, 70)
    assert read_records("", "r").outcome == ""


@pytest.mark.parametrize("line", ["nonsense", "task 1 2", TASK.replace("50", "x"), TASK.replace("finished", "lost")])
def test_damaged_records_are_found_with_their_line(line: str) -> None:
    with pytest.raises(InputError, match=r"r:2: .*not a record"):
        read_records(f"{TASK}\n{line}\n", "r")


# --- the master's own RPC ---


def test_digest_md5_answers_the_example_of_rfc_2831(programs: dict[str, ModuleType]) -> None:
    challenge = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
    answer = programs["hadoop"].digest_response(
        challenge, "chris", "secret", "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk"
    )
    assert b"response=d388dad90d4bbd760a152321f2143af7" in answer
    with pytest.raises(ValueError, match=r"hadoop\.rpc\.protection"):
        programs["hadoop"].digest_response(b'nonce="x",qop="auth-conf"', "u", "p", "/default", "c")


def test_tokens_of_both_formats(programs: dict[str, ModuleType]) -> None:
    hadoop = programs["hadoop"]
    identifier = b"i" * 200  # longer than a byte can say

    def vint(number: int) -> bytes:
        return bytes([number]) if number < 128 else bytes([256 - 113, number])

    parts = [b"", identifier, b"pass", b"YARN_AM_RM_TOKEN", b"1.2.3.4:8030"]
    written = b"HDTS\0" + vint(1) + b"".join(vint(len(part)) + part for part in parts) + vint(0)
    message = b"".join(hadoop.field(at, part) for at, part in enumerate(parts[1:], start=1))
    pair = hadoop.field(1, b"alias") + hadoop.field(2, message)
    inner = hadoop.field(1, pair)
    for data in (written, b"HDTS\1" + hadoop.varint(len(inner)) + inner):
        (token,) = hadoop.read_tokens(data)
        assert (token.identifier, token.password) == (identifier, b"pass")
        assert (token.kind, token.service) == ("YARN_AM_RM_TOKEN", "1.2.3.4:8030")
    with pytest.raises(ValueError, match="no credentials"):
        hadoop.read_tokens(b"what is this")


@pytest.mark.parametrize(
    ("number", "name"), [(2, "container_17_0003_01_000002"), (3 << 40 | 7, "container_e03_17_0003_01_000007")]
)
def test_containers_are_named_as_yarn_names_them(programs: dict[str, ModuleType], number: int, name: str) -> None:
    field = programs["hadoop"].field
    app = field(1, 3) + field(2, 17)
    identity = field(2, field(1, app) + field(2, 1)) + field(3, number)
    assert programs["am"].container_name(identity) == name


def test_numbers_of_protobuf_go_there_and_back(programs: dict[str, ModuleType]) -> None:
    hadoop = programs["hadoop"]
    for number in (0, 1, 127, 128, 2**31, 2**62, -1, -1000):
        value = hadoop.first(hadoop.field(5, number))[5]
        assert hadoop.signed(value) == number
    with pytest.raises((ValueError, IndexError)):
        dict(hadoop.fields(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))


def test_what_a_replayed_spark_master_cannot_do_is_refused() -> None:
    """Its executors are held to the end, and its driver makes no pauses: the figures would be another application's."""
    spark = JobSpec("s", "root.a", "spark", R, (Stage("x", 4, R, TIMES),), executors=2, executor_demand=R)
    job_file(spark, ReplayOptions("rm:8030", 7), "/s/records")
    paused = replace(spark, stages=(replace(spark.stages[0], delay_s=3.0),))
    for job in (replace(spark, dynamic=DynamicAllocation()), paused):
        with pytest.raises(InputError, match="not replayed"):
            job_file(job, ReplayOptions("rm:8030", 7), "/s/records")
