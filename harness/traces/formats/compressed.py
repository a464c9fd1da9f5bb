"""Files as they are without compression: gzip, bzip2, zstd and lz4 are recognised by their first bytes and unpacked.

Arrow unpacks: it takes files of several members, and raises an error at a stream that is damaged or ends early.
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
#: What one line may hold; what is longer is damaged, and a bomb would be one line.
MAX_LINE_BYTES = 16 << 20
_CHUNK = 1 << 20
#: In small parts: of one in which the stream is cut nothing is given.
_SMALL = 4096


def codec_of(head: bytes) -> str | None:
    """Arrow's name of the compression of a file with these first bytes; None for none that is unpacked here."""
    return next((codec for magic, codec in MAGICS.items() if head.startswith(magic)), None)


def unpacked(raw: BinaryIO, codec: str) -> BinaryIO:
    """A stream of the contents of a compressed one, which it closes with itself; `read_part` reads it."""
    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec))


@contextlib.contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """A user's file to be read, unpacked. Raises OSError, also later, where the compressed stream is damaged."""
    with open_whole(path) as raw:
        codec = codec_of(raw.peek(8))
        if codec is None:
            yield raw
        else:
            with unpacked(raw, codec) as stream:
                yield stream


def plain_head(path: Path, most: int) -> bytes:
    """The first bytes of a file, unpacked; as they are where nothing can be unpacked. Raises OSError."""
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
    """What can be read of a file, unpacked.

    Attributes
    ----------
    data : bytes
        From the beginning on.
    broken : str
        Why the rest of the file cannot be read; empty where it was read to its end.
    """

    data: bytes
    broken: str = ""

    def text(self, errors: str = "strict") -> str:
        """As text; a character that is cut is none. Raises UnicodeDecodeError for what is no UTF-8."""
        return codecs.getincrementaldecoder("utf-8")(errors).decode(self.data, final=not self.broken)


def readable_bytes(path: Path, most: int) -> PlainBytes:
    """What can be read of a user's file, unpacked. Raises OSError, also for nothing, or more than ``most`` bytes."""
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
    """About ``most`` bytes of a stream, and why no more can be read; no bytes and no reason: the end."""
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
    """The lines of a file, unpacked, one after another. Memory holds those of about 1 MiB, or one longer line.

    Attributes
    ----------
    broken : str
        After the last line: why the rest of the file cannot be read; empty where it was read to its end.
    number : int
        The number of the line that was given last, from 1 on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broken = ""
        self.number = 0

    def __iter__(self) -> Iterator[bytes]:
        """Each line without its end. Raises InputError where the file cannot be opened."""
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
                        # The beginning of a line that is cut is no record.
                        self.broken = broken
                        return
                    if len(rest) > MAX_LINE_BYTES:
                        self.broken = f"a line of more than {MAX_LINE_BYTES >> 20} MiB"
                        return
            if rest:
                self.number += 1
                yield rest.removesuffix(b"\r")
