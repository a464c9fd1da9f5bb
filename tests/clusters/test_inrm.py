"""The policies inside an RM: the allocation file and the choice of settings; building and running is tested live."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import CallError, InputError
from harness.clusters.inrm import CLASSES, SETTINGS, allocations_with, confirm, own_settings, with_policy
from harness.clusters.state import ClusterSpec
from harness.model.data import data_path
from harness.policies import make_policy


@pytest.mark.parametrize(
    "text", ["<allocations/>", '<?xml version="1.0"?>\n<allocations>\n<queue name="a"/>\n</allocations>\n']
)
@pytest.mark.parametrize("policy", CLASSES)
def test_the_class_stands_in_the_file(text: str, policy: str) -> None:
    import xml.etree.ElementTree as Tree

    root = Tree.fromstring(allocations_with(text, policy))
    assert root.tag == "allocations"
    assert [element.text for element in root.iter("defaultQueueSchedulingPolicy")] == [CLASSES[policy]]
    assert len(list(root)) == 1 + text.count("<queue")


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "<allocations><defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy></allocations>"],
)
def test_files_that_cannot_take_it(text: str) -> None:
    with pytest.raises(InputError):
        allocations_with(text, "ltrf")


@pytest.mark.parametrize(
    ("policy", "settings", "said"),
    [
        ("fair", {}, "no policy 'fair'"),
        ("ltrf", {"horizon": "3"}, "no setting 'horizon'"),
        ("ltrf", {"round_s": "3\nx=y"}, "round_s is"),
        ("ltrf", {"round_s": ""}, "round_s is"),
        ("hltrf", {"t_wait_s": "auto"}, "t_wait_s is auto"),
        ("hltrf", {"t_wait_s": "-5"}, "t_wait_s is '-5'"),
        ("hltrf", {"t_wait_s": "abc"}, "t_wait_s is 'abc'; for example t_wait_s=10"),
        ("hltrf", {"t_wait_s": "nan"}, "t_wait_s is 'nan'"),
        ("ltrf", {"discount": "1.5"}, "discount is"),
        ("ltrf", {"round_s": "0"}, "round_s is"),
        ("ltrf", {"resource": "disk"}, "resource is 'disk'"),
        ("ltrf", {"observe_ms": "inf"}, "observe_ms is 'inf'"),
        ("ltrf", {"observe_ms": "3600001"}, "observe_ms is"),
    ],
)
def test_wrong_choices(policy: str, settings: dict[str, str], said: str) -> None:
    with pytest.raises(CallError, match=said):
        with_policy(ClusterSpec(), policy, settings)


def test_the_command_says_it_in_one_line() -> None:
    command = [sys.executable, "-m", "harness", "cluster", "up", "--backend", "local"]
    for options in (["--in-rm-policy", "nonsense"], ["--in-rm-set", "a=b"]):
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1


def test_every_class_and_setting_is_in_the_sources() -> None:
    folder = data_path("yarn-policy", "ltyarn-scheduling-policy", "src", "main", "java")
    text = (folder / "yarnfair" / "inrm" / "Settings.java").read_text()
    assert all(f'"{name}"' in text for name in SETTINGS)
    for policy, name in CLASSES.items():
        source = folder / Path(*name.split(".")).with_suffix(".java")
        assert f'super("{policy}"' in source.read_text()


def test_an_experiments_settings_by_the_jars_names() -> None:
    found = own_settings("hltrf", {"t_wait": 5, "discount": 0.5, "round": 1234567.25})
    flags = {"pseudo": "false", "adaptive_quantum": "false"}
    assert found == {"t_wait_s": "5", "discount": "0.5", "round_s": "1234567.25", "resource": "memory", **flags}
    given = own_settings("ltrf", {"quantum_s": 20, "adaptive_quantum": True, "pseudo": True})
    assert [given[name] for name in ("quantum_s", "adaptive_quantum", "pseudo")] == ["20", "true", "true"]
    for settings in ({"horizon": 3}, {"half_life": 60}):
        with pytest.raises(CallError, match="no setting"):
            own_settings("ltrf", settings)
    with pytest.raises(CallError, match="t_wait_s is auto"):
        own_settings("hltrf", {"t_wait": "auto"})


def test_what_is_not_set_is_as_everywhere_else() -> None:
    """An experiment's hltrf waits as long inside a real RM as in the simulator, whatever the jar's own default is."""
    policy = make_policy("hltrf")
    settings = own_settings("hltrf", {})
    assert float(settings["t_wait_s"]) == policy.settings.t_wait
    flags = {"pseudo": "false", "adaptive_quantum": "false"}
    assert settings == {"t_wait_s": "10", "discount": "1", "round_s": "inf", "resource": "memory", **flags}
    folder = data_path("yarn-policy", "ltyarn-scheduling-policy", "src", "main", "java")
    text = (folder / "yarnfair" / "inrm" / "Settings.java").read_text()
    for name, value in settings.items():
        assert f'file, "{name}", "{value}")' in text


def rest(*looks: dict[str, str]) -> Any:
    """A ResourceManager whose queues have these policies at one look after the other, the last ones for ever."""
    left = list(looks)

    def scheduler() -> Any:
        found = left.pop(0) if len(left) > 1 else left[0]
        return SimpleNamespace(queues={path: SimpleNamespace(policy=policy) for path, policy in found.items()})

    return SimpleNamespace(scheduler=scheduler, http=SimpleNamespace(current="http://rm:8088"))


def test_a_policy_that_is_not_in_force_is_an_error() -> None:
    """A refresh succeeds also when the class is not on the RM's class path: the queues keep what they had."""
    confirm(rest({}, {"root": "fair", "root.a": "fair"}, {"root": "hltrf", "root.a": "hltrf"}), "hltrf", ["root.a"])
    confirm(rest({"root.a": "hltrf", "root.b": "drf"}), "hltrf", ["root.a"])
    for queues, says in (({"root.a": "fair"}, "root.a has fair"), ({}, "root.a is not there")):
        with pytest.raises(InputError, match=says) as found:
            confirm(rest(queues), "ltrf", ["root.a"], timeout_s=0.05)
        assert "class path" in found.value.line()
        assert "http://rm:8088" in found.value.line()
