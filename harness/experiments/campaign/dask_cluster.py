"""A connection to a Dask cluster, whose workers must have the same code as this machine."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack
from functools import cache, lru_cache
from typing import Any, TypeVar

from harness.base.errors import CallError, YarnfairError
from harness.base.extras import install_hint
from harness.experiments.campaign.code import package_hash
from harness.results.store import versions

T = TypeVar("T")
#: How often a call is submitted at most: its input may be lost with the last worker that had it.
_TRIES = 3
#: How often it is looked, at most, whether the cluster has a worker, seconds.
LOOK_S = 5.0
#: After so many seconds without a worker its work is given up. A cluster that adds machines on demand takes minutes.
MOST_ALONE_S = 1800.0


@cache
def code_identity() -> Mapping[str, str]:
    """Return what must be equal on two machines for a simulation to have the same result on both."""
    found = versions()
    return {
        "yarnfair": found["yarnfair"],
        "the hash of yarnfair's code": package_hash()[:16],
        "Python": found["python"].rpartition(".")[0],
        "numba": found["numba"],
        "numpy": found["numpy"],
    }


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Describe the first difference of two machines' code; '' if there is none."""
    for what, ours in here.items():
        if there.get(what) != ours:
            return f"{what} is {there.get(what, 'unknown')} there and {ours} here"
    return ""


def check_worker(expected: Mapping[str, str]) -> None:
    """Check on a worker that it has the code of the machine that sent the work.

    Workers that join later are not seen when the connection is made. Raises CallError with the worker's name.
    """
    if other := difference(expected, code_identity()):
        import distributed

        worker: Any = distributed.get_worker
        raise other_code(str(worker().name), other)


def other_code(worker: str, other: str) -> CallError:
    """Return the error for a worker with other code."""
    return CallError(
        f"the Dask worker {worker} has other code: {other}",
        where="--executor",
        hint="start it with the same version of yarnfair and its packages",
    )


def _asking() -> Callable[[], Mapping[str, str]]:
    """Return a function that returns the code identity of the worker that calls it.

    Dask pickles a nested function by value. A worker whose yarnfair lacks this module can therefore receive it, and
    fails in the call, with an error that names what is missing.
    """

    def ask() -> Mapping[str, str]:
        from harness.experiments.campaign.dask_cluster import code_identity

        return code_identity()

    return ask


@lru_cache(maxsize=4)
def unpickled(pickled: bytes) -> Any:
    """Unpickle an input of several tasks; those on one worker share the object."""
    return pickle.loads(pickled)


def _call(pickled: bytes, expected: Mapping[str, str], arguments: Sequence[object]) -> object:
    check_worker(expected)
    return unpickled(pickled)(*arguments)


def _killed() -> type[Exception]:
    import distributed

    found: type[Exception] = distributed.KilledWorker
    return found


class DaskCluster:
    """A connection to the Dask cluster at ``dask://host:port``.

    Parameters
    ----------
    address
        The scheduler's address.

    Attributes
    ----------
    client
        Dask's client.
    threads
        Number of the present workers' threads; at least 1.

    Raises
    ------
    CallError
        Not a Dask address, Dask is not installed, or a worker has other code.
    YarnfairError
        The scheduler does not answer.
    """

    def __init__(self, address: str) -> None:
        """Connect, and compare the code of all workers."""
        self._looked_s = -math.inf
        self._alone_since_s: float | None = None
        if not address.startswith("dask://") or address == "dask://":
            raise CallError(
                f"no executor {address[:60]!r}", where="--executor", hint="write dask://HOST:PORT, or leave it out"
            )
        try:
            import distributed
        except ImportError:
            raise CallError("Dask is not installed", where="--executor", hint=install_hint("dask")) from None
        with ExitStack() as opened:
            try:
                client: Any = distributed.Client
                self.client: Any = client(address.replace("dask://", "tcp://", 1), timeout=30, set_as_default=False)
                opened.callback(self.close)
                workers = self.client.scheduler_info(n_workers=-1)["workers"]
                found = self.client.run(_asking(), on_error="return")
            except Exception as error:
                raise YarnfairError(
                    f"no Dask scheduler answers ({type(error).__name__})", where=address, hint="check host and port"
                ) from None
            self.threads = sum(int(one["nthreads"]) for one in workers.values()) or 1
            for at, there in found.items():
                name = str(workers.get(at, {}).get("name", at))
                if not isinstance(there, Mapping):
                    raise other_code(name, f"yarnfair cannot be asked there ({type(there).__name__}: {there})")
                if other := difference(code_identity(), there):
                    raise other_code(name, other)
            opened.pop_all()

    def map(self, function: Callable[..., T], *columns: Sequence[object]) -> Iterator[T]:
        """Call a function on the workers with the elements of each column; yield the results in order.

        The function, with all that is bound to it, is sent once to each worker. The same code gives the same result as
        here. Raises what the function raises, CallError for a worker with other code, and YarnfairError if workers die
        again and again.
        """
        calls = list(zip(*columns, strict=True))
        pickled = pickle.dumps(function)
        futures: list[Any] = []
        try:
            futures += self._submitted(pickled, calls)
            for number in range(len(calls)):
                for left in reversed(range(_TRIES)):
                    try:
                        yield self._result(futures[number])
                        break
                    except CancelledError:
                        # The last worker that had the function is gone.
                        if not left:
                            raise
                        futures[number:] = self._submitted(pickled, calls[number:])
        except (CancelledError, TimeoutError, _killed()) as error:
            raise YarnfairError(
                f"no Dask worker finished its work ({type(error).__name__})",
                where="--executor",
                hint="look at their logs; is there enough memory?",
            ) from None
        finally:
            for future in futures:
                future.cancel()

    def _result(self, future: Any) -> Any:
        """Wait for a result; raise TimeoutError if the cluster has had no worker for `MOST_ALONE_S`."""
        while True:
            try:
                return future.result(timeout=LOOK_S)
            except TimeoutError:
                # The call itself can raise it as well.
                if future.done() or self.is_given_up():
                    raise

    def is_given_up(self) -> bool:
        """Return whether the cluster has had no worker for so long that its work is given up."""
        return self.alone_s() >= MOST_ALONE_S

    def alone_s(self) -> float:
        """Return for how many seconds the cluster is known to have no worker; 0 if it has one.

        Dask waits for workers without a limit. The scheduler is asked once in `LOOK_S` at most.
        """
        now_s = time.monotonic()
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            try:
                workers = self.client.scheduler_info(n_workers=-1)["workers"]
            except Exception:  # the scheduler does not answer: nobody works, either
                workers = {}
            if workers:
                self._alone_since_s = None
            elif self._alone_since_s is None:
                self._alone_since_s = now_s
        return 0.0 if self._alone_since_s is None else now_s - self._alone_since_s

    def _submitted(self, pickled: bytes, calls: Sequence[Sequence[object]]) -> list[Any]:
        shipped = self.client.scatter(pickled, broadcast=True, hash=False)
        return [
            self.client.submit(_call, shipped, code_identity(), arguments, pure=False, retries=0) for arguments in calls
        ]

    def close(self) -> None:
        """Disconnect."""
        self.client.close(timeout=10)
