"""The administrator's allocation file: how it came about, what he changes in it, and what a reader makes of it.

The reader here is none of the product's: it stands for the ResourceManager's loader as far as these files go, and says
whether a file is the administrator's but for what a controller may own.
"""

from __future__ import annotations

import functools
import random
import re
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass

#: What a controller may own of a queue.
OWNED = ("weight", "minResources", "maxResources", "schedulingPolicy")
#: A queue's share as a controller's document calls it; a limit that the administrator changes.
SHARE, LIMIT = "weight", "maxRunningApps"
_WEIGHTS = ("1.0", "2", " 3.0 ", "1.5", "4.25", "1")
#: What he makes of weights later: none that a controller writes, which is never taken for his.
_NEW_WEIGHTS = ("2.1", "5.3", "0.7", "7.9")
_KNOWN = {*OWNED, "maxRunningApps", "queue", "maxAMShare", "aclSubmitApps"}
_DEFAULTS = {"queueMaxAppsDefault", "queuePlacementPolicy", "defaultQueueSchedulingPolicy", "userMaxAppsDefault"}
_POLICIES = {"fair", "drf", "fifo"}
_AMOUNT = re.compile(r"\s*(\d+)\s*mb\s*,\s*(\d+)\s*vcores\s*")


class Unreadable(Exception):
    """No ResourceManager takes this file."""


@dataclass(frozen=True)
class Queue:
    """A queue of a file. ``weight``: the float32 that an RM makes of it; ``rest``: what no controller owns."""

    path: str
    parent: str
    leaf: bool
    weight: float
    min_mb: int
    rest: tuple[tuple[str, str], ...]
    min_vcores: int = 0
    #: MiB and vcores of its maximum share; None: the file sets none.
    most: tuple[int, int] | None = None
    policy: str = "fair"


def float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def parsed(data: bytes, tag: str) -> ElementTree.Element:
    """The top element, which has this tag. Raises Unreadable."""
    if b"<!DOCTYPE" in data:
        raise Unreadable("a DOCTYPE")  # as Hadoop, whose parser disallows them
    try:
        top = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise Unreadable(f"no XML: {error}") from None
    if top.tag != tag:
        raise Unreadable(f"the top element is {top.tag}")
    return top


def read(data: bytes) -> dict[str, Queue]:
    """The queues of a file, the root first. Raises Unreadable."""
    return dict(_queues(data))


@functools.lru_cache(maxsize=64)
def _queues(data: bytes) -> dict[str, Queue]:
    top = parsed(data, "allocations")
    found = {"root": Queue("root", "", False, 1.0, 0, ())}
    for element in top:
        if element.tag == "queue":
            _read(element, "root", found)
        elif element.tag not in _DEFAULTS:
            raise Unreadable(f"an element {element.tag}")
    for queue in found.values():
        above = found.get(queue.parent)
        if queue.policy not in _POLICIES:
            raise Unreadable(f"{queue.path} has the policy {queue.policy!r}")
        # As Hadoop: no such queue is made when a ResourceManager starts.
        if above is not None and (above.policy == "fifo" or (above.policy == "fair" and queue.policy == "drf")):
            raise Unreadable(
                f"{queue.path} has the policy {queue.policy}, which {above.policy} above it does not allow"
            )
    return found


def _read(element: ElementTree.Element, parent: str, found: dict[str, Queue]) -> None:
    name = (element.get("name") or "").strip()
    if not name or "." in name:
        raise Unreadable(f"a queue called {name!r}")
    path = parent if name == "root" and parent == "root" else f"{parent}.{name}"
    if path in found and path != "root":
        raise Unreadable(f"{path} twice")
    values: dict[str, str] = {}
    for child in element:
        if child.tag not in _KNOWN:
            raise Unreadable(f"{path} has {child.tag}")
        if child.tag != "queue":
            if child.tag in values:
                raise Unreadable(f"{path} has {child.tag} twice")
            values[child.tag] = child.text or ""
    try:
        weight = float32(float(values.get("weight", "1")))
    except (ValueError, OverflowError):
        raise Unreadable(f"{path} has the weight {values['weight']!r}") from None
    if not 0 <= weight < float("inf"):
        raise Unreadable(f"{path} has the weight {weight}")
    amounts: dict[str, tuple[int, int]] = {}
    for name_of in ("minResources", "maxResources"):
        if name_of in values:
            amount = _AMOUNT.fullmatch(values[name_of])
            if amount is None:
                raise Unreadable(f"{path} has {name_of} {values[name_of]!r}")
            amounts[name_of] = int(amount[1]), int(amount[2])
    least, most = amounts.get("minResources", (0, 0)), amounts.get("maxResources")
    policy = values.get("schedulingPolicy", "fair").strip()
    inside = [child for child in element if child.tag == "queue"]
    leaf = not inside and element.get("type") != "parent" and path != "root"
    rest = tuple(sorted((key, text) for key, text in values.items() if key not in OWNED))
    above = parent if path != "root" else ""
    found[path] = Queue(path, above, leaf, weight, least[0], rest, least[1], most, policy)
    for child in inside:
        _read(child, path, found)


def entitlements(data: bytes) -> dict[str, float]:
    """Queue -> what its administrator entitles it to."""
    return {path: queue.weight for path, queue in read(data).items()}


def number(weight: object) -> float | None:
    """A share of a controller's document as a number; None for none."""
    return float(weight) if isinstance(weight, int | float) else None


def only_owned_differ(data: bytes, pristine: bytes, reader: Callable[[bytes], dict[str, Queue]] = read) -> str:
    """What differs between two readable files beside what a controller may own; "" nothing."""
    managed, theirs = reader(data), reader(pristine)
    if managed.keys() != theirs.keys():
        return f"queues {sorted(managed.keys() ^ theirs.keys())} are in one of them"
    for path, queue in managed.items():
        if (queue.leaf, queue.rest) != (theirs[path].leaf, theirs[path].rest):
            return f"{path} has {queue.rest}, the administrator wrote {theirs[path].rest}"
    return "" if re.findall(rb"<!--.*?-->", data) == re.findall(rb"<!--.*?-->", pristine) else "a comment differs"


def make(rng: random.Random, *, ad_hoc: bool) -> bytes:
    """An administrator's file: some queues, on one level or two."""
    lines = ['<?xml version="1.0"?>', "<!-- kept by hand -->", "<allocations>"]
    if rooted := rng.random() < 0.3:
        lines.append('  <queue name="root"><maxRunningApps>1000</maxRunningApps>')
    names = [f"q{i}" for i in range(rng.randint(2, 4))]
    for name in names:
        if rng.random() < 0.25 and not rooted:
            inner = "".join(f"\n    {element(rng, f'{name}{letter}')}" for letter in "ab")
            lines.append(f'  <queue name="{name}">\n    <weight>{rng.choice(_WEIGHTS)}</weight>{inner}\n  </queue>')
        else:
            lines.append(f"  {element(rng, name)}")
    if ad_hoc:
        lines.append('  <queue name="users" type="parent"/>')
    if rooted:
        lines.append("  </queue>")
    if rng.random() < 0.5:
        lines.append("  <queueMaxAppsDefault>500</queueMaxAppsDefault>")
    return ("\n".join([*lines, "</allocations>"]) + "\n").encode()


def element(rng: random.Random, name: str) -> str:
    """A leaf's element in one of the ways in which people write it."""
    match rng.randrange(5):
        case 0:
            return f'<queue name="{name}"/>'
        case 1:
            return f'<queue name="{name}"><weight>{rng.choice(_WEIGHTS)}</weight></queue>'
        case 2:
            limit = rng.randint(50, 90)
            return f'<queue name="{name}">\n    <maxRunningApps>{limit}</maxRunningApps>\n  </queue>'
        case 3:
            return (
                f'<queue name="{name}">\n    <!-- {name} pays -->\n    <weight>{rng.choice(_WEIGHTS)}</weight>\n'
                f"    <maxRunningApps>{rng.randint(50, 90)}</maxRunningApps>\n  </queue>"
            )
        case _:
            return f'<queue name="{name}" ><weight>{rng.choice(_WEIGHTS)}</weight><maxAMShare>0.9</maxAMShare></queue>'


def leaf_element(name: str) -> re.Pattern[bytes]:
    """Where a leaf is written, with the white space before it."""
    tag = re.escape(name).encode()
    return re.compile(rb"\s*<queue name=\"" + tag + rb"\"\s*(?:/>|>(?:(?!<queue).)*?</queue>)", re.S)


def add(data: bytes, text: bytes) -> bytes:
    """A queue more, before the last end tag of the top level."""
    end = data.rindex(b"</queue>\n") if b'name="root"' in data else data.index(b"</allocations>")
    return data[:end].rstrip() + b"\n  " + text + b"\n" + data[end:]


def regroup(rng: random.Random, pristine: bytes, idle: str, new: str) -> Callable[[bytes], bytes] | None:
    """An administrator's change of several queues: what it makes of a file.

    ``idle``: a leaf that may go ("" none); ``new``: a name that is free. None: nothing can be changed.
    """
    match rng.choice(("weights", "add", "delete", "rename", "split") if idle else ("weights", "add")):
        case "add":
            added = element(rng, new).encode()
            return lambda data: add(data, added)
        case "delete":
            return lambda data: leaf_element(idle).sub(b"", data)
        case "rename":
            renamed = element(rng, new).encode()
            return lambda data: add(leaf_element(idle).sub(b"", data), renamed)
        case "split":
            weight, inner = rng.choice(_NEW_WEIGHTS), "".join(f"\n    {element(rng, f'{new}{one}')}" for one in "xy")
            parent = f'\n  <queue name="{idle}">\n    <weight>{weight}</weight>{inner}\n  </queue>'.encode()
            return lambda data: leaf_element(idle).sub(lambda _: parent, data)
    leaves = [queue.path.rpartition(".")[2] for queue in read(pristine).values() if queue.leaf]
    weights = {name: rng.choice(_NEW_WEIGHTS) for name in leaves}

    def weigh(data: bytes) -> bytes:
        for name, weight in weights.items():
            data = set_weight(data, name, weight)
        return data

    # Where he gave no weights, a controller's are not replaced by this either.
    given = all(b"<weight>" in found[0] for name in leaves if (found := leaf_element(name).search(pristine)))
    return weigh if given else None


def move(data: bytes, name: str, parent: str) -> bytes:
    """A leaf below another parent, as it is written."""
    leaf = leaf_element(name)
    found = leaf.search(data)
    assert found is not None
    rest = leaf.sub(b"", data)
    # A parent is written with its weight, and the queues below it after that.
    end = rest.index(b"</weight>", rest.index(b'<queue name="' + parent.encode() + b'"')) + len(b"</weight>")
    return rest[:end] + b"\n    " + found[0].strip() + rest[end:]


def set_limit(data: bytes, name: str, limit: int) -> bytes:
    """Another maxRunningApps for a leaf that has one."""
    found = leaf_element(name).search(data)
    if found is None or b"<maxRunningApps>" not in found[0]:
        return data
    new = re.sub(rb"<maxRunningApps>\d+<", b"<maxRunningApps>%d<" % limit, found[0])
    return data[: found.start()] + new + data[found.end() :]


def all_changed(data: bytes) -> bytes:
    """Other weights for leaves, all over."""
    for queue in [queue for queue in read(data).values() if queue.leaf]:
        data = set_weight(data, queue.path.rpartition(".")[2], "6.5")
    return data


def set_weight(data: bytes, name: str, weight: str) -> bytes:
    """Another weight for a leaf that has one."""
    found = leaf_element(name).search(data)
    if found is None or b"<weight>" not in found[0]:
        return data
    new = re.sub(rb"<weight>[^<]*<", b"<weight>%s<" % weight.encode(), found[0])
    return data[: found.start()] + new + data[found.end() :]
