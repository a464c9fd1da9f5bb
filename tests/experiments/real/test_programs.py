"""Programs in an experiment before any cluster is there: their jobs, memory, data, and backends that refuse them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import CallError, InputError
from harness.clusters import processes
from harness.clusters.compose import DockerCluster
from harness.clusters.state import ClusterSpec, ClusterState, StateFolder
from harness.experiments.loads import program_loads
from harness.experiments.real.programs import (
    check_memory,
    make_data,
    node_limit_mb,
    program_jobs,
)
from harness.experiments.resolve import jobs_of, load_experiment
from harness.experiments.yarn import check_programs
from harness.jobs.workloads.programs import ProgramsWorkload

EXPERIMENT = """
experiment: two
cluster: {nodes: [{count: 2, memory_mb: 4096, vcores: 8}]}
queues: {A: {children: {x: {}}}, B: {children: {x: {}}}}
workloads:
  A.x: &load
    inline:
      kind: programs
      am: {memory_mb: 512}
      task: {memory_mb: 512}
      data: {text: {kind: text, size: 2KB, seed: 3}}
      submission: {think_s: 1}
      programs: [{application: grep, input: [text], maps: 1, reduces: 1}]
  B.x: *load
policies: [fair]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "two.yaml"
    file.write_text(EXPERIMENT)
    return file


def test_jobs_have_the_ids_of_the_run_also_where_leaves_share_a_name(path: Path) -> None:
    loaded = load_experiment(str(path))
    assert program_loads(loaded.loads)
    found = program_jobs(loaded, 1)
    assert [job.spec for job in found] == list(jobs_of(loaded, 1)[0])
    assert [job.spec.id for job in found] == [
        *("root.A.x/x-0001", "root.A.x/x-0001.2"),
        *("root.B.x/x-0001", "root.B.x/x-0001.2"),
    ]
    assert found[3].first == found[2].spec.id == found[3].spec.after_job


def test_what_the_project_brings_along_is_what_the_paper_says() -> None:
    for name in ("ltyarn-real", "ltyarn-real-hierarchy", "ltyarn-real-small"):
        loaded = load_experiment(name)
        assert {load.queue.rpartition(".")[2] for load in loaded.loads} == {"Facebook", "Purdue", "TPC-H", "Spark"}
        assert program_jobs(loaded, 1)
    ours, simulated = load_experiment("ltyarn-real"), load_experiment("ltyarn")
    table = {load.queue: load.workload.spec for load in simulated.loads}
    for load in ours.loads:
        spec = load.workload.spec
        assert isinstance(spec, ProgramsWorkload)
        if load.queue == "root.Facebook":
            bins = [(row.type, row.maps, row.reduces, row.jobs) for row in table[load.queue].bins]  # type: ignore[union-attr]
            assert [(p.type, p.maps, p.reduces, p.jobs) for p in spec.programs] == bins
        elif load.queue == "root.Purdue":
            jobs = [(job.name, job.maps, job.reduces) for job in table[load.queue].jobs]  # type: ignore[union-attr]
            assert [(p.type, p.maps, p.reduces) for p in spec.programs] == jobs
        else:
            names = [job.name for job in table[load.queue].jobs]  # type: ignore[union-attr]
            assert [p.type for p in spec.programs] == names


def test_memory_that_is_short_is_refused_with_the_figures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_experiment(str(path))
    monkeypatch.setattr(processes, "free_mb", lambda: 20_000)
    check_memory(loaded)
    monkeypatch.setattr(processes, "free_mb", lambda: 8500)
    with pytest.raises(InputError, match="memory is short: containers of 8192 MB") as found:
        check_memory(loaded)
    assert "8500 MB left" in found.value.line()
    assert "two.yaml:3" in found.value.line()


def test_dockers_nodes_may_take_what_they_offer(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit_mb = node_limit_mb(load_experiment(str(path)))
    assert limit_mb is not None
    assert limit_mb > 4096
    spec = ClusterSpec(node_limit_mb=limit_mb)
    state = ClusterState("docker", "mark", spec, ports={"http": 1, "client": 2, "admin": 3})
    cluster = DockerCluster(StateFolder(tmp_path))
    monkeypatch.delenv("NM_MEM_LIMIT", raising=False)
    assert cluster._environment(state)["NM_MEM_LIMIT"] == f"{limit_mb}m"
    monkeypatch.setenv("NM_MEM_LIMIT", "2g")
    assert cluster._environment(state)["NM_MEM_LIMIT"] == "2g", "what somebody has set holds"


def test_data_is_made_once(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    loaded, said = load_experiment(str(path)), list[str]()
    found = make_data(loaded, said.append)
    ((data, folder),) = found.items()
    assert (data.kind, data.seed) == ("text", 3)
    (part,) = folder.glob("part-*")
    before = part.stat().st_mtime_ns
    assert len(said) == 1
    assert make_data(loaded, said.append) == found
    assert part.stat().st_mtime_ns == before
    assert len(said) == 1
    # The manifest alone is no data.
    content = part.read_bytes()
    part.unlink()
    assert make_data(loaded, said.append) == found
    assert part.read_bytes() == content
    assert len(said) == 2
    (folder / "part-99999.txt").write_text("of somebody else")
    with pytest.raises(InputError, match=r"part-99999.txt is not of the data set"):
        make_data(loaded, said.append)


@pytest.mark.parametrize("backend", ["sim", "ssh"])
def test_backends_that_cannot_run_programs_say_so(path: Path, backend: str) -> None:
    with pytest.raises(CallError, match="runs programs that compute"):
        check_programs(load_experiment(str(path)), backend)


def test_the_others_take_them(path: Path) -> None:
    for backend in ("local", "docker"):
        check_programs(load_experiment(str(path)), backend)


def test_hives_queries_run_on_this_machines_processes_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text()
    text = text.replace("{text: {kind: text, size: 2KB, seed: 3}}", "{d: {kind: tpch, size: 1MB}}")
    path.write_text(text.replace("{application: grep, input: [text],", "{application: hive-q6, input: [d],"))
    loaded = load_experiment(str(path))
    assert {name for _, spec in program_loads(loaded.loads) for name in spec.engines()} == {"hive"}
    check_programs(loaded, "local")
    with pytest.raises(CallError, match="runs programs that compute, by hive; use --backend local"):
        check_programs(loaded, "docker")
    # HiveServer2 and its shells take memory besides.
    monkeypatch.setattr(processes, "free_mb", lambda: 10_300)
    with pytest.raises(InputError, match="memory is short"):
        check_memory(loaded)
    monkeypatch.setattr(processes, "free_mb", lambda: 12_000)
    check_memory(loaded)
