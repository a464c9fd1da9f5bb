"""DynamicMR: lets MRv1's map and reduce slots be borrowed for tasks of the other kind (Tang's thesis, chapter 4)."""

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
