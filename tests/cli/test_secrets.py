"""A password in an address is taken nowhere, and echoed nowhere: not printed, not logged, not kept."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest
import yaml

from harness.base.errors import without_secrets
from harness.cli import main
from harness.control.telemetry import Log

MARK = "s3cr3t"
#: As they are written, and in ways that no reader of addresses takes.
ADDRESSES = (
    f"sftp://yarn:{MARK}@host/etc/fair-scheduler.xml",
    f"sftp://yarn:{MARK}/x@host/etc/fair-scheduler.xml",
    f"sftp://yarn:p@{MARK}@host/",
    f"webhdfs://yarn:{MARK}@host:port/f.xml",
    f"swebhdfs://yarn:{MARK}@host:9871/f.xml?token={MARK}",
    f"nfs://yarn:{MARK}@host/f.xml",
)
VERBS = (
    ["enforce", "--config", "CONFIG"],
    ["enforce", "--config", "CONFIG", "--rm", "http://127.0.0.1:1", "--once", "--json"],
    ["enforce", "--config", "CONFIG", "--rm", "http://127.0.0.1:1", "--dry-run", "--json"],
    ["enforce", "--config", "CONFIG", "--release"],
    ["enforce", "--config", "CONFIG", "--release", "--dry-run"],
    ["enforce", "--config", "CONFIG", "--resume"],
    ["enforce", "--config", "CONFIG", "--rm", "ADDRESS"],
    ["top", "--config", "CONFIG", "--once"],
    ["explain", "a", "--config", "CONFIG", "--json"],
    ["run", "ltyarn-small", "--backend", "local", "--rm", "http://127.0.0.1:1", "--allocations", "ADDRESS"],
    ["record", "--rm", "ADDRESS"],
    ["cluster", "doctor", "--rm", "ADDRESS"],
    ["job", "data", "check", "ADDRESS"],
    ["enforce", "--config", "ADDRESS"],
    ["validate", "ADDRESS"],
    ["shares", "ADDRESS", "--memory-mb", "1", "--vcores", "1"],
    ["replay", "ADDRESS", "--policy", "ltrf"],
)


@pytest.mark.parametrize("argv", VERBS, ids=" ".join)
@pytest.mark.parametrize("address", ADDRESSES[:1] + ADDRESSES[3:4])
def test_no_verb_echoes_it(
    argv: list[str],
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    config = tmp_path / "enforce.yaml"
    said = {"policy": "ltrf", "allocation_file": address, "ledger": "ledger.db", "period_s": 1, "lease_s": 0}
    config.write_text(yaml.safe_dump(said))
    monkeypatch.chdir(tmp_path)
    call = [{"CONFIG": str(config), "ADDRESS": address}.get(word, word) for word in argv]
    with pytest.raises(SystemExit) as end:
        main(call)
    assert end.value.code in (1, 2)
    # What is refused has not taken the process' signals.
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    assert MARK not in "".join(capfd.readouterr())
    config.unlink()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_place_that_prints_addresses_hides_every_form(address: str) -> None:
    assert MARK not in without_secrets(f"{address!r} names no file; see {address}, or {address}")
    stream = io.StringIO()
    for form in ("text", "json"):
        Log(stream, form)("warning", "file", f"{address} is torn", place=address)  # type: ignore[arg-type]
    assert MARK not in stream.getvalue()


@pytest.mark.parametrize(
    "text",
    ["sftp://yarn@host:22/f.xml: torn", "http://rm:8088", "root.a@b: 5 of 3://", "webhdfs://h:9870/a; mail x@y.z"],
)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert without_secrets(text) == text


def test_a_token_of_a_redirection_is_hidden() -> None:
    shown = without_secrets(f"http://dn:9864/webhdfs/v1/f?op=OPEN&delegation={MARK}&offset=0")
    assert shown == "http://dn:9864/webhdfs/v1/f?op=OPEN&delegation=***&offset=0"
