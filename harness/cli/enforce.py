"""``yarnfair enforce``: the controller as a service, once, or on trial. Parsing and printing only."""

from __future__ import annotations

import difflib
import math
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from harness.cli.output import echo_wrapped, json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.control.actuator import Prepared
    from harness.control.changes import Change
    from harness.control.clocks import TrustedClock
    from harness.control.config import EnforceConfig
    from harness.control.interfaces import Actuator
    from harness.control.lease import Lease
    from harness.control.opened import Cluster
    from harness.control.reports import TickReport
    from harness.control.telemetry import Log
    from harness.control.wall import Controller
    from harness.ledger.store import LedgerStore
    from harness.policies import Policy

T = TypeVar("T")
#: Kinds of alarms that end by themselves, or whose cause the controller has removed.
_HARMLESS = frozenset({"rm", "foreign", "ad-hoc", "trap", "note", "backup", "unpaid"})


@click.command()
@click.option("--rm", "rms", multiple=True, metavar="URL", help="The RM's REST address; twice for an HA pair.")
@click.option("--config", "config_file", type=click.Path(), required=True, metavar="FILE", help="What to enforce.")
@click.option("--once", is_flag=True, help="One control period, then end (exit code 1 if it failed).")
@click.option("--dry-run", is_flag=True, help="Print what would change in the allocation file; touch nothing.")
@click.option("--release", is_flag=True, help="Give the administrator's own weights and limits back; needs no RM.")
@click.option("--resume", is_flag=True, help="After a guard has released: tell the controller to go on, then end.")
@click.option(
    "--trust-clock",
    type=click.Choice(["host", "rm"]),
    help="This machine's clock and the RM's differ: which one is right. For this start.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--metrics-port", type=click.IntRange(0, 65_535), help="Prometheus page (overrides the configuration).")
@click.option("--metrics-address", metavar="ADDRESS", help="Where it listens (default: 127.0.0.1).")
@json_option
def enforce(
    *,
    rms: tuple[str, ...],
    config_file: str,
    once: bool,
    dry_run: bool,
    release: bool,
    resume: bool,
    trust_clock: Literal["host", "rm"] | None,
    log_format: str,
    metrics_port: int | None,
    metrics_address: str | None,
    as_json: bool,
) -> int:
    """Enforce a policy on a running cluster by rewriting its queue weights, until stopped."""
    if once and (dry_run or release):
        raise click.UsageError("--once does not go with --dry-run or --release")
    if trust_clock is not None and (release or resume):
        raise click.UsageError("--trust-clock goes with what counts: not with --release or --resume")
    if resume and (once or dry_run or release or as_json):
        raise click.UsageError("--resume goes with --config alone: it only tells the controller to go on")
    if as_json and not (once or dry_run):
        raise click.UsageError("--json goes with --once or --dry-run; for the service use --log-format json")
    serves = not (once or dry_run or release or resume)
    # A stop while modules are loaded waits until it is served: an earlier run may have left its weights in force.
    with _Signals.pending() if serves else nullcontext():
        _load_numpy()
        from harness.control.config import read_config
        from harness.control.telemetry import Log

        config, trusted = read_config(Path(config_file)), trust_clock or ""
        log = Log(sys.stderr, "json" if log_format == "json" else "text")
        if log.in_json:
            from harness.base.debug import lines_in_json

            lines_in_json()
        if resume:
            return _resume(config)
        if release:
            return _release_trial(config, rms, as_json) if dry_run else _release(config, rms, log)
        if dry_run:
            return _trial(config, rms, as_json, trusted)
        if once:
            return _once(config, rms, log, as_json, trusted)
        metrics = config.metrics
        address = metrics_address or (metrics.address if metrics else "127.0.0.1")
        port = metrics_port if metrics_port is not None else (metrics.port if metrics else None)
        return _serve(config, Path(config_file), rms, log, address, port, trusted)


def _controller(
    config: EnforceConfig,
    cluster: Cluster,
    ledger: Path,
    stack: ExitStack,
    *,
    trusted: TrustedClock,
    on_tick: Callable[[TickReport], None] = lambda _: None,
    dry_run: bool = False,
) -> Controller[object]:
    from harness.control.opened import counting_policy
    from harness.control.wall import Controller
    from harness.ledger.store import LedgerStore

    config.make_policy()  # so that mistakes in it are reported before those of the ledger and the cluster
    store = stack.enter_context(LedgerStore(ledger))
    actuator = cluster.open_actuator(store.document)
    policy, words = counting_policy(config, cluster, actuator, store)
    controller = Controller(
        config.control_settings(trust_clock=trusted),
        cluster.client,
        actuator,
        store,
        policy,
        open_observer=cluster.open_observer,
        on_tick=on_tick,
        dry_run=dry_run,
    )
    if words:
        controller.announce("note", words)
    controller.check_entitlements()
    return controller


def _once(config: EnforceConfig, rms: tuple[str, ...], log: Log, as_json: bool, trusted: TrustedClock) -> int:
    from harness.control.opened import open_cluster
    from harness.control.telemetry import TickLog

    with ExitStack() as stack:
        cluster = open_cluster(config, rms, stack)
        tell = TickLog(log, config.make_policy())
        controller = _controller(config, cluster, config.ledger_path(), stack, trusted=trusted, on_tick=tell)
        tell.policy = controller.policy
        stack.callback(controller.close)
        report = controller.tick()
    if as_json:
        print_json(_document(report))
    elif not (report.record and (report.wrote or report.shadow)) and not _failures(report):
        click.echo("nothing to change")
    return 1 if _failures(report) else 0


def _trial(config: EnforceConfig, rms: tuple[str, ...], as_json: bool, trusted: TrustedClock) -> int:
    """Run one tick on a copy of the ledger; print what would be written; return the exit code. Writes nothing."""
    from harness.control.opened import open_cluster

    with ExitStack() as stack:
        cluster = open_cluster(config, rms, stack)
        if trouble := cluster.trouble():
            echo_wrapped(f"yarnfair: file: {trouble}", err=True)
        controller = _controller(config, cluster, _copied(config, stack), stack, trusted=trusted, dry_run=True)
        report = controller.tick()
        prepared = controller.prepared
        before = controller.actuator.present() if report.record is not None else {}
    told = _told(controller.policy, report, before)
    lines = [] if prepared is None else _difference(config, prepared, "enforced")
    if as_json:
        shares = {one.queue: {"before": one.before, "after": one.after, "why": one.why} for one in told}
        print_json({**_document(report), "shares": shares, "difference": "\n".join(lines)})
    else:
        for alarm in report.alarms:
            echo_wrapped(f"yarnfair: {alarm.kind}: {alarm.text}", err=True)
        for text in _in_shares(told):
            echo_wrapped(text)
        if lines:
            click.echo("\n".join(lines))
        elif not _failures(report):
            click.echo("nothing to change", err=True)
    return 1 if _failures(report) else 0


def _told(policy: Policy, report: TickReport, before: dict[str, float]) -> list[Change]:
    """Return the changes that a dry run would make, one per queue. ``before``: the present weight of each queue."""
    from harness.control.telemetry import changes_of

    if report.record is None:
        return []
    return changes_of(report.record, report.snapshot, before, policy, creating=report.creating)


def _in_shares(told: list[Change]) -> list[str]:
    """Return the changes in words, with all unchanged queues in one line."""
    from harness.control.changes import percent

    lines = [one.line() for one in told if one.moved]
    still = [one for one in told if not one.moved]
    if still:
        each = {percent(one.after) for one in still}
        what = f"{each.pop()} each" if len(each) == 1 and len(still) > 1 else ", ".join(one.line() for one in still[:6])
        more = f" and {len(still) - 6} more" if len(each) > 1 and len(still) > 6 else ""
        why = ": no history yet" if not any(one.why for one in told) else ""
        same = all(one.before is not None and math.isclose(one.before, one.after, rel_tol=1e-6) for one in still)
        lines.append(f"{'unchanged' if same else 'nearly unchanged'}: {what}{more}{why}")
    return lines


def _resume(config: EnforceConfig) -> int:
    from harness.control.released import go_on

    why = go_on(config.ledger_path())
    goes_on = f"goes on at its next look, or when it is started (released: {why})"
    echo_wrapped(goes_on if why else "no guard has released")
    return 0


def _copied(config: EnforceConfig, stack: ExitStack) -> Path:
    """Copy the ledger to a temporary folder that is removed with the stack; return the copy's path."""
    from harness.ledger.store import copy_ledger

    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="yarnfair-"))) / "ledger.db"
    if config.ledger_path().exists():
        copy_ledger(config.ledger_path(), copy)
    return copy


@dataclass(frozen=True, slots=True)
class _Kept:
    """The objects that a release needs.

    Parameters
    ----------
    client
        The ResourceManager's client if only the cluster tells which actuator is needed; else None.
    store
        The ledger.
    actuator, lease
        The actuator of the configuration that the ledger describes, and its lease, if there is one.
    """

    client: object | None
    store: LedgerStore
    actuator: Actuator[object]
    lease: Lease | None


def _kept(config: EnforceConfig, rms: tuple[str, ...], ledger: Path, stack: ExitStack, log: Log | None = None) -> _Kept:
    """Open the ledger, and the actuator and the lease of the configuration that it describes."""
    from harness.control.opened import check_known, offline_opener, open_cluster

    client, open_actuator = None, offline_opener(config)
    if open_actuator is None:
        cluster = open_cluster(config, rms, stack)
        client, open_actuator = cluster.client, cluster.open_actuator
    store = stack.enter_context(_store(ledger, config, stack, log))
    actuator = open_actuator(store.document)
    if client is not None:
        actuator.recognise_by(partial(check_known, config, client, store))
    return _Kept(client, store, actuator, actuator.lease(store.identity, config.lease_s, time.monotonic, store))


def _store(ledger: Path, config: EnforceConfig, stack: ExitStack, log: Log | None) -> LedgerStore:
    """Open the ledger for a release.

    If it cannot be written, open a copy, which is enough to restore the configuration.
    """
    from harness.base.errors import InputError
    from harness.ledger.store import LedgerStore, StoreFull, is_in_use

    try:
        return LedgerStore(ledger)
    except StoreFull as error:
        if not ledger.exists():
            raise
        if is_in_use(ledger):
            raise InputError(
                "another controller is at work with this ledger", where=str(ledger), hint="stop it, or wait for it"
            ) from None
        if log is not None:
            log("warning", "ledger", f"{error.line()}; released from a copy of it, which is not kept")
        return LedgerStore(_copied(config, stack))


def _release(config: EnforceConfig, rms: tuple[str, ...], log: Log) -> int:
    """Restore the administrator's configuration, whether or not an RM answers; return the exit code."""
    from harness.control.giveback import release
    from harness.control.opened import check_known

    with ExitStack() as stack:
        kept = _kept(config, rms, config.ledger_path(), stack, log)
        # A standby would take over what is restored here.
        spare = kept.lease is not None and kept.lease.spare()

        def open_client() -> object | None:
            if kept.client is not None or config.refresh != "rpc":
                return kept.client
            if rms or config.rms:
                return stack.enter_context(config.open_client(rms))
            log("warning", "observation", "no ResourceManager given: none was told to read the file")
            return None

        settings = config.control_settings()
        done = release(
            kept.actuator,
            kept.store,
            kept.lease,
            open_client,
            settings,
            recognise=lambda known: check_known(config, known, kept.store),
        )
        for kind, text in done.notes:
            log("warning", kind, text)
        log("warning" if done.failed else "info", "release", done.words)
        if spare:
            what = (
                f"a spare controller has signed beside the file: if it runs, it takes over within {config.lease_s:g} s"
            )
            log("warning", "lease", f"{what}; stop it too to switch off")
    return 1 if done.failed else 0


def _release_trial(config: EnforceConfig, rms: tuple[str, ...], as_json: bool) -> int:
    """Print what `--release` would write. Writes nothing, and needs no RM if the configuration is a file."""
    from harness.control.giveback import adopt, adopt_latest

    with ExitStack() as stack:
        kept = _kept(config, rms, _copied(config, stack), stack)
        holder = ""
        if kept.lease is not None:
            holder = kept.lease.other_holder()
            adopt(kept.actuator, kept.store, kept.lease)
        adopt_latest(kept.actuator, kept.store)
        kept.actuator.read()
        prepared = kept.actuator.original()
    if holder:
        echo_wrapped(f"yarnfair: lease: another controller has the file ({holder}): --release would leave it", err=True)
    lines = _difference(config, prepared, "released")
    if as_json:
        print_json({"difference": "\n".join(lines), "changed": bool(lines), "holder": holder})
    elif lines:
        click.echo("\n".join(lines))
    else:
        click.echo("nothing to change: the file is the administrator's", err=True)
    return 0


def _difference(config: EnforceConfig, prepared: Prepared, what: str) -> list[str]:
    name = config.allocation_file or config.capacity_file or "the scheduler's store"
    before, after = (data.decode("utf-8", "replace").splitlines() for data in (prepared.before, prepared.after))
    return list(difflib.unified_diff(before, after, name, f"{name} ({what})", lineterm=""))


def _serve(
    config: EnforceConfig,
    config_file: Path,
    rms: tuple[str, ...],
    log: Log,
    address: str,
    port: int | None,
    trusted: TrustedClock,
) -> int:
    from harness.base.errors import YarnfairError
    from harness.control.opened import open_cluster, system_of
    from harness.control.telemetry import Metrics, TickLog

    # Mistakes in the configuration are reported at once, before waiting for the RM and before signals are handled.
    system_of(config)
    config.config_store()
    metrics, tick_log = Metrics(), TickLog(log, config.make_policy())
    stop, received = threading.Event(), _Signals()
    threading.Thread(target=received.wait_for, args=(stop,), daemon=True).start()

    def on_tick(report: TickReport) -> None:
        metrics(report)
        tick_log(report)

    with ExitStack() as stack:
        if port is not None:
            stack.callback(metrics.close)
            shown = metrics.serve(address, port)
            log("info", "metrics", f"http://{address}:{shown}/metrics", port=shown)
        if config.page is not None:
            log("info", "page", _live_page(config, stack))

        def opened(own: ExitStack) -> tuple[Cluster, Controller[object]]:
            cluster = open_cluster(config, rms, own)
            ledger = config.ledger_path()
            return cluster, _controller(config, cluster, ledger, own, trusted=trusted, on_tick=on_tick)

        def reread() -> None:
            nonlocal config
            received.take_reload(stop)
            try:
                config = _reread(config, config_file)
                log("info", "config", "configuration reloaded")
            except YarnfairError as error:
                log("warning", "config", f"{_NOT_RELOADED}: {error.line()}")

        found = _waited_for(opened, stack, config.period_s, log, received, stop, reread)
        if found is None:
            # An earlier run may have left its weights in force.
            return _released_at_stop(config, rms, received, log)
        cluster, controller = found
        tick_log.policy = controller.policy
        stack.callback(controller.close)
        if trouble := cluster.trouble():
            log("warning", "file", trouble)
        words = f"policy {config.policy}, mode {config.mode}, on {cluster.address} every {config.period_s:g} s"
        log("info", "begin", words, policy=config.policy, mode=config.mode)
        controller.run(received.pause)
        while not stop.is_set():
            received.take_reload(stop)
            config, controller = _reloaded(config, config_file, cluster, controller, trusted)
            tick_log.policy = controller.policy
            stack.callback(controller.close)
            controller.run(received.pause)
        try:
            words, failed = controller.stop(config.on_stop), False
        except YarnfairError as error:
            words, failed = f"stopped; not released: {error.line()}", True
    return _ended(received, log, words, failed)


_NOT_RELOADED = "not reloaded, the configuration of before stays in force"


def _reread(config: EnforceConfig, config_file: Path) -> EnforceConfig:
    """Read the configuration file again. Raises YarnfairError if it is invalid or a change needs a restart."""
    from harness.base.errors import CallError
    from harness.control.config import read_config

    new = read_config(config_file)
    if fixed := config.fixed_keys(new):
        raise CallError(f"{', '.join(fixed)} cannot change while it runs", hint="restart it, or put them back")
    return new


def _reloaded(
    config: EnforceConfig,
    config_file: Path,
    cluster: Cluster,
    controller: Controller[object],
    trusted: TrustedClock,
) -> tuple[EnforceConfig, Controller[object]]:
    """Return the present configuration of the file, and a controller for it that continues with the same ledger.

    A configuration that is invalid, or needs a restart, changes nothing except that the next tick has an alarm
    (``config``).
    """
    from harness.base.errors import YarnfairError
    from harness.control.opened import counting_policy

    try:
        new = _reread(config, config_file)
        settings = new.control_settings(trust_clock=trusted)
        policy, _ = counting_policy(new, cluster, controller.actuator, controller.store)
        made = controller.remade(settings, policy)
        made.check_entitlements()
    except YarnfairError as error:
        # The rejected controller shares the configuration's store, and has set its own check of the cluster there.
        controller.recognise_cluster()
        controller.announce("config", f"{_NOT_RELOADED}: {error.line()}")
        return config, controller
    made.announce("note", f"configuration reloaded: policy {new.policy}, mode {new.mode}, every {new.period_s:g} s")
    return new, made


def _live_page(config: EnforceConfig, stack: ExitStack) -> str:
    """Start the live page of the configuration; return its address."""
    from harness.control.view import from_ledger
    from harness.report.live import LivePage

    live = LivePage(lambda: from_ledger(config.ledger_path(), time.time()), config.period_s)
    stack.callback(live.close)
    return live.serve(config.page or "")


def _released_at_stop(config: EnforceConfig, rms: tuple[str, ...], received: _Signals, log: Log) -> int:
    from harness.base.errors import YarnfairError

    if config.on_stop == "hold":
        return _ended(received, log, "stopped; what is in force stays so")
    try:
        failed = _release(config, rms, log) != 0
    except YarnfairError as error:
        return _ended(received, log, f"stopped; not released: {error.line()}", True)
    return _ended(received, log, "stopped; not released" if failed else "stopped", failed)


#: timeout(1) and shells signal both the process and its group: two signals within this time are one request.
_ONE_REQUEST_S = 0.5


def _load_numpy() -> None:
    """Load numpy with signals blocked.

    Its threads then receive no signals; a signal in one of them would end the controller without a release.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _Signals.WANTED)
    import numpy  # noqa: F401

    signal.pthread_sigmask(signal.SIG_SETMASK, before)


#: Signals whose default action ends a process, except those that report an error in the process itself.
_ENDING = ("TERM", "INT", "QUIT", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR", "STKFLT", "XCPU")


class _Signals:
    """A thread that waits for SIGHUP and all signals that would end the process.

    SIGHUP reloads the configuration; all others stop the controller in the same way as SIGTERM.

    A signal handler is no alternative: it runs between any two steps of the main thread, and setting an Event for which
    the main thread is just waiting may deadlock.
    """

    RELOAD = signal.SIGHUP
    ENDING = frozenset(
        (
            *(getattr(signal, f"SIG{name}") for name in _ENDING if hasattr(signal, f"SIG{name}")),
            *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
        )
    )
    WANTED = ENDING | {RELOAD}

    def __init__(self) -> None:
        self.first: int | None = None
        #: ``reload``: the configuration is to be read again. ``pause``: ticks pause, for a reload or for the end.
        self.reload, self.pause = threading.Event(), threading.Event()
        # Threads inherit the mask, so only the thread that waits for signals receives them.
        signal.pthread_sigmask(signal.SIG_BLOCK, self.WANTED)

    @classmethod
    @contextmanager
    def pending(cls) -> Iterator[None]:
        """Let these signals wait from now on, unless the context ends by an error: what is refused takes no signals."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, cls.WANTED)
        try:
            yield
        except Exception:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            raise

    def wait_for(self, stop: threading.Event) -> None:
        while (found := signal.sigwait(self.WANTED)) == self.RELOAD:
            self.reload.set()
            self.pause.set()
        self.first = found
        first_s = time.monotonic()
        stop.set()
        self.pause.set()
        # A later signal is a second request: it ends the process without waiting for an answer of the RM.
        while True:
            again = signal.sigwait(self.ENDING)
            if time.monotonic() - first_s > _ONE_REQUEST_S:
                os._exit(128 + again)

    def take_reload(self, stop: threading.Event) -> None:
        """Acknowledge a reload, so that ticks continue, unless the process is to end."""
        self.reload.clear()
        self.pause.clear()
        if stop.is_set():
            self.pause.set()


def _waited_for(
    make: Callable[[ExitStack], T],
    stack: ExitStack,
    period_s: float,
    log: Log,
    received: _Signals,
    stop: threading.Event,
    reread: Callable[[], None],
) -> T | None:
    """Return the result of ``make``, which is tried until an active RM answers and the ledger's disk has room.

    Return None if stopped before. ``reread`` reads the configuration again after a SIGHUP.
    """
    from harness.ledger.store import StoreFull
    from harness.yarn.errors import Unreachable

    said = ""
    while not stop.is_set():
        try:
            with ExitStack() as own:
                made = make(own)
                stack.enter_context(own.pop_all())
                return made
        except (Unreachable, StoreFull) as error:
            if error.line() != said:
                said = error.line()
                kind = "ledger" if isinstance(error, StoreFull) else "observation"
                log("warning", kind, f"{said}; waiting for it")
            received.pause.wait(period_s)
            if received.reload.is_set():
                reread()
    return None


def _ended(received: _Signals, log: Log, words: str, failed: bool = False) -> int:
    log("warning" if failed else "info", "end", words)
    if failed:
        return 1
    return 130 if received.first == signal.SIGINT else 0


def _failures(report: TickReport) -> list[str]:
    return [alarm.text for alarm in report.alarms if alarm.kind not in _HARMLESS]


def _document(report: TickReport) -> dict[str, Any]:
    from harness.model.plan import Attributes

    record = report.record
    attributes = record.attributes if record is not None else Attributes()

    def amounts(shares: Any) -> dict[str, Any]:
        return {queue: {"memory_mb": r.memory_mb, "vcores": r.vcores} for queue, r in shares.items()}

    return {
        "time_s": report.time_s,
        "took_s": report.took_s,
        "effect_s": report.effect_s,
        "wrote": report.wrote,
        "changed": list(record.changed) if record is not None else [],
        "weights": dict(attributes.weights),
        "min_shares": amounts(attributes.min_shares),
        "max_shares": amounts(attributes.max_shares),
        "reasons": dict(record.reasons) if record is not None else {},
        "counted": dict(report.counted),
        "consumed": {q: {"memory_mb_s": used[0], "vcore_s": used[1]} for q, used in report.consumed.items()},
        "alarms": [{"kind": alarm.kind, "text": alarm.text} for alarm in report.alarms],
        "released": report.released or None,
    }
