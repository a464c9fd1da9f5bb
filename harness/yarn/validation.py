"""The one entry point that checks a scheduler's configuration: a whole document in, findings out.

Pure and fast: no clock, network or file. ``yarnfair validate`` prints what it returns; the controller calls it before
every write. What the findings mean is the business of the two validators (`fair.validate`, `capacity.validate`).
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
    """The properties of a yarn-site.xml. InputError for what is none."""
    return parse_configuration(document, source=source).site(source)


def check_document(
    document: bytes,
    *,
    source: str,
    site: Mapping[str, str] | None = None,
    hadoop: tuple[int, int] | None = None,
) -> Verdict:
    """Check the text of an allocation file or of a Capacity Scheduler's file; the outermost element tells which.

    Parameters
    ----------
    document : the whole file.
    source : what to call it in messages.
    site : properties of yarn-site.xml, as `read_site` gives them: for the cluster's limits, its resource types and
        monitors. None where they are not known.
    hadoop : the release of Hadoop that has to load it, as (3, 5). None: each line of releases that yarnfair knows; a
        finding that is not of all of them says of which it is. Releases read an allocation file alike.

    Returns
    -------
    All findings by line, then those in yarn-site.xml; ``refused`` tells whether the RM would start and refresh. Nothing
    is raised for the document's content.
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
        # Stable: what is in yarn-site.xml comes last.
        verdict.findings.sort(key=lambda one: one.file is not None)
    return verdict


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
