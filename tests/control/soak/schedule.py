"""A schedule of faults: drawn from a seed, or written down, so that any part of it can be run again.

Of all kinds a few are drawn (so that one kind cannot hide another in every history), at random moments. As text a
schedule is ``PERIODS:KIND:DRAW,...``: when, in control periods from the begin; what; and the number from which this
fault's own random numbers come, so that leaving faults out changes none of the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.control.guards import Guards
from tests.control.soak.process import Plan

if TYPE_CHECKING:
    from tests.control.soak.world import World

#: How a fault ends: after so many seconds, by this. None: it is over at once. False: it could not be.
End = tuple[float, Callable[[], None]] | None | bool
KINDS: dict[str, Callable[[World, random.Random], End]] = {}
#: Kinds that need a lease, two RMs, the RM's own poll of its file, and the admin call.
_OF_LEASES = {"lease-hostile", "lease-gone", "holder-dies", "spare-restarts"}
_OF_PAIRS = {"rm-fails-over", "rm-fails-over-in-a-look"}
_OF_POLLS = {"poll-misses"}
_OF_GUARDS = {"apps-refused", "told-to-go-on"}
#: Those that a Capacity Scheduler has not (it has queues by its file only, and takes none of them out while it runs);
#: that need weights; a file.
_OF_FAIR = {"root-element-dropped", "queue-removed", "queue-commented-out", "user-comes", "queue-moved"}
_OF_WEIGHTS = {"queue-added", "weight-foreign"}
_OF_FILES = {"file-torn", "file-hostile", "file-no-file", "disk-file-full", "disk-file-read-only"}
_OF_FILES |= {"rm-loads-older", "rm-restarts-with-older", "refresh-overtaken"}
#: A store's, whose capacities are weights: percentages cannot be changed one by one.
_OF_STORES = {"store-changed-in-a-look"}
#: Those of the second regime.
OF_SECOND: set[str] = set()
#: Those of the third.
OF_THIRD: set[str] = set()
#: Those of the fourth, which need a parent with auto-created queues.
OF_FOURTH: set[str] = set()
#: Those of the sixth.
OF_SIXTH: set[str] = set()
#: Those of the seventh alone; and all of them.
OF_SEVENTH: set[str] = set()
#: Those of the tenth.
OF_TENTH: set[str] = set()
OF_PREEMPTION = {"rm-restarts", "rm-fails-over", "controller-restarts", "burst"}
#: All of the fifth: an RM begins anew, and whatever makes a difference to what it shows of those that it recovers.
OF_RECOVERIES = {"rm-restarts", "rm-fails-over", "somebody-looks", "controller-restarts", "burst", "rm-store-slow"}
_OF_CALLS = {"refresh-dropped", "refresh-late", "refresh-twice", "answer-lost", "answer-lost-after"}


@dataclass(frozen=True)
class Fault:
    at: float
    kind: str
    draw: int

    def __str__(self) -> str:
        return f"{self.at:g}:{self.kind}:{self.draw}"


def parse(text: str) -> list[Fault]:
    """A schedule from its text. ValueError."""
    found = []
    for part in filter(None, text.split(",")):
        at, kind, draw = part.split(":")
        if kind not in KINDS:
            raise ValueError(f"no kind of fault is called {kind}: {', '.join(KINDS)}")
        found.append(Fault(float(at), kind, int(draw)))
    return found


def drawn(rng: random.Random, spans: list[tuple[float, float]], plan: Plan) -> list[Fault]:
    """A schedule within these spans of periods, of faults that can be there with this plan."""
    settings = plan.settings
    no = set() if settings.lease_s else _OF_LEASES
    no = no | (set() if plan.pair else _OF_PAIRS) | (_OF_CALLS if settings.refresh == "poll" else _OF_POLLS)
    no = no | (_OF_GUARDS if settings.guards == Guards() else set())
    no = no | (set() if plan.store and plan.capacity == "weight" else _OF_STORES)
    no = no | (set() if plan.third else OF_THIRD) | (set() if plan.creates else OF_FOURTH)
    no = no | (set() if plan.sixth else OF_SIXTH) | (set() if plan.seventh else OF_SEVENTH)
    no = no | (set() if plan.tenth else OF_TENTH)
    no = no | (set() if plan.second else OF_SECOND) | ({"file-own-copy", "file-older"} if plan.store else set())
    if plan.capacity:
        no = (
            no | _OF_FAIR | (_OF_FILES if plan.store else set()) | (_OF_WEIGHTS if plan.capacity != "weight" else set())
        )
    kinds = rng.sample([kind for kind in KINDS if kind not in no], rng.randint(2, 9))
    # A process may be killed at any operation: no other fault has so many places.
    if rng.random() < 0.4 and "controller-killed" not in kinds:
        kinds.append("controller-killed")
    # What only some plans have comes in few seeds otherwise.
    for group in (_OF_POLLS, _OF_LEASES, _OF_PAIRS, _OF_GUARDS, _OF_STORES):
        if not group & no and rng.random() < 0.4:
            kinds.append(rng.choice(sorted(group)))
    if plan.second:
        kinds += rng.sample(sorted(OF_SECOND - no), 3)
    if plan.third and (of_third := sorted(OF_THIRD - no)):
        kinds.append(rng.choice(of_third))
    if plan.creates:
        kinds += sorted(OF_FOURTH)
    if plan.tenth:
        kinds += 2 * sorted(OF_TENTH)
    apart = rng.choice((3.0, 6.0, 12.0))
    if plan.fifth:
        kinds, apart = sorted(OF_RECOVERIES - no), 9.0
    if plan.sixth:
        # After a ResourceManager's restart the checks allow accounts to be off, which would hide the effect of a wrong
        # figure: a history has one kind of the two.
        kinds, apart = [rng.choice(sorted(OF_SIXTH)), "burst", "controller-restarts"], 6.0
    if plan.seventh:
        kinds, apart = sorted((OF_PREEMPTION | OF_SEVENTH) - no), 9.0
    found = []
    for begin, end in spans:
        at = begin + rng.expovariate(1 / apart)
        while at < end:
            found.append(Fault(round(at, 3), rng.choice(kinds), rng.randrange(10**6)))
            at += rng.expovariate(1 / apart)
    return found


def kind(
    name: str,
    *,
    second: bool = False,
    third: bool = False,
    fourth: bool = False,
    sixth: bool = False,
    seventh: bool = False,
    tenth: bool = False,
) -> Callable[[Callable[[World, random.Random], End]], Callable[[World, random.Random], End]]:
    """Name a kind of fault; ``second`` to ``tenth``: only seeds of that regime draw it (`regime`)."""
    if second:
        OF_SECOND.add(name)
    if third:
        OF_THIRD.add(name)
    if fourth:
        OF_FOURTH.add(name)
    if sixth:
        OF_SIXTH.add(name)
    if seventh:
        OF_SEVENTH.add(name)
    if tenth:
        OF_TENTH.add(name)

    def known(do: Callable[[World, random.Random], End]) -> Callable[[World, random.Random], End]:
        KINDS[name] = do
        return do

    return known
