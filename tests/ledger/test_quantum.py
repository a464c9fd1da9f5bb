"""The adaptive multi-level quantum (LTYARN Fig. 4): arrows 1 to 7, and what running tasks are counted ahead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ledger.quantum import Quantum

TREE = {"root": None, "root.g": "root", "root.g.a": "root.g", "root.g.b": "root.g", "root.c": "root"}


def test_a_new_application_begins_with_what_stands_above_it() -> None:
    quantum = Quantum(600, True, TREE)
    quantum.add_app("app1", "root.g.a")
    assert quantum.app_quantum_s("app1") == 600  # arrows 1 to 3


def test_a_finished_task_tunes_everything_above_it() -> None:
    quantum = Quantum(600, True, TREE)
    for app, leaf in (("app1", "root.g.a"), ("app2", "root.g.a"), ("app3", "root.g.b")):
        quantum.add_app(app, leaf)
    quantum.start("app1", 1, 0.0, 1.0)
    quantum.start("app1", 2, 0.0, 1.0)
    quantum.finish("app1", 1, 10.0)
    quantum.finish("app1", 2, 30.0)
    assert quantum.app_quantum_s("app1") == 20  # arrow 4: mean task completion time
    assert quantum.quantum_s("root.g.a") == (20 + 600) / 2  # arrow 5: app2 counts with what it was given
    quantum.start("app3", 1, 0.0, 1.0)
    quantum.finish("app3", 1, 60.0)
    assert quantum.quantum_s("root.g") == (310 + 60) / 2  # arrow 6
    assert quantum.quantum_s("root") == 185  # arrow 7: root.c has had no application
    assert quantum.app_quantum_s("app2") == 600  # it has its own, from when it came
    quantum.add_app("app4", "root.g.a")
    assert quantum.app_quantum_s("app4") == 310
    quantum.add_app("app5", "root.c")
    assert quantum.app_quantum_s("app5") == 185


@pytest.mark.parametrize(("ended", "expected"), [(True, 20), (False, 30)])
def test_an_application_that_has_left_stays_in_the_average_or_not(ended: bool, expected: float) -> None:
    quantum = Quantum(600, True, TREE, ended=ended)
    quantum.add_app("app1", "root.c")
    quantum.start("app1", 1, 0.0, 1.0)
    quantum.finish("app1", 1, 10.0)
    quantum.remove_app("app1")
    quantum.add_app("app2", "root.c")
    quantum.start("app2", 1, 0.0, 1.0)
    quantum.finish("app2", 1, 30.0)
    assert quantum.quantum_s("root.c") == expected
    quantum.remove_app("app2")
    assert quantum.quantum_s("root.c") == expected  # what was learnt stays for the next one


def test_a_fixed_quantum_stays() -> None:
    quantum = Quantum(600, False, TREE)
    quantum.add_app("app1", "root.c")
    quantum.start("app1", 1, 0.0, 1.0)
    quantum.finish("app1", 1, 10.0)
    assert quantum.app_quantum_s("app1") == quantum.quantum_s("root") == 600


def test_running_tasks_are_counted_ahead() -> None:
    quantum = Quantum(100, False, TREE)
    quantum.add_app("app1", "root.c")
    quantum.start("app1", 1, 0.0, 2.0)
    quantum.start("app1", 2, 30.0, 1.0)
    assert quantum.assumed(30.0) == {"root.c": 2 * 70 + 100}
    assert quantum.assumed(110.0) == {"root.c": 20}  # the first has outrun the quantum
    assert quantum.assumed(110.0, round_start_s=100.0) == {"root.c": 2 * 90 + 90}  # eq. (5.15): since t_s
    quantum.finish("app1", 1, 120.0)
    assert quantum.assumed(140.0) == {"root.c": 0}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 500)), min_size=1, max_size=8), st.floats(0, 700))
def test_assumed_plus_elapsed_is_equation_5_15(tasks: list[tuple[float, float]], now: float) -> None:
    """alpha = max(Q, t - start) while a task runs, its real length once it has ended."""
    quantum = Quantum(60, False, TREE)
    quantum.add_app("app", "root.c")
    expected = plain = 0.0
    for task, (start, length) in enumerate(tasks):
        if start > now:
            continue
        quantum.start("app", task, start, 1.0)
        if start + length <= now:
            quantum.finish("app", task, start + length)
            expected += length
            plain += length
        else:
            expected += max(60, now - start)
            plain += now - start
    assert plain + quantum.assumed(now)["root.c"] == pytest.approx(expected)
