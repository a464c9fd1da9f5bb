"""What holds queues and applications back, from answers of real ResourceManagers (3.4.2), recorded.

Each recorded cluster had two nodes of 4 GiB and 8 vcores. Applications of 512 MiB and 1 vcore whose masters sleep were
submitted to queues that are limited in one way each, and to ``root.full`` until nothing was left. Parts of the answers
that the product does not read are left out of the recordings.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.cli import main
from harness.control.explain import expected_s, explain, explain_app
from harness.control.view import View, from_rm
from harness.model.resources import Resource
from harness.yarn import answers, queue_answers
from harness.yarn.holds import Facts, holds_of_app, holds_of_queue, look, room
from harness.yarn.queue_limits import scheduler_limits
from harness.yarn.rest import RestClient
from tests.yarn.fake_server import FakeServer, http

RECORDED = Path(__file__).parents[1] / "yarn" / "recorded" / "held"


def recorded(kind: str, name: str) -> Any:
    return json.loads((RECORDED / kind / f"{name}.json").read_text())


def facts_of(kind: str) -> Facts:
    tree = recorded(kind, "scheduler")
    return Facts(
        queue_answers.scheduler(tree, "x"),
        scheduler_limits(tree, "x"),
        answers.apps(recorded(kind, "apps"), "x"),
        answers.nodes(recorded(kind, "nodes"), "x"),
        container_every_s=20.0,
        smallest=Resource(256, 1),
    )


def view_of(facts: Facts) -> View:
    weights = {path: queue.setting or 1.0 for path, queue in facts.status.queues.items()}
    return from_rm(1000.0, "http://rm", facts.status, weights, facts.apps, facts=facts)


P = "yarn.scheduler.capacity."
#: Scheduler, queue -> kind of limit, the queue that has it, setting, what is held of how much, how to mend it.
HELD = {
    ("fair", "root.am"): ("am-share", "root.am", "maxAMShare of root.am", 0, 144, "to 0.36 or more"),
    ("fair", "root.most"): ("maximum", "root.most", "maxResources of root.most", 1, 1, "to 2 vcores or more"),
    ("fair", "root.runs"): ("running-apps", "root.runs", "maxRunningApps of root.runs", 1, 1, "to 2 or more"),
    ("fair", "root.dept.y"): ("running-apps", "root.dept", "maxRunningApps of root.dept", 1, 1, "to 2 or more"),
    ("fair", "root.users"): (
        "user-running-apps", "root.users", "maxRunningApps of user bob", 1, None, 'of <user name="bob">, or userMaxApps'
    ),
    ("capacity", "root.am"): (
        "user-am-share", "root.am", f"{P}root.am.maximum-am-resource-percent", 512, 256, "from 0.1 to 0.94 or more"
    ),
    ("capacity", "root.most"): (
        "maximum", "root.most", f"{P}root.most.maximum-capacity", 1024, 1228, "from 15 to 18.8 % or more"
    ),
    ("capacity", "root.parallel"): (
        "running-apps", "root.parallel", f"{P}root.parallel.max-parallel-apps", 1, 1, "to 2 or more"
    ),
    ("capacity", "root.dept.y"): (
        "running-apps", "root.dept", f"{P}root.dept.max-parallel-apps", 1, 1, "to 2 or more"
    ),
    ("capacity", "root.factor"): (
        "user-am-share", "root.factor", f"{P}root.factor.user-limit-factor", 1024, 1024, "from 1 to 1.57 or more"
    ),
    ("capacity", "root.users"): (
        "user-running-apps", "root.users", f"{P}user.bob.max-parallel-apps", 1, None, f"or {P}user.max-parallel-apps"
    ),
}  # fmt: skip


#: Where a second limit holds the same application.
ALSO = {("capacity", "root.most"): ["user-am-share"]}


@pytest.mark.parametrize(("kind", "path"), HELD)
def test_a_queue_is_told_which_limit_holds_it_and_which_setting_mends_it(kind: str, path: str) -> None:
    facts = facts_of(kind)
    hold, *more = holds_of_queue(facts, path)
    *told, mend = HELD[kind, path]
    assert [one.kind for one in more] == ALSO.get((kind, path), [])
    assert [hold.kind, hold.queue, hold.setting, hold.has, hold.limit] == told
    assert mend in hold.mend
    view = view_of(facts)
    words = explain(view, path)
    assert hold.line() in words
    assert not any("It is next" in line or "wants nothing" in line for line in words), words
    [app] = [app for app in facts.waiting(path) if hold in holds_of_app(facts, app)][:1]
    assert hold.line() in explain_app(view, app)
    assert expected_s(view, view.queues[path]) is None


def test_a_users_limit_is_told_that_the_scheduler_does_not_name_because_another_one_holds_first() -> None:
    """On a ResourceManager (3.5.0), the third application of this queue did not start with a higher maximum alone.

    It started with a maximum of 30 and a part for masters of 1.57, and not with 1.56.
    """
    facts = facts_of("capacity")
    setting = f"{P}root.most.maximum-am-resource-percent"
    _, user = holds_of_queue(facts, "root.most")
    assert (user.kind, user.setting, user.has, user.limit) == ("user-am-share", setting, 1024, 1024)
    assert user.mend == "Raise it from 1 to 1.57 or more"
    [app] = facts.waiting("root.most")
    words = explain_app(view_of(facts), app)
    together = f"raise together: {P}root.most.maximum-capacity, {setting}."
    assert f"It waits for both of these limits; {together}" in words
    assert f"{app.id} waits for both of these limits; {together}" in explain(view_of(facts), "root.most")


@pytest.mark.parametrize(
    ("percent", "factor", "queue_mb", "user_has_mb", "user_mb", "told"),
    [
        # Both depend on the same setting: the larger value is told. The user's limit is that of the queue's guarantee.
        (0.6, -1.0, 512, 512, 512, {"am-share": "to 0.94 or more", "user-am-share": "to 0.94 or more"}),
        # The user's own limit, 819 MiB x 3, has room: the queue's limit only cuts what is shown of it.
        (1.0, 3.0, 1024, 1024, 1024, {"am-share": "to 1.57 or more"}),
        (1.0, 0.5, 1024, 512, 512, {"am-share": "to 1.57 or more", "user-am-share": "from 0.5 to 0.94 or more"}),
    ],
)
def test_the_limits_for_masters_of_the_queue_and_of_the_user_are_told_where_both_hold(
    percent: float, factor: float, queue_mb: int, user_has_mb: int, user_mb: int, told: dict[str, str]
) -> None:
    """Only the queue's limit was told, whose advice alone starts no application."""
    facts = facts_of("capacity")
    limits = facts.limits.queues["root.most"]
    [anna] = limits.users
    anna = replace(anna, am_used=Resource(user_has_mb, 1), am_limit=Resource(user_mb, 1))
    settings = {**(limits.settings or {}), "maximum-am-resource-percent": percent, "user-limit-factor": factor}
    of_queue = Resource(queue_mb, 1)
    changed = replace(limits, users=(anna,), settings=settings, am_used=of_queue, am_limit=of_queue)
    room = replace(facts.status.queues["root.most"], maximum=Resource(8192, 16))
    facts = replace(
        facts,
        status=replace(facts.status, queues={**facts.status.queues, "root.most": room}),
        limits=replace(facts.limits, queues={**facts.limits.queues, "root.most": changed}),
    )
    [app] = facts.waiting("root.most")
    found = holds_of_app(facts, app)
    assert [one.kind for one in found] == list(told)
    for hold in found:
        assert told[hold.kind] in hold.mend
    assert any("raise together" in line for line in explain_app(view_of(facts), app)) is (len(told) > 1)


@pytest.mark.parametrize(
    ("creation", "path", "template"),
    [
        ("static", "root.am", "root.am"),
        ("dynamicLegacy", "root.am", "root.leaf-queue-template"),
        ("dynamicFlexible", "root.am", "root.auto-queue-creation-v2.leaf-template"),
    ],
)
def test_of_a_created_queue_the_setting_is_that_of_its_template(creation: str, path: str, template: str) -> None:
    """Hadoop ignores a property of the created queue itself, which `explain` named."""
    facts, tree = facts_of("capacity"), recorded("capacity", "scheduler")
    for queue in tree["scheduler"]["schedulerInfo"]["queues"]["queue"]:
        if queue["queueName"] == "am":
            queue["creationMethod"] = creation
    facts = replace(facts, limits=scheduler_limits(tree, "x"))
    [hold] = holds_of_queue(facts, path)
    assert hold.setting == f"{P}{template}.maximum-am-resource-percent"


def test_templates_of_nested_created_queues_have_a_wildcard() -> None:
    tree = recorded("capacity", "scheduler")
    for queue in tree["scheduler"]["schedulerInfo"]["queues"]["queue"]:
        if queue["queueName"] == "dept":
            queue["creationMethod"] = "dynamicFlexible"
            for child in queue["queues"]["queue"]:
                child["creationMethod"] = "dynamicFlexible"
    limits = scheduler_limits(tree, "x").queues
    assert limits["root.dept"].name_of("max-parallel-apps") == (
        "root.auto-queue-creation-v2.parent-template.max-parallel-apps"
    )
    assert limits["root.dept.y"].name_of("user-limit-factor") == (
        "root.*.auto-queue-creation-v2.leaf-template.user-limit-factor"
    )


@pytest.mark.parametrize(
    ("now", "guaranteed_mb", "limit_mb", "has_mb", "told"),
    [
        (0.4, 2457, 1024, 1024, 0.53),
        (0.6, 1026, 768, 512, 0.75),
        (0.3, 2211, 768, 512, 0.35),
        (0.3, 1658, 512, 512, 0.47),
    ],
)
def test_the_part_for_masters_that_is_told_lets_one_more_start(
    now: float, guaranteed_mb: int, limit_mb: int, has_mb: int, told: float
) -> None:
    """On a ResourceManager (3.5.0, smallest container 256 MiB) one more master of 512 MiB started at ``told``.

    With 0.01 less none did. The limit is rounded up to whole smallest containers, so it does not grow in proportion.
    """
    facts = facts_of("capacity")
    limits, queues = dict(facts.limits.queues), dict(facts.status.queues)
    [anna] = limits["root.am"].users
    anna = replace(anna, am_used=Resource(has_mb, 1), am_limit=Resource(limit_mb, 1))
    settings = {"maximum-am-resource-percent": now, "user-limit-factor": 1.0, "minimum-user-limit-percent": 100.0}
    limits["root.am"] = replace(limits["root.am"], users=(anna,), settings=settings)
    queues["root.am"] = replace(queues["root.am"], fair_share=Resource(guaranteed_mb, 1))
    facts = replace(facts, status=replace(facts.status, queues=queues), limits=replace(facts.limits, queues=limits))
    [hold] = holds_of_queue(facts, "root.am")
    assert f"Raise it from {now} to {told:.2f} or more" in hold.mend
    # Without the smallest container the whole product has to suffice.
    [hold] = holds_of_queue(replace(facts, smallest=None), "root.am")
    alone = float(hold.mend.partition(" to ")[2].partition(" or more")[0])
    assert alone * guaranteed_mb >= has_mb + 512


@pytest.mark.parametrize(("smallest", "least"), [(None, ""), (Resource(512, 1), " to 0.31 or more")])
def test_no_part_for_masters_is_told_that_is_not_above_the_present_one(smallest: Resource | None, least: str) -> None:
    """Without the smallest container "from 0.1 to 0.05 or more" was told.

    The queue's share says nothing of the base of the limit where the limit is less than the part of the share.
    """
    facts = facts_of("capacity")
    limits = facts.limits.queues["root.am"]
    settings = {**(limits.settings or {}), "maximum-am-resource-percent": 0.1, "user-limit-factor": -1.0}
    fair_share = Resource(40960, 40)

    def mend(limit_mb: int) -> str:
        [user] = limits.users
        changed = replace(
            limits,
            settings=settings,
            users=(replace(user, am_used=Resource(1536, 1), am_limit=Resource(limit_mb, 16)),),
        )
        queue = replace(facts.status.queues["root.am"], fair_share=fair_share)
        status = replace(facts.status, queues={**facts.status.queues, "root.am": queue})
        all_limits = replace(facts.limits, queues={**facts.limits.queues, "root.am": changed})
        [hold] = holds_of_queue(replace(facts, smallest=smallest, status=status, limits=all_limits), "root.am")
        return f"{hold.what} {hold.mend}"

    assert mend(1024).endswith(f"Raise it from 0.1{least}")
    # ResourceManagers tell of a limit for a while after it was raised.
    assert "which is left by now" in mend(4096)
    assert mend(4096).endswith("Raise it from 0.1")


@pytest.mark.parametrize("kind", ["fair", "capacity"])
def test_a_parent_whose_waiting_queues_are_all_held_is_not_next(kind: str) -> None:
    words = " ".join(explain(view_of(facts_of(kind)), "root.dept"))
    assert "Limits hold every queue in it that waits: root.dept.y" in words
    assert "It is " not in words
    assert "Without that it would be " in words


@pytest.mark.parametrize("kind", ["fair", "capacity"])
def test_an_application_whose_master_has_its_container_is_not_next(kind: str) -> None:
    """Its queue waits, for others of its applications; ``explain`` said that this one would be next."""
    facts = facts_of(kind)
    [app] = [app for app in facts.apps if app.queue == "root.full" and app.running_containers][:1]
    words = " ".join(explain_app(view_of(facts), replace(app, state="ACCEPTED")))
    assert "Its ApplicationMaster has its container and has not registered" in words
    assert " next" not in words
    assert "the scheduler serves first" not in words


@pytest.mark.parametrize("kind", ["fair", "capacity"])
def test_who_has_all_that_he_wants_is_held_by_nothing(kind: str) -> None:
    facts = facts_of(kind)
    assert holds_of_queue(facts, "root.dept.x") == ()
    [app] = [app for app in facts.apps if app.queue == "root.dept.x"]
    words = " ".join(explain_app(view_of(facts), app))
    assert "Its ApplicationMaster has its container and has not registered" in words


def test_a_cluster_with_less_room_than_a_container_needs_is_not_called_full() -> None:
    facts = facts_of("fair")
    larger = replace(facts.status, capacity=facts.status.capacity + Resource(512, 1))
    assert room(replace(facts, status=larger), Resource(1024, 1)) == (
        "The cluster has no room for a container of 1,024 MiB and 1 vcore: 512 MiB and 1 vcore are free in all."
    )


def test_a_queue_without_a_limit_waits_for_a_full_cluster_and_its_turn() -> None:
    facts = facts_of("fair")
    queues = dict(facts.status.queues)
    queues["root.full"] = replace(
        queues["root.full"], demand=queues["root.full"].used + Resource(1024, 2), containers_pending=2
    )
    facts = replace(facts, status=replace(facts.status, queues=queues))
    view = view_of(facts)
    row = view.queues["root.full"]
    assert row.holds == ()
    words = " ".join(explain(view, "root.full"))
    assert "No limit holds it. The cluster is full (0 MiB and 0 vcores are free)." in words
    assert "Its turn is expected in about 20 s" in words
    # Those that a limit holds are not before it.
    assert "It is next: " in words
    assert expected_s(view, row) == 20.0


def test_a_user_above_his_limit_gets_no_more_containers() -> None:
    facts = facts_of("capacity")
    limits = dict(facts.limits.queues)
    [anna] = limits["root.factor"].users
    limits["root.factor"] = replace(limits["root.factor"], users=(replace(anna, used=Resource(1536, 3)),))
    queues = dict(facts.status.queues)
    more = queues["root.factor"].used + Resource(512, 1)
    queues["root.factor"] = replace(queues["root.factor"], demand=more, containers_pending=1)
    running = [
        replace(app, state="RUNNING", allocated=Resource(512, 1), diagnostics="")
        for app in facts.apps
        if app.queue == "root.factor"
    ]
    facts = replace(
        facts,
        status=replace(facts.status, queues=queues),
        limits=replace(facts.limits, queues=limits),
        apps=running,
    )
    [hold] = holds_of_queue(facts, "root.factor")
    assert (hold.kind, hold.has, hold.limit) == ("user-limit", 1536, 1024)
    assert hold.setting == f"{P}root.factor.user-limit-factor"
    assert holds_of_app(facts, running[0]) == (hold,)
    # Without a factor the percentage is the limit. At 100 the limit follows what the queue has: it holds nobody.
    for percent, named in ((50.0, [f"{P}root.factor.minimum-user-limit-percent"]), (100.0, [])):
        free = {"user-limit-factor": -1.0, "minimum-user-limit-percent": percent}
        own = replace(limits["root.factor"], settings={**limits["root.factor"].settings, **free})
        here = replace(facts, limits=replace(facts.limits, queues={**limits, "root.factor": own}))
        assert [one.setting for one in holds_of_queue(here, "root.factor")] == named


def test_room_that_no_node_has_in_one_piece() -> None:
    """Of 2,560 MiB that are free both nodes have a part."""
    facts = facts_of("capacity")
    large = [
        replace(app, diagnostics=app.diagnostics.replace("Request = <memory:512", "Request = <memory:2048"))
        for app in facts.apps
    ]
    free = [replace(node, available=Resource(1280, 4)) for node in facts.nodes]
    queues = dict(facts.status.queues)
    queues["root.asks"] = replace(queues["root.asks"], demand=Resource(2048, 1), containers_pending=1, path="root.asks")
    limits = dict(facts.limits.queues)
    limits["root.asks"] = replace(limits["root.asks"], running=1)
    facts = replace(
        facts,
        status=replace(facts.status, queues=queues),
        limits=replace(facts.limits, queues=limits),
        apps=[app for app in large if app.queue != "root.asks"],
        nodes=free,
    )
    words = " ".join(explain(view_of(facts), "root.asks"))
    assert "No limit holds it. No node has room for a container of 2,048 MiB and 1 vcore: 2,560 MiB" in words


@pytest.mark.parametrize(
    ("maximum", "used", "sizes", "told", "mend"),
    [
        # One container more fits neither the memory nor the vcores that are left; the demand is cut off at both.
        (Resource(2560, 3), Resource(2048, 2), (Resource(1024, 1),), ("MiB", 2048, 2560), "to 3,072 MiB or more"),
        (Resource(2560, 3), Resource(2048, 2), (), ("MiB", 2048, 2560), "to 3,072 MiB or more"),
        # The vcores are used up, and the memory is not.
        (Resource(8192, 2), Resource(2048, 2), (Resource(1024, 1),), ("vcores", 2, 2), "to 3 vcores or more"),
        (Resource(8192, 2), Resource(2048, 2), (), ("vcores", 2, 2), "to 3 vcores or more"),
        # The applications ask for two sizes, and the smaller one fits what is left below the maximum.
        (Resource(2560, 3), Resource(2048, 2), (Resource(512, 1), Resource(4096, 1)), None, ""),
        (Resource(2560, 3), Resource(2048, 2), (Resource(256, 2), Resource(512, 1)), None, ""),
    ],
)
def test_a_demand_that_is_cut_off_at_the_maximum_does_not_hide_that_limit(
    maximum: Resource, used: Resource, sizes: tuple[Resource, ...], told: tuple[str, int, int] | None, mend: str
) -> None:
    """A Fair Scheduler shows the demand of a queue only up to its maximum (FSLeafQueue.updateDemand)."""
    facts = facts_of("fair")
    queues = dict(facts.status.queues)
    queues["root.full"] = replace(
        queues["root.full"],
        maximum=maximum,
        used=used,
        demand=Resource(min(maximum.memory_mb, 21504), min(maximum.vcores, 21)),
        containers_allocated=2,
        containers_pending=19,
    )
    apps = [replace(facts.apps[0], queue="root.full", state="RUNNING", allocated=used, diagnostics="")]
    facts = replace(
        facts, status=replace(facts.status, queues=queues), apps=apps, asks={"root.full": sizes} if sizes else {}
    )
    assert [(hold.unit, hold.has, hold.limit) for hold in holds_of_queue(facts, "root.full")] == (
        [] if told is None else [told]
    )
    words = " ".join(explain(view_of(facts), "root.full"))
    assert ("No limit holds it" in words) is (told is None)
    assert mend in words
    assert "MiB more up to its maximum, 19 containers" in words


def test_what_a_queue_at_its_maximum_asks_for_is_read() -> None:
    tree = json.loads(json.dumps(recorded("fair", "scheduler")))
    [full] = [
        queue
        for queue in tree["scheduler"]["schedulerInfo"]["rootQueue"]["childQueues"]["queue"]
        if queue["queueName"] == "root.full"
    ]
    full["maxResources"] = full["demandResources"] = {"memory": 6400, "vCores": 13}
    full["pendingContainers"] = 7
    asks = [
        {"resourceName": name, "numContainers": count, "capability": {"memory": mb, "vCores": 1}}
        for name, count, mb in (("*", 4, 1024), ("n1", 4, 64), ("*", 3, 512), ("*", 0, 128))
    ]
    queried = []

    def reply(connection: socket.socket, request: bytes) -> None:
        target = urlsplit(request.split(b" ", 2)[1].decode())
        path = target.path.removeprefix("/ws/v1/cluster/")
        if path == "scheduler":
            return connection.sendall(http(200, tree))
        if path == "apps" and "queue=root.full" in target.query:
            queried.append(target.query)
            listed = "resourceRequests" not in target.query.partition("deSelects=")[2]
            return connection.sendall(http(200, {"apps": {"app": [{"resourceRequests": asks if listed else []}, {}]}}))
        known = path in ("apps", "nodes", "info")
        return connection.sendall(http(200, recorded("fair", path)) if known else http(404, {}))

    with FakeServer(reply) as server:
        facts = look(RestClient([server.url]))
    assert facts.asks["root.full"] == (Resource(512, 1), Resource(1024, 1))
    assert len(queried) == 1
    [hold] = holds_of_queue(facts, "root.full")
    assert hold.what.endswith("the next container asks for 512 MiB, 256 more than is left")


@pytest.mark.parametrize(("pending", "blocked"), [(1, True), (4, False)])
def test_a_limit_of_waiting_applications_does_not_hold_what_running_ones_ask_for(pending: int, blocked: bool) -> None:
    facts = facts_of("fair")
    queues = dict(facts.status.queues)
    used = queues["root.runs"].used
    queues["root.runs"] = replace(
        queues["root.runs"],
        containers_pending=pending,
        demand=Resource(used.memory_mb + 512 * pending, used.vcores + pending),
    )
    view = view_of(replace(facts, status=replace(facts.status, queues=queues)))
    row = view.queues["root.runs"]
    assert [hold.kind for hold in row.holds] == ["running-apps"]
    assert row.blocked is blocked
    words = explain(view, "root.runs")
    assert any("Without that it would be" in line for line in words) is blocked
    assert any(line.startswith("A part of what it waits for is held. Held by maxRunningApps") for line in words) is (
        not blocked
    )
    assert any(line.startswith("No limit holds the rest. The cluster is full") for line in words) is (not blocked)
    # Each container that ends anywhere may be its next one.
    assert (expected_s(view, row) is None) is blocked


@pytest.mark.parametrize(
    ("others_mb", "active", "blocked"), [(1024, True, False), (2048, True, True), (1024, False, True)]
)
def test_one_users_limit_does_not_hold_the_others(others_mb: int, active: bool, blocked: bool) -> None:
    """A user who has no further requests (``isActive``) is not looked at."""
    facts = facts_of("capacity")
    limits, queues = dict(facts.limits.queues), dict(facts.status.queues)
    [anna] = limits["root.factor"].users
    anna = replace(anna, used=Resource(1536, 3), limit=Resource(1024, 1))
    other = replace(anna, name="bob", used=Resource(others_mb, 2), active=active)
    limits["root.factor"] = replace(limits["root.factor"], users=(anna, other))
    queues["root.factor"] = replace(
        queues["root.factor"],
        used=Resource(1536 + others_mb, 5),
        demand=Resource(8192, 16),
        containers_pending=10,
        maximum=Resource(8192, 16),
    )
    app = replace(facts.apps[0], queue="root.factor", state="RUNNING", allocated=Resource(512, 1), diagnostics="")
    facts = replace(
        facts,
        status=replace(facts.status, queues=queues),
        limits=replace(facts.limits, queues=limits),
        apps=[replace(app, user="anna"), replace(app, user="bob")],
    )
    view = view_of(facts)
    row = view.queues["root.factor"]
    assert {hold.kind for hold in row.holds} == {"user-limit"}
    assert row.blocked is blocked
    words = " ".join(explain(view, "root.factor"))
    assert ("Its turn comes when" in words) is blocked
    assert ("No limit holds the rest" in words) is (not blocked)


def test_a_queue_that_takes_no_new_applications_holds_none_that_it_has_taken() -> None:
    """On a ResourceManager (3.5.0), a waiting application of a DRAINING queue started when another one ended.

    `explain` named the state as its limit: its turn would not come before the queue is set to RUNNING.
    """
    facts = facts_of("capacity")
    limits = dict(facts.limits.queues)
    limits["root.am"] = replace(limits["root.am"], state="DRAINING")
    limits["root.users"] = replace(limits["root.users"], state="STOPPED", max_running=None, running=2)
    limits["root.dept"] = replace(limits["root.dept"], state="STOPPED")
    limits["root.dept.x"] = replace(limits["root.dept.x"], state="STOPPED")
    facts = replace(facts, limits=replace(facts.limits, queues=limits))
    [hold] = holds_of_queue(facts, "root.am")
    assert hold.kind == "user-am-share"
    view = view_of(facts)
    line = (
        "root.am is DRAINING: it takes no new applications. Those that it has go on. "
        f"To open it, set {P}root.am.state to RUNNING."
    )
    assert line in explain(view, "root.am")
    words = " ".join(explain(view, "root.am"))
    assert "does not come before" not in words
    words = " ".join(explain(view, "root.dept.x"))
    assert f"To open it, set {P}root.dept.x.state and {P}root.dept.state to RUNNING." in words
    assert not any(line.endswith("to RUNNING.") for line in explain(view, "root.factor"))


def answering(kind: str) -> FakeServer:
    """An RM that shows what was recorded; it has no client RPC."""

    def reply(connection: socket.socket, request: bytes) -> None:
        path = urlsplit(request.split(b" ", 2)[1].decode()).path.removeprefix("/ws/v1/cluster/")
        if path.startswith("apps/"):
            found = [app for app in recorded(kind, "apps")["apps"]["app"] if app["id"] == path.removeprefix("apps/")]
            connection.sendall(http(200, {"app": found[0]}) if found else http(404, {}))
        elif path in ("scheduler", "apps", "nodes", "info"):
            connection.sendall(http(200, recorded(kind, path)))
        else:
            connection.sendall(http(404, {}))

    return FakeServer(reply)


@pytest.fixture(params=["fair", "capacity"])
def rm(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    with answering(request.param) as server:
        yield request.param, server.url


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return called(capsys, "explain", *arguments)


def test_the_command_explains_queues_and_applications_without_a_controller(
    rm: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    kind, url = rm
    code, out, err = asked(capsys, "root.am", "--rm", url, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["queue"] == "root.am"
    assert [hold["kind"] for hold in told["holds"]] == [HELD[kind, "root.am"][0]]
    [last] = [app.id for app in facts_of(kind).waiting("root.am")][-1:]
    code, out, err = asked(capsys, last, "--rm", url, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["application"]["id"] == last
    assert told["application"]["waits_for_master"] is True
    assert [hold["setting"] for hold in told["holds"]] == [HELD[kind, "root.am"][2]]
    assert told["ahead"] == [app.id for app in facts_of(kind).waiting("root.am")][:-1]
    code, out, _ = asked(capsys, last, "--rm", url)
    assert code == 0
    assert "The ResourceManager says: [" in out


def test_a_queue_is_known_by_the_end_of_its_path(rm: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("y", "dept.y", "root.dept.y"):
        code, out, err = asked(capsys, name, "--rm", rm[1], "--json")
        assert code == 0, err
        assert json.loads(out)["queue"] == "root.dept.y"
    code, _, err = asked(capsys, "t.y", "--rm", rm[1])
    assert code == 2
    assert "no queue 't.y'; one of root, " in " ".join(err.split())


def test_a_command_of_a_group_is_named_where_it_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "doctor", "--rm", "http://127.0.0.1:1")
    assert code == 2
    assert "It is `yarnfair cluster doctor`" in err


def test_rest_alone_suffices_and_says_what_is_missing(rm: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    kind, url = rm
    code, out, err = asked(capsys, "root.full", "--rm", url, "--json")
    assert code == 0, err
    told = json.loads(out)
    if kind == "capacity":
        assert told["alarms"] == []
        return
    [alarm] = told["alarms"]
    assert alarm["kind"] == "read-back"
    assert "let this machine reach the client port" in alarm["text"]
    assert told["weight"] is None
    # The six queues are equals, and the maximum of one leaves the others a little more.
    assert told["entitled_share"] == pytest.approx(1 / 6, abs=0.01)


def test_what_else_asks_a_fair_scheduler_goes_on_by_rest_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering("fair") as server:
        code, out, err = called(capsys, "top", "--once", "--json", "--rm", server.url)
        assert code == 0, err
        assert [alarm["kind"] for alarm in json.loads(out)["alarms"]] == ["read-back"]
        trace = tmp_path / "t.jsonl"
        code, _, err = called(capsys, "record", "--rm", server.url, "-o", str(trace))
        assert code == 0, err
        assert "the weights are not known, steady fair shares stand for them" in err
        header = json.loads(trace.read_text().splitlines()[0])
        assert "weights are estimated" in header["source"]
        assert header["queues"]["root.full"]["weight"] == pytest.approx(1.05, abs=0.01)
        follow = tmp_path / "f.jsonl"
        code, _, err = called(capsys, "record", "--rm", server.url, "--follow", str(follow), "--for", "1s")
        assert code == 0, err
        assert err.count("the weights are not known") == 1
        code, _, err = called(capsys, "assess", "--rm", server.url, "-o", str(tmp_path / "a"), "--json")
        assert code == 0, err
        assert "the weights are not known" in err


def test_an_unknown_application_is_one_line(rm: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = asked(capsys, "application_1_9999", "--rm", rm[1])
    assert code == 2
    assert "does not know application_1_9999" in err
    code, _, err = asked(capsys, "application_1_9999", "--ledger", "none.db")
    assert code == 2
    assert "give --rm URL" in err
