"""Numbers in, a verdict out: whom it would help, at what price, and when nobody can say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.predict.assess import Assessed
from harness.predict.page import write_page
from harness.predict.verdict import (
    MOST_ERROR,
    Band,
    Evidence,
    Outcome,
    Played,
    Replayed,
    best_of,
    causes_of,
    judge,
    masters_cause,
    reproduction_error,
)


def played(name: str, means: dict[str, list[float]], losses: list[float], **more: Any) -> Played:
    count = len(losses)
    outcomes = [
        Outcome(
            mean_s={queue: values[at] for queue, values in means.items()},
            all_s=sum(values[at] for values in means.values()) / len(means),
            loss=losses[at],
            contended=more.get("contended", 0.5),
            utilisation=0.9,
            wait_s=40.0,
        )
        for at in range(count)
    ]
    return Played(name, name.partition("@")[0], more.get("settings", {}), outcomes)


PRESENT = played("fair", {"root.a": [100, 102, 98], "root.b": [50, 51, 49]}, [200, 210, 190])
BETTER = played("ltrf@outside", {"root.a": [70, 72, 69], "root.b": [54, 55, 53]}, [60, 66, 58])
EVIDENCE = Evidence(
    real_s={"root.a": 101.0, "root.b": 50.0},
    jobs={"root.a": 12, "root.b": 30},
    present=PRESENT,
    candidates=(BETTER,),
    span_s=7200.0,
    real_wait_s=20.0,
)


def test_a_cluster_that_places_containers_asynchronously_gets_no_yes_from_a_simulation_by_heartbeats() -> None:
    assert judge(EVIDENCE).answer == "yes"
    found = judge(replace(EVIDENCE, asynchronous=True))
    assert (found.answer, found.early, found.best) == ("unsure", True, None)
    assert "schedule-asynchronously.enable=false" in found.lines[1]


def test_a_yes_names_what_has_to_be_set_before_anything_is_written() -> None:
    """On a real cluster the recommended controller wrote nothing, and the answer had not said so."""
    assert judge(EVIDENCE).lines[-1].endswith("begin in mode shadow.")
    found = judge(replace(EVIDENCE, traps=("user-limit-factor",)))
    assert found.lines[-1].endswith("what to set before anything is written (user-limit-factor).")


def test_a_page_sets_the_numbers_of_the_verdict_but_not_the_queues_names(tmp_path: Path) -> None:
    """A queue may be called 1,200 or -2: that is no number of ours."""
    names = {"root.a": "root.1,200", "root.b": "root.-2"}
    gains = {names["root.a"]: [70.0, 72.0, 69.0], names["root.b"]: [54.0, 55.0, 53.0]}
    present = played("fair", {names["root.a"]: [100, 102, 98], names["root.b"]: [50, 51, 49]}, [200, 210, 190])
    better = played("ltrf@outside", gains, [60, 66, 58])
    evidence = replace(
        EVIDENCE,
        real_s={names["root.a"]: 101.0, names["root.b"]: 50.0},
        jobs={names["root.a"]: 12, names["root.b"]: 30},
        present=present,
        candidates=(better,),
    )
    page = tmp_path / "assess.html"
    write_page(page, Assessed(judge(evidence), evidence, [present, better], tmp_path), "trace.jsonl")
    verdict = re.sub(r"<[^>]+>", "", page.read_text().partition('<section id="verdict"')[2].partition("</section>")[0])
    assert "but -2 takes 8.0 % longer" in verdict
    assert "Gains: 1,200 30 % shorter" in verdict
    assert "Loses: -2 8.0 % longer" in verdict


def test_yes_says_who_gains_who_loses_the_price_and_the_settings() -> None:
    found = judge(EVIDENCE)
    assert found.answer == "yes"
    assert found.best is BETTER
    assert len(found.lines) == 6
    text = "\n".join(found.lines)
    for words in ("a 30 % shorter (29 to 30 %)", "b 8.0 % longer (8 to 8 %)", "Price: ", "policy ltrf", "mode shadow"):
        assert words in text, text
    assert found.lines[0].startswith("yes, but b takes 8.0 % longer (8 to 8 %): ltrf@outside lessens ")
    assert "42 applications, 2.0 h" in text
    assert found.reproduction_error == pytest.approx(0.005, abs=0.001)


def test_the_error_is_the_mean_over_the_queues() -> None:
    # 100 against 125 is 20 %, 50 against 40 is 25 %; how many jobs a queue has does not count.
    found = judge(replace(EVIDENCE, real_s={"root.a": 125.0, "root.b": 40.0}))
    assert found.reproduction_error == pytest.approx((0.2 + 0.25) / 2)
    assert reproduction_error([]) is None


def test_an_application_that_the_replay_misses_is_off_by_all_that_it_took() -> None:
    # In the second of two replays one that took 40 s of the 400 is refused, and the others take what they did.
    queue = Replayed(400.0, [0.0, 40.0], [400.0, 360.0])
    assert queue.error() == pytest.approx(20 / 400)
    # What the others take longer does not make up for it.
    assert Replayed(400.0, [0.0, 40.0], [400.0, 400.0]).error() == pytest.approx((20 + 20) / 400)
    assert reproduction_error([queue, Replayed(10.0, [10.0, 10.0], [0.0, 0.0])]) == pytest.approx((0.05 + 1) / 2)


def test_applications_that_the_replay_refuses_leave_no_verdict_though_the_others_take_what_they_took() -> None:
    """Before, a queue of which only the first application was let in counted as reproduced."""
    gone = [f"job-{n}" for n in range(6)]
    present = replace(PRESENT, outcomes=[replace(one, missing={"root.a": gone}) for one in PRESENT.outcomes])
    causes = causes_of(EVIDENCE.real_s, {}, present)
    evidence = replace(EVIDENCE, present=present, completion_s=dict.fromkeys(gone, 101.0), causes=causes)
    found = judge(evidence)
    assert found.answer == "unsure"
    assert found.reproduction_error == pytest.approx((606 + 6) / 1212 / 2, abs=0.001)
    assert "6 applications of a ended in reality, and not in the replay" in found.lines[1]
    # A replay that lacks applications is no proof that nobody contended.
    calm = [replace(one, contended=0.0, missing={"root.a": gone}) for one in PRESENT.outcomes]
    idle = replace(evidence, present=replace(PRESENT, outcomes=calm), real_wait_s=1.0)
    assert judge(idle).answer == "unsure"


def test_above_the_bound_there_is_no_verdict_and_what_is_missing_is_said() -> None:
    inside = {"root.a": 100 / (1 - MOST_ERROR + 0.01), "root.b": 50 / (1 - MOST_ERROR + 0.01)}
    beyond = {"root.a": 100 / (1 - MOST_ERROR - 0.01), "root.b": 50 / (1 - MOST_ERROR - 0.01)}
    assert judge(replace(EVIDENCE, real_s=inside)).answer != "unsure"
    found = judge(replace(EVIDENCE, real_s=beyond, missing=["not looked for 300 s"]))
    assert (found.answer, found.best) == ("unsure", None)
    assert "16.0 % off" in found.why
    # What is hardly above the bound does not read as if it were at it.
    hardly = {"root.a": 100 / (1 - MOST_ERROR - 0.0001), "root.b": 50 / (1 - MOST_ERROR - 0.0001)}
    assert "15.1 % off what really happened (at most 15 % for a verdict)" in judge(replace(EVIDENCE, real_s=hardly)).why
    assert "Missing: not looked for 300 s." in found.lines
    assert len(found.lines) <= 6


def test_a_queue_that_never_ends_in_the_replay_is_named_and_a_candidate_that_starves_one_is_not_taken() -> None:
    def without(played: Played, queue: str) -> Played:
        outcomes = [replace(one, mean_s={k: v for k, v in one.mean_s.items() if k != queue}) for one in played.outcomes]
        return replace(played, outcomes=outcomes)

    found = judge(replace(EVIDENCE, present=without(PRESENT, "root.b")))
    assert (found.answer, found.best, found.early) == ("unsure", None, True)
    # All that its applications took, as `plan` counts it.
    assert found.reproduction_error == pytest.approx((1 / 101 + 1) / 2)
    assert found.why == "in the replay no application of b ends, as some did in reality"
    assert judge(EVIDENCE).answer == "yes"
    starving = replace(EVIDENCE, candidates=[without(one, "root.b") for one in EVIDENCE.candidates])
    assert judge(starving).answer == "no"


def test_work_without_tasks_is_no_ground_where_queues_contend() -> None:
    found = judge(replace(EVIDENCE, known=0.3))
    assert found.answer == "unsure"
    assert "--history URL" in found.lines[1]
    assert judge(replace(EVIDENCE, known=0.6)).answer == "yes"


def shorter(by: float) -> Played:
    """An idle cluster in whose replay applications take so much less than they did."""
    means = {queue: [value * (1 - by) for value in values] for queue, values in (("root.a", [101.0]), ("root.b", [50]))}
    return played("fair", means, [5], contended=0.0)


@pytest.mark.parametrize(
    ("changed", "answer", "says"),
    [
        # One row a question, in the order in which they are asked: each one's answer comes before all that follow.
        ({"unknown": ["the trace names no queue"], "jobs": {"root.a": 1}}, "unsure", "names no queue"),
        ({"jobs": {"root.a": 4}, "recorded": 60}, "unsure", "4 of 60 applications have an end"),
        ({"jobs": {"root.a": 4}, "recorded": 9, "left_out": "left out"}, "unsure", "too short a time"),
        ({"jobs": {}, "recorded": 4}, "unsure", "none of 4 applications has an end"),
        ({"left_out": "left out: 3 jobs", "present": shorter(0.5)}, "unsure", "too much of what ran"),
        ({"present": replace(PRESENT, outcomes=[replace(PRESENT.outcomes[0], unfinished="cut after 9 s")])}, "unsure",
         "cut after 9 s"),
        ({"present": shorter(0.36), "real_wait_s": 1.0}, "unsure", "36 % off"),
        ({"present": shorter(-0.36), "real_wait_s": 1.0}, "no", "nothing to give back"),
        ({"present": shorter(0.1), "real_wait_s": 1.0}, "no", "nothing to give back"),
        ({}, "yes", "lessens the sharing loss"),
    ],
)  # fmt: skip
def test_the_questions_are_asked_in_one_order(changed: dict[str, Any], answer: str, says: str) -> None:
    found = judge(replace(EVIDENCE, **changed))
    assert (found.answer, says in found.why) == (answer, True), found.why


def test_what_the_replay_is_off_by_is_named_queue_by_queue() -> None:
    waited = replace(
        PRESENT, outcomes=[replace(one, start_wait_s={"root.a": 2.0, "root.b": 1.0}) for one in PRESENT.outcomes]
    )
    found = causes_of({"root.a": 300.0, "root.b": 50.0}, {"root.a": 190.0, "root.b": 1.0}, waited)
    assert found == [
        "applications of a waited 190 s for their master, in the replay 2 s (a limit of masters or of running "
        "applications, or load that is not in the trace)"
    ]
    (slower,) = causes_of({"root.a": 200.0}, {"root.a": 2.0}, waited)
    assert "took 200 s, in the replay 100 s (containers came later" in slower
    (faster,) = causes_of({"root.a": 60.0}, {}, waited)
    assert faster == "applications of a took 60 s, in the replay 100 s"


def test_too_little_says_nothing() -> None:
    found = judge(replace(EVIDENCE, jobs={"root.a": 4, "root.b": 5}))
    assert found.answer == "unsure"
    assert "only 9 applications" in found.why


def test_without_contention_there_is_nothing_to_gain_whatever_the_error() -> None:
    idle = played("fair", {"root.a": [100, 100], "root.b": [50, 50]}, [5, 5], contended=0.002)
    found = judge(replace(EVIDENCE, present=idle, candidates=(), real_wait_s=1.0))
    assert found.answer == "no"
    assert found.lines[0].startswith("no, nothing to gain: ")
    waited = judge(replace(EVIDENCE, present=idle, real_wait_s=60.0, candidates=()))
    assert not waited.early, "applications did wait in reality: the candidates are looked at"


@pytest.mark.parametrize(
    ("candidate", "says"),
    [
        # Less loss in some phases, but in none by enough.
        (played("ltrf@outside", {"root.a": [70, 72, 69], "root.b": [54, 55, 53]}, [190, 220, 180]), "lessens"),
        # Fairer, and nobody would notice.
        (played("ltrf@outside", {"root.a": [99, 101, 97], "root.b": [50, 51, 49]}, [60, 66, 58]), "3.0 % sooner"),
        # Fairer, and everybody waits longer.
        (
            played("ltrf@outside", {"root.a": [130, 130, 130], "root.b": [60, 60, 60]}, [60, 66, 58]),
            "longer on average",
        ),
    ],
)
def test_no_where_it_is_not_sure_not_noticed_or_too_dear(candidate: Played, says: str) -> None:
    found = judge(replace(EVIDENCE, candidates=(candidate,)))
    assert found.answer == "no"
    assert says in found.why
    assert found.best is None


def test_a_loss_that_grows_is_said_to_grow() -> None:
    """It read "lessens the sharing loss by -15 % (7 to 18 %)"."""
    grown = played("ltrf@outside", {"root.a": [70, 72, 69], "root.b": [54, 55, 53]}, [220, 252, 190])
    found = judge(replace(EVIDENCE, candidates=(grown,)))
    assert found.answer == "no"
    assert found.why == "the best candidate (ltrf@outside) makes the sharing loss 10 % larger (0 to 20 %)"
    mixed = played("ltrf@outside", {"root.a": [70, 72, 69], "root.b": [54, 55, 53]}, [260, 273, 180.5])
    found = judge(replace(EVIDENCE, candidates=(mixed,)))
    assert found.why == "the best candidate (ltrf@outside) makes the sharing loss 18 % larger (-5 to +30 %)"


def test_phases_that_disagree_are_no_no() -> None:
    """Recorded on real containers: -25 to +15 %, and a load that took some 20 % less under the policy afterwards."""
    candidate = played("ltrf@outside", {"root.a": [70, 72, 69], "root.b": [54, 55, 53]}, [100, 220, 100])
    found = judge(replace(EVIDENCE, candidates=(candidate,)))
    assert (found.answer, found.best) == ("unsure", None)
    assert "it hangs on chance whether ltrf@outside lessens the sharing loss (-5 to +50 %)" in found.lines[0]
    assert len(found.lines) <= 6


def test_who_waits_but_for_no_other_queue_has_nothing_to_gain() -> None:
    """Recorded on real containers, where a limit of masters held applications of a cluster that was 38 % used."""
    idle = played("fair", {"root.a": [100, 102, 98], "root.b": [50, 51, 49]}, [200, 210, 190], contended=0.0)
    candidate = played("ltrf@outside", {"root.a": [70, 72, 69], "root.b": [54, 55, 53]}, [126, 218, 150])
    found = judge(replace(EVIDENCE, present=idle, candidates=(candidate,)))
    assert found.answer == "no"
    assert found.lines[0].startswith("no, nothing to gain: queues were short of their share in 0.0 % ")
    assert "waited 20.0 s on average for their first container, but not for other queues" in found.lines[1]
    unknown = judge(replace(EVIDENCE, present=idle, candidates=(BETTER,), known=0.0))
    assert unknown.answer == "no"


def test_a_verdict_says_for_which_load_it_holds() -> None:
    assert any("holds for a load like the recorded one" in line for line in judge(EVIDENCE).lines)


def test_no_says_what_a_candidate_would_give_whose_price_is_too_high() -> None:
    """The mean over all applications may rise by 10 %; here by 17 %, and by 27 %."""
    small = played("small@outside", {"root.a": [99, 101, 97], "root.b": [50, 51, 49]}, [60, 66, 58])
    dear = played("dear@outside", {"root.a": [85, 87, 83], "root.b": [90, 91, 89]}, [40, 46, 38])
    dearer = played("dearer@outside", {"root.a": [80, 82, 78], "root.b": [110, 111, 109]}, [30, 36, 28])
    found = judge(replace(EVIDENCE, candidates=(small, dearer, dear)))
    assert found.answer == "no"
    assert found.lines[0].startswith("no: under small@outside")
    (line,) = (line for line in found.lines if line.startswith("Too dear: "))
    assert "dear@outside would make a 15 % shorter (15 to 15 %), and applications 17 % longer" in line
    assert len(found.lines) <= 6
    assert not any("Too dear" in line for line in judge(replace(EVIDENCE, candidates=(small,))).lines)


def test_of_nearly_equal_candidates_the_first_is_taken() -> None:
    first = played("one@outside", {"root.a": [70, 70, 70], "root.b": [54, 54, 54]}, [61, 61, 61])
    second = played("two@outside", {"root.a": [70, 70, 70], "root.b": [54, 54, 54]}, [60, 60, 60])
    third = played("three@outside", {"root.a": [70, 70, 70], "root.b": [54, 54, 54]}, [40, 40, 40])
    assert best_of(PRESENT, [first, second]) is first
    assert best_of(PRESENT, [first, second, third]) is third


def test_a_band_is_all_phases() -> None:
    assert Band.of([3.0, 1.0, 2.0]) == Band(2.0, 1.0, 3.0)


def test_a_limit_on_masters_is_named_where_most_of_the_wait_for_them_goes_without_it() -> None:
    one = EVIDENCE.present.outcomes[0]
    present = replace(one, start_wait_s={"root.a": 200.0, "root.b": 60.0, "root.c": 3.0})
    without = replace(one, start_wait_s={"root.a": 12.0, "root.b": 50.0, "root.c": 0.0})
    words = masters_cause(present, without, "maxAMShare")
    assert words == (
        "The limit on ApplicationMasters (maxAMShare) is what applications wait for in the replay: a 200 s, without it "
        "12 s."
    )
    assert masters_cause(present, present, "maxAMShare") == ""
    stuck = replace(without, missing={"root.a": ("one", "two")})
    assert masters_cause(present, stuck, "maxAMShare").endswith("12 s, but 2 of them do not end then.")
    verdict = judge(replace(EVIDENCE, masters=words))
    assert verdict.lines[-1] == words
    many = replace(one, start_wait_s={f"root.q{n}": 100.0 + n for n in range(5)})
    gone = replace(one, start_wait_s={f"root.q{n}": 0.0 for n in range(5)})
    assert masters_cause(many, gone, "maxAMShare").endswith("q2 102 s, without it 0 s; and 2 more queues.")
