"""FAWKES: MapReduce clusters that grow and shrink on shared nodes (Ghit et al., SIGMETRICS 2014)."""

from harness.base.extensions import Extension

EXTENSION = Extension(
    name="fawkes",
    policies={
        "fawkes-none": "harness.systems.fawkes.policies:NoPolicy",
        "fawkes-eq": "harness.systems.fawkes.policies:EqualShares",
        "fawkes-jd": "harness.systems.fawkes.policies:JobDemand",
        "fawkes-dd": "harness.systems.fawkes.policies:DataDemand",
        "fawkes-td": "harness.systems.fawkes.policies:TaskDemand",
        "fawkes-pu": "harness.systems.fawkes.policies:ProcessorUsage",
        "fawkes-du": "harness.systems.fawkes.policies:DiskUsage",
        "fawkes-ru": "harness.systems.fawkes.policies:ResourceUsage",
        "fawkes-js": "harness.systems.fawkes.policies:JobSlowdown",
        "fawkes-jt": "harness.systems.fawkes.policies:JobThroughput",
        "fawkes-tt": "harness.systems.fawkes.policies:TaskThroughput",
    },
    experiment_types={
        "mr-clusters": "harness.systems.fawkes.experiment:MR_CLUSTERS",
        "mr-layouts": "harness.systems.fawkes.experiment:MR_LAYOUTS",
    },
    scenarios=("harness.systems.fawkes.scenarios:FAMILY",),
    metrics=("harness.systems.fawkes.metrics:METRICS",),
)
