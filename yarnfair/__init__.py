"""Run, compare and write policies from Python: the stable names of yarnfair.

Everything that the commands do is below the package `harness`, whose modules may change from release to release. The
names of this package stay. Importing it is light: what a name needs is loaded when the name is first used.

Examples
--------
>>> import yarnfair
>>> experiment = yarnfair.Experiment(
...     {
...         "experiment": "two-queues",
...         "cluster": {"nodes": [{"count": 2, "memory_mb": 4096, "vcores": 8}]},
...         "queues": {"a": {}, "b": {}},
...         "workloads": {
...             leaf: {
...                 "inline": {
...                     "kind": "sequence",
...                     "am": {"memory_mb": 512},
...                     "submission": {"think_s": 20},
...                     "task": {"demand": {"memory_mb": 1024}, "duration": {"constant_s": seconds}},
...                     "jobs": [{"name": "q", "stages": [{"name": "s", "tasks": 6}]}],
...                     "rounds": 2,
...                 }
...             }
...             for leaf, seconds in (("a", 5), ("b", 8))
...         },
...         "policies": ["fair", "ltrf"],
...     }
... )
>>> experiment.policies
['fair', 'ltrf']
>>> simulation = yarnfair.simulate(experiment, "ltrf", seed=1)
>>> len(simulation.jobs)
4
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.base.errors import CallError, InputError, RunInvalid, RunTimedOut, YarnfairError
    from harness.model.plan import Order, Plan
    from harness.model.resources import Resource
    from harness.model.snapshot import QueueView, Snapshot
    from harness.policies.base import LedgerView, Policy, flag, number, text, word
    from yarnfair.assessing import Assessment, assess
    from yarnfair.checking import Validation, validate
    from yarnfair.comparing import Comparison, compare
    from yarnfair.experiments import Experiment, Simulation, run, simulate
    from yarnfair.planning import PlannedChange, plan
    from yarnfair.replaying import replay
    from yarnfair.results import Runs, load, load_runs

__all__ = [
    "Assessment",
    "CallError",
    "Comparison",
    "Experiment",
    "InputError",
    "LedgerView",
    "Order",
    "Plan",
    "PlannedChange",
    "Policy",
    "QueueView",
    "Resource",
    "RunInvalid",
    "RunTimedOut",
    "Runs",
    "Simulation",
    "Snapshot",
    "Validation",
    "YarnfairError",
    "assess",
    "compare",
    "flag",
    "load",
    "load_runs",
    "number",
    "plan",
    "replay",
    "run",
    "simulate",
    "text",
    "validate",
    "word",
]

#: The module that defines each name.
_PLACES = {
    "yarnfair.assessing": ("Assessment", "assess"),
    "yarnfair.checking": ("Validation", "validate"),
    "yarnfair.comparing": ("Comparison", "compare"),
    "yarnfair.experiments": ("Experiment", "Simulation", "run", "simulate"),
    "yarnfair.planning": ("PlannedChange", "plan"),
    "yarnfair.replaying": ("replay",),
    "yarnfair.results": ("Runs", "load", "load_runs"),
    "harness.base.errors": ("CallError", "InputError", "RunInvalid", "RunTimedOut", "YarnfairError"),
    "harness.model.plan": ("Order", "Plan"),
    "harness.model.resources": ("Resource",),
    "harness.model.snapshot": ("QueueView", "Snapshot"),
    "harness.policies.base": ("LedgerView", "Policy", "flag", "number", "text", "word"),
}
_PLACE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name == "__version__":
        from harness import __version__

        return __version__
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from harness.base.machine_code import announce_by_default

    announce_by_default()
    found = getattr(importlib.import_module(_PLACE_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
