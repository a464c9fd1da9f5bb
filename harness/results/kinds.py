"""The experiment types, by the value of ``kind:`` in an experiment file, which each run's ``run.json`` also stores."""

from __future__ import annotations

from harness.base.extensions import Registry, load

__all__ = ["BY_KEY", "KINDS", "load"]

#: ``kind:`` -> location of its `harness.experiments.kind.Kind` (module:NAME). All come from extensions: a file without
#: ``kind:`` is an experiment on a YARN cluster, unless it has one of the keys in `BY_KEY`.
KINDS = Registry({}, "experiment_types")

#: A top-level key of a file without ``kind:`` -> location of the experiment type that files with this key have.
BY_KEY = Registry({}, "experiment_keys")
