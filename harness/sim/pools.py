"""Base class of the schedulers' Python interfaces: arrays of records with free lists, and their growth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numba.core import config as numba_config

from harness.base.errors import InputError
from harness.sim import arrays
from harness.yarn.fair.javanum import string_hash

if TYPE_CHECKING:
    from harness.sim.setup import Preempted

S = TypeVar("S", bound=Any)


class NodeLike(Protocol):
    """The attributes of a node that a scheduler reads."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def rack(self) -> str:
        """The node's rack."""

    @property
    def memory_mb(self) -> int:
        """The node's memory, MiB."""

    @property
    def vcores(self) -> int:
        """The node's virtual cores."""


def node_hash(name: str, port: int) -> int:
    """Return Hadoop's NodeId.hashCode as an unsigned 32-bit number."""
    return (493217 * (((493217 * 8501) + string_hash(name)) & 0xFFFFFFFF) + port) & 0xFFFFFFFF


def zeros(size: int, dtype: Any) -> np.ndarray:
    """Return an array of zeros of a record type.

    Without compilation (NUMBA_DISABLE_JIT, for debugging), it is a record array, whose fields are also attributes.
    """
    array = arrays.zeros(size, dtype)
    return array.view(np.recarray) if getattr(numba_config, "DISABLE_JIT", 0) and array.dtype.names else array


def chain(array: np.ndarray, field: str, first: int) -> None:
    """Link the slots from `first` on into a free list that ends at the array's end."""
    n = len(array)
    array[field][first:] = np.arange(first + 1, n + 1)
    array[field][n - 1] = -1


def extended(state: S, which: str, head: str, count: str, link: str, size: int) -> S:
    """Return the state with its array `which` extended to `size` slots.

    The new slots come first in the free list G.`head`.
    """
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


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """Options of the code that drives a scheduler.

    Parameters
    ----------
    cluster_timestamp, node_port
        Parts of Hadoop's IDs, whose hash codes determine the order in which preemption visits containers and nodes.
    launch
        Whether heartbeats report containers as launched (False: as in TestFairScheduler).
    manual_acquire
        Whether AMs fetch containers only by `pull`; otherwise they fetch them at once.
    cleanup_heartbeats
        Number of a node's heartbeats until the resources of a killed container are free.
    max_by_nodes
        Whether asks are clamped to the largest node, as in an RM that has been up for 10 s or more.
    mutations
        Bit set of features to switch off, for tests that must fail then.
    """

    cluster_timestamp: int = 0
    node_port: int = 45454
    launch: bool = True
    manual_acquire: bool = False
    cleanup_heartbeats: int = 1
    max_by_nodes: bool = True
    mutations: int = 0


class SchedulerBase:
    """A scheduler's state ``S``, with the names of its nodes and queues.

    Every method that enlarges arrays replaces ``S``, so read the attribute again after a call.
    """

    #: Arrays with a free list: (array, its head and its length in the globals, its link field).
    pools: ClassVar[tuple[tuple[str, str, str, str], ...]]
    #: How many of the first arrays are not grown when it is unknown which array is too small.
    kept: ClassVar[int] = 0
    S: Any

    def __init__(self, nodes: Iterable[NodeLike], driven: DriverOptions | None) -> None:
        self.driven = driven or DriverOptions()
        self.mutations = self.driven.mutations
        self.queue_slots: dict[str, int] = {}
        self.queue_paths: list[str] = []
        self._nodes = list(nodes)
        self.node_names = [node.name for node in self._nodes]
        self.node_slots = {name: slot for slot, name in enumerate(self.node_names)}

    def _set_sizes(self, g: Any, conf: Any, least: int) -> None:
        """Set the minimum and maximum allocation from yarn-site.xml (a `Conf`); `least`: lower bound of the minimum."""
        low, high = "yarn.scheduler.minimum-allocation-", "yarn.scheduler.maximum-allocation-"
        g["min_mb"], g["min_vcores"] = conf.integer(low + "mb", 1024), conf.integer(low + "vcores", 1)
        g["conf_max_mb"], g["conf_max_vcores"] = conf.integer(high + "mb", 8192), conf.integer(high + "vcores", 4)
        for resource in ("mb", "vcores"):
            if not least <= g["min_" + resource] <= g["conf_max_" + resource]:
                wrong, hint = "negative", "set minimum <= maximum, as the ResourceManager demands"
                if least > 0:
                    wrong, hint = "not positive", "set 0 < minimum <= maximum"
                raise InputError(f"{low}{resource} is {wrong} or above the maximum", hint=hint)

    def _drive(self, g: Any, features: Iterable[tuple[int, str, float]]) -> None:
        """Write the driver's options into the globals.

        ``features`` lists (bit, field, value): if the mutations include the bit, the field is set to the value.
        """
        for _, head, _, _ in self.pools:
            g[head] = -1
        g["next_app_id"], g["mutations"] = 1, self.mutations
        g["least_ask_mb"] = g["least_ask_vcores"] = np.iinfo(np.int64).max
        driven = self.driven
        g["cluster_ts"], g["launch"] = driven.cluster_timestamp, driven.launch
        g["manual_acquire"], g["max_by_nodes"] = driven.manual_acquire, driven.max_by_nodes
        g["cleanup_heartbeats"] = max(driven.cleanup_heartbeats, 1)
        for bit, field, value in features:
            if self.mutations & bit:
                g[field] = value

    def _node_table(self, kind: np.dtype) -> np.ndarray:
        """Return the table of nodes, none of them registered."""
        n = zeros(max(len(self._nodes), 1), kind)
        racks: dict[str, int] = {}
        for slot, node in enumerate(self._nodes):
            n[slot]["total_mb"], n[slot]["total_vcores"] = node.memory_mb, node.vcores
            n[slot]["hash"] = node_hash(node.name, self.driven.node_port)
            n[slot]["rack"] = racks.setdefault(node.rack, len(racks))
        for field in ("res_app", "pre_head", "c_head", "c_tail", "done_head", "done_tail"):
            n[field] = -1
        return n

    def queue_index(self, path: str) -> int:
        """Return a queue's slot. Raises KeyError if there is none."""
        return self.queue_slots[path]

    # ---- what a run needs

    def leaf_index(self, name: str) -> int | None:
        """Return the slot of a leaf by its name; None if there is no such leaf and the scheduler does not create it."""
        raise NotImplementedError

    def user_slot(self, leaf: int, name: str) -> int:
        """Return the slot of a user who submits to a leaf; the first call creates it."""
        raise NotImplementedError

    def largest_of(self, path: str) -> tuple[int, int] | None:
        """Return a queue's maximum allocation (MB, vcores), above which Hadoop's ApplicationMasterService refuses asks.

        None: the scheduler's maximum allocation applies.
        """
        return None

    def preempted(self) -> Preempted | None:
        """Return the work that preemption has killed so far; None: it is off, or the scheduler does not count that."""
        return None

    def order_queues(self) -> None:
        """Initialise the order of queues, after the long-term values of the queues have been set."""

    def keys_changed(self) -> None:
        """Sort the queues again after a policy has changed their keys."""

    # ---- room

    def _extend(self, sizes: Iterable[int]) -> None:
        """Extend each array with a free list to this many slots, if it has fewer."""
        for (which, head, count, link), size in zip(self.pools, sizes, strict=True):
            if size > len(getattr(self.S, which)):
                self.S = extended(self.S, which, head, count, link, size)

    def _least(self, which: str) -> int:
        """Return how many slots of an array must be free."""
        return 0

    def _grow_more(self) -> None:
        """Enlarge full arrays that only one scheduler has."""

    def _size_work(self) -> None:
        """Resize the scratch array to the sizes of the other arrays."""
        raise NotImplementedError

    def grow(self) -> None:
        """Enlarge arrays after NEED_ROOM: double every array that is more than half full, or all if none is."""
        before, g = self.S, self.S.g[0]
        lengths = [len(getattr(self.S, which)) for which, *_ in self.pools]
        sizes = []
        for (which, _, count, _), length in zip(self.pools, lengths, strict=True):
            least = self._least(which)
            sizes.append(max(2 * length, 2 * least) if g[count] * 2 < length or g[count] < least else length)
        self._extend(sizes)
        self._grow_more()
        if g["n_log"] * 2 > len(self.S.log) or len(self.S.log) < 2 * len(self.S.c):
            self._lengthen("log", 2 * max(len(self.S.log), len(self.S.c)))
        if self.S is before:
            self._extend(length * (1 if at < self.kept else 2) for at, length in enumerate(lengths))
            self._lengthen("log", 2 * len(self.S.log))
        self._size_work()

    def _lengthen(self, which: str, size: int) -> None:
        """Extend an array to this many slots, if it has fewer."""
        old = getattr(self.S, which)
        if size > len(old):
            new = zeros(size, old.dtype)
            new[: len(old)] = old
            self.S = self.S._replace(**{which: new})
