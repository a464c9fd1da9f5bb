"""Weeks of faults in minutes: real controllers on a model of YARN in virtual time, one history for each seed.

    python -m tests.control.soak --seeds 1000:1100 --json

What is real: the controller's driver and core, the allocation file's reader and editor, lease, ledger and SQLite, the
HTTP client from its retries on, the RPC's messages. What is modelled, and exact: time, the cluster and its two
ResourceManagers, the network below the HTTP session, what a disk does when it is full, slow or loses its power.

The parts: `clock` and `disk` (the machine), `cluster`, `rm`, `capacity_rm` and `wire` (YARN), `edits` and `capacities`
(the administrator's file),
`process` (controllers), `faults`, `checks`, `ticks` and `ending` (what must hold), `world` (a seed's history),
`afterwards`, `installed`, `shrink`, `planted`.
"""
