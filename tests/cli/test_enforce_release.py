"""`yarnfair enforce --release`: the administrator's file comes back, whether or not a ResourceManager answers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from harness.cli import main
from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.control.lease import lease_of
from harness.ledger.store import LedgerStore
from harness.model.plan import Attributes
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.source import FileSource
from harness.yarn.files import LocalStore
from tests.ports import held_port

FILE = b"""<?xml version="1.0"?>
<allocations>
  <queue name="a"><weight>2.0</weight></queue>
  <queue name="b"/>
</allocations>
"""


class Site:
    """A controller's folder after it was killed: its weights in the file, its leftovers beside it."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder, self.file, self.config = folder, folder / "etc" / "fair-scheduler.xml", folder / "enforce.yaml"
        self.file.parent.mkdir()
        self.file.write_bytes(FILE)
        self.rest = rest = f"http://127.0.0.1:{held_port()}"
        self.config.write_text(
            f"policy: ltrf\nallocation_file: {self.file}\nledger: {folder}/ledger.db\n"
            f"rms: [{{rest: '{rest}'}}]\nhttp: {{connect_timeout_s: 1}}\n{more}"
        )
        place = LocalStore(self.file)
        with LedgerStore(folder / "ledger.db") as store:
            actuator = FileActuator.restored(place, store.document)
            actuator.read()
            prepared = actuator.prepare(Attributes({"root.a": 500.0, "root.b": 250.0}))
            store.commit(documents=actuator.document())
            self.lease = lease_of(place, store.identity, 30.0, lambda: 0.0)
            self.lease.hold()
            self.lease.keep(actuator.document())
            actuator.write(prepared)
        for left in (".fair-scheduler.xml.yarnfair-x", "..fair-scheduler.xml.lease.yarnfair-y"):
            (self.file.parent / left).write_bytes(b"half")

    def names(self) -> list[str]:
        return sorted(os.listdir(self.file.parent))

    def call(self, *options: str) -> int:
        return ended(["enforce", "--config", str(self.config), "--release", *options])


def ended(words: list[str]) -> int:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code or 0)


@pytest.mark.parametrize(
    ("more", "said"),
    [("", "are written; no ResourceManager was told"), ("refresh: poll\n", "are written; in force when")],
)
def test_without_a_resourcemanager_the_file_comes_back_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, said: str
) -> None:
    site = Site(tmp_path, more)
    assert site.call() == 0
    assert said in capsys.readouterr().err
    assert site.file.read_bytes() == FILE
    assert site.names() == ["fair-scheduler.xml"]
    # Once more: there is nothing to give back.
    assert site.call() == 0
    assert site.file.read_bytes() == FILE


def test_a_dry_run_shows_it_and_touches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(tmp_path)
    before, names = site.file.read_bytes(), site.names()
    assert site.call("--dry-run", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert '+  <queue name="a"><weight>2.0</weight></queue>' in told["difference"]
    assert '+  <queue name="b"/>' in told["difference"]
    assert (site.file.read_bytes(), site.names()) == (before, names)
    assert site.call("--dry-run") == 0
    assert "(released)" in capsys.readouterr().out


def test_what_another_controller_holds_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(tmp_path)
    site.lease.give_back()
    other = lease_of(LocalStore(site.file), "another", 30.0, lambda: 0.0)
    other.hold()
    before, names = site.file.read_bytes(), site.names()
    assert site.call() == 1
    assert "another controller writes this file" in capsys.readouterr().err
    assert site.call("--dry-run") == 0
    assert "--release would leave it" in capsys.readouterr().err
    assert (site.file.read_bytes(), site.names()) == (before, names)


@pytest.mark.parametrize("holder", ["nobody else", "a spare that was handed over to"])
def test_the_units_last_line_gives_back_and_touches_nothing_that_another_holds(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str], holder: str
) -> None:
    """What systemd runs after the service has ended, as the unit on the page has it."""
    site = Site(tmp_path)
    page = (root / "docs" / "how-to" / "enforce.md").read_text()
    (line,) = re.findall(r"^ExecStopPost=-\S+/yarnfair (.+)$", page, re.MULTILINE)
    own = {"/etc/yarnfair/enforce.yaml": str(site.config), "http://rm:8088": site.rest}
    assert own.keys() < set(line.split())
    if holder != "nobody else":
        site.lease.give_back()
        spare = lease_of(LocalStore(site.file), "another", 30.0, lambda: 0.0)
        spare.give_sign()
        spare.hold()
    before, names = site.file.read_bytes(), site.names()
    code, told = ended([own.get(word, word) for word in line.split()]), capsys.readouterr().err
    if holder == "nobody else":
        assert (code, site.file.read_bytes(), site.names()) == (0, FILE, ["fair-scheduler.xml"])
    else:
        assert (code, site.file.read_bytes(), site.names()) == (1, before, names)
        assert before != FILE
        assert "another controller writes this file" in told


def test_a_ledger_that_was_lost_does_not_matter_beside_the_lease(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.lease.give_back()
    for path in tmp_path.glob("ledger.db*"):
        path.unlink()
    assert site.call() == 0
    assert site.file.read_bytes() == FILE


def test_a_spare_that_would_take_over_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(tmp_path)
    spare = lease_of(LocalStore(site.file), "another", 30.0, lambda: 0.0)
    spare.give_sign()
    assert site.call() == 0
    assert site.file.read_bytes() == FILE
    assert "takes over within 30 s; stop it too to switch off" in capsys.readouterr().err
    # Its own sign, from when it was a spare itself, is no other's.
    (tmp_path / "own").mkdir()
    site = Site(tmp_path / "own")
    site.lease.give_sign()
    assert site.call() == 0
    assert "takes over" not in capsys.readouterr().err


def test_a_capacity_file_that_somebody_has_emptied_is_told_in_a_line_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, config = tmp_path / "capacity-scheduler.xml", tmp_path / "enforce.yaml"
    values = (("root.queues", "a,b"), ("root.a.capacity", "1w"), ("root.b.capacity", "3w"))
    each = "".join(f"<property><name>{PREFIX}{key}</name><value>{value}</value></property>" for key, value in values)
    file.write_text(f"<configuration>{each}</configuration>")
    config.write_text(f"policy: ltrf\ncapacity_file: {file}\nledger: {tmp_path}/ledger.db\n")
    with LedgerStore(tmp_path / "ledger.db") as store:
        own = CapacityActuator(FileSource(LocalStore(file)))
        own.read()
        prepared = own.prepare(Attributes({"root.a": 1.0, "root.b": 1.0}))
        store.commit(documents=own.document())
        own.write(prepared)
    file.write_text("<configuration/>")
    words = ["enforce", "--config", str(config), "--release"]
    for more in ([], ["--dry-run"]):
        assert ended([*words, *more]) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert " ".join(told.err.split()).startswith(f"yarnfair: {file}: no queues below root")
        assert file.read_text() == "<configuration/>"
    # What is known of it is not lost.
    file.write_bytes(prepared.after)
    assert ended(words) == 0
    assert file.read_text() == f"<configuration>{each}</configuration>"
