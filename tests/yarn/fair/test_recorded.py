"""Settings and fair shares equal to recorded answers of Hadoop 3.4.2's classes.

tests/oracle/hadoop_allocations.py records them.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.oracle.hadoop_allocations import differences, explain, our_answer

RECORDS = json.loads(gzip.decompress((Path(__file__).parent / "recorded.json.gz").read_bytes()))


def test_the_record_covers_what_it_should() -> None:
    answers = [record["hadoop"] for record in RECORDS]
    loaded = [answer for answer in answers if answer.get("loaded") and not answer.get("hangs")]
    queues = [queue for answer in loaded for queue in answer["queues"].values()]
    assert len(loaded) >= 100
    assert sum(answer.get("loaded") is False for answer in answers) >= 20
    assert sum(bool(answer.get("hangs")) for answer in answers) >= 1
    assert {queue["policy"] for queue in queues} == {"fair", "drf", "fifo"}
    assert sum(queue["steady"] != queue["fair"] for queue in queues) >= 50
    assert sum(queue["min"][0] > 0 for queue in queues) >= 50


@pytest.mark.parametrize("part", range(8))
def test_settings_and_shares_are_hadoops(part: int) -> None:
    for record in RECORDS[part::8]:
        case = record["case"]
        found = differences(case, record["hadoop"], our_answer(case))
        assert not found, explain(case, found)
