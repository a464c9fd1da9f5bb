"""The metrics of QKnober: soft fairness and the bound of its Theorem 1."""

from harness.results.metric import Metric

METRICS: tuple[Metric, ...] = (
    Metric("soft_fairness", "soft fairness degree", "", "lower", 3, 0.1),
    Metric("soft_fairness_p95", "soft fairness degree exceeded in 5 % of the time", "", "lower", 3, 0.1),
    Metric("theta", "soft fairness by Theorem 1", "", "lower", 3, 0.1),
)
