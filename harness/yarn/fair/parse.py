"""Parse allocation files like Hadoop 3.4.2: accept and refuse the same files, with the same results.

Mistakes that Hadoop accepts silently (an unknown element, a dropped percentage) are accepted; `validate` reports them.

Follows AllocationFileParser, AllocationFileQueueParser, AllocationFileLoaderService and QueuePlacementPolicy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

from harness.base.errors import InputError
from harness.base.files import read_whole, reading
from harness.model.queues import ROOT, AllocationFile, PlacementRule, QueueSettings
from harness.yarn.fair.dom import Element, Text, parse_xml
from harness.yarn.fair.elements import (
    APPS,
    DEFAULT_POLICY,
    OF_FILE,
    OF_QUEUE,
    OF_ROOT,
    QUEUE_ELEMENTS,
    TOP_ELEMENTS,
    Amount,
    Kind,
    plain_name,
)
from harness.yarn.fair.javanum import trim
from harness.yarn.fair.resources import parse_resources

#: Element in which Hadoop ignores percentages -> field of `QueueSettings` that records this.
DROPPED = {"minResources": "minimum_dropped", "maxContainerAllocation": "container_maximum_dropped"}
#: Placement rule -> whether it always ends the search for a queue: yes, no, or only if it may create queues (create).
PLACEMENT_RULES = {
    "user": "create",
    "primaryGroup": "create",
    "secondaryGroupExistingQueue": "no",
    "specified": "no",
    "nestedUserQueue": "create",
    "default": "create",
    "reject": "yes",
}
#: The white space that Hadoop trims from queue names (FairSchedulerUtilities.trimQueueName).
_NAME_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)


def read_allocations(path: str | Path, *, conf: Mapping[str, object] | None = None) -> AllocationFile:
    """Read an allocation file. Raises InputError if it cannot be read, or if Hadoop would refuse it."""
    return parse_allocations(read_bytes(path), source=str(path), conf=conf)


def read_bytes(path: str | Path) -> bytes:
    """Read a file's bytes. Raises InputError with a readable reason."""
    with reading(path, "give the path of a readable file"):
        return read_whole(path)


def parse_allocations(
    xml: str | bytes, *, conf: Mapping[str, object] | None = None, source: str = "allocation file"
) -> AllocationFile:
    """Return the settings that Hadoop takes from an allocation file.

    Parameters
    ----------
    xml : str or bytes
        The document.
    conf : Mapping[str, object] or None
        Properties of yarn-site.xml; only ``yarn.resource-types`` matters (names of further resource types).
    source : str
        Name of the document in messages.

    Raises
    ------
    InputError
        Hadoop refuses the file; the error names line and queue. (With such a file an RM does not start, and a running
        RM keeps the old settings.)
    """
    return read_document(parse_xml(xml, source=source), conf=conf, source=source)


def read_document(root: Element, *, conf: Mapping[str, object] | None = None, source: str) -> AllocationFile:
    """Like `parse_allocations`, for the root element of a parsed document."""
    types = tuple(part.strip() for part in str((conf or {}).get("yarn.resource-types", "")).split(",") if part.strip())
    return _Reader(source, types).read(root)


class _Reader:
    def __init__(self, source: str, extra_types: Collection[str]) -> None:
        self.source = source
        self.extra_types = extra_types
        #: Queue path -> its settings so far; several elements of a queue add to the same entry.
        self.queues: dict[str, dict[str, Any]] = {}
        # Dictionaries serve as ordered sets.
        self.leaves: dict[str, None] = {}
        self.parents: dict[str, None] = {}

    def fail(self, element: Element, what: str, hint: str, queue: str | None = None) -> NoReturn:
        where = f"{self.source}:{element.line}" + (f": queue {queue}" if queue else "")
        raise InputError(what, where=where, hint=hint)

    def raw_text(self, element: Element, queue: str | None = None) -> str:
        """Return an element's text: Hadoop uses only the first child, which must be text."""
        first = element.children[0] if element.children else None
        if not isinstance(first, Text):
            self.fail(
                element,
                f"<{element.tag}> has no text (the ResourceManager fails on it)",
                f"write a value into <{element.tag}>, or remove it",
                queue,
            )
        return first.data

    def value(self, element: Element, kind: Kind | Amount, queue: str | None = None) -> Any:
        text = trim(self.raw_text(element, queue))
        try:
            if isinstance(kind, Amount):
                return parse_resources(text, missing=kind.missing, extra_types=self.extra_types)
            return kind.read(text)
        except ValueError as error:
            self.fail(element, f"<{element.tag}>: {error}", f"write {kind.wanted}", queue)

    # ---- the top level

    def read(self, root: Element) -> AllocationFile:
        if root.tag != "allocations":
            self.fail(root, f"the top element is <{root.tag}>", "an allocation file's top element is <allocations>")
        texts: dict[str, Element] = {}
        queue_elements: list[Element] = []
        placement: Element | None = None
        user_max_apps: dict[str, int] = {}
        found: dict[str, Any] = {}
        for element in root.elements():
            tag = element.tag
            if tag not in TOP_ELEMENTS:
                continue
            if tag == "queuePlacementPolicy":
                placement = element
            elif tag in ("defaultQueueSchedulingPolicy", "defaultQueueSchedulingMode"):
                if trim(self.raw_text(element)).lower() == "fifo":
                    self.fail(element, f"<{tag}> cannot be fifo", "give fifo to single leaf queues")
                found["default_scheduling_policy"] = self.value(element, DEFAULT_POLICY)
            elif tag in ("queue", "pool"):
                queue_elements.append(element)
            elif tag == "user":
                for limit in element.elements():
                    if limit.tag == "maxRunningApps":
                        user_max_apps[element.name()] = self.value(limit, APPS)
            else:
                self.raw_text(element)
                texts[tag] = element
        self.read_queues(queue_elements)
        rules = None if placement is None else self.placement(placement)
        if "fairSharePreemptionTimeout" in texts:
            texts.setdefault("defaultFairSharePreemptionTimeout", texts["fairSharePreemptionTimeout"])
        values = self.queues.setdefault(ROOT, {})
        for tag, of_root in OF_ROOT.items():
            (name, kind), (own, _) = OF_FILE[tag], OF_QUEUE[of_root]
            default = texts.pop(tag, None)
            # Hadoop does not read a default that only root would use if root sets the value itself.
            if values.get(own) is None:
                values[own] = getattr(AllocationFile(), name) if default is None else self.value(default, kind)
            found[name] = values[own]
        found |= {name: self.value(texts[tag], kind) for tag, (name, kind) in OF_FILE.items() if tag in texts}
        return AllocationFile(
            settings={name: QueueSettings(name, **said) for name, said in self.queues.items()},
            configured_leaves=tuple(self.leaves),
            configured_parents=tuple(self.parents),
            user_max_apps=user_max_apps,
            placement_rules=rules,
            **found,
        )

    # ---- queues

    def read_queues(self, elements: list[Element]) -> None:
        for element in elements:
            parent: str | None = ROOT
            if element.name().lower() == ROOT:
                if len(elements) > 1:
                    self.fail(element, "other queues stand beside the root queue", "put every other queue inside root")
                parent = None
            self.read_queue(parent, element)

    def read_queue(self, parent: str | None, element: Element) -> None:
        name = trim_queue_name(element.name())
        if "." in name:
            self.fail(element, f"queue name {name!r} contains a dot", "nest the queue inside its parent's element")
        if not name:
            self.fail(element, "a queue has no name", 'write <queue name="...">')
        path = f"{parent}.{name}" if parent is not None else name
        queue = self.queues.setdefault(path, {})
        leaf, reservable, am_share = True, False, False
        for item in element.elements():
            tag = item.tag
            # Hadoop checks whether "queue" ends with the tag, so <ueue> is a queue too.
            if tag not in QUEUE_ELEMENTS and "queue".endswith(tag):
                tag = "queue"
            if tag in ("queue", "pool"):
                self.read_queue(path, item)
                leaf = False
            elif tag == "reservation":
                reservable = True
                queue["reservable"] = True
                self.parents[path] = None
            elif tag in QUEUE_ELEMENTS:
                am_share |= tag == "maxAMShare"
                self.read_attribute(item, path, queue)
        if leaf and element.attributes.get("type") != "parent":
            if not reservable:
                self.leaves[path] = None
            return
        for wrong, written in (("reservation", reservable), ("maxAMShare", am_share)):
            if written:
                self.fail(
                    element,
                    f"a parent queue cannot have <{wrong}>",
                    f"remove <{wrong}>, or give it to the leaves",
                    path,
                )
        self.parents[path] = None

    def read_attribute(self, item: Element, path: str, queue: dict[str, Any]) -> None:
        tag = plain_name(item.tag)
        if tag in OF_QUEUE:
            name, kind = OF_QUEUE[tag]
            value = self.value(item, kind, path)
            if dropped := DROPPED.get(tag):
                queue[dropped] = value.absolute is None
                value = value.absolute
            queue[name] = value
        elif tag == "allowPreemptionFrom":
            if trim(self.raw_text(item, path)).lower() != "true":
                queue["preemptable"] = False
        else:
            queue.setdefault("acls", {})[tag] = self.raw_text(item, path)

    # ---- placement rules

    def placement(self, element: Element) -> tuple[PlacementRule, ...]:
        if not element.children:
            self.fail(element, "<queuePlacementPolicy> is empty", "write its rules, or remove it")
        rules: list[PlacementRule] = []
        ends: list[bool] = []
        for item in element.elements():
            if item.tag.lower() != "rule":
                continue
            rule = self.placement_rule(item)
            parents = [inner for inner in item.elements() if inner.tag.lower() == "rule"]
            parent: PlacementRule | None = None
            if parents:
                if parents[-1].name() in ("reject", "nestedUserQueue"):
                    self.fail(item, f"rule {parents[-1].name()!r} cannot be a parent rule", "use another rule there")
                parent = self.placement_rule(parents[-1])
                if _rule_class(parent.name) == _rule_class(rule.name):
                    self.fail(item, "a rule and its parent rule are the same", "use another parent rule")
                if rule.name in ("default", "reject", "specified"):
                    self.fail(item, f"rule {rule.name!r} takes no parent rule", "remove the inner rule")
            elif rule.name == "nestedUserQueue":
                self.fail(item, "rule 'nestedUserQueue' needs a parent rule", "write a rule inside it")
            rules.append(dataclasses.replace(rule, parent=parent))
            ends.append(_ends(rule) and (parent is None or _ends(parent)))
        if not rules:
            return ()
        if True in ends[:-1]:
            number = ends.index(True) + 1
            self.fail(element, f"the rules after rule {number} can never be reached", "remove them or move them up")
        if not ends[-1]:
            self.fail(element, "the last rule can leave an application without a queue", "end with default or reject")
        return tuple(rules)

    def placement_rule(self, element: Element) -> PlacementRule:
        name = element.name()
        if name not in PLACEMENT_RULES:
            self.fail(
                element, f"no placement rule is called {name!r}", f"use one of {', '.join(sorted(PLACEMENT_RULES))}"
            )
        create = element.attributes.get("create", "")
        # Hadoop reads the attribute `queue` only in the rule `default`.
        queue = element.attributes.get("queue") if name == "default" else None
        return PlacementRule(name, not create or create.lower() == "true", queue)


def _rule_class(name: str) -> str:
    return "user" if name == "nestedUserQueue" else name


def _ends(rule: PlacementRule) -> bool:
    kind = PLACEMENT_RULES[rule.name]
    return rule.create if kind == "create" else kind == "yes"


def trim_queue_name(name: str) -> str:
    """Return a queue name without the surrounding white space that Hadoop trims."""
    return name.strip(_NAME_SPACE)
