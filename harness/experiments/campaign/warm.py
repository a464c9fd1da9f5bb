"""Modules that the server of the worker processes imports (harness.base.workers): what most simulated cells need.

They are named as text, because experiment types are in a higher layer.
"""

import importlib

from harness.base.quick import collect_rarely

collect_rarely()
for name in ("harness.experiments.yarn", "harness.control.virtual", "harness.results.papers"):
    importlib.import_module(name)
