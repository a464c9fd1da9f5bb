"""The words of a change, and the rules of a gate."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import CallError, InputError
from harness.predict.changes import Change, QueueChange, Rule, judged, verdict_of
from harness.predict.plan_page import headline, sentences
from harness.predict.plan_words import changes

NONE = Change((), ())
STILL = Change((0.0, 0.0), (0.0, 0.0))
SECONDS = st.floats(0.0, 1e6, allow_nan=False)


def queue(
    name: str = "root.a",
    *,
    wait: Change = NONE,
    completion: Change = NONE,
    below_due: Change = NONE,
    refused: Change = STILL,
    never_started: Change = STILL,
    not_ended: Change = STILL,
    applications: int = 10,
) -> QueueChange:
    times = {"wait": wait, "completion": completion, "below_due": below_due}
    counts = {"refused": refused, "never_started": never_started, "not_ended": not_ended}
    return QueueChange(name, "both", applications, times, counts)


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ((100.0, 100.0), (90.0, 92.0), "sooner"),
        ((100.0, 100.0), (110.0, 108.0), "later"),
        ((100.0, 100.0), (101.0, 98.0), "same"),
        ((100.0, 100.0), (110.0, 99.0), "unsure"),
        ((100.0, 100.0), (104.5, 100.5), "unsure"),
        ((0.2, 0.1), (0.9, 0.9), "same"),
        ((0.0, 0.0), (5.0, 9.0), "later"),
        ((0.0, 4.0), (9.0, 9.0), "later"),
    ],
)
def test_a_change_has_a_word(before: tuple[float, ...], after: tuple[float, ...], word: str) -> None:
    assert Change(before, after).word(0.03) == word


@pytest.mark.parametrize(
    ("recorded", "band"),
    [
        (None, (45.0, 55.0)),
        (100.0, (45.0, 55.0)),
        (104.0, (45.0, 59.0)),  # by the seconds
        (94.0, (39.0, 55.0)),
        (300.0, (45.0, 255.0)),  # a part of twice as much is none to rely on: by the seconds
        (20.0, (0.0, 55.0)),
    ],
)
def test_what_is_expected_after_the_change_may_be_off_as_the_replay_before_it(
    recorded: float | None, band: tuple[float, float]
) -> None:
    found = Change((99.0, 101.0), (45.0, 55.0), recorded).expected()
    assert (found.mean, found.low, found.high) == (50.0, *band)
    # After a change that makes a queue slower, by the part, which is then more than the seconds.
    slower = Change((99.0, 101.0), (190.0, 210.0), 110.0).expected()
    assert (slower.mean, slower.low, slower.high) == (200.0, 190.0, pytest.approx(231.0))


def test_a_limit_that_only_a_replay_as_far_off_as_before_goes_beyond_is_unsure() -> None:
    rule = Rule.read("completion(a) > 57s")
    sure, off = (queue(completion=Change((99.0, 101.0), (45.0, 55.0), recorded)) for recorded in (100.0, 104.0))
    assert [rule.judge(one).verdict for one in (sure, off)] == ["fine", "unsure"]


def test_no_gate_is_open_for_a_load_of_which_most_tasks_are_not_known() -> None:
    rules = [Rule.read("completion(a) > +10%")]
    change = [queue(completion=Change((100.0,), (101.0,)))]
    assert [one.verdict for one in judged(rules, change, 0.0, known=0.6)] == ["fine"]
    (case,) = judged(rules, change, 0.0, known=0.4)
    assert (case.verdict, case.why) == ("not judged", "of 60 % of the work the tasks are not known")


def test_no_gate_is_open_for_a_cluster_that_places_containers_asynchronously() -> None:
    (case,) = judged(
        [Rule.read("completion(a) > +10%")], [queue(completion=Change((100.0,), (101.0,)))], 0.0, asynchronous=True
    )
    assert case.verdict == "not judged"
    assert case.why.startswith("the cluster places containers asynchronously")


def test_what_the_replay_may_be_off_by_is_no_change() -> None:
    change = Change((100.0, 100.0), (110.0, 111.0))
    assert (change.word(0.03), change.word(0.15)) == ("later", "same")


@settings(deadline=None)
@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=20))
def test_the_mean_of_a_change_lies_in_its_band_and_is_the_change_of_the_means(pairs: list[tuple[float, float]]) -> None:
    change = Change(tuple(one for one, _ in pairs), tuple(one for _, one in pairs))
    band = change.relative()
    if not math.isfinite(band.mean):
        assert sum(change.before) < 0.001 * len(change.before)
        return
    slack = 1e-6 * max(abs(band.low), abs(band.high), 1.0)
    assert band.low - slack <= band.mean <= band.high + slack
    if any(abs(one) >= 1.0 for one in change.difference()):
        assert band.mean == pytest.approx(sum(change.after) / sum(change.before) - 1.0, rel=1e-6, abs=1e-6)


def test_a_queue_that_loses_applications_comes_first_whatever_the_others_win() -> None:
    lost = queue("root.lost", completion=Change((100.0,), (50.0,)), refused=Change((0.0,), (2.0,)))
    late = queue("root.late", completion=Change((100.0,), (900.0,)))
    waits = queue("root.waits", wait=Change((10.0,), (60.0,)), completion=Change((100.0,), (100.0,)))
    still = queue("root.still", completion=Change((100.0,), (100.0,)))
    ordered = sorted([still, waits, late, lost], key=lambda one: one.size(0.03), reverse=True)
    assert [one.queue for one in ordered] == ["root.lost", "root.late", "root.waits", "root.still"]
    assert [one.word(0.03) for one in ordered] == ["refused", "later", "later", "same"]


@pytest.mark.parametrize(
    ("rule", "verdict", "beyond"),
    [
        ("wait(a) > +10%", "failed", 2),
        ("wait(root.a) > 10 %", "failed", 2),
        ("wait(a) > +25%", "unsure", 1),
        ("wait(a) > +29%", "fine", 0),
        ("wait(a) >= 120s", "failed", 2),
        ("wait(a) > 120s", "failed", 1),
        ("wait(a) > +30s", "fine", 0),
        ("wait(a) < -5%", "fine", 0),
        ("below_due(a) > +1s", "not judged", 0),
        ("never_started(a) > 1", "failed", 1),
        ("never_started(a) > +2", "unsure", 1),
        ("never_started(a) > +3", "fine", 0),
        ("refused(*) > 0", "fine", 0),
    ],
)
def test_a_rule_passes_where_no_phase_is_beyond_it(rule: str, verdict: str, beyond: int) -> None:
    own = queue(wait=Change((100.0, 100.0), (120.0, 128.0)))
    if rule.startswith("never_started"):
        own = queue(never_started=Change((0.0, 0.0), (1.0, 3.0)))
    (case,) = judged([Rule.read(rule)], [own])
    assert (case.verdict, case.beyond, case.passes) == (verdict, beyond, verdict == "fine")
    assert case.document()["verdict"] == verdict
    assert verdict_of([case]) == {"failed": "regression", "fine": "fine"}.get(verdict, "unsure")


@pytest.mark.parametrize("rule", ["completion(a) > +10%", "completion(*) > 600s", "completion(a) > +60s"])
@pytest.mark.parametrize("lost", ["refused", "never_started", "not_ended"])
def test_a_mean_of_those_that_are_left_is_no_mean(rule: str, lost: str) -> None:
    """Half of the applications are never served: the others are faster for it."""
    gone = {lost: Change((0.0, 0.0), (0.0, 5.0))}
    (case,) = judged([Rule.read(rule)], [queue(completion=Change((100.0, 100.0), (50.0, 50.0)), **gone)])
    assert (case.verdict, case.passes) == ("not judged", False)
    assert case.words().endswith("cannot be judged, 5 more of its applications are refused, never start or never end")


def test_applications_that_are_won_do_not_make_up_for_others_that_are_lost() -> None:
    one = {
        "refused": Change((3.0,), (3.0,)),
        "never_started": Change((0.0,), (0.0,)),
        "not_ended": Change((0.0,), (0.0,)),
    }
    own = queue(completion=Change((100.0,), (50.0,)), **one)
    assert own.word(0.03) == "sooner"
    swapped = replace(own, gone={"wait": (0.0,), "completion": (3.0,)})
    assert swapped.word(0.03) == "unsure"
    (case,) = judged([Rule.read("completion(a) > +10%")], [swapped])
    assert (case.verdict, case.passes) == ("not judged", False)
    assert "3 more of its applications" in case.words()


@pytest.mark.parametrize(("count", "word"), [("refused", "taken"), ("never_started", "ended"), ("not_ended", "ended")])
def test_a_queue_that_wins_applications_has_a_word_for_it(count: str, word: str) -> None:
    assert queue(**{count: Change((2.0, 2.0), (0.0, 1.0))}).word(0.03) == word


def test_who_waits_for_ever_waits_longer_than_any_limit() -> None:
    never = Change((2.0, 2.0), (2.0, 2.0))
    own = queue(wait=Change((1.0, 1.0), (1.0, 1.0)), never_started=never)
    limit, change = judged([Rule.read("wait(a) > 600s"), Rule.read("wait(a) > +10%")], [own])
    assert (limit.verdict, change.verdict) == ("not judged", "fine"), "nothing has changed for the two"
    assert "2 of its applications never start" in limit.words()


def test_a_replay_that_is_far_off_opens_no_gate() -> None:
    own = queue(wait=Change((100.0, 100.0), (101.0, 101.0)))
    rules = [Rule.read(text) for text in ("wait(a) > +10%", "wait(a) > +0%", "refused(a) > 0")]
    assert [case.verdict for case in judged(rules, [own], 0.5)] == ["not judged", "failed", "not judged"]
    assert [case.verdict for case in judged(rules, [own], 0.1)] == ["fine", "failed", "fine"]
    assert "50 % off the recording" in judged(rules, [own], 0.5)[0].words()


def test_a_rule_that_can_judge_nothing_is_not_fine() -> None:
    (named,) = judged([Rule.read("wait(a) > 1s")], [queue(applications=0)])
    assert (named.verdict, named.passes) == ("not judged", False)
    # On each queue: those without an application have nothing to judge; one with applications and no figure has.
    (star,) = judged([Rule.read("wait(*) > 1s")], [queue("root.empty", applications=0), queue()])
    assert (star.queue, star.verdict) == ("root.a", "not judged")
    with pytest.raises(InputError, match="no queue has an application"):
        judged([Rule.read("wait(*) > 1s")], [queue(applications=0)])


def test_a_change_from_nothing_is_beyond_every_percentage() -> None:
    (case,) = judged([Rule.read("wait(a) > +1000%")], [queue(wait=Change((0.0, 0.0), (5.0, 6.0)))])
    assert (case.verdict, case.document()["value"]) == ("failed", None)
    assert "from 0" in case.words()
    (case,) = judged([Rule.read("wait(a) > +0%")], [queue(wait=Change((0.0, 0.1), (0.9, 0.6)))])
    assert case.verdict == "fine", "less than a second is no change"


def test_a_star_stands_for_each_queue_and_a_short_name_has_to_be_unique() -> None:
    both = [queue("root.x.a", completion=Change((1.0,), (9.0,))), queue("root.y.a", completion=Change((1.0,), (1.0,)))]
    cases = judged([Rule.read("completion(*) > 5s")], both)
    assert [(case.name(), case.verdict) for case in cases] == [
        ("completion(x.a) > 5s", "failed"),
        ("completion(y.a) > 5s", "fine"),
    ]
    with pytest.raises(CallError, match="not unique"):
        judged([Rule.read("completion(a) > 5s")], both)
    assert len(judged([Rule.read("completion(x.a) > 5s")], both)) == 1


def test_the_page_says_of_each_queue_that_it_counts_what_changes_for_it() -> None:
    """Also of those that are neither sooner nor later."""
    as_before = Change((100.0, 100.0), (100.0, 100.0))
    queues = [
        queue("root.sooner", completion=Change((100.0, 100.0), (80.0, 80.0))),
        queue("root.short", completion=as_before, below_due=Change((10.0, 10.0), (90.0, 90.0))),
        queue("root.full", completion=as_before, below_due=Change((90.0, 90.0), (10.0, 10.0))),
        replace(queue("root.moved", completion=as_before), moved={"root.other": 10}),
        queue("root.still", completion=as_before),
    ]
    changed = [one for one in queues if changes(one, 0.03)]
    assert sentences(changed, 0.03) == [
        "Sooner: sooner.",
        "As soon as before, in another queue: moved.",
        "As soon as before, but below its due for longer: short.",
        "As soon as before, but below its due for less time: full.",
    ]


def test_the_headline_counts_what_is_not_sure_apart() -> None:
    """A queue whose phases disagree stood among those that change."""
    disagree = Change((10.0, 10.0), (9.0, 11.0))
    queues = [
        queue("root.sooner", completion=Change((10.0, 10.0), (5.0, 5.0))),
        queue("root.unsure", completion=disagree),
    ]
    assert headline(queues, 4, 0.03) == "1 of 4 queues changes, 1 unsure"
    assert headline(queues[:1], 1, 0.03) == "1 of 1 queue changes"
    assert headline(queues[1:], 2, 0.03) == "0 of 2 queues change, 1 unsure"
