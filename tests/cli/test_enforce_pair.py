"""`yarnfair enforce` for a pair of RMs that may each read a file of their own: said at the start, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from tests.yarn.fake_server import FakeServer, conf


@pytest.mark.parametrize(("file", "said"), [("/etc/hadoop/fair-scheduler.xml", True), ("hdfs://nn/f.xml", False)])
def test_a_file_of_each_rm_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str, said: bool) -> None:
    (tmp_path / "f.xml").write_text("<allocations/>")
    (tmp_path / "enforce.yaml").write_text(
        f"policy: ltrf\nallocation_file: {tmp_path}/f.xml\nledger: {tmp_path}/ledger.db\nread_back: false\n"
    )
    told = conf({"yarn.scheduler.fair.allocation.file": file})
    with FakeServer(told) as one, FakeServer(told) as two, pytest.raises(SystemExit):
        main(["enforce", "--rm", one.url, "--rm", two.url, "--config", str(tmp_path / "enforce.yaml"), "--dry-run"])
    lines = [line for line in capsys.readouterr().err.splitlines() if "failover leads to old weights" in line]
    assert len(lines) == said
    assert all(line.startswith("yarnfair: file: each of the 2 ResourceManagers") for line in lines)


def test_a_file_that_the_rm_does_not_read_is_said_before_anything_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.xml").write_text("<allocations/>")
    (tmp_path / "enforce.yaml").write_text(
        f"policy: ltrf\nallocation_file: {tmp_path}/mine.xml\nledger: {tmp_path}/ledger.db\nread_back: false\n"
    )
    with FakeServer(conf({"yarn.scheduler.fair.allocation.file": "/etc/fair.xml"})) as rm, pytest.raises(SystemExit):
        main(["enforce", "--rm", rm.url, "--config", str(tmp_path / "enforce.yaml"), "--dry-run"])
    said = " ".join(capsys.readouterr().err.split())
    assert f"file: the ResourceManager reads /etc/fair.xml, and {tmp_path}/mine.xml is written" in said
