"""The capacities of one queue: percentages, weights, absolute resources and vectors, and their maxima."""

from __future__ import annotations

from harness.yarn.capacity.amounts import (
    MEMORY,
    VCORES,
    Amounts,
    amounts_text,
    any_amount,
    compare,
    is_absolute,
    is_vector,
    parse_absolute,
    vector_kinds,
    vector_parts,
    vector_weight,
)
from harness.yarn.capacity.loading.reading import Node, Reading
from harness.yarn.capacity.queues import MOST_WEIGHT
from harness.yarn.fair.javanum import float32, parse_float, trim
from harness.yarn.fair.resources import custom_types


def read_capacities(reading: Reading, node: Node, label: str, *, template: bool = False) -> None:
    """Read a queue's share in one partition, as a percentage of its parent and as a weight, and its maximum."""
    path, root = node.path, node.parent is None and not template
    key = reading.labelled(path, label, "capacity")
    try:
        text = reading.settings.get(key)
    except ValueError:
        node.broken = True
        text = None
    percent = _percent(reading, node, key, label, text, root)
    node.percent[label] = 0.0 if percent is None else float32(percent / 100)
    node.weight[label] = _weight(reading, node, key, label, text)
    maximum_key = reading.labelled(path, label, "maximum-capacity")
    _check_maximum(reading, node, maximum_key, label, root)
    reading.number("maximum-am-resource-percent", 0.1, "float")
    if label and not template:
        reading.number(f"{path}.maximum-am-resource-percent", 0.1, "float", path)
    reading.number(reading.labelled(path, label, "maximum-am-resource-percent"), 0.1, "float", path)
    for each in (key, maximum_key):
        if not template and not node.broken:
            _check_vector(reading, node, each)
    if not template and not root and not node.broken:
        weight = vector_weight(text, memory_needed=reading.memory_needed(text), types=reading.types)
        node.weight[label] = node.weight[label] if weight is None else weight


def _other_form(text: str | None) -> bool:
    return text is not None and (is_absolute(text) or text.endswith("w") or is_vector(text))


def _percent(reading: Reading, node: Node, key: str, label: str, text: str | None, root: bool) -> float | None:
    """Return the percentage of the parent; 0 for a weight or absolute resources, None if Hadoop throws."""
    if root:
        return 100.0
    if text is None or _other_form(text):
        return 0.0
    try:
        # Labelled capacities are trimmed by the getter, others by Float.parseFloat; the result is the same.
        value = parse_float(text)
    except ValueError:
        _unreadable(reading, node, key, text)
        return None
    if value < 0 or value > 100:
        reading.refuse(
            "YF114",
            key,
            node.path,
            f"capacity {trim(text)} is not within 0 and 100",
            "write per cent of the parent",
        )
        node.broken = True
        return None
    return value


def _unreadable(reading: Reading, node: Node, key: str, text: str) -> None:
    node.broken = True
    hint = "write 2w, 40, or [memory=8192,vcores=8]"
    if trim(text).endswith("w"):
        hint = f"write {trim(text)}, without white space around it"
    elif text.strip().endswith("%"):
        hint = f"write {text.strip().rstrip('% ')}, without the sign"
    elif trim(text).startswith("["):
        hint = "write [memory=8192,vcores=8]: names and amounts between commas, nothing around the brackets"
    reading.refuse("YF113", key, node.path, f"capacity {text[:60]!r} cannot be read", hint)


def _weight(reading: Reading, node: Node, key: str, label: str, text: str | None) -> float:
    if text is None or not text.endswith("w"):
        return -1.0
    try:
        value = parse_float(text[: text.index("w")])
    except ValueError:
        _unreadable(reading, node, key, text)
        return -1.0
    if (value < -1e-6 and abs(float32(value + 1)) > 1e-6) or value > MOST_WEIGHT:
        reading.refuse(
            "YF115",
            key,
            node.path,
            f"weight {text} is not within 0 and {MOST_WEIGHT:g}",
            "scale the siblings' weights",
        )
        node.broken = True
    return value


def _check_maximum(reading: Reading, node: Node, key: str, label: str, root: bool) -> None:
    text = reading.text(key)
    if text is None or is_absolute(text) or is_vector(text):
        return
    if label and (root or text.endswith("w")):
        return
    try:
        value = parse_float(text)
    except ValueError:
        node.broken = True
        reading.refuse(
            "YF116",
            key,
            node.path,
            f"maximum-capacity {text[:60]!r} cannot be read",
            "write per cent of the parent",
        )
        return
    if label and (value < 0 or value > 100):
        node.broken = True
        reading.refuse(
            "YF114",
            key,
            node.path,
            f"maximum-capacity {trim(text)} is not within 0 and 100",
            "write per cent of the parent",
        )


def _check_vector(reading: Reading, node: Node, key: str) -> None:
    text = reading.text(key)
    try:
        vector_kinds(text, root=node.parent is None, memory_needed=reading.memory_needed(text), types=reading.types)
    except ValueError as error:
        node.broken = True
        reading.refuse(
            "YF113",
            key,
            node.path,
            f"{key.rpartition('.')[2]} {(text or '')[:60]!r}: {error}",
            "write [memory=8192,vcores=8]",
        )


def read_amounts(reading: Reading, node: Node, key: str) -> dict[str, int]:
    """Return the absolute resources of a property; record a refusal and return none if they cannot be read."""
    text = reading.text(key)
    try:
        return parse_absolute(text, reading.types)
    except ValueError as error:
        node.broken = True
        reading.refuse(
            "YF113",
            key,
            node.path,
            f"{key.rpartition('.')[2]} {(text or '')[:60]!r}: {error}",
            "write [memory=8192,vcores=8]",
        )
        return {}


def read_limits(reading: Reading, node: Node) -> None:
    """Read the absolute capacity and maximum of each partition, which the parent's maximum bounds."""
    path, parent = node.path, node.parent
    for label in sorted(node.labels):
        key, maximum_key = (reading.labelled(path, label, name) for name in ("capacity", "maximum-capacity"))
        if is_absolute(reading.text(key)):
            node.absolute.add(label)
        minimum, maximum = read_amounts(reading, node, key), read_amounts(reading, node, maximum_key)
        told = False
        if parent is not None:
            above = parent.maximum.get(label, {})
            if _greater(reading, maximum, above):
                reading.refuse(
                    "YF117",
                    maximum_key,
                    path,
                    f"its maximum {amounts_text(maximum)} is above that of its parent {parent.path}, "
                    f"{amounts_text(above)}",
                    "lower it, or raise the parent's maximum-capacity",
                )
            if not any_amount(maximum) and any_amount(minimum) and any_amount(above):
                maximum = dict(above)
                # The queue inherits its parent's maximum. If that is below the parent's own capacity, the parent has
                # been refused already.
                told = _greater(reading, parent.minimum.get(label, {}), above)
        if _greater(reading, minimum, maximum) and not told:
            reading.refuse(
                "YF117",
                key,
                path,
                f"its capacity {amounts_text(minimum)} is above its maximum {amounts_text(maximum)}",
                "lower the capacity, or raise maximum-capacity",
            )
        node.minimum[label], node.maximum[label] = minimum, maximum


def _greater(reading: Reading, left: Amounts, right: Amounts) -> bool:
    return any_amount(right) and compare(left, right, dominant=reading.dominant, types=reading.types) > 0


def check_unknown_resources(reading: Reading, node: Node) -> None:
    """In flexible mode, refuse resource types in a queue's vector that yarn.resource-types does not name."""
    if reading.legacy or node.parent is None or node.broken:
        return
    for label in sorted(node.labels):
        key = reading.labelled(node.path, label, "capacity")
        text = reading.text(key)
        if text is None or not is_vector(text):
            continue
        parts = vector_parts(text, memory_needed=reading.memory_needed(text), types=reading.types)
        unknown = [name for name in parts if name not in (MEMORY, VCORES, *reading.types)]
        if not reading.site_known:
            # Without yarn-site.xml, the RM may know further resource types.
            unknown = [name for name in unknown if not custom_types(f"{name}=1")]
        if unknown:
            reading.refuse(
                "YF146",
                key,
                node.path,
                f"its capacity names {', '.join(unknown)}, which yarn.resource-types does not",
                "name it there (--yarn-site), or remove it here",
            )


def check_maximum_weights(reading: Reading, node: Node) -> None:
    """Refuse maxima that are weights in flexible mode (``WeightQueueCapacityCalculator.calculateMaximumResource``)."""
    if reading.legacy or node.parent is None or node.broken:
        return
    for label in sorted(node.labels & node.parent.labels):
        key = reading.labelled(node.path, label, "maximum-capacity")
        text = reading.text(key)
        if text is None:
            continue
        if is_vector(text):
            try:
                parts = vector_parts(text, memory_needed=reading.memory_needed(text), types=reading.types)
            except ValueError:
                continue
            weighted = "weight" in parts.values()
        else:
            weighted = bool(label) and text.endswith("w")
        if weighted:
            what = f"maximum-capacity {text[:60]!r} is a weight"
            reading.refuse("YF147", key, node.path, what, "write per cent, or [memory=8192,vcores=8]")
