"""FAWKES' arithmetic and mechanism: properties, admission, bad scenarios; and what stands for it in YARN."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import CallError, InputError
from harness.model.resources import ZERO, Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.paper.reader import read_top
from harness.policies import CountedLedger, make_policy
from harness.systems.fawkes import scenarios as paper_clusters
from harness.systems.fawkes.manager import Manager, Remove, Resize, Start
from harness.systems.fawkes.policies import FawkesPolicy
from harness.systems.fawkes.scenarios import ClustersScenario, allocate_clusters, read_clusters
from harness.systems.fawkes.shares import Metrics, ideal_shares, make_room, weights_of, whole_nodes

NAMES = ["a", "b", "c", "d", "e"]
AMOUNTS = st.fractions(0, 1000, max_denominator=50)


@given(st.dictionaries(st.sampled_from(NAMES), AMOUNTS, min_size=1), st.data())
def test_shares_are_whole_sum_to_the_capacity_and_respect_minima(y: dict[str, Fraction], data: st.DataObject) -> None:
    least = {name: data.draw(st.integers(0, 10), label=name) for name in y}
    capacity = data.draw(st.integers(sum(least.values()), 200), label="capacity")
    weights = weights_of(y)
    assert sum(weights.values()) == 1
    nodes = whole_nodes(capacity, weights, least)
    assert sum(nodes.values()) == capacity
    ideal = ideal_shares(capacity, weights, least)
    for name in y:
        assert nodes[name] >= least[name]
        assert abs(nodes[name] - ideal[name]) < 1
    # Those above their minimum have in proportion to their weights.
    above = [name for name in y if ideal[name] > least[name]]
    for one in above:
        for other in above:
            assert ideal[one] * weights[other] == ideal[other] * weights[one]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.tuples(st.integers(0, 60), st.integers(0, 20), AMOUNTS)),
    st.integers(0, 100),
)
def test_room_is_made_above_the_minima_only(held: dict[str, tuple[int, int, Fraction]], wanted: int) -> None:
    nodes, least = {n: h[0] for n, h in held.items()}, {n: h[1] for n, h in held.items()}
    given_up = make_room(wanted, nodes, least, {n: h[2] for n, h in held.items()})
    surplus = {n: max(nodes[n] - least[n], 0) for n in held}
    assert all(0 <= given_up[n] <= surplus[n] for n in held)
    assert sum(given_up.values()) == min(wanted, sum(surplus.values()))


def test_room_is_made_in_proportion_to_the_weights() -> None:
    assert make_room(8, {"a": 30, "b": 30}, {"a": 10, "b": 10}, {"a": Fraction(3, 4), "b": Fraction(1, 4)}) == {
        "a": 6,
        "b": 2,
    }
    assert make_room(30, {"a": 15, "b": 40}, {"a": 10, "b": 10}, {"a": 1, "b": 0}) == {"a": 5, "b": 25}


def policy(name: str = "fawkes-td", **settings: str) -> FawkesPolicy:
    made = make_policy(name, settings)
    assert isinstance(made, FawkesPolicy)
    return made


def nodes_now(manager: Manager, now_s: int) -> list[object]:
    """All nodes are where they are to be."""
    return list(manager.holds(list(manager.targets().items()), now_s))


def test_admission_is_fifo_and_waits_for_minimum_shares() -> None:
    manager = Manager(60, policy("fawkes-none"))
    for name, core in (("a", 30), ("b", 40), ("c", 10)):
        manager.request(name, core, 0)
    # b does not fit beside a; c would, but it is behind b.
    assert [m.state for m in manager.members.values()] == ["waiting", "queued", "queued"]
    assert nodes_now(manager, 0) == [Start("a")]
    manager.loaded("a", 10)
    assert manager.update(60) == []  # busy since it was loaded
    assert manager.update(120) == [Remove("a"), Resize({"a": 30})]
    assert manager.removed("a", 130) == [Resize({"b": 40, "c": 10})]
    assert [m.state for m in manager.members.values()] == ["waiting", "waiting"]


def test_a_newcomer_gets_its_core_from_who_is_above_the_minimum() -> None:
    manager = Manager(60, policy())
    for name in ("a", "b"):
        manager.request(name, 10, 0)
        nodes_now(manager, 0)
        manager.loaded(name, 0)
    manager.sample("a", Metrics(waiting_tasks=300))
    manager.sample("b", Metrics(waiting_tasks=100))
    manager.update(60)
    nodes_now(manager, 60)
    assert manager.targets() == {"a": 45, "b": 15}
    manager.request("c", 10, 70)
    assert manager.targets() == {"a": 37, "b": 13, "c": 10}  # 10 by 3 : 1, 7.5 and 2.5; ties by name


def test_unbalanced_within_tau_nothing_moves() -> None:
    for tau, moved in (("1000", False), ("10", True)):
        manager = Manager(60, policy(tau=tau))
        manager.request("a", 10, 0)
        nodes_now(manager, 0)
        manager.loaded("a", 0)
        manager.sample("a", Metrics(waiting_tasks=1))
        manager.update(30)
        # A sixth of the nodes and all of the weight for 30 s: D = -25, E[D^2] = 625.
        assert manager.updates[-1].global_discrimination == 625
        assert manager.updates[-1].resized is moved


def test_the_weights_of_the_samples_are_tested_against_what_was_held_meanwhile() -> None:
    """Section 4.2.2: weights first, then discriminations. Whoever began to wait after the last update is seen at the
    next one, not at the one after it."""
    manager = Manager(20, policy(tau="10"))
    for name in ("c-1", "c-2"):
        manager.request(name, 5, 0)
        manager.holds([(name, 10)], 0)
        manager.loaded(name, 0)
    # Half of the nodes each, and by the weights in force half of the system each: nothing was unfair before.
    manager.sample("c-1", Metrics(waiting_tasks=30, running_tasks=1))
    manager.sample("c-2", Metrics(waiting_tasks=10, running_tasks=1))
    commands = manager.update(60)
    (update,) = manager.updates
    assert update.interval == {"c-1": Fraction(-15), "c-2": Fraction(15)}  # (1/2 - 3/4) 60 s
    assert update.global_discrimination == 225
    assert update.resized
    assert commands == [Resize({"c-1": 15, "c-2": 5})]


def test_ru_takes_normalised_usages() -> None:
    """Eq. (5) of what PU and DU give: 4/5 and 1/5 of the processors, 1/4 and 3/4 of the output, psi = 1/2."""
    usage = {"c-1": Metrics(processor=Fraction(8, 10), disk=Fraction(1, 100))}
    usage["c-2"] = Metrics(processor=Fraction(2, 10), disk=Fraction(3, 100))

    def weights(**settings: str) -> dict[str, object]:
        found = policy("fawkes-ru", **settings)
        return dict(found.weights({name: found.values(metrics) for name, metrics in usage.items()}))

    assert weights() == {"c-1": Fraction(21, 40), "c-2": Fraction(19, 40)}
    assert weights(normalised="false") == {"c-1": Fraction(81, 104), "c-2": Fraction(23, 104)}


def test_overall_discrimination_is_from_request_to_removal() -> None:
    manager = Manager(10, policy("fawkes-none"))
    manager.request("a", 5, 0)
    nodes_now(manager, 0)
    manager.loaded("a", 20)
    manager.update(60)
    manager.update(120)
    manager.removed("a", 130)
    # Half of the nodes for 130 s; the weight is 1 from 20 to 120 s.
    assert manager.overall == {"a": 65 - 100}
    manager.request("a", 5, 200)
    nodes_now(manager, 200)
    manager.loaded("a", 200)
    manager.update(260)
    manager.update(320)
    manager.removed("a", 320)
    assert manager.overall == {"a": 65 - 100 + 60 - 120}


GOOD = """
nodes: 20
clusters:
  a: {core: 5, metrics: [{waiting_tasks: 10}, {from_s: 100}]}
  b: {core: 5, arrival_s: 30, metrics: [{waiting_tasks: 30, running_tasks: 2}, {from_s: 150}]}
"""


def _read(text: str, source: str) -> ClustersScenario:
    return read_clusters(read_top(text, source))


def test_exact_and_the_same_again() -> None:
    scenario = _read(GOOD, "s")
    first = allocate_clusters(scenario, policy("fawkes-td")).document()
    assert first == allocate_clusters(scenario, policy("fawkes-td")).document()
    steps = first["steps"]
    assert isinstance(steps, list)
    assert [s["nodes"] for s in steps if s["time_s"] == 60] == [{"a": 5, "b": 15}]
    assert steps[-1]["nodes"] == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: 5\nclusters: {a: {core: 6}}", "wants 6 core nodes of 5"),
        ("nodes: 5\nclusters: {}", "no MR-clusters"),
        ("nodes: 0\nclusters: {a: {core: 1}}", "at least 1"),
        ("clusters: {a: {core: 1}}", "has no nodes"),
        ("nodes: 5\nclusters: {a: {}}", "has no core"),
        ("nodes: 5\nclusters: {a: {core: 1, cores: 2}}", "unknown field 'cores'"),
        ("nodes: 5\nclusters: {a: {core: 1, metrics: [{waiting: 2}]}}", "unknown field 'waiting'"),
        (
            "nodes: 5\nclusters: {a: {core: 1, metrics: [{processor: 1.5}]}}",
            ":2: processor is '1.5'; give a number from 0 to 1",
        ),
        ("nodes: 5\nclusters: {a: {core: 1, metrics: [{from_s: 5}, {from_s: 5}]}}", "order of from_s"),
        (
            "nodes: 5\nclusters: {a: {core: 1, arrival_s: -1}}",
            ":2: arrival_s of 'a' is '-1'; give a number from 0 to 1,000,000,000",
        ),
        ("nodes: 5\nclusters: {a: {core: .inf}}", "core of 'a'"),
        ("nodes: 5\nsample_s: 0\nclusters: {a: {core: 1}}", "sample_s is 0"),
        ("nodes: 5\nclusters: [a]", "not a mapping"),
        ("nodes: 5\nclusters: {a: {core: 1, metrics: 5}}", "not a list"),
    ],
)
def test_bad_scenarios_are_one_line_with_the_place(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _read(text, "bad.yaml")
    assert message in caught.value.line()
    assert caught.value.line().startswith("bad.yaml")
    assert "\n" not in caught.value.line()


def test_a_scenario_without_end_says_so_and_until_s_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "nodes: 5\nsample_s: 1\nclusters: {a: {core: 1, metrics: [{waiting_tasks: 1}]}}"
    monkeypatch.setattr(paper_clusters, "MAX_LOOKS", 2_000)
    with pytest.raises(InputError, match="give until_s"):
        allocate_clusters(_read(text, "s"), policy())
    answer = allocate_clusters(_read(text + "\nuntil_s: 600", "s"), policy())
    assert answer.steps[-1]["time_s"] == 600


def test_samples_further_apart_than_updates_are_refused() -> None:
    """An update without a sample would remove MR-clusters that work."""
    text = "nodes: 5\nsample_s: 90\nclusters: {a: {core: 1, metrics: [{waiting_tasks: 1}]}}\nuntil_s: 600"
    scenario = _read(text, "s.yaml")
    with pytest.raises(InputError, match=r"s\.yaml:2: sample_s is 90, the policy's period 60 s"):
        allocate_clusters(scenario, policy())
    assert allocate_clusters(scenario, policy(period="90")).steps[-1]["nodes"] == {"a": 5}
    with pytest.raises(InputError, match="sample_s is 10, the policy's period 5 s"):
        allocate_clusters(_read(GOOD, "s"), policy(period="5"))


def test_other_policies_are_refused() -> None:
    with pytest.raises(CallError, match="ltrf does not divide nodes"):
        allocate_clusters(_read(GOOD, "s"), make_policy("ltrf"))


# --- YARN ---


def view(pending: dict[str, int], least: dict[str, int] | None = None, period_s: float = 60.0) -> Snapshot:
    queues = {"root": QueueView("root", None, False)}
    for name, count in sorted(pending.items()):
        queues[f"root.{name}"] = QueueView(
            f"root.{name}",
            "root",
            True,
            demand=Resource(1024 * count, count),
            pending_containers=count,
            min_share=Resource(1024 * (least or {}).get(name, 0), (least or {}).get(name, 0)),
        )
    return Snapshot(100.0, Resource(1024 * 60, 60), queues, period_s)


def minima(name: str, snapshot: Snapshot, **settings: str) -> dict[str, int]:
    shares = policy(name, **settings).plan(snapshot, CountedLedger()).min_shares
    return {queue.removeprefix("root."): share.vcores for queue, share in shares.items()}


def test_minimum_shares_follow_the_weights_above_the_core() -> None:
    assert minima("fawkes-td", view({"a": 30, "b": 10})) == {"a": 45, "b": 15}
    # Half of the cluster is core: b keeps a quarter of it all, however little waits.
    assert minima("fawkes-td", view({"a": 99, "b": 1})) == {"a": 45, "b": 15}
    assert minima("fawkes-td", view({"a": 99, "b": 1}), core="0.2") == {"a": 54, "b": 6}
    assert minima("fawkes-eq", view({"a": 99, "b": 1})) == {"a": 30, "b": 30}
    assert minima("fawkes-none", view({"a": 99, "b": 1})) == {"a": 15, "b": 15}


def test_from_outside_nothing_moves_below_tau() -> None:
    balanced = view({"a": 50, "b": 50}, least={"a": 31, "b": 29})
    # d is 1 / 60 each way for 60 s: E[D^2] = 1.
    assert minima("fawkes-td", balanced) == {"a": 31, "b": 29}
    assert minima("fawkes-td", balanced, tau="0.5") == {"a": 30, "b": 30}
    # On a real RM the administrator configured other ones than those in force: these count.
    shown = {
        name: replace(queue, min_share=ZERO, min_share_in_force=queue.min_share)
        for name, queue in balanced.queues.items()
    }
    assert minima("fawkes-td", replace(balanced, queues=shown)) == {"a": 31, "b": 29}


def changed(snapshot: Snapshot, name: str, **more: object) -> Snapshot:
    queues = dict(snapshot.queues)
    queues[name] = replace(queues[name], **more)  # type: ignore[arg-type]
    return replace(snapshot, queues=queues)


def test_minimum_shares_stay_between_the_administrators_minimum_and_maximum() -> None:
    waiting = view({"a": 99, "b": 1})
    capped = changed(waiting, "root.a", max_share=Resource(1024 * 20, 20))
    assert minima("fawkes-td", capped) == {"a": 20, "b": 40}
    assert minima("fawkes-none", changed(waiting, "root.a", max_share=Resource(1024 * 9, 9))) == {"a": 9, "b": 15}
    one = changed(waiting, "root.a", max_share=Resource(1024 * 60, 20))
    assert minima("fawkes-td", one) == {"a": 20, "b": 40}
    # b's core share is 15 of 60; what the snapshot shows as in force besides is ours.
    least = changed(waiting, "root.b", min_share=Resource(1024 * 25, 25), min_share_in_force=ZERO)
    assert minima("fawkes-td", least) == {"a": 35, "b": 25}
    assert minima("fawkes-none", least) == {"a": 15, "b": 25}


def test_inside_the_scheduler_usage_over_ideal_share_decides() -> None:
    keys = policy("fawkes-td").keys(view({"a": 30, "b": 10}), CountedLedger())
    assert keys["root.a"] == keys["root.b"] == 0
    assert policy("fawkes-td").plan(view({"a": 1}), CountedLedger()).order.measure == "keys"
