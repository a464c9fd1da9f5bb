"""Reads capacity-scheduler.xml, the Capacity Scheduler's own file, for a simulation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from harness.base.errors import InputError
from harness.model.plan import WEIGHT_MIN, Attributes
from harness.model.queues import NO_APP_LIMIT, ROOT, AllocationFile, QueueSettings, cluster_parts
from harness.sim.capacity.conf import uncovered
from harness.sim.capacity.preempt_conf import PREEMPTION_PREFIX, uncovered_preemption
from harness.sim.capacity.tree import capacity_settings, settings_with, steering_of
from harness.sim.scheduler_file import Dropped, SchedulerFile
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.monitors import preempts
from harness.yarn.capacity.properties import PREFIX, parse_configuration
from harness.yarn.capacity.queues import queue_tree, read_capacity
from harness.yarn.capacity.settings import Settings
from harness.yarn.capacity.steering import counts_dominant
from harness.yarn.capacity.validate import is_configuration
from harness.yarn.placement import CapacityPlacing, Placing
from harness.yarn.validation import check_document

if TYPE_CHECKING:
    from harness.model.resources import Resource
    from harness.sim.setup import SimSetup

_MADE_BY_APPLICATIONS = re.compile(r"(.+)\.auto-queue-creation-v2\.(.+)")
#: A child may need this much more than its parent has left, in per cent of the cluster (``CSQueueUtils.EPSILON``).
_EPSILON_PERCENT = 0.1
_V1_ENABLED = "auto-create-child-queue.enabled"
_OF_V1 = re.compile(r"(.+)\.(auto-create-child-queue|leaf-queue-template)\.(.+)")
#: Properties that have no effect in the simulator: access control, and preemption where it is off.
_ACL = re.compile(r"root(\..+)?\.acl_.*")
_PREEMPTION = re.compile(r"root(\..+)?\.(disable_preemption|intra-queue-preemption\.disable_preemption)|intra-queue-.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityFile(SchedulerFile):
    """A capacity-scheduler.xml."""

    scheduler = "capacity"
    file_name = "capacity-scheduler.xml"

    @classmethod
    def recognises(cls, data: bytes) -> bool:
        """Return whether the text is such a file: its root element is ``configuration``."""
        return is_configuration(data)

    @classmethod
    def check(cls, data: bytes, source: str) -> None:
        """Raise InputError with the first problem for which an RM would not start or refresh."""
        refused = [one for one in check_document(data, source=source).findings if one.refused]
        if refused:
            first = refused[0]
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            where = f"{source}:{first.line}" + (f": queue {first.queue}" if first.queue else "")
            hint = f"{first.hint}; `yarnfair validate` tells all"
            raise InputError(f"a ResourceManager refuses the file: {first.what}{more}", where=where, hint=hint)

    @classmethod
    def read(cls, data: bytes, source: str, conf: Mapping[str, str]) -> tuple[Self, list[Dropped]]:
        """Read the file, leaving out the properties that `harness.sim.capacity.conf.uncovered` names."""
        values = parse_configuration(data, source=source).values
        resolver = Settings({name: text for name, text in values.items() if text})
        settings: dict[str, str] = {}
        for name in values:
            if name.startswith(PREFIX) and values[name]:
                settings[name.removeprefix(PREFIX)] = (resolver.get(name) or "").strip()
        on = preempts(conf)
        ignored = tuple(
            PREFIX + name
            for name, text in settings.items()
            if (_ACL.fullmatch(name) and text != "*") or (_PREEMPTION.fullmatch(name) and not on)
        )
        # The policy's own settings may be in either file; this file takes precedence.
        own = [name for name, text in values.items() if name.startswith(PREEMPTION_PREFIX) and text]
        site = {**conf, **{name: (resolver.get(name) or "").strip() for name in own}}
        left = []
        for name, what in uncovered_preemption(site, settings):
            left.append(Dropped(name if name in site else PREFIX + name, "true", what))
            (site if name in site else settings)[name] = "false"
        for one in uncovered(settings):
            if one.key.endswith(("auto-queue-creation-v2.enabled", _V1_ENABLED)):
                # Queues that the load's applications would create exist from the beginning.
                continue
            left.append(Dropped(PREFIX + one.key, one.value, one.what))
            if one.instead is None:
                del settings[one.key]
            else:
                settings[one.key] = one.instead
        try:
            names = _names(_prefixed(settings), source, _creating(settings))
        except InputError as error:
            if not left:
                raise
            listed = "; ".join(one.line() for one in left)
            what = f"the simulator does not cover {len(left)} of its settings: {listed}; and without them: {error.what}"
            raise InputError(what, where=source, hint=error.hint) from None
        made = cls(
            path=source,
            sha256=hashlib.sha256(data).hexdigest(),
            text=render_properties(settings),
            allocations=names,
            capacity=settings,
            conf=site,
            ignored=ignored,
            creates=bool(_creating(settings)),
        )
        return made, left

    @property
    def leaves(self) -> list[str]:
        """Return the paths of the leaves in the order of the tree."""
        return list(self.allocations.configured_leaves)

    def weights(self) -> dict[str, float]:
        """Return the queues' percentages of the cluster."""
        queues = queue_tree(_prefixed(self.capacity), source=self.path)
        parts = cluster_parts({path: queue.capacity.entitlement for path, queue in queues.items()}, 100.0)
        return {path: 1.0 if path == ROOT else max(parts[path], WEIGHT_MIN) for path in queues}

    def counts_vcores(self) -> bool:
        """Return whether vcores count: the file chooses the DominantResourceCalculator."""
        return counts_dominant(_prefixed(self.capacity))

    def _with_weights(self, weights: Mapping[str, float], cluster: Resource) -> Self:
        everybody = {path: weight for path, weight in self.weights().items() if path != ROOT}
        changed = {path.rpartition(".")[0] for path in weights}
        plan = {path: weight for path, weight in {**everybody, **weights}.items() if path.rpartition(".")[0] in changed}
        steering = steering_of(self.capacity, cluster)
        return replace(self, capacity=settings_with(steering, Attributes(plan)))

    def placing(self) -> Placing:
        """Return the placement by the file's queue mappings."""
        return CapacityPlacing(Settings({PREFIX + name: text for name, text in self.capacity.items() if text}))

    def with_created(self, placing: Placing) -> Self:
        """Return the file with auto-created queues as configured queues, with their templates' settings."""
        assert isinstance(placing, CapacityPlacing)
        settings = {name: text for name, text in self.capacity.items() if not _MADE_BY_APPLICATIONS.fullmatch(name)}
        templates: dict[str, dict[str, str]] = {}
        for name, text in self.capacity.items():
            if (found := _MADE_BY_APPLICATIONS.fullmatch(name)) and "template." in found[2]:
                templates.setdefault(found[1], {})[found[2]] = text
        parents = {path.rpartition(".")[0] for path in placing.created}
        managed = _managing(settings)
        for path in placing.created:
            if path.rpartition(".")[0] in managed:
                continue
            above, _, name = path.rpartition(".")
            settings[f"{above}.queues"] = ",".join([*_children(settings, above), name])
            settings[f"{path}.capacity"] = "1w"
            for kind in ("template.", "parent-template." if path in parents else "leaf-template."):
                for said in (_wildcard(templates, above), templates.get(above, {})):
                    for key, text in said.items():
                        if key.startswith(kind):
                            settings[f"{path}.{key.removeprefix(kind)}"] = text
        _make_managed(settings, [path for path in placing.created if path.rpartition(".")[0] in managed])
        return replace(
            self,
            capacity=settings,
            allocations=_names(_prefixed(settings), self.path, _creating(self.capacity)),
            text=render_properties(settings),
        )

    def lines(self) -> list[str]:
        """Return messages that a user should see before the run."""
        found = SchedulerFile.lines(self)
        for parent in _managing(self.capacity):
            names = _children(self.capacity, parent)
            without = [name for name in names if self.capacity.get(f"{parent}.{name}.capacity") == "0"]
            if without:
                listed = ", ".join(without[:6]) + (f" and {len(without) - 6} more" if len(without) > 6 else "")
                has = "have" if len(without) > 1 else "has"
                found.append(
                    f"{self.path}: of the queues that {parent} creates, {listed} {has} no guaranteed capacity, because "
                    "those created before have all of their parent's; QueueManagementDynamicEditPolicy, if it runs, "
                    "would hand guarantees over by demand, which is not simulated"
                )
        return found

    @classmethod
    def written(cls, setup: SimSetup) -> tuple[SimSetup, str]:
        """Return the file with every queue's capacity written out."""
        settings = {**capacity_settings(setup.allocations, setup.nodes), **setup.capacity}
        return replace(setup, capacity=settings), render_properties(settings)

    @classmethod
    def put_in(cls, setup: SimSetup, text: str, source: str) -> SimSetup:
        """Put only the file's queues and properties into the experiment."""
        values = parse_configuration(text.encode(), source=source).values
        settings = {
            name.removeprefix(PREFIX): value.strip() for name, value in values.items() if name.startswith(PREFIX)
        }
        return replace(setup, allocations=_names(values, source), capacity=settings)


def _children(settings: Mapping[str, str], parent: str) -> list[str]:
    """Return the names of the children that a queue's ``queues`` property lists."""
    return [name.strip() for name in settings.get(f"{parent}.queues", "").split(",") if name.strip()]


def _creating(settings: Mapping[str, str]) -> frozenset[str]:
    """Return the queues that create queues for applications and accept no applications themselves."""
    flag = "auto-queue-creation-v2.enabled"
    return _managing(settings) | frozenset(
        found[1]
        for name, text in settings.items()
        if (found := _MADE_BY_APPLICATIONS.fullmatch(name)) and name.endswith(flag) and text.lower() == "true"
    )


def _managing(settings: Mapping[str, str]) -> frozenset[str]:
    """Return the queues that create children in the legacy way (``ManagedParentQueue``)."""
    return frozenset(
        name.removesuffix(f".{_V1_ENABLED}")
        for name, text in settings.items()
        if name.endswith(f".{_V1_ENABLED}") and text.lower() == "true"
    )


def _make_managed(settings: dict[str, str], created: Collection[str]) -> None:
    """Configure the children of parents in the legacy mode, in the order of their creation; changes the settings.

    As in ``GuaranteedOrZeroCapacityOverTimePolicy.getInitialLeafQueueConfiguration``, a child has the template's
    capacity as long as its parent has that much left, and otherwise none. Hadoop compares fractions of the cluster, so
    its tolerance is large for a small parent. No limit of applications holds in such a child, whatever its template
    and its capacity are (``AbstractLeafQueue.validateSubmitApplication``). The parent keeps its property
    ``auto-create-child-queue.enabled``: capacities of its children may then add up to less than 100 %, and a controller
    does not write them.
    """
    templates: dict[str, dict[str, str]] = {}
    for name, text in list(settings.items()):
        if found := _OF_V1.fullmatch(name):
            if found[2] == "leaf-queue-template":
                templates.setdefault(found[1], {})[found[3]] = text
            if found[2] == "leaf-queue-template" or found[3] != "enabled":
                del settings[name]
    left: dict[str, float] = {}
    tree = queue_tree(_prefixed(settings), source="the file")
    parts = cluster_parts({path: queue.capacity.entitlement for path, queue in tree.items()}, 100.0)
    for path in created:
        parent, _, name = path.rpartition(".")
        settings[f"{parent}.queues"] = ",".join([*_children(settings, parent), name])
        for key, text in templates.get(parent, {}).items():
            settings[f"{path}.{key}"] = text
        settings[f"{path}.maximum-applications"] = str(NO_APP_LIMIT)
        capacity = read_capacity(settings.get(f"{path}.capacity", "0"), f"{parent}.leaf-queue-template.capacity")
        if capacity.mode == "percent":
            rest = left.get(parent, 100.0)
            if capacity.value > rest + 100.0 * _EPSILON_PERCENT / max(parts[parent], _EPSILON_PERCENT):
                settings[f"{path}.capacity"] = "0"
            else:
                left[parent] = rest - capacity.value
    for parent in _managing(settings):
        if not settings.get(f"{parent}.queues"):
            # No application is ever submitted below this parent, so it becomes an ordinary queue.
            del settings[f"{parent}.{_V1_ENABLED}"]


def _prefixed(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings under their full names, with the prefix."""
    return {PREFIX + name: text for name, text in settings.items()}


def _names(values: Mapping[str, str], source: str, creating: Collection[str] = ()) -> AllocationFile:
    """Return the queues' names in the form that the simulator accepts beside a Capacity Scheduler's settings."""
    queues = queue_tree(values, source=source)
    return AllocationFile(
        settings={path: QueueSettings(path) for path in queues},
        configured_leaves=tuple(q.path for q in queues.values() if not q.children and q.path not in creating),
        configured_parents=tuple(q.path for q in queues.values() if q.children or q.path in creating),
    )


def _wildcard(templates: Mapping[str, Mapping[str, str]], parent: str) -> Mapping[str, str]:
    """Return the template for a parent whose path has a ``*``, if there is one."""
    for pattern, said in templates.items():
        parts, names = pattern.split("."), parent.split(".")
        if "*" in parts and len(parts) == len(names) and all(a in ("*", b) for a, b in zip(parts, names, strict=True)):
            return said
    return {}
