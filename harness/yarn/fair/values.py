"""What is wrong with single values of an allocation file: numbers, resources, policies, access lists; what is found.

The whole file is `validate`'s business.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import InputError
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX, ResourceLimit
from harness.yarn.fair.dom import Element, parse_xml
from harness.yarn.fair.elements import (
    AM_SHARE,
    APPS,
    DEFAULT_POLICY,
    POLICY,
    TEXT,
    THRESHOLD,
    TIMEOUT,
    WEIGHT,
    Amount,
    Kind,
    parse_policy,
)
from harness.yarn.fair.javanum import float32, parse_double, parse_float, parse_int, parse_long, trim
from harness.yarn.fair.resources import parse_resources, resource_text

_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
#: The notations of a resource that mean what they say; anything else that Hadoop takes has a part that it drops.
_CLEAR_RESOURCES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NUMBER}\s*%",
        rf"{_NUMBER}\s*%\s*memory\s*,\s*{_NUMBER}\s*%\s*cpu",
        rf"{_NUMBER}\s*%\s*cpu\s*,\s*{_NUMBER}\s*%\s*memory",
        r"[0-9]+\s*mb\s*[, ]\s*[0-9]+\s*vcores",
        r"[0-9]+\s*vcores\s*[, ]\s*[0-9]+\s*mb",
    )
]
_MAX_TIMEOUT_S = JAVA_LONG_MAX // 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake: where (line from 1, and queue if it is in one), what, and how to mend it."""

    line: int
    queue: str | None
    what: str
    mend: str

    def text(self, source: str) -> str:
        """The finding as one line."""
        place = f"{source}:{self.line}" + (f": queue {self.queue}" if self.queue else "")
        return f"{place}: {self.what}; {self.mend}"


@dataclass(slots=True)
class Verdict:
    """All findings of a file, by line."""

    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        return not self.errors


class ValueCheck:
    """Checks of values; findings gather in ``verdict``, ``lines`` says where each queue stands."""

    def __init__(self) -> None:
        self.verdict = Verdict()
        self.lines: dict[str, int] = {}

    def verdict_on(self, xml: str | bytes, source: str, look: Callable[[Element], None]) -> Verdict:
        """What ``look`` finds in a document, by line; also where it is no XML, or refused for good."""
        try:
            look(parse_xml(xml, source=source))
        except InputError as error:
            self.refused(error, source)
        self.verdict.errors.sort(key=lambda found: found.line)
        self.verdict.warnings.sort(key=lambda found: found.line)
        return self.verdict

    def refused(self, error: InputError, source: str) -> None:
        """A reader's refusal, unless something is found in that line already."""
        match = re.match(r":(\d+)(?:: queue (.*))?$", (error.where or "").removeprefix(source), re.DOTALL)
        line, queue = (int(match[1]), match[2]) if match else (1, None)
        if line not in {found.line for found in self.verdict.errors}:
            self.error(line, queue, error.what, error.mend or "mend the file")

    def error(self, line: int, queue: str | None, what: str, mend: str) -> None:
        self.verdict.errors.append(Finding(line, queue, what, mend))

    def warn(self, line: int, queue: str | None, what: str, mend: str) -> None:
        self.verdict.warnings.append(Finding(line, queue, what, mend))

    def number(self, item: Element, text: str, queue: str | None, parse: Callable[[str], float]) -> float | None:
        try:
            return parse(trim(text))
        except ValueError as error:
            self.error(item.line, queue, f"<{item.tag}>: {error}", "write a plain number")
            return None

    def value(self, kind: Kind | Amount, item: Element, text: str, queue: str | None) -> Any:
        """What an element says that goes by a kind; what is read of it where that is looked at further."""
        if isinstance(kind, Amount):
            return self.resources(kind, item, text, queue)
        return _CHECKS[kind](self, item, text, queue)

    def weight(self, item: Element, text: str, path: str | None) -> None:
        value = self.number(item, text, path, parse_double)
        if value is None:
            return
        if math.isnan(value):
            self.error(
                item.line, path, "the weight is NaN, on which the ResourceManager hangs", "write a finite number"
            )
        elif not (math.isfinite(value) and WEIGHT_MIN <= float32(value) <= WEIGHT_MAX):
            self.error(
                item.line,
                path,
                f"weight {trim(text)} is not between {WEIGHT_MIN:g} and {WEIGHT_MAX:g}, shares go wrong or vanish",
                "scale the weights of the siblings",
            )

    def apps(self, item: Element, text: str, queue: str | None) -> None:
        value = self.number(item, text, queue, parse_int)
        if value is not None and value < 0:
            self.error(item.line, queue, f"<{item.tag}> is negative: no application ever runs", "write 0 or more")
        elif value == 0:
            self.warn(item.line, queue, f"<{item.tag}> is 0: no application ever runs", "raise it if that is not meant")

    def am_share(self, item: Element, text: str, queue: str | None) -> None:
        value = self.number(item, text, queue, parse_float)
        if value is not None and not (0 <= value <= 1 or abs(value + 1) < 1e-4):
            effect = "it is cut to 1" if value > 1 else "no application master ever starts"
            self.error(
                item.line, queue, f"<{item.tag}> {trim(text)} is not between 0 and 1: {effect}", "write -1 for no limit"
            )
        elif value == 0:
            self.warn(item.line, queue, f"<{item.tag}> is 0: no application master ever starts", "raise it")

    def threshold(self, item: Element, text: str, queue: str | None) -> None:
        value = self.number(item, text, queue, parse_float)
        if value is not None and not 0 <= value <= 1:
            self.error(item.line, queue, f"<{item.tag}> {trim(text)} is not between 0 and 1", "write a fraction")

    def timeout(self, item: Element, text: str, queue: str | None) -> None:
        value = self.number(item, text, queue, parse_long)
        if value is not None and not 0 <= value <= _MAX_TIMEOUT_S:
            self.error(
                item.line, queue, f"<{item.tag}> {trim(text)} is negative or overflows", "write seconds, or remove it"
            )

    def policy(self, item: Element, text: str, queue: str | None) -> str | None:
        try:
            return parse_policy(trim(text))
        except ValueError as error:
            self.error(item.line, queue, f"<{item.tag}>: {error}", "write fair, drf or fifo")
            return None

    def name(self, item: Element, text: str, queue: str | None) -> None:
        if not trim(text):
            self.error(item.line, queue, f"<{item.tag}> is blank", "write a class name, or remove it")

    def acl(self, line: int, name: str, text: str, path: str | None) -> None:
        _, _, groups = text.partition(" ")
        if any(char in text for char in "\t\r\n") or " " in groups.strip(" "):
            self.error(line, path, f"{name}: {text[:60]!r} is not 'users groups'", "write 'u1,u2 g1,g2': one space")

    def resources(self, kind: Amount, item: Element, text: str, queue: str | None) -> ResourceLimit | None:
        text, percent = trim(text), kind.percent
        tag, line = item.tag, item.line
        try:
            limit = parse_resources(text, missing=kind.missing)
        except ValueError as error:
            self.error(line, queue, f"<{tag}>: {error}", "write '4096 mb, 4 vcores'" + (" or '50%'" if percent else ""))
            return None
        if limit.absolute is None:
            if not percent:
                effect = "the minimum is then 0" if kind.missing == 0 else "there is then no limit"
                self.error(line, queue, f"<{tag}> in percent is ignored: {effect}", "write '4096 mb, 4 vcores'")
                return None
            if max(limit.memory_fraction, limit.vcores_fraction) > 1:
                self.warn(line, queue, f"<{tag}> is more than the whole cluster ({text})", "100% is all there is")
        elif limit.absolute.vcores < 0:
            self.error(
                line,
                queue,
                f"<{tag}> names no vcores, which the ResourceManager reads as -1 vcores: nothing ever runs",
                f"write vcores too (at most {JAVA_INT_MAX})",
            )
            return limit
        if "=" in text:
            names = [trim(part.partition("=")[0]) for part in text.split(",") if part]
            clear = len(names) == len(set(names)) and all(part.count("=") == 1 for part in text.split(","))
            amounts = [
                trim(part.partition("=")[2]) for part in text.split(",") if trim(part.partition("=")[0]) == "vcores"
            ]
            clear = clear and ("%" in text or all(int(amount) <= JAVA_INT_MAX for amount in amounts))
        else:
            clear = any(pattern.fullmatch(text) for pattern in _CLEAR_RESOURCES)
        if not clear:
            read = resource_text(limit)
            self.error(line, queue, f"<{tag}>: {text[:60]!r} is read as {read}, the rest is dropped", f"write '{read}'")
        return limit


_CHECKS: dict[Kind, Callable[[ValueCheck, Element, str, str | None], Any]] = {
    WEIGHT: ValueCheck.weight,
    APPS: ValueCheck.apps,
    AM_SHARE: ValueCheck.am_share,
    THRESHOLD: ValueCheck.threshold,
    TIMEOUT: ValueCheck.timeout,
    POLICY: ValueCheck.policy,
    DEFAULT_POLICY: ValueCheck.policy,
    TEXT: ValueCheck.name,
}
