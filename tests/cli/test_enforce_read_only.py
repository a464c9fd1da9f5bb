"""A ledger that cannot be written is waited for, as one on a full disk is, and stops no release."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.ledger.store import LedgerStore, StoreFull, is_in_use
from tests.cli.test_enforce_release import FILE, Site
from tests.cli.test_enforce_signals import until

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def as_owner_alone() -> None:
    """Root obeys the modes of its files like anybody else, from the next program on."""
    libc = ctypes.CDLL(None)
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A controller was killed, and its ledger can no longer be written."""
    found = Site(tmp_path)
    for name in ("ledger.db", "ledger.db.lock"):
        (tmp_path / name).chmod(0o444)
    return found


def call(site: Site, *options: str) -> list[str]:
    return [sys.executable, "-m", "harness", "enforce", "--config", str(site.config), *options]


def test_a_release_goes_on_from_a_copy(site: Site) -> None:
    done = subprocess.run(
        call(site, "--release", "--log-format", "json"), capture_output=True, text=True, preexec_fn=as_owner_alone
    )
    assert done.returncode == 0, done.stderr
    assert site.file.read_bytes() == FILE
    told = [json.loads(line) for line in done.stderr.splitlines()]
    (warning,) = [line["text"] for line in told if line["event"] == "ledger"]
    assert "cannot be written" in warning
    assert "released from a copy" in warning


def test_a_service_waits_for_it_and_releases_when_it_is_stopped(site: Site) -> None:
    with subprocess.Popen(
        call(site, "--log-format", "json"), stderr=subprocess.PIPE, text=True, preexec_fn=as_owner_alone
    ) as process:
        # No RM answers either: what is said first is what it meets first.
        until(process, "observation")
        process.send_signal(signal.SIGTERM)
        until(process, "release")
        assert process.wait(timeout=300) == 0
    assert site.file.read_bytes() == FILE


def test_opening_it_is_what_a_full_disk_is(site: Site) -> None:
    code = "import sys; from harness.ledger.store import *\ntry: LedgerStore(__import__('pathlib').Path(sys.argv[1]))\n"
    code += "except StoreFull as error: print(error.line())"
    path = str(site.folder / "ledger.db")
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, preexec_fn=as_owner_alone, check=True
    )
    assert f"{path}: the ledger cannot be written" in done.stdout


def test_a_ledger_that_is_not_there_and_cannot_be_made_is_a_mistake_at_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    code = "import sys; from harness.ledger.store import *\ntry: LedgerStore(__import__('pathlib').Path(sys.argv[1]))\n"
    code += "except InputError as error: print(type(error).__name__)"
    path = str(tmp_path / "ledger.db")
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, preexec_fn=as_owner_alone, check=True
    )
    tmp_path.chmod(0o755)
    assert done.stdout.strip() == "InputError"


def test_a_release_does_not_pass_by_a_controller_at_work(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    with LedgerStore(site.folder / "ledger.db"):
        assert is_in_use(site.folder / "ledger.db")
        assert site.call() == 1
    assert "another controller is at work with this ledger" in capsys.readouterr().err
    assert not is_in_use(site.folder / "ledger.db")


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_ledger_that_goes_under_a_controllers_hands_is_an_error_of_every_commit(tmp_path: Path, how: str) -> None:
    path = tmp_path / "ledger.db"
    with LedgerStore(path) as store:
        store.commit(documents={"a": 1})
        if how == "deleted":
            path.unlink()
        else:
            (tmp_path / "new").write_bytes(path.read_bytes())
            os.replace(tmp_path / "new", path)
        for _ in range(2):
            with pytest.raises(StoreFull, match=f"the ledger was {how}"):
                store.commit(documents={"a": 2})
    assert isinstance(StoreFull("x"), InputError)
