"""QKnober, DRF, Tetris and static division on paper: the theorems and the linear program, on random scenarios."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from harness.cli import main
from harness.policies import make_policy
from harness.policies.vectors import VectorScenario, VectorUser, progressive_filling, soft_fairness, utilisation
from harness.systems.qknober.packing import pack

ONE = Fraction(1)


@st.composite
def scenarios(draw: st.DrawFn, *, zeros: bool = False, finite: bool = False, weighted: bool = True) -> VectorScenario:
    m = draw(st.integers(1, 4))
    capacity = tuple(Fraction(draw(st.integers(5, 60))) for _ in range(m))
    users = []
    for i in range(draw(st.integers(1, 6))):
        task = [Fraction(draw(st.integers(0 if zeros else 1, 5))) for _ in range(m)]
        if not any(task):
            task[draw(st.integers(0, m - 1))] = ONE
        weight = Fraction(draw(st.integers(1, 4)), draw(st.integers(1, 2))) if weighted else ONE
        tasks = draw(st.none() | st.integers(0, 20)) if finite else None
        users.append(VectorUser(f"u{i}", weight, tuple(task), tasks))
    return VectorScenario(tuple(f"r{k}" for k in range(m)), capacity, tuple(users))


knobs = st.fractions(0, 1, max_denominator=10)


def levels(scenario: VectorScenario, tasks: tuple[Fraction, ...]) -> list[Fraction]:
    return [count * scenario.dominant(user) / user.weight for user, count in zip(scenario.users, tasks, strict=True)]


def could_grow(scenario: VectorScenario, tasks: tuple[Fraction, ...], least: Fraction = Fraction(0)) -> list[str]:
    """Users with tasks left for whom everything they need is idle (``least``: for one whole task)."""
    used = utilisation(scenario, tasks)
    found = []
    for user, count in zip(scenario.users, tasks, strict=True):
        wants = user.tasks is None or count < user.tasks
        idle = [(1 - u) * r for u, r in zip(used, scenario.capacity, strict=True)]
        if wants and all(h > 0 and h >= least * need for h, need in zip(idle, user.task, strict=True) if need):
            found.append(user.name)
    return found


@settings(deadline=None, max_examples=150)
@given(scenarios(), knobs)
def test_theorem_1_bounds_every_difference(scenario: VectorScenario, rho: Fraction) -> None:
    found = make_policy("qknober", {"rho": rho}).divide(scenario)
    assert found.theta is not None
    assert soft_fairness(scenario, found.tasks) <= found.theta
    # The inverse gives the smallest knob that keeps this bound.
    again = make_policy("qknober", {"theta": found.theta}).divide(scenario)
    assert again.notes["rho"] <= rho
    assert again.theta is not None
    assert again.theta <= found.theta


@settings(deadline=None, max_examples=100)
@given(scenarios(zeros=True), knobs)
def test_theorem_1_with_users_that_need_not_everything(scenario: VectorScenario, rho: Fraction) -> None:
    found = make_policy("qknober", {"rho": rho}).divide(scenario)
    assert found.theta is not None
    assert soft_fairness(scenario, found.tasks) <= found.theta


@settings(deadline=None, max_examples=100)
@given(scenarios())
def test_the_whole_knob_is_drf(scenario: VectorScenario) -> None:
    assert make_policy("qknober", {"rho": 1}).divide(scenario).tasks == progressive_filling(scenario)
    assert len(set(levels(scenario, progressive_filling(scenario)))) == 1


@settings(deadline=None, max_examples=100)
@given(scenarios(zeros=True), knobs)
def test_theorem_2_sharing_incentive(scenario: VectorScenario, rho: Fraction) -> None:
    found = make_policy("qknober", {"rho": rho}).divide(scenario)
    alone = make_policy("static").divide(scenario).tasks
    if rho >= found.notes["sharing_incentive_rho"]:
        assert all(count >= own for count, own in zip(found.tasks, alone, strict=True))


def test_below_theorem_2s_bound_somebody_may_lose() -> None:
    users = (VectorUser("A", ONE, (ONE, Fraction(6))), VectorUser("B", ONE, (ONE, Fraction(2))))
    scenario = VectorScenario(("cpu", "memory"), (Fraction(200), Fraction(1000)), users)
    found = make_policy("qknober", {"rho": "0.5"}).divide(scenario)
    assert found.tasks[1] < make_policy("static").divide(scenario).tasks[1]


@settings(deadline=None, max_examples=100)
@given(scenarios(weighted=True))
def test_no_envy_at_the_whole_knob(scenario: VectorScenario) -> None:
    """N_i(U_i) >= N_i(U_j) * w_i / w_j."""
    tasks = make_policy("qknober", {"rho": 1}).divide(scenario).tasks
    for i, own in enumerate(scenario.users):
        for j, other in enumerate(scenario.users):
            bundle = [tasks[j] * need for need in other.task]
            others = min(held / need for held, need in zip(bundle, own.task, strict=True))
            assert tasks[i] >= others * own.weight / other.weight


@settings(deadline=None, max_examples=150)
@given(
    scenarios(zeros=True, finite=True),
    st.sampled_from([("qknober", {"rho": "0"}), ("qknober", {"rho": "0.7"}), ("qknober", {"rho": "1"}), ("drf", {})]),
    st.booleans(),
)
def test_pareto_efficiency_and_capacity(
    scenario: VectorScenario, policy: tuple[str, dict[str, str]], integral: bool
) -> None:
    name, sets = policy
    tasks = make_policy(name, {**sets, "integral": integral}).divide(scenario).tasks
    assert all(part <= 1 for part in utilisation(scenario, tasks))
    assert all(
        0 <= count <= (count if u.tasks is None else u.tasks) for u, count in zip(scenario.users, tasks, strict=True)
    )
    assert could_grow(scenario, tasks, Fraction(int(integral))) == []
    if integral:
        assert all(count.denominator == 1 for count in tasks)


@settings(deadline=None, max_examples=100)
@given(scenarios(zeros=True, finite=True), knobs)
def test_tetris_leaves_nothing_that_fits(scenario: VectorScenario, f: Fraction) -> None:
    tasks = make_policy("tetris", {"f": f}).divide(scenario).tasks
    assert all(part <= 1 for part in utilisation(scenario, tasks))
    assert could_grow(scenario, tasks, ONE) == []


@settings(deadline=None, max_examples=60)
@given(scenarios(zeros=True, finite=True, weighted=True))
def test_finite_tasks_at_the_whole_knob_are_drf_with_finite_tasks(scenario: VectorScenario) -> None:
    """Round by round (C1) comes to progressive filling, where everybody demands everything."""
    if all(all(user.task) for user in scenario.users):
        assert make_policy("qknober", {"rho": 1}).divide(scenario).tasks == progressive_filling(scenario)


@settings(deadline=None, max_examples=60)
@given(scenarios(zeros=True, finite=True))
def test_filling_is_lexicographic_max_min(scenario: VectorScenario) -> None:
    """Everybody without all its tasks wants an exhausted resource on which nobody is at a higher level than it."""
    tasks = progressive_filling(scenario)
    used, level = utilisation(scenario, tasks), levels(scenario, tasks)
    for i, user in enumerate(scenario.users):
        if user.tasks is not None and tasks[i] == user.tasks:
            continue
        assert any(
            need
            and used[k] == 1
            and all(level[j] <= level[i] for j, other in enumerate(scenario.users) if other.task[k] and tasks[j])
            for k, need in enumerate(user.task)
        )


def test_users_of_one_direction_advance_together() -> None:
    users = (
        VectorUser("a", ONE, (ONE, Fraction(6))),
        VectorUser("b", Fraction(3), (Fraction(2), Fraction(12))),
        VectorUser("c", ONE, (ONE, ONE)),
    )
    scenario = VectorScenario(("cpu", "memory"), (Fraction(20), Fraction(100)), users)
    tasks = make_policy("qknober", {"rho": "0.2"}).divide(scenario).tasks
    assert levels(scenario, tasks)[0] == levels(scenario, tasks)[1]


# --- the linear program against HiGHS ---


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_packing_is_optimal_and_the_fairest_of_the_optima(data: st.DataObject) -> None:
    m, n = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    columns = []
    for _ in range(n):
        column = [Fraction(data.draw(st.integers(0, 4)), 4) for _ in range(m)]
        if not any(column):
            column[0] = ONE
        columns.append(column)
    idle = [Fraction(data.draw(st.integers(0, 5)), 5) for _ in range(m)]
    found = pack(columns, idle)
    used = [sum((z * column[k] for z, column in zip(found, columns, strict=True)), Fraction(0)) for k in range(m)]
    assert all(u <= h for u, h in zip(used, idle, strict=True))
    matrix = np.array(columns, dtype=float).T
    gains, room = matrix.sum(axis=0), np.array(idle, dtype=float)
    best = -linprog(-gains, A_ub=matrix, b_ub=room, method="highs").fun
    assert float(sum(used)) == pytest.approx(best, abs=1e-7)
    # No column at or above a level can rise among the optima while all that are not above it keep theirs.
    values = np.array(found, dtype=float)
    for g in range(n):
        low = np.where(values <= values[g] + 1e-12, values, values[g])
        bounds = [(max(0.0, x - 1e-9), None) for x in low]
        answer = linprog(
            -np.eye(n)[g],
            A_ub=np.vstack([matrix, -gains]),
            b_ub=np.append(room, -best + 1e-9),
            bounds=bounds,
            method="highs",
        )
        assert -answer.fun <= values[g] + 1e-5


# --- bad input: one line, no traceback ---

GOOD = "capacity: {cpu: 2}\nqueues: {a: {task: {cpu: 1}}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("capacity: {}\nqueues: {a: }", ":1: capacity names no resource"),
        (
            "capacity: {cpu: 0}\nqueues: {a: {task: {cpu: 1}}}",
            ":1: the capacity of 'cpu' is '0'; capacities are above 0",
        ),
        ("capacity: {cpu: .nan}\nqueues: {}", "not a finite decimal number"),
        ("capacity: {tasks: 1}\nqueues: {}", "'tasks' is not a resource name"),
        ("capacity: {dominant_share: 1}\nqueues: {}", "is not a resource name"),
        ("capacity: {cpu: 1}", "has no queues"),
        ("capacity: {cpu: 1}\nqueues: {}", "no queues; name at least one"),
        ("capacity: {cpu: 1}\nqueues: {a: {}}", ":2: queue 'a' has no task"),
        ("capacity: {cpu: 1}\nqueues: {a: {task: {}}}", "the task of 'a' needs nothing"),
        ("capacity: {cpu: 1}\nqueues: {a: {task: {cpu: 0}}}", "the task of 'a' needs nothing"),
        ("capacity: {cpu: 1}\nqueues: {a: {task: {cpu: -1}}}", "task of 'a' is '-1'; give a number from 0 on"),
        ("capacity: {cpu: 1}\nqueues: {a: {task: {gpu: 1}}}", "asks for 'gpu', which capacity does not name"),
        ("capacity: {cpu: 1}\nqueues: {a: {task: {cpu: 1}, weight: 0}}", "weights are above 0"),
        ("capacity: {cpu: 1}\nqueues: {a: {task: {cpu: 1}, tasks: 1.5}}", "give a whole number of at least 0"),
        ("capacity: {cpu: 1}\nqueues: {a: {task: {cpu: 1}, children: {}}}", "unknown field 'children' of queue 'a'"),
        ("capacity: {cpu: 1}\nqueues: {a: {task: 3}}", "task of 'a' is not a mapping"),
        ("capacity: {cpu: 1}\nqueues: {a.b: {task: {cpu: 1}}}", "'a.b' is not a queue name"),
        (GOOD + "steps: 4", ":3: unknown field 'steps'"),
    ],
)
def test_bad_scenarios_get_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(path), "--policy", "qknober", "--json"])
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (1, "", 1)
    assert message in err


@pytest.mark.parametrize(
    ("policy", "sets", "message"),
    [
        ("ltrf", [], "policy ltrf does not divide several resources"),
        ("qknober", ["rho=0.5", "theta=1"], "rho and theta are both given"),
        ("qknober", ["rho=1.5"], "rho=1.5"),
        ("qknober", ["f=1"], "no setting 'f'"),
        ("tetris", ["f=-1"], "f=-1"),
    ],
)
def test_wrong_calls_are_usage_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, sets: list[str], message: str
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(GOOD)
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(path), "--policy", policy, *(x for s in sets for x in ("--set", s))])
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_what_would_take_hours_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.policies.vectors.MAX_LOOKS", 200_000)
    path = tmp_path / "s.yaml"
    path.write_text("capacity: {cpu: 1e12, disk: 1e12}\nqueues: {a: {task: {cpu: 1, disk: 2}}, b: {task: {cpu: 1}}}\n")
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(path), "--policy", "tetris"])
    assert stop.value.code == 1
    assert "comparisons" in capsys.readouterr().err
    # Rounding needs no filling task by task.
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(path), "--policy", "drf", "--set", "integral=true"])
    assert stop.value.code == 0


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(GOOD)
    for policy in ("static", "drf", "tetris", "qknober"):
        with pytest.raises(SystemExit):
            main(["allocate", str(path), "--policy", policy])
        out = capsys.readouterr().out
        assert "utilisation" in out
        assert ("theta (Theorem 1)" in out) == (policy in ("drf", "qknober"))
