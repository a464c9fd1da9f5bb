"""Settings of a controller on a real ResourceManager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.base.errors import CallError
from harness.control.clocks import TrustedClock
from harness.control.guards import Guards
from harness.policies.base import Policy

#: What happens to the allocation file when the controller is stopped.
OnStop = Literal["release", "hold"]

#: How far the controller goes: it only logs decisions; its weights are bounded; its weights are the policy's.
Mode = Literal["shadow", "bounded", "full"]
#: The smallest bound that costs little (docs/decisions/bounded-weights.md).
MAX_RATIO = 3.0

#: Default half-life of debts (docs/decisions/half-life.md), seconds.
HALF_LIFE_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """How the controller works; the policy defines what it enforces. Times in seconds.

    period_s : from one tick to the next.
    entitlements : queue path -> w_i. Queues that are not named have the weight that the allocation file had when the
        controller first saw them (ad hoc queues: 1).
    refresh : ``rpc``: the admin RPC, at once; ``poll``: the RM's own poll of the file, 10 to 20 s.
    read_back : whether to ask the RM (client RPC) which weights are in force.
    verify_every_s : how often to ask for the weights in force when nothing was written.
    effect_s : how long a refreshed file may take to be in force.
    full_look_every_s : how often to request all applications that the RM retains, not only recent ones.
    count_earlier : whether usage of applications before the first poll counts.
    task_lengths : whether to ask the RM's JMX page for the numbers of started and ended containers (mean task length,
        waits).
    mode : ``shadow`` writes nothing, ``bounded`` weights within `max_ratio` of the entitlements, ``full`` the policy's.
        A shadow logs what ``bounded`` would write.
    max_ratio : see harness.control.bound.
    write_threshold : see harness.control.threshold.
    preemption_budget_mb_s : see harness.control.killed.
    lease_s : how long the lease must be unchanged before another controller may write the file (0: no lease).
    ask_again : factor of the pause after a slow request (applications, JMX): with 10, the next such request follows
        after ten times its duration, so these requests take at most a tenth of the RM's time.
    ad_hoc : queues that the RM created by itself: ``scale``: they keep the weight 1, and their siblings' weights are
        scaled; ``name``: they are put into the file while they have applications, and get weights of their own.
    accept : names of traps (harness.yarn.capacity.traps) that do not prevent the controller from writing.
    guards : limits; when one is exceeded the controller restores the file and continues as a shadow.
    trust_clock : which clock is right if the machine's and the RM's differ ('': not declared).
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
    """Check whether a controller can account on a real ResourceManager as a policy requires.

    Raises CallError for settings that cannot be combined, and for assumed execution times: these need each container's
    start and end, but an RM shows only sums per application.
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
