"""The study of hours on real parts: its watcher sees what must not be, its network breaks as told, its sums add up."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import YarnfairError
from harness.clusters import processes
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.stores import open_store
from studies.real_faults import faults, server
from studies.real_faults.controllers import Controller
from studies.real_faults.guard import Guard, Signed
from studies.real_faults.measured import TABLES, measured, run_of
from studies.real_faults.parts import MOST_TRIES, THEIRS, Parts
from studies.real_faults.piece import beyond
from studies.real_faults.relay import Relay

LEASE_S = 30.0


@contextmanager
def watched(folder: Path) -> Iterator[tuple[Guard, list[str]]]:
    file, told = folder / "fair-scheduler.xml", []
    file.write_bytes(THEIRS)
    guard = Guard(file, THEIRS, 3.0, LEASE_S, told.append)
    guard.begin()
    try:
        yield guard, told
    finally:
        guard.end()
    assert not guard._thread.is_alive()


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def suppressed(read: Callable[[], bytes]) -> bytes:
    with suppress(YarnfairError):
        return read()
    return b""


def count_reads(guard: Guard) -> list[bytes | None]:
    """What the guard reads from now on, as it comes; None: there is no file."""
    read: list[bytes | None] = []
    judged = guard._foreigners

    def foreigners(data: bytes | None, read_s: float) -> bool:
        read.append(data)
        return judged(data, read_s)

    guard._foreigners = foreigners  # type: ignore[method-assign]
    return read


def put(path: Path, data: bytes) -> None:
    draft = path.with_name("draft")
    draft.write_bytes(data)
    draft.rename(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<allocations><queue", "invalid"),
        (THEIRS.replace(b"50", b"51"), "more than weights"),
        (THEIRS.replace(b" 2.0 ", b"60"), "30.000 apart"),
        (THEIRS.replace(b" 2.0 ", b"1e30"), "no weights"),
        (THEIRS.replace(b"<!-- the administrator's -->", b""), "comment"),
    ],
)
def test_a_file_that_no_reader_should_meet_is_told(tmp_path: Path, data: bytes, said: str) -> None:
    with watched(tmp_path) as (guard, told):
        until(lambda: guard.replaced == 1)
        put(guard.file, data)
        until(lambda: told)
        assert said in told[0]


def test_weights_within_the_bound_and_what_others_write_are_not_told(tmp_path: Path) -> None:
    with watched(tmp_path) as (guard, told):
        until(lambda: guard.replaced == 1)
        good = THEIRS.replace(b" 2.0 ", b"5.9")
        put(guard.file, good)
        until(lambda: good in guard.seen)
        read = count_reads(guard)
        with guard.writing(b"<allocations>") as data:
            # Seen in parts, as somebody writes it who knows no better.
            for size in (0, 6, len(data)):
                put(guard.file, data[:size])
                until(lambda part=data[:size]: read[-1:] == [part])
        put(guard.file, THEIRS)
        until(lambda: guard.replaced == 3)
        guard.taken_away()
        guard.file.unlink()
        until(lambda: read[-1] is None)
        assert told == []


def test_a_lease_may_be_taken_at_once_from_a_process_that_has_ended_and_from_no_other(tmp_path: Path) -> None:
    with watched(tmp_path) as (guard, told), subprocess.Popen(["sleep", "60"]) as holder:
        put(guard.lease, json.dumps({"owner": "one", "pid": holder.pid}).encode())
        until(lambda: [s.owner for s in guard.signed][-1:] == ["one"])
        time.sleep(0.6)
        holder.send_signal(signal.SIGSTOP)
        put(guard.lease, json.dumps({"owner": "two", "pid": holder.pid}).encode())
        until(lambda: guard.signed[-1].owner == "two")
        until(lambda: len(told) == 1)
        time.sleep(0.6)
        holder.kill()
        holder.wait()
        put(guard.lease, json.dumps({"owner": "three", "pid": 1}).encode())
        until(lambda: guard.signed[-1].owner == "three")
        assert len(told) == 1


def lease_naming(**weights: float | None) -> bytes:
    """A lease whose holder names these entitlements of the queues below the root."""
    baseline = {f"root.{name}": {"weight": weight} for name, weight in weights.items()}
    return json.dumps({"owner": "one", "said": {"baseline": baseline}}).encode()


def test_a_weight_that_the_administrator_wrote_over_a_controllers_counts_as_the_entitlement(tmp_path: Path) -> None:
    with watched(tmp_path) as (guard, told):
        written = {"root.a": 60.0, "root.b": 1.0, "root.c": 1.0}
        assert "30.000 apart" in guard.apart(written)
        guard.wrote("root.a", 60.0)
        assert guard.apart(written) == ""
        # Not beside an entitlement that its holder has: it is his bound that counts when nothing goes wrong.
        assert "30.000 apart" in guard.apart(written, {"root.a": 2.0, "root.b": 1.0, "root.c": 1.0})
        put(guard.lease, lease_naming(a=60.0, b=None, c=1.0))
        until(lambda: guard.named)
        assert guard.misnamed() == ""
        put(guard.lease, lease_naming(a=60.0, b=1.5, c=1.0))
        until(lambda: guard.named["root.b"] == 1.5)
        assert "root.b" in guard.misnamed()
        assert told == []


def test_what_is_given_back_is_the_administrators_with_what_was_taken_of_his_edits(tmp_path: Path) -> None:
    with watched(tmp_path) as (guard, told):
        assert guard.not_released(THEIRS)  # nobody has named an entitlement
        put(guard.lease, lease_naming(a=2.0, b=None, c=1.0))
        until(lambda: guard.named)
        assert guard.not_released(THEIRS) == ""
        assert "bytes" in guard.not_released(THEIRS.replace(b" 2.0 ", b"2.0"))
        edited = THEIRS.replace(b" 2.0 ", b"123.0")
        assert "weights are" in guard.not_released(edited)
        guard.wrote("root.a", 123.0)
        put(guard.lease, lease_naming(a=123.0, b=None, c=1.0))
        until(lambda: guard.named["root.a"] == 123.0)
        assert guard.not_released(edited) == ""
        assert "weights are" in guard.not_released(THEIRS)
        assert "more than weights" in guard.not_released(edited.replace(b"<!-- the administrator's -->", b""))
        guard.wrote("root.b", 7.0)
        put(guard.lease, lease_naming(a=123.0, b=7.0, c=1.0))
        until(lambda: guard.named["root.b"] == 7.0)
        whole = edited.replace(b'<queue name="b"/>', b'<queue name="b"><weight>7</weight></queue>')
        assert guard.not_released(whole) == ""
        assert told == []


@pytest.mark.parametrize("data", [b"", b"<alloc"])
def test_parts_of_a_file_that_nobody_writes_any_more_are_told(tmp_path: Path, data: bytes) -> None:
    """Somebody's write in place long ago excuses nobody who leaves an empty file, or a part of one, later."""
    with watched(tmp_path) as (guard, told):
        until(lambda: guard.replaced == 1)
        with guard.writing(b"<allocations>") as whole:
            put(guard.file, whole)
        put(guard.file, THEIRS)
        until(lambda: guard.replaced == 2)
        put(guard.file, data)
        until(lambda: told)
        assert "invalid" in told[0]


def test_a_lease_that_is_taken_from_one_who_lives_is_told(tmp_path: Path) -> None:
    def lease(owner: str) -> bytes:
        return json.dumps({"owner": owner, "count": 1}).encode()

    with watched(tmp_path) as (guard, told):
        put(guard.lease, lease("one"))
        until(lambda: [s.owner for s in guard.signed][-1:] == ["one"])
        guard.taken_away()  # the file, once; it says nothing of the lease, which its holder takes away
        guard.lease.unlink()
        until(lambda: guard.signed[-1].owner == "")
        put(guard.lease, lease("two"))
        until(lambda: guard.signed[-1].owner == "two")
        assert told == [], "given back, it is anybody's"
        put(guard.lease, lease("one"))
        until(lambda: guard.signed[-1].owner == "one")
        assert len(told) == 1
        assert "one takes the lease" in told[0]
        now = time.monotonic()
        assert guard.owner_in(now - 100, now) >= {"one", "two", ""}
        assert guard.owner_in(now, now + 1) == {"one"}
        guard.disturb_lease(60.0)
        put(guard.lease, lease("two"))
        until(lambda: guard.signed[-1].owner == "two")
        assert len(told) == 1, "somebody has meddled with it"


@pytest.mark.parametrize("foreign", [b"{", b"null", bytes(400)])
def test_a_lease_that_somebody_else_writes_is_not_told(foreign: bytes, tmp_path: Path) -> None:
    with watched(tmp_path) as (guard, told):
        read = count_reads(guard)
        with guard.writing(foreign) as data:
            put(guard.lease, data)
            until(lambda: read[-1:] == [data])
        put(guard.lease, b'{"owner": "one", "count": 1}')
        until(lambda: [s.owner for s in guard.signed][-1:] == ["one"])
        assert told == []


@pytest.mark.parametrize("silent_s", [LEASE_S, 5.0])
def test_two_that_sign_in_the_moment_in_which_a_lease_ends_are_both_right(silent_s: float, tmp_path: Path) -> None:
    """Over SFTP nobody can look and sign in one step: the last has it, and the other sees that (seed 201)."""
    with watched(tmp_path) as (guard, told):
        guard.signed = [Signed(time.monotonic() - silent_s, "one"), Signed(time.monotonic(), "one")]
        put(guard.lease, json.dumps({"owner": "two"}).encode())
        until(lambda: guard.signed[-1].owner == "two")
        assert len(told) == (silent_s < LEASE_S)


def _asked(relay: Relay) -> bytes:
    """What comes of a question through a relay; nothing where the connection breaks."""
    answer = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", relay.port), timeout=10) as client:
        client.sendall(b"?")
        client.shutdown(socket.SHUT_WR)
        while part := client.recv(65536):
            answer += part
    return answer


def test_a_relay_lets_through_refuses_cuts_and_adds_noise() -> None:
    answer = b"Location: 127.0.0.1:12345 " + b"x" * 2000

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.recv(10)
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        relay = Relay(server.getsockname()[1], 1)
        relay.rewrites = {b"127.0.0.1:12345": b"127.0.0.1:54321"}
        through = answer.replace(b"12345", b"54321")
        try:
            assert _asked(relay) == through
            assert relay.disturbed == 0
            relay.mode = "slow"
            assert _asked(relay) == through
            relay.mode = "refused"
            assert _asked(relay) == b""
            relay.mode = "cut"
            cut = _asked(relay)
            assert len(cut) < len(through)
            assert through.startswith(cut)
            relay.mode = "noise"
            noisy = _asked(relay)
            assert len(noisy) == len(through)
            assert 1 <= noisy.count(0) <= 8 * 4
            assert relay.disturbed >= 4
        finally:
            relay.close()


def test_each_kind_of_fault_is_drawn() -> None:
    rng = random.Random(1)
    assert {faults.draw(rng) for _ in range(3000)} == set(faults.KINDS)


def test_a_log_tells_which_alarms_last(tmp_path: Path) -> None:
    one = Controller("one", tmp_path, tmp_path / "one.db", {"policy": "ltrf"})

    def log(start: str, **event: str) -> None:
        with one.log.open("a") as out:
            out.write(start + (json.dumps(event) + "\n" if event else ""))

    log("", level="info", event="begin", text="policy ltrf")
    log("", level="warning", event="lease", text="another one")
    log("", level="warning", event="foreign", text="somebody else")
    assert len(one.events()) == 3
    assert one.begun
    assert one.alarms == {"lease": "another one"}
    log('{"half a li')
    assert one.events() == []
    log("ne\nTraceback (most recent call last):\nException (client): 5\n")
    assert one.events() == []
    assert one.tracebacks == ["Traceback (most recent call last):"]
    log("", level="info", event="lease", text="mended")
    assert len(one.events()) == 1
    assert one.alarms == {}


@pytest.mark.parametrize(
    ("ledger", "off"), [(100_000, 0), (120_000, 0), (96_500, 0), (124_000, 0), (95_000, -5_000), (130_000, 10_000)]
)
def test_a_ledger_may_lie_between_what_the_rm_shows_and_the_most_it_has_shown(ledger: float, off: float) -> None:
    assert beyond({"ledger_mb_s": ledger, "rm_mb_s": 100_000, "rm_most_mb_s": 120_000}) == off


def test_a_record_adds_the_pieces_up() -> None:
    def sample(at_s: float, memory_mb: float | None) -> dict[str, Any]:
        own = {"memory_mb": memory_mb, "log_bytes": 2048, "ledger_bytes": 4096}
        return {
            "at_s": at_s,
            "load_average": 1.0,
            "applications": 7,
            "one": own,
            "two": own,
            "rm1": {"memory_mb": 200.0},
            "rm2": {"memory_mb": 210.0},
        }

    def piece(kind: str, violations: list[str], ledger_mb_s: float) -> dict[str, Any]:
        account = {"root.a": {"ledger_mb_s": ledger_mb_s, "rm_mb_s": 900, "rm_most_mb_s": 1000}}
        return {
            "rounds": 2,
            "faults": dict(Counter({"rm-killed": 1, kind: 2})),
            "violations": violations,
            "calm_after_s": [10.0, 20.0],
            "ended": ["words"],
            "replaced": 5,
            "begun": "2026-11-24T12:45:00+00:00",
            "place": "file",
            "released": not violations,
            "samples": [sample(0, 80.0), sample(60, 81.0), sample(1700, None), sample(1800, 82.0)],
            "accounts": {"one": account, "two": account},
            "seconds": 1800.0,
        }

    def state(*pieces: dict[str, Any]) -> dict[str, Any]:
        return {"seed": 3, "commit": "0123456789", "seconds": 1800.0 * len(pieces), "pieces": list(pieces)}

    run = run_of(state(piece("node-killed", ["x"], 500.0), piece("a", [], 1001.0)))
    assert run["faults"] == {"a": 2, "node-killed": 2, "rm-killed": 2}
    assert (run["hours"], run["released_pieces"], run["ended"]) == (1.0, 1, {"words": 2})
    assert [found["hours"] for found in run["samples"]] == [0.0, 0.5, 1.0], (
        "at most so many; none while one of them was beginning"
    )
    values = measured(run, 8.0)
    assert (values["hours"], values["fault_count"], values["violation_count"]) == (1.0, 6, 1)
    tables = {name: make(values) for name, (_, make) in TABLES.items()}
    assert "| one | `root.a` | 1,001 | 900 | 1,000 | +0.10 % |" in tables["real-faults-accounts"]
    assert "| 0.50 | 82 | 82 | 200 | 210 | 2 | 2 | 4 | 4 | 7 |" in tables["real-faults-sizes"]
    row = "| 2026-11-24, `0123456` | 1.0 of 8 | 2 | 6 | 1 | 20 s | 10 | 1 of 2 | 1, 1 |"
    assert row in tables["real-faults-sum"]

    other = {**run_of(state(piece("b", [], 990.0))), "begun": "2026-11-25"}
    both = measured(other, 8.0, values["runs"])
    assert (both["hours"], both["fault_count"], both["violation_count"]) == (1.5, 9, 1)
    tables = {name: make(both) for name, (_, make) in TABLES.items()}
    assert row.replace(" of 8", "") in tables["real-faults-sum"]
    assert "| all | 1.5 of 8 | 3 | 9 | 1 | 20 s | 15 | 2 of 3 |  |" in tables["real-faults-sum"]
    assert "| one | `root.a` | 1,991 | 1,800 | 2,000 | +0.10 % |" in tables["real-faults-accounts"]
    assert "| 1.50 | 82 |" in tables["real-faults-sizes"]
    assert tables["real-faults"] == "`a` 2, `b` 2, `node-killed` 2, `rm-killed` 3"

    went_on = run_of(state(*[piece("a", [], 990.0)] * 3))
    assert measured(went_on, 8.0, both["runs"])["hours"] == 2.0, "a run that went on is not counted twice"


@pytest.mark.sshd
def test_the_file_is_behind_sftp_which_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "fair-scheduler.xml"
    file.write_bytes(THEIRS)
    made = server.SftpServer(tmp_path / "sftp", f"test-{tmp_path}")
    with closing(Relay(made.port, 1)) as relay:
        made.known_at(relay.port)
        made.start()
        try:
            monkeypatch.setenv("HOME", str(made.home))
            place = open_store(made.place(relay.port, file))
            until(lambda: suppressed(place.read) == THEIRS)
            made.signal(signal.SIGKILL)
            with pytest.raises(Unreachable):
                place.read()
            made.start()
            until(lambda: suppressed(place.read) == THEIRS)
            relay.mode = "cut"
            with pytest.raises(Unreachable):
                place.write(b"<allocations/>", before=THEIRS)
            assert file.read_bytes() == THEIRS
        finally:
            made.stop()
    assert processes.marked(made.mark) == []


@pytest.mark.parametrize(("error", "killed"), [(Refused("it failed"), 1), (Unreachable("it begins"), 0)])
def test_an_rm_that_answers_and_does_not_become_active_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: YarnfairError, killed: int
) -> None:
    """Hadoop's fails for ever once it has failed; one that only starts is left alone."""
    said: list[str] = []
    parts = Parts(tmp_path, 1, 1, {}, said.append)
    signals: list[str] = []

    def switch(*_: object, **__: object) -> None:
        raise error

    parts.pair = SimpleNamespace(  # type: ignore[assignment]
        processes={"rm1": SimpleNamespace(alive=True)},
        rms=(None, None),
        alive=lambda name: name == "rm1",
        signal=lambda name, _number: signals.append(name),
        switch=switch,
    )
    for _ in range(MOST_TRIES + 1):
        assert signals == []
        parts._make_active()
    assert signals == ["rm1"] * killed
    assert len(said) == killed
