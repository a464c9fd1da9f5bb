"""MROrder: holds arriving MapReduce jobs back and submits them in a better order (Tang's thesis, chapter 3)."""

from harness.base.extensions import CommandEntry, Extension

EXTENSION = Extension(
    name="mrorder",
    policies={"mrorder": "harness.systems.mrorder.policy:MROrder"},
    commands={
        "order": CommandEntry(
            "harness.systems.mrorder.command:order", "An execution order for MapReduce jobs, and what it costs."
        )
    },
    benchmarks={"order": "harness.systems.mrorder.bench:measure_order"},
)
