"""`explain` and `top`: the figures against what the ledger and a run hold, the words, the terminal."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from harness.base.errors import InputError
from harness.base.words import seconds
from harness.cli import main
from harness.cli.top import frame
from harness.control.explain import amount, explain, old
from harness.control.view import QueueRow, View, from_ledger, from_rm, rivals, with_changes
from harness.control.view_run import from_run
from harness.report.live import LivePage
from tests.control.driven import controlled, in_force, rm_with_load
from tests.control.rm_model import RmModel


def worked(folder: Path, policy: str = "ltrf") -> RmModel:
    """A ledger of two queues: a has used ten containers' worth, b waits."""
    rm = rm_with_load()
    with controlled(rm, folder, policy=policy) as controller:
        controller.tick()
        for _ in range(10):
            rm.start("x")
        rm.now_s += 60.0
        controller.tick()
    return rm


def write_run(folder: Path, *, decisions: str | None = None) -> Path:
    folder.mkdir()
    queues = {"G": {"weight": 1.0, "children": {"A": {"weight": 3.0}, "B": {"weight": 1.0}}}, "C": {"weight": 1.0}}
    identity = {
        "variant": "hltrf@outside",
        "policy": {"name": "hltrf", "settings": {}},
        "capacity_mb": 1000,
        "experiment": {"queues": queues},
        "exit": None,
    }
    (folder / "run.json").write_text(json.dumps(identity))
    rows = []
    for time_s, used in ((0.0, (0, 0, 0)), (10.0, (4000, 1000, 3000))):
        leaves = dict(zip(("root.G.A", "root.G.B", "root.C"), used, strict=True))
        for queue in ("root", "root.C", "root.G", "root.G.A", "root.G.B"):
            below = sum(value for leaf, value in leaves.items() if (leaf + ".").startswith(queue + "."))
            rows.append(
                {
                    "time_s": time_s,
                    "queue": queue,
                    "allocated_mb": 100,
                    "demand_mb": 300 if queue != "root.C" else 100,
                    "share_mb": 250.0,
                    "fair_share_mb": 250,
                    "weight": 2.0 if queue == "root.G.A" else 1.0,
                    "counted_mb_s": float(below),
                }
            )
    pd.DataFrame(rows).to_parquet(folder / "allocations.parquet")
    made: list[dict[str, Any]] = [
        {"time_s": 0.0, "weights": {"root.G.A": 1.0}, "changed": ["root.G.A"], "counted": {}, "reasons": {}},
        {"time_s": 5.0, "alarm": "late", "text": "no answer"},
        {
            "time_s": 9.0,
            "weights": {"root.G.A": 2.0},
            "changed": ["root.G.A"],
            "counted": {},
            "reasons": {"root.G.A": "has waited 9 s, T_wait 5 s: lifted"},
        },
        {"time_s": 99.0, "weights": {"root.G.A": 7.0}, "changed": ["root.G.A"], "counted": {}, "reasons": {}},
    ]
    text = "".join(json.dumps(item) + "\n" for item in made) + '{"time_s": 9'
    (folder / "decisions.jsonl").write_text(text if decisions is None else decisions)
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_a_ledgers_figures(tmp_path: Path) -> None:
    rm = worked(tmp_path)
    view = from_ledger(tmp_path / "ledger.db")
    a, b = view.queues["root.a"], view.queues["root.b"]
    used = rm.truth("root.a")[0]
    assert (a.accumulated, b.accumulated) == (used, 0.0)
    assert (a.deficit, b.deficit) == (-used / 2, used / 2)
    assert (a.share, view.queues["root"].share) == (0.5, 1.0)
    assert a.allocated_mb == 10 * 1024
    assert b.pending == 3
    assert a.weight_before == 500.0
    assert a.weight is not None
    assert a.weight < 500.0
    assert [(rival.path, rival.wants) for rival in rivals(view, "root.a")] == [("root.b", True), ("root.a", False)]
    assert "It wants no more now: " in " ".join(explain(view, "root.a")), "it holds 10 GiB"
    words = " ".join(explain(view, "root.b"))
    assert "Entitled to 50.0 % of the cluster; holds 0.0 %" in words
    assert "waits for 60 s for 3,072 MiB more, 3 containers" in words
    lone = replace(view, queues={**view.queues, "root.b": replace(b, pending=1)})
    assert "3,072 MiB more, 1 container." in " ".join(explain(lone, "root.b"))
    assert "300.0 GiB·s too little" in words
    assert "raised from 50.0 % to" in words
    assert "because by then it had had 300.0 GiB·s too little" in words
    assert "It is next" in words


def test_a_ledger_that_nobody_has_written_for_a_while_is_said_to_be_old(tmp_path: Path) -> None:
    worked(tmp_path)
    then_s = from_ledger(tmp_path / "ledger.db").time_s
    for now_s, words in ((then_s - 5.0, []), (then_s + 59.0, []), (then_s + 7200.0, ["2.0 h ago: is it running?"])):
        view = from_ledger(tmp_path / "ledger.db", now_s)
        assert [line.partition("last looked ")[2] for line in old(view)] == words
        assert ("is it running?" in " ".join(explain(view, "root.a"))) == bool(words)
        page = LivePage(itertools.repeat(view).__next__, 1.0)
        page.look()
        assert page.document({})["old"] == old(view)


def test_a_controller_that_has_given_back_shows_no_weights_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        for _ in range(10):
            rm.start("x")
        rm.now_s += 60.0
        controller.tick()
        assert not from_ledger(tmp_path / "ledger.db").given_back
        controller.stop("release")
        view = from_ledger(tmp_path / "ledger.db", rm.now_s + 7200.0)
        # Started again it goes on.
        rm.now_s += 60.0
        controller.tick()
        assert not from_ledger(tmp_path / "ledger.db").given_back
        controller.stop("release")
    assert {row.weight for row in view.queues.values()} == {None}
    words = " ".join(explain(view, "root.b"))
    assert "it has had 300.0 GiB·s too little. The controller has ended: nothing makes up for that until" in words
    assert "given back what it wrote" in words
    for wrong in ("Weight", "raised", "It is next", "is it running"):
        assert wrong not in words
    shown = from_rm(rm.now_s, "rm", rm.rest.scheduler(), in_force(rm), [], view)
    assert "Weight 1, 50.0 % of its siblings' sum." in explain(shown, "root.b")
    code, out, _ = run(capsys, "top", "--ledger", str(tmp_path / "ledger.db"), "--once")
    assert (code, "· ended ·" in out, "given back what it wrote" in out) == (0, True, True)


def test_a_ledger_does_not_know_whom_a_capacity_scheduler_serves_next(tmp_path: Path) -> None:
    worked(tmp_path)
    view = replace(from_ledger(tmp_path / "ledger.db"), scheduler="capacityScheduler")
    words = " ".join(explain(view, "root.b"))
    assert "Capacity " in words
    assert "serves first" not in words


def test_a_part_that_changed_by_its_siblings_weight_has_changed_then(tmp_path: Path) -> None:
    worked(tmp_path)
    made = [
        {"time_s": 10.0, "weights": {"root.a": 500.0, "root.b": 500.0}, "changed": ["root.a", "root.b"]},
        {"time_s": 20.0, "weights": {"root.a": 125.0, "root.b": 500.0}, "changed": ["root.a"]},
        {"time_s": 30.0, "weights": {"root.a": 125.02, "root.b": 500.0}, "changed": ["root.a"]},
    ]
    rows = with_changes(from_ledger(tmp_path / "ledger.db"), made).queues
    b = rows["root.b"]
    assert (b.changed_s, b.part_before, b.part) == (20.0, 0.5, 0.8)
    assert rows["root.a"].changed_s == 30.0


def test_a_live_rm_with_and_without_accounts(tmp_path: Path) -> None:
    rm = worked(tmp_path)
    rm.now_s += 600
    rm.start("y")
    weights = {path: queue.weight for path, queue in rm.effective_queues().items()}
    kept = from_ledger(tmp_path / "ledger.db")
    view = from_rm(rm.now_s, "rm", rm.rest.scheduler(), weights, [], kept)
    assert view.queues["root.b"].allocated_mb == 1024
    assert view.queues["root.b"].accumulated == 0.0
    assert view.accounts_age_s == pytest.approx(600)
    assert any("is it running?" in line for line in explain(view, "root.a"))
    alone = from_rm(rm.now_s, "rm", rm.rest.scheduler(), weights, rm.rest.apps())
    assert alone.queues["root.a"].accumulated == rm.truth("root.a")[0]
    assert alone.queues["root.a"].changed_s is None


def test_a_run_at_a_moment_of_it(tmp_path: Path) -> None:
    view = from_run(write_run(tmp_path / "run"))
    a = view.queues["root.G.A"]
    assert (view.time_s, a.share, view.queues["root.G"].accumulated) == (10.0, 0.375, 5000.0)
    assert a.deficit == 0.375 * 8000 - 4000
    assert (a.changed_s, a.weight_before) == (9.0, 1.0)
    assert a.reason == "has waited 9 s, T_wait 5 s: lifted"
    assert view.alarms == (("late", "no answer"),)
    assert from_run(tmp_path / "run", at_s=9.9).time_s == 0.0


def test_a_runs_seed_is_told_in_words(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    identity = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**identity, "variant": "ltrf@outside,seed=3", "seed": 3}))
    assert from_run(run).policy == "ltrf@outside, seed 3"


def test_a_policy_says_itself_whether_the_tree_counts(tmp_path: Path) -> None:
    """A user's own policy over LTRF: a leaf's due is its weight's part of all leaves', whatever its name."""
    (tmp_path / "own.py").write_text("from harness.policies.ltrf import Ltrf\nclass Own(Ltrf):\n    pass\n")
    run = write_run(tmp_path / "run")
    identity = json.loads((run / "run.json").read_text())
    for name, share in (("hltrf", 0.375), ("ltrf", 0.6), (f"{tmp_path}/own.py:Own", 0.6), ("decay-slurm", 0.375)):
        identity["policy"]["name"] = name
        (run / "run.json").write_text(json.dumps(identity))
        assert from_run(run).queues["root.G.A"].share == pytest.approx(share), name


def test_the_command_explains_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write_run(tmp_path / "run"))
    code, out, _ = run(capsys, "explain", "G.A", "--run", folder)
    assert code == 0
    assert "Weight 2, 66.7 % of its siblings' sum; last decided at 9.0 s: has waited 9 s, T_wait 5 s: lifted." in out
    code, out, _ = run(capsys, "explain", "root.C", "--run", folder, "--json")
    found = json.loads(out)
    assert found["deficit"] == 0.5 * 8000 - 3000
    assert found["words"][0].endswith("and wants no more.")
    code, out, _ = run(capsys, "top", "--run", folder, "--once")
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 80
    assert re.search(r"^G +50\.0 ", out, re.MULTILINE)
    assert re.search(r"^  A +37\.5 ", out, re.MULTILINE)
    code, out, _ = run(capsys, "top", "--run", folder, "--json")
    assert set(json.loads(out)["queues"]) == set(from_run(Path(folder)).queues)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["explain", "a"], 2, "nothing to look at"),
        (["explain", "a", "--run", "RUN", "--rm", "x"], 2, "--run goes with none"),
        (["explain", "a", "--ledger", "l", "--at", "3"], 2, "--at needs --run"),
        (["explain", "nobody", "--run", "RUN"], 2, "no queue 'nobody'"),
        (["explain", "a", "--run", "none"], 1, "not a run directory"),
        (["explain", "a", "--run", "RUN", "--at", "-1"], 1, "no sample that early"),
        (["explain", "a", "--ledger", "none.db"], 1, "no such ledger"),
        (["top", "--ledger", "none.db", "--once"], 1, "no such ledger"),
        (["top", "--rm", "http://127.0.0.1:1", "--once"], 1, "refused"),
        (["explain", "a", "--config", "none.yaml"], 1, "cannot be read"),
        (["enforce", "--config", "none.yaml"], 1, "cannot be read"),
        (["enforce", "--config", "none.yaml", "--once", "--dry-run"], 2, "does not go with"),
        (["enforce", "--config", "none.yaml", "--json"], 2, "--log-format json"),
    ],
)
def test_mistakes_are_one_line_and_a_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "RUN")
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_ledger_without_a_look(tmp_path: Path) -> None:
    from harness.ledger.store import LedgerStore

    with LedgerStore(tmp_path / "l.db"), pytest.raises(InputError, match="no look at a cluster yet"):
        from_ledger(tmp_path / "l.db")


@pytest.mark.parametrize("content", ["", "nonsense\n", '{"time_s": "x"}\n[1]\n7\n'])
def test_decisions_that_cannot_be_read_are_passed_over(tmp_path: Path, content: str) -> None:
    view = from_run(write_run(tmp_path / "run", decisions=content))
    assert view.queues["root.G.A"].changed_s is None


def test_top_lives_in_a_terminal_and_q_ends_it_cleanly(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    control, terminal = pty.openpty()
    before = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, check=True).stdout
    command = [sys.executable, "-m", "harness", "top", "--run", str(folder), "--every", "0.3"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    shown, end, pressed = b"", time.monotonic() + 60, False
    while process.poll() is None and time.monotonic() < end:
        if select.select([control], [], [], 0.2)[0]:
            shown += os.read(control, 65536)
        if shown.count(b"yarnfair top") >= 3 and not pressed:
            pressed = True
            os.write(control, b"q")
    assert process.wait(timeout=300) == 0
    after = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, check=True).stdout
    assert after == before
    while select.select([control], [], [], 0.2)[0]:
        shown += os.read(control, 65536)
    assert b"\x1b[?1049h" in shown
    assert shown.rindex(b"\x1b[?1049l") > shown.rindex(b"\x1b[?1049h"), "the screen is given back"
    assert b"\x1b[?25h" in shown, "the cursor too"
    os.close(control)
    os.close(terminal)


def test_figures_for_people() -> None:
    assert amount(1024.0 * 3600 * 100, "memory") == "100.0 GiB·h"
    assert amount(-512.0, "memory") == "-0.5 GiB·s"
    assert amount(20.0, "memory") == "0.02 GiB·s"
    assert amount(30.0, "vcores") == "30.0 vcore·s"
    assert amount(0.0, "memory", [1024.0 * 36_000]) == "0.0 GiB·h"
    assert [seconds(value) for value in (3.2, 600.0, 9000.0, 400_000.0)] == ["3 s", "10 min", "2.5 h", "4.6 days"]


def test_amounts_that_are_compared_share_one_unit() -> None:
    """`3.3 GiB·h, 14.9 % of all: it has had 8,316.0 GiB·s too little`: 3.3 seemed to be more than 8,316 of another."""
    hour = 1024.0 * 3600
    root = QueueRow("root", None, False, 1.0, accumulated=22.4 * hour)
    queue = QueueRow("root.a", "root", True, 1.0, 0.25, 0.25, accumulated=3.3 * hour, deficit=2.31 * hour)
    lines = explain(View(0.0, "x", "ltrf", 8192, {"root": root, "root.a": queue}, gives_back=True), "root.a")
    (said,) = [line for line in lines if line.startswith("Accumulated")]
    assert "3.3 GiB·h" in said
    assert "it has had 2.3 GiB·h too little" in said
    assert "GiB·s" not in said


@pytest.mark.parametrize("policy", ["fair", "static"])
def test_a_policy_that_keeps_no_debts_promises_nothing(tmp_path: Path, policy: str) -> None:
    worked(tmp_path, policy=policy)
    view = from_ledger(tmp_path / "ledger.db")
    for queue in ("root.a", "root.b"):
        words = " ".join(explain(view, queue))
        assert f"Policy {policy} keeps no debts" in words
        assert not re.search("given back|get back|because", words)


def test_without_a_controller_nobody_gives_back(tmp_path: Path) -> None:
    rm = worked(tmp_path)
    weights = {path: queue.weight for path, queue in rm.effective_queues().items()}
    view = from_rm(rm.now_s, "rm", rm.rest.scheduler(), weights, rm.rest.apps())
    words = " ".join(explain(view, "root.a"))
    assert "No controller is known here" in words
    assert not re.search("given back|get back|controller has not", words)


@pytest.mark.parametrize(("vcores", "memory_mb", "said"), [((8, 8), 2048, True), ((7, 8), 2048, False),
                                                          ((8, 8), 8000, False), (None, 2048, False)])  # fmt: skip
def test_vcores_that_are_all_held_while_memory_is_free(
    vcores: tuple[int, int] | None, memory_mb: int, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every other figure is of memory: a cluster whose masters hold all vcores looks three quarters empty."""
    queue = QueueRow("root.a", "root", True, 1.0, allocated_mb=memory_mb, demand_mb=9000)
    root = QueueRow("root", None, False, 1.0, allocated_mb=memory_mb, demand_mb=9000)
    view = View(0.0, "x", "ltrf", 8192, {"root": root, "root.a": queue}, vcores=vcores)
    words = "All 8 vcores are held, and 25 % of the memory"
    assert (words in " ".join(explain(view, "root.a"))) is said
    Console(width=200).print(frame(view))
    assert (words in capsys.readouterr().out) is said


def test_raised_is_said_of_shares_not_of_raw_weights(tmp_path: Path) -> None:
    made = [
        {"time_s": 0.0, "weights": {"root.G": 331.0, "root.C": 331.0}, "changed": ["root.G", "root.C"], "counted": {}},
        {
            "time_s": 9.0,
            "weights": {"root.G": 400.0, "root.C": 1200.0},
            "changed": ["root.G", "root.C"],
            "counted": {"root.G.A": 9000.0, "root.G.B": 0.0, "root.C": 1000.0},
        },
    ]
    view = from_run(write_run(tmp_path / "run", decisions="".join(json.dumps(one) + "\n" for one in made)))
    words = " ".join(explain(view, "root.G"))
    assert "lowered from 50.0 % to 25.0 % at 9.0 s, because by then it had had 3.9 GiB·s too much" in words


@pytest.mark.parametrize(
    ("deficit", "before", "after", "said"),
    [
        (
            9e6,
            0.5,
            0.3,
            "although by then it had had 8,789.1 GiB·s too little: its part is still above the 25.0 % that",
        ),
        (9e6, 0.5, 0.25, "too little: at the 25.0 % that are due to it, it gets nothing back for now"),
        (-9e6, 0.1, 0.2, "although by then it had had 8,789.1 GiB·s too much: its part is still below the 25.0 % that"),
        (-9e6, 0.1, 0.25, "too much: at the 25.0 % that are due to it or more, it gives nothing back for now"),
        (-9e6, 0.5, 0.25, "because by then it had had 8,789.1 GiB·s too much."),
    ],
)
def test_a_change_against_the_debt_is_explained(deficit: float, before: float, after: float, said: str) -> None:
    rows = {"root": QueueRow("root", None, False, 1.0, share=0.8)}
    for path, share in (("root.a", 0.2), ("root.b", 0.6)):
        rows[path] = QueueRow(
            path,
            "root",
            True,
            share,
            share=share,
            pending=1,
            weight=1.0,
            accumulated=1e7,
            deficit=deficit,
            changed_s=5.0,
            part_before=before,
            part=after,
            deficit_then=deficit,
        )
    view = View(10.0, "x", "ltrf", 8192, rows, gives_back=True, unit="memory")
    assert said in " ".join(explain(view, "root.a"))


def test_an_idle_queue_is_not_said_to_get_its_debt_back_more_slowly() -> None:
    """The log said that it asked for no more; `explain` said that it got the debt back more slowly."""
    rows = {"root": QueueRow("root", None, False, 1.0, share=1.0)}
    moved: dict[str, Any] = {"weight": 1.0, "accumulated": 1e9, "changed_s": 5.0, "part_before": 0.6, "part": 0.5}
    rows["root.a"] = QueueRow("root.a", "root", True, 0.2, share=0.2, deficit=1e8, deficit_then=1e8, **moved)
    rows["root.b"] = QueueRow("root.b", "root", True, 0.8, share=0.8, pending=1, weight=1.0, accumulated=1e9)
    said = " ".join(explain(View(10.0, "x", "ltrf", 8192, rows, gives_back=True, unit="memory"), "root.a"))
    assert "above the 20.0 % that are due to it, and it asks for no more now" in said
    assert "more slowly" not in said


def _capacity_view(ordering: str = "utilization") -> View:
    """Three queues of a Capacity Scheduler: (holds, capacity, priority), all of which wait."""
    rows = {"root": QueueRow("root", None, False, 1.0, ordering=ordering)}
    for name, held, reserved, capacity, priority in (
        ("a", 4096, 0, 8192, 0),
        ("b", 3072, 2048, 8192, 1),
        ("c", 2048, 0, 2048, 5),
        ("d", 0, 0, 0, 9),
    ):
        path = f"root.{name}"
        rows[path] = QueueRow(
            path,
            "root",
            True,
            float(capacity),
            allocated_mb=held,
            demand_mb=held + 1024,
            weight=capacity / 2048,
            fair_mb=capacity,
            reserved_mb=reserved,
            priority=priority,
        )
    return View(0.0, "rm", "", 18432, rows, scheduler="capacityScheduler")


@pytest.mark.parametrize(("ordering", "order"), [("utilization", "abcd"), ("priority-utilization", "bacd")])
def test_the_capacity_schedulers_order_goes_by_capacities_and_priorities(ordering: str, order: str) -> None:
    # b's reservation counts as used; d has no capacity, and c all of its own: both are at or above 1.
    view = _capacity_view(ordering)
    found = rivals(view, "root.a")
    assert [rival.path[-1] for rival in found] == list(order)
    words = " ".join(explain(view, "root.a"))
    assert "Capacity 4, 44.4 % of its siblings' sum." in words
    assert "root.b uses 62.5 % of 8,192 MiB" in words
    assert ("priority 1" in words) is (ordering == "priority-utilization")
    assert "root.d has none" in words


def test_a_queue_of_which_a_capacity_scheduler_shows_no_capacity_is_entitled_to_nothing() -> None:
    rm = rm_with_load()
    status = replace(rm.rest.scheduler(), type="capacityScheduler")
    view = from_rm(rm.now_s, "rm", status, {"root.a": 3.0}, [])
    assert [view.queues[path].share for path in ("root.a", "root.b")] == [1.0, 0.0]
