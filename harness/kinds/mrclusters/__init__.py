"""MR-clusters and layouts of nodes (FAWKES; docs/reference/fawkes.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.base.documents import YamlDocument
from harness.experiments.kinds import KindRuns
from harness.kinds.mrclusters.columns import comparison_mr
from harness.kinds.mrclusters.run import load_mr, mr_variants, run_mr


def prepare(
    document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]
) -> KindRuns:
    """What an experiment of this kind is to run."""
    loaded = load_mr(document)
    variants = mr_variants(loaded, policies, settings, seeds)
    return KindRuns(
        loaded.name,
        loaded.hash,
        len(variants),
        lambda folder, on_end: run_mr(loaded, variants, folder, on_end),
        comparison_mr,
    )
