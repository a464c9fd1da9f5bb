"""MR-clusters in virtual time: MapReduce instances that grow and shrink on shared nodes (FAWKES, SIGMETRICS 2014).

::

    model     what is simulated: profiles of jobs, MR-clusters, the constants of nodes and network
    cluster   one MR-cluster: nodes, slots, FIFO queue of jobs, metrics
    simulate  the event loop; `harness.systems.fawkes.manager` decides

A room of its own, beside the virtual-time YARN: here nodes change hands, hold data, and tasks run at the pace of the
disks that serve them; there containers are allocated on nodes that stay. Tasks, not jobs, are the events.
"""

from harness.systems.fawkes.simulator.model import ClusterSetup, Constants, MRJob, Profile, Setup
from harness.systems.fawkes.simulator.simulate import Result, simulate

__all__ = ["ClusterSetup", "Constants", "MRJob", "Profile", "Result", "Setup", "simulate"]
