"""Several resources on servers (QKnober; docs/reference/vectors.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.base.documents import YamlDocument
from harness.experiments.kinds import KindRuns
from harness.kinds.vectors.run import comparison_vectors, load_vectors, run_vectors


def prepare(
    document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]
) -> KindRuns:
    """What an experiment of this kind is to run."""
    loaded = load_vectors(document, policies, settings, seeds)
    return KindRuns(
        loaded.name,
        loaded.hash,
        len(loaded.variants),
        lambda folder, on_end: run_vectors(loaded, folder, on_end),
        lambda ended: comparison_vectors(loaded, ended),
    )
