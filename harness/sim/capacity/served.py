"""The Capacity Scheduler of a served cluster: its store or file, changes over REST, and its queues in the RM's answers.

If ``yarn.scheduler.configuration.store.class`` is ``memory``, clients change the configuration over REST, and the file
contains only the initial configuration. Otherwise ``refreshQueues`` reads the file again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.base.errors import InputError
from harness.model.queues import ensure_root_prefix
from harness.sim.capacity import state as st
from harness.sim.capacity.activation import user_am_limit
from harness.sim.capacity.conf import PREFIX, properties
from harness.sim.capacity.users import limit_now
from harness.sim.serve.values import resource
from harness.sim.served import NOT_ACTIVATED, Answer, Document, JavaError, Running, ServedScheduler
from harness.yarn import rpc
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.settings import Settings
from harness.yarn.placement import CapacityPlacing, Placement, Submission

STORE = "yarn.scheduler.configuration.store.class"
_STATES = {st.RUNNING: "RUNNING", st.STOPPED: "STOPPED", st.DRAINING: "DRAINING"}
_INT_MAX = 2**31 - 1


class ServedCapacityScheduler(ServedScheduler):
    """The Capacity Scheduler of a served cluster. Its set of queues never changes."""

    has_store = True
    java_class = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
    file_words, polls = "capacity file", False
    file_key = "capacity_file"
    may_be_asynchronous = True
    share_field = "eff_mb"

    def __init__(self, sim: Running) -> None:
        super().__init__(sim)
        #: All properties in force, with their prefix.
        self._values = {f"{PREFIX}{key}": value for key, value in sim.scheduler.settings.items()}
        self._version = 1
        #: Built from the configuration in force when the first application arrives.
        self._placing: CapacityPlacing | None = None

    # --- applications ---

    def placed_in(self, name: str, user: str, app: str = "") -> Placement:
        """Return the queue by the mapping rules, or the named leaf (its path, or its unique short name)."""
        if self._placing is None:
            self._placing = CapacityPlacing(Settings({key: text for key, text in self._values.items() if text}))
        return self._placing.place(Submission(name, user, self.groups.get(user, ()), app))

    def leaf(self, name: str) -> str | None:
        """Return the full path of a leaf queue by its path or unique short name; None if there is none."""
        slot = self.sim.scheduler.leaf_index(name)
        return None if slot is None else self.sim.scheduler.queue_paths[slot]

    def no_leaf(self, placed: Placement, identity: str, user: str) -> str:
        """Return Hadoop's message for a submission to a queue that is not a leaf."""
        path = placed.asked
        if not path:
            return "Application submission have been rejected by a mapping rule. Please see the logs for details"
        if ensure_root_prefix(path) in self.sim.scheduler.children:
            return f"Application {identity} submitted by user to non-leaf queue : {path}"
        return f"Application {identity} submitted by user to unknown queue: {path}"

    def refused(self, path: str, identity: str) -> str:
        """Return Hadoop's message for a submission that the queue refuses."""
        q = self.sim.scheduler.S.q[self.sim.scheduler.queue_slots[path]]
        if q["state"] != st.RUNNING:
            return f"Queue {path} is STOPPED. Cannot accept submission of application: {identity}"
        there = int(q["n_active"] + q["n_waiting"])
        of_user = "" if there >= q["max_apps"] else " from user"
        return (
            f"Queue {path} already has {there} applications{of_user}, cannot accept submission of application: "
            f"{identity}"
        )

    def why_waiting(self, app: int, user: str) -> str:
        """Return Hadoop's words: whether the application is active, or which limit of AMs it exceeds.

        Follows AbstractLeafQueue.activateApplications. Hadoop says nothing of an application that waits because of a
        limit of parallel applications.
        """
        S = self.sim.scheduler.S
        a = S.a[app]
        if not a["runnable"]:
            return ""
        if a["active"]:
            return "Application is Activated, waiting for resources to be assigned for AM. "
        leaf = int(a["q"])
        q, u = S.q[leaf], S.u[a["uq"]]
        of_user = user_am_limit(S, leaf)
        mb, vcores, counts = int(a["am_mb"]), int(a["am_vcores"]), bool(S.g[0]["drf"])
        for whose, used, most in (
            ("Queue's", q, (int(q["am_limit_mb"]), int(q["am_limit_vcores"]))),
            ("User's", u, of_user),
        ):
            if int(used["am_mb"]) + mb > most[0] or (counts and int(used["am_vcores"]) + vcores > most[1]):
                return (
                    f"{NOT_ACTIVATED}{whose} AM resource limit exceeded.  Details : AM Partition = "
                    f"<DEFAULT_PARTITION>; AM Resource Request = {_java(mb, vcores)}; Queue Resource Limit for AM = "
                    f"{_java(q['am_limit_mb'], q['am_limit_vcores'])}; User AM Resource Limit of the queue = "
                    f"{_java(*of_user)}; Queue AM Resource Usage = {_java(q['am_mb'], q['am_vcores'])}; "
                )
        return NOT_ACTIVATED

    def move(self, job: int, leaf: str) -> bool:
        """Refuse the move: the simulated scheduler moves no applications."""
        return False

    # --- configuration ---

    @property
    def _stored(self) -> bool:
        return self.sim.setup.conf.get(STORE, "file") == "memory"

    def load(self, text: str) -> None:
        """Apply the text of a ``capacity-scheduler.xml``."""
        values = parse_configuration(text.encode(), source="capacity-scheduler.xml").values
        self._reinitialize({name: value.strip() for name, value in values.items()})

    def _reinitialize(self, values: dict[str, str]) -> None:
        """Put properties in force; if this raises InputError, the old properties stay in force."""
        try:
            self.sim.scheduler.reconfigure(_settings(values), self.sim.now_ms)
        finally:
            self.sim.queues_changed()
        self._values, self._placing = values, None

    def tidy(self) -> None:
        """Keep all queues."""

    def refresh(self, reload: Callable[[], bool]) -> None:
        """Re-read the file, which is ignored if it is invalid. Raises JavaError if the configuration has a store."""
        if self._stored:
            text = "Scheduler configuration is mutable. refreshQueues is not allowed in this scenario."
            raise JavaError("java.io.IOException", text)
        reload()

    def properties(self, file: Path) -> dict[str, str]:
        """Return the scheduler's properties for ``/conf``; the Capacity Scheduler has none there."""
        return {}

    def stored(self) -> Document:
        """Return the stored configuration as the RM's REST answer."""
        if not self._stored:
            return super().stored()
        return {"property": [{"name": name, "value": value} for name, value in sorted(self._values.items())]}

    def version(self) -> Document:
        """Return the stored configuration's version as the RM's REST answer."""
        if not self._stored:
            return super().version()
        return {"versionID": str(self._version)}

    def change(self, body: Mapping[str, Any]) -> str:
        """Apply a change of the stored configuration and return the RM's answer."""
        if not self._stored:
            raise Answer(400, "Configuration change only supported by mutable configuration store.")
        try:
            values = {**self._values}
            for name, value in _changes(body):
                if value is None:
                    values.pop(name, None)
                else:
                    values[name] = value
            self._reinitialize(values)
        except InputError as error:
            raise Answer(400, f"Failed to re-init queues : {error.line()}") from None
        self._version += 1
        return "Configuration change successfully applied."

    # --- REST and RPC answers ---

    def info(self) -> Document:
        """Return the scheduler's queues as the RM's REST answer."""
        a = self.sim.scheduler.S.a
        return self._queue("root", self.sums(containers=a["n_live"], reserved=a["n_reserved"], asks=a["n_asks"]))

    def _queue(self, path: str, sums: Mapping[str, list[int]]) -> Document:
        scheduler = self.sim.scheduler
        S, slot = scheduler.S, scheduler.queue_slots[path]
        q = S.q[slot]
        children = scheduler.children.get(path, ())
        policy = self._value(path, "ordering-policy")
        entry: Document = {
            "type": "capacityScheduler" if path == "root" else "capacitySchedulerLeafQueueInfo",
            **_part(q),
            "weight": _single(q["weight"]),
            "normalizedWeight": _single(q["norm"]),
            "queueName": path.rpartition(".")[2],
            "queuePath": path,
            "maxParallelApps": int(q["parallel"]),
            "isAbsoluteResource": bool(q["absolute"]),
            "queuePriority": int(q["priority"]),
            "mode": "absolute" if q["absolute"] else "weight" if q["weight"] >= 0 else "percentage",
            "queueType": "parent" if children else "leaf",
            "creationMethod": "static",
            "autoCreationEligibility": "off",
            "capacities": {"queueCapacitiesByPartition": [self._capacities(q)]},
            "maximumAllocation": resource(int(q["largest_mb"]), int(q["largest_vcores"])),
        }
        if path != "root":
            if children:
                del entry["type"]
            entry |= {
                "absoluteCapacity": _percent(q["abs"]),
                "absoluteMaxCapacity": _percent(q["abs_max"]),
                "absoluteUsedCapacity": _percent(q["abs_used"]),
                "numApplications": int(q["n_active"] + q["n_waiting"] + q["n_nonrun"])
                if not children
                else int(q["n_apps"]),
                "state": _STATES[int(q["state"])],
                "resourcesUsed": resource(int(q["used_mb"]), int(q["used_vcores"])),
                "hideReservationQueues": False,
                "nodeLabels": ["*"],
                "allocatedContainers": sums["containers"][slot],
                "reservedContainers": sums["reserved"][slot],
                "pendingContainers": sums["asks"][slot],
                "resources": {"resourceUsagesByPartition": [_usage(q)]},
                "minEffectiveCapacity": resource(int(q["eff_mb"]), int(q["eff_vcores"])),
                "maxEffectiveCapacity": resource(int(q["effmax_mb"]), int(q["effmax_vcores"])),
            }
        if children:
            entry["orderingPolicyInfo"] = policy or "utilization"
            # A real RM lists leaves before parents, and each in the order in which they are tried
            # (CapacitySchedulerInfo.getQueues of 3.4.2).
            listed = sorted(children, key=lambda child: child in scheduler.children)
            entry["queues"] = {"queue": [self._queue(child, sums) for child in listed]}
            return entry
        limit = resource(int(q["am_limit_mb"]), int(q["am_limit_vcores"]))
        return entry | {
            "orderingPolicyInfo": policy or "fifo",
            "numActiveApplications": int(q["n_active"]),
            "numPendingApplications": int(q["n_waiting"]),
            "numContainers": sums["containers"][slot],
            "maxApplications": int(q["max_apps"]),
            "maxApplicationsPerUser": int(q["max_user_apps"]),
            "userLimit": _single(q["mulp"]),
            "userLimitFactor": _single(q["ulf"]),
            "configuredMaxAMResourceLimit": _single(q["am_pct"]),
            "AMResourceLimit": limit,
            "usedAMResource": resource(int(q["am_mb"]), int(q["am_vcores"])),
            "userAMResourceLimit": limit,
            "users": self._users(slot),
            "preemptionDisabled": bool(scheduler.S.p[slot]["disabled"]),
            "intraQueuePreemptionDisabled": True,
            "defaultPriority": 0,
            "isAutoCreatedLeafQueue": False,
            "maxApplicationLifetime": -1,
            "defaultApplicationLifetime": -1,
        }

    def _users(self, leaf: int) -> Document:
        """Return a leaf's users, their usage and their limits, by name."""
        S = self.sim.scheduler.S
        found, limit, am_limit = [], None, None
        at = int(S.q[leaf]["user_head"])
        while at >= 0:
            u = S.u[at]
            if limit is None or am_limit is None:
                limit, am_limit = limit_now(S, leaf), user_am_limit(S, leaf)
            used, am_used = (resource(int(u[f"{of}_mb"]), int(u[f"{of}_vcores"])) for of in ("used", "am"))
            nothing = resource(0, 0)
            usage = {"partitionName": "", "used": used, "reserved": nothing, "pending": nothing, "amUsed": am_used}
            usage |= {"amLimit": resource(*am_limit), "userAmLimit": nothing}
            found.append(
                {
                    "username": self.sim.scheduler.user_names[at],
                    "resourcesUsed": used,
                    "numPendingApplications": int(u["pend"]),
                    "numActiveApplications": int(u["act"]),
                    "AMResourceUsed": am_used,
                    "userResourceLimit": resource(*limit),
                    "resources": {"resourceUsagesByPartition": [usage]},
                    "userWeight": 1.0,
                    "isActive": bool(u["on"] == 1),
                }
            )
            at = int(u["next"])
        return {"user": sorted(found, key=lambda user: str(user["username"]))} if found else {}

    def _value(self, path: str, key: str) -> str | None:
        return self._values.get(f"{PREFIX}{path}.{key}")

    def _capacities(self, q: Any) -> Document:
        """Return a queue's capacities in the default partition."""
        return {
            "partitionName": "",
            **_part(q),
            "absoluteCapacity": _percent(q["abs"]),
            "absoluteUsedCapacity": _percent(q["abs_used"]),
            "absoluteMaxCapacity": _percent(q["abs_max"]),
            "maxAMLimitPercentage": _percent(q["am_pct"]),
            "weight": _single(q["weight"]),
            "normalizedWeight": _single(q["norm"]),
            "configuredMinResource": resource(int(q["conf_mb"]), int(q["conf_vcores"])),
            "configuredMaxResource": resource(int(q["confmax_mb"]), int(q["confmax_vcores"])),
            "effectiveMinResource": resource(int(q["eff_mb"]), int(q["eff_vcores"])),
            "effectiveMaxResource": resource(int(q["effmax_mb"]), int(q["effmax_vcores"])),
        }

    def queue_info(self, path: str, children: bool, recursive: bool) -> bytes | None:
        """Return a QueueInfoProto, filled as in AbstractCSQueue.getQueueInfo."""
        scheduler = self.sim.scheduler
        slot = scheduler.queue_slots.get(path)
        if slot is None:
            return None
        q = scheduler.S.q[slot]
        out = rpc.field(1, path.rpartition(".")[2])
        out += rpc.real(2, float(max(q["cap"], q["norm"]))) + rpc.real(3, float(q["max"]))
        out += rpc.real(4, float(q["used_cap"])) + rpc.field(5, 2 if q["state"] == st.RUNNING else 1)
        if children:
            for child in scheduler.children.get(path, ()):
                out += rpc.field(6, self.queue_info(child, recursive, recursive) or b"")
        return out + rpc.field(10, b"") + rpc.real(14, float(q["weight"])) + rpc.field(17, "CapacityScheduler")


def _java(mb: Any, vcores: Any) -> str:
    """Return a resource as Java prints it."""
    return f"<memory:{int(mb)}, vCores:{int(vcores)}>"


def _single(value: Any) -> float:
    """Return the shortest decimal that restores the float, as Java writes it."""
    return float(str(np.float32(value)))


def _percent(value: Any) -> float:
    """Return a fraction of 1 as a percentage, multiplied in float32 as in Hadoop."""
    return _single(np.float32(value) * np.float32(100))


def _part(q: Any) -> Document:
    return {
        "capacity": _percent(q["cap"]),
        "usedCapacity": _percent(q["used_cap"]),
        "maxCapacity": _percent(q["max"]),
    }


def _usage(q: Any) -> Document:
    """Return a queue's usage in the default partition."""
    names = (("used", "used"), ("reserved", "reserved"), ("pending", "pending"), ("amUsed", "am"))
    found = {name: resource(int(q[f"{of}_mb"]), int(q[f"{of}_vcores"])) for name, of in names}
    limit = resource(int(q["am_limit_mb"]), int(q["am_limit_vcores"]))
    return {"partitionName": "", **found, "amLimit": limit, "userAmLimit": limit}


def _settings(values: Mapping[str, str]) -> dict[str, str]:
    """Return the Capacity Scheduler's own properties without their prefix, as the simulated scheduler takes them."""
    return {key: v for key, v in properties(dict(values)).items() if v is not None and PREFIX + key in values}


def _changes(body: Mapping[str, Any]) -> Iterable[tuple[str, str | None]]:
    """Return the changes of a request document as property -> value (None removes it).

    Raises InputError for an invalid document, and for one that adds or removes queues.
    """
    given = body if isinstance(body, dict) else {}
    for what, verb in (("add-queue", "added"), ("remove-queue", "removed")):
        if given.get(what):
            raise InputError(f"queues cannot be {verb} in a simulated cluster", hint="keep the tree, or start anew")
    for queue in _list(given.get("update-queue")):
        path = queue.get("queue-name")
        if not isinstance(path, str) or not path:
            raise InputError("an update of a queue without queue-name", hint="name it")
        for key, value in _entries(queue.get("params")):
            yield f"{PREFIX}{path}.{key}", value
    for one in _list(given.get("global-updates")):
        yield from _entries(one)


def _list(value: Any) -> list[Mapping[str, Any]]:
    """Return a list; like Jackson, accept a single object in place of a list."""
    found = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, dict) for one in found):
        raise InputError("the change is not as the API has it", hint='write {"update-queue": [{"queue-name": ...}]}')
    return found


def _entries(params: Any) -> Iterable[tuple[str, str | None]]:
    for one in _list(params.get("entry") if isinstance(params, dict) else None):
        key, value = one.get("key"), one.get("value")
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise InputError("an entry without a key, or with a value that is not text", hint='write {"key", "value"}')
        yield key, value or None
