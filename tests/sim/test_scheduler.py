"""The scheduler's engine where recorded decisions alone do not reach: skipping, growing, recycling, other orders."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import harness.sim.fair.decide as decide_module
from harness.base.errors import InputError
from harness.cli.decide import decide
from harness.sim import nodes
from harness.sim.containers import container_exit
from harness.sim.fair import apps, shares
from harness.sim.fair import state as st
from harness.sim.fair.api import Scheduler
from harness.sim.fair.decide import FairDecider
from harness.sim.fair.nodes import can_skip
from harness.sim.fair.turns import seat_all
from harness.sim.longterm_state import RULE_USER
from harness.sim.state import ASSIGNED
from harness.yarn.fair.parse import parse_allocations
from tests.oracle.decisions import differences, load, recorded

ROOT = Path(__file__).resolve().parents[2]
TWO = '<allocations><queue name="a"><weight>{}</weight></queue><queue name="b"/></allocations>'


class Node:
    def __init__(self, name: str, memory_mb: int = 4096, vcores: int = 4) -> None:
        self.name, self.rack, self.memory_mb, self.vcores = name, "/r", memory_mb, vcores


def two_queues(weight: float = 1.0, count: int = 2, **options: Any) -> Scheduler:
    """Leaves a and b, `count` registered nodes of four containers each, an application with 100 asks in each leaf."""
    sched = Scheduler({}, parse_allocations(TWO.format(weight)), [Node(f"n{i}") for i in range(count)], **options)
    user = sched.user_slot(0, "u")
    for slot in range(count):
        nodes.add_node(sched.S, slot, 0)
    for leaf in ("root.a", "root.b"):
        app = apps.add_app(sched.S, sched.queue_index(leaf), user, False, -1, -1, 0, 0)
        assert nodes.ask(sched.S, app, 1, -1, 100, 1024, 1) == 0
    shares.update(sched.S, 0)
    return sched


class Skipping(FairDecider):
    """Leaves out every heartbeat of which `can_skip` says that it would change nothing."""

    skipped = 0

    def _on_heartbeat(self, event: Any) -> None:
        slot = self.sched.node_slots[event.raw["heartbeat"]]
        if self.sched.S.n[slot]["alive"] and can_skip(self.sched.S, slot):
            self.skipped += 1
        else:
            super()._on_heartbeat(event)


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.name.removesuffix(".json.gz"))
def test_skipped_heartbeats_change_nothing(path: Path) -> None:
    script, theirs = load(path)
    decider = Skipping(script)
    assert differences(theirs, decider.run()) == []
    # Where nodes may be reserved, somebody nearly always wants one.
    assert decider.skipped > 0 or theirs["reserved"]


def test_decisions_do_not_depend_on_the_room_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide_module, "Scheduler", functools.partial(Scheduler, apps=2, containers=2))
    for path in recorded():
        script, theirs = load(path)
        assert differences(theirs, FairDecider(script).run()) == []


def test_memory_grows_with_what_runs() -> None:
    sched = two_queues()
    user, leaf = sched.user_slot(0, "u"), sched.queue_index("root.a")
    sizes = {}
    for turn in range(400):
        s, now = sched.S, 1000 * turn
        app = apps.add_app(s, leaf, user, True, 1024, 1, 0, now)
        assert app >= 0
        nodes.ask(s, app, 5, -1, 3, 1024, 1)
        shares.update(s, now)
        for slot in range(2):
            assert nodes.heartbeat(s, slot, now) >= 0
        for record in s.log[: s.g[0]["n_log"]]:
            if record["kind"] == ASSIGNED:
                container_exit(s, record["c"])
        s.g[0]["n_log"] = 0
        assert nodes.end_app(s, app, now) == 0
        s.g[0]["n_log"] = 0
        sizes[turn] = {name: len(getattr(s, name)) for name in s._fields}
    assert sizes[399] == sizes[0]
    used = sched.S.q[0]
    running = sched.S.c[sched.S.c["live"] == 1]
    assert used["usage_mb"] == running["mb"].sum() == sched.S.g[0]["alloc_mb"]


def test_new_weights_are_those_of_a_reload() -> None:
    reloaded, weighed = two_queues(), two_queues()
    reloaded.reload(parse_allocations(TWO.format(3.7)))
    weighed.set_weights({weighed.queue_index("root.a"): 3.7})
    for sched in (reloaded, weighed):
        shares.update(sched.S, 500)
    fields = ["weight", "fair_mb", "fair_vcores", "steady_mb", "usage_mb", "demand_mb"]
    for path in ("root.a", "root.b"):
        ours, theirs = (sched.S.q[sched.queue_index(path)] for sched in (weighed, reloaded))
        assert [ours[name] for name in fields] == [theirs[name] for name in fields]
    assert weighed.S.q[weighed.queue_index("root.a")]["fair_mb"] == 6449  # 8192 x 3.7 / 4.7


def test_a_reload_computes_steady_shares_before_ad_hoc_queues_have_their_limit() -> None:
    # Hadoop's class decides so on random script 655 (test_decisions.py): applyChildDefaults follows the shares.
    file = parse_allocations(
        '<allocations><queue name="g" type="parent"><maxChildResources>1024 mb, 1 vcores</maxChildResources></queue>'
        '<queue name="a"/></allocations>'
    )
    sched = Scheduler({}, file, [Node("n0"), Node("n1")])
    nodes.add_node(sched.S, 0, 0)
    assert sched.leaf_index("g.new") is not None

    def shown() -> tuple[int, int]:
        record = sched.S.q[sched.queue_index("root.g.new")]
        return int(record["steady_mb"]), int(record["max_mb"])

    assert shown() == (1024, 1024)
    sched.reload(file)
    assert shown() == (4096 // 2, 1024)
    nodes.add_node(sched.S, 1, 0)
    assert shown() == (1024, 1024)


def fill(sched: Scheduler, heartbeats: int) -> list[str]:
    for beat in range(heartbeats):
        assert nodes.heartbeat(sched.S, beat % 2, beat) >= 0
    log = sched.S.log[: sched.S.g[0]["n_log"]]
    return [sched.queue_paths[sched.S.a[record["app"]]["q"]] for record in log if record["kind"] == ASSIGNED]


@pytest.mark.parametrize("mode", [st.KEYED_LEVELS, st.KEYED_FLAT])
def test_keys_decide_who_comes_first(mode: int) -> None:
    sched = two_queues(order_mode=mode)
    sched.S.xg[0]["rule"] = RULE_USER  # keys are set from outside
    sched.S.q[sched.queue_index("root.a")]["key"], sched.S.q[sched.queue_index("root.b")]["key"] = 2.0, 1.0
    seat_all(sched.S)
    assert fill(sched, 4) == ["root.b"] * 4
    sched.S.q[sched.queue_index("root.a")]["key"] = 0.5
    seat_all(sched.S)
    sched.S.g[0]["n_log"] = 0
    assert fill(sched, 4) == ["root.a"] * 4


def test_stock_order_follows_weights() -> None:
    assert fill(two_queues(), 8) == ["root.a", "root.b"] * 4
    # 3 : 1, ties to the first name.
    assert fill(two_queues(3.0), 8) == ["root.a", "root.b", "root.a", "root.a", "root.a", "root.b", "root.a", "root.a"]


def test_kernels_want_room_before_they_change_anything() -> None:
    sched = two_queues(containers=2)
    assert [nodes.heartbeat(sched.S, 0, t) for t in range(2)] == [1, 1]
    before = [np.copy(array) for array in sched.S]
    assert nodes.heartbeat(sched.S, 0, 2) == st.NEED_ROOM
    assert all((old == new).all() for old, new in zip(before, sched.S, strict=True))
    sched.grow()
    assert nodes.heartbeat(sched.S, 0, 2) == 1


MINIMAL: dict[str, Any] = {"nodes": [{"name": "n", "memory_mb": 4096, "vcores": 4}], "events": []}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"events": [{"t": 1, "update": True}, {"t": 0, "update": True}]}, "goes back in time"),
        ({"events": [{"t": float("nan"), "update": True}]}, "not an integer"),
        ({"events": [{"t": 10**30, "update": True}]}, "not an integer"),
        ({"events": [7]}, "is not an object"),
        ({"events": {}}, "is not a list"),
        ({"events": [{"t": 0, "ask": "a", "memory_mb": 1024, "duration_ms": 5}]}, "automatic extra"),
        ({"events": [{"t": 0, "app": "a", "queue": "q", "auto_end": True}]}, "automatic extra"),
        ({"events": [{"t": 0, "app": "a", "queue": 3}]}, "not a text"),
        ({"events": [{"t": 0, "finish": 3}]}, "not an object"),
        ({"nodes": [{"name": "n", "memory_mb": -1, "vcores": 1}]}, "not a number"),
        ({"nodes": [{"memory_mb": 1, "vcores": 1}]}, "no name"),
        ({"options": {"launch": "sometimes"}}, "'launch'"),
        ({"conf": {"yarn.scheduler.increment-allocation-mb": "0"}}, "not positive"),
        ({"conf": {"yarn.scheduler.fair.reservable-nodes": "many"}}, "not a number"),
        ({"allocations": "<allocations><queue"}, "allocations"),
        ({"allocations": 5}, "not a text"),
    ],
)
def test_a_script_that_cannot_be_used(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        FairDecider({**MINIMAL, **change}).run()


def test_events_about_nothing_are_skipped() -> None:
    events = [
        {"t": 0, "heartbeat": "n"},
        {"t": 0, "heartbeat": "nowhere"},
        {"t": 0, "ask": "a", "memory_mb": 1024},
        {"t": 0, "app": "a", "queue": "root"},
        {"t": 0, "finish": {"app": "a", "n": 1}},
        {"t": 0, "reload": "<broken"},
        {"t": 0, "what": 1},
    ]
    answer = FairDecider({**MINIMAL, "events": events}).run()
    assert len(answer["skipped"]) == 4
    assert [record["why"] for record in answer["rejected"]] == ["root is not a leaf queue"]
    assert len(answer["errors"]) == 2


def test_the_command_prints_one_document(tmp_path: Path) -> None:
    script, theirs = load(recorded()[0])
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script), encoding="utf-8")
    result = CliRunner().invoke(decide, [str(path)])
    assert result.exit_code == 0
    assert differences(theirs, json.loads(result.stdout)) == []
    target = tmp_path / "answer.json"
    assert CliRunner().invoke(decide, [str(path), "-o", str(target)]).exit_code == 0
    assert target.read_text(encoding="utf-8") == result.stdout
    path.write_text('{"events": [', encoding="utf-8")
    refused = CliRunner().invoke(decide, [str(path), "-o", str(tmp_path / "none.json")])
    assert isinstance(refused.exception, InputError)
    assert not (tmp_path / "none.json").exists()
