"""The metrics of FAWKES experiments: nodes that change hands, discrimination, times alone."""

from harness.results.metric import Metric

METRICS: tuple[Metric, ...] = (
    Metric("reconfigurations", "reconfigurations", "", "neither", 0),
    Metric("nodes_moved", "nodes that changed hands", "", "neither", 0),
    Metric("killed_tasks", "tasks killed", "", "lower", 0, 1.0),
    Metric("replicated_gb", "data replicated", "GB", "neither", 1),
    Metric("global_discrimination.*", "global discrimination", "s²", "neither", 1),
    Metric("overall_discrimination_variance", "variance of the overall discrimination", "s²", "neither", 0),
    Metric("queues.overall_discrimination_s", "overall discrimination", "s", "neither", 1),
    Metric("queues.last_end_s", "end of the last job", "s", "lower", 0, 1.0),
    Metric("queues.max_nodes", "most nodes", "", "neither", 0),
    Metric("applications.*.runtime_s", "time alone", "s", "lower", 0, 1.0),
    Metric("applications.*.over_reference", "time over the reference", "", "lower", 3, 0.001, other_run=True),
    Metric("applications.*.speedup", "speed-up over the reference", "", "higher", 3, 0.001, other_run=True),
    Metric("applications.*.left_after_s", "nodes have left after", "s", "lower", 1, 1.0),
    Metric("idle.per_node_s", "a node leaves in, without a job", "s", "lower", 1, 1.0),
)
