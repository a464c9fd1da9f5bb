"""Marks a folder of results with a type and an identity, so that nothing else is written into it.

One folder holds the runs of one experiment, of one replay or of one campaign, or one assessment. The marker is written
before the first result. A folder without a valid run may be claimed by anything: raising a time limit that was reached,
for example, gives another experiment.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from harness.base.errors import InputError
from harness.base.files import read_json, reading, write_json
from harness.base.outputs import check_output_folder
from harness.results.store import complete_run

#: The marker file's name.
MARKER = ".yarnfair.json"
FORMAT = 1
Kind = Literal["run", "replay", "campaign", "assess"]


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a folder of results.

    Attributes
    ----------
    kind : what wrote the results.
    name : the experiment's, trace's or campaign's, for people.
    identity : everything on which the results depend; results of another identity never replace them.
    """

    kind: Kind
    name: str
    identity: str

    def admits(self, other: Contents) -> bool:
        """Return whether results of `other` may be written into the same folder.

        An experiment stays the same after an edit of its file: its runs replace those of the earlier version one by one
        (`earlier_runs` names the remaining ones). A campaign whose folder has no marker takes any campaign's results,
        because its name is not known.
        """
        if self.kind != other.kind:
            return False
        if self.kind == "run":
            return self.name == other.name and _backend(self.identity) == _backend(other.identity)
        return self == other or (self.kind == "campaign" and not self.name)

    def words(self) -> str:
        """Describe the content for a message."""
        what = {"run": "runs of", "replay": "the replay of", "campaign": "campaign", "assess": "the assessment of"}
        name = f" {self.name}" if self.name else ""
        return f"{what[self.kind]}{name}" + (f" ({self.identity[:8]})" if self.identity else "")


def claim(folder: Path, contents: Contents) -> None:
    """Create a folder of results and mark its content.

    Parameters
    ----------
    folder : the folder.
    contents : what will be written into it.

    Raises
    ------
    InputError
        It has results of something else, its name is not UTF-8, or it cannot be written.
    """
    check_output_folder(folder, hint="choose another --out")
    present = contents_of(folder)
    if present is not None and not present.admits(contents):
        raise InputError(
            f"the folder holds {present.words()}, not {contents.words()}",
            where=str(folder),
            hint="choose another --out, or remove the folder",
        )
    if present != contents or not (folder / MARKER).exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot be created: {error.strerror}", where=str(folder), hint="choose another --out"
            ) from None
        write_json(folder / MARKER, {"format": FORMAT, **asdict(contents)})


@contextmanager
def claimed(folder: Path, contents: Contents) -> Iterator[None]:
    """`claim` a folder; a new folder is removed again if the first result never comes."""
    existed = folder.exists()
    claim(folder, contents)
    try:
        yield
    except InputError:
        if not existed and not any(path.name != MARKER for path in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def free_folder(wanted: Path, contents: Contents) -> Path:
    """Return the folder, or the first of NAME-2, NAME-3 ... that has nothing other than `contents`."""
    folder, number = wanted, 1
    while folder.is_dir() and (present := contents_of(folder)) is not None and not present.admits(contents):
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def contents_of(folder: Path) -> Contents | None:
    """Return the content of a folder of results; None if it has none.

    Folders of earlier versions have no marker; their content is derived from their runs.

    Raises
    ------
    InputError
        The marker is damaged, or the folder is unreadable.
    """
    if not folder.is_dir():
        return None
    with reading(folder):
        below = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".") and path.is_dir()]
    campaign = (folder / "campaign.sqlite").exists()
    runs = [info for path in below if (info := complete_run(path)) is not None and info["exit"] == 0]
    marker = folder / MARKER
    if marker.exists():
        hint = "choose another --out, or remove it if the folder's results are no longer needed"
        noted = read_json(marker, hint)
        if noted.get("format") != FORMAT or noted.get("kind") not in get_args(Kind):
            raise InputError(f"not a marker of format {FORMAT}", where=str(marker), hint=hint)
        found = Contents(noted["kind"], str(noted.get("name", "")), str(noted.get("identity", "")))
        has_results = runs or campaign or found.kind == "assess"
        return found if has_results else None
    if campaign:
        return Contents("campaign", "", "")
    for info in runs:
        if isinstance(info.get("hash"), str) and isinstance(info.get("experiment"), dict):
            name = str(info["experiment"].get("experiment", ""))
            kind: Kind = "replay" if (folder / "replay.yaml").exists() else "run"
            return Contents(kind, name, run_identity(str(info["hash"]), str(info.get("backend", "sim"))))
    return None


def run_identity(experiment_hash: str, backend: str) -> str:
    """Return what tells an experiment's runs from others: its hash, and the backend unless simulated."""
    return experiment_hash + ("" if backend == "sim" else f" on {backend}")


def _backend(identity: str) -> str:
    """Return the backend in the identity of an experiment's runs; empty for the simulator."""
    return identity.partition(" on ")[2]


def earlier_runs(folder: Path, experiment_hash: str, variants: Collection[str]) -> list[str]:
    """Return a folder's complete runs of other versions of the experiment that these variants do not replace."""
    with reading(folder):
        below = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".") and path.is_dir()]
    found = ((path.name, complete_run(path)) for path in below if path.name not in variants)
    return [name for name, info in found if info is not None and info.get("hash") != experiment_hash]


def files_identity(paths: list[Path], *more: object) -> str:
    """Return an identity from files' contents, folders' file sizes and times, and any other values that matter."""
    digest = hashlib.sha256(repr(more).encode())
    for path in paths:
        with reading(path):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                state = file.stat()
                digest.update(f"{file.name} {state.st_size}\n".encode("utf-8", "surrogateescape"))
                if path.is_dir():
                    digest.update(f"{state.st_mtime_ns}\n".encode())
                elif file.is_file():
                    with file.open("rb") as content:
                        digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()
