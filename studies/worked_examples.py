"""The papers' worked examples on paper.

python -m studies.worked_examples -o docs/records/worked-examples.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.model.data import data_path
from harness.paper.reader import read_top
from harness.paper.steps import read_scenario
from harness.paper.units import allocate
from harness.policies import make_policy
from harness.systems.progress_share.scenarios import play_rates, read_rates
from studies.result import write

#: Worked examples of the papers: name, scenario in workloads/scenarios, policy, settings.
EXAMPLES: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("table-1 fair", "ltyarn-table-1", "fair", {}),
    ("table-1 ltrf", "ltyarn-table-1", "ltrf", {}),
    ("thesis-table-5-1 ltrf", "thesis-table-5-1", "ltrf", {"discount": "0.5"}),
    ("fig-2 naive-hltrf", "ltyarn-fig-2", "naive-hltrf", {}),
    ("fig-2 hltrf t_wait=4", "ltyarn-fig-2", "hltrf", {"t_wait": "4"}),
)


def _rates_example(name: str) -> dict[str, Any]:
    """HotCloud 2011's two jobs on two slots of N1 and four of N2, without the single steps."""
    path = data_path("workloads", "scenarios", "progress-share.yaml")
    scenario = read_rates(read_top(path.read_text(encoding="utf-8"), path.name))
    answer = play_rates(scenario, make_policy(name, {})).document()
    return {key: value for key, value in answer.items() if key != "steps"}


def measure() -> dict[str, Any]:
    """The papers' worked examples on paper, as ``yarnfair allocate`` answers them."""
    values: dict[str, Any] = {}
    for name, scenario, policy, settings in EXAMPLES:
        path = data_path("workloads", "scenarios", f"{scenario}.yaml")
        read = read_scenario(path.read_text(encoding="utf-8"), path.name)
        answer = allocate(read, make_policy(policy, settings))
        document, steps = answer.document(), answer.steps
        values[name] = {leaf: [step[leaf] for step in steps] for leaf in steps[0]}
        values[name]["totals"] = document["totals"]
        values[name]["counted"] = document["counted"]
        if scenario == "ltyarn-fig-2":
            # The first wave is served when as many units are as it asked for.
            wave, served = sum(sum(arrived.values()) for arrived in read.arrivals[:27]), 0
            for number, step in enumerate(steps, start=1):
                served += sum(step.values())
                if served >= wave:
                    values[name]["last step of the first wave"] = number
                    break
            values[name]["first unit of B after step 28"] = next(
                number for number, step in enumerate(steps, start=1) if number >= 28 and step["B"] > 0
            )
    for policy in ("fair", "progress-share"):
        values[f"progress-share {policy}"] = _rates_example(policy)
    return values


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the result."""
    parser = argparse.ArgumentParser(prog="python -m studies.worked_examples", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    write(given.out, "python -m studies.worked_examples -o docs/records/worked-examples.json", measure())
    return 0


if __name__ == "__main__":
    sys.exit(main())
