"""Acknowledgements: a change that is accepted passes until it expires."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.results.acknowledge import read_acknowledgements
from tests.results.conftest import Write, call, noisy


def test_an_accepted_change_passes_until_it_expires(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = noisy(write, "new", 78, factor=1.2)
    file = tmp_path / "ack.yaml"

    def check(text: str) -> tuple[int, str, str]:
        file.write_text("acknowledge:\n" + text)
        return call(capsys, "check", run, "--baseline", recorded, "--acknowledge", file)

    code, out, _ = check("  - {metric: makespan_s, reason: slower disks, expires: 2999-12-31}\n")
    assert code == 0
    assert "acknowledged until 2999-12-31: slower disks" in out
    code, _, err = check("  - {metric: makespan_s, reason: slower disks, expires: 2020-01-01}\n")
    assert (code, "expired on 2020-01-01" in err) == (3, True)
    assert check("  - {metric: makespan_s, reason: known, expires: 2999-12-31, up_to: 1100}\n")[0] == 3
    assert check("  - {metric: makespan_s, reason: known, expires: 2999-12-31, up_to: 1500}\n")[0] == 0
    assert check("  - {metric: makespan_s, variant: fair, reason: known, expires: 2999-12-31}\n")[0] == 3
    code, _, err = check(
        "  - {metric: makespan*, reason: known, expires: 2999-12-31}\n"
        "  - {metric: last_loss_s, reason: never happened, expires: 2999-12-31}\n"
    )
    assert (code, "last_loss_s was not needed" in err) == (0, True)


def test_an_acknowledgement_in_force_goes_before_an_expired_one(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = noisy(write, "new", 78, factor=1.2)
    (tmp_path / "ack.yaml").write_text(
        "acknowledge:\n"
        "  - {metric: makespan_s, reason: the old one, expires: 2020-01-01}\n"
        "  - {metric: makespan_s, reason: the new one, expires: 2999-12-31}\n"
    )
    code, out, err = call(capsys, "check", run, "--baseline", recorded, "--acknowledge", tmp_path / "ack.yaml")
    assert (code, "the new one" in out) == (0, True)
    assert "was not needed" in err


def test_a_queues_metric_can_be_accepted(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = noisy(write, "new", 78, mean_completion_s=150.0)
    file = tmp_path / "ack.yaml"
    file.write_text('acknowledge:\n  - {metric: "mean_completion_s[root.a]", reason: known, expires: 2999-12-31}\n')
    code, _, err = call(capsys, "check", run, "--baseline", recorded, "--acknowledge", file)
    assert code == 3
    assert "mean_completion_s[root.b]" in err
    assert "[root.a]" not in err


@pytest.mark.parametrize(
    "text",
    [
        "acknowledge:\n  - {metric: makespan_s, expires: 2999-01-01}\n",
        "acknowledge:\n  - {metric: makespan_s, reason: known}\n",
        "acknowledge:\n  - {metric: makespan_s, reason: known, expires: soon}\n",
        "acknowledge:\n  - {metric: makespan_s, reason: known, expires: 2999-01-01, who: me}\n",
        "acknowledge:\n",
        "",
    ],
)
def test_an_acknowledgement_needs_a_reason_and_a_day(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=r"a\.yaml"):
        read_acknowledgements(tmp_path / "a.yaml")
