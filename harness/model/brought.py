"""The project's own files that a user may call by name: experiments, scenarios, MapReduce jobs, workloads.

A name is a file name without its suffix; a workload's name includes its folder (``contended/spark``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import InputError, first_sentence, nearest
from harness.model.data import data_path

#: Type of file -> (noun for messages, folder, pattern of its files).
_FOLDERS = {
    "experiments": ("experiment", "experiments", "**/*.yaml"),
    "workloads": ("workload", "workloads", "*/*.yaml"),
    "scenarios": ("scenario", "workloads/scenarios", "*.yaml"),
    "jobs": ("file of jobs", "workloads/ordering", "*.csv"),
}
WHAT = tuple(_FOLDERS)


@dataclass(frozen=True, slots=True)
class Brought:
    """One of these files: its name, its one-line description, its path."""

    name: str
    about: str
    path: Path


def names(what: str) -> list[str]:
    """Return the names of all of `WHAT`, sorted."""
    return sorted(_files(what))


def brought(what: str) -> list[Brought]:
    """Return the files of a type (one of `WHAT`), sorted by name."""
    return [Brought(name, _about(path), path) for name, path in sorted(_files(what).items())]


def named(what: str, name: str | Path) -> Path:
    """Return the file that a user names: a path, or the name of one of the project's files.

    Raises InputError if there is no such path and no such name; the error contains the most similar name.
    """
    text, path = str(name), Path(name)
    there = "\0" not in text and path.exists()
    if there and not path.is_dir():
        return path
    files = _files(what)
    if text in files:
        return files[text]
    if there or (what != "experiments" and ("/" in text or path.suffix)):
        return path  # the reader of the file reports its errors
    close = nearest(path.stem if path.suffix in (".yaml", ".yml") else text, files)
    hint = f"did you mean {close!r}? " if close else ""
    raise InputError(
        f"no such {_FOLDERS[what][0]}",
        where=text[:200],
        hint=f"{hint}`yarnfair list {what}` names those brought along; or give a file",
    )


def called(what: str, file: str) -> str:
    """Return the name by which a user calls a file: its name if it is one of the project's files, else its path."""
    stem, path = Path(file).stem, Path(file).resolve()
    return stem if _files(what).get(stem, Path()).resolve() == path else file


def _files(what: str) -> dict[str, Path]:
    _, folder, pattern = _FOLDERS[what]
    paths = data_path(folder).glob(pattern)
    if what != "workloads":
        return {path.stem: path for path in paths}
    # A workload with the name of its folder is called by that name alone.
    return {
        path.stem if path.stem == path.parent.name else f"{path.parent.name}/{path.stem}": path
        for path in paths
        if path.parent.name != "scenarios" and _field(path, "kind")
    }


def _field(path: Path, key: str) -> str:
    """Return the text of a top-level key on a single line; '' if there is none."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{key}:"):
            return line.partition(":")[2].strip().strip("'\"")
    return ""


def _about(path: Path) -> str:
    """Return a file's description: ``about``, ``description``, or the first sentence of the comment at its top."""
    if path.suffix == ".csv":
        return f"{len(path.read_text(encoding='utf-8').splitlines()) - 1} jobs"
    if said := _field(path, "about") or _field(path, "description"):
        return said[0].upper() + said[1:]
    comment: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    return first_sentence(" ".join(comment)).removesuffix(".")
