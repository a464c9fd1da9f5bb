"""Every option that names a file to write goes through one writer: nothing but a regular file is ever replaced.

The table `WRITERS` has a call for each such option. A new option that writes a file fails `test_every_option...` until
it has a row there.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from harness.base.errors import YarnfairError
from harness.base.outputs import check_output, check_output_folder, write_output, write_output_by
from harness.cli import COMMANDS, cli
from harness.cli.output import OutputFile, OutputFolder
from tests.report.conftest import three_policies, write_run  # noqa: F401 - fixtures

#: Options whose paths are only read.
INPUTS = {
    "--yarn-site",
    *("--baseline", "--history", "--acknowledge", "--cluster", "--against", "--config", "--ledger", "--run"),
    *("--keytab", "--ca-file", "--inventory", "--state", "--jar"),
    *("--allocations", "--from"),
}
#: The same of single commands: these show what is in the folder.
READ_ONLY = {"campaign plan --out", "campaign status --out"}
#: Folders that programs on a cluster, or a remote store, fill: an address is possible there.
ADDRESSES = {"data generate --out", "job run --output", "run --shared"}

ALLOCATIONS = "<allocations><queue name='a'/></allocations>"


def _options() -> Iterator[tuple[str, click.Option]]:
    def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Option]]:
        if isinstance(command, click.Group):
            for verb in command.list_commands(click.Context(command)):
                inner = command.get_command(click.Context(command), verb)
                assert inner is not None
                yield from walk(inner, f"{name} {verb}")
            return
        for param in command.params:
            if isinstance(param, click.Option):
                longest = max(param.opts, key=len)
                yield f"{name} {longest}", param

    for verb in COMMANDS:
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None
        yield from walk(command, verb)


RAN = """{"trace": "yarnfair", "nodes": [{"memory_mb": 1024, "vcores": 1}], "queues": {"root.a": {}}}
{"job": "j", "queue": "root.a", "kind": "dag", "submit_s": 0, "started_s": 0, "finished_s": 9,\
 "am": {"memory_mb": 1, "vcores": 1}, "stages": [{"name": "s", "memory_mb": 1, "vcores": 1, "tasks_s": [9]}]}
"""


def _written() -> dict[str, click.Option]:
    return {name: option for name, option in _options() if isinstance(option.type, OutputFile)}


@pytest.fixture
def call(
    tmp_path: Path,
    three_policies: list[Path],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str, str], None]:
    """Calls a command that writes a file to a path; what takes long to compute is made up."""
    (tmp_path / "queues.yaml").write_text("queues: {a: {}}\n")
    (tmp_path / "fair.xml").write_text(ALLOCATIONS)
    (tmp_path / "ran.jsonl").write_text(RAN)
    (tmp_path / "jobs.csv").write_text("job,queue,submit_s,tasks,task_s,memory_mb\nj,a,0,1,9,1024\n")
    (tmp_path / "plan.xml").write_text('<allocations><queue name="a"/></allocations>')
    monkeypatch.setattr("harness.cli.decide._decided", lambda script: "{}\n")
    monkeypatch.setattr("harness.cli.demo._simulate", lambda *_, **__: None)
    story = SimpleNamespace(burst_s=0, times=[0], paid_s=lambda: 1, controlled=[None])
    monkeypatch.setattr("harness.report.demo.read", lambda *_: story)
    monkeypatch.setattr("harness.report.demo.release", lambda *_: None)
    monkeypatch.setattr("harness.report.demo.as_svg", lambda _: "<svg/>")
    monkeypatch.setattr("harness.control.explain.explain", lambda *_: ["", ""])
    monkeypatch.setattr("harness.control.view_run.from_run", lambda *_, **__: None)
    spec = SimpleNamespace(scheduler="fair")
    what_if = SimpleNamespace(experiment=SimpleNamespace(spec=spec), close=lambda: None)
    monkeypatch.setattr("harness.predict.whatif.WhatIf", lambda *_, **__: what_if)
    monkeypatch.setattr("harness.cli.whatif._load", lambda *_: None)
    monkeypatch.setattr("harness.cli.whatif.on_scheduler_file", lambda experiment, _: experiment)
    monkeypatch.setattr("harness.cli.whatif._exported", lambda *_: {})
    monkeypatch.setattr("harness.cli.run.say_if_it_compiles", lambda *_: None)

    recorded = SimpleNamespace(header=SimpleNamespace(source="x"), jobs=[], notes=[])

    class Opened:
        def __enter__(self) -> tuple[None, None, None]:
            return None, None, None

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("harness.cli.record.open_recorded", lambda *_, **__: Opened())
    monkeypatch.setattr("harness.traces.recording.record_rm", lambda *_, **__: recorded)
    monkeypatch.setattr("harness.traces.recorded.trace_text", lambda *_: RAN)
    one, two = str(three_policies[0]), str(three_policies[1])
    base = tmp_path / "baseline.json"
    same = str(tmp_path / "plan.xml")
    (tmp_path / "planned.jsonl").write_text(RAN.replace('"finished_s": 9,', ""))
    plan = ["plan", str(tmp_path / "planned.jsonl"), "--before", same, "--after", same]
    arguments = {
        "render --output": ["render", str(tmp_path / "queues.yaml")],
        "convert --output": ["convert", str(tmp_path / "fair.xml")],
        "decide --output": ["decide", "script.json"],
        "record --out": ["record", "--rm", "http://localhost:1"],
        "report --out": ["report", one],
        "report --trace": ["report", one],
        "compare --html": ["compare", one, two],
        "plot --out": ["plot", one, "--figure", "speed-up"],
        "baseline --out": ["baseline", one],
        "check --junit": ["check", one, "--baseline", str(base)],
        "check --code-quality": ["check", one, "--baseline", str(base)],
        "demo --svg": ["demo"],
        "whatif --export": ["whatif", "demo"],
        "usage --csv": ["usage", str(tmp_path / "ran.jsonl")],
        "usage --html": ["usage", str(tmp_path / "ran.jsonl")],
        "usage --parquet": ["usage", str(tmp_path / "ran.jsonl")],
        "plan --junit": [*plan, "--phases", "1", "--fail-if", "refused(*) > 0", "--jobs", "1"],
        "plan --html": [*plan, "--phases", "1", "--jobs", "1"],
        "trend --html": ["trend", one],
        "data convert --out": ["data", "convert", "csv", str(tmp_path / "jobs.csv")],
    }

    def run(name: str, target: str) -> None:
        if name == "job run --tasks":
            from harness.cli.job import _write_tasks

            client: Any = SimpleNamespace(attempts=[], zero_ms=0)
            monkeypatch.setattr(
                "harness.jobs.engines.attempts.attempts_table",
                lambda *_: SimpleNamespace(to_parquet=lambda path: Path(path).write_bytes(b"PAR1")),
            )
            _write_tasks(Path(target), client)
            return
        if name.startswith("check") and not base.exists():
            cli.main(["baseline", one, "-o", str(base)], standalone_mode=False)
        cli.main([*arguments[name], name.split()[-1], target], standalone_mode=False)

    return run


#: Every option that names a file to write, but `record --follow`: that file is appended to and read again.
WRITERS = (
    *("render --output", "convert --output", "decide --output", "record --out", "report --out", "report --trace"),
    *("compare --html", "plot --out", "baseline --out", "check --junit", "check --code-quality", "demo --svg"),
    *("whatif --export", "job run --tasks", "usage --csv", "usage --html", "usage --parquet", "plan --junit"),
    *("plan --html", "trend --html", "data convert --out"),
)


def test_every_option_that_names_a_file_to_write_is_written_by_the_one_writer() -> None:
    paths = {
        name
        for name, option in _options()
        if isinstance(option.type, click.Path) and not isinstance(option.type, OutputFile | OutputFolder)
    }
    assert {name for name in paths if name.split()[-1] not in INPUTS} - READ_ONLY - ADDRESSES == set()
    # Text options whose names say that they are outputs.
    named = {
        name
        for name, option in _options()
        if {"-o", "--out", "--output"} & set(option.opts) and not isinstance(option.type, OutputFile | OutputFolder)
    }
    assert named - READ_ONLY - ADDRESSES == set()
    assert set(_written()) == {*WRITERS, "record --follow"}


def _suffixed(name: str, path: Path) -> Path:
    """The same for a figure, whose format its ending says."""
    return path.with_suffix(".svg") if name == "plot --out" else path


@pytest.mark.parametrize("name", WRITERS)
class TestEachOption:
    def test_a_device_stays_a_device(self, name: str, call: Callable[[str, str], None], tmp_path: Path) -> None:
        device = _suffixed(name, tmp_path / "device")
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            device.symlink_to("/dev/null")
        try:
            call(name, str(device))
        except PermissionError:
            pytest.skip("devices cannot be opened here")
        assert stat.S_ISCHR(device.stat().st_mode)

    def test_a_fifo_is_written_into(self, name: str, call: Callable[[str, str], None], tmp_path: Path) -> None:
        fifo = _suffixed(name, tmp_path / "fifo")
        os.mkfifo(fifo)
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
        reader.start()
        call(name, str(fifo))
        reader.join(20)
        assert stat.S_ISFIFO(fifo.stat().st_mode)
        assert read
        assert read[0]

    def test_a_link_stays_a_link_and_its_target_is_replaced(
        self, name: str, call: Callable[[str, str], None], tmp_path: Path
    ) -> None:
        (tmp_path / "far").mkdir()
        target, link = tmp_path / "far" / "target", _suffixed(name, tmp_path / "link")
        target.write_text("before")
        target.chmod(0o640)
        link.symlink_to(target)
        call(name, str(link))
        assert link.is_symlink()
        assert target.read_bytes() not in (b"", b"before")
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        assert [path.name for path in (tmp_path / "far").iterdir()] == ["target"]

    def test_a_link_that_leads_nowhere_yet_stays_a_link(
        self, name: str, call: Callable[[str, str], None], tmp_path: Path
    ) -> None:
        link = _suffixed(name, tmp_path / "link")
        link.symlink_to(tmp_path / "target")
        call(name, str(link))
        assert link.is_symlink()
        assert (tmp_path / "target").stat().st_size

    def test_a_dash_is_standard_output_and_nothing_else_is_there(
        self, name: str, call: Callable[[str, str], None], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        file = _suffixed(name, tmp_path / "file")
        call(name, str(file))
        sys.stdout.flush()
        capfdbinary.readouterr()
        before = {path.name for path in Path.cwd().iterdir()}
        call(name, "-")
        sys.stdout.flush()
        assert capfdbinary.readouterr().out == file.read_bytes()
        assert {path.name for path in Path.cwd().iterdir()} == before

    def test_standard_output_by_its_name_is_written_and_not_replaced(
        self, name: str, call: Callable[[str, str], None], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        link = _suffixed(name, tmp_path / "link")
        link.symlink_to("/dev/stdout")
        call(name, str(link))
        sys.stdout.flush()
        assert link.is_symlink()
        assert os.path.islink("/dev/stdout")
        assert capfdbinary.readouterr().out


def test_a_descriptor_of_the_shell_is_written_where_it_stands(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as log:
        log.write(b"before\n")
        write_output(Path(f"/dev/fd/{log.fileno()}"), "text\n")
        log.write(b"after\n")
    assert (tmp_path / "log").read_bytes() == b"before\ntext\nafter\n"


def test_a_failed_write_leaves_the_file_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(YarnfairError, match="No space left"):
        write_output_by(file, fail)
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_mode_of_a_new_file_is_what_the_umask_leaves_while_threads_write(tmp_path: Path) -> None:
    before = os.umask(0o027)
    wrong: list[int] = []

    def create(which: int) -> None:
        for turn in range(200):
            write_output(tmp_path / f"{which}", "text")
            plain = tmp_path / f"{which}-{turn}"
            plain.touch()
            for path in (tmp_path / f"{which}", plain):
                if stat.S_IMODE(path.stat().st_mode) != 0o640:
                    wrong.append(stat.S_IMODE(path.stat().st_mode))

    try:
        threads = [threading.Thread(target=create, args=(which,)) for which in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        os.umask(before)
    assert wrong == []


def test_what_cannot_be_written_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    latin = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    for path, why in (
        (latin, "not UTF-8"),
        (tmp_path / "file" / "inner", "Not a directory"),
        (tmp_path / "folder", "Is a directory"),
    ):
        with pytest.raises(YarnfairError, match=why):
            check_output(path)
    for path, why in ((latin, "not UTF-8"), (tmp_path / "file", "Not a directory")):
        with pytest.raises(YarnfairError, match=why):
            check_output_folder(path)
    check_output(tmp_path / "new" / "file")
    check_output_folder(tmp_path / "new" / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize("first", [True, False])
def test_two_outputs_cannot_both_be_standard_output(tmp_path: Path, first: bool) -> None:
    (tmp_path / "queues.yaml").write_text("queues: {a: {}}\n")
    words = ["render", str(tmp_path / "queues.yaml"), *(["--json", "-o", "-"] if first else ["-o", "-", "--json"])]
    with pytest.raises(click.UsageError, match="both write to standard output"):
        cli.main(words, standalone_mode=False)
