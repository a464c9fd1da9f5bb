"""Pages of runs of another kind than YARN's: which page. Each is in its kind's folder (harness.kinds)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from harness.base.errors import InputError
from harness.report.data import Run
from harness.report.findings import Finding
from harness.report.page import Content

#: kind -> "module:how its functions are called": ``content_...(runs)`` and ``findings_...(runs)``.
PAGES: dict[str, str] = {
    "mr-clusters": "harness.kinds.mrclusters.page:clusters",
    "mr-layouts": "harness.kinds.mrclusters.page:layouts",
    "computing-rates": "harness.kinds.rates.page:rates",
    "cloud": "harness.kinds.pools.page:pools",
    "vectors": "harness.kinds.vectors.page:vectors",
}


def kind_of(runs: Sequence[Run]) -> str | None:
    """The kind that all runs are of; None: YARN's. InputError when they are of several, or of one without a page."""
    kinds = list(dict.fromkeys(run.kind for run in runs))
    if len(kinds) > 1:
        named = ", ".join(sorted(str(kind or "YARN's queues") for kind in kinds))
        where = next(str(run.path) for run in runs if run.kind != kinds[0])
        raise InputError(f"runs of different kinds ({named})", where=where, mend="make a report of each kind")
    if kinds and kinds[0] is not None and kinds[0] not in PAGES:
        mend = "`yarnfair compare` knows every run directory"
        raise InputError(f"no report for runs of kind {kinds[0][:60]}", where=str(runs[0].path), mend=mend)
    return kinds[0] if kinds else None


def _function(kind: str, what: str) -> Callable[..., object]:
    module, _, name = PAGES[kind].partition(":")
    found: Callable[..., object] = getattr(importlib.import_module(module), f"{what}_{name}")
    return found


def content_of(runs: Sequence[Run]) -> Content | None:
    """What the page of these runs holds; None when they are YARN's. InputError as `kind_of`, or for damaged tables."""
    kind = kind_of(runs)
    if kind is None:
        return None
    content = _function(kind, "content")(runs)
    assert isinstance(content, Content)
    return content


def findings_of(runs: Sequence[Run]) -> list[Finding]:
    """What these runs say about the findings of their paper."""
    kind = kind_of(runs)
    found = _function(kind, "findings")([run for run in runs if run.counts]) if kind is not None else []
    assert isinstance(found, list)
    return found
