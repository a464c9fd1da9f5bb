"""The experiment types: by the value of ``kind:`` in an experiment file, which is stored in each run's ``run.json``."""

from __future__ import annotations

from harness.base.extensions import Registry, load

__all__ = ["BY_KEY", "KINDS", "load"]

#: ``kind:`` -> where its `harness.experiments.kind.Kind` is (module:NAME). All are of extensions: a file without
#: ``kind:`` is an experiment on a YARN cluster, unless it has one of the keys in `BY_KEY`.
KINDS = Registry({}, "experiment_types")

#: A top-level key of a file without ``kind:`` -> where the experiment type of files that have the key is.
BY_KEY = Registry({}, "experiment_keys")
