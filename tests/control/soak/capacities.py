"""The administrator's capacity-scheduler.xml: what `edits` is for an allocation file, with the same names.

What the RM keeps in its own store is shown as such a file too, its properties in order (`stored`).
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Mapping

from tests.control.soak import edits
from tests.control.soak.edits import Queue, Unreadable, float32

__all__ = ["Queue", "Unreadable", "float32"]

PREFIX = "yarn.scheduler.capacity."
#: What a controller may own of a queue, the first of them its share; a limit that the administrator changes.
SHARE, LIMIT = "capacity", "maximum-applications"
_OWNED = (SHARE, "maximum-capacity")
_CAPACITY = re.compile(r"(\d*\.?\d+)(w?)")
_AMOUNTS = re.compile(r"\[memory=(\d+)(?:Mi)?,vcores=(\d+)\]")
#: What these kinds of capacities are written in: whole MiB, and percentages of four decimals.
UNITS = {"absolute": 1.0, "percent": 1e-4}
#: The name of the parent with auto-created queues; the properties that enable this, for percentages and for weights.
CREATING = "made"
_CREATION = ("auto-create-child-queue.enabled", "auto-queue-creation-v2.enabled")
#: The capacity that the template gives to an auto-created queue, by kind.
TEMPLATE = {"%": 20.0, "w": 1.0}


def properties(data: bytes) -> dict[str, str]:
    """Name -> value. Raises Unreadable."""
    top = edits.parsed(data, "configuration")
    found: dict[str, str] = {}
    for element in top:
        name, value = element.findtext("name"), element.findtext("value")
        if element.tag != "property" or not name or value is None or name in found:
            raise Unreadable(f"a property {name} of {element.tag}")
        found[name] = value
    return found


def stored(values: Mapping[str, str]) -> bytes:
    """Properties as a store has them: in order, and nothing beside them."""
    return _text([(name, values[name]) for name in sorted(values)], "")


def _text(values: list[tuple[str, str]], comment: str) -> bytes:
    lines = [f"  <property><name>{name}</name><value>{value}</value></property>" for name, value in values]
    return "\n".join([f"{comment}<configuration>", *lines, "</configuration>\n"]).encode()


def read(data: bytes) -> dict[str, Queue]:
    """The queues of a file, the root first. Raises Unreadable."""
    return dict(_queues(data))


@functools.lru_cache(maxsize=64)
def _queues(data: bytes) -> dict[str, Queue]:
    values = {name.removeprefix(PREFIX): value for name, value in properties(data).items()}
    found: dict[str, Queue] = {}
    waiting = [("root", "")]
    while waiting:
        path, parent = waiting.pop(0)
        inside = [name.strip() for name in values.get(f"{path}.queues", "").split(",") if name.strip()]
        text = values.get(f"{path}.{SHARE}", "100" if path == "root" else "").strip()
        capacity, amounts = _CAPACITY.fullmatch(text), _AMOUNTS.fullmatch(text)
        if (capacity or amounts) is None or (path == "root" and not inside) or path in found:
            raise Unreadable(f"{path} has the capacity {text!r}, and {inside} below it")
        own = {name.rpartition(".")[2]: value for name, value in values.items() if name.rpartition(".")[0] == path}
        rest = {key: value for key, value in own.items() if key not in _OWNED}
        if amounts is not None:
            # Vcores, which the accounts do not count, stay as they are.
            share, rest = float(amounts[1]), {**rest, "kind": "a", "vcores": amounts[2]}
        else:
            assert capacity is not None
            share, rest = float(capacity[1]), {**rest, "kind": capacity[2] or "%"}
        leaf = not inside and not any(values.get(f"{path}.{key}") == "true" for key in _CREATION)
        found[path] = Queue(path, parent, leaf, float32(share), 0, tuple(sorted(rest.items())))
        waiting += [(f"{path}.{name}", path) for name in inside]
    for path in found:
        below = [queue for queue in found.values() if queue.parent == path]
        if len({kind(queue) for queue in below}) > 1:
            raise Unreadable(f"the children of {path} have capacities of two kinds")
        if below and kind(below[0]) == "%" and abs(sum(queue.weight for queue in below) - 100.0) > 0.05:
            raise Unreadable(f"the children of {path} have {sum(queue.weight for queue in below):g} % of it")
        if below and path != "root" and "a" in (kind(below[0]), kind(found[path])):
            _check_amounts(found[path], below)
    return found


def _check_amounts(parent: Queue, below: list[Queue]) -> None:
    """Raises Unreadable where a parent's absolute resources and its children's do not go together."""
    if kind(parent) != kind(below[0]):
        raise Unreadable(f"{parent.path} or its children have absolute resources, and the others have not")
    # Hadoop compares them by the scheduler's calculator, which counts memory alone here.
    if (amount := sum(queue.weight for queue in below)) > parent.weight:
        raise Unreadable(f"the children of {parent.path} have {amount:g} MiB of its {parent.weight:g}")


def kind(queue: Queue) -> str:
    """``w`` for a weight, ``%`` for a percentage, ``a`` for absolute resources."""
    return dict(queue.rest)["kind"]


def vcores(queue: Queue) -> int:
    """Of absolute resources."""
    return int(dict(queue.rest)["vcores"])


def entitlements(data: bytes) -> dict[str, float]:
    """Queue -> its part of the cluster in per cent."""
    queues, parts = read(data), {"root": 100.0}
    for path, queue in queues.items():
        if path != "root":
            whole = sum(other.weight for other in queues.values() if other.parent == queue.parent)
            parts[path] = parts[queue.parent] * queue.weight / whole
    return parts


def number(text: str | None) -> float | None:
    """A capacity's text as a number, of absolute resources the memory in MiB; None for none."""
    if text is None:
        return None
    amounts = _AMOUNTS.fullmatch(text.strip())
    return float(text.strip().rstrip("w") if amounts is None else amounts[1])


only_owned_differ = functools.partial(edits.only_owned_differ, reader=read)


def make(rng: random.Random, form: str, *, whole: tuple[int, int] = (0, 0), creates: bool = False) -> bytes:
    """An administrator's file: some queues, on one level or two.

    ``form``: `weight`, `percent`, or `absolute`; ``whole``: MiB and vcores of the cluster, which absolute resources
    share; ``creates``: one of the queues is a parent with auto-created queues.
    """
    found = [("global-queue-max-application", "10000"), ("maximum-am-resource-percent", "1000")]

    def level(parent: str, names: list[str], whole: tuple[int, int]) -> None:
        found.append((f"{parent}.queues", rng.choice((",", ", ")).join(names)))
        cuts = sorted(rng.sample(range(10, 91, 5), len(names) - 1))
        shares = [end - begin for begin, end in zip([0, *cuts], [*cuts, 100], strict=True)]
        for name, share in zip(names, shares, strict=True):
            path = f"{parent}.{name}"
            text = rng.choice(("{}", "{}.0", " {} ")).format(share)
            if form == "weight":
                text = rng.choice(("1w", "2w", "1.5w", "4.25w"))
            # Amounts as a person writes them.
            part = (whole[0] * share // 100 // 64 * 64, whole[1] * share // 100)
            if form == "absolute":
                text = rng.choice(("[memory={},vcores={}]", "[memory={}Mi,vcores={}]")).format(*part)
            found.append((f"{path}.{SHARE}", text))
            if name == CREATING:
                way, share_of = (f"{path}.leaf-queue-template", f"{TEMPLATE['%']:g}")
                if form == "weight":
                    way, share_of = (f"{path}.auto-queue-creation-v2.leaf-template", f"{TEMPLATE['w']:g}w")
                found.append((f"{path}.{_CREATION[form == 'weight']}", "true"))
                found.extend([(f"{way}.{SHARE}", share_of), (f"{way}.user-limit-factor", "-1")])
                found.append((f"{way}.maximum-am-resource-percent", "1000"))
                continue
            if parent == "root" and rng.random() < 0.25:
                level(path, [f"{name}a", f"{name}b"], part)
                continue
            found.append((f"{path}.user-limit-factor", "-1"))
            # The scheduler's own limit of applications holds for shares that are no amounts only.
            if rng.random() < 0.5 or form == "absolute":
                found.append((f"{path}.{LIMIT}", str(rng.randint(50, 90))))

    names = [f"q{i}" for i in range(rng.randint(2, 4))]
    level("root", [*names, CREATING] if creates else names, whole)
    return _text([(PREFIX + name, value) for name, value in found], '<?xml version="1.0"?>\n<!-- kept by hand -->\n')


def element(rng: random.Random, name: str) -> str:
    """A leaf to be added, of a tree of weights: its name and its weight."""
    return f"{name} {rng.choice(('1w', '2w', '1.5w'))}"


def add(data: bytes, text: bytes) -> bytes:
    """A queue more, below the root."""
    name, weight = text.decode().split()
    path, end = f"{PREFIX}root.{name}", data.rindex(b"</configuration>")
    more = _text([(f"{path}.{SHARE}", weight), (f"{path}.user-limit-factor", "-1")], "")
    lines = more[more.index(b"\n") + 1 : more.rindex(b"</configuration>")]
    siblings = properties(data)[f"{PREFIX}root.queues"]
    return _set(data[:end] + lines + data[end:], f"{PREFIX}root.queues", f"{siblings},{name}")


def regroup(rng: random.Random, pristine: bytes, idle: str, new: str) -> Callable[[bytes], bytes] | None:
    """An administrator's change of a group of siblings, after which their shares still go together: what it makes of a
    file. ``idle``: a leaf that may go ("" none); ``new``: a name that is free."""
    queues = read(pristine)
    how = rng.choice(("shares", "add", "delete", "split") if idle else ("shares", "add"))
    if how in ("delete", "split"):
        parent = next(queue.parent for queue in queues.values() if queue.path.endswith(f".{idle}"))
    else:
        parent = rng.choice(sorted({queue.parent for queue in queues.values() if queue.parent}))
    group = [queue for queue in queues.values() if queue.parent == parent]
    form = kind(group[0])
    # Absolute resources below a queue fit its own, which a controller may have moved.
    if form == "a" and (parent != "root" or how == "split" or not all(queue.leaf for queue in group)):
        return None
    names = [queue.path.rpartition(".")[2] for queue in group]
    if how == "split":
        shares = _shares(rng, [f"{new}x", f"{new}y"], form, group)
        return lambda data: _regrouped(data, f"{parent}.{idle}", shares, [])
    gone = [idle] if how == "delete" else []
    after = [name for name in names if name not in gone] + ([new] if how == "add" else [])
    shares = _shares(rng, after, form, group)
    return lambda data: _regrouped(data, parent, shares, gone)


def delist(rng: random.Random, pristine: bytes, idle: str) -> tuple[Callable[[bytes], bytes], str]:
    """Take a leaf off its parent's list, and leave its properties; return what that makes of a file, and its path."""
    queues = read(pristine)
    path = next(queue.path for queue in queues.values() if queue.path.endswith(f".{idle}"))
    parent = queues[path].parent
    group = [queue for queue in queues.values() if queue.parent == parent and queue.path != path]
    names = [queue.path.rpartition(".")[2] for queue in group]
    shares = _shares(rng, names, "%", group) if kind(group[0]) == "%" else {}

    def change(data: bytes) -> bytes:
        data = _set(data, f"{PREFIX}{parent}.queues", ",".join(names))
        for name, share in shares.items():
            data = _set(data, f"{PREFIX}{parent}.{name}.{SHARE}", share)
        return data

    return change, path


def relist(pristine: bytes, path: str) -> Callable[[bytes], bytes] | None:
    """List a queue again as its properties lie there. None: its share would not go with the others'."""
    queues, (parent, _, name) = read(pristine), path.rpartition(".")
    group = [queue for queue in queues.values() if queue.parent == parent]
    if path in queues or not group or kind(group[0]) != "w":
        return None
    names = [queue.path.rpartition(".")[2] for queue in group]
    return lambda data: _set(data, f"{PREFIX}{parent}.queues", ",".join([*names, name]))


def _shares(rng: random.Random, names: list[str], form: str, group: list[Queue]) -> dict[str, str]:
    """Shares that go together; absolute ones have as much as the group has now."""
    if form == "w":
        return {name: rng.choice(("1w", "2w", "3.7w")) for name in names}
    cuts = sorted(rng.sample(range(5, 100, 5), len(names) - 1))
    if form == "a":
        memory, cores = sum(int(queue.weight) for queue in group), sum(vcores(queue) for queue in group)
        parts = [end - begin for begin, end in zip([0, *cuts], [*cuts, 100], strict=True)]
        texts = [f"[memory={memory * part // 100 // 64 * 64},vcores={cores * part // 100}]" for part in parts]
        return dict(zip(names, texts, strict=True))
    return {
        name: rng.choice(("{}", "{}.0", " {} ")).format(end - begin)
        for name, begin, end in zip(names, [0, *cuts], [*cuts, 100], strict=True)
    }


def _regrouped(data: bytes, parent: str, shares: Mapping[str, str], gone: list[str]) -> bytes:
    """A file in which a queue has these children, with these shares."""
    for name in gone:
        path = re.escape(f"{PREFIX}{parent}.{name}.".encode())
        data = re.sub(rb"\s*<property>\s*<name>" + path + rb"[^<]*</name>.*?</property>", b"", data, flags=re.S)
    known = properties(data)
    more = [] if f"{PREFIX}{parent}.queues" in known else [(f"{PREFIX}{parent}.queues", ",".join(shares))]
    if not more:
        data = _set(data, f"{PREFIX}{parent}.queues", ",".join(shares))
    for name, share in shares.items():
        full = f"{PREFIX}{parent}.{name}"
        if f"{full}.{SHARE}" in known:
            data = _set(data, f"{full}.{SHARE}", share)
        else:
            more += [(f"{full}.{SHARE}", share), (f"{full}.user-limit-factor", "-1")]
            if share.startswith("["):
                more.append((f"{full}.{LIMIT}", "100"))
    end = data.rindex(b"</configuration>")
    lines = _text(more, "")
    return data[:end] + lines[lines.index(b"\n") + 1 : lines.rindex(b"</configuration>")] + data[end:]


def _set(data: bytes, name: str, value: str) -> bytes:
    begin = data.index(f"<name>{name}</name><value>".encode()) + len(f"<name>{name}</name><value>")
    return data[:begin] + value.encode() + data[data.index(b"</value>", begin) :]


def set_limit(data: bytes, name: str, limit: int) -> bytes:
    """Another `LIMIT` for a leaf that has one."""
    return next((_set(data, full, str(limit)) for full in properties(data) if full.endswith(f".{name}.{LIMIT}")), data)


def set_weight(data: bytes, name: str, weight: str) -> bytes:
    """Another weight for a leaf that has one; percentages stay, as one alone cannot be changed."""
    queue = next(queue for queue in read(data).values() if queue.path.endswith(f".{name}"))
    return _set(data, f"{PREFIX}{queue.path}.{SHARE}", f"{weight}w") if kind(queue) == "w" else data


def all_changed(data: bytes) -> bytes:
    """Other shares for leaves, all over."""
    queues = read(data)
    for path in queues:
        siblings = [queue for queue in queues.values() if queue.parent == path]
        if siblings and kind(siblings[0]) == "a" and not all(queue.leaf for queue in siblings):
            continue  # what is below would not fit
        texts = [properties(data)[f"{PREFIX}{queue.path}.{SHARE}"] for queue in siblings]
        for queue, text in zip(siblings, reversed(texts), strict=True):
            data = _set(data, f"{PREFIX}{queue.path}.{SHARE}", "6.37w" if kind(queue) == "w" else text)
    return data
