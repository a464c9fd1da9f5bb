"""The git commit of a folder, read from git's own files: the git program is not needed."""

from __future__ import annotations

import re
from pathlib import Path

_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
#: Maximum size of the files that are read, which a sound repository does not exceed except in ``packed-refs``.
_MOST_BYTES, _MOST_PACKED = 4096, 64 * 1024 * 1024


def _text(path: Path, most: int = _MOST_BYTES) -> str:
    try:
        if not path.is_file() or path.stat().st_size > most:
            return ""
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _git_folder(folder: Path) -> Path | None:
    """Return git's folder of the nearest repository at or above a folder; None if there is none."""
    for place in (folder, *folder.parents):
        found = place / ".git"
        if found.is_dir():
            return found
        if (text := _text(found)).startswith("gitdir:"):  # a worktree, or a submodule
            return (place / text.removeprefix("gitdir:").strip()).resolve()
    return None


def commit_of(folder: Path) -> str | None:
    """Find the commit that is checked out in a folder, or in one above it.

    Parameters
    ----------
    folder
        Any folder. Edits that are not committed do not show.

    Returns
    -------
    str or None
        The full hash; None outside a repository, before its first commit, and if git's files are unreadable.
    """
    git = _git_folder(folder.resolve())
    if git is None:
        return None
    head = _text(git / "HEAD")
    if _HASH.fullmatch(head):
        return head
    name = head.removeprefix("ref:").strip()
    if not head.startswith("ref:") or not re.fullmatch(r"refs/[^\s:]+", name) or ".." in name:
        return None
    common = _text(git / "commondir")
    folders = [git, *([(git / common).resolve()] if common else [])]
    for place in folders:
        if _HASH.fullmatch(found := _text(place / name)):
            return found
    for place in folders:
        for line in _text(place / "packed-refs", _MOST_PACKED).splitlines():
            commit, _, of = line.partition(" ")
            if of == name and _HASH.fullmatch(commit):
                return commit
    return None


def commits() -> dict[str, str]:
    """Return the commits of a run: ``folder`` (the working directory's) and ``yarnfair`` (of a checkout of it)."""
    package = Path(__file__).resolve().parents[2]
    found = {}
    try:
        here = commit_of(Path.cwd())
    except OSError:  # the working directory is gone
        here = None
    if here is not None:
        found["folder"] = here
    # An installed package may be below a repository that is not ours.
    if (package / "pyproject.toml").is_file() and (package / ".git").exists():
        own = commit_of(package)
        if own is not None:
            found["yarnfair"] = own
    return found
