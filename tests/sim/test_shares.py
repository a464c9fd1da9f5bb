"""Fair shares of a queue tree, and ``yarnfair shares``.

That they equal Hadoop's is tested in tests/oracle, and against recorded answers in tests/yarn.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import InputError
from harness.cli import main
from harness.model.resources import Resource
from harness.sim.shares import fair_shares
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.parse import parse_allocations

CLUSTER = Resource(59 * 4096, 118)


def shares(
    inside: str, active: list[str] | None = None, cluster: Resource = CLUSTER
) -> dict[str, tuple[int, int, int, int]]:
    tree = queue_tree(parse_allocations(f"<allocations>{inside}</allocations>"))
    return {
        path: (
            share.steady.memory_mb,
            share.steady.vcores,
            share.instantaneous.memory_mb,
            share.instantaneous.vcores,
        )
        for path, share in fair_shares(tree, cluster, active).items()
    }


def test_shares_follow_weights_and_activity() -> None:
    inside = '<queue name="a"><weight>3</weight></queue><queue name="g"><queue name="b"/><queue name="c"/></queue>'
    assert shares(inside, ["root.g.b"], Resource(4096, 8)) == {
        "root": (4096, 8, 4096, 8),
        "root.a": (3072, 0, 0, 0),
        "root.g": (1024, 0, 4096, 0),
        "root.g.b": (512, 0, 4096, 0),
        "root.g.c": (512, 0, 0, 0),
    }


def test_minimum_and_maximum_come_before_weights() -> None:
    inside = (
        '<queue name="a"><minResources>3000 mb, 0 vcores</minResources></queue>'
        '<queue name="b"><maxResources>100 mb, 9 vcores</maxResources></queue><queue name="c"/>'
    )
    found = shares(inside, cluster=Resource(4000, 8))
    assert [found[f"root.{name}"][0] for name in "abc"] == [3000, 100, 900]


def test_weights_beyond_the_sensible_range_go_wrong_as_in_hadoop() -> None:
    # The search bisects 25 times from a ratio of 1: a weight of 1e15 gets many times the cluster.
    inside = '<queue name="a"><weight>1e15</weight></queue><queue name="b"/>'
    assert shares(inside)["root.a"][0] > 28 * CLUSTER.memory_mb
    assert shares('<queue name="a"><weight>0</weight></queue><queue name="b"/>')["root.a"][0] == 0


@pytest.mark.parametrize(
    "inside",
    [
        '<queue name="a"><weight>NaN</weight></queue>',
        '<queue name="a"><weight>NaN</weight></queue>'
        '<queue name="b"><maxResources>9 mb, 9 vcores</maxResources></queue>',
        '<queue name="g"><queue name="a"><weight>NaN</weight></queue></queue>',
    ],
)
def test_where_the_rm_would_hang_it_is_said(inside: str) -> None:
    with pytest.raises(InputError, match=r"would hang here.*has the weight NaN"):
        shares(inside)


def test_a_nan_weight_beside_others_gets_nothing() -> None:
    assert shares('<queue name="a"><weight>NaN</weight></queue><queue name="b"/>')["root.a"][0] == 0


WEIGHT = st.floats(1e-3, 1e6)


@settings(deadline=None, max_examples=100)
@given(st.lists(WEIGHT, min_size=1, max_size=8), st.integers(1, 10**8))
def test_sensible_weights_share_out_the_cluster_in_proportion(weights: list[float], memory_mb: int) -> None:
    inside = "".join(f'<queue name="q{i}"><weight>{weight!r}</weight></queue>' for i, weight in enumerate(weights))
    found = shares(inside, cluster=Resource(memory_mb, 1))
    given_out = [found[f"root.q{i}"][0] for i in range(len(weights))]
    # Each share is cut to a whole megabyte; the ratio is right to 2**-24 of a power of two.
    slack = len(weights) + memory_mb * 2**-23 + sum(weights) * 2**-23
    assert abs(sum(given_out) - memory_mb) <= slack
    for weight, share in zip(weights, given_out, strict=True):
        assert abs(share - memory_mb * weight / sum(weights)) <= slack


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def yarnfair(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(["shares", *map(str, arguments)])
        assert isinstance(caught.value.code, int)
        return caught.value.code, *capsys.readouterr()

    file = tmp_path / "fs.xml"
    file.write_text(
        "<allocations><defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>"
        '<queue name="a"/><queue name="b"/></allocations>'
    )
    size = ("--memory-mb", "1000", "--vcores", "10")
    code, out, err = yarnfair(file, *size, "--active", "a", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["root.a"] == {
        "steady": {"memory_mb": 500, "vcores": 5},
        "instantaneous": {"memory_mb": 1000, "vcores": 10},
    }
    assert answer["root.b"]["instantaneous"] == {"memory_mb": 0, "vcores": 0}
    # An application that names no queue may make root.default.
    answer = json.loads(yarnfair(file, *size, "--active", "root.default,b", "--json")[1])
    assert answer["root.default"]["instantaneous"] == {"memory_mb": 500, "vcores": 5}
    code, out, err = yarnfair(file, *size, "--active", "c")
    assert (code, out) == (2, "")
    assert err.startswith("yarnfair: --active names 'c', which is not a leaf queue")
    code, _, err = yarnfair(tmp_path / "none.xml", *size)
    assert (code, err.count("\n")) == (1, 1)
