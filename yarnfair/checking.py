"""Checks scheduler files, like a linter."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from harness.yarn.fair.parse import read_bytes
from harness.yarn.findings import Verdict
from harness.yarn.validation import check_document, read_site


class Validation:
    """The findings of a scheduler file.

    Parameters
    ----------
    file
        The file's name in the findings.
    verdict
        The result of `harness.yarn.validation.check_document`.
    """

    def __init__(self, file: str, verdict: Verdict) -> None:
        self.file, self._verdict = file, verdict

    @property
    def valid(self) -> bool:
        """Whether the ResourceManager reads the file as it is meant, that is, without an error."""
        return bool(self._verdict.valid)

    @property
    def findings(self) -> pd.DataFrame:
        """One row per finding: ``file``, ``line``, ``level``, ``code``, ``queue``, ``what``, ``hint``."""
        rows = [
            (one.file or self.file, one.line, one.level.value, one.code, one.queue or "", one.what, one.hint)
            for one in self._verdict.findings
        ]
        return pd.DataFrame(rows, columns=["file", "line", "level", "code", "queue", "what", "hint"])

    def __repr__(self) -> str:
        return "\n".join([one.text(self.file) for one in self._verdict.findings]) or f"{self.file} is valid"

    def _repr_html_(self) -> str:
        """Show the findings as a table, in a notebook."""
        return str(self.findings.to_html(index=False)) if len(self._verdict.findings) else f"{self.file} is valid"


def validate(file: str | Path | bytes, *, yarn_site: str | Path | None = None) -> Validation:
    """Check an allocation file or a capacity-scheduler.xml.

    Parameters
    ----------
    file
        A path, or the document itself as bytes.
    yarn_site
        The ResourceManager's yarn-site.xml: limits, resource types, monitors.

    Returns
    -------
    Validation
        The settings that the ResourceManager refuses, or silently misreads. The reference of the command ``validate``
        lists the codes.

    Raises
    ------
    InputError
        The file is unreadable.

    Examples
    --------
    >>> import yarnfair
    >>> found = yarnfair.validate(b'<allocations><queue name="a"><weight>two</weight></queue></allocations>')
    >>> found.valid
    False
    >>> found.findings[["line", "level", "queue"]].values.tolist()
    [[1, 'error', 'root.a']]
    """
    name = "allocations" if isinstance(file, bytes) else str(file)
    document = file if isinstance(file, bytes) else read_bytes(str(file))
    site = None if yarn_site is None else read_site(read_bytes(str(yarn_site)), source=str(yarn_site))
    return Validation(name, check_document(document, source=name, site=site))
