"""The interface of experiment types. Extensions add further types (`harness.base.extensions`).

An experiment type defines the keys of its files, the runs of a file, what one run does, metrics that compare runs, and
how its runs are compared and shown. All types share run directories, seeds, processes, campaigns and the resumption of
interrupted runs (harness.experiments.run, harness.experiments.campaign).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from harness.base.documents import YamlDocument
from harness.base.errors import CallError, InputError
from harness.base.machine_code import waited_s
from harness.experiments.selection import EVERYTHING, Selection
from harness.results import runs
from harness.results.comparison import YARN as YARN_MEASURES
from harness.results.comparison import Measure, comparison, over_seeds
from harness.results.kinds import BY_KEY, KINDS, load
from harness.results.store import RunDirectory

if TYPE_CHECKING:
    import pandas as pd

    from harness.report.data import Run
    from harness.report.findings import Finding
    from harness.report.page import Content
    from harness.yarn.http import HttpOptions

#: The experiment type of a file without ``kind:`` and without a key of another type.
YARN = "harness.experiments.yarn:KIND"


@dataclass(frozen=True, slots=True)
class KindVariant:
    """One run of an experiment, which can be pickled: a policy with settings, and the seed. Types add their own fields.

    ``name``: also the name of its run directory. ``mode``: where the policy acts, or the experiment type that the
    policy belongs to.
    """

    name: str
    policy: str
    mode: str
    settings: Mapping[str, Any]
    seed: int

    def own(self) -> dict[str, Any]:
        """Return the entries that the experiment type adds to the identity of a run."""
        return {}

    def of_policy(self) -> dict[str, Any]:
        """Return the entries of the identity that describe how the policy acts, without default values."""
        return {}

    def identity(self) -> dict[str, Any]:
        """Return the identity as stored in ``run.json``."""
        policy = {"name": self.policy, "mode": self.mode, "settings": dict(self.settings), **self.of_policy()}
        return {"variant": self.name, "policy": policy, **self.own(), "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster of a real run: an external cluster, or options of a cluster to be started (``rm`` is None).

    Parameters
    ----------
    rm, admin, client
        The external ResourceManager's REST, admin and client addresses.
    allocations
        The location of its allocation file.
    shared
        A folder that this machine and all nodes see under the same path.
    python
        The Python interpreter on the nodes.
    """

    rm: str | None = None
    admin: str | None = None
    client: str | None = None
    allocations: str | None = None
    shared: str | None = None
    python: str | None = None
    #: The hosts of a cluster to be started (backend ssh).
    inventory: str | None = None
    #: The Hadoop release of a cluster to be started (harness.yarn.releases; None: the default).
    hadoop: str | None = None
    #: Options of requests that differ from Hadoop's simple authentication over plain HTTP.
    http: HttpOptions | None = None


#: Prefix of `Outcome.why` for a run that is stuck for ever; a hint about the setting to change follows.
NEVER_ENDS = "it can never end"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one run. ``exit_code``: 0, 4 (jobs failed) or 5 (time limit); ``why``: the reason, if it is not 0."""

    summary: dict[str, Any]
    exit_code: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a run: virtual time in seconds, ended jobs and number of jobs (None: not known)."""

    time_s: float
    jobs_done: int
    jobs: int | None


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of a simulated run: summary, tables by file name, lines of ``decisions.jsonl``, and how it ended."""

    summary: dict[str, Any]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    decisions: Sequence[Mapping[str, Any]] = ()
    exit_code: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """An experiment file that has been read. It can be pickled; experiment types add the objects that the file names.

    ``spec``: the file as the type's model. ``hash``: hash of everything on which results depend, except policies and
    seeds.
    """

    spec: Any
    document: YamlDocument
    hash: str

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.spec.experiment)

    @property
    def kind(self) -> Kind[Any, Any]:
        """The experiment type of the file."""
        return kind_of(self.document)

    def described(self) -> dict[str, Any]:
        """Return what ``run.json`` stores about it besides the hash: ``experiment``, and additions of its type."""
        return {"experiment": self.spec.model_dump(mode="json")}


def hash_of(resolved: Mapping[str, object], *, ensure_ascii: bool = True) -> str:
    """Return the hash of everything on which an experiment's results depend, which excludes ``about``."""
    counted = {key: value for key, value in resolved.items() if key != "about"}
    return hashlib.sha256(json.dumps(counted, sort_keys=True, ensure_ascii=ensure_ascii).encode()).hexdigest()


#: An experiment type's own classes of read files and of runs.
LoadedT = TypeVar("LoadedT", bound=Loaded)
VariantT = TypeVar("VariantT", bound=KindVariant)

#: Runs one variant into its directory.
Runner = Callable[[Any, Any, RunDirectory, Callable[[Step], None] | None], Outcome]


@dataclass(slots=True)
class Ended:
    """One run of an experiment: its directory, its summary and its exit code (None: it has not ended)."""

    variant: KindVariant
    path: Path
    summary: dict[str, Any] = field(default_factory=dict)
    exit_code: int | None = None
    why: str | None = None

    @property
    def name(self) -> str:
        """The variant's name."""
        return str(self.variant.name)

    def variant_as(self, kind: type[VariantT]) -> VariantT:
        """Return the variant as the class of its experiment type. Raises TypeError for a variant of another type."""
        if not isinstance(self.variant, kind):
            raise TypeError(f"{self.name} is no {kind.__name__}")
        return self.variant

    def document(self) -> dict[str, Any]:
        """Return the document of ``run --json``."""
        return {
            **self.variant.identity(),
            "directory": str(self.path),
            "exit": self.exit_code,
            **({"why": self.why} if self.why else {}),
            "summary": self.summary,
        }


def without_seed(variant: KindVariant) -> str:
    """Return the variant's name without the seed."""
    return runs.without_seed(variant.name, variant.seed)


def by_variant(ended: Sequence[Ended]) -> dict[str, list[dict[str, Any]]]:
    """Return the summaries of each variant's runs, one per seed, by the variant's name without the seed."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for run in ended:
        groups.setdefault(without_seed(run.variant), []).append(run.summary)
    return groups


def in_table_order(ended: Sequence[Ended]) -> list[Ended]:
    """Return the runs in the order of every table and page (`harness.results.runs.variant_place`)."""
    return sorted(
        ended, key=lambda run: runs.variant_place(run.variant.policy, run.variant.mode, without_seed(run.variant))
    )


class Kind(Generic[LoadedT, VariantT]):
    """An experiment type. By default it is only simulated, without a page of its own."""

    #: Its value of ``kind:``.
    name: str
    #: Whether its simulator has to be compiled once after an installation.
    compiles: ClassVar[bool] = False
    #: The backends on which it runs.
    backends: ClassVar[tuple[str, ...]] = ("sim",)
    #: Metrics of its comparison, and of the top of its page.
    measures: ClassVar[Sequence[Measure]] = YARN_MEASURES
    #: ``module:function`` of its page and its findings, imported on demand ("": the defaults here).
    page: ClassVar[str] = ""
    finding: ClassVar[str] = ""

    # --- the runs of a file ---

    def load(self, document: YamlDocument) -> LoadedT:
        """Load the experiment of a file. Raises InputError with file and line for all user errors in it."""
        raise NotImplementedError

    def variants(self, experiment: LoadedT, asked: Selection = EVERYTHING) -> Sequence[VariantT]:
        """Return the runs: the file's policies or those of the call, times the seeds.

        Raises CallError for options that do not fit, InputError if the file does not.
        """
        raise NotImplementedError

    def check(self, experiment: LoadedT, variants: Sequence[VariantT], backend: str, target: Target | None) -> None:
        """Raise CallError or InputError, before anything runs, for variants that the backend cannot run."""
        if backend not in self.backends:
            what = f"experiments of kind {self.name} are simulated, not run on {backend[:40]}"
            raise CallError(what, where="--backend", hint="use " + " or ".join(self.backends))
        if target is not None and any((target.rm, target.inventory)):
            raise CallError("a given cluster", where=f"kind {self.name}", hint="leave --rm and its options out")

    def size(self, experiment: LoadedT, variant: VariantT) -> int | None:
        """Return how many containers a simulated run starts, if that is known beforehand."""
        return None

    def limits_s(self, experiment: LoadedT) -> tuple[float | None, float | None]:
        """Return the file's duration of a run on a real cluster, and the time limit, seconds (None: not set)."""
        return None, None

    # --- running ---

    def compute(self, experiment: LoadedT, variant: VariantT) -> Computed:
        """Compute one simulated run. The result depends only on the two arguments, not on the clock."""
        raise NotImplementedError

    def run_one(
        self,
        experiment: LoadedT,
        variant: VariantT,
        directory: RunDirectory,
        on_step: Callable[[Step], None] | None = None,
    ) -> Outcome:
        """Run one simulation and write it into its directory."""
        began, waited = time.perf_counter(), waited_s()
        found = self.compute(experiment, variant)
        for name, table in found.tables.items():
            directory.write_table(name, table)
        if found.decisions:
            directory.write_lines("decisions.jsonl", found.decisions)
        took_s = time.perf_counter() - began - (waited_s() - waited)
        summary = {**found.summary, "wall_s": round(took_s, 3)}
        directory.write_summary(summary)
        return Outcome(summary, found.exit_code, found.why)

    def on_cluster(
        self,
        experiment: LoadedT,
        variants: Sequence[VariantT],
        backend: str,
        target: Target,
        says: Callable[[str], None],
    ) -> AbstractContextManager[Runner]:
        """Return a runner of variants on a real cluster, which lasts as long as the context."""
        raise NotImplementedError

    # --- results ---

    def beside(self, experiment: LoadedT, ended: Sequence[Ended]) -> None:
        """Add metrics to the summaries that compare runs of an experiment: speed-ups."""

    def comparison(self, experiment: LoadedT, ended: Sequence[Ended]) -> Sequence[str]:
        """Return the comparison for a terminal of 80 columns; means over seeds."""
        groups: dict[str, dict[Any, Mapping[str, Any]]] = {}
        for run in in_table_order(ended):
            groups.setdefault(without_seed(run.variant), {})[run.variant.seed] = run.summary
        lines = []
        if len(groups) < len(ended):
            lines = [f"means over {len(ended) // len(groups)} seeds, \u00b1 half of the 95 % interval of the mean"]
        runs = [(name, over_seeds(list(seeds.values()))) for name, seeds in groups.items()]
        return lines + comparison(runs, self.reference(ended), self.measures, groups)

    def reference(self, ended: Sequence[Ended]) -> str | None:
        """Return the name of the variant with which a comparison compares the others; None: there is none."""
        return None

    def sentences(self, experiment: LoadedT, ended: Sequence[Ended]) -> Sequence[str]:
        """Return the conclusions in three sentences, shown before any table; none if the type has nothing to say."""
        return []

    def content(self, runs: Sequence[Run]) -> Content:
        """Return the content of the page of these runs.

        By default it shows every number of the summaries, one row per variant.
        """
        if self.page:
            found: Content = load(self.page)(runs)
            return found
        from harness.report.page import Content
        from harness.report.tools import every_number
        from harness.report.variants import variants_of

        return Content(every_number("What each run has found", variants_of(runs)), [], "", ())

    def findings(self, runs: Sequence[Run]) -> Sequence[Finding]:
        """Return what these successful runs show about the findings of a paper."""
        found: Sequence[Finding] = load(self.finding)(runs) if self.finding else []
        return found


def kind_named(place: str) -> Kind[Any, Any]:
    """Return the experiment type at ``module:NAME``."""
    found = load(place)
    assert isinstance(found, Kind)
    return found


def kind_of(document: YamlDocument) -> Kind[Any, Any]:
    """Return the experiment type of a file.

    Raises InputError for an unknown type.
    """
    data = document.data if isinstance(document.data, dict) else {}
    name = data.get("kind")
    if name is None:
        return kind_named(next((place for key, place in BY_KEY.items() if data.get(key) is not None), YARN))
    if not isinstance(name, str) or name not in KINDS:
        hint = f"one of {', '.join(KINDS)}, or leave it out for a YARN cluster"
        raise InputError(f"no kind {str(name)[:60]!r}", where=document.where(("kind",)), hint=hint)
    return kind_named(KINDS[name])
