"""Settings of a controller on a real ResourceManager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.base.errors import CallError
from harness.control.clocks import TrustedClock
from harness.control.guards import Guards
from harness.policies.base import Policy

#: Whether a controller that is stopped restores the administrator's configuration or leaves the weights in force.
OnStop = Literal["release", "hold"]

#: The controller only logs its decisions; or writes bounded weights; or writes the policy's weights.
Mode = Literal["shadow", "bounded", "full"]
#: The smallest bound that costs little (docs/decisions/bounded-weights.md).
MAX_RATIO = 3.0

#: Default half-life of debts (docs/decisions/half-life.md), seconds.
HALF_LIFE_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """Settings of the controller, independent of the policy. Times are in seconds.

    Parameters
    ----------
    period_s
        Time from one tick to the next.
    entitlements
        Queue path -> w_i. The entitlement of any other queue is its weight in the allocation file when the controller
        first reads it (ad hoc queues: 1).
    refresh
        How the RM loads a written file. ``rpc``: at once (admin RPC); ``poll``: by its own poll, after 10 to 20 s.
    read_back
        Whether to query the RM (client RPC) for the weights in force.
    verify_every_s
        Time between two such queries while nothing is written.
    effect_s
        Longest time until a refreshed file is in force.
    full_look_every_s
        Time between two lists of all applications that the RM retains; other lists contain only recent ones.
    count_earlier
        Whether usage of applications before the first poll counts.
    task_lengths
        Whether to read the numbers of started and ended containers from the RM's JMX page, for the mean task length and
        the waiting times.
    mode
        ``shadow`` writes nothing and logs what ``bounded`` would write, ``bounded`` writes weights within `max_ratio`
        of the entitlements, ``full`` writes the policy's weights.
    max_ratio
        See harness.control.bound.
    write_threshold
        See harness.control.threshold.
    preemption_budget_mb_s
        See harness.control.killed.
    lease_s
        Time for which the lease must be unchanged before another controller may write the file (0: no lease).
    ask_again
        Factor of the pause after a request for applications or JMX. With 10, the next such request follows after ten
        times the duration of the last, so these requests take at most a tenth of the RM's time.
    ad_hoc
        How to treat queues that the RM created by itself. ``scale``: they keep the weight 1, and their siblings'
        weights are scaled. ``name``: they are added to the file while they have applications, and get weights of their
        own.
    accept
        Names of traps (harness.yarn.capacity.traps) that do not prevent the controller from writing.
    guards
        Limits. When one is exceeded, the controller restores the configuration and continues as a shadow.
    trust_clock
        The clock that is right if the machine's and the RM's differ ('': not declared).
    """

    period_s: float = 5.0
    entitlements: Mapping[str, float] = field(default_factory=dict)
    refresh: Literal["rpc", "poll"] = "rpc"
    read_back: bool = True
    verify_every_s: float = 5.0
    effect_s: float = 5.0
    full_look_every_s: float = 600.0
    count_earlier: bool = False
    task_lengths: bool = True
    mode: Mode = "full"
    max_ratio: float = MAX_RATIO
    write_threshold: float = 0.0
    preemption_budget_mb_s: float = 0.0
    lease_s: float = 0.0
    ask_again: float = 10.0
    ad_hoc: Literal["scale", "name"] = "scale"
    accept: frozenset[str] = frozenset()
    guards: Guards = field(default_factory=Guards)
    trust_clock: TrustedClock = ""


def check_counting(policy: Policy) -> None:
    """Check that a policy's ledger settings can be used on a real ResourceManager.

    Raises CallError for settings that cannot be combined, and for assumed execution times, which need each container's
    start and end, while an RM shows only sums per application.
    """
    policy.check_outside()
    ledger = policy.ledger_settings()
    if ledger is None:
        return
    for name, given in (("quantum_s", ledger.quantum_s is not None), ("adaptive_quantum", ledger.adaptive_quantum)):
        if given:
            raise CallError(
                f"policy {policy.name} from outside cannot assume execution times on a real ResourceManager",
                where=f"--set {name}",
                hint="leave it out, or simulate",
            )
