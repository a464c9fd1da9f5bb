"""Experiments of a kind (harness.results.kinds) where only those of a YARN cluster are taken: one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main


def code_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ("decide", "--record", "fawkes-d"),
            1,
            "fawkes-d.yaml:5: an experiment of kind mr-clusters, which only `yarnf",
        ),
        (
            ("sim", "serve", "cloud-production"),
            1,
            "which only `yarnfair run` and campaigns take",
        ),
        (("run", "fawkes-d", "--backend", "local"), 2, "kind mr-clusters are simulated, not run on local; use sim"),
        (("run", "cloud-docker", "--backend", "ssh"), 2, "kind cloud are simulated, not run on ssh; use sim or docker"),
    ],
)
def test_experiments_of_a_kind_say_what_they_are_not_for(
    arguments: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert code_of(*arguments) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert list(tmp_path.iterdir()) == []
