"""A cache of the traps of a ResourceManager's cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.yarn.capacity.traps import Trap
from harness.yarn.rest import shown_site
from harness.yarn.rmclient import RmClient


@dataclass(slots=True)
class KnownTraps:
    """The traps that were found for a Hadoop release since the last `forget`."""

    _found: tuple[tuple[int, int], tuple[Trap, ...]] | None = None

    def of(
        self,
        client: RmClient,
        hadoop: tuple[int, int],
        find: Callable[[Mapping[str, str] | None], tuple[Trap, ...]],
    ) -> tuple[Trap, ...]:
        """Return the traps. If they are not cached, request the ResourceManager's properties and find them.

        Parameters
        ----------
        client
            The client of the ResourceManager.
        hadoop
            The ResourceManager's Hadoop release.
        find
            Returns the traps in the properties. Its argument is None if the ResourceManager does not show them.
        """
        if self._found is not None and self._found[0] == hadoop:
            return self._found[1]
        site = shown_site(client.rest)
        found = find(site)
        # If the RM does not show its properties, ask again next time: its administrator may grant access at any time.
        self._found = None if site is None else (hadoop, found)
        return found

    def forget(self) -> None:
        """Forget the traps, because the configuration or the ResourceManager changed."""
        self._found = None
