"""No bytes make a reader of files or answers raise anything but what it says, take long, or take much memory.

Inputs are good documents with pieces changed: what is structured is reached that way, which bytes at random never do.
Whatever was found is kept in corpus/, one file a finding, as READER--WHAT, and is read again each time.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.readers import READERS

CORPUS = Path(__file__).parent / "corpus"
#: The most CPU seconds of one input, and MiB of all.
MOST_S, MOST_MB = 2.0, 500
LONG = 100_000 // len(READERS) + 1

#: Pieces that readers of text trip over: numbers that are none, depths, entities, names of other things, no UTF-8.
_PIECES = st.one_of(
    st.sampled_from(
        [
            *(
                b"",
                b"-1",
                b"1e999",
                b"NaN",
                b"9" * 400,
                b"null",
                b"[" * 3000,
                b"{}",
                b"[]",
                b'"',
                b"'",
                b"\x00",
                b"\xff\xfe",
            ),
            *(
                b"\xed\xa0\x80",
                b"\\ud800",
                b"<!--",
                b"]]>",
                b"&x;",
                b"<queue>",
                b"a: &b [*b]",
                b"!!python/name:os.system",
            ),
            *(b"\n- ", b": ", b"%", b",", b"\r", b"\xe2\x80\xa8", b"0x10", b"true", b"2030-99-99", b"1:1:1", b"? "),
        ]
    ),
    st.binary(max_size=6),
    st.text(max_size=4).map(lambda text: text.encode("utf-8", "surrogatepass")),
)
_CHANGES = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 40), _PIECES), min_size=1, max_size=6)


def read(name: str, data: bytes) -> None:
    reader, begun_s = READERS[name], time.process_time()
    try:
        reader.read(data)
    except reader.raises as error:
        told = str(error)
    else:
        told = ""
    assert "\n" not in told
    spent_s = time.process_time() - begun_s
    assert spent_s < MOST_S, f"{spent_s:.1f} s for {len(data)} bytes"


def changed(good: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for at, length, piece in changes:
        at %= len(good) + 1
        good = good[:at] + piece + good[at + length :]
    return good


def fuzz(name: str, count: int) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.sampled_from(READERS[name].good), _CHANGES)
    def holds(good: bytes, changes: list[tuple[int, int, bytes]]) -> None:
        read(name, changed(good, changes))

    holds()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024 < MOST_MB


@pytest.mark.parametrize("name", READERS)
def test_changed_documents_give_what_the_reader_says(name: str) -> None:
    fuzz(name, 40)


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_a_hundred_thousand_changed_documents(name: str) -> None:
    fuzz(name, LONG)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*--*")), ids=lambda path: path.name)
def test_what_was_found_stays_mended(path: Path) -> None:
    read(path.name.partition("--")[0], path.read_bytes())
