"""Builds the submission of one Spark program: Spark's own AM in cluster mode, without spark-submit.

In cluster mode the driver runs in the AM's container, so that YARN counts its resources, and only monitoring runs
outside. The submission is the same as that of Spark's YARN client (Spark 4.0.5, org.apache.spark.deploy.yarn.Client,
ApplicationMaster): the AM's class with the Python program, and a file with its properties. All files are in folders
that all nodes see under the same path, so nothing is localised. Pure: does not access files.
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
# A task of MLlib's ALS is a deeply nested structure: reading it with a stack of 1 MB fails (StackOverflowError).
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m"
# The packages that Spark's own launcher opens on Java 17.
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
    """A program's containers, in MiB, held until it ends. ``am_mb`` includes the driver and its Python.

    ``read_tasks``: the approximate number of tasks that read the input; ``shuffle_tasks``: partitions after a shuffle.
    """

    executors: int = 2
    executor_mb: int = 1024
    executor_cores: int = 1
    am_mb: int = 1024
    read_tasks: int = 4
    shuffle_tasks: int = 2

    def __post_init__(self) -> None:
        # Spark requires a heap of 450 MB (1.5 times its reserved memory), and the serial collector reports a heap
        # without one survivor space: 512 MB besides what `split_memory` leaves.
        check_ranges(self, executors=(1, 10**5), executor_mb=(768, 2**20), executor_cores=(1, 1024), am_mb=(896, 2**20))
        check_ranges(self, read_tasks=(1, 10**5), shuffle_tasks=(1, 10**5))

    @property
    def executor(self) -> Resource:
        """Return an executor's container."""
        return Resource(self.executor_mb, self.executor_cores)

    @property
    def am(self) -> Resource:
        """Return the AM's container, which includes the driver."""
        return Resource(self.am_mb, 1)


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """The paths and addresses on the nodes.

    ``home``: Spark's folder; ``work``: a writable folder; ``python``: their Python.

    ``scheduler``: the ResourceManager's address for AMs; ``loopback``: all nodes are one machine and use its loopback.
    """

    home: str
    work: str
    python: str
    scheduler: str
    loopback: bool


@dataclass(frozen=True, slots=True)
class Input:
    """A data set as the nodes see it. ``files``: names; ``size``: total bytes; ``wanted``: requested bytes (scale).

    ``schemas``: table -> its columns with Spark's types.
    """

    path: str
    files: tuple[str, ...]
    size: int
    wanted: int
    schemas: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """One submission. ``files``: name -> content to write into the work folder first.

    ``answer``, ``log``: files it creates.
    """

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
    """Return the program's arguments as JSON. Raises CallError for a setting out of range."""
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
    """Return Spark's configuration for one run."""
    heap, rest = split_memory(sizes.executor_mb, 256)
    driver, driver_rest = split_memory(sizes.am_mb, 384)
    # With more than one task a core, some tasks read only the rest of a file.
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
        # As many executors as requested, until the end, as in the papers.
        "spark.dynamicAllocation.enabled": "false",
        "spark.default.parallelism": str(sizes.shuffle_tasks),
        "spark.sql.shuffle.partitions": str(sizes.shuffle_tasks),
        "spark.sql.files.maxPartitionBytes": str(piece),
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.warehouse.dir": f"file://{place.work}/warehouse",
        "spark.hadoop.fs.defaultFS": "file:///",
        # The driver lists local files itself, without a job.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{place.work}",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.locality.wait": "0",
        # On a busy machine slow answers are no failures.
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
    """Return the submission of one run, and the files that must be in the work folder first.

    ``name``: name of the run, unique in the work folder; ``source``: the program's text; ``properties``: further
    properties of Spark. Raises CallError for a setting out of range.
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
        # The log is in the work folder, so that the last lines of a failed program can be read without asking the node.
        # The Python program's output is in it, too.
        f">{shlex.quote(f'{work}/{log}')} 2>&1",
    ]
    environment = {
        "SPARK_YARN_STAGING_DIR": f"{work}/{name}.staging",
        # Spark's own Python code is found through this path.
        "SPARK_HOME": place.home,
        "PYSPARK_PYTHON": place.python,
        "PYTHONDONTWRITEBYTECODE": "1",
        # MLlib computes in Java, so numpy's own threads would only use memory.
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
    """Return a file in Java's properties format: one property a line, with escapes where needed."""
    lines = []
    for key, value in properties.items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{key}={escaped}\n")
    return "".join(lines)


def fits(sizes: SparkSizes, nodes: Sequence[Resource]) -> str | None:
    """Explain why nodes of these (empty) sizes cannot hold the AM and all executors at once; None if they can.

    A node takes a container if it has the memory and the vcores. The AM goes to the node where it costs the fewest
    executors.
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
