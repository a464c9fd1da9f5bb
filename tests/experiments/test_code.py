"""Which changes of code make a campaign's results old: those that change what is computed, and no others."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.base.documents import read_yaml
from harness.experiments.campaign.code import (
    COMPUTES,
    computing_files,
    package_hash,
    source_hash,
    user_file_hash,
)
from harness.experiments.campaign.spec import load_campaign
from harness.experiments.kind import kind_of
from harness.model.data import data_path

PACKAGE = Path(harness.__file__).resolve().parent
SOURCE = '''
"""What the module is for."""
X = 1


def halve(value):
    """Half of it."""
    # Why.
    return value / 2


class Rule:
    """A rule."""

    limit = (1, 2.0, {3, 4}, "text")
'''
#: Edits after which the code still does the same, and edits after which it does not.
SAME = {
    "a comment": ("# Why.", "# Because."),
    "a docstring": ('"""Half of it."""', '"""The half,\n\n    of it."""'),
    "no docstring": ('    """Half of it."""\n', ""),
    "formatting": ("return value / 2", "return (\n        value / 2\n    )"),
    "a blank line": ("X = 1\n", "\n\nX = 1\n"),
    "an assertion": ("    return", "    assert value\n    return"),
}
OTHER = {
    "a constant": ("/ 2", "/ 3"),
    "an operator": ("value / 2", "value // 2"),
    "a type of a number": ("(1, 2.0", "(1.0, 2.0"),
    "a sign of zero": ("X = 1", "X = -0.0"),
    "a name": ("X = 1", "Y = 1"),
    "a default": ("halve(value)", "halve(value=1)"),
    "text": ('"text"', '"texts"'),
}


def edited(change: tuple[str, str]) -> bytes:
    old, new = change
    assert old in SOURCE
    return SOURCE.replace(old, new).encode()


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_what_does_not_compute_does_not_count(change: tuple[str, str]) -> None:
    assert source_hash(edited(change)) == source_hash(SOURCE.encode())


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_what_computes_counts(change: tuple[str, str]) -> None:
    assert source_hash(edited(change)) != source_hash(SOURCE.encode())


def test_zero_and_minus_zero_are_two_values() -> None:
    assert source_hash(b"X = 0.0") != source_hash(b"X = -0.0")
    assert source_hash(b"X = 1") != source_hash(b"X = True")


def test_all_that_does_not_only_print_counts() -> None:
    """What counts imports nothing of what does not, but for types and for pages made when they are asked for."""
    counted = computing_files(PACKAGE)
    names = {path.relative_to(PACKAGE).as_posix() for path in counted}
    for name in ("experiments/resolve.py", "experiments/campaign/run.py", "base/stats.py", *COMPUTES):
        assert name in names
    assert any(name.startswith("yarn/") for name in names)
    assert not any(name.startswith("cli/") for name in names)
    for path in counted:
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("harness.report", "harness.cli")):
                file = "/".join((node.module or "").split(".")[1:]) + ".py"
                assert file in names, f"{path} imports {node.module}"


def test_a_change_of_any_module_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def hashed(name: str, files: dict[str, str]) -> str:
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return package_hash(tmp_path / name)

    files = {"experiments/resolve.py": "JOBS = 2\n", "cli/run.py": "print(1)\n", "kinds/x/page.py": "PAGE = 1\n"}
    before = hashed("a", files)
    assert hashed("same", files) == before
    assert hashed("b", {**files, "experiments/resolve.py": "JOBS = 1\n"}) != before
    assert hashed("c", {**files, "experiments/resolve.py": "JOBS = 2  # as asked\n"}) == before
    assert hashed("d", {**files, "cli/run.py": "print(2)\n", "kinds/x/page.py": "PAGE = 2\n"}) == before
    assert hashed("e", {**files, "yarn/new.py": ""}) != before
    # A damaged cache is computed again.
    for kept in (tmp_path / "cache" / "yarnfair").iterdir():
        kept.write_text("0" * 63)
    package_hash.cache_clear()
    assert package_hash(tmp_path / "a") == before


@pytest.mark.parametrize(
    "imports",
    [
        "import helper",
        "from helper import rule",
        "import lib.deep",
        "from lib import deep",
        "from lib.deep import rule",
    ],
)
def test_what_a_users_policy_imports_from_beside_it_counts(tmp_path: Path, imports: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "deep.py").write_text("import helper\nrule = 1\n")
    (tmp_path / "helper.py").write_text("import json, numpy\nrule = 1\n")
    policy = tmp_path / "policy.py"
    policy.write_text(f"def late():\n    {imports}\n")
    before = user_file_hash(policy)
    policy.write_text(f"# Mine.\ndef late():\n    {imports}\n")
    assert user_file_hash(policy) == before
    (tmp_path / "helper.py").write_text("import json, numpy\nrule = 2\n")
    assert user_file_hash(policy) != before
    (tmp_path / "helper.py").write_text("import json, numpy\n\nrule = 1  # as it was\n")
    (tmp_path / "unrelated.py").write_text("rule = 3\n")
    assert user_file_hash(policy) == before


def test_a_copy_of_a_users_folder_is_the_same_policy(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text("x = 1\n")
        (tmp_path / name / "policy.py").write_text("import helper\nimport policy\n")
        found.append(user_file_hash(tmp_path / name / "policy.py"))
    assert found[0] == found[1] is not None
    assert user_file_hash(tmp_path / "none.py") is None


def test_what_an_experiment_is_about_does_not_count(tmp_path: Path, write: Any) -> None:
    path = write()
    before = [cell.id for cell in load_campaign(path).cells]
    experiment = path.parent / "tiny.yaml"
    document = yaml.safe_load(experiment.read_text())
    experiment.write_text("# A comment.\n" + yaml.safe_dump({**document, "about": "something else"}))
    assert [cell.id for cell in load_campaign(path).cells] == before
    experiment.write_text(yaml.safe_dump({**document, "max_am_share": 0.5}))
    assert [cell.id for cell in load_campaign(path).cells] != before


def test_that_holds_for_every_type_of_experiment() -> None:
    checked = set()
    for path in sorted(data_path("experiments").rglob("*.yaml")):
        document = read_yaml(path)
        kind = kind_of(document)
        if kind.name in checked or "about" not in document.data:
            continue
        checked.add(kind.name)
        before = kind.load(document).hash
        document.data["about"] = "something else"
        assert kind.load(document).hash == before, path
    assert {"yarn", "slots", "vectors", "mr-clusters"} <= checked
