"""What yarnfair does with each feature of a cluster at hand: its row of the table `harness.predict.features`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.base.errors import InputError
from harness.predict.feature import VERBS, Cell, Cluster, Feature, Verb
from harness.predict.features import CAPACITY_BASE, FAIR_BASE, FEATURES, STORES
from harness.sim.capacity.preempt_conf import PREEMPTION_PREFIX
from harness.yarn.capacity.properties import PREFIX, parse_configuration, shown_properties
from harness.yarn.capacity.source import StoreSource
from harness.yarn.errors import BadAnswer, Refused, Unreachable
from harness.yarn.files import ConfigStore
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.rest import RestClient, shown_site


@dataclass(frozen=True, slots=True)
class Row:
    """A feature that the cluster at hand has or may have, and what each verb does with it."""

    feature: Feature
    cells: Mapping[Verb, Cell]

    @property
    def unknown(self) -> bool:
        """Whether it is unknown if the cluster has the feature, because it does not show the settings."""
        return all(cell.word == "unknown" for cell in self.cells.values())

    def document(self) -> dict[str, Any]:
        """Return the row as JSON."""
        found: dict[str, Any] = {"group": self.feature.group, "title": self.feature.title}
        return found | {verb: {"word": cell.word, "why": cell.why} for verb, cell in self.cells.items()}


def rows(cluster: Cluster) -> list[Row]:
    """Return the rows of the features that a cluster has, and of those that it may have without showing it."""
    found = []
    for feature in FEATURES:
        if (why := _unknown(feature, cluster)) is not None:
            found.append(Row(feature, dict.fromkeys(VERBS, Cell("unknown", why))))
        elif feature.has(cluster):
            found.append(Row(feature, {verb: feature.cell(verb, cluster) for verb in VERBS}))
    return found


def _unknown(feature: Feature, cluster: Cluster) -> str | None:
    """Return why it is unknown whether a cluster has a feature; None if that is known.

    It is unknown if settings that are not shown could change the answer.
    """
    # Of the stores, only `store-zk-log` depends on which store it is.
    if (cluster.site_shown and cluster.whole) or (feature.group == STORES and feature.key != "store-zk-log"):
        return None
    plain = CAPACITY_BASE if feature.example.scheduler == "capacity" else FAIR_BASE
    site = {} if cluster.site_shown else _unlike(feature.example.site, plain.site)
    # An RM shows the settings of its queues, whichever store has its configuration.
    hidden = _unlike(feature.example.values, plain.values)
    hidden = {
        name: text
        for name, text in hidden.items()
        if not name.startswith(f"{PREFIX}root.") or (cluster.hadoop < (3, 4) and name.endswith(_SHOWN_SINCE_3_4))
    }
    # The rules of preemption may be in either file, its switch in yarn-site.xml alone.
    own = _unlike(feature.example.site, plain.site)
    hidden |= {name: text for name, text in own.items() if name.startswith(PREEMPTION_PREFIX)}
    values = {} if cluster.whole else {name: text for name, text in hidden.items() if name not in cluster.site}
    if not site and not values:
        return None
    # The settings of the example, and the other value of each switch.
    both = ((values, site), (_switched(values), _switched(site)))
    answers = {
        feature.has(replace(cluster, values={**cluster.values, **first}, site={**cluster.site, **second}))
        for first, second in both
    }
    if answers <= {feature.has(cluster)}:
        return None
    return (
        "the ResourceManager does not show /conf, which decides: let this user read it"
        if site
        else "capacity-scheduler.xml decides, which the ResourceManager does not show: give it with --allocations"
    )


_SHOWN_SINCE_3_4 = ".auto-create-child-queue.enabled"


def _unlike(own: Mapping[str, str], plain: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in own.items() if plain.get(name) != text}


def _switched(settings: Mapping[str, str]) -> dict[str, str]:
    other = {"true": "false", "false": "true"}
    return {name: other.get(text, text) for name, text in settings.items()}


def cluster_at(rest: RestClient, values: Mapping[str, str] | None = None) -> Cluster:
    """Return what a ResourceManager shows of its cluster.

    Parameters
    ----------
    rest
        The ResourceManager.
    values
        The properties of its capacity-scheduler.xml, if available. None: its store is read, else ``/scheduler``.

    Raises
    ------
    YarnfairError
        It does not answer.
    """
    info = rest.info()
    capacity = rest.scheduler().type == CAPACITY
    found: Mapping[str, str] = {}
    whole = True
    if capacity:
        try:
            found = values if values is not None else StoreSource(rest.http).read().values
        except Refused:
            found, whole = shown_properties(rest.scheduler_with_limits()[1]), False
    site = shown_site(rest)
    gone: tuple[str, ...] = ("LOST", "DECOMMISSIONED", "DECOMMISSIONING", "SHUTDOWN")
    return Cluster(
        "capacity" if capacity else "fair",
        found,
        site or {},
        info.hadoop,
        version=info.version,
        nodes_gone=sum(node.state in gone for node in rest.nodes(gone)),
        site_shown=site is not None,
        whole=whole,
    )


def lines(found: list[Row]) -> Iterator[str]:
    """Yield a table of 80 columns with one line per feature, and below it the reason of each cell that does not work.

    Each reason is one line of any length, which the caller wraps.
    """
    yield f"{'can I use it?':<{_TITLE}}" + _columns(VERBS)
    unknown: dict[str, list[str]] = {}
    for row in found:
        if row.unknown:
            unknown.setdefault(row.cells["enforce"].why, []).append(row.feature.title)
            continue
        *before, last = textwrap.wrap(row.feature.title, _TITLE - 1, break_on_hyphens=False, subsequent_indent=" ")
        yield from before
        yield f"{last:<{_TITLE}}" + _columns(_SHORT.get(row.cells[verb].word, row.cells[verb].word) for verb in VERBS)
    for row in found:
        reasons: dict[str, list[str]] = {}
        for verb, cell in row.cells.items():
            if cell.why and cell.word != "works" and not row.unknown:
                reasons.setdefault(cell.text(), []).append(verb)
        for reason, verbs in reasons.items():
            yield f"{', '.join(verbs)}, {row.feature.title}: {reason}"
    for why, titles in unknown.items():
        yield f"unknown whether the cluster has {', '.join(titles)}: {why}"


#: Widths of a title and of a cell, in characters; a line has at most 80 without its trailing blanks.
_TITLE, _CELL = 27, 9
_SHORT = {"counted but not steered": "counted", "not tried": "untried"}


def _columns(words: Iterable[str]) -> str:
    return "".join(f"{word:<{_CELL}}" for word in words).rstrip()


def seen(rest: RestClient, file: ConfigStore | None = None) -> list[Row]:
    """Return the rows of the answering cluster; none if it does not show enough, which other checks report.

    ``file``: its capacity-scheduler.xml, if available.
    """
    try:
        values = None if file is None else parse_configuration(file.read(), source=file.name).values
        return rows(cluster_at(rest, values))
    except (Unreachable, Refused, BadAnswer, InputError):
        return []
