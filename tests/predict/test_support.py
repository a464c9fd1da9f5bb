"""The table of features and verbs: its refusals are provoked, its counts shown, the tests that it names are there."""

from __future__ import annotations

import ast
import json
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.cli import COMMANDS, main
from harness.experiments.placed import with_scheduler_file
from harness.experiments.resolve import LoadedExperiment, jobs_of, variants_of
from harness.experiments.scheduler_file import read_scheduler_file
from harness.experiments.simulated import setup_of
from harness.model.preemption import PreemptionRule
from harness.model.queues import NEVER_MS, SchedulerName
from harness.model.resources import ZERO, Resource
from harness.predict.assess import traps_of
from harness.predict.feature import VERBS, Cluster, Feature, Verb, enforce_traps
from harness.predict.features import CAPACITY_BASE, FAIR_BASE, FEATURES
from harness.predict.replay import capacity_limits_of
from harness.predict.support import Row, lines, rows
from harness.predict.usage import statement
from harness.sim.capacity.api import Scheduler
from harness.sim.capacity.preempt_conf import PREEMPTION_PREFIX
from harness.sim.simulate import Simulation
from harness.traces.recorded import Header, NodeLine, QueueLine
from harness.traces.recording import nodes_of, places_asynchronously, rm_header
from harness.yarn import answers
from harness.yarn.answers import NodeStatus
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.monitors import POLICIES, PREEMPTION
from harness.yarn.capacity.properties import ASYNCHRONOUS, PREFIX, shown_properties, unseen_templates
from harness.yarn.capacity.traps import preemption_bound
from harness.yarn.errors import Refused
from harness.yarn.queue_limits import scheduler_limits
from tests.clusters.test_doctor import CAPACITY_FILE, RECORDED, held
from tests.control.driven import controlled
from tests.control.rm_model import CapacityRmModel, MemoryPlace, RmModel
from tests.control.soak import capacities
from tests.predict.loads import job
from tests.predict.test_entitlements import replayed
from tests.yarn.fake_server import FakeServer

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
FILE = "<allocations><queue name='a'/><queue name='b'/></allocations>"
TIMED = "<defaultFairSharePreemptionTimeout>5</defaultFairSharePreemptionTimeout>"
MINIMUM = "<queue name='c'><minResources>1024 mb,1 vcores</minResources></queue>"
CLOSED = "<allowPreemptionFrom>false</allowPreemptionFrom>"
REPO = Path(__file__).resolve().parents[2]
CELLS = [(feature, verb) for feature in FEATURES for verb in VERBS]
BY_KEY = {feature.key: feature for feature in FEATURES}


def cells(word: str, *verbs: Verb) -> list[Any]:
    """The features whose cell of these verbs has this word."""
    return [
        pytest.param(feature, verb, id=f"{feature.key}-{verb}")
        for feature, verb in CELLS
        if verb in verbs and feature.cell(verb).word == word
    ]


def own_keys(feature: Feature) -> set[str]:
    """The settings by which an example differs from a plain cluster."""
    plain = CAPACITY_BASE if feature.example.scheduler == "capacity" else FAIR_BASE
    have = {**feature.example.values, **feature.example.site}
    return {name for name, text in have.items() if {**plain.values, **plain.site}.get(name) != text}


def rm_of(cluster: Cluster) -> RmModel:
    """A ResourceManager in memory with such a cluster's settings."""
    if cluster.scheduler == "fair":
        rm: RmModel = RmModel(MemoryPlace(cluster.file.encode()))
    else:
        rm = CapacityRmModel(capacities.stored(dict(cluster.values)))
        rm.rest.capacity_limits = dict
    rm.rest.properties = lambda **_: dict(cluster.site)
    rm.rest.nodes = lambda *_, **__: [NodeStatus("n:1", "n", "/r", "RUNNING", "", "", 0, ZERO, Resource(8192, 8))]
    return rm


def test_every_verb_is_a_command() -> None:
    assert set(VERBS) <= set(COMMANDS)


def test_an_example_has_its_feature_and_a_plain_cluster_has_no_danger() -> None:
    assert len(BY_KEY) == len(FEATURES)
    for feature in FEATURES:
        assert feature.has(feature.example), feature.key
    assert enforce_traps(CAPACITY_BASE) == enforce_traps(FAIR_BASE) == ()
    plain = {"fair", "fair-ad-hoc", "hadoop-3.4"}, {"capacity", "capacity-percent", "store-file", "hadoop-3.4"}
    for cluster, keys in zip((FAIR_BASE, CAPACITY_BASE), plain, strict=True):
        assert {row.feature.key for row in rows(cluster)} == keys
        assert all(row.cells["enforce"].word == "works" for row in rows(cluster))


@pytest.mark.parametrize(("feature", "verb"), [pytest.param(f, v, id=f"{f.key}-{v}") for f, v in CELLS])
def test_what_works_or_is_counted_names_a_test_that_is_there(feature: Feature, verb: Verb) -> None:
    """A cell of the code's own words is provoked below; any other names its test, or nobody has tried."""
    cell = feature.cell(verb)
    if cell.word == "works":
        assert cell.test
    if cell.word != "works" and cell.word != "not tried":
        assert cell.why
    if cell.word == "not tried":
        assert not cell.test
    if cell.test:
        path, _, name = cell.test.partition("::")
        found = ast.parse((REPO / path).read_text(encoding="utf-8"))
        assert name in {one.name for one in found.body if isinstance(one, ast.FunctionDef)}, cell.test
        assert (name.startswith("test_"), Path(path).name.startswith("test_")) == (True, True)


@pytest.mark.parametrize(("feature", "verb"), cells("refused", "enforce"))
def test_the_controller_writes_nothing_where_the_table_says_that_it_refuses(
    feature: Feature, verb: Verb, tmp_path: Path
) -> None:
    rm = rm_of(feature.example)
    major, minor = feature.example.hadoop
    info = rm.rest.info
    rm.rest.info = lambda: replace(info(), version=f"{major}.{minor}.0")
    with controlled(rm, tmp_path) as controller:
        report = controller.tick()
        said = [alarm.text for alarm in report.alarms if alarm.kind == "trap"]
        assert not report.wrote
    (name,) = feature.traps
    (line,) = [text for text in said if text.startswith(f"{name}: ")]
    assert feature.cell(verb).why.partition(";")[0] in line


def test_the_controller_has_nothing_to_say_of_a_plain_cluster(tmp_path: Path) -> None:
    with controlled(rm_of(CAPACITY_BASE), tmp_path) as controller:
        assert not [alarm for alarm in controller.tick().alarms if alarm.kind in ("trap", "note")]


@pytest.mark.parametrize(("feature", "verb"), cells("counted but not steered", "enforce"))
def test_the_controller_says_what_it_leaves_as_it_is(feature: Feature, verb: Verb, tmp_path: Path) -> None:
    cell = feature.cell(verb)
    if cell.test:
        return  # shown there
    with controlled(rm_of(feature.example), tmp_path) as controller:
        report = controller.tick()
    assert [alarm for alarm in report.alarms if alarm.kind == "note" and cell.why in alarm.text]
    assert not [alarm for alarm in report.alarms if alarm.kind == "trap"]


@pytest.mark.parametrize(("feature", "verb"), cells("refused", "whatif", "plan"))
def test_a_schedulers_file_is_refused_by_name(feature: Feature, verb: Verb, tmp_path: Path) -> None:
    values = {name.removeprefix(PREFIX): text for name, text in feature.example.values.items()}
    if feature.key == "node-labels":
        # A label that root has not is refused by Hadoop itself.
        values |= {"root.accessible-node-labels": "gpu", "root.accessible-node-labels.gpu.capacity": "100"}
        values |= {
            "root.a.accessible-node-labels.gpu.capacity": "100",
            "root.b.accessible-node-labels.gpu.capacity": "0",
        }
        values |= {"root.b.accessible-node-labels": "gpu"}
    file = tmp_path / "capacity-scheduler.xml"
    file.write_text(render_properties(values))
    with pytest.raises(InputError, match=f"does not cover .*{feature.uncovered}"):
        read_scheduler_file(file, conf=dict(feature.example.site))
    assert feature.uncovered in feature.cell(verb).why


@pytest.mark.parametrize(("feature", "verb"), cells("counted but not steered", "assess", "whatif", "plan"))
def test_what_a_recording_does_not_have_is_played_without(feature: Feature, verb: Verb, tmp_path: Path) -> None:
    if not feature.played_without:
        assert feature.cell(verb).test
        return
    keys = own_keys(feature)
    assert keys
    header = rm_header(rm_of(feature.example), None, [])  # type: ignore[arg-type]
    loaded = replayed(tmp_path, header)
    assert not keys & set(header.conf)
    assert not {name.removeprefix(PREFIX) for name in keys} & set(capacity_limits_of(header))
    assert not keys & set(loaded.spec.conf)


def conf_of(stored: dict[str, str] | None) -> Any:
    """A client of a ResourceManager whose store has these properties; None: a file, which REST does not show."""

    def request(_: str, path: str, **__: object) -> Any:
        if stored is None:
            raise Refused("This API only works for mutable configuration", status=400)
        if path.endswith("/version"):
            return SimpleNamespace(document={"versionID": 1}, url="http://rm")
        rows = [{"name": name, "value": text} for name, text in {**CAPACITY_BASE.values, **stored}.items()]
        return SimpleNamespace(document={"property": rows}, url="http://rm")

    return SimpleNamespace(rest=SimpleNamespace(http=SimpleNamespace(current="http://rm", request=request)))


@pytest.mark.parametrize(
    ("hadoop", "stored", "site", "expected"),
    [
        ((3, 5), {}, {}, True),
        ((3, 5), {ASYNCHRONOUS: "false"}, {}, False),
        ((3, 4), {}, {}, False),
        ((3, 4), {ASYNCHRONOUS: "true"}, {}, True),
        ((3, 5), {ASYNCHRONOUS: "true"}, {ASYNCHRONOUS: "false"}, True),
        ((3, 5), None, {}, None),
        ((3, 4), None, {}, None),
        ((3, 5), None, {ASYNCHRONOUS: "false"}, False),
        ((3, 4), None, {ASYNCHRONOUS: " TRUE "}, True),
    ],
)
def test_a_recording_says_whether_containers_are_placed_asynchronously(
    hadoop: tuple[int, int], stored: dict[str, str] | None, site: dict[str, str], expected: bool | None
) -> None:
    """It is known by the store or by /conf. A recording did not hold it at all."""
    assert places_asynchronously(conf_of(stored), {**CAPACITY_BASE.site, **site}, hadoop) is expected
    # A store without the property tells nothing while /conf is hidden.
    assert stored or places_asynchronously(conf_of(stored), {}, hadoop) is None


@pytest.mark.parametrize(
    ("scheduler", "factor", "expected"),
    [("capacity", "10", ["user-limit-factor"]), ("capacity", "-1", []), ("fair", "10", [])],
)
def test_assess_finds_in_a_recording_what_enforce_asks_for(
    scheduler: SchedulerName, factor: str, expected: list[str]
) -> None:
    """Percentages of a tree, and all limits that /scheduler shows of the leaves."""
    weights = {"root.p": 60.0, "root.p.a": 30.0, "root.p.b": 70.0, "root.c": 40.0}
    limits = {"user-limit-factor": factor, "maximum-applications": "1800", "ordering-policy": "fifo"}
    header = Header(
        nodes=[NodeLine(memory_mb=8192, vcores=8)],
        queues={path: QueueLine(weight=weight) for path, weight in weights.items()},
        scheduler=scheduler,
        capacity={f"{leaf}.{key}": text for leaf in ("root.p.a", "root.p.b", "root.c") for key, text in limits.items()},
        # Answered apart, and no matter of the queues.
        asynchronous=True,
    )
    assert traps_of(header) == expected


def test_a_recording_has_the_switch_of_fair_preemption_and_no_time_outs(tmp_path: Path) -> None:
    example = BY_KEY["fair-preemption"].example
    timed = FILE.replace(
        "<allocations>", "<allocations><defaultFairSharePreemptionTimeout>5</defaultFairSharePreemptionTimeout>"
    )
    header = rm_header(rm_of(Cluster("fair", site=example.site, file=timed)), None, [])  # type: ignore[arg-type]
    assert header.conf["yarn.scheduler.fair.preemption"] == "true"
    loaded = replayed(tmp_path, header)
    setup = setup_of(loaded, variants_of(loaded)[0], jobs_of(loaded, 1)[0])
    assert setup.conf["yarn.scheduler.fair.preemption"] == "true"
    assert setup.allocations.default_fair_share_preemption_timeout_ms == NEVER_MS


def test_a_fair_schedulers_file_is_played_with_its_preemption(tmp_path: Path) -> None:
    (tmp_path / "fair.xml").write_text(FILE.replace("</allocations>", f"{TIMED}</allocations>"))
    found = read_scheduler_file(tmp_path / "fair.xml", conf={"yarn.scheduler.fair.preemption": "true"})
    assert found.allocations.default_fair_share_preemption_timeout_ms == 5000
    assert found.conf["yarn.scheduler.fair.preemption"] == "true"


@pytest.mark.parametrize(
    ("switch", "text", "kills"),
    [
        ("true", TIMED, True),
        ("false", TIMED, False),
        ("true", "", False),
        ("true", TIMED.replace("5", "-1"), False),
        ("true", TIMED + "<defaultFairSharePreemptionThreshold>0</defaultFairSharePreemptionThreshold>", False),
        ("true", TIMED.replace("Fair", "Min"), False),
        ("true", TIMED.replace("Fair", "Min") + MINIMUM, True),
        ("true", TIMED + CLOSED, False),
    ],
)
def test_fair_preemption_keeps_the_controller_from_writing_where_it_can_begin(
    switch: str, text: str, kills: bool, tmp_path: Path
) -> None:
    """It needs the switch, a queue that can starve, and another one that may be preempted from."""
    file = FILE.replace("</allocations>", f"{text}</allocations>")
    if CLOSED in text:
        # Of every queue, `default` too, which the RM makes by itself; and applications create none.
        queues = "".join(f"<queue name='{name}'>{CLOSED}</queue>" for name in ("a", "b", "default"))
        rules = "<rule name='specified' create='false'/><rule name='default'/>"
        placed = f"<queuePlacementPolicy>{rules}</queuePlacementPolicy>"
        file = f"<allocations>{queues}{TIMED}{placed}</allocations>"
    cluster = replace(FAIR_BASE, site={"yarn.scheduler.fair.preemption": switch}, file=file)
    assert [trap.name for trap in enforce_traps(cluster)] == (["preemption"] if kills else [])
    with controlled(rm_of(cluster), tmp_path) as controller:
        report = controller.tick()
        said = [alarm.text for alarm in report.alarms if alarm.kind == "trap"]
    assert (len(said) == 1 and said[0].startswith("preemption: ")) == kills


@pytest.mark.parametrize("near", [f"{PREEMPTION}Two", "x.ProportionalCapacityPreemptionPolicy"])
def test_a_monitor_is_known_by_the_full_name_of_its_class(near: str) -> None:
    example = BY_KEY["capacity-preemption"].example
    for policies, kills in ((near, False), (f"a.B , {PREEMPTION}", True)):
        cluster = replace(example, site={**example.site, POLICIES: policies})
        assert [trap.name for trap in enforce_traps(cluster)] == (["preemption"] if kills else [])
        assert BY_KEY["capacity-preemption"].has(cluster) == kills


def preempting(key: str = "capacity-preemption") -> Header:
    """What a recording of a cluster with preemption has in its first line; nothing is taken from root.b."""
    rm = rm_of(BY_KEY[key].example)
    rm.rest.capacity_limits = lambda: {"root.b.disable_preemption": "true", "root.b.user-limit-factor": "-1"}
    return rm_header(rm, None, [])  # type: ignore[arg-type]


def test_a_recording_has_the_settings_of_preemption() -> None:
    header = preempting("capacity-preemption-inside")
    assert header.conf[MONITOR] == "true"
    assert header.conf[f"{PREEMPTION_PREFIX}intra-queue-preemption.enabled"] == "true"
    assert (header.capacity or {})["root.b.disable_preemption"] == "true"
    assert ["capacity-scheduler.xml says" in said for said in header.assumed] == [True]
    # Where it is off all leaves are shown as closed to it: that is no setting of theirs.
    plain = rm_of(CAPACITY_BASE)
    plain.rest.properties = lambda **_: {MONITOR: "false", f"{PREEMPTION_PREFIX}monitoring_interval": "3000"}
    plain.rest.capacity_limits = lambda: {"root.b.disable_preemption": "true", "root.b.user-limit-factor": "-1"}
    header = rm_header(plain, None, [])  # type: ignore[arg-type]
    assert (header.conf, header.capacity, header.assumed) == ({}, {"root.b.user-limit-factor": "-1"}, [])


def played(loaded: LoadedExperiment) -> Simulation:
    return Simulation(setup_of(loaded, variants_of(loaded)[0], jobs_of(loaded, 1)[0]))


def test_a_recording_is_played_with_its_preemption(tmp_path: Path) -> None:
    scheduler = played(replayed(tmp_path, preempting())).scheduler
    assert scheduler.S.g[0]["preemption"] == 1
    closed = {path: bool(scheduler.S.p[slot]["disabled"]) for path, slot in scheduler.queue_slots.items()}
    assert closed == {"root": False, "root.a": False, "root.b": True}


@pytest.mark.parametrize("accepted", [False, True])
def test_a_policy_is_played_within_the_bound_of_enforce(tmp_path: Path, accepted: bool) -> None:
    """`assess`, `whatif` and `plan` do what `enforce` does for the same traps, with the rule of the same settings."""
    header = preempting()
    waits = {f"{PREEMPTION_PREFIX}max_wait_before_kill": "4000"}
    example = BY_KEY["capacity-preemption"].example
    enforced = enforce_traps(replace(example, site={**example.site, **waits}))
    loaded = replayed(tmp_path, header.model_copy(update={"conf": {**header.conf, **waits}}))
    actuation = loaded.spec.actuation.model_copy(update={"accept_preemption": accepted})
    loaded = replace(loaded, spec=loaded.spec.model_copy(update={"actuation": actuation}))
    inside = variants_of(loaded)[0]
    jobs = jobs_of(loaded, 1)[0]
    outside = setup_of(loaded, replace(inside, policy="ltrf", mode="outside"), jobs).preemption
    assert outside == preemption_bound(enforced, ("preemption",) if accepted else ())
    assert accepted or outside == PreemptionRule(wait_s=4.0)
    assert setup_of(loaded, inside, jobs).preemption is None
    off = replace(loaded, spec=loaded.spec.model_copy(update={"conf": {}}))
    assert setup_of(off, replace(inside, policy="ltrf", mode="outside"), jobs).preemption is None


def test_a_recording_with_preemption_inside_queues_is_refused(tmp_path: Path) -> None:
    loaded = replayed(tmp_path, preempting("capacity-preemption-inside"))
    with pytest.raises(InputError, match=BY_KEY["capacity-preemption-inside"].cell("assess").why):
        played(loaded)


def test_a_capacity_schedulers_file_is_played_with_its_preemption(tmp_path: Path) -> None:
    """The settings of the policy may stand in yarn-site.xml or in the file, whose word counts."""
    wait = f"{PREEMPTION_PREFIX}max_wait_before_kill"
    values = {name.removeprefix(PREFIX): text for name, text in CAPACITY_BASE.values.items()}
    values["root.b.disable_preemption"] = "true"
    own = f"<property><name>{wait}</name><value>4000</value></property></configuration>"
    file = tmp_path / "capacity-scheduler.xml"
    file.write_text(render_properties(values).replace("</configuration>", own))
    found = read_scheduler_file(file, conf={MONITOR: "true", wait: "9000"})
    assert (found.conf, found.ignored) == ({MONITOR: "true", wait: "4000"}, ())
    scheduler = Scheduler(found.conf, found.capacity, [])
    assert (scheduler.S.g[0]["preemption"], scheduler.S.g[0]["wait_ms"]) == (1, 4000)
    assert scheduler.S.p[scheduler.queue_slots["root.b"]]["disabled"] == 1
    off = read_scheduler_file(file, conf={MONITOR: "false"})
    assert off.ignored == (f"{PREFIX}root.b.disable_preemption",)
    assert Scheduler(off.conf, off.capacity, []).S.g[0]["preemption"] == 0
    inside = {MONITOR: "true", f"{PREEMPTION_PREFIX}intra-queue-preemption.enabled": "true"}
    with pytest.raises(InputError, match="preemption inside queues"):
        read_scheduler_file(file, conf=inside)
    # So has a command that plays an experiment, or a trace, on the file.
    (tmp_path / "trace").mkdir()
    loaded = replayed(tmp_path / "trace", preempting())
    on_file, _ = with_scheduler_file(loaded, found)
    assert played(on_file).scheduler.S.g[0]["wait_ms"] == 4000
    # A value may name another of the file.
    own = own.replace("4000", "${mine}").replace("</configuration>", "")
    own += "<property><name>mine</name><value>5000</value></property></configuration>"
    file.write_text(render_properties(values).replace("</configuration>", own))
    assert read_scheduler_file(file, conf={MONITOR: "true"}).conf[wait] == "5000"
    dropped = read_scheduler_file(file, conf=inside, drop=True)
    assert played(with_scheduler_file(loaded, dropped)[0]).scheduler.S.g[0]["preemption"] == 1
    assert Scheduler(dropped.conf, dropped.capacity, []).S.g[0]["preemption"] == 1


def shown_nodes() -> list[NodeStatus]:
    """Two nodes as a ResourceManager shows them: one of them has a label and GPUs."""
    document = json.loads((RECORDED / "nodes.json").read_text())
    first, second = document["nodes"]["node"][:2]
    first["nodeLabels"] = ["gpu"]
    amounts = [
        {"name": "memory-mb", "value": 4096},
        {"name": "vcores", "value": 4},
        {"name": "yarn.io/gpu", "value": 8},
    ]
    first["totalResource"] = {"memory": 4096, "vCores": 4, "resourceInformations": {"resourceInformation": amounts}}
    return answers.nodes({"nodes": {"node": [first, second]}}, "http://rm")


def test_a_recording_takes_the_nodes_of_all_labels_as_one_cluster() -> None:
    assert sum(line.count for line in nodes_of(shown_nodes())) == 2


def test_a_recording_counts_memory_and_vcores_alone() -> None:
    for line in nodes_of(shown_nodes()):
        assert set(line.model_dump()) == {"count", "memory_mb", "vcores"}
    assert {name for name in job("j", "root.a", 0.0, 1, 1.0).stages[0].model_dump() if "gpu" in name} == set()


@pytest.mark.parametrize("weights", [(25.0, 75.0), (1.0, 3.0), (1024.0, 3072.0)], ids=["percent", "weight", "absolute"])
def test_a_statement_has_a_capacity_schedulers_dues(weights: tuple[float, float]) -> None:
    queues = dict(zip(("root.a", "root.b"), (QueueLine(weight=weight) for weight in weights), strict=True))
    queues |= {"root.b.x": QueueLine(weight=weights[0]), "root.b.y": QueueLine(weight=weights[1])}
    header = Header(nodes=[NodeLine(memory_mb=16_384, vcores=4)], queues=queues, scheduler="capacity")
    one = job("j", "root.a", 0.0, 1, 100.0).model_copy(update={"started_s": 0.0, "finished_s": 100.0})
    (period,) = statement(header, [one], "day")
    due = {path: account.due / 100.0 for path, account in period.accounts.items() if account.due}
    assert due == pytest.approx({"root.a": 4096.0, "root.b.x": 3072.0, "root.b.y": 9216.0})


def test_doctor_says_first_what_each_command_does_with_this_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rm = held("capacity")
    site = {"yarn.resourcemanager.scheduler.monitor.enable": "true", "yarn.node-labels.enabled": "true"}
    rm.more["/conf"] = {"properties": [{"key": key, "value": text} for key, text in site.items()]}
    (tmp_path / "c.xml").write_text(CAPACITY_FILE)
    with FakeServer(rm.serve) as server:
        call = ["cluster", "doctor", "--backend", "local", "--rm", server.url, "--allocations", str(tmp_path / "c.xml")]
        with pytest.raises(SystemExit):
            main([*call, "--json"])
        found = json.loads(capsys.readouterr().out)
        with pytest.raises(SystemExit):
            main(call)
        text = capsys.readouterr().out
    table = found["can_use"]
    assert {"capacity", "capacity-preemption", "node-labels", "hadoop-3.4"} <= set(table)
    assert not {"fair", "fair-preemption", "hadoop-3.5", "kerberos", "ha"} & set(table)
    assert table["capacity-preemption"]["enforce"]["word"] == "works"
    assert table["capacity-preemption"]["enforce"]["why"].startswith("shares stay near what is in use")
    assert (table["capacity"]["record"], table["node-labels"]["record"]["word"]) == (
        {"word": "works", "why": ""},
        "counted but not steered",
    )
    first, second = text.splitlines()[:2]
    assert first.split() == ["can", "I", "use", "it?", *VERBS]
    assert second.startswith("Capacity Scheduler")
    assert "enforce, node labels: refused: node labels are on" in text
    assert text.index("can I use it?") < text.index("rm: Hadoop")


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize("kind", ["fair", "capacity"])
def test_what_conf_decides_is_unknown_where_it_is_refused(
    kind: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rm = held(kind)
    rm.more["/conf"] = status
    with FakeServer(rm.serve) as server:
        call = ["cluster", "doctor", "--rm", server.url]
        with pytest.raises(SystemExit):
            main([*call, "--json"])
        table = json.loads(capsys.readouterr().out)["can_use"]
        with pytest.raises(SystemExit):
            main(call)
        text = capsys.readouterr().out
    unknown = {key for key, row in table.items() if {row[verb]["word"] for verb in VERBS} == {"unknown"}}
    assert {f"{kind}-preemption", "kerberos", "ha", "resource-types"} <= unknown
    assert {"node-labels", "asynchronous"} <= unknown or kind == "fair"
    assert not unknown & {"fair", "capacity", "hadoop-3.4", "capacity-percent", "auto-created-v1"}
    assert "does not show /conf, which decides" in table[f"{kind}-preemption"]["enforce"]["why"]
    (line,) = [line for line in text.splitlines() if line.startswith("unknown whether") and "/conf" in line]
    assert BY_KEY[f"{kind}-preemption"].title in line


def test_what_the_file_decides_is_unknown_without_it() -> None:
    def unknown(cluster: Cluster) -> set[str]:
        return {row.feature.key for row in rows(cluster) if row.unknown}

    hidden = {"asynchronous", "multi-node", "capacity-flexible"}
    assert unknown(CAPACITY_BASE) == set()
    assert unknown(replace(CAPACITY_BASE, whole=False)) == hidden
    # Its default since 3.5 is on, so without the file nobody can say that it is refused.
    assert unknown(replace(CAPACITY_BASE, whole=False, hadoop=(3, 5))) == hidden
    preempting = {**CAPACITY_BASE.site, MONITOR: "true", ASYNCHRONOUS: "false"}
    assert unknown(replace(CAPACITY_BASE, whole=False, site=preempting)) == {
        "capacity-preemption-inside", "multi-node", "capacity-flexible"
    }  # fmt: skip
    assert unknown(replace(CAPACITY_BASE, whole=False, hadoop=(3, 3))) == {*hidden, "auto-created-v1"}
    assert unknown(FAIR_BASE) == set()


def test_a_parent_that_creates_queues_shows_without_the_file() -> None:
    """As Hadoop 3.5.0 shows one of 15 % with one child, created from a template of 30 %."""
    child: dict[str, Any] = {
        "type": "capacitySchedulerLeafQueueInfo", "queueName": "alice", "capacity": 30.0, "maxCapacity": 100.0,
        "creationMethod": "dynamicLegacy", "autoCreationEligibility": "off", "userLimit": 100, "userLimitFactor": 1.0,
        "configuredMaxAMResourceLimit": 0.3,
    }  # fmt: skip
    parent: dict[str, Any] = {
        "queueName": "research",
        "capacity": 15.0,
        "maxCapacity": 100.0,
        "autoCreationEligibility": "legacy",
    }
    other = {**child, "queueName": "prod", "capacity": 85.0, "creationMethod": "static", "userLimitFactor": -1.0}
    for below in ([child], []):
        parent["queues"] = {"queue": below}
        queues = {"queue": [parent, other]}
        root: dict[str, Any] = {"type": "capacityScheduler", "queueName": "root", "capacity": 100.0, "queues": queues}
        for queue in (child, parent, other, root):
            queue["capacities"] = {"queueCapacitiesByPartition": []}
        limits = scheduler_limits({"scheduler": {"schedulerInfo": root}}, "x")
        values = shown_properties(limits)
        assert unseen_templates(limits) == ([] if below else ["root.research"])
        cluster = Cluster("capacity", values, CAPACITY_BASE.site, whole=False)
        by_key = {row.feature.key: row for row in rows(cluster)}
        cells = by_key["auto-created-v1"].cells
        assert cells["enforce"].why.startswith("root.research: it creates queues by itself")
        assert (cells["whatif"].word, cells["plan"].word) == ("works", "works")
        traps = {trap.name: trap for trap in enforce_traps(cluster)}
        # The settings of the template are those of a queue that it made; without one they are not seen.
        held = f"{PREFIX}root.research.leaf-queue-template.user-limit-factor"
        assert (held in traps["user-limit-factor"].hint) if below else ("user-limit-factor" not in traps)
        # Before Hadoop 3.4 a factor of -1 refuses every application; nobody has set one here.
        refused = [trap.what for trap in enforce_traps(replace(cluster, hadoop=(3, 3))) if "refuses" in trap.what]
        assert len(refused) == 1
        assert "root.prod refuses every application" in refused[0]


def test_what_is_on_by_default_stands_in_no_file_that_a_simulation_could_refuse() -> None:
    """The table said that `whatif` refuses the file because of a property that the file did not have."""
    on = next(feature for feature in FEATURES if feature.key == "asynchronous")
    absent = replace(CAPACITY_BASE, hadoop=(3, 5))
    assert on.has(absent)
    for verb in ("whatif", "plan", "assess"):
        cell = on.cell(verb, absent)
        assert cell.word == "counted but not steered"
        assert cell.why == (
            "played without asynchronous scheduling; a recording says whether the cluster has it, and the answer is "
            "unsure then"
        )
    assert on.cell("whatif", on.example).word == "refused"
    assert on.cell("enforce", absent).word == "refused"


def test_the_table_fits_a_terminal() -> None:
    found = [Row(feature, {verb: feature.cell(verb) for verb in VERBS}) for feature in FEATURES]
    table = [line for line in lines(found) if ": " not in line]
    assert len(table) > len(FEATURES)
    assert max(len(line) for line in table) <= 80
    text = "\n".join(lines(found))
    assert "whatif, plan, asynchronous scheduling: refused: " in text


def test_doctor_has_no_table_where_nothing_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(SystemExit):
        main(["cluster", "doctor", "--backend", "local", "--rm", f"http://127.0.0.1:{port}", "--json"])
    assert json.loads(capsys.readouterr().out)["can_use"] == {}


def test_a_node_that_has_gone_shows() -> None:
    assert "size" not in {row.feature.key for row in rows(FAIR_BASE)}
    assert "size" in {row.feature.key for row in rows(Cluster("fair", nodes_gone=2))}


def test_the_cluster_at_hand_has_its_own_reason() -> None:
    values = dict(CAPACITY_BASE.values) | {f"{PREFIX}root.a.auto-create-child-queue.enabled": "true"}
    (row,) = [row for row in rows(Cluster("capacity", values)) if row.feature.key == "auto-created-v1"]
    assert row.cells["enforce"].why.startswith("root.a: ")
    assert BY_KEY["auto-created-v1"].cell("enforce").why.startswith("root.b: ")


def test_no_queue_of_an_example_is_named_on_a_cluster_at_hand() -> None:
    """A cluster of other queues, whose file was not shown, read of ``root.a.accessible-node-labels``."""
    own = {f"{PREFIX}root.queues": "prod,dev", f"{PREFIX}root.prod.capacity": "50", f"{PREFIX}root.dev.capacity": "50"}
    for feature in FEATURES:
        here = replace(feature.example, values=own, file="", whole=False)
        if here.scheduler == "capacity":
            for verb in VERBS:
                assert "root.a" not in feature.cell(verb, here).why, (feature.key, verb)
    labels = next(feature for feature in FEATURES if feature.title == "node labels")
    here = replace(labels.example, values=own, whole=False)
    assert f"{PREFIX}QUEUE.accessible-node-labels" in labels.cell("plan", here).why
    assert f"{PREFIX}root.a.accessible-node-labels" in labels.cell("plan").why
    prod = {**own, f"{PREFIX}root.prod.accessible-node-labels": "gpu"}
    assert f"{PREFIX}root.prod.accessible-node-labels" in labels.cell("plan", replace(here, values=prod)).why


def test_queues_that_cannot_be_read_are_refused_with_the_reason() -> None:
    values = {**CAPACITY_BASE.values, f"{PREFIX}root.a.capacity": "1w"}
    found = rows(Cluster("capacity", values))
    assert found
    for row in found:
        assert row.cells["enforce"].word == "refused"
        assert "percent and weight capacities" in row.cells["enforce"].why
