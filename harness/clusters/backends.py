"""The backends of real clusters by name. A new one is a class (harness.clusters.base) and a line here."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import CallError

if TYPE_CHECKING:
    from harness.clusters.base import Cluster
    from harness.clusters.state import StateFolder

#: name -> "module:class", imported on demand.
BACKENDS: dict[str, str] = {
    "local": "harness.clusters.local:LocalCluster",
    "docker": "harness.clusters.compose:DockerCluster",
    "ssh": "harness.clusters.ssh:SshCluster",
}


def backend_class(name: str) -> type[Cluster]:
    """Return the class of a backend's name. Raises CallError for an unknown one."""
    if name not in BACKENDS:
        raise CallError(f"no backend {name[:40]!r}", where="--backend", hint="one of " + ", ".join(BACKENDS))
    found: type[Cluster] = pkgutil.resolve_name(BACKENDS[name])
    return found


def check_inventory(name: str, inventory: str | None, *, needed: bool) -> None:
    """Check that a backend supports the given inventory, or (`needed`) any. Raises CallError."""
    takes = backend_class(name).takes_inventory
    if inventory is not None and not takes:
        own = " or ".join(backend for backend in BACKENDS if backend_class(backend).takes_inventory)
        raise CallError("an inventory", where="--inventory", hint=f"it is for --backend {own}")
    if needed and takes and inventory is None:
        raise CallError("no inventory", where="--inventory", hint="give the YAML file that names the hosts")


def check_jars(name: str) -> None:
    """Check that a backend can add jars to its ResourceManager's class path, for policies inside it. Raises CallError.

    The reason is that the jars are files of this machine.
    """
    if not backend_class(name).takes_jars:
        others = " or ".join(other for other in BACKENDS if backend_class(other).takes_jars)
        raise CallError(
            "jars for the ResourceManager on other hosts",
            where="--jar, --in-rm-policy",
            hint=f"leave them out, or use --backend {others}",
        )


def make_cluster(
    name: str,
    folder: StateFolder,
    *,
    inventory: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Cluster:
    """Return the cluster of a state folder. ``inventory``: the YAML file of the hosts, for backends that need one.

    Raises CallError and InputError.
    """
    check_inventory(name, inventory, needed=False)
    hosts = None
    if inventory is not None:
        from harness.clusters.inventory import read_inventory

        hosts = read_inventory(Path(inventory))
    return backend_class(name)(folder, hosts, progress=progress)
