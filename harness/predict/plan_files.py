"""Checks both files of a change with `yarnfair validate`: findings that stop a plan, and findings to report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.yarn.fair.parse import read_bytes
from harness.yarn.findings import Finding, Verdict
from harness.yarn.rules import Level
from harness.yarn.validation import check_document


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """The findings of `check_files`.

    Parameters
    ----------
    stops
        Findings that prevent the simulation.
    told
        Other findings to report.
    refuses_after
        Whether one of ``stops`` is in the new file.
    document
        For ``--json``: the number of findings, and those that only the new file has.
    """

    stops: tuple[str, ...]
    told: tuple[str, ...]
    refuses_after: bool
    document: Mapping[str, Any]


def check_files(before: str, after: str) -> CheckedFiles:
    """Validate both files.

    A plan stops at settings that the ResourceManager refuses, in either file, and at errors that the change adds.
    Errors that are in force already are reported, and so are warnings that the change adds.

    Raises
    ------
    InputError
        A file cannot be read.
    """
    here = check_document(read_bytes(before), source=before)
    there = here if after == before else check_document(read_bytes(after), source=after)
    known = {_kind(one) for one in here.findings}
    new = [one for one in there.findings if _kind(one) not in known]
    stops = [one.text(before) for one in here.findings if one.refused]
    refused = [one for one in there.findings if one.refused or (one in new and one.level is Level.ERROR)]
    told = [f"{one.level.value}: {one.text(before)}" for one in here.errors if not one.refused]
    told += [f"{one.level.value}, new: {one.text(after)}" for one in new if one.level is Level.WARNING]
    if there is not here:
        stops += [one.text(after) for one in refused]
    return CheckedFiles(
        tuple(stops),
        tuple(told),
        bool(refused) and there is not here,
        {
            "before": _counts(here),
            "after": _counts(there),
            "new": [
                {"line": one.line, "queue": one.queue, "what": one.what, "hint": one.hint, "code": one.code}
                for one in new
            ],
        },
    )


def _kind(one: Finding) -> tuple[str, str | None, str]:
    """Return what makes two findings equal, regardless of their position."""
    return one.code, one.queue, one.what


def _counts(verdict: Verdict) -> dict[str, int]:
    return {"errors": len(verdict.errors), "warnings": len(verdict.warnings), "hints": len(verdict.hints)}
