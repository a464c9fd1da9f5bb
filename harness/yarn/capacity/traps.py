"""Traps: settings of a cluster that are dangerous together with a controller, and how to change them.

Pure functions of the scheduler's properties, the RM's own properties (``/conf``) and its queue tree. They apply to
Hadoop 3.3.6, 3.4.2 and 3.5.0; tests show each trap on a real ResourceManager, and its absence after the change.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.model.preemption import PreemptionRule
from harness.model.queues import ROOT, AllocationFile
from harness.yarn.capacity.monitors import (
    DISABLE,
    ENABLE,
    OF_PREEMPTION,
    POLICIES,
    PREEMPTION,
    QUEUE_MANAGEMENT,
    may_run_monitor,
    queues_disabled,
)
from harness.yarn.capacity.properties import ASYNCHRONOUS, ENOUGH, PREFIX
from harness.yarn.capacity.queues import CapacityQueue, flag
from harness.yarn.capacity.settings import Settings, integer_of
from harness.yarn.capacity.steering import counts_dominant
from harness.yarn.fair.javanum import parse_boolean, parse_double, parse_float, parse_long, trim
from harness.yarn.fair.preemption import ENABLE as FAIR_PREEMPTION
from harness.yarn.fair.preemption import queues_that_starve
from harness.yarn.releases import ASSUMED, ASYNCHRONOUS_SINCE, asynchronous_by_default

_GLOBAL_MAX = f"{PREFIX}global-queue-max-application"
#: Switches of preemption that follows other rules than guarantees.
_BY_OTHER_RULES = (
    f"{OF_PREEMPTION}intra-queue-preemption.enabled",
    f"{OF_PREEMPTION}preemption-to-balance-queue-after-satisfied.enabled",
)
_BY_PRIORITY = "ordering-policy.priority-utilization.underutilized-preemption.enabled"
_MAX_LOGS = "yarn.scheduler.configuration.store.max-logs"
_MASTERS = "maximum-am-resource-percent"
#: With a maximum-am-resource-percent of at least this, a user's applications still start when the queue has a tenth of
#: its usual share.
_ROOM_FOR_MASTERS = 10.0
_UNSEEN = "the ResourceManager does not show (/conf) whether preemption is on"
#: Maximum number of queues named in a message.
_MOST_NAMED = 3
#: Since this release a user-limit-factor of -1 means no limit, and ``getQueueInfo`` returns a Fair queue's weight.
_MODERN = (3, 4)


@dataclass(frozen=True, slots=True)
class Trap:
    """One trap.

    ``name``: the name by which a configuration accepts it. ``blocking``: whether nothing is written unless it is
    accepted. ``preemption``: the scheduler's preemption rule; unless the trap is accepted, shares are bounded so that
    preemption kills hardly anything. ``queues``: all queues concerned, of which the text names the first ones.
    ``settings``: all properties to change.
    """

    name: str
    what: str
    hint: str
    blocking: bool = True
    preemption: PreemptionRule | None = None
    queues: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def line(self) -> str:
        """Describe the danger, and how to remove it, for a person."""
        until = f"; until then nothing is written (or `accept: [{self.name}]`)" if self.blocking else ""
        every = ""
        if len(self.queues) > _MOST_NAMED:
            every = f" (`yarnfair cluster doctor --rm URL --verbose` lists all {len(self.queues)} queues)"
        return f"{self.name}: {self.what}; {self.hint}{every}{until}"


def find_traps(
    values: Mapping[str, str],
    site: Mapping[str, str] | None,
    tree: Mapping[str, CapacityQueue],
    hadoop: tuple[int, int] = ASSUMED,
) -> tuple[Trap, ...]:
    """Return the traps of one cluster, blocking ones first.

    Parameters
    ----------
    values : Mapping[str, str]
        The scheduler's properties.
    site : Mapping[str, str] or None
        The RM's own properties (None: the RM does not show them; empty: there is no RM).
    tree : Mapping[str, CapacityQueue]
        The queues.
    hadoop : tuple[int, int]
        The RM's Hadoop release (major, minor).
    """
    found = [*_of_queues(values, tree, hadoop), *_of_the_rm(values, site, tree, hadoop)]
    return tuple(sorted(found, key=lambda trap: not trap.blocking))


def preemption_bound(traps: Iterable[Trap], accepted: Collection[str] = ()) -> PreemptionRule | None:
    """Return the preemption rule that the shares of `enforce` have to respect (None: there is none).

    Parameters
    ----------
    traps
        The traps of the cluster.
    accepted
        Names of the accepted traps.
    """
    open_ = (trap for trap in traps if trap.name not in accepted)
    return next((trap.preemption for trap in open_ if trap.preemption is not None), None)


def fair_traps(hadoop: tuple[int, int], site: Mapping[str, str] | None, file: AllocationFile) -> tuple[Trap, ...]:
    """Return the traps of a cluster with the Fair Scheduler.

    Parameters
    ----------
    hadoop : tuple[int, int]
        The RM's Hadoop release (major, minor).
    site : Mapping[str, str] or None
        The RM's own properties (None: the RM does not show them).
    file : AllocationFile
        The allocation file.
    """
    found = []
    if hadoop < _MODERN:
        what = f"Hadoop {hadoop[0]}.{hadoop[1]} tells nobody its queues' weights: what was written cannot be verified"
        found.append(Trap("read-back", what, "set read_back: false in this configuration"))
    if starving := queues_that_starve(site, file):
        killed = f"containers of others are killed for {_some(starving)}, and it follows the weights"
        if site is None:
            what = f"{_UNSEEN}; if it is, {killed}"
            hint = "let the controller's user read /conf, or take preemption's time-outs out of the allocation file"
        else:
            what = f"preemption is on: {killed}"
            hint = f"set {FAIR_PREEMPTION} to false, or take the time-outs of preemption out of the allocation file"
        found.append(Trap("preemption", what, hint, queues=tuple(starving)))
    return tuple(found)


def preemption_is_on(
    values: Mapping[str, str],
    site: Mapping[str, str],
    tree: Mapping[str, CapacityQueue],
    hadoop: tuple[int, int] = ASSUMED,
) -> bool:
    """Return whether a Capacity Scheduler's preemption runs and is enabled for some leaf queue.

    The parameters are those of `find_traps`.
    """
    runs = _is_on(values, site, ENABLE) and may_run_monitor(values, site, PREEMPTION)
    return runs and not _closed(values, site, tree, hadoop)


def _closed(
    values: Mapping[str, str], site: Mapping[str, str], tree: Mapping[str, CapacityQueue], hadoop: tuple[int, int]
) -> bool:
    """Return whether preemption is disabled for every leaf queue, including those that the scheduler may create."""
    # It is unknown here whether the file or yarn-site.xml takes precedence, so preemption must be disabled in both
    # cases.
    for properties in ({**site, **values}, {**values, **site}):
        queues = {name.removeprefix(PREFIX): text for name, text in properties.items() if name.startswith(PREFIX)}
        found = queues_disabled(queues, [*tree] or [ROOT], monitors=True)
        for leaf in _leaves(properties, tree, hadoop) or [_Leaves(ROOT, (ROOT,))]:
            own = leaf.deciding(properties, DISABLE)
            text = "" if own is None else properties[own].strip()
            if not parse_boolean(text, found[leaf.path]):
                return False
    return True


@dataclass(frozen=True, slots=True)
class _Leaves:
    """A leaf queue, or the leaf queues that a parent auto-creates, with the prefixes of their settings.

    path
        The leaf, or the parent.
    places
        Prefixes of their settings, without the scheduler's own prefix; the first prefix with a setting decides.
    limited
        Whether a limit of applications applies to them.
    factor, masters
        Defaults of the user-limit-factor and of the fraction for ApplicationMasters. None: the scheduler's own default.
    """

    path: str
    places: tuple[str, ...]
    limited: bool = True
    factor: float = 1.0
    masters: float | None = None

    def name(self, key: str) -> str:
        """Return the property to set."""
        return f"{PREFIX}{self.places[0]}.{key}"

    def deciding(self, values: Mapping[str, str], key: str) -> str | None:
        """Return the property whose value is in effect; None if none is set."""
        return next((name for place in self.places if (name := f"{PREFIX}{place}.{key}") in values), None)

    def number(self, values: Mapping[str, str], key: str, default: float) -> float:
        """Return the setting's number."""
        name = self.deciding(values, key)
        return default if name is None else _read(_text(values, name), default, parse_float)

    def masters_part(self, values: Mapping[str, str]) -> float:
        """Return the fraction of the queue's resources that ApplicationMasters may hold."""
        common = _read(_text(values, f"{PREFIX}{_MASTERS}"), 0.1, parse_float) if self.masters is None else self.masters
        return self.number(values, _MASTERS, common)


def _leaves(values: Mapping[str, str], tree: Mapping[str, CapacityQueue], hadoop: tuple[int, int]) -> list[_Leaves]:
    """Return all leaves that the configuration names or that were created, in order.

    A leaf created by legacy auto-creation has the settings of its parent's ``leaf-queue-template``, and otherwise the
    defaults of any leaf (``ManagedParentQueue``), but no limit of applications
    (``AbstractLeafQueue.validateSubmitApplication``). A leaf created by flexible auto-creation has the settings of
    ``leaf-template`` and ``template``, and otherwise no user limit and no limit of AMs
    (``AbstractLeafQueue.parseAndSetDynamicTemplates``).
    """
    found = []
    for queue in tree.values():
        if not queue.fixed:
            if not queue.children and queue.parent is not None:
                found.append(_Leaves(queue.path, (queue.path,)))
        elif flag(values, f"{queue.path}.auto-create-child-queue.enabled"):
            found.append(_Leaves(queue.path, (f"{queue.path}.leaf-queue-template",), limited=False))
        elif hadoop >= _MODERN:  # earlier releases lack flexible auto-creation
            way = f"{queue.path}.auto-queue-creation-v2"
            found.append(_Leaves(queue.path, (f"{way}.leaf-template", f"{way}.template"), factor=-1.0, masters=1.0))
    return found


def _of_queues(values: Mapping[str, str], tree: Mapping[str, CapacityQueue], hadoop: tuple[int, int]) -> Iterator[Trap]:
    leaves = _leaves(values, tree, hadoop)
    absolute = any(q.capacity.mode == "absolute" for q in tree.values() if not q.children and q.parent is not None)
    open_ = [leaf for leaf in leaves if leaf.limited and leaf.deciding(values, "maximum-applications") is None]
    if open_ and (absolute or _GLOBAL_MAX not in values):
        where = open_[0].name("maximum-applications") if absolute else _GLOBAL_MAX
        yield Trap(
            "maximum-applications",
            f"the limit of applications follows the share in {_some(_paths(open_))}: at a small share submissions are "
            "refused",
            f"set {where} to 10000",
            queues=tuple(_paths(open_)),
            settings=tuple(leaf.name("maximum-applications") for leaf in open_) if absolute else (where,),
        )
    factors = [(leaf, leaf.number(values, "user-limit-factor", leaf.factor)) for leaf in leaves]
    held = [leaf for leaf, factor in factors if 0 <= factor < ENOUGH]
    refused = [leaf for leaf, factor in factors if factor < 0 and hadoop < _MODERN]
    if refused:
        yield Trap(
            "user-limit-factor",
            f"before Hadoop 3.4 a negative one is a limit below 0: {_some(_paths(refused))} refuses every application",
            f"set {refused[0].name('user-limit-factor')} to {ENOUGH:g}" + _others(_paths(refused)),
            queues=tuple(_paths(refused)),
            settings=tuple(leaf.name("user-limit-factor") for leaf in refused),
        )
    if held:
        yield Trap(
            "user-limit-factor",
            f"one user is held to a multiple of the queue's share in {_some(_paths(held))}, even on an idle cluster",
            f"set {held[0].name('user-limit-factor')} to {'-1' if hadoop >= _MODERN else f'{ENOUGH:g}'}"
            + _others(_paths(held)),
            queues=tuple(_paths(held)),
            settings=tuple(leaf.name("user-limit-factor") for leaf in held),
        )
    masters = [leaf for leaf in leaves if leaf.masters_part(values) < _ROOM_FOR_MASTERS]
    if masters:
        first = masters[0]
        own = first.masters is not None or first.deciding(values, _MASTERS) is not None
        yield Trap(
            "am-limit",
            f"a user's ApplicationMasters are held to a part of the queue's share in {_some(_paths(masters))}: at a "
            "small share few of their applications run, and a part of the cluster may stand idle",
            f"set {first.name(_MASTERS) if own else PREFIX + _MASTERS} to {ENOUGH:g}"
            + (_others(_paths(masters)) if own else ""),
            blocking=False,
            queues=tuple(_paths(masters)),
            settings=tuple(leaf.name(_MASTERS) for leaf in masters) if own else (PREFIX + _MASTERS,),
        )
    priorities = [q.path for q in tree.values() if _read(_text(values, f"{PREFIX}{q.path}.priority"), 0, _long) != 0]
    ordered = [
        q.path
        for q in tree.values()
        if values.get(f"{PREFIX}{q.path}.ordering-policy", "").strip() == "priority-utilization"
    ]
    if priorities and ordered:
        yield Trap(
            "priority",
            f"{_some(ordered)} orders its queues by priority before shares, and {_some(priorities)} has one",
            f"set {PREFIX}{ordered[0]}.ordering-policy to utilization",
            queues=tuple(ordered),
            settings=tuple(f"{PREFIX}{path}.ordering-policy" for path in ordered),
        )
    creating = [q for q in tree.values() if q.fixed]
    if creating:
        what = f"{creating[0].path}: {creating[0].fixed}; what is below it is not steered"
        if creating[1:]:
            keys = dict.fromkeys(queue.fixed.rpartition("(")[2].rstrip(")") for queue in creating)
            what = (
                f"{_some([queue.path for queue in creating])} create queues by themselves ({', '.join(keys)}); what is "
                "below them is not steered"
            )
        yield Trap(
            "auto-created",
            what,
            "name its queues in the configuration if they are to be",
            blocking=False,
            queues=tuple(queue.path for queue in creating),
        )


def _of_the_rm(
    values: Mapping[str, str],
    shown: Mapping[str, str] | None,
    tree: Mapping[str, CapacityQueue],
    hadoop: tuple[int, int],
) -> Iterator[Trap]:
    site = shown or {}

    def on(name: str, default: bool = False) -> bool:
        return _is_on(values, site, name, default)

    if preemption_is_on(values, site, tree, hadoop):
        yield _preemption(values, site, on, "preemption is on, and kills running containers by the shares")
    elif shown is None and not _closed(values, {}, tree, hadoop):
        # The RM's own properties are not visible, so assume that preemption is on.
        yield _preemption(values, site, on, f"{_UNSEEN}, by which running containers would be killed by the shares")
    managed = [path for path in tree if on(f"{PREFIX}{path}.auto-create-child-queue.enabled")]
    if managed and on(ENABLE) and may_run_monitor(values, site, QUEUE_MANAGEMENT):
        yield Trap(
            "refresh-deadlock",
            f"{QUEUE_MANAGEMENT.rpartition('.')[2]} runs beside {_some(managed)}, whose children the RM creates (the "
            "legacy way): a refresh, so each write, may deadlock the scheduler for good (YARN-10932, not mended in "
            "3.5.0 either)",
            f"take it out of {POLICIES}, or set {PREFIX}{managed[0]}.auto-create-child-queue.enabled to false"
            + _others(managed),
            queues=tuple(managed),
            settings=tuple(f"{PREFIX}{path}.auto-create-child-queue.enabled" for path in managed),
        )
    if on("yarn.node-labels.enabled"):
        yield Trap(
            "node-labels",
            "node labels are on: only the default partition is steered",
            "switch them off, or accept it where applications ask for no label",
        )
    name = ASYNCHRONOUS
    if on(name, asynchronous_by_default(hadoop)):
        since = ".".join(map(str, ASYNCHRONOUS_SINCE))
        unset = "" if on(name) else f" (the default since Hadoop {since})"
        yield Trap(
            "asynchronous",
            f"scheduling is asynchronous{unset}: the first ask takes an empty cluster whole, whatever the shares",
            f"set {name} to false and restart the ResourceManager, which reads it at its start alone",
        )
    if on(f"{PREFIX}multi-node-placement-enabled"):
        yield Trap(
            "multi-node",
            "placement looks at several nodes: what control does then was not measured",
            f"set {PREFIX}multi-node-placement-enabled to false",
        )
    if values.get(f"{PREFIX}legacy-queue-mode.enabled", "").strip().lower() == "false":
        yield Trap(
            "queue-mode",
            "the flexible queue mode mixes kinds of capacity among siblings",
            f"set {PREFIX}legacy-queue-mode.enabled to true",
        )
    store = site.get("yarn.scheduler.configuration.store.class", "").strip()
    if store == "zk" and _read(_text(site, _MAX_LOGS), 1000, _long) != 0:
        yield Trap(
            "zk-log",
            "the store's log of changes outgrows ZooKeeper's largest node (jute.maxbuffer) and hangs the RM's API",
            f"set {_MAX_LOGS} to 0",
        )
    # Only yarn.admin.acl decides who may change the RM's queues, whether or not yarn.acl.enable is on.
    if site and "*" in site.get("yarn.admin.acl", "*"):
        off = "yarn.admin.acl is *" if on("yarn.acl.enable") else "access control is off (yarn.acl.enable)"
        yield Trap(
            "acl",
            f"{off}: anybody who reaches the RM may change its queues",
            "set yarn.acl.enable to true, and yarn.admin.acl to the administrators and this controller's user",
            blocking=False,
        )


def _preemption(values: Mapping[str, str], site: Mapping[str, str], on: Callable[[str], bool], what: str) -> Trap:
    """Return the trap of preemption, which is blocking if preemption follows other rules than queues' guarantees."""
    # The keys in `by_priority` are settings of a parent's ordering policy, the others of the monitor.
    by_priority = [name for name in (*values, *site) if name.endswith(_BY_PRIORITY)]
    others = [name for name in (*_BY_OTHER_RULES, *by_priority) if on(name)]
    if others:
        off = "set yarn.resourcemanager.scheduler.monitor.enable to false"
        return Trap("preemption", f"{what}, also by {others[0]}", f"{off}, or {others[0]}")

    def least(name: str, default: float, parse: Callable[[str], float]) -> float:
        # It is unknown here whether the value of the file or of the ResourceManager applies.
        name = f"{OF_PREEMPTION}{name}"
        texts = [_text(values, name, site), _text(site, name, values)]
        return min((_read(text, default, parse) for text in texts if text is not None), default=default)

    return Trap(
        "preemption",
        f"{what}: these stay so near to what queues use that hardly anything is killed for them",
        "accept it to let shares go as far as the policy has them (`accept: [preemption]`)",
        blocking=False,
        preemption=PreemptionRule(
            ignored=max(least("max_ignored_over_capacity", 0.1, _double), 0.0),
            wait_s=max(least("max_wait_before_kill", 15_000.0, _long), 0.0) / 1000.0,
            dominant=counts_dominant(values),
        ),
    )


def _is_on(values: Mapping[str, str], site: Mapping[str, str], name: str, default: bool = False) -> bool:
    # The file overrides yarn-site.xml (FileBasedCSConfigurationProvider), but yarn-site.xml overrides a store
    # (MutableCSConfigurationProvider). It is unknown here which of them applies, so a switch that is on in either
    # counts as on.
    texts = [text for text in (_text(site, name, values), _text(values, name, site)) if text]
    return any(parse_boolean(text.strip(), default) for text in texts or [""])


def _text(values: Mapping[str, str], name: str, beside: Mapping[str, str] | None = None) -> str | None:
    """Return a property with references (``${name}``) replaced from ``values`` or ``beside``, as Hadoop does."""
    text = values.get(name)
    if text is None or "${" not in text:
        return text
    with contextlib.suppress(ValueError):
        return Settings({**(beside or {}), **values}).get(name)
    return text


def _read(text: str | None, default: float, parse: Callable[[str], float]) -> float:
    """Parse a number like one of Hadoop's getters; return the default if there is no text or it is invalid.

    An invalid text is never in force, because no ResourceManager starts with it.
    """
    try:
        return default if text is None else parse(trim(text))
    except ValueError:
        return default


def _double(text: str) -> float:
    """Parse a number as ``Configuration.getDouble`` does; NaN, for which every comparison is false, becomes 0."""
    found = parse_double(text)
    return 0.0 if math.isnan(found) else found


def _long(text: str) -> int:
    """Parse an integer, possibly hexadecimal, as ``Configuration.getInt`` and ``getLong`` do."""
    return integer_of(text, parse_long)


def _paths(leaves: list[_Leaves]) -> list[str]:
    return [leaf.path for leaf in leaves]


def _others(paths: list[str]) -> str:
    return ", and that of the others" if paths[1:] else ""


def _some(paths: list[str]) -> str:
    more = len(paths) - _MOST_NAMED
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {more} more queue{'s' if more > 1 else ''}" if more > 0 else "")
