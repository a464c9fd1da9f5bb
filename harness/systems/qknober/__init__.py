"""QKnober, which trades fairness for efficiency with several resources (Tang et al.), and Tetris for comparison."""

from harness.base.extensions import Extension

EXTENSION = Extension(
    name="qknober",
    policies={
        "tetris": "harness.systems.qknober.tetris:Tetris",
        "qknober": "harness.systems.qknober.policy:Qknober",
    },
    experiment_types={"vectors": "harness.systems.qknober.experiment:KIND"},
)
