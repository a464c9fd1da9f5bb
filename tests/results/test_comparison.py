"""The table of a terminal: 80 columns, every run named, empty rows left out, better and worse marked."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.results.catalogue import number
from harness.results.comparison import WIDTH, Measure, comparison, over_seeds
from harness.results.sentences import Ran, change

#: A name too long for a column.
LONG = "ltrf@outside,period_s={},horizon_s=80"


def summary(completion: float | None = 50.0, **whole: Any) -> dict[str, Any]:
    queue = {"mean_completion_s": completion, "fairness_degree": 0.987, "speedup_over_static": None}
    return {"makespan_s": 4000.0, "sharing_loss": -0.5, "queues": {"root.Facebook": queue}, **whole}


@pytest.mark.parametrize("count", [1, 2, 4, 5, 11])
@pytest.mark.parametrize("name", ["p{}", LONG, "x" * 100 + "{}"])
def test_it_fits_80_columns_and_names_every_run(count: int, name: str) -> None:
    labels = [name.format(at) for at in range(count)]
    lines = comparison([(label, summary()) for label in labels], labels[0])
    assert all(len(line) <= WIDTH for line in lines)
    text = "".join(lines)
    assert all(part in text for label in labels for part in label.split(","))


def test_up_to_four_runs_are_columns_and_more_are_rows() -> None:
    four = comparison([(f"p{at}", summary()) for at in range(4)])
    assert four[0].split() == ["p0", "p1", "p2", "p3"]
    assert four[1].split()[2:] == ["4,000"] * 4
    five = comparison([(f"p{at}", summary()) for at in range(5)])
    assert [line.split()[0] for line in five if line.startswith("p")][:5] == ["p0", "p1", "p2", "p3", "p4"]


@pytest.mark.parametrize("queue", ["interactive", "q" * 24, "q" * 60])
def test_a_queues_long_name_is_whole_where_there_is_room(queue: str) -> None:
    own = summary()
    own["queues"] = {f"root.{queue}": own["queues"]["root.Facebook"], "root.b": own["queues"]["root.Facebook"]}
    lines = comparison([(f"p{at}", own) for at in range(5)])
    assert any(queue in line for line in lines) == (len(queue) < 26)
    assert all(len(line) <= WIDTH for line in lines)


def test_of_many_queues_those_that_change_most_are_shown() -> None:
    def run(lowest: float, highest: float) -> dict[str, Any]:
        queues = {f"root.q{at}": {"mean_completion_s": 50.0 + at} for at in range(1000)}
        queues |= {"root.q400": {"mean_completion_s": lowest}, "root.q500": {"mean_completion_s": highest}}
        return {**summary(), "queues": queues}

    lines = comparison([("fair", run(100.0, 100.0)), ("ltrf", run(20.0, 700.0))], "fair")
    assert len(lines) < 40
    assert any(re.fullmatch(r"  q400 +100 +20\+", line) for line in lines)
    assert any(re.fullmatch(r"  q500 +100 +700!", line) for line in lines)
    assert any(line.startswith("mean completion (s): 20 of 1,000 queues") for line in lines)


def test_a_long_name_is_broken_at_its_commas() -> None:
    lines = comparison([("ltrf,round=5,discount=0", summary()), ("fair", summary())])
    assert [line.split() for line in lines[:2]] == [["ltrf,round=5"], ["discount=0", "fair"]]


def test_rows_and_blocks_without_a_value_are_left_out() -> None:
    text = "\n".join(comparison([("a", summary()), ("b", summary(None))]))
    assert "speed-up" not in text
    assert "last sharing loss" not in text
    assert re.search(r"^  Facebook +50 +-$", text, re.M)
    assert "mean completion" not in "\n".join(comparison([("a", summary(None))]))


def test_what_is_rare_is_left_out_where_it_is_zero_for_all() -> None:
    killed = Measure("killed", "", 0, "queues.*.killed", rare=True)
    none = {"queues": {"a": {"killed": 0}, "b": {"killed": 0}}}
    some = {"queues": {"a": {"killed": 0}, "b": {"killed": 3}}}
    empty = comparison([("x", none), ("y", none)], measures=[killed])
    assert [line.split() for line in empty] == [["x", "y"]]
    told = comparison([("x", none), ("y", some)], measures=[killed])
    assert [line.split() for line in told[1:]] == [["killed"], ["a", "0", "0"], ["b", "0", "3"]]


@pytest.mark.parametrize(
    ("key", "before", "after", "mark"),
    [
        ("makespan_s", 1000.0, 900.0, "+"),
        ("makespan_s", 1000.0, 1100.0, "!"),
        ("makespan_s", 1000.0, 1010.0, ""),
        ("sharing_benefit", 1.0, 1.2, "+"),
        ("sharing_benefit", 1.0, 0.8, "!"),
        # In proportion much, but below what matters.
        ("sharing_loss", -0.007, -0.006, ""),
        ("last_loss_s", 0.0, 0.5, ""),
        ("last_loss_s", 0.0, 5.0, "!"),
    ],
)
def test_better_and_worse_are_marked_against_the_reference(key: str, before: float, after: float, mark: str) -> None:
    lines = comparison([("fair", {key: before}), ("ltrf", {key: after})], "fair")
    assert lines[1].endswith(mark or tuple("0123456789"))
    assert lines[-1] == "+ better than fair by over 2 %, ! worse"
    assert not comparison([("fair", {key: before}), ("ltrf", {key: after})])[-1].startswith("+")


def _over(values: dict[int, float]) -> dict[int, dict[str, float]]:
    return {seed: {"sharing_loss_integral": value, "last_loss_s": 100.0} for seed, value in values.items()}


def test_a_mark_does_not_contradict_the_sentences_on_the_same_seeds() -> None:
    """Marks go by differences, sentences by relative changes: a `+` stood below "the seeds do not agree"."""
    before = {**dict.fromkeys(range(11), 1000.0), 11: 1.0}
    after = {**{seed: 895.0 + seed for seed in range(11)}, 11: 4.0}
    seeds = {"fair": _over(before), "ltrf": _over(after)}
    said = change(
        *(Ran(name, name == "ltrf", False, over_seeds(list(own.values())), seeds=own) for name, own in seeds.items()),
        lambda summary: number(summary.get("sharing_loss_integral")),
    )
    assert said is not None
    assert said.part > 0
    assert not said.clear
    runs = [(name, over_seeds(list(own.values()))) for name, own in seeds.items()]
    row = next(line for line in comparison(runs, "fair", seeds=seeds) if line.startswith("sharing loss integral"))
    assert not row.rstrip().endswith(("+", "!")), row


def test_means_over_seeds_have_their_interval_and_marks_only_where_the_seeds_agree() -> None:
    """A mean of three seeds had no interval, and a mark for a difference of which the seeds say nothing."""
    seeds = {
        "fair": _over({1: 10.0, 2: 20.0, 3: 30.0}),
        "less": _over({1: 5.0, 2: 15.0, 3: 25.0}),
        "unclear": _over({1: 30.0, 2: 2.0, 3: 40.0}),
    }
    runs = [(name, over_seeds(list(own.values()))) for name, own in seeds.items()]
    lines = comparison(runs, "fair", seeds=seeds)
    row = next(line for line in lines if line.startswith("sharing loss integral"))
    assert row.split("(s)")[1].split() == [
        "20.0",
        "\u00b1",
        "24.8",
        "15.0",
        "\u00b1",
        "24.8+",
        "24.0",
        "\u00b1",
        "48.9",
    ]
    equal = next(line for line in lines if line.startswith("last sharing loss"))
    assert equal.split("(s)")[1].split() == ["100", "100", "100"], "no interval where no seed differs"
    assert lines[-1] == "each where the 95 % interval of the differences, seed by seed, excludes 0"
    assert max(map(len, lines)) <= 80
    wide = comparison([(f"{'x' * 30}{at}", runs[at][1]) for at in range(3)], seeds={
        f"{'x' * 30}{at}": seeds[name] for at, name in enumerate(seeds)
    })  # fmt: skip
    assert any("24.0 \u00b1 48.9" in line for line in wide)
    assert max(map(len, wide)) <= 80
