"""The scheduler as a whole: limits of containers, monitors, the calculator, and policies that sort nodes."""

from __future__ import annotations

from harness.base.errors import nearest
from harness.yarn.capacity.loading.reading import HADOOP, Reading
from harness.yarn.capacity.monitors import MonitorCheck
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.javanum import trim

#: Hadoop's own calculators, and whether they compare dominant shares.
CALCULATORS = {
    "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator": False,
    "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator": True,
}
_LOOKUP_POLICY = HADOOP + "yarn.server.resourcemanager.scheduler.placement.ResourceUsageMultiNodeLookupPolicy"


def check_container_limits(reading: Reading) -> None:
    """Check that the smallest container is not above the largest one."""
    for resource, default in (("mb", (1024, 8192)), ("vcores", (1, 4))):
        low_key, high_key = (f"yarn.scheduler.{side}-allocation-{resource}" for side in ("minimum", "maximum"))
        if not reading.site_known and reading.settings.raw(low_key) is None and reading.settings.raw(high_key) is None:
            continue
        low, high = reading.number(low_key, default[0]), reading.number(high_key, default[1])
        if low is not None and high is not None and (low <= 0 or low > high):
            reading.refuse(
                "YF102",
                low_key if reading.settings.raw(low_key) is not None else high_key,
                None,
                f"{low_key} {low:g} must be at least 1 and at most {high_key} {high:g}",
                "lower the minimum, or raise the maximum",
            )


def check_monitors(reading: Reading) -> None:
    """Check the scheduling monitors, which yarn-site.xml names.

    Their settings are in the scheduler's configuration.
    """

    def number(key: str, default: float, kind: str) -> float | None:
        return reading.number(key, default, kind)

    def refuse(key: str, what: str, hint: str) -> None:
        reading.refuse("YF107", key, None, what, hint)

    if reading.site is not None:
        MonitorCheck(Settings(reading.site), reading.settings, number, refuse).run()


def read_calculator(reading: Reading) -> None:
    """Read the resource calculator, which must support all resource types."""
    text = reading.text("resource-calculator")
    name = trim(text) if text is not None else next(iter(CALCULATORS))
    reading.dominant = CALCULATORS.get(name, True)
    if name not in CALCULATORS and (name.startswith(HADOOP) or "." not in name):
        close = nearest(name, CALCULATORS)
        reading.refuse(
            "YF103",
            "resource-calculator",
            None,
            f"resource-calculator {name[:120]!r} is no class of Hadoop's that calculates resources",
            f"write {close or next(iter(CALCULATORS))}",
        )
    elif not reading.dominant and reading.types:
        reading.refuse(
            "YF104",
            "resource-calculator" if text is not None else "root.queues",
            None,
            f"the DefaultResourceCalculator cannot count {', '.join(reading.types)}, which yarn.resource-types names",
            "write org.apache.hadoop.yarn.util.resource.DominantResourceCalculator as resource-calculator",
        )


#: Numeric settings of asynchronous scheduling: key -> Java's type.
_ASYNCHRONOUS: dict[str, str] = {
    "schedule-asynchronously.scheduling-interval-ms": "long",
    "schedule-asynchronously.maximum-threads": "int",
    "schedule-asynchronously.maximum-pending-backlogs": "int",
}


def check_cluster_wide(reading: Reading) -> None:
    """Check assignments per heartbeat, asynchronous scheduling, and the policies that sort nodes."""
    for key, default in (
        ("per-node-heartbeat.maximum-offswitch-assignments", 1),
        ("per-node-heartbeat.maximum-container-assignments", 100),
    ):
        reading.number(key, default)
    # Hadoop reads these settings only if it schedules asynchronously, which is the default since 3.5.
    numbers = {key: kind for key, kind in _ASYNCHRONOUS.items() if reading.settings.raw(key) is not None}
    if numbers and reading.settings.flag("schedule-asynchronously.enable", reading.since((3, 5))):
        for key, kind in numbers.items():
            reading.number(key, 1, kind)
    names = reading.text("multi-node-sorting.policy.names") or ""
    for name in dict.fromkeys(trim(name) for name in names.split(",") if trim(name)):
        check_lookup_policy(
            reading, name, "multi-node-sorting.policy.names", None, _LOOKUP_POLICY if name == "default" else None
        )
        key = f"multi-node-sorting.policy.{name}.sorting-interval.ms"
        interval = reading.number(key, 1000, "long")
        if interval is not None and interval < 0:
            reading.refuse("YF105", key, None, f"{key} {interval:g} is negative", "write milliseconds")


def check_lookup_policy(reading: Reading, name: str, key: str, queue: str | None, default: str | None = None) -> None:
    """Check that the class of a node-sorting policy is given, and exists if it is one of Hadoop's own."""
    class_key = f"multi-node-sorting.policy.{name}.class"
    found = reading.text(class_key) or default
    hint = f"set yarn.scheduler.capacity.{class_key} to {_LOOKUP_POLICY}"
    if not found:
        reading.refuse("YF105", key, queue, f"multi-node sorting policy {name[:60]!r} has no class", hint)
    elif trim(found).startswith(HADOOP) and trim(found) != _LOOKUP_POLICY:
        reading.refuse("YF103", class_key, queue, f"{trim(found)[:120]} is no multi-node lookup policy", hint)
