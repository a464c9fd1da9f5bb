"""Render allocation files from their values, with the template ``templates/fair-scheduler.xml.j2``.

The result is parsed again and must equal the values. `harness.yarn.fair.tree` computes the values from a user's queue
tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from harness.base.errors import InputError
from harness.model.data import templates
from harness.model.queues import ROOT, AllocationFile, QueueSettings
from harness.yarn.fair.elements import ACL_ELEMENTS, OF_FILE, OF_QUEUE, OF_ROOT
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.parse import parse_allocations

TEMPLATE = "fair-scheduler.xml.j2"
#: Settings that the ResourceManager reads as Java floats.
_QUEUE_FLOATS = ("weight", "max_am_share", "fair_share_preemption_threshold")
_FILE_FLOATS = ("queue_max_am_share_default", "default_fair_share_preemption_threshold")
#: Maximum number of settings named in a message that differ when the result is parsed again.
_MOST_NAMED = 5


@dataclass(slots=True)
class _Node:
    name: str
    kind: str | None = None
    items: list[tuple[str, str | None]] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


def render_allocations(file: AllocationFile) -> str:
    """Return the XML of an allocation file.

    Raises InputError for values that no file can express (a timeout with a fraction of a second, a queue whose parent
    is not configured, ...): parsing the text must give the same values.
    """
    text = (
        templates(keep_trailing_newline=True)
        .get_template(TEMPLATE)
        .render(
            top=_top(file),
            users=sorted(file.user_max_apps.items()),
            rules=file.placement_rules,
            queues=_queues(file),
        )
    )
    read_back = parse_allocations(text, source="the rendered file")
    if read_back != file:
        raise InputError(
            f"these settings do not come back from the rendered file: {', '.join(_differences(file, read_back))}",
            hint="give values that an allocation file can express (whole seconds, configured parents, finite numbers)",
        )
    return text


def in_float32(file: AllocationFile) -> AllocationFile:
    """Return the allocation file as a ResourceManager reads it: weights, shares and thresholds are Java floats.

    For example, 0.3 becomes the nearest float32.
    """
    settings = {path: replace(one, **_rounded(one, _QUEUE_FLOATS)) for path, one in file.settings.items()}
    return replace(file, settings=settings, **_rounded(file, _FILE_FLOATS))


def _rounded(settings: QueueSettings | AllocationFile, names: tuple[str, ...]) -> dict[str, Any]:
    given = {name: getattr(settings, name) for name in names}
    return {name: float32(value) for name, value in given.items() if value is not None}


def _differences(file: AllocationFile, read_back: AllocationFile) -> list[str]:
    """Describe the settings that differ, with both values, and with the queue if it is a queue's setting."""
    found = []
    for name in AllocationFile.__dataclass_fields__:
        if name == "settings":
            continue
        if getattr(read_back, name) != getattr(file, name):
            found.append(name)
    for path in sorted({*file.settings, *read_back.settings}):
        wanted = file.settings.get(path) or QueueSettings(path)
        came = read_back.settings.get(path) or QueueSettings(path)
        for name in QueueSettings.__dataclass_fields__:
            one, other = getattr(wanted, name), getattr(came, name)
            if one != other:
                found.append(f"{path} {name} ({one!r} comes back as {other!r})")
    return found[:_MOST_NAMED] + ([f"and {len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else [])


def _top(file: AllocationFile) -> list[tuple[str, str]]:
    nothing = AllocationFile()
    said = [(tag, kind, getattr(file, name), getattr(nothing, name)) for tag, (name, kind) in OF_FILE.items()]
    return [(tag, kind.write(value)) for tag, kind, value, unsaid in said if value != unsaid]


def _queues(file: AllocationFile) -> list[_Node]:
    nodes: dict[str, _Node] = {}
    top: list[_Node] = []
    leaves = set(file.configured_leaves)
    # A reservable queue is among the parents, but is written like a leaf. Siblings are in the order of the settings.
    names = list({*file.configured_leaves, *file.configured_parents})
    order = {name: at for at, name in enumerate(file.settings)}
    parents = {name.rpartition(".")[0] for name in names}
    names.sort(key=lambda name: (name.count("."), order.get(name, len(order)), name))
    for name in names:
        settings = file.settings.get(name) or QueueSettings(name)
        parent, _, own = name.rpartition(".")
        written_as_parent = name not in parents and name not in leaves and not settings.reservable
        node = _Node(own, "parent" if written_as_parent else None, _items(settings))
        nodes[name] = node
        if name == ROOT or (parent == ROOT and ROOT not in nodes):
            top.append(node)
        elif parent in nodes:
            nodes[parent].children.append(node)
        else:
            raise InputError(f"the parent of queue {name} is not configured", hint="configure it as well")
    return top


def _items(settings: QueueSettings) -> list[tuple[str, str | None]]:
    items: list[tuple[str, str | None]] = []
    for tag, (name, kind) in OF_QUEUE.items():
        # root's defaults belong to the whole file and are written at its top.
        if (value := getattr(settings, name)) is not None and not (settings.name == ROOT and tag in OF_ROOT.values()):
            items.append((tag, kind.write(value)))
    if not settings.preemptable:
        items.append(("allowPreemptionFrom", "false"))
    items += [(kind, settings.acls[kind]) for kind in ACL_ELEMENTS if kind in settings.acls]
    if settings.reservable:
        items.append(("reservation", None))
    return items
