"""The hosts of a cluster that is accessed over SSH: names, access, and what runs on each. Only reads the file.

The format: docs/how-to/ssh-cluster.md. Access is by keys or the agent only; no password is requested or stored.
"""

from __future__ import annotations

import ipaddress
import os
import posixpath
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, TypeAdapter, model_validator

from harness.base.documents import Strict, read_yaml, validated
from harness.base.errors import InputError
from harness.yarn.ssh import Access

Port = Annotated[int, Field(ge=1, le=65535)]
#: Names are used in shell commands, file names and Hadoop's configuration.
Safe = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$")]


def _connected(text: str) -> str:
    """Return a name or address to connect to, without brackets around IPv6.

    Raises ValueError for a URL, for one with a user or a port, and for an invalid name or address.
    """
    if "://" in text:
        raise ValueError(f"{text[:60]!r} is a URL: write the host's name or address alone")
    if "@" in text:
        user, _, host = text.rpartition("@")
        raise ValueError(f"{text[:60]!r} has a user in it: write host: {host!r} and user: {user!r}")
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::([0-9]+))?", text)
    inner, port = (bracketed[1], bracketed[2]) if bracketed else (text, None)
    if bracketed is None and text.count(":") == 1:
        inner, port = text.split(":")
    if port is not None and not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise ValueError(f"{text[:60]!r} ends in no port: write host: {inner!r}")
    if port is not None:
        raise ValueError(f"{text!r} has a port in it: write host: {inner!r} and port: {port}")
    if ":" in inner:
        try:
            return str(ipaddress.IPv6Address(inner))
        except ValueError:
            raise ValueError(f"{text!r} is no IPv6 address") from None
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", inner):
        raise ValueError(f"{text[:60]!r} is no host name or address")
    return inner


#: A host to connect to: a name, an IPv4 address, or an IPv6 address with or without brackets.
Connected = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_connected)]
Folder = Annotated[str, Field(min_length=2, max_length=400, pattern=r"^/[A-Za-z0-9._/+-]+$")]
Role = Literal["rm", "nm"]


class AccessSpec(Strict):
    """Access to a host; missing settings come from ``defaults``, then from ~/.ssh/config."""

    user: Safe | None = None
    port: Port | None = None
    key: str | None = None
    jump: Safe | None = None


class DefaultsSpec(AccessSpec):
    """Settings of all hosts: access (which a host may override), installation folder, Java, timeout (s)."""

    known_hosts: str | None = None
    folder: Folder = "/opt/yarnfair"
    java: Folder | None = None
    connect_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 15.0


class HostSpec(AccessSpec):
    """One host.

    ``host``: name or address to connect to; ``address``: where the cluster's daemons find it (default: ``host``).
    """

    host: Connected
    address: Safe | None = None
    roles: list[Role] = Field(default_factory=list, max_length=2)
    folder: Folder | None = None
    java: Folder | None = None
    memory_mb: Annotated[int, Field(ge=1, le=2**40)] | None = None
    vcores: Annotated[int, Field(ge=1, le=2**20)] | None = None

    @model_validator(mode="after")
    def _found(self) -> Self:
        """Check a host's address for daemons.

        Hadoop does not listen at IPv6 addresses, so these hosts need another name.
        """
        if ":" in self.host and self.roles and self.address is None and self.host != "::1":
            raise ValueError(f"Hadoop does not use IPv6 addresses such as {self.host}: give address, a name or IPv4")
        return self


class InventorySpec(Strict):
    """An inventory file."""

    keys_page: ClassVar[str] = "docs/how-to/ssh-cluster.md"

    defaults: DefaultsSpec = DefaultsSpec()
    hosts: dict[Safe, HostSpec] = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _roles(self) -> Self:
        rms = [name for name, host in self.hosts.items() if "rm" in host.roles]
        if len(rms) > 1:
            raise ValueError(f"two hosts have the role rm: {rms[0]} and {rms[1]}")
        for name, host in self.hosts.items():
            jump = host.jump or self.defaults.jump
            if jump is not None and jump not in self.hosts:
                raise ValueError(f"{name} is reached through {jump}, which is not a host of the inventory")
            if jump == name and host.jump is not None:
                raise ValueError(f"{name} is reached through itself")
            if jump is not None and jump != name and self._jump_of(jump) is not None:
                raise ValueError(f"{name} is reached through {jump}, which is reached through another host")
        return self

    def _jump_of(self, name: str) -> str | None:
        found = self.hosts[name].jump or self.defaults.jump
        return None if found == name else found


@dataclass(frozen=True, slots=True)
class Host:
    """One host of the inventory.

    ``folder``: this project's folder there; ``jump``: the host through which it is reached.
    """

    access: Access
    address: str
    roles: tuple[str, ...]
    folder: str
    java: str | None
    memory_mb: int | None
    vcores: int | None
    jump: Access | None

    @property
    def name(self) -> str:
        """The host's name in the inventory."""
        return self.access.name


@dataclass(frozen=True, slots=True)
class Inventory:
    """All hosts in the file's order."""

    hosts: tuple[Host, ...]

    @property
    def rm(self) -> Host | None:
        """The ResourceManager's host; None if the inventory names none."""
        return next((host for host in self.hosts if "rm" in host.roles), None)

    @property
    def nodes(self) -> tuple[Host, ...]:
        """The hosts that run a NodeManager."""
        return tuple(host for host in self.hosts if "nm" in host.roles)

    def document(self) -> dict[str, Any]:
        """Return plain JSON values for the cluster's state (`restored` reads them).

        It has the paths of keys, never keys.
        """
        return {"hosts": [asdict(host) for host in self.hosts]}


def restored(document: object) -> Inventory:
    """Return the inventory of a `document`. Raises ValueError for an invalid one."""
    return TypeAdapter(Inventory).validate_python(document)


def read_inventory(path: Path) -> Inventory:
    """Return the inventory in a YAML file. Raises InputError with file and line for any mistake in it.

    Paths of keys and of ``known_hosts`` are relative to the file's folder, ``~`` is the user's home.
    """
    document = read_yaml(path)
    spec = validated(InventorySpec, document)
    base = path.resolve().parent

    def local(text: str | None, *at: str) -> str | None:
        if text is None:
            return None
        found = base / os.path.expanduser(text)
        if not found.is_file():
            raise InputError(f"no such file: {text[:200]}", where=document.where(at), hint="give an existing file")
        return str(found)

    defaults = spec.defaults
    known_hosts = local(defaults.known_hosts, "defaults", "known_hosts")
    default_key = local(defaults.key, "defaults", "key")

    def access(name: str) -> Access:
        host = spec.hosts[name]
        key = local(host.key, "hosts", name, "key") if host.key is not None else default_key
        return Access(
            name=name,
            host=host.host,
            user=host.user or defaults.user,
            port=host.port or defaults.port,
            key=key,
            known_hosts=known_hosts,
            timeout_s=defaults.connect_timeout_s,
        )

    hosts = []
    for name, host in spec.hosts.items():
        jump = host.jump or defaults.jump
        folder = posixpath.normpath(host.folder or defaults.folder)
        if len(re.findall(r"[^/]+", folder)) < 2:
            raise InputError(
                f"the folder {folder} is one of the system's",
                where=document.where(("hosts", name)),
                hint="/opt/yarnfair",
            )
        hosts.append(
            Host(
                access=access(name),
                address=host.address or ("localhost" if host.host == "::1" else host.host),
                roles=tuple(dict.fromkeys(host.roles)),
                folder=folder,
                java=host.java or defaults.java,
                memory_mb=host.memory_mb,
                vcores=host.vcores,
                jump=access(jump) if jump is not None and jump != name else None,
            )
        )
    return Inventory(tuple(hosts))
