"""Pages of runs of other experiment types: each type (harness.results.kinds) has its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.base.errors import InputError
from harness.report.data import Run
from harness.report.findings import Finding, find
from harness.report.heat_maps import heat_map_groups
from harness.report.page import Content, part_of, yarn_content
from harness.results.kinds import KINDS, load


def kind_of(runs: Sequence[Run]) -> Any:
    """Return the type of all runs; None: YARN. Raises InputError for several types or an unknown one."""
    kinds = list(dict.fromkeys(run.kind for run in runs))
    if len(kinds) > 1:
        named = ", ".join(sorted(str(kind or "YARN's queues") for kind in kinds))
        where = next(str(run.path) for run in runs if run.kind != kinds[0])
        raise InputError(f"runs of different kinds ({named})", where=where, hint="make a report of each kind")
    if not kinds or kinds[0] is None:
        return None
    if kinds[0] not in KINDS:
        hint = "`yarnfair compare` knows every run directory"
        raise InputError(f"no report for runs of kind {kinds[0][:60]}", where=str(runs[0].path), hint=hint)
    return load(KINDS[kinds[0]])


def content_of(runs: Sequence[Run]) -> Content:
    """Return the content of the page of these runs. Raises InputError as `kind_of`, or for damaged tables."""
    kind = kind_of(runs)
    if kind is None:
        return yarn_content(runs)
    content: Content = kind.content(runs)
    # A type draws its own charts over one setting; heat maps over two varying settings are the same for all types.
    over_two = part_of("settings", "Over the settings", heat_map_groups(runs))
    return replace(content, parts=[*content.parts, over_two]) if over_two.groups else content


def findings_of(runs: Sequence[Run]) -> list[Finding]:
    """Return what these runs show about the findings of their paper."""
    kind = kind_of(runs)
    return find(runs) if kind is None else list(kind.findings([run for run in runs if run.counts]))
