"""Builds a MapReduce job as YARN expects it, without Hadoop's client: job.xml, the splits, the AM's context.

It corresponds to what Hadoop's JobSubmitter writes into a job's staging folder, and YARNRunner into its submission
context: a job of the catalogue and its sizes become properties, and its inputs become splits, both as bytes. Pure:
harness.jobs.mapreduce.programs stores the files and submits. Formats: Hadoop 3.4.2, JobSplitWriter, JobSplit,
WritableUtils.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.jobs.mapreduce.catalogue import HadoopJob, uri
from harness.model.resources import Resource
from harness.yarn.rest import LocalFile, Submission

JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
#: Java's heap as a fraction of its container: a task's heap leaves memory for the streaming program.
TASK_HEAP, AM_HEAP = 0.5, 0.6
PARTITION_FILE = "_partition.lst"
_LIB = "org.apache.hadoop.mapreduce.lib"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file as the nodes see it."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file that one map reads, in bytes."""

    path: str
    start: int
    length: int


def splits_of(files: Sequence[InputFile], maps: int) -> list[Split]:
    """Return ``maps`` splits of nearly equal size, but at least one for each file; an empty file gets one, too."""
    full = [file for file in files if file.size > 0]
    empty = [Split(file.path, 0, 0) for file in files if file.size <= 0]
    # Each file gets one split; every further split divides the file whose splits are the largest.
    wanted = [1] * len(full)
    largest: list[tuple[float, int]] = [(-file.size, at) for at, file in enumerate(full)]
    heapq.heapify(largest)
    for _ in range(maps - len(full) if full else 0):
        _, at = largest[0]
        wanted[at] += 1
        heapq.heapreplace(largest, (-full[at].size / wanted[at], at))
    found = []
    for file, count in zip(full, wanted, strict=True):
        count = min(count, file.size)
        cuts = [file.size * at // count for at in range(count + 1)]
        found += [Split(file.path, start, end - start) for start, end in pairwise(cuts)]
    return found + empty


# --- Hadoop's formats -------------------------------------------------------------------------------------------------


def vlong(value: int) -> bytes:
    """Return an integer as Hadoop's ``WritableUtils.writeVLong`` writes it."""
    if -112 <= value <= 127:
        return struct.pack("b", value)
    head, rest = (-112, value) if value >= 0 else (-120, ~value)
    body = rest.to_bytes((rest.bit_length() + 7) // 8, "big")
    return struct.pack("b", head - len(body)) + body


def text(value: bytes) -> bytes:
    """Return bytes as Hadoop's ``Text.write`` writes them: their length, and the bytes."""
    return vlong(len(value)) + value


def split_files(splits: Sequence[Split], *, new_api: bool) -> tuple[bytes, bytes]:
    """Return the files ``job.split`` and ``job.splitmetainfo``."""
    name = f"{_LIB}.input.FileSplit" if new_api else "org.apache.hadoop.mapred.FileSplit"
    body = bytearray(b"SPL" + struct.pack(">i", 1))
    meta = bytearray(b"META-SPL" + vlong(1) + vlong(len(splits)))
    for split in splits:
        # No locations are needed, because every node sees the folder under the same path.
        meta += vlong(0) + vlong(len(body)) + vlong(split.length)
        # The path is not escaped: Hadoop reads it back as a Path, which escapes it itself.
        body += text(name.encode()) + text(uri(split.path).encode())
        body += struct.pack(">qq", split.start, split.length)
    return bytes(body), bytes(meta)


def partition_file(sample: Sequence[bytes], reduces: int) -> bytes:
    """Return TeraSort's partition boundaries from a sample of the input's records; the first 10 bytes are the key."""
    keys = sorted(record[:10] for record in sample)
    if not keys:
        return b""
    return b"".join(text(keys[len(keys) * at // reduces]) for at in range(1, reduces))


# --- properties -------------------------------------------------------------------------------------------------------


def is_new_api(properties: Mapping[str, str]) -> bool:
    """Return whether a job uses ``org.apache.hadoop.mapreduce`` (streaming uses ``org.apache.hadoop.mapred``)."""
    return properties.get("mapred.mapper.new-api") == "true"


@dataclass(frozen=True, slots=True)
class Sized:
    """The container sizes of a job."""

    map: Resource
    reduce: Resource
    am: Resource


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a job must know of the cluster. ``staging``, ``history``: folders that all nodes see under the same path.

    ``class_path``: Hadoop's jars on the nodes; ``extra``: further jars, in a folder that all nodes see.
    """

    class_path: str
    extra: tuple[str, ...]
    staging: str
    history: str
    user: str = "yarnfair"
    am_heartbeat_ms: int = 1000

    def folder(self, identity: str) -> str:
        """Return a job's staging folder, where its AM looks for it."""
        return f"{self.staging}/{self.user}/.staging/{identity.replace('application_', 'job_')}"

    @property
    def classes(self) -> str:
        """The class path with the extra entries, separated by commas."""
        return ",".join([*self.class_path.replace(":", ",").split(","), *self.extra])


def job_xml(
    job: HadoopJob,
    sized: Sized,
    cluster: Cluster,
    *,
    queue: str,
    name: str,
    work: str,
    slow_start: float = 1.0,
    cached: Mapping[str, LocalFile] | None = None,
    properties: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the properties of ``job.xml``.

    ``work``: the job's working folder. ``cached``: files by their names in tasks.
    """
    smaller = min(sized.map.memory_mb, sized.reduce.memory_mb)
    found = {
        "mapreduce.framework.name": "yarn",
        "mapreduce.job.user.name": cluster.user,
        "mapreduce.job.queuename": queue,
        "mapreduce.job.name": name,
        "yarn.app.mapreduce.am.staging-dir": cluster.staging,
        "mapreduce.jobhistory.intermediate-done-dir": cluster.history,
        # The history is written as lines of JSON, which can be read without Avro.
        "mapreduce.jobhistory.jhist.format": "json",
        "mapreduce.application.classpath": cluster.classes,
        "yarn.app.mapreduce.am.resource.mb": str(sized.am.memory_mb),
        "yarn.app.mapreduce.am.resource.cpu-vcores": str(sized.am.vcores),
        "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": str(cluster.am_heartbeat_ms),
        "yarn.app.mapreduce.am.log.level": "WARN",
        "mapreduce.job.reduce.slowstart.completedmaps": str(slow_start),
        "mapreduce.task.io.sort.mb": str(max(int(smaller * TASK_HEAP) // 4, 16)),
        # No speculative attempts: tasks that a slow machine delays are not stragglers.
        "mapreduce.map.speculative": "false",
        "mapreduce.reduce.speculative": "false",
    }
    for kind, size in (("map", sized.map), ("reduce", sized.reduce)):
        found[f"mapreduce.{kind}.memory.mb"] = str(size.memory_mb)
        found[f"mapreduce.{kind}.cpu.vcores"] = str(size.vcores)
        found[f"mapreduce.{kind}.java.opts"] = f"-Xmx{int(size.memory_mb * TASK_HEAP)}m {JAVA_OPTIONS}"
        found[f"mapreduce.{kind}.log.level"] = "WARN"
    if cached:
        found["mapreduce.job.cache.files"] = ",".join(f"{one.resource}#{name}" for name, one in cached.items())
        found["mapreduce.job.cache.files.timestamps"] = ",".join(str(one.timestamp_ms) for one in cached.values())
        found["mapreduce.job.cache.files.filesizes"] = ",".join(str(one.size) for one in cached.values())
        found["mapreduce.job.cache.files.visibilities"] = ",".join("false" for _ in cached)
    # The folder where TeraSort's tasks look for the partition file, regardless of its client's settings.
    return {**found, **job.properties, "mapreduce.job.working.dir": uri(work), **(properties or {})}


def submission(
    sized: Sized, cluster: Cluster, job_file: LocalFile, *, queue: str, name: str, tags: Sequence[str]
) -> Submission:
    """Return the AM's submission context."""
    heap = int(sized.am.memory_mb * AM_HEAP)
    log = (
        "-Dlog4j.configuration=container-log4j.properties -Dyarn.app.container.log.dir=<LOG_DIR> "
        "-Dyarn.app.container.log.filesize=0 -Dhadoop.root.logger=WARN,CLA -Dhadoop.root.logfile=syslog"
    )
    opens = " ".join(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "net"))
    command = (
        f"$JAVA_HOME/bin/java {opens} -Djava.io.tmpdir=$PWD/tmp {log} -Xmx{heap}m {JAVA_OPTIONS} "
        "org.apache.hadoop.mapreduce.v2.app.MRAppMaster 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"
    )
    return Submission(
        name=name,
        queue=queue,
        command=command,
        resource=sized.am,
        type="MAPREDUCE",
        tags=list(tags),
        environment={
            "CLASSPATH": ":".join(["$PWD", "$HADOOP_CONF_DIR", *cluster.classes.split(",")]),
            "LANG": "C.UTF-8",
        },
        files={"job.xml": job_file},
        max_attempts=1,
    )
