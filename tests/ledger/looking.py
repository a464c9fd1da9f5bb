"""A model of an RM that is looked at, and what may happen on its cluster."""

from __future__ import annotations

import random
from typing import Any

from harness.control.app_observer import looks_of
from harness.ledger.accounts import RmAccounts
from tests.control.rm_model import CAPACITY, RmModel

FILE = b"<allocations><queue name='a'/><queue name='b'/></allocations>"


def looked(rm: RmModel, accounts: RmAccounts, **options: Any) -> None:
    accounts.observe(rm.now_s, looks_of(rm.rest.apps()), capacity=CAPACITY, **options)


def watched(rm: RmModel, accounts: RmAccounts, seconds: float, every_s: float = 1.0) -> None:
    """Time goes on, and somebody looks after each ``every_s`` seconds."""
    for _ in range(round(seconds / every_s)):
        rm.now_s += every_s
        looked(rm, accounts)


def wander(rm: RmModel, rng: random.Random, number: int) -> None:
    """Something happens on the cluster."""
    running = [name for name, app in rm.apps.items() if not app.final]
    what = rng.random()
    if what < 0.25 or not running:
        name = f"app{number}"
        rm.submit(name, rng.choice(["root.a", "root.b"]))
        rm.start(name)
    elif what < 0.6:
        rm.start(rng.choice(running), rng.choice([256, 1024, 3000]), rng.choice([1, 2]))
    elif what < 0.9:
        name = rng.choice(running)
        if live := rm.apps[name].live():
            rm.end(name, rng.choice(live))
    else:
        rm.finish(rng.choice(running))
