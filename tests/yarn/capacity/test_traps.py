"""Known dangers of steering a Capacity Scheduler: each is named when it is there, and not when it is mended."""

from __future__ import annotations

import pytest

from harness.model.preemption import PreemptionRule
from harness.yarn.capacity.monitors import ENABLE, OF_PREEMPTION, POLICIES, PREEMPTION
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.traps import find_traps

P = "yarn.scheduler.capacity."
SAFE = {
    f"{P}root.queues": "a,b",
    f"{P}root.a.capacity": "1w",
    f"{P}root.b.capacity": "1w",
    f"{P}root.a.user-limit-factor": "-1",
    f"{P}root.b.user-limit-factor": "-1",
    f"{P}global-queue-max-application": "10000",
    f"{P}maximum-am-resource-percent": "1000",
}
#: One of the queues creates queues by itself.
CREATES = {f"{P}root.a.auto-queue-creation-v2.enabled": "true"}
TEMPLATE = f"{P}root.a.auto-queue-creation-v2.leaf-template."
LEGACY = {f"{P}root.a.auto-create-child-queue.enabled": "true"}
LEGACY_TEMPLATE = f"{P}root.a.leaf-queue-template."
#: A monitor that preempts nothing.
OTHER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueConfigurationAutoRefreshPolicy"
SITE = {"yarn.acl.enable": "true", "yarn.admin.acl": "warden"}


def names(values: dict[str, str], site: dict[str, str]) -> list[str]:
    return [trap.name for trap in find_traps(values, site, queue_tree(values, source="f"))]


def test_a_safe_cluster_has_none() -> None:
    assert names(SAFE, SITE) == []


@pytest.mark.parametrize(
    ("trap", "change"),
    [
        ("maximum-applications", {f"{P}global-queue-max-application": None}),
        ("user-limit-factor", {f"{P}root.b.user-limit-factor": None}),
        ("user-limit-factor", {f"{P}root.b.user-limit-factor": "2"}),
        ("am-limit", {f"{P}maximum-am-resource-percent": None}),
        ("am-limit", {f"{P}maximum-am-resource-percent": "1"}),
        ("am-limit", {f"{P}root.b.maximum-am-resource-percent": "0.5"}),
        ("priority", {f"{P}root.ordering-policy": "priority-utilization", f"{P}root.a.priority": "2"}),
        ("auto-created", {**CREATES, f"{TEMPLATE}maximum-am-resource-percent": "1000"}),
        ("auto-created", {**LEGACY, f"{LEGACY_TEMPLATE}user-limit-factor": "-1"}),
        ("asynchronous", {f"{P}schedule-asynchronously.enable": "true"}),
        ("multi-node", {f"{P}multi-node-placement-enabled": "true"}),
        ("queue-mode", {f"{P}legacy-queue-mode.enabled": "false"}),
        ("preemption", {"yarn.resourcemanager.scheduler.monitor.enable": "true"}),
        ("node-labels", {"yarn.node-labels.enabled": "true"}),
        ("zk-log", {"yarn.scheduler.configuration.store.class": "zk"}),
        ("acl", {"yarn.admin.acl": None}),
        ("acl", {"yarn.admin.acl": "*"}),
        ("acl", {"yarn.admin.acl": " * ", "yarn.acl.enable": "false"}),
    ],
)
def test_each_is_named_and_only_it(trap: str, change: dict[str, str | None]) -> None:
    values, site = dict(SAFE), dict(SITE)
    for name, value in change.items():
        where = values if name.startswith(P) else site
        where.pop(name, None)
        if value is not None:
            where[name] = value
    assert names(values, site) == [trap]


def test_settings_of_queues_that_are_created_stand_in_their_template() -> None:
    """What the parent itself has is nothing that such a queue goes by."""

    def said(values: dict[str, str]) -> list[str]:
        return [trap.line() for trap in find_traps(values, SITE, queue_tree(values, source="f"))]

    legacy = said(SAFE | LEGACY)
    assert [line.partition(":")[0] for line in legacy] == ["user-limit-factor", "auto-created"]
    assert f"set {LEGACY_TEMPLATE}user-limit-factor to -1; until" in legacy[0]
    # The newer way: no limit of a user, and the whole queue for masters.
    newer = said(SAFE | CREATES)
    assert [line.partition(":")[0] for line in newer] == ["am-limit", "auto-created"]
    assert f"set {TEMPLATE}maximum-am-resource-percent to" in newer[0]
    held = said({**SAFE, **CREATES, f"{P}root.a.auto-queue-creation-v2.template.user-limit-factor": "2"})
    assert f"set {TEMPLATE}user-limit-factor to -1" in held[0]


def test_no_limit_of_applications_holds_where_queues_are_created_the_legacy_way() -> None:
    """A real one took two applications in a queue whose maxApplications was 0: it was named all the same."""
    without = {name: text for name, text in SAFE.items() if name != f"{P}global-queue-max-application"}

    def named(values: dict[str, str]) -> list[tuple[str, ...]]:
        found = find_traps(values, SITE, queue_tree(values, source="f"))
        return [trap.queues for trap in found if trap.name == "maximum-applications"]

    assert named(without) == [("root.a", "root.b")]
    assert named(without | LEGACY) == [("root.b",)]
    assert named(without | CREATES) == [("root.a", "root.b")]


def test_all_queues_that_create_queues_are_named() -> None:
    """Of five the line named one, as if there were no other."""
    also = {name.replace("root.a.", "root.b."): text for name, text in LEGACY.items() if ".a." in name}
    values = SAFE | LEGACY | also
    (found,) = [
        trap for trap in find_traps(values, SITE, queue_tree(values, source="f")) if trap.name == "auto-created"
    ]
    assert found.queues == ("root.a", "root.b")
    assert found.what == (
        "root.a, root.b create queues by themselves (auto-create-child-queue); what is below them is not steered"
    )


def test_absolute_queues_need_limits_of_their_own() -> None:
    values = {**SAFE, f"{P}root.a.capacity": "[memory=1,vcores=1]", f"{P}root.b.capacity": "[memory=1,vcores=1]"}
    assert names(values, SITE) == ["maximum-applications"]
    limits = {f"{P}root.{queue}.maximum-applications": "10000" for queue in "ab"}
    assert names({**values, **limits}, SITE) == []


def test_blocking_ones_come_first_and_each_says_how_it_is_mended() -> None:
    values = {name: value for name, value in SAFE.items() if not name.endswith("-factor")}
    found = find_traps(values, {"yarn.acl.enable": "false"}, queue_tree(values, source="f"))
    assert [(trap.name, trap.blocking) for trap in found] == [("user-limit-factor", True), ("acl", False)]
    said = found[0].line()
    assert f"set {P}root.a.user-limit-factor to -1, and that of the others; until then nothing is written" in said
    assert said.endswith("(or `accept: [user-limit-factor]`)")
    assert found[1].line().endswith("to the administrators and this controller's user")


def test_before_3_4_a_factor_of_minus_1_refuses_every_application() -> None:
    tree = queue_tree(SAFE, source="f")
    (trap,) = find_traps(SAFE, SITE, tree, (3, 3))
    assert (trap.name, trap.blocking) == ("user-limit-factor", True)
    assert "root.a, root.b refuses every application" in trap.what
    assert trap.hint == f"set {P}root.a.user-limit-factor to 1000, and that of the others"
    mended = {name: "1000" if name.endswith("-factor") else value for name, value in SAFE.items()}
    assert find_traps(mended, SITE, tree, (3, 3)) == find_traps(mended, SITE, tree) == ()
    unset = {name: value for name, value in SAFE.items() if not name.endswith("-factor")}
    said = {hadoop: find_traps(unset, SITE, tree, hadoop)[0].hint for hadoop in ((3, 3), (3, 4))}
    assert "-factor to 1000," in said[3, 3]
    assert "-factor to -1," in said[3, 4]


@pytest.mark.parametrize("text", [None, "", "maybe"])
def test_since_3_5_scheduling_is_asynchronous_unless_it_is_switched_off(text: str | None) -> None:
    name = f"{P}schedule-asynchronously.enable"
    unset = SAFE if text is None else {**SAFE, name: text}
    tree = queue_tree(SAFE, source="f")
    assert find_traps(unset, SITE, tree, (3, 4)) == ()
    (trap,) = find_traps(unset, SITE, tree, (3, 5))
    assert (trap.name, trap.blocking) == ("asynchronous", True)
    assert "the default since Hadoop 3.5" in trap.what
    assert f"set {name} to false and restart" in trap.hint
    assert find_traps({**SAFE, name: "false"}, SITE, tree, (3, 5)) == ()
    assert find_traps(SAFE, {**SITE, name: "false"}, tree, (3, 5)) == ()


def test_who_may_change_queues_is_the_admin_acls_alone() -> None:
    assert names(SAFE, {"yarn.acl.enable": "false", "yarn.admin.acl": "warden ops"}) == []


def test_a_refresh_may_deadlock_where_a_policy_manages_created_queues() -> None:
    """YARN-10932: the policy and the refresh can wait for each other for ever."""
    monitor = "yarn.resourcemanager.scheduler.monitor"
    policy = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueManagementDynamicEditPolicy"
    values = {**SAFE, f"{P}root.b.auto-create-child-queue.enabled": "true"}
    site = {**SITE, f"{monitor}.enable": "true", f"{monitor}.policies": f"x.Other,{policy}"}
    tree = queue_tree(values, source="f")
    for hadoop in ((3, 3), (3, 4)):
        found = {trap.name: trap for trap in find_traps(values, site, tree, hadoop)}
        assert found["refresh-deadlock"].blocking
        assert "root.b" in found["refresh-deadlock"].what
        assert "YARN-10932" in found["refresh-deadlock"].what
        assert f"{monitor}.policies" in found["refresh-deadlock"].hint
    assert "refresh-deadlock" not in names(values, {**site, f"{monitor}.enable": "false"})
    assert "refresh-deadlock" not in names(values, {**site, f"{monitor}.policies": "x.Other"})
    assert "refresh-deadlock" not in names({**SAFE, f"{P}root.b.auto-queue-creation-v2.enabled": "true"}, site)


def test_a_monitor_that_does_not_preempt_is_no_trap() -> None:
    site = {
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        "yarn.resourcemanager.scheduler.monitor.policies": "x.AutoCreatedQueueDeletionPolicy",
    }
    assert not [trap for trap in find_traps({}, site, {}) if trap.name == "preemption"]


@pytest.mark.parametrize(
    ("closed", "opened", "trapped"),
    [
        (("root",), (), False),
        (("root",), ("root.a",), True),
        (("root.a", "root.b"), (), False),
        (("root.a",), (), True),
        (("root.a", "root.b"), ("root",), False),
    ],
)
def test_preemption_is_closed_only_where_it_is_to_every_leaf(
    closed: tuple[str, ...], opened: tuple[str, ...], trapped: bool
) -> None:
    """A queue's own setting wins over its parent's (CSQueuePreemptionSettings)."""
    settings = dict.fromkeys(closed, "true") | dict.fromkeys(opened, "false")
    values = SAFE | {f"{P}{queue}.disable_preemption": text for queue, text in settings.items()}
    site = SITE | {"yarn.resourcemanager.scheduler.monitor.enable": "true"}
    assert names(values, site) == (["preemption"] if trapped else [])


def test_a_created_leaf_may_be_open_to_preemption_by_its_template() -> None:
    values = SAFE | {f"{P}root.disable_preemption": "true", f"{P}root.b.auto-create-child-queue.enabled": "true"}
    site = SITE | {"yarn.resourcemanager.scheduler.monitor.enable": "true"}
    assert "preemption" not in names(values, site)
    assert "preemption" in names(values | {f"{P}root.b.leaf-queue-template.disable_preemption": "false"}, site)


@pytest.mark.parametrize(("file", "site"), [(PREEMPTION, OTHER), (OTHER, PREEMPTION), (None, None), (OTHER, None)])
def test_either_list_of_monitors_may_count(file: str | None, site: str | None) -> None:
    """A file's wins over yarn-site.xml's, which wins over a store's: where preemption is in one, it may run."""
    switch = "yarn.resourcemanager.scheduler.monitor.enable"
    values = SAFE | ({POLICIES: file} if file else {})
    properties = {**SITE, switch: "true"} | ({POLICIES: site} if site else {})
    assert names(values, properties) == (["preemption"] if (file, site) != (OTHER, None) else [])


def test_preemption_that_is_not_shown_bounds_the_shares() -> None:
    """Of a ResourceManager that refuses /conf nobody knows that preemption is off."""
    tree = queue_tree(SAFE, source="f")
    (trap,) = find_traps(SAFE, None, tree)
    assert (trap.name, trap.blocking, trap.preemption) == ("preemption", False, PreemptionRule())
    assert "/conf" in trap.what
    closed = {**SAFE, f"{P}root.disable_preemption": "true"}
    assert find_traps(closed, None, queue_tree(closed, source="f")) == ()


@pytest.mark.parametrize(
    "name",
    ["schedule-asynchronously.enable", "multi-node-placement-enabled"],
)
@pytest.mark.parametrize(("file", "site"), [("true", "false"), ("false", "true"), ("true", None), (None, "true")])
def test_what_is_on_in_the_file_or_in_yarn_site_counts(name: str, file: str | None, site: str | None) -> None:
    """Which wins depends on the configuration provider: a file's values, or yarn-site's over a store's."""
    values, of_site = dict(SAFE), dict(SITE)
    for where, value in ((values, file), (of_site, site)):
        if value is not None:
            where[P + name] = value
    assert len(names(values, of_site)) == 1
    assert names(SAFE | {P + name: "false"}, SITE | {P + name: "false"}) == []


@pytest.mark.parametrize(
    ("text", "ignored"),
    [("0.0f", 0.0), ("0.25d", 0.25), (" 0.25\t", 0.25), ("0x1p-2", 0.25), (".5", 0.5), ("NaN", 0.0), ("1_0", 0.1)],
)
def test_what_preemption_ignores_is_read_as_java_reads_it(text: str, ignored: float) -> None:
    """Python reads 1_0 as 10, and none of the suffixes. What Java cannot read is in force nowhere."""
    site = {**SITE, ENABLE: "true", f"{OF_PREEMPTION}max_ignored_over_capacity": text}
    (trap,) = find_traps(SAFE, site, queue_tree(SAFE, source="f"))
    assert trap.preemption == PreemptionRule(ignored=ignored)
    # Which one counts is not known where the file has it, too.
    both = {**SAFE, f"{OF_PREEMPTION}max_ignored_over_capacity": "0.05"}
    (trap,) = find_traps(both, site, queue_tree(both, source="f"))
    assert trap.preemption == PreemptionRule(ignored=min(ignored, 0.05))


@pytest.mark.parametrize(("text", "wait_s"), [("4000", 4.0), ("0xfa0", 4.0), ("4e3", 15.0), ("4000.0", 15.0)])
def test_how_long_preemption_waits_is_read_as_java_reads_it(text: str, wait_s: float) -> None:
    site = {**SITE, ENABLE: "true", f"{OF_PREEMPTION}max_wait_before_kill": text}
    (trap,) = find_traps(SAFE, site, queue_tree(SAFE, source="f"))
    assert trap.preemption == PreemptionRule(wait_s=wait_s)


@pytest.mark.parametrize(("text", "held"), [("-1f", False), ("1000d", False), ("0x0p0", True), ("2_000", True)])
def test_a_factor_is_read_as_java_reads_it(text: str, held: bool) -> None:
    """One that cannot be read counts as the default, 1."""
    assert names({**SAFE, f"{P}root.b.user-limit-factor": text}, SITE) == (["user-limit-factor"] if held else [])


def test_references_to_other_properties_count_with_what_they_stand_for() -> None:
    """Of each file, and from one into the other, as the ResourceManager reads both into one configuration."""
    site = {
        **SITE,
        ENABLE: "${the.monitor}",
        "the.monitor": "true",
        f"{OF_PREEMPTION}max_wait_before_kill": "${wait}",
        f"{OF_PREEMPTION}max_ignored_over_capacity": "${wait}f",
    }
    values = {**SAFE, "wait": "1"}
    (trap,) = find_traps(values, site, queue_tree(values, source="f"))
    assert trap.preemption == PreemptionRule(ignored=1.0, wait_s=0.001)
    # One that nothing defines cannot be read, and counts as the default, 1.
    for reference, held in (("${none}", True), ("${factor}", False)):
        factor = {**SAFE, f"{P}root.b.user-limit-factor": reference, "factor": "-1"}
        assert names(factor, SITE) == (["user-limit-factor"] if held else [])
