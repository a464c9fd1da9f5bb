"""``yarnfair allocate``: which user gets what in a scenario on paper, step by step."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.files import read_text
from harness.cli import names
from harness.cli.output import json_option, named_values, print_result


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path), shell_complete=names.brought("scenarios"))
@click.option(
    "--policy",
    "policy_name",
    required=True,
    metavar="P",
    help="static, fair, drf, fifo, ltrf, ...",
    shell_complete=names.policies,
)
@click.option("--set", "sets", multiple=True, metavar="K=V", help="A setting of the policy; may be repeated.")
@json_option
def allocate(scenario: Path, policy_name: str, sets: tuple[str, ...], as_json: bool) -> None:
    """Allocate SCENARIO (a YAML file, or a name of `yarnfair list scenarios`) under a policy, in exact arithmetic.

    Each step is filled unit by unit. The format of scenarios: docs/reference/scenario.md; policies and their settings:
    docs/reference/policies.md.
    """
    from harness.model.brought import named
    from harness.paper import play
    from harness.policies import make_policy
    from harness.policies.user_file import users_mistakes

    settings: dict[str, object] = {}
    if policy_name.endswith((".yaml", ".yml")):
        from harness.experiments.policy_file import read_policy_file

        configured = read_policy_file(Path(policy_name))
        policy_name, settings = configured.policy, dict(configured.settings)
    policy = make_policy(policy_name, settings | named_values(sets))
    scenario = named("scenarios", scenario)
    with users_mistakes():
        answer = play(read_text(scenario), str(scenario), policy)
    print_result(as_json, answer.document(), [answer.table()])
