"""Known changes of the code, as texts that are replaced: what the soak's planted bugs and the mutations have in common.

Moving lines does no harm, and a change whose text has gone (or stands there twice) is an error.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
P = TypeVar("P", bound="Planted")


@dataclass(frozen=True, kw_only=True)
class Planted:
    """``old`` stands once in ``file`` and becomes ``new``."""

    name: str
    file: str
    old: str
    new: str

    def plant(self, root: Path) -> None:
        """Change the file below ``root``."""
        (root / self.file).write_text(self.before(root).replace(self.old, self.new))

    def before(self, root: Path) -> str:
        """The file's text without the change. ValueError where the change has no place in it, or more than one."""
        text = (root / self.file).read_text()
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: its text stands {count} times in {self.file}")
        return text


def read(kind: type[P], file: Path, key: str) -> list[P]:
    """All of a TOML file's list. ValueError for one whose text is not in its file, or not once."""
    found = [kind(**one) for one in tomllib.loads(file.read_text())[key]]
    for one in found:
        one.before(ROOT)
    return found


def check() -> int:
    """Read every list of known changes, as the tests do when they are collected; how many there are."""
    from tests import mutations
    from tests.control.soak import planted
    from tests.fuzz import test_planted

    return len(mutations.mutations()) + len(planted.bugs()) + len(test_planted.ERRORS)


if __name__ == "__main__":
    print(f"{check()} known changes have their place in the code")
