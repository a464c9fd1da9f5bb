"""A third actuator with the same core: a policy enforced by the weights of a Kueue cohort's ClusterQueues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from harness.base.errors import InputError
from harness.cli import main
from harness.control.settings import ControlSettings
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore
from harness.model.plan import Attributes
from harness.policies import make_policy
from harness.systems.kueue.actuator import KUEUE, KueueActuator, KueueClient, quantity_text, read_quantity
from harness.yarn.files import FileChanged
from harness.yarn.http import HttpOptions
from tests.systems.kueue.api_server import ApiServer, cluster_queue, served

OPTIONS = HttpOptions(attempts=1, deadline_s=10.0)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    queues = [cluster_queue("batch", "c"), cluster_queue("team.web", "c", "2"), cluster_queue("other", "d", "3")]
    with served(ApiServer(queues)) as api:
        yield api


@contextmanager
def client_of(api: ApiServer) -> Iterator[KueueClient]:
    with KUEUE.open_client({"server": api.url, "cohort": "c"}, OPTIONS) as client:
        yield client


@contextmanager
def controlled(api: ApiServer, folder: Path, now_s: list[float]) -> Iterator[Controller[KueueClient]]:
    with client_of(api) as client, LedgerStore(folder / "ledger.db") as store:
        yield Controller(
            ControlSettings(period_s=5.0),
            client,
            KueueActuator.restored(client, store.document),
            store,
            make_policy("ltrf", {"horizon_s": "100"}),
            open_observer=KUEUE.open_observer,
            clock=lambda: now_s[0],
        )


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.5, "500m"), (1234.5, "1234500m"), (5000.0, "5k"), (0.000001, "1u"), (0.0, "0")]
)
def test_quantities_are_written_as_kubernetes_shows_them(value: float, text: str) -> None:
    assert quantity_text(value) == text
    assert read_quantity(text) == value


@pytest.mark.parametrize(("text", "value"), [("16Gi", 2.0**34), ("1e3", 1000.0), ("250m", 0.25), (2, 2.0)])
def test_quantities_are_read(text: str | int, value: float) -> None:
    assert read_quantity(text) == value


@pytest.mark.parametrize("text", ["", "many", "1x", "1mm", "inf", "NaN"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_quantity(text)


def test_weights_follow_what_the_cluster_queues_used_and_go_back(api: ApiServer, tmp_path: Path) -> None:
    """`batch` used all for a while; both wait now, so the queue with the larger debt gets the smaller weight."""
    now_s = [1_000.0]
    api.hold("batch", "16", "32Gi", pending=2)
    with controlled(api, tmp_path, now_s) as controller:
        for _ in range(10):
            report = controller.tick()
            assert not report.alarms
            now_s[0] += 60.0
        api.hold("team.web", "0", "0", pending=2)
        report = controller.tick()
        assert not report.alarms
        assert report.wrote
        assert report.consumed["root.batch"][0] == pytest.approx(32 * 1024 * 600)
        weights = {name: read_quantity(api.weight(name) or "1") for name in ("batch", "team.web")}
        assert weights["batch"] / weights["team.web"] < 0.5, "entitled to 1 : 2, and batch has had all"
        assert "other" not in api.writes, "another cohort's"
        assert "weights are in force" in controller.release()
    assert (api.weight("batch"), api.weight("team.web")) == (None, "2")


def test_an_edit_is_drift_and_an_administrators_round_weight_the_entitlement(api: ApiServer, tmp_path: Path) -> None:
    with controlled(api, tmp_path, now_s := [1_000.0]) as controller:
        controller.tick()
        now_s[0] += 60.0
        api.hold("batch", "16", "32Gi", pending=2)
        api.hold("team.web", "0", "0", pending=2)
        assert controller.tick().wrote
        api.edit("batch", "7")
        now_s[0] += 5.0
        assert "foreign" in {alarm.kind for alarm in controller.tick().alarms}
        assert controller.actuator.configured_weights()["root.batch"] == 7.0
        controller.release()
    assert (api.weight("batch"), api.weight("team.web")) == ("7", "2")


def test_somebody_who_was_faster_is_not_overwritten(api: ApiServer) -> None:
    with client_of(api) as client:
        actuator = KueueActuator(client)
        actuator.read()
        prepared = actuator.prepare(Attributes({"root.batch": 0.25}))
        api.edit("batch", "9")
        with pytest.raises(FileChanged):
            actuator.write(prepared)
    assert api.weight("batch") == "9"


def ended(*arguments: str) -> object:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code


def test_the_command_steers_it(api: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.hold("batch", "16", "32Gi", pending=2)
    api.hold("team.web", "0", "0", pending=2)
    config = tmp_path / "enforce.yaml"
    text = {
        "policy": "ltrf",
        "ledger": str(tmp_path / "ledger.db"),
        "actuator": "kueue",
        "actuator_settings": {"server": api.url, "cohort": "c"},
        "queues": {"batch": 3},
    }
    config.write_text(yaml.safe_dump(text))
    assert ended("enforce", "--config", str(config), "--once", "--json") == 0, capsys.readouterr()
    batch, web = (read_quantity(api.weight(name) or "1") for name in ("batch", "team.web"))
    assert batch / web == pytest.approx(3 / 2, rel=0.01), "nothing is owed yet"
    assert ended("enforce", "--config", str(config), "--release") == 0, capsys.readouterr()
    assert (api.weight("batch"), api.weight("team.web")) == (None, "2")
    config.write_text(yaml.safe_dump({**text, "actuator": "slurm"}))
    assert ended("enforce", "--config", str(config), "--once") == 2
    assert "no actuator 'slurm'" in capsys.readouterr().err
