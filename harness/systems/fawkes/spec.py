"""Models of the experiment files ``kind: mr-clusters`` and ``mr-layouts``, and the jobs of their workloads.

docs/reference/fawkes.md describes the keys. `harness.systems.fawkes.experiment` runs the experiments.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Name, Positive, Seconds, Strict, YamlDocument, read_yaml, validated
from harness.base.errors import InputError
from harness.experiments.spec import PolicySpec, Scalar, Seeds, Slug, short_for
from harness.model.data import data_path
from harness.systems.fawkes.simulator.model import Constants, MRJob, Profile

Part = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1e4, allow_inf_nan=False)]
Gigabytes = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Nodes = Annotated[int, Field(ge=1, le=100_000)]


class ProfileSpec(Strict):
    """The fields of `harness.systems.fawkes.simulator.Profile` except its name."""

    map_s: Positive
    reduce_s: Seconds = 0.0
    reduce_s_gb: Seconds = 0.0
    read: Part = 0.0
    shuffle: Part = 0.0
    write: Part = 0.0
    shuffled: Ratio = 0.0
    output: Ratio = 0.0
    reduces_gb: Ratio = 0.1

    @model_validator(mode="after")
    def _parts(self) -> Self:
        if self.shuffle + self.write > 1:
            raise ValueError("shuffle and write are parts of one reduce: together 1 at most")
        return self


class AppJobSpec(Strict):
    """One job of an application.

    Its input is the fraction ``part`` of the application's input. It starts when the jobs in ``after`` have ended.
    """

    profile: Name
    part: Annotated[float, Field(gt=0, le=1e3, allow_inf_nan=False)] = 1.0
    after: list[str] = Field(default_factory=list)


class ApplicationSpec(Strict):
    """An application: its input in GB and its jobs, each listed after the jobs that it depends on."""

    input_gb: Gigabytes
    jobs: dict[Name, AppJobSpec] = Field(min_length=1, max_length=10_000)


class Applications(Strict):
    """``workloads/fawkes/applications.yaml``, or a file in the same format."""

    profiles: dict[Name, ProfileSpec] = Field(min_length=1)
    applications: dict[Name, ApplicationSpec] = Field(min_length=1)

    @model_validator(mode="after")
    def _names(self) -> Self:
        for name, application in self.applications.items():
            known: set[str] = set()
            for job, spec in application.jobs.items():
                if spec.profile not in self.profiles:
                    raise ValueError(f"job {job!r} of {name} has profile {spec.profile!r}, which is not in profiles")
                for before in spec.after:
                    if before not in known:
                        raise ValueError(f"job {job!r} of {name} comes after {before!r}, which is not an earlier job")
                known.add(job)
        return self


class SubmitSpec(Strict):
    """Submissions of one application.

    There are ``count`` of them, each with ``size_gb`` GB of input (None: the application's own).
    """

    application: Name
    """Its name in `applications`."""
    size_gb: Gigabytes | None = None
    """Input of each; none: as in its file."""
    count: int = Field(default=1, ge=1, le=100_000)
    """How many submissions."""


class ArrivalSpec(Strict):
    """Arrival process of submissions: all at once (``batch``), uniform (``average``), or in bursts (``bursty``).

    ``average``: each arrives at a time uniform in [0, ``over_s``]. ``bursty``: the beginnings of ``bursts`` bursts are
    uniform in [0, ``over_s``]; each submission belongs to a random burst and follows its beginning after an exponential
    time with mean ``within_s``. The seed also shuffles the order of submissions.
    """

    process: Literal["batch", "average", "bursty"] = "batch"
    """`batch`: all at once; `average`: each evenly at random within `over_s`; `bursty`: `bursts` at random times
    within it."""
    over_s: Seconds = 0.0
    """Seconds from its activation."""
    bursts: int = Field(default=1, ge=1, le=10_000)
    """How many bursts."""
    within_s: Positive = 30.0
    """Mean of the exponential time of a submission after its burst."""


class MRClusterSpec(Strict):
    """One MR-cluster: its minimum number of core nodes, when it is requested, the data to load and the submissions."""

    core: Nodes
    """Minimum number of nodes."""
    arrival_s: Seconds = 0.0
    """When it is requested."""
    data_gb: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    """Data to load."""
    arrivals: ArrivalSpec = ArrivalSpec()
    """When submissions come; from the moment at which it is active."""
    submit: list[SubmitSpec] = Field(min_length=1, max_length=10_000)
    """What is submitted to it."""


class ConstantsSpec(Strict):
    """Overrides of `harness.systems.fawkes.simulator.Constants`; absent keys keep their defaults."""

    map_slots: int | None = Field(default=None, ge=1, le=1000)
    reduce_slots: int | None = Field(default=None, ge=1, le=1000)
    block_gb: Gigabytes | None = None
    replicas: int | None = Field(default=None, ge=1, le=100)
    storage_gb: Gigabytes | None = None
    replication_gb_s: Positive | None = None
    load_gb_s: Positive | None = None
    wan: Ratio | None = None
    job_setup_s: Seconds | None = None
    slow_start: Part | None = None
    spread: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] | None = None

    def constants(self) -> Constants:
        """Return the model's constants."""
        return Constants(**self.model_dump(exclude_none=True))


class MRPolicyUse(PolicySpec):
    """A FAWKES policy with its settings, and ``growth`` if it differs from the experiment's."""

    growth: Literal["transient-core", "transient"] | None = None
    """None: the experiment's."""
    name: Slug | None = None
    """Name of the variant."""


class MRExperiment(Strict):
    """``kind: mr-clusters``: MR-clusters with workloads on shared nodes, run under each of several policies."""

    kind: Literal["mr-clusters"]
    """`mr-clusters`."""
    experiment: Slug
    """Its name."""
    about: str = ""
    """A line for the report."""
    nodes: Nodes
    """Nodes that are shared."""
    growth: Literal["transient-core", "transient"] = "transient-core"
    """What MR-clusters grow by: `transient-core` or `transient` nodes."""
    settings: dict[str, Scalar] = Field(default_factory=dict)
    """For every policy that knows them."""
    clusters: dict[Slug, MRClusterSpec] = Field(min_length=1, max_length=1000)
    """Name → MR-cluster."""
    policies: list[Annotated[MRPolicyUse, short_for("policy")]] = Field(min_length=1, max_length=1000)
    """What runs."""
    seed: Seeds = 1
    """A number or a list."""
    sample_s: Annotated[float, Field(ge=0.1, le=1e5, allow_inf_nan=False)] = 10.0
    """Period of the samples; at most the policies' `period`."""
    reference_nodes: Nodes = 10
    """Slowdowns are over a job's time alone on this many core nodes."""
    applications: Name | None = None
    """A file beside the experiment instead of `workloads/fawkes/applications.yaml`."""
    constants: ConstantsSpec = ConstantsSpec()
    """Of the simulator, where other than its own."""
    time_limit_s: Positive = 1e6
    """Virtual seconds after which a run has timed out."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name, cluster in self.clusters.items():
            if cluster.core > self.nodes:
                raise ValueError(f"{name} wants {cluster.core} core nodes of {self.nodes}: it would wait for ever")
        return self


class LayoutSpec(Strict):
    """One MR-cluster of fixed nodes, or one that loses nodes when its job begins.

    With ``everywhere`` the input lies on all nodes that store data (the worst case of section 6.4). ``shrink_by``
    transient-core nodes leave at the beginning; each hands on ``shrink_gb`` GB (None: its part of all replicas).
    """

    core: Nodes
    """Core nodes."""
    transient: int = Field(default=0, ge=0, le=100_000)
    """Transient nodes."""
    transient_core: int = Field(default=0, ge=0, le=100_000)
    """Transient-core nodes."""
    sites: int = Field(default=1, ge=1, le=100)
    """Sites that they are spread over."""
    everywhere: bool = False
    """The input lies on all nodes that store (6.4's worst case)."""
    shrink_by: int = Field(default=0, ge=0, le=100_000)
    """So many transient-core nodes leave at the beginning."""
    shrink_gb: Gigabytes | None = None
    """What each of them hands on; none: its part of all replicas."""

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.shrink_by > self.transient_core:
            raise ValueError("shrink_by is more than there are transient_core nodes")
        return self


class LayoutExperiment(Strict):
    """``kind: mr-layouts``: each application alone on each layout, compared with a reference layout.

    There is no policy.
    """

    kind: Literal["mr-layouts"]
    """`mr-layouts`."""
    experiment: Slug
    """Its name."""
    about: str = ""
    """A line for the report."""
    layouts: dict[Slug, LayoutSpec] = Field(min_length=1, max_length=1000)
    """Name → layout."""
    reference: Slug | None = None
    """The layout that times are divided by."""
    submit: list[Annotated[SubmitSpec, short_for("application")]] = Field(default_factory=list, max_length=1000)
    """Applications, each alone on each layout."""
    seed: Seeds = 1
    """A number or a list."""
    applications: Name | None = None
    """As for `mr-clusters`."""
    constants: ConstantsSpec = ConstantsSpec()
    """As for `mr-clusters`."""

    @model_validator(mode="after")
    def _known_reference(self) -> Self:
        if self.reference is not None and self.reference not in self.layouts:
            raise ValueError(f"reference {self.reference!r} is not one of the layouts")
        return self


KINDS: dict[str, type[MRExperiment] | type[LayoutExperiment]] = {
    "mr-clusters": MRExperiment,
    "mr-layouts": LayoutExperiment,
}


def read_experiment(document: YamlDocument) -> MRExperiment | LayoutExperiment:
    """Read an experiment whose ``kind`` is one of `KINDS`. Raises InputError with file and line."""
    return validated(KINDS[document.data["kind"]], document)


def read_applications(name: str | None, document: YamlDocument) -> Applications:
    """Read the project's applications, or those of the file ``name`` next to the experiment."""
    path = data_path("workloads", "fawkes", "applications.yaml") if name is None else Path(document.file).parent / name
    return validated(Applications, read_yaml(path))


def check_applications(known: Applications, submits: Mapping[str, list[SubmitSpec]], document: YamlDocument) -> None:
    """Raise InputError if a submission names an unknown application."""
    for where, uses in submits.items():
        for use in uses:
            if use.application not in known.applications:
                raise InputError(
                    f"{where}: no application {use.application[:60]!r}",
                    where=document.file,
                    hint=f"one of {', '.join(known.applications)}",
                )


def jobs_of_application(known: Applications, use: SubmitSpec, prefix: str, submit_s: float) -> list[MRJob]:
    """Return the jobs of one submission; their ids begin with the prefix.

    Jobs that depend on others are submitted when those have ended.
    """
    application = known.applications[use.application]
    size_gb = use.size_gb if use.size_gb is not None else application.input_gb
    return [
        MRJob(
            f"{prefix}/{name}",
            Profile(job.profile, **known.profiles[job.profile].model_dump()),
            round(size_gb * job.part, 6),
            submit_s,
            tuple(f"{prefix}/{before}" for before in job.after),
        )
        for name, job in application.jobs.items()
    ]


def jobs_of_cluster(known: Applications, spec: MRClusterSpec, seed: int, name: str) -> tuple[MRJob, ...]:
    """Return all jobs that are submitted to one MR-cluster with this seed, in order of submission."""
    # A string seed gives the same random stream on every machine and in every version of Python 3.
    chance = random.Random(f"{seed}/{name}")
    submissions = [use for use in spec.submit for _ in range(use.count)]
    arrivals = spec.arrivals
    if arrivals.process == "batch":
        times = [0.0] * len(submissions)
    else:
        chance.shuffle(submissions)
        if arrivals.process == "average":
            times = [chance.uniform(0, arrivals.over_s) for _ in submissions]
        else:
            begins = [chance.uniform(0, arrivals.over_s) for _ in range(arrivals.bursts)]
            times = [chance.choice(begins) + chance.expovariate(1 / arrivals.within_s) for _ in submissions]
    jobs: list[MRJob] = []
    for at, (submit_s, use) in enumerate(sorted(zip(times, submissions, strict=True), key=lambda pair: pair[0])):
        jobs += jobs_of_application(known, use, f"{at + 1:04d}-{use.application}", round(submit_s, 3))
    return tuple(jobs)
