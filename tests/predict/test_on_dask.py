"""Predictions on a Dask cluster: the same results as here, workers that die, and workers with other code."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import CallError, YarnfairError
from harness.cli import main
from harness.experiments.campaign.dask_cluster import DaskCluster
from tests.predict.loads import contended, recording
from tests.predict.test_plan import NOW, written

pytestmark = pytest.mark.xdist_group("predict-on-dask")
#: More for steady.
LATER = NOW.replace('"steady"/>', '"steady"><weight>3</weight></queue>')


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two workers, of which a task may kill one; the address."""
    distributed = pytest.importorskip("distributed", reason="needs the package distributed")
    made = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=50,
        local_directory=str(tmp_path_factory.mktemp("dask")),
        scheduler_kwargs={"allowed_failures": 1},
    )
    try:
        yield made.scheduler_address.replace("tcp://", "dask://")
    finally:
        made.close(timeout=30)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("recorded"), contended())


def documents(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stop:
        main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert not stop.value.code, err
    return dict(json.loads(out))


def test_a_plan_is_the_same_on_other_machines(
    cluster: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ("--before", written(tmp_path, "now.xml", NOW), "--after", written(tmp_path, "later.xml", LATER))
    here = documents(capsys, "plan", trace, *files, "--phases", 5, "--jobs", 1)
    there = documents(capsys, "plan", trace, *files, "--phases", 5, "--executor", cluster)
    assert there == here
    assert any(queue["word"] != "same" for queue in here["queues"])


def test_the_bands_of_a_replay_are_the_same_on_other_machines(
    cluster: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def bands(name: str, *where: object) -> Any:
        out = ("--out", tmp_path / name, "--no-report", "--phases", 5)
        return documents(capsys, "replay", trace, "--policy", "fair,ltrf@outside", *out, *where)["bands"]

    here = bands("here", "--jobs", 1)
    assert bands("there", "--executor", cluster) == here
    assert set(here) == {"fair", "ltrf@outside"}


def _dies_once(marker: str, number: int) -> int:
    if number == 3 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def _dies(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _pretends(code: dict[str, str]) -> None:
    from harness.experiments.campaign import dask_cluster

    dask_cluster.code_identity = lambda: code  # type: ignore[assignment]


def _forgets() -> None:
    import importlib

    from harness.experiments.campaign import dask_cluster

    importlib.reload(dask_cluster)


def test_what_a_worker_did_that_died_is_done_again(cluster: str, tmp_path: Path) -> None:
    from functools import partial

    far = DaskCluster(cluster)
    try:
        once = partial(_dies_once, str(tmp_path / "marker"))
        assert list(far.map(once, range(8))) == [number * number for number in range(8)]
        assert (tmp_path / "marker").exists()
        with pytest.raises(YarnfairError, match="no Dask worker finished its work"):
            list(far.map(_dies, [0]))
    finally:
        far.close()


def test_a_worker_with_other_code_is_refused_by_name(cluster: str) -> None:
    """Both when the connection is made, and when such a worker comes later."""
    far = DaskCluster(cluster)
    try:
        # Another test kills workers, which are started again only after a while.
        far.client.wait_for_workers(2, timeout=120)
        workers = far.client.scheduler_info(n_workers=-1)["workers"]
        at, name = next((at, one["name"]) for at, one in workers.items())
        far.client.run(_pretends, {"yarnfair": "0.0.1"}, workers=[at])
        refused = f"the Dask worker {name} has other code: yarnfair is 0.0.1 there and"
        with pytest.raises(CallError, match=refused):
            DaskCluster(cluster)
        with pytest.raises(CallError, match=refused):
            list(far.map(abs, range(-20, 20)))
    finally:
        far.client.run(_forgets)
        far.close()


@pytest.mark.parametrize("verb", ["plan", "replay", "assess"])
def test_a_cluster_that_does_not_answer_is_told_before_anything_runs(
    verb: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--before", str(written(tmp_path, "now.xml", NOW)), "--nodes", "+1"] if verb == "plan" else []
    out = [] if verb == "plan" else ["--out", str(tmp_path / "out")]
    for address, code, words in (
        ("dask://127.0.0.1:1", 1, "no Dask scheduler answers"),
        ("slurm://x", 2, "no executor 'slurm://x'"),
    ):
        with pytest.raises(SystemExit) as stop:
            main([verb, str(trace), *own, *out, "--executor", address])
        assert stop.value.code == code
        assert words in capsys.readouterr().err
    assert not list(tmp_path.rglob("summary.json"))
