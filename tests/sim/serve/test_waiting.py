"""Applications that a limit holds on a served cluster: the diagnostics and limits that REST shows, and `explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.experiments.served import with_file
from harness.model.jobs import NodeSpec
from harness.model.resources import Resource
from harness.sim.fair.limits import can_run_am
from harness.sim.fair.served import am_limit
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.rest import RestServer
from harness.sim.setup import SimSetup
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.holds import holds_of_queue, look
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient, Submission
from tests.sim.serve.conftest import CONF

FAIR = """<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <user name="bob"><maxRunningApps>1</maxRunningApps></user>
  <queue name="am"><maxAMShare>0.05</maxAMShare></queue>
  <queue name="most"><maxResources>768 mb, 8 vcores</maxResources></queue>
  <queue name="dept"><maxRunningApps>1</maxRunningApps><queue name="x"/><queue name="y"/></queue>
  <queue name="users"/>
</allocations>
"""
CAPACITY = {
    "root.queues": "am,users,parallel",
    "root.am.capacity": "30",
    "root.am.maximum-am-resource-percent": "0.1",
    "root.users.capacity": "40",
    "root.users.maximum-am-resource-percent": "1",
    "root.users.user-limit-factor": "0.1",
    "root.parallel.capacity": "30",
    "root.parallel.maximum-am-resource-percent": "1",
    "root.parallel.max-parallel-apps": "1",
}
#: The RM's words on an application that may not start yet; its time comes first.
ADDED = "Application is added to the scheduler and is not yet activated. "


@contextmanager
def cluster(tmp_path: Path, scheduler: str) -> Iterator[tuple[LiveCluster, list[float], RestClient]]:
    """Two nodes of 4 GiB and 8 vcores with the queues above."""
    nodes, now = (NodeSpec("n1", 4096, 8), NodeSpec("n2", 4096, 8)), [1.7e9]
    if scheduler == "fair":
        file, text = tmp_path / "fair-scheduler.xml", FAIR
        setup = SimSetup(nodes, parse_allocations(text), jobs=[], conf=CONF)
    else:
        file = tmp_path / "capacity-scheduler.xml"
        rows = (
            f"<property><name>yarn.scheduler.capacity.{name}</name><value>{value}</value></property>"
            for name, value in CAPACITY.items()
        )
        text = f"<configuration>{''.join(rows)}</configuration>"
        file.write_text(text)
        empty = parse_allocations("<allocations/>")
        setup = with_file(SimSetup(nodes, empty, jobs=[], conf=CONF, scheduler="capacity"), file)
    file.write_text(text)
    live = LiveCluster(setup, file, clock=lambda: now[0], log=lambda line: None)
    server = RestServer(live)
    server.start()
    try:
        yield live, now, RestClient([server.url])
    finally:
        server.stop()


def submit(rest: RestClient, queue: str, user: str = "alice") -> str:
    """Submit an application whose master holds 512 MiB and 1 vcore."""
    client = RestClient([rest.http.current], HttpOptions(user=user))
    return client.submit(Submission("sleeper", queue, "sleep 100000", Resource(512, 1)))


def words(rest: RestClient, identity: str) -> str:
    """Return the RM's words without their time."""
    return re.sub(r"^\[[^]]*\] ", "", rest.app(identity).diagnostics)


def kinds(rest: RestClient, path: str) -> list[tuple[str, str, float | None, float | None]]:
    """Return what holds a queue back."""
    return [(hold.kind, hold.queue, hold.has, hold.limit) for hold in holds_of_queue(look(rest), path)]


def test_a_fair_schedulers_applications_say_which_limit_they_wait_for(tmp_path: Path) -> None:
    """The words are those of a real ResourceManager (tests/yarn/recorded/held)."""
    with cluster(tmp_path, "fair") as (live, now, rest):
        for queue, user in (("most", "alice"), ("dept.x", "alice"), ("users", "bob")):
            submit(rest, f"root.{queue}", user)
        now[0] += 5.0
        live.catch_up()
        held = {
            "root.am": submit(rest, "root.am"),
            "root.most": submit(rest, "root.most"),
            "root.dept.y": submit(rest, "root.dept.y"),
            "root.users": submit(rest, "root.users", "bob"),
        }
        now[0] += 5.0
        live.catch_up()
        asked = " (Resource request: <memory:512, vCores:1> exceeds"
        limit = "has reached the maximum limit of runnable applications."
        assert {path: words(rest, identity) for path, identity in held.items()} == {
            "root.am": f"{ADDED}{asked} maximum AM resource allowed).",
            "root.most": f"{ADDED}{asked} current queue or its parents maximum resource allowed). "
            "Max share of queue: <memory:768, vCores:8>",
            "root.dept.y": f'{ADDED}The queue "root.dept.y" {limit}',
            "root.users": f'{ADDED}The user "bob" {limit}',
        }
        facts = look(rest)
        # 5 % of the fair share, in which all queues with applications that may run have a part, rounded up.
        share = facts.status.queues["root.am"].fair_share.memory_mb
        most = -(-share * 5 // 100)
        assert facts.limits.queues["root.am"].am_limit.memory_mb == most
        assert kinds(rest, "root.am") == [("am-share", "root.am", 0, most)]
        assert kinds(rest, "root.most") == [("maximum", "root.most", 512, 768)]
        assert kinds(rest, "root.dept.y") == [("running-apps", "root.dept", 1, 1)]
        assert kinds(rest, "root.users") == [("user-running-apps", "root.users", 1, None)]


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0, -1.0])
def test_the_masters_limit_that_is_shown_is_the_one_that_the_scheduler_applies(tmp_path: Path, share: float) -> None:
    with cluster(tmp_path, "fair") as (live, now, rest):
        for queue in ("am", "users"):
            submit(rest, f"root.{queue}")
        now[0] += 5.0
        live.catch_up()
        scheduler = live.sim.scheduler
        S = scheduler.S
        for path in ("root.am", "root.users", "root.most"):
            leaf = scheduler.queue_slots[path]
            S.q[leaf]["max_am_share"] = share
            limit = am_limit(S.q[leaf], S.g[0])
            if limit is None:
                assert share == -1.0
                assert can_run_am(S, leaf, 2**40, 2**20)
                continue
            # Under `fair` a queue has no share of vcores, and all that are free count instead.
            left = limit[0] - int(S.q[leaf]["am_mb"])
            assert can_run_am(S, leaf, left, 0)
            assert not can_run_am(S, leaf, left + 1, 0)
            left = limit[1] - int(S.q[leaf]["am_vcores"])
            assert not can_run_am(S, leaf, 0, left + 1)


def test_a_capacity_schedulers_applications_say_which_limit_they_wait_for(tmp_path: Path) -> None:
    with cluster(tmp_path, "capacity") as (live, now, rest):
        first = {queue: submit(rest, f"root.{queue}", "anna") for queue in ("am", "users", "parallel")}
        now[0] += 5.0
        live.catch_up()
        assert all("AM container is launched" in words(rest, identity) for identity in first.values())
        second = {queue: submit(rest, f"root.{queue}", "anna") for queue in ("am", "users", "parallel")}
        now[0] += 5.0
        live.catch_up()
        facts = look(rest)
        said = {queue: words(rest, identity) for queue, identity in second.items()}
        assert said["parallel"] == ""
        for queue, whose in (("am", "Queue's"), ("users", "User's")):
            limits = facts.limits.queues[f"root.{queue}"]
            [user] = limits.users
            assert (user.name, user.used, user.am_used, user.waiting_apps) == (
                "anna",
                Resource(512, 1),
                Resource(512, 1),
                1,
            )
            assert said[queue] == (
                f"{ADDED}{whose} AM resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; "
                "AM Resource Request = <memory:512, vCores:1>; Queue Resource Limit for AM = "
                f"<memory:{limits.am_limit.memory_mb}, vCores:1>; User AM Resource Limit of the queue = "
                f"<memory:{user.am_limit.memory_mb}, vCores:1>; Queue AM Resource Usage = <memory:512, vCores:1>; "
            )
        # A tenth of what the queue could have when the scheduler last came to it.
        most = facts.limits.queues["root.am"].am_limit.memory_mb
        assert 256 <= most < 1024
        # The scheduler names the first limit; the user's own one, a tenth of the queue's capacity, has no room either.
        [anna] = facts.limits.queues["root.am"].users
        assert anna.am_limit.memory_mb < 1024
        assert kinds(rest, "root.am") == [
            ("am-share", "root.am", 512, most),
            ("user-am-share", "root.am", 512, anna.am_limit.memory_mb),
        ]
        assert kinds(rest, "root.users") == [("user-am-share", "root.users", 512, 512)]
        assert kinds(rest, "root.parallel") == [("running-apps", "root.parallel", 1, 1)]


def test_an_active_application_says_so(tmp_path: Path) -> None:
    """Until its master has a container, which a full cluster does not have for it."""
    with cluster(tmp_path, "capacity") as (live, now, rest):
        submitted = submit(rest, "root.users", "anna")
        assert words(rest, submitted) == "Application is Activated, waiting for resources to be assigned for AM. "
        now[0] += 5.0
        live.catch_up()
        assert "AM container is launched" in words(rest, submitted)
