"""Single attributes of an allocation file changed in place; all else, comments and layout included, stays as it is.

For a controller that owns some attributes of some queues and nothing else in the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.base.errors import InputError
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import AllocationFile, QueuePolicy, QueueSettings, ResourceLimit
from harness.model.resources import Resource
from harness.yarn.fair.dom import Element, parse_xml
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.parse import parse_allocations, trim_queue_name
from harness.yarn.fair.render import resource_text, weight_text

_START_TAG = re.compile(rb"<[^\"'>]*(?:\"[^\"]*\"[^\"'>]*|'[^']*'[^\"'>]*)*>")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


Attribute = Literal["weight", "min_resources", "max_resources", "scheduling_policy"]
#: Attribute -> the elements that say it.
_ELEMENTS: dict[Attribute, tuple[str, ...]] = {
    "weight": ("weight",),
    "min_resources": ("minResources",),
    "max_resources": ("maxResources",),
    "scheduling_policy": ("schedulingPolicy", "schedulingMode"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """New values of one queue's attributes; None: left as it is. ``unset``: attributes that the file shall not say."""

    weight: float | None = None
    min_resources: Resource | None = None
    max_resources: ResourceLimit | None = None
    scheduling_policy: QueuePolicy | None = None
    unset: frozenset[Attribute] = frozenset()

    def elements(self) -> dict[str, str]:
        """Element name -> text."""
        said: dict[str, str] = {}
        if self.weight is not None:
            said["weight"] = weight_text(float32(self.weight))
        if self.min_resources is not None:
            said["minResources"] = resource_text(self.min_resources)
        if self.max_resources is not None:
            said["maxResources"] = resource_text(self.max_resources)
        if self.scheduling_policy is not None:
            said["schedulingPolicy"] = self.scheduling_policy
        return said


def edit_allocations(document: bytes, changes: Mapping[str, Change], *, source: str = "allocation file") -> bytes:
    """The document with these attributes changed.

    Parameters
    ----------
    document : an allocation file that the ResourceManager loads, in UTF-8 or another encoding that contains ASCII.
    changes : full queue path -> what to change; every queue must be in the file.
    source : what to call the document in messages.

    Returns the very same bytes where all values are there already. The result has been read back: it differs from the
    old file in the values asked for and in nothing else. Raises InputError for a file that the RM would refuse, for a
    queue that is not in it, and for a weight that is not within [WEIGHT_MIN, WEIGHT_MAX].
    """
    return edit_parsed(document, parse_allocations(document, source=source), changes, source=source)[0]


def edit_parsed(
    document: bytes, before: AllocationFile, changes: Mapping[str, Change], *, source: str = "allocation file"
) -> tuple[bytes, AllocationFile]:
    """As `edit_allocations`, of a document that has been parsed: the new document and what it says."""
    expected = _expected(before, changes, source)
    # As texts, because a NaN somewhere in the file is equal to nothing.
    meant = repr(expected)
    if meant == repr(before):
        return document, before
    if b"\x00" in document:
        raise InputError("the file is not in UTF-8", where=source, mend="save it as UTF-8")
    places = collect_queues(parse_xml(document, source=source))
    # (from, to, new bytes), applied from the end of the file to its start.
    edits: list[tuple[int, int, bytes]] = []
    for path, change in changes.items():
        settings = before.settings[path]
        new: list[tuple[str, bytes]] = []
        for tag, text in change.elements().items():
            if _same(settings, change, tag):
                continue
            # The last one counts, wherever the queue is written.
            names = next(names for names in _ELEMENTS.values() if tag in names)
            written = [item for queue in places[path] for item in queue.elements() if item.tag in names]
            if written:
                edits.append(_replacement(document, written[-1], text.encode()))
            else:
                new.append((tag, text.encode()))
        for attribute in change.unset:
            gone = [item for queue in places[path] for item in queue.elements() if item.tag in _ELEMENTS[attribute]]
            edits += [removal(document, item) for item in gone]
        if new:
            edits.append(_insertion(document, places[path][-1], new))
    for start, end, content in sorted(edits, reverse=True):
        document = document[:start] + content + document[end:]
    after = parse_allocations(document, source=source)
    if repr(after) != meant:
        raise InputError(
            "the edited file does not read back as intended", where=source, mend="write the file plainly, in UTF-8"
        )
    return document, after


def _expected(before: AllocationFile, changes: Mapping[str, Change], source: str) -> AllocationFile:
    settings = dict(before.settings)
    configured = {*before.configured_leaves, *before.configured_parents}
    for path, change in changes.items():
        if path not in configured:
            known = ", ".join(sorted({*before.configured_leaves, *before.configured_parents})[:8])
            raise InputError(
                f"queue {path} is not in the file", where=source, mend=f"add it, or name one of those it has: {known}"
            )
        if change.weight is not None:
            if not WEIGHT_MIN <= float32(change.weight) <= WEIGHT_MAX:
                raise InputError(
                    f"weight {change.weight!r} is not between {WEIGHT_MIN:g} and {WEIGHT_MAX:g}",
                    where=f"{source}: queue {path}",
                    mend="scale the weights",
                )
            settings[path] = replace(settings[path], weight=float32(change.weight))
        if change.min_resources is not None:
            settings[path] = replace(settings[path], min_resources=change.min_resources, minimum_dropped=False)
        if change.max_resources is not None:
            settings[path] = replace(settings[path], max_resources=change.max_resources)
        if change.scheduling_policy is not None:
            settings[path] = replace(settings[path], scheduling_policy=change.scheduling_policy)
        nothing: dict[str, Any] = dict.fromkeys(change.unset)
        settings[path] = replace(settings[path], **nothing)
        if "min_resources" in change.unset:
            settings[path] = replace(settings[path], minimum_dropped=False)
    return replace(before, settings=settings)


def _same(settings: QueueSettings, change: Change, tag: str) -> bool:
    match tag:
        case "weight":
            return change.weight is not None and settings.weight == float32(change.weight)
        case "minResources":
            return settings.min_resources == change.min_resources and not settings.minimum_dropped
        case "schedulingPolicy":
            return settings.scheduling_policy == change.scheduling_policy
        case _:
            return settings.max_resources == change.max_resources


def collect_queues(top: Element) -> dict[str, list[Element]]:
    """Queue path -> the elements that speak of it, in the order of the document."""
    places: dict[str, list[Element]] = {}
    for element in top.elements():
        if element.tag in ("queue", "pool"):
            _collect(element, None if element.name().lower() == "root" else "root", places)
    return places


def _collect(element: Element, parent: str | None, places: dict[str, list[Element]]) -> None:
    name = trim_queue_name(element.name())
    path = name if parent is None else f"{parent}.{name}"
    places.setdefault(path, []).append(element)
    for child in element.elements():
        # Hadoop takes <ueue> for <queue> too.
        if child.tag == "pool" or "queue".endswith(child.tag):
            _collect(child, path, places)


def start_tag_end(document: bytes, element: Element) -> int:
    """The first byte behind an element's start tag."""
    match = _START_TAG.match(document, element.start)
    assert match is not None, "expat found a start tag here"
    return match.end()


def empty_tag(document: bytes, after: int) -> bool:
    """Whether the start tag that ends here is an element of its own (``<x/>``)."""
    return document[after - 2 : after] == b"/>"


def _replacement(document: bytes, element: Element, text: bytes) -> tuple[int, int, bytes]:
    start = start_tag_end(document, element)
    kept = b"".join(_COMMENT.findall(document[start : element.end]))
    return start, element.end, text + kept


def removal(document: bytes, element: Element) -> tuple[int, int, bytes]:
    """An element with its tags and the white space before it."""
    start_tag = start_tag_end(document, element)
    end = start_tag if empty_tag(document, start_tag) else document.index(b">", element.end) + 1
    start = len(document[: element.start].rstrip())
    return start, end, b""


def _insertion(document: bytes, queue: Element, new: list[tuple[str, bytes]]) -> tuple[int, int, bytes]:
    after = start_tag_end(document, queue)
    elements = [b"<%b>%b</%b>" % (tag.encode(), text, tag.encode()) for tag, text in new]
    if empty_tag(document, after):
        return after - 2, after, b">" + b"".join(elements) + b"</" + queue.tag.encode() + b">"
    # The white space before the first child is how the file is laid out.
    layout = re.compile(rb"\s*").match(document, after)
    space = layout[0] if layout is not None and layout.end() < queue.end else b""
    return after, after, b"".join(space + element for element in elements)
