"""What a policy may answer besides its plan: it has a capability by having the method, and needs none of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import yarnfair
from harness.base.errors import CallError
from harness.paper import vectors
from harness.policies.capabilities import FigurePolicy, KnobPolicy, MeasuringPolicy, ReplanningPolicy, VectorPolicy
from harness.policies.registry import make_policy
from harness.policies.vectors import Division, VectorScenario, VectorUser

CAPABILITIES = (FigurePolicy, KnobPolicy, MeasuringPolicy, ReplanningPolicy, VectorPolicy)
SCENARIO = VectorScenario(
    ("vcores",),
    (Fraction(6),),
    (VectorUser("a", Fraction(1), (Fraction(1),)), VectorUser("b", Fraction(1), (Fraction(2),))),
)


class Plain(yarnfair.Policy):
    """One of a user's, as docs/how-to/write-a-policy.md has them."""

    name = "plain"

    def plan(self, snapshot: Any, ledger: Any) -> yarnfair.Plan:
        return yarnfair.Plan()


class First(Plain):
    """All for the first user."""

    name = "first"

    def divide(self, scenario: VectorScenario) -> Division:
        return Division(tuple(Fraction(6 if at == 0 else 0) for at, _ in enumerate(scenario.users)))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_policy_that_plans_alone_has_none(capability: Any) -> None:
    assert not isinstance(Plain(), capability)
    assert not isinstance(make_policy("fair"), capability)


def test_one_method_is_one_capability() -> None:
    assert [one for one in CAPABILITIES if isinstance(First(), one)] == [VectorPolicy]
    assert vectors.divide(SCENARIO, First()).division.tasks == (6, 0)
    with pytest.raises(CallError, match="policy plain does not divide several resources"):
        vectors.divide(SCENARIO, Plain())


def test_the_built_in_policies_keep_what_they_had() -> None:
    assert isinstance(make_policy("ltrf"), FigurePolicy)
    assert isinstance(make_policy("drf"), VectorPolicy)
    assert isinstance(make_policy("decay-kai"), MeasuringPolicy)
    for t_wait, expected in (("auto", True), ("20", False)):
        policy = make_policy("hltrf", {"t_wait": t_wait})
        assert isinstance(policy, ReplanningPolicy)
        assert policy.replans is expected


def test_a_file_with_a_user_policy_runs_on_paper_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from harness.cli import main

    (tmp_path / "mine.py").write_text(
        "from yarnfair import Order, Plan, Policy\n\n\n"
        "class Mine(Policy):\n"
        "    def plan(self, snapshot, ledger):\n"
        "        return Plan(order=Order(measure='keys', flat=True))\n\n"
        "    def key(self, queue, counted, snapshot):\n"
        "        return counted\n"
    )
    (tmp_path / "two.yaml").write_text("capacity: 4\nqueues: {a: {}, b: {}}\narrivals: [{a: 4, b: 4}]\n")
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(tmp_path / "two.yaml"), "--policy", f"{tmp_path / 'mine.py'}:Mine"])
    assert not stop.value.code
    assert capsys.readouterr().out.splitlines()[3].split() == ["1", "2", "2"]
