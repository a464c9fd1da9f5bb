"""Alibaba's GPU trace of 2023 (openb): pods of a Kubernetes cluster, each a job of one container.

Columns as https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023 has them in the files' first line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from harness.traces.accounting import BACKWARDS, NEVER_STARTED, NO_END, NOT_WANTED, UNREADABLE, Totals
from harness.traces.accounting import NODES as NODE_ROWS
from harness.traces.formats.alibaba_gpu2020 import GPUS, GPUS_AS_VCORES, WITHOUT_GPU, machines_without_gpu
from harness.traces.formats.base import (
    NOTHING_SET,
    Assumptions,
    BadRecord,
    Collector,
    Reading,
    TimedJob,
    missing_queues,
)
from harness.traces.formats.tables import (
    COUNT_VCORES,
    Fields,
    Table,
    TableReader,
    Work,
    checked_nodes,
    files_by_table,
    job_of,
    needed_files,
    number,
    rows_of,
    size_of,
    text,
    whole,
)

PODS = Table(
    "openb_pod_list",
    (
        "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time",
        "deletion_time", "scheduled_time",
    ),
    frozenset(("name", "cpu_milli", "memory_mib", "creation_time", "deletion_time", "scheduled_time")),
    headed=True,
)  # fmt: skip
NODES = Table(
    "openb_node_list",
    ("sn", "cpu_milli", "memory_mib", "gpu", "model"),
    frozenset(("sn", "cpu_milli", "memory_mib", "gpu")),
    headed=True,
)


class AlibabaGpu2023(TableReader):
    """Reader of the lists of pods and nodes of Alibaba's GPU trace of 2023."""

    name = "Alibaba GPU 2023"
    versions = "cluster-trace-gpu-v2023: `openb_pod_list_*.csv`, with it `openb_node_list_*.csv`"
    lacks = "users; masters; which pods belong together; GPUs as a resource of their own"
    assumes = "each pod is a job of one container; the QoS class is the queue; GPUs that are not played"
    kind = "alibaba-gpu-2023"
    tables = ("openb_pod_list (needed)", "openb_node_list")
    settable: Mapping[str, str] = {
        "queue_by": "qos; else gpu-spec or none",
        "gpus_as_vcores": "no: GPUs are not played",
        "am_memory_mb": "0",
        "am_vcores": "0",
    }
    queues = ("qos", "gpu-spec", "none")
    layout = (PODS, NODES)

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the lists. Memory: the jobs."""
        files = files_by_table(paths, self.layout, self.name)
        collector = Collector()
        broken: list[str] = []
        without_queue = 0
        column = {"qos": "qos", "gpu-spec": "gpu_spec"}.get(assumed.queue_by or "qos")
        for file in needed_files(files, PODS.name, self.name):
            for row in rows_of(file, collector, broken):
                if row.fields is None:
                    collector.count(Totals(jobs=1))
                    collector.leave_out(f"{UNREADABLE}: {row.problem}", Totals(records=1, jobs=1), row.where)
                    continue
                queue = text(row.fields, column).replace("|", "-") if column else ""
                kept = collector.add(
                    1,
                    row.where,
                    partial(_timed, row.fields, queue, assumed, collector, row.where),
                )
                without_queue += kept and not queue
        sizes: Counter[tuple[int, int]] = Counter()
        without_gpu = 0
        for file in files.get(NODES.name, ()):
            for row in rows_of(file, collector, broken):
                try:
                    if row.fields is None:
                        raise BadRecord(row.problem)
                    gpus, milli = number(row.fields, "gpu"), number(row.fields, "cpu_milli")
                    memory_mb = number(row.fields, "memory_mib")
                    if gpus is None or milli is None or memory_mb is None:
                        raise BadRecord("a node without cpu_milli, memory_mib or gpu")
                    cores = gpus if assumed.gpus_as_vcores else milli / 1000.0
                    if cores:
                        sizes[size_of(memory_mb, cores, 1, 1)] += 1
                    else:
                        without_gpu += 1
                except BadRecord as error:
                    collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
                    continue
                collector.leave_out(NODE_ROWS, Totals(records=1), row.where)
        return collector.finish(
            self.name,
            nodes=checked_nodes(sizes),
            capacity=COUNT_VCORES,
            assumed=[
                "each pod is a job of one container, from scheduled_time to deletion_time",
                GPUS_AS_VCORES if assumed.gpus_as_vcores else GPUS,
                "vcores are rounded up to whole ones, and both count (DominantResourceCalculator)",
            ],
            assumed_of_nodes=machines_without_gpu(without_gpu) if assumed.gpus_as_vcores else [],
            unknown=[*missing_queues(without_queue, len(collector.jobs)), *broken],
        )


def _timed(fields: Fields, queue: str, assumed: Assumptions, collector: Collector, where: str) -> TimedJob | str:
    name = text(fields, "name")
    created_s, scheduled_s, deleted_s = (
        number(fields, column) for column in ("creation_time", "scheduled_time", "deletion_time")
    )
    if not name or created_s is None:
        raise BadRecord("no name or no creation_time")
    if not assumed.includes(created_s):
        return NOT_WANTED
    if scheduled_s is None:
        return NEVER_STARTED
    if deleted_s is None:
        return NO_END
    if deleted_s < scheduled_s or scheduled_s < created_s:
        return BACKWARDS
    memory, milli, gpus = number(fields, "memory_mib"), number(fields, "cpu_milli"), whole(fields, "num_gpu")
    part = number(fields, "gpu_milli")
    as_gpus = None if gpus is None else gpus * (1.0 if part is None or gpus != 1 else part / 1000.0)
    if memory is None or milli is None:
        raise BadRecord("no memory_mib or no cpu_milli")
    if assumed.gpus_as_vcores and not as_gpus:
        return WITHOUT_GPU
    memory_mb, vcores = size_of(memory, as_gpus if assumed.gpus_as_vcores else milli / 1000.0, 1024, 1)
    collector.expect(1, where)
    return job_of(
        name,
        [Work("pod", memory_mb, vcores, (deleted_s - scheduled_s,))],
        assumed,
        queue=queue,
        user="",
        submitted_s=created_s,
        clock_s=0.0,
        started_s=scheduled_s,
        finished_s=deleted_s,
        tasks=1,
        records=1,
        joined=[],
    )
