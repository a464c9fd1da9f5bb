"""One definition of entitlements: the live controller, a replay of the same cluster, paper and simulator agree."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.experiments.resolve import LoadedExperiment, load_experiment
from harness.model.jobs import NodeSpec
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.tree import entitled_tree
from harness.predict.replay import capacity_limits_of, experiment_text
from harness.sim.capacity.api import Scheduler
from harness.traces.recorded import Header, NodeLine, QueueLine, read_trace, trace_text
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.source import FileSource
from harness.yarn.files import LocalStore
from tests.predict.loads import job

NODE = NodeSpec("node-0001", 1 << 20, 1000)


@dataclass
class Node:
    """A queue of a random tree: its parts among its siblings, in whole thousandths, and its children's kind."""

    path: str
    part: int = 1000
    mode: str = "weight"
    children: list[Node] = field(default_factory=list)


@st.composite
def trees(draw: st.DrawFn, modes: tuple[str, ...]) -> Node:
    """A tree of up to three levels below root; siblings' parts are whole thousandths that sum to 1000."""
    absolute = "absolute" in modes and draw(st.booleans())

    def grow(path: str, part: int, depth: int) -> Node:
        mode = "absolute" if absolute else draw(st.sampled_from([one for one in modes if one != "absolute"]))
        node = Node(path, part, mode)
        count = draw(st.integers(2 if depth == 0 else 0, 3)) if depth < 3 else 0
        if count:
            cuts = sorted(draw(st.sets(st.integers(1, 999), min_size=count - 1, max_size=count - 1)))
            parts = [high - low for low, high in zip([0, *cuts], [*cuts, 1000], strict=True)]
            node.children = [grow(f"{path}.q{n}", one, depth + 1) for n, one in enumerate(parts)]
        return node

    return grow("root", 1000, 0)


def walk(node: Node) -> list[Node]:
    return [node, *(below for child in node.children for below in walk(child))]


def configured(tree: Node) -> tuple[dict[str, str], dict[str, float]]:
    """Capacity Scheduler settings of the tree, and the numbers that its ResourceManager shows of the queues."""
    texts: dict[str, str] = {}
    shown: dict[str, float] = {}
    memory = {"root": NODE.memory_mb}
    for node in walk(tree):
        if not node.children:
            continue
        texts[f"{node.path}.queues"] = ",".join(child.path.rpartition(".")[2] for child in node.children)
        left = memory[node.path]
        for at, child in enumerate(node.children):
            if node.mode == "absolute":
                last = at == len(node.children) - 1
                own = left if last else max(memory[node.path] * child.part // 1000, 1)
                left -= own
                memory[child.path] = own
                texts[f"{child.path}.capacity"], shown[child.path] = f"[memory={own},vcores=1]", float(own)
            else:
                memory[child.path] = 0
                number = child.part / 10
                texts[f"{child.path}.capacity"] = f"{number:g}w" if node.mode == "weight" else f"{number:g}"
                shown[child.path] = number
    return texts, shown


def replayed(folder: Path, header: Header) -> LoadedExperiment:
    """The experiment that `replay` plays of a recording with one job."""
    trace = folder / "trace.jsonl"
    trace.write_text(trace_text(header, [job("one", header.leaves()[0], 0.0, 1, 1.0)]))
    kinds = (header.scheduler or "fair",)
    (folder / "replay.yaml").write_text(experiment_text(read_trace(trace), "one", "trace.jsonl", schedulers=kinds))
    return load_experiment(str(folder / "replay.yaml"))


def dues(weights: dict[str, float]) -> dict[str, float]:
    """What `ltrf` owes each leaf of the cluster by these entitlements, as the policies on paper compute it."""
    parents = {path.rpartition(".")[0] for path in weights}
    views: dict[str, Any] = {
        path: QueueView(path, path.rpartition(".")[0] or None, path not in parents, weights[path]) for path in weights
    }
    tree = entitled_tree(Snapshot(0.0, Resource(1, 1), views), "leaves")
    return {tree.names[q]: tree.flat_share[q] for q in tree.leaves}


@settings(max_examples=60, deadline=None)
@given(tree=trees(("weight", "percent", "absolute")))
def test_a_capacity_scheduler_s_tree_has_one_entitlement_everywhere(tree: Node) -> None:
    texts, shown = configured(tree)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "capacity-scheduler.xml").write_text(render_properties(texts))
        live = CapacityActuator(FileSource(LocalStore(folder / "capacity-scheduler.xml")))
        live.read()
        # A recording clamps like this; a share of a small parent may come to 0 MiB.
        header = Header(
            nodes=[NodeLine(memory_mb=NODE.memory_mb, vcores=NODE.vcores)],
            queues={path: QueueLine(weight=max(value, 1e-6)) for path, value in shown.items()},
            scheduler="capacity",
        )
        loaded = replayed(folder, header)
    controller = {"root": 100.0, **live.configured_weights()}
    replay = {"root": 100.0, **{path: value for path, value in loaded.weights.items() if path != "root"}}
    assert replay == pytest.approx(controller, rel=1e-9)
    due = dues(replay)
    assert due == pytest.approx({path: controller[path] / 100 for path in due}, abs=5e-4)
    if tree.mode != "absolute":
        # The scheduler's own effective shares, which its engine computes from the administrator's file in float32.
        engine = Scheduler({}, texts, [NODE])
        effective = {path: float(engine.S.q[engine.queue_slots[path]]["abs"]) for path in due}
        assert due == pytest.approx(effective, rel=1e-4, abs=5e-4)


@settings(max_examples=30, deadline=None)
@given(tree=trees(("weight",)))
def test_a_fair_scheduler_s_tree_has_one_entitlement_everywhere(tree: Node) -> None:
    weights = {node.path: node.part / 10 for node in walk(tree) if node.path != "root"}

    def xml(node: Node) -> str:
        name = node.path.rpartition(".")[2]
        below = "".join(map(xml, node.children))
        return f'<queue name="{name}"><weight>{node.part / 10:g}</weight>{below}</queue>'

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "".join(map(xml, tree.children))
        (folder / "fair.xml").write_text(f'<?xml version="1.0"?>\n<allocations>{text}</allocations>\n')
        live = FileActuator(LocalStore(folder / "fair.xml"))
        live.read()
        header = Header(
            nodes=[NodeLine(memory_mb=NODE.memory_mb, vcores=NODE.vcores)],
            queues={path: QueueLine(weight=value) for path, value in weights.items()},
            scheduler="fair",
        )
        loaded = replayed(folder, header)
    controller = {path: value for path, value in live.configured_weights().items() if path != "root"}
    replay = {path: value for path, value in loaded.weights.items() if path != "root"}
    assert replay == pytest.approx(controller, rel=1e-6)
    assert dues({"root": 1.0, **replay}) == pytest.approx(dues({"root": 1.0, **controller}), rel=1e-6)


def test_three_levels_of_percentages_are_due_what_the_scheduler_guarantees(tmp_path: Path) -> None:
    raw = {"root.prod": 50.0, "root.lab": 50.0, "root.lab.ml": 60.0, "root.lab.bio": 40.0}
    raw |= {"root.lab.bio.x": 75.0, "root.lab.bio.y": 25.0}
    header = Header(
        nodes=[NodeLine(memory_mb=NODE.memory_mb, vcores=NODE.vcores)],
        queues={path: QueueLine(weight=value) for path, value in raw.items()},
        scheduler="capacity",
    )
    loaded = replayed(tmp_path, header)
    found = dues({"root": 1.0, **{path: value for path, value in loaded.weights.items() if path != "root"}})
    assert found == pytest.approx(
        {"root.prod": 0.5, "root.lab.ml": 0.3, "root.lab.bio.x": 0.15, "root.lab.bio.y": 0.05}
    )


@pytest.mark.parametrize("order", ["early,late", "late,early"])
def test_equal_siblings_are_tried_in_the_recorded_order(order: str, tmp_path: Path) -> None:
    """Of an odd number of containers, the sibling that the scheduler lists first gets one more."""
    from harness.experiments.resolve import jobs_of, variants_of
    from harness.experiments.simulated import setup_of, simulate_variant

    header = Header(
        nodes=[NodeLine(memory_mb=7 * 1024, vcores=100)],
        queues={path: QueueLine(weight=50) for path in ("root.early", "root.late")},
        max_am_share=-1.0,
        scheduler="capacity",
        capacity={"root.queues": order},
    )
    trace = tmp_path / "trace.jsonl"
    jobs = [job(name, f"root.{name}", 0.0, 20, 30.0) for name in ("early", "late")]
    trace.write_text(trace_text(header, jobs))
    file = tmp_path / "replay.yaml"
    file.write_text(experiment_text(read_trace(trace), "one", "trace.jsonl", schedulers=("capacity",), sample_s=1.0))
    loaded = load_experiment(str(file))
    samples = simulate_variant(setup_of(loaded, variants_of(loaded)[0], jobs_of(loaded, 1)[0])).samples
    at = list(samples.time_s).index(20.0)
    held = {name: samples.allocated_mb[at][samples.queues.index(f"root.{name}")] // 1024 for name in order.split(",")}
    assert list(held.values()) == [4, 3]


def test_the_order_of_queues_holds_for_those_of_the_trace() -> None:
    """A queue that came later follows; one that is gone, and the list of a parent without children, are left out."""
    header = Header(
        nodes=[NodeLine(memory_mb=1024, vcores=1)],
        queues={path: QueueLine() for path in ("root.a", "root.b", "root.c", "root.d")},
        scheduler="capacity",
        capacity={"root.queues": "c,gone,b", "root.a.queues": "x,y"},
    )
    assert capacity_limits_of(header) == {"root.queues": "c,b,a,d"}


def test_a_parent_without_children_is_played_as_a_leaf(tmp_path: Path) -> None:
    """'utilization' is a parent's order by default; the queues of such a parent are made on demand and may be gone."""
    header = Header(
        nodes=[NodeLine(memory_mb=NODE.memory_mb, vcores=NODE.vcores)],
        queues={"root.research": QueueLine(weight=40), "root.prod": QueueLine(weight=60), "root.prod.a": QueueLine()},
        scheduler="capacity",
        capacity={
            "root.ordering-policy": "utilization",
            "root.research.ordering-policy": "utilization",
            "root.prod.ordering-policy": "fifo",
            "root.prod.user-limit-factor": "2",
        },
    )
    assert capacity_limits_of(header) == {"root.ordering-policy": "utilization", "root.prod.user-limit-factor": "2"}
    loaded = replayed(tmp_path, header)
    from harness.experiments.resolve import jobs_of, variants_of
    from harness.experiments.simulated import setup_of, simulate_variant

    variant = variants_of(loaded)[0]
    result = simulate_variant(setup_of(loaded, variant, jobs_of(loaded, 1)[0]))
    assert result.finished
