"""Reads a scheduler's own file for a simulation; its content determines the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.base.errors import InputError
from harness.base.files import read_whole, reading
from harness.experiments.spec import DEFAULT_SCHEDULER
from harness.sim.interfaces import simulated
from harness.sim.scheduler_file import Dropped, Place, SchedulerFile
from harness.sim.schedulers import SCHEDULERS


def file_of(scheduler: str) -> type[SchedulerFile]:
    """Return the file class of a scheduler. Raises InputError for a scheduler without one."""
    found = simulated(scheduler).file
    if found is None:
        raise InputError(f"the {simulated(scheduler).title} has no file of its own", hint="take another scheduler")
    return found


def _kind_of(data: bytes) -> type[SchedulerFile]:
    """Return the class of the scheduler that recognises the file, or else the default one."""
    kinds = (simulated(name).file for name in SCHEDULERS)
    return next((kind for kind in kinds if kind is not None and kind.recognises(data)), file_of(DEFAULT_SCHEDULER))


def read_scheduler_file(
    path: str | Path,
    *,
    conf: Mapping[str, str] | None = None,
    place: Place = "rules",
    drop: bool = False,
    groups: Mapping[str, tuple[str, ...]] | None = None,
) -> SchedulerFile:
    """Read an allocation file or a capacity-scheduler.xml for the simulator.

    Parameters
    ----------
    path
        The file.
    conf
        Properties of yarn-site.xml that belong to it.
    place
        ``rules``: the file's placement rules place applications; ``spread``: applications go to its leaves in turn.
    drop
        Whether to leave out settings that the simulator does not cover.
    groups
        Groups by user, the primary one first, for rules that use groups.

    Raises
    ------
    InputError
        Hadoop refuses the file; or it has settings that the simulator does not cover, and ``drop`` is not set: the
        message names all of them.
    """
    source = str(path)
    with reading(path, "give the path of a readable file"):
        data = read_whole(path)
    kind = _kind_of(data)
    kind.check(data, source)
    file, left = kind.read(data, source, conf or {})
    if left and not drop:
        named_ = "; ".join(one.line() for one in left)
        raise InputError(
            f"the simulator does not cover {len(left)} of its settings: {named_}",
            where=source,
            hint="give --drop to leave them out (the run's record names them), or remove them",
        )
    return replace(file, dropped=tuple(left), place=place, groups=dict(groups or {}))


def left_out(data: bytes, *, source: str, conf: Mapping[str, str] | None = None) -> list[Dropped]:
    """Return the settings of a scheduler's file that the simulator does not cover.

    Parameters
    ----------
    data
        The content of the file.
    source
        The name of the file in messages.
    conf
        Properties of yarn-site.xml that belong to the file.

    Raises
    ------
    InputError
        The file is unreadable, even without these settings.
    """
    return _kind_of(data).read(data, source, conf or {})[1]
