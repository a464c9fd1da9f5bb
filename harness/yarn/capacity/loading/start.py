"""Check a configuration in the order in which the RM reads it: at its start, and once more at a refresh."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.queues import ROOT
from harness.yarn.capacity.amounts import Amounts, any_amount, vector_kinds
from harness.yarn.capacity.loading.capacities import (
    check_maximum_weights,
    check_unknown_resources,
    read_amounts,
    read_capacities,
    read_limits,
)
from harness.yarn.capacity.loading.children import check_children
from harness.yarn.capacity.loading.labels import read_labels
from harness.yarn.capacity.loading.placement import check_placement
from harness.yarn.capacity.loading.queue import (
    check_largest_container,
    check_leaf,
    check_node_sorting,
    check_user_limits,
    read_lifetimes,
    read_parent_policy,
    read_state,
    read_user_weights,
)
from harness.yarn.capacity.loading.reading import HADOOP, LABELS, Node, Reading, Refusal
from harness.yarn.capacity.loading.scheduler import (
    check_cluster_wide,
    check_container_limits,
    check_monitors,
    read_calculator,
)
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.javanum import hash_set_order, trim
from harness.yarn.releases import ASSUMED

_MANAGEMENT_POLICY = (
    HADOOP + "yarn.server.resourcemanager.scheduler.capacity.queuemanagement.GuaranteedOrZeroCapacityOverTimePolicy"
)
#: Maximum depth of the queue tree, a guard against files made to exhaust the parser.
_MOST_DEPTH = 200


def find_refusals(
    values: Mapping[str, str],
    *,
    site: Mapping[str, str] | None = None,
    release: tuple[int, int] = ASSUMED,
    cluster: Amounts | None = None,
) -> list[Refusal]:
    """Return all reasons for which Hadoop refuses a configuration; empty if the RM starts and refreshes with it.

    Parameters
    ----------
    values : Mapping[str, str]
        Full name of each property of the file -> its text.
    site : Mapping[str, str] or None
        Properties of yarn-site.xml (None: unknown).
    release : tuple[int, int]
        Hadoop's release (major, minor).
    cluster : Amounts or None
        The cluster's resources at the refresh, by name (None: unknown).
    """
    reading = Reading(Settings(values, site), site=site, release=release, cluster=cluster)
    read_tree(reading)
    return reading.refusals


def read_tree(reading: Reading) -> Node | None:
    """Return the queue tree (None: there is no root), and add the RM's refusals to ``reading.refusals``."""
    check_container_limits(reading)
    check_monitors(reading)
    read_calculator(reading)
    root = _read_queue(reading, ROOT, None, 0)
    if root is not None:
        check_cluster_wide(reading)
        check_placement(reading, root)
        _check_refresh(reading, root)
    return root


def _read_queue(reading: Reading, path: str, parent: Node | None, depth: int) -> Node | None:
    settings = reading.settings
    names = settings.names(f"{path}.queues")
    reservable = settings.flag(f"{path}.reservable")
    creates = settings.flag(f"{path}.auto-create-child-queue.enabled")
    flexible = settings.flag(f"{path}.auto-queue-creation-v2.enabled")
    if not names and not creates and not flexible:
        if parent is None:
            reading.refuse(
                "YF110",
                "root.queues",
                ROOT,
                "no queues below root",
                "name some in yarn.scheduler.capacity.root.queues",
            )
            return None
        node = Node(path, parent, "plan" if reservable else "leaf")
    else:
        if reservable:
            reading.refuse(
                "YF111",
                f"{path}.reservable",
                path,
                "a queue with children cannot be reservable",
                "remove reservable",
            )
        node = Node(path, parent, "creating-v1" if creates else "creating" if flexible else "parent")
    _read_settings(reading, node)
    if depth < _MOST_DEPTH:
        for name in names:
            child = _read_queue(reading, f"{path}.{name}", node, depth + 1)
            if child is not None:
                node.children.append(child)
    if node.children:
        check_children(reading, node, node.children, "start")
        check_unknown_resources(reading, node)
    check_maximum_weights(reading, node)
    return node


def _read_settings(reading: Reading, node: Node) -> None:
    path, parent = node.path, node.parent
    if not node.leaf:
        reading.number("auto-queue-creation-v2.maximum-queue-depth", 2)
        reading.number(f"{path}.auto-queue-creation-v2.maximum-queue-depth", 2, queue=path)
    read_labels(reading, node)
    for label in sorted(node.labels):
        read_capacities(reading, node, label)
    read_limits(reading, node)
    if (
        parent is not None
        and reading.legacy
        and not node.broken
        and len({each in node.absolute for each in node.labels}) > 1
    ):
        label = next(each for each in sorted(node.labels) if (each in node.absolute) != ("" in node.absolute))
        node.broken = True
        reading.refuse(
            "YF112",
            reading.present(reading.labelled(path, label, "capacity"), f"{path}.capacity"),
            path,
            f"its capacity is {'absolute' if '' in node.absolute else 'not absolute'}, "
            f"and that of label {label} is {'not' if '' in node.absolute else ''}".rstrip(),
            "give all of its labels capacities of one kind",
        )
    check_largest_container(reading, node)
    read_state(reading, node)
    read_user_weights(reading, node)
    reading.number(f"{path}.priority", 0, queue=path)
    check_node_sorting(reading, node)
    reading.number("max-parallel-apps", 2**31 - 1)
    reading.number(f"{path}.max-parallel-apps", 2**31 - 1, "exact", path)
    read_lifetimes(reading, node)
    if node.leaf:
        check_leaf(reading, node)
    else:
        read_parent_policy(reading, node)
        if node.kind == "creating-v1":
            _check_template(reading, node)
        if node.kind == "plan":
            reading.number(f"{path}.maximum-applications", -1, queue=path)
            check_user_limits(reading, node)


def _check_template(reading: Reading, node: Node) -> None:
    """Check a queue that creates leaves from its template (``ManagedParentQueue``)."""
    path = node.path
    template = Node(f"{path}.leaf-queue-template", node, "leaf")
    template.labels = frozenset(reading.labels_of_queues.get(template.path, {""}))
    for label in sorted(template.labels):
        minimum = read_amounts(reading, template, reading.labelled(template.path, label, "capacity"))
        if any_amount(minimum) and not _is_absolute(reading, node) and not node.broken:
            reading.refuse(
                "YF136",
                reading.labelled(template.path, label, "capacity"),
                path,
                "its template has an absolute capacity, and the queue has none",
                "write per cent in the template",
            )
        read_capacities(reading, template, label, template=True)
    class_key = f"{path}.auto-create-child-queue.management-policy"
    policy = reading.text(class_key)
    if policy is not None and policy != _MANAGEMENT_POLICY and (trim(policy).startswith(HADOOP) or "." not in policy):
        reading.refuse(
            "YF103", class_key, path, f"{policy[:120]!r} is no management policy", f"write {_MANAGEMENT_POLICY}"
        )
    allowed = node.accessible | {""}
    if "*" in node.accessible:
        allowed = node.labels | {""}
    for label in sorted(template.labels - allowed):
        key = next(key for key in reading.settings.own if key.startswith(f"{template.path}.{LABELS}.{label}."))
        reading.refuse(
            "YF137",
            key,
            path,
            f"its template has a setting for label {label}, which the queue has not",
            f"give {path} a capacity for {label} too",
        )


def _is_absolute(reading: Reading, node: Node) -> bool:
    """Return whether the type is ``CapacityConfigType.ABSOLUTE_RESOURCE``."""
    if reading.legacy:
        return bool(node.absolute)
    text = reading.text(f"{node.path}.capacity")
    kinds = vector_kinds(text, root=node.parent is None, memory_needed=reading.memory_needed(text), types=reading.types)
    return kinds == {"absolute"}


def _check_refresh(reading: Reading, root: Node) -> None:
    for node in root.tree():
        extra = node.labels - node.parent.labels if node.parent is not None else frozenset()
        if reading.legacy and not node.broken and node.absolute and extra:
            label = min(extra)
            assert node.parent is not None, "root has every label"
            reading.refuse(
                "YF145",
                next(key for key in reading.settings.own if key.startswith(f"{node.path}.{LABELS}.{label}.")),
                node.path,
                f"it is absolute and has a setting for label {label}, which its parent {node.parent.path} has not",
                f"give {node.parent.path} a capacity for {label} too",
            )
        if node.kind == "creating-v1" and node.children:
            reading.refuse(
                "YF160",
                f"{node.path}.queues",
                node.path,
                "it makes queues by itself (auto-create-child-queue) and names children: the RM starts, and no "
                "refresh ever works",
                f"remove {node.path}.queues, or its auto-create-child-queue.enabled",
                "refresh",
            )
            continue
        if node.kind in ("leaf", "plan", "creating-v1"):
            continue
        # A refresh visits each child once, in the order of a HashMap of their paths, and also parents without children.
        children = {child.path: child for child in node.children}
        again = [children[path] for path in hash_set_order(list(children))]
        check_children(reading, node, again, "refresh")
