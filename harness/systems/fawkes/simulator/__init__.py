"""Simulator of MR-clusters in virtual time: MapReduce instances that grow and shrink on shared nodes (FAWKES, 2014).

::

    model     what is simulated: profiles of jobs, MR-clusters, the constants of nodes and network
    cluster   one MR-cluster: nodes, slots, FIFO queue of jobs, metrics
    simulate  the event loop; `harness.systems.fawkes.manager` decides

It is independent of the YARN simulator. Here nodes move between MR-clusters and hold data, and task durations depend on
the load of the disks; in the YARN simulator containers are allocated on fixed nodes. Events are ends of tasks, not of
jobs.
"""

from harness.systems.fawkes.simulator.model import ClusterSetup, Constants, MRJob, Profile, Setup
from harness.systems.fawkes.simulator.simulate import Result, simulate

__all__ = ["ClusterSetup", "Constants", "MRJob", "Profile", "Result", "Setup", "simulate"]
