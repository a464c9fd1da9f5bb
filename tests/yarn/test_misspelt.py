"""What a misspelt name was likely meant to be, and where nothing is said."""

from __future__ import annotations

import pytest

from harness.yarn.capacity import known
from harness.yarn.fair.elements import QUEUE_ELEMENTS, TOP_ELEMENTS
from harness.yarn.misspelt import likely


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("maximum-aplications", "maximum-applications"),
        ("max-applications", "maximum-applications"),
        ("maximum-am-percent", "maximum-am-resource-percent"),
        ("global-max-applications", "global-queue-max-application"),
        ("rack-locality-delay", "rack-locality-additional-delay"),
        ("queue-mappings-override", "queue-mappings-override.enable"),
        # Merely alike: another word is another setting.
        ("maximum-application-lifetime", ""),
        ("container-locality-delay", ""),
        ("weight", ""),
    ],
)
def test_of_the_schedulers_settings(name: str, meant: str) -> None:
    assert likely(name, known.GLOBAL) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("capcity", "capacity"),
        ("maximum_capacity", "maximum-capacity"),
        ("user-limit-facter", "user-limit-factor"),
        ("acl_submit_jobs", "acl_submit_applications"),
        ("max-application-lifetime", "maximum-application-lifetime"),
        ("maxcapacity", ""),
        ("maximum-memory", ""),
    ],
)
def test_of_a_queues_settings(name: str, meant: str) -> None:
    assert likely(name, known.QUEUE) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("wieght", "weight"),
        ("maxresources", "maxResources"),
        ("max_resources", "maxResources"),
        ("maxRunningJobs", "maxRunningApps"),
        ("defaultQueueSchedulingPolicies", "defaultQueueSchedulingPolicy"),
        # The one of two, or none of both.
        ("minSharePreemptionThreshold", ""),
        ("maxSharePreemptionTimeout", ""),
        ("fairSharePreemption", ""),
        ("minShare", ""),
        ("preemption", ""),
    ],
)
def test_of_elements(name: str, meant: str) -> None:
    assert likely(name, sorted(TOP_ELEMENTS | QUEUE_ELEMENTS)) == meant


@pytest.mark.parametrize(
    ("name", "queues", "meant"),
    [
        ("prd", ["prod", "dev"], "prod"),
        ("defualt", ["default"], "default"),
        ("Prod", ["prod"], "prod"),
        ("dev2", ["dev1"], ""),
        ("q1", ["q2"], ""),
        ("team-a", ["team-b"], ""),
        ("dev", ["devops"], ""),
        ("prod", ["prod-batch"], ""),
        ("marketing_eu", ["marketing_us", "marketing_eu2"], ""),
    ],
)
def test_of_queues(name: str, queues: list[str], meant: str) -> None:
    assert likely(name, queues, whole=True) == meant
