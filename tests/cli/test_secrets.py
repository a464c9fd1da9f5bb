"""Secrets are echoed nowhere: not printed, not logged, not kept in a run directory, not shown in a process list.

Marked are passwords and tokens in addresses, the contents of keys and keytabs, what a file has under a name that is
none, and what stands in the environment.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from harness.base.errors import CallError, InputError, without_secrets
from harness.cli import cli, main
from harness.control.telemetry import Log
from harness.yarn.http import base_url
from harness.yarn.stores import open_store
from harness.yarn.webhdfs import open_hdfs

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
#: Calls of every verb, with what it takes that a secret can stand in.
CALLS: dict[str, tuple[str, ...]] = {
    "demo": ("--svg ADDRESS",),
    "list": ("ADDRESS", "experiments --json"),
    "run": (
        "ltyarn-small --backend local --rm http://127.0.0.1:1 --allocations ADDRESS",
        "ltyarn-small --backend local --rm ADDRESS --allocations f.xml",
        "ltyarn-small --backend local --rm http://127.0.0.1:1 --allocations f.xml --principal yarn --keytab KEYTAB",
        "ltyarn-small --backend ssh --inventory INVENTORY",
        "EXPERIMENT",
        "ltyarn-small --policy ltrf --seed 1 --no-report --out runs --json",
    ),
    "report": ("ADDRESS",),
    "enforce": (
        "--config CONFIG",
        "--config CONFIG --rm http://127.0.0.1:1 --once --json",
        "--config CONFIG --rm http://127.0.0.1:1 --dry-run --json",
        "--config CONFIG --release",
        "--config CONFIG --release --dry-run",
        "--config CONFIG --resume",
        "--config CONFIG --rm ADDRESS",
        "--config ADDRESS",
        "--config KERBEROS --rm http://127.0.0.1:1 --once --json",
        "--config UNKNOWN --once",
    ),
    "explain": ("a --config CONFIG --json", "a --rm ADDRESS", "a --ledger ADDRESS"),
    "top": ("--config CONFIG --once", "--rm ADDRESS --once", "--run ADDRESS --once"),
    "assess": ("ADDRESS", "--rm ADDRESS --for 1", "--history ADDRESS"),
    "whatif": ("ADDRESS",),
    "usage": ("ADDRESS",),
    "plan": ("ADDRESS --before ADDRESS --after ADDRESS", "ADDRESS --before TORN --nodes 1"),
    "record": (
        "--rm ADDRESS",
        "--rm http://127.0.0.1:1 --history ADDRESS -o out",
        "--rm http://127.0.0.1:1 --principal yarn --keytab KEYTAB -o out",
    ),
    "replay": ("ADDRESS --policy ltrf", "ADDRESS --policy ltrf --against ADDRESS"),
    "shares": ("ADDRESS --memory-mb 1 --vcores 1", "TORN --memory-mb 1 --vcores 1"),
    "render": ("ADDRESS", "UNKNOWN"),
    "convert": ("ADDRESS",),
    "validate": ("ADDRESS", "TORN"),
    "allocate": ("ADDRESS --policy ltrf", "UNKNOWN --policy ltrf"),
    "order": ("ADDRESS --map-slots 1 --reduce-slots 1 --algorithm johnson",),
    "campaign plan": ("ADDRESS", "UNKNOWN"),
    "campaign run": ("ADDRESS", "UNKNOWN --out out"),
    "campaign status": ("ADDRESS",),
    "compare": ("ADDRESS ADDRESS",),
    "plot": ("ADDRESS --figure jobs -o ADDRESS",),
    "sql": ("select ADDRESS",),
    "decide": ("ADDRESS",),
    "sim serve": ("ADDRESS", "ltyarn-small --store ADDRESS", "ltyarn-small --allocations ADDRESS"),
    "baseline": ("ADDRESS -o ADDRESS",),
    "check": ("ADDRESS --baseline ADDRESS",),
    "trend": ("ADDRESS",),
    "bench": ("--engine ADDRESS",),
    "cluster adopt": ("--inventory INVENTORY --rest ADDRESS --allocations ADDRESS", "--inventory ADDRESS --rest h:1"),
    "cluster doctor": ("--rm ADDRESS", "--rm http://127.0.0.1:1 --principal yarn --keytab KEYTAB"),
    "cluster down": ("--backend ssh --state state --inventory INVENTORY", "--backend ssh --inventory UNKNOWN"),
    "cluster grow": ("--type ADDRESS --nodes 1",),
    "cluster release": ("--state ADDRESS",),
    "cluster shrink": ("ADDRESS --state state",),
    "cluster status": ("--backend ssh --state state --inventory UNKNOWN",),
    "cluster up": ("--backend ssh --state state --inventory UNKNOWN", "--backend local --state state --jar ADDRESS"),
    "data convert": ("swf ADDRESS -o out", "philly ADDRESS -o ADDRESS", "csv TORN -o out"),
    "data formats": ("",),
    "data generate": ("text --size 1kB --seed 1 --out ADDRESS",),
    "data kinds": ("",),
    "data verify": ("ADDRESS",),
    "job list": ("",),
    "job run": ("wordcount --rm ADDRESS --input ADDRESS --output ADDRESS", "wordcount --state ADDRESS"),
}


def leaves(group: click.Group, path: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}"


def test_every_verb_is_called() -> None:
    assert set(CALLS) == set(leaves(cli))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a call names, below a folder of its own; a secret in each, and in the environment."""
    folder, home = tmp_path / "given", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    said = {"policy": "ltrf", "ledger": str(tmp_path / "ledger.db"), "period_s": 1, "lease_s": 0}
    local = {**said, "allocation_file": str(folder / "torn.xml")}
    documents = {
        "UNKNOWN": {**local, "password": MARK, "http": {"password": MARK}, "hosts": {"a": {"password": MARK}}},
        "KERBEROS": {**local, "http": {"kerberos": {"principal": "yarn", "keytab": str(folder / "keytab")}}},
        "EXPERIMENT": {"kind": "ltyarn", "title": "x", "password": MARK, "fs": f"hdfs://u:{MARK}@nn/"},
        "INVENTORY": {
            "defaults": {"key": str(folder / "key"), "known_hosts": str(folder / "key")},
            "hosts": {"a": {"host": "127.0.0.1", "port": 1, "roles": ["rm", "nm"]}},
        },
    }
    for name in ("CONFIG_SFTP", "CONFIG_WEBHDFS"):
        documents[name] = {**said, "allocation_file": ADDRESSES[0 if name == "CONFIG_SFTP" else 3]}
    found = {name: str(folder / f"{name.lower()}.yaml") for name in documents}
    for name, document in documents.items():
        Path(found[name]).write_text(yaml.safe_dump(document))
    found |= {name: str(folder / name.lower()) for name in ("KEYTAB", "KEY")} | {"TORN": str(folder / "torn.xml")}
    Path(found["KEYTAB"]).write_bytes(b"\x05\x02\x00\x00" + MARK.encode())
    Path(found["KEY"]).write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{MARK}\n-----END OPENSSH PRIVATE KEY-----\n")
    Path(found["TORN"]).write_text(f"<allocations><queue name='a'><weight>sftp://a:{MARK}@h</weight></queue>")
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, f"http://user:{MARK}@127.0.0.1:1")
    for name in ("AWS_SECRET_ACCESS_KEY", "YARNFAIR_TEST_TOKEN", "KRB5PASSWORD"):
        monkeypatch.setenv(name, MARK)
    # What is compiled stays where it was.
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize(
    ("call", "address"),
    [(f"{verb} {rest}", ADDRESSES[0]) for verb, calls in CALLS.items() for rest in calls]
    + [(f"enforce {rest}", ADDRESSES[3]) for rest in CALLS["enforce"]]
    + [
        (f"{verb} {rest}", address)
        for verb in ("assess", "replay")
        for rest in CALLS[verb]
        for address in ADDRESSES[1:]
    ],
    ids=str,
)
def test_no_verb_tells_a_secret(
    call: str,
    address: str,
    files: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    started: list[str] = []
    start = subprocess.Popen.__init__

    def noted(self: Any, args: Any, *rest: Any, **named: Any) -> None:
        started.append(str(args))
        start(self, args, *rest, **named)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    config = files["CONFIG_SFTP" if address.startswith("sftp") else "CONFIG_WEBHDFS"]
    named = {**files, "ADDRESS": address, "CONFIG": config}
    with pytest.raises(SystemExit) as end:
        main([named.get(word, word) for word in call.split()])
    assert end.value.code in (0, 1, 2)
    # What is refused has not taken the process' signals.
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    assert MARK not in "".join(capfd.readouterr())
    assert [args for args in started if MARK in args] == []
    left = [path for path in tmp_path.rglob("*") if path.name != "given" and path.parent.name != "given"]
    # What a call names itself is called so; names that the program chooses hold no secret.
    chosen = [path.relative_to(tmp_path) for path in left]
    assert [path for path in chosen if MARK in str(path) and path.parts[0] != Path(address).parts[0]] == []
    assert [path for path in left if path.is_file() and MARK.encode() in path.read_bytes()] == []


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


@pytest.mark.parametrize("before", [1400, 1490, 1500])
def test_a_secret_across_the_place_where_a_line_is_cut_is_hidden(before: int) -> None:
    words = f"{'word ' * (before // 5)} sftp://yarn:{MARK}{MARK * 20}@host/f.xml {'word ' * 400}"
    assert MARK not in InputError(words, where=words, hint=words).line()


def test_a_long_word_is_searched_in_a_moment() -> None:
    before_s = time.process_time()
    for word in ("a:/b:" * 100_000, "a" * 400_000 + ":/", "a:/b:" * 100_000 + "@", "a:/" * 200_000 + "@"):
        without_secrets(word)
    assert time.process_time() - before_s < 5.0


def test_a_token_of_a_redirection_is_hidden() -> None:
    shown = without_secrets(f"http://dn:9864/webhdfs/v1/f?op=OPEN&delegation={MARK}&offset=0")
    assert shown == "http://dn:9864/webhdfs/v1/f?op=OPEN&delegation=***&offset=0"


#: Addresses whose host or port no library reads, because of where the password ends.
TORN = (
    f"http://yarn:{MARK}/x@host:8088",
    f"http://yarn:{MARK}@host:port",
    f"yarn:{MARK}@host:port",
    f"http://yarn:{MARK}@[host",
    f"http://yarn:{MARK}\u2100@host",
)


@pytest.mark.parametrize("address", TORN)
def test_why_an_address_cannot_be_read_quotes_no_part_of_a_password(address: str) -> None:
    hdfs = address if "://" in address else f"http://{address}"
    for read, given in ((base_url, address), (open_store, hdfs), (open_hdfs, hdfs.replace("http", "webhdfs", 1))):
        with pytest.raises(CallError) as refused:
            read(given)
        assert MARK not in without_secrets(refused.value.line())
