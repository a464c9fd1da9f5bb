"""The table of readable formats, and of formats that are recognised and refused by name.

A reader is one module with a class that has what `TraceFormat` declares, entered in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.traces.formats.alibaba2018 import Alibaba2018
from harness.traces.formats.alibaba_gpu2020 import AlibabaGpu2020
from harness.traces.formats.alibaba_gpu2023 import AlibabaGpu2023
from harness.traces.formats.base import Assumptions, ConvertibleFormat, Reading, TimedJob, TraceFormat
from harness.traces.formats.compressed import plain_head
from harness.traces.formats.event_logs import LZF_REFUSED, is_lzf
from harness.traces.formats.google2019 import Google2019
from harness.traces.formats.jobhistory import JobHistory
from harness.traces.formats.jobs_csv import OPTIONAL, REQUIRED, JobsCsv
from harness.traces.formats.opencloud import OpenCloud
from harness.traces.formats.philly import Philly
from harness.traces.formats.rumen import Rumen
from harness.traces.formats.sls import Sls
from harness.traces.formats.spark import SparkEventLog
from harness.traces.formats.swf import Swf
from harness.traces.formats.wta import Wta

_SPARK = SparkEventLog()
#: Readers, tried in this order.
FORMATS: tuple[TraceFormat, ...] = (
    JobHistory(),
    _SPARK,
    Rumen(),
    Sls(),
    Wta(),
    Philly(),
    Google2019(),
    AlibabaGpu2020(),
    AlibabaGpu2023(),
    Alibaba2018(),
    OpenCloud(),
    JobsCsv(),
    Swf(),
)

#: Number of bytes of a file by which its format is recognised.
HEAD_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A format that is recognised but not read: its name, a test of a file's first bytes, and a hint."""

    what: str
    recognises: Callable[[bytes], bool]
    hint: str


def _starts(*magics: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.lstrip(b"\xef\xbb\xbf").startswith(magics)


def _csv(head: bytes) -> bool:
    """Return whether all lines have the same number of commas, semicolons or tabulators, and none looks like JSON.

    The last line may be incomplete. SWF (comments with ``;``) and XML are excluded too.
    """
    lines = [line for line in head.decode("latin-1").splitlines() if line.strip()][:20]
    if not lines or any(line.lstrip().startswith(("{", "[", "<", ";")) for line in lines):
        return False
    return any(
        lines[0].count(mark) > 0 and all(line.count(mark) == lines[0].count(mark) for line in lines[:-1] or lines)
        for mark in (",", ";", "\t")
    )


_WRITE_OURS = "write its jobs as lines of a trace (docs/reference/trace.md has a converter of ten lines)"
_UNPACK = "unpack it: "
_AGAIN = "fetch it again"

#: Files in an unsupported compression, or too damaged to unpack, by their first bytes.
_COMPRESSED: tuple[Unreadable, ...] = (
    Unreadable("compressed by gzip, and damaged from its beginning on", _starts(b"\x1f\x8b"), _AGAIN),
    Unreadable("compressed by bzip2, and damaged from its beginning on", _starts(b"BZh"), _AGAIN),
    Unreadable("compressed by zstd, and damaged from its beginning on", _starts(b"\x28\xb5\x2f\xfd"), _AGAIN),
    Unreadable("compressed by lz4, and damaged from its beginning on", _starts(b"\x04\x22\x4d\x18"), _AGAIN),
    Unreadable(
        "compressed by lz4 (Java's blocks), and no event log of Spark's",
        _starts(b"LZ4Block"),
        "unpack it with the program that wrote it",
    ),
    Unreadable("compressed by snappy", _starts(b"\xff\x06\x00\x00sNaPpY", b"\x82SNAPPY\x00"), f"{_UNPACK}snzip -d"),
    Unreadable(
        LZF_REFUSED,
        is_lzf,
        "let a Spark History Server give it unpacked (http://HOST:18080/api/v1/applications/ID/logs, a zip archive), "
        "or have it written by another codec: spark.eventLog.compression.codec=zstd",
    ),
    Unreadable("compressed by xz", _starts(b"\xfd7zXZ\x00"), f"{_UNPACK}xz -d FILE"),
    Unreadable("a zip archive", _starts(b"PK\x03\x04"), f"{_UNPACK}unzip FILE"),
    Unreadable("a parquet file", _starts(b"PAR1"), _WRITE_OURS),
    Unreadable("an Avro container file", _starts(b"Obj\x01"), _WRITE_OURS),
)
#: Formats by their first bytes, tried in this order.
UNREADABLE: tuple[Unreadable, ...] = (
    *_COMPRESSED,
    Unreadable(
        "a job history of MapReduce 1 (text)",
        lambda head: head.startswith((b"Meta VERSION=", b"Job JOBID=", b"Jobtracker ")),
        "make a Rumen trace of it with a Hadoop 1 (org.apache.hadoop.tools.rumen.TraceBuilder) and give that",
    ),
    Unreadable(
        "a topology of Rumen, which has nodes and no jobs",
        lambda head: b'"name"' in head and b'"children"' in head and b'"jobID"' not in head,
        "give the job trace that TraceBuilder writes beside it",
    ),
    Unreadable(
        "SLS' description of a synthetic load, which has no jobs of its own",
        lambda head: b'"job_classes"' in head,
        "give jobs with their tasks (an SLS trace with job.tasks, or Rumen's)",
    ),
    Unreadable(
        "an SLS topology, which has nodes and no jobs",
        lambda head: b'"rack"' in head and b'"node"' in head and b'"job.tasks"' not in head,
        "give the jobs, and the nodes by --cluster FILE (docs/how-to/assess.md shows one)",
    ),
    Unreadable(
        "a table (CSV) without the columns of a table of jobs",
        _csv,
        f"name its columns in the first line: {', '.join(REQUIRED)}; if wanted {', '.join(OPTIONAL)}",
    ),
)


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked if `compressed` supports it; none for a folder."""
    return b"" if path.is_dir() else plain_head(path, HEAD_BYTES)


def format_of(path: Path, head: bytes) -> TraceFormat | Unreadable | None:
    """Return the reader of a file or folder, or the unreadable format; None if it is not recognised."""
    compressed = next((one for one in _COMPRESSED if head and one.recognises(head)), None)
    if compressed is not None:
        return _SPARK if _SPARK.recognises(path, head) else compressed
    known = next((one for one in FORMATS if one.recognises(path, head)), None)
    if known is not None:
        return known
    return next((one for one in UNREADABLE if head and one.recognises(head)), None)


__all__ = [
    "FORMATS",
    "UNREADABLE",
    "Assumptions",
    "ConvertibleFormat",
    "Reading",
    "TimedJob",
    "TraceFormat",
    "Unreadable",
    "format_of",
    "head_of",
]
