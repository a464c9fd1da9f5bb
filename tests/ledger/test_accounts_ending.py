"""Applications that end while an RM begins anew or soon after: random histories against what was really used."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from harness.ledger.accounts import CACHE_S, AppObservation, RmAccounts
from harness.model.resources import ZERO, Resource
from tests.control.rm_model import Container, MemoryPlace, RmModel
from tests.ledger.looking import FILE, looked


@dataclass(frozen=True)
class Charged:
    """What an application was charged, what it used, and how far these may lie apart. MiB s."""

    charged: float
    used: float
    #: Nobody can know when a container ended that nobody looked at, nor how old a figure is.
    over: float
    #: Nor what an RM never hears of: containers of nodes that were not back at the end. Where its figure is not below
    #: the old one's all the same, it does not show either that these, and those that had ended, were in that one.
    under: float

    def __str__(self) -> str:
        return f"{self.charged:,.0f} of {self.used:,.0f} (+{self.over:,.0f} -{self.under:,.0f})"

    @property
    def fits(self) -> bool:
        return -self.under <= self.charged - self.used <= self.over


class History:
    """One application on one to three nodes, and an RM that begins anew and is not seen for up to a minute."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rm, self.accounts = RmModel(MemoryPlace(FILE)), RmAccounts()
        self.period_s = self.rng.choice([1.0, 2.0, 5.0])
        self.nodes: list[list[Container]] = [[] for _ in range(self.rng.choice([1, 2, 3]))]

    def run(self) -> Charged:
        """From its start to a few looks after its end."""
        looked(self.rm, self.accounts)
        self.rm.submit("x", "root.a")
        self._start(self.nodes[0], [256, 512, 1024])
        self._before()
        seen_s = self.rm.now_s
        unheard = sum(c.used(seen_s)[0] for c in self._all() if c.ended_s is not None)
        held = [c for c in self._all() if c.ended_s is None]
        self.rm.now_s += self.rng.uniform(0.0, self.period_s)
        ends, late = self._after(held)
        slack = sum(c.size.memory_mb for c in held) * (CACHE_S + self.period_s) + 1
        unseen = sum(c.size.memory_mb * (self.rm.apps["x"].finished_s - end_s) for end_s, c in ends)
        lost = sum(c.used(self.rm.now_s, seen_s)[0] for c in late)
        unheard += sum(c.used(seen_s)[0] for c in late)
        since = sum(c.used(self.rm.now_s, seen_s)[0] for c in held)
        charged, used = self.accounts.consumed()["root.a"][0], self.rm.truth("root.a")[0]
        return Charged(charged, used, unseen + slack, unseen + slack + lost + min(unheard, since))

    def _all(self) -> list[Container]:
        return [container for node in self.nodes for container in node]

    def _start(self, node: list[Container], sizes_mb: list[int]) -> None:
        node.append(self.rm.start("x", self.rng.choice(sizes_mb)))

    def _go(self, until_s: float) -> None:
        while self.rm.now_s < until_s:
            self.rm.now_s += min(self.period_s, until_s - self.rm.now_s)
            looked(self.rm, self.accounts)

    def _before(self) -> None:
        """Containers begin and end, and are looked at."""
        rng, end_s = self.rng, self.rm.now_s + self.rng.uniform(1.0, 200.0)
        for _ in range(rng.randrange(6)):
            self._go(self.rm.now_s + rng.uniform(0.0, (end_s - self.rm.now_s) / 3))
            tasks = [c for c in self._all()[1:] if c.ended_s is None]
            if tasks and rng.random() < 0.25:
                self.rm.end("x", rng.choice(tasks))
            else:
                self._start(rng.choice(self.nodes), [256, 1024, 3000, 4096])
        self._go(end_s)

    def _after(self, held: list[Container]) -> tuple[list[tuple[float, Container]], list[Container]]:
        """The RM begins anew. When tasks end before their application, and whose node is not back by its end."""
        rng, rm, app, anew_s = self.rng, self.rm, self.rm.apps["x"], self.rm.now_s
        back_s = [anew_s + rng.uniform(0.0, rng.choice([2.0, 20.0, 60.0])) for _ in self.nodes]
        # Without its master nobody says that it has ended.
        end_s = max(back_s[0] + 0.5, anew_s + rng.uniform(1.0, 60.0))
        ends = [(rng.uniform(anew_s, end_s), c) for c in held[1:] if rng.random() < rng.choice([0.0, 0.5])]
        rm.restart()

        def back(node: list[Container]) -> None:
            if not app.final:
                rm.node_back(node)

        def end(container: Container) -> None:
            container.ended_s = rm.now_s
            if id(container) not in app.forgotten:
                app.cached_s = -1e9

        def finish() -> None:
            rm.finish("x")
            for container in held:
                container.ended_s = rm.now_s if container.ended_s is None else container.ended_s

        first_s = anew_s + rng.uniform(0.0, rng.choice([5.0, 20.0, 60.0]))
        if rng.random() < 0.3:
            # The controller begins anew, too, with what its ledger has.
            kept = self.accounts
            self.accounts = RmAccounts(copy.deepcopy(kept.apps), copy.deepcopy(kept.queues), looked_s=kept.looked_s)

        def look() -> None:
            looked(rm, self.accounts, rm_began_anew=rm.now_s == first_s, rm_age_s=rm.now_s - anew_s)

        events: list[tuple[float, Callable[[], None]]] = [(end_s, finish)]
        events += [(at_s, lambda node=node: back(node)) for at_s, node in zip(back_s, self.nodes, strict=True)]
        events += [(at_s, lambda container=container: end(container)) for at_s, container in ends]
        looks = int((max(end_s - first_s, 0.0) + 10.0) / self.period_s) + 2
        events += [(first_s + number * self.period_s, look) for number in range(looks)]
        for at_s, happens in sorted(events, key=lambda event: event[0]):
            rm.now_s = at_s
            happens()
        late = [c for at_s, node in zip(back_s, self.nodes, strict=True) if at_s > end_s for c in node]
        late = [c for c in late if any(c is one for one in held)]
        return ends, late


@pytest.mark.parametrize("histories", [300, pytest.param(20_000, marks=pytest.mark.long)])
def test_an_application_that_ends_around_a_failover_is_charged_what_it_used(histories: int) -> None:
    found = {seed: History(seed).run() for seed in range(histories)}
    assert not {seed: str(one) for seed, one in found.items() if not one.fits}


def test_a_long_time_without_a_poll_charges_nothing_for_an_application_that_was_missing_before() -> None:
    """It was forgotten before its end was shown, and has ended: it holds nothing since (soak, seed 372)."""
    accounts, held = RmAccounts(), Resource(4096, 1)
    other = AppObservation("other", "root.b", 0, 0, ZERO, False, 1000.0)
    accounts.observe(0.0, [AppObservation("x", "root.a", 0, 0, held, False, 0.0), other])
    accounts.observe(10.0, [AppObservation("x", "root.a", 40960, 10, held, False, 10.0), other])
    # Only every few minutes a list is complete; the controller is paused before the last one.
    for now_s in (*range(20, 311, 10), 1000):
        accounts.observe(float(now_s), [other])
        if now_s >= 300:
            accounts.forget(["other"], float(now_s))
    assert "x" not in accounts.apps
    assert accounts.queues["root.a"].memory_mb_s <= 40960 + 4096 * (10 + CACHE_S)
