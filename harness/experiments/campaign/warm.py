"""Imports the modules that most simulated cells need, in the server that forks worker processes (harness.base.workers).

The modules are named as text, because experiment types are in a higher layer.
"""

import importlib

from harness.base.quick import collect_rarely

collect_rarely()
for name in ("harness.experiments.yarn", "harness.control.virtual", "harness.results.papers"):
    importlib.import_module(name)
