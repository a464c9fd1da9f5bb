"""Every mistake in a capacity-scheduler.xml is found, with its line; a good file has none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.yarn.capacity.validate import is_configuration, validate_properties

P = "yarn.scheduler.capacity."


def file(*properties: tuple[str, str]) -> str:
    said = (("root.queues", "a,b"), ("root.a.capacity", "1w"), ("root.b.capacity", "3w"), *properties)
    lines = [f"<property><name>{P}{name}</name><value>{value}</value></property>" for name, value in said]
    return "\n".join(["<configuration>", *lines, "</configuration>"])


def test_a_good_file_has_none() -> None:
    good = file(
        ("root.a.user-settings.alice.weight", "0.5"),
        ("queue-mappings", "u:%user:a"),
        # Root closed: below an open one an access list has no effect.
        ("root.acl_submit_applications", " "),
        ("user.alice.max-parallel-apps", "3"),
        ("root.a.acl_submit_applications", "alice,bob ops"),
        ("root.b.accessible-node-labels.gpu.capacity", "1w"),
        ("root.a.accessible-node-labels.gpu.capacity", "1w"),
        ("root.b.maximum-capacity", "50"),
        ("root.ordering-policy", "priority-utilization"),
    )
    verdict = validate_properties(good)
    assert (verdict.errors, verdict.warnings) == ([], [])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("root.a.capcity", "1w", "capcity is not a setting"),
        ("root.ab.capacity", "1w", "no such queue"),
        ("root.a.maximum-capacity", "101", "not within 0 and 100"),
        ("root.a.user-limit-factor", "x", "not a number"),
        ("root.a.user-limit-factor", "-2", "no user gets anything"),
        ("root.a.reservable", "on", "taken for its default"),
        ("root.a.state", "OPEN", "state 'OPEN' is none"),
        ("root.a.queues", "x,,x", "an empty name"),
        ("root.b.capacity", "4w", "appears twice"),
        ("root.a.maximum-capacity", "[memory=1,vcores=1]", "absolute maximum"),
        ("root.a.acl_submit_applications", "bob,*", "means users bob, '*'"),
        ("global-queue-max-application", "0", "is ignored"),
        ("root.ordering-policy", "fifo", "ordering-policy 'fifo' is none here"),
    ],
)
def test_a_mistake_is_found_with_its_line(name: str, value: str, words: str) -> None:
    verdict = validate_properties(file((name, value)))
    assert any(words in found.what for found in verdict.errors), verdict.errors
    assert all(found.line in (2, 5) for found in verdict.errors)


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("<configuration><propety/></configuration>", "is not read as a property"),
        ("<configuration><property><nam>x</nam><value>1</value></property></configuration>", "without name or value"),
        ("<configuration>words</configuration>", "text between"),
        ("<configuration/>", "no queues below root"),
        ("<configuration>", "no element found"),
        ("<!DOCTYPE x><configuration/>", "DOCTYPE"),
    ],
)
def test_xml_that_is_read_otherwise(xml: str, words: str) -> None:
    assert any(words in found.what for found in validate_properties(xml).errors)


def test_a_root_that_makes_its_queues_by_itself_may_name_none() -> None:
    """Hadoop starts with it (tests/oracle/test_capacity_files.py)."""
    name = "yarn.scheduler.capacity.root.auto-queue-creation-v2.enabled"
    xml = f"<configuration><property><name>{name}</name><value>true</value></property></configuration>"
    assert validate_properties(xml).errors == []


def test_the_two_kinds_of_file_are_told_apart() -> None:
    assert is_configuration(b"<?xml version='1.0'?>\n<!-- <allocations> -->\n<configuration/>")
    assert not is_configuration(b"<!-- <configuration> --><allocations/>")
    assert not is_configuration(b"\xff\xfe")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(str(stop.value.code)), out, err


def test_what_is_rendered_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "q.yaml"
    tree.write_text("queues: {a: {weight: 2, max_resources: {memory_percent: 50}}, g: {children: {x: {}, y: {}}}}\n")
    to = tmp_path / "c.xml"
    code, _, err = run(capsys, "render", str(tree), "--scheduler", "capacity", "-o", str(to))
    assert code == 0, err
    code, out, _ = run(capsys, "validate", str(to), "--json")
    assert (code, json.loads(out)["valid"]) == (0, True)
    tree.write_text("queues: {a: {min_resources: {memory_mb: 5, vcores: 1}}}\n")
    code, _, err = run(capsys, "render", str(tree), "--scheduler", "capacity")
    assert code == 1
    assert "root.a: its minimum share" in err
    assert "Traceback" not in err


_TWO = {"root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50", "queue-mappings": "u:%user:root.a"}


@pytest.mark.parametrize(
    ("settings", "older", "newer", "both"),
    [
        # Read only where it schedules asynchronously, which 3.5 does by itself.
        (
            {"schedule-asynchronously.scheduling-interval-ms": "x"},
            ["YF204"],
            ["YF101"],
            [("YF101", " (in Hadoop 3.5)")],
        ),
        # Amounts of nothing are absolute since 3.5.
        (
            {"root.a.capacity": "[memory=0]"},
            ["YF143", "YF310"],
            ["YF140", "YF310"],
            [("YF143", " (in Hadoop 3.4)"), ("YF140", " (in Hadoop 3.5)"), ("YF310", "")],
        ),
        # Since 3.5 a vector need not name memory.
        (
            {"legacy-queue-mode.enabled": "false", "root.a.capacity": "[vcores=2]", "root.b.capacity": "1w"},
            ["YF218"],
            [],
            [("YF218", " (in Hadoop 3.4)")],
        ),
        ({"root.a.capacity": "40"}, ["YF143"], ["YF143"], [("YF143", "")]),
    ],
)
def test_a_file_is_judged_as_the_release_reads_it_or_as_each_of_them_does(
    settings: dict[str, str], older: list[str], newer: list[str], both: list[tuple[str, str]]
) -> None:
    rows = (
        f"<property><name>{P}{name}</name><value>{text}</value></property>" for name, text in (_TWO | settings).items()
    )
    document = f"<configuration>{''.join(rows)}</configuration>"
    for release, codes in (((3, 4), older), ((3, 5), newer)):
        found = validate_properties(document, hadoop=release).findings
        assert [one.code for one in found] == codes
        assert not any("in Hadoop" in one.what for one in found)
    found = validate_properties(document).findings
    assert [
        (one.code, one.what[one.what.find(" (in Hadoop") :] if "(in Hadoop" in one.what else "") for one in found
    ] == both
