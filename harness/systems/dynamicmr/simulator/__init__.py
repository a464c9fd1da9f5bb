"""MRv1's map and reduce slots in virtual time: what tang-thesis chapter 4 schedules. No containers live here.

`model` has the cluster, the jobs and the rules of one run, `engine` runs them (who gets a slot: `assign` and
`speculate`; the network: `shuffle`; the books: `accounts`), `report` turns the answer into the simulator's
`SimResult`. Plain Python: a run of 30 jobs takes seconds.
"""
