"""`yarnfair enforce --release` says of the administrator's values what it knows."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli import enforce, main
from harness.control.config import EnforceConfig


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "are in force"),
        ("read_back: false\n", "are written and refreshed, not read back"),
        ("refresh: poll\n", "are written; in force when the ResourceManager looks at the file next (10 to 20 s)"),
        ("refresh: poll\nread_back: false\n", "are written; in force when"),
    ],
)
def test_what_is_said_of_values_given_back(
    more: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.yaml").write_text(f"policy: ltrf\nallocation_file: f.xml\nledger: l.db\n{more}")
    done: list[str] = []
    controller = SimpleNamespace(release=lambda: done.append("release"), close=lambda: done.append("close"))
    monkeypatch.setattr(EnforceConfig, "open_client", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(enforce, "_controller", lambda *_: controller)
    with pytest.raises(SystemExit) as stop:
        main(["enforce", "--config", str(tmp_path / "e.yaml"), "--release"])
    assert stop.value.code == 0
    assert done == ["release", "close"]
    (line,) = capsys.readouterr().err.splitlines()
    assert "the administrator's own weights and limits " + said in line
