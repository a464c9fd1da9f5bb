"""The traps of a ResourceManager's cluster, kept until they may be others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.yarn.capacity.traps import Trap
from harness.yarn.rest import shown_site
from harness.yarn.rmclient import RmClient


@dataclass(slots=True)
class KnownTraps:
    """What was found for a release of Hadoop since it was last forgotten."""

    _found: tuple[tuple[int, int], tuple[Trap, ...]] | None = None

    def of(
        self,
        client: RmClient,
        hadoop: tuple[int, int],
        find: Callable[[Mapping[str, str] | None], tuple[Trap, ...]],
    ) -> tuple[Trap, ...]:
        """Return the traps; the ResourceManager is asked for its properties if they are not known.

        Parameters
        ----------
        client
            Of the ResourceManager.
        hadoop
            Its release.
        find
            Finds them in its properties; None stands for properties that it does not show.
        """
        if self._found is not None and self._found[0] == hadoop:
            return self._found[1]
        site = shown_site(client.rest)
        found = find(site)
        # What the RM does not show is asked for again: its administrator may grant it at any time.
        self._found = None if site is None else (hadoop, found)
        return found

    def forget(self) -> None:
        """Ask anew at the next time: the configuration or the ResourceManager changed."""
        self._found = None
