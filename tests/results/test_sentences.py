"""Three sentences on an experiment's runs: what changed for whom, what it cost, what to try next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.results.sentences import Ran, before_and_after, reference, sentences


def ran(
    label: str,
    loss: float,
    completions: dict[str, float],
    gives_back: bool | None = None,
    scheduler: str = "fair",
    **more: Any,
) -> Ran:
    queues = {f"root.{name}": {"mean_completion_s": mean, "jobs": 5, "ended": 5} for name, mean in completions.items()}
    summary = {"sharing_loss_integral": loss, "sharing_loss": -loss / 1000, "makespan_s": 1000.0, "queues": queues}
    policy = label.partition(",")[0].partition("@")[0]
    back = policy == "ltrf" if gives_back is None else gives_back
    return Ran(
        label,
        back,
        "@outside" in label,
        summary | more,
        "horizon_s" in label,
        scheduler=scheduler,
        shares=policy != "static",
    )


FAIR = ran("fair", 71.6, {"A": 100, "B": 100, "C": 100})


def test_what_changed_and_what_it_cost_are_named_by_queue() -> None:
    changed, cost, after = sentences("x", [FAIR, ran("ltrf@outside", 11.6, {"A": 87, "B": 114, "C": 101})])
    assert changed == (
        "What changed: ltrf@outside cuts the sharing loss from 71.6 to 11.6 s (-84 %) against fair, and mean jobs get "
        "faster in A (13 %)."
    )
    assert cost == "What it cost: mean jobs get slower in B (14 %); the whole load ends at the same time."
    assert "`yarnfair run x --policy fair,ltrf@outside --set horizon_s=640`" in after


def test_the_least_loss_from_outside_speaks_for_memory_and_sharing_for_the_rest() -> None:
    runs = [
        ran("static", 600.0, {"A": 300}),
        ran("ltrf", 1.0, {"A": 90}),
        ran("ltrf@outside,period_s=60", 12.0, {"A": 95}),
        ran("ltrf@outside,period_s=1", 11.0, {"A": 96}),
        FAIR,
    ]
    changed = sentences("x", runs)[0]
    assert "ltrf@outside,period_s=1 cuts" in changed
    assert "against fair" in changed
    assert reference(runs) == "fair"
    assert reference(runs[:1]) == "static"


def test_a_users_own_policy_is_what_it_is_about_and_never_the_reference() -> None:
    mine = replace(ran("mine-Mine@outside", 30.0, {"A": 90, "B": 120, "C": 100}), own=True)
    changed, cost, after = sentences("x", [mine, ran("ltrf@outside", 11.6, {"A": 87, "B": 100, "C": 100}), FAIR])
    assert changed.startswith(
        "What changed: mine-Mine@outside cuts the sharing loss from 71.6 to 30.0 s (-58 %) against"
    )
    assert "B (20 %)" in cost
    assert "`--seed 1-5`" in after
    assert reference([mine, FAIR]) == "fair"
    assert reference([mine]) == "mine-Mine@outside"
    assert sentences("x", [mine, FAIR])[0] == changed


@pytest.mark.parametrize(
    ("runs", "part"),
    [
        # Nothing to mend.
        ([ran("fair", 7.0, {"A": 100}), ran("ltrf@outside", 6.9, {"A": 100})], "`yarnfair run contended`"),
        # No gain.
        ([FAIR, ran("ltrf@outside", 70.0, {"A": 100})], "fair serves this load as well"),
        # A gain that cost nobody anything, and one whose horizon was lengthened already.
        ([FAIR, ran("ltrf@outside", 10.0, {"A": 90})], "`yarnfair enforce --dry-run`"),
        ([FAIR, ran("ltrf@outside,horizon_s=640", 10.0, {"A": 130})], "`yarnfair enforce --dry-run`"),
        # Inside the scheduler only.
        ([FAIR, ran("ltrf", 10.0, {"A": 130})], "--policy fair,ltrf@outside`"),
    ],
)
def test_what_to_try_next_follows_from_what_came_out(runs: list[Ran], part: str) -> None:
    assert part in sentences("x", runs)[2]


def test_what_another_scheduler_changes_is_not_said_of_the_policy() -> None:
    """Of a replay on both schedulers the capacity run from outside was held against the Fair Scheduler alone."""
    runs = [
        ran("fair", 211.7, {"A": 182}),
        ran("ltrf@outside", 194.4, {"A": 185}),
        ran("capacity,scheduler=capacity", 57.8, {"A": 106}, scheduler="capacity"),
        ran("ltrf@outside,scheduler=capacity", 57.7, {"A": 106}, scheduler="capacity"),
    ]
    assert sentences("x", runs)[0].startswith("What changed: ltrf@outside leaves the sharing loss about as it was (")
    # Without a pair on the reference's scheduler, the pair on the other one is compared.
    assert "57.7 s) against capacity,scheduler=capacity, and" in sentences("x", [runs[0], *runs[2:]])[0]
    # A user's own policy comes before the reference's scheduler.
    own = replace(runs[3], label="mine:Mine@outside,scheduler=capacity", own=True)
    assert sentences("x", [*runs, own])[0].startswith("What changed: mine:Mine@outside,scheduler=capacity leaves")


@pytest.mark.parametrize("label", ["ltrf@outside,scheduler=capacity", "lt"])
def test_runs_on_different_schedulers_only_are_not_compared(label: str) -> None:
    """The second label does not name its scheduler."""
    runs = [ran("fair", 211.7, {"A": 182}), ran(label, 42.0, {"A": 106}, gives_back=True, scheduler="capacity")]
    assert before_and_after(runs) is None
    assert sentences("x", runs) == [
        f"What changed: not comparable, because {label} ran on the Capacity Scheduler and fair on the Fair Scheduler; "
        "run a policy without memory on the same scheduler."
    ]


def test_a_queue_without_an_ended_job_is_not_said_to_keep_its_time() -> None:
    runs = [ran("fair", 71.6, {"A": 100, "B": 100}), ran("ltrf", 11.6, {"A": 80, "B": 100})]
    for run in runs:
        run.summary["queues"]["root.B"].update(mean_completion_s=None, ended=0)
    assert "no queue's mean job gets slower by over 2 % (B ended no job to compare); " in sentences("x", runs)[1]


def test_a_policy_that_raises_the_loss_is_not_said_to_be_matched() -> None:
    assert "fair serves this load better" in sentences("x", [FAIR, ran("ltrf@outside", 143.2, {"A": 100})])[2]


def test_nobody_slower_and_a_raised_loss_are_said() -> None:
    changed, cost, _ = sentences("x", [FAIR, ran("ltrf", 143.2, {"A": 100}, makespan_s=1100.0)])
    assert "raises the sharing loss from 71.6 to 143.2 s (+100 %)" in changed
    assert "no queue's mean job gets faster" in changed
    assert cost == "What it cost: no queue's mean job gets slower by over 2 %; the whole load ends 10 % later."


def test_a_price_that_leaves_everybody_faster_than_alone_says_so() -> None:
    """Slower than under the other policy is not slower than without sharing, which the static run tells."""

    def priced(speedups: tuple[float, float], ended: int = 5) -> str:
        queues = {
            f"root.{name}": {"mean_completion_s": mean, "jobs": 5, "ended": ended, "speedup_over_static": speedup}
            for name, mean, speedup in zip(("A", "B"), (150.0, 80.0), speedups, strict=True)
        }
        return sentences("x", [FAIR, ran("ltrf", 70.0, {}, queues=queues)])[1]

    alone = ", but not slower than if each queue had a fixed part of the cluster; the whole load ends"
    assert f"mean jobs get slower in A (50 %){alone}" in priced((1.7, 1.0))
    assert "fixed part" not in priced((0.9, 1.6))
    assert "fixed part" not in priced((1.7, 1.0), ended=4)
    assert "fixed part" not in sentences("x", [FAIR, ran("ltrf", 70.0, {"A": 150.0})])[1], "no static run"


def test_runs_that_were_cut_off_have_no_end_to_compare() -> None:
    cut = {"root.A": {"mean_completion_s": 90.0, "jobs": 5.0, "ended": 3.5, "failed": 0}}
    assert "cut off before the load's end" in sentences("x", [FAIR, ran("ltrf", 10.0, {}, queues=cut)])[1]


@pytest.mark.parametrize("runs", [[], [FAIR], [FAIR, ran("drf", 1.0, {})], [ran("ltrf", 1.0, {})]])
def test_without_a_pair_there_is_nothing_to_say(runs: list[Ran]) -> None:
    assert sentences("x", runs) == []


def test_many_queues_are_counted() -> None:
    names = {f"q{at}": 100.0 for at in range(100)}
    changed = sentences("x", [ran("fair", 71.6, names), ran("ltrf", 11.6, dict.fromkeys(names, 90.0))])[0]
    assert changed.endswith("faster in q0 (10 %), q1 (10 %), q2 (10 %) and 97 more.")
