"""Progress share's Fig. 4 over the work that the paper's text leaves open: what it costs, and what the driver takes.

    python -m studies.cloud_range -o docs/records/cloud-range.json

The text's times (5m1 above 4 h, 5m1+8c1 below 2, 9m1 and 5m1+4c1 between 2 and 3) leave 80 to 108 CU-hours.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.documents import read_yaml
from harness.systems.progress_share.cloud.experiment import KIND
from studies.result import main_of
from studies.tables import Values, markdown

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "experiments" / "papers" / "progress-share" / "cloud-production.yaml"
#: CU-hours of the five queries together.
WORKS = (81, 85, 90, 94, 95, 96, 98, 100, 101, 105, 107)


def values() -> dict[str, Any]:
    """By the work: dollars of each configuration, the driver's accelerators and dollars."""
    loaded = KIND.load(read_yaml(FILE))
    found: dict[str, Any] = {}
    for work in WORKS:
        each = {name: query.model_copy(update={"work_cu_h": work / 5}) for name, query in loaded.spec.queries.items()}
        own = replace(loaded, spec=loaded.spec.model_copy(update={"queries": each}))
        runs = {variant.name: KIND.compute(own, variant) for variant in KIND.variants(own)}
        driver = runs.pop("driver")
        found[str(work)] = {
            "cost_dollars": {name: run.summary["cost_dollars"] for name, run in runs.items()},
            "hours": {name: round(run.summary["makespan_s"] / 3600, 4) for name, run in runs.items()},
            "driver": {
                "accelerators": driver.decisions[0]["accelerators"],
                "cost_dollars": driver.summary["cost_dollars"],
                "hours": round(driver.summary["makespan_s"] / 3600, 4),
            },
        }
    return {"works": found}


def table(record: Values) -> str:
    """A row a work: dollars of the configurations that it moves, and the driver's choice."""
    names = ("5m1", "5m1+4c1", "5m1+6c1", "5m1+8c1", "5m1+12c1", "5m1+15c1")
    rows = []
    for work, own in record["works"].items():
        chosen = own["driver"]
        taken = " + ".join(f"{count} {kind}" for kind, count in chosen["accelerators"].items())
        costs = [f"{own['cost_dollars'][name]:.2f}" for name in names]
        rows.append((work, *costs, f"{taken}: {chosen['cost_dollars']:.2f}"))
    return markdown(("CU-hours", *names, "the driver takes"), rows)


main = main_of("cloud_range", __doc__, values)

if __name__ == "__main__":
    sys.exit(main())
