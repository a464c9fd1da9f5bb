"""A real HDFS, by WebHDFS: the allocation file in it, data sets, and programs that read and write there."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from harness.base.errors import InputError
from harness.cli import main
from harness.jobs.data import generate as making
from harness.jobs.data.targets import HdfsTarget, open_target
from harness.jobs.engines.base import Request
from harness.yarn.errors import Refused
from harness.yarn.files import FileChanged
from harness.yarn.http import HttpOptions
from harness.yarn.stores import WebHdfsStore
from harness.yarn.webhdfs import WebHdfs
from studies.real_faults.relay import MODES, Relay
from tests.cluster.hdfs import hdfs
from tests.cluster.local_clusters import one_queue, runner

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("live-hdfs")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebHdfs]:
    """One HDFS for the tests of this module."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as made:
        yield made


def test_the_allocation_file_is_replaced_in_hdfs_whole_or_not_at_all(files: WebHdfs) -> None:
    place = WebHdfsStore(files.base, "/conf/fair scheduler.xml", files.options)
    place.write(b"<allocations/>\n")
    new = b"<allocations>\n</allocations>\n" * 20_000
    place.write(new, before=b"<allocations/>\n")
    assert place.read() == new
    with pytest.raises(FileChanged):
        place.write(b"x", before=b"another")
    base = f"{place.base}/webhdfs/v1/conf"
    user = f"user.name={place.options.user}"
    requests.put(f"{base}/fair scheduler.xml?op=SETPERMISSION&permission=640&{user}", timeout=60).raise_for_status()
    place.write(b"<allocations/>")
    assert [(one.name, one.permission, one.size) for one in files.listing("/conf")] == [
        ("fair scheduler.xml", "640", 14)
    ]
    for wrong in (
        replace(place, path="/conf/none.xml").read,
        replace(place, path="/conf").read,
        lambda: replace(place, options=HttpOptions(user="mallory")).write(b"x"),
    ):
        with pytest.raises(Refused) as caught:
            wrong()
        assert "\tat " not in caught.value.line()
        assert " at org.apache" not in caught.value.line()
    assert place.read() == b"<allocations/>"


def test_whatever_breaks_on_the_way_to_hdfs_its_readers_find_a_whole_file(files: WebHdfs) -> None:
    """NameNode and DataNode are refused, cut, silent, slow or noisy while the allocation file is replaced."""
    folder, rng = "/broken", random.Random(7)
    reader = WebHdfsStore(files.base, f"{folder}/fair-scheduler.xml", files.options)
    documents = [b"<allocations>%d</allocations>" % number * (1 + 3000 * (number % 3)) for number in range(16)]
    reader.write(documents[0])
    told = requests.get(
        f"{files.base}/webhdfs/v1{reader.path}?op=OPEN&user.name={files.options.user}",
        allow_redirects=False,
        timeout=60,
    )
    datanode = urlsplit(told.headers["Location"]).netloc
    relays = [Relay(urlsplit(files.base).port or 0, 1), Relay(int(datanode.rpartition(":")[2]), 2)]
    relays[0].rewrites = {datanode.encode(): relays[1].address.encode()}
    options = replace(files.options, attempts=1, connect_timeout_s=1.0, read_timeout_s=2.0, deadline_s=4.0)
    place = WebHdfsStore(f"http://{relays[0].address}", reader.path, options)
    read: set[bytes] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.02):
            try:
                read.add(reader.read())
            except InputError as error:
                read.add(str(error).encode())

    looking = threading.Thread(target=look)
    looking.start()
    stands, written, failed = documents[0], 0, 0
    try:
        for new in documents[1:]:
            for relay in relays:
                relay.mode = rng.choice(("", "", *MODES))
            try:
                place.write(new, before=stands)
            except InputError:
                failed += 1
                # What was still on its way has come to its end within the deadline.
                time.sleep(0.2)
                now = reader.read()
                assert now in (stands, new)
                stands = now
            else:
                written += 1
                stands = new
                assert reader.read() == new
    finally:
        stop.set()
        looking.join()
        for relay in relays:
            relay.mode = ""
            relay.close()
    assert read <= set(documents)
    assert min(written, failed) >= 2
    reader.clear()
    assert [one.name for one in files.listing(folder)] == ["fair-scheduler.xml"]


def test_files_and_folders(files: WebHdfs, tmp_path: Path) -> None:
    assert re.fullmatch(r"hdfs://(127\.0\.0\.1|localhost):\d+", files.file_system())
    assert files.status("/none") is None
    with pytest.raises(Refused, match="none"):
        files.listing("/none")
    content = bytes(range(256)) * 20_000
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as source:
        files.write("/some/where/file", source)
    found = files.status("/some/where/file")
    assert found is not None
    assert (found.name, found.folder, found.size) == ("file", False, len(content))
    assert b"".join(files.pieces("/some/where/file")) == content
    files.make_folder("/some/other")
    assert [(one.name, one.folder) for one in files.listing("/some")] == [("other", True), ("where", True)]
    assert files.delete("/some")
    assert not files.delete("/some")
    with pytest.raises(Refused, match=r"(?i)permission"):
        WebHdfs(files.base, HttpOptions(user="mallory")).write("/mine", b"x")


def place_of(files: WebHdfs, folder: str) -> str:
    return f"webhdfs{files.base.removeprefix('http')}{folder}"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(["data", *arguments])
    return int(stop.value.code or 0), capsys.readouterr().out


def test_a_data_set_in_hdfs_is_resumed_and_verified(
    files: WebHdfs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(making, "PART_BYTES", 30_000)
    place = place_of(files, "/data/tera")
    target = open_target(place)

    def stop(done: int, of: int, size: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        making.generate("tera", 80_000, 3, target, stop)
    assert call(capsys, "verify", place)[0] == 1  # not complete
    code, out = call(capsys, "generate", "tera", "--size", "80000", "--seed", "3", "--out", place, "--json")
    assert code == 0
    made = json.loads(out)
    assert [one.name for one in files.listing("/data/tera")] == ["manifest.json", *made["parts"]]
    here = making.generate("tera", 80_000, 3, making.FolderTarget(tmp_path / "tera"))
    assert here.document()["sha256"] == made["sha256"]
    assert call(capsys, "verify", place)[0] == 0
    files.write("/data/tera/part-00001.bin", b"other")
    assert making.verify(target) == ["part-00001.bin has another checksum"]
    files.delete("/data/tera/part-00002.bin")
    assert "part-00002.bin is missing" in making.verify(target)
    with pytest.raises(InputError, match="another data set is there"):
        making.generate("text", 80_000, 3, target)


@pytest.mark.live
def test_programs_read_from_hdfs_and_write_to_it(files: WebHdfs, tmp_path: Path) -> None:
    text, tera = (open_target(place_of(files, f"/data/{name}-in")) for name in ("text", "records"))
    making.generate("text", 20_000, 2, text)
    making.generate("tera", 30_000, 2, tera)
    with one_queue(tmp_path, memory_mb=2048) as rest:
        client = runner(rest, tmp_path)
        for name, data, reduces in (("sequencecount", text, 1), ("terasort", tera, 2)):
            output = open_target(place_of(files, f"/out/{name}"))
            assert isinstance(output, HdfsTarget)
            request = Request(name, (data,), output, "root.a", maps=1, reduces=reduces)
            (done,) = client.run(request)
            assert done.why is None
            assert done.verdict is not None
            assert done.verdict.wrong is None
            assert done.verdict.records > 100
            kinds = ["map", *["reduce"] * reduces]
            assert sorted((a.kind, a.outcome) for a in done.attempts) == [(kind, "finished") for kind in kinds]
            assert "_SUCCESS" in output.sizes()
            with pytest.raises(InputError, match="is there already"):
                client.run(request)
        # Nothing of the staging is left.
        assert [one.name for one in files.listing("/out")] == ["sequencecount", "terasort"]
