"""One client for a ResourceManager or a high-availability pair: REST, refresh, and reading back.

A change has succeeded only if the RM shows it afterwards, whatever the call's result: ``confirm_weights`` queries the
RM for its present weights. harness.yarn.files writes the allocation file.
"""

from __future__ import annotations

import getpass
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from harness.base.errors import CallError, InputError
from harness.yarn import adminrpc
from harness.yarn.adminrpc import ADMIN_PORT, CLIENT_PORT, EffectiveQueue
from harness.yarn.answers import AppList
from harness.yarn.errors import NoActiveRm, Unreachable
from harness.yarn.http import HttpOptions, base_url
from harness.yarn.queue_answers import CAPACITY, SchedulerStatus, in_full, named_in_full
from harness.yarn.rest import RestClient
from harness.yarn.rpc import RpcAddress

T = TypeVar("T")
#: Tolerance for a float32 number that was divided by 100 and multiplied again.
_FLOAT32 = 1e-6


@dataclass(frozen=True, slots=True)
class RmAddress:
    """Addresses of one ResourceManager: REST (``http://host:port``), admin RPC, client RPC."""

    rest: str
    admin: RpcAddress
    client: RpcAddress

    @classmethod
    def of(cls, rest: str, *, admin: str | None = None, client: str | None = None) -> RmAddress:
        """Build the addresses from a REST address.

        An RPC address that is not given (as HOST:PORT) is the same host with Hadoop's default port.
        """
        base = base_url(rest)
        host = urlsplit(base).hostname or ""
        return cls(
            base,
            RpcAddress.parse(admin, ADMIN_PORT) if admin else RpcAddress(host, ADMIN_PORT),
            RpcAddress.parse(client, CLIENT_PORT) if client else RpcAddress(host, CLIENT_PORT),
        )


class NotEffective(InputError):
    """A change did not take effect. `wrong`: queue -> description of the RM's value."""

    def __init__(self, wrong: Mapping[str, str], *, where: str, waited_s: float, rms: int = 1) -> None:
        shown = "; ".join(f"{path}: {why}" for path, why in sorted(wrong.items())[:3])
        more = f" and {len(wrong) - 3} more queues" if len(wrong) > 3 else ""
        super().__init__(
            f"the change did not take effect within {waited_s:g} s ({shown}{more})",
            where=where,
            hint="look into the RM's log for 'Failed to reload allocations file'"
            + (", and whether this RM reads the file that was written (all of them must share it)" if rms > 1 else ""),
        )
        self.wrong = dict(wrong)


class RmClient:
    """REST and RPC of the given ResourceManagers.

    `user`: the user of RPC calls; None: the options' principal, or the process' own user.
    """

    def __init__(
        self,
        rms: Sequence[RmAddress],
        options: HttpOptions | None = None,
        *,
        user: str | None = None,
        rpc_timeout_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not rms:
            raise CallError("no ResourceManager given", hint="give at least one address")
        self.rms = tuple(rms)
        self.rest = RestClient([rm.rest for rm in rms], options, clock=clock, sleep=sleep)
        self.login = options.login if options else None
        known = self.login.user if self.login else None
        self.user = user or (options.user if options and options.user else known or _own_user())
        self.rpc_timeout_s = rpc_timeout_s
        self._clock, self._sleep = clock, sleep

    def __enter__(self) -> RmClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.rest.close()

    def _active_first(self, ask: Callable[[RmAddress], T]) -> T:
        """Return the answer of the first active RM, beginning with the one that REST found last.

        If there is none, raises the error of an RM that may be active in preference to that of a standby.
        """
        current = self.rest.http.current
        standby: NoActiveRm | None = None
        silent: Unreachable | None = None
        for rm in sorted(self.rms, key=lambda rm: rm.rest != current):
            try:
                return ask(rm)
            except NoActiveRm as error:
                standby = standby or error
            except Unreachable as error:
                silent = silent or error
        if silent is None:
            assert standby is not None
            raise standby
        if standby is None:
            raise silent
        raise Unreachable(f"{silent.what} ({standby.where}: {standby.what})", where=silent.where, hint=silent.hint)

    def apps(self) -> AppList:
        """Return all applications that the active RM knows, with full queue paths."""
        apps = self.rest.apps()
        return apps if named_in_full(apps) else in_full(apps, self.rest.scheduler().queues)

    def refresh_queues(self) -> float:
        """Make the active RM read its allocation file again; return the duration of the call, in seconds."""
        start = time.perf_counter()
        self._active_first(lambda rm: adminrpc.refresh_queues(rm.admin, **self._rpc))
        return time.perf_counter() - start

    def effective_queues(self) -> dict[str, EffectiveQueue]:
        """Return the weights in force in the active RM, by queue."""
        return self._active_first(lambda rm: adminrpc.effective_queues(rm.client, **self._rpc))

    @property
    def _rpc(self) -> dict[str, Any]:
        return {"user": self.user, "timeout_s": self.rpc_timeout_s, "login": self.login}

    def weights(self, status: SchedulerStatus) -> dict[str, float]:
        """Return the weights in force at a poll; for a Capacity Scheduler, the configured capacities."""
        if status.type == CAPACITY:
            return {path: queue.setting for path, queue in status.queues.items() if queue.setting is not None}
        return {path: queue.weight for path, queue in self.effective_queues().items()}

    def weights_or_why(self, status: SchedulerStatus) -> tuple[dict[str, float] | None, str]:
        """Return `weights` and '', or None and a reason if a Fair Scheduler's client RPC does not show them.

        REST does not show the weights of a Fair Scheduler.
        """
        try:
            return self.weights(status), ""
        except InputError as error:
            return None, (
                "the weights are not known, steady fair shares stand for them: REST does not show weights, and the "
                f"client RPC does not answer ({error.what}, {error.where}); let this machine reach the client port "
                "(yarn.resourcemanager.address), or name it as `client` in `rms` of --config"
            )

    def confirm_weights(self, wanted: Mapping[str, float], *, timeout_s: float = 5.0, every_s: float = 0.05) -> float:
        """Wait until the RM has these weights (compared as float32); return the seconds. Raises NotEffective."""
        return self._confirm(lambda: adminrpc.weights_differ(wanted, self.effective_queues()), timeout_s, every_s)

    def confirm_settings(self, wanted: Mapping[str, float], *, timeout_s: float = 5.0, every_s: float = 0.05) -> float:
        """Wait until a Capacity Scheduler shows these capacities (weights, percentages, MiB); return the seconds.

        REST shows them as float32. Raises NotEffective.
        """
        return self._confirm(lambda: self._settings_differ(wanted), timeout_s, every_s)

    def _settings_differ(self, wanted: Mapping[str, float]) -> dict[str, str]:
        def same(setting: float, has: float) -> bool:
            return math.isclose(has, setting, rel_tol=_FLOAT32, abs_tol=_FLOAT32)

        return adminrpc.differing(wanted, self.weights(self.rest.scheduler()), "capacity", same)

    def _confirm(self, differ: Callable[[], dict[str, str]], timeout_s: float, every_s: float) -> float:
        start = self._clock()
        while wrong := differ():
            waited = self._clock() - start
            if waited >= timeout_s:
                raise NotEffective(wrong, where=self.rest.http.current, waited_s=timeout_s, rms=len(self.rms))
            self._sleep(every_s)
        return self._clock() - start


def _own_user() -> str:
    """Return the name of the process' own user.

    Raises CallError if it has none, as in a container with a numeric user.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        raise CallError("this process' user has no name", hint="set http.user, or LOGNAME in the environment") from None
