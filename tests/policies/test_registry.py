"""From names and settings as users write them to policies: what is refused, with which code and which help."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import CallError, InputError
from harness.paper.steps import ScenarioQueue, StepsScenario
from harness.paper.units import allocate
from harness.policies import POLICIES, make_policy, settings_of
from harness.policies.base import describe_settings, read_decimal
from harness.policies.registry import policy_class


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_is_called_by_its_name(name: str) -> None:
    assert make_policy(name).name == name


def test_unknown_policy_lists_the_known() -> None:
    with pytest.raises(CallError, match=r"no policy 'lrtf'; did you mean 'ltrf'"):
        make_policy("lrtf")


@pytest.mark.parametrize(
    ("policy", "sets", "message"),
    [
        ("fair", {"horizon_s": "1"}, "it takes none"),
        ("ltrf", {"t_wait": "1"}, "it takes adaptive_quantum, discount"),
        ("hltrf", {"t_wait": "-1"}, "at least 0, or inf, or auto"),
        ("hltrf", {"t_wait": "nan"}, "t_wait=nan"),
        ("hltrf", {"affinity": "1.5"}, "at most 1"),
        ("hltrf", {"affinity": "inf"}, "affinity=inf"),
        ("ltrf", {"discount": "half"}, "discount=half"),
        ("ltrf", {"discount": "1e-999999999"}, "is not a number"),
        ("ltrf", {"discount": "0." + "1" * 5000}, "is not a number"),
        ("ltrf", {"round": "0"}, "above 0"),
        ("ltrf", {"resource": "gpu"}, "memory or vcores or dominant"),
        ("ltrf", {"pseudo": "perhaps"}, "true or false"),
    ],
)
def test_bad_settings_are_usage_errors(policy: str, sets: dict[str, str], message: str) -> None:
    with pytest.raises(CallError) as caught:
        make_policy(policy, sets)
    assert caught.value.exit_code == 2
    assert message in caught.value.line()
    assert "\n" not in caught.value.line()
    assert len(caught.value.line()) < 300


def test_numbers_are_kept_as_written() -> None:
    policy = make_policy("ltrf", {"discount": "0.1"})
    assert policy.exact["discount"] == Fraction(1, 10)
    assert make_policy("hltrf").exact["t_wait"] == 10


@given(st.text(max_size=30))
def test_any_text_is_a_decimal_or_none(text: str) -> None:
    value = read_decimal(text)
    assert value is None or isinstance(value, Fraction)


def test_settings_are_described() -> None:
    assert settings_of("hltrf")[-4:] == ["t_wait", "n_task", "affinity", "lift"]
    text = describe_settings(policy_class("hltrf"))
    assert text["t_wait"].startswith("a number at least 0, or inf, or auto, default 10")
    assert describe_settings(policy_class("fair")) == {}


USER_POLICY = '''
from dataclasses import dataclass
from harness.model.plan import Order, Plan
from harness.policies.base import Policy, number

@dataclass(frozen=True, slots=True)
class MySettings:
    bonus: float = number(1.0, at_least=0, doc="units ahead")

class Reverse(Policy):
    """The demanding leaf that comes last by name first, if it holds less than bonus more than the others."""
    Settings = MySettings
    def plan(self, snapshot, ledger):
        return Plan(order=Order(measure="keys", flat=True))
    def keys(self, snapshot, ledger):
        names = sorted(snapshot.queues)
        return {name: -names.index(name) for name in names}

class NotOne:
    pass
'''


def test_user_policy_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(USER_POLICY)
    policy = make_policy(f"{path}:Reverse", {"bonus": "2"})
    assert policy.name == "Reverse"
    queues = tuple(ScenarioQueue(name, Fraction(1)) for name in "ab")
    answer = allocate(StepsScenario(3, queues, ({"a": 2, "b": 2},), 2), policy)
    assert answer.steps == [{"a": 1, "b": 2}, {"a": 1, "b": 0}]
    with pytest.raises(CallError, match="it takes bonus"):
        make_policy(f"{path}:Reverse", {"other": "2"})


def test_a_policy_gets_the_modules_that_lie_beside_its_own_file(tmp_path: Path) -> None:
    """By a plain import, wherever the command was called; two folders may each have one of the same name."""
    body = "import helper\nfrom harness.policies.static import Static\nclass P(Static):\n    found = helper.FOUND\n"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(f"FOUND = {name!r}\n")
        (tmp_path / name / "policy.py").write_text(body)
    found = [vars(policy_class(f"{tmp_path / name}/policy.py:P"))["found"] for name in ("a", "b", "a")]
    assert found == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("body", "attribute", "message"),
    [
        ("x = 1", "Missing", "has no class Missing"),
        ("raise RuntimeError('boom')", "P", "does not import: RuntimeError: boom"),
        ("def broken(:", "P", "does not import: SyntaxError"),
        (USER_POLICY, "NotOne", "is not a subclass"),
        ("from harness.policies.base import Policy\nclass P(Policy): ...", "P", r"does not define plan\(\)"),
    ],
)
def test_a_user_s_file_that_cannot_be_used(tmp_path: Path, body: str, attribute: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(body)
    with pytest.raises(InputError, match=message):
        make_policy(f"{path}:{attribute}")


def test_a_user_s_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        make_policy(f"{tmp_path}/none.py:P")
