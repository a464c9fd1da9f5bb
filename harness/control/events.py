"""Inputs (events) and outputs (actions) of the control core. Values only.

Events: Tick, Observed, ObservationFailed, Actuated, Shown.

Actions: Observe, Write, Refresh, ReadBack, RaiseAlarm, Record.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.ledger import Usage
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.model.snapshot import Snapshot

AlarmKind = Literal["observation", "clock", "cluster", "policy", "actuation", "not-in-force", "late", "ledger"]

# --- events ---


@dataclass(frozen=True, slots=True)
class Tick:
    """A control period has passed. Only sent by drivers that observe on request."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Observed:
    """The cluster has been observed.

    ``consumed`` is cumulative per leaf since any fixed moment (the RM's memorySeconds and vcoreSeconds, summed), so a
    missed observation loses nothing. ``active``: leaves with pending or running tasks. ``assumed``: leaf -> assumed
    future usage of its running tasks (harness.sim.quantum), if the driver knows the tasks. ``guaranteed``: queue ->
    its fraction of the parent's capacity, for queues that together with their siblings are guaranteed less than all of
    it (`harness.yarn.queue_answers`). ``preempted``: application -> work of it that preemption has killed, MiB·s;
    applications without losses may be missing. ``preempted_from_s``: since when these losses are counted (the start of
    the ResourceManager). ``counted_capacity``: the capacity of which usage from now on is counted as a part (None: the
    snapshot's).
    """

    snapshot: Snapshot
    consumed: Mapping[str, Usage]
    active: Collection[str] = ()
    assumed: Mapping[str, float] | None = None
    guaranteed: Mapping[str, float] = field(default_factory=dict)
    preempted: Mapping[str, float] = field(default_factory=dict)
    preempted_from_s: float = -math.inf
    counted_capacity: Resource | None = None


@dataclass(frozen=True, slots=True)
class ObservationFailed:
    """The cluster could not be observed. ``kind``: the kind of the alarm to raise."""

    now_s: float
    reason: str
    kind: AlarmKind = "observation"


@dataclass(frozen=True, slots=True)
class Actuated:
    """A Write and its Refresh ended. If ``ok`` is False, the attributes in force are unknown."""

    now_s: float
    ok: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of a ReadBack: queue path -> weight in force."""

    now_s: float
    weights: Mapping[str, float]


Event = Tick | Observed | ObservationFailed | Actuated | Shown


# --- actions ---


@dataclass(frozen=True, slots=True)
class Observe:
    """Observe the cluster and answer with Observed or ObservationFailed."""


@dataclass(frozen=True, slots=True)
class Write:
    """Put these attributes into the allocation file, atomically. Always the complete set, not a difference."""

    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Refresh:
    """Make the scheduler load the file (or leave it to its own poll), then answer with Actuated."""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Read the weights in force and answer with Shown."""


@dataclass(frozen=True, slots=True)
class RaiseAlarm:
    """Notify a person. The attributes in force stay unchanged."""

    kind: AlarmKind
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """A decision with its reasons, for decisions.jsonl. ``changed``: queues that differ from the last write.

    ``newcomers``: leaves that have not been active since they joined the accounts; they are owed nothing.
    ``held``: changed leaf -> description of why it gets less than planned, because of preemption.
    ``preempted_mb_s``: work that preemption killed within the last hour, MiB·s (None: preemption does not limit the
    decision).
    """

    time_s: float
    attributes: Attributes
    changed: tuple[str, ...]
    counted: Mapping[str, float]
    reasons: Mapping[str, str]
    newcomers: frozenset[str] = frozenset()
    held: Mapping[str, str] = field(default_factory=dict)
    preempted_mb_s: float | None = None


Action = Observe | Write | Refresh | ReadBack | RaiseAlarm | Record
