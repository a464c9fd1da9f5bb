"""FAWKES, QKnober and progress share, written a second time from their papers alone, against the product.

Nothing here calls what it checks. Exact arithmetic, small random instances.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest

from harness.policies.registry import make_policy
from harness.policies.vectors import VectorScenario, VectorUser
from harness.systems.fawkes.scenarios import ClustersScenario, PaperCluster, allocate_clusters
from harness.systems.fawkes.shares import Metrics
from harness.systems.progress_share.policy import ProgressShare
from harness.systems.progress_share.rates import NodeType, RateJob, RatesScenario
from harness.systems.progress_share.simulator import simulate_rates
from harness.systems.qknober.division import divide

Amounts = dict[str, Fraction]


def parts_of(y: Amounts) -> Amounts:
    """Eq. (4) of FAWKES; alike where nobody has anything (4.3.3: equal at first)."""
    whole = sum(y.values())
    return {name: one / whole if whole else Fraction(1, len(y)) for name, one in y.items()}


def fawkes_weights(policy: str, samples: dict[str, list[Metrics]]) -> dict[str, Fraction]:
    """Section 4.3: y of each policy, its mean over the samples of T, and what it is of all."""

    def mean(of: str) -> Amounts:
        return {
            name: sum((Fraction(getattr(m, of)) for m in all_), Fraction(0)) / len(all_)
            for name, all_ in samples.items()
        }

    def throughput(done: str, waiting: str) -> Amounts:
        found = {}
        for name, all_ in samples.items():
            y = []
            for m in all_:
                q = min(Fraction(getattr(m, done), getattr(m, waiting)), Fraction(1)) if getattr(m, waiting) else 1
                y.append(Fraction(2.0 ** -float(q)))
            found[name] = sum(y, Fraction(0)) / len(y)
        return found

    plain = {
        "jd": "waiting_jobs",
        "dd": "waiting_gb",
        "td": "waiting_tasks",
        "pu": "processor",
        "du": "disk",
        "js": "slowdown",
    }
    if policy in plain:
        return parts_of(mean(plain[policy]))
    if policy == "ru":
        processor, disk = mean("processor"), mean("disk")
        u = {name: (parts_of(processor)[name] + parts_of(disk)[name]) / 2 for name in samples}
        if not any(processor.values()):
            u = parts_of(disk)
        elif not any(disk.values()):
            u = parts_of(processor)
        return parts_of(u)
    if policy == "jt":
        return parts_of(throughput("completed_jobs", "waiting_jobs"))
    if policy == "tt":
        return parts_of(throughput("completed_tasks", "waiting_tasks"))
    assert policy == "eq"
    return parts_of(dict.fromkeys(samples, Fraction(1)))


def shares_of(nodes: int, weights: Amounts, least: dict[str, int]) -> dict[str, int]:
    """4.2.1 and 4.2.2: in proportion to the weights, nobody below its minimum; whole nodes by largest remainder."""
    held: Amounts = {}
    while True:
        open_ = [name for name in weights if name not in held]
        left = nodes - sum(held.values())
        whole = sum(weights[name] for name in open_)
        part = {name: left * weights[name] / whole if whole else left / Fraction(len(open_)) for name in open_}
        below = [name for name in open_ if part[name] < least[name]]
        if not below:
            held |= part
            break
        held |= {name: Fraction(least[name]) for name in below}
    found = {name: math.floor(one) for name, one in held.items()}
    for name in sorted(held, key=lambda name: (found[name] - held[name], name))[: nodes - sum(found.values())]:
        found[name] += 1
    return found


@pytest.mark.parametrize("policy", ["jd", "dd", "td", "pu", "du", "ru", "js", "jt", "tt", "eq"])
def test_fawkes_sizes_follow_weights_and_discriminations(policy: str) -> None:
    """Nine policies and EQ on MR-clusters that are there from the start and never idle: T = 60 s, samples of 10 s."""
    resized = 0
    for seed in range(40):
        draw = random.Random(f"{policy}{seed}")
        names = [f"c{number}" for number in range(draw.randint(2, 4))]
        core = {name: draw.randint(1, 5) for name in names}
        nodes = sum(core.values()) + draw.randint(0, 30)
        tau, rounds = draw.choice([0, 10, 400]), draw.randint(2, 6)

        def drawn(draw: random.Random = draw) -> Metrics:
            return Metrics(
                waiting_jobs=draw.choice([0, draw.randint(1, 20)]),
                waiting_gb=draw.choice([0, draw.randint(1, 500)]),
                waiting_tasks=draw.choice([0, draw.randint(1, 900)]),
                running_jobs=1,
                processor=Fraction(draw.randint(0, 10), 10),
                disk=draw.choice([Fraction(0), Fraction(draw.randint(1, 10), 100)]),
                slowdown=Fraction(draw.randint(0, 50), 7),
                completed_jobs=draw.randint(0, 9),
                completed_tasks=draw.randint(0, 400),
            )

        shown = {name: [drawn() for _ in range(6 * rounds)] for name in names}
        clusters = tuple(
            PaperCluster(
                name,
                core[name],
                Fraction(0),
                Fraction(0),
                Fraction(0),
                tuple((Fraction(10 * at + 5), metrics) for at, metrics in enumerate(shown[name])),
            )
            for name in names
        )
        scenario = ClustersScenario(nodes, clusters, Fraction(10), Fraction(60 * rounds))
        answer = allocate_clusters(scenario, make_policy(f"fawkes-{policy}", {"tau": str(tau)}))
        held = dict(core)
        discrimination = dict.fromkeys(names, Fraction(0))
        updates = [step for step in answer.steps if "weights" in step]
        assert len(updates) == rounds
        for number, step in enumerate(updates):
            weights = fawkes_weights(policy, {name: shown[name][6 * number : 6 * number + 6] for name in names})
            for name in names:
                discrimination[name] += 60 * (Fraction(held[name], nodes) - weights[name])  # eqs. (1), (2)
            factor = sum(d * d for d in discrimination.values()) / len(names)  # eq. (3)
            assert step["weights"] == pytest.approx({name: float(w) for name, w in weights.items()}), seed
            assert step["discrimination"] == pytest.approx({n: float(d) for n, d in discrimination.items()}), seed
            assert step["global_discrimination"] == pytest.approx(float(factor)), seed
            after = shares_of(nodes, weights, core)
            if factor > tau and after != held:
                held, resized = after, resized + 1
                discrimination = dict.fromkeys(names, Fraction(0))
            assert step["nodes"] == held, seed
    assert resized > 20


# --- QKnober ---


def best_efficiency(columns: list[list[Fraction]], left: list[Fraction]) -> Fraction:
    """The largest sum of x_j * sum(column_j) with columns x <= left, x >= 0, by trying every corner (15), (17)."""
    n, m = len(columns), len(left)
    rows = [([column[k] for column in columns], left[k]) for k in range(m)]
    rows += [([Fraction(-int(j == i)) for i in range(n)], Fraction(0)) for j in range(n)]
    best = Fraction(0)
    for chosen in itertools.combinations(rows, n):
        x = solved([list(row) for row, _ in chosen], [bound for _, bound in chosen])
        if x is None or any(sum(a * b for a, b in zip(row, x, strict=True)) > bound for row, bound in rows):
            continue
        best = max(best, sum((one * sum(column) for one, column in zip(x, columns, strict=True)), Fraction(0)))
    return best


def solved(a: list[list[Fraction]], b: list[Fraction]) -> list[Fraction] | None:
    n = len(a)
    for i in range(n):
        pivot = next((r for r in range(i, n) if a[r][i]), None)
        if pivot is None:
            return None
        a[i], a[pivot], b[i], b[pivot] = a[pivot], a[i], b[pivot], b[i]
        for r in range(n):
            if r != i and a[r][i]:
                f = a[r][i] / a[i][i]
                a[r] = [x - f * y for x, y in zip(a[r], a[i], strict=True)]
                b[r] -= f * b[i]
    return [b[i] / a[i][i] for i in range(n)]


def test_qknober_keeps_the_fair_part_and_is_as_efficient_as_can_be() -> None:
    """Eqs. (11) and (13) to (17), users without end."""
    for seed in range(250):
        draw = random.Random(seed)
        m, n = draw.randint(1, 3), draw.randint(1, 4)
        capacity = [Fraction(draw.randint(10, 100)) for _ in range(m)]
        users: list[VectorUser] = []
        for number in range(n):
            task = [Fraction(draw.randint(0, 6)) for _ in range(m)]
            task[draw.randrange(m)] += 1
            if users and draw.random() < 0.3:  # somebody of the same direction
                task = [2 * one for one in users[0].task]
            users.append(VectorUser(f"u{number}", Fraction(draw.randint(1, 4)), tuple(task), None))
        rho = Fraction(draw.randint(0, 4), 4)
        scenario = VectorScenario(tuple("abc"[:m]), tuple(capacity), tuple(users))
        tasks = divide(scenario, rho, None, False).tasks
        whole = sum(user.weight for user in users)
        weight = [user.weight / whole for user in users]
        dominant = [max(d / r for d, r in zip(user.task, capacity, strict=True)) for user in users]
        part = [[d / r for d, r in zip(user.task, capacity, strict=True)] for user in users]
        phi = max(sum(w * p[k] / d for w, p, d in zip(weight, part, dominant, strict=True)) for k in range(m))
        kept = [w / phi * rho for w in weight]  # (11), (14)
        s = [count * d for count, d in zip(tasks, dominant, strict=True)]
        assert all(have >= least for have, least in zip(s, kept, strict=True)), seed
        used = [sum(count * p[k] for count, p in zip(tasks, part, strict=True)) for k in range(m)]
        assert max(used) <= 1, seed
        unit = [tuple(one / sum(user.task) for one in user.task) for user in users]
        for i, j in itertools.combinations(range(n), 2):
            if unit[i] == unit[j]:  # (16)
                assert s[i] / weight[i] == s[j] / weight[j], seed
        groups = {u: [i for i in range(n) if unit[i] == u] for u in unit}
        columns = [
            [sum((weight[i] / dominant[i] * part[i][k] for i in group), Fraction(0)) for k in range(m)]
            for group in groups.values()
        ]
        fair = [sum((kept[i] / dominant[i] * part[i][k] for i in range(n)), Fraction(0)) for k in range(m)]
        left, wanted = [1 - one for one in fair], sum(fair)
        assert sum(used) == wanted + best_efficiency(columns, left), seed


# --- progress share ---


def by_progress(types: list[tuple[str, int]], jobs: list[RateJob], preference: Fraction) -> dict[str, Fraction]:
    """Section 3.1: who is furthest below its share gets the slot, but for a job with a significantly higher rate (each
    job's rates over their mean on the cluster). The end of each job."""
    slots = [kind for kind, count in types for _ in range(count)]
    busy: list[tuple[Fraction, str, str]] = []
    left = {job.name: job.tasks for job in jobs}
    ends = {job.name: job.submit_s for job in jobs}
    now = Fraction(0)
    while True:
        busy = [one for one in busy if one[0] > now]
        for kind, count in types:
            for _ in range(count - sum(one[2] == kind for one in busy)):
                asking = sorted((j for j in jobs if j.submit_s <= now and left[j.name]), key=lambda j: j.name)
                if not asking:
                    continue

                def ps(job: RateJob, busy: list[tuple[Fraction, str, str]] = busy) -> Fraction:
                    mine = sum((job.rates[slot] for _, name, slot in busy if name == job.name), Fraction(0))
                    return mine / sum(job.rates[slot] for slot in slots)

                def suits(job: RateJob, kind: str = kind) -> Fraction:
                    return job.rates[kind] * len(slots) / sum(job.rates[slot] for slot in slots)

                due = min(asking, key=lambda job: ps(job) / job.weight)
                higher = [job for job in asking if suits(job) >= preference * suits(due) and suits(job) >= 1]
                most = max(suits(job) for job in asking)
                chosen = due
                if suits(due) < most and any(suits(job) == most for job in higher):
                    chosen = next(job for job in asking if suits(job) == most)
                left[chosen.name] -= 1
                end = now + chosen.work_s / chosen.rates[kind]
                ends[chosen.name] = max(ends[chosen.name], end)
                busy.append((end, chosen.name, kind))
        later = [one[0] for one in busy] + [job.submit_s for job in jobs if job.submit_s > now]
        if not later:
            return ends
        now = min(later)


def test_slots_go_where_progress_share_says() -> None:
    for seed in range(300):
        draw = random.Random(seed)
        types = [(name, draw.randint(1, 4)) for name in ("gpu", "large", "small")[: draw.randint(1, 3)]]
        jobs = [
            RateJob(
                f"j{number}",
                draw.randint(1, 15),
                Fraction(draw.randint(1, 30)),
                {name: Fraction(draw.choice([1, 1, 2, 3, 5, 10])) for name, _ in types},
                Fraction(draw.choice([1, 1, 2])),
                Fraction(draw.choice([0, 0, 7, 40])),
            )
            for number in range(draw.randint(1, 5))
        ]
        preference = draw.choice(["1", "1.5", "1.75", "3", "inf"])
        policy = make_policy("progress-share", {"preference": preference})
        assert isinstance(policy, ProgressShare)
        scenario = RatesScenario(tuple(NodeType(name, count) for name, count in types), tuple(jobs))
        found = simulate_rates(scenario, policy.choose).completed_s
        above = Fraction(preference) if preference != "inf" else Fraction(10**9)
        assert found == by_progress(types, jobs, above), (seed, preference)
