"""Convert users' queue trees (YAML) to the values of an allocation file, with strict validation.

The format is described in docs/reference/allocation-file.md; harness.yarn.fair.spec defines the allowed values. The
caller reads the YAML and passes plain data and a function that returns the position of a key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from harness.base.documents import KeyPath, keys_at
from harness.base.errors import InputError, nearest
from harness.model.queues import (
    NEVER_MS,
    NO_APP_LIMIT,
    ROOT,
    UNLIMITED,
    AllocationFile,
    PlacementRule,
    QueueSettings,
)
from harness.yarn.fair.elements import ACL_ELEMENTS
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.spec import QueueEntry, RootSpec, RuleSpec, TreeSpec, Wrong

Where = Callable[[KeyPath], str]

#: Converts acl_submit_apps to aclSubmitApps, and so on.
ACL_KEYS = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", element): element for element in ACL_ELEMENTS}


def read_tree(data: object, where: Where) -> AllocationFile:
    """Return the allocation file that a queue tree describes.

    Parameters
    ----------
    data : object
        Plain data (mappings, lists, scalars), without cycles.
    where : Callable
        Returns ``file:line`` of a key path.

    Raises
    ------
    InputError
        The tree is not valid; the error contains file, line, queue and a hint.
    """
    try:
        file = _file(TreeSpec.model_validate(data))
    except ValidationError as error:
        raise _finding(error, where) from None
    except RecursionError:
        raise InputError("the queues are nested too deeply", where=where(()), hint="flatten the tree") from None
    for refused in queue_tree(file).refused:
        below_root = refused.path.split(".")[1:]
        at = [part for name in below_root for part in ("children", name)]
        hint = "give parents the policy drf or fair, drf only below drf, fifo only to leaves"
        raise InputError(refused.why, where=f"{where(('queues', *at[1:]))}: queue {refused.path}", hint=hint)
    return file


def _file(spec: TreeSpec) -> AllocationFile:
    settings: dict[str, QueueSettings] = {}
    leaves: list[str] = []
    parents: list[str] = []

    def add(path: str, queue: QueueEntry) -> None:
        settings[path] = replace(
            _common(path, queue),
            weight=queue.weight,
            max_am_share=queue.max_am_share,
            min_share_preemption_timeout_ms=_ms(queue.min_share_preemption_timeout_s, None),
            fair_share_preemption_timeout_ms=_ms(queue.fair_share_preemption_timeout_s, None),
            fair_share_preemption_threshold=queue.fair_share_preemption_threshold,
            reservable=queue.reservation,
        )
        for name, child in (queue.children or {}).items():
            add(f"{path}.{name}", child)
        (leaves if queue.children is None and not queue.reservation else parents).append(path)

    for name, queue in spec.queues.items():
        add(f"{ROOT}.{name}", queue)
    if spec.root is not None:
        parents.append(ROOT)
    defaults = spec.defaults
    minimum = _ms(defaults.min_share_preemption_timeout_s, NEVER_MS)
    fair = _ms(defaults.fair_share_preemption_timeout_s, NEVER_MS)
    threshold = _or(defaults.fair_share_preemption_threshold, 0.5)
    settings[ROOT] = replace(
        QueueSettings(ROOT) if spec.root is None else _common(ROOT, spec.root),
        min_share_preemption_timeout_ms=minimum,
        fair_share_preemption_timeout_ms=fair,
        fair_share_preemption_threshold=threshold,
    )
    return AllocationFile(
        settings=settings,
        configured_leaves=tuple(leaves),
        configured_parents=tuple(parents),
        user_max_apps={user: limits.max_running_apps for user, limits in spec.users.items()},
        user_max_apps_default=_or(defaults.user_max_apps, NO_APP_LIMIT),
        queue_max_apps_default=_or(defaults.queue_max_apps, NO_APP_LIMIT),
        queue_max_resources_default=defaults.queue_max_resources.limit() if defaults.queue_max_resources else UNLIMITED,
        queue_max_am_share_default=_or(defaults.queue_max_am_share, 0.5),
        default_min_share_preemption_timeout_ms=minimum,
        default_fair_share_preemption_timeout_ms=fair,
        default_fair_share_preemption_threshold=threshold,
        default_scheduling_policy=defaults.scheduling_policy,
        placement_rules=None if spec.placement is None else tuple(map(_rule, spec.placement)),
        reservation_planner=spec.reservations.planner,
        reservation_agent=spec.reservations.agent,
        reservation_policy=spec.reservations.policy,
    )


def _common(path: str, spec: QueueEntry | RootSpec) -> QueueSettings:
    """Return the settings that every queue, including root, may have."""
    largest = spec.max_container_allocation
    acls = {element: getattr(spec, key, None) for key, element in ACL_KEYS.items()}
    return QueueSettings(
        path,
        min_resources=spec.min_resources.least() if spec.min_resources else None,
        max_resources=spec.max_resources.limit() if spec.max_resources else None,
        max_child_resources=spec.max_child_resources.limit() if spec.max_child_resources else None,
        max_container_allocation=largest.most() if largest else None,
        max_running_apps=spec.max_running_apps,
        preemptable=spec.allow_preemption_from,
        scheduling_policy=spec.scheduling_policy,
        acls={element: text for element, text in acls.items() if text is not None},
    )


def _rule(spec: RuleSpec) -> PlacementRule:
    return PlacementRule(spec.rule, spec.create, spec.queue, _rule(spec.parent) if spec.parent else None)


def _or(value: object, otherwise: object) -> Any:
    return otherwise if value is None else value


def _ms(seconds: int | None, otherwise: object) -> Any:
    return otherwise if seconds is None else seconds * 1000


def _finding(error: ValidationError, where: Where) -> InputError:
    """Convert pydantic's first error to an error for users."""
    findings = error.errors(include_url=False)
    first = findings[0]
    location: KeyPath = first["loc"]
    # Remove the types of union members from the location, and note whether a name or its value is wrong.
    union = named = False
    while len(location) > 1 and location[-1] in ("int", "float", "constrained-int", "constrained-float"):
        location, union = location[:-1], True
    if location[-1:] == ("[key]",):
        location, named = location[:-1], True
    path = location[:-1] if named else location
    names = [str(path[at + 1]) for at in range(len(path) - 1) if path[at] in ("queues", "children")]
    queue = ".".join([ROOT, *names]) if names or location[:1] == ("root",) or (named and path == ("queues",)) else None
    kind, message, wrong = first["type"], str(first["msg"]), first.get("ctx", {}).get("error")
    said = f"(it is {str(first.get('input'))[:40]!r})"
    message = f"{message[:1].lower()}{message[1:]} {said}"
    hint = "see docs/reference/allocation-file.md"
    key = str(location[-1]) if location else "the file"
    if kind == "extra_forbidden":
        known = keys_at(TreeSpec, location)
        close = nearest(key, known)
        message, hint = "unknown key", f"write {close}" if close else f"known here are {', '.join(known)}"
    elif kind == "missing":
        message, hint = "is missing", "add it"
    elif kind in ("model_type", "dict_type"):
        message, hint = "is not a mapping", "write its keys below it, or {}"
    elif union and kind in ("int_type", "float_type"):
        message, hint = f"is not a number {said}", "write a plain number like 1500 or 0.5"
    message = f"{key}: {message}"
    if isinstance(wrong, Wrong):
        message, hint, location = str(wrong), wrong.hint, (*location, *wrong.at)
    others = f" (and {len(findings) - 1} more)" if len({item["loc"] for item in findings}) > 1 else ""
    place = where(location)
    return InputError(f"{message}{others}", where=f"{place}: queue {queue}" if queue else place, hint=hint)
