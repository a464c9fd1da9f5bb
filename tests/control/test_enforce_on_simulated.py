"""`yarnfair enforce` on `yarnfair sim serve`: the same cases as on a real ResourceManager (tests/cluster)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmAddress, RmClient
from tests.cluster import test_live_enforce as live
from tests.cluster.enforcing import ALLOCATIONS
from tests.cluster.test_live_enforce import (  # noqa: F401
    Site,
    test_killed_at_random_moments,
    test_once_dry_run_release_and_the_views,
    test_two_controllers_and_one_file,
)

pytestmark = pytest.mark.xdist_group("enforce-simulated")


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("simulated")
    file = folder / "scheduler" / "fair-scheduler.xml"
    file.parent.mkdir()
    file.write_text(ALLOCATIONS)
    ports = [word for name in ("--port", "--admin-port", "--client-port") for word in (name, "0")]
    command = [sys.executable, "-m", "harness", "sim", "serve", "--queues", "3", "--apps", "0"]
    options = [*ports, "--allocations", str(file), "--json"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            text = ""
            while not text.rstrip().endswith("}"):
                line = server.stdout.readline()
                assert line, "the server ended"
                text += line
            told = json.loads(text)
            address = RmAddress.of(told["rest"], admin=told["admin"], client=told["client"])
            with RmClient([address], HttpOptions(attempts=1, deadline_s=10.0), rpc_timeout_s=10.0) as client:
                yield Site(None, client, address.rest, Path(told["allocation_file"]), folder)  # type: ignore[arg-type]
        finally:
            server.terminate()
            server.wait(timeout=300)


@pytest.mark.long
def test_a_file_that_somebody_else_tears(yarn: Site) -> None:
    live.test_a_file_that_somebody_else_tears_or_fills_with_poison(yarn)


@pytest.mark.long
def test_answers_cut_off(yarn: Site) -> None:
    live.test_answers_that_are_cut_off_or_nonsense(yarn)
