"""The node labels that a queue may use, and those for which it has settings."""

from __future__ import annotations

from harness.yarn.capacity.loading.reading import LABELS, Node, Reading
from harness.yarn.fair.javanum import trim


def read_labels(reading: Reading, node: Node) -> None:
    """Read the labels that a queue may use, its default one, and those for which it has settings."""
    path, parent = node.path, node.parent
    key = f"{path}.{LABELS}"
    text = reading.text(key)
    if parent is None:
        node.accessible = frozenset("*")
    elif text is None:
        node.accessible = parent.accessible
    else:
        names = frozenset(trim(name) for name in text.split(",") if trim(name))
        node.accessible = frozenset("*") if "*" in names else names
    expression = reading.text(f"{path}.default-node-label-expression")
    if expression is not None:
        node.default_label = trim(expression)
    elif parent is not None and node.accessible >= parent.accessible:
        node.default_label = parent.default_label
    of_queues = reading.labels_of_queues
    if parent is None:
        node.labels = frozenset({"", *(label for labels in of_queues.values() for label in labels)})
        if not of_queues:
            node.labels = frozenset({""})
    else:
        node.labels = frozenset(of_queues.get(path, {""}))
        if "*" not in parent.accessible and not node.accessible <= parent.accessible:
            extra = ", ".join(sorted(node.accessible - parent.accessible))
            reading.refuse(
                "YF121",
                key,
                path,
                f"label {extra} is not accessible to its parent {parent.path}",
                f"add it to {parent.path}.{LABELS}, or remove it here",
            )
    if node.leaf:
        _check_default_label(reading, node)


def _check_default_label(reading: Reading, node: Node) -> None:
    for part in (node.default_label or "").split("&&"):
        label = trim(part)
        if label and label not in node.accessible and "*" not in node.accessible:
            reading.refuse(
                "YF122",
                reading.inherited_key(node, "default-node-label-expression"),
                node.path,
                f"its default label {label!r} is not accessible to it",
                f"add {label} to {node.path}.{LABELS}",
            )
