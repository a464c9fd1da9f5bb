"""Checks of siblings' capacities: they must be of one type, with a sum that Hadoop accepts."""

from __future__ import annotations

import re
from collections.abc import Collection

from harness.model.queues import ROOT
from harness.yarn.capacity.amounts import MEMORY, amounts_text, any_amount, compare
from harness.yarn.capacity.loading.reading import LABELS, Node, Reading, When
from harness.yarn.capacity.queues import SUM_PRECISION
from harness.yarn.fair.javanum import float32, trim


def _kind_of(reading: Reading, queues: Collection[Node], labels: Collection[str], owner: Node) -> str | None:
    """Return the capacity type of these queues; record a refusal and return None if they mix types."""
    percent = weight = absolute = False
    for queue in queues:
        for label in labels:
            percent |= queue.percent.get(label, 0.0) > 0
            weight |= queue.weight.get(label, -1.0) >= 0
            # Amounts of zero make the type absolute, too, since 3.5 (YARN-11641).
            named, some = label in queue.absolute, any_amount(queue.minimum.get(label, {}))
            if named if named != some and reading.since((3, 5)) else some:
                absolute, percent = True, False
    first = next(iter(queues), None)
    if first is not None and first.path != ROOT and percent + weight + absolute > 1:
        return None
    return "weight" if weight or first is None else "absolute" if absolute else "percent"


def check_children(reading: Reading, node: Node, children: list[Node], when: When) -> None:
    """Check that the children have capacities of one type, and that these fit the queue's own.

    Reports nothing if a value of one of them could not be read.
    """
    if not reading.legacy or node.broken or any(child.broken for child in children):
        return
    path, key = node.path, f"{node.path}.queues"
    labels = sorted(node.labels)
    kind, own = _kind_of(reading, children, labels, node), _kind_of(reading, [node], labels, node)
    if kind is None or own is None:
        kinds: dict[str, str] = {}
        for child in children if kind is None else [node]:
            for label in labels:
                named = _named_kind(child, label)
                if named:
                    kinds.setdefault(named, child.path)
        what = ", ".join(f"{name} ({queue})" for name, queue in sorted(kinds.items()))
        reading.refuse(
            "YF140",
            key,
            path,
            f"its children mix kinds of capacities: {what}",
            "give them capacities of one kind",
            when,
        )
        return
    if "absolute" in (kind, own):
        if kind != own and path != ROOT:
            if _refuse_unread_memory(reading, [node, *children], labels, when):
                return
            reading.refuse(
                "YF141",
                key,
                path,
                "absolute capacities below one that is not"
                if kind == "absolute"
                else "it has an absolute capacity, and its children have not"
                if children
                else "it has an absolute capacity, and no refresh works while it has no children",
                "write the whole tree in one kind of capacity" if children else "name children, or give it a weight",
                when,
            )
            return
        _check_absolute_sum(reading, node, children, labels, when)
    if kind == "percent":
        for label in labels:
            _check_percent_sum(reading, node, children, label, own, when)


def _named_kind(queue: Node, label: str) -> str:
    if any_amount(queue.minimum.get(label, {})) or label in queue.absolute:
        return "absolute"
    if queue.weight.get(label, -1.0) >= 0:
        return "weight"
    return "percent" if queue.percent.get(label, 0.0) > 0 else ""


def _check_absolute_sum(reading: Reading, node: Node, children: list[Node], labels: list[str], when: When) -> None:
    for label in labels:
        total: dict[str, int] = {}
        for child in children:
            for name, amount in child.minimum.get(label, {}).items():
                total[name] = total.get(name, 0) + amount
        has = node.minimum.get(label, {})
        cluster = reading.cluster if when == "refresh" and not label else None
        less = compare(has, total, dominant=reading.dominant, cluster=cluster, types=reading.types) < 0
        if any_amount(has) and less:
            reading.refuse(
                "YF142",
                reading.labelled(node.path, label, "capacity"),
                node.path,
                f"its children's capacities sum to {amounts_text(total)}, above its own "
                f"{_written(reading, node, label)}",
                "raise it, or lower the children's",
                when,
            )


def _refuse_unread_memory(reading: Reading, queues: Collection[Node], labels: Collection[str], when: When) -> bool:
    """Refuse absolute capacities whose memory Hadoop does not read, which causes later refusals.

    Return whether any is.
    """
    found = False
    for queue in queues:
        for label in labels:
            key = reading.labelled(queue.path, label, "capacity")
            text = reading.text(key)
            if label not in queue.absolute or any_amount(queue.minimum.get(label, {})) or text is None:
                continue
            if re.search(r"\bmemory(?:-mb)?=0+\b", text):
                continue
            found = True
            what = f"capacity {text!r:.70} names no memory that Hadoop reads"
            hint = "write [memory=8192,vcores=8], with units like Gi"
            reading.refuse("YF113", key, queue.path, what, hint, when)
    return found


def _written(reading: Reading, node: Node, label: str) -> str:
    """Return an absolute capacity as written, followed by what Hadoop reads if that differs."""
    text = trim(reading.text(reading.labelled(node.path, label, "capacity")) or "")[:80]
    read = amounts_text(node.minimum.get(label, {}))
    same = text.replace(" ", "").replace(f"{MEMORY}=", "memory=") == read
    return text if same else f"{text}, which is {read}"


def _check_percent_sum(reading: Reading, node: Node, children: list[Node], label: str, own: str, when: When) -> None:
    total = 0.0
    for child in children:
        total = float32(total + child.percent.get(label, 0.0))
    has = abs(node.percent.get(label, 0.0))
    zero_allowed = reading.settings.flag(f"{node.path}.allow-zero-capacity-sum")
    where = f" for label {label}" if label else ""
    if abs(float32(1 - total)) > SUM_PRECISION:
        if abs(total) > SUM_PRECISION:
            what = f"its children's capacities{where} sum to {100 * total:g}"
            parts = abs(100 * total - 1) < 0.001
            hint = "they are per cent: write 60 for 0.6" if parts else "make them sum to 100"
            _refuse_sum(reading, node, children, label, what, hint, when)
        elif own == "percent" and has > SUM_PRECISION and not zero_allowed:
            if _refuse_unread_memory(reading, children, [label], when):
                return
            what = f"its children's capacities{where} sum to 0"
            hint = "make them sum to 100"
            if label:
                hint = f"give them capacities{where} that sum to 100, or remove what is set for this label"
            _refuse_sum(reading, node, children, label, what, hint, when)
    elif own == "percent" and has <= 0 and not zero_allowed:
        what = f"its capacity{where} is 0, and its children's sum to 100"
        _refuse_sum(reading, node, children, label, what, f"give {node.path} a capacity{where}", when)


def _refuse_sum(
    reading: Reading, node: Node, children: list[Node], label: str, what: str, hint: str, when: When
) -> None:
    if label and any(found.code == "YF137" and f".{label}." in found.key for found in reading.refusals):
        # The template has a setting for a label that the queue does not have, which has been refused already.
        return
    key = f"{node.path}.queues"
    if label:
        settings = [reading.labelled(child.path, label, "capacity") for child in [node, *children]]
        key = next((one for one in settings if reading.settings.raw(one) is not None), key)
        if key == f"{node.path}.queues":
            key = next((k for k in reading.settings.own if f".{LABELS}.{label}." in k), key)
            owner = key.partition(f".{LABELS}.")[0]
            what = f"label {label} has settings, and no capacity"
            hint = f"give {owner} and the queues above it a capacity for {label}, or remove what is set for it"
    reading.refuse("YF144" if label else "YF143", key, node.path, what, hint, when)
