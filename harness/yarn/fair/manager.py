"""The queues that a ResourceManager creates from allocation files: creation, reload, ad hoc queues, removal.

This module implements the parts of Hadoop 3.4.2's QueueManager and FSQueue that do not involve applications. Its
callers know whether a queue is empty. A queue that the file defines twice, or as both a leaf and a parent, has the same
result as in Hadoop, including hash orders. There is no ``root.default`` unless the file or an application names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.model.queues import (
    ROOT,
    UNLIMITED,
    AllocationFile,
    Queue,
    QueuePolicy,
    QueueSettings,
    QueueTree,
    RefusedQueue,
    ResourceLimit,
    ensure_root_prefix,
)
from harness.model.resources import UNBOUNDED
from harness.yarn.fair.javanum import hash_set_order

_DEFAULT_PREFIX = ROOT + ".default."


@dataclass(slots=True)
class _Node:
    path: str
    parent: _Node | None
    leaf: bool
    policy: QueuePolicy
    children: list[_Node] = field(default_factory=list)
    dynamic: bool = True
    max_limit: ResourceLimit = UNLIMITED


#: Setting that a queue inherits if the file does not set it -> Hadoop's value for "not set", which root has.
_INHERITED = {
    "min_share_preemption_timeout_ms": -1,
    "fair_share_preemption_timeout_ms": -1,
    "fair_share_preemption_threshold": -1.0,
}


def is_child_policy_allowed(parent: QueuePolicy, child: QueuePolicy) -> bool:
    """Return whether a parent's policy allows a child's: no drf below fair, and no child below fifo."""
    return parent == "drf" or (parent == "fair" and child != "drf")


class QueueManager:
    """The queues that result from a sequence of allocation files.

    Parameters
    ----------
    allocations : the file that the RM starts with.

    ``is_empty`` (path -> whether it has no application, and none on the way to it) is called only for leaves, and only
    when queues change; without it every queue counts as empty.
    """

    def __init__(self, allocations: AllocationFile) -> None:
        self.allocations = AllocationFile()
        self._root = _Node(ROOT, None, leaf=False, policy="fair", dynamic=False)
        self._nodes: dict[str, _Node] = {ROOT: self._root}
        self._waiting: list[tuple[str, bool]] = []
        self._refused: dict[str, str] = {}
        self.load(allocations)
        self.limit_ad_hoc()

    def load(self, allocations: AllocationFile, *, is_empty: Callable[[str], bool] = lambda path: True) -> None:
        """(Re)load the allocation file (AllocationReloadListener.onReload)."""
        before = set(self.allocations.configured_leaves) | set(self.allocations.configured_parents)
        self.allocations = allocations
        self._refused = {}
        if not self._set_policies(self._root):
            self._refused[ROOT] = (
                "the scheduling policies of existing queues do not fit together, some keep their old one"
            )
        for leaf, names in ((True, allocations.configured_leaves), (False, allocations.configured_parents)):
            for name in hash_set_order(list(names)):
                if self._remove_incompatible(name, leaf, is_empty) is False:
                    self._waiting.append((name, leaf))
                elif (made := self._get(name, leaf)) is not None:
                    made.dynamic = False
        for node in self._nodes.values():
            node.max_limit = allocations.max_resources(node.path)
        for name in before - set(allocations.configured_leaves) - set(allocations.configured_parents):
            if name in self._nodes:
                self._nodes[name].dynamic = True

    def limit_ad_hoc(self) -> bool:
        """After a load, apply parents' `maxChildResources` to their ad hoc queues.

        Return whether there are such queues.

        Hadoop computes the steady shares before this step (FairScheduler.AllocationReloadListener, applyChildDefaults).
        """
        found = False
        for node in self._nodes.values():
            if node.parent is not None and (limit := self._ad_hoc_limit(node.path, node.parent)) is not None:
                node.max_limit, found = limit, True
        return found

    def leaf(self, name: str, *, create: bool = True) -> str | None:
        """Return the path of a leaf by its name, creating it if needed; None if it is a parent or cannot be created."""
        path = ensure_root_prefix(name)
        node = self._get(path, leaf=True) if create else self._nodes.get(path)
        return node.path if node is not None and node.leaf else None

    def kind(self, path: str) -> Literal["leaf", "parent"] | None:
        """Return whether the queue of a full path is a leaf or a parent; None: there is none."""
        node = self._nodes.get(path)
        return None if node is None else "leaf" if node.leaf else "parent"

    def configured(self, path: str) -> bool:
        """Return whether an allocation file names the queue of this full path (FSPlacementRule.configuredQueue)."""
        node = self._nodes.get(path)
        return node is not None and not node.dynamic

    def check(self, *, is_empty: Callable[[str], bool]) -> None:
        """Remove empty ad hoc queues and retry failed changes, as Hadoop's reload thread does every 10 s."""
        parents: list[_Node] = []
        for node in list(self._nodes.values()):
            removable = node.dynamic and not node.children and node.path in self._nodes
            if removable and self._remove_if_empty(node, is_empty) and node.parent is not None and node.parent.dynamic:
                parents.append(node.parent)
        while parents:
            node = parents.pop()
            if node.path in self._nodes and self._is_empty(node, is_empty):
                self._remove(node)
                if node.parent is not None and node.parent.dynamic:
                    parents.append(node.parent)
        for task in list(self._waiting):
            removed = self._remove_incompatible(task[0], task[1], is_empty)
            if removed:
                made = self._get(*task)
                if made is not None and self.allocations.configured(task[0]):
                    made.dynamic = False
            if removed is not False:
                self._waiting.remove(task)

    def created(self) -> list[str]:
        """Return the paths of all queues in the order of creation: root first, parents before their children."""
        return list(self._nodes)

    def tree(self) -> QueueTree:
        """Return the present queues with all settings in effect."""
        queues: dict[str, Queue] = {}
        self._collect(self._root, queues)
        return QueueTree(queues, self.refused())

    def refused(self) -> tuple[RefusedQueue, ...]:
        """Return the queues of the file that are not created."""
        return tuple(RefusedQueue(path, why) for path, why in self._refused.items())

    def _collect(self, node: _Node, queues: dict[str, Queue]) -> None:
        """Collect a queue and its descendants, with all settings in effect (FSQueue.reinit)."""
        file, path = self.allocations, node.path
        said = file.settings.get(path) or QueueSettings(path)
        parent = queues[node.parent.path] if node.parent is not None else None
        inherited: dict[str, Any] = {
            name: getattr(parent, name, unset) if (own := getattr(said, name)) is None else own
            for name, unset in _INHERITED.items()
        }
        container = file.max_container_allocation(path)
        if container == UNBOUNDED and parent is not None:
            container = parent.max_container_allocation
        queues[path] = Queue(
            path=path,
            parent=parent.path if parent is not None else None,
            leaf=node.leaf,
            policy=node.policy,
            weight=file.weight(path),
            min_share=file.min_resources(path),
            max_limit=node.max_limit,
            max_child_limit=file.max_child_resources(path),
            max_container_allocation=container,
            max_running_apps=file.max_running_apps(path),
            max_am_share=file.max_am_share(path),
            preemptable=said.preemptable and (parent is None or parent.preemptable),
            dynamic=node.dynamic,
            **inherited,
        )
        for child in sorted(node.children, key=lambda child: child.path.encode("utf-16-be", "surrogatepass")):
            self._collect(child, queues)

    # ---- QueueManager's steps

    def _set_policies(self, node: _Node) -> bool:
        """Set the queues' policies up to the first mismatch (FSQueue.verifyAndSetPolicyFromConf); keep earlier ones."""
        policy = self.allocations.scheduling_policy(node.path)
        for child in node.children:
            if not is_child_policy_allowed(policy, self.allocations.scheduling_policy(child.path)):
                return False
            if not self._set_policies(child):
                return False
        node.policy = policy
        return True

    def _remove_incompatible(self, name: str, leaf: bool, is_empty: Callable[[str], bool]) -> bool | None:
        """Remove an incompatible queue.

        Return None if there is none, True if it was removed, False if it is not empty.
        """
        path = ensure_root_prefix(name)
        if path == ROOT or path.startswith(_DEFAULT_PREFIX):
            return None
        node = self._nodes.get(path)
        if node is not None:
            return None if node.leaf == leaf else self._remove_if_empty(node, is_empty)
        while "." in path:
            path = path.rpartition(".")[0]
            above = self._nodes.get(path)
            if above is not None and above.leaf:
                return self._remove_if_empty(above, is_empty)
        return None

    def _is_empty(self, node: _Node, is_empty: Callable[[str], bool]) -> bool:
        return is_empty(node.path) if node.leaf else all(self._is_empty(child, is_empty) for child in node.children)

    def _remove_if_empty(self, node: _Node, is_empty: Callable[[str], bool]) -> bool:
        if not self._is_empty(node, is_empty):
            return False
        self._remove(node)
        return True

    def _remove(self, node: _Node) -> None:
        for child in list(node.children):
            self._remove(child)
        self._nodes.pop(node.path, None)
        if node.parent is not None and node in node.parent.children:
            node.parent.children = [child for child in node.parent.children if child is not node]

    def _get(self, name: str, leaf: bool) -> _Node | None:
        """Return a queue, creating it and its ancestors if needed (QueueManager.getQueue with create)."""
        path = ensure_root_prefix(name)
        if path in self._nodes:
            return self._nodes[path]
        missing = [path]
        above = path
        while (parent := self._nodes.get(above := above.rpartition(".")[0])) is None:
            missing.insert(0, above)
        if parent.leaf:
            self._refused[path] = f"{parent.path} is a leaf"
            return None
        node: _Node | None = None
        for index, new in enumerate(missing):
            policy = self.allocations.scheduling_policy(new)
            is_leaf = leaf and index == len(missing) - 1
            if not is_child_policy_allowed(parent.policy, policy):
                self._refused[new] = (
                    f"policy {policy} is not allowed below {parent.path}, whose policy is {parent.policy}"
                )
                return None
            if not is_leaf and policy == "fifo":
                self._refused[new] = "policy fifo is for leaves only"
                return None
            node = _Node(new, parent, is_leaf, policy)
            node.max_limit = self._ad_hoc_limit(new, parent) or self.allocations.max_resources(new)
            parent.children.append(node)
            self._nodes[new] = node
            parent = node
        return node

    def _ad_hoc_limit(self, path: str, parent: _Node) -> ResourceLimit | None:
        """Return the limit that an ad hoc queue gets from its parent's limit for children; None if there is none."""
        return None if self.allocations.configured(path) else self.allocations.max_child_resources(parent.path)


def queue_tree(allocations: AllocationFile) -> QueueTree:
    """Return the queues of a freshly started ResourceManager with this file."""
    return QueueManager(allocations).tree()
