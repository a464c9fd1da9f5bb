"""What is shown of runs of MR-clusters and of layouts. The measures: docs/reference/fawkes.md."""

from __future__ import annotations

from harness.results.comparison import Measure

#: Of policies, over the whole run and of each MR-cluster.
POLICIES = (
    Measure("makespan", "s", 0, "makespan_s"),
    Measure("job slowdown, mean", "", 2, "mean_slowdown"),
    Measure("median", "", 2, "median_slowdown"),
    Measure("greatest", "", 2, "max_slowdown", main=False),
    Measure("reconfigurations", "", 1, "reconfigurations"),
    Measure("nodes that changed hands", "", 1, "nodes_moved"),
    Measure("tasks killed", "", 1, "killed_tasks"),
    Measure("data replicated", "GB", 1, "replicated_gb", main=False),
    Measure("nodes held", "%", 1, "utilisation.nodes", 100.0, main=False),
    Measure("slots in use", "%", 1, "utilisation.slots", 100.0, main=False),
    Measure("global discrimination, mean", "s\u00b2", 0, "global_discrimination.mean"),
    Measure("variance of overall discrimination", "s\u00b2", 0, "overall_discrimination_variance", main=False),
    Measure("Mean job slowdown of each MR-cluster", "", 2, "queues.*.mean_slowdown"),
    Measure("Mean completion time of a job", "s", 0, "queues.*.mean_completion_s"),
    Measure("End of the last job", "s", 0, "queues.*.last_end_s"),
    Measure("Most nodes", "", 0, "queues.*.max_nodes"),
    Measure("Jobs waiting, mean over the samples", "", 1, "queues.*.mean_waiting_jobs", main=False),
    Measure("Overall discrimination", "s", 0, "queues.*.overall_discrimination_s"),
    Measure("Jobs", "", 0, "queues.*.jobs", main=False),
)
#: Of layouts, of each application that ran alone on them.
LAYOUTS = (
    Measure("idle: a node leaves in", "s", 1, "idle.per_node_s"),
    Measure("idle: all leave in", "s", 1, "idle.left_after_s"),
    Measure("Time alone", "s", 0, "applications.*.runtime_s"),
    Measure(
        "Time over that on the reference layout",
        "",
        3,
        "applications.*.over_reference",
        note="1: as fast; above 1: slower.",
    ),
    Measure("Speed-up over the reference layout", "", 3, "applications.*.speedup"),
    Measure("Nodes that shrink have left after", "s", 1, "applications.*.left_after_s", rare=True),
    Measure("Data handed on before nodes left", "GB", 1, "applications.*.replicated_gb", rare=True),
)
