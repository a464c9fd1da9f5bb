"""The configuration of Hive and Tez, and a query's script. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.jobs.engines.cluster import Sizes
from harness.jobs.hive.installation import JAVA

#: Java's heap as a fraction of a container.
_HEAP = 0.6


@dataclass(frozen=True, slots=True)
class HivePlace:
    """The folders and the port of a run. ``work``: a folder that this machine and all nodes see under the same path.

    ``tez``: the folder of Tez' jars on the nodes; ``port``: HiveServer2's port on the loopback interface.
    """

    work: Path
    tez: Path
    port: int


def hive_properties(place: HivePlace, sizes: Sizes) -> dict[str, str]:
    """Return the properties of hive-site.xml.

    HiveServer2 serves one run, with its own metastore (Derby), and writes nothing outside ``work``.
    """
    work, heap = place.work, int(sizes.task_mb * _HEAP)
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={work}/metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "metastore.metastore.event.db.notification.api.auth": "false",
        "hive.execution.engine": "tez",
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "hive.server2.thrift.port": str(place.port),
        "hive.server2.webui.port": "0",
        "hive.server2.authentication": "NONE",
        "hive.server2.enable.doAs": "false",
        # Each connection has its own session, so that each query is one application.
        "hive.server2.tez.initialize.default.sessions": "false",
        "hive.server2.materializedviews.registry.impl": "DUMMY",
        "hive.scheduled.queries.executor.enabled": "false",
        "hive.notification.event.poll.interval": "0s",
        "hive.support.concurrency": "false",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
        "hive.metastore.warehouse.dir": f"{work}/warehouse",
        "hive.metastore.warehouse.external.dir": f"{work}/warehouse",
        "hive.exec.scratchdir": f"{work}/scratch",
        "hive.exec.local.scratchdir": f"{work}/local",
        "hive.downloaded.resources.dir": f"{work}/resources",
        "hive.user.install.directory": f"{work}/install",
        "hive.jar.directory": f"{work}/install",
        "hive.querylog.location": f"{work}/querylog",
        "hive.server2.logging.operation.log.location": f"{work}/operations",
        "hive.stats.autogather": "false",
        # Answers must be computed from the data, not from the metastore's statistics.
        "hive.compute.query.using.stats": "false",
        "hive.query.results.cache.enabled": "false",
        "hive.tez.container.size": str(sizes.task_mb),
        "hive.tez.java.opts": f"-Xmx{heap}m {' '.join(JAVA)}",
        "hive.auto.convert.join.noconditionaltask.size": str((heap << 20) // 6),
        "mapreduce.job.reduces": str(sizes.reduces),
        "mapreduce.framework.name": "yarn",
    }


def tez_properties(place: HivePlace, sizes: Sizes, *, queue: str) -> dict[str, str]:
    """Return the properties of tez-site.xml.

    Tez uses the cluster's own Hadoop jars and Tez' jars in addition, and writes its history below ``work``.
    """
    opens, heap = " ".join(JAVA), int(sizes.task_mb * _HEAP)
    return {
        "tez.ignore.lib.uris": "true",
        "tez.use.cluster.hadoop-libs": "true",
        "tez.cluster.additional.classpath.prefix": f"{place.tez}/*",
        "tez.queue.name": queue,
        "tez.staging-dir": f"{place.work}/staging",
        "tez.am.resource.memory.mb": str(sizes.am_mb),
        "tez.am.launch.cmd-opts": f"-Xmx{int(sizes.am_mb * _HEAP)}m {opens}",
        "tez.task.resource.memory.mb": str(sizes.task_mb),
        "tez.task.launch.cmd-opts": f"-Xmx{heap}m {opens}",
        "tez.runtime.io.sort.mb": str(max(heap // 4, 16)),
        "tez.runtime.unordered.output.buffer.size-mb": str(max(heap // 10, 8)),
        "tez.grouping.split-count": str(sizes.maps),
        "tez.am.max.app.attempts": "1",
        "tez.client.asynchronous-stop": "false",
        "tez.history.logging.service.class": "org.apache.tez.dag.history.logging.impl.SimpleHistoryLoggingService",
        "tez.simple.history.logging.dir": f"{place.work}/history",
    }


LOG4J2 = """\
status = ERROR
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{2}: %m%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
logger.server.name = org.apache.hive.service.server
logger.server.level = INFO
"""


def script(sql: str, tables: Mapping[str, tuple[str, str]]) -> str:
    """Return the shell's input: tables over the files in their present places, then the query.

    ``tables``: name -> folder, columns.
    """
    lines = [
        f"create external table if not exists {name} ({columns}) stored as parquet location '{folder}';"
        for name, (folder, columns) in tables.items()
    ]
    return "\n".join([*lines, f"{sql};"]) + "\n"
