"""Every metric that a summary may have: title, unit, direction, and the smallest relevant difference.

A metric that the core writes into ``summary.json`` (for the whole run, or below ``queues``) has one line here;
extensions declare their own (`harness.base.extensions`). Comparison, baselines, checks, reports and SQL use these
entries. A number without an entry is still compared and recorded, but without a better direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

from harness.base.extensions import extensions, load
from harness.results.metric import Metric

#: In the order in which tables show them. Units: s, MiB·s, "" for ratios and counts. Values of `matters`: 1 s for times
#: from samples (one sample), 0.01 for degrees (the threshold of a loss in `last_loss_s`), 0.001 for utilisations.
_MEASURES: tuple[Metric, ...] = (
    #: key, title, unit, better, digits[, smallest relevant difference]
    Metric("makespan_s", "makespan", "s", "lower", 1, 1.0),
    Metric("sharing_loss_integral", "sharing loss integral", "s", "lower", 2, 1.0),
    Metric("sharing_loss", "sharing loss, mean", "", "higher", 4, 0.01),
    Metric("sharing_benefit", "sharing benefit, mean", "", "higher", 3, 0.01),
    Metric("last_loss_s", "last sharing loss", "s", "lower", 0, 1.0),
    Metric("least_loss_integral", "least possible sharing loss integral", "s", "neither", 2, 1.0),
    Metric("last_unavoidable_loss_s", "last unavoidable loss", "s", "neither", 0, 1.0),
    Metric("by_leaf_weights.sharing_loss_integral", "sharing loss integral by leaf weights", "s", "lower", 2, 1.0),
    Metric("by_leaf_weights.sharing_loss", "sharing loss by leaf weights, mean", "", "higher", 4, 0.01),
    Metric("by_leaf_weights.sharing_benefit", "sharing benefit by leaf weights, mean", "", "higher", 3, 0.01),
    Metric("by_leaf_weights.last_loss_s", "last sharing loss by leaf weights", "s", "lower", 0, 1.0),
    Metric("utilisation.*", "utilisation", "", "higher", 3, 0.001),
    Metric("preempted.containers", "containers preempted", "", "lower", 0, 1.0),
    Metric("preempted.memory_mb_s", "memory of what was preempted", "MiB·s", "lower", 0, 1024.0),
    Metric("preempted.vcore_s", "vcores of what was preempted", "vcore·s", "lower", 0, 1.0),
    Metric("queues.fairness_degree", "fairness degree", "", "higher", 3, 0.01),
    Metric("queues.fairness_degree_by_leaf_weights", "fairness degree by leaf weights", "", "higher", 3, 0.01),
    Metric("queues.mean_completion_s", "mean completion", "s", "lower", 1, 1.0),
    Metric("queues.p95_completion_s", "95th percentile of completion", "s", "lower", 1, 1.0),
    Metric("queues.mean_slowdown", "mean slowdown", "", "lower", 2, 0.01),
    Metric("queues.workload_s", "whole workload", "s", "lower", 0, 1.0),
    Metric("mean_slowdown", "job slowdown, mean", "", "lower", 2, 0.01),
    Metric("median_slowdown", "job slowdown, median", "", "lower", 2, 0.01),
    Metric("fairness_error", "fairness error", "", "lower", 3, 0.02),
    Metric("speedup_over_static", "speed-up over static", "", "higher", 3, 0.01, other_run=True),
    Metric("queues.max_wait_s", "longest wait for a container", "s", "lower", 1, 1.0),
    Metric("queues.speedup_over_static", "speed-up over static", "", "higher", 2, 0.01, other_run=True),
    Metric(
        "queues.workload_speedup_over_static",
        "whole workload's speed-up over static",
        "",
        "higher",
        2,
        0.01,
        other_run=True,
    ),
    Metric("cost_dollars", "cost", "$", "lower", 2, 0.01),
    Metric("soft_fairness", "soft fairness degree", "", "lower", 3, 0.1),
    Metric("soft_fairness_p95", "soft fairness degree exceeded in 5 % of the time", "", "lower", 3, 0.1),
    Metric("theta", "soft fairness by Theorem 1", "", "lower", 3, 0.1),
)

#: Counts, times of the machine and results of `yarnfair bench`, which tables show last.
_COUNTS: tuple[Metric, ...] = (
    Metric("queues.ended", "jobs that ended", "", "higher", 0),
    Metric("queues.failed", "failed jobs", "", "lower", 0, count=True),
    Metric("queues.jobs", "jobs", "", "neither", 0, count=True),
    Metric("queues.resource_seconds", "resources used", "MiB·s", "neither", 0),
    Metric("queues.max_wait_at_s", "when the longest wait ended", "s", "neither", 1, 1.0),
    Metric("mean_between_ends_s.*", "mean time between container ends", "s", "neither", 3, 0.01),
    Metric("events", "starts and ends of containers", "", "neither", 0),
    Metric("wall_s", "wall-clock time", "s", "neither", 1, deterministic=False),
    # `yarnfair bench --json`: absolute values belong to one machine, so ratios to its calibration loop are compared.
    # The ratio on 8 MiB depends on the machine's other users: it is recorded, but not checked.
    Metric("engine.*.core_ratio", "engine speed over the loop on 256 KiB", "", "higher", 5, deterministic=False),
    Metric("engine.*.calibration_ratio", "engine speed over the loop on 8 MiB", "", "neither", 5, deterministic=False),
    Metric("engine.*.events_per_s", "engine speed", "1/s", "neither", 0, deterministic=False),
    Metric("scale.*.core_ratio", "engine speed by size over the loop", "", "higher", 5, deterministic=False),
    Metric("cost.*", "CPU time in millions of steps of the loop", "", "lower", 3, deterministic=False),
    Metric("cells.*.busy", "workers' time that cells have", "", "higher", 3, deterministic=False),
)


@cache
def added_metrics() -> tuple[Metric, ...]:
    """Return the metrics of extensions."""
    return tuple(metric for extension in extensions() for place in extension.metrics for metric in load(place))


@cache
def metrics() -> tuple[Metric, ...]:
    """Return all metrics in the order of tables, with those of extensions before the counts."""
    return (*_MEASURES, *added_metrics(), *_COUNTS)


#: Parts of `yarnfair bench` with ratios, which have bounds although they are times.
BENCH = ("engine", "scale", "cells", "cost")


def _pattern(key: str) -> tuple[str, ...]:
    return tuple(key.split("."))


@cache
def _by_key() -> dict[tuple[str, ...], Metric]:
    return {_pattern(metric.key): metric for metric in metrics()}


@cache
def _with_stars() -> list[tuple[tuple[str, ...], Metric]]:
    return [(pattern, metric) for pattern, metric in _by_key().items() if "*" in pattern]


@cache
def _ranks() -> dict[str, int]:
    return {metric.key: rank for rank, metric in enumerate(metrics())}


def _wild(parts: tuple[str, ...]) -> tuple[Metric, str] | None:
    """Return the metric whose pattern matches, and what its stars match; the last star matches the whole rest."""
    for pattern, metric in _with_stars():
        if pattern[-1] == "*" and len(parts) > len(pattern):
            own = (*parts[: len(pattern) - 1], ".".join(parts[len(pattern) - 1 :]))
        else:
            own = parts
        if len(pattern) == len(own) and all(p in ("*", part) for p, part in zip(pattern, own, strict=True)):
            return metric, ", ".join(part for p, part in zip(pattern, own, strict=True) if p == "*")
    return None


def declared(key: str, own: Sequence[Metric] = ()) -> Metric:
    """Return the declaration of a metric: the core's, or one of a package's own. Needs no extension to be loaded.

    Parameters
    ----------
    key
        Its path in a summary. The queue may be a star, as in ``queues.*.jobs``, or left out, as in the catalogue.
    own
        The metrics that the calling package declares.

    Raises
    ------
    KeyError
        For a key that is declared nowhere.
    """
    wanted = _pattern(key.replace("queues.*.", "queues."))
    for metric in (*own, *_MEASURES, *_COUNTS):
        pattern = _pattern(metric.key)
        if len(pattern) == len(wanted) and all(p in ("*", part) for p, part in zip(pattern, wanted, strict=True)):
            return metric
    raise KeyError(f"no metric {key!r} is declared in harness.results.catalogue or among {[one.key for one in own]}")


@lru_cache(maxsize=100_000)
def metric_of(key: str) -> Metric:
    """Return the metric of a summary's key (``makespan_s``, ``utilisation.memory``, ``queues.jobs``).

    A key that the catalogue lacks gives a metric with the key as title, a unit from its ending, and no direction.
    """
    parts = _pattern(key)
    known = _by_key().get(parts)
    if known is not None:
        return known
    wild = _wild(parts)
    if wild is not None:
        return replace(wild[0], key=key, title=f"{wild[0].title}, {wild[1]}")
    unit = "s" if key.endswith("_s") else "MiB" if key.endswith("_mb") else ""
    wall = parts[-1] in ("wall_s", "cpu_s") or parts[0] == "wall"
    # The unit is shown separately.
    ending = {"s": "_s", "MiB": "_mb", "": ""}[unit]
    title = key.removeprefix("queues.").removesuffix(ending).replace("_", " ").replace(".", ", ")
    return Metric(key, title, unit, "neither", 3, deterministic=not wall)


@lru_cache(maxsize=100_000)
def rank(key: str) -> tuple[int, str]:
    """Return a sort key: the catalogue's order, then unknown keys by name."""
    ranks = _ranks()
    if key in ranks:
        return ranks[key], key
    wild = _wild(_pattern(key))
    return (ranks[wild[0].key] if wild is not None else len(ranks)), key


class Key(NamedTuple):
    """One number of a run: the catalogue's key, and its queue (None: the whole run)."""

    key: str
    queue: str | None = None

    @property
    def metric(self) -> Metric:
        """Return the catalogue's metric of this key."""
        return metric_of(self.key)

    def text(self) -> str:
        """Return the text for files and the command line: ``makespan_s``, ``mean_completion_s[root.a]``."""
        return self.key if self.queue is None else f"{self.key.removeprefix('queues.')}[{self.queue}]"

    def title(self) -> str:
        """Return the metric's name, with the queue."""
        return self.metric.name(self.queue)

    def document(self) -> dict[str, str]:
        """Return a document's description of the metric."""
        return {"metric": self.text(), "unit": self.metric.unit, "better": self.metric.better}


def in_order(keys: Iterable[Key]) -> list[Key]:
    """Sort distinct keys into the order of all tables and pages.

    Parameters
    ----------
    keys
        Keys in any order. Queues keep the order in which they first occur, which in a summary is that of the
        experiment's file.

    Returns
    -------
    list of Key
        The keys in the catalogue's order; for each metric first the whole run, then the queues.
    """
    return list(_ordered(tuple(dict.fromkeys(keys))))


# The runs of an experiment have the same keys.
@lru_cache(maxsize=64)
def _ordered(keys: tuple[Key, ...]) -> Sequence[Key]:
    places: dict[str | None, int] = {None: -1}
    for key in keys:
        places.setdefault(key.queue, len(places))
    return sorted(keys, key=lambda key: (*rank(key.key), places[key.queue]))


def key_of(text: str) -> Key:
    """Parse the result of `Key.text`."""
    if text.endswith("]") and "[" in text:
        name, _, queue = text[:-1].partition("[")
        return Key(f"queues.{name}", queue)
    return Key(text)


def flat(summary: Mapping[str, object]) -> dict[Key, float]:
    """Return every finite number of a summary by its key, in the catalogue's order.

    Null values, texts and lists are left out.
    """
    found: dict[Key, float] = {}
    for name, value in summary.items():
        if name == "queues" and isinstance(value, Mapping):
            for queue, own in value.items():
                if isinstance(own, Mapping):
                    found.update((Key(f"queues.{key}", str(queue)), number) for key, number in _numbers(own))
        else:
            found.update((Key(key), number) for key, number in _numbers({name: value}))
    return {key: found[key] for key in in_order(found)}


def _numbers(values: Mapping[str, object], above: str = "") -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{above}{name}.")
        elif (found := number(value)) is not None:
            yield f"{above}{name}", found


def number(value: object) -> float | None:
    """Return a finite number as a float; None for anything else in a file."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:  # JSON's integers have any length
        return None
    return found if math.isfinite(found) else None
