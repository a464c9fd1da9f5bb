"""The scheduler's kernels for the world around it: the same names for either scheduler, told apart by the state's type.

Which one is called is settled when the caller is compiled; at run time that costs nothing. Python calls a scheduler's
own kernels: these here are for compiled code alone.
"""

# numba's own extension functions are untyped.
# mypy: disallow-untyped-calls=False

from __future__ import annotations

from typing import Any

from numba.extending import overload

from harness.sim.capacity import apps as cs_apps
from harness.sim.capacity import nodes as cs_nodes
from harness.sim.capacity import seam as cs_seam
from harness.sim.capacity.state import S as CapacityState
from harness.sim.fair import apps as fs_apps
from harness.sim.fair import nodes as fs_nodes
from harness.sim.fair import preempt as fs_preempt
from harness.sim.fair import shares as fs_shares


def _of(state: Any, fair: Any, capacity: Any) -> Any:
    return capacity if state == CapacityState.compiled_type() else fair


def _compiled_only() -> Any:
    raise NotImplementedError("only compiled code calls this")


def add_node(s: Any, ni: int, now: int) -> Any:
    return _compiled_only()


def remove_node(s: Any, ni: int, now: int) -> Any:
    return _compiled_only()


def heartbeat(s: Any, ni: int, now: int) -> Any:
    return _compiled_only()


def can_skip(s: Any, ni: int) -> Any:
    return _compiled_only()


def container_exit(s: Any, c: int) -> Any:
    return _compiled_only()


def release(s: Any, c: int, now: int) -> Any:
    return _compiled_only()


def add_app(s: Any, leaf: int, user: int, managed: bool, am_mb: int, am_vcores: int, app_id: int, now: int) -> Any:
    """`user`: the scheduler's slot of the user (the Capacity Scheduler's: of the user in this leaf)."""
    return _compiled_only()


def ask(s: Any, i: int, priority: int, alloc_id: int, count: int, mb: int, vcores: int, now: int) -> Any:
    return _compiled_only()


def end_app(s: Any, i: int, now: int) -> Any:
    return _compiled_only()


def restart_app(s: Any, i: int, am_mb: int, am_vcores: int, now: int) -> Any:
    return _compiled_only()


def update(s: Any, now: int) -> Any:
    return _compiled_only()


def preempt_pass(s: Any, now: int) -> Any:
    return _compiled_only()


def next_kill_ms(s: Any) -> Any:
    return _compiled_only()


def run_kills(s: Any, now: int) -> Any:
    return _compiled_only()


_COMPILED: dict[str, Any] = {"_nrt": False}


@overload(add_node, jit_options=_COMPILED)
def _add_node(s: Any, ni: Any, now: Any) -> Any:
    kernel = _of(s, fs_nodes.add_node, cs_nodes.add_node)
    return lambda s, ni, now: kernel(s, ni, now)


@overload(remove_node, jit_options=_COMPILED)
def _remove_node(s: Any, ni: Any, now: Any) -> Any:
    kernel = _of(s, fs_nodes.remove_node, cs_nodes.remove_node)
    return lambda s, ni, now: kernel(s, ni, now)


@overload(heartbeat, jit_options=_COMPILED)
def _heartbeat(s: Any, ni: Any, now: Any) -> Any:
    kernel = _of(s, fs_nodes.heartbeat, cs_nodes.heartbeat)
    return lambda s, ni, now: kernel(s, ni, now)


@overload(can_skip, jit_options=_COMPILED)
def _can_skip(s: Any, ni: Any) -> Any:
    kernel = _of(s, fs_nodes.can_skip, cs_nodes.can_skip)
    return lambda s, ni: kernel(s, ni)


@overload(container_exit, jit_options=_COMPILED)
def _container_exit(s: Any, c: Any) -> Any:
    kernel = _of(s, fs_nodes.container_exit, cs_nodes.container_exit)
    return lambda s, c: kernel(s, c)


@overload(release, jit_options=_COMPILED)
def _release(s: Any, c: Any, now: Any) -> Any:
    kernel = _of(s, fs_nodes.release, cs_nodes.release)
    return lambda s, c, now: kernel(s, c, now)


@overload(add_app, jit_options=_COMPILED)
def _add_app(s: Any, leaf: Any, user: Any, managed: Any, am_mb: Any, am_vcores: Any, app_id: Any, now: Any) -> Any:
    kernel = _of(s, fs_apps.add_app, cs_seam.add_app)
    return lambda s, leaf, user, managed, am_mb, am_vcores, app_id, now: kernel(
        s, leaf, user, managed, am_mb, am_vcores, app_id, now
    )


@overload(ask, jit_options=_COMPILED)
def _ask(s: Any, i: Any, priority: Any, alloc_id: Any, count: Any, mb: Any, vcores: Any, now: Any) -> Any:
    kernel = _of(s, fs_apps.ask, cs_apps.ask)
    return lambda s, i, priority, alloc_id, count, mb, vcores, now: kernel(
        s, i, priority, alloc_id, count, mb, vcores, now
    )


@overload(end_app, jit_options=_COMPILED)
def _end_app(s: Any, i: Any, now: Any) -> Any:
    kernel = _of(s, fs_apps.end_app, cs_apps.end_app)
    return lambda s, i, now: kernel(s, i, now)


@overload(restart_app, jit_options=_COMPILED)
def _restart_app(s: Any, i: Any, am_mb: Any, am_vcores: Any, now: Any) -> Any:
    kernel = _of(s, fs_apps.restart_app, cs_apps.restart_app)
    return lambda s, i, am_mb, am_vcores, now: kernel(s, i, am_mb, am_vcores, now)


@overload(update, jit_options=_COMPILED)
def _update(s: Any, now: Any) -> Any:
    kernel = _of(s, fs_shares.update, cs_seam.nothing_now)
    return lambda s, now: kernel(s, now)


@overload(preempt_pass, jit_options=_COMPILED)
def _preempt_pass(s: Any, now: Any) -> Any:
    kernel = _of(s, fs_preempt.preempt_pass, cs_seam.nothing_now)
    return lambda s, now: kernel(s, now)


@overload(next_kill_ms, jit_options=_COMPILED)
def _next_kill_ms(s: Any) -> Any:
    kernel = _of(s, fs_preempt.next_kill_ms, cs_seam.never)
    return lambda s: kernel(s)


@overload(run_kills, jit_options=_COMPILED)
def _run_kills(s: Any, now: Any) -> Any:
    kernel = _of(s, fs_preempt.run_kills, cs_seam.nothing_now)
    return lambda s, now: kernel(s, now)
