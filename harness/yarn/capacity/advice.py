"""Find settings of a Capacity Scheduler's configuration that the RM accepts but that are probably mistakes.

Such settings cause applications to be rejected or to wait, or have no effect. Follows Hadoop 3.4.2 and 3.5.0
(AbstractLeafQueue, AbstractParentQueue, CSMappingPlacementRule, YarnAuthorizationProvider).
"""

from __future__ import annotations

import re
from typing import Protocol

from harness.model.queues import ROOT
from harness.yarn.capacity.amounts import MEMORY, VCORES
from harness.yarn.capacity.loading.reading import Node, Reading
from harness.yarn.fair.acls import read_access_list
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.traps import USUAL_MASTER_MB
from harness.yarn.fair.values import Spot

_ACLS = ("acl_submit_applications", "acl_administer_queue")
_DEFAULT_MAX = {"mb": 8192.0, "vcores": 4.0}
#: Prefix of a template's settings, after the queue's path -> the queue's setting that switches the template on.
_TEMPLATES = {
    "auto-queue-creation-v2": "auto-queue-creation-v2",
    "leaf-queue-template": "auto-create-child-queue",
}


class _Places(Protocol):
    """The check of a file, which receives the findings."""

    def spot(self, key: str, queue: str | None = None) -> Spot | None:
        """Return the position of the property of this name; None if it is not set."""
        ...


def find_traps(check: _Places, root: Node, reading: Reading) -> None:
    """Report the traps of a configuration, except for queues whose values could not be read."""
    found = _Traps(check, root, reading)
    for look in (
        found.priorities,
        found.stopped,
        found.no_default,
        found.no_capacity,
        found.no_applications,
        found.no_weight,
        found.masters,
        found.labels,
        found.access_lists,
        found.unreachable,
        found.flexible_sums,
        found.largest_containers,
        found.idle_templates,
        found.never_created,
    ):
        look()


class _Traps:
    def __init__(self, check: _Places, root: Node, reading: Reading) -> None:
        self.check, self.root, self.reading = check, root, reading
        self.nodes = list(root.tree())
        #: Refused properties, whose consequences are not reported again.
        self.refused = {refusal.key for refusal in reading.refusals}
        self._totals: dict[tuple[str, str], float] = {}
        #: Queues already reported to accept no application.
        self.rejecting: set[str] = set()

    def report(
        self, key: str, queue: str | None, code: str, what: str, hint: str, *, near: str = "root.queues"
    ) -> None:
        """Report a finding at a property, or at ``near`` if the property is not set."""
        spot = self.check.spot(key, queue) or self.check.spot(near, queue)
        if spot is not None:
            spot.report(code, what, hint)

    def priorities(self) -> None:
        for node in self.nodes:
            priority = self.reading.number(f"{node.path}.priority", 0, queue=node.path)
            if not priority or node.parent is None or node.parent.ordering != "utilization":
                continue
            self.report(
                f"{node.path}.priority",
                node.path,
                "YF301",
                f"its priority {priority:g} has no effect: {node.parent.path} orders its queues by utilization",
                f"set {node.parent.path}.ordering-policy to priority-utilization, or remove it",
            )

    def stopped(self) -> None:
        # If a child's state is RUNNING, the mistake is reported at the child.
        if self.root.stopped and any(found.code == "YF131" for found in self.reading.refusals):
            return
        if self.root.stopped:
            self.report("root.state", ROOT, "YF302", "root is STOPPED: every submission is rejected", "write RUNNING")
            return
        for node in self.nodes:
            if node.path == f"{ROOT}.default" and node.stopped:
                self.report(
                    "root.default.state",
                    node.path,
                    "YF316",
                    "it is STOPPED, and applications that name no queue go there",
                    "write RUNNING, or map them elsewhere",
                )

    def no_default(self) -> None:
        settings = self.reading.settings
        if self.root.kind != "parent" or len([n for n in self.nodes if n.name == "default" and n.parent]) == 1:
            return
        mappings = ("queue-mappings", "mapping-rule-json", "mapping-rule-json-file")
        rules = ("yarn.scheduler.queue-placement-rules", "yarn.scheduler.queue-placement-rules.app-name")
        if any(settings.raw(key) for key in (*mappings, *rules)):
            return
        self.report(
            "root.queues",
            ROOT,
            "YF303",
            "there is no root.default and no mapping: applications that name no queue are rejected",
            "add a queue called default, or queue-mappings for everybody (u:%user:QUEUE)",
        )

    def no_capacity(self) -> None:
        for node in self.nodes:
            if node.parent is None or node.broken or self.reading.settings.raw(f"{node.path}.capacity") is not None:
                continue
            if f"{node.parent.path}.queues" in self.refused:
                continue
            self.report(
                f"{node.path}.capacity",
                node.path,
                "YF219",
                "no capacity: the RM gives it none",
                "give it one",
                near=f"{node.parent.path}.queues",
            )

    # ---- shares

    def _share(self, node: Node, label: str = "") -> float | None:
        """Return a queue's share of the cluster; None if it depends on the cluster's size, or could not be read."""
        share = 1.0
        at = node
        while at.parent is not None:
            if at.broken or at.absolute or at.minimum.get(label) or f"{at.parent.path}.queues" in self.refused:
                return None
            weight = at.weight.get(label, -1.0)
            if weight >= 0:
                total = self._total_weight(at.parent, label)
                part = weight / total if total > 1e-6 else 0.0
            else:
                part = at.percent.get(label, 0.0)
            share = float32(share * part)
            at = at.parent
        return share

    def _total_weight(self, parent: Node, label: str) -> float:
        """Return the sum of the children's weights, cached."""
        key = (parent.path, label)
        if key not in self._totals:
            self._totals[key] = sum(max(0.0, child.weight.get(label, -1.0)) for child in parent.children)
        return self._totals[key]

    def no_applications(self) -> None:
        reading = self.reading
        everywhere = reading.number("global-queue-max-application", -1) or -1
        most = reading.number("maximum-applications", 10_000)
        # A limit of less than 1 for the whole cluster is a separate mistake.
        if everywhere > 0 or most is None or most < 1 or not reading.legacy:
            return
        found: list[tuple[Node, float]] = []
        for node in self.nodes:
            own = reading.number(f"{node.path}.maximum-applications", -1, queue=node.path)
            if not node.leaf or own is None or own >= 0:
                continue
            shares = [self._share(node, label) for label in node.labels]
            known = [share for share in shares if share is not None]
            if len(known) < len(shares) or not known or not most * max(known) < 1:
                continue
            found.append((node, max(known)))
        self.rejecting = {node.path for node, _ in found}
        if not found:
            return
        node, share = found[0]
        others = f"; so it is for {len(found) - 1} more queues" if len(found) > 1 else ""
        self.report(
            f"{node.path}.capacity",
            node.path,
            "YF304",
            f"its limit of applications is {most:g} x its share of {share:.3g} of the cluster: 0, so every submission "
            f"is rejected{others}",
            f"set {node.path}.maximum-applications, or global-queue-max-application for all",
            near=f"{node.parent.path}.queues" if node.parent else "root.queues",
        )

    def no_weight(self) -> None:
        for node in self.nodes:
            refused = f"{node.path}.capacity" in self.refused
            if node.parent is None or node.path in self.rejecting or node.broken or refused:
                continue
            zero = "" in node.absolute and not node.minimum.get("")
            written = self.reading.text(f"{node.path}.capacity") or ""
            if node.weight.get("", -1.0) == 0 or (zero and re.search(r"\bmemory(-mb)?=0+\b", written)):
                what = f"{'capacity' if zero else 'weight'} 0: served after all others"
                self.report(f"{node.path}.capacity", node.path, "YF310", what, "raise it if that is not meant")

    def masters(self) -> None:
        usual = self.reading.number("maximum-am-resource-percent", 0.1, "float")
        for node in self.nodes:
            key = f"{node.path}.maximum-am-resource-percent"
            part = self.reading.number(key, 0.1 if usual is None else usual, "float", node.path)
            memory = node.minimum.get("", {}).get(MEMORY, 0)
            if node.leaf and memory and part and 0 < part * memory < USUAL_MASTER_MB:
                self.report(
                    key,
                    node.path,
                    "YF306",
                    f"ApplicationMasters may hold {part:g} of {memory} MB, less than a usual one "
                    f"({USUAL_MASTER_MB} MB): one runs at a time",
                    "raise maximum-am-resource-percent",
                    near=f"{node.path}.capacity",
                )

    def labels(self) -> None:
        for node in self.nodes:
            if "*" in node.accessible:
                continue
            for label in sorted(node.labels - {""} - node.accessible):
                if node.percent.get(label, 0.0) > 0 or node.weight.get(label, -1.0) > 0 or node.minimum.get(label):
                    self.report(
                        f"{node.path}.accessible-node-labels.{label}.capacity",
                        node.path,
                        "YF307",
                        f"label {label} is not accessible to it: this capacity has no effect",
                        f"add {label} to {node.path}.accessible-node-labels",
                    )

    # ---- access

    def access_lists(self) -> None:
        for acl in _ACLS:
            without: dict[str, list[str]] = {}
            for node in self.nodes:
                text = self.reading.text(f"{node.path}.{acl}")
                if node.parent is None or text is None or read_access_list(text).everybody:
                    continue
                opened = self._open_above(node, acl)
                if opened is not None:
                    without.setdefault(opened, []).append(node.path)
            for opened, paths in without.items():
                others = f", and those of {len(paths) - 1} more queues" if len(paths) > 1 else ""
                self.report(
                    f"{paths[0]}.{acl}",
                    paths[0],
                    "YF308",
                    f"{acl} has no effect{others}: {opened} is open to everybody",
                    f"set {opened}.{acl} to those who may use every queue; one space: nobody",
                )

    def _open_above(self, node: Node, acl: str) -> str | None:
        at = node.parent
        while at is not None:
            text = self.reading.text(f"{at.path}.{acl}")
            if (text is None and at.parent is None) or (text is not None and read_access_list(text).everybody):
                return at.path
            at = at.parent
        return None

    # ---- limits

    def unreachable(self) -> None:
        for node in self.nodes:
            if node.parent is None:
                continue
            for name in ("max-parallel-apps",):
                own_key, above_key = f"{node.path}.{name}", f"{node.parent.path}.{name}"
                if self.reading.settings.raw(own_key) is None or self.reading.settings.raw(above_key) is None:
                    continue
                own = self.reading.number(own_key, 0, "exact", node.path)
                above = self.reading.number(above_key, 0, "exact", node.parent.path)
                if own is not None and above is not None and own > above:
                    self.report(
                        own_key,
                        node.path,
                        "YF311",
                        f"{name} {own:g} is above the {above:g} of {node.parent.path}",
                        f"lower it, or raise {above_key}",
                    )

    def flexible_sums(self) -> None:
        if self.reading.legacy:
            return
        for node in self.nodes:
            shares = [child.percent.get("", 0.0) for child in node.children]
            plain = [not child.minimum.get("") and child.weight.get("", -1.0) < 0 for child in node.children]
            if not shares or not all(plain) or any(child.broken for child in node.children):
                continue
            total = 100 * sum(shares)
            vectors = any((self.reading.text(f"{c.path}.capacity") or "").startswith("[") for c in node.children)
            if abs(total - 100) > 0.05 and not vectors:
                what = f"its children's capacities sum to {total:g}"
                self.report(f"{node.path}.queues", node.path, "YF312", what, "make them sum to 100 if that is meant")

    def largest_containers(self) -> None:
        for node in self.nodes:
            for ending in _DEFAULT_MAX:
                key = f"{node.path}.maximum-allocation-{ending}"
                if self.reading.settings.raw(key) is not None and self.reading.number(key, -1, queue=node.path) == 0:
                    what = f"maximum-allocation-{ending} 0: every container is larger, so every submission is rejected"
                    self.report(key, node.path, "YF317", what, "write the largest container, or remove it")
            key = f"{node.path}.maximum-allocation"
            for name, most in self.reading.container(key).items():
                if most == 0 and name in (MEMORY, VCORES):
                    what = f"maximum-allocation of 0 {name}: every container is larger, so every submission is rejected"
                    self.report(key, node.path, "YF317", what, "write the largest container, or remove it")
        if self.reading.site_known:
            return
        for node in self.nodes:
            for ending, usual in _DEFAULT_MAX.items():
                key = f"{node.path}.maximum-allocation-{ending}"
                limit = f"yarn.scheduler.maximum-allocation-{ending}"
                amount = self.reading.number(key, -1, queue=node.path)
                if amount is not None and amount > usual and self.reading.settings.raw(limit) is None:
                    self.report(
                        key,
                        node.path,
                        "YF314",
                        f"maximum-allocation-{ending} {amount:g} is above Hadoop's default for {limit}, {usual:g}",
                        f"check that {limit} is at least {amount:g} (--yarn-site)",
                    )

    # ---- queues that applications create

    def idle_templates(self) -> None:
        of_queues = self._templates()
        for node in self.nodes:
            told: set[str] = set()
            for key, way in of_queues.get(node.path, ()):
                if way in told:
                    continue
                if not self.reading.settings.flag(f"{node.path}.{way}.enabled"):
                    told.add(way)
                    self.report(
                        key,
                        node.path,
                        "YF318",
                        f"its template has no effect: applications create no queues below it ({way}.enabled)",
                        f"set {node.path}.{way}.enabled to true, or remove the template",
                    )

    def _templates(self) -> dict[str, list[tuple[str, str]]]:
        """Return queue path -> (setting of a template, setting that must be enabled for it) in the file's order."""
        found: dict[str, list[tuple[str, str]]] = {}
        for key in self.reading.settings.own:
            for begin, way in _TEMPLATES.items():
                at = key.find(f".{begin}.")
                while at > 0:
                    rest = key[at + 1 :]
                    if rest.removeprefix("auto-queue-creation-v2.").partition(".")[0].endswith("template"):
                        found.setdefault(key[:at], []).append((key, way))
                    at = key.find(f".{begin}.", at + 1)
        return found

    def never_created(self) -> None:
        if not self.reading.legacy:
            return
        for node in self.nodes:
            weights = [child.weight.get("", -1.0) >= 0 for child in node.children]
            if node.kind == "creating" and weights and not any(weights) and not any(c.broken for c in node.children):
                self.report(
                    f"{node.path}.auto-queue-creation-v2.enabled",
                    node.path,
                    "YF319",
                    "no queue is ever created below it: its children's capacities are not weights",
                    "give its children weights (3w), or remove auto-queue-creation-v2",
                )
