"""A file is taken for what its first bytes say, and what is not read is named with what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.predict.foreign import any_trace
from harness.traces.formats import FORMATS
from harness.traces.recorded import Header, NodeLine, QueueLine, Trace
from tests.traces.histories import Job, Run

CLUSTER = Header(nodes=[NodeLine(count=2, memory_mb=8192, vcores=8)], queues={"root.q": QueueLine()})


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("packed.zstd", b"\x28\xb5\x2f\xfd\x04\x00", "compressed by zstd"),
        ("packed.lz4", b"LZ4Block\x26", "Java's blocks"),
        ("packed.lzf", b"ZV\x00\x00\x05hello", "Spark's lzf codec"),
        ("trace.gz", b"\x1f\x8b\x08", "compressed by gzip"),
        ("trace.xz", b"\xfd7zXZ\x00\x00", "compressed by xz"),
        ("own.csv.gz", gzip.compress(b"job,queue,submit\n1,a,0\n2,b,10\n", mtime=0), "a table (CSV)"),
        ("t.parquet", b"PAR1\x15", "a parquet file"),
        ("history", b'Meta VERSION="1" .\nJob JOBID="job_2009"', "MapReduce 1"),
        ("topology.json", b'{"name":"<root>","children":[{"name":"rack"}]}', "a topology of Rumen"),
        ("own.csv", b"job,queue,submit\n1,a,0\n2,b,10\n", "a table (CSV)"),
    ],
)
def test_what_is_not_read_is_named(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        any_trace(tmp_path / name, CLUSTER, tmp_path / "out" / "trace.jsonl")
    assert expected in refused.value.line()
    assert refused.value.hint


def test_a_single_history_file_is_read(tmp_path: Path) -> None:
    path = Job([Run(0, 8, 18)]).write(tmp_path)
    found = any_trace(path, CLUSTER, tmp_path / "trace.jsonl")
    assert isinstance(found, Trace)
    assert len(found.jobs) == 1


def test_every_reader_says_what_the_table_of_formats_shows() -> None:
    for reader in FORMATS:
        assert reader.name
        assert reader.versions
        assert reader.lacks
        assert reader.assumes
