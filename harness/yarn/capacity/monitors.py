"""The scheduling monitors of the ResourceManager: preemption and the management of auto-created queues.

``SchedulingMonitorManager`` starts the monitors that yarn-site.xml names; each reads its settings from the Capacity
Scheduler's configuration. No monitor runs with the Fair Scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from harness.base.errors import nearest
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.javanum import parse_boolean, trim, wrap_long

ENABLE = "yarn.resourcemanager.scheduler.monitor.enable"
POLICIES = "yarn.resourcemanager.scheduler.monitor.policies"
_RM = "org.apache.hadoop.yarn.server.resourcemanager."
_HADOOP = "org.apache.hadoop."
PREEMPTION = f"{_RM}monitor.capacity.ProportionalCapacityPreemptionPolicy"
#: ``CapacityScheduler.reinitialize`` and this policy can wait for each other for ever (YARN-10932).
QUEUE_MANAGEMENT = f"{_RM}scheduler.capacity.QueueManagementDynamicEditPolicy"
_DELETION = f"{_RM}scheduler.capacity.AutoCreatedQueueDeletionPolicy"
#: Suffix of a queue's property that prevents preemption of its containers.
DISABLE = "disable_preemption"
_MONITOR = "yarn.resourcemanager.monitor.capacity."
OF_PREEMPTION = f"{_MONITOR}preemption."
_ORDER = f"{OF_PREEMPTION}intra-queue-preemption.preemption-order-policy"
_ORDERS = ("userlimit_first", "priority_first")
#: Monitor -> (the property of its interval, the default, the unit in milliseconds).
_INTERVALS = {
    PREEMPTION: (f"{OF_PREEMPTION}monitoring_interval", 3000, 1),
    _DELETION: ("auto-queue-creation-v2.queue-expiration-time", 300, 1000),
    QUEUE_MANAGEMENT: (
        f"{_MONITOR}queue-management.monitoring-interval",
        1500,
        1,
    ),
    f"{_RM}scheduler.capacity.QueueConfigurationAutoRefreshPolicy": ("queue.auto.refresh.monitoring-interval", 5000, 1),
}
#: Monitors for tests of YARN itself, which run with either scheduler.
_INVARIANTS = (
    f"{_RM}monitor.invariants.MetricsInvariantChecker",
    f"{_RM}monitor.invariants.ReservationInvariantsChecker",
)
#: The preemption policy's numeric settings -> (default, type).
_NUMBERS = {
    "max_ignored_over_capacity": (0.1, "double"),
    "natural_termination_factor": (0.2, "double"),
    "max_wait_before_kill": (15_000, "long"),
    "total_preemption_per_round": (0.1, "float"),
    "intra-queue-preemption.max-allowable-limit": (0.2, "float"),
    "intra-queue-preemption.minimum-threshold": (0.5, "float"),
    "preemption-to-balance-queue-after-satisfied.max-wait-before-kill": (300_000, "long"),
}


def monitored(site: Mapping[str, object]) -> bool:
    """Return whether yarn-site.xml enables the Capacity Scheduler's monitors, of which preemption may be one."""
    return str(site.get(ENABLE, "")).strip().lower() == "true"


def runs_monitor(site: Mapping[str, object], monitor: str) -> bool:
    """Return whether a monitor is listed, by the full name of its class, so that it runs if monitors are enabled.

    Without a list, preemption is the only one.
    """
    return monitor in [name.strip() for name in str(site.get(POLICIES, PREEMPTION)).split(",")]


def may_run_monitor(values: Mapping[str, object], site: Mapping[str, object], monitor: str) -> bool:
    """Return whether a monitor is listed by any of two sources that may apply (`runs_monitor`).

    ``values`` are the scheduler's properties and ``site`` those of yarn-site.xml. The list in a capacity-scheduler.xml
    overrides that of yarn-site.xml, which overrides that of a configuration store. This function is for callers that do
    not know which of them applies.
    """
    lists = [source for source in (values, site) if POLICIES in source]
    return any(runs_monitor(source, monitor) for source in lists or [{}])


def preempts(site: Mapping[str, object]) -> bool:
    """Return whether the monitors are enabled and preemption is one of them."""
    return monitored(site) and runs_monitor(site, PREEMPTION)


def queues_disabled(values: Mapping[str, str], paths: Iterable[str], monitors: bool) -> dict[str, bool]:
    """Return for each queue whether preemption from it is disabled (CSQueuePreemptionSettings).

    A queue without the setting inherits its parent's.

    Parameters
    ----------
    values
        The scheduler's properties, without their prefix.
    paths
        The queues, parents before their children.
    monitors
        Whether the monitors run. Without them, preemption is disabled for all queues.
    """
    found: dict[str, bool] = {}
    for path in paths:
        above = found.get(path.rpartition(".")[0], not monitors)
        found[path] = not monitors or parse_boolean(str(values.get(f"{path}.{DISABLE}", "")).strip(), above)
    return found


@dataclass(frozen=True, slots=True)
class MonitorCheck:
    """The context of a check of monitors.

    Parameters
    ----------
    site : Settings
        Properties of yarn-site.xml, which names the monitors.
    scheduler : Settings or None
        All properties that the Capacity Scheduler reads (None: the Fair Scheduler).
    number : Callable
        Reads a numeric property (name, default, Java type) and reports an invalid one.
    refuse : Callable
        Reports (property, problem, hint).
    """

    site: Settings
    scheduler: Settings | None
    number: Callable[[str, float, str], float | None]
    refuse: Callable[[str, str, str], None]

    def run(self) -> None:
        """Report each monitor that prevents the ResourceManager's start."""
        if not self.site.flag(ENABLE):
            return
        # If yarn-site.xml does not list the monitors, the list of yarn-default.xml applies.
        names = self.site.strings(POLICIES) if self.site.raw(POLICIES) is not None else [PREEMPTION]
        for name in dict.fromkeys(names):
            if name in _INTERVALS:
                self._monitor(name)
            elif name not in _INVARIANTS and (name.startswith(_HADOOP) or "." not in name):
                close = nearest(name, _INTERVALS) or PREEMPTION
                self.refuse(POLICIES, f"{name[:120]!r} is no monitor of Hadoop's", f"write {close}")

    def _monitor(self, name: str) -> None:
        short = name.rpartition(".")[2]
        if self.scheduler is None:
            what = f"{short} is a monitor of the Capacity Scheduler: the Fair Scheduler does not start with it"
            key = ENABLE if self.site.raw(POLICIES) is None else POLICIES
            # Without a list of policies, the list of yarn-default.xml applies: removing them has no effect.
            hint = f"set {ENABLE} to false; the Fair Scheduler preempts with yarn.scheduler.fair.preemption"
            self.refuse(key, what, hint)
            return
        key, default, unit = _INTERVALS[name]
        interval = self.number(key, default, "long")
        if interval is not None and wrap_long(int(interval) * unit) <= 0:
            self.refuse(key, f"{key} {interval:g}: {short} needs an interval above 0", f"write {default}")
        if name != PREEMPTION:
            return
        for setting, (value, kind) in _NUMBERS.items():
            self.number(OF_PREEMPTION + setting, value, kind)
        try:
            order = self.scheduler.get(_ORDER, _ORDERS[0]) or ""
        except ValueError:
            return
        if order.upper() not in (known.upper() for known in _ORDERS):
            close = nearest(trim(order).lower(), _ORDERS) or _ORDERS[0]
            self.refuse(_ORDER, f"there is no preemption-order-policy {order[:40]!r}", f"write {close}")
