"""Files written whole: filled beside their place and moved there, so that no reader meets half of one."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import InputError


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Lets `write` fill a temporary file beside `path`, then moves it there.

    Raises InputError when the disk refuses.
    """
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        os.close(handle)
        write(temporary)
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", where=str(path), mend="check disk and rights"
        ) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """The value as JSON has it: numbers that are not finite become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """One JSON document, replaced whole."""
    text = json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """A text file in UTF-8, replaced whole."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    replace_file(path, write)


def read_json(path: Path, mend: str = "run the experiment again") -> dict[str, Any]:
    """A JSON object, of a run directory unless `mend` says how else such a file comes about.

    Raises InputError when it is missing or damaged.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"cannot be read: {why}", where=str(path), mend=mend) from None
    if not isinstance(found, dict):
        raise InputError("not a JSON object", where=str(path), mend=mend)
    return found
