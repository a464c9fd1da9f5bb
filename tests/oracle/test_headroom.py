"""The headroom that a scheduler tells an AM in the answer to its heartbeat, against Hadoop's own classes.

A MapReduce AM decides by it how many reduces it asks for, and whether it preempts some for its maps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.sim.capacity import users
from harness.sim.decide import decider
from harness.sim.fair import limits
from tests.oracle import capacity_scripts, fifo_scripts, scripts
from tests.oracle.decisions import decisions, differences

pytestmark = pytest.mark.java
MAKERS: dict[str, Any] = {"fair": scripts, "capacity": capacity_scripts, "fifo": fifo_scripts}
#: Among those of the Capacity Scheduler: AMs that the scheduler does not know and that ask for containers (1), AMs that
#: fetch containers by themselves (4, 11, 14), and users that Hadoop forgets because of limits of parallel applications,
#: of which one is absent when a node is lost (11).
SEEDS = {"fair": range(1, 6), "capacity": (1, 2, 4, 5, 11, 14), "fifo": range(1, 4)}
_MUTATED = {"fair": (1, 2, 5), "capacity": (1, 5, 11)}


def played(scheduler: str, seeds: Any, folder: Path) -> list[tuple[Any, Any]]:
    asked = []
    for seed in seeds:
        script = MAKERS[scheduler].make_script(MAKERS[scheduler].random_plan(seed, shares="none"))
        asked.append({**script, "options": {**script["options"], "headrooms": "all"}})
    return decisions(asked, folder)


@pytest.mark.parametrize("scheduler", MAKERS)
def test_every_headroom_is_hadoops(scheduler: str, tmp_path: Path) -> None:
    """The Capacity Scheduler's engine told one to attempts that no leaf had considered, where Hadoop tells 0; and it
    counted what a user holds now where Hadoop counts what a forgotten user held.
    """
    told = above_zero = 0
    for seed, (script, theirs) in zip(SEEDS[scheduler], played(scheduler, SEEDS[scheduler], tmp_path), strict=True):
        ours = decider(script).run()
        assert differences(theirs, ours) == [], seed
        assert len(theirs["headrooms"]) == len(ours["headrooms"]), seed
        for one, other in zip(theirs["headrooms"], ours["headrooms"], strict=True):
            assert one == other, seed
        told += len(theirs["headrooms"])
        above_zero += sum(one["headroom_mb"] > 0 for one in theirs["headrooms"])
    assert told > 300
    assert above_zero > 100


#: A rule of a scheduler's headroom -> a change of its text.
MUTATIONS = {
    "capacity": {
        "none before the leaf considers the attempt": ("if x.seen == 0:", "if False:"),
        "a forgotten user": ("if x.seen == 2:", "if False:"),
        "what the user holds": ("max(mb - used_mb, 0)", "max(mb, 0)"),
        "what the queue holds": ("max(q.L_mb - q.used_mb, 0)", "max(q.L_mb, 0)"),
        "the limit of the leaf's last consideration": ("q.L_mb - q.used_mb", "q.effmax_mb - q.used_mb"),
        "rounding": ("mb, vcores = round_down(s, mb, vcores)", "pass"),
        "what is free in the cluster": ("mb, vcores) <= 0:", "mb, vcores) <= -2:"),
        "the smaller one by the dominant share": (
            "compare_in(s, g.label_mb, g.label_vcores, free_mb, free_vcores, mb, vcores)",
            "(free_mb > mb)",
        ),
    },
    "fair": {
        "what is free in the cluster": ("min(g.cluster_mb - g.alloc_mb, q.max_mb - q.usage_mb)", "q.max_mb"),
        "the fair share": ("mb = min(mb, max(q.fair_mb - q.usage_mb, 0))", "pass"),
        "a fair share below what is used": ("max(q.fair_mb - q.usage_mb, 0)", "(q.fair_mb - q.usage_mb)"),
        "vcores by the fair share": ("if q.policy == DRF:", "if False:"),
    },
}


class _Record:
    """One record of the state, with its fields as attributes, as kernels see it."""

    def __init__(self, row: Any) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Any:
        return self._row[name].item()


class _Records:
    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __getitem__(self, at: int) -> _Record:
        return _Record(self._rows[at])


class _State:
    def __init__(self, state: Any) -> None:
        self.state = state

    def __getattr__(self, name: str) -> _Records:
        return _Records(getattr(self.state, name))


def mutated(module: Any, old: str, new: str) -> Callable[[Any, int], tuple[int, int, int]]:
    """A module's `headroom` with a change of its text, not compiled. Kernels that it calls get the state itself."""
    text = inspect.getsource(getattr(module.headroom, "py_func", module.headroom)).replace("@kernel", "")
    assert text.count(old) == 1 or old == new

    def opened(kernel: Any) -> Any:
        return lambda s, *args: kernel(s.state, *args)

    names = dict(vars(module))
    names |= {name: opened(names[name]) for name in ("limit_now", "round_down", "compare_in") if name in names}
    exec(compile(text.replace(old, new), "mutated", "exec"), names)
    return lambda s, i: names["headroom"](_State(s), i)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, Any]]]:
    return {name: played(name, seeds, tmp_path_factory.mktemp(name)) for name, seeds in _MUTATED.items()}


@pytest.mark.parametrize(
    ("scheduler", "rule"),
    [(name, rule) for name, rules in MUTATIONS.items() for rule in ("", *rules)],
    ids=lambda text: text.replace(" ", "-") or "unchanged",
)
def test_a_change_of_each_rule_is_noticed(
    scheduler: str, rule: str, answered: dict[str, list[tuple[Any, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {"capacity": users, "fair": limits}[scheduler]
    monkeypatch.setattr(module, "headroom", mutated(module, *MUTATIONS[scheduler].get(rule, ("", ""))))
    differ = sum(
        one != other
        for script, theirs in answered[scheduler]
        for one, other in zip(theirs["headrooms"], decider(script).run()["headrooms"], strict=True)
    )
    assert (differ > 0) == bool(rule)
