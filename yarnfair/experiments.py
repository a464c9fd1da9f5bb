"""Experiments, built in code or read from files, and their runs."""

from __future__ import annotations

import inspect
import operator
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import pandas as pd
import yaml

from harness.base import workers
from harness.base.documents import YamlDocument, parse_yaml, read_yaml
from harness.base.errors import CallError, InputError
from harness.cli.run import verdict
from harness.experiments.kind import Ended, Kind, Loaded, kind_of
from harness.experiments.resolve import experiment_path
from harness.experiments.run import output_folder, run_experiment
from harness.experiments.selection import Selection
from harness.policies.base import Policy
from harness.policies.registry import OBJECTS, POLICIES, require_complete
from harness.results.folders import Contents
from harness.results.store import RunDirectory
from yarnfair.notebook import progress
from yarnfair.results import Runs, load


class Experiment:
    """An experiment: a cluster, queues, workloads and policies.

    Parameters
    ----------
    source
        A mapping with the keys of an experiment file, the path of such a file, or a name of ``yarnfair list
        experiments``. Policies of a mapping may be classes.

    Raises
    ------
    InputError
        A key is missing, unknown or wrong; the message has its position.

    Examples
    --------
    >>> import yarnfair
    >>> yarnfair.Experiment("demo").name
    'demo'
    """

    def __init__(self, source: Mapping[str, Any] | str | Path) -> None:
        document: YamlDocument
        if isinstance(source, Mapping):
            plain = dict(source)
            if isinstance(policies := source.get("policies"), list | tuple):
                plain["policies"] = [named_policy(one) for one in policies]
            document = parse_yaml(_yaml(plain), f"{source.get('experiment', 'experiment')}")
        else:
            document = read_yaml(experiment_path(str(source)))
        self._kind: Kind[Any, Any] = kind_of(document)
        self._loaded: Loaded = self._kind.load(document)

    @property
    def name(self) -> str:
        """Its name."""
        return self._loaded.name

    @property
    def policies(self) -> list[str]:
        """The names of its variants, without seeds."""
        variants = self._kind.variants(self._loaded, Selection())
        return list(dict.fromkeys(variant.name.partition(",seed=")[0] for variant in variants))

    def __repr__(self) -> str:
        return f"<experiment {self.name}: {', '.join(self.policies)}>"

    def _repr_html_(self) -> str:
        """Show name and policies, in a notebook."""
        from html import escape

        return f"<b>{escape(self.name)}</b>: {escape(', '.join(self.policies))}"


class Simulation:
    """The result of one simulated run, in memory only.

    Parameters
    ----------
    name
        The variant's name.
    summary
        Its metrics, as in ``summary.json``.
    tables
        Its tables by the names of their files.
    """

    def __init__(self, name: str, summary: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> None:
        self.name, self.summary, self._tables = name, dict(summary), tables

    @property
    def jobs(self) -> pd.DataFrame:
        """One row per job; times in seconds."""
        return self._tables["jobs.parquet"]

    @property
    def allocations(self) -> pd.DataFrame:
        """One row per sample and queue: the queue's allocation and demand."""
        return self._tables["allocations.parquet"]

    @property
    def queues(self) -> pd.DataFrame:
        """One row per leaf queue: its metrics."""
        return pd.DataFrame([{"queue": name, **own} for name, own in self.summary.get("queues", {}).items()])

    def __repr__(self) -> str:
        return f"<{self.name}: {self.summary.get('makespan_s', float('nan')):,.1f} s>"

    def _repr_html_(self) -> str:
        """Show the queues' metrics, in a notebook."""
        return str(self.queues.to_html(index=False, float_format="{:,.4g}".format))


def run(
    experiment: Experiment | Mapping[str, Any] | str | Path,
    policies: Sequence[str | type[Policy]] = (),
    *,
    seeds: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    processes: int | None = None,
    resume: bool = False,
    on_progress: Callable[[str], None] | None = None,
    contents: Contents | None = None,
) -> Runs:
    """Simulate an experiment under each of its policies, into run directories.

    Parameters
    ----------
    experiment
        An `Experiment`, or an argument of its constructor.
    policies
        Names of the policies to run; by default all (``ltrf``, ``ltrf@outside``), classes derived from `Policy`, or
        ``"file.py:Class"``.
    seeds
        Seeds that replace those of the file.
    settings
        Settings, each for the policies that have it; ``period`` is the control period of policies that act from
        outside, in seconds.
    out
        The folder of the run directories; by default ``runs/NAME-HASH``.
    processes
        Number of simulations at once; by default one per core. Policies that are classes of a notebook or of the script
        itself run in this process.
    resume
        Keep runs in ``out`` that have ended.
    on_progress
        Called with one line when a run ends. Without it a notebook shows a line that counts the runs.
    contents
        The content of the folder, if it is not the experiment's own runs.

    Returns
    -------
    Runs
        The runs as tables.

    Raises
    ------
    InputError, CallError
        The experiment or the call has an error; raised before anything runs.
    RunInvalid, RunTimedOut
        Jobs failed, or a run did not end in time.

    Notes
    -----
    A script needs no ``if __name__ == "__main__":`` around this call. Worker processes are forked from a server that
    imports yarnfair and not the script.
    """
    one = experiment if isinstance(experiment, Experiment) else Experiment(experiment)
    named = named_policies(policies)
    asked = Selection(named, {key: str(value) for key, value in (settings or {}).items()}, checked_seeds(seeds))
    variants = one._kind.variants(one._loaded, asked)
    one._kind.check(one._loaded, variants, "sim", None)
    folder = output_folder(one._loaded, None if out is None else Path(out))
    in_process = any(variant.policy in OBJECTS for variant in variants)

    told = on_progress if on_progress is not None else progress(len(variants))

    def end(ended: Ended) -> None:
        if told is not None:
            told(f"{ended.name}: {ended.summary.get('makespan_s', float('nan')):,.0f} s")

    with workers.main_not_imported():
        ended = run_experiment(
            one._loaded,
            variants,
            folder,
            processes=1 if in_process else processes,
            resume=resume,
            on_end=end,
            contents=contents,
        )
    verdict(ended)
    found = load([run.path for run in ended])
    return Runs(found._results, folder)


def simulate(
    experiment: Experiment | Mapping[str, Any] | str | Path,
    policy: str | type[Policy],
    *,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Simulation:
    """Simulate one run in this process, without writing files.

    Parameters
    ----------
    experiment
        An `Experiment`, or an argument of its constructor.
    policy
        A name (``ltrf``, ``ltrf@outside``), a class derived from `Policy`, or ``"file.py:Class"``.
    seed
        A seed that replaces the experiment's.
    settings
        Settings of the policy.

    Returns
    -------
    Simulation
        Metrics, jobs and allocations.

    Raises
    ------
    CallError
        The policy matches several runs of the experiment.
    """
    one = experiment if isinstance(experiment, Experiment) else Experiment(experiment)
    given = {key: str(value) for key, value in (settings or {}).items()}
    asked = Selection([named_policy(policy)], given, () if seed is None else checked_seeds([seed]))
    variants = one._kind.variants(one._loaded, asked)
    if len(variants) != 1:
        names = ", ".join(variant.name for variant in variants)
        raise CallError(f"{len(variants)} runs: {names}", hint="simulate makes one; give a seed, or call run")
    (variant,) = variants
    one._kind.check(one._loaded, variants, "sim", None)
    with tempfile.TemporaryDirectory(prefix="yarnfair-") as folder:
        directory = RunDirectory(Path(folder) / "run", {**variant.identity(), **one._loaded.described()})
        outcome = one._kind.run_one(one._loaded, variant, directory)
        tables = {file.name: pd.read_parquet(file) for file in sorted(directory.path.glob("*.parquet"))}
    verdict([Ended(variant, Path(), outcome.summary, outcome.exit_code, outcome.why)])
    return Simulation(variant.name, outcome.summary, tables)


class _Dumper(yaml.SafeDumper):
    """Writes values of programs that are not YAML's own types: paths, NumPy's numbers."""


_Dumper.add_multi_representer(PurePath, lambda dumper, value: dumper.represent_str(str(value)))


def _yaml(document: Mapping[str, Any]) -> str:
    """Return a mapping as YAML.

    Raises
    ------
    InputError
        A value cannot be represented in YAML.
    """
    import numpy as np

    for scalar in (np.floating, np.integer, np.bool_):
        _Dumper.add_multi_representer(scalar, lambda dumper, value: dumper.represent_data(value.item()))
    _Dumper.add_representer(np.ndarray, lambda dumper, value: dumper.represent_data(value.tolist()))
    try:
        return yaml.dump(document, Dumper=_Dumper, sort_keys=False)
    except yaml.representer.RepresenterError as error:
        what, *given = error.args
        kind = type(given[0]).__name__ if given else "value"
        raise InputError(f"{what}: a {kind}", where="experiment", hint="give text, numbers, lists, mappings") from error


def checked_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Return the seeds as a tuple, after checking that they are numbers.

    Raises
    ------
    CallError
        A seed is not a non-negative integer; a text would be read letter by letter.
    """
    given: object = seeds
    listed = given if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    found = []
    for seed in listed:
        if isinstance(seed, bool) or not hasattr(seed, "__index__") or not 0 <= operator.index(seed) < 2**63:
            raise CallError(
                f"no seed: {seed!r}"[:80], where="seeds", hint="give whole numbers: range(1, 11), or [1, 2, 3]"
            )
        found.append(operator.index(seed))
    return tuple(found)


def named_policies(policies: Sequence[str | type[Policy]]) -> list[Any]:
    """Return the names of a call's policies; a single policy is accepted in place of a list."""
    return [named_policy(one) for one in ([policies] if isinstance(policies, str | type) else policies)]


def named_policy(policy: Any) -> Any:
    """Return the name by which the harness finds a policy class; other values are returned unchanged."""
    if isinstance(policy, Mapping) and inspect.isclass(policy.get("policy")):
        return {**policy, "policy": named_policy(policy["policy"])}
    if not inspect.isclass(policy):
        return policy
    if not issubclass(policy, Policy):
        raise CallError(f"{policy.__qualname__} is not derived from yarnfair.Policy", hint="derive it")
    require_complete(policy, policy.__qualname__)
    for name, place in POLICIES.items():
        if place == f"{policy.__module__}:{policy.__qualname__}":
            return name
    module = sys.modules.get(policy.__module__)
    file = getattr(module, "__file__", None)
    alone = policy.__module__ != "__main__" and "." not in policy.__module__
    own = policy.__name__
    if file is not None and alone and getattr(module, own, None) is policy:
        # Worker processes import the file by themselves, but could not import a module of a package by its file.
        return f"{file}:{own}"
    name = policy.name if "name" in vars(policy) and policy.name else own
    if name in POLICIES:
        raise CallError(f"a policy of the product is called {name!r}", hint="give the class another name")
    policy.name = name
    OBJECTS[name] = policy
    return name
