"""The plain-text comparison of runs of pools, 80 columns wide.

The page docs/reference/progress-share.md describes the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.experiments.kind import Ended
from harness.systems.progress_share.cloud.model import DRIVER, LoadedPools


def comparison_pools(experiment: LoadedPools, ended: Sequence[Ended]) -> list[str]:
    """Return one line per configuration; after a run on containers, also the time that the model predicts."""
    docker = experiment.spec.docker
    on_containers = docker is not None and any("hour_s" in run.summary for run in ended)
    heads = f"{'speed':>8}{'dollars a period':>18}"
    lines = [f"{'configuration':<24}{'hours':>8}" + (f"{'by model':>10}" if on_containers else "") + heads]
    lines[0] += f"{'billed':>8}" if on_containers else f"{'billed hours':>14}"
    slowest = max(run.summary["makespan_s"] for run in ended)
    for run in ended:
        s = run.summary
        model = f"{s['predicted_makespan_s'] / 3600:.2f}" if s.get("predicted_makespan_s") is not None else "-"
        speed = f"{slowest / s['makespan_s']:.2f}" if s["makespan_s"] else "-"
        billed = s["accelerator_billed_h"] or "-"
        lines.append(
            f"{run.name[:23]:<24}{s['makespan_s'] / 3600:8.2f}"
            + (f"{model:>10}" if on_containers else "")
            + f"{speed:>8}{s['cost_dollars']:18.2f}"
            + (f"{billed:>8}" if on_containers else f"{billed:>14}")
        )
        for at, period in s.get("periods", {}).items():
            wanted = ", ".join(f"{count} {kind}" for kind, count in period["accelerators"].items()) or "no accelerator"
            met = "met" if period["meets_deadline"] else "missed"
            lines.append(f"  period {at}: {wanted}; {period['hours']:.2f} h, deadline {s['deadline_h']:g} h {met}")
        if run.name == DRIVER and not on_containers:
            count, kind = s["nodes"]["accelerators"], s["types"]["accelerators"]
            mix = s.get("accelerators", {kind: count})
            extra = ", ".join(f"{count} {kind or ''}" for kind, count in mix.items())
            lines.append(f"  the driver's choice: {s['nodes']['core']} {s['types']['core']}, {extra}")
    if on_containers and docker is not None:
        lines.append(f"an hour is {docker.hour_s:g} s of wall-clock time")
    return lines
