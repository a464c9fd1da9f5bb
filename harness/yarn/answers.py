"""A ResourceManager's REST answers as validated, frozen dataclasses. No I/O.

Units are YARN's: memory in MiB, times in milliseconds of the RM's clock, accumulated resources in MiB-seconds and
vcore-seconds. A required field that is missing or has the wrong type raises BadAnswer with its name. Unused fields are
not validated (a real RM writes NaN for shares of an empty cluster). An invalid application is left out of the list.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.model.resources import Resource
from harness.yarn.errors import BadAnswer, well_formed
from harness.yarn.json_stream import Rest, members
from harness.yarn.releases import ASSUMED

T = TypeVar("T")

_LONG = 2**63
APPLICATION_ID = re.compile(r"application_\d{1,19}_\d{4,19}", re.ASCII)
#: States of applications that no longer hold or request resources.
FINAL_STATES = frozenset({"FINISHED", "FAILED", "KILLED"})
_REQUIRED: Any = object()
#: Maximum length of the diagnostics kept per application: a list may have thousands of stack traces.
_MOST_DIAGNOSTICS = 8000


class Fields:
    """An object of a JSON document, with the path to it for messages."""

    def __init__(self, value: object, where: str, path: str) -> None:
        if not isinstance(value, dict):
            raise BadAnswer(f"{path} is {_kind(value)}, not an object", where=where)
        self._value, self._where, self._path = value, where, path

    @property
    def where(self) -> str:
        """The source of the answer."""
        return self._where

    def _bad(self, name: str, value: object, wanted: str) -> BadAnswer:
        return BadAnswer(f"{self._path}.{name} is {_kind(value)}, not {wanted}", where=self._where)

    def _get(self, name: str, default: object) -> Any:
        value = self._value.get(name, default)
        if value is _REQUIRED:
            raise BadAnswer(f"{self._path} has no {name}", where=self._where)
        return value

    def integer(self, name: str, default: object = _REQUIRED, *, least: int = -_LONG) -> int:
        """Read an integer of Java's long range, not below `least`."""
        value = self._value.get(name, default)
        if type(value) is int and least <= value < _LONG:
            return value  # the usual case, kept fast because lists of applications are long
        value = self._get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not -_LONG <= value < _LONG:
            raise self._bad(name, value, "a whole number")
        if value < least:
            raise self._bad(name, value, f"a number from {least}")
        return value

    def integer_or_text(self, name: str) -> int:
        """Read an integer: a JSON integer or, as from Jersey 1, a text of ASCII digits with an optional minus sign."""
        value = self._get(name, _REQUIRED)
        if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit() and len(value) <= 20:
            value = int(value)
            if not -_LONG <= value < _LONG:
                raise BadAnswer(f"{self._path}.{name} is beyond Java's long", where=self._where)
            return value
        return self.integer(name)

    def count(self, name: str, default: object = _REQUIRED) -> int:
        """Read an integer; a negative one is replaced by 0.

        Hadoop writes -1 for unknown values and for values that no longer apply, and an RM whose clock was set back
        computes negative durations for a while.
        """
        value = self._value.get(name, default)
        if type(value) is int and 0 <= value < _LONG:
            return value
        return max(0, self.integer(name, default))

    def length(self, name: str, default: object) -> Any:
        """Read a non-negative integer; the default if it is missing."""
        return self.integer(name, default, least=0)

    def number(self, name: str, default: object = _REQUIRED) -> float:
        """Return a finite number."""
        value = self._get(name, default)
        try:
            found = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        except OverflowError:  # JSON integers are unbounded
            found = math.inf
        if not math.isfinite(found):
            raise self._bad(name, value, "a finite number")
        return found

    def text(self, name: str, default: object = _REQUIRED) -> str:
        """Return a text (`well_formed`); null counts as the default."""
        value = self._value.get(name, default)
        if type(value) is str and value.isascii():
            return value
        value = self._get(name, default)
        if value is None and default is not _REQUIRED:
            return str(default)
        if not isinstance(value, str):
            raise self._bad(name, value, "a text")
        return well_formed(value)

    def spare_text(self, name: str) -> str:
        """Read a text that is only displayed; "" if it is invalid."""
        value = self._value.get(name, "")
        return value if type(value) is str and value.isascii() else _spare(self.text, name, "")

    def spare_count(self, name: str) -> int:
        """Read a count that is only displayed; 0 if it is invalid."""
        value = self._value.get(name, 0)
        return value if type(value) is int and 0 <= value < _LONG else _spare(self.count, name, 0)

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def flag(self, name: str, default: object = _REQUIRED) -> bool:
        """Read a boolean."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self._bad(name, value, "true or false")
        return value

    def object(self, name: str) -> Fields:
        """Read the nested object of that name."""
        return Fields(self._get(name, _REQUIRED), self._where, f"{self._path}.{name}")

    def resource(self, name: str) -> Resource:
        """Read Hadoop's ResourceInfo. Negative amounts (over-committed node, late unreserve) are kept."""
        value = self._value.get(name)
        if type(value) is dict:
            memory, vcores = value.get("memory"), value.get("vCores")
            if type(memory) is int and type(vcores) is int and -_LONG <= memory < _LONG and -_LONG <= vcores < _LONG:
                return Resource(memory, vcores)  # the usual case, kept fast because a queue has nine of them
        inner = self.object(name)
        return Resource(inner.integer("memory"), inner.integer("vCores"))

    def objects(self, name: str, item: str, default: Any = None) -> Iterator[Fields]:
        """Iterate over the members of ``{name: {item: [...]}}``.

        Jersey writes null, {}, "" or nothing if there are no members, and the bare object if there is one. Without a
        ``default`` (`_REQUIRED`), an answer without the name is invalid.
        """
        for path, value in self.members(name, item, default):
            yield Fields(value, self._where, path)

    def objects_of(self, name: str) -> Iterator[Fields]:
        """Iterate over the members of ``{name: [...]}``."""
        found = self._get(name, None)
        for index, value in enumerate(found if isinstance(found, list) else [] if found is None else [found]):
            yield Fields(value, self._where, f"{self._path}.{name}[{index}]")

    def members(self, name: str, item: str, default: Any = None) -> Iterator[tuple[str, Any]]:
        """Iterate like `objects`, over pairs of a member's path and its unvalidated value."""
        outer = self._get(name, default)
        if outer is None or outer == "":
            return
        inner = Fields(outer, self._where, f"{self._path}.{name}")._get(item, None)
        if inner is None:
            return
        for index, value in enumerate(inner if isinstance(inner, list) else [inner]):
            yield f"{self._path}.{name}.{item}[{index}]", value


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool | int | float | str):
        text = repr(value) if not isinstance(value, int) or isinstance(value, bool) or abs(value) < _LONG else "huge"
        return text if len(text) <= 60 else text[:60] + "..."
    return "an object" if isinstance(value, dict) else "a list"


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Identity of a ResourceManager. `id` changes at each start of an RM that does not recover its state."""

    id: int
    started_on_ms: int
    state: str
    ha_state: str
    version: str
    #: The RM's clock according to the answer's ``Date`` header, seconds since 1970 (None: no header).
    clock_s: float | None = None

    @property
    def active(self) -> bool:
        """Whether this RM is active (an RM without high availability reports ACTIVE)."""
        return self.ha_state == "ACTIVE" and self.state == "STARTED"

    @property
    def hadoop(self) -> tuple[int, int]:
        """Major and minor version of Hadoop; `ASSUMED` if it is not reported."""
        found = re.match(r"(\d{1,4})\.(\d{1,4})", self.version)
        return (int(found[1]), int(found[2])) if found else ASSUMED


@dataclass(frozen=True, slots=True)
class ClusterMetrics:
    """Totals of the cluster. Some of them may be below 0 for a moment."""

    total: Resource
    allocated: Resource
    available: Resource
    pending: Resource
    reserved: Resource
    containers_allocated: int
    containers_pending: int
    apps_failed: int
    active_nodes: int


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A NodeManager's status in the RM. `health_report` is empty while the node is healthy."""

    id: str
    host: str
    rack: str
    state: str
    health_report: str
    version: str
    containers: int
    used: Resource
    available: Resource

    @property
    def total(self) -> Resource:
        """The resources that the node advertises."""
        return self.used + self.available


@dataclass(frozen=True, slots=True)
class AppStatus:
    """An application. `memory_seconds` and `vcore_seconds` are the RM's own accumulated resources.

    `finished_ms` and `launched_ms` are 0 until the event. `master_at` (HTTP address of the AM's node) is empty until
    the RM has registered the AM's container. `elapsed_ms` is the time from start to end, or to now by the RM's own
    clock (None: not shown, or the RM's clock was set back). The resources of a finished application are 0 (the RM
    reports -1).
    """

    id: str
    user: str
    name: str
    queue: str
    state: str
    final_status: str
    type: str
    tags: frozenset[str]
    progress_percent: float
    started_ms: int
    launched_ms: int
    finished_ms: int
    allocated: Resource
    reserved: Resource
    running_containers: int
    memory_seconds: int
    vcore_seconds: int
    preempted_memory_seconds: int
    diagnostics: str
    master_at: str = ""
    elapsed_ms: int | None = None

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL_STATES


class AppList(list[AppStatus]):
    """A list of applications. ``skipped``: ID (or position in the answer) of an invalid application -> reason."""

    def __init__(self, apps: Iterable[AppStatus] = (), skipped: Mapping[str, str] | None = None) -> None:
        super().__init__(apps)
        self.skipped = dict(skipped or {})


@dataclass(frozen=True, slots=True)
class NewApplication:
    """An ID allocated by the RM, and the largest container that it allows."""

    id: str
    maximum: Resource


def cluster_info(document: object, where: str) -> ClusterInfo:
    """Read ``/info``."""
    info = Fields(document, where, "answer").object("clusterInfo")
    return ClusterInfo(
        id=info.integer("id", least=0),
        started_on_ms=info.integer("startedOn", least=0),
        state=info.text("state"),
        ha_state=info.text("haState"),
        version=info.text("resourceManagerVersion"),
    )


def properties(document: object, url: str, *, defaults: bool = True) -> dict[str, str]:
    """Read ``/conf``: property -> value, with or without Hadoop's defaults."""
    found = document.get("properties") if isinstance(document, dict) else None
    if not isinstance(found, list):
        raise BadAnswer(f"{url} has no properties", where=url)
    return {
        well_formed(one["key"]): well_formed(one["value"])
        for one in found
        if isinstance(one, dict) and isinstance(one.get("key"), str) and isinstance(one.get("value"), str)
        if defaults or not str(one.get("resource")).endswith("-default.xml")
    }


def cluster_metrics(document: object, where: str) -> ClusterMetrics:
    """Read ``/metrics``."""
    sums = Fields(document, where, "answer").object("clusterMetrics")

    def pair(name: str) -> Resource:
        return Resource(sums.integer(f"{name}MB"), sums.integer(f"{name}VirtualCores"))

    return ClusterMetrics(
        total=pair("total"),
        allocated=pair("allocated"),
        available=pair("available"),
        pending=pair("pending"),
        reserved=pair("reserved"),
        containers_allocated=sums.integer("containersAllocated"),
        containers_pending=sums.integer("containersPending"),
        apps_failed=sums.integer("appsFailed"),
        active_nodes=sums.integer("activeNodes"),
    )


def nodes(document: object, where: str) -> list[NodeStatus]:
    """Read ``/nodes``, sorted by ID."""
    found = [
        NodeStatus(
            id=node.text("id"),
            host=node.text("nodeHostName"),
            rack=node.text("rack", ""),
            state=node.text("state"),
            health_report=node.text("healthReport", ""),
            version=node.text("version", ""),
            containers=node.integer("numContainers"),
            used=Resource(node.integer("usedMemoryMB"), node.integer("usedVirtualCores")),
            available=Resource(node.integer("availMemoryMB"), node.integer("availableVirtualCores")),
        )
        for node in Fields(document, where, "answer").objects("nodes", "node", _REQUIRED)
    ]
    return sorted(found, key=lambda node: node.id)


#: Ended applications by ID: the RM's raw entry, and the application parsed from it.
Ended = dict[str, tuple[Any, AppStatus]]


def apps(document: object, where: str, ended: Ended | None = None) -> AppList:
    """Read ``/apps`` from a complete document: see `apps_of`."""
    return apps_of(Fields(document, where, "answer").members("apps", "app", _REQUIRED), where, ended)


def read_apps(chunks: Iterable[bytes], where: str, ended: Ended | None = None) -> AppList:
    """Read ``/apps`` from a stream of bytes, without holding the whole list in memory."""

    def shown() -> Iterator[tuple[str, Any]]:
        for count, one in enumerate(members(chunks, "apps", "app", where)):
            if isinstance(one, Rest):
                # The answer does not contain a list of several applications.
                yield from Fields(one.document, where, "answer").members("apps", "app", _REQUIRED)
                return
            yield f"answer.apps.app[{count}]", one

    return apps_of(shown(), where, ended)


def apps_of(shown: Iterable[tuple[str, object]], where: str, ended: Ended | None = None) -> AppList:
    """Return the applications of ``/apps``, sorted by ID (the order of submission to one RM).

    ``shown``: path in the answer and raw value of each application. ``ended``: ended applications of the previous
    answer, reused where unchanged and updated to this answer. An invalid application is skipped. Raises BadAnswer if
    all of them are invalid, or if the answer has no ``apps`` (an RM without applications writes null or {}).
    """
    found: list[AppStatus] = []
    skipped: dict[str, str] = {}
    first: BadAnswer | None = None
    before = dict(ended or {})
    if ended is not None:
        ended.clear()
    for path, value in shown:
        try:
            found.append(_known(value, before) or _app(Fields(value, where, path), where))
            if ended is not None and found[-1].final:
                ended[found[-1].id] = (value, found[-1])
        except BadAnswer as error:
            identity = value.get("id") if isinstance(value, dict) else None
            known = isinstance(identity, str) and APPLICATION_ID.fullmatch(identity)
            skipped[str(identity) if known else path] = error.what
            first = first or error
    if first is not None and not found:
        raise first
    if len({*skipped, *(app.id for app in found)}) != len(found) + len(skipped):
        raise BadAnswer("the same application twice", where=where)
    return AppList(sorted(found, key=lambda app: _submitted(app.id)), skipped)


@functools.lru_cache(1 << 14)
def _submitted(identity: str) -> tuple[int, ...]:
    """Return the sort key for the order of submission."""
    return tuple(int(part) for part in identity.split("_")[1:])


def _known(value: object, known: Ended) -> AppStatus | None:
    identity = value.get("id") if isinstance(value, dict) else None
    before = known.get(identity) if isinstance(identity, str) else None
    return before[1] if before is not None and before[0] == value else None


def app(document: object, where: str) -> AppStatus:
    """Read ``/apps/{id}``."""
    return _app(Fields(document, where, "answer").object("app"), where)


def outstanding_sizes(document: object, where: str) -> tuple[Resource, ...]:
    """Read the sizes of the containers that the applications of ``/apps`` have requested, each once, smallest first.

    A request for a node or a rack is repeated as a request for any node, and only that one is read.
    """
    found = {
        ask.resource("capability")
        for app in Fields(document, where, "answer").objects("apps", "app")
        for ask in app.objects_of("resourceRequests")
        if ask.text("resourceName", "") == "*" and ask.integer("numContainers", 0) > 0
    }
    return tuple(sorted(found, key=lambda size: (size.memory_mb, size.vcores)))


def _app(fields: Fields, where: str) -> AppStatus:
    identity = fields.text("id")
    if not APPLICATION_ID.fullmatch(identity):
        raise BadAnswer(f"{identity[:60]!r} is not an application's id", where=where)
    return AppStatus(
        id=identity,
        user=fields.spare_text("user"),
        name=fields.spare_text("name"),
        queue=possible_queue(fields.text("queue", ""), where),
        state=fields.text("state"),
        final_status=fields.text("finalStatus", "UNDEFINED"),
        type=fields.spare_text("applicationType"),
        tags=_tags(fields.spare_text("applicationTags")),
        progress_percent=_spare(fields.number, "progress", 0.0),
        started_ms=fields.count("startedTime"),
        launched_ms=fields.count("launchTime", 0),
        finished_ms=fields.count("finishedTime"),
        allocated=Resource(fields.count("allocatedMB", 0), fields.count("allocatedVCores", 0)),
        reserved=Resource(fields.spare_count("reservedMB"), fields.spare_count("reservedVCores")),
        running_containers=fields.spare_count("runningContainers"),
        memory_seconds=fields.count("memorySeconds"),
        vcore_seconds=fields.count("vcoreSeconds"),
        preempted_memory_seconds=fields.spare_count("preemptedMemorySeconds"),
        diagnostics=fields.spare_text("diagnostics")[:_MOST_DIAGNOSTICS],
        master_at=fields.text("amHostHttpAddress", ""),
        elapsed_ms=_spare(fields.length, "elapsedTime", None),
    )


def _tags(text: str) -> frozenset[str]:
    return frozenset(tag for tag in text.split(",") if tag) if text else frozenset()


def possible_queue(name: str, where: str) -> str:
    """Return a queue's name or path unchanged; BadAnswer if no scheduler accepts it."""
    if not _can_be_a_queue(name):
        raise BadAnswer(f"{name[:60]!r} is not a queue", where=where)
    return name


@functools.lru_cache(1 << 14)
def _can_be_a_queue(name: str) -> bool:
    return all(part and part == part.strip() for part in name.split("."))


def _spare(read: Callable[[str, T], T], name: str, default: T) -> T:
    """Read a field that is only displayed; return the default if it is invalid."""
    try:
        return read(name, default)
    except BadAnswer:
        return default


def app_state(document: object, where: str) -> str:
    """Read ``/apps/{id}/state``."""
    return Fields(document, where, "answer").text("state")


def app_queue(document: object, where: str) -> str:
    """Read ``/apps/{id}/queue``."""
    return Fields(document, where, "answer").text("queue")


def new_application(document: object, where: str) -> NewApplication:
    """Read the answer to ``POST /apps/new-application``."""
    fields = Fields(document, where, "answer")
    identity = fields.text("application-id")
    if not APPLICATION_ID.fullmatch(identity):
        raise BadAnswer(f"{identity[:60]!r} is not an application's id", where=where)
    return NewApplication(identity, fields.resource("maximum-resource-capability"))
