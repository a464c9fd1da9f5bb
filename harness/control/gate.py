"""The gate before every write: would a ResourceManager accept the document? Pure.

The product's own validation (harness.yarn.validation) checks the complete document as the ResourceManager would read
it: the present document merged with the controller's changes. The findings are compared here with those for the
administrator's own document, to tell whose mistake each one is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.yarn.findings import Finding

#: A queue that a Fair Scheduler's ResourceManager does not create: the RM starts, and the queue is missing.
_NOT_MADE = "YF507"


def refused(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings for which a ResourceManager refuses the document, or leaves queues out."""
    return [finding for finding in findings if finding.refused or finding.code == _NOT_MADE]


def lines_of(findings: Iterable[Finding], source: str) -> tuple[str, ...]:
    """Describe findings for a person, one line each; equal lines are shown once."""
    return tuple(dict.fromkeys(finding.text(source) for finding in findings))


def unlike(findings: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are not among the others; lines of the document may differ."""
    known = {(finding.queue, finding.what) for finding in others}
    return [finding for finding in findings if (finding.queue, finding.what) not in known]


def in_short(lines: Sequence[str]) -> str:
    """Join the first lines, and say how many more there are."""
    more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""
    return "; ".join(lines[:2]) + more
