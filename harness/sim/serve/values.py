"""Values that several answers contain: resources as JSON, names of states, ports."""

from __future__ import annotations

from typing import Any

from harness.model.queues import JAVA_LONG_MAX
from harness.sim.served import Document

#: A node's port, and the port of its web pages.
NODE_PORT, NODE_HTTP_PORT = 45454, 8042
#: An ended application's final status.
FINAL_STATUS = {"FINISHED": "SUCCEEDED", "FAILED": "FAILED", "KILLED": "KILLED"}
#: Simulated applications have no time-outs.
TIMEOUT = {"type": "LIFETIME", "expiryTime": "UNLIMITED", "remainingTimeInSeconds": -1}


def _information(name: str, units: str, value: int, least: int, most: int) -> Document:
    return {
        "attributes": {},
        "maximumAllocation": most,
        "minimumAllocation": least,
        "name": name,
        "resourceType": "COUNTABLE",
        "units": units,
        "value": value,
    }


def resource(
    mb: int, vcores: int, bounds: tuple[int, int, int, int] = (0, JAVA_LONG_MAX, 0, JAVA_LONG_MAX)
) -> Document:
    """Return a resource (MB, vcores) as JSON; `bounds`: minimum and maximum of memory, then of vcores."""
    return {
        "memory": mb,
        "vCores": vcores,
        "resourceInformations": {
            "resourceInformation": [
                _information("memory-mb", "Mi", mb, bounds[0], bounds[1]),
                _information("vcores", "", vcores, bounds[2], bounds[3]),
            ]
        },
    }


def timeouts() -> Document:
    """Return ``/apps/{id}/timeouts``."""
    return {"timeouts": {"timeout": [dict(TIMEOUT)]}}


#: Maps that Jersey 2 omits if they are empty.
_MAPS = ("attributes", "resourceSecondsMap", "preemptedResourceSecondsMap", "labelsToNodes")


def without_empty_maps(document: Any) -> Any:
    """Return a document as Hadoop writes it since 3.5: without empty maps."""
    if isinstance(document, dict):
        kept = {key: value for key, value in document.items() if not (key in _MAPS and value == {})}
        return {key: without_empty_maps(value) for key, value in kept.items()}
    return [without_empty_maps(one) for one in document] if isinstance(document, list) else document
