"""Load one object from a user's Python file (``FILE.py:NAME`` in `--policy` and orderings)."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, YarnfairError
from harness.base.quick import collect_at_the_end

#: The imported files: absolute path -> the path as the user wrote it.
_IMPORTED: dict[str, str] = {}
#: The modules that such files imported from their folder, by folder.
_BESIDE: dict[str, set[str]] = {}


def from_user_file(path: Path, attribute: str, *, what: str, hint: str) -> Any:
    """Return the attribute of a file. Raises InputError for a missing file, a failing import, or a missing ``what``."""
    if not path.is_file():
        raise InputError("no such file", where=str(path), hint=hint)
    module_name = f"yarnfair_user_{what}_{abs(hash(str(path.resolve())))}"
    collect_at_the_end()
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None  # a .py file always has a spec and a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module by name while they are created.
    sys.modules[module_name] = module
    try:
        with _modules_beside(path.resolve().parent):
            spec.loader.exec_module(module)
    except Exception as error:  # report the user's error without a traceback of this program
        del sys.modules[module_name]
        raise InputError(f"does not import: {type(error).__name__}: {error}", where=str(path)) from error
    _IMPORTED[str(spec.origin)] = str(path)
    if not hasattr(module, attribute):
        raise InputError(f"has no {what} {attribute}", where=str(path))
    return getattr(module, attribute)


@contextmanager
def _modules_beside(folder: Path) -> Iterator[None]:
    """Make modules in a file's folder importable by their names, during the file's import and afterwards.

    Python's own and installed modules come first. If two folders have modules of the same name, imports at the top of a
    file find the module of its own folder; an import within a function finds that of the last loaded file.
    """
    for other, names in _BESIDE.items():
        if other != str(folder):
            for name in names:
                sys.modules.pop(name, None)
            if other in sys.path:
                sys.path.remove(other)
    own = _BESIDE.setdefault(str(folder), set())
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    importlib.invalidate_caches()
    known = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None)
            parts = name.split(".")
            if file is not None and Path(file).parent in (folder.joinpath(*parts[:-1]), folder.joinpath(*parts)):
                own.add(name)


def defined_at(cls: type, method: str) -> str:
    """Return where a method of a policy is defined, as ``file:line``; the class if there is no file.

    Parameters
    ----------
    cls
        The class of a policy. Its file is shown as the user wrote it.
    method
        The name of a method that the class defines or inherits.
    """
    code = getattr(getattr(cls, method, None), "__code__", None)
    # The method may be inherited from a file of this product; then the user has to change the user's own file.
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
    own = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if own is not None and file != own:
        file, line = own, 0
    if not file:
        return cls.__qualname__
    file = _IMPORTED.get(file, file)
    return f"{file}:{line}" if line else file


@contextmanager
def users_mistakes() -> Iterator[None]:
    """Convert exceptions raised in a user's file to InputError with file and line, without a traceback."""
    try:
        yield
    except YarnfairError:
        raise
    except Exception as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in _IMPORTED]
        if not own:
            raise
        what = f"{own[-1].name} raises {type(error).__name__}: {error}"
        where = f"{_IMPORTED[own[-1].filename]}:{own[-1].lineno}"
        raise InputError(what, where=where, hint="fix the file") from error
