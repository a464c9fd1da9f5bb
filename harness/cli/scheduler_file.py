"""Options of commands that simulate on the queues of a scheduler's own file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError
from harness.cli.output import say

if TYPE_CHECKING:
    from harness.experiments.resolve import LoadedExperiment
    from harness.sim.scheduler_file import SchedulerFile

_OPTIONS = (
    click.option(
        "--scheduler-file",
        metavar="FILE",
        help="Queues, settings and placement rules of this allocation file or capacity-scheduler.xml instead of the "
        "load's own queues (simulator).",
    ),
    click.option(
        "--place",
        type=click.Choice(["rules", "spread"]),
        help="With --scheduler-file: place applications by its rules [default], or spread them over its leaves.",
    ),
    click.option(
        "--drop", is_flag=True, help="With --scheduler-file: leave out the settings that the simulator does not cover."
    ),
    click.option(
        "--group",
        "groups",
        multiple=True,
        metavar="USER=GROUP,...",
        help="With --scheduler-file: a user's groups, the primary one first (repeat it), for rules that ask for them.",
    ),
)


def scheduler_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --scheduler-file, --place, --drop and --group, which a command takes as ``**on_file``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def groups_of(given: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Parse ``USER=GROUP,...`` texts to a mapping from user to groups, the primary one first. Raises CallError."""
    found: dict[str, tuple[str, ...]] = {}
    for text in given:
        user, equals, names = text.partition("=")
        groups = tuple(name.strip() for name in names.split(",") if name.strip())
        if not equals or not user.strip() or not groups:
            raise CallError(f"{text[:60]!r} names no user's groups", where="--group", hint="write USER=GROUP,GROUP")
        found[user.strip()] = groups
    return found


def scheduler_file_of(conf: dict[str, str], on_file: dict[str, Any]) -> SchedulerFile | None:
    """Return the scheduler's file that a call names; None if it names none.

    Raises CallError for options that need a file, and InputError for an invalid file.
    """
    file, place = on_file["scheduler_file"], on_file["place"]
    groups = groups_of(on_file["groups"])
    if file is None:
        for option, given in (("--place", place), ("--drop", on_file["drop"]), ("--group", groups)):
            if given:
                raise CallError(f"{option} goes with --scheduler-file", where=option, hint="give the file, too")
        return None
    from harness.experiments.scheduler_file import read_scheduler_file

    return read_scheduler_file(file, conf=conf, place=place or "rules", drop=on_file["drop"], groups=groups)


def on_scheduler_file(experiment: LoadedExperiment, on_file: dict[str, Any]) -> LoadedExperiment:
    """Return the experiment with the queues of the file that a call names; print remarks on the file.

    Without a file the experiment is returned unchanged.
    """
    from harness.experiments.simulated import texts

    file = scheduler_file_of(texts(experiment.spec.conf), on_file)
    if file is None:
        return experiment
    from harness.experiments.placed import with_scheduler_file

    made, lines = with_scheduler_file(experiment, file)
    for line in lines:
        say(line)
    return made
