"""Slots: arrays of records with free lists, and how they grow; what the simulated schedulers' Python sides share."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np
from numba.core import config as numba_config

from harness.sim import arrays
from harness.yarn.fair.javanum import string_hash

S = TypeVar("S", bound=Any)


class NodeLike(Protocol):
    """What is read of a node."""

    @property
    def name(self) -> str: ...
    @property
    def rack(self) -> str: ...
    @property
    def memory_mb(self) -> int: ...
    @property
    def vcores(self) -> int: ...


def node_hash(name: str, port: int) -> int:
    """NodeId.hashCode, as an unsigned 32-bit number."""
    return (493217 * (((493217 * 8501) + string_hash(name)) & 0xFFFFFFFF) + port) & 0xFFFFFFFF


def zeros(size: int, dtype: Any) -> np.ndarray:
    """An array of a slot type. Without compilation (NUMBA_DISABLE_JIT, for debugging) records need attributes too."""
    array = arrays.zeros(size, dtype)
    return array.view(np.recarray) if getattr(numba_config, "DISABLE_JIT", 0) and array.dtype.names else array


def chain(array: np.ndarray, field: str, first: int) -> None:
    """Link the slots from `first` on into a free list that ends at the array's end."""
    n = len(array)
    array[field][first:] = np.arange(first + 1, n + 1)
    array[field][n - 1] = -1


def extended(state: S, which: str, head: str, count: str, link: str, size: int) -> S:
    """The state with its array `which` of `size` slots: the new ones come first in the free list G.`head`."""
    old: np.ndarray = getattr(state, which)
    new = zeros(size, old.dtype)
    new[: len(old)] = old
    chain(new, link, len(old))
    g = state.g[0]
    if g[head] >= 0:
        new[link][size - 1] = g[head]
    g[head] = len(old)
    g[count] += size - len(old)
    replaced: S = state._replace(**{which: new})
    return replaced
