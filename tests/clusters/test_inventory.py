"""Inventories: defaults, keys and jump hosts resolved, every mistake with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.clusters.inventory import read_inventory, restored

GOOD = """\
defaults: {user: yarn, port: 2200, key: id, known_hosts: known, folder: /srv/yarnfair}
hosts:
  gate: {host: gate.example.org, port: 22}
  master: {host: 10.0.0.1, roles: [rm], jump: gate}
  w1: {host: 10.0.0.2, address: w1.internal, roles: [nm], jump: gate, memory_mb: 8192, folder: /data/yf}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("id", "known"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_defaults_hold_where_a_host_says_nothing(folder: Path) -> None:
    (folder / "hosts.yaml").write_text(GOOD)
    inventory = read_inventory(folder / "hosts.yaml")
    gate, master, worker = inventory.hosts
    assert (gate.access.port, master.access.port, master.access.user) == (22, 2200, "yarn")
    assert master.access.key == str(folder / "id")
    assert (master.address, worker.address) == ("10.0.0.1", "w1.internal")
    assert (master.folder, worker.folder, worker.memory_mb) == ("/srv/yarnfair", "/data/yf", 8192)
    assert inventory.rm is master
    assert inventory.nodes == (worker,)
    assert worker.jump is not None
    assert worker.jump.host == "gate.example.org"
    assert restored(json.loads(json.dumps(inventory.document()))) == inventory


@pytest.mark.parametrize("written", ["::1", "[::1]", "0:0:0:0:0:0:0:1"])
def test_an_ipv6_address_may_have_brackets(folder: Path, written: str) -> None:
    (folder / "hosts.yaml").write_text(f"hosts:\n  m: {{host: '{written}', roles: [rm, nm]}}\n")
    (host,) = read_inventory(folder / "hosts.yaml").hosts
    # Hadoop's daemons find the machine itself by its name.
    assert (host.access.host, host.address) == ("::1", "localhost")
    (folder / "hosts.yaml").write_text("hosts:\n  m: {host: '[fe80::1]', address: node1, roles: [rm, nm]}\n")
    (host,) = read_inventory(folder / "hosts.yaml").hosts
    assert (host.access.host, host.address) == ("fe80::1", "node1")


@pytest.mark.parametrize("written", ["::1", "[::1]", "fe80::1"])
def test_an_ipv6_address_within_braces_needs_quotes(folder: Path, written: str) -> None:
    (folder / "hosts.yaml").write_text(f"hosts:\n  m: {{roles: [rm, nm], host: {written}, address: node1}}\n")
    if written[0] not in ":[":
        # YAML takes this one as it is.
        assert read_inventory(folder / "hosts.yaml").hosts[0].access.host == written
        return
    with pytest.raises(InputError) as caught:
        read_inventory(folder / "hosts.yaml")
    assert "hosts.yaml:2: not valid YAML" in caught.value.line()
    assert caught.value.hint == f'put the value in quotes: "{written}"'


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("roles: [nm]", "roles: [rm]", "two hosts have the role rm"),
        ("roles: [rm], jump: gate", "roles: [rm], jump: nobody", "not a host of the inventory"),
        ("host: 10.0.0.1", "host: '$(reboot)'", "host"),
        ("host: 10.0.0.1", "host: '10.0.0.1:2222'", "write host: '10.0.0.1' and port: 2222"),
        ("host: 10.0.0.1", "host: '[::1]:2222'", "write host: '::1' and port: 2222"),
        ("host: 10.0.0.1", "host: '[::1::1]'", "is no IPv6 address"),
        ("host: 10.0.0.1", "host: 'fe80::1'", "give address, a name or IPv4"),
        ("folder: /data/yf", "folder: /data", "one of the system's"),
        ("folder: /data/yf", "folder: '/data/yf; rm -rf /'", "folder"),
        ("key: id", "key: nowhere", "no such file"),
        ("port: 2200", "port: 99999", "port"),
        ("user: yarn", "password: secret", "password"),
        ("host: gate.example.org, port: 22", "host: gate.example.org, jump: master", "through another host"),
    ],
)
def test_mistakes_have_their_place(folder: Path, before: str, after: str, says: str) -> None:
    assert before in GOOD
    (folder / "hosts.yaml").write_text(GOOD.replace(before, after))
    with pytest.raises(InputError, match=r"hosts\.yaml") as caught:
        read_inventory(folder / "hosts.yaml")
    assert says in caught.value.line()
    assert "\n" not in caught.value.line()
