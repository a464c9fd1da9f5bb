"""Queue trees as users write them (YAML), strictly read into the values of an allocation file.

The format is described in docs/reference/allocation-file.md. What the ResourceManager would accept and get wrong is an
error here. Reading YAML is the caller's business: this takes plain data and a function that tells where a key stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from harness.base.documents import KeyPath, keys_at
from harness.base.errors import InputError, nearest
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import (
    BAD_IN_NAME,
    JAVA_INT_MAX,
    JAVA_LONG_MAX,
    NEVER_MS,
    NO_APP_LIMIT,
    ROOT,
    UNLIMITED,
    AllocationFile,
    PlacementRule,
    QueueSettings,
    ResourceLimit,
)
from harness.model.resources import Resource
from harness.yarn.fair.elements import ACL_ELEMENTS
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.parse import PLACEMENT_RULES
from harness.yarn.fair.spec import Amount, Limit, QueueEntry, RootSpec, RuleSpec, TreeSpec

Where = Callable[[KeyPath], str]

BAD_NAME = re.compile(f"[{BAD_IN_NAME}]")
#: Characters that a text may not contain (no XML can carry them, or they would not come back).
BAD_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")

#: acl_submit_apps -> aclSubmitApps, and so on.
ACL_KEYS = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", element): element for element in ACL_ELEMENTS}


def read_tree(data: Any, where: Where) -> AllocationFile:
    """The allocation file that a queue tree describes.

    Parameters
    ----------
    data : plain data (mappings, lists, scalars), without cycles.
    where : tells ``file:line`` of a key path.

    Raises InputError naming file, line, queue and what to write instead.
    """
    try:
        spec = TreeSpec.model_validate(data)
    except ValidationError as error:
        raise _finding(error, where) from None
    except RecursionError:
        raise InputError("the queues are nested too deeply", where=where(()), mend="flatten the tree") from None
    return _Builder(where).build(spec)


class _Builder:
    def __init__(self, where: Where) -> None:
        self.where = where
        self.settings: dict[str, QueueSettings] = {}
        self.leaves: list[str] = []
        self.parents: list[str] = []
        self.paths: dict[str, KeyPath] = {}

    def fail(self, at: KeyPath, what: str, mend: str, queue: str | None = None) -> InputError:
        place = self.where(at)
        return InputError(what, where=f"{place}: queue {queue}" if queue else place, mend=mend)

    def build(self, spec: TreeSpec) -> AllocationFile:
        if not spec.queues:
            raise self.fail(("queues",), "there are no queues", "name at least one under 'queues'")
        for name, queue in spec.queues.items():
            self.queue(name, queue, ROOT, ("queues", name))
        if spec.root is not None:
            self.settings[ROOT] = self.common(spec.root, ("root",), ROOT)
            self.parents.append(ROOT)
        defaults = spec.defaults
        am_share = self.am_share(defaults.queue_max_am_share, ("defaults", "queue_max_am_share"), None)
        minimum = _ms(defaults.min_share_preemption_timeout_s, NEVER_MS)
        fair = _ms(defaults.fair_share_preemption_timeout_s, NEVER_MS)
        threshold = 0.5
        if defaults.fair_share_preemption_threshold is not None:
            threshold = float32(defaults.fair_share_preemption_threshold)
        self.settings[ROOT] = replace(
            self.settings.get(ROOT, QueueSettings(ROOT)),
            min_share_preemption_timeout_ms=minimum,
            fair_share_preemption_timeout_ms=fair,
            fair_share_preemption_threshold=threshold,
        )
        users = {}
        for user, limits in spec.users.items():
            self.text(user, ("users", user), "a user name")
            users[user] = limits.max_running_apps
        for key in ("planner", "agent", "policy"):
            self.text(getattr(spec.reservations, key), ("reservations", key), "a class name")
        file = AllocationFile(
            settings=self.settings,
            configured_leaves=tuple(self.leaves),
            configured_parents=tuple(self.parents),
            user_max_apps=users,
            user_max_apps_default=_or(defaults.user_max_apps, NO_APP_LIMIT),
            queue_max_apps_default=_or(defaults.queue_max_apps, NO_APP_LIMIT),
            queue_max_resources_default=self.limit(
                defaults.queue_max_resources, ("defaults", "queue_max_resources"), None
            )
            or UNLIMITED,
            queue_max_am_share_default=0.5 if am_share is None else am_share,
            default_min_share_preemption_timeout_ms=minimum,
            default_fair_share_preemption_timeout_ms=fair,
            default_fair_share_preemption_threshold=threshold,
            default_scheduling_policy=defaults.scheduling_policy,
            placement_rules=self.placement(spec.placement),
            reservation_planner=spec.reservations.planner,
            reservation_agent=spec.reservations.agent,
            reservation_policy=spec.reservations.policy,
        )
        for refused in queue_tree(file).refused:
            raise self.fail(
                self.paths.get(refused.path, ()),
                refused.why,
                "give parents the policy drf or fair, drf only below drf, fifo only to leaves",
                refused.path,
            )
        return file

    # ---- queues

    def queue(self, name: str, spec: QueueEntry, parent: str, at: KeyPath) -> None:
        path = f"{parent}.{name}"
        if bad := BAD_NAME.search(name):
            what = "a dot" if bad[0] == "." else "white space" if bad[0].isspace() else repr(bad[0])
            raise self.fail(
                at, f"queue name {name!r} contains {what}", "rename it (nest queues under 'children')", parent
            )
        if not name or len(name) > 255:
            raise self.fail(at, "a queue name is empty or longer than 255 characters", "rename it", parent)
        if name.lower() == ROOT:
            raise self.fail(at, f"queue name {name!r} is reserved", "say it under the top-level key 'root'", parent)
        self.paths[path] = at
        leaf = spec.children is None
        if not leaf:
            if spec.max_am_share is not None:
                raise self.fail(
                    (*at, "max_am_share"), "a parent cannot have max_am_share", "give it to its leaves", path
                )
            if spec.reservation:
                raise self.fail((*at, "reservation"), "a parent cannot have reservation", "give it to a leaf", path)
        self.settings[path] = replace(
            self.common(spec, at, path),
            weight=self.weight(spec.weight, (*at, "weight"), path),
            max_am_share=self.am_share(spec.max_am_share, (*at, "max_am_share"), path),
            min_share_preemption_timeout_ms=_ms(spec.min_share_preemption_timeout_s, None),
            fair_share_preemption_timeout_ms=_ms(spec.fair_share_preemption_timeout_s, None),
            fair_share_preemption_threshold=None
            if spec.fair_share_preemption_threshold is None
            else float32(spec.fair_share_preemption_threshold),
            reservable=spec.reservation,
        )
        for child, child_spec in (spec.children or {}).items():
            self.queue(child, child_spec, path, (*at, "children", child))
        (self.leaves if leaf and not spec.reservation else self.parents).append(path)

    def common(self, spec: QueueEntry | RootSpec, at: KeyPath, path: str) -> QueueSettings:
        """What any queue may say, the root too."""
        settings = QueueSettings(
            path,
            min_resources=_minimum(spec.min_resources),
            max_resources=self.limit(spec.max_resources, (*at, "max_resources"), path),
            max_child_resources=self.limit(spec.max_child_resources, (*at, "max_child_resources"), path),
            max_container_allocation=_maximum(spec.max_container_allocation),
            max_running_apps=spec.max_running_apps,
            preemptable=spec.allow_preemption_from,
            scheduling_policy=spec.scheduling_policy,
            acls=self.acls(spec, at, path),
        )
        self.minimum_fits(settings, at, path)
        return settings

    def weight(self, weight: float | None, at: KeyPath, queue: str) -> float | None:
        if weight is None:
            return None
        if not WEIGHT_MIN <= weight <= WEIGHT_MAX:  # NaN is not, and an integer may be too large for a float
            raise self.fail(
                at, f"weight {weight!r} is not between {WEIGHT_MIN:g} and {WEIGHT_MAX:g}", "scale the weights", queue
            )
        return float32(weight)

    def am_share(self, share: float | None, at: KeyPath, queue: str | None) -> float | None:
        if share is None:
            return None
        if not (0 <= share <= 1 or share == -1):
            raise self.fail(at, f"{at[-1]} {share!r} is not between 0 and 1", "write -1 for no limit", queue)
        return float32(share)

    def limit(self, limit: Limit | None, at: KeyPath, queue: str | None) -> ResourceLimit | None:
        if limit is None:
            return None
        percent = limit.memory_percent is not None or limit.vcores_percent is not None
        absolute = limit.memory_mb is not None or limit.vcores is not None
        if percent and absolute:
            raise self.fail(at, f"{at[-1]} mixes amounts and percentages", "use one of the two", queue)
        if not percent and not absolute:
            raise self.fail(at, f"{at[-1]} says nothing", "write memory_mb, vcores or percentages, or remove it", queue)
        if percent:
            return ResourceLimit(
                None, float(_or(limit.memory_percent, 100)) / 100.0, float(_or(limit.vcores_percent, 100)) / 100.0
            )
        return ResourceLimit(_maximum(limit))

    def minimum_fits(self, settings: QueueSettings, at: KeyPath, queue: str) -> None:
        minimum, limit = settings.min_resources, settings.max_resources
        if (
            minimum is not None
            and limit is not None
            and limit.absolute is not None
            and not minimum.fits_in(limit.absolute)
        ):
            raise self.fail(
                (*at, "min_resources"),
                "min_resources is greater than max_resources (the ResourceManager raises the maximum)",
                "lower the minimum or raise the maximum",
                queue,
            )

    def acls(self, spec: QueueEntry | RootSpec, at: KeyPath, queue: str) -> dict[str, str]:
        said = {}
        for key, element in ACL_KEYS.items():
            text = getattr(spec, key, None)
            if text is None:
                continue
            self.text(text, (*at, key), "users and groups ('alice,bob admins'; ' ' for nobody)", queue)
            said[element] = text
        return said

    def text(self, text: str | None, at: KeyPath, kind: str, queue: str | None = None) -> None:
        if text is not None and (not text or BAD_TEXT.search(text)):
            raise self.fail(at, f"{at[-1]} is empty or contains control characters", f"write {kind}", queue)

    # ---- placement

    def placement(self, rules: list[RuleSpec] | None) -> tuple[PlacementRule, ...] | None:
        if rules is None:
            return None
        if not rules:
            raise self.fail(("placement",), "placement has no rules", "write rules, or remove it")
        return tuple(self.rule(rule, ("placement", index)) for index, rule in enumerate(rules))

    def rule(self, spec: RuleSpec, at: KeyPath) -> PlacementRule:
        if spec.rule not in PLACEMENT_RULES:
            raise self.fail(
                (*at, "rule"),
                f"no placement rule is called {spec.rule!r}",
                f"use one of {', '.join(sorted(PLACEMENT_RULES))}",
            )
        if spec.queue is not None:
            if spec.rule != "default":
                raise self.fail((*at, "queue"), f"rule {spec.rule!r} takes no queue", "only 'default' does")
            if any(not part or BAD_NAME.search(part) for part in spec.queue.split(".")):
                raise self.fail((*at, "queue"), f"{spec.queue!r} is not a queue", "write a path like root.a")
        parent = None if spec.parent is None else self.rule(spec.parent, (*at, "parent"))
        return PlacementRule(spec.rule, spec.create, spec.queue, parent)


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _ms(seconds: int | None, otherwise: Any) -> Any:
    return otherwise if seconds is None else seconds * 1000


def _minimum(amount: Amount | None) -> Resource | None:
    return None if amount is None else Resource(_or(amount.memory_mb, 0), _or(amount.vcores, 0))


def _maximum(amount: Amount | None) -> Resource | None:
    # Hadoop would read a maximum without vcores as -1 vcores: what is left out is written as the largest number.
    if amount is None:
        return None
    return Resource(_or(amount.memory_mb, JAVA_LONG_MAX), _or(amount.vcores, JAVA_INT_MAX))


def _finding(error: ValidationError, where: Where) -> InputError:
    """The first finding of pydantic in the words that users see."""
    findings = error.errors(include_url=False, include_context=False)
    first = findings[0]
    location: KeyPath = first["loc"]
    # Union members show up in the location by their type.
    union = False
    while len(location) > 1 and location[-1] in ("int", "float", "constrained-int", "constrained-float"):
        location, union = location[:-1], True
    names = [str(location[at + 1]) for at in range(len(location) - 1) if location[at] in ("queues", "children")]
    queue = ".".join([ROOT, *names]) if names else None
    kind, message = first["type"], str(first["msg"])
    message = message[:1].lower() + message[1:]
    mend = "see docs/reference/allocation-file.md"
    key = str(location[-1]) if location else "the file"
    if kind == "extra_forbidden":
        known = keys_at(TreeSpec, location)
        close = nearest(key, known)
        message, mend = "unknown key", f"write {close}" if close else f"known here are {', '.join(known)}"
    elif kind == "missing":
        message, mend = "is missing", "add it"
    elif kind in ("model_type", "dict_type"):
        message, mend = "is not a mapping", "write its keys below it, or {}"
    elif union and kind in ("int_type", "float_type"):
        message, mend = (
            f"is not a number (it is {str(first.get('input'))[:40]!r})",
            "write a plain number like 1500 or 0.5",
        )
    else:
        message += f" (it is {str(first.get('input'))[:40]!r})"
    others = f" (and {len(findings) - 1} more)" if len({item["loc"] for item in findings}) > 1 else ""
    place = where(location)
    return InputError(f"{key}: {message}{others}", where=f"{place}: queue {queue}" if queue else place, mend=mend)
