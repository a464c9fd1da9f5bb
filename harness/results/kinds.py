"""Which kinds of experiment there are: by what stands under ``kind:`` in a file, and so in its runs' ``run.json``."""

from __future__ import annotations

import importlib
from typing import Any

#: Where the `harness.experiments.kind.Kind` of each is (module:NAME). A file without ``kind:`` is of a YARN cluster.
KINDS: dict[str, str] = {
    "mr-clusters": "harness.kinds.mrclusters.run:MR_CLUSTERS",
    "mr-layouts": "harness.kinds.mrclusters.run:MR_LAYOUTS",
    "computing-rates": "harness.kinds.rates.run:KIND",
    "cloud": "harness.kinds.pools.run:KIND",
    "vectors": "harness.kinds.vectors.run:KIND",
}


def loaded(place: str) -> Any:
    """What is at ``module:NAME``. A kind is imported when it is asked for: they stand above everything but the CLI."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
