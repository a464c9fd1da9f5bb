"""``yarnfair validate`` as a linter: levels and exit codes, codes that are chosen, formats, and the pre-commit hook."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli import main
from harness.yarn.rules import RULES, Level

ROOT = Path(__file__).resolve().parents[2]
BAD = '<allocations>\n<queue name="a"><wieght>1</wieght>\n<maxRunningApps>0</maxRunningApps></queue>\n</allocations>'
WARNED = '<allocations>\n<queue name="a"><maxRunningApps>0</maxRunningApps></queue>\n</allocations>'


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["validate", *map(str, arguments)])
    out, err = capsys.readouterr()
    return int(str(stop.value.code or 0)), out, err


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.xml"
    path.write_text(BAD)
    return path


@pytest.fixture
def warned(tmp_path: Path) -> Path:
    path = tmp_path / "warned.xml"
    path.write_text(WARNED)
    return path


def test_errors_are_1_warnings_alone_are_0_unless_strict(
    capsys: pytest.CaptureFixture[str], bad: Path, warned: Path
) -> None:
    assert run(capsys, bad)[0] == 1
    code, out, err = run(capsys, warned)
    assert (code, out) == (0, f"{warned} is valid\n")
    assert err.startswith(f"yarnfair: warning: {warned}:2: queue root.a: <maxRunningApps> is 0")
    assert err.endswith(" [YF611]\n")
    assert run(capsys, warned, "--strict")[0] == 1


def test_codes_are_chosen_by_their_beginnings(capsys: pytest.CaptureFixture[str], bad: Path) -> None:
    assert run(capsys, bad, "--ignore", "YF501")[0] == 0
    assert run(capsys, bad, "--select", "YF6")[0] == 0
    code, _, err = run(capsys, bad, "--select", "yf5,YF6", "--ignore", "YF6")
    assert (code, err.count("\n")) == (1, 1)
    code, _, err = run(capsys, bad, "--ignore", "YF999")
    assert (code, "no code 'YF999'" in err) == (2, True)


def test_several_files_are_one_document(capsys: pytest.CaptureFixture[str], bad: Path, warned: Path) -> None:
    code, out, _ = run(capsys, bad, warned, "--json")
    answer = json.loads(out)
    assert (code, answer["valid"], list(answer["files"])) == (1, False, [str(bad), str(warned)])
    assert [one["code"] for one in answer["files"][str(warned)]["warnings"]] == ["YF611"]


def test_json_has_code_and_level(capsys: pytest.CaptureFixture[str], bad: Path) -> None:
    answer = json.loads(run(capsys, bad, "--format", "json")[1])
    assert set(answer) == {"valid", "errors", "warnings"}
    assert [(one["code"], one["level"], one["line"]) for one in answer["errors"] + answer["warnings"]] == [
        ("YF501", "error", 2),
        ("YF611", "warning", 3),
    ]


def test_github_shows_findings_at_their_lines(capsys: pytest.CaptureFixture[str], bad: Path) -> None:
    code, out, _ = run(capsys, bad, "--format", "github")
    assert code == 1
    for line, level in zip(out.splitlines(), ("error", "warning"), strict=True):
        assert re.fullmatch(rf"::{level} file=[^,:]+,line=\d,title=YF\d\d\d::queue root.a: .*", line), line


def test_sarif_is_a_log_with_rules_and_places(capsys: pytest.CaptureFixture[str], bad: Path) -> None:
    log: dict[str, Any] = json.loads(run(capsys, bad, "--format", "sarif")[1])
    (only,) = log["runs"]
    rules = only["tool"]["driver"]["rules"]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in rules] == ["YF501", "YF611"]
    for result, level in zip(only["results"], ("error", "warning"), strict=True):
        place = result["locations"][0]["physicalLocation"]
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == level
        assert place["artifactLocation"]["uri"] == str(bad)
        assert place["region"]["startLine"] >= 1


def test_the_hook_runs_on_scheduler_files_and_fails_on_errors(
    capsys: pytest.CaptureFixture[str], bad: Path, warned: Path
) -> None:
    """What pre-commit does with .pre-commit-hooks.yaml: the entry, with the files that match, one call."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    matching = re.compile(hook["files"])
    for name in ("fair-scheduler.xml", "conf/capacity-scheduler.xml", "a/b/fair-scheduler-allocation.xml"):
        assert matching.search(name), name
    for name in ("yarn-site.xml", "my-fair-scheduler.xml", "fair-scheduler.xml.j2"):
        assert not matching.search(name), name
    command, verb = shlex.split(hook["entry"])
    assert (command, verb) == ("yarnfair", "validate")
    assert run(capsys, bad, warned)[0] == 1
    assert run(capsys, warned)[0] == 0


def test_every_code_has_its_place_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "validate.md").read_text()
    for code, rule in RULES.items():
        assert f"### {code}: {rule.title}" in page
        assert re.fullmatch(r"YF\d{3}", code)
        assert rule.why.endswith((".", ")"))
        assert rule.fix.endswith((".", ")"))
        # What is refused is an error.
        assert rule.level is Level.ERROR or not rule.refused


SAMPLES = {
    "capacity": """<configuration>
  <property><name>yarn.scheduler.capacity.maximum-applications</name><value>10000</value></property>
  <property><name>yarn.scheduler.capacity.maximum-am-resource-percent</name><value>0.1</value></property>
  <property>
    <name>yarn.scheduler.capacity.resource-calculator</name>
    <value>org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator</value>
  </property>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>default</value></property>
  <property><name>yarn.scheduler.capacity.root.default.capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.default.user-limit-factor</name><value>1</value></property>
  <property><name>yarn.scheduler.capacity.root.default.maximum-capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.root.default.state</name><value>RUNNING</value></property>
  <property><name>yarn.scheduler.capacity.root.default.acl_submit_applications</name><value>*</value></property>
  <property><name>yarn.scheduler.capacity.root.default.acl_administer_queue</name><value>*</value></property>
  <property><name>yarn.scheduler.capacity.root.default.acl_application_max_priority</name><value>*</value></property>
  <property>
    <name>yarn.scheduler.capacity.root.default.maximum-application-lifetime</name><value>-1</value>
  </property>
  <property>
    <name>yarn.scheduler.capacity.root.default.default-application-lifetime</name><value>-1</value>
  </property>
  <property><name>yarn.scheduler.capacity.node-locality-delay</name><value>40</value></property>
  <property><name>yarn.scheduler.capacity.rack-locality-additional-delay</name><value>-1</value></property>
  <property><name>yarn.scheduler.capacity.queue-mappings</name><value></value></property>
  <property><name>yarn.scheduler.capacity.queue-mappings-override.enable</name><value>false</value></property>
  <property>
    <name>yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments</name><value>1</value>
  </property>
  <property><name>yarn.scheduler.capacity.application.fail-fast</name><value>false</value></property>
  <property><name>yarn.scheduler.capacity.workflow-priority-mappings</name><value></value></property>
  <property>
    <name>yarn.scheduler.capacity.workflow-priority-mappings-override.enable</name><value>false</value>
  </property>
</configuration>
""",
}


def test_hadoops_own_sample_has_no_findings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The properties of the capacity-scheduler.xml that Hadoop comes with, its empty mappings included."""
    path = tmp_path / "capacity-scheduler.xml"
    path.write_text(SAMPLES["capacity"])
    assert run(capsys, path, "--strict") == (0, f"{path} is valid\n", "")


def test_settings_of_the_fair_scheduler_are_not_taken_for_queues(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "fair-scheduler.xml"
    path.write_text(
        "<configuration><property><name>yarn.scheduler.fair.preemption</name><value>true</value></property>"
        "</configuration>"
    )
    code, _, err = run(capsys, path)
    assert (code, err.count("\n"), "[YF002]" in err) == (1, 1, True)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docker").rglob("*scheduler*.xml")))
def test_the_projects_own_files_have_no_errors(capsys: pytest.CaptureFixture[str], name: str) -> None:
    (path,) = (ROOT / "docker").rglob(name)
    assert run(capsys, path)[0] == 0
