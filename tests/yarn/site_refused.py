"""Settings of yarn-site.xml with which a ResourceManager does not start, and odd ones that it takes.

tests/oracle/test_site_files.py asks Hadoop about every row.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from harness.yarn.site import Scheduler

_RM = "yarn.resourcemanager."
_MONITOR = f"{_RM}monitor.capacity.preemption."
_ON = {f"{_RM}scheduler.monitor.enable": "true"}
_POLICIES = f"{_RM}scheduler.monitor.policies"
_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler."
_PREEMPTION = "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy"
_TYPES = "yarn.resource-types"
#: So that the Capacity Scheduler takes further types.
_COUNTED = {
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
}

FAIR = '<allocations><queue name="a"/></allocations>'
CAPACITY = """<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>default</value></property>
  <property><name>yarn.scheduler.capacity.root.default.capacity</name><value>100</value></property>
</configuration>
"""

#: (code, schedulers, settings, the property that is named)
REFUSED: tuple[tuple[str, str, dict[str, str], str], ...] = (
    ("YF101", "both", {"yarn.scheduler.minimum-allocation-mb": "4g"}, "yarn.scheduler.minimum-allocation-mb"),
    ("YF101", "fair", {"yarn.scheduler.fair.max.assign": "many"}, "yarn.scheduler.fair.max.assign"),
    ("YF101", "fair", {"yarn.scheduler.fair.locality.threshold.node": "50%"}, "locality.threshold.node"),
    ("YF101", "both", {"yarn.cluster.max-application-priority": "high"}, "yarn.cluster.max-application-priority"),
    ("YF101", "capacity", {**_ON, f"{_MONITOR}total_preemption_per_round": "10%"}, "total_preemption_per_round"),
    ("YF102", "both", {"yarn.scheduler.minimum-allocation-mb": "16384"}, "yarn.scheduler.minimum-allocation-mb"),
    ("YF102", "capacity", {"yarn.scheduler.minimum-allocation-vcores": "0"}, "minimum-allocation-vcores"),
    ("YF102", "fair", {"yarn.scheduler.maximum-allocation-vcores": "0"}, "maximum-allocation-vcores"),
    ("YF103", "both", {f"{_RM}scheduler.class": "CapacityScheduler"}, "CapacityScheduler"),
    ("YF103", "both", {f"{_RM}scheduler.class": f"{_SCHEDULER}capacity.CapacityScheduler "}, "CapacityScheduler "),
    ("YF104", "capacity", {_TYPES: "yarn.io/gpu"}, "yarn.io/gpu"),
    ("YF106", "both", {**_COUNTED, _TYPES: "yarn.io/gpu,yarn.io/gpu"}, "named twice"),
    ("YF106", "both", {**_COUNTED, _TYPES: "1gpu"}, "1gpu"),
    ("YF106", "both", {**_COUNTED, _TYPES: "memory-mb"}, "memory-mb"),
    ("YF106", "both", {**_COUNTED, _TYPES: "yarn.io/gpu", f"{_TYPES}.yarn.io/gpu.units": "G"}, "no unit"),
    ("YF106", "both", {**_COUNTED, _TYPES: "licence", f"{_TYPES}.licence.type": "countable"}, "countable"),
    ("YF107", "capacity", {**_ON, _POLICIES: "ProportionalCapacityPreemptionPolicy"}, "no monitor"),
    ("YF107", "capacity", {**_ON, _POLICIES: f"{_SCHEDULER}capacity.CapacityScheduler"}, "no monitor"),
    ("YF107", "capacity", {**_ON, f"{_MONITOR}monitoring_interval": "0"}, "monitoring_interval"),
    (
        "YF107",
        "capacity",
        {**_ON, f"{_MONITOR}intra-queue-preemption.preemption-order-policy": "priority-first"},
        "priority-first",
    ),
    ("YF107", "fair", _ON, "the Fair Scheduler does not start"),
    ("YF107", "fair", {**_ON, _POLICIES: _PREEMPTION}, "the Fair Scheduler does not start"),
    ("YF108", "both", {f"{_RM}am.max-attempts": "0"}, "am.max-attempts"),
    ("YF108", "both", {f"{_RM}am.global.max-attempts": "-1"}, "am.global.max-attempts"),
    ("YF108", "both", {"yarn.nm.liveness-monitor.expiry-interval-ms": "100"}, "expiry-interval-ms"),
    ("YF108", "fair", {"yarn.scheduler.increment-allocation-mb": "0"}, "increment-allocation-mb"),
    ("YF108", "fair", {f"{_TYPES}.memory-mb.increment-allocation": "1.5 G"}, "memory-mb.increment-allocation"),
    ("YF108", "fair", {f"{_TYPES}.vcores.increment-allocation": "2 g"}, "vcores.increment-allocation"),
    ("YF108", "capacity", {"yarn.scheduler.configuration.store.class": "zookeeper"}, "zookeeper"),
    (
        "YF108",
        "both",
        {"yarn.node-labels.enabled": "true", "yarn.node-labels.configuration-type": "delegated-centralized"},
        "delegated-centralized",
    ),
    (
        "YF108",
        "both",
        {
            f"{_RM}placement-constraints.handler": "placement-processor",
            f"{_RM}placement-constraints.algorithm.iterator": "serial",
        },
        "serial",
    ),
    ("YF108", "both", {"yarn.nodemanager.distributed-scheduling.enabled": "true"}, "distributed-scheduling"),
)

#: (schedulers, settings)
FINE: tuple[tuple[str, dict[str, str]], ...] = (
    ("both", {}),
    ("both", {"yarn.scheduler.minimum-allocation-mb": " 0x400 "}),
    ("fair", {"yarn.scheduler.minimum-allocation-mb": "0", "yarn.scheduler.minimum-allocation-vcores": "0"}),
    ("both", {"yarn.scheduler.maximum-allocation-mb": ""}),
    ("capacity", _ON),
    ("capacity", {**_ON, _POLICIES: ","}),
    ("fair", {**_ON, _POLICIES: " , "}),
    ("capacity", {_POLICIES: "none", f"{_MONITOR}monitoring_interval": "0"}),
    ("fair", {_POLICIES: "none"}),
    ("capacity", {"yarn.scheduler.fair.max.assign": "many", "yarn.scheduler.increment-allocation-mb": "0"}),
    ("fair", {f"{_MONITOR}monitoring_interval": "0", "yarn.scheduler.configuration.store.class": "zookeeper"}),
    ("both", {f"{_RM}placement-constraints.handler": "none"}),
    ("both", {"yarn.node-labels.configuration-type": "delegated-centralized"}),
    ("both", {f"{_RM}am.max-attempts": "1", f"{_RM}am.global.max-attempts": "1"}),
    ("fair", {f"{_TYPES}.memory-mb.increment-allocation": "1 Gi"}),
    ("fair", {_TYPES: "yarn.io/gpu", f"{_TYPES}.yarn.io/gpu.increment-allocation": "2"}),
)


def schedulers(named: str) -> tuple[Scheduler, ...]:
    """Those that a row is about."""
    if named == "both":
        return ("capacity", "fair")
    return ("fair",) if named == "fair" else ("capacity",)


def site(settings: dict[str, str]) -> bytes:
    """A yarn-site.xml, one property a line from the second on."""
    lines = [
        f"<property><name>{escape(name)}</name><value>{escape(text)}</value></property>"
        for name, text in settings.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>\n"]).encode()


def document(scheduler: Scheduler) -> bytes:
    """A scheduler's file without any mistake."""
    return (FAIR if scheduler == "fair" else CAPACITY).encode()
