"""A statement's sums balance: what is lent is borrowed, and what a queue had is what its users had."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yarnfair
from harness.base.errors import InputError
from harness.cli import main
from harness.predict.foreign import played_trace
from harness.predict.payback import Payback, payback
from harness.predict.usage import By, assumed_of, document_of, lines_of, owed_at_end, statement
from harness.predict.usage_page import write_page
from harness.traces.accounting import Shape, held_by, work_of
from harness.traces.recorded import ExecutorsLine, Header, JobLine, NodeChangeLine, NodeLine, QueueLine, trace_text
from harness.traces.recording import Seen, job_of
from harness.traces.spec import DynamicSpec
from tests.browser import chromium
from tests.predict.loads import job

LEAVES = ("root.prod", "root.lab.x", "root.lab.y")
QUEUES = {"root.prod": QueueLine(weight=50), "root.lab": QueueLine(weight=50)} | {
    "root.lab.x": QueueLine(weight=75),
    "root.lab.y": QueueLine(weight=25),
}
DAY = 86_400.0


def header(zero_ms: int | None = None) -> Header:
    return Header(nodes=[NodeLine(count=4, memory_mb=1024, vcores=4)], queues=QUEUES, zero_ms=zero_ms)


def ran(queue: str, from_s: float, until_s: float, tasks: int, *, user: str = "u") -> JobLine:
    """An application that holds a master and so many containers of 1 GB from its start to its end."""
    one = job(f"{queue}-{from_s}-{user}", queue, from_s, tasks, until_s - from_s)
    return one.model_copy(update={"started_s": from_s, "finished_s": until_s, "user": user})


def test_a_loan_is_of_those_who_leave_most_unused() -> None:
    # The master and three containers: the whole cluster, of which half is due.
    (period,) = statement(header(), [ran("root.prod", 0.0, 100.0, 3)], "day")
    accounts = period.accounts
    assert accounts["root.prod"].had == pytest.approx(4096 * 100)
    assert accounts["root.prod"].borrowed == pytest.approx(2048 * 100)
    assert dict(accounts["root.prod"].from_) == pytest.approx({"root.lab.x": 1536 * 100, "root.lab.y": 512 * 100})
    assert accounts["root.lab.y"].lent == pytest.approx(512 * 100)
    assert accounts["root.lab.x"].due == pytest.approx(1536 * 100)


@pytest.mark.parametrize("name", ["root.prod", "root." + "a-long-name." * 6 + "leaf"])
def test_a_statement_fits_into_a_terminal(name: str) -> None:
    queues = {name.rsplit(".", count)[0]: QueueLine(weight=50) for count in range(name.count(".") - 1, 0, -1)}
    named = {**queues, name: QueueLine(weight=50), "root.other": QueueLine(weight=50)}
    cluster = Header(nodes=[NodeLine(count=100, memory_mb=65_536, vcores=4)], queues=named)
    lines = lines_of(statement(cluster, [ran(name, 0.0, 20 * DAY, 5_000)], "month"))
    assert max(map(len, lines)) <= 80
    leaf = name.removeprefix("root.")
    at = next(number for number, line in enumerate(lines) if line.startswith(f"  {leaf}"))
    row = lines[at].removeprefix(f"  {leaf}") or lines[at + 1]
    assert len(row.split()) == 6


def test_nobody_lends_what_nobody_borrows_and_days_are_apart() -> None:
    jobs = [ran("root.prod", DAY - 100, DAY + 300, 1), ran("root.lab.x", DAY, DAY + 100, 0, user="v")]
    first, second = statement(header(), jobs, "day")
    assert (first.name, second.name) == ("day 1", "day 2")
    assert first.accounts["root.prod"].had == pytest.approx(2048 * 100)
    assert second.accounts["root.prod"].had == pytest.approx(2048 * 300)
    assert dict(second.accounts["root.lab.x"].users) == pytest.approx({"v": 1024 * 100})
    assert all(account.lent == account.borrowed == 0 for account in second.accounts.values())


@pytest.mark.parametrize(
    ("by", "names"),
    [("day", ["2026-01-31", "2026-02-01"]), ("week", ["2026-W05"]), ("month", ["2026-01", "2026-02"])],
)
def test_periods_are_the_calendars_where_the_time_is_known(by: By, names: list[str]) -> None:
    zero_ms = 1_769_817_600_000  # 2026-01-31, a Saturday, 00:00 UTC
    found = statement(header(zero_ms), [ran("root.prod", 0.0, 1.5 * DAY, 0)], by)
    assert [period.name for period in found] == names
    assert [period.until_s for period in found][-1] == 1.5 * DAY


jobs_strategy = st.lists(
    st.tuples(
        st.sampled_from(LEAVES),
        st.integers(0, 200_000),
        st.integers(0, 100_000),
        st.integers(0, 6),
        st.sampled_from("uvw"),
    ),
    min_size=1,
    max_size=15,
)


@settings(max_examples=200, deadline=None)
@given(rows=jobs_strategy, by=st.sampled_from(["day", "week", "month"]))
def test_sums_balance_to_the_megabyte_second(rows: list[tuple[str, int, int, int, str]], by: By) -> None:
    jobs = [ran(queue, float(at), float(at + took), tasks, user=user) for queue, at, took, tasks, user in rows]
    found = statement(header(), jobs, by)
    for period in found:
        accounts = period.accounts.values()
        assert math.fsum(one.lent for one in accounts) == pytest.approx(
            math.fsum(one.borrowed for one in accounts), abs=0.5, rel=1e-12
        )
        for one in accounts:
            assert math.fsum(one.users.values()) == pytest.approx(one.had, abs=0.5, rel=1e-12)
            assert math.fsum(one.from_.values()) == pytest.approx(one.borrowed, abs=0.5, rel=1e-12)
        assert all(0 <= one.paid_back <= one.borrowed + 0.5 for one in accounts)
        assert math.fsum(one.owed for one in accounts) == pytest.approx(0.0, abs=0.5)
    had = math.fsum(one.had for period in found for one in period.accounts.values())
    assert had == pytest.approx(math.fsum(map(held_by, jobs)), abs=0.5, rel=1e-12)


def test_a_small_statement_has_digits_enough() -> None:
    """Of two minutes on a small cluster one digit is 0.0 in every cell, as if nothing had run."""
    (small,) = statement(header(), [ran("root.prod", 0.0, 100.0, 0)], "day")
    row = next(line for line in lines_of([small]) if line.lstrip().startswith("prod"))
    due, had, *_ = (float(cell.replace(",", "")) for cell in row.split()[1:])
    account = small.accounts["root.prod"]
    assert due == pytest.approx(account.due / 1024 / 3600, rel=0.01)
    assert had == pytest.approx(account.had / 1024 / 3600, rel=0.01)
    large = statement(header(), [ran("root.prod", 0.0, 30 * DAY, 0)], "month")
    assert all(re.search(r"\d\.\d( |$)", line) for line in lines_of(large) if line.lstrip().startswith("prod"))


def test_a_small_statement_has_digits_enough_on_its_page_and_in_what_is_paid_back(tmp_path: Path) -> None:
    """Both still had one digit: 0.0 in every cell of a small cluster."""
    (small,) = statement(header(), [ran("root.prod", 0.0, 100.0, 3)], "day")
    account = small.accounts["root.prod"]
    paid = {"root.prod": account.borrowed}
    result = Payback(owed=paid, recorded=paid, as_it_is=paid, long_term={"root.prod": account.had})
    write_page(tmp_path / "usage.html", [small], "day", "x", [], result)
    page = (tmp_path / "usage.html").read_text()
    assert re.search("<td[^>]*>-", page) is None, "a page has a true minus"
    cells = re.findall("<t[dh][^>]*>(-?[0-9][^<]*)</t[dh]>", page.replace("\u2212", "-"))
    shown = {float(cell) for cell in cells}
    for value in (account.had, account.borrowed, account.owed):
        assert any(one == pytest.approx(value / 1024 / 3600, rel=0.01) for one in shown)
    row = next(line for line in result.lines() if line.lstrip().startswith("prod"))
    wanted = [account.borrowed] * 3 + [account.had]
    assert [float(cell) for cell in row.split()[1:5]] == pytest.approx([one / 1024 / 3600 for one in wanted], rel=0.01)


def test_what_is_paid_back_has_digits_of_its_own_beside_a_large_debt() -> None:
    """Where 23 GiB·h were owed, 0.03 GiB·h that were paid back stood as 0.0, in a table about nothing else."""
    hour = 1024.0 * 3600.0
    owed, paid = {"root.a": 23.0 * hour}, {"root.a": 0.104 * hour}
    result = Payback(owed=owed, recorded=paid, as_it_is={"root.a": 0.03 * hour}, long_term=paid)
    assert result.lines()[2].split() == ["a", "23.000", "0.104", "0.030", "0.104", "0.074"]
    # Amounts of one size have as many digits as before.
    assert Payback(owed=owed, recorded=owed, as_it_is=owed, long_term=owed).lines()[2].split()[1] == "23.0"


def test_what_is_paid_back_closes_with_what_its_figures_mean(tmp_path: Path) -> None:
    """The table ended without a sum, and without a word on why a queue that is owed much has 0."""
    hour = 1024.0 * 3600.0
    owed = {"root.a": 23.0 * hour, "root.b": -23.0 * hour}
    as_it_is, long_term = {"root.a": 0.03 * hour, "root.b": 0.0}, {"root.a": 0.1 * hour, "root.b": 0.004 * hour}
    result = Payback(owed=owed, recorded=as_it_is, as_it_is=as_it_is, long_term=long_term)
    closing = result.lines()[4:]
    assert max(map(len, closing)) <= 80
    assert " ".join(closing).startswith(
        "Long-term fairness pays back 0.104 GiB·h in all, the scheduler as it is 0.030 GiB·h; 23.000 GiB·h are still "
        "owed when the recording ends. "
    )
    (period,) = statement(header(), [ran("root.prod", 0.0, 100.0, 3)], "day")
    write_page(tmp_path / "usage.html", [period], "day", "x", [], result)
    assert result.meaning() in (tmp_path / "usage.html").read_text()


@pytest.mark.parametrize("ended", [True, False])
def test_an_application_that_still_runs_is_charged_until_it_was_recorded(ended: bool) -> None:
    """It holds a quarter of the cluster more than its due, long after the last of the others has ended."""
    more = {"finished_s": None, "counted_mb_s": 3072.0 * 10_000, "counted_until_s": 10_000.0}
    streams = ran("root.prod", 0.0, 1.0, 1).model_copy(update=more)
    jobs = [streams, ran("root.lab.x", 0.0, 100.0, 0)][: 2 if ended else 1]
    (period,) = statement(header(), jobs, "day")
    assert (period.from_s, period.until_s) == (0.0, 10_000.0)
    account = period.accounts["root.prod"]
    assert account.due == pytest.approx(2048 * 10_000)
    assert account.had == pytest.approx(3072 * 10_000)
    assert account.borrowed == pytest.approx(1024 * 10_000)
    assert assumed_of(jobs) == []
    days = statement(header(0), [streams.model_copy(update={"counted_until_s": 2 * DAY}), *jobs[1:]], "day")
    assert [one.until_s for one in days] == [DAY, 2 * DAY]


def test_a_record_says_until_when_a_running_application_was_counted() -> None:
    now = Seen("application_1_0001", "u", "n", "root.prod", "YARN", 60_000, 61_000, 0, 9_000, 1024, 1, False)
    assert job_of(now, None, 10_000).counted_until_s == 59.0
    assert job_of(replace(now, finished_ms=69_000, final=True), None, 10_000).counted_until_s is None
    assert job_of(replace(now, elapsed_ms=None), None, 10_000).counted_until_s is None


def test_a_trace_without_times_has_no_statement() -> None:
    with pytest.raises(InputError, match="does not say when"):
        statement(header(), [job("a", "root.prod", 0.0, 1, 1.0)])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text(trace_text(header(), [ran("root.prod", 0.0, 100.0, 3)]))
    with pytest.raises(SystemExit) as stop:
        main(["usage", str(trace), "--every", "day", "--json", "--csv", str(tmp_path / "usage.csv")])
    assert not stop.value.code
    found = json.loads(capsys.readouterr().out)
    assert found["periods"][0]["queues"]["root.prod"]["borrowed_from_mb_s"] == {
        "root.lab.x": 153600,
        "root.lab.y": 51200,
    }
    assert found["shape"]["known"] == 1.0
    table = (tmp_path / "usage.csv").read_text().splitlines()
    assert table[0] == "period,queue,user,due,had,lent,borrowed,paid_back,owed"
    assert "day 1,root.prod,u,,409600,,,," in table
    with pytest.raises(SystemExit):
        main(["usage", str(trace)])
    told = capsys.readouterr().out
    assert "borrowed of lab.x" in told
    assert "held by" not in told
    with pytest.raises(SystemExit):
        main(["usage", str(trace), "--by", "queue,user", "--every", "week"])
    assert "    held by u: 0.11" in capsys.readouterr().out


def test_the_statement_as_a_page_and_as_parquet(tmp_path: Path) -> None:
    trace = tmp_path / "<trace>.jsonl"
    jobs = [ran("root.prod", 0.0, 3600.0, 3, user="<b>"), ran("root.lab.x", DAY, DAY + 7200.0, 0, user="v")]
    trace.write_text(trace_text(header(), jobs))
    page, table, csv_file = (tmp_path / name for name in ("usage.html", "usage.parquet", "usage.csv"))
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "usage",
                str(trace),
                "--every",
                "day",
                "--html",
                str(page),
                "--parquet",
                str(table),
                "--csv",
                str(csv_file),
            ]
        )
    assert not stop.value.code
    frame, same = pd.read_parquet(table), pd.read_csv(csv_file)
    pd.testing.assert_frame_equal(frame, same, check_dtype=False)
    text = page.read_text()
    # It is complete in itself, and says nothing unescaped.
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "<b>" not in text
    assert "&lt;trace&gt;.jsonl, by day" in text
    # The latest day comes first; 4 GB of the hour are had, of which 2 are lent by the others in proportion.
    assert re.findall("<h2 [^>]*>(day .)</h2>", text) == ["day 2", "day 1"]
    first = text[text.index(">day 1</h2>") :]
    row = re.findall("<t[dh][^>]*>(.*?)</t[dh]>", first[first.index('<th scope="row">prod') :])[:9]
    assert row[2:] == ["4.0", "0.0", "2.0", "0.0", "\u22122.0", "&lt;b&gt; 4.0", "lab.x 1.5, lab.y 0.5"]


def test_executors_are_held_from_the_submission_where_no_start_is_known() -> None:
    late = job("s", "root.prod", 5000.0, 2, 10.0)
    executors = ExecutorsLine(count=3, memory_mb=2048, vcores=1)
    spark = late.model_copy(update={"kind": "spark", "executors": executors, "finished_s": 5100.0})
    assert work_of(spark) == 3 * 2048 * 100.0
    assert work_of(spark.model_copy(update={"started_s": 5040.0})) == 3 * 2048 * 60.0
    assert held_by(spark) == (3 * 2048 + 1024) * 100.0


def test_what_yarn_counted_is_charged_to_the_megabyte_second() -> None:
    """An application's tasks are cut from whole seconds of vcores: they are not what was counted of it."""
    app = Seen(
        id="application_1_0001",
        user="u",
        name="sleep",
        queue="root.prod",
        type="YARN",
        started_ms=0,
        launched_ms=1581,
        finished_ms=6401,
        elapsed_ms=6401,
        memory_seconds=2973,
        vcore_seconds=5,
        final=True,
    )
    line = job_of(app, None, 0)
    (period,) = statement(header(), [line], "day")
    assert document_of([period])[0]["queues"]["root.prod"]["had_mb_s"] == 2973
    # Still running: what was counted so far, in a trace that does not say until when.
    running = job_of(replace(app, final=False, finished_ms=0), None, 0).model_copy(update={"counted_until_s": None})
    (period,) = statement(header(), [running, ran("root.lab.x", 0.0, 100.0, 0)], "day")
    assert period.accounts["root.prod"].had == pytest.approx(2973)
    assert assumed_of([running]) == [
        "applications without an end that YARN counted (1) ran until the last of the others ended, and had by then "
        "what was counted of them"
    ]
    # A load that is known by sums alone is not known by task, however small its tasks are.
    assert Shape.of([line]).known == 0.0


def spark_app(name: str, until_s: float | None, *, count: int = 1, held_mb: float | None = None) -> JobLine:
    """A Spark application in root.prod from the beginning on, with executors of 512 MB and a master of 1 GB."""
    executors = ExecutorsLine(count=count, memory_mb=512, vcores=1, held_mb=held_mb)
    line = job(name, "root.prod", 0.0, 2, 10.0)
    return line.model_copy(
        update={"kind": "spark", "executors": executors, "started_s": 0.0, "finished_s": until_s, "user": "u"}
    )


def test_executors_that_come_and_go_are_charged_what_they_held() -> None:
    """100 executors for a minute and two for ten hours are not 100 for ten hours."""
    lived_s = 60.0 + 36_000.0
    held_mb = 512 * (100 * 60.0 + 2 * 36_000.0) / lived_s
    (period,) = statement(header(), [spark_app("s", lived_s, count=100, held_mb=held_mb)], "day")
    account = period.accounts["root.prod"]
    assert account.had == pytest.approx(512 * 78_000 + 1024 * lived_s)
    assert account.borrowed == pytest.approx(account.had - 2048 * lived_s)


def test_an_application_without_an_end_is_charged_until_the_last_of_the_others_ended() -> None:
    """Its executors as before on average, and its master, whatever its kind."""
    running = spark_app("s", None, count=3, held_mb=768.0)
    tasks = job("tasks", "root.lab.y", 20.0, 2, 10.0).model_copy(update={"started_s": 20.0})
    (period,) = statement(header(), [running, tasks, ran("root.lab.x", 50.0, 100.0, 0)], "day")
    assert period.accounts["root.prod"].had == pytest.approx((768 + 1024) * 100)
    assert period.accounts["root.lab.y"].had == pytest.approx(2 * 1024 * 10 + 1024 * 80)
    # So does the part of what was held of which the shape is known.
    assert work_of(running, 100.0) == 768 * 100
    sums = ran("root.lab.x", 50.0, 100.0, 1).model_copy(update={"detail": "integrals"})
    assert Shape.of([running, sums]).known == pytest.approx(1792 / (1792 + 1024))


def test_an_application_that_has_waited_all_along_is_charged_nothing() -> None:
    """It has neither a start nor an end where others have a start; a trace without any start says nothing of that."""
    waits = job("waits", "root.lab.x", 0.0, 4, 50.0)
    (period,) = statement(header(), [waits, ran("root.prod", 0.0, 100.0, 0)], "day")
    assert period.accounts["root.lab.x"].had == 0
    assert assumed_of([waits, ran("root.prod", 0.0, 100.0, 0)]) == [
        "applications without a start and an end (1) held nothing"
    ]
    unsaid = ran("root.prod", 0.0, 100.0, 0).model_copy(update={"started_s": None})
    (period,) = statement(header(), [waits, unsaid], "day")
    assert period.accounts["root.lab.x"].had == pytest.approx(4 * 1024 * 50 + 1024 * 100)


def test_what_a_statement_assumes_of_applications_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended, known = spark_app("old", 100.0, count=3), spark_app("known", 100.0, count=3, held_mb=768.0)
    assert assumed_of([known, ran("root.lab.x", 0.0, 9.0, 1)]) == []
    trace = tmp_path / "trace.jsonl"
    trace.write_text(trace_text(header(), [ended, known, spark_app("open", None, count=3, held_mb=768.0)]))
    with pytest.raises(SystemExit):
        main(["usage", str(trace)])
    said = re.sub(r"\s+", " ", " ".join(capsys.readouterr()))
    assert "over time (1) had `executors.count` all the time" in said
    assert "without an end (1) ran until the last of the others ended, and had by then all" in said
    with pytest.raises(SystemExit):
        main(["usage", str(trace), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert len(found["assumed"]) == 2
    assert found["periods"][0]["queues"]["root.prod"]["had_mb_s"] == (3 * 512 + 768 + 768 + 3 * 1024) * 100


def test_a_due_is_of_what_was_there_then() -> None:
    """Half of the nodes go after 100 s: dues, and what can be lent, halve from then on."""
    gone = [NodeChangeLine(node=f"n{n}", at_s=100.0, change="lost", was_memory_mb=1024, was_vcores=4) for n in range(2)]
    changing = header().model_copy(update={"changes": gone})
    jobs = [ran("root.prod", 0.0, 100.0, 3), ran("root.lab.x", 150.0, 200.0, 1)]
    (period,) = statement(changing, jobs, "day")
    assert period.accounts["root.prod"].due == pytest.approx(2048 * 100 + 1024 * 100)
    assert period.accounts["root.prod"].borrowed == pytest.approx(2048 * 100)
    # Of 2048 MB then 768 MB are due to root.lab.x, which holds all: root.prod lends 1024 MB of the 1280 MB.
    assert period.accounts["root.lab.x"].borrowed == pytest.approx(1280 * 50)
    assert period.accounts["root.prod"].lent == pytest.approx(1024 * 50)


def test_what_is_owed_is_carried_from_period_to_period() -> None:
    # Prod has the whole cluster for 100 s of the first day; on the second the lab's x has it for 100 s.
    jobs = [ran("root.prod", 0.0, 100.0, 3), ran("root.lab.x", DAY, DAY + 100.0, 3)]
    first, second = statement(header(), jobs, "day")
    assert first.accounts["root.prod"].owed == pytest.approx(-2048 * 100)
    assert first.accounts["root.lab.x"].owed == pytest.approx(1536 * 100)
    # What x borrowed is paid back up to what it was owed.
    assert second.accounts["root.lab.x"].paid_back == pytest.approx(1536 * 100)
    assert first.accounts["root.prod"].paid_back == 0
    # X has 1536 of its own; of the 2560 above, prod lends 2048, and y 512 again.
    assert owed_at_end([first, second]) == pytest.approx(
        {"root.prod": 0.0, "root.lab.x": (1536 - 2560) * 100, "root.lab.y": 1024 * 100}
    )


@pytest.fixture(scope="module")
def contended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One queue has the cluster alone at first, then both want all of it; as the Fair Scheduler shares it."""
    folder = tmp_path_factory.mktemp("contended")
    queues = {"root.a": QueueLine(), "root.b": QueueLine()}
    jobs = [job(f"early-{at}", "root.a", 10.0 * at, 20, 20.0) for at in range(20)]
    jobs += [job(f"{name}-{at}", f"root.{name}", 500.0 + 20 * at, 20, 20.0) for name in "ab" for at in range(10)]
    cluster = Header(nodes=[NodeLine(count=4, memory_mb=8192, vcores=8)], queues=queues, max_am_share=-1.0)
    path = folder / "load.jsonl"
    path.write_text(trace_text(cluster, jobs))
    runs = yarnfair.replay(path, ["fair"], out=folder / "run", processes=1)
    assert len(runs) == 1
    return folder / "run" / "fair"


def test_executors_of_a_simulated_run_are_charged_what_it_counted(tmp_path: Path) -> None:
    """In the statement of its directory, and in what each policy would have paid back."""
    dynamic = DynamicSpec(min=0, max=12, initial=0, idle_s=5.0)
    executors = ExecutorsLine(count=12, memory_mb=1000, vcores=1, dynamic=dynamic)
    short = job("shape", "root.a", 0.0, 12, 10.0).stages[0]
    stages = [short, short.model_copy(update={"name": "long", "tasks_s": [120.0], "after": ["all"]})]
    jobs = [
        job(f"{queue}-{at}", f"root.{queue}", at_s, 1, 1.0).model_copy(
            update={"kind": "spark", "executors": executors, "stages": stages}
        )
        for queue, at_s in (("a", 0.0), ("b", 150.0))
        for at in range(2)
    ]
    cluster = Header(
        nodes=[NodeLine(count=2, memory_mb=4096, vcores=8)],
        queues={"root.a": QueueLine(), "root.b": QueueLine()},
        max_am_share=-1.0,
    )
    path = tmp_path / "load.jsonl"
    path.write_text(trace_text(cluster, jobs))
    yarnfair.replay(path, ["fair"], out=tmp_path / "run", processes=1)
    folder = tmp_path / "run" / "fair"
    counted = pd.read_parquet(folder / "jobs.parquet")
    trace = played_trace(folder, None, tmp_path / "trace.jsonl")
    assert assumed_of(trace.jobs) == []
    had = {name: account.had for name, account in statement(trace.header, trace.jobs, "day")[0].accounts.items()}
    sums = {f"root.{name}": counted[counted["queue"].str.endswith(name)]["memory_mb_s"].sum() for name in "ab"}
    assert had == pytest.approx(sums, rel=1e-4)
    # Most of the time one executor of the twelve is there.
    lived_s = (counted["finished_s"] - counted["started_s"]).sum()
    assert sum(had.values()) < 5 * 1024 * lived_s
    found = payback(trace, tmp_path / "played", "day", processes=1)
    # The recording is of this scheduler: its simulation says the same.
    assert found.as_it_is == pytest.approx(dict(found.recorded), rel=1e-4)
    assert sum(found.recorded.values()) > 0


def test_long_term_fairness_pays_back_what_was_lent(contended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["usage", str(contended), "--every", "day", "--paid-back", "--json", "--jobs", "1"])
    assert not stop.value.code
    found = json.loads(capsys.readouterr().out)["paid_back"]["root.b"]
    # The recording is of this scheduler: its simulation says the same.
    assert found["owed_mb_s"] > 0
    assert found["paid_back_simulated_mb_s"] == found["paid_back_mb_s"]
    assert found["paid_back_under_long_term_fairness_mb_s"] > 5 * found["paid_back_simulated_mb_s"]
    assert found["more_mb_s"] == found["paid_back_under_long_term_fairness_mb_s"] - found["paid_back_simulated_mb_s"]


@pytest.mark.browser
def test_the_page_in_a_browser(contended: Path, tmp_path: Path) -> None:
    page = tmp_path / "usage.html"
    with pytest.raises(SystemExit) as stop:
        main(["usage", str(contended), "--every", "day", "--paid-back", "--html", str(page), "--jobs", "1"])
    assert not stop.value.code
    with chromium(tmp_path / "profile") as browser:
        for width, dark in ((1280, False), (1280, True), (400, False), (400, True)):
            browser.open(f"file://{page}", width, dark=dark)
            browser.until("document.readyState === 'complete' && !!document.querySelector('main')")
            assert (browser.faint(), browser.too_wide(), browser.console) == ([], [], [])
            assert browser.run("document.documentElement.scrollWidth") <= width
            # A shadow marks where a table goes on: at 400 px columns were out of sight without a sign of them.
            # Its last columns are lists: they broke into six lines where the page is narrow.
            assert browser.run("[...document.querySelectorAll('td')].every(e => e.offsetHeight < 60)")
            frames = "[...document.querySelectorAll('.scroll')]"
            shadows = browser.run(f"{frames}.map(e => getComputedStyle(e).backgroundAttachment)")
            assert set(shadows) == {"local, local, scroll, scroll"}
        assert not [one for one in browser.requests if not one.startswith(("file:", "data:", "about:"))]
