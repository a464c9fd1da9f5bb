"""A Capacity Scheduler's configuration as a queue tree in YAML, and back: Hadoop's own settings, queue by queue.

Unlike the tree in the Fair Scheduler's terms (`harness.yarn.fair.tree`), from which both schedulers' files can be
rendered, this tree can express everything in a ``capacity-scheduler.xml`` without conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.base.documents import KeyPath
from harness.base.errors import InputError, nearest
from harness.model.queues import ROOT
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import MAX_DEPTH

#: The allowed keys at a tree's top level.
_KEYS = ("scheduler", "settings", "root", "queues", "properties")
_CHILDREN = "children"
_QUEUES = "queues"


def is_capacity_tree(data: object) -> bool:
    """Return whether plain data is a queue tree in the Capacity Scheduler's terms."""
    return isinstance(data, dict) and data.get("scheduler") == "capacity"


def capacity_tree_of(values: Mapping[str, str], *, source: str) -> dict[str, Any]:
    """Return the queue tree of a Capacity Scheduler's properties, as plain data.

    Parameters
    ----------
    values : Mapping[str, str]
        Full name of each property -> its text.
    source : str
        Name of their source in messages.

    Returns
    -------
    dict
        Data from which `read_capacity_tree` returns the same properties. Queues without children have no ``children``.

    Raises
    ------
    InputError
        A queue is listed twice, is its own ancestor, or has a dot in its name.
    """
    own = {name.removeprefix(PREFIX): text for name, text in values.items() if name.startswith(PREFIX)}
    if _QUEUES in own:
        raise InputError(
            f"{PREFIX}{_QUEUES} names queues of nobody", where=source, hint=f"write {PREFIX}{ROOT}.{_QUEUES}"
        )
    entries: dict[str, dict[str, Any]] = {}
    children: dict[str, tuple[str, ...]] = {}

    def grow(path: str, depth: int) -> None:
        names = [name.strip() for name in own.get(f"{path}.{_QUEUES}", "").split(",") if name.strip()]
        for name in names:
            if "." in name or names.count(name) > 1 or depth >= MAX_DEPTH:
                raise InputError(f"queue {name[:60]!r} below {path} makes no sense", where=f"{source}: {path}.queues")
        entries[path], children[path] = {}, tuple(f"{path}.{name}" for name in names)
        for child in children[path]:
            grow(child, depth + 1)

    grow(ROOT, 0)
    settings: dict[str, Any] = {}
    for key, text in own.items():
        path = key
        while (path := path.rpartition(".")[0]) and path not in entries:
            pass
        if not path:
            settings[key] = _scalar(text)
        elif key != f"{path}.{_QUEUES}" or (not children[path] and text):
            entries[path][key.removeprefix(f"{path}.")] = _scalar(text)

    def tree(path: str) -> dict[str, Any]:
        below = {child.removeprefix(f"{path}."): tree(child) for child in children[path]}
        return {**entries[path], **({_CHILDREN: below} if below else {})}

    whole = tree(ROOT)
    found: dict[str, Any] = {"scheduler": "capacity"}
    if settings:
        found["settings"] = settings
    if entries[ROOT]:
        found[ROOT] = entries[ROOT]
    found[_QUEUES] = whole.get(_CHILDREN, {})
    if others := {name: _scalar(text) for name, text in values.items() if not name.startswith(PREFIX)}:
        found["properties"] = others
    return found


def read_capacity_tree(data: Any, where: Callable[[KeyPath], str]) -> dict[str, str]:
    """Return the properties that a queue tree in the Capacity Scheduler's terms describes, by their full names.

    Parameters
    ----------
    data : Any
        The tree as plain data, without cycles.
    where : Callable
        Returns ``file:line`` of a key path.

    Raises
    ------
    InputError
        The data is not a valid tree; the error names file, line and key. Whether Hadoop accepts the properties is not
        checked.
    """
    for key in data:
        if key not in _KEYS:
            close = nearest(str(key), _KEYS)
            hint = f"did you mean {close!r}?" if close else f"one of {', '.join(_KEYS)}"
            raise InputError(f"unknown key {str(key)[:60]!r}", where=where((key,)), hint=hint)
    found: dict[str, str] = {}
    for key, text in _texts(data.get("settings"), where, ("settings",)):
        found[PREFIX + key] = text
    for key, text in _texts(data.get(ROOT), where, (ROOT,)):
        found[f"{PREFIX}{ROOT}.{key}"] = text

    def walk(queues: Any, path: str, at: tuple[Any, ...]) -> None:
        if not isinstance(queues, dict):
            raise InputError("queues are a mapping of names", where=where(at), hint="write NAME: {capacity: 50}")
        for name in queues:
            if not isinstance(name, str) or not name or name != name.strip() or set(name) & set(".,"):
                hint = "write a text without dots and commas (in quotes, where it looks like a number)"
                raise InputError(f"{name!r} is no queue's name", where=where((*at, name)), hint=hint)
        if queues:
            found[f"{PREFIX}{path}.{_QUEUES}"] = ",".join(queues)
        for name, entry in queues.items():
            entry = {} if entry is None else entry
            here = (*at, name)
            if not isinstance(entry, dict):
                raise InputError(
                    f"queue {name} is not a mapping of settings", where=where(here), hint="write {capacity: 50}"
                )
            own = {key: value for key, value in entry.items() if key != _CHILDREN}
            for key, text in _texts(own, where, here):
                found[f"{PREFIX}{path}.{name}.{key}"] = text
            if (below := entry.get(_CHILDREN)) is not None:
                walk(below, f"{path}.{name}", (*here, _CHILDREN))

    if _QUEUES not in data:
        raise InputError("no queues", where=where(()), hint="write queues: {NAME: {capacity: 100}}")
    walk(data[_QUEUES], ROOT, (_QUEUES,))
    for name, text in _texts(data.get("properties"), where, ("properties",)):
        found[name] = text
    return found


def _texts(settings: Any, where: Callable[[KeyPath], str], at: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    if settings is None:
        return
    if not isinstance(settings, dict):
        raise InputError(f"{at[-1]} is not a mapping of settings", where=where(at), hint="write NAME: VALUE")
    for key, value in settings.items():
        if not isinstance(key, str) or not key.strip():
            raise InputError(f"{key!r} is no setting's name", where=where((*at, key)), hint="write Hadoop's name")
        if not isinstance(value, str | int | float | bool):
            raise InputError(
                f"{key[:60]} has no single value", where=where((*at, key)), hint="write a text, a number, true or false"
            )
        yield key, str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(text: str) -> str | int | float | bool:
    """Convert a text to the YAML value that is written with the same characters, if there is one."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text and text not in ("inf", "-inf", "nan"):
            return value
    return text
