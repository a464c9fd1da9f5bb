"""`yarnfair enforce` where this machine's clock and the ResourceManager's differ, by the real clock and header."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from tests.cli.test_enforce_signals import an_rm


@pytest.mark.parametrize(
    ("ahead_s", "options", "refused"),
    [
        (0.0, [], False),
        (-30 * 86_400.0, [], True),
        (3600.0, [], True),
        (3600.0, ["--trust-clock", "host"], False),
        (3600.0, ["--trust-clock", "rm"], False),
    ],
)
def test_it_counts_nothing_until_somebody_says_which_clock_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ahead_s: float, options: list[str], refused: bool
) -> None:
    file, config = tmp_path / "f.xml", tmp_path / "enforce.yaml"
    file.write_text('<allocations><queue name="a"/><queue name="b"><queue name="c"/></queue></allocations>')
    with an_rm(ahead_s) as server:
        rm = {"rest": server.url, "admin": "127.0.0.1:9", "client": "127.0.0.1:9"}
        known = {"policy": "ltrf", "allocation_file": str(file), "ledger": str(tmp_path / "ledger.db"), "rms": [rm]}
        config.write_text(json.dumps({**known, "refresh": "poll", "read_back": False}))
        with pytest.raises(SystemExit):
            main(["enforce", "--config", str(config), "--dry-run", "--json", *options])
    told = json.loads(capsys.readouterr().out)
    assert ("clock" in {alarm["kind"] for alarm in told["alarms"]}) == refused
