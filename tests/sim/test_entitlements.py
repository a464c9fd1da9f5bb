"""S_i of eq. (2) in an unbalanced tree: level by level, or by the leaves' own weights; measured, and answered to."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from harness.control.virtual import simulate_outside
from harness.policies.registry import make_policy
from harness.results.summary import allocations_table, jobs_table, summarise
from harness.sim.setup import SimResult
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations

#: root.one.a is due a half of the cluster level by level, and a quarter by the leaves' own weights.
UNBALANCED = (
    '<allocations><queue name="one"><queue name="a"/></queue>'
    '<queue name="two"><queue name="b"/><queue name="c"/><queue name="d"/></queue></allocations>'
)
LEAVES = ["root.one.a", "root.two.b", "root.two.c", "root.two.d"]


def _run(cases: Any, policy: str, settings: dict[str, str], **more: Any) -> SimResult:
    """All four ask for the whole cluster, all the time; it is cut after 600 s."""
    jobs = [cases.mapreduce(leaf[-1], leaf.removeprefix("root."), 3000) for leaf in LEAVES]
    setup = cases.setup(
        jobs,
        allocations=parse_allocations(UNBALANCED),
        policy=make_policy(policy, settings),
        time_limit_s=600.0,
        **more,
    )
    return simulate_outside(setup) if setup.mode == "outside" else simulate(setup)


def _summary(result: SimResult) -> dict[str, Any]:
    return summarise(result, jobs_table(result, {}), LEAVES)


@pytest.mark.parametrize(
    ("settings", "levels", "flat"),
    [({}, 0.5, 1.0), ({"shares": "levels"}, 1.0, 2.0), ({"shares": "levels", "discount": "0.5"}, 1.0, 2.0)],
)
def test_ltrf_is_fair_by_the_shares_that_it_answers_to(
    cases: Any, settings: dict[str, str], levels: float, flat: float
) -> None:
    found = _summary(_run(cases, "ltrf", settings))
    a = found["queues"]["root.one.a"]
    assert a["fairness_degree"] == pytest.approx(levels, abs=0.1)
    assert a["fairness_degree_by_leaf_weights"] == pytest.approx(flat, abs=0.2)
    fair = found if settings else found["by_leaf_weights"]
    assert fair["sharing_loss"] > -0.2
    unfair = found["by_leaf_weights"] if settings else found
    assert unfair["sharing_loss"] < -0.4


def test_h_ltrf_without_a_wait_is_ltrf_with_either_shares(cases: Any) -> None:
    for shares in ("leaves", "levels"):
        ltrf = _summary(_run(cases, "ltrf", {"shares": shares}))["queues"]
        hltrf = _summary(_run(cases, "hltrf", {"shares": shares, "t_wait": "0"}))["queues"]
        for leaf in LEAVES:
            expected = ltrf[leaf]["fairness_degree"]
            assert hltrf[leaf]["fairness_degree"] == pytest.approx(expected, abs=0.1), (shares, leaf)


def test_level_by_level_both_shares_are_the_same_rule(cases: Any) -> None:
    plain = _run(cases, "naive-hltrf", {}).tasks
    assert pd.DataFrame(plain).equals(pd.DataFrame(_run(cases, "naive-hltrf", {"shares": "levels"}).tasks))


def test_from_outside_the_weights_answer_to_the_same_shares(cases: Any) -> None:
    for shares, expected in (("leaves", 0.5), ("levels", 1.0)):
        found = _summary(_run(cases, "ltrf", {"shares": shares}, mode="outside"))
        assert found["queues"]["root.one.a"]["fairness_degree"] == pytest.approx(expected, abs=0.06)


def test_the_due_by_leaf_weights_is_the_exact_integral(cases: Any) -> None:
    table = allocations_table(_run(cases, "ltrf", {}))
    first, last = (table[table["time_s"] == at].set_index("queue").loc[LEAVES] for at in (100.0, 500.0))
    # All ask for more than their share by then: 40 nodes' worth of time, by either share.
    due = last["due_by_leaf_weights_mb_s"] - first["due_by_leaf_weights_mb_s"]
    assert due.tolist() == pytest.approx([40960 * 400 / 4] * 4, rel=1e-9)
    levels = last["due_mb_s"] - first["due_mb_s"]
    assert levels.tolist() == pytest.approx([40960 * 400 / 2] + [40960 * 400 / 6] * 3, rel=1e-9)


def test_a_balanced_tree_has_one_measure(cases: Any) -> None:
    result = simulate(cases.setup([cases.mapreduce("a", "a", 40)], policy="ltrf"))
    assert result.samples.due_flat is None
    found = summarise(result, jobs_table(result, {}), ["root.a", "root.b", "root.c", "root.d"])
    assert "by_leaf_weights" not in found
    assert "due_by_leaf_weights_mb_s" not in allocations_table(result)
