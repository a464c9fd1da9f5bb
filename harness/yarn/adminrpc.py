"""Two calls of the ResourceManager's RPC: ``refreshQueues`` (admin port) and ``getQueueInfo`` (client port).

``refreshQueues`` makes the RM reload its allocation file at once. It reports success even if the RM could not load the
file (Hadoop 3.4 logs the error and keeps the old queues). ``getQueueInfo`` therefore serves to read the weights in
force, which REST does not show.

Sources: resourcemanager_administration_protocol.proto, yarn_service_protos.proto, yarn_protos.proto of hadoop-yarn-api
3.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.model.resources import Resource
from harness.yarn import rpc
from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.fair.javanum import float32
from harness.yarn.kerberos import Login
from harness.yarn.queue_answers import MAX_QUEUE_DEPTH
from harness.yarn.rpc import RpcAddress

ADMIN_PORT = 8033
CLIENT_PORT = 8032
_ADMIN = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
_CLIENT = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"


@dataclass(frozen=True, slots=True)
class EffectiveQueue:
    """A queue's settings in force: its weight (an exact float32), steady fair share and limit of applications.

    The message also contains minimum and maximum shares, but Hadoop 3.4.2 overwrites the minimum's vcores with the
    maximum's. REST shows both correctly.
    """

    path: str
    parent: str | None
    weight: float
    steady_share: Resource
    max_apps: int


def refresh_queues(address: RpcAddress, *, user: str, timeout_s: float = 10.0, login: Login | None = None) -> None:
    """Make the RM at `address` (its admin port) reload its allocation file, like ``rmadmin -refreshQueues``.

    Success does not mean that the file was loaded: see `effective_queues`. Raises Unreachable, NoActiveRm, Refused (no
    permission, or the RM's own exception) or BadAnswer.
    """
    rpc.call(address, _ADMIN, "refreshQueues", user=user, timeout_s=timeout_s, login=login)


def groups_of(user: str, address: RpcAddress, *, as_user: str, login: Login | None, timeout_s: float) -> list[str]:
    """Return the groups that the RM at `address` (its admin port) knows for a user; changes nothing.

    Raises Refused without administrator permission (an RM of 3.4 checks it as for `refreshQueues`).
    """
    request = rpc.field(1, user)
    answer = rpc.call(address, _ADMIN, "getGroupsForUser", request, user=as_user, timeout_s=timeout_s, login=login)
    try:
        return [rpc.text(value) for key, value in rpc.fields(answer) if key == 1]
    except ValueError as error:
        raise BadAnswer(f"no groups ({error})", where=f"{address} getGroupsForUser") from None


def effective_queues(
    address: RpcAddress,
    *,
    user: str,
    queue: str = "root",
    timeout_s: float = 10.0,
    login: Login | None = None,
) -> dict[str, EffectiveQueue]:
    """Return the RM's settings in force (client port) for `queue` and its descendants, by path, parents first."""
    request = rpc.field(1, queue) + rpc.field(2, 0) + rpc.field(3, 1) + rpc.field(4, 1)
    answer = rpc.call(address, _CLIENT, "getQueueInfo", request, user=user, timeout_s=timeout_s, login=login)
    where = f"{address} getQueueInfo"
    found: dict[str, EffectiveQueue] = {}
    try:
        waiting: list[tuple[bytes, str | None, int]] = [
            (value, None, 0) for key, value in rpc.fields(answer) if key == 1 and isinstance(value, bytes)
        ]
        if not waiting:
            raise Refused(f"the RM has no queue {queue!r}", where=where)
        while waiting:
            message, parent, depth = waiting.pop()
            settings, children = _settings(message, parent)
            if settings.path in found or depth > MAX_QUEUE_DEPTH:
                raise ValueError(f"queue {settings.path!r} twice, or nested too deep")
            found[settings.path] = settings
            waiting += [(child, settings.path, depth + 1) for child in children]
    except ValueError as error:
        raise BadAnswer(f"no QueueInfo ({error})", where=where) from None
    return {path: found[path] for path in sorted(found, key=lambda path: path.split("."))}


def _settings(message: bytes, parent: str | None) -> tuple[EffectiveQueue, list[bytes]]:
    once: dict[int, rpc.Value] = {}
    children: list[bytes] = []
    for key, value in rpc.fields(message):
        if key == 6 and isinstance(value, bytes):
            children.append(value)
        else:
            once[key] = value
    path = rpc.text(once.get(1, b""))
    if parent is not None and not path.startswith(f"{parent}."):
        raise ValueError(f"queue {path!r} below {parent!r}")
    if 14 not in once:
        raise ValueError(f"queue {path!r} without a weight; Hadoop before 3.4 tells none: set read_back: false")
    steady = Resource(rpc.number(once.get(25, 0)), rpc.number(once.get(24, 0)))
    weight, max_apps = rpc.float32(once[14]), rpc.number(once.get(27, 0))
    return EffectiveQueue(path, parent, weight, steady, max_apps), children


def differing(
    wanted: Mapping[str, float], has: Mapping[str, float], what: str, same: Callable[[float, float], bool]
) -> dict[str, str]:
    """Return the queues whose value in the RM differs from the wanted one. ``what``: name of the value."""
    wrong = {}
    for path, value in wanted.items():
        if path not in has:
            wrong[path] = "the RM has no such queue"
        elif not same(value, has[path]):
            wrong[path] = f"the RM has {what} {has[path]:g}, wanted {value:g}"
    return wrong


def weights_differ(wanted: Mapping[str, float], effective: Mapping[str, EffectiveQueue]) -> dict[str, str]:
    """Return `differing` of the weights, compared as float32 like the RM stores them; empty if all are in force."""

    def same(weight: float, has: float) -> bool:
        return math.isfinite(weight) and float32(weight) == has

    return differing(wanted, {path: queue.weight for path, queue in effective.items()}, "weight", same)
