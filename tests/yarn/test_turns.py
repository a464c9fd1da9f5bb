"""When a limit is expected to let the next one through, from answers of real ResourceManagers, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.control.explain import app_document, document, explain, explain_app
from harness.model.resources import ZERO
from harness.yarn.answers import AppStatus
from harness.yarn.holds import Facts, holds_of_app, holds_of_queue, look
from harness.yarn.turns import turn, turn_of_hold
from tests.control.test_holds import answering, facts_of, view_of


def with_ends(facts: Facts, queue: str, number: int, user: str = "anna", window_s: float = 3600.0) -> Facts:
    """Return the facts, with applications of a queue that ended."""
    one = next(app for app in facts.apps)
    ended: Sequence[AppStatus] = [
        replace(one, id=f"application_1_{at}", queue=queue, user=user, state="FINISHED") for at in range(number)
    ]
    return replace(facts, ended=ended, ended_window_s=window_s)


@pytest.mark.parametrize("kind", ["fair", "capacity"])
def test_a_limit_on_applications_ends_with_one_of_them(kind: str) -> None:
    """One application runs and may; six ended within the last hour, so the next is expected in ten minutes."""
    leaf, above = "root.dept.y", "root.dept"
    facts = with_ends(facts_of(kind), "root.dept.x", 6)
    (hold,) = holds_of_queue(facts, leaf)
    assert (hold.kind, hold.queue) == ("running-apps", above)
    found = turn(facts, [hold], leaf)
    assert found is not None
    assert found.expected_s == 600.0
    assert found.words == (
        "Its turn comes when the running application of root.dept ends, which is expected in about 10 min: 6 "
        "applications of root.dept ended in the last 60 min, and that it goes on so is assumed."
    )
    # The second that waits needs two ends.
    later = turn_of_hold(facts, hold, leaf, before=1)
    assert later.expected_s == 1200.0
    assert "the running application of root.dept and 1 of those ahead of it have ended" in later.words
    view = view_of(facts)
    assert document(view, leaf)["expected_s"] == 600.0
    assert found.words in explain(view, leaf)
    app = facts.waiting(leaf)[0]
    assert app_document(view, app)["expected_s"] == 600.0
    assert found.words in explain_app(view, app)


def test_an_activated_application_is_one_of_those_that_run() -> None:
    """Before its master had its container, the limit held it, and "no application runs, so no end brings its turn"."""
    facts = facts_of("capacity")
    activated = "[...] Application is Activated, waiting for resources to be assigned for AM.  Details : ..."
    runs = [
        replace(app, state="ACCEPTED", allocated=ZERO, diagnostics=activated) if app.queue == "root.dept.x" else app
        for app in facts.apps
    ]
    facts = with_ends(replace(facts, apps=runs), "root.dept.x", 6)
    assert holds_of_app(facts, next(app for app in runs if app.queue == "root.dept.x")) == ()
    waiting = next(app for app in runs if app.queue == "root.dept.y")
    (hold,) = holds_of_app(facts, waiting)
    found = turn(facts, [hold], "root.dept.y", waiting.user)
    assert found is not None
    assert found.expected_s == 600.0
    assert found.words.startswith("Its turn comes when the running application of root.dept ends")


def test_without_an_end_lately_no_time_is_told_but_the_reason() -> None:
    facts = with_ends(facts_of("fair"), "root.full", 3)
    (hold,) = holds_of_queue(facts, "root.runs")
    found = turn_of_hold(facts, hold, "root.runs")
    assert found.expected_s is None
    assert "not known: none has ended in the last 60 min; the oldest that runs was submitted 21 s ago" in found.words
    unseen = turn_of_hold(replace(facts, ended=None), hold, "root.runs")
    assert unseen.expected_s is None
    assert "does not show what ended lately" in unseen.words


def test_a_part_for_masters_that_is_below_one_of_them_grows_with_the_fair_share() -> None:
    """It was said to come never by itself; on a real ResourceManager three masters started a minute later.

    The Fair Scheduler's limit is 144 MiB, a part of the fair share beside busy queues, and a master asks for 512.
    """
    facts = with_ends(facts_of("fair"), "root.am", 100)
    (hold,) = holds_of_queue(facts, "root.am")
    grows = (
        "Its turn comes when the fair share of root.am has grown, of which the limit is a part: it grows while other "
        "queues have nothing to run. When is not known."
    )
    assert turn_of_hold(facts, hold, "root.am").words == grows
    running = [replace(app, allocated=app.allocated or facts.apps[0].allocated) for app in facts.apps]
    one = replace(next(app for app in running if app.queue == "root.am"), state="RUNNING", diagnostics="")
    more = replace(facts, apps=[*facts.apps, one])
    assert turn_of_hold(more, hold, "root.am").words == grows
    never = turn_of_hold(more, replace(hold, limit=1.0), "root.am")
    assert never.expected_s is None
    assert never.words.startswith("Its turn does not come by itself: even of all that root.am may have, the part for")
    # Once the limit has room for one, the end of an application helps.
    assert turn_of_hold(more, replace(hold, limit=512.0, has=512.0), "root.am").expected_s == 36.0


def test_a_fair_schedulers_application_that_may_run_is_not_held_by_the_limit_of_running_ones() -> None:
    """Until its master had its container it was, and the next one read that no application runs."""
    facts = facts_of("fair")
    apps = [
        replace(app, state="ACCEPTED", allocated=ZERO, diagnostics="") if app.queue == "root.dept.x" else app
        for app in facts.apps
    ]
    facts = with_ends(replace(facts, apps=apps), "root.dept.x", 6)
    assert [hold.kind for hold in holds_of_app(facts, next(a for a in apps if a.queue == "root.dept.x"))] == []
    waiting = next(app for app in apps if app.queue == "root.dept.y")
    found = turn(facts, holds_of_app(facts, waiting), "root.dept.y", waiting.user)
    assert found is not None
    assert found.words.startswith("Its turn comes when the running application of root.dept ends")


def test_a_capacity_schedulers_masters_start_once_as_many_have_ended_as_must() -> None:
    """Two masters of 512 MiB hold 1,024 of at most 1,024: one end suffices for the next."""
    facts = with_ends(facts_of("capacity"), "root.factor", 36)
    (hold,) = holds_of_queue(facts, "root.factor")
    found = turn_of_hold(facts, hold, "root.factor")
    assert found.expected_s == 100.0
    # The limit is per user, so applications of another user that end make no room.
    other = with_ends(facts_of("capacity"), "root.factor", 36, user="bob")
    assert turn_of_hold(other, hold, "root.factor").expected_s is None
    assert found.words.startswith("Its turn comes when one of the 2 running applications of root.factor of anna ends")
    # Half of the limit: both have to end.
    half = turn_of_hold(facts, replace(hold, limit=512.0), "root.factor")
    assert half.expected_s == 200.0


@pytest.mark.parametrize("kind", ["fair", "capacity"])
def test_a_maximum_ends_with_containers_of_the_queue(kind: str) -> None:
    facts = facts_of(kind)
    hold, *others = holds_of_queue(facts, "root.most")
    assert hold.kind == "maximum"
    # The master that waits there also waits for its user's limit, which only a Capacity Scheduler has.
    assert [other.kind for other in others] == {"fair": [], "capacity": ["user-am-share"]}[kind]
    unknown = turn_of_hold(facts, hold, "root.most")
    assert unknown.expected_s is None
    assert "none of its containers has ended" in unknown.words
    found = turn_of_hold(replace(facts, released_every_s={"root.most": 30.0}), hold, "root.most")
    assert found.expected_s == 30.0
    assert "one of the queue has ended each 30.0 s" in found.words


def test_two_limits_let_through_what_both_do() -> None:
    facts = with_ends(replace(facts_of("fair"), released_every_s={"root.most": 9000.0}), "root.dept.x", 6)
    holds = [*holds_of_queue(facts, "root.dept.y"), *holds_of_queue(facts, "root.most")]
    found = turn(facts, holds, "root.dept.y")
    assert found is not None
    assert found.expected_s == 9000.0
    none = turn(replace(facts, released_every_s={}), holds, "root.dept.y")
    assert none is not None
    assert none.expected_s is None
    assert turn(facts, [], "root.dept.y") is None


@pytest.mark.parametrize("kind", ["fair", "capacity"])
def test_a_look_counts_only_what_has_ended(kind: str) -> None:
    """The recorded answers ignore the query's states, so the list of ended applications contains live ones."""
    from harness.yarn.rest import RestClient

    with answering(kind) as server:
        facts = look(RestClient([server.url]))
    assert facts.ended == []
    assert facts.ended_window_s > 0
