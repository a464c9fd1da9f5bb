"""The scheduler's Python interface: built from yarn-site properties, an allocation file and nodes.

It maps names to slots. Its methods are slow and not called per event, except `grow`, `reload` and the creation of ad
hoc queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harness.base.errors import InputError
from harness.model.queues import AllocationFile, Queue
from harness.model.resources import UNBOUNDED
from harness.sim.conf import Conf
from harness.sim.enforcer import let_all_run
from harness.sim.fair import state as st
from harness.sim.fair.nodes import cluster_changed
from harness.sim.fair.shares import reweigh
from harness.sim.fair.turns import seat_all
from harness.sim.longterm_state import RULE_ACCUMULATED
from harness.sim.pools import DriverOptions, NodeLike, SchedulerBase, zeros
from harness.yarn.fair.manager import QueueManager

_LONG_MAX = 2**63 - 1
_POLICIES = {"fair": st.FAIR, "drf": st.DRF, "fifo": st.FIFO}
_FAIR = "yarn.scheduler.fair."

#: With more leaves than this, a kinetic tournament tree keeps the order by accumulated resources over time; with fewer,
#: all keys are recomputed at each choice.
FOLLOWED = 32


def _decide_as_2_2(g: Any) -> None:
    """Set what Hadoop 2.2.0 decides otherwise than 3.4.2 (docs/reference/simulator.md names it)."""
    g["hadoop_2_2"], g["holds_apps"] = 1, 1
    # An ask of any size that does not fit reserves the node (AppSchedulable.assignContainer there).
    g["reservable_ratio"], g["reserve_mb"], g["reserve_vcores"] = 1.0, 0, 0
    # No setting bounds what one heartbeat assigns by the node's space, and asks are clamped to the configuration only.
    g["max_assign_dynamic"], g["max_by_nodes"] = 0, 0


class Scheduler(SchedulerBase):
    """The Fair Scheduler's state, with the names of its queues, users and nodes.

    Parameters
    ----------
    conf : Mapping[str, Any]
        Properties of yarn-site.xml.
    allocations : AllocationFile
        The allocation file.
    nodes : Iterable[NodeLike]
        All nodes that may ever register, in the order of their slots. None of them is registered yet.
    order_mode : int
        STOCK, KEYED_LEVELS or KEYED_FLAT.
    leaf_policies : Mapping[str, int] or None
        Leaf path -> LTRF, for leaves where LTRF replaces the file's policy.
    sizes_from_conf : bool
        Whether the minimum and maximum allocation come from `conf` (False: Hadoop's defaults).
    hadoop : str or None
        ``2.2`` for the reservations of that release (None: those of present releases).
    driven : DriverOptions or None
        Options of the driver.
    apps, containers : int
        Initial numbers of slots for applications and containers.

    Notes
    -----
    `grow`, `reload` and every other method that enlarges arrays replace ``S``, so read the attribute again after a
    call.
    """

    pools = (
        ("a", "free_app", "n_free_app", "free_next"),
        ("c", "free_c", "n_free_c", "free_next"),
        ("r", "free_r", "n_free_r", "next"),
        ("p", "free_p", "n_free_p", "next"),
    )
    kept = 1

    def __init__(
        self,
        conf: Mapping[str, Any],
        allocations: AllocationFile,
        nodes: Iterable[NodeLike],
        *,
        order_mode: int = st.STOCK,
        leaf_policies: Mapping[str, int] | None = None,
        sizes_from_conf: bool = True,
        hadoop: str | None = None,
        driven: DriverOptions | None = None,
        apps: int = 64,
        containers: int = 256,
    ) -> None:
        super().__init__(nodes, driven)
        self.conf = Conf(conf)
        self.manager = QueueManager(allocations)
        self.leaf_policies = dict(leaf_policies or {})
        self.users: dict[str, int] = {}
        g = zeros(1, st.Globals.dtype)
        self._globals(g[0])
        if not sizes_from_conf:
            g[0]["min_mb"], g[0]["min_vcores"], g[0]["conf_max_mb"], g[0]["conf_max_vcores"] = 1024, 1, 8192, 4
        g[0]["order_mode"] = order_mode
        self._drive(
            g[0],
            (
                (st.MUT_LAUNCH, "launch", 0),
                (st.MUT_CLEANUP, "cleanup_heartbeats", 1),
                (st.MUT_MANUAL, "manual_acquire", 0),
                (st.MUT_CLAMP, "conf_max_mb", 2**31 - 1),
                (st.MUT_CLAMP, "conf_max_vcores", 2**31 - 1),
                (st.MUT_ASSIGNMULTIPLE, "assign_multiple", 0),
                (st.MUT_INCREMENTS, "inc_mb", 1),
                (st.MUT_INCREMENTS, "inc_vcores", 1),
                (st.MUT_SIZEWEIGHT, "size_weight", 0),
                (st.MUT_RESERVE, "reservable_ratio", 0),
                (st.MUT_PREEMPT, "preemption", 0),
            ),
        )
        if hadoop == "2.2":
            _decide_as_2_2(g[0])
        made = st.State.empty(zeros, k=64, log=1024, x=1, xg=1, sizes=st.SIZES, views=st.VIEWS, win=(1, 1))
        self.S = made._replace(g=g, n=self._node_table(st.NodeRecord.dtype))
        self._extend((apps, containers, 2 * apps, 64))
        self._sync()

    def _globals(self, g: Any) -> None:
        conf = self.conf
        self._set_sizes(g, conf, 0)
        g["inc_mb"] = conf.size("memory-mb", "yarn.scheduler.increment-allocation-mb", 1024)
        g["inc_vcores"] = conf.size("vcores", "yarn.scheduler.increment-allocation-vcores", 1)
        for resource in ("mb", "vcores"):
            if g["inc_" + resource] <= 0:
                raise InputError(
                    f"yarn.scheduler.increment-allocation-{resource} is not positive", hint="write a positive number"
                )
        multiple = conf.real("yarn.scheduler.reservation-threshold.increment-multiple", 2.0)
        g["reserve_mb"] = min(int(g["inc_mb"] * multiple), _LONG_MAX)
        g["reserve_vcores"] = min(int(g["inc_vcores"] * multiple), _LONG_MAX)
        g["assign_multiple"] = conf.flag(_FAIR + "assignmultiple", False)
        g["max_assign_dynamic"] = conf.flag(_FAIR + "dynamic.max.assign", True)
        g["max_assign"] = conf.integer(_FAIR + "max.assign", -1)
        g["size_weight"] = conf.flag(_FAIR + "sizebasedweight", False)
        g["reservable_ratio"] = conf.real(_FAIR + "reservable-nodes", float(np.float32(0.05)))
        g["preemption"] = conf.flag(_FAIR + "preemption", False)
        g["utilisation_threshold"] = conf.real(
            _FAIR + "preemption.cluster-utilization-threshold", float(np.float32(0.8))
        )
        g["warn_ms"] = conf.integer(_FAIR + "waitTimeBeforeKill", 15000)
        # Hadoop adds four node heartbeats, but reads their interval only later, so it adds 0.
        g["starve_delay_ms"] = g["warn_ms"] + conf.integer(
            _FAIR + "waitTimeBeforeNextStarvationCheck", 10000, _LONG_MAX
        )
        g["dirty_head"] = g["asks_head"] = -1
        g["least_mb"], g["least_vcores"] = _LONG_MAX, _LONG_MAX

    # ---- room

    def _size_work(self) -> None:
        s = self.S
        size = 4096 + 28 * max(len(s.a), len(s.c), len(s.n), len(s.r), 4 * len(s.q))
        if len(s.work) < size:
            # The queue of starved applications is in the second half of the scratch array.
            work = np.zeros(size, np.int64)
            if s.g[0]["heap_top"]:
                n, base = int(s.g[0]["heap_top"]), len(s.work) // 2
                work[size // 2 : size // 2 + n] = s.work[base : base + n]
            self.S = s._replace(work=work)

    def _least(self, which: str) -> int:
        # A preemption pass needs a free record for every running container (`preempt_pass`).
        g = self.S.g[0]
        return int(g["n_running"]) + 1 if which == "p" and g["preemption"] else 0

    def _grow_more(self) -> None:
        s, g = self.S, self.S.g[0]
        if any(
            s.q[leaf]["n_run"] + s.q[leaf]["n_nonrun"] + 1 > s.q[leaf]["heap_cap"] for leaf in s.leaves[: g["n_leaves"]]
        ):
            self._size_heaps(2)
        if g["kill_n"] * 2 > len(s.k) or len(s.k) < len(self.S.c):
            self._more_kills(2 * max(len(s.k), len(self.S.c)))

    def _more_kills(self, size: int) -> None:
        s, g = self.S, self.S.g[0]
        new = zeros(size, st.KillRecord.dtype)
        n = int(g["kill_n"])
        new[:n] = np.roll(s.k, -int(g["kill_head"]))[:n]
        g["kill_head"] = 0
        self.S = s._replace(k=new)

    def _size_heaps(self, factor: int) -> None:
        """Lay out the leaves' heaps again; full heaps get `factor` times their room."""
        s = self.S
        leaves = [int(leaf) for leaf in s.leaves[: s.g[0]["n_leaves"]]]
        sizes = {}
        for leaf in leaves:
            q = s.q[leaf]
            need = int(q["n_run"] + q["n_nonrun"] + 1)
            size = max(int(q["heap_cap"]), 16)
            while size < need:
                size *= factor
            sizes[leaf] = size
        heap = np.full(max(2 * sum(sizes.values()), 1), -1, np.int64)
        at = 0
        for leaf in leaves:
            q = s.q[leaf]
            off, cap, size = int(q["heap_off"]), int(q["heap_cap"]), sizes[leaf]
            n0, n1 = int(q["heap0_n"]), int(q["heap1_n"])
            heap[at : at + n0] = s.heap[off : off + n0]
            heap[at + size : at + size + n1] = s.heap[off + cap : off + cap + n1]
            q["heap_off"], q["heap_cap"] = at, size
            at += 2 * size
        self.S = s._replace(heap=heap)

    # ---- names

    def leaf_index(self, name: str) -> int | None:
        """Return the slot of a leaf by its name, creating it if needed; None if the name cannot be a leaf."""
        path = self.manager.leaf(name)
        if path is None:
            return None
        if path not in self.queue_slots:
            self._sync()
        return self.queue_slots[path]

    def user_slot(self, leaf: int, name: str) -> int:
        """Return a user's slot, which is the same in all leaves; the first call creates it."""
        slot = self.users.get(name)
        if slot is not None:
            return slot
        slot = self.users[name] = len(self.users)
        if slot >= len(self.S.u):
            self._lengthen("u", max(2 * slot, 16))
        u = self.S.u[slot]
        u["nr_head"] = u["nr_tail"] = -1
        u["max_apps"] = self._user_limit(name)
        return slot

    def _user_limit(self, name: str) -> int:
        return 2**31 - 1 if self.mutations & st.MUT_USERLIMIT else self.manager.allocations.max_user_apps(name)

    # ---- order of queues

    def order_queues(self) -> None:
        """Initialise the order of queues; use time-varying keys if keys are linear in time between two changes."""
        S = self.S
        xg = S.xg[0]
        straight = not (xg["half_life_ms"] > 0 or xg["part_ms"] > 0 or xg["quantum"])
        if S.g["order_mode"][0] == st.KEYED_LEVELS:
            S.seat["stock"] = S.x["stock"]
        alike = not (xg["own_end_ms"] or S.seat["stock"].any())
        S.g["moving"] = int(xg["rule"] == RULE_ACCUMULATED and straight and alike and len(S.leaves) > FOLLOWED)
        seat_all(S)

    def keys_changed(self) -> None:
        """Sort the queues again after a policy has changed their keys."""
        seat_all(self.S)

    # ---- queues

    def is_empty(self, path: str) -> bool:
        """Return whether a leaf has no application."""
        slot = self.queue_slots.get(path)
        if slot is None:
            return True
        q = self.S.q[slot]
        return bool(q["n_run"] == 0 and q["n_nonrun"] == 0)

    def reload(self, allocations: AllocationFile) -> None:
        """Apply a new allocation file: shares change at the next update, runnability at once."""
        if self.mutations & st.MUT_RELOAD:
            return
        self.manager.load(allocations, is_empty=self.is_empty)
        self._sync()
        if self.manager.limit_ad_hoc():
            # Hadoop has computed the steady shares before it applies these limits.
            self._sync_but_steady()
        for name, slot in self.users.items():
            self.S.u[slot]["max_apps"] = self._user_limit(name)
        let_all_run(self.S, 0)

    def set_weights(self, weights: Mapping[int, float]) -> None:
        """Apply a reload that changes only weights (queue slot -> float32), at a lower cost than `reload`."""
        reweigh(self.S.address, np.array(list(weights.items()), np.float64).reshape(-1, 2))

    def check(self) -> None:
        """Remove empty ad hoc queues, as Hadoop's reload thread does every 10 s."""
        before = self.manager.created()
        self.manager.check(is_empty=self.is_empty)
        if self.manager.created() == before:
            return
        # Hadoop does not recompute steady shares here, but only when a node or the file changes.
        self._sync_but_steady()

    def _sync_but_steady(self) -> None:
        steady = {
            path: self.S.q[slot][["steady_mb", "steady_vcores"]].item() for path, slot in self.queue_slots.items()
        }
        self._sync()
        for path, slot in self.queue_slots.items():
            self.S.q[slot]["steady_mb"], self.S.q[slot]["steady_vcores"] = steady.get(path, (0, 0))

    def _sync(self) -> None:
        """Update the queue records from the queue manager's tree."""
        tree = self.manager.tree()
        created = [path for path in self.manager.created() if path in tree]
        for path in [path for path in self.queue_slots if path not in tree]:
            slot = self.queue_slots.pop(path)
            self.S.q[slot]["alive"] = 0
            self.queue_paths[slot] = ""
        free = [slot for slot, path in enumerate(self.queue_paths) if not path]
        fresh = [path for path in created if path not in self.queue_slots]
        for path in fresh:
            if free:
                slot = free.pop(0)
                self.queue_paths[slot] = path
            else:
                slot = len(self.queue_paths)
                self.queue_paths.append(path)
            self.queue_slots[path] = slot
        if len(self.queue_paths) > len(self.S.q):
            self._lengthen("q", max(2 * len(self.S.q), len(self.queue_paths)))
        for path in fresh:
            self._new_queue(self.queue_slots[path], tree[path])
        q = self.S.q
        slots = [self.queue_slots[path] for path in created]
        q["first_child"][slots] = q["next_sibling"][slots] = -1
        last: dict[str, int] = {}
        for path in created:
            queue, slot = tree[path], self.queue_slots[path]
            self._set_queue(q[slot], queue)
            if queue.parent is None:
                q[slot]["parent"] = -1
                continue
            parent = self.queue_slots[queue.parent]
            q[slot]["parent"] = parent
            if queue.parent in last:
                q[last[queue.parent]]["next_sibling"] = slot
            else:
                q[parent]["first_child"] = slot
            last[queue.parent] = slot
        for rank, path in enumerate(sorted(created, key=lambda path: path.encode("utf-16-be", "surrogatepass"))):
            q[self.queue_slots[path]]["rank"] = rank
        # Parents are created before their children.
        order = np.array(sorted(slots, key=lambda slot: self.queue_paths[slot].count(".")), np.int64)
        leaves = np.array([self.queue_slots[path] for path in created if tree[path].leaf], np.int64)
        self.S = self.S._replace(order=order, leaves=leaves)
        self.S.g[0]["n_queues"], self.S.g[0]["n_leaves"] = len(order), len(leaves)
        self._size_heaps(2)
        self._size_work()
        self._lay_out_turns(slots)
        cluster_changed(self.S)

    def _lay_out_turns(self, slots: list[int]) -> None:
        """Allocate each parent's tournament tree of its children; in flat mode, one of all leaves at the root."""
        q = self.S.q
        seat = zeros(len(q), st.SeatRecord.dtype)
        seat[: len(self.S.seat)] = self.S.seat
        for field, value in (("up", -1), ("at", 0), ("off", 0), ("cap", 0), ("late_at", 0)):
            seat[field] = value
        size = 0

        def tournament(children: list[int]) -> tuple[int, int]:
            nonlocal size
            off, cap = size, 1 << max(len(children) - 1, 0).bit_length()
            size += 2 * cap
            return off, cap

        leaves = [int(leaf) for leaf in self.S.leaves]
        below: dict[int, list[int]] = {slot: [] for slot in slots if not q[slot]["leaf"]}
        flat = self.S.g[0]["order_mode"] == st.KEYED_FLAT
        if flat:
            below = {0: leaves}
        else:
            for slot in slots:
                if q[slot]["parent"] >= 0:
                    below[int(q[slot]["parent"])].append(slot)
        for parent, children in below.items():
            seat["off"][parent], seat["cap"][parent] = tournament(children)
            seat["up"][children], seat["at"][children] = parent, np.arange(len(children))
        g = self.S.g[0]
        g["span"] = size
        size *= st.VIEWS
        g["late_off"] = g["late_cap"] = 0
        if g["order_mode"] == st.KEYED_LEVELS:
            g["late_off"], g["late_cap"] = tournament(leaves)
            seat["late_at"][leaves] = np.arange(len(leaves))
        empty = np.full(size, -1, np.int64)
        aside = np.zeros(len(q) + 1, np.int64)
        inside = np.zeros(st.VIEWS * len(q), np.int64)
        self.S = self.S._replace(seat=seat, inside=inside, tree=empty, due=empty.copy(), aside=aside)

    def _new_queue(self, slot: int, queue: Queue) -> None:
        q = self.S.q[slot : slot + 1]
        q[:] = zeros(1, st.QueueRecord.dtype)
        self.S.seat["calm"][slot : slot + 1] = 0
        for field in ("run_head", "run_tail", "nr_head", "nr_tail", "first_child", "next_sibling", "parent"):
            q[field] = -1
        for field in ("ask_min_mb", "ask_min_vcores", "am_min_mb", "am_min_vcores"):
            q[field] = _LONG_MAX
        q["alive"], q["leaf"], q["members_dirty"] = 1, queue.leaf, 1

    def _set_queue(self, q: Any, queue: Queue) -> None:
        off = self.mutations
        policy = self.leaf_policies.get(queue.path, _POLICIES[queue.policy])
        if (off & st.MUT_DRF and policy == st.DRF) or (off & st.MUT_FIFO and policy == st.FIFO):
            policy = st.FAIR
        if policy != q["policy"]:
            q["members_dirty"] = 1
        q["policy"], q["dynamic"] = policy, queue.dynamic
        q["weight"] = 1.0 if off & st.MUT_WEIGHTS else np.float32(queue.weight)
        minimum = queue.min_share
        q["min_mb"], q["min_vcores"] = (0, 0) if off & st.MUT_MIN else (minimum.memory_mb, minimum.vcores)
        limit = queue.max_limit
        q["max_is_pct"] = 0
        q["raw_max_mb"] = q["raw_max_vcores"] = _LONG_MAX
        if off & st.MUT_MAX:
            pass
        elif limit.absolute is None:
            q["max_is_pct"], q["pct_mb"], q["pct_vcores"] = 1, limit.memory_fraction, limit.vcores_fraction
        elif limit.absolute != UNBOUNDED:
            q["raw_max_mb"], q["raw_max_vcores"] = limit.absolute.memory_mb, limit.absolute.vcores
        largest = queue.max_container_allocation
        q["max_c_mb"], q["max_c_vcores"] = largest.memory_mb, largest.vcores
        # Hadoop 2.2 limits leaves only.
        unlimited = off & st.MUT_MAXAPPS or (self.S.g[0]["hadoop_2_2"] and not q["leaf"])
        q["max_apps"] = 2**31 - 1 if unlimited else queue.max_running_apps
        q["max_am_share"] = -1.0 if off & st.MUT_AMSHARE else np.float32(queue.max_am_share)
        q["preemptable"] = queue.preemptable
        am = self.conf.flag(_FAIR + "am.preemption", True)
        q["am_preemptable"] = self.conf.flag(f"{_FAIR}am.preemption.{queue.path}", am)
        q["min_timeout_ms"], q["fair_timeout_ms"] = (
            queue.min_share_preemption_timeout_ms,
            queue.fair_share_preemption_timeout_ms,
        )
        q["fair_threshold"] = np.float32(queue.fair_share_preemption_threshold)
