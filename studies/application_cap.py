"""How much Facebook's assumed cap on running applications decides in ``ltyarn``, over five seeds.

python -m studies.application_cap -o docs/records/application-cap.json
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.report.gallery.spread import spread
from studies.from_runs import collect
from studies.result import main_of

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "experiments" / "ltyarn.yaml"
#: The assumed cap, about half and one and a half times it. With twice it, 26 masters leave static partitioning one of
#: Facebook's 27 containers for tasks, and the load does not end within the time limit.
CAPS = (7, 13, 20)
_GIVEN = "max_running_apps: 13"


def measured(cap: int, folder: Path) -> dict[str, Any]:
    """The experiment with another cap: by policy the loss, and Facebook's speed-ups over static partitioning."""
    text = FILE.read_text(encoding="utf-8")
    if text.count(_GIVEN) != 1:
        raise ValueError(f"{FILE.name} has no single {_GIVEN!r}")
    file = folder / f"cap-{cap}.yaml"
    file.write_text(text.replace(_GIVEN, f"max_running_apps: {cap}"), encoding="utf-8")
    out = folder / f"cap-{cap}"
    command = [sys.executable, "-m", "harness", "run", str(file), "--seed", "1-5", "--jobs", "1", "--no-report"]
    command += ["--policy", "static,fair,ltyarn", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found: dict[str, Any] = {}
    for name, repeats in collect(out).items():
        summaries = [summary for _, _, summary in repeats.values()]
        facebook = [summary["queues"]["root.Facebook"] for summary in summaries]
        found[name] = {
            "sharing_loss": spread([summary["sharing_loss"] for summary in summaries]),
            "last_loss_s": spread([summary["last_loss_s"] for summary in summaries]),
            "mean_job_speedup": spread([queue["speedup_over_static"] for queue in facebook]),
            "workload_speedup": spread([queue["workload_speedup_over_static"] for queue in facebook]),
            "fairness_degree": spread([queue["fairness_degree"] for queue in facebook]),
        }
    return found


def values() -> dict[str, Any]:
    """By the cap."""
    with tempfile.TemporaryDirectory(prefix="yarnfair-cap-") as folder:
        return {"caps": {str(cap): measured(cap, Path(folder)) for cap in CAPS}}


main = main_of("application_cap", __doc__, values)

if __name__ == "__main__":
    sys.exit(main())
