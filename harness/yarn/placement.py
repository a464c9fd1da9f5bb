"""Place applications in queues like a ResourceManager, by the placement rules of its scheduler's file.

Follows Hadoop 3.4.2: the Fair Scheduler's ``QueuePlacementPolicy`` with the rules of ``resourcemanager.placement``, the
Capacity Scheduler's ``CSMappingPlacementRule``. The caller supplies the users' groups.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.model.queues import AllocationFile, PlacementRule, ensure_root_prefix
from harness.yarn.capacity.loading.placement import queue_names
from harness.yarn.capacity.loading.reading import Node, Reading
from harness.yarn.capacity.loading.start import read_tree
from harness.yarn.capacity.mapping import QueueNames, fields_of_mapping, read_json
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.javanum import split, trim
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import trim_queue_name

_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Submission:
    """A client's submission. ``queue``: the name that the client gives; ``default`` or "" if it gives none."""

    queue: str
    user: str
    groups: Sequence[str] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """The full path of an application's queue; None if the ResourceManager rejects it, for the reason ``why``.

    ``asked``: the queue that the rules chose for a rejected application; "" if a rule rejects it.
    """

    queue: str | None
    why: str = ""
    asked: str = ""


class Placing(Protocol):
    """Places applications one after the other; queues that it creates for them remain."""

    def place(self, submission: Submission) -> Placement:
        """Return the leaf of an application, which exists afterwards."""


class _Rejected(Exception):
    """Raised where Hadoop throws, so that the application is rejected regardless of later rules."""


class FairPlacing:
    """Place applications like a Fair Scheduler.

    Parameters
    ----------
    manager : QueueManager
        The queues. Queues that applications create are added.
    allow_undeclared, user_as_default : bool
        ``yarn.scheduler.fair.allow-undeclared-pools`` and ``user-as-default-queue``, which apply if the file has no
        ``queuePlacementPolicy``.
    """

    def __init__(self, manager: QueueManager, *, allow_undeclared: bool = True, user_as_default: bool = True) -> None:
        self.manager = manager
        self.allow_undeclared, self.user_as_default = allow_undeclared, user_as_default

    @property
    def rules(self) -> tuple[PlacementRule, ...]:
        """Return the file's rules, or those that yarn-site.xml implies (``QueuePlacementPolicy.fromConfiguration``)."""
        file: AllocationFile = self.manager.allocations
        # A policy without rules is ignored (``QueuePlacementPolicy.updateRuleSet``).
        if file.placement_rules:
            return file.placement_rules
        found = [PlacementRule("specified", self.allow_undeclared)]
        if self.user_as_default:
            found.append(PlacementRule("user", self.allow_undeclared))
        if not self.user_as_default or not self.allow_undeclared:
            found.append(PlacementRule("default"))
        return tuple(found)

    def place(self, submission: Submission) -> Placement:
        """Return the leaf of an application, which exists afterwards."""
        path: str | None = None
        try:
            for rule in self.rules:
                if (path := self._by(rule, submission)) is not None:
                    break
        except _Rejected as rejected:
            return Placement(None, str(rejected))
        if path is None:
            return Placement(None, "no placement rule takes it")
        if self.manager.kind(path) is None and any(not one or one != trim_queue_name(one) for one in path.split(".")):
            return Placement(None, f"illegal queue name {path!r}")
        leaf = self.manager.leaf(path)
        return Placement(leaf) if leaf is not None else Placement(None, f"{path} is not a leaf queue", path)

    def _by(self, rule: PlacementRule, given: Submission) -> str | None:
        """Return the queue that one rule chooses; None if the next rule has to be tried."""
        if rule.name == "reject":
            return None
        if rule.name == "specified":
            queue = given.queue or _DEFAULT
            if queue != trim_queue_name(queue) or queue.startswith(".") or queue.endswith("."):
                raise _Rejected(f"illegal queue name {queue!r}")
            return None if queue == _DEFAULT else self._if_there(ensure_root_prefix(queue), rule)
        if rule.name == "default":
            return self._if_there(ensure_root_prefix(rule.queue or _DEFAULT), rule)
        if rule.name == "primaryGroup" and not given.groups:
            raise _Rejected(f"no groups are known of user {given.user}")
        above = ""
        if rule.parent is not None:
            found = self._by(rule.parent, given)
            if found is None or self.manager.kind(found) == "leaf":
                return None
            above = f"{found}."
        names = given.groups if rule.name == "secondaryGroupExistingQueue" else given.groups[:1]
        if rule.name in ("user", "nestedUserQueue"):
            names = [given.user]
        for name in names:
            path = above + _clean(name)
            path = path if above else ensure_root_prefix(path)
            if rule.name == "secondaryGroupExistingQueue":
                if self.manager.configured(path):
                    return path
            else:
                return self._if_there(path, rule)
        return None

    def _if_there(self, path: str, rule: PlacementRule) -> str | None:
        return path if rule.create or self.manager.configured(path) else None


def _clean(name: str) -> str:
    """Convert a user's or group's name to a queue name."""
    return trim_queue_name(name).replace(".", "_dot_")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A mapping rule. ``queue``: the path's pattern; None: reject; ``default``: the rule sets the default queue."""

    kind: str  # all, user, group, application
    matches: str
    queue: str | None
    create: bool
    fallback: str  # skip, reject, placeDefault
    default: str | None = None


_POLICIES = {
    "specified": "%specified",
    "defaultQueue": "%default",
    "user": "%user",
    "primaryGroup": "%primary_group",
    "secondaryGroup": "%secondary_group",
    "primaryGroupUser": "%primary_group.%user",
    "secondaryGroupUser": "%secondary_group.%user",
    "applicationName": "%application",
}
_BELOW_PARENT = frozenset(_POLICIES) - {"specified", "defaultQueue"}


class CapacityPlacing:
    """Places applications as a Capacity Scheduler with these properties does.

    Parameters
    ----------
    settings : its properties.

    ``created`` lists the auto-created queues with their parents, in order. Never raises InputError: check with
    `validate` first that Hadoop accepts the file.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        root = read_tree(Reading(settings))
        self._nodes: dict[str, Node] = {} if root is None else {node.path: node for node in root.tree()}
        self._kinds = dict(queue_names(root).kinds) if root is not None else {}
        self._names = QueueNames.of(self._kinds)
        self._children = {path: [child.path for child in node.children] for path, node in self._nodes.items()}
        self._weighted = {path for path, node in self._nodes.items() if node.weight.get("", -1.0) >= 0}
        self.rules = _mapping_rules(settings)
        self.override = settings.flag("queue-mappings-override.enable", False)
        self.created: list[str] = []

    def place(self, submission: Submission) -> Placement:
        """Return the leaf of an application, which exists afterwards."""
        given = submission if submission.queue else Submission(_DEFAULT, *_rest(submission))
        try:
            path = self._by_rules(given)
        except _Rejected as rejected:
            return Placement(None, str(rejected))
        if path is None:
            path = given.queue
        return self._into(path)

    def _by_rules(self, given: Submission) -> str | None:
        if not self.rules or (given.queue != _DEFAULT and not self.override):
            return None
        variables = _variables(given)
        for rule in self.rules:
            if not _matches(rule, variables, given):
                continue
            if rule.default is not None:
                variables["%default"] = _replaced(rule.default, variables)
                continue
            fallback = rule.fallback
            if rule.queue is not None:
                try:
                    return self._valid(self._pattern(rule.queue, variables, given), rule.create)
                except ValueError:
                    pass
            else:
                fallback = "reject"
            if fallback == "skip":
                continue
            if fallback == "placeDefault":
                try:
                    return self._valid(self._pattern("%default", variables, given), False)
                except ValueError as error:
                    raise _Rejected(f"a mapping rule places it into the default queue: {error}") from None
            raise _Rejected("a mapping rule rejects it")
        return None

    def _pattern(self, pattern: str, variables: Mapping[str, str], given: Submission) -> str:
        parts = split(pattern, ".")
        for at, part in enumerate(parts):
            if part == "%secondary_group" and len(given.groups) > 1:
                above = "".join(f"{one}." for one in parts[:at])
                groups = map(_clean, given.groups[1:])
                parts[at] = next((group for group in groups if self._names.path(above + group) is not None), "")
            elif part in variables:
                parts[at] = variables[part]
        return ".".join(parts)

    def _valid(self, path: str, create: bool) -> str:
        """Return the full path of a rule's queue (``validateAndNormalizeQueue``).

        Raises ValueError for an impossible one.
        """
        names = self._names
        if not path or any(not part for part in path.split(".")):
            raise ValueError(f"queue path {path!r} has an empty part")
        if "." not in path:
            found = names.path(path)
            if found is None:
                raise ValueError(f"queue {path} is ambiguous" if names.ambiguous(path) else f"there is no queue {path}")
            return self._leaf(found)
        first, _, rest = path.partition(".")
        top = names.path(first)
        if top is None:
            raise ValueError(f"there is no queue {first}")
        whole = f"{top}.{rest}"
        found = names.path(whole)
        if found is not None:
            return self._leaf(found)
        if not self._creatable(whole):
            raise ValueError(f"there is no queue {whole}, and nothing makes it")
        if not create:
            raise ValueError(f"the rule may not create {whole}")
        return whole

    def _creatable(self, path: str) -> bool:
        """Return whether an ancestor creates queues (``validateQueuePathAutoCreation``)."""
        above = path.rpartition(".")[0]
        kind = self._kinds.get(above)
        if kind is None:
            return self._kinds.get(above.rpartition(".")[0]) == "creating"
        return kind in ("creating", "creating-v1")

    def _leaf(self, path: str) -> str:
        if self._kinds[path] != "leaf":
            raise ValueError(f"{path} is not a leaf queue")
        return path

    def _into(self, path: str) -> Placement:
        """Put the application into the queue (``CapacityScheduler.addApplication``)."""
        found = self._names.path(path)
        if found is not None:
            if self._kinds[found] != "leaf":
                return Placement(None, f"{found} is not a leaf queue", path)
            return Placement(found)
        if self._names.ambiguous(path):
            return Placement(None, f"several queues are called {path}", path)
        parts = path.split(".")
        if len(parts) < 2 or not all(parts):
            return Placement(None, f"there is no queue {path}", path)
        top = self._names.path(parts[0])
        whole = path if top is None else ".".join([top, *parts[1:]])
        above = whole.rpartition(".")[0]
        missing = [] if self._kinds.get(above) == "creating-v1" else self._missing_parents(whole)
        if missing is None:
            return Placement(None, f"there is no queue {path}, and nothing makes it", path)
        for new in (*missing, whole):
            parent = new.rpartition(".")[0]
            if self._kinds[parent] == "creating-v1" and (why := self._is_full(parent)):
                return Placement(None, why, path)
            if self._kinds[parent] == "creating" and not self._takes_weights(parent):
                return Placement(None, f"{parent} makes no queues: those below it have no weights", path)
            self._kinds[new] = "leaf" if new == whole else "creating"
            self._children.setdefault(parent, []).append(new)
            self.created.append(new)
            self._names = QueueNames.of(self._kinds)
        return Placement(whole)

    def _missing_parents(self, path: str) -> list[str] | None:
        """Return the parents that are created with a queue, uppermost first (``determineMissingParents``)."""
        missing: list[str] = []
        made, distance = set(self.created), 1
        above = path.rpartition(".")[0]
        if self._names.ambiguous(above):
            return None
        existing = ""
        while above and (above not in self._kinds or above in made):
            distance += 1
            if above in self._kinds:
                existing = existing or above
            elif not existing:
                missing.insert(0, above)
            above = above.rpartition(".")[0]
        existing = existing or above
        deepest = self._whole(f"{above}.auto-queue-creation-v2.maximum-queue-depth", 2)
        if not above or distance > deepest or self._kinds[existing] != "creating":
            return None
        return missing

    def _is_full(self, parent: str) -> str:
        """Return why a legacy auto-creating parent creates no more children (``ManagedParentQueue.addChildQueue``)."""
        way, children = f"{parent}.auto-create-child-queue", self._children.get(parent, [])
        if len(children) >= (most := self._whole(f"{way}.max-queues", 1000)):
            return f"{parent} has as many queues as it may create ({most})"
        if self.settings.flag(f"{way}.fail-on-exceeding-parent-capacity", False):
            text = self.settings.get(f"{parent}.leaf-queue-template.capacity") or "0"
            with contextlib.suppress(ValueError):
                if (len(children) + 1) * float(text) > 100.0:
                    return f"{parent} creates no queue beyond its capacity (fail-on-exceeding-parent-capacity)"
        return ""

    def _takes_weights(self, parent: str) -> bool:
        """Return whether a parent may get another queue: its children have weights, and are not too many."""
        children = self._children.get(parent, [])
        if len(children) >= self._whole(f"{parent}.auto-queue-creation-v2.max-queues", 1000):
            return False
        made = set(self.created)
        if not children or not self.settings.flag("legacy-queue-mode.enabled", True):
            return True
        return any(child in made or child in self._weighted for child in children)

    def _whole(self, key: str, default: int) -> int:
        try:
            return self.settings.integer(key, default)
        except ValueError:
            return default


def _rest(given: Submission) -> tuple[str, Sequence[str], str]:
    return given.user, given.groups, given.name


def _variables(given: Submission) -> dict[str, str]:
    return {
        "%user": _clean(given.user),
        "%specified": "" if given.queue == _DEFAULT else given.queue,
        "%application": given.name,
        "%default": "root.default",
        "%primary_group": _clean(given.groups[0]) if given.groups else "",
        **({"%secondary_group": ""} if len(given.groups) < 2 else {}),
    }


def _replaced(text: str, variables: Mapping[str, str]) -> str:
    """Replace all variables in a text, the longest names first (``VariableContext.replaceVariables``)."""
    for name in sorted(variables, key=len, reverse=True):
        text = text.replace(name, variables[name])
    return text


def _matches(rule: _Rule, variables: Mapping[str, str], given: Submission) -> bool:
    if rule.kind == "all":
        return True
    wanted = _replaced(rule.matches, variables)
    if rule.kind == "group":
        return wanted in given.groups
    if rule.kind == "application":
        return wanted == given.name
    return wanted in (given.user, variables["%user"])


def _mapping_rules(settings: Settings) -> list[_Rule]:
    rules = [part for part in (settings.get("yarn.scheduler.queue-placement-rules") or "").split(",") if part]
    if rules and not {"user-group", "app-name"} & set(rules):
        return []
    if (settings.get("mapping-rule-format") or "legacy") == "json":
        document = read_json(text) if (text := settings.get("mapping-rule-json")) else {}
        return [_of_json(rule) for rule in document.get("rules", [])]
    found = []
    for mapping in settings.collection("queue-mappings"):
        kind, source, queue = fields_of_mapping(mapping)
        everybody = kind == "u" and source == "%user"
        kind = "all" if everybody else {"u": "user", "g": "group"}[kind]
        found.append(_Rule(kind, source, queue, True, "placeDefault"))
    for mapping in settings.collection("yarn.scheduler.queue-placement-rules.app-name"):
        source, queue = fields_of_mapping(mapping)
        found.append(_Rule("application", source, queue, True, "placeDefault"))
    return found


def _of_json(rule: Mapping[str, Any]) -> _Rule:
    policy, matches = rule["policy"], _text(rule["matches"])
    kind = "all" if rule["type"] == "user" and matches == "*" else rule["type"]
    create, fallback = rule.get("create"), rule.get("fallbackResult") or "skip"
    creates = create is None or (trim(create).lower() == "true" if isinstance(create, str) else bool(create))
    if policy == "setDefaultQueue":
        return _Rule(kind, matches, None, creates, fallback, default=_text(rule["value"]))
    if policy == "reject":
        return _Rule(kind, matches, None, creates, "reject")
    if policy == "custom":
        return _Rule(kind, matches, _text(rule["customPlacement"]), creates, fallback)
    queue = _POLICIES[policy]
    if policy in _BELOW_PARENT and rule.get("parentQueue") is not None:
        queue = f"{_text(rule['parentQueue'])}.{queue}"
    return _Rule(kind, matches, queue, creates and policy != "defaultQueue", fallback)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
