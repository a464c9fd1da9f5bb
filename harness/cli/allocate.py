"""``yarnfair allocate``: a scenario on paper, who gets what, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import InputError
from harness.cli.output import json_option, print_json

if TYPE_CHECKING:
    from harness.policies.allocate import Allocation
    from harness.policies.base import Policy
    from harness.policies.rates_scenario import Fields
    from harness.policies.scenario import Reader
    from harness.policies.vector_table import VectorAnswer

WIDTH = 80


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--policy", "policy_name", required=True, metavar="P", help="static, fair, drf, fifo, ltrf, ...")
@click.option("--set", "sets", multiple=True, metavar="K=V", help="A setting of the policy; may be repeated.")
@json_option
def allocate(scenario: Path, policy_name: str, sets: tuple[str, ...], as_json: bool) -> None:
    """Allocate SCENARIO (YAML) under a policy, in exact arithmetic.

    Each step is filled unit by unit. The format of scenarios: docs/reference/scenario.md; policies and their settings:
    docs/reference/policies.md.
    """
    from harness.policies import make_policy
    from harness.policies.allocate import Allocation
    from harness.policies.allocate import allocate as on_paper
    from harness.policies.dynamicmr_scenario import allocate_slots, is_slots, read_slots
    from harness.policies.fawkes_paper import ClustersAllocation, allocate_clusters, is_clusters, read_clusters
    from harness.policies.rates_scenario import is_rates
    from harness.policies.registry import read_settings
    from harness.policies.scenario import read_steps, read_top
    from harness.policies.vector_scenario import is_vectors, read_vectors
    from harness.policies.vector_table import divide, vector_table

    settings: dict[str, object] = {}
    if policy_name.endswith((".yaml", ".yml")):
        from harness.experiments.policy_file import read_policy_file

        configured = read_policy_file(Path(policy_name))
        policy_name, settings = configured.policy, dict(configured.settings)
    policy = make_policy(policy_name, settings | read_settings(sets))
    reader, top = read_top(read_text(scenario), str(scenario))
    answer: Allocation | VectorAnswer | ClustersAllocation
    if is_slots(top):
        on_slots = allocate_slots(read_slots(reader, top), policy)
        if as_json:
            print_json(on_slots.document())
        else:
            click.echo(on_slots.table())
        return
    if is_rates(top):
        _allocate_rates(reader, top, policy, str(scenario), as_json)
        return
    try:
        if is_clusters(top):
            answer = allocate_clusters(read_clusters(reader, top), policy)
        elif is_vectors(top):
            answer = divide(read_vectors(reader, top), policy)
        else:
            answer = on_paper(read_steps(reader, top), policy)
    except InputError as error:
        raise InputError(error.what, where=error.where or str(scenario), mend=error.mend) from error
    if as_json:
        print_json(answer.document())
    elif isinstance(answer, ClustersAllocation):
        click.echo(answer.table())
    else:
        click.echo(table(answer) if isinstance(answer, Allocation) else vector_table(answer))


def _allocate_rates(reader: Reader, top: Fields, policy: Policy, source: str, as_json: bool) -> None:
    """Slots of several node types in virtual time."""
    from harness.policies.rates_scenario import answer_document, answer_table, read_rates, slot_chooser
    from harness.sim.rates import simulate_rates

    parsed = read_rates(reader, top)
    choose, calibrate = slot_chooser(policy)
    try:
        document = answer_document(policy, parsed, simulate_rates(parsed, choose, calibrate=calibrate))
    except InputError as error:
        raise InputError(error.what, where=error.where or source, mend=error.mend) from error
    if as_json:
        print_json(document)
    else:
        click.echo(answer_table(document))


def read_text(path: Path) -> str:
    """A user's text file; InputError with the reason where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", where=str(path)) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read: {reason}", where=str(path)) from error


def table(answer: Allocation) -> str:
    """Steps down, leaves across, in blocks that fit 80 columns; totals and counted below."""
    rows: list[tuple[str, dict[str, str]]] = [
        (str(number), {leaf: str(units) for leaf, units in step.items()})
        for number, step in enumerate(answer.steps, start=1)
    ]
    rows.append(("total", {leaf: str(units) for leaf, units in answer.totals.items()}))
    rows.append(("counted", {leaf: f"{float(c):.10g}" for leaf, c in answer.counted.items()}))
    first = max(len("counted"), *(len(label) for label, _ in rows))
    lines = [f"policy {answer.policy}: units per step"]
    block: list[str] = []
    used = first
    blocks: list[list[str]] = []
    widths = {leaf: max(len(leaf), *(len(cells[leaf]) for _, cells in rows)) for leaf in answer.totals}
    for leaf, width in widths.items():
        if block and used + 2 + width > WIDTH:
            blocks.append(block)
            block, used = [], first
        block.append(leaf)
        used += 2 + width
    blocks.append(block)
    for block in blocks:
        lines.append("")
        lines.append("step".ljust(first) + "".join("  " + leaf.rjust(widths[leaf]) for leaf in block))
        for label, cells in rows:
            if label == "total":
                lines.append("-" * (first + sum(2 + widths[leaf] for leaf in block)))
            lines.append(label.ljust(first) + "".join("  " + cells[leaf].rjust(widths[leaf]) for leaf in block))
    return "\n".join(lines)
