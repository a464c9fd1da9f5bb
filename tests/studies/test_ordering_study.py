"""The thesis' job-ordering workloads, the records of the study on them, and the page that shows these."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.systems.mrorder.ordering import GREEDY, estimate, parse_jobs
from studies import ordering_online
from studies.ordering import EC2, FILES, as_csv, facebook, measure_variation, study
from studies.ordering import testbed as table_3_2

RECORDS = ("search", "greedy", "variation")


@pytest.mark.parametrize("name", FILES)
def test_the_committed_job_files_are_the_ones_that_are_made(root: Path, name: str) -> None:
    text = (root / "workloads" / "ordering" / f"{name}.csv").read_text()
    jobs = FILES[name]()
    assert text == as_csv(jobs)
    assert parse_jobs(text, name) == jobs


def test_the_command_writes_all_of_them(root: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(study, ["workloads", str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(f"{name}.csv" for name in FILES)


@pytest.mark.parametrize("count", [50, 100, 150])
def test_facebook_has_table_3_3_s_bins(count: int) -> None:
    jobs = facebook(count, seed=7)
    edges = (25, 50, 100, 200, 400, 800, 1600, 3200)
    bins = Counter(sum(job.maps > edge for edge in edges) for job in jobs)
    # 25 and 50 stand in the table's second bin by name; by number of maps 25 falls into the first.
    share = count // 50
    assert [bins[i] for i in range(9)] == [30 * share, 4 * share, 4 * share, 4 * share, 3 * share, 2 * share] + [
        share
    ] * 3
    assert all(1 <= job.reduces <= max(1, job.maps // 4 + 1) for job in jobs)
    assert facebook(count, seed=7) == jobs
    assert facebook(count, seed=8) != jobs


def test_the_testbed_begins_with_table_3_2_and_goes_on_with_other_sizes() -> None:
    jobs = table_3_2(20)
    assert [job.name for job in jobs[:2]] == ["Wordcount", "Sort"]
    assert (jobs[9].name, jobs[9].maps, jobs[9].map_s) == ("Wordcount-2", jobs[0].maps // 2, jobs[0].map_s)
    assert jobs[18].maps == 2 * jobs[0].maps


def test_without_variation_a_varied_run_is_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "testbed-100", lambda: table_3_2(5))
    monkeypatch.setitem(FILES, "facebook-100", lambda: facebook(50, 1)[:5])
    rows = measure_variation(seeds=1)["rows"]
    jobs = table_3_2(5)
    expected = estimate([jobs[i] for i in GREEDY["mk_jr"](jobs, EC2)], EC2).makespan
    assert rows[0]["variation_percent"] == 0
    assert rows[0]["mk_jr"]["makespan_s"] == float(expected)
    assert rows[5]["mk_jr"]["makespan_s"] != float(expected)


@pytest.mark.parametrize("name", RECORDS)
def test_each_record_says_what_made_it(root: Path, name: str) -> None:
    record = json.loads((root / "docs" / "records" / f"ordering-{name}.json").read_text())
    assert list(record) == ["command", "version", "values"]
    assert record["command"].startswith(f"python -m studies.ordering {name}")
    assert record["command"] in (root / "docs" / "figures-ordering.md").read_text()


def test_the_recorded_rules_are_what_the_rules_give(root: Path) -> None:
    record = json.loads((root / "docs" / "records" / "ordering-greedy.json").read_text())
    for name, item in record["values"]["files"].items():
        jobs = FILES[name]()
        for rule, figures in item["rules"].items():
            found = estimate([jobs[i] for i in GREEDY[rule](jobs, EC2)], EC2)
            assert figures["makespan_s"] == round(float(found.makespan), 3), (name, rule)
            assert figures["total_completion_time_s"] == round(float(found.total_completion_time), 3), (name, rule)
        for objective, key in (("makespan", "makespan_s"), ("tct", "total_completion_time_s")):
            best = item[f"best_{objective}"]
            assert best["bound_s"] <= best["best_s"] <= min(figures[key] for figures in item["rules"].values())


@pytest.mark.parametrize("step_s", [5, 30, 50])
def test_intervals_of_10_and_400_s_are_those_whatever_the_step(step_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def ordered(_load: object, _when: str, interval_s: float, _target: str) -> dict[str, float]:
        return dict.fromkeys(("tct_s", "flow_s", "makespan_s"), 100.0 + interval_s)

    monkeypatch.setattr(ordering_online, "ordered", ordered)
    monkeypatch.setattr(ordering_online, "unordered", lambda _load: ordered(_load, "", 0, ""))
    monkeypatch.setattr(ordering_online, "facebook_online", lambda count, seed: [])
    (row,) = ordering_online.measure_intervals([50], 2, step_s)["rows"]
    for found in row["policies"].values():
        assert (found["at_10_s"]["interval_s"], found["at_400_s"]["interval_s"]) == (10, 400)
        assert found["at_400_s"]["tct"]["mean"] == -80
        assert found["best"]["interval_s"] == min(step_s, 10)


def test_nine_jobs_took_the_thesis_97_seconds(root: Path) -> None:
    record = json.loads((root / "docs" / "records" / "ordering-search.json").read_text())
    (nine,) = (row for row in record["values"]["rows"] if row["jobs"] == 9)
    for objective in ("makespan", "tct"):
        assert nine[objective]["proven"]
        assert nine[objective]["wall_s"] < 1
