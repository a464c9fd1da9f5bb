"""Progress-share scheduling and the cloud driver that sizes pools of instances (Lee, Chun, Katz, HotCloud 2011)."""

from harness.base.extensions import Extension

EXTENSION = Extension(
    name="progress-share",
    policies={"progress-share": "harness.systems.progress_share.policy:ProgressShare"},
    experiment_types={
        "computing-rates": "harness.systems.progress_share.experiment:KIND",
        "cloud": "harness.systems.progress_share.cloud.experiment:KIND",
    },
    scenarios=("harness.systems.progress_share.scenarios:FAMILY",),
    metrics=("harness.systems.progress_share.metrics:METRICS",),
)
