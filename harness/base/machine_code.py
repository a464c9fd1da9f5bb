"""Compilation of kernels by numba: its options, and the cache of machine code between runs.

numba notices when the file of a function has changed, but not when a function or a constant that it takes from another
file has. So the folder's name is a digest of every module that a kernel can reach, and of everything else that affects
machine code: a change of any of them compiles everything again.

``YARNFAIR_CHECKED=1`` compiles with a check of every index, and overwrites slots that are freed. Such code has a
separate folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: Whether kernels check every index (``YARNFAIR_CHECKED=1``).
CHECKED = os.environ.get("YARNFAIR_CHECKED", "") not in ("", "0")

_PREFIX = "compiled-"
#: Lifetime of folders of earlier sources (seconds), because runs that began before a change still use them.
_KEEP_S = 86_400
#: The packages whose releases affect machine code.
_COMPILER = ("numba", "llvmlite", "numpy")

#: The entry points of packages that may have kernels (`harness.base.extensions.ENTRY_POINT_GROUP`).
_GROUP = "yarnfair.systems"

_PACKAGE = Path(__file__).parents[1]
#: Beginning of a line in a module that has kernels, or makes them.
_WORDS = (b"numba", b"llvmlite", b"harness.sim.kernel", b"harness.sim.ops")
_HAS_KERNELS = re.compile(
    rb"^[ \t]*(?:from|import) (?:numba|llvmlite)\b|^from harness\.sim\.(?:kernel|ops) import", re.MULTILINE
)
#: Imports at module level; an import inside a function does not affect a kernel.
_IMPORT = re.compile(
    rb"^(?:from (harness[\w.]*) import (?:\(([^)]*)\)|([^\n(]*))|import (harness[\w.]*))", re.MULTILINE
)


def _has_kernels(source: bytes) -> bool:
    return any(word in source for word in _WORDS) and _HAS_KERNELS.search(source) is not None


def _imported(source: bytes) -> Iterator[str]:
    """Return the modules of this package that a module imports; may include names that are no modules."""
    for package, in_brackets, on_line, module in _IMPORT.findall(source):
        found = (package or module).decode()
        yield found
        for name in re.findall(r"\w+", (in_brackets or on_line).decode()):
            yield f"{found}.{name}"


def reached_modules(root: Path = _PACKAGE) -> dict[str, Path]:
    """Find every module from which a kernel can take something.

    These are the modules with kernels, and everything that they import, directly or indirectly.

    Parameters
    ----------
    root : the folder of the package.

    Returns
    -------
    Name -> file.
    """
    files = {}
    for path in root.rglob("*.py"):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    sources = {name: path.read_bytes() for name, path in files.items()}
    waiting = [name for name, source in sources.items() if _has_kernels(source)]
    reached: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        if name in files and name not in reached:
            reached[name] = files[name]
            waiting += _imported(sources[name])
    return reached


def installed_modules() -> dict[str, Path]:
    """Find the modules of installed extensions that have kernels: a scheduler's are linked with this package's.

    Nothing is imported, because an extension may itself be in the course of being imported. All modules of such a
    package count.

    Returns
    -------
    Package and path in it -> file.
    """
    import importlib.metadata
    import importlib.util

    found: dict[str, Path] = {}
    for package in sorted({point.module.partition(".")[0] for point in importlib.metadata.entry_points(group=_GROUP)}):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or () if spec is not None else ():
            paths = {f"{package}/{path.relative_to(folder)}": path for path in sorted(Path(folder).rglob("*.py"))}
            if any(_has_kernels(path.read_bytes()) for path in paths.values()):
                found.update(paths)
    return found


def _version(package: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    """Return the processor's model and features, because numba compiles for the exact processor."""
    import platform

    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
        return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))
    return platform.processor()


def digest(root: Path = _PACKAGE) -> str:
    """Compute the digest of everything from which machine code is made.

    For files with kernels the modification time also counts, because numba compiles them again if that differs.
    """
    import hashlib

    parts = [sys.version, os.uname().machine, _processor(), str(CHECKED), *map(_version, _COMPILER)]
    found = hashlib.blake2b("\0".join(parts).encode(), digest_size=8)
    for name, path in sorted({**reached_modules(root), **installed_modules()}.items()):
        source = path.read_bytes()
        stamp = path.stat().st_mtime_ns if _has_kernels(source) else 0
        found.update(f"\0{name}\0{stamp}\0{len(source)}\0".encode() + source)
    return found.hexdigest()


def _bases() -> list[Path]:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [_PACKAGE / "sim" / "__pycache__", Path(cache) / "yarnfair"]


def kept_in() -> Path | None:
    """Return the folder of this package's machine code; None: the user's own setting, or no folder is writable."""
    folder = Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    return folder if folder.name.startswith(_PREFIX) else None


_done: list[bool] = []


def keep_compiled_code() -> None:
    """Tell numba where to cache machine code, unless the user did (``NUMBA_CACHE_DIR``)."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if _done or (given and not os.path.basename(given).startswith(_PREFIX)):
        return
    _done.append(True)
    try:
        name = _PREFIX + digest()
    except OSError:
        return  # sources that cannot be listed (a zip): numba's own default
    for base in _bases():
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
                    import shutil

                    shutil.rmtree(old, ignore_errors=True)
        return


def kernel_name(builder: Any) -> str:
    """Return the name in Python of the kernel that numba is compiling (an llvmlite builder)."""
    mangled = str(builder.function.name)
    parts, at = [], mangled.find("_ZN") + 3
    while at > 2 and (length := re.match(r"\d+", mangled[at:])):
        begin = at + length.end()
        parts.append(mangled[begin : begin + int(length[0])])
        at = begin + int(length[0])
    return ".".join(parts) or mangled


def _check_arrays() -> None:
    """Replace numba's index check by one that names the kernel in its message and refuses negative indices.

    No kernel counts from the end of an array by a negative index: -1 means "none" in every list.
    """
    from numba.core import cgutils, types
    from numba.np import arrayobj

    from harness.base.errors import InternalError

    def check(context: Any, builder: Any, index: Any, length: Any, axis: Any = None) -> None:
        with builder.if_then(builder.icmp_unsigned(">=", index, length), likely=False):
            what = f"an index of an array is out of bounds in {kernel_name(builder)}"
            context.call_conv.return_user_exc(builder, InternalError, (what,))

    def as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)

    cgutils.do_boundscheck = check
    arrayobj.fix_integer_index = as_it_is


def kernel_options(**more: Any) -> dict[str, Any]:
    """Return the options with which every kernel is compiled, and `more`.

    Called before numba compiles anything, because it also decides where the code is kept.
    """
    keep_compiled_code()
    if not CHECKED:
        return {"cache": True, **more}
    _check_arrays()
    return {"cache": True, "boundscheck": True, **more}


#: Called with a line for the user before a long compilation.
_announce: list[Callable[[str], None]] = []
_announced: list[str] = []


def announce_with(announce: Callable[[str], None]) -> None:
    """Set the function that tells the user about a compilation."""
    _announce[:] = [announce]


def announce_by_default() -> None:
    """Announce compilations on standard error unless `announce_with` was called; used by Python programs."""
    if not _announce:
        announce_with(lambda text: print(text, file=sys.stderr, flush=True))


def somebody_listens() -> bool:
    """Return whether compilations are announced in this process (`announce_with`); in workers they are not."""
    return bool(_announce)


#: Durations (seconds) of the compilations of this process, and of its waits for those of other processes.
_waited: list[float] = []


def count_waiting(seconds: float) -> None:
    """Record how long this process has compiled, or has waited for the compilation of another one (seconds)."""
    _waited.append(seconds)


def waited_s() -> float:
    """Return the total time that this process has compiled or waited for a compilation so far (seconds)."""
    return sum(_waited)


def announce(text: str) -> None:
    """Tell the user about a compilation, each line only once."""
    if text not in _announced:
        _announced.append(text)
        for show in _announce:
            show(text)
