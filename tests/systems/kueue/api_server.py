"""A Kubernetes API server that holds ClusterQueues: list, and replace with ``resourceVersion``; as Kueue has them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"


def cluster_queue(name: str, cohort: str, weight: str | None = None) -> dict[str, Any]:
    """A ClusterQueue with a nominal quota of 8 CPUs and 16 GiB, and no use."""
    resources = [{"name": "cpu", "nominalQuota": "8"}, {"name": "memory", "nominalQuota": "16Gi"}]
    spec: dict[str, Any] = {
        "cohort": cohort,
        "resourceGroups": [
            {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "default", "resources": resources}]}
        ],
    }
    if weight is not None:
        spec["fairSharing"] = {"weight": weight}
    return {"metadata": {"name": name, "resourceVersion": "1"}, "spec": spec, "status": {}}


class ApiServer:
    def __init__(self, queues: list[dict[str, Any]]) -> None:
        self.queues = {queue["metadata"]["name"]: queue for queue in queues}
        self.writes: list[str] = []
        self.url = ""

    def hold(self, name: str, cpu: str, memory: str, pending: int = 0) -> None:
        """What a ClusterQueue's workloads hold, and how many wait."""
        resources = [{"name": "cpu", "total": cpu}, {"name": "memory", "total": memory}]
        usage = [{"name": "default", "resources": resources}]
        self.queues[name]["status"] = {"flavorsUsage": usage, "pendingWorkloads": pending, "admittedWorkloads": 1}

    def edit(self, name: str, weight: str) -> None:
        """Somebody's `kubectl edit`."""
        self.queues[name]["spec"]["fairSharing"] = {"weight": weight}
        self._changed(name)

    def weight(self, name: str) -> str | None:
        return (self.queues[name]["spec"].get("fairSharing") or {}).get("weight")

    def _changed(self, name: str) -> None:
        metadata = self.queues[name]["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)

    def put(self, name: str, queue: dict[str, Any]) -> tuple[int, Any]:
        if queue["metadata"]["resourceVersion"] != self.queues[name]["metadata"]["resourceVersion"]:
            return 409, {"kind": "Status", "reason": "Conflict", "message": "the object has been modified"}
        # The status is a subresource: a replace leaves it.
        self.queues[name] = {**queue, "status": self.queues[name]["status"]}
        self._changed(name)
        self.writes.append(name)
        return 200, self.queues[name]


@contextmanager
def served(api: ApiServer) -> Iterator[ApiServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, status: int, document: Any) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._answer(200, {"kind": "ClusterQueueList", "items": list(api.queues.values())})

        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(*api.put(self.path.removeprefix(f"{PATH}/"), body))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
