"""Small disks of memory over folders, which can be filled and made read-only; what lay there is kept beside them."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from harness.base.errors import InputError


class Disk:
    """A tmpfs of some KiB over a folder. ``kept``: the folder where its files lie while it is not mounted."""

    def __init__(self, folder: Path, kept: Path, kib: int) -> None:
        self.folder, self.kept, self.kib = folder, kept, kib

    def mount(self) -> None:
        """Mounts it with what was kept. InputError where this process may not."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kept.mkdir(parents=True, exist_ok=True)
        if self.folder.is_mount():  # an earlier run was killed: what lies there is newer
            self.keep()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={self.kib}k,mode=755", "tmpfs", str(self.folder)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise InputError(f"no small disk: {done.stderr.strip()}", where=str(self.folder), hint="run it as root")
        for path in self.kept.iterdir():
            shutil.copy2(path, self.folder / path.name)

    def keep(self) -> None:
        """Copies what lies on it beside it, and takes it away."""
        self.writable(True)
        self.empty()
        draft = self.kept.with_name(f"{self.kept.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(self.folder, draft)
        shutil.rmtree(self.kept, ignore_errors=True)
        draft.rename(self.kept)
        subprocess.run(["umount", "-l", str(self.folder)], check=True)

    def fill(self) -> None:
        """Leaves no room."""
        with suppress(OSError), (self.folder / ".filler").open("wb", buffering=0) as filler:
            for size in (65536, 1024, 1):
                with suppress(OSError):
                    while filler.write(b"x" * size) == size:
                        pass

    def empty(self) -> None:
        """Room again."""
        (self.folder / ".filler").unlink(missing_ok=True)

    def writable(self, yes: bool) -> bool:
        """Lets it be written, or not any more; False where somebody has a file of it open for writing."""
        how = "rw" if yes else "ro"
        done = subprocess.run(["mount", "-o", f"remount,{how}", str(self.folder)], capture_output=True)
        return done.returncode == 0
