"""What is wrong with an allocation file, all of it, with lines: above all what the ResourceManager gets wrong silently.

An error is anything that the RM refuses, ignores, clips, cuts or reads differently from what is written; a warning is
what it does as written but hardly as meant. Reading a file as the RM does is `parse`'s business.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.model.errors import InputError
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX, ROOT, ResourceLimit
from harness.yarn.allocation.dom import Element, Text, parse_xml
from harness.yarn.allocation.javanum import float32, parse_double, parse_float, parse_int, parse_long, trim
from harness.yarn.allocation.manager import queue_tree
from harness.yarn.allocation.parse import (
    ACL_ELEMENTS,
    PLACEMENT_RULES,
    QUEUE_ELEMENTS,
    TOP_ELEMENTS,
    parse_allocations,
    parse_policy,
    trim_queue_name,
)
from harness.yarn.allocation.render import resource_text
from harness.yarn.allocation.resources import parse_resources

_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
#: The notations of a resource that mean what they say; anything else that Hadoop takes has a part that it drops.
_CLEAR_RESOURCES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NUMBER}\s*%",
        rf"{_NUMBER}\s*%\s*memory\s*,\s*{_NUMBER}\s*%\s*cpu",
        rf"{_NUMBER}\s*%\s*cpu\s*,\s*{_NUMBER}\s*%\s*memory",
        r"[0-9]+\s*mb\s*[, ]\s*[0-9]+\s*vcores",
        r"[0-9]+\s*vcores\s*[, ]\s*[0-9]+\s*mb",
    )
]
_MAX_TIMEOUT_S = JAVA_LONG_MAX // 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake: where (line from 1, and queue if it is in one), what, and how to mend it."""

    line: int
    queue: str | None
    what: str
    mend: str

    def text(self, source: str) -> str:
        """The finding as one line."""
        place = f"{source}:{self.line}" + (f": queue {self.queue}" if self.queue else "")
        return f"{place}: {self.what}; {self.mend}"


@dataclass(slots=True)
class Verdict:
    """All findings of a file, by line."""

    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        return not self.errors


def validate_allocations(xml: str | bytes, *, source: str = "allocation file") -> Verdict:
    """Every mistake in an allocation file. Nothing is raised for its content."""
    check = _Check()
    try:
        root = parse_xml(xml, source=source)
    except InputError as error:
        check.verdict.errors.append(_from_error(error, source))
        return check.verdict
    check.top(root)
    try:
        file = parse_allocations(xml, source=source)
    except InputError as error:
        refused = _from_error(error, source)
        if refused.line not in {found.line for found in check.verdict.errors}:
            check.verdict.errors.append(refused)
    else:
        for queue in queue_tree(file).refused:
            check.error(
                check.lines.get(queue.path, root.line),
                queue.path,
                f"the ResourceManager does not make this queue: {queue.why}",
                "give parents the policy drf or fair, drf only below drf, fifo only to leaves",
            )
    check.verdict.errors.sort(key=lambda found: found.line)
    check.verdict.warnings.sort(key=lambda found: found.line)
    return check.verdict


def _from_error(error: InputError, source: str) -> Finding:
    match = re.match(r":(\d+)(?:: queue (.*))?$", (error.where or "").removeprefix(source), re.DOTALL)
    line, queue = (int(match[1]), match[2]) if match else (1, None)
    return Finding(line, queue, error.what, error.mend or "mend the file")


class _Check:
    def __init__(self) -> None:
        self.verdict = Verdict()
        self.lines: dict[str, int] = {}

    def error(self, line: int, queue: str | None, what: str, mend: str) -> None:
        self.verdict.errors.append(Finding(line, queue, what, mend))

    def warn(self, line: int, queue: str | None, what: str, mend: str) -> None:
        self.verdict.warnings.append(Finding(line, queue, what, mend))

    # ---- elements in general

    def unknown(self, element: Element, known: frozenset[str], queue: str | None) -> None:
        close = difflib.get_close_matches(element.tag, sorted(known), 1)
        what = f"the ResourceManager ignores the element <{element.tag}>"
        self.error(element.line, queue, what, f"write <{close[0]}>" if close else "remove it")

    def stray_text(self, element: Element, queue: str | None) -> None:
        text = trim(element.all_text())
        if text:
            self.error(
                element.line,
                queue,
                f"text {text[:40]!r} stands directly in <{element.tag}>, where it is ignored",
                "put it into an element, or remove it",
            )

    def attributes(self, element: Element, known: tuple[str, ...], queue: str | None) -> None:
        for name in element.attributes:
            if name not in known:
                mend = f"known here: {', '.join(known)}" if known else "remove it"
                self.error(element.line, queue, f"<{element.tag}> has an unknown attribute {name!r}", mend)

    def text(self, element: Element, queue: str | None) -> str | None:
        """The element's text; None (and an error) if it is not plain text."""
        self.attributes(element, (), queue)
        if len(element.children) == 1 and isinstance(element.children[0], Text):
            return element.children[0].data
        if not element.children:
            what, mend = f"<{element.tag}> is empty, which the ResourceManager fails on", "write a value, or remove it"
        else:
            what, mend = f"<{element.tag}> holds more than text, of which a part is ignored", "write plain text"
        self.error(element.line, queue, what, mend)
        return None

    def once(self, element: Element, seen: dict[str, Element], key: str, queue: str | None) -> None:
        if key in seen:
            self.error(
                element.line,
                queue,
                f"<{element.tag}> stands twice (line {seen[key].line} too), the last one counts",
                "keep one",
            )
        seen[key] = element

    # ---- the top level

    def top(self, root: Element) -> None:
        if root.tag != "allocations":
            self.error(root.line, None, f"the top element is <{root.tag}>", "write <allocations>")
            return
        self.attributes(root, (), None)
        self.stray_text(root, None)
        seen: dict[str, Element] = {}
        queues = [element for element in root.elements() if element.tag in ("queue", "pool")]
        names: dict[str, int] = {}
        users: dict[str, int] = {}
        for element in root.elements():
            tag = element.tag
            if tag not in TOP_ELEMENTS:
                self.unknown(element, TOP_ELEMENTS, None)
                continue
            if tag in ("queue", "pool"):
                name = element.name()
                if trim_queue_name(name).lower() == ROOT:
                    if name != ROOT:
                        self.error(
                            element.line,
                            None,
                            f"queue name {name!r} is not the root queue to the RM",
                            f'write name="{ROOT}"',
                        )
                    elif len(queues) > 1:
                        self.error(
                            element.line, ROOT, "other queues stand beside the root queue", "put them inside root"
                        )
                    self.queue(element, None, names)
                else:
                    self.queue(element, ROOT, names)
                continue
            if tag == "user":
                self.user(element, users)
                continue
            key = "defaultQueueSchedulingPolicy" if tag == "defaultQueueSchedulingMode" else tag
            self.once(element, seen, key, None)
            if tag == "queuePlacementPolicy":
                self.placement(element)
            else:
                self.default(element)
        old = seen.get("fairSharePreemptionTimeout")
        if old is not None and "defaultFairSharePreemptionTimeout" in seen:
            self.error(
                old.line,
                None,
                "<fairSharePreemptionTimeout> is ignored beside <defaultFairSharePreemptionTimeout>",
                "keep one",
            )
        self.hidden_defaults(root, seen)

    def hidden_defaults(self, root: Element, seen: dict[str, Element]) -> None:
        for queue in root.elements():
            if queue.tag not in ("queue", "pool") or queue.name() != ROOT:
                continue
            own = {element.tag for element in queue.elements()}
            for tag, default in (
                ("minSharePreemptionTimeout", "defaultMinSharePreemptionTimeout"),
                ("fairSharePreemptionTimeout", "defaultFairSharePreemptionTimeout"),
                ("fairSharePreemptionTimeout", "fairSharePreemptionTimeout"),
                ("fairSharePreemptionThreshold", "defaultFairSharePreemptionThreshold"),
            ):
                if tag in own and default in seen:
                    self.error(
                        seen[default].line,
                        None,
                        f"<{default}> is ignored: the root queue has its own <{tag}>",
                        "keep one of them",
                    )

    def default(self, element: Element) -> None:
        text = self.text(element, None)
        if text is None:
            return
        match element.tag:
            case "defaultQueueSchedulingPolicy" | "defaultQueueSchedulingMode":
                policy = self.policy(element, text, None)
                if policy == "fifo":
                    self.error(element.line, None, "the default policy cannot be fifo", "give fifo to single leaves")
            case "queueMaxResourcesDefault":
                self.resources(element, text, None, percent=True)
            case "userMaxAppsDefault" | "queueMaxAppsDefault":
                self.apps(element, text, None)
            case "queueMaxAMShareDefault":
                self.am_share(element, text, None)
            case "defaultFairSharePreemptionThreshold":
                self.threshold(element, text, None)
            case tag if tag.endswith("Timeout"):
                self.timeout(element, text, None)
            case _:
                if not trim(text):
                    self.error(element.line, None, f"<{element.tag}> is blank", "write a class name, or remove it")

    def user(self, element: Element, users: dict[str, int]) -> None:
        self.attributes(element, ("name",), None)
        self.stray_text(element, None)
        name = element.name()
        if not trim(name) or name != trim(name):
            self.error(
                element.line, None, f"user name {name!r} is blank or has white space at its ends", "write the name"
            )
        if name in users:
            self.error(element.line, None, f"user {name!r} stands twice (line {users[name]} too)", "keep one")
        users[name] = element.line
        seen: dict[str, Element] = {}
        for item in element.elements():
            if item.tag != "maxRunningApps":
                self.unknown(item, frozenset({"maxRunningApps"}), None)
                continue
            self.once(item, seen, item.tag, None)
            text = self.text(item, None)
            if text is not None:
                self.apps(item, text, None)
        if not seen:
            self.error(element.line, None, f"user {name!r} has no limit", "write <maxRunningApps>, or remove it")

    # ---- queues

    def queue(self, element: Element, parent: str | None, siblings: dict[str, int]) -> None:
        self.attributes(element, ("name", "type"), parent)
        name = trim_queue_name(element.name())
        path = f"{parent}.{name}" if parent else name
        line = element.line
        if not name:
            self.error(line, parent, "a queue has no name", 'write <queue name="...">')
        elif name != element.name():
            self.error(line, path, f"queue name {element.name()!r} has white space at its ends", "remove it")
        elif re.search(r"\s", name):
            self.error(line, path, f"queue name {name!r} contains white space", "rename it")
        if "." in name:
            self.error(
                line, parent, f"queue name {name!r} contains a dot", "nest the queue inside its parent's element"
            )
        if parent is not None and name.lower() == ROOT and parent != ROOT:
            self.warn(line, path, f"a queue below the root is called {name!r}", "rename it")
        if name in siblings:
            self.error(
                line, path, f"the queue stands twice (line {siblings[name]} too), its settings are mixed", "keep one"
            )
        siblings[name] = line
        self.lines.setdefault(path, line)
        kind = element.attributes.get("type")
        if kind not in (None, "parent"):
            self.error(line, path, f"type={kind!r} is ignored", 'write type="parent", or nothing for a leaf')
        self.stray_text(element, path)
        seen: dict[str, Element] = {}
        children: dict[str, int] = {}
        found: dict[str, ResourceLimit] = {}
        for item in element.elements():
            tag = item.tag
            if tag in ("queue", "pool"):
                self.queue(item, path, children)
                continue
            if tag not in QUEUE_ELEMENTS:
                if "queue".endswith(tag):
                    self.error(item.line, path, f"the ResourceManager takes <{tag}> for <queue>", "write <queue>")
                    self.queue(item, path, children)
                else:
                    self.unknown(item, QUEUE_ELEMENTS, path)
                continue
            self.once(item, seen, "schedulingPolicy" if tag == "schedulingMode" else tag, path)
            if tag == "reservation":
                continue
            text = self.text(item, path)
            if text is not None:
                self.attribute(item, text, path, found)
        is_parent = bool(children) or kind == "parent"
        if is_parent:
            for tag in ("maxAMShare", "reservation"):
                if tag in seen:
                    self.error(seen[tag].line, path, f"a parent queue cannot have <{tag}>", "give it to its leaves")
        if path == ROOT and "weight" in seen:
            self.warn(seen["weight"].line, path, "a weight of the root queue has no effect", "remove it")
        self.minimum_fits(seen, found, path)

    def minimum_fits(self, seen: dict[str, Element], found: dict[str, ResourceLimit], path: str) -> None:
        minimum = found["minResources"].absolute if "minResources" in found else None
        maximum = found["maxResources"].absolute if "maxResources" in found else None
        if minimum is None or maximum is None or maximum.vcores < 0:
            return
        if not minimum.fits_in(maximum):
            self.error(
                seen["minResources"].line,
                path,
                f"<minResources> ({resource_text(minimum)}) is greater than <maxResources> ({resource_text(maximum)}), "
                "which is then raised",
                "lower the minimum or raise the maximum",
            )

    def attribute(self, item: Element, text: str, path: str, found: dict[str, ResourceLimit]) -> None:
        tag = item.tag
        match tag:
            case "weight":
                self.weight(item, text, path)
            case "minResources" | "maxResources" | "maxChildResources" | "maxContainerAllocation":
                limit = self.resources(
                    item,
                    text,
                    path,
                    percent=tag in ("maxResources", "maxChildResources"),
                    minimum=tag == "minResources",
                )
                if limit is not None:
                    found[tag] = limit
            case "maxRunningApps":
                self.apps(item, text, path)
            case "maxAMShare":
                self.am_share(item, text, path)
            case "minSharePreemptionTimeout" | "fairSharePreemptionTimeout":
                self.timeout(item, text, path)
            case "fairSharePreemptionThreshold":
                self.threshold(item, text, path)
            case "schedulingPolicy" | "schedulingMode":
                self.policy(item, text, path)
            case "allowPreemptionFrom":
                if trim(text).lower() not in ("true", "false"):
                    self.error(item.line, path, f"{trim(text)!r} counts as false here", "write true or false")
            case _:
                assert tag in ACL_ELEMENTS
                self.acl(item, text, path)

    # ---- values

    def number(self, item: Element, text: str, queue: str | None, parse: Callable[[str], float]) -> float | None:
        try:
            return parse(trim(text))
        except ValueError as error:
            self.error(item.line, queue, f"<{item.tag}>: {error}", "write a plain number")
            return None

    def weight(self, item: Element, text: str, path: str) -> None:
        value = self.number(item, text, path, parse_double)
        if value is None:
            return
        if math.isnan(value):
            self.error(
                item.line, path, "the weight is NaN, on which the ResourceManager hangs", "write a finite number"
            )
        elif not (math.isfinite(value) and WEIGHT_MIN <= float32(value) <= WEIGHT_MAX):
            self.error(
                item.line,
                path,
                f"weight {trim(text)} is not between {WEIGHT_MIN:g} and {WEIGHT_MAX:g}, shares go wrong or vanish",
                "scale the weights of the siblings",
            )

    def apps(self, item: Element, text: str, queue: str | None) -> None:
        value = self.number(item, text, queue, parse_int)
        if value is not None and value < 0:
            self.error(item.line, queue, f"<{item.tag}> is negative: no application ever runs", "write 0 or more")
        elif value == 0:
            self.warn(item.line, queue, f"<{item.tag}> is 0: no application ever runs", "raise it if that is not meant")

    def am_share(self, item: Element, text: str, queue: str | None) -> None:
        value = self.number(item, text, queue, parse_float)
        if value is not None and not (0 <= value <= 1 or abs(value + 1) < 1e-4):
            effect = "it is cut to 1" if value > 1 else "no application master ever starts"
            self.error(
                item.line, queue, f"<{item.tag}> {trim(text)} is not between 0 and 1: {effect}", "write -1 for no limit"
            )
        elif value == 0:
            self.warn(item.line, queue, f"<{item.tag}> is 0: no application master ever starts", "raise it")

    def threshold(self, item: Element, text: str, queue: str | None) -> None:
        value = self.number(item, text, queue, parse_float)
        if value is not None and not 0 <= value <= 1:
            self.error(item.line, queue, f"<{item.tag}> {trim(text)} is not between 0 and 1", "write a fraction")

    def timeout(self, item: Element, text: str, queue: str | None) -> None:
        value = self.number(item, text, queue, parse_long)
        if value is not None and not 0 <= value <= _MAX_TIMEOUT_S:
            self.error(
                item.line, queue, f"<{item.tag}> {trim(text)} is negative or overflows", "write seconds, or remove it"
            )

    def policy(self, item: Element, text: str, queue: str | None) -> str | None:
        try:
            return parse_policy(trim(text))
        except ValueError as error:
            self.error(item.line, queue, f"<{item.tag}>: {error}", "write fair, drf or fifo")
            return None

    def acl(self, item: Element, text: str, path: str) -> None:
        _, _, groups = text.partition(" ")
        if any(char in text for char in "\t\r\n") or " " in groups.strip(" "):
            self.error(
                item.line, path, f"<{item.tag}>: {text[:60]!r} is not 'users groups'", "write 'u1,u2 g1,g2': one space"
            )

    def resources(
        self, item: Element, text: str, queue: str | None, *, percent: bool, minimum: bool = False
    ) -> ResourceLimit | None:
        text = trim(text)
        tag, line = item.tag, item.line
        try:
            limit = parse_resources(text, missing=0 if minimum else JAVA_LONG_MAX)
        except ValueError as error:
            self.error(line, queue, f"<{tag}>: {error}", "write '4096 mb, 4 vcores'" + (" or '50%'" if percent else ""))
            return None
        if limit.absolute is None:
            if not percent:
                effect = "the minimum is then 0" if minimum else "there is then no limit"
                self.error(line, queue, f"<{tag}> in percent is ignored: {effect}", "write '4096 mb, 4 vcores'")
                return None
            if max(limit.memory_fraction, limit.vcores_fraction) > 1:
                self.warn(line, queue, f"<{tag}> is more than the whole cluster ({text})", "100% is all there is")
        elif limit.absolute.vcores < 0:
            self.error(
                line,
                queue,
                f"<{tag}> names no vcores, which the ResourceManager reads as -1 vcores: nothing ever runs",
                f"write vcores too (at most {JAVA_INT_MAX})",
            )
            return limit
        if "=" in text:
            names = [trim(part.partition("=")[0]) for part in text.split(",") if part]
            clear = len(names) == len(set(names)) and all(part.count("=") == 1 for part in text.split(","))
            amounts = [
                trim(part.partition("=")[2]) for part in text.split(",") if trim(part.partition("=")[0]) == "vcores"
            ]
            clear = clear and ("%" in text or all(int(amount) <= JAVA_INT_MAX for amount in amounts))
        else:
            clear = any(pattern.fullmatch(text) for pattern in _CLEAR_RESOURCES)
        if not clear:
            read = resource_text(limit)
            self.error(line, queue, f"<{tag}>: {text[:60]!r} is read as {read}, the rest is dropped", f"write '{read}'")
        return limit

    # ---- placement rules

    def placement(self, element: Element) -> None:
        self.attributes(element, (), None)
        self.stray_text(element, None)
        rules = 0
        for item in element.elements():
            if item.tag.lower() != "rule":
                self.unknown(item, frozenset({"rule"}), None)
                continue
            rules += 1
            self.rule(item)
        if not rules:
            self.error(element.line, None, "<queuePlacementPolicy> has no rules and is ignored", "write rules")

    def rule(self, element: Element, depth: int = 0) -> None:
        name = element.name()
        known = ("name", "create", "queue") if name == "default" else ("name", "create")
        self.attributes(element, known, None)
        self.stray_text(element, None)
        if name not in PLACEMENT_RULES:
            close = difflib.get_close_matches(name, sorted(PLACEMENT_RULES), 1)
            mend = f"write {close[0]}" if close else f"use one of {', '.join(sorted(PLACEMENT_RULES))}"
            self.error(element.line, None, f"no placement rule is called {name!r}", mend)
        create = element.attributes.get("create", "true")
        if create.lower() not in ("true", "false"):
            self.error(element.line, None, f"create={create!r} counts as false here", "write true or false")
        target = element.attributes.get("queue")
        if name == "default" and target is not None:
            parts = target.split(".")
            if any(not part or re.search(r"\s", part) for part in parts) or parts == [ROOT]:
                self.error(
                    element.line,
                    None,
                    f"queue={target!r} is no leaf queue: root.default is used",
                    "write a path like root.a",
                )
        inner = [item for item in element.elements() if item.tag.lower() == "rule"]
        for item in element.elements():
            if item.tag.lower() != "rule":
                self.unknown(item, frozenset({"rule"}), None)
        if len(inner) > 1 or (inner and depth):
            self.error(inner[0].line, None, "only one parent rule counts, and it has none itself", "keep one")
        for item in inner:
            self.rule(item, depth + 1)
