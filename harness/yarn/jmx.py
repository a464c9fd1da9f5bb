"""How many containers each queue has been given and has given back, from the RM's JMX page (``/jmx``).

REST shows how many containers a queue holds, not how many came and went; QueueMetrics count them since the RM's start.
An RM behind a proxy may not show the page: who asks must be able to do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.yarn.answers import Fields
from harness.yarn.errors import BadAnswer
from harness.yarn.http import HttpClient

BEANS = "Hadoop:service=ResourceManager,name=QueueMetrics"


class Containers(NamedTuple):
    """Counts since the RM's start."""

    allocated: int
    released: int


def queue_containers(http: HttpClient, *, only: str | None = None) -> Mapping[str, Containers]:
    """Queue path -> counts, parents included. Raises Unreachable, Refused or BadAnswer.

    ``only`` asks that one address. Of a pair give it: a standby shows the page too, with counts of its own.
    """
    answer = http.request("GET", "/jmx", params={"qry": f"{BEANS},*"}, repeatable=True, only=only)
    return parse(answer.document, answer.url)


def parse(document: object, where: str) -> Mapping[str, Containers]:
    """The counts in a JMX document. Beans of single users are passed over."""
    beans = document.get("beans") if isinstance(document, dict) else None
    if not isinstance(beans, list):
        raise BadAnswer("no list of beans", where=where)
    found: dict[str, Containers] = {}
    for index, bean in enumerate(beans):
        fields = Fields(bean, where, f"beans[{index}]")
        name = fields.text("name", "")
        if not name.startswith(f"{BEANS},") or ",user=" in name:
            continue
        # q0=root,q1=a: a queue's name may hold anything but the dot.
        parts = name.removeprefix(f"{BEANS},").split(",q")
        path = ".".join(part.partition("=")[2] for part in parts)
        found[path] = Containers(
            fields.integer("AggregateContainersAllocated", least=0),
            fields.integer("AggregateContainersReleased", least=0),
        )
    return found
