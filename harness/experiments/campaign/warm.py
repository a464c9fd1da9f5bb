"""What the server of the worker processes imports (harness.base.workers): whatever most simulated cells need.

By name, since kinds of experiments stand above this room.
"""

import importlib

from harness.base.quick import collect_rarely

collect_rarely()
for name in ("harness.experiments.yarn", "harness.control.virtual", "harness.results.papers"):
    importlib.import_module(name)
