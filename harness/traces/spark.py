"""Converts Spark's properties to values of a trace: container sizes, bounds and timeouts of dynamic allocation.

The rules are Spark's own: ``YarnAllocator`` and ``yarn.Client`` for containers, ``ExecutorAllocationManager`` and
``ExecutorMonitor`` for dynamic allocation (2.4 to 4.0). No I/O.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.base.documents import LONGEST_S
from harness.model.jobs import DynamicAllocation
from harness.model.resources import Resource

#: Spark's defaults (org.apache.spark.internal.config, org.apache.spark.deploy.yarn.config).
_HEAP_MB, _AM_MB, _CORES = 1024, 512, 1
_OVERHEAD_FACTOR, _LEAST_OVERHEAD_MB = 0.1, 384
_INSTANCES = 2
_RATIO, _BACKLOG_S, _IDLE_S = 1.0, 1.0, 60.0
#: A driver begins when this fraction of its executors has registered, or this time after it asked for them
#: (``YarnSchedulerBackend``, ``CoarseGrainedSchedulerBackend``).
_LEAST_PART, _WAIT_S = 0.8, 30.0
#: The interval of an AM's heartbeats to the ResourceManager (``spark.yarn.scheduler.heartbeat``).
_HEARTBEAT_S = 3.0
#: Spark's notation of memory amounts and times (``JavaUtils``).
_MEMORY = re.compile(r"(\d{1,15})\s*([a-z]*)")
_MB = {"b": 2**-20, "k": 2**-10, "kb": 2**-10, "m": 1, "mb": 1, "g": 2**10, "gb": 2**10, "t": 2**20, "tb": 2**20}
_MB |= {"p": 2**30, "pb": 2**30}
_TIME = re.compile(r"(\d{1,15})\s*([a-z]*)")
_US = {"us": 1, "ms": 1000, "s": 10**6, "m": 60 * 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
#: A timeout of 0 is legal and has expired at the manager's next check: the shortest time that the simulator supports.
_AT_ONCE_S = 0.001


def memory_mb(text: str | None, *, unit: str = "m") -> int | None:
    """Return an amount of memory in MiB (``JavaUtils.byteStringAs``), or None for an invalid text.

    Parameters
    ----------
    text : str or None
        Such as ``4g``.
    unit : str
        The unit of an amount without one.
    """
    found = _MEMORY.fullmatch((text or "").strip().lower())
    if found is None or (found[2] or unit) not in _MB:
        return None
    value = int(int(found[1]) * _MB[found[2] or unit])
    return value if value < 2**40 else None


def seconds(text: str | None, *, unit: str = "s") -> float | None:
    """Return a time in seconds (``JavaUtils.timeStringAs``), or None for an invalid text.

    Parameters
    ----------
    text : str or None
        Such as ``2min``.
    unit : str
        The property's own unit, for a number without one. Spark truncates to whole units.
    """
    found = _TIME.fullmatch((text or "").strip().lower())
    if found is None or (found[2] or unit) not in _US:
        return None
    return int(found[1]) * _US[found[2] or unit] // _US[unit] * _US[unit] / 1e6


def _number(text: str | None, default: float, *, least: float = 0.0, most: float = 2**31 - 1) -> float:
    try:
        value = float(text) if text is not None else default
    except ValueError:
        return default
    return value if least <= value <= most else default


def is_on(properties: Mapping[str, str], name: str, default: bool = False) -> bool:
    """Return whether a property is true."""
    text = properties.get(name)
    return default if text is None else text.strip().lower() == "true"


def release_of(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version of Spark; (0, 0) for an invalid one."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _overhead_mb(properties: Mapping[str, str], kind: str, heap_mb: int) -> int:
    """Return a container's memory besides its heap. ``kind``: ``executor``, ``driver``, or ``yarn.am``."""
    given = memory_mb(properties.get(f"spark.{kind}.memoryOverhead"))
    if given is None:
        # The name before Spark 2.3, which later releases also accept.
        given = memory_mb(properties.get(f"spark.yarn.{kind}.memoryOverhead"))
    if given is not None:
        return given
    factor = _number(properties.get(f"spark.{kind}.memoryOverheadFactor"), _OVERHEAD_FACTOR, most=1000.0)
    least = memory_mb(properties.get(f"spark.{kind}.minMemoryOverhead"))
    return max(int(factor * heap_mb), _LEAST_OVERHEAD_MB if least is None else least)


@dataclass(frozen=True, slots=True)
class SparkSizes:
    """The container sizes that a Spark application requests, before the scheduler rounds them.

    Attributes
    ----------
    master : Resource
        The AM's container; in cluster mode the driver runs in it.
    executor : Resource
        An executor's container.
    slots : int
        Tasks that run in an executor at once.
    """

    master: Resource
    executor: Resource
    slots: int


def container_sizes(properties: Mapping[str, str], version: str) -> SparkSizes:
    """Return the sizes of an application's containers, by its properties and its release.

    An executor's memory is the sum of ``spark.executor.memory``, the overhead, Python's memory
    (``spark.executor.pyspark.memory``, in a Python application) and, since Spark 3.0, the off-heap memory.
    """
    release = release_of(version)
    heap = memory_mb(properties.get("spark.executor.memory")) or _HEAP_MB
    total = heap + _overhead_mb(properties, "executor", heap)
    if release >= (3, 0) and is_on(properties, "spark.memory.offHeap.enabled"):
        total += memory_mb(properties.get("spark.memory.offHeap.size"), unit="b") or 0
    if is_on(properties, "spark.yarn.isPython"):
        total += memory_mb(properties.get("spark.executor.pyspark.memory")) or 0
    cores = int(_number(properties.get("spark.executor.cores"), _CORES, least=1, most=4096))
    cpus = int(_number(properties.get("spark.task.cpus"), 1, least=1, most=4096))
    if properties.get("spark.submit.deployMode", "client").strip().lower() == "cluster":
        driver = memory_mb(properties.get("spark.driver.memory")) or _HEAP_MB
        master_mb = driver + _overhead_mb(properties, "driver", driver)
        master_cores = int(_number(properties.get("spark.driver.cores"), 1, least=1, most=4096))
    else:
        heap = memory_mb(properties.get("spark.yarn.am.memory")) or _AM_MB
        master_mb = heap + _overhead_mb(properties, "yarn.am", heap)
        master_cores = int(_number(properties.get("spark.yarn.am.cores"), 1, least=1, most=4096))
    return SparkSizes(Resource(master_mb, master_cores), Resource(total, cores), max(cores // cpus, 1))


def _whole(properties: Mapping[str, str], name: str, default: int) -> int:
    return int(_number(properties.get(name), default))


def _timeout(properties: Mapping[str, str], name: str, default: float | None, *, unit: str = "s") -> float | None:
    """Return a timeout in seconds; None: never."""
    value = seconds(properties.get(name), unit=unit)
    value = default if value is None else max(value, _AT_ONCE_S)
    return None if value is None or value >= LONGEST_S else value


def _backlog_s(properties: Mapping[str, str], name: str, default: float) -> float:
    """Return how long tasks wait before more executors are requested. Spark refuses to start with 0."""
    return min(seconds(properties.get(name)) or default, LONGEST_S)


def dynamic_allocation(properties: Mapping[str, str], version: str) -> DynamicAllocation | None:
    """Return the settings of dynamic allocation, or None for an application with a fixed number of executors."""
    if not is_on(properties, "spark.dynamicAllocation.enabled"):
        return None
    prefix = "spark.dynamicAllocation."
    least = _whole(properties, f"{prefix}minExecutors", 0)
    most = max(_whole(properties, f"{prefix}maxExecutors", 2**31 - 1), least, 1)
    # Utils.getDynamicAllocationInitialExecutors: the largest of the three.
    initial = max(
        least, _whole(properties, f"{prefix}initialExecutors", least), _whole(properties, "spark.executor.instances", 0)
    )
    backlog_s = _backlog_s(properties, f"{prefix}schedulerBacklogTimeout", _BACKLOG_S)
    # Without the external shuffle service, executors with shuffle data are kept; this is the default since Spark 3.4.
    tracking = not is_on(properties, "spark.shuffle.service.enabled") and is_on(
        properties, f"{prefix}shuffleTracking.enabled", release_of(version) >= (3, 4)
    )
    return DynamicAllocation(
        least=least,
        most=most,
        initial=min(initial, most),
        ratio=_number(properties.get(f"{prefix}executorAllocationRatio"), _RATIO, least=1e-6, most=1.0),
        backlog_s=backlog_s,
        sustained_s=_backlog_s(properties, f"{prefix}sustainedSchedulerBacklogTimeout", backlog_s),
        idle_s=_timeout(properties, f"{prefix}executorIdleTimeout", _IDLE_S) or LONGEST_S,
        cached_s=_timeout(properties, f"{prefix}cachedExecutorIdleTimeout", None),
        tracks_shuffles=tracking,
        # Of these timeouts, only this one is in milliseconds.
        shuffle_s=_timeout(properties, f"{prefix}shuffleTracking.timeout", None, unit="ms") if tracking else None,
    )


def fixed_executors(properties: Mapping[str, str]) -> int:
    """Return how many executors an application without dynamic allocation requests."""
    return max(_whole(properties, "spark.executor.instances", _INSTANCES), 1)


def registered_before_it_begins(properties: Mapping[str, str], initial: int) -> tuple[int, float]:
    """Return how many executors must have registered before a driver begins, and the longest time that it waits (s)."""
    part = _number(properties.get("spark.scheduler.minRegisteredResourcesRatio"), _LEAST_PART, most=1.0)
    wait_s = seconds(properties.get("spark.scheduler.maxRegisteredResourcesWaitingTime"), unit="ms")
    return math.ceil(part * initial), _WAIT_S if wait_s is None else wait_s


def heartbeat_ms(properties: Mapping[str, str]) -> int:
    """Return the interval of the AM's heartbeats to the ResourceManager, in milliseconds."""
    given = seconds(properties.get("spark.yarn.scheduler.heartbeat.interval-ms"), unit="ms")
    # ApplicationMaster uses at most half of the time after which YARN gives an AM up (by default 10 minutes).
    return max(round(1000 * min(_HEARTBEAT_S if given is None else given, 300.0)), 1)
