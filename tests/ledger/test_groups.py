"""A parent's account while a scheduler creates and removes children below it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.control.changes import Entitled, debts
from harness.ledger import Ledger, Usage
from harness.ledger.groups import shifted
from harness.model.plan import LedgerSettings
from harness.model.resources import Resource

#: Children that may exist: parent -> leaves. ``root.p`` has children of its own and a parent among them.
CHILDREN = {
    "root.p": ("root.p.x", "root.p.y", "root.p.z"),
    "root.p.n": ("root.p.n.u", "root.p.n.v", "root.p.n.w"),
    "root.q": ("root.q.r", "root.q.s", "root.q.t"),
}
LEAVES = [leaf for leaves in CHILDREN.values() for leaf in leaves]
#: What each parent is entitled to of its own parent's, beside ``root.a``.
PARTS = {"root.p": 0.5, "root.q": 0.2, "root.a": 0.3}
#: Rounds of a history: which children exist, each with a weight, and what each uses until the next round.
HISTORY = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(LEAVES), st.sampled_from((0.5, 1.0, 3.0)), min_size=1),
        st.lists(st.integers(0, 3000), min_size=len(LEAVES) + 1, max_size=len(LEAVES) + 1),
    ),
    min_size=2,
    max_size=5,
)
HOW: list[dict[str, Any]] = [{}, {"half_life_s": 3600.0}, {"window_s": 7200.0}]


def below(figures: dict[str, float], parent: str) -> float:
    return sum(figure for leaf, figure in figures.items() if leaf == parent or leaf.startswith(f"{parent}."))


def of_cluster(children: dict[str, float]) -> dict[str, float]:
    """A Capacity Scheduler's leaves: children have parts of what their parent has, which is a leaf without any."""
    found = {"root.a": PARTS["root.a"]}
    nested = {leaf: weight for leaf, weight in children.items() if leaf.startswith("root.p.n.")}
    for parent in ("root.p", "root.q"):
        own = {
            leaf: weight for leaf, weight in children.items() if leaf.startswith(f"{parent}.") and leaf not in nested
        }
        if parent == "root.p" and nested:
            own["root.p.n"] = 2.0
        for child, weight in own.items():
            found[child] = PARTS[parent] * weight / sum(own.values())
        if not own:
            found[parent] = PARTS[parent]
    if nested:
        part = found.pop("root.p.n")
        found |= {leaf: part * weight / sum(nested.values()) for leaf, weight in nested.items()}
    return found


@pytest.mark.parametrize("how", HOW, ids=["all", "half-life", "window"])
@settings(max_examples=25, deadline=None)
@given(history=HISTORY)
def test_creations_and_removals_leave_a_parents_account_and_debt_alone(
    history: list[tuple[dict[str, float], list[int]]], how: dict[str, Any]
) -> None:
    """To the MiB s, at every level, whatever is created and removed together, nested or in other parents."""
    ledger: Ledger | None = None
    seen: set[str] = set()
    for number, (children, used) in enumerate(history):
        weights = of_cluster(children)
        if ledger is None:
            ledger = Ledger(LedgerSettings(shares="levels", **how), weights, Resource(3000, 3))
            ledger.remember = True
        was, before = dict(ledger.counted()), dict(ledger.state()["weights"])
        ledger.set_weights(weights)
        ledger = Ledger.restored(json.loads(json.dumps(ledger.state())), ledger.settings)
        ledger.remember = True
        now = dict(ledger.counted())
        assert min(now.values()) >= 0.0
        assert ledger.newcomers() == frozenset()
        assert sum(now.values()) == pytest.approx(sum(was.values()), abs=1e-3)
        for parent in ("root.p", "root.q", "root.a"):
            assert below(now, parent) == pytest.approx(below(was, parent), abs=1e-3)
        if below(before, "root.p.n") == pytest.approx(below(weights, "root.p.n")):
            # The nested parent's siblings are as before, or have the same part together.
            outside = {leaf for leaf in (*before, *weights) if leaf.startswith("root.p.") and ".n." not in leaf}
            if all(leaf in before and leaf in weights for leaf in outside):
                assert below(now, "root.p.n") == pytest.approx(below(was, "root.p.n"), abs=1e-3)
        for leaf in now.keys() - before.keys() - seen:
            parent = leaf.rpartition(".")[0]
            # Only below a parent that had leaves before: a new parent's level follows from its own parent's.
            if leaf not in PARTS and any(other == parent or other.startswith(f"{parent}.") for other in before):
                level = below(now, parent) / below(weights, parent)
                assert now[leaf] / weights[leaf] == pytest.approx(level, rel=1e-6, abs=1e-3), "neither owed nor owing"
        seen |= now.keys()
        ledger.observe(
            600.0 * (number + 1),
            {leaf: Usage(600.0 * mb) for leaf, mb in zip(["root.a", *LEAVES], used, strict=True) if leaf in weights},
            list(weights),
        )


@settings(max_examples=25, deadline=None)
@given(history=HISTORY)
def test_leaves_of_equal_rank_keep_their_parents_level(history: list[tuple[dict[str, float], list[int]]]) -> None:
    """Where leaves are entitled by their own weights, a further child raises what its parent is entitled to.

    It is owed nothing for the time before, and neither is its parent: what that has used per weight stays.
    """
    ledger: Ledger | None = None
    for number, (children, used) in enumerate(history):
        weights = {"root.a": 1.0, **dict.fromkeys((leaf for leaf in children if ".n." not in leaf), 1.0)}
        if ledger is None:
            ledger = Ledger(LedgerSettings(shares="leaves"), weights, Resource(3000, 3))
            ledger.remember = True
        was, before = dict(ledger.counted()), dict(ledger.state()["weights"])
        ledger.set_weights(weights)
        now = dict(ledger.counted())
        for parent in ("root.p", "root.q"):
            if below(before, parent) and below(weights, parent):
                level = below(was, parent) / below(before, parent)
                assert below(now, parent) / below(weights, parent) == pytest.approx(level, rel=1e-6, abs=1e-3)
        ledger.observe(
            600.0 * (number + 1),
            {leaf: Usage(600.0 * mb) for leaf, mb in zip(["root.a", *LEAVES], used, strict=True) if leaf in weights},
            list(weights),
        )


def owed(ledger: Ledger, weights: dict[str, float]) -> dict[str, float]:
    queues = {leaf: Entitled(weight, leaf=True) for leaf, weight in weights.items()}
    return debts(ledger.counted(), queues, flat=True, newcomers=ledger.newcomers())


def three_children() -> tuple[Ledger, dict[str, float]]:
    weights = {"root.a": 50.0, "root.p.x": 20.0, "root.p.y": 20.0, "root.p.z": 10.0}
    ledger = Ledger(LedgerSettings(), weights, Resource(1000, 10))
    ledger.remember = True
    used = {"root.a": 700.0, "root.p.x": 90.0, "root.p.y": 150.0, "root.p.z": 60.0}
    ledger.observe(100.0, {leaf: Usage(100.0 * mb) for leaf, mb in used.items()}, list(weights))
    return ledger, weights


def test_a_created_child_takes_nothing_from_what_its_parent_and_its_siblings_are_owed() -> None:
    """It began as the busiest leaf of all, so the parent was owed less and less with every child."""
    ledger, weights = three_children()
    before = owed(ledger, weights)
    assert before["root.p"] == 20_000.0
    created = {"root.a": 50.0, "root.p.x": 16.0, "root.p.y": 16.0, "root.p.z": 8.0, "root.p.new": 10.0}
    ledger.set_weights(created)
    ledger.observe(100.0, {}, list(created))
    after = owed(ledger, created)
    assert after["root.p"] == pytest.approx(before["root.p"])
    # Within the parent: the new one's part of 20,000, and nothing for or against it.
    assert after["root.p.new"] == pytest.approx(20_000.0 / 5)
    within = {leaf: 30_000.0 * created[leaf] / 50.0 - ledger.counted()[leaf] for leaf in created if leaf != "root.a"}
    assert within == pytest.approx({"root.p.x": 3000.0, "root.p.y": -3000.0, "root.p.z": 0.0, "root.p.new": 0.0})


def test_a_child_that_expires_and_comes_back_changes_nothing() -> None:
    ledger, weights = three_children()
    before = dict(ledger.counted())
    ledger.set_weights({"root.a": 50.0, "root.p.x": 100 / 3, "root.p.z": 50 / 3})
    assert below(dict(ledger.counted()), "root.p") == pytest.approx(30_000.0)
    assert ledger.counted()["root.p.x"] == pytest.approx(9_000.0 + 10_000.0)
    ledger.set_weights(weights)
    assert dict(ledger.counted()) == pytest.approx(before)


def test_what_a_ledger_of_an_older_version_kept_is_not_counted_twice() -> None:
    """It kept the account of an expired child beside those of its siblings."""
    ledger, weights = three_children()
    state = ledger.state()
    state["departed"]["root.p.y"] = state["accounts"].pop("root.p.y")[:8]
    state["weights"] = {"root.a": 50.0, "root.p.x": 100 / 3, "root.p.z": 50 / 3}
    ledger = Ledger.restored(state, ledger.settings)
    ledger.remember = True
    ledger.set_weights(weights)
    assert below(dict(ledger.counted()), "root.p") == pytest.approx(15_000.0)


def test_an_amount_never_falls_below_nothing() -> None:
    assert shifted([10.0, 0.0, 50.0], [1.0, 1.0, 2.0], 20.0).tolist() == [0.0, 0.0, 20.0]
    assert shifted([10.0, 0.0, 50.0], [1.0, 1.0, 2.0], 100.0).tolist() == [20.0, 10.0, 70.0]
    assert shifted([10.0, 20.0], [1.0, 1.0], 0.0).tolist() == [0.0, 0.0]
