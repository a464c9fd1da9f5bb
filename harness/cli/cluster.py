"""``yarnfair cluster``: a cluster of local processes, containers, or other hosts. Parsing and printing only."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.access import Access, access_options
from harness.cli.output import (
    Number,
    json_option,
    named_values,
    options,
    print_result,
    say,
    scheduler_option,
)
from harness.clusters.backends import BACKENDS, backend_class, check_jars, make_cluster

if TYPE_CHECKING:
    from harness.clusters.accelerators import Accelerators
    from harness.clusters.base import Cluster, Finding
    from harness.clusters.status import ClusterStatus
    from harness.predict.support import Row
    from harness.yarn.files import ConfigStore

_backend = click.option(
    "--backend",
    type=click.Choice(list(BACKENDS)),
    required=True,
    help="Processes of this machine, containers by Docker Compose, or other hosts.",
)
_backend_or_rm = click.option(
    "--backend",
    type=click.Choice(list(BACKENDS)),
    help="Processes of this machine, containers by Docker Compose, or other hosts; not needed with --rm.",
)
_inventory = click.option("--inventory", type=click.Path(), help="YAML file that names the hosts (ssh).")
_now = click.option("--inventory", type=click.Path(), help="How to reach its hosts now, if that has changed (ssh).")
_state = click.option(
    "--state",
    type=click.Path(),
    help="The cluster's folder (default: ~/.local/state/yarnfair/BACKEND). `down` removes it.",
)


#: Options that describe the wanted cluster.
_settings = options(
    click.option("--nodes", type=int, default=2, show_default=True, help="NodeManagers."),
    click.option("--memory-mb", type=int, default=4096, show_default=True, help="What a node advertises, MiB."),
    click.option("--vcores", type=int, default=4, show_default=True, help="What a node advertises."),
    click.option("--minimum-allocation-mb", type=int, default=256, show_default=True, help="Smallest container."),
    click.option("--rm-heap-mb", type=int, default=256, show_default=True, help="The RM's heap (local)."),
    click.option("--nm-heap-mb", type=int, default=128, show_default=True, help="A NodeManager's heap (local)."),
    click.option("--http-port", type=click.IntRange(1, 65535), help="The RM's REST port (default: a free one)."),
    click.option("--client-port", type=click.IntRange(1, 65535), help="The RM's client RPC port."),
    click.option("--admin-port", type=click.IntRange(1, 65535), help="The RM's admin RPC port."),
    click.option(
        "--allocations",
        type=click.Path(),
        help="Scheduler's file to start with (allocation file, or capacity-scheduler.xml).",
    ),
    click.option("--disk-checks", is_flag=True, help="Nodes with disks 90 % full become UNHEALTHY."),
)
_docker = click.option(
    "--backend", type=click.Choice(["docker"]), default="docker", help="Clusters of containers only."
)


def _cluster(backend: str, state: str | None, inventory: str | None = None) -> Cluster:
    from harness.clusters.state import StateFolder, default_folder

    folder = StateFolder(Path(state) if state else default_folder(backend))
    found = folder.load() if folder.folder.exists() else None
    if found is not None and found.backend != backend:
        raise click.UsageError(f"{folder.folder} holds a cluster of the backend {found.backend}")
    return make_cluster(backend, folder, inventory=inventory, progress=say)


def _ports(settings: dict[str, Any]) -> dict[str, int]:
    """Remove the RM's ports from the settings and return those that are given."""
    given = {name: settings.pop(f"{name}_port") for name in ("http", "client", "admin")}
    return {name: port for name, port in given.items() if port is not None}


@click.group()
def cluster() -> None:
    """A YARN cluster, here or on other hosts: up, status, doctor, down.

    Adopt and release a cluster that is already running; grow and shrink one of containers.
    """


@cluster.command(short_help="Start a cluster; wait until all its nodes are RUNNING.")
@_backend
@_state
@_inventory
@_settings
@scheduler_option
@click.option("--hadoop", metavar="VERSION", help="Hadoop's release: 3.4.2, 3.4.3 or 3.5.0 [3.5.0].")
@click.option("--preemption", is_flag=True, help="Switch the scheduler's preemption on.")
@click.option("--history", is_flag=True, help="A JobHistoryServer too (local): it knows tasks, for `assess --history`.")
@click.option("--property", "properties", multiple=True, metavar="NAME=VALUE", help="Written into yarn-site.xml.")
@click.option("--jar", "jars", multiple=True, type=click.Path(), help="Added to the RM's class path.")
@click.option("--in-rm-policy", help="ltrf, naive-hltrf or hltrf inside the Fair Scheduler (compiled with the JDK).")
@click.option("--in-rm-set", "in_rm_settings", multiple=True, metavar="NAME=VALUE", help="A setting of that policy.")
@click.option("--timeout", "timeout_s", type=Number(1, 3600), default=180, show_default=True, help="Seconds.")
@click.option("--keep", is_flag=True, help="Leave a cluster that does not come up for `doctor` to examine.")
@json_option
def up(
    *,
    backend: str,
    state: str | None,
    inventory: str | None,
    timeout_s: float,
    keep: bool,
    properties: tuple[str, ...],
    jars: tuple[str, ...],
    in_rm_policy: str | None,
    in_rm_settings: tuple[str, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Start a cluster and wait until all its nodes are RUNNING (exit code 5 when they are not in time)."""
    from harness.clusters.site import check_property
    from harness.clusters.state import ClusterSpec
    from harness.yarn.releases import release_of

    pairs = named_values(properties, "--property")
    for name, value in pairs.items():
        check_property(name, value)
    spec = ClusterSpec(ports=_ports(settings), properties=pairs, jars=jars, **settings)
    if spec.hadoop is not None:
        spec = replace(spec, hadoop=release_of(spec.hadoop).version)
    if spec.scheduler != "fair":
        able = [name for name in BACKENDS if spec.scheduler in backend_class(name).schedulers]
        if backend not in able or in_rm_policy is not None:
            only = f"is for --backend {' or '.join(able)}, without --in-rm-policy"
            raise click.UsageError(f"--scheduler {spec.scheduler} {only}")
    if spec.history and not backend_class(backend).has_history:
        able = [name for name in BACKENDS if backend_class(name).has_history]
        instead = "; of Docker it is a profile (docs/how-to/docker-cluster.md)" if backend == "docker" else ""
        raise click.UsageError(f"--history is for --backend {' or '.join(able)}{instead}")
    if in_rm_settings and in_rm_policy is None:
        raise click.UsageError("--in-rm-set without --in-rm-policy")
    if jars or in_rm_policy is not None:
        check_jars(backend)
    if in_rm_policy is not None:
        from harness.clusters.inrm import with_policy

        spec = with_policy(spec, in_rm_policy, named_values(in_rm_settings, "--in-rm-set"), progress=say)
    _show(_cluster(backend, state, inventory).up(spec, timeout_s=timeout_s, keep=keep), as_json, with_duration=True)


@cluster.command(short_help="Its RM, its nodes, memory of each part.")
@_backend
@_state
@_now
@json_option
def status(backend: str, state: str | None, inventory: str | None, as_json: bool) -> int:
    """Show the state of the cluster: its RM, its nodes, the memory of each process. Exit code 1 when it is not up."""
    found = _cluster(backend, state, inventory).status()
    if found is None:
        print_result(as_json, {"backend": backend, "up": False, "problem": "no cluster here"}, ["no cluster here"])
        return 1
    _show(found, as_json)
    return 0 if found.up else 1


def _show(status: ClusterStatus, as_json: bool, *, with_duration: bool = False) -> None:
    """Print a status; ``with_duration`` also how long `up` has waited for the nodes."""
    from harness.clusters.daemons import SCHEDULERS

    document = status.document()
    # An adopted cluster has no requested number of nodes, and `up` did not wait for them.
    wanted = f" of {status.wanted}" if status.wanted else ""
    took = f", after {status.running_s:g} s" if with_duration and status.running_s is not None else ""
    lines = [f"{document['nodes_running']}{wanted} nodes RUNNING{took}"]
    admin, client = status.rpc("admin") or "-", status.rpc("client") or "-"
    lines.append(f"rest {status.address.rest}  admin {admin}  client {client}")
    if status.history is not None:
        lines.append(f"history {status.history}")
    kind = "capacity" if status.scheduler_file == SCHEDULERS["capacity"].file_name else "allocation"
    lines.append(f"{kind} file {status.allocation_file}")
    if status.problem:
        lines.append(f"the ResourceManager: {status.problem}")
    parts = [document["rm"], *document["nodes"], *document["others"]]
    width = max(10, *(len(part["name"] or "-") for part in parts))
    lines.append(f"{'part':<{width}} {'runs as':<14} {'memory MB':>9}  node")
    for part in parts:
        memory = "" if part["memory_mb"] is None else f"{part['memory_mb']:.0f}"
        node = f"{part.get('id')} {part.get('state')}" if part.get("state") else ""
        # Of a cluster that others have started it is not known how its nodes are run.
        runs_as = part["runs_as"] or ("ended" if part["name"] else "-")
        lines.append(f"{part['name'] or '-':<{width}} {runs_as:<14} {memory:>9}  {node}")
    if status.enforce is not None:
        lines.append("for the configuration of `yarnfair enforce`:")
        lines += [f"  {key}: {json.dumps(value)}" for key, value in status.enforce.items()]
    print_result(as_json, document, lines)


@cluster.command(short_help="What makes a cluster fail, and how to mend it.")
@_backend_or_rm
@_state
@_settings
@click.option("--am-memory-mb", type=click.IntRange(1), help="Of one ApplicationMaster (default: smallest container).")
@click.option("--rm", "rest_address", help="Examine this running ResourceManager only, whoever started it.")
@click.option("--verbose", is_flag=True, help="Name every queue and setting where a text names the first three.")
@access_options
@json_option
def doctor(
    backend: str | None,
    state: str | None,
    rest_address: str | None,
    access: Access,
    allocations: str | None,
    verbose: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Find what would make a cluster fail, or makes this one fail, and how to mend it. Exit code 1 for any problem.

    The options describe the wanted cluster; for a cluster that `up` has started here they are known. With --rm the
    answer begins with what each command does with the features of that cluster.
    """
    from harness.clusters.doctor import Wanted, examine_cluster, examine_machine, examine_rm, examine_settings
    from harness.clusters.doctor_access import examine_access
    from harness.model.resources import ZERO
    from harness.yarn.files import LocalStore
    from harness.yarn.http import base_url

    if rest_address is not None:
        address = base_url(rest_address)
        its_file = LocalStore(Path(allocations)) if allocations else None
        can_use = _can_use(address, access, its_file)
        findings = list(examine_rm(address, access=access, capacity_file=its_file))
        if not any(found.check == "rm" and found.result == "problem" for found in findings):
            findings += examine_access(address, access)
        return _report(findings, as_json, can_use, verbose=verbose)
    if access:
        raise click.UsageError("--kerberos, --keytab and --ca-file go with --rm")
    if backend is None:
        raise click.UsageError(
            "give --rm URL of a running ResourceManager, or --backend of a cluster of this machine's"
        )
    sizes = ("nodes", "memory_mb", "vcores", "minimum_allocation_mb", "rm_heap_mb", "nm_heap_mb")
    for name in sizes:
        if settings[name] < 1:
            raise click.UsageError(f"--{name.replace('_', '-')} must be at least 1")
    own = _cluster(backend, state)
    known = own.folder.load() if own.folder.folder.exists() else None
    wanted = Wanted(backend=backend, ports=_ports(settings), **settings)
    file: Path | ConfigStore | None = Path(allocations) if allocations else None
    found = own.status() if known is not None else None
    if known is not None and found is not None:
        its = {name: getattr(known.spec, name) for name in (*sizes, "disk_checks")}
        wanted = replace(wanted, **its, ports={})
        file = own.place()
        if not own.here:
            totals = [node.total for node in found.nodes if node.state == "RUNNING"]
            if totals:
                # Hosts may have nodes of different sizes, and `up` requested none of an adopted cluster.
                least_mb = min(total.memory_mb for total in totals)
                wanted = replace(wanted, memory_mb=least_mb, capacity=sum(totals, ZERO))
    findings = list(examine_machine(wanted, own.folder.folder, running=found is not None))
    findings += examine_settings(wanted, file)
    if found is not None:
        findings += examine_cluster(found)
    return _report(findings, as_json, verbose=verbose)


def _can_use(address: str, access: Access, its_file: ConfigStore | None) -> list[Row]:
    """Return what each command can do with the features of a cluster; empty if the cluster does not show them."""
    from harness.clusters.doctor import QUICK
    from harness.predict.support import seen
    from harness.yarn.rest import RestClient

    with RestClient([address], replace(QUICK, **access)) as rest:
        return seen(rest, its_file)


def _report(findings: list[Finding], as_json: bool, can_use: list[Row] | None = None, *, verbose: bool = False) -> int:
    from harness.predict.support import lines as can_use_lines

    problems = [finding for finding in findings if finding.result == "problem"]
    lines = [*can_use_lines(can_use), ""] if can_use else []
    for finding in findings:
        lines.append(f"{finding.result:<8} {finding.check}: {finding.what}")
        if finding.hint and finding.result != "fine":
            lines.append(f"{'':<8} hint: {finding.hint}")
        if verbose and finding.queues:
            lines.append(f"{'':<8} queues: {', '.join(finding.queues)}")
            lines += [f"{'':<8} settings: {', '.join(finding.settings)}"] if finding.settings else []
        elif finding.shortened:
            lines.append(f"{'':<8} --verbose and --json name all {len(finding.queues)} queues")
    rows, wrong = ([asdict(finding) for finding in of] for of in (findings, problems))
    document: dict[str, Any] = {"healthy": not problems, "findings": wrong, "checks": rows}
    if can_use is not None:
        document["can_use"] = {row.feature.key: row.document() for row in can_use}
    print_result(as_json, document, lines, hang=9)
    return 1 if problems else 0


def _accelerators(state: str | None) -> Accelerators:
    from harness.clusters.accelerators import Accelerators
    from harness.clusters.compose import DockerCluster

    own = _cluster("docker", state)
    assert isinstance(own, DockerCluster)
    return Accelerators(own, progress=say)


@cluster.command(short_help="Let nodes of a type join the Docker cluster.")
@_docker
@_state
@click.option("--type", "name", required=True, help="Name of the node type; nodes are called TYPE-1, TYPE-2 ...")
@click.option("--nodes", type=click.IntRange(1, 100), default=1, show_default=True, help="How many join.")
@click.option("--cpus", type=Number(0, 10_000, min_open=True), help="CPU limit of each, in processors (default: none).")
@click.option("--memory-mb", type=int, default=4096, show_default=True, help="What a node advertises, MiB.")
@click.option("--vcores", type=int, default=4, show_default=True, help="What a node advertises.")
@click.option("--limit-mb", type=int, default=768, show_default=True, help="Memory limit of the container, MiB.")
@click.option("--timeout", "timeout_s", type=Number(1, 3600), default=120, show_default=True, help="Seconds.")
@json_option
def grow(backend: str, state: str | None, nodes: int, timeout_s: float, as_json: bool, **of_type: Any) -> None:
    """Let nodes of a type join the Docker cluster that is up (exit code 5 when they are not RUNNING in time)."""
    from harness.clusters.accelerators import NodeType

    wanted = NodeType(**of_type)
    joined = _accelerators(state).grow(wanted, nodes, timeout_s=timeout_s)
    document = {"joined": [asdict(node) for node in joined], "type": asdict(wanted)}
    print_result(as_json, document, [f"{node.name:<20} {node.id}" for node in joined])


@cluster.command(short_help="Let nodes that `grow` has added leave again.")
@click.argument("nodes", nargs=-1)
@_docker
@_state
@click.option("--type", "kind", help="Nodes of this type, instead of names: the latest ones.")
@click.option("--count", type=click.IntRange(1, 100), help="With --type: how many (default: all).")
@click.option(
    "--drain",
    "drain_s",
    type=Number(0, 86_400),
    default=60,
    show_default=True,
    help="Seconds for what runs there to end; then it is killed (0: at once).",
)
@json_option
def shrink(
    nodes: tuple[str, ...],
    backend: str,
    state: str | None,
    kind: str | None,
    count: int | None,
    drain_s: float,
    as_json: bool,
) -> None:
    """Let NODES that `grow` has added leave the Docker cluster again, drained first."""
    if bool(nodes) == bool(kind) or (count is not None and kind is None):
        raise click.UsageError("give names of nodes, or --type (and --count)")
    own = _accelerators(state)
    names = list(dict.fromkeys(nodes))
    if kind is not None:
        names = sorted(
            (name for name, its in own.nodes().items() if its == kind), key=lambda name: int(name.rpartition("-")[2])
        )
        names = names[-count:] if count is not None else names
    left = own.shrink(names, drain_s=drain_s)
    lines = [
        f"{name} left" + (f"; {killed} container(s) were killed" if killed else "") for name, killed in left.items()
    ]
    print_result(as_json, {"left": left}, lines or ["there is no such node"])


@cluster.command(short_help="End all that the cluster started; remove its folder.")
@_backend
@_state
@_now
@json_option
def down(backend: str, state: str | None, inventory: str | None, as_json: bool) -> int:
    """End everything that the cluster started, and remove its folder."""
    own = _cluster(backend, state, inventory)
    was = own.folder.folder.exists()
    left = own.down()
    text = "down" if was else "there was nothing to take down"
    text = f"could not be removed: {', '.join(map(str, left))}" if left else text
    print_result(as_json, {"backend": backend, "was_there": was, "left_behind": left}, [text])
    return 1 if left else 0


def _host_port(text: str, option: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise click.UsageError(f"{option} {text[:60]}: give it as HOST:PORT")
    return host, int(port)


@cluster.command(short_help="Take a running cluster as it is, over SSH.")
@_state
@click.option("--inventory", type=click.Path(), required=True, help="YAML file with the ResourceManager's host.")
@click.option("--rest", required=True, metavar="HOST:PORT", help="The RM's REST address as its own host sees it.")
@click.option("--admin", metavar="HOST:PORT", help="The RM's admin RPC address (none: its own file poll).")
@click.option("--client", metavar="HOST:PORT", help="The RM's client RPC address, to read weights back.")
@click.option("--allocations", required=True, metavar="PATH", help="The allocation file on the RM's host.")
@json_option
def adopt(
    state: str | None,
    inventory: str,
    rest: str,
    admin: str | None,
    client: str | None,
    allocations: str,
    as_json: bool,
) -> None:
    """Take a running cluster as it is: tunnels to its RM, and a backup of its allocation file.

    Nothing but the allocation file will be touched; `release` puts the backup back.
    """
    from harness.clusters.ssh import SshCluster

    if not allocations.startswith("/"):
        raise click.UsageError("--allocations: give the absolute path on the host")
    own = _cluster("ssh", state, inventory)
    assert isinstance(own, SshCluster)
    found = own.adopt(
        _host_port(rest, "--rest"),
        allocations,
        admin=_host_port(admin, "--admin") if admin else None,
        client=_host_port(client, "--client") if client else None,
    )
    _show(found, as_json)


@cluster.command(short_help="Let go of an adopted cluster; nothing stops.")
@_state
@json_option
def release(state: str | None, as_json: bool) -> None:
    """Put an adopted cluster's allocation file back as it was, end the tunnels, stop nothing."""
    from harness.clusters.ssh import SshCluster

    own = _cluster("ssh", state)
    assert isinstance(own, SshCluster)
    changed = own.release()
    text = "released; the allocation file is as it was" + ("" if changed else " (nobody had changed it)")
    print_result(as_json, {"released": True, "put_back": changed}, [text])
