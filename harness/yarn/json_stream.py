"""Parse the members of a long list in a JSON document one after the other, as the document arrives.

A list of all applications may be 100 MB long and take nine times as much memory as Python objects. Streaming needs only
the memory of one member, and of the caller's results. All other parts of the document have to be small.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.yarn.errors import BadAnswer

#: Maximum length of one member, or of any other value, in characters.
MOST_VALUE = 4 << 20
_SPACE = " \t\n\r"
_OF_NUMBERS = "0123456789.eE+-"
_decode = json.JSONDecoder().raw_decode


class _Text:
    """The part of a document that has arrived and is not parsed yet."""

    def __init__(self, chunks: Iterable[bytes], fail: Callable[[str, str], BadAnswer]) -> None:
        self._chunks, self._fail = iter(chunks), fail
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")("surrogatepass")
        self._text, self._at, self._ended = "", 0, False
        self.start = ""

    def _more(self) -> bool:
        """Append the next chunk; return whether there was one."""
        if self._ended:
            return False
        chunk = next(self._chunks, None)
        self._ended = chunk is None
        try:
            new = self._bytes.decode(chunk or b"", final=self._ended)
        except UnicodeDecodeError as error:
            raise self._fail(str(error), self.start) from None
        self._text, self._at = self._text[self._at :] + new, 0
        self.start = self.start or self._text[:60]
        return True

    def peek(self) -> str:
        """Return the next character that is not a space ('': end of the document)."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, wanted: str) -> None:
        """Consume this character, which must come next."""
        found = self.peek()
        if found != wanted:
            raise self._fail(f"{found!r} where {wanted!r} should be" if found else "cut off", self.start)
        self._at += 1

    def value(self) -> Any:
        """Parse and return the next value."""
        self.peek()
        wanted = 0
        while True:
            # A number is complete only if another character follows: 12 may become 123, and 12. may become 12.5.
            while len(self._text) - self._at <= wanted and self._more():
                pass
            try:
                found, end = _decode(self._text, self._at)
                if self._ended or (end < len(self._text) and self._text[end] not in _OF_NUMBERS):
                    self._at = end
                    return found
                error: Exception = ValueError("cut off")
            except (ValueError, RecursionError, MemoryError) as problem:
                error = problem
            wanted = max(len(self._text) - self._at, 1 << 12)
            if self._ended or wanted > MOST_VALUE:
                raise self._fail(str(error), self.start) from None


def members(chunks: Iterable[bytes], outer: str, inner: str, where: str) -> Iterator[Any]:
    """Yield the members of the list in ``{outer: {inner: [...]}}``, and finally the document without them.

    Parameters
    ----------
    chunks : Iterable[bytes]
        The document's bytes, in any pieces.
    outer, inner : str
        The keys of the list.
    where : str
        Source of the answer, for errors.

    Yields
    ------
    object
        Each member of the list, and finally, as a `Rest`, the document with an empty list. For a document of another
        shape, only its `Rest`.

    Raises
    ------
    BadAnswer
        The document is invalid JSON or truncated; members before that point have been yielded.
    """

    def fail(why: str, start: str) -> BadAnswer:
        start = " ".join(start.split())
        if start[:1] == "<":
            return BadAnswer(f"HTML or XML instead of JSON: {start!r}", where=where)
        return BadAnswer(f"no JSON ({why[:200]}): {start!r}", where=where)

    text = _Text(chunks, fail)
    if text.peek() != "{":
        whole = text.value()
    else:
        whole = {}
        for key in _keys(text):
            if key != outer or text.peek() != "{":
                whole[key] = text.value()
                continue
            whole[key] = {}
            for name in _keys(text):
                if name != inner or text.peek() != "[":
                    whole[key][name] = text.value()
                    continue
                whole[key][name] = []
                text.take("[")
                while text.peek() != "]":
                    yield text.value()
                    if text.peek() != "]":
                        text.take(",")
                        if text.peek() == "]":
                            raise fail("a comma before the end of a list", text.start)
                text.take("]")
    if text.peek():
        raise fail("something follows the document", text.start)
    yield Rest(whole)


class Rest:
    """A document without the members of its list."""

    def __init__(self, document: object) -> None:
        self.document = document


def _keys(text: _Text) -> Iterator[str]:
    """Yield the keys of an object; after each key the caller must consume its value."""
    text.take("{")
    while text.peek() != "}":
        if text.peek() != '"':
            text.take('"')
        key = text.value()
        text.take(":")
        yield str(key)
        if text.peek() != "}":
            text.take(",")
            if text.peek() == "}":
                text.take('"')
    text.take("}")
