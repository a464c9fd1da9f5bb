"""When the faults of a round have ended: all that lasts is healed, calm, and at last wound up and given back."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from harness.control.clocks import CLOCK_TOLERANCE_S
from tests.control.soak.cluster import NODE_MB
from tests.control.soak.process import Process
from tests.control.soak.violated import Violated

if TYPE_CHECKING:
    from tests.control.soak.world import World


def heal(world: World) -> None:
    """All faults end."""
    if world.wire.alien is not None:
        _let_ticks_end(world)  # in the midst of a look nobody could tell
    for number in list(world.endings):
        world.end_fault(number)
    world.wire.faults.clear()
    world.wire.alien = None
    world.poll_misses = 0
    for process in world.processes:
        process.disk.kill_in = None
        process.clock.drift(1.0)
        if abs(process.clock.jumped_s) > CLOCK_TOLERANCE_S:
            process.clock.jumped_s = 0.0  # somebody sets it: until then a controller that begins counts nothing
        # One stays released to the end, another is told to go on.
        if random.Random(f"{world.seed} {process.name} {world.agenda.now_s}").random() < 0.5:
            process.told_to_go_on()


def calm(world: World) -> None:
    """Two periods, from when ticks that were going on, late loads and leases have ended."""
    settings = world.plan.settings
    world.note("calm")
    wait_s = 2.2 * settings.period_s + 25.0 + settings.verify_every_s
    if settings.lease_s:
        wait_s += 1.2 * settings.lease_s + settings.period_s
    if settings.refresh == "poll":
        wait_s += 80.0
    deadline_s = world.agenda.now_s + 400.0
    while world.agenda.now_s < deadline_s and any(p.ticking or (p.wanted and not p.running) for p in world.processes):
        world.agenda.run_until(world.agenda.now_s + 1.0)
    world.agenda.run_until(world.agenda.now_s + wait_s)
    warned = {p.name: p.warnings for p in world.processes}
    world.agenda.run_until(world.agenda.now_s + 6 * settings.period_s)
    _let_ticks_end(world)
    for process in world.processes:
        # An alarm that lasts is a line in every five minutes.
        lasting = len(world.last[process.name].alarms) if process.name in world.last else 0
        most = 2 + lasting * (1 + int(6 * settings.period_s / 290.0))
        if process.warnings - warned[process.name] > most:
            text = f"{process.warnings - warned[process.name]} warnings in six quiet periods"
            raise Violated(f"all is well, and {process.name} writes {text}: {world.last[process.name].alarms}")
    _settled(world)
    world.ending.quiet(world.last)


def _let_ticks_end(world: World) -> None:
    """Until no controller is in the middle of a period."""
    while any(p.ticking for p in world.processes):
        world.agenda.run_until(world.agenda.now_s + 0.01)


def _settled(world: World) -> None:
    """With a moving workload weights move too: looked at is a moment at which none was just being written."""
    for _ in range(400):
        holder = next((p for p in world.processes if p.running and p.controller.holds), None)
        poll = world.plan.settings.refresh == "poll"
        if holder is None or not poll:
            return
        if world.active.loaded_mark == world.file.mark and holder.controller.core.written is not None:
            return
        world.agenda.run_until(world.agenda.now_s + 1.0)
        _let_ticks_end(world)


def wind_up(world: World) -> None:
    """All applications end, accounts are held against the truth, and the file is given back."""
    period_s = world.plan.settings.period_s
    world.note("winding up")
    world.cluster.arriving = False
    held_mb = sum(app.held[0] for app in world.cluster.apps.values())
    for app in list(world.cluster.apps.values()):
        world.cluster.finish(app)
    world.most_assumed_mb_s = max(held_mb, NODE_MB) * (6.0 + 3 * period_s)
    end_s = world.agenda.now_s + 900.0 + 4 * period_s
    shown_s = max((app.shown_ended_s for app in world.cluster.ended[-60:]), default=0.0)
    world.agenda.run_until(max(shown_s, world.agenda.now_s) + 2.2 * period_s)
    while world.agenda.now_s < end_s and any(_waits(world, p, shown_s) for p in world.processes):
        world.agenda.run_until(world.agenda.now_s + period_s)
    _let_ticks_end(world)
    world.lost.close()
    world.ending.over()
    last = _release(world)
    # What the administrator writes now is what counts from now on.
    world.pristine = world.words.all_changed(world.pristine)
    world.put(world.pristine)
    if last is None:
        return
    last.wanted = True
    last.begin()
    world.agenda.run_until(world.agenda.now_s + 3.2 * period_s)
    _let_ticks_end(world)
    if last.running:
        world.ending.entitled(last)
    _release(world)


def _waits(world: World, process: Process, since_s: float) -> bool:
    """Whether a controller has not yet asked for applications since then: it asks less often after slow answers."""
    return process.running and world.lost.looked_s.get(process.name, 0.0) <= since_s


def _release(world: World) -> Process | None:
    """Stops all, the holder last; who has given the file back."""
    running = [p for p in world.processes if p.running]
    words = ""
    for process in sorted(running, key=lambda p: p.controller.holds):
        process.wanted = False
        words = process.end("release" if process.controller.holds else "hold")
        world.note(f"{process.name}: {words}")
    if running:
        world.ending.released(words)
        world.agenda.run_until(world.agenda.now_s + 30.0)
        return process
    return None
