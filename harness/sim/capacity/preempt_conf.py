"""Preemption settings of yarn-site.xml and capacity-scheduler.xml, parsed like Hadoop does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.base.errors import InputError
from harness.sim.conf import Conf
from harness.yarn.capacity.monitors import ENABLE, preempts
from harness.yarn.fair.javanum import parse_double

PREEMPTION_PREFIX = "yarn.resourcemanager.monitor.capacity.preemption."
_LONG_MAX = 2**63 - 1
#: Switches of candidate selectors that are not simulated: a scheduler property, and the suffix of a queue property.
INTRA_QUEUE = f"{PREEMPTION_PREFIX}intra-queue-preemption.enabled"
_BY_PRIORITY = "ordering-policy.priority-utilization.underutilized-preemption.enabled"
_BY_PRIORITY_WORDS = "preemption for queues of higher priority"
#: The scheduler's switch for killing preempted containers only when another container needs their space.
_LAZY, _LAZY_WORDS = "lazy-preemption-enabled", "lazy preemption"


@dataclass(frozen=True, slots=True)
class PreemptionConf:
    """Settings of ProportionalCapacityPreemptionPolicy.

    Parameters
    ----------
    monitors
        ``yarn.resourcemanager.scheduler.monitor.enable``; if it is false, no queue can be preempted from.
    runs
        Whether the monitor runs this policy.
    interval_ms, wait_ms
        ``monitoring_interval``, ``max_wait_before_kill``, ms.
    per_round
        ``total_preemption_per_round``, a fraction of the cluster.
    ignored, natural
        ``max_ignored_over_capacity``, ``natural_termination_factor``, fractions.
    observe
        ``observe_only``.
    by_reservations, with_reserved
        ``select_based_on_reserved_containers``, ``additional_res_balance_based_on_reserved_containers``.
    balance, balance_wait_ms
        ``preemption-to-balance-queue-after-satisfied``: ``enabled``, ``max-wait-before-kill`` (ms).
    conservative
        ``conservative-drf``.
    """

    monitors: bool
    runs: bool
    interval_ms: int
    wait_ms: int
    per_round: float
    ignored: float
    natural: float
    observe: bool
    by_reservations: bool
    with_reserved: bool
    balance: bool
    balance_wait_ms: int
    conservative: bool


def uncovered_preemption(site: Mapping[str, Any], capacity: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the preemption features that are on but not covered, as (property, description).

    The result is empty if preemption is off.
    """
    if not preempts(site):
        return []
    conf = Conf({**site, **capacity})
    # Hadoop's CapacitySchedulerConfiguration also contains the properties of yarn-site.xml.
    of_both = [name for name in (*site, *capacity) if name.endswith((_BY_PRIORITY, _LAZY))]
    found = [(name, _LAZY_WORDS if name.endswith(_LAZY) else _BY_PRIORITY_WORDS) for name in of_both]
    return [pair for pair in [(INTRA_QUEUE, "preemption inside queues"), *found] if conf.flag(pair[0], False)]


def read_preemption(site: Mapping[str, Any], capacity: Mapping[str, str]) -> PreemptionConf:
    """Read the settings from yarn-site.xml and capacity-scheduler.xml (without prefix); the latter takes precedence.

    Raises InputError for settings with which Hadoop would not start, and for settings that are not covered.
    """
    values = {**site, **capacity}
    conf = Conf(values)
    runs = preempts(site)
    for name, what in uncovered_preemption(site, capacity):
        raise InputError(f"{what}: not covered by the simulator", where=name, hint="set it to false, or leave it out")
    interval = conf.integer(f"{PREEMPTION_PREFIX}monitoring_interval", 3000, _LONG_MAX)
    if runs and interval <= 0:
        raise InputError(
            f"{interval} ms is no interval",
            where=f"{PREEMPTION_PREFIX}monitoring_interval",
            hint="write milliseconds above 0",
        )
    balance = f"{PREEMPTION_PREFIX}preemption-to-balance-queue-after-satisfied."
    return PreemptionConf(
        monitors=conf.flag(ENABLE, False),
        runs=runs,
        interval_ms=interval,
        wait_ms=conf.integer(f"{PREEMPTION_PREFIX}max_wait_before_kill", 15_000, _LONG_MAX),
        per_round=conf.real(f"{PREEMPTION_PREFIX}total_preemption_per_round", 0.1),
        ignored=_double(values, f"{PREEMPTION_PREFIX}max_ignored_over_capacity", 0.1),
        natural=_double(values, f"{PREEMPTION_PREFIX}natural_termination_factor", 0.2),
        observe=conf.flag(f"{PREEMPTION_PREFIX}observe_only", False),
        by_reservations=conf.flag(f"{PREEMPTION_PREFIX}select_based_on_reserved_containers", False),
        with_reserved=conf.flag(f"{PREEMPTION_PREFIX}additional_res_balance_based_on_reserved_containers", False),
        balance=conf.flag(f"{balance}enabled", False),
        balance_wait_ms=conf.integer(f"{balance}max-wait-before-kill", 300_000, _LONG_MAX),
        conservative=conf.flag(f"{PREEMPTION_PREFIX}conservative-drf", False),
    )


def _double(values: Mapping[str, Any], name: str, default: float) -> float:
    text = values.get(name)
    if text is None:
        return default
    try:
        return parse_double(str(text).strip())
    except ValueError:
        raise InputError(f"{text!r} is not a number", where=name, hint="write a decimal number") from None
