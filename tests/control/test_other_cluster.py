"""Another cluster's ResourceManager behind the address: its applications are nobody's here, and it is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.control.giveback import NotReleased
from harness.control.identity import ClusterFacts, OtherCluster, why_another
from harness.ledger.accounts import GONE_S, AppObservation, RmAccounts
from harness.model.resources import ZERO, Resource
from harness.yarn.capacity.source import Configuration, ConfigurationSource
from harness.yarn.files import always
from tests.control.driven import controlled, kinds, rm_with_load
from tests.control.rm_model import CapacityRmModel, MemoryPlace, MemoryStore, RmModel
from tests.control.test_gate import BEFORE, enforced


class Address:
    """An address behind which ResourceManagers change: a client of the one that is there now."""

    def __init__(self, rm: RmModel) -> None:
        self.rm = rm

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rm, name)


def another(rm: RmModel, *, hosts: list[str] | None = None) -> RmModel:
    """A cluster of the same queues whose applications have used 31 GiB h before anybody looked."""
    other = RmModel(MemoryPlace(rm.place.read()), now_s=rm.now_s - 3600.0)
    other.began_ms = 77
    other.hosts = hosts or []
    for at in range(31):
        other.submit(f"theirs{at}", "root.b")
        other.start(f"theirs{at}", 1024)
    other.now_s = rm.now_s
    return other


@pytest.mark.parametrize("hosts", [None, ["far1", "far2"]])
def test_another_clusters_figures_are_not_counted_and_ours_go_on_when_it_is_back(
    tmp_path: Path, hosts: list[str] | None
) -> None:
    rm = rm_with_load()
    rm.hosts = ["near1"]
    rm.start("x", 4096)
    address: Any = Address(rm)
    with controlled(address, tmp_path) as controller:
        for _ in range(3):
            controller.tick()
            rm.now_s += 5.0
        before, file = controller.tick().consumed, rm.place.data
        other = another(rm, hosts=hosts)
        address.rm = other
        for _ in range(4):
            rm.now_s += 5.0
            other.now_s = rm.now_s
            report = controller.tick()
            (alarm,) = report.alarms
            assert alarm.kind == "cluster"
            assert "another cluster's" in alarm.text
            assert report.consumed == before
            assert (rm.place.data, other.refreshes) == (file, 0)
        address.rm = rm
        rm.now_s += 5.0
        report = controller.tick()
        # Nothing began anew, and nothing of ours was lost.
        assert report.alarms == ()
        assert report.consumed["root.a"][0] == pytest.approx(rm.truth("root.a")[0])
        assert report.consumed.get("root.b", (0.0, 0.0))[0] == 0.0


def test_a_cluster_that_was_replaced_goes_on_with_its_debts_where_that_is_accepted(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.now_s += 50.0
        before = controller.tick().consumed["root.a"]
    rm.now_s += 5.0
    other = another(rm, hosts=["new1"])
    with controlled(other, tmp_path, accept=frozenset({"other-cluster"})) as controller:
        report = controller.tick()
        assert "rm" in kinds(report)
        assert report.consumed["root.a"] >= before
        # What the new one's applications used before anybody looked is nobody's.
        assert report.consumed.get("root.b", (0.0, 0.0))[0] == 0.0


class StoreBehind(ConfigurationSource):
    """The store of whichever ResourceManager is behind an address: a client reads there what answers."""

    name = "store"

    def __init__(self, address: Any) -> None:
        self.address = address

    @property
    def there(self) -> MemoryStore:
        found: MemoryStore = self.address.rm.store
        return found

    def read(self) -> Configuration:
        self.recognise()
        return self.there.read()

    def write(
        self, changes: Mapping[str, str | None], before: Configuration, still: Callable[[], None] = always
    ) -> Configuration:
        self.recognise()
        return self.there.write(changes, before, still)

    def load(self, client: Any) -> None:
        """Nothing: what is put is in force."""

    def shown(self, configuration: Configuration, changes: Mapping[str, str | None]) -> tuple[bytes, bytes]:
        return self.there.shown(configuration, changes)


def stores(folder: Path) -> tuple[Any, CapacityRmModel, CapacityRmModel]:
    """An address, the ResourceManager with a store that is behind it, and another cluster's with other capacities."""
    rm = CapacityRmModel(BEFORE, store=True)
    rm.hosts = ["near1"]
    other = CapacityRmModel(BEFORE.replace(b">50<", b">40<").replace(b">25<", b">30<"), store=True)
    other.began_ms, other.hosts = 77, ["far1"]
    address: Any = Address(rm)
    address.source = StoreBehind(address)
    return address, rm, other


def test_another_clusters_store_is_not_taken_for_an_administrators_edit(tmp_path: Path) -> None:
    """It was read before the ResourceManager was recognised: its capacities became the entitlements."""
    address, rm, other = stores(tmp_path)
    theirs = other.settings()
    with controlled(address, tmp_path) as controller:
        enforced(rm, controller)
        own, wrote = controller.actuator.configured_weights(), rm.settings()
        address.rm = other
        for _ in range(3):
            rm.now_s += 5.0
            other.now_s = rm.now_s
            (alarm,) = controller.tick().alarms
            assert alarm.kind == "cluster"
        assert controller.actuator.configured_weights() == own
        with pytest.raises(OtherCluster):
            controller.stop("release")
        assert (other.settings(), rm.settings()) == (theirs, wrote)
        address.rm = rm
        rm.now_s += 5.0
        assert controller.tick().alarms == ()
        assert "in force" in controller.stop("release")
    assert rm.settings() == {"root.a": 50.0, "root.b": 25.0, "root.c": 25.0}


def test_a_release_does_not_take_another_clusters_refresh_for_its_own(tmp_path: Path) -> None:
    """The file is restored; the ResourceManager that was refreshed had the same queues, and was said to have them."""
    rm = CapacityRmModel(BEFORE)
    rm.hosts = ["near1"]
    other = CapacityRmModel(BEFORE)
    other.began_ms, other.hosts = 77, ["far1"]
    address: Any = Address(rm)
    with controlled(address, tmp_path) as controller:
        enforced(rm, controller)
        before, other.now_s = rm.settings(), rm.now_s
        address.rm = other
        with pytest.raises(NotReleased, match=r"written, but not in force: .* another cluster's"):
            controller.stop("release")
    assert rm.place.data == BEFORE
    assert (rm.settings(), other.refreshes) == (before, 0)


def test_new_nodes_after_a_restart_are_no_other_cluster() -> None:
    shown = ClusterFacts("", frozenset({"m1"}))
    assert why_another(KNOWN, shown, shares_apps=False, strangers=[], restarted=True) == ""
    assert why_another(KNOWN, shown, shares_apps=False, strangers=["s"], restarted=True) != ""


def test_it_is_recognised_at_a_start_too(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    with controlled(rm, tmp_path) as controller:
        controller.tick()
    rm.now_s += 5.0
    other = another(rm)
    with controlled(other, tmp_path) as controller:
        assert kinds(controller.tick()) == {"cluster"}


def test_a_failover_to_the_other_rm_of_the_pair_is_the_same_cluster(tmp_path: Path) -> None:
    """The standby was started long ago and has a timestamp of its own; the state store gives it the applications."""
    rm = rm_with_load()
    rm.hosts, rm.cluster_id = ["n1", "n2"], "prod"
    container = rm.start("x", 4096)
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.now_s += 5.0
        rm.restart()
        rm.began_ms = 0
        rm.rest.http.current = "http://standby"
        rm.node_back([container])
        assert kinds(controller.tick()) == {"rm"}
        rm.now_s += 5.0
        assert controller.tick().alarms == ()


def test_a_restart_without_recovery_is_the_same_cluster(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.hosts = ["n1", "n2"]
    rm.start("x", 4096)
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.now_s += 30.0
        rm.restart()
        rm.apps.clear()
        rm.hosts = ["n2", "n3"]
        assert kinds(controller.tick()) == {"rm"}
        rm.submit("new", "root.a")
        rm.start("new", 1000)
        rm.now_s += 5.0
        controller.tick()
        rm.finish("new")
        rm.now_s += 5.0
        assert controller.tick().consumed["root.a"][0] >= 5000


KNOWN = ClusterFacts("prod", frozenset({"n1", "n2"}))


@pytest.mark.parametrize(
    ("shown", "shares", "strangers", "why"),
    [
        (ClusterFacts("prod", frozenset({"n2"})), False, [], ""),
        (ClusterFacts("", frozenset()), False, [], ""),
        (ClusterFacts("test", frozenset({"n1"})), True, ["s"], ""),
        (ClusterFacts("test", frozenset({"n1"})), False, [], "called 'test'"),
        (ClusterFacts("prod", frozenset({"n1"})), False, ["s1"], "(s1)"),
        (ClusterFacts("", frozenset({"m1"})), False, [], "none of its nodes"),
    ],
)
def test_what_tells_clusters_apart(shown: ClusterFacts, shares: bool, strangers: list[str], why: str) -> None:
    said = why_another(KNOWN, shown, shares_apps=shares, strangers=strangers)
    assert why in said
    assert bool(said) == bool(why)


def look(app: str, used: int, age_s: float, queue: str = "root.a") -> AppObservation:
    return AppObservation(app, queue, used, used // 1024, Resource(1024, 1), False, age_s)


def test_an_unknown_application_older_than_the_last_look_counts_from_now_on() -> None:
    accounts = RmAccounts()
    accounts.observe(1000.0, [], capacity=Resource(10**6, 1000))
    accounts.observe(1005.0, [look("young", 4096, 4.0), look("old", 10**9, 86_400.0)], capacity=Resource(10**6, 1000))
    assert accounts.queues["root.a"].memory_mb_s == 4096
    assert "counts from now on" in accounts.refused["old"]
    accounts.observe(1010.0, [look("old", 10**9 + 5 * 1024, 86_405.0)], capacity=Resource(10**6, 1000))
    assert accounts.queues["root.a"].memory_mb_s == 4096 + 5 * 1024


def test_one_that_lists_had_without_sense_has_run_here_and_counts_whole() -> None:
    accounts, capacity = RmAccounts(), Resource(10**6, 1000)
    accounts.observe(1000.0, [], capacity=capacity)
    accounts.observe(1005.0, [], capacity=capacity, passed_over=["odd"])
    accounts.forget(["odd"], 1005.0)
    accounts.observe(1105.0, [], capacity=capacity, passed_over=["odd"])
    accounts.observe(1110.0, [look("odd", 102_400, 106.0)], capacity=capacity)
    assert accounts.queues["root.a"].memory_mb_s == 102_400


def test_one_that_was_taken_for_gone_is_not_counted_twice() -> None:
    accounts, capacity = RmAccounts(), Resource(10**6, 1000)
    accounts.observe(0.0, [], capacity=capacity)
    accounts.observe(10.0, [look("x", 10_240, 10.0)], capacity=capacity)
    for at in (20.0, 20.0 + GONE_S):
        accounts.observe(at, [], capacity=capacity)
        accounts.forget([], at)
    accounts.observe(1000.0, [look("x", 1024 * 1000, 1000.0)], capacity=capacity)
    accounts.observe(1005.0, [look("x", 1024 * 1005, 1005.0)], capacity=capacity)
    # Counted before it was missing (with what was assumed then), and from when it was back.
    assert accounts.queues["root.a"].memory_mb_s <= 20 * 1024 + 5 * 1024


@pytest.mark.parametrize("back", [False, True])
def test_an_application_that_moves_leaves_no_holdings_behind(back: bool) -> None:
    """A figure stands still for up to 3 s; what is assumed meanwhile is charged once, whichever queue it is in."""
    accounts = RmAccounts()
    accounts.observe(0.0, [AppObservation("x", "root.a", 0, 0, Resource(1000, 1), False)])
    accounts.observe(2.5, [AppObservation("x", "root.a", 0, 0, Resource(1000, 1), False)])
    assert accounts.consumed()["root.a"] == (2500.0, 2.5)
    accounts.observe(2.9, [AppObservation("x", "root.ghost", 0, 0, Resource(1000, 1), False)])
    last = "root.a" if back else "root.ghost"
    accounts.observe(6.0, [AppObservation("x", last, 6000, 6, Resource(1000, 1), False)])
    accounts.observe(8.0, [AppObservation("x", last, 8000, 8, ZERO, True)])
    reported = accounts.consumed()
    assert sum(used[0] for used in reported.values()) == 8000.0
    assert sum(used[1] for used in reported.values()) == 8.0
    assert {queue: account.memory_mb_s for queue, account in accounts.queues.items()} == {
        queue: used[0] for queue, used in reported.items()
    }
