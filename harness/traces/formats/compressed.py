"""Reads compressed files: gzip, bzip2, zstd and lz4 are recognised by their first bytes and unpacked.

Arrow unpacks them: it supports files of several members, and raises an error for a damaged or truncated stream.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from harness.base.files import open_whole, read_whole, reading

#: First bytes of compressed files, with Arrow's name of the codec.
MAGICS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
#: Maximum length of a line; a longer one is damaged or a decompression bomb.
MAX_LINE_BYTES = 16 << 20
_CHUNK = 1 << 20
#: Read in small parts, because a part in which the stream is cut yields nothing.
_SMALL = 4096


def codec_of(head: bytes) -> str | None:
    """Return Arrow's name of the compression of a file with these first bytes.

    None if there is none that it unpacks.
    """
    return next((codec for magic, codec in MAGICS.items() if head.startswith(magic)), None)


def unpacked(raw: BinaryIO, codec: str) -> BinaryIO:
    """Return a stream of the unpacked content; closing it closes the original. Read it with `read_part`."""
    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec))


@contextlib.contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """Open a user's file for reading, unpacked. Raises OSError, also later, if the compressed stream is damaged."""
    with open_whole(path) as raw:
        codec = codec_of(raw.peek(8))
        if codec is None:
            yield raw
        else:
            with unpacked(raw, codec) as stream:
                yield stream


def plain_head(path: Path, most: int) -> bytes:
    """Return the first bytes of a file, unpacked if possible. Raises OSError."""
    with open_whole(path) as raw:
        head = raw.read(most)
    if codec_of(head) is None:
        return head
    found = b""
    with contextlib.suppress(OSError), open_plain(path) as stream:
        while len(found) < most and (part := stream.read(min(_SMALL, most - len(found)))):
            found += part
    return found or head


@dataclass(frozen=True, slots=True)
class PlainBytes:
    """The readable part of a file, unpacked.

    Attributes
    ----------
    data : bytes
        The content from the beginning on.
    broken : str
        Why the rest of the file is unreadable; empty if it was read to its end.
    """

    data: bytes
    broken: str = ""

    def text(self, errors: str = "strict") -> str:
        """Return the text without a truncated last character. Raises UnicodeDecodeError for invalid UTF-8."""
        return codecs.getincrementaldecoder("utf-8")(errors).decode(self.data, final=not self.broken)


def readable_bytes(path: Path, most: int) -> PlainBytes:
    """Return the readable part of a user's file.

    Raises OSError, also if nothing of a compressed file can be unpacked or the result exceeds ``most`` bytes.
    """
    with open_whole(path) as raw:
        codec = codec_of(raw.peek(8))
    if codec is None:
        return PlainBytes(read_whole(path, most))
    found = bytearray()
    with open_plain(path) as stream:
        while True:
            part, broken = read_part(stream)
            found += part
            if len(found) > most:
                raise OSError(errno.EFBIG, f"larger than {most:,} bytes when unpacked")
            if broken and not found:
                raise OSError(errno.EIO, broken)
            if broken or not part:
                return PlainBytes(bytes(found), broken)


def read_part(stream: BinaryIO, most: int = _CHUNK) -> tuple[bytes, str]:
    """Return about ``most`` bytes of a stream, and why no more can be read; no bytes and no reason: the end."""
    found = bytearray()
    while len(found) < most:
        try:
            part = stream.read(_SMALL)
        except OSError as error:
            return bytes(found), str(error)[:80] or "damaged"
        if not part:
            break
        found += part
    return bytes(found), ""


class PlainLines:
    """The lines of an unpacked file, one after another. Uses memory for about 1 MiB, or one longer line.

    Attributes
    ----------
    broken : str
        After the last line: why the rest of the file is unreadable; empty if it was read to its end.
    number : int
        The number of the last returned line, from 1 on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broken = ""
        self.number = 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield each line without its end. Raises InputError if the file cannot be opened."""
        with reading(self.path, "check the path"):
            rest = b""
            with open_plain(self.path) as stream:
                while True:
                    part, broken = read_part(stream)
                    if not part and not broken:
                        break
                    *lines, rest = (rest + part).split(b"\n")
                    for line in lines:
                        self.number += 1
                        yield line.removesuffix(b"\r")
                    if broken:
                        # A truncated line is not a record.
                        self.broken = broken
                        return
                    if len(rest) > MAX_LINE_BYTES:
                        self.broken = f"a line of more than {MAX_LINE_BYTES >> 20} MiB"
                        return
            if rest:
                self.number += 1
                yield rest.removesuffix(b"\r")
