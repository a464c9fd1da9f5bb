"""What every engine needs of a cluster before and after a program: its configuration, room, the end of a log."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness.base.errors import InputError, check_ranges
from harness.jobs.engines.attempts import Attempt
from harness.yarn.answers import AppStatus, NodeStatus
from harness.yarn.rest import RestClient

_LOG_LINES = 8
#: How stack frames, log4j's own messages, and the lines that a NodeManager writes around a log begin.
_NOT_SAID = ("at ", "log4j:", "SLF4J", "...", "***", "====", "Container: container_", "End of LogType", "Log")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a job's containers. Memory in MiB."""

    task_mb: int = 512
    am_mb: int = 512
    maps: int = 4
    reduces: int = 2

    def __post_init__(self) -> None:
        check_ranges(self, task_mb=(256, 2**20), am_mb=(384, 2**20), maps=(1, 10**6), reduces=(1, 10**5))


def running_nodes(rest: RestClient) -> list[NodeStatus]:
    """Return the running nodes. Raises InputError if there are none."""
    nodes = [node for node in rest.nodes() if node.state == "RUNNING"]
    if not nodes:
        raise InputError("no node is RUNNING", where=rest.http.current, hint="ask `yarnfair cluster doctor`")
    return nodes


def told_by_yarn(app: AppStatus) -> str:
    """Return the ResourceManager's diagnostics of a failed application."""
    return f"{app.id} {app.final_status}: {' '.join(app.diagnostics.split())[:300] or 'no reason given'}"


def check_memory(sizes: Sizes, rest: RestClient, *, free_mb: int | None) -> None:
    """Refuse programs that do not fit.

    ``free_mb``: free memory of this machine if it runs the nodes; None: it does not.

    Raises InputError for a container larger than any node, or less memory than the concurrent containers need.
    """
    nodes, where = running_nodes(rest), rest.http.current
    largest = max(node.total.memory_mb for node in nodes)
    for what, wanted in (("task", sizes.task_mb), ("application master", sizes.am_mb)):
        if wanted > largest:
            raise InputError(
                f"a {what} asks for {wanted} MB and the largest node has {largest} MB",
                where=where,
                hint="lower --task-mb or --am-mb, or give the nodes more",
            )
    if free_mb is None:
        return
    room = sum(node.available.memory_mb for node in nodes) - sizes.am_mb
    vcores = sum(node.available.vcores for node in nodes) - 1
    at_once = max(1, min(room // sizes.task_mb, vcores, max(sizes.maps, sizes.reduces)))
    needed = sizes.am_mb + at_once * sizes.task_mb
    if needed > free_mb:
        raise InputError(
            f"memory is short: {at_once} task(s) at once and the application master take {needed} MB, "
            f"this machine has {free_mb} MB left",
            where=where,
            hint="fewer or smaller nodes, a lower --task-mb, or wait",
        )


def on_this_machine(rest: RestClient) -> bool:
    """Return whether the ResourceManager's address is this machine's loopback."""
    return (urlsplit(rest.http.current).hostname or "") in ("127.0.0.1", "localhost", "::1")


def told_of(attempt: Attempt) -> str:
    """Return the diagnostics of a failed attempt, without the frames of Java's exceptions.

    A streaming program's own output is in its log.
    """
    told = [line.strip()[:200] for line in attempt.error.splitlines() if line.strip()]
    told = [line for number, line in enumerate(told) if not number or line.startswith("Caused by")]
    return " | ".join(told) or "no reason given"


def container_log(attempt: Attempt) -> str:
    """Return the end of an attempt's error log, from its node if that still has it; otherwise nothing."""
    import requests

    # A log is an addition to a reason, and its node may be down.
    with contextlib.suppress(requests.RequestException):
        url = f"http://{attempt.node}/ws/v1/node/containerlogs/{attempt.container}/stderr"
        answer = requests.get(url, params={"size": "-4000"}, headers={"Accept": "text/plain"}, timeout=5)
        if answer.ok:
            return answer.text
    return ""


def last_lines(text: str, count: int = _LOG_LINES) -> list[str]:
    """Return a log's last informative lines, without blank ones, stack frames and log4j's own complaints."""
    kept = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith(_NOT_SAID):
            continue
        kept.append(line[:200])
    return kept[-count:]
