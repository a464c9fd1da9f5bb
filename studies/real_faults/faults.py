"""What goes wrong, by kind. Each changes the run at a moment, says what it occupies, how long it lasts and how it ends.

Two faults on the same part do not overlap; on different parts they do.
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.yarn.fair.parse import parse_allocations
from studies.real_faults.relay import MODES

if TYPE_CHECKING:
    from studies.real_faults.parts import Parts

_NONSENSE = (
    b"",
    b"<allocations>",
    b"<allocations><queue name='a'><weight>NaN</weight></queue>",
    b"<configuration/>",
    b"\xff\xfe\x00" * 40,
    b'<!DOCTYPE a [<!ENTITY b "c">]><allocations>&b;</allocations>',
    b"<allocations><queue name='a.b'/></allocations>",
    b"<allocations><queue name='a'><weight>much</weight></queue></allocations>",
)
_LEASES = (
    b"[" * 100_000,
    b"{",
    b"null",
    b'{"owner": 7, "lease_s": "x"}',
    b'{"owner": "somebody", "host": "elsewhere", "pid": 1, "count": 1, "lease_s": 1e9}',
    b'{"owner": "somebody", "host": {"a": 1}, "lease_s": 5, "said": {"baseline": 3}, "said_by": "somebody"}',
    b"\x00" * 50,
)


@dataclass(frozen=True)
class Begun:
    """A fault that goes on: for how long, and how it ends."""

    part: str
    lasts_s: float
    end: Callable[[], object] = lambda: None


Fault = Callable[["Parts", random.Random], Begun | None]
#: Kind -> how often it is drawn beside the others, and what it does (None: not now).
KINDS: dict[str, tuple[float, Fault]] = {}


def _kind(name: str, often: float = 1.0, part: str = "") -> Callable[[Fault], Fault]:
    """A kind of fault; ``part``: what it occupies, so that it does not begin while another fault goes on there."""

    def keep(fault: Fault) -> Fault:
        def unless_occupied(parts: Parts, rng: random.Random) -> Begun | None:
            return None if part and parts.occupied(part) else fault(parts, rng)

        KINDS[name] = (often, unless_occupied)
        return fault

    return keep


def draw(rng: random.Random) -> str:
    """A kind."""
    names = list(KINDS)
    return rng.choices(names, [KINDS[name][0] for name in names])[0]


# --- ResourceManagers and nodes ---


@_kind("rm-killed", part="rm")
def _rm_killed(parts: Parts, rng: random.Random) -> Begun | None:
    """The active one dies; its partner takes over after some seconds, and it comes back as a standby."""
    dead = parts.active
    parts.down(dead, signal.SIGKILL)
    parts.later(rng.uniform(1.0, 8.0), lambda: parts.want(parts.partner(dead)))
    return Begun("rm", rng.uniform(12.0, 50.0), lambda: parts.up(dead))


@_kind("rm-restarted", 0.7, part="rm")
def _rm_restarted(parts: Parts, rng: random.Random) -> Begun | None:
    """The active one dies, and is begun again as the active one: no partner stands in."""
    dead = parts.active
    parts.down(dead, signal.SIGKILL)
    return Begun("rm", rng.uniform(1.0, 15.0), lambda: parts.up(dead))


@_kind("rm-failed-over", 0.7, part="rm")
def _rm_failed_over(parts: Parts, rng: random.Random) -> Begun | None:
    parts.fail_over()
    return Begun("rm", 20.0)


@_kind("rm-frozen", part="rm")
def _rm_frozen(parts: Parts, rng: random.Random) -> Begun | None:
    frozen = parts.active
    parts.pair.signal(frozen, signal.SIGSTOP)
    lasts_s = rng.uniform(2.0, 25.0) if rng.random() < 0.8 else rng.uniform(25.0, 60.0)
    return Begun("rm", lasts_s, lambda: parts.pair.signal(frozen, signal.SIGCONT))


@_kind("standby-killed", 0.3, part="rm")
def _standby_killed(parts: Parts, rng: random.Random) -> Begun | None:
    dead = parts.partner(parts.active)
    parts.down(dead, signal.SIGKILL)
    return Begun("rm", rng.uniform(3.0, 30.0), lambda: parts.up(dead))


@_kind("node-killed")
def _node_killed(parts: Parts, rng: random.Random) -> Begun | None:
    name = parts.some_node(rng)
    if name is None:
        return None
    parts.down(name, signal.SIGKILL)
    return Begun(name, rng.uniform(2.0, 60.0), lambda: parts.up(name))


@_kind("node-frozen", 0.7)
def _node_frozen(parts: Parts, rng: random.Random) -> Begun | None:
    name = parts.some_node(rng)
    if name is None:
        return None
    parts.pair.signal(name, signal.SIGSTOP)
    return Begun(name, rng.uniform(2.0, 60.0), lambda: parts.pair.signal(name, signal.SIGCONT))


# --- controllers ---


@_kind("controller-killed", 2.0)
def _controller_killed(parts: Parts, rng: random.Random) -> Begun | None:
    one = parts.some_controller(rng)
    if one is None or parts.edited():
        return None
    one.kill()
    return Begun(one.name, rng.choice((0.0, rng.uniform(0.0, 8.0), rng.uniform(8.0, 60.0))), one.start)


@_kind("controller-killed-at-its-start")
def _killed_at_start(parts: Parts, rng: random.Random) -> Begun | None:
    """Again and again: some die while they start, some in their first tick."""
    one, at_s = parts.some_controller(rng), 0.0
    if one is None or parts.edited():
        return None
    one.kill()
    for _ in range(rng.randint(1, 3)):
        parts.later(at_s, one.start)
        at_s += rng.uniform(0.5, 7.0)
        parts.later(at_s, one.kill)
    return Begun(one.name, at_s + 0.5, one.start)


@_kind("controllers-killed")
def _controllers_killed(parts: Parts, rng: random.Random) -> Begun | None:
    """Both at once, and then one after the other."""
    first, second = rng.sample(parts.controllers, 2)
    if parts.occupied(first.name, second.name) or parts.edited():
        return None
    for one in (first, second):
        one.kill()
    parts.occupy(second.name, 20.0, second.start)
    return Begun(first.name, rng.uniform(0.0, 40.0), first.start)


@_kind("controller-frozen", 1.5)
def _controller_frozen(parts: Parts, rng: random.Random) -> Begun | None:
    one = parts.some_controller(rng)
    if one is None or parts.edited():
        return None
    one.freeze()
    return Begun(one.name, rng.uniform(0.3, 3.0) * parts.lease_s, one.go_on)


@_kind("controller-stopped", 1.5)
def _controller_stopped(parts: Parts, rng: random.Random) -> Begun | None:
    """As an administrator stops it: it releases, or hands over."""
    one = parts.some_controller(rng)
    if one is None or not one.running:
        return None
    one.ask_to_stop()

    def end() -> None:
        if one.stop() != 0:
            parts.note(f"{one.name} did not stop well")
        one.start()

    return Begun(one.name, rng.uniform(3.0, 60.0), end)


# --- files ---


@_kind("file-nonsense", part="file")
def _nonsense(parts: Parts, rng: random.Random) -> Begun | None:
    """Written in place, as an editor does that knows no better, and put back as it was before."""
    saved = parts.file.read_bytes()
    torn = saved[: rng.randrange(1, max(len(saved) - 16, 2))]
    with parts.guard.writing(rng.choice((*_NONSENSE, torn, torn))) as data:
        parts.file.write_bytes(data)
    return Begun("file", rng.uniform(1.0, 30.0), lambda: parts.put_file(saved))


@_kind("file-removed", 0.6, part="file")
def _removed(parts: Parts, rng: random.Random) -> Begun | None:
    away = parts.file.with_name("away.xml")
    parts.guard.taken_away()
    parts.file.rename(away)
    return Begun("file", rng.uniform(1.0, 25.0), lambda: away.rename(parts.file))


@_kind("file-foreign-weight", 1.5, part="file")
def _foreign(parts: Parts, rng: random.Random) -> Begun | None:
    """The administrator writes a weight over the controller's: it is the queue's entitlement from then on."""
    data = parts.held_file()
    found = list(re.finditer(rb"<weight>[^<]*<", data)) if data else []
    if not found:
        return None
    where, weight = rng.choice(found), rng.choice((b"7", b"0.5", b"123.0"))
    edited = data[: where.start()] + b"<weight>" + weight + b"<" + data[where.end() :]
    before, after = parse_allocations(data), parse_allocations(edited)
    for path in parts.guard.entitlements:
        if (wrote := after.weight(path)) is not None and wrote != before.weight(path):
            parts.guard.wrote(path, float(wrote))
    parts.edit(edited)
    return Begun("file", parts.period_s)


@_kind("file-older", part="file")
def _older(parts: Parts, rng: random.Random) -> Begun | None:
    """Somebody puts back a copy that he has taken some time ago."""
    data = parts.held_file()
    older = [seen for seen in parts.guard.seen if seen != data]
    if not data or not older:
        return None
    parts.edit(rng.choice(older))
    return Begun("file", parts.period_s)


@_kind("folder-read-only", part="file")
def _read_only(parts: Parts, rng: random.Random) -> Begun | None:
    if not parts.file_disk.writable(False):
        return None
    return Begun("file", rng.uniform(2.0, 40.0), lambda: parts.file_disk.writable(True))


@_kind("folder-full", part="file")
def _folder_full(parts: Parts, rng: random.Random) -> Begun | None:
    parts.file_disk.fill()
    return Begun("file", rng.uniform(2.0, 40.0), parts.file_disk.empty)


@_kind("ledger-full", part="ledger")
def _ledger_full(parts: Parts, rng: random.Random) -> Begun | None:
    parts.ledger_disk.fill()
    return Begun("ledger", rng.uniform(2.0, 40.0), parts.ledger_disk.empty)


@_kind("lease-hostile", part="file")
def _lease_hostile(parts: Parts, rng: random.Random) -> Begun | None:
    if not parts.held_file():
        return None
    parts.guard.disturb_lease(parts.lease_s + 3 * parts.period_s)
    with parts.guard.writing(rng.choice(_LEASES)) as data:
        parts.guard.lease.write_bytes(data)
    return Begun("file", parts.period_s)


@_kind("lease-gone", 0.6, part="file")
def _lease_gone(parts: Parts, rng: random.Random) -> Begun | None:
    if not parts.held_file():
        return None
    parts.guard.disturb_lease(parts.lease_s + 3 * parts.period_s)
    parts.guard.lease.unlink(missing_ok=True)
    return Begun("file", parts.period_s)


# --- the network between the controllers and the RMs ---


def _network(mode: str) -> None:
    @_kind(f"network-{mode}", 0.6, part="network")
    def begin(parts: Parts, rng: random.Random) -> Begun | None:
        every = [relay for relays in parts.relays.values() for relay in relays.values()]
        of_one = list(rng.choice(list(parts.relays.values())).values())
        by_rest = [relays["rest"] for relays in parts.relays.values()]
        disturbed = by_rest if mode == "noise" else rng.choice((every, of_one, by_rest))
        for relay in disturbed:
            relay.mode = mode

        def end() -> None:
            for relay in disturbed:
                relay.mode = ""

        return Begun("network", rng.uniform(2.0, 40.0), end)


for _mode in MODES:
    _network(_mode)


# --- SFTP between the controllers and the file, in the pieces that have it ---


def _sftp_network(mode: str) -> None:
    @_kind(f"sftp-{mode}", 0.5, part="sftp")
    def begin(parts: Parts, rng: random.Random) -> Begun | None:
        relay = parts.sftp_relay
        if relay is None:
            return None
        relay.mode = mode

        def end() -> None:
            relay.mode = ""

        return Begun("sftp", rng.uniform(2.0, 40.0), end)


for _mode in MODES:
    _sftp_network(_mode)


@_kind("sftp-killed", part="sftp")
def _sftp_killed(parts: Parts, rng: random.Random) -> Begun | None:
    """The server dies with its connections, wherever a write stands."""
    if (sftp := parts.sftp) is None:
        return None
    sftp.signal(signal.SIGKILL)
    return Begun("sftp", rng.uniform(0.0, 30.0), sftp.start)


@_kind("sftp-frozen", part="sftp")
def _sftp_frozen(parts: Parts, rng: random.Random) -> Begun | None:
    if (sftp := parts.sftp) is None:
        return None
    sftp.signal(signal.SIGSTOP)
    return Begun("sftp", rng.uniform(2.0, 40.0), lambda: sftp.signal(signal.SIGCONT))
