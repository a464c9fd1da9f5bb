"""What the project brings that a user may call by its name: experiments, scenarios, MapReduce jobs, workloads.

A name is a file's without its ending, a workload's also with its folder (``contended/spark``). Reads first lines only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import InputError, first_sentence, nearest
from harness.model.data import data_path

#: what -> (one of them, folder, its files)
_FOLDERS = {
    "experiments": ("experiment", "experiments", "**/*.yaml"),
    "workloads": ("workload", "workloads", "*/*.yaml"),
    "scenarios": ("scenario", "workloads/scenarios", "*.yaml"),
    "jobs": ("file of jobs", "workloads/ordering", "*.csv"),
}
WHAT = tuple(_FOLDERS)


@dataclass(frozen=True, slots=True)
class Brought:
    """One of them: its name, what it is in a line, its file."""

    name: str
    about: str
    path: Path


def names(what: str) -> list[str]:
    """The names of all of `WHAT`, sorted."""
    return sorted(_files(what))


def brought(what: str) -> list[Brought]:
    """All of `WHAT`, by name."""
    return [Brought(name, _about(path), path) for name, path in sorted(_files(what).items())]


def named(what: str, name: str | Path) -> Path:
    """The file that a user means: a path, or the name of one that the project brings.

    Raises InputError when there is neither, with the nearest name.
    """
    text, path = str(name), Path(name)
    there = "\0" not in text and path.exists()
    if there and not path.is_dir():
        return path
    files = _files(what)
    if text in files:
        return files[text]
    if there or (what != "experiments" and ("/" in text or path.suffix)):
        return path  # whoever reads it says what is wrong with the file
    close = nearest(path.stem if path.suffix in (".yaml", ".yml") else text, files)
    hint = f"did you mean {close!r}? " if close else ""
    raise InputError(
        f"no such {_FOLDERS[what][0]}",
        where=text[:200],
        hint=f"{hint}`yarnfair list {what}` names those brought along; or give a file",
    )


def called(what: str, file: str) -> str:
    """How a user calls a file: by the name of what the project brings, else by its path."""
    stem, path = Path(file).stem, Path(file).resolve()
    return stem if _files(what).get(stem, Path()).resolve() == path else file


def _files(what: str) -> dict[str, Path]:
    _, folder, pattern = _FOLDERS[what]
    paths = data_path(folder).glob(pattern)
    if what != "workloads":
        return {path.stem: path for path in paths}
    # A folder's own workload goes by the folder's name alone, as in experiments.
    return {
        path.stem if path.stem == path.parent.name else f"{path.parent.name}/{path.stem}": path
        for path in paths
        if path.parent.name != "scenarios" and _field(path, "kind")
    }


def _field(path: Path, key: str) -> str:
    """The text of a top-level key that stands on one line; '' without it."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{key}:"):
            return line.partition(":")[2].strip().strip("'\"")
    return ""


def _about(path: Path) -> str:
    """What a file says of itself: ``about``, ``description``, or the first sentence of the comment at its top."""
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
