"""Finds run directories and reads their identity and results (not their tables): `find_runs`, `groups`.

A group is a set of repeats of one thing under one label; a contest is a set of comparable groups.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError, RunInvalid
from harness.base.files import plain, read_json
from harness.policies.registry import POLICIES
from harness.results.catalogue import BENCH, Key, flat
from harness.results.intact import TABLES, damage_of
from harness.results.validity import Invalid, invalidity

#: Depth below a given folder to which run directories are searched (a campaign: folder/cells/CELL/RUN).
DEPTH = 4
#: A folder with that many of a run's files is a run directory, even without its ``run.json``. One of them alone may be
#: a user's own file of that name.
_WRITTEN, _ENOUGH = frozenset(("summary.json", *TABLES)), 2


def without_seed(name: str, seed: int | None) -> str:
    """Return a variant's name, or its label on a page, without the part that distinguishes seeds."""
    return name.removesuffix(f",seed={seed}").removesuffix(f", seed {seed}")


@dataclass(frozen=True)
class RunRecord:
    """One run: its directory (or, for `yarnfair bench`, its file), ``run.json``, ``summary.json``.

    ``damage``: which of its files is damaged or missing, and how; "" if none is.
    """

    path: Path
    info: Mapping[str, Any]
    summary: Mapping[str, Any]
    damage: str = ""

    @cached_property
    def values(self) -> dict[Key, float]:
        """Return every number of the summary."""
        return flat(self.summary)

    @property
    def seed(self) -> int | None:
        """The seed; None if there is none."""
        seed = self.info.get("seed")
        return seed if isinstance(seed, int) and not isinstance(seed, bool) else None

    @property
    def repeat(self) -> int:
        """The number of the repetition, from 1."""
        repeat = self.info.get("repeat", 1)
        return repeat if isinstance(repeat, int) else 1

    @property
    def variant(self) -> str:
        """The policy's name in its experiment, without the part that distinguishes seeds."""
        name = self.info.get("variant") or self.info.get("label") or self.path.name
        return without_seed(str(name), self.seed)

    def _of_policy(self, key: str) -> Any:
        own = self.info.get("policy")
        return (own.get(key) if isinstance(own, Mapping) else None) or self.info.get(key)

    @property
    def policy(self) -> str:
        """The policy's name; "" if run.json has none."""
        own = self.info.get("policy")
        return own if isinstance(own, str) else str(self._of_policy("name") or "")

    @property
    def mode(self) -> str:
        """Where the policy acts."""
        return str(self._of_policy("mode") or "inside")

    @property
    def scheduler(self) -> str:
        """The scheduler that it ran on; run.json names it unless it is the Fair Scheduler."""
        return str(self._of_policy("scheduler") or "fair")

    @property
    def settings(self) -> Mapping[str, Any]:
        """The policy's settings."""
        found = self._of_policy("settings")
        return found if isinstance(found, Mapping) else {}

    @property
    def described(self) -> Mapping[str, Any]:
        """The resolved experiment; empty if run.json does not have it."""
        found = self.info.get("experiment")
        return found if isinstance(found, Mapping) else {}

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return str((self.described or self.info).get("experiment") or "experiment")

    @property
    def hash(self) -> str:
        """The experiment's hash; empty if not recorded."""
        return str(self.info.get("hash") or "")

    @property
    def backend(self) -> str:
        """Where it ran: the backend, or the campaign's name of the cluster."""
        return str(self.info.get("place") or self.info.get("backend") or "sim")

    @property
    def start(self) -> str:
        """When the run started; empty if not recorded."""
        return str(self.info.get("start") or "")

    @property
    def commit(self) -> str:
        """The commit, in ten characters: of the folder it ran in, or else of yarnfair's checkout; empty if unknown."""
        commits = self.info.get("commits")
        if not isinstance(commits, Mapping):
            return ""
        return str(commits.get("folder") or commits.get("yarnfair") or "")[:10]

    @property
    def deterministic(self) -> bool:
        """Return whether the same seed gives the same results: on the simulator."""
        return self.backend == "sim"

    def invalid(self) -> Invalid | None:
        """Return why the results of this run do not count; None for a valid run (harness.results.validity)."""
        return invalidity(self.info, self.summary, damage=self.damage)


def find_runs(path: Path) -> list[Path]:
    """Return the run directories at or below a path, sorted by path; a file is a result of `yarnfair bench`.

    Raises InputError if there is none, or if one has lost its ``run.json``.
    """
    if path.is_file() and path.name != "run.json":
        return [path]
    if path.name == "run.json":
        path = path.parent
    if (path / "run.json").is_file():
        return [path]
    found: list[Path] = []
    # A folder without read permission has no runs of ours.
    for folder, below, files in os.walk(path, followlinks=True):
        depth = len(Path(folder).relative_to(path).parts)
        ends = "run.json" in files
        if not ends and len(_WRITTEN.intersection(files)) >= _ENOUGH:
            raise InputError(
                "a run without its run.json: nobody knows which run it is",
                where=str(folder),
                hint="run the experiment again, or remove the folder",
            )
        found += [Path(folder)] if ends else []
        below[:] = [] if ends or depth == DEPTH else [name for name in below if not name.startswith(".")]
    if not found:
        what = "no such run" if not path.exists() else "not a run directory, and none in it"
        hint = "give directories that `yarnfair run` has written, or a folder of them"
        raise InputError(what, where=str(path), hint=hint)
    return sorted(found)


def run_info(folder: Path) -> dict[str, Any]:
    """Return the content of a run directory's ``run.json``. Raises InputError if it is missing or damaged."""
    if not (folder / "run.json").exists():
        raise InputError(
            "not a run directory (it has no run.json)",
            where=str(folder),
            hint="give directories that `yarnfair run` has written",
        )
    info = read_json(folder / "run.json")
    seed = info.get("seed")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
        # Without its seed the run would count as one of another variant, which nothing is recorded of.
        raise InputError(
            f"damaged: the seed is {seed!r}, not a whole number",
            where=str(folder / "run.json"),
            hint="run the experiment again",
        )
    return info


def decision_lines(folder: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the lines of a run's ``decisions.jsonl``, each with its document; None: the line is unreadable.

    The last line of a running or interrupted run may be incomplete. Raises InputError if the disk refuses.
    """
    path = folder / "decisions.jsonl"
    if not path.exists():
        return
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.strip():
                    continue
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError):
                    entry = None
                yield line.rstrip("\n"), entry if isinstance(entry, dict) else None
    except OSError as error:
        raise InputError(f"not readable: {error}", where=str(path), hint="check its permissions") from None


def kind_of(decision: Mapping[str, object]) -> str:
    """Return the type of a decision."""
    return str(decision.get("kind") or decision.get("action") or decision.get("event") or "decision")


def read_run(path: Path) -> RunRecord:
    """Read one run directory, or one file of `yarnfair bench --json`.

    A damaged file in it makes the run invalid. Raises InputError if the path is neither, or ``run.json`` is damaged.
    """
    if path.is_file():
        return _read_bench(path)
    info, summary_path = run_info(path), path / "summary.json"
    if not summary_path.exists():
        return RunRecord(path, info, {})
    try:
        return RunRecord(path, info, read_json(summary_path), damage_of(path, info))
    except InputError as error:
        return RunRecord(path, info, {}, f"summary.json is damaged: {error.what}")


def _read_bench(path: Path) -> RunRecord:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), hint="give run directories") from None
    if not isinstance(document, dict):
        raise InputError("not a JSON object", where=str(path), hint="give run directories")
    figures = document.get("values", document)  # a record of docs/records has them one level below
    if not isinstance(figures, dict) or not isinstance(figures.get("engine"), dict):
        hint = "give run directories, or what `yarnfair bench --json` has printed"
        raise InputError("neither a run directory nor a bench's figures", where=str(path), hint=hint)
    info = {"experiment": "bench", "variant": "bench", "backend": "bench", "exit": 0}
    for name in ("version", "versions", "machine"):
        if name in document:
            info[name] = document[name]
    held = {name: figures[name] for name in BENCH if name in figures}
    return RunRecord(path, info, held)


def read_runs(paths: Iterable[Path]) -> list[RunRecord]:
    """Read all runs at or below the paths, each once, in the order of the paths."""
    unique: dict[Path, Path] = {}
    for path in paths:
        for found in find_runs(path):
            unique.setdefault(found.resolve(), found)
    return [read_run(found) for found in unique.values()]


@dataclass(frozen=True, slots=True)
class Copy:
    """A run whose run.json and summary.json equal those of ``original``, including its start and its durations."""

    run: RunRecord
    original: RunRecord

    @property
    def words(self) -> str:
        """Describe it in a clause."""
        return f"a copy of {self.original.path}"

    @property
    def remark(self) -> str:
        """Return the remark that it is left out."""
        return f"left out: {self.run.path}: {self.words}, so that it is no other run"


def without_copies(runs: Iterable[RunRecord]) -> tuple[list[RunRecord], list[Copy]]:
    """Separate the copies of runs, such as a run directory that was copied into another folder.

    A copy counts as a repeat that never ran: several copies of one run make a difference by chance look certain.

    Parameters
    ----------
    runs
        The runs. One without a recorded start is never a copy.

    Returns
    -------
    list of RunRecord
        The runs, of which each one is there once, in the given order.
    list of Copy
        The others.
    """
    runs = list(runs)
    # Only runs of the same start are compared whole: to write out each one takes longer than to read it.
    starts = Counter(run.start for run in runs)
    originals: dict[str, RunRecord] = {}
    kept, copies = [], []
    for run in runs:
        if not run.start or starts[run.start] == 1:
            kept.append(run)
            continue
        # Without indentation, which Python's fast encoder does not know.
        text = json.dumps(plain({"info": run.info, "summary": run.summary, "damage": run.damage}))
        original = originals.setdefault(text, run)
        if original is run:
            kept.append(run)
        else:
            copies.append(Copy(run, original))
    return kept, copies


@dataclass(frozen=True)
class Group:
    """Repeats of one thing."""

    label: str
    runs: Sequence[RunRecord]

    @cached_property
    def seeds(self) -> dict[tuple[int, int], RunRecord] | None:
        """Return runs by seed and repeat; None if a run has no seed or two have the same."""
        found = {(run.seed, run.repeat): run for run in self.runs if run.seed is not None}
        return found if len(found) == len(self.runs) else None


@dataclass(frozen=True)
class Contest:
    """Groups to be compared, of which the first is the reference. ``title`` is what they have in common."""

    title: str
    groups: Sequence[Group]


@dataclass(frozen=True)
class Chosen:
    """The meaning of a comparison's arguments: contests, and remarks on what was left out."""

    contests: Sequence[Contest]
    remarks: Sequence[str] = field(default_factory=tuple)


def _argument(text: str) -> tuple[str | None, list[Path]]:
    """Parse ``label=glob`` or a path. An existing path is a path, whatever its name."""
    label, equals, pattern = text.partition("=")
    labelled = bool(label and equals) and "/" not in label
    if Path(text).exists() or not (labelled or glob.has_magic(text)):
        return None, [Path(text)]
    found = sorted(glob.glob(os.path.expanduser(pattern if labelled else text)))
    if not found:
        what, where = (f"nothing matches {pattern[:200]}", label[:80]) if labelled else ("nothing matches", text[:200])
        raise InputError(what, where=where, hint="check the path")
    return label if labelled else None, [Path(path) for path in found]


def groups(arguments: Sequence[str | Group], reference: str | None = None) -> Chosen:
    """Resolve the arguments of ``compare``.

    Each argument (a run directory, a folder of them, ``label=glob``, or runs that were read already, with their label)
    contributes its runs. Several labels or folders are compared with one another, variant by variant if they have
    several; with a single folder, its variants are compared. Runs given one by one are grouped by variant.

    Raises CallError if there is nothing to compare, RunInvalid if this is because of invalid runs, InputError for a
    missing run.
    """
    sources: dict[str, list[RunRecord]] = {}
    singles: list[RunRecord] = []
    taken: set[Path] = set()
    for argument in arguments:
        if isinstance(argument, Group):
            # Runs that were given before are not compared with themselves.
            own = [run for run in argument.runs if run.path.resolve() not in taken]
            taken.update(run.path.resolve() for run in own)
            if own:
                sources[_unused(argument.label, sources, [own[0].path.parent])] = own
            continue
        label, paths = _argument(argument)
        runs = [run for run in read_runs(paths) if label is not None or run.path.resolve() not in taken]
        taken.update(run.path.resolve() for run in runs)
        if not runs:
            continue
        if label is None and len(runs) == 1:
            singles += runs
        else:
            name = label or _unused(paths[0].resolve().name or str(paths[0]), sources, paths)
            sources.setdefault(name, []).extend(runs)
    if singles:
        if not sources:
            sources = _by_variant_or_place(singles)
        else:
            for run in singles:
                sources.setdefault(_unused(run.path.resolve().name, sources, [run.path]), []).append(run)
    remarks: list[str] = []
    valid: dict[str, list[RunRecord]] = {}
    for name, given in sources.items():
        # Within one source only: two sources may be compared that share a run.
        runs, copies = without_copies(given)
        remarks += [copy.remark for copy in copies]
        counted = [run for run in runs if run.invalid() is None]
        for run in runs:
            bad = run.invalid()
            if bad is not None:
                remarks.append(f"left out: {run.path}: {bad.reason}")
        if counted:
            valid[name] = counted
    contests = _contests(valid)
    contests = [contest for contest in contests if len(contest.groups) > 1]
    remarks += [remark for contest in contests if (remark := _of_several_hashes(contest)) is not None]
    if not contests:
        why = "; ".join(remarks[:3])
        # Invalid runs do not make the call wrong.
        error = CallError if all(run.invalid() is None for runs in sources.values() for run in runs) else RunInvalid
        raise error(
            "fewer than two groups of runs to compare" + (f" ({why})" if why else ""),
            where="RUN",
            hint="give two run directories or more, a folder with several policies, or label=glob twice",
        )
    if reference is not None:
        contests = [_with_reference(contest, reference) for contest in contests]
    return Chosen(contests, remarks)


def _unused(name: str, taken: Mapping[str, object], paths: Sequence[Path]) -> str:
    if name not in taken:
        return name
    above = paths[0].resolve().parent
    while name in taken and above.name:
        name, above = f"{above.name}/{name}", above.parent
    return name


def _by_variant_or_place(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Group runs given one by one: by variant (repeats), or by their own names if all have the same variant."""
    found: dict[str, list[RunRecord]] = {}
    apart = _of_several_places(runs)
    for run in runs:
        found.setdefault(_described(run, apart), []).append(run)
    if len(found) == 1:
        found = {}
        for run in runs:
            found.setdefault(_unused(run.path.resolve().name, found, [run.path]), []).append(run)
    return found


def _of_several_places(runs: Iterable[RunRecord]) -> bool:
    return len({run.backend for run in runs}) > 1


def _described(run: RunRecord, apart: bool) -> str:
    """Return a variant's name, with its backend if backends differ among the runs (``apart``)."""
    return f"{run.variant} on {run.backend}" if apart else run.variant


def _of_several_hashes(contest: Contest) -> str | None:
    """Return a remark if the runs of a contest have one name, but different experiments."""
    hashes: dict[str, dict[str, list[str]]] = {}
    for group in contest.groups:
        for run in group.runs:
            if run.hash:
                hashes.setdefault(run.experiment, {}).setdefault(run.hash, []).append(group.label)
    several = {name: own for name, own in hashes.items() if len(own) > 1}
    if not several:
        return None
    said = "; ".join(
        f"{name} is {len(own)} different experiments ("
        + ", ".join(f"{digest[:12]}: {', '.join(dict.fromkeys(labels))}" for digest, labels in own.items())
        + ")"
        for name, own in several.items()
    )
    title = f"{contest.title}: " if contest.title else ""
    return f"{title}{said}; what differs may come from that"


def _contests(sources: Mapping[str, Sequence[RunRecord]]) -> list[Contest]:
    everything = [run for runs in sources.values() for run in runs]
    apart = _of_several_places(everything)
    variants = {name: {_described(run, apart) for run in runs} for name, runs in sources.items()}
    experiments = {run.experiment for run in everything}
    found: dict[str, dict[str, list[RunRecord]]] = {}
    by_label = len(sources) > 1
    several = any(len(own) > 1 for own in variants.values())
    own_experiment = {name: {run.experiment for run in runs} for name, runs in sources.items()}
    mixed = len(experiments) > 1 and any(len(own) > 1 for own in own_experiment.values())
    hashes: dict[str, set[str]] = {}
    for run in everything:
        hashes.setdefault(run.experiment, set()).add(run.hash)
    for name, runs in sources.items():
        for run in runs:
            variant = _described(run, apart)
            context = [run.experiment] if mixed or not by_label else []
            if not by_label and len(hashes[run.experiment]) > 1:
                # Runs of one name but different experiments are not repeats of each other.
                context = [f"{run.experiment} {run.hash[:12] or 'without a hash'}"]
            if by_label and several:
                context.append(variant)
            contender = name if by_label else variant
            found.setdefault(", ".join(context), {}).setdefault(contender, []).append(run)
    return [
        Contest(title, [Group(label, own) for label, own in (by if by_label else _known_first(by)).items()])
        for title, by in found.items()
    ]


#: Order of candidates for the reference among a folder's variants: from established to new policies.
_ORDER = ("fair", "static", "drf", "fifo", "naive-hltrf", "ltrf", "hltrf")


def _known_first(by: Mapping[str, list[RunRecord]]) -> dict[str, list[RunRecord]]:
    """Return the reference, followed by the other variants in the order of tables and pages."""
    ordered = sorted(by, key=lambda label: variant_place(by[label][0].policy, by[label][0].mode, label))
    reference = min(ordered, key=lambda label: _as_reference(by[label][0]))
    return {label: by[label] for label in (reference, *ordered)}


def _as_reference(run: RunRecord) -> int:
    """Return the rank of a variant as the reference; outside and unknown policies come last."""
    return _ORDER.index(run.policy) if run.mode == "inside" and run.policy in _ORDER else len(_ORDER)


def policy_label(policy: str) -> str:
    """Return a policy's name as labels of variants have it: that of a user's ``file.py:Class`` is ``file-Class``."""
    path, colon, attribute = policy.rpartition(":")
    return f"{Path(path).stem}-{attribute}" if colon else policy


def variant_place(policy: str, mode: str, label: str) -> tuple[int, bool, tuple[tuple[int, float, str], ...]]:
    """Return the sort key by which every table and page orders an experiment's variants.

    Parameters
    ----------
    policy, mode
        The policy's name, and where it acts: ``inside`` or ``outside``.
    label
        The variant's label.

    Returns
    -------
    tuple
        Policies come in the order in which they are registered, others after them; inside before outside; then by
        label, numbers by their value.
    """
    names = list(POLICIES)
    rank = names.index(policy) if policy in POLICIES else len(names)
    return rank, mode == "outside", natural(label)


def natural(label: str) -> tuple[tuple[int, float, str], ...]:
    """Return a sort key that puts ``t_wait=2`` before ``t_wait=10``."""
    pieces = re.findall(r"\d+(?:\.\d+)?|[^\d]+", label)
    return tuple((0, float(piece), "") if piece[0].isdecimal() else (1, 0.0, piece) for piece in pieces)


def _with_reference(contest: Contest, reference: str) -> Contest:
    chosen = [group for group in contest.groups if group.label == reference]
    if not chosen:
        known = ", ".join(group.label for group in contest.groups)
        raise CallError(f"no group {reference[:80]!r}", where="--reference", hint=f"one of {known}")
    return Contest(contest.title, [*chosen, *(group for group in contest.groups if group.label != reference)])
