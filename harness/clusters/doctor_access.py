"""Checks, without changing anything, whether `enforce` could refresh and read back on a ResourceManager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.base.errors import YarnfairError
from harness.clusters.base import Finding
from harness.clusters.doctor import QUICK
from harness.yarn import adminrpc
from harness.yarn.discover import find_rm, rm_property
from harness.yarn.errors import Refused
from harness.yarn.http import HttpOptions
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.rmclient import RmClient

_POLL = "with `refresh: poll` the Fair Scheduler reads the file by itself, within 10 to 15 s"
_TIMEOUT_S = 10.0


def examine_access(rest_address: str, access: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the RPC that reads weights back, the RPC that refreshes, and whether this user may administer.

    ``access``: arguments of HttpOptions. A missing ability is a note: the RM is healthy, and there are other ways.
    """
    # A ResourceManager may close one connection under load; those before it have shown that it answers.
    options: HttpOptions = replace(QUICK, attempts=2, **access)
    try:
        rm = find_rm(rest_address, options)
        client = RmClient([rm], options, rpc_timeout_s=_TIMEOUT_S)
    except YarnfairError as error:
        yield Finding("refresh", "note", f"not looked at: {_line(error)}", error.hint)
        return
    with client:
        capacity = _has_capacity(client)
        try:
            if capacity:
                yield Finding("read-back", "fine", "REST shows the capacities in force")
            else:
                client.effective_queues()
                yield Finding("read-back", "fine", f"the RPC at {rm.client} shows the weights in force")
        except YarnfairError as error:
            hint = f"{error.hint}; or `read_back: false`" if error.hint else "or `read_back: false`"
            yield Finding("read-back", "note", f"`enforce` cannot read back: {_line(error)}", hint)
        yield _refresh(client, polls=not capacity)


def _has_capacity(client: RmClient) -> bool:
    """Return whether the RM has a Capacity Scheduler, which shows its capacities in force by REST."""
    try:
        return client.rest.scheduler().type == CAPACITY
    except YarnfairError:
        return False


def _refresh(client: RmClient, *, polls: bool) -> Finding:
    """Report whether `enforce` could refresh; ``polls``: whether the scheduler also reads its file by itself."""
    (rm,), user = client.rms, client.user
    groups: list[str] = []
    try:
        groups = adminrpc.groups_of(user, rm.admin, as_user=user, login=client.login, timeout_s=_TIMEOUT_S)
    except YarnfairError as error:
        # An RM without this call is not a real one, but it has admitted this user.
        if not (isinstance(error, Refused) and error.exception == "RpcNoSuchMethodException"):
            ways = [way for way in (error.hint, _POLL if polls else None) if way]
            hint = "; or ".join(ways) or None
            return Finding("refresh", "note", f"`enforce` cannot refresh by RPC: {_line(error)}", hint)
    allowed = rm_property(client.rest.http, rm.rest, "yarn.admin.acl")
    if allowed is not None and not _has(allowed, user, groups):
        what = f"{user} may not refresh by RPC: yarn.admin.acl is {allowed.strip()[:80]!r}"
        return Finding(
            "refresh",
            "note",
            what,
            f"put {user} or a group of it into yarn.admin.acl" + (f"; or {_POLL}" if polls else ""),
        )
    how = "with Kerberos" if client.login is not None else "without Kerberos"
    acl = "yarn.admin.acl is not shown" if allowed is None else "yarn.admin.acl has it"
    return Finding("refresh", "fine", f"the RPC at {rm.admin} takes {user}, {how}; {acl}")


def _has(acl: str, user: str, groups: list[str]) -> bool:
    """Return whether an AccessControlList admits the user: users, a blank, groups; a star admits everybody."""
    if acl.strip() == "*":
        return True
    users, _, allowed = acl.partition(" ")
    names = {name.strip() for name in users.split(",")}
    return user in names or bool({name.strip() for name in allowed.split(",")} & set(groups))


def _line(error: YarnfairError) -> str:
    return f"{error.where}: {error.what}" if error.where else error.what
