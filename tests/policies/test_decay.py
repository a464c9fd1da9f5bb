"""The ``decay-*`` policies and fading ledgers against the formulas of the schedulers that they are named after."""

from __future__ import annotations

import gzip
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import CallError
from harness.cli import main
from harness.ledger import Ledger, Usage
from harness.ledger.decay import LN2, WINDOW_PARTS, half_life_factor
from harness.model.plan import LedgerSettings
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import CountedLedger
from harness.policies.decay_slurm import fair_tree, level_fs
from harness.policies.registry import make_policy
from harness.policies.tree import tree_of


def view(weights: Mapping[str, float], time_s: float = 0.0, **more: Any) -> Snapshot:
    """A snapshot of leaves (and their parents, by their dotted names) with weights; 100 vcores and GiB."""
    queues = {"root": QueueView("root", None, False)}
    for name in sorted(weights):
        parent = name.rpartition(".")[0]
        leaf = not any(other.startswith(name + ".") for other in weights)
        queues[name] = QueueView(name, parent, leaf, weights[name], **more.get(name.replace(".", "_"), {}))
    return Snapshot(time_s, Resource(102400, 100), queues)


@given(st.floats(0, 1e4), st.floats(1e-3, 1e3))
def test_the_half_life_factor_is_a_power_of_one_half(interval: float, half_life: float) -> None:
    assert half_life_factor(interval, half_life) == pytest.approx(0.5 ** (interval / half_life), rel=1e-13, abs=1e-300)


rates = st.lists(st.integers(0, 100), min_size=1, max_size=40)


@given(rates, st.floats(0.5, 200), st.floats(1, 100))
@settings(max_examples=60, deadline=None)
def test_smoothed_usage_is_that_of_htcondor_and_kueue(steps: list[int], half_life: float, sampling: float) -> None:
    ledger = Ledger(LedgerSettings("vcores", half_life_s=half_life), {"a": 1.0}, Resource(1024, 100))
    pi = usage = raw = 0.0
    beta = 0.5 ** (sampling / half_life)
    a = 1 - 0.5 ** (sampling / half_life)
    htcondor = make_policy("decay-htcondor", {"half_life": half_life})
    kueue = make_policy("decay-kueue", {"half_life": half_life})
    pi = 0.5
    for number, rate in enumerate(steps, start=1):
        ledger.observe(number * sampling, {"a": Usage(0.0, rate * sampling)})
        pi = beta * pi + (1 - beta) * rate
        usage = (1 - a) * usage + a * rate
        raw = raw * beta + rate * (1 - beta) * half_life / LN2
        counted = ledger.counted()["a"]
        assert counted == pytest.approx(raw, rel=1e-9, abs=1e-9)
        assert htcondor.figure(number * sampling, counted, 100) == pytest.approx(max(pi, 0.5), rel=1e-9)
        assert kueue.figure(number * sampling, counted, 100) == pytest.approx(usage, rel=1e-9, abs=1e-9)


#: Jobs of a queue: start and length in seconds, vcores.
slurm_jobs = st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 5000), st.integers(1, 64)), min_size=1, max_size=8)


def raw_usage_of_slurm(jobs: Sequence[tuple[int, int, int]], until_s: int, period_s: int, half_life_s: float) -> float:
    """Slurm's usage_raw (priority_multifactor.c): decay a second 1 - 0.693 / half-life. Every period what there is
    decays by the period; what ran since counts as if all of it were as old as the time it ran, and counts at the
    period's end, or at the job's."""
    second = 1 - 0.693 / half_life_s
    usage = 0.0
    for tick in range(0, until_s + 1, period_s):
        for start, length, vcores in jobs:
            end = start + length
            if tick - period_s < end < tick and end > start:
                ran = end - max(start, tick - period_s)
                usage += ran * second**ran * vcores
        usage *= second**period_s
        for start, length, vcores in jobs:
            if start < tick <= start + length:
                ran = tick - max(start, tick - period_s)
                usage += ran * second**ran * vcores
    return usage


def test_a_ledger_with_a_half_life_orders_users_as_volcano_does() -> None:
    """300 histories, and what Volcano's own functions make of them: tests/oracle/peers/README.md. In each cycle of a
    second Volcano lets its usage fade and then adds what runs: it has up to that second's fading more."""
    path = Path(__file__).parents[1] / "oracle" / "peers" / "volcano.json.gz"
    cases = json.loads(gzip.decompress(path.read_bytes()))["cases"]
    assert len(cases) == 300
    for case in cases:
        half_life_s = 60.0 * case["half_life_min"]
        users = [f"u{at}" for at in range(len(case["usage"]))]
        ledger = Ledger(LedgerSettings("vcores", half_life_s=half_life_s), dict.fromkeys(users, 1.0), Resource(1, 1000))
        now = 0.0
        for seconds, *running in case["steps"]:
            now += seconds
            ledger.observe(now, {user: Usage(0.0, n * seconds) for user, n in zip(users, running, strict=True)})
        ours = [ledger.counted()[user] for user in users]
        for own, theirs in zip(ours, case["usage"], strict=True):
            # Volcano forgets who has less than a hundredth left.
            assert own * (1 - 1e-9) - 0.01 <= theirs <= own * (1 + LN2 / half_life_s) + 1e-9
        for first, then in itertools.pairwise(case["order"]):
            # Volcano takes a difference of up to one second of a resource for none.
            assert ours[first] <= ours[then] * (1 + LN2 / half_life_s) + 1.0


@given(slurm_jobs, st.sampled_from([(300, 7 * 86400), (300, 86400), (300, 3600), (60, 3600)]), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_decayed_usage_is_slurms_but_for_its_steps(
    jobs: list[tuple[int, int, int]], slurm: tuple[int, int], periods: int
) -> None:
    """Slurm's steps lose: what ran counts as up to two periods older than it is, and 0.693 is not ln 2."""
    period, half_life = slurm
    until = 300 * periods
    ledger = Ledger(LedgerSettings("vcores", half_life_s=half_life), {"a": 1.0}, Resource(1024, 1000))
    moments = sorted({0, until, *(t for start, length, _ in jobs for t in (start, start + length) if t < until)})
    for begin, end in itertools.pairwise(moments):
        rate = sum(vcores for start, length, vcores in jobs if start <= begin < start + length)
        ledger.observe(end, {"a": Usage(0.0, rate * (end - begin))})
    ours, theirs = ledger.counted()["a"], raw_usage_of_slurm(jobs, until, period, half_life)
    assert (ours == 0) == (theirs == 0)
    if ours:
        off = until * (LN2 / half_life + math.log1p(-0.693 / half_life))
        assert -off - 1e-9 <= math.log(ours / theirs) <= 2 * period * LN2 / half_life + 1e-9


@given(rates, st.integers(1, 30), st.floats(0.1, 7))
@settings(max_examples=60, deadline=None)
def test_a_sliding_window_holds_what_was_used_within_it(steps: list[int], parts: int, length: float) -> None:
    """Observed at the ends of the window's parts it is exact: the sum over the parts that it holds."""
    part = length / WINDOW_PARTS
    ledger = Ledger(LedgerSettings("vcores", window_s=length), {"a": 1.0}, Resource(1024, 100))
    history: list[float] = []
    for number, rate in enumerate(steps, start=1):
        history += [rate * part] * parts
        ledger.observe(number * parts * part, {"a": Usage(0.0, rate * parts * part)})
        assert ledger.counted()["a"] == pytest.approx(math.fsum(history[-WINDOW_PARTS:]), rel=1e-6, abs=1e-6)


def test_a_window_forgets_all_after_its_length() -> None:
    ledger = Ledger(LedgerSettings("memory", window_s=600.0), {"a": 1.0, "b": 1.0}, Resource(1024, 1))
    ledger.observe(100.0, {"a": Usage(51200.0, 0.0)})
    ledger.observe(650.0, {})
    assert ledger.counted()["a"] == pytest.approx(25600.0, rel=0.1)  # half of it has left
    ledger.observe(710.0, {})
    assert ledger.counted()["a"] == 0.0
    ledger.observe(1e6, {})
    ledger.observe(1e6 + 10, {"b": Usage(100.0, 0.0)})
    assert ledger.counted() == {"a": 0.0, "b": pytest.approx(100.0)}


@pytest.mark.parametrize("wrong", [{"window_s": 5.0, "half_life_s": 5.0}, {"window_s": 5.0, "round_s": 9.0}])
def test_a_window_goes_with_nothing_else(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="window"):
        LedgerSettings(**wrong)  # type: ignore[arg-type]


def brute_ranks(lf: Mapping[str, float], children: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Fair Tree by sorting whole paths: leaves by the LFs along their path, higher first; equal paths tie."""
    paths: dict[str, tuple[float, ...]] = {}

    def walk(name: str, above: tuple[float, ...]) -> None:
        for child in children.get(name, ()):
            along = (*above, -lf[child])
            if child in children:
                walk(child, along)
            else:
                paths[child] = along

    walk("root", ())
    return {leaf: sum(other < along for other in paths.values()) for leaf, along in paths.items()}


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), min_size=9, max_size=9))
@settings(max_examples=100, deadline=None)
def test_fair_tree_ranks_by_the_path_and_merges_the_children_of_ties(figures: list[tuple[int, int]]) -> None:
    names = [f"root.g{g}.q{i}" for g in range(3) for i in range(3)]
    weights = {name: float(w) for name, (w, _) in zip(names, figures, strict=True)}
    usage = {name: float(u) for name, (_, u) in zip(names, figures, strict=True)}
    weights |= {f"root.g{g}": 1.0 for g in range(3)}
    tree = tree_of(view(weights))
    used = tree.sum_up([usage.get(name, 0.0) for name in tree.names])
    lf = level_fs(tree, used)
    ranked = {tree.names[q]: place for q, place in fair_tree(tree, used).items()}
    children = {"root": [f"root.g{g}" for g in range(3)]}
    children |= {f"root.g{g}": [f"root.g{g}.q{i}" for i in range(3)] for g in range(3)}
    assert ranked == brute_ranks(dict(zip(tree.names, lf, strict=True)), children)


def test_a_leaf_that_ties_with_a_parent_ranks_with_its_best_leaf() -> None:
    weights = {"root.u": 1.0, "root.g": 1.0, "root.g.x": 1.0, "root.g.y": 1.0, "root.z": 1.0}
    tree = tree_of(view(weights))
    used = tree.sum_up(
        [{"root.u": 4.0, "root.g.x": 3.0, "root.g.y": 1.0, "root.z": 9.0}.get(n, 0.0) for n in tree.names]
    )
    ranked = {tree.names[q]: place for q, place in fair_tree(tree, used).items()}
    # u and g both have LF (1/3) / (4/17); y, with the lesser usage, is g's best.
    assert ranked == {"root.u": 0, "root.g.y": 0, "root.g.x": 2, "root.z": 3}


@pytest.mark.parametrize("faded", [0.1, 0.7, 1 / 3, 0.99999])
def test_groups_that_used_the_same_tie_whatever_the_rounding(faded: float) -> None:
    weights = {f"root.{name}": 1.0 for name in ("g", "g.a", "g.b", "h", "h.c", "h.d")}
    tree = tree_of(view(weights))
    # 50 against 30 + 20, faded alike: sums of floats need not be equal.
    used = {"root.g.a": 50 * faded, "root.h.c": 30 * faded, "root.h.d": 20 * faded}
    ranked = fair_tree(tree, tree.sum_up([used.get(name, 0.0) for name in tree.names]))
    by_name = {tree.names[q]: rank for q, rank in ranked.items()}
    assert by_name == {"root.g.b": 0, "root.h.d": 1, "root.h.c": 2, "root.g.a": 3}


def test_slurms_ranks_stand_still_between_two_calculations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """PriorityCalcPeriod of four steps: nobody's usage is known before step 5; then B comes first for four steps."""
    text = "capacity: 10\nqueues: {A: {}, B: {}}\narrivals: [{A: 200, B: 200}]\nsteps: 12\n"
    pair = ("--policy", "decay-slurm", "--set", "half_life=1000000")
    at_once = [step["A"] for step in allocated(tmp_path, capsys, text, *pair)["steps"]]
    assert at_once == [10, 0] * 6
    stepwise = [step["A"] for step in allocated(tmp_path, capsys, text, *pair, "--set", "calc_period=4")["steps"]]
    assert stepwise == [10] * 4 + [0] * 4 + [10] * 4

    policy = make_policy("decay-slurm", {"calc_period": 300})
    asking = {f"root_{q}": {"demand": Resource(1024, 1), "pending_containers": 1} for q in "ab"}

    def first(time_s: float, a: float, b: float) -> bool:
        weights = policy.plan(
            view({"root.a": 1.0, "root.b": 1.0}, time_s, **asking), CountedLedger({"root.a": a, "root.b": b})
        ).weights
        return weights["root.a"] > weights["root.b"]

    assert [first(0.0, 5, 9), first(299.0, 50, 9), first(300.0, 50, 9), first(599.0, 50, 99)] == [
        True,
        True,
        False,
        False,
    ]
    assert first(601.0, 50, 99), "what had come by the next calculation counts"


def test_level_fairshare_is_shares_over_usage() -> None:
    tree = tree_of(view({"root.a": 3.0, "root.b": 1.0, "root.c": 4.0}))
    used = tree.sum_up([{"root.a": 30.0, "root.b": 10.0}.get(n, 0.0) for n in tree.names])
    lf = dict(zip(tree.names, level_fs(tree, used), strict=True))
    assert lf == {
        "root": 1.0,
        "root.a": pytest.approx((3 / 8) / (30 / 40)),
        "root.b": pytest.approx((1 / 8) / (10 / 40)),
        "root.c": math.inf,
    }


def test_kueues_entry_penalty_counts_at_once() -> None:
    policy = make_policy("decay-kueue", {"half_life": 600, "sampling": 60})
    a = 1 - 0.5**0.1
    held = {"root_a": {"allocated": Resource(0, 10)}}
    keys = policy.keys(view({"root.a": 1.0, "root.b": 2.0}, **held), CountedLedger({"root.b": 600.0}))
    assert keys["root.a"] == pytest.approx(a * 10)
    assert keys["root.b"] == pytest.approx(600 * LN2 / 600 / 2)


@pytest.mark.parametrize("k", [0, 0.5, 1, 4])
def test_kais_portions_are_its_formula(k: float) -> None:
    policy = make_policy("decay-kai", {"k": k, "window": 1000})
    weights = {"root.a": 1.0, "root.b": 1.0, "root.c": 2.0}
    counted = {"root.a": 60_000.0, "root.b": 10_000.0, "root.c": 20_000.0}  # of 100 vcores for 1,000 s
    snapshot = view(weights, 5000.0)
    found = policy.plan(snapshot, CountedLedger(counted)).weights
    p = [max(0.0, w + k * (w - u)) for w, u in ((0.25, 0.6), (0.25, 0.1), (0.5, 0.2))]
    wanted = {name: 1000 * part / sum(p) for name, part in zip(sorted(weights), p, strict=True)}
    for name, weight in wanted.items():
        assert found[name] == pytest.approx(max(weight, 1e-3), rel=1e-3)


def test_kai_before_a_window_is_full_counts_the_time_that_there_was() -> None:
    policy = make_policy("decay-kai", {"window": 1000})
    assert policy.figure(100.0, 5000.0, 100.0) == 0.5
    assert policy.figure(0.0, 0.0, 100.0) == 0.0
    tumbling = make_policy("decay-kai", {"window": 1000, "window_type": "tumbling"})
    assert tumbling.figure(1200.0, 10_000.0, 100.0) == 0.5


@pytest.mark.parametrize("name", ["decay-kai", "decay-htcondor"])
@pytest.mark.parametrize("sets", [{}, {"window_type": "tumbling", "window": 1000}])
def test_time_counts_from_the_ledgers_start(name: str, sets: dict[str, Any]) -> None:
    """A controller's clock begins in 1970, the simulator's at 0: the same hour gives the same weights."""
    if name != "decay-kai":
        sets = {}
    policy, weights = make_policy(name, sets), {"root.a": 1.0, "root.b": 1.0}
    found = []
    for start_s in (0.0, 1_795_000_123.0):
        settings_ = policy.plan(view(weights, start_s), CountedLedger()).order.ledger
        ledger = Ledger(settings_, weights, Resource(102400, 100), start_s=start_s)
        ledger.observe(start_s + 3600.0, {"root.a": Usage(0.0, 50.0 * 3600.0)})
        found.append(policy.plan(view(weights, start_s + 3600.0), ledger).weights)
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert found[0]["root.a"] < found[0]["root.b"]


ALONE = "capacity: 100\nqueues: {A: {}, B: {}}\narrivals: [{A: 4800}]\nsteps: 48\n"


def allocated(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, *arguments: str) -> dict[str, Any]:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["allocate", str(tmp_path / "s.yaml"), "--json", *arguments])
    assert stop.value.code == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_one_user_alone_for_two_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Golden: 48 h on 100 cores with a half-life of a day is a priority of 75.1, against 0.5."""
    answer = allocated(tmp_path, capsys, ALONE, "--policy", "decay-htcondor", "--set", "half_life=24")
    assert answer["counted"] == {"A": pytest.approx(75.125), "B": 0.5}


BURST = "capacity: 100\nqueues: {A: {}, B: {}}\narrivals: [{A: 4800}, {}, {}, {B: 1000}]\nsteps: 5\n"


def test_a_step_on_paper_by_each_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A alone for three steps, half-life 4: what each divides in step 4, by hand."""

    def step4(policy: str, *sets: str) -> dict[str, int]:
        pairs = [word for pair in sets for word in ("--set", pair)]
        steps = allocated(tmp_path, capsys, BURST, "--policy", policy, *pairs)["steps"]
        found: dict[str, int] = steps[3]
        return found

    pi = 100 * (1 - 0.5**0.75) + 0.5 * 0.5**0.75
    b = 100 * pi / (pi + 0.5)
    assert step4("decay-htcondor", "half_life=4")["B"] == pytest.approx(b, abs=1)
    assert step4("decay-slurm", "half_life=4") == {"A": 0, "B": 100}
    assert step4("decay-kueue", "half_life=4", "sampling=1") == {"A": 0, "B": 100}
    # U of A is 1 so far: P_A = 0.5 + k (0.5 - 1).
    k = 0.5
    p_a, p_b = 0.5 - 0.5 * k, 0.5 + 0.5 * k
    assert step4("decay-kai", "half_life=4", f"k={k}")["B"] == pytest.approx(100 * p_b / (p_a + p_b), abs=1)


def test_ltrf_with_a_half_life_forgives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    longest = "capacity: 10\nqueues: {A: {}, B: {}}\narrivals: [{A: 900}, {}, {}, {}, {}, {B: 300}]\nsteps: 40\n"

    def paid_back(*sets: str) -> int:
        steps = allocated(tmp_path, capsys, longest, "--policy", "ltrf", *sets)["steps"]
        return sum(step["B"] - step["A"] for step in steps[5:20])

    assert paid_back() == 50
    assert 0 < paid_back("--set", "half_life=2") < 25
    assert paid_back("--set", "window=1") <= 1


def test_from_outside_slurms_ranks_are_of_those_that_ask() -> None:
    """Weights tell four places apart: idle queues use none of them up, as long as there are more places than that."""
    names = [f"root.q{at}" for at in range(6)]
    asking = {f"root_q{at}": {"demand": Resource(1024, 1), "pending_containers": 1} for at in (3, 4, 5)}
    counted = CountedLedger({name: 100.0 * (at + 1) for at, name in enumerate(names)})
    policy = make_policy("decay-slurm")
    weights = policy.plan(view(dict.fromkeys(names, 1.0), **asking), counted).weights
    assert [weights[name] for name in names] == [1e6, 1e6, 1e6, 1e6, 1e3, 1.0]
    # Nobody asks, or weights tell all apart: the places of all.
    weights = policy.plan(view(dict.fromkeys(names, 1.0)), counted).weights
    assert [weights[name] for name in names[:3]] == [1e6, 1e3, 1.0]
    weights = policy.plan(view(dict.fromkeys(names[:4], 1.0), **asking), counted).weights
    assert [weights[name] for name in names[:3]] == [1e6, 1e3, 1.0]


@given(rates, st.floats(1, 200))
@settings(max_examples=60, deadline=None)
def test_without_a_floor_in_its_memory_a_priority_is_at_most_half_a_core_below_htcondors(
    steps: list[int], half_life: float
) -> None:
    """docs/reference/decay.md: HTCondor raises its recursion to 0.5 at every sample, the ledger does not."""
    ledger = Ledger(LedgerSettings("vcores", half_life_s=half_life), {"a": 1.0}, Resource(1024, 100))
    policy, beta, pi = make_policy("decay-htcondor", {"half_life": half_life}), 0.5 ** (10 / half_life), 0.5
    for number, rate in enumerate(steps, start=1):
        cores = rate / 50
        ledger.observe(number * 10.0, {"a": Usage(0.0, cores * 10)})
        pi = max(beta * pi + (1 - beta) * cores, 0.5)
        assert -1e-9 <= pi - policy.figure(number * 10.0, ledger.counted()["a"], 100) < 0.5
    day = 86_400.0
    daily = make_policy("decay-htcondor")
    for idle, priority in ((0.0, 0.75), (10.0, 0.50024)):
        late = Ledger(LedgerSettings("vcores", half_life_s=day), {"a": 1.0}, Resource(1024, 100))
        late.observe(idle * day, {})
        late.observe((idle + 1) * day, {"a": Usage(0.0, day)})
        assert daily.figure((idle + 1) * day, late.counted()["a"], 100) == pytest.approx(priority, abs=1e-5)


def test_htcondors_first_priority_is_half_a_core_of_any_resource() -> None:
    """Of 100 cores a has used 10 on average, b none: with vcores 10 to 0.5, and the same in parts of the cluster."""
    week = 7 * 86_400.0
    parts = {"vcores": 10.0, "dominant": 0.1}
    for resource, used in parts.items():
        policy = make_policy("decay-htcondor", {"resource": resource, "half_life": 3600.0})
        counted = CountedLedger({"root.a": used * 3600.0 / math.log(2)})
        weights = policy.plan(view({"root.a": 1.0, "root.b": 1.0}, time_s=week), counted).weights
        assert weights["root.b"] / weights["root.a"] == pytest.approx(20, rel=1e-3), resource


GROUPS = """
capacity: 120
queues: {A: {weight: 1}, B: {weight: 1}, G: {weight: 2, children: {C: {}, D: {}}}}
arrivals: [{C: 480}, {}, {}, {}, {A: 500, B: 500, C: 500, D: 500}]
steps: 5
"""


def test_htcondors_groups_divide_by_quota_and_users_by_priority(tmp_path: Path, capsys: Any) -> None:
    """G had everything for four steps and still gets its half; within it C, who had it, comes after D."""
    half_life = "half_life=4"
    step = allocated(tmp_path, capsys, GROUPS, "--policy", "decay-htcondor", "--set", half_life)["steps"][4]
    assert (step["A"], step["B"], step["C"] + step["D"]) == (30, 30, 60)
    pi = 120 * 0.5 + 0.5 * 0.5
    assert step["C"] == pytest.approx(60 * 0.5 * 0.5 / (pi + 0.5 * 0.5), abs=1)
    pair = ("--policy", "decay-htcondor", "--set", half_life, "--set", "groups=priority")
    level = allocated(tmp_path, capsys, GROUPS, *pair)["steps"][4]
    assert level["C"] + level["D"] < 5


def test_users_beside_groups_share_the_quota_of_those_without_a_group(tmp_path: Path, capsys: Any) -> None:
    """B is idle: A alone has the quota of both, half of the pool, and not a third of it."""
    text = GROUPS.replace("B: 500, ", "")
    step = allocated(tmp_path, capsys, text, "--policy", "decay-htcondor", "--set", "half_life=4")["steps"][4]
    assert (step["A"], step["C"] + step["D"]) == (60, 60)


def test_fairshare_parent_is_slurms() -> None:
    """A parent's children compete beside its siblings; a user's LF is infinite, and its shares are not counted."""
    weights = {"root.g": 9.0, "root.g.a": 1.0, "root.g.b": 2.0, "root.c": 1.0, "root.d": 1.0}
    tree = tree_of(view(weights))
    used = tree.sum_up(
        [{"root.g.a": 4.0, "root.g.b": 1.0, "root.c": 3.0, "root.d": 8.0}.get(n, 0.0) for n in tree.names]
    )
    through = frozenset({tree.index["root.g"], tree.index["root.d"]})
    lf = dict(zip(tree.names, level_fs(tree, used, through), strict=True))
    assert lf["root.g.a"] == pytest.approx((1 / 4) / (4 / 16))
    assert lf["root.g.b"] == pytest.approx((2 / 4) / (1 / 16))
    assert lf["root.c"] == pytest.approx((1 / 4) / (3 / 16))
    assert lf["root.d"] == math.inf
    ranked = {tree.names[q]: rank for q, rank in fair_tree(tree, used, through).items()}
    assert ranked == {"root.d": 0, "root.g.b": 1, "root.c": 2, "root.g.a": 3}
    policy = make_policy("decay-slurm", {"parent": "root.g, root.d"})
    counted = CountedLedger({tree.names[q]: used[q] for q in tree.leaves})
    found = policy.plan(view(weights), counted).weights
    assert found["root.d"] > found["root.g"] > found["root.c"]


def test_fairshare_parent_of_a_queue_that_is_not_there_is_refused() -> None:
    with pytest.raises(CallError, match=r"root\.nobody"):
        make_policy("decay-slurm", {"parent": "root.nobody"}).plan(view({"root.a": 1.0}), CountedLedger())
