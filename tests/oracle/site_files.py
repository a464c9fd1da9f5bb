"""Random yarn-site.xml files together with their scheduler's file: what a differential test feeds.

A yarn-site.xml begins as one of several shapes (plain, preemption, resource types, node labels, the Fair Scheduler's
settings); then some of its properties are removed, given odd values, or added. The scheduler's file has mostly no
mistake of its own, so that what the ResourceManager says is about yarn-site.xml, or about both together.
"""

from __future__ import annotations

import random
from xml.sax.saxutils import escape

from tests.oracle import allocation_files, capacity_files
from tests.oracle.capacity_files import FLAGS, INTEGERS, REALS, Random
from tests.oracle.loading import Start

_RM = "org.apache.hadoop.yarn.server.resourcemanager."
_PREEMPTION = _RM + "monitor.capacity.ProportionalCapacityPreemptionPolicy"
_CAPACITY = _RM + "scheduler.capacity."
_MONITORS = [
    _PREEMPTION,
    _CAPACITY + "QueueManagementDynamicEditPolicy",
    _CAPACITY + "AutoCreatedQueueDeletionPolicy",
    _CAPACITY + "QueueConfigurationAutoRefreshPolicy",
]
MONITORS = [
    *_MONITORS,
    f"{_PREEMPTION},{_MONITORS[1]}",
    f" {_PREEMPTION} ,\n{_MONITORS[2]} ",
    f"{_PREEMPTION},{_PREEMPTION}",
    _PREEMPTION.replace("Proportional", "Proportionate"),
    "ProportionalCapacityPreemptionPolicy",
    _CAPACITY + "CapacityScheduler",
    "",
    ",",
]
AMOUNTS = ["0", "1", "512", "1024", "4096", "8192", "16384", "-1", "1048576", "3000000000", "4g", "", " 2048 ", "0x400"]
#: Custom resource types that Hadoop takes. Its classes keep what they have once read: each has a JVM of its own.
TAKEN_TYPES = ["yarn.io/gpu", "yarn.io/gpu, a.b-c_d"]
TYPES = [
    *TAKEN_TYPES,
    "yarn.io/gpu,yarn.io/gpu",
    "memory-mb",
    "memory",
    "vcores",
    "memory-mb,vcores",
    "1gpu",
    "a b",
    "yarn.io/",
    "/gpu",
    "yarn.io/gpu,,x",
    "",
    ",",
    "-gpu/x",
    "a-/x",
]
UNITS = ["", "G", "Gi", "M", "T", "k", "g", "Kb", " G", "p"]
INCREMENTS = [
    "1",
    "0",
    "512",
    "1024 M",
    "1 G",
    "1Gi",
    "2g",
    "1.5",
    "-1",
    "",
    "many",
    "1  G",
    " 1",
    "0 Gi",
    "1 k",
    "3 m",
]
#: A setting of yarn-site.xml, for both schedulers -> values that people write, and odd ones.
BOTH: dict[str, list[str]] = {
    "yarn.scheduler.minimum-allocation-mb": AMOUNTS,
    "yarn.scheduler.maximum-allocation-mb": AMOUNTS,
    "yarn.scheduler.minimum-allocation-vcores": INTEGERS,
    "yarn.scheduler.maximum-allocation-vcores": INTEGERS,
    "yarn.resource-types": TYPES,
    "yarn.resource-types.yarn.io/gpu.units": UNITS,
    "yarn.resource-types.yarn.io/gpu.type": ["countable", "COUNTABLE", "", "uncountable", " COUNTABLE"],
    "yarn.resource-types.yarn.io/gpu.minimum-allocation": INTEGERS,
    "yarn.resource-types.yarn.io/gpu.maximum-allocation": INTEGERS,
    "yarn.resource-types.yarn.io/gpu.tags": ["system:csi-volume", "x, y", ""],
    "yarn.resource-types.memory-mb.minimum-allocation": AMOUNTS,
    "yarn.resource-types.memory-mb.maximum-allocation": AMOUNTS,
    "yarn.resource-types.memory-mb.increment-allocation": INCREMENTS,
    "yarn.resource-types.vcores.minimum-allocation": INTEGERS,
    "yarn.resource-types.vcores.maximum-allocation": INTEGERS,
    "yarn.resource-types.vcores.increment-allocation": INCREMENTS,
    "yarn.resource-types.yarn.io/gpu.increment-allocation": INCREMENTS,
    "yarn.resourcemanager.scheduler.monitor.enable": FLAGS,
    "yarn.resourcemanager.scheduler.monitor.policies": MONITORS,
    "yarn.node-labels.enabled": FLAGS,
    "yarn.node-labels.configuration-type": ["centralized", "distributed", "delegated-centralized", "central", ""],
    "yarn.cluster.max-application-priority": INTEGERS,
    "yarn.resourcemanager.am.max-attempts": INTEGERS,
    "yarn.resourcemanager.am.global.max-attempts": INTEGERS,
    "yarn.nm.liveness-monitor.expiry-interval-ms": [*INTEGERS, "600000"],
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": INTEGERS,
    "yarn.scheduler.skip.node.multiplier": INTEGERS,
    "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": INTEGERS,
    "yarn.resourcemanager.placement-constraints.handler": [
        "disabled",
        "scheduler",
        "placement-processor",
        "none",
        "",
        " scheduler",
    ],
    "yarn.resourcemanager.placement-constraints.algorithm.iterator": ["SERIAL", "POPULAR_TAGS", "serial", "", "RANDOM"],
    "yarn.resourcemanager.activities-manager.cleanup-interval-ms": INTEGERS,
    "yarn.resourcemanager.max-completed-applications": INTEGERS,
    "yarn.resourcemanager.opportunistic-container-allocation.enabled": FLAGS,
    "yarn.nodemanager.distributed-scheduling.enabled": FLAGS,
}
#: What the Capacity Scheduler reads of it.
CAPACITY: dict[str, list[str]] = {
    "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": INTEGERS,
    "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": INTEGERS,
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": REALS,
    "yarn.resourcemanager.monitor.capacity.preemption.max_ignored_over_capacity": REALS,
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": REALS,
    "yarn.resourcemanager.monitor.capacity.preemption.observe_only": FLAGS,
    "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.enabled": FLAGS,
    "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.preemption-order-policy": [
        "userlimit_first",
        "priority_first",
        "PRIORITY_FIRST",
        "priority-first",
        "",
        " priority_first",
    ],
    "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.minimum-threshold": REALS,
    "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.max-allowable-limit": REALS,
    "yarn.resourcemanager.monitor.capacity.preemption.preemption-to-balance-queue-after-satisfied."
    "max-wait-before-kill": INTEGERS,
    "yarn.resourcemanager.monitor.capacity.queue-management.monitoring-interval": INTEGERS,
    "yarn.scheduler.capacity.queue.auto.refresh.monitoring-interval": INTEGERS,
    "yarn.scheduler.capacity.auto-queue-creation-v2.queue-expiration-time": INTEGERS,
    "yarn.scheduler.capacity.resource-calculator": capacity_files.CALCULATORS,
    "yarn.scheduler.capacity.maximum-applications": INTEGERS,
    "yarn.scheduler.capacity.maximum-am-resource-percent": REALS,
    "yarn.scheduler.capacity.root.a.maximum-applications": INTEGERS,
    "yarn.scheduler.capacity.root.a.maximum-allocation-mb": INTEGERS,
    "yarn.scheduler.capacity.root.a.maximum-allocation-vcores": INTEGERS,
    "yarn.scheduler.queue-placement-rules": [
        "user-group",
        "app-name",
        "user-group,app-name",
        "user",
        "",
        "user-group,",
    ],
    "yarn.scheduler.configuration.store.class": ["file", "File", "", "db", " file"],
}
#: What the Fair Scheduler reads of it.
FAIR: dict[str, list[str]] = {
    "yarn.scheduler.increment-allocation-mb": AMOUNTS,
    "yarn.scheduler.increment-allocation-vcores": INTEGERS,
    "yarn.scheduler.reservation-threshold.increment-multiple": REALS,
    "yarn.scheduler.fair.preemption": FLAGS,
    "yarn.scheduler.fair.preemption.cluster-utilization-threshold": REALS,
    "yarn.scheduler.fair.sizebasedweight": FLAGS,
    "yarn.scheduler.fair.assignmultiple": FLAGS,
    "yarn.scheduler.fair.dynamic.max.assign": FLAGS,
    "yarn.scheduler.fair.max.assign": INTEGERS,
    "yarn.scheduler.fair.locality.threshold.node": REALS,
    "yarn.scheduler.fair.locality.threshold.rack": REALS,
    "yarn.scheduler.fair.locality-delay-node-ms": INTEGERS,
    "yarn.scheduler.fair.locality-delay-rack-ms": INTEGERS,
    "yarn.scheduler.fair.continuous-scheduling-enabled": FLAGS,
    "yarn.scheduler.fair.continuous-scheduling-sleep-ms": INTEGERS,
    "yarn.scheduler.fair.update-interval-ms": INTEGERS,
    "yarn.scheduler.fair.reservable-nodes": REALS,
    "yarn.scheduler.fair.waitTimeBeforeKill": INTEGERS,
    "yarn.scheduler.fair.waitTimeBeforeNextStarvationCheck": INTEGERS,
    "yarn.scheduler.fair.allow-undeclared-pools": FLAGS,
    "yarn.scheduler.fair.user-as-default-queue": FLAGS,
    "yarn.scheduler.fair.am.preemption": FLAGS,
}


def _shape(rng: Random, fair: bool) -> dict[str, str]:
    """A yarn-site.xml without mistakes."""
    made: dict[str, str] = {}
    if rng.chance(0.5):
        made["yarn.scheduler.minimum-allocation-mb"] = rng.choice(["512", "1024"])
        made["yarn.scheduler.maximum-allocation-mb"] = rng.choice(["8192", "1048576"])
    if rng.chance(0.3):
        made["yarn.scheduler.minimum-allocation-vcores"] = "1"
        made["yarn.scheduler.maximum-allocation-vcores"] = rng.choice(["4", "64"])
    if rng.chance(0.3):
        made["yarn.resource-types"] = "yarn.io/gpu"
        if rng.chance(0.4):
            made["yarn.resource-types.yarn.io/gpu.maximum-allocation"] = "8"
        if not fair:
            made["yarn.scheduler.capacity.resource-calculator"] = capacity_files.CALCULATORS[0]
    if rng.chance(0.3):
        made["yarn.node-labels.enabled"] = "true"
    if fair:
        for name in rng.sample(sorted(FAIR), 3):
            made[name] = FAIR[name][1]
    elif rng.chance(0.5):
        made["yarn.resourcemanager.scheduler.monitor.enable"] = "true"
        if rng.chance(0.7):
            made["yarn.resourcemanager.scheduler.monitor.policies"] = rng.choice(_MONITORS)
    return made


def _mutated(rng: Random, made: dict[str, str], fair: bool) -> dict[str, str]:
    own = FAIR if fair else CAPACITY
    if rng.chance(0.1):
        name = f"{_RM}scheduler.fair.FairScheduler" if fair else f"{_CAPACITY}CapacityScheduler"
        odd = [name.lower(), f" {name}", name.rpartition(".")[2], name + "s", f"{_RM}ResourceManager", ""]
        made["yarn.resourcemanager.scheduler.class"] = rng.choice([name] * 5 + odd)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        draw = rng.random()
        if draw < 0.1 and made:
            del made[rng.choice(sorted(made))]
        elif draw < 0.3 and (known := sorted({*BOTH, *FAIR, *CAPACITY} & made.keys())):
            name = rng.choice(known)
            made[name] = rng.choice({**BOTH, **FAIR, **CAPACITY}[name])
        else:
            # Settings of the other scheduler are there too: they are read by nobody.
            table = rng.choice([BOTH, BOTH, BOTH, own, own, own, CAPACITY if fair else FAIR])
            name = rng.choice(sorted(table))
            made[name] = rng.choice(table[name])
    return made


def _site(made: dict[str, str]) -> bytes:
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(text)}</value></property>"
        for name, text in made.items()
    ]
    return ("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n").encode()


def random_start(seed: int) -> Start:
    """One yarn-site.xml with its scheduler's file."""
    rng = Random(seed)
    fair = rng.chance(0.4)
    settings = _mutated(rng, _shape(rng, fair), fair)
    site = _site(settings)
    types = settings.get("yarn.resource-types", "")
    types = types if types in TAKEN_TYPES else ""
    if fair:
        document = allocation_files.random_file(random.Random(seed), broken=rng.choice([0.0] * 5 + [0.01]), depth=1)
        return Start(site, document.encode(), "fair", types)
    made = capacity_files.shape(rng)
    if rng.chance(0.1):
        made = capacity_files.mutated(rng, made)
    if rng.chance(0.15):
        name = rng.choice(["maximum-allocation-mb", "maximum-allocation-vcores", "maximum-allocation"])
        made[f"root.a.{name}"] = rng.choice(capacity_files.QUEUE[name])
    return Start(site, capacity_files.document(made, rng), "capacity", types)
