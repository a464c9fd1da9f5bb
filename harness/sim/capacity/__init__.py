"""The Capacity Scheduler of Hadoop 3.4.2 in virtual time, decision for decision.

The package has the structure of ``harness.sim.fair``: state in arrays (``state.py``), compiled kernels, and `Scheduler`
(``api.py``), which maps names to slots. A kernel that needs larger arrays returns ``NEED_ROOM`` before it changes
anything. ``S.log`` contains the log of all changes.

Covers the legacy queue mode on the default partition, without placement by node or rack. `conf` rejects unsupported
properties by name.
"""

from __future__ import annotations
