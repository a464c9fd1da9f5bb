"""The report of one tick of the controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.control.events import Record
from harness.ledger import Usage
from harness.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Alarm:
    """A message for a person. ``kind`` is the kind of a `RaiseAlarm` or one of the driver's own kinds.

    The driver's kinds: ``file`` (the allocation file cannot be read), ``invalid`` (the RM would refuse the
    administrator's own configuration, so nothing is written), ``foreign`` (somebody else edited a managed value),
    ``rm`` (the RM was restarted, or another RM answers), ``ledger`` (the ledger cannot be written), ``ad-hoc`` (a part
    of the plan cannot be written), ``lease`` (another controller holds the lease, or the lease cannot be read or
    written), ``app`` (an application's figures are invalid), ``guard`` (a guard was exceeded), ``config`` (the
    configuration could not be reloaded), ``trap`` (a setting of the cluster prevents the controller from writing),
    ``backup`` (the ledger is an older copy), ``unpaid`` (preemption keeps a debt from being paid), ``note``
    (information that requires no action).
    """

    kind: str
    text: str


@dataclass(slots=True)
class TickReport:
    """The observations and actions of one tick. Times are on the controller's clock (seconds since 1970)."""

    time_s: float
    took_s: float = 0.0
    #: The snapshot (None: the RM could not be polled).
    snapshot: Snapshot | None = None
    #: Queue -> guaranteed fraction of its parent's capacity (see `harness.control.events.Observed`).
    guaranteed: Mapping[str, float] = field(default_factory=dict)
    #: The work that preemption killed within the last hour, MiB·s (None: not known).
    preempted_mb_s: float | None = None
    #: Leaf -> counted accumulated resources f_i (`harness.ledger.Ledger.counted`).
    counted: Mapping[str, float] = field(default_factory=dict)
    #: Queue -> cumulative usage since the first poll.
    consumed: Mapping[str, Usage] = field(default_factory=dict)
    #: The decision that was carried out (None: nothing changed).
    record: Record | None = None
    #: For the first decision of a process: the weights in the file until then, no matter who wrote them.
    before: Mapping[str, float] = field(default_factory=dict)
    #: Whether the file was replaced.
    wrote: bool = False
    #: Queue -> written share in the unit of the scheduler's configuration. `values_name`: its name in messages.
    written: Mapping[str, float] = field(default_factory=dict)
    values_name: str = "weights"
    #: Parent queues whose children the RM creates automatically. The children's values are not changed.
    creating: frozenset[str] = frozenset()
    #: Kinds of lasting alarms that no longer concern this controller, because it does not write now.
    dropped: frozenset[str] = frozenset()
    #: Seconds from the decision until the RM showed it (None: not carried out, or not read back).
    effect_s: float | None = None
    alarms: tuple[Alarm, ...] = ()
    #: Whether the decision was only logged (shadow).
    shadow: bool = False
    #: Description of the exceeded guard that caused a release ('': no release).
    released: str = ""
