"""The controller's configuration file: read strictly, each mistake in one line."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from harness.base.errors import CallError, InputError, YarnfairError
from harness.control.config import read_config
from harness.yarn.kerberos import Login
from tests.yarn.fake_gssapi import FakeGssapi

GOOD = "policy: ltrf\nallocation_file: f.xml\nledger: l.db\n"


def read(tmp_path: Path, text: str) -> object:
    (tmp_path / "c.yaml").write_text(text)
    return read_config(tmp_path / "c.yaml")


def test_the_example_is_one(root: Path) -> None:
    config = read_config(root / "yarn-policy" / "enforce.yaml")
    assert config.make_policy().name == "ltrf"
    assert config.config_store().name == "/etc/hadoop/conf/fair-scheduler.xml"
    assert config.control_settings().lease_s == 30.0
    assert (config.control_settings().mode, config.control_settings().max_ratio) == ("bounded", 3.0)


def half_life(tmp_path: Path, text: str) -> object:
    config = read(tmp_path, "allocation_file: f.xml\nledger: l.db\n" + text)
    return getattr(config.make_policy().settings, "half_life", 0)  # type: ignore[attr-defined]


def test_debts_fade_by_default_and_as_the_configuration_says(tmp_path: Path) -> None:
    assert half_life(tmp_path, "policy: ltrf\n") == 86_400.0
    assert half_life(tmp_path, "policy: hltrf\nhalf_life: 3600\n") == 3600.0
    assert half_life(tmp_path, "policy: ltrf\nhalf_life: null\n") == math.inf
    assert half_life(tmp_path, "policy: ltrf\nsettings: {half_life: 60}\n") == 60.0
    assert half_life(tmp_path, "policy: ltrf\nsettings: {window: 60}\n") == math.inf, "a window forgets by itself"
    assert half_life(tmp_path, "policy: ltrf\nsettings: {round: 60}\n") == math.inf
    assert half_life(tmp_path, "policy: decay-slurm\n") == 7 * 86_400.0, "its own"
    assert half_life(tmp_path, "policy: decay-slurm\nhalf_life: 60\n") == 60.0
    assert half_life(tmp_path, "policy: fair\n") == 0
    with pytest.raises(CallError, match="half_life: policy fair keeps no accounts that fade"):
        half_life(tmp_path, "policy: fair\nhalf_life: 60\n")
    with pytest.raises(CallError, match=r"settings\.half_life: half_life is given twice"):
        half_life(tmp_path, "policy: ltrf\nhalf_life: 60\nsettings: {half_life: 60}\n")


def test_kerberos_is_spnego_with_a_keytab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", FakeGssapi())
    keytab = tmp_path / "c.keytab"
    config = read(tmp_path, GOOD + f"http: {{kerberos: {{principal: ctl@R, keytab: {keytab}}}}}\n")
    with pytest.raises(CallError, match=r"c\.keytab: no such keytab"):
        config.http_options()  # type: ignore[attr-defined]
    keytab.write_bytes(b"")
    options = config.http_options()  # type: ignore[attr-defined]
    assert (options.auth, options.login) == ("spnego", Login("ctl@R", str(keytab)))


@pytest.mark.parametrize(
    ("http", "said"),
    [
        ("{kerberos: {principal: a@R, keytab: k}, auth: simple}", "kerberos with auth: simple"),
        ("{kerberos: {principal: a@R}}", "keytab"),
        ("{kerberos: {principal: a@R, keytab: k, password: x}}", "unknown key"),
    ],
)
def test_mistakes_in_kerberos_are_one_line(tmp_path: Path, http: str, said: str) -> None:
    with pytest.raises(YarnfairError, match=said) as caught:
        read(tmp_path, GOOD + f"http: {http}\n")
    assert "\n" not in caught.value.line()


def test_queues_may_be_named_without_root(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(GOOD + "queues: {a: 2, root.b: 0.5}\nrms: [{rest: 'rm1:8088', admin: 'rm1:1'}]\n")
    config = read_config(tmp_path / "c.yaml")
    assert config.control_settings().entitlements == {"root.a": 2.0, "root.b": 0.5}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("polcy: x\n", "unknown key"),
        ("queues: {a: 0}\n", "queues.a"),
        ("queues: {a: .nan}\n", "queues.a"),
        ("period_s: 0\n", "period_s"),
        ("period_s: .inf\n", "period_s"),
        ("refresh: never\n", "refresh"),
        ("lease_s: 3\n", "two periods"),
        ("metrics: {port: 70000}\n", "metrics.port"),
        ("rms: [{adress: x}]\n", "rms"),
        ("ledger: [l]\n", "appears twice"),
    ],
)
def test_mistakes_are_one_line_with_a_place(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(YarnfairError, match=said) as caught:
        read(tmp_path, GOOD + more)
    assert "\n" not in caught.value.line()
    assert "c.yaml" in caught.value.line()


def test_policy_settings_and_addresses_are_checked(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(GOOD + "settings: {horizon: 3}\n")
    with pytest.raises(YarnfairError, match="no setting 'horizon'"):
        read_config(tmp_path / "c.yaml").make_policy()
    (tmp_path / "c.yaml").write_text(GOOD + "settings: {window: 60, half_life: 60}\n")
    with pytest.raises(YarnfairError, match="a sliding window goes with neither"):
        read_config(tmp_path / "c.yaml").make_policy()
    (tmp_path / "c.yaml").write_text(GOOD)
    config = read_config(tmp_path / "c.yaml")
    with pytest.raises(YarnfairError, match="no ResourceManager given"):
        config.addresses(())
    with pytest.raises(YarnfairError, match="is not an address"):
        config.addresses(("ftp://x",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("ltrf", "ltfr"), "c.yaml: policy: no policy 'ltfr'; did you mean 'ltrf'?"),
        (GOOD + "settings: {horizn_s: 3}\n", "c.yaml: settings: policy ltrf has no setting 'horizn_s'"),
        (GOOD + "settings: {horizn_s: 3}\n", "did you mean 'horizon_s'?"),
        (GOOD + "polcy: ltrf\n", "c.yaml:4: polcy: unknown key; did you mean 'policy'?"),
    ],
)
def test_a_mistake_names_its_file_and_key_and_the_nearest_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(YarnfairError) as caught:
        read(tmp_path, text)
    assert said in caught.value.line()
    assert "--" not in caught.value.line(), "an option that nobody gave"


@pytest.mark.parametrize("setting", ["quantum_s: 60", "quantum_s: 0", "adaptive_quantum: true"])
def test_what_cannot_be_counted_on_a_real_cluster_is_refused(tmp_path: Path, setting: str) -> None:
    (tmp_path / "c.yaml").write_text(GOOD + f"settings: {{{setting}}}\n")
    with pytest.raises(CallError, match=f"settings.{setting.partition(':')[0]}: .*execution times"):
        read_config(tmp_path / "c.yaml").make_policy()
    (tmp_path / "c.yaml").write_text(GOOD + "settings: {adaptive_quantum: false}\n")
    assert read_config(tmp_path / "c.yaml").make_policy().name == "ltrf"


def test_a_wrong_value_names_the_page_that_lists_this_files_keys(tmp_path: Path) -> None:
    with pytest.raises(InputError) as wrong:
        read(tmp_path, GOOD + "mode: bound\n")
    assert "mode: it should be 'shadow', 'bounded' or 'full'" in wrong.value.line()
    assert "docs/reference/enforce.md" in wrong.value.line()
