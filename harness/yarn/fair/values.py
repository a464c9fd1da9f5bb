"""Checks of single elements of an allocation file (numbers, resources, policies, access lists), and their findings.

`validate` checks the whole file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.base.errors import InputError
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX, ResourceLimit
from harness.yarn.fair.acls import AccessList, read_access_list
from harness.yarn.fair.dom import Element, Text, parse_xml
from harness.yarn.fair.elements import (
    AM_SHARE,
    APPS,
    DEFAULT_POLICY,
    OF_FILE,
    OF_QUEUE,
    POLICY,
    TEXT,
    THRESHOLD,
    TIMEOUT,
    WEIGHT,
    Amount,
    Kind,
    parse_policy,
    plain_name,
)
from harness.yarn.fair.javanum import float32, parse_double, parse_float, parse_int, parse_long, trim
from harness.yarn.fair.resources import custom_types, parse_resources, resource_text
from harness.yarn.findings import Finding, Fix, Verdict
from harness.yarn.misspelt import likely

_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
#: Amounts in gigabytes or terabytes, units that Hadoop does not know.
_LARGE_UNITS = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)\s*([gt])i?b?(?![a-z])", re.IGNORECASE)
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
#: A preemption timeout of at least this many seconds (almost three hours) was probably meant in milliseconds.
MILLISECONDS_FROM = 10_000
_THOUSANDS = re.compile(r"(?<![0-9])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")
_DOTTED_THOUSANDS = re.compile(r"(?<![0-9.])[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?![0-9.])")
#: A digit other than 0 in a number's mantissa.
_NOT_ZERO = re.compile(r"^\s*[+-]?(?:0[xX])?[0.]*[1-9a-fA-F]")
#: Elements that may occur several times in one place.
_REPEATED = frozenset({"queue", "pool", "user"})
_MAX_TIMEOUT_S = JAVA_LONG_MAX // 1000


@dataclass(frozen=True, slots=True)
class Spot:
    """An element and its queue, as the location of findings, which are added to ``verdict``."""

    verdict: Verdict
    element: Element
    queue: str | None = None
    #: The file of the element; None: the checked file.
    file: str | None = None

    def report(self, code: str, what: str, hint: str, fix: Fix | None = None) -> None:
        """Add a finding about this element."""
        self.verdict.findings.append(Finding(self.element.line, self.queue, what, hint, code, fix, self.file))

    def unknown(self, known: frozenset[str], parent: Element | None = None) -> None:
        """Report an element that Hadoop does not know, with the nearest known name."""
        close = likely(self.element.tag, sorted(known))
        what = f"the ResourceManager ignores the element <{self.element.tag}>"
        self.renamed("YF501", what, close, parent)

    def renamed(self, code: str, what: str, tag: str, parent: Element | None) -> None:
        """Report an element, with the hint to rename it to ``tag`` if its content fits that element."""
        siblings = [] if parent is None else [item for item in parent.elements() if item is not self.element]
        if not tag:
            self.report(code, what, "correct its name, or remove it")
        elif tag not in _REPEATED and any(plain_name(item.tag) == tag for item in siblings):
            self.report(code, what, f"remove it, or <{tag}>, which is there too")
        elif (why := self._unfit(tag, siblings)) is not None:
            self.report(code, what, f"write <{tag}>, {why}" if why else "correct its name, or remove it")
        else:
            self.report(code, what, f"write <{tag}>", self._rename(tag))

    def _unfit(self, tag: str, siblings: list[Element]) -> str | None:
        """Return a hint if this element's content does not fit the element ``tag``.

        None if it fits, "" if it does not fit and there is no better hint.
        """
        name = plain_name(tag)
        kind = (OF_QUEUE.get(name) or OF_FILE.get(name) or (None, None))[1]
        text = trim(self.element.all_text())
        if tag in ("maxAMShare", "reservation") and any(item.tag in ("queue", "pool") for item in siblings):
            return ""
        if kind is None:
            return None
        try:
            if isinstance(kind, Amount):
                parse_resources(text, missing=kind.missing)
            elif kind.read(text) == "fifo" and name == "defaultQueueSchedulingPolicy":
                return "and fair or drf in it"
        except ValueError:
            return f"and {kind.wanted} in it"
        return None

    def _rename(self, tag: str) -> Fix | None:
        item = self.element
        if not item.tag.isascii() or tag in _REPEATED or any(isinstance(one, Element) for one in item.children):
            return None
        length, new = len(item.tag), tag.encode()
        splices = [(item.start + 1, item.start + 1 + length, new)]
        # An element without content may have no end tag.
        if item.children:
            splices.append((item.end + 2, item.end + 2 + length, new))
        return Fix(splices=tuple(splices)) if item.children else None

    def stray_text(self) -> None:
        """Report text directly inside an element that only contains elements."""
        if text := trim(self.element.all_text()):
            what = f"text {text[:40]!r} stands directly in <{self.element.tag}>, where it is ignored"
            self.report("YF004", what, "put it into an element, or remove it")

    def attributes(self, *known: str) -> None:
        """Report unknown attributes."""
        for name in self.element.attributes:
            if name not in known:
                hint = f"known here: {', '.join(known)}" if known else "remove it"
                self.report("YF502", f"<{self.element.tag}> has an unknown attribute {name!r}", hint)

    def text(self) -> str | None:
        """Return the element's text; report an error and return None if it is not plain text."""
        tag, attributes = self.element.tag, self.element.attributes
        if not self.element.children:
            what, hint = f"<{tag}> is empty, which the ResourceManager fails on", "write a value, or remove it"
            if attributes:
                name, value = next(iter(attributes.items()))
                what += f": it does not read {name}={value[:40]!r}"
                hint = f"write the value between <{tag}> and </{tag}>"
            self.report("YF402", what, hint)
            return None
        self.attributes()
        if len(self.element.children) == 1 and isinstance(self.element.children[0], Text):
            return self.element.children[0].data
        self.report("YF503", f"<{tag}> holds more than text, of which a part is ignored", "write plain text")
        return None

    def once(self, seen: dict[str, Element], key: str) -> None:
        """Report an element that appears twice."""
        if key in seen:
            line = seen[key].line
            self.report(
                "YF504", f"<{self.element.tag}> appears twice (line {line} too), the last one counts", "keep one"
            )
        seen[key] = self.element

    # ---- values

    def number(self, text: str, parse: Callable[[str], float]) -> float | None:
        """Parse a number; report an invalid one and return None."""
        try:
            return parse(trim(text))
        except ValueError as error:
            self.report("YF401", f"<{self.element.tag}>: {error}", "write a plain number")
            return None

    def value(self, kind: Kind | Amount, text: str) -> Any:
        """Validate an element's value by its type; return the value if the caller needs it."""
        if isinstance(kind, Amount):
            return self.resources(kind, text)
        return _CHECKS[kind](self, text)

    def weight(self, text: str) -> None:
        """Check a weight."""
        value = self.number(text, parse_double)
        if value is None:
            return
        if math.isnan(value):
            self.report("YF509", "the weight is NaN, on which the ResourceManager hangs", "write a finite number")
        elif value == 0 and not _NOT_ZERO.search(text):
            what = "weight 0: the queue gets its minimum share, and what others leave"
            self.report("YF613", what, "raise it if that is not meant")
        elif not (math.isfinite(value) and WEIGHT_MIN <= float32(value) <= WEIGHT_MAX):
            self.report(
                "YF509",
                f"weight {trim(text)} is not between {WEIGHT_MIN:g} and {WEIGHT_MAX:g}, shares go wrong or vanish",
                "scale the weights of the siblings",
            )

    def apps(self, text: str, user: str = "") -> None:
        """Check a limit of running applications, of a queue or of a user."""
        whose = f" of user {user}" if user else ""
        value = self.number(text, parse_int)
        if value is not None and value < 0:
            self.report("YF510", f"<{self.element.tag}> is negative: no application ever runs", "write 0 or more")
        elif value == 0:
            self.report(
                "YF611", f"<{self.element.tag}> is 0: no application{whose} ever runs", "raise it if that is not meant"
            )

    def am_share(self, text: str) -> None:
        """Check a maximum AM share."""
        value = self.number(text, parse_float)
        if value is not None and not (0 <= value <= 1 or abs(value + 1) < 1e-4):
            effect = "it is cut to 1" if value > 1 else "no application master ever starts"
            self.report(
                "YF510", f"<{self.element.tag}> {trim(text)} is not between 0 and 1: {effect}", "write -1 for no limit"
            )
        elif value == 0:
            self.report("YF611", f"<{self.element.tag}> is 0: no application master ever starts", "raise it")

    def threshold(self, text: str) -> None:
        """Check a preemption threshold."""
        value = self.number(text, parse_float)
        if value is not None and not 0 <= value <= 1:
            self.report("YF510", f"<{self.element.tag}> {trim(text)} is not between 0 and 1", "write a fraction")

    def timeout(self, text: str) -> None:
        """Check a preemption timeout in seconds."""
        value = self.number(text, parse_long)
        if value is not None and not 0 <= value <= _MAX_TIMEOUT_S:
            what = f"<{self.element.tag}> {trim(text)} is negative or overflows"
            self.report("YF510", what, "write seconds, or remove it")
        elif value is not None and value >= MILLISECONDS_FROM:
            what = f"<{self.element.tag}> {trim(text)} is in seconds: {_hours(int(value))}"
            # Hadoop only accepts whole seconds.
            self.report("YF608", what, f"write {round(value / 1000)} if milliseconds are meant")

    def policy(self, text: str) -> str | None:
        """Return the scheduling policy's name; report an unknown one and return None."""
        try:
            return parse_policy(trim(text))
        except ValueError as error:
            self.report("YF401", f"<{self.element.tag}>: {error}", "write fair, drf or fifo")
            return None

    def class_name(self, text: str) -> None:
        """Check that a class name is not blank."""
        if not trim(text):
            self.report("YF503", f"<{self.element.tag}> is blank", "write a class name, or remove it")

    def acl(self, name: str, text: str, codes: tuple[str, str] = ("YF516", "YF603")) -> None:
        """Check an access list: users, a space, groups."""
        read = read_access_list(text)
        odd = next((one for one in (*read.users, *read.groups) if one == "*" or re.search(r"[;|\t]", one)), None)
        before, _, behind = text.partition(" ")
        what = f"{name}: {text[:60]!r} means {_named(read)}"
        if odd is not None:
            hint = "write * alone for everybody" if odd == "*" else "put commas between names"
            self.report(codes[0], what, hint)
            return
        broken = trim(before).endswith(",") or trim(behind).startswith(",") or (not before.strip() and before != "")
        if read.groups and (broken or (read.users and any(re.search(r"\s", group) for group in read.groups))):
            names = ",".join((*read.users, *(part for group in read.groups for part in group.split())))
            self.report(codes[1], what, f"write {names!r} for users alone, or 'u1,u2 g1,g2'")

    def resources(self, kind: Amount, text: str) -> ResourceLimit | None:
        """Return the parsed resources; report mistakes and return None."""
        text, percent = trim(text), kind.percent
        tag = self.element.tag
        custom = custom_types(text)
        if custom and not self.verdict.resource_types_known:
            what = f"<{tag}>: {', '.join(custom)} must be in yarn.resource-types, or the RM refuses the file"
            self.report("YF618", what, "check yarn-site.xml (--yarn-site)")
        types = custom if not self.verdict.resource_types_known else self.verdict.resource_types
        try:
            limit = parse_resources(text, missing=kind.missing, extra_types=types)
        except ValueError as error:
            plain = _in_megabytes(text)
            usual = "write '4096 mb, 4 vcores'" + (" or '50%'" if percent else "")
            self.report("YF401", f"<{tag}>: {error}", f"write '{plain}'" if plain else usual)
            return None
        if limit.absolute is None:
            if not percent:
                effect = "the minimum is then 0" if kind.missing == 0 else "there is then no limit"
                self.report("YF511", f"<{tag}> in percent is ignored: {effect}", "write '4096 mb, 4 vcores'")
                return None
            if max(limit.memory_fraction, limit.vcores_fraction) > 1:
                self.report("YF614", f"<{tag}> is more than the whole cluster ({text})", "100% is all there is")
        elif limit.absolute.vcores < 0:
            self.report(
                "YF515",
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
            what = f"<{tag}>: {text[:60]!r} is read as {resource_text(limit)}, the rest is dropped"
            self.report("YF511", what, _meant(text))
        return limit


def _named(read: AccessList) -> str:
    """Describe the users and groups of an access list."""
    said = []
    for kind, names in (("user", read.users), ("group", read.groups)):
        if names:
            quoted = [name if re.fullmatch(r"[\w.@-]+", name) else repr(name) for name in names[:6]]
            said.append(f"{kind}{'s' if len(names) > 1 else ''} {', '.join(quoted)}")
    return " and ".join(said)


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:.0f} hours" if seconds < 72 * 3600 else f"{seconds / 86_400:.0f} days"


def _in_megabytes(text: str) -> str | None:
    """Return the text with gigabytes or terabytes converted to megabytes; None if that is no resource either."""
    old = "=" not in text

    def amount(found: re.Match[str]) -> str:
        number = float(found[1]) * (1024 if found[2].lower() == "g" else 1024**2)
        return f"{number:.0f}" + (" mb" if old else "")

    plain = _LARGE_UNITS.sub(amount, text)
    try:
        parse_resources(plain)
    except ValueError:
        return None
    return plain


def _meant(text: str) -> str:
    """Return the probably intended text of a misread resource, with numbers without separators and fractions."""
    dotted = _DOTTED_THOUSANDS.sub(lambda number: number[0].replace(".", ""), text)
    if dotted != text and any(pattern.fullmatch(dotted) for pattern in _CLEAR_RESOURCES):
        return f"write '{dotted}' if its dots separate thousands, and else whole amounts"
    plain = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    plain = re.sub(r"([0-9]+)\.[0-9]*(?=\s*(?:mb|vcores))", r"\1", plain, flags=re.IGNORECASE)
    if plain != text and any(pattern.fullmatch(plain) for pattern in _CLEAR_RESOURCES):
        return f"write '{plain}'"
    return "write '4096 mb, 4 vcores': whole amounts of both, and nothing else"


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
    """Context of the check of a whole file; ``verdict`` collects the findings."""

    def __init__(self) -> None:
        self.verdict = Verdict()

    def at(self, element: Element, queue: str | None = None) -> Spot:
        """Return the location of an element that belongs to a queue, or to none."""
        return Spot(self.verdict, element, queue)

    def verdict_on(self, xml: str | bytes, source: str, look: Callable[[Element], None]) -> Verdict:
        """Return the findings of ``look`` in a document, sorted by line. A document that is not XML is a finding."""
        try:
            root = parse_xml(xml, source=source)
        except InputError as error:
            self.refused(error, source, "YF001")
            return self.verdict
        return self.verdict_of(root, source, look)

    def verdict_of(self, root: Element, source: str, look: Callable[[Element], None]) -> Verdict:
        """Like `verdict_on`, for the root element of a parsed document."""
        try:
            look(root)
        except InputError as error:
            self.refused(error, source, "YF401")
        self.verdict.findings.sort(key=lambda found: found.line)
        return self.verdict

    def refused(self, error: InputError, source: str, code: str) -> None:
        """Add the parser's error as a finding, unless its line already has a refused finding."""
        match = re.match(r":(\d+)(?:: queue (.*))?$", (error.where or "").removeprefix(source), re.DOTALL)
        line, queue = (int(match[1]), match[2]) if match else (1, None)
        if not any(found.line == line and found.refused for found in self.verdict.findings):
            self.verdict.findings.append(Finding(line, queue, error.what, error.hint or "mend the file", code))
