"""The house itself: layout, what is in the repository, start-up, the wheel, the command shell's exit codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.conftest import SLOW

ROOT = Path(__file__).resolve().parents[2]


def tracked_files() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def yarnfair(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments], cwd=cwd, capture_output=True, text=True, timeout=120
    )


def test_the_top_level_has_the_shape_that_users_were_promised() -> None:
    folders = ("harness", "studies", "templates", "yarn-policy", "workloads", "docker", "tests", "docs", "experiments")
    for name in folders:
        assert (ROOT / name).is_dir(), name
    pages = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE")
    for name in (*pages, "pyproject.toml", "Makefile", "requirements.txt", ".editorconfig", ".pre-commit-config.yaml"):
        assert (ROOT / name).is_file(), name


def test_the_hooks_before_a_commit_run_what_make_lint_runs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    run = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in hooks}
    recipe = (ROOT / "Makefile").read_text().partition("\nlint: setup\n")[2].partition("\n\n")[0]
    assert run == {line.split()[0].removeprefix("$(BIN)/") for line in recipe.splitlines()}
    if installed_from().name == "requirements.txt":  # the other environment has no tools
        assert all((ROOT / hook["entry"].split()[0]).exists() for hook in hooks)


def test_the_citation_names_the_version_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])


def test_nothing_in_the_repository_names_a_machine_or_a_registry() -> None:
    # Put together at run time, so that this file does not contain them itself.
    forbidden = [
        "/" + "work/main",
        "/" + "work/shared",
        "../" + "shared",
        "files.python" + "hosted.org",
        "pypi" + ".org",
    ]
    allowed = {ROOT / ".ci" / "run"}
    found = []
    for path in tracked_files():
        if path in allowed or path.suffix in {".parquet", ".png", ".gz", ".tsv"}:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {word}" for word in forbidden if word in text]
    assert not found


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-lowest.txt", "docs/site/requirements.txt"])
def test_every_requirement_is_pinned_with_hashes(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert len(pins) > 30
    assert all("==" in line and line.rstrip().endswith("\\") for line in pins)
    assert not [line for line in lines if "://" in line]


def test_the_lowest_versions_are_those_that_the_package_admits() -> None:
    """CI runs the tests with them (.ci/run), so that a bound says what was tried."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pins = (ROOT / "requirements-lowest.txt").read_text()
    assert "requirements-lowest.txt" in (ROOT / ".ci" / "run").read_text()
    for text in [*project["dependencies"], *extras["dask"], *extras["plot"], *extras["workloads"]]:
        wanted = Requirement(text)
        (bound,) = [one.version for one in wanted.specifier if one.operator == ">="]
        (pin,) = re.findall(rf"(?m)^{canonicalize_name(wanted.name)}==(\S+)", pins)
        # The least release at or above the bound: 2.9 may be 2.9.0, and where that was taken back, 2.9.1.
        assert Version(bound) <= Version(pin), wanted.name
        assert Version(pin).release[: len(Version(bound).release)] == Version(bound).release, (wanted.name, pin)


def test_the_extra_for_kerberos_is_pinned_and_built_with_pinned_tools() -> None:
    extra = (ROOT / "requirements-kerberos.txt").read_text()
    assert [line.split("==")[0] for line in extra.splitlines() if line[0] not in "# "] == ["gssapi"]
    assert "--hash=sha256:" in extra
    pins = (ROOT / "requirements.txt").read_text()
    assert "\ncython==" in pins
    assert "\nsetuptools==" in pins


def installed_from() -> Path:
    """The file of pinned versions that this environment was made from: older releases need other packages."""
    files = (ROOT / "requirements.txt", ROOT / "requirements-lowest.txt")
    return next(path for path in files if f"\npandas=={metadata.version('pandas')} " in path.read_text())


def test_make_run_installs_what_the_product_needs_and_no_tools_of_its_development() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "needed", installed_from()], capture_output=True, text=True, check=True
    )
    names = {line.split("==")[0] for line in done.stdout.splitlines() if line[0] not in "# "}
    waiting, below = {"yarnfair", "hatchling", "editables"}, set[str]()
    while waiting:
        name = waiting.pop()
        below.add(name)
        for text in metadata.requires(name) or []:
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                waiting |= {canonicalize_name(wanted.name)} - below
    assert below - {"yarnfair"} <= names
    tools = {"pytest", "mypy", "ruff", "hypothesis", "cython"}
    if installed_from().name == "requirements.txt":  # the other file has the extras' lowest versions, too
        tools |= {"matplotlib", "distributed"}
    assert not names & tools
    assert len(names) < 80


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from harness.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as stop:\n    assert stop.code == 0\n"
        "heavy = {'numpy', 'pandas', 'numba', 'scipy', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Commands:" in done.stdout


@pytest.mark.parametrize("arguments", [("nonsense",), ("allocate",), ("shares", "--no-such-option")])
def test_a_wrong_call_is_one_line_and_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = yarnfair(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("yarnfair: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "verb",
    [
        "run",
        "allocate",
        "order",
        "shares",
        "decide",
        "render",
        "validate",
        "cluster",
        "report",
        "bench",
        "campaign",
        "compare",
        "baseline",
        "check",
        "sql",
    ],
)
def test_every_command_has_help(verb: str) -> None:
    done = yarnfair(verb, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def test_the_wheel_works_as_the_checkout_does(tmp_path: Path) -> None:
    env = dict(os.environ, PYTHONPATH=str(tmp_path / "site"))
    wheel_dir = tmp_path / "wheel"
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheel_dir), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (wheel,) = wheel_dir.glob("*.whl")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path / "site"), str(wheel)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    queues = tmp_path / "queues.yaml"
    queues.write_text("queues:\n  a: {weight: 3}\n  b: {weight: 1}\n")

    def installed(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )

    where = subprocess.run(
        [sys.executable, "-c", "import harness; print(harness.__file__)"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path) in where.stdout, "the test must run the installed package, not the checkout"
    rendered = installed("render", str(queues), "-o", "fair-scheduler.xml")
    assert rendered.returncode == 0, rendered.stderr
    shares = installed("shares", "fair-scheduler.xml", "--memory-mb", "4096", "--vcores", "4", "--json")
    assert shares.returncode == 0, shares.stderr
    assert '"memory_mb": 3072' in shares.stdout
    run = installed("run", "no-such-experiment")
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1


def test_what_is_marked_slow_is_there() -> None:
    for beginning in SLOW:
        path, _, name = beginning.partition("::")
        found = list(ROOT.glob(f"{path}*"))
        assert found, f"tests/conftest.py: SLOW names {path}, which is gone"
        function = name.partition("[")[0]
        assert not name or f"def {function}(" in found[0].read_text(), f"tests/conftest.py: SLOW names {beginning}"
