"""Pools of nodes and their cost (HotCloud 2011; docs/reference/progress-share.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.base.documents import YamlDocument
from harness.experiments.kinds import KindRuns
from harness.kinds.pools.real import comparison_docker, load_docker_cloud, run_docker_cloud


def prepare_docker(
    document: YamlDocument,
    policies: Sequence[str],
    settings: Mapping[str, str],
    seeds: Sequence[int],
    progress: Callable[[str], None],
) -> KindRuns:
    """What an experiment of pools is to run on containers."""
    loaded = load_docker_cloud(document, policies, settings, seeds)
    return KindRuns(
        loaded.name,
        loaded.hash,
        loaded.count,
        lambda folder, on_end: run_docker_cloud(loaded, folder, on_end, progress),
        lambda ended: comparison_docker(loaded, ended),
    )
