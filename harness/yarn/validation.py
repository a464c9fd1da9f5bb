"""The single entry point for checking a scheduler's configuration: takes a whole document, returns findings.

Pure and fast: no clock, network or file. ``yarnfair validate`` prints what it returns; the controller calls it before
every write. The two validators (`fair.validate`, `capacity.validate`) define the findings.
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
    """Check the text of an allocation file or of a Capacity Scheduler's file; the root element tells which.

    Parameters
    ----------
    document : the whole file.
    source : name of the document in messages.
    site : properties of yarn-site.xml, as `read_site` returns them, for the cluster's limits, resource types and
        monitors. None if they are not known.
    hadoop : the release of Hadoop that has to load it, as (3, 5). None: each line of releases that yarnfair knows; a
        finding that does not concern all of them names the releases. All releases read an allocation file in the same
        way.

    Returns
    -------
    All findings by line, then those in yarn-site.xml; ``refused`` tells whether the RM would refuse to start or
    refresh. Never raises because of the content.
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
        # A stable sort: findings in yarn-site.xml come last.
        verdict.findings.sort(key=lambda one: one.file is not None)
    return verdict


def check_properties(values: Mapping[str, str], *, source: str, site: Mapping[str, str] | None = None) -> Verdict:
    """Check a Capacity Scheduler's properties without a file, as from a configuration store.

    Parameters
    ----------
    values : full name of each property -> its value.
    source : name of their source in messages.
    site : properties of yarn-site.xml; None if they are not known.

    Returns
    -------
    All findings, in the order of the properties; their line is the property's position from 1.
    """
    return validate_values(values, source=source, site=site)
