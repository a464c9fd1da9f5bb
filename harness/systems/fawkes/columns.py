"""Columns of the comparisons of MR-clusters and of layouts. docs/reference/fawkes.md describes the metrics."""

from __future__ import annotations

from harness.results.comparison import Measure, shown
from harness.systems.fawkes.metrics import METRICS

#: Columns of ``kind: mr-clusters``: each policy over the whole run, then for each MR-cluster.
POLICIES = (
    shown("makespan_s", digits=0),
    shown("mean_slowdown"),
    shown("median_slowdown", title="median"),
    Measure("greatest", "", 2, "max_slowdown", main=False),
    shown("reconfigurations", digits=1, own=METRICS),
    shown("nodes_moved", digits=1, own=METRICS),
    shown("killed_tasks", digits=1, own=METRICS),
    shown("replicated_gb", main=False, own=METRICS),
    shown("utilisation.nodes", title="nodes held", digits=1, percent=True, main=False),
    shown("utilisation.slots", title="slots in use", digits=1, percent=True, main=False),
    shown("global_discrimination.mean", title="global discrimination, mean", digits=0, own=METRICS),
    shown("overall_discrimination_variance", title="variance of overall discrimination", main=False, own=METRICS),
    shown("queues.*.mean_slowdown", title="Mean job slowdown of each MR-cluster"),
    shown("queues.*.mean_completion_s", title="Mean completion time of a job", digits=0),
    shown("queues.*.last_end_s", title="End of the last job", own=METRICS),
    shown("queues.*.max_nodes", title="Most nodes", own=METRICS),
    Measure("Jobs waiting, mean over the samples", "", 1, "queues.*.mean_waiting_jobs", main=False),
    shown("queues.*.overall_discrimination_s", title="Overall discrimination", digits=0, own=METRICS),
    shown("queues.*.jobs", title="Jobs", main=False),
)
#: Columns of ``kind: mr-layouts``: each application that ran alone on a layout.
LAYOUTS = (
    shown("idle.per_node_s", title="idle: a node leaves in", own=METRICS),
    Measure("idle: all leave in", "s", 1, "idle.left_after_s"),
    shown("applications.*.runtime_s", title="Time alone", own=METRICS),
    shown(
        "applications.*.over_reference",
        title="Time over that on the reference layout",
        note="1: as fast; above 1: slower.",
        own=METRICS,
    ),
    shown("applications.*.speedup", title="Speed-up over the reference layout", own=METRICS),
    shown("applications.*.left_after_s", title="Nodes that shrink have left after", rare=True, own=METRICS),
    Measure("Data handed on before nodes left", "GB", 1, "applications.*.replicated_gb", rare=True),
)
