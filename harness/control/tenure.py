"""A controller's right to write the scheduler's configuration, and its restoration: lease, guards, release.

The control loop (`harness.control.wall`) checks this right before it writes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from harness.base.errors import YarnfairError
from harness.control.core import ControlCore
from harness.control.giveback import NotReleased, adopt, adopt_latest, clear, release
from harness.control.guards import GuardWatch
from harness.control.interfaces import Actuator
from harness.control.lease import RENEW_PART, HeldByAnother, Lease
from harness.control.released import Released
from harness.control.settings import ControlSettings, OnStop
from harness.ledger.store import LedgerStore

ClientT = TypeVar("ClientT")
#: Interval at which a holder that hands over checks whether a standby has taken the lease, seconds.
HAND_OVER_LOOK_S = 0.2


def left_values(store: LedgerStore) -> bool:
    """Whether, according to the ledger, its last run wrote the configuration without restoring it."""
    look = store.document("look")
    if store.document("wrote") is not None:
        return bool(store.document("wrote"))
    # Ledgers of earlier versions have only the last poll.
    return isinstance(look, dict) and bool(look.get("holds")) and look.get("mode") != "shadow"


class Tenure(Generic[ClientT]):
    """The right of one controller to write. `harness.control.wall.Controller` documents the parameters."""

    def __init__(
        self,
        settings: ControlSettings,
        client: ClientT,
        actuator: Actuator[ClientT],
        store: LedgerStore,
        core: ControlCore,
        *,
        dry_run: bool,
    ) -> None:
        self.settings, self.client, self.actuator, self.store, self.core = settings, client, actuator, store, core
        self.dry_run = dry_run
        #: Release by a guard, until an administrator resumes the controller.
        self.released = Released(store)
        counting = core.policy.ledger_settings()
        dominant = counting is not None and counting.resource == "dominant"
        self._guards = GuardWatch(settings.guards, flat=core.policy.dues_are_flat(), dominant=dominant)
        writes = not dry_run and settings.mode != "shadow"
        lease = actuator.lease(store.identity, settings.lease_s, time.monotonic, store)
        self._lease = lease if writes else None
        #: The lease as a controller that does not write reads it, to learn which values another controller manages.
        self._others = None if writes else lease
        #: Whether this controller may write the file.
        self.holds = self._lease is None and settings.mode != "shadow"
        #: Whether the ledger knows which values in the file are the administrator's.
        self._informed = bool(actuator.baseline)
        #: Whether another controller wrote the file and its last announcement is lost.
        self._words_lost = False
        #: Whether `_check_copy` has checked if the ledger is an older copy.
        self._copy_checked = False
        #: Time of the last tick that could read and write everything (monotonic clock, like the lease's).
        self._good_s = time.monotonic()
        #: What came of a guard's release that the ResourceManager has yet to be told of ('': there is none).
        self._release_words = ""
        #: In a shadow: which controller with this ledger left its values in force, in words for the alarm.
        self._left_by = "an earlier run of this controller was killed and had left its weights"
        #: In a shadow: whether one has left its values in force.
        self._left_over = settings.mode == "shadow" and left_values(store) and any(actuator.managed.values())
        #: Another controller's announcement that was taken over, and whether that controller was alive.
        self._adopted: tuple[dict[str, Any], bool] = ({}, False)
        #: Whether an announcement could not be taken over yet, because the configuration could not be read.
        self._adopts_late = False

    def _alarm(self, kind: str, text: str) -> None:
        raise NotImplementedError

    def _recognise(self, client: ClientT) -> None:
        """Raise OtherCluster if another cluster's ResourceManager answers, and request errors."""
        raise NotImplementedError

    @contextlib.contextmanager
    def _alarmed(self, kind: str) -> Iterator[None]:
        """Turn errors inside the context into an alarm."""
        try:
            yield
        except YarnfairError as error:
            self._alarm(kind, error.line())

    @property
    def shadow(self) -> bool:
        """Whether decisions are only logged: by configuration, or because a guard has released."""
        return self.settings.mode == "shadow" or bool(self.released)

    def _follow(self, before: Tenure[ClientT]) -> None:
        """Continue in place of another controller of this process, with its time of the last successful tick."""
        self._good_s = before._good_s
        self._left_by = "this controller had left its weights when it was reloaded as a shadow"

    def close(self) -> None:
        """Let another controller take over. The weights in force stay unchanged."""
        if self._lease is not None:
            self._lease.give_back()
            if not self.holds:
                self._lease.end()  # the standby's sign of life
            self.holds = False

    def stop(self, on_stop: OnStop, sleep: Callable[[float], None] = time.sleep) -> str:
        """Stop as configured and close; return a description of the result.

        With ``release``, the administrator's values are restored, unless a standby is running: then this waits for the
        standby to take over. Raises any failure.
        """
        if self._left_over:
            try:
                return f"stopped; {self._take_back_left_over()}"
            except HeldByAnother:
                return "stopped; another controller has the allocation file"
        if self.settings.mode == "shadow":
            return "stopped; a shadow has written nothing"
        if not self.holds and not self._takes_over():
            self.close()
            return "stopped; another controller has the allocation file"
        if self.released.given_back:
            if self._lease is not None and not self._lease.has_successor():
                self._lease.end()
            self.close()
            return "stopped; a guard had released, the file is the administrator's"
        if on_stop == "hold":
            self.close()
            return "stopped; what is in force stays so"
        lease = self._lease
        if lease is not None and lease.has_successor():
            self.close()
            end = time.monotonic() + lease.lease_s
            while time.monotonic() < end:
                if lease.taken():
                    return "stopped; a spare controller has taken over, what is in force stays so"
                sleep(HAND_OVER_LOOK_S)
        return f"stopped; {self.release(sleep)}"

    def release(self, sleep: Callable[[float], None] = time.sleep, *, repeats: bool = True) -> str:
        """Restore the administrator's values and refresh the RM; return a description of the result.

        ``sleep`` waits for so many seconds before a further attempt, if somebody else changes the configuration
        meanwhile, or with ``repeats`` if the RM does not answer. Raises any failure.
        """
        self.core.forget_written()
        released = self.released.document()
        done = release(
            self.actuator,
            self.store,
            self._lease,
            lambda: self.client,
            self.settings,
            released,
            self._recognise,
            sleep,
            repeats=repeats,
        )
        self.holds = self._lease is None or released is not None
        for kind, text in done.notes:
            self._alarm(kind, text)
        if done.failed:
            raise NotReleased(done.words)
        return "; ".join([done.words, *(f"{kind}: {text}" for kind, text in done.notes)])

    def _take_back_left_over(self) -> str:
        """Restore the values that an earlier run left in force; return a description. Raises any failure.

        Raises HeldByAnother if another controller may hold the lease. A lease that is no longer renewed or is invalid
        is taken over for the restore.
        """
        lease = self._others
        if lease is not None and lease.other_holder() and lease.other_lives:
            # Another controller holds the file now, and is responsible for its values.
            self._left_over = False
            return "another controller has taken over what an earlier run had written"
        done = release(
            self.actuator,
            self.store,
            lease,
            lambda: self.client,
            self.settings,
            recognise=self._recognise,
            repeats=False,
        )
        self._left_over = done.failed
        self._adopted = ({}, False)
        for kind, text in done.notes:
            self._alarm(kind, text)
        if done.failed:
            raise NotReleased(done.words)
        return done.words

    def _restore_left_over(self) -> None:
        """In a shadow, restore the values that an earlier run left in force.

        A shadow writes nothing else. Without this, the values would stay in force without a controller.
        """
        if not self._left_over or self.dry_run:
            return
        try:
            words = self._take_back_left_over()
            self._alarm("note", f"{self._left_by}: {words}")
        except YarnfairError as error:
            what = "what an earlier run of this controller wrote is still in force" if self._left_over else "given back"
            self._alarm("actuation", f"{what}: {error.line()}")

    def _takes_over(self) -> bool:
        """Take a lease that is no longer renewed, so that the file can be restored; return whether the file is its own.

        A lease that cannot be read or written (full disk) belongs to nobody else as far as anybody can tell. The
        release goes on without it, and says what cannot be done.
        """
        if self._lease is None:
            return False
        try:
            self._lease.hold(waits=not self._informed)
            adopt(self.actuator, self.store, self._lease)
        except HeldByAnother:
            return False
        except YarnfairError as error:
            self._alarm("lease", error.line())
        self.holds = True
        return True

    def _hold(self) -> None:
        """Renew the lease, or try to take it.

        A controller that could not read or write for some time neither renews nor takes the lease, so that a standby
        can take over.
        """
        lease = self._lease
        if lease is None:
            self._look_beside()
            return
        if self.holds and self._blind(lease):
            return
        held = self.holds
        try:
            lease.hold(take=not self._blind(lease), waits=True)
            if not held:
                clear(self.actuator, lease)
                if lease.announced_by not in ("", self.store.identity):
                    self.released.inherit(lease.released)
                    self._guards.begin()
            self.holds = True
        except HeldByAnother as error:
            self.holds = False
            lease.give_sign()
            self._alarm("lease", error.line())
        except YarnfairError as error:
            # No other controller was seen, so the lease is still its own.
            self._alarm("lease", error.line())
        if held != self.holds:
            # Another controller may have written meanwhile, so the values in force are unknown.
            self.core.forget_written()
        if not (held and self.holds):
            self._adopt(lease)
        self._words_lost = lease.words_lost and not (held and self.holds)

    def _blind(self, lease: Lease) -> bool:
        """Return whether nothing could be read or written for so long that a standby should take over."""
        return time.monotonic() - self._good_s > lease.lease_s * RENEW_PART

    def _look_beside(self) -> None:
        """Read another controller's announcement in the lease.

        Without it, a shadow would mistake the weights that another controller wrote for entitlements.
        """
        if self._others is None:
            return
        with self._alarmed("lease"):
            self._others.other_holder()
            self._adopt(self._others)

    def _adopt(self, lease: Lease) -> None:
        """Take over another controller's announcement about the file; a new ledger starts with it."""
        if (lease.announced, lease.other_lives) == self._adopted:
            return
        self._adopts_late = True
        with self._alarmed("lease"):
            self._adopt_now(lease)

    def _adopt_now(self, lease: Lease) -> None:
        """Like `_adopt`; raises what adopting raises."""
        found = (lease.announced, lease.other_lives)
        if text := adopt(self.actuator, self.store, lease):
            self._alarm("backup", text)
        self._adopted, self._adopts_late = found, False
        self._informed |= bool(lease.announced)

    def _catch_up(self) -> None:
        """Take over the announcements of the lease and the lock file that could not be taken over before.

        This must precede a read of the configuration, which would otherwise mistake a controller's values for the
        administrator's. Raises what reading the configuration raises.
        """
        lease = self._lease or self._others
        if self._adopts_late and lease is not None:
            self._adopt_now(lease)
        if not self._copy_checked:
            self._check_copy_now()

    def _check_copy(self) -> None:
        """Detect a ledger that is an older copy, and bring it up to date (`adopt_latest`)."""
        if self._copy_checked:
            return
        with self._alarmed("file"):
            self._check_copy_now()

    def _check_copy_now(self) -> None:
        """Like `_check_copy`; raises what reading the configuration raises."""
        if text := adopt_latest(self.actuator, self.store):
            self._alarm("backup", text)
        self._copy_checked = True

    # --- guards ---

    def _told_to_go_on(self) -> None:
        """Resume writing if an administrator has resumed the controller since the last call."""
        with self._alarmed("guard"):
            if not self.released.ended():
                return
            self._guards.begin()
            self.core.forget_written()
            # An announcement renews the lease, which a controller that cannot read or write must not do. It announces
            # with its next write instead.
            if self._lease is not None and self.holds and not self._blind(self._lease):
                self._lease.keep(self.actuator.document())

    def _guard(self, now_s: float, why: str, *, seen: bool) -> None:
        """Restore the configuration once when a guard is exceeded.

        From then on, decisions are only logged, until an administrator resumes the controller. ``why``: description of
        the guard that this poll exceeded ('': none). ``seen``: whether the RM answered.
        """
        if why and not self.released:
            if self.settings.mode == "shadow" or self.dry_run:
                self._alarm("guard", f"{why}: past this guard it would release")
            if self.shadow or self.dry_run or not self.holds:
                return
            with self._alarmed("ledger"):
                self.released.begin(now_s, why)
        if not self.released:
            self._release_words = ""
            return
        words = "the administrator's own weights and limits are in force"
        # Once the file is the administrator's, releasing again would only renew the lease of a controller that sees no
        # ResourceManager, and keep a standby from telling it.
        blind = self._lease is not None and self._blind(self._lease)
        if not self.released.given_back and self._release_words and blind:
            words = self._release_words
        elif not self.released.given_back and self.holds and not self.dry_run:
            try:
                words = self._release_words = self.release(repeats=False)
                if seen:  # otherwise, the release is repeated until the RM answers
                    self.released.done()
            except YarnfairError as error:
                words = f"not given back yet: {error.line()}"
        self._alarm("guard", f"released, {self.released.why}; {words}; `yarnfair enforce --resume` makes it go on")

    def _told(self, lease: Lease) -> bool:
        """Announce in the lease who owns which value, before the write; return whether the lease is still held."""
        try:
            lease.keep(self.actuator.document())
        except HeldByAnother as error:
            self.holds = False
            self._alarm("lease", error.line())
            return False
        except YarnfairError as error:
            self._alarm("lease", error.line())
        return True
