"""What is wrong with an allocation file, all of it, with lines: above all what the ResourceManager gets wrong silently.

An error is anything that the RM refuses, ignores, clips, cuts or reads differently from what is written; a warning is
what it does as written but hardly as meant. Reading a file as the RM does is `parse`'s business.
"""

from __future__ import annotations

import re

from harness.base.errors import nearest
from harness.model.queues import ROOT, ResourceLimit
from harness.yarn.fair.dom import Element
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
from harness.yarn.fair.values import Check, Spot, Verdict


def validate_allocations(xml: str | bytes, *, source: str = "allocation file") -> Verdict:
    """Every mistake in an allocation file. Nothing is raised for its content."""
    check = _Check()

    def look(root: Element) -> None:
        check.top(root)
        for queue in QueueManager(read_document(root, source=source)).refused():
            check.at(check.places.get(queue.path, root), queue.path).error(
                f"the ResourceManager does not make this queue: {queue.why}",
                "give parents the policy drf or fair, drf only below drf, fifo only to leaves",
            )

    return check.verdict_on(xml, source, look)


class _Check(Check):
    def __init__(self) -> None:
        super().__init__()
        #: Where each queue stands.
        self.places: dict[str, Element] = {}

    def top(self, root: Element) -> None:
        spot = self.at(root)
        if root.tag != "allocations":
            spot.error(f"the top element is <{root.tag}>", "write <allocations>")
            return
        spot.attributes()
        spot.stray_text()
        seen: dict[str, Element] = {}
        queues = [element for element in root.elements() if element.tag in ("queue", "pool")]
        names: dict[str, int] = {}
        users: dict[str, int] = {}
        for element in root.elements():
            tag, spot = element.tag, self.at(element)
            if tag not in TOP_ELEMENTS:
                spot.unknown(TOP_ELEMENTS)
            elif tag in ("queue", "pool"):
                name = element.name()
                if trim_queue_name(name).lower() == ROOT:
                    if name != ROOT:
                        spot.error(f"queue name {name!r} is not the root queue to the RM", f'write name="{ROOT}"')
                    elif len(queues) > 1:
                        at_root = self.at(element, ROOT)
                        at_root.error("other queues stand beside the root queue", "put them inside root")
                    self.queue(element, None, names)
                else:
                    self.queue(element, ROOT, names)
            elif tag == "user":
                self.user(spot, users)
            else:
                spot.once(seen, plain_name(tag))
                if tag == "queuePlacementPolicy":
                    self.placement(spot)
                else:
                    self.default(spot)
        old = seen.get("fairSharePreemptionTimeout")
        if old is not None and "defaultFairSharePreemptionTimeout" in seen:
            what = "<fairSharePreemptionTimeout> is ignored beside <defaultFairSharePreemptionTimeout>"
            self.at(old).error(what, "keep one")
        self.hidden_defaults(root, seen)

    def hidden_defaults(self, root: Element, seen: dict[str, Element]) -> None:
        for queue in root.elements():
            if queue.tag not in ("queue", "pool") or queue.name() != ROOT:
                continue
            own = {element.tag for element in queue.elements()}
            old = ("fairSharePreemptionTimeout", "fairSharePreemptionTimeout")
            for default, tag in (*OF_ROOT.items(), old):
                if tag in own and default in seen:
                    what = f"<{default}> is ignored: the root queue has its own <{tag}>"
                    self.at(seen[default]).error(what, "keep one of them")

    def default(self, spot: Spot) -> None:
        text, tag = spot.text(), spot.element.tag
        if text is None:
            return
        kind = TIMEOUT if tag == "fairSharePreemptionTimeout" else OF_FILE[plain_name(tag)][1]
        if spot.value(kind, text) == "fifo":
            spot.error("the default policy cannot be fifo", "give fifo to single leaves")

    def user(self, spot: Spot, users: dict[str, int]) -> None:
        spot.attributes("name")
        spot.stray_text()
        name = spot.element.name()
        if not trim(name) or name != trim(name):
            spot.error(f"user name {name!r} is blank or has white space at its ends", "write the name")
        if name in users:
            spot.error(f"user {name!r} appears twice (line {users[name]} too)", "keep one")
        users[name] = spot.element.line
        seen: dict[str, Element] = {}
        for item in spot.element.elements():
            inner = self.at(item)
            if item.tag != "maxRunningApps":
                inner.unknown(frozenset({"maxRunningApps"}))
                continue
            inner.once(seen, item.tag)
            if (text := inner.text()) is not None:
                inner.apps(text)
        if not seen:
            spot.error(f"user {name!r} has no limit", "write <maxRunningApps>, or remove it")

    # ---- queues

    def queue(self, element: Element, parent: str | None, siblings: dict[str, int]) -> None:
        name = trim_queue_name(element.name())
        path = f"{parent}.{name}" if parent else name
        above, spot = self.at(element, parent), self.at(element, path)
        above.attributes("name", "type")
        if not name:
            above.error("a queue has no name", 'write <queue name="...">')
        elif name != element.name():
            spot.error(f"queue name {element.name()!r} has white space at its ends", "remove it")
        elif re.search(r"\s", name):
            spot.error(f"queue name {name!r} contains white space", "rename it")
        if "." in name:
            above.error(f"queue name {name!r} contains a dot", "nest the queue inside its parent's element")
        if parent is not None and name.lower() == ROOT and parent != ROOT:
            spot.warn(f"a queue below the root is called {name!r}", "rename it")
        if name in siblings:
            spot.error(f"the queue appears twice (line {siblings[name]} too), its settings are mixed", "keep one")
        siblings[name] = element.line
        self.places.setdefault(path, element)
        kind = element.attributes.get("type")
        if kind not in (None, "parent"):
            spot.error(f"type={kind!r} is ignored", 'write type="parent", or nothing for a leaf')
        spot.stray_text()
        seen: dict[str, Element] = {}
        children: dict[str, int] = {}
        found: dict[str, ResourceLimit] = {}
        for item in element.elements():
            tag, inner = item.tag, self.at(item, path)
            if tag in ("queue", "pool"):
                self.queue(item, path, children)
            elif tag not in QUEUE_ELEMENTS:
                if "queue".endswith(tag):
                    inner.error(f"the ResourceManager takes <{tag}> for <queue>", "write <queue>")
                    self.queue(item, path, children)
                else:
                    inner.unknown(QUEUE_ELEMENTS)
            else:
                inner.once(seen, plain_name(tag))
                if tag != "reservation" and (text := inner.text()) is not None:
                    self.attribute(inner, text, found)
        is_parent = bool(children) or kind == "parent"
        if is_parent:
            for tag in ("maxAMShare", "reservation"):
                if tag in seen:
                    self.at(seen[tag], path).error(f"a parent queue cannot have <{tag}>", "give it to its leaves")
        if path == ROOT and "weight" in seen:
            self.at(seen["weight"], path).warn("a weight of the root queue has no effect", "remove it")
        self.minimum_fits(seen, found, path)

    def minimum_fits(self, seen: dict[str, Element], found: dict[str, ResourceLimit], path: str) -> None:
        minimum = found["minResources"].absolute if "minResources" in found else None
        maximum = found["maxResources"].absolute if "maxResources" in found else None
        if minimum is None or maximum is None or maximum.vcores < 0:
            return
        if not minimum.fits_in(maximum):
            self.at(seen["minResources"], path).error(
                f"<minResources> ({resource_text(minimum)}) is greater than <maxResources> ({resource_text(maximum)}), "
                "which is then raised",
                "lower the minimum or raise the maximum",
            )

    def attribute(self, spot: Spot, text: str, found: dict[str, ResourceLimit]) -> None:
        tag = plain_name(spot.element.tag)
        if tag in OF_QUEUE:
            value = spot.value(OF_QUEUE[tag][1], text)
            if isinstance(value, ResourceLimit):
                found[tag] = value
        elif tag in ACL_ELEMENTS:
            spot.acl(f"<{tag}>", text)
        elif trim(text).lower() not in ("true", "false"):
            spot.error(f"{trim(text)!r} counts as false here", "write true or false")

    # ---- placement rules

    def placement(self, spot: Spot) -> None:
        spot.attributes()
        spot.stray_text()
        if not self.rules(spot):
            spot.error("<queuePlacementPolicy> has no rules and is ignored", "write rules")

    def rules(self, spot: Spot, depth: int = 0) -> list[Spot]:
        """The rules inside, checked each."""
        found = []
        for item in map(self.at, spot.element.elements()):
            if item.element.tag.lower() == "rule":
                found.append(item)
            else:
                item.unknown(frozenset({"rule"}))
        for item in found:
            self.rule(item, depth)
        return found

    def rule(self, spot: Spot, depth: int) -> None:
        name = spot.element.name()
        spot.attributes("name", "create", *(["queue"] if name == "default" else []))
        spot.stray_text()
        if name not in PLACEMENT_RULES:
            close = nearest(name, sorted(PLACEMENT_RULES))
            mend = f"write {close}" if close else f"use one of {', '.join(sorted(PLACEMENT_RULES))}"
            spot.error(f"no placement rule is called {name!r}", mend)
        create = spot.element.attributes.get("create", "true")
        if create.lower() not in ("true", "false"):
            spot.error(f"create={create!r} counts as false here", "write true or false")
        target = spot.element.attributes.get("queue")
        if name == "default" and target is not None:
            parts = target.split(".")
            if any(not part or re.search(r"\s", part) for part in parts) or parts == [ROOT]:
                spot.error(f"queue={target!r} is not a leaf queue: root.default is used", "write a path like root.a")
        inner = self.rules(spot, depth + 1)
        if len(inner) > 1 or (inner and depth):
            inner[0].error("only one parent rule counts, and it has none itself", "keep one")
