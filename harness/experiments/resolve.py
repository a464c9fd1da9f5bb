"""Resolves an experiment file and the options of a call to runs: `load_experiment`, `variants_of`, `jobs_of`.

All user errors are found here, before anything runs. harness.experiments.run executes the runs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.base.documents import YamlDocument, read_yaml, validated
from harness.base.errors import CallError, InputError, nearest
from harness.experiments.kind import KindVariant, Loaded, hash_of, kind_of
from harness.experiments.loads import QueueLoad, resolved_document, sizes_of
from harness.experiments.policy_file import is_policy_file, read_policy_file
from harness.experiments.selection import (
    check_given,
    check_names,
    chosen,
    expand_seeds,
    first_repeated,
    merge_overrides,
)
from harness.experiments.spec import DEFAULT_SCHEDULER, Experiment, PolicyUse, combinations
from harness.jobs.workloads import build_jobs, check_scale, load_workload, workload_of
from harness.jobs.workloads.base import Scale
from harness.model.brought import named, names
from harness.model.data import data_path
from harness.model.jobs import JobSpec, NodeSpec
from harness.model.plan import Mode, hadoop_policy
from harness.model.queues import NEVER_MS, ROOT, AllocationFile, QueueSettings, ResourceLimit
from harness.model.resources import Resource, increments
from harness.policies.registry import make_policy, settings_of, stock_scheduler
from harness.results.runs import policy_label
from harness.sim.interfaces import simulated
from harness.sim.scheduler_file import SchedulerFile


@dataclass(frozen=True, slots=True)
class Variant(KindVariant):
    """One run of an experiment: a policy with settings, where it acts, and the seed."""

    mode: Mode
    period_s: float
    in_rm: bool = False
    poll: bool = False
    scheduler: str = DEFAULT_SCHEDULER

    def of_policy(self) -> dict[str, Any]:
        """Return how the policy acts (period in s, mode, scheduler), without default values."""
        found: dict[str, Any] = {"period_s": self.period_s} if self.mode == "outside" else {}
        found |= {name: True for name in ("in_rm", "poll") if getattr(self, name)}
        return found | ({"scheduler": self.scheduler} if self.scheduler != DEFAULT_SCHEDULER else {})


@dataclass(frozen=True, slots=True)
class LoadedExperiment(Loaded):
    """An experiment file with its workloads read."""

    spec: Experiment
    loads: tuple[QueueLoad, ...]
    weights: Mapping[str, float]  # by full path, including parents
    leaves: tuple[str, ...]  # full paths, in the order of the file
    resolved: Mapping[str, Any]  # all but policies and seeds, with defaults; `hash` is its sha-256
    #: The scheduler's file whose queues and settings replace the experiment's; its loads then name queues as clients
    #: do.
    scheduler_file: SchedulerFile | None = None

    def described(self) -> dict[str, Any]:
        """Return the experiment's entries of ``run.json`` besides the hash."""
        capacity = self.capacity
        return {
            "capacity_mb": capacity.memory_mb,
            "capacity_vcores": capacity.vcores,
            "experiment": dict(self.resolved),
        }

    @property
    def capacity(self) -> Resource:
        """Return the sum of all nodes, including those that join late or leave early."""
        groups = self.spec.cluster.nodes
        return Resource(sum(g.memory_mb * g.count for g in groups), sum(g.vcores * g.count for g in groups))


def experiment_path(name: str) -> Path:
    """Return the file that a user names: a path, or the name of one of the project's experiments.

    Raises InputError if there is neither.
    """
    return named("experiments", name)


def load_experiment(name: str, document: YamlDocument | None = None) -> LoadedExperiment:
    """Read an experiment and the workloads that it uses. ``document``: its file, if it has been read already.

    Raises InputError, with file, line and key, for unknown keys and queues, demands that fit no node, another
    experiment type and other errors.
    """
    if document is None:
        document = read_yaml(experiment_path(name))
    if isinstance(document.data, dict) and document.data.get("kind") is not None:
        what = f"an experiment of kind {kind_of(document).name}, which only `yarnfair run` and campaigns take"
        raise InputError(what, where=document.where(("kind",)), hint="give one of a YARN cluster (without `kind`)")
    spec = validated(Experiment, document)
    queues = spec.all_queues()
    weights = {ROOT: 1.0, **{path: queue.weight for path, queue in queues.items()}}
    leaves = [path for path, queue in queues.items() if not queue.children]
    loads = tuple(_load(document, spec, key, leaves) for key in spec.workloads)
    twice = first_repeated([load.queue for load in loads])
    if twice is not None:
        raise InputError(f"queue {twice} has two workloads", where=document.where(("workloads",)), hint="keep one")
    _check_demands(spec, document, loads)
    resolved = resolved_document(spec, loads)
    digest = hash_of(resolved, ensure_ascii=False)
    return LoadedExperiment(spec, document, digest, loads, weights, tuple(leaves), resolved)


def _load(document: YamlDocument, spec: Experiment, key: str, leaves: Sequence[str]) -> QueueLoad:
    at = ("workloads", key)
    full = key if key.startswith("root.") else f"root.{key}"
    found = [leaf for leaf in leaves if leaf == full] or [leaf for leaf in leaves if leaf.endswith(f".{key}")]
    if len(found) != 1:
        known = ", ".join(leaf.removeprefix("root.") for leaf in leaves)
        what = f"no leaf queue {key!r}" if not found else f"queue {key!r} is not unique"
        raise InputError(what, where=document.where(at), hint=f"give one of {known}")
    use = spec.workloads[key]
    if use.inline is not None:
        inline = document.data["workloads"][key]["inline"]
        folder = Path(document.file).parent
        workload = workload_of(document, folder=folder, data=inline, at=(*at, "inline"))
    else:
        assert use.use is not None
        workload = load_workload(
            _workload_path(use.use, document, at), document.data["workloads"][key]["but"] if use.but else {}
        )
    scale = Scale(use.scale.tasks, use.scale.durations, use.scale.gaps)
    check_scale(workload.spec, scale, document.where((*at, "scale", "tasks")))
    return QueueLoad(found[0], workload, use.start_s, scale)


def _workload_path(use: str, document: YamlDocument, at: tuple[str, ...]) -> Path:
    """Return a file beside the experiment (``*.yaml``), or one of the project's by name (``facebook``).

    A name may have a folder, as in ``contended/spark``.
    """
    if "\0" in use:
        raise InputError("a workload's name with a NUL in it", where=document.where(at), hint="correct it")
    if use.endswith((".yaml", ".yml")):
        path = Path(document.file).parent / use
    else:
        path = data_path("workloads", *(use.split("/") if "/" in use else (use, use)))
        path = path.with_name(path.name + ".yaml")
    if not path.is_file():
        what = f"no workload {use!r} (looked for {path})"
        close = nearest(use, names("workloads"))
        hint = f"did you mean {close!r}?" if close else "give a file ending in .yaml, or a name like facebook"
        raise InputError(what, where=document.where(at), hint=hint)
    return path


def _check_demands(spec: Experiment, document: YamlDocument, loads: Sequence[QueueLoad]) -> None:
    """Check that every container fits on some node after the Fair Scheduler has rounded it up to its increments."""
    step, nodes = increments(spec.conf), [Resource(group.memory_mb, group.vcores) for group in spec.cluster.nodes]
    largest = max(nodes, key=lambda node: (node.memory_mb, node.vcores))
    for load in loads:
        for what, size in sizes_of(load):
            rounded = Resource(
                -(-size.memory_mb // step.memory_mb) * step.memory_mb, -(-size.vcores // step.vcores) * step.vcores
            )
            if not any(rounded.fits_in(node) for node in nodes):
                raise InputError(
                    f"{what} asks for {size.memory_mb} MB, {size.vcores} vcores ({rounded.memory_mb} MB after "
                    f"rounding), which no node can hold: the largest has {largest.memory_mb} MB, "
                    f"{largest.vcores} vcores",
                    where=load.workload.where().removesuffix(": "),
                    hint="ask for less, or give the cluster larger nodes",
                )


def allocation_file(spec: Experiment) -> AllocationFile:
    """Return the Fair Scheduler's initial allocation file; its weights are the entitlements."""
    queues = spec.all_queues()
    settings: dict[str, QueueSettings] = {}
    # In the order in which Hadoop reads the file: a parent after its descendants.
    parents = [ROOT]
    for path, queue in queues.items():
        limits = (queue.min_resources, queue.max_resources)
        least, most = (Resource(x.memory_mb, x.vcores) if x is not None else None for x in limits)
        settings[path] = QueueSettings(
            path,
            weight=queue.weight,
            min_resources=least,
            max_resources=ResourceLimit(most) if most is not None else None,
            max_running_apps=queue.max_running_apps,
            max_am_share=queue.max_am_share,
            scheduling_policy=hadoop_policy(queue.scheduling_policy),
        )
        if queue.children:
            parents.insert(parents.index(path.rpartition(".")[0]), path)
    timeout_s = spec.min_share_preemption_timeout_s
    return AllocationFile(
        settings=settings,
        configured_leaves=tuple(path for path, queue in queues.items() if not queue.children),
        configured_parents=tuple(parents),
        queue_max_am_share_default=spec.max_am_share,
        default_min_share_preemption_timeout_ms=NEVER_MS if timeout_s is None else round(timeout_s * 1000),
    )


def nodes_of(spec: Experiment) -> tuple[NodeSpec, ...]:
    """Return the cluster's nodes, numbered consecutively: node-0001 ..."""
    each = [group for group in spec.cluster.nodes for _ in range(group.count)]
    return tuple(
        NodeSpec(
            f"node-{n:04d}",
            one.memory_mb,
            one.vcores,
            one.rack,
            one.speed,
            one.join_s,
            one.leave_s,
            tuple(change.change() for change in one.changes or ()),
        )
        for n, one in enumerate(each, start=1)
    )


def jobs_of(experiment: LoadedExperiment, seed: int) -> tuple[Iterable[JobSpec], int | None]:
    """Return all jobs of one run, and their number.

    The number is None, and the jobs are in order of submission, if a trace is read during the run.
    """
    built = [
        build_jobs(load.workload, queue=load.queue, seed=seed, start_s=load.start_s, scale=load.scale)
        for load in experiment.loads
    ]
    listed = [job for jobs in built if isinstance(jobs, list) for job in jobs]
    all_listed = all(isinstance(jobs, list) for jobs in built)
    twice = first_repeated([job.id for job in listed])
    if twice is None and not all_listed:
        # The names of jobs in a trace that is read during the run depend on its leaf's name.
        twice = first_repeated([load.queue.rpartition(".")[2] for load in experiment.loads])
    if twice is not None:
        listed = list(map(with_queue, listed))
        built = [list(map(with_queue, jobs)) if isinstance(jobs, list) else map(with_queue, jobs) for jobs in built]
    file = experiment.scheduler_file
    if file is not None:
        if not all_listed:
            return file.jobs(_merged(built)), None
        listed = list(file.jobs(sorted(listed, key=lambda job: job.submit_s)))
    return (listed, len(listed)) if all_listed else (_merged(built), None)


def with_queue(job: JobSpec) -> JobSpec:
    """Return the job with its queue in its name, for leaves of the same name under two parents."""
    after = f"{job.queue}/{job.after_job}" if job.after_job is not None else None
    return replace(job, id=f"{job.queue}/{job.id}", after_job=after)


def _merged(built: Sequence[Iterable[JobSpec]]) -> Iterator[JobSpec]:
    ordered = [sorted(jobs, key=lambda job: job.submit_s) if isinstance(jobs, list) else jobs for jobs in built]
    return iter(heapq.merge(*ordered, key=lambda job: job.submit_s))


# --- variants ---------------------------------------------------------------------------------------------------------


def split_policy(text: str) -> tuple[str, Mode | None]:
    """Split ``ltrf@outside`` into (``ltrf``, ``outside``); without ``@`` the mode is None.

    Raises CallError for another mode.
    """
    name, at, mode = text.rpartition("@")
    if not at:
        return text, None
    if mode == "inside":
        return name, "inside"
    if mode == "outside":
        return name, "outside"
    raise CallError(f"no mode {mode[:40]!r}", where=f"--policy {text[:80]}", hint="write @inside or @outside")


def variants_of(
    experiment: LoadedExperiment,
    *,
    policies: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    seeds: Sequence[int] = (),
) -> list[Variant]:
    """Return an experiment's runs: each policy with each seed.

    Parameters
    ----------
    policies
        Names of the call (``ltrf``, ``ltrf@outside``); none: all policies of the file. A name selects the file's entry
        with exactly this name, otherwise its entries of this policy and mode under other names, otherwise the policy
        with its default settings.
    settings
        Settings of the call. Each applies to every policy that has it; ``period`` (or ``period_s``) applies to policies
        from outside.
    seeds
        Seeds of the call; none: the file's.

    Raises
    ------
    CallError
        A policy or setting of the call is wrong.
    InputError
        A policy or setting of the file is wrong.
    """
    uses = _called(experiment, policies)
    given = dict(settings or {})
    period = given.pop("period", None) or given.pop("period_s", None)
    found: list[Variant] = []
    for where, use in uses:
        for varied in combinations(use.vary):
            own = {**use.settings, **varied}
            period_s = _period(period if period is not None else own.pop("period_s", None), use, experiment, where)
            own.pop("period_s", None)
            _check(use.policy, own, where)
            own = merge_overrides(own, given, settings_of(use.policy))
            _check(use.policy, own, "--policy")
            if use.mode == "outside":
                make_policy(use.policy, own).check_outside()
            shown = {key: own.get(key, value) for key, value in varied.items()}
            if use.mode == "outside" and ("period_s" in varied or period is not None):
                shown["period_s"] = period_s
            scheduler = use.scheduler or experiment.spec.scheduler
            _check_scheduler(use.policy, scheduler, where)
            if scheduler != DEFAULT_SCHEDULER and experiment.spec.slots is not None:
                what = "slots are MRv1's: no scheduler of YARN gives them out"
                raise InputError(what, where=where, hint=f"leave out scheduler: {scheduler}")
            if scheduler != experiment.spec.scheduler:
                shown["scheduler"] = scheduler
            name = _name(use, shown)
            found.append(Variant(name, use.policy, use.mode, own, 0, period_s, use.in_rm, use.poll, scheduler))
    known = {key for _, use in uses for key in settings_of(use.policy)}
    check_given(given, known, "see docs/reference/policies.md", [use.policy for _, use in uses])
    if period is not None and all(variant.mode == "inside" for variant in found):
        raise CallError("no policy from outside runs", where="--set period", hint="add --policy NAME@outside")
    # Identical entries give one run; entries that differ in anything must have different names.
    found = list({str(replace(v, settings=dict(sorted(v.settings.items())))): v for v in found}.values())
    check_names([variant.name for variant in found], experiment.document)
    return expand_seeds(found, seeds, experiment.spec.seed)


def _called(experiment: LoadedExperiment, policies: Sequence[str]) -> list[tuple[str, PolicyUse]]:
    def own_name(use: PolicyUse) -> str:
        return use.name or (f"{use.policy}@outside" if use.mode == "outside" else use.policy)

    names = {own_name(use) for use in experiment.spec.policies}

    def fits(use: tuple[str, PolicyUse], text: str) -> bool:
        # An entry with exactly this name comes first: `ltrf` does not also mean an LTRF entry under another name.
        if text in names:
            return own_name(use[1]) == text
        name, mode = split_policy(text)
        return use[1].policy == name and use[1].mode == (mode or "inside")

    def otherwise(text: str) -> tuple[str, PolicyUse]:
        name, mode = split_policy(text)
        return "--policy", _called_use(name, mode or "inside")

    of_file = [(experiment.document.where(("policies", at)), use) for at, use in enumerate(experiment.spec.policies)]
    return chosen(of_file, policies, fits, otherwise)


def _called_use(name: str, mode: Mode) -> PolicyUse:
    """Return a policy that only the call names: by name, or as a policy configuration."""
    if not is_policy_file(name):
        return PolicyUse(policy=name, mode=mode)
    found = read_policy_file(Path(name))
    stem = "".join(c if c.isalnum() or c in "._-" else "_" for c in Path(name).stem)
    return PolicyUse(
        policy=found.policy,
        mode=mode,
        settings=found.settings,
        name=f"{stem}@outside" if mode == "outside" else stem,
    )


def _period(given: Any, use: PolicyUse, experiment: LoadedExperiment, where: str) -> float:
    value = given if given is not None else use.period_s if use.period_s is not None else experiment.spec.period_s
    try:
        period_s = float(value)
    except ValueError:
        period_s = float("nan")
    if not 0.1 <= period_s <= 1e6:
        raise CallError(f"period {value} is not from 0.1 to 1000000 seconds", where=where, hint="correct it")
    return period_s


def _check(policy: str, settings: Mapping[str, object], where: str) -> None:
    """Create the policy once, so that a wrong setting is found before anything runs."""
    try:
        make_policy(policy, settings)
    except CallError as error:
        if where == "--policy":
            raise
        raise _mistake(error.what, where, error.hint) from None


def _mistake(what: str, where: str, hint: str | None) -> InputError | CallError:
    """Return an InputError (exit code 1) for a position in the file, or a CallError (exit code 2) for the call."""
    return (CallError if where == "--policy" else InputError)(what, where=where, hint=hint)


def _check_scheduler(policy: str, scheduler: str, where: str) -> None:
    """Check that a stock policy is used with its own scheduler."""
    own = stock_scheduler(policy)
    if own is not None and own != scheduler:
        there = simulated(scheduler)
        what = f"policy {policy} runs on the {simulated(own).title}, not on the {there.title}"
        hint = f"take policy {there.stock_policy}, or write scheduler: {own}"
        raise _mistake(what, where, hint)


def _name(use: PolicyUse, chosen: Mapping[str, object]) -> str:
    stem = policy_label(use.policy)
    base = use.name or (f"{stem}@outside" if use.mode == "outside" else f"{stem}@rm" if use.in_rm else stem)
    if use.poll and use.name is None:
        base += "-poll"
    parts = [f"{key}={_short(value)}" for key, value in chosen.items()]
    return ",".join([base, *parts])


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in str(value))[:40]
