"""What a real ResourceManager of a release answers, recorded for the tests of served clusters.

::

    python -m tests.sim.serve.recording 3.5.0

brings up two small local clusters of that release, one with each scheduler, and writes ``recorded-RELEASE.json.gz``
(applications in each state, refusals) and ``recorded-capacity-RELEASE.json.gz`` (a store's answers to changes).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from harness.clusters import jars
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from tests.cluster.enforcing import until
from tests.sim.serve.conftest import ALLOCATIONS, CONF

HERE = Path(__file__).parent
#: The releases of which answers are recorded.
RELEASES = ("3.4.2", "3.5.0")
CLUSTER = "/ws/v1/cluster"
NO_APP = f"{CLUSTER}/apps/application_1_0001"
JSON = {"Accept": "application/json", "Content-Type": "application/json"}
#: The requests to the Capacity Scheduler are those of this release's recording, so that the answers can be compared.
FIRST = RELEASES[0]
_until = functools.partial(until, timeout_s=300.0)


@functools.cache
def recorded(release: str, kind: str = "") -> dict[str, Any]:
    """What was recorded of a release; `kind`: "capacity-" for the Capacity Scheduler's."""
    found: dict[str, Any] = json.loads(gzip.decompress((HERE / f"recorded-{kind}{release}.json.gz").read_bytes()))
    return found


def _write(name: str, document: dict[str, Any]) -> None:
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    (HERE / name).write_bytes(gzip.compress(text, mtime=0))


@contextlib.contextmanager
def _cluster(release: str, folder: Path, **settings: Any) -> Iterator[tuple[str, Path]]:
    """A cluster's REST address and its ResourceManager's configuration."""
    cluster = LocalCluster(StateFolder(folder / "state"))
    try:
        status = cluster.up(ClusterSpec(hadoop=release, **settings), timeout_s=300)
        yield status.address.rest, folder / "state" / "conf"
    finally:
        assert cluster.down() == []


class _Recorder:
    """Asks, and keeps the answers by name."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[str, Any] = {}

    def ask(self, method: str, path: str, body: Any = None, **params: str) -> requests.Response:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        return requests.request(
            method, self.url + path, params=params, data=data, headers=JSON, allow_redirects=False, timeout=60
        )

    def keep(self, name: str, path: str, method: str = "GET", body: Any = None, **params: str) -> Any:
        answer = self.ask(method, path, body, **params)
        document = None
        with contextlib.suppress(ValueError):
            document = answer.json()
        self.answers[name] = {
            "method": method,
            "path": path,
            "params": params,
            "status": answer.status_code,
            "location": answer.headers.get("Location"),
            "document": document,
        }
        return document

    def submit(self, queue: str, command: str) -> str:
        identity = str(self.ask("POST", f"{CLUSTER}/apps/new-application").json()["application-id"])
        body = {
            "application-id": identity,
            "application-name": "sleeper",
            "application-type": "YARN",
            "application-tags": {"tag": ["One", "two"]},
            "queue": queue,
            "max-app-attempts": 1,
            "am-container-spec": {"commands": {"command": command}},
            "resource": {"memory": 256, "vCores": 1},
        }
        assert self.ask("POST", f"{CLUSTER}/apps", body, **{"user.name": "alice"}).status_code == 202
        return identity

    def app(self, identity: str) -> Any:
        return self.ask("GET", f"{CLUSTER}/apps/{identity}").json()["app"]


def _pi(lib: Path, conf: Path, staging: Path) -> subprocess.Popen[bytes]:
    """Hadoop's own example in root.a: twelve maps, of which not all have room at once."""
    settings = {
        "mapreduce.framework.name": "yarn",
        "mapreduce.job.queuename": "root.a",
        "mapreduce.application.classpath": f"{lib}/*",
        "yarn.app.mapreduce.am.staging-dir": str(staging),
        "yarn.app.mapreduce.am.command-opts": "-Xmx300m",
        "mapreduce.map.java.opts": "-Xmx100m",
        "mapreduce.task.io.sort.mb": "10",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    command = ["java", "-cp", f"{conf}:{lib}/*", "org.apache.hadoop.examples.ExampleDriver", "pi", *options]
    quiet = subprocess.DEVNULL
    # Its input comes into the folder that it is called in.
    return subprocess.Popen([*command, "12", "1000"], cwd=staging.parent, stdout=quiet, stderr=quiet)


def fair(release: str, folder: Path) -> dict[str, Any]:
    """Answers of a Fair Scheduler with the applications of test_shapes, and its refusals."""
    (folder / "queues.xml").write_text(ALLOCATIONS.format(a=3.0, b=1.0))
    lib = jars.find(release)
    spec = {"nodes": 2, "memory_mb": 4096, "vcores": 4, "allocations": str(folder / "queues.xml")}
    with _cluster(release, folder, **spec, properties=CONF) as (url, conf):
        rm = _Recorder(url)
        rm.keep("apps-none", f"{CLUSTER}/apps", states="NEW")
        job = _pi(lib, conf, folder / "staging")
        apps = lambda **params: rm.ask("GET", f"{CLUSTER}/apps", **params).json()["apps"].get("app", [])  # noqa: E731
        _until(lambda: any(app["runningContainers"] > 2 for app in apps(applicationTypes="MAPREDUCE")), "maps run")
        (running,) = [app["id"] for app in apps(applicationTypes="MAPREDUCE")]
        rm.keep("app-running", f"{CLUSTER}/apps/{running}")
        first = rm.submit("root.b.d", "sleep 2000")
        pending = rm.submit("root.b.d", "sleep 300")
        failing = rm.submit("root.b.c", "exit 3")
        killed = rm.submit("root.b.c", "sleep 300")
        refused = rm.submit("root.b", "sleep 1")
        rm.keep("app-rejected-f", f"{CLUSTER}/apps/{refused}")
        limit = "maximum limit of runnable"
        _until(lambda: limit in rm.app(pending)["diagnostics"], "one waits for its queue's limit")
        rm.keep("app-pending", f"{CLUSTER}/apps/{pending}")
        for name in ("info", "metrics", "nodes", "scheduler", "appstatistics"):
            rm.keep(name, f"{CLUSTER}/{name}")
        rm.keep("root", CLUSTER)
        rm.keep("top", "/")
        rm.keep("node", f"{CLUSTER}/nodes/{rm.answers['nodes']['document']['nodes']['node'][0]['id']}")
        rm.keep("nodes-lost", f"{CLUSTER}/nodes", states="lost")
        rm.keep("apps-deselect", f"{CLUSTER}/apps", deSelects="resourceRequests")
        rm.keep("attempts", f"{CLUSTER}/apps/{running}/appattempts")
        rm.keep("timeouts", f"{CLUSTER}/apps/{first}/timeouts")
        rm.keep("timeout", f"{CLUSTER}/apps/{first}/timeouts/LIFETIME")
        rm.keep("priority", f"{CLUSTER}/apps/{first}/priority")
        new = rm.keep("new-application", f"{CLUSTER}/apps/new-application", "POST")["application-id"]
        _refusals(rm, first, new)
        rm.ask("PUT", f"{CLUSTER}/apps/{killed}/state", {"state": "KILLED"}, **{"user.name": "alice"})
        _until(lambda: rm.app(killed)["state"] == "KILLED", "killed")
        rm.keep("app-killed", f"{CLUSTER}/apps/{killed}")
        _until(lambda: rm.app(failing)["state"] == "FAILED", "failed")
        rm.keep("app-failed", f"{CLUSTER}/apps/{failing}")
        _until(lambda: rm.app(running)["state"] == "FINISHED", "the maps have ended")
        rm.keep("app-finished", f"{CLUSTER}/apps/{running}")
        assert rm.app(running)["finalStatus"] == "SUCCEEDED"
        job.wait(timeout=120)
    return rm.answers


def _refusals(rm: _Recorder, app: str, new: str) -> None:
    """Wrong calls. Whoever compares sends the same bodies: BODIES of test_shapes."""
    own = f"{CLUSTER}/apps/{app}"
    asks: list[tuple[str, str, str, dict[str, str]]] = [
        ("apps-bad", "GET", f"{CLUSTER}/apps", {"states": "bogus"}),
        ("apps-limit-bad", "GET", f"{CLUSTER}/apps", {"limit": "0"}),
        ("apps-limit-nan", "GET", f"{CLUSTER}/apps", {"limit": "x"}),
        ("nodes-bad", "GET", f"{CLUSTER}/nodes", {"states": "bogus"}),
        ("node-unknown", "GET", f"{CLUSTER}/nodes/h:1", {}),
        ("app-404", "GET", NO_APP, {}),
        ("app-bad", "GET", f"{CLUSTER}/apps/nonsense", {}),
        ("state-404", "GET", f"{NO_APP}/state", {}),
        ("move-none", "PUT", f"{NO_APP}/queue", {"user.name": "alice"}),
        ("kill-404", "PUT", f"{NO_APP}/state", {"user.name": "alice"}),
        ("submit-noid", "POST", f"{CLUSTER}/apps", {"user.name": "alice"}),
        ("submit-badjson", "POST", f"{CLUSTER}/apps", {"user.name": "alice"}),
        ("post-info", "POST", f"{CLUSTER}/info", {}),
        ("prio-put", "PUT", f"{own}/priority", {"user.name": "alice"}),
        ("move-nowhere", "PUT", f"{own}/queue", {"user.name": "alice"}),
        ("move-parent", "PUT", f"{own}/queue", {"user.name": "alice"}),
        ("kill-bad", "PUT", f"{own}/state", {"user.name": "alice"}),
        ("kill-nonsense", "PUT", f"{own}/state", {"user.name": "alice"}),
        ("submit-big", "POST", f"{CLUSTER}/apps", {"user.name": "alice"}),
    ]
    bodies = refused_bodies(new)
    for name, method, path, params in asks:
        rm.keep(name, path, method, bodies.get(name), **params)


def refused_bodies(new: str) -> dict[str, Any]:
    """The bodies of wrong calls, by their name. `new`: an ID that no application has yet."""
    return {
        "move-none": {"queue": "root.a"},
        "kill-404": {"state": "KILLED"},
        "submit-noid": {"application-name": "x", "queue": "root.a"},
        "submit-badjson": b'"{"',
        "prio-put": {"priority": 3},
        "move-nowhere": {"queue": "root.nowhere"},
        "move-parent": {"queue": "root.b"},
        "kill-bad": {"state": "RUNNING"},
        "kill-nonsense": {"x": "RUNNING"},
        "submit-big": {"application-id": new, "resource": {"memory": 999999, "vCores": 1}},
    }


def capacity(release: str, folder: Path) -> dict[str, Any]:
    """Answers of a Capacity Scheduler with a memory store to the changes that were recorded first."""
    before = recorded(FIRST, "capacity-")
    file = folder / "capacity-scheduler.xml"
    file.write_text(before["file"])
    spec = {"nodes": 1, "memory_mb": 4096, "vcores": 16, "scheduler": "capacity", "allocations": str(file)}
    store = {"yarn.scheduler.configuration.store.class": "memory"}
    with _cluster(release, folder, **spec, properties=store) as (url, _):
        rm = _Recorder(url)
        found: dict[str, Any] = {"file": before["file"]}
        found["scheduler"] = rm.ask("GET", f"{CLUSTER}/scheduler").json()
        found["conf"] = rm.ask("GET", f"{CLUSTER}/scheduler-conf").json()
        wrong = rm.ask("PUT", f"{CLUSTER}/scheduler-conf", before["bad_json"]["body"].encode())
        found["bad_json"] = {"body": before["bad_json"]["body"], "status": wrong.status_code, "document": wrong.json()}
        found["steps"] = []
        for step in before["steps"]:
            answer = rm.ask("PUT", f"{CLUSTER}/scheduler-conf", step["body"].encode())
            shown = rm.ask("GET", f"{CLUSTER}/scheduler-conf/version").json()
            version = str(shown.get("configversion", shown)["versionID"])
            row = {"name": step["name"], "body": step["body"], "version": version}
            found["steps"].append({**row, "status": answer.status_code, "text": answer.text})
    return found


def main() -> None:
    """Record a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release")
    release = parser.parse_args().release
    for kind, ask in (("", fair), ("capacity-", capacity)):
        with tempfile.TemporaryDirectory() as folder:
            _write(f"recorded-{kind}{release}.json.gz", ask(release, Path(folder)))


if __name__ == "__main__":
    main()
