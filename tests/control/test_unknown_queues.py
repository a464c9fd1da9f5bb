"""A queue that a configuration names and nobody knows is an error with suggestions, however one begins."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import CallError
from harness.cli import main
from harness.control.config import EnforceConfig
from harness.yarn.files import LocalStore
from tests.control.driven import FILE, controlled, rm_with_load
from tests.control.rm_model import RmModel

cli = importlib.import_module("harness.cli.enforce")


class NoSignals:
    """The real ones would block this process' own."""

    WANTED: frozenset[int] = frozenset()
    first = None
    pending = contextlib.nullcontext

    def wait_for(self, _stop: object) -> None:
        pass


def test_the_nearest_names_are_told(tmp_path: Path) -> None:
    rm = RmModel(rm_with_load().place)
    rm.extra_queues = ["root.users.alice", "root.users.bob"]
    named = {"root.users.alcie": 2.0, "root.bob": 1.0, "root.b": 3.0}
    with controlled(rm, tmp_path, entitlements=named) as controller, pytest.raises(CallError) as error:
        controller.check_entitlements()
    assert error.value.where == "queues"
    assert "no queue root.users.alcie (near: root.users.alice" in error.value.what
    assert "no queue root.bob (near: " in error.value.what
    assert "root.users.bob" in error.value.what
    assert "root.b " not in error.value.what.replace("root.bob", "").split(";")[0]


def test_queues_that_are_there_in_the_file_or_were_there_are_known(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.extra_queues = ["root.alice"]
    rm.submit("z", "root.alice")
    with controlled(rm, tmp_path) as controller:
        controller.tick()
    # Alice's queue went with her last application; c is in the file, which the RM has not loaded.
    rm.finish("z")
    rm.extra_queues = []
    rm.place.data = FILE.replace(b"</allocations>", b'<queue name="c"/></allocations>')
    with controlled(rm, tmp_path, entitlements={"root.alice": 2.0, "root.c": 1.0, "root.a": 3.0}) as controller:
        controller.check_entitlements()
        assert controller.tick().alarms == ()


def test_one_that_comes_later_can_be_accepted_and_is_said_once(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path, entitlements={"root.later": 2.0}, accept=frozenset({"unknown-queues"})) as controller:
        controller.check_entitlements()
        (alarm,) = controller.tick().alarms
        assert (alarm.kind, "root.later" in alarm.text) == ("note", True)
        rm.now_s += 5.0
        assert controller.tick().alarms == ()


@pytest.mark.parametrize("how", [["--dry-run"], ["--once"], []])
def test_every_way_to_begin_refuses_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    file = tmp_path / "fair-scheduler.xml"
    file.write_bytes(FILE)
    (tmp_path / "enforce.yaml").write_text(
        f"policy: ltrf\nallocation_file: {file}\nledger: {tmp_path}/ledger.db\nqueues: {{bb: 2}}\n"
    )
    place: Any = LocalStore(file)
    rm = RmModel(place)
    monkeypatch.setattr(EnforceConfig, "open_client", lambda *_: contextlib.nullcontext(rm))
    monkeypatch.setattr(EnforceConfig, "file_trouble", lambda *_: None)
    monkeypatch.setattr(cli, "_Signals", NoSignals)
    with pytest.raises(SystemExit) as ended:
        main(["enforce", "--rm", "http://rm:8088", "--config", str(tmp_path / "enforce.yaml"), *how])
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "no queue root.bb (near: root.b" in said
    assert file.read_bytes() == FILE
