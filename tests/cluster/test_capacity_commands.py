"""Every command that reads a cluster, on a served RM with the Capacity Scheduler: it works, or says why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli import main
from harness.clusters.doctor import examine_rm
from harness.yarn.capacity.source import StoreSource
from harness.yarn.rest import RestClient
from tests.cluster import test_live_capacity as capacity
from tests.cluster.enforcing import until

pytestmark = pytest.mark.xdist_group("capacity")

#: (command, exit code, what it says). RM and DIR stand for the address and the folder.
COMMANDS = [
    ("explain a --rm RM", 0, ("Capacity 1, 25.0 % of its siblings' sum.", "uses least of its capacity")),
    ("top --rm RM --once", 0, ("4,096 MiB used",)),
    ("record --rm RM -o DIR/trace.jsonl", 0, ("applications: ",)),
    ("validate DIR/capacity-scheduler.xml", 0, ("is valid",)),
    ("render DIR/tree.yaml --scheduler capacity", 0, ("root.b.max-parallel-apps",)),
    ("convert DIR/fair-scheduler.xml --fixed-queues", 0, ("root.a.max-parallel-apps",)),
    ("shares DIR/capacity-scheduler.xml --memory-mb 4096 --vcores 16", 1, ("an allocation file's top element",)),
    ("enforce --config DIR/enforce.yaml --dry-run", 0, ("a 25 %, b 50 %, g 25 %",)),
    # Nothing was counted before: the capacities that are there are those that are wanted.
    ("enforce --config DIR/enforce.yaml --once", 0, ("nothing to change",)),
    ("explain g --rm RM --config DIR/enforce.yaml", 0, ("policy ltrf", "Capacity 1, 25.0 %")),
    ("top --config DIR/enforce.yaml --once", 0, ("ltrf",)),
    ("enforce --config DIR/entitled.yaml --once", 0, ("a 25 -> ", "in force after")),
    ("enforce --config DIR/enforce.yaml --release", 0, ("own capacities are in force",)),
    ("replay DIR/trace.jsonl --phases 0 --no-report --jobs 1 --out DIR/replay", 0, ("ltrf@outside", "capacity")),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a served RM without traps, whose applications have run, and a folder with files for commands."""
    folder = tmp_path_factory.mktemp("commands")
    mended = (
        f"  <property><name>{key}</name><value>{text}</value></property>\n" for key, text in capacity.MENDED.items()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacity, "FILE", capacity.FILE.replace("</configuration>", "".join(mended) + "</configuration>"))
        served = capacity.simulated(folder, **{"yarn.scheduler.configuration.store.class": "memory"})
        rm = next(served)
    url = rm.client.rest.http.current
    rm.submit("a", 12, 600)
    until(lambda: sum(app.memory_seconds > 0 for app in rm.client.rest.apps()) >= 8, "eight hold the whole node")
    said = f"policy: ltrf\nledger: {folder}/ledger.db\nrms: [{{rest: '{url}'}}]\n"
    (folder / "enforce.yaml").write_text(said)
    (folder / "entitled.yaml").write_text(f"{said}queues: {{root.a: 3, root.b: 2, root.g: 1}}\n")
    (folder / "tree.yaml").write_text("queues:\n  a: {weight: 1}\n  b: {weight: 3, max_running_apps: 2}\n")
    (folder / "fair-scheduler.xml").write_text(
        '<allocations><queue name="a"><maxRunningApps>2</maxRunningApps></queue><queue name="b"/></allocations>'
    )
    yield url, folder
    next(served, None)


def test_each_command_works_or_says_why(site: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    url, folder = site
    wrong = []
    for command, code, words in COMMANDS:
        arguments = [{"RM": url}.get(word, word).replace("DIR", str(folder)) for word in command.split()]
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = " ".join("".join(capsys.readouterr()).split())
        if ended.value.code != code or not all(each in said for each in words):
            wrong.append(f"{command}: {ended.value.code}, {said[-600:]}")
    assert not wrong, "\n".join(wrong)


def test_doctor_does_not_take_what_may_be_a_lift_for_the_administrators_priority(site: tuple[str, Path]) -> None:
    name = f"{capacity.P}root.a.priority"
    with RestClient([site[0]]) as client:
        source = StoreSource(client.http)
        for priority, result in (("1", "note"), ("2", "problem")):
            source.write({f"{capacity.P}root.ordering-policy": "priority-utilization", name: priority}, source.read())
            found = [finding for finding in examine_rm(site[0]) if finding.check == "priority"]
            assert [(finding.result, "or the lift of" in finding.what) for finding in found] == [
                (result, result == "note")
            ]
        source.write({f"{capacity.P}root.ordering-policy": None, name: None}, source.read())
