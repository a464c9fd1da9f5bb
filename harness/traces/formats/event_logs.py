"""Files of Spark's event logs: which files one log has, how they are packed, and their lines.

Spark packs a log by one of its codecs (``org.apache.spark.io.CompressionCodec``): zstd's own frames, lz4-java's
``LZ4BlockOutputStream`` and snappy-java's ``SnappyOutputStream``. What users have compressed afterwards (gzip, bzip2,
zstd, lz4's frames) is unpacked as well. The codecs themselves are pyarrow's. Content before damage is read, because a
log that is still being written has no end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from harness.base.errors import InputError
from harness.base.files import open_whole
from harness.traces.formats.compressed import codec_of, read_part, unpacked

#: The first bytes of a log in the formats of lz4-java and of snappy-java.
LZ4, SNAPPY = b"LZ4Block", b"\x82SNAPPY\x00"
#: Spark's lzf codec (compress-lzf), which no maintained Python library supports.
LZF = b"ZV"
LZF_REFUSED = "compressed by Spark's lzf codec"
#: A log's folder and its parts, since Spark 3.0 (``RollingEventLogFilesWriter``). A compacted part replaces all parts
#: up to it, without finished jobs and removed executors (``BasicEventFilterBuilder``).
ROLLED = "eventlog_v2_"
_PART = re.compile(r"events_(\d{1,18})_.+?(\.compact)?")
#: lz4-java's header of a block: the magic, a token, then the sizes and a checksum in little endian.
_LZ4_HEADER = len(LZ4) + 1 + 12
_LZ4_STORED, _LZ4_PACKED = 0x10, 0x20
#: Maximum size of a block (lz4-java's largest is 32 MiB), and of a line.
_MOST_BLOCK = 64 << 20
MOST_LINE = 64 << 20
#: Maximum unpacked size of a log.
_MOST_BYTES = 64 << 30
_PIECE = 1 << 16


class Damaged(Exception):
    """A packed file is truncated or has invalid content for its codec; what came before is valid."""


@dataclass(frozen=True, slots=True)
class EventLog:
    """One application's log.

    Attributes
    ----------
    path : Path
        The file, or the folder of its parts.
    files : tuple of Path
        Its files in the order in which they were written.
    refused : str
        Why it is not read; empty if it is read.
    compacted : bool
        Spark has dropped the events of finished jobs from it.
    missing : bool
        Whether parts are missing.
    """

    path: Path
    files: tuple[Path, ...]
    refused: str = ""
    compacted: bool = False
    missing: bool = False


def log_of(path: Path) -> EventLog:
    """Return the log of a file, or of a folder of parts. A folder without parts has no files."""
    if not path.is_dir():
        return EventLog(path, (path,))
    found = [
        (int(match[1]), match[2] is not None, one)
        for one in path.iterdir()
        if one.is_file() and (match := _PART.fullmatch(_unpacked_name(one.name))) is not None
    ]
    compacted = max((number for number, compact, _ in found if compact), default=-1)
    parts = sorted((number, one) for number, compact, one in found if number > compacted or compact)
    numbers = {number for number, _ in parts if number >= compacted}
    # Spark numbers parts from 1; it refuses to show a log with missing parts.
    first = compacted if compacted >= 0 else 1
    return EventLog(
        path,
        tuple(one for number, one in parts if number >= compacted),
        compacted=compacted >= 0,
        missing=bool(numbers) and numbers != set(range(first, max(numbers) + 1)),
    )


def _unpacked_name(name: str) -> str:
    """Return a part's name without the suffixes of its compression.

    ``events_1_app.zstd.compact`` becomes ``events_1_app.compact``; a following ``.gz``, ``.bz2`` or ``.zst`` is removed
    too.
    """
    name = re.sub(r"\.(gz|bz2|zst)$", "", name)
    return re.sub(r"\.(zstd|lz4|snappy|lzf)(?=$|\.compact$)", "", name)


def is_lzf(head: bytes) -> bool:
    """Return whether a file uses Spark's lzf codec, which is not supported."""
    return len(head) > 7 and head.startswith(LZF) and head[2] in (0, 1)


def beginning_of(path: Path) -> bytes:
    """Return the first 64 KiB of a file, unpacked as far as possible. Raises OSError.

    More of a packed file may have to be read, because the first block of lz4 and snappy may be larger.
    """
    with open_whole(path) as stream:
        return _first_of(_unpacked(stream, stream.peek(8)[:8]))


def first_bytes(head: bytes) -> bytes:
    """Return the first bytes of a log, unpacked as far as they exist; for a file without compression, its bytes."""
    from io import BytesIO

    return _first_of(_unpacked(BytesIO(head), head[:8]))


def _first_of(pieces: Iterator[bytes]) -> bytes:
    found = b""
    try:
        for piece in pieces:
            found += piece
            if len(found) >= _PIECE:
                break
    except Damaged:
        pass
    return found


def lines_of(path: Path) -> Iterator[bytes | None]:
    """Yield the lines of a file, each without its end; None for one that is too long to be an event.

    Raises
    ------
    Damaged
        Raised after the last readable line of a packed file that is damaged or truncated.
    InputError
        The file is unreadable.
    """
    with open_whole(path) as stream:
        head = stream.peek(8)[:8]
        if is_lzf(head):
            raise InputError(LZF_REFUSED, where=str(path), hint="have it written by another codec")
        rest, skipping, total = b"", False, 0
        damaged: Damaged | None = None
        pieces = _unpacked(stream, head)
        while True:
            try:
                piece = next(pieces, None)
            except Damaged as error:
                damaged, piece = error, None
            if piece is None:
                break
            total += len(piece)
            if total > _MOST_BYTES:
                raise InputError(f"it unpacks to more than {_MOST_BYTES >> 30} GiB", where=str(path), hint="split it")
            *whole, last = piece.split(b"\n")
            for line in whole:
                line, rest = rest + line, b""
                if skipping:
                    yield None
                elif line:
                    yield line
                skipping = False
            rest = b"" if skipping else rest + last
            if len(rest) > MOST_LINE:
                rest, skipping = b"", True
        if skipping:
            yield None
        elif rest:
            yield rest
        if damaged is not None:
            raise damaged


def _unpacked(stream: BinaryIO, head: bytes) -> Iterator[bytes]:
    """Yield the unpacked content of a file that begins with `head`, piece by piece. Raises Damaged."""
    if (codec := codec_of(head)) is not None:
        return _of_arrow(stream, codec)
    if head.startswith(LZ4):
        return _of_lz4(stream)
    if head.startswith(SNAPPY):
        return _of_snappy(stream)
    return iter(lambda: stream.read(_PIECE), b"")


def _of_arrow(stream: BinaryIO, codec: str) -> Iterator[bytes]:
    packed = unpacked(stream, codec)
    while True:
        piece, broken = read_part(packed, _PIECE)
        if piece:
            yield piece
        if broken:
            raise Damaged(broken)
        if not piece:
            return


def _of_lz4(stream: BinaryIO) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    while header := stream.read(_LZ4_HEADER):
        if len(header) < _LZ4_HEADER or not header.startswith(LZ4):
            raise Damaged("no block of lz4 begins where one should")
        token = header[len(LZ4)]
        packed_n, plain_n = (int.from_bytes(header[at : at + 4], "little") for at in (9, 13))
        if not plain_n:
            continue  # the end of a stream; another one may follow
        block = _block(stream, packed_n, plain_n)
        if token & 0xF0 == _LZ4_STORED and packed_n == plain_n:
            yield block
        elif token & 0xF0 == _LZ4_PACKED:
            yield _decoded(codec, block, plain_n)
        else:
            raise Damaged("a block of lz4 that is neither packed nor plain")


def _of_snappy(stream: BinaryIO) -> Iterator[bytes]:
    codec = pa.Codec("snappy")
    while True:
        size = stream.read(4)
        if not size:
            return
        if size == SNAPPY[:4]:
            # A stream's header: the rest of the magic, and two versions. Another stream may follow the first.
            if len(stream.read(len(SNAPPY) - 4 + 8)) < len(SNAPPY) - 4 + 8:
                raise Damaged("the file ends in a header")
            continue
        if len(size) < 4:
            raise Damaged("the file ends between two blocks")
        packed_n = int.from_bytes(size, "big")
        if packed_n > _MOST_BLOCK:
            raise Damaged("no block of snappy begins where one should")
        block = _block(stream, packed_n, 0)
        yield _decoded(codec, block, _snappy_length(block))


def _block(stream: BinaryIO, packed_n: int, plain_n: int) -> bytes:
    if not 0 <= packed_n <= _MOST_BLOCK or plain_n > _MOST_BLOCK:
        raise Damaged("a block's size that its codec does not write")
    block = stream.read(packed_n)
    if len(block) < packed_n:
        raise Damaged("the file ends in a block")
    return block


def _snappy_length(block: bytes) -> int:
    """Return the unpacked length of a snappy block, which is at its beginning as a varint, lowest bits first."""
    value = 0
    for at, byte in enumerate(block[:5]):
        value |= (byte & 0x7F) << (7 * at)
        if not byte & 0x80:
            if value > _MOST_BLOCK:
                break
            return value
    raise Damaged("a block's size that its codec does not write")


def _decoded(codec: pa.Codec, block: bytes, plain_n: int) -> bytes:
    try:
        return bytes(codec.decompress(block, decompressed_size=plain_n, asbytes=True))
    except (OSError, ValueError) as error:
        raise Damaged(str(error)[:80]) from None
