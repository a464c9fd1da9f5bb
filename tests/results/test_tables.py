"""Tables over many runs: pandas and SQL."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from harness import results
from harness.base.errors import CallError, InputError
from harness.cli import main
from tests.results.conftest import Write


@pytest.fixture
def runs(write: Write, tmp_path: Path) -> Path:
    """Two policies, three seeds; a jobs table and decisions in each."""
    for variant, factor in (("fair", 1.0), ("ltrf", 0.9)):
        for seed in (1, 2, 3):
            path = write(
                f"runs/{variant},seed={seed}",
                variant=f"{variant},seed={seed}",
                seed=seed,
                makespan_s=1000.0 * factor + seed,
            )
            table = pd.DataFrame(
                {"job": ["j1", "j2"], "queue": ["root.a", "root.b"], "completion_s": [10.0 * seed, 4.0]}
            )
            table.to_parquet(path / "jobs.parquet", index=False)
            (path / "decisions.jsonl").write_text('{"time_s": 1.5, "kind": "write"}\n{"time_s": 3, "ki')
    return tmp_path / "runs"


def test_runs_and_queues(runs: Path) -> None:
    found = results.load(runs)
    assert list(found.runs.columns[:8]) == [
        "run", "experiment", "variant", "policy", "mode", "backend", "seed", "repeat"
    ]  # fmt: skip
    means = found.runs.groupby("variant")["makespan_s"].mean()
    assert means.to_dict() == {"fair": 1002.0, "ltrf": 902.0}
    assert found.runs["utilisation.memory"].tolist() == [0.9] * 6
    assert len(found.queues) == 12
    assert set(found.queues["queue"]) == {"root.a", "root.b"}
    assert found.queues["mean_completion_s"].tolist() == [100.0] * 12


def test_jobs_decisions_and_what_is_not_there(runs: Path) -> None:
    found = results.load([runs / "fair,seed=1", runs / "ltrf,seed=2"])
    assert len(found.jobs) == 4
    assert found.jobs.groupby("run")["completion_s"].max().to_dict() == {"fair,seed=1": 10, "ltrf,seed=2": 20}
    assert found.decisions["kind"].tolist() == ["write", "write"], "a half written line is left out"
    assert found.allocations.empty


def test_sql(runs: Path) -> None:
    answer = results.sql(
        "SELECT r.variant, max(j.completion_s) AS longest FROM jobs j JOIN runs r USING (run) GROUP BY 1 ORDER BY 1",
        runs,
    )
    assert answer.to_dict("records") == [
        {"variant": "fair", "longest": 30.0},
        {"variant": "ltrf", "longest": 30.0},
    ]
    assert len(results.sql("SELECT * FROM allocations", runs)) == 0


@pytest.mark.parametrize(
    "query", ["SELECT nothing FROM runs", "SELEC", "SELECT * FROM read_csv('/etc/passwd')", "COPY runs TO '/tmp/x.csv'"]
)
def test_a_query_sees_these_tables_and_nothing_else(query: str, runs: Path) -> None:
    with pytest.raises(CallError):
        results.sql(query, runs)


def test_the_command(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as caught:
            main(["sql", *arguments])
        assert isinstance(caught.value.code, int)
        return caught.value.code, capsys.readouterr().out

    query = "SELECT variant, count(*) AS n, avg(makespan_s) AS mean FROM runs GROUP BY 1 ORDER BY 1"
    code, out = call(query, str(runs), "--json")
    assert code == 0
    assert json.loads(out)["rows"][0] == {"variant": "fair", "n": 3, "mean": 1002.0}
    assert call(query, str(runs), "--csv")[1].splitlines()[0] == "variant,n,mean"
    assert "(2 rows)" in call(query, str(runs))[1]
    assert call("SELEC", str(runs))[0] == 2
    assert call("SELECT 1", str(runs / "nothing"))[0] == 1


def test_a_damaged_table_is_an_error_that_names_it(runs: Path) -> None:
    (runs / "fair,seed=1" / "jobs.parquet").write_text("no")
    with pytest.raises(InputError, match=r"jobs\.parquet"):
        _ = results.load(runs).jobs
