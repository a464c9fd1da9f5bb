"""Find what prevents a cluster from working, and say how to fix it.

Each check examines one thing and results in "fine", "problem" or "note" (worth knowing, harmless here). Before a
cluster is up, the machine, the ports and the settings are checked; while one runs, its ResourceManager's answers. For a
cluster on other hosts (ssh), this machine is only checked for what `up` needs: jars to copy, ports for the tunnels.
"""

from __future__ import annotations

import email.utils
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from harness.base.errors import InputError
from harness.base.words import counted
from harness.clusters.backends import backend_class
from harness.clusters.base import Finding
from harness.clusters.daemons import SCHEDULERS, port_taken
from harness.clusters.processes import free_mb
from harness.clusters.status import ClusterStatus
from harness.model.data import data_path
from harness.model.resources import ZERO, Resource
from harness.yarn.answers import NodeStatus
from harness.yarn.capacity.properties import ASYNCHRONOUS, parse_configuration, shown_properties, unseen_templates
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.source import StoreSource
from harness.yarn.capacity.traps import find_traps
from harness.yarn.capacity.validate import is_configuration
from harness.yarn.discover import rm_property
from harness.yarn.errors import BadAnswer, NoActiveRm, Refused, Unreachable
from harness.yarn.fair.preemption import is_on
from harness.yarn.files import ConfigStore, LocalStore
from harness.yarn.holds import holds_of_queue, look
from harness.yarn.http import HttpOptions
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.releases import ASYNCHRONOUS_SINCE
from harness.yarn.rest import RestClient, shown_site
from harness.yarn.validation import check_document

#: yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage of Hadoop 3.4.
DISK_LIMIT_PERCENT = 90.0
#: With a larger difference, files that one side writes seem to come from the future. HTTP dates have whole seconds.
SKEW_LIMIT_S = 2.0
#: The memory of a JVM besides its heap, as measured.
_JVM_EXTRA_MB = 130
#: At most this many queues with too little room for ApplicationMasters get a finding each; another one lists the rest.
_MOST_NARROW = 10
QUICK = HttpOptions(connect_timeout_s=2, read_timeout_s=10, deadline_s=12, attempts=1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The settings to examine: those of a planned cluster, or of the running one. MiB. They are not validated yet."""

    backend: str
    nodes: int
    memory_mb: int
    vcores: int
    minimum_allocation_mb: int
    rm_heap_mb: int
    nm_heap_mb: int
    disk_checks: bool
    ports: Mapping[str, int]
    am_memory_mb: int | None = None  # of one AM; None: the minimum allocation
    capacity: Resource | None = None  # of all nodes; None: nodes of memory_mb and vcores


def examine_machine(wanted: Wanted, folder: Path, *, running: bool) -> Iterator[Finding]:
    """Check tools, ports, disk and memory of this machine.

    `running`: the cluster is up, so its own ports are in use.
    """
    backend = backend_class(wanted.backend)
    yield from backend.examine(running=running)
    if not running:
        yield from _ports(wanted)
        yield from backend.examine_ports(wanted.ports)
        if backend.here:
            yield _memory(wanted)
    if backend.here:
        yield _disk(wanted, folder)


def _ports(wanted: Wanted) -> Iterator[Finding]:
    for name, port in wanted.ports.items():
        if port_taken(port):
            hint = f"end what listens there (ss -ltnp 'sport = :{port}'), or give another --{name}-port, or none"
            yield Finding("ports", "problem", f"port {port} ({name}) is taken on 127.0.0.1", hint)
        else:
            yield Finding("ports", "fine", f"port {port} ({name}) is free")
    if not wanted.ports:
        yield Finding("ports", "fine", "free ports will be chosen")


def _memory(wanted: Wanted) -> Finding:
    need = wanted.rm_heap_mb + wanted.nodes * wanted.nm_heap_mb + (wanted.nodes + 1) * _JVM_EXTRA_MB
    have = free_mb()
    if have is None:
        return Finding("memory", "note", "this system does not say how much memory is free")
    if need > have:
        hint = "take fewer --nodes or smaller heaps, or end other programs"
        return Finding("memory", "problem", f"the daemons need some {need} MB, {have} MB are free", hint)
    return Finding("memory", "fine", f"the daemons need some {need} MB of {have} MB free")


def _disk(wanted: Wanted, folder: Path) -> Finding:
    try:
        where = backend_class(wanted.backend).disk(folder)
    except InputError as error:
        return Finding("disk", "note", f"not looked at: {error.what}")
    while not where.exists():
        where = where.parent
    try:
        space = os.statvfs(where)
    except OSError as error:
        return Finding("disk", "note", f"{where} cannot be looked at: {error.strerror}")
    # As Hadoop computes it: the space that an ordinary user may still write counts as free.
    percent = 100.0 * (1 - space.f_bavail / space.f_blocks) if space.f_blocks else 0.0
    said = f"the disk of {where} is {percent:.0f} % full"
    if percent < DISK_LIMIT_PERCENT:
        return Finding("disk", "fine", said)
    what = f"{said}: from {DISK_LIMIT_PERCENT:.0f} % on a NodeManager's disk check makes it UNHEALTHY"
    if wanted.disk_checks:
        return Finding("disk", "problem", what, "free some space, or do without --disk-checks")
    return Finding("disk", "note", f"{what} (this cluster does without that check)", "free some space")


def examine_settings(wanted: Wanted, allocations: Path | ConfigStore | None) -> Iterator[Finding]:
    """Check the minimum allocation, and whether each queue can run a second application beside a first one.

    `allocations`: the allocation file, on this machine or on the host of a cluster elsewhere. None: the file that a
    new cluster would get.
    """
    if wanted.memory_mb < wanted.minimum_allocation_mb:
        what = f"a node's {wanted.memory_mb} MB are below the minimum allocation of {wanted.minimum_allocation_mb} MB"
        yield Finding(
            "minimum-allocation", "problem", f"{what}: no container fits", "raise --memory-mb or lower the other"
        )
    else:
        fit = min(wanted.memory_mb // wanted.minimum_allocation_mb, wanted.vcores)
        bound = "; its vcores are the bound" if fit < wanted.memory_mb // wanted.minimum_allocation_mb else ""
        yield Finding("minimum-allocation", "fine", f"{fit} of the smallest containers fit on a node{bound}")
    capacity = wanted.capacity or Resource(wanted.memory_mb * wanted.nodes, wanted.vcores * wanted.nodes)
    if not isinstance(allocations, ConfigStore):
        allocations = LocalStore(allocations or data_path("docker", "scheduler", "fair-scheduler.xml"))
    is_capacity = Path(allocations.name).name == SCHEDULERS["capacity"].file_name
    check = "capacity-file" if is_capacity else "allocation-file"
    try:
        data = allocations.read()
    except InputError as error:
        hint = "see that it is there and can be read: a running RM keeps what it has read, a new one does not start"
        yield Finding(check, "problem", error.line(), hint)
        return
    if is_capacity or is_configuration(data):
        # A Capacity Scheduler's limit for ApplicationMasters follows the capacities; `find_traps` reports that.
        yield from _capacity_file(data, allocations.name)
        return
    yield from _am_shares(wanted, capacity, data, allocations)


def _capacity_file(data: bytes, source: str) -> Iterator[Finding]:
    """Return what a ResourceManager refuses in a capacity-scheduler.xml, and the dangers of steering it."""
    verdict = check_document(data, source=source)
    for error in verdict.errors[:10]:
        yield Finding("capacity-file", "problem", f"{source}: {error.what}", error.hint)
    if verdict.errors:
        return
    yield Finding("capacity-file", "fine", f"the ResourceManager takes {source}")
    try:
        values = parse_configuration(data, source=source).values
        found = find_traps(values, {}, queue_tree(values, source=source))
    except InputError as error:
        yield Finding("capacity", "note", f"{source} cannot be steered: {error.what}", error.hint)
        return
    # They do not matter for a cluster that nobody steers, so they are notes and no problems of this file.
    for trap in found:
        yield Finding(trap.name, "note", f"for `enforce`: {trap.what}", trap.hint, trap.queues, trap.settings)


def _am_shares(wanted: Wanted, capacity: Resource, data: bytes, allocations: ConfigStore) -> Iterator[Finding]:
    """Check FSLeafQueue.canRunAppAM: the AMs of a queue fit into its fair share times maxAMShare."""
    from harness.sim.shares import fair_shares
    from harness.yarn.fair.manager import QueueManager
    from harness.yarn.fair.parse import parse_allocations

    try:
        tree = QueueManager(parse_allocations(data, source=allocations.name)).tree()
        shares = fair_shares(tree, capacity)
    except InputError as error:
        yield Finding(
            "allocation-file", "problem", error.line(), "see `yarnfair validate`; the RM does not start with it"
        )
        return
    for refused in tree.refused:
        yield Finding("allocation-file", "problem", f"the RM does not make queue {refused.path}: {refused.why}")
    unit = max(1, wanted.minimum_allocation_mb)
    am_mb = -(-max(wanted.am_memory_mb or 0, wanted.minimum_allocation_mb) // unit) * unit
    narrow = []
    for queue in tree.leaves():
        share = shares[queue.path].instantaneous.memory_mb
        if abs(queue.max_am_share + 1.0) < 1e-4 or share == 0:
            continue
        limit = share * queue.max_am_share
        if limit < 2 * am_mb:
            narrow.append((queue.path, limit, share))
    if not narrow:
        yield Finding("am-share", "fine", f"every queue can run two applications with ApplicationMasters of {am_mb} MB")
    for path, limit, share in narrow[:_MOST_NARROW]:
        many = "no application" if limit < am_mb else "no second application"
        yield Finding(
            "am-share",
            "problem",
            f"with all queues busy {path} starts {many}: ApplicationMasters may take {limit:.0f} MB of its {share} MB, "
            f"one takes {am_mb} MB",
            "raise maxAMShare or queueMaxAMShareDefault in the allocation file, its weight, or the nodes' memory",
        )
    if more := [path for path, _, _ in narrow[_MOST_NARROW:]]:
        yield Finding(
            "am-share",
            "problem",
            f"{counted(len(more), 'queue')} more {'has' if len(more) == 1 else 'have'} room for at most one "
            f"ApplicationMaster each, with all queues busy: {', '.join(more)}",
            "as for the others",
        )


def examine_cluster(status: ClusterStatus) -> Iterator[Finding]:
    """Check of a cluster that was brought up that its RM answers, parts and nodes are healthy, and clocks agree."""
    known = (status.rm, *status.parts, *(status.others if status.history is not None else ()))
    dead = [part for part in known if part.runs_as is None]
    for part in dead[:5]:
        what = f"{part.name} ended: {part.last_words}"
        if "satisfy minimum allocations" in what:
            # The RM rejects such a node when it registers, so the node never appears among its nodes.
            hint = "raise --memory-mb and --vcores, or lower yarn.scheduler.minimum-allocation-mb or -vcores"
            yield Finding("minimum-allocation", "problem", what, hint)
            continue
        hint = backend_class(status.backend).logs(status)
        yield Finding("parts", "problem", what, f"{hint}, then `yarnfair cluster down` and `up`")
    if not dead:
        yield Finding("parts", "fine", f"the ResourceManager and {len(status.parts)} NodeManagers run")
    own = status.info is not None and (status.recorded_id is None or status.info.id == status.recorded_id)
    if status.info is not None and (status.rm.runs_as is None or not own):
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(status.info.started_on_ms / 1000))
        yield Finding(
            "right-rm",
            "problem",
            f"another ResourceManager answers at {status.address.rest}: id {status.info.id}, started {started}",
            "it was restarted, or another program took the port: `yarnfair cluster down`, then `up`",
        )
    elif status.info is not None:
        yield Finding("right-rm", "fine", f"{status.address.rest} is this cluster's (id {status.info.id})")
    yield from examine_rm(status.address.rest, wanted_nodes=status.wanted)
    if not backend_class(status.backend).here:
        return  # the file is on the RM's host (`examine_settings` reads it there), with that host's times
    file = Path(status.scheduler_folder) / status.scheduler_file
    try:
        ahead = file.stat().st_mtime - time.time()
    except OSError:
        yield Finding("allocation-file", "problem", f"{file} is gone", "write it again: the RM keeps what it has read")
    else:
        if ahead > SKEW_LIMIT_S:
            what = f"{file} has a time {ahead:.0f} s in the future: the RM's poll passes it over until then"
            yield Finding("clock", "problem", what, "set the clocks by NTP, and touch the file")


def examine_rm(
    rest_address: str,
    *,
    wanted_nodes: int | None = None,
    access: Mapping[str, Any] | None = None,
    capacity_file: ConfigStore | None = None,
) -> Iterator[Finding]:
    """Check any ResourceManager: it answers and is active, its nodes are healthy, clocks agree, and containers fit.

    For a standby, the active RM that it names is examined. ``access``: arguments of HttpOptions: Kerberos, TLS.
    ``capacity_file``: where the RM's capacity-scheduler.xml is, if it stores its configuration there.
    """
    with RestClient([rest_address], replace(QUICK, **(access or {}))) as rest:
        try:
            info = rest.info()
        except NoActiveRm as error:
            yield from (standby := _of_standby(rest, rest_address, error))
            if any(finding.result == "problem" for finding in standby):
                return
            info = rest.info()
        except (Unreachable, Refused, BadAnswer) as error:
            yield _no_rm(rest_address, error)
            return
        try:
            before = time.time()
            answer = rest.http.request("GET", "/ws/v1/cluster/metrics", repeatable=True)
            after = time.time()
            nodes = rest.nodes(("NEW", "RUNNING", "UNHEALTHY", "LOST"))
        except (Unreachable, Refused, BadAnswer) as error:
            yield _no_rm(rest_address, error)
            return
        yield Finding("rm", "fine", f"Hadoop {info.version} is active at {rest.http.current}")
        yield _skew(answer.headers.get("Date"), before, after)
        yield from _nodes(nodes, wanted_nodes)
        yield from _minimum(rest, nodes)
        yield from _held(rest)
        yield from _traps(rest, info.hadoop, capacity_file)


def _no_rm(rest_address: str, error: InputError) -> Finding:
    hint = error.hint or "look into the RM's log; a taken port or a broken allocation file ends it at its start"
    return Finding("rm", "problem", f"no ResourceManager answers: {error.what} ({rest_address})", hint)


def _of_standby(rest: RestClient, rest_address: str, error: NoActiveRm) -> list[Finding]:
    """Report an RM that answers and is not active. The client continues with the active one that it names, if any."""
    try:
        version = f"Hadoop {rest.info_of(rest.http.bases[0]).version}"
    except (Unreachable, Refused, BadAnswer):
        version = "a ResourceManager"
    said = f"{version} answers at {rest_address} and is not the active one ({error.what})"
    try:
        # It redirects every other page to the active one.
        rest.metrics()
        rest.info()
    except (Unreachable, Refused, BadAnswer):
        hint = "give the other ResourceManager's address; where both are on standby, look at their election (ZooKeeper)"
        return [Finding("rm", "problem", f"{said}, and none that it names is", hint)]
    return [Finding("rm", "note", f"{said}: {rest.http.current}, which it names, is examined", "give that address")]


def _held(rest: RestClient) -> Iterator[Finding]:
    """Report queues that are held by a limit: as a problem if nothing of the queue runs, otherwise as a note."""
    try:
        facts = look(rest)
    except (Unreachable, Refused, BadAnswer):
        return  # another check reports whether it answers
    waiting = 0
    for path, queue in facts.status.queues.items():
        if not queue.leaf:
            continue
        for hold in holds_of_queue(facts, path):
            waiting += 1
            stuck = queue.used == ZERO and hold.kind in ("am-share", "user-am-share", "maximum", "state")
            what = f"{path} waits and gets nothing: " if stuck else f"{path} waits: "
            result: Literal["problem", "note"] = "problem" if stuck else "note"
            yield Finding("held", result, f"{what}{hold.what}", f"{hold.setting}: {_lower(hold.mend)}")
    if not waiting:
        yield Finding("held", "fine", "no queue that waits is held by a limit")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _traps(rest: RestClient, hadoop: tuple[int, int], capacity_file: ConfigStore | None) -> Iterator[Finding]:
    """Report the dangers of steering a scheduler.

    For a Fair Scheduler only those that the ResourceManager itself shows.
    """
    whole, unseen = True, list[str]()
    try:
        if rest.scheduler().type != CAPACITY:
            yield from _fair_preemption(rest)
            return
        if capacity_file is not None:
            values: Mapping[str, str] = parse_configuration(capacity_file.read(), source=capacity_file.name).values
            source = capacity_file.name
        else:
            store = StoreSource(rest.http)
            source = store.name
            try:
                values = store.read().values
            except Refused:
                # An RM that stores its configuration in a file (the default) does not show it anywhere.
                limits = rest.scheduler_with_limits()[1]
                values, whole, source = shown_properties(limits), False, "/scheduler"
                unseen = unseen_templates(limits)
        site = shown_site(rest)
        traps = find_traps(values, site, queue_tree(values, source=source), hadoop)
    except Refused as error:
        hint = "`yarnfair enforce --dry-run` with its capacity_file names them"
        yield Finding("capacity", "note", f"the Capacity Scheduler's traps cannot be looked for ({error.what})", hint)
        return
    except (Unreachable, BadAnswer):
        # Another check reports whether it answers.
        return
    except InputError as error:
        yield Finding("capacity", "problem", error.what, error.hint or "mend the scheduler's configuration")
        return
    if not whole:
        yield Finding(
            "capacity",
            "note",
            "the Capacity Scheduler keeps its configuration in a file, which REST does not show: what would go wrong "
            "when it is steered is told as far as its queues show it",
            "give --allocations capacity-scheduler.xml for the rest; `enforce` takes the file as `capacity_file`",
        )
        if unseen:
            listed = ", ".join(unseen[:3]) + (f" and {len(unseen) - 3} more" if len(unseen) > 3 else "")
            yield Finding(
                "capacity",
                "note",
                f"the template of the queues that {listed} creates is not shown: its user-limit-factor and "
                "maximum-am-resource-percent are not checked",
                "give --allocations capacity-scheduler.xml",
            )
        # The RM does not show whether a limit of applications is set or follows the share.
        traps = tuple(trap for trap in traps if trap.name != "maximum-applications")
    # If no other queue has a priority, a controller's lift is 1, and only the controller knows whether it wrote it.
    maybe_lifts = {text.strip() for name, text in values.items() if name.endswith(".priority")} <= {"0", "1"}
    blocking: list[str] = []
    seen = whole or ASYNCHRONOUS in (site or {})
    for trap in traps:
        if trap.name == "asynchronous" and not seen:
            since = ".".join(map(str, ASYNCHRONOUS_SINCE))
            yield Finding(
                trap.name,
                "note",
                f"it is not shown whether scheduling is asynchronous, the default since Hadoop {since}: where it is, "
                "the first ask takes an empty cluster whole, and `enforce` writes nothing",
                f"give --allocations capacity-scheduler.xml; {trap.hint}",
            )
            continue
        if trap.name == "priority" and maybe_lifts:
            hint = "`yarnfair enforce --dry-run` with the controller's configuration tells whose it is"
            yield Finding(
                trap.name, "note", f"{trap.what}: yours, or the lift of a controller that runs", hint, trap.queues
            )
            continue
        if trap.blocking:
            blocking.append(trap.name)
        yield Finding(
            trap.name, "problem" if trap.blocking else "note", trap.what, trap.hint, trap.queues, trap.settings
        )
    if blocking:
        yield Finding(
            "capacity",
            "note",
            f"`enforce` writes nothing before this is mended: {', '.join(blocking)}",
            f"mend it, or accept it in the controller's configuration (`accept: [{', '.join(blocking)}]`)",
        )
    elif whole:
        yield Finding("capacity", "fine", "the Capacity Scheduler can be steered")


def _fair_preemption(rest: RestClient) -> Iterator[Finding]:
    """Report whether the Fair Scheduler's preemption is switched on.

    Its time-outs are not checked, because they are in the allocation file.
    """
    site = shown_site(rest)
    if site is None:
        shown = "the ResourceManager does not show (/conf) whether preemption is on"
    else:
        shown = "preemption is on" if is_on(site) else ""
    if shown:
        yield Finding(
            "preemption",
            "note",
            f"{shown}: where the allocation file has time-outs for it, it follows the weights",
            "`yarnfair enforce --dry-run` with the allocation file says whether it writes there",
        )


def _skew(date: str | None, before: float, after: float) -> Finding:
    try:
        # Jetty and Hadoop both write this header, so there may be two values, joined by a comma.
        told = email.utils.parsedate_to_datetime((date or "").split(" GMT")[0] + " GMT").timestamp()
    except (ValueError, TypeError, OverflowError):
        return Finding("clock", "note", "the ResourceManager does not say its time")
    # The header is truncated to the second: the true time is between `told` and one second later.
    skew = told - after if told > after else min(0.0, told + 1.0 - before)
    if abs(skew) > SKEW_LIMIT_S:
        word = "ahead of" if skew > 0 else "behind"
        what = f"the ResourceManager's clock is {abs(skew):.0f} s {word} this machine's"
        return Finding("clock", "problem", f"{what}: it may never load a changed allocation file", "set both by NTP")
    return Finding("clock", "fine", "the ResourceManager's clock agrees with this machine's")


def _nodes(nodes: list[NodeStatus], wanted: int | None) -> Iterator[Finding]:
    sick = [node for node in nodes if node.state == "UNHEALTHY"]
    for node in sick[:5]:
        report = " ".join(node.health_report.split())[:300] or "it does not say why"
        disk = "usable space" in report or "local-dirs" in report or "log-dirs" in report
        hint = (
            "free space on the disk of its local and log folders (90 % full is the limit), or switch "
            "yarn.nodemanager.disk-health-checker.enable off"
            if disk
            else "look into the NodeManager's log"
        )
        yield Finding("nodes", "problem", f"node {node.id} is UNHEALTHY: {report}", hint)
    lost = [node.id for node in nodes if node.state == "LOST"]
    running = sum(node.state == "RUNNING" for node in nodes)
    hint = "look into the NodeManagers' logs: they must reach the RM's tracker port (8031)"
    if running == 0 and not sick:
        yield Finding("nodes", "problem", "no node is RUNNING", hint)
    elif wanted is not None and running + len(sick) < wanted:
        away = f" ({', '.join(lost[:5])} LOST)" if lost else ""
        yield Finding("nodes", "problem", f"{running} of {wanted} nodes are RUNNING{away}", hint)
    elif not sick:
        yield Finding("nodes", "fine", f"{running} nodes are RUNNING")


def _minimum(rest: RestClient, nodes: list[NodeStatus]) -> Iterator[Finding]:
    name = "yarn.scheduler.minimum-allocation-mb"
    try:
        least = int(rm_property(rest.http, None, name) or "")
    except (Unreachable, ValueError):
        yield Finding("minimum-allocation", "note", f"the ResourceManager does not tell {name}")
        return
    small = [node for node in nodes if node.state == "RUNNING" and node.total.memory_mb < least]
    for node in small[:5]:
        what = f"node {node.id} has {node.total.memory_mb} MB, below the minimum allocation of {least} MB"
        hint = f"raise yarn.nodemanager.resource.memory-mb or lower {name}"
        yield Finding("minimum-allocation", "problem", f"{what}: no container fits", hint)
    if not small:
        yield Finding("minimum-allocation", "fine", f"the minimum allocation of {least} MB fits every node")
