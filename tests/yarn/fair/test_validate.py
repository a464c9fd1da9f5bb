"""Every mistake in an allocation file is found, with its line, and nothing is found in good ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.yarn.fair.validate import validate_allocations
from tests.yarn.fair.odd_files import FILES

#: The odd files that are all right nevertheless: odd in writing, not in meaning.
FINE = {
    "predefined entity",
    "character reference",
    "comment in a number",
    "comment before a number",
    "comment amid a number",
    "CDATA",
    "tabs and newlines",
    "blank access list",
    "root",
    "root alone",
    "root as a leaf with an AM share",
    "root below",
    "below default",
    "astral name",
    "zero-width space in a name",
    "reservation",
    "maximum without memory",
    "minimum without vcores",
    "MB in capitals",
    "percent of memory alone",
    "Arabic digits",
    "plus sign",
    "hexadecimal weight",
    "float suffix",
    "many digits",
    "many digits of an integer",
    "halfway float",
    "below halfway float",
    "exactly halfway float",
    "default time-out, old name",
    "preemption of a parent",
    "placement, secondary with parent",
    "policy by its class",
    "containers' maximum from above",
    "empty",
    # Used as it is written: a hint.
    "white space in a name",
}


@pytest.mark.parametrize("name", FILES)
def test_odd_files_are_found_odd(name: str) -> None:
    verdict = validate_allocations(FILES[name])
    assert verdict.valid == (name in FINE), [found.text("file") for found in verdict.errors]
    for found in (*verdict.errors, *verdict.warnings):
        assert found.line >= 1
        assert found.what
        assert found.hint
        assert "\n" not in found.text("file")


@pytest.mark.parametrize(
    ("inside", "line", "queue", "part"),
    [
        ('<queue name="a">\n<wieght>3</wieght></queue>', 2, "root.a", "ignores the element <wieght>"),
        ('\n<queues name="a"/>', 2, None, "ignores the element <queues>"),
        ('<queue nmae="a"/>', 1, "root", "unknown attribute 'nmae'"),
        ('<queue name="a"><weight>1e-9</weight></queue>', 1, "root.a", "is not between"),
        ('<queue name="a"><weight>NaN</weight></queue>', 1, "root.a", "hangs"),
        ('<queue name="a"><weight>1</weight>\n<weight>2</weight></queue>', 2, "root.a", "appears twice (line 1 too)"),
        ('<queue name="a"/>\n<pool name="a"/>', 2, "root.a", "the queue appears twice (line 1 too)"),
        ('<queue name=" a"/>', 1, "root.a", "white space at its ends"),
        ('<queue name="a"><maxResources>memory-mb=5</maxResources></queue>', 1, "root.a", "-1 vcores"),
        ('<queue name="a"><minResources>5%</minResources></queue>', 1, "root.a", "in percent is ignored"),
        ('<queue name="a"><maxAMShare>1.2</maxAMShare></queue>', 1, "root.a", "cut to 1"),
        ('<queue name="a"><maxRunningApps>-1</maxRunningApps></queue>', 1, "root.a", "no application ever runs"),
        ('<queue name="a">weight 3</queue>', 1, "root.a", "stands directly in <queue>"),
        (
            '<queue name="a"><maxResources>5.5 mb, 3 vcores</maxResources></queue>',
            1,
            "root.a",
            "read as 5 mb, 3 vcores",
        ),
        (
            '<queue name="a">\n\n<schedulingPolicy>drf</schedulingPolicy></queue>',
            1,
            "root.a",
            "does not make this queue",
        ),
        ('<queue name="a"><aclSubmitApps>alice;bob</aclSubmitApps></queue>', 1, "root.a", "means user 'alice;bob'"),
        ('<user name="u"/>', 1, None, "has no limit"),
        ('<queuePlacementPolicy><rule name="usre"/></queuePlacementPolicy>', 1, None, "no placement rule is called"),
    ],
)
def test_findings(inside: str, line: int, queue: str | None, part: str) -> None:
    verdict = validate_allocations(f"<allocations>{inside}</allocations>")
    found = [one for one in verdict.errors if part in one.what]
    assert found, verdict.errors
    assert (found[0].line, found[0].queue) == (line, queue)


def test_all_mistakes_are_told_at_once() -> None:
    inside = "".join(f'<queue name="q{i}"><weight>{-i}</weight></queue>\n' for i in range(1, 6))
    verdict = validate_allocations(f"<allocations>\n{inside}</allocations>")
    assert [found.line for found in verdict.errors] == [2, 3, 4, 5, 6]


def yarnfair(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_the_command(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    good.write_text('<allocations><queue name="a"/></allocations>')
    bad.write_text('<allocations>\n<queue name="a"><wieght>1</wieght></queue>\n</allocations>')
    done = yarnfair("validate", good, "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"valid": True, "errors": [], "warnings": []})
    done = yarnfair("validate", bad, "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["valid"] is False
    assert answer["errors"] == [
        {
            "file": str(bad),
            "line": 2,
            "queue": "root.a",
            "what": "the ResourceManager ignores the element <wieght>",
            "hint": "write <weight>",
            "code": "YF501",
            "level": "error",
        }
    ]
    assert done.stderr == ""
    done = yarnfair("validate", bad)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"yarnfair: {bad}:2: queue root.a: {answer['errors'][0]['what']}; write <weight> [YF501]\n"


def test_rendering_by_the_command(tmp_path: Path) -> None:
    queues, target = tmp_path / "queues.yaml", tmp_path / "fair-scheduler.xml"
    queues.write_text("queues: {a: {weight: 3}, b: {}}\n")
    target.write_text("old")
    target.chmod(0o640)
    done = yarnfair("render", queues, "-o", target)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "<weight>3</weight>" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640
    assert yarnfair("render", queues).stdout == target.read_text()
    assert json.loads(yarnfair("render", queues, "--json").stdout)["queues"] == ["root.a", "root.b"]
    before = target.read_bytes()
    queues.write_text("queues: {a: {weight: -3}}\n")
    done = yarnfair("render", queues, "-o", target)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert target.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fair-scheduler.xml", "queues.yaml"]
    done = yarnfair("render", queues, "-o", tmp_path / "no" / "such" / "folder.xml")
    assert done.returncode == 1
