"""A cluster by Docker Compose: docker/compose.yaml under its own project name, with free ports.

Compose is called through its command line; containers are examined through the Docker SDK. docker/ defines the image
and the services; this module only writes the additions of a ClusterSpec, as an override file.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.base.debug import Timer, log_program
from harness.base.errors import InputError, RunTimedOut
from harness.clusters import site
from harness.clusters.base import Cluster, Finding
from harness.clusters.daemons import SCHEDULERS, free_ports, port_taken
from harness.clusters.shared import ContainerFolder, SharedFolder
from harness.clusters.state import ClusterSpec, ClusterState
from harness.clusters.status import ClusterStatus, Part, last_words, wait_for_nodes
from harness.model.data import data_path
from harness.yarn.releases import release_of

_LOG = logging.getLogger(__name__)
_PORTS = ("http", "client", "admin")
#: Time limit of an image build, which resolves Hadoop's jars: minutes on a slow network.
_BUILD_TIMEOUT_S = 1_800.0
_CONF = "/opt/hadoop/conf/yarn-site.xml"
#: What precedes the text of a build step's output: the step's number and the time; and colour codes anywhere.
_NOISE = re.compile(r"^#\d+ [\d.]+ |\x1b\[[0-9;]*m")
#: The image's label that holds the hash of its source files.
SOURCES_LABEL = "yarnfair.sources"
#: The image's source files, as glob patterns below docker/.
_IMAGE_FILES = ("Dockerfile", "pom.xml", "entrypoint.sh", "conf/**/*", "scheduler/**/*")
#: Of NodeManagers that harness.clusters.accelerators adds: their Compose service, and the labels of name and node type.
ACCELERATOR = "accelerator"
NODE_NAME = "yarnfair.node"
NODE_TYPE = "yarnfair.node-type"


@contextlib.contextmanager
def docker_client() -> Iterator[Any]:
    """Provide the Docker SDK's client. Raises InputError if the daemon does not answer or an operation on it fails."""
    import requests

    import docker

    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    try:
        if host.startswith("unix://"):
            # The SDK leaks its socket if this fails.
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(20)
                probe.connect(host.removeprefix("unix://"))
        client = docker.from_env(timeout=20)
    except (OSError, docker.errors.DockerException, requests.RequestException) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)[:200]
        raise InputError(
            f"the Docker daemon does not answer at {host}: {reason}",
            hint="start it (systemctl start docker), and be in the group docker",
        ) from None
    try:
        client.ping()
        yield client
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise InputError(f"Docker: {str(error)[:300]}", hint="look into the daemon's log") from None
    finally:
        client.close()


def image_sources(folder: Path | None = None) -> str:
    """Return the hash of the image's source files, without a site's own certificates."""
    folder, digest = folder or data_path("docker"), hashlib.sha256()
    for path in sorted({path for pattern in _IMAGE_FILES for path in folder.glob(pattern) if path.is_file()}):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def why_failed(told: str, *, build: bool) -> tuple[str, str | None]:
    """Return the line of `docker compose`'s output with the reason, and a hint."""
    lines = [line for line in (_NOISE.sub("", line).strip() for line in told.splitlines()) if line]
    if not build:
        why = [line for line in lines if "rror" in line or "failed" in line] or lines or ["no reason given"]
        return why[-1], "free the port or give another" if "port is already" in told else None
    # A step's own output precedes Docker's, which only says that it ended with 1.
    steps = [line for line in lines if re.match(r"(\[ERROR\]|E:|ERROR:|curl:) *\w", line)]
    untrusted = [line for line in lines if re.search("PKIX|certificate|SSL", line) and "ca-certificates" not in line]
    why = [*untrusted[:1], *steps[:1], *lines[-1:], "no reason given"]
    certs = data_path("docker", "certs")
    return why[0], f"behind a TLS proxy, put its CA certificate into {certs} as NAME.crt, and run it again"


class DockerCluster(Cluster):
    """The cluster of one state folder, in containers."""

    backend = "docker"
    schedulers = ("fair", "capacity")
    engines = ("mapreduce", "spark")

    def up(self, spec: ClusterSpec, *, timeout_s: float = 180.0, keep: bool = False) -> ClusterStatus:
        """Start the containers (after building a missing image) and wait for all nodes.

        The time limit does not count the image's build. Leftovers of a crash are removed first; a running cluster there
        is an error. Raises RunTimedOut if the nodes are not RUNNING in time; everything is then removed, unless `keep`
        is set for `doctor` to examine it.
        """
        self._check_tools()
        with self.folder.lock():
            self._make_way(spec)
            ports = {**free_ports(name for name in _PORTS if name not in spec.ports), **spec.ports}
            state = ClusterState(
                self.backend, f"yarnfair-{uuid.uuid4().hex[:12]}", spec, ports=ports, started_at=time.time()
            )
            self.folder.save(state)
            try:
                self._write(state)
                self._build(state)
            except BaseException:
                self._undo(state)
                raise
            start = time.monotonic()
            try:
                try:
                    self._compose(state, "up", "-d", "--no-build", timeout_s=timeout_s)
                except InputError:
                    # Compose reports that a container ended; the container's log has the reason.
                    self._check_exited(state)
                    raise
                self._check_image(state)
                info = wait_for_nodes(
                    state.rest,
                    spec.nodes,
                    start + timeout_s,
                    check=lambda: self._check_exited(state),
                    progress=self._progress,
                    every_s=0.5,
                )
                return self._came_up(state, start, info)
            except BaseException:
                self._undo(state, keep)
                raise

    @contextlib.contextmanager
    def share(self, name: str, beside: Path) -> Iterator[tuple[SharedFolder, str]]:
        """Provide a folder of the volume that all containers mount, and the Python to run there."""
        state = self.known()
        with docker_client() as client:
            parts = self.containers(client, state)
            rm = [part for part in parts if part.labels.get("com.docker.compose.service") == "rm"]
            if not rm:
                hint = "bring it up again"
                raise InputError("its ResourceManager's container is gone", where=state.mark, hint=hint)
            yield ContainerFolder(rm[0], f"/shared/{name}"), "/usr/bin/python3"

    @classmethod
    def examine(cls, *, running: bool) -> Iterator[Finding]:
        """Check that Docker and its compose plugin are installed and usable."""
        if shutil.which("docker") is None:
            yield Finding("docker", "problem", "no docker on the PATH", "install Docker and its compose plugin")
            return
        try:
            found = subprocess.run(["docker", "compose", "version"], capture_output=True, text=True, timeout=60)
            compose = found.returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            compose = False
        if not compose:
            yield Finding(
                "compose", "problem", "no `docker compose`", "install the plugin docker-compose-plugin (Compose 2)"
            )
        else:
            yield Finding("compose", "fine", "docker compose is there")
        try:
            with docker_client() as client:
                yield Finding("docker", "fine", f"Docker {client.version().get('Version', '')} answers")
        except InputError as error:
            yield Finding("docker", "problem", error.what, error.hint)

    @classmethod
    def examine_ports(cls, given: Mapping[str, int]) -> Iterator[Finding]:
        """Check Hadoop's usual ports for conflicts."""
        taken = [port for port in (8088, 8032, 8033) if port_taken(port)]
        if taken and not given:
            yield Finding(
                "ports",
                "note",
                f"Hadoop's usual port {taken[0]} is taken: a plain `docker compose up` would fail",
                "set RM_HTTP_PORT, RM_CLIENT_PORT, RM_ADMIN_PORT for it",
            )

    @classmethod
    def disk(cls, folder: Path) -> Path:
        """Return the folder in which Docker stores its data."""
        with docker_client() as client:
            return Path(client.info().get("DockerRootDir", "/"))

    @classmethod
    def logs(cls, status: ClusterStatus) -> str:
        """Return the command that shows the daemons' logs."""
        return "docker logs CONTAINER"

    @classmethod
    def software_fingerprint(cls) -> Mapping[str, Any]:
        """Return hashes of the files that the image and the cluster are built from."""
        # The running image is built from these files: `up` rebuilds it if its label differs.
        compose = hashlib.sha256(data_path("docker", "compose.yaml").read_bytes()).hexdigest()
        return {"image": image_sources(), "compose": compose}

    def software(self) -> Mapping[str, Any]:
        """Return the id and source hash of the image that runs; empty if the RM's container is gone."""
        state = self.known()
        with docker_client() as client:
            for container in self.containers(client, state):
                if container.labels.get("com.docker.compose.service") == "rm":
                    image = container.image
                    return {"image": image.id, "image_sources": image.labels.get(SOURCES_LABEL)}
        return {}

    def _check_tools(self) -> None:
        for found in self.examine(running=False):
            if found.result == "problem":
                raise InputError(found.what, hint=found.hint)

    def _write(self, state: ClusterState) -> None:
        spec, folder = state.spec, self.folder
        folder.path("scheduler").mkdir(parents=True, exist_ok=True)
        folder.path("scheduler").chmod(0o755)
        queues = SCHEDULERS[spec.scheduler].file_name
        source = Path(spec.allocations) if spec.allocations else data_path("docker", "scheduler", queues)
        site.copy(source, folder.path("scheduler", queues))
        mounts = [f"{Path(jar).absolute()}:/opt/hadoop/lib/{Path(jar).name}:ro" for jar in spec.jars]
        services: dict[str, Any] = {}
        if spec.properties:
            properties = {**site.read(data_path("docker", "conf", "yarn-site.xml")), **spec.properties}
            site.write(folder.path("yarn-site.xml"), site.render(properties))
            services["nm"] = {"volumes": [f"{folder.path('yarn-site.xml')}:{_CONF}:ro"]}
            mounts.append(f"{folder.path('yarn-site.xml')}:{_CONF}:ro")
        if mounts:
            services["rm"] = {"volumes": mounts}
        site.write(folder.path("override.yaml"), yaml.safe_dump({"services": services}))

    def _build(self, state: ClusterState) -> None:
        """Build the image if there is none, or if it was built from other files."""
        config = yaml.safe_load(data_path("docker", "compose.yaml").read_text(encoding="utf-8"))
        # The tag is the release, so each release has its own image.
        image = f"{config['x-image']['image'].partition(':')[0]}:{release_of(state.spec.hadoop).version}"
        sources = image_sources()
        with docker_client() as client:
            known = [found for found in client.images.list(name=image) if image in (found.tags or [])]
        if any(found.labels.get(SOURCES_LABEL) == sources for found in known):
            return
        why = "its files have changed" if known else "once"
        self._progress(f"building the image {image} ({why}, some minutes)")
        self._compose(state, "build", "rm", timeout_s=_BUILD_TIMEOUT_S)

    def _check_image(self, state: ClusterState) -> None:
        """Raise InputError if the containers run an image of other files, built by another checkout meanwhile."""
        with docker_client() as client:
            for container in self.containers(client, state):
                service, label = container.labels.get("com.docker.compose.service"), container.image.labels
                if service in ("rm", "nm") and label.get(SOURCES_LABEL) != image_sources():
                    raise InputError(
                        "its image was built from other files than those of this yarnfair",
                        where=container.name,
                        hint="another checkout has built it meanwhile: bring the cluster up again",
                    )

    def _environment(self, state: ClusterState) -> dict[str, str]:
        spec, own_limit = state.spec, "NM_MEM_LIMIT" in os.environ
        return {
            **os.environ,
            "YARNFAIR_SOURCES": image_sources(),
            "HADOOP_VERSION": release_of(spec.hadoop).version,
            "HADOOP_PROGRAMS_VERSION": release_of(spec.hadoop).programs,
            "RM_HTTP_PORT": str(state.ports["http"]),
            "RM_CLIENT_PORT": str(state.ports["client"]),
            "RM_ADMIN_PORT": str(state.ports["admin"]),
            "NODES": str(spec.nodes),
            "NM_MEMORY_MB": str(spec.memory_mb),
            "NM_VCORES": str(spec.vcores),
            "NM_EXPIRY_MS": str(spec.expiry_ms),
            "MINIMUM_ALLOCATION_MB": str(spec.minimum_allocation_mb),
            "PREEMPTION": str(spec.preemption and spec.scheduler == "fair").lower(),
            "CAPACITY_PREEMPTION": str(spec.preemption and spec.scheduler == "capacity").lower(),
            "DISK_HEALTH_CHECKER": str(spec.disk_checks).lower(),
            "SCHEDULER_CLASS": SCHEDULERS[spec.scheduler].java_class,
            "SCHEDULER_DIR": str(self.folder.path("scheduler")),
            # Variables of the user's environment take precedence.
            **({"NM_MEM_LIMIT": f"{spec.node_limit_mb}m"} if spec.node_limit_mb and not own_limit else {}),
        }

    def _compose(self, state: ClusterState, *arguments: str, timeout_s: float) -> None:
        files = ["-f", str(data_path("docker", "compose.yaml"))]
        if self.folder.path("override.yaml").is_file():
            files += ["-f", str(self.folder.path("override.yaml"))]
        command = ["docker", "compose", "-p", state.mark, *files, *arguments]
        timer = Timer()
        # A separate session, because `docker` starts its compose plugin, and both must end if this gives up.
        with subprocess.Popen(
            command,
            env=self._environment(state),
            stdin=subprocess.DEVNULL,
            # A failing build step prints to standard output.
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as running:
            try:
                told, _ = running.communicate(timeout=timeout_s)
            except BaseException as error:
                # It has ended by itself in the meantime.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise RunTimedOut(f"docker compose {arguments[0]} did not end within {timeout_s:g} s") from None
                raise
        log_program(_LOG, command, running.returncode, timer, told)
        if running.returncode:
            why, hint = why_failed(told, build=arguments[0] == "build")
            raise InputError(f"docker compose {arguments[0]} failed: {why[:300]}", hint=hint)

    def _check_exited(self, state: ClusterState) -> None:
        with docker_client() as client:
            for container in self.containers(client, state):
                if container.status in ("exited", "dead"):
                    raise InputError(
                        f"container {container.name} ended: {_words(container)}",
                        hint=f"look at its log: `docker logs {container.name}` (cluster up --keep leaves it)",
                    )

    def containers(self, client: Any, state: ClusterState) -> list[Any]:
        """Return all containers of the cluster, by name."""
        label = f"com.docker.compose.project={state.mark}"
        found = client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
        return sorted(found, key=lambda container: container.name)

    def _status(self, state: ClusterState) -> ClusterStatus | None:
        with docker_client() as client:
            containers = self.containers(client, state)
            parts = [
                (container.labels.get("com.docker.compose.service", ""), _part(container)) for container in containers
            ]
        if not parts:
            return None
        rm = next((part for service, part in parts if service == "rm"), Part("rm", None, None, ""))
        joined = sum(service == ACCELERATOR for service, _ in parts)
        return self._told(
            state,
            rm,
            [part for service, part in parts if service in ("nm", ACCELERATOR)],
            [part for service, part in parts if service not in ("rm", "nm", ACCELERATOR)],
            wanted=state.spec.nodes + joined,
        )

    def _clean(self, state: ClusterState) -> list[str]:
        """Remove everything of the project, by compose and then by label; return what is left, normally nothing."""
        # What compose could not remove is found by its label below, and is removed or returned.
        with contextlib.suppress(InputError, RunTimedOut):
            self._compose(state, "--profile", "*", "down", "-v", "--remove-orphans", "-t", "2", timeout_s=120)
        import docker

        label = {"label": f"com.docker.compose.project={state.mark}"}
        left = []
        with docker_client() as client:
            for container in self.containers(client, state):
                # Compose, or somebody else, removed it first.
                with contextlib.suppress(docker.errors.NotFound):
                    container.remove(force=True, v=True)
            for kind in (client.networks, client.volumes):
                for item in kind.list(filters=label):
                    try:
                        item.remove()
                    except docker.errors.NotFound:
                        continue
                    except docker.errors.APIError:
                        left.append(item.name)
        if not left:
            self.folder.path("cluster.json").unlink(missing_ok=True)
        return left


def _part(container: Any) -> Part:
    running = container.status == "running"
    memory_mb = None
    if running:
        stats = container.client.api.stats(container.id, stream=False, one_shot=True).get("memory_stats", {})
        # Memory of the page cache does not count, because it can be freed at any time.
        inner = stats.get("stats", {})
        cache = inner.get("total_inactive_file", inner.get("inactive_file", 0))
        if "usage" in stats:
            memory_mb = round((stats["usage"] - cache) / 2**20, 1)
    hostname = container.attrs.get("Config", {}).get("Hostname", "")
    service = container.labels.get("com.docker.compose.service", container.name)
    number = container.labels.get("com.docker.compose.container-number", "1")
    name = f"nm{number}" if service == "nm" else container.labels.get(NODE_NAME, service)
    words = None if running else _words(container)
    return Part(name, container.short_id if running else None, memory_mb, hostname, words)


def _words(container: Any) -> str:
    return last_words(container.logs(tail=300).decode(errors="replace").splitlines())
