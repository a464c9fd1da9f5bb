"""``yarnfair shares``: the fair shares that the Fair Scheduler would compute for an allocation file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.quick import without_collector
from harness.cli import names
from harness.cli.output import json_option, print_result, say

if TYPE_CHECKING:
    from harness.model.queues import AllocationFile
    from harness.yarn.fair.manager import QueueManager


@click.command()
@click.argument("allocations", type=click.Path(), shell_complete=names.brought("experiments"))
@click.option("--memory-mb", type=click.IntRange(0, 2**63 - 1), required=True, help="Memory of the cluster, MiB.")
@click.option("--vcores", type=click.IntRange(0, 2**31 - 1), required=True, help="Virtual cores of the cluster.")
@click.option(
    "--active",
    "active",
    multiple=True,
    metavar="Q[,Q...]",
    help="Leaf queues that have runnable applications; their ancestors follow. Without it all are active.",
)
@json_option
@without_collector()
def shares(allocations: str, memory_mb: int, vcores: int, active: tuple[str, ...], as_json: bool) -> None:
    """Print the steady and instantaneous fair shares of every queue of ALLOCATIONS, to the megabyte.

    ALLOCATIONS is an allocation file, or a name of `yarnfair list experiments`, for the queues of that experiment.
    Every file that the ResourceManager loads is accepted. Below a parent whose policy is fair, vcores stay 0.
    """
    from harness.model.resources import Resource
    from harness.sim.shares import fair_shares
    from harness.yarn.fair.manager import QueueManager

    manager = QueueManager(_allocations(allocations))
    names = None if not active else _active_leaves(manager, active, allocations)
    tree = manager.tree()
    for refused in tree.refused:
        say(f"{allocations}: the RM does not make queue {refused.path}: {refused.why}")
    found = fair_shares(tree, Resource(memory_mb, vcores), names)
    width = max(len(path) for path in found)
    lines = [f"{'queue':<{width}}  {'steady mb':>12} {'vcores':>7}  {'instant. mb':>12} {'vcores':>7}"]
    for path, share in found.items():
        lines.append(
            f"{path:<{width}}  {share.steady.memory_mb:>12} {share.steady.vcores:>7}"
            f"  {share.instantaneous.memory_mb:>12} {share.instantaneous.vcores:>7}"
        )

    def amount(share: Resource) -> dict[str, int]:
        return {"memory_mb": share.memory_mb, "vcores": share.vcores}

    figures = {
        path: {"steady": amount(share.steady), "instantaneous": amount(share.instantaneous)}
        for path, share in found.items()
    }
    print_result(as_json, figures, lines)


def _allocations(given: str) -> AllocationFile:
    """Return an allocation file that is given by its path, or that of an experiment that is given by its name."""
    from harness.model import brought
    from harness.yarn.fair.parse import read_allocations

    if not Path(given).exists() and given in brought.names("experiments"):
        from harness.experiments.resolve import allocation_file, load_experiment

        return allocation_file(load_experiment(given).spec)
    return read_allocations(given)


def _active_leaves(manager: QueueManager, given: tuple[str, ...], source: str) -> set[str]:
    """Return the paths of the active leaves.

    root.default is created if the file lacks it, as the RM does for an application. An empty text names no queue, so no
    queue is active.
    """
    from harness.base.errors import CallError
    from harness.model.queues import ROOT, ensure_root_prefix

    found: set[str] = set()
    for name in (part.strip() for text in given if text for part in text.split(",")):
        path = ensure_root_prefix(name)
        leaf = manager.leaf(path, create=path == f"{ROOT}.default") if name else None
        if leaf is None:
            leaves = [queue.path for queue in manager.tree().leaves()]
            shown = ", ".join(leaves[:8]) + (", ..." if len(leaves) > 8 else "")
            raise CallError(
                f"--active names {name!r}, which is not a leaf queue of {source}",
                hint=f"its leaves are: {shown}" if leaves else "the file has no leaf queues",
            )
        found.add(leaf)
    return found
