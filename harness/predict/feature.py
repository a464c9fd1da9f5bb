"""A feature of a cluster, and what each verb does with it: works, counted but not steered, refused or not tried."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.base.errors import InputError
from harness.experiments.scheduler_file import left_out
from harness.model.queues import AllocationFile, SchedulerName
from harness.sim.scheduler_file import Dropped
from harness.traces.recording import scheduler_properties
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.traps import Trap, fair_traps, find_traps
from harness.yarn.fair.javanum import parse_boolean
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.releases import ASSUMED

Word = Literal["works", "counted but not steered", "refused", "not tried", "unknown"]
Verb = Literal["record", "assess", "whatif", "plan", "usage", "enforce"]
#: The verbs; each is a command.
VERBS: tuple[Verb, ...] = ("record", "assess", "whatif", "plan", "usage", "enforce")
#: Matches the beginning of a property of one queue, up to the queue's name directly below the root.
_OF_QUEUE = re.compile(rf"^({re.escape(PREFIX)})root\.[^.]+(\.)")


@dataclass(frozen=True, slots=True)
class Cell:
    """What one verb does with one feature.

    Parameters
    ----------
    word
        The result.
    why
        What is refused, left out or restricted; "" if there is nothing to explain.
    test
        The test that shows the result, ``path::name``; "" if it was not tried, or if the code itself gives the cell.
    """

    word: Word
    why: str = ""
    test: str = ""

    def text(self) -> str:
        """Return the cell as text."""
        return f"{self.word}: {self.why}" if self.why else self.word


@dataclass(frozen=True, slots=True)
class Cluster:
    """The properties of a cluster that decide which features it has.

    Parameters
    ----------
    scheduler
        The ResourceManager's scheduler.
    values
        The Capacity Scheduler's properties, with their prefix.
    site
        The ResourceManager's own properties (``/conf``).
    hadoop
        Hadoop's release: major and minor number.
    file
        The text of an allocation file; only an example has it.
    version
        Hadoop's full version, as the ResourceManager reports it.
    nodes_gone
        Number of nodes that are lost, decommissioned, being decommissioned or shut down.
    site_shown
        Whether the ResourceManager shows its own properties. If not, features that they decide are unknown.
    whole
        Whether ``values`` has all of the Capacity Scheduler's properties, or only those that the queues show.
    """

    scheduler: SchedulerName
    values: Mapping[str, str] = field(default_factory=dict)
    site: Mapping[str, str] = field(default_factory=dict)
    hadoop: tuple[int, int] = ASSUMED
    file: str = ""
    version: str = ""
    nodes_gone: int = 0
    site_shown: bool = True
    whole: bool = True

    def on(self, name: str, default: bool = False) -> bool:
        """Return whether a switch is on, in the scheduler's properties or else in the ResourceManager's own."""
        return parse_boolean((self.values.get(name) or self.site.get(name) or "").strip(), default)

    def switched(self, end: str) -> bool:
        """Return whether any queue has this switch on."""
        return any(name.endswith(end) and text.strip().lower() == "true" for name, text in self.values.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature of a cluster, which is a row of the table.

    Parameters
    ----------
    key
        Its name in JSON.
    group, title
        Its names in texts for people.
    has
        Returns whether a cluster has it.
    example
        A cluster that has it, and nothing else that `enforce` warns of.
    traps
        The names of the traps of `enforce` that are about it.
    uncovered
        The simulator's name for it (`Dropped.what`), if the simulator does not cover it.
    played_without
        Whether it changes the scheduler's decisions but is not simulated. A replay then simulates a cluster without it.
    told
        What a verb does about that, if a recording has the feature; empty: no recording has it.
    shown
        The cells of verbs for which the code itself gives none.
    """

    key: str
    group: str
    title: str
    has: Callable[[Cluster], bool]
    example: Cluster
    traps: tuple[str, ...] = ()
    uncovered: str = ""
    played_without: bool = False
    told: str = ""
    shown: Mapping[Verb, Cell] = field(default_factory=dict)

    def cell(self, verb: Verb, cluster: Cluster | None = None) -> Cell:
        """Return what a verb does with the feature on a given cluster, which has it (None: on the example)."""
        found: Cell | None = None
        if verb == "enforce":
            found = self._enforced(self.example if cluster is None else cluster)
        elif verb in ("whatif", "plan"):
            found = self._simulated(cluster)
        if found is None and self.played_without and verb in ("assess", "whatif", "plan") and not self._recorded():
            found = Cell(
                "counted but not steered", self.told or f"a recording does not have it: played without {self.title}"
            )
        return found or self.shown.get(verb, Cell("not tried"))

    def _enforced(self, cluster: Cluster) -> Cell | None:
        """Return the cell that the traps of `enforce` give; None if `enforce` supports it without restriction."""
        try:
            found = enforce_traps(cluster)
        except InputError as error:
            return Cell("refused", error.what)
        # A trap with a bound (`Trap.preemption`) is no restriction: `enforce` keeps shares where they start no
        # preemption.
        own = [trap for trap in found if trap.name in self.traps and trap.preemption is None]
        for trap in own:
            if trap.blocking:
                return Cell("refused", f"{trap.what}; {trap.hint} (or `accept: [{trap.name}]`)")
        return Cell("counted but not steered", own[0].what) if own else None

    def _simulated(self, cluster: Cluster | None = None) -> Cell | None:
        """Return the cell for a scheduler's file with this feature; None if the simulator covers it.

        For a given cluster, the cell names a property of that cluster's queues.
        """
        try:
            own = self._uncovered(self.example)
        except InputError as error:
            return Cell("refused", error.what)
        if not own:
            return None
        name = own[0].name
        if cluster is not None:
            # The example's queues do not exist on this cluster.
            name = _OF_QUEUE.sub(r"\g<1>QUEUE\g<2>", name)
            # Other errors in the cluster's own configuration are not about this feature.
            with contextlib.suppress(InputError):
                if cluster.values:
                    here = self._uncovered(cluster)
                    if here:
                        own, name = here, here[0].name
                    elif self.played_without and cluster.whole:
                        # It is on by Hadoop's default, which a scheduler's file does not tell the simulator.
                        return None
        more = f" and {len(own) - 1} more" if own[1:] else ""
        return Cell("refused", f"a scheduler's file with {name}{more} ({own[0].what}; `--drop` leaves it out)")

    def _uncovered(self, cluster: Cluster) -> list[Dropped]:
        """Return the settings of a cluster that are this feature's and that the simulator does not cover."""
        text = cluster.file or render_properties(
            {name.removeprefix(PREFIX): value for name, value in cluster.values.items()}
        )
        left = left_out(text.encode(), source="FILE", conf=dict(cluster.site))
        return [one for one in left if one.what == self.uncovered]

    def _recorded(self) -> bool:
        """Return whether the first line of a recording has any of the example's settings."""
        return bool(scheduler_properties(self.example.site))


def enforce_traps(cluster: Cluster) -> tuple[Trap, ...]:
    """Return the traps that `enforce` finds on a cluster before it writes.

    Raises InputError if it cannot steer the cluster's queues at all.
    """
    if cluster.scheduler == "fair":
        file = parse_allocations(cluster.file.encode(), source="FILE") if cluster.file else AllocationFile()
        return fair_traps(cluster.hadoop, cluster.site if cluster.site_shown else None, file)
    tree = queue_tree(cluster.values, source="its configuration")
    return find_traps(cluster.values, cluster.site if cluster.site_shown else None, tree, cluster.hadoop)
