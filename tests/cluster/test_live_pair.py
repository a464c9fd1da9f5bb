"""Two real ResourceManagers: standby, redirection, failover."""

from __future__ import annotations

import signal

import pytest

from harness.yarn.errors import NoActiveRm, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmClient
from tests.cluster.conftest import Pair

pytestmark = [pytest.mark.live, pytest.mark.java]


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

        rm_pair.processes[0].signal_group(signal.SIGKILL)
        with pytest.raises(Unreachable):
            both.rest.metrics()
        with pytest.raises(NoActiveRm):
            both.refresh_queues()
        rm_pair.switch(second, active=True)
        both.rest.metrics()
        both.refresh_queues()
        both.confirm_weights({"root.a": 3.0})
