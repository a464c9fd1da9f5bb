"""Experiments that say their ``kind``: which rooms read, run and compare them. They are simulated, and not YARN's (but
pools, which also run on containers).

An experiment file without a kind is harness.experiments.spec's. A kind's rooms are imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.base.documents import YamlDocument


class EndedRun(Protocol):
    """One run that ended."""

    path: Path
    summary: dict[str, Any]
    exit_code: int
    why: str | None

    @property
    def name(self) -> str: ...

    def document(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class KindRuns:
    """What an experiment is to run: ``run(folder, on_end)`` does it, ``compare(ended)`` gives lines of 80 columns."""

    name: str
    hash: str
    count: int
    run: Callable[[Path, Callable[[Any], None]], Sequence[EndedRun]]
    compare: Callable[[Sequence[Any]], list[str]]


Prepare = Callable[[YamlDocument, Sequence[str], Mapping[str, str], Sequence[int]], KindRuns]


def kind_of(document: YamlDocument) -> str | None:
    """The kind that a file of an experiment names, if it is one of these."""
    kind = document.data.get("kind") if isinstance(document.data, dict) else None
    return kind if isinstance(kind, str) and kind in KINDS else None


def _mr(document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]) -> KindRuns:
    """MR-clusters (docs/reference/fawkes.md)."""
    from harness.experiments.mrrun import load_mr, mr_variants, run_mr
    from harness.experiments.mrtables import comparison_mr

    loaded = load_mr(document)
    variants = mr_variants(loaded, policies, settings, seeds)
    return KindRuns(
        loaded.name,
        loaded.hash,
        len(variants),
        lambda folder, on_end: run_mr(loaded, variants, folder, on_end),
        comparison_mr,
    )


def _cloud(
    document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]
) -> KindRuns:
    """Computing rates and pools (docs/reference/progress-share.md)."""
    from harness.experiments.cloud import comparison_cloud, load_cloud, run_cloud

    loaded = load_cloud(document, policies, settings, seeds)
    return KindRuns(
        loaded.name,
        loaded.hash,
        len(loaded.runs),
        lambda folder, on_end: run_cloud(loaded, folder, on_end),
        lambda ended: comparison_cloud(loaded, ended),
    )


def prepare_docker(
    kind: str,
    document: YamlDocument,
    policies: Sequence[str],
    settings: Mapping[str, str],
    seeds: Sequence[int],
    progress: Callable[[str], None],
) -> KindRuns | None:
    """The same on containers, for kinds that can (pools: docs/reference/progress-share.md); None for the others."""
    if kind != "cloud":
        return None
    from harness.experiments.cloud_real import comparison_docker, load_docker_cloud, run_docker_cloud

    loaded = load_docker_cloud(document, policies, settings, seeds)
    return KindRuns(
        loaded.name,
        loaded.hash,
        loaded.count,
        lambda folder, on_end: run_docker_cloud(loaded, folder, on_end, progress),
        lambda ended: comparison_docker(loaded, ended),
    )


def _vectors(
    document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]
) -> KindRuns:
    """Several resources on servers (docs/reference/vectors.md)."""
    from harness.experiments.vector_runs import comparison_vectors, load_vectors, run_vectors

    loaded = load_vectors(document, policies, settings, seeds)
    return KindRuns(
        loaded.name,
        loaded.hash,
        len(loaded.variants),
        lambda folder, on_end: run_vectors(loaded, folder, on_end),
        lambda ended: comparison_vectors(loaded, ended),
    )


KINDS: Mapping[str, Prepare] = {
    "mr-clusters": _mr,
    "mr-layouts": _mr,
    "computing-rates": _cloud,
    "cloud": _cloud,
    "vectors": _vectors,
}
