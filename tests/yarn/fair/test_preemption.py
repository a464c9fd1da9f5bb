"""For which queues a Fair Scheduler kills containers of others, those included that applications create."""

from __future__ import annotations

import pytest

from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.preemption import ENABLE, UNDECLARED, UTILISATION, queues_that_starve

TIMED = "<defaultFairSharePreemptionTimeout>60</defaultFairSharePreemptionTimeout>"
OWN = "<fairSharePreemptionTimeout>60</fairSharePreemptionTimeout>"
ON = {ENABLE: "true"}


def placed(rules: str) -> str:
    return f"<queuePlacementPolicy>{rules}</queuePlacementPolicy>"


NONE_CREATED = placed("<rule name='specified' create='false'/><rule name='reject'/>")
DEFAULT_RULE, USER_RULE = placed("<rule name='default'/>"), placed("<rule name='user'/>")


@pytest.mark.parametrize(
    ("text", "starve"),
    [
        (TIMED, ["root.*"]),
        (f"<queue name='a'/>{TIMED}", ["root.*", "root.a"]),
        (f"<queue name='users' type='parent'/><queue name='a'/>{TIMED}", ["root.*", "root.a", "root.users.*"]),
        # A created queue has its parent's time-outs, and no others.
        (f"<queue name='p' type='parent'>{OWN}</queue>", ["root.p.*"]),
        (f"<queue name='a'>{OWN}</queue>", ["root.a"]),
        ("<queue name='a'/><queue name='b'/>", []),
        (f"<queue name='a'/>{TIMED}{NONE_CREATED}", []),
        (f"<queue name='a'/><queue name='b'/>{TIMED}{NONE_CREATED}", ["root.a", "root.b"]),
        (f"<queue name='default'/>{TIMED}{DEFAULT_RULE}", []),
        (f"<queue name='a'/>{TIMED}{DEFAULT_RULE}", ["root.*", "root.a"]),
        (f"<queue name='a'/>{TIMED}{USER_RULE}", ["root.*", "root.a"]),
    ],
)
def test_created_queues_starve_and_are_preempted_from(text: str, starve: list[str]) -> None:
    assert queues_that_starve(ON, parse_allocations(f"<allocations>{text}</allocations>".encode())) == starve


def test_the_resource_manager_decides_where_it_shows_its_properties() -> None:
    """It may switch preemption off, or keep applications from creating queues; what is not shown may be on."""
    file = parse_allocations(f"<allocations><queue name='default'/>{TIMED}</allocations>".encode())
    assert queues_that_starve(None, file) == ["root.*", "root.default"]
    assert queues_that_starve({}, file) == []
    assert queues_that_starve({**ON, UTILISATION: "1"}, file) == []
    assert queues_that_starve({**ON, UNDECLARED: "false"}, file) == []
