"""How a host is written in an inventory, and what is told of one that is written otherwise."""

from __future__ import annotations

import re

import pytest

from harness.clusters.inventory import _connected


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("10.0.0.1:2222", "write host: '10.0.0.1' and port: 2222"),
        ("[::1]:2222", "write host: '::1' and port: 2222"),
        ("root@10.0.0.1", "write host: '10.0.0.1' and user: 'root'"),
        ("ssh://10.0.0.1:22", "is a URL"),
        ("10.0.0.1:", "ends in no port"),
        ("10.0.0.1:99999", "ends in no port"),
        ("node:ssh", "ends in no port"),
        ("a b", "is no host name or address"),
    ],
)
def test_a_host_with_more_in_it_is_told_how_to_write_it(written: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        _connected(written)


@pytest.mark.parametrize("written", ["::1", "[::1]", "node-1.example", "10.0.0.1"])
def test_names_and_addresses_are_hosts(written: str) -> None:
    assert _connected(written) == written.strip("[]")
