"""What is wrong with a capacity-scheduler.xml, all of it, with lines: above all what the RM says nothing of.

An error is anything that the RM refuses, ignores or reads differently from what is written; a warning is what it does
as written but hardly as meant. Facts: Hadoop 3.4.2 (CapacitySchedulerConfiguration, legacy queue mode), held against
its own class by tests/oracle/test_capacity_files.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from harness.base.errors import nearest
from harness.model.queues import ROOT
from harness.yarn.capacity.properties import ENOUGH, PREFIX
from harness.yarn.capacity.queues import MOST_WEIGHT, SUM_PRECISION
from harness.yarn.fair.dom import Element, Instruction, Text
from harness.yarn.fair.javanum import float32, parse_float, parse_int, trim
from harness.yarn.fair.values import Check, Spot, Verdict

_FLAG, _WHOLE, _REAL, _TEXT = "flag", "whole", "real", "text"
#: The scheduler's own settings.
_GLOBAL = {
    "application.fail-fast": _FLAG,
    "auto-queue-creation-v2.queue-expiration-time": _WHOLE,
    "global-queue-max-application": _WHOLE,
    "lazy-preemption-enabled": _FLAG,
    "legacy-queue-mode.enabled": _FLAG,
    "mapping-rule-format": _TEXT,
    "mapping-rule-json": _TEXT,
    "mapping-rule-json-file": _TEXT,
    "max-parallel-apps": _WHOLE,
    "maximum-am-resource-percent": _REAL,
    "maximum-applications": _WHOLE,
    "minimum-user-limit-percent": _REAL,
    "multi-node-placement-enabled": _FLAG,
    "multi-node-sorting.policy": _TEXT,
    "multi-node-sorting.policy.names": _TEXT,
    "node-locality-delay": _WHOLE,
    "per-node-heartbeat.maximum-container-assignments": _WHOLE,
    "per-node-heartbeat.maximum-offswitch-assignments": _WHOLE,
    "per-node-heartbeat.multiple-assignments-enabled": _FLAG,
    "queue-mappings": _TEXT,
    "queue-mappings-override.enable": _FLAG,
    "queue.auto.refresh.monitoring-interval": _WHOLE,
    "rack-locality-additional-delay": _WHOLE,
    "rack-locality-full-reset": _FLAG,
    "reservations-continue-look-all-nodes": _FLAG,
    "resource-calculator": _TEXT,
    "schedule-asynchronously.enable": _FLAG,
    "schedule-asynchronously.maximum-pending-backlogs": _WHOLE,
    "schedule-asynchronously.maximum-threads": _WHOLE,
    "schedule-asynchronously.scheduling-interval-ms": _WHOLE,
    "skip-allocate-on-nodes-with-reserved-containers": _FLAG,
    "user-limit-factor": _REAL,
    "user-metrics.enable": _FLAG,
    "user.max-parallel-apps": _WHOLE,
    "workflow-priority-mappings": _TEXT,
    "workflow-priority-mappings-override.enable": _FLAG,
}
#: A queue's settings.
_QUEUE = {
    "accessible-node-labels": _TEXT,
    "acl_administer_queue": _TEXT,
    "acl_administer_reservations": _TEXT,
    "acl_application_max_priority": _TEXT,
    "acl_list_reservations": _TEXT,
    "acl_submit_applications": _TEXT,
    "acl_submit_reservations": _TEXT,
    "allow-zero-capacity-sum": _FLAG,
    "auto-create-child-queue.enabled": _FLAG,
    "auto-create-child-queue.fail-on-exceeding-parent-capacity": _FLAG,
    "auto-create-child-queue.management-policy": _TEXT,
    "auto-create-child-queue.max-queues": _WHOLE,
    "auto-queue-creation-v2.enabled": _FLAG,
    "auto-queue-creation-v2.max-queues": _WHOLE,
    "auto-queue-creation-v2.maximum-queue-depth": _WHOLE,
    "auto-queue-creation-v2.queue-auto-removal.enable": _FLAG,
    "average-capacity": _REAL,
    "capacity": _TEXT,
    "default-application-lifetime": _WHOLE,
    "default-application-priority": _WHOLE,
    "default-node-label-expression": _TEXT,
    "disable_preemption": _FLAG,
    "instantaneous-max-capacity": _REAL,
    "intra-queue-preemption.disable_preemption": _FLAG,
    "max-parallel-apps": _WHOLE,
    "maximum-allocation": _TEXT,
    "maximum-allocation-mb": _WHOLE,
    "maximum-allocation-vcores": _WHOLE,
    "maximum-am-resource-percent": _REAL,
    "maximum-application-lifetime": _WHOLE,
    "maximum-applications": _WHOLE,
    "maximum-capacity": _TEXT,
    "minimum-user-limit-percent": _REAL,
    "multi-node-sorting.policy": _TEXT,
    "ordering-policy": _TEXT,
    "ordering-policy.exclusive-enforced-partitions": _TEXT,
    "ordering-policy.fair.enable-size-based-weight": _FLAG,
    "priority": _WHOLE,
    "queues": _TEXT,
    "reservable": _FLAG,
    "reservation-agent": _TEXT,
    "reservation-enforcement-window": _WHOLE,
    "reservation-move-on-expiry": _FLAG,
    "reservation-planner": _TEXT,
    "reservation-policy": _TEXT,
    "reservation-window": _WHOLE,
    "show-reservations-as-queues": _FLAG,
    "state": _TEXT,
    "user-limit-factor": _REAL,
}
#: Families of settings with a name of the administrator's inside.
_OPEN = re.compile(
    r"accessible-node-labels\.[^.]+\.(capacity|maximum-capacity|max(imum)?-am-resource-percent)"
    r"|user-settings\.\S+\.weight|(leaf-queue-template|auto-queue-creation-v2\.(leaf-|parent-)?template)\..+"
    r"|ordering-policy\.\S+"
)
_OPEN_GLOBAL = re.compile(r"user\..+\.max-parallel-apps|multi-node-sorting\.policy\..+")
_VECTOR = re.compile(r"\[[\w.,\-_= /]+\]")
_CALCULATOR = "org.apache.hadoop.yarn.util.resource."
_LEAF_POLICIES = ("fifo", "fair", "fifo-with-partitions", "fifo-for-pending-apps")
_PARENT_POLICIES = ("utilization", "priority-utilization")


def is_configuration(data: bytes) -> bool:
    """Whether this is a Hadoop configuration file rather than an allocation file: by its outermost element."""
    found = re.search(
        rb"<\s*([A-Za-z_][\w.-]*)", re.sub(rb"<!--.*?-->|<\?.*?\?>|<!.*?>", b"", data[:65_536], flags=re.S)
    )
    return found is not None and found[1] == b"configuration"


def validate_properties(data: str | bytes, *, source: str = "capacity-scheduler.xml") -> Verdict:
    """Every mistake in a Capacity Scheduler's file. Nothing is raised for its content."""
    check = _Check()
    return check.verdict_on(data, source, check.file)


def validate_values(values: Mapping[str, str], *, source: str = "the configuration store") -> Verdict:
    """Every mistake in properties that are in no file: a finding's line is its property's position from 1."""
    root = Element("configuration", {}, 1)
    for line, (name, value) in enumerate(values.items(), start=1):
        parts: list[Element | Text | Instruction] = [
            Element("name", {}, line, [Text(name)]),
            Element("value", {}, line, [Text(value)]),
        ]
        root.children.append(Element("property", {}, line, parts))
    check = _Check()
    return check.verdict_of(root, source, check.file)


class _Check(Check):
    def __init__(self) -> None:
        super().__init__()
        #: Property, without its prefix -> its text, and the element that says it.
        self.values: dict[str, tuple[str, Element]] = {}
        self.children: dict[str, list[str]] = {}

    def file(self, root: Element) -> None:
        if root.tag != "configuration":
            self.at(root).error(f"the root element is <{root.tag[:40]}>", "begin with <configuration>")
            return
        self._stray(root, "configuration")
        for item in root.elements():
            self._property(item)
        self._tree(ROOT)
        if not self._parent(ROOT):
            self.at(root).error("no queues below root: the RM does not start", "name some in root.queues")
        for key, (text, item) in self.values.items():
            self._setting(key, text, item)
        for path in self._queues():
            self._siblings(path)

    # ---- properties

    def _stray(self, element: Element, tag: str) -> None:
        if any(isinstance(child, Text) and child.data.strip() for child in element.children):
            self.at(element).error(f"text between the elements of <{tag}> is ignored", "remove it")

    def _property(self, item: Element) -> None:
        spot = self.at(item)
        if item.tag != "property":
            mend = "write its properties here" if item.tag.endswith("include") else "write <property>"
            spot.error(f"<{item.tag[:40]}> is not read as a property", mend)
            return
        self._stray(item, "property")
        said: dict[str, str] = dict(item.attributes)
        for part in item.elements():
            if part.tag not in ("name", "value", "final", "source", "description", "tag"):
                self.at(part).error(f"<{part.tag[:40]}> is ignored", "write <name> and <value>")
            said[part.tag] = part.all_text()
        name = trim(said.get("name", ""))
        if not name or "value" not in said:
            spot.error("a property without name or value is ignored", "give it both, or remove it")
            return
        if not name.startswith(PREFIX):
            spot.warn(f"{name[:80]} is not the Capacity Scheduler's", "write it into yarn-site.xml")
            return
        key = name.removeprefix(PREFIX)
        if key in self.values:
            spot.error(f"{name[:80]} appears twice, the last counts", "remove one")
        self.values[key] = (said["value"], item)

    def text(self, key: str, default: str = "") -> str:
        return self.values[key][0] if key in self.values else default

    # ---- the tree

    def _tree(self, path: str) -> None:
        key = f"{path}.queues"
        if key not in self.values or path.count(".") > 64:
            return
        text, item = self.values[key]
        spot = self.at(item, path)
        names = [name.strip() for name in text.split(",")]
        for name in names:
            if not name:
                spot.error("an empty name in its list of queues", "remove the comma")
            elif "." in name or names.count(name) > 1:
                what = "has a dot" if "." in name else "appears twice"
                spot.error(f"child {name[:60]!r} {what}", "name each child once, without its parent")
        self.children[path] = [name for name in dict.fromkeys(names) if name and "." not in name]
        for name in self.children[path]:
            self._tree(f"{path}.{name}")

    def _queues(self) -> list[str]:
        return [ROOT, *(f"{path}.{name}" for path, names in self.children.items() for name in names)]

    def _parent(self, path: str) -> bool:
        creates = f"{path}.auto-queue-creation-v2.enabled"
        return bool(self.children.get(path)) or self.text(creates).strip().lower() == "true"

    def _setting(self, key: str, text: str, item: Element) -> None:
        if key == ROOT or not key.startswith(ROOT + "."):
            kind = _GLOBAL.get(key)
            if kind is not None:
                self._kind(self.at(item), text, kind, key)
            elif not _OPEN_GLOBAL.fullmatch(key):
                self._unknown(self.at(item), key, list(_GLOBAL))
            return
        # The longest queue whose path the key begins with.
        owner = max((path for path in self._queues() if key.startswith(path + ".")), key=len, default=ROOT)
        name = key.removeprefix(owner + ".")
        kind = _QUEUE.get(name)
        if kind is not None:
            self._kind(self.at(item, owner), text, kind, name)
        elif not _OPEN.fullmatch(name):
            ending = next((known for known in _QUEUE if name.endswith("." + known)), None)
            if ending is not None:
                queue = key.removesuffix("." + ending)
                close = nearest(queue, self._queues())
                mend = f"write {close}" if close else f"name it in {queue.rpartition('.')[0]}.queues"
                self.at(item, queue).error(f"no such queue: {ending} is ignored", mend)
            else:
                self._unknown(self.at(item, owner), name, list(_QUEUE))

    def _unknown(self, spot: Spot, name: str, known: list[str]) -> None:
        close = nearest(name, known)
        mend = f"write {close}" if close else "remove it"
        spot.error(f"{name[:80]} is not a setting of the Capacity Scheduler, it is ignored", mend)

    # ---- values

    def _kind(self, spot: Spot, text: str, kind: str, name: str) -> None:
        if "${" in text:
            spot.warn(f"{name} refers to another property", "write the value, so that it can be checked")
            return
        words, queue = trim(text), spot.queue
        if kind == _FLAG and words.lower() not in ("true", "false"):
            spot.error(f"{name} is {words[:40]!r}, which is taken for its default", "write true or false")
        elif kind == _WHOLE:
            self._number(spot, words, name, parse_int)
        elif kind == _REAL:
            self._number(spot, words, name, parse_float)
        elif name == "capacity" and queue is not None:
            self._capacity(spot, queue, text)
        elif name == "maximum-capacity" and queue is not None:
            self._maximum(spot, queue, text)
        elif name == "ordering-policy" and queue is not None:
            known = _PARENT_POLICIES if self._parent(queue) or queue == ROOT else _LEAF_POLICIES
            # Another policy is given by its class.
            if words not in known and "." not in words:
                spot.error(f"ordering-policy {words[:40]!r} is none here", f"write {' or '.join(known[:2])}")
        elif name == "state" and words.upper() not in ("RUNNING", "STOPPED"):
            spot.error(f"state {words[:40]!r} is none", "write RUNNING or STOPPED")
        elif name == "resource-calculator" and not words.startswith(_CALCULATOR):
            spot.warn(f"resource-calculator {words[:80]} is not Hadoop's own", "check the class's name")
        elif name.startswith("acl_"):
            spot.acl(name, text)

    def _number(self, spot: Spot, text: str, name: str, parse: Callable[[str], float]) -> None:
        try:
            value = parse(text)
        except ValueError as error:
            spot.error(f"{name}: {error}", "write a plain number")
            return
        if name == "maximum-am-resource-percent":
            if not value >= 0:
                spot.error(f"{name} {text} lets one ApplicationMaster run at a time", "write 0 to 1")
            elif 1 < value < ENOUGH:
                mend = f"1 is the whole queue, {ENOUGH:g} no limit"
                spot.warn(f"{name} {text} is above 1: it is a part, not per cent", mend)
        elif name == "user-limit-factor" and not (value > 0 or value == -1):
            spot.error(f"{name} {text}: no user gets anything", "write -1 for no limit")
        elif name == "minimum-user-limit-percent" and not 0 <= value <= 100:
            spot.error(f"{name} {text} is not within 0 and 100", "write per cent")
        elif name in ("max-parallel-apps", "user.max-parallel-apps") and value < 1:
            spot.error(f"{name} {text}: no application ever runs", "write 1 or more, or remove it")
        elif name == "maximum-applications" and value <= 0:
            spot.error(f"{name} {text}: the RM refuses it", "write 1 or more")
        elif name == "global-queue-max-application" and value < 1:
            spot.error(f"{name} {text} is ignored: the limit follows the share", "write 1 or more")

    def _capacity(self, spot: Spot, path: str, text: str) -> None:
        if path == ROOT:
            if trim(text) not in ("100", "100.0") and not text.endswith("w"):
                spot.error("root has the whole cluster: another capacity is ignored", "remove it")
            return
        words = trim(text)
        if words.startswith("["):
            if not _VECTOR.fullmatch(words) or words != text:
                spot.error(f"capacity {text[:60]!r} is not read", "write [memory=8192,vcores=8]")
            return
        try:
            value = parse_float(words.removesuffix("w"))
        except ValueError:
            mend = "write a weight without white space around it" if words.endswith("w") else "write 2w, or 40"
            spot.error(f"capacity {text[:60]!r} is not a number", mend)
            return
        if words.endswith("w"):
            if words != text:
                spot.error("white space around a weight: the RM refuses it", f"write {words}")
            elif math.isnan(value) or value < 0:
                spot.error(f"weight {words} is taken for none: the queue has no capacity", "write 1w")
            elif value > MOST_WEIGHT:
                spot.error(f"weight {words} is above {MOST_WEIGHT:g}: the RM refuses it", "scale them down")
            elif value == 0:
                spot.warn("weight 0: served after all others", "raise it if that is not meant")
        elif not 0 <= value <= 100:
            spot.error(f"capacity {words} is not within 0 and 100", "write per cent of the parent")

    def _maximum(self, spot: Spot, path: str, text: str) -> None:
        words = trim(text)
        if words.startswith("["):
            if not self.text(f"{path}.capacity").startswith("["):
                spot.error("an absolute maximum beside another capacity is not read as meant", "per cent")
            return
        try:
            value = parse_float(words)
        except ValueError as error:
            spot.error(f"maximum-capacity: {error}", "write per cent of the parent")
            return
        if not 0 <= value <= 100:
            spot.error(f"maximum-capacity {words} is not within 0 and 100", "write per cent of the parent")
            return
        own = self._plain(path)
        if own is not None and value < own:
            spot.error(f"maximum-capacity {words} is below its capacity", "raise it, or lower the other")

    def _plain(self, path: str) -> float | None:
        """A queue's percentage; None where it has something else, or nothing that can be read."""
        try:
            return parse_float(trim(self.text(f"{path}.capacity", "0")))
        except ValueError:
            return None

    def _siblings(self, path: str) -> None:
        names = [f"{path}.{name}" for name in self.children.get(path, [])]
        if not names:
            return
        spot = self.at(self.values[f"{path}.queues"][1], path)
        kinds: dict[str, list[str]] = {}
        total = 0.0
        for child in names:
            text = trim(self.text(f"{child}.capacity"))
            kind = "absolute" if text.startswith("[") else "weight" if text.endswith("w") else "percent"
            if not text:
                self.at(spot.element, child).error("no capacity: the RM gives it none", "give it one")
            kinds.setdefault(kind, []).append(child)
            total = float32(total + float32((self._plain(child) or 0.0) / 100))
        if len(kinds) > 1:
            what = ", ".join(f"{kind} ({found[0]})" for kind, found in sorted(kinds.items()))
            spot.error(f"its children mix kinds of capacities: {what}", "give them one kind")
        elif "percent" in kinds and abs(total - 1) > SUM_PRECISION:
            zero = self.text(f"{path}.allow-zero-capacity-sum").strip().lower() == "true"
            if not (total == 0 and (zero or self._plain(path) == 0)):
                spot.error(f"its children's capacities sum to {100 * total:g}", "make them sum to 100")
        if "absolute" in kinds and path != ROOT and not self.text(f"{path}.capacity").startswith("["):
            spot.error("absolute capacities below one that is not", "write the whole tree in one kind")
