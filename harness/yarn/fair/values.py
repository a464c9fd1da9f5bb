"""What is wrong with single elements of an allocation file: numbers, resources, policies, access lists; what is found.

The whole file is `validate`'s business.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import InputError, nearest
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX, ResourceLimit
from harness.yarn.fair.dom import Element, Text, parse_xml
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


@dataclass(frozen=True, slots=True)
class Spot:
    """An element, and the queue that it speaks of; what is wrong there goes into the verdict."""

    verdict: Verdict
    element: Element
    queue: str | None = None

    def error(self, what: str, mend: str) -> None:
        self.verdict.errors.append(Finding(self.element.line, self.queue, what, mend))

    def warn(self, what: str, mend: str) -> None:
        self.verdict.warnings.append(Finding(self.element.line, self.queue, what, mend))

    def unknown(self, known: frozenset[str]) -> None:
        close = nearest(self.element.tag, sorted(known))
        what = f"the ResourceManager ignores the element <{self.element.tag}>"
        self.error(what, f"write <{close}>" if close else "remove it")

    def stray_text(self) -> None:
        if text := trim(self.element.all_text()):
            what = f"text {text[:40]!r} stands directly in <{self.element.tag}>, where it is ignored"
            self.error(what, "put it into an element, or remove it")

    def attributes(self, *known: str) -> None:
        for name in self.element.attributes:
            if name not in known:
                mend = f"known here: {', '.join(known)}" if known else "remove it"
                self.error(f"<{self.element.tag}> has an unknown attribute {name!r}", mend)

    def text(self) -> str | None:
        """The element's text; None (and an error) if it is not plain text."""
        self.attributes()
        if len(self.element.children) == 1 and isinstance(self.element.children[0], Text):
            return self.element.children[0].data
        tag = self.element.tag
        if not self.element.children:
            self.error(f"<{tag}> is empty, which the ResourceManager fails on", "write a value, or remove it")
        else:
            self.error(f"<{tag}> holds more than text, of which a part is ignored", "write plain text")
        return None

    def once(self, seen: dict[str, Element], key: str) -> None:
        if key in seen:
            line = seen[key].line
            self.error(f"<{self.element.tag}> appears twice (line {line} too), the last one counts", "keep one")
        seen[key] = self.element

    # ---- values

    def number(self, text: str, parse: Callable[[str], float]) -> float | None:
        try:
            return parse(trim(text))
        except ValueError as error:
            self.error(f"<{self.element.tag}>: {error}", "write a plain number")
            return None

    def value(self, kind: Kind | Amount, text: str) -> Any:
        """What an element says that goes by a kind; what is read of it where that is looked at further."""
        if isinstance(kind, Amount):
            return self.resources(kind, text)
        return _CHECKS[kind](self, text)

    def weight(self, text: str) -> None:
        value = self.number(text, parse_double)
        if value is None:
            return
        if math.isnan(value):
            self.error("the weight is NaN, on which the ResourceManager hangs", "write a finite number")
        elif not (math.isfinite(value) and WEIGHT_MIN <= float32(value) <= WEIGHT_MAX):
            self.error(
                f"weight {trim(text)} is not between {WEIGHT_MIN:g} and {WEIGHT_MAX:g}, shares go wrong or vanish",
                "scale the weights of the siblings",
            )

    def apps(self, text: str) -> None:
        value = self.number(text, parse_int)
        if value is not None and value < 0:
            self.error(f"<{self.element.tag}> is negative: no application ever runs", "write 0 or more")
        elif value == 0:
            self.warn(f"<{self.element.tag}> is 0: no application ever runs", "raise it if that is not meant")

    def am_share(self, text: str) -> None:
        value = self.number(text, parse_float)
        if value is not None and not (0 <= value <= 1 or abs(value + 1) < 1e-4):
            effect = "it is cut to 1" if value > 1 else "no application master ever starts"
            self.error(f"<{self.element.tag}> {trim(text)} is not between 0 and 1: {effect}", "write -1 for no limit")
        elif value == 0:
            self.warn(f"<{self.element.tag}> is 0: no application master ever starts", "raise it")

    def threshold(self, text: str) -> None:
        value = self.number(text, parse_float)
        if value is not None and not 0 <= value <= 1:
            self.error(f"<{self.element.tag}> {trim(text)} is not between 0 and 1", "write a fraction")

    def timeout(self, text: str) -> None:
        value = self.number(text, parse_long)
        if value is not None and not 0 <= value <= _MAX_TIMEOUT_S:
            self.error(f"<{self.element.tag}> {trim(text)} is negative or overflows", "write seconds, or remove it")

    def policy(self, text: str) -> str | None:
        try:
            return parse_policy(trim(text))
        except ValueError as error:
            self.error(f"<{self.element.tag}>: {error}", "write fair, drf or fifo")
            return None

    def class_name(self, text: str) -> None:
        if not trim(text):
            self.error(f"<{self.element.tag}> is blank", "write a class name, or remove it")

    def acl(self, name: str, text: str) -> None:
        _, _, groups = text.partition(" ")
        if any(char in text for char in "\t\r\n") or " " in groups.strip(" "):
            self.error(f"{name}: {text[:60]!r} is not 'users groups'", "write 'u1,u2 g1,g2': one space")

    def resources(self, kind: Amount, text: str) -> ResourceLimit | None:
        text, percent = trim(text), kind.percent
        tag = self.element.tag
        try:
            limit = parse_resources(text, missing=kind.missing)
        except ValueError as error:
            self.error(f"<{tag}>: {error}", "write '4096 mb, 4 vcores'" + (" or '50%'" if percent else ""))
            return None
        if limit.absolute is None:
            if not percent:
                effect = "the minimum is then 0" if kind.missing == 0 else "there is then no limit"
                self.error(f"<{tag}> in percent is ignored: {effect}", "write '4096 mb, 4 vcores'")
                return None
            if max(limit.memory_fraction, limit.vcores_fraction) > 1:
                self.warn(f"<{tag}> is more than the whole cluster ({text})", "100% is all there is")
        elif limit.absolute.vcores < 0:
            self.error(
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
            self.error(f"<{tag}>: {text[:60]!r} is read as {read}, the rest is dropped", f"write '{read}'")
        return limit


_CHECKS: dict[Kind, Callable[[Spot, str], Any]] = {
    WEIGHT: Spot.weight,
    APPS: Spot.apps,
    AM_SHARE: Spot.am_share,
    THRESHOLD: Spot.threshold,
    TIMEOUT: Spot.timeout,
    POLICY: Spot.policy,
    DEFAULT_POLICY: Spot.policy,
    TEXT: Spot.class_name,
}


class Check:
    """A look at a whole file: findings gather in ``verdict``."""

    def __init__(self) -> None:
        self.verdict = Verdict()

    def at(self, element: Element, queue: str | None = None) -> Spot:
        """An element that speaks of a queue, or of none."""
        return Spot(self.verdict, element, queue)

    def verdict_on(self, xml: str | bytes, source: str, look: Callable[[Element], None]) -> Verdict:
        """What ``look`` finds in a document, by line; also where it is no XML, or refused for good."""
        try:
            root = parse_xml(xml, source=source)
        except InputError as error:
            self.refused(error, source)
            return self.verdict
        return self.verdict_of(root, source, look)

    def verdict_of(self, root: Element, source: str, look: Callable[[Element], None]) -> Verdict:
        """`verdict_on` a document that is parsed already."""
        try:
            look(root)
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
            self.verdict.errors.append(Finding(line, queue, error.what, error.mend or "mend the file"))
