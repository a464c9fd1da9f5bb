"""LTYARN's algorithms and equations, written a second time from the paper alone, slowly, against the product.

Nothing here calls what it checks: Algorithms 1 and 2 are loops over unit tasks, the integrals are sums over containers.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.paper.steps import ScenarioQueue, StepsScenario
from harness.paper.units import allocate
from harness.policies.registry import make_policy
from harness.results.metrics import fairness_degree, sharing_benefit_and_loss
from harness.sim.setup import SimResult, SimSetup
from harness.sim.simulate import Simulation
from harness.yarn.fair.parse import parse_allocations
from tests.ledger.quantum import Quantum

NEVER = math.inf


@dataclass
class Node:
    """A queue on paper: a group has children, a user tasks."""

    name: str
    weight: Fraction
    children: list[Node] = field(default_factory=list)
    pending: int = 0
    used: Fraction = Fraction(0)
    wait_since: int | None = None

    def users(self) -> list[Node]:
        return [self] if not self.children else [user for child in self.children for user in child.users()]

    def total(self) -> Fraction:
        return sum((user.used for user in self.users()), Fraction(0))

    def demands(self) -> bool:
        return any(user.pending for user in self.users())


def least(nodes: list[Node]) -> Node:
    """The demanding one with the smallest U / w, ties by name."""
    return min((node for node in nodes if node.demands()), key=lambda node: (node.total() / node.weight, node.name))


def by_the_paper(
    tops: list[Node], capacity: int, arrivals: list[dict[str, int]], steps: int, rule: str, t_wait: float, eta: Fraction
) -> tuple[list[dict[str, int]], dict[str, Fraction]]:
    """Algorithm 1 (``rule`` ltrf), 2 (hltrf), and 5.2.1 (naive-hltrf), tasks of one unit and one step; eq. (5.7)."""
    root = Node("root", Fraction(1), tops)
    users = root.users()
    weights = sum(user.weight for user in users)
    found = []
    for step in range(steps):
        for user in users:
            new = arrivals[step].get(user.name, 0) if step < len(arrivals) else 0
            if new and not user.pending:
                user.wait_since = step
            user.pending += new
        given = {user.name: 0 for user in users}
        for _ in range(capacity):
            if not root.demands():
                break
            chosen = least(users)
            if rule != "ltrf":
                assert chosen.wait_since is not None
                starved = rule == "hltrf" and step - chosen.wait_since >= t_wait
                if not starved:
                    chosen = root
                    while chosen.children:
                        chosen = least(chosen.children)
            share = capacity * chosen.weight / weights
            held = given[chosen.name]
            counted = [min(n, share) + max(n - share, Fraction(0)) * eta for n in (Fraction(held), Fraction(held + 1))]
            chosen.used += counted[1] - counted[0]
            given[chosen.name] += 1
            chosen.pending -= 1
            chosen.wait_since = step if chosen.pending else None
        found.append(given)
    return found, {user.name: user.used for user in users}


def tree_of(draw: random.Random) -> list[Node]:
    names = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

    def made(depth: int) -> Node:
        weight = Fraction(draw.randint(1, 12), draw.choice([1, 2, 4]))
        if depth < 3 and draw.random() < 0.4:
            return Node("g" + next(names), weight, [made(depth + 1) for _ in range(draw.randint(1, 3))])
        return Node(next(names), weight)

    return [made(1) for _ in range(draw.randint(1, 3))]


def queues_of(nodes: list[Node]) -> tuple[ScenarioQueue, ...]:
    made = [ScenarioQueue(node.name, node.weight, queues_of(node.children)) for node in nodes]
    return tuple(sorted(made, key=lambda queue: queue.name))


@pytest.mark.parametrize("rule", ["ltrf", "naive-hltrf", "hltrf"])
def test_unit_tasks_on_random_trees_go_to_whom_the_paper_says(rule: str) -> None:
    for seed in range(150):
        draw = random.Random(f"{rule}{seed}")
        tops = tree_of(draw)
        users = [user.name for top in tops for user in top.users()]
        capacity, steps = draw.randint(1, 9), draw.randint(1, 12)
        arrivals = [
            {name: draw.randint(0, 2 * capacity) for name in users if draw.random() < 0.4} for _ in range(steps)
        ]
        eta = draw.choice([Fraction(1), Fraction(1, 2), Fraction(1, 10)])
        t_wait = draw.choice([0, 1, 2, 5]) if rule == "hltrf" else NEVER
        sets = {"discount": str(float(eta))} | ({"t_wait": str(t_wait)} if rule == "hltrf" else {})
        scenario = StepsScenario(capacity, queues_of(tops), tuple(arrivals), steps)
        answer = allocate(scenario, make_policy(rule, sets))
        given, used = by_the_paper(tops, capacity, arrivals, steps, rule, t_wait, eta)
        assert answer.steps == given, seed
        assert answer.counted == used, seed


# --- tasks that last, in the scheduler ---

MB = 1024
#: yarn.scheduler.fair.update-interval-ms.
UPDATE_MS = 500
TREE = (
    '<allocations><queue name="g"><queue name="a"/><queue name="b"/></queue><queue name="h"><queue name="c"/>'
    '<queue name="d"/><queue name="e"/></queue></allocations>'
)
PARENT = {"root.g.a": "root.g", "root.g.b": "root.g", "root.h.c": "root.h", "root.h.d": "root.h", "root.h.e": "root.h"}
LEAVES = tuple(PARENT)


def random_setup(draw: random.Random, rule: str, sets: Mapping[str, str]) -> SimSetup:
    """A few nodes of one-GB containers, jobs without masters whose tasks all ask from the submission on."""
    jobs = []
    for number in range(draw.randint(3, 12)):
        seconds = Duration("uniform", low_s=1.0, high_s=draw.choice([3.0, 10.0, 40.0]))
        stage = Stage("map", draw.randint(1, 40), Resource(MB, 1), seconds)
        submit_s = draw.choice([0.0, 0.0, draw.uniform(0, 90)])
        queue = draw.choice(LEAVES)
        jobs.append(JobSpec(f"j{number}", queue, "mapreduce", Resource(), (stage,), submit_s=round(submit_s, 3)))
    entitlements = {name: draw.choice([1.0, 1.0, 2.0, 0.5]) for name in (*LEAVES, "root.g", "root.h")}
    nodes = tuple(NodeSpec(f"n{i}", draw.choice([2, 4]) * MB, 8) for i in range(draw.randint(1, 4)))
    return SimSetup(
        nodes=nodes,
        allocations=parse_allocations(TREE),
        jobs=jobs,
        policy=make_policy(rule, dict(sets)),
        record_tasks=True,
        entitlements=entitlements,
        mode="inside",
        seed=draw.randint(1, 10**6),
    )


@dataclass
class History:
    """Who held what from when to when, by the run's task records alone."""

    grants: list[tuple[int, int, str]]  # (granted ms, reported ms, leaf), by grant
    jobs: list[tuple[float, str, int]]  # (submitted ms, leaf, tasks)

    def used_mb_ms(self, leaf: str, now: float) -> float:
        """Eq. (1)."""
        return MB * sum(min(end, now) - start for start, end, name in self.grants if name == leaf and start < now)

    def pending(self, leaf: str, now: float, *, after: bool) -> int:
        """Tasks that ask at ``now``, before or after what is granted at that instant."""
        asked = sum(tasks for at, name, tasks in self.jobs if name == leaf and at <= now)
        return asked - sum(name == leaf and (start <= now if after else start < now) for start, _, name in self.grants)

    def seen_pending(self, leaf: str, now: float) -> int:
        """Those of the tasks that still ask that the scheduler has seen for certain."""
        return self.pending(leaf, now, after=True) - sum(
            tasks for at, name, tasks in self.jobs if name == leaf and now - UPDATE_MS < at <= now
        )


def history_of(simulation: Simulation, result: SimResult) -> History:
    tasks, table = result.tasks, result.jobs
    assert tasks is not None
    phases = simulation.world.nodes["phase_ms"][tasks["node"]]
    reported = phases + -(-(tasks["end_ms"] - phases) // 1000) * 1000
    rows = sorted(zip(tasks["granted_ms"].tolist(), reported.tolist(), tasks["job"].tolist(), strict=True))
    grants = [(start, end, table["queue"][job]) for start, end, job in rows]
    jobs = [
        (round(at * 1000), queue, int(count))
        for at, queue, count in zip(table["submitted_s"], table["queue"], table["tasks"], strict=True)
    ]
    return History(grants, jobs)


@pytest.mark.parametrize(("rule", "t_wait_s"), [("ltrf", None), ("naive-hltrf", None), ("hltrf", 0), ("hltrf", 4)])
def test_every_container_goes_to_whom_the_paper_says(rule: str, t_wait_s: int | None) -> None:
    """Each grant of random runs, judged by the integrals of all containers before it."""
    starved = 0
    for seed in range(40):
        draw = random.Random(f"{rule}{t_wait_s}{seed}")
        made = random_setup(draw, rule, {} if t_wait_s is None else {"t_wait": str(t_wait_s)})
        simulation = Simulation(made)
        past = history_of(simulation, simulation.run())
        weight = made.entitlements
        assert weight is not None
        last_ms = dict.fromkeys(LEAVES, -1.0)
        for now, _, leaf in past.grants:
            used = {name: past.used_mb_ms(name, now) for name in LEAVES}
            # Whoever still asks after this instant asked at every grant of it; the one that is served asked, too. What
            # has been asked for since Hadoop's last update() (twice a second) is not seen yet.
            asking = {name for name in LEAVES if past.seen_pending(name, now) > 0} | {leaf}
            key = {name: used[name] / weight[name] for name in asking}
            groups = {PARENT[name] for name in asking}
            of_group = {g: sum(used[n] for n in LEAVES if PARENT[n] == g) / weight[g] for g in groups}
            poorest = min(key.values())
            flat = key[leaf] <= poorest + 1e-6
            siblings = [key[name] for name in asking if PARENT[name] == PARENT[leaf]]
            by_level = of_group[PARENT[leaf]] <= min(of_group.values()) + 1e-6 and key[leaf] <= min(siblings) + 1e-6
            if rule == "ltrf" or t_wait_s == 0:
                assert flat, (seed, now, leaf)
            elif rule == "naive-hltrf":
                assert by_level, (seed, now, leaf)
            elif not by_level:
                waited_ms = now - max(last_ms[leaf], asks_since_ms(past, leaf, now))
                assert flat, (seed, now, leaf)
                assert waited_ms >= 1000 * (t_wait_s or 0), (seed, now, leaf)
                starved += 1
            elif not flat and t_wait_s is not None:
                # The poorest one (of equals the first by name) was not served now: it has not waited T_wait.
                first = min(name for name in asking if key[name] <= poorest + 1e-6)
                waited_ms = now - max(last_ms[first], asks_since_ms(past, first, now))
                assert waited_ms < 1000 * t_wait_s, (seed, now, leaf, first)
            last_ms[leaf] = now
    assert starved or t_wait_s != 4


def asks_since_ms(past: History, leaf: str, now: float) -> float:
    """When the backlog that a leaf has at ``now`` began."""
    since = 0.0
    for at in sorted({at for at, queue, _ in past.jobs if queue == leaf and at <= now}):
        if past.pending(leaf, at - 1, after=True) <= 0:
            since = at
    return since


@pytest.mark.parametrize("rule", ["fair", "ltrf", "hltrf"])
def test_rho_psi_and_omega_are_those_of_the_containers(rule: str) -> None:
    """Eqs. (1) to (5) at samples of random runs, from the task records alone."""
    for seed in range(15):
        draw = random.Random(f"{rule}{seed}")
        made = random_setup(draw, rule, {})
        simulation = Simulation(made)
        result = simulation.run()
        past, samples = history_of(simulation, result), result.samples
        weight = made.entitlements
        assert weight is not None
        whole = sum(node.memory_mb for node in made.nodes)
        groups = weight["root.g"] + weight["root.h"]
        columns = [samples.queues.index(leaf) for leaf in LEAVES]
        rho = fairness_degree(samples.accumulated[:, columns], samples.due[:, columns])
        benefit, loss = sharing_benefit_and_loss(rho)
        steps_ms = sorted({t for start, end, _ in past.grants for t in (start, end)} | {t for t, _, _ in past.jobs})
        for at in draw.sample(range(len(samples.time_s)), min(5, len(samples.time_s))):
            now = float(samples.time_s[at]) * 1000
            expected = []
            for leaf in LEAVES:
                siblings = sum(weight[name] for name in LEAVES if PARENT[name] == PARENT[leaf])
                share = whole * weight[PARENT[leaf]] / groups * weight[leaf] / siblings
                edges = [0.0, *[t for t in steps_ms if 0 < t < now], now]
                due = 0.0
                for begin, end in itertools.pairwise(edges):
                    held = sum(name == leaf and start <= begin < stop for start, stop, name in past.grants)
                    due += min(MB * (held + past.pending(leaf, begin, after=True)), share) * (end - begin)
                expected.append(past.used_mb_ms(leaf, now) / due if due else 1.0)
            assert rho[at].tolist() == pytest.approx(expected, rel=1e-9), (seed, now)
            assert benefit[at] == pytest.approx(sum(max(one - 1, 0) for one in expected), abs=1e-9)
            assert loss[at] == pytest.approx(sum(min(one - 1, 0) for one in expected), abs=1e-9)


# --- the Quantum Updater ---


def test_quanta_on_random_trees_are_those_of_figure_4() -> None:
    """Arrows (1) to (7), and eq. (5.15), with all that has happened looked at anew each time."""
    parents = {"root": None, "p": "root", "q": "root", "p.a": "p", "p.b": "p", "q.c": "q", "d": "root"}
    leaves = ["p.a", "p.b", "q.c", "d"]
    for seed in range(200):
        draw = random.Random(seed)
        adaptive, q0 = draw.random() < 0.8, draw.choice([0.0, 5.0, 600.0])
        quantum = Quantum(q0, adaptive, parents)
        q = dict[str, float]()
        apps: dict[int, dict[str, Any]] = {}
        now, count = 0.0, 0
        for _ in range(60):
            now += draw.choice([0.0, 1.0, 7.5])
            what = draw.random()
            live = [number for number, app in apps.items() if not app["gone"]]
            if what < 0.2 or not live:
                leaf, number = draw.choice(leaves), len(apps)
                quantum.add_app(number, leaf)
                path = [leaf]
                while (above := parents[path[-1]]) is not None:
                    path.append(above)
                for queue in reversed(path):  # arrows (1) to (3)
                    if queue not in q:
                        above = parents[queue]
                        q[queue] = q0 if above is None else q[above]
                apps[number] = {"leaf": leaf, "q": q[leaf], "took": [], "running": {}, "gone": False}
            elif what < 0.6:
                number, count = draw.choice(live), count + 1
                demand = float(draw.randint(1, 4))
                quantum.start(number, count, now, demand)
                apps[number]["running"][count] = (now, demand)
            elif what < 0.95:
                number = draw.choice(live)
                if not apps[number]["running"]:
                    continue
                task = draw.choice(list(apps[number]["running"]))
                quantum.finish(number, task, now)
                began, _ = apps[number]["running"].pop(task)
                apps[number]["took"].append(now - began)
                if adaptive:
                    apps[number]["q"] = sum(apps[number]["took"]) / len(apps[number]["took"])  # (4)
                    at: str | None = apps[number]["leaf"]
                    own = [app["q"] for app in apps.values() if app["leaf"] == at]
                    q[str(at)] = sum(own) / len(own)  # (5)
                    while (at := parents[str(at)]) is not None:  # (6), (7)
                        below = [q[child] for child, parent in parents.items() if parent == at and child in q]
                        q[at] = sum(below) / len(below)
            else:
                number = draw.choice(live)
                if apps[number]["running"]:
                    continue
                quantum.remove_app(number)
                apps[number]["gone"] = True
            began_s = draw.choice([0.0, max(now - 20.0, 0.0)])
            ahead = quantum.assumed(now, began_s)
            for leaf in {app["leaf"] for app in apps.values()}:
                alpha = used = 0.0
                for app in apps.values():
                    for start, demand in app["running"].values() if app["leaf"] == leaf else ():
                        ran = now - max(began_s, start)
                        alpha, used = alpha + demand * max(app["q"], ran), used + demand * ran
                assert ahead[leaf] == pytest.approx(alpha - used, abs=1e-6), seed
            for queue in parents:
                if queue in q:
                    assert quantum.quantum_s(queue) == pytest.approx(q[queue]), (seed, queue)
