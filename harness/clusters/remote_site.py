"""Hadoop's properties for daemons on other hosts. A local cluster's are harness.clusters.local's."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from harness.clusters.daemons import SCHEDULERS
from harness.clusters.inventory import Host
from harness.clusters.processes import MARK
from harness.clusters.state import ClusterSpec

Sites = tuple[dict[str, str], dict[str, str], dict[str, str]]


def _core(home: str) -> dict[str, str]:
    return {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": posixpath.join(home, "tmp"),
        "ipc.client.connect.retry.interval": "250",
        "ipc.client.connect.max.retries": "400",
    }


def _mapred(home: str, class_path: str) -> dict[str, str]:
    return {
        "mapreduce.framework.name": "yarn",
        "yarn.app.mapreduce.am.staging-dir": posixpath.join(home, "staging"),
        "mapreduce.application.classpath": class_path,
        "mapreduce.shuffle.port": "0",
    }


def _shared(rm: Host, ports: Mapping[str, int], class_path: str) -> dict[str, str]:
    address = rm.address
    return {
        "yarn.resourcemanager.hostname": address,
        "yarn.resourcemanager.webapp.address": f"{address}:{ports['http']}",
        "yarn.resourcemanager.address": f"{address}:{ports['client']}",
        "yarn.resourcemanager.admin.address": f"{address}:{ports['admin']}",
        "yarn.resourcemanager.scheduler.address": f"{address}:{ports['scheduler']}",
        "yarn.resourcemanager.resource-tracker.address": f"{address}:{ports['tracker']}",
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
        "yarn.application.classpath": class_path,
    }


def rm_properties(
    spec: ClusterSpec, host: Host, rm: Host, home: str, ports: Mapping[str, int], class_path: str
) -> Sites:
    """(yarn, core, mapred) of the ResourceManager."""
    largest_mb = spec.memory_mb
    yarn = {
        **_shared(rm, ports, class_path),
        "yarn.resourcemanager.scheduler.class": SCHEDULERS[spec.scheduler][0],
        "yarn.scheduler.fair.allocation.file": posixpath.join(home, "scheduler", "fair-scheduler.xml"),
        "yarn.scheduler.fair.preemption": str(spec.preemption).lower(),
        "yarn.scheduler.minimum-allocation-mb": str(spec.minimum_allocation_mb),
        "yarn.scheduler.increment-allocation-mb": str(spec.minimum_allocation_mb),
        "yarn.scheduler.maximum-allocation-mb": str(largest_mb),
        "yarn.scheduler.maximum-allocation-vcores": str(spec.vcores),
        # Hosts may share an address (in a test they do): the port tells their nodes apart.
        "yarn.scheduler.include-port-in-node-name": "true",
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(spec.expiry_ms),
    }
    return yarn, _core(home), _mapred(home, class_path)


def node_properties(
    spec: ClusterSpec, host: Host, rm: Host, home: str, ports: Mapping[str, int], class_path: str
) -> Sites:
    """(yarn, core, mapred) of a NodeManager: any free port, and the host's own size where the inventory gives it."""
    address = host.address
    yarn = {
        **_shared(rm, ports, class_path),
        "yarn.nodemanager.hostname": address,
        "yarn.nodemanager.address": f"{address}:0",
        "yarn.nodemanager.localizer.address": f"{address}:0",
        "yarn.nodemanager.webapp.address": f"{address}:0",
        "yarn.nodemanager.collector-service.address": f"{address}:0",
        "yarn.nodemanager.resource.memory-mb": str(host.memory_mb or spec.memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": str(host.vcores or spec.vcores),
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.disk-health-checker.enable": str(spec.disk_checks).lower(),
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
        "yarn.nodemanager.local-dirs": posixpath.join(home, "local"),
        "yarn.nodemanager.log-dirs": posixpath.join(home, "userlogs"),
        "yarn.nodemanager.env-whitelist": f"JAVA_HOME,HADOOP_CONF_DIR,PATH,{MARK}",
    }
    return yarn, _core(home), _mapred(home, class_path)
