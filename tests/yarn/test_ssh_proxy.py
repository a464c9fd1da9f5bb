"""What ~/.ssh/config says of the way to a host, as a command."""

from __future__ import annotations

import paramiko
import pytest

from harness.base.errors import InputError
from harness.yarn.ssh_proxy import Proxy, proxy_command

JUMP = "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15 -W"


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ("", None),
        ("ProxyCommand none", None),
        ("ProxyJump none\n ProxyCommand nc %h %p", None),
        ("ProxyCommand none\n ProxyJump gate", None),
        ("ProxyCommand nc %h %p", "nc 10.0.0.1 2222"),
        ("ProxyCommand nc %h %p\n ProxyJump gate", "nc 10.0.0.1 2222"),
        ("ProxyJump gate\n ProxyCommand nc %h %p", f"{JUMP} 10.0.0.1:2222 -- ssh://gate"),
        ("ProxyJump me@gate:2200", f"{JUMP} 10.0.0.1:2222 -- ssh://me@gate:2200"),
        ("ProxyJump ssh://gate", f"{JUMP} 10.0.0.1:2222 -- ssh://gate"),
        ("ProxyJump one,two,three", f"{JUMP} 10.0.0.1:2222 -J one,two -- ssh://three"),
    ],
)
def test_the_way_to_a_host(config: str, wanted: str | None) -> None:
    said = paramiko.SSHConfig.from_text(f"Host rm1\n HostName 10.0.0.1\n Port 2222\n {config}\n").lookup("rm1")
    assert proxy_command(said, "10.0.0.1", 2222, timeout_s=15.0) == wanted


def test_an_address_with_colons() -> None:
    assert f"{JUMP} '[::1]:22'" in str(proxy_command({"proxyjump": "gate"}, "::1", 22, timeout_s=15.0))


def test_a_proxy_ends_with_all_that_it_started() -> None:
    with Proxy("sleep 300 & sleep 300") as proxy:
        assert proxy.socket.getpeername() == ""
    assert proxy.socket.fileno() == -1
    assert proxy._process.returncode == -15


def test_a_command_that_cannot_be_started_is_one_line() -> None:
    with pytest.raises(InputError, match="does not start"):
        Proxy("echo \0")
