"""Campaign files, and the cells that they describe: experiments x policies x settings x backends x seeds x repeats.

A cell's identity is the hash of everything on which its results depend: the resolved experiment, policy and settings,
seed, backend, repeat, versions and the computing code. Nothing is run here.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from harness.base.documents import Positive, Strict, YamlDocument, read_yaml, validated
from harness.base.errors import CallError, InputError
from harness.experiments.campaign.clusters import ClusterUse, Place, backends, identity_of, place_of
from harness.experiments.campaign.code import installed_hash, package_hash, user_file_hash
from harness.experiments.kind import KindVariant, Loaded, kind_of
from harness.experiments.resolve import experiment_path
from harness.experiments.selection import Selection
from harness.experiments.spec import Scalar, Seed, Slug, combinations
from harness.policies.registry import installed_policy
from harness.results.store import complete_run, versions

MOST_CELLS = 100_000
Order = Literal["interleave", "shuffle", "listed"]
#: Names that a condition may use besides a policy's settings.
PLACES = ("experiment", "policy", "mode", "variant", "backend", "seed", "repeat")

Condition = dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1)]]


class SeedRange(Strict):
    """A range of consecutive seeds: ``{first: 1, count: 10}``."""

    first: Seed = 1
    count: int = Field(ge=1, le=10_000)


class Campaign(Strict):
    """One campaign file."""

    keys_page: ClassVar[str] = "docs/how-to/run-a-campaign.md"

    campaign: Slug
    about: str = ""
    experiments: list[Annotated[str, Field(min_length=1, max_length=500)]] = Field(min_length=1, max_length=1000)
    #: Policies in the form of `run --policy`; absent: each experiment's own.
    policies: list[Annotated[str, Field(min_length=1, max_length=500)]] = Field(default_factory=list)
    settings: dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1, max_length=1000)]] = Field(
        default_factory=dict
    )
    backends: list[str] = Field(default_factory=lambda: ["sim"], min_length=1)
    #: Clusters by the names that `backends` uses.
    clusters: dict[Slug, ClusterUse] = Field(default_factory=dict)
    seeds: list[Seed] | SeedRange | None = None
    repeats: int = Field(default=1, ge=1, le=10_000)
    #: Only cells that match one of these run; those that match one of `skip` are then left out.
    only: list[Condition] = Field(default_factory=list)
    skip: list[Condition] = Field(default_factory=list)
    order: Order = "interleave"
    shuffle_seed: Seed = 1
    #: Retries of a cell after a temporary failure: a process that died, a cluster in trouble, a timeout.
    retries: int = Field(default=1, ge=0, le=100)
    #: Wall-clock time limit of one cell.
    timeout_s: Positive | None = None

    def seed_list(self) -> list[int]:
        """Return the seeds as a list; a range is expanded."""
        if isinstance(self.seeds, SeedRange):
            return list(range(self.seeds.first, self.seeds.first + self.seeds.count))
        return list(self.seeds or [])


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a campaign."""

    id: str
    experiment: str  # its name
    source: str  # the file
    hash: str  # the experiment's hash
    variant: KindVariant
    place: Place
    repeat: int
    #: Its run directory below the common folder ("": the folder itself, as in `yarnfair run`).
    below: str = ""

    @property
    def backend(self) -> str:
        """Return the place's name."""
        return self.place.name

    @property
    def name(self) -> str:
        """Return the name for people: experiment, variant, and backend and repeat if they vary."""
        parts = [self.experiment, self.variant.name]
        if self.backend != "sim":
            parts.append(self.backend)
        if self.repeat > 1:
            parts.append(f"repeat {self.repeat}")
        return " ".join(parts)

    def directory(self, out: Path) -> Path:
        """Return its run directory, named after the variant."""
        return out / self.below / str(self.variant.name)

    def clear(self, out: Path) -> None:
        """Remove the files of an earlier attempt from the cell's own folder, except completed runs."""
        kept = self.directory(out)
        if not self.below or not (out / self.below).is_dir():
            return
        for path in (out / self.below).iterdir():
            if path != kept or complete_run(kept) is None:
                shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class LoadedCampaign:
    """A campaign file with its experiments read and its cells in the order of execution."""

    spec: Campaign
    path: Path
    experiments: Mapping[str, Loaded]  # by file
    cells: tuple[Cell, ...]
    remarks: tuple[str, ...]


def policy_code(variant: KindVariant) -> list[str | None] | None:
    """Return hashes of a variant's policy code and of user files in its settings; None if it uses no such code."""
    names = [variant.policy, *(text for text in variant.settings.values() if isinstance(text, str))]
    files = [Path(path) for path, colon, _ in (name.rpartition(":") for name in names) if colon]
    found = [user_file_hash(path) for path in files if path.suffix == ".py"]
    if (module := installed_policy(variant.policy)) is not None:
        found.append(installed_hash(module))
    return found or None


def identity(experiment: Loaded, variant: KindVariant, place: Place, repeat: int) -> str:
    """Return the cell's identity: the hash of everything on which its results depend."""
    document = {
        "experiment": experiment.hash,
        **variant.identity(),
        "policy_code": policy_code(variant),
        "backend": place.name,
        "repeat": repeat,
        "versions": versions(),
        "code": package_hash(),
        **({"place": identity_of(place)} if place.real else {}),
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


def load_campaign(path: Path) -> LoadedCampaign:
    """Read a campaign and everything it names, and list its cells.

    Raises InputError with file, line and key for anything that cannot run.
    """
    document = read_yaml(path)
    spec = validated(Campaign, document)
    places = _places(spec, document)
    experiments: dict[str, Loaded] = {}
    cells: list[Cell] = []
    for at, name in enumerate(spec.experiments):
        file = _experiment_file(name, document, at)
        read = read_yaml(file)
        loaded = experiments.setdefault(str(file), kind_of(read).load(read))
        for place in places:
            if place.kind not in loaded.kind.backends:
                what = f"{name[:80]} is of kind {loaded.kind.name}, which does not run on {place.kind}"
                hint = f"its backends are {', '.join(loaded.kind.backends)}"
                raise InputError(what, where=document.where(("experiments", at)), hint=hint)
        cells += _cells(spec, document, str(file), loaded, places)
        if len(cells) > MOST_CELLS:
            raise InputError(f"more than {MOST_CELLS:,} cells", where=document.where(), hint="ask for fewer")
    unique = list({cell.id: cell for cell in cells}.values())
    kept, remarks = _conditions(spec, document, unique)
    if not kept:
        raise InputError("no cell is left", where=document.where(), hint="look at only: and skip:")
    return LoadedCampaign(spec, path, experiments, tuple(_ordered(spec, kept)), tuple(remarks))


def _places(spec: Campaign, document: YamlDocument) -> list[Place]:
    if "sim" in spec.clusters:
        where = document.where(("clusters", "sim"))
        raise InputError("sim is the simulator's name", where=where, hint="call the cluster otherwise")
    found = []
    for at, name in enumerate(spec.backends):
        use, where = spec.clusters.get(name), document.where(("backends", at))
        if use is None and name not in backends():
            known = ", ".join(dict.fromkeys((*backends(), *spec.clusters)))
            raise InputError(
                f"no backend {name[:40]!r}", where=where, hint=f"one of {known}, or write it under clusters:"
            )
        try:
            place = place_of(name, use, Path(document.file).parent)
            identity_of(place)
        except InputError as error:
            where = document.where(("clusters", name)) if use is not None else where
            what = f"{error.where}: {error.what}" if error.where else error.what
            raise InputError(what, where=where, hint=error.hint) from None
        found.append(place)
    return list(dict.fromkeys(found))


def _experiment_file(name: str, document: YamlDocument, at: int) -> Path:
    """Return a file beside the campaign file, or one of the project's experiments."""
    beside = Path(document.file).parent / name
    if "\0" not in name and beside.is_file():
        return beside
    try:
        return experiment_path(name)
    except InputError as error:
        raise InputError(error.what, where=document.where(("experiments", at)), hint=error.hint) from None


def _text(value: object) -> str:
    """Return a setting in the form of the command line."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _cells(spec: Campaign, document: YamlDocument, file: str, loaded: Loaded, places: Sequence[Place]) -> list[Cell]:
    out = []
    listed = {key: value if isinstance(value, list) else [value] for key, value in spec.settings.items()}
    for settings in combinations(listed):
        given = {key: _text(value) for key, value in settings.items()}
        for place in places:
            for variant in _variants(spec, document, loaded, given, real=place.real):
                named = _named(variant, {key: text for key, text in given.items() if len(listed[key]) > 1})
                for repeat in range(1, spec.repeats + 1):
                    id_ = identity(loaded, named, place, repeat)
                    cell = Cell(id_, loaded.name, file, loaded.hash, named, place, repeat, f"cells/{id_[:16]}")
                    out.append(cell)
    return out


def of_one(loaded: Loaded, variants: Sequence[KindVariant], place: Place) -> LoadedCampaign:
    """Return the campaign that `yarnfair run` executes: one experiment's variants in order, each with a directory."""
    file = loaded.document.file
    cells = [
        Cell(identity(loaded, variant, place, 1), loaded.name, file, loaded.hash, variant, place, 1)
        for variant in variants
    ]
    spec = Campaign.model_construct(campaign=loaded.name, experiments=[file], retries=0, order="listed")
    return LoadedCampaign(spec, Path(file), {file: loaded}, tuple(cells), ())


def _variants(
    spec: Campaign, document: YamlDocument, loaded: Loaded, given: Mapping[str, str], *, real: bool
) -> Sequence[KindVariant]:
    """Return an experiment's variants with these settings.

    On a real cluster, policies that YARN lacks act from outside.

    Raises InputError with the campaign's line.
    """
    try:
        return loaded.kind.variants(loaded, Selection(spec.policies, given, spec.seed_list(), real))
    except CallError as error:
        key = "settings" if error.where and error.where.startswith("--set") else "policies"
        where = document.where((key,) if key in document.data else ())
        raise InputError(error.what, where=where, hint=error.hint) from None


def _named(variant: KindVariant, varied: Mapping[str, str]) -> KindVariant:
    """Return the variant named with those of the campaign's varied settings that it accepts."""
    parts = []
    for key, value in varied.items():
        outside = key in ("period", "period_s") and variant.mode == "outside"
        if (key in variant.settings or outside) and f",{key}=" not in variant.name:
            parts.append(f",{key}={value}")
    suffix = f",seed={variant.seed}"
    seeded = variant.name.endswith(suffix)
    stem = variant.name.removesuffix(suffix) if seeded else variant.name
    clean = "".join(c if c.isalnum() or c in "._-=,@" else "_" for c in "".join(parts))
    return replace(variant, name=stem + clean + (suffix if seeded else ""))


def _values(cell: Cell) -> dict[str, Any]:
    """Return the values that a condition may test, by name; None if the cell has no such value."""
    found = cell.variant.identity()
    policy = found.pop("policy")
    period_s = policy.get("period_s")
    return {
        **policy["settings"],
        **found,
        "experiment": cell.experiment,
        "policy": policy["name"],
        "mode": policy["mode"],
        "backend": cell.backend,
        "repeat": cell.repeat,
        "period": period_s,
        "period_s": period_s,
    }


def _equal(own: Any, wanted: Any) -> bool:
    if own is None:
        return False
    try:
        return float(own) == float(wanted)
    except (TypeError, ValueError):
        return fnmatchcase(_text(own), _text(wanted))


def _matches(cell: Cell, condition: Condition) -> bool:
    values = _values(cell)
    return all(
        any(_equal(values.get(place), one) for one in (wanted if isinstance(wanted, list) else [wanted]))
        for place, wanted in condition.items()
    )


def _conditions(spec: Campaign, document: YamlDocument, cells: Sequence[Cell]) -> tuple[list[Cell], list[str]]:
    settings = {key for cell in cells for key in _values(cell)} | set(spec.settings)
    remarks = []
    for key, conditions in (("only", spec.only), ("skip", spec.skip)):
        for at, condition in enumerate(conditions):
            for place in condition:
                if place not in PLACES and place not in settings:
                    known = ", ".join((*PLACES, *sorted(settings)))
                    raise InputError(
                        f"a condition on {place[:60]!r}, which no cell has",
                        where=document.where((key, at, place)),
                        hint=f"one of {known}",
                    )
            if not any(_matches(cell, condition) for cell in cells):
                remarks.append(f"{document.where((key, at))}: no cell matches this condition")
    kept = [cell for cell in cells if not spec.only or any(_matches(cell, one) for one in spec.only)]
    return [cell for cell in kept if not any(_matches(cell, one) for one in spec.skip)], remarks


def _ordered(spec: Campaign, cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells in the campaign's order.

    In the order ``interleave``, all policies run with the first seed before any runs with the second, so that
    disturbances affect all policies alike.
    """
    if spec.order == "listed":
        return list(cells)
    if spec.order == "shuffle":
        found = list(cells)
        random.Random(spec.shuffle_seed).shuffle(found)
        return found
    seeds = list(dict.fromkeys(cell.variant.seed for cell in cells))
    return sorted(cells, key=lambda cell: (cell.repeat, seeds.index(cell.variant.seed)))
