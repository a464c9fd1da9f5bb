"""The gate before every write: would a ResourceManager take the document? Pure.

The product's own validation (harness.yarn.validation) checks the whole document as the ResourceManager would read it:
what is present, merged with what the controller changes. What it says of a document is compared here with what it says
of the administrator's own, so that each knows whose mistake it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.yarn.findings import Finding

#: A queue that a Fair Scheduler's ResourceManager does not make: it starts, and the queue is missing.
_NOT_MADE = "YF507"


def refused(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings for which a ResourceManager does not take the document at all, or leaves queues out."""
    return [finding for finding in findings if finding.refused or finding.code == _NOT_MADE]


def lines_of(findings: Iterable[Finding], source: str) -> tuple[str, ...]:
    """Describe findings for a person, a line each; several of one line of the document are told once each."""
    return tuple(dict.fromkeys(finding.text(source) for finding in findings))


def unlike(findings: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are not among the others; lines of the document may differ."""
    known = {(finding.queue, finding.what) for finding in others}
    return [finding for finding in findings if (finding.queue, finding.what) not in known]


def in_short(lines: Sequence[str]) -> str:
    """Join the first lines, and say how many more there are."""
    more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""
    return "; ".join(lines[:2]) + more
