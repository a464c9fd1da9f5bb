"""Validation of simulation setups; each error has one line with the problem and a hint."""

from __future__ import annotations

import math

from harness.base.errors import InputError
from harness.model.jobs import NodeSpec
from harness.sim.setup import SimSetup


def _check_changes(node: NodeSpec, where: str) -> None:
    before = node.join_s
    for change in node.changes:
        # Events of the same millisecond are ordered by kind.
        if not (before + 1e-3 <= change.at_s <= (1e9 if node.leave_s is None else node.leave_s)):
            hint = "give times in order, apart by a millisecond, from when it joins until it leaves"
            raise InputError(f"it changes at {change.at_s:g} s", where=where, hint=hint)
        before = change.at_s
        if change.size is not None and not (0 < change.size[0] < 1 << 40 and 0 < change.size[1] < 1 << 30):
            raise InputError(f"it changes to {change.size}", where=where, hint="give positive amounts")
    if node.changes and node.speed != 1.0:
        hint = "leave out speed, or changes"
        raise InputError("a node with a speed of its own that changes is not covered", where=where, hint=hint)


def check_setup(setup: SimSetup) -> None:
    """Raise InputError if the setup cannot be simulated."""

    def refuse(what: str, hint: str) -> InputError:
        return InputError(what, hint=hint)

    if not setup.nodes:
        raise refuse("the cluster has no node", "give at least one")
    names = set()
    for node in setup.nodes:
        where = f"node {node.name!r}"
        if node.name in names:
            raise InputError("an earlier node has this name", where=where, hint="rename one")
        names.add(node.name)
        if not (0 <= node.memory_mb < 1 << 40 and 0 <= node.vcores < 1 << 30):
            raise InputError(
                f"{node.memory_mb} MiB and {node.vcores} vcores", where=where, hint="give positive amounts"
            )
        if not (1e-6 <= node.speed <= 1e6):
            raise InputError(f"its speed is {node.speed!r}", where=where, hint="give a number from 1e-6 to 1e6")
        if not (0 <= node.join_s <= 1e9) or (node.leave_s is not None and not node.join_s < node.leave_s <= 1e9):
            raise InputError("it leaves before it comes", where=where, hint="mend join_s and leave_s")
        _check_changes(node, where)
    for queue, weight in setup.entitlements.items():
        if not (0 < weight < math.inf):
            raise InputError(f"the entitlement {weight!r}", where=queue, hint="give a finite number above 0")
    delays, faults = setup.delays, setup.faults
    for name in ("node_heartbeat_ms", "am_heartbeat_ms", "update_ms", "reduce_preempt_ms", "speculation_ms"):
        if not 1 <= getattr(delays, name) <= 10**9:
            raise refuse(f"{name} is {getattr(delays, name)!r}", "give milliseconds, at least 1")
    if not -1 <= delays.end_heartbeat_ms <= 10**9:
        raise refuse(f"end_heartbeat_ms is {delays.end_heartbeat_ms!r}", "give milliseconds, or -1 for none")
    if not (0 <= delays.am_response_heartbeats <= 1 and delays.am_start_ms >= 0 and delays.container_start_ms >= 0):
        raise refuse("delays of AMs are out of range", "am_response_heartbeats is 0 or 1, times are at least 0")
    master = setup.mapreduce
    if not (0 <= master.rampup_limit <= 1 and 0 <= master.preemption_limit <= 1):
        raise refuse("limits of MapReduce's masters are out of range", "give fractions from 0 to 1")
    if not (0 <= master.preempt_delay_s <= 1e6 and -1e6 <= master.unconditional_preempt_delay_s <= 1e6):
        raise refuse("delays of preemption of MapReduce's masters are out of range", "give seconds")
    if not (0 <= master.running_map_limit < 1 << 31 and 0 <= master.running_reduce_limit < 1 << 31):
        raise refuse("limits of running tasks are out of range", "give whole numbers, 0 for none")
    if not (0 <= faults.failure <= 1 and 0 <= faults.straggler <= 1 and 1 <= faults.max_attempts <= 255):
        raise refuse("probabilities of faults are out of range", "give 0 to 1, and 1 to 255 attempts")
    if not (0 < faults.straggler_factor < 1e6 and 0 < faults.speculation_factor < 1e6):
        raise refuse("factors of faults are out of range", "give numbers above 0")
    if setup.hadoop is not None and setup.scheduler != "fair":
        raise refuse(f"hadoop {setup.hadoop} is for the Fair Scheduler", "leave it out, or choose scheduler fair")
    if setup.hadoop is not None and setup.record_script:
        raise refuse(f"decision scripts are of present releases, not of hadoop {setup.hadoop}", "leave one of them out")
    if not (0 < setup.sample_s <= 1e9 and 0 < setup.time_limit_s <= 1e12 and 0 < setup.period_s <= 1e9):
        raise refuse("sample_s, time_limit_s and period_s must be above 0", "mend them")
    if setup.max_ratio is not None and not 1 <= setup.max_ratio < 1e12:
        raise refuse("max_ratio is out of range", "give a number of at least 1")
    if not 0 <= setup.preemption_budget_mb_s < math.inf:
        raise refuse("preemption_budget_mb_s is out of range", "give MiB·s of at least 0")
    if not 0 <= setup.write_threshold <= 10:
        raise refuse("write_threshold is out of range", "give 0 to 10")
    if not (0 <= setup.actuation_delay_s <= 1e9 and 0 <= setup.poll_s <= 1e9):
        raise refuse("delays of actuation must be at least 0", "mend them")
