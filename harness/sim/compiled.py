"""Where compiled code is kept between runs.

numba notices when the file of a function has changed, but not when a function that it calls in another file has. So the
folder's name is a digest of this room's sources: whatever changes, everything is compiled anew once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import sys
import time
from pathlib import Path

_PREFIX = "compiled-"
#: Folders of former sources are left for so long (seconds): runs that began before a change still use them.
_KEEP_S = 86_400


def _digest(root: Path) -> str:
    digest = hashlib.blake2b(f"{sys.version}{platform.machine()}".encode(), digest_size=8)
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        if b"numba" in source or b"np.dtype" in source:  # functions that are compiled, and what their records look like
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + source)
    return digest.hexdigest()


def _folders(root: Path) -> list[Path]:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [root / "__pycache__", Path(cache) / "yarnfair"]


def keep_compiled_code() -> None:
    """Tell numba where to keep what it compiles, unless the user did (``NUMBA_CACHE_DIR``)."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given and not os.path.basename(given).startswith(_PREFIX):
        return
    root = Path(__file__).parent
    try:
        name = _PREFIX + _digest(root)
    except OSError:
        return  # sources that cannot be listed (a zip): numba's own default
    for base in _folders(root):
        folder = base / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if not os.access(folder, os.W_OK):
            continue
        os.environ["NUMBA_CACHE_DIR"] = str(folder)
        loaded = sys.modules.get("numba.core.config")
        if loaded is not None:
            loaded.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            for old in base.glob(_PREFIX + "*"):
                if old != folder and time.time() - old.stat().st_mtime > _KEEP_S:
                    shutil.rmtree(old, ignore_errors=True)
        return
