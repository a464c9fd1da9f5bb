"""Orders of single queues: how they divide among their applications or children, by an experiment's file.

Follows LTYARN 6.2.3.
"""

from __future__ import annotations

from harness.base.errors import InputError
from harness.experiments.resolve import LoadedExperiment, Variant
from harness.experiments.spec import Experiment
from harness.model.plan import BY_ACCUMULATED, QueueOrder
from harness.policies.registry import make_policy
from harness.sim.interfaces import simulated


def queue_orders(spec: Experiment) -> dict[str, QueueOrder]:
    """Return queue path -> its own order, for queues that set one."""
    return {
        path: QueueOrder(queue.scheduling_policy, queue.quantum_s, queue.round_s, queue.application_weights)
        for path, queue in spec.all_queues().items()
        if queue.scheduling_policy or queue.quantum_s is not None or queue.round_s or queue.application_weights
    }


def check_orders(experiment: LoadedExperiment, variant: Variant) -> None:
    """Check that a variant can follow the queues' own orders. Raises InputError.

    A parent's own order, or its own rounds, need an order inside the scheduler that compares level by level.
    """
    policy = make_policy(variant.policy, variant.settings)
    ledger = policy.ledger_settings() if variant.mode == "inside" and not variant.in_rm else None
    orders_inside = simulated(variant.scheduler).orders_inside
    by_levels = ledger is not None and not policy.ignores_tree
    for path, queue in experiment.spec.all_queues().items():
        where = experiment.document.where(("queues", *_keys(path)))

        def refuse(what: str, hint: str, where: str = where) -> InputError:
            return InputError(f"{what} (policy {variant.name})", where=where, hint=hint)

        own = queue.quantum_s is not None or queue.round_s is not None
        if queue.min_slots is not None and experiment.spec.slots is None:
            raise refuse("min_slots are of a cluster of map and reduce slots", "give slots, or take min_resources")
        if queue.children:
            if queue.scheduling_policy in BY_ACCUMULATED and not by_levels:
                raise refuse("its children cannot be divided by ltrf", "take naive-hltrf or hltrf, inside")
            if queue.scheduling_policy and policy.ignores_tree and variant.mode == "inside":
                raise refuse("the policy orders leaves against each other, whatever is above them", "take naive-hltrf")
            if own and (not by_levels or queue.scheduling_policy in ("fair", "drf")):
                raise refuse("quantum_s and round_s are of long-term sharing", "leave them out")
            if queue.application_weights:
                raise refuse("application_weights are a leaf's", "leave them out")
        elif queue.application_weights and queue.scheduling_policy not in BY_ACCUMULATED:
            raise refuse("application_weights need scheduling_policy: ltrf", "add that, or leave them out")
        elif queue.round_s is not None and queue.scheduling_policy not in BY_ACCUMULATED:
            raise refuse("round_s needs scheduling_policy: ltrf", "add that, or leave it out")
        elif queue.quantum_s is not None and queue.scheduling_policy not in BY_ACCUMULATED and ledger is None:
            raise refuse("nothing here counts with its quantum_s", "take a long-term policy inside, or leave it out")
        fading = ledger is not None and (ledger.half_life_s is not None or ledger.window_s is not None)
        if queue.round_s is not None and queue.children and fading:
            raise refuse("rounds of its own go with neither half_life nor window", "leave one out")
        if not orders_inside and (own or queue.scheduling_policy in BY_ACCUMULATED):
            raise refuse("policies of queues are the Fair Scheduler's", "leave them out")


def _keys(path: str) -> list[str]:
    names = path.split(".")[1:]
    keys = [names[0]]
    for name in names[1:]:
        keys += ["children", name]
    return keys


def has_own(spec: Experiment) -> str | None:
    """Return a queue whose own order only the simulator's scheduler supports, if there is one."""
    for path, queue in spec.all_queues().items():
        if queue.scheduling_policy in BY_ACCUMULATED or queue.quantum_s is not None or queue.round_s is not None:
            return path
    return None
