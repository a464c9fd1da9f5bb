"""Queue mappings and mapping rules of a Capacity Scheduler's configuration: which of them Hadoop refuses, and why.

Follows ``CapacitySchedulerConfiguration.getMappingRules``, ``MappingRuleCreator`` and
``MappingRuleValidationContextImpl`` of 3.4.2 and 3.5.0. A rule that Hadoop refuses prevents the RM's start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.base.errors import nearest
from harness.yarn.fair.javanum import split, trim
from harness.yarn.misspelt import likely

#: Types of queues that mapping rules distinguish. Queues are created automatically below ``creating`` ones.
QueueKind = Literal["leaf", "parent", "creating", "creating-v1"]
#: Variables that Hadoop replaces in the path of a rule's queue.
VARIABLES = frozenset({"%user", "%primary_group", "%secondary_group", "%application", "%specified", "%default"})
_IMMUTABLE = VARIABLES - {"%default"}
_TYPES = ("user", "group", "application")
_FALLBACKS = ("skip", "reject", "placeDefault")
#: Policy of a JSON rule -> the part that it adds to the parent queue's path (None: the policy has no such path).
_POLICIES: dict[str, str | None] = {
    "specified": None,
    "reject": None,
    "defaultQueue": None,
    "user": "%user",
    "primaryGroup": "%primary_group",
    "secondaryGroup": "%secondary_group",
    "primaryGroupUser": "%primary_group.%user",
    "secondaryGroupUser": "%secondary_group.%user",
    "applicationName": "%application",
    "setDefaultQueue": None,
    "custom": None,
}


class Refused(ValueError):
    """Raised if Hadoop refuses a rule, with the reason and a replacement."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


class Syntax(Refused):
    """Raised for a rule that Hadoop cannot parse."""


@dataclass(frozen=True, slots=True)
class QueueNames:
    """The queues that a mapping may name: full paths, and short names that are unique."""

    kinds: Mapping[str, QueueKind]
    full_names: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, kinds: Mapping[str, QueueKind]) -> QueueNames:
        """Create it from full path -> kind."""
        names: dict[str, list[str]] = {}
        for path in kinds:
            if path != "root":
                names.setdefault(path.rpartition(".")[2], []).append(path)
        return cls(kinds, {name: tuple(paths) for name, paths in names.items()})

    def path(self, name: str) -> str | None:
        """Return the full path that a name or path refers to; None if no queue or several match."""
        if name in self.kinds:
            # `root` always means the root queue, even if another queue has the same short name.
            return name
        return self.full_names[name][0] if len(self.full_names.get(name, ())) == 1 else None

    def ambiguous(self, name: str) -> bool:
        """Return whether several queues have this name."""
        return name not in self.kinds and len(self.full_names.get(name, ())) > 1

    def leaves(self) -> list[str]:
        """Return the full paths of all leaves."""
        return [path for path, kind in self.kinds.items() if kind == "leaf"]


class _Rules:
    """Validate rules one after the other, because an earlier rule may set the default queue."""

    def __init__(self, queues: QueueNames) -> None:
        self.queues = queues
        self.variables = set(VARIABLES)

    def place(self, path: str) -> None:
        """Validate the queue of a rule. Raises Refused."""
        if not path:
            raise Refused("a rule names no queue", "name a leaf queue")
        if self._static(path):
            self._static_path(path)
        else:
            self._dynamic_path(path)

    def _static(self, path: str) -> bool:
        for part in split(path, "."):
            if not part:
                raise Refused(f"queue path {path!r} has an empty part", "remove the dot too many")
            if part in self.variables:
                return False
        return True

    def _normalized(self, path: str) -> str:
        """Return the path with its first part replaced by a full path (``normalizeQueuePathRoot``)."""
        parts = split(path, ".")
        if not parts:
            raise Refused(f"queue path {path!r} is no path", "name a leaf queue")
        first = self.queues.path(parts[0])
        if first is None:
            if self.queues.ambiguous(parts[0]):
                raise Refused(f"several queues are called {parts[0]!r}", "write the full path")
            raise Refused(f"no queue is called {parts[0]!r}", self._instead(parts[0]))
        return ".".join([first, *parts[1:]])

    def _instead(self, name: str) -> str:
        own = {leaf if "." in name else leaf.rpartition(".")[2]: leaf for leaf in self.queues.leaves()}
        # Suggest only a sibling with a similar name.
        known = {path.rpartition(".")[2]: path for path in own if path.rpartition(".")[0] == name.rpartition(".")[0]}
        close = known.get(likely(name.rpartition(".")[2], known, whole=True), "")
        return f"write {close}" if close else "name a queue that exists, or add it"

    def _static_path(self, written: str) -> None:
        above, dot, leaf = written.rpartition(".")
        path = self._normalized(f"{trim(above)}.{trim(leaf)}" if dot else written)
        found = self.queues.path(path)
        if found is not None:
            if self.queues.kinds[found] != "leaf":
                raise Refused(f"queue {written!r} is no leaf", "name a leaf below it")
            return
        if self.queues.ambiguous(path):
            raise Refused(f"several queues are called {written!r}", "write the full path")
        parent = path.rpartition(".")[0]
        owner = self.queues.path(parent)
        if owner is None:
            if self.queues.ambiguous(parent):
                raise Refused(f"several queues are called {parent!r}", "write the full path")
            grand = self.queues.path(parent.rpartition(".")[0])
            if grand is not None and self.queues.kinds[grand] == "creating":
                return
        elif self.queues.kinds[owner] in ("creating", "creating-v1"):
            return
        raise Refused(f"there is no queue {path!r}, and {parent} makes none by itself", self._instead(written))

    def _dynamic_path(self, path: str) -> None:
        parts = split(path, ".")
        if parts[0] in self.variables:
            return
        fixed = [parts[0]]
        for part in parts[1:]:
            if part in self.variables:
                break
            if not part:
                raise Refused(f"queue path {path!r} has an empty part", "remove the dot too many")
            fixed.append(part)
        whole = self._normalized(".".join(fixed))
        found = self.queues.path(whole)
        if found is not None:
            if self.queues.kinds[found] == "leaf":
                raise Refused(f"queue {found} is a leaf: {path!r} cannot be below it", "name a parent queue")
            return
        if len(fixed) > 1:
            above = self.queues.path(self._normalized(".".join(fixed[:-1])))
            if above is not None and self.queues.kinds[above] in ("creating", "creating-v1"):
                return
        raise Refused(
            f"there is no queue {whole!r} for {path!r} to be below", f"add {whole}, or name a parent queue that exists"
        )

    def set_default(self, name: str) -> None:
        """Validate a rule that sets the default queue."""
        self.variables.add(name)


def fields_of_mapping(mapping: str) -> list[str]:
    """Return a mapping's parts between colons, trimmed, without empty parts (``getTrimmedStringCollection``)."""
    return [trim(part) for part in mapping.split(":") if trim(part)]


def check_legacy(
    mappings: Collection[str], queues: QueueNames, *, names: bool, report: Callable[[Refused], None]
) -> None:
    """Report each refused mapping ``u:user:queue`` or ``g:group:queue`` (with ``names``: ``application:queue``)."""
    rules = _Rules(queues)
    count, form = (2, "application:queue") if names else (3, "u:user:queue or g:group:queue")
    for mapping in mappings:
        try:
            parts = fields_of_mapping(mapping)
            if len(parts) != count:
                raise Syntax(f"mapping {mapping[:80]!r} is not of the form {form}", f"write {form}")
            if not names and parts[0] not in ("u", "g"):
                raise Syntax(f"mapping {mapping[:80]!r} begins with neither u nor g", f"write {form}")
            try:
                rules.place(parts[-1])
            except Refused as refused:
                raise Refused(f"mapping {mapping[:80]!r}: {refused.what}", refused.hint) from None
        except Refused as refused:
            report(refused)


def check_json(text: str, queues: QueueNames, *, report: Callable[[Refused], None]) -> None:
    """Report what Hadoop refuses in the rules of a ``mapping-rule-json``."""
    try:
        document = read_json(text)
    except ValueError as error:
        report(Syntax(f"mapping-rule-json is not JSON: {error}", 'write {"rules": [...]}'))
        return
    rules = document.get("rules", []) if isinstance(document, dict) else None
    if not isinstance(rules, list):
        report(Syntax("mapping-rule-json has no list of rules", 'write {"rules": [...]}'))
        return
    found = _Rules(queues)
    for number, rule in enumerate(rules, start=1):
        try:
            _check_rule(rule, found)
        except Refused as refused:
            report(type(refused)(f"mapping rule {number}: {refused.what}", refused.hint))


def read_json(text: str) -> Any:
    """Return the document of a ``mapping-rule-json``. Raises ValueError for invalid JSON."""

    def constant(name: str) -> None:
        raise ValueError(f"{name} is not a value")

    start = len(text) - len(text.lstrip(" \t\r\n"))
    # Like Hadoop's parser, ignore any text after the document.
    return json.JSONDecoder(parse_constant=constant).raw_decode(text, start)[0]


def _check_rule(rule: object, rules: _Rules) -> None:
    if not isinstance(rule, dict):
        raise Syntax("it is not an object", "write an object with type, matches and policy")
    policy = _choice(rule, "policy", tuple(_POLICIES))
    kind = _choice(rule, "type", _TYPES)
    matches = _text(rule, "matches")
    fallback = _choice(rule, "fallbackResult", _FALLBACKS)
    create = rule.get("create")
    texts = {key: _text(rule, key) for key in ("parentQueue", "value", "customPlacement")}
    if not isinstance(create, (bool, int, type(None))) and not (
        isinstance(create, str) and trim(create) in ("true", "false", "True", "False", "TRUE", "FALSE", "", "null")
    ):
        raise Syntax(f"create is {json.dumps(create)[:40]}", "write true or false")
    del fallback
    if policy is None:
        raise Syntax("it has no policy", f"write one of {', '.join(_POLICIES)}")
    if kind is None:
        raise Syntax("it has no type", "write user, group or application")
    if not matches:
        raise Syntax("it has no matches", 'write the name that it matches, or "*" for all users')
    if kind == "group" and matches == "*":
        raise Syntax("a rule of type group cannot match *", "write type user to match everybody")
    if policy == "custom":
        if texts["customPlacement"] is None:
            raise Syntax("policy custom needs customPlacement", "write the queue's path there")
        rules.place(texts["customPlacement"])
    elif policy == "setDefaultQueue":
        if texts["value"] is None:
            raise Syntax("policy setDefaultQueue needs value", "write the queue's path there")
        rules.set_default("%default")
    elif policy == "specified":
        rules.place("%specified")
    elif policy == "defaultQueue":
        rules.place("%default")
    elif (placeholder := _POLICIES[policy]) is not None:
        parent = texts["parentQueue"]
        rules.place(placeholder if parent is None else f"{parent}.{placeholder}")


def _text(rule: Mapping[str, object], key: str) -> str | None:
    value = rule.get(key)
    if isinstance(value, (dict, list)):
        raise Syntax(f"{key} is not a text", "write a text")
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _choice(rule: Mapping[str, object], key: str, known: tuple[str, ...]) -> str | None:
    value = rule.get(key)
    if value is None or (isinstance(value, str) and value in known):
        return value
    shown = value if isinstance(value, str) else json.dumps(value)
    close = nearest(shown, known)
    hint = f"write {close}" if close else f"write one of {', '.join(known)}"
    raise Syntax(f"there is no {key} {shown[:40]!r}", hint)


def queue_of_mapping(mapping: str) -> str:
    """Return the queue that a legacy mapping names, as written; "" if it names none."""
    parts = re.split(":", mapping)
    return trim(parts[-1]) if len(parts) > 1 else ""
