"""Policy configurations stand wherever a policy's name does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.experiments.policy_file import read_policy_file

ROOT = Path(__file__).resolve().parents[2]
FIG_2 = ROOT / "workloads" / "scenarios" / "ltyarn-fig-2.yaml"


@pytest.mark.parametrize(
    "path",
    sorted(set((ROOT / "yarn-policy").glob("*.yaml")) - {ROOT / "yarn-policy" / "enforce.yaml"}),
    ids=lambda path: path.stem,
)
def test_each_configuration_makes_a_policy(path: Path) -> None:
    from harness.policies import make_policy

    found = read_policy_file(path)
    assert make_policy(found.policy, found.settings).name == found.policy


def test_allocate_takes_a_configuration_and_the_call_overrides_it() -> None:
    def second_wave(*arguments: str) -> int:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "harness",
                "allocate",
                "workloads/scenarios/ltyarn-fig-2.yaml",
                "--json",
                *arguments,
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        steps = json.loads(done.stdout)["steps"]
        return next(number for number, step in enumerate(steps, 1) if number >= 28 and step["B"] > 0)

    # LTYARN Fig. 2: H-LTRF with T_wait 4 serves B at step 32, the naive approach at 36 here.
    assert second_wave("--policy", "yarn-policy/hltrf-4s.yaml") == 32
    assert second_wave("--policy", "yarn-policy/hltrf-4s.yaml", "--set", "t_wait=inf") == 36


@pytest.mark.parametrize("text", ["", "policy: [1]", "policy: ltrf\nsetings: {}\n", "policy: other.yaml\n"])
def test_what_is_no_configuration_is_one_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"p\.yaml"):
        read_policy_file(path)
