"""Extension points: how a package adds policies, experiment types, scenarios, commands, schedulers, metrics.

An extension is a package with a constant ``EXTENSION`` of type `Extension`. Two sources are searched:

- every package below ``harness.systems`` (the systems of the papers, which the core never imports by name);
- the entry points of the group ``yarnfair.systems``, each of which names an `Extension` of an installed package, as
  ``my_system = "my_package:EXTENSION"``.

Everything in an `Extension` is named as ``module:attribute`` and is imported when it is first used, so an extension
costs nothing at start-up.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import entry_points
from typing import Any

from harness.base.errors import InputError
from harness.base.quick import collect_at_the_end

#: The entry points of installed packages, each of which names an `Extension`.
ENTRY_POINT_GROUP = "yarnfair.systems"
#: The namespace whose packages are extensions without an entry point.
BUILT_IN = "harness.systems"


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A verb of the command line: where its click command is (``module:attribute``), its one-line help, its group."""

    place: str
    help: str
    group: str = "Research"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """What one package adds. All places are written ``module:attribute``.

    Parameters
    ----------
    name
        The extension's name, for messages.
    policies
        Policy name -> class (`harness.policies.base.Policy`).
    experiment_types
        The value of ``kind:`` in an experiment file -> instance of `harness.experiments.kind.Kind`.
    experiment_keys
        A top-level key of an experiment file without ``kind:`` -> the experiment type of files that have it.
    scenarios
        Families of scenarios on paper (`harness.paper.Family`), tried before the core's own.
    commands
        Verb -> command.
    metrics
        Sequences of `harness.results.metric.Metric`, listed after the core's.
    actuators
        The value of ``actuator:`` in a controller's configuration -> `harness.control.interfaces.SteeredSystem`.
    schedulers
        The value of ``scheduler:`` in an experiment file -> `harness.sim.interfaces.SimulatedScheduler`.
    benchmarks
        Name of a part of ``yarnfair bench`` -> function that measures it.
    """

    name: str
    policies: Mapping[str, str] = field(default_factory=dict)
    experiment_types: Mapping[str, str] = field(default_factory=dict)
    experiment_keys: Mapping[str, str] = field(default_factory=dict)
    scenarios: Sequence[str] = ()
    commands: Mapping[str, CommandEntry] = field(default_factory=dict)
    metrics: Sequence[str] = ()
    actuators: Mapping[str, str] = field(default_factory=dict)
    schedulers: Mapping[str, str] = field(default_factory=dict)
    benchmarks: Mapping[str, str] = field(default_factory=dict)


def load(place: str) -> Any:
    """Import the object at ``module:attribute``."""
    module, _, attribute = place.partition(":")
    if not module.startswith("harness."):
        collect_at_the_end()
    return getattr(importlib.import_module(module), attribute)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return all extensions, the built-in ones first, each source in order of name.

    An installed package that cannot be loaded is reported on standard error and left out, so that it does not take
    every command down with it.
    """
    return (*_built_in(), *_installed())


class Registry(MutableMapping[str, str]):
    """Name -> place (``module:attribute``): the core's table, and what each extension's mapping ``attribute`` adds.

    Extensions are searched when the table is first read, not when the module that defines it is imported: an extension
    may import that module itself. A name that is already taken keeps its first meaning; the extension that repeats it
    is reported on standard error.

    Parameters
    ----------
    core
        The core's own entries, which come first.
    attribute
        The field of `Extension` that adds to them.
    """

    def __init__(self, core: Mapping[str, str], attribute: str) -> None:
        self._core, self._attribute = core, attribute

    @cached_property
    def _table(self) -> dict[str, str]:
        table = dict(self._core)
        for extension in extensions():
            for name, place in getattr(extension, self._attribute).items():
                if table.setdefault(name, place) != place:
                    _report(f"the extension {extension.name} repeats {name!r} ({self._attribute}); its own is not used")
        return table

    def __getitem__(self, name: str) -> str:
        return self._table[name]

    def __setitem__(self, name: str, place: str) -> None:
        self._table[name] = place

    def __delitem__(self, name: str) -> None:
        del self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def _built_in() -> list[Extension]:
    try:
        spec = importlib.util.find_spec(BUILT_IN)
    except ModuleNotFoundError:
        return []
    if spec is None or not spec.submodule_search_locations:
        return []
    names = sorted(found.name for found in pkgutil.iter_modules(spec.submodule_search_locations) if found.ispkg)
    return [_checked(load(f"{BUILT_IN}.{name}:EXTENSION"), name) for name in names]


def _installed() -> list[Extension]:
    found = []
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        collect_at_the_end()
        try:
            found.append(_checked(point.load(), point.value))
        except Exception as error:  # whatever an installed package raises while it is imported
            _report(f"the extension {point.name} ({point.value}) is left out: {type(error).__name__}: {error}")
    return found


def _checked(found: object, where: str) -> Extension:
    if not isinstance(found, Extension):
        raise InputError("is not a harness.base.extensions.Extension", where=where)
    return found


def _report(what: str) -> None:
    print(f"yarnfair: {what}", file=sys.stderr)
