"""What a folder of results holds, so that nothing else is written into it: a marker with a kind and an identity.

One folder holds the runs of one experiment, of one replay or of one campaign, or one assessment. The marker is written
before the first result. A folder without a valid run may be claimed by anything: whoever raises a time limit that was
reached runs another experiment.
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

#: The marker's name.
MARKER = ".yarnfair.json"
FORMAT = 1
Kind = Literal["run", "replay", "campaign", "assess"]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a folder of results holds.

    Attributes
    ----------
    kind : what wrote the results.
    name : the experiment's, trace's or campaign's, for people.
    identity : what the results depend on; results of another identity never replace them.
    """

    kind: Kind
    name: str
    identity: str

    def admits(self, other: Contents) -> bool:
        """Whether results of `other` may be written where these are.

        An experiment is the same one after its file was edited: its runs replace those of the earlier version one by
        one (`earlier_runs` names those that stay). A campaign whose folder has no marker takes any campaign's results,
        because its name is not known.
        """
        if self.kind != other.kind:
            return False
        if self.kind == "run":
            return self.name == other.name and _backend(self.identity) == _backend(other.identity)
        return self == other or (self.kind == "campaign" and not self.name)

    def words(self) -> str:
        """For a message."""
        what = {"run": "runs of", "replay": "the replay of", "campaign": "campaign", "assess": "the assessment of"}
        name = f" {self.name}" if self.name else ""
        return f"{what[self.kind]}{name}" + (f" ({self.identity[:8]})" if self.identity else "")


def claim(folder: Path, contents: Contents) -> None:
    """Create a folder of results and note what it holds.

    Parameters
    ----------
    folder : the folder.
    contents : what is going to be written into it.

    Raises
    ------
    InputError
        It holds results of something else, its name is not UTF-8, or it cannot be written.
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
    """`claim` a folder; where it is new and the first result never comes, it is removed again."""
    existed = folder.exists()
    claim(folder, contents)
    try:
        yield
    except InputError:
        if not existed and not any(path.name != MARKER for path in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def free_folder(wanted: Path, contents: Contents) -> Path:
    """The folder, or the first of NAME-2, NAME-3 ... that holds nothing else than `contents`."""
    folder, number = wanted, 1
    while folder.is_dir() and (present := contents_of(folder)) is not None and not present.admits(contents):
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def contents_of(folder: Path) -> Contents | None:
    """What the results in a folder are of; None where it has none.

    Folders that earlier versions wrote have no marker: what they hold is read from their runs.

    Raises
    ------
    InputError
        The marker is damaged, or the folder cannot be read.
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
    """The identity of an experiment's runs."""
    return experiment_hash + ("" if backend == "sim" else f" on {backend}")


def _backend(identity: str) -> str:
    """The backend in the identity of an experiment's runs; empty for the simulator."""
    return identity.partition(" on ")[2]


def earlier_runs(folder: Path, experiment_hash: str, variants: Collection[str]) -> list[str]:
    """Complete runs in a folder that another version of the experiment made and that these variants do not replace."""
    with reading(folder):
        below = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".") and path.is_dir()]
    found = ((path.name, complete_run(path)) for path in below if path.name not in variants)
    return [name for name, info in found if info is not None and info.get("hash") != experiment_hash]


def files_identity(paths: list[Path], *more: object) -> str:
    """An identity by what files hold, of folders by their files' sizes and times, and by anything else that counts."""
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
