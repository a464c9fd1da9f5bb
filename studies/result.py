"""A committed result: which command made it, with which version, and its values."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import harness
from harness.base.files import plain, write_json


def write(out: Path | None, command: str, values: Mapping[str, Any], version: str = "", **more: Any) -> None:
    """Writes a result into a file, or without one to standard output. ``more``: what else it says, as of a cluster."""
    document = {"command": command, "version": version or harness.__version__, "values": values, **more}
    if out is None:
        json.dump(plain(document), sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        write_json(out, document)
