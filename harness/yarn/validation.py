"""The single entry point for validating a scheduler's configuration: takes a whole document, returns findings.

It uses no clock, network or file. ``yarnfair validate`` prints its findings, and the controller calls it before every
write. The two validators (`fair.validate`, `capacity.validate`) define the findings.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.yarn.capacity.properties import Site, parse_configuration
from harness.yarn.capacity.validate import is_configuration, validate_properties, validate_values
from harness.yarn.fair.validate import validate_allocations
from harness.yarn.findings import Verdict
from harness.yarn.site import check_site

__all__ = ["check_document", "check_properties", "read_site"]


def read_site(document: bytes, *, source: str) -> Site:
    """Return the properties of a yarn-site.xml. Raises InputError for an invalid file."""
    return parse_configuration(document, source=source).site(source)


def check_document(
    document: bytes,
    *,
    source: str,
    site: Mapping[str, str] | None = None,
    hadoop: tuple[int, int] | None = None,
) -> Verdict:
    """Validate the text of an allocation file or of a Capacity Scheduler's file, depending on its root element.

    Never raises because of the content.

    Parameters
    ----------
    document : bytes
        The whole file.
    source : str
        Name of the document in messages.
    site : Mapping[str, str] or None
        Properties of yarn-site.xml from `read_site`, for the cluster's limits, resource types and monitors (None:
        unknown).
    hadoop : tuple[int, int] or None
        The Hadoop release that has to load the document, as (3, 5). None: all releases that yarnfair knows; a finding
        that does not concern all of them names the releases. All releases parse an allocation file in the same way.

    Returns
    -------
    Verdict
        All findings by line, then those in yarn-site.xml. ``refused`` is True if the RM would refuse to start or to
        refresh.
    """
    capacity = is_configuration(document)
    if capacity:
        verdict = validate_properties(document, source=source, site=site, hadoop=hadoop)
    else:
        verdict = validate_allocations(document, source=source, site=site)
    if site is not None:
        found = check_site(site, scheduler="capacity" if capacity else "fair")
        said = {(one.code, one.what) for one in verdict.findings}
        verdict.findings += [one for one in found if (one.code, one.what) not in said]
        # Move findings in yarn-site.xml to the end; the sort is stable.
        verdict.findings.sort(key=lambda one: one.file is not None)
    return verdict


def check_properties(values: Mapping[str, str], *, source: str, site: Mapping[str, str] | None = None) -> Verdict:
    """Validate a Capacity Scheduler's properties without a file, for example from a configuration store.

    Parameters
    ----------
    values : Mapping[str, str]
        Full name of each property -> its value.
    source : str
        Name of their source in messages.
    site : Mapping[str, str] or None
        Properties of yarn-site.xml (None: unknown).

    Returns
    -------
    Verdict
        All findings in the order of the properties. A finding's line is the position of its property, from 1.
    """
    return validate_values(values, source=source, site=site)
