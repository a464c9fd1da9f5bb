"""Experiments that say their ``kind``: which rooms read, run and compare them. They are simulated, and not YARN's (but
pools, which also run on containers).

An experiment file without a kind is harness.experiments.spec's. A kind's rooms are imported when it is asked for.
"""

from __future__ import annotations

import importlib
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
    prepare: Any = importlib.import_module("harness.kinds.pools").prepare_docker
    found: KindRuns = prepare(document, policies, settings, seeds, progress)
    return found


def _lazily(module: str) -> Prepare:
    def prepare(
        document: YamlDocument, policies: Sequence[str], settings: Mapping[str, str], seeds: Sequence[int]
    ) -> KindRuns:
        found: KindRuns = importlib.import_module(module).prepare(document, policies, settings, seeds)
        return found

    return prepare


KINDS: Mapping[str, Prepare] = {
    "mr-clusters": _lazily("harness.kinds.mrclusters"),
    "mr-layouts": _lazily("harness.kinds.mrclusters"),
    "computing-rates": _lazily("harness.kinds.rates"),
    "cloud": _lazily("harness.kinds.rates"),
    "vectors": _lazily("harness.kinds.vectors"),
}
