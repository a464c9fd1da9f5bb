"""Options and sources shared by ``explain`` and ``top``: a live RM, a controller's ledger, a run directory."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError
from harness.cli.access import Access, access_options
from harness.cli.output import options

if TYPE_CHECKING:
    from harness.control.config import EnforceConfig
    from harness.control.view import View
    from harness.yarn.answers import AppStatus
    from harness.yarn.rmclient import RmClient


def source_options(function: Callable[..., object]) -> Callable[..., Any]:
    """Add --rm, --config, --ledger, --run, --at and the options of harness.cli.access, as one argument `source`."""

    @functools.wraps(function)
    def with_source(*given: Any, **named: Any) -> Any:
        asked = {field.name: named.pop(field.name) for field in fields(Source) if field.init}
        with contextlib.closing(Source(**asked)) as source:
            return function(*given, source=source, **named)

    return options(
        click.option("--rm", "rms", multiple=True, metavar="URL", help="The RM's REST address."),
        click.option("--config", "config_file", metavar="FILE", type=click.Path(), help="The controller's file."),
        click.option("--ledger", metavar="FILE", type=click.Path(), help="The controller's ledger."),
        click.option("--run", "run_folder", metavar="DIR", type=click.Path(), help="A run directory instead."),
        click.option("--at", "at_s", type=float, metavar="SECONDS", help="The moment of the run (default: its end)."),
        access_options,
    )(with_source)


@dataclass(kw_only=True)
class Source:
    """The source of views that the options select; `view` may be called repeatedly."""

    rms: tuple[str, ...]
    config_file: str | None
    ledger: str | None
    run_folder: str | None
    at_s: float | None
    access: Access
    _kept_in: Path | None = field(default=None, init=False)
    _config: EnforceConfig | None = field(default=None, init=False)
    _client: RmClient | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Check the options. Raises UsageError or CallError if they contradict, YarnfairError for the file."""
        if self.run_folder is not None and (self.rms or self.config_file or self.ledger):
            raise click.UsageError("--run goes with none of --rm, --config, --ledger")
        if self.at_s is not None and (self.run_folder is None or self.at_s != self.at_s):
            raise click.UsageError("--at needs --run and a number")
        if self.run_folder is None and not (self.rms or self.config_file or self.ledger):
            raise CallError("nothing to look at", hint="give --rm URL, --config FILE, --ledger FILE or --run DIR")
        self._kept_in = Path(self.ledger) if self.ledger else None
        if self.config_file is not None:
            from harness.control.config import read_config

            self._config = read_config(Path(self.config_file))
            self._kept_in = self._kept_in or self._config.ledger_path()

    def close(self) -> None:
        """Close the connection to the ResourceManager, if one is open."""
        if self._client is not None:
            self._client.close()

    def view(self, *, limits: bool = False, live: bool = False) -> View:
        """Return the present view. Raises YarnfairError.

        ``limits``: include what holds queues back, if an RM answers. ``live``: ask an RM even if there is a ledger.
        """
        if self.run_folder is not None:
            from harness.control.view_run import from_run

            return from_run(Path(self.run_folder), at_s=self.at_s)
        from harness.control.view import from_ledger, from_rm
        from harness.yarn.holds import look
        from harness.yarn.queue_answers import in_full

        # Without --rm, only the ledger is read, even if it is old.
        kept = None
        if self._kept_in is not None and (self._kept_in.exists() or not self.rms):
            kept = from_ledger(self._kept_in, time.time())
        if not self.rms and kept is not None and not live:
            return kept
        client = self._open()
        facts = look(client.rest) if limits else None
        status = facts.status if facts is not None else client.rest.scheduler()
        weights, problem = client.weights_or_why(status)
        if kept is not None:
            view = from_rm(time.time(), client.rest.http.current, status, weights, [], kept, facts=facts)
        else:
            clock_s, apps = client.rest.info().clock_s, in_full(client.rest.apps(), status.queues)
            source = client.rest.http.current
            view = from_rm(time.time(), source, status, weights, apps, clock_s=clock_s, facts=facts)
        return replace(view, alarms=(*view.alarms, ("read-back", problem))) if problem else view

    def app(self, identity: str) -> AppStatus:
        """Return an application with its queue's full path.

        Raises YarnfairError; CallError without an RM, or if the RM does not know the application.
        """
        from harness.yarn.answers import AppList
        from harness.yarn.errors import Refused
        from harness.yarn.queue_answers import in_full

        with_rm = bool(self.rms) or (self._config is not None and bool(self._config.rms))
        if not with_rm:
            raise CallError("an application is explained from a running cluster", hint="give --rm URL")
        rest = self._open().rest
        try:
            found = rest.app(identity)
        except Refused as error:
            if error.status != 404:
                raise
            hint = "it may have ended long ago: an RM retains yarn.resourcemanager.max-completed-applications"
            raise CallError(f"the ResourceManager does not know {identity}", where=error.where, hint=hint) from None
        return in_full(AppList([found]), rest.scheduler().queues)[0]

    def _open(self) -> RmClient:
        if self._client is None:
            from harness.yarn.discover import find_rm
            from harness.yarn.http import HttpOptions
            from harness.yarn.rmclient import RmClient

            if self._config is not None:
                self._client = self._config.open_client(self.rms)
            else:
                options = HttpOptions(attempts=2, deadline_s=20.0, **self.access)
                self._client = RmClient([find_rm(rm, options) for rm in self.rms], options)
        return self._client
