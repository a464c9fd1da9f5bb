"""What a stranger's files are told: the text that is written, one message a mistake, and advice that helps."""

from __future__ import annotations

import pytest

from harness.yarn.fair.parse import parse_allocations
from harness.yarn.validation import check_document

FAIR = "<allocations><queue name='a'>{}</queue></allocations>"
TREE = {"root.queues": "default,prod", "root.default.capacity": "40", "root.prod.capacity": "60"}


def capacity(**settings: str) -> bytes:
    return named({f"yarn.scheduler.capacity.{key}": text for key, text in {**TREE, **settings}.items()})


def named(properties: dict[str, str]) -> bytes:
    lines = "".join(
        f"<property><name>{name}</name><value>{text}</value></property>" for name, text in properties.items()
    )
    return f"<configuration>{lines}</configuration>".encode()


def told(document: bytes) -> list[tuple[str, str, str]]:
    return [(one.code, one.what, one.hint) for one in check_document(document, source="x").findings]


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("10 gb, 4 vcores", "10240 mb, 4 vcores"),
        ("1.5 GB,2 vcores", "1536 mb,2 vcores"),
        ("memory-mb=10Gi,vcores=4", "memory-mb=10240,vcores=4"),
        ("2TB, 4 vcores", "2097152 mb, 4 vcores"),
    ],
)
def test_gigabytes_are_told_as_written_and_meant_in_megabytes(written: str, instead: str) -> None:
    ((code, what, hint),) = told(FAIR.format(f"<maxResources>{written}</maxResources>").encode())
    assert (code, hint) == ("YF401", f"write '{instead}'")
    assert repr(written) in what
    parse_allocations(FAIR.format(f"<maxResources>{instead}</maxResources>"))


@pytest.mark.parametrize("written", ["10 gb", "ten gb, 4 vcores", "gigabytes, 4 vcores", "MEMORY 5, 4 VCORES"])
def test_no_amount_is_made_up(written: str) -> None:
    ((code, what, hint),) = told(FAIR.format(f"<maxResources>{written}</maxResources>").encode())
    assert (code, hint) == ("YF401", "write '4096 mb, 4 vcores' or '50%'")
    assert repr(written) in what


@pytest.mark.parametrize(
    "prefix", ["yarn.scheduler.capcity.", "yarn.schedular.capacity.", "yarn.scheduler.capacities.", ""]
)
def test_a_prefix_that_is_misspelt_or_left_out_is_no_matter_of_yarn_site(prefix: str) -> None:
    right = {f"yarn.scheduler.capacity.{key}": text for key, text in TREE.items()}
    found = told(named({**right, f"{prefix}root.prod.user-limit-factor": "2"}))
    assert [(code, hint) for code, _, hint in found] == [
        ("YF201", "write yarn.scheduler.capacity.root.prod.user-limit-factor")
    ]


@pytest.mark.parametrize("name", ["yarn.scheduler.fair.preemption", "yarn.scheduler.maximum-allocation-gpu", "my.own"])
def test_a_property_of_others_stays_one(name: str) -> None:
    right = {f"yarn.scheduler.capacity.{key}": text for key, text in TREE.items()}
    assert [code for code, _, _ in told(named({**right, name: "2"}))] == ["YF223"]


def test_no_application_for_the_whole_cluster_is_one_mistake() -> None:
    assert [code for code, _, _ in told(capacity(**{"maximum-applications": "0"}))] == ["YF209"]


@pytest.mark.parametrize("ending", ["mb", "vcores"])
def test_a_largest_container_of_nothing_loses_every_application(ending: str) -> None:
    found = told(capacity(**{f"root.prod.maximum-allocation-{ending}": "0"}))
    assert [code for code, _, _ in found] == ["YF317"]


def test_whose_limit_is_0_is_told() -> None:
    document = b"<allocations><queue name='a'/><user name='bob'><maxRunningApps>0</maxRunningApps></user></allocations>"
    ((code, what, _),) = told(document)
    assert code == "YF611"
    assert "user bob" in what
