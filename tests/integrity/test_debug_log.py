"""What is asked of daemons is logged with its answers, bounded, and without secrets; --debug is on every command."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from harness.base.debug import FILE, MOST_BYTES, MOST_CHARACTERS, OLDER, debug_log, debug_to, redacted, shown
from harness.base.errors import InputError, YarnfairError
from harness.cli import COMMANDS, cli
from harness.clusters import jars
from harness.policies.registry import make_policy
from harness.sim.simulate import Simulation
from harness.yarn.http import HttpClient, HttpOptions
from harness.yarn.rpc import RpcAddress, call
from harness.yarn.webhdfs import WebHdfs
from tests.sim.conftest import mapreduce, setup
from tests.yarn.fake_server import FakeServer, conf, http

LOGGER = logging.getLogger("harness.tests")

SECRETS = (
    "http://user:hunter2@host:8088/ws",
    "https://nn:9871/webhdfs/v1/a?op=OPEN&delegation=hunter2&user.name=a",
    "Authorization: Negotiate hunter2hunter2",
    "Cookie: hadoop.auth=hunter2; other=hunter2",
    "Set-Cookie: hadoop.auth=hunter2",
    """curl -H 'Authorization: Bearer hunter2hunter2' -H "Cookie: a=hunter2" http://rm""",
    '{"password": "hunter2", "a": 1}',
    '{"a": {"access-token": "hun\\"hunter2 hunter2"}}',
    "{'yarn.secret': 'hunter2'}",
    '{"property": [{"name": "ssl.server.keystore.keypassword", "value": "hunter2"}]}',
    "<property><name>hadoop.ssl.keystore.password</name>\n<value>hunter2</value></property>",
    "AWS_SECRET_ACCESS_KEY=hunter2 hdfs dfs -ls",
    "program --password hunter2 --user a",
    "program --token='hunter2 hunter2'",
    "-----BEGIN RSA PRIVATE KEY-----\nhunter2\nhunter2\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2",
    '{"token": "hunter2 and the rest was cut of',
)


@contextmanager
def logged(*, in_json: bool = False) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    end = debug_to(stream, in_json=in_json)
    try:
        yield stream
    finally:
        end()


@pytest.mark.parametrize("text", SECRETS)
def test_no_secret_is_in_any_line(text: str, tmp_path: Path) -> None:
    with logged() as stream, debug_log() as log:
        log.write_to(tmp_path)
        LOGGER.debug("asked: %s", text)
        LOGGER.debug("%s", shown("x" * 30_000 + "\n" + text))
    for written in (stream.getvalue(), (tmp_path / FILE).read_text(), redacted(text), shown(text)):
        assert written.strip()
        assert "hunter2" not in written


def test_what_is_no_secret_stays() -> None:
    text = "GET http://rm:8088/ws/v1/cluster/apps {'states': 'RUNNING', 'user.name': 'yarn'}: HTTP 200"
    assert redacted(text) == text


def test_a_line_and_the_file_are_bounded_and_the_latest_lines_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 100_000
    assert most < MOST_BYTES
    monkeypatch.setattr("harness.base.debug.MOST_BYTES", most)
    with debug_log() as log:
        log.write_to(tmp_path)
        for number in range(3 * most // MOST_CHARACTERS):
            LOGGER.debug("%s %s", number, "x" * 10_000)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [FILE, OLDER]
    assert all((tmp_path / name).stat().st_size <= most for name in files)
    lines = (tmp_path / FILE).read_text().splitlines()
    assert all(len(line) < MOST_CHARACTERS + 200 for line in lines)
    assert f": {number} xxx" in lines[-1]


def test_what_was_logged_before_there_was_a_directory_is_in_its_file(tmp_path: Path) -> None:
    with debug_log() as log:
        LOGGER.debug("the cluster starts")
        log.write_to(tmp_path)
        LOGGER.debug("the run begins\x1b[2J")
    LOGGER.debug("afterwards")
    first, second = (tmp_path / FILE).read_text().splitlines()
    assert first.endswith("debug harness.tests: the cluster starts")
    assert second.endswith("debug harness.tests: the run begins\\x1b[2J")


def test_a_directory_of_a_run_that_asked_nobody_has_no_such_file(tmp_path: Path) -> None:
    with debug_log() as log:
        log.write_to(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_rest_call_is_logged_with_its_answer_and_without_its_cookies() -> None:
    with FakeServer(conf({"a": "b"})) as rm, logged() as stream:
        client = HttpClient([rm.url], HttpOptions(user="somebody"))
        with pytest.raises(YarnfairError):
            client.request("GET", "/none", repeatable=True, params={"delegation": "hunter2"})
        client.close()
    (line,) = [line for line in stream.getvalue().splitlines() if "harness.yarn.http" in line]
    assert f"GET {rm.url}/none {{'delegation': ***, 'user.name': 'somebody'}}: HTTP 404, " in line
    assert "hunter2" not in stream.getvalue()


def test_a_call_without_an_answer_is_logged() -> None:
    with logged() as stream:
        client = HttpClient(["http://127.0.0.1:1"], HttpOptions(attempts=1))
        with pytest.raises(YarnfairError):
            client.request("GET", "/conf", repeatable=True)
        client.close()
        with pytest.raises(YarnfairError):
            call(RpcAddress("127.0.0.1", 1), "org.apache.Protocol", "refreshQueues", user="me", timeout_s=1)
    http, rpc = stream.getvalue().splitlines()
    assert "GET http://127.0.0.1:1/conf: no answer after" in http
    assert "127.0.0.1:1 Protocol.refreshQueues, 0 bytes, as me: failed after" in rpc


def test_lines_are_json_objects_where_enforce_writes_them() -> None:
    with logged(in_json=True) as stream:
        LOGGER.debug("asked %s", "token=hunter2")
    assert {**json.loads(stream.getvalue()), "time": ""} == {
        "time": "",
        "level": "debug",
        "event": "debug",
        "module": "harness.tests",
        "text": "asked token=***",
    }


def test_nothing_is_logged_without_being_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    LOGGER.debug("said to nobody")
    assert capsys.readouterr().err == ""
    assert not LOGGER.isEnabledFor(logging.DEBUG)


def test_debug_is_an_option_of_every_command() -> None:
    def lacking(command: click.Command, name: str) -> list[str]:
        if isinstance(command, click.Group):
            return [one for verb, inner in command.commands.items() for one in lacking(inner, f"{name} {verb}")]
        return [] if any("--debug" in param.opts for param in command.params) else [name]

    commands = {verb: cli.get_command(click.Context(cli), verb) for verb in COMMANDS}
    assert [one for verb, command in commands.items() if command is not None for one in lacking(command, verb)] == []


def test_debug_writes_to_standard_error_and_leaves_the_result_alone() -> None:
    with FakeServer(conf({"a": "b"})) as rm:
        words = [sys.executable, "-m", "harness", "record", "--rm", rm.url, "--debug"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert "debug harness.yarn.http: GET " in done.stderr
    assert "debug harness" not in done.stdout


def test_help_does_not_pay_for_it() -> None:
    words = [sys.executable, "-c", "import sys; from harness.cli import main\ntry: main(['--help'])\n"
             "except SystemExit: print('harness.base.debug' in sys.modules, 'logging' in sys.modules)"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


def test_webhdfs_logs_both_answers_without_the_token_that_a_namenode_gives() -> None:
    with FakeServer(http(200, b"data")) as data:
        target = f"{data.url}/webhdfs/v1/f?op=OPEN&delegation=hunter2"
        with FakeServer(http(307, b"", Location=target)) as name, logged() as stream:
            assert WebHdfs(name.url).read("/f") == b"data"
    text = stream.getvalue()
    assert "HTTP 307" in text
    assert f"{data.url}/webhdfs/v1/f: HTTP 200" in text
    assert "hunter2" not in text


def test_a_policy_and_its_settings_and_a_simulated_run_are_logged() -> None:
    with logged() as stream:
        policy = make_policy("ltrf", {"horizon_s": "7"})
        Simulation(setup([mapreduce("j", "a", 4)], policy=policy)).run()
    text = stream.getvalue()
    assert re.search(r"policy ltrf .*horizon_s=7", text)
    assert re.search(r"fair scheduler, mode inside, policy ltrf, seed 0: begins", text)
    assert re.search(r"ended at \d+ ms: [1-9]\d* tasks started, [1-9]\d* ended", text)


def test_what_maven_printed_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\necho '[ERROR] no such artefact'\nexit 1\n")
    maven.chmod(0o755)
    (tmp_path / "pom.xml").write_text("<project/>")
    monkeypatch.setattr(jars, "cache_folder", lambda: tmp_path)
    with logged() as stream, pytest.raises(InputError, match="no such artefact"):
        jars._resolve(str(maven), tmp_path / "pom.xml", tmp_path / "target", ("x-",), {})
    assert re.search(r"mvn -q -B .*: exit code 1 in \d+ ms: \[ERROR\] no such artefact", stream.getvalue())
