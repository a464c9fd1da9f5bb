"""Simulator of MRv1's map and reduce slots in virtual time (tang-thesis chapter 4), independent of the YARN simulator.

`model` has the cluster, the jobs and the input of a run. `engine` is the event loop. `assign` and `speculate` decide
which task gets a slot, `shuffle` models the network, and `accounts` records usage. `report` turns the result into the
YARN simulator's `SimResult`. All is plain Python: a run of 30 jobs takes seconds.
"""
