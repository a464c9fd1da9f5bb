"""The soak itself: a minute of it in CI, one history for a seed, short schedules, and the bugs that it must find."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.control.soak import __main__ as command
from tests.control.soak import capacities, edits, faults, planted, process, regime, schedule, shrink, world
from tests.control.soak.cluster import App
from tests.control.soak.violated import Violated

ROOT = Path(__file__).resolve().parents[2]


def violated(histories: list[world.History]) -> list[str]:
    return [f"seed {one.seed}: {one.violation}" for one in histories if one.violation]


@pytest.mark.parametrize("seeds", [range(8), range(8, 20)], ids=["0-7", "8-19"])
def test_the_first_seeds_violate_nothing(seeds: range) -> None:
    histories = [world.live(seed) for seed in seeds]
    assert violated(histories) == []
    assert sum(one.ticks for one in histories) > 3000
    assert len({kind for one in histories for kind in one.faults}) > 25


@pytest.mark.long
def test_the_next_seeds_violate_nothing() -> None:
    assert violated([world.live(seed) for seed in range(20, 40)]) == []


def test_what_administrators_and_machines_do_violates_nothing() -> None:
    """The second regime: groups of queues edited, older files and ledgers, another cluster, signals, wrong clocks."""
    histories = [world.live(seed) for seed in range(regime.SECOND, regime.SECOND + 12)]
    assert violated(histories) == []
    done = {kind for one in histories for kind in one.faults}
    assert len(done & schedule.OF_SECOND) >= 8, sorted(schedule.OF_SECOND - done)


def test_moved_queues_minimum_shares_and_releases_beside_another_cluster_violate_nothing() -> None:
    """The third regime."""
    histories = [world.live(regime.THIRD + at) for at in (*range(8), 18, 536)]
    assert violated(histories) == []
    done = {kind for one in histories for kind in one.faults}
    assert done >= schedule.OF_THIRD, sorted(schedule.OF_THIRD - done)


def test_absolute_resources_and_queues_that_are_made_violate_nothing() -> None:
    """The fourth regime; seeds that found mistakes in the product among them."""
    histories = [world.live(regime.FOURTH + at) for at in (1, 8, 26, 39, 60, 77, 78)]
    assert violated(histories) == []
    done = {kind for one in histories for kind in one.faults}
    assert done >= schedule.OF_FOURTH, sorted(schedule.OF_FOURTH - done)


def test_resource_managers_that_begin_anew_beside_late_nodes_violate_nothing() -> None:
    """The fifth regime, which has nothing but that."""
    histories = [world.live(regime.FIFTH + at) for at in range(3)]
    assert violated(histories) == []
    done = {kind for one in histories for kind in one.faults}
    assert {"rm-restarts", "somebody-looks"} <= done <= schedule.OF_RECOVERIES


def test_an_rm_that_begins_anew_in_quiet_and_final_figures_that_fall_violate_nothing() -> None:
    """The sixth regime."""
    histories = [world.live(regime.SIXTH + at) for at in range(3)]
    assert violated(histories) == []
    done = {kind for one in histories for kind in one.faults}
    assert done >= schedule.OF_SIXTH, sorted(schedule.OF_SIXTH - done)


def test_preemption_that_is_switched_on_and_off_violates_nothing() -> None:
    """The seventh regime; seeds in which the ratio that bounds weights did not hold beside preemption among them."""
    histories = [world.live(regime.SEVENTH + at) for at in (1, 2, 14, 25, 37)]
    assert violated(histories) == []
    done = {kind for one in histories for kind in one.faults}
    assert done >= schedule.OF_SEVENTH


def test_preemption_that_kills_stays_within_the_budget() -> None:
    """The eighth regime; a seed in which the budget was exceeded where its size counted for nothing among them."""
    histories = [world.live(regime.EIGHTH + at) for at in (1, 6, 14)]
    assert violated(histories) == []


def test_restarts_and_kills_among_containers_of_an_hour_violate_nothing() -> None:
    """The ninth regime: a final figure that counted twice after a second restart; preemption that is switched on."""
    histories = [world.live(regime.NINTH + at) for at in (0, 8, 22)]
    assert violated(histories) == []
    done = {kind for one in histories for kind in one.faults}
    assert {"rm-restarts", "rm-fails-over", "preemption-switched"} <= done


def test_queues_that_are_taken_off_a_list_and_leave_their_properties_violate_nothing() -> None:
    """The tenth regime; in its fourth seed a parent lost most of its account when a queue was deleted within a look."""
    histories = [world.live(regime.TENTH + at) for at in (3, 6)]
    assert violated(histories) == []
    done = {kind for one in histories for kind in one.faults}
    assert done >= schedule.OF_TENTH


def test_what_is_killed_because_of_the_shares_is_told_from_what_the_administrators_own_would_kill(
    tmp_path: Path,
) -> None:
    one = world.World(regime.EIGHTH + 1, tmp_path)
    preempting, cluster = one.preempting, one.cluster
    assert preempting is not None
    queue = next(path for path in cluster.leaves())
    cluster.assign = lambda: None  # type: ignore[method-assign]
    cluster.apps.clear()
    app = App("application_1_0001", queue, 0.0, 1024, 100.0, 1)
    cluster.apps[app.id] = cluster.by_id[app.id] = app
    for _ in range(5):
        assert cluster.start(app, 1024)
    one.agenda.run_until(10.0)
    assert preempting._kill(queue, 2048.0, 5120.0, 1024.0, 9999.0) == 2048.0
    assert preempting._kill(queue, 1024.0, 3072.0, 9999.0, 9999.0) == 1024.0
    assert preempting._kill(queue, 9999.0, 2048.0, 1024.0, 0.0) == 1024.0, "a master stays"
    assert [caused for _, _, caused in preempting.killed] == [False, False, True, True]
    assert one.active.preempted[app.id] == 40_960
    preempting.check()
    one.plan = replace(one.plan, settings=replace(one.plan.settings, preemption_budget_mb_s=0.0))
    preempting.killed += [(10.0, 20_000.0, True)]
    with pytest.raises(Violated, match="because of the shares, budget 0"):
        preempting.check()


def test_what_is_killed_before_anybody_sees_that_preemption_is_on_is_nobodys(tmp_path: Path) -> None:
    """Shares are written freely while preemption is off, and the RM enforces them from the moment it is on."""
    one = world.World(regime.EIGHTH + 1, tmp_path)
    preempting, cluster = one.preempting, one.cluster
    assert preempting is not None
    assert one.active.preempts
    queue = next(path for path in cluster.leaves())
    cluster.assign = lambda: None  # type: ignore[method-assign]
    cluster.apps.clear()
    app = App("application_1_0001", queue, 0.0, 1024, 100.0, 1)
    cluster.apps[app.id] = cluster.by_id[app.id] = app
    for _ in range(4):
        assert cluster.start(app, 1024)
    one.agenda.run_until(10.0)
    preempting.just_switched_on = True
    for more in (2048.0, 1024.0):
        preempting._kill(queue, 1024.0, more, 1024.0, 0.0)
        preempting.seen()
    assert [caused for _, _, caused in preempting.killed] == [False, True]


def test_a_moved_queue_is_below_another_parent_with_what_it_had() -> None:
    before = b"""<allocations>
  <queue name="q0">
    <weight>2</weight>
    <queue name="q0a"/>
    <queue name="q0b">
    <weight>3</weight>
  </queue>
  </queue>
  <queue name="q1"><weight>4</weight><maxRunningApps>60</maxRunningApps></queue>
</allocations>
"""
    was, now = edits.read(before), edits.read(edits.move(before, "q1", "q0"))
    assert now.keys() == (was.keys() - {"root.q1"}) | {"root.q0.q1"}
    assert (now["root.q0.q1"].weight, now["root.q0.q1"].rest) == (was["root.q1"].weight, was["root.q1"].rest)


def test_seeds_of_before_draw_nothing_of_the_second_regime() -> None:
    for seed in range(40):
        plan = process.Plan.drawn(random.Random(f"{seed} plan")).of_scheduler(random.Random(f"{seed} scheduler"))
        assert not plan.second
        drawn = faults.drawn(random.Random(f"{seed} faults"), [(4.0, 74.0)], plan)
        assert not {fault.kind for fault in drawn} & (
            schedule.OF_SECOND | schedule.OF_THIRD | schedule.OF_FOURTH | schedule.OF_SIXTH | schedule.OF_SEVENTH
        )


@pytest.mark.long
@pytest.mark.parametrize(
    "begin",
    [
        *range(1000, 3000, 100),
        *range(regime.SECOND + 1000, regime.SECOND + 2000, 100),
        *range(regime.FOURTH + 1000, regime.FOURTH + 2000, 100),
        *(
            begin
            for first in (regime.THIRD, regime.FIFTH, regime.SIXTH, regime.SEVENTH, regime.EIGHTH, regime.NINTH)
            for begin in (first + 1000, first + 1100)
        ),
    ],
)
def test_five_thousand_seeds_violate_nothing(begin: int) -> None:
    assert violated([world.live(seed) for seed in range(begin, begin + 100)]) == []


def test_a_seed_has_one_history_to_the_byte() -> None:
    """Also in another process, whose sets are in another order."""
    arguments = [sys.executable, "-m", "tests.control.soak", "--seeds", "32:34", "--json"]
    told = []
    for hashed in ("1", "2"):
        ran = subprocess.run(
            arguments, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": hashed}, capture_output=True, check=True
        )
        told.append(json.loads(ran.stdout))
    assert told[0]["histories"] == told[1]["histories"]
    assert {"seeds", "ticks", "virtual_s", "faults", "violations"} <= told[0].keys()
    assert (told[0]["seeds"], told[0]["violations"]) == (2, [])


def test_a_schedule_is_run_as_given_and_mistakes_in_it_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seeds", "3", "--schedule", "6:rm-restarts:1,9:disk-full:2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["faults"] == {"disk-full": 1, "rm-restarts": 1}
    for wrong in ("6:no-such-fault:1", "6:rm-restarts", "x:rm-restarts:1"):
        with pytest.raises(SystemExit, match="2"):
            command.main(["--schedule", wrong])
    assert "no kind of fault is called no-such-fault" in capsys.readouterr().err


def test_a_failing_schedule_is_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    full = faults.parse("5:burst:1,6:rm-freezes:2,7:burst:3,8:disk-full:4,9:burst:5,10:node-lost:6")

    def live(seed: int, schedule: list[faults.Fault]) -> world.History:
        both = {"rm-freezes", "node-lost"} <= {fault.kind for fault in schedule}
        return world.History(seed, violation="root.a has 7 MiB s" if both else "")

    monkeypatch.setattr(world, "live", live)
    assert [fault.kind for fault in shrink.shortest(1, full, "root.b has 8 MiB s")] == ["rm-freezes", "node-lost"]


def test_edits_of_groups_leave_files_that_a_resource_manager_starts_with() -> None:
    """The same edit of the administrator's own file and of the one with a controller's shares in it."""
    for seed in range(200):
        rng = random.Random(seed)
        words = capacities if seed % 2 else edits
        form = "weight" if seed % 4 == 1 else "percent"
        pristine = capacities.make(rng, form) if seed % 2 else edits.make(rng, ad_hoc=False)
        queues = words.read(pristine)
        idle = [q.path.rpartition(".")[2] for q in queues.values() if q.leaf and q.parent == "root"]
        change = words.regroup(rng, pristine, rng.choice(idle) if len(idle) > 2 else "", "new1")
        if change is not None:
            after = words.read(change(pristine))
            assert after != queues
            assert words.read(change(words.all_changed(pristine))).keys() == after.keys()


def test_the_models_reader_refuses_what_no_rm_takes() -> None:
    good = b'<allocations><queue name="a"><weight> 2 </weight></queue><queue name="b"/></allocations>'
    assert {q.path: q.weight for q in edits.read(good).values()} == {"root": 1.0, "root.a": 2.0, "root.b": 1.0}
    entity = b'<!DOCTYPE a [<!ENTITY b "c">]>' + good
    for data in (b"", good[:40], good.replace(b"allocations", b"other"), good.replace(b" 2 ", b"NaN"), entity):
        with pytest.raises(edits.Unreadable):
            edits.read(data)
    below = b"</weight><schedulingPolicy>drf</schedulingPolicy>"
    for data in (good.replace(b"</weight>", below), good.replace(b"</weight>", below.replace(b"drf", b"best"))):
        with pytest.raises(edits.Unreadable, match="policy"):
            edits.read(data)  # below a root that is fair, and a policy that there is not
    assert edits.only_owned_differ(good.replace(b" 2 ", b"7"), good) == ""
    assert "b" in edits.only_owned_differ(good.replace(b'"b"', b'"c"'), good)


def test_the_other_reader_refuses_what_no_capacity_scheduler_takes() -> None:
    def file(**values: str) -> bytes:
        rows = {"queues": "a,b", "a.capacity": "40", "b.capacity": " 60.0 ", "a.maximum-applications": "7"} | values
        return capacities.stored({f"{capacities.PREFIX}root.{name}": value for name, value in rows.items()})

    good = file()
    assert {q.path: q.weight for q in capacities.read(good).values()} == {"root": 100.0, "root.a": 40.0, "root.b": 60.0}
    for changed in ({"a.capacity": "50"}, {"a.capacity": "4w"}, {"queues": "a,b,c"}, {"queues": ""}):
        with pytest.raises(edits.Unreadable):
            capacities.read(file(**changed))
    for data in (b"", good[:90], b"<allocations/>"):
        with pytest.raises(edits.Unreadable):
            capacities.read(data)
    assert capacities.only_owned_differ(file(**{"a.capacity": "70", "b.capacity": "30"}), good) == ""
    assert "maximum-applications" in capacities.only_owned_differ(file(**{"a.maximum-applications": "8"}), good)
    assert capacities.entitlements(file(**{"a.capacity": "1w", "b.capacity": "3w"}))["root.b"] == 75.0


def test_the_first_seeds_have_both_schedulers_and_a_capacity_in_each_place() -> None:
    """As each test run looks at them."""
    plans = [
        process.Plan.drawn(random.Random(f"{seed} plan")).of_scheduler(random.Random(f"{seed} scheduler"))
        for seed in range(20)
    ]
    assert {(plan.capacity, plan.store) for plan in plans} >= {("", False), ("weight", False), ("percent", True)}
    assert not any(plan.store and plan.settings.lease_s for plan in plans)


def test_each_planted_bug_has_its_place_and_twenty_were_here_before() -> None:
    known = planted.bugs()
    assert len(known) >= 40
    assert sum(bool(bug.reverses) for bug in known) >= 20
    assert len({bug.name for bug in known}) == len(known)


def test_the_page_shows_the_record_of_the_planted_bugs() -> None:
    results, page = planted.recorded(), planted.PAGE.read_text()
    assert results.keys() <= {bug.name for bug in planted.bugs()}
    assert planted.BEGIN + planted.table(results) + planted.END in page
    assert sum(one["found"] and one["seconds"] <= planted.BUDGET_S for one in results.values()) >= 38


@pytest.mark.parametrize("name", ["any-counter-taken", "refresh-forgotten"])
def test_planted_bugs_are_found_quickly(name: str) -> None:
    search = planted.look_for(next(bug for bug in planted.bugs() if bug.name == name), 120.0)
    assert search.found, search.text


@pytest.mark.long
@pytest.mark.parametrize("bug", planted.bugs(), ids=lambda bug: bug.name)
def test_every_planted_bug_is_found_within_ten_minutes(bug: planted.Bug) -> None:
    search = planted.look_for(bug)
    assert search.found, search.text
