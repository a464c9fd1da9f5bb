"""Queues that the scheduler makes by itself: entitlements are the scheduler's own, whatever a queue's children are."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.control.app_observer import AppObserver
from harness.control.explain import document, explain
from harness.control.telemetry import Log, TickLog
from harness.control.view import from_ledger, from_rm
from harness.model.resources import ZERO, Resource
from harness.policies import make_policy
from harness.report.live import LivePage
from harness.traces.recording import rm_header
from harness.yarn.answers import NodeStatus
from harness.yarn.queue_answers import CapacityKind, SchedulerStatus, comparable_settings, scheduler, with_created
from tests.control.driven import controlled, kinds
from tests.control.rm_model import CapacityRmModel
from tests.control.soak import capacities
from tests.control.test_gate import PREFIX, file

BASE = {"root.a": 50.0, "root.b": 35.0, "root.research": 15.0}


class AutoCreating(CapacityRmModel):
    """root.research is a parent whose children are made when somebody submits to them."""

    def __init__(self) -> None:
        values = capacities.properties(file(a="50", b="35", research="15"))
        values[f"{PREFIX}root.research.auto-create-child-queue.enabled"] = "true"
        values[f"{PREFIX}root.research.leaf-queue-template.capacity"] = "10"
        super().__init__(capacities.stored(values))
        #: Children that are there now -> their capacity.
        self.created: dict[str, float] = {}
        self.rest.scheduler = self.shown

    def shown(self) -> SchedulerStatus:
        status = self._scheduler()
        queues = dict(status.queues)
        parent = queues["root.research"] = replace(queues["root.research"], leaf=False)
        for path, setting in self.created.items():
            of_template = {"setting": setting, "capacity_percent": setting, "kind": "percent"}
            queues[path] = replace(parent, path=path, parent=parent.path, leaf=True, **of_template)
        return replace(status, queues=queues)


@pytest.mark.parametrize("mode", ["bounded", "full"])
@pytest.mark.parametrize("policy", ["ltrf", "hltrf", "fair"])
def test_a_parent_without_children_keeps_its_entitlement(tmp_path: Path, policy: str, mode: str) -> None:
    """Of 15 % bounded mode made 5.56 with no application, and full mode 0.0001 under load."""
    rm = AutoCreating()
    rm.submit("x", "root.a")
    rm.submit("y", "root.b").pending = 3
    accept = frozenset({"user-limit-factor"})
    with controlled(rm, tmp_path, policy=policy, mode=mode, accept=accept) as controller:
        for _ in range(4):
            report = controller.tick()
            assert kinds(report) <= {"note"}
            assert report.snapshot is not None
            assert {path: report.snapshot.queues[path].weight for path in BASE} == pytest.approx(BASE)
            assert rm.settings()["root.research"] >= 14.9
            for _ in range(10):
                rm.start("x")
            rm.now_s += 60.0
    view = from_ledger(tmp_path / "ledger.db", rm.now_s)
    assert "Entitled to 15.0 % of the cluster" in explain(view, "root.research")[0]
    assert "Entitled to 50.0 % of the cluster" in explain(view, "root.a")[0]
    page = LivePage(lambda: view, 5.0)
    page.look()
    shown = page.document({})
    assert shown["queues"]["root.research"]["leaf"]
    assert "root.research" in shown["history"]["share"]


@pytest.mark.parametrize(
    ("settings", "comparable"),
    [
        ((("percent", 50.0, 50.0), ("absolute", 8192.0, 50.0)), (50.0, 50.0)),
        ((("percent", 50.0, 50.0), ("weight", 1.0, 37.5)), (50.0, 37.5)),
        ((("weight", 1.0, 37.5), ("weight", 3.0, 62.5)), (1.0, 3.0)),
        ((("absolute", 4096.0, 25.0), ("absolute", 8192.0, 50.0)), (4096.0, 8192.0)),
    ],
)
def test_what_siblings_are_entitled_to_is_of_one_kind(
    settings: tuple[tuple[CapacityKind, float, float], ...], comparable: tuple[float, ...]
) -> None:
    """In the flexible queue mode each has a capacity of its own kind: then those in effect count."""
    shown = AutoCreating().shown()
    one = shown.queues["root.a"]
    queues = {
        path: replace(one, path=path, kind=kind, setting=setting, capacity_percent=percent)
        for path, (kind, setting, percent) in zip(("root.a", "root.b"), settings, strict=True)
    }
    found = comparable_settings(replace(shown, queues=queues))
    assert tuple(found.values()) == comparable


def test_children_that_were_made_share_what_their_parent_has() -> None:
    rm = AutoCreating()
    rm.created = {"root.research.ann": 10.0, "root.research.bob": 30.0}
    found = with_created({"root": 100.0, **BASE}, rm.shown())
    assert found == pytest.approx({"root": 100.0, **BASE, "root.research.ann": 3.75, "root.research.bob": 11.25})
    rm.created = dict.fromkeys(rm.created, 0.0)
    found = with_created({"root": 100.0, **BASE}, rm.shown())
    assert (found["root.research.ann"], found["root.research.bob"]) == (7.5, 7.5)
    # With configured siblings, the shares are in the ratio of the capacities and add up to the parent's.
    named = {"root": 100.0, **BASE, "root.research.ann": 15.0}
    rm.created = {"root.research.ann": 10.0, "root.research.bob": 5.0}
    found = with_created(named, rm.shown())
    assert (found["root.research.ann"], found["root.research.bob"]) == pytest.approx((10.0, 5.0))
    assert found["root.research"] == 15.0


def test_the_controller_and_a_recording_count_them(tmp_path: Path) -> None:
    rm = AutoCreating()
    rm.created = {"root.research.ann": 10.0, "root.research.bob": 30.0}
    due = {"root.research.ann": 3.75, "root.research.bob": 11.25}
    with controlled(rm, tmp_path, mode="shadow", accept=frozenset({"user-limit-factor"})) as controller:
        snapshot = controller.tick().snapshot
    assert snapshot is not None
    assert {path: snapshot.queues[path].weight for path in due} == pytest.approx(due)
    node = NodeStatus("n1:1", "n1", "/r", "RUNNING", "", "3.4.2", 0, ZERO, Resource(8192, 8))
    rm.rest.capacity_limits = dict
    rm.rest.nodes = lambda **_: [node]
    header = rm_header(rm, {"root": 100.0, **BASE}, [])  # type: ignore[arg-type]
    assert {path: header.queues[path].weight for path in due} == pytest.approx(due)


def test_a_child_is_entitled_to_what_the_scheduler_guarantees_it(tmp_path: Path) -> None:
    """Three children of 30 % below a parent of 15 % have 4.5 % each; ``explain`` said 5.0 %."""
    rm = AutoCreating()
    rm.created = dict.fromkeys(("root.research.ann", "root.research.bob", "root.research.cy"), 30.0)
    with controlled(rm, tmp_path, mode="shadow", accept=frozenset({"user-limit-factor"})) as controller:
        controller.tick()
    kept = from_ledger(tmp_path / "ledger.db", rm.now_s)
    live = from_rm(rm.now_s, "rm", rm.shown(), comparable_settings(rm.shown()), [])
    for view in (kept, live, from_rm(rm.now_s, "rm", rm.shown(), comparable_settings(rm.shown()), [], kept)):
        assert explain(view, "root.research.ann")[0].startswith("Entitled to 4.5 % of the cluster")
        assert explain(view, "root.research")[0].startswith("Entitled to 15.0 % of the cluster")
        assert document(view, "root.research.ann")["entitled_share"] == pytest.approx(0.045)
        # The accounts divide all that the parent is due.
        assert view.queues["root.research.ann"].due == pytest.approx(0.05)
    # The policy of the legacy mode has given this one nothing yet.
    rm.created["root.research.cy"] = 0.0
    live = from_rm(rm.now_s, "rm", rm.shown(), comparable_settings(rm.shown()), [])
    assert explain(live, "root.research.cy")[0].startswith("Entitled to 0.0 % of the cluster")


def test_the_parts_in_a_recorded_answer_are_the_absolute_capacities() -> None:
    """Of Hadoop's answer, with its children made templates' ones: absoluteCapacity is what ``explain`` says."""
    recorded = Path(__file__).parents[1] / "yarn/recorded/held/capacity/scheduler.json"
    answer = json.loads(recorded.read_text())
    (dept,) = [q for q in answer["scheduler"]["schedulerInfo"]["queues"]["queue"] if q["queueName"] == "dept"]
    for child in dept["queues"]["queue"]:
        child |= {"creationMethod": "dynamicLegacy", "capacity": 30.0, "absoluteCapacity": 6.0}
    status = scheduler(answer, "x")
    view = from_rm(0.0, "rm", status, comparable_settings(status), [])
    shown = [*answer["scheduler"]["schedulerInfo"]["queues"]["queue"], *dept["queues"]["queue"]]
    for queue in shown:
        assert view.queues[queue["queuePath"]].share == pytest.approx(queue["absoluteCapacity"] / 100.0)


def test_children_that_nobody_steers_are_in_no_line_of_the_log(tmp_path: Path) -> None:
    """The log had parts of theirs, as if they were to be written: 25 and 75 % of what a template sets to 10 and 30."""
    rm = AutoCreating()
    rm.created = {"root.research.ann": 10.0, "root.research.bob": 30.0}
    rm.submit("x", "root.a").pending = 3
    for log_format in ("text", "json"):
        out = io.StringIO()
        log = TickLog(Log(out, log_format), make_policy("ltrf"))
        where = tmp_path / log_format
        where.mkdir()
        with controlled(rm, where, mode="shadow", accept=frozenset({"user-limit-factor"})) as controller:
            log(controller.tick())
        (line,) = [line for line in out.getvalue().splitlines() if "would write" in line]
        assert "research" in line
        assert "ann" not in line
        assert "bob" not in line


def test_a_decision_changes_no_child_that_nobody_steers(tmp_path: Path) -> None:
    """``top`` showed that a created child's share was raised and lowered; nothing of it had been written."""
    rm = AutoCreating()
    rm.submit("x", "root.a").pending = 3
    rm.created = {"root.research.ann": 30.0, "root.research.bob": 30.0}
    rm.submit("y", "root.research.ann").pending = 3
    with controlled(rm, tmp_path, mode="full", accept=frozenset({"user-limit-factor"})) as controller:
        for _ in range(5):
            controller.tick()
            rm.start("x")
            rm.now_s += 20.0
    view = from_ledger(tmp_path / "ledger.db", rm.now_s)
    assert view.queues["root.research"].changed_s is not None
    assert view.queues["root.research.ann"].changed_s is None
    assert all(decision["changed"] for decision in view.decisions)
    assert not [queue for decision in view.decisions for queue in decision["changed"] if "ann" in queue]
    said = explain(view, "root.research.ann")
    assert said[-1] == (
        "The controller does not steer it: the scheduler has created it, with the capacity of its template."
    )
    # The ResourceManager shows its capacity, which is no share that the controller has planned.
    live = from_rm(rm.now_s, "rm", rm.shown(), comparable_settings(rm.shown()), [], view)
    assert explain(live, "root.research.ann")[2].startswith(
        "Capacity 30, 50.0 % of its siblings' sum; the controller does not steer it: "
    )


def test_an_idle_parent_keeps_what_it_is_owed_when_its_children_are_created(tmp_path: Path) -> None:
    """Beside one busy queue it "had had too much" from the moment of its first application, and lost capacity."""
    rm = AutoCreating()
    rm.submit("x", "root.a").pending = 3
    with controlled(rm, tmp_path, mode="shadow", accept=frozenset({"user-limit-factor"})) as controller:
        for _ in range(20):
            controller.tick()
            rm.start("x")
            rm.now_s += 5.0
        before = document(from_ledger(tmp_path / "ledger.db", rm.now_s), "root.research")["deficit"]
        rm.created = {"root.research.ann": 30.0, "root.research.bob": 30.0}
        rm.submit("y", "root.research.ann").pending = 3
        rm.submit("z", "root.research.bob").pending = 3
        for _ in range(2):
            rm.now_s += 1.0
            controller.tick()
    after = document(from_ledger(tmp_path / "ledger.db", rm.now_s), "root.research")["deficit"]
    assert 0 < before <= after < 1.2 * before


def test_further_children_and_expired_ones_leave_what_their_parent_is_owed(tmp_path: Path) -> None:
    """Each further child began as the busiest leaf of all; an expired one's account was nobody's."""
    rm = AutoCreating()
    rm.submit("x", "root.a").pending = 3
    rm.created = {"root.research.ann": 30.0}
    rm.submit("y", "root.research.ann")
    owed: list[float] = []
    with controlled(rm, tmp_path, mode="shadow", accept=frozenset({"user-limit-factor"})) as controller:

        def look() -> None:
            controller.tick()
            owed.append(document(from_ledger(tmp_path / "ledger.db", rm.now_s), "root.research")["deficit"])

        for _ in range(20):
            controller.tick()
            rm.start("x")
            rm.now_s += 5.0
        look()
        rm.created |= {"root.research.bob": 30.0, "root.research.cy": 30.0}
        rm.submit("z", "root.research.bob").pending = 3
        look()
        rm.created = {"root.research.bob": 30.0}
        look()
    # Without time in between, not a MiB s.
    assert owed[0] > 0
    assert owed == pytest.approx([owed[0]] * 3, rel=1e-9)


def test_a_parent_with_children_is_no_leaf() -> None:
    rm = AutoCreating()

    def leaves() -> set[str]:
        snapshot = AppObserver().snapshot(
            1.0, rm.shown(), [], entitlements={}, min_shares={}, max_shares={}, counts=None, period_s=5.0
        )
        return {queue.name for queue in snapshot.leaves()}

    assert leaves() == set(BASE)
    rm.created = {"root.research.ann": 10.0}
    assert leaves() == {"root.a", "root.b", "root.research.ann"}
