"""Options of the commands that talk to a ResourceManager named by --rm: Kerberos and TLS.

With --config they are not allowed, because the controller's configuration has the same settings (``http``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from harness.cli.output import options

#: The options as arguments of harness.yarn.http.HttpOptions.
Access = dict[str, Any]


def as_config(access: Access) -> dict[str, Any]:
    """Return the options in the form of ``http`` in the controller's configuration."""
    said = {"ca_file": access["ca_file"]} if "ca_file" in access else {}
    if access.get("keytab"):
        return said | {"kerberos": {name: access[name] for name in ("principal", "keytab")}}
    return said | ({"auth": access["auth"]} if "auth" in access else {})


def access_options(function: Callable[..., object]) -> Callable[..., Any]:
    """Add --kerberos, --principal, --keytab and --ca-file, which the command gets as one argument `access`."""

    @functools.wraps(function)
    def with_access(
        *given: Any, kerberos: bool, principal: str | None, keytab: str | None, ca_file: str | None, **named: Any
    ) -> Any:
        access: Access = {"ca_file": ca_file} if ca_file else {}
        if kerberos or principal or keytab:
            access |= {"auth": "spnego", "principal": principal, "keytab": keytab}
        config = named.get("config_file") or named.get("config")
        if access and config is not None:
            raise click.UsageError("--config has `http` for this: leave --kerberos, --keytab and --ca-file out")
        return function(*given, access=access, **named)

    return options(
        click.option("--kerberos", is_flag=True, help="Authenticate with the ticket that kinit got."),
        click.option("--principal", metavar="NAME", help="Authenticate as this Kerberos principal, by its keytab."),
        click.option("--keytab", metavar="FILE", type=click.Path(), help="The keytab of --principal."),
        click.option("--ca-file", metavar="FILE", type=click.Path(), help="Who signed the RM's certificate (PEM)."),
    )(with_access)
