"""Change single attributes of an allocation file in place and keep everything else, including comments and layout.

A controller uses it to manage some attributes of some queues.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from harness.base.errors import InputError
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import AllocationFile, QueuePolicy, QueueSettings, ResourceLimit
from harness.model.resources import Resource
from harness.yarn.fair.dom import Element, empty_tag, from_utf16, parse_xml, spliced, start_tag_end
from harness.yarn.fair.elements import OF_QUEUE, plain_name
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.parse import parse_allocations, trim_queue_name

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


Attribute = Literal["weight", "min_resources", "max_resources", "scheduling_policy"]
_ATTRIBUTES: tuple[Attribute, ...] = get_args(Attribute)
#: Attribute -> its element, and the function that formats its value.
_ELEMENTS = {name: (tag, kind.write) for tag, (name, kind) in OF_QUEUE.items() if name in _ATTRIBUTES}


@dataclass(frozen=True, slots=True)
class Change:
    """New values of one queue's attributes (None: unchanged). ``unset``: attributes to remove from the file.

    ``texts``: attribute -> exact content to write into its element (as latin-1); its value must equal the attribute's
    value. A weight with such a text may be any finite number, because somebody else wrote it originally.
    """

    weight: float | None = None
    min_resources: Resource | None = None
    max_resources: ResourceLimit | None = None
    scheduling_policy: QueuePolicy | None = None
    unset: frozenset[Attribute] = frozenset()
    texts: Mapping[Attribute, str] = field(default_factory=dict)

    def values(self) -> dict[Attribute, Any]:
        """Return attribute -> value to write; a weight is rounded to float32 like in Hadoop."""
        said = {name: getattr(self, name) for name in _ATTRIBUTES if getattr(self, name) is not None}
        return said if self.weight is None else {**said, "weight": float32(self.weight)}


@dataclass(frozen=True, slots=True)
class Edited:
    """A document after an edit, and how to undo it."""

    document: bytes
    says: AllocationFile
    #: Queue -> attribute -> previous content of its element (as latin-1; None: there was no element), for all
    #: attributes of the changes, including those that already had the new value.
    was: Mapping[str, Mapping[Attribute, str | None]] = field(default_factory=dict)
    #: Queues whose element was an empty tag (``<queue .../>``) before the edit.
    opened: Collection[str] = ()


def edit_allocations(document: bytes, changes: Mapping[str, Change], *, source: str = "allocation file") -> bytes:
    """Return the document with these attributes changed.

    Parameters
    ----------
    document : bytes
        An allocation file that the ResourceManager loads, in UTF-8, UTF-16 or an encoding that contains ASCII.
    changes : Mapping[str, Change]
        Full queue path -> its change. Every queue must be in the file.
    source : str
        Name of the document in messages.

    Returns
    -------
    bytes
        The new document; the same bytes if all values are present already. The result is parsed again to verify that it
        differs from the old file only in the requested values.

    Raises
    ------
    InputError
        The RM would refuse the file, a queue is not in it, or a weight is not within [WEIGHT_MIN, WEIGHT_MAX].
    """
    return edit_parsed(document, parse_allocations(document, source=source), changes, source=source).document


def edit_parsed(
    document: bytes, before: AllocationFile, changes: Mapping[str, Change], *, source: str = "allocation file"
) -> Edited:
    """Like `edit_allocations`, for a document that has been parsed already."""
    if (recoded := from_utf16(document)) is not None:
        inner = edit_parsed(recoded.document, before, changes, source=source)
        return replace(inner, document=recoded.back(inner.document))
    expected = _expected(before, changes, source)
    if b"\x00" in document:
        if _alike(expected, before) and not any(change.texts for change in changes.values()):
            return Edited(document, before)
        raise InputError("the file is not in UTF-8", where=source, hint="save it as UTF-8")
    places = collect_queues(parse_xml(document, source=source))
    # Replacements: (from, to, new bytes).
    edits: list[tuple[int, int, bytes]] = []
    was: dict[str, dict[Attribute, str | None]] = {}
    opened: set[str] = set()
    for path, change in changes.items():
        settings = before.settings[path]
        new: list[tuple[str, bytes]] = []
        for attribute, value in change.values().items():
            tag, write = _ELEMENTS[attribute]
            text = change.texts.get(attribute)
            # If the file sets the attribute several times, the last element counts.
            written = _written(places[path], attribute)
            stood = _content(document, written[-1]) if written else None
            was.setdefault(path, {})[attribute] = stood
            if stood == text if text is not None else _says(settings, attribute, value):
                continue
            if text is not None and written:
                edits.append((start_tag_end(document, written[-1]), written[-1].end, text.encode("latin-1")))
            elif written:
                edits.append(_replacement(document, written[-1], write(value).encode()))
            else:
                new.append((tag, write(value).encode() if text is None else text.encode("latin-1")))
        for attribute in change.unset:
            edits += [removal(document, item) for item in _written(places[path], attribute)]
        if new:
            last = places[path][-1]
            edits.append(_insertion(document, last, new))
            if empty_tag(document, start_tag_end(document, last)):
                opened.add(path)
    document = spliced(document, edits)
    after = parse_allocations(document, source=source) if edits else before
    if not _alike(after, expected):
        raise InputError(
            "the edited file does not read back as intended", where=source, hint="write the file plainly, in UTF-8"
        )
    return Edited(document, after, was, opened)


def _written(queues: Iterable[Element], attribute: Attribute) -> list[Element]:
    """Return the elements that set the attribute, in the order of the document."""
    return [item for queue in queues for item in queue.elements() if plain_name(item.tag) == _ELEMENTS[attribute][0]]


def _alike(one: AllocationFile, other: AllocationFile) -> bool:
    # NaN does not equal itself, so the texts of the values are compared, too.
    return one == other or repr(one) == repr(other)


def close_empty(document: bytes, paths: Collection[str], *, source: str = "allocation file") -> bytes:
    """Return the document with the empty elements of these queues as empty tags (``""``: the root element)."""
    if (recoded := from_utf16(document)) is not None:
        return recoded.back(close_empty(recoded.document, paths, source=source))
    top = parse_xml(document, source=source)
    places = {path: found[-1] for path, found in collect_queues(top).items()} | {"": top}
    for element in sorted((places[p] for p in paths if p in places), key=lambda one: one.start, reverse=True):
        after = start_tag_end(document, element)
        if not empty_tag(document, after) and not document[after : element.end].strip():
            document = document[: after - 1] + b"/>" + document[document.index(b">", element.end) + 1 :]
    return document


def _content(document: bytes, element: Element) -> str | None:
    """Return an element's content as latin-1; None for an empty tag."""
    start = start_tag_end(document, element)
    return None if empty_tag(document, start) else document[start : element.end].decode("latin-1")


def _expected(before: AllocationFile, changes: Mapping[str, Change], source: str) -> AllocationFile:
    settings = dict(before.settings)
    configured = {*before.configured_leaves, *before.configured_parents}
    for path, change in changes.items():
        if path not in configured:
            known = ", ".join(sorted({*before.configured_leaves, *before.configured_parents})[:8])
            raise InputError(
                f"queue {path} is not in the file", where=source, hint=f"add it, or name one of those it has: {known}"
            )
        said = change.values()
        if "weight" in said and "weight" not in change.texts and not WEIGHT_MIN <= said["weight"] <= WEIGHT_MAX:
            raise InputError(
                f"weight {change.weight!r} is not between {WEIGHT_MIN:g} and {WEIGHT_MAX:g}",
                where=f"{source}: queue {path}",
                hint="scale the weights",
            )
        new: dict[str, Any] = {str(name): value for name, value in said.items()}
        new |= dict.fromkeys(change.unset)
        if "min_resources" in new:
            new["minimum_dropped"] = False
        settings[path] = replace(settings[path], **new)
    return replace(before, settings=settings)


def _says(settings: QueueSettings, attribute: Attribute, value: object) -> bool:
    said = getattr(settings, attribute)
    return bool(said == value) and not (attribute == "min_resources" and settings.minimum_dropped)


def collect_queues(top: Element) -> dict[str, list[Element]]:
    """Return queue path -> its elements, in the order of the document."""
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
        # Hadoop also accepts <ueue> in place of <queue>.
        if child.tag == "pool" or "queue".endswith(child.tag):
            _collect(child, path, places)


def _replacement(document: bytes, element: Element, text: bytes) -> tuple[int, int, bytes]:
    start = start_tag_end(document, element)
    kept = b"".join(_COMMENT.findall(document[start : element.end]))
    return start, element.end, text + kept


def removal(document: bytes, element: Element) -> tuple[int, int, bytes]:
    """Return the replacement that removes an element with the white space before it."""
    start_tag = start_tag_end(document, element)
    end = start_tag if empty_tag(document, start_tag) else document.index(b">", element.end) + 1
    start = len(document[: element.start].rstrip())
    return start, end, b""


def _insertion(document: bytes, queue: Element, new: list[tuple[str, bytes]]) -> tuple[int, int, bytes]:
    after = start_tag_end(document, queue)
    elements = [b"<%b>%b</%b>" % (tag.encode(), text, tag.encode()) for tag, text in new]
    if empty_tag(document, after):
        return after - 2, after, b">" + b"".join(elements) + b"</" + queue.tag.encode() + b">"
    # The white space before the first child shows the layout of the file.
    layout = re.compile(rb"\s*").match(document, after)
    space = layout[0] if layout is not None and layout.end() < queue.end else b""
    return after, after, b"".join(space + element for element in elements)
