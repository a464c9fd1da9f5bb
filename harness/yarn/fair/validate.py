"""Find all mistakes in an allocation file, with line numbers, also those that the ResourceManager silently accepts.

An error is a setting that the RM refuses, ignores, limits, truncates or interprets differently from its text. A warning
is a setting that is valid but probably not intended. `parse` reads a file like the RM does.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from harness.base.errors import InputError, nearest
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
from harness.yarn.fair.resources import custom_types, resource_text
from harness.yarn.fair.traps import find_traps
from harness.yarn.fair.values import Check, Spot
from harness.yarn.findings import Verdict


def validate_allocations(
    xml: str | bytes, *, source: str = "allocation file", site: Mapping[str, str] | None = None
) -> Verdict:
    """Return every mistake in an allocation file. Never raises because of the content.

    Parameters
    ----------
    xml : str or bytes
        The document.
    source : str
        Name of the document in messages.
    site : Mapping[str, str] or None
        Properties of yarn-site.xml (None: unknown).
    """
    check = _Check()
    if site is not None:
        check.verdict.resource_types_known = True
        names = site.get("yarn.resource-types", "").split(",")
        check.verdict.resource_types = tuple(name.strip() for name in names if name.strip())

    def look(root: Element) -> None:
        if _of_spark(root):
            check.at(root).report(
                "YF003",
                "this is Spark's fairscheduler.xml, which YARN does not read",
                "give it to Spark (spark.scheduler.allocation.file), and write <queue> elements for YARN",
            )
            return
        check.top(root)
        types = (*check.verdict.resource_types, *(() if site is not None else check.types))
        try:
            file = read_document(root, conf={"yarn.resource-types": ",".join(types)}, source=source)
        except InputError as error:
            if root.tag == "allocations":
                check.refused(error, source, "YF407" if "rule" in error.what else "YF401")
            return
        # Hadoop loads the file, so values that it could not parse are defaults that the root's own settings override.
        check.verdict.findings = [
            dataclasses.replace(found, code="YF508") if found.refused else found for found in check.verdict.findings
        ]
        manager = QueueManager(file)
        for queue in manager.refused():
            check.at(check.places.get(queue.path, root), queue.path).report(
                "YF507",
                f"the ResourceManager does not make this queue: {queue.why}",
                "give parents the policy drf or fair, drf only below drf, fifo only to leaves",
            )
        find_traps(check, root, file, manager.tree())

    return check.verdict_on(xml, source, look)


def _of_spark(root: Element) -> bool:
    """Return whether the file is for Spark's scheduler: modes in capitals, and minimum shares that are one number."""
    pools = [item for item in root.elements() if item.tag == "pool"]
    inside = {part.tag for pool in pools for part in pool.elements()}
    own = {"schedulingMode", "weight", "minShare"}
    modes = [trim(p.all_text()) for pool in pools for p in pool.elements() if p.tag == "schedulingMode"]
    return (
        root.tag == "allocations"
        and bool(pools)
        and all(item.tag == "pool" for item in root.elements())
        and inside <= own
        and ("minShare" in inside or any(mode in ("FIFO", "FAIR") for mode in modes))
    )


#: Element of a pool in Hadoop 1's Fair Scheduler, which counted slots and jobs -> its replacement. Below: elements of
#: the whole file.
_POOLS_OF_HADOOP_1 = {
    "minMaps": "<minResources> in megabytes and vcores: there are no slots",
    "minReduces": "<minResources> in megabytes and vcores: there are no slots",
    "maxMaps": "<maxResources> in megabytes and vcores: there are no slots",
    "maxReduces": "<maxResources> in megabytes and vcores: there are no slots",
    "maxRunningJobs": "<maxRunningApps>, if as many applications are meant",
}
_OF_HADOOP_1 = {
    "poolMaxJobsDefault": "<queueMaxAppsDefault>, if as many applications are meant for every queue",
    "userMaxJobsDefault": "<userMaxAppsDefault>, if as many applications are meant",
    "defaultPoolSchedulingMode": "<defaultQueueSchedulingPolicy>",
}
#: Hadoop 1's element that occurs inside a queue -> the present element of a queue, if there is one.
_HADOOP_1_IN_QUEUE = {
    "maxRunningJobs": "maxRunningApps",
    "poolMaxJobsDefault": "maxRunningApps",
    "defaultPoolSchedulingMode": "schedulingPolicy",
}
#: Elements that set defaults for all queues -> the element that does the same for one queue.
_OF_DEFAULTS = {
    "defaultMinSharePreemptionTimeout": "minSharePreemptionTimeout",
    "defaultFairSharePreemptionTimeout": "fairSharePreemptionTimeout",
    "defaultFairSharePreemptionThreshold": "fairSharePreemptionThreshold",
    "defaultQueueSchedulingPolicy": "schedulingPolicy",
    "defaultQueueSchedulingMode": "schedulingPolicy",
    "queueMaxAppsDefault": "maxRunningApps",
    "queueMaxResourcesDefault": "maxResources",
    "queueMaxAMShareDefault": "maxAMShare",
}


class _Check(Check):
    def __init__(self) -> None:
        super().__init__()
        #: The location of each queue.
        self.places: dict[str, Element] = {}

    @property
    def types(self) -> tuple[str, ...]:
        """Return further resource types that the file names."""
        found = [element for place in self.places.values() for element in place.elements()]
        return tuple(dict.fromkeys(name for element in found for name in custom_types(element.all_text())))

    def unknown_at_top(self, spot: Spot, root: Element) -> None:
        """Report an unknown element directly inside <allocations>."""
        tag = spot.element.tag
        what = f"<{tag}> is of Hadoop 1's Fair Scheduler, YARN ignores it"
        if tag in _OF_HADOOP_1:
            spot.report("YF501", what, f"write {_OF_HADOOP_1[tag]}")
        elif tag in _POOLS_OF_HADOOP_1:
            spot.report("YF501", what, f"write, inside a <queue>, {_POOLS_OF_HADOOP_1[tag]}")
        elif tag in QUEUE_ELEMENTS:
            spot.report("YF517", f"<{tag}> is ignored here: it is a queue's", "move it into a <queue>")
        elif tag == "property":
            spot.report("YF501", "<property> is ignored in an allocation file", "write it into yarn-site.xml")
        else:
            spot.unknown(TOP_ELEMENTS, root)

    def unknown_in_queue(self, spot: Spot, queue: Element) -> None:
        """Report an unknown element inside a queue."""
        tag = spot.element.tag
        what = f"<{tag}> is of Hadoop 1's Fair Scheduler, YARN ignores it"
        if tag in _OF_DEFAULTS:
            spot.renamed("YF517", f"<{tag}> is ignored in a queue", _OF_DEFAULTS[tag], queue)
        elif tag in TOP_ELEMENTS:
            spot.report("YF517", f"<{tag}> is ignored in a queue", "move it out of all queues, into <allocations>")
        elif tag in _HADOOP_1_IN_QUEUE:
            spot.renamed("YF501", what, _HADOOP_1_IN_QUEUE[tag], queue)
        elif tag in _POOLS_OF_HADOOP_1:
            spot.report("YF501", what, f"write {_POOLS_OF_HADOOP_1[tag]}")
        elif tag in _OF_HADOOP_1:
            spot.report("YF501", what, f"remove it; outside of all queues, write {_OF_HADOOP_1[tag]}")
        else:
            spot.unknown(QUEUE_ELEMENTS, queue)

    def top(self, root: Element) -> None:
        spot = self.at(root)
        if root.tag != "allocations":
            spot.report("YF002", f"the top element is <{root.tag}>", "write <allocations>")
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
                self.unknown_at_top(spot, root)
            elif tag in ("queue", "pool"):
                name = element.name()
                if trim_queue_name(name).lower() == ROOT:
                    if name != ROOT:
                        spot.report(
                            "YF506", f"queue name {name!r} is not the root queue to the RM", f'write name="{ROOT}"'
                        )
                    elif len(queues) > 1:
                        at_root = self.at(element, ROOT)
                        at_root.report("YF404", "other queues stand beside the root queue", "put them inside root")
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
            self.at(old).report("YF508", what, "keep one")
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
                    self.at(seen[default]).report("YF508", what, "keep one of them")

    def default(self, spot: Spot) -> None:
        text, tag = spot.text(), spot.element.tag
        if text is None:
            return
        kind = TIMEOUT if tag == "fairSharePreemptionTimeout" else OF_FILE[plain_name(tag)][1]
        if spot.value(kind, text) == "fifo":
            spot.report("YF406", "the default policy cannot be fifo", "give fifo to single leaves")

    def user(self, spot: Spot, users: dict[str, int]) -> None:
        spot.attributes("name")
        spot.stray_text()
        name = spot.element.name()
        if not trim(name) or name != trim(name):
            spot.report("YF513", f"user name {name!r} is blank or has white space at its ends", "write the name")
        if name in users:
            spot.report("YF505", f"user {name!r} appears twice (line {users[name]} too)", "keep one")
        users[name] = spot.element.line
        seen: dict[str, Element] = {}
        for item in spot.element.elements():
            inner = self.at(item)
            if item.tag != "maxRunningApps":
                inner.unknown(frozenset({"maxRunningApps"}))
                continue
            inner.once(seen, item.tag)
            if (text := inner.text()) is not None:
                inner.apps(text, name)
        if not any(True for _ in spot.element.elements()):
            spot.report("YF513", f"user {name!r} has no limit", "write <maxRunningApps>, or remove it")

    # ---- queues

    def queue(self, element: Element, parent: str | None, siblings: dict[str, int]) -> None:
        name = trim_queue_name(element.name())
        path = (f"{parent}.{name}" if parent else name) if name else parent or ROOT
        above, spot = self.at(element, parent), self.at(element, path)
        above.attributes("name", "type")
        inside = None
        if not name:
            inside = next((item for item in element.elements() if item.tag == "name"), None)
            meant = "..." if inside is None else trim(inside.all_text())[:60]
            above.report("YF403", "a queue has no name", f'write <queue name="{meant}">')
        elif name != element.name():
            spot.report("YF506", f"queue name {element.name()!r} has white space at its ends", "remove it")
        elif re.search(r"\s", name):
            spot.report("YF617", f"queue name {name!r} contains white space", "rename it")
        if "." in name:
            what = f"queue name {name!r} contains a dot"
            above.report("YF403", what, "nest the queue inside its parent's element")
        if parent is not None and name.lower() == ROOT:
            spot.report("YF615", f"a queue below the root is called {name!r}", "rename it")
        if name in siblings:
            what = f"the queue appears twice (line {siblings[name]} too), its settings are mixed"
            spot.report("YF505", what, "keep one")
        siblings[name] = element.line
        if name:
            self.places.setdefault(path, element)
        kind = element.attributes.get("type")
        if kind not in (None, "parent"):
            spot.report("YF502", f"type={kind!r} is ignored", 'write type="parent", or nothing for a leaf')
        spot.stray_text()
        seen: dict[str, Element] = {}
        children: dict[str, int] = {}
        found: dict[str, ResourceLimit] = {}
        # Hadoop accepts every suffix of "queue" as the tag.
        is_parent = kind == "parent" or any(
            item.tag == "pool" or "queue".endswith(item.tag) for item in element.elements()
        )
        refused = ("maxAMShare", "reservation") if is_parent else ()
        for item in element.elements():
            tag, inner = item.tag, self.at(item, path)
            if item is inside:
                continue
            if tag in ("queue", "pool"):
                self.queue(item, path, children)
            elif tag not in QUEUE_ELEMENTS:
                if "queue".endswith(tag):
                    inner.report("YF501", f"the ResourceManager takes <{tag}> for <queue>", "write <queue>")
                    self.queue(item, path, children)
                else:
                    self.unknown_in_queue(inner, element)
            else:
                inner.once(seen, plain_name(tag))
                # One message is enough if the element itself is refused.
                if tag not in refused and tag != "reservation" and (text := inner.text()) is not None:
                    self.attribute(inner, text, found)
        if is_parent:
            for tag in refused:
                if tag in seen:
                    self.at(seen[tag], path).report(
                        "YF405", f"a parent queue cannot have <{tag}>", "give it to its leaves"
                    )
        if name and path == ROOT and "weight" in seen and trim(seen["weight"].all_text()) not in ("1", "1.0"):
            self.at(seen["weight"], path).report("YF616", "a weight of the root queue has no effect", "remove it")
        self.minimum_fits(seen, found, path)

    def minimum_fits(self, seen: dict[str, Element], found: dict[str, ResourceLimit], path: str) -> None:
        minimum = found["minResources"].absolute if "minResources" in found else None
        maximum = found["maxResources"].absolute if "maxResources" in found else None
        if minimum is None or maximum is None or maximum.vcores < 0:
            return
        if not minimum.fits_in(maximum):
            self.at(seen["minResources"], path).report(
                "YF512",
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
            spot.report("YF510", f"{trim(text)!r} counts as false here", "write true or false")

    # ---- placement rules

    def placement(self, spot: Spot) -> None:
        spot.attributes()
        spot.stray_text()
        if not self.rules(spot):
            spot.report("YF514", "<queuePlacementPolicy> has no rules and is ignored", "write rules")

    def rules(self, spot: Spot, depth: int = 0) -> list[Spot]:
        """Return the rules inside, after checking each."""
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
            hint = f"write {close}" if close else f"use one of {', '.join(sorted(PLACEMENT_RULES))}"
            spot.report("YF407", f"no placement rule is called {name!r}", hint)
        create = spot.element.attributes.get("create", "true")
        if create.lower() not in ("true", "false"):
            spot.report("YF514", f"create={create!r} counts as false here", "write true or false")
        target = spot.element.attributes.get("queue")
        if name == "default" and target is not None:
            parts = target.split(".")
            if any(not part or re.search(r"\s", part) for part in parts) or parts == [ROOT]:
                what = f"queue={target!r} is not a leaf queue: root.default is used"
                spot.report("YF514", what, "write a path like root.a")
        inner = self.rules(spot, depth + 1)
        if len(inner) > 1 or (inner and depth):
            inner[0].report("YF514", "only one parent rule counts, and it has none itself", "keep one")
