"""Decide whether a ResourceManager would refuse a document, before it is written. No I/O.

The product's own validation (harness.yarn.validation) checks the complete document as the ResourceManager would read
it: the present document merged with the controller's changes. The functions here compare its findings with those for
the administrator's own document, so that a mistake of the administrator's is not attributed to the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.yarn.findings import Finding

#: Code of the finding that the Fair Scheduler does not create a queue: the RM accepts the file without the queue.
_NOT_MADE = "YF507"


def refused(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings for which a ResourceManager refuses the document or does not create a queue."""
    return [finding for finding in findings if finding.refused or finding.code == _NOT_MADE]


def lines_of(findings: Iterable[Finding], source: str) -> tuple[str, ...]:
    """Describe findings for a person, one line each; equal lines are shown once."""
    return tuple(dict.fromkeys(finding.text(source) for finding in findings))


def unlike(findings: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are not among the others, regardless of their line numbers."""
    known = {(finding.queue, finding.what) for finding in others}
    return [finding for finding in findings if (finding.queue, finding.what) not in known]


def in_short(lines: Sequence[str]) -> str:
    """Join the first two lines and add the number of further lines."""
    more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""
    return "; ".join(lines[:2]) + more
