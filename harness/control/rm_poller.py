"""Poll a ResourceManager once per control period, and detect its restart and its replacement by another one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from harness.control.app_observer import AppObserver, looks_of
from harness.control.clock import SteadyClock
from harness.control.events import Observed
from harness.control.identity import ACCEPT_OTHER, ClusterFacts, another_cluster, why_another
from harness.control.interfaces import Entitlements, ObserverContext
from harness.control.largest import RecentLargest
from harness.control.settings import ControlSettings
from harness.ledger.accounts import RECOVERY_S, AppObservation, RmAccounts
from harness.ledger.store import LedgerStore
from harness.model.resources import ZERO, Resource
from harness.model.snapshot import Snapshot
from harness.yarn.answers import FINAL_STATES, AppList, ClusterInfo
from harness.yarn.discover import rm_property
from harness.yarn.errors import BadAnswer, Refused, Unreachable
from harness.yarn.jmx import Containers, queue_containers
from harness.yarn.queue_answers import SchedulerStatus, in_full, parts_of_parents, with_created
from harness.yarn.releases import ASSUMED
from harness.yarn.rmclient import RmClient

#: Ended applications are requested from this time before the latest known end, ms.
ENDED_MARGIN_MS = 60_000
#: Minimum time before a failed JMX page (proxy, other server, too slow) is requested again, seconds.
REFUSED_S = 300.0
#: Property that names the cluster if its ResourceManagers are a high-availability pair.
CLUSTER_ID = "yarn.resourcemanager.cluster-id"
_LIVE_STATES = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")


class RmPoller:
    """Poll an RM for one controller.

    Parameters
    ----------
    client : RmClient
        The controller's client.
    settings : ControlSettings
        The controller's settings.
    clock : Callable
        The controller's clock, seconds.
    accounts : RmAccounts
        The accounts that each poll updates.
    rm : list or None
        Identity of the RM that answered last (`identity`); None: none has answered.
    capacity : Resource
        The cluster's capacity at the last poll.
    on_info : Callable
        Called with the RM's cluster information before a poll is accounted for. If it raises, the poll fails.
    facts : ClusterFacts or None
        Known facts about the cluster.
    """

    def __init__(
        self,
        client: RmClient,
        settings: ControlSettings,
        clock: Callable[[], float],
        accounts: RmAccounts,
        rm: list[Any] | None,
        capacity: Resource = ZERO,
        *,
        on_info: Callable[[ClusterInfo], None] = lambda _: None,
        on_queues: Callable[[Collection[str]], None] = lambda _: None,
        facts: ClusterFacts | None = None,
    ) -> None:
        self.client, self.settings, self.clock, self.accounts = client, settings, clock, accounts
        self._on_info, self._on_queues = on_info, on_queues
        #: Properties that the cluster's ResourceManagers share, as shown last.
        self.facts = facts or ClusterFacts()
        #: The RM's clock at the last poll (None: not shown).
        self.clock_s: float | None = None
        #: Identity of the RM that answered last: address, ID, start time (ms).
        self.identity = rm
        #: The RM's Hadoop release.
        self.hadoop = ASSUMED
        #: Message of the last poll that another RM answered or the RM was restarted ('': neither).
        self.news = ""
        self._watcher = AppObserver()
        self._full_look_s = -math.inf
        self._latest_end_ms = 0
        self._apps_again_s = -math.inf
        self._last_apps = AppList()
        self._counts_again_s = -math.inf
        #: The largest capacity or usage that the cluster has shown lately.
        self._largest = RecentLargest(capacity, settings.period_s)
        #: The capacity at the last poll; while an RM's nodes come back after a restart, at least that of before.
        self._settled = capacity
        self._recovered_s = -math.inf
        #: Time until the last poll's request for the queues was answered or failed, seconds.
        self.answer_s = 0.0
        #: Whether the last poll rejected an empty list of applications.
        self._doubted = False

    def look(self, actuator: Entitlements) -> Observed:
        """Poll the RM. Raises YarnfairError; the accounts are unchanged then.

        ``actuator`` provides the administrator's entitlements and limits.
        """
        client, settings = self.client, self.settings
        self.answer_s = 0.0
        info = client.rest.info()
        self._on_info(info)
        # Later requests may fail over to another RM, to which `info` does not apply.
        base = client.rest.http.current
        self.hadoop = info.hadoop
        identity = [base, info.id, info.started_on_ms]
        status = self._queues()
        # Fetch the counts before the applications, so that the application of every counted AM is listed as ended.
        counts = self._counts(self.clock(), base)
        asked_s = self.clock()
        full = self._full_look_s + settings.full_look_every_s <= asked_s or identity != self.identity
        asking = full or asked_s >= self._apps_again_s
        apps = in_full(self._apps(full), status.queues) if asking else self._last_apps
        if asking:
            self._doubt(apps, status, identity)
        answered_s = self.clock()
        # The figures were taken at some moment within the call.
        now_s = (asked_s + answered_s) / 2
        facts = self._shared_facts(base) if full else self.facts
        if client.rest.http.current != base:
            raise Unreachable(f"{client.rest.http.current} answers, {base} did a moment before", where=base)
        # Everything that can raise comes before the changes of the accounts and of the RM's identity. Otherwise, a poll
        # that fails halfway would lose the information that another RM answers.
        self._on_queues(status.queues.keys())
        entitlements = with_created(actuator.configured_weights() | dict(settings.entitlements), status)
        min_shares, max_shares = actuator.min_shares(), actuator.max_shares(status.capacity)
        looks = looks_of(apps)
        if identity != self.identity and self.identity is not None:
            self._check_cluster(info, base, facts, looks, now_s)
        self.clock_s, self.facts = info.clock_s, facts
        self._largest.show(now_s, status.capacity.at_least(status.queues["root"].used))
        self._recognise(identity)
        self._settle_capacity(now_s, status.capacity)
        if asking:
            # After an RM restart, the next poll must list the applications again, because containers are recovered
            # gradually. Besides, the duration of the first list is not typical.
            wait_s = 0.0 if self.news else settings.ask_again * (answered_s - asked_s)
            self._last_apps, self._apps_again_s = apps, answered_s + wait_s
            self.accounts.observe(
                now_s,
                looks,
                rm_began_anew=bool(self.news),
                capacity=self._largest.capacity,
                rm_age_s=_age_s(info.started_on_ms, apps),
                passed_over=apps.skipped,
            )
        else:
            self.accounts.skip(now_s)
        if full:
            # An application that was skipped as invalid is not missing.
            self.accounts.forget([*(app.id for app in apps), *apps.skipped], now_s)
            self._full_look_s = now_s
        self._latest_end_ms = max([self._latest_end_ms, *(app.finished_ms for app in apps)])
        snapshot = self._watcher.snapshot(
            now_s,
            status,
            apps,
            entitlements=entitlements,
            min_shares=min_shares,
            max_shares=max_shares,
            counts=counts,
            period_s=settings.period_s,
            listed=asking,
        )
        return self._observed(snapshot, parts_of_parents(status))

    def check_cluster(self) -> None:
        """Check, before the RM's own store is read or changed, that the RM belongs to the known cluster.

        This takes one request if the RM is the known one. Otherwise the clocks are compared (`on_info`) and the
        cluster's properties are requested. Raises OtherCluster, ClocksDiffer, and request errors.
        """
        info = self.client.rest.info()
        base = self.client.rest.http.current
        if self.identity is None or [base, info.id, info.started_on_ms] == self.identity:
            return
        self._on_info(info)
        looks = looks_of(self.client.rest.apps())
        self._check_cluster(info, base, self._shared_facts(base), looks, self.clock())

    @property
    def refused(self) -> dict[str, int]:
        """Applications of the last poll that the RM refused -> time, ms of the RM's clock.

        A refused application failed before it got a container.
        """
        return {
            app.id: app.finished_ms
            for app in self._last_apps
            if app.state == "FAILED" and not app.launched_ms and not app.memory_seconds
        }

    @property
    def latest_end_ms(self) -> int:
        """Latest end of an application that the RM has shown, ms of its clock."""
        return self._latest_end_ms

    @property
    def earliest_s(self) -> float | None:
        """Start of the earliest application in the last poll that has used memory, seconds (None: none has)."""
        started = [app.started_ms for app in self._last_apps if app.memory_seconds > 0]
        return min(started) / 1000.0 if started else None

    @property
    def skipped(self) -> Mapping[str, str]:
        """Applications of the last poll whose figures were invalid: ID (or position in the list) -> reason."""
        return self._last_apps.skipped | self.accounts.refused

    def queues(self) -> Collection[str]:
        """Query the names of the RM's queues. Raises YarnfairError."""
        return self.client.rest.scheduler().queues.keys()

    def _queues(self) -> SchedulerStatus:
        asked_s = self.clock()
        try:
            return self.client.rest.scheduler()
        finally:
            self.answer_s = self.clock() - asked_s

    def _doubt(self, apps: AppList, status: SchedulerStatus, identity: list[Any]) -> None:
        """Raise BadAnswer for an empty list of applications that contradicts the queues or the last list."""
        doubted, self._doubted = self._doubted, False
        if apps or apps.skipped:
            return
        where = self.client.rest.http.current
        shown = sum(queue.active_apps + queue.pending_apps for queue in status.queues.values() if queue.leaf)
        if shown:
            raise BadAnswer(
                f"the list of applications is empty, the queues show {shown}",
                where=where,
                hint="let this user see everybody's applications (`http.user`, yarn.admin.acl)",
            )
        # Another RM may know no applications, so only an empty list of the same RM is doubtful.
        known = sum(account.missing_s is None for account in self.accounts.apps.values())
        if known and identity == self.identity and not doubted:
            self._doubted = True
            raise BadAnswer(f"the list of applications is empty, a moment ago it had {known}", where=where)

    def _settle_capacity(self, now_s: float, capacity: Resource) -> None:
        """Determine the capacity of which usage is counted as a part.

        After a restart of the RM, nodes come back one after another, with what their containers have used meanwhile.
        That was a part of the whole cluster, not of the nodes that are back already.
        """
        if self.news:
            self._recovered_s = now_s + RECOVERY_S
        self._settled = self._settled.at_least(capacity) if now_s < self._recovered_s else capacity

    def _observed(self, snapshot: Snapshot, guaranteed: Mapping[str, float]) -> Observed:
        leaves = {queue.name for queue in snapshot.leaves()}
        consumed = {queue: used for queue, used in self.accounts.consumed().items() if queue in leaves}
        active = [queue.name for queue in snapshot.leaves() if queue.demand.memory_mb > 0]
        preempted = {
            app.id: float(app.preempted_memory_seconds) for app in self._last_apps if app.preempted_memory_seconds > 0
        }
        from_s = -math.inf if self.identity is None else self.identity[2] / 1000.0
        return Observed(
            snapshot,
            consumed,
            active,
            guaranteed=guaranteed,
            preempted=preempted,
            preempted_from_s=from_s,
            counted_capacity=self._settled,
        )

    def _apps(self, full: bool) -> AppList:
        if full or not self._latest_end_ms:
            return self.client.rest.apps()
        # List the live applications first. An application that ends between the two calls is in both lists, and the
        # second entry replaces the first.
        live = self.client.rest.apps(states=_LIVE_STATES)
        since_ms = self._latest_end_ms - ENDED_MARGIN_MS
        ended = self.client.rest.apps(states=sorted(FINAL_STATES), finished_from_ms=since_ms)
        found = {app.id: app for app in (*live, *ended)}
        return AppList(found.values(), live.skipped | ended.skipped)

    def _counts(self, now_s: float, base: str) -> Mapping[str, Containers] | None:
        """Return the container counts of the RM at `base`; None if not available. Never raises."""
        if not self.settings.task_lengths or now_s < self._counts_again_s:
            return None
        try:
            counts = queue_containers(self.client.rest.http, only=base)
        except (Unreachable, Refused, BadAnswer):
            # A slow page delays the poll, so it is requested again only after a pause.
            answered_s = self.clock()
            self._counts_again_s = answered_s + max(REFUSED_S, self.settings.ask_again * (answered_s - now_s))
            return None
        answered_s = self.clock()
        self._counts_again_s = answered_s + self.settings.ask_again * (answered_s - now_s)
        return counts

    def _shared_facts(self, base: str) -> ClusterFacts:
        """Return the facts that the RM at `base` shows of its cluster; facts not shown keep their known values."""
        rest, known = self.client.rest, self.facts
        hosts, name = frozenset[str](), ""
        # These facts are optional: a slow or broken page must not fail the poll.
        with contextlib.suppress(Unreachable, Refused, BadAnswer):
            hosts = frozenset(node.host for node in rest.nodes(only=base))
        with contextlib.suppress(Unreachable):
            name = rm_property(rest.http, base, CLUSTER_ID) or ""
        return ClusterFacts(name or known.name, hosts or known.hosts)

    def _check_cluster(
        self, info: ClusterInfo, base: str, shown: ClusterFacts, looks: Sequence[AppObservation], now_s: float
    ) -> None:
        """Check an RM with a new cluster timestamp; raise OtherCluster if it belongs to another cluster."""
        known, before = self.accounts.apps, self.identity
        up_s = (now_s if info.clock_s is None else info.clock_s) - info.started_on_ms / 1000.0
        why = why_another(
            self.facts,
            shown,
            shares_apps=any(look.app in known for look in looks),
            strangers=[look.app for look in looks if look.app not in known and self.accounts.is_older(look, now_s)],
            restarted=before is not None and before[0] == base and self.accounts.is_since_last_look(up_s, now_s),
        )
        if why and ACCEPT_OTHER not in self.settings.accept:
            raise another_cluster(base, why)

    def _recognise(self, identity: list[Any]) -> None:
        known, self.identity, self.news = self.identity, identity, ""
        if known is None or known == self.identity:
            return
        address = self.identity[0]
        self.news = (
            f"the ResourceManager at {address} began anew"
            if known[0] == address
            else f"{address} answers, {known[0]} did"
        )
        self._watcher.forget_counts()


def check_cluster(client: RmClient, settings: ControlSettings, store: LedgerStore) -> None:
    """Check that the RM belongs to the ledger's cluster. Raises OtherCluster, and request errors.

    For callers that do not poll in every period, such as a release on the command line.
    """
    known = store.document("rm")
    if not isinstance(known, list):
        return
    facts = ClusterFacts.restored(store.document("cluster"))
    RmPoller(client, settings, SteadyClock(), store.accounts(), known, facts=facts).check_cluster()


def open_rm_poller(client: RmClient, context: ObserverContext) -> RmPoller:
    """Return the observer of a controller of a ResourceManager."""
    return RmPoller(
        client,
        context.settings,
        context.clock,
        context.accounts,
        context.identity,
        context.capacity,
        on_info=context.on_info,
        on_queues=context.on_queues,
        facts=context.facts,
    )


def _age_s(started_on_ms: int, apps: AppList) -> float:
    """Return the seconds since an RM was started, derived from its running applications (inf: unknown)."""
    moments_ms = [app.started_ms + app.elapsed_ms for app in apps if not app.final and app.elapsed_ms is not None]
    return (max(moments_ms) - started_on_ms) / 1000.0 if moments_ms else math.inf
