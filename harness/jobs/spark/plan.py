"""One Spark program as YARN is given it: Spark's own application master in cluster mode, without spark-submit.

Cluster mode: the driver runs in the application master's container, so that YARN counts what it takes, and nothing
but the follow-up of it runs outside. The submission is what Spark's YARN client would send (Spark
4.0.5, org.apache.spark.deploy.yarn.Client, ApplicationMaster): the master's class with the Python program, its
properties in a file. Everything lies in folders that all nodes see alike, so nothing is localised. Pure: no files here.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.base.errors import CallError, check_ranges
from harness.jobs.spark.catalogue import SparkProgram, query_sql
from harness.model.resources import ZERO, Resource
from harness.yarn.rest import Submission

TYPE = "SPARK"
_MASTER = "org.apache.spark.deploy.yarn.ApplicationMaster"
_PYTHON_RUNNER = "org.apache.spark.deploy.PythonRunner"
# A task of MLlib's ALS is a deep structure to read: with a stack of 1 MB it fails (StackOverflowError).
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m"
# What Spark's own launcher opens for Java 17.
_OPENED = (
    *(f"java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)


def split_memory(container_mb: int, least_rest_mb: int) -> tuple[int, int]:
    """Divide a container into Java's heap and the rest, MiB. The rest is a quarter, and at least ``least_rest_mb``."""
    rest = max(least_rest_mb, container_mb // 4)
    return container_mb - rest, rest


@dataclass(frozen=True, slots=True)
class SparkSizes:
    """What a program asks for: containers in MiB, held until it ends. ``am_mb`` has the driver and its Python.

    ``read_tasks``: about as many tasks read the input; ``shuffle_tasks``: partitions after a shuffle.
    """

    executors: int = 2
    executor_mb: int = 1024
    executor_cores: int = 1
    am_mb: int = 1024
    read_tasks: int = 4
    shuffle_tasks: int = 2

    def __post_init__(self) -> None:
        # Spark wants a heap of 450 MB (1.5 times what it sets aside); the serial collector counts a survivor space
        # less: 512 MB beside what `split_memory` leaves.
        check_ranges(self, executors=(1, 10**5), executor_mb=(768, 2**20), executor_cores=(1, 1024), am_mb=(896, 2**20))
        check_ranges(self, read_tasks=(1, 10**5), shuffle_tasks=(1, 10**5))

    @property
    def executor(self) -> Resource:
        """An executor's container."""
        return Resource(self.executor_mb, self.executor_cores)

    @property
    def am(self) -> Resource:
        """The application master's, with the driver in it."""
        return Resource(self.am_mb, 1)


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """What the nodes see. ``home``: Spark's folder; ``work``: a folder that they may write; ``python``: their Python.

    ``scheduler``: where masters reach the ResourceManager; ``loopback``: all nodes are one machine, by its loopback.
    """

    home: str
    work: str
    python: str
    scheduler: str
    loopback: bool


@dataclass(frozen=True, slots=True)
class Input:
    """A data set as the nodes see it. ``files``: names; ``size``: bytes of all; ``wanted``: bytes asked for (scale).

    ``schemas``: of tables, their columns with Spark's types.
    """

    path: str
    files: tuple[str, ...]
    size: int
    wanted: int
    schemas: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """``files``: by name, to be put into the work folder before; ``answer``, ``log``: what is there afterwards."""

    submission: Submission
    files: Mapping[str, bytes]
    answer: str
    log: str
    properties: Mapping[str, str] = field(default_factory=dict)


def _tables(data: Input) -> dict[str, dict[str, str]]:
    return {table: {"path": f"{data.path}/{table}.parquet", "schema": text} for table, text in data.schemas.items()}


def call_of(
    program: SparkProgram, settings: Mapping[str, str], data: Input, sizes: SparkSizes, answer: str
) -> dict[str, object]:
    """What the program is told, as JSON. Raises CallError for a setting out of range."""
    if program.queries:
        # 1 GB is scale factor 1 (harness.jobs.data).
        queries = {str(number): query_sql(number, settings, data.wanted / 1e9) for number in program.queries}
        return {"tables": _tables(data), "queries": queries, "answer": answer}
    numbers: dict[str, object] = {}
    for name, (low, high) in _RANGES[program.name].items():
        value = float(settings[name])
        if not low <= value <= high:
            raise CallError(f"{name} is {value:g}", where="--set", hint=f"give a number from {low} to {high}")
        if name in ("tolerance", "regularisation"):
            numbers[name] = value
        elif value != int(value):
            raise CallError(f"{name} is {value:g}", where="--set", hint="give a whole number")
        else:
            numbers[name] = int(value)
    if program.name == "als":
        numbers["blocks"] = sizes.shuffle_tasks
        numbers["checkpoint"] = f"file://{answer}.checkpoint"
    return {"input": [f"{data.path}/{name}" for name in data.files], **numbers, "answer": answer}


_RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "kmeans": {"k": (2, 1000), "iterations": (1, 10_000), "tolerance": (0, 1e9), "seed": (0, 2**31 - 1)},
    "als": {"rank": (1, 500), "iterations": (1, 1000), "regularisation": (0, 1e6), "seed": (0, 2**31 - 1)},
}


def properties_of(program: SparkProgram, sizes: SparkSizes, place: SparkPlace, data: Input) -> dict[str, str]:
    """Spark's configuration for one run."""
    heap, rest = split_memory(sizes.executor_mb, 256)
    driver, driver_rest = split_memory(sizes.am_mb, 384)
    # With more than one task a core, some read the rest of a file only.
    piece = max(math.ceil(data.size / sizes.read_tasks), 64 << 10)
    found = {
        "spark.app.name": program.name,
        "spark.master": "yarn",
        "spark.submit.deployMode": "cluster",
        "spark.yarn.isPython": "true",
        "spark.yarn.jars": f"local:{place.home}/jars/*",
        "spark.pyspark.python": place.python,
        "spark.executor.instances": str(sizes.executors),
        "spark.executor.cores": str(sizes.executor_cores),
        "spark.executor.memory": f"{heap}m",
        "spark.executor.memoryOverhead": f"{rest}m",
        "spark.driver.memory": f"{driver}m",
        "spark.driver.memoryOverhead": f"{driver_rest}m",
        "spark.executor.extraJavaOptions": _JAVA,
        # As many as were asked for, until the end: the papers' executors.
        "spark.dynamicAllocation.enabled": "false",
        "spark.default.parallelism": str(sizes.shuffle_tasks),
        "spark.sql.shuffle.partitions": str(sizes.shuffle_tasks),
        "spark.sql.files.maxPartitionBytes": str(piece),
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.warehouse.dir": f"file://{place.work}/warehouse",
        "spark.hadoop.fs.defaultFS": "file:///",
        # Local files' list is made on the driver: no job for it.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{place.work}",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.locality.wait": "0",
        # A busy machine is slow, not broken.
        "spark.network.timeout": "600s",
        "spark.yarn.am.waitTime": "600s",
        "spark.yarn.scheduler.heartbeat.interval-ms": "1000",
        "spark.yarn.preserve.staging.files": "true",
        "spark.hadoop.yarn.resourcemanager.scheduler.address": place.scheduler,
    }
    if place.loopback:
        found["spark.executorEnv.SPARK_LOCAL_IP"] = "127.0.0.1"
    return found


def plan(
    program: SparkProgram,
    settings: Mapping[str, str],
    sizes: SparkSizes,
    place: SparkPlace,
    data: Input,
    *,
    queue: str,
    name: str,
    tags: Sequence[str],
    source: bytes,
    properties: Mapping[str, str] | None = None,
) -> Plan:
    """What is submitted for one run, and the files that must lie in the work folder before.

    ``name``: of the run, unique in the work folder; ``source``: the program's text; ``properties``: more of Spark's.
    Raises CallError for a setting out of range.
    """
    answer, log = f"{name}.answer", f"{name}.log"
    work = place.work
    call = call_of(program, settings, data, sizes, f"{work}/{answer}")
    conf = {**properties_of(program, sizes, place, data), **(properties or {})}
    opens = " ".join(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED)
    heap, _ = split_memory(sizes.am_mb, 384)
    words = [
        f"exec $JAVA_HOME/bin/java -Xmx{heap}m {_JAVA} {opens}",
        "-Djdk.reflect.useDirectMethodHandle=false -Dio.netty.tryReflectionSetAccessible=true",
        "-Djava.io.tmpdir=$PWD -Dspark.yarn.app.container.log.dir=<LOG_DIR>",
        f"-cp {shlex.quote(f'{place.home}/jars/*')} {_MASTER} --class {_PYTHON_RUNNER}",
        f"--primary-py-file {shlex.quote(f'{work}/{name}.py')} --arg {shlex.quote(f'{work}/{name}.json')}",
        f"--properties-file {shlex.quote(f'{work}/{name}.properties')}",
        # Where it is found without asking the node: a failed program's last lines. Python's come by the output.
        f">{shlex.quote(f'{work}/{log}')} 2>&1",
    ]
    environment = {
        "SPARK_YARN_STAGING_DIR": f"{work}/{name}.staging",
        # Spark's own Python code is found from here.
        "SPARK_HOME": place.home,
        "PYSPARK_PYTHON": place.python,
        "PYTHONDONTWRITEBYTECODE": "1",
        # MLlib's arithmetic is Java's: numpy's own threads only take memory.
        "OPENBLAS_NUM_THREADS": "1",
    }
    if place.loopback:
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    files = {
        f"{name}.py": source,
        f"{name}.json": json.dumps(call).encode(),
        f"{name}.properties": property_file(conf).encode(),
    }
    submission = Submission(
        name=program.name,
        queue=queue,
        command=" ".join(words),
        resource=sizes.am,
        type=TYPE,
        tags=list(tags),
        environment=environment,
        max_attempts=1,
    )
    return Plan(submission, files, answer, log, conf)


def property_file(properties: Mapping[str, str]) -> str:
    """Java's properties format: one a line, what would be read otherwise escaped."""
    lines = []
    for key, value in properties.items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{key}={escaped}\n")
    return "".join(lines)


def fits(sizes: SparkSizes, nodes: Sequence[Resource]) -> str | None:
    """Why nodes of these (empty) sizes cannot hold the application master and all executors at once; None: they can.

    A node takes a container when it has the memory and the vcores. The master goes where fewest executors are lost.
    """

    def holds(node: Resource, taken: Resource = ZERO) -> int:
        memory, vcores = node.memory_mb - taken.memory_mb, node.vcores - taken.vcores
        if memory < 0 or vcores < 0:
            return -1
        return min(memory // sizes.executor_mb, vcores // sizes.executor_cores)

    if not any(holds(node, sizes.am) >= 0 for node in nodes):
        return f"no node holds the application master of {sizes.am_mb} MB with the driver"
    if not any(holds(node) >= 1 for node in nodes):
        return f"no node holds an executor of {sizes.executor_mb} MB and {sizes.executor_cores} vcore(s)"
    room = sum(holds(node) for node in nodes)
    lost = min(holds(node) - holds(node, sizes.am) for node in nodes if holds(node, sizes.am) >= 0)
    if room - lost < sizes.executors:
        return (
            f"the nodes hold the application master of {sizes.am_mb} MB and {max(room - lost, 0)} executor(s) of "
            f"{sizes.executor_mb} MB and {sizes.executor_cores} vcore(s), not {sizes.executors}"
        )
    return None
