"""What a job's staging folder holds, byte for byte as Hadoop reads it, and the properties that its client would set."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from harness.base.errors import InputError
from harness.clusters.shared import LocalFolder
from harness.clusters.site import render
from harness.experiments.real.curves import JobRun
from harness.experiments.real.trace import run_jobs
from harness.jobs.engines.base import ProgramJob, Site
from harness.jobs.mapreduce import staging
from harness.jobs.mapreduce.catalogue import APPLICATIONS, Call, HadoopJob
from harness.jobs.mapreduce.places import LocalStore
from harness.jobs.mapreduce.programs import MapReducePrograms
from harness.jobs.mapreduce.staging import InputFile, Split, splits_of
from harness.jobs.workloads.programs import ProgramsWorkload, jobs_of_program
from harness.model.resources import Resource
from harness.traces.spec import DataSpec, DemandSpec, ProgramSpec, SubmissionSpec
from harness.yarn.answers import NewApplication
from harness.yarn.rest import LocalFile, RestClient

files = st.lists(st.integers(0, 10**7), min_size=1, max_size=6).map(
    lambda sizes: [InputFile(f"/data/part-{number}", size) for number, size in enumerate(sizes)]
)


@given(files, st.integers(1, 60))
def test_splits_cover_every_byte_once_and_are_as_many_as_asked(given_files: list[InputFile], maps: int) -> None:
    splits = splits_of(given_files, maps)
    for file in given_files:
        own = sorted((split for split in splits if split.path == file.path), key=lambda split: split.start)
        assert own, "a file that nobody reads"
        at = 0
        for split in own:
            assert split.start == at
            at += split.length
        assert at == file.size
    full = [file for file in given_files if file.size]
    if full and all(file.size > maps for file in full):
        assert len(splits) - (len(given_files) - len(full)) == max(maps, len(full))


class Reader:
    """Hadoop's side: WritableUtils.readVLong, Text.readString, as org.apache.hadoop.io has them."""

    def __init__(self, data: bytes) -> None:
        self.stream = io.BytesIO(data)

    def byte(self) -> int:
        return int(struct.unpack("b", self.stream.read(1))[0])

    def vlong(self) -> int:
        first = self.byte()
        if first >= -112:
            return first
        negative = first < -120
        value = 0
        for _ in range(-119 - first - 1 if negative else -111 - first - 1):
            value = (value << 8) | self.stream.read(1)[0]
        return ~value if negative else value

    def text(self) -> str:
        return self.stream.read(self.vlong()).decode()


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_read_back(value: int) -> None:
    reader = Reader(staging.vlong(value))
    assert reader.vlong() == value
    assert not reader.stream.read()


def test_known_numbers() -> None:
    # From WritableUtils' documentation: one byte from -112 to 127, then a length byte and the bytes, big end first.
    assert staging.vlong(127) == b"\x7f"
    assert staging.vlong(-112) == b"\x90"
    assert staging.vlong(128) == b"\x8f\x80"
    assert staging.vlong(1000) == b"\x8e\x03\xe8"
    assert staging.vlong(-113) == b"\x87\x70"


@pytest.mark.parametrize("new_api", [True, False])
def test_the_meta_file_points_at_the_splits(new_api: bool) -> None:
    # Hadoop reads the path back by new Path(String), which escapes what has to be.
    home = "/home/jane@corp.example/\u00e9"
    splits = [Split(f"{home}/part-0", 0, 70_000), Split(f"{home}/part-0", 70_000, 5), Split("/c/part-1", 0, 0)]
    data, meta = staging.split_files(splits, new_api=new_api)
    assert data.startswith(b"SPL\x00\x00\x00\x01")
    reader = Reader(meta)
    assert reader.stream.read(8) == b"META-SPL"
    assert (reader.vlong(), reader.vlong()) == (1, 3)
    for split in splits:
        locations, offset, length = reader.vlong(), reader.vlong(), reader.vlong()
        assert (locations, length) == (0, split.length)
        body = Reader(data[offset:])
        assert body.text() == (
            "org.apache.hadoop.mapreduce.lib.input.FileSplit" if new_api else "org.apache.hadoop.mapred.FileSplit"
        )
        assert body.text() == f"file:{split.path}"
        assert struct.unpack(">qq", body.stream.read(16)) == (split.start, split.length)
    assert not reader.stream.read()


def test_terasorts_cuts_part_the_sample_evenly() -> None:
    records = [bytes([65 + number % 26]) * 100 for number in range(260)]
    reader = Reader(staging.partition_file(records, 4))
    cuts = [reader.text() for _ in range(3)]
    assert cuts == ["G" * 10, "N" * 10, "T" * 10]
    assert not reader.stream.read()
    assert staging.partition_file(records, 1) == b""


def jobs_of(name: str, tmp_path: Path) -> list[HadoopJob]:
    application = APPLICATIONS[name]
    call = Call("/out", 3, dict(application.settings), "/usr/bin/python3", tmp_path, tmp_path)
    return list(application.jobs(call))


@pytest.mark.parametrize("name", APPLICATIONS)
def test_every_application_has_its_classes_and_output(name: str, tmp_path: Path) -> None:
    jobs = jobs_of(name, tmp_path)
    for number, job in enumerate(jobs, start=1):
        found = job.properties
        output = found["mapreduce.output.fileoutputformat.outputdir"]
        last = number == APPLICATIONS[name].steps
        assert output.startswith("file:/out")
        assert (output == "file:/out") == last
        mapper = found.get("mapreduce.job.map.class") or found.get("mapred.mapper.class")
        assert mapper
        if "stream.map.streamprocessor" in found:
            assert found["stream.map.streamprocessor"].startswith("%2Fusr%2Fbin%2Fpython3+-S+-E+")
            assert not staging.is_new_api(found)
        else:
            assert staging.is_new_api(found)
        wanted = 1 if name == "grep" and last else 3
        assert int(found["mapreduce.job.reduces"]) == (wanted if APPLICATIONS[name].reduces else 0)
    assert len(jobs) == APPLICATIONS[name].steps


def test_job_xml_and_the_masters_context(tmp_path: Path) -> None:
    cluster = staging.Cluster("/opt/lib/*:/opt/conf", ("/s/streaming.jar",), "/s/staging", "/s/history", "ann", 700)
    assert cluster.folder("application_17_0004") == "/s/staging/ann/.staging/job_17_0004"
    sized = staging.Sized(Resource(600, 2), Resource(900, 1), Resource(500, 1))
    (job,) = jobs_of("terasort", tmp_path)
    found = staging.job_xml(
        job,
        sized,
        cluster,
        queue="root.a",
        name="a < b & c",
        work="/s/work",
        cached={"centres.txt": LocalFile("file:/s/centres.txt", 12, 5000)},
        properties={"mapreduce.task.timeout": "1"},
    )
    assert (found["mapreduce.map.memory.mb"], found["mapreduce.map.cpu.vcores"]) == ("600", "2")
    assert (found["mapreduce.reduce.memory.mb"], found["mapreduce.reduce.cpu.vcores"]) == ("900", "1")
    assert found["mapreduce.map.java.opts"].startswith("-Xmx300m ")
    assert found["mapreduce.reduce.java.opts"].startswith("-Xmx450m ")
    # TeraSort's client names its output; the cuts lie in the job's own folder.
    assert found["mapreduce.job.working.dir"] == "file:/s/work"
    assert found["mapreduce.job.cache.files"] == "file:/s/centres.txt#centres.txt"
    assert found["mapreduce.job.cache.files.timestamps"] == "5000"
    assert found["mapreduce.task.timeout"] == "1"
    root = etree.fromstring(render(found).encode())
    read = {item.findtext("name"): item.findtext("value") for item in root.iter("property")}
    assert read == found
    submitted = staging.submission(
        sized, cluster, LocalFile("file:/s/job.xml", 9, 1000), queue="root.a", name="a-1", tags=["t"]
    ).document("application_17_0004")
    assert submitted["resource"] == {"memory": 500, "vCores": 1}
    assert submitted["application-type"] == "MAPREDUCE"
    context = submitted["am-container-spec"]
    assert "-Xmx300m" in context["commands"]["command"]
    assert context["commands"]["command"].count("MRAppMaster") == 1
    (environment,) = [entry for entry in context["environment"]["entry"] if entry["key"] == "CLASSPATH"]
    assert environment["value"] == "$PWD:$HADOOP_CONF_DIR:/opt/lib/*:/opt/conf:/s/streaming.jar"


def one_word_count(data: DataSpec) -> list[ProgramJob]:
    program = ProgramSpec(application="wordcount", input=["words"], maps=1, reduces=1)
    workload = ProgramsWorkload(
        kind="programs",
        am=DemandSpec(memory_mb=512),
        task=DemandSpec(memory_mb=512),
        data={"words": data},
        submission=SubmissionSpec(think_s=0.0),
        programs=[program],
    )
    return jobs_of_program(workload, program, "root.default", "words")


class Rest:
    """A ResourceManager that takes everything."""

    def new_application(self) -> NewApplication:
        return NewApplication("application_1700000000000_0007", Resource(4096, 4))

    def submit(self, submission: object, identity: str) -> str:
        return identity


def test_a_job_has_as_many_maps_as_its_input_has_parts_at_least(tmp_path: Path) -> None:
    data = DataSpec(kind="text", size="1KB")
    for number in range(2):
        (tmp_path / f"part-0000{number}").write_bytes(b"a word\n")
    (job,) = one_word_count(data)
    assert job.maps == 1
    site = Site(cast(RestClient, Rest()), LocalFolder(tmp_path), "python3", {data: tmp_path}, "t")
    programs = MapReducePrograms(site, LocalStore(tmp_path), [job])
    name = job.spec.id
    programs.submit(name)
    history = tmp_path / "t" / name / "history" / "job.jhist"
    ended = [
        f'{{"event": {{"MapAttemptFinished": {{"attemptId": "attempt_1_7_m_{at:06d}_0", "finishTime": {9000 + at}}}}}}}'
        for at in range(2)
    ]
    began = [
        json.dumps(
            {
                "event": {
                    "TaskAttemptStarted": {
                        "taskid": f"task_1_7_m_{at:06d}",
                        "taskType": "MAP",
                        "attemptId": f"attempt_1_7_m_{at:06d}_0",
                        "startTime": 5000,
                        "trackerName": "n:1",
                        "httpPort": 8042,
                        "containerId": "c",
                    }
                }
            }
        )
        for at in range(2)
    ]
    history.write_text("\n".join([*began, *ended]))
    record, measured = programs.record(name), programs.measured(name, None)
    (line,) = run_jobs([JobRun(measured, submitted_s=0.0, record=record)], 1)
    assert [stage.tasks for stage in measured.stages] == [2, 1]
    assert line.stages[0].tasks_s == [4.0, 4.001]


@pytest.mark.parametrize("name", ["a b", "a%b", "a,b"])
def test_paths_that_hadoop_cannot_hold_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    data = DataSpec(kind="text", size="1KB")
    jobs = one_word_count(data)
    (tmp_path / name).mkdir()
    for place, folder in ((tmp_path / name, tmp_path), (tmp_path, tmp_path / name)):
        site = Site(cast(RestClient, None), LocalFolder(place), "python3", {data: folder}, "t")
        programs = MapReducePrograms(site, LocalStore(place), jobs)
        with pytest.raises(InputError, match="Hadoop's paths have no blanks") as refused:
            programs.prepare()
        assert refused.value.where == str(tmp_path / name)
