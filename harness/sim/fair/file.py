"""Reads the allocation file, the Fair Scheduler's own file, for a simulation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from harness.base.errors import InputError
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import ROOT, UNLIMITED, AllocationFile, QueueSettings
from harness.sim.scheduler_file import Dropped, SchedulerFile
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.render import in_float32, render_allocations
from harness.yarn.placement import FairPlacing, Placing

if TYPE_CHECKING:
    from harness.model.resources import Resource
    from harness.sim.setup import SimSetup

#: Pattern of a resource in an allocation file other than memory and vcores.
_OTHER_RESOURCE = re.compile(r"(?<![\w./-])([a-zA-Z][\w.-]*/[\w.-]+)\s*=")
_FAIR = "yarn.scheduler.fair."
_UNDECLARED = ("allow-undeclared-pools", "user-as-default-queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class FairFile(SchedulerFile):
    """An allocation file."""

    scheduler = "fair"
    file_name = "fair-scheduler.xml"

    @classmethod
    def read(cls, data: bytes, source: str, conf: Mapping[str, str]) -> tuple[Self, list[Dropped]]:
        """Read the file, leaving out reservations and resources other than memory and vcores."""
        conf = dict(conf)
        text = data.decode("utf-8", "replace")
        types = list(dict.fromkeys(_OTHER_RESOURCE.findall(text)))
        if types and "yarn.resource-types" not in conf:
            conf["yarn.resource-types"] = ",".join(types)
        file = parse_allocations(data, source=source, conf=conf)
        left = [Dropped(name, "", "a resource beside memory and vcores") for name in types]
        reserving = [path for path, said in file.settings.items() if said.reservable]
        left += [Dropped(f"queue {path}: <reservation>", "", "reservations") for path in reserving]
        settings = {
            path: replace(said, reservable=False) if said.reservable else said for path, said in file.settings.items()
        }
        parents = tuple(path for path in file.configured_parents if path not in reserving)
        file = replace(
            file,
            settings=settings,
            configured_leaves=(*file.configured_leaves, *reserving),
            configured_parents=parents,
            reservation_agent=None,
            reservation_planner=None,
            reservation_policy=None,
        )
        ignored = [
            f"queue {path}: <{element}>"
            for path, said in settings.items()
            for element, who in said.acls.items()
            if who != "*"
        ]
        kept = text if not left else _rendered(file)
        digest = hashlib.sha256(data).hexdigest()
        return cls(path=source, sha256=digest, text=kept, allocations=file, conf=conf, ignored=tuple(ignored)), left

    @property
    def leaves(self) -> list[str]:
        """Return the paths of the leaf queues, including those that applications have created."""
        return [queue.path for queue in QueueManager(self.allocations).tree().leaves()]

    def weights(self) -> dict[str, float]:
        """Return the queues' weights, clamped to the range that a policy may write."""
        tree = QueueManager(self.allocations).tree()
        return {q.path: 1.0 if q.parent is None else _weight(q.path, q.weight, self.path) for q in tree}

    def counts_vcores(self) -> bool:
        """Return whether vcores count: the policy of root is ``drf``."""
        return self.allocations.scheduling_policy(ROOT) == "drf"

    def _with_weights(self, weights: Mapping[str, float], cluster: Resource) -> Self:
        settings = dict(self.allocations.settings)
        for path, weight in weights.items():
            settings[path] = replace(settings.get(path) or QueueSettings(path), weight=weight)
        return replace(self, allocations=replace(self.allocations, settings=settings))

    def placing(self) -> Placing:
        """Return the placement by the file's queuePlacementPolicy."""
        flags = {name: str(self.conf.get(_FAIR + name, "true")).strip().lower() != "false" for name in _UNDECLARED}
        return FairPlacing(
            QueueManager(self.allocations),
            allow_undeclared=flags["allow-undeclared-pools"],
            user_as_default=flags["user-as-default-queue"],
        )

    def with_created(self, placing: Placing) -> Self:
        """Return the file with ad hoc queues as configured queues, with their parents' limits for children."""
        assert isinstance(placing, FairPlacing)
        if self.place == "spread":
            return self
        made = [
            queue
            for queue in placing.manager.tree()
            if queue.dynamic and queue.path not in QueueManager(self.allocations).created()
        ]
        settings = dict(self.allocations.settings)
        for queue in made:
            limit = None if queue.max_limit == UNLIMITED else queue.max_limit
            settings[queue.path] = replace(settings.get(queue.path) or QueueSettings(queue.path), max_resources=limit)
        allocations = replace(
            self.allocations,
            settings=settings,
            configured_leaves=(*self.allocations.configured_leaves, *(q.path for q in made if q.leaf)),
            configured_parents=(*self.allocations.configured_parents, *(q.path for q in made if not q.leaf)),
        )
        return replace(self, allocations=allocations)

    @classmethod
    def written(cls, setup: SimSetup) -> tuple[SimSetup, str]:
        """Return the file with root's settings included and numbers rounded to float32, as any parser reads them."""
        allocations = in_float32(setup.allocations)
        setup = replace(setup, allocations=allocations)
        root = QueueSettings(
            ROOT,
            min_share_preemption_timeout_ms=allocations.default_min_share_preemption_timeout_ms,
            fair_share_preemption_timeout_ms=allocations.default_fair_share_preemption_timeout_ms,
            fair_share_preemption_threshold=allocations.default_fair_share_preemption_threshold,
        )
        return setup, render_allocations(replace(allocations, settings={ROOT: root, **allocations.settings}))

    @classmethod
    def put_in(cls, setup: SimSetup, text: str, source: str) -> SimSetup:
        """Put the file's queues into the experiment."""
        return replace(setup, allocations=parse_allocations(text, source=source))


def _weight(path: str, weight: float, source: str) -> float:
    if not weight >= 0:
        raise InputError(f"queue {path} has weight {weight}", where=source, hint="give it a weight of at least 0")
    return min(max(weight, WEIGHT_MIN), WEIGHT_MAX)


def _rendered(file: AllocationFile) -> str:
    """Return the text of a file without the dropped settings; "" where a setting cannot be written."""
    try:
        return render_allocations(file)
    except InputError:
        return ""
