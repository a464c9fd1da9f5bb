"""The Capacity Scheduler's queue tree, and capacities that give siblings the wanted shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import InputError
from harness.yarn.capacity.queues import Capacity, capacities, queue_tree, read_capacity, read_maximum


def tree(**values: str) -> dict[str, str]:
    return {f"yarn.scheduler.capacity.{name.replace('__', '.')}": value for name, value in values.items()}


@pytest.mark.parametrize(
    ("text", "mode", "entitlement"),
    [("4w", "weight", 4.0), ("+0.5w", "weight", 0.5), (" 40 ", "percent", 40.0), ("12.5%", "percent", 12.5),
     ("[memory=8192,vcores=8]", "absolute", 8192.0), ("[memory-mb=1, vcores=2]", "absolute", 1.0)],
)  # fmt: skip
def test_capacities_are_read(text: str, mode: str, entitlement: float) -> None:
    found = read_capacity(text, "here")
    assert (found.mode, found.entitlement) == (mode, entitlement)


@pytest.mark.parametrize(
    "text", [None, "", "w", " 1w ", "-1", "101", "10001w", "NaN", "${x}w", "[memory=10Gx]", "[vcores=1]"]
)
def test_what_is_no_capacity_is_refused(text: str | None) -> None:
    with pytest.raises(InputError):
        read_capacity(text, "here")


@pytest.mark.parametrize("values", [{}, {"root__queues": " , "}, {"root__a__capacity": "1w"}])
def test_a_tree_of_the_root_alone_is_refused_as_hadoop_refuses_it(values: dict[str, str]) -> None:
    with pytest.raises(InputError, match="no queues below root") as caught:
        queue_tree(tree(**values), source="f")
    assert caught.value.where == "f"
    assert "root.queues" in (caught.value.hint or "")


def test_a_root_that_makes_its_queues_by_itself_may_name_none() -> None:
    values = tree(root__queues="") | {"yarn.scheduler.capacity.root.auto-queue-creation-v2.enabled": "true"}
    found = queue_tree(values, source="f")
    assert list(found) == ["root"]
    assert found["root"].fixed


def test_a_tree_has_parents_before_children_and_one_kind_of_capacity_among_siblings() -> None:
    values = tree(root__queues="a, b", root__a__capacity="1w", root__b__capacity="3w", root__b__queues="x",
                  root__b__x__capacity="100")  # fmt: skip
    found = queue_tree(values, source="f")
    assert list(found) == ["root", "root.a", "root.b", "root.b.x"]
    assert found["root.b"].children == ("root.b.x",)
    with pytest.raises(InputError, match="of one kind"):
        queue_tree({**values, "yarn.scheduler.capacity.root.a.capacity": "25"}, source="f")
    with pytest.raises(InputError, match="without a capacity"):
        queue_tree(tree(root__queues="a"), source="f")
    with pytest.raises(InputError, match="makes no sense"):
        queue_tree(tree(root__queues="a,a", root__a__capacity="1w"), source="f")


shares = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=40)


@given(shares, st.sampled_from(["weight", "percent", "absolute"]))
def test_ratios_are_as_wanted_and_hadoop_takes_them(wanted: list[float], mode: str) -> None:
    old = {
        f"root.q{i}": Capacity("absolute", amounts={"memory": 100_000, "vcores": 1000})
        if mode == "absolute"
        else Capacity(mode, 10.0 if mode == "weight" else 100.0 / len(wanted))  # type: ignore[arg-type]
        for i in range(len(wanted))
    }
    by_path = dict(zip(old, wanted, strict=True))
    new = capacities(by_path, old, None)
    again = {path: read_capacity(capacity.text(), path) for path, capacity in new.items()}
    assert all(capacity.mode == mode for capacity in again.values())
    got = np.array([again[path].entitlement for path in old])
    assert (got > 0).all()
    want = np.array(wanted) / sum(wanted)
    if mode == "weight":
        assert got.max() <= 10_000
        # What is served at all: the smallest weight that is written is 1e-4.
        assert got / got.sum() == pytest.approx(want, rel=2e-3, abs=1e-4)
    elif mode == "percent":
        total = np.float32(0)
        for capacity in again.values():
            total = np.float32(total + np.float32(capacity.value) / np.float32(100))
        assert abs(float(total) - 1) < 0.0005
        assert got / 100 == pytest.approx(want, abs=len(wanted) * 1e-6 + 1e-6)
    else:
        assert got.sum() == 100_000 * len(old)
        assert sum(c.amounts["vcores"] for c in again.values() if c.amounts) == 1000 * len(old)
        assert got / got.sum() == pytest.approx(want, abs=1e-5)


def test_old_ratios_leave_the_capacities_as_they_are() -> None:
    old = {"root.a": Capacity("weight", 9999.9), "root.b": Capacity("weight", 1.0)}
    assert capacities({"root.a": 99.999, "root.b": 0.01}, old, None) == old


def test_a_queue_with_capacity_0_keeps_it() -> None:
    old = {"root.a": Capacity("percent", 100.0), "root.b": Capacity("percent", 0.0)}
    assert capacities({"root.a": 1.0, "root.b": 5.0}, old, None) == old


def test_children_share_what_their_parent_has_now() -> None:
    old = {path: Capacity("absolute", amounts={"memory": 4096}) for path in ("root.g.a", "root.g.b")}
    new = capacities({"root.g.a": 3.0, "root.g.b": 1.0}, old, Capacity("absolute", amounts={"memory": 4000}))
    assert [c.text() for c in new.values()] == ["[memory=3000]", "[memory=1000]"]


def test_children_that_keep_their_ratio_are_cut_to_what_their_parent_has_now() -> None:
    """Left as they were, their sum would be above it, which Hadoop refuses."""
    old = {path: Capacity("absolute", amounts={"memory": 4096, "vcores": 4}) for path in ("root.g.a", "root.g.b")}
    new = capacities({"root.g.a": 1.0, "root.g.b": 1.0}, old, Capacity("absolute", amounts={"memory": 6000}))
    assert [c.text() for c in new.values()] == ["[memory=3000,vcores=4]"] * 2
    assert capacities({"root.g.a": 1.0, "root.g.b": 1.0}, old, Capacity("absolute", amounts={"memory": 9000})) == old


def test_a_parent_keeps_enough_for_each_leaf_below_it() -> None:
    old = {path: Capacity("absolute", amounts={"memory": 1000}) for path in ("root.g", "root.a")}
    shares = {"root.g": 1e-6, "root.a": 1.0}
    assert [c.text() for c in capacities(shares, old, None).values()] == ["[memory=1]", "[memory=1999]"]
    with_leaves = capacities(shares, old, None, leaves={"root.g": 3, "root.a": 1})
    assert [c.text() for c in with_leaves.values()] == ["[memory=3]", "[memory=1997]"]
    with pytest.raises(InputError, match="cannot be shared"):
        capacities(shares, old, Capacity("absolute", amounts={"memory": 3}), leaves={"root.g": 3, "root.a": 1})


def test_amounts_may_have_units() -> None:
    assert read_capacity("[memory=10Gi,vcores=8]", "here").amounts == {"memory": 10_240, "vcores": 8}
    assert read_capacity("[memory-mb=2Ti, vcores=8]", "here").amounts == {"memory": 2 * 2**20, "vcores": 8}
    for wrong in ("[memory=10x,vcores=8]", "[memory=1,vcores=8Mi]"):
        with pytest.raises(InputError):
            read_capacity(wrong, "here")


@pytest.mark.parametrize(
    ("text", "limit"),
    [(None, None), ("", None), ("-1", None), ("NaN", None), ("5w", None), (" 60 ", Capacity("percent", 60.0)),
     ("[memory=1Gi,vcores=2]", Capacity("absolute", amounts={"memory": 1024, "vcores": 2}))],
)  # fmt: skip
def test_a_maximum_is_none_where_hadoop_reads_none(text: str | None, limit: Capacity | None) -> None:
    assert read_maximum(text) == limit


@given(
    st.lists(st.tuples(st.floats(1e-3, 1e6), st.integers(1, 100), st.integers(0, 60)), min_size=2, max_size=8),
    st.booleans(),
)
def test_no_queue_gets_more_than_its_maximum_and_the_others_share_the_rest(
    drawn: list[tuple[float, int, int]], percent: bool
) -> None:
    """The administrator's own capacities are within their maxima."""
    unit = 100.0 / sum(amount for _, amount, _ in drawn) if percent else 1024

    def capacity(amount: int) -> Capacity:
        if percent:
            return Capacity("percent", min(amount * unit, 100.0))
        return Capacity("absolute", amounts={"memory": int(amount * unit)})

    wanted = {f"root.q{i}": share for i, (share, _, _) in enumerate(drawn)}
    old = {f"root.q{i}": capacity(amount) for i, (_, amount, _) in enumerate(drawn)}
    most = {f"root.q{i}": capacity(amount + more) for i, (_, amount, more) in enumerate(drawn)}
    new = capacities(wanted, old, None, most=most)
    for path, limit in most.items():
        assert new[path].entitlement <= limit.entitlement + 1e-3
    totals = [sum(one.entitlement for one in side.values()) for side in (old, new)]
    assert totals[1] == pytest.approx(totals[0], abs=0.01)
    free = [path for path, one in new.items() if 10 < one.entitlement < 0.99 * most[path].entitlement]
    ratios = [new[path].entitlement / wanted[path] for path in free]
    assert not ratios or max(ratios) <= min(ratios) * 1.2


def test_many_siblings_that_may_have_no_more_than_their_own_keep_a_sum_that_hadoop_takes() -> None:
    """Of 0.14285714 four decimals are 0.1428: of 700 siblings 0.04 of the sum would be missing."""
    text = "0.14285714"
    old = {f"root.q{i}": read_capacity(text, "q") for i in range(700)}
    most = {path: capacity for path in old if (capacity := read_maximum(text))}
    new = capacities({path: 1.0 + i / 100 for i, path in enumerate(old)}, old, None, most=most)
    assert {one.text() for one in new.values()} == {"0.142857"}
    assert sum(one.value for one in new.values()) == pytest.approx(100.0, abs=1e-3)
    # Where four decimals are enough, there are no more.
    fewer = {f"root.q{i}": read_capacity("3.33333333", "q") for i in range(30)}
    limits = {path: capacity for path in fewer if (capacity := read_maximum("3.33333333"))}
    new = capacities({path: 1.0 + i / 100 for i, path in enumerate(fewer)}, fewer, None, most=limits)
    assert {one.text() for one in new.values()} == {"3.3333"}
