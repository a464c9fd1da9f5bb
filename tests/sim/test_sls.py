"""SLS JSON traces: what is read, and one line for what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.model.resources import Resource
from harness.traces.sls import load_jobs, load_nodes

TRACE = """{"num.nodes": 3, "num.racks": 1}
{
  "am.type": "mapreduce", "job.start.ms": 2000, "job.end.ms": 95375, "job.queue.name": "q1", "job.id": "job_1",
  "job.user": "ann",
  "job.tasks": [
    {"count": 2, "container.host": "/default-rack/node1", "container.start.ms": 6664, "container.end.ms": 23707,
     "container.priority": 20, "container.type": "map"},
    {"duration.ms": "5000", "container.type": "reduce", "container.priority": 10, "container.memory-mb": 2048,
     "container.vcores": 2}]
}
{"job.start.ms": 5, "job.queue.name": "root.q2", "job.count": 2, "job.tasks": [{"duration.ms": 50}]}
"""


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_jobs(tmp_path: Path) -> None:
    jobs = load_jobs(write(tmp_path, TRACE))
    assert [(job.id, job.queue, job.submit_s, job.user) for job in jobs] == [
        ("1", "root.q2", 0.005, "default"),
        ("2", "root.q2", 0.005, "default"),
        ("job_1", "root.q1", 2.0, "ann"),
    ]
    maps, reduces = jobs[-1].stages
    assert (maps.tasks, maps.duration.values_s, maps.demand) == (2, (17.043, 17.043), Resource(1024, 1))
    assert (reduces.after, reduces.slow_start, reduces.demand) == (("map",), 1.0, Resource(2048, 2))
    assert reduces.duration.values_s == (5.0,)


def test_nodes(tmp_path: Path) -> None:
    racks = '{"rack": "r1", "nodes": [{"node": "a"}, {"node": "b", "memory-mb": 2048, "vcores": 4}]}\n'
    racks += '{"nodes": [{"node": "c"}]}'
    nodes = load_nodes(write(tmp_path, racks))
    assert [(n.name, n.rack, n.memory_mb, n.vcores) for n in nodes] == [
        ("a", "/r1", 10240, 10),
        ("b", "/r1", 2048, 4),
        ("c", "/default-rack", 10240, 10),
    ]
    assert len(load_nodes(write(tmp_path, TRACE))) == 3


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 0, "empty"),
        ("  \n", 0, "empty"),
        (TRACE[:300], 2, "ends inside"),
        (TRACE + '{"job.queue.name": "q"}', 12, "job.tasks"),
        ('{"job.queue.name": "q", "job.tasks": [{"duration.ms": -5}]}', 1, "duration.ms"),
        ('{"job.queue.name": "q", "job.tasks": [{"duration.ms": NaN}]}', 1, "NaN"),
        ('{"job.queue.name": "q", "job.tasks": [{"duration.ms": 1e300}]}', 1, "duration.ms"),
        ('{"job.queue.name": "q", "job.tasks": [{"duration.ms": 99999999999999999999999}]}', 1, "duration.ms"),
        ('{"job.queue.name": "q", "job.tasks": [{"duration.ms": true}]}', 1, "duration.ms"),
        ('{"job.queue.name": "q", "job.start.ms": "+-5", "job.tasks": [{"duration.ms": 1}]}', 1, "not a whole number"),
        ('{"job.queue.name": "q", "job.start.ms": "-5", "job.tasks": [{"duration.ms": 1}]}', 1, "outside"),
        ('{"job.queue.name": "q", "job.tasks": [{"duration.ms": "' + "9" * 5000 + '"}]}', 1, "outside"),
        ('{"job.queue.name": "q", "job.tasks": [{"container.start.ms": 9, "container.end.ms": 3}]}', 1, "before"),
        ('{"job.queue.name": "q", "job.tasks": [{"duration.ms": 1, "count": 100000000}]}', 1, "count"),
        ('{"job.queue.name": "q", "job.tasks": []}', 1, "job.tasks"),
        ('{"job.queue.name": ["q"], "job.tasks": [{"duration.ms": 1}]}', 1, "job.queue.name"),
        ('{"job.tasks": [{"duration.ms": 1}]}', 1, "job.queue.name"),
        ('{"job.queue.name": "q",\n\n "job.tasks": [,]}', 3, "JSON"),
        ("[1, 2]", 1, "object"),
        ('{"a":' * 3000, 1, ""),
        ('{"job.queue.name":"q","job.id":"x","job.tasks":[{"duration.ms":1}]}' * 2, 1, "also appears at"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_jobs(path)
    shown = caught.value.line()
    assert "\n" not in shown
    assert says in shown
    assert (f"{path}:{line}" if line else str(path)) in shown
    assert caught.value.hint


def test_not_text_and_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="UTF-8"):
        load_jobs(write(tmp_path, b'{"a": "\xff\xfe"}'))
    with pytest.raises(InputError, match="cannot be read"):
        load_jobs(tmp_path / "none.json")
    with pytest.raises(InputError, match="no node"):
        load_nodes(write(tmp_path, TRACE.split("\n", 1)[1]))
    with pytest.raises(InputError, match="twice"):
        load_nodes(write(tmp_path, '{"nodes": [{"node": "a"}, {"node": "a"}]}'))
