"""The scheduler's Python interface: built from yarn-site properties and nodes. It maps names to slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harness.sim.conf import Conf
from harness.sim.fifo import state as st
from harness.sim.pools import DriverOptions, NodeLike, SchedulerBase, zeros


class Scheduler(SchedulerBase):
    """The FIFO scheduler's state, with the names of its queues, users and nodes.

    Parameters
    ----------
    conf : Mapping[str, Any]
        Properties of yarn-site.xml.
    nodes : Iterable[NodeLike]
        All nodes that may ever register, in the order of their slots. None of them is registered yet.
    driven : DriverOptions or None
        Options of the driver.
    apps, containers : int
        Initial numbers of slots for applications and containers.

    Notes
    -----
    `grow` and every other method that enlarges arrays replace ``S``, so read the attribute again after a call.
    """

    pools = (
        ("a", "free_app", "n_free_app", "free_next"),
        ("c", "free_c", "n_free_c", "free_next"),
        ("r", "free_r", "n_free_r", "next"),
    )

    def __init__(
        self,
        conf: Mapping[str, Any],
        nodes: Iterable[NodeLike],
        driven: DriverOptions | None = None,
        apps: int = 64,
        containers: int = 256,
    ) -> None:
        super().__init__(nodes, driven)
        self.users: dict[str, int] = {}
        self.queue_paths = ["root", "root.default"]
        self.queue_slots = {"root": st.ROOT, "root.default": st.DEFAULT}
        g = zeros(1, st.Globals.dtype)
        self._set_sizes(g[0], Conf(conf), 1)
        self._drive(
            g[0],
            (
                (st.MUT_LAUNCH, "launch", 0),
                (st.MUT_CLEANUP, "cleanup_heartbeats", 1),
                (st.MUT_MANUAL, "manual_acquire", 0),
                (st.MUT_INCREMENTS, "min_mb", 1),
            ),
        )
        made = st.State.empty(zeros, q=2, u=16, log=max(4 * containers, 1024), x=1, xg=1, win=(1, 1))
        self.S = made._replace(
            g=g,
            n=self._node_table(st.NodeRecord.dtype),
            order=np.array([st.ROOT, st.DEFAULT], np.int64),
            leaves=np.array([st.DEFAULT], np.int64),
        )
        q = self.S.q
        for field in ("parent", "first_child", "next_sibling", "ask_head", "ask_tail", "nr_head", "nr_tail"):
            q[field] = -1
        q["alive"], q["weight"] = 1, 1.0
        q["leaf"][st.DEFAULT], q["parent"][st.DEFAULT], q["first_child"][st.ROOT] = 1, st.ROOT, st.DEFAULT
        g[0]["n_queues"], g[0]["n_leaves"] = 2, 1
        self._extend((apps, containers, 2 * apps))
        self._size_work()

    def leaf_index(self, name: str) -> int:
        """Return the slot of ``root.default``; FifoScheduler ignores the queue name of an application."""
        return st.DEFAULT

    def user_slot(self, leaf: int, name: str) -> int:
        """Return a user's slot; the first call creates it."""
        slot = self.users.setdefault(name, len(self.users))
        if slot >= len(self.S.u):
            self._lengthen("u", 2 * slot)
        u = self.S.u[slot]
        if u["max_apps"] == 0:
            u["nr_head"] = u["nr_tail"] = -1
            u["max_apps"] = np.iinfo(np.int32).max
        return slot

    def _size_work(self) -> None:
        s = self.S
        size = 4096 + 4 * max(len(s.a), len(s.c), len(s.n))
        if len(s.work) < size:
            self.S = s._replace(work=np.zeros(size, np.int64))
