"""The scheduler's Python interface: built from yarn-site and capacity-scheduler properties and nodes.

It maps names to slots. Its methods are slow and not called per event, except `grow` and `reconfigure`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harness.base.errors import InputError
from harness.model.queues import JAVA_INT_MAX
from harness.sim.capacity import state as st
from harness.sim.capacity.capacities import configured, refresh
from harness.sim.capacity.conf import CapacityConf, QueueConf, read_conf
from harness.sim.capacity.nodes import refresh_room
from harness.sim.capacity.preempt import REGIONS
from harness.sim.capacity.preempt_conf import read_preemption
from harness.sim.conf import Conf
from harness.sim.enforcer import let_all_run
from harness.sim.pools import DriverOptions, NodeLike, SchedulerBase, zeros
from harness.sim.setup import Preempted
from harness.yarn.capacity.monitors import queues_disabled
from harness.yarn.capacity.steering import Steering
from harness.yarn.fair.javanum import hash_set_order, string_hash

_STATES = {"RUNNING": st.RUNNING, "STOPPED": st.STOPPED}


class Scheduler(SchedulerBase):
    """The Capacity Scheduler's state, with the names of its queues, users and nodes.

    Parameters
    ----------
    conf : Mapping[str, Any]
        Properties of yarn-site.xml.
    capacity : Mapping[str, str]
        Properties of capacity-scheduler.xml, without their prefix.
    nodes : Iterable[NodeLike]
        All nodes that may ever register, in the order of their slots. None of them is registered yet.
    driven : DriverOptions or None
        Options of the driver.
    apps, containers : int
        Initial numbers of slots for applications and containers.

    Notes
    -----
    `grow`, `user_slot` and every other method that enlarges arrays replace ``S``, so read the attribute again after a
    call.
    """

    pools = (
        ("a", "free_app", "n_free_app", "free_next"),
        ("c", "free_c", "n_free_c", "free_next"),
        ("r", "free_r", "n_free_r", "next"),
        ("h", "free_h", "n_free_h", "next"),
    )

    def __init__(
        self,
        conf: Mapping[str, Any],
        capacity: Mapping[str, str],
        nodes: Iterable[NodeLike],
        driven: DriverOptions | None = None,
        apps: int = 64,
        containers: int = 256,
    ) -> None:
        super().__init__(nodes, driven)
        self.settings = dict(capacity)
        #: Converts an external policy's plans to settings, in a run with such a policy.
        self.steering: Steering | None = None
        self._users: dict[tuple[int, str], int] = {}
        self._persons: dict[str, int] = {}
        self._preempts = False
        self.user_names: list[str] = []
        g = zeros(1, st.Globals.dtype)
        self._set_sizes(g[0], Conf(conf), 1)
        #: The scheduler's maximum allocation: a queue's own maximum may not exceed it.
        self._largest = int(g[0]["conf_max_mb"]), int(g[0]["conf_max_vcores"])
        tree = read_conf(self.settings, largest=self._largest)
        self.site = dict(conf)
        #: Settings that Hadoop reads only at its start.
        self._for_good = {
            key: self.settings.get(key, "")
            for key in ("resource-calculator", *(f"{q.path}.allow-zero-capacity-sum" for q in tree.queues()))
        }
        g[0]["max_priority"] = Conf(conf).integer("yarn.cluster.max-application-priority", 0)
        g[0]["drf"] = tree.dominant
        self._drive(
            g[0],
            (
                (st.MUT_LAUNCH, "launch", 0),
                (st.MUT_CLEANUP, "cleanup_heartbeats", 1),
                (st.MUT_MANUAL, "manual_acquire", 0),
                (st.MUT_DRF, "drf", 0),
                (st.MUT_INCREMENTS, "min_mb", 1),
            ),
        )
        self._lay_out(tree)
        depth = [path.count(".") for path in self.queue_paths]
        log = max(4 * containers, 1024)
        made = st.State.empty(zeros, q=len(depth), u=16, f=1 + max(depth), log=log, x=1, xg=1, win=(1, 1))
        self.S = made._replace(
            g=g,
            n=self._node_table(st.NodeRecord.dtype),
            order=np.array(sorted(range(len(depth)), key=depth.__getitem__), np.int64),
            p=zeros(len(depth), st.PreemptionRecord.dtype),
            leaves=np.array([self.queue_slots[q.path] for q in tree.queues() if not q.children], np.int64),
        )
        self._extend((apps, containers, 2 * apps, max(2 * len(self._nodes), 16)))
        g[0]["n_queues"], g[0]["n_leaves"] = len(self.S.order), len(self.S.leaves)
        self._new_queues(tree)
        self._configure(tree)
        self._size_work()
        if self.S.g[0]["preemption"]:
            self.ready_to_preempt()
        refresh(self.S, 0)

    # ---- settings

    def _lay_out(self, tree: CapacityConf) -> None:
        """Assign slots to all queues, and store the configured order of each parent's children."""
        self.children: dict[str, list[str]] = {}
        for queue in tree.queues():
            self.queue_slots[queue.path] = len(self.queue_paths)
            self.queue_paths.append(queue.path)
            if queue.children:
                self.children[queue.path] = [child.path for child in queue.children]

    def _new_queues(self, tree: CapacityConf) -> None:
        q = self.S.q
        for members in ("act", "ask", "wait", "user", "nr"):
            q[f"{members}_head"] = q[f"{members}_tail"] = -1
        for field in ("stale_head", "parent", "U_version", "first_child", "next_sibling"):
            q[field] = -1
        q["users_cap"], q["alive"] = 16, 1
        kids, trees = 0, 0
        for queue in tree.queues():
            slot = self.queue_slots[queue.path]
            q[slot]["leaf"] = not queue.children
            for child in queue.children:
                q[self.queue_slots[child.path]]["parent"] = slot
            size = 1
            while size < len(queue.children):
                size *= 2
            q[slot]["kids_off"], q[slot]["n_kids"] = kids, len(queue.children)
            q[slot]["tree_off"], q[slot]["tree_cap"] = trees, size
            q[slot]["state"] = st.RUNNING if self.mutations & st.MUT_STATE else _STATES[queue.state]
            kids += len(queue.children)
            trees += 2 * size
            parent = int(q[slot]["parent"])
            if parent >= 0 and q[parent]["state"] != st.RUNNING:
                q[slot]["state"] = st.STOPPED
        self.S = self.S._replace(kids=np.zeros(kids, np.int64), tree=np.full(trees, -1, np.int64))

    def _configure(self, tree: CapacityConf) -> None:
        """Write the configuration into the queues' records."""
        s, off = self.S, self.mutations
        g = s.g[0]
        g["look"], g["off_max"], g["multi"] = tree.look, tree.off_switch, tree.multiple
        g["con_max"], g["system_apps"], g["queue_apps"] = tree.containers, tree.system_apps, tree.queue_apps
        if off & st.MUT_MULTI:
            g["off_max"] = 1
        if off & st.MUT_LOOK:
            g["look"] = 0
        for queue in tree.queues():
            slot = self.queue_slots[queue.path]
            self._set_queue(s.q[slot], queue)
            children = [self.queue_slots[path] for path in self.children.get(queue.path, ())]
            s.q[slot]["first_child"] = children[0] if children else -1
            for place, child in enumerate(children):
                s.kids[s.q[slot]["kids_off"] + place] = child
                s.q[child]["pos"] = place
                s.q[child]["next_sibling"] = children[place + 1] if place + 1 < len(children) else -1
        self.parallel = tree.user_parallel
        for name, slot in self._persons.items():
            s.u[slot]["max_apps"] = self.parallel.of(name)
        numbers = [queue.parallel for queue in tree.queues()] + [self.parallel.default, *self.parallel.own.values()]
        g["limited"] |= min(numbers) < JAVA_INT_MAX
        self._set_preemption()
        configured(s)

    def _set_preemption(self) -> None:
        """Store the preemption settings, and the order in which containers are taken from leaves."""
        found, g = read_preemption(self.site, self.settings), self.S.g[0]
        g["preemption"] = g["kill_n"] = found.runs and not self.mutations & st.MUT_PREEMPT
        if g["armed_ms"] == 0:
            g["armed_ms"] = found.interval_ms
        g["interval_ms"], g["wait_ms"], g["balance_wait_ms"] = found.interval_ms, found.wait_ms, found.balance_wait_ms
        g["per_round"], g["ignored"], g["natural"] = found.per_round, found.ignored, found.natural
        g["observe"], g["conservative"], g["balance"] = found.observe, found.conservative, found.balance
        g["by_reservations"], g["with_reserved"] = found.by_reservations, found.with_reserved
        if found.by_reservations:
            # Preemption's records of containers are kept from the first container that ends, before any round of the
            # policy.
            self.ready_to_preempt()
        disabled = queues_disabled(self.settings, self.queue_paths, found.monitors)
        for path, slot in self.queue_slots.items():
            self.S.p[slot]["disabled"] = disabled[path] and not self.mutations & st.MUT_PREEMPTABLE
        own_names = Counter(path.rpartition(".")[2] for path in self.queue_paths)
        for path, slot in self.queue_slots.items():
            name = path.rpartition(".")[2]
            self.S.p[slot]["nameless"] = own_names[name] > 1 or name == "root"
        taken = [self.queue_slots[path] for path in self._leaves_by_hash("root")]
        self.S = self.S._replace(takes=np.array(taken, np.int64))

    def _leaves_by_hash(self, path: str) -> list[str]:
        """Return the leaves in the order of the HashSet of ProportionalCapacityPreemptionPolicy.getLeafQueueNames."""
        if path not in self.children:
            return [path]
        return hash_set_order([leaf for child in self.children[path] for leaf in self._leaves_by_hash(child)])

    def ready_to_preempt(self) -> None:
        """Allocate the arrays that only preemption needs."""
        self._preempts = True
        self._size_work()

    def _set_queue(self, q: Any, queue: QueueConf) -> None:
        off = self.mutations
        q["cap"], q["max"], q["weight"] = queue.capacity, queue.maximum, queue.weight
        if queue.path == "root":
            q["cap"], q["norm"] = 1.0, np.float32(queue.weight > 0)
        if off & st.MUT_CAPACITIES:
            q["weight"] = -1.0 if queue.weight < 0 else 1.0
        q["absolute"] = queue.mode == "absolute"
        q["conf_mb"], q["conf_vcores"] = queue.absolute
        q["confmax_mb"], q["confmax_vcores"] = queue.absolute_maximum
        if off & st.MUT_MAXCAP:
            q["max"], q["confmax_mb"], q["confmax_vcores"] = 1.0, 0, 0
        # In Hadoop, absolute capacities start from the previous normalised weights. A queue that gets no new value
        # keeps this one.
        above = self.S.q[q["parent"]] if queue.path != "root" else None
        for at, part in (("abs", max(q["norm"], q["cap"])), ("abs_max", q["max"])):
            q[at] = np.float32(part * (np.float32(1.0) if above is None else above[at])) if part > 0 else 0.0
        q["any_weight"] = any(not child.weight < 0 for child in queue.children)
        q["priority"] = 0 if off & st.MUT_QUEUEPRIORITY else queue.priority
        q["policy"] = queue.policy == "priority-utilization"
        q["fair"] = queue.policy == "fair" and not off & st.MUT_FAIR
        q["sized"] = queue.policy == "fair" and queue.sized and not off & (st.MUT_SIZEWEIGHT | st.MUT_FAIR)
        q["mulp"], q["ulf"], q["am_pct"] = queue.user_limit, queue.user_limit_factor, queue.am_share
        q["own_max_apps"], q["parallel"] = queue.max_apps, queue.parallel
        q["largest_mb"], q["largest_vcores"] = self._largest if off & st.MUT_LARGEST else queue.largest

    def _set_state(self, q: Any, queue: QueueConf) -> None:
        if queue.state == "RUNNING":
            q["state"] = st.RUNNING
        elif q["state"] == st.RUNNING and not self.mutations & st.MUT_STATE:
            q["state"] = st.DRAINING if q["n_apps"] else st.STOPPED

    def reconfigure(self, settings: Mapping[str, str], now: int) -> None:
        """Apply new settings (CapacityScheduler.reinitialize).

        Raises InputError for settings that Hadoop refuses. The old settings are then restored by a second
        re-initialisation, as in Hadoop.
        """
        if self.mutations & st.MUT_RECONFIGURE:
            return
        refused: InputError | None = None
        cluster = (int(self.S.g[0]["cluster_mb"]), int(self.S.g[0]["cluster_vcores"]))
        try:
            tree = read_conf({**settings, **self._for_good}, cluster, self._largest)
            self._same_queues(tree)
        except InputError as error:
            refused = error
            tree = read_conf(self.settings, cluster, self._largest)
        else:
            self.settings = {**settings, **self._for_good}
        if not self.mutations & st.MUT_CHILDORDER:
            self.children = {path: hash_set_order(children) for path, children in self.children.items()}
        while not refresh_room(self.S, 2 + 2 * int(self.S.g[0]["n_held_back"])):
            self.grow()
        for queue in tree.queues():
            self._set_state(self.S.q[self.queue_slots[queue.path]], queue)
        self._configure(tree)
        refresh(self.S, now)
        if refused is not None:
            raise refused
        let_all_run(self.S, now)

    def _same_queues(self, tree: CapacityConf) -> None:
        there = {queue.path for queue in tree.queues()}
        for path in sorted(self.queue_slots.keys() ^ there):
            done = "appears" if path in there else "goes"
            raise InputError(
                f"queue {path} {done} while the scheduler runs: not covered", hint="keep the tree, or start anew"
            )
        for queue in tree.queues():
            if bool(queue.children) != (queue.path in self.children):
                raise InputError(f"queue {queue.path} changes between leaf and parent", hint="keep the tree")
            old = self._largest_in(self.queue_slots[queue.path])
            if not queue.children and (queue.largest[0] < old[0] or queue.largest[1] < old[1]):
                what = f"the largest container of queue {queue.path} becomes smaller"
                raise InputError(what, hint="keep it, or raise it")

    # ---- names

    def largest_of(self, path: str) -> tuple[int, int] | None:
        """Return a queue's largest container (MB, vcores), above which Hadoop's AMS refuses asks.

        None: the scheduler's maximum applies.
        """
        slot = self.queue_slots.get(path)
        found = self._largest if slot is None else self._largest_in(slot)
        return None if found == self._largest else found

    def preempted(self) -> Preempted | None:
        """Return the work that preemption has killed so far; None if preemption is off."""
        g = self.S.g[0]
        if not g["preemption"]:
            return None
        return Preempted(int(g["killed_n"]), int(g["killed_mb_ms"]) / 1000.0, int(g["killed_vcore_ms"]) / 1000.0)

    def _largest_in(self, slot: int) -> tuple[int, int]:
        return int(self.S.q[slot]["largest_mb"]), int(self.S.q[slot]["largest_vcores"])

    def leaf_index(self, name: str) -> int | None:
        """Return the slot of a leaf by its path or short name; None if no leaf or more than one has that name."""
        if name in self.queue_slots:
            found = [name]
        else:
            found = [path for path in self.queue_paths if path.rpartition(".")[2] == name]
        if len(found) != 1 or found[0] in self.children:
            return None
        return self.queue_slots[found[0]]

    def user_slot(self, leaf: int, name: str) -> int:
        """Return the slot of a user in a leaf; the first call creates it."""
        slot = self._users.get((leaf, name))
        if slot is None:
            slot = self._users[leaf, name] = len(self._users)
            self.user_names.append(name)
            if slot >= len(self.S.u):
                self._lengthen("u", 2 * slot)
            u = self.S.u[slot]
            u["q"], u["hash"] = leaf, string_hash(name) & 0xFFFFFFFF
            u["nr_head"] = u["nr_tail"] = -1
            u["person"], u["max_apps"] = self._persons.setdefault(name, slot), self.parallel.of(name)
        return slot

    # ---- room

    def _size_work(self) -> None:
        s = self.S
        size = 4096 + 4 * max(len(s.a), len(s.c), len(s.n), len(s.u), len(s.q))
        if len(s.work) < size:
            self.S = s._replace(work=np.zeros(size, np.int64))
        if self._preempts:
            self._lengthen("m", len(s.c))
            size = REGIONS * (len(s.c) + len(s.n) + len(s.a) + len(s.q) + 4 * len(s.u))
            if len(s.pw) < size:
                self.S = self.S._replace(pw=np.zeros(size, np.int64))
            if len(s.cost) < len(s.n):
                self.S = self.S._replace(cost=np.zeros(len(s.n)))
