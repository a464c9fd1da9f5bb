"""The settings that Hadoop's Capacity Scheduler knows, with the type of each value.

Covers 3.4.2 and 3.5.0 (``CapacitySchedulerConfiguration``, ``ReservationSchedulerConfiguration``). A setting in none of
these tables has no effect.
"""

from __future__ import annotations

import re

FLAG, WHOLE, REAL, TEXT = "flag", "whole", "real", "text"
#: The scheduler's own settings.
GLOBAL = {
    "application.fail-fast": FLAG,
    "auto-queue-creation-v2.queue-expiration-time": WHOLE,
    "global-queue-max-application": WHOLE,
    "lazy-preemption-enabled": FLAG,
    "legacy-queue-mode.enabled": FLAG,
    "mapping-rule-format": TEXT,
    "mapping-rule-json": TEXT,
    "mapping-rule-json-file": TEXT,
    "max-parallel-apps": WHOLE,
    "maximum-am-resource-percent": REAL,
    "maximum-applications": WHOLE,
    "minimum-user-limit-percent": REAL,
    "multi-node-placement-enabled": FLAG,
    "multi-node-sorting.policy": TEXT,
    "multi-node-sorting.policy.names": TEXT,
    "node-locality-delay": WHOLE,
    "per-node-heartbeat.maximum-container-assignments": WHOLE,
    "per-node-heartbeat.maximum-offswitch-assignments": WHOLE,
    "per-node-heartbeat.multiple-assignments-enabled": FLAG,
    "queue-mappings": TEXT,
    "queue-mappings-override.enable": FLAG,
    "queue.auto.refresh.monitoring-interval": WHOLE,
    "rack-locality-additional-delay": WHOLE,
    "rack-locality-full-reset": FLAG,
    "reservations-continue-look-all-nodes": FLAG,
    "resource-calculator": TEXT,
    "schedule-asynchronously.enable": FLAG,
    "schedule-asynchronously.maximum-pending-backlogs": WHOLE,
    "schedule-asynchronously.maximum-threads": WHOLE,
    "schedule-asynchronously.scheduling-interval-ms": WHOLE,
    "skip-allocate-on-nodes-with-reserved-containers": FLAG,
    "user-limit-factor": REAL,
    "user-metrics.enable": FLAG,
    "user.max-parallel-apps": WHOLE,
    "workflow-priority-mappings": TEXT,
    "workflow-priority-mappings-override.enable": FLAG,
}
#: A queue's settings.
QUEUE = {
    "accessible-node-labels": TEXT,
    "acl_administer_queue": TEXT,
    "acl_administer_reservations": TEXT,
    "acl_application_max_priority": TEXT,
    "acl_list_reservations": TEXT,
    "acl_submit_applications": TEXT,
    "acl_submit_reservations": TEXT,
    "allow-zero-capacity-sum": FLAG,
    "auto-create-child-queue.enabled": FLAG,
    "auto-create-child-queue.fail-on-exceeding-parent-capacity": FLAG,
    "auto-create-child-queue.management-policy": TEXT,
    "auto-create-child-queue.max-queues": WHOLE,
    "auto-queue-creation-v2.enabled": FLAG,
    "auto-queue-creation-v2.max-queues": WHOLE,
    "auto-queue-creation-v2.maximum-queue-depth": WHOLE,
    "auto-queue-creation-v2.queue-auto-removal.enable": FLAG,
    "average-capacity": REAL,
    "capacity": TEXT,
    "default-application-lifetime": WHOLE,
    "default-application-priority": WHOLE,
    "default-node-label-expression": TEXT,
    "disable_preemption": FLAG,
    "instantaneous-max-capacity": REAL,
    "intra-queue-preemption.disable_preemption": FLAG,
    "max-parallel-apps": WHOLE,
    "maximum-allocation": TEXT,
    "maximum-allocation-mb": WHOLE,
    "maximum-allocation-vcores": WHOLE,
    "maximum-am-resource-percent": REAL,
    "maximum-application-lifetime": WHOLE,
    "maximum-applications": WHOLE,
    "maximum-capacity": TEXT,
    "minimum-user-limit-percent": REAL,
    "multi-node-sorting.policy": TEXT,
    "ordering-policy": TEXT,
    "ordering-policy.exclusive-enforced-partitions": TEXT,
    "ordering-policy.fair.enable-size-based-weight": FLAG,
    "priority": WHOLE,
    "queues": TEXT,
    "reservable": FLAG,
    "reservation-agent": TEXT,
    "reservation-enforcement-window": WHOLE,
    "reservation-move-on-expiry": FLAG,
    "reservation-planner": TEXT,
    "reservation-policy": TEXT,
    "reservation-window": WHOLE,
    "show-reservations-as-queues": FLAG,
    "state": TEXT,
    "user-limit-factor": REAL,
}
#: A queue's settings in the first releases of YARN -> their present names.
OLD_NAMES = {"acl_administer_jobs": "acl_administer_queue"}
#: Prefixes of template settings, for queues that applications create; a queue's settings follow the prefix.
TEMPLATES = (
    "leaf-queue-template.",
    "auto-queue-creation-v2.template.",
    "auto-queue-creation-v2.leaf-template.",
    "auto-queue-creation-v2.parent-template.",
)
#: A label's settings, behind ``accessible-node-labels.LABEL.``.
LABEL = {"capacity": TEXT, "maximum-capacity": TEXT, "maximum-am-resource-percent": REAL}
_LABELLED = re.compile(r"accessible-node-labels\.([^.]+)\.(.+)")
_USER_WEIGHT = re.compile(r"user-settings\.\S+\.weight")
_GLOBAL_FAMILIES = re.compile(
    r"user\..+\.max-parallel-apps|multi-node-sorting\.policy\.[^.]+\.(class|sorting-interval\.ms)"
    r"|ordering-policy\.priority-utilization\.underutilized-preemption\.[\w-]+"
)
_MONITOR = "yarn.resourcemanager.monitor.capacity."
#: Properties without the scheduler's prefix that it also reads from its file.
ELSEWHERE = {
    f"{_MONITOR}preemption.{name}": kind
    for name, kind in {
        "observe_only": FLAG,
        "monitoring_interval": WHOLE,
        "max_wait_before_kill": WHOLE,
        "total_preemption_per_round": REAL,
        "max_ignored_over_capacity": REAL,
        "natural_termination_factor": REAL,
        "additional_res_balance_based_on_reserved_containers": FLAG,
        "select_based_on_reserved_containers": FLAG,
        "conservative-drf": FLAG,
        "intra-queue-preemption.enabled": FLAG,
        "intra-queue-preemption.minimum-threshold": REAL,
        "intra-queue-preemption.max-allowable-limit": REAL,
        "intra-queue-preemption.preemption-order-policy": TEXT,
        "intra-queue-preemption.conservative-drf": FLAG,
        "preemption-to-balance-queue-after-satisfied.enabled": FLAG,
        "preemption-to-balance-queue-after-satisfied.max-wait-before-kill": WHOLE,
    }.items()
} | {
    f"{_MONITOR}queue-management.monitoring-interval": WHOLE,
    "yarn.scheduler.queue-placement-rules": TEXT,
    "yarn.scheduler.queue-placement-rules.app-name": TEXT,
    "yarn.scheduler.minimum-allocation-mb": WHOLE,
    "yarn.scheduler.minimum-allocation-vcores": WHOLE,
    "yarn.scheduler.maximum-allocation-mb": WHOLE,
    "yarn.scheduler.maximum-allocation-vcores": WHOLE,
    "yarn.cluster.max-application-priority": WHOLE,
}


def global_kind(name: str) -> str | None:
    """Return the type of one of the scheduler's own settings; None if there is no such setting."""
    if name in GLOBAL:
        return GLOBAL[name]
    if _GLOBAL_FAMILIES.fullmatch(name):
        return WHOLE if name.endswith(("max-parallel-apps", ".ms")) else TEXT
    return None


def queue_kind(name: str) -> str | None:
    """Return the type of a queue's setting, templates included; None if there is no such setting."""
    if name in QUEUE:
        return QUEUE[name]
    if found := _LABELLED.fullmatch(name):
        return LABEL.get(found[2])
    if _USER_WEIGHT.fullmatch(name):
        return REAL
    if name.startswith("ordering-policy."):
        return TEXT
    for prefix in TEMPLATES:
        if name.startswith(prefix):
            return queue_kind(name[len(prefix) :])
    return None
