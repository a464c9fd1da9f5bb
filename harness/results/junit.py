"""A check's outcome as JUnit XML, which CI servers show: one suite per run, one case per metric.

Each metric beyond its bound fails. The worst one of a variant names the others. A metric that is not judged is skipped,
or an error where the check requires that everything is judged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from harness.base.outputs import write_output
from harness.results.check import Checked, Held
from harness.results.judged import Failure, failures

#: Characters that XML 1.0 does not allow.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _attr(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("?", text))


def _case(held: Held, worst: dict[int, Failure], link: str, strict: bool) -> list[str]:
    name = f"yarnfair.{held.experiment}.{held.variant}".replace(" ", "_")
    begin = f'    <testcase classname={_attr(name)} name={_attr(held.key.text())} time="0"'
    if held.alarm:
        failed = worst.get(id(held))
        # The worst metric of a variant names all of them; each of the others fails with its own text.
        words = failed.words if failed is not None else f"part of the failure of {held.variant}: {held.words}"
        lines = [f"{held.run}: {words}", *(failed.lines if failed is not None else ())]
        lines += [f"over time: {link}"] if link else []
        body = escape(_FORBIDDEN.sub("?", "\n".join(lines)))
        failure = f"      <failure type={_attr(held.verdict)} message={_attr(words)}>{body}</failure>"
        return [begin + ">", failure, "    </testcase>"]
    if strict and held.verdict == "not judged":
        return [begin + ">", f'      <error type="not judged" message={_attr(held.words)}/>', "    </testcase>"]
    if held.verdict in ("acknowledged", "not judged"):
        return [begin + ">", f"      <skipped message={_attr(held.words)}/>", "    </testcase>"]
    return [begin + "/>"]


def junit(checked: Checked, link: str = "", *, strict: bool = False) -> str:
    """Return the XML document.

    ``link``: the address of a page of the metrics over time, included in each failure. ``strict``: a metric that is not
    judged is an error, as it is for the exit code.
    """
    worst = {id(failure.alarms[0]): failure for failure in failures(checked)}
    suites: dict[str, list[Held]] = {}
    for held in checked.held:
        name = f"{held.experiment}, {held.variant}, {held.backend}: {held.run}, {held.how.partition(',')[0]}"
        suites.setdefault(name, []).append(held)
    lines = []
    totals = [0, 0, 0, 0]
    for name, cases in suites.items():
        counts = _counts(cases, strict)
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        lines.append(
            f'  <testsuite name={_attr(name)} tests="{counts[0]}" failures="{counts[1]}" errors="{counts[2]}" '
            f'skipped="{counts[3]}" time="0">'
        )
        for held in cases:
            lines += _case(held, worst, link, strict)
        lines.append("  </testsuite>")
    for run, code, why in checked.invalid:
        totals = [totals[0] + 1, totals[1], totals[2] + 1, totals[3]]
        lines += [
            f'  <testsuite name={_attr(run)} tests="1" failures="0" errors="1" skipped="0" time="0">',
            f'    <testcase classname="yarnfair" name={_attr(run)} time="0">',
            f'      <error type="exit {code}" message={_attr(why)}/>',
            "    </testcase>",
            "  </testsuite>",
        ]
    head = (
        f'<testsuites name="yarnfair check" tests="{totals[0]}" failures="{totals[1]}" errors="{totals[2]}" '
        f'skipped="{totals[3]}" time="0">'
    )
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *lines, "</testsuites>", ""])


def _counts(cases: Sequence[Held], strict: bool) -> tuple[int, int, int, int]:
    """Return the numbers of all cases, of failures, of errors and of skipped ones."""
    failed = sum(one.alarm for one in cases)
    verdicts = Counter(one.verdict for one in cases if not one.alarm)
    left = verdicts["not judged"]
    return len(cases), failed, left if strict else 0, verdicts["acknowledged"] + (0 if strict else left)


def write_junit(checked: Checked, path: Path, link: str = "", *, strict: bool = False) -> None:
    """Write the document atomically.

    Raises InputError if the disk refuses.
    """
    write_output(path, junit(checked, link, strict=strict), hint="choose another --junit FILE")


@dataclass(frozen=True, slots=True)
class OneCase:
    """A case that is not a recorded metric. ``words``: what was found; ``kind``: type of the failure."""

    classname: str
    name: str
    passed: bool
    words: str = ""
    kind: str = "failed"

    def lines(self) -> list[str]:
        """Return the case as XML lines."""
        begin = f'    <testcase classname={_attr(self.classname)} name={_attr(self.name)} time="0"'
        if self.passed:
            return [begin + "/>"]
        body = escape(_FORBIDDEN.sub("?", self.words))
        failure = f"      <failure type={_attr(self.kind)} message={_attr(self.words)}>{body}</failure>"
        return [begin + ">", failure, "    </testcase>"]


def write_cases(name: str, suite: str, cases: Sequence[OneCase], path: Path) -> None:
    """Write cases as one suite.

    Raises InputError if the disk refuses.
    """
    failed = sum(not one.passed for one in cases)
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="0" time="0"'
    document = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={_attr(name)} {counts}>",
        f"  <testsuite name={_attr(suite)} {counts}>",
        *(line for one in cases for line in one.lines()),
        "  </testsuite>",
        "</testsuites>",
        "",
    ]
    write_output(path, "\n".join(document), hint="choose another --junit FILE")
