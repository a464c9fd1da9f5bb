"""The demo's story: frames of 80 columns from real runs, the burst sooner under control, a picture without scripts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import lxml.etree
import pytest

from harness.cli import main
from harness.cli.demo import _play
from harness.report.demo import HEIGHT, WIDTH, Moment, Story, as_svg, as_text, frames, key_frames

ROOT = Path(__file__).resolve().parents[2]


def moment(held: int, owed: float, weight: float = 1.0) -> Moment:
    return Moment(
        {"batch": 20 - held, "reports": held}, {"batch": 5, "reports": 5}, {"batch": 1.0, "reports": weight}, owed
    )


STORY = Story(
    times=(0, 12, 24, 36, 48),
    containers=20,
    memoryless=[moment(0, 0.0), moment(0, 0.0), moment(10, 0.0), moment(10, 0.0), moment(10, 0.0)],
    controlled=[moment(0, 0.0), moment(0, 120.0), moment(19, 60.0, 99.0), moment(10, 0.0), moment(0, 0.0)],
    burst_s=15,
    ended_s=(None, 40),
)


def test_frames_fit_a_terminal_of_80_columns() -> None:
    for frame in frames(STORY):
        assert len(frame) == HEIGHT
        assert all(len(as_text(line, colour=False)) <= WIDTH for line in frame)


def test_what_is_said_follows_from_the_runs() -> None:
    told = ["\n".join(as_text(line, colour=False) for line in frame) for frame in frames(STORY)]
    assert STORY.paid_s() == 36
    assert "lends its half" in told[1]
    assert "gets its half, and nothing of what it lent" in told[2]
    assert "weights  1 % : 99 %" in told[2]
    assert "95 % of the debt is paid" in told[3]
    assert "over after 25 s. Left: it goes on" in told[4]
    later = replace(STORY, ended_s=(45, 40))
    last = "\n".join(as_text(line, colour=False) for line in frames(later)[4])
    assert "took 30 s without memory, 25 s with it" in last
    assert key_frames(STORY) == [0, 2, 4]


def test_without_a_terminal_the_moments_are_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    _play(STORY, 1.0)
    out = capsys.readouterr().out
    assert len(out.splitlines()) == HEIGHT * len(key_frames(STORY))
    assert "\x1b" not in out


def test_the_picture_is_well_formed_small_and_without_scripts() -> None:
    text = as_svg(STORY)
    root = lxml.etree.fromstring(text.encode())
    assert not root.xpath("//*[local-name()='script']")
    assert len(root.xpath("//*[local-name()='g']")) == len(STORY.times) + 8
    committed = (ROOT / "docs" / "demo.svg").read_bytes()
    lxml.etree.fromstring(committed)
    assert len(committed) < 100_000


def test_the_demo_runs_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["demo", "--json"])
    assert caught.value.code == 0
    found = json.loads(capsys.readouterr().out)
    control, stock = found["burst_ended_s"]["ltrf@outside"], found["burst_ended_s"]["fair"]
    assert found["burst_began_s"] < found["debt_paid_s"] < control
    assert control < stock
    assert found["release"]["released"] == found["release"]["administrator"] != found["release"]["steered"]
    assert any("too little, which is to be given back" in line for line in found["explain"])
