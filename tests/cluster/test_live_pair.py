"""Two real ResourceManagers: standby, redirection, failover, and the controller that follows."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.clusters import site
from harness.yarn.errors import NoActiveRm, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmClient
from studies.pair import Pair, recovery, start_pair
from tests.cluster.enforcing import ALLOCATIONS, QUEUES, FileGuard, Load, Service, until
from tests.cluster.readings import read_only

pytestmark = [pytest.mark.live, pytest.mark.java, pytest.mark.xdist_group("live-pair")]


def test_the_client_finds_the_active_one_through_standby_and_failover(rm_pair: Pair) -> None:
    first, second = rm_pair.rms
    options = HttpOptions(attempts=2, backoff_s=0.1)
    with RmClient([first, second], options) as both, RmClient([first], options) as one:
        for ask in (both.rest.info, both.rest.metrics, both.refresh_queues):
            with pytest.raises(NoActiveRm):
                ask()

        rm_pair.switch(second, active=True)
        assert both.rest.info().active
        assert both.rest.http.current == second.rest
        # The first one redirects to the second: by the configured list, and by its word alone.
        both.rest.http.prefer(first.rest)
        both.rest.metrics()
        one.rest.scheduler()
        assert len(one.rest.http.bases) == 2
        both.refresh_queues()
        both.confirm_weights({"root.a": 3.0})
        before = both.rest.info().id

        rm_pair.switch(second, active=False)
        rm_pair.switch(first, active=True)
        assert both.rest.scheduler().queues["root.a"].leaf
        assert both.rest.http.current == first.rest
        both.refresh_queues()
        # How a controller notices a failover.
        assert both.rest.info().id != before

        rm_pair.signal("rm1", signal.SIGKILL)
        with pytest.raises(Unreachable):
            both.rest.metrics()
        # The one that is dead may have been the active one; the other's word stands beside.
        with pytest.raises(Unreachable, match=r"Connection refused .*[Ss]tandby"):
            both.refresh_queues()
        rm_pair.switch(second, active=True)
        both.rest.metrics()
        both.refresh_queues()
        both.confirm_weights({"root.a": 3.0})


def test_the_controller_follows_a_failover(tmp_path: Path) -> None:
    file = tmp_path / "fair-scheduler.xml"
    site.write(file, ALLOCATIONS)
    properties = {
        **recovery(tmp_path / "rmstate"),
        "yarn.scheduler.minimum-allocation-mb": "256",
        "yarn.scheduler.increment-allocation-mb": "256",
    }
    options = HttpOptions(attempts=2, backoff_s=0.1)
    with ExitStack() as stack:
        pair = stack.enter_context(start_pair(tmp_path, properties, node=True))
        client = stack.enter_context(RmClient(list(pair.rms), options))
        first, second = pair.rms
        pair.switch(first, active=True)
        until(lambda: client.rest.metrics().active_nodes == 1, "the node is there", 120)
        rms = [{"rest": rm.rest, "admin": str(rm.admin), "client": str(rm.client)} for rm in pair.rms]
        # Both are in the configuration: no --rm.
        # Debts that fade move the weights between two looks.
        service = Service(tmp_path / "service", None, file, rms=rms)
        load = Load(client, 7)
        stack.callback(service.end)
        service.start()
        until(lambda: service.events("weights"), "a first decision")
        # What is used before the first look does not count.
        load.submit(8, 65, 80)
        load.launched()
        with FileGuard(file) as guard:
            # The active one dies; its partner takes over, with the applications, after some seconds without any RM.
            pair.signal("rm1", signal.SIGKILL)
            time.sleep(4)
            pair.switch(second, active=True)
            (event, *_) = until(lambda: service.events("rm"), "the controller notices", 90)
            assert second.rest in event["text"]
            load.wait(600)
            service.stop()
            service.once()
            last = service.once()
        assert guard.broken == []
        assert not last["wrote"], "a second look changes nothing"
        in_force = {path: queue.weight for path, queue in client.effective_queues().items() if path in QUEUES}
        assert in_force == pytest.approx(last["weights"])
        # The second RM took the containers over with all that they had used; what ran meanwhile was estimated.
        truth, consumed = load.truth(), service.consumed()
        assert sum(memory for memory, _ in truth.values()) > 8 * 256 * 60
        for queue, (memory_mb_s, _) in truth.items():
            assert consumed[queue][0] == pytest.approx(memory_mb_s, rel=0.03, abs=2 * 512)
        # What the first one counted before it died is in a recording, too, whichever of them is named.
        (tmp_path / "readings").mkdir()
        read_only(client, ["--rm", second.rest], tmp_path / "readings")
