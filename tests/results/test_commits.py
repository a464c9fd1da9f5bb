"""The commits behind a run are in run.json, and git is not needed to find them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.base.files import read_json
from harness.results.commits import commit_of, commits
from harness.results.store import RunDirectory

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="needs git")


def git(folder: Path, *arguments: str) -> str:
    own = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *own, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@needs_git
def test_the_commit_is_that_of_git(repository: Path) -> None:
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    head = git(repository, "rev-parse", "HEAD")
    assert commit_of(below) == head
    git(repository, "pack-refs", "--all")
    assert commit_of(repository) == head
    git(repository, "checkout", "-q", "--detach")
    assert commit_of(repository) == head


@needs_git
def test_a_worktree_has_a_commit_of_its_own(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    git(tmp_path / "other", "commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of(tmp_path / "other") == git(tmp_path / "other", "rev-parse", "HEAD")
    assert commit_of(tmp_path / "other") != commit_of(repository)


@needs_git
def test_run_json_has_the_commit_of_the_users_folder(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PATH", "")
    RunDirectory(repository / "run", {"variant": "fair"})
    head = read_json(repository / "run" / "run.json")["commits"]["folder"]
    monkeypatch.undo()
    assert head == git(repository, "rev-parse", "HEAD")


def test_outside_a_repository_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert commit_of(tmp_path) is None
    assert "folder" not in commits()


@pytest.mark.parametrize("head", ["", "ref: refs/heads/main", "ref: refs/../../secret", "ref: /etc/passwd", "nonsense"])
def test_a_damaged_repository_has_none(tmp_path: Path, head: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert commit_of(tmp_path) is None
