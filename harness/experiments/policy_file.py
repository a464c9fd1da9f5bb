"""Policy configurations: YAML files with a policy and its settings (yarn-policy/), accepted as a policy's name."""

from __future__ import annotations

from pathlib import Path

from harness.base.documents import read_yaml, validated
from harness.base.errors import InputError
from harness.experiments.spec import PolicySpec


def is_policy_file(name: str) -> bool:
    """Return whether a policy's name on the command line is a configuration file."""
    return name.endswith((".yaml", ".yml"))


def read_policy_file(path: Path) -> PolicySpec:
    """Return the policy and settings of a configuration. Raises InputError with file and line for an invalid file."""
    found = validated(PolicySpec, read_yaml(path))
    if is_policy_file(found.policy):
        raise InputError("names another configuration", where=str(path), hint="name a policy")
    return found
