"""The usage of each leaf from a ResourceManager's own integrals, application by application. Pure arithmetic.

The RM shows ``memorySeconds`` and ``vcoreSeconds`` for every application that it retains (Hadoop 3.4.2: RMAppMetrics).
They are exact for ended containers; for running ones the RM recomputes them at most every `CACHE_S`. An application's
figure is handled as follows:

- A figure that has moved since the last poll is taken as it is.
- A figure that has not moved is assumed to grow by the resources that the application holds, until it moves, but for no
longer than it can stay unchanged.
- A figure that fell, because the RM restarted and recovers its applications, becomes a new base. Usage counted before
stays. The usage meanwhile is estimated from the held resources once the containers are back, or, if the application has
ended by then, from the resources that it held before the restart.
- A figure that rose by more than the cluster can have given is refused and listed in `RmAccounts.refused`. If it stays
that high, it becomes a new base, and the usage meanwhile is estimated from the held resources.
- Held resources that exceed the cluster are refused and listed, too. The application is assumed to hold what it held
before.

An application that the last poll did not show counts completely if it was started since then. An older application
counts only from now on, because it may not have run on this cluster: another cluster's ResourceManager may be
answering, or a list was wrong.

An application that is missing in a complete list is kept for `GONE_S`, because a single list may be wrong. A leaf's sum
never falls: an overestimate is offset against the leaf's next usage.
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
#: After an RM restart, nodes may report their containers for this long: the time after which an RM gives up a silent
#: node (default of yarn.nm.liveness-monitor.expiry-interval-ms).
RECOVERY_S = 600.0
#: Nodes that reach the RM re-register within this time. Containers that are still missing at a second restart had ended
#: before it.
LATE_NODE_S = 120.0
#: A figure that stays below an earlier one for longer than this has fallen for good (a shorter fall is a race in the
#: RM).
FALLEN_S = 15.0
#: A new application may have been started this long before the last list, because lists are not atomic.
LIST_SLACK_S = 30.0
#: `LIST_SLACK_S` at the first poll after the accounts were read from a store: smaller clock differences go unnoticed.
RESUMED_SLACK_S = 600.0
#: An application that is missing in complete lists for this long is gone.
GONE_S = 300.0


_NOTHING = Usage()
_UNKNOWN = Usage(math.inf, math.inf)


class AppObservation(NamedTuple):
    """One poll's view of an application: MiB-seconds, vcore-seconds, held resources, whether it has ended."""

    app: str
    queue: str
    memory_mb_s: int
    vcore_s: int
    held: Resource
    final: bool
    #: Time since its start by the RM's own clock (for an ended application: from its start to its end).
    age_s: float = math.inf


@dataclass(slots=True)
class AppAccount:
    """An application's account at the last poll. ``moved_s``: time when its figure was last added to the sums."""

    queue: str
    memory_mb_s: int
    vcore_s: int
    moved_s: float
    held: Resource
    final: bool
    #: Since when its figure has been impossible: below the counted one, or too far above (None: it is possible).
    fallen_s: float | None = None
    #: During recovery: the time up to which its usage had been counted when the RM restarted.
    lost_from_s: float | None = None
    #: During recovery: the resources that it held then and that have not reappeared (unbounded: there was no poll
    #: before the restart).
    lost_held: Resource = ZERO
    #: During recovery: the amount by which its figure lies below its counted usage (infinite: unknown).
    behind: Usage = _UNKNOWN
    #: Time since which complete lists lack the application (not stored).
    missing_s: float | None = None
    #: For how long, at that time, its figure could have stayed unchanged (not stored).
    missing_reach_s: float = field(default=math.inf, compare=False)
    #: Time of its start by the controller's clock (None: the RM does not show it).
    started_s: float | None = None
    #: The usage assumed at the last poll, and the part already charged to its former queues that its figure has not
    #: shown yet (neither is stored).
    assumed: Usage = field(default=_NOTHING, compare=False)
    ahead: Usage = field(default=_NOTHING, compare=False)


@dataclass(slots=True)
class QueueAccount:
    """A queue's sums: the usage that figures have shown, and the usage reported by `consumed`, which never falls."""

    memory_mb_s: float = 0.0
    vcore_s: float = 0.0
    reported: Usage = _NOTHING


class RmAccounts:
    """Usage of each leaf since the first poll, from the RM's own figures.

    ``observe`` takes a poll's figures; ``consumed`` returns the usage. ``changed_apps``, ``changed_queues`` and
    ``gone_apps`` name the accounts that changed since the last call of `saved`, which a store has to write.
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
        #: Time of the last poll (None: none yet).
        self.looked_s = looked_s
        self.changed_apps: set[str] = set()
        self.changed_queues: set[str] = set()
        self.gone_apps: set[str] = set()
        #: Figures of the last poll that were refused: application -> reason.
        self.refused: dict[str, str] = {}
        self._possible = UNBOUNDED
        self._recovering_until_s = -1.0
        #: `_began`: the RM has restarted, or another RM answers. `_anew`: `_began`, or the accounts were read from a
        #: store that was written during a recovery. The RM may then show an ended application as running, because its
        #: own store lacks the end.
        self._anew = self._began = False
        #: Applications shown since the RM restarted. Their figures cannot fall any more because of that restart.
        self._since_anew: set[str] = set()
        self._reach_s = CACHE_S
        self._shown_s = looked_s
        #: `_looked`: whether `observe` was called since the accounts were read from a store. `_looked_again`: whether
        #: it was called at least once before the present call.
        self._looked = self._looked_again = False
        #: Applications that lists contained, but so far only with invalid figures.
        self._passed_over: set[str] = set()
        #: Whether this is the first poll since the accounts were read from a store; the clock may have been set
        #: meanwhile.
        self._again = False

    def skip(self, now_s: float) -> None:
        """Account for a poll that did not fetch the applications: each is assumed to use the resources it holds."""
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
        """Account for one poll.

        Parameters
        ----------
        now_s : float
            Time on the controller's clock, seconds; never decreases.
        looks : Iterable[AppObservation]
            The listed applications. An application that is missing is left unchanged; `forget` removes applications.
        rm_began_anew : bool
            Whether the RM has restarted since the last poll or another RM answers.
        capacity : Resource or None
            Largest capacity that the cluster can have had since the last poll (None: unknown).
        rm_age_s : float
            Seconds since the RM was started, by its own clock.
        passed_over : Iterable[str]
            Applications that this poll listed with invalid figures.
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
        # After a restart of the controller, the time since the last poll is uncertain, because the clock may have been
        # set forward.
        self._reach_s = CACHE_S + (0.0 if self._again else gap_s)
        for look in looks:
            account = self.apps.get(look.app)
            if self._holds_too_much(look):
                look = look._replace(held=ZERO if account is None or look.final else account.held)
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
        """Process a complete list of applications: remove those that have been missing in such lists for `GONE_S`."""
        listed = set(listed)
        self._passed_over &= listed
        for app in set(self.apps) - listed:
            account = self.apps[app]
            if account.missing_s is None:
                account.missing_s, account.missing_reach_s = now_s, self._reach_s
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
        """Move all times by ``seconds``, after their clock was found to be wrong. Before the first poll only."""
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
        """Queue -> usage of its applications since the first poll; cumulative, never falls."""
        return {queue: account.reported for queue, account in self.queues.items()}

    def saved(self) -> None:
        """Record that all changes have been stored."""
        self.changed_apps.clear()
        self.changed_queues.clear()
        self.gone_apps.clear()

    # --- one application ---

    def _new(self, look: AppObservation, now_s: float, first: bool, rm_age_s: float) -> AppAccount:
        """Create an account.

        Usage before the first poll does not count. Later applications count completely, except those that are older
        than the last poll (`is_older`) or whose figure is impossible.
        """
        account = AppAccount(look.queue, look.memory_mb_s, look.vcore_s, now_s, look.held, look.final)
        account.started_s = _started_s(look, now_s)
        if first:
            if rm_age_s < RECOVERY_S and rm_age_s < look.age_s < math.inf and not look.final:
                # Nodes may still report containers of the application with an unknown amount of earlier usage.
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
        """Whether an unknown application was running at the last poll already, although the poll did not show it."""
        if look.app in self._passed_over or not math.isfinite(look.age_s):
            return False
        return not self.is_since_last_look(look.age_s, now_s)

    def is_since_last_look(self, age_s: float, now_s: float) -> bool:
        """Return whether something of this age may have begun since the last poll."""
        if self._shown_s is None:
            return True
        return age_s <= now_s - self._shown_s + (LIST_SLACK_S if self._looked_again else RESUMED_SLACK_S)

    def _too_much(self, look: AppObservation, memory: int, vcores: int, seconds: float) -> bool:
        """Return whether an application cannot have used this much in ``seconds``; the reason is added to `refused`."""
        why = too_much(memory, vcores, seconds, self._possible)
        if why:
            self.refused[look.app] = why
        return bool(why)

    def _holds_too_much(self, look: AppObservation) -> bool:
        """Return whether an application cannot hold this much; the reason is added to `refused`.

        As in `too_much`, containers may hold more vcores than the cluster has if only memory is scheduled.
        """
        held, most = look.held, self._possible
        if held.memory_mb <= most.memory_mb and held.vcores <= max(most.vcores, most.memory_mb):
            return False
        self.refused[look.app] = (
            f"it holds {held.memory_mb:,} MiB and {held.vcores:,} vcores, more than the cluster of "
            f"{most.memory_mb:,} MiB and {most.vcores:,} vcores"
        )
        return True

    def _update(self, account: AppAccount, look: AppObservation, now_s: float) -> bool:
        """Update one account from a poll; return whether anything changed."""
        memory, vcores = look.memory_mb_s - account.memory_mb_s, look.vcore_s - account.vcore_s
        recovering = now_s < self._recovering_until_s
        before = (account.queue, account.held, account.final, account.fallen_s)
        account.missing_s = None
        if account.final and not look.final and not self._anew:
            return False  # an ended application cannot run again: the list is old
        if account.queue != look.queue:
            self._move(account, look.queue)
        moved = False
        # During the recovery of an RM, a late node may report all that an application has ever used.
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
        # A recovered application shows no containers until its nodes are back. Keep the resources that it held before.
        if account.lost_from_s is None or look.final or not recovering:
            account.held = look.held
        account.final = look.final
        if moved and not look.final:
            account.started_s = _started_s(look, now_s)
        return moved or before != (account.queue, account.held, account.final, account.fallen_s)

    def _fell(self, account: AppAccount, look: AppObservation, now_s: float, recovering: bool) -> bool:
        if not recovering or look.app in self._since_anew:
            # The figure of an ended application is final, so a lower figure is wrong however long it is shown. If it
            # became the base, the true figure would be counted a second time.
            return not account.final and self._cannot_be(account, look, now_s)
        end_s = _end_s(account, look, now_s)
        rose = Usage(look.memory_mb_s - account.memory_mb_s, look.vcore_s - account.vcore_s)
        # What the figure lacks since an earlier restart, it lacks beside what this restart has taken from it.
        lacked = account.lost_from_s is not None or account.behind != _UNKNOWN
        beyond = _less(rose, account.behind) if lacked else rose
        before, away_s = self._lost(account, end_s)
        account.lost_from_s = end_s - away_s
        account.lost_held, account.held = before, ZERO
        # Some of its nodes may have re-registered already, and the application may have ended.
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
        """Whether a figure lacks usage although it did not fall: it rose by less than its running containers used."""
        went_on = account.held.within(look.held).memory_mb
        return not (account.final or look.final) and memory < went_on * (now_s - account.moved_s - CACHE_S)

    def _lost(self, account: AppAccount, now_s: float) -> tuple[Resource, float]:
        """Return the resources that an application held at the RM's restart, and the seconds not yet counted."""
        gap_s = now_s - account.moved_s
        if account.lost_from_s is None or now_s - account.lost_from_s > LATE_NODE_S:
            return account.held, gap_s
        # The RM restarted again before all containers had reappeared: use one mean time for both groups of containers.
        lost, before = account.lost_held, account.lost_held + account.held
        lost_for, held_for = _held_for(lost, now_s - account.lost_from_s), _held_for(account.held, gap_s)
        return before, (lost_for[0] + held_for[0]) / before.memory_mb if before.memory_mb else gap_s

    def _cannot_be(self, account: AppAccount, look: AppObservation, now_s: float) -> bool:
        """Refuse an impossible figure. If it persists for `FALLEN_S`, make it the new base and return True."""
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
            # Reappearing containers count as recovered only when the figure includes them, because the RM caches the
            # figure.
            back = ZERO if look.final else _shown(memory, vcores, away_s).within(risen)
            possible = _held_for(account.held.at_least(look.held), gap_s + CACHE_S)
            since = _held_for(account.held, gap_s)
            rose = Usage(memory, vcores)
            if back == risen != ZERO:
                lost = _held_for(back, away_s)
                memory, vcores = min(memory, round(lost[0] + since[0])), min(vcores, round(lost[1] + since[1]))
            elif (memory > possible[0] or vcores > possible[1]) and not (
                self._may_have_grown(account, now_s) and _beyond_late_nodes(account, rose, possible, away_s)
            ):
                # The application cannot have used this much itself: a late node reported ended containers with all
                # their usage. The application need not be shown as ended, because the RM may still be saving its end.
                lost = _held_for(account.lost_held, away_s)
                memory, vcores = min(memory, round(lost[0] + since[0])), min(vcores, round(lost[1] + since[1]))
                if away_s > 0:
                    # Containers that other nodes report later are counted then.
                    back = Resource(math.ceil(memory / away_s), math.ceil(vcores / away_s)).within(account.lost_held)
            else:
                back = ZERO
            # The part of a figure that exceeds all usage counted so far is new usage, whichever containers it is from.
            beyond, most = _less(rose, account.behind), most_used(self._possible, away_s)
            if beyond[0] <= most[0] and beyond[1] <= most[1]:
                memory, vcores = max(memory, beyond[0]), max(vcores, beyond[1])
            account.behind = _less(account.behind, _less(rose, Usage(memory, vcores)))
            account.lost_held = (account.lost_held - back).at_least(ZERO)
            account.held = look.held if back == risen else (look.held - risen).at_least(ZERO)
        elif self._began and account.behind != _UNKNOWN:
            memory, vcores = self._beyond_lack(account, look, now_s, Usage(memory, vcores))
        self._charge(account, look.queue, memory, vcores)
        account.memory_mb_s, account.vcore_s = look.memory_mb_s, look.vcore_s
        account.moved_s, account.fallen_s = now_s, None

    def _beyond_lack(self, account: AppAccount, look: AppObservation, now_s: float, rose: Usage) -> Usage:
        """Return the part of a figure's rise that is new, just after a restart of the RM.

        The figure may contain again what it lacks since an earlier restart, whose recovery is over (``behind``).
        """
        gap_s = _end_s(account, look, now_s) - account.moved_s
        possible = _held_for(account.held.at_least(look.held), gap_s + CACHE_S)
        if rose[0] <= possible[0] and rose[1] <= possible[1]:
            return rose
        since, beyond = _held_for(account.held, gap_s), _less(rose, account.behind)
        new = Usage(max(min(rose[0], round(since[0])), beyond[0]), max(min(rose[1], round(since[1])), beyond[1]))
        account.behind = _less(account.behind, _less(rose, new))
        return new

    def _may_have_grown(self, account: AppAccount, now_s: float) -> bool:
        """Return whether an application may have got and lost containers between the last poll and this one.

        True if the last poll was long ago and the nodes had had time to register again before it. A node that had not
        registered may still report containers with all their usage (`_beyond_late_nodes`). If the RM has just restarted
        once more, no node has had that time, and the figure may contain again what it lacks since the last restart.
        """
        if self._shown_s is None or account.lost_from_s is None or (self._began and account.behind != _UNKNOWN):
            return False
        return now_s - self._shown_s > LATE_NODE_S and self._shown_s - account.lost_from_s > LATE_NODE_S

    def _since_first_look(
        self, account: AppAccount, look: AppObservation, now_s: float, memory: float, vcores: float
    ) -> tuple[float, float]:
        """Return the part of a figure's rise that was used since the first poll, which found the RM recovering.

        A node that registers late reports containers with all that they have ever used.
        """
        end_s = _end_s(account, look, now_s)
        gap_s, away_s = end_s - account.moved_s, end_s - (account.lost_from_s or 0.0)
        possible = _held_for(account.held.at_least(look.held), gap_s + CACHE_S)
        if memory <= possible[0] and vcores <= possible[1]:
            return memory, vcores
        # Assume that the containers have run as long as their application, and count at least what it held since then.
        since, part = _held_for(account.held, gap_s), min(away_s / max(look.age_s, 1.0), 1.0)
        return (
            min(memory, round(since[0] + max(memory - since[0], 0.0) * part)),
            min(vcores, round(since[1] + max(vcores - since[1], 0.0) * part)),
        )

    def _assumed(self, account: AppAccount, now_s: float) -> tuple[float, float]:
        """Return the assumed usage since an application's figure last moved, for as long as the RM may cache it."""
        if account.final:
            return 0.0, 0.0
        until_s, reach_s = now_s, self._reach_s
        if account.missing_s is not None:
            # A long time without a poll since then says nothing about it.
            until_s, reach_s = account.missing_s, min(account.missing_reach_s, reach_s)
        return _held_for(account.held, min(until_s - account.moved_s, reach_s))

    def _move(self, account: AppAccount, queue: str) -> None:
        """Move an application to another queue, which is charged for all further usage.

        Assumed usage was already reported for the old queue and stays there. When the figure shows it, it is not
        charged to the new queue again.
        """
        self._add(account.queue, *account.assumed)
        account.ahead = Usage(*(sum(both) for both in zip(account.ahead, account.assumed, strict=True)))
        account.assumed, account.queue = _NOTHING, queue

    def _charge(self, account: AppAccount, queue: str, memory_mb_s: float, vcore_s: float) -> None:
        """Charge a queue for the rise of an application's figure, minus the part charged to its former queues."""
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


def _beyond_late_nodes(account: AppAccount, rose: Usage, possible: tuple[float, float], away_s: float) -> bool:
    """Return whether a figure rose by more than late nodes can report plus what its own containers can have used.

    A late node may report usage from before the RM's restart (``behind``) and the usage of each lost container since
    then. If all containers have reappeared, late nodes have nothing to report.
    """
    if account.lost_held == ZERO:
        return True
    late = _held_for(account.lost_held, away_s)
    return any(
        rise > behind + own + later
        for rise, behind, own, later in zip(rose, account.behind, possible, late, strict=True)
    )


def _end_s(account: AppAccount, look: AppObservation, now_s: float) -> float:
    """Return the time until which an application can have used resources: its end if it has ended, otherwise now."""
    if account.started_s is None or not look.final or not math.isfinite(look.age_s):
        return now_s
    return min(max(account.started_s + look.age_s, account.moved_s), now_s)


def _less(this: Usage, that: Usage) -> Usage:
    return Usage(this[0] - that[0], this[1] - that[1])


def _shown(memory_mb_s: float, vcore_s: float, seconds: float) -> Resource:
    """Return the largest resources whose usage over ``seconds`` a figure's rise can contain."""
    # The RM may have computed the figure CACHE_S before the poll.
    seconds = max(seconds - CACHE_S, 1e-3)
    return Resource(math.ceil(memory_mb_s / seconds), math.ceil(vcore_s / seconds))


def _held_for(held: Resource, seconds: float) -> tuple[float, float]:
    seconds = max(seconds, 0.0)
    return held.memory_mb * seconds, held.vcores * seconds
