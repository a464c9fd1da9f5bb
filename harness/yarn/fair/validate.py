"""What is wrong with an allocation file, all of it, with lines: above all what the ResourceManager gets wrong silently.

An error is anything that the RM refuses, ignores, clips, cuts or reads differently from what is written; a warning is
what it does as written but hardly as meant. Reading a file as the RM does is `parse`'s business.
"""

from __future__ import annotations

import re

from harness.base.errors import nearest
from harness.model.queues import ROOT, ResourceLimit
from harness.yarn.fair.dom import Element, Text
from harness.yarn.fair.elements import (
    ACL_ELEMENTS,
    OF_FILE,
    OF_QUEUE,
    OF_ROOT,
    QUEUE_ELEMENTS,
    TIMEOUT,
    TOP_ELEMENTS,
    plain_name,
)
from harness.yarn.fair.javanum import trim
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import PLACEMENT_RULES, read_document, trim_queue_name
from harness.yarn.fair.resources import resource_text
from harness.yarn.fair.values import ValueCheck, Verdict


def validate_allocations(xml: str | bytes, *, source: str = "allocation file") -> Verdict:
    """Every mistake in an allocation file. Nothing is raised for its content."""
    check = _Check()

    def look(root: Element) -> None:
        check.top(root)
        for queue in QueueManager(read_document(root, source=source)).refused():
            check.error(
                check.lines.get(queue.path, root.line),
                queue.path,
                f"the ResourceManager does not make this queue: {queue.why}",
                "give parents the policy drf or fair, drf only below drf, fifo only to leaves",
            )

    return check.verdict_on(xml, source, look)


class _Check(ValueCheck):
    # ---- elements in general

    def unknown(self, element: Element, known: frozenset[str], queue: str | None) -> None:
        close = nearest(element.tag, sorted(known))
        what = f"the ResourceManager ignores the element <{element.tag}>"
        self.error(element.line, queue, what, f"write <{close}>" if close else "remove it")

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
                f"<{element.tag}> appears twice (line {seen[key].line} too), the last one counts",
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
            self.once(element, seen, plain_name(tag), None)
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
            old = ("fairSharePreemptionTimeout", "fairSharePreemptionTimeout")
            for default, tag in (*OF_ROOT.items(), old):
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
        kind = TIMEOUT if element.tag == "fairSharePreemptionTimeout" else OF_FILE[plain_name(element.tag)][1]
        if self.value(kind, element, text, None) == "fifo":
            self.error(element.line, None, "the default policy cannot be fifo", "give fifo to single leaves")

    def user(self, element: Element, users: dict[str, int]) -> None:
        self.attributes(element, ("name",), None)
        self.stray_text(element, None)
        name = element.name()
        if not trim(name) or name != trim(name):
            self.error(
                element.line, None, f"user name {name!r} is blank or has white space at its ends", "write the name"
            )
        if name in users:
            self.error(element.line, None, f"user {name!r} appears twice (line {users[name]} too)", "keep one")
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
                line, path, f"the queue appears twice (line {siblings[name]} too), its settings are mixed", "keep one"
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
            self.once(item, seen, plain_name(tag), path)
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
        tag = plain_name(item.tag)
        if tag in OF_QUEUE:
            value = self.value(OF_QUEUE[tag][1], item, text, path)
            if isinstance(value, ResourceLimit):
                found[tag] = value
        elif tag in ACL_ELEMENTS:
            self.acl(item.line, f"<{tag}>", text, path)
        elif trim(text).lower() not in ("true", "false"):
            self.error(item.line, path, f"{trim(text)!r} counts as false here", "write true or false")

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
            close = nearest(name, sorted(PLACEMENT_RULES))
            mend = f"write {close}" if close else f"use one of {', '.join(sorted(PLACEMENT_RULES))}"
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
                    f"queue={target!r} is not a leaf queue: root.default is used",
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
