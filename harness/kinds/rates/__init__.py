"""Computing rates and pools (HotCloud 2011; docs/reference/progress-share.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.base.documents import YamlDocument
from harness.experiments.kinds import KindRuns
from harness.kinds.rates.run import comparison_cloud, load_cloud, run_cloud


def prepare(
    document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]
) -> KindRuns:
    """What an experiment of this kind is to run."""
    loaded = load_cloud(document, policies, settings, seeds)
    return KindRuns(
        loaded.name,
        loaded.hash,
        len(loaded.runs),
        lambda folder, on_end: run_cloud(loaded, folder, on_end),
        lambda ended: comparison_cloud(loaded, ended),
    )
