"""A scheduler's own file in a simulation: its queues and settings, and the placement of a load's applications on them.

The file is either an allocation file or a capacity-scheduler.xml; its content tells which.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.base.errors import InputError
from harness.base.files import read_whole, reading
from harness.experiments.spec import QueueSpec
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Attributes
from harness.model.queues import ROOT, UNLIMITED, AllocationFile, QueueSettings, SchedulerName, cluster_parts
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.properties import PREFIX, parse_configuration
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.settings import Settings
from harness.yarn.capacity.validate import is_configuration
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.render import render_allocations
from harness.yarn.placement import CapacityPlacing, FairPlacing, Placing, Submission
from harness.yarn.validation import check_document

if TYPE_CHECKING:
    from harness.model.jobs import JobSpec
    from harness.model.resources import Resource

Place = Literal["rules", "spread"]
#: A resource of another kind than memory and vcores in an allocation file.
_OTHER_RESOURCE = re.compile(r"(?<![\w./-])([a-zA-Z][\w.-]*/[\w.-]+)\s*=")
_MADE_BY_APPLICATIONS = re.compile(r"(.+)\.auto-queue-creation-v2\.(.+)")
_FAIR = "yarn.scheduler.fair."
#: What has no effect in the simulator, whatever it says, and takes no decision there: nobody is refused.
_ACL = re.compile(r"root(\..+)?\.acl_.*")
_PREEMPTION = re.compile(r"root(\..+)?\.(disable_preemption|intra-queue-preemption\.disable_preemption)|intra-queue-.*")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A setting of the file that the simulator does not cover: its name, its value, what it is about."""

    name: str
    value: str
    what: str

    def line(self) -> str:
        """In words."""
        return f"{self.name} = {self.value} ({self.what})" if self.value else f"{self.name} ({self.what})"


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of a load's applications: how many came to each leaf, and how many were rejected, and why."""

    queues: Mapping[str, int]
    rejected: Mapping[str, int]

    def lines(self) -> list[str]:
        """What a user has to know, in words."""
        total = sum(self.queues.values()) + sum(self.rejected.values())
        return [f"{count} of {total} applications are rejected: {why}" for why, count in self.rejected.items()]


@dataclass(frozen=True, slots=True)
class SchedulerFile:
    """A scheduler's file as a simulation takes it.

    ``allocations``: its queues (of a capacity-scheduler.xml their names alone). ``capacity``: properties without their
    prefix. ``dropped``: what was left out of it. ``text``: the file without that. ``groups``: user -> groups.
    """

    path: str
    sha256: str
    scheduler: SchedulerName
    text: str
    allocations: AllocationFile
    capacity: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    ignored: tuple[str, ...] = ()
    place: Place = "rules"
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    placed: Placed | None = None
    #: Whether it lets applications create queues (auto-queue-creation-v2).
    creates: bool = False

    @property
    def leaves(self) -> list[str]:
        """Full paths of the leaves, in the order of the tree."""
        if self.scheduler == "fair":
            return [queue.path for queue in QueueManager(self.allocations).tree().leaves()]
        return list(self.allocations.configured_leaves)

    def weights(self) -> dict[str, float]:
        """The entitlements of all queues, root among them: weights, or parts of the cluster in percent."""
        if self.scheduler == "fair":
            tree = QueueManager(self.allocations).tree()
            return {q.path: 1.0 if q.parent is None else _weight(q.path, q.weight, self.path) for q in tree}
        values = {PREFIX + name: text for name, text in self.capacity.items()}
        queues = queue_tree(values, source=self.path)
        parts = cluster_parts({path: queue.capacity.entitlement for path, queue in queues.items()}, 100.0)
        return {path: 1.0 if path == ROOT else max(parts[path], WEIGHT_MIN) for path in queues}

    def queues(self) -> dict[str, QueueSpec | None]:
        """The tree as an experiment has it, with the entitlements: what a run's record and pages show."""
        found: dict[str, Any] = {}
        weights = self.weights()
        for path in sorted(weights, key=lambda path: path.count("."), reverse=True):
            below = found.pop(path, None)
            above, _, name = path.rpartition(".")
            if above:
                spec = QueueSpec(weight=weights[path]).model_copy(update={"children": below})
                found.setdefault(above, {})[name] = spec
            else:
                found[path] = below or {}
        order = {path: at for at, path in enumerate(weights)}

        def sorted_queues(queues: Mapping[str, QueueSpec], above: str) -> dict[str, QueueSpec | None]:
            names = sorted(queues, key=lambda name: order[f"{above}.{name}"])
            return {
                name: queues[name].model_copy(
                    update={
                        "children": sorted_queues(below, f"{above}.{name}")
                        if (below := queues[name].children)
                        else None
                    }
                )
                for name in names
            }

        return sorted_queues(found[ROOT], ROOT)

    def placing(self) -> Placing:
        """What places applications by the file's own rules."""
        if self.scheduler == "capacity":
            return CapacityPlacing(Settings({PREFIX + name: text for name, text in self.capacity.items() if text}))
        flags = {name: str(self.conf.get(_FAIR + name, "true")).strip().lower() != "false" for name in _UNDECLARED}
        return FairPlacing(
            QueueManager(self.allocations),
            allow_undeclared=flags["allow-undeclared-pools"],
            user_as_default=flags["user-as-default-queue"],
        )

    def jobs(self, jobs: Iterable[JobSpec]) -> Iterator[JobSpec]:
        """The applications in their queues; those that are rejected, and those that follow them, do not come."""
        for job, queue, _ in self.placements(jobs):
            if queue is not None:
                yield replace(job, queue=queue)

    def placements(
        self, jobs: Iterable[JobSpec], placing: Placing | None = None
    ) -> Iterator[tuple[JobSpec, str | None, str]]:
        """Each application with its leaf, or with None and why it is rejected."""
        if self.place == "spread":
            leaves = self.leaves
            if not leaves:
                raise InputError("it has no leaf queue to spread applications over", where=self.path, hint="use rules")
            for number, job in enumerate(jobs):
                yield job, leaves[number % len(leaves)], ""
            return
        placing = placing or self.placing()
        gone: set[str] = set()
        for job in jobs:
            if job.after_job in gone:
                found, why = None, "they follow one that was rejected"
            else:
                answer = placing.place(Submission(named(job.queue), job.user, self.groups.get(job.user, ()), job.name))
                found, why = answer.queue, answer.why
            if found is None:
                gone.add(job.id)
            yield job, found, why

    def settled(self, jobs: Iterable[JobSpec]) -> SchedulerFile:
        """With the queues that these applications create, made from the beginning, and with what becomes of them all.

        Raises InputError where every application is rejected.
        """
        placing = self.placing()
        queues: dict[str, int] = {}
        rejected: dict[str, int] = {}
        for _, queue, why in self.placements(jobs, placing):
            if queue is None:
                rejected[why] = rejected.get(why, 0) + 1
            else:
                queues[queue] = queues.get(queue, 0) + 1
        if not queues and rejected:
            why = max(rejected, key=lambda why: rejected[why])
            raise InputError(
                f"its placement rules reject all {sum(rejected.values())} applications ({why})",
                where=self.path,
                hint="give --place spread, or --group USER=GROUP,... where rules look at groups",
            )
        made = replace(self, placed=Placed(queues, rejected))
        if isinstance(placing, FairPlacing):
            return made if self.place == "spread" else _with_created_fair(made, placing.manager)
        assert isinstance(placing, CapacityPlacing)
        return _with_created_capacity(made, placing.created)

    def with_weights(self, weights: Mapping[str, float], cluster: Resource) -> SchedulerFile:
        """With other weights of some queues. InputError for what cannot be expressed."""
        weights = {path: weight for path, weight in weights.items() if path != ROOT}
        if not weights:
            return self
        if self.scheduler == "fair":
            settings = dict(self.allocations.settings)
            for path, weight in weights.items():
                settings[path] = replace(settings.get(path) or QueueSettings(path), weight=weight)
            return replace(self, allocations=replace(self.allocations, settings=settings))
        from harness.sim.capacity.tree import settings_with, steering_of

        everybody = {path: weight for path, weight in self.weights().items() if path != ROOT}
        changed = {path.rpartition(".")[0] for path in weights}
        plan = {path: weight for path, weight in {**everybody, **weights}.items() if path.rpartition(".")[0] in changed}
        steering = steering_of(self.capacity, cluster)
        return replace(self, capacity=settings_with(steering, Attributes(plan)))

    def described(self) -> dict[str, Any]:
        """What a run's record has of it."""
        found: dict[str, Any] = {
            "file": self.path,
            "sha256": self.sha256,
            "scheduler": self.scheduler,
            "place": self.place,
            "dropped": [{"name": one.name, "value": one.value, "what": one.what} for one in self.dropped],
        }
        if self.groups:
            found["groups"] = {user: list(groups) for user, groups in self.groups.items()}
        if self.placed is not None:
            found["placed"], found["rejected"] = dict(self.placed.queues), dict(self.placed.rejected)
        return found

    def lines(self) -> list[str]:
        """What a user has to know before it runs: what was dropped, what has no effect, who is rejected."""
        found = [f"{self.path}: dropped, the simulator does not cover it: {one.line()}" for one in self.dropped]
        if self.ignored:
            names = ", ".join(self.ignored[:6]) + (
                f" and {len(self.ignored) - 6} more" if len(self.ignored) > 6 else ""
            )
            found.append(f"{self.path}: without effect in the simulator: {names}")
        if self.creates:
            found.append(f"{self.path}: queues that applications create are there from the beginning")
        if self.placed is not None:
            found += [f"{self.path}: {line}" for line in self.placed.lines()]
        return found


_UNDECLARED = ("allow-undeclared-pools", "user-as-default-queue")


def named(queue: str) -> str:
    """The queue that a client named: a load has its full path; root.default stands for none (assumed)."""
    return "default" if queue in (f"{ROOT}.default", "default", "", ROOT) else queue


def _weight(path: str, weight: float, source: str) -> float:
    if not weight >= 0:
        raise InputError(f"queue {path} has weight {weight}", where=source, hint="give it a weight of at least 0")
    return min(max(weight, WEIGHT_MIN), WEIGHT_MAX)


def read_scheduler_file(
    path: str | Path,
    *,
    conf: Mapping[str, str] | None = None,
    place: Place = "rules",
    drop: bool = False,
    groups: Mapping[str, tuple[str, ...]] | None = None,
) -> SchedulerFile:
    """Read an allocation file or a capacity-scheduler.xml for the simulator.

    Parameters
    ----------
    path : the file.
    conf : properties of yarn-site.xml that go with it.
    place : ``rules``: applications are placed by the file's placement rules; ``spread``: over its leaves in turn.
    drop : whether settings that the simulator does not cover are left out.
    groups : user -> groups, the primary one first, for rules that look at them.

    Raises
    ------
    InputError
        Hadoop refuses the file; or it has settings that the simulator does not cover, and ``drop`` is not set: all of
        them are named.
    """
    source = str(path)
    with reading(path, "give the path of a readable file"):
        data = read_whole(path)
    conf = dict(conf or {})
    capacity = is_configuration(data)
    if capacity:
        _check(data, source)
    found = _read_capacity(data, source) if capacity else _read_fair(data, source, conf)
    file, left = found
    if left and not drop:
        named_ = "; ".join(one.line() for one in left)
        raise InputError(
            f"the simulator does not cover {len(left)} of its settings: {named_}",
            where=source,
            hint="give --drop to leave them out (the run's record names them), or remove them",
        )
    return replace(file, conf=conf, dropped=tuple(left), place=place, groups=dict(groups or {}))


def left_out(data: bytes, *, source: str, conf: Mapping[str, str] | None = None) -> list[Dropped]:
    """Return the settings of a scheduler's file that the simulator does not cover.

    Parameters
    ----------
    data : its content.
    source : what messages call it.
    conf : properties of yarn-site.xml that go with it.

    Raises
    ------
    InputError
        It cannot be read, with and without them.
    """
    found = _read_capacity(data, source) if is_configuration(data) else _read_fair(data, source, dict(conf or {}))
    return found[1]


def _check(data: bytes, source: str) -> None:
    """Raises InputError with the first finding for which a ResourceManager would not start or refresh."""
    refused = [one for one in check_document(data, source=source).findings if one.refused]
    if refused:
        first = refused[0]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        where = f"{source}:{first.line}" + (f": queue {first.queue}" if first.queue else "")
        hint = f"{first.hint}; `yarnfair validate` tells all"
        raise InputError(f"a ResourceManager refuses the file: {first.what}{more}", where=where, hint=hint)


def _read_fair(data: bytes, source: str, conf: dict[str, str]) -> tuple[SchedulerFile, list[Dropped]]:
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
    kept = text if not left else ""
    made = SchedulerFile(source, hashlib.sha256(data).hexdigest(), "fair", kept, file, ignored=tuple(ignored))
    return made if not left else replace(made, text=_rendered(file)), left


def _rendered(file: AllocationFile) -> str:
    """The text of a file without what was dropped; "" where a setting cannot be written."""
    try:
        return render_allocations(file)
    except InputError:
        return ""


def _read_capacity(data: bytes, source: str) -> tuple[SchedulerFile, list[Dropped]]:
    from harness.sim.capacity.conf import uncovered

    values = parse_configuration(data, source=source).values
    resolver = Settings({name: text for name, text in values.items() if text})
    settings: dict[str, str] = {}
    for name in values:
        if name.startswith(PREFIX) and values[name]:
            settings[name.removeprefix(PREFIX)] = (resolver.get(name) or "").strip()
    ignored = tuple(
        PREFIX + name
        for name, text in settings.items()
        if (_ACL.fullmatch(name) and text != "*") or _PREEMPTION.fullmatch(name)
    )
    left = []
    for one in uncovered(settings):
        if one.key.endswith("auto-queue-creation-v2.enabled"):
            # The queues that the load's applications create are made from the beginning.
            continue
        left.append(Dropped(PREFIX + one.key, one.value, one.what))
        if one.instead is None:
            del settings[one.key]
        else:
            settings[one.key] = one.instead
    try:
        names = _names(settings, source, _creating(settings))
    except InputError as error:
        if not left:
            raise
        listed = "; ".join(one.line() for one in left)
        what = f"the simulator does not cover {len(left)} of its settings: {listed}; and without them: {error.what}"
        raise InputError(what, where=source, hint=error.hint) from None
    made = SchedulerFile(
        source,
        hashlib.sha256(data).hexdigest(),
        "capacity",
        render_properties(settings),
        names,
        settings,
        ignored=ignored,
        creates=bool(_creating(settings)),
    )
    return made, left


def _creating(settings: Mapping[str, str]) -> frozenset[str]:
    """Queues that make queues for applications, and take none themselves."""
    flag = "auto-queue-creation-v2.enabled"
    return frozenset(
        found[1]
        for name, text in settings.items()
        if (found := _MADE_BY_APPLICATIONS.fullmatch(name)) and name.endswith(flag) and text.lower() == "true"
    )


def _names(settings: Mapping[str, str], source: str, creating: Collection[str] = ()) -> AllocationFile:
    """The queues' names, as the simulator takes them beside a Capacity Scheduler's settings."""
    queues = queue_tree({PREFIX + name: text for name, text in settings.items()}, source=source)
    return AllocationFile(
        settings={path: QueueSettings(path) for path in queues},
        configured_leaves=tuple(q.path for q in queues.values() if not q.children and q.path not in creating),
        configured_parents=tuple(q.path for q in queues.values() if q.children or q.path in creating),
    )


def _with_created_fair(file: SchedulerFile, manager: QueueManager) -> SchedulerFile:
    """With ad hoc queues as configured ones, which keep their parents' limit for them."""
    made = [
        queue
        for queue in manager.tree()
        if queue.dynamic and queue.path not in QueueManager(file.allocations).created()
    ]
    settings = dict(file.allocations.settings)
    for queue in made:
        limit = None if queue.max_limit == UNLIMITED else queue.max_limit
        settings[queue.path] = replace(settings.get(queue.path) or QueueSettings(queue.path), max_resources=limit)
    allocations = replace(
        file.allocations,
        settings=settings,
        configured_leaves=(*file.allocations.configured_leaves, *(q.path for q in made if q.leaf)),
        configured_parents=(*file.allocations.configured_parents, *(q.path for q in made if not q.leaf)),
    )
    return replace(file, allocations=allocations)


def _with_created_capacity(file: SchedulerFile, created: Sequence[str]) -> SchedulerFile:
    """With the queues that applications create (auto-queue-creation-v2) as configured ones, as their templates say."""
    settings = {name: text for name, text in file.capacity.items() if not _MADE_BY_APPLICATIONS.fullmatch(name)}
    templates: dict[str, dict[str, str]] = {}
    for name, text in file.capacity.items():
        if (found := _MADE_BY_APPLICATIONS.fullmatch(name)) and "template." in found[2]:
            templates.setdefault(found[1], {})[found[2]] = text
    parents = {path.rpartition(".")[0] for path in created}
    for path in created:
        above, _, name = path.rpartition(".")
        names = [one.strip() for one in settings.get(f"{above}.queues", "").split(",") if one.strip()]
        settings[f"{above}.queues"] = ",".join([*names, name])
        settings[f"{path}.capacity"] = "1w"
        for kind in ("template.", "parent-template." if path in parents else "leaf-template."):
            for said in (_wildcard(templates, above), templates.get(above, {})):
                for key, text in said.items():
                    if key.startswith(kind):
                        settings[f"{path}.{key.removeprefix(kind)}"] = text
    return replace(
        file,
        capacity=settings,
        allocations=_names(settings, file.path, _creating(file.capacity)),
        text=render_properties(settings),
    )


def _wildcard(templates: Mapping[str, Mapping[str, str]], parent: str) -> Mapping[str, str]:
    """The template that stands for a parent by a ``*`` in its path, where there is one."""
    for pattern, said in templates.items():
        parts, names = pattern.split("."), parent.split(".")
        if "*" in parts and len(parts) == len(names) and all(a in ("*", b) for a, b in zip(parts, names, strict=True)):
            return said
    return {}
