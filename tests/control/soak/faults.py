"""What goes wrong, by kind: each changes the world at a moment, and says how long that lasts and how it ends."""

from __future__ import annotations

import os
import random
import re
from typing import TYPE_CHECKING

from tests.control.soak import edits
from tests.control.soak.process import Process
from tests.control.soak.schedule import KINDS, End, Fault, drawn, kind, parse
from tests.control.soak.wire import LIE_S, LIES, AnswerFault

if TYPE_CHECKING:
    from tests.control.soak.world import World

__all__ = ["KINDS", "End", "Fault", "drawn", "parse"]

#: The pages of which answers go wrong, and how.
_BROKEN = ("cut", "empty-object", "empty-body", "null", "html", "error", "hangs", "deep")
_HOSTILE = (
    b"",
    b"<allocations>",
    b"<allocations><queue name='x'><weight>NaN</weight></queue>",
    b"<configuration/>",
    b"\xff\xfe\x00",
    b'<!DOCTYPE a [<!ENTITY b "c">]><allocations>&b;</allocations>',
    b"<allocations>" + b"<queue name='a'>" * 300 + b"</queue>" * 300 + b"</allocations>",
    b"<allocations><queue name='q0'><weight>much</weight></queue></allocations>",
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


# --- answers ---


def _answer(name: str, pages: tuple[str, ...]) -> None:
    @kind(f"answer-{name}")
    def begin(world: World, rng: random.Random) -> End:
        period_s = world.plan.settings.period_s
        lie = name in LIES
        if lie and not world.checks.may_be_lied_to():
            return False
        most = 1 + int(LIE_S / period_s) if lie else 6
        fault = AnswerFault(name, rng.choice(pages), rng.randint(1, most), rng)
        world.wire.faults.append(fault)
        world.checks.truthful = world.checks.truthful and not lie
        return None


for _name in _BROKEN:
    _answer(_name, ("info", "scheduler", "apps", "jmx", "any"))
for _name in LIES:
    _answer(_name, ("apps",))
_answer("impossible-queue", ("apps", "scheduler"))
_answer("lost", ("refreshQueues", "getQueueInfo"))
_answer("lost-after", ("refreshQueues",))


@kind("network-slow")
def _network_slow(world: World, rng: random.Random) -> End:
    world.wire.slow_s = rng.uniform(0.05, 1.0)

    def end() -> None:
        world.wire.slow_s = 0.0

    return world.periods(rng, 2, 10), end


# --- ResourceManagers ---


@kind("rm-freezes")
def _freezes(world: World, rng: random.Random) -> End:
    rm = world.active
    rm.frozen = True

    def end() -> None:
        rm.frozen = False

    return world.periods(rng, 0.3, 8), end


@kind("rm-restarts")
def _restarts(world: World, rng: random.Random) -> End:
    return world.restart(rng)


@kind("rm-fails-over")
def _fails_over(world: World, rng: random.Random) -> End:
    return world.fail_over(rng) if len(world.rms) > 1 else False


@kind("rm-loads-older")
def _loads_older(world: World, rng: random.Random) -> End:
    world.active.load(world.pristine)
    return None


@kind("rm-restarts-with-older")
def _restarts_older(world: World, rng: random.Random) -> End:
    return world.restart(rng, older=world.pristine)


@kind("rm-forgets-ended")
def _forgets(world: World, rng: random.Random) -> End:
    world.lost.forget_ended()
    return None


@kind("refresh-dropped")
def _dropped(world: World, rng: random.Random) -> End:
    rm = world.active
    rm.drops_refresh = True

    def end() -> None:
        rm.drops_refresh = False

    return world.periods(rng, 0.5, 8), end


@kind("refresh-late")
def _late(world: World, rng: random.Random) -> End:
    rm = world.active
    rm.late_refresh_s = rng.uniform(0.5, 20.0)

    def end() -> None:
        rm.late_refresh_s = 0.0

    return world.periods(rng, 0.5, 8), end


@kind("refresh-twice")
def _twice(world: World, rng: random.Random) -> End:
    rm = world.active
    rm.twice = True

    def end() -> None:
        rm.twice = False

    return world.periods(rng, 0.5, 8), end


@kind("refresh-overtaken")
def _overtaken(world: World, rng: random.Random) -> End:
    """Somebody's earlier call, with the file as it was then, ends after ours."""
    before, rm = world.file.read(), world.active
    world.agenda.after(world.periods(rng, 0.5, 4), lambda: rm.load(before) and None)
    return None


@kind("poll-misses")
def _misses(world: World, rng: random.Random) -> End:
    """The RM is loading when the file is replaced: the next time, or now that somebody has put his weight."""
    world.poll_misses += 1
    if rng.random() < 0.5:
        _weight(world, rng)
    return None


@kind("rm-fails-over-in-a-look")
def _fails_over_in_look(world: World, rng: random.Random) -> End:
    world.wire.after_pages(rng.randint(1, 4), lambda: len(world.rms) > 1 and world.fail_over(rng))
    return None


@kind("rm-store-slow")
def _store_slow(world: World, rng: random.Random) -> End:
    """The RM takes long to save that applications have ended; it shows them as running until then."""
    before, world.cluster.saving_s = world.cluster.saving_s, 30.0

    def end() -> None:
        world.cluster.saving_s = before

    return world.periods(rng, 5, 30), end


@kind("somebody-looks")
def _somebody_looks(world: World, rng: random.Random) -> End:
    world.somebody_looks(world.periods(rng, 3, 30), rng.uniform(0.5, 4.0))
    return None


# --- controllers ---


@kind("controller-killed")
def _killed(world: World, rng: random.Random) -> End:
    process = world.some(rng)
    process.disk.power = rng.random() < 0.4
    process.disk.kill_in = rng.randrange(30)
    return world.periods(rng, 2, 6), lambda: world.spare_life(process)


@kind("controller-restarts")
def _controller_restarts(world: World, rng: random.Random) -> End:
    process = world.some(rng)
    if process.ticking or not process.running:
        return False
    process.end("hold")
    world.agenda.after(world.periods(rng, 0.1, 8), process.begin)
    return None


@kind("controller-released-and-begun")
def _released(world: World, rng: random.Random) -> End:
    process = world.some(rng)
    if process.ticking or not process.running or world.intruded or world.wire.alien is not None:
        return False
    process.end("release")
    world.agenda.after(world.periods(rng, 0.1, 4), process.begin)
    return None


@kind("controller-paused")
def _paused(world: World, rng: random.Random) -> End:
    process = world.some(rng)
    process.pause_s = rng.uniform(0.2, 2.5) * max(world.plan.settings.lease_s, world.plan.settings.period_s)
    return None


@kind("holder-dies")
def _holder_dies(world: World, rng: random.Random) -> End:
    """For longer than its lease: a spare takes over."""
    holder = next((p for p in world.processes if p.running and p.controller.holds), None)
    if holder is None or not world.plan.settings.lease_s or len(world.processes) < 2:
        return False
    holder.disk.kill_in = rng.randrange(4)
    holder.down_s = 1.5 * world.plan.settings.lease_s + world.periods(rng, 1, 4)
    return None


@kind("controller-cut-off")
def _cut_off(world: World, rng: random.Random) -> End:
    """One controller reaches no RM; its disk is well."""
    name = rng.choice([p.name for p in world.processes[:1] + world.processes])
    world.wire.cut_off.add(name)
    return world.periods(rng, 1, 10), lambda: world.wire.cut_off.discard(name)


@kind("second-controller")
def _second(world: World, rng: random.Random) -> End:
    """With a lease a spare, which stays; without one an intruder, for a while."""
    return world.second(rng)


@kind("spare-restarts")
def _spare_restarts(world: World, rng: random.Random) -> End:
    spare = world.processes[-1]
    if len(world.processes) < 2 or spare.ticking or not spare.running or not spare.wanted:
        return False
    spare.end("hold")
    world.agenda.after(world.periods(rng, 0.5, 12), spare.begin)
    return None


# --- disks ---


def _disk(name: str, **trouble: str | float) -> None:
    @kind(f"disk-{name}")
    def begin(world: World, rng: random.Random) -> End:
        process: Process = world.some(rng)
        process.disturb(**trouble)  # type: ignore[arg-type]
        return world.periods(rng, 0.5, 8), process.disturb


_disk("full", file_error="full", ledger_error="full")
_disk("file-full", file_error="full")
_disk("file-read-only", file_error="read-only")
_disk("ledger-full", ledger_error="full")
_disk("ledger-read-only", ledger_error="read-only")
_disk("slow", slow_s=0.4)


# --- files ---


@kind("file-torn")
def _torn(world: World, rng: random.Random) -> End:
    data = world.file.read()
    return world.break_file(rng, data[: rng.randrange(1, max(len(data) - 16, 2))])


@kind("file-hostile")
def _hostile(world: World, rng: random.Random) -> End:
    return world.break_file(rng, rng.choice(_HOSTILE))


@kind("file-no-file")
def _no_file(world: World, rng: random.Random) -> End:
    def make(path: str) -> None:
        match rng.randrange(4):
            case 0:
                os.symlink(path, path)
            case 1:
                os.mkfifo(path)
            case 2:
                os.mkdir(path)

    return world.break_file(rng, make)


@kind("lease-hostile")
def _lease_hostile(world: World, rng: random.Random) -> End:
    if not world.plan.settings.lease_s or world.agenda.now_s < world.foreign_until_s:
        return False
    world.lease_path.write_bytes(rng.choice(_LEASES))
    world.checks.lease_disturbed()
    return None


@kind("lease-gone")
def _lease_gone(world: World, rng: random.Random) -> End:
    if not world.plan.settings.lease_s or world.agenda.now_s < world.foreign_until_s:
        return False
    world.lease_path.unlink(missing_ok=True)
    world.checks.lease_disturbed()
    return None


# --- clocks ---


@kind("clock-jumps")
def _jumps(world: World, rng: random.Random) -> End:
    world.some(rng).clock.jumped_s += rng.choice((-1, 1)) * rng.choice((1.0, 30.0, 3600.0, 86_400.0))
    return None


@kind("clock-drifts")
def _drifts(world: World, rng: random.Random) -> End:
    clock = world.some(rng).clock
    clock.drift(rng.choice((0.99, 1.01)))
    return world.periods(rng, 5, 20), lambda: clock.drift(1.0)


# --- the administrator, users, nodes ---


@kind("queue-added")
def _queue_added(world: World, rng: random.Random) -> End:
    world.new_queues += 1
    element = world.words.element(rng, f"new{world.new_queues}").encode()
    return world.edit(lambda data: world.words.add(data, element))


@kind("queue-removed")
def _queue_removed(world: World, rng: random.Random) -> End:
    name = world.idle_leaf(rng)
    return world.edit(lambda data: edits.leaf_element(name).sub(b"", data)) if name else False


@kind("queue-commented-out")
def _commented(world: World, rng: random.Random) -> End:
    """Taken out of the file for a while, and put back as it stood there, with our weight in it."""
    name = world.idle_leaf(rng)
    found = edits.leaf_element(name).search(world.file.read()) if name else None
    theirs = edits.leaf_element(name).search(world.pristine) if name else None
    if f"root.{name}" not in edits.read(world.pristine):
        return False  # below another queue: put back elsewhere it were another one
    if found is None or theirs is None or world.broken or world.agenda.now_s < world.lease_lost_until_s:
        return False
    before, wrote = found[0].strip(), theirs[0].strip()
    world.edit(lambda data: edits.leaf_element(name).sub(b"", data))

    def end() -> None:
        # After a guard's release the administrator wants his own weight there.
        world.file.put(edits.add(world.file.read(), wrote if world.released else before))
        world.pristine = edits.add(world.pristine, wrote)

    out_s = world.periods(rng, 2.5, 6)
    world.foreign(out_s)
    return out_s, lambda: world.when_whole(end)


@kind("limit-changed")
def _limit(world: World, rng: random.Random) -> End:
    words = world.words
    leaves = [q.path for q in words.read(world.pristine).values() if q.leaf and dict(q.rest).get(words.LIMIT)]
    if not leaves:
        return False
    name, limit = rng.choice(leaves).rpartition(".")[2], rng.randint(50, 90)
    return world.edit(lambda data: words.set_limit(data, name, limit))


@kind("weight-foreign")
def _weight(world: World, rng: random.Random) -> End:
    """The administrator writes a weight where the controller's stands: it is an entitlement from then on."""
    owned = world.owned_leaves()
    if not owned or world.broken or world.released or world.agenda.now_s < world.lease_lost_until_s:
        return False
    world.foreign(0.0)
    name, weight = rng.choice(owned).rpartition(".")[2], rng.choice(("7", "0.5", "123.0"))
    if world.words.set_weight(world.pristine, name, weight) == world.pristine:
        return False  # he gave it none, or a percentage, which cannot be changed alone
    return world.edit(lambda data: world.words.set_weight(data, name, weight))


@kind("store-changed-in-a-look")
def _store_changed(world: World, rng: random.Random) -> End:
    """Somebody changes a capacity between a controller's answers, before or after its own call."""
    world.wire.after_pages(rng.randint(1, 8), lambda: world.in_a_look(lambda: _weight(world, rng)))
    return None


@kind("root-element-dropped")
def _root(world: World, rng: random.Random) -> End:
    """Somebody's editor drops the element around all queues."""
    data = world.file.read()
    if b'name="root"' not in data or world.broken:
        return False
    world.checks.root_dropped = True
    # What a controller has written for the root goes with it.
    data = re.sub(rb'<queue name="root">(?:\s*<(\w+)>[^<]*</\1>)*', b"", data, count=1)
    before, _, after = data.rpartition(b"</queue>")
    return world.break_file(rng, before.rstrip() + b"\n" + after.lstrip(b"\n"))


@kind("user-comes")
def _user(world: World, rng: random.Random) -> End:
    parent = "root.users" if "root.users" in world.active.queues else "root"
    path = f"{parent}.user{rng.randrange(3)}"
    if path in world.cluster.ad_hoc:
        return False
    world.ad_hoc_seen = True
    return submitted_to(world, rng, path)


def submitted_to(world: World, rng: random.Random, path: str) -> End:
    """An application makes this queue, which goes when nothing has run in it for a while."""
    world.cluster.ad_hoc.append(path)
    world.cluster.submit(path)

    def goes() -> None:
        if any(app.queue == path for app in world.cluster.apps.values()):
            world.agenda.after(world.plan.settings.period_s, goes)
        elif path in world.cluster.ad_hoc:
            world.cluster.ad_hoc.remove(path)

    world.agenda.after(world.periods(rng, 8, 20), goes)
    return None


@kind("lull")
def _lull(world: World, rng: random.Random) -> End:
    """Nothing runs for a while; more often than not the RM's list is then not even an empty one, or it had none."""
    world.cluster.arriving = False
    for app in list(world.cluster.apps.values()):
        world.cluster.finish(app)
    if rng.random() < 0.7 and world.checks.may_be_lied_to():
        name, ticks = rng.choice(("no-apps", "empty-object")), rng.randint(1, 3)
        later_s = world.periods(rng, 1, 4)
        world.agenda.after(later_s, lambda: world.wire.faults.append(AnswerFault(name, "apps", ticks, rng)))

    def end() -> None:
        world.cluster.arriving = True

    return world.periods(rng, 3, 8), end


@kind("burst")
def _burst(world: World, rng: random.Random) -> End:
    if leaves := world.cluster.leaves():
        queue = rng.choice(leaves)
        for _ in range(rng.randint(2, 6)):
            world.cluster.submit(queue)
    return None


@kind("apps-refused")
def _refused(world: World, rng: random.Random) -> End:
    """Somebody submits what no queue takes, more of it than a guard lets pass."""
    if not (leaves := world.cluster.leaves()):
        return False
    queue = rng.choice(leaves)
    for _ in range(rng.choice((1, 3, 5))):
        world.cluster.refuse(queue)
    return None


@kind("told-to-go-on")
def _told_to_go_on(world: World, rng: random.Random) -> End:
    """After a guard's release."""
    return None if world.some(rng).told_to_go_on() else False


@kind("node-lost")
def _node(world: World, rng: random.Random) -> End:
    nodes = [n for n, alive in enumerate(world.cluster.alive) if alive]
    if len(nodes) < 2:
        return False
    node = rng.choice(nodes)
    world.cluster.lose_node(node)
    return world.periods(rng, 1, 10), lambda: world.cluster.node_back(node)
