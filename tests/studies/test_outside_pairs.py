"""Pairs on real containers that were fixed before: going on, a busy machine, the record, what the page says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.base.errors import CallError, InputError
from harness.base.files import read_json, write_json
from studies import figures_tables, outside_pairs
from studies.figures import DOCS, rendered
from tests.studies.test_from_runs import run

PAIR = ("ltyarn-in-rm", "ltrf@outside")


def pair(folder: Path, seed: int, inside: float, outside: float) -> None:
    for name, loss_s in zip(PAIR, (inside, outside), strict=True):
        run(folder, name, loss_s, seed=seed, name="outside-real-short")
        (folder / name).rename(folder / f"{name},seed={seed}")


def test_what_failed_is_set_aside_and_what_ended_well_is_kept(tmp_path: Path) -> None:
    pair(tmp_path / "runs", 101, 20.0, 10.0)
    bad = tmp_path / "runs" / "ltrf@outside,seed=101" / "run.json"
    write_json(bad, read_json(bad) | {"exit": 4})
    assert outside_pairs.set_aside(tmp_path / "runs") == ["ltrf@outside,seed=101"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["ltyarn-in-rm,seed=101"]
    assert len(list((tmp_path / "failed").iterdir())) == 1
    assert outside_pairs.set_aside(tmp_path / "runs") == []


def test_runs_that_fail_are_tried_again_and_then_said(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f"import pathlib, sys; p = pathlib.Path({str(log)!r}); p.open('a').write('x'); sys.exit(%s)"
    with pytest.raises(InputError, match="runs fail"):
        outside_pairs.measure(tmp_path, [sys.executable, "-c", script % 4])
    assert log.read_text() == "x" * outside_pairs.ATTEMPTS
    log.unlink()
    outside_pairs.measure(tmp_path, [sys.executable, "-c", script % "0 if p.read_text() == 'xx' else 4"])
    assert log.read_text() == "xx"
    log.unlink()
    with pytest.raises(InputError, match="to go on"):  # interrupted: not again by itself
        outside_pairs.measure(tmp_path, [sys.executable, "-c", script % 130])
    assert log.read_text() == "x"


def test_a_busy_machine_is_waited_for_and_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = iter([5.0, 3.0, 0.5])
    monkeypatch.setattr(os, "getloadavg", lambda: (next(loads), 0.0, 0.0))
    outside_pairs.wait_until_quiet(patience_s=60, every_s=0)
    monkeypatch.setattr(os, "getloadavg", lambda: (5.0, 0.0, 0.0))
    with pytest.raises(CallError, match="busy"):
        outside_pairs.wait_until_quiet(patience_s=0, every_s=0)


def test_the_record_has_all_pairs_and_the_page_says_what_they_decide(tmp_path: Path) -> None:
    out = tmp_path / "records" / "outside-pairs.json"
    out.parent.mkdir()
    source = "before\n{if outside-pairs}\n{table outside-pairs}\n{end}\nafter"
    assert rendered(source, "page.md", out.parent).splitlines()[1:] == ["before", "after"]
    for seed, outside in ((101, 10.0), (102, 12.0)):
        pair(tmp_path / "runs", seed, 30.0, outside)
    with pytest.raises(InputError, match="2 of 20 pairs"):
        outside_pairs.record(tmp_path, out)
    assert not out.exists()
    pair(tmp_path / "runs", 103, 30.0, 11.0)
    outside_pairs.record(tmp_path, out, pairs=3)
    page = rendered(source, "page.md", out.parent)
    assert "| sharing loss integral | 30.0 ± 0.0 s | 11.0 ± 2.5 s | -19.0 ± 2.5 s | yes: less from outside |" in page
    assert "| sharing benefit | 0.10 ± 0.00 | 0.10 ± 0.00 | 0.00 ± 0.00 | no |" in page
    assert "Less loss from outside in 3 of 3 pairs." in page
    assert page.splitlines()[-1] == "after"
    assert figures_tables.TABLES["outside-pairs"][0] == outside_pairs.RECORD


def test_the_seeds_are_others_than_those_that_were_looked_at() -> None:
    first, last = map(int, outside_pairs.SEEDS.split("-"))
    assert last - first + 1 == outside_pairs.PAIRS
    records = DOCS / "records"
    assert not set(range(first, last + 1)) & set(read_json(records / "outside-real-short.json")["values"]["seeds"])
