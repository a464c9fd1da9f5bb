"""`cluster doctor --rm`: whether `enforce` could refresh and read back there, said before anything is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.clusters import doctor_access
from harness.clusters.base import Finding
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.rest import RestClient
from harness.yarn.rmclient import RmAddress

RM = RmAddress.of("http://rm:8088")


@pytest.fixture
def rm(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What an RM answers: an exception is raised."""
    answers: dict[str, Any] = {"find": RM, "acl": "ops yarn-admins", "queues": {}, "groups": ["staff"]}

    def told(name: str) -> Any:
        def answer(*_: Any, **__: Any) -> Any:
            if isinstance(answers[name], Exception):
                raise answers[name]
            return answers[name]

        return answer

    monkeypatch.setattr(doctor_access, "find_rm", told("find"))
    monkeypatch.setattr(doctor_access, "rm_property", told("acl"))
    monkeypatch.setattr(doctor_access.adminrpc, "effective_queues", told("queues"))
    monkeypatch.setattr(doctor_access.adminrpc, "groups_of", told("groups"))
    return answers


def found(user: str = "ops") -> dict[str, Finding]:
    return {finding.check: finding for finding in doctor_access.examine_access(RM.rest, {"user": user})}


def test_one_that_lets_us_in(rm: dict[str, Any]) -> None:
    assert {check: finding.result for check, finding in found().items()} == {"read-back": "fine", "refresh": "fine"}
    assert found()["refresh"].what == "the RPC at rm:8033 takes ops, without Kerberos; yarn.admin.acl has it"


@pytest.mark.parametrize(
    ("acl", "user", "groups", "allowed"),
    [
        ("*", "x", [], True),
        ("a,ops b", "ops", [], True),
        (" admins,staff", "x", ["staff"], True),
        ("a,b staff", "x", ["wheel"], False),
        ("staff", "x", ["staff"], False),
        (None, "x", [], True),
    ],
)
def test_the_acl_on_administration(
    rm: dict[str, Any], acl: str | None, user: str, groups: list[str], allowed: bool
) -> None:
    """Users, a space, groups: as Hadoop's AccessControlList reads it."""
    rm["acl"], rm["groups"] = acl, groups
    finding = found(user)["refresh"]
    assert finding.result == ("fine" if allowed else "note")
    assert allowed or ("may not refresh" in finding.what and "refresh: poll" in (finding.hint or ""))


def test_a_capacity_scheduler_is_read_back_by_rest(rm: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client RPC, which does not answer here, is not asked: `enforce` does not either."""
    rm["queues"] = Unreachable("no answer: Connection refused", where="rm:8032", hint="check the port")
    monkeypatch.setattr(RestClient, "scheduler", lambda _: SimpleNamespace(type=CAPACITY))
    assert found()["read-back"] == Finding("read-back", "fine", "REST shows the capacities in force")
    # It never polls its file.
    for rm["acl"], rm["groups"] in (("staff", []), ("ops", Unreachable("no answer", where="rm:8033"))):
        refresh = found()["refresh"]
        assert refresh.result == "note"
        assert "poll" not in (refresh.hint or "")


def test_an_rpc_that_cannot_be_used_is_a_note_with_the_other_way(rm: dict[str, Any]) -> None:
    rm["queues"] = Unreachable("no answer: Connection refused", where="rm:8032", hint="check the port")
    rm["groups"] = Refused("AccessControlException: SIMPLE authentication is not enabled", where="rm:8033")
    assert {finding.result for finding in found().values()} == {"note"}
    assert "read_back: false" in (found()["read-back"].hint or "")
    assert "rm:8033: AccessControlException" in found()["refresh"].what
    assert "within 10 to 15 s" in (found()["refresh"].hint or "")


def test_an_rm_that_does_not_know_the_question_has_let_us_in(rm: dict[str, Any]) -> None:
    rm["groups"] = Refused("Unknown method", exception="RpcNoSuchMethodException")
    assert found()["refresh"].result == "fine"


def test_what_was_not_looked_at_is_said(rm: dict[str, Any]) -> None:
    rm["find"] = Unreachable("no answer", where="http://rm:8088")
    assert found()["refresh"].what == "not looked at: http://rm:8088: no answer"
