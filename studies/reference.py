"""``make reference``: the generated parts of docs/reference, made from the code.

    python -m studies.reference [--check]

A page says where a generated part stands by two comments: ``<!-- made: commands -->`` and ``<!-- end of made -->``.
`PARTS` has their names. What a user reads there stands in the code: the help of a command and of its options, the
``doc`` of a policy's setting, the string under a key of a file's model.

With --check nothing is written; exit code 3 when a page is not what the code gives.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

import yarnfair
from harness.cli import cli
from harness.control.config import EnforceConfig, HttpSpec, KerberosSpec, MetricsSpec, RmSpec
from harness.control.guards import Guards
from harness.experiments import spec
from harness.jobs.workloads import KINDS as WORKLOADS
from harness.jobs.workloads import workload_class
from harness.jobs.workloads.base import MapReduceWorkload, Workload
from harness.jobs.workloads.bins import BinSpec
from harness.jobs.workloads.sequence import JobTemplate
from harness.policies.base import describe_settings
from harness.policies.registry import POLICIES, policy_class
from harness.predict.feature import VERBS
from harness.predict.features import FEATURES
from harness.results.catalogue import metrics
from harness.sim.setup import Delays
from harness.systems.fawkes import spec as mrclusters
from harness.systems.progress_share import spec as rates
from harness.systems.progress_share.cloud import spec as pools
from harness.systems.qknober import experiment as vectors
from harness.traces import recorded
from harness.traces.spec import DelaysSpec
from harness.yarn.fair import spec as allocation
from harness.yarn.releases import DEFAULT as DEFAULT_RELEASE
from harness.yarn.releases import RELEASES
from harness.yarn.rules import RULES
from studies.generated import write_pages
from studies.tables import markdown

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"
#: Model of a file -> what says the default of a key that the model leaves open.
DEFAULTS = {DelaysSpec: Delays()}
PART = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(<!-- end of made -->)", re.DOTALL)

#: Command, or its group -> where more is said about it.
MORE = {
    "run": "[experiment files](experiment-file.md), [on a real cluster](../how-to/run-on-a-real-cluster.md)",
    "allocate": "[scenarios](scenario.md)",
    "order": "[order](order.md)",
    "shares": "[allocation files](allocation-file.md)",
    "decide": "[the scheduler](scheduler.md)",
    "render": "[allocation files](allocation-file.md)",
    "validate": "[every code](validate.md)",
    "convert": "[how to](../how-to/move-to-the-capacity-scheduler.md)",
    "enforce": "[how to](../how-to/enforce.md), [configuration](enforce.md)",
    "sim": "[how to](../how-to/simulated-rm.md)",
    "explain": "[how to](../how-to/enforce.md)",
    "top": "[how to](../how-to/enforce.md)",
    "assess": "[how to](../how-to/assess.md)",
    "usage": "[how to](../how-to/usage.md)",
    "plan": "[how to](../how-to/plan.md)",
    "whatif": "[how to](../how-to/what-if.md)",
    "record": "[traces](trace.md)",
    "replay": "[traces](trace.md)",
    "cluster": "[how to](../how-to/clusters.md), [on Docker](../how-to/docker-cluster.md), "
    "[on other hosts](../how-to/ssh-cluster.md)",
    "campaign": "[how to](../how-to/run-a-campaign.md)",
    "compare": "[how to](../how-to/compare-runs.md)",
    "baseline": "[how to](../how-to/check-for-regressions.md)",
    "check": "[how to](../how-to/check-for-regressions.md)",
    "data": "[data sets](data.md)",
    "job": "[real workloads](real-workloads.md)",
    "sql": "[how to](../how-to/compare-runs.md)",
    "report": "[how to](../how-to/read-a-report.md)",
    "plot": "[how to](../how-to/figures-for-a-paper.md)",
    "bench": "[bench](bench.md)",
}


def commands(command: click.Command, name: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """(``cluster up``, command) of all that can be called."""
    if not isinstance(command, click.Group):
        yield " ".join(name), command
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        found = command.get_command(context, word)
        if found is not None:
            yield from commands(found, (*name, word))


#: Name -> command, of all that can be called.
COMMANDS = dict(commands(cli))


def escaped(text: str) -> str:
    """A text in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _takes(option: click.Option, context: click.Context) -> str:
    """What stands behind an option: nothing for a flag, N for a whole number, X for any."""
    if option.is_flag or option.count:
        return ""
    shown = option.make_metavar(context)
    for kind, letter in (("INTEGER", "N"), ("FLOAT", "X")):
        if shown.startswith(kind):
            return f" {letter}"
    return f" {shown}"


def _within(bounds: str) -> str:
    """Click's ``0<x<=86400`` in words."""
    bounds = re.sub(r"\d{4,}", lambda found: f"{int(found[0]):,}", bounds)
    bounds = re.sub(r"^([^<x]+)<=x<=(.+)$", r"\1 to \2", bounds)
    bounds = re.sub(r"^([^<x]+)<x<=(.+)$", r"above \1, at most \2", bounds)
    return bounds.replace("x>=", "from ").replace("x>", "above ").replace("x<=", "at most ").replace("x<", "below ")


def _said(option: click.Option, context: click.Context) -> str:
    """The option's help, its default and its range."""
    extra = option.get_help_extra(context)
    notes = [f"default {extra['default']}"] if "default" in extra else []
    if "range" in extra:
        notes.append(_within(extra["range"]))
    if option.required:
        notes.append("needed")
    if option.multiple:
        notes.append("may be repeated")
    return f"{option.help or ''} [{'; '.join(notes)}]" if notes else option.help or ""


def _paragraph(text: str) -> str:
    """A paragraph of a help text in Markdown; lines after click's mark stay as they are."""
    if text.startswith("\b"):
        return textwrap.indent(text.removeprefix("\b").strip("\n"), "    ")
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False, break_long_words=False)


def commands_part() -> str:
    """Every command: its help, and a table of its options."""
    out = []
    for name, command in COMMANDS.items():
        context = click.Context(command, info_name=f"yarnfair {name}")
        words = [word for word in command.collect_usage_pieces(context) if word != "[OPTIONS]"]
        more = MORE.get(name.split()[0])
        paragraphs = inspect.cleandoc(command.help or "").partition("\f")[0].split("\n\n")
        if more:
            paragraphs.append(f"More: {more}.")
        rows = [
            (f"`{', '.join((*option.opts, *option.secondary_opts))}{_takes(option, context)}`", _said(option, context))
            for option in command.params
            if isinstance(option, click.Option) and not option.hidden
        ]
        out.append(f"## {name}")
        out.append(f"`{' '.join(['yarnfair', name, *words])}`")
        out.extend(map(_paragraph, paragraphs))
        if rows:
            out.append(markdown(("option", "meaning"), [tuple(map(escaped, row)) for row in rows]))
    return "\n\n".join(out)


def settings_part() -> str:
    """Every setting of the built-in policies, once for all policies in which it means the same."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for name in POLICIES:
        cls = policy_class(name)
        for setting, text in describe_settings(cls).items():
            shape, _, meaning = text.partition(": ")
            takes, _, default = shape.rpartition(", default ")
            found.setdefault((setting, takes, default, meaning), []).append(name)
    names = list(dict.fromkeys(setting for setting, *_ in found))
    rows = [
        (f"`{setting}`", _policies(names), takes.removeprefix("a number "), default.removesuffix(".0"), meaning)
        for (setting, takes, default, meaning), names in sorted(found.items(), key=lambda one: names.index(one[0][0]))
    ]
    head = ("setting", "of", "takes", "default", "meaning")
    return markdown(head, [tuple(map(escaped, row)) for row in rows])


def _policies(names: list[str]) -> str:
    """Policies' names; all of FAWKES' as one."""
    fawkes = [name for name in POLICIES if name.startswith("fawkes-")]
    if set(fawkes) <= set(names):
        names = [*(name for name in names if name not in fawkes), "fawkes-..."]
    return ", ".join(f"`{name}`" for name in names)


def _described(names: list[str]) -> str:
    """Policies and what their classes say of themselves."""
    rows = []
    for name in names:
        text = inspect.getdoc(policy_class(name)) or ""
        text = re.sub(r"docs/decisions/([\w-]+)\.md", r"[why](../decisions/\1.md)", text.replace("``", "`"))
        rows.append((f"`{name}`", escaped(text)))
    return markdown(("policy", "what it does"), rows)


def policies_part() -> str:
    """The built-in policies, all but FAWKES'."""
    return _described([name for name in POLICIES if not name.startswith("fawkes-")])


def fawkes_part() -> str:
    """FAWKES' weighting policies."""
    return _described([name for name in POLICIES if name.startswith("fawkes-")])


def aliases_part() -> str:
    """The thesis' names of DynamicMR's settings."""
    rows = [(f"`{long}`", f"`{short}`") for long, short in policy_class("dynamicmr").aliases.items()]
    return markdown(("Table 4.3", "setting"), rows)


def docs_of(model: type) -> dict[str, str]:
    """Field -> the string that stands under it in the class, or in one of ours that it extends."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base.__module__.split(".")[0] not in ("pydantic", "builtins", "abc"):
            found.update(_own_docs(base))
    return found


def _own_docs(model: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for one, after in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(one, ast.AnnAssign)
            and isinstance(one.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[one.target.id] = inspect.cleandoc(str(after.value.value))
    return found


def _default(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, BaseModel):
        return "below"
    return f"`{value}`" if isinstance(value, str) and value else str(value)


def keys_of(model: type[BaseModel], before: str = "") -> list[tuple[str, str, str]]:
    """(key, default, meaning) of each key of a file's model. KeyError names one that nothing is said about."""
    said = docs_of(model)
    rows = []
    for name, entry in model.model_fields.items():
        if name not in said:
            raise KeyError(f"{model.__module__}.{model.__name__}.{name} has no string under it")
        given = getattr(DEFAULTS[model], name) if model in DEFAULTS else entry.default
        default = "needed" if entry.is_required() else "none" if entry.default_factory else _default(given)
        rows.append((f"`{before}{name}`", default, said[name]))
    return rows


def _keys(*models: tuple[str, type[BaseModel]], but: Collection[str] = ()) -> str:
    """The table of a file's keys: of the file itself, then of what stands under a key."""
    rows = [row for key, model in models for row in keys_of(model, f"{key}." if key else "")]
    rows = [row for row in rows if row[0].strip("`") not in but]
    return markdown(("key", "default", "meaning"), [tuple(map(escaped, row)) for row in rows])


def enforce_part() -> str:
    """The keys of the controller's configuration."""
    return _keys(
        ("", EnforceConfig),
        ("rms", RmSpec),
        ("guards", Guards),
        ("http", HttpSpec),
        ("http.kerberos", KerberosSpec),
        ("metrics", MetricsSpec),
    )


def experiment_part() -> str:
    """The keys of an experiment file."""
    return _keys(
        ("", spec.Experiment),
        ("cluster.nodes", spec.NodeGroupSpec),
        ("cluster.nodes.changes", spec.NodeChangeSpec),
        ("queues.NAME", spec.QueueSpec),
        ("workloads.LEAF", spec.WorkloadUse),
        ("workloads.LEAF.scale", spec.ScaleSpec),
        ("policies", spec.PolicyUse),
        ("limits", spec.LimitsSpec),
        ("actuation", spec.ActuationSpec),
        ("delays", DelaysSpec),
        ("mapreduce", spec.MapReduceSpec),
        ("faults", spec.FaultsSpec),
    )


def workloads_part() -> str:
    """The keys of each kind of workload; programs that compute have a page of their own."""
    parts = ["Every workload:", _keys(("", Workload)), "`bins`, `sequence` and `swim`:"]
    parts.append(_keys(("", MapReduceWorkload), but=set(Workload.model_fields)))
    common = set(MapReduceWorkload.model_fields)
    below: dict[str, list[tuple[str, type[BaseModel]]]]
    below = {"bins": [("bins", BinSpec)], "sequence": [("jobs", JobTemplate)]}
    for kind in WORKLOADS:
        if kind != "programs":
            parts += [f"`{kind}`:", _keys(("", workload_class(kind)), *below.get(kind, []), but=common)]
    return "\n\n".join(parts)


def allocation_part() -> str:
    """The keys of a queue tree of which an allocation file is rendered."""
    return _keys(
        ("queues.NAME", allocation.QueueEntry), ("defaults", allocation.Defaults), ("placement", allocation.RuleSpec)
    )


def slots_part() -> str:
    """The keys of an experiment's slots."""
    return _keys(("slots", spec.SlotsSpec), ("slots.shuffle", spec.ShuffleSpec))


def trace_part() -> str:
    """The keys of a trace's lines: the first line, applications, notes."""
    return "\n\n".join(
        (
            "The first line, and one for each change of the queues (the last one holds):",
            _keys(("", recorded.Header), ("nodes", recorded.NodeLine), ("queues.PATH", recorded.QueueLine)),
            "One change of a node a line:",
            _keys(("", recorded.NodeChangeLine)),
            "One application a line:",
            _keys(("", recorded.JobLine), ("stages", recorded.StageLine), ("executors", recorded.ExecutorsLine)),
            "Notes of `--follow`:",
            _keys(("", recorded.NoteLine)),
        )
    )


def vectors_part() -> str:
    """The keys of ``kind: vectors``."""
    return _keys(("", vectors.VectorExperiment), ("tasks", vectors.VectorTasks))


def rates_part() -> str:
    """The keys of ``kind: computing-rates``."""
    return _keys(("", rates.RatesExperiment), ("jobs.NAME", rates.RateJobSpec), ("policies", spec.PolicySpec))


def cloud_part() -> str:
    """The keys of ``kind: cloud``."""
    return _keys(
        ("", pools.CloudExperiment),
        ("instance_types.NAME", pools.InstanceSpec),
        ("queries.NAME", pools.QuerySpec),
        ("configurations.NAME", pools.CloudConfiguration),
        ("driver", pools.DriverSpec),
        ("driver.storage", pools.StorageSpec),
        ("docker", pools.DockerCloud),
        ("docker.tasks.QUERY", pools.DockerTasks),
    )


def mrclusters_part() -> str:
    """The keys of ``kind: mr-clusters``."""
    return _keys(
        ("", mrclusters.MRExperiment),
        ("clusters.NAME", mrclusters.MRClusterSpec),
        ("clusters.NAME.submit", mrclusters.SubmitSpec),
        ("clusters.NAME.arrivals", mrclusters.ArrivalSpec),
        ("policies", mrclusters.MRPolicyUse),
    )


def layouts_part() -> str:
    """The keys of ``kind: mr-layouts``."""
    return _keys(("", mrclusters.LayoutExperiment), ("layouts.NAME", mrclusters.LayoutSpec))


def metrics_part() -> str:
    """The catalogue of metrics."""
    head = ("key", "what", "unit", "better", "smallest difference that matters")
    return markdown(head, [(f"`{m.key}`", m.title, m.unit or "—", m.better, m.matters or "—") for m in metrics()])


#: Name of a part -> what makes it.
def _plain(text: str) -> str:
    """A text whose angle brackets and lone asterisks Markdown shows as they are, outside code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"(?<=-)\*", r"\\*", part.replace("<", "&lt;")) for part in parts[::2]]
    return "`".join(parts)


def validation_part() -> str:
    """Every code of `validate`, what it means, why, and how to fix it."""
    out = []
    titles = {
        "YF0": "Any file",
        "YF1": "Capacity Scheduler: what the ResourceManager refuses",
        "YF2": "Capacity Scheduler: what it ignores, or reads otherwise",
        "YF3": "Capacity Scheduler: what loses applications or has no effect",
        "YF4": "Fair Scheduler: what the ResourceManager refuses",
        "YF5": "Fair Scheduler: what it ignores, or reads otherwise",
        "YF6": "Fair Scheduler: what loses applications or has no effect",
    }
    for code, rule in sorted(RULES.items()):
        title = titles.pop(code[:3], None)
        if title:
            out.append(f"## {title}")
        out.append(f"### {code}: {rule.title}")
        level = f"{rule.level.value}, refused" if rule.refused else rule.level.value
        out.append(_paragraph(_plain(f"*{level}.* {rule.why} **Fix:** {rule.fix}")))
    return "\n\n".join(out)


_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def _entries(text: str) -> str:
    """A numpydoc section of parameters, or of what is returned, as a list."""
    out = []
    for line in text.strip("\n").splitlines():
        if line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            out.append(f"- `{name}`" + (f" (`{kind}`)" if kind else "") + ":")
        elif line.strip():
            out.append(f"  {line.strip()}")
    return "\n".join(out)


def _docstring(thing: object) -> str:
    """A numpydoc docstring in Markdown."""
    text = inspect.getdoc(thing) or ""
    first, *rest = _SECTION.split(text)
    out = [first.strip()]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        if title == "Examples":
            out.append(f"```python\n{textwrap.dedent(body).strip()}\n```")
        elif title == "Notes":
            out.append(body.strip())
        else:
            out.append(f"*{title}*\n\n{_entries(body)}")
    # A name between single backquotes is a link in numpydoc.
    return re.sub(r"(?<!`)``([^`]+)``(?!`)", r"`\1`", "\n\n".join(out))


def _signature(name: str, thing: Any) -> str:
    found = inspect.signature(thing)
    own = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values() if one.name != "self"]
    return f"{name}{found.replace(parameters=own, return_annotation=inspect.Signature.empty)}"


def python_part() -> str:
    """The public package: every name that it defines itself, with the members of its classes."""
    out = []
    others = []
    for name in yarnfair.__all__:
        thing = getattr(yarnfair, name)
        if not thing.__module__.startswith("yarnfair."):
            others.append(f"| `{name}` | {escaped(_first(thing))} |")
            continue
        if name == thing.__name__:
            out.append(f"## `{_signature(name, thing)}`\n\n{_docstring(thing)}")
        else:
            out.append(f"## `{name}`\n\nThe same as `{thing.__name__}`.")
        for member, found in vars(thing).items() if inspect.isclass(thing) else ():
            if not member.startswith("_") and isinstance(found, property):
                out.append(f"### `{name}.{member}`\n\n{_docstring(found)}")
            elif not member.startswith("_") and inspect.isfunction(found):
                out.append(f"### `{name}.{_signature(member, found)}`\n\n{_docstring(found)}")
    table = "\n".join(["| Name | What it is |", "|---|---|", *others])
    return "\n\n".join([*out, "## For policies and errors", table])


def _first(thing: object) -> str:
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def support_part() -> str:
    """Features against verbs, then the reasons of the cells that are no plain yes."""
    head = ("feature", *(f"`{verb}`" for verb in VERBS))
    out = []
    for group in dict.fromkeys(feature.group for feature in FEATURES):
        own = [feature for feature in FEATURES if feature.group == group]
        out.append(f"## {group[0].upper()}{group[1:]}")
        table = [(feature.title, *(feature.cell(verb).word for verb in VERBS)) for feature in own]
        out.append(markdown(head, [tuple(map(escaped, row)) for row in table]))
        said = [
            f"- {feature.title}, `{verb}`: {_plain(cell.text())}."
            for feature in own
            for verb in VERBS
            if (cell := feature.cell(verb)).why
        ]
        if said:
            out.append("\n".join(said))
    return "\n\n".join(out)


def releases_part() -> str:
    """Return the table of Hadoop's releases."""
    head = ("release", "Java, at least", "examples and distributed shell of", "asynchronous scheduling by default")
    rows = [
        (
            f"{one.version} (default)" if name == DEFAULT_RELEASE else one.version,
            str(one.java),
            one.programs,
            "yes (Capacity Scheduler)" if one.asynchronous else "no",
        )
        for name, one in RELEASES.items()
    ]
    said = [f"- {one.version}: {one.differences}." for one in RELEASES.values()]
    return markdown(head, rows) + "\n\n" + "\n".join(said)


PARTS: dict[str, Callable[[], str]] = {
    "python": python_part,
    "commands": commands_part,
    "policies": policies_part,
    "fawkes": fawkes_part,
    "settings": settings_part,
    "aliases": aliases_part,
    "enforce": enforce_part,
    "experiment": experiment_part,
    "slots": slots_part,
    "allocation": allocation_part,
    "workloads": workloads_part,
    "metrics": metrics_part,
    "trace": trace_part,
    "validation": validation_part,
    "can-i-use-it": support_part,
    "hadoop-versions": releases_part,
    "vectors": vectors_part,
    "computing-rates": rates_part,
    "cloud": cloud_part,
    "mr-clusters": mrclusters_part,
    "mr-layouts": layouts_part,
}


def made(page: str) -> str:
    """A page with its generated parts made anew."""
    return PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n\n{part[3]}", page)


def pages() -> Iterator[tuple[Path, str]]:
    """Each page of the reference, and what the code gives."""
    for path in sorted(PAGES.glob("*.md")):
        yield path, made(path.read_text(encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    return write_pages("reference", __doc__, pages, "the sources", arguments)


if __name__ == "__main__":
    sys.exit(main())
