"""Find a ResourceManager's RPC ports and its allocation file from its configuration (``/conf``).

A user then needs to give only one address. If an RM does not show its configuration, the default ports are assumed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from urllib.parse import urlsplit

from harness.yarn.errors import BadAnswer, Refused, Unreachable, well_formed
from harness.yarn.files import ConfigStore, LocalStore
from harness.yarn.http import HttpClient, HttpOptions, base_url
from harness.yarn.rest import shown_site
from harness.yarn.rmclient import RmAddress, RmClient
from harness.yarn.stores import WebHdfsStore

_ADMIN, _CLIENT = "yarn.resourcemanager.admin.address", "yarn.resourcemanager.address"
_FILE = "yarn.scheduler.fair.allocation.file"


def rm_property(http: HttpClient, base: str | None, name: str) -> str | None:
    """Return a property of an RM's configuration; None if it is unset or not shown. Raises Unreachable.

    ``base``: address of the RM (None: the RM that answers).
    """
    try:
        return told_property(http, base, name)
    except (Refused, BadAnswer):
        return None


def told_property(http: HttpClient, base: str | None, name: str) -> str | None:
    """Like `rm_property`, for a property that the caller needs.

    Raises Refused or BadAnswer, with the reason, if the RM does not show its configuration.
    """
    document = http.request("GET", "/conf", params={"name": name}, repeatable=True, only=base).document
    found = document.get("property") if isinstance(document, dict) else None
    value = found.get("value") if isinstance(found, dict) else None
    return well_formed(value) if isinstance(value, str) else None


def find_rm(rest: str, options: HttpOptions, *, admin: str | None = None, client: str | None = None) -> RmAddress:
    """Return the addresses of the RM at a REST address. RPC addresses that are given (HOST:PORT) are not looked up.

    The RPC host is assumed to be that of the REST address, because the host names in the RM's configuration
    (``0.0.0.0``, ``localhost``) may not be valid from here. Raises Unreachable, CallError.
    """
    base = base_url(rest)
    host = urlsplit(base).hostname or ""
    if admin is None or client is None:
        with closing(HttpClient([base], options)) as http:
            identity = rm_property(http, base, "yarn.resourcemanager.ha.id")
            admin = admin or _address(http, base, _ADMIN, identity, host)
            client = client or _address(http, base, _CLIENT, identity, host)
    return RmAddress.of(base, admin=admin, client=client)


def allocation_file(rest: str, options: HttpOptions) -> str | None:
    """Return the path (on the RM's machine) of the allocation file that the RM reads, if it is shown."""
    base = base_url(rest)
    with closing(HttpClient([base], options)) as http:
        return rm_property(http, base, _FILE)


def in_a_store(client: RmClient) -> bool:
    """Return whether, by ``/conf``, the RM keeps the Capacity Scheduler's settings in a store of its own."""
    site = shown_site(client.rest) or {}
    return site.get("yarn.scheduler.configuration.store.class", "file").strip() != "file"


def file_of_each(rms: Sequence[RmAddress], place: ConfigStore, options: HttpOptions) -> str | None:
    """Explain why some of these RMs may read another file than `place`; None if nothing indicates this.

    A path without a scheme is local to the RM's machine. Only the administrator knows whether it is in a shared folder.
    """
    if len(rms) < 2 or isinstance(place, WebHdfsStore):
        return None
    for rm in rms:
        try:
            path = allocation_file(rm.rest, options)
        except Unreachable:
            continue
        if path is not None and urlsplit(path).scheme in ("", "file"):
            return (
                f"each of the {len(rms)} ResourceManagers reads the file {path[:200]} of its own machine, and only "
                f"{place.name} is written: unless it is one file that all of them share (NFS), a failover leads to old "
                "weights; keep it where all read it, in HDFS for example (yarn.scheduler.fair.allocation.file hdfs://...)"
            )
    return None


def another_file(rms: Sequence[RmAddress], place: ConfigStore, options: HttpOptions) -> str | None:
    """Explain why the RM seems to read another file than `place`; None if it reads it or does not show its file.

    Compares names, and local files by identity, so that a folder mounted under another name is recognised.
    """
    for rm in rms:
        try:
            told = allocation_file(rm.rest, options)
        except Unreachable:
            continue
        if told is None or not urlsplit(told).path.startswith("/"):
            return None  # a name on the RM's class path
        path = urlsplit(told).path
        if path == urlsplit(place.name).path or (isinstance(place, LocalStore) and place.is_file(path)):
            return None
        return (
            f"the ResourceManager reads {told[:200]}, and {place.name} is written: unless both are one file, no weight "
            "comes into force; name the file that it reads (allocation_file)"
        )
    return None


def _address(http: HttpClient, base: str, name: str, identity: str | None, host: str) -> str | None:
    value = rm_property(http, base, f"{name}.{identity}" if identity else name) or rm_property(http, base, name)
    port = (value or "").rpartition(":")[2]
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        return None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
