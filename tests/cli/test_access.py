"""--kerberos, --principal, --keytab and --ca-file of the commands that talk to a ResourceManager by --rm."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.access import as_config
from tests.yarn.fake_gssapi import FakeGssapi
from tests.yarn.fake_server import FakeServer, http

VERBS = (["record"], ["top", "--once"], ["explain", "a"], ["assess"], ["cluster", "doctor", "--backend", "local"])


def called(argv: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[object, str]:
    with pytest.raises(SystemExit) as end:
        main(argv)
    return end.value.code, "".join(capfd.readouterr())


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_that_takes_an_rm_authenticates(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", FakeGssapi())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.keytab").write_bytes(b"s3cr3t")
    with FakeServer(http(401, b"", WWW_Authenticate="Negotiate")) as server:
        given = ["--rm", server.url, "--principal", "ctl@R", "--keytab", "c.keytab"]
        code, said = called([*verb, *given], capfd)
        assert code == 1
        assert any(b"Authorization: Negotiate" in request for request in server.requests)
    assert "401" in said
    assert "s3cr3t" not in said


@pytest.mark.parametrize("verb", VERBS[:4], ids=" ".join)
def test_a_configuration_has_its_own(verb: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said = called([*verb, "--config", str(tmp_path / "c.yaml"), "--kerberos"], capfd)
    assert (code, "--config has `http` for this" in said) == (2, True)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_principal_without_its_keytab_is_a_wrong_call(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", FakeGssapi())
    monkeypatch.chdir(tmp_path)
    code, said = called([*verb, "--rm", "http://127.0.0.1:1", "--principal", "ctl@R"], capfd)
    assert (code, "principal and keytab go together" in said) == (2, True)


def test_what_a_verdict_writes_has_the_same() -> None:
    given = {"auth": "spnego", "principal": "a@R", "keytab": "k", "ca_file": "c"}
    assert as_config(given) == {"ca_file": "c", "kerberos": {"principal": "a@R", "keytab": "k"}}
    assert as_config({"auth": "spnego", "principal": None, "keytab": None}) == {"auth": "spnego"}


def test_run_on_a_given_cluster_authenticates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", FakeGssapi())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.keytab").write_bytes(b"s3cr3t")
    words = ["run", "outside-real-short", "--backend", "local", "--policy", "fair", "--shared", str(tmp_path)]
    access = ["--principal", "ctl@R", "--keytab", "c.keytab"]
    with FakeServer(http(401, b"", WWW_Authenticate="Negotiate")) as server:
        code, said = called([*words, *access, "--rm", server.url], capfd)
        assert code == 1
        assert any(b"Authorization: Negotiate" in request for request in server.requests)
    assert "401" in said
    code, said = called([*words[:4], *access], capfd)
    assert (code, "go with --rm" in said) == (2, True)
