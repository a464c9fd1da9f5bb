"""Where a ResourceManager's RPC ports and its allocation file are, asked of the RM itself (``/conf``).

So a user names one address. An RM that does not show its configuration has the usual ports, as far as we know.
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
    """A property of an RM's configuration; None where it has none or does not tell. Raises Unreachable.

    ``base``: which RM; None: the one that answers.
    """
    try:
        return told_property(http, base, name)
    except (Refused, BadAnswer):
        return None


def told_property(http: HttpClient, base: str | None, name: str) -> str | None:
    """As rm_property, where one cannot do without: raises Refused and BadAnswer, too, which say why it is not told."""
    document = http.request("GET", "/conf", params={"name": name}, repeatable=True, only=base).document
    found = document.get("property") if isinstance(document, dict) else None
    value = found.get("value") if isinstance(found, dict) else None
    return well_formed(value) if isinstance(value, str) else None


def find_rm(rest: str, options: HttpOptions, *, admin: str | None = None, client: str | None = None) -> RmAddress:
    """The addresses of the RM whose REST address is given; what is given besides (HOST:PORT) is not asked for.

    RPC is on the REST address' host: what the RM calls itself (``0.0.0.0``, ``localhost``) may mean nothing here.
    Raises Unreachable, CallError.
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
    """The path (on the RM's machine) of the allocation file that the RM reads, if it tells."""
    base = base_url(rest)
    with closing(HttpClient([base], options)) as http:
        return rm_property(http, base, _FILE)


def in_a_store(client: RmClient) -> bool:
    """Whether the RM keeps the Capacity Scheduler's settings in a store of its own, by what its ``/conf`` shows."""
    site = shown_site(client.rest) or {}
    return site.get("yarn.scheduler.configuration.store.class", "file").strip() != "file"


def file_of_each(rms: Sequence[RmAddress], place: ConfigStore, options: HttpOptions) -> str | None:
    """Why not all of these RMs may read the file at `place`, in words; None where they seem to.

    A path without a scheme is a file of the RM's own machine. Whether it lies in a folder that they share, only the
    administrator knows.
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
    """Why the RM does not seem to read the file at `place`, in words; None where it does, or does not tell.

    Compares names, and of a local file what it is: so it also tells of a folder that is mounted under another name.
    """
    for rm in rms:
        try:
            told = allocation_file(rm.rest, options)
        except Unreachable:
            continue
        if told is None or not urlsplit(told).path.startswith("/"):
            return None  # a name on its class path
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
