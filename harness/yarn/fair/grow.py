"""Add queues to an allocation file and remove them again, without changing any other byte.

A controller uses it to give weights to queues that the ResourceManager created by itself (ad hoc queues): only a queue
that the file names has a weight of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import quoteattr

from harness.base.errors import InputError
from harness.model.queues import ROOT, AllocationFile
from harness.yarn.fair.dom import Element, empty_tag, from_utf16, parse_xml, start_tag_end
from harness.yarn.fair.edit import Edited, collect_queues, removal
from harness.yarn.fair.parse import parse_allocations

#: The only elements of a queue that the controller has added; another element shows that somebody else has edited it.
OWN_TAGS = frozenset({"weight", "minResources", "maxResources"})


@dataclass(frozen=True, slots=True)
class NewQueue:
    """A queue to add: a leaf or a parent, with the texts of its elements."""

    leaf: bool
    elements: Mapping[str, str] = field(default_factory=dict)


def add_queues(document: bytes, new: Mapping[str, NewQueue], *, source: str = "allocation file") -> Edited:
    """Add queues to a document (by full paths; missing parents must be among them).

    Raises InputError if the result does not parse as the old file plus these queues.
    """
    if (recoded := from_utf16(document)) is not None:
        grown = add_queues(recoded.document, new, source=source)
        return replace(grown, document=recoded.back(grown.document))
    before = parse_allocations(document, source=source)
    opened: set[str] = set()
    for path in sorted(new, key=lambda path: path.split(".")):
        top = parse_xml(document, source=source)
        places = collect_queues(top)
        parent = path.rpartition(".")[0]
        if parent != ROOT and parent not in places:
            raise InputError(f"{parent} is not in the file, so {path} cannot be put into it")
        inside = places[parent][-1] if parent in places else top
        if empty_tag(document, start_tag_end(document, inside)):
            opened.add(parent if parent in places else "")
        document = _with_queue(document, inside, ROOT in places, path, new[path])
    after = parse_allocations(document, source=source)
    if _names(after) != _names(before) | set(new) or any(after._of(p) != before._of(p) for p in _names(before)):
        raise InputError("the file does not read back with its new queues", where=source, hint="name them by hand")
    return Edited(document, after, opened=opened)


def remove_queues(
    document: bytes, paths: Collection[str], *, source: str = "allocation file"
) -> tuple[bytes, AllocationFile, set[str]]:
    """Remove those of the queues ``paths`` that contain only `OWN_TAGS`.

    Returns the new document, its settings and the removed queues.
    """
    if (recoded := from_utf16(document)) is not None:
        left, says, removed = remove_queues(recoded.document, paths, source=source)
        return recoded.back(left), says, removed
    gone: set[str] = set()
    for path in sorted(paths, key=lambda path: path.split("."), reverse=True):
        places = collect_queues(parse_xml(document, source=source))
        found = places.get(path, [])
        if len(found) == 1 and all(child.tag in OWN_TAGS for child in found[0].elements()):
            start, end, _ = removal(document, found[0])
            document = document[:start] + document[end:]
            gone.add(path)
    return document, parse_allocations(document, source=source), gone


def _names(file: AllocationFile) -> set[str]:
    return {*file.configured_leaves, *file.configured_parents}


def _with_queue(document: bytes, inside: Element, below_root: bool, path: str, new: NewQueue) -> bytes:
    name = path.rpartition(".")[2]
    depth = path.count(".") + below_root
    kind = "" if new.leaf else ' type="parent"'
    content = "".join(f"<{tag}>{text}</{tag}>" for tag, text in new.elements.items())
    text = f"<queue name={quoteattr(name)}{kind}>{content}</queue>".encode("utf-8", "xmlcharrefreplace")
    line = b"\n" + b"  " * depth + text
    after = start_tag_end(document, inside)
    if empty_tag(document, after):
        closed = b"\n" + b"  " * (depth - 1) + b"</" + inside.tag.encode() + b">"
        return document[: after - 2] + b">" + line + closed + document[after:]
    # Insert after the last character that is not white space, as `removal` later removes the white space before it.
    keep = len(document[: inside.end].rstrip())
    return document[:keep] + line + document[keep:]
