"""The registry of simulated schedulers: Hadoop's three schedulers, and those of installed packages.

Each name refers to a `harness.sim.interfaces.SimulatedScheduler`, written ``module:attribute`` and imported when a run
first needs it. An installed package adds schedulers with ``schedulers`` in its `harness.base.extensions.Extension`.
"""

from __future__ import annotations

from harness.base.extensions import Registry

SCHEDULERS = Registry(
    {
        "fair": "harness.sim.fair.scheduler:FAIR",
        "capacity": "harness.sim.capacity.scheduler:CAPACITY",
        "fifo": "harness.sim.fifo.scheduler:FIFO",
    },
    "schedulers",
)
