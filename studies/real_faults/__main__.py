"""Hours on real parts that are broken on purpose: what held, accounts against the RM's own, memory and log sizes.

    python -m studies.real_faults run FOLDER --hours 8 --seed 1
    python -m studies.real_faults measure FOLDER -o docs/records/real-faults.json

`run` goes on until so many hours have been run in all, in pieces that each end with the accounts; SIGTERM or Ctrl-C
ends the piece early. Called again it goes on with the same folder: ResourceManagers' state, ledgers and hours. A new
folder is another run: `measure` adds it to those that the record has. `--only PIECES` stops after so many pieces. It
needs Java and the right to mount a tmpfs; with an sshd every other piece has the allocation file behind SFTP.
"""

from __future__ import annotations

import argparse
import fcntl
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_json, write_json
from studies.real_faults.load import Used
from studies.real_faults.measured import measured, run_of
from studies.real_faults.piece import Piece
from studies.result import in_one_line, write


def run(folder: Path, hours: float, seed: int, piece_minutes: float, only: int) -> None:
    """Pieces until the hours are full."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError("a run goes on here already", where=str(folder), hint="give another folder") from None
        _pieces(folder, hours, seed, piece_minutes, only)


def _pieces(folder: Path, hours: float, seed: int, piece_minutes: float, only: int) -> None:
    kept = folder / "state.json"
    state: dict[str, Any] = (
        read_json(kept) if kept.exists() else {"seed": seed, "commit": _commit(), "seconds": 0.0, "pieces": []}
    )
    stop = False
    while state["seconds"] < 3600 * hours and not stop and only:
        only -= 1
        number = len(state["pieces"]) + 1
        apps_file = folder / "applications.json"
        apps = read_json(apps_file)["apps"] if apps_file.exists() else {}
        known = {name: Used(**used) for name, used in apps.items()}
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        with (folder / "run.log").open("a") as log:

            def say(text: str, log: Any = log, number: int = number) -> None:
                print(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {number} {text}", file=log, flush=True)

            with Piece(folder, state["seed"], number, known, say) as piece:

                def interrupt(*_: object, piece: Piece = piece) -> None:
                    nonlocal stop
                    stop = True
                    piece.interrupt()

                for number_of in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number_of, interrupt)
                told = piece.run(min(60 * piece_minutes, 3600 * hours - state["seconds"]))
        state["pieces"].append({"begun": begun, **asdict(told), "faults": dict(told.faults)})
        state["seconds"] += told.seconds
        write_json(apps_file, {"apps": {name: asdict(used) for name, used in known.items()}})
        write_json(kept, state)
        print(
            f"piece {number}: {told.seconds / 60:.1f} min, {sum(told.faults.values())} faults, "
            f"{len(told.violations)} violations; {state['seconds'] / 3600:.2f} of {hours:g} hours",
            file=sys.stderr,
            flush=True,
        )


def _commit() -> str:
    """The commit that runs; "" outside a repository."""
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True)
    return told.stdout.strip()


@in_one_line("real_faults")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.real_faults", description=__doc__)
    parser.add_argument("what", choices=("run", "measure"))
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("--hours", type=float, default=8.0, help="how long in all [8]")
    parser.add_argument("--seed", type=int, default=1, help="of a new folder's faults [1]")
    parser.add_argument("--piece-minutes", type=float, default=30.0, help="how long a piece is [30]")
    parser.add_argument("--only", type=int, default=-1, metavar="PIECES", help="end after so many [never]")
    parser.add_argument("--anew", action="store_true", help="forget the other runs that the record holds")
    parser.add_argument("-o", "--out", type=Path, help="the record [standard output]")
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    if given.what == "run":
        run(folder, given.hours, given.seed, given.piece_minutes, given.only)
    else:
        state = read_json(folder / "state.json", hint="run it first")
        kept = given.out is not None and given.out.exists() and not given.anew
        before = read_json(given.out)["values"]["runs"] if kept else []
        commands = [f"python -m studies.real_faults {what} runs/real-faults" for what in ("run", "measure")]
        write(given.out, "; ".join(commands), measured(run_of(state), given.hours, before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
