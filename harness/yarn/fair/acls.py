"""Access lists, parsed like Hadoop does (``org.apache.hadoop.security.authorize.AccessControlList``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.yarn.fair.javanum import trim

#: Separators between the names of a list.
_COMMA = re.compile(r"\s*[,\n]\s*")


@dataclass(frozen=True, slots=True)
class AccessList:
    """The users with access: those named, the members of the named groups, or everybody."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    everybody: bool = False


def read_access_list(text: str) -> AccessList:
    """Parse an access list: users before the first space, groups after it; ``*`` means everybody.

    A ``*`` among other names is a user or group of that name.
    """
    users, _, groups = text.partition(" ")
    if "*" in (trim(users), trim(groups)):
        return AccessList(everybody=True)
    return AccessList(_names(users), _names(groups))


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in _COMMA.split(trim(text)) if name))
