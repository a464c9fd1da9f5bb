"""The one entry point that checks a scheduler's configuration: a whole document in, findings out.

Pure and fast: no clock, network or file. ``yarnfair validate`` prints what it returns; the controller calls it before
every write. What the findings mean is the business of the two validators (`fair.validate`, `capacity.validate`).
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.validate import is_configuration, validate_properties, validate_values
from harness.yarn.fair.validate import validate_allocations
from harness.yarn.findings import Verdict

__all__ = ["check_document", "check_properties", "read_site"]


def read_site(document: bytes, *, source: str) -> Mapping[str, str]:
    """The properties of a yarn-site.xml. InputError for what is none."""
    return parse_configuration(document, source=source).values


def check_document(document: bytes, *, source: str, site: Mapping[str, str] | None = None) -> Verdict:
    """Check the text of an allocation file or of a Capacity Scheduler's file; the outermost element tells which.

    Parameters
    ----------
    document : the whole file.
    source : what to call it in messages.
    site : properties of yarn-site.xml, for the cluster's limits and resource types; None where they are not known.

    Returns
    -------
    All findings by line; ``refused`` tells whether the RM would start and refresh. Nothing is raised for the
    document's content.
    """
    check = validate_properties if is_configuration(document) else validate_allocations
    return check(document, source=source, site=site)


def check_properties(values: Mapping[str, str], *, source: str, site: Mapping[str, str] | None = None) -> Verdict:
    """Check a Capacity Scheduler's properties that are in no file, as a configuration store has them.

    Parameters
    ----------
    values : full name of each property -> its value.
    source : what to call them in messages.
    site : properties of yarn-site.xml; None where they are not known.

    Returns
    -------
    All findings, in the order of the properties; their line is the property's position from 1.
    """
    return validate_values(values, source=source, site=site)
