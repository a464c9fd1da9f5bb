"""The configuration folder of Hadoop's daemons, for processes of this machine and of other hosts."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from harness.clusters import site
from harness.clusters.daemons import HISTORY_FOLDER, HISTORY_PORTS, LOOPBACK, SCHEDULERS
from harness.clusters.processes import MARK
from harness.clusters.state import ClusterSpec
from harness.yarn.capacity.properties import ASYNCHRONOUS


def rm_properties(spec: ClusterSpec, home: str) -> dict[str, str]:
    """Return the ResourceManager's properties. ``home``: the cluster's folder."""
    return {
        "yarn.resourcemanager.scheduler.class": SCHEDULERS[spec.scheduler].java_class,
        "yarn.scheduler.fair.allocation.file": posixpath.join(home, "scheduler", "fair-scheduler.xml"),
        SCHEDULERS[spec.scheduler].preemption: str(spec.preemption).lower(),
        # Since Hadoop 3.5 the Capacity Scheduler schedules asynchronously by default (harness.yarn.releases), and the
        # first request then takes all of an empty cluster.
        ASYNCHRONOUS: "false",
        "yarn.scheduler.minimum-allocation-mb": str(spec.minimum_allocation_mb),
        "yarn.scheduler.increment-allocation-mb": str(spec.minimum_allocation_mb),
        "yarn.scheduler.maximum-allocation-mb": str(spec.memory_mb),
        "yarn.scheduler.maximum-allocation-vcores": str(spec.vcores),
        # By default all ResourceManagers of a user share one folder: two that start at once break each other.
        "yarn.node-attribute.fs-store.root-dir": f"file://{posixpath.join(home, 'tmp', 'node-attribute')}",
        # Nodes may share an address (those of this machine do), so ports distinguish them.
        "yarn.scheduler.include-port-in-node-name": "true",
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(spec.expiry_ms),
    }


def history_properties(ports: Mapping[str, int], home: str) -> dict[str, str]:
    """Return the properties of the JobHistoryServer.

    The ResourceManager has them as well, so that clients learn the server's address from it.
    """
    folder = posixpath.join(home, "history")
    addresses = {name: f"{LOOPBACK}:{ports[port]}" for port, name in HISTORY_PORTS.items()}
    return {
        **addresses,
        HISTORY_FOLDER: f"file:{posixpath.join(folder, 'new')}",
        "mapreduce.jobhistory.done-dir": f"file:{posixpath.join(folder, 'done')}",
        "mapreduce.jobhistory.jhist.format": "json",
    }


def node_properties(
    spec: ClusterSpec,
    address: str,
    folder: str,
    *,
    port: int = 0,
    memory_mb: int | None = None,
    vcores: int | None = None,
) -> dict[str, str]:
    """Return a NodeManager's own properties.

    ``folder``: where its containers write; ``port``: the port of its RPC (0: a free one); ``memory_mb`` (MiB) and
    ``vcores``: what it advertises (None: as in ``spec``).
    """
    return {
        "yarn.nodemanager.hostname": address,
        "yarn.nodemanager.address": f"{address}:{port}",
        "yarn.nodemanager.localizer.address": f"{address}:0",
        "yarn.nodemanager.webapp.address": f"{address}:0",
        "yarn.nodemanager.collector-service.address": f"{address}:0",
        "yarn.nodemanager.resource.memory-mb": str(memory_mb or spec.memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": str(vcores or spec.vcores),
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.disk-health-checker.enable": str(spec.disk_checks).lower(),
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
        # Absolute, otherwise containers fail with "Stdout path must be absolute".
        "yarn.nodemanager.local-dirs": posixpath.join(folder, "local"),
        "yarn.nodemanager.log-dirs": posixpath.join(folder, "userlogs"),
        "yarn.nodemanager.env-whitelist": f"JAVA_HOME,HADOOP_CONF_DIR,PATH,{MARK}",
    }


def site_files(
    spec: ClusterSpec,
    own: Mapping[str, str],
    *,
    rm: str,
    ports: Mapping[str, int],
    home: str,
    folder: str,
    class_path: str,
) -> dict[str, str]:
    """Return the files of a daemon's configuration folder, by name.

    ``own``: `rm_properties` or `node_properties`; ``rm``: the ResourceManager's address; ``ports``: the
    ResourceManager's ports by name; ``home``: the cluster's folder; ``folder``: this daemon's folder.
    """
    core = {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": posixpath.join(folder, "tmp"),
        # Nodes start in parallel to the RM and retry until it is up.
        "ipc.client.connect.retry.interval": "250",
        "ipc.client.connect.max.retries": "400",
    }
    yarn = {
        "yarn.resourcemanager.hostname": rm,
        "yarn.resourcemanager.webapp.address": f"{rm}:{ports['http']}",
        "yarn.resourcemanager.address": f"{rm}:{ports['client']}",
        "yarn.resourcemanager.admin.address": f"{rm}:{ports['admin']}",
        "yarn.resourcemanager.scheduler.address": f"{rm}:{ports['scheduler']}",
        "yarn.resourcemanager.resource-tracker.address": f"{rm}:{ports['tracker']}",
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
        "yarn.application.classpath": class_path,
    }
    mapred = {
        "mapreduce.framework.name": "yarn",
        "yarn.app.mapreduce.am.staging-dir": posixpath.join(home, "staging"),
        "mapreduce.application.classpath": class_path,
        "mapreduce.shuffle.port": "0",
        # MapReduce's daemons load mapred-default.xml and this file after yarn-site.xml, so these must be here as well;
        # the ResourceManager loads, and shows to clients, only yarn-site.xml.
        **{name: value for name, value in own.items() if name.startswith("mapreduce.")},
    }
    # An empty text removes a property of ours, so that Hadoop's default holds.
    ours = {**yarn, **own}
    merged = {**ours, **spec.properties}
    kept = {name: value for name, value in merged.items() if value != "" or name not in ours}
    sites = {"core": core, "yarn": kept, "mapred": mapred}
    found = {f"{name}-site.xml": site.render(properties) for name, properties in sites.items()}
    return {**found, "log4j.properties": site.LOG4J}
