"""Options and sources shared by ``explain`` and ``top``: a live RM, a controller's ledger, a run directory."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError
from harness.cli.access import Access, access_options
from harness.cli.output import options

if TYPE_CHECKING:
    from harness.control.view import View
    from harness.yarn.rmclient import RmClient


def source_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--rm, --config, --ledger, --run, --at, and those of harness.cli.access, as one argument `source`."""

    @functools.wraps(function)
    def with_source(
        *given: Any,
        rms: tuple[str, ...],
        config_file: str | None,
        ledger: str | None,
        run_folder: str | None,
        at_s: float | None,
        access: Access,
        **named: Any,
    ) -> Any:
        with contextlib.closing(Source(rms, config_file, ledger, run_folder, at_s, access)) as source:
            return function(*given, source=source, **named)

    return options(
        click.option("--rm", "rms", multiple=True, metavar="URL", help="The RM's REST address."),
        click.option("--config", "config_file", metavar="FILE", type=click.Path(), help="The controller's file."),
        click.option("--ledger", metavar="FILE", type=click.Path(), help="The controller's ledger."),
        click.option("--run", "run_folder", metavar="DIR", type=click.Path(), help="A run directory instead."),
        click.option("--at", "at_s", type=float, metavar="SECONDS", help="The moment of the run (default: its end)."),
        access_options,
    )(with_source)


class Source:
    """Where views come from; `view` may be called again and again."""

    def __init__(
        self,
        rms: tuple[str, ...],
        config_file: str | None,
        ledger: str | None,
        run_folder: str | None,
        at_s: float | None,
        access: Access,
    ) -> None:
        if run_folder is not None and (rms or config_file or ledger):
            raise click.UsageError("--run goes with none of --rm, --config, --ledger")
        if at_s is not None and (run_folder is None or at_s != at_s):
            raise click.UsageError("--at needs --run and a number")
        if run_folder is None and not (rms or config_file or ledger):
            raise CallError("nothing to look at", mend="give --rm URL, --config FILE, --ledger FILE or --run DIR")
        self._rms, self._run, self._at_s, self._access = rms, run_folder, at_s, access
        self._ledger = Path(ledger) if ledger else None
        self._config = None
        if config_file is not None:
            from harness.control.config import read_config

            self._config = read_config(Path(config_file))
            self._ledger = self._ledger or self._config.ledger_path()
        self._client: RmClient | None = None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def view(self) -> View:
        """How it is now. Raises YarnfairError."""
        if self._run is not None:
            from harness.control.view_run import from_run

            return from_run(Path(self._run), at_s=self._at_s)
        from harness.control.view import from_ledger, from_rm
        from harness.yarn.queue_answers import in_full

        # Without --rm the ledger alone answers, fresh or not.
        kept = None
        if self._ledger is not None and (self._ledger.exists() or not self._rms):
            kept = from_ledger(self._ledger, time.time())
        if not self._rms and kept is not None:
            return kept
        client = self._open()
        status = client.rest.scheduler()
        weights = client.weights(status)
        apps = [] if kept is not None else in_full(client.rest.apps(), status.queues)
        return from_rm(time.time(), client.rest.http.current, status, weights, apps, kept)

    def _open(self) -> RmClient:
        if self._client is None:
            from harness.yarn.discover import find_rm
            from harness.yarn.http import HttpOptions
            from harness.yarn.rmclient import RmClient

            if self._config is not None:
                self._client = self._config.open_client(self._rms)
            else:
                options = HttpOptions(attempts=2, deadline_s=20.0, **self._access)
                self._client = RmClient([find_rm(rm, options) for rm in self._rms], options)
        return self._client
