"""Presents a check to a pipeline: which differences fail, how much was judged, one failure per slow-down, annotations.

Pure except for `write_code_quality`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from harness.base.errors import CallError
from harness.base.outputs import write_output
from harness.base.words import percent_text
from harness.results.acknowledge import fits
from harness.results.catalogue import Key
from harness.results.check import NO_RUN, Checked, Held

#: What fails. ``worse``: worse results; ``change``: also changes of metrics without a better direction; ``any``: also
#: improvements.
Only = Literal["worse", "change", "any"]
#: Number of metrics that a failure names, worst first.
NAMED = 5


@dataclass(frozen=True, slots=True)
class Failure:
    """All alarms of one variant, worst first, as one failure, because they mostly have one cause."""

    experiment: str
    variant: str
    alarms: tuple[Held, ...]

    @property
    def title(self) -> str:
        """Return the experiment and the variant."""
        return f"{self.experiment}, {self.variant}"

    @property
    def metrics(self) -> list[list[Held]]:
        """Return the alarms of each metric by run: the worst run first, the worst metric first."""
        return _grouped(self.alarms, lambda one: one.key)

    @property
    def words(self) -> str:
        """Return one line: the worst metric, and the number of metrics."""
        first, *others = self.metrics
        more = f"; {len(others)} more metric(s) with it" if others else ""
        return f"{first[0].key.title()}: {_worst(first)}{more}"

    @property
    def lines(self) -> list[str]:
        """Return the worst metrics, one line each."""
        shown = [
            f"{one[0].verdict:>12}  {self.title}: {one[0].key.title()}: {_worst(one)}" for one in self.metrics[:NAMED]
        ]
        left = len(self.metrics) - NAMED
        return [*shown, f"{'':>12}  {self.title}: {left} more metric(s)"] if left > 0 else shown


def _worst(alarms: Sequence[Held]) -> str:
    return alarms[0].words + (f" (the worst of {len(alarms)} runs)" if len(alarms) > 1 else "")


def _grouped(held: Iterable[Held], by: Callable[[Held], object]) -> list[list[Held]]:
    """Group the results for which ``by`` returns the same, in order of first occurrence."""
    found: dict[object, list[Held]] = {}
    for one in held:
        found.setdefault(by(one), []).append(one)
    return list(found.values())


def _title(held: Held) -> str:
    return f"{held.experiment}, {held.variant}"


def good_lines(found: Checked) -> list[str]:
    """Return improvements, and changes in a history that raise no alarm: a line per metric, at most five a variant."""
    good = [one for one in found.held if one.verdict == "better" or one.words.startswith("changed from")]
    out = []
    for own in _grouped([one for one in good if not one.alarm], _title):
        metrics = _grouped(own, lambda one: one.key)
        for first, *others in metrics[:NAMED]:
            runs = f" (in {len(others) + 1} runs)" if others else ""
            out.append(f"{first.verdict:>12}  {_title(first)}: {first.key.title()}: {first.words}{runs}")
        if len(metrics) > NAMED:
            out.append(f"{'':>12}  {_title(own[0])}: {len(metrics) - NAMED} more metric(s) that are no failure")
    return out


def failures(found: Checked) -> list[Failure]:
    """Return the alarms by variant, the worst variant first."""
    groups = [sorted(own, key=_severity, reverse=True) for own in _grouped(found.alarms, _title)]
    made = [Failure(own[0].experiment, own[0].variant, tuple(own)) for own in groups]
    return sorted(made, key=lambda failure: _severity(failure.alarms[0]), reverse=True)


def _severity(held: Held) -> tuple[bool, float]:
    """Return the sort key of a result by severity.

    Worse results come before changes of metrics without a better direction; then the relative distance from the
    recorded value counts. A missing value and a change from 0 are farthest.
    """
    apart = held.value / held.recorded if held.value is not None and held.recorded else 0.0
    return held.verdict != "changed", abs(math.log(apart)) if apart > 0 else math.inf


def narrowed(found: Checked, *, metrics: Sequence[str] = (), tolerance: float = 0.0, only: Only = "change") -> Checked:
    """Return the outcome restricted by the options of the call.

    ``metrics``: patterns (``*``, ``?``) of metrics that count; none: all. ``tolerance``: a difference of at most this
    fraction of the recorded value is fine.
    """
    # A run that is missing or unknown has no metrics.
    held = [
        one
        for one in found.held
        if not metrics or one.key == NO_RUN or any(fits(pattern, one.key.text()) for pattern in metrics)
    ]
    return Checked([_as_wanted(one, tolerance, only) for one in held], found.invalid, found.remarks)


def unfitting(keys: Iterable[Key], patterns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the patterns that match no metric, each with at most three similar names."""
    names = list(dict.fromkeys(key.text() for key in keys))
    return [(one, _nearest(one, names)) for one in patterns if not any(fits(one, name) for name in names)]


def require_fitting(keys: Iterable[Key], patterns: Sequence[str]) -> None:
    """Raise CallError for a pattern of ``--metrics`` that matches no metric."""
    for pattern, near in unfitting(keys, patterns):
        hint = f"did you mean {', '.join(near)}?" if near else "`--json` lists the names of all metrics"
        raise CallError(f"no metric fits {pattern[:80]!r}", where="--metrics", hint=hint)


def _nearest(pattern: str, names: Sequence[str]) -> list[str]:
    """Return names that contain the pattern's text first, then names of similar spelling."""
    word = pattern.removeprefix("queues.").strip("*?").lower()  # as the reference has a queue's metric
    within = [name for name in names if word and word in name.lower()]
    return list(dict.fromkeys([*within, *get_close_matches(word[:100], names, 3)]))[:3]


def _as_wanted(held: Held, tolerance: float, only: Only) -> Held:
    if held.verdict not in ("worse", "changed") or held.value is None or held.recorded is None:
        return held
    if abs(held.value - held.recorded) <= tolerance * abs(held.recorded):
        return replace(
            held,
            verdict="fine",
            words=f"{held.words}; within the tolerance of {percent_text(tolerance, 0, signed=False)}",
        )
    worse = held.key.metric.is_worse(held.value, held.recorded)
    if (worse is False and only != "any") or (worse is None and only == "worse"):
        return replace(held, verdict="better" if worse is False else "fine")
    return held


def judged(found: Checked) -> str:
    """Describe in one line how much was judged."""
    left = sum(one.verdict == "not judged" for one in found.held)
    return f"judged {len(found.held) - left} of {len(found.held)} metrics" + (f"; {left} not judged" if left else "")


def github(found: Checked, place: str, link: str = "", *, strict: bool = False) -> list[str]:
    """Return GitHub workflow commands: an error for each failure, and for each invalid run.

    Parameters
    ----------
    found : Checked
        The result of the check.
    place : str
        The file to which annotations are attached.
    link : str
        The address of a page of the metrics over time, included in each annotation; empty: none.
    strict : bool
        Whether a metric that is not judged is an error, as it is for the exit code.
    """
    more = [f"over time: {link}"] if link else []

    def command(title: str, text: str) -> str:
        return f"::error file={_property(place)},title={_property(title)}::{_data(text)}"

    return [
        *(command(f"Regression: {one.title}", "\n".join([one.words, *one.lines, *more])) for one in failures(found)),
        *(command("Invalid run", f"{run}: {why}") for run, _, why in found.invalid),
        *(
            command(f"Not judged: {one.experiment}, {one.variant}: {one.key.title()}", one.words)
            for one in found.held
            if strict and one.verdict == "not judged"
        ),
    ]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def code_quality(found: Checked, place: str, link: str = "") -> str:
    """Return GitLab's Code Quality report (JSON): an issue for each failure, and for each invalid run.

    A fingerprint depends only on the variant, so the same failure stays one issue across commits. ``link``: as in
    `github`.
    """
    more = f" (over time: {link})" if link else ""
    issues = [(one.title, "regression", "major", f"{one.title}: {one.words}{more}") for one in failures(found)]
    issues += [(run, "invalid-run", "critical", f"{run}: {why}") for run, _, why in found.invalid]
    return json.dumps(
        [
            {
                "description": text,
                "check_name": f"yarnfair-{kind}",
                "fingerprint": hashlib.sha256(f"{kind} {name}".encode()).hexdigest(),
                "severity": severity,
                "location": {"path": place, "lines": {"begin": 1}},
            }
            for name, kind, severity, text in issues
        ],
        indent=1,
        ensure_ascii=False,
    )


def write_code_quality(found: Checked, place: str, path: Path, link: str = "") -> None:
    """Write GitLab's report atomically. Raises InputError if the disk refuses."""
    write_output(path, code_quality(found, place, link) + "\n", hint="choose another --code-quality FILE")
