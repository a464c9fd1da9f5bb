"""DynamicMR: map and reduce slots of MRv1 that borrow from each other (Tang's thesis, chapter 4)."""

from harness.base.extensions import Extension

EXTENSION = Extension(
    name="dynamicmr",
    policies={
        "pi-dhsa": "harness.systems.dynamicmr.policies:PiDhsa",
        "pd-dhsa": "harness.systems.dynamicmr.policies:PdDhsa",
        "dynamicmr": "harness.systems.dynamicmr.policies:DynamicMR",
    },
    experiment_keys={"slots": "harness.systems.dynamicmr.experiment:KIND"},
    scenarios=("harness.systems.dynamicmr.scenarios:FAMILY",),
)
