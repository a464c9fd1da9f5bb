"""The second to tenth regime, of seeds from `SECOND` to `TENTH` on: what people and machines do beside faults.

Earlier seeds draw none of it, so that they stay the histories that they were. Here are the plans, and the kinds of
events: the administrator edits groups of queues so that their shares still go together, puts back an older copy of the
file, another cluster's ResourceManager answers behind the address, a controller starts with a wrong clock. The third
has policies that write minimum shares, queues that are moved, and releases while another cluster's RM answers. The
fourth has Capacity Schedulers only, with absolute resources, and with a parent whose queues are made when somebody
submits to them. The fifth has few and long containers, nothing that lies, and RMs that begin anew, whose nodes come
back late: what accounts lack there is not hidden by what nobody can tell. The sixth looks closer still: while an RM
begins anew nothing new comes, so that next to nothing is unknown; or figures of ended applications fall for long. The
seventh has Capacity Schedulers whose preemption an administrator switches on and off: with a restart of their RM.
The eighth has preemption that kills, and a budget for it. The ninth has containers of an hour, and a look each minute.
The tenth has what the second has on the Capacity Scheduler's file, whose administrator takes queues off their parents'
lists, leaves their properties where they are, and may list the queues again later.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from harness.control.guards import Guards
from harness.control.settings import ControlSettings
from tests.control.soak import capacities
from tests.control.soak.alien import alien
from tests.control.soak.faults import submitted_to
from tests.control.soak.lost import FIGURE_S
from tests.control.soak.schedule import KINDS, End, kind
from tests.control.soak.violated import Violated
from tests.control.soak.wire import AnswerFault

if TYPE_CHECKING:
    from tests.control.soak.process import Plan
    from tests.control.soak.world import World

#: The first seed of the second regime.
SECOND = 1_000_000
#: The first seed of the third, which has all of the second.
THIRD = 2_000_000
#: The first seed of the fourth, which has all of the third.
FOURTH = 3_000_000
#: The first seed of the fifth, which has nothing of the second to fourth.
FIFTH = 4_000_000
#: The first seed of the sixth, whose plans are those of the fifth.
SIXTH = 5_000_000
#: The first seed of the seventh, which has nothing of the second to sixth.
SEVENTH = 6_000_000
#: The first seed of the eighth, which has all of the seventh.
EIGHTH = 7_000_000
#: The first seed of the ninth, which has all of the eighth.
NINTH = 8_000_000
#: The first seed of the tenth, which has all of the second, and nothing of the others.
TENTH = 9_000_000
#: Policies that write minimum shares.
MIN_SHARES = ("fawkes-tt", "fawkes-ru")
_DAY_S = 86_400.0
#: Clocks that are wrong at a start.
_WRONG_S = (-3650 * _DAY_S, -30 * _DAY_S, 30 * _DAY_S, 3650 * _DAY_S)


def planned(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the second regime: every attribute that a policy may own, memories that fade, more percentages."""
    policy, sets = plan.policy, dict(plan.sets)
    if not plan.capacity:
        match rng.randrange(6):
            case 0:
                policy, sets = "ltrf", {**(sets if policy == "ltrf" else {}), "resource": "dominant"}
            case 1:
                policy, sets = "drf", {}
            case 2:
                policy, sets = "static", {}
    elif rng.random() < 0.5:
        plan = replace(plan, capacity="percent")
    if policy in ("ltrf", "hltrf") and rng.random() < 0.5:
        sets["half_life"] = rng.choice(("3600", "86400"))
    return replace(plan, policy=policy, sets=sets, second=True)


def planned_third(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the third regime: half of them write minimum shares."""
    if not plan.capacity and rng.random() < 0.5:
        plan = replace(plan, policy=rng.choice(MIN_SHARES), sets={})
    return replace(plan, third=True)


def planned_fourth(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the fourth regime: half have absolute resources, most others a parent with auto-created queues."""
    policy, sets = (plan.policy, plan.sets) if plan.capacity else (rng.choice(("ltrf", "ltrf", "hltrf")), {})
    store = rng.random() < 0.3
    settings = replace(plan.settings, refresh="rpc", ad_hoc="scale", lease_s=0.0 if store else plan.settings.lease_s)
    capacity: Literal["weight", "percent", "absolute"] = rng.choice(("absolute", "absolute", "percent", "weight"))
    return replace(
        plan,
        policy=policy,
        sets=sets,
        settings=settings,
        capacity=capacity,
        store=store,
        spare=plan.spare and not store,
        fourth=True,
        creates=capacity != "absolute" and rng.random() < 0.8,
    )


def planned_fifth(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the fifth regime: a Fair Scheduler, nodes of which each has few containers, and no guards."""
    settings = replace(
        plan.settings,
        period_s=rng.choice((2.0, 5.0, 10.0)),
        full_look_every_s=60.0,
        lease_s=0.0,
        guards=Guards(),
    )
    return replace(
        plan,
        settings=settings,
        capacity="",
        store=False,
        spare=False,
        shadow=False,
        nodes=4,
        light=True,
        tasks=rng.choice((3.0, 8.0)),
        fifth=True,
    )


def planned_sixth(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the sixth regime: ended applications are looked at again before long."""
    settings = replace(plan.settings, full_look_every_s=rng.choice((10.0, 30.0)))
    return replace(plan, settings=settings, sixth=True)


def planned_seventh(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the seventh regime: a policy that pays debts, as far as it likes, where much is in use."""
    store = rng.random() < 0.3
    settings = replace(
        plan.settings,
        mode=rng.choice(("full", "full", "bounded")),
        refresh="rpc",
        ad_hoc="scale",
        lease_s=0.0 if store else plan.settings.lease_s,
        guards=Guards(),
    )
    plan = replace(
        plan,
        policy="ltrf",
        sets={"horizon_s": rng.choice(("100", "600"))},
        settings=settings,
        capacity=rng.choice(("weight", "percent")),
        store=store,
        spare=plan.spare and not store,
        shadow=False,
        nodes=4,
        light=False,
        seventh=True,
        preempts=rng.random() < 0.5,
    )
    return replace(plan, settings=replace(settings, write_threshold=rng.choice((0.0, 0.0, 0.2))))


def planned_eighth(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the eighth regime: preemption kills, within a budget, in histories of an hour or more."""
    settings = replace(
        plan.settings,
        period_s=rng.choice((15.0, 30.0, 60.0)),
        preemption_budget_mb_s=rng.choice((0.0, 5e4, 1e5, 3e5)),
        write_threshold=0.0,
    )
    if settings.lease_s:
        settings = replace(settings, lease_s=3.0 * settings.period_s)
    sets = {"horizon_s": rng.choice(("100", "600"))}
    return replace(plan, settings=settings, sets=sets, tasks=rng.choice((1.0, 3.0)), eighth=True, preempts=True)


def planned_ninth(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the ninth regime: what an RM forgets of a container, or preemption kills, is the work of an hour."""
    settings = replace(
        plan.settings,
        period_s=60.0,
        lease_s=180.0 if plan.settings.lease_s else 0.0,
        preemption_budget_mb_s=rng.choice((1e5, 3e5, 3e6)),
    )
    return replace(plan, settings=settings, tasks=10.0)


def planned_tenth(plan: Plan, rng: random.Random) -> Plan:
    """A plan of the tenth regime: a Capacity Scheduler's file with queues enough that some can be taken off a list."""
    settings = replace(plan.settings, refresh="rpc", ad_hoc="scale")
    capacity = rng.choice(("weight", "percent"))
    return replace(plan, policy="ltrf", sets={}, settings=settings, capacity=capacity, store=False, tenth=True)


# --- the administrator ---


@kind("queue-delisted", tenth=True)
def _delisted(world: World, rng: random.Random) -> End:
    """The administrator takes a queue off its parent's list, and leaves its properties in the file."""
    idle = world.idle_leaf(rng)
    if world.broken or world.agenda.now_s < world.lease_lost_until_s or not idle:
        return False
    world.foreign(0.0)
    change, path = capacities.delist(rng, world.pristine, idle)
    world.delisted.append(path)
    return world.edit(change)


@kind("queue-relisted", tenth=True)
def _relisted(world: World, rng: random.Random) -> End:
    """The administrator lists a queue again, as its properties lie there."""
    if world.broken or world.agenda.now_s < world.lease_lost_until_s or not world.delisted:
        return False
    path = rng.choice(world.delisted)
    change = capacities.relist(world.pristine, path)
    if change is None:
        return False
    world.foreign(0.0)
    world.delisted.remove(path)
    return world.edit(change)


@kind("queues-edited", second=True)
def _edited(world: World, rng: random.Random) -> End:
    """The administrator changes a group of queues, in the file as it lies there or in his own copy of it."""
    if world.broken or world.agenda.now_s < world.lease_lost_until_s:
        return False
    idle = world.idle_leaf(rng)
    world.new_queues += 1
    change = world.words.regroup(rng, world.pristine, idle, f"new{world.new_queues}")
    if change is None:
        return False
    world.foreign(0.0)
    own_copy = rng.random() < 0.5 and not world.plan.store
    if not own_copy:
        return world.edit(change)
    world.pristine = change(world.pristine)
    world.put(world.pristine)
    world.changed_in_tick = True
    return None


@kind("file-own-copy", second=True)
def _own_copy(world: World, _rng: random.Random) -> End:
    """The administrator puts his own file there, which he has not changed."""
    if world.broken or world.agenda.now_s < world.lease_lost_until_s:
        return False
    world.foreign(0.0)
    world.put(world.pristine)
    world.changed_in_tick = True
    return None


@kind("file-older", second=True)
def _older_file(world: World, rng: random.Random) -> End:
    """Somebody puts back the file as a controller wrote it a while ago."""
    if world.broken or world.agenda.now_s < world.lease_lost_until_s:
        return False
    # Of the queues that there are now: an older copy with others is an edit of queues.
    versions = [data for data in world.versions if not world.words.only_owned_differ(data, world.pristine)]
    if not versions:
        return False
    if world.released or any(process.gave_back for process in world.processes):
        return False
    world.foreign(0.0)
    world.put(rng.choice(versions))
    world.older_seen = True
    world.changed_in_tick = True
    return None


@kind("queue-moved", third=True)
def _moved(world: World, rng: random.Random) -> End:
    """The administrator moves a leaf below another parent, in his own copy of the file."""
    if world.broken or world.agenda.now_s < world.lease_lost_until_s:
        return False
    name, queues = world.idle_leaf(rng), world.words.read(world.pristine)
    if not name:
        return False
    parent = next(queue.parent for queue in queues.values() if queue.path.endswith(f".{name}"))
    others = sorted({queue.parent for queue in queues.values() if queue.parent.count(".") == 1} - {parent})
    if not others:
        return False
    world.foreign(0.0)
    world.pristine = world.words.move(world.pristine, name, rng.choice(others).rpartition(".")[2])
    world.put(world.pristine)
    world.changed_in_tick = True
    return None


@kind("preemption-switched", seventh=True)
def _preemption_switched(world: World, rng: random.Random) -> End:
    """The administrator switches the scheduler's preemption on or off, and starts the RM again for it."""
    if not world.active.up:
        return False
    world.cluster.preempts = not world.cluster.preempts
    if world.preempting is not None:
        world.preempting.just_switched_on = world.cluster.preempts
    return world.restart(rng)


# --- users ---


@kind("queue-created", fourth=True)
def _created(world: World, rng: random.Random) -> End:
    """A user submits to a queue that does not exist yet, below the parent that creates queues."""
    parent = next(path for path in world.words.read(world.pristine) if path.endswith(f".{capacities.CREATING}"))
    path = f"{parent}.user{rng.randrange(3)}"
    if path in world.cluster.ad_hoc or parent not in world.active.queues:
        return False
    return submitted_to(world, rng, path)


# --- the sixth regime ---


@kind("final-figures-fall", sixth=True)
def _final_figures_fall(world: World, rng: random.Random) -> End:
    """The RM shows too little of applications that have ended, for longer than any other figure may be wrong."""
    if world.wire.faults or world.cluster.paused:
        return False
    fault = AnswerFault("final-fallen", "apps", 10**6, rng)
    world.wire.faults.append(fault)

    def end() -> None:
        if fault in world.wire.faults:
            world.wire.faults.remove(fault)

    return rng.uniform(20.0, 90.0), end


@kind("rm-restarts-in-quiet", sixth=True)
def _restarts_in_quiet(world: World, rng: random.Random) -> End:
    """An RM begins anew while nothing comes, once: whatever runs then, all have looked at before."""
    cluster, agenda, lost = world.cluster, world.agenda, world.lost
    if cluster.paused or not world.active.up or lost.any():
        return False
    cluster.paused, paused_s = True, agenda.now_s
    begins: Callable[[], None] | None = None
    over = False

    def resume() -> None:
        if lost.window is not None:
            agenda.after(1.0, resume)
            return
        cluster.paused = False
        cluster.assign()

    def restart() -> None:
        nonlocal begins
        if over:
            return
        wanted = [p.name for p in world.processes if p.wanted]
        if min((lost.looked_s.get(name, 0.0) for name in wanted), default=0.0) < paused_s + FIGURE_S:
            agenda.after(0.5, restart)
            return
        ended = world.restart(rng)
        if isinstance(ended, tuple):
            begins = ended[1]
            agenda.after(ended[0], end)

    def end() -> None:
        nonlocal over
        if over:
            return
        over = True
        if begins is not None:
            begins()
        resume()

    agenda.after(FIGURE_S, restart)
    return world.periods(rng, 20, 25), end


# --- machines ---


@kind("rm-of-another-cluster", second=True)
def _alien(world: World, rng: random.Random) -> End:
    """Another cluster's ResourceManager answers at the address."""
    begun = [process for process in world.processes if process.running]
    # In the midst of a look nobody could tell, nor one that has not looked yet.
    if world.wire.alien is not None or any(process.ticking or not process.looked for process in begun):
        return False
    world.wire.alien = alien(world.agenda, rng, capacity=bool(world.plan.capacity))
    return world.periods(rng, 1, 6), functools.partial(_known_again, world, lambda: None)


def _known_again(world: World, then: Callable[[], object]) -> None:
    """The cluster's own ResourceManagers answer again, between two looks."""
    if any(process.ticking for process in world.processes):
        world.agenda.after(0.5, lambda: _known_again(world, then))
        return
    world.wire.alien = None
    then()


@kind("released-beside-another", third=True)
def _released_beside(world: World, rng: random.Random) -> End:
    """A controller is stopped to release while another cluster's ResourceManager answers, and begun again later."""
    begun = [process for process in world.processes if process.running]
    if world.wire.alien is not None or any(process.ticking or not process.looked for process in begun):
        return False
    process = world.some(rng)
    if not process.running or world.intruded or world.broken:
        return False
    world.wire.alien = alien(world.agenda, rng, capacity=bool(world.plan.capacity))
    gave_back, words = process.gave_back, process.end("release")
    world.note(f"{process.name}: {words}")
    if "are in force" in words:
        raise Violated(f"{process.name} was ended beside another cluster's ResourceManager, and says: {words}")
    if world.plan.store and "another cluster's" in words:
        process.gave_back = gave_back  # its own store could not be reached
    return world.periods(rng, 1, 4), functools.partial(_known_again, world, process.begin)


@kind("clock-wrong-at-start", second=True)
def _wrong_clock(world: World, rng: random.Random) -> End:
    """A controller is started with its machine's clock far off; somebody sets the clock later."""
    process = world.some(rng)
    if process.ticking or not process.running or process.clock.jumped_s:
        return False
    process.end(rng.choice(("hold", "hold", "release")) if not world.intruded else "hold")
    process.clock.jumped_s = rng.choice(_WRONG_S)
    world.agenda.after(world.periods(rng, 0.1, 4), process.begin)

    def end() -> None:
        process.clock.jumped_s = 0.0

    return world.periods(rng, 6, 20), end


@kind("mode-changed", second=True)
def _mode(world: World, rng: random.Random) -> End:
    """A controller is stopped or killed, and started again in another mode, and in its own later."""
    process = world.some(rng)
    if process.ticking or not process.running or process.settings.mode == "shadow" or world.intruded:
        return False
    if process.released or world.broken or world.wire.alien is not None or process.mode_changes:
        return False
    process.mode_changes = True
    own, mode = process.settings, rng.choice(("bounded", "full", "shadow"))
    ended = False

    def begin(settings: ControlSettings) -> None:
        # Its supervisor may have begun it again meanwhile, in its own mode.
        if process.ticking:
            world.agenda.after(0.5, functools.partial(begin, settings))
            return
        if process.running:
            process.end("hold")
        process.settings = settings
        process.begin()

    if mode == "shadow":
        process.left_over = process.controller.holds
        process.down_s = 1e9
        process.kill()
    else:
        process.end("hold")

    def change() -> None:
        # A round may end before: then its own mode is the last one in which it was begun.
        if not ended:
            begin(replace(own, mode=mode))

    world.agenda.after(world.periods(rng, 0.1, 3), change)

    def back() -> None:
        nonlocal ended
        ended = True
        if process.ticking:
            # After a whole period it would be ticking again, and for ever (seed 1000262).
            world.agenda.after(0.5, back)
            return
        process.mode_changes = False
        # A shadow that ends gives back what a killed run had left (seed 3000371).
        process.end("hold")
        process.left_over = False
        begin(own)

    return world.periods(rng, 5, 15), back


@kind("signal", second=True)
def _signal(world: World, rng: random.Random) -> End:
    """The system sends a controller a signal, and its supervisor starts it again where that ended it."""
    process = world.some(rng)
    if process.ticking or not process.running or world.intruded or world.wire.alien is not None:
        return False
    process.signalled(rng.choice(("HUP", "HUP", "USR1", "USR2", "QUIT", "TERM", "INT", "KILL")))
    world.agenda.after(world.periods(rng, 0.1, 4), process.begin)
    return None


@kind("ledger-deleted", second=True)
def _ledger_deleted(world: World, rng: random.Random) -> End:
    """Somebody deletes the ledger under a controller that is running; it is there again when that begins again."""
    process = world.some(rng)
    if process.ticking or not process.running or process.deleted_s is not None:
        return False
    process.delete_ledger()
    return world.periods(rng, 2, 6), process.undelete_ledger


@kind("ledger-restored", second=True)
def _ledger_restored(world: World, rng: random.Random) -> End:
    """A controller is stopped, and begins again with an older copy of its ledger."""
    process = world.some(rng)
    if process.ticking or not process.running or process.ledger_error or not process.looked:
        return False
    if process.deleted_s is not None:
        return False  # there is nothing to copy
    copy, deaths = process.backed_up(), process.deaths
    after_s, whole, cut = world.periods(rng, 2, 20), rng.random() < 0.5, rng.random() < 0.5

    def named() -> frozenset[str]:
        return frozenset(getattr(process.controller.actuator, "named", ()))

    before, held = named(), world.words.entitlements(world.pristine).keys()
    if rng.random() < 0.5 and world.plan.capacity in ("", "weight"):
        # A queue that comes in between is not in the copy.
        world.agenda.after(0.3 * after_s, lambda: KINDS["queue-added"](world, rng) and None)

    def restore() -> None:
        if process.deaths != deaths or not process.running:
            return
        if process.ticking:
            world.agenda.after(0.5, restore)
            return
        new = named()
        process.end("hold")
        # Without its lock file only the lease can tell that it is a copy.
        told = world.lease_path.exists() and world.agenda.now_s >= world.lease_lost_until_s
        # With a lock file that tells no more than that it is one, a round weight that was written since (half of a
        # round sum) cannot be told from a person's, nor a queue that a controller has named since.
        alike = (world.plan.fourth and world.plan.capacity == "weight") or not (told or new <= before)
        # Nor can it be told, without a lease, what an administrator gave to a queue that came since and that the copy
        # lacks: the controller asks for it by name (seeds 1000159, 1000212 and 1000229).
        came = world.words.entitlements(world.pristine).keys() - held
        alike |= bool(came) and not told
        process.restore_ledger(copy, whole=whole and told, cut=cut and not alike)
        world.checks.restored(process)
        process.begin()

    return after_s, restore
