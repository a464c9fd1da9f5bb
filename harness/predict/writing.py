"""Writes an assessment's document and a ready enforce.yaml beside its page, overwriting nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.base.files import write_json, write_text
from harness.clusters.daemons import SCHEDULERS
from harness.control.config import EnforceConfig, read_config
from harness.control.settings import MAX_RATIO
from harness.model.queues import SchedulerName
from harness.predict.assess import Assessed
from harness.predict.verdict import Played

DOCUMENT, CONFIG, PAGE, TRACE = "assess.json", "enforce.yaml", "assess.html", "trace.jsonl"
_OURS = (DOCUMENT, CONFIG, PAGE, TRACE, "replay.yaml")
_LEDGER = "/var/lib/yarnfair/ledger.db"
#: The folder of the scheduler's file in a configuration if the cluster does not show it.
_CONF = "/etc/hadoop/conf"


def fresh_folder(wanted: Path) -> Path:
    """Return the folder, or the first of NAME-2, NAME-3 ... that has none of an assessment's files."""
    folder, number = wanted, 1
    while folder.exists() and (not folder.is_dir() or any((folder / name).exists() for name in _OURS)):
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def config_text(
    best: Played, present: EnforceConfig | None, given: Mapping[str, object], scheduler: SchedulerName = "fair"
) -> str:
    """Return the text of a configuration that begins in shadow mode.

    It has the recommended policy, and the rest from ``present`` or ``given`` (``rms``; ``allocation_file``, or
    ``capacity_file``: None if a store has the Capacity Scheduler's settings).
    """
    document: dict[str, Any] = {"policy": best.policy, "settings": dict(best.settings)}
    if present is not None:
        kept = present.model_dump(mode="json", exclude_unset=True)
        # Settings of the candidate are written only once.
        replaced = {"policy", "settings", "mode", *(key for key in ("half_life",) if key in best.settings)}
        document.update({key: value for key, value in kept.items() if key not in replaced})
    else:
        kind = SCHEDULERS[scheduler]
        document.update({kind.file_key: f"{_CONF}/{kind.file_name}", "ledger": _LEDGER, **given})
        document = {key: value for key, value in document.items() if value is not None}
    document["mode"] = "shadow"
    document.setdefault("max_ratio", MAX_RATIO)
    head = (
        "# Written by `yarnfair assess`. It begins in shadow: the controller accounts and says what it would write,\n"
        "# and writes nothing. Then mode: bounded. Every key: docs/reference/enforce.md.\n"
    )
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def write_config(path: Path, text: str) -> None:
    """Write the configuration after checking it with the controller's own reader. Raises the reader's errors."""
    write_text(path, text)
    read_config(path)


def document_of(found: Assessed, config: Path | None) -> dict[str, Any]:
    """Return the answer of ``--json``, without the locations of files."""
    verdict, best = found.verdict, found.verdict.best
    recommended: dict[str, Any] = {}
    if best is not None:
        recommended = {
            "policy": best.policy,
            "name": best.name,
            "settings": dict(best.settings),
            "mode": "shadow",
            "traps": list(found.evidence.traps),
            "max_ratio": MAX_RATIO if config is None else read_config(config).max_ratio,
            "config": None if config is None else str(config),
        }
    return {
        "verdict": verdict.answer,
        "why": verdict.why,
        "lines": list(verdict.lines),
        "reproduction_error": verdict.reproduction_error,
        "policies": {played.name: _policy(found, played) for played in found.played},
        "recommended": recommended,
    }


def _policy(found: Assessed, played: Played) -> dict[str, Any]:
    present = found.evidence.present
    queues: dict[str, dict[str, Any]] = {}
    for queue, jobs in found.evidence.jobs.items():
        if not played.shows(queue):
            queues[queue] = {"jobs": jobs, "recorded_mean_completion_s": found.evidence.real_s[queue]}
            continue
        queues[queue] = {
            "jobs": jobs,
            "recorded_mean_completion_s": found.evidence.real_s[queue],
            **played.band(queue).document("mean_completion_s", "mean_completion_band_s"),
            **played.change(present, queue).document("change", "change_band"),
        }
    return {
        "phases": len(played.outcomes),
        **played.over("contended").document("contended", "contended_band"),
        **played.over("loss").document("sharing_loss_integral", "sharing_loss_integral_band"),
        **played.change(present).document("mean_completion_change", "mean_completion_change_band"),
        "queues": queues,
    }


def write_document(path: Path, document: Mapping[str, object]) -> None:
    """Write the document to a file, ``assess.json``."""
    write_json(path, document)
