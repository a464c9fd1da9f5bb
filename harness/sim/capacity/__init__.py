"""The Capacity Scheduler of Hadoop 3.4.2 in virtual time, decision for decision.

Built as its neighbour ``harness.sim.fair``: state in arrays (``state.py``), compiled kernels of the same names and
arguments (``nodes``, ``apps``), `Scheduler` (``api.py``) with the names. Kernels answer ``NEED_ROOM`` before they
change anything. What happened is in ``S.log``.

Covered: the legacy queue mode on the default partition, without placement by node or rack. What `conf` does not know is
refused by name.
"""

from __future__ import annotations
