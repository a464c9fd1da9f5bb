"""The simulator of several resources on servers: rules, invariants, Google's trace, the synthetic load, the command."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from harness.base.errors import InputError
from harness.cli import main
from harness.systems.qknober.experiment import load_trace
from harness.systems.qknober.google import TOTALS, Part, Shape, synthetic
from harness.systems.qknober.simulator import RULES, VectorLoad, simulate


def load(
    servers: list[list[float]], tasks: list[tuple[int, int, int, list[float]]], weights: list[float] | None = None
) -> VectorLoad:
    """Tasks: (user, submission s, duration s, demand)."""
    users = max(task[0] for task in tasks) + 1
    return VectorLoad(
        servers=np.array(servers, float),
        weights=np.array(weights or [1.0] * users),
        user=np.array([t[0] for t in tasks], np.int64),
        submit_ms=np.array([t[1] * 1000 for t in tasks], np.int64),
        duration_ms=np.array([t[2] * 1000 for t in tasks], np.int64),
        demand=np.array([t[3] for t in tasks], float),
    )


@pytest.mark.parametrize("rule", RULES)
def test_one_task_after_another(rule: str) -> None:
    run = simulate(load([[1, 1]], [(0, 0, 10, [1, 1]), (0, 0, 20, [1, 1]), (0, 5, 5, [1, 1])]), rule)
    assert run.makespan_s == 35
    assert run.utilisation == [pytest.approx(1), pytest.approx(1)]
    # 10, 30 and 35 - 5 seconds after their submissions.
    assert run.mean_completion_s == pytest.approx((10 + 30 + 30) / 3)


def test_static_keeps_its_part_and_sharing_does_not() -> None:
    world = load([[4, 4]], [(0, 0, 10, [1, 1]) for _ in range(8)] + [(1, 0, 10, [1, 1])])
    assert simulate(world, "static").makespan_s == 40
    assert simulate(world, "drf").makespan_s == 30


def test_drf_serves_the_lowest_share_over_weight() -> None:
    """One server of 6: after the first six end, users of weights 1 and 2 hold 2 and 4."""
    tasks = [(0, 0, 10, [1.0]) for _ in range(6)]
    tasks += [(0, 1, 10, [1.0]) for _ in range(6)] + [(1, 1, 10, [1.0]) for _ in range(6)]
    equal, weighted = (simulate(load([[6.0]], tasks, w), "drf") for w in ([1.0, 1.0], [1.0, 2.0]))
    assert equal.makespan_s == weighted.makespan_s == 30
    # Of 18 tasks six end at 10, six at 20, six at 30, whoever they are.
    assert equal.mean_completion_s == weighted.mean_completion_s
    assert equal.soft_fairness != weighted.soft_fairness


def test_what_comes_at_one_instant_is_given_out_by_the_rule() -> None:
    """One server of 6, two users whose six tasks all come at once: three each, and not six to the first."""
    tasks = [(user, 0, 10, [1.0]) for user in (0, 1) for _ in range(6)]
    for rule, knob in (("drf", 0.0), ("tetris", 1.0), ("qknober", 1.0), ("static", 0.0)):
        run = simulate(load([[6.0]], tasks), rule, knob)
        assert [int((run.wait_ms[user * 6 : user * 6 + 6] == 0).sum()) for user in (0, 1)] == [3, 3], rule
        assert run.soft_fairness == 0, rule
        assert run.makespan_s == 20
    weighted = simulate(load([[6.0]], tasks, [1.0, 2.0]), "drf")
    assert [int((weighted.wait_ms[user * 6 : user * 6 + 6] == 0).sum()) for user in (0, 1)] == [2, 4]


def test_the_knob_counts_among_those_that_come_at_one_instant() -> None:
    """Without fairness the greatest affinity decides: here the second user's larger tasks."""
    tasks = [(0, 0, 10, [1.0]) for _ in range(6)] + [(1, 0, 10, [2.0]) for _ in range(3)]
    for rule in ("tetris", "qknober"):
        free, fair = (simulate(load([[6.0]], tasks), rule, knob) for knob in (0.0, 1.0))
        assert (free.wait_ms[:6] > 0).all()
        assert (free.wait_ms[6:] == 0).all()
        assert (fair.wait_ms[:6] == 0).any()
        assert (fair.wait_ms[6:] == 0).any()


def test_who_fits_nowhere_does_not_hold_up_who_came_with_it() -> None:
    """Two servers; the first user's tasks fit on the larger one only, the second user's on both."""
    tasks = [(0, 0, 10, [4.0]) for _ in range(2)] + [(1, 0, 10, [1.0]) for _ in range(3)]
    for rule in ("drf", "tetris", "qknober"):
        run = simulate(load([[4.0], [2.0]], tasks), rule, 1.0)
        assert (run.wait_ms[2:4] == 0).all(), rule
        assert (run.wait_ms == 0).sum() == 3, rule


def test_what_rounding_leaves_behind_keeps_nobody_out() -> None:
    """Tasks larger than a user's part run alone, also when the sum of what ended before is not quite 0."""
    tasks = [(0, 0, 1, [0.1]), (0, 0, 2, [0.2]), (0, 0, 3, [0.15]), (0, 0, 50, [0.8]), (1, 0, 1, [0.1])]
    assert simulate(load([[1.0]], tasks), "static").makespan_s == 53


def test_a_task_that_a_window_hid_runs_in_the_end() -> None:
    """Nine tasks wait; the ninth fits only on a server that is idle by then, and no end there asks for it again."""
    tasks = [(0, 0, 5, [1.0, 2.0])] + [(0, 0, 10, [2.0, 1.0]) for _ in range(9)] + [(0, 0, 10, [1.0, 2.0])]
    run = simulate(load([[2.0, 1.0], [1.0, 2.0]], tasks), "drf")
    assert run.makespan_s == 100


def test_tasks_that_fit_nowhere_are_said() -> None:
    with pytest.raises(InputError, match="1 tasks never ran under drf"):
        simulate(load([[2.0], [2.0]], [(0, 0, 1, [1.0]), (0, 0, 1, [3.0])]), "drf")


def test_affinity_packs_what_first_in_first_out_does_not() -> None:
    """A server of <2, 4>: by the dot product the memory-heavy task goes first; DRF takes the oldest."""
    tasks = [(0, 0, 5, [2.0, 4.0]), (0, 1, 10, [1.9, 1.0]), (0, 1, 10, [1.0, 3.0]), (0, 1, 10, [1.0, 1.0])]
    # At second 5 the affinities, as fractions of the capacity, are 1.2, 1.25 and 0.75.
    packed, plain = (simulate(load([[2.0, 4.0]], tasks), rule) for rule in ("tetris", "drf"))
    assert packed.makespan_s == plain.makespan_s == 25
    assert packed.mean_completion_s == pytest.approx((5 + 14 + 14 + 24) / 4)
    assert plain.mean_completion_s == pytest.approx((5 + 14 + 24 + 24) / 4)


def test_tetris_weighs_affinity_against_the_work_left_of_a_job() -> None:
    """At second 5 a server of 1 is free. Affinities 0.6 and 0.5; left of the jobs 10 * 0.6 * 10 = 60 and 5. Shown are 8
    tasks and 1: epsilon = m (8 * 0.6 + 0.5) / (8 * 60 + 5), the small job comes first from m = 0.1664 on."""
    tasks = [(0, 0, 5, [1.0]), *[(1, 1, 10, [0.6]) for _ in range(10)], (2, 1, 10, [0.5])]
    small, large = [], []
    for m in (0.0, 0.1663, 0.1665, 1.0):
        run = simulate(load([[1.0]], tasks), "tetris", 0.0, remaining=m)
        small.append(run.wait_ms[-1] == 4000)
        large.append(run.wait_ms[1] == 4000)
    assert small == [False, False, True, True]
    assert large == [True, True, False, False]


def test_a_job_is_what_its_user_submits_at_once_unless_it_is_said() -> None:
    world = load([[1.0]], [(0, 0, 1, [1.0]), (0, 0, 1, [1.0]), (0, 3, 1, [1.0]), (1, 3, 1, [1.0])])
    assert world.jobs().tolist() == [0, 0, 1, 2]
    assert replace(world, job=np.array([0, 1, 1, 2])).jobs().tolist() == [0, 1, 1, 2]


def test_remaining_work_by_its_own_rule_on_random_loads() -> None:
    """One server, one resource, tasks of the whole server: each decision is the greatest score, computed here apart."""
    draws = random.Random("remaining")
    for _ in range(60):
        m = draws.choice([0.3, 1.0, 3.0])
        jobs = [(u, draws.randint(1, 5), draws.randint(1, 9), draws.choice([0.6, 0.75, 1.0])) for u in (0, 1, 2)]
        tasks = [(3, 0, 5, [1.0]), *[(u, 1, long, [need]) for u, count, long, need in jobs for _ in range(count)]]
        run = simulate(load([[1.0]], tasks), "tetris", 0.0, remaining=m)
        begun = sorted((run.wait_ms[i] // 1000 + 1, tasks[i][0]) for i in range(1, len(tasks)))
        left = {u: count for u, count, *_ in jobs}
        for _, user in begun:
            shown = [(u, need, left[u], left[u] * long * need) for u, count, long, need in jobs if left[u]]
            epsilon = m * sum(n * need for _, need, n, _ in shown) / sum(n * work for _, _, n, work in shown)
            scores = {u: need - epsilon * work for u, need, _, work in shown}
            assert scores[user] >= max(scores.values()) - 1e-9
            left[user] -= 1


@pytest.mark.parametrize("rule", RULES)
def test_every_task_runs_once_and_no_server_is_overfull(rule: str) -> None:
    world = synthetic(users=8, machines=20, hours=1.0, load=1.5, seed=3)
    run = simulate(world, rule, 0.3)
    work = (world.demand * world.duration_ms[:, None]).sum(axis=0) / 1000 / world.servers.sum(axis=0)
    # All the work was done, no more and no less, and never more at once than there is.
    assert np.allclose(np.array(run.utilisation) * run.makespan_s, work)
    assert max(run.utilisation + run.busy) <= 1 + 1e-9
    again = simulate(world, rule, 0.3)
    assert all(np.array_equal(getattr(run, f.name), getattr(again, f.name)) for f in fields(run))
    assert len(run.samples) == 0, "nothing was asked for"


def test_samples_say_what_the_means_say() -> None:
    world = synthetic(users=6, machines=10, hours=1.0, load=1.5, seed=3)
    run = simulate(world, "qknober", 0.3, sample_s=5.0)
    plain = simulate(world, "qknober", 0.3)
    assert (run.makespan_s, run.soft_fairness) == (plain.makespan_s, plain.soft_fairness), "looking changes nothing"
    assert run.samples.shape == (len(run.sample_s), 3 + 3)
    assert run.shares.shape == (len(run.sample_s), 6)
    assert run.sample_s[-1] < run.makespan_s <= run.sample_s[-1] + 5.0
    assert run.samples[:, :3].mean(axis=0) == pytest.approx(run.utilisation, abs=0.01)
    assert run.samples[0, 5] == 0
    assert run.samples[:, 5].max() > 0, "somebody waits"
    assert (run.shares.sum(axis=1) >= run.samples[:, :3].max(axis=1) - 1e-9).all()


def test_the_knob_trades_fairness() -> None:
    world = synthetic(users=20, machines=40, hours=4.0, load=1.6, seed=1)
    free, fair = simulate(world, "qknober", 0.0), simulate(world, "qknober", 1.0)
    assert fair.soft_fairness < free.soft_fairness
    assert fair.estimated_soft_fairness < free.estimated_soft_fairness


def test_the_synthetic_load_has_the_papers_machines() -> None:
    world = synthetic(users=10, hours=2.0)
    assert world.servers.shape == (1000, 3)
    assert world.servers.sum(axis=0) == pytest.approx(TOTALS)
    asked = (world.demand * world.duration_ms[:, None]).sum(axis=0) / (world.servers.sum(axis=0) * 7_200_000)
    assert asked.max() == pytest.approx(1.2, rel=0.01)
    # Every task fits on some server, and the seed decides everything.
    assert all((world.servers >= need).all(axis=1).any() for need in np.unique(world.demand, axis=0)[:200])
    assert np.array_equal(world.demand, synthetic(users=10, hours=2.0).demand)


def dominant(world: VectorLoad) -> np.ndarray:
    """The resource of which each task asks the most, of the cluster's."""
    found: np.ndarray = (world.demand / world.servers.sum(axis=0)).argmax(axis=1)
    return found


def most_of_one(world: VectorLoad) -> float:
    """The part of each user's tasks whose dominant resource is the user's usual one; mean over users."""
    own = [np.bincount(dominant(world)[world.user == user], minlength=3) for user in range(len(world.weights))]
    return float(np.mean([counts.max() / counts.sum() for counts in own]))


def test_demands_within_a_user_are_diverse_unless_the_user_draws_them() -> None:
    """QKnober C2. A heavy resource that the user draws is heavy in nearly all its tasks."""
    by_job, by_user, heavy = (
        synthetic(users=30, machines=50, hours=6.0, shape=shape)
        for shape in (Shape(), Shape(drawn="user"), Shape(drawn="user", heavy=(3.0, 4.0)))
    )
    assert most_of_one(by_job) < 0.65
    assert most_of_one(by_job) + 0.1 < most_of_one(by_user) < most_of_one(heavy)
    assert most_of_one(heavy) > 0.9


def test_the_shape_of_a_load_is_what_is_asked_for() -> None:
    small = Shape(
        size=(0.01, 0.01), spread=0.0, spread_s=0.0, mean_s=(100, 100), median_tasks=90, tasks_sigma=0.0, most_tasks=5
    )
    world = synthetic(users=4, machines=20, hours=2.0, shape=small)
    assert np.allclose(world.demand, 0.01)
    assert len(np.unique(world.duration_ms)) == 1, "scaled alike"
    together = np.unique(np.stack([world.user, world.submit_ms]), axis=1, return_counts=True)[1]
    assert (together % 5 == 0).all(), "jobs of five, some of them at one instant"


def test_the_load_grows_with_the_users_from_a_number_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """QKnober 7.3.2: contention becomes more serious with more users. Twice the users bring twice the work."""
    code, said = run_file(
        tmp_path, capsys, users=[4, 8], machines=10, hours=6, load=0.4, load_at_users=4, uneven=0, policies=["drf"]
    )
    assert code == 0, said
    work = {}
    for path in (tmp_path / "runs").rglob("summary.json"):
        found = json.loads(path.read_text())
        work[found["users"]] = max(found["utilisation"].values()) * found["makespan_s"] / (6 * 3600)
    assert work == {4: pytest.approx(0.4, rel=0.01), 8: pytest.approx(0.8, rel=0.01)}


def test_runs_of_one_seed_are_compared_with_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = ["static", "drf", {"policy": "qknober", "vary": {"rho": [0, 1]}}]
    code, said = run_file(
        tmp_path, capsys, users=6, machines=6, hours=2, load=1.5, policies=policies, seed=[1, 2], sample_s=20
    )
    assert code == 0, said
    found = {}
    for path in (tmp_path / "runs").rglob("run.json"):
        info = json.loads(path.read_text())
        found[info["variant"].partition(",seed")[0], info["seed"]] = json.loads(
            (path.parent / "summary.json").read_text()
        )
    for (_, seed), own in found.items():
        for key, other in (("static", "static"), ("drf", "drf"), ("knob_1", "qknober,rho=1")):
            expected = found[other, seed]["makespan_s"] / own["makespan_s"]
            assert own[f"speedup_over_{key}"] == pytest.approx(expected, abs=1e-5)
        assert own["soft_fairness_p95"] >= 0
    assert any(found["qknober,rho=0", seed]["speedup_over_knob_1"] != 1 for seed in (1, 2))


def test_what_is_of_a_synthetic_load_is_refused_of_a_trace(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for key, value in (("tasks", {"drawn": "user"}), ("load_at_users", 3)):
        code, said = run_file(trace, capsys, trace=".", **{key: value})
        assert code == 1, said
        assert f"{key} is of a synthetic load" in said


def test_a_range_that_falls_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run_file(tmp_path, capsys, tasks={"size": [0.2, 0.1]})
    assert code == 1
    assert "size: the least is above the most" in said


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    for table in ("machine_events", "task_events", "task_usage"):
        (tmp_path / table).mkdir()
    (tmp_path / "machine_events" / "part-0.csv").write_text("0,1,0,plat,0.5,0.25\n0,2,0,plat,1,1\n9,2,1,plat,,\n")
    events = [
        "0,,7,0,,0,alice,2,9,0.25,0.1,0.01,0",
        "0,,7,1,,0,alice,2,9,0.5,0.2,0.01,0",
        "5,,7,1,1,1,alice,2,9,0.5,0.2,0.01,0",
        "6,,8,0,,0,bob,2,9,2,0.2,0.01,0",
        "6,,9,0,,0,carol,2,9,0.1,0.2,,0",
    ]
    with gzip.open(tmp_path / "task_events" / "part-0.csv.gz", "wt") as file:
        file.write("\n".join(events) + "\n")
    rest = ",".join(["0"] * 15)
    usage = [
        "600000000,900000000,7,0,1",
        "900000000,1000000000,7,0,1",
        "700000000,800000000,7,1,2",
        "600000000,700000000,8,0,1",
    ]
    usage.append("650000000,700000000,9,0,1")
    (tmp_path / "task_usage" / "part-0.csv").write_text("".join(f"{row},{rest}\n" for row in usage))
    return tmp_path


def test_googles_trace(trace: Path) -> None:
    found = load_trace(trace, users=3)
    assert found.servers.tolist() == [[0.5, 0.25, 0.52], [1, 1, 0.52]]
    # bob's task asks for more than any machine has.
    assert found.user.tolist() == [0, 2, 0]
    assert found.submit_ms.tolist() == [0, 50_000, 100_000]
    assert found.duration_ms.tolist() == [400_000, 50_000, 100_000]
    assert found.demand.tolist() == [[0.25, 0.1, 0.01], [0.1, 0.2, 0], [0.5, 0.2, 0.01]]
    assert load_trace(trace, users=1).user.tolist() == [0, 0]
    assert simulate(found, "qknober", 0.5).makespan_s == 400


def test_a_table_that_is_a_pipe_is_not_waited_for(trace: Path) -> None:
    table = trace / "task_usage" / "part-0.csv"
    table.unlink()
    os.mkfifo(table)
    with pytest.raises(InputError, match="no ordinary file"):
        load_trace(trace, users=3)


def test_a_part_of_googles_trace(trace: Path) -> None:
    """A window is of the tasks that begin in it, and the machines are drawn by the seed."""
    window = load_trace(trace, 3, Part(start_h=40 / 3600, hours=30 / 3600))
    assert window.user.tolist() == [2]
    assert window.submit_ms.tolist() == [0]
    drawn = {tuple(load_trace(trace, 3, Part(machines=1, seed=seed)).servers[0]) for seed in range(8)}
    assert drawn == {(0.5, 0.25, 0.52), (1.0, 1.0, 0.52)}
    with pytest.raises(InputError, match="has 2 machines at its beginning, not 3"):
        load_trace(trace, 3, Part(machines=3))
    with pytest.raises(InputError, match="begins in that window"):
        load_trace(trace, 3, Part(start_h=5))


def run_file(folder: Path, capsys: pytest.CaptureFixture[str], **keys: object) -> tuple[int, str]:
    """Runs an experiment of vectors: exit code, and what it says."""
    file = folder / "some.yaml"
    file.write_text(yaml.safe_dump({"kind": "vectors", "experiment": "some", "policies": ["drf"], **keys}))
    with pytest.raises(SystemExit) as stop:
        main(["run", str(file), "--out", str(folder / "runs")])
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out + said.err


def test_a_files_part_of_a_trace_is_what_is_simulated(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run_file(trace.parent, capsys, trace=str(trace), users=3, hours=0.0125)
    assert (code, "trace, 2 servers" in said) == (0, True)
    (summary,) = (trace.parent / "runs").rglob("summary.json")
    assert json.loads(summary.read_text())["tasks"] == 1
    assert run_file(trace.parent, capsys, trace=str(trace), users=3, machines=9)[0] == 1
    assert run_file(trace.parent, capsys, trace=str(trace), users=3, load=1)[0] == 1
    assert "has no machine_events" in run_file(trace.parent, capsys, trace=str(trace.parent))[1]


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        ("machine_events", "0,1,0\n", ":1: has 3 columns, not 6"),
        ("machine_events", "0,1,0,p,x,1\n", ":1: the CPU capacity is 'x'"),
        ("machine_events", "5,1,0,p,1,1\n", "adds no machine at its beginning"),
        ("task_events", "0,,7,0,,submit,alice,2,9,0.25,0.1,0.01,0\n", ":1: the event type is 'submit'"),
        ("task_events", "0,,7,0,,0,alice,2,9,-1,0.1,0.01,0\n", ":1: the CPU request is '-1'"),
        ("task_usage", "9,3,7,0,1," + ",".join(["0"] * 15) + "\n", ":1: ends before it starts"),
        ("task_usage", "", "has no usage"),
    ],
)
def test_a_trace_that_is_none(trace: Path, table: str, text: str, message: str) -> None:
    for old in (trace / table).iterdir():
        old.unlink()
    (trace / table / "part-0.csv").write_text(text)
    with pytest.raises(InputError) as error:
        load_trace(trace, users=3)
    assert message in error.value.line()


@pytest.mark.parametrize("place", [30, 60])
def test_a_damaged_table_is_one_line(trace: Path, place: int) -> None:
    path = trace / "task_events" / "part-0.csv.gz"
    data = bytearray(path.read_bytes())
    data[place : place + 10] = bytes(byte ^ 0xFF for byte in data[place : place + 10])
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="cannot be read") as error:
        load_trace(trace, users=3)
    assert error.value.where == str(path)


def test_names_are_utf_8_whatever_the_locale(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io, "text_encoding", lambda encoding, stacklevel=2: encoding or "ascii")
    with gzip.open(trace / "task_events" / "part-0.csv.gz", "wt", encoding="utf-8") as file:
        file.write("0,,7,0,,0,\u00e4nne,2,9,0.25,0.1,0.01,0\n")
    assert load_trace(trace, users=1).user.tolist() == [0]


@pytest.mark.parametrize("rule", list(RULES))
def test_a_window_hides_what_stands_behind_it(rule: str) -> None:
    """Half of the server is held for 100 s; eight tasks of the whole stand before one of half: C3 looks at all."""
    halves = np.array([[0.5], *[[1.0]] * 8, [0.5]])
    n = len(halves)
    load = VectorLoad(
        servers=np.array([[1.0]]),
        weights=np.array([1.0]),
        user=np.zeros(n, np.int64),
        submit_ms=np.array([0, *[1000] * (n - 1)], np.int64),
        duration_ms=np.array([100_000, *[10_000] * (n - 1)], np.int64),
        demand=halves,
    )
    waits = {window: int(simulate(load, rule, window=window).wait_ms[-1]) for window in (8, 9, None)}
    assert waits[8] > 90_000
    assert waits[9] == waits[None] == 0


def test_the_mdrs_updaters_interval_is_a_key_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """QKnober 6.2 leaves it open. The usual 60 s leaves an experiment what it was before there was the key."""
    found = {}
    for key in ({}, {"update_s": 60}, {"update_s": 7200}):
        folder = tmp_path / str(len(found) + len(key))
        folder.mkdir(exist_ok=True)
        policy = {"policy": "qknober", "settings": {"rho": 0.8}}
        code, said = run_file(folder, capsys, users=5, machines=5, hours=2, policies=[policy], **key)
        assert code == 0, said
        (run,) = (folder / "runs").rglob("run.json")
        summary = json.loads((run.parent / "summary.json").read_text())
        found[key.get("update_s", 0)] = json.loads(run.read_text())["hash"], summary["soft_fairness"]
    assert found[0] == found[60]
    assert found[0][0] != found[7200][0]
    assert found[0][1] != found[7200][1]


def test_remaining_is_a_setting_of_tetris_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tetris = {"policy": "tetris", "settings": {"f": 0.2}, "vary": {"remaining": [0, 1]}}
    code, said = run_file(tmp_path, capsys, users=3, machines=5, hours=0.5, policies=["drf", tetris])
    assert code == 0, said
    assert "remaining=1" in said
    variants = {json.loads(file.read_text())["variant"] for file in (tmp_path / "runs").rglob("run.json")}
    # Without it a variant is called as before there was the setting.
    assert variants == {"drf", "tetris,f=0.2", "tetris,f=0.2,remaining=1"}
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "remaining=1" in page
    for policy in ({"policy": "qknober", "settings": {"remaining": 1}}, {**tetris, "vary": {"remaining": [-1]}}):
        assert run_file(tmp_path, capsys, policies=[policy])[0] == 1
