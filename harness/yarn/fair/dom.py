"""The XML of a scheduler's file as a small tree with line numbers, parsed like the ResourceManager's parser does.

Comments are dropped, CDATA sections stay separate, and a DOCTYPE is refused as in Hadoop. No entity is expanded, and no
external resource is fetched.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from harness.base.errors import InputError
from harness.yarn.files import MAX_BYTES

MAX_DEPTH = 256
_DECLARED = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([A-Za-z][\w.-]*)[\"']")
_MULTIBYTE = frozenset({"gbk", "gb2312", "gb18030", "big5", "cp950", "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949"})
_XML_DECLARATION = re.compile("\ufeff?(?:<\\?xml\\s[^>]*\\?>)?")
_START_TAG = re.compile(rb"<[^\"'>]*(?:\"[^\"]*\"[^\"'>]*|'[^']*'[^\"'>]*)*>")


@dataclass(slots=True)
class Text:
    """A run of characters; ``cdata`` for a CDATA section, which the parser does not merge with its neighbours."""

    data: str
    cdata: bool = False


@dataclass(slots=True)
class Instruction:
    """A processing instruction (only its presence matters)."""

    target: str


@dataclass(slots=True)
class Element:
    """An element with its attributes, its children in order, and the line of its start tag (from 1)."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element | Text | Instruction] = field(default_factory=list)
    #: Byte offsets of the start tag and of the end tag in the parsed document.
    start: int = 0
    end: int = 0

    def elements(self) -> Iterator[Element]:
        """Return the child elements."""
        return (child for child in self.children if isinstance(child, Element))

    def below(self) -> Iterator[Element]:
        """Return all elements inside, at any depth."""
        for child in self.elements():
            yield child
            yield from child.below()

    def name(self) -> str:
        """Return the attribute ``name``; empty if it is missing, as in DOM."""
        return self.attributes.get("name", "")

    def all_text(self) -> str:
        """Return all characters directly inside, including CDATA."""
        match self.children:
            case [Text() as only]:
                return only.data
        return "".join(child.data for child in self.children if isinstance(child, Text))


def parse_xml(document: str | bytes, *, source: str) -> Element:
    """Parse a document and return its root element.

    Raises InputError (with `source` and the line) for a document that is not well-formed, has a DOCTYPE, is larger than
    MAX_BYTES or deeper than MAX_DEPTH.
    """
    if len(document) > MAX_BYTES:
        raise InputError(
            f"the file is larger than {MAX_BYTES // 2**20} MiB", where=source, hint="give an allocation file"
        )
    codec = _multibyte(document)
    parser = expat.ParserCreate("iso-8859-1" if codec else None)

    def decoded(text: str) -> str:
        return text.encode("iso-8859-1").decode(codec, "replace") if codec else text

    stack: list[Element] = []
    roots: list[Element] = []
    in_cdata = False

    def fail(what: str, hint: str) -> InputError:
        return InputError(what, where=f"{source}:{parser.CurrentLineNumber}", hint=hint)

    def start_element(tag: str, attributes: dict[str, str]) -> None:
        if codec:
            tag, attributes = decoded(tag), {decoded(name): decoded(value) for name, value in attributes.items()}
        element = Element(tag, attributes, parser.CurrentLineNumber, start=parser.CurrentByteIndex)
        if len(stack) >= MAX_DEPTH:
            raise fail(f"elements are nested deeper than {MAX_DEPTH}", "flatten the queues")
        (stack[-1].children if stack else roots).append(element)  # type: ignore[attr-defined]
        stack.append(element)

    def end_element(tag: str) -> None:
        stack.pop().end = parser.CurrentByteIndex

    def characters(data: str) -> None:
        children = stack[-1].children
        last = children[-1] if children else None
        if isinstance(last, Text) and (last.cdata == in_cdata):
            last.data += decoded(data)
        else:
            children.append(Text(decoded(data), in_cdata))

    def start_cdata() -> None:
        nonlocal in_cdata
        in_cdata = True
        stack[-1].children.append(Text("", cdata=True))

    def end_cdata() -> None:
        nonlocal in_cdata
        in_cdata = False

    def instruction(target: str, data: str) -> None:
        if stack:
            stack[-1].children.append(Instruction(target))

    def doctype(*_: object) -> None:
        raise fail("a DOCTYPE is not allowed (the ResourceManager refuses the file)", "remove the <!DOCTYPE ...>")

    parser.buffer_text = True
    if codec:
        # Make the parser deliver each text as a whole, so that no multi-byte character is split.
        parser.buffer_size = max(8192, len(document))
    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = characters
    parser.StartCdataSectionHandler = start_cdata
    parser.EndCdataSectionHandler = end_cdata
    parser.ProcessingInstructionHandler = instruction
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise InputError(
            f"not well-formed XML: {expat.ErrorString(error.code)}",
            where=f"{source}:{error.lineno}",
            hint="mend the XML there" if _begins_as_xml(document) else "give a scheduler's file: this one is no XML",
        ) from error
    except (UnicodeError, LookupError, ValueError) as error:
        raise InputError(f"the text cannot be decoded: {error}", where=source, hint="save the file as UTF-8") from error
    return roots[0]


def _begins_as_xml(document: str | bytes) -> bool:
    """Return whether the document starts with ``<``, after white space and a byte order mark, in any encoding."""
    first = document[:64].encode("utf-8", "replace") if isinstance(document, str) else document[:64]
    return first.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<")


def _multibyte(document: str | bytes) -> str | None:
    """Return the codec of a document in a multi-byte encoding that expat does not know; None for any other.

    In these encodings, no byte of a character is a ``<``, ``>``, ``&`` or quote. A document can therefore be parsed
    byte by byte with correct offsets, and its texts are decoded afterwards.
    """
    found = _DECLARED.match(document) if isinstance(document, bytes) else None
    if found is None:
        return None
    try:
        name = codecs.lookup(found[1].decode("ascii")).name
    except LookupError:
        return None
    return name if name in _MULTIBYTE else None


@dataclass(frozen=True, slots=True)
class Recoded:
    """A UTF-16 document in UTF-8, without its byte order mark and XML declaration, which an edit leaves alone.

    Parameters
    ----------
    document
        The rest of the document in UTF-8.
    """

    document: bytes
    _lead: str
    _codec: str

    def back(self, document: bytes) -> bytes:
        """Return an edited document in the original's encoding, with its byte order mark and XML declaration."""
        return (self._lead + document.decode()).encode(self._codec)


def from_utf16(document: bytes) -> Recoded | None:
    """Return a UTF-16 document in UTF-8, whose tags can be edited as bytes; None for any other document."""
    starts = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
    codec = starts.get(document[:2])
    if codec is None:
        return None
    try:
        text = document.decode(codec)
    except UnicodeError:
        return None
    match = _XML_DECLARATION.match(text)
    assert match is not None, "it matches the empty text"
    return Recoded(text[match.end() :].encode(), match[0], codec)


def start_tag_end(document: bytes, element: Element) -> int:
    """Return the offset of the first byte after an element's start tag."""
    if not element.attributes:
        return document.index(b">", element.start) + 1
    match = _START_TAG.match(document, element.start)
    assert match is not None, "expat found a start tag here"
    return match.end()


def empty_tag(document: bytes, after: int) -> bool:
    """Return whether the start tag that ends here is an empty element (``<x/>``)."""
    return document[after - 2 : after] == b"/>"


def spliced(document: bytes, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return the document with replacements (from, to, new bytes), which do not overlap."""
    parts, last = [], 0
    for start, end, content in sorted(edits):
        parts += [document[last:start], content]
        last = end
    return b"".join([*parts, document[last:]])
