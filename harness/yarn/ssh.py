"""SSH connections: settings from ~/.ssh/config, strict host key checking, one-line messages for all failures.

A host that is missing in known_hosts, or has another key there, is refused. Private keys are read from a file, ~/.ssh
or the agent; there is no password prompt.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import InputError, reason
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.ssh_proxy import Proxy, proxy_command

if TYPE_CHECKING:
    import fabric

# Failures are raised as errors of this package. Without a handler, paramiko's threads would also print tracebacks.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Access:
    """The parameters of a connection to one host.

    A value of None is taken from ~/.ssh/config, and for ``known_hosts`` the user's own file is used. ``key``: path of a
    private key.
    """

    name: str
    host: str
    user: str | None
    port: int | None
    key: str | None
    known_hosts: str | None
    timeout_s: float


class UnknownHost(Unreachable):
    """A host that is missing in known_hosts."""


@contextlib.contextmanager
def connected(
    access: Access, where: str, *, through: fabric.Connection | None = None, failed: str = "no connection"
) -> Iterator[fabric.Connection]:
    """Open a connection: directly, by a proxy of ~/.ssh/config (ProxyJump, ProxyCommand), or ``through`` another one.

    ``where`` and ``failed`` are for messages. Raises Refused, Unreachable, InputError.
    """
    import fabric
    import paramiko

    said = _settings(access)
    host = str(said.get("hostname", access.host))
    try:
        port = int(said.get("port", 22))
    except ValueError:
        what = f"~/.ssh/config has no number for its port: {said['port'][:40]}"
        raise InputError(what, where=where) from None
    try:
        # Load the key here: paramiko itself would try the file as every type of key and report only the last error.
        key = paramiko.PKey.from_path(access.key) if access.key else None
    except (OSError, ValueError, TypeError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
        hint = "give a private key that OpenSSH reads, without a passphrase"
        raise InputError(f"no usable key: {reason(error)}", where=access.key, hint=hint) from None
    command = proxy_command(said, host, port, timeout_s=access.timeout_s) if through is None else None
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(Proxy(command)) if command is not None else None
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        try:
            if access.known_hosts:
                client.load_host_keys(access.known_hosts)
            else:
                client.load_system_host_keys()
        except (OSError, paramiko.SSHException) as error:
            what, hint = f"known_hosts cannot be read: {reason(error)}", "check the path"
            raise InputError(what, where=access.known_hosts, hint=hint) from None
        options = {
            "sock": proxy.socket if proxy is not None else None,
            "pkey": key,
            "key_filename": [] if access.key else said.get("identityfile", []),
            "timeout": access.timeout_s,
            "banner_timeout": access.timeout_s,
            "auth_timeout": access.timeout_s,
            "channel_timeout": access.timeout_s,
            "allow_agent": access.key is None,
            "look_for_keys": access.key is None,
        }
        # The user's settings have been read above.
        config = fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)
        connection = fabric.Connection(
            host, user=said.get("user"), port=port, config=config, gateway=through, connect_kwargs=options
        )
        # Replace fabric's own client, which accepts any key of a new host.
        connection.client = client
        stack.callback(client.close)
        try:
            connection.open()
        except paramiko.BadHostKeyException:
            what = "the host's key differs from the one in known_hosts"
            hint = "find out why before you trust it (a new machine? an attack?), then ssh-keygen -R and ssh-keyscan"
            raise Refused(what, where=where, hint=hint) from None
        except paramiko.AuthenticationException as error:
            hint = "give a key that the host accepts (ssh-add, ~/.ssh/config, or `key:` in an inventory)"
            raise Refused(f"login refused: {reason(error)}", where=where, hint=hint) from None
        except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
            if "not found in known_hosts" in str(error):
                hint = "ssh-keyscan it into known_hosts and compare fingerprints"
                raise UnknownHost("known_hosts does not know the host", where=where, hint=hint) from None
            words = proxy.words() if proxy is not None else ""
            told = f"; its proxy says: {words}" if words else ""
            raise Unreachable(f"{failed}: {reason(error)}{told}", where=where, hint="check host and port") from None
        yield connection


def _settings(access: Access) -> dict[str, Any]:
    """Return the settings of ~/.ssh/config for the host.

    A port or user in ``access`` takes precedence, also for %p and %r in a ProxyCommand.
    """
    import paramiko

    own = "".join(f"{key} {value}\n" for key, value in (("Port", access.port), ("User", access.user)) if value)
    config = paramiko.SSHConfig.from_text(own)
    # If there is no file, or paramiko cannot parse it (it supports less than OpenSSH), only the address is used.
    with contextlib.suppress(OSError, UnicodeError, paramiko.ssh_exception.ConfigParseError):
        text = Path(os.path.expanduser("~/.ssh/config")).read_text(encoding="utf-8")
        config = paramiko.SSHConfig.from_text(own + text)
    return dict(config.lookup(access.host))
