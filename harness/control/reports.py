"""The report of one tick of the controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.control.events import Record
from harness.ledger import Usage
from harness.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that a person should know. ``kind``: that of a `RaiseAlarm`, or one of the driver's own.

    The driver's: ``file`` (the allocation file cannot be read or taken), ``invalid`` (the administrator's own
    configuration is one that the RM would refuse, so nothing is written), ``foreign`` (somebody else edited a managed
    value), ``rm`` (another RM answers, or the same after a restart), ``ledger`` (the ledger cannot be written),
    ``ad-hoc`` (a limit that cannot be set), ``lease`` (another controller), ``app`` (the RM's figures of an application
    make no sense), ``guard`` (a guard of the administrator's is passed), ``config`` (a configuration that could not be
    reloaded), ``trap`` (a Capacity Scheduler's setting keeps the controller from writing), ``note`` (a setting that
    only deserves attention).
    """

    kind: str
    text: str


@dataclass(slots=True)
class TickReport:
    """What one tick saw and did. Times are the controller's clock (seconds since 1970, never going back)."""

    time_s: float
    took_s: float = 0.0
    #: The snapshot (None: the RM could not be polled).
    snapshot: Snapshot | None = None
    #: The guaranteed part of the parent's capacity of queues whose siblings are not guaranteed all of it.
    guaranteed: Mapping[str, float] = field(default_factory=dict)
    #: The work that preemption killed within the last hour, MiB·s (None: not known).
    preempted_mb_s: float | None = None
    #: f_i of every leaf.
    counted: Mapping[str, float] = field(default_factory=dict)
    #: Cumulative per leaf since the first poll.
    consumed: Mapping[str, Usage] = field(default_factory=dict)
    #: The decision that was carried out (None: nothing changed).
    record: Record | None = None
    #: For the first decision of a process: the weights in the file until then, no matter who wrote them.
    before: Mapping[str, float] = field(default_factory=dict)
    #: Whether the file was replaced.
    wrote: bool = False
    #: What was written, queue -> share in the unit of the scheduler's configuration; and what messages call it.
    written: Mapping[str, float] = field(default_factory=dict)
    values_name: str = "weights"
    #: Queues that create queues below them by themselves: what is below them keeps its values.
    creating: frozenset[str] = frozenset()
    #: Kinds of lasting alarms that are no affair of this controller any more: it does not write.
    dropped: frozenset[str] = frozenset()
    #: Time from the decision until the RM showed it (None: not carried out, or not read back).
    effect_s: float | None = None
    alarms: tuple[Alarm, ...] = ()
    #: Whether the decision was only logged (shadow).
    shadow: bool = False
    #: Which guard was exceeded, so that the file has been restored ('': none).
    released: str = ""
