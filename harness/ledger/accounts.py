"""What each leaf has consumed by a ResourceManager's own integrals, application by application. Pure arithmetic.

The RM shows for every application that it retains ``memorySeconds`` and ``vcoreSeconds`` (Hadoop 3.4.2: RMAppMetrics).
What ended is exact in them, what runs is computed anew at most every `CACHE_S`. So the figure of an application

- that has moved since the last look is taken as it is;
- that has not is assumed to grow by what the application holds, until it moves (no longer than it can stand still);
- that fell, because the RM began anew and recovers its applications, is a new base: what was counted stays, and what
  the application used meanwhile is estimated by what it holds when its containers are back; if it has ended by then, by
  what it held before;
- that rose by more than the cluster can have given since is refused, and `RmAccounts.refused` says so. One that stays
  so is a new base; what the application used meanwhile is estimated by what it holds.

An application that was not there at the last look counts whole when it appears, if it has been started since. One that
is older, and that the last look did not show, has not run here as far as anybody knows (another cluster's
ResourceManager answers, or a list was wrong): it counts from then on.

An application that one list of all lacks is kept for `GONE_S`: a list may be wrong for a moment. A leaf's sum never
falls: what was assumed too much is made up by what the leaf uses next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.ledger.ledger import Usage
from harness.ledger.plausible import most_used, too_much
from harness.model.resources import UNBOUNDED, ZERO, Resource

#: SchedulerApplicationAttempt.MEM_AGGREGATE_ALLOCATION_CACHE_MSECS.
CACHE_S = 3.0
#: For so long after the RM began anew its nodes may still bring their containers back: as long as an RM waits for a
#: node that is silent (default of yarn.nm.liveness-monitor.expiry-interval-ms).
RECOVERY_S = 600.0
#: Nodes that an RM finds come back within so long; what a second one misses after that had ended before.
LATE_NODE_S = 120.0
#: A figure that stays below what it was for longer than this has fallen for good (a moment is a race in the RM).
FALLEN_S = 15.0
#: An application that appears may have been started so long before the last list: lists are not of one moment.
LIST_SLACK_S = 30.0
#: The same at the first look since the accounts were read from a store: clocks that differ by less are not noticed.
RESUMED_SLACK_S = 600.0
#: Who is missing in the lists of all applications for so long is gone.
GONE_S = 300.0


_NOTHING = Usage()
_UNKNOWN = Usage(math.inf, math.inf)


class AppObservation(NamedTuple):
    """What one look shows of an application: MiB-seconds, vcore-seconds, what it holds, whether it has ended."""

    app: str
    queue: str
    memory_mb_s: int
    vcore_s: int
    held: Resource
    final: bool
    #: How long ago it was started, by the RM's own clock (until its end, of one that has ended).
    age_s: float = math.inf


@dataclass(slots=True)
class AppAccount:
    """An application at the last look. ``moved_s``: when its figure was last taken into the sums."""

    queue: str
    memory_mb_s: int
    vcore_s: int
    moved_s: float
    held: Resource
    final: bool
    #: Since when its figure cannot be: it lies below the one that was counted, or too far above (None: it does not).
    fallen_s: float | None = None
    #: While it is being recovered: until when it had been counted when the RM began anew.
    lost_from_s: float | None = None
    #: And what it held then that has not come back (unbounded: nobody has looked before).
    lost_held: Resource = ZERO
    #: And by how much its figure lies below what has been counted of it (unknown: infinite).
    behind: Usage = _UNKNOWN
    #: Since when lists of all applications lack it (not kept in a store).
    missing_s: float | None = None
    #: When it was started, by the controller's clock (None: the RM does not say).
    started_s: float | None = None
    #: What of its present use was assumed at the last look, and how much its former queues were charged of what its
    #: figure has not shown yet (neither is kept in a store).
    assumed: Usage = field(default=_NOTHING, compare=False)
    ahead: Usage = field(default=_NOTHING, compare=False)


@dataclass(slots=True)
class QueueAccount:
    """A queue's sums: what figures have shown, and what has been reported (never falls)."""

    memory_mb_s: float = 0.0
    vcore_s: float = 0.0
    reported: Usage = _NOTHING


class RmAccounts:
    """Consumption of each leaf since the first look, from the RM's own figures.

    ``observe`` takes what a look showed; ``consumed`` is the answer. ``changed_apps`` and ``changed_queues`` name what
    a store has to keep since `saved` was last called.
    """

    def __init__(
        self,
        apps: Mapping[str, AppAccount] | None = None,
        queues: Mapping[str, QueueAccount] | None = None,
        *,
        looked_s: float | None = None,
    ) -> None:
        self.apps = dict(apps or {})
        self.queues = dict(queues or {})
        #: Time of the last look (None: none yet).
        self.looked_s = looked_s
        self.changed_apps: set[str] = set()
        self.changed_queues: set[str] = set()
        self.gone_apps: set[str] = set()
        #: Figures of the last look that were not taken: application -> why.
        self.refused: dict[str, str] = {}
        self._possible = UNBOUNDED
        self._recovering_until_s = -1.0
        #: Whether the RM began anew before this look, and its store may lack an application's end; whether it is
        #: another one than at the last look (or a controller only goes on from a store in the midst of a recovery).
        self._anew = self._began = False
        #: Whom a look has shown since the RM began anew: their figures cannot fall by that any more.
        self._since_anew: set[str] = set()
        self._reach_s = CACHE_S
        self._shown_s = looked_s
        #: Whether there was a list since the accounts were read from a store, and whether there was one before that.
        self._looked = self._looked_again = False
        #: Applications that lists have had, and that made no sense so far.
        self._passed_over: set[str] = set()
        #: Whether this is the first look since the accounts were read from a store: the clock may have been set since.
        self._again = False

    def skip(self, now_s: float) -> None:
        """A look that did not ask for applications: what they hold counts on."""
        if self._shown_s is not None:
            self._reach_s = CACHE_S + max(now_s - self._shown_s, 0.0)
            self.looked_s = now_s
            self._report(now_s)

    def observe(
        self,
        now_s: float,
        looks: Iterable[AppObservation],
        *,
        rm_began_anew: bool = False,
        capacity: Resource | None = None,
        rm_age_s: float = math.inf,
        passed_over: Iterable[str] = (),
    ) -> None:
        """Account for one look.

        Parameters
        ----------
        now_s : the controller's clock; never decreases.
        looks : the applications that were seen. Who is missing has not been looked at; `forget` says who is gone.
        rm_began_anew : whether another RM answers than at the last look, or the same after a restart.
        capacity : what the cluster can have held at most at any moment since the last look (None: not known).
        rm_age_s : how long ago the RM was started, by its own clock.
        passed_over : applications that this look showed without figures that make sense.
        """
        self.refused.clear()
        self._passed_over.update(passed_over)
        self._possible = UNBOUNDED if capacity is None else capacity
        first = self.looked_s is None
        self._again = not first and not self._looked
        self._looked_again = self._looked
        self._looked = True
        gap_s = 0.0 if self._shown_s is None else max(now_s - self._shown_s, 0.0)
        resumed = self._recovering_until_s < 0 and any(a.lost_from_s is not None for a in self.apps.values())
        self._anew, self._began = rm_began_anew or resumed, rm_began_anew
        if self._anew:
            self._recovering_until_s = now_s + RECOVERY_S
            self._since_anew.clear()
        elif first and rm_age_s < RECOVERY_S:
            self._recovering_until_s = now_s + RECOVERY_S - rm_age_s
        # How long ago the last look was nobody knows who has just begun: a clock may have been set forward since.
        self._reach_s = CACHE_S + (0.0 if self._again else gap_s)
        for look in looks:
            account = self.apps.get(look.app)
            changed = account is None or self._update(account, look, now_s)
            if account is None:
                self.apps[look.app] = self._new(look, now_s, first, rm_age_s)
            if changed:
                self.changed_apps.add(look.app)
            if now_s < self._recovering_until_s:
                self._since_anew.add(look.app)
        self.looked_s = self._shown_s = now_s
        self._report(now_s)

    def forget(self, listed: Iterable[str], now_s: float) -> None:
        """Of a look at *all* applications that the RM retains: who is missing in such looks for `GONE_S` is gone."""
        listed = set(listed)
        self._passed_over &= listed
        for app in set(self.apps) - listed:
            account = self.apps[app]
            if account.missing_s is None:
                account.missing_s = now_s
            if now_s - account.missing_s < GONE_S:
                continue
            del self.apps[app]
            if not account.final:
                # Its last seconds were never shown.
                self._charge(account, account.queue, *self._assumed(account, now_s))
            self.gone_apps.add(app)
            self._since_anew.discard(app)
            self.changed_apps.discard(app)

    def shift(self, seconds: float) -> None:
        """Move all times by so many seconds: the clock by which they were taken was wrong. Before the first look."""
        if self.looked_s is not None:
            self.looked_s += seconds
            self._shown_s = self.looked_s
        for app, account in self.apps.items():
            account.moved_s += seconds
            for name in ("fallen_s", "lost_from_s", "started_s", "missing_s"):
                moment = getattr(account, name)
                if moment is not None:
                    setattr(account, name, moment + seconds)
            self.changed_apps.add(app)

    def consumed(self) -> dict[str, Usage]:
        """Queue -> what its applications have used since the first look; cumulative, never falls."""
        return {queue: account.reported for queue, account in self.queues.items()}

    def saved(self) -> None:
        """What changed has been kept."""
        self.changed_apps.clear()
        self.changed_queues.clear()
        self.gone_apps.clear()

    # --- one application ---

    def _new(self, look: AppObservation, now_s: float, first: bool, rm_age_s: float) -> AppAccount:
        """What was used before the first look does not count; whoever comes later counts whole."""
        account = AppAccount(look.queue, look.memory_mb_s, look.vcore_s, now_s, look.held, look.final)
        account.started_s = _started_s(look, now_s)
        if first:
            if rm_age_s < RECOVERY_S and rm_age_s < look.age_s < math.inf and not look.final:
                # Nodes may still bring back what it holds, with all that this has used; how much nobody knows.
                account.lost_from_s, account.lost_held = now_s, UNBOUNDED
            return account
        if self.is_older(look, now_s):
            self.refused[look.app] = "it is older than the last look, which did not show it: it counts from now on"
            return account
        if self._too_much(look, look.memory_mb_s, look.vcore_s, look.age_s):
            account.memory_mb_s = account.vcore_s = 0
            account.fallen_s = now_s
        else:
            self._add(look.queue, look.memory_mb_s, look.vcore_s)
        return account

    def is_older(self, look: AppObservation, now_s: float) -> bool:
        """Whether an application that nobody knows was there at the last look already, which did not show it."""
        if look.app in self._passed_over or not math.isfinite(look.age_s):
            return False
        return not self.is_since_last_look(look.age_s, now_s)

    def is_since_last_look(self, age_s: float, now_s: float) -> bool:
        """Whether what is so old may have begun since the last look."""
        if self._shown_s is None:
            return True
        return age_s <= now_s - self._shown_s + (LIST_SLACK_S if self._looked_again else RESUMED_SLACK_S)

    def _too_much(self, look: AppObservation, memory: int, vcores: int, seconds: float) -> bool:
        """Whether an application cannot have used so much within so many seconds; if so, `refused` says it."""
        why = too_much(memory, vcores, seconds, self._possible)
        if why:
            self.refused[look.app] = why
        return bool(why)

    def _update(self, account: AppAccount, look: AppObservation, now_s: float) -> bool:
        """Bring one account up to a look; whether anything of it changed."""
        memory, vcores = look.memory_mb_s - account.memory_mb_s, look.vcore_s - account.vcore_s
        recovering = now_s < self._recovering_until_s
        before = (account.queue, account.held, account.final, account.fallen_s)
        account.missing_s = None
        if account.final and not look.final and not self._anew:
            return False  # who has ended does not run again: an old list shows it
        if account.queue != look.queue:
            self._move(account, look.queue)
        moved = False
        # While an RM is recovered a late node may bring all that an application has ever used.
        within_s = max(now_s - account.moved_s, look.age_s if self._again or recovering else 0.0)
        if memory < 0 or vcores < 0 or (self._began and self._lacks(account, look, now_s, memory)):
            moved = self._fell(account, look, now_s, recovering)
        elif self._too_much(look, memory, vcores, within_s):
            moved = self._cannot_be(account, look, now_s)
        elif memory > 0 or vcores > 0:
            self._moved(account, look, now_s, memory, vcores, recovering)
            moved = True
        else:
            account.fallen_s = None
        # A recovered application shows no containers until its nodes are back: what it held is needed then.
        if account.lost_from_s is None or look.final or not recovering:
            account.held = look.held
        account.final = look.final
        if moved and not look.final:
            account.started_s = _started_s(look, now_s)
        return moved or before != (account.queue, account.held, account.final, account.fallen_s)

    def _fell(self, account: AppAccount, look: AppObservation, now_s: float, recovering: bool) -> bool:
        if not recovering or look.app in self._since_anew:
            # The figure of an application that has ended is final: a lower one is wrong, however long it is shown, and
            # as a base it would let the true figure count a second time.
            return not account.final and self._cannot_be(account, look, now_s)
        end_s = _end_s(account, look, now_s)
        rose = Usage(look.memory_mb_s - account.memory_mb_s, look.vcore_s - account.vcore_s)
        beyond = rose if account.lost_from_s is None else _less(rose, account.behind)
        before, away_s = self._lost(account, end_s)
        account.lost_from_s = end_s - away_s
        account.lost_held, account.held = before, ZERO
        # Its node may be back already, and it itself have ended.
        back = before if look.final else _shown(look.memory_mb_s, look.vcore_s, away_s).within(before)
        back = back if look.final else back.within(look.held)
        used = _held_for(back, away_s)
        since = _NOTHING
        if any(used):
            memory, vcores = min(look.memory_mb_s, round(used[0])), min(look.vcore_s, round(used[1]))
            since = Usage(max(memory, beyond[0]), max(vcores, beyond[1]))
            self._charge(account, look.queue, *since)
            account.lost_held, account.held, account.moved_s = before - back, back, now_s
        account.behind = _less(since, beyond)
        account.memory_mb_s, account.vcore_s, account.fallen_s = look.memory_mb_s, look.vcore_s, None
        return True

    def _lacks(self, account: AppAccount, look: AppObservation, now_s: float, memory: int) -> bool:
        """Whether a figure lacks something though it did not fall: what went on has used more since than it rose."""
        went_on = account.held.within(look.held).memory_mb
        return not (account.final or look.final) and memory < went_on * (now_s - account.moved_s - CACHE_S)

    def _lost(self, account: AppAccount, now_s: float) -> tuple[Resource, float]:
        """What an application held when the RM began anew, and for how long that has not been counted at ``now_s``."""
        gap_s = now_s - account.moved_s
        if account.lost_from_s is None or now_s - account.lost_from_s > LATE_NODE_S:
            return account.held, gap_s
        # It began anew before all was back from the time before: one mean time for both parts.
        lost, before = account.lost_held, account.lost_held + account.held
        lost_for, held_for = _held_for(lost, now_s - account.lost_from_s), _held_for(account.held, gap_s)
        return before, (lost_for[0] + held_for[0]) / before.memory_mb if before.memory_mb else gap_s

    def _cannot_be(self, account: AppAccount, look: AppObservation, now_s: float) -> bool:
        """A figure that cannot be is not taken; one that stays so is a new base. Whether it is."""
        if account.fallen_s is None:
            account.fallen_s = now_s
        if now_s - account.fallen_s < FALLEN_S:
            return False
        self._charge(account, look.queue, *_held_for(look.held, now_s - account.moved_s))
        account.moved_s = now_s
        account.memory_mb_s, account.vcore_s, account.fallen_s = look.memory_mb_s, look.vcore_s, None
        return True

    def _moved(
        self, account: AppAccount, look: AppObservation, now_s: float, memory: float, vcores: float, recovering: bool
    ) -> None:
        if account.lost_held == UNBOUNDED and account.lost_from_s is not None and recovering:
            memory, vcores = self._since_first_look(account, look, now_s, memory, vcores)
            account.held = look.held
        elif account.lost_from_s is not None and recovering:
            end_s = _end_s(account, look, now_s)
            gap_s, away_s = end_s - account.moved_s, end_s - account.lost_from_s
            risen = (look.held - account.held).at_least(ZERO).within(account.lost_held)
            # What is seen again counts as back when the figure shows it too: the RM keeps a figure for a while.
            back = ZERO if look.final else _shown(memory, vcores, away_s).within(risen)
            possible = _held_for(account.held.at_least(look.held), gap_s + CACHE_S)
            since = _held_for(account.held, gap_s)
            rose = Usage(memory, vcores)
            if back == risen != ZERO:
                lost = _held_for(back, away_s)
                memory, vcores = min(memory, round(lost[0] + since[0])), min(vcores, round(lost[1] + since[1]))
            elif memory > possible[0] or vcores > possible[1]:
                # More than it can have used: containers came back that had ended (a node that was late), with all that
                # they used before. It need not have ended by what is shown: the RM may still save that it has.
                lost = _held_for(account.lost_held, away_s)
                memory, vcores = min(memory, round(lost[0] + since[0])), min(vcores, round(lost[1] + since[1]))
                if away_s > 0:
                    # What others of its nodes bring is counted when they do.
                    back = Resource(math.ceil(memory / away_s), math.ceil(vcores / away_s)).within(account.lost_held)
            else:
                back = ZERO
            # Whatever came back and has ended: what a figure has beyond all that was ever counted has been used since.
            beyond, most = _less(rose, account.behind), most_used(self._possible, away_s)
            if beyond[0] <= most[0] and beyond[1] <= most[1]:
                memory, vcores = max(memory, beyond[0]), max(vcores, beyond[1])
            account.behind = _less(account.behind, _less(rose, Usage(memory, vcores)))
            account.lost_held = (account.lost_held - back).at_least(ZERO)
            account.held = look.held if back == risen else (look.held - risen).at_least(ZERO)
        self._charge(account, look.queue, memory, vcores)
        account.memory_mb_s, account.vcore_s = look.memory_mb_s, look.vcore_s
        account.moved_s, account.fallen_s = now_s, None

    def _since_first_look(
        self, account: AppAccount, look: AppObservation, now_s: float, memory: float, vcores: float
    ) -> tuple[float, float]:
        """Return how much of a figure's rise an application has used since the first poll.

        The first poll found the RM being recovered: a node that registers late brings containers with all that they
        have used.
        """
        end_s = _end_s(account, look, now_s)
        gap_s, away_s = end_s - account.moved_s, end_s - (account.lost_from_s or 0.0)
        possible = _held_for(account.held.at_least(look.held), gap_s + CACHE_S)
        if memory <= possible[0] and vcores <= possible[1]:
            return memory, vcores
        # As if they had run for as long as their application: what they have used since is not less than that.
        since, part = _held_for(account.held, gap_s), min(away_s / max(look.age_s, 1.0), 1.0)
        return (
            min(memory, round(since[0] + max(memory - since[0], 0.0) * part)),
            min(vcores, round(since[1] + max(vcores - since[1], 0.0) * part)),
        )

    def _assumed(self, account: AppAccount, now_s: float) -> tuple[float, float]:
        """What an application has used since its figure moved, as far as the RM can have kept it to itself."""
        if account.final:
            return 0.0, 0.0
        until_s = now_s if account.missing_s is None else account.missing_s
        return _held_for(account.held, min(until_s - account.moved_s, self._reach_s))

    def _move(self, account: AppAccount, queue: str) -> None:
        """Charge what an application uses from now on to its new queue.

        What was assumed of it so far has been reported for the old queue and stays there; the new one is charged that
        much less of what the figure shows next.
        """
        self._add(account.queue, *account.assumed)
        account.ahead = Usage(*(sum(both) for both in zip(account.ahead, account.assumed, strict=True)))
        account.assumed, account.queue = _NOTHING, queue

    def _charge(self, account: AppAccount, queue: str, memory_mb_s: float, vcore_s: float) -> None:
        """Charge a queue what a figure of an application shows, less what its former queues were charged of that."""
        amounts = Usage(memory_mb_s, vcore_s)
        settled = Usage(*(min(both) for both in zip(account.ahead, amounts, strict=True)))
        account.ahead = _less(account.ahead, settled)
        self._add(queue, *_less(amounts, settled))

    def _add(self, queue: str, memory_mb_s: float, vcore_s: float) -> None:
        account = self.queues.setdefault(queue, QueueAccount())
        account.memory_mb_s += memory_mb_s
        account.vcore_s += vcore_s
        self.changed_queues.add(queue)

    def _report(self, now_s: float) -> None:
        assumed: dict[str, list[float]] = {}
        for app, account in self.apps.items():
            if account.final:
                account.assumed = _NOTHING
                continue
            if account.lost_from_s is not None and now_s >= self._recovering_until_s:
                account.lost_from_s, account.lost_held = None, ZERO
                self.changed_apps.add(app)
            memory, vcores = self._assumed(account, now_s)
            if account.ahead != _NOTHING:
                memory, vcores = max(memory - account.ahead[0], 0.0), max(vcores - account.ahead[1], 0.0)
            account.assumed = Usage(memory, vcores)
            if memory or vcores:
                sums = assumed.setdefault(account.queue, [0.0, 0.0])
                sums[0] += memory
                sums[1] += vcores
        for queue in assumed:
            self.queues.setdefault(queue, QueueAccount())
        for queue, sums_of in self.queues.items():
            more = assumed.get(queue, (0.0, 0.0))
            reported = Usage(
                max(sums_of.reported[0], sums_of.memory_mb_s + more[0]),
                max(sums_of.reported[1], sums_of.vcore_s + more[1]),
            )
            if reported != sums_of.reported:
                sums_of.reported = reported
                self.changed_queues.add(queue)


def _started_s(look: AppObservation, now_s: float) -> float | None:
    return now_s - look.age_s if math.isfinite(look.age_s) else None


def _end_s(account: AppAccount, look: AppObservation, now_s: float) -> float:
    """Until when an application can have used what a look shows: its end, if it has ended since the last one."""
    if account.started_s is None or not look.final or not math.isfinite(look.age_s):
        return now_s
    return min(max(account.started_s + look.age_s, account.moved_s), now_s)


def _less(this: Usage, that: Usage) -> Usage:
    return Usage(this[0] - that[0], this[1] - that[1])


def _shown(memory_mb_s: float, vcore_s: float, seconds: float) -> Resource:
    """At most so much has come back by a figure that rose so far: who ran for so long has brought all of it."""
    # A figure may be as old as that.
    seconds = max(seconds - CACHE_S, 1e-3)
    return Resource(math.ceil(memory_mb_s / seconds), math.ceil(vcore_s / seconds))


def _held_for(held: Resource, seconds: float) -> tuple[float, float]:
    seconds = max(seconds, 0.0)
    return held.memory_mb * seconds, held.vcores * seconds
