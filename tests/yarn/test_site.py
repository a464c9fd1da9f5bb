"""What `validate` says of yarn-site.xml: with its line there, and only what concerns the scheduler in use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import yarnfair
from harness.cli import main
from harness.yarn.validation import check_document, read_site
from tests.yarn.site_refused import CAPACITY, FINE, REFUSED, document, schedulers, site


@pytest.mark.parametrize(("code", "named", "settings", "said"), REFUSED)
def test_what_the_resource_manager_refuses_is_found_where_it_is(
    code: str, named: str, settings: dict[str, str], said: str
) -> None:
    for scheduler in schedulers(named):
        verdict = check_document(document(scheduler), source="file", site=read_site(site(settings), source="site.xml"))
        (found,) = [one for one in verdict.findings if one.refused]
        assert found.code == code
        assert said in found.what
        text = found.text("file")
        # A calculator that is missing can only be written into the scheduler's file.
        assert text.startswith("file:" if code == "YF104" else "site.xml:")
        named_there = [line for line, name in enumerate(settings, start=2) if name in found.what or line == found.line]
        assert code == "YF104" or found.line in named_there


@pytest.mark.parametrize(("named", "settings"), FINE)
def test_what_the_resource_manager_takes_is_not_refused(named: str, settings: dict[str, str]) -> None:
    for scheduler in schedulers(named):
        verdict = check_document(document(scheduler), source="file", site=read_site(site(settings), source="site.xml"))
        assert not verdict.refused, verdict.findings


def test_a_suggestion_for_a_monitor_is_its_full_name() -> None:
    settings = {
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        "yarn.resourcemanager.scheduler.monitor.policies": "ProportionalCapacityPreemptionPolicy",
    }
    verdict = check_document(CAPACITY.encode(), source="file", site=read_site(site(settings), source="site.xml"))
    (found,) = verdict.errors
    settings["yarn.resourcemanager.scheduler.monitor.policies"] = found.hint.removeprefix("write ")
    again = check_document(CAPACITY.encode(), source="file", site=read_site(site(settings), source="site.xml"))
    assert not again.refused


def test_every_format_names_the_file_of_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = tmp_path / "capacity-scheduler.xml", tmp_path / "yarn-site.xml"
    file.write_text(CAPACITY)
    other.write_bytes(site({"a": "b", "yarn.resourcemanager.am.max-attempts": "0"}))
    printed = {}
    for form in ("text", "json", "github", "sarif"):
        with pytest.raises(SystemExit) as stop:
            main(["validate", str(file), "--yarn-site", str(other), "--format", form])
        assert stop.value.code == 1
        done = capsys.readouterr()
        printed[form] = done.err if form == "text" else done.out
    assert f"{other}:3: yarn.resourcemanager.am.max-attempts 0" in printed["text"]
    (error,) = json.loads(printed["json"])["errors"]
    assert (error["file"], error["line"]) == (str(other), 3)
    assert f"::error file={other},line=3" in printed["github"].replace("%3A", ":").replace("%2C", ",")
    (result,) = json.loads(printed["sarif"])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": str(other)},
        "region": {"startLine": 3},
    }
    row = yarnfair.validate(file, yarn_site=other).findings.iloc[0]
    assert (row["file"], row["line"], row["code"]) == (str(other), 3, "YF108")


def test_what_the_schedulers_own_file_sets_is_at_its_line_there() -> None:
    setting = "<property><name>yarn.scheduler.minimum-allocation-mb</name><value>9000</value></property>"
    text = CAPACITY.replace("</configuration>", f"{setting}\n</configuration>")
    verdict = check_document(text.encode(), source="file", site=read_site(site({}), source="site.xml"))
    assert [(one.code, one.file, one.line) for one in verdict.errors] == [("YF102", None, 4)]
