"""What a contributor adds, counted: the files that docs/contributing.md names are enough, tried end to end.

Each test writes the new part into a folder of its own, enters it where the registry's line would stand, and runs the
command as a user would, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any


def yarnfair(folder: Path, entry: str, *arguments: str, code: int = 0) -> Any:
    """The command with one more entry in a registry; its JSON. ``entry``: the statement that adds it."""
    program = f"{entry}\nimport sys\nfrom harness.cli import main\nsys.exit(main({list(arguments)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "XDG_STATE_HOME": str(folder / "state")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def edited(*changes: tuple[str, str, str]) -> str:
    """An entry that makes changes of the product's own files as well, in memory: (module, text, what it becomes)."""
    return textwrap.dedent(
        f"""
        import importlib.machinery as machinery
        import sys

        changes = {changes!r}


        class Edited(machinery.SourceFileLoader):
            def get_code(self, name):
                text = self.get_source(name)
                for module, old, new in changes:
                    if module == name:
                        assert text.count(old) == 1, (module, old)
                        text = text.replace(old, new)
                return compile(text, self.path, "exec")


        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if any(name == module for module, _, _ in changes):
                    spec = machinery.PathFinder.find_spec(name, path)
                    spec.loader = Edited(name, spec.origin)
                    return spec


        sys.meta_path.insert(0, Finder)
        """
    )


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")


def test_a_built_in_policy_is_a_file_and_a_line(tmp_path: Path) -> None:
    write(
        tmp_path,
        "reversed_names.py",
        '''
        """``reversed``: the queue whose name comes last gets everything it asks for."""

        from harness.model.plan import Order, Plan
        from harness.policies.base import Policy


        class Reversed(Policy):
            name = "reversed"

            def plan(self, snapshot, ledger):
                return Plan(order=Order(measure="keys"), weights={})

            def keys(self, snapshot, ledger):
                return {name: -at for at, name in enumerate(sorted(snapshot.queues))}
        ''',
    )
    entry = "from harness.policies.registry import POLICIES; POLICIES['reversed'] = 'reversed_names:Reversed'"
    write(tmp_path, "scenario.yaml", "capacity: 10\nqueues: {A: {}, B: {}}\narrivals: [{A: 20, B: 14}]\n")
    answer = yarnfair(tmp_path, entry, "allocate", "scenario.yaml", "--policy", "reversed", "--json")
    assert [step["B"] for step in answer["steps"]] == [10, 4, 0, 0]
    assert answer["totals"] == {"A": 20, "B": 14}


def test_a_workload_kind_is_a_file_and_a_line(tmp_path: Path) -> None:
    write(
        tmp_path,
        "pulse.py",
        '''
        """A job of equal tasks every so many seconds."""

        from typing import Literal

        from pydantic import Field

        from harness.traces.spec import TaskSpec
        from harness.jobs.workloads.base import MapReduceWorkload, leaf, mapreduce
        from harness.model.jobs import JobSpec


        class PulseWorkload(MapReduceWorkload):
            kind: Literal["pulse"]
            task: TaskSpec
            tasks: int = Field(ge=1)
            every_s: float = Field(gt=0)
            times: int = Field(ge=1)

            def demands(self):
                yield "task", self.task.demand.resource()

            def build(self, workload, *, queue, seed, start_s, scale):
                stages = mapreduce(self.tasks, 0, self.task, self.task, self.slow_start, scale)
                return [
                    JobSpec(f"{leaf(queue)}-{at}", queue, "mapreduce", self.am.resource(), stages,
                            submit_s=start_s + at * self.every_s)
                    for at in range(self.times)
                ]
        ''',
    )
    write(
        tmp_path,
        "pulses.yaml",
        """
        experiment: pulses
        cluster: {nodes: [{count: 1, memory_mb: 8192, vcores: 8}]}
        queues: {a: {weight: 1}}
        workloads:
          a:
            inline:
              kind: pulse
              am: {memory_mb: 1024}
              tasks: 3
              every_s: 30
              times: 2
              task: {demand: {memory_mb: 1024}, duration: {constant_s: 5}}
        policies: [fair]
        """,
    )
    entry = "from harness.jobs.workloads import KINDS; KINDS['pulse'] = 'pulse:PulseWorkload'"
    ended = yarnfair(tmp_path, entry, "run", "pulses.yaml", "--out", "runs", "--json")
    (queue,) = ended["runs"][0]["summary"]["queues"].values()
    assert queue["jobs"] == 2
    assert queue["failed"] == 0


def test_a_cluster_backend_is_a_class_and_a_line(tmp_path: Path) -> None:
    write(
        tmp_path,
        "pretend.py",
        '''
        """A cluster that is the simulator behind a ResourceManager's face, as a process of this machine."""

        import contextlib
        import os
        import sys
        import time
        import uuid
        from dataclasses import replace

        from harness.clusters import processes
        from harness.clusters.base import Cluster
        from harness.clusters.daemons import free_ports
        from harness.clusters.shared import LocalFolder
        from harness.clusters.state import ClusterState
        from harness.clusters.status import Part, wait_for_nodes


        class PretendCluster(Cluster):
            backend = "pretend"

            def up(self, spec, *, timeout_s=180.0, keep=False):
                with self.folder.lock():
                    ports = free_ports(["http", "client", "admin"])
                    state = ClusterState(self.backend, uuid.uuid4().hex, spec, ports=ports, started_at=time.time())
                    self.folder.path("scheduler").mkdir()
                    words = [sys.executable, "-m", "harness", "sim", "serve", "--queues", "1", "--apps", "0"]
                    for option, name in (("--port", "http"), ("--client-port", "client"), ("--admin-port", "admin")):
                        words += [option, str(ports[name])]
                    words += ["--allocations", str(self.place().path)]
                    began = processes.start(words, environment={**os.environ, processes.MARK: state.mark},
                                            folder=self.folder.folder, log=self.folder.path("log"))
                    state = replace(state, processes={"rm": began})
                    self.folder.save(state)
                    start = time.monotonic()
                    return self._came_up(state, start, wait_for_nodes(state.rest, 1, start + timeout_s))

            def _clean(self, state):
                return processes.stop(list(state.processes.values()), state.mark)

            def _status(self, state):
                runs = state.processes["rm"].alive
                return self._told(state, Part("rm", "sim" if runs else None, None, ""), [], wanted=1)

            @contextlib.contextmanager
            def share(self, name, beside):
                yield LocalFolder(beside / name), sys.executable
        ''',
    )
    entry = "from harness.clusters.backends import BACKENDS; BACKENDS['pretend'] = 'pretend:PretendCluster'"
    where = ("--backend", "pretend", "--state", str(tmp_path / "cluster"), "--json")
    try:
        assert yarnfair(tmp_path, entry, "cluster", "up", *where, "--timeout", "240")["up"]
        status = yarnfair(tmp_path, entry, "cluster", "status", *where)
        assert (status["backend"], status["nodes_running"]) == ("pretend", 1)
        checks = yarnfair(tmp_path, entry, "cluster", "doctor", *where)["checks"]
        assert [check["result"] for check in checks if check["check"] == "right-rm"] == ["fine"]
    finally:
        yarnfair(tmp_path, entry, "cluster", "down", *where)
    assert not (tmp_path / "cluster").exists()


#: One queue of two uses half of a cluster.
HALF = """
experiment: half
cluster: {nodes: [{count: 2, memory_mb: 8192, vcores: 8}]}
queues: {a: {weight: 1}, b: {weight: 1}}
workloads:
  a: {inline: {kind: sequence, submission: {every_s: 5}, am: {memory_mb: 1024}, task: {demand: {memory_mb: 1024},
      duration: {constant_s: 9}}, jobs: [{name: j, maps: 7}]}}
policies: [fair, fifo]
"""


def test_a_metric_is_a_rule_and_a_line(tmp_path: Path) -> None:
    """It is computed in one file, named in another; table, report, check and SQL then have it."""
    entry = edited(
        (
            "harness.results.papers",
            """        "soft_fairness": soft_fairness(curves),""",
            """        "soft_fairness": soft_fairness(curves),
        "most_held": float(curves.dominant.sum(axis=1).max(initial=0.0)),""",
        ),
        (
            "harness.results.catalogue",
            """    Metric("fairness_error",""",
            """    Metric("most_held", "most of the cluster held at once", "", "higher", 3, 0.01),
    Metric("fairness_error",""",
        ),
    )
    write(tmp_path, "half.yaml", HALF)
    ended = yarnfair(tmp_path, entry, "run", "half.yaml", "--out", "runs", "--jobs", "1", "--json")
    assert [run["summary"]["most_held"] for run in ended["runs"]] == [0.5, 0.5]
    assert "most of the cluster held at once" in (tmp_path / "runs" / "report.html").read_text()
    found = yarnfair(tmp_path, entry, "sql", "select most_held from runs", "runs/fair", "runs/fifo", "--json")
    assert found["rows"] == [{"most_held": 0.5}] * 2
    yarnfair(tmp_path, entry, "baseline", "runs/fair", "-o", "recorded.json", "--json")
    summary = tmp_path / "runs" / "fair" / "summary.json"
    write(tmp_path, "runs/fair/summary.json", summary.read_text().replace('"most_held": 0.5', '"most_held": 0.3'))
    checked = yarnfair(tmp_path, entry, "check", "runs/fair", "--baseline", "recorded.json", "--json", code=3)
    assert [(one["metric"], one["verdict"]) for one in checked["regressions"]] == [("most_held", "worse")]


def test_a_policy_that_needs_a_new_figure_of_the_ledger_is_four_files(tmp_path: Path) -> None:
    """The figure in the ledger, a field of what policies read of it, the policy, and its line in the registry."""
    entry = edited(
        ("harness.ledger.ledger", "PLAIN, SURPLUS = range(5)", "PLAIN, SURPLUS, USED_S = range(6)"),
        (
            "harness.ledger.ledger",
            "is also in its siblings' accounts\n\n",
            "is also in its siblings' accounts\n    used_s: float = 0.0\n\n",
        ),
        (
            "harness.ledger.ledger",
            "a.surplus] for a in held]).reshape(-1, 5)",
            "a.surplus, a.used_s] for a in held]).reshape(-1, 6)",
        ),
        ("harness.ledger.ledger", "surplus, window, late, passed_on)\n", "surplus, window, late, passed_on, used_s)\n"),
        (
            "harness.ledger.ledger",
            "(counted, pseudo, assumed, plain, surplus)",
            "(counted, pseudo, assumed, plain, surplus, used_s)",
        ),
        (
            "harness.ledger.ledger",
            "        columns[PLAIN] += amounts\n",
            "        columns[PLAIN] += amounts\n        columns[USED_S] += np.where(amounts > 0, counted_s, 0.0)\n",
        ),
        (
            "harness.ledger.ledger",
            "    @property\n    def start_s(self)",
            "    def used_s(self):\n        return dict(zip(self.leaves, self.columns[USED_S].tolist()))\n\n"
            "    @property\n    def start_s(self)",
        ),
        (
            "harness.policies.base",
            "    start_s: float = 0.0\n",
            "    start_s: float = 0.0\n    used_s: Mapping[str, float] = field(default_factory=dict)\n",
        ),
        ("harness.policies.base", "{}, ledger.start_s)", "{}, ledger.start_s, ledger.used_s())"),
    )
    write(
        tmp_path,
        "shortest_use.py",
        '''
        """``shortest-use``: a queue's weight falls with the time in which it has used anything."""

        from harness.model.plan import Plan
        from harness.policies.base import Policy


        class ShortestUse(Policy):
            name = "shortest-use"

            def plan(self, snapshot, ledger):
                used_s = getattr(ledger, "used_s", {})
                leaves = [name for name, queue in snapshot.queues.items() if queue.leaf]
                return Plan(weights={name: 1000.0 / (10.0 + used_s.get(name, 0.0)) for name in leaves})
        ''',
    )
    entry += "from harness.policies.registry import POLICIES\nPOLICIES['shortest-use'] = 'shortest_use:ShortestUse'"
    write(tmp_path, "half.yaml", HALF.replace("[fair, fifo]", "[shortest-use@outside]"))
    words = ("run", "half.yaml", "--out", "runs", "--jobs", "1", "--no-report", "--json")
    yarnfair(tmp_path, entry, *words)
    lines = (tmp_path / "runs" / "shortest-use@outside" / "decisions.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    assert [(one["time_s"], one["weights"]) for one in told] == [
        (0.0, {"root.a": 100.0, "root.b": 100.0}),
        (15.0, {"root.a": 40.0, "root.b": 100.0}),
    ]
