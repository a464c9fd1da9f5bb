"""What a kind of experiment is, and which there are. Extensions add them (`harness.base.extensions`).

A kind says what may stand in its files, which runs a file asks for, what one run does, which figures a run has only
beside others, and how its runs are compared and shown. Everything else is the same for all of them: run directories,
seeds, processes, campaigns, going on after a crash (harness.experiments.run, harness.experiments.campaign).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.base.documents import YamlDocument
from harness.base.errors import CallError, InputError
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
    """One run of an experiment, which can be pickled: a policy with its settings, and the seed. A kind adds its own.

    ``name``: its run directory's, too. ``mode``: where the policy acts, or the kind whose the policy is.
    """

    name: str
    policy: str
    mode: str
    settings: Mapping[str, Any]
    seed: int

    def own(self) -> dict[str, Any]:
        """What its kind adds to its identity."""
        return {}

    def of_policy(self) -> dict[str, Any]:
        """What its kind says of how the policy acts, where that is not as usual."""
        return {}

    def identity(self) -> dict[str, Any]:
        """As it stands in ``run.json``."""
        policy = {"name": self.policy, "mode": self.mode, "settings": dict(self.settings), **self.of_policy()}
        return {"variant": self.name, "policy": policy, **self.own(), "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster that is already running.

    The ResourceManager's addresses, the path of its allocation file, and a folder that this machine and all nodes see
    under the same path. ``rm`` None: a cluster is brought up.
    """

    rm: str | None = None
    admin: str | None = None
    client: str | None = None
    allocations: str | None = None
    shared: str | None = None
    python: str | None = None
    #: The hosts on which one is brought up (backend ssh).
    inventory: str | None = None
    #: The release of Hadoop of one that is brought up (harness.yarn.releases; None: the default).
    hadoop: str | None = None
    #: How it is asked, where that is not Hadoop's simple authentication over plain HTTP.
    http: HttpOptions | None = None


#: How `Outcome.why` begins of a run that stands still for ever; what follows says which setting would mend it.
NEVER_ENDS = "it can never end"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended. ``exit_code``: 0, 4 (jobs failed) or 5 (time limit); ``why`` says it in words."""

    summary: dict[str, Any]
    exit_code: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """How far a run has come: virtual time in seconds, jobs ended and how many there are (None: not known)."""

    time_s: float
    jobs_done: int
    jobs: int | None


@dataclass(frozen=True, slots=True)
class Computed:
    """What a simulated run has found: its summary, tables and lines by the names of their files, how it ended."""

    summary: dict[str, Any]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    decisions: Sequence[Mapping[str, Any]] = ()
    exit_code: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """An experiment file that has been read, and can be pickled; a kind adds what its file names.

    ``spec``: the file as the kind's model. ``hash``: of all that its figures depend on but policies and seeds.
    """

    spec: Any
    document: YamlDocument
    hash: str

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.spec.experiment)

    @property
    def kind(self) -> Kind:
        """The experiment type of the file."""
        return kind_of(self.document)

    def described(self) -> dict[str, Any]:
        """What ``run.json`` has of it besides the hash: ``experiment``, and what its kind adds."""
        return {"experiment": self.spec.model_dump(mode="json")}


def hash_of(resolved: Mapping[str, object], *, ensure_ascii: bool = True) -> str:
    """Return the hash of an experiment: of everything that its figures depend on, so not of ``about``."""
    counted = {key: value for key, value in resolved.items() if key != "about"}
    return hashlib.sha256(json.dumps(counted, sort_keys=True, ensure_ascii=ensure_ascii).encode()).hexdigest()


#: Carries one run out, into its directory.
Runner = Callable[[Any, Any, RunDirectory, Callable[[Step], None] | None], Outcome]


@dataclass(slots=True)
class Ended:
    """One run of an experiment: where it is, its summary, how it ended (``exit_code`` None: it has not)."""

    variant: Any
    path: Path
    summary: dict[str, Any] = field(default_factory=dict)
    exit_code: int | None = None
    why: str | None = None

    @property
    def name(self) -> str:
        """The variant's name."""
        return str(self.variant.name)

    def document(self) -> dict[str, Any]:
        """As ``run --json`` prints it."""
        return {
            **self.variant.identity(),
            "directory": str(self.path),
            "exit": self.exit_code,
            **({"why": self.why} if self.why else {}),
            "summary": self.summary,
        }


def without_seed(variant: Any) -> str:
    """The name that a variant has with any seed."""
    return runs.without_seed(variant.name, variant.seed)


def by_variant(ended: Sequence[Ended]) -> dict[str, list[dict[str, Any]]]:
    """The summaries of each variant, over its seeds."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for run in ended:
        groups.setdefault(without_seed(run.variant), []).append(run.summary)
    return groups


class Kind:
    """A kind of experiment. What a kind does not say is as here: simulated only, without a page of its own."""

    #: As it stands under ``kind:``.
    name: str
    #: Whether its simulator has to be compiled, once after an installation.
    compiles: ClassVar[bool] = False
    #: Where it runs.
    backends: ClassVar[tuple[str, ...]] = ("sim",)
    #: What its comparison shows, and its page first of all.
    measures: ClassVar[Sequence[Measure]] = YARN_MEASURES
    #: ``module:function`` of its page and its findings, imported when they are wanted ("": as here).
    page: ClassVar[str] = ""
    finding: ClassVar[str] = ""

    # --- what is to run ---

    def load(self, document: YamlDocument) -> Loaded:
        """The experiment of a file. InputError with file and line for everything a user can get wrong there."""
        raise NotImplementedError

    def variants(self, experiment: Any, asked: Selection = EVERYTHING) -> Sequence[Any]:
        """What is to run: the file's policies or those of the call, times the seeds.

        Raises CallError for options that do not fit, InputError where the file does not.
        """
        raise NotImplementedError

    def check(self, experiment: Any, variants: Sequence[Any], backend: str, target: Target | None) -> None:
        """Raises CallError or InputError for what that backend could not run, before anything runs."""
        if backend not in self.backends:
            what = f"experiments of kind {self.name} are simulated, not run on {backend[:40]}"
            raise CallError(what, where="--backend", hint="use " + " or ".join(self.backends))
        if target is not None and any((target.rm, target.inventory)):
            raise CallError("a given cluster", where=f"kind {self.name}", hint="leave --rm and its options out")

    def size(self, experiment: Any, variant: Any) -> int | None:
        """How many containers a simulated run starts, where one can know it beforehand."""
        return None

    def limits_s(self, experiment: Any) -> tuple[float | None, float | None]:
        """How long a run on a real cluster takes, where the file says it, and how long at most."""
        return None, None

    # --- running ---

    def compute(self, experiment: Any, variant: Any) -> Computed:
        """One simulated run. It depends on nothing but the two, not on the clock."""
        raise NotImplementedError

    def run_one(
        self, experiment: Any, variant: Any, directory: RunDirectory, on_step: Callable[[Step], None] | None = None
    ) -> Outcome:
        """One simulated run, written into its directory."""
        began = time.perf_counter()
        found = self.compute(experiment, variant)
        for name, table in found.tables.items():
            directory.write_table(name, table)
        if found.decisions:
            directory.write_lines("decisions.jsonl", found.decisions)
        summary = {**found.summary, "wall_s": round(time.perf_counter() - began, 3)}
        directory.write_summary(summary)
        return Outcome(summary, found.exit_code, found.why)

    def on_cluster(
        self, experiment: Any, variants: Sequence[Any], backend: str, target: Target, says: Callable[[str], None]
    ) -> AbstractContextManager[Runner]:
        """What carries variants out one after another on a real cluster, which lasts as long as the context."""
        raise NotImplementedError

    # --- what came out ---

    def beside(self, experiment: Any, ended: Sequence[Ended]) -> None:
        """Adds to the summaries what a run has only beside others of its experiment: speed-ups."""

    def comparison(self, experiment: Any, ended: Sequence[Ended]) -> Sequence[str]:
        """The comparison for a terminal of 80 columns; means over seeds."""
        groups = by_variant(ended)
        lines = [f"means over {len(ended) // len(groups)} seeds"] if len(groups) < len(ended) else []
        runs = [(name, over_seeds(summaries)) for name, summaries in groups.items()]
        return lines + comparison(runs, self.reference(ended), self.measures)

    def reference(self, ended: Sequence[Ended]) -> str | None:
        """The name of the variant that the others are held against in a comparison; None: of no one."""
        return None

    def sentences(self, experiment: Any, ended: Sequence[Ended]) -> Sequence[str]:
        """What came out, in three sentences before any table; none where the kind has nothing to say."""
        return []

    def content(self, runs: Sequence[Run]) -> Content:
        """What the page of these runs holds: of a kind without one, every number of the summaries, a row a variant."""
        if self.page:
            found: Content = load(self.page)(runs)
            return found
        from harness.report.page import Content
        from harness.report.tools import every_number
        from harness.report.variants import variants_of

        return Content(every_number("What each run has found", variants_of(runs)), [], "", ())

    def findings(self, runs: Sequence[Run]) -> Sequence[Finding]:
        """What these runs, which ended well, say about the findings of a paper."""
        found: Sequence[Finding] = load(self.finding)(runs) if self.finding else []
        return found


def kind_named(place: str) -> Kind:
    """The kind at ``module:NAME``."""
    found = load(place)
    assert isinstance(found, Kind)
    return found


def kind_of(document: YamlDocument) -> Kind:
    """The kind of the experiment in a file.

    Raises InputError for a kind that there is none of.
    """
    data = document.data if isinstance(document.data, dict) else {}
    name = data.get("kind")
    if name is None:
        return kind_named(next((place for key, place in BY_KEY.items() if data.get(key) is not None), YARN))
    if not isinstance(name, str) or name not in KINDS:
        hint = f"one of {', '.join(KINDS)}, or leave it out for a YARN cluster"
        raise InputError(f"no kind {str(name)[:60]!r}", where=document.where(("kind",)), hint=hint)
    return kind_named(KINDS[name])
