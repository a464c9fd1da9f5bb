"""The metrics of progress share and of pools of instances: progress shares and costs."""

from harness.results.metric import Metric

METRICS: tuple[Metric, ...] = (
    Metric("sum_progress_share", "sum of the progress shares", "", "higher", 3, 0.01),
    Metric("queues.progress_share.mean", "progress share, mean", "", "neither", 3),
    Metric("queues.progress_share.min", "progress share, least", "", "higher", 3, 0.01),
    Metric("queues.progress_share.below_share", "part of its waiting time below its share", "", "lower", 3, 0.02),
    Metric("accelerator_billed_h", "accelerators billed", "h", "neither", 0),
)
