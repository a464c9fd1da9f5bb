"""Steps before a variant runs on a real cluster: variants, the policy's first plan, nodes, a warm-up job.

harness.experiments.real.run contains the runs.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.base.errors import CallError, InputError
from harness.control.settings import MAX_RATIO, ControlSettings
from harness.experiments.real.cluster import RealCluster
from harness.experiments.real.curves import LostMaster
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of
from harness.jobs.replay import NO_FAULTS, ReplayOptions
from harness.jobs.submit import Replayer, scheduler_address
from harness.model.jobs import Duration, JobSpec, Stage, TaskFaults
from harness.model.plan import Plan
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import CountedLedger
from harness.policies.registry import make_policy
from harness.sim.setup import MapReduceMaster
from harness.yarn.rmclient import RmClient

#: Number of submissions of a job whose AM is lost each time (harness.experiments.real.curves.LostMaster).
MOST_TRIES = 3
#: Time limit of the warm-up job, seconds. It is long because a busy machine launches slowly; `doctor` finds a broken
#: cluster sooner.
WARM_UP_S = 600.0
#: How long to wait for a node that is missing when a run begins, seconds.
NODES_S = 60.0


def real_variants(variants: Sequence[Variant]) -> list[Variant]:
    """Return variants as a real cluster runs them: stock policies of the Fair Scheduler inside, others from outside.

    If two get the same name, the one that was defined from outside is kept, with its settings.
    """
    given = {variant.name for variant in variants}
    found: dict[str, Variant] = {}
    for variant in variants:
        if variant.mode == "inside" and not variant.in_rm and not _is_stock(variant):
            base, comma, rest = variant.name.partition(",")
            base = base if base.endswith("@outside") else f"{base}@outside"
            name = f"{base}{comma}{rest}"
            if name in given and name != variant.name:
                continue
            variant = replace(variant, mode="outside", name=name)
        found.setdefault(variant.name, variant)
    return list(found.values())


def real_policies(experiment: LoadedExperiment, policies: Sequence[str]) -> list[str]:
    """Return the policies of a call as a real cluster runs them.

    A bare name means the file's ``NAME@outside``, with its settings, if the file has it, the stock Fair Scheduler has
    no such policy and the file has none inside the RM.
    """
    found = []
    for text in policies:
        uses = [use for use in experiment.spec.policies if use.policy == text]
        outside = next((use for use in uses if use.mode == "outside"), None)
        named = any(use.name == text for use in experiment.spec.policies)
        if outside is not None and not named and not any(use.in_rm for use in uses):
            one = Variant(text, text, "outside", dict(outside.settings), 0, experiment.spec.period_s)
            # `variants_of` reports errors in the settings with their position.
            with contextlib.suppress(CallError):
                if _is_stock(one):
                    outside = None
            text = f"{text}@outside" if outside is not None else text
        found.append(text)
    return found


def _is_stock(variant: Variant) -> bool:
    return plan_for(variant, Resource(1, 1), {"root": 1.0, "root.a": 1.0}).order.measure == "stock"


def plan_for(variant: Variant, capacity: Resource, weights: Mapping[str, float]) -> Plan:
    """Return the policy's plan for the empty cluster."""
    parents = {path.rpartition(".")[0] for path in weights}
    queues = {
        path: QueueView(path, path.rpartition(".")[0] or None, path not in parents, weight)
        for path, weight in weights.items()
    }
    return make_policy(variant.policy, variant.settings).plan(Snapshot(0.0, capacity, queues), CountedLedger())


def options_of(experiment: LoadedExperiment, rm: str, seed: int) -> ReplayOptions:
    """Return the options of the AMs of replayed load. ``rm``: the address at which they reach the RM's scheduler."""
    delays = experiment.spec.delays
    return ReplayOptions(
        rm=rm,
        seed=seed,
        am_heartbeat_ms=delays.am_heartbeat_ms or 1000,
        am_response_heartbeats=1 if delays.am_response_heartbeats is None else delays.am_response_heartbeats,
        faults=TaskFaults(**experiment.spec.faults.model_dump()),
        mapreduce=MapReduceMaster(**experiment.spec.mapreduce.model_dump()),
    )


def client_of(cluster: RealCluster) -> RmClient:
    """Return a client of the cluster's ResourceManager, which the caller must close."""
    return RmClient([cluster.address], cluster.http)


def await_nodes(cluster: RealCluster) -> None:
    """Wait for all nodes of a cluster that we started, because a run on fewer would be another experiment.

    Raises InputError.
    """
    wanted = cluster.document.get("nodes")
    if not isinstance(wanted, int):
        return
    with client_of(cluster) as client:
        end = time.monotonic() + NODES_S
        while (running := client.rest.metrics().active_nodes) < wanted:
            if time.monotonic() > end:
                raise InputError(
                    f"{running} of {wanted} nodes run", where=cluster.address.rest, hint="look at the hosts' logs"
                )
            time.sleep(0.5)


def warm_up(experiment: LoadedExperiment, cluster: RealCluster) -> None:
    """Run one small job before the measured time, so that Java loads its classes and a broken cluster is detected."""
    with client_of(cluster) as client:
        shared = cluster.shared
        # Without the experiment's faults.
        options = replace(options_of(experiment, scheduler_address(client.rest), 0), faults=NO_FAULTS)
        load = experiment.loads[0]
        jobs, _ = jobs_of(experiment, experiment.spec.seeds[0])
        am = next(iter(jobs)).am
        tasks = 4 * sum(group.count for group in experiment.spec.cluster.nodes)
        stage = Stage("warm", tasks, am, Duration("constant", value_s=0.5))
        replayer = Replayer(client.rest, shared, options, tag=f"warm-{uuid.uuid4().hex[:8]}", python=cluster.python)
        end = time.monotonic() + WARM_UP_S
        for number in range(1, MOST_TRIES + 1):
            job = JobSpec(f"warm-{number}", load.queue, "mapreduce", am, (stage,))
            identity = replayer.submit(job)
            lost = LostMaster()
            while time.monotonic() < end:
                status = client.rest.app(identity)
                if status.final:
                    if status.final_status == "SUCCEEDED":
                        return
                    why = replayer.record(job.id).why or status.diagnostics
                    raise InputError(
                        f"the first small job ended {status.state}: {' '.join(why.split())[:300]}",
                        where=cluster.address.rest,
                        hint="ask `yarnfair cluster doctor`",
                    )
                if lost.seen(status, time.monotonic()):
                    break
                time.sleep(0.2)
            replayer.kill_all()
        raise InputError("no small job gets through", where=cluster.address.rest, hint="ask `yarnfair cluster doctor`")


def control_settings(experiment: LoadedExperiment, variant: Variant) -> ControlSettings:
    """Return the settings of the controller of a run from outside."""
    actuation = experiment.spec.actuation
    return ControlSettings(
        period_s=variant.period_s,
        entitlements=experiment.weights,
        refresh="poll" if actuation.poll_s or variant.poll else "rpc",
        mode="full" if actuation.max_ratio is None else "bounded",
        max_ratio=actuation.max_ratio or MAX_RATIO,
        # On the Fair Scheduler, shares cannot be kept in a range without preemption, so an experiment that switches
        # preemption on (fawkes-real) accepts it.
        accept=frozenset({"preemption"} if variant.scheduler == "fair" or actuation.accept_preemption else ()),
    )
