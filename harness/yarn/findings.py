"""The findings of `validate` in a scheduler's file: position, description and fix of each mistake.

Each finding belongs to one of the rules of `harness.yarn.rules`, identified by a code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from harness.yarn.rules import RULES, Level, Rule


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the document that removes a finding.

    ``properties``: for a Capacity Scheduler's file, (full name, new value) of each property (None: remove it).
    ``splices``: for an allocation file, (first byte, byte after the last, new bytes) of each replacement.
    """

    properties: tuple[tuple[str, str | None], ...] = ()
    splices: tuple[tuple[int, int, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake: its position (line from 1, and queue if it is in one), its description, and how to fix it."""

    line: int
    queue: str | None
    what: str
    hint: str
    code: str
    #: The hint as a change of the document; None if the user has to choose between several changes.
    fix: Fix | None = None
    #: The file to which the line number refers (None: the checked file).
    file: str | None = None

    @property
    def rule(self) -> Rule:
        """The rule to which the finding belongs."""
        return RULES[self.code]

    @property
    def level(self) -> Level:
        """The severity of the finding."""
        return self.rule.level

    @property
    def refused(self) -> bool:
        """Whether the RM refuses to start or to refresh because of the finding."""
        return self.rule.refused

    def text(self, source: str) -> str:
        """Return the finding as one line."""
        place = f"{self.file or source}:{self.line}" + (f": queue {self.queue}" if self.queue else "")
        return f"{place}: {self.what}; {self.hint} [{self.code}]"


@dataclass(slots=True)
class Verdict:
    """All findings of a file, by line."""

    findings: list[Finding] = field(default_factory=list)
    #: Resource types in yarn-site.xml in addition to memory and vcores, if that file was given.
    resource_types: tuple[str, ...] = ()
    resource_types_known: bool = False

    def of(self, level: Level) -> list[Finding]:
        """Return the findings of one level."""
        return [found for found in self.findings if found.level is level]

    @property
    def errors(self) -> list[Finding]:
        """Findings of settings that the RM refuses, ignores or interprets differently from how they are written."""
        return self.of(Level.ERROR)

    @property
    def warnings(self) -> list[Finding]:
        """Findings of settings that lose applications or have no effect."""
        return self.of(Level.WARNING)

    @property
    def hints(self) -> list[Finding]:
        """Findings of settings that are probably unintended."""
        return self.of(Level.HINT)

    @property
    def valid(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    @property
    def refused(self) -> bool:
        """Whether the RM refuses to start with the file, or to refresh it."""
        return any(found.refused for found in self.findings)

    def only(self, keep: Callable[[Finding], bool]) -> Verdict:
        """Return a verdict with only the findings for which ``keep`` returns True."""
        return Verdict(
            [found for found in self.findings if keep(found)], self.resource_types, self.resource_types_known
        )


def matches(code: str, prefixes: Iterable[str]) -> bool:
    """Return whether a code starts with one of these prefixes, as given to ``--select`` and ``--ignore``."""
    return any(code.startswith(prefix.strip().upper()) for prefix in prefixes)
