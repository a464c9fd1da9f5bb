"""A served cluster: time, submissions, kills and moves, the allocation file, the RPC; the command."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.cli import main
from harness.model.resources import Resource
from harness.sim.shares import fair_shares
from harness.yarn import rpc
from harness.yarn.errors import Refused
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.rest import Submission
from harness.yarn.rmclient import NotEffective, RmAddress, RmClient
from tests.sim.serve.conftest import ALLOCATIONS, Served


def endless(tasks: int, seconds: float = 5.0) -> dict[str, Any]:
    stage = {"name": "s", "tasks": tasks, "memory_mb": 512, "vcores": 1, "duration_s": seconds}
    return {"kind": "dag", "stages": [stage]}


def test_weights_decide_who_gets_more_once_they_are_refreshed(served: Served) -> None:
    for queue in ("root.a", "root.b.c"):
        served.submit(queue, job=endless(100_000))
    served.later(60)

    def used() -> float:
        """What root.a has of the 8 vcores, on average over 20 s."""
        total = 0
        for _ in range(20):
            served.later(1)
            queues = served.client.rest.scheduler().queues
            assert queues["root"].used.vcores <= 8
            total += queues["root.a"].used.vcores
        return total / 20

    before = used()
    assert 5.2 < before < 6.8
    served.file.write_text(ALLOCATIONS.format(a=1.0, b=3.0))
    served.client.refresh_queues()
    served.client.confirm_weights({"root.a": 1.0, "root.b": 3.0}, timeout_s=1)
    tree = QueueManager(parse_allocations(served.file.read_text())).tree()
    shares = fair_shares(tree, Resource(8192, 8))
    wanted = {path: share.steady for path, share in shares.items() if path != "root"}
    queues = served.client.rest.scheduler().queues
    assert {path: queues[path].steady_share for path in wanted} == wanted
    served.later(60)
    # Masters count too, in memory: three of eight, not two.
    assert 1.5 < used() < 3.5


def test_a_file_that_changes_is_loaded_by_the_poll_when_it_has_been_still(served: Served) -> None:
    def write(text: str) -> None:
        served.file.write_text(text)
        os.utime(served.file, (served.now[0], served.now[0]))

    write(ALLOCATIONS.format(a=2.0, b=1.0))
    served.later(5)  # 7 s: no poll yet
    assert served.client.effective_queues()["root.a"].weight == 3.0
    write(ALLOCATIONS.format(a=4.0, b=1.0))
    served.later(3.5)  # 10.5 s: the poll at 10 s found it too young
    assert served.client.effective_queues()["root.a"].weight == 3.0
    served.later(10)
    assert served.client.effective_queues()["root.a"].weight == 4.0
    assert served.log == []


def test_a_broken_file_is_hidden_and_the_queues_stay(served: Served) -> None:
    for text in ("<allocations><queue", "<nonsense/>", "", ALLOCATIONS.format(a="heavy", b="1")):
        served.file.write_text(text)
        served.client.refresh_queues()
        with pytest.raises(NotEffective, match="weight 3, wanted 5"):
            served.client.confirm_weights({"root.a": 5.0}, timeout_s=0.05)
    assert len(served.log) == 1
    assert "Failed to reload allocations file" in served.log[0]
    served.file.unlink()
    served.client.refresh_queues()
    served.file.write_text(ALLOCATIONS.format(a="5", b="1"))
    served.client.refresh_queues()
    served.client.confirm_weights({"root.a": 5.0}, timeout_s=1)


def test_queues_come_and_go(served: Served) -> None:
    served.file.write_text(ALLOCATIONS.format(a=3, b=1).replace("</allocations>", '<queue name="e"/></allocations>'))
    served.client.refresh_queues()
    app = served.submit("root.e", job=endless(4))
    ad_hoc = served.submit("root.x.y", job=endless(4))
    served.later(10)
    queues = served.client.rest.scheduler().queues
    assert queues["root.e"].used.vcores > 0
    assert queues["root.x.y"].used.vcores > 0
    served.file.write_text(ALLOCATIONS.format(a=3, b=1))
    served.client.refresh_queues()
    served.later(40)
    assert {served.client.rest.app_state(identity) for identity in (app, ad_hoc)} == {"FINISHED"}
    assert set(served.client.rest.scheduler().queues) == {"root", "root.a", "root.b", "root.b.c", "root.b.d"}
    again = served.submit("root.z", job=endless(4))
    served.later(40)
    assert served.client.rest.app(again).state == "FINISHED"


def test_a_job_is_submitted_moved_accounted_and_killed(served: Served) -> None:
    rest = served.client.rest
    identity = rest.submit(Submission("sleeper", "root.a", "sleep 300", tags=["Tag"]))
    served.later(3)
    app = rest.app(identity)
    assert (app.user, app.queue, app.tags, app.state) == ("alice", "root.a", {"tag"}, "ACCEPTED")
    assert app.allocated == Resource(256, 1)
    assert rest.move(identity, "b.c") == "root.b.c"
    queues = rest.scheduler().queues
    assert (queues["root.a"].used, queues["root.b"].used) == (Resource(0, 0), Resource(256, 1))
    assert (queues["root.a"].active_apps, queues["root.b.c"].active_apps) == (0, 1)
    for target in ("root.nowhere", "root.b"):
        with pytest.raises(Refused):
            rest.move(identity, target)
    first = served.submit("root.b.d", job=endless(1000))
    served.later(3)
    with pytest.raises(Refused):  # maxRunningApps 1
        rest.move(identity, "root.b.d")
    assert rest.kill(identity) == "KILLED"
    assert rest.kill(identity) == "KILLED"
    ended = rest.app(identity)
    assert (ended.final, ended.queue) == (True, "root.b.c")
    assert ended.memory_seconds // 256 == ended.vcore_seconds
    assert 4 <= ended.vcore_seconds <= 6
    assert "killed by user alice" in ended.diagnostics
    # Asks and containers go along, and the next container is the new queue's.
    assert rest.move(first, "root.a") == "root.a"
    served.later(20)
    queues = rest.scheduler().queues
    assert (queues["root.b"].used, queues["root.b"].demand) == (Resource(0, 0), Resource(0, 0))
    assert queues["root.a"].used.vcores == 8
    assert queues["root.a"].demand.vcores > 100


def test_memory_seconds_are_cached_for_three_seconds_as_in_hadoop(served: Served) -> None:
    identity = served.submit("root.a", command="sleep 300")
    served.later(3.0)
    first = served.client.rest.app(identity).memory_seconds
    served.later(2.0)
    assert served.client.rest.app(identity).memory_seconds == first
    served.later(1.5)
    assert served.client.rest.app(identity).memory_seconds == first + round(3.5 * 256)


def test_a_master_that_only_sleeps_never_registers_and_fails(served: Served) -> None:
    identity = served.submit("root.a", command="sleep 20")
    served.later(15)
    assert served.client.rest.app_state(identity) == "ACCEPTED"
    served.later(10)
    assert served.client.rest.app_state(identity) == "FAILED"


def test_ended_applications_are_retained_up_to_a_number(served: Served) -> None:
    ids = [served.submit("root.a", command="exit 0") for _ in range(30)]
    served.later(60)
    rest = served.client.rest
    assert [app.id for app in rest.apps()] == ids[10:]
    assert rest.metrics().apps_failed == 30
    with pytest.raises(Refused, match="not found"):
        rest.app(ids[0])


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("[", "is not JSON"),
        ("[]", "is not an object"),
        ('{"kind": "x"}', "kind: it should be 'mapreduce'"),
        ('{"stages": 3}', "stages: it should be a valid list"),
        ('{"stages": [{"tasks": -1}]}', "stages.0.tasks: it should be greater"),
        ('{"stages": [{"memory_mb": 1e99}]}', "stages.0.memory_mb"),
        ('{"stages": [{"memory_mb": 100000, "vcores": 1}]}', "which no node has"),
        ('{"stages": [{"after": ["z"]}]}', "not a stage of the job"),
        ('{"surprise": 1}', "unknown key"),
    ],
)
def test_a_job_that_cannot_be_is_refused_in_one_line(served: Served, job: str, said: str) -> None:
    with pytest.raises(Refused, match=re.escape(said)) as caught:
        served.client.rest.submit(Submission("x", "root.a", "", environment={"YARNFAIR_JOB": job}))
    assert caught.value.status == 400
    assert "\n" not in caught.value.line()


def test_after_a_refused_job_the_next_ones_have_their_own_names_and_queues(served: Served) -> None:
    too_large = {"stages": [{"memory_mb": 100_000, "vcores": 1}]}
    with pytest.raises(Refused, match="which no node has"):
        served.client.rest.submit(
            Submission("large", "root.a", "", environment={"YARNFAIR_JOB": json.dumps(too_large)})
        )
    first = served.submit("root.b.c", command="sleep 20", **{"application-name": "first"})
    second = served.submit("root.a", command="sleep 20", **{"application-name": "second"})
    found = [served.client.rest.app(identity) for identity in (first, second)]
    assert [(app.name, app.queue) for app in found] == [("first", "root.b.c"), ("second", "root.a")]


def test_what_the_rpc_does_not_have_is_said_as_hadoop_says_it(served: Served) -> None:
    rm = served.client.rms[0]
    protocol = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
    with pytest.raises(Refused, match="Unknown method refreshNodes") as caught:
        rpc.call(rm.admin, protocol, "refreshNodes", user="alice")
    assert caught.value.exception == "RpcNoSuchMethodException"
    with pytest.raises(Refused) as caught:
        rpc.call(rm.admin, "org.x.Y", "refreshQueues", user="alice")
    assert caught.value.exception == "RpcNoSuchProtocolException"


def test_what_a_method_throws_is_the_answer(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def throws(name: str) -> str:
        raise KeyError(name)

    monkeypatch.setattr("harness.sim.serve.rpc.ensure_root_prefix", throws)
    with pytest.raises(Refused, match="RuntimeException: KeyError: 'root'"):
        served.client.effective_queues()


def test_numbers_of_applications_follow_each_other(served: Served) -> None:
    first = served.client.rest.new_application().id
    second = served.submit("root.a", command="sleep 1")
    assert int(second.rpartition("_")[2]) == int(first.rpartition("_")[2]) + 1
    assert second.startswith(f"application_{served.cluster.id}_")


# --- the command ---


@contextlib.contextmanager
def start(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "harness", "sim", "serve", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.rstrip() == "}":
            return dict(json.loads(text))
    assert process.stderr is not None
    raise AssertionError(process.stderr.read())


FREE = ("--port", "0", "--admin-port", "0", "--client-port", "0", "--json")


def test_an_experiment_is_served_and_ends_with_the_signal(tmp_path: Path) -> None:
    file = tmp_path / "sub" / "fair-scheduler.xml"
    with start("outside", *FREE, "--speed", "50", "--allocations", str(file)) as process:
        document = ready(process)
        assert document["allocation_file"] == str(file)
        with RmClient([RmAddress.of(document["rest"], admin=document["admin"], client=document["client"])]) as rm:
            assert rm.rest.info().id == document["id"]
            assert rm.rest.metrics().active_nodes == document["nodes"] == 59
            text = file.read_text().replace("<weight>1</weight>", "<weight>2.5</weight>", 1)
            file.write_text(text)
            rm.refresh_queues()
            assert sorted(queue.weight for queue in rm.effective_queues().values()) == [1.0, 1.0, 1.0, 1.0, 2.5]
            assert rm.rest.apps()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=300) == 0
    assert file.exists()


def test_a_load_of_given_size_is_served_and_interrupted() -> None:
    with start("--queues", "7", "--apps", "20", "--speed", "30", *FREE) as process:
        document = ready(process)
        with RmClient([RmAddress.of(document["rest"])]) as rm:
            tree = rm.rest.scheduler()
            assert len([queue for queue in tree.queues.values() if queue.leaf]) == 7
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
        assert process.returncode == 130
        assert err.strip().splitlines()[-1] == "yarnfair: interrupted"
        assert "note: at --speed 30 an `enforce` with a period of 5 s skips applications" in err
    assert not Path(document["allocation_file"]).parent.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "give an experiment, or --queues"),
        (("outside", "--queues", "3"), 2, "give an experiment, or --queues"),
        (("nowhere",), 1, "no such experiment"),
        (("outside", "--speed", "nan"), 2, "--speed"),
        (("outside", "--policy", "nonsense"), 2, "nonsense"),
        (("outside", "--policy", "ltrf@outside"), 2, "acts from outside"),
        (("outside", "--allocations", "/proc/nothing/x.xml"), 1, "cannot be written"),
        (("outside", "--allocations", "pyproject.toml"), 1, "pyproject.toml"),
    ],
)
def test_wrong_calls_are_one_line(
    arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["sim", "serve", *arguments, *(FREE if "--speed" not in arguments else ())])
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (code, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("option", ["--port", "--client-port"])
def test_a_busy_port_is_named_with_its_option(served: Served, option: str) -> None:
    busy = served.rest.port
    free = [part for name in ("--port", "--admin-port", "--client-port") if name != option for part in (name, "0")]
    with start("--queues", "2", "--apps", "1", option, str(busy), *free) as process:
        _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert f"127.0.0.1:{busy} ({option}): cannot listen: Address already in use" in err
    assert f"give {option} 0 for a free port" in err


def test_an_allocation_file_of_the_users_own_is_what_the_cluster_starts_with(tmp_path: Path) -> None:
    from harness.experiments.served import synthetic_setup, with_file

    file = tmp_path / "f.xml"
    file.write_text('<allocations><queue name="q0001"><weight>7</weight></queue></allocations>')
    setup = with_file(synthetic_setup(1, 2), file)
    assert setup.allocations.weight("root.q0001") == 7.0
    file.write_text("<allocations>")
    with pytest.raises(InputError, match=re.escape(str(file))):
        with_file(setup, file)


@pytest.mark.java
def test_hadoops_own_command_refreshes_and_is_told_what_is_not_there(served: Served, tmp_path: Path) -> None:
    """``yarn rmadmin -refreshQueues`` of Hadoop 3.4.2, a client that knows nothing of us."""
    from harness.clusters import site
    from harness.clusters.jars import find

    rm = served.client.rms[0]
    conf = tmp_path / "conf"
    conf.mkdir()
    site.write(conf / "core-site.xml", site.render({"ipc.client.connect.max.retries": "1"}))
    site.write(conf / "yarn-site.xml", site.render({"yarn.resourcemanager.admin.address": str(rm.admin)}))
    site.write(conf / "log4j.properties", site.LOG4J)
    command = ["java", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-XX:TieredStopAtLevel=1", "-Xmx128m"]
    command += ["-cp", f"{conf}:{find()}/*", "org.apache.hadoop.yarn.client.cli.RMAdminCLI"]
    served.file.write_text(ALLOCATIONS.format(a=8, b=1))
    done = subprocess.run([*command, "-refreshQueues"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert served.client.effective_queues()["root.a"].weight == 8.0
    other = subprocess.run([*command, "-refreshNodes"], capture_output=True, text=True, timeout=200)
    assert other.returncode != 0
    assert "Unknown method refreshNodes" in other.stdout + other.stderr
