"""Properties of a Hadoop configuration, with the semantics of ``org.apache.hadoop.conf.Configuration``.

Names may lack the Capacity Scheduler's prefix: `Settings` adds it. Numbers and flags are converted like Hadoop's
getters do; where these throw, ValueError is raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property

from harness.yarn.capacity.properties import PREFIX
from harness.yarn.fair.javanum import parse_boolean, parse_double, parse_float, parse_int, parse_long, trim

_VARIABLE = re.compile(r"\$\{([^{}$\s]+)\}")
_HEXADECIMAL = re.compile(r"[+-]?[0-9a-fA-F]+")
#: Number of substitutions after which Hadoop gives up.
_MOST_SUBSTITUTIONS = 20


class Unknown(ValueError):
    """A value that depends on something outside the configuration: a system property or an environment variable."""


class Settings:
    """The properties of one configuration.

    Parameters
    ----------
    values : Mapping[str, str]
        Full name of each property of the file -> its text.
    site : Mapping[str, str] or None
        Properties of yarn-site.xml, which apply if the file does not set them.
    """

    def __init__(self, values: Mapping[str, str], site: Mapping[str, str] | None = None) -> None:
        self.values = {**(site or {}), **values}

    @cached_property
    def own(self) -> dict[str, str]:
        """Return the Capacity Scheduler's properties without their prefix -> their text, unsubstituted."""
        return {name[len(PREFIX) :]: text for name, text in self.values.items() if name.startswith(PREFIX)}

    def raw(self, key: str) -> str | None:
        """Return a property's text as written; None if it is not set."""
        return self.values.get(key) if key.startswith("yarn.") else self.own.get(key)

    def get(self, key: str, default: str | None = None) -> str | None:
        """Return a property's text with references to other properties replaced (``Configuration.get``)."""
        text = self.raw(key)
        return default if text is None else self.substitute(text)

    def substitute(self, text: str) -> str:
        """Return the text with ``${name}`` replaced. Raises Unknown for a name outside the configuration."""
        if "${" not in text:
            return text
        for _ in range(_MOST_SUBSTITUTIONS):
            found = _VARIABLE.search(text)
            if found is None:
                return text
            value = self.values.get(found[1])
            if value is None or found[0] in value:
                raise Unknown(f"{found[0]} is not in this file")
            text = text[: found.start()] + value + text[found.end() :]
        raise ValueError(f"{text[:60]!r} refers to other properties too deeply")

    def trimmed(self, key: str) -> str | None:
        """Return a property's text without surrounding white space; None if it is not set."""
        text = self.get(key)
        return None if text is None else trim(text)

    def integer(self, key: str, default: int) -> int:
        """Return a property as an int, as ``Configuration.getInt`` reads it."""
        text = self.trimmed(key)
        return default if text is None else integer_of(text, parse_int)

    def long(self, key: str, default: int) -> int:
        """Return a property as a long, as ``Configuration.getLong`` reads it."""
        text = self.trimmed(key)
        return default if text is None else integer_of(text, parse_long)

    def real(self, key: str, default: float) -> float:
        """Return a property as a float, as ``Configuration.getFloat`` reads it."""
        text = self.trimmed(key)
        return default if text is None else parse_float(text)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a property as a Boolean (``Configuration.getBoolean``); the default unless it is true or false."""
        if self.raw(key) is None:  # the usual case, kept fast
            return default
        try:
            return parse_boolean(self.trimmed(key) or "", default)
        except ValueError:
            return default

    def names(self, key: str) -> list[str]:
        """Return the non-empty parts between commas (``Configuration.getStrings``), each of them trimmed."""
        try:
            text = self.get(key) or ""
        except ValueError:
            return []
        return [trim(part) for part in text.split(",") if part]

    def strings(self, key: str) -> list[str]:
        """Return the trimmed parts between commas, without empty ones at the end (``getTrimmedStrings``)."""
        try:
            text = trim(self.get(key) or "")
        except ValueError:
            return []
        parts = re.split(r"[ \t\n\x0b\f\r]*[,\n][ \t\n\x0b\f\r]*", text)
        while parts and not parts[-1]:
            parts.pop()
        return parts

    def double(self, key: str, default: float) -> float:
        """Return a property as a double, as ``Configuration.getDouble`` reads it."""
        text = self.trimmed(key)
        return default if text is None else parse_double(text)

    def collection(self, key: str) -> list[str]:
        """Return the distinct, trimmed, non-empty parts between commas (``getTrimmedStringCollection``)."""
        text = self.get(key) or ""
        return [part for part in dict.fromkeys(trim(part) for part in re.split(r"\s*[,\n]\s*", trim(text))) if part]


def integer_of(text: str, parse: Callable[[str], int]) -> int:
    """Parse an integer like Hadoop's getters: hexadecimal after 0x, otherwise with ``parse``."""
    sign, body = ("-", text[1:]) if text.startswith("-") else ("", text)
    if body[:2] in ("0x", "0X"):
        if not _HEXADECIMAL.fullmatch(sign + body[2:]):
            raise ValueError(f"{text!r} is not an integer")
        return parse(str(int(sign + body[2:], 16)))
    return parse(text)
