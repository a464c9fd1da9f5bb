"""Numbers of containers allocated to and released by each queue, from the RM's JMX page (``/jmx``).

REST shows how many containers a queue holds, not how many started and ended; QueueMetrics counts these since the RM's
start. An RM behind a proxy may not show the page, so callers must be able to do without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.yarn.answers import Fields
from harness.yarn.errors import BadAnswer
from harness.yarn.http import HttpClient

BEANS = "Hadoop:service=ResourceManager,name=QueueMetrics"


class Containers(NamedTuple):
    """Counts of one queue since the RM's start."""

    allocated: int
    released: int


def queue_containers(http: HttpClient, *, only: str | None = None) -> Mapping[str, Containers]:
    """Return queue path -> counts, including parents. Raises Unreachable, Refused or BadAnswer.

    ``only``: the address to query. It is needed for a high-availability pair, because a standby also shows the page,
    with counts of its own.
    """
    answer = http.request("GET", "/jmx", params={"qry": f"{BEANS},*"}, repeatable=True, only=only)
    return parse(answer.document, answer.url)


def parse(document: object, where: str) -> Mapping[str, Containers]:
    """Return the counts in a JMX document. Beans of single users are skipped."""
    beans = document.get("beans") if isinstance(document, dict) else None
    if not isinstance(beans, list):
        raise BadAnswer("no list of beans", where=where)
    found: dict[str, Containers] = {}
    for index, bean in enumerate(beans):
        fields = Fields(bean, where, f"beans[{index}]")
        name = fields.text("name", "")
        if not name.startswith(f"{BEANS},") or ",user=" in name:
            continue
        # The name is like q0=root,q1=a. A queue's name may contain any character except a dot.
        parts = name.removeprefix(f"{BEANS},").split(",q")
        path = ".".join(part.partition("=")[2] for part in parts)
        found[path] = Containers(
            fields.integer("AggregateContainersAllocated", least=0),
            fields.integer("AggregateContainersReleased", least=0),
        )
    return found
