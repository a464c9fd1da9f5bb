"""Hashes of the code on which the results of a run depend: the package, and a user's Python file.

The hash is computed from compiled code, so that comments, docstrings, formatting and assertions do not change it. It
depends on the version of Python, which is part of a cell's identity anyway.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType

import harness
from harness.base.files import write_text

__all__ = ["data_hash", "installed_hash", "package_hash", "user_file_hash"]

#: Code that only prints: folders of the package, and names of files.
PRINTS, PAGES = ("cli", "report"), ("page.py", "plan_page.py", "usage_page.py", "command.py", "__main__.py")
#: Files in these folders that do not only print.
COMPUTES = ("report/reading.py",)


def computing_files(root: Path) -> list[Path]:
    """Return the files of the package on which a run's results may depend: all except those that only print."""
    found = []
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).parts
        prints = parts[0] in PRINTS or parts[-1] in PAGES
        if parts[0] != "_data" and (not prints or "/".join(parts) in COMPUTES):
            found.append(path)
    return sorted(found)


@lru_cache(maxsize=4)
def package_hash(root: Path | None = None) -> str:
    """Return the hash of all code of the package (or of another folder) except code that only prints.

    Compilation takes seconds, so the hash is stored in the user's cache under a hash of the files' bytes.
    """
    root = root or Path(harness.__file__).resolve().parent
    files = computing_files(root)
    sources = [(path.relative_to(root).as_posix(), path.read_bytes()) for path in files]
    raw = hashlib.sha256(f"1 {sys.version}".encode())
    for name, source in sources:
        raw.update(f"\0{name}\0{len(source)}\0".encode() + source)
    kept = _cache() / f"code-{raw.hexdigest()[:32]}"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        found = kept.read_text(encoding="ascii")
        if re.fullmatch("[0-9a-f]{64}", found):
            return found
    digest = hashlib.sha256()
    for name, source in sources:
        digest.update(f"\0{name}\0{source_hash(source, name)}".encode())
    # Without the cache, each start only takes some seconds longer.
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        _forget_old(kept.parent)
        write_text(kept, digest.hexdigest())
    return digest.hexdigest()


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")) / "yarnfair"


def _forget_old(folder: Path, most: int = 20) -> None:
    """Delete old hashes, keeping the newest ones of other versions of the code."""
    kept = sorted(folder.glob("code-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in kept[most:]:
        path.unlink(missing_ok=True)


def source_hash(source: bytes, name: str = "<source>") -> str:
    """Return the hash of compiled Python source, or of its bytes if it does not compile."""
    try:
        code = compile(_without_docstrings(ast.parse(source)), name, "exec", dont_inherit=True, optimize=2)
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(source).hexdigest()
    digest = hashlib.sha256()
    for part in _parts(code):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """Remove all docstrings and positions from a syntax tree; return it.

    The compiler leaves no-op instructions in place of docstrings that it removes itself, and for some line numbers.
    From Python 3.13 on, a class's code also stores its first line.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        # Without `ast.walk`, which takes three times as long: this step is half of the time of hashing the package.
        fields = vars(node)
        for value in fields.values():
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [item for item in value if isinstance(item, ast.AST)]
        if "lineno" in fields:
            fields.update(_NOWHERE)
        if isinstance(node, _WITH_DOCSTRING) and node.body:
            first, body = node.body[0], node.body
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                body[0:1] = [] if len(body) > 1 else [ast.Pass(**_NOWHERE)]
    return tree


_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NOWHERE = {"lineno": 1, "end_lineno": 1, "col_offset": 0, "end_col_offset": 0}


def _parts(code: CodeType) -> Iterator[str]:
    """Yield a code object as text, without its position (file, lines and columns)."""
    yield f"{code.co_name} {code.co_flags} {code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}"
    yield f"{code.co_names} {code.co_varnames} {code.co_freevars} {code.co_cellvars}"
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        else:
            yield _text(constant)


def _text(constant: object) -> str:
    """Return a constant as text that distinguishes types (1, 1.0 and True are equal, -0.0 and 0.0 too)."""
    if isinstance(constant, tuple):
        return f"({','.join(map(_text, constant))})"
    if isinstance(constant, frozenset):
        return f"{{{','.join(sorted(map(_text, constant)))}}}"
    return f"{type(constant).__name__} {constant!r}"


def data_hash(folder: Path, *patterns: str) -> str:
    """Return the hash of the files that match the patterns below a folder, byte for byte."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


# --- a user's file ----------------------------------------------------------------------------------------------------


def installed_hash(module: str) -> str | None:
    """Return the hash of all code of the top package of an installed module; None without source."""
    top = module.partition(".")[0]
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin)
    files = sorted(origin.parent.rglob("*.py")) if spec.submodule_search_locations else [origin]
    digest = hashlib.sha256()
    try:
        for file in files:
            digest.update(f"\0{file.relative_to(origin.parent)}\0{source_hash(file.read_bytes())}".encode())
    except OSError:
        return None
    return digest.hexdigest()


def user_file_hash(path: Path) -> str | None:
    """Return the hash of a user's Python file and of everything that it imports from its folder; None if unreadable.

    Imports from elsewhere are followed too, except the standard library, installed packages and yarnfair. Modules
    imported by computed names, and files that it reads, are not covered.
    """
    waiting, seen, digest = [path], dict[str, str](), hashlib.sha256()
    try:
        while waiting:
            file = waiting.pop().resolve()
            if str(file) in seen:
                continue
            source = file.read_bytes()
            seen[str(file)] = source_hash(source)
            waiting += _imported(source, file, path.resolve().parent)
    except OSError:
        return None
    base = path.resolve().parent
    # Identified by their position relative to the file: a copy of the folder is the same policy.
    for name, found in sorted((os.path.relpath(file, base), found) for file, found in seen.items()):
        digest.update(f"\0{name}\0{found}".encode())
    return digest.hexdigest()


def _imported(source: bytes, file: Path, folder: Path) -> Iterator[Path]:
    """Yield the files of all modules that a source imports."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        names: Iterable[str] = ()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.ImportFrom) and node.level:
            above = file.parents[node.level - 1] if node.level <= len(file.parents) else file.parent
            start = [*(node.module.split(".") if node.module else [])]
            for parts in (start, *([*start, alias.name] for alias in node.names)):
                yield from _files_at(above, parts)
        for name in names:
            yield from _files_of(name, folder)


def _files_of(name: str, folder: Path) -> Iterator[Path]:
    """Yield those of the user's files that importing a dotted name may run.

    It is unknown which folders will be on Python's path when the file is imported, so all candidates count.
    """
    parts = name.split(".")
    for place in (folder, *map(Path, sys.path)):
        yield from (file for file in _files_at(place, parts) if _is_users(file))


def _files_at(place: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the files of a dotted name below a folder: those of its packages, and its own."""
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(parts[depth - 1], [str(place.joinpath(*parts[: depth - 1]))])
        if spec is None or spec.origin is None:
            if spec is None or spec.submodule_search_locations is None:
                return
            continue  # a folder without an __init__.py
        if spec.origin.endswith(".py"):
            yield Path(spec.origin)


def _is_users(file: Path) -> bool:
    """Return whether a file belongs to the user: not to Python, an installed package or yarnfair."""
    resolved = file.resolve()
    package = Path(harness.__file__).resolve().parent
    # The public package `yarnfair` is beside the product's package, in a checkout too.
    if resolved.is_relative_to(package) or resolved.is_relative_to(package.parent / "yarnfair"):
        return False
    installed = "site-packages" in resolved.parts or "dist-packages" in resolved.parts
    return not installed and not resolved.is_relative_to(Path(os.__file__).resolve().parent)
