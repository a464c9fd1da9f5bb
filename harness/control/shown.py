"""What a ResourceManager shows of its own properties, where it shows them at all."""

from __future__ import annotations

from collections.abc import Mapping

from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.rmclient import RmClient


def shown_site(client: RmClient) -> Mapping[str, str] | None:
    """Return the ResourceManager's own properties (``/conf``); None where it refuses to show them.

    None is not the same as no property: what is not shown may be switched on. Raises Unreachable.
    """
    try:
        return client.rest.properties()
    except (Refused, BadAnswer):
        return None
